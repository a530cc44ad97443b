// Results that no cache holds until they are read are stored past the caches, where their buffers begin at a multiple of 64; small ones,
// and rows that are no whole vectors, are not.
// RUN: tc-opt %s --tc-choose-schedule | FileCheck %s
// RUN: tc-opt %s --tc-choose-schedule --tc-lower-kernels=variants=x86-64-v4 | FileCheck %s --check-prefix=LOWER
!big = tensor<4096x2048xf32>

// CHECK-LABEL: func.func @main
// CHECK: stream = 1
// CHECK-NOT: stream = 1
// LOWER: llvm.func @k0_neg
// LOWER: llvm.store {{.*}} {alignment = 64 : i64, nontemporal}
// LOWER: llvm.fence seq_cst
// LOWER: llvm.store {{.*}} {alignment = 4 : i64}
// LOWER-NOT: nontemporal
func.func @main(%x: !big, %y: tensor<100x2048xf32>, %z: tensor<9000x1001xf32>) -> (!big, tensor<100x2048xf32>, tensor<9000x1001xf32>) {
  %0 = kernel.region(%i = %x : !big) -> (!big) {
    %r = prim.neg %i : !big
    kernel.yield %r : !big
  }
  %1 = kernel.region(%i = %y : tensor<100x2048xf32>) -> (tensor<100x2048xf32>) {
    %r = prim.neg %i : tensor<100x2048xf32>
    kernel.yield %r : tensor<100x2048xf32>
  }
  %2 = kernel.region(%i = %z : tensor<9000x1001xf32>) -> (tensor<9000x1001xf32>) {
    %r = prim.neg %i : tensor<9000x1001xf32>
    kernel.yield %r : tensor<9000x1001xf32>
  }
  return %0, %1, %2 : !big, tensor<100x2048xf32>, tensor<9000x1001xf32>
}
