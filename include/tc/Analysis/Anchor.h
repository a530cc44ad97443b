//===- Anchor.h - the op that a region is built around, and what follows it -----------------------------*- C++ -*-===//
//
// The anchor of a region is its one op that is worth a strategy of its own: dot_general, block_dot, conv, attention,
// rnn. What follows it, the epilogue, is computed where its result is at hand: pointwise ops, transposes and reshapes,
// up to the region's outputs. Reductions and windows that stand alone have one as well.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_ANALYSIS_ANCHOR_H
#define TC_ANALYSIS_ANCHOR_H

#include "tc/Dialect/Kernel/IR/Kernel.h"
#include "tc/Dialect/Prim/IR/Prim.h"

namespace tc {

/// The anchor; null if the region has none or several. Strategies ask their RegionProblem.
mlir::Operation *findAnchor(kernel::RegionOp region);

/// What the region computes from one result of its anchor.
class Epilogue {
public:
  /// Fails if a value that depends on `result` is neither pointwise nor moved by a bijection, or is needed at two
  /// positions at once. Without any dependent output the epilogue is empty.
  static mlir::FailureOr<Epilogue> analyze(kernel::RegionOp region, mlir::Value result);

  mlir::Value getResult() const { return result; }
  /// The ops on the way from the result to outputs, in order, each with the number of its operand on the way.
  llvm::ArrayRef<std::pair<mlir::Operation *, unsigned>> getSteps() const { return steps; }
  /// Numbers of the outputs that depend on the result.
  llvm::ArrayRef<unsigned> roots() const { return outputs; }
  /// (input, output) pairs that may share memory: inputs that only the epilogue reads, each element just before the
  /// output's element at the same place is written.
  llvm::SmallVector<int64_t> inPlace() const;

private:
  mlir::Block *body = nullptr; // of the region
  mlir::Value result;
  llvm::SmallVector<std::pair<mlir::Operation *, unsigned>> steps;
  llvm::SmallVector<unsigned> outputs;
};

} // namespace tc

#endif // TC_ANALYSIS_ANCHOR_H
