// The exponential on GPUs is one instruction behind five others, of vectors and of single elements; no polynomial, nothing selected.
// RUN: tc-opt %s --tc-choose-schedule=device=cuda --tc-lower-kernels=variants=sm_90a -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @lanes
// CHECK: llvm.func @
// CHECK-NOT: llvm.select
// CHECK-COUNT-4: fma.rm.f32
// CHECK-COUNT-2: llvm.intr.fma
// CHECK-NOT: llvm.intr.fma
// CHECK-COUNT-4: ex2.approx.ftz.f32
// CHECK-NOT: llvm.select
// CHECK: llvm.return
func.func @lanes(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %r = kernel.region(%a = %x : tensor<64x64xf32>) -> (tensor<64x64xf32>) {
    %e = prim.exp %a : tensor<64x64xf32>
    kernel.yield %e : tensor<64x64xf32>
  }
  return %r : tensor<64x64xf32>
}

// -----

// CHECK-LABEL: func.func @one
// CHECK: llvm.func @
// CHECK-NOT: llvm.select
// CHECK: ex2.approx.ftz.f32
// CHECK: llvm.return
func.func @one(%x: tensor<63xf32>) -> tensor<63xf32> {
  %r = kernel.region(%a = %x : tensor<63xf32>) -> (tensor<63xf32>) {
    %e = prim.exp %a : tensor<63xf32>
    kernel.yield %e : tensor<63xf32>
  }
  return %r : tensor<63xf32>
}
