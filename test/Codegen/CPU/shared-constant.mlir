// Proves: a large constant that a contraction packs and a gather reads is stored once, packed; the gather follows an index map.
// RUN: tc-opt %s --tc-choose-schedule --tc-lower-kernels=variants=x86-64-v4 | FileCheck %s

// CHECK: #[[MAP:.*]] = affine_map<(d0, d1, d2) -> (d0 * 16 + d2, d1)>
// CHECK-LABEL: func.func @main
// CHECK: host.constant {{.*}} map #[[MAP]] : tensor<32x64x16xf32>
// CHECK: host.constant {{.*}} map #[[MAP]] : tensor<32x64x16xf32>
// CHECK-NOT: tensor<512x64xf32>
// CHECK: return
func.func @main(%ids: tensor<8xi64>, %x: tensor<8x64xf32>) -> (tensor<8x64xf32>, tensor<8x512xf32>) {
  %w = prim.constant dense_resource<w> : tensor<512x64xf32>
  %e = kernel.region(%a = %w : tensor<512x64xf32>, %i = %ids : tensor<8xi64>) -> (tensor<8x64xf32>) {
    %g = prim.gather %a[%i] axis = 0 : (tensor<512x64xf32>, tensor<8xi64>) -> tensor<8x64xf32>
    kernel.yield %g : tensor<8x64xf32>
  }
  %h = kernel.region(%a = %x : tensor<8x64xf32>, %b = %w : tensor<512x64xf32>) -> (tensor<8x512xf32>) {
    %d = prim.dot_general %a, %b batch [] x [] contract [1] x [1] : (tensor<8x64xf32>, tensor<512x64xf32>) -> tensor<8x512xf32>
    kernel.yield %d : tensor<8x512xf32>
  }
  return %e, %h : tensor<8x64xf32>, tensor<8x512xf32>
}
