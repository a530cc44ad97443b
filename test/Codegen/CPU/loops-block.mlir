// Sums of short rows are stored for 64 neighbours before functions of them take lanes, in each of the outputs. Not where
// little is made of them, nor where the result has another last dim than its neighbours.
// RUN: tc-opt %s --tc-choose-schedule | FileCheck %s
// RUN: rm -rf %t && mkdir %t
// RUN: %python -c "import numpy as np, sys; np.savez(sys.argv[1], x=(1.5 + np.sin(np.arange(3 * 133 * 19, dtype=np.float32))).reshape(3, 133, 19))" %t/in.npz
// RUN: tc-interpret %s --inputs %t/in.npz --outputs %t/want.npz
// RUN: tc-compile %s -o %t/out.bin --cpu x86-64-v3,x86-64-v4
// RUN: tc-run %t/out.bin --variant x86-64-v3 --inputs %t/in.npz --expect %t/want.npz --max-rel 4e-6
// RUN: tc-run %t/out.bin --threads 3 --inputs %t/in.npz --expect %t/want.npz --max-rel 4e-6
!x = tensor<3x133x19xf32>
!y = tensor<3x133xf32>
// CHECK: #kernel.cpu.loops<{{.*}}block = 64{{[,>]}}
// CHECK: #kernel.cpu.loops<
// CHECK: #kernel.cpu.loops<
func.func @main(%x: !x {tc.name = "x"}) -> (!y {tc.name = "log"}, !y {tc.name = "root"}, !y {tc.name = "twice"}, tensor<3x133x1xf32> {tc.name = "alone"}) {
  %log:2 = kernel.region(%i = %x : !x) -> (!y, !y) {
    %0 = prim.reduce sum %i [2] : !x -> !y
    %1 = prim.reduce max %i [2] : !x -> !y
    %2 = prim.log %0 : !y
    %3 = prim.add %2, %1 : !y
    %4 = prim.exp %1 : !y
    kernel.yield %3, %4 : !y, !y
  }
  %twice = kernel.region(%i = %x : !x) -> (!y) {
    %0 = prim.reduce sum %i [2] : !x -> !y
    %1 = prim.add %0, %0 : !y
    kernel.yield %1 : !y
  }
  %alone = kernel.region(%i = %x : !x) -> (tensor<3x133x1xf32>) {
    %0 = prim.reduce sum %i [2] : !x -> !y
    %1 = prim.reshape %0 : !y -> tensor<3x133x1xf32>
    %2 = prim.exp %1 : tensor<3x133x1xf32>
    kernel.yield %2 : tensor<3x133x1xf32>
  }
  return %log#0, %log#1, %twice, %alone : !y, !y, !y, tensor<3x133x1xf32>
}
