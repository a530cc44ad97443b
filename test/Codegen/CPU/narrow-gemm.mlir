// Proves: the integer-dot generator packs constant bytes in fours along K, others by a launch of their own, and uses what each CPU
// variant has; without variants given there are one with VNNI and one with AMX. Convolutions copy their patches.
// RUN: tc-opt %s --split-input-file --tc-choose-schedule | FileCheck %s
// RUN: tc-opt %s --split-input-file --tc-choose-schedule --tc-lower-kernels | FileCheck %s --check-prefix=LOWER

// CHECK-LABEL: func.func @constant
// CHECK: schedule = #kernel.cpu.narrow_gemm<rhs = 1, {{.*}}rowsDot = 14, colsDot = 32, rows256 = 3, cols256 = 16, rows512 = 6, cols512 = 32
// LOWER: #[[MAP:.*]] = affine_map<(d0, d1, d2, d3) -> (d1 * 4 + d3, d0 * 16 + d2)>
// LOWER-LABEL: func.func @constant
// LOWER: host.constant dense<1> : tensor<64x200xi8> map #[[MAP]] : tensor<13x16x16x4xi8>
// LOWER: host.launch @[[KERNEL:k0_dot_general[a-z_]*]](
// LOWER-LABEL: host.variant @"x86-64-v3"
// LOWER: llvm.func @[[KERNEL]](
// LOWER: llvm.x86.avx2.pmadd.wd
// LOWER-LABEL: host.variant @"x86-64-v4"
// LOWER: llvm.func @[[KERNEL]](
// LOWER: llvm.x86.avx512.pmaddw.d.512
// LOWER-LABEL: host.variant @"x86-64-v4-vnni"
// LOWER: llvm.func @[[KERNEL]](
// LOWER: llvm.x86.avx512.vpdpbusd.512
// LOWER-LABEL: host.variant @"x86-64-v4-amx"
// LOWER: llvm.func @[[KERNEL]](
// LOWER: llvm.x86.ldtilecfg
// LOWER: llvm.x86.tdpbusd
// LOWER: llvm.x86.tilerelease
func.func @constant(%x: tensor<140x64xui8>) -> tensor<140x200xf32> {
  %w = prim.constant dense<1> : tensor<64x200xi8>
  %r = kernel.region(%i0 = %x : tensor<140x64xui8>, %i1 = %w : tensor<64x200xi8>) -> (tensor<140x200xf32>) {
    %0 = prim.dot_general %i0, %i1 batch [] x [] contract [1] x [0] : (tensor<140x64xui8>, tensor<64x200xi8>) -> tensor<140x200xi32>
    %1 = prim.convert %0 : tensor<140x200xi32> -> tensor<140x200xf32>
    kernel.yield %1 : tensor<140x200xf32>
  }
  return %r : tensor<140x200xf32>
}

// -----

// K that is no multiple of 4: rows are copied.
// CHECK-LABEL: func.func @operands
// CHECK: #kernel.cpu.narrow_gemm<lhsCopy = true
// LOWER-LABEL: func.func @operands
// LOWER: %[[PACKED:.*]] = host.launch @{{.*}}_pack({{.*}}tensor<1x2x2048xi8>
// LOWER: host.launch {{.*}}%[[PACKED]]
func.func @operands(%x: tensor<9x65xui8>, %w: tensor<65x20xi8>) -> tensor<9x20xi32> {
  %r = kernel.region(%i0 = %x : tensor<9x65xui8>, %i1 = %w : tensor<65x20xi8>) -> (tensor<9x20xi32>) {
    %0 = prim.dot_general %i0, %i1 batch [] x [] contract [1] x [0] : (tensor<9x65xui8>, tensor<65x20xi8>) -> tensor<9x20xi32>
    kernel.yield %0 : tensor<9x20xi32>
  }
  return %r : tensor<9x20xi32>
}

// -----

// Groups are batch elements; padding is part of the copy, here of the zero point 9.
// CHECK-LABEL: func.func @convolution
// CHECK: schedule = #kernel.cpu.narrow_gemm<rhs = 1, lhsCopy = true
// LOWER: #[[MAP:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (
// LOWER-LABEL: func.func @convolution
// LOWER: host.constant dense<1> : tensor<3x3x4x40xi8> map #[[MAP]] : tensor<2x2x16x16x4xi8>
func.func @convolution(%x: tensor<2x10x10x8xui8>) -> tensor<2x5x5x40xi32> {
  %w = prim.constant dense<1> : tensor<3x3x4x40xi8>
  %r = kernel.region(%i0 = %x : tensor<2x10x10x8xui8>, %i1 = %w : tensor<3x3x4x40xi8>) -> (tensor<2x5x5x40xi32>) {
    %z = prim.splat 9 : ui8 : tensor<ui8>
    %0 = prim.pad %i0, %z low affine_map<() -> (0, 1, 1, 0)> : (tensor<2x10x10x8xui8>, tensor<ui8>) -> tensor<2x12x12x8xui8>
    %1 = prim.conv %0, %i1 strides [2, 2] dilations [1, 1] pads [0, 0] [0, 0] groups 2 : (tensor<2x12x12x8xui8>, tensor<3x3x4x40xi8>) -> tensor<2x5x5x40xi32>
    kernel.yield %1 : tensor<2x5x5x40xi32>
  }
  return %r : tensor<2x5x5x40xi32>
}
