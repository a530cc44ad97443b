// Proves: a backward operator is the gradient of its forward operator; maxima go where their indices say; what is not asked for is not
// computed; a forward operator that there is none of is named.
// RUN: not tc-opt %s -tc-convert-graph-to-prim -split-input-file 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=ERROR --input-file=%t

// CHECK-LABEL: func.func @silu
// CHECK: prim.logistic
graph.func @silu(%g: tensor<4xf32> {graph.name = "g"}, %x: tensor<4xf32> {graph.name = "x"}) -> tensor<4xf32> attributes {opsets = {aten = 10 : i64}} {
  %y = graph.node "aten":"silu_backward.default" opset 10(%g, %x) {arg_names = ["grad_output", "self"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  graph.yield %y : tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @max_pool
// CHECK: prim.scatter_elements
graph.func @max_pool(%g: tensor<2x3x2x2xf32> {graph.name = "g"}, %x: tensor<2x3x4x4xf32> {graph.name = "x"}, %i: tensor<2x3x2x2xi64> {graph.name = "i"}) -> tensor<2x3x4x4xf32> attributes {opsets = {aten = 10 : i64}} {
  %y = graph.node "aten":"max_pool2d_with_indices_backward.default" opset 10(%g, %x, %i) {arg_names = ["grad_output", "self", "indices"], kernel_size = array<i64: 2, 2>} : (tensor<2x3x2x2xf32>, tensor<2x3x4x4xf32>, tensor<2x3x2x2xi64>) -> tensor<2x3x4x4xf32>
  graph.yield %y : tensor<2x3x4x4xf32>
}

// -----

// Of the norm only the gradient of the bias is asked for: a sum.
// CHECK-LABEL: func.func @bias
// CHECK-NOT: prim.mul
// CHECK: prim.reduce
graph.func @bias(%g: tensor<4x6xf32> {graph.name = "g"}, %x: tensor<4x6xf32> {graph.name = "x"}, %m: tensor<4x1xf32> {graph.name = "m"}) -> tensor<6xf32> attributes {opsets = {aten = 10 : i64}} {
  %y:3 = graph.node "aten":"native_layer_norm_backward.default" opset 10(%g, %x, %m, %m) {arg_names = ["grad_out", "input", "mean", "rstd"], normalized_shape = array<i64: 6>, output_mask = array<i1: false, false, true>} : (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x1xf32>, tensor<4x1xf32>) -> (none, none, tensor<6xf32>)
  graph.yield %y#2 : tensor<6xf32>
}

// -----

// ERROR: leaky_relu_backward.default (opset 10) of the forward operator's result is not supported
graph.func @of_result(%g: tensor<4xf32> {graph.name = "g"}, %x: tensor<4xf32> {graph.name = "x"}) -> !tc.unknown attributes {opsets = {aten = 10 : i64}} {
  %y = graph.node "aten":"leaky_relu_backward.default" opset 10(%g, %x) {arg_names = ["grad_output", "self"], negative_slope = 0.1, self_is_result = true} : (tensor<4xf32>, tensor<4xf32>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// ERROR: silu_backward.default (opset 10): argument "grad_output" is missing
graph.func @no_gradient(%x: tensor<4xf32> {graph.name = "x"}) -> !tc.unknown attributes {opsets = {aten = 10 : i64}} {
  %y = graph.node "aten":"silu_backward.default" opset 10(%x) {arg_names = ["self"]} : (tensor<4xf32>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}
