//===- Passes.td - what CPUs want of products and convolutions -------------------------------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_TRANSFORMS_PREPARE_CPU_PASSES
#define TC_TRANSFORMS_PREPARE_CPU_PASSES

include "mlir/Pass/PassBase.td"

def ContractOuterDimsPass : Pass<"tc-contract-outer-dims", "::mlir::func::FuncOp"> {
  let summary = "Products with weights along a dim that is not the last in memory, with the weights as the left-hand side";
  let dependentDialects = ["::tc::prim::PrimDialect"];
}

def OrderProductRowsPass : Pass<"tc-order-product-rows", "::mlir::func::FuncOp"> {
  let summary = "Rows of products, and sums over flattened images, in the order in which they lie in memory";
  let dependentDialects = ["::tc::prim::PrimDialect"];
}

def PointwiseConvsPass : Pass<"tc-pointwise-convs", "::mlir::func::FuncOp"> {
  let summary = "1x1 convolutions between images that have their channels first, as products";
  let dependentDialects = ["::tc::prim::PrimDialect"];
}

def ReduceVectorProductsPass : Pass<"tc-reduce-vector-products", "::mlir::func::FuncOp"> {
  let summary = "Products of vectors, or of many channels that lie side by side, as sums of elementwise products";
  let dependentDialects = ["::tc::prim::PrimDialect"];
}

def SplitDepthPass : Pass<"tc-split-depth", "::mlir::func::FuncOp"> {
  let summary = "Products of small results with long sums as batches of shorter ones, added up";
  let dependentDialects = ["::tc::prim::PrimDialect"];
}

def WidenDepthwiseConvsPass : Pass<"tc-widen-depthwise-convs", "::mlir::func::FuncOp"> {
  let summary = "Depthwise convolutions whose channels fill no vector become ones whose channels do";
}

#endif
