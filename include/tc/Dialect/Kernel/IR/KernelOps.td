//===- KernelOps.td - fused regions and their schedules -------------------------------------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_KERNEL_IR_KERNELOPS
#define TC_DIALECT_KERNEL_IR_KERNELOPS

include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "tc/Dialect/Kernel/IR/Schedules.td"
include "tc/Dialect/TC/IR/TC.td"

def Kernel_FusionAttr : AttrDef<Kernel_Dialect, "Fusion"> {
  let mnemonic = "fusion";
  let summary = "What fusion says of a region (explain)";
  let description = [{
    `#kernel.fusion<ops = 2, reads = ["full", "row"], stopped = ["neg -> return: result of the function"]>`: primitives in it, how it
    reads each input (AccessClass), and why it did not grow. Nothing is decided by it.
  }];
  let parameters = (ins "int64_t":$ops, "::mlir::ArrayAttr":$reads, "::mlir::ArrayAttr":$stopped);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Kernel_RegionOp : Op<Kernel_Dialect, "region", [IsolatedFromAbove, SingleBlock, RecursiveMemoryEffects]> {
  let summary = "Primitives that become one kernel";
  let description = [{
    The block's arguments are the inputs; `kernel.yield` names the outputs. Inputs are read from memory, outputs written to it;
    nothing between needs memory unless the schedule says so. Size expressions use the symbols of the enclosing function.
    `cost`: its work over the symbols of the enclosing function. `fusion`: what was fused and why not more.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs, OptionalAttr<Kernel_ScheduleInterface>:$schedule,
                   OptionalAttr<TC_CostAttr>:$cost, OptionalAttr<Kernel_FusionAttr>:$fusion);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}
def Kernel_YieldOp : Op<Kernel_Dialect, "yield", [Pure, Terminator, HasParent<"RegionOp">]> {
  let arguments = (ins Variadic<AnyRankedTensor>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

#endif
