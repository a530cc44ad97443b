// Positions of grid_sample that are no number, infinite or far away are read where PyTorch's CPU kernels read them, which
// differ for images and volumes; expected values are PyTorch's.
// RUN: tc-opt %s --tc-convert-graph-to-prim -o %t.mlir
// RUN: tc-interpret %t.mlir --function images > %t.txt
// RUN: tc-interpret %t.mlir --function volumes >> %t.txt
// RUN: FileCheck %s < %t.txt

graph.func @images() -> (tensor<1x1x1x6xf32>, tensor<1x1x1x6xf32>, tensor<1x1x1x6xf32>, tensor<1x1x1x6xf32>, tensor<1x1x1x6xf32>, tensor<1x1x1x6xf32>) attributes {opsets = {aten = 1 : i64}} {
  %x = graph.constant dense<[[[[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0], [8.0, 9.0, 10.0, 11.0]]]]> : tensor<1x1x3x4xf32>
  %g = graph.constant dense<[[[[0x7FC00000, 0.0], [0x7F800000, 0.5], [0xFF800000, -0.5], [0.25, 0x7FC00000], [10000000000.0, -10000000000.0], [2.5, 2.5]]]]> : tensor<1x1x6x2xf32>
  // CHECK: tensor<1x1x1x6xf32> [4, 10, 1, 2, 3, 11]
  %0 = graph.node "aten":"grid_sampler.default" opset 1(%x, %g) {arg_names = ["input", "grid"], interpolation_mode = 0 : i64, padding_mode = 1 : i64, align_corners = false} : (tensor<1x1x3x4xf32>, tensor<1x1x6x2xf32>) -> tensor<1x1x1x6xf32>
  // CHECK: tensor<1x1x1x6xf32> [4, 6, 2, 1.875, 0, 2.75]
  %1 = graph.node "aten":"grid_sampler.default" opset 1(%x, %g) {arg_names = ["input", "grid"], interpolation_mode = 0 : i64, padding_mode = 2 : i64, align_corners = true} : (tensor<1x1x3x4xf32>, tensor<1x1x6x2xf32>) -> tensor<1x1x1x6xf32>
  // CHECK: tensor<1x1x1x6xf32> [4, 7, 1, 2, 0, 1.5]
  %2 = graph.node "aten":"grid_sampler.default" opset 1(%x, %g) {arg_names = ["input", "grid"], interpolation_mode = 0 : i64, padding_mode = 2 : i64, align_corners = false} : (tensor<1x1x3x4xf32>, tensor<1x1x6x2xf32>) -> tensor<1x1x1x6xf32>
  // CHECK: tensor<1x1x1x6xf32> [4, 11, 0, 2, 3, 11]
  %3 = graph.node "aten":"grid_sampler.default" opset 1(%x, %g) {arg_names = ["input", "grid"], interpolation_mode = 1 : i64, padding_mode = 1 : i64, align_corners = false} : (tensor<1x1x3x4xf32>, tensor<1x1x6x2xf32>) -> tensor<1x1x1x6xf32>
  // CHECK: tensor<1x1x1x6xf32> [4, 8, 0, 2, 0, 0]
  %4 = graph.node "aten":"grid_sampler.default" opset 1(%x, %g) {arg_names = ["input", "grid"], interpolation_mode = 1 : i64, padding_mode = 2 : i64, align_corners = false} : (tensor<1x1x3x4xf32>, tensor<1x1x6x2xf32>) -> tensor<1x1x1x6xf32>
  // CHECK: tensor<1x1x1x6xf32> [nan, nan, nan, nan, 3, 11]
  %5 = graph.node "aten":"grid_sampler.default" opset 1(%x, %g) {arg_names = ["input", "grid"], interpolation_mode = 2 : i64, padding_mode = 1 : i64, align_corners = false} : (tensor<1x1x3x4xf32>, tensor<1x1x6x2xf32>) -> tensor<1x1x1x6xf32>
  graph.yield %0, %1, %2, %3, %4, %5 : tensor<1x1x1x6xf32>, tensor<1x1x1x6xf32>, tensor<1x1x1x6xf32>, tensor<1x1x1x6xf32>, tensor<1x1x1x6xf32>, tensor<1x1x1x6xf32>
}

