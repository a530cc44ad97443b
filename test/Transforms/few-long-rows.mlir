// Few rows, and long ones: on a GPU all of it reduces them, in kernels of their own, and what is computed before a
// second reduction is computed again behind it. On a CPU a kernel does all of it; on a GPU, too, where rows are many.
// RUN: tc-compile %s -o - --target cuda --compile-to=schedule | FileCheck %s --check-prefix=GPU
// RUN: tc-compile %s -o - --compile-to=schedule | FileCheck %s --check-prefix=CPU

// GPU-LABEL: func.func @main
// GPU: kernel.region{{.*}} -> (tensor<2xf32>)
// GPU-SAME: #kernel.gpu.column_reduce<
// GPU-NOT: kernel.yield
// GPU: prim.reduce sum
// GPU: kernel.region{{.*}} -> (tensor<2xf32>)
// GPU-SAME: #kernel.gpu.column_reduce<
// GPU: prim.sub
// GPU: prim.reduce sum
// GPU: kernel.region{{.*}} -> (tensor<2x301056xf32>)
// GPU-SAME: #kernel.gpu.flat<
// GPU-NOT: prim.reduce
// GPU: kernel.region{{.*}} -> (tensor<512x301056xf32>)
// GPU-SAME: #kernel.gpu.rows<
// CPU-LABEL: func.func @main
// CPU: kernel.region{{.*}} -> (tensor<2x301056xf32>)
// CPU: kernel.region{{.*}} -> (tensor<512x301056xf32>)
// CPU-NOT: kernel.region
func.func @main(%x: tensor<2x3136x96xf32>, %y: tensor<512x3136x96xf32>) -> (tensor<2x3136x96xf32>, tensor<512x3136x96xf32>) attributes {prim.symbols = []} {
  %s = prim.reduce sum %x [1, 2] : tensor<2x3136x96xf32> -> tensor<2xf32>
  %b = prim.broadcast %s [0] : tensor<2xf32> -> tensor<2x3136x96xf32>
  %d = prim.sub %x, %b : tensor<2x3136x96xf32>
  %q = prim.mul %d, %d : tensor<2x3136x96xf32>
  %v = prim.reduce sum %q [1, 2] : tensor<2x3136x96xf32> -> tensor<2xf32>
  %w = prim.broadcast %v [0] : tensor<2xf32> -> tensor<2x3136x96xf32>
  %r = prim.div %d, %w : tensor<2x3136x96xf32>
  %t = prim.reduce sum %y [1, 2] : tensor<512x3136x96xf32> -> tensor<512xf32>
  %u = prim.broadcast %t [0] : tensor<512xf32> -> tensor<512x3136x96xf32>
  %e = prim.sub %y, %u : tensor<512x3136x96xf32>
  return %r, %e : tensor<2x3136x96xf32>, tensor<512x3136x96xf32>
}
