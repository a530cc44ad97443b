// A row of five f64 with a window of three takes two registers of AVX2, and at its right end the mask never takes the second one, which
// LLVM 22 would then read without a mask: the element of the next row was in the sum.
// RUN: rm -rf %t && mkdir %t
// RUN: tc-compile %s -o %t/m.bin --cpu x86-64-v3 --debug-dir %t --verify
// RUN: FileCheck %s < %t/x86-64-v3.0.opt.ll
// CHECK: @llvm.masked.load.v4f64{{.*}}<4 x i1>

func.func @main(%x: tensor<1x1x4x5xf64> {tc.name = "x"}) -> (tensor<1x1x4x5xf64> {tc.name = "y"}) attributes {prim.symbols = []} {
  %0 = prim.transpose %x [0, 2, 3, 1] : tensor<1x1x4x5xf64> -> tensor<1x4x5x1xf64>
  %1 = prim.window_reduce sum %0 window [3, 3] strides [1, 1] dilations [1, 1] low [1, 1] : tensor<1x4x5x1xf64> -> tensor<1x4x5x1xf64>
  %2 = prim.transpose %1 [0, 3, 1, 2] : tensor<1x4x5x1xf64> -> tensor<1x1x4x5xf64>
  return %2 : tensor<1x1x4x5xf64>
}
