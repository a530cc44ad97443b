// Common divisors, zeta, polygamma, exponentials of matrices, mantissas, diagonals and fake quantisation by numbers,
// from the interpreter; PyTorch's to the last digit but one.
// RUN: tc-opt %s --tc-convert-graph-to-prim -o %t.mlir
// RUN: tc-interpret %t.mlir --function divisors > %t.txt
// RUN: tc-interpret %t.mlir --function zeta >> %t.txt
// RUN: tc-interpret %t.mlir --function matrices >> %t.txt
// RUN: tc-interpret %t.mlir --function parts >> %t.txt
// RUN: tc-interpret %t.mlir --function diagonals >> %t.txt
// RUN: tc-interpret %t.mlir --function fake >> %t.txt
// RUN: FileCheck %s < %t.txt

graph.func @divisors() -> (tensor<6xi64>, tensor<6xi64>, tensor<3xui8>) attributes {opsets = {aten = 1 : i64}} {
  %x = graph.constant dense<[12, -18, 0, 0, 7, 9223372036854775807]> : tensor<6xi64>
  %y = graph.constant dense<[-8, 27, 5, 0, 13, 7]> : tensor<6xi64>
  // CHECK: tensor<6xi64> [4, 9, 5, 0, 1, 7]
  %0 = graph.node "aten":"gcd.default" opset 1(%x, %y) {arg_names = ["self", "other"]} : (tensor<6xi64>, tensor<6xi64>) -> tensor<6xi64>
  // CHECK: tensor<6xi64> [24, 54, 0, 0, 91, 9223372036854775807]
  %1 = graph.node "aten":"lcm.default" opset 1(%x, %y) {arg_names = ["self", "other"]} : (tensor<6xi64>, tensor<6xi64>) -> tensor<6xi64>
  %a = graph.constant dense<[200, 6, 255]> : tensor<3xui8>
  %b = graph.constant dense<[150, 4, 0]> : tensor<3xui8>
  // CHECK: tensor<3xui8> [50, 2, 255]
  %2 = graph.node "aten":"gcd.default" opset 1(%a, %b) {arg_names = ["self", "other"]} : (tensor<3xui8>, tensor<3xui8>) -> tensor<3xui8>
  graph.yield %0, %1, %2 : tensor<6xi64>, tensor<6xi64>, tensor<3xui8>
}

// Left of 0, at poles, where the sum has no value, and far to the right.
graph.func @zeta() -> (tensor<8xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<2xf64>) attributes {opsets = {aten = 1 : i64}} {
  %x = graph.constant dense<[2.0, 3.0, 2.0, 4.0, 1.0, 0.5, 2.5, 60.0]> : tensor<8xf32>
  %q = graph.constant dense<[-1.5, -2.5, 0.0, -3.0, 2.0, 2.0, -1.5, 1.0]> : tensor<8xf32>
  // CHECK: tensor<8xf32> [9.37924671, 0.054102{{[0-9]*}}, inf, inf, inf, nan, nan, 1]
  %0 = graph.node "aten":"special_zeta.default" opset 1(%x, %q) {arg_names = ["self", "other"]} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %y = graph.constant dense<[0.25, -0.75, 3.5, 100.0, 1.0, -2.5]> : tensor<6xf32>
  // CHECK: tensor<6xf32> [-4.22745371, -2.89412022, 1.10315669, 4.60016203, -0.57721567{{[0-9]*}}, 1.10315669]
  %1 = graph.node "aten":"polygamma.default" opset 1(%y) {arg_names = ["self"], n = 0 : i64} : (tensor<6xf32>) -> tensor<6xf32>
  // CHECK: tensor<6xf32> [17.1973286, 18.9751072, 0.33035776, 0.0100501664, 1.64493406, 9.53924656]
  %2 = graph.node "aten":"polygamma.default" opset 1(%y) {arg_names = ["self"], n = 1 : i64} : (tensor<6xf32>) -> tensor<6xf32>
  // CHECK: tensor<6xf32> [1538.7821, 1557.74512, 0.0703058466, 2.03019999e-06, 6.4939394, 194.747879]
  %3 = graph.node "aten":"polygamma.default" opset 1(%y) {arg_names = ["self"], n = 3 : i64} : (tensor<6xf32>) -> tensor<6xf32>
  %d = graph.constant dense<[0.25, -2.5]> : tensor<2xf64>
  // CHECK: tensor<2xf64> [-129.32774, -0.108204052]
  %4 = graph.node "aten":"special_polygamma.default" opset 1(%d) {arg_names = ["self"], n = 2 : i64} : (tensor<2xf64>) -> tensor<2xf64>
  graph.yield %0, %1, %2, %3, %4 : tensor<8xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<2xf64>
}

// One that is squared five times beside one that is not.
graph.func @matrices() -> tensor<2x2x2xf32> attributes {opsets = {aten = 1 : i64}} {
  %x = graph.constant dense<[[[0.5, -0.25], [0.125, 0.0]], [[3.0, -20.0], [20.0, -1.0]]]> : tensor<2x2x2xf32>
  // CHECK: tensor<2x2x2xf32> [1.62682152, -0.322680891, 0.161340445, 0.981459737, 1.58908784, -2.37004161, 2.37004161, 1.11507952]
  %0 = graph.node "aten":"linalg_matrix_exp.default" opset 1(%x) {arg_names = ["self"]} : (tensor<2x2x2xf32>) -> tensor<2x2x2xf32>
  graph.yield %0 : tensor<2x2x2xf32>
}

