//===- TuneFile.cpp - schedules to measure elsewhere --------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Measure/TuneFile.h"

#include "tc/Format/Container.h"
#include "tc/Format/Error.h"
#include "tc/Format/File.h"
#include "tc/Format/Json.h"
#include "tc/Format/Sha256.h"
#include "tc/Support/TemporaryPath.h"
#include "tc/Support/ToolText.h"
#include "tcrt/artifact_abi.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

using namespace tc;
using namespace tc::measure;
using Json = nlohmann::json;

namespace {

constexpr char kMagic[] = "tctune\r\n";
constexpr uint32_t kVersion = 1;
constexpr const char *kElements[] = {"other", "f32", "f16", "bf16"};
// What a chip's number is at most.
constexpr uint64_t kMostArch = 100000;

struct Header {
  char magic[8];
  uint32_t version, reserved;
  uint64_t indexOffset, fileBytes;
  uint8_t indexHash[32];
};
static_assert(sizeof(Header) == 64);

std::string wrong(const std::string &path, const std::string &what) { return path + ": error: " + what; }

Json toJson(const std::vector<TuneTensor> &tensors) {
  Json list = Json::array();
  for (const TuneTensor &tensor : tensors)
    list.push_back(
        {{"shape", tensor.shape}, {"bytes", tensor.bytes}, {"elements", kElements[unsigned(tensor.elements)]}});
  return list;
}

/// That so many elements take: no type has larger ones.
uint64_t mostBytes(const std::vector<int64_t> &shape) {
  uint64_t bytes = 16;
  for (int64_t size : shape)
    if (!tcrt_mul(bytes, uint64_t(size), &bytes))
      return 0;
  return std::min<uint64_t>(bytes, INT64_MAX);
}

/// Reads what somebody wrote, and remembers what was not there.
class IndexReader {
public:
  explicit IndexReader(uint64_t limit) : limit(limit) {}
  bool isGood() const { return lacking.empty(); }
  const std::string &getLacking() const { return lacking; }

  std::string text(const Json &object, const char *name) {
    const Json *value = find(object, name);
    return value ? element(*value, name) : "";
  }
  std::string element(const Json &value, const char *name) {
    if (!value.is_string())
      lacking = name;
    return value.is_string() ? value.get<std::string>() : "";
  }
  uint64_t number(const Json &object, const char *name, uint64_t most) {
    const Json *value = find(object, name);
    if (value && (!value->is_number_unsigned() || value->get<uint64_t>() > most))
      lacking = name;
    return isGood() ? value->get<uint64_t>() : 0;
  }
  const Json &list(const Json &object, const char *name, size_t least) {
    static const Json none = Json::array();
    const Json *value = find(object, name);
    if (value && (!value->is_array() || value->size() < least))
      lacking = name;
    return isGood() ? *value : none;
  }
  std::vector<TuneTensor> tensors(const Json &object, const char *name) {
    std::vector<TuneTensor> result;
    for (const Json &from : list(object, name, 0)) {
      TuneTensor tensor;
      for (const Json &size : list(from, "shape", 0)) {
        if (!size.is_number_unsigned() || size.get<uint64_t>() > uint64_t(INT64_MAX))
          lacking = "shape";
        else
          tensor.shape.push_back(int64_t(size.get<uint64_t>()));
      }
      if (tensor.shape.size() > TCRT_MAX_RANK)
        lacking = "shape";
      tensor.bytes = number(from, "bytes", mostBytes(tensor.shape));
      const std::string elements = text(from, "elements");
      const auto *known = std::find(std::begin(kElements), std::end(kElements), elements);
      if (known == std::end(kElements))
        lacking = "elements";
      else
        tensor.elements = Elements(known - kElements);
      result.push_back(std::move(tensor));
    }
    return result;
  }
  TuneKernel kernel(const Json &from) {
    TuneKernel kernel;
    kernel.key = text(from, "kernel");
    kernel.what = text(from, "what");
    kernel.nodes = text(from, "nodes");
    kernel.sizes = text(from, "sizes");
    const std::string device = text(from, "device");
    kernel.onGpu = device == tcrt_device_name(TCRT_DEVICE_CUDA);
    if (!kernel.onGpu && device != tcrt_device_name(TCRT_DEVICE_CPU))
      lacking = "device";
    kernel.weightBytes = number(from, "weight_bytes", INT64_MAX);
    kernel.inputs = tensors(from, "inputs");
    kernel.outputs = tensors(from, "outputs");
    for (const Json &schedule : list(from, "schedules", 1))
      kernel.schedules.push_back({text(schedule, "schedule"), text(schedule, "change")});
    for (const Json &variant : list(from, "variants", 1)) {
      kernel.variants.push_back({text(variant, "name"), uint32_t(number(variant, "arch", kMostArch)), {}});
      for (const Json &number : list(variant, "schedules", 1)) {
        if (!number.is_number_unsigned() || number.get<uint64_t>() >= kernel.schedules.size())
          lacking = "schedules";
        else
          kernel.variants.back().schedules.push_back(number.get<uint32_t>());
      }
      if (isGood() && kernel.variants.back().schedules.front() != 0)
        lacking = "schedules";
    }
    kernel.offset = number(from, "offset", limit);
    kernel.bytes = number(from, "bytes", limit);
    if (kernel.offset % TCRT_SECTION_ALIGN || kernel.offset < sizeof(Header) ||
        !tcrt_in_range(kernel.offset, kernel.bytes, limit))
      lacking = "offset";
    return kernel;
  }

private:
  const Json *find(const Json &object, const char *name) {
    auto found = object.is_object() ? object.find(name) : object.end();
    if (found != object.end())
      return &*found;
    lacking = name;
    return nullptr;
  }

