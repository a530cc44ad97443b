// A row of five f64, moved by one, takes two registers of AVX2, and the mask never takes the second one, which LLVM 22
// would then read without a mask: the element of the next row was in the result.
// RUN: rm -rf %t && mkdir %t
// RUN: tc-compile %s -o %t/m.bin --cpu x86-64-v3 --debug-dir %t --verify
// RUN: FileCheck %s < %t/x86-64-v3.1.opt.ll
// CHECK: @llvm.masked.load.v4f64{{.*}}<4 x i1>

func.func @main(%x: tensor<4x5xf64> {tc.name = "x"}) -> (tensor<4x5xf64> {tc.name = "y"}) attributes {prim.symbols = []} {
  %zero = prim.splat 0.0 : f64 : tensor<f64>
  %0 = prim.pad %x, %zero low affine_map<() -> (0, -1)> : (tensor<4x5xf64>, tensor<f64>) -> tensor<4x5xf64>
  return %0 : tensor<4x5xf64>
}
