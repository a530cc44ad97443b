// Proves: positions of lanes in tensors of known size are divided in 32 bits.
// RUN: tc-opt %s --tc-choose-schedule --tc-lower-kernels=variants=x86-64-v4 | FileCheck %s

// Channels that are shuffled, as pixels of 3x3 before and after: lanes cross dims of 3, 17 and 9. Their positions are divided in 32 bits, as
// there is no product of high halves for lanes of 64, and the tensor is known to be small enough.
// CHECK-LABEL: host.variant
// CHECK: llvm.func @k0_neg
// CHECK-NOT: llvm.udiv {{.*}}vector<16xi64>
// CHECK: llvm.udiv {{.*}}vector<16xi32>
// CHECK-NOT: llvm.udiv {{.*}}vector<16xi64>
func.func @narrow_positions(%x: tensor<2x8x19x3x17x3xf32>) -> tensor<2x8x19x3x17x3xf32> {
  %r = kernel.region(%i0 = %x : tensor<2x8x19x3x17x3xf32>) -> (tensor<2x8x19x3x17x3xf32>) {
    %0 = prim.transpose %i0 [0, 1, 3, 5, 2, 4] : tensor<2x8x19x3x17x3xf32> -> tensor<2x8x3x3x19x17xf32>
    %1 = prim.reshape %0 : tensor<2x8x3x3x19x17xf32> -> tensor<2x72x19x17xf32>
    %2 = prim.neg %1 : tensor<2x72x19x17xf32>
    %3 = prim.reshape %2 : tensor<2x72x19x17xf32> -> tensor<2x3x3x8x19x17xf32>
    %4 = prim.transpose %3 [0, 3, 4, 1, 5, 2] : tensor<2x3x3x8x19x17xf32> -> tensor<2x8x19x3x17x3xf32>
    kernel.yield %4 : tensor<2x8x19x3x17x3xf32>
  }
  return %r : tensor<2x8x19x3x17x3xf32>
}
