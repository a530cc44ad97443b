// Composites as reductions and elementwise ops, unless the target keeps them.
// RUN: tc-opt %s -tc-decompose-composites | FileCheck %s
// RUN: tc-opt %s -tc-decompose-composites=keep=softmax,norm | FileCheck %s --check-prefix=KEEP

// CHECK-LABEL: func.func @softmax
// CHECK: prim.reduce max %arg0 [1]
// CHECK: prim.exp
// CHECK: prim.reduce sum
// CHECK: prim.div
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
