// LLVM unrolls no loop that is too long for it: a product's is marked, and its passes need not find how often it runs.
// RUN: rm -rf %t && mkdir %t
// RUN: tc-compile %s -o %t/m.bin --cpu x86-64-v3 --debug-dir %t --verify
// RUN: cat %t/x86-64-v3.*.opt.ll | FileCheck %s
// CHECK: llvm.fmuladd.v8f32
// CHECK: br i1 {{.*}}, !llvm.loop
// CHECK: !"llvm.loop.unroll.disable"

func.func @main(%x: tensor<64x256xf32> {tc.name = "x"}, %y: tensor<256x64xf32> {tc.name = "y"}) -> (tensor<64x64xf32> {tc.name = "z"}) attributes {prim.symbols = []} {
  %0 = prim.dot_general %x, %y batch [] x [] contract [1] x [0] : (tensor<64x256xf32>, tensor<256x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