  uint64_t limit;
  std::string lacking;
};

} // namespace

const TuneVariant *TuneKernel::findVariant(const std::string &name) const {
  auto found = std::find_if(variants.begin(), variants.end(), [&](auto &variant) { return variant.name == name; });
  return found == variants.end() ? nullptr : &*found;
}

bool TuneKernel::makeTensors(Tensors &tensors) const {
  // Of sizes beyond the machine's memory some would be given all the same.
  const uint64_t memory = uint64_t(::sysconf(_SC_PHYS_PAGES)) * uint64_t(::sysconf(_SC_PAGESIZE));
  uint64_t all = 0;
  for (const std::vector<TuneTensor> *list : {&inputs, &outputs})
    for (const TuneTensor &tensor : *list)
      if (!tcrt_add(all, tensor.bytes, &all) || all > memory)
        return false;
  for (const TuneTensor &tensor : inputs)
    if (!tensors.addInput(tensor.shape, tensor.bytes, tensor.elements))
      return false;
  for (const TuneTensor &tensor : outputs)
    if (!tensors.addOutput(tensor.shape, tensor.bytes, tensor.elements))
      return false;
  return true;
}

std::string tc::measure::printTuneIndex(const TuneIndex &index) {
  Json kernels = Json::array();
  for (const TuneKernel &kernel : index.kernels) {
    Json schedules = Json::array(), variants = Json::array();
    for (const TuneSchedule &schedule : kernel.schedules)
      schedules.push_back({{"schedule", schedule.text}, {"change", schedule.change}});
    for (const TuneVariant &variant : kernel.variants)
      variants.push_back({{"name", variant.name}, {"arch", variant.arch}, {"schedules", variant.schedules}});
    kernels.push_back({{"kernel", kernel.key},
                       {"what", kernel.what},
                       {"nodes", kernel.nodes},
                       {"sizes", kernel.sizes},
                       {"device", tcrt_device_name(kernel.onGpu ? TCRT_DEVICE_CUDA : TCRT_DEVICE_CPU)},
                       {"weight_bytes", kernel.weightBytes},
                       {"inputs", toJson(kernel.inputs)},
                       {"outputs", toJson(kernel.outputs)},
                       {"schedules", schedules},
                       {"variants", variants},
                       {"offset", kernel.offset},
                       {"bytes", kernel.bytes}});
  }
  const Json json = {
      {"model", index.model}, {"machines", index.machines}, {"generators", index.generators}, {"kernels", kernels}};
  return json.dump(1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

std::optional<TuneIndex> tc::measure::parseTuneIndex(std::string_view text, uint64_t limit, std::string &why) {
  const Json json = parseJson(text.data(), text.size());
  IndexReader reader(limit);
  TuneIndex index;
  index.model = reader.text(json, "model");
  for (const Json &machine : reader.list(json, "machines", 0))
    index.machines.push_back(reader.element(machine, "machines"));
  index.generators = int64_t(reader.number(json, "generators", INT64_MAX));
  for (const Json &kernel : reader.list(json, "kernels", 0))
    if (reader.isGood())
      index.kernels.push_back(reader.kernel(kernel));
  if (reader.isGood())
    return index;
  why = json.is_object() ? "its index has no proper \"" + reader.getLacking() + "\"" : "its index is no JSON";
  return std::nullopt;
}

bool tc::measure::isTuneFile(const std::string &path) {
  int fd;
  uint64_t bytes;
  char magic[8];
  if (tcrt_file_open(path.c_str(), UINT64_MAX, nullptr, &fd, &bytes) != TCRT_OK)
    return false;
  const bool is = bytes >= sizeof magic && tcrt_file_read(fd, path.c_str(), 0, magic, sizeof magic) == TCRT_OK &&
                  std::memcmp(magic, kMagic, sizeof magic) == 0;
  ::close(fd);
  return is;
}

struct TuneWriter::Impl {
  /// Up to a multiple of `alignment`, with zeros.
  tcrt_status_t pad(uint64_t alignment) {
    static const char zeros[TCRT_SECTION_ALIGN] = {};
    const uint64_t more = (alignment - bytes % alignment) % alignment;
    bytes += more;
    return tcrt_output_write(&output, zeros, more);
  }
  tcrt_output_t output = {-1, nullptr, nullptr, nullptr};
  std::optional<TemporaryPath> named;
  std::string path;
  uint64_t bytes = 0;
  TuneIndex index;
};

TuneWriter::TuneWriter() : impl(std::make_unique<Impl>()) {}
TuneWriter::~TuneWriter() { tcrt_output_drop(&impl->output); }
size_t TuneWriter::countKernels() const { return impl->index.kernels.size(); }
uint64_t TuneWriter::getBytes() const { return impl->bytes; }
size_t TuneWriter::countSchedules() const {
  size_t count = 0;
  for (const TuneKernel &kernel : impl->index.kernels)
    count += kernel.schedules.size();
  return count;
}

std::string TuneWriter::open(const std::string &path) {
  impl->path = path;
  if (tcrt_output_open(path.c_str(), &impl->output) != TCRT_OK)
    return tcrt_last_error();
  if (impl->output.temporary)
    impl->named.emplace(impl->output.temporary);
  impl->bytes = sizeof(Header);
  const Header none = {};
  return tcrt_output_write(&impl->output, &none, sizeof none) == TCRT_OK ? "" : tcrt_last_error();
}

std::string TuneWriter::add(TuneKernel kernel, std::string_view artifact) {
  if (impl->pad(TCRT_SECTION_ALIGN) != TCRT_OK ||
      tcrt_output_write(&impl->output, artifact.data(), artifact.size()) != TCRT_OK)
    return tcrt_last_error();
  kernel.offset = impl->bytes;
  kernel.bytes = artifact.size();
  impl->bytes += artifact.size();
  impl->index.kernels.push_back(std::move(kernel));
  return "";
}

std::string TuneWriter::finish(TuneIndex index) {
  std::swap(index.kernels, impl->index.kernels);
  impl->index = std::move(index);
  const std::string text = printTuneIndex(impl->index);
  Header header = {};
  std::memcpy(header.magic, kMagic, sizeof header.magic);
  header.version = kVersion;
  header.indexOffset = impl->bytes;
  header.fileBytes = impl->bytes + text.size();
  tcrt_sha256(text.data(), text.size(), header.indexHash);
  if (tcrt_output_write(&impl->output, text.data(), text.size()) != TCRT_OK)
    return tcrt_last_error();
  impl->bytes = header.fileBytes;
  if (::pwrite(impl->output.fd, &header, sizeof header, 0) != ssize_t(sizeof header))
    return wrong(impl->path, std::string("the file cannot be written: ") + std::strerror(errno));
  return tcrt_output_keep(&impl->output) == TCRT_OK ? "" : tcrt_last_error();
}

struct TuneFile::Mapping {
  Mapping() = default;
  Mapping(const Mapping &) = delete;
  Mapping &operator=(const Mapping &) = delete;
  ~Mapping() {
    if (data)
      ::munmap(data, bytes);
  }
  char *data = nullptr;
  uint64_t bytes = 0;
};

std::optional<TuneFile> TuneFile::open(const std::string &path, std::string &error) {
  TuneFile file;
  file.mapping = std::make_shared<Mapping>();
  int fd;
  uint64_t bytes;
  if (tcrt_file_open(path.c_str(), UINT64_MAX, nullptr, &fd, &bytes) != TCRT_OK) {
    error = tcrt_last_error();
    return std::nullopt;
  }
  if (bytes) {
    void *data = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
      error = wrong(path, std::string("the file cannot be mapped: ") + std::strerror(errno));
    else
      file.mapping->data = static_cast<char *>(data), file.mapping->bytes = bytes;
  }
  ::close(fd);
  if (!error.empty())
    return std::nullopt;
  Header header = {};
  if (bytes >= sizeof header)
    std::memcpy(&header, file.mapping->data, sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof header.magic) != 0) {
    error = wrong(path, "this is no file of tuning candidates; give one that tc-compile --tuning-candidates wrote");
    return std::nullopt;
  }
  if (header.version != kVersion) {
    error = wrong(path, "the file of tuning candidates has version " + std::to_string(header.version) +
                            ", and this tc reads version " + std::to_string(kVersion) +
                            "; write it anew, with the tc-compile of this tc-run");
    return std::nullopt;
  }
  std::string why;
  uint8_t hash[32];
  if (header.fileBytes != bytes)
    why = "it has " + std::to_string(bytes) + " bytes instead of " + std::to_string(header.fileBytes);
  else if (header.indexOffset < sizeof header || header.indexOffset > bytes)
    why = "its index lies outside";
  else
    tcrt_sha256(file.mapping->data + header.indexOffset, bytes - header.indexOffset, hash);
  if (why.empty() && std::memcmp(hash, header.indexHash, sizeof hash) != 0)
    why = "its index has another hash";
  if (why.empty()) {
    const std::string_view text(file.mapping->data + header.indexOffset, bytes - header.indexOffset);
    if (std::optional<TuneIndex> index = parseTuneIndex(text, header.indexOffset, why)) {
      file.index = std::move(*index);
      return file;
    }
  }
  error = wrong(path, "the file of tuning candidates is damaged: " + why +
                          "; write it anew by tc-compile --tuning-candidates");
  return std::nullopt;
}

uint64_t TuneFile::getBytes() const { return mapping->bytes; }

std::string_view TuneFile::getArtifact(const TuneKernel &kernel) const {
  return {mapping->data + kernel.offset, kernel.bytes};
}

std::string TuneFile::describe() const {
  size_t schedules = 0;
  for (const TuneKernel &kernel : index.kernels)
    schedules += kernel.schedules.size();
  std::string text = "tuning candidates of " + index.model + ": " + std::to_string(schedules) + " schedules of " +
                     std::to_string(index.kernels.size()) + (index.kernels.size() == 1 ? " kernel" : " kernels") +
                     " for ";
  for (size_t i = 0; i < index.machines.size(); ++i)
    text += (i ? ", " : "") + index.machines[i];
  return printable(text);
}
