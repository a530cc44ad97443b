// What runs are refused for: in terms of the inputs, with where it comes from; --no-assume gives up that dims which the
// model gives one name are equal.
// RUN: tc-compile %s -o %t.bin --dim k=2..9 -q --logs guards 2>&1 | FileCheck %s --check-prefix=LOG
// RUN: tc-inspect --guards %t.bin | FileCheck %s --check-prefix=SHOWN
// RUN: tc-inspect --guards --json %t.bin | FileCheck %s --check-prefix=JSON
// RUN: not tc-run %t.bin --random-inputs --dim n=3 --dim x_dim0=3 2>&1 | FileCheck %s --check-prefix=NODIM
// RUN: tc-compile %s -o %t.free.bin --dim k=2..9 --no-assume n -q
// RUN: tc-inspect --guards %t.free.bin | FileCheck %s --check-prefix=FREE
// RUN: tc-run %t.free.bin --random-inputs --dim x_dim0=4 --dim y_dim0=4 | FileCheck %s --check-prefix=RUNS
// RUN: tc-run %t.free.bin --random-inputs --dim x_dim0=1 --dim y_dim0=4 | FileCheck %s --check-prefix=RUNS
// RUN: not tc-run %t.free.bin --random-inputs --dim x_dim0=3 --dim y_dim0=4 2>&1 | FileCheck %s --check-prefix=REFUSED
// RUN: not tc-compile %s -o %t.no.bin --no-assume m 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not tc-compile %s -o %t.no.bin --no-assume k 2>&1 | FileCheck %s --check-prefix=ONE
// RUN: not tc-inspect --guards %s 2>&1 | FileCheck %s --check-prefix=MODEL

// LOG: guards: main: dim 1 = 2; "x"; from the model
// LOG: guards: main: dim 0 of "x" = dim 0 of "y"
// LOG: guards: main: 2 <= k <= 9; dim 1 of "z"; from --dim k=2..9; costs a comparison, when sizes of inputs change; to give it up: leave --dim k=2..9 out

// SHOWN: function main: 5 guards
// SHOWN: dim 0 of "x" = dim 0 of "y"
// SHOWN-NEXT: inputs dim 0 of "x", dim 0 of "y"
// SHOWN-NEXT: from the model, which calls each of them n
// SHOWN-NEXT: costs a comparison, when sizes of inputs change
// SHOWN-NEXT: give up --no-assume n: each is a size of its own
// SHOWN: 2 <= k <= 9
// SHOWN-NEXT: inputs dim 1 of "z"
// SHOWN-NEXT: from --dim k=2..9

// JSON: "kind": "equal"
// NODIM: error: the model has no
// FREE: node "sum"
// RUNS: f32 (4, 2)
// REFUSED: error: node "sum": Add needs sizes that are equal or 1 in dim 0
// NONE: guards.mlir: error: --no-assume names "m", which is no dim of an input; they are "k", "n"
// ONE: guards.mlir: error: --no-assume k: it is the name of one dim of one input, of which nothing is assumed
// MODEL: tc-inspect: error: --guards is about artifacts
graph.func @main(%x: tensor<?x2xf32> {graph.name = "x", graph.dims = ["n", ""]},
                 %y: tensor<?x2xf32> {graph.name = "y", graph.dims = ["n", ""]},
                 %z: tensor<2x?xf32> {graph.name = "z", graph.dims = ["", "k"]})
    -> (tensor<?x2xf32> {graph.name = "s"}, tensor<2x?xf32> {graph.name = "r"}) attributes {opsets = {ai.onnx = 20 : i64}} {
  %s = graph.node "ai.onnx":"Add" opset 20(%x, %y) : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32> loc("sum")
  %r = graph.node "ai.onnx":"Relu" opset 20(%z) : (tensor<2x?xf32>) -> tensor<2x?xf32> loc("relu")
  graph.yield %s, %r : tensor<?x2xf32>, tensor<2x?xf32>
}
