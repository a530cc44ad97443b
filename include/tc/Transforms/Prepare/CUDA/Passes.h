//===- Passes.h - prim as GPUs want it ------------------------------------------------------------------*- C++ -*-===//
//
// Phase prim knows no machine. Once the module has been copied for its targets, these passes give thousands of threads
// work that does not wait for one another.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_TRANSFORMS_PREPARE_CUDA_PASSES_H
#define TC_TRANSFORMS_PREPARE_CUDA_PASSES_H

#include "tc/Dialect/Prim/IR/Prim.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace tc::prepare {

#define GEN_PASS_DECL
#include "tc/Transforms/Prepare/CUDA/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "tc/Transforms/Prepare/CUDA/Passes.h.inc"

/// Adds these passes, and those of phase prim that clean up behind them. Prim of any kind before and after.
void buildPrepareCudaPipeline(mlir::OpPassManager &functions);
/// Registers it as --tc-prepare-cuda.
void registerPrepareCudaPipeline();

} // namespace tc::prepare

#endif // TC_TRANSFORMS_PREPARE_CUDA_PASSES_H
