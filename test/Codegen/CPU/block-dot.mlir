// Proves: the block-dot generator packs weights of few bits as they are stored, keeps the epilogue inside, reads numbers from a table
// where the vectors have 16 lanes, and reads weights that are no constants through the decomposition.
// RUN: tc-opt %s --split-input-file --tc-choose-schedule | FileCheck %s
// RUN: tc-opt %s --split-input-file --tc-choose-schedule --tc-lower-kernels=variants=x86-64-v3,x86-64-v4 | FileCheck %s --check-prefix=LOWER

// A row: all columns of a group at once, no scratch.
// CHECK-LABEL: func.func @row
// CHECK: schedule = #kernel.cpu.block_dot<weights = 1, scales = 2, tileN = 128, {{.*}}rows256 = 1, cols256 = 32, {{.*}}rows512 = 1, cols512 = 64
// LOWER-DAG: #[[BYTES:.*]] = affine_map<(d0, d1, d2, d3) -> (d0 * 16 + d2, d1 * 4 + d3)>
// LOWER-DAG: #[[BLOCKS:.*]] = affine_map<(d0, d1, d2) -> (d0 * 16 + d2, d1)>
// LOWER-LABEL: func.func @row
// LOWER-DAG: host.constant dense<1> : tensor<200x64xui8> map #[[BYTES]] : tensor<13x16x16x4xui8>
// LOWER-DAG: host.constant dense<1.000000e+00> : tensor<200x4xf32> map #[[BLOCKS]] : tensor<13x4x16xf32>
// LOWER: host.launch @[[KERNEL:k0_block_dot[a-z_]*]](
// LOWER-LABEL: host.variant @"x86-64-v3"
// LOWER: llvm.func @[[KERNEL]](
// LOWER-NOT: permvar
// LOWER: llvm.sitofp {{.*}} : vector<8xi32> to vector<8xf32>
// LOWER-LABEL: host.variant @"x86-64-v4"
// LOWER: llvm.func @[[KERNEL]](
// LOWER: llvm.x86.avx512.permvar.sf.512
func.func @row(%x: tensor<1x128xf32>) -> tensor<1x200xf32> {
  %w = prim.constant dense<1> : tensor<200x64xui8>
  %s = prim.constant dense<1.0> : tensor<200x4xf32>
  %b = prim.constant dense<2.0> : tensor<1x200xf32>
  %r = kernel.region(%i0 = %x : tensor<1x128xf32>, %i1 = %w : tensor<200x64xui8>, %i2 = %s : tensor<200x4xf32>, %i3 = %b : tensor<1x200xf32>) -> (tensor<1x200xf32>) {
    %0 = prim.block_dot %i0, %i1, %i2 bits = 4 block = 32 : (tensor<1x128xf32>, tensor<200x64xui8>, tensor<200x4xf32>) -> tensor<1x200xf32>
    %1 = prim.add %0, %i3 : tensor<1x200xf32>
    kernel.yield %1 : tensor<1x200xf32>
  }
  return %r : tensor<1x200xf32>
}

// -----

// Any number of rows: a task chooses at run time between the weights as they are stored and panels in f32.
// CHECK-LABEL: func.func @rows
// CHECK: #kernel.cpu.block_dot<{{.*}}tileM = 108, {{.*}}depth = 512, {{.*}} rows512 = 8, {{.*}}panelRows512 = 6
// LOWER-LABEL: func.func @rows
// LOWER: host.launch {{.*}} scratch
!x = tensor<?x600xf32, #prim.dims<affine_map<()[s0] -> (s0, 600)>>>
!y = tensor<?x200xf32, #prim.dims<affine_map<()[s0] -> (s0, 200)>>>
func.func @rows(%x: !x) -> !y attributes {prim.symbols = [#prim.symbol<"rows", 0, 1000000, 1>]} {
  %w = prim.constant dense<1> : tensor<200x304xui8>
  %s = prim.constant dense<1.0> : tensor<200x19xf32>
  %z = prim.constant dense<1> : tensor<200x10xui8>
  %r = kernel.region(%i0 = %x : !x, %i1 = %w : tensor<200x304xui8>, %i2 = %s : tensor<200x19xf32>, %i3 = %z : tensor<200x10xui8>) -> (!y) {
    %0 = prim.block_dot %i0, %i1, %i2 zeros %i3 bits = 4 block = 32 : (!x, tensor<200x304xui8>, tensor<200x19xf32>, tensor<200x10xui8>) -> !y
    kernel.yield %0 : !y
  }
  return %r : !y
}

// -----

// Bytes with a sign: each step's numbers side by side, no sums of the rows, and a scale that is a number.
// CHECK-LABEL: func.func @bytes
// CHECK: schedule = #kernel.cpu.block_dot<{{.*}}weights = 1{{[,>]}}
// LOWER-DAG: #[[STEPS:.*]] = affine_map<(d0, d1, d2, d3) -> (d0 * 16 + d3, d1 * 4 + d2)>
// LOWER-LABEL: func.func @bytes
// LOWER-DAG: host.constant dense<1> : tensor<200x128xi8> map #[[STEPS]] : tensor<13x32x4x16xi8>
// LOWER: host.launch @[[KERNEL:k0_block_dot[a-z_]*]](
// LOWER-LABEL: host.variant @"x86-64-v3"
// LOWER: llvm.func @[[KERNEL]](
// LOWER: llvm.sext {{.*}} : vector<8xi8> to vector<8xi32>
// LOWER-NOT: fsub
func.func @bytes(%x: tensor<1x128xf32>) -> tensor<1x200xf32> {
  %w = prim.constant dense<1> : tensor<200x128xi8>
  %r = kernel.region(%i0 = %x : tensor<1x128xf32>, %i1 = %w : tensor<200x128xi8>) -> (tensor<1x200xf32>) {
    %s = prim.splat 0.5 : f32 : tensor<200x1xf32>
    %0 = prim.block_dot %i0, %i1, %s bits = 8 block = 128 : (tensor<1x128xf32>, tensor<200x128xi8>, tensor<200x1xf32>) -> tensor<1x200xf32>
    kernel.yield %0 : tensor<1x200xf32>
  }
  return %r : tensor<1x200xf32>
}
