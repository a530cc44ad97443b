/*
 * Container.c - checks an artifact file before anything else looks at it.
 *
 * Whatever the bytes are, this returns a sentence or a container whose tables can be indexed without further checks.
 * All readers of artifacts go through here: the runtime, tc-inspect, the fuzzer.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#include "Store.h"

#include <string.h>

#define MAX_SECTIONS 4096u
#define MAX_RECORDS (1u << 24)

const char *tcrt_section_kind_name(uint32_t kind) {
  static const char *const names[] = {"unknown", "manifest", "signature",    "host code", "cubin",
                                      "PTX",     "weights",  "weights file", "artifact",  "strings"};
  return kind < sizeof names / sizeof names[0] ? names[kind] : names[0];
}

static tcrt_status_t corrupt(const tcrt_container_t *container, const char *what) {
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

/* Ten times the SM version, plus 1 for architecture-specific code. */
static int is_arch(uint32_t arch) { return arch >= 100 && arch < 100000 && arch % 10 <= 1; }

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
      return corrupt(container, "a section is not aligned");
    if (section->offset < end)
      return corrupt(container, "sections overlap or are not in order");
    if (!tcrt_in_range(section->offset, section->size, container->size_bytes))
      return corrupt(container, "a section reaches past the end of the file");
    end = section->offset + section->size;
    switch (section->kind) {
    case TCRT_SECTION_MANIFEST:
      if (container->manifest)
        return corrupt(container, "there are two manifests");
      container->manifest = section;
      break;
    case TCRT_SECTION_SIGNATURE:
      if (signature)
        return corrupt(container, "there are two signatures");
      signature = section;
      break;
    case TCRT_SECTION_WEIGHTS:
    case TCRT_SECTION_WEIGHTS_FILE:
      if (has_weights)
        return corrupt(container, "there are two weights sections");
      has_weights = 1;
      container->weights_size = section->size;
      container->weights = container->data + section->offset;
      if (section->kind == TCRT_SECTION_WEIGHTS)
        break;
      if (section->size != sizeof(tcrt_weights_file_t))
        return corrupt(container, "what it says about the file with its weights is not valid");
      container->weights_file = (const tcrt_weights_file_t *)(container->data + section->offset);
      container->weights_size = container->weights_file->size;
      container->weights = NULL;
      if (container->weights_size > UINT64_MAX / 2)
        return corrupt(container, "what it says about the file with its weights is not valid");
      break;
    case TCRT_SECTION_STRINGS:
      if (container->string_table)
        return corrupt(container, "there are two tables of strings");
      if (!is_string_table(container->data + section->offset, section->size))
        return corrupt(container, "the table of strings is not valid");
      container->string_table = (const tcrt_string_table_t *)(container->data + section->offset);
      break;
    case TCRT_SECTION_CUBIN:
      if (!is_arch(section->arch))
        return corrupt(container, "device code is for an unknown SM version");
      break;
    case TCRT_SECTION_PTX:
      if (!is_arch(section->arch))
        return corrupt(container, "device code is for an unknown SM version");
      if (section->size == 0 || container->data[end - 1] != 0)
        return corrupt(container, "PTX does not end with a NUL byte");
      break;
    default:
      break;
    }
  }
  if (!signature)
    return corrupt(container, "there is no signature");
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
             : corrupt(container, "the signature is too short");
}

/* Checks one table of the signature and sets *table to it. */
static int find_table(const tcrt_container_t *container, uint64_t section_size, uint64_t offset, uint32_t count,
                      size_t record_size, const void **table) {
  if (count > MAX_RECORDS || offset % 8 != 0 || !tcrt_in_range(offset, (uint64_t)count * record_size, section_size))
    return 0;
  *table = (const uint8_t *)container->signature + offset;
  return 1;
}

