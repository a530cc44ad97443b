/*
 * MicroBenchmarks.h - loops that do nothing but multiply and add, or read, or copy: what a roofline is measured with.
 *
 * Each function exists for the vector widths of the instruction sets below; the caller gives one that the machine has.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#ifndef TC_LIB_BENCH_MICROBENCHMARKS_H
#define TC_LIB_BENCH_MICROBENCHMARKS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tc_micro_t {
  const char *name; /* of the instruction set */
  /* Floating-point operations (f32) of one call; the result keeps the loop alive. */
  double (*multiply_add)(uint64_t iterations, float *result);
  /* Reads `bytes` bytes, a multiple of 512 at an address aligned to 64. */
  void (*read)(const void *data, uint64_t bytes, float *result);
  /* Copies `bytes` bytes, as above, with plain stores. */
  void (*copy)(void *to, const void *from, uint64_t bytes);
} tc_micro_t;

/* For AVX-512F, for AVX2 with FMA, and for any x86-64. */
extern const tc_micro_t tc_micro_avx512, tc_micro_avx2, tc_micro_sse2;

#ifdef __cplusplus
}
#endif

#endif /* TC_LIB_BENCH_MICROBENCHMARKS_H */
