//===- Writer.cpp - Writes artifact files -------------------------------------------------------------------------===//
//
// Sections are written in file order and hashed on the way; header and section table, which hold the hashes, are
// written last into the room left for them. What was written is then read back by the loader's own checks, and only
// then does the file get its name.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "tc/Artifact/Writer.h"

#include "tc/Format/Container.h"
#include "tc/Format/Elf.h"
#include "tc/Format/Error.h"
#include "tc/Format/File.h"
#include "tc/Format/Sha256.h"
#include "tc/Support/TemporaryPath.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <pthread.h>
#include <unistd.h>

using namespace tc::artifact;
using llvm::ArrayRef;
using llvm::Error;
using llvm::StringRef;

Segment Segment::bytes(StringRef data) {
  Segment segment;
  segment.size = data.size();
  segment.data = data;
  return segment;
}

Segment Segment::file(std::string path, uint64_t offset, uint64_t size) {
  Segment segment;
  segment.source = Source::File;
  segment.size = size;
  segment.path = std::move(path);
  segment.fileOffset = offset;
  return segment;
}

Segment Segment::callback(uint64_t size, std::function<Error(WeightSink)> produce) {
  Segment segment;
  segment.source = Source::Callback;
  segment.size = size;
  segment.produce = std::move(produce);
  return segment;
}

uint64_t ArtifactSpec::weightsSize() const {
  return weights.empty() ? 0 : weights.back().offset + weights.back().segment.size;
}

uint64_t ArtifactSpec::addWeights(Segment segment) {
  uint64_t offset = llvm::alignTo(weightsSize(), TCRT_DATA_ALIGN);
  weights.push_back({offset, std::move(segment)});
  return offset;
}

namespace {

/// What the caller of the writer did wrong, a defect of tc.
Error fail(StringRef path, const llvm::Twine &what) { return llvm::createStringError(path + ": error: " + what); }

/// A file that cannot be read or written.
Error failFile(StringRef path, const llvm::Twine &what) {
  return llvm::createStringError(std::make_error_code(std::errc::io_error), path + ": error: " + what);
}

/// Where the bytes go.
class Output {
public:
  virtual ~Output() = default;
  virtual Error append(ArrayRef<uint8_t> bytes) = 0;
  virtual Error overwrite(uint64_t offset, ArrayRef<uint8_t> bytes) = 0;
};

class MemoryOutput : public Output {
public:
  std::string bytes;

  Error append(ArrayRef<uint8_t> data) override {
    bytes.append(reinterpret_cast<const char *>(data.data()), data.size());
    return Error::success();
  }
  Error overwrite(uint64_t offset, ArrayRef<uint8_t> data) override {
    if (!data.empty())
      std::memcpy(&bytes[offset], data.data(), data.size());
    return Error::success();
  }
};

class FileOutput : public Output {
public:
  FileOutput(int fd, StringRef path) : fd(fd), path(path) {}

  Error append(ArrayRef<uint8_t> data) override {
    Error error = overwrite(size, data);
    size += data.size();
    return error;
  }
  Error overwrite(uint64_t offset, ArrayRef<uint8_t> data) override {
    while (!data.empty()) {
      ssize_t written = ::pwrite(fd, data.data(), std::min<size_t>(data.size(), size_t(1) << 30), off_t(offset));
      if (written < 0 && errno == EINTR)
        continue;
      if (written <= 0)
        return failFile(path,
                        llvm::Twine("the file cannot be written: ") + std::strerror(written < 0 ? errno : ENOSPC));
      data = data.drop_front(size_t(written));
      offset += uint64_t(written);
    }
    return Error::success();
  }

private:
  int fd;
  StringRef path;
  uint64_t size = 0;
};

ArrayRef<uint8_t> asBytes(StringRef text) { return {reinterpret_cast<const uint8_t *>(text.data()), text.size()}; }

template <typename T> ArrayRef<uint8_t> asBytes(const T &record) {
  return {reinterpret_cast<const uint8_t *>(&record), sizeof(T)};
}

/// The SIGNATURE section.
class SignatureBuilder {
public:
  explicit SignatureBuilder(const ArtifactSpec &spec) : spec(spec) {}

