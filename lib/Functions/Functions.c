/*
 * Functions.c - the host functions of libtcrt: objects, sequences, strings.
 *
 * Operands and results have the dtypes, ranks and sizes that the compiler gave them; what depends on values (positions,
 * handles, lengths) is checked here. Source of the semantics: the ONNX operator of the same name where one is cited.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#define _GNU_SOURCE
#include "tc/Format/Error.h"
#include "tc/Functions/Store.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

#define FUNCTION(name)                                                                                                 \
  static tcrt_status_t name(const tcrt_services_t *services, tcrt_store_t *store, const tcrt_call_t *call)
#define UNUSED(x) (void)(x)

static int64_t int_at(const tcrt_operand_t *operand, int64_t index) { return ((const int64_t *)operand->data)[index]; }

static int64_t count_of(const tcrt_operand_t *operand) {
  int64_t count = 1;
  for (uint32_t i = 0; i < operand->rank; ++i)
    count *= operand->dims[i];
  return count;
}

static uint64_t bytes_of(const tcrt_operand_t *operand) {
  uint64_t bytes = 0;
  tcrt_words_size(operand->dtype, operand->rank, operand->dims, &bytes);
  return bytes;
}

static void set_handle(const tcrt_operand_t *result, int64_t handle) { *(int64_t *)result->data = handle; }

/* ---- objects ---- */

/* An object with the operand's contents; a handle stands for itself. */
static tcrt_status_t box_operand(tcrt_store_t *store, const tcrt_operand_t *operand, int64_t *handle) {
  if (operand->dtype == TCRT_DTYPE_INVALID) {
    *handle = int_at(operand, 0);
    return TCRT_OK;
  }
  void *data;
  tcrt_status_t status = tcrt_store_make_tensor(store, operand->dtype, operand->rank, operand->dims, &data, handle);
  if (status == TCRT_OK)
    memcpy(data, operand->data, bytes_of(operand));
  return status;
}

/* box(x) -> handle */
FUNCTION(box) {
  UNUSED(services);
  int64_t handle = 0;
  tcrt_status_t status = box_operand(store, &call->operands[0], &handle);
  set_handle(&call->results[0], handle);
  return status;
}

/* object_dims(handle) -> each dim, i64: refused if the tensor has another rank. */
FUNCTION(object_dims) {
  tcrt_operand_t tensor;
  tcrt_status_t status = services->get_tensor(store, int_at(&call->operands[0], 0), &tensor);
  if (status != TCRT_OK)
    return status;
  if (tensor.rank != call->result_count)
    return services->fail(TCRT_ERROR_REFUSED, "the tensor has rank %u, the model was compiled for rank %u", tensor.rank,
                          call->result_count);
  for (uint32_t i = 0; i < tensor.rank; ++i)
    *(int64_t *)call->results[i].data = tensor.dims[i];
  return TCRT_OK;
}

/* object_data(handle) -> x, of the dims that object_dims gave */
FUNCTION(object_data) {
  tcrt_operand_t tensor;
  tcrt_status_t status = services->get_tensor(store, int_at(&call->operands[0], 0), &tensor);
  if (status != TCRT_OK)
    return status;
  const tcrt_operand_t *result = &call->results[0];
  if (tensor.dtype != result->dtype)
    return services->fail(TCRT_ERROR_REFUSED, "the tensor has dtype %s, expected %s",
                          tcrt_dtype_name((tcrt_dtype_t)tensor.dtype), tcrt_dtype_name((tcrt_dtype_t)result->dtype));
  if (tensor.rank != result->rank ||
      (tensor.rank && memcmp(tensor.dims, result->dims, tensor.rank * sizeof(int64_t)) != 0))
    return services->fail(TCRT_ERROR_REFUSED, "the tensor has other dims than the model declares");
  memcpy(result->data, tensor.data, bytes_of(result));
  return TCRT_OK;
}

/* has_value(handle) -> bool */
FUNCTION(has_value) {
  UNUSED(services), UNUSED(store);
  *(uint8_t *)call->results[0].data = int_at(&call->operands[0], 0) != 0;
  return TCRT_OK;
}

/* map(keys, values) -> handle */
FUNCTION(make_map) {
  UNUSED(services);
  int64_t items[2], handle = 0;
  tcrt_status_t status = box_operand(store, &call->operands[0], &items[0]);
  if (status == TCRT_OK)
    status = box_operand(store, &call->operands[1], &items[1]);
  if (status == TCRT_OK)
    status = tcrt_store_make_list(store, TCRT_VALUE_MAP, items, 2, &handle);
  set_handle(&call->results[0], handle);
  return status;
}

