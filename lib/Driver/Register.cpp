//===- Register.cpp - all dialects and passes of tc ---------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Driver/Register.h"

#include "tc/Codegen/Passes.h"
#include "tc/Conversion/GraphToPrim/GraphToPrim.h"
#include "tc/Conversion/HostToLLVM/HostToLLVM.h"
#include "tc/Conversion/Passes.h"
#include "tc/Dialect/Graph/IR/Graph.h"
#include "tc/Dialect/Graph/Transforms/Passes.h"
#include "tc/Dialect/Host/IR/Host.h"
#include "tc/Dialect/Kernel/IR/Kernel.h"
#include "tc/Dialect/Machine/IR/Machine.h"
#include "tc/Dialect/Prim/IR/Prim.h"
#include "tc/Dialect/Prim/Transforms/Passes.h"
#include "tc/Dialect/TC/IR/TC.h"
#include "tc/Driver/Phases.h"
#include "tc/Frontend/ONNX.h"
#include "tc/Target/Passes.h"
#include "tc/Target/Target.h"
#include "tc/Transforms/Passes.h"
#include "tc/Transforms/Prepare/CPU/Passes.h"
#include "tc/Transforms/Prepare/CUDA/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Transforms/Passes.h"

void tc::driver::registerAllDialects(mlir::DialectRegistry &registry) {
  registry.insert<base::TCDialect, machine::MachineDialect, graph::GraphDialect, prim::PrimDialect,
                  kernel::KernelDialect, host::HostDialect>();
  registry.insert<mlir::arith::ArithDialect, mlir::cf::ControlFlowDialect, mlir::DLTIDialect, mlir::func::FuncDialect,
                  mlir::LLVM::LLVMDialect, mlir::math::MathDialect, mlir::scf::SCFDialect, mlir::ub::UBDialect,
                  mlir::vector::VectorDialect>();
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
  mlir::registerNVVMDialectTranslation(registry);
}

void tc::driver::registerAllPasses() {
  mlir::registerTransformsPasses();
  graph::registerGraphTransformsPasses();
  prim::registerPrimTransformsPasses();
  prim::registerPrimPipeline();
  transforms::registerTransformsPasses();
  prepare::registerPrepareCpuPasses();
  prepare::registerPrepareCpuPipeline();
  prepare::registerPrepareCudaPasses();
  prepare::registerPrepareCudaPipeline();
  codegen::registerCodegenPasses();
  codegen::registerLowerKernelsPipeline();
  hosttollvm::registerHostToLLVMPasses();
  target::registerTargetPasses();
  target::registerLLVMCPUBackend();
  target::registerNVPTXBackend();
  conversion::registerConversionPasses();
  setFunctionExpander(expandOnnxFunction, hasOnnxFunction);
  setOperandCheck(findOnnxOperandError);
  registerPhases();
}
