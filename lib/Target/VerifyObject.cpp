//===- VerifyObject.cpp - what an object may hold -----------------------------------------------------------------===//
//
// The rules of artifact_abi.h, part 2. The runtime's loader checks them again on every load; here a violation is a
// defect of the compiler, and the sentence names the symbol.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Target/Target.h"

#include "llvm/Object/ELF.h"

using namespace llvm;
using namespace llvm::object;

Error tc::target::verifyObject(StringRef elf) {
  Expected<ELF64LEFile> file = ELF64LEFile::create(elf);
  if (!file)
    return file.takeError();
  const auto &header = file->getHeader();
  if (header.e_type != ELF::ET_DYN || header.e_machine != ELF::EM_X86_64 ||
      header.e_ident[ELF::EI_CLASS] != ELF::ELFCLASS64 || header.e_ident[ELF::EI_DATA] != ELF::ELFDATA2LSB)
    return createStringError("the object is not an x86-64 ELF shared object");
  if (header.e_entry == 0)
    return createStringError("the object has no entry point");
  auto programHeaders = file->program_headers();
  if (!programHeaders)
    return programHeaders.takeError();
  for (const auto &segment : *programHeaders) {
    if (segment.p_type == ELF::PT_TLS)
      return createStringError("the object has thread-local storage");
    if (segment.p_type == ELF::PT_INTERP)
      return createStringError("the object names an interpreter");
    if (segment.p_type == ELF::PT_LOAD && (segment.p_flags & ELF::PF_W) && (segment.p_flags & ELF::PF_X))
      return createStringError("the object has memory that is both writable and executable");
  }
  auto dynamic = file->dynamicEntries();
  if (!dynamic)
    return dynamic.takeError();
  for (const auto &entry : *dynamic) {
    switch (entry.getTag()) {
    case ELF::DT_NEEDED:
      return createStringError("the object needs another library");
    case ELF::DT_INIT:
    case ELF::DT_INIT_ARRAY:
    case ELF::DT_FINI:
    case ELF::DT_FINI_ARRAY:
      return createStringError("the object has constructors");
    case ELF::DT_TEXTREL:
      return createStringError("the object has relocations in its code");
    default:
      break;
    }
  }
  auto sections = file->sections();
  if (!sections)
    return sections.takeError();
  for (const auto &section : *sections) {
    if (section.sh_type == ELF::SHT_RELA && (section.sh_flags & ELF::SHF_ALLOC)) {
      auto relocations = file->relas(section);
      if (!relocations)
        return relocations.takeError();
      for (const auto &relocation : *relocations)
        if (relocation.getType(/*isMips64EL=*/false) != ELF::R_X86_64_RELATIVE)
          return createStringError("the object has a relocation of type %u; only R_X86_64_RELATIVE is allowed",
                                   unsigned(relocation.getType(false)));
    }
    if (section.sh_type == ELF::SHT_REL || section.sh_type == ELF::SHT_RELR || section.sh_type == ELF::SHT_CREL)
      return createStringError("the object has relocations in a form that the runtime does not read");
    if (section.sh_type == ELF::SHT_DYNSYM) {
      auto symbols = file->symbols(&section);
      auto strings = file->getStringTableForSymtab(section, *sections);
      if (!symbols)
        return symbols.takeError();
      if (!strings)
        return strings.takeError();
      for (const auto &symbol : symbols->drop_front(symbols->empty() ? 0 : 1)) {
        auto name = symbol.getName(*strings);
        if (!name)
          return name.takeError();
        if (symbol.st_shndx == ELF::SHN_UNDEF)
          return createStringError("the object uses the undefined symbol \"" + *name + "\"");
      }
    }
  }
  return Error::success();
}
