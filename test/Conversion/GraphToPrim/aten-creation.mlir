// Exponents of a sequence of integers lie between its bounds as integers: by numbers, from the interpreter.
// RUN: tc-opt %s --tc-convert-graph-to-prim -o %t.mlir && tc-interpret %t.mlir | FileCheck %s

// CHECK: tensor<2xi64> [0, 100000]
graph.func @integer_powers() -> (tensor<2xi64>) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"logspace.default" opset 1() {arg_names = [], start = -2.7 : f64, end = 5.9 : f64, steps = 2 : i64, dtype = i64} : () -> tensor<2xi64>
  graph.yield %y : tensor<2xi64>
}