  /// Where the code of a variant is.
  struct Code {
    uint32_t host;                ///< section
    uint32_t firstDevice, device; ///< sections
  };

  std::string build(ArrayRef<Code> codes) {
    std::vector<tcrt_sig_value_t> inputs, outputs;
    std::vector<tcrt_sig_symbol_t> symbols;
    std::vector<tcrt_sig_kernel_t> kernels;
    std::vector<tcrt_sig_function_t> functions;
    std::vector<tcrt_sig_entry_t> entries;
    std::vector<tcrt_sig_entry_size_t> entrySizes;
    for (const Function &function : spec.functions) {
      for (const Entry &entry : function.entries) {
        entries.push_back({uint32_t(functions.size()), uint32_t(entrySizes.size()), uint32_t(entry.sizes.size()), 0});
        for (const EntrySize &size : entry.sizes)
          entrySizes.push_back({size.symbol, size.isAtMost ? TCRT_ENTRY_AT_MOST : TCRT_ENTRY_EQUAL, size.size});
      }
      tcrt_sig_function_t record = {};
      record.name = makeName(function.name);
      record.first_input = uint32_t(inputs.size());
      record.first_output = uint32_t(outputs.size());
      record.first_symbol = uint32_t(symbols.size());
      record.first_kernel = uint32_t(kernels.size());
      for (const Value &value : function.inputs)
        inputs.push_back(makeValue(value));
      for (const Value &value : function.outputs)
        outputs.push_back(makeValue(value));
      for (const Symbol &symbol : function.symbols)
        symbols.push_back({makeName(symbol.name), symbol.min, symbol.max, symbol.divisor});
      for (const Kernel &kernel : function.kernels)
        kernels.push_back(
            {makeName(printable(kernel.name)), makeName(printable(kernel.nodes)), kernel.flops, kernel.bytes});
      record.input_count = uint32_t(function.inputs.size());
      record.output_count = uint32_t(function.outputs.size());
      record.symbol_count = uint32_t(function.symbols.size());
      record.kernel_count = uint32_t(function.kernels.size());
      functions.push_back(record);
    }
    std::vector<tcrt_sig_state_t> states;
    for (const State &state : spec.states) {
      tcrt_sig_state_t record = {};
      record.name = makeName(state.name);
      record.dtype = state.dtype;
      record.rank = uint32_t(state.dims.size());
      record.first_dim = uint32_t(dims.size());
      record.flags = state.initialOffset ? uint32_t(TCRT_STATE_FLAG_INITIAL) : 0;
      record.initial_offset = state.initialOffset.value_or(0);
      for (int64_t size : state.dims)
        dims.push_back({TCRT_DIM_STATIC, 0, size});
      states.push_back(record);
    }
    std::vector<tcrt_sig_variant_t> variants;
    std::vector<tcrt_sig_device_kernel_t> deviceKernels;
    for (auto [variant, code] : llvm::zip_equal(spec.variants, codes)) {
      variants.push_back({makeName(variant.name), variant.device, code.host, variant.cpuFeatures,
                          std::min(variant.weightsSize, spec.weightsSize()), variant.arch, code.firstDevice,
                          code.device, uint32_t(deviceKernels.size()), uint32_t(variant.deviceKernels.size()),
                          variant.graphs});
      for (const DeviceKernel &kernel : variant.deviceKernels)
        deviceKernels.push_back({makeName(kernel.name), kernel.maxThreads, kernel.dynamicSmem});
    }
    std::vector<tcrt_sig_name_t> hostFunctions;
    for (const std::string &name : spec.hostFunctions)
      hostFunctions.push_back(makeName(name));

    tcrt_signature_t head = {};
    head.size = sizeof head;
    head.abi_version = TCRT_ABI_VERSION;
    head.input_count = uint32_t(inputs.size());
    head.output_count = uint32_t(outputs.size());
    head.dim_count = uint32_t(dims.size());
    head.symbol_count = uint32_t(symbols.size());
    head.variant_count = uint32_t(variants.size());
    head.kernel_count = uint32_t(kernels.size());
    head.string_size = uint32_t(strings.size());
    head.device_kernel_count = uint32_t(deviceKernels.size());
    head.host_function_count = uint32_t(hostFunctions.size());
    head.function_count = uint32_t(functions.size());
    head.state_count = uint32_t(states.size());
    std::string bytes(sizeof head, '\0');
    auto append = [&](const void *data, size_t size) {
      bytes.resize(llvm::alignTo(bytes.size(), 8), '\0');
      uint64_t offset = bytes.size();
      if (size)
        bytes.append(static_cast<const char *>(data), size);
      return offset;
    };
    auto table = [&](const auto &records) { return append(records.data(), records.size() * sizeof(records[0])); };
    head.function_offset = table(functions);
    head.input_offset = table(inputs);
    head.output_offset = table(outputs);
    head.state_offset = table(states);
    head.dim_offset = table(dims);
    head.symbol_offset = table(symbols);
    head.variant_offset = table(variants);
    head.kernel_offset = table(kernels);
    head.device_kernel_offset = table(deviceKernels);
    head.host_function_offset = table(hostFunctions);
    head.entry_count = uint32_t(entries.size());
    head.entry_size_count = uint32_t(entrySizes.size());
    head.entry_offset = table(entries);
    head.entry_size_offset = table(entrySizes);
    head.string_offset = append(strings.data(), strings.size());
    std::memcpy(bytes.data(), &head, sizeof head);
    return bytes;
  }

private:
  tcrt_sig_name_t makeName(StringRef name) {
    tcrt_sig_name_t result = {uint32_t(strings.size()), uint32_t(name.size())};
    strings += name;
    return result;
  }

