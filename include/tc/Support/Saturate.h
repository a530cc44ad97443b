//===- Saturate.h - arithmetic on sizes and indices that never wraps ------------------------------------*- C++ -*-===//
//
// Sizes, starts, ends and steps come from models: INT64_MAX means "to the end", INT64_MIN "from before the beginning".
// A result beyond int64_t is the nearest bound, so that clamping to a dim gives what exact arithmetic would.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_SUPPORT_SATURATE_H
#define TC_SUPPORT_SATURATE_H

#include "llvm/Support/MathExtras.h"
#include <cstdint>

namespace tc {

inline int64_t saturatingAdd(int64_t a, int64_t b) {
  int64_t sum;
  return llvm::AddOverflow(a, b, sum) ? (a < 0 ? INT64_MIN : INT64_MAX) : sum;
}
inline int64_t saturatingSub(int64_t a, int64_t b) {
  int64_t difference;
  return llvm::SubOverflow(a, b, difference) ? (a < 0 ? INT64_MIN : INT64_MAX) : difference;
}
inline int64_t saturatingMul(int64_t a, int64_t b) {
  int64_t product;
  return llvm::MulOverflow(a, b, product) ? ((a < 0) != (b < 0) ? INT64_MIN : INT64_MAX) : product;
}
inline int64_t saturatingNegate(int64_t a) { return saturatingSub(0, a); }
/// The magnitude: INT64_MAX of INT64_MIN.
inline int64_t saturatingAbs(int64_t a) { return a < 0 ? saturatingNegate(a) : a; }

} // namespace tc

#endif // TC_SUPPORT_SATURATE_H
