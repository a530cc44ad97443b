// Proves: products of widened bytes become products of ui8 and i8, zero points that are the same along K leave them; others stay.
// RUN: tc-opt %s --tc-narrow-products --split-input-file | FileCheck %s

// One zero point on the left: times the columns' sums of the right.
// CHECK-LABEL: func.func @left_zero
// CHECK: %[[Y:.*]] = prim.dot_general %arg0, %arg1 batch [] x [] contract [1] x [0] : (tensor<3x5xui8>, tensor<5x4xi8>) -> tensor<3x4xi32>
// CHECK: %[[W:.*]] = prim.convert %arg1 : tensor<5x4xi8> -> tensor<5x4xi32>
// CHECK: %[[SUMS:.*]] = prim.reduce sum %[[W]] [0] : tensor<5x4xi32> -> tensor<4xi32>
// CHECK: prim.mul {{.*}}%[[SUMS]] : tensor<4xi32>
// CHECK: %[[R:.*]] = prim.sub %[[Y]], %{{.*}} : tensor<3x4xi32>
// CHECK: return %[[R]]
func.func @left_zero(%x: tensor<3x5xui8>, %w: tensor<5x4xi8>) -> tensor<3x4xi32> {
  %z = prim.splat 7 : i32 : tensor<3x5xi32>
  %0 = prim.convert %x : tensor<3x5xui8> -> tensor<3x5xi32>
  %1 = prim.sub %0, %z : tensor<3x5xi32>
  %2 = prim.convert %w : tensor<5x4xi8> -> tensor<5x4xi32>
  %3 = prim.dot_general %1, %2 batch [] x [] contract [1] x [0] : (tensor<3x5xi32>, tensor<5x4xi32>) -> tensor<3x4xi32>
  return %3 : tensor<3x4xi32>
}

// -----

// ui8 on the right with a zero point of 128 is i8 without one: no sums of the left.
// CHECK-LABEL: func.func @centre
// CHECK: %[[X:.*]] = prim.xor %arg1, %{{.*}} : tensor<5x4xui8>
// CHECK: %[[W:.*]] = prim.bitcast %[[X]] : tensor<5x4xui8> -> tensor<5x4xi8>
// CHECK: %[[Y:.*]] = prim.dot_general %arg0, %[[W]]
// CHECK-NOT: prim.reduce
// CHECK: return %[[Y]]
func.func @centre(%x: tensor<3x5xui8>, %w: tensor<5x4xui8>) -> tensor<3x4xi32> {
  %z = prim.splat 128 : i32 : tensor<5x4xi32>
  %0 = prim.convert %x : tensor<3x5xui8> -> tensor<3x5xi32>
  %1 = prim.convert %w : tensor<5x4xui8> -> tensor<5x4xi32>
  %2 = prim.sub %1, %z : tensor<5x4xi32>
  %3 = prim.dot_general %0, %2 batch [] x [] contract [1] x [0] : (tensor<3x5xi32>, tensor<5x4xi32>) -> tensor<3x4xi32>
  return %3 : tensor<3x4xi32>
}

// -----

// A zero point for each step of K.
// CHECK-LABEL: func.func @along_depth
// CHECK: prim.dot_general {{.*}} : (tensor<3x5xi32>, tensor<5x4xi32>) -> tensor<3x4xi32>
func.func @along_depth(%x: tensor<3x5xui8>, %w: tensor<5x4xi8>, %z: tensor<5xi32>) -> tensor<3x4xi32> {
  %0 = prim.convert %x : tensor<3x5xui8> -> tensor<3x5xi32>
  %1 = prim.broadcast %z [1] : tensor<5xi32> -> tensor<3x5xi32>
  %2 = prim.sub %0, %1 : tensor<3x5xi32>
  %3 = prim.convert %w : tensor<5x4xi8> -> tensor<5x4xi32>
  %4 = prim.dot_general %2, %3 batch [] x [] contract [1] x [0] : (tensor<3x5xi32>, tensor<5x4xi32>) -> tensor<3x4xi32>
  return %4 : tensor<3x4xi32>
}

// -----

// Convolutions: padding is the zero point of the input, whose share is that of whole filters.
// CHECK-LABEL: func.func @convolution
// CHECK: %[[PAD:.*]] = prim.pad %arg0, {{.*}} : (tensor<1x6x6x3xui8>, tensor<ui8>) -> tensor<1x8x8x3xui8>
// CHECK: %[[Y:.*]] = prim.conv %[[PAD]], %arg1 strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x8x8x3xui8>, tensor<3x3x3x16xi8>) -> tensor<1x6x6x16xi32>
// CHECK: prim.reduce sum {{.*}} [0, 1, 2]
// CHECK: prim.sub %[[Y]]
func.func @convolution(%x: tensor<1x6x6x3xui8>, %w: tensor<3x3x3x16xi8>) -> tensor<1x6x6x16xi32> {
  %z = prim.splat 7 : i32 : tensor<1x6x6x3xi32>
  %0 = prim.convert %x : tensor<1x6x6x3xui8> -> tensor<1x6x6x3xi32>
  %1 = prim.sub %0, %z : tensor<1x6x6x3xi32>
  %2 = prim.convert %w : tensor<3x3x3x16xi8> -> tensor<3x3x3x16xi32>
  %3 = prim.conv %1, %2 strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x6x6x3xi32>, tensor<3x3x3x16xi32>) -> tensor<1x6x6x16xi32>
  return %3 : tensor<1x6x6x16xi32>
}

// -----

// i8 without a zero point is ui8 with one of 128: it is padded with that. Zero points of filters count as often as their windows' sums.
// CHECK-LABEL: func.func @convolution_i8
// CHECK: prim.bitcast %{{.*}} : tensor<1x6x3xi8> -> tensor<1x6x3xui8>
// CHECK: %[[PAD:.*]] = prim.pad {{.*}} : (tensor<1x6x3xui8>, tensor<ui8>) -> tensor<1x8x3xui8>
// CHECK: prim.conv %[[PAD]], {{.*}} -> tensor<1x6x16xi32>
// CHECK: prim.reduce sum {{.*}} : tensor<1x8x1x3xi32> -> tensor<1x8x1xi32>
// CHECK: prim.conv {{.*}} : (tensor<1x8x1xi32>, tensor<3x1x1xi32>) -> tensor<1x6x1xi32>
func.func @convolution_i8(%x: tensor<1x6x3xi8>, %w: tensor<3x3x16xui8>) -> tensor<1x6x16xi32> {
  %z = prim.splat 7 : i32 : tensor<3x3x16xi32>
  %0 = prim.convert %x : tensor<1x6x3xi8> -> tensor<1x6x3xi32>
  %1 = prim.convert %w : tensor<3x3x16xui8> -> tensor<3x3x16xi32>
  %2 = prim.sub %1, %z : tensor<3x3x16xi32>
  %3 = prim.conv %0, %2 strides [1] dilations [1] pads [1] [1] groups 1 : (tensor<1x6x3xi32>, tensor<3x3x16xi32>) -> tensor<1x6x16xi32>
  return %3 : tensor<1x6x16xi32>
}