/* map_part(map), 0 the keys and 1 the values -> handle of a tensor */
FUNCTION(map_part) {
  const tcrt_object_t *object = tcrt_store_object(store, int_at(&call->operands[0], 0));
  int64_t part = int_at(&call->operands[1], 0);
  if (!object || object->kind != TCRT_VALUE_MAP || part < 0 || part > 1)
    return services->fail(TCRT_ERROR_REFUSED, "a map is expected");
  set_handle(&call->results[0], object->list->items[part]);
  return TCRT_OK;
}

/* ---- sequences ---- */

static const tcrt_object_t *sequence_of(const tcrt_services_t *services, const tcrt_store_t *store,
                                        const tcrt_operand_t *operand) {
  const tcrt_object_t *object = tcrt_store_object(store, int_at(operand, 0));
  if (object && object->kind == TCRT_VALUE_SEQUENCE)
    return object;
  services->fail(TCRT_ERROR_REFUSED,
                 object ? "a sequence is expected, but the value is a tensor or a map" : "the optional has no value");
  return NULL;
}

/* A position in [0, count], counted from the end if negative; -1: outside, refused. */
static int64_t position_of(const tcrt_services_t *services, const tcrt_operand_t *operand, int64_t count,
                           int64_t last) {
  int64_t position = int_at(operand, 0), at = position < 0 ? position + count : position;
  if (at >= 0 && at <= last)
    return at;
  services->fail(TCRT_ERROR_REFUSED, "position %" PRId64 " is outside of a sequence of %" PRId64 " elements", position,
                 count);
  return -1;
}

/* seq_construct(x...) -> handle */
FUNCTION(seq_construct) {
  UNUSED(services);
  int64_t handle = 0;
  int64_t *items = tcrt_store_allocate(store, call->operand_count * sizeof *items);
  if (!items)
    return TCRT_ERROR_MACHINE;
  for (uint32_t i = 0; i < call->operand_count; ++i) {
    tcrt_status_t status = box_operand(store, &call->operands[i], &items[i]);
    if (status != TCRT_OK)
      return status;
  }
  tcrt_status_t status = tcrt_store_make_list(store, TCRT_VALUE_SEQUENCE, items, call->operand_count, &handle);
  set_handle(&call->results[0], handle);
  return status;
}

/* seq_insert(sequence, x[, position]) -> handle; at the end without a position */
FUNCTION(seq_insert) {
  const tcrt_object_t *object = sequence_of(services, store, &call->operands[0]);
  if (!object)
    return TCRT_ERROR_REFUSED;
  const tcrt_object_t sequence = *object; /* objects move when one is made */
  int64_t count = (int64_t)sequence.count, at = count, handle = 0, item = 0;
  if (call->operand_count > 2 && (at = position_of(services, &call->operands[2], count, count)) < 0)
    return TCRT_ERROR_REFUSED;
  tcrt_status_t status = box_operand(store, &call->operands[1], &item);
  if (status != TCRT_OK)
    return status;
  if (at == count) {
    status = tcrt_store_append(store, int_at(&call->operands[0], 0), item, &handle);
  } else {
    int64_t *items = tcrt_store_allocate(store, (sequence.count + 1) * sizeof *items);
    if (!items)
      return TCRT_ERROR_MACHINE;
    memcpy(items, sequence.list->items, (size_t)at * sizeof *items);
    items[at] = item;
    memcpy(items + at + 1, sequence.list->items + at, (size_t)(count - at) * sizeof *items);
    status = tcrt_store_make_list(store, TCRT_VALUE_SEQUENCE, items, sequence.count + 1, &handle);
  }
  set_handle(&call->results[0], handle);
  return status;
}

/* seq_erase(sequence[, position]) -> handle; the last one without a position */
FUNCTION(seq_erase) {
  const tcrt_object_t *object = sequence_of(services, store, &call->operands[0]);
  if (!object)
    return TCRT_ERROR_REFUSED;
  const tcrt_object_t sequence = *object;
  int64_t count = (int64_t)sequence.count, at = count - 1, handle = 0;
  if (call->operand_count > 1)
    at = position_of(services, &call->operands[1], count, count - 1);
  else if (count == 0)
    services->fail(TCRT_ERROR_REFUSED, "the sequence is empty");
  if (at < 0)
    return TCRT_ERROR_REFUSED;
  int64_t *items = tcrt_store_allocate(store, sequence.count * sizeof *items);
  if (!items)
    return TCRT_ERROR_MACHINE;
  memcpy(items, sequence.list->items, (size_t)at * sizeof *items);
  memcpy(items + at, sequence.list->items + at + 1, (size_t)(count - at - 1) * sizeof *items);
  tcrt_status_t status = tcrt_store_make_list(store, TCRT_VALUE_SEQUENCE, items, sequence.count - 1, &handle);
  set_handle(&call->results[0], handle);
  return status;
}

