// Proves: the bfloat-dot generator packs constant bf16 in pairs along K, others by a launch of their own, and uses what each CPU variant
// has; without variants given there are one with AVX512-BF16 and one with AMX. Convolutions copy their patches.
// RUN: tc-opt %s --split-input-file --tc-choose-schedule | FileCheck %s
// RUN: tc-opt %s --split-input-file --tc-choose-schedule --tc-lower-kernels | FileCheck %s --check-prefix=LOWER

// CHECK-LABEL: func.func @constant
// CHECK: schedule = #kernel.cpu.narrow_gemm<rhs = 1, tiles = true, tileM = {{[0-9]+}}, tileN = {{[0-9]+}}, prefetchLines = 64, rowsDot = {{[0-9]+}}, colsDot = 32, rows256 = {{[0-9]+}}, cols256 = 16, rows512 = {{[0-9]+}}, cols512 = 32
// LOWER: #[[MAP:.*]] = affine_map<(d0, d1, d2, d3) -> (d1 * 2 + d3, d0 * 16 + d2)>
// LOWER-LABEL: func.func @constant
// LOWER: host.constant dense<1.{{.*}}> : tensor<64x200xbf16> map #[[MAP]] : tensor<13x32x16x2xbf16>
// LOWER: host.launch @[[KERNEL:k0_dot_general[a-z_]*]](
// LOWER-LABEL: host.variant @"x86-64-v3"
// LOWER: llvm.func @[[KERNEL]](
// LOWER: llvm.intr.fmuladd{{.*}}vector<8xf32>
// LOWER-LABEL: host.variant @"x86-64-v4"
// LOWER: llvm.func @[[KERNEL]](
// LOWER-NOT: dpbf16ps
// LOWER-LABEL: host.variant @"x86-64-v4-bf16"
// LOWER: llvm.func @[[KERNEL]](
// LOWER: llvm.x86.avx512bf16.dpbf16ps.512
// LOWER-LABEL: host.variant @"x86-64-v4-amx"
// LOWER: llvm.func @[[KERNEL]](
// LOWER: llvm.x86.ldtilecfg
// LOWER: llvm.x86.tdpbf16ps
// LOWER: llvm.x86.tilerelease
func.func @constant(%x: tensor<140x64xbf16>) -> tensor<140x200xf32> {
  %w = prim.constant dense<1.0> : tensor<64x200xbf16>
  %r = kernel.region(%i0 = %x : tensor<140x64xbf16>, %i1 = %w : tensor<64x200xbf16>) -> (tensor<140x200xf32>) {
    %0 = prim.dot_general %i0, %i1 batch [] x [] contract [1] x [0] : (tensor<140x64xbf16>, tensor<64x200xbf16>) -> tensor<140x200xf32>
    kernel.yield %0 : tensor<140x200xf32>
  }
  return %r : tensor<140x200xf32>
}

// -----

// An odd K: rows are copied. Rounded on the way.
// CHECK-LABEL: func.func @operands
// CHECK: #kernel.cpu.narrow_gemm<lhsCopy = true
// LOWER-LABEL: func.func @operands
// LOWER: %[[PACKED:.*]] = host.launch @{{.*}}_pack({{.*}}tensor<1x2x3072xi8>
// LOWER: host.launch {{.*}}%[[PACKED]]
func.func @operands(%x: tensor<9x65xf32>, %w: tensor<65x20xbf16>) -> tensor<9x20xf32> {
  %r = kernel.region(%i0 = %x : tensor<9x65xf32>, %i1 = %w : tensor<65x20xbf16>) -> (tensor<9x20xf32>) {
    %a = prim.convert %i0 : tensor<9x65xf32> -> tensor<9x65xbf16>
    %0 = prim.dot_general %a, %i1 batch [] x [] contract [1] x [0] : (tensor<9x65xbf16>, tensor<65x20xbf16>) -> tensor<9x20xf32>
    kernel.yield %0 : tensor<9x20xf32>
  }
  return %r : tensor<9x20xf32>
}

// -----

// CHECK-LABEL: func.func @convolution
// CHECK: schedule = #kernel.cpu.narrow_gemm<rhs = 1, lhsCopy = true
// LOWER-LABEL: func.func @convolution
// LOWER: host.constant dense<1.{{.*}}> : tensor<3x3x4x40xbf16> map {{.*}} : tensor<2x2x32x16x2xbf16>
func.func @convolution(%x: tensor<2x10x10x8xbf16>) -> tensor<2x5x5x40xf32> {
  %w = prim.constant dense<1.0> : tensor<3x3x4x40xbf16>
  %r = kernel.region(%i0 = %x : tensor<2x10x10x8xbf16>, %i1 = %w : tensor<3x3x4x40xbf16>) -> (tensor<2x5x5x40xf32>) {
    %0 = prim.conv %i0, %i1 strides [2, 2] dilations [1, 1] pads [1, 1] [1, 1] groups 2 : (tensor<2x10x10x8xbf16>, tensor<3x3x4x40xbf16>) -> tensor<2x5x5x40xf32>
    kernel.yield %0 : tensor<2x5x5x40xf32>
  }
  return %r : tensor<2x5x5x40xf32>
}
