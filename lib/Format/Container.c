/*
 * Container.c - checks an artifact file before anything else looks at it.
 *
 * Whatever the bytes are, this returns a sentence or a container whose tables can be indexed without further checks.
 * All readers of artifacts go through here: the runtime, tc-inspect, the fuzzer.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#include "Parse.h"

#include "tc/Format/Sha256.h"

#include <string.h>

#define MAX_SECTIONS 4096u

tcrt_status_t tcrt_container_corrupt(const tcrt_container_t *container, const char *what) {
  return tcrt_fail(TCRT_ERROR_INVALID, "%s: error: the artifact is corrupt: %s; copy or compile it again",
                   container->name, what);
}

tcrt_status_t tcrt_container_check_hash(const tcrt_container_t *container, const tcrt_section_t *section) {
  uint8_t digest[32];
  tcrt_sha256(container->data + section->offset, section->size, digest);
  if (memcmp(digest, section->sha256, sizeof digest) == 0)
    return TCRT_OK;
  return tcrt_fail(
      TCRT_ERROR_INVALID,
      "%s: error: the artifact is corrupt: the hash of section %u (%s) does not match; copy or compile it again",
      container->name, (unsigned)(section - container->sections), tcrt_section_kind_name(section->kind));
}

int tcrt_is_arch(uint32_t arch) { return arch >= 100 && arch < 100000 && arch % 10 <= 1; }

static int is_string_table(const uint8_t *data, uint64_t size) {
  const tcrt_string_table_t *table = (const tcrt_string_table_t *)data;
  uint64_t head;
  if (size < sizeof *table || table->count == 0 || table->count > size / 8 || !tcrt_mul(table->count + 2, 8, &head) ||
      head > size || table->offsets[0] != 0 || table->offsets[table->count] != size - head || table->offsets[1] != 0)
    return 0;
  for (uint64_t i = 0; i < table->count; ++i)
    if (table->offsets[i] > table->offsets[i + 1])
      return 0;
  return 1;
}

static tcrt_status_t check_sections(tcrt_container_t *container, uint32_t flags) {
  uint64_t end = 0;
  const tcrt_section_t *signature = NULL;
  int has_weights = 0;
  for (uint32_t i = 0; i < container->section_count; ++i) {
    const tcrt_section_t *section = &container->sections[i];
    if (section->offset % TCRT_SECTION_ALIGN != 0)
      return tcrt_container_corrupt(container, "a section is not aligned");
    if (section->offset < end)
      return tcrt_container_corrupt(container, "sections overlap or are not in order");
    if (!tcrt_in_range(section->offset, section->size, container->size_bytes))
      return tcrt_container_corrupt(container, "a section reaches past the end of the file");
    end = section->offset + section->size;
    switch (section->kind) {
    case TCRT_SECTION_MANIFEST:
      if (container->manifest)
        return tcrt_container_corrupt(container, "there are two manifests");
      container->manifest = section;
      break;
    case TCRT_SECTION_SIGNATURE:
      if (signature)
        return tcrt_container_corrupt(container, "there are two signatures");
      signature = section;
      break;
    case TCRT_SECTION_WEIGHTS:
    case TCRT_SECTION_WEIGHTS_FILE:
      if (has_weights)
        return tcrt_container_corrupt(container, "there are two weights sections");
      has_weights = 1;
      container->weights_size = section->size;
      container->weights = container->data + section->offset;
      if (section->kind == TCRT_SECTION_WEIGHTS)
        break;
      if (section->size != sizeof(tcrt_weights_file_t))
        return tcrt_container_corrupt(container, "what it says about the file with its weights is not valid");
      container->weights_file = (const tcrt_weights_file_t *)(container->data + section->offset);
      container->weights_size = container->weights_file->size;
      container->weights = NULL;
      if (container->weights_size > UINT64_MAX / 2)
        return tcrt_container_corrupt(container, "what it says about the file with its weights is not valid");
      break;
    case TCRT_SECTION_STRINGS:
      if (container->string_table)
        return tcrt_container_corrupt(container, "there are two tables of strings");
      if (!is_string_table(container->data + section->offset, section->size))
        return tcrt_container_corrupt(container, "the table of strings is not valid");
      container->string_table = (const tcrt_string_table_t *)(container->data + section->offset);
      break;
    case TCRT_SECTION_CUBIN:
      if (!tcrt_is_arch(section->arch))
        return tcrt_container_corrupt(container, "device code is for an unknown SM version");
      break;
    case TCRT_SECTION_PTX:
      if (!tcrt_is_arch(section->arch))
        return tcrt_container_corrupt(container, "device code is for an unknown SM version");
      if (section->size == 0 || container->data[end - 1] != 0)
        return tcrt_container_corrupt(container, "PTX does not end with a NUL byte");
      break;
    default:
      break;
    }
  }
  if (!signature)
    return tcrt_container_corrupt(container, "there is no signature");
  if (flags & (TCRT_PARSE_HASHES | TCRT_PARSE_ALL_HASHES)) {
    for (uint32_t i = 0; i < container->section_count; ++i) {
      const tcrt_section_t *section = &container->sections[i];
      int is_cheap = section->kind == TCRT_SECTION_MANIFEST || section->kind == TCRT_SECTION_SIGNATURE ||
                     section->kind == TCRT_SECTION_HOST_ELF || section->kind == TCRT_SECTION_WEIGHTS_FILE ||
                     section->kind == TCRT_SECTION_STRINGS;
      if ((!is_cheap && !(flags & TCRT_PARSE_ALL_HASHES)) || section->kind == TCRT_SECTION_ARTIFACT)
        continue;
      tcrt_status_t status = tcrt_container_check_hash(container, section);
      if (status != TCRT_OK)
        return status;
    }
  }
  container->signature = (const tcrt_signature_t *)(container->data + signature->offset);
  return signature->size >= TCRT_SIGNATURE_SIZE_0_1 && container->signature->size >= TCRT_SIGNATURE_SIZE_0_1 &&
                 container->signature->size <= signature->size
             ? TCRT_OK
             : tcrt_container_corrupt(container, "the signature is too short");
}

tcrt_status_t tcrt_container_parse(const void *data, uint64_t size_bytes, const char *name, uint32_t flags,
                                   tcrt_container_t *container) {
  memset(container, 0, sizeof *container);
  container->name = name;
  container->data = data;
  container->size_bytes = size_bytes;
  const tcrt_file_header_t *header = data;
  if (size_bytes == 0)
    return tcrt_fail(TCRT_ERROR_INVALID, "%s: error: the file is empty; an artifact of tc-compile is expected", name);
  uint64_t magic_size = size_bytes < TCRT_MAGIC_SIZE ? size_bytes : TCRT_MAGIC_SIZE;
  if (memcmp(data, TCRT_MAGIC, magic_size) != 0)
    return tcrt_fail(TCRT_ERROR_INVALID, "%s: error: the file is not an artifact; tc-compile writes one from a model",
                     name);
  if (size_bytes < sizeof *header)
    return tcrt_container_corrupt(container, "the file is cut off");
  if (header->format_version != TCRT_FORMAT_VERSION)
    return tcrt_fail(
        TCRT_ERROR_INVALID,
        "%s: error: the artifact has format version %u; this libtcrt (%s) reads version %u, so compile the "
        "model with the tc of the same release",
        name, header->format_version, tcrt_version(), TCRT_FORMAT_VERSION);
  if (header->file_size != size_bytes)
    return tcrt_fail(
        TCRT_ERROR_INVALID,
        "%s: error: the artifact is corrupt: the file has %llu bytes and should have %llu; copy or compile it "
        "again",
        name, (unsigned long long)size_bytes, (unsigned long long)header->file_size);
  if (header->header_size < sizeof *header || header->flags != 0 || header->reserved != 0)
    return tcrt_container_corrupt(container, "the header is not valid");
  if (header->section_count > MAX_SECTIONS || header->section_record_size != sizeof(tcrt_section_t) ||
      header->table_offset % 8 != 0 || header->table_offset < header->header_size ||
      !tcrt_in_range(header->table_offset, (uint64_t)header->section_count * sizeof(tcrt_section_t), size_bytes))
    return tcrt_container_corrupt(container, "the section table is not valid");
  container->sections = (const tcrt_section_t *)(container->data + header->table_offset);
  container->section_count = header->section_count;
  uint64_t table_end = header->table_offset + (uint64_t)header->section_count * sizeof(tcrt_section_t);
  for (uint32_t i = 0; i < header->section_count; ++i) {
    const tcrt_section_t *section = &container->sections[i];
    /* Sections may not cover the header or the table. */
    if (section->size && section->offset < table_end &&
        (section->offset < sizeof *header || section->offset + section->size > header->table_offset))
      return tcrt_container_corrupt(container, "a section covers the section table");
  }
  uint8_t digest[32];
  tcrt_sha256(container->sections, (uint64_t)header->section_count * sizeof(tcrt_section_t), digest);
  if (memcmp(digest, header->table_sha256, sizeof digest) != 0)
    return tcrt_container_corrupt(container, "the hash of the section table does not match");
  tcrt_status_t status = check_sections(container, flags);
  if (status != TCRT_OK)
    return status;
  for (uint32_t i = 0; i < container->section_count; ++i)
    if (container->sections[i].kind == TCRT_SECTION_SIGNATURE)
      return tcrt_signature_check(container, container->sections[i].size);
  return tcrt_container_corrupt(container, "there is no signature");
}
