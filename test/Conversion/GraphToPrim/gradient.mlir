// Gradients by the rules of prim's ops; behind a Gradient node's operands stand the tensors that its attributes name. Numbers:
// test/Integration/operators.py.
// RUN: tc-opt %s -tc-convert-graph-to-prim -split-input-file -verify-diagnostics | FileCheck %s

// y = x w: what reaches w is x^T times the gradient.
// CHECK-LABEL: func.func @linear
// CHECK: %[[Y:.*]] = prim.dot_general %arg0, %arg1
// CHECK: %[[T:.*]] = prim.tanh %[[Y]]
// CHECK: prim.mul %[[T]], %[[T]]
// CHECK: %[[D:.*]] = prim.dot_general %{{.*}}, %arg0 batch [] x [] contract [0] x [0]
// CHECK: prim.transpose %[[D]] [1, 0]
graph.func @linear(%x: tensor<2x3xf32> {graph.name = "x"}, %w: tensor<3x4xf32> {graph.name = "w"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 13 : i64, ai.onnx.preview.training = 1 : i64}} {
  %p = graph.node "ai.onnx":"MatMul" opset 13(%x, %w) : (tensor<2x3xf32>, tensor<3x4xf32>) -> !tc.unknown
  %y = graph.node "ai.onnx":"Tanh" opset 13(%p) : (!tc.unknown) -> !tc.unknown
  %dw = graph.node "ai.onnx.preview.training":"Gradient" opset 1(%w, %x, %w, %x, %y) {xs = ["w"], zs = ["x"], y = "y"} : (tensor<3x4xf32>, tensor<2x3xf32>, tensor<3x4xf32>, tensor<2x3xf32>, !tc.unknown) -> !tc.unknown
  graph.yield %dw : !tc.unknown
}

// -----

graph.func @no_rule(%x: tensor<3x4xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 18 : i64, ai.onnx.preview.training = 1 : i64}} {
  %y = graph.node "ai.onnx":"ReduceProd" opset 18(%x) : (tensor<3x4xf32>) -> !tc.unknown
  // expected-error @+1 {{ai.onnx.preview.training.Gradient (opset 1) with a gradient through prim.reduce over more than one dim is not supported}}
  %dx = graph.node "ai.onnx.preview.training":"Gradient" opset 1(%x, %x, %y) {xs = ["x"], y = "y"} : (tensor<3x4xf32>, tensor<3x4xf32>, !tc.unknown) -> !tc.unknown
  graph.yield %dx : !tc.unknown
}

// -----

// The input's gradient is a convolution with the flipped filter, the filter's one of the input, with images as channels.
// CHECK-LABEL: func.func @conv(
// CHECK: prim.conv
// CHECK: prim.conv {{.*}} : (tensor<1x4x1xf32>, tensor<3x1x2xf32>) -> tensor<1x2x2xf32>
// CHECK-NOT: prim.gather
// CHECK-NOT: prim.dot_general
graph.func @conv(%x: tensor<1x1x4xf32> {graph.name = "x"}, %w: tensor<2x1x2xf32> {graph.name = "w"}) -> (!tc.unknown, !tc.unknown) attributes {opsets = {ai.onnx = 13 : i64, ai.onnx.preview.training = 1 : i64}} {
  %y = graph.node "ai.onnx":"Conv" opset 13(%x, %w) : (tensor<1x1x4xf32>, tensor<2x1x2xf32>) -> !tc.unknown
  %dx, %dw = graph.node "ai.onnx.preview.training":"Gradient" opset 1(%x, %w, %x, %w, %y) {xs = ["x", "w"], y = "y"} : (tensor<1x1x4xf32>, tensor<2x1x2xf32>, tensor<1x1x4xf32>, tensor<2x1x2xf32>, !tc.unknown) -> (!tc.unknown, !tc.unknown)
  graph.yield %dx, %dw : !tc.unknown, !tc.unknown
}

// -----

// Strides of the convolution are dilations of its filter's gradient, and dilations are strides.
// CHECK-LABEL: func.func @conv_steps(
// CHECK: prim.conv {{.*}} strides [1, 2] dilations [3, 1] pads [1, 0] [-1, 0] groups 1 : (tensor<3x11x10x2xf32>, tensor<4x6x2x5xf32>) -> tensor<3x2x3x5xf32>
graph.func @conv_steps(%x: tensor<2x3x11x10xf32> {graph.name = "x"}, %w: tensor<5x3x2x3xf32> {graph.name = "w"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 13 : i64, ai.onnx.preview.training = 1 : i64}} {
  %y = graph.node "ai.onnx":"Conv" opset 13(%x, %w) {strides = array<i64: 3, 1>, dilations = array<i64: 1, 2>, pads = array<i64: 1, 0, 0, 0>} : (tensor<2x3x11x10xf32>, tensor<5x3x2x3xf32>) -> !tc.unknown
  %dw = graph.node "ai.onnx.preview.training":"Gradient" opset 1(%w, %x, %w, %x, %y) {xs = ["w"], zs = ["x"], y = "y"} : (tensor<5x3x2x3xf32>, tensor<2x3x11x10xf32>, tensor<5x3x2x3xf32>, tensor<2x3x11x10xf32>, !tc.unknown) -> !tc.unknown
  graph.yield %dw : !tc.unknown
}

// -----

// Of groups, and of any batch, the filter's gradient is a product of the windows with the result's.
// CHECK-LABEL: func.func @conv_groups(
// CHECK: prim.gather
// CHECK: prim.dot_general
graph.func @conv_groups(%x: tensor<1x4x5xf32> {graph.name = "x"}, %w: tensor<4x2x2xf32> {graph.name = "w"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 13 : i64, ai.onnx.preview.training = 1 : i64}} {
  %y = graph.node "ai.onnx":"Conv" opset 13(%x, %w) {group = 2 : i64} : (tensor<1x4x5xf32>, tensor<4x2x2xf32>) -> !tc.unknown
  %dw = graph.node "ai.onnx.preview.training":"Gradient" opset 1(%w, %x, %w, %x, %y) {xs = ["w"], zs = ["x"], y = "y"} : (tensor<4x2x2xf32>, tensor<1x4x5xf32>, tensor<4x2x2xf32>, tensor<1x4x5xf32>, !tc.unknown) -> !tc.unknown
  graph.yield %dw : !tc.unknown
}
