//===- BackendParts.h - parts of a graph that another library computes ----------------------------------*- C++ -*-===//
//
// --backend-for PATTERN=onnxruntime. The nodes that patterns name are put together to the largest parts that are
// connected and that can run in one piece, and each part that is worth it becomes a node "tc":"onnxruntime", which
// calls a private function with the part's nodes and holds the ONNX file of them:
//
//   %2 = graph.node "tc":"onnxruntime" opset 1 calls @onnxruntime_0(%x, %1) {model = #tc.data<...>} : ...
//
// A part is worth it if tc would take longer to compute it than to write what goes to and fro, as that is what a call
// costs: values at its borders are in no fused kernel. A node that is named by its whole name always goes.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_DRIVER_BACKENDPARTS_H
#define TC_LIB_DRIVER_BACKENDPARTS_H

#include "tc/Conversion/GraphToPrim/GraphToPrim.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"
#include <string>

namespace tc::driver {

/// What was cut out: an object for each part, taken or not, as docs/explain.schema.json describes `backend_parts`.
struct BackendParts {
  llvm::json::Array all;
  size_t taken = 0;
};

/// What is wrong with the form of an entry of --backend-for; empty: nothing.
std::string findBackendError(llvm::ArrayRef<std::string> backendFor);

/// Cuts @main of a module of phase import. Returns what a pattern asks for that cannot be, without the model's file;
/// empty: nothing.
std::string cutBackendParts(mlir::ModuleOp module, llvm::ArrayRef<std::string> backendFor,
                            const GraphToPrimOptions &options, BackendParts &parts);

} // namespace tc::driver

#endif // TC_LIB_DRIVER_BACKENDPARTS_H
