// Windows of images that have their channels last go by one dim after the other where they are large, meet borders or have few channels; the
// others are read by each element.
// RUN: tc-opt %s --tc-choose-schedule | FileCheck %s
// CHECK-COUNT-3: #kernel.cpu.window_reduce<
// CHECK-COUNT-3: #kernel.cpu.loops<
func.func @main(%x: tensor<1x14x14x64xf32>, %y: tensor<1x14x14x24xf32>) -> (tensor<1x14x14x64xf32>, tensor<1x14x14x64xf32>, tensor<1x12x12x24xf32>, tensor<1x12x12x64xf32>, tensor<1x7x7x64xf32>, tensor<1x1x1x64xf32>) {
  %0 = kernel.region(%i = %x : tensor<1x14x14x64xf32>) -> (tensor<1x14x14x64xf32>) {
    %r = prim.window_reduce max %i window [5, 5] strides [1, 1] dilations [1, 1] low [2, 2] : tensor<1x14x14x64xf32> -> tensor<1x14x14x64xf32>
    kernel.yield %r : tensor<1x14x14x64xf32>
  }
  %1 = kernel.region(%i = %x : tensor<1x14x14x64xf32>) -> (tensor<1x14x14x64xf32>) {
    %r = prim.window_reduce max %i window [3, 3] strides [1, 1] dilations [1, 1] low [1, 1] : tensor<1x14x14x64xf32> -> tensor<1x14x14x64xf32>
    kernel.yield %r : tensor<1x14x14x64xf32>
  }
  %2 = kernel.region(%i = %y : tensor<1x14x14x24xf32>) -> (tensor<1x12x12x24xf32>) {
    %r = prim.window_reduce sum %i window [3, 3] strides [1, 1] dilations [1, 1] low [0, 0] : tensor<1x14x14x24xf32> -> tensor<1x12x12x24xf32>
    kernel.yield %r : tensor<1x12x12x24xf32>
  }
  %3 = kernel.region(%i = %x : tensor<1x14x14x64xf32>) -> (tensor<1x12x12x64xf32>) {
    %r = prim.window_reduce sum %i window [3, 3] strides [1, 1] dilations [1, 1] low [0, 0] : tensor<1x14x14x64xf32> -> tensor<1x12x12x64xf32>
    kernel.yield %r : tensor<1x12x12x64xf32>
  }
  %4 = kernel.region(%i = %x : tensor<1x14x14x64xf32>) -> (tensor<1x7x7x64xf32>) {
    %r = prim.window_reduce max %i window [2, 2] strides [2, 2] dilations [1, 1] low [0, 0] : tensor<1x14x14x64xf32> -> tensor<1x7x7x64xf32>
    kernel.yield %r : tensor<1x7x7x64xf32>
  }
  %5 = kernel.region(%i = %x : tensor<1x14x14x64xf32>) -> (tensor<1x1x1x64xf32>) {
    %r = prim.window_reduce sum %i window [14, 14] strides [1, 1] dilations [1, 1] low [0, 0] : tensor<1x14x14x64xf32> -> tensor<1x1x1x64xf32>
    kernel.yield %r : tensor<1x1x1x64xf32>
  }
  return %0, %1, %2, %3, %4, %5 : tensor<1x14x14x64xf32>, tensor<1x14x14x64xf32>, tensor<1x12x12x24xf32>, tensor<1x12x12x64xf32>, tensor<1x7x7x64xf32>, tensor<1x1x1x64xf32>
}
