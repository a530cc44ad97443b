//===- Reduce.h - the smallest graph that shows the same ------------------------------------------------*- C++ -*-===//
//
// Delta debugging of a module of phase import, whichever door it came through. A candidate is a copy of the smallest
// module so far with something taken away: nodes, whose results become inputs and whose operands become outputs;
// outputs, operands, attributes, branches, sizes; and weights, for which seeded numbers stand. A judge says of each
// whether it still shows what is looked for; candidates are judged `jobs` at once, and the first good one is taken.
//
//   ReduceOptions options;
//   options.folder = scratch;
//   reduceModule(module, options, [&](const std::string &path) { return crashes(path); });
//
// A. Zeller, R. Hildebrandt: Simplifying and Isolating Failure-Inducing Input, 2002.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_REDUCE_REDUCE_H
#define TC_REDUCE_REDUCE_H

#include "tc/Conversion/GraphToPrim/GraphToPrim.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <csignal>
#include <functional>
#include <string>

namespace tc::reduce {

/// What a module holds: of @main with all subgraphs, and the bytes of constants that a file has to hold.
struct ModuleSize {
  size_t nodes = 0, inputs = 0, outputs = 0;
  uint64_t constantBytes = 0;
};
ModuleSize measure(mlir::ModuleOp module);

/// Whether the module in the file `path` (.mlir) still shows what is looked for. Called from several threads at once.
using Judge = std::function<bool(const std::string &path)>;

struct ReduceOptions {
  unsigned jobs = 1;
  uint64_t maxTries = 10000;
  /// If set: nothing more is tried once it is true, which a signal handler may make it.
  const volatile std::sig_atomic_t *stop = nullptr;
  /// An empty folder for candidates, which lie there until the end.
  std::string folder;
  /// What is known of inputs whose sizes the model leaves open.
  GraphToPrimOptions sizes;
  /// If set: called on the caller's thread once a candidate's .mlir is written, to write it in other forms, too; false:
  /// it has none, and is no candidate.
  std::function<bool(mlir::ModuleOp, const std::string &path)> alsoWrite;
  /// If set: called with each module that was taken, what made it smaller, and how many were tried so far.
  std::function<void(mlir::ModuleOp, llvm::StringRef step, uint64_t tries)> onSmaller;
};

/// Replaces `module`, which the judge is known to take, by the smallest one found. How many were tried; the error is a
/// sentence about the folder.
llvm::Expected<uint64_t> reduceModule(mlir::OwningOpRef<mlir::ModuleOp> &module, const ReduceOptions &options,
                                      const Judge &judge);

} // namespace tc::reduce

#endif // TC_REDUCE_REDUCE_H
