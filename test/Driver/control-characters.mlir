// Names in a model reach a terminal as text: no control characters, no second line.
// RUN: not tc-compile %s -o %t.bin 2>%t.txt; FileCheck %s --input-file %t.txt
// CHECK: error: node "a?[31m?b": aten.no_such_operator.default
// CHECK-NOT: {{^}}b"
graph.func @main(%x: tensor<4xf32> {graph.name = "x"}) -> (tensor<4xf32> {graph.name = "y"}) attributes {opsets = {aten = 1 : i64}} {
  %c = graph.node "aten":"no_such_operator.default" opset 1(%x) {arg_names = ["self"]} : (tensor<4xf32>) -> tensor<4xf32> loc("a\1B[31m\0Ab")
  graph.yield %c : tensor<4xf32>
}