/* seq_at(sequence, position) -> handle of the element */
FUNCTION(seq_at) {
  const tcrt_object_t *sequence = sequence_of(services, store, &call->operands[0]);
  if (!sequence)
    return TCRT_ERROR_REFUSED;
  int64_t count = (int64_t)sequence->count, at = position_of(services, &call->operands[1], count, count - 1);
  if (at < 0)
    return TCRT_ERROR_REFUSED;
  set_handle(&call->results[0], sequence->list->items[at]);
  return TCRT_OK;
}

/* seq_length(sequence) -> i64 */
FUNCTION(seq_length) {
  const tcrt_object_t *sequence = sequence_of(services, store, &call->operands[0]);
  if (!sequence)
    return TCRT_ERROR_REFUSED;
  *(int64_t *)call->results[0].data = (int64_t)sequence->count;
  return TCRT_OK;
}

/* Copies `length` of `dim` entries, from `from` on, between [outer, dim, inner] buffers of `bits`-bit elements. */
static void copy_part(uint8_t *to, int64_t to_dim, int64_t to_at, const uint8_t *from, int64_t from_dim,
                      int64_t from_at, int64_t outer, int64_t length, int64_t inner, uint32_t bits) {
  for (int64_t o = 0; o < outer; ++o) {
    int64_t target = (o * to_dim + to_at) * inner, source = (o * from_dim + from_at) * inner, count = length * inner;
    if (bits >= 8) {
      uint32_t bytes = bits / 8;
      memcpy(to + target * bytes, from + source * bytes, (size_t)count * bytes);
      continue;
    }
    uint32_t mask = (1u << bits) - 1, per_byte = 8 / bits;
    for (int64_t i = 0; i < count; ++i) {
      uint32_t value = from[(source + i) / per_byte] >> (source + i) % per_byte * bits & mask;
      uint32_t shift = (uint32_t)((target + i) % per_byte) * bits;
      uint8_t *at = &to[(target + i) / per_byte];
      *at = (uint8_t)((*at & ~(mask << shift)) | value << shift);
    }
  }
}

static uint32_t word_bits(uint32_t dtype) {
  return dtype == TCRT_DTYPE_STRING || dtype == TCRT_DTYPE_INVALID ? 64 : tcrt_dtype_bits((tcrt_dtype_t)dtype);
}

static int64_t product(const int64_t *dims, uint32_t begin, uint32_t end) {
  int64_t result = 1;
  for (uint32_t i = begin; i < end; ++i)
    result *= dims[i];
  return result;
}

/* seq_split(x, lengths, axis, keep_dims) -> handle. SplitToSequence: `lengths` 0-D is the length of all parts but the
 * last, 1-D the lengths; without keep_dims each has length 1 and drops the axis. */
FUNCTION(seq_split) {
  const tcrt_operand_t *x = &call->operands[0], *lengths = &call->operands[1];
  uint32_t axis = (uint32_t)int_at(&call->operands[2], 0);
  int keep = int_at(&call->operands[3], 0) != 0;
  int64_t dim = x->dims[axis], parts, chunk = 0, total = 0, handle = 0;
  if (lengths->rank == 0) {
    chunk = int_at(lengths, 0);
    if (chunk <= 0)
      return services->fail(TCRT_ERROR_REFUSED, "the split length is %" PRId64 "; it must be positive", chunk);
    parts = dim / chunk + (dim % chunk != 0);
  } else {
    parts = lengths->dims[0];
    for (int64_t i = 0; i < parts; ++i) {
      if (int_at(lengths, i) < 0 || int_at(lengths, i) > dim - total)
        return services->fail(TCRT_ERROR_REFUSED, "the split lengths do not add up to the axis, which has %" PRId64,
                              dim);
      total += int_at(lengths, i);
    }
    if (total != dim)
      return services->fail(TCRT_ERROR_REFUSED, "the split lengths add up to %" PRId64 ", but the axis has %" PRId64,
                            total, dim);
  }
  int64_t *items = tcrt_store_allocate(store, (uint64_t)parts * sizeof *items);
  if (!items)
    return TCRT_ERROR_MACHINE;
  int64_t outer = product(x->dims, 0, axis), inner = product(x->dims, axis + 1, x->rank), at = 0;
  for (int64_t i = 0; i < parts; ++i) {
    int64_t length = lengths->rank ? int_at(lengths, i) : dim - at < chunk ? dim - at : chunk;
    int64_t dims[TCRT_MAX_RANK];
    memcpy(dims, x->dims, x->rank * sizeof *dims);
    dims[axis] = length;
    uint32_t rank = x->rank;
    if (!keep) {
      memmove(dims + axis, dims + axis + 1, (rank - axis - 1) * sizeof *dims);
      --rank;
    }
    void *data;
    tcrt_status_t status = services->make_tensor(store, x->dtype, rank, dims, &data, &items[i]);
    if (status != TCRT_OK)
      return status;
    copy_part(data, length, 0, x->data, dim, at, outer, length, inner, word_bits(x->dtype));
    at += length;
  }
  tcrt_status_t status = tcrt_store_make_list(store, TCRT_VALUE_SEQUENCE, items, (uint64_t)parts, &handle);
  set_handle(&call->results[0], handle);
  return status;
}