/* Valid UTF-8 (RFC 3629) without NUL, so that names can be C strings. */
static int is_text(const char *text, uint32_t length) {
  const uint8_t *s = (const uint8_t *)text;
  for (uint32_t i = 0; i < length;) {
    uint8_t c = s[i];
    if (c == 0)
      return 0;
    if (c < 0x80) {
      ++i;
      continue;
    }
    uint32_t more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
    if (c < 0xc2 || c > 0xf4 || more >= length - i)
      return 0;
    uint32_t code = c & (0x3fu >> more);
    for (uint32_t j = 1; j <= more; ++j) {
      if ((s[i + j] & 0xc0) != 0x80)
        return 0;
      code = code << 6 | (s[i + j] & 0x3f);
    }
    if ((more == 2 && (code < 0x800 || (code >= 0xd800 && code < 0xe000))) ||
        (more == 3 && (code < 0x10000 || code > 0x10ffff)))
      return 0;
    i += more + 1;
  }
  return 1;
}

static int is_name(const tcrt_container_t *container, tcrt_sig_name_t name) {
  return name.length < 1u << 20 && tcrt_in_range(name.offset, name.length, container->signature->string_size) &&
         is_text(container->strings + name.offset, name.length);
}

tcrt_sig_function_t tcrt_container_function(const tcrt_container_t *container, uint32_t index) {
  if (container->functions)
    return container->functions[index];
  const tcrt_signature_t *s = container->signature;
  tcrt_sig_function_t function = {.input_count = s->input_count,
                                  .output_count = s->output_count,
                                  .symbol_count = s->symbol_count,
                                  .kernel_count = s->kernel_count};
  return function;
}

const char *tcrt_container_function_name(const tcrt_container_t *container, uint32_t index, uint32_t *length) {
  static const char only[] = "main";
  *length = container->functions ? container->functions[index].name.length : sizeof only - 1;
  return container->functions ? container->strings + container->functions[index].name.offset : only;
}

static uint32_t variant_size(const tcrt_container_t *container) {
  return container->functions ? sizeof(tcrt_sig_variant_t) : TCRT_SIG_VARIANT_SIZE_ABI_1;
}

tcrt_sig_variant_t tcrt_container_variant(const tcrt_container_t *container, uint32_t index) {
  tcrt_sig_variant_t variant = {.device_code_count = container->section_count,
                                .device_kernel_count = container->signature->device_kernel_count};
  memcpy(&variant, container->variants + (size_t)index * variant_size(container), variant_size(container));
  return variant;
}

/* Notes that the weights up to `end` are defaults or initial values. */
static void extend(tcrt_container_t *container, uint64_t end) {
  if (container->initial_end < end)
    container->initial_end = end;
}

static tcrt_status_t check_value(tcrt_container_t *container, const tcrt_sig_value_t *value, int is_input,
                                 uint32_t symbol_count) {
  const tcrt_signature_t *signature = container->signature;
  if (!is_name(container, value->name))
    return corrupt(container, "the name of an input or output is not valid");
  if (value->kind > TCRT_VALUE_MAP || value->dtype == TCRT_DTYPE_INVALID || value->dtype > TCRT_DTYPE_F6E3M2 ||
      (value->kind == TCRT_VALUE_TENSOR && value->inner != 0) || (value->kind != TCRT_VALUE_TENSOR && value->rank != 0))
    return corrupt(container, "the type of an input or output is not known");
  if (value->rank > TCRT_MAX_RANK || !tcrt_in_range(value->first_dim, value->rank, signature->dim_count))
    return corrupt(container, "the rank of an input or output is not valid");
  if (value->flags & ~(TCRT_VALUE_FLAG_UNUSED | TCRT_VALUE_FLAG_DEFAULT))
    return corrupt(container, "an input or output has unknown flags");
  int64_t dims[TCRT_MAX_RANK];
  int is_static = 1;
  for (uint32_t i = 0; i < value->rank; ++i) {
    const tcrt_sig_dim_t *dim = &container->dims[value->first_dim + i];
    if (dim->kind == TCRT_DIM_STATIC   ? dim->value < 0
        : dim->kind == TCRT_DIM_SYMBOL ? dim->symbol >= symbol_count
                                       : dim->kind != TCRT_DIM_EXPR)
      return corrupt(container, "a dim of an input or output is not valid");
    is_static &= dim->kind == TCRT_DIM_STATIC;
    dims[i] = dim->value;
  }
  uint64_t size_bytes = 0;
  tcrt_dtype_t word = tcrt_is_boxed(value) ? TCRT_DTYPE_I64 : (tcrt_dtype_t)value->dtype;
  if (is_static && !tcrt_tensor_size(word, value->rank, dims, &size_bytes))
    return corrupt(container, "the size of an input or output overflows");
  if (value->flags & TCRT_VALUE_FLAG_DEFAULT) {
    if (!is_input || !is_static || value->default_offset % TCRT_DATA_ALIGN != 0 ||
        !tcrt_in_range(value->default_offset, size_bytes, container->weights_size))
      return corrupt(container, "the default value of an input is not valid");
    extend(container, value->default_offset + size_bytes);
  }
  return TCRT_OK;
}

