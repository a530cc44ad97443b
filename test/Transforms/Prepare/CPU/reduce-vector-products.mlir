// A vector times a matrix that is no constant is a reduction, whatever the order of the dims; a constant matrix, several rows and
// bf16 stay products. So are products for many channels that lie side by side, of few rows or columns.
// RUN: tc-opt %s --pass-pipeline='builtin.module(func.func(tc-reduce-vector-products))' | FileCheck %s

// CHECK-LABEL: func.func @columns
// CHECK: %[[V:.*]] = prim.broadcast %{{.*}} [0] : tensor<30xf32> -> tensor<30x50xf32>
// CHECK: %[[M:.*]] = prim.mul %[[V]], %arg1
// CHECK: %[[S:.*]] = prim.reduce sum %[[M]] [0] : tensor<30x50xf32> -> tensor<50xf32>
// CHECK: prim.reshape %[[S]] : tensor<50xf32> -> tensor<1x50xf32>
func.func @columns(%v: tensor<1x30xf32>, %m: tensor<30x50xf32>) -> tensor<1x50xf32> {
  %0 = prim.dot_general %v, %m batch [] x [] contract [1] x [0] : (tensor<1x30xf32>, tensor<30x50xf32>) -> tensor<1x50xf32>
  return %0 : tensor<1x50xf32>
}

// Two batch dims that stand in another order in the matrix, two dims of sums, two of columns.
// CHECK-LABEL: func.func @dims
// CHECK: prim.transpose %arg0 [4, 1, 0, 2, 3] : tensor<2x3x5x1x7xf32> -> tensor<7x3x2x5x1xf32>
// CHECK: prim.broadcast {{.*}} [0, 1, 3, 5] : tensor<7x3x2x5xf32> -> tensor<7x3x4x2x6x5xf32>
// CHECK: prim.reduce sum {{.*}} [0, 5] : tensor<7x3x4x2x6x5xf32> -> tensor<3x4x2x6xf32>
// CHECK: prim.transpose {{.*}} [2, 0, 1, 3] : tensor<3x4x2x6xf32> -> tensor<2x3x4x6xf32>
// CHECK: prim.reshape {{.*}} -> tensor<2x3x1x4x6xf32>
func.func @dims(%v: tensor<2x3x5x1x7xf32>, %m: tensor<7x3x4x2x6x5xf32>) -> tensor<2x3x1x4x6xf32> {
  %0 = prim.dot_general %v, %m batch [0, 1] x [3, 1] contract [2, 4] x [5, 0] : (tensor<2x3x5x1x7xf32>, tensor<7x3x4x2x6x5xf32>) -> tensor<2x3x1x4x6xf32>
  return %0 : tensor<2x3x1x4x6xf32>
}

// CHECK-LABEL: func.func @constant
// CHECK: prim.dot_general
func.func @constant(%v: tensor<1x30xf32>) -> tensor<1x50xf32> {
  %m = prim.constant dense<2.0> : tensor<30x50xf32>
  %t = prim.transpose %m [1, 0] : tensor<30x50xf32> -> tensor<50x30xf32>
  %0 = prim.dot_general %v, %t batch [] x [] contract [1] x [1] : (tensor<1x30xf32>, tensor<50x30xf32>) -> tensor<1x50xf32>
  return %0 : tensor<1x50xf32>
}

// CHECK-LABEL: func.func @rows
// CHECK: prim.dot_general
func.func @rows(%v: tensor<2x30xf32>, %m: tensor<30x50xf32>) -> tensor<2x50xf32> {
  %0 = prim.dot_general %v, %m batch [] x [] contract [1] x [0] : (tensor<2x30xf32>, tensor<30x50xf32>) -> tensor<2x50xf32>
  return %0 : tensor<2x50xf32>
}