graph.func @parts() -> (tensor<8xf32>, tensor<8xi32>, tensor<3xf64>, tensor<3xi32>) attributes {opsets = {aten = 1 : i64}} {
  %x = graph.constant dense<[1.0, -0.75, 0.0, 1.0e-40, 1.17549435e-38, 3.0e38, 0x7F800000, -5.0]> : tensor<8xf32>
  // CHECK: tensor<8xf32> [0.5, -0.75, 0, 0.544448853, 0.5, 0.881620765, inf, -0.625]
  // CHECK: tensor<8xi32> [1, 0, 0, -132, -125, 128, 0, 3]
  %0:2 = graph.node "aten":"frexp.Tensor" opset 1(%x) {arg_names = ["self"]} : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xi32>)
  %d = graph.constant dense<[-1.0e300, 5.0e-324, 0.1]> : tensor<3xf64>
  // CHECK: tensor<3xf64> [-0.746610895, 0.5, 0.8]
  // CHECK: tensor<3xi32> [997, -1073, -3]
  %1:2 = graph.node "aten":"frexp.Tensor" opset 1(%d) {arg_names = ["self"]} : (tensor<3xf64>) -> (tensor<3xf64>, tensor<3xi32>)
  graph.yield %0#0, %0#1, %1#0, %1#1 : tensor<8xf32>, tensor<8xi32>, tensor<3xf64>, tensor<3xi32>
}

graph.func @diagonals() -> (tensor<5x2xi32>, tensor<5x2xi32>, tensor<2x2x2xi32>) attributes {opsets = {aten = 1 : i64}} {
  %x = graph.constant dense<0> : tensor<5x2xi32>
  // CHECK: tensor<5x2xi32> [7, 0, 0, 7, 0, 0, 0, 0, 0, 0]
  %0 = graph.node "aten":"fill_diagonal_.default" opset 1(%x) {arg_names = ["self"], fill_value = 7 : i64} : (tensor<5x2xi32>) -> tensor<5x2xi32>
  // CHECK: tensor<5x2xi32> [7, 0, 0, 7, 0, 0, 7, 0, 0, 7]
  %1 = graph.node "aten":"fill_diagonal_.default" opset 1(%x) {arg_names = ["self"], fill_value = 7 : i64, wrap = true} : (tensor<5x2xi32>) -> tensor<5x2xi32>
  %y = graph.constant dense<1> : tensor<2x2x2xi32>
  // CHECK: tensor<2x2x2xi32> [7, 1, 1, 1, 1, 1, 1, 7]
  %2 = graph.node "aten":"fill_diagonal_.default" opset 1(%y) {arg_names = ["self"], fill_value = 7 : i64} : (tensor<2x2x2xi32>) -> tensor<2x2x2xi32>
  graph.yield %0, %1, %2 : tensor<5x2xi32>, tensor<5x2xi32>, tensor<2x2x2xi32>
}

graph.func @fake() -> (tensor<6xf32>, tensor<2x3xf32>, tensor<2x3xi1>) attributes {opsets = {aten = 1 : i64}} {
  %x = graph.constant dense<[0.26, -0.25, 100.0, -100.0, 0x7FC00000, 0.05]> : tensor<6xf32>
  // CHECK: tensor<6xf32> [0.300000012, -0.200000003, 25.2000008, -0.300000012, -0.300000012, 0]
  %0 = graph.node "aten":"fake_quantize_per_tensor_affine.default" opset 1(%x) {arg_names = ["self"], scale = 0.1, zero_point = 3 : i64, quant_min = 0 : i64, quant_max = 255 : i64} : (tensor<6xf32>) -> tensor<6xf32>
  %m = graph.constant dense<[[0.26, -0.25, 100.0], [-100.0, 0.0, 0.05]]> : tensor<2x3xf32>
  %scale = graph.constant dense<[0.1, 0.5]> : tensor<2xf32>
  %zero = graph.constant dense<[0, -2]> : tensor<2xi32>
  // CHECK: tensor<2x3xf32> [0.300000012, -0.200000003, 12.6999998, -63, 0, 0]
  // CHECK: tensor<2x3xi1> [1, 1, 0, 0, 1, 1]
  %1:2 = graph.node "aten":"fake_quantize_per_channel_affine_cachemask.default" opset 1(%m, %scale, %zero) {arg_names = ["self", "scale", "zero_point"], axis = 0 : i64, quant_min = -128 : i64, quant_max = 127 : i64} : (tensor<2x3xf32>, tensor<2xf32>, tensor<2xi32>) -> (tensor<2x3xf32>, tensor<2x3xi1>)
  graph.yield %0, %1#0, %1#1 : tensor<6xf32>, tensor<2x3xf32>, tensor<2x3xi1>
}
