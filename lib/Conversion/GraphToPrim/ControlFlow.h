//===- ControlFlow.h - branches and loops of all front ends ---------------------------------------------*- C++ -*-===//
//
// What ONNX's If, Loop and Scan and PyTorch's cond, while_loop, scan and map have in common.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CONVERSION_GRAPHTOPRIM_CONTROLFLOW_H
#define TC_LIB_CONVERSION_GRAPHTOPRIM_CONTROLFLOW_H

#include "NodeContext.h"

namespace tc {

/// One 0-D bool of a tensor with one element.
mlir::FailureOr<mlir::Value> scalarCondition(NodeContext &ctx, mlir::Value v);

/// The node's results by one graph or the other, both of which take `arguments`. A known condition leaves one of them.
mlir::LogicalResult emitBranches(NodeContext &ctx, mlir::Value condition, mlir::Region &thenGraph,
                                 mlir::Region &elseGraph, mlir::ValueRange arguments);

/// Emits an iteration, of this number (0-D i64) and with these carried values: whether there is a next one, the carried
/// values for it, and what it gives to results that have an element for each iteration.
using LoopBody = llvm::function_ref<mlir::FailureOr<llvm::SmallVector<mlir::Value>>(
    mlir::Value iteration, llvm::ArrayRef<mlir::Value> carried)>;
/// The node's results by a loop: carried values as they are at the end, whose sizes may change, then results along dim
/// 0. The body is emitted until the carried types settle.
mlir::LogicalResult emitLoop(NodeContext &ctx, mlir::Value maxTrips, mlir::Value condition,
                             llvm::ArrayRef<mlir::Value> inits, LoopBody emitBody);

/// What a Scan loops over: slices of its inputs along dims of their own, from the first or the last on.
struct ScanLoop {
  mlir::Region *graph;
  llvm::SmallVector<mlir::Value> states, inputs;
  /// What the graph takes behind states and slices, the same in each iteration.
  llvm::SmallVector<mlir::Value> extra;
  llvm::SmallVector<int64_t> inputAxes, inputDirections, outputDirections;
  mlir::AffineExpr length;
  /// 0-D i64: how many slices to take, at most `length`; null: all.
  mlir::Value trips;
};

/// A loop under construction: what it carries, with the values before it, and what its body yields.
struct LoopParts {
  mlir::Block *before, *body;
  unsigned outerSymbols; ///< how many symbols there were before the body
  /// Rows whose sizes are 0 come from an inner loop without iterations, which knows none.
  bool mayBeEmpty = false;
  llvm::SmallVector<mlir::Value> starts, results;
  llvm::SmallVector<mlir::Type> types;
  llvm::SmallVector<int64_t> binds;
};

/// Carries a tensor of `length` rows, in which each iteration puts `value` at `row`. Sizes that are known only inside
/// the loop are 0 before the first iteration, then those of all rows.
void collectRows(NodeContext &ctx, LoopParts &loop, mlir::Value value, mlir::AffineExpr length, mlir::Value row);

/// The final states, then each output with its slices along dim 0.
mlir::FailureOr<llvm::SmallVector<mlir::Value>> emitScan(NodeContext &ctx, const ScanLoop &scan);

/// The length of dim `axis` that all of `inputs` share.
mlir::FailureOr<mlir::AffineExpr> commonSize(NodeContext &ctx, mlir::ValueRange inputs, llvm::ArrayRef<int64_t> axes,
                                             const llvm::Twine &what);

} // namespace tc

#endif // TC_LIB_CONVERSION_GRAPHTOPRIM_CONTROLFLOW_H
