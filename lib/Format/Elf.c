/*
 * Elf.c - maps the freestanding shared objects that artifacts hold (System V ABI, chapters 4 and 5; x86-64 psABI).
 *
 * Only what part 2 of artifact_abi.h allows is accepted: no imports, no constructors, no TLS, only R_X86_64_RELATIVE,
 * no page both writable and executable. Every number in the file is checked before it is used; nothing in the object is
 * called. Relocated data that the linker marks PT_GNU_RELRO becomes read-only.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#define _GNU_SOURCE
#include "tc/Format/Elf.h"
#include "tc/Format/Error.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE UINT64_C(4096)
#define MAX_SEGMENTS 32
#define MAX_SPAN (UINT64_C(1) << 32)

typedef struct loader_t {
  const uint8_t *elf;
  uint64_t size_bytes;
  const char *name, *variant;
  Elf64_Phdr load[MAX_SEGMENTS];
  uint32_t load_count;
  Elf64_Phdr dynamic, relro;
  int has_dynamic, has_relro;
} loader_t;

static tcrt_status_t corrupt(const loader_t *loader, const char *what) {
  return tcrt_fail(TCRT_ERROR_INVALID,
                   "%s: error: the code of variant \"%s\" is not valid: %s; compile the model again", loader->name,
                   loader->variant, what);
}

static uint64_t page_down(uint64_t x) { return x & ~(PAGE - 1); }
static uint64_t page_up(uint64_t x) { return (x + PAGE - 1) & ~(PAGE - 1); }

static tcrt_status_t read_headers(loader_t *loader, Elf64_Ehdr *header) {
  if (loader->size_bytes < sizeof *header)
    return corrupt(loader, "it is too short");
  memcpy(header, loader->elf, sizeof *header);
  if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
      header->e_ident[EI_DATA] != ELFDATA2LSB || header->e_type != ET_DYN || header->e_machine != EM_X86_64 ||
      header->e_version != EV_CURRENT)
    return corrupt(loader, "it is not an x86-64 shared object");
  if (header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phnum > MAX_SEGMENTS ||
      !tcrt_in_range(header->e_phoff, (uint64_t)header->e_phnum * sizeof(Elf64_Phdr), loader->size_bytes))
    return corrupt(loader, "its program headers are out of bounds");
  uint64_t end = 0;
  for (uint32_t i = 0; i < header->e_phnum; ++i) {
    Elf64_Phdr ph;
    memcpy(&ph, loader->elf + header->e_phoff + i * sizeof ph, sizeof ph);
    switch (ph.p_type) {
    case PT_LOAD:
      if (ph.p_memsz == 0)
        break;
      if (ph.p_filesz > ph.p_memsz || !tcrt_in_range(ph.p_offset, ph.p_filesz, loader->size_bytes))
        return corrupt(loader, "a segment is out of bounds");
      if (ph.p_vaddr > MAX_SPAN || ph.p_memsz > MAX_SPAN)
        return corrupt(loader, "a segment is too large");
      if (page_down(ph.p_vaddr) < end)
        return corrupt(loader, "segments share pages or are not in order");
      if ((ph.p_flags & PF_W) && (ph.p_flags & PF_X))
        return corrupt(loader, "a segment is writable and executable");
      if (!(ph.p_flags & PF_R))
        return corrupt(loader, "a segment is not readable");
      end = page_up(ph.p_vaddr + ph.p_memsz);
      loader->load[loader->load_count++] = ph;
      break;
    case PT_DYNAMIC:
      loader->dynamic = ph;
      loader->has_dynamic = 1;
      break;
    case PT_GNU_RELRO:
      loader->relro = ph;
      loader->has_relro = 1;
      break;
    case PT_TLS:
      return corrupt(loader, "it has thread-local data");
    case PT_INTERP:
      return corrupt(loader, "it asks for an interpreter");
    case PT_GNU_STACK:
      if (ph.p_flags & PF_X)
        return corrupt(loader, "it asks for an executable stack");
      break;
    default:
      break;
    }
  }
  return loader->load_count ? TCRT_OK : corrupt(loader, "it has no segments");
}

/* The segment that holds all of [address, address+size), or NULL. */
static const Elf64_Phdr *find_segment(const loader_t *loader, uint64_t address, uint64_t size) {
  for (uint32_t i = 0; i < loader->load_count; ++i) {
    const Elf64_Phdr *ph = &loader->load[i];
    if (address >= ph->p_vaddr && tcrt_in_range(address - ph->p_vaddr, size, ph->p_memsz))
      return ph;
  }
  return NULL;
}

