// Products on tensor cores: each chip of a variant has kernels of its own, by the same schedule. Warpgroups multiply where there are
// some, warps elsewhere.
// RUN: tc-opt %s --tc-choose-schedule=device=cuda --tc-lower-kernels=variants=sm_90a,sm_80 -split-input-file | FileCheck %s
// RUN: tc-opt %s --tc-choose-schedule=device=cuda -split-input-file | FileCheck %s --check-prefix=SCHEDULE
// RUN: tc-opt %s --tc-choose-schedule="device=cuda gpus=sm_80,sm_86" -split-input-file | FileCheck %s --check-prefix=SMALL

// Both operands are copied as they lie, in pieces of 16 bytes: x along K, y along columns. A large product has the large tile.
// CHECK-LABEL: func.func @narrow
// CHECK: device = {block = array<i64: 256, 1, 1>, {{.*}}smem = 147456 : i64}
// CHECK: module @sm_90a
// CHECK: nvvm.cp.async.shared.global {{.*}} 16, cache = cg :
// CHECK: wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {{.*}}, adds, 1, 1, 0, 1;
// CHECK-NOT: mma.sync
// CHECK: module @sm_80
// CHECK: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// CHECK: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// CHECK: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// SCHEDULE-LABEL: func.func @narrow
// SCHEDULE: #kernel.gpu.mma<tileN = 256>
// Three stages of it are more shared memory than a block of sm_86 may have.
// SMALL-LABEL: func.func @narrow
// SMALL: #kernel.gpu.mma<>
func.func @narrow(%x: tensor<4096x4096xbf16>, %y: tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16> {
  %r = kernel.region(%a = %x : tensor<4096x4096xbf16>, %b = %y : tensor<4096x4096xbf16>) -> (tensor<4096x4096xbf16>) {
    %d = prim.dot_general %a, %b batch [] x [] contract [1] x [0] : (tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
    kernel.yield %d : tensor<4096x4096xbf16>
  }
  return %r : tensor<4096x4096xbf16>
}

// -----

// f32 is exact: a slice's products are summed on their own, and those with the low parts by themselves, which are rounded as the
// tensor cores cut them off. These read f32 along K alone: y is turned by a launch before.
// CHECK-LABEL: func.func @exact
// CHECK: module @sm_90a
// CHECK: setp.ne.b32 adds, 0, 0; wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32
// CHECK: %[[LOW:.*]] = llvm.fsub
// CHECK: %[[BITS:.*]] = llvm.bitcast %[[LOW]] : vector<4xf32> to vector<4xi32>
// CHECK: %[[HALF:.*]] = llvm.mlir.constant(dense<4096> : vector<4xi32>)
// CHECK: llvm.add %[[BITS]], %[[HALF]] : vector<4xi32>
// CHECK: setp.ne.b32 adds, 1, 0; wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32
// CHECK: module @sm_80
// CHECK: mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32
// SCHEDULE-LABEL: func.func @exact
// SCHEDULE: #kernel.gpu.mma<passes = 3, rhsLaunch = true>
func.func @exact(%x: tensor<4096x1024xf32>, %y: tensor<1024x4096xf32>) -> tensor<4096x4096xf32> {
  %r = kernel.region(%a = %x : tensor<4096x1024xf32>, %b = %y : tensor<1024x4096xf32>) -> (tensor<4096x4096xf32>) {
    %d = prim.dot_general %a, %b batch [] x [] contract [1] x [0] : (tensor<4096x1024xf32>, tensor<1024x4096xf32>) -> tensor<4096x4096xf32>
    kernel.yield %d : tensor<4096x4096xf32>
  }
  return %r : tensor<4096x4096xf32>
}

// -----

// One warpgroup has nothing to multiply while it splits elements: two are faster, though the last turn of tiles is less full.
// SCHEDULE-LABEL: func.func @low_parts
// SCHEDULE: #kernel.gpu.mma<passes = 3>
func.func @low_parts(%x: tensor<4096x3072xf32>, %y: tensor<768x3072xf32>) -> tensor<4096x768xf32> {
  %r = kernel.region(%a = %x : tensor<4096x3072xf32>, %b = %y : tensor<768x3072xf32>) -> (tensor<4096x768xf32>) {
    %d = prim.dot_general %a, %b batch [] x [] contract [1] x [1] : (tensor<4096x3072xf32>, tensor<768x3072xf32>) -> tensor<4096x768xf32>
    kernel.yield %d : tensor<4096x768xf32>
  }
  return %r : tensor<4096x768xf32>
}

// -----

// Few rows: small tiles, and K in parts, which a second launch adds up with what follows the product.
// CHECK-LABEL: func.func @split
// CHECK: %[[PARTS:.*]] = host.launch @[[NAME:k[0-9_a-z]*]]_parts(
// CHECK-SAME: -> tensor<4x1x1x4096xf32>
// CHECK: host.launch @[[NAME]](%{{.*}}, %{{.*}}, %{{.*}}, %[[PARTS]])
// SCHEDULE-LABEL: func.func @split
// SCHEDULE: #kernel.gpu.mma<tileM = 16, {{.*}}splits = 4
func.func @split(%x: tensor<1x4096xf16>, %y: tensor<4096x4096xf16>, %z: tensor<4096xf16>) -> tensor<1x4096xf16> {
  %r = kernel.region(%a = %x : tensor<1x4096xf16>, %b = %y : tensor<4096x4096xf16>, %c = %z : tensor<4096xf16>) -> (tensor<1x4096xf16>) {
    %d = prim.dot_general %a, %b batch [] x [] contract [1] x [1] : (tensor<1x4096xf16>, tensor<4096x4096xf16>) -> tensor<1x4096xf16>
    %e = prim.broadcast %c [1] : tensor<4096xf16> -> tensor<1x4096xf16>
    %f = prim.add %d, %e : tensor<1x4096xf16>
    kernel.yield %f : tensor<1x4096xf16>
  }
  return %r : tensor<1x4096xf16>
}

// -----

// A convolution is a product of pixels and taps: pieces of channels are copied from the image, zeros from outside. What follows
// it is computed on f32: it is rounded once, as it is stored.
// CHECK-LABEL: func.func @conv
// CHECK: module @sm_90a
// CHECK: %[[INSIDE:.*]] = llvm.select {{.*}} : i1, i32
// CHECK: nvvm.cp.async.shared.global {{.*}} 16, cache = cg, %[[INSIDE]]
// CHECK: wgmma.mma_async
// CHECK-NOT: llvm.fpext
// CHECK: module @sm_80
// SCHEDULE-LABEL: func.func @conv
// SCHEDULE: #kernel.gpu.mma<
func.func @conv(%x: tensor<16x56x56x64xf16>, %y: tensor<3x3x64x64xf16>) -> tensor<16x56x56x64xf16> {
  %r = kernel.region(%a = %x : tensor<16x56x56x64xf16>, %b = %y : tensor<3x3x64x64xf16>) -> (tensor<16x56x56x64xf16>) {
    %d = prim.conv %a, %b strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<16x56x56x64xf16>, tensor<3x3x64x64xf16>) -> tensor<16x56x56x64xf16>
    %e = prim.neg %d : tensor<16x56x56x64xf16>
    %f = prim.abs %e : tensor<16x56x56x64xf16>
    kernel.yield %f : tensor<16x56x56x64xf16>
  }
  return %r : tensor<16x56x56x64xf16>
}

// -----

// A given tile is obeyed.
// CHECK-LABEL: func.func @given
// CHECK: device = {block = array<i64: 128, 1, 1>
// CHECK: module @sm_90a
// CHECK: m64n64k16
func.func @given(%x: tensor<70x64xf16>, %y: tensor<64x72xf16>) -> tensor<70x72xf16> {
  %r = kernel.region(%a = %x : tensor<70x64xf16>, %b = %y : tensor<64x72xf16>) -> (tensor<70x72xf16>) attributes {schedule = #kernel.gpu.mma<tileM = 64, tileN = 64, warpsM = 1, stages = 2>} {
    %d = prim.dot_general %a, %b batch [] x [] contract [1] x [0] : (tensor<70x64xf16>, tensor<64x72xf16>) -> tensor<70x72xf16>
    kernel.yield %d : tensor<70x72xf16>
  }
  return %r : tensor<70x72xf16>
}
