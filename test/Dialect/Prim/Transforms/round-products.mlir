// Proves: --precision rounds operands of f32 products where they are made, once for all readers and in front of what moves them; bf16
// leaves alone what is no matrix product or has no known depth, f16 all but constants.
// RUN: tc-opt %s --tc-round-products=precision=bf16 | FileCheck %s
// RUN: tc-opt %s --tc-round-products=precision=f16 | FileCheck %s --check-prefix=F16
// RUN: tc-opt %s --tc-round-products=precision=tf32 | FileCheck %s --check-prefix=F32
// F32-NOT: -> tensor<{{[0-9x]*}}bf16>

// CHECK-LABEL: func.func @shared
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>
// CHECK-NEXT: %[[HALF:.*]] = prim.convert %[[X]] : tensor<4x8xf32> -> tensor<4x8xbf16>
// CHECK-NEXT: %[[W:.*]] = prim.constant dense<1.{{.*}}> : tensor<8x5xf32>
// CHECK-NEXT: %[[V:.*]] = prim.convert %[[W]] : tensor<8x5xf32> -> tensor<8x5xbf16>
// CHECK: prim.dot_general %[[HALF]], %[[V]] {{.*}} : (tensor<4x8xbf16>, tensor<8x5xbf16>) -> tensor<4x5xf32>
// CHECK: %[[MOVED:.*]] = prim.reshape %[[HALF]] : tensor<4x8xbf16> -> tensor<32xbf16>
// CHECK: prim.dot_general %[[MOVED]], %[[MOVED]] {{.*}} : (tensor<32xbf16>, tensor<32xbf16>) -> tensor<f32>
// F16-LABEL: func.func @shared
// F16: %[[W:.*]] = prim.constant
// F16: %[[STORED:.*]] = prim.convert %[[W]] : tensor<8x5xf32> -> tensor<8x5xf16>
// F16: prim.dot_general %arg0, %[[STORED]] {{.*}} : (tensor<4x8xf32>, tensor<8x5xf16>) -> tensor<4x5xf32>
// F16: prim.dot_general {{.*}} : (tensor<32xf32>, tensor<32xf32>) -> tensor<f32>
func.func @shared(%x: tensor<4x8xf32>) -> (tensor<4x5xf32>, tensor<f32>) {
  %w = prim.constant dense<1.0> : tensor<8x5xf32>
  %0 = prim.dot_general %x, %w batch [] x [] contract [1] x [0] : (tensor<4x8xf32>, tensor<8x5xf32>) -> tensor<4x5xf32>
  %1 = prim.reshape %x : tensor<4x8xf32> -> tensor<32xf32>
  %2 = prim.dot_general %1, %1 batch [] x [] contract [0] x [0] : (tensor<32xf32>, tensor<32xf32>) -> tensor<f32>
  return %0, %2 : tensor<4x5xf32>, tensor<f32>
}

// Already rounded: nothing is added. Padding is rounded, too.
// CHECK-LABEL: func.func @convolution
// CHECK-SAME: %[[X:.*]]: tensor<1x6x6x3xbf16>
// CHECK: %[[Z:.*]] = prim.splat 0
// CHECK-NEXT: %[[ZERO:.*]] = prim.convert %[[Z]] : tensor<f32> -> tensor<bf16>
// CHECK: prim.pad %[[X]], %[[ZERO]]
// CHECK: prim.conv {{.*}} : (tensor<1x8x8x3xbf16>, tensor<3x3x3x5xbf16>) -> tensor<1x6x6x5xf32>
func.func @convolution(%x: tensor<1x6x6x3xbf16>) -> tensor<1x6x6x5xf32> {
  %w = prim.constant dense<1.0> : tensor<3x3x3x5xf32>
  %z = prim.splat 0.0 : f32 : tensor<f32>
  %0 = prim.convert %x : tensor<1x6x6x3xbf16> -> tensor<1x6x6x3xf32>
  %1 = prim.pad %0, %z low affine_map<() -> (0, 1, 1, 0)> : (tensor<1x6x6x3xf32>, tensor<f32>) -> tensor<1x8x8x3xf32>
  %2 = prim.conv %1, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x8x8x3xf32>, tensor<3x3x3x5xf32>) -> tensor<1x6x6x5xf32>
  return %2 : tensor<1x6x6x5xf32>
}

// CHECK-LABEL: func.func @kept
// CHECK-NOT: bf16
func.func @kept(%x: tensor<4x1xf32>, %w: tensor<1x4xf32>, %i: tensor<1x6x6x4xf32>, %f: tensor<3x3x4x2xf32>, %d: tensor<4x?xf32, #prim.dims<affine_map<()[s0] -> (4, s0)>>>)
    -> (tensor<4x4xf32>, tensor<1x4x4x2xf32>, tensor<1x4x4x4xf32>, tensor<4x4xf32>) attributes {prim.symbols = [#prim.symbol<"n", 0, 1000000, 1>]} {
  %g = prim.constant dense<1.0> : tensor<3x3x1x4xf32>
  %0 = prim.dot_general %x, %w batch [] x [] contract [1] x [0] : (tensor<4x1xf32>, tensor<1x4xf32>) -> tensor<4x4xf32>
  %1 = prim.conv %i, %f strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x6x6x4xf32>, tensor<3x3x4x2xf32>) -> tensor<1x4x4x2xf32>
  %2 = prim.conv %i, %g strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 4 : (tensor<1x6x6x4xf32>, tensor<3x3x1x4xf32>) -> tensor<1x4x4x4xf32>
  %3 = prim.dot_general %d, %d batch [] x [] contract [1] x [1] : (tensor<4x?xf32, #prim.dims<affine_map<()[s0] -> (4, s0)>>>, tensor<4x?xf32, #prim.dims<affine_map<()[s0] -> (4, s0)>>>) -> tensor<4x4xf32>
  return %0, %1, %2, %3 : tensor<4x4xf32>, tensor<1x4x4x2xf32>, tensor<1x4x4x4xf32>, tensor<4x4xf32>
}
