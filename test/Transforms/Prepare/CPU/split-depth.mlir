// Small products with long sums are cut into parts along them; those with tasks enough, of few rows, with a constant matrix, and
// short ones are left. What is left of sums that no number of parts divides is a product of its own.
// RUN: tc-opt %s --pass-pipeline='builtin.module(func.func(tc-split-depth))' | FileCheck %s

// CHECK-LABEL: func.func @gram
// CHECK: prim.reshape %arg0 : tensor<4096x64xf32> -> tensor<8x512x64xf32>
// CHECK: prim.dot_general {{.*}} batch [0] x [0] contract [1] x [1] : (tensor<8x512x64xf32>, tensor<8x512x64xf32>) -> tensor<8x64x64xf32>
// CHECK: prim.reduce sum {{.*}} [0] : tensor<8x64x64xf32> -> tensor<64x64xf32>
func.func @gram(%x: tensor<4096x64xf32>) -> tensor<64x64xf32> {
  %0 = prim.dot_general %x, %x batch [] x [] contract [0] x [0] : (tensor<4096x64xf32>, tensor<4096x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}

// CHECK-LABEL: func.func @batch
// CHECK: prim.dot_general {{.*}} batch [2, 0] x [1, 3] contract [3] x [2] : (tensor<3x20x2x1500xf32>, tensor<20x2x1500x3xf32>) -> tensor<2x3x20x20xf32>
func.func @batch(%x: tensor<3x20x3000xf32>, %y: tensor<20x3000x3xf32>) -> tensor<3x20x20xf32> {
  %0 = prim.dot_general %x, %y batch [0] x [2] contract [2] x [1] : (tensor<3x20x3000xf32>, tensor<20x3000x3xf32>) -> tensor<3x20x20xf32>
  return %0 : tensor<3x20x20xf32>
}

// CHECK-LABEL: func.func @odd
// CHECK: %[[X:.*]] = prim.slice %arg0 {{.*}} : tensor<4093x64xf32> -> tensor<4088x64xf32>
// CHECK: prim.reshape %[[X]] : tensor<4088x64xf32> -> tensor<8x511x64xf32>
// CHECK: %[[S:.*]] = prim.reduce sum {{.*}} [0] : tensor<8x64x64xf32> -> tensor<64x64xf32>
// CHECK: %[[L:.*]] = prim.dot_general {{.*}} : (tensor<5x64xf32>, tensor<5x64xf32>) -> tensor<64x64xf32>
// CHECK: prim.add %[[S]], %[[L]]
func.func @odd(%z: tensor<4093x64xf32>) -> tensor<64x64xf32> {
  %2 = prim.dot_general %z, %z batch [] x [] contract [0] x [0] : (tensor<4093x64xf32>, tensor<4093x64xf32>) -> tensor<64x64xf32>
  return %2 : tensor<64x64xf32>
}

// CHECK-LABEL: func.func @left
// CHECK-NOT: prim.reduce
func.func @left(%x: tensor<4096x400xf32>, %y: tensor<4096x4xf32>, %s: tensor<300x64xf32>, %w: tensor<4096x64xf32>) -> (tensor<400x400xf32>, tensor<4x4xf32>, tensor<64x64xf32>, tensor<64x64xf32>) {
  %c = prim.constant dense<1.0> : tensor<4096x64xf32>
  %0 = prim.dot_general %x, %x batch [] x [] contract [0] x [0] : (tensor<4096x400xf32>, tensor<4096x400xf32>) -> tensor<400x400xf32>
  %1 = prim.dot_general %y, %y batch [] x [] contract [0] x [0] : (tensor<4096x4xf32>, tensor<4096x4xf32>) -> tensor<4x4xf32>
  %3 = prim.dot_general %s, %s batch [] x [] contract [0] x [0] : (tensor<300x64xf32>, tensor<300x64xf32>) -> tensor<64x64xf32>
  %4 = prim.dot_general %w, %c batch [] x [] contract [0] x [0] : (tensor<4096x64xf32>, tensor<4096x64xf32>) -> tensor<64x64xf32>
  return %0, %1, %3, %4 : tensor<400x400xf32>, tensor<4x4xf32>, tensor<64x64xf32>, tensor<64x64xf32>
}
