//===- FunctionEditor.h - inputs and outputs of a graph that changes ------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_REDUCE_FUNCTIONEDITOR_H
#define TC_LIB_REDUCE_FUNCTIONEDITOR_H

#include "tc/Dialect/Graph/IR/Graph.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/StringSet.h"

namespace tc::reduce {

/// Whether a model can have an input of this type.
bool canBeArgument(mlir::Type type);

/// Keeps names and other attributes of inputs and outputs together with them. Until `finish` the function's type may
/// differ from its body.
class FunctionEditor {
public:
  explicit FunctionEditor(graph::FuncOp function);

  mlir::Value addArgument(mlir::Type type, mlir::Location loc);
  mlir::OperandRange getOutputs() { return yield->getOperands(); }
  void addOutput(mlir::Value value);
  void eraseOutputs(const llvm::BitVector &erased);
  /// What types of outputs were declared as in the file, and names of their dims.
  void forgetOutputTypes();
  /// Removes what nothing reads: constants, inputs, functions. False where nothing is left.
  bool finish();

private:
  mlir::DictionaryAttr makeName(llvm::StringRef stem);

  graph::FuncOp function;
  graph::YieldOp yield;
  std::vector<mlir::DictionaryAttr> argAttrs, resAttrs;
  llvm::StringSet<> names;
};

} // namespace tc::reduce

#endif // TC_LIB_REDUCE_FUNCTIONEDITOR_H
