// Proves: products, convolutions, moves and maxima of dequantised bytes become those of the bytes; a quantisation that undoes a
// dequantisation goes, and its division goes into constant factors. What has no constant scale, or sums too many numbers, stays.
// RUN: tc-opt %s --tc-sink-dequantize --split-input-file | FileCheck %s

// One zero point on the left, a scale for each column on the right, transposed.
// CHECK-LABEL: func.func @linear
// CHECK: %[[W:.*]] = prim.transpose %arg1 [1, 0] : tensor<4x5xi8> -> tensor<5x4xi8>
// CHECK: %[[L:.*]] = prim.sub %{{.*}} : tensor<3x5xi32>
// CHECK: %[[R:.*]] = prim.convert %[[W]] : tensor<5x4xi8> -> tensor<5x4xi32>
// CHECK: %[[SUMS:.*]] = prim.dot_general %[[L]], %[[R]] batch [] x [] contract [1] x [0] : (tensor<3x5xi32>, tensor<5x4xi32>) -> tensor<3x4xi32>
// CHECK: %[[FACTOR:.*]] = prim.mul {{.*}} : tensor<4xf32>
// CHECK-DAG: %[[WIDE:.*]] = prim.broadcast %[[FACTOR]] [1] : tensor<4xf32> -> tensor<3x4xf32>
// CHECK-DAG: %[[FLOAT:.*]] = prim.convert %[[SUMS]]
// CHECK: %[[Y:.*]] = prim.mul %[[FLOAT]], %[[WIDE]]
// CHECK: return %[[Y]]
func.func @linear(%x: tensor<3x5xui8>, %w: tensor<4x5xi8>) -> tensor<3x4xf32> {
  %xs = prim.splat 0.5 : f32 : tensor<3x5xf32>
  %xz = prim.splat 7 : i32 : tensor<3x5xi32>
  %ws = prim.constant dense<[0.1, 0.2, 0.3, 0.4]> : tensor<4xf32>
  %0 = prim.convert %x : tensor<3x5xui8> -> tensor<3x5xi32>
  %1 = prim.sub %0, %xz : tensor<3x5xi32>
  %2 = prim.convert %1 : tensor<3x5xi32> -> tensor<3x5xf32>
  %3 = prim.mul %2, %xs : tensor<3x5xf32>
  %4 = prim.convert %w : tensor<4x5xi8> -> tensor<4x5xi32>
  %5 = prim.convert %4 : tensor<4x5xi32> -> tensor<4x5xf32>
  %6 = prim.broadcast %ws [0] : tensor<4xf32> -> tensor<4x5xf32>
  %7 = prim.mul %5, %6 : tensor<4x5xf32>
  %8 = prim.transpose %7 [1, 0] : tensor<4x5xf32> -> tensor<5x4xf32>
  %9 = prim.dot_general %3, %8 batch [] x [] contract [1] x [0] : (tensor<3x5xf32>, tensor<5x4xf32>) -> tensor<3x4xf32>
  return %9 : tensor<3x4xf32>
}

// -----

// Another reader of a dequantised value computes it for itself.
// CHECK-LABEL: func.func @two_readers
// CHECK-DAG: %[[X:.*]] = prim.mul {{.*}} : tensor<3x5xf32>
// CHECK-DAG: prim.dot_general {{.*}} : (tensor<3x5xi32>, tensor<5x4xi32>) -> tensor<3x4xi32>
// CHECK: return %{{.*}}, %[[X]]
func.func @two_readers(%x: tensor<3x5xui8>, %w: tensor<5x4xi8>) -> (tensor<3x4xf32>, tensor<3x5xf32>) {
  %xs = prim.splat 0.5 : f32 : tensor<3x5xf32>
  %ws = prim.splat 0.25 : f32 : tensor<5x4xf32>
  %0 = prim.convert %x : tensor<3x5xui8> -> tensor<3x5xi32>
  %1 = prim.convert %0 : tensor<3x5xi32> -> tensor<3x5xf32>
  %2 = prim.mul %1, %xs : tensor<3x5xf32>
  %3 = prim.convert %w : tensor<5x4xi8> -> tensor<5x4xi32>
  %4 = prim.convert %3 : tensor<5x4xi32> -> tensor<5x4xf32>
  %5 = prim.mul %4, %ws : tensor<5x4xf32>
  %6 = prim.dot_general %2, %5 batch [] x [] contract [1] x [0] : (tensor<3x5xf32>, tensor<5x4xf32>) -> tensor<3x4xf32>
  return %6, %2 : tensor<3x4xf32>, tensor<3x5xf32>
}

// -----

