//===- Reader.cpp - Reads artifact files for tools ----------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#include "tc/Artifact/Reader.h"
#include "tc/Format/Container.h"
#include "tc/Format/Error.h"
#include "tc/Format/File.h"

#include "llvm/Object/ELF.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

#include <unistd.h>

using namespace tc::artifact;

struct Reader::Impl {
  std::string path;
  std::unique_ptr<llvm::MemoryBuffer> buffer; ///< none of a part
  tcrt_container_t container = {};
  std::vector<tcrt_sig_function_t> functions;
  std::vector<tcrt_sig_variant_t> variants;

  llvm::Error parse(llvm::StringRef data, bool verifyAll) {
    uint32_t flags = TCRT_PARSE_HASHES | (verifyAll ? uint32_t(TCRT_PARSE_ALL_HASHES) : 0u);
    if (tcrt_container_parse(data.data(), data.size(), path.c_str(), flags, &container) != TCRT_OK)
      return llvm::createStringError(tcrt_last_error());
    for (uint32_t i = 0; i < container.function_count; ++i)
      functions.push_back(tcrt_container_function(&container, i));
    for (uint32_t i = 0; i < container.signature->variant_count; ++i)
      variants.push_back(tcrt_container_variant(&container, i));
    return llvm::Error::success();
  }
};

