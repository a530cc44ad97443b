//===- CompilerJudge.h - whether tc-compile still fails in the same way ---------------------------------*- C++ -*-===//
//
// The compiler runs in a process of its own, with limits, so that it may crash, hang and take what it can get. Two runs
// fail in the same way if their exit codes are the same and they give the same reason: an error without the names and
// numbers in it, which a smaller model has others of.
//
// Thread safety: `run` may be called from several threads at once.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_REDUCE_COMPILERJUDGE_H
#define TC_REDUCE_COMPILERJUDGE_H

#include "tc/Support/ChildProcess.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace tc::reduce {

/// How tc-compile ended.
struct Outcome {
  ProgramResult result;
  /// Of its errors: as they were printed, without the file; and what is compared.
  std::vector<std::string> errors, reasons;

  bool isDone() const { return result.end == ProgramResult::End::Exited && result.code == 0; }
  /// "exit code 2", "no end within 60 s".
  std::string describe(const ChildLimits &limits) const;
};

struct CompilerJudge {
  std::string program;              ///< tc-compile
  std::vector<std::string> options; ///< of every run
  std::string after;                ///< the phase that is the last to run; empty: all
  bool verify = false;
  std::string message; ///< a part of the error that counts; empty: that of the first run
  ChildLimits limits;

  /// Compiles the model `path` to files beside it, which are removed.
  Outcome run(const std::string &path) const;
  /// Whether `outcome` is a failure like `first`.
  bool isSame(const Outcome &outcome, const Outcome &first) const;
};

/// `options` of tc-compile without those that speak of inputs and dims that @main has no more, or whose sizes it knows.
std::vector<std::string> selectOptions(const std::vector<std::string> &options, mlir::ModuleOp module);

} // namespace tc::reduce

#endif // TC_REDUCE_COMPILERJUDGE_H
