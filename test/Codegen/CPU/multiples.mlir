// Loops over a dim whose size is a multiple of the vectors' width mask nothing: --dim n=multiple-of:8.
// RUN: tc-opt %s -split-input-file --tc-choose-schedule --tc-lower-kernels=variants=x86-64-v3 | FileCheck %s

#n = affine_map<()[s0] -> (s0)>
#rn = affine_map<()[s0] -> (5, s0)>
!n = tensor<?xf32, #prim.dims<#n>>
!rn = tensor<5x?xf32, #prim.dims<#rn>>
// CHECK-LABEL: func.func @whole
// CHECK: llvm.func @k0_tanh
// CHECK-NOT: intr.masked
// CHECK: llvm.func @k1_exp_reduce
// CHECK-NOT: intr.masked
// CHECK: llvm.return
func.func @whole(%x: !n, %y: !rn) -> (!n, tensor<5xf32>)
    attributes {prim.symbols = [#prim.symbol<"N", 0, 9223372036854775807, 8>]} {
  %0 = kernel.region(%a = %x : !n) -> (!n) {
    %t = prim.tanh %a : !n
    kernel.yield %t : !n
  }
  %1 = kernel.region(%a = %y : !rn) -> (tensor<5xf32>) {
    %t = prim.exp %a : !rn
    %s = prim.reduce sum %t [1] : !rn -> tensor<5xf32>
    kernel.yield %s : tensor<5xf32>
  }
  return %0, %1 : !n, tensor<5xf32>
}

// -----

// Half a vector is masked.
#n = affine_map<()[s0] -> (s0)>
#rn = affine_map<()[s0] -> (5, s0)>
!n = tensor<?xf32, #prim.dims<#n>>
!rn = tensor<5x?xf32, #prim.dims<#rn>>
// CHECK-LABEL: func.func @half
// CHECK: llvm.func @k0_tanh
// CHECK: intr.masked
// CHECK: llvm.func @k1_exp_reduce
// CHECK: intr.masked
func.func @half(%x: !n, %y: !rn) -> (!n, tensor<5xf32>)
    attributes {prim.symbols = [#prim.symbol<"N", 0, 9223372036854775807, 4>]} {
  %0 = kernel.region(%a = %x : !n) -> (!n) {
    %t = prim.tanh %a : !n
    kernel.yield %t : !n
  }
  %1 = kernel.region(%a = %y : !rn) -> (tensor<5xf32>) {
    %t = prim.exp %a : !rn
    %s = prim.reduce sum %t [1] : !rn -> tensor<5xf32>
    kernel.yield %s : tensor<5xf32>
  }
  return %0, %1 : !n, tensor<5xf32>
}
