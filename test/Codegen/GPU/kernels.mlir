// GPU kernels: rows with shared reductions, flat pointwise with 16 bytes a thread and access, contractions on tensor cores.
// RUN: tc-opt %s --tc-choose-schedule=device=cuda --tc-lower-kernels=variants=sm_90 | FileCheck %s

// A block per row; the argument words are one parameter by value.
// CHECK-LABEL: func.func @rows
// CHECK: host.launch @[[ROWS:k[0-9]+[a-z_]*]](%{{.*}}) {{.*}}device = {block = array<i64: 128, 1, 1>
func.func @rows(%x: tensor<64x2048xf32>) -> tensor<64x2048xf32> {
  %r = kernel.region(%a = %x : tensor<64x2048xf32>) -> (tensor<64x2048xf32>) {
    %m = prim.reduce max %a [1] : tensor<64x2048xf32> -> tensor<64xf32>
    %b = prim.broadcast %m [0] : tensor<64xf32> -> tensor<64x2048xf32>
    %d = prim.sub %a, %b : tensor<64x2048xf32>
    kernel.yield %d : tensor<64x2048xf32>
  }
  return %r : tensor<64x2048xf32>
}

// CHECK-LABEL: func.func @flat
// CHECK: host.launch @[[FLAT:k[0-9]+[a-z_]*]](
func.func @flat(%x: tensor<300x64xf32>, %y: tensor<300x64xf32>) -> tensor<300x64xf32> {
  %r = kernel.region(%a = %x : tensor<300x64xf32>, %b = %y : tensor<300x64xf32>) -> (tensor<300x64xf32>) {
    %d = prim.add %a, %b : tensor<300x64xf32>
    kernel.yield %d : tensor<300x64xf32>
  }
  return %r : tensor<300x64xf32>
}

// CHECK-LABEL: func.func @product
// CHECK: host.launch @[[PRODUCT:k[0-9]+[a-z_]*]](
func.func @product(%x: tensor<70x33xf32>, %y: tensor<33x65xf32>) -> tensor<70x65xf32> {
  %r = kernel.region(%a = %x : tensor<70x33xf32>, %b = %y : tensor<33x65xf32>) -> (tensor<70x65xf32>) {
    %d = prim.dot_general %a, %b batch [] x [] contract [1] x [0] : (tensor<70x33xf32>, tensor<33x65xf32>) -> tensor<70x65xf32>
    kernel.yield %d : tensor<70x65xf32>
  }
  return %r : tensor<70x65xf32>
}

// CHECK: host.variant @cuda machines [#machine.gpu<name = "sm_90",
// CHECK: module @sm_90
// CHECK: llvm.func @[[ROWS]](%{{.*}}: !llvm.ptr {{{.*}}llvm.byval = !llvm.array<2 x i64>, nvvm.grid_constant})
// CHECK-SAME: nvvm.kernel, nvvm.maxntid = array<i32: 128>
// CHECK: nvvm.shfl.sync bfly
// CHECK: nvvm.barrier
// CHECK: llvm.func @[[FLAT]]
// CHECK: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr -> vector<4xf32>
// CHECK: llvm.func @[[PRODUCT]]
// CHECK: mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32
// Newer GPUs take the kernels of the oldest.
// CHECK: module @sm_80
// CHECK: llvm.func @[[ROWS]]
