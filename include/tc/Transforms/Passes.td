//===- Passes.td - passes across dialects -----------------------------------------------------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_TRANSFORMS_PASSES
#define TC_TRANSFORMS_PASSES

include "mlir/Pass/PassBase.td"

def CollapseDimsPass : Pass<"tc-collapse-dims", "::mlir::func::FuncOp"> {
  let summary = "Merges dims that every op of a region treats alike, by views at the region's edges";
  let options = [Option<"target", "device", "::tc::machine::TargetKind", "::tc::machine::TargetKind::Cpu", "what the code is for",
           "::tc::machine::getTargetValues()">];
  let dependentDialects = ["::tc::kernel::KernelDialect", "::tc::prim::PrimDialect"];
}

def FusePass : Pass<"tc-fuse", "::mlir::func::FuncOp"> {
  let summary = "Groups prim ops into kernel.region ops";
  let description = [{
    The rules stand in include/tc/Transforms/Fuse.h. Afterwards every primitive sits in a region, but for constants, reshapes
    (views), control flow and bind_symbol with the sizes that it reads. `--logs fusion` prints every decision.
  }];
  let options = [
    Option<"fuse", "fuse", "bool", "true", "false: one primitive per region, for the reference target">,
    Option<"maxOps", "max-ops", "int64_t", "64", "Most ops of a region">,
    Option<"maxBuffers", "max-buffers", "int64_t", "16", "Most inputs and outputs of a region">,
    Option<"target", "device", "::tc::machine::TargetKind", "::tc::machine::TargetKind::Cpu", "what the code is for",
           "::tc::machine::getTargetValues()">,
    ListOption<"disabled", "disable", "std::string", "Nodes, by name or pattern, each of whose primitives is a region alone">,
    Option<"log", "log", "bool", "false", "Print the decisions of this run even if the channel is off">,
  ];
  let dependentDialects = ["::tc::kernel::KernelDialect", "::tc::prim::PrimDialect"];
}

def GroupLaunchesPass : Pass<"tc-group-launches", "::mlir::func::FuncOp"> {
  let summary = "Lets launches of few tasks that do not depend on each other share one fork of the thread pool";
  let description = [{
    Moves such launches side by side, with what the later ones need before the first, and gives them the same `group`. Only CPU
    launches of fewer tasks than a small machine has use for, and of more work than a fork costs.
  }];
  let dependentDialects = ["::tc::host::HostDialect", "::tc::prim::PrimDialect"];
}

def MarkStaticPass : Pass<"tc-mark-static", "::mlir::ModuleOp"> {
  let summary = "Marks the inputs that seldom change (prim.static), by name";
  let description = [{
    Not those that have a default, of which the caller need not know, nor those whose sizes only the run knows. Schedules may then count
    on tc-hoist-static, which takes what depends on them alone out of runs.
  }];
  let options = [ListOption<"inputs", "inputs", "std::string", "Static inputs, by name or pattern">];
  let dependentDialects = ["::tc::prim::PrimDialect"];
}

def HoistStaticPass : Pass<"tc-hoist-static", "::mlir::ModuleOp"> {
  let summary = "Gives launches that depend on static inputs alone a function of their own, whose results are states";
  let description = [{
    Function F.prepare computes what F then reads from states; F refuses to run before it. Weights that are inputs are so packed once
    for their kernels, and again when the caller says that they changed, by running it. Launches stay whose sizes only the run knows.
    After tc-mark-static.
  }];
  let dependentDialects = ["::tc::host::HostDialect", "::tc::prim::PrimDialect"];
}

def NumberLoopsPass : Pass<"tc-number-loops", "::mlir::func::FuncOp"> {
  let summary = "Gives loops on a device, that run so many times, a table of their iterations' numbers";
  let dependentDialects = ["::tc::host::HostDialect", "::tc::prim::PrimDialect"];
}

def PlanMemoryPass : Pass<"tc-plan-memory", "::mlir::ModuleOp"> {
  let summary = "Gives every value of the host program its place in memory";
  let description = [{
    Liveness over the program in its order; views share the memory of what they view; a launch writes in place where its
    `in_place` allows it and the input dies; results of the function are written straight to the caller's buffers where that
    is possible, else copied (host.copy). The rest goes to one arena, greedy best fit by size. Values of equal symbolic size
    share slots whose offsets are size expressions. Equal constants stand once, whichever functions read them. A state is read where
    the context has it; its next value is made there, if nothing reads the old one from then on, else copied at the end.
    Result: the attributes of Host.h.
  }];
  let dependentDialects = ["::tc::host::HostDialect", "::tc::prim::PrimDialect"];
}

def UnifySlicesPass : Pass<"tc-unify-slices", "::mlir::func::FuncOp"> {
  let summary = "Many regions that differ in the starts of their slices alone read them as data, and are one kernel";
  let dependentDialects = ["::tc::kernel::KernelDialect", "::tc::prim::PrimDialect"];
}

def VerifyFusePass : Pass<"tc-verify-fuse", "::mlir::func::FuncOp"> {
  let summary = "Checks what holds after tc-fuse: every primitive sits in a kernel.region";
}

#endif