/* zip_map(keys [C], x [N, C]) -> handle of a sequence of N maps from the keys to the row's numbers. ai.onnx.ml ZipMap.
 */
FUNCTION(zip_map) {
  const tcrt_operand_t *x = &call->operands[1];
  int64_t rows = x->dims[0], pair[2], handle = 0;
  uint64_t row_bytes = (uint64_t)x->dims[1] * (word_bits(x->dtype) / 8);
  tcrt_status_t status = box_operand(store, &call->operands[0], &pair[0]); /* all maps share the keys */
  int64_t *items = tcrt_store_allocate(store, (uint64_t)rows * sizeof *items);
  if (!items)
    return TCRT_ERROR_MACHINE;
  for (int64_t i = 0; status == TCRT_OK && i < rows; ++i) {
    void *data;
    status = services->make_tensor(store, x->dtype, 1, &x->dims[1], &data, &pair[1]);
    if (status != TCRT_OK)
      break;
    memcpy(data, (const uint8_t *)x->data + (uint64_t)i * row_bytes, row_bytes);
    status = tcrt_store_make_list(store, TCRT_VALUE_MAP, pair, 2, &items[i]);
  }
  if (status == TCRT_OK)
    status = tcrt_store_make_list(store, TCRT_VALUE_SEQUENCE, items, (uint64_t)rows, &handle);
  set_handle(&call->results[0], handle);
  return status;
}

/* seq_concat_dims(sequence, axis, new_axis) -> each dim, i64 */
FUNCTION(seq_concat_dims) {
  const tcrt_object_t *sequence = sequence_of(services, store, &call->operands[0]);
  if (!sequence)
    return TCRT_ERROR_REFUSED;
  int64_t axis = int_at(&call->operands[1], 0), result[TCRT_MAX_RANK];
  int is_new = int_at(&call->operands[2], 0) != 0;
  uint32_t rank = call->result_count;
  if (rank > TCRT_MAX_RANK)
    return services->fail(TCRT_ERROR_REFUSED, "the result would have rank %u", rank);
  if (sequence->count == 0)
    return services->fail(TCRT_ERROR_REFUSED, "the sequence is empty, so that its elements' dims are not known");
  for (uint64_t i = 0; i < sequence->count; ++i) {
    const tcrt_object_t *element = tcrt_store_object(store, sequence->list->items[i]);
    if (!element || element->kind != TCRT_VALUE_TENSOR || element->rank + (is_new ? 1 : 0) != rank)
      return services->fail(TCRT_ERROR_REFUSED, "element %" PRIu64 " has rank %u, the model was compiled for rank %u",
                            i, element ? element->rank : 0, is_new ? rank - 1 : rank);
    for (uint32_t d = 0, from = 0; d < rank; ++d) {
      int along = d == (uint32_t)axis;
      int64_t size = along && is_new ? 1 : element->dims[from++];
      if (i == 0)
        result[d] = size;
      else if (along)
        result[d] += size;
      else if (result[d] != size)
        return services->fail(TCRT_ERROR_REFUSED,
                              "dim %u of element %" PRIu64 " is %" PRId64 ", that of the elements before %" PRId64, d,
                              i, size, result[d]);
    }
  }
  for (uint32_t d = 0; d < rank; ++d)
    *(int64_t *)call->results[d].data = result[d];
  return TCRT_OK;
}

/* seq_concat(sequence, axis, new_axis) -> x, of the dims that seq_concat_dims gave */
FUNCTION(seq_concat) {
  const tcrt_object_t *sequence = sequence_of(services, store, &call->operands[0]);
  if (!sequence)
    return TCRT_ERROR_REFUSED;
  const tcrt_operand_t *result = &call->results[0];
  uint32_t axis = (uint32_t)int_at(&call->operands[1], 0);
  int is_new = int_at(&call->operands[2], 0) != 0;
  int64_t outer = product(result->dims, 0, axis), inner = product(result->dims, axis + 1, result->rank), at = 0;
  for (uint64_t i = 0; i < sequence->count; ++i) {
    const tcrt_object_t *element = tcrt_store_object(store, sequence->list->items[i]);
    if (element->dtype != result->dtype)
      return services->fail(TCRT_ERROR_REFUSED, "element %" PRIu64 " has dtype %s, expected %s", i,
                            tcrt_dtype_name((tcrt_dtype_t)element->dtype),
                            tcrt_dtype_name((tcrt_dtype_t)result->dtype));
    int64_t length = is_new ? 1 : element->dims[axis];
    copy_part(result->data, result->dims[axis], at, element->data, length, 0, outer, length, inner,
              word_bits(result->dtype));
    at += length;
  }
  return TCRT_OK;
}