  tcrt_sig_value_t makeValue(const Value &value) {
    tcrt_sig_value_t record = {};
    record.name = makeName(value.name);
    record.kind = value.kind;
    record.inner = value.inner;
    record.dtype = value.dtype;
    record.rank = uint32_t(value.dims.size());
    record.first_dim = uint32_t(dims.size());
    record.flags = value.flags;
    record.default_offset = value.defaultOffset;
    for (const Dim &dim : value.dims)
      dims.push_back({dim.kind, dim.symbolIndex, dim.value});
    return record;
  }

  /// Node names only serve profiles: bytes that the format does not allow become '?', and long lists are cut.
  static std::string printable(StringRef name) {
    std::string text = name.substr(0, 65536).str();
    bool isAscii = llvm::all_of(text, [](char c) { return c > 0; });
    if (isAscii)
      return text;
    std::string result;
    for (size_t i = 0; i < text.size();) {
      uint8_t c = uint8_t(text[i]);
      size_t length = c < 0x80 ? 1 : c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
      bool isValid = c != 0 && (c < 0x80 || (c >= 0xc2 && c <= 0xf4)) && i + length <= text.size();
      for (size_t j = 1; isValid && j < length; ++j)
        isValid = (uint8_t(text[i + j]) & 0xc0) == 0x80;
      if (isValid && length >= 3) {
        // Overlong forms, surrogates and numbers above U+10FFFF.
        uint8_t second = uint8_t(text[i + 1]);
        isValid = !(c == 0xe0 && second < 0xa0) && !(c == 0xed && second >= 0xa0) && !(c == 0xf0 && second < 0x90) &&
                  !(c == 0xf4 && second >= 0x90);
      }
      result += isValid ? text.substr(i, length) : std::string("?");
      i += isValid ? length : 1;
    }
    return result;
  }

  const ArtifactSpec &spec;
  std::vector<tcrt_sig_dim_t> dims;
  std::string strings;
};

/// Writes sections one after the other and collects their records.
class FileBuilder {
public:
  /// `base`: where the artifact starts in the output. `weightsFile`: where the weights are, if they are external.
  FileBuilder(const ArtifactSpec &spec, StringRef path, Output &output, uint64_t base = 0,
              const tcrt_weights_file_t *weightsFile = nullptr)
      : spec(spec), path(path), output(output), base(base), weightsFile(weightsFile) {}

