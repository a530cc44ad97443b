// Proves: 1x1 convolutions between images that have their channels first are products, of groups, of few outputs and with filters that
// are computed, too; strided ones, those whose result stays channels last, several images whose pixels do not fill whole columns, and
// many outputs of short groups stay convolutions.
// RUN: tc-opt %s --pass-pipeline='builtin.module(func.func(tc-pointwise-convs))' | FileCheck %s

// CHECK-LABEL: func.func @alone
// CHECK: %[[X:.*]] = prim.reshape %arg0 : tensor<1x20x17x19xf32> -> tensor<20x323xf32>
// CHECK: %[[P:.*]] = prim.dot_general %{{.*}}, %[[X]] batch [] x [] contract [1] x [0] : (tensor<33x20xf32>, tensor<20x323xf32>) -> tensor<33x323xf32>
// CHECK: %[[Y:.*]] = prim.reshape %[[P]] : tensor<33x323xf32> -> tensor<1x33x17x19xf32>
// CHECK: prim.transpose %[[Y]] [0, 2, 3, 1]
func.func @alone(%x: tensor<1x20x17x19xf32>) -> tensor<1x33x17x19xf32> {
  %w = prim.constant dense<1.0> : tensor<1x1x20x33xf32>
  %s = prim.splat 0.0 : f32 : tensor<1x17x19x33xf32>
  %t = prim.transpose %x [0, 2, 3, 1] : tensor<1x20x17x19xf32> -> tensor<1x17x19x20xf32>
  %c = prim.conv %t, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x17x19x20xf32>, tensor<1x1x20x33xf32>) -> tensor<1x17x19x33xf32>
  %m = prim.max %c, %s : tensor<1x17x19x33xf32>
  %y = prim.transpose %m [0, 3, 1, 2] : tensor<1x17x19x33xf32> -> tensor<1x33x17x19xf32>
  return %y : tensor<1x33x17x19xf32>
}

// CHECK-LABEL: func.func @images
// CHECK: prim.dot_general {{.*}} contract [1] x [1] : (tensor<33x20xf32>, tensor<3x20x320xf32>) -> tensor<33x3x320xf32>
// CHECK: prim.transpose {{.*}} [1, 0, 2] : tensor<33x3x320xf32> -> tensor<3x33x320xf32>
func.func @images(%x: tensor<3x20x320xf32>) -> tensor<3x33x320xf32> {
  %w = prim.constant dense<1.0> : tensor<1x20x33xf32>
  %t = prim.transpose %x [0, 2, 1] : tensor<3x20x320xf32> -> tensor<3x320x20xf32>
  %c = prim.conv %t, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<3x320x20xf32>, tensor<1x20x33xf32>) -> tensor<3x320x33xf32>
  %y = prim.transpose %c [0, 2, 1] : tensor<3x320x33xf32> -> tensor<3x33x320xf32>
  return %y : tensor<3x33x320xf32>
}

// Each image by itself where few outputs are made of it; any number of pixels.
// CHECK-LABEL: func.func @few_of_groups
// CHECK-SAME: %[[X:.*]]: tensor<3x40x17x19xf32>, %[[W:.*]]: tensor<1x1x20x6xf32>
// CHECK: %[[R:.*]] = prim.reshape %[[W]] : tensor<1x1x20x6xf32> -> tensor<20x2x3xf32>
// CHECK: %[[T:.*]] = prim.transpose %[[R]] [1, 2, 0] : tensor<20x2x3xf32> -> tensor<2x3x20xf32>
// CHECK: %[[B:.*]] = prim.broadcast %[[T]] [1, 2, 3] : tensor<2x3x20xf32> -> tensor<3x2x3x20xf32>
// CHECK: prim.dot_general %[[B]], {{.*}} batch [0, 1] x [0, 1] contract [3] x [2] : (tensor<3x2x3x20xf32>, tensor<3x2x20x323xf32>) -> tensor<3x2x3x323xf32>
func.func @few_of_groups(%x: tensor<3x40x17x19xf32>, %w: tensor<1x1x20x6xf32>) -> tensor<3x6x17x19xf32> {
  %t = prim.transpose %x [0, 2, 3, 1] : tensor<3x40x17x19xf32> -> tensor<3x17x19x40xf32>
  %c = prim.conv %t, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 2 : (tensor<3x17x19x40xf32>, tensor<1x1x20x6xf32>) -> tensor<3x17x19x6xf32>
  %y = prim.transpose %c [0, 3, 1, 2] : tensor<3x17x19x6xf32> -> tensor<3x6x17x19xf32>
  return %y : tensor<3x6x17x19xf32>
}

