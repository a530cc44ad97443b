// A warp copies the tiles of large products of TF32 by tensor maps, which a launch writes; rows are rounded between products.
// RUN: tc-opt %s --tc-choose-schedule="device=cuda allow-tf32" -split-input-file | FileCheck %s --check-prefix=SCHEDULE
// RUN: tc-opt %s --tc-choose-schedule="device=cuda allow-tf32" --tc-lower-kernels=variants=sm_90a -split-input-file | FileCheck %s
// RUN: tc-opt %s --tc-choose-schedule="device=cuda allow-tf32" --tc-lower-kernels=variants=sm_80 -split-input-file | FileCheck %s --check-prefix=OLD

// SCHEDULE-LABEL: func.func @batches
// SCHEDULE: #kernel.gpu.mma<{{.*}}tensorCopies = true
// The maps are of the lhs and of what the launch before has written: K, rows or columns, and the batch.
// CHECK-LABEL: func.func @batches
// CHECK: %[[Y:.*]] = host.launch @[[NAME:k[0-9_a-z]*]]_rhs(
// CHECK: %[[MAPS:.*]] = host.launch @[[NAME]]_maps({{.*}}%[[Y]]
// CHECK-SAME: -> tensor<384xi8>
// CHECK: host.launch @[[NAME]]({{.*}}%[[MAPS]]
// CHECK: llvm.func @[[NAME]]_maps(
// CHECK: tensormap.replace.tile.rank.shared::cta.b1024.b32 [$0], 2;
// CHECK: tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [$0], 3;
// CHECK: tensormap.cp_fenceproxy.global
// CHECK: tensormap.replace.tile.rank.shared::cta.b1024.b32 [$0], 2;
// CHECK: llvm.func @[[NAME]](
// CHECK: fence.mbarrier_init
// CHECK: setmaxnreg.inc
// CHECK: ldmatrix
// CHECK: cvt.rna.tf32
// CHECK: wgmma.mma_async
// CHECK: mbarrier.try_wait
// CHECK: ldmatrix
// CHECK: wgmma.wait_group.sync.aligned 0
// CHECK: setmaxnreg.dec
// CHECK: fence.proxy.tensormap::generic.acquire
// CHECK: mbarrier.arrive.expect_tx
// CHECK: cp.async.bulk.tensor.3d
// CHECK: cp.async.bulk.tensor.3d
// Chips without warpgroups copy as ever, and have nothing to write.
// OLD-LABEL: func.func @batches
// OLD-NOT: tensormap
// OLD-NOT: bulk
// OLD: nvvm.cp.async.shared.global
// OLD: mma.sync
func.func @batches(%x: tensor<4x2048x2048xf32>, %y: tensor<4x2048x2048xf32>) -> tensor<4x2048x2048xf32> {
  %r = kernel.region(%a = %x : tensor<4x2048x2048xf32>, %b = %y : tensor<4x2048x2048xf32>) -> (tensor<4x2048x2048xf32>) {
    %d = prim.dot_general %a, %b batch [0] x [0] contract [2] x [1] : (tensor<4x2048x2048xf32>, tensor<4x2048x2048xf32>) -> tensor<4x2048x2048xf32>
    kernel.yield %d : tensor<4x2048x2048xf32>
  }
  return %r : tensor<4x2048x2048xf32>
}

// -----

// Small ones are not worth the launch, and where K may be 0 there is nothing to map.
// SCHEDULE-LABEL: func.func @small
// SCHEDULE-NOT: tensorCopies = true
func.func @small(%x: tensor<256x256xf32>, %y: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %r = kernel.region(%a = %x : tensor<256x256xf32>, %b = %y : tensor<256x256xf32>) -> (tensor<256x256xf32>) {
    %d = prim.dot_general %a, %b batch [] x [] contract [1] x [0] : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
    kernel.yield %d : tensor<256x256xf32>
  }
  return %r : tensor<256x256xf32>
}

// -----

// SCHEDULE-LABEL: func.func @dynamic
// SCHEDULE-NOT: tensorCopies = true
func.func @dynamic(%x: tensor<8192x?xf32>, %y: tensor<?x8192xf32>) -> tensor<8192x8192xf32> {
  %r = kernel.region(%a = %x : tensor<8192x?xf32>, %b = %y : tensor<?x8192xf32>) -> (tensor<8192x8192xf32>) {
    %d = prim.dot_general %a, %b batch [] x [] contract [1] x [0] : (tensor<8192x?xf32>, tensor<?x8192xf32>) -> tensor<8192x8192xf32>
    kernel.yield %d : tensor<8192x8192xf32>
  }
  return %r : tensor<8192x8192xf32>
}

// -----

// Four warpgroups share the registers of a processor: a thread that asked for more than there are would wait without end.
// SCHEDULE-LABEL: func.func @groups
// CHECK-LABEL: func.func @groups
// CHECK: setmaxnreg.inc.sync.aligned.u32 104;
// CHECK: setmaxnreg.dec.sync.aligned.u32 40;
func.func @groups(%x: tensor<4096x768xbf16>, %y: tensor<768x3072xbf16>) -> tensor<4096x3072xbf16> {
  %r = kernel.region(%a = %x : tensor<4096x768xbf16>, %b = %y : tensor<768x3072xbf16>) -> (tensor<4096x3072xbf16>)
      attributes {schedule = #kernel.gpu.mma<tileM = 256, warpsM = 4, tensorCopies = true>} {
    %d = prim.dot_general %a, %b batch [] x [] contract [1] x [0] : (tensor<4096x768xbf16>, tensor<768x3072xbf16>) -> tensor<4096x3072xbf16>
    kernel.yield %d : tensor<4096x3072xbf16>
  }
  return %r : tensor<4096x3072xbf16>
}
