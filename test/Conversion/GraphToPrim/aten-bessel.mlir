// Bessel functions of PyTorch by numbers, from the interpreter.
// RUN: tc-opt %s --tc-convert-graph-to-prim -o %t.mlir && tc-interpret %t.mlir | FileCheck %s

// On both sides of 8, where their series change, of both signs, and where exp(x) has no number.
graph.func @bessel() -> (tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<2xf64>) attributes {opsets = {aten = 1 : i64}} {
  %x = graph.constant dense<[0.0, -0.5, 8.0, 8.5, -30.0, 100.0]> : tensor<6xf32>
  // CHECK: tensor<6xf32> [1, 1.06348336, 427.564117, 683.161926, 7.81672317e+11, inf]
  %0 = graph.node "aten":"i0.default" opset 1(%x) {arg_names = ["self"]} : (tensor<6xf32>) -> tensor<6xf32>
  // CHECK: tensor<6xf32> [1, 0.645035267, 0.143431783, 0.139001846, 0.0731459484, 0.0399443805]
  %1 = graph.node "aten":"special_i0e.default" opset 1(%x) {arg_names = ["self"]} : (tensor<6xf32>) -> tensor<6xf32>
  // CHECK: tensor<6xf32> [0, -0.257894307, 399.873138, 641.619873, -7.68532021e+11, inf]
  %2 = graph.node "aten":"special_i1.default" opset 1(%x) {arg_names = ["self"]} : (tensor<6xf32>) -> tensor<6xf32>
  // CHECK: tensor<6xf32> [0, -0.156420797, 0.134142488, 0.130549356, -0.0719163269, 0.0397441536]
  %3 = graph.node "aten":"special_i1e.default" opset 1(%x) {arg_names = ["self"]} : (tensor<6xf32>) -> tensor<6xf32>
  %d = graph.constant dense<[3.25, -12.5]> : tensor<2xf64>
  // CHECK: tensor<2xf64> [4.95254617, -29345.7496]
  %4 = graph.node "aten":"special_i1.default" opset 1(%d) {arg_names = ["self"]} : (tensor<2xf64>) -> tensor<2xf64>
  graph.yield %0, %1, %2, %3, %4 : tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<2xf64>
}
