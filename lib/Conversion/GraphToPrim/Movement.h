//===- Movement.h - slices, pads, indices and concatenations of all front ends --------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CONVERSION_GRAPHTOPRIM_MOVEMENT_H
#define TC_LIB_CONVERSION_GRAPHTOPRIM_MOVEMENT_H

#include "NodeContext.h"

namespace tc {

/// Operands of one rank and element type one behind the other; sizes of their other dims that are not provably equal
/// get guards.
mlir::FailureOr<mlir::Value> emitConcat(NodeContext &ctx, llvm::ArrayRef<mlir::Value> values, int64_t axis);

/// Dims are shorter: steps of this length and more take one element, and are not told apart.
inline constexpr int64_t kLongestStep = int64_t(1) << 62;

/// A start or end of a slice: an expression, or a value where it depends on data. Negative ones count from the end,
/// and what lies outside is cut.
struct SliceBound {
  mlir::AffineExpr expr;
  mlir::Value value;
};

/// One dim of a slice: start and count of elements.
struct SliceDim {
  mlir::AffineExpr start, count;
};

/// `most`: elements at most, if that is known.
mlir::FailureOr<SliceDim> resolveSlice(NodeContext &ctx, mlir::Value source, mlir::AffineExpr extent, SliceBound start,
                                       SliceBound end, int64_t step, std::optional<int64_t> most);

/// Has runs refused in which elements are taken, so many as tensors of the sizes `taken` have, along dims that have
/// none: indices have no nearest element to be clamped to.
mlir::LogicalResult requireElements(NodeContext &ctx, SizesRef taken, SizesRef sizes);
/// Refuses constant indices that are no positions of dims of these sizes: of the only one, or, for each number along
/// the last dim of `indices`, of its own. Sizes that only the run knows are not asked.
mlir::LogicalResult requireInside(NodeContext &ctx, mlir::Value indices, SizesRef sizes);

/// The places in row-major order of elements at `indices`, one tensor for each of the dims with `sizes`; negative
/// indices count from the end.
mlir::Value emitPlaces(PrimBuilder &b, llvm::ArrayRef<mlir::Value> indices, SizesRef sizes, SizesRef of);

/// `x` with `low` and `high` elements more, or where they are negative fewer, in each dim. `mode`: constant (they are
/// `value`), edge, reflect or wrap.
mlir::FailureOr<mlir::Value> emitPad(NodeContext &ctx, mlir::Value x, SizesRef low, SizesRef high, mlir::Value value,
                                     llvm::StringRef mode);

} // namespace tc

#endif // TC_LIB_CONVERSION_GRAPHTOPRIM_MOVEMENT_H
