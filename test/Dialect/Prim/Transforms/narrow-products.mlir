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
