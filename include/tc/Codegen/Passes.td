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
  let options = [Option<"target", "device", "::tc::machine::TargetKind", "::tc::machine::TargetKind::Cpu",
                        "what the code is for", "::tc::machine::getTargetValues()">];
  let dependentDialects = ["::tc::kernel::KernelDialect"];
}

def LowerKernelsPass : Pass<"tc-lower-kernels", "::mlir::ModuleOp"> {
  let summary = "Scheduled kernel.region ops to host.launch and a host.variant of llvm.func kernels for each CPU, and one for all GPUs";
  let description = [{
    Regions that are equal after canonical printing share one kernel. Constant inputs become host.constant, packed as the schedule
    asks. Before: `%y = kernel.region(%x) {schedule = ...}`. After: `%y = host.launch @k0_...(%x) ...` and
    `host.variant @x86_64_v4 { llvm.func @k0_... }`.
  }];
  let options = [
    ListOption<"variants", "variants", "std::string", "machines by name: CPU variants, the best last, or chips of GPUs (lib/Dialect/Machine/README.md)">
  ];
  let dependentDialects = ["::tc::host::HostDialect", "::tc::machine::MachineDialect", "::mlir::LLVM::LLVMDialect", "::mlir::scf::SCFDialect",
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::vector::VectorDialect", "::mlir::NVVM::NVVMDialect", "::mlir::cf::ControlFlowDialect"];
}

#endif
