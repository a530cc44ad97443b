//===- Passes.td - what GPUs want of prim -----------------------------------------------------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_TRANSFORMS_PREPARE_CUDA_PASSES
#define TC_TRANSFORMS_PREPARE_CUDA_PASSES

include "mlir/Pass/PassBase.td"

def SortScattersPass : Pass<"tc-sort-scatters", "::mlir::func::FuncOp"> {
  let summary = "Scatters of many updates with the order of what these name";
  let dependentDialects = ["::tc::prim::PrimDialect"];
}

def TurnPairReductionsPass : Pass<"tc-turn-pair-reductions", "::mlir::func::FuncOp"> {
  let summary = "Reductions along rows, for each pair of rows of two tensors, with one of these turned";
  let dependentDialects = ["::tc::prim::PrimDialect"];
}

#endif // TC_TRANSFORMS_PREPARE_CUDA_PASSES
