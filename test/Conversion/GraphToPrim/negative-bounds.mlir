// A bound that follows from a size may lie below 0, and 64 bits do not hold its distance from the least and the greatest number of its type: it was taken for the greatest.
// RUN: tc-compile %s -o %t.mlir --compile-to=prim && FileCheck %s < %t.mlir

// CHECK: affine_map<()[s0] -> (s0 - 3)>
// CHECK-LABEL: func.func @main
// CHECK: prim.sizes
// CHECK: prim.max
graph.func @main(%x: tensor<?xi64> {graph.name = "x", graph.dims = ["n"]}) -> (tensor<3xi64> {graph.name = "y"}) attributes {opsets = {aten = 1 : i64}} {
  %z = graph.node "aten":"zeros.default" opset 1() {arg_names = [], size = array<i64: 3>, dtype = i64} : () -> tensor<3xi64>
  %n = graph.node "aten":"sym_size.int" opset 1(%x) {arg_names = ["self"], dim = 0 : i64} : (tensor<?xi64>) -> tensor<i64>
  %m = graph.node "torch":"_operator.add" opset 1(%n) {a = -3 : i64, arg_names = ["b"], b = "b"} : (tensor<i64>) -> tensor<i64>
  %y = graph.node "aten":"clamp.default" opset 1(%z, %m) {arg_names = ["self", "min"], min = "min"} : (tensor<3xi64>, tensor<i64>) -> tensor<3xi64>
  graph.yield %y : tensor<3xi64>
}
