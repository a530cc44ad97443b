//===- IndexedDims.h - which dims an op reaches by the values of an operand -----------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_DIALECT_PRIM_TRANSFORMS_INDEXEDDIMS_H
#define TC_LIB_DIALECT_PRIM_TRANSFORMS_INDEXEDDIMS_H

#include "tc/Dialect/Prim/IR/Prim.h"

namespace tc::prim {

/// Elements of an operand that index one dim: those in [-size, size) are valid.
struct IndexedDim {
  mlir::AffineExpr size;
  /// Which position of the operand's last dim, for ops whose indices are tuples; -1: all elements.
  int64_t column = -1;
};

/// The dims that operand `operand` of `op` indexes; none where it holds no indices.
llvm::SmallVector<IndexedDim> getIndexedDims(mlir::Operation *op, unsigned operand);

} // namespace tc::prim

#endif // TC_LIB_DIALECT_PRIM_TRANSFORMS_INDEXEDDIMS_H
