// Reductions of many elements to few: parts by one wave of blocks, which a second launch combines.
// RUN: tc-opt %s --tc-choose-schedule=device=cuda | FileCheck %s --check-prefix=SCHEDULE
// RUN: tc-opt %s --tc-choose-schedule=device=cuda --tc-lower-kernels=variants=sm_90 | FileCheck %s
// RUN: echo 'module attributes {x = #kernel.gpu.column_reduce<across = 24>} {}' | not tc-opt 2>&1 | FileCheck %s --check-prefix=POWER
// RUN: echo 'module attributes {x = #kernel.gpu.column_reduce<block = 64, across = 128>} {}' | not tc-opt 2>&1 | FileCheck %s --check-prefix=ACROSS
// POWER: error: across is a power of 2 that is at least 0, not 24
// ACROSS: error: across is at most block, 64, not 128

// 32 blocks of columns, 16 parts: one wave.
// SCHEDULE-LABEL: func.func @columns
// SCHEDULE: #kernel.gpu.column_reduce<across = 32, parts = 16, unroll = 8>
// CHECK-LABEL: func.func @columns
// CHECK: %[[PARTS:.*]] = host.launch @[[COLUMNS:k[0-9]+[a-z_]*]]_parts(%{{.*}}) {{.*}} tensor<16x4096xf32>
// CHECK: host.launch @[[COLUMNS]](%{{.*}}, %[[PARTS]])
func.func @columns(%x: tensor<16384x4096xf32>) -> tensor<4096xf32> {
  %r = kernel.region(%a = %x : tensor<16384x4096xf32>) -> (tensor<4096xf32>) {
    %s = prim.reduce sum %a [0] : tensor<16384x4096xf32> -> tensor<4096xf32>
    %n = prim.neg %s : tensor<4096xf32>
    kernel.yield %n : tensor<4096xf32>
  }
  return %r : tensor<4096xf32>
}

// SCHEDULE-LABEL: func.func @everything
// SCHEDULE: #kernel.gpu.column_reduce<parts = 528, unroll = 8>
// CHECK-LABEL: func.func @everything
// CHECK: host.launch @[[ALL:k[0-9]+[a-z_]*]]_parts
func.func @everything(%x: tensor<16384x4096xf32>) -> tensor<f32> {
  %r = kernel.region(%a = %x : tensor<16384x4096xf32>) -> (tensor<f32>) {
    %s = prim.reduce sum %a [0, 1] : tensor<16384x4096xf32> -> tensor<f32>
    kernel.yield %s : tensor<f32>
  }
  return %r : tensor<f32>
}

// Few rows: one launch.
// SCHEDULE-LABEL: func.func @few
// SCHEDULE: #kernel.gpu.column_reduce<across = 32, unroll = 8>
func.func @few(%x: tensor<64x3x130xf32>) -> tensor<64x130xf32> {
  %r = kernel.region(%a = %x : tensor<64x3x130xf32>) -> (tensor<64x130xf32>) {
    %s = prim.reduce max %a [1] : tensor<64x3x130xf32> -> tensor<64x130xf32>
    kernel.yield %s : tensor<64x130xf32>
  }
  return %r : tensor<64x130xf32>
}

// A result of two of three dims, of sizes that only the run knows.
!dynamic = tensor<?x96x3136xf32, #prim.dims<affine_map<()[s0] -> (s0, 96, 3136)>>>
// SCHEDULE-LABEL: func.func @channels
// SCHEDULE: #kernel.gpu.column_reduce<
func.func @channels(%x: !dynamic) -> tensor<96xf32> {
  %r = kernel.region(%a = %x : !dynamic) -> (tensor<96xf32>) {
    %s = prim.reduce sum %a [0, 2] : !dynamic -> tensor<96xf32>
    kernel.yield %s : tensor<96xf32>
  }
  return %r : tensor<96xf32>
}

// Results enough for a block each, of few elements: a warp takes one.
// SCHEDULE-LABEL: func.func @many
// SCHEDULE: #kernel.gpu.column_reduce<block = 32>
func.func @many(%x: tensor<8x512x4xf32>) -> tensor<512xf32> {
  %r = kernel.region(%a = %x : tensor<8x512x4xf32>) -> (tensor<512xf32>) {
    %s = prim.reduce sum %a [0, 2] : tensor<8x512x4xf32> -> tensor<512xf32>
    kernel.yield %s : tensor<512xf32>
  }
  return %r : tensor<512xf32>
}

// Rows enough for a block each.
// SCHEDULE-LABEL: func.func @rows
// SCHEDULE: #kernel.gpu.rows<
func.func @rows(%x: tensor<4096x512xf32>) -> tensor<4096xf32> {
  %r = kernel.region(%a = %x : tensor<4096x512xf32>) -> (tensor<4096xf32>) {
    %s = prim.reduce sum %a [1] : tensor<4096x512xf32> -> tensor<4096xf32>
    kernel.yield %s : tensor<4096xf32>
  }
  return %r : tensor<4096xf32>
}

// CHECK: llvm.func @[[COLUMNS]]_parts
// CHECK: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr -> vector<4xf32>
// CHECK: nvvm.barrier
// CHECK: llvm.func @[[ALL]]_parts
// CHECK: nvvm.shfl.sync bfly

// What the rows of a column share is read before their loop: threads beyond the last column read the first one's.
// CHECK: llvm.func @{{k[0-9]+}}_div_reduce
// CHECK: %[[INSIDE:.*]] = llvm.icmp "slt" %[[OWN:.*]], %{{.*}} : i64
// CHECK: %[[COLUMN:.*]] = llvm.select %[[INSIDE]], %[[OWN]], %{{.*}} : i1, i64
// CHECK: %[[SCALE:.*]] = llvm.getelementptr %{{.*}}[%[[COLUMN]]]
// CHECK: llvm.load %[[SCALE]]
// CHECK: llvm.cond_br
func.func @scaled(%x: tensor<64x4x131xf32>, %y: tensor<131xf32>) -> tensor<64x131xf32> {
  %r = kernel.region(%a = %x : tensor<64x4x131xf32>, %b = %y : tensor<131xf32>) -> (tensor<64x131xf32>) {
    %c = prim.broadcast %b [2] : tensor<131xf32> -> tensor<64x4x131xf32>
    %d = prim.div %a, %c : tensor<64x4x131xf32>
    %s = prim.reduce sum %d [1] : tensor<64x4x131xf32> -> tensor<64x131xf32>
    kernel.yield %s : tensor<64x131xf32>
  }
  return %r : tensor<64x131xf32>
}
