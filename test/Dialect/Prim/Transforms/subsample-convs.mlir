// RUN: tc-opt %s --tc-subsample-convs | FileCheck %s

// Both readers of the sum take every second pixel: the convolution computes those, the shortcut is sliced.
// CHECK-LABEL: func.func @residual
// CHECK: %[[Y:.*]] = prim.conv %arg0, %arg1 strides [2, 2] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x9x8x4xf32>, tensor<3x3x4x4xf32>) -> tensor<1x5x4x4xf32>
// CHECK: %[[X:.*]] = prim.slice %arg0 from {{.*}} step [1, 2, 2, 1] : tensor<1x9x8x4xf32> -> tensor<1x5x4x4xf32>
// CHECK: %[[S:.*]] = prim.add %[[Y]], %[[X]] : tensor<1x5x4x4xf32>
// CHECK: %[[Z:.*]] = prim.splat 0.000000e+00 : f32 : tensor<1x5x4x4xf32>
// CHECK: %[[R:.*]] = prim.max %[[S]], %[[Z]]
// CHECK: prim.conv %[[R]], %arg2 strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x5x4x4xf32>, tensor<1x1x4x8xf32>) -> tensor<1x5x4x8xf32>
// CHECK: prim.conv %[[R]], %arg3 strides [1, 1]
func.func @residual(%x: tensor<1x9x8x4xf32>, %w: tensor<3x3x4x4xf32>, %v: tensor<1x1x4x8xf32>, %u: tensor<1x1x4x2xf32>) -> (tensor<1x5x4x8xf32>, tensor<1x5x4x2xf32>) {
  %y = prim.conv %x, %w strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x9x8x4xf32>, tensor<3x3x4x4xf32>) -> tensor<1x9x8x4xf32>
  %zero = prim.splat 0.000000e+00 : f32 : tensor<1x9x8x4xf32>
  %s = prim.add %y, %x : tensor<1x9x8x4xf32>
  %r = prim.max %s, %zero : tensor<1x9x8x4xf32>
  %a = prim.conv %r, %v strides [2, 2] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x9x8x4xf32>, tensor<1x1x4x8xf32>) -> tensor<1x5x4x8xf32>
  %b = prim.conv %r, %u strides [2, 2] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x9x8x4xf32>, tensor<1x1x4x2xf32>) -> tensor<1x5x4x2xf32>
  return %a, %b : tensor<1x5x4x8xf32>, tensor<1x5x4x2xf32>
}

// A slice goes; strides of a 1x1 convolution move on to the one before it; a broadcast repeats less often.
// CHECK-LABEL: func.func @chain
// CHECK: %[[Y:.*]] = prim.conv %arg0, %arg1 strides [3, 2] {{.*}} -> tensor<?x3x4x4xf32
// CHECK: %[[V:.*]] = prim.conv %[[Y]], %arg2 strides [1, 1] {{.*}} -> tensor<?x3x4x8xf32
// CHECK: %[[B:.*]] = prim.broadcast %arg3 [3] : tensor<8xf32> -> tensor<?x3x4x8xf32
// CHECK: %[[S:.*]] = prim.add %[[V]], %[[B]]
// CHECK-NOT: prim.slice
// CHECK: return %[[S]]
func.func @chain(%x: tensor<?x9x8x4xf32, #prim.dims<affine_map<()[s0] -> (s0, 9, 8, 4)>>>, %w: tensor<3x3x4x4xf32>, %v: tensor<1x1x4x8xf32>, %bias: tensor<8xf32>)
    -> tensor<?x3x4x8xf32, #prim.dims<affine_map<()[s0] -> (s0, 3, 4, 8)>>> attributes {prim.symbols = ["N"]} {
  %y = prim.conv %x, %w strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<?x9x8x4xf32, #prim.dims<affine_map<()[s0] -> (s0, 9, 8, 4)>>>, tensor<3x3x4x4xf32>) -> tensor<?x9x8x4xf32, #prim.dims<affine_map<()[s0] -> (s0, 9, 8, 4)>>>
  %a = prim.conv %y, %v strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<?x9x8x4xf32, #prim.dims<affine_map<()[s0] -> (s0, 9, 8, 4)>>>, tensor<1x1x4x8xf32>) -> tensor<?x9x8x8xf32, #prim.dims<affine_map<()[s0] -> (s0, 9, 8, 8)>>>
  %b = prim.broadcast %bias [3] : tensor<8xf32> -> tensor<?x9x8x8xf32, #prim.dims<affine_map<()[s0] -> (s0, 9, 8, 8)>>>
  %s = prim.add %a, %b : tensor<?x9x8x8xf32, #prim.dims<affine_map<()[s0] -> (s0, 9, 8, 8)>>>
  %r = prim.slice %s from affine_map<()[s0] -> (0, 0, 0, 0)> step [1, 3, 2, 1] : tensor<?x9x8x8xf32, #prim.dims<affine_map<()[s0] -> (s0, 9, 8, 8)>>> -> tensor<?x3x4x8xf32, #prim.dims<affine_map<()[s0] -> (s0, 3, 4, 8)>>>
  return %r : tensor<?x3x4x8xf32, #prim.dims<affine_map<()[s0] -> (s0, 3, 4, 8)>>>
}