static tcrt_status_t relocate(const loader_t *loader, uint8_t *base, uint64_t span) {
  if (!loader->has_dynamic)
    return TCRT_OK;
  const Elf64_Phdr *dynamic = &loader->dynamic;
  if (!find_segment(loader, dynamic->p_vaddr, dynamic->p_memsz) || dynamic->p_vaddr % 8 != 0)
    return corrupt(loader, "its dynamic section is out of bounds");
  uint64_t rela = 0, rela_size = 0, rela_entry = sizeof(Elf64_Rela);
  for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= dynamic->p_memsz; at += sizeof(Elf64_Dyn)) {
    Elf64_Dyn entry;
    memcpy(&entry, base + dynamic->p_vaddr + at, sizeof entry);
    if (entry.d_tag == DT_NULL)
      break;
    switch (entry.d_tag) {
    case DT_RELA:
      rela = entry.d_un.d_val;
      break;
    case DT_RELASZ:
      rela_size = entry.d_un.d_val;
      break;
    case DT_RELAENT:
      rela_entry = entry.d_un.d_val;
      break;
    case DT_NEEDED:
      return corrupt(loader, "it needs another library");
    case DT_INIT:
    case DT_FINI:
    case DT_INIT_ARRAY:
    case DT_FINI_ARRAY:
    case DT_PREINIT_ARRAY:
      return corrupt(loader, "it has constructors");
    case DT_REL:
    case DT_JMPREL:
    case 35: /* DT_RELRSZ, DT_RELR: newer than the oldest elf.h */
    case 36:
      return corrupt(loader, "it has relocations of an unexpected kind");
    case DT_TEXTREL:
      return corrupt(loader, "it relocates its code");
    default:
      break;
    }
  }
  if (rela_size == 0)
    return TCRT_OK;
  if (rela_entry != sizeof(Elf64_Rela) || rela_size % sizeof(Elf64_Rela) != 0 || !find_segment(loader, rela, rela_size))
    return corrupt(loader, "its relocations are out of bounds");
  for (uint64_t at = 0; at < rela_size; at += sizeof(Elf64_Rela)) {
    Elf64_Rela entry;
    memcpy(&entry, base + rela + at, sizeof entry);
    if (ELF64_R_TYPE(entry.r_info) == R_X86_64_NONE)
      continue;
    if (ELF64_R_TYPE(entry.r_info) != R_X86_64_RELATIVE)
      return corrupt(loader, "it has relocations other than R_X86_64_RELATIVE");
    const Elf64_Phdr *target = find_segment(loader, entry.r_offset, 8);
    if (!target || !(target->p_flags & PF_W))
      return corrupt(loader, "a relocation writes outside of its data");
    if ((uint64_t)entry.r_addend > span)
      return corrupt(loader, "a relocation points outside of it");
    uint64_t value = (uint64_t)(uintptr_t)base + (uint64_t)entry.r_addend;
    memcpy(base + entry.r_offset, &value, 8);
  }
  return TCRT_OK;
}

static int protection(const Elf64_Phdr *ph) {
  return (ph->p_flags & PF_R ? PROT_READ : 0) | (ph->p_flags & PF_W ? PROT_WRITE : 0) |
         (ph->p_flags & PF_X ? PROT_EXEC : 0);
}

