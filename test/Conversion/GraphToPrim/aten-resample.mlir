// Adaptive pools, upsampling and samplers of ATen: windows of unlike sizes, PyTorch's nearest element, scales that are given. What only
// the run knows is refused.
// RUN: not tc-opt %s --split-input-file --tc-convert-graph-to-prim 2>&1 | FileCheck %s
// RUN: not tc-opt %s --split-input-file --tc-convert-graph-to-prim 2>/dev/null | FileCheck %s --check-prefix=IR

// A mean over all is no pool.
// IR-LABEL: func.func @whole
// IR-NOT: prim.gather
// IR: prim.reduce sum {{.*}} [2, 3]
graph.func @whole(%x: tensor<1x3x7x5xf32> {graph.name = "x"}) -> (tensor<1x3x1x1xf32>) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"adaptive_avg_pool2d.default" opset 1(%x) {arg_names = ["self"], output_size = array<i64: 1, 1>} : (tensor<1x3x7x5xf32>) -> tensor<1x3x1x1xf32> loc("whole")
  graph.yield %y : tensor<1x3x1x1xf32>
}

// -----

// Windows that are alike are an ordinary pool.
// IR-LABEL: func.func @even
// IR: prim.window_reduce sum {{.*}} [3, 2]
graph.func @even(%x: tensor<1x3x6x4xf32> {graph.name = "x"}) -> (tensor<1x3x2x2xf32>) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"adaptive_avg_pool2d.default" opset 1(%x) {arg_names = ["self"], output_size = array<i64: 2, 2>} : (tensor<1x3x6x4xf32>) -> tensor<1x3x2x2xf32> loc("even")
  graph.yield %y : tensor<1x3x2x2xf32>
}

// -----

// CHECK: node "fractional": aten.fractional_max_pool2d.default (opset 1): needs an input that holds the windows in dim 2 (7 against 6)
graph.func @fractional(%x: tensor<1x3x6x4xf32> {graph.name = "x"}, %r: tensor<1x3x2xf32> {graph.name = "r"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"fractional_max_pool2d.default" opset 1(%x, %r) {arg_names = ["self", "random_samples"], kernel_size = array<i64: 2, 2>, output_size = array<i64: 6, 2>} : (tensor<1x3x6x4xf32>, tensor<1x3x2xf32>) -> !tc.unknown loc("fractional")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "open": aten.upsample_bilinear2d.vec (opset 1): needs output_size or scale_factors
graph.func @open(%x: tensor<1x3x6x4xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"upsample_bilinear2d.vec" opset 1(%x) {arg_names = ["input"], align_corners = false} : (tensor<1x3x6x4xf32>) -> !tc.unknown loc("open")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "bytes": aten.upsample_bilinear2d.vec (opset 1) of tensor<1x3x6x4xui8> is not supported; convert it to floats
graph.func @bytes(%x: tensor<1x3x6x4xui8> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"upsample_bilinear2d.vec" opset 1(%x) {arg_names = ["input"], align_corners = false, scale_factors = array<f64: 2.0, 2.0>} : (tensor<1x3x6x4xui8>) -> !tc.unknown loc("bytes")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "mode": aten.grid_sampler_2d.default (opset 1): interpolation_mode is 3; it lies in [0, 3)
graph.func @mode(%x: tensor<1x3x6x4xf32> {graph.name = "x"}, %g: tensor<1x3x6x2xf32> {graph.name = "g"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"grid_sampler_2d.default" opset 1(%x, %g) {arg_names = ["input", "grid"], interpolation_mode = 3 : i64, padding_mode = 0 : i64, align_corners = false} : (tensor<1x3x6x4xf32>, tensor<1x3x6x2xf32>) -> !tc.unknown loc("mode")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "kernel": aten.avg_pool2d.default (opset 1) with argument "kernel_size.0" that the program computes is not supported; make it a constant of the model
graph.func @kernel(%x: tensor<1x3x6x4xf32> {graph.name = "x"}, %n: tensor<i64> {graph.name = "n"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"avg_pool2d.default" opset 1(%x, %n) {arg_names = ["self", "kernel_size.0"], kernel_size = ["kernel_size.0", 2]} : (tensor<1x3x6x4xf32>, tensor<i64>) -> !tc.unknown loc("kernel")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "running": aten.instance_norm.default (opset 1) in training, where it writes running statistics, is not supported; export the model after model.eval()
graph.func @running(%x: tensor<1x3x6x4xf32> {graph.name = "x"}, %s: tensor<3xf32> {graph.name = "s"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"instance_norm.default" opset 1(%x, %s, %s) {arg_names = ["input", "running_mean", "running_var"], use_input_stats = true, momentum = 0.1, eps = 1.0e-05, cudnn_enabled = false} : (tensor<1x3x6x4xf32>, tensor<3xf32>, tensor<3xf32>) -> !tc.unknown loc("running")
  graph.yield %y : !tc.unknown
}
