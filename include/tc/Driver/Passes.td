//===- Passes.td - what each phase may contain --------------------------------------------------------------*- tablegen -*-===//
//
// tc-admit is about what models may ask for, the others about what passes leave. tc-verify-prim, tc-verify-fuse and tc-verify-object stand with the passes that they check.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DRIVER_PASSES
#define TC_DRIVER_PASSES

include "mlir/Pass/PassBase.td"

def AdmitPass : Pass<"tc-admit", "::mlir::ModuleOp"> {
  let summary = "Refuses tensors and names that no artifact can hold: ranks, sizes in checked arithmetic, UTF-8";
}
def VerifyHostPass : Pass<"tc-verify-host", "::mlir::ModuleOp"> {
  let summary = "Checks the end of phase host: every value has a place, every variant its program";
}
def VerifyImportPass : Pass<"tc-verify-import", "::mlir::ModuleOp"> {
  let summary = "Checks the end of phase import: one public graph.func, nothing but the graph dialect";
}
def VerifyKernelPass : Pass<"tc-verify-kernel", "::mlir::ModuleOp"> {
  let summary = "Checks the end of phase kernel: a host program, and variants of LLVM functions with every kernel it launches";
}
def VerifySchedulePass : Pass<"tc-verify-schedule", "::mlir::ModuleOp"> {
  let summary = "Checks the end of phase schedule: every region has a schedule";
}

#endif
