// What a machine prefers is asked by the target's name: the same plan for all of them so far; others are refused with the names.
// RUN: tc-opt %s --pass-pipeline='builtin.module(func.func(tc-fuse,tc-collapse-dims))' | FileCheck %s
// RUN: tc-opt %s --pass-pipeline='builtin.module(func.func(tc-fuse{device=cuda},tc-collapse-dims{device=cuda}))' | FileCheck %s
// RUN: not tc-opt %s --pass-pipeline='builtin.module(func.func(tc-fuse{device=tpu}))' 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not tc-opt %s --pass-pipeline='builtin.module(func.func(tc-collapse-dims{device=tpu}))' 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: device{{.*}}tpu

// Five channels to four: lanes along the lines of the image, so that the turn of the result stays in the region.
// CHECK-LABEL: func.func @lines
// CHECK: kernel.region
// CHECK: prim.conv
// CHECK: prim.transpose
// CHECK-NOT: kernel.region
func.func @lines(%x: tensor<1x32x32x5xf32>, %w: tensor<3x3x5x4xf32>) -> tensor<1x4x32x32xf32> {
  %0 = prim.conv %x, %w strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x32x32x5xf32>, tensor<3x3x5x4xf32>) -> tensor<1x32x32x4xf32>
  %1 = prim.transpose %0 [0, 3, 1, 2] : tensor<1x32x32x4xf32> -> tensor<1x4x32x32xf32>
  return %1 : tensor<1x4x32x32xf32>
}

// Five channels fill more of a vector: the image is turned by a kernel of its own.
// CHECK-LABEL: func.func @channels
// CHECK: kernel.region
// CHECK: prim.conv
// CHECK: kernel.region
// CHECK: prim.transpose
func.func @channels(%x: tensor<1x32x32x5xf32>, %w: tensor<3x3x5x5xf32>) -> tensor<1x5x32x32xf32> {
  %0 = prim.conv %x, %w strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x32x32x5xf32>, tensor<3x3x5x5xf32>) -> tensor<1x32x32x5xf32>
  %1 = prim.transpose %0 [0, 3, 1, 2] : tensor<1x32x32x5xf32> -> tensor<1x5x32x32xf32>
  return %1 : tensor<1x5x32x32xf32>
}
