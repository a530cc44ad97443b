// A convolution of an operand spread out with zeros becomes one of the operand itself, with a channel for each phase.
// RUN: tc-opt %s -tc-split-transposed-convs -tc-fold-constants -split-input-file | FileCheck %s

// Filter 0 1 2, stride 2, results 0 .. 5: even ones read element 1 of the filter only, odd ones 0 and 2.
// CHECK-LABEL: func.func @odd_filter
// CHECK: %[[W:.*]] = prim.constant dense<{{\[\[\[}}1.000000e+00, 0.000000e+00]], {{\[\[}}0.000000e+00, 2.000000e+00]]]> : tensor<2x1x2xf32>
// CHECK: %[[C:.*]] = prim.conv %{{.*}}, %[[W]] strides [1] dilations [1] pads [0] [1] groups 1 : (tensor<1x3x1xf32>, tensor<2x1x2xf32>) -> tensor<1x3x2xf32>
// CHECK-NOT: prim.slice
// CHECK: return
#none = affine_map<() -> (0, 0, 0, 0)>
func.func @odd_filter(%x: tensor<1x3x1xf32>) -> tensor<1x6x1xf32> {
  %w = prim.constant dense<[[[0.0]], [[1.0]], [[2.0]]]> : tensor<3x1x1xf32>
  %zero = prim.constant dense<0.0> : tensor<f32>
  %0 = prim.reshape %x : tensor<1x3x1xf32> -> tensor<1x3x1x1xf32>
  %1 = prim.pad %0, %zero low #none : (tensor<1x3x1x1xf32>, tensor<f32>) -> tensor<1x3x2x1xf32>
  %2 = prim.reshape %1 : tensor<1x3x2x1xf32> -> tensor<1x6x1xf32>
  %3 = prim.conv %2, %w strides [1] dilations [1] pads [1] [1] groups 1 : (tensor<1x6x1xf32>, tensor<3x1x1xf32>) -> tensor<1x6x1xf32>
  return %3 : tensor<1x6x1xf32>
}

// -----

