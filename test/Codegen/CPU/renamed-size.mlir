// A reshape that gives a size another name keeps positions: dims that are the same at the end keep theirs, and what is left of one dim has
// as many elements as before. No position is divided.
// RUN: tc-opt %s --tc-choose-schedule --tc-lower-kernels=variants=x86-64-v3 | FileCheck %s

// CHECK-LABEL: llvm.func @k0
// CHECK-NOT: llvm.{{[su]}}{{div|rem}}
// CHECK: llvm.return
!x = tensor<1x?x91xf32, #prim.dims<affine_map<()[s0, s1] -> (1, s0 * 6 + 6, 91)>>>
!y = tensor<1x?x91xf32, #prim.dims<affine_map<()[s0, s1] -> (1, s1, 91)>>>
func.func @main(%x: !x) -> !y attributes {prim.symbols = ["a", "b"]} {
  %0 = kernel.region(%i = %x : !x) -> (!y) {
    %1 = prim.slice %i from affine_map<()[s0, s1] -> (0, 0, 90)> step [1, 1, -1] : !x -> !x
    %2 = prim.reshape %1 : !x -> !y
    %3 = prim.reduce max %2 [2] : !y -> tensor<1x?xf32, #prim.dims<affine_map<()[s0, s1] -> (1, s1)>>>
    %4 = prim.broadcast %3 [0, 1] : tensor<1x?xf32, #prim.dims<affine_map<()[s0, s1] -> (1, s1)>>> -> !y
    %5 = prim.sub %2, %4 : !y
    kernel.yield %5 : !y
  }
  return %0 : !y
}