  /// The file of external weights.
  llvm::Expected<tcrt_weights_file_t> writeWeightsFile() {
    if (Error error = checkSpec())
      return std::move(error);
    if (Error error = pad(sizeof(tcrt_weights_header_t)))
      return std::move(error);
    if (Error error = addWeights())
      return std::move(error);
    tcrt_weights_header_t header = {};
    std::memcpy(header.magic, TCRT_WEIGHTS_MAGIC, TCRT_MAGIC_SIZE);
    header.weights.size = sections.back().size;
    std::memcpy(header.weights.sha256, sections.back().sha256, sizeof header.weights.sha256);
    if (Error error = output.overwrite(0, asBytes(header)))
      return std::move(error);
    return header.weights;
  }

  Error write() {
    if (Error error = checkSpec())
      return error;
    // Which sections hold the code of each variant: equal host code is stored once.
    std::vector<const std::string *> codes;
    std::vector<SignatureBuilder::Code> places;
    const uint32_t firstCode = 2;
    for (const Variant &variant : spec.variants) {
      auto found = llvm::find_if(codes, [&](const std::string *code) { return *code == variant.elf; });
      places.push_back({firstCode + uint32_t(found - codes.begin()), 0, 0});
      if (found == codes.end())
        codes.push_back(&variant.elf);
    }
    uint64_t sectionCount = firstCode + codes.size();
    for (auto [variant, place] : llvm::zip_equal(spec.variants, places)) {
      place.device = uint32_t(variant.cubins.size() + variant.ptx.size());
      place.firstDevice = place.device ? uint32_t(sectionCount) : 0;
      sectionCount += place.device;
    }
    sectionCount += (spec.strings.empty() ? 0 : 1) + (spec.weights.empty() ? 0 : 1) + spec.others.size();
    const uint64_t tableOffset = sizeof(tcrt_file_header_t);
    if (Error error = pad(tableOffset + sectionCount * sizeof(tcrt_section_t)))
      return error;

    std::string signature = SignatureBuilder(spec).build(places);
    if (Error error = addSection(TCRT_SECTION_MANIFEST, 0, {spec.manifest}))
      return error;
    if (Error error = addSection(TCRT_SECTION_SIGNATURE, 0, {signature}))
      return error;
    for (const std::string *code : codes)
      if (Error error = addSection(TCRT_SECTION_HOST_ELF, 0, {*code}))
        return error;
    for (const Variant &variant : spec.variants) {
      for (const Cubin &cubin : variant.cubins)
        if (Error error = addSection(TCRT_SECTION_CUBIN, cubin.arch, {cubin.bytes}))
          return error;
      for (const Ptx &ptx : variant.ptx)
        if (Error error = addSection(TCRT_SECTION_PTX, ptx.arch, {ptx.text, StringRef("\0", 1)}))
          return error;
    }
    if (!spec.strings.empty())
      if (Error error = addSection(TCRT_SECTION_STRINGS, 0, {stringTable()}))
        return error;
    if (!spec.weights.empty())
      if (Error error = weightsFile
                            ? addSection(TCRT_SECTION_WEIGHTS_FILE, 0,
                                         {StringRef(reinterpret_cast<const char *>(weightsFile), sizeof *weightsFile)})
                            : addWeights())
        return error;
    for (const ArtifactSpec &other : spec.others)
      if (Error error = addArtifact(other))
        return error;

    tcrt_file_header_t header = {};
    std::memcpy(header.magic, TCRT_MAGIC, TCRT_MAGIC_SIZE);
    header.format_version = TCRT_FORMAT_VERSION;
    header.header_size = sizeof header;
    header.file_size = size;
    header.table_offset = tableOffset;
    header.section_count = uint32_t(sections.size());
    header.section_record_size = sizeof(tcrt_section_t);
    ArrayRef<uint8_t> table(reinterpret_cast<const uint8_t *>(sections.data()),
                            sections.size() * sizeof(tcrt_section_t));
    tcrt_sha256(table.data(), table.size(), header.table_sha256);
    if (Error error = output.overwrite(base + tableOffset, table))
      return error;
    return output.overwrite(base, asBytes(header));
  }

private:
  /// The STRINGS section (tcrt_string_table_t).
  std::string stringTable() const {
    std::vector<uint64_t> words{spec.strings.size(), 0};
    std::string characters;
    for (const std::string &text : spec.strings) {
      characters += text;
      words.push_back(characters.size());
    }
    return std::string(reinterpret_cast<const char *>(words.data()), words.size() * sizeof words[0]) + characters;
  }

