// Sums of equal elements, whose rounding errors all go one way, keep to short chains: squares of what a relu made 0 less its
// mean, as BatchNorm adds them up, over rows of columns and over rows of images.
// RUN: tc-opt %s --tc-choose-schedule | FileCheck %s
// RUN: rm -rf %t && mkdir %t
// RUN: %python -c "import numpy as np, sys; x = np.full((2048, 48), 0.159, np.float32); y = np.full((8, 3, 1024), 0.159, np.float32); np.savez(sys.argv[1], x=x, y=y); np.savez(sys.argv[2], columns=x.sum(0, dtype=np.float64).astype(np.float32), images=y.sum((0, 2), dtype=np.float64).astype(np.float32))" %t/in.npz %t/want.npz
// RUN: tc-compile %s -o %t/out.bin --cpu x86-64-v3,x86-64-v4
// RUN: tc-run %t/out.bin --variant x86-64-v3 --inputs %t/in.npz --expect %t/want.npz --max-rel 4e-7
// RUN: tc-run %t/out.bin --inputs %t/in.npz --expect %t/want.npz --max-rel 4e-7
!x = tensor<2048x48xf32>
!y = tensor<8x3x1024xf32>
// CHECK: #kernel.cpu.column_reduce<
// CHECK: #kernel.cpu.loops<
func.func @main(%x: !x {tc.name = "x"}, %y: !y {tc.name = "y"}) -> (tensor<48xf32> {tc.name = "columns"}, tensor<3xf32> {tc.name = "images"}) {
  %columns = kernel.region(%i = %x : !x) -> (tensor<48xf32>) {
    %0 = prim.reduce sum %i [0] : !x -> tensor<48xf32>
    kernel.yield %0 : tensor<48xf32>
  }
  %images = kernel.region(%i = %y : !y) -> (tensor<3xf32>) {
    %0 = prim.reduce sum %i [0, 2] : !y -> tensor<3xf32>
    kernel.yield %0 : tensor<3xf32>
  }
  return %columns, %images : tensor<48xf32>, tensor<3xf32>
}