// CHECK-LABEL: func.func @many_of_groups
// CHECK: prim.dot_general {{.*}} batch [0] x [1] contract [2] x [2] : (tensor<2x33x40xf32>, tensor<3x2x40x320xf32>) -> tensor<2x33x3x320xf32>
// CHECK: prim.transpose {{.*}} [2, 0, 1, 3] : tensor<2x33x3x320xf32> -> tensor<3x2x33x320xf32>
func.func @many_of_groups(%x: tensor<3x80x320xf32>) -> tensor<3x66x320xf32> {
  %w = prim.constant dense<1.0> : tensor<1x40x66xf32>
  %t = prim.transpose %x [0, 2, 1] : tensor<3x80x320xf32> -> tensor<3x320x80xf32>
  %c = prim.conv %t, %w strides [1] dilations [1] pads [0] [0] groups 2 : (tensor<3x320x80xf32>, tensor<1x40x66xf32>) -> tensor<3x320x66xf32>
  %y = prim.transpose %c [0, 2, 1] : tensor<3x320x66xf32> -> tensor<3x66x320xf32>
  return %y : tensor<3x66x320xf32>
}

// CHECK-LABEL: func.func @short_groups
// CHECK-NOT: prim.dot_general
func.func @short_groups(%x: tensor<1x40x320xf32>, %v: tensor<1x12x320xf32>) -> (tensor<1x66x320xf32>, tensor<1x4x320xf32>) {
  %w = prim.constant dense<1.0> : tensor<1x20x66xf32>
  %t = prim.transpose %x [0, 2, 1] : tensor<1x40x320xf32> -> tensor<1x320x40xf32>
  %c = prim.conv %t, %w strides [1] dilations [1] pads [0] [0] groups 2 : (tensor<1x320x40xf32>, tensor<1x20x66xf32>) -> tensor<1x320x66xf32>
  %y = prim.transpose %c [0, 2, 1] : tensor<1x320x66xf32> -> tensor<1x66x320xf32>
  %wv = prim.constant dense<1.0> : tensor<1x6x4xf32>
  %tv = prim.transpose %v [0, 2, 1] : tensor<1x12x320xf32> -> tensor<1x320x12xf32>
  %cv = prim.conv %tv, %wv strides [1] dilations [1] pads [0] [0] groups 2 : (tensor<1x320x12xf32>, tensor<1x6x4xf32>) -> tensor<1x320x4xf32>
  %yv = prim.transpose %cv [0, 2, 1] : tensor<1x320x4xf32> -> tensor<1x4x320xf32>
  return %y, %yv : tensor<1x66x320xf32>, tensor<1x4x320xf32>
}

// Groups whose filters are given and have few outputs: wherever the image comes from.
// CHECK-LABEL: func.func @given_groups
// CHECK: prim.transpose %arg0 [0, 2, 1] : tensor<1x320x30xf32> -> tensor<1x30x320xf32>
// CHECK: prim.dot_general {{.*}} batch [0] x [0] contract [2] x [1] : (tensor<3x8x10xf32>, tensor<3x10x320xf32>) -> tensor<3x8x320xf32>
// CHECK: prim.transpose {{.*}} [0, 2, 1] : tensor<1x24x320xf32> -> tensor<1x320x24xf32>
func.func @given_groups(%x: tensor<1x320x30xf32>, %w: tensor<1x10x24xf32>) -> tensor<1x320x24xf32> {
  %c = prim.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 3 : (tensor<1x320x30xf32>, tensor<1x10x24xf32>) -> tensor<1x320x24xf32>
  return %c : tensor<1x320x24xf32>
}