  /// What the read-back would not see or not explain.
  Error checkSpec() {
    auto checkValue = [&](const Value &value, const char *what) -> Error {
      if (value.dims.size() > TCRT_MAX_RANK)
        return fail(path, llvm::Twine(what) + " \"" + value.name + "\" has rank " + llvm::Twine(value.dims.size()) +
                              "; at most " + llvm::Twine(TCRT_MAX_RANK) + " is supported");
      return Error::success();
    };
    llvm::StringSet<> functions, states;
    for (const Function &function : spec.functions) {
      if (!functions.insert(function.name).second)
        return fail(path, "two functions have the name \"" + function.name + "\"");
      llvm::StringSet<> inputs;
      for (const Value &value : function.inputs) {
        if (Error error = checkValue(value, "input"))
          return error;
        if (!inputs.insert(value.name).second)
          return fail(path, "two inputs of function \"" + function.name + "\" have the name \"" + value.name + "\"");
      }
      for (const Value &value : function.outputs)
        if (Error error = checkValue(value, "output"))
          return error;
    }
    for (const State &state : spec.states) {
      if (!states.insert(state.name).second)
        return fail(path, "two states have the name \"" + state.name + "\"");
      if (state.dims.size() > TCRT_MAX_RANK)
        return fail(path, "state \"" + state.name + "\" has rank " + llvm::Twine(state.dims.size()) + "; at most " +
                              llvm::Twine(TCRT_MAX_RANK) + " is supported");
    }
    uint64_t end = 0;
    for (const PlacedSegment &placed : spec.weights) {
      if (placed.offset % TCRT_DATA_ALIGN != 0 || placed.offset < end ||
          placed.segment.size > UINT64_MAX / 2 - placed.offset)
        return fail(path, "weights are not aligned or not in order");
      end = placed.offset + placed.segment.size;
    }
    return Error::success();
  }

  Error put(ArrayRef<uint8_t> bytes, bool isHashed) {
    size += bytes.size();
    if (!isHashed)
      return output.append(bytes);
    // To hash takes about as long as to write.
    constexpr size_t kWorthAThread = 1 << 20;
    std::pair<tcrt_sha256_t *, ArrayRef<uint8_t>> job(&hash, bytes);
    auto work = [](void *data) -> void * {
      auto &[into, from] = *static_cast<std::pair<tcrt_sha256_t *, ArrayRef<uint8_t>> *>(data);
      tcrt_sha256_update(into, from.data(), from.size());
      return nullptr;
    };
    pthread_t thread;
    const bool isShared = bytes.size() >= kWorthAThread && ::pthread_create(&thread, nullptr, work, &job) == 0;
    if (!isShared)
      work(&job);
    Error error = output.append(bytes);
    if (isShared)
      ::pthread_join(thread, nullptr);
    return error;
  }

  /// Zeros up to file offset `target`.
  Error pad(uint64_t target, bool isHashed = false) {
    static const uint8_t zeros[4096] = {};
    while (size < target)
      if (Error error = put(ArrayRef<uint8_t>(zeros, std::min<uint64_t>(sizeof zeros, target - size)), isHashed))
        return error;
    return Error::success();
  }

  Error beginSection(uint32_t kind, uint32_t arch) {
    if (Error error = pad(llvm::alignTo(size, TCRT_SECTION_ALIGN)))
      return error;
    tcrt_section_t section = {};
    section.kind = kind;
    section.arch = arch;
    section.offset = size;
    sections.push_back(section);
    tcrt_sha256_init(&hash);
    return Error::success();
  }

  void endSection() {
    sections.back().size = size - sections.back().offset;
    tcrt_sha256_final(&hash, sections.back().sha256);
  }

