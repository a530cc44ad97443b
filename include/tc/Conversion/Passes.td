//===- Passes.td - conversions between dialects ---------------------------------------------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_CONVERSION_PASSES
#define TC_CONVERSION_PASSES

include "mlir/Pass/PassBase.td"

def ConvertGraphToPrimPass : Pass<"tc-convert-graph-to-prim", "::mlir::ModuleOp"> {
  let summary = "Give front-end nodes their meaning in prim";
  let description = [{
    Every public graph.func becomes a func.func of prim ops with exact symbolic sizes; functions that the model brings along
    are inlined. Fails with one diagnostic for each reason that nodes fail for.
  }];
  let options = [
    ListOption<"dims", "dim", "std::string", "Sizes of named dimensions: batch=1, batch=1..64 or batch=multiple-of:8">,
    ListOption<"shapes", "shape", "std::string", "Sizes of inputs: x=1x3x224x224, -1 as in the model">,
    ListOption<"customOps", "custom-op", "std::string", "JSON files of custom operators">,
    Option<"allowHostOps", "allow-host-ops", "bool", "false", "Custom operators compute what is refused of operators that tc has">];
  let dependentDialects = ["::mlir::func::FuncDialect", "::tc::base::TCDialect", "::tc::prim::PrimDialect"];
}

#endif // TC_CONVERSION_PASSES