// A scale that only the run knows, one that differs along the summands, elements of 16 bits, sums beyond i32.
// CHECK-LABEL: func.func @stays
// CHECK-NOT: prim.dot_general {{.*}}i32
// CHECK: return
func.func @stays(%x: tensor<3x5xui8>, %s: tensor<f32>, %h: tensor<3x5xi16>, %w: tensor<5x4xi8>, %long: tensor<3x40000xui8>, %v: tensor<40000x4xi8>)
    -> (tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>) {
  %one = prim.splat 0.5 : f32 : tensor<3x5xf32>
  %ws = prim.splat 0.25 : f32 : tensor<5x4xf32>
  %each = prim.constant dense<[0.1, 0.2, 0.3, 0.4, 0.5]> : tensor<5xf32>
  %0 = prim.convert %w : tensor<5x4xi8> -> tensor<5x4xi32>
  %1 = prim.convert %0 : tensor<5x4xi32> -> tensor<5x4xf32>
  %2 = prim.mul %1, %ws : tensor<5x4xf32>
  %3 = prim.convert %x : tensor<3x5xui8> -> tensor<3x5xi32>
  %4 = prim.convert %3 : tensor<3x5xi32> -> tensor<3x5xf32>
  %5 = prim.broadcast %s [] : tensor<f32> -> tensor<3x5xf32>
  %6 = prim.mul %4, %5 : tensor<3x5xf32>
  %r0 = prim.dot_general %6, %2 batch [] x [] contract [1] x [0] : (tensor<3x5xf32>, tensor<5x4xf32>) -> tensor<3x4xf32>
  %7 = prim.broadcast %each [1] : tensor<5xf32> -> tensor<3x5xf32>
  %8 = prim.mul %4, %7 : tensor<3x5xf32>
  %r1 = prim.dot_general %8, %2 batch [] x [] contract [1] x [0] : (tensor<3x5xf32>, tensor<5x4xf32>) -> tensor<3x4xf32>
  %9 = prim.convert %h : tensor<3x5xi16> -> tensor<3x5xi32>
  %10 = prim.convert %9 : tensor<3x5xi32> -> tensor<3x5xf32>
  %11 = prim.mul %10, %one : tensor<3x5xf32>
  %r2 = prim.dot_general %11, %2 batch [] x [] contract [1] x [0] : (tensor<3x5xf32>, tensor<5x4xf32>) -> tensor<3x4xf32>
  %12 = prim.convert %long : tensor<3x40000xui8> -> tensor<3x40000xi32>
  %13 = prim.convert %12 : tensor<3x40000xi32> -> tensor<3x40000xf32>
  %ls = prim.splat 0.5 : f32 : tensor<3x40000xf32>
  %14 = prim.mul %13, %ls : tensor<3x40000xf32>
  %15 = prim.convert %v : tensor<40000x4xi8> -> tensor<40000x4xi32>
  %16 = prim.convert %15 : tensor<40000x4xi32> -> tensor<40000x4xf32>
  %vs = prim.splat 0.5 : f32 : tensor<40000x4xf32>
  %17 = prim.mul %16, %vs : tensor<40000x4xf32>
  %r3 = prim.dot_general %14, %17 batch [] x [] contract [1] x [0] : (tensor<3x40000xf32>, tensor<40000x4xf32>) -> tensor<3x4xf32>
  return %r0, %r1, %r2, %r3 : tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>
}

// -----

// A convolution with a constant filter; with one input channel for each filter in f32, which is exact.
// CHECK-LABEL: func.func @convolutions
// CHECK: prim.conv {{.*}} : (tensor<1x6x6x8xi32>, tensor<3x3x8x16xi32>) -> tensor<1x6x6x16xi32>
// CHECK: %[[PAD:.*]] = prim.pad %arg0, {{.*}} : (tensor<1x6x6x8xui8>, tensor<ui8>) -> tensor<1x8x8x8xui8>
// CHECK: %[[FLOAT:.*]] = prim.convert %[[PAD]] : tensor<1x8x8x8xui8> -> tensor<1x8x8x8xf32>
// CHECK: prim.conv %[[FLOAT]], {{.*}} pads [0, 0] [0, 0] groups 8
func.func @convolutions(%x: tensor<1x6x6x8xui8>) -> (tensor<1x6x6x16xf32>, tensor<1x6x6x8xf32>) {
  %xs = prim.splat 0.5 : f32 : tensor<1x6x6x8xf32>
  %xz = prim.splat 7 : i32 : tensor<1x6x6x8xi32>
  %0 = prim.convert %x : tensor<1x6x6x8xui8> -> tensor<1x6x6x8xi32>
  %1 = prim.sub %0, %xz : tensor<1x6x6x8xi32>
  %2 = prim.convert %1 : tensor<1x6x6x8xi32> -> tensor<1x6x6x8xf32>
  %3 = prim.mul %2, %xs : tensor<1x6x6x8xf32>
  %w = prim.constant dense<3> : tensor<3x3x8x16xi8>
  %4 = prim.convert %w : tensor<3x3x8x16xi8> -> tensor<3x3x8x16xi32>
  %5 = prim.convert %4 : tensor<3x3x8x16xi32> -> tensor<3x3x8x16xf32>
  %ws = prim.splat 0.25 : f32 : tensor<3x3x8x16xf32>
  %6 = prim.mul %5, %ws : tensor<3x3x8x16xf32>
  %7 = prim.conv %3, %6 strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x6x6x8xf32>, tensor<3x3x8x16xf32>) -> tensor<1x6x6x16xf32>
  %v = prim.constant dense<3> : tensor<3x3x1x8xi8>
  %8 = prim.convert %v : tensor<3x3x1x8xi8> -> tensor<3x3x1x8xi32>
  %9 = prim.convert %8 : tensor<3x3x1x8xi32> -> tensor<3x3x1x8xf32>
  %vs = prim.splat 0.25 : f32 : tensor<3x3x1x8xf32>
  %10 = prim.mul %9, %vs : tensor<3x3x1x8xf32>
  %11 = prim.conv %3, %10 strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 8 : (tensor<1x6x6x8xf32>, tensor<3x3x1x8xf32>) -> tensor<1x6x6x8xf32>
  return %7, %11 : tensor<1x6x6x16xf32>, tensor<1x6x6x8xf32>
}

