//===- Passes.td - object code ----------------------------------------------------------------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_TARGET_PASSES
#define TC_TARGET_PASSES

include "mlir/Pass/PassBase.td"

def CompileVariantsPass : Pass<"tc-compile-variants", "::mlir::ModuleOp"> {
  let summary = "Compiles every host.variant to object code: host.binary";
  let options = [
    Option<"jobs", "jobs", "unsigned", "0", "threads; 0: as many as the machine has">,
    Option<"debugDir", "debug-dir", "std::string", "\"\"", "folder for LLVM IR and assembly">,
    Option<"refusesSpills", "refuse-spills", "bool", "false", "kernels of GPUs whose values do not fit the registers fail">
  ];
  let dependentDialects = ["::tc::host::HostDialect"];
}

def VerifyObjectPass : Pass<"tc-verify-object", "::mlir::ModuleOp"> {
  let summary = "Checks the end of phase object: no variant left, every binary holds only what the runtime loads";
}

#endif
