//===- Passes.h - CPU scheduling and code generation ----------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_CODEGEN_PASSES_H
#define TC_CODEGEN_PASSES_H

#include "tc/Dialect/Machine/IR/Machine.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace tc::codegen {

/// Whether a code generator of `target` has code for this composite op of prim, with its element types and sizes.
bool takesWhole(machine::TargetKind target, mlir::Operation *composite);
/// Whether all schedules of the module's regions are of code generators of `target`.
bool knowsSchedules(machine::TargetKind target, mlir::ModuleOp module);

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "tc/Codegen/Passes.h.inc"

/// Adds what makes kernels of scheduled regions: tc-emit-kernels, and what brings each variant to the LLVM dialect.
/// `variants`: the option of tc-emit-kernels.
void buildLowerKernelsPipeline(mlir::OpPassManager &modules, llvm::ArrayRef<std::string> variants);
/// Registers it as --tc-lower-kernels.
void registerLowerKernelsPipeline();

} // namespace tc::codegen

#endif // TC_CODEGEN_PASSES_H
