// Proves: two gathers of neighbours at the same lanes are one of pairs; others stay as they are.
// RUN: tc-opt %s --tc-choose-schedule --tc-lower-kernels=variants=x86-64-v4 | FileCheck %s

// The taps of rows of pixels that are interpolated: elements i and i + 1.
// CHECK-LABEL: host.variant
// CHECK: llvm.func @k0_gather_nd_gather_nd_sub
// CHECK-NOT: masked.gather {{.*}} -> vector<16xf32>
// CHECK: masked.gather {{.*}} -> vector<16xi64>
// CHECK-NOT: masked.gather

// Elements i and i + 2.
// CHECK: llvm.func @k1_gather_nd_gather_nd_add
// CHECK-NOT: masked.gather {{.*}} -> vector<16xi64>
// CHECK: masked.gather {{.*}} -> vector<16xf32>
// CHECK: masked.gather {{.*}} -> vector<16xf32>

func.func @pairs(%x: tensor<40x70xf32>, %i: tensor<5x96x2xi32>) -> tensor<5x96xf32> {
  %r = kernel.region(%a = %x : tensor<40x70xf32>, %at = %i : tensor<5x96x2xi32>) -> (tensor<5x96xf32>) {
    %0 = prim.slice %a from affine_map<() -> (0, 0)> step [1, 1] : tensor<40x70xf32> -> tensor<40x69xf32>
    %1 = prim.slice %a from affine_map<() -> (0, 1)> step [1, 1] : tensor<40x70xf32> -> tensor<40x69xf32>
    %2 = prim.gather_nd %0[%at] batch_dims = 0 : (tensor<40x69xf32>, tensor<5x96x2xi32>) -> tensor<5x96xf32>
    %3 = prim.gather_nd %1[%at] batch_dims = 0 : (tensor<40x69xf32>, tensor<5x96x2xi32>) -> tensor<5x96xf32>
    %4 = prim.sub %3, %2 : tensor<5x96xf32>
    kernel.yield %4 : tensor<5x96xf32>
  }
  return %r : tensor<5x96xf32>
}

func.func @apart(%x: tensor<40x70xf32>, %i: tensor<5x96x2xi32>) -> tensor<5x96xf32> {
  %r = kernel.region(%a = %x : tensor<40x70xf32>, %at = %i : tensor<5x96x2xi32>) -> (tensor<5x96xf32>) {
    %0 = prim.slice %a from affine_map<() -> (0, 0)> step [1, 1] : tensor<40x70xf32> -> tensor<40x68xf32>
    %1 = prim.slice %a from affine_map<() -> (0, 2)> step [1, 1] : tensor<40x70xf32> -> tensor<40x68xf32>
    %2 = prim.gather_nd %0[%at] batch_dims = 0 : (tensor<40x68xf32>, tensor<5x96x2xi32>) -> tensor<5x96xf32>
    %3 = prim.gather_nd %1[%at] batch_dims = 0 : (tensor<40x68xf32>, tensor<5x96x2xi32>) -> tensor<5x96xf32>
    %4 = prim.add %3, %2 : tensor<5x96xf32>
    kernel.yield %4 : tensor<5x96xf32>
  }
  return %r : tensor<5x96xf32>
}