/* Puts a segment in place, its pages still writable where they are copies. */
static int map_segment(const loader_t *loader, const Elf64_Phdr *ph, uint8_t *base, int fd, uint64_t file_offset) {
  uint64_t start = page_down(ph->p_vaddr), head = ph->p_vaddr - start;
  uint64_t length = page_up(ph->p_vaddr + ph->p_memsz) - start;
  uint64_t in_file = file_offset + ph->p_offset;
  /* Pages of the file serve as they are when they hold nothing else that the segment must see as zero. */
  if (fd >= 0 && !(ph->p_flags & PF_W) && in_file % PAGE == head && in_file >= head && ph->p_filesz == ph->p_memsz)
    return mmap(base + start, length, protection(ph), MAP_PRIVATE | MAP_FIXED, fd, (off_t)(in_file - head)) !=
           MAP_FAILED;
  if (mprotect(base + start, length, PROT_READ | PROT_WRITE) != 0)
    return 0;
  memcpy(base + ph->p_vaddr, loader->elf + ph->p_offset, ph->p_filesz);
  return 1;
}

tcrt_status_t tcrt_elf_load(const uint8_t *elf, uint64_t size_bytes, const char *name, const char *variant, int fd,
                            uint64_t file_offset, tcrt_elf_image_t *image) {
  memset(image, 0, sizeof *image);
  loader_t loader = {.elf = elf, .size_bytes = size_bytes, .name = name, .variant = variant};
  Elf64_Ehdr header;
  tcrt_status_t status = read_headers(&loader, &header);
  if (status != TCRT_OK)
    return status;
  const Elf64_Phdr *last = &loader.load[loader.load_count - 1];
  uint64_t span = page_up(last->p_vaddr + last->p_memsz);
  if (span > MAX_SPAN)
    return corrupt(&loader, "it is too large");
  const Elf64_Phdr *code = find_segment(&loader, header.e_entry, 1);
  if (!code || !(code->p_flags & PF_X) || header.e_entry - code->p_vaddr >= code->p_filesz)
    return corrupt(&loader, "its entry point is not in its code");
  if (loader.has_relro && !find_segment(&loader, loader.relro.p_vaddr, loader.relro.p_memsz))
    return corrupt(&loader, "its read-only data is out of bounds");
  uint8_t *base = mmap(NULL, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED)
    return tcrt_fail(TCRT_ERROR_MACHINE, "%s: error: no memory for the code (%llu bytes): %s", name,
                     (unsigned long long)span, strerror(errno));
  image->base = base;
  image->span_bytes = span;
  for (uint32_t i = 0; status == TCRT_OK && i < loader.load_count; ++i)
    if (!map_segment(&loader, &loader.load[i], base, fd, file_offset))
      status = tcrt_fail(TCRT_ERROR_MACHINE, "%s: error: the code cannot be mapped: %s", name, strerror(errno));
  if (status == TCRT_OK)
    status = relocate(&loader, base, span);
  for (uint32_t i = 0; status == TCRT_OK && i < loader.load_count; ++i) {
    const Elf64_Phdr *ph = &loader.load[i];
    uint64_t start = page_down(ph->p_vaddr);
    if (mprotect(base + start, page_up(ph->p_vaddr + ph->p_memsz) - start, protection(ph)) != 0)
      status = tcrt_fail(TCRT_ERROR_MACHINE,
                         "%s: error: the code cannot be made executable: %s; the system must allow mapped code", name,
                         strerror(errno));
  }
  if (status == TCRT_OK && loader.has_relro) {
    /* Only whole pages: the rest of the last one may be ordinary data. */
    uint64_t start = page_up(loader.relro.p_vaddr), end = page_down(loader.relro.p_vaddr + loader.relro.p_memsz);
    if (start < end && mprotect(base + start, end - start, PROT_READ) != 0)
      status =
          tcrt_fail(TCRT_ERROR_MACHINE, "%s: error: the code's data cannot be protected: %s", name, strerror(errno));
  }
  if (status != TCRT_OK) {
    tcrt_elf_unload(image);
    return status;
  }
  image->entry = base + header.e_entry;
  return TCRT_OK;
}

void tcrt_elf_unload(tcrt_elf_image_t *image) {
  if (image->base)
    munmap(image->base, image->span_bytes);
  memset(image, 0, sizeof *image);
}
