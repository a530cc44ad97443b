// Proves: 1x1 convolutions between images that have their channels first are products; strided ones, those whose result stays channels
// last, and several images whose pixels do not fill whole columns stay convolutions.
// RUN: tc-opt %s --pass-pipeline='builtin.module(func.func(tc-pointwise-convs))' | FileCheck %s

// CHECK-LABEL: func.func @alone
// CHECK: %[[X:.*]] = prim.reshape %arg0 : tensor<1x20x17x19xf32> -> tensor<20x323xf32>
// CHECK: %[[P:.*]] = prim.dot_general %{{.*}}, %[[X]] batch [] x [] contract [1] x [0] : (tensor<33x20xf32>, tensor<20x323xf32>) -> tensor<33x323xf32>
// CHECK: %[[Y:.*]] = prim.reshape %[[P]] : tensor<33x323xf32> -> tensor<1x33x17x19xf32>
// CHECK: prim.transpose %[[Y]] [0, 2, 3, 1]
func.func @alone(%x: tensor<1x20x17x19xf32>) -> tensor<1x33x17x19xf32> {
  %w = prim.constant dense<1.0> : tensor<1x1x20x33xf32>
  %s = prim.splat 0.0 : f32 : tensor<1x17x19x33xf32>
  %t = prim.transpose %x [0, 2, 3, 1] : tensor<1x20x17x19xf32> -> tensor<1x17x19x20xf32>
  %c = prim.conv %t, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x17x19x20xf32>, tensor<1x1x20x33xf32>) -> tensor<1x17x19x33xf32>
  %m = prim.max %c, %s : tensor<1x17x19x33xf32>
  %y = prim.transpose %m [0, 3, 1, 2] : tensor<1x17x19x33xf32> -> tensor<1x33x17x19xf32>
  return %y : tensor<1x33x17x19xf32>
}

// CHECK-LABEL: func.func @images
// CHECK: prim.dot_general {{.*}} contract [1] x [1] : (tensor<33x20xf32>, tensor<3x20x320xf32>) -> tensor<33x3x320xf32>
// CHECK: prim.transpose {{.*}} [1, 0, 2] : tensor<33x3x320xf32> -> tensor<3x33x320xf32>
func.func @images(%x: tensor<3x20x320xf32>) -> tensor<3x33x320xf32> {
  %w = prim.constant dense<1.0> : tensor<1x20x33xf32>
  %t = prim.transpose %x [0, 2, 1] : tensor<3x20x320xf32> -> tensor<3x320x20xf32>
  %c = prim.conv %t, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<3x320x20xf32>, tensor<1x20x33xf32>) -> tensor<3x320x33xf32>
  %y = prim.transpose %c [0, 2, 1] : tensor<3x320x33xf32> -> tensor<3x33x320xf32>
  return %y : tensor<3x33x320xf32>
}

// CHECK-LABEL: func.func @unchanged
// CHECK-NOT: prim.dot_general
func.func @unchanged(%x: tensor<3x20x323xf32>, %z: tensor<1x20x646xf32>, %u: tensor<1x20x320xf32>) -> (tensor<3x33x323xf32>, tensor<1x33x323xf32>, tensor<1x320x33xf32>) {
  %w = prim.constant dense<1.0> : tensor<1x20x33xf32>
  %t = prim.transpose %x [0, 2, 1] : tensor<3x20x323xf32> -> tensor<3x323x20xf32>
  %c = prim.conv %t, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<3x323x20xf32>, tensor<1x20x33xf32>) -> tensor<3x323x33xf32>
  %y = prim.transpose %c [0, 2, 1] : tensor<3x323x33xf32> -> tensor<3x33x323xf32>
  %zt = prim.transpose %z [0, 2, 1] : tensor<1x20x646xf32> -> tensor<1x646x20xf32>
  %zc = prim.conv %zt, %w strides [2] dilations [1] pads [0] [0] groups 1 : (tensor<1x646x20xf32>, tensor<1x20x33xf32>) -> tensor<1x323x33xf32>
  %zy = prim.transpose %zc [0, 2, 1] : tensor<1x323x33xf32> -> tensor<1x33x323xf32>
  %ut = prim.transpose %u [0, 2, 1] : tensor<1x20x320xf32> -> tensor<1x320x20xf32>
  %uc = prim.conv %ut, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x320x20xf32>, tensor<1x20x33xf32>) -> tensor<1x320x33xf32>
  return %y, %zy, %uc : tensor<3x33x323xf32>, tensor<1x33x323xf32>, tensor<1x320x33xf32>
}