  Error addSection(uint32_t kind, uint32_t arch, std::initializer_list<StringRef> parts) {
    if (Error error = beginSection(kind, arch))
      return error;
    for (StringRef part : parts)
      if (Error error = put(asBytes(part), true))
        return error;
    endSection();
    return Error::success();
  }

  Error addWeights() {
    if (Error error = beginSection(TCRT_SECTION_WEIGHTS, 0))
      return error;
    uint64_t start = size;
    for (const PlacedSegment &placed : spec.weights) {
      if (Error error = pad(start + placed.offset, true))
        return error;
      if (Error error = addSegment(placed.segment))
        return error;
    }
    endSection();
    return Error::success();
  }

  Error addArtifact(const ArtifactSpec &other) {
    if (other.variants.empty() || other.externalWeights || !other.others.empty())
      return fail(path, "a part for another device is not well-formed");
    if (Error error = beginSection(TCRT_SECTION_ARTIFACT, other.variants.front().device))
      return error;
    FileBuilder builder(other, path, output, base + size);
    if (Error error = builder.write())
      return error;
    size += builder.size;
    endSection();
    std::memset(sections.back().sha256, 0, sizeof sections.back().sha256);
    return Error::success();
  }

  Error addSegment(const Segment &segment) {
    switch (segment.source) {
    case Segment::Source::Bytes:
      return put(asBytes(segment.data), true);
    case Segment::Source::File:
      return addFile(segment);
    case Segment::Source::Callback: {
      uint64_t written = 0;
      Error error = segment.produce([&](ArrayRef<uint8_t> bytes) -> Error {
        written += bytes.size();
        if (written > segment.size)
          return fail(path, "a constant is longer than announced");
        return put(bytes, true);
      });
      if (error)
        return error;
      if (written != segment.size)
        return fail(path, "a constant is shorter than announced");
      return Error::success();
    }
    }
    llvm_unreachable("all sources are handled");
  }

  Error addFile(const Segment &segment) {
    int fd;
    do
      fd = ::open(segment.path.c_str(), O_RDONLY | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    if (fd < 0)
      return failFile(segment.path, llvm::Twine("the file cannot be read: ") + std::strerror(errno));
    llvm::scope_exit close([&] { ::close(fd); });
    std::vector<uint8_t> buffer(std::min<uint64_t>(segment.size, uint64_t(1) << 20));
    for (uint64_t done = 0; done < segment.size;) {
      size_t wanted = std::min<uint64_t>(buffer.size(), segment.size - done);
      ssize_t got = ::pread(fd, buffer.data(), wanted, off_t(segment.fileOffset + done));
      if (got < 0 && errno == EINTR)
        continue;
      if (got < 0)
        return failFile(segment.path, llvm::Twine("the file cannot be read: ") + std::strerror(errno));
      if (got == 0)
        return failFile(segment.path, "the file is cut off; a constant ends at byte " +
                                          llvm::Twine(segment.fileOffset + segment.size));
      if (Error error = put(ArrayRef<uint8_t>(buffer.data(), size_t(got)), true))
        return error;
      done += uint64_t(got);
    }
    return Error::success();
  }

  const ArtifactSpec &spec;
  StringRef path;
  Output &output;
  uint64_t base;
  const tcrt_weights_file_t *weightsFile;
  uint64_t size = 0;
  tcrt_sha256_t hash = {};
  std::vector<tcrt_section_t> sections;
};

/// Whether the loader takes the file and maps its code.
Error readBack(const ArtifactSpec &spec, StringRef path, const void *data, uint64_t size) {
  std::string name = path.str();
  tcrt_container_t container;
  if (tcrt_container_parse(data, size, name.c_str(), 0, &container) != TCRT_OK)
    return llvm::createStringError(llvm::Twine(tcrt_last_error()));
  for (const Variant &variant : spec.variants) {
    tcrt_elf_image_t image;
    if (tcrt_elf_load(reinterpret_cast<const uint8_t *>(variant.elf.data()), variant.elf.size(), name.c_str(),
                      variant.name.c_str(), -1, 0, &image) != TCRT_OK)
      return llvm::createStringError(llvm::Twine(tcrt_last_error()));
    tcrt_elf_unload(&image);
  }
  return Error::success();
}

/// A file that takes its name only when it is finished.
class PendingFile {
public:
  ~PendingFile() { tcrt_output_drop(&output); }
  Error open(const std::string &path) {
    Error error = result(tcrt_output_open(path.c_str(), &output));
    if (output.temporary)
      named.emplace(output.temporary);
    return error;
  }
  int fd() const { return output.fd; }
  StringRef target() const { return output.target; }
  Error keep() { return result(tcrt_output_keep(&output)); }

private:
  static Error result(tcrt_status_t status) {
    // Whose code says that the system is to blame, not tc.
    return status == TCRT_OK
               ? Error::success()
               : llvm::createStringError(std::make_error_code(std::errc::io_error), llvm::Twine(tcrt_last_error()));
  }