// CHECK-LABEL: func.func @two_dims
// CHECK: prim.conv %{{.*}}, %{{.*}} strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x?x5x3xf32, {{.*}}>, tensor<2x2x3x8xf32>) -> tensor<1x?x6x8xf32
// CHECK: prim.slice %{{.*}} -> tensor<1x?x10x2xf32
#none = affine_map<() -> (0, 0, 0, 0, 0, 0)>
#sizes = affine_map<()[s0] -> (1, s0, 5, 3)>
#split = affine_map<()[s0] -> (1, s0, 1, 5, 1, 3)>
#spread = affine_map<()[s0] -> (1, s0, 2, 5, 2, 3)>
#joined = affine_map<()[s0] -> (1, s0 * 2, 10, 3)>
#result = affine_map<()[s0] -> (1, s0 * 2, 10, 2)>
func.func @two_dims(%x: tensor<1x?x5x3xf32, #prim.dims<#sizes>>, %w: tensor<4x4x3x2xf32>) -> tensor<1x?x10x2xf32, #prim.dims<#result>> {
  %zero = prim.constant dense<0.0> : tensor<f32>
  %0 = prim.reshape %x : tensor<1x?x5x3xf32, #prim.dims<#sizes>> -> tensor<1x?x1x5x1x3xf32, #prim.dims<#split>>
  %1 = prim.pad %0, %zero low #none : (tensor<1x?x1x5x1x3xf32, #prim.dims<#split>>, tensor<f32>) -> tensor<1x?x2x5x2x3xf32, #prim.dims<#spread>>
  %2 = prim.reshape %1 : tensor<1x?x2x5x2x3xf32, #prim.dims<#spread>> -> tensor<1x?x10x3xf32, #prim.dims<#joined>>
  %3 = prim.conv %2, %w strides [1, 1] dilations [1, 1] pads [2, 2] [1, 1] groups 1 : (tensor<1x?x10x3xf32, #prim.dims<#joined>>, tensor<4x4x3x2xf32>) -> tensor<1x?x10x2xf32, #prim.dims<#result>>
  return %3 : tensor<1x?x10x2xf32, #prim.dims<#result>>
}

// -----

// A filter for each channel is no matrix product: it stays.
// CHECK-LABEL: func.func @depthwise
// CHECK: prim.conv {{.*}} groups 2 : (tensor<1x6x2xf32>
#none = affine_map<() -> (0, 0, 0, 0)>
func.func @depthwise(%x: tensor<1x3x2xf32>, %w: tensor<3x1x2xf32>) -> tensor<1x6x2xf32> {
  %zero = prim.constant dense<0.0> : tensor<f32>
  %0 = prim.reshape %x : tensor<1x3x2xf32> -> tensor<1x3x1x2xf32>
  %1 = prim.pad %0, %zero low #none : (tensor<1x3x1x2xf32>, tensor<f32>) -> tensor<1x3x2x2xf32>
  %2 = prim.reshape %1 : tensor<1x3x2x2xf32> -> tensor<1x6x2xf32>
  %3 = prim.conv %2, %w strides [1] dilations [1] pads [1] [1] groups 2 : (tensor<1x6x2xf32>, tensor<3x1x2xf32>) -> tensor<1x6x2xf32>
  return %3 : tensor<1x6x2xf32>
}

// -----

// Filter of 3, stride 2: a window for all four phases would multiply 16 elements where 9 count. Each phase is a convolution of its
// own, of 1, 2, 2 and 4 elements; the results are put side by side.
// CHECK-LABEL: func.func @apart
// CHECK: prim.conv %arg0, %{{.*}} pads [0, 0] [0, 0] groups 1 : (tensor<4x16x16x32xf32>, tensor<1x1x32x16xf32>) -> tensor<4x16x16x16xf32>
// CHECK: prim.conv %arg0, %{{.*}} pads [0, 0] [0, 1] groups 1 : (tensor<4x16x16x32xf32>, tensor<1x2x32x16xf32>) -> tensor<4x16x16x16xf32>
// CHECK: prim.concat {{.*}} axis = 4
// CHECK: prim.conv %arg0, %{{.*}} pads [0, 0] [1, 0] groups 1 : (tensor<4x16x16x32xf32>, tensor<2x1x32x16xf32>) -> tensor<4x16x16x16xf32>
// CHECK: prim.conv %arg0, %{{.*}} pads [0, 0] [1, 1] groups 1 : (tensor<4x16x16x32xf32>, tensor<2x2x32x16xf32>) -> tensor<4x16x16x16xf32>
// CHECK: prim.concat {{.*}} axis = 4
// CHECK: prim.concat {{.*}} axis = 2
#none = affine_map<() -> (0, 0, 0, 0, 0, 0)>
func.func @apart(%x: tensor<4x16x16x32xf32>, %w: tensor<3x3x32x16xf32>) -> tensor<4x32x32x16xf32> {
  %zero = prim.constant dense<0.0> : tensor<f32>
  %0 = prim.reshape %x : tensor<4x16x16x32xf32> -> tensor<4x16x1x16x1x32xf32>
  %1 = prim.pad %0, %zero low #none : (tensor<4x16x1x16x1x32xf32>, tensor<f32>) -> tensor<4x16x2x16x2x32xf32>
  %2 = prim.reshape %1 : tensor<4x16x2x16x2x32xf32> -> tensor<4x32x32x32xf32>
  %3 = prim.conv %2, %w strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<4x32x32x32xf32>, tensor<3x3x32x16xf32>) -> tensor<4x32x32x16xf32>
  return %3 : tensor<4x32x32x16xf32>
}

// -----

