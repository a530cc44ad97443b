//===- Trial.h - graphs that the compiler runs to decide by their errors --------------------------------*- C++ -*-===//
//
// What --quantize and --precision auto share: a graph compiled for this machine, the calibration data that it runs on,
// how far outputs are from those of f32, and the search for how little has to stay in f32.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_DRIVER_TRIAL_H
#define TC_LIB_DRIVER_TRIAL_H

#include "BudgetSearch.h"
#include "Compiler.h"

namespace tc::driver {

struct Compiler::Trial {
  std::string bytes;
  llvm::SmallVector<mlir::Type> arguments, results;
  std::optional<OpenedArtifact> opened;
};

/// What inputs are in a run, in their order.
using TrialInputs = std::vector<prim::Tensor>;

/// Sums over all runs of how far values are from what they are in f32.
class Difference {
public:
  void add(const prim::Tensor &is, const prim::Tensor &should);
  /// Root of the mean of squares, relative to that of the values.
  double ofMean() const;
  /// The largest error, relative to the largest value; 1e30 where sizes or infinities differ.
  double ofMost() const;
  /// The same over the largest value of `all`, which has more runs: less it does not become with these.
  double ofMost(const Difference &all) const;

private:
  double squares = 0, ofAll = 0, largest = 0, ofLargest = 0;
  bool isLike = true; ///< in sizes, which may follow from values, and in what is not finite
};

/// `{"output": .., "error": .., "error_mean": ..}` for each output of the graph.
llvm::json::Array describeOutputs(graph::FuncOp main, llvm::ArrayRef<Difference> differences);

/// 1.2e-03.
std::string shortNumber(double value);

} // namespace tc::driver

#endif // TC_LIB_DRIVER_TRIAL_H
