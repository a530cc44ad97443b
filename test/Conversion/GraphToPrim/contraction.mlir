// Matrix products and convolutions: channels-last around prim.conv.
// RUN: tc-opt %s -tc-convert-graph-to-prim -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @conv
// CHECK: %[[X:.*]] = prim.transpose %arg0 [0, 2, 3, 1]
// CHECK: %[[W:.*]] = prim.transpose %arg1 [2, 3, 1, 0]
// CHECK: %[[Y:.*]] = prim.conv %[[X]], %[[W]] strides [2, 2] dilations [1, 1] pads [1, 1] [1, 1] groups 1 {{.*}} -> tensor<1x4x4x5xf32>
// CHECK: %[[B:.*]] = prim.broadcast %arg2 [3]
// CHECK: %[[S:.*]] = prim.add %[[Y]], %[[B]]
// CHECK: prim.transpose %[[S]] [0, 3, 1, 2]
graph.func @conv(%x: tensor<1x3x8x8xf32>, %w: tensor<5x3x3x3xf32>, %b: tensor<5xf32>) -> (!tc.unknown) attributes {opsets = {ai.onnx = 17 : i64}} {
  %y = graph.node "ai.onnx":"Conv" opset 17(%x, %w, %b) {strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>} : (tensor<1x3x8x8xf32>, tensor<5x3x3x3xf32>, tensor<5xf32>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// Stride 2, kernel 3, pad 1, output padding 1: 4 -> 8. The operand is spread by zeros, the filter flipped.
// CHECK-LABEL: func.func @conv_transpose
// CHECK: prim.pad {{.*}} -> tensor<1x4x2x4x2x3xf32>
// CHECK: prim.slice {{.*}} step [-1, -1, 1, 1] : tensor<3x3x3x5xf32> -> tensor<3x3x3x5xf32>
// CHECK: prim.conv {{.*}} strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 {{.*}} -> tensor<1x8x8x5xf32>
graph.func @conv_transpose(%x: tensor<1x3x4x4xf32>, %w: tensor<3x5x3x3xf32>) -> (!tc.unknown) attributes {opsets = {ai.onnx = 17 : i64}} {
  %y = graph.node "ai.onnx":"ConvTranspose" opset 17(%x, %w) {strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>, output_padding = array<i64: 1, 1>} : (tensor<1x3x4x4xf32>, tensor<3x5x3x3xf32>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// A matrix on the right needs no batch dims.
// CHECK-LABEL: func.func @matmul
// CHECK: prim.dot_general %arg0, %arg1 batch [] x [] contract [2] x [0]
// CHECK: prim.dot_general %{{.*}}, %arg2 batch [0] x [0] contract [2] x [1]
graph.func @matmul(%x: tensor<2x4x8xf32>, %w: tensor<8x16xf32>, %v: tensor<2x16x3xf32>) -> (!tc.unknown) attributes {opsets = {ai.onnx = 17 : i64}} {
  %y = graph.node "ai.onnx":"MatMul" opset 17(%x, %w) : (tensor<2x4x8xf32>, tensor<8x16xf32>) -> !tc.unknown
  %z = graph.node "ai.onnx":"MatMul" opset 17(%y, %v) : (!tc.unknown, tensor<2x16x3xf32>) -> !tc.unknown
  graph.yield %z : !tc.unknown
}

// -----

// A filter whose sizes only the run knows: what does not fit is refused there.
// CHECK-LABEL: func.func @conv_of_unknown_size
// CHECK: prim.guard le {{.*}} "Conv needs a kernel of one element or more"
// CHECK: prim.guard le {{.*}} "Conv needs a padded operand that the filter fits into"
// CHECK: prim.conv {{.*}} -> tensor<1x?x5xf32
graph.func @conv_of_unknown_size(%x: tensor<1x3x?xf32> {graph.name = "x"}, %w: tensor<5x3x?xf32> {graph.name = "w"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 17 : i64}} {
  %y = graph.node "ai.onnx":"Conv" opset 17(%x, %w) : (tensor<1x3x?xf32>, tensor<5x3x?xf32>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// PyTorch's product and GELU are ONNX's: the first of a batch and a vector, whose dim the result lacks.
// CHECK-LABEL: func.func @aten
// CHECK: %[[P:.*]] = prim.dot_general %arg0, %arg1 batch [] x [] contract [2] x [0] {{.*}} -> tensor<2x4xf32>
// CHECK: prim.tanh
// CHECK: prim.mul {{.*}} : tensor<2x4xf32>
graph.func @aten(%x: tensor<2x4x8xf32>, %w: tensor<8xf32>) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"matmul.default" opset 1(%x, %w) {arg_names = ["self", "other"]} : (tensor<2x4x8xf32>, tensor<8xf32>) -> !tc.unknown
  %z = graph.node "aten":"gelu.default" opset 1(%y) {arg_names = ["self"], approximate = "tanh"} : (!tc.unknown) -> !tc.unknown
  graph.yield %z : !tc.unknown
}
