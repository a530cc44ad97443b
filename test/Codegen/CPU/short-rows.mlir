// Last dims that fill no vector and hold no power of two of elements: as many vectors as they hold elements are written at a time, and
// reductions along them take the rows of these. Reductions across them read rows as they lie and fold the lanes in the end. Every
// width of elements, ends of blocks, both widths of vectors. Not where a reduction is of another kind.
// RUN: tc-opt %s --tc-choose-schedule | FileCheck %s
// RUN: rm -rf %t && mkdir %t
// RUN: %python -c "import numpy as np, sys; r = np.random.default_rng(0); np.savez(sys.argv[1], x=r.standard_normal((219, 5)).astype(np.float32), h=r.standard_normal((100, 3)).astype(np.float16), b=r.standard_normal((77, 2, 7)) > 0, l=r.integers(-9, 9, (50, 12)), d=r.standard_normal((33, 9)), c=r.integers(0, 255, (130, 3)).astype(np.uint8), u=r.standard_normal((1205, 6)).astype(np.float32))" %t/in.npz
// RUN: tc-interpret %s --inputs %t/in.npz --outputs %t/want.npz
// RUN: tc-compile %s -o %t/out.bin --cpu x86-64-v3,x86-64-v4
// RUN: tc-run %t/out.bin --variant x86-64-v3 --inputs %t/in.npz --expect %t/want.npz --max-rel 4e-4
// RUN: tc-run %t/out.bin --threads 3 --inputs %t/in.npz --expect %t/want.npz --max-rel 4e-4
// CHECK: #kernel.cpu.loops<{{.*}}joined = 2{{[,>]}}
// CHECK: #kernel.cpu.loops<{{.*}}joined = 2{{[,>]}}
// CHECK: #kernel.cpu.loops<{{.*}}joined = 3{{[,>]}}
// CHECK: #kernel.cpu.loops<{{.*}}joined = 2{{[,>]}}
// CHECK-NOT: joined
// CHECK: #kernel.cpu.loops<
// CHECK: #kernel.cpu.column_reduce<{{.*}}folded = true{{.*}}columns = 5{{[,>]}}
// CHECK: #kernel.cpu.column_reduce<{{.*}}folded = true{{.*}}columns = 3{{[,>]}}
// CHECK: #kernel.cpu.column_reduce<{{.*}}folded = true{{.*}}columns = 7{{[,>]}}
// CHECK: #kernel.cpu.column_reduce<{{.*}}folded = true{{.*}}columns = 3{{[,>]}}
// CHECK: #kernel.cpu.loops<
// CHECK: #kernel.cpu.loops<{{.*}}chunk = {{[1-9]}}{{.*}}joined = 2{{[,>]}}
#rows = affine_map<()[s0] -> (s0, 6)>
func.func @main(%x: tensor<219x5xf32> {tc.name = "x"}, %h: tensor<100x3xf16> {tc.name = "h"}, %b: tensor<77x2x7xi1> {tc.name = "b"}, %l: tensor<50x12xi64> {tc.name = "l"}, %d: tensor<33x9xf64> {tc.name = "d"}, %c: tensor<130x3xui8> {tc.name = "c"}, %u: tensor<?x6xf32, #prim.dims<#rows>> {tc.name = "u"})
    -> (tensor<219x5xf32> {tc.name = "softmax"}, tensor<100x3xf16> {tc.name = "halves"}, tensor<77x2x7xi1> {tc.name = "bits"}, tensor<50x12xi64> {tc.name = "ints"}, tensor<33x9xf64> {tc.name = "across"},
        tensor<5xf32> {tc.name = "sum"}, tensor<3xf16> {tc.name = "largest"}, tensor<2x7xi1> {tc.name = "any"}, tensor<3xui8> {tc.name = "least"}, tensor<9xf64> {tc.name = "few"}, tensor<?x6xf32, #prim.dims<#rows>> {tc.name = "unknown"})
    attributes {prim.symbols = [#prim.symbol<"n", 0, 4096, 1>]} {
  %softmax = kernel.region(%i = %x : tensor<219x5xf32>) -> (tensor<219x5xf32>) {
    %0 = prim.reduce max %i [1] : tensor<219x5xf32> -> tensor<219xf32>
    %1 = prim.broadcast %0 [0] : tensor<219xf32> -> tensor<219x5xf32>
    %2 = prim.sub %i, %1 : tensor<219x5xf32>
    %3 = prim.exp %2 : tensor<219x5xf32>
    %4 = prim.reduce sum %3 [1] : tensor<219x5xf32> -> tensor<219xf32>
    %5 = prim.broadcast %4 [0] : tensor<219xf32> -> tensor<219x5xf32>
    %6 = prim.div %3, %5 : tensor<219x5xf32>
    kernel.yield %6 : tensor<219x5xf32>
  }
  %halves = kernel.region(%i = %h : tensor<100x3xf16>) -> (tensor<100x3xf16>) {
    %0 = prim.reduce sum %i [1] : tensor<100x3xf16> -> tensor<100xf16>
    %1 = prim.broadcast %0 [0] : tensor<100xf16> -> tensor<100x3xf16>
    %2 = prim.mul %i, %1 : tensor<100x3xf16>
    kernel.yield %2 : tensor<100x3xf16>
  }
  %bits = kernel.region(%i = %b : tensor<77x2x7xi1>) -> (tensor<77x2x7xi1>) {
    %0 = prim.slice %i from affine_map<() -> (0, 0, 0)> step [1, 1, 1] : tensor<77x2x7xi1> -> tensor<1x2x7xi1>
    %1 = prim.reshape %0 : tensor<1x2x7xi1> -> tensor<2x7xi1>
    %2 = prim.broadcast %1 [1, 2] : tensor<2x7xi1> -> tensor<77x2x7xi1>
    %3 = prim.xor %i, %2 : tensor<77x2x7xi1>
    kernel.yield %3 : tensor<77x2x7xi1>
  }
  %ints = kernel.region(%i = %l : tensor<50x12xi64>) -> (tensor<50x12xi64>) {
    %0 = prim.reduce min %i [1] : tensor<50x12xi64> -> tensor<50xi64>
    %1 = prim.broadcast %0 [0] : tensor<50xi64> -> tensor<50x12xi64>
    %2 = prim.sub %i, %1 : tensor<50x12xi64>
    kernel.yield %2 : tensor<50x12xi64>
  }
  %across = kernel.region(%i = %d : tensor<33x9xf64>) -> (tensor<33x9xf64>) {
    %0 = prim.reduce sum %i [0] : tensor<33x9xf64> -> tensor<9xf64>
    %1 = prim.broadcast %0 [1] : tensor<9xf64> -> tensor<33x9xf64>
    %2 = prim.sub %i, %1 : tensor<33x9xf64>
    kernel.yield %2 : tensor<33x9xf64>
  }
  %sum = kernel.region(%i = %x : tensor<219x5xf32>) -> (tensor<5xf32>) {
    %0 = prim.reduce sum %i [0] : tensor<219x5xf32> -> tensor<5xf32>
    kernel.yield %0 : tensor<5xf32>
  }
  %largest = kernel.region(%i = %h : tensor<100x3xf16>) -> (tensor<3xf16>) {
    %0 = prim.neg %i : tensor<100x3xf16>
    %1 = prim.reduce max %0 [0] : tensor<100x3xf16> -> tensor<3xf16>
    kernel.yield %1 : tensor<3xf16>
  }
  %any = kernel.region(%i = %b : tensor<77x2x7xi1>) -> (tensor<2x7xi1>) {
    %0 = prim.transpose %i [1, 0, 2] : tensor<77x2x7xi1> -> tensor<2x77x7xi1>
    %1 = prim.reduce or %0 [1] : tensor<2x77x7xi1> -> tensor<2x7xi1>
    kernel.yield %1 : tensor<2x7xi1>
  }
  %least = kernel.region(%i = %c : tensor<130x3xui8>) -> (tensor<3xui8>) {
    %0 = prim.reduce min %i [0] : tensor<130x3xui8> -> tensor<3xui8>
    kernel.yield %0 : tensor<3xui8>
  }
  %few = kernel.region(%i = %d : tensor<33x9xf64>) -> (tensor<9xf64>) {
    %0 = prim.reduce prod %i [0] : tensor<33x9xf64> -> tensor<9xf64>
    kernel.yield %0 : tensor<9xf64>
  }
  %unknown = kernel.region(%i = %u : tensor<?x6xf32, #prim.dims<#rows>>) -> (tensor<?x6xf32, #prim.dims<#rows>>) {
    %0 = prim.reduce max %i [1] : tensor<?x6xf32, #prim.dims<#rows>> -> tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>
    %1 = prim.broadcast %0 [0] : tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>> -> tensor<?x6xf32, #prim.dims<#rows>>
    %2 = prim.sub %i, %1 : tensor<?x6xf32, #prim.dims<#rows>>
    kernel.yield %2 : tensor<?x6xf32, #prim.dims<#rows>>
  }
  return %softmax, %halves, %bits, %ints, %across, %sum, %largest, %any, %least, %few, %unknown : tensor<219x5xf32>, tensor<100x3xf16>, tensor<77x2x7xi1>, tensor<50x12xi64>, tensor<33x9xf64>, tensor<5xf32>, tensor<3xf16>, tensor<2x7xi1>, tensor<3xui8>, tensor<9xf64>, tensor<?x6xf32, #prim.dims<#rows>>
}
