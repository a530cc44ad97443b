// Pointwise: pieces of four neighbours, several a thread where the tensor is large; all are read before any is stored.
// RUN: tc-opt %s --tc-choose-schedule=device=cuda -split-input-file | FileCheck %s --check-prefix=SCHEDULE
// RUN: tc-opt %s --tc-choose-schedule=device=cuda --tc-lower-kernels=variants=sm_90a -split-input-file | FileCheck %s

// SCHEDULE-LABEL: func.func @large
// SCHEDULE: #kernel.gpu.flat<block = 256, pieces = 4>
// CHECK-LABEL: func.func @large
// CHECK: llvm.func @
// CHECK-COUNT-8: llvm.load {{.*}} vector<4xf32>
// CHECK: llvm.store
func.func @large(%x: tensor<4096x4096xf32>, %y: tensor<4096x4096xf32>) -> tensor<4096x4096xf32> {
  %r = kernel.region(%a = %x : tensor<4096x4096xf32>, %b = %y : tensor<4096x4096xf32>) -> (tensor<4096x4096xf32>) {
    %s = prim.add %a, %b : tensor<4096x4096xf32>
    kernel.yield %s : tensor<4096x4096xf32>
  }
  return %r : tensor<4096x4096xf32>
}

// -----

// SCHEDULE-LABEL: func.func @small
// SCHEDULE: #kernel.gpu.flat<block = 256>
func.func @small(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %r = kernel.region(%a = %x : tensor<64x64xf32>, %b = %y : tensor<64x64xf32>) -> (tensor<64x64xf32>) {
    %s = prim.add %a, %b : tensor<64x64xf32>
    kernel.yield %s : tensor<64x64xf32>
  }
  return %r : tensor<64x64xf32>
}

// -----

// Vectors of which some lanes lie outside are read lane by lane: LLVM's masked loads of GPUs would read all.
// CHECK-LABEL: func.func @tail
// CHECK-NOT: masked.load
// CHECK: llvm.return
func.func @tail(%x: tensor<9xf32>) -> (tensor<f32>, tensor<9xf32>) {
  %r:2 = kernel.region(%a = %x : tensor<9xf32>) -> (tensor<f32>, tensor<9xf32>) {
    %p = prim.reduce prod %a [0] : tensor<9xf32> -> tensor<f32>
    %n = prim.neg %a : tensor<9xf32>
    kernel.yield %p, %n : tensor<f32>, tensor<9xf32>
  }
  return %r#0, %r#1 : tensor<f32>, tensor<9xf32>
}

// -----

// There is a block that writes the sums, also where the other output has no elements.
// CHECK: [[GRID:#map[0-9]*]] = affine_map<()[s0] -> ((s0 * 3) floordiv 256 + 1, 1, 1)>
// CHECK-LABEL: func.func @empty
// CHECK: grid = [[GRID]]
!dynamic = tensor<?x3xf32, #prim.dims<affine_map<()[s0] -> (s0, 3)>>>
func.func @empty(%x: !dynamic) -> (tensor<3xf32>, !dynamic) {
  %r:2 = kernel.region(%a = %x : !dynamic) -> (tensor<3xf32>, !dynamic) {
    %p = prim.reduce sum %a [0] : !dynamic -> tensor<3xf32>
    %n = prim.neg %a : !dynamic
    kernel.yield %p, %n : tensor<3xf32>, !dynamic
  }
  return %r#0, %r#1 : tensor<3xf32>, !dynamic
}
