//===- Access.h - how values lie in memory ------------------------------------------------------------*- C++ -*-===//
//
// What a kernel reads lies in the region's inputs; movement and pointwise ops stand between. These answer where a value
// of the region's body is found there, as far as it is known when the kernel is made.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_ANALYSIS_ACCESS_H
#define TC_ANALYSIS_ACCESS_H

#include "tc/Analysis/Product.h"

namespace tc {

/// Number of the region input behind `value` if only reshapes stand between: it lies in memory as it is read.
std::optional<unsigned> inputThroughReshapes(mlir::Value value);

/// Whether dim `dim` of `value` is contiguous in memory, as far as movement and pointwise ops tell.
bool isInnermost(mlir::Value value, int64_t dim);

/// A constant input read through transposes, reshapes and slices of static sizes: `at` gives the position in `value` as
/// expressions over some dims, the result the input's number and the position in it. `widens`: also through one
/// conversion of f16 or bf16 to f32; then the input's elements are narrower than those of `value`.
struct ConstantView {
  unsigned input;
  mlir::Type element; // of the input
  llvm::SmallVector<mlir::AffineExpr> at;
};
std::optional<ConstantView> traceConstant(mlir::Value value, llvm::function_ref<bool(unsigned)> isConstant,
                                          llvm::SmallVector<mlir::AffineExpr> at, bool widens = false);

/// Row-major split of a linear position as expressions; sizes are static. The first position is not reduced.
llvm::SmallVector<mlir::AffineExpr> delinearizeExpr(mlir::AffineExpr linear, llvm::ArrayRef<mlir::AffineExpr> sizes);

//===--- operands of products -------------------------------------------------------------------------------------===//

/// Lines of an operand that lie in memory as they are used: rows or columns with K contiguous, or steps of K with
/// columns contiguous.
struct LinesInPlace {
  unsigned input; // of the region
  mlir::AffineExpr stride;
  llvm::SmallVector<mlir::AffineExpr> batchStrides;
};
/// The operand's lines along `inner`, its other dims but those of the batch being one after the other at one distance.
std::optional<LinesInPlace> linesInPlace(const Product &p, mlir::Value operand, DimRef::Kind inner);
/// Whether the last part of K is contiguous in the memory of B, and not the columns.
bool isDepthInnermost(const Product &p);
/// Whether rows of A are contiguous in memory, and not the last part of K.
bool isRowInnermost(const Product &p);

} // namespace tc

#endif // TC_ANALYSIS_ACCESS_H
