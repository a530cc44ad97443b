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

// The gradient of a parameter of f32 is of f32, as the model declares it, though the input is narrower (autocast).
// CHECK-LABEL: func.func @of_parameters
// CHECK: return {{.*}} : tensor<4x6xbf16>, tensor<6xf32>
graph.func @of_parameters(%g: tensor<4x6xbf16> {graph.name = "g"}, %x: tensor<4x6xbf16> {graph.name = "x"}, %m: tensor<4x1xf32> {graph.name = "m"}, %w: tensor<6xf32> {graph.name = "w"}) -> (tensor<4x6xbf16>, tensor<6xf32>) attributes {opsets = {aten = 10 : i64}} {
  %y:3 = graph.node "aten":"native_layer_norm_backward.default" opset 10(%g, %x, %m, %m, %w) {arg_names = ["grad_out", "input", "mean", "rstd", "weight"], normalized_shape = array<i64: 6>, output_mask = array<i1: true, true, false>} : (tensor<4x6xbf16>, tensor<4x6xbf16>, tensor<4x1xf32>, tensor<4x1xf32>, tensor<6xf32>) -> (tensor<4x6xbf16>, tensor<6xf32>, none)
  graph.yield %y#0, %y#1 : tensor<4x6xbf16>, tensor<6xf32>
}

// -----

