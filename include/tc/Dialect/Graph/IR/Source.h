//===- Source.h - lines of Python source that nodes come from -------------------------------------------*- C++ -*-===//
//
// PyTorch's exporters leave a stack trace with each node, in ONNX's metadata_props and in programs of torch.export, and
// lines of Python beside TorchScript's code. The line that called the node is kept in the location inside of its name:
//
//   loc("conv1"(callsite("model.onnx":7:1 at "net.py":12:1)))
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_GRAPH_IR_SOURCE_H
#define TC_DIALECT_GRAPH_IR_SOURCE_H

#include "mlir/IR/Location.h"

namespace tc::graph {

/// The key of a stack trace in ONNX's metadata_props of a node.
inline constexpr llvm::StringLiteral kStackTraceKey = "pkg.torch.onnx.stack_trace";

/// `place` with the innermost line of `trace` that is not PyTorch's own; `place` itself where there is no line.
mlir::Location addSource(mlir::Location place, llvm::StringRef trace);

/// The same of one line that is known.
mlir::Location addSource(mlir::Location place, llvm::StringRef file, unsigned line);

/// Whether a file of Python is of PyTorch's library.
bool isSourceOfTorch(llvm::StringRef file);

/// "net.py:12", of a node's location; of TorchScript without such lines the place in the archive's code; "" of others.
std::string getSource(mlir::Location loc);
/// The same with the place in the archive's code: "net.py:12 (code/__torch__.py:24:19)".
std::string describePlace(mlir::Location loc);

} // namespace tc::graph

#endif // TC_DIALECT_GRAPH_IR_SOURCE_H
