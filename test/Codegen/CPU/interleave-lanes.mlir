// Vectors of a long chain of instructions are computed side by side, one instruction of each after another, as many as leave none over
// where the length is known; those of short chains one by one. Half as many where there are half the registers.
// RUN: tc-opt %s --tc-choose-schedule --tc-lower-kernels=variants=x86-64-v4 | FileCheck %s
// RUN: tc-opt %s --tc-choose-schedule --tc-lower-kernels=variants=x86-64-v3 | FileCheck %s --check-prefix=AVX2

// CHECK-LABEL: llvm.func @k0_logistic
// CHECK-COUNT-4: mask.scalef
// CHECK-NOT: llvm.fmul
// CHECK-COUNT-4: rcp14
// CHECK-COUNT-4: llvm.store
// One by one, then a part of a vector.
// CHECK: mask.scalef
// CHECK: rcp14
// CHECK: mask.scalef
// CHECK: rcp14
// CHECK-NOT: rcp14

// CHECK-LABEL: llvm.func @k1_logistic
// CHECK-COUNT-3: mask.scalef
// CHECK-COUNT-3: rcp14
// CHECK-NOT: rcp14

// CHECK-LABEL: llvm.func @k2_neg
// CHECK-COUNT-1: llvm.fneg
// CHECK-NOT: llvm.fneg

// AVX2-LABEL: llvm.func @k0_logistic
// AVX2-COUNT-2: llvm.fdiv
// AVX2-COUNT-2: llvm.store
func.func @main(%x: tensor<5x217xf32>, %y: tensor<5x48xf32>, %z: tensor<5x64xf32>) -> (tensor<5x217xf32>, tensor<5x48xf32>, tensor<5x64xf32>) {
  %0 = kernel.region(%i = %x : tensor<5x217xf32>) -> (tensor<5x217xf32>) {
    %r = prim.logistic %i : tensor<5x217xf32>
    kernel.yield %r : tensor<5x217xf32>
  }
  %1 = kernel.region(%i = %y : tensor<5x48xf32>) -> (tensor<5x48xf32>) {
    %r = prim.logistic %i : tensor<5x48xf32>
    kernel.yield %r : tensor<5x48xf32>
  }
  %2 = kernel.region(%i = %z : tensor<5x64xf32>) -> (tensor<5x64xf32>) {
    %r = prim.neg %i : tensor<5x64xf32>
    kernel.yield %r : tensor<5x64xf32>
  }
  return %0, %1, %2 : tensor<5x217xf32>, tensor<5x48xf32>, tensor<5x64xf32>
}
