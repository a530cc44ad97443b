// The tile of a product on tensor cores is the schedule's: blocks of so many rows and columns, a warp for each 32 x 32 of them, slices
// of so many steps in shared memory.
// RUN: tc-opt %s --tc-choose-schedule=device=cuda --tc-lower-kernels=variants=sm_90 | FileCheck %s

// CHECK-DAG: #[[FOUR:map[0-9]*]] = affine_map<() -> (4)>
// CHECK-DAG: #[[SIX:map[0-9]*]] = affine_map<() -> (6)>
// CHECK-LABEL: func.func @decided
// CHECK: tasks #[[FOUR]] {{.*}}device = {block = array<i64: 128, 1, 1>
func.func @decided(%x: tensor<70x33xf32>, %y: tensor<33x65xf32>) -> tensor<70x65xf32> {
  %r = kernel.region(%a = %x : tensor<70x33xf32>, %b = %y : tensor<33x65xf32>) -> (tensor<70x65xf32>) {
    %d = prim.dot_general %a, %b batch [] x [] contract [1] x [0] : (tensor<70x33xf32>, tensor<33x65xf32>) -> tensor<70x65xf32>
    kernel.yield %d : tensor<70x65xf32>
  }
  return %r : tensor<70x65xf32>
}

// CHECK-LABEL: func.func @given
// CHECK: tasks #[[SIX]] {{.*}}device = {block = array<i64: 64, 1, 1>
func.func @given(%x: tensor<70x33xf32>, %y: tensor<33x65xf32>) -> tensor<70x65xf32> {
  %r = kernel.region(%a = %x : tensor<70x33xf32>, %b = %y : tensor<33x65xf32>) -> (tensor<70x65xf32>) attributes {schedule = #kernel.gpu.gemm<tileN = 32, depth = 32>} {
    %d = prim.dot_general %a, %b batch [] x [] contract [1] x [0] : (tensor<70x33xf32>, tensor<33x65xf32>) -> tensor<70x65xf32>
    kernel.yield %d : tensor<70x65xf32>
  }
  return %r : tensor<70x65xf32>
}

// 64 rows of 16 + 4 steps and 16 steps of 64 + 8 columns; 64 of 32 + 4 and 32 of 32 + 8. Fragments of 8 steps: 16 and 32 of them.
// CHECK: !llvm.array<1280 x f32>
// CHECK: !llvm.array<1152 x f32>
// CHECK: !llvm.array<2304 x f32>
// CHECK: !llvm.array<1280 x f32>