/* ---- strings ---- */

/* string_concat(x, y) -> z, of equal dims */
FUNCTION(string_concat) {
  const int64_t *x = call->operands[0].data, *y = call->operands[1].data;
  int64_t *z = call->results[0].data;
  char *text = NULL;
  uint64_t capacity = 0;
  for (int64_t i = 0; i < count_of(&call->results[0]); ++i) {
    tcrt_string_t a = services->string(store, x[i]), b = services->string(store, y[i]);
    uint64_t size = a.size_bytes + b.size_bytes;
    if (size > capacity) {
      capacity = size * 2;
      char *more = realloc(text, capacity);
      if (!more) {
        free(text);
        return services->fail(TCRT_ERROR_MACHINE, "no memory left for strings");
      }
      text = more;
    }
    if (a.size_bytes)
      memcpy(text, a.data, a.size_bytes);
    if (b.size_bytes)
      memcpy(text + a.size_bytes, b.data, b.size_bytes);
    z[i] = services->intern(store, text, size);
    if (z[i] < 0) {
      free(text);
      return TCRT_ERROR_MACHINE;
    }
  }
  free(text);
  return TCRT_OK;
}

/* Bytes of the white space character at text[0, size), 0 if there is none. ASCII, and in UTF-8 U+0085, U+00A0, U+1680,
 * U+2000 to U+200A, U+2028, U+2029, U+202F, U+205F, U+3000: what Python's str.split takes. */
static uint64_t white_space(const char *text, uint64_t size) {
  const uint8_t *s = (const uint8_t *)text;
  if ((s[0] >= 9 && s[0] <= 13) || (s[0] >= 28 && s[0] <= 32))
    return 1;
  if (size >= 2 && s[0] == 0xc2 && (s[1] == 0x85 || s[1] == 0xa0))
    return 2;
  if (size < 3)
    return 0;
  if (s[0] == 0xe2 && s[1] == 0x80 && (s[2] <= 0x8a || s[2] == 0xa8 || s[2] == 0xa9 || s[2] == 0xaf) && s[2] >= 0x80)
    return 3;
  return (s[0] == 0xe1 && s[1] == 0x9a && s[2] == 0x80) || (s[0] == 0xe2 && s[1] == 0x81 && s[2] == 0x9f) ||
                 (s[0] == 0xe3 && s[1] == 0x80 && s[2] == 0x80)
             ? 3
             : 0;
}

/* Cuts the next part off *text; false at the end. `left`: cuts that are still allowed. */
static int next_part(tcrt_string_t delimiter, int64_t left, const char **text, uint64_t *size, int *done,
                     tcrt_string_t *part) {
  if (*done)
    return 0;
  const char *at = *text, *end = at + *size;
  if (delimiter.size_bytes == 0) {
    uint64_t bytes;
    while (at < end && (bytes = white_space(at, (uint64_t)(end - at))))
      at += bytes;
    if (at == end)
      return 0;
    const char *stop = at;
    if (left > 0)
      while (stop < end && !white_space(stop, (uint64_t)(end - stop)))
        ++stop;
    else {
      /* The rest, without white space at its end. */
      stop = end;
      for (const char *p = at; p < end;) {
        bytes = white_space(p, (uint64_t)(end - p));
        p += bytes ? bytes : 1;
        if (!bytes)
          stop = p;
      }
      *done = 1;
    }
    *part = (tcrt_string_t){at, (uint64_t)(stop - at)};
    *text = stop;
    *size = (uint64_t)(end - stop);
    return 1;
  }
  const char *found = left > 0 ? memmem(at, *size, delimiter.data, delimiter.size_bytes) : NULL;
  *done = !found;
  *part = (tcrt_string_t){at, (uint64_t)((found ? found : end) - at)};
  *text = found ? found + delimiter.size_bytes : end;
  *size = (uint64_t)(end - *text);
  return 1;
}

/* string_split(x, delimiter, most cuts) -> handle of [x.dims, most parts], parts of each. StringSplit: an empty
 * delimiter stands for white space; rows are filled up with empty strings. */
