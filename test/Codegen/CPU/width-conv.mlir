// Proves: convolutions with few channels in the result have lanes along the image's lines, wherever the channels lie; those that fill
// vectors with channels do not.
// RUN: tc-opt %s --tc-choose-schedule | FileCheck %s
// RUN: tc-opt %s --tc-choose-schedule --tc-lower-kernels=variants=x86-64-v4 | FileCheck %s --check-prefix=LOWER

// Channels last in memory: turned in registers.
// CHECK-LABEL: func.func @to_one
// CHECK: #kernel.cpu.width_conv<{{.*}}tileW = 64{{[,>]}}{{.*}}transposed = true{{.*}}vectors256 = 8{{[,>]}}{{.*}}vectors512 = 4{{[,>]}}
// The filter's scalars are spread, and vectors of a line multiplied by them.
// LOWER-LABEL: llvm.func @k0_conv
// LOWER: llvm.intr.fmuladd(%{{.*}}) : (vector<16xf32>, vector<16xf32>, vector<16xf32>) -> vector<16xf32>
func.func @to_one(%x: tensor<1x64x64x32xf32>, %w: tensor<3x3x32x1xf32>) -> tensor<1x64x64x1xf32> {
  %r = kernel.region(%a = %x : tensor<1x64x64x32xf32>, %b = %w : tensor<3x3x32x1xf32>) -> (tensor<1x64x64x1xf32>) {
    %0 = prim.conv %a, %b strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x64x64x32xf32>, tensor<3x3x32x1xf32>) -> tensor<1x64x64x1xf32>
    kernel.yield %0 : tensor<1x64x64x1xf32>
  }
  return %r : tensor<1x64x64x1xf32>
}

// Channels first, before and behind: read and written along the lines.
// CHECK-LABEL: func.func @blur
// CHECK: #kernel.cpu.width_conv<{{.*}}tileH = {{[0-9]+}}{{.*}}tileW = 112{{[,>]}}{{.*}}rows256 = {{[0-9]+}}{{.*}}vectors256 = 7{{[,>]}}{{.*}}rows512 = {{[0-9]+}}{{.*}}vectors512 = 7{{[,>]}}
func.func @blur(%x: tensor<1x3x50x100xf32>, %w: tensor<5x5x1x3xf32>) -> tensor<1x3x50x100xf32> {
  %r = kernel.region(%a = %x : tensor<1x3x50x100xf32>, %b = %w : tensor<5x5x1x3xf32>) -> (tensor<1x3x50x100xf32>) {
    %t = prim.transpose %a [0, 2, 3, 1] : tensor<1x3x50x100xf32> -> tensor<1x50x100x3xf32>
    %0 = prim.conv %t, %b strides [1, 1] dilations [1, 1] pads [2, 2] [2, 2] groups 3 : (tensor<1x50x100x3xf32>, tensor<5x5x1x3xf32>) -> tensor<1x50x100x3xf32>
    %s = prim.transpose %0 [0, 3, 1, 2] : tensor<1x50x100x3xf32> -> tensor<1x3x50x100xf32>
    kernel.yield %s : tensor<1x3x50x100xf32>
  }
  return %r : tensor<1x3x50x100xf32>
}

// Half a vector of channels is better.
// CHECK-LABEL: func.func @to_eight
// CHECK: #kernel.cpu.winograd<
func.func @to_eight(%x: tensor<1x64x64x32xf32>) -> tensor<1x64x64x8xf32> {
  %w = prim.constant dense<1.0> : tensor<3x3x32x8xf32>
  %r = kernel.region(%a = %x : tensor<1x64x64x32xf32>, %b = %w : tensor<3x3x32x8xf32>) -> (tensor<1x64x64x8xf32>) {
    %0 = prim.conv %a, %b strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x64x64x32xf32>, tensor<3x3x32x8xf32>) -> tensor<1x64x64x8xf32>
    kernel.yield %0 : tensor<1x64x64x8xf32>
  }
  return %r : tensor<1x64x64x8xf32>
}

// Neither are groups of one channel whose results together fill a vector.
// CHECK-LABEL: func.func @groups_of_one
// CHECK-NOT: "lines"
func.func @groups_of_one(%x: tensor<1x22x256x8xf32>) -> tensor<1x1x256x16xf32> {
  %w = prim.constant dense<1.0> : tensor<22x1x1x16xf32>
  %r = kernel.region(%a = %x : tensor<1x22x256x8xf32>, %b = %w : tensor<22x1x1x16xf32>) -> (tensor<1x1x256x16xf32>) {
    %0 = prim.conv %a, %b strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 8 : (tensor<1x22x256x8xf32>, tensor<22x1x1x16xf32>) -> tensor<1x1x256x16xf32>
    kernel.yield %0 : tensor<1x1x256x16xf32>
  }
  return %r : tensor<1x1x256x16xf32>
}

