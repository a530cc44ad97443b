// Casts and quantised operators as conversions and arithmetic.
// RUN: tc-opt %s -tc-convert-graph-to-prim -split-input-file -verify-diagnostics | FileCheck %s

// round(x / scale) + zero point, clamped to the type of the zero point; a scale for each of the 3 rows.
// CHECK-LABEL: func.func @quantize
// CHECK: %[[S:.*]] = prim.broadcast %arg1 [0]
// CHECK: %[[Q:.*]] = prim.div %arg0, %[[S]]
// CHECK: prim.round %[[Q]]
// CHECK: prim.splat -1.280000e+02 : f32
// CHECK: prim.splat 1.270000e+02 : f32
// CHECK: prim.convert {{.*}} -> tensor<3x4xi8>
graph.func @quantize(%x: tensor<3x4xf32>, %s: tensor<3xf32>, %z: tensor<3xi8>) -> (!tc.unknown) attributes {opsets = {ai.onnx = 21 : i64}} {
  %y = graph.node "ai.onnx":"QuantizeLinear" opset 21(%x, %s, %z) {axis = 0 : i64} : (tensor<3x4xf32>, tensor<3xf32>, tensor<3xi8>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// One scale for each block of 2 along dim 1, of which the last is not full.
// CHECK-LABEL: func.func @dequantize_blocked
// CHECK: prim.broadcast {{.*}} -> tensor<2x2x2xf32>
// CHECK: prim.slice {{.*}} : tensor<2x4xf32> -> tensor<2x3xf32>
// CHECK: prim.mul
graph.func @dequantize_blocked(%x: tensor<2x3xi4>, %s: tensor<2x2xf32>) -> (!tc.unknown) attributes {opsets = {ai.onnx = 21 : i64}} {
  %y = graph.node "ai.onnx":"DequantizeLinear" opset 21(%x, %s) {axis = 1 : i64, block_size = 2 : i64} : (tensor<2x3xi4>, tensor<2x2xf32>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// Zero points go before the product, which is exact in i32.
// CHECK-LABEL: func.func @matmul_integer
// CHECK: prim.sub {{.*}} : tensor<2x3xi32>
// CHECK: prim.dot_general {{.*}} -> tensor<2x4xi32>
graph.func @matmul_integer(%a: tensor<2x3xui8>, %b: tensor<3x4xi8>, %z: tensor<ui8>) -> (!tc.unknown) attributes {opsets = {ai.onnx = 21 : i64}} {
  %y = graph.node "ai.onnx":"MatMulInteger" opset 21(%a, %b, %z) : (tensor<2x3xui8>, tensor<3x4xi8>, tensor<ui8>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// Floats saturate to 8-bit floats and wrap to 4-bit integers.
// CHECK-LABEL: func.func @cast
// CHECK: prim.splat -4.480000e+02
// CHECK: prim.convert {{.*}} -> tensor<4xf8E4M3FN>
// CHECK: prim.convert %arg0 : tensor<4xf32> -> tensor<4xi32>
// CHECK: prim.convert {{.*}} : tensor<4xi32> -> tensor<4xi4>
graph.func @cast(%x: tensor<4xf32>) -> (!tc.unknown, !tc.unknown) attributes {opsets = {ai.onnx = 21 : i64}} {
  %y = graph.node "ai.onnx":"Cast" opset 21(%x) {to = 17 : i64} : (tensor<4xf32>) -> !tc.unknown
  %z = graph.node "ai.onnx":"Cast" opset 21(%x) {to = 22 : i64} : (tensor<4xf32>) -> !tc.unknown
  graph.yield %y, %z : !tc.unknown, !tc.unknown
}

// -----

graph.func @bitcast(%x: tensor<4xf32>) -> (!tc.unknown) attributes {opsets = {ai.onnx = 26 : i64}} {
  // expected-error @+1 {{has another number of bits than one of the result}}
  %y = graph.node "ai.onnx":"BitCast" opset 26(%x) {to = 7 : i64} : (tensor<4xf32>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

graph.func @scale(%x: tensor<3x4xf32>, %s: tensor<3x2xf32>) -> (!tc.unknown) attributes {opsets = {ai.onnx = 21 : i64}} {
  // expected-error @+1 {{must be a scalar, 1-D, or of the operand's rank with a block_size}}
  %y = graph.node "ai.onnx":"QuantizeLinear" opset 21(%x, %s) {axis = 0 : i64} : (tensor<3x4xf32>, tensor<3x2xf32>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}
