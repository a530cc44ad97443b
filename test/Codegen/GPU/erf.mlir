// erf on GPUs is two polynomials and an exponential, of vectors and of single elements; no coefficient is selected, nothing divided.
// RUN: tc-opt %s --tc-choose-schedule=device=cuda --tc-lower-kernels=variants=sm_90a -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @lanes
// CHECK: llvm.func @
// CHECK: llvm.select
// CHECK-NOT: llvm.fdiv
// CHECK-COUNT-4: ex2.approx.ftz.f32
// CHECK: llvm.select
// CHECK-NOT: llvm.select
// CHECK: llvm.return
func.func @lanes(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %r = kernel.region(%a = %x : tensor<64x64xf32>) -> (tensor<64x64xf32>) {
    %e = prim.erf %a : tensor<64x64xf32>
    kernel.yield %e : tensor<64x64xf32>
  }
  return %r : tensor<64x64xf32>
}

// -----

// CHECK-LABEL: func.func @one
// CHECK: llvm.func @
// CHECK-NOT: llvm.fdiv
// CHECK: ex2.approx.ftz.f32
// CHECK: llvm.return
func.func @one(%x: tensor<63xf32>) -> tensor<63xf32> {
  %r = kernel.region(%a = %x : tensor<63xf32>) -> (tensor<63xf32>) {
    %e = prim.erf %a : tensor<63xf32>
    kernel.yield %e : tensor<63xf32>
  }
  return %r : tensor<63xf32>
}
