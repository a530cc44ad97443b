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

def Kernel_CaseAttr : AttrDef<Kernel_Dialect, "Case"> {
  let mnemonic = "case";
  let summary = "A schedule for some sizes, or for one machine";
  let description = [{
    `#kernel.case<sizes = #few, machine = #machine.cpu<...>, schedule = #kernel.cpu.loops<>>`: the
    set is over the symbols of the function. (C1) Sizes or a machine are given; the set has no dims.
  }];
  let parameters = (ins OptionalParameter<"::mlir::IntegerSetAttr">:$sizes,
                        OptionalParameter<"::tc::machine::MachineAttr">:$machine,
                        "::tc::kernel::ScheduleAttr":$schedule);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Kernel_RegionOp : Op<Kernel_Dialect, "region", [IsolatedFromAbove, SingleBlock, RecursiveMemoryEffects]> {
  let summary = "Primitives that become one kernel";
  let description = [{
    The block's arguments are the inputs; `kernel.yield` names the outputs. Inputs are read from memory, outputs written to it;
    nothing between needs memory unless the schedule says so. Size expressions use the symbols of the enclosing function.
    `cost`: its work over the symbols of the enclosing function. `fusion`: what was fused and why not more. The host program runs
    the schedule of the first of `cases` that holds, and `schedule` where none does. All of them read constants in one layout.

    (C1) Cases come with a schedule for all else.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs, OptionalAttr<Kernel_ScheduleInterface>:$schedule,
                   OptionalAttr<TypedArrayAttrBase<Kernel_CaseAttr, "cases">>:$cases,
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
