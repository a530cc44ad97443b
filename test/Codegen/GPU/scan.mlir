// Threads that share a line of a scan.
// RUN: tc-opt %s --tc-choose-schedule=device=cuda -split-input-file | FileCheck %s --check-prefix=SCHEDULE
// RUN: tc-opt %s --tc-choose-schedule=device=cuda --tc-lower-kernels=variants=sm_90a -split-input-file | FileCheck %s

// A block a line, tile by tile: four neighbours a thread, shuffles within warps, and shared memory across them.
// SCHEDULE-LABEL: func.func @rows
// SCHEDULE: #kernel.gpu.scan<block = 256, down = 256, inTurn = true>
// CHECK-LABEL: func.func @rows
// CHECK: llvm.func @
// CHECK: llvm.load {{.*}} vector<4xf32>
// CHECK: nvvm.shfl.sync up
// CHECK: nvvm.barrier
// CHECK: llvm.store {{.*}} vector<4xf32>
func.func @rows(%x: tensor<40x4000xf32>) -> tensor<40x4000xf32> {
  %r = kernel.region(%a = %x : tensor<40x4000xf32>) -> (tensor<40x4000xf32>) {
    %s = prim.scan sum %a axis = 1 : tensor<40x4000xf32> -> tensor<40x4000xf32>
    kernel.yield %s : tensor<40x4000xf32>
  }
  return %r : tensor<40x4000xf32>
}

// -----

// From the end, and short of a warp's elements: one a thread.
// SCHEDULE-LABEL: func.func @reverse
// SCHEDULE: #kernel.gpu.scan<block = 64, down = 64, inTurn = true>
// CHECK-LABEL: func.func @reverse
// CHECK: nvvm.shfl.sync up
// CHECK-NOT: vector<4xi64>
func.func @reverse(%x: tensor<40x64xi64>) -> tensor<40x64xi64> {
  %r = kernel.region(%a = %x : tensor<40x64xi64>) -> (tensor<40x64xi64>) {
    %s = prim.scan max %a axis = 1 exclusive reverse : tensor<40x64xi64> -> tensor<40x64xi64>
    kernel.yield %s : tensor<40x64xi64>
  }
  return %r : tensor<40x64xi64>
}

// -----

// Lines across memory: pieces of each, whose totals the threads exchange.
// SCHEDULE-LABEL: func.func @columns
// SCHEDULE: #kernel.gpu.scan<block = 512, down = 16>
// CHECK-LABEL: func.func @columns
// CHECK-NOT: nvvm.shfl
// CHECK: nvvm.barrier
func.func @columns(%x: tensor<1000x96xf32>) -> tensor<1000x96xf32> {
  %r = kernel.region(%a = %x : tensor<1000x96xf32>) -> (tensor<1000x96xf32>) {
    %s = prim.scan sum %a axis = 0 : tensor<1000x96xf32> -> tensor<1000x96xf32>
    kernel.yield %s : tensor<1000x96xf32>
  }
  return %r : tensor<1000x96xf32>
}
