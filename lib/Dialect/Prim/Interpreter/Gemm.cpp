//===- Gemm.cpp - the interpreter's matrix product ----------------------------------------------------------------===//
//
// Compiled with -O3 and -ffp-contract=off: a fused multiply-add would give other bits where the machine has one, and
// constants folded at compile time must not depend on the machine that compiles.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Gemm.h"

#include <algorithm>

#if defined(__x86_64__) && defined(__linux__) && !defined(__SANITIZE_ADDRESS__)
#define TC_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define TC_CLONES
#endif

namespace {

constexpr int64_t kRows = 4, kColumns = 32, kDepth = 256;

/// One tile of kRows x kColumns results over `k` products, held in vectors.
__attribute__((always_inline)) inline void multiplyTile(int64_t k, const double *a, int64_t aRow, const double *b,
                                                        int64_t bRow, double *c, int64_t cRow) {
  double sum[kRows][kColumns];
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t j = 0; j < kColumns; ++j)
      sum[i][j] = c[i * cRow + j];
  for (int64_t p = 0; p < k; ++p)
    for (int64_t i = 0; i < kRows; ++i)
      for (int64_t j = 0; j < kColumns; ++j)
        sum[i][j] += a[i * aRow + p] * b[p * bRow + j];
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t j = 0; j < kColumns; ++j)
      c[i * cRow + j] = sum[i][j];
}

} // namespace

TC_CLONES void tc::prim::interpreter::multiply(int64_t m, int64_t n, int64_t k, const double *a, int64_t aRow,
                                               const double *b, int64_t bRow, double *c, int64_t cRow) {
  for (int64_t p = 0; p < k; p += kDepth) {
    int64_t depth = std::min(kDepth, k - p);
    for (int64_t j = 0; j < n; j += kColumns) {
      int64_t columns = std::min(kColumns, n - j);
      for (int64_t i = 0; i < m; i += kRows) {
        int64_t rows = std::min(kRows, m - i);
        const double *aTile = a + i * aRow + p, *bTile = b + p * bRow + j;
        double *cTile = c + i * cRow + j;
        if (rows == kRows && columns == kColumns) {
          multiplyTile(depth, aTile, aRow, bTile, bRow, cTile, cRow);
          continue;
        }
        for (int64_t q = 0; q < depth; ++q)
          for (int64_t r = 0; r < rows; ++r)
            for (int64_t s = 0; s < columns; ++s)
              cTile[r * cRow + s] += aTile[r * aRow + q] * bTile[q * bRow + s];
      }
    }
  }
}

TC_CLONES void tc::prim::interpreter::multiplyAdd(int64_t n, const double *a, const double *b, double *c) {
  for (int64_t i = 0; i < n; ++i)
    c[i] += a[i] * b[i];
}
