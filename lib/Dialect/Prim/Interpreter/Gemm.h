//===- Gemm.h - the interpreter's matrix product --------------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_DIALECT_PRIM_INTERPRETER_GEMM_H
#define TC_LIB_DIALECT_PRIM_INTERPRETER_GEMM_H

#include <cstdint>

namespace tc::prim::interpreter {

/// c[m][n] += sum over k of a[m][k] * b[k][n]; row-major, with the distance between rows. Each sum runs over k in order
/// with one rounding per multiplication and addition, so the bits do not depend on the machine.
void multiply(int64_t m, int64_t n, int64_t k, const double *a, int64_t aRow, const double *b, int64_t bRow, double *c,
              int64_t cRow);

/// c[i] += a[i] * b[i].
void multiplyAdd(int64_t n, const double *a, const double *b, double *c);

} // namespace tc::prim::interpreter

#endif // TC_LIB_DIALECT_PRIM_INTERPRETER_GEMM_H
