// A dilation beside which the image is small: tasks are lower, and leave out kernel positions that read nothing but padding. Patches that are
// whole lines of a small image leave out the outputs at the border; of a large one that would be too few.
// RUN: tc-opt %s --tc-choose-schedule | FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK: #kernel.cpu.contract<{{.*}}tileH = 4{{[,>]}}{{.*}}skipH = true{{.*}}skipW = true
// CHECK: #kernel.cpu.contract<{{.*}}skipW = true{{.*}}patchW512 = 7{{[,>]}}
// CHECK: #kernel.cpu.contract<
// CHECK-NOT: skip
func.func @main(%x: tensor<1x14x14x96xf32>, %y: tensor<1x56x56x96xf32>) -> (tensor<1x14x14x64xf32>, tensor<1x7x7x64xf32>, tensor<1x28x28x64xf32>) {
  %w = prim.constant dense<1.0> : tensor<3x3x96x64xf32>
  %0 = kernel.region(%i = %x : tensor<1x14x14x96xf32>, %f = %w : tensor<3x3x96x64xf32>) -> (tensor<1x14x14x64xf32>) {
    %r = prim.conv %i, %f strides [1, 1] dilations [12, 12] pads [12, 12] [12, 12] groups 1 : (tensor<1x14x14x96xf32>, tensor<3x3x96x64xf32>) -> tensor<1x14x14x64xf32>
    kernel.yield %r : tensor<1x14x14x64xf32>
  }
  %1 = kernel.region(%i = %x : tensor<1x14x14x96xf32>, %f = %w : tensor<3x3x96x64xf32>) -> (tensor<1x7x7x64xf32>) {
    %r = prim.conv %i, %f strides [2, 2] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x14x14x96xf32>, tensor<3x3x96x64xf32>) -> tensor<1x7x7x64xf32>
    kernel.yield %r : tensor<1x7x7x64xf32>
  }
  %2 = kernel.region(%i = %y : tensor<1x56x56x96xf32>, %f = %w : tensor<3x3x96x64xf32>) -> (tensor<1x28x28x64xf32>) {
    %r = prim.conv %i, %f strides [2, 2] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x56x56x96xf32>, tensor<3x3x96x64xf32>) -> tensor<1x28x28x64xf32>
    kernel.yield %r : tensor<1x28x28x64xf32>
  }
  return %0, %1, %2 : tensor<1x14x14x64xf32>, tensor<1x7x7x64xf32>, tensor<1x28x28x64xf32>
}
