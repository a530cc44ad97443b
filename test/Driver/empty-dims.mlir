// Indices into a dim that is empty when it runs have no nearest element: such runs are refused, and those that take nothing are not.
// RUN: tc-compile %s -o %t.bin -q
// RUN: tc-run %t.bin --random-inputs --dim n=0 --dim k=0 | FileCheck %s --check-prefix=NONE
// RUN: tc-run %t.bin --random-inputs --dim n=3 --dim k=2 | FileCheck %s --check-prefix=SOME
// RUN: not tc-run %t.bin --random-inputs --dim n=0 --dim k=2 2>&1 | FileCheck %s
// NONE: y: f32 (0, 4)
// SOME: y: f32 (2, 4)
// CHECK: error: node "taken": Gather needs elements in the dim that its indices are of;
graph.func @main(%x: tensor<?x4xf32> {graph.name = "x", graph.dims = ["n", ""]}, %i: tensor<?xi64> {graph.name = "i", graph.dims = ["k"]}) -> (tensor<?x4xf32> {graph.name = "y"}) attributes {opsets = {ai.onnx = 19 : i64}} {
  %y = graph.node "ai.onnx":"Gather" opset 19(%x, %i) {axis = 0 : i64} : (tensor<?x4xf32>, tensor<?xi64>) -> tensor<?x4xf32> loc("taken")
  graph.yield %y : tensor<?x4xf32>
}
