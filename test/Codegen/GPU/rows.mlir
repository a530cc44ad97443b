// A block per row. Rows of a known length are read once, and stay in registers.
// RUN: tc-opt %s --tc-choose-schedule=device=cuda -split-input-file | FileCheck %s --check-prefix=SCHEDULE
// RUN: tc-opt %s --tc-choose-schedule=device=cuda --tc-lower-kernels=variants=sm_90a -split-input-file | FileCheck %s

// Two vectors a thread, which the maximum, the sum and the result take.
// SCHEDULE-LABEL: func.func @softmax
// SCHEDULE: #kernel.gpu.rows<block = 256, inRegisters = true>
// CHECK-LABEL: func.func @softmax
// CHECK: llvm.func @
// CHECK-COUNT-2: llvm.load {{.*}} vector<4xf32>
// CHECK-NOT: llvm.load {{.*}} vector<4xf32>
// CHECK: llvm.return
func.func @softmax(%x: tensor<64x2048xf32>) -> tensor<64x2048xf32> {
  %r = kernel.region(%a = %x : tensor<64x2048xf32>) -> (tensor<64x2048xf32>) {
    %m = prim.reduce max %a [1] : tensor<64x2048xf32> -> tensor<64xf32>
    %mb = prim.broadcast %m [0] : tensor<64xf32> -> tensor<64x2048xf32>
    %d = prim.sub %a, %mb : tensor<64x2048xf32>
    %p = prim.exp %d : tensor<64x2048xf32>
    %s = prim.reduce sum %p [1] : tensor<64x2048xf32> -> tensor<64xf32>
    %sb = prim.broadcast %s [0] : tensor<64xf32> -> tensor<64x2048xf32>
    %q = prim.div %p, %sb : tensor<64x2048xf32>
    kernel.yield %q : tensor<64x2048xf32>
  }
  return %r : tensor<64x2048xf32>
}

// -----

// Rows that do not begin at multiples of a vector: element by element, the last turn by some threads only.
// SCHEDULE-LABEL: func.func @odd
// SCHEDULE: #kernel.gpu.rows<block = 64, inRegisters = true>
// CHECK-LABEL: func.func @odd
// CHECK: llvm.func @
// CHECK-COUNT-4: llvm.load {{.*}} -> f32
// CHECK: llvm.cond_br
func.func @odd(%x: tensor<64x201xf32>) -> tensor<64x201xf32> {
  %r = kernel.region(%a = %x : tensor<64x201xf32>) -> (tensor<64x201xf32>) {
    %s = prim.reduce sum %a [1] : tensor<64x201xf32> -> tensor<64xf32>
    %sb = prim.broadcast %s [0] : tensor<64xf32> -> tensor<64x201xf32>
    %q = prim.div %a, %sb : tensor<64x201xf32>
    kernel.yield %q : tensor<64x201xf32>
  }
  return %r : tensor<64x201xf32>
}

// -----

// More than the threads of a block can hold: loops.
// SCHEDULE-LABEL: func.func @long
// SCHEDULE: #kernel.gpu.rows<block = 256>
// CHECK-LABEL: func.func @long
// CHECK: llvm.func @
// CHECK: llvm.cond_br
func.func @long(%x: tensor<4x40000xf32>) -> tensor<4x40000xf32> {
  %r = kernel.region(%a = %x : tensor<4x40000xf32>) -> (tensor<4x40000xf32>) {
    %s = prim.reduce sum %a [1] : tensor<4x40000xf32> -> tensor<4xf32>
    %sb = prim.broadcast %s [0] : tensor<4xf32> -> tensor<4x40000xf32>
    %q = prim.div %a, %sb : tensor<4x40000xf32>
    kernel.yield %q : tensor<4x40000xf32>
  }
  return %r : tensor<4x40000xf32>
}

// -----

// A sum and its norm, both of them results: a block per row, which reads it once and writes both.
// SCHEDULE-LABEL: func.func @two_results
// SCHEDULE: #kernel.gpu.rows<{{.*}}inRegisters = true>
// CHECK-LABEL: func.func @two_results
// CHECK: llvm.func @
// CHECK-COUNT-2: llvm.load {{.*}} vector<4xf32>
// CHECK-NOT: llvm.load {{.*}} vector<4xf32>
// CHECK-COUNT-2: llvm.store {{.*}} vector<4xf32>
// CHECK: llvm.return
func.func @two_results(%x: tensor<64x1024xf32>, %y: tensor<64x1024xf32>) -> (tensor<64x1024xf32>, tensor<64x1024xf32>) {
  %r:2 = kernel.region(%a = %x : tensor<64x1024xf32>, %b = %y : tensor<64x1024xf32>) -> (tensor<64x1024xf32>, tensor<64x1024xf32>) {
    %p = prim.add %a, %b : tensor<64x1024xf32>
    %s = prim.reduce sum %p [1] : tensor<64x1024xf32> -> tensor<64xf32>
    %sb = prim.broadcast %s [0] : tensor<64xf32> -> tensor<64x1024xf32>
    %q = prim.sub %p, %sb : tensor<64x1024xf32>
    kernel.yield %p, %q : tensor<64x1024xf32>, tensor<64x1024xf32>
  }
  return %r#0, %r#1 : tensor<64x1024xf32>, tensor<64x1024xf32>
}
