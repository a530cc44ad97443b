/*
 * Determinant.c - determinants of square matrices.
 *
 * Elimination with row exchanges, BLOCK columns at a time: what is right of a block loses the products of its rows with
 * those columns all at once, so that each element there is read and written once a block. The determinant is the
 * product of the pivots, negated for each exchange. Source: Golub and Van Loan, "Matrix Computations", section 3.4.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 */
#include "tc/Functions/Store.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 8 };

/* Every machine that runs compiled code has these; the compiler's own interpreter may do without. */
#if defined(__x86_64__)
#define WIDE __attribute__((target("avx2,fma")))
#else
#define WIDE
#endif

/* Overwrites `a` [n, n]. A pivot of 0 has zeros below only: their multiples are 0. */
#define DEFINE_DETERMINANT(name, attribute, number, absolute)                                                          \
  attribute static number name(number *restrict a, int64_t n) {                                                        \
    number result = 1;                                                                                                 \
    for (int64_t first = 0; first < n; first += BLOCK) {                                                               \
      const int64_t end = first + BLOCK < n ? first + BLOCK : n;                                                       \
      for (int64_t k = first; k < end; ++k) {                                                                          \
        int64_t best = k;                                                                                              \
        for (int64_t i = k + 1; i < n; ++i)                                                                            \
          if (absolute(a[i * n + k]) > absolute(a[best * n + k]))                                                      \
            best = i;                                                                                                  \
        if (best != k) {                                                                                               \
          for (int64_t j = first; j < n; ++j) {                                                                        \
            const number other = a[k * n + j];                                                                         \
            a[k * n + j] = a[best * n + j];                                                                            \
            a[best * n + j] = other;                                                                                   \
          }                                                                                                            \
          result = -result;                                                                                            \
        }                                                                                                              \
        const number pivot = a[k * n + k];                                                                             \
        result *= pivot;                                                                                               \
        for (int64_t i = k + 1; i < n; ++i) {                                                                          \
          const number factor = pivot == 0 ? 0 : a[i * n + k] / pivot;                                                 \
          a[i * n + k] = factor;                                                                                       \
          for (int64_t j = k + 1; j < end; ++j)                                                                        \
            a[i * n + j] -= factor * a[k * n + j];                                                                     \
        }                                                                                                              \
      }                                                                                                                \
      if (end == n)                                                                                                    \
        break;                                                                                                         \
      /* The block's own rows, each less those above it; then, of BLOCK rows each, what is below. */                   \
      for (int64_t k = first + 1; k < end; ++k)                                                                        \
        for (int64_t above = first; above < k; ++above) {                                                              \
          const number factor = a[k * n + above];                                                                      \
          number *restrict to = a + k * n;                                                                             \
          const number *from = a + above * n;                                                                          \
          for (int64_t j = end; j < n; ++j)                                                                            \
            to[j] -= factor * from[j];                                                                                 \
        }                                                                                                              \
      const number *r = a + first * n;                                                                                 \
      for (int64_t i = end; i < n; ++i) {                                                                              \
        number *restrict to = a + i * n;                                                                               \
        const number *f = to + first;                                                                                  \
        const number f0 = f[0], f1 = f[1], f2 = f[2], f3 = f[3], f4 = f[4], f5 = f[5], f6 = f[6], f7 = f[7];           \
        for (int64_t j = end; j < n; ++j)                                                                              \
          to[j] = to[j] - f0 * r[j] - f1 * r[n + j] - f2 * r[2 * n + j] - f3 * r[3 * n + j] - f4 * r[4 * n + j] -      \
                  f5 * r[5 * n + j] - f6 * r[6 * n + j] - f7 * r[7 * n + j];                                           \
      }                                                                                                                \
    }                                                                                                                  \
    return result;                                                                                                     \
  }

DEFINE_DETERMINANT(determinant_f32, , float, fabsf)
DEFINE_DETERMINANT(determinant_f64, , double, fabs)
DEFINE_DETERMINANT(wide_determinant_f32, WIDE, float, fabsf)
DEFINE_DETERMINANT(wide_determinant_f64, WIDE, double, fabs)

static int is_wide(void) {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return 0;
#endif
}

/* determinant(x [B, n, n] of f32 or f64) -> [B] of the same */
tcrt_status_t tcrt_determinant(const tcrt_services_t *services, tcrt_store_t *store, const tcrt_call_t *call) {
  (void)store;
  const tcrt_operand_t *x = &call->operands[0];
  const int64_t count = x->dims[0], n = x->dims[1];
  const int is_f64 = x->dtype == TCRT_DTYPE_F64, wide = is_wide();
  const size_t bytes = (size_t)n * (size_t)n * (is_f64 ? sizeof(double) : sizeof(float));
  void *matrix = malloc(bytes + 1);
  if (!matrix)
    return services->fail(TCRT_ERROR_MACHINE, "no memory left for Det");
  for (int64_t i = 0; i < count; ++i) {
    memcpy(matrix, (const char *)x->data + (size_t)i * bytes, bytes);
    if (is_f64)
      ((double *)call->results[0].data)[i] = (wide ? wide_determinant_f64 : determinant_f64)(matrix, n);
    else
      ((float *)call->results[0].data)[i] = (wide ? wide_determinant_f32 : determinant_f32)(matrix, n);
  }
  free(matrix);
  return TCRT_OK;
}
