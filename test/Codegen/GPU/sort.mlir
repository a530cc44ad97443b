// Sorts: which network and how many launches a line takes, and what the code is.
// RUN: tc-opt %s --tc-choose-schedule=device=cuda -split-input-file | FileCheck %s --check-prefix=SCHEDULE
// RUN: tc-opt %s --tc-choose-schedule=device=cuda --tc-lower-kernels=variants=sm_90a -split-input-file | FileCheck %s

// Short lines: several a block, and words move between lanes alone.
// SCHEDULE-LABEL: func.func @short
// SCHEDULE: #kernel.gpu.sort<items = 8, across = 16>
// CHECK-LABEL: func.func @short
// CHECK: host.launch
// CHECK-NOT: host.launch
// CHECK: llvm.func @
// CHECK: nvvm.shfl.sync
// CHECK-NOT: nvvm.barrier
func.func @short(%x: tensor<800x100x1xf32>) -> tensor<800x100xi64> {
  %r = kernel.region(%a = %x : tensor<800x100x1xf32>) -> (tensor<800x100xi64>) {
    %s = prim.arg_sort %a : tensor<800x100x1xf32> -> tensor<800x100xi64>
    kernel.yield %s : tensor<800x100xi64>
  }
  return %r : tensor<800x100xi64>
}

// -----

// A line a thread.
// SCHEDULE-LABEL: func.func @tiny
// SCHEDULE: #kernel.gpu.sort<items = 8, across = 1>
// CHECK-LABEL: func.func @tiny
// CHECK-NOT: nvvm.shfl.sync
func.func @tiny(%x: tensor<100000x8x1xf32>) -> tensor<100000x8xi64> {
  %r = kernel.region(%a = %x : tensor<100000x8x1xf32>) -> (tensor<100000x8xi64>) {
    %s = prim.arg_sort %a : tensor<100000x8x1xf32> -> tensor<100000x8xi64>
    kernel.yield %s : tensor<100000x8xi64>
  }
  return %r : tensor<100000x8xi64>
}

// -----

// A line a block: also through shared memory. Bytes and their numbers are words of 32 bits, f64 such of 128.
// SCHEDULE-LABEL: func.func @line
// SCHEDULE: #kernel.gpu.sort<block = 256, items = 8, across = 256>
// CHECK-LABEL: func.func @line
// CHECK: llvm.mlir.global internal @{{.*}}_words() {{.*}} : !llvm.array<2304 x i64>
func.func @line(%x: tensor<64x2048x1xf32>) -> tensor<64x2048xi64> {
  %r = kernel.region(%a = %x : tensor<64x2048x1xf32>) -> (tensor<64x2048xi64>) {
    %s = prim.arg_sort %a : tensor<64x2048x1xf32> -> tensor<64x2048xi64>
    kernel.yield %s : tensor<64x2048xi64>
  }
  return %r : tensor<64x2048xi64>
}

// -----

// SCHEDULE-LABEL: func.func @bytes
// SCHEDULE: #kernel.gpu.sort<block = 512, items = 16, across = 512>
// CHECK-LABEL: func.func @bytes
// CHECK: llvm.mlir.global internal @{{.*}}_words() {{.*}} : !llvm.array<8704 x i32>
func.func @bytes(%x: tensor<64x8000x1xui8>) -> tensor<64x8000xi64> {
  %r = kernel.region(%a = %x : tensor<64x8000x1xui8>) -> (tensor<64x8000xi64>) {
    %s = prim.arg_sort %a descending : tensor<64x8000x1xui8> -> tensor<64x8000xi64>
    kernel.yield %s : tensor<64x8000xi64>
  }
  return %r : tensor<64x8000xi64>
}

// -----

// Longer lines: parts, and launches that merge two each.
// SCHEDULE-LABEL: func.func @merged
// SCHEDULE: #kernel.gpu.sort<block = 256, items = 8, across = 256, merges = 2>
// CHECK-LABEL: func.func @merged
// CHECK: host.launch{{.*}}_parts
// CHECK: host.launch{{.*}}_merge0
// CHECK: host.launch
// CHECK: !llvm.array<2304 x i128>
func.func @merged(%x: tensor<4x8192x1xf64>) -> tensor<4x8192xi64> {
  %r = kernel.region(%a = %x : tensor<4x8192x1xf64>) -> (tensor<4x8192xi64>) {
    %s = prim.arg_sort %a : tensor<4x8192x1xf64> -> tensor<4x8192xi64>
    kernel.yield %s : tensor<4x8192xi64>
  }
  return %r : tensor<4x8192xi64>
}

// -----

// Few of many: a limit, and a network for what does not exceed it.
// SCHEDULE-LABEL: func.func @limit
// SCHEDULE: #kernel.gpu.sort<block = 256, items = 8, across = 256, limit = true>
// CHECK-LABEL: func.func @limit
// CHECK: llvm.atomicrmw add
func.func @limit(%x: tensor<1024x32000x1xf32>) -> tensor<1024x50xi64> {
  %r = kernel.region(%a = %x : tensor<1024x32000x1xf32>) -> (tensor<1024x50xi64>) {
    %s = prim.arg_sort %a descending : tensor<1024x32000x1xf32> -> tensor<1024x50xi64>
    kernel.yield %s : tensor<1024x50xi64>
  }
  return %r : tensor<1024x50xi64>
}

// -----

