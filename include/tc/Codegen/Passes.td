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
                        "what the code is for", "::tc::machine::getTargetValues()">,
                 ListOption<"gpus", "gpus", "std::string",
                            "where that is GPUs: which, by name; none: those that an artifact has by default">,
                 Option<"allowTf32", "allow-tf32", "bool", "false",
                        "where that is GPUs: products of f32 take the 11 significant bits of TF32">,
                 ListOption<"nodePrecisions", "node-precision", "std::string",
                            "NODE=PRECISION, by name or pattern: of the products of some nodes">];
  let dependentDialects = ["::tc::kernel::KernelDialect", "::tc::machine::MachineDialect"];
}

def EmitKernelsPass : Pass<"tc-emit-kernels", "::mlir::ModuleOp"> {
  let summary = "Scheduled kernel.region ops to host.launch and a host.variant of kernels for each CPU, and one for all GPUs";
  let description = [{
    Regions that are equal after canonical printing share one kernel. Constant inputs become host.constant, packed as the schedule
    asks. Before: `%y = kernel.region(%x) {schedule = ...}`. After: `%y = host.launch @k0_...(%x) ...` and
    `host.variant @x86_64_v4 { llvm.func @k0_... }`, whose bodies are arith, math, vector, scf and llvm ops. The first pass of
    `tc-lower-kernels`.
  }];
  let options = [
    ListOption<"variants", "variants", "std::string", "machines by name: CPU variants, the best last, or chips of GPUs (lib/Dialect/Machine/README.md)">
  ];
  let dependentDialects = ["::tc::host::HostDialect", "::tc::machine::MachineDialect", "::mlir::LLVM::LLVMDialect", "::mlir::scf::SCFDialect",
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::vector::VectorDialect", "::mlir::NVVM::NVVMDialect", "::mlir::cf::ControlFlowDialect"];
}

def ExpandFunctionsPass : Pass<"tc-expand-functions", "::tc::host::VariantOp"> {
  let summary = "Functions of vectors as the variant's machine computes them fastest: polynomials, tables, calls of a lane each";
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::vector::VectorDialect"];
}

def InterleaveLanesPass : Pass<"tc-interleave-lanes", "::tc::host::VariantOp"> {
  let summary = "Computes vectors of loops over independent lanes side by side, as many as the variant's registers hold";
  let description = [{
    One instruction of each after another, where an iteration is a long chain of instructions (exponentials, error functions). A core
    overlaps iterations by itself only as far as its scheduler's queue reaches: one of silu took 11 cycles on Zen 5 instead of 9. How
    long an iteration is, only its instructions tell: for what tc-expand-functions leaves.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def LowerToLLVMPass : Pass<"tc-lower-to-llvm", "::tc::host::VariantOp"> {
  let summary = "Bodies of kernels to the LLVM dialect alone, by upstream's conversions";
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::cf::ControlFlowDialect"];
}

def PairGathersPass : Pass<"tc-pair-gathers", "::tc::host::VariantOp"> {
  let summary = "Makes one gather, of elements twice as wide, of two that read neighbours at the same lanes";
  let description = [{
    The taps of what is interpolated, coordinates. A processor gathers one element after another, of 4 bytes as of 8. For what has been
    through common subexpression elimination (tc-expand-functions), which makes lanes that are the same one value.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::arith::ArithDialect", "::mlir::vector::VectorDialect"];
}

#endif