/* The functions' records follow each other and cover the tables. */
static tcrt_status_t check_functions(tcrt_container_t *container) {
  const tcrt_signature_t *s = container->signature;
  uint64_t inputs = 0, outputs = 0, symbols = 0, kernels = 0;
  if (container->function_count == 0)
    return corrupt(container, "there is no function");
  for (uint32_t i = 0; i < container->function_count; ++i) {
    tcrt_sig_function_t function = tcrt_container_function(container, i);
    if (function.first_input != inputs || function.first_output != outputs || function.first_symbol != symbols ||
        function.first_kernel != kernels)
      return corrupt(container, "the tables of a function are not valid");
    inputs += function.input_count;
    outputs += function.output_count;
    symbols += function.symbol_count;
    kernels += function.kernel_count;
    if (inputs > s->input_count || outputs > s->output_count || symbols > s->symbol_count || kernels > s->kernel_count)
      return corrupt(container, "the tables of a function are not valid");
    if (container->functions && (!is_name(container, function.name) || function.name.length == 0))
      return corrupt(container, "the name of a function is not valid");
    for (uint32_t j = 0; j < function.input_count; ++j) {
      tcrt_status_t status =
          check_value(container, &container->inputs[function.first_input + j], 1, function.symbol_count);
      if (status != TCRT_OK)
        return status;
    }
    for (uint32_t j = 0; j < function.output_count; ++j) {
      tcrt_status_t status =
          check_value(container, &container->outputs[function.first_output + j], 0, function.symbol_count);
      if (status != TCRT_OK)
        return status;
    }
  }
  if (inputs != s->input_count || outputs != s->output_count || symbols != s->symbol_count ||
      kernels != s->kernel_count)
    return corrupt(container, "the tables of a function are not valid");
  return TCRT_OK;
}

static tcrt_status_t check_states(tcrt_container_t *container) {
  for (uint32_t i = 0; i < container->state_count; ++i) {
    const tcrt_sig_state_t *state = &container->states[i];
    if (!is_name(container, state->name) || state->name.length == 0)
      return corrupt(container, "the name of a state is not valid");
    if (tcrt_dtype_bits((tcrt_dtype_t)state->dtype) == 0 || (state->flags & ~TCRT_STATE_FLAG_INITIAL))
      return corrupt(container, "the type of a state is not known");
    if (state->rank > TCRT_MAX_RANK || !tcrt_in_range(state->first_dim, state->rank, container->signature->dim_count))
      return corrupt(container, "the rank of a state is not valid");
    int64_t dims[TCRT_MAX_RANK];
    for (uint32_t d = 0; d < state->rank; ++d) {
      if (container->dims[state->first_dim + d].kind != TCRT_DIM_STATIC)
        return corrupt(container, "a dim of a state is not valid");
      dims[d] = container->dims[state->first_dim + d].value;
    }
    uint64_t size_bytes;
    if (!tcrt_tensor_size((tcrt_dtype_t)state->dtype, state->rank, dims, &size_bytes))
      return corrupt(container, "the size of a state is not valid");
    if ((state->flags & TCRT_STATE_FLAG_INITIAL) &&
        (state->initial_offset % TCRT_DATA_ALIGN != 0 ||
         !tcrt_in_range(state->initial_offset, size_bytes, container->weights_size)))
      return corrupt(container, "the initial value of a state is not valid");
    if (state->flags & TCRT_STATE_FLAG_INITIAL)
      extend(container, state->initial_offset + size_bytes);
  }
  return TCRT_OK;
}

