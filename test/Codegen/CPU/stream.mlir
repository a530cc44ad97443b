// Results that no cache holds until they are read are stored past the caches, where their buffers begin at a multiple of 64; small ones,
// and rows that are no whole vectors, are not.
// RUN: tc-opt %s --tc-choose-schedule | FileCheck %s
// RUN: tc-opt %s --tc-choose-schedule --tc-lower-kernels=variants=x86-64-v4 | FileCheck %s --check-prefix=LOWER
!big = tensor<4096x2048xf32>

// CHECK-LABEL: func.func @main
// CHECK: #kernel.cpu.loops<{{.*}}stream = true
// CHECK-NOT: stream = 1
// CHECK: #kernel.cpu.transpose<{{.*}}stream = true
// CHECK-NOT: stream = 1
// LOWER: llvm.func @k0_neg
// LOWER: llvm.store {{.*}} {alignment = 64 : i64, nontemporal}
// LOWER: llvm.fence seq_cst
// LOWER: llvm.store {{.*}} {alignment = 4 : i64}
// LOWER-NOT: nontemporal
// LOWER: llvm.func @k3_move
// LOWER: llvm.store {{.*}} {alignment = 64 : i64, nontemporal}
// LOWER: llvm.fence seq_cst
func.func @main(%x: !big, %y: tensor<100x2048xf32>, %z: tensor<9000x1001xf32>) -> (!big, tensor<100x2048xf32>, tensor<9000x1001xf32>, tensor<2048x4096xf32>) {
  %0 = kernel.region(%i = %x : !big) -> (!big) {
    %r = prim.neg %i : !big
    kernel.yield %r : !big
  }
  %1 = kernel.region(%i = %y : tensor<100x2048xf32>) -> (tensor<100x2048xf32>) {
    %r = prim.neg %i : tensor<100x2048xf32>
    kernel.yield %r : tensor<100x2048xf32>
  }
  %2 = kernel.region(%i = %z : tensor<9000x1001xf32>) -> (tensor<9000x1001xf32>) {
    %r = prim.neg %i : tensor<9000x1001xf32>
    kernel.yield %r : tensor<9000x1001xf32>
  }
  %3 = kernel.region(%i = %x : !big) -> (tensor<2048x4096xf32>) {
    %r = prim.transpose %i [1, 0] : !big -> tensor<2048x4096xf32>
    kernel.yield %r : tensor<2048x4096xf32>
  }
  return %0, %1, %2, %3 : !big, tensor<100x2048xf32>, tensor<9000x1001xf32>, tensor<2048x4096xf32>
}

// The pass that keeps a row's exponentials fetches the next row, if it comes from beyond the second-level cache.
// LOWER: llvm.func @k{{[0-9]+}}_reduce_sub_exp
// LOWER: "llvm.intr.prefetch"
// LOWER: llvm.return
// LOWER: llvm.func @k{{[0-9]+}}_reduce_sub_exp
// LOWER-NOT: prefetch
// LOWER: llvm.return
func.func @rows(%x: tensor<2048x1024xf32>, %y: tensor<512x1024xf32>) -> (tensor<2048x1024xf32>, tensor<512x1024xf32>) {
  %0 = kernel.region(%i = %x : tensor<2048x1024xf32>) -> (tensor<2048x1024xf32>) {
    %m = prim.reduce max %i [1] : tensor<2048x1024xf32> -> tensor<2048xf32>
    %mb = prim.broadcast %m [0] : tensor<2048xf32> -> tensor<2048x1024xf32>
    %s = prim.sub %i, %mb : tensor<2048x1024xf32>
    %e = prim.exp %s : tensor<2048x1024xf32>
    %t = prim.reduce sum %e [1] : tensor<2048x1024xf32> -> tensor<2048xf32>
    %tb = prim.broadcast %t [0] : tensor<2048xf32> -> tensor<2048x1024xf32>
    %r = prim.div %e, %tb : tensor<2048x1024xf32>
    kernel.yield %r : tensor<2048x1024xf32>
  }
  %1 = kernel.region(%i = %y : tensor<512x1024xf32>) -> (tensor<512x1024xf32>) {
    %m = prim.reduce max %i [1] : tensor<512x1024xf32> -> tensor<512xf32>
    %mb = prim.broadcast %m [0] : tensor<512xf32> -> tensor<512x1024xf32>
    %s = prim.sub %i, %mb : tensor<512x1024xf32>
    %e = prim.exp %s : tensor<512x1024xf32>
    %t = prim.reduce sum %e [1] : tensor<512x1024xf32> -> tensor<512xf32>
    %tb = prim.broadcast %t [0] : tensor<512xf32> -> tensor<512x1024xf32>
    %r = prim.div %e, %tb : tensor<512x1024xf32>
    kernel.yield %r : tensor<512x1024xf32>
  }
  return %0, %1 : tensor<2048x1024xf32>, tensor<512x1024xf32>
}

