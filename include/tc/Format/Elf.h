/*
 * Elf.h - maps the freestanding shared objects that artifacts hold; calls nothing in them.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#ifndef TC_FORMAT_ELF_H
#define TC_FORMAT_ELF_H

#include "tcrt/tcrt.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tcrt_elf_image_t {
  uint8_t *base; /* reserved range */
  uint64_t span_bytes;
  const void *entry;
} tcrt_elf_image_t;

/* Checks and maps the shared object at elf[0, size). With fd >= 0 its pages are mapped from that file, in which it
 * starts at file_offset; else they are copied. Calls nothing in it. */
tcrt_status_t tcrt_elf_load(const uint8_t *elf, uint64_t size_bytes, const char *name, const char *variant, int fd,
                            uint64_t file_offset, tcrt_elf_image_t *image);
void tcrt_elf_unload(tcrt_elf_image_t *image);

#ifdef __cplusplus
}
#endif

#endif /* TC_FORMAT_ELF_H */
