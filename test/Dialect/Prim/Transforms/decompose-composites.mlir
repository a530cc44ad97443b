// Composites as reductions and elementwise ops, unless the target keeps them.
// RUN: tc-opt %s -tc-decompose-composites | FileCheck %s
// RUN: tc-opt %s -tc-decompose-composites=keep=softmax,norm | FileCheck %s --check-prefix=KEEP

// CHECK-LABEL: func.func @softmax
// CHECK: prim.reduce max %arg0 [1]
// CHECK: prim.exp
// CHECK: prim.reduce sum
// CHECK: prim.reciprocal
// CHECK: prim.mul
// KEEP: prim.softmax
func.func @softmax(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = prim.softmax %x axis = 1 : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// Statistics of bf16 rows are f32.
// CHECK-LABEL: func.func @norm
// CHECK: prim.convert %arg0 : tensor<4x8xbf16> -> tensor<4x8xf32>
// CHECK: prim.reduce sum {{.*}} : tensor<4x8xf32> -> tensor<4xf32>
// CHECK: prim.sub
// CHECK: prim.reduce sum
// CHECK: prim.rsqrt
// CHECK: prim.convert {{.*}} -> tensor<4x8xbf16>
// KEEP: prim.norm
func.func @norm(%x: tensor<4x8xbf16>) -> tensor<4x8xbf16> {
  %0 = prim.norm %x [1] epsilon = 1.0e-5 : tensor<4x8xbf16>
  return %0 : tensor<4x8xbf16>
}

// KEEP-LABEL: func.func @attention
// KEEP: prim.dot_general
// KEEP: prim.softmax
// KEEP: prim.dot_general
func.func @attention(%q: tensor<2x8x64xf32>, %k: tensor<2x16x64xf32>, %v: tensor<2x16x64xf32>) -> tensor<2x8x64xf32> {
  %0 = prim.attention %q, %k, %v scale 0.125 causal : (tensor<2x8x64xf32>, tensor<2x16x64xf32>, tensor<2x16x64xf32>) -> tensor<2x8x64xf32>
  return %0 : tensor<2x8x64xf32>
}

// KEEP-LABEL: func.func @attention_zero_nan
// KEEP: %[[W:.*]] = prim.softmax
// KEEP: %[[NAN:.*]] = prim.is_nan %[[W]]
// KEEP: %[[U:.*]] = prim.select %[[NAN]], %{{.*}}, %[[W]]
// KEEP: prim.dot_general %[[U]]
func.func @attention_zero_nan(%q: tensor<2x8x64xf32>, %k: tensor<2x16x64xf32>, %v: tensor<2x16x64xf32>) -> tensor<2x8x64xf32> {
  %0 = prim.attention %q, %k, %v scale 0.125 zero_nan : (tensor<2x8x64xf32>, tensor<2x16x64xf32>, tensor<2x16x64xf32>) -> tensor<2x8x64xf32>
  return %0 : tensor<2x8x64xf32>
}

// Narrow elements are computed in f32.
// CHECK-LABEL: func.func @attention_f16
// CHECK: prim.convert %arg0 : tensor<2x8x64xf16> -> tensor<2x8x64xf32>
// CHECK: prim.dot_general {{.*}} -> tensor<2x8x16xf32>
// CHECK: prim.dot_general {{.*}} -> tensor<2x8x64xf32>
// CHECK: prim.convert {{.*}} : tensor<2x8x64xf32> -> tensor<2x8x64xf16>
func.func @attention_f16(%q: tensor<2x8x64xf16>, %k: tensor<2x16x64xf16>, %v: tensor<2x16x64xf16>) -> tensor<2x8x64xf16> {
  %0 = prim.attention %q, %k, %v scale 0.125 : (tensor<2x8x64xf16>, tensor<2x16x64xf16>, tensor<2x16x64xf16>) -> tensor<2x8x64xf16>
  return %0 : tensor<2x8x64xf16>
}

// A recurrent layer is a loop over its steps: the gates' part of the state, the cell, and what a step beyond a sequence's end keeps.
// CHECK-LABEL: func.func @gru
// CHECK: prim.while %{{.*}} carry %{{.*}}, %arg3, %arg4
// CHECK: prim.dynamic_slice %arg0
// CHECK: prim.dot_general {{.*}} -> tensor<2x6xf64>
// CHECK: prim.dot_general {{.*}} -> tensor<2x3xf64>
// CHECK-NOT: prim.dot_general
// CHECK: prim.compare lt
// CHECK: prim.scatter_nd
// CHECK: prim.yield
func.func @gru(%gates: tensor<5x2x9xf64>, %r: tensor<3x9xf64>, %b: tensor<9xf64>, %h: tensor<2x3xf64>, %c: tensor<2x3xf64>, %p: tensor<9xf64>, %l: tensor<2xi32>)
    -> (tensor<5x2x3xf64>, tensor<2x3xf64>, tensor<2x3xf64>) {
  %0:3 = prim.rnn gru %gates, %r, %b, %h, %c, %p, %l : (tensor<5x2x9xf64>, tensor<3x9xf64>, tensor<9xf64>, tensor<2x3xf64>, tensor<2x3xf64>, tensor<9xf64>, tensor<2xi32>) -> (tensor<5x2x3xf64>, tensor<2x3xf64>, tensor<2x3xf64>)
  return %0#0, %0#1, %0#2 : tensor<5x2x3xf64>, tensor<2x3xf64>, tensor<2x3xf64>
}

// One product makes all gates of a step.
// CHECK-LABEL: func.func @lstm
// CHECK: prim.dot_general {{.*}} -> tensor<2x12xf64>
// CHECK-NOT: prim.dot_general
// CHECK: prim.yield
func.func @lstm(%gates: tensor<5x2x12xf64>, %r: tensor<3x12xf64>, %b: tensor<12xf64>, %h: tensor<2x3xf64>, %c: tensor<2x3xf64>, %p: tensor<9xf64>, %l: tensor<2xi32>)
    -> tensor<5x2x3xf64> {
  %0:3 = prim.rnn lstm %gates, %r, %b, %h, %c, %p, %l : (tensor<5x2x12xf64>, tensor<3x12xf64>, tensor<12xf64>, tensor<2x3xf64>, tensor<2x3xf64>, tensor<9xf64>, tensor<2xi32>) -> (tensor<5x2x3xf64>, tensor<2x3xf64>, tensor<2x3xf64>)
  return %0#0 : tensor<5x2x3xf64>
}

// Roots of unity, whose real parts the sums take and imaginary ones.
// CHECK-LABEL: func.func @fft
// CHECK-DAG: prim.cos
// CHECK-DAG: prim.sin
// CHECK-COUNT-2: prim.dot_general
// CHECK-NOT: prim.fft
func.func @fft(%x: tensor<4x8x1x1xf32>) -> tensor<4x5x1x2xf32> {
  %0 = prim.fft %x length affine_map<() -> (8)> : tensor<4x8x1x1xf32> -> tensor<4x5x1x2xf32>
  return %0 : tensor<4x5x1x2xf32>
}