  tcrt_output_t output = {-1, nullptr, nullptr, nullptr};
  std::optional<tc::TemporaryPath> named; ///< where the file system makes no files without a name
};

} // namespace

/// Calls `check` with links to files that have no name yet, named as an artifact and its weights are.
static Error checkUnnamed(StringRef path, const PendingFile &file, const PendingFile *weights, CheckArtifact check) {
  llvm::SmallString<128> folder;
  if (std::error_code error = llvm::sys::fs::createUniqueDirectory("tc-artifact", folder))
    return failFile(path, "a folder for its check cannot be made: " + error.message());
  llvm::scope_exit remove([&] { llvm::sys::fs::remove_directories(folder); });
  const std::string artifact = (folder + "/artifact").str();
  const tc::TemporaryPath named(folder.str().str()), namedArtifact(artifact), namedWeights(artifact + ".weights");
  auto link = [](const PendingFile &to, const std::string &from) {
    return llvm::sys::fs::create_link("/proc/self/fd/" + llvm::Twine(to.fd()), from);
  };
  std::error_code error = link(file, artifact);
  if (!error && weights)
    error = link(*weights, artifact + ".weights");
  return error ? failFile(path, "a link for its check cannot be made: " + error.message()) : check(artifact);
}

Error tc::artifact::writeArtifact(const ArtifactSpec &spec, StringRef path, CheckArtifact check) {
  PendingFile file, weightsFile;
  std::optional<tcrt_weights_file_t> weights;
  if (spec.externalWeights && !spec.weights.empty()) {
    std::string weightsPath = (path + ".weights").str();
    if (Error error = weightsFile.open(weightsPath))
      return error;
    FileOutput output(weightsFile.fd(), weightsPath);
    llvm::Expected<tcrt_weights_file_t> written = FileBuilder(spec, weightsPath, output).writeWeightsFile();
    if (!written)
      return written.takeError();
    weights = *written;
  }
  if (Error error = file.open(path.str()))
    return error;
  FileOutput output(file.fd(), path);
  if (Error error = FileBuilder(spec, path, output, 0, weights ? &*weights : nullptr).write())
    return error;
  auto buffer = llvm::MemoryBuffer::getOpenFile(llvm::sys::fs::convertFDToNativeFile(file.fd()), file.target(),
                                                /*FileSize=*/-1, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return failFile(path, "the file cannot be read back: " + buffer.getError().message());
  if (Error error = readBack(spec, path, (*buffer)->getBufferStart(), (*buffer)->getBufferSize()))
    return error;
  if (check)
    if (Error error = checkUnnamed(path, file, weights ? &weightsFile : nullptr, check))
      return error;
  if (weights)
    if (Error error = weightsFile.keep())
      return error;
  return file.keep();
}

llvm::Expected<std::string> tc::artifact::writeArtifactToMemory(const ArtifactSpec &spec) {
  MemoryOutput output;
  if (spec.externalWeights)
    return fail("(memory)", "an artifact in memory has no file of its own for weights");
  if (Error error = FileBuilder(spec, "(memory)", output).write())
    return std::move(error);
  if (Error error = readBack(spec, "(memory)", output.bytes.data(), output.bytes.size()))
    return std::move(error);
  return std::move(output.bytes);
}
