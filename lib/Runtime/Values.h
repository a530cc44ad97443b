/*
 * Values.h - strings, sequences, optionals and maps between the caller, who has trees, and the program, which has
 * words.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#ifndef TCRT_VALUES_H
#define TCRT_VALUES_H

#include "Internal.h"
#include "tc/Functions/Store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* "a tensor", "an optional", ...: of a TCRT_VALUE_*. */
const char *tcrt_kind_name(uint32_t kind);
/* Checks a tree that is given for an input. */
tcrt_status_t tcrt_values_check(const tcrt_context_t *context, uint32_t input, const tcrt_value_t *value);
/* The ids of a tensor of strings. */
tcrt_status_t tcrt_values_intern(tcrt_store_t *store, const tcrt_tensor_t *tensor, int64_t *ids);
/* The handle of a checked tree. */
tcrt_status_t tcrt_values_box(tcrt_store_t *store, const tcrt_value_t *value, int64_t *handle);
void tcrt_values_strings(const tcrt_store_t *store, const int64_t *ids, uint64_t count, tcrt_string_t *strings);
/* The tree behind a handle, in the store's memory. */
tcrt_status_t tcrt_values_unbox(tcrt_store_t *store, int64_t handle, const tcrt_sig_value_t *info, tcrt_value_t *value);

#ifdef __cplusplus
}
#endif

#endif /* TCRT_VALUES_H */
