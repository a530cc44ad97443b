//===- HostToLLVM.h - host program to the LLVM dialect --------------------------------------------------*- C++ -*-===//
//
// The pass tc-convert-host-to-llvm (Passes.td) and what it shares with the artifact: which symbols are bound by what.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_CONVERSION_HOSTTOLLVM_HOSTTOLLVM_H
#define TC_CONVERSION_HOSTTOLLVM_HOSTTOLLVM_H

#include "tc/Dialect/Host/IR/Host.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/Pass.h"

namespace tc {

#define GEN_PASS_DECL
#include "tc/Conversion/HostToLLVM/Passes.h.inc"

namespace hosttollvm {
#define GEN_PASS_REGISTRATION
#include "tc/Conversion/HostToLLVM/Passes.h.inc"
} // namespace hosttollvm

/// The functions that callers run, in the order of the artifact's table: those with a body, as they stand in the
/// module.
llvm::SmallVector<mlir::func::FuncOp> getFunctions(mlir::ModuleOp module);

/// Names of the host functions that the programs call (prim.host_call), by their number in tcrt_call_t.
llvm::SmallVector<llvm::StringRef> getHostFunctions(llvm::ArrayRef<mlir::func::FuncOp> functions);

} // namespace tc

#endif // TC_CONVERSION_HOSTTOLLVM_HOSTTOLLVM_H
