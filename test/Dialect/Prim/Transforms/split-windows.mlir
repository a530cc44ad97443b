// RUN: tc-opt %s -tc-split-windows | FileCheck %s

// Maxima may count an element twice: windows that begin 40 after each other make one of 1001, and are split again.
// CHECK-LABEL: func.func @maximum
// CHECK: %[[A:.*]] = prim.window_reduce max %arg0 window [9] strides [1] dilations [1] low [0] : {{.*}} -> tensor<2x3993x1xf32>
// CHECK: %[[B:.*]] = prim.window_reduce max %[[A]] window [5] strides [1] dilations [8] low [0] : {{.*}} -> tensor<2x3961x1xf32>
// CHECK: %[[C:.*]] = prim.window_reduce max %[[B]] window [25] strides [1] dilations [40] low [0] : {{.*}} -> tensor<2x3001x1xf32>
// CHECK: return %[[C]]
func.func @maximum(%x: tensor<2x4000x1xf32>) -> tensor<2x3001x1xf32> {
  %y = prim.window_reduce max %x window [1001] strides [1] dilations [1] low [0] : tensor<2x4000x1xf32> -> tensor<2x3001x1xf32>
  return %y : tensor<2x3001x1xf32>
}

// Sums must not: what is left over comes first, and is added.
// CHECK-LABEL: func.func @sum
// CHECK: %[[S:.*]] = prim.window_reduce sum %arg0 window [13] strides [1] dilations [2] low [50]
// CHECK: %[[P:.*]] = prim.slice %[[S]]
// CHECK: %[[W:.*]] = prim.window_reduce sum %[[P]]
// CHECK: %[[R:.*]] = prim.window_reduce sum %arg0 window [1] strides [1] dilations [2] low [50]
// CHECK: prim.add %[[W]], %[[R]]
func.func @sum(%x: tensor<1x500x8xf32>) -> tensor<1x494x8xf32> {
  %y = prim.window_reduce sum %x window [53] strides [1] dilations [2] low [50] : tensor<1x500x8xf32> -> tensor<1x494x8xf32>
  return %y : tensor<1x494x8xf32>
}

// Sums of f16 are f32 until the end, maxima stay what they are.
// CHECK-LABEL: func.func @half
// CHECK: prim.convert {{.*}} : tensor<1x300x8xf16> -> tensor<1x300x8xf32>
// CHECK: prim.window_reduce sum {{.*}}xf32>
// CHECK: prim.convert {{.*}}xf32> -> tensor<1x201x8xf16>
// CHECK: prim.window_reduce max {{.*}}xf16>
func.func @half(%x: tensor<1x300x8xf16>) -> (tensor<1x201x8xf16>, tensor<1x201x8xf16>) {
  %y = prim.window_reduce sum %x window [100] strides [1] dilations [1] low [0] : tensor<1x300x8xf16> -> tensor<1x201x8xf16>
  %z = prim.window_reduce max %x window [100] strides [1] dilations [1] low [0] : tensor<1x300x8xf16> -> tensor<1x201x8xf16>
  return %y, %z : tensor<1x201x8xf16>, tensor<1x201x8xf16>
}

// Windows that share little, and short ones, stay.
// CHECK-LABEL: func.func @stay
// CHECK: window [100] strides [90]
// CHECK: window [7, 7]
func.func @stay(%x: tensor<1x1000x8xf32>, %i: tensor<1x28x28x8xf32>) -> (tensor<1x11x8xf32>, tensor<1x22x22x8xf32>) {
  %y = prim.window_reduce max %x window [100] strides [90] dilations [1] low [0] : tensor<1x1000x8xf32> -> tensor<1x11x8xf32>
  %z = prim.window_reduce max %i window [7, 7] strides [1, 1] dilations [1, 1] low [0, 0] : tensor<1x28x28x8xf32> -> tensor<1x22x22x8xf32>
  return %y, %z : tensor<1x11x8xf32>, tensor<1x22x22x8xf32>
}
