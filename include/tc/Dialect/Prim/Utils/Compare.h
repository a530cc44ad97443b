//===- Compare.h - what a comparison of two numbers gives -----------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_PRIM_UTILS_COMPARE_H
#define TC_DIALECT_PRIM_UTILS_COMPARE_H

#include "tc/Dialect/Prim/IR/Prim.h"

namespace tc::prim {

/// Whether `a kind b` holds, as prim.compare says: NE is true for NaN, the others are not.
template <typename T> bool holds(CompareKind kind, T a, T b) {
  switch (kind) {
  case CompareKind::EQ:
    return a == b;
  case CompareKind::NE:
    return a != b;
  case CompareKind::LT:
    return a < b;
  case CompareKind::LE:
    return a <= b;
  case CompareKind::GT:
    return a > b;
  case CompareKind::GE:
    return a >= b;
  }
  return false;
}

} // namespace tc::prim

#endif // TC_DIALECT_PRIM_UTILS_COMPARE_H
