/*
 * Signature.c - checks the tables of an artifact's signature, of either ABI, and gives records of both one form.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#include "Parse.h"

#include <string.h>

#define MAX_RECORDS (1u << 24)
#define MAX_NAME (1u << 20)

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

/* Whether a character begins at `offset` of the table of strings, or the table ends there. */
static int is_boundary(const tcrt_container_t *container, uint64_t offset) {
  return offset == container->signature->string_size || (container->strings[offset] & 0xc0) != 0x80;
}

/* Names are parts of the table of strings, which was checked as a whole: so that checking takes time in proportion to
 * the file, however many names share a string. Names that together are longer than the file are no real model's. */
static int is_name(tcrt_container_t *container, tcrt_sig_name_t name) {
  container->name_bytes += name.length;
  return name.length < MAX_NAME && tcrt_in_range(name.offset, name.length, container->signature->string_size) &&
         container->name_bytes <= container->size_bytes && is_boundary(container, name.offset) &&
         is_boundary(container, (uint64_t)name.offset + name.length);
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
    return tcrt_container_corrupt(container, "the name of an input or output is not valid");
  if (value->kind > TCRT_VALUE_MAP || value->dtype == TCRT_DTYPE_INVALID || value->dtype > TCRT_DTYPE_F6E3M2 ||
      (value->kind == TCRT_VALUE_TENSOR && value->inner != 0) || (value->kind != TCRT_VALUE_TENSOR && value->rank != 0))
    return tcrt_container_corrupt(container, "the type of an input or output is not known");
  if (value->rank > TCRT_MAX_RANK || !tcrt_in_range(value->first_dim, value->rank, signature->dim_count))
    return tcrt_container_corrupt(container, "the rank of an input or output is not valid");
  if (value->flags & ~(TCRT_VALUE_FLAG_UNUSED | TCRT_VALUE_FLAG_DEFAULT))
    return tcrt_container_corrupt(container, "an input or output has unknown flags");
  int64_t dims[TCRT_MAX_RANK];
  int is_static = 1;
  for (uint32_t i = 0; i < value->rank; ++i) {
    const tcrt_sig_dim_t *dim = &container->dims[value->first_dim + i];
    if (dim->kind == TCRT_DIM_STATIC   ? dim->value < 0
        : dim->kind == TCRT_DIM_SYMBOL ? dim->symbol >= symbol_count
                                       : dim->kind != TCRT_DIM_EXPR)
      return tcrt_container_corrupt(container, "a dim of an input or output is not valid");
    is_static &= dim->kind == TCRT_DIM_STATIC;
    dims[i] = dim->value;
  }
  uint64_t size_bytes = 0;
  tcrt_dtype_t word = tcrt_is_boxed(value) ? TCRT_DTYPE_I64 : (tcrt_dtype_t)value->dtype;
  if (is_static && !tcrt_tensor_size(word, value->rank, dims, &size_bytes))
    return tcrt_container_corrupt(container, "the size of an input or output overflows");
  if (value->flags & TCRT_VALUE_FLAG_DEFAULT) {
    if (!is_input || !is_static || value->default_offset % TCRT_DATA_ALIGN != 0 ||
        !tcrt_in_range(value->default_offset, size_bytes, container->weights_size))
      return tcrt_container_corrupt(container, "the default value of an input is not valid");
    extend(container, value->default_offset + size_bytes);
  }
  return TCRT_OK;
}

