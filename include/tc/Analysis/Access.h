//===- Access.h - how values lie in memory ------------------------------------------------------------*- C++ -*-===//
//
// What a kernel reads lies in the region's inputs; movement and pointwise ops stand between. Each question has one
// answer here, which fusion and strategies share:
//
//   from which dim of what is read does an operand's position come?      DimMap, mapOperand, alignedRank
//   is it a region's input as it stands, or a constant at which place?   inputThroughReshapes, traceConstant
//   is it a region's input at other distances?                           inputThroughViews
//   which dim's neighbours are neighbours in memory?                     isInnermost, isReadByVectors, isReadByRows
//   does an op change that?                                              transposesInnermost
//   do a matrix's rows or columns lie in memory as a product takes them? linesInPlace
//
// isInnermost is the usual case of what is read: of several operands it follows the first that is not repeated.
// Schedules weigh by it, and code is right either way.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_ANALYSIS_ACCESS_H
#define TC_ANALYSIS_ACCESS_H

#include "tc/Analysis/Product.h"

namespace tc {

/// Per dim of a tensor, the dim of another space that tells the position along it, kOrigin or kUnknown.
using DimMap = llvm::SmallVector<int>;
/// The map of a tensor's own space.
DimMap identityMap(mlir::Value value);
/// Map of operand `operand` of `op`, given the map of its result.
DimMap mapOperand(mlir::Operation *op, unsigned operand, llvm::ArrayRef<int> resultMap);
/// Whether `map` of `tensor` takes the first dims of the space with the dims `spaceDims` (those that are not of size
/// 1), in order. Returns how many; nullopt if it does something else.
std::optional<unsigned> alignedRank(mlir::Value tensor, llvm::ArrayRef<int> map, mlir::Value spaceOf);

/// Number of the region input behind `value` if only reshapes stand between: it lies in memory as it is read.
std::optional<unsigned> inputThroughReshapes(mlir::Value value);

/// A value that lies in a region's input: the element at `at` is at offset + sum of at[i] * strides[i] there.
struct StridedInput {
  unsigned input;
  mlir::AffineExpr offset;
  llvm::SmallVector<mlir::AffineExpr> strides;
};
/// The same through transposes, slices and repetition, too; nullopt where there is no such offset.
std::optional<StridedInput> inputThroughViews(mlir::Value value);

/// Whether dim `dim` of `value` is contiguous in memory, as far as movement and pointwise ops tell.
bool isInnermost(mlir::Value value, int64_t dim);

/// Whether the op is a transpose whose last dim is not the innermost one of its operand, not counting dims of size 1.
bool transposesInnermost(mlir::Operation *op);

/// Whether neighbours along dim `dim` of `value` are read as vectors, or are one element, in all that `value` is
/// computed from.
bool isReadByVectors(mlir::Value value, int64_t dim);

/// Whether a mask [.., T, S] is read from memory along both T and S, with S contiguous: lanes along T would gather.
bool isReadByRows(mlir::Value mask);

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
