//===- Reduction.h - a reduction in one form ----------------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_ANALYSIS_REDUCTION_H
#define TC_ANALYSIS_REDUCTION_H

#include "tc/Dialect/Prim/IR/Prim.h"

namespace tc {

/// A prim.reduce by the sizes of its dims.
struct Reduction {
  explicit Reduction(prim::ReduceOp op);

  mutable prim::ReduceOp op; // its accessors are not const
  /// Of the operand, of the result, and of the operand's reduced dims.
  llvm::SmallVector<mlir::AffineExpr> sizes, results, reduced;
  /// Of the result, without the last where it is the operand's.
  llvm::SmallVector<mlir::AffineExpr> outer;
  /// Whether the operand's last dim stays: neighbours are added to neighbours.
  bool keepsLast;

  mlir::Type element() const { return llvm::cast<mlir::RankedTensorType>(op.getOperand().getType()).getElementType(); }
};

/// For a reduction over the trailing dims of its operand's space: the number of dims of that space that are kept.
/// nullopt for other reductions, and for those over dims of size 1 only.
std::optional<unsigned> getRowRank(mlir::Operation *reduce);

} // namespace tc

#endif // TC_ANALYSIS_REDUCTION_H
