// Attention in the forms that exporters write.
// RUN: tc-opt %s -tc-canonicalize-prim -tc-recognize-composites -canonicalize -split-input-file | FileCheck %s

// The square root of the scale on both sides, the key transposed before it is scaled.
// CHECK-LABEL: func.func @both_sides
// CHECK-NEXT: prim.attention %arg0, %arg1, %arg2 scale 1.250000e-01
// CHECK-NEXT: return
func.func @both_sides(%q: tensor<2x4x8x64xf32>, %k: tensor<2x4x16x64xf32>, %v: tensor<2x4x16x64xf32>) -> tensor<2x4x8x64xf32> {
  %c = prim.splat 0.25 : f32 : tensor<2x4x8x64xf32>
  %d = prim.splat 0.5 : f32 : tensor<2x4x64x16xf32>
  %0 = prim.mul %q, %c : tensor<2x4x8x64xf32>
  %1 = prim.transpose %k [0, 1, 3, 2] : tensor<2x4x16x64xf32> -> tensor<2x4x64x16xf32>
  %2 = prim.mul %1, %d : tensor<2x4x64x16xf32>
  %3 = prim.dot_general %0, %2 batch [0, 1] x [0, 1] contract [3] x [2] : (tensor<2x4x8x64xf32>, tensor<2x4x64x16xf32>) -> tensor<2x4x8x16xf32>
  %4 = prim.softmax %3 axis = 3 : tensor<2x4x8x16xf32>
  %5 = prim.dot_general %4, %v batch [0, 1] x [0, 1] contract [3] x [2] : (tensor<2x4x8x16xf32>, tensor<2x4x16x64xf32>) -> tensor<2x4x8x64xf32>
  return %5 : tensor<2x4x8x64xf32>
}

// -----

// Division after the product, then a mask.
// CHECK-LABEL: func.func @masked
// CHECK-NEXT: prim.attention %arg0, %arg1, %arg2 mask %arg3 scale 1.250000e-01
func.func @masked(%q: tensor<2x8x64xf32>, %k: tensor<2x16x64xf32>, %v: tensor<2x16x64xf32>, %mask: tensor<2x8x16xf32>) -> tensor<2x8x64xf32> {
  %c = prim.splat 8.0 : f32 : tensor<2x8x16xf32>
  %0 = prim.dot_general %q, %k batch [0] x [0] contract [2] x [2] : (tensor<2x8x64xf32>, tensor<2x16x64xf32>) -> tensor<2x8x16xf32>
  %1 = prim.div %0, %c : tensor<2x8x16xf32>
  %2 = prim.add %1, %mask : tensor<2x8x16xf32>
  %3 = prim.softmax %2 axis = 2 : tensor<2x8x16xf32>
  %4 = prim.dot_general %3, %v batch [0] x [0] contract [2] x [1] : (tensor<2x8x16xf32>, tensor<2x16x64xf32>) -> tensor<2x8x64xf32>
  return %4 : tensor<2x8x64xf32>
}

// -----

// The weights are an output: they must exist.
// CHECK-LABEL: func.func @weights_are_read
// CHECK: prim.softmax
// CHECK-NOT: prim.attention
func.func @weights_are_read(%q: tensor<2x8x64xf32>, %k: tensor<2x16x64xf32>, %v: tensor<2x16x64xf32>) -> (tensor<2x8x64xf32>, tensor<2x8x16xf32>) {
  %0 = prim.dot_general %q, %k batch [0] x [0] contract [2] x [2] : (tensor<2x8x64xf32>, tensor<2x16x64xf32>) -> tensor<2x8x16xf32>
  %3 = prim.softmax %0 axis = 2 : tensor<2x8x16xf32>
  %4 = prim.dot_general %3, %v batch [0] x [0] contract [2] x [1] : (tensor<2x8x16xf32>, tensor<2x16x64xf32>) -> tensor<2x8x64xf32>
  return %4, %3 : tensor<2x8x64xf32>, tensor<2x8x16xf32>
}
