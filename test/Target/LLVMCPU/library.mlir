// Of the code library only what is called is generated: nothing for f32, one function and what it needs for f64.
// RUN: rm -rf %t && mkdir %t
// RUN: tc-compile %s -o %t/m.bin --cpu x86-64-v3 --debug-dir %t/none
// RUN: ls %t/none | FileCheck %s --check-prefix=NONE
// NONE-NOT: library
// RUN: sed -e 's/f32/f64/g' %s > %t/f64.mlir
// RUN: tc-compile %t/f64.mlir -o %t/m.bin --cpu x86-64-v3 --debug-dir %t/some
// RUN: FileCheck %s --check-prefix=SOME < %t/some/x86-64-v3.library.opt.ll
// SOME: define hidden double @tc_asin_f64
// SOME-NOT: define
// RUN: tc-inspect %t/m.bin

func.func @main(%x: tensor<8xf32> {tc.name = "x"}) -> (tensor<8xf32> {tc.name = "y"}) {
  %0 = prim.asin %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}