// Another reader takes all; pixels behind others are not the first; padding makes others; readers differ.
// CHECK-LABEL: func.func @stays
// CHECK-COUNT-4: prim.conv %arg0, %arg1 strides [1, 1]
func.func @stays(%x: tensor<1x9x8x4xf32>, %w: tensor<3x3x4x4xf32>, %v: tensor<1x1x4x8xf32>)
    -> (tensor<1x5x4x8xf32>, tensor<1x9x8x4xf32>, tensor<1x4x4x4xf32>, tensor<1x6x5x8xf32>, tensor<1x5x4x8xf32>, tensor<1x3x3x8xf32>) {
  %y0 = prim.conv %x, %w strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x9x8x4xf32>, tensor<3x3x4x4xf32>) -> tensor<1x9x8x4xf32>
  %a0 = prim.conv %y0, %v strides [2, 2] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x9x8x4xf32>, tensor<1x1x4x8xf32>) -> tensor<1x5x4x8xf32>
  %y1 = prim.conv %x, %w strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x9x8x4xf32>, tensor<3x3x4x4xf32>) -> tensor<1x9x8x4xf32>
  %a1 = prim.slice %y1 from affine_map<() -> (0, 1, 1, 0)> step [1, 2, 2, 1] : tensor<1x9x8x4xf32> -> tensor<1x4x4x4xf32>
  %y2 = prim.conv %x, %w strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x9x8x4xf32>, tensor<3x3x4x4xf32>) -> tensor<1x9x8x4xf32>
  %a2 = prim.conv %y2, %v strides [2, 2] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x9x8x4xf32>, tensor<1x1x4x8xf32>) -> tensor<1x6x5x8xf32>
  %y3 = prim.conv %x, %w strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x9x8x4xf32>, tensor<3x3x4x4xf32>) -> tensor<1x9x8x4xf32>
  %a3 = prim.conv %y3, %v strides [2, 2] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x9x8x4xf32>, tensor<1x1x4x8xf32>) -> tensor<1x5x4x8xf32>
  %b3 = prim.conv %y3, %v strides [3, 3] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x9x8x4xf32>, tensor<1x1x4x8xf32>) -> tensor<1x3x3x8xf32>
  return %a0, %y0, %a1, %a2, %a3, %b3 : tensor<1x5x4x8xf32>, tensor<1x9x8x4xf32>, tensor<1x4x4x4xf32>, tensor<1x6x5x8xf32>, tensor<1x5x4x8xf32>, tensor<1x3x3x8xf32>
}

// The caller's image has its channels first: what is turned are the pixels that are read.
// CHECK-LABEL: func.func @turned
// CHECK: %[[X:.*]] = prim.slice %arg0 from {{.*}} step [1, 1, 2, 3] : tensor<1x4x9x8xf32> -> tensor<1x4x5x3xf32>
// CHECK: %[[T:.*]] = prim.transpose %[[X]] [0, 2, 3, 1]
// CHECK: prim.conv %[[T]], %arg1 strides [1, 1]
func.func @turned(%x: tensor<1x4x9x8xf32>, %v: tensor<1x1x4x8xf32>) -> tensor<1x5x3x8xf32> {
  %t = prim.transpose %x [0, 2, 3, 1] : tensor<1x4x9x8xf32> -> tensor<1x9x8x4xf32>
  %a = prim.conv %t, %v strides [2, 3] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x9x8x4xf32>, tensor<1x1x4x8xf32>) -> tensor<1x5x3x8xf32>
  return %a : tensor<1x5x3x8xf32>
}

// Sizes that are not known stay.
// CHECK-LABEL: func.func @unknown
// CHECK: prim.transpose
// CHECK-NEXT: prim.conv {{.*}} strides [2, 1]
func.func @unknown(%x: tensor<1x4x?x8xf32, #prim.dims<affine_map<()[s0] -> (1, 4, s0, 8)>>>, %v: tensor<1x1x4x8xf32>)
    -> tensor<1x?x8x8xf32, #prim.dims<affine_map<()[s0] -> (1, (s0 - 1) floordiv 2 + 1, 8, 8)>>> attributes {prim.symbols = ["H"]} {
  %t = prim.transpose %x [0, 2, 3, 1] : tensor<1x4x?x8xf32, #prim.dims<affine_map<()[s0] -> (1, 4, s0, 8)>>> -> tensor<1x?x8x4xf32, #prim.dims<affine_map<()[s0] -> (1, s0, 8, 4)>>>
  %a = prim.conv %t, %v strides [2, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x?x8x4xf32, #prim.dims<affine_map<()[s0] -> (1, s0, 8, 4)>>>, tensor<1x1x4x8xf32>) -> tensor<1x?x8x8xf32, #prim.dims<affine_map<()[s0] -> (1, (s0 - 1) floordiv 2 + 1, 8, 8)>>>
  return %a : tensor<1x?x8x8xf32, #prim.dims<affine_map<()[s0] -> (1, (s0 - 1) floordiv 2 + 1, 8, 8)>>>
}
