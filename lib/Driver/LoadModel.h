//===- LoadModel.h - a model's file to a module ---------------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_DRIVER_LOADMODEL_H
#define TC_LIB_DRIVER_LOADMODEL_H

#include "tc/Conversion/GraphToPrim/GraphToPrim.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"

namespace tc::driver {

/// Reads a model by its content: a zip archive is torch.export's or torch.jit.save's, text with the ending .mlir is a
/// module of any phase, all else is ONNX. The error is a sentence that starts with the path. `isMlir`: the module may
/// stand at any phase. `sizes`: what the user says of inputs, which models of TorchScript need to be read at all.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> loadModel(mlir::MLIRContext *context, llvm::StringRef path,
                                                            bool &isMlir, const GraphToPrimOptions &sizes = {});

} // namespace tc::driver

#endif // TC_LIB_DRIVER_LOADMODEL_H
