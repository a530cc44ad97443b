// Proves: products of f16 and bf16 become products with sums of f32; bf16 operands stay where the depth is known.
// RUN: tc-opt %s --tc-widen-products | FileCheck %s

// CHECK-LABEL: func.func @bf16
// CHECK: %[[SUM:.*]] = prim.dot_general %arg0, %arg1 {{.*}} : (tensor<4x8xbf16>, tensor<8x5xbf16>) -> tensor<4x5xf32>
// CHECK: %[[Y:.*]] = prim.convert %[[SUM]] : tensor<4x5xf32> -> tensor<4x5xbf16>
// CHECK: return %[[Y]]
func.func @bf16(%x: tensor<4x8xbf16>, %w: tensor<8x5xbf16>) -> tensor<4x5xbf16> {
  %0 = prim.dot_general %x, %w batch [] x [] contract [1] x [0] : (tensor<4x8xbf16>, tensor<8x5xbf16>) -> tensor<4x5xbf16>
  return %0 : tensor<4x5xbf16>
}

// CHECK-LABEL: func.func @f16
// CHECK: %[[X:.*]] = prim.convert %arg0 : tensor<4x8xf16> -> tensor<4x8xf32>
// CHECK: %[[W:.*]] = prim.convert %arg1 : tensor<8x5xf16> -> tensor<8x5xf32>
// CHECK: %[[SUM:.*]] = prim.dot_general %[[X]], %[[W]] {{.*}} -> tensor<4x5xf32>
// CHECK: prim.convert %[[SUM]] : tensor<4x5xf32> -> tensor<4x5xf16>
func.func @f16(%x: tensor<4x8xf16>, %w: tensor<8x5xf16>) -> tensor<4x5xf16> {
  %0 = prim.dot_general %x, %w batch [] x [] contract [1] x [0] : (tensor<4x8xf16>, tensor<8x5xf16>) -> tensor<4x5xf16>
  return %0 : tensor<4x5xf16>
}

// A filter that only the run knows is no operand in bf16.
// CHECK-LABEL: func.func @filter
// CHECK: prim.conv {{.*}} : (tensor<1x6x6x3xf32>, tensor<3x3x3x5xf32>) -> tensor<1x4x4x5xf32>
func.func @filter(%x: tensor<1x6x6x3xbf16>, %w: tensor<3x3x3x5xbf16>) -> tensor<1x4x4x5xbf16> {
  %0 = prim.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x6x6x3xbf16>, tensor<3x3x3x5xbf16>) -> tensor<1x4x4x5xbf16>
  return %0 : tensor<1x4x4x5xbf16>
}

// CHECK-LABEL: func.func @weights
// CHECK: %[[W:.*]] = prim.convert %arg1 : tensor<8x5xf16> -> tensor<8x5xf32>
// CHECK: %[[Y:.*]] = prim.dot_general %arg0, %[[W]] {{.*}} : (tensor<4x8xf32>, tensor<8x5xf32>) -> tensor<4x5xf32>
// CHECK: return %[[Y]]
func.func @weights(%x: tensor<4x8xf32>, %w: tensor<8x5xf16>) -> tensor<4x5xf32> {
  %0 = prim.dot_general %x, %w batch [] x [] contract [1] x [0] : (tensor<4x8xf32>, tensor<8x5xf16>) -> tensor<4x5xf32>
  return %0 : tensor<4x5xf32>
}
