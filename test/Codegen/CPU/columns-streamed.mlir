// Operands that leave the second-level cache are streamed: long stretches of some rows at once, in tasks of equal size.
// RUN: tc-opt %s --tc-choose-schedule | FileCheck %s
// CHECK: #kernel.schedule<"columns", {columns = 1280 : i64, grain = 1 : i64, rows = 8 : i64}>
// CHECK: #kernel.schedule<"columns", {columns = 128 : i64, grain = {{[0-9]+}} : i64, rows = 0 : i64}>
func.func @main(%x: tensor<185x2500xf32>, %y: tensor<100x2500xf32>) -> (tensor<2500xf32>, tensor<2500xf32>) {
  %0 = kernel.region(%i = %x : tensor<185x2500xf32>) -> (tensor<2500xf32>) {
    %r = prim.reduce sum %i [0] : tensor<185x2500xf32> -> tensor<2500xf32>
    kernel.yield %r : tensor<2500xf32>
  }
  %1 = kernel.region(%i = %y : tensor<100x2500xf32>) -> (tensor<2500xf32>) {
    %r = prim.reduce sum %i [0] : tensor<100x2500xf32> -> tensor<2500xf32>
    kernel.yield %r : tensor<2500xf32>
  }
  return %0, %1 : tensor<2500xf32>, tensor<2500xf32>
}