// CHECK-LABEL: func.func @narrow
// CHECK: prim.dot_general
func.func @narrow(%v: tensor<1x30xbf16>, %m: tensor<30x50xbf16>) -> tensor<1x50xf32> {
  %0 = prim.dot_general %v, %m batch [] x [] contract [1] x [0] : (tensor<1x30xbf16>, tensor<30x50xbf16>) -> tensor<1x50xf32>
  return %0 : tensor<1x50xf32>
}

// CHECK-LABEL: func.func @channels
// CHECK: %[[X:.*]] = prim.broadcast %{{.*}} [0, 2, 3] : tensor<30x25x40xf32> -> tensor<30x3x25x40xf32>
// CHECK: %[[Y:.*]] = prim.broadcast %arg1 [1, 2, 3] : tensor<3x25x40xf32> -> tensor<30x3x25x40xf32>
// CHECK: %[[P:.*]] = prim.mul %[[X]], %[[Y]]
// CHECK: %[[S:.*]] = prim.reduce sum %[[P]] [2] : tensor<30x3x25x40xf32> -> tensor<30x3x40xf32>
// CHECK: prim.transpose %[[S]] [2, 0, 1] : tensor<30x3x40xf32> -> tensor<40x30x3xf32>
func.func @channels(%x: tensor<30x25x40xf32>, %y: tensor<3x25x40xf32>) -> tensor<40x30x3xf32> {
  %t = prim.transpose %x [2, 0, 1] : tensor<30x25x40xf32> -> tensor<40x30x25xf32>
  %0 = prim.dot_general %t, %y batch [0] x [2] contract [2] x [1] : (tensor<40x30x25xf32>, tensor<3x25x40xf32>) -> tensor<40x30x3xf32>
  return %0 : tensor<40x30x3xf32>
}

// Many rows and columns, or few channels: a product.
// CHECK-LABEL: func.func @many
// CHECK: prim.dot_general
// CHECK: prim.dot_general
func.func @many(%x: tensor<30x25x40xf32>, %y: tensor<17x25x40xf32>, %z: tensor<30x25x4xf32>, %u: tensor<3x25x4xf32>) -> (tensor<40x30x17xf32>, tensor<4x30x3xf32>) {
  %0 = prim.dot_general %x, %y batch [2] x [2] contract [1] x [1] : (tensor<30x25x40xf32>, tensor<17x25x40xf32>) -> tensor<40x30x17xf32>
  %1 = prim.dot_general %z, %u batch [2] x [2] contract [1] x [1] : (tensor<30x25x4xf32>, tensor<3x25x4xf32>) -> tensor<4x30x3xf32>
  return %0, %1 : tensor<40x30x17xf32>, tensor<4x30x3xf32>
}

// Channels that only the run knows are taken for enough to fill lanes, unless their range says that they are few.
!z = tensor<30x25x?xf32, #prim.dims<affine_map<()[s0] -> (30, 25, s0)>>>
!u = tensor<3x25x?xf32, #prim.dims<affine_map<()[s0] -> (3, 25, s0)>>>
!r = tensor<?x30x3xf32, #prim.dims<affine_map<()[s0] -> (s0, 30, 3)>>>
// CHECK-LABEL: func.func @unknown_channels
// CHECK-NOT: prim.dot_general
// CHECK: prim.reduce sum
func.func @unknown_channels(%z: !z, %u: !u) -> !r attributes {prim.symbols = [#prim.symbol<"n", 0, 9223372036854775807, 1>]} {
  %0 = prim.dot_general %z, %u batch [2] x [2] contract [1] x [1] : (!z, !u) -> !r
  return %0 : !r
}

// CHECK-LABEL: func.func @few_channels
// CHECK: prim.dot_general
func.func @few_channels(%z: !z, %u: !u) -> !r attributes {prim.symbols = [#prim.symbol<"n", 1, 5, 1>]} {
  %0 = prim.dot_general %z, %u batch [2] x [2] contract [1] x [1] : (!z, !u) -> !r
  return %0 : !r
}
