// Proves: with AVX-512, erf of f32 looks its coefficients up by permutations; nothing is divided.
// RUN: tc-opt %s --tc-choose-schedule --tc-lower-kernels=variants=x86-64-v4 | FileCheck %s

// CHECK-LABEL: func.func @erf
// CHECK-NOT: llvm.fdiv
// CHECK-COUNT-5: llvm.call_intrinsic "llvm.x86.avx512.permvar.sf.512"
// CHECK-NOT: llvm.fdiv
func.func @erf(%x: tensor<5x16xf32>) -> tensor<5x16xf32> {
  %r = kernel.region(%a = %x : tensor<5x16xf32>) -> (tensor<5x16xf32>) {
    %0 = prim.erf %a : tensor<5x16xf32>
    kernel.yield %0 : tensor<5x16xf32>
  }
  return %r : tensor<5x16xf32>
}
