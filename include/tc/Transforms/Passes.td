//===- Passes.td - passes across dialects -----------------------------------------------------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_TRANSFORMS_PASSES
#define TC_TRANSFORMS_PASSES

include "mlir/Pass/PassBase.td"

def PlanMemoryPass : Pass<"tc-plan-memory", "::mlir::func::FuncOp"> {
  let summary = "Gives every value of the host program its place in memory";
  let description = [{
    Liveness over the program in its order; views share the memory of what they view; a launch writes in place where its
    `in_place` allows it and the input dies; results of the function are written straight to the caller's buffers where that
    is possible, else copied (host.copy). The rest goes to one arena, greedy best fit by size. Values of equal symbolic size
    share slots whose offsets are size expressions. Result: the attributes of Host.h.
  }];
  let dependentDialects = ["::tc::host::HostDialect", "::tc::prim::PrimDialect"];
}

#endif
