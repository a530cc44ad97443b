/*
 * Error.c - the calling thread's last error, names of types, time, version.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#define _GNU_SOURCE
#include "Internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#ifndef TCRT_VERSION
#define TCRT_VERSION "0.0.0"
#endif

static _Thread_local char last_error[2048];

tcrt_status_t tcrt_fail(tcrt_status_t status, const char *format, ...) {
  /* The arguments may point into the last error, so it is written last. */
  char text[sizeof last_error];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  size_t i = 0;
  for (; text[i]; ++i)
    last_error[i] = text[i] == '\n' || text[i] == '\r' ? ' ' : text[i];
  last_error[i] = 0;
  return status;
}

const char *tcrt_last_error(void) { return last_error; }

const char *tcrt_version(void) { return TCRT_VERSION; }

uint64_t tcrt_now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static const struct {
  const char *name;
  uint32_t bits;
} dtypes[] = {
    {"invalid", 0},    {"f32", 32},   {"u8", 8},         {"i8", 8},     {"u16", 16},   {"i16", 16},
    {"i32", 32},       {"i64", 64},   {"string", 0},     {"bool", 8},   {"f16", 16},   {"f64", 64},
    {"u32", 32},       {"u64", 64},   {"c64", 64},       {"c128", 128}, {"bf16", 16},  {"f8e4m3fn", 8},
    {"f8e4m3fnuz", 8}, {"f8e5m2", 8}, {"f8e5m2fnuz", 8}, {"u4", 4},     {"i4", 4},     {"f4e2m1", 4},
    {"f8e8m0", 8},     {"u2", 2},     {"i2", 2},         {"f6e2m3", 8}, {"f6e3m2", 8},
};

const char *tcrt_dtype_name(tcrt_dtype_t dtype) {
  return (uint32_t)dtype < sizeof dtypes / sizeof dtypes[0] ? dtypes[dtype].name : "invalid";
}

uint32_t tcrt_dtype_bits(tcrt_dtype_t dtype) {
  return (uint32_t)dtype < sizeof dtypes / sizeof dtypes[0] ? dtypes[dtype].bits : 0;
}

int tcrt_tensor_size(tcrt_dtype_t dtype, uint32_t rank, const int64_t *dims, uint64_t *size_bytes) {
  uint64_t count = 1;
  int is_empty = 0;
  *size_bytes = 0;
  for (uint32_t i = 0; i < rank; ++i) {
    if (dims[i] < 0)
      return 0;
    is_empty |= dims[i] == 0;
  }
  if (is_empty)
    return 1;
  for (uint32_t i = 0; i < rank; ++i)
    if (!tcrt_mul(count, (uint64_t)dims[i], &count))
      return 0;
  /* Every size stays below 2^63, so that programs may compute with signed numbers. */
  uint64_t bits;
  uint32_t element = dtype == TCRT_DTYPE_STRING ? 8 * sizeof(tcrt_string_t) : tcrt_dtype_bits(dtype);
  if (!tcrt_mul(count, element, &bits) || !tcrt_add(bits, 7, &bits))
    return 0;
  *size_bytes = bits / 8;
  return 1;
}
