// Operands of products that launches write as tensor cores' copies read them, and constants that are stored so.
// RUN: tc-opt %s --tc-choose-schedule="device=cuda allow-tf32" --tc-lower-kernels=variants=sm_90a -split-input-file | FileCheck %s
// RUN: tc-opt %s --tc-choose-schedule="device=cuda allow-tf32" -split-input-file | FileCheck %s --check-prefix=SCHEDULE
// RUN: tc-opt %s --tc-choose-schedule="device=cuda" -split-input-file | FileCheck %s --check-prefix=EXACT

// TF32: y is turned and rounded once; rows of x are rounded in registers, on their way to the tensor cores. Nothing is rounded in
// shared memory.
// CHECK-LABEL: func.func @product
// CHECK: %[[Y:.*]] = host.launch @[[NAME:k[0-9_a-z]*]]_rhs(
// CHECK-SAME: -> tensor<1x512x1024xf32>
// CHECK: host.launch @[[NAME]](%{{.*}}, %{{.*}}, %[[Y]])
// CHECK: llvm.func @[[NAME]]_rhs(
// CHECK: cvt.rna.tf32.f32
// CHECK: llvm.func @[[NAME]](
// CHECK: ldmatrix
// CHECK: cvt.rna.tf32.f32
// CHECK: wgmma.mma_async.sync.aligned.m64n{{[0-9]+}}k8.f32.tf32.tf32 {{{.*}}}, {{{[^}]*}}}, ${{[0-9]+}}, adds, 1, 1;
// CHECK-NOT: llvm.store {{.*}} vector<4xf32>, !llvm.ptr<3>
// CHECK: wgmma.wait_group
// SCHEDULE-LABEL: func.func @product
// SCHEDULE: #kernel.gpu.mma<{{.*}}rhsLaunch = true
// EXACT-LABEL: func.func @product
// EXACT: #kernel.gpu.mma<{{.*}}passes = 3, rhsLaunch = true
func.func @product(%x: tensor<4096x1024xf32>, %y: tensor<1024x512xf32>) -> tensor<4096x512xf32> {
  %r = kernel.region(%a = %x : tensor<4096x1024xf32>, %b = %y : tensor<1024x512xf32>) -> (tensor<4096x512xf32>) {
    %d = prim.dot_general %a, %b batch [] x [] contract [1] x [0] : (tensor<4096x1024xf32>, tensor<1024x512xf32>) -> tensor<4096x512xf32>
    kernel.yield %d : tensor<4096x512xf32>
  }
  return %r : tensor<4096x512xf32>
}

// -----

// A constant that lies along K is stored rounded. Exact products take it as it is.
// CHECK-LABEL: func.func @weights
// CHECK: host.constant {{.*}} map #{{.*}} tf32 : tensor<64x256xf32>
// SCHEDULE-LABEL: func.func @weights
// SCHEDULE: packsRhs = true
// EXACT-LABEL: func.func @weights
// EXACT-NOT: packsRhs
// EXACT: return
func.func @weights(%x: tensor<4096x256xf32>) -> tensor<4096x64xf32> {
  %w = prim.constant dense<1.5> : tensor<64x256xf32>
  %r = kernel.region(%a = %x : tensor<4096x256xf32>, %b = %w : tensor<64x256xf32>) -> (tensor<4096x64xf32>) {
    %d = prim.dot_general %a, %b batch [] x [] contract [1] x [1] : (tensor<4096x256xf32>, tensor<64x256xf32>) -> tensor<4096x64xf32>
    kernel.yield %d : tensor<4096x64xf32>
  }
  return %r : tensor<4096x64xf32>
}

// -----

// One that is read elsewhere, too, is stored once, as it is, and rounded by a launch, or by the block.
// SCHEDULE-LABEL: func.func @shared
// SCHEDULE-NOT: packsRhs
// SCHEDULE: return
// CHECK-LABEL: func.func @shared
// CHECK-NOT: tf32 : tensor
// CHECK: wgmma.mma_async
func.func @shared(%x: tensor<4096x256xf32>, %i: tensor<8xi64>) -> (tensor<4096x256xf32>, tensor<256x256xf32>) {
  %w = prim.constant dense<1.5> : tensor<256x256xf32>
  %r = kernel.region(%a = %x : tensor<4096x256xf32>, %b = %w : tensor<256x256xf32>) -> (tensor<4096x256xf32>) {
    %d = prim.dot_general %a, %b batch [] x [] contract [1] x [1] : (tensor<4096x256xf32>, tensor<256x256xf32>) -> tensor<4096x256xf32>
    kernel.yield %d : tensor<4096x256xf32>
  }
  %s = kernel.region(%b = %w : tensor<256x256xf32>) -> (tensor<256x256xf32>) {
    %d = prim.neg %b : tensor<256x256xf32>
    kernel.yield %d : tensor<256x256xf32>
  }
  return %r, %s : tensor<4096x256xf32>, tensor<256x256xf32>
}

