// Scans and scatters: a thread for each line or element.
// RUN: tc-opt %s --tc-choose-schedule=device=cuda -split-input-file | FileCheck %s --check-prefix=SCHEDULE
// RUN: tc-opt %s --tc-choose-schedule=device=cuda --tc-lower-kernels=variants=sm_90a -split-input-file | FileCheck %s

// SCHEDULE-LABEL: func.func @scan
// SCHEDULE: #kernel.gpu.scan<>
// CHECK-LABEL: func.func @scan
// CHECK: strategy = "gpu.scan"
func.func @scan(%x: tensor<4x50x16xf32>) -> tensor<4x50x16xf32> {
  %r = kernel.region(%a = %x : tensor<4x50x16xf32>) -> (tensor<4x50x16xf32>) {
    %s = prim.scan sum %a axis = 1 : tensor<4x50x16xf32> -> tensor<4x50x16xf32>
    kernel.yield %s : tensor<4x50x16xf32>
  }
  return %r : tensor<4x50x16xf32>
}

// -----

// Few columns: the rows are dealt to threads, of which each takes what is its own.
// SCHEDULE-LABEL: func.func @scatter_nd
// SCHEDULE: #kernel.gpu.scatter<groups = 8192>
// CHECK-LABEL: func.func @scatter_nd
// CHECK: llvm.func @
// CHECK: %[[MASK:.*]] = llvm.mlir.constant(8191 : i64)
// CHECK: llvm.and %{{.*}}, %[[MASK]]
func.func @scatter_nd(%x: tensor<2000x3x4xf32>, %i: tensor<5x2xi64>, %u: tensor<5x4xf32>) -> tensor<2000x3x4xf32> {
  %r = kernel.region(%a = %x : tensor<2000x3x4xf32>, %b = %i : tensor<5x2xi64>, %c = %u : tensor<5x4xf32>) -> (tensor<2000x3x4xf32>) {
    %d = prim.scatter_nd %a[%b], %c kind sum : (tensor<2000x3x4xf32>, tensor<5x2xi64>, tensor<5x4xf32>) -> tensor<2000x3x4xf32>
    kernel.yield %d : tensor<2000x3x4xf32>
  }
  return %r : tensor<2000x3x4xf32>
}

// -----

// Many updates: a block's threads look at as many at once, and take those of the block's range in their order.
// SCHEDULE-LABEL: func.func @many_updates
// SCHEDULE: #kernel.gpu.scatter<block = 256, ranges = 528>
// CHECK-LABEL: func.func @many_updates
// CHECK: llvm.func @
// CHECK: nvvm.vote.sync ballot
// CHECK: nvvm.barrier
// CHECK: llvm.intr.cttz
func.func @many_updates(%x: tensor<2000x3x4xf32>, %i: tensor<500x1xi64>, %u: tensor<500x3x4xf32>) -> tensor<2000x3x4xf32> {
  %r = kernel.region(%a = %x : tensor<2000x3x4xf32>, %b = %i : tensor<500x1xi64>, %c = %u : tensor<500x3x4xf32>) -> (tensor<2000x3x4xf32>) {
    %d = prim.scatter_nd %a[%b], %c kind sum : (tensor<2000x3x4xf32>, tensor<500x1xi64>, tensor<500x3x4xf32>) -> tensor<2000x3x4xf32>
    kernel.yield %d : tensor<2000x3x4xf32>
  }
  return %r : tensor<2000x3x4xf32>
}

// -----

// The last of many updates wins: the greatest number of those that name a slice, then an element a thread.
// SCHEDULE-LABEL: func.func @winners
// SCHEDULE: #kernel.gpu.scatter<winners = true>
// CHECK-LABEL: func.func @winners
// CHECK: %[[NONE:.*]] = host.launch @{{.*}}_none(
// CHECK: host.launch @{{.*}}_winners({{.*}}, %[[NONE]]){{.*}} tied [3, 0] {{.*}} -> tensor<2000xi32>
// CHECK: llvm.func @{{.*}}_winners(
// CHECK: llvm.atomicrmw max {{.*}} i32
func.func @winners(%x: tensor<2000x3x4xf32>, %i: tensor<5000x1xi64>, %u: tensor<5000x3x4xf32>) -> tensor<2000x3x4xf32> {
  %r = kernel.region(%a = %x : tensor<2000x3x4xf32>, %b = %i : tensor<5000x1xi64>, %c = %u : tensor<5000x3x4xf32>) -> (tensor<2000x3x4xf32>) {
    %d = prim.scatter_nd %a[%b], %c : (tensor<2000x3x4xf32>, tensor<5000x1xi64>, tensor<5000x3x4xf32>) -> tensor<2000x3x4xf32>
    kernel.yield %d : tensor<2000x3x4xf32>
  }
  return %r : tensor<2000x3x4xf32>
}

// -----

// Of elements along an axis, each has its own.
// SCHEDULE-LABEL: func.func @winners_of_lines
// SCHEDULE: #kernel.gpu.scatter<winners = true>
// CHECK-LABEL: func.func @winners_of_lines
// CHECK: host.launch @{{.*}}_winners({{.*}} -> tensor<128000xi32>
func.func @winners_of_lines(%x: tensor<2000x64xf32>, %i: tensor<100x64xi64>, %u: tensor<100x64xf32>) -> tensor<2000x64xf32> {
  %r = kernel.region(%a = %x : tensor<2000x64xf32>, %b = %i : tensor<100x64xi64>, %c = %u : tensor<100x64xf32>) -> (tensor<2000x64xf32>) {
    %d = prim.scatter_elements %a[%b], %c axis = 0 : (tensor<2000x64xf32>, tensor<100x64xi64>, tensor<100x64xf32>) -> tensor<2000x64xf32>
    kernel.yield %d : tensor<2000x64xf32>
  }
  return %r : tensor<2000x64xf32>
}

// -----

// Updates with an order: threads find where those of their slices begin, and combine them in registers.
// SCHEDULE-LABEL: func.func @ordered
// SCHEDULE: #kernel.gpu.scatter<block = 256, slices = 4, across = 16, along = 4>
// CHECK-LABEL: func.func @ordered
// CHECK: llvm.func @
// CHECK: nvvm.barrier
// CHECK-NOT: nvvm.vote.sync
func.func @ordered(%x: tensor<500x3x4xf32>, %i: tensor<8000x1xi32>, %u: tensor<8000x3x4xf32>, %o: tensor<8000xi64>) -> tensor<500x3x4xf32> {
  %r = kernel.region(%a = %x : tensor<500x3x4xf32>, %b = %i : tensor<8000x1xi32>, %c = %u : tensor<8000x3x4xf32>, %p = %o : tensor<8000xi64>) -> (tensor<500x3x4xf32>) {
    %d = prim.scatter_nd %a[%b], %c order %p kind sum : (tensor<500x3x4xf32>, tensor<8000x1xi32>, tensor<8000x3x4xf32>, tensor<8000xi64>) -> tensor<500x3x4xf32>
    kernel.yield %d : tensor<500x3x4xf32>
  }
  return %r : tensor<500x3x4xf32>
}
