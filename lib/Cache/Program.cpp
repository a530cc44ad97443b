//===- Program.cpp - which program this is ------------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Cache/Store.h"

#include <climits>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/stat.h>

using namespace tc::cache;
using llvm::StringRef;

/// The descriptor of the note with the build id; empty: there is none.
static StringRef findBuildId(const dl_phdr_info &file) {
  for (unsigned i = 0; i < file.dlpi_phnum; ++i) {
    const ElfW(Phdr) &segment = file.dlpi_phdr[i];
    if (segment.p_type != PT_NOTE)
      continue;
    StringRef notes(reinterpret_cast<const char *>(file.dlpi_addr + segment.p_vaddr), segment.p_memsz);
    while (notes.size() >= sizeof(ElfW(Nhdr))) {
      ElfW(Nhdr) head;
      std::memcpy(&head, notes.data(), sizeof head);
      const uint64_t align = segment.p_align == 8 ? 8 : 4;
      const uint64_t begin = llvm::alignTo(sizeof head + head.n_namesz, align), end = begin + head.n_descsz;
      if (end > notes.size())
        break;
      if (head.n_type == NT_GNU_BUILD_ID && notes.substr(sizeof head, head.n_namesz) == StringRef("GNU", 4))
        return notes.slice(begin, end);
      notes = notes.drop_front(std::min<uint64_t>(llvm::alignTo(end, align), notes.size()));
    }
  }
  return "";
}

const Key &tc::cache::getProgramKey() {
  static const Key key = [] {
    KeyBuilder builder;
    auto visit = [](dl_phdr_info *file, size_t, void *data) {
      auto &builder = *static_cast<KeyBuilder *>(data);
      // The kernel's own, which every process sees.
      if (const unsigned long kernels = ::getauxval(AT_SYSINFO_EHDR))
        for (unsigned i = 0; i < file->dlpi_phnum; ++i)
          if (file->dlpi_phdr[i].p_type == PT_LOAD && file->dlpi_addr + file->dlpi_phdr[i].p_vaddr == kernels)
            return 0;
      if (StringRef id = findBuildId(*file); !id.empty()) {
        builder.add("build id", id);
        return 0;
      }
      const char *path = file->dlpi_name && *file->dlpi_name ? file->dlpi_name : "/proc/self/exe";
      struct stat info = {};
      char *real = ::realpath(path, nullptr);
      ::stat(path, &info);
      builder.add("file", StringRef(real ? real : path)).add("size", uint64_t(info.st_size));
      builder.add("time", uint64_t(info.st_mtim.tv_sec)).add("ns", uint64_t(info.st_mtim.tv_nsec));
      std::free(real);
      return 0;
    };
    ::dl_iterate_phdr(visit, &builder);
    return builder.finish();
  }();
  return key;
}