Reader::Reader(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
Reader::~Reader() = default;

llvm::Expected<std::unique_ptr<Reader>> Reader::open(llvm::StringRef path, bool verifyAll) {
  auto impl = std::make_unique<Impl>();
  impl->path = path.str();
  int file;
  uint64_t size;
  if (tcrt_file_open(impl->path.c_str(), UINT64_MAX, nullptr, &file, &size) != TCRT_OK)
    return llvm::createStringError(tcrt_last_error());
  auto buffer = llvm::MemoryBuffer::getOpenFile(llvm::sys::fs::convertFDToNativeFile(file), path, size,
                                                /*RequiresNullTerminator=*/false);
  ::close(file);
  if (!buffer)
    return llvm::createStringError(buffer.getError(), "%s: error: the file cannot be read: %s", impl->path.c_str(),
                                   buffer.getError().message().c_str());
  impl->buffer = std::move(*buffer);
  if (llvm::Error error = impl->parse(impl->buffer->getBuffer(), verifyAll))
    return std::move(error);
  return std::unique_ptr<Reader>(new Reader(std::move(impl)));
}

llvm::Expected<std::unique_ptr<Reader>> Reader::openPart(const tcrt_section_t &section, bool verifyAll) const {
  auto part = std::make_unique<Impl>();
  part->path = impl->path;
  if (llvm::Error error = part->parse(sectionBytes(section), verifyAll))
    return std::move(error);
  return std::unique_ptr<Reader>(new Reader(std::move(part)));
}

llvm::StringRef Reader::path() const { return impl->path; }
uint64_t Reader::fileSize() const { return impl->container.size_bytes; }

llvm::StringRef Reader::manifest() const {
  return impl->container.manifest ? sectionBytes(*impl->container.manifest) : llvm::StringRef();
}

llvm::ArrayRef<tcrt_section_t> Reader::sections() const {
  return {impl->container.sections, impl->container.section_count};
}

llvm::StringRef Reader::sectionBytes(const tcrt_section_t &section) const {
  return {reinterpret_cast<const char *>(impl->container.data) + section.offset, size_t(section.size)};
}

uint32_t Reader::abiVersion() const { return impl->container.signature->abi_version; }

llvm::ArrayRef<tcrt_sig_function_t> Reader::functions() const { return impl->functions; }

llvm::StringRef Reader::functionName(size_t index) const {
  uint32_t length;
  const char *name = tcrt_container_function_name(&impl->container, uint32_t(index), &length);
  return {name, length};
}

llvm::ArrayRef<tcrt_sig_value_t> Reader::inputs(const tcrt_sig_function_t &function) const {
  return {impl->container.inputs + function.first_input, function.input_count};
}
llvm::ArrayRef<tcrt_sig_value_t> Reader::outputs(const tcrt_sig_function_t &function) const {
  return {impl->container.outputs + function.first_output, function.output_count};
}
llvm::ArrayRef<tcrt_sig_symbol_t> Reader::symbols(const tcrt_sig_function_t &function) const {
  return {impl->container.symbols + function.first_symbol, function.symbol_count};
}
llvm::ArrayRef<tcrt_sig_entry_t> Reader::entries(size_t index) const {
  return llvm::ArrayRef<tcrt_sig_entry_t>(impl->container.entries, impl->container.entry_count)
      .drop_while([&](const tcrt_sig_entry_t &entry) { return entry.function < index; })
      .take_while([&](const tcrt_sig_entry_t &entry) { return entry.function == index; });
}
llvm::ArrayRef<tcrt_sig_entry_size_t> Reader::sizes(const tcrt_sig_entry_t &entry) const {
  return {impl->container.entry_sizes + entry.first_size, entry.size_count};
}
llvm::ArrayRef<tcrt_sig_state_t> Reader::states() const {
  return {impl->container.states, impl->container.state_count};
}
llvm::ArrayRef<tcrt_sig_variant_t> Reader::variants() const { return impl->variants; }
llvm::ArrayRef<tcrt_sig_kernel_t> Reader::kernels() const {
  return {impl->container.kernels, impl->container.signature->kernel_count};
}
llvm::ArrayRef<tcrt_sig_device_kernel_t> Reader::deviceKernels(const tcrt_sig_variant_t &variant) const {
  return {impl->container.device_kernels + variant.first_device_kernel, variant.device_kernel_count};
}

std::vector<std::pair<llvm::StringRef, uint64_t>> Reader::codeFunctions(const tcrt_sig_variant_t &variant) const {
  using File = llvm::object::ELFFile<llvm::object::ELF64LE>;
  // The runtime's loader reads the dynamic symbols only, so that nothing has checked this table.
  auto read = [&]() -> llvm::Expected<std::vector<std::pair<llvm::StringRef, uint64_t>>> {
    std::vector<std::tuple<uint64_t, llvm::StringRef, uint64_t>> found;
    llvm::Expected<File> file = File::create(sectionBytes(sections()[variant.section]));
    if (!file)
      return file.takeError();
    auto sections = file->sections();
    if (!sections)
      return sections.takeError();
    for (const File::Elf_Shdr &section : *sections) {
      if (section.sh_type != llvm::ELF::SHT_SYMTAB)
        continue;
      auto names = file->getStringTableForSymtab(section);
      if (!names)
        return names.takeError();
      auto symbols = file->symbols(&section);
      if (!symbols)
        return symbols.takeError();
      for (const File::Elf_Sym &symbol : *symbols) {
        auto name = symbol.getName(*names);
        if (!name)
          return name.takeError();
        if (symbol.getType() == llvm::ELF::STT_FUNC)
          found.emplace_back(symbol.st_value, *name, symbol.st_size);
      }
    }
    llvm::sort(found);
    std::vector<std::pair<llvm::StringRef, uint64_t>> functions;
    for (auto &[address, name, bytes] : found)
      functions.emplace_back(name, bytes);
    return functions;
  };
  auto functions = read();
  if (functions)
    return *functions;
  llvm::consumeError(functions.takeError());
  return {};
}

llvm::ArrayRef<tcrt_sig_dim_t> Reader::dims(const tcrt_sig_value_t &value) const {
  return {impl->container.dims + value.first_dim, value.rank};
}
llvm::ArrayRef<tcrt_sig_dim_t> Reader::dims(const tcrt_sig_state_t &state) const {
  return {impl->container.dims + state.first_dim, state.rank};
}
llvm::StringRef Reader::name(tcrt_sig_name_t name) const {
  return {impl->container.strings + name.offset, name.length};
}
uint64_t Reader::weightsSize() const { return impl->container.weights_size; }
