// RUN: tc-opt %s --tc-sink-window-transposes | FileCheck %s

// An image with its channels first is as many images of one channel.
// CHECK-LABEL: func.func @first
// CHECK: prim.reshape %{{.*}} : tensor<2x3x9x9xf32> -> tensor<6x9x9x1xf32>
// CHECK: prim.window_reduce max {{.*}} : tensor<6x9x9x1xf32> -> tensor<6x5x5x1xf32>
// CHECK: prim.reshape %{{.*}} : tensor<6x5x5x1xf32> -> tensor<2x3x5x5xf32>
// CHECK: prim.transpose %{{.*}} [0, 2, 3, 1] : tensor<2x3x5x5xf32> -> tensor<2x5x5x3xf32>
func.func @first(%x: tensor<2x3x9x9xf32>) -> tensor<2x5x5x3xf32> {
  %0 = prim.transpose %x [0, 2, 3, 1] : tensor<2x3x9x9xf32> -> tensor<2x9x9x3xf32>
  %1 = prim.window_reduce max %0 window [3, 3] strides [2, 2] dilations [1, 1] low [1, 1] : tensor<2x9x9x3xf32> -> tensor<2x5x5x3xf32>
  return %1 : tensor<2x5x5x3xf32>
}

// What others read turned, and transposes of another kind, stay.
// CHECK-LABEL: func.func @shared
// CHECK: prim.window_reduce {{.*}} : tensor<2x9x9x3xf32> -> tensor<2x5x5x3xf32>
func.func @shared(%x: tensor<2x3x9x9xf32>) -> (tensor<2x5x5x3xf32>, tensor<2x9x9x3xf32>) {
  %0 = prim.transpose %x [0, 2, 3, 1] : tensor<2x3x9x9xf32> -> tensor<2x9x9x3xf32>
  %1 = prim.window_reduce max %0 window [3, 3] strides [2, 2] dilations [1, 1] low [1, 1] : tensor<2x9x9x3xf32> -> tensor<2x5x5x3xf32>
  return %1, %0 : tensor<2x5x5x3xf32>, tensor<2x9x9x3xf32>
}
// CHECK-LABEL: func.func @other
// CHECK: prim.window_reduce {{.*}} : tensor<2x9x9x3xf32> -> tensor<2x5x5x3xf32>
func.func @other(%x: tensor<2x9x3x9xf32>) -> tensor<2x5x5x3xf32> {
  %0 = prim.transpose %x [0, 1, 3, 2] : tensor<2x9x3x9xf32> -> tensor<2x9x9x3xf32>
  %1 = prim.window_reduce max %0 window [3, 3] strides [2, 2] dilations [1, 1] low [1, 1] : tensor<2x9x9x3xf32> -> tensor<2x5x5x3xf32>
  return %1 : tensor<2x5x5x3xf32>
}

// Through what stands between two windows.
// CHECK-LABEL: func.func @chain
// CHECK-COUNT-2: prim.window_reduce max {{.*}} : tensor<6x9x9x1xf32> -> tensor<6x9x9x1xf32>
// CHECK: prim.transpose %{{.*}} [0, 2, 3, 1] : tensor<2x3x9x9xf32> -> tensor<2x9x9x3xf32>
// CHECK-NOT: prim.transpose
func.func @chain(%x: tensor<2x3x9x9xf32>) -> tensor<2x9x9x3xf32> {
  %0 = prim.transpose %x [0, 2, 3, 1] : tensor<2x3x9x9xf32> -> tensor<2x9x9x3xf32>
  %1 = prim.window_reduce max %0 window [3, 3] strides [1, 1] dilations [1, 1] low [1, 1] : tensor<2x9x9x3xf32> -> tensor<2x9x9x3xf32>
  %2 = prim.neg %1 : tensor<2x9x9x3xf32>
  %3 = prim.window_reduce max %2 window [3, 3] strides [1, 1] dilations [1, 1] low [1, 1] : tensor<2x9x9x3xf32> -> tensor<2x9x9x3xf32>
  return %3 : tensor<2x9x9x3xf32>
}

// Channels outermost are images, too.
// CHECK-LABEL: func.func @outermost
// CHECK: prim.window_reduce max {{.*}} : tensor<6x9x9x1xf32> -> tensor<6x5x5x1xf32>
// CHECK: prim.reshape %{{.*}} : tensor<6x5x5x1xf32> -> tensor<3x2x5x5xf32>
// CHECK: prim.transpose %{{.*}} [1, 2, 3, 0] : tensor<3x2x5x5xf32> -> tensor<2x5x5x3xf32>
func.func @outermost(%x: tensor<3x2x9x9xf32>) -> tensor<2x5x5x3xf32> {
  %0 = prim.transpose %x [1, 2, 3, 0] : tensor<3x2x9x9xf32> -> tensor<2x9x9x3xf32>
  %1 = prim.window_reduce max %0 window [3, 3] strides [2, 2] dilations [1, 1] low [1, 1] : tensor<2x9x9x3xf32> -> tensor<2x5x5x3xf32>
  return %1 : tensor<2x5x5x3xf32>
}