/* The functions' records follow each other and cover the tables. */
static tcrt_status_t check_functions(tcrt_container_t *container) {
  const tcrt_signature_t *s = container->signature;
  uint64_t inputs = 0, outputs = 0, symbols = 0, kernels = 0;
  if (container->function_count == 0)
    return tcrt_container_corrupt(container, "there is no function");
  for (uint32_t i = 0; i < container->function_count; ++i) {
    tcrt_sig_function_t function = tcrt_container_function(container, i);
    if (function.first_input != inputs || function.first_output != outputs || function.first_symbol != symbols ||
        function.first_kernel != kernels)
      return tcrt_container_corrupt(container, "the tables of a function are not valid");
    inputs += function.input_count;
    outputs += function.output_count;
    symbols += function.symbol_count;
    kernels += function.kernel_count;
    if (inputs > s->input_count || outputs > s->output_count || symbols > s->symbol_count || kernels > s->kernel_count)
      return tcrt_container_corrupt(container, "the tables of a function are not valid");
    if (container->functions && (!is_name(container, function.name) || function.name.length == 0))
      return tcrt_container_corrupt(container, "the name of a function is not valid");
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
    return tcrt_container_corrupt(container, "the tables of a function are not valid");
  return TCRT_OK;
}

/* Entries stand function by function, and their sizes follow each other and cover the table. */
static tcrt_status_t check_entries(tcrt_container_t *container) {
  uint64_t sizes = 0;
  for (uint32_t i = 0; i < container->entry_count; ++i) {
    const tcrt_sig_entry_t *entry = &container->entries[i];
    if (entry->function >= container->function_count || (i && entry->function < entry[-1].function) ||
        entry->first_size != sizes || entry->size_count == 0 ||
        !tcrt_in_range(entry->first_size, entry->size_count, container->signature->entry_size_count))
      return tcrt_container_corrupt(container, "an entry of a function is not valid");
    sizes += entry->size_count;
    const uint32_t symbols = tcrt_container_function(container, entry->function).symbol_count;
    for (uint32_t j = 0; j < entry->size_count; ++j)
      if (container->entry_sizes[entry->first_size + j].symbol >= symbols ||
          container->entry_sizes[entry->first_size + j].compare > TCRT_ENTRY_AT_MOST)
        return tcrt_container_corrupt(container, "an entry of a function is not valid");
  }
  if (container->entry_count && sizes != container->signature->entry_size_count)
    return tcrt_container_corrupt(container, "an entry of a function is not valid");
  return TCRT_OK;
}

static tcrt_status_t check_states(tcrt_container_t *container) {
  for (uint32_t i = 0; i < container->state_count; ++i) {
    const tcrt_sig_state_t *state = &container->states[i];
    if (!is_name(container, state->name) || state->name.length == 0)
      return tcrt_container_corrupt(container, "the name of a state is not valid");
    if (tcrt_dtype_bits((tcrt_dtype_t)state->dtype) == 0 || (state->flags & ~TCRT_STATE_FLAG_INITIAL))
      return tcrt_container_corrupt(container, "the type of a state is not known");
    if (state->rank > TCRT_MAX_RANK || !tcrt_in_range(state->first_dim, state->rank, container->signature->dim_count))
      return tcrt_container_corrupt(container, "the rank of a state is not valid");
    int64_t dims[TCRT_MAX_RANK];
    for (uint32_t d = 0; d < state->rank; ++d) {
      if (container->dims[state->first_dim + d].kind != TCRT_DIM_STATIC)
        return tcrt_container_corrupt(container, "a dim of a state is not valid");
      dims[d] = container->dims[state->first_dim + d].value;
    }
    uint64_t size_bytes;
    if (!tcrt_tensor_size((tcrt_dtype_t)state->dtype, state->rank, dims, &size_bytes))
      return tcrt_container_corrupt(container, "the size of a state is not valid");
    if ((state->flags & TCRT_STATE_FLAG_INITIAL) &&
        (state->initial_offset % TCRT_DATA_ALIGN != 0 ||
         !tcrt_in_range(state->initial_offset, size_bytes, container->weights_size)))
      return tcrt_container_corrupt(container, "the initial value of a state is not valid");
    if (state->flags & TCRT_STATE_FLAG_INITIAL)
      extend(container, state->initial_offset + size_bytes);
  }
  return TCRT_OK;
}

static tcrt_status_t check_variants(tcrt_container_t *container) {
  const tcrt_signature_t *s = container->signature;
  if (s->variant_count == 0)
    return tcrt_container_corrupt(container, "there is no code");
  for (uint32_t i = 0; i < s->variant_count; ++i) {
    const tcrt_sig_variant_t variant = tcrt_container_variant(container, i);
    if (!is_name(container, variant.name) || variant.name.length == 0 || variant.device > TCRT_DEVICE_CUDA)
      return tcrt_container_corrupt(container, "a variant is not valid");
    if (variant.section >= container->section_count ||
        container->sections[variant.section].kind != TCRT_SECTION_HOST_ELF)
      return tcrt_container_corrupt(container, "a variant has no code");
    if (variant.weights_size > container->weights_size || variant.weights_size < container->initial_end)
      return tcrt_container_corrupt(container, "a variant does not fit the weights");
    if ((variant.arch && (variant.device != TCRT_DEVICE_CUDA || !tcrt_is_arch(variant.arch))) ||
        !tcrt_in_range(variant.first_device_code, variant.device_code_count, container->section_count) ||
        !tcrt_in_range(variant.first_device_kernel, variant.device_kernel_count, s->device_kernel_count))
      return tcrt_container_corrupt(container, "the device code of a variant is not valid");
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
  if (!is_abi_1 && s->size < TCRT_SIGNATURE_SIZE_0_2)
    return tcrt_container_corrupt(container, "the signature is too short");
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
    return tcrt_container_corrupt(container, "a table of the signature reaches past its end");
  container->strings = strings;
  if (!is_text(container->strings, s->string_size))
    return tcrt_container_corrupt(container, "a name is not text");
  if (s->size >= TCRT_SIGNATURE_SIZE_ABI_1) {
    container->host_function_count = s->host_function_count;
    if (!find_table(container, section_size, s->host_function_offset, s->host_function_count, sizeof(tcrt_sig_name_t),
                    (const void **)&container->host_functions))
      return tcrt_container_corrupt(container, "a table of the signature reaches past its end");
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
    return tcrt_container_corrupt(container, "a table of the signature reaches past its end");
  if (s->size < sizeof *s)
    return TCRT_OK;
  container->entry_count = s->entry_count;
  if (!find_table(container, section_size, s->entry_offset, s->entry_count, sizeof(tcrt_sig_entry_t),
                  (const void **)&container->entries) ||
      !find_table(container, section_size, s->entry_size_offset, s->entry_size_count, sizeof(tcrt_sig_entry_size_t),
                  (const void **)&container->entry_sizes))
    return tcrt_container_corrupt(container, "a table of the signature reaches past its end");
  return TCRT_OK;
}

tcrt_status_t tcrt_signature_check(tcrt_container_t *container, uint64_t section_size) {
  const tcrt_signature_t *s = container->signature;
  tcrt_status_t status = find_tables(container, section_size);
  if (status != TCRT_OK)
    return status;
  for (uint32_t i = 0; i < container->host_function_count; ++i)
    if (!is_name(container, container->host_functions[i]))
      return tcrt_container_corrupt(container, "the name of a host function is not valid");
  for (uint32_t i = 0; i < s->symbol_count; ++i) {
    const tcrt_sig_symbol_t *symbol = &container->symbols[i];
    if (!is_name(container, symbol->name) || symbol->min < 0 || symbol->max < symbol->min || symbol->divisor < 1)
      return tcrt_container_corrupt(container, "a symbolic size is not valid");
  }
  status = check_functions(container);
  if (status == TCRT_OK)
    status = check_entries(container);
  if (status == TCRT_OK)
    status = check_states(container);
  if (status == TCRT_OK)
    status = check_variants(container);
  if (status != TCRT_OK)
    return status;
  for (uint32_t i = 0; i < s->kernel_count; ++i)
    if (!is_name(container, container->kernels[i].name) || !is_name(container, container->kernels[i].nodes))
      return tcrt_container_corrupt(container, "the name of a kernel is not valid");
  for (uint32_t i = 0; i < s->device_kernel_count; ++i)
    if (!is_name(container, container->device_kernels[i].name))
      return tcrt_container_corrupt(container, "the name of a device kernel is not valid");
  return TCRT_OK;
}
