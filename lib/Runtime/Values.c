/*
 * Values.c - strings, sequences, optionals and maps between the caller and the program: trees of tcrt_value_t there,
 * words here.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#include "Values.h"

#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 4

const char *tcrt_kind_name(uint32_t kind) {
  return kind == TCRT_VALUE_TENSOR     ? "a tensor"
         : kind == TCRT_VALUE_SEQUENCE ? "a sequence"
         : kind == TCRT_VALUE_OPTIONAL ? "an optional"
                                       : "a map";
}

/* ---- checks ---- */

static tcrt_status_t refuse(const tcrt_model_t *model, const char *name, const char *what, const char *got,
                            const char *expected) {
  return tcrt_fail(TCRT_ERROR_REFUSED, "%s: error: input \"%s\": %s is %s, expected %s", model->name, name, what, got,
                   expected);
}

/* Checks a tree against what the signature says: `kinds` has a byte for this level and one for each inside. */
static tcrt_status_t check_tree(const tcrt_model_t *model, const char *name, const tcrt_value_t *value, uint32_t kinds,
                                uint32_t dtype, uint32_t key_dtype, int depth) {
  uint32_t kind = kinds & 0xff;
  if (value->kind != kind || depth > MAX_DEPTH)
    return refuse(model, name, depth ? "a value inside" : "the value", tcrt_kind_name(value->kind),
                  tcrt_kind_name(kind));
  if (kind == TCRT_VALUE_TENSOR) {
    const tcrt_tensor_t *tensor = &value->tensor;
    uint64_t bytes;
    if (tensor->dtype != (tcrt_dtype_t)dtype)
      return refuse(model, name, "the dtype of a tensor inside", tcrt_dtype_name(tensor->dtype),
                    tcrt_dtype_name((tcrt_dtype_t)dtype));
    if (tensor->rank > TCRT_MAX_RANK || !tcrt_tensor_size(tensor->dtype, tensor->rank, tensor->dims, &bytes) ||
        tensor->size_bytes < bytes || (bytes && !tensor->data) || tensor->device != TCRT_DEVICE_CPU)
      return tcrt_fail(TCRT_ERROR_INVALID, "%s: error: input \"%s\": a tensor inside has no buffer that fits its dims",
                       model->name, name);
    return TCRT_OK;
  }
  if ((kind == TCRT_VALUE_OPTIONAL && value->count > 1) || (kind == TCRT_VALUE_MAP && value->count != 2) ||
      (value->count && !value->elements))
    return tcrt_fail(TCRT_ERROR_INVALID, "%s: error: input \"%s\": %s has no elements that fit its kind", model->name,
                     name, tcrt_kind_name(kind));
  for (uint64_t i = 0; i < value->count; ++i) {
    uint32_t inner = kind == TCRT_VALUE_MAP ? TCRT_VALUE_TENSOR : kinds >> 8;
    tcrt_status_t status = check_tree(model, name, &value->elements[i], inner,
                                      kind == TCRT_VALUE_MAP && i == 0 ? key_dtype : dtype, key_dtype, depth + 1);
    if (status != TCRT_OK)
      return status;
  }
  if (kind == TCRT_VALUE_MAP) {
    const tcrt_tensor_t *keys = &value->elements[0].tensor, *values = &value->elements[1].tensor;
    if (keys->rank != 1 || values->rank != 1 || keys->dims[0] != values->dims[0])
      return tcrt_fail(TCRT_ERROR_INVALID, "%s: error: input \"%s\": a map's keys and values must be 1-D and as many",
                       model->name, name);
  }
  return TCRT_OK;
}

/* The kinds of a value from the outside in, a byte each. */
static uint32_t kinds_of(const tcrt_sig_value_t *value) { return value->kind | (value->inner & 0xffff) << 8; }
static uint32_t key_dtype_of(const tcrt_sig_value_t *value) { return value->inner >> 16 & 0xff; }

tcrt_status_t tcrt_values_check(const tcrt_context_t *context, uint32_t input, const tcrt_value_t *value) {
  const tcrt_model_function_t *function = context->bindings->function;
  const tcrt_sig_value_t *info = &function->inputs[input];
  return check_tree(context->model, function->input_names[input], value, kinds_of(info), info->dtype,
                    key_dtype_of(info), 0);
}

/* ---- in ---- */

tcrt_status_t tcrt_values_intern(tcrt_store_t *store, const tcrt_tensor_t *tensor, int64_t *ids) {
  uint64_t bytes = 0;
  tcrt_tensor_size(tensor->dtype, tensor->rank, tensor->dims, &bytes);
  const tcrt_string_t *strings = tensor->data;
  for (uint64_t i = 0; i < bytes / sizeof *strings; ++i) {
    if (strings[i].size_bytes && !strings[i].data)
      return tcrt_fail(TCRT_ERROR_INVALID, "a string has %llu bytes, but no address",
                       (unsigned long long)strings[i].size_bytes);
    ids[i] = tcrt_store_intern(store, strings[i].data, strings[i].size_bytes);
    if (ids[i] < 0)
      return TCRT_ERROR_MACHINE;
  }
  return TCRT_OK;
}