static tcrt_status_t check_variants(const tcrt_container_t *container) {
  const tcrt_signature_t *s = container->signature;
  if (s->variant_count == 0)
    return corrupt(container, "there is no code");
  for (uint32_t i = 0; i < s->variant_count; ++i) {
    const tcrt_sig_variant_t variant = tcrt_container_variant(container, i);
    if (!is_name(container, variant.name) || variant.name.length == 0 || variant.device > TCRT_DEVICE_CUDA)
      return corrupt(container, "a variant is not valid");
    if (variant.section >= container->section_count ||
        container->sections[variant.section].kind != TCRT_SECTION_HOST_ELF)
      return corrupt(container, "a variant has no code");
    if (variant.weights_size > container->weights_size || variant.weights_size < container->initial_end)
      return corrupt(container, "a variant does not fit the weights");
    if ((variant.arch && (variant.device != TCRT_DEVICE_CUDA || !is_arch(variant.arch))) ||
        !tcrt_in_range(variant.first_device_code, variant.device_code_count, container->section_count) ||
        !tcrt_in_range(variant.first_device_kernel, variant.device_kernel_count, s->device_kernel_count))
      return corrupt(container, "the device code of a variant is not valid");
  }
  return TCRT_OK;
}

/* Finds the tables of the signature, of either ABI. */
static tcrt_status_t find_tables(tcrt_container_t *container, uint64_t section_size) {
  const tcrt_signature_t *s = container->signature;
  const void *strings;
  if (s->abi_version < TCRT_ABI_VERSION_OLDEST || s->abi_version > TCRT_ABI_VERSION)
    return tcrt_fail(
        TCRT_ERROR_INVALID,
        "%s: error: the artifact's code has ABI version %u; this libtcrt (%s) runs versions %u to %u, so compile the "
        "model with the tc of the same release",
        container->name, s->abi_version, tcrt_version(), TCRT_ABI_VERSION_OLDEST, TCRT_ABI_VERSION);
  int is_abi_1 = s->abi_version == 1;
  if (!is_abi_1 && s->size < sizeof *s)
    return corrupt(container, "the signature is too short");
  if (!find_table(container, section_size, s->string_offset, s->string_size, 1, &strings) ||
      !find_table(container, section_size, s->input_offset, s->input_count, sizeof(tcrt_sig_value_t),
                  (const void **)&container->inputs) ||
      !find_table(container, section_size, s->output_offset, s->output_count, sizeof(tcrt_sig_value_t),
                  (const void **)&container->outputs) ||
      !find_table(container, section_size, s->dim_offset, s->dim_count, sizeof(tcrt_sig_dim_t),
                  (const void **)&container->dims) ||
      !find_table(container, section_size, s->symbol_offset, s->symbol_count, sizeof(tcrt_sig_symbol_t),
                  (const void **)&container->symbols) ||
      !find_table(container, section_size, s->variant_offset, s->variant_count,
                  is_abi_1 ? TCRT_SIG_VARIANT_SIZE_ABI_1 : sizeof(tcrt_sig_variant_t),
                  (const void **)&container->variants) ||
      !find_table(container, section_size, s->kernel_offset, s->kernel_count, sizeof(tcrt_sig_kernel_t),
                  (const void **)&container->kernels) ||
      !find_table(container, section_size, s->device_kernel_offset, s->device_kernel_count,
                  sizeof(tcrt_sig_device_kernel_t), (const void **)&container->device_kernels))
    return corrupt(container, "a table of the signature reaches past its end");
  container->strings = strings;
  if (s->size >= TCRT_SIGNATURE_SIZE_ABI_1) {
    container->host_function_count = s->host_function_count;
    if (!find_table(container, section_size, s->host_function_offset, s->host_function_count, sizeof(tcrt_sig_name_t),
                    (const void **)&container->host_functions))
      return corrupt(container, "a table of the signature reaches past its end");
  }
  container->function_count = 1;
  if (is_abi_1)
    return TCRT_OK;
  container->function_count = s->function_count;
  container->state_count = s->state_count;
  if (!find_table(container, section_size, s->function_offset, s->function_count, sizeof(tcrt_sig_function_t),
                  (const void **)&container->functions) ||
      !find_table(container, section_size, s->state_offset, s->state_count, sizeof(tcrt_sig_state_t),
                  (const void **)&container->states))
    return corrupt(container, "a table of the signature reaches past its end");
  return TCRT_OK;
}

