// A block per row, or per several short ones. Rows of a known length are read once, and stay in registers.
// RUN: tc-opt %s --tc-choose-schedule=device=cuda -split-input-file | FileCheck %s --check-prefix=SCHEDULE
// RUN: tc-opt %s --tc-choose-schedule=device=cuda --tc-lower-kernels=variants=sm_90a -split-input-file | FileCheck %s

// Four vectors a thread, which the maximum, the sum and the result take.
// SCHEDULE-LABEL: func.func @softmax
// SCHEDULE: #kernel.gpu.rows<block = 128, inRegisters = true>
// CHECK-LABEL: func.func @softmax
// CHECK: llvm.func @
// CHECK-COUNT-4: llvm.load {{.*}} vector<4xf32>
// CHECK-NOT: llvm.load {{.*}} vector<4xf32>
// CHECK: llvm.return
func.func @softmax(%x: tensor<64x2048xf32>) -> tensor<64x2048xf32> {
  %r = kernel.region(%a = %x : tensor<64x2048xf32>) -> (tensor<64x2048xf32>) {
    %m = prim.reduce max %a [1] : tensor<64x2048xf32> -> tensor<64xf32>
    %mb = prim.broadcast %m [0] : tensor<64xf32> -> tensor<64x2048xf32>
    %d = prim.sub %a, %mb : tensor<64x2048xf32>
    %p = prim.exp %d : tensor<64x2048xf32>
    %s = prim.reduce sum %p [1] : tensor<64x2048xf32> -> tensor<64xf32>
    %sb = prim.broadcast %s [0] : tensor<64xf32> -> tensor<64x2048xf32>
    %q = prim.div %p, %sb : tensor<64x2048xf32>
    kernel.yield %q : tensor<64x2048xf32>
  }
  return %r : tensor<64x2048xf32>
}

// -----

// Rows that do not begin at multiples of a vector: element by element, the last turn by some threads only.
// SCHEDULE-LABEL: func.func @odd
// SCHEDULE: #kernel.gpu.rows<inRegisters = true>
// CHECK-LABEL: func.func @odd
// CHECK: llvm.func @
// CHECK-COUNT-7: llvm.load {{.*}} -> f32
// CHECK: llvm.cond_br
func.func @odd(%x: tensor<64x201xf32>) -> tensor<64x201xf32> {
  %r = kernel.region(%a = %x : tensor<64x201xf32>) -> (tensor<64x201xf32>) {
    %s = prim.reduce sum %a [1] : tensor<64x201xf32> -> tensor<64xf32>
    %sb = prim.broadcast %s [0] : tensor<64xf32> -> tensor<64x201xf32>
    %q = prim.div %a, %sb : tensor<64x201xf32>
    kernel.yield %q : tensor<64x201xf32>
  }
  return %r : tensor<64x201xf32>
}

// -----

// More than the threads of a block can hold: loops.
// SCHEDULE-LABEL: func.func @long
// SCHEDULE: #kernel.gpu.rows<block = 1024>
// CHECK-LABEL: func.func @long
// CHECK: llvm.func @
// CHECK: llvm.cond_br
func.func @long(%x: tensor<4x40000xf32>) -> tensor<4x40000xf32> {
  %r = kernel.region(%a = %x : tensor<4x40000xf32>) -> (tensor<4x40000xf32>) {
    %s = prim.reduce sum %a [1] : tensor<4x40000xf32> -> tensor<4xf32>
    %sb = prim.broadcast %s [0] : tensor<4xf32> -> tensor<4x40000xf32>
    %q = prim.div %a, %sb : tensor<4x40000xf32>
    kernel.yield %q : tensor<4x40000xf32>
  }
  return %r : tensor<4x40000xf32>
}

// -----

// A sum and its norm, both of them results: a block per row, which reads it once and writes both.
// SCHEDULE-LABEL: func.func @two_results
// SCHEDULE: #kernel.gpu.rows<block = 64, inRegisters = true>
// CHECK-LABEL: func.func @two_results
// CHECK: llvm.func @
// CHECK-COUNT-8: llvm.load {{.*}} vector<4xf32>
// CHECK-NOT: llvm.load {{.*}} vector<4xf32>
// CHECK-COUNT-8: llvm.store {{.*}} vector<4xf32>
// CHECK: llvm.return
func.func @two_results(%x: tensor<64x1024xf32>, %y: tensor<64x1024xf32>) -> (tensor<64x1024xf32>, tensor<64x1024xf32>) {
  %r:2 = kernel.region(%a = %x : tensor<64x1024xf32>, %b = %y : tensor<64x1024xf32>) -> (tensor<64x1024xf32>, tensor<64x1024xf32>) {
    %p = prim.add %a, %b : tensor<64x1024xf32>
    %s = prim.reduce sum %p [1] : tensor<64x1024xf32> -> tensor<64xf32>
    %sb = prim.broadcast %s [0] : tensor<64xf32> -> tensor<64x1024xf32>
    %q = prim.sub %p, %sb : tensor<64x1024xf32>
    kernel.yield %p, %q : tensor<64x1024xf32>, tensor<64x1024xf32>
  }
  return %r#0, %r#1 : tensor<64x1024xf32>, tensor<64x1024xf32>
}

// -----

