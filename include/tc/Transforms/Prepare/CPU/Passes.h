//===- Passes.h - prim as CPUs want it ------------------------------------------------------------------*- C++ -*-===//
//
// Phase prim knows no machine. Once the module has been copied for its targets, these passes choose which operand of a
// product is packed, along which dims it is summed, and what of it are tasks, for CPUs: they pack constant filters and
// matrices when the model is compiled, have vectors of few lanes and tasks that are blocks of results.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_TRANSFORMS_PREPARE_CPU_PASSES_H
#define TC_TRANSFORMS_PREPARE_CPU_PASSES_H

#include "tc/Dialect/Prim/IR/Prim.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace tc::prepare {

#define GEN_PASS_DECL
#include "tc/Transforms/Prepare/CPU/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "tc/Transforms/Prepare/CPU/Passes.h.inc"

/// Adds these passes, and those of phase prim that clean up behind them. Prim of any kind before and after.
void buildPrepareCpuPipeline(mlir::OpPassManager &functions);
/// Registers it as --tc-prepare-cpu.
void registerPrepareCpuPipeline();

} // namespace tc::prepare

#endif // TC_TRANSFORMS_PREPARE_CPU_PASSES_H
