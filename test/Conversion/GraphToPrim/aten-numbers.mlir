// What ATen's operators make of their arguments: by numbers, from the interpreter.
// RUN: tc-opt %s --tc-convert-graph-to-prim -o %t.mlir && tc-interpret %t.mlir | FileCheck %s

graph.func @numbers() -> (tensor<2xi64>, tensor<2x2xf32>, tensor<2x2xf32>) attributes {opsets = {aten = 1 : i64}} {
  // Exponents of a sequence of integers lie between its bounds as integers.
  // CHECK: tensor<2xi64> [0, 100000]
  %0 = graph.node "aten":"logspace.default" opset 1() {arg_names = [], start = -2.7 : f64, end = 5.9 : f64, steps = 2 : i64, dtype = i64} : () -> tensor<2xi64>
  // A padding index of -1 is the last row in the operator that users call, and none in those behind it.
  %w = graph.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>
  %i = graph.constant dense<[0, 2, 1, 2]> : tensor<4xi64>
  %o = graph.constant dense<[0, 2]> : tensor<2xi64>
  // CHECK: tensor<2x2xf32> [1, 2, 3, 4]
  %1:4 = graph.node "aten":"embedding_bag.padding_idx" opset 1(%w, %i, %o) {arg_names = ["weight", "indices", "offsets"], mode = 0 : i64, padding_idx = -1 : i64} : (tensor<3x2xf32>, tensor<4xi64>, tensor<2xi64>) -> (tensor<2x2xf32>, !tc.unknown, !tc.unknown, !tc.unknown)
  // CHECK: tensor<2x2xf32> [6, 8, 8, 10]
  %2:4 = graph.node "aten":"_embedding_bag.default" opset 1(%w, %i, %o) {arg_names = ["weight", "indices", "offsets"], mode = 0 : i64, padding_idx = -1 : i64} : (tensor<3x2xf32>, tensor<4xi64>, tensor<2xi64>) -> (tensor<2x2xf32>, !tc.unknown, !tc.unknown, !tc.unknown)
  graph.yield %0, %1#0, %2#0 : tensor<2xi64>, tensor<2x2xf32>, tensor<2x2xf32>
}
