//===- Passes.td - CPU scheduling and code generation ----------------------------------------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_CODEGEN_PASSES
#define TC_CODEGEN_PASSES

include "mlir/Pass/PassBase.td"

def ChooseSchedulePass : Pass<"tc-choose-schedule", "::mlir::ModuleOp"> {
  let summary = "Write the schedule attribute of every kernel.region: all decisions, none of the code";
  let options = [Option<"device", "device", "std::string", "\"cpu\"", "cpu, cuda, or reference (CPU code of plain loops)">];
  let dependentDialects = ["::tc::kernel::KernelDialect"];
}

def LowerKernelsPass : Pass<"tc-lower-kernels", "::mlir::ModuleOp"> {
  let summary = "Scheduled kernel.region ops to host.launch and one host.variant of llvm.func kernels per CPU variant";
  let description = [{
    Regions that are equal after canonical printing share one kernel. Constant inputs become host.constant, packed as the schedule
    asks. Before: `%y = kernel.region(%x) {schedule = ...}`. After: `%y = host.launch @k0_...(%x) ...` and
    `host.variant @x86_64_v4 { llvm.func @k0_... }`.
  }];
  let options = [
    ListOption<"variants", "variants", "std::string", "CPU variants, best last: x86-64-v3, x86-64-v4, x86-64-v4-vnni, x86-64-v4-bf16, x86-64-v4-amx, native">
  ];
  let dependentDialects = ["::tc::host::HostDialect", "::mlir::LLVM::LLVMDialect", "::mlir::scf::SCFDialect",
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::vector::VectorDialect", "::mlir::NVVM::NVVMDialect", "::mlir::cf::ControlFlowDialect"];
}

#endif