graph.func @volumes() -> (tensor<1x1x1x1x5xf32>, tensor<1x1x1x1x5xf32>, tensor<1x1x1x1x5xf32>, tensor<1x1x1x1x5xf32>, tensor<1x1x1x1x5xf32>) attributes {opsets = {aten = 1 : i64}} {
  %x = graph.constant dense<[[[[[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0], [8.0, 9.0, 10.0, 11.0]], [[12.0, 13.0, 14.0, 15.0], [16.0, 17.0, 18.0, 19.0], [20.0, 21.0, 22.0, 23.0]]]]]> : tensor<1x1x2x3x4xf32>
  %g = graph.constant dense<[[[[[0x7FC00000, 0.0, 0.5], [0x7F800000, 0.5, 0x7FC00000], [0xFF800000, -0.5, 0.0], [0.25, 0x7F800000, 0xFF800000], [10000000000.0, -10000000000.0, 0.5]]]]]> : tensor<1x1x1x5x3xf32>
  // CHECK: tensor<1x1x1x1x5xf32> [0, 0, 0, 0, 0]
  %0 = graph.node "aten":"grid_sampler.default" opset 1(%x, %g) {arg_names = ["input", "grid"], interpolation_mode = 0 : i64, padding_mode = 0 : i64, align_corners = false} : (tensor<1x1x2x3x4xf32>, tensor<1x1x1x5x3xf32>) -> tensor<1x1x1x1x5xf32>
  // CHECK: tensor<1x1x1x1x5xf32> [19, 22, 7, 10, 15]
  %1 = graph.node "aten":"grid_sampler.default" opset 1(%x, %g) {arg_names = ["input", "grid"], interpolation_mode = 0 : i64, padding_mode = 1 : i64, align_corners = false} : (tensor<1x1x2x3x4xf32>, tensor<1x1x1x5x3xf32>) -> tensor<1x1x1x1x5xf32>
  // CHECK: tensor<1x1x1x1x5xf32> [16, 21, 11, 21.875, 11]
  %2 = graph.node "aten":"grid_sampler.default" opset 1(%x, %g) {arg_names = ["input", "grid"], interpolation_mode = 0 : i64, padding_mode = 2 : i64, align_corners = true} : (tensor<1x1x2x3x4xf32>, tensor<1x1x1x5x3xf32>) -> tensor<1x1x1x1x5xf32>
  // CHECK: tensor<1x1x1x1x5xf32> [19, 23, 0, 10, 15]
  %3 = graph.node "aten":"grid_sampler.default" opset 1(%x, %g) {arg_names = ["input", "grid"], interpolation_mode = 1 : i64, padding_mode = 1 : i64, align_corners = false} : (tensor<1x1x2x3x4xf32>, tensor<1x1x1x5x3xf32>) -> tensor<1x1x1x1x5xf32>
  // CHECK: tensor<1x1x1x1x5xf32> [19, 23, 3, 22, 20]
  %4 = graph.node "aten":"grid_sampler.default" opset 1(%x, %g) {arg_names = ["input", "grid"], interpolation_mode = 1 : i64, padding_mode = 2 : i64, align_corners = false} : (tensor<1x1x2x3x4xf32>, tensor<1x1x1x5x3xf32>) -> tensor<1x1x1x1x5xf32>
  graph.yield %0, %1, %2, %3, %4 : tensor<1x1x1x1x5xf32>, tensor<1x1x1x1x5xf32>, tensor<1x1x1x1x5xf32>, tensor<1x1x1x1x5xf32>, tensor<1x1x1x1x5xf32>
}
