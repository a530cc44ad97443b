//===- KernelOps.td - fused regions and their schedules -------------------------------------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_KERNEL_IR_KERNELOPS
#define TC_DIALECT_KERNEL_IR_KERNELOPS

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "tc/Dialect/TC/IR/TC.td"

def Kernel_Dialect : Dialect {
  let name = "kernel";
  let cppNamespace = "::tc::kernel";
  let summary = "One fused region plus the schedule that says how it runs";
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::tc::base::TCDialect"];
}

def Kernel_ScheduleAttr : AttrDef<Kernel_Dialect, "Schedule"> {
  let mnemonic = "schedule";
  let summary = "Every decision about how a region becomes code; later passes obey it and hold no heuristics";
  let description = [{
    `#kernel.schedule<"contract", {tileM = 14 : i64, tileN = 32 : i64, ...}>`. `strategy` names a code generator of the
    target; `params` are its parameters, documented with the generator. Tuning edits this attribute only.
  }];
  let parameters = (ins StringRefParameter<"code generator">:$strategy, "::mlir::DictionaryAttr":$params);
  let assemblyFormat = "`<` $strategy `,` $params `>`";
}

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
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs, OptionalAttr<Kernel_ScheduleAttr>:$schedule,
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
