/*
 * Names.c - names and sizes of what the format numbers: element types, CPU features, sections; the version.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#include "tc/Format/Container.h"
#include "tc/Format/Error.h"

#include <stdio.h>

#ifndef TCRT_VERSION
#define TCRT_VERSION "0.0.0"
#endif

const char *tcrt_version(void) { return TCRT_VERSION; }

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
  if (!size_bytes)
    return 0;
  *size_bytes = 0;
  if (rank && !dims)
    return 0;
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

void tcrt_cpu_feature_names(uint64_t features, char *text, size_t size) {
  static const char *const names[] = {
      "sse4.2",   "avx",      "avx2",       "fma",        "f16c",        "bmi2",         "avx512f",        "avx512bw",
      "avx512cd", "avx512dq", "avx512vl",   "avx512vnni", "avx512bf16",  "avx512fp16",   "avxvnni",        "amx-tile",
      "amx-bf16", "amx-int8", "avx512vbmi", "avx512ifma", "avx512vbmi2", "avx512bitalg", "avx512vpopcntdq"};
  size_t used = 0;
  text[0] = 0;
  for (uint32_t i = 0; i < 64; ++i) {
    if (!(features >> i & 1))
      continue;
    int written = i < sizeof names / sizeof names[0]
                      ? snprintf(text + used, size - used, "%s%s", used ? ", " : "", names[i])
                      : snprintf(text + used, size - used, "%sfeature %u", used ? ", " : "", i);
    if (written < 0 || (size_t)written >= size - used)
      return;
    used += (size_t)written;
  }
}

const char *tcrt_device_name(uint32_t device) {
  switch (device) {
  case TCRT_DEVICE_CPU:
    return "cpu";
  case TCRT_DEVICE_CUDA:
    return "cuda";
  default:
    return NULL;
  }
}

void tcrt_arch_name(uint32_t arch, char *text, size_t size) {
  snprintf(text, size, "sm_%u%s", arch / 10, arch % 10 ? "a" : "");
}

const char *tcrt_section_kind_name(uint32_t kind) {
  static const char *const names[] = {"unknown", "manifest", "signature",    "host code", "cubin",
                                      "PTX",     "weights",  "weights file", "artifact",  "strings"};
  return kind < sizeof names / sizeof names[0] ? names[kind] : names[0];
}
