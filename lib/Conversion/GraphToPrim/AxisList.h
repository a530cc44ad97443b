//===- AxisList.h - axes that are data -----------------------------------------------------------------*- C++ -*-===//
//
// An operator may be given its axes as a tensor whose values only the run knows; their number, which fixes the result's
// rank, is known. The sizes of the result then depend on data. Example: reducing [N, M] over one axis of that kind
// gives [S], with S a fresh symbol that is M or N.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CONVERSION_GRAPHTOPRIM_AXISLIST_H
#define TC_LIB_CONVERSION_GRAPHTOPRIM_AXISLIST_H

#include "NodeContext.h"

namespace tc {

class AxisList {
public:
  /// `axes`: a 1-D integer tensor of fixed length of axes in [-rank, rank). Fails if it is none.
  static mlir::FailureOr<AxisList> get(NodeContext &ctx, mlir::Value axes, int64_t rank);

  int64_t count() const { return PrimBuilder::typeOf(axes).getDimSize(0); }
  /// For each dim, the element of `values` [count] that stands for it, or the one of `otherwise` [rank] (i64).
  mlir::Value spread(mlir::Value values, mlir::Value otherwise) const;
  /// For each dim, `listed` or `otherwise` (i64 [rank]).
  mlir::Value choose(mlir::Value listed, mlir::Value otherwise) const;
  /// The elements of `values` [rank] of dims that are not listed: i64 [rank - count].
  mlir::Value dropListed(mlir::Value values) const;
  /// The reverse: `values` [rank - count] at the dims that are not listed, 1 at the others.
  mlir::Value insertOnes(mlir::Value values) const;

private:
  AxisList(NodeContext &ctx, mlir::Value axes, int64_t rank);
  mlir::Value along(mlir::Value v, int64_t rows, int64_t columns, int64_t dim) const;
  mlir::Value placeUnlisted(int64_t count, bool byUnlisted, mlir::Value values) const;

  PrimBuilder &b;
  mlir::Value axes;     // i64 [count]
  mlir::Value matches;  // i1 [rank, count]
  mlir::Value isListed; // i1 [rank]
  mlir::Value position; // i64 [rank]: how many dims before are not listed
  int64_t rank;
};

/// Sizes from an i64 tensor: a fresh symbol for each element, in [low, high] of `bounds`.
Sizes bindSizes(PrimBuilder &b, llvm::StringRef name, mlir::Value values, std::pair<int64_t, int64_t> bounds);

/// `x` with each listed dim split in [1, size] and each other in [size, 1]: [s0, r0, s1, r1, ..]. What holds for all
/// listed dims of x then holds for every second dim of the result.
mlir::Value splitListed(PrimBuilder &b, mlir::Value x, const AxisList &list);

} // namespace tc

#endif // TC_LIB_CONVERSION_GRAPHTOPRIM_AXISLIST_H