// CHECK-LABEL: func.func @unchanged
// CHECK-NOT: prim.dot_general
func.func @unchanged(%x: tensor<3x20x323xf32>, %z: tensor<1x20x646xf32>, %u: tensor<1x20x320xf32>) -> (tensor<3x33x323xf32>, tensor<1x33x323xf32>, tensor<1x320x33xf32>) {
  %w = prim.constant dense<1.0> : tensor<1x20x33xf32>
  %t = prim.transpose %x [0, 2, 1] : tensor<3x20x323xf32> -> tensor<3x323x20xf32>
  %c = prim.conv %t, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<3x323x20xf32>, tensor<1x20x33xf32>) -> tensor<3x323x33xf32>
  %y = prim.transpose %c [0, 2, 1] : tensor<3x323x33xf32> -> tensor<3x33x323xf32>
  %zt = prim.transpose %z [0, 2, 1] : tensor<1x20x646xf32> -> tensor<1x646x20xf32>
  %zc = prim.conv %zt, %w strides [2] dilations [1] pads [0] [0] groups 1 : (tensor<1x646x20xf32>, tensor<1x20x33xf32>) -> tensor<1x323x33xf32>
  %zy = prim.transpose %zc [0, 2, 1] : tensor<1x323x33xf32> -> tensor<1x33x323xf32>
  %ut = prim.transpose %u [0, 2, 1] : tensor<1x20x320xf32> -> tensor<1x320x20xf32>
  %uc = prim.conv %ut, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x320x20xf32>, tensor<1x20x33xf32>) -> tensor<1x320x33xf32>
  return %y, %zy, %uc : tensor<3x33x323xf32>, tensor<1x33x323xf32>, tensor<1x320x33xf32>
}

// Pixels that only the run knows are taken for many, unless their range says that they are few.
!i = tensor<1x20x?xf32, #prim.dims<affine_map<()[s0] -> (1, 20, s0)>>>
!l = tensor<1x?x20xf32, #prim.dims<affine_map<()[s0] -> (1, s0, 20)>>>
!o = tensor<1x33x?xf32, #prim.dims<affine_map<()[s0] -> (1, 33, s0)>>>
!p = tensor<1x?x33xf32, #prim.dims<affine_map<()[s0] -> (1, s0, 33)>>>
// CHECK-LABEL: func.func @unknown
// CHECK: prim.dot_general
func.func @unknown(%x: !i) -> !o attributes {prim.symbols = [#prim.symbol<"n", 0, 9223372036854775807, 1>]} {
  %w = prim.constant dense<1.0> : tensor<1x20x33xf32>
  %t = prim.transpose %x [0, 2, 1] : !i -> !l
  %c = prim.conv %t, %w strides [1] dilations [1] pads [0] [0] groups 1 : (!l, tensor<1x20x33xf32>) -> !p
  %y = prim.transpose %c [0, 2, 1] : !p -> !o
  return %y : !o
}

// CHECK-LABEL: func.func @few
// CHECK: prim.conv
func.func @few(%x: !i) -> !o attributes {prim.symbols = [#prim.symbol<"n", 1, 100, 1>]} {
  %w = prim.constant dense<1.0> : tensor<1x20x33xf32>
  %t = prim.transpose %x [0, 2, 1] : !i -> !l
  %c = prim.conv %t, %w strides [1] dilations [1] pads [0] [0] groups 1 : (!l, tensor<1x20x33xf32>) -> !p
  %y = prim.transpose %c [0, 2, 1] : !p -> !o
  return %y : !o
}
