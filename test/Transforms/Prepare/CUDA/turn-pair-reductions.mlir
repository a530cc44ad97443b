// Distances of all pairs of rows: the second one's rows are turned, so that neighbouring results read what lies side by side. What is read as it lies,
// few results and long rows are left.
// RUN: tc-opt %s --pass-pipeline='builtin.module(func.func(tc-turn-pair-reductions))' | FileCheck %s

// CHECK-LABEL: func.func @distances
// CHECK-DAG: %[[X:.*]] = prim.broadcast %arg0 [0, 1] : tensor<256x64xf32> -> tensor<256x64x512xf32>
// CHECK-DAG: %[[T:.*]] = prim.transpose %arg1 [1, 0] : tensor<512x64xf32> -> tensor<64x512xf32>
// CHECK-DAG: %[[Y:.*]] = prim.broadcast %[[T]] [1, 2] : tensor<64x512xf32> -> tensor<256x64x512xf32>
// CHECK: %[[D:.*]] = prim.sub %[[X]], %[[Y]] : tensor<256x64x512xf32>
// CHECK: %[[S:.*]] = prim.mul %[[D]], %[[D]] : tensor<256x64x512xf32>
// CHECK: prim.reduce sum %[[S]] [1] : tensor<256x64x512xf32> -> tensor<256x512xf32>
func.func @distances(%x: tensor<256x64xf32>, %y: tensor<512x64xf32>) -> tensor<256x512xf32> attributes {prim.symbols = []} {
  %a = prim.broadcast %x [0, 2] : tensor<256x64xf32> -> tensor<256x512x64xf32>
  %b = prim.broadcast %y [1, 2] : tensor<512x64xf32> -> tensor<256x512x64xf32>
  %d = prim.sub %a, %b : tensor<256x512x64xf32>
  %s = prim.mul %d, %d : tensor<256x512x64xf32>
  %r = prim.reduce sum %s [2] : tensor<256x512x64xf32> -> tensor<256x512xf32>
  return %r : tensor<256x512xf32>
}

// A vector along the rows and one along the columns.
// CHECK-LABEL: func.func @vectors
// CHECK: prim.broadcast %arg2 [2] : tensor<64xf32> -> tensor<4x256x64x256xf32>
// CHECK: prim.broadcast %arg3 [3] : tensor<256xf32> -> tensor<4x256x64x256xf32>
// CHECK: prim.reduce max {{.*}} [2]
func.func @vectors(%x: tensor<4x256x64xf32>, %y: tensor<4x256x64xf32>, %v: tensor<64xf32>, %w: tensor<256xf32>) -> tensor<4x256x256xf32> attributes {prim.symbols = []} {
  %a = prim.broadcast %x [0, 1, 3] : tensor<4x256x64xf32> -> tensor<4x256x256x64xf32>
  %b = prim.broadcast %y [0, 2, 3] : tensor<4x256x64xf32> -> tensor<4x256x256x64xf32>
  %c = prim.broadcast %v [3] : tensor<64xf32> -> tensor<4x256x256x64xf32>
  %e = prim.broadcast %w [2] : tensor<256xf32> -> tensor<4x256x256x64xf32>
  %d = prim.add %a, %b : tensor<4x256x256x64xf32>
  %t = prim.tanh %d : tensor<4x256x256x64xf32>
  %m = prim.mul %t, %c : tensor<4x256x256x64xf32>
  %n = prim.mul %m, %e : tensor<4x256x256x64xf32>
  %r = prim.reduce max %n [3] : tensor<4x256x256x64xf32> -> tensor<4x256x256xf32>
  return %r : tensor<4x256x256xf32>
}

// CHECK-LABEL: func.func @whole
// CHECK-NOT: prim.transpose
func.func @whole(%x: tensor<256x64xf32>, %y: tensor<256x512x64xf32>) -> tensor<256x512xf32> attributes {prim.symbols = []} {
  %a = prim.broadcast %x [0, 2] : tensor<256x64xf32> -> tensor<256x512x64xf32>
  %d = prim.sub %a, %y : tensor<256x512x64xf32>
  %r = prim.reduce sum %d [2] : tensor<256x512x64xf32> -> tensor<256x512xf32>
  return %r : tensor<256x512xf32>
}

// CHECK-LABEL: func.func @few
// CHECK-NOT: prim.transpose
func.func @few(%x: tensor<16x64xf32>, %y: tensor<16x64xf32>) -> tensor<16x16xf32> attributes {prim.symbols = []} {
  %a = prim.broadcast %x [0, 2] : tensor<16x64xf32> -> tensor<16x16x64xf32>
  %b = prim.broadcast %y [1, 2] : tensor<16x64xf32> -> tensor<16x16x64xf32>
  %d = prim.sub %a, %b : tensor<16x16x64xf32>
  %r = prim.reduce sum %d [2] : tensor<16x16x64xf32> -> tensor<16x16xf32>
  return %r : tensor<16x16xf32>
}