// Rows of two dims, as a norm of one group has: the block's threads take vectors of both, hold them, and keep all that
// they have read in registers.
// SCHEDULE-LABEL: func.func @group
// SCHEDULE: #kernel.gpu.rows<block = 1024, inRegisters = true>
// CHECK-LABEL: func.func @group
// CHECK: llvm.func @
// CHECK-COUNT-2: llvm.load {{.*}} vector<4xf32>
// CHECK: nvvm.shfl.sync
// CHECK-COUNT-2: llvm.store {{.*}} vector<4xf32>
// CHECK: llvm.return
func.func @group(%x: tensor<2x64x128xf32>, %w: tensor<128xf32>) -> tensor<2x64x128xf32> {
  %r = kernel.region(%a = %x : tensor<2x64x128xf32>, %b = %w : tensor<128xf32>) -> (tensor<2x64x128xf32>) {
    %s = prim.reduce sum %a [1, 2] : tensor<2x64x128xf32> -> tensor<2xf32>
    %sb = prim.broadcast %s [0] : tensor<2xf32> -> tensor<2x64x128xf32>
    %q = prim.div %a, %sb : tensor<2x64x128xf32>
    %wb = prim.broadcast %b [2] : tensor<128xf32> -> tensor<2x64x128xf32>
    %m = prim.mul %q, %wb : tensor<2x64x128xf32>
    kernel.yield %m : tensor<2x64x128xf32>
  }
  return %r : tensor<2x64x128xf32>
}

// -----

// Too long for registers, and of dims that no vector fits: elements one by one, of both dims.
// SCHEDULE-LABEL: func.func @group_of_odd_sizes
// SCHEDULE: #kernel.gpu.rows<block = 1024>
// CHECK-LABEL: func.func @group_of_odd_sizes
// CHECK: llvm.func @
// CHECK-NOT: vector<4xf32>
// CHECK: llvm.return
func.func @group_of_odd_sizes(%x: tensor<2x201x301xf32>, %w: tensor<301xf32>) -> tensor<2x201x301xf32> {
  %r = kernel.region(%a = %x : tensor<2x201x301xf32>, %b = %w : tensor<301xf32>) -> (tensor<2x201x301xf32>) {
    %s = prim.reduce sum %a [1, 2] : tensor<2x201x301xf32> -> tensor<2xf32>
    %sb = prim.broadcast %s [0] : tensor<2xf32> -> tensor<2x201x301xf32>
    %q = prim.div %a, %sb : tensor<2x201x301xf32>
    %wb = prim.broadcast %b [2] : tensor<301xf32> -> tensor<2x201x301xf32>
    %m = prim.mul %q, %wb : tensor<2x201x301xf32>
    kernel.yield %m : tensor<2x201x301xf32>
  }
  return %r : tensor<2x201x301xf32>
}

// -----

// Elements, and one result a row with dims of size 1: both by the row's block, the row's by one thread.
// SCHEDULE-LABEL: func.func @elements_and_sums
// SCHEDULE: #kernel.gpu.rows<inRegisters = true, rows = 4>
func.func @elements_and_sums(%x: tensor<512x4x16xf32>) -> (tensor<512x4x16xf32>, tensor<512x1x1xf32>) {
  %r:2 = kernel.region(%a = %x : tensor<512x4x16xf32>) -> (tensor<512x4x16xf32>, tensor<512x1x1xf32>) {
    %n = prim.neg %a : tensor<512x4x16xf32>
    %s = prim.reduce sum %n [1, 2] : tensor<512x4x16xf32> -> tensor<512xf32>
    %t = prim.reshape %s : tensor<512xf32> -> tensor<512x1x1xf32>
    kernel.yield %n, %t : tensor<512x4x16xf32>, tensor<512x1x1xf32>
  }
  return %r#0, %r#1 : tensor<512x4x16xf32>, tensor<512x1x1xf32>
}

// -----

// The position of the best element: a block shares the row out, and compares what its threads found.
// SCHEDULE-LABEL: func.func @best
// SCHEDULE: #kernel.gpu.rows<block = 128, inRegisters = true>
// CHECK-LABEL: func.func @best
// CHECK: llvm.func @
// CHECK-COUNT-4: llvm.load {{.*}} vector<4xf32>
// CHECK: nvvm.shfl.sync
// CHECK: llvm.store {{.*}} i64
func.func @best(%x: tensor<64x2048xf32>) -> tensor<64xi64> {
  %r = kernel.region(%a = %x : tensor<64x2048xf32>) -> (tensor<64xi64>) {
    %m = prim.arg_reduce max %a axis = 1 : tensor<64x2048xf32> -> tensor<64xi64>
    kernel.yield %m : tensor<64xi64>
  }
  return %r : tensor<64xi64>
}

// -----

// Short rows: 16 of 8 threads a block, which combine what they have within a warp. Threads behind the last row compute it
// as well, as they meet the others, and store nothing.
// SCHEDULE-LABEL: func.func @short
// SCHEDULE: #kernel.gpu.rows<block = 128, inRegisters = true, rows = 16>
// CHECK-LABEL: func.func @short
// CHECK: llvm.func @
// CHECK: llvm.intr.smin
// CHECK-COUNT-3: nvvm.shfl.sync
// CHECK-NOT: nvvm.shfl.sync
// CHECK-NOT: nvvm.barrier
// CHECK: llvm.cond_br
// CHECK-COUNT-2: llvm.store {{.*}} vector<4xf32>
// CHECK: llvm.return
func.func @short(%x: tensor<9993x64xf32>) -> tensor<9993x64xf32> {
  %r = kernel.region(%a = %x : tensor<9993x64xf32>) -> (tensor<9993x64xf32>) {
    %s = prim.reduce sum %a [1] : tensor<9993x64xf32> -> tensor<9993xf32>
    %sb = prim.broadcast %s [0] : tensor<9993xf32> -> tensor<9993x64xf32>
    %q = prim.div %a, %sb : tensor<9993x64xf32>
    kernel.yield %q : tensor<9993x64xf32>
  }
  return %r : tensor<9993x64xf32>
}
