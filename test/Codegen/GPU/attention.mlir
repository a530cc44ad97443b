// Attention in one kernel: scores stay in registers. Warpgroups multiply where there are some, warps elsewhere.
// RUN: tc-opt %s --tc-choose-schedule=device=cuda --tc-lower-kernels=variants=sm_90a,sm_80 -split-input-file | FileCheck %s
// RUN: tc-opt %s --tc-choose-schedule=device=cuda -split-input-file | FileCheck %s --check-prefix=SCHEDULE
// RUN: tc-opt %s "--tc-choose-schedule=device=cuda gpus=sm_80" -split-input-file | FileCheck %s --check-prefix=SM80

// Keys are copied as they lie; weights are fragments of the second product, in registers.
// CHECK-LABEL: func.func @plain
// CHECK: device = {alone, block = array<i64: 384, 1, 1>, {{.*}}smem = 163920 : i64}
// CHECK: module @sm_90a
// CHECK: nvvm.maxntid = array<i32: 384>, nvvm.minctasm = 1 : i32
// CHECK: mbarrier.init.shared.b64 [$0], 128;
// CHECK: mbarrier.init.shared.b64 [$0], 8;
// CHECK: nvvm.barrier
// CHECK: setmaxnreg.inc.sync.aligned.u32 216;
// CHECK: bar.arrive $0, 256;
// CHECK: mbarrier.try_wait.parity.shared.b64
// CHECK: bar.sync $0, 256;
// CHECK: setp.ne.b32 adds, 0, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {{.*}}, adds, 1, 1, 0, 0;
// CHECK: bar.arrive $0, 256;
// CHECK: mbarrier.arrive.shared.b64
// CHECK: ex2.approx.ftz.f32
// CHECK: wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {{.*}}}, {$128, $129, $130, $131}, $132, adds, 1, 1, 1;
// CHECK: nvvm.shfl.sync
// CHECK: setmaxnreg.dec.sync.aligned.u32 72;
// CHECK: nvvm.cp.async.shared.global {{.*}} 16, cache = cg :
// CHECK: cp.async.mbarrier.arrive.noinc.shared.b64
// CHECK: module @sm_80
// CHECK-NOT: setmaxnreg
// CHECK: bar.sync $0, 256;
// CHECK: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// CHECK: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// CHECK: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// One warpgroup's exponentials go beside the other's products. Without warpgroups two blocks do that.
// SCHEDULE-LABEL: func.func @plain
// SCHEDULE: #kernel.gpu.attention<producers = true>
// SM80-LABEL: func.func @plain
// SM80: #kernel.gpu.attention<tileT = 64, tileS = 64>
func.func @plain(%q: tensor<64x4096x128xbf16>, %k: tensor<64x4096x128xbf16>, %v: tensor<64x4096x128xbf16>) -> tensor<64x4096x128xbf16> {
  %r = kernel.region(%a = %q : tensor<64x4096x128xbf16>, %b = %k : tensor<64x4096x128xbf16>, %c = %v : tensor<64x4096x128xbf16>) -> (tensor<64x4096x128xbf16>) {
    %d = prim.attention %a, %b, %c scale 1.0 : (tensor<64x4096x128xbf16>, tensor<64x4096x128xbf16>, tensor<64x4096x128xbf16>) -> tensor<64x4096x128xbf16>
    kernel.yield %d : tensor<64x4096x128xbf16>
  }
  return %r : tensor<64x4096x128xbf16>
}

// -----

// Heads that lie beside each other in a row are copied from where they are; few queries have few warps.
// CHECK-LABEL: func.func @heads
// CHECK: module @sm_90a
// CHECK: nvvm.cp.async.shared.global
// CHECK: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
// Rows have few keys: sums are of the rounded weights.
// CHECK: ex2.approx.ftz.f32
// CHECK: fptrunc {{.*}} : vector<2xf32> to vector<2xf16>
// CHECK: fpext {{.*}} : vector<2xf16> to vector<2xf32>
// SCHEDULE-LABEL: func.func @heads
// SCHEDULE: #kernel.gpu.attention<tileT = 16, tileS = {{32|64}}>
func.func @heads(%q: tensor<2x10x4x32xf16>, %k: tensor<2x4x70x32xf16>, %v: tensor<2x4x70x32xf16>) -> tensor<2x4x10x32xf16> {
  %r = kernel.region(%a = %q : tensor<2x10x4x32xf16>, %b = %k : tensor<2x4x70x32xf16>, %c = %v : tensor<2x4x70x32xf16>) -> (tensor<2x4x10x32xf16>) {
    %t = prim.transpose %a [0, 2, 1, 3] : tensor<2x10x4x32xf16> -> tensor<2x4x10x32xf16>
    %d = prim.attention %t, %b, %c scale 1.0 causal : (tensor<2x4x10x32xf16>, tensor<2x4x70x32xf16>, tensor<2x4x70x32xf16>) -> tensor<2x4x10x32xf16>
    kernel.yield %d : tensor<2x4x10x32xf16>
  }
  return %r : tensor<2x4x10x32xf16>
}
