// Proves: dims that a region's ops treat alike merge by views at its edges; those that differ stay.
// RUN: tc-opt %s --tc-fuse --tc-collapse-dims --tc-verify-fuse --mlir-print-local-scope | FileCheck %s

// An instance norm: batch and channels are the rows, height and width what is reduced.
// CHECK-LABEL: func.func @instance_norm
// CHECK: prim.reshape %{{.*}} : tensor<4x8x28x28xf32> -> tensor<32x784xf32>
// CHECK: kernel.region
// CHECK: prim.reduce sum %{{.*}} [1] : tensor<32x784xf32> -> tensor<32xf32>
// CHECK: prim.broadcast %{{.*}} [0] : tensor<32xf32> -> tensor<32x784xf32>
// CHECK: kernel.yield %{{.*}} : tensor<32x784xf32>
// CHECK: prim.reshape %{{.*}} : tensor<32x784xf32> -> tensor<4x8x28x28xf32>
func.func @instance_norm(%x: tensor<4x8x28x28xf32>) -> tensor<4x8x28x28xf32> {
  %s = prim.reduce sum %x [2, 3] : tensor<4x8x28x28xf32> -> tensor<4x8xf32>
  %k = prim.reshape %s : tensor<4x8xf32> -> tensor<4x8x1x1xf32>
  %b = prim.broadcast %k [0, 1, 2, 3] : tensor<4x8x1x1xf32> -> tensor<4x8x28x28xf32>
  %y = prim.sub %x, %b : tensor<4x8x28x28xf32>
  return %y : tensor<4x8x28x28xf32>
}

// A scale per channel keeps the channels apart; symbolic sizes multiply.
// CHECK-LABEL: func.func @channel_scale
// CHECK: kernel.region
// CHECK: prim.broadcast %{{.*}} [1] : tensor<8xf32> -> tensor<?x8x784xf32,
// CHECK-NOT: prim.reshape{{.*}}tensor<8xf32>
func.func @channel_scale(%x: tensor<?x8x28x28xf32, #prim.dims<affine_map<()[s0] -> (s0, 8, 28, 28)>>>, %w: tensor<8xf32>)
    -> tensor<?x8x28x28xf32, #prim.dims<affine_map<()[s0] -> (s0, 8, 28, 28)>>> attributes {prim.symbols = [#prim.symbol<"n", 1, 64, 1>]} {
  %b = prim.broadcast %w [1] : tensor<8xf32> -> tensor<?x8x28x28xf32, #prim.dims<affine_map<()[s0] -> (s0, 8, 28, 28)>>>
  %y = prim.mul %x, %b : tensor<?x8x28x28xf32, #prim.dims<affine_map<()[s0] -> (s0, 8, 28, 28)>>>
  return %y : tensor<?x8x28x28xf32, #prim.dims<affine_map<()[s0] -> (s0, 8, 28, 28)>>>
}

// Pointwise chains are one dim, constants follow, a last dim of size 1 vanishes.
// CHECK-LABEL: func.func @flat
// CHECK: kernel.region
// CHECK: prim.broadcast %{{.*}} [] : tensor<f32> -> tensor<512xf32>
// CHECK: kernel.yield %{{.*}} : tensor<512xf32>
func.func @flat(%x: tensor<4x128x1xf32>) -> tensor<4x128x1xf32> {
  %c = prim.constant dense<2.0> : tensor<1xf32>
  %b = prim.broadcast %c [2] : tensor<1xf32> -> tensor<4x128x1xf32>
  %y = prim.mul %x, %b : tensor<4x128x1xf32>
  return %y : tensor<4x128x1xf32>
}

// What moves together stays together: a transpose of two pairs of dims becomes one of two dims.
// CHECK-LABEL: func.func @pairs
// CHECK: prim.transpose %{{.*}} [1, 0] : tensor<15x8xf32> -> tensor<8x15xf32>
func.func @pairs(%x: tensor<3x5x2x4xf32>) -> tensor<2x4x3x5xf32> {
  %t = prim.transpose %x [2, 3, 0, 1] : tensor<3x5x2x4xf32> -> tensor<2x4x3x5xf32>
  %y = prim.exp %t : tensor<2x4x3x5xf32>
  return %y : tensor<2x4x3x5xf32>
}

// Weights of a 1x1 convolution: the rows that are transposed are seen.
// CHECK-LABEL: func.func @unit_rows
// CHECK: prim.transpose %{{.*}} [1, 0] : tensor<128x64xf32> -> tensor<64x128xf32>
func.func @unit_rows(%x: tensor<128x64x1x1xf32>) -> tensor<1x1x64x128xf32> {
  %t = prim.transpose %x [2, 3, 1, 0] : tensor<128x64x1x1xf32> -> tensor<1x1x64x128xf32>
  return %t : tensor<1x1x64x128xf32>
}

