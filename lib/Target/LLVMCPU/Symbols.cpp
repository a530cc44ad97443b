//===- Symbols.cpp - other names for the symbols of an object -----------------------------------------------------===//
//
// The code of a kernel is generated under a name that says nothing of its place in the model, so that the object of an
// equal kernel can be taken from the cache; it gets its own name here.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Internal.h"

#include "llvm/BinaryFormat/ELF.h"
#include <cstring>

using namespace llvm;

Error tc::target::renameSymbols(std::string &object, const StringMap<std::string> &names) {
  auto damaged = [] { return createStringError("an object is no ELF file of x86-64"); };
  auto fits = [&](uint64_t offset, uint64_t size) { return offset <= object.size() && size <= object.size() - offset; };
  ELF::Elf64_Ehdr header;
  if (!fits(0, sizeof header))
    return damaged();
  std::memcpy(&header, object.data(), sizeof header);
  if (!header.checkMagic() || !fits(header.e_shoff, uint64_t(header.e_shnum) * sizeof(ELF::Elf64_Shdr)))
    return damaged();
  std::vector<ELF::Elf64_Shdr> sections(header.e_shnum);
  std::memcpy(sections.data(), object.data() + header.e_shoff, sections.size() * sizeof sections[0]);
  for (const ELF::Elf64_Shdr &symbols : sections) {
    if (symbols.sh_type != ELF::SHT_SYMTAB)
      continue;
    if (symbols.sh_link >= sections.size() || !fits(symbols.sh_offset, symbols.sh_size))
      return damaged();
    ELF::Elf64_Shdr &strings = sections[symbols.sh_link];
    if (!fits(strings.sh_offset, strings.sh_size))
      return damaged();
    // A longer copy at the end of the file, as names share their ends.
    std::string table = object.substr(strings.sh_offset, strings.sh_size);
    for (uint64_t at = 0; at + sizeof(ELF::Elf64_Sym) <= symbols.sh_size; at += sizeof(ELF::Elf64_Sym)) {
      ELF::Elf64_Sym symbol;
      char *place = object.data() + symbols.sh_offset + at;
      std::memcpy(&symbol, place, sizeof symbol);
      if (symbol.st_name >= strings.sh_size)
        return damaged();
      auto found = names.find(StringRef(table.c_str() + symbol.st_name));
      if (found == names.end())
        continue;
      symbol.st_name = uint32_t(table.size());
      table += found->second + '\0';
      std::memcpy(place, &symbol, sizeof symbol);
    }
    strings.sh_offset = object.size();
    strings.sh_size = table.size();
    object += table;
  }
  std::memcpy(object.data() + header.e_shoff, sections.data(), sections.size() * sizeof sections[0]);
  return Error::success();
}