// The slope of softplus is the logistic function, also where it is 1/2; that of a probability's loss is finite.
// CHECK-LABEL: func.func @of_operands
// CHECK: prim.logistic
// CHECK: prim.max
graph.func @of_operands(%g: tensor<4xf32> {graph.name = "g"}, %x: tensor<4xf32> {graph.name = "x"}, %t: tensor<4xf32> {graph.name = "t"}) -> (tensor<4xf32>, tensor<4xf32>) attributes {opsets = {aten = 10 : i64}} {
  %y = graph.node "aten":"softplus_backward.default" opset 10(%g, %x) {arg_names = ["grad_output", "self"], beta = 1.0, threshold = 20.0} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %z = graph.node "aten":"binary_cross_entropy_backward.default" opset 10(%g, %x, %t) {arg_names = ["grad_output", "self", "target"], reduction = 0 : i64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  graph.yield %y, %z : tensor<4xf32>, tensor<4xf32>
}

// -----

// The gradient of a filter is a convolution of the input, whose channels become images, with that of the result; of groups of
// few channels, a product.
// CHECK-LABEL: func.func @of_filter
// CHECK: prim.conv {{.*}} groups 2 : (tensor<16x7x7x4xf32>, tensor<7x7x2x40xf32>) -> tensor<16x3x3x40xf32>
graph.func @of_filter(%g: tensor<2x40x7x7xf32> {graph.name = "g"}, %x: tensor<2x32x7x7xf32> {graph.name = "x"}, %w: tensor<40x16x3x3xf32> {graph.name = "w"}) -> tensor<40x16x3x3xf32> attributes {opsets = {aten = 10 : i64}} {
  %y:3 = graph.node "aten":"convolution_backward.default" opset 10(%g, %x, %w) {arg_names = ["grad_output", "input", "weight"], dilation = array<i64: 1, 1>, groups = 2 : i64, output_mask = array<i1: false, true, false>, output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1>, stride = array<i64: 1, 1>, transposed = false} : (tensor<2x40x7x7xf32>, tensor<2x32x7x7xf32>, tensor<40x16x3x3xf32>) -> (none, tensor<40x16x3x3xf32>, none)
  graph.yield %y#1 : tensor<40x16x3x3xf32>
}

// CHECK-LABEL: func.func @of_small_groups
// CHECK: prim.dot_general
graph.func @of_small_groups(%g: tensor<2x40x7x7xf32> {graph.name = "g"}, %x: tensor<2x32x7x7xf32> {graph.name = "x"}, %w: tensor<40x8x3x3xf32> {graph.name = "w"}) -> tensor<40x8x3x3xf32> attributes {opsets = {aten = 10 : i64}} {
  %y:3 = graph.node "aten":"convolution_backward.default" opset 10(%g, %x, %w) {arg_names = ["grad_output", "input", "weight"], dilation = array<i64: 1, 1>, groups = 4 : i64, output_mask = array<i1: false, true, false>, output_padding = array<i64: 0, 0>, padding = array<i64: 1, 1>, stride = array<i64: 1, 1>, transposed = false} : (tensor<2x40x7x7xf32>, tensor<2x32x7x7xf32>, tensor<40x8x3x3xf32>) -> (none, tensor<40x8x3x3xf32>, none)
  graph.yield %y#1 : tensor<40x8x3x3xf32>
}

// -----

// What has the result in the operand's place, too: it has the same sign.
// CHECK-LABEL: func.func @of_result
// CHECK: prim.select
graph.func @of_result(%g: tensor<4xf32> {graph.name = "g"}, %x: tensor<4xf32> {graph.name = "x"}) -> tensor<4xf32> attributes {opsets = {aten = 10 : i64}} {
  %y = graph.node "aten":"leaky_relu_backward.default" opset 10(%g, %x) {arg_names = ["grad_output", "self"], negative_slope = 0.1, self_is_result = true} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  graph.yield %y : tensor<4xf32>
}

// -----

// Lists: each tensor by the operator of one; the optimiser's step.
// CHECK-LABEL: func.func @lists
// CHECK-COUNT-2: prim.add
// CHECK-NOT: prim.add
graph.func @lists(%a: tensor<4xf32> {graph.name = "a"}, %b: tensor<2xf32> {graph.name = "b"}) -> (tensor<4xf32>, tensor<2xf32>) attributes {opsets = {aten = 10 : i64}} {
  %y:2 = graph.node "aten":"_foreach_add.ScalarList" opset 10(%a, %b) {arg_names = ["self.0", "self.1"], self.count = 2, scalars = array<f64: 1.0, 2.0>} : (tensor<4xf32>, tensor<2xf32>) -> (tensor<4xf32>, tensor<2xf32>)
  graph.yield %y#0, %y#1 : tensor<4xf32>, tensor<2xf32>
}

// -----

// ERROR: _foreach_add.ScalarList (opset 10): argument "scalars" has fewer numbers than there are tensors
graph.func @too_few(%a: tensor<4xf32> {graph.name = "a"}, %b: tensor<2xf32> {graph.name = "b"}) -> (!tc.unknown, !tc.unknown) attributes {opsets = {aten = 10 : i64}} {
  %y:2 = graph.node "aten":"_foreach_add.ScalarList" opset 10(%a, %b) {arg_names = ["self.0", "self.1"], self.count = 2, scalars = array<f64: 1.0>} : (tensor<4xf32>, tensor<2xf32>) -> (!tc.unknown, !tc.unknown)
  graph.yield %y#0, %y#1 : !tc.unknown, !tc.unknown
}

// -----

// ERROR: silu_backward.default (opset 10): argument "grad_output" is missing
graph.func @no_gradient(%x: tensor<4xf32> {graph.name = "x"}) -> !tc.unknown attributes {opsets = {aten = 10 : i64}} {
  %y = graph.node "aten":"silu_backward.default" opset 10(%x) {arg_names = ["self"]} : (tensor<4xf32>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// The end of the slice is a number that the program computes.
// CHECK-LABEL: func.func @slice
// CHECK: prim.bind_symbol
// CHECK: prim.pad
graph.func @slice(%g: tensor<?xf32> {graph.name = "g", graph.dims = ["rows"]}, %n: tensor<i64> {graph.name = "n"}) -> tensor<9xf32> attributes {opsets = {aten = 10 : i64}} {
  %y = graph.node "aten":"slice_backward.default" opset 10(%g, %n) {arg_names = ["grad_output", "end"], input_sizes = array<i64: 9>, dim = 0 : i64, start = 0 : i64, end = "end", step = 1 : i64} : (tensor<?xf32>, tensor<i64>) -> tensor<9xf32>
  graph.yield %y : tensor<9xf32>
}

// -----

// What a masked scatter did not read of its source gets 0; elements that are not masked go behind the end, which is cut off.
// CHECK-LABEL: func.func @masked_scatter
// CHECK: %[[PLACE:.*]] = prim.scan sum
// CHECK: prim.scatter_elements %{{.*}} : (tensor<5xf32>, {{.*}}) -> tensor<5xf32>
// CHECK: prim.slice
graph.func @masked_scatter(%g: tensor<2x3xf32> {graph.name = "g"}, %m: tensor<3xi1> {graph.name = "m"}) -> tensor<2x2xf32> attributes {opsets = {aten = 10 : i64}} {
  %y = graph.node "aten":"masked_scatter_backward.default" opset 10(%g, %m) {arg_names = ["grad_output", "mask"], sizes = array<i64: 2, 2>} : (tensor<2x3xf32>, tensor<3xi1>) -> tensor<2x2xf32>
  graph.yield %y : tensor<2x2xf32>
}

// -----

// ERROR: "grouped": aten._grouped_mm.default (opset 10): takes matrices, or one for each group, and offs unless both sides have one for each group, but got tensor<4x2xf32> and tensor<2x3xf32>
graph.func @grouped(%x: tensor<4x2xf32> {graph.name = "x"}, %y: tensor<2x3xf32> {graph.name = "y"}) -> tensor<4x3xf32> attributes {opsets = {aten = 10 : i64}} {
  %z = graph.node "aten":"_grouped_mm.default" opset 10(%x, %y) {arg_names = ["self", "mat2"]} : (tensor<4x2xf32>, tensor<2x3xf32>) -> tensor<4x3xf32> loc("grouped")
  graph.yield %z : tensor<4x3xf32>
}

// -----

// ERROR: "trilinear": aten._trilinear.default (opset 10): takes tensors of 3 dims, with those that they lack, but got tensor<4xf32>
graph.func @trilinear(%x: tensor<4x2xf32> {graph.name = "x"}, %y: tensor<4xf32> {graph.name = "y"}) -> tensor<4xf32> attributes {opsets = {aten = 10 : i64}} {
  %z = graph.node "aten":"_trilinear.default" opset 10(%x, %y, %x) {arg_names = ["i1", "i2", "i3"], expand1 = array<i64: 2>, expand2 = array<i64: 1>, expand3 = array<i64: 2>, sumdim = array<i64: 1, 2>} : (tensor<4x2xf32>, tensor<4xf32>, tensor<4x2xf32>) -> tensor<4xf32> loc("trilinear")
  graph.yield %z : tensor<4xf32>
}
