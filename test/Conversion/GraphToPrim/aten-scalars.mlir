// Python's numbers beside tensors whose type does not hold them: by numbers, from the interpreter; PyTorch's are the same.
// RUN: split-file %s %t
// RUN: tc-opt %t/run.mlir --tc-convert-graph-to-prim -o %t/prim.mlir && tc-interpret %t/prim.mlir | FileCheck %t/run.mlir
// RUN: not tc-opt %t/none.mlir --tc-convert-graph-to-prim 2>&1 | FileCheck %t/none.mlir

//--- run.mlir
graph.func @scalars() -> (tensor<3xui8>, tensor<3xui8>, tensor<3xsi8>, tensor<3xui8>, tensor<3xsi8>, tensor<2xf16>, tensor<2xf16>, tensor<2xf16>, tensor<f64>, tensor<f64>) attributes {opsets = {aten = 1 : i64}} {
  %u = graph.constant dense<[3, 44, 250]> : tensor<3xui8>
  %s = graph.constant dense<[-100, 5, 100]> : tensor<3xsi8>
  %h = graph.constant dense<[0.9, 12.3]> : tensor<2xf16>
  // Bounds that all elements keep to change none.
  // CHECK: tensor<3xui8> [3, 44, 250]
  %0 = graph.node "aten":"clamp.default" opset 1(%u) {arg_names = ["self"], max = 300 : i64, min = -5 : i64} : (tensor<3xui8>) -> tensor<3xui8>
  // CHECK: tensor<3xui8> [3, 44, 100]
  %1 = graph.node "aten":"hardtanh.default" opset 1(%u) {arg_names = ["self"], min_val = -1.0 : f64, max_val = 100.0 : f64} : (tensor<3xui8>) -> tensor<3xui8>
  // CHECK: tensor<3xsi8> [-100, 5, 100]
  %2 = graph.node "aten":"clamp_max.default" opset 1(%s) {arg_names = ["self"], max = 1000 : i64} : (tensor<3xsi8>) -> tensor<3xsi8>
  // Of numbers that the program computes, too.
  %n = graph.constant dense<300> : tensor<i64>
  %m = graph.node "torch":"_operator.add" opset 1(%n, %n) {arg_names = ["a", "b"]} : (tensor<i64>, tensor<i64>) -> tensor<i64>
  // CHECK: tensor<3xui8> [3, 44, 250]
  %3 = graph.node "aten":"clamp_max.default" opset 1(%u, %m) {arg_names = ["self", "max"], max = "max"} : (tensor<3xui8>, tensor<i64>) -> tensor<3xui8>
  // CHECK: tensor<3xsi8> [-100, 5, 100]
  %4 = graph.node "aten":"hardtanh.default" opset 1(%s) {arg_names = ["self"], min_val = -200 : i64, max_val = 200 : i64} : (tensor<3xsi8>) -> tensor<3xsi8>
  // 0.1 is 0.09998 in f16: the sum and the remainder take that, the product 0.1.
  // CHECK: tensor<2xf16> [0.00012207{{[0-9]*}}, 0.0998535{{[0-9]*}}]
  %5 = graph.node "aten":"remainder.Scalar" opset 1(%h) {arg_names = ["self"], other = 0.1 : f64} : (tensor<2xf16>) -> tensor<2xf16>
  // CHECK: tensor<2xf16> [1, 12.3984{{[0-9]*}}]
  %6 = graph.node "aten":"add.Scalar" opset 1(%h) {arg_names = ["self"], other = 0.1 : f64} : (tensor<2xf16>) -> tensor<2xf16>
  // CHECK: tensor<2xf16> [0.0899658{{[0-9]*}}, 1.22949{{[0-9]*}}]
  %7 = graph.node "aten":"mul.Scalar" opset 1(%h) {arg_names = ["self"], other = 0.1 : f64} : (tensor<2xf16>) -> tensor<2xf16>
  // Python's remainder of floats does not come from their rounded quotient.
  %a = graph.constant dense<1.0> : tensor<f64>
  %b = graph.constant dense<0.1> : tensor<f64>
  %c = graph.constant dense<-7.0> : tensor<f64>
  %d = graph.constant dense<0.7> : tensor<f64>
  // CHECK: tensor<f64> [0.1]
  %8 = graph.node "torch":"_operator.mod" opset 1(%a, %b) {arg_names = ["a", "b"]} : (tensor<f64>, tensor<f64>) -> tensor<f64>
  // CHECK: tensor<f64> [0.7]
  %9 = graph.node "torch":"_operator.mod" opset 1(%c, %d) {arg_names = ["a", "b"]} : (tensor<f64>, tensor<f64>) -> tensor<f64>
  graph.yield %0, %1, %2, %3, %4, %5, %6, %7, %8, %9 : tensor<3xui8>, tensor<3xui8>, tensor<3xsi8>, tensor<3xui8>, tensor<3xsi8>, tensor<2xf16>, tensor<2xf16>, tensor<2xf16>, tensor<f64>, tensor<f64>
}

//--- none.mlir
// CHECK: node "none": aten.clamp.default (opset 1): argument "min" is 300, but elements lie between 0 and 255
graph.func @none(%x: tensor<4xui8> {graph.name = "x"}) -> tensor<4xui8> attributes {opsets = {aten = 1 : i64}} {
  %c = graph.node "aten":"clamp.default" opset 1(%x) {arg_names = ["self"], min = 300 : i64} : (tensor<4xui8>) -> tensor<4xui8> loc("none")
  graph.yield %c : tensor<4xui8>
}
