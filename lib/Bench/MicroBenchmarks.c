/*
 * MicroBenchmarks.c - loops that do nothing but multiply and add, or read, or copy
 *
 * Compiled with -ffp-contract=fast, which turns a * b + c into one instruction where the target has it.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#include "MicroBenchmarks.h"

/* 12 independent chains: more than latency (4) times throughput (2 a cycle) of any x86-64 core, and with two operands
 * no more than the 16 registers of AVX2. The 8 of `read` leave no load waiting for another. */
#define EACH_CHAIN(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)
#define EACH_LOAD(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
enum { CHAINS = 12, LOADS = 8 };

#define START(i) floats c##i = a + (float)i;
#define STEP(i) c##i = c##i * a + b;
#define SUM(i) sum += c##i;
#define ZERO(i) ints r##i = {0};
#define READ(i) r##i ^= from[i * part];
#define MERGE(i) all ^= r##i;
#define COPY(i) to[i] = from[i];

#define DEFINE(NAME, WIDTH, TARGET)                                                                                    \
  TARGET static double multiply_add_##NAME(uint64_t iterations, float *result) {                                       \
    typedef float floats __attribute__((vector_size(WIDTH)));                                                          \
    /* Not constants for the compiler; the values tend to 2. */                                                        \
    volatile float half = 0.5f, one = 1.0f;                                                                            \
    floats a = (floats){0} + half, b = (floats){0} + one;                                                              \
    EACH_CHAIN(START)                                                                                                  \
    for (uint64_t i = 0; i < iterations; ++i) {                                                                        \
      EACH_CHAIN(STEP)                                                                                                 \
    }                                                                                                                  \
    floats sum = {0};                                                                                                  \
    EACH_CHAIN(SUM)                                                                                                    \
    *result = sum[0];                                                                                                  \
    return 2.0 * CHAINS * (WIDTH / sizeof(float)) * (double)iterations;                                                \
  }                                                                                                                    \
  TARGET static void read_##NAME(const void *data, uint64_t bytes, float *result) {                                    \
    typedef uint32_t ints __attribute__((vector_size(WIDTH)));                                                         \
    /* As many streams as loads: the hardware's prefetcher follows one a page, and is slower with fewer. */            \
    const uint64_t part = bytes / WIDTH / LOADS;                                                                       \
    const ints *from = data, *end = from + part;                                                                       \
    EACH_LOAD(ZERO)                                                                                                    \
    for (; from < end; ++from) {                                                                                       \
      EACH_LOAD(READ)                                                                                                  \
    }                                                                                                                  \
    ints all = {0};                                                                                                    \
    EACH_LOAD(MERGE)                                                                                                   \
    *result = (float)all[0];                                                                                           \
  }                                                                                                                    \
  TARGET static void copy_##NAME(void *target, const void *source, uint64_t bytes) {                                   \
    typedef uint32_t ints __attribute__((vector_size(WIDTH)));                                                         \
    ints *to = target;                                                                                                 \
    const ints *from = source, *end = from + bytes / WIDTH;                                                            \
    for (; from < end; from += LOADS, to += LOADS) {                                                                   \
      EACH_LOAD(COPY)                                                                                                  \
      /* Or the compiler makes it a call of memcpy, whose choice of stores is its own. */                              \
      __asm__ volatile("" : : : "memory");                                                                             \
    }                                                                                                                  \
  }                                                                                                                    \
  const tc_micro_t tc_micro_##NAME = {#NAME, multiply_add_##NAME, read_##NAME, copy_##NAME};

DEFINE(avx512, 64, __attribute__((target("avx512f"))))
DEFINE(avx2, 32, __attribute__((target("avx2,fma"))))
DEFINE(sse2, 16, )