// A transposed sum of a square matrix relates both dims: nothing merges.
// CHECK-LABEL: func.func @square
// CHECK-NOT: prim.reshape
// CHECK: return
func.func @square(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %t = prim.transpose %x [1, 0] : tensor<8x8xf32> -> tensor<8x8xf32>
  %y = prim.add %x, %t : tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// One value along two dims: they are of one class, and remain two dims beside the last of size 1, which vanishes.
// CHECK-LABEL: func.func @outer
// CHECK: prim.broadcast %{{.*}} [1] : tensor<8xf32> -> tensor<8x8xf32>
// CHECK: prim.broadcast %{{.*}} [0] : tensor<8xf32> -> tensor<8x8xf32>
func.func @outer(%x: tensor<8xf32>) -> tensor<8x8x1xf32> {
  %a = prim.broadcast %x [1] : tensor<8xf32> -> tensor<8x8x1xf32>
  %b = prim.broadcast %x [0] : tensor<8xf32> -> tensor<8x8x1xf32>
  %y = prim.add %a, %b : tensor<8x8x1xf32>
  return %y : tensor<8x8x1xf32>
}

// The axis of a concat and what a slice cuts stay dims of their own; those behind and before them merge.
// CHECK-LABEL: func.func @channels
// CHECK: kernel.region
// CHECK: prim.concat %{{.*}} axis = 1 : (tensor<6x4x784xf32>, tensor<6x2x784xf32>) -> tensor<6x6x784xf32>
// CHECK: prim.slice %{{.*}} from affine_map<() -> (0, 1, 0)> step [1, 2, 1] : tensor<6x6x784xf32> -> tensor<6x2x784xf32>
func.func @channels(%x: tensor<2x3x4x28x28xf32>, %y: tensor<2x3x2x28x28xf32>) -> tensor<2x3x2x28x28xf32> {
  %c = prim.concat %x, %y axis = 2 : (tensor<2x3x4x28x28xf32>, tensor<2x3x2x28x28xf32>) -> tensor<2x3x6x28x28xf32>
  %s = prim.slice %c from affine_map<() -> (0, 0, 1, 0, 0)> step [1, 1, 2, 1, 1] : tensor<2x3x6x28x28xf32> -> tensor<2x3x2x28x28xf32>
  return %s : tensor<2x3x2x28x28xf32>
}

// A pad fills around dims that stay; those that it does not touch merge.
// CHECK-LABEL: func.func @frame
// CHECK: prim.pad %{{.*}}, %{{.*}} low affine_map<() -> (0, 1)> : (tensor<15x28xf32>, tensor<f32>) -> tensor<15x30xf32>
func.func @frame(%x: tensor<3x5x28xf32>) -> tensor<3x5x30xf32> {
  %zero = prim.splat 0.0 : f32 : tensor<f32>
  %y = prim.pad %x, %zero low affine_map<() -> (0, 0, 1)> : (tensor<3x5x28xf32>, tensor<f32>) -> tensor<3x5x30xf32>
  return %y : tensor<3x5x30xf32>
}

// A part of one channel: its dim of size 1 would vanish beside the others'.
// CHECK-LABEL: func.func @one_channel
// CHECK: prim.concat %{{.*}} axis = 1 : (tensor<2x4x28x28xf32>, tensor<2x1x28x28xf32>) -> tensor<2x5x28x28xf32>
func.func @one_channel(%x: tensor<2x4x28x28xf32>, %y: tensor<2x1x28x28xf32>) -> tensor<2x5x28x28xf32> {
  %c = prim.concat %x, %y axis = 1 : (tensor<2x4x28x28xf32>, tensor<2x1x28x28xf32>) -> tensor<2x5x28x28xf32>
  return %c : tensor<2x5x28x28xf32>
}

// A norm whose sum comes back through reshapes of unit dims: they vanish with the dims, and the sum is seen to be a row's.
// CHECK-LABEL: func.func @gated_norm
// CHECK: kernel.region
// CHECK-NOT: prim.reshape
// CHECK: prim.reduce sum %{{.*}} [1] : tensor<32x256xf32> -> tensor<32xf32>
// CHECK-NOT: prim.reshape
// CHECK: kernel.yield %{{.*}} : tensor<32x256xf32>
func.func @gated_norm(%x: tensor<32x256xf32>, %w: tensor<256xf32>) -> tensor<32x256xf32> {
  %v = prim.mul %x, %x : tensor<32x256xf32>
  %g = prim.reshape %v : tensor<32x256xf32> -> tensor<1x32x1x256xf32>
  %s = prim.reduce sum %g [3] : tensor<1x32x1x256xf32> -> tensor<1x32x1xf32>
  %r = prim.rsqrt %s : tensor<1x32x1xf32>
  %u = prim.reshape %r : tensor<1x32x1xf32> -> tensor<32xf32>
  %b = prim.broadcast %u [0] : tensor<32xf32> -> tensor<32x256xf32>
  %wb = prim.broadcast %w [1] : tensor<256xf32> -> tensor<32x256xf32>
  %n = prim.mul %x, %b : tensor<32x256xf32>
  %y = prim.mul %n, %wb : tensor<32x256xf32>
  return %y : tensor<32x256xf32>
}

// Along a dim before a short last one, positions move by rows of that one: both become one. A step of more than 1 keeps them apart, as
// does a value in which something else stands before the short dim, and a dim that is not short.
// CHECK-LABEL: func.func @colours
// CHECK: prim.pad %{{.*}}, %{{.*}} low affine_map<() -> (6)> : (tensor<93xf32>, tensor<f32>) -> tensor<105xf32>
// CHECK: prim.slice %{{.*}} from affine_map<() -> (3)> step [1] : tensor<105xf32> -> tensor<60xf32>
// CHECK: prim.concat %{{.*}} axis = 0 : (tensor<60xf32>, tensor<105xf32>) -> tensor<165xf32>
func.func @colours(%x: tensor<31x3xf32>) -> tensor<55x3xf32> {
  %zero = prim.splat 0.0 : f32 : tensor<f32>
  %p = prim.pad %x, %zero low affine_map<() -> (2, 0)> : (tensor<31x3xf32>, tensor<f32>) -> tensor<35x3xf32>
  %s = prim.slice %p from affine_map<() -> (1, 0)> step [1, 1] : tensor<35x3xf32> -> tensor<20x3xf32>
  %y = prim.concat %s, %p axis = 0 : (tensor<20x3xf32>, tensor<35x3xf32>) -> tensor<55x3xf32>
  return %y : tensor<55x3xf32>
}
// CHECK-LABEL: func.func @colours_of_unknown
#hw = affine_map<()[s0] -> (s0, 3)>
#hw2 = affine_map<()[s0] -> (s0 + 2, 3)>
// CHECK: prim.pad %{{.*}} low affine_map<() -> (3)>
func.func @colours_of_unknown(%x: tensor<?x3xf32, #prim.dims<#hw>>) -> tensor<?x3xf32, #prim.dims<#hw2>> attributes {prim.symbols = [#prim.symbol<"h", 1, 4096, 1>]} {
  %zero = prim.splat 0.0 : f32 : tensor<f32>
  %y = prim.pad %x, %zero low affine_map<() -> (1, 0)> : (tensor<?x3xf32, #prim.dims<#hw>>, tensor<f32>) -> tensor<?x3xf32, #prim.dims<#hw2>>
  return %y : tensor<?x3xf32, #prim.dims<#hw2>>
}
// CHECK-LABEL: func.func @every_other
// CHECK: prim.slice %{{.*}} : tensor<31x3xf32> -> tensor<15x3xf32>
func.func @every_other(%x: tensor<31x3xf32>) -> tensor<15x3xf32> {
  %y = prim.slice %x from affine_map<() -> (1, 0)> step [2, 1] : tensor<31x3xf32> -> tensor<15x3xf32>
  return %y : tensor<15x3xf32>
}
// CHECK-LABEL: func.func @per_colour
// CHECK: prim.pad %{{.*}} -> tensor<35x3xf32>
func.func @per_colour(%x: tensor<31x3xf32>, %b: tensor<3xf32>) -> tensor<35x3xf32> {
  %zero = prim.splat 0.0 : f32 : tensor<f32>
  %p = prim.pad %x, %zero low affine_map<() -> (2, 0)> : (tensor<31x3xf32>, tensor<f32>) -> tensor<35x3xf32>
  %c = prim.broadcast %b [1] : tensor<3xf32> -> tensor<35x3xf32>
  %y = prim.add %p, %c : tensor<35x3xf32>
  return %y : tensor<35x3xf32>
}
// CHECK-LABEL: func.func @long_rows
// CHECK: prim.pad %{{.*}} -> tensor<35x16xf32>
func.func @long_rows(%x: tensor<31x16xf32>) -> tensor<35x16xf32> {
  %zero = prim.splat 0.0 : f32 : tensor<f32>
  %p = prim.pad %x, %zero low affine_map<() -> (2, 0)> : (tensor<31x16xf32>, tensor<f32>) -> tensor<35x16xf32>
  return %p : tensor<35x16xf32>
}
