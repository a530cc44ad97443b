// Convolutions, pools, batch norm and flatten of ATen: lists of one entry stand for all dims, inputs may lack a batch, padding may be named.
// What is wrong or only means something in training is refused. test/Driver/pt2.test compares numbers.
// RUN: not tc-opt %s --split-input-file --tc-convert-graph-to-prim 2>&1 | FileCheck %s
// RUN: not tc-opt %s --split-input-file --tc-convert-graph-to-prim 2>/dev/null | FileCheck %s --check-prefix=IR

// IR-LABEL: func.func @same
// IR: prim.conv {{.*}} strides [1, 1] dilations [1, 2]
graph.func @same(%x: tensor<4x9x11xf32> {graph.name = "x"}, %w: tensor<6x4x4x3xf32> {graph.name = "w"}) -> (tensor<6x9x11xf32>) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"conv2d.padding" opset 1(%x, %w) {arg_names = ["input", "weight"], padding = "same", dilation = array<i64: 1, 2>, stride = array<i64: 1>} : (tensor<4x9x11xf32>, tensor<6x4x4x3xf32>) -> tensor<6x9x11xf32> loc("same")
  graph.yield %y : tensor<6x9x11xf32>
}

// -----

// CHECK: node "named": aten.conv2d.padding (opset 1): padding is "full"; it may be "valid" or "same"
graph.func @named(%x: tensor<1x4x9x11xf32> {graph.name = "x"}, %w: tensor<6x4x4x3xf32> {graph.name = "w"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"conv2d.padding" opset 1(%x, %w) {arg_names = ["input", "weight"], padding = "full"} : (tensor<1x4x9x11xf32>, tensor<6x4x4x3xf32>) -> !tc.unknown loc("named")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "rank": aten.conv2d.default (opset 1): takes an input of rank 3 or 4, but got tensor<4x9xf32>
graph.func @rank(%x: tensor<4x9xf32> {graph.name = "x"}, %w: tensor<6x4x3x3xf32> {graph.name = "w"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"conv2d.default" opset 1(%x, %w) {arg_names = ["input", "weight"]} : (tensor<4x9xf32>, tensor<6x4x3x3xf32>) -> !tc.unknown loc("rank")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "stride": aten.conv2d.default (opset 1): argument "stride" holds 0; it must be 1 or more, and below 2^31
graph.func @stride(%x: tensor<1x4x9x9xf32> {graph.name = "x"}, %w: tensor<6x4x3x3xf32> {graph.name = "w"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"conv2d.default" opset 1(%x, %w) {arg_names = ["input", "weight"], stride = array<i64: 0, 1>} : (tensor<1x4x9x9xf32>, tensor<6x4x3x3xf32>) -> !tc.unknown loc("stride")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "entries": aten.max_pool2d.default (opset 1): argument "kernel_size" has 3 entries for 2 dims
graph.func @entries(%x: tensor<1x4x9x9xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"max_pool2d.default" opset 1(%x) {arg_names = ["self"], kernel_size = array<i64: 2, 2, 2>} : (tensor<1x4x9x9xf32>) -> !tc.unknown loc("entries")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "pads": aten.max_pool2d.default (opset 1): padding 2 is more than half of the kernel, 3
graph.func @pads(%x: tensor<1x4x9x9xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"max_pool2d.default" opset 1(%x) {arg_names = ["self"], kernel_size = array<i64: 3>, padding = array<i64: 2>} : (tensor<1x4x9x9xf32>) -> !tc.unknown loc("pads")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "norm": aten.batch_norm.default (opset 1){{.*}}in training, where it writes running statistics, is not supported; export the model after model.eval()
graph.func @norm(%x: tensor<2x3xf32> {graph.name = "x"}, %m: tensor<3xf32> {graph.name = "m"}, %v: tensor<3xf32> {graph.name = "v"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"batch_norm.default" opset 1(%x, %m, %v) {arg_names = ["input", "running_mean", "running_var"], training = true} : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) -> !tc.unknown loc("norm")
  graph.yield %y : !tc.unknown
}

// -----

// In training, with what the operator would write as results: 9 numbers for each channel, whose variance is that of a sample.
// IR-LABEL: func.func @functional
// IR: prim.norm
// IR-DAG: prim.constant dense<8> : tensor<i64>
// IR-DAG: prim.constant dense<9> : tensor<i64>
graph.func @functional(%x: tensor<3x2x3xf32> {graph.name = "x"}, %m: tensor<2xf32> {graph.name = "m"}, %v: tensor<2xf32> {graph.name = "v"}) -> (tensor<3x2x3xf32>, tensor<2xf32>, tensor<2xf32>) attributes {opsets = {aten = 1 : i64}} {
  %y:5 = graph.node "aten":"_native_batch_norm_legit_functional.default" opset 1(%x, %m, %v) {arg_names = ["input", "running_mean", "running_var"], training = true, momentum = 0.1, eps = 1.0e-05} : (tensor<3x2x3xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<3x2x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) loc("functional")
  graph.yield %y#0, %y#3, %y#4 : tensor<3x2x3xf32>, tensor<2xf32>, tensor<2xf32>
}

// -----

// Statistics of half precision: what folds into weights is computed in f32 and rounded once.
// IR-LABEL: func.func @half
// IR: prim.sqrt %{{.*}} : tensor<3xf32>
// IR: prim.sub %{{.*}} : tensor<3xf32>
// IR: prim.mul %{{.*}} : tensor<2x3xf16>
graph.func @half(%x: tensor<2x3xf16> {graph.name = "x"}, %m: tensor<3xf16> {graph.name = "m"}, %v: tensor<3xf16> {graph.name = "v"}, %w: tensor<3xf16> {graph.name = "w"}, %b: tensor<3xf16> {graph.name = "b"}) -> (tensor<2x3xf16>) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"batch_norm.default" opset 1(%x, %w, %b, %m, %v) {arg_names = ["input", "weight", "bias", "running_mean", "running_var"], training = false, momentum = 0.1, eps = 1.0e-05} : (tensor<2x3xf16>, tensor<3xf16>, tensor<3xf16>, tensor<3xf16>, tensor<3xf16>) -> tensor<2x3xf16> loc("half")
  graph.yield %y : tensor<2x3xf16>
}
