//===- InnerOutputs.h - values inside of a model as outputs ---------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_DRIVER_INNEROUTPUTS_H
#define TC_LIB_DRIVER_INNEROUTPUTS_H

#include "tc/Dialect/Graph/IR/Graph.h"

#include "mlir/IR/BuiltinOps.h"
#include <string>

namespace tc::driver {

/// @main of a module of phase import; null: there is none.
graph::FuncOp findMain(mlir::ModuleOp module);

/// Makes `values` the outputs of a graph; `attrs`: a dictionary for each.
void setResults(graph::FuncOp main, llvm::ArrayRef<mlir::Value> values, llvm::ArrayRef<mlir::Attribute> attrs);

/// Of a module, from the first phase to the artifact, whose manifest has it as `inner_outputs`: how many of the last
/// outputs are none of the model's own.
inline constexpr llvm::StringLiteral kInnerOutputsAttr = "tc.inner_outputs";

/// Appends the results of the nodes that `patterns` name (`/layer3/*`) to the outputs of @main, a graph, in its order,
/// and under the names of the nodes. Which pattern names none, without the model's file; empty: each names some.
std::string addInnerOutputs(mlir::ModuleOp module, llvm::ArrayRef<std::string> patterns);

/// Leaves the first `count` nodes of @main, in its order, whose outputs are then what the others would have read, by
/// the nodes' names, and the model's own as far as they are computed. 0: leaves all.
std::string stopAfter(mlir::ModuleOp module, unsigned count);

/// The same of an option whose patterns may name any node of a graph, inside of branches and loops, too.
std::string findUnusedPattern(mlir::ModuleOp module, llvm::StringRef option, llvm::ArrayRef<std::string> patterns);
/// The same of one whose patterns name inputs.
std::string findUnusedInput(mlir::ModuleOp module, llvm::StringRef option, llvm::ArrayRef<std::string> patterns);

} // namespace tc::driver

#endif // TC_LIB_DRIVER_INNEROUTPUTS_H