// Filter of 4, stride 2, one row less at either end: nothing is multiplied with zero, but a window for all phases has 9 x 9 positions
// where 8 x 8 count.
// CHECK-LABEL: func.func @edges
// CHECK-COUNT-4: prim.conv {{.*}} (tensor<1x8x8x64xf32>, tensor<2x2x64x32xf32>) -> tensor<1x8x8x32xf32>
// CHECK-NOT: prim.conv
#none = affine_map<() -> (0, 0, 0, 0, 0, 0)>
func.func @edges(%x: tensor<1x8x8x64xf32>, %w: tensor<4x4x64x32xf32>) -> tensor<1x16x16x32xf32> {
  %zero = prim.constant dense<0.0> : tensor<f32>
  %0 = prim.reshape %x : tensor<1x8x8x64xf32> -> tensor<1x8x1x8x1x64xf32>
  %1 = prim.pad %0, %zero low #none : (tensor<1x8x1x8x1x64xf32>, tensor<f32>) -> tensor<1x8x2x8x2x64xf32>
  %2 = prim.reshape %1 : tensor<1x8x2x8x2x64xf32> -> tensor<1x16x16x64xf32>
  %3 = prim.conv %2, %w strides [1, 1] dilations [1, 1] pads [2, 2] [1, 1] groups 1 : (tensor<1x16x16x64xf32>, tensor<4x4x64x32xf32>) -> tensor<1x16x16x32xf32>
  return %3 : tensor<1x16x16x32xf32>
}

// -----

// Filter of 7, dilation 2, stride 3: element 3 m + 1, 3 m + 2 or 3 m of it in each phase, which lie 2 apart in the operand.
// CHECK-LABEL: func.func @dilated
// CHECK: prim.conv {{.*}} dilations [2] pads [2] [0] groups 1 : (tensor<4x500x32xf32>, tensor<2x32x16xf32>) -> tensor<4x500x16xf32>
// CHECK: prim.conv {{.*}} dilations [2] pads [1] [1] groups 1 : (tensor<4x500x32xf32>, tensor<2x32x16xf32>) -> tensor<4x500x16xf32>
// CHECK: prim.conv {{.*}} dilations [2] pads [2] [2] groups 1 : (tensor<4x500x32xf32>, tensor<3x32x16xf32>) -> tensor<4x500x16xf32>
#none = affine_map<() -> (0, 0, 0, 0)>
func.func @dilated(%x: tensor<4x500x32xf32>, %w: tensor<7x32x16xf32>) -> tensor<4x1500x16xf32> {
  %zero = prim.constant dense<0.0> : tensor<f32>
  %0 = prim.reshape %x : tensor<4x500x32xf32> -> tensor<4x500x1x32xf32>
  %1 = prim.pad %0, %zero low #none : (tensor<4x500x1x32xf32>, tensor<f32>) -> tensor<4x500x3x32xf32>
  %2 = prim.reshape %1 : tensor<4x500x3x32xf32> -> tensor<4x1500x32xf32>
  %3 = prim.conv %2, %w strides [1] dilations [2] pads [8] [4] groups 1 : (tensor<4x1500x32xf32>, tensor<7x32x16xf32>) -> tensor<4x1500x16xf32>
  return %3 : tensor<4x1500x16xf32>
}

// -----

// As many phases without any product as with one: zeros.
// CHECK-LABEL: func.func @common_factor
// CHECK: %[[C:.*]] = prim.conv {{.*}} dilations [1] pads [2] [0] groups 1 : (tensor<4x500x32xf32>, tensor<3x32x16xf32>) -> tensor<4x500x16xf32>
// CHECK-NOT: prim.conv
// CHECK: prim.concat
#none = affine_map<() -> (0, 0, 0, 0)>
func.func @common_factor(%x: tensor<4x500x32xf32>, %w: tensor<3x32x16xf32>) -> tensor<4x1000x16xf32> {
  %zero = prim.constant dense<0.0> : tensor<f32>
  %0 = prim.reshape %x : tensor<4x500x32xf32> -> tensor<4x500x1x32xf32>
  %1 = prim.pad %0, %zero low #none : (tensor<4x500x1x32xf32>, tensor<f32>) -> tensor<4x500x2x32xf32>
  %2 = prim.reshape %1 : tensor<4x500x2x32xf32> -> tensor<4x1000x32xf32>
  %3 = prim.conv %2, %w strides [1] dilations [2] pads [4] [0] groups 1 : (tensor<4x1000x32xf32>, tensor<3x32x16xf32>) -> tensor<4x1000x16xf32>
  return %3 : tensor<4x1000x16xf32>
}