FUNCTION(string_split) {
  const tcrt_operand_t *x = &call->operands[0];
  const int64_t *ids = x->data;
  tcrt_string_t delimiter = services->string(store, int_at(&call->operands[1], 0));
  int64_t most = int_at(&call->operands[2], 0), *counts = call->results[1].data, *parts = NULL, handle = 0;
  int64_t count = count_of(x), longest = 0;
  if (x->rank + 1 > TCRT_MAX_RANK)
    return services->fail(TCRT_ERROR_REFUSED, "the result would have rank %u", x->rank + 1);
  for (int pass = 0; pass < 2; ++pass) {
    for (int64_t i = 0; i < count; ++i) {
      tcrt_string_t all = services->string(store, ids[i]), part;
      const char *text = all.data ? all.data : "";
      uint64_t size = all.size_bytes;
      int done = 0;
      int64_t n = 0;
      while (next_part(delimiter, most - n, &text, &size, &done, &part)) {
        if (pass && (parts[i * longest + n] = services->intern(store, part.data, part.size_bytes)) < 0)
          return TCRT_ERROR_MACHINE;
        ++n;
      }
      counts[i] = n;
      longest = !pass && n > longest ? n : longest;
    }
    if (pass)
      break;
    int64_t dims[TCRT_MAX_RANK];
    memcpy(dims, x->dims, x->rank * sizeof *dims);
    dims[x->rank] = longest;
    void *data;
    tcrt_status_t status = services->make_tensor(store, TCRT_DTYPE_STRING, x->rank + 1, dims, &data, &handle);
    if (status != TCRT_OK)
      return status;
    parts = data;
    memset(parts, 0, (size_t)(count * longest) * sizeof *parts);
  }
  set_handle(&call->results[0], handle);
  return TCRT_OK;
}

/* Code points of UTF-8; a byte that does not fit stands for itself, above U+10FFFF, so that it survives. */
static uint32_t decode(const uint8_t *s, uint64_t size, uint64_t *length) {
  uint32_t c = s[0], more = c >= 0xf0 && c < 0xf5 ? 3 : c >= 0xe0 ? 2 : c >= 0xc2 ? 1 : 0;
  *length = 1;
  if (c < 0x80)
    return c;
  if (c >= 0xf5 || more == 0 || more >= size)
    return 0x110000 + c;
  uint32_t code = c & (0x3fu >> more);
  for (uint32_t i = 1; i <= more; ++i) {
    if ((s[i] & 0xc0) != 0x80)
      return 0x110000 + c;
    code = code << 6 | (s[i] & 0x3f);
  }
  *length = more + 1;
  return code;
}

static uint64_t encode(uint32_t code, char *to) {
  if (code < 0x80) {
    to[0] = (char)code;
    return 1;
  }
  if (code >= 0x110000) {
    to[0] = (char)(code - 0x110000);
    return 1;
  }
  uint64_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  for (uint64_t i = length; i-- > 1; code >>= 6)
    to[i] = (char)(0x80 | (code & 0x3f));
  to[0] = (char)((0xf00u >> length & 0xf0) | code);
  return length;
}

enum { CASE_SAME = 0, CASE_LOWER = 1, CASE_UPPER = 2 };

static int64_t change_case(const tcrt_services_t *services, tcrt_store_t *store, int64_t id, int64_t mode,
                           locale_t locale) {
  if (mode == CASE_SAME)
    return id;
  tcrt_string_t text = services->string(store, id);
  /* A code point grows to 4 bytes at most. */
  char *changed = malloc(4 * text.size_bytes + 1);
  if (!changed) {
    services->fail(TCRT_ERROR_MACHINE, "no memory left for strings");
    return -1;
  }
  uint64_t size = 0, length;
  for (uint64_t i = 0; i < text.size_bytes; i += length) {
    uint32_t code = decode((const uint8_t *)text.data + i, text.size_bytes - i, &length);
    if (code < 0x110000)
      code = (uint32_t)(mode == CASE_LOWER ? towlower_l((wint_t)code, locale) : towupper_l((wint_t)code, locale));
    size += encode(code, changed + size);
  }
  id = services->intern(store, changed, size);
  free(changed);
  return id;
}

/* string_normalize(x, case, locale, compare as they are, stop words) -> handle. StringNormalizer: x is [C] or [1, C];
 * strings that are stop words go, the others' case is changed; one empty string where all go. */
