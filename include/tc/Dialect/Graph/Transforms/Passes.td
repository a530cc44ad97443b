//===- Passes.td - passes on graphs ---------------------------------------------------------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_GRAPH_TRANSFORMS_PASSES
#define TC_DIALECT_GRAPH_TRANSFORMS_PASSES

include "mlir/Pass/PassBase.td"

def FunctionalizeGraphPass : Pass<"tc-functionalize-graph", "::mlir::ModuleOp"> {
  let summary = "PyTorch's in-place operators, out= arguments and writes through views as values";
  let description = [{
    Nodes that write memory become the operators that return what those write, and every name of the memory (its views, made
    before or after) is derived anew where it is read next. New values of arguments become results of the function, called
    `<argument>.updated`; those of parameters and buffers are written to states. What has no such form gets the attribute `graph.refused`, a sentence that
    tc-convert-graph-to-prim reports together with all else that it refuses. A node of a custom operator whose schema says that it writes
    returns the new values, too, and has the attribute `graph.functional`.
  }];
  let options = [ListOption<"customOps", "custom-op", "std::string", "JSON files of custom operators">];
  let dependentDialects = ["::tc::graph::GraphDialect", "::tc::base::TCDialect"];
}

#endif // TC_DIALECT_GRAPH_TRANSFORMS_PASSES
