// Reductions whose last dim stays take blocks of columns: whole blocks, vectors and a masked rest; several reduced dims; what
// follows the reduction. Not where a result has the operand's sizes. Few vectors of columns are several rows at once.
// RUN: tc-opt %s --tc-choose-schedule | FileCheck %s
// RUN: rm -rf %t && mkdir %t
// RUN: %python -c "import numpy as np, sys; np.savez(sys.argv[1], x=np.sin(np.arange(3 * 37 * 300, dtype=np.float32)).reshape(3, 37, 300), y=np.cos(np.arange(2 * 5 * 3 * 7 * 256)).astype(np.float16).reshape(2, 5, 3, 7, 256), z=np.sin(np.arange(4 * 330 * 43, dtype=np.float32)).reshape(4, 330, 43))" %t/in.npz
// RUN: tc-interpret %s --inputs %t/in.npz --outputs %t/want.npz
// RUN: tc-compile %s -o %t/out.bin --cpu x86-64-v3,x86-64-v4
// RUN: tc-run %t/out.bin --variant x86-64-v3 --inputs %t/in.npz --expect %t/want.npz --max-rel 2e-6
// RUN: tc-run %t/out.bin --inputs %t/in.npz --expect %t/want.npz --max-rel 2e-6
!x = tensor<3x37x300xf32>
!y = tensor<2x5x3x7x256xf16>
!z = tensor<4x330x43xf32>
// CHECK: #kernel.cpu.column_reduce<
// CHECK: #kernel.cpu.column_reduce<
// CHECK: #kernel.cpu.loops<
// CHECK: #kernel.cpu.column_reduce<
func.func @main(%x: !x {tc.name = "x"}, %y: !y {tc.name = "y"}, %z: !z {tc.name = "z"}) -> (tensor<3x300xf32> {tc.name = "mean"}, tensor<3x256x2x1xf16> {tc.name = "most"}, !x {tc.name = "centred"}, tensor<4x43xf32> {tc.name = "few"}) {
  %mean = kernel.region(%i = %x : !x) -> (tensor<3x300xf32>) {
    %0 = prim.mul %i, %i : !x
    %1 = prim.reduce sum %0 [1] : !x -> tensor<3x300xf32>
    %2 = prim.sqrt %1 : tensor<3x300xf32>
    kernel.yield %2 : tensor<3x300xf32>
  }
  %most = kernel.region(%i = %y : !y) -> (tensor<3x256x2x1xf16>) {
    %0 = prim.reduce max %i [1, 3] : !y -> tensor<2x3x256xf16>
    %1 = prim.transpose %0 [1, 2, 0] : tensor<2x3x256xf16> -> tensor<3x256x2xf16>
    %2 = prim.reshape %1 : tensor<3x256x2xf16> -> tensor<3x256x2x1xf16>
    kernel.yield %2 : tensor<3x256x2x1xf16>
  }
  %centred = kernel.region(%i = %x : !x) -> (!x) {
    %0 = prim.reduce sum %i [1] : !x -> tensor<3x300xf32>
    %1 = prim.broadcast %0 [0, 2] : tensor<3x300xf32> -> !x
    %2 = prim.sub %i, %1 : !x
    kernel.yield %2 : !x
  }
  %few = kernel.region(%i = %z : !z) -> (tensor<4x43xf32>) {
    %0 = prim.reduce sum %i [1] : !z -> tensor<4x43xf32>
    kernel.yield %0 : tensor<4x43xf32>
  }
  return %mean, %most, %centred, %few : tensor<3x300xf32>, tensor<3x256x2x1xf16>, !x, tensor<4x43xf32>
}
