// What reductions give for rows of several dims is computed by a launch before, whatever the batch; so is that of a single long row.
// Not where the row is the last dim alone, nor where reductions differ.
// RUN: tc-opt %s --tc-choose-schedule | FileCheck %s
// RUN: rm -rf %t && mkdir %t
// RUN: %python -c "import numpy as np, sys; np.savez(sys.argv[1], x=(1.5 + np.sin(np.arange(3 * 37 * 131, dtype=np.float32))).reshape(3, 37, 131), y=np.cos(np.arange(70001, dtype=np.float32)).reshape(1, 70001), c=np.arange(131, dtype=np.float32))" %t/in.npz
// RUN: tc-interpret %s --inputs %t/in.npz --outputs %t/want.npz
// RUN: tc-compile %s -o %t/out.bin --cpu x86-64-v3,x86-64-v4
// RUN: tc-run %t/out.bin --variant x86-64-v3 --inputs %t/in.npz --expect %t/want.npz --max-rel 4e-6
// RUN: tc-run %t/out.bin --threads 3 --inputs %t/in.npz --expect %t/want.npz --max-rel 4e-6
!x = tensor<3x37x131xf32>
!y = tensor<1x70001xf32>
// CHECK: #kernel.cpu.loops<{{.*}}reduceLaunch = true
// CHECK: #kernel.cpu.loops<{{.*}}reduceLaunch = true
// CHECK: #kernel.cpu.loops<
// CHECK: #kernel.cpu.loops<
func.func @main(%x: !x {tc.name = "x"}, %y: !y {tc.name = "y"}, %c: tensor<131xf32> {tc.name = "c"}) -> (!x {tc.name = "norm"}, tensor<3xf32> {tc.name = "sum"}, !y {tc.name = "part"}, !x {tc.name = "rows"}, !x {tc.name = "both"}) {
  %norm:2 = kernel.region(%i = %x : !x, %s = %c : tensor<131xf32>) -> (!x, tensor<3xf32>) {
    %0 = prim.reduce sum %i [1, 2] : !x -> tensor<3xf32>
    %1 = prim.reduce max %i [1, 2] : !x -> tensor<3xf32>
    %2 = prim.mul %0, %1 : tensor<3xf32>
    %3 = prim.broadcast %2 [0] : tensor<3xf32> -> !x
    %4 = prim.broadcast %s [2] : tensor<131xf32> -> !x
    %5 = prim.sub %i, %3 : !x
    %6 = prim.mul %5, %4 : !x
    kernel.yield %6, %0 : !x, tensor<3xf32>
  }
  %part = kernel.region(%i = %y : !y) -> (!y) {
    %0 = prim.reduce max %i [1] : !y -> tensor<1xf32>
    %1 = prim.broadcast %0 [0] : tensor<1xf32> -> !y
    %2 = prim.sub %i, %1 : !y
    kernel.yield %2 : !y
  }
  %rows = kernel.region(%i = %x : !x) -> (!x) {
    %0 = prim.reduce max %i [2] : !x -> tensor<3x37xf32>
    %1 = prim.broadcast %0 [0, 1] : tensor<3x37xf32> -> !x
    %2 = prim.sub %i, %1 : !x
    kernel.yield %2 : !x
  }
  %both = kernel.region(%i = %x : !x) -> (!x) {
    %0 = prim.reduce max %i [1, 2] : !x -> tensor<3xf32>
    %1 = prim.reduce max %i [2] : !x -> tensor<3x37xf32>
    %2 = prim.broadcast %0 [0] : tensor<3xf32> -> !x
    %3 = prim.broadcast %1 [0, 1] : tensor<3x37xf32> -> !x
    %4 = prim.sub %i, %2 : !x
    %5 = prim.mul %4, %3 : !x
    kernel.yield %5 : !x
  }
  return %norm#0, %norm#1, %part, %rows, %both : !x, tensor<3xf32>, !y, !x, !x
}