static tcrt_status_t check_signature(tcrt_container_t *container, uint64_t section_size) {
  const tcrt_signature_t *s = container->signature;
  tcrt_status_t status = find_tables(container, section_size);
  if (status != TCRT_OK)
    return status;
  for (uint32_t i = 0; i < container->host_function_count; ++i)
    if (!is_name(container, container->host_functions[i]))
      return corrupt(container, "the name of a host function is not valid");
  for (uint32_t i = 0; i < s->symbol_count; ++i) {
    const tcrt_sig_symbol_t *symbol = &container->symbols[i];
    if (!is_name(container, symbol->name) || symbol->min < 0 || symbol->max < symbol->min || symbol->divisor < 1)
      return corrupt(container, "a symbolic size is not valid");
  }
  status = check_functions(container);
  if (status == TCRT_OK)
    status = check_states(container);
  if (status == TCRT_OK)
    status = check_variants(container);
  if (status != TCRT_OK)
    return status;
  for (uint32_t i = 0; i < s->kernel_count; ++i)
    if (!is_name(container, container->kernels[i].name) || !is_name(container, container->kernels[i].nodes))
      return corrupt(container, "the name of a kernel is not valid");
  for (uint32_t i = 0; i < s->device_kernel_count; ++i)
    if (!is_name(container, container->device_kernels[i].name))
      return corrupt(container, "the name of a device kernel is not valid");
  return TCRT_OK;
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
    return tcrt_fail(TCRT_ERROR_INVALID,
                     "%s: error: the file is not an artifact; a file written by tc-compile is expected", name);
  if (size_bytes < sizeof *header)
    return corrupt(container, "the file is cut off");
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
    return corrupt(container, "the header is not valid");
  if (header->section_count > MAX_SECTIONS || header->section_record_size != sizeof(tcrt_section_t) ||
      header->table_offset % 8 != 0 || header->table_offset < header->header_size ||
      !tcrt_in_range(header->table_offset, (uint64_t)header->section_count * sizeof(tcrt_section_t), size_bytes))
    return corrupt(container, "the section table is not valid");
  container->sections = (const tcrt_section_t *)(container->data + header->table_offset);
  container->section_count = header->section_count;
  uint64_t table_end = header->table_offset + (uint64_t)header->section_count * sizeof(tcrt_section_t);
  for (uint32_t i = 0; i < header->section_count; ++i) {
    const tcrt_section_t *section = &container->sections[i];
    /* Sections may not cover the header or the table. */
    if (section->size && section->offset < table_end &&
        (section->offset < sizeof *header || section->offset + section->size > header->table_offset))
      return corrupt(container, "a section covers the section table");
  }
  uint8_t digest[32];
  tcrt_sha256(container->sections, (uint64_t)header->section_count * sizeof(tcrt_section_t), digest);
  if (memcmp(digest, header->table_sha256, sizeof digest) != 0)
    return corrupt(container, "the hash of the section table does not match");
  tcrt_status_t status = check_sections(container, flags);
  if (status != TCRT_OK)
    return status;
  for (uint32_t i = 0; i < container->section_count; ++i)
    if (container->sections[i].kind == TCRT_SECTION_SIGNATURE)
      return check_signature(container, container->sections[i].size);
  return corrupt(container, "there is no signature");
}