FUNCTION(string_normalize) {
  const tcrt_operand_t *x = &call->operands[0], *stops = &call->operands[4];
  const int64_t *ids = x->data;
  int64_t mode = int_at(&call->operands[1], 0), exact = int_at(&call->operands[3], 0), count = count_of(x), kept = 0;
  tcrt_string_t name = services->string(store, int_at(&call->operands[2], 0));
  char wanted[64] = {0};
  if (name.size_bytes && name.size_bytes < sizeof wanted)
    memcpy(wanted, name.data, name.size_bytes);
  /* Case is mapped by Unicode's tables; only a few languages differ, and their locale need not be installed. */
  locale_t locale = wanted[0] ? newlocale(LC_CTYPE_MASK, wanted, (locale_t)0) : (locale_t)0;
  if (!locale)
    locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
  if (!locale)
    return services->fail(TCRT_ERROR_MACHINE, "this system has no locale C.UTF-8");
  int64_t *out = tcrt_store_allocate(store, (uint64_t)(count + 1) * sizeof *out), handle = 0,
          stop_count = count_of(stops);
  int64_t *words = tcrt_store_allocate(store, (uint64_t)(stop_count + 1) * sizeof *words);
  tcrt_status_t status = out && words ? TCRT_OK : TCRT_ERROR_MACHINE;
  for (int64_t i = 0; status == TCRT_OK && i < stop_count; ++i) {
    words[i] = exact ? int_at(stops, i) : change_case(services, store, int_at(stops, i), CASE_LOWER, locale);
    status = words[i] < 0 ? TCRT_ERROR_MACHINE : TCRT_OK;
  }
  for (int64_t i = 0; status == TCRT_OK && i < count; ++i) {
    int64_t key = exact ? ids[i] : change_case(services, store, ids[i], CASE_LOWER, locale);
    int is_stop = 0;
    for (int64_t j = 0; j < stop_count && !is_stop; ++j)
      is_stop = words[j] == key;
    if (is_stop)
      continue;
    out[kept] = change_case(services, store, ids[i], mode, locale);
    status = key < 0 || out[kept] < 0 ? TCRT_ERROR_MACHINE : TCRT_OK;
    ++kept;
  }
  freelocale(locale);
  if (status != TCRT_OK)
    return status;
  if (kept == 0)
    out[kept++] = 0;
  int64_t dims[2] = {1, 1};
  dims[x->rank - 1] = kept;
  void *data;
  status = services->make_tensor(store, TCRT_DTYPE_STRING, x->rank, dims, &data, &handle);
  if (status == TCRT_OK)
    memcpy(data, out, (size_t)kept * sizeof *out);
  set_handle(&call->results[0], handle);
  return status;
}

/* parse_f64(x) -> y. Cast: decimal and scientific notation, inf and nan in any case. */
FUNCTION(parse_f64) {
  const int64_t *ids = call->operands[0].data;
  double *y = call->results[0].data;
  locale_t locale = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
  tcrt_status_t status = TCRT_OK;
  for (int64_t i = 0; status == TCRT_OK && i < count_of(&call->operands[0]); ++i) {
    tcrt_string_t text = services->string(store, ids[i]);
    char copy[128], *end = copy;
    if (text.size_bytes && text.size_bytes < sizeof copy) {
      memcpy(copy, text.data, text.size_bytes);
      copy[text.size_bytes] = 0;
      y[i] = strtod_l(copy, &end, locale);
      while (isspace((unsigned char)*end))
        ++end;
    }
    if (end == copy || *end)
      status = services->fail(TCRT_ERROR_REFUSED, "the string \"%.*s\" is not a number",
                              (int)(text.size_bytes < 64 ? text.size_bytes : 64), text.size_bytes ? text.data : "");
  }
  if (locale)
    freelocale(locale);
  return status;
}

/* parse_i64(x) -> y; what is no integer but a number is truncated. */
FUNCTION(parse_i64) {
  const int64_t *ids = call->operands[0].data;
  int64_t *y = call->results[0].data;
  for (int64_t i = 0; i < count_of(&call->operands[0]); ++i) {
    tcrt_string_t text = services->string(store, ids[i]);
    char copy[128], *end = copy;
    if (text.size_bytes && text.size_bytes < sizeof copy) {
      memcpy(copy, text.data, text.size_bytes);
      copy[text.size_bytes] = 0;
      errno = 0;
      y[i] = copy[0] == '-' ? strtoll(copy, &end, 10) : (int64_t)strtoull(copy, &end, 10);
      if (*end) {
        double number = strtod(copy, &end);
        y[i] = number >= -0x1p63 && number < 0x1p63 ? (int64_t)number : 0;
      }
    }
    if (end == copy || *end)
      return services->fail(TCRT_ERROR_REFUSED, "the string \"%.*s\" is not a number",
                            (int)(text.size_bytes < 64 ? text.size_bytes : 64), text.size_bytes ? text.data : "");
  }
  return TCRT_OK;
}

/* The shortest decimal text that reads back as the same number of `digits` significant binary precision, with a point
 * or an exponent, as NumPy prints it. */
static int print_number(double x, int is_single, char *text, size_t size) {
  if (isnan(x))
    return snprintf(text, size, "NaN");
  if (isinf(x))
    return snprintf(text, size, x < 0 ? "-INF" : "INF");
  int most = is_single ? 9 : 17;
  for (int digits = 1; digits <= most; ++digits) {
    snprintf(text, size, "%.*e", digits - 1, x);
    if (is_single ? strtof(text, NULL) == (float)x : strtod(text, NULL) == x) {
      int exponent = atoi(strchr(text, 'e') + 1);
      if (exponent < -4 || exponent >= 16)
        return snprintf(text, size, "%.*e", digits - 1, x);
      int decimals = digits - 1 - exponent;
      return snprintf(text, size, "%.*f", decimals > 1 ? decimals : 1, x);
    }
  }
  return snprintf(text, size, "%.*g", most, x);
}