// One that keeps nothing fetches what comes 32 KB later for short rows, and the next row of long ones.
// CHECK-LABEL: func.func @norms
// CHECK: #kernel.cpu.loops<{{.*}}fetch = 32{{[,>]}}
// CHECK: #kernel.cpu.loops<
// CHECK: #kernel.cpu.loops<{{.*}}fetch = 1{{[,>]}}
// CHECK: #kernel.cpu.loops<
func.func @norms(%short_in: tensor<65536x256xf32>, %middle_in: tensor<8192x1536xf32>, %long_in: tensor<4096x4096xf32>, %near_in: tensor<512x256xf32>) -> (tensor<65536x256xf32>, tensor<8192x1536xf32>, tensor<4096x4096xf32>, tensor<512x256xf32>) {
  %short = kernel.region(%i = %short_in : tensor<65536x256xf32>) -> (tensor<65536x256xf32>) {
    %sum = prim.reduce sum %i [1] : tensor<65536x256xf32> -> tensor<65536xf32>
    %all = prim.broadcast %sum [0] : tensor<65536xf32> -> tensor<65536x256xf32>
    %r = prim.sub %i, %all : tensor<65536x256xf32>
    kernel.yield %r : tensor<65536x256xf32>
  }
  %middle = kernel.region(%i = %middle_in : tensor<8192x1536xf32>) -> (tensor<8192x1536xf32>) {
    %sum = prim.reduce sum %i [1] : tensor<8192x1536xf32> -> tensor<8192xf32>
    %all = prim.broadcast %sum [0] : tensor<8192xf32> -> tensor<8192x1536xf32>
    %r = prim.sub %i, %all : tensor<8192x1536xf32>
    kernel.yield %r : tensor<8192x1536xf32>
  }
  %long = kernel.region(%i = %long_in : tensor<4096x4096xf32>) -> (tensor<4096x4096xf32>) {
    %sum = prim.reduce sum %i [1] : tensor<4096x4096xf32> -> tensor<4096xf32>
    %all = prim.broadcast %sum [0] : tensor<4096xf32> -> tensor<4096x4096xf32>
    %r = prim.sub %i, %all : tensor<4096x4096xf32>
    kernel.yield %r : tensor<4096x4096xf32>
  }
  %near = kernel.region(%i = %near_in : tensor<512x256xf32>) -> (tensor<512x256xf32>) {
    %sum = prim.reduce sum %i [1] : tensor<512x256xf32> -> tensor<512xf32>
    %all = prim.broadcast %sum [0] : tensor<512xf32> -> tensor<512x256xf32>
    %r = prim.sub %i, %all : tensor<512x256xf32>
    kernel.yield %r : tensor<512x256xf32>
  }
  return %short, %middle, %long, %near : tensor<65536x256xf32>, tensor<8192x1536xf32>, tensor<4096x4096xf32>, tensor<512x256xf32>
}
