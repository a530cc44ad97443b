// Another dim becomes the last: tiles are turned in registers. Every width of elements, ends of tiles in both dims, sizes that
// only the run knows, what stands before and behind. Not where the last dim stays; where it fills no tile rows are interleaved.
// RUN: tc-opt %s --tc-choose-schedule | FileCheck %s
// RUN: rm -rf %t && mkdir %t
// RUN: %python -c "import numpy as np, sys; r = np.random.default_rng(0); np.savez(sys.argv[1], x=r.standard_normal((3, 70, 41)).astype(np.float32), z=r.standard_normal((41, 3, 70)).astype(np.float32), h=r.standard_normal((2, 300, 17)).astype(np.float16), b=r.random((130, 16)) < 0.5, l=r.integers(-9, 9, (33, 9, 8)), m=r.standard_normal((520, 4100)).astype(np.float32), a=r.standard_normal((528, 530)).astype(np.float32), e=r.standard_normal((512, 1101)).astype(np.float32), d=r.standard_normal((5, 90)))" %t/in.npz
// RUN: tc-interpret %s --inputs %t/in.npz --outputs %t/want.npz
// RUN: tc-compile %s -o %t/out.bin --cpu x86-64-v3,x86-64-v4
// RUN: tc-run %t/out.bin --variant x86-64-v3 --inputs %t/in.npz --expect %t/want.npz --max-rel 0
// RUN: tc-run %t/out.bin --inputs %t/in.npz --expect %t/want.npz --max-rel 0
!x = tensor<3x70x41xf32>
!z = tensor<41x3x70xf32>
!h = tensor<2x300x17xf16>
!b = tensor<130x16xi1>
!l = tensor<33x9x8xi64>
!m = tensor<520x4100xf32>
!a = tensor<528x530xf32>
!e = tensor<512x1101xf32>
!d = tensor<?x?xf64, #prim.dims<affine_map<()[s0, s1] -> (s0, s1)>>>
!dt = tensor<?x?xf64, #prim.dims<affine_map<()[s0, s1] -> (s1, s0)>>>
// CHECK: #kernel.cpu.transpose<{{.*}}columns = 64{{[,>]}}{{.*}}direct = true
// CHECK: #kernel.cpu.transpose<
// CHECK: #kernel.cpu.transpose<{{.*}}columns = 64{{[,>]}}
// CHECK: #kernel.cpu.transpose<
// Rows that begin with a line are stored to straight from the registers.
// CHECK: #kernel.cpu.transpose<{{.*}}columns = 256{{[,>]}}{{.*}}fetch = true
// CHECK: #kernel.cpu.transpose<{{.*}}rows = 256{{[,>]}}{{.*}}columns = 16{{[,>]}}{{.*}}direct = true
// CHECK: #kernel.cpu.transpose<{{.*}}rows = 32{{[,>]}}{{.*}}columns = 64{{[,>]}}{{.*}}direct = true
// CHECK: #kernel.cpu.transpose<{{.*}}columns = 64{{[,>]}}
// CHECK: #kernel.cpu.loops<
// CHECK: #kernel.cpu.transpose<{{.*}}narrow = true{{.*}}columns = 3{{[,>]}}
func.func @main(%x: !x {tc.name = "x"}, %z: !z {tc.name = "z"}, %h: !h {tc.name = "h"}, %b: !b {tc.name = "b"}, %l: !l {tc.name = "l"}, %m: !m {tc.name = "m"}, %a: !a {tc.name = "a"}, %e: !e {tc.name = "e"}, %d: !d {tc.name = "d"})
    -> (!z {tc.name = "sum"}, tensor<17x600xf16> {tc.name = "halves"}, tensor<16x130xi1> {tc.name = "not"}, tensor<8x9x33xi64> {tc.name = "ints"}, tensor<4100x520xf32> {tc.name = "large"}, tensor<530x528xf32> {tc.name = "lines"}, tensor<1101x512xf32> {tc.name = "sets"}, !dt {tc.name = "unknown"}, tensor<70x3x41xf32> {tc.name = "stays"}, tensor<70x41x3xf32> {tc.name = "few"})
    attributes {prim.symbols = [#prim.symbol<"r", 0, 4096, 1>, #prim.symbol<"c", 0, 4096, 1>]} {
  %sum = kernel.region(%i = %x : !x, %j = %z : !z) -> (!z) {
    %0 = prim.abs %i : !x
    %1 = prim.transpose %0 [2, 0, 1] : !x -> !z
    %2 = prim.add %1, %j : !z
    kernel.yield %2 : !z
  }
  %halves = kernel.region(%i = %h : !h) -> (tensor<17x600xf16>) {
    %0 = prim.transpose %i [2, 0, 1] : !h -> tensor<17x2x300xf16>
    %1 = prim.reshape %0 : tensor<17x2x300xf16> -> tensor<17x600xf16>
    kernel.yield %1 : tensor<17x600xf16>
  }
  %not = kernel.region(%i = %b : !b) -> (tensor<16x130xi1>) {
    %0 = prim.transpose %i [1, 0] : !b -> tensor<16x130xi1>
    %1 = prim.not %0 : tensor<16x130xi1>
    kernel.yield %1 : tensor<16x130xi1>
  }
  %ints = kernel.region(%i = %l : !l) -> (tensor<8x9x33xi64>) {
    %0 = prim.transpose %i [2, 1, 0] : !l -> tensor<8x9x33xi64>
    kernel.yield %0 : tensor<8x9x33xi64>
  }
  %large = kernel.region(%i = %m : !m) -> (tensor<4100x520xf32>) {
    %0 = prim.transpose %i [1, 0] : !m -> tensor<4100x520xf32>
    kernel.yield %0 : tensor<4100x520xf32>
  }
  %lines = kernel.region(%i = %a : !a) -> (tensor<530x528xf32>) {
    %0 = prim.transpose %i [1, 0] : !a -> tensor<530x528xf32>
    kernel.yield %0 : tensor<530x528xf32>
  }
  %sets = kernel.region(%i = %e : !e) -> (tensor<1101x512xf32>) {
    %0 = prim.transpose %i [1, 0] : !e -> tensor<1101x512xf32>
    kernel.yield %0 : tensor<1101x512xf32>
  }
  %unknown = kernel.region(%i = %d : !d) -> (!dt) {
    %0 = prim.transpose %i [1, 0] : !d -> !dt
    kernel.yield %0 : !dt
  }
  %stays = kernel.region(%i = %x : !x) -> (tensor<70x3x41xf32>) {
    %0 = prim.transpose %i [1, 0, 2] : !x -> tensor<70x3x41xf32>
    kernel.yield %0 : tensor<70x3x41xf32>
  }
  %few = kernel.region(%i = %x : !x) -> (tensor<70x41x3xf32>) {
    %0 = prim.transpose %i [1, 2, 0] : !x -> tensor<70x41x3xf32>
    kernel.yield %0 : tensor<70x41x3xf32>
  }
  return %sum, %halves, %not, %ints, %large, %lines, %sets, %unknown, %stays, %few : !z, tensor<17x600xf16>, tensor<16x130xi1>, tensor<8x9x33xi64>, tensor<4100x520xf32>, tensor<530x528xf32>, tensor<1101x512xf32>, !dt, tensor<70x3x41xf32>, tensor<70x41x3xf32>
}

// -----

// Channels last to channels first: threads take pixels of their own.
// CHECK-LABEL: func.func @pixels
// CHECK: #kernel.cpu.transpose<{{.*}}columns = 64{{[,>]}}{{.*}}rasterOrder = columns_outer
func.func @pixels(%x: tensor<1x784x128xf32>) -> tensor<1x128x784xf32> {
  %r = kernel.region(%i = %x : tensor<1x784x128xf32>) -> (tensor<1x128x784xf32>) {
    %0 = prim.transpose %i [0, 2, 1] : tensor<1x784x128xf32> -> tensor<1x128x784xf32>
    kernel.yield %0 : tensor<1x128x784xf32>
  }
  return %r : tensor<1x128x784xf32>
}
