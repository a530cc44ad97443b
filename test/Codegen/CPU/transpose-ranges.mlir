// A dim that the declared range keeps short is one with those around it where they are transposed, and is no tile of its own; the
// values are the same at both ends of the range.
// RUN: tc-opt %s --tc-choose-schedule | FileCheck %s
// RUN: rm -rf %t && mkdir %t
// RUN: %python -c "import numpy as np, sys; r = np.random.default_rng(0); [np.savez(sys.argv[1] + str(n) + '.npz', x=r.standard_normal((70, n, 50)).astype(np.float32), y=r.standard_normal((5, n, 37)).astype(np.float32)) for n in (1, 3, 4)]" %t/in
// RUN: tc-compile %s -o %t/out.bin --cpu x86-64-v3,x86-64-v4
// RUN: tc-interpret %s --inputs %t/in1.npz --outputs %t/want1.npz
// RUN: tc-interpret %s --inputs %t/in3.npz --outputs %t/want3.npz
// RUN: tc-interpret %s --inputs %t/in4.npz --outputs %t/want4.npz
// RUN: tc-run %t/out.bin --variant x86-64-v3 --inputs %t/in1.npz --expect %t/want1.npz --max-rel 0
// RUN: tc-run %t/out.bin --inputs %t/in3.npz --expect %t/want3.npz --max-rel 0
// RUN: tc-run %t/out.bin --threads 2 --inputs %t/in4.npz --expect %t/want4.npz --max-rel 0
!x = tensor<70x?x50xf32, #prim.dims<affine_map<()[s0] -> (70, s0, 50)>>>
!xt = tensor<50x70x?xf32, #prim.dims<affine_map<()[s0] -> (50, 70, s0)>>>
!y = tensor<5x?x37xf32, #prim.dims<affine_map<()[s0] -> (5, s0, 37)>>>
!yt = tensor<5x37x?xf32, #prim.dims<affine_map<()[s0] -> (5, 37, s0)>>>
// CHECK: #kernel.cpu.transpose<
// CHECK: #kernel.cpu.loops<
func.func @main(%x: !x {tc.name = "x"}, %y: !y {tc.name = "y"}) -> (!xt {tc.name = "around"}, !yt {tc.name = "alone"})
    attributes {prim.symbols = [#prim.symbol<"n", 1, 4, 1>]} {
  %0 = kernel.region(%i = %x : !x) -> (!xt) {
    %t = prim.transpose %i [2, 0, 1] : !x -> !xt
    kernel.yield %t : !xt
  }
  %1 = kernel.region(%i = %y : !y) -> (!yt) {
    %t = prim.transpose %i [0, 2, 1] : !y -> !yt
    kernel.yield %t : !yt
  }
  return %0, %1 : !xt, !yt
}
