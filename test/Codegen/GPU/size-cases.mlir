// Sizes that only the run knows: a region has a schedule for each of several ranges, and the host program takes one of them.
// RUN: tc-opt %s --tc-choose-schedule=device=cuda -split-input-file | FileCheck %s --check-prefix=SCHEDULE
// RUN: tc-opt %s --tc-choose-schedule=device=cuda --tc-lower-kernels=variants=sm_90a --tc-plan-memory -split-input-file | FileCheck %s

!x = tensor<?x1024xbf16, #prim.dims<affine_map<()[s0] -> (s0, 1024)>>>
!y = tensor<?x4096xbf16, #prim.dims<affine_map<()[s0] -> (s0, 4096)>>>
!z = tensor<?x4096xf32, #prim.dims<affine_map<()[s0] -> (s0, 4096)>>>
!w = tensor<1024x4096xbf16>

// Few rows are for warps, with K in parts; many for warpgroups. What a case alone needs takes no memory elsewhere.
// SCHEDULE-LABEL: func.func @product
// SCHEDULE: cases = [#kernel.case<sizes = #{{.*}}, schedule = #kernel.gpu.mma<tileM = 16,
// SCHEDULE-SAME: schedule = #kernel.gpu.mma<tile{{[^>]*}}>
// CHECK-DAG: #[[FEW:.*]] = affine_set<()[s0] : (-s0 + [[LIMIT:[0-9]+]] >= 0)>
// CHECK-LABEL: func.func @product
// CHECK: host.choose [#host.guard<sizes = #[[FEW]]>
// CHECK: host.launch @{{.*}}places = [#host.place<output[0]
// CHECK: host.yield
// CHECK: host.launch @{{.*}}places = [#host.place<output[0]
// CHECK: return
func.func @product(%x: !x, %w: !w) -> !y attributes {prim.symbols = [#prim.symbol<"rows", 1, 100000, 1>]} {
  %r = kernel.region(%a = %x : !x, %b = %w : !w) -> (!y) attributes {cost = #tc.cost<flops = ()[s0] -> (s0 * 8388608), bytes = ()[s0] -> (s0 * 10240 + 8388608)>} {
    %d = prim.dot_general %a, %b batch [] x [] contract [1] x [0] : (!x, !w) -> !z
    %e = prim.convert %d : !z -> !y
    kernel.yield %e : !y
  }
  return %r : !y
}

// -----

// One schedule is for all of so narrow a range; a known size has one.
!x = tensor<?x1024xbf16, #prim.dims<affine_map<()[s0] -> (s0, 1024)>>>
!y = tensor<?x4096xbf16, #prim.dims<affine_map<()[s0] -> (s0, 4096)>>>
!z = tensor<?x4096xf32, #prim.dims<affine_map<()[s0] -> (s0, 4096)>>>
!w = tensor<1024x4096xbf16>
// SCHEDULE-LABEL: func.func @narrow
// SCHEDULE-NOT: kernel.case
// SCHEDULE: #kernel.gpu.mma<
// CHECK-LABEL: func.func @narrow
// CHECK-NOT: host.choose
func.func @narrow(%x: !x, %w: !w) -> !y attributes {prim.symbols = [#prim.symbol<"rows", 4000, 4096, 1>]} {
  %r = kernel.region(%a = %x : !x, %b = %w : !w) -> (!y) attributes {cost = #tc.cost<flops = ()[s0] -> (s0 * 8388608), bytes = ()[s0] -> (s0 * 10240 + 8388608)>} {
    %d = prim.dot_general %a, %b batch [] x [] contract [1] x [0] : (!x, !w) -> !z
    %e = prim.convert %d : !z -> !y
    kernel.yield %e : !y
  }
  return %r : !y
}

// -----

// Blocks of a row have more threads where there are few of them. By two sizes the work decides.
!x = tensor<?x?x8192xf32, #prim.dims<affine_map<()[s0, s1] -> (s0, s1, 8192)>>>
!s = tensor<?x?xf32, #prim.dims<affine_map<()[s0, s1] -> (s0, s1)>>>
// SCHEDULE: affine_set<()[s0, s1] : ((s0 * s1) * -16384 + {{[0-9]+}} >= 0)>
// CHECK-LABEL: func.func @rows
// CHECK: host.choose
// SCHEDULE-LABEL: func.func @rows
// SCHEDULE: cases = [#kernel.case<sizes = #{{.*}}, schedule = #kernel.gpu.rows<block = 1024, inRegisters = true>>], {{.*}}schedule = #kernel.gpu.rows<block = 256, inRegisters = true>
func.func @rows(%x: !x) -> !x attributes {prim.symbols = [#prim.symbol<"batch", 0, 9223372036854775807, 1>, #prim.symbol<"length", 0, 9223372036854775807, 1>]} {
  %r = kernel.region(%a = %x : !x) -> (!x) attributes {cost = #tc.cost<flops = ()[s0, s1] -> ((s0 * s1) * 16384), bytes = ()[s0, s1] -> ((s0 * s1) * 65536)>} {
    %m = prim.reduce sum %a [2] : !x -> !s
    %b = prim.broadcast %m [0, 1] : !s -> !x
    %d = prim.sub %a, %b : !x
    kernel.yield %d : !x
  }
  return %r : !x
}

// -----

// What was measured at 64 rows stays for sizes like them; others have what is best there.
!x = tensor<?x1024xbf16, #prim.dims<affine_map<()[s0] -> (s0, 1024)>>>
!y = tensor<?x4096xbf16, #prim.dims<affine_map<()[s0] -> (s0, 4096)>>>
!z = tensor<?x4096xf32, #prim.dims<affine_map<()[s0] -> (s0, 4096)>>>
!w = tensor<1024x4096xbf16>
// SCHEDULE-LABEL: func.func @tuned
// SCHEDULE-NOT: tuned_sizes
// SCHEDULE: cases = [#kernel.case<sizes = #{{.*}}, schedule = #kernel.gpu.mma<tileM = 16,
// SCHEDULE-SAME: schedule = #kernel.gpu.mma<tileM = 32, tileN = 64, warpsN = 2, stages = 6>>
// SCHEDULE-SAME: schedule = #kernel.gpu.mma<tileN = 256>}
// CHECK-LABEL: func.func @tuned
func.func @tuned(%x: !x, %w: !w) -> !y attributes {prim.symbols = [#prim.symbol<"rows", 1, 100000, 1>]} {
  %r = kernel.region(%a = %x : !x, %b = %w : !w) -> (!y) attributes {tc.tuned_sizes = array<i64: 64>, schedule = #kernel.gpu.mma<tileM = 32, tileN = 64, warpsN = 2, stages = 6>, cost = #tc.cost<flops = ()[s0] -> (s0 * 8388608), bytes = ()[s0] -> (s0 * 10240 + 8388608)>} {
    %d = prim.dot_general %a, %b batch [] x [] contract [1] x [0] : (!x, !w) -> !z
    %e = prim.convert %d : !z -> !y
    kernel.yield %e : !y
  }
  return %r : !y
}