// -----

// The first layer of a model: pixels of three channels are written as eight, of which five are zeros and have no rows in the filter.
// CHECK-LABEL: func.func @first_layer
// CHECK: %[[IMAGE:.*]] = host.launch @[[NAME:k[0-9_a-z]*]]_image(
// CHECK-SAME: -> tensor<32x224x224x8xf16>
// CHECK: host.launch @[[NAME]](%{{.*}}, %{{.*}}, %[[IMAGE]])
// CHECK: llvm.func @[[NAME]]_image(
// CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<8xf16>
// CHECK: llvm.func @[[NAME]](
// CHECK: nvvm.cp.async.shared.global
// CHECK: wgmma.mma_async
// SCHEDULE-LABEL: func.func @first_layer
// SCHEDULE: lhsLaunch = true
func.func @first_layer(%x: tensor<32x3x224x224xf16>, %y: tensor<7x7x3x64xf16>) -> tensor<32x112x112x64xf16> {
  %r = kernel.region(%a = %x : tensor<32x3x224x224xf16>, %b = %y : tensor<7x7x3x64xf16>) -> (tensor<32x112x112x64xf16>) {
    %t = prim.transpose %a [0, 2, 3, 1] : tensor<32x3x224x224xf16> -> tensor<32x224x224x3xf16>
    %d = prim.conv %t, %b strides [2, 2] dilations [1, 1] pads [3, 3] [3, 3] groups 1 : (tensor<32x224x224x3xf16>, tensor<7x7x3x64xf16>) -> tensor<32x112x112x64xf16>
    kernel.yield %d : tensor<32x112x112x64xf16>
  }
  return %r : tensor<32x112x112x64xf16>
}

// -----

// Of f32, four; the filter is packed with the zeros between.
// CHECK-LABEL: func.func @first_layer_f32
// CHECK: host.constant {{.*}} tf32 : tensor<64x196xf32>
// CHECK: host.launch @{{.*}}_image({{.*}} -> tensor<8x224x224x4xf32>
// EXACT-LABEL: func.func @first_layer_f32
// EXACT: #kernel.gpu.mma<{{.*}}passes = 3, packsRhs = true, lhsLaunch = true
func.func @first_layer_f32(%x: tensor<8x224x224x3xf32>) -> tensor<8x112x112x64xf32> {
  %w = prim.constant dense<1.5> : tensor<7x7x3x64xf32>
  %r = kernel.region(%a = %x : tensor<8x224x224x3xf32>, %b = %w : tensor<7x7x3x64xf32>) -> (tensor<8x112x112x64xf32>) {
    %d = prim.conv %a, %b strides [2, 2] dilations [1, 1] pads [3, 3] [3, 3] groups 1 : (tensor<8x224x224x3xf32>, tensor<7x7x3x64xf32>) -> tensor<8x112x112x64xf32>
    kernel.yield %d : tensor<8x112x112x64xf32>
  }
  return %r : tensor<8x112x112x64xf32>
}

// -----

// Memory takes longer than three passes over 64 steps of K: TF32 would save no time.
// SCHEDULE-LABEL: func.func @bound_by_memory
// SCHEDULE: #kernel.gpu.mma<{{.*}}passes = 3
func.func @bound_by_memory(%x: tensor<8192x64xf32>, %y: tensor<64x64xf32>) -> tensor<8192x64xf32> {
  %r = kernel.region(%a = %x : tensor<8192x64xf32>, %b = %y : tensor<64x64xf32>) -> (tensor<8192x64xf32>) attributes {cost = #tc.cost<flops = 67108864, bytes = 4210688>} {
    %d = prim.dot_general %a, %b batch [] x [] contract [1] x [0] : (tensor<8192x64xf32>, tensor<64x64xf32>) -> tensor<8192x64xf32>
    kernel.yield %d : tensor<8192x64xf32>
  }
  return %r : tensor<8192x64xf32>
}

// -----

// Over 1024 steps it does not.
// SCHEDULE-LABEL: func.func @bound_by_products
// SCHEDULE: #kernel.gpu.mma<
// SCHEDULE-NOT: passes = 3
// SCHEDULE: return
func.func @bound_by_products(%x: tensor<8192x1024xf32>, %y: tensor<1024x1024xf32>) -> tensor<8192x1024xf32> {
  %r = kernel.region(%a = %x : tensor<8192x1024xf32>, %b = %y : tensor<1024x1024xf32>) -> (tensor<8192x1024xf32>) attributes {cost = #tc.cost<flops = 17179869184, bytes = 71303168>} {
    %d = prim.dot_general %a, %b batch [] x [] contract [1] x [0] : (tensor<8192x1024xf32>, tensor<1024x1024xf32>) -> tensor<8192x1024xf32>
    kernel.yield %d : tensor<8192x1024xf32>
  }
  return %r : tensor<8192x1024xf32>
}
