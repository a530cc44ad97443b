// Products and functions of complex numbers, by their parts: by numbers, from the interpreter.
// RUN: tc-opt %s --tc-convert-graph-to-prim -o %t.mlir && tc-interpret %t.mlir | FileCheck %s

graph.func @products() -> (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) attributes {opsets = {aten = 1 : i64}} {
  %x = graph.constant dense<[[1.0, 2.0], [3.0, -1.0]]> : tensor<2x2xf32>
  %y = graph.constant dense<[[0.5, 1.0], [-2.0, 4.0]]> : tensor<2x2xf32>
  %a = graph.node "aten":"view_as_complex.default" opset 1(%x) {arg_names = ["self"]} : (tensor<2x2xf32>) -> tensor<2xcomplex<f32>>
  %b = graph.node "aten":"view_as_complex.default" opset 1(%y) {arg_names = ["self"]} : (tensor<2x2xf32>) -> tensor<2xcomplex<f32>>
  // (1 + 2i)(0.5 + i) and (3 - i)(-2 + 4i)
  // CHECK: tensor<2x2xf32> [-1.5, 2, -2, 14]
  %0 = graph.node "aten":"einsum.default" opset 1(%a, %b) {arg_names = ["tensors.0", "tensors.1"], equation = "i,i->i", tensors.count = 2 : i64} : (tensor<2xcomplex<f32>>, tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>>
  %r = graph.node "aten":"view_as_real.default" opset 1(%0) {arg_names = ["self"]} : (tensor<2xcomplex<f32>>) -> tensor<2x2xf32>
  // Rows of a times the column b.
  // CHECK: tensor<2x2xf32> [-1.5, 2, 2.5, 2.5]
  %m = graph.node "aten":"unsqueeze.default" opset 1(%a) {arg_names = ["self"], dim = 1 : i64} : (tensor<2xcomplex<f32>>) -> tensor<2x1xcomplex<f32>>
  %n = graph.node "aten":"slice.Tensor" opset 1(%b) {arg_names = ["self"], dim = 0 : i64, start = 0 : i64, end = 1 : i64} : (tensor<2xcomplex<f32>>) -> tensor<1xcomplex<f32>>
  %1 = graph.node "aten":"mv.default" opset 1(%m, %n) {arg_names = ["self", "vec"]} : (tensor<2x1xcomplex<f32>>, tensor<1xcomplex<f32>>) -> tensor<2xcomplex<f32>>
  %s = graph.node "aten":"view_as_real.default" opset 1(%1) {arg_names = ["self"]} : (tensor<2xcomplex<f32>>) -> tensor<2x2xf32>
  // e^(1 + 2i), e^(3 - i)
  // CHECK: tensor<2x2xf32> [-1.13120437, 2.47172666, 10.8522615, -16.9013958]
  %2 = graph.node "aten":"exp.default" opset 1(%a) {arg_names = ["self"]} : (tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>>
  %t = graph.node "aten":"view_as_real.default" opset 1(%2) {arg_names = ["self"]} : (tensor<2xcomplex<f32>>) -> tensor<2x2xf32>
  // Python's number 2i, which archives of torch.export hold as its parts.
  // CHECK: tensor<2x2xf32> [-4, 2, 2, 6]
  %3 = graph.node "aten":"mul.Tensor" opset 1(%a) {arg_names = ["self"], other = "as_complex", other.value = array<f64: 0.0, 2.0>} : (tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>>
  %u = graph.node "aten":"view_as_real.default" opset 1(%3) {arg_names = ["self"]} : (tensor<2xcomplex<f32>>) -> tensor<2x2xf32>
  graph.yield %r, %s, %t, %u : tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>
}
