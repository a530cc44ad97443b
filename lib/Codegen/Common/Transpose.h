//===- Transpose.h - regions in which another dim becomes the last --------------------------------------*- C++ -*-===//
//
// A transpose whose result has another last dim than its operand, what stands before it, and pointwise ops and
// bijections behind it: the problem of the strategies that turn tiles.
//
// Where the result's last dim is short, those before it up to the operand's last one count as one with it.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CODEGEN_COMMON_TRANSPOSE_H
#define TC_LIB_CODEGEN_COMMON_TRANSPOSE_H

#include "Common/Generators.h"

namespace tc::codegen {

struct TransposeProblem {
  mutable prim::TransposeOp op; // accessors of ops are not const
  const Epilogue &epilogue;
  /// The dim of the result that is last in the operand.
  size_t dim;
  llvm::SmallVector<mlir::AffineExpr> sizes; // of the result, whose dims of `columns` are one
  llvm::SmallVector<mlir::AffineExpr> columns;
  bool isNarrow; // the last dim is short

  mlir::Type element() const { return llvm::cast<mlir::RankedTensorType>(op.getType()).getElementType(); }
  /// Position in the result, whose dims of columns are one in `at`.
  llvm::SmallVector<Index> inResult(Emitter &em, llvm::ArrayRef<Index> at) const;
  /// Position in the operand of the element at `at` of the result.
  llvm::SmallVector<Index> inOperand(Emitter &em, llvm::ArrayRef<Index> at) const;
};

std::optional<TransposeProblem> analyzeTranspose(const RegionProblem &region);

} // namespace tc::codegen

#endif // TC_LIB_CODEGEN_COMMON_TRANSPOSE_H