tcrt_status_t tcrt_values_box(tcrt_store_t *store, const tcrt_value_t *value, int64_t *handle) {
  *handle = 0;
  if (value->kind == TCRT_VALUE_TENSOR) {
    const tcrt_tensor_t *tensor = &value->tensor;
    void *data;
    tcrt_status_t status = tcrt_store_make_tensor(store, tensor->dtype, tensor->rank, tensor->dims, &data, handle);
    if (status != TCRT_OK)
      return status;
    if (tensor->dtype == TCRT_DTYPE_STRING)
      return tcrt_values_intern(store, tensor, data);
    uint64_t bytes = 0;
    tcrt_tensor_size(tensor->dtype, tensor->rank, tensor->dims, &bytes);
    if (bytes)
      memcpy(data, tensor->data, bytes);
    return TCRT_OK;
  }
  if (value->kind == TCRT_VALUE_OPTIONAL)
    return value->count ? tcrt_values_box(store, value->elements, handle) : TCRT_OK;
  int64_t *items = tcrt_store_allocate(store, value->count * sizeof *items);
  if (!items)
    return TCRT_ERROR_MACHINE;
  for (uint64_t i = 0; i < value->count; ++i) {
    tcrt_status_t status = tcrt_values_box(store, &value->elements[i], &items[i]);
    if (status != TCRT_OK)
      return status;
  }
  return tcrt_store_make_list(store, value->kind, items, value->count, handle);
}

/* ---- out ---- */

void tcrt_values_strings(const tcrt_store_t *store, const int64_t *ids, uint64_t count, tcrt_string_t *strings) {
  for (uint64_t i = 0; i < count; ++i) {
    strings[i] = tcrt_store_string(store, ids[i]);
    if (!strings[i].data)
      strings[i].data = "";
  }
}

static tcrt_status_t unbox(tcrt_store_t *store, int64_t handle, uint32_t kinds, tcrt_value_t *value) {
  memset(value, 0, sizeof *value);
  value->kind = kinds & 0xff;
  tcrt_value_t *elements;
  if (value->kind == TCRT_VALUE_OPTIONAL) {
    if (handle == 0)
      return TCRT_OK;
    elements = tcrt_store_allocate(store, sizeof *elements);
    if (!elements)
      return TCRT_ERROR_MACHINE;
    value->count = 1;
    value->elements = elements;
    return unbox(store, handle, kinds >> 8, elements);
  }
  const tcrt_object_t *object = tcrt_store_object(store, handle);
  if (!object || object->kind != value->kind)
    return tcrt_fail(TCRT_ERROR_REFUSED, "the value is %s, but the model declares %s",
                     object ? tcrt_kind_name(object->kind) : "absent", tcrt_kind_name(value->kind));
  if (value->kind != TCRT_VALUE_TENSOR) {
    elements = tcrt_store_allocate(store, object->count * sizeof *elements);
    if (!elements)
      return TCRT_ERROR_MACHINE;
    value->count = object->count;
    value->elements = elements;
    for (uint64_t i = 0; i < value->count; ++i) {
      uint32_t inner = value->kind == TCRT_VALUE_MAP ? TCRT_VALUE_TENSOR : kinds >> 8;
      tcrt_status_t status = unbox(store, object->list->items[i], inner, &elements[i]);
      if (status != TCRT_OK)
        return status;
    }
    return TCRT_OK;
  }
  tcrt_tensor_t *tensor = &value->tensor;
  tensor->dtype = (tcrt_dtype_t)object->dtype;
  tensor->rank = object->rank;
  if (object->rank)
    memcpy(tensor->dims, object->dims, object->rank * sizeof(int64_t));
  tensor->data = object->data;
  tensor->size_bytes = object->bytes;
  if (tensor->dtype != TCRT_DTYPE_STRING)
    return TCRT_OK;
  tensor->size_bytes = object->bytes / sizeof(int64_t) * sizeof(tcrt_string_t);
  tensor->data = tcrt_store_allocate(store, tensor->size_bytes);
  if (!tensor->data)
    return TCRT_ERROR_MACHINE;
  tcrt_values_strings(store, object->data, object->bytes / sizeof(int64_t), tensor->data);
  return TCRT_OK;
}

tcrt_status_t tcrt_values_unbox(tcrt_store_t *store, int64_t handle, const tcrt_sig_value_t *info,
                                tcrt_value_t *value) {
  return unbox(store, handle, kinds_of(info), value);
}
