//===- Interpreter.h - evaluate prim on the host --------------------------------------------------------*- C++ -*-===//
//
// The oracle: a plain interpreter of prim, also of fused prim (kernel.region is transparent to it), so that every phase
// up to schedule can be checked with numbers. Constant folding, --verify and reference outputs of tests use it.
//
// Numerics: every floating operation, sums included, is computed in float64 and its result rounded once to the element
// type of the value. For + - * / sqrt in f32 and narrower this gives exactly the IEEE result. With `evaluateInDouble`
// nothing is rounded between operations (but for conversions to float types of 8 bits and fewer, which are
// quantisation): every floating value is an f64 tensor, and the outputs are the reference that an f32 run is measured
// against. The same inputs give the same bits on every machine with the same libm.
//
// Sizes: symbols of the function (prim.symbols) get their values from the inputs' shapes, from prim.bind_symbol, and
// from the shapes of values that control flow yields.
//
// Example:
//   llvm::Expected<std::vector<Tensor>> outputs = interpret(func, {x, y}, InterpretOptions());
//
// Errors are complete sentences that name the node. Nothing that IR or inputs hold leads to a crash, provided that the
// IR passes the verifier. Thread safe for distinct calls.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_PRIM_INTERPRETER_INTERPRETER_H
#define TC_DIALECT_PRIM_INTERPRETER_INTERPRETER_H

#include "tc/Dialect/Prim/Interpreter/Tensor.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"

namespace mlir {
class Operation;
class Value;
namespace func {
class FuncOp;
} // namespace func
} // namespace mlir

namespace tc::prim {

/// What evaluating may cost. It is asked before anything is allocated or computed; what exceeds it fails with a
/// sentence, and so does what no memory can hold.
struct InterpretBudget {
  /// That the values of a run, and what one op needs beside them, take at a time.
  int64_t bytes = INT64_MAX;
  /// Left: about a nanosecond each. Every op evaluated takes its own away.
  int64_t steps = INT64_MAX;
};

/// How a function is evaluated.
struct InterpretOptions {
  /// Hold every floating value as f64 and round nowhere: the reference for other targets.
  bool evaluateInDouble = false;
  /// Called with each value once it is computed, in program order; those inside of loops once per iteration. Where it
  /// fails the run ends with its error.
  std::function<llvm::Error(mlir::Value, const Tensor &)> onValue;
  /// None: what memory there is. Outlives the call.
  InterpretBudget *budget = nullptr;
};

/// Runs a function of prim (or fused prim) IR. Inputs stand in the order of its arguments; their shapes must agree with
/// the arguments' types; float inputs are converted to the arguments' element type.
llvm::Expected<std::vector<Tensor>> interpret(mlir::func::FuncOp func, llvm::ArrayRef<Tensor> inputs,
                                              const InterpretOptions &options = {});

/// Evaluates one op without regions whose sizes need no symbols: constant folding's entry.
llvm::Expected<std::vector<Tensor>> interpretOp(mlir::Operation *op, llvm::ArrayRef<Tensor> operands,
                                                InterpretBudget *budget = nullptr);
/// Whether interpretOp can be asked: the op has a handler, no regions, no side effect, static result types.
bool canInterpretOp(mlir::Operation *op);

/// Names of all ops that have a handler, sorted.
std::vector<std::string> getInterpretedOps();

} // namespace tc::prim

#endif // TC_DIALECT_PRIM_INTERPRETER_INTERPRETER_H
