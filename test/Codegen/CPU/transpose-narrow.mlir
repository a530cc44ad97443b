// A short last dim beside the operand's last one: rows are interleaved. Every width of elements, ends of blocks, sizes that only the run
// knows, what stands before, a reshape behind. Not where something is computed behind.
// Where the dims lie apart they count as one with those between.
// RUN: tc-opt %s --tc-choose-schedule | FileCheck %s
// RUN: rm -rf %t && mkdir %t
// RUN: %python -c "import numpy as np, sys; r = np.random.default_rng(0); np.savez(sys.argv[1], x=r.standard_normal((3, 2061)).astype(np.float32), h=r.standard_normal((2, 5, 33)).astype(np.float16), b=r.standard_normal((7, 130)) > 0, l=r.integers(-9, 9, (4, 6, 2, 19)), d=r.standard_normal((2, 77)))" %t/in.npz
// RUN: tc-interpret %s --inputs %t/in.npz --outputs %t/want.npz
// RUN: tc-compile %s -o %t/out.bin --cpu x86-64-v3,x86-64-v4
// RUN: tc-run %t/out.bin --variant x86-64-v3 --inputs %t/in.npz --expect %t/want.npz --max-rel 0
// RUN: tc-run %t/out.bin --threads 3 --inputs %t/in.npz --expect %t/want.npz --max-rel 0
!x = tensor<3x2061xf32>
!h = tensor<2x5x33xf16>
!b = tensor<7x130xi1>
!l = tensor<4x6x2x19xi64>
!d = tensor<2x?xf64, #prim.dims<affine_map<()[s0] -> (2, s0)>>>
!dt = tensor<?x2xf64, #prim.dims<affine_map<()[s0] -> (s0, 2)>>>
// CHECK: #kernel.cpu.transpose<{{.*}}narrow = true{{.*}}columns = 3{{[,>]}}
// CHECK: #kernel.cpu.transpose<{{.*}}narrow = true{{.*}}columns = 5{{[,>]}}
// CHECK: #kernel.cpu.transpose<{{.*}}narrow = true{{.*}}columns = 7{{[,>]}}
// CHECK: #kernel.cpu.transpose<{{.*}}narrow = true{{.*}}columns = 2{{[,>]}}
// CHECK: #kernel.cpu.transpose<{{.*}}narrow = true{{.*}}columns = 2{{[,>]}}
// CHECK: #kernel.cpu.loops<
// CHECK: #kernel.cpu.transpose<{{.*}}columns = 64{{[,>]}}{{.*}}direct = true
func.func @main(%x: !x {tc.name = "x"}, %h: !h {tc.name = "h"}, %b: !b {tc.name = "b"}, %l: !l {tc.name = "l"}, %d: !d {tc.name = "d"})
    -> (tensor<2061x3xf32> {tc.name = "pixels"}, tensor<2x33x5xf16> {tc.name = "halves"}, tensor<910xi1> {tc.name = "bits"}, tensor<4x6x19x2xi64> {tc.name = "ints"}, !dt {tc.name = "unknown"}, tensor<2061x3xf32> {tc.name = "behind"}, tensor<33x2x5xf16> {tc.name = "apart"})
    attributes {prim.symbols = [#prim.symbol<"r", 0, 4096, 1>]} {
  %pixels = kernel.region(%i = %x : !x) -> (tensor<2061x3xf32>) {
    %0 = prim.abs %i : !x
    %1 = prim.transpose %0 [1, 0] : !x -> tensor<2061x3xf32>
    kernel.yield %1 : tensor<2061x3xf32>
  }
  %halves = kernel.region(%i = %h : !h) -> (tensor<2x33x5xf16>) {
    %0 = prim.transpose %i [0, 2, 1] : !h -> tensor<2x33x5xf16>
    kernel.yield %0 : tensor<2x33x5xf16>
  }
  %bits = kernel.region(%i = %b : !b) -> (tensor<910xi1>) {
    %0 = prim.transpose %i [1, 0] : !b -> tensor<130x7xi1>
    %1 = prim.reshape %0 : tensor<130x7xi1> -> tensor<910xi1>
    kernel.yield %1 : tensor<910xi1>
  }
  %ints = kernel.region(%i = %l : !l) -> (tensor<4x6x19x2xi64>) {
    %0 = prim.transpose %i [0, 1, 3, 2] : !l -> tensor<4x6x19x2xi64>
    kernel.yield %0 : tensor<4x6x19x2xi64>
  }
  %unknown = kernel.region(%i = %d : !d) -> (!dt) {
    %0 = prim.transpose %i [1, 0] : !d -> !dt
    kernel.yield %0 : !dt
  }
  %behind = kernel.region(%i = %x : !x) -> (tensor<2061x3xf32>) {
    %0 = prim.transpose %i [1, 0] : !x -> tensor<2061x3xf32>
    %1 = prim.neg %0 : tensor<2061x3xf32>
    kernel.yield %1 : tensor<2061x3xf32>
  }
  %apart = kernel.region(%i = %h : !h) -> (tensor<33x2x5xf16>) {
    %0 = prim.transpose %i [2, 0, 1] : !h -> tensor<33x2x5xf16>
    kernel.yield %0 : tensor<33x2x5xf16>
  }
  return %pixels, %halves, %bits, %ints, %unknown, %behind, %apart : tensor<2061x3xf32>, tensor<2x33x5xf16>, tensor<910xi1>, tensor<4x6x19x2xi64>, !dt, tensor<2061x3xf32>, tensor<33x2x5xf16>
}
