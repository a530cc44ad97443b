/*
 * Container.h - the only parser of artifact files: whatever the bytes are, there comes a sentence, or tables that can
 * be indexed without further checks. The runtime, tc-inspect, the writer's last check and the fuzzers go through it.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#ifndef TC_FORMAT_CONTAINER_H
#define TC_FORMAT_CONTAINER_H

#include "tcrt/tcrt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A checked artifact in memory. Pointers point into the file. Everything is in bounds and well-formed once
 * tcrt_container_parse has succeeded, so that users index without checks. */
typedef struct tcrt_container_t {
  const char *name; /* for messages */
  const uint8_t *data;
  uint64_t size_bytes;
  const tcrt_section_t *sections;
  uint32_t section_count;
  const tcrt_section_t *manifest; /* may be NULL */
  const uint8_t *weights;         /* NULL: none, or in a file that is not mapped yet */
  uint64_t weights_size;
  uint64_t initial_end;                    /* of the weights that are defaults or initial values */
  const tcrt_weights_file_t *weights_file; /* NULL: weights are in this file */
  const tcrt_signature_t *signature;
  const tcrt_sig_value_t *inputs, *outputs;
  const tcrt_sig_dim_t *dims;
  const tcrt_sig_symbol_t *symbols;
  const uint8_t *variants; /* see tcrt_container_variant */
  const tcrt_sig_kernel_t *kernels;
  const tcrt_sig_device_kernel_t *device_kernels;
  const tcrt_sig_name_t *host_functions;
  uint32_t host_function_count;
  const tcrt_sig_function_t *functions; /* NULL: ABI 1, see tcrt_container_function */
  uint32_t function_count;
  const tcrt_sig_state_t *states;
  uint32_t state_count;
  const tcrt_sig_entry_t *entries;
  const tcrt_sig_entry_size_t *entry_sizes;
  uint32_t entry_count;
  const tcrt_string_table_t *string_table; /* NULL: the program has no constant strings */
  const char *strings;
  uint64_t name_bytes; /* of all names together */
} tcrt_container_t;

enum {
  TCRT_PARSE_HASHES = 1u,    /* check the hashes of manifest, signature and host code */
  TCRT_PARSE_ALL_HASHES = 2u /* of device code and weights, too */
};

/* Checks `data`, which must be aligned to 8 bytes and stay valid as long as the container is used. */
tcrt_status_t tcrt_container_parse(const void *data, uint64_t size_bytes, const char *name, uint32_t flags,
                                   tcrt_container_t *container);
/* A function; that of ABI 1 is made up. Its name is tcrt_container_function_name's. */
tcrt_sig_function_t tcrt_container_function(const tcrt_container_t *container, uint32_t index);
/* Not NUL-terminated. */
const char *tcrt_container_function_name(const tcrt_container_t *container, uint32_t index, uint32_t *length);
/* A variant; what a record of ABI 1 lacks is filled in. */
tcrt_sig_variant_t tcrt_container_variant(const tcrt_container_t *container, uint32_t index);
tcrt_status_t tcrt_container_check_hash(const tcrt_container_t *container, const tcrt_section_t *section);
const char *tcrt_section_kind_name(uint32_t kind);
/* "cpu" for TCRT_DEVICE_CPU; NULL for what is no device. */
const char *tcrt_device_name(uint32_t device);
/* Writes the name of a GPU's architecture, "sm_90a" for 901; cut off where it does not fit. */
void tcrt_arch_name(uint32_t arch, char *text, size_t size);

/* Whether the program holds words for a value: string ids or the handle of an object. */
static inline int tcrt_is_boxed(const tcrt_sig_value_t *value) {
  return value->kind != TCRT_VALUE_TENSOR || value->dtype == TCRT_DTYPE_STRING;
}
/* Writes the names of TCRT_CPU_* features, separated by ", ". */
void tcrt_cpu_feature_names(uint64_t features, char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif /* TC_FORMAT_CONTAINER_H */