enum { PRINT_DOUBLE = 0, PRINT_SINGLE = 1, PRINT_FIXED = 2 };

/* print_f64(x, form) -> strings: the shortest text for float64 or float32, or six decimals, as printf("%f") has it. */
FUNCTION(print_f64) {
  const double *x = call->operands[0].data;
  int64_t form = int_at(&call->operands[1], 0), *y = call->results[0].data;
  for (int64_t i = 0; i < count_of(&call->operands[0]); ++i) {
    char text[512];
    int size = form == PRINT_FIXED ? snprintf(text, sizeof text, "%f", x[i])
                                   : print_number(x[i], form == PRINT_SINGLE, text, sizeof text);
    if ((y[i] = services->intern(store, text, (uint64_t)size)) < 0)
      return TCRT_ERROR_MACHINE;
  }
  return TCRT_OK;
}

/* print_i64(x, unsigned) -> strings */
FUNCTION(print_i64) {
  const int64_t *x = call->operands[0].data;
  int is_unsigned = int_at(&call->operands[1], 0) != 0;
  int64_t *y = call->results[0].data;
  for (int64_t i = 0; i < count_of(&call->operands[0]); ++i) {
    char text[32];
    int size = is_unsigned ? snprintf(text, sizeof text, "%" PRIu64, (uint64_t)x[i])
                           : snprintf(text, sizeof text, "%" PRId64, x[i]);
    if ((y[i] = services->intern(store, text, (uint64_t)size)) < 0)
      return TCRT_ERROR_MACHINE;
  }
  return TCRT_OK;
}

typedef struct ranked_t {
  tcrt_string_t text;
  int64_t index;
} ranked_t;

static int compare_text(const void *a, const void *b) {
  const tcrt_string_t *x = &((const ranked_t *)a)->text, *y = &((const ranked_t *)b)->text;
  uint64_t size = x->size_bytes < y->size_bytes ? x->size_bytes : y->size_bytes;
  int order = size ? memcmp(x->data, y->data, size) : 0;
  return order ? order : x->size_bytes < y->size_bytes ? -1 : x->size_bytes > y->size_bytes;
}

/* string_rank(x) -> i64: numbers in the order of the strings' bytes, equal for equal strings */
FUNCTION(string_rank) {
  const int64_t *ids = call->operands[0].data;
  int64_t *ranks = call->results[0].data, count = count_of(&call->operands[0]), rank = 0;
  ranked_t *order = tcrt_store_allocate(store, (uint64_t)count * sizeof *order);
  if (!order)
    return TCRT_ERROR_MACHINE;
  for (int64_t i = 0; i < count; ++i)
    order[i] = (ranked_t){services->string(store, ids[i]), i};
  qsort(order, (size_t)count, sizeof *order, compare_text);
  for (int64_t i = 0; i < count; ++i) {
    if (i && compare_text(&order[i - 1], &order[i]) != 0)
      rank = i;
    ranks[order[i].index] = rank;
  }
  return TCRT_OK;
}

/* Sorted by name. */
static const tcrt_function_t functions[] = {
    {"box", box},
    {"determinant", tcrt_determinant},
    {"has_value", has_value},
    {"linalg_cholesky", tcrt_linalg_cholesky},
    {"linalg_eigh", tcrt_linalg_eigh},
    {"linalg_lu", tcrt_linalg_lu},
    {"linalg_qr", tcrt_linalg_qr},
    {"linalg_solve", tcrt_linalg_solve},
    {"linalg_solve_triangular", tcrt_linalg_solve_triangular},
    {"linalg_svd", tcrt_linalg_svd},
    {"map", make_map},
    {"map_part", map_part},
    {"non_max_suppression", tcrt_non_max_suppression},
    {"object_data", object_data},
    {"object_dims", object_dims},
    {"parse_f64", parse_f64},
    {"parse_i64", parse_i64},
    {"print_f64", print_f64},
    {"print_i64", print_i64},
    {"seq_at", seq_at},
    {"seq_concat", seq_concat},
    {"seq_concat_dims", seq_concat_dims},
    {"seq_construct", seq_construct},
    {"seq_erase", seq_erase},
    {"seq_insert", seq_insert},
    {"seq_length", seq_length},
    {"seq_split", seq_split},
    {"string_concat", string_concat},
    {"string_normalize", string_normalize},
    {"string_rank", string_rank},
    {"string_split", string_split},
    {"zip_map", zip_map},
};

tcrt_function_fn tcrt_find_function(const char *name, uint64_t length) {
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; ++i)
    if (strlen(functions[i].name) == length && memcmp(functions[i].name, name, length) == 0)
      return functions[i].function;
  return NULL;
}
