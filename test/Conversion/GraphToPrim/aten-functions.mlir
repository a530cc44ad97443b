// Functions of ATen that are made of many steps, at the ends of their ranges: by numbers, from the interpreter.
// RUN: tc-opt %s --tc-convert-graph-to-prim -o %t.mlir && tc-interpret %t.mlir | FileCheck %s

graph.func @functions() -> (tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<4xf32>, tensor<4xi64>, tensor<f32>, tensor<f32>) attributes {opsets = {aten = 1 : i64}} {
  %x = graph.constant dense<[-1.0, 0.5, 5.0, 9.0, 0x7F800000]> : tensor<5xf32>
  // Far out erfc keeps its digits, where 1 - erf has none.
  // CHECK: tensor<5xf32> [1.84270084, 0.479500085, 1.53745994e-12, 4.13703216e-37, 0]
  %0 = graph.node "aten":"erfc.default" opset 1(%x) {arg_names = ["self"]} : (tensor<5xf32>) -> tensor<5xf32>
  // CHECK: tensor<5xf32> [inf, 0.572364926, 3.17805386, 10.6046028, inf]
  %1 = graph.node "aten":"lgamma.default" opset 1(%x) {arg_names = ["self"]} : (tensor<5xf32>) -> tensor<5xf32>
  // CHECK: tensor<5xf32> [nan, -1.96351004, 1.5061177, 2.14064145, inf]
  %2 = graph.node "aten":"digamma.default" opset 1(%x) {arg_names = ["self"]} : (tensor<5xf32>) -> tensor<5xf32>
  // CHECK: tensor<5xf32> [-inf, 0.476936281, nan, nan, nan]
  %3 = graph.node "aten":"erfinv.default" opset 1(%x) {arg_names = ["self"]} : (tensor<5xf32>) -> tensor<5xf32>
  // What stands far below a greater element is not lost.
  %l = graph.constant dense<[-1000.0, 0xFF800000, 3.0, 1000.0]> : tensor<4xf32>
  // CHECK: tensor<4xf32> [-1000, -1000, 3, 1000]
  %4 = graph.node "aten":"logcumsumexp.default" opset 1(%l) {arg_names = ["self"], dim = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  // The last of equal ones; NaN wins, and stays.
  %m = graph.constant dense<[1.0, 1.0, 0x7FC00000, 5.0]> : tensor<4xf32>
  // CHECK: tensor<4xi64> [0, 1, 2, 2]
  %5:2 = graph.node "aten":"cummax.default" opset 1(%m) {arg_names = ["self"], dim = 0 : i64} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi64>)
  // A weight of one element is the slope of one variable, whatever the weight's rank.
  %v = graph.constant dense<-2.0> : tensor<f32>
  %w = graph.constant dense<[0.25]> : tensor<1xf32>
  %w0 = graph.constant dense<0.5> : tensor<f32>
  // CHECK: tensor<f32> [-0.5]
  %6 = graph.node "aten":"prelu.default" opset 1(%v, %w) {arg_names = ["self", "weight"]} : (tensor<f32>, tensor<1xf32>) -> tensor<f32>
  // CHECK: tensor<f32> [-1]
  %7 = graph.node "aten":"prelu.default" opset 1(%v, %w0) {arg_names = ["self", "weight"]} : (tensor<f32>, tensor<f32>) -> tensor<f32>
  graph.yield %0, %1, %2, %3, %4, %5#1, %6, %7 : tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<4xf32>, tensor<4xi64>, tensor<f32>, tensor<f32>
}
