//===- Reference.h - compare what targets compute with the oracle ---------------------------------------*- C++ -*-===//
//
// `--target reference` is CPU code of plain loops, one primitive per kernel (tc-fuse=fuse=false, then
// tc-choose-schedule=device=reference). This library is the other half: it compares the outputs of any artifact with
// the interpreter in float64, and finds the first node whose value is off, for --verify and the accuracy minifier.
//
// It knows no artifact and no runtime: the caller passes a function that compiles and runs a module. Example:
//
//   Expected<std::optional<Finding>> finding = verify(func, inputs, 2e-5, [&](ModuleOp probe) { return
//   compileAndRun(probe); }); if (finding && *finding)
//     llvm::errs() << (*finding)->what;      // node "/encoder/mul_3": element 17 is 0.25, expected 0.5; ...
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_TARGET_REFERENCE_H
#define TC_TARGET_REFERENCE_H

#include "tc/Dialect/Prim/Interpreter/Interpreter.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"

namespace tc::target {

/// Inputs for a function of prim: floats N(0, 1), bools and integers 0 or 1, or in tc.range; the same seed gives the
/// same bytes. `sizes`: values of symbols by name; others get the least size in their range that is at least 2 and a
/// multiple of their divisor.
llvm::Expected<std::vector<prim::Tensor>> makeRandomInputs(mlir::func::FuncOp func,
                                                           const llvm::StringMap<int64_t> &sizes, uint64_t seed);

/// Empty where `got` agrees with the reference, else what is off: type and shape equal; integers and bools exactly; NaN
/// equals NaN; infinities by sign; |got - want| <= maxRel * max|want|. `largest`, if given, becomes max|got - want| /
/// max|want| where that is larger than what it was.
std::string compareTensors(const prim::Tensor &got, const prim::Tensor &want, double maxRel, double *largest = nullptr);

/// A value that is off.
struct Finding {
  /// Name of the node in the model.
  std::string node;
  /// A sentence without a file name.
  std::string what;
};

/// Compiles the only function of a module and runs it on the inputs that it is verified with.
using RunModule = llvm::function_ref<llvm::Expected<std::vector<prim::Tensor>>(mlir::ModuleOp)>;

/// Runs `func`, prim that is not fused, through `run` and compares its outputs with the interpreter in float64. Where
/// they differ, runs it again with values between as outputs, at most 64 at a time, until the first that is off is
/// found. nullopt where all agree; `largest`, if given, is the largest error of the outputs then, as compareTensors has
/// it. `func` stays as it is.
llvm::Expected<std::optional<Finding>> verify(mlir::func::FuncOp func, llvm::ArrayRef<prim::Tensor> inputs,
                                              double maxRel, RunModule run, double *largest = nullptr);

} // namespace tc::target

#endif // TC_TARGET_REFERENCE_H
