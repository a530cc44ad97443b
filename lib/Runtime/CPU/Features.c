/*
 * Features.c - what this CPU and its operating system offer (Intel SDM volume 2, CPUID; volume 1, sections 13.1-13.3).
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#define _GNU_SOURCE
#include "../Internal.h"

#include <cpuid.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t read_xcr0(void) {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t)high << 32 | low;
}

uint64_t tcrt_cpu_features(void) {
  uint32_t a, b, c, d, b7 = 0, c7 = 0, d7 = 0, a71 = 0, c81 = 0;
  uint64_t features = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d))
    return 0;
  if (__get_cpuid_count(7, 0, &a, &b7, &c7, &d7) && a >= 1) {
    uint32_t unused_b, unused_c, unused_d;
    __get_cpuid_count(7, 1, &a71, &unused_b, &unused_c, &unused_d);
  }
  uint32_t unused_a, unused_b, unused_d;
  __get_cpuid(0x80000001, &unused_a, &unused_b, &c81, &unused_d);
  int has_xsave = c >> 27 & 1;
  uint64_t xcr0 = has_xsave ? read_xcr0() : 0;
  int avx_state = (xcr0 & 0x6) == 0x6, avx512_state = (xcr0 & 0xe6) == 0xe6, amx_state = (xcr0 & 0x60000) == 0x60000;
#define FEATURE(condition, bit) features |= (condition) ? (bit) : 0
  FEATURE(c >> 20 & 1 && c >> 23 & 1, TCRT_CPU_SSE42);
  FEATURE(b7 >> 3 & 1 && b7 >> 8 & 1 && c81 >> 5 & 1 && c >> 22 & 1, TCRT_CPU_BMI2);
  if (avx_state && c >> 28 & 1) {
    features |= TCRT_CPU_AVX;
    FEATURE(b7 >> 5 & 1, TCRT_CPU_AVX2);
    FEATURE(c >> 12 & 1, TCRT_CPU_FMA);
    FEATURE(c >> 29 & 1, TCRT_CPU_F16C);
    FEATURE(a71 >> 4 & 1, TCRT_CPU_AVXVNNI);
    if (avx512_state && b7 >> 16 & 1) {
      features |= TCRT_CPU_AVX512F;
      FEATURE(b7 >> 30 & 1, TCRT_CPU_AVX512BW);
      FEATURE(b7 >> 28 & 1, TCRT_CPU_AVX512CD);
      FEATURE(b7 >> 17 & 1, TCRT_CPU_AVX512DQ);
      FEATURE(b7 >> 31 & 1, TCRT_CPU_AVX512VL);
      FEATURE(b7 >> 21 & 1, TCRT_CPU_AVX512IFMA);
      FEATURE(c7 >> 1 & 1, TCRT_CPU_AVX512VBMI);
      FEATURE(c7 >> 6 & 1, TCRT_CPU_AVX512VBMI2);
      FEATURE(c7 >> 11 & 1, TCRT_CPU_AVX512VNNI);
      FEATURE(c7 >> 12 & 1, TCRT_CPU_AVX512BITALG);
      FEATURE(c7 >> 14 & 1, TCRT_CPU_AVX512VPOPCNTDQ);
      FEATURE(d7 >> 23 & 1, TCRT_CPU_AVX512FP16);
      FEATURE(a71 >> 5 & 1, TCRT_CPU_AVX512BF16);
    }
  }
  if (amx_state) {
    FEATURE(d7 >> 24 & 1, TCRT_CPU_AMX_TILE);
    FEATURE(d7 >> 22 & 1, TCRT_CPU_AMX_BF16);
    FEATURE(d7 >> 25 & 1, TCRT_CPU_AMX_INT8);
  }
#undef FEATURE
  return features;
}

static pthread_once_t amx_once = PTHREAD_ONCE_INIT;
static int amx_granted;

static void request_amx(void) {
  /* arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA), Linux Documentation/arch/x86/xstate.rst. Threads that are made
   * later inherit it, and so do those that are there. */
  amx_granted = syscall(SYS_arch_prctl, 0x1023, 18) == 0;
}

int tcrt_request_amx(void) {
  pthread_once(&amx_once, request_amx);
  return amx_granted;
}

int tcrt_is_virtual_machine(void) {
  uint32_t a, b, c, d;
  return __get_cpuid(1, &a, &b, &c, &d) && c >> 31;
}

uint32_t tcrt_usable_cores(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    int count = CPU_COUNT(&set);
    if (count > 0)
      return (uint32_t)count;
  }
  long count = sysconf(_SC_NPROCESSORS_ONLN);
  return count > 0 ? (uint32_t)count : 1;
}
