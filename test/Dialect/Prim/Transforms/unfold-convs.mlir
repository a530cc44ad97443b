// Convolutions whose filter only the run knows are products; those of constant filters, of few channels a group, of many kernel
// positions and whose windows would take gigabytes are left.
// RUN: tc-opt %s --pass-pipeline='builtin.module(func.func(tc-unfold-convs))' | FileCheck %s

// CHECK-LABEL: func.func @given
// CHECK-NOT: prim.conv
// CHECK: prim.pad
// CHECK-COUNT-9: prim.slice
// CHECK: prim.concat
// CHECK: prim.dot_general %{{.*}}, %{{.*}} batch [0] x [1] contract [2] x [0] : (tensor<2x200x72xf32>, tensor<72x2x12xf32>) -> tensor<2x200x12xf32>
func.func @given(%x: tensor<2x10x10x16xf32>, %w: tensor<3x3x8x24xf32>) -> tensor<2x10x10x24xf32> {
  %v = prim.mul %w, %w : tensor<3x3x8x24xf32>
  %0 = prim.conv %x, %v strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 2 : (tensor<2x10x10x16xf32>, tensor<3x3x8x24xf32>) -> tensor<2x10x10x24xf32>
  return %0 : tensor<2x10x10x24xf32>
}

// Pixels as they lie.
// CHECK-LABEL: func.func @pixels
// CHECK-NOT: prim.pad
// CHECK-NOT: prim.concat
// CHECK: prim.dot_general {{.*}} contract [1] x [0] : (tensor<200x16xf32>, tensor<16x40xf32>) -> tensor<200x40xf32>
func.func @pixels(%x: tensor<2x10x10x16xf32>, %w: tensor<1x1x16x40xf32>) -> tensor<2x10x10x40xf32> {
  %0 = prim.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<2x10x10x16xf32>, tensor<1x1x16x40xf32>) -> tensor<2x10x10x40xf32>
  return %0 : tensor<2x10x10x40xf32>
}

// Groups of few outputs, of many channels.
// CHECK-LABEL: func.func @few_of_groups
// CHECK: prim.dot_general {{.*}} batch [0] x [1] contract [2] x [0] : (tensor<2x900x40xf32>, tensor<40x2x3xf32>) -> tensor<2x900x3xf32>
func.func @few_of_groups(%x: tensor<1x30x30x80xf32>, %w: tensor<1x1x40x6xf32>) -> tensor<1x30x30x6xf32> {
  %0 = prim.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 2 : (tensor<1x30x30x80xf32>, tensor<1x1x40x6xf32>) -> tensor<1x30x30x6xf32>
  return %0 : tensor<1x30x30x6xf32>
}

// Few channels, which come first: slices one behind the other, and a row for each channel of the result.
// CHECK-LABEL: func.func @few_channels
// CHECK: prim.pad {{.*}} -> tensor<2x3x22x32xf32>
// CHECK-COUNT-9: prim.slice {{.*}} -> tensor<2x3x20x30xf32>
// CHECK: prim.concat {{.*}} axis = 1 : {{.*}} -> tensor<2x27x20x30xf32>
// CHECK: prim.dot_general {{.*}} batch [0] x [0] contract [2] x [1] : (tensor<2x16x27xf32>, tensor<2x27x600xf32>) -> tensor<2x16x600xf32>
func.func @few_channels(%x: tensor<2x3x20x30xf32>, %w: tensor<3x3x3x16xf32>) -> tensor<2x20x30x16xf32> {
  %t = prim.transpose %x [0, 2, 3, 1] : tensor<2x3x20x30xf32> -> tensor<2x20x30x3xf32>
  %0 = prim.conv %t, %w strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<2x20x30x3xf32>, tensor<3x3x3x16xf32>) -> tensor<2x20x30x16xf32>
  return %0 : tensor<2x20x30x16xf32>
}

// CHECK-LABEL: func.func @large
// CHECK: prim.conv
// CHECK-NOT: prim.dot_general
func.func @large(%x: tensor<8x226x226x64xf32>, %w: tensor<3x3x64x64xf32>) -> tensor<8x224x224x64xf32> {
  %0 = prim.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<8x226x226x64xf32>, tensor<3x3x64x64xf32>) -> tensor<8x224x224x64xf32>
  return %0 : tensor<8x224x224x64xf32>
}

// CHECK-LABEL: func.func @left
// CHECK-COUNT-3: prim.conv
// CHECK-NOT: prim.dot_general
func.func @left(%x: tensor<2x20x20x16xf32>, %d: tensor<3x3x1x16xf32>, %g: tensor<18x18x16x16xf32>) -> (tensor<2x18x18x16xf32>, tensor<2x18x18x16xf32>, tensor<2x3x3x16xf32>) {
  %c = prim.constant dense<0.5> : tensor<3x3x16x16xf32>
  %0 = prim.conv %x, %c strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<2x20x20x16xf32>, tensor<3x3x16x16xf32>) -> tensor<2x18x18x16xf32>
  %1 = prim.conv %x, %d strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 16 : (tensor<2x20x20x16xf32>, tensor<3x3x1x16xf32>) -> tensor<2x18x18x16xf32>
  %2 = prim.conv %x, %g strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<2x20x20x16xf32>, tensor<18x18x16x16xf32>) -> tensor<2x3x3x16xf32>
  return %0, %1, %2 : tensor<2x18x18x16xf32>, tensor<2x18x18x16xf32>, tensor<2x3x3x16xf32>
}
