//===- PassWatch.h - what is told of passes while they run ----------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_DRIVER_PASSWATCH_H
#define TC_LIB_DRIVER_PASSWATCH_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

namespace tc::driver {

/// Moves the progress bar by each pass of a pipeline that runs on the whole of `module`.
void addProgress(mlir::PassManager &manager, mlir::ModuleOp module);

/// Channel `passes`: each pass with its time, what it made of how many operations, or that it changed nothing.
void addPassLog(mlir::PassManager &manager);

/// Channel `shapes`: element type and sizes of each node's values, in a module at the end of phase prim.
void logShapes(mlir::ModuleOp module);

} // namespace tc::driver

#endif // TC_LIB_DRIVER_PASSWATCH_H