// -----

// The maximum over windows is that of the bytes, and what quantises it again the same way is nothing.
// CHECK-LABEL: func.func @largest
// CHECK: %[[R:.*]] = prim.window_reduce max %arg0 {{.*}} : tensor<1x6x6x8xui8> -> tensor<1x3x3x8xui8>
// CHECK: return %[[R]]
func.func @largest(%x: tensor<1x6x6x8xui8>) -> tensor<1x3x3x8xui8> {
  %xs = prim.splat 0.3 : f32 : tensor<1x6x6x8xf32>
  %0 = prim.convert %x : tensor<1x6x6x8xui8> -> tensor<1x6x6x8xi32>
  %1 = prim.convert %0 : tensor<1x6x6x8xi32> -> tensor<1x6x6x8xf32>
  %2 = prim.mul %1, %xs : tensor<1x6x6x8xf32>
  %3 = prim.window_reduce max %2 window [3, 3] strides [2, 2] dilations [1, 1] low [1, 1] : tensor<1x6x6x8xf32> -> tensor<1x3x3x8xf32>
  %s = prim.splat 0.3 : f32 : tensor<1x3x3x8xf32>
  %4 = prim.div %3, %s : tensor<1x3x3x8xf32>
  %5 = prim.round %4 : tensor<1x3x3x8xf32>
  %low = prim.splat 0.0 : f32 : tensor<1x3x3x8xf32>
  %high = prim.splat 255.0 : f32 : tensor<1x3x3x8xf32>
  %6 = prim.max %5, %low : tensor<1x3x3x8xf32>
  %7 = prim.min %6, %high : tensor<1x3x3x8xf32>
  %8 = prim.convert %7 : tensor<1x3x3x8xf32> -> tensor<1x3x3x8xi32>
  %9 = prim.convert %8 : tensor<1x3x3x8xi32> -> tensor<1x3x3x8xui8>
  return %9 : tensor<1x3x3x8xui8>
}

// -----

// (sums * f + bias, at least 0) / s; what is no sum of integers keeps its division.
// CHECK-LABEL: func.func @divided
// CHECK-NOT: prim.div {{.*}} : tensor<3x4xf32>
// CHECK: %[[F:.*]] = prim.div {{.*}} : tensor<4xf32>
// CHECK: %[[WIDE:.*]] = prim.broadcast %[[F]] [1]
// CHECK: prim.mul %{{.*}}, %[[WIDE]]
// CHECK: prim.round
// CHECK: prim.div {{.*}} : tensor<3x4xf32>
// CHECK: prim.round
func.func @divided(%sums: tensor<3x4xi32>, %x: tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<3x4xf32>) {
  %f = prim.constant dense<[0.1, 0.2, 0.3, 0.4]> : tensor<4xf32>
  %bias = prim.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %zero = prim.splat 0.0 : f32 : tensor<3x4xf32>
  %s = prim.splat 0.3 : f32 : tensor<3x4xf32>
  %0 = prim.convert %sums : tensor<3x4xi32> -> tensor<3x4xf32>
  %1 = prim.broadcast %f [1] : tensor<4xf32> -> tensor<3x4xf32>
  %2 = prim.mul %0, %1 : tensor<3x4xf32>
  %3 = prim.broadcast %bias [1] : tensor<4xf32> -> tensor<3x4xf32>
  %4 = prim.add %2, %3 : tensor<3x4xf32>
  %5 = prim.max %4, %zero : tensor<3x4xf32>
  %6 = prim.div %5, %s : tensor<3x4xf32>
  %7 = prim.round %6 : tensor<3x4xf32>
  %8 = prim.div %x, %s : tensor<3x4xf32>
  %9 = prim.round %8 : tensor<3x4xf32>
  return %7, %9 : tensor<3x4xf32>, tensor<3x4xf32>
}
