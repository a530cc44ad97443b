// Depthwise convolutions whose channels fill no vector: of few channels, and of several results for each channel.
// RUN: tc-opt %s --pass-pipeline='builtin.module(func.func(tc-widen-depthwise-convs))' | FileCheck %s

// A depthwise convolution of few channels whose kernel does not reach along the line has a channel for each element of it; an input that
// is turned keeps its lines.
// CHECK-LABEL: func.func @depthwise_line
// CHECK: %[[X:.*]] = prim.reshape %arg0 : tensor<2x9x10x3xf32> -> tensor<2x9x1x30xf32>
// CHECK: prim.conv %[[X]], %{{.*}} strides [2, 1] dilations [1, 1] pads [1, 0] [1, 0] groups 30 : (tensor<2x9x1x30xf32>, tensor<3x1x1x30xf32>) -> tensor<2x5x1x30xf32>
// CHECK: %[[T:.*]] = prim.transpose %arg1 [0, 2, 1, 3] : tensor<2x3x9x10xf32> -> tensor<2x9x3x10xf32>
// CHECK: %[[Y:.*]] = prim.reshape %[[T]] : tensor<2x9x3x10xf32> -> tensor<2x9x1x30xf32>
// CHECK: prim.conv %[[Y]]
// CHECK: prim.conv %arg0, %{{.*}} groups 3
func.func @depthwise_line(%x: tensor<2x9x10x3xf32>, %y: tensor<2x3x9x10xf32>) -> (tensor<2x5x10x3xf32>, tensor<2x5x10x3xf32>, tensor<2x9x10x3xf32>) {
  %w = prim.constant dense<[[[[1.0, 2.0, 3.0]]], [[[4.0, 5.0, 6.0]]], [[[7.0, 8.0, 9.0]]]]> : tensor<3x1x1x3xf32>
  %v = prim.constant dense<[[[[1.0, 2.0, 3.0]], [[4.0, 5.0, 6.0]], [[7.0, 8.0, 9.0]]]]> : tensor<1x3x1x3xf32>
  %0 = prim.conv %x, %w strides [2, 1] dilations [1, 1] pads [1, 0] [1, 0] groups 3 : (tensor<2x9x10x3xf32>, tensor<3x1x1x3xf32>) -> tensor<2x5x10x3xf32>
  %t = prim.transpose %y [0, 2, 3, 1] : tensor<2x3x9x10xf32> -> tensor<2x9x10x3xf32>
  %1 = prim.conv %t, %w strides [2, 1] dilations [1, 1] pads [1, 0] [1, 0] groups 3 : (tensor<2x9x10x3xf32>, tensor<3x1x1x3xf32>) -> tensor<2x5x10x3xf32>
  %2 = prim.conv %x, %v strides [1, 1] dilations [1, 1] pads [0, 1] [0, 1] groups 3 : (tensor<2x9x10x3xf32>, tensor<1x3x1x3xf32>) -> tensor<2x9x10x3xf32>
  return %0, %1, %2 : tensor<2x5x10x3xf32>, tensor<2x5x10x3xf32>, tensor<2x9x10x3xf32>
}

// Three results for each channel: the channels are repeated; two fill vectors as they are.
// CHECK-LABEL: func.func @multiplier
// CHECK: prim.broadcast {{.*}} -> tensor<1x40x7x3xf32>
// CHECK: prim.conv {{.*}} groups 21 : (tensor<1x40x21xf32>, tensor<5x1x21xf32>) -> tensor<1x40x21xf32>
// CHECK: prim.conv %arg2, {{.*}} groups 8 : (tensor<1x40x8xf32>, tensor<5x1x16xf32>)
func.func @multiplier(%x: tensor<1x40x7xf32>, %w: tensor<5x1x21xf32>, %z: tensor<1x40x8xf32>, %v: tensor<5x1x16xf32>) -> (tensor<1x40x21xf32>, tensor<1x40x16xf32>) {
  %y = prim.conv %x, %w strides [1] dilations [1] pads [2] [2] groups 7 : (tensor<1x40x7xf32>, tensor<5x1x21xf32>) -> tensor<1x40x21xf32>
  %u = prim.conv %z, %v strides [1] dilations [1] pads [2] [2] groups 8 : (tensor<1x40x8xf32>, tensor<5x1x16xf32>) -> tensor<1x40x16xf32>
  return %y, %u : tensor<1x40x21xf32>, tensor<1x40x16xf32>
}

// Products of bytes are summed in i32.
// CHECK-LABEL: func.func @bytes
// CHECK: prim.conv {{.*}} groups 2 : (tensor<1x8x1x2xui8>, tensor<2x1x1x2xi8>) -> tensor<1x3x1x2xi32>
func.func @bytes(%x: tensor<1x8x2x1xui8>) -> tensor<1x3x2x1xi32> {
  %w = prim.constant dense<[[[[50]]], [[[124]]]]> : tensor<2x1x1x1xi8>
  %y = prim.conv %x, %w strides [3, 1] dilations [1, 2] pads [0, 0] [0, 0] groups 1 : (tensor<1x8x2x1xui8>, tensor<2x1x1x1xi8>) -> tensor<1x3x2x1xi32>
  return %y : tensor<1x3x2x1xi32>
}
