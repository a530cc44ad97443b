// Inputs are found by their names: two of one name are refused.
// RUN: not tc-compile %s -q -o %t.bin 2>&1 | FileCheck %s
// CHECK: twin-inputs.mlir: error: input "x" has the name of another input; rename it
graph.func @main(%x: tensor<2xf32> {graph.name = "x"}, %y: tensor<2xf32> {graph.name = "x"}) -> (tensor<2xf32> {graph.name = "z"}) attributes {opsets = {ai.onnx = 17 : i64}} {
  %z = graph.node "ai.onnx":"Add" opset 17(%x, %y) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32> loc("a")
  graph.yield %z : tensor<2xf32>
}
