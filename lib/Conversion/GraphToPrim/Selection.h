//===- Selection.h - sorting and choosing elements by their values, of all front ends -------------------*- C++ -*-===//
//
// How many elements are chosen is data: the count is bound at run time (emitCompact), bounded by what there is.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CONVERSION_GRAPHTOPRIM_SELECTION_H
#define TC_LIB_CONVERSION_GRAPHTOPRIM_SELECTION_H

#include "tc/Dialect/Prim/Utils/PrimBuilder.h"

namespace tc {

/// Numbers of the true elements of the 1-D bool tensor `mask`, in order: [count], where `count` is bound to their
/// number.
mlir::Value emitCompact(PrimBuilder &b, mlir::Value mask);

/// Positions along `axis` of the first `count` elements in order: as `v`, but with `count` elements along the axis.
mlir::Value emitArgSort(PrimBuilder &b, mlir::Value v, int64_t axis, mlir::AffineExpr count, bool descending);

mlir::Value emitGatherElements(PrimBuilder &b, mlir::Value source, mlir::Value indices, int64_t axis);

/// out[i] = 0, and `updates` where `numbers` name i: kind combines what meets. `length` elements.
mlir::Value emitScatterInto(PrimBuilder &b, mlir::AffineExpr length, mlir::Value numbers, mlir::Value updates,
                            std::optional<prim::ReduceKind> kind);

/// With one dim.
mlir::Value flattened(PrimBuilder &b, mlir::Value v);

/// [rank, count]: coordinates of the flat positions `numbers` in a tensor of `sizes`.
mlir::Value emitCoordinates(PrimBuilder &b, mlir::Value numbers, SizesRef sizes);

/// Slices of a tensor along an axis, those that are equal as one group.
struct Groups {
  mlir::Value first;   ///< [groups]: the number of each one's first slice
  mlir::Value groupOf; ///< [slices]: the number of each one's group
  mlir::Value counts;  ///< [groups]: how many slices each one has
};
enum class GroupOrder {
  OfValues,    ///< rising
  OfFirst,     ///< as they come first
  OfNeighbours ///< as they come, each run of equal slices a group
};
/// `equalNaN`: whether a NaN equals another.
Groups findGroups(PrimBuilder &b, mlir::Value x, int64_t axis, GroupOrder order, bool equalNaN);

} // namespace tc

#endif // TC_LIB_CONVERSION_GRAPHTOPRIM_SELECTION_H
