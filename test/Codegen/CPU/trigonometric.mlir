// Proves: sine and cosine take the slow way, a call for each lane, for finite numbers beyond their range only: lanes that are off, of the
// last vector or of a matrix of 8 columns, hold infinity or NaN where their operands are divided.
// RUN: tc-opt %s --tc-choose-schedule --tc-lower-kernels=variants=x86-64-v4 | FileCheck %s

// CHECK: %[[MAGNITUDE:.*]] = llvm.intr.fabs(%[[X:.*]]) : (vector<16xf32>) -> vector<16xf32>
// CHECK: %[[BEYOND:.*]] = llvm.fcmp "ogt" %[[MAGNITUDE]], %{{.*}} : vector<16xf32>
// CHECK: %[[FINITE:.*]] = llvm.fcmp "olt" %[[MAGNITUDE]], %{{.*}} : vector<16xf32>
// CHECK: %[[FAR:.*]] = llvm.and %[[BEYOND]], %[[FINITE]] : vector<16xi1>
// CHECK-NEXT: "llvm.intr.vector.reduce.or"(%[[FAR]])
func.func @sine(%x: tensor<5x8xf32>, %y: tensor<5x8xf32>) -> tensor<5x8xf32> {
  %r = kernel.region(%a = %x : tensor<5x8xf32>, %b = %y : tensor<5x8xf32>) -> (tensor<5x8xf32>) {
    %0 = prim.div %a, %b : tensor<5x8xf32>
    %1 = prim.sin %0 : tensor<5x8xf32>
    kernel.yield %1 : tensor<5x8xf32>
  }
  return %r : tensor<5x8xf32>
}
