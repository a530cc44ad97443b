//===- RegionInfo.h - what a fused region does --------------------------------------------------------*- C++ -*-===//
//
// Analysis of a kernel.region for scheduling, code generation and explain: its anchor, its iteration space, how it
// reads each input, and its work as size expressions. Computed from the region's body alone; nothing is cached in the
// IR.
//
// Example: a layer norm of x [4, 128, 768] with scale [768] has no anchor, the space {4, 128, 768}, rowRank 2, x read
// as Full and the scale as Column.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_ANALYSIS_REGIONINFO_H
#define TC_ANALYSIS_REGIONINFO_H

#include "tc/Dialect/Kernel/IR/Kernel.h"
#include "tc/Dialect/Prim/IR/Prim.h"

namespace tc {

/// How a region reads an input, from cheap to costly; of several reads the last in this list counts.
enum class AccessClass {
  Scalar,        ///< one element
  Row,           ///< depends on the leading dims of the space only
  Column,        ///< depends on the trailing dims only: the same for each row
  Full,          ///< at the position of the space
  Broadcast,     ///< some other choice of the dims, in order
  Permuted,      ///< the dims in another order
  Moved,         ///< sliced, padded, concatenated or reshaped
  Gathered,      ///< at positions that are data
  AnchorOperand, ///< operand of the anchor, perhaps through movement ops
};
/// The name of `access` in lower case, as explain prints it.
llvm::StringRef stringify(AccessClass access);

struct RegionInput {
  mlir::BlockArgument value;
  AccessClass access = AccessClass::Scalar;
  /// Bytes that are needed of it: what slices and gathers take, else all of it.
  mlir::AffineExpr bytes;
};

struct RegionInfo {
  /// Contraction, window, recurrent or other op that decides the strategy; a reduction over other than trailing dims;
  /// null for loops over `space`.
  mlir::Operation *anchor = nullptr;
  /// Sizes of the iteration space: the anchor's result, else the operand of the reductions over trailing dims, else an
  /// output.
  llvm::SmallVector<mlir::AffineExpr> space;
  /// Leading dims of `space` that the reductions over trailing dims keep; rank of the space if there is none.
  unsigned rowRank = 0;
  bool hasRowReduction = false;
  llvm::SmallVector<RegionInput> inputs;
  mlir::AffineExpr flops;
  /// Inputs and outputs, each once.
  mlir::AffineExpr bytes;
  /// Ops in the region.
  int64_t ops = 0;

  static RegionInfo get(kernel::RegionOp region);
};

/// Floating-point or integer operations of one primitive; a multiply-add counts 2, a transcendental function 1.
mlir::AffineExpr getFlops(mlir::Operation *op);
/// Bytes of a tensor in memory (bool takes a byte).
mlir::AffineExpr getBytes(mlir::Type type);

} // namespace tc

#endif // TC_ANALYSIS_REGIONINFO_H