// Few lines: parts of each occupy the GPU.
// SCHEDULE-LABEL: func.func @limit_of_parts
// SCHEDULE: #kernel.gpu.sort<{{.*}}limit = true, parts = 32>
// CHECK-LABEL: func.func @limit_of_parts
// CHECK: host.launch{{.*}}_parts
func.func @limit_of_parts(%x: tensor<1x1000000x1xf32>) -> tensor<1x50xi64> {
  %r = kernel.region(%a = %x : tensor<1x1000000x1xf32>) -> (tensor<1x50xi64>) {
    %s = prim.arg_sort %a descending : tensor<1x1000000x1xf32> -> tensor<1x50xi64>
    kernel.yield %s : tensor<1x50xi64>
  }
  return %r : tensor<1x50xi64>
}

// -----

// Rows of several keys are counted.
// SCHEDULE-LABEL: func.func @keys
// SCHEDULE: #kernel.gpu.sort<>
func.func @keys(%x: tensor<8x100x2xf32>) -> tensor<8x100xi64> {
  %r = kernel.region(%a = %x : tensor<8x100x2xf32>) -> (tensor<8x100xi64>) {
    %s = prim.arg_sort %a : tensor<8x100x2xf32> -> tensor<8x100xi64>
    kernel.yield %s : tensor<8x100xi64>
  }
  return %r : tensor<8x100xi64>
}

// -----

// Lines of any length are sorted by digits: words of 128 bits hold any number.
// SCHEDULE-LABEL: func.func @any
// SCHEDULE: #kernel.gpu.sort<block = 256, items = 8, across = 256, digits = 4>
// CHECK-LABEL: func.func @any
// CHECK: host.launch{{.*}}_counts0
// CHECK: host.launch{{.*}}_words2{{.*}} -> tensor<3x?xi64, #prim.dims<#{{.*}}>>
// CHECK: llvm.load {{.*}} -> i128
!x = tensor<3x?x1xi32, #prim.dims<affine_map<()[s0] -> (3, s0, 1)>>>
!r = tensor<3x?xi64, #prim.dims<affine_map<()[s0] -> (3, s0)>>>
func.func @any(%x: !x) -> !r {
  %r = kernel.region(%a = %x : !x) -> (!r) {
    %s = prim.arg_sort %a : !x -> !r
    kernel.yield %s : !r
  }
  return %r : !r
}

// -----

// As many merges as the longest line wants.
// SCHEDULE-LABEL: func.func @bounded
// SCHEDULE: #kernel.gpu.sort<block = 256, items = 16, across = 256, merges = 3>
// CHECK-LABEL: func.func @bounded
!x = tensor<3x?x1xi32, #prim.dims<affine_map<()[s0] -> (3, s0, 1)>>>
!r = tensor<3x?xi64, #prim.dims<affine_map<()[s0] -> (3, s0)>>>
func.func @bounded(%x: !x) -> !r attributes {prim.symbols = [#prim.symbol<"n", 0, 20000, 1>]} {
  %r = kernel.region(%a = %x : !x) -> (!r) {
    %s = prim.arg_sort %a : !x -> !r
    kernel.yield %s : !r
  }
  return %r : !r
}

// -----

// Long lines: fewer digits than merges. Lanes of equal digits find each other.
// SCHEDULE-LABEL: func.func @digits
// SCHEDULE: #kernel.gpu.sort<block = 256, items = 8, across = 256, digits = 4>
// CHECK-LABEL: func.func @digits
// CHECK: host.launch{{.*}}_counts0({{.*}} -> tensor<1x256x196xi32>
// CHECK: host.launch{{.*}}_offsets0({{.*}} -> tensor<1x256x197xi32>
// CHECK: host.launch{{.*}}_words0({{.*}} -> tensor<1x400000xi64>
// CHECK: host.launch{{.*}}_offsets3(
// CHECK: host.launch @k0_arg_sort(
// CHECK: llvm.func @k0_arg_sort(
// CHECK: nvvm.match.sync any
// CHECK: llvm.atomicrmw add
// CHECK: nvvm.shfl.sync idx
func.func @digits(%x: tensor<1x400000x1xf32>) -> tensor<1x400000xi64> {
  %r = kernel.region(%a = %x : tensor<1x400000x1xf32>) -> (tensor<1x400000xi64>) {
    %s = prim.arg_sort %a : tensor<1x400000x1xf32> -> tensor<1x400000xi64>
    kernel.yield %s : tensor<1x400000xi64>
  }
  return %r : tensor<1x400000xi64>
}

// -----

// Of keys that are known to be small, fewer digits, and words of 32 bits.
// SCHEDULE-LABEL: func.func @key_bits
// SCHEDULE: #kernel.gpu.sort<block = 256, items = 8, across = 256, digits = 2>
// CHECK-LABEL: func.func @key_bits
// CHECK: host.launch{{.*}}_words0({{.*}} -> tensor<1x20000xi32>
// CHECK-NOT: _counts2
// CHECK: llvm.func @k0_arg_sort(
func.func @key_bits(%x: tensor<20000x1xi32>) -> tensor<20000xi64> {
  %r = kernel.region(%a = %x : tensor<20000x1xi32>) -> (tensor<20000xi64>) {
    %s = prim.arg_sort %a key_bits 15 : tensor<20000x1xi32> -> tensor<20000xi64>
    kernel.yield %s : tensor<20000xi64>
  }
  return %r : tensor<20000xi64>
}
