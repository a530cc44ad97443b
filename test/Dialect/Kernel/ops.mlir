// Regions and schedules print as they parse.
// RUN: tc-opt %s > %t.once && tc-opt %t.once | diff %t.once -
// RUN: tc-opt %s --mlir-print-op-generic | tc-opt | diff %t.once -
// RUN: FileCheck %s < %t.once

// CHECK-LABEL: func @two
func.func @two(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>) {
  // CHECK: %[[R:.*]]:2 = kernel.region(%[[A:.*]] = %{{.*}} : tensor<4x8xf32>, %[[B:.*]] = %{{.*}} : tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>)
  // CHECK-SAME: attributes {cost = #tc.cost<flops = 200, bytes = 400>, schedule = #kernel.cpu.loops<>} {
  %0:2 = kernel.region(%a = %x : tensor<4x8xf32>, %b = %y : tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>)
      attributes {schedule = #kernel.cpu.loops<>, cost = #tc.cost<flops = 200, bytes = 400>} {
    // CHECK-NEXT: prim.add %[[A]], %[[B]] : tensor<4x8xf32>
    %1 = prim.add %a, %b : tensor<4x8xf32>
    %2 = prim.reduce sum %1 [1] : tensor<4x8xf32> -> tensor<4xf32>
    // CHECK: kernel.yield %{{.*}}, %{{.*}} : tensor<4x8xf32>, tensor<4xf32>
    kernel.yield %1, %2 : tensor<4x8xf32>, tensor<4xf32>
  }
  return %0#0, %0#1 : tensor<4x8xf32>, tensor<4xf32>
}

// CHECK-LABEL: func @no_inputs
func.func @no_inputs() -> tensor<3xi64> {
  // CHECK: kernel.region() -> (tensor<3xi64>) {
  %0 = kernel.region() -> (tensor<3xi64>) {
    %1 = prim.iota axis = 0 : tensor<3xi64>
    kernel.yield %1 : tensor<3xi64>
  }
  return %0 : tensor<3xi64>
}
