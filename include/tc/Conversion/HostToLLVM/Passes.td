//===- Passes.td - host program to the LLVM dialect -------------------------------------------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_CONVERSION_HOSTTOLLVM_PASSES
#define TC_CONVERSION_HOSTTOLLVM_PASSES

include "mlir/Pass/PassBase.td"

def ConvertHostToLLVMPass : Pass<"tc-convert-host-to-llvm", "::mlir::ModuleOp"> {
  let summary = "Adds the native programs (tc_entry, tc_infer, tc_run) to every host.variant";
  let description = [{
    Needs the attributes of tc-plan-memory. The programs follow part 2 of artifact_abi.h: tc_infer checks what the runtime
    cannot, derives symbols and sizes with checked arithmetic; tc_run is the launches one after the other. The second and later
    functions of a module have tc_infer.NAME and tc_run.NAME. The functions stay: they describe signature, constants and launches
    to the artifact.
  }];
  let dependentDialects = ["::tc::host::HostDialect", "::mlir::LLVM::LLVMDialect"];
}

#endif