// Of 34 channels, three panels of 16 would have 14 empty lanes: blocks of their columns, whose sums are turned before they are stored.
// CHECK-LABEL: func.func @to_34
// CHECK: #kernel.cpu.width_conv<{{.*}}transposed = true{{.*}}vectors256 = 2{{[,>]}}{{.*}}cols256 = 6{{[,>]}}{{.*}}vectors512 = 2{{[,>]}}{{.*}}cols512 = 12{{[,>]}}
func.func @to_34(%x: tensor<1x1000x19xf32>) -> tensor<1x1000x34xf32> {
  %w = prim.constant dense<1.0> : tensor<9x19x34xf32>
  %r = kernel.region(%a = %x : tensor<1x1000x19xf32>, %b = %w : tensor<9x19x34xf32>) -> (tensor<1x1000x34xf32>) {
    %0 = prim.conv %a, %b strides [1] dilations [7] pads [28] [28] groups 1 : (tensor<1x1000x19xf32>, tensor<9x19x34xf32>) -> tensor<1x1000x34xf32>
    kernel.yield %0 : tensor<1x1000x34xf32>
  }
  return %r : tensor<1x1000x34xf32>
}

// Of 46, few are: panels.
// CHECK-LABEL: func.func @to_46
// CHECK: #kernel.cpu.contract<
func.func @to_46(%x: tensor<1x1000x19xf32>) -> tensor<1x1000x46xf32> {
  %w = prim.constant dense<1.0> : tensor<9x19x46xf32>
  %r = kernel.region(%a = %x : tensor<1x1000x19xf32>, %b = %w : tensor<9x19x46xf32>) -> (tensor<1x1000x46xf32>) {
    %0 = prim.conv %a, %b strides [1] dilations [7] pads [28] [28] groups 1 : (tensor<1x1000x19xf32>, tensor<9x19x46xf32>) -> tensor<1x1000x46xf32>
    kernel.yield %0 : tensor<1x1000x46xf32>
  }
  return %r : tensor<1x1000x46xf32>
}

// Groups of 19 channels fill 19 of the 32 lanes of their panels; no Winograd's algorithm takes groups.
// CHECK-LABEL: func.func @groups_of_19
// CHECK: #kernel.cpu.width_conv<
func.func @groups_of_19(%x: tensor<1x55x95x24xf32>) -> tensor<1x55x95x57xf32> {
  %w = prim.constant dense<1.0> : tensor<3x3x8x57xf32>
  %r = kernel.region(%a = %x : tensor<1x55x95x24xf32>, %b = %w : tensor<3x3x8x57xf32>) -> (tensor<1x55x95x57xf32>) {
    %0 = prim.conv %a, %b strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 3 : (tensor<1x55x95x24xf32>, tensor<3x3x8x57xf32>) -> tensor<1x55x95x57xf32>
    kernel.yield %0 : tensor<1x55x95x57xf32>
  }
  return %r : tensor<1x55x95x57xf32>
}

// Their panels leave out the kernel positions that read nothing but padding, which is most of them here.
// CHECK-LABEL: func.func @mostly_padding
// CHECK: #kernel.cpu.contract<
func.func @mostly_padding(%x: tensor<1x8x128x54xf32>) -> tensor<1x8x128x54xf32> {
  %w = prim.constant dense<1.0> : tensor<7x7x18x54xf32>
  %r = kernel.region(%a = %x : tensor<1x8x128x54xf32>, %b = %w : tensor<7x7x18x54xf32>) -> (tensor<1x8x128x54xf32>) {
    %0 = prim.conv %a, %b strides [1, 1] dilations [4, 4] pads [12, 12] [12, 12] groups 3 : (tensor<1x8x128x54xf32>, tensor<7x7x18x54xf32>) -> tensor<1x8x128x54xf32>
    kernel.yield %0 : tensor<1x8x128x54xf32>
  }
  return %r : tensor<1x8x128x54xf32>
}

// One channel to 33 between images that lie channels first: sums are stored along the lines, none is turned.
// CHECK-LABEL: func.func @one_to_33
// CHECK: #kernel.cpu.width_conv<{{.*}}cols256 = {{[0-9]+}}{{.*}}cols512 = {{[0-9]+}}
func.func @one_to_33(%x: tensor<4x1x1000xf32>) -> tensor<4x33x1000xf32> {
  %w = prim.constant dense<1.0> : tensor<25x1x33xf32>
  %r = kernel.region(%a = %x : tensor<4x1x1000xf32>, %b = %w : tensor<25x1x33xf32>) -> (tensor<4x33x1000xf32>) {
    %t = prim.transpose %a [0, 2, 1] : tensor<4x1x1000xf32> -> tensor<4x1000x1xf32>
    %0 = prim.conv %t, %b strides [1] dilations [1] pads [12] [12] groups 1 : (tensor<4x1000x1xf32>, tensor<25x1x33xf32>) -> tensor<4x1000x33xf32>
    %s = prim.transpose %0 [0, 2, 1] : tensor<4x1000x33xf32> -> tensor<4x33x1000xf32>
    kernel.yield %s : tensor<4x33x1000xf32>
  }
  return %r : tensor<4x33x1000xf32>
}
