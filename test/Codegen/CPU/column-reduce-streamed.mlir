// Operands that leave the second-level cache are streamed: long stretches of some rows at once, in tasks of equal size. Where these
// are few, a launch before leaves results of parts of the rows.
// RUN: tc-opt %s --tc-choose-schedule | FileCheck %s
// RUN: rm -rf %t && mkdir %t
// RUN: %python -c "import numpy as np, sys; r = np.random.default_rng(0); np.savez(sys.argv[1], x=r.random((185, 2500), np.float32), y=r.random((100, 2500), np.float32), z=r.random((3, 77, 6001), np.float32))" %t/in.npz
// RUN: tc-interpret %s --inputs %t/in.npz --outputs %t/want.npz
// RUN: tc-compile %s -o %t/out.bin --cpu x86-64-v3,x86-64-v4
// RUN: tc-run %t/out.bin --variant x86-64-v3 --inputs %t/in.npz --expect %t/want.npz --max-rel 1e-6
// RUN: tc-run %t/out.bin --threads 3 --inputs %t/in.npz --expect %t/want.npz --max-rel 1e-6
// CHECK: #kernel.cpu.column_reduce<{{.*}}columns = 1280{{[,>]}}{{.*}}rows = 8{{[,>]}}{{.*}}part = 64{{[,>]}}
// CHECK: #kernel.cpu.column_reduce<{{.*}}columns = 128{{[,>]}}
// CHECK: #kernel.cpu.column_reduce<{{.*}}columns = 2048{{[,>]}}{{.*}}rows = 8{{[,>]}}{{.*}}part = 64{{[,>]}}
func.func @main(%x: tensor<185x2500xf32> {tc.name = "x"}, %y: tensor<100x2500xf32> {tc.name = "y"}, %z: tensor<3x77x6001xf32> {tc.name = "z"}) -> (tensor<2500xf32> {tc.name = "a"}, tensor<2500xf32> {tc.name = "b"}, tensor<3x6001xf32> {tc.name = "c"}) {
  %0 = kernel.region(%i = %x : tensor<185x2500xf32>) -> (tensor<2500xf32>) {
    %r = prim.reduce sum %i [0] : tensor<185x2500xf32> -> tensor<2500xf32>
    kernel.yield %r : tensor<2500xf32>
  }
  %1 = kernel.region(%i = %y : tensor<100x2500xf32>) -> (tensor<2500xf32>) {
    %r = prim.reduce sum %i [0] : tensor<100x2500xf32> -> tensor<2500xf32>
    kernel.yield %r : tensor<2500xf32>
  }
  %2 = kernel.region(%i = %z : tensor<3x77x6001xf32>) -> (tensor<3x6001xf32>) {
    %r = prim.reduce max %i [1] : tensor<3x77x6001xf32> -> tensor<3x6001xf32>
    %n = prim.neg %r : tensor<3x6001xf32>
    kernel.yield %n : tensor<3x6001xf32>
  }
  return %0, %1, %2 : tensor<2500xf32>, tensor<2500xf32>, tensor<3x6001xf32>
}
