// Proves: how a region reads each input, its work and its bytes (include/tc/Analysis/RegionInfo.h), as tc-fuse writes them.
// RUN: tc-opt %s --tc-fuse | FileCheck %s

// CHECK-LABEL: func.func @layer_norm
// CHECK: kernel.region
// CHECK-SAME: bytes = 3150852>
// CHECK-SAME: reads = ["full", "row", "column", "scalar"]
func.func @layer_norm(%x: tensor<4x128x768xf32>, %r: tensor<4x128xf32>, %w: tensor<768xf32>, %s: tensor<f32>) -> tensor<4x128x768xf32> {
  %m = prim.reduce max %x [2] : tensor<4x128x768xf32> -> tensor<4x128xf32>
  %a = prim.add %m, %r : tensor<4x128xf32>
  %b = prim.broadcast %a [0, 1] : tensor<4x128xf32> -> tensor<4x128x768xf32>
  %d = prim.sub %x, %b : tensor<4x128x768xf32>
  %c = prim.broadcast %w [2] : tensor<768xf32> -> tensor<4x128x768xf32>
  %e = prim.mul %d, %c : tensor<4x128x768xf32>
  %f = prim.broadcast %s [] : tensor<f32> -> tensor<4x128x768xf32>
  %y = prim.mul %e, %f : tensor<4x128x768xf32>
  return %y : tensor<4x128x768xf32>
}

// A gather needs the rows that it takes and its indices, not the whole table.
// CHECK-LABEL: func.func @embedding
// CHECK: kernel.region
// CHECK-SAME: bytes = 196864>
// CHECK-SAME: reads = ["gathered", "row", "permuted"]
func.func @embedding(%t: tensor<50000x512xf32>, %i: tensor<32xi64>, %p: tensor<512x32xf32>) -> tensor<32x512xf32> {
  %g = prim.gather %t[%i] axis = 0 : (tensor<50000x512xf32>, tensor<32xi64>) -> tensor<32x512xf32>
  %q = prim.transpose %p [1, 0] : tensor<512x32xf32> -> tensor<32x512xf32>
  %y = prim.add %g, %q : tensor<32x512xf32>
  return %y : tensor<32x512xf32>
}

// CHECK-LABEL: func.func @product
// CHECK: kernel.region
// CHECK-SAME: flops = ()[s0] -> (s0 * 16640)
// CHECK-SAME: reads = ["operand", "operand", "column"]
func.func @product(%x: tensor<?x64xf32, #prim.dims<affine_map<()[s0] -> (s0, 64)>>>, %w: tensor<64x128xf32>, %b: tensor<128xf32>)
    -> tensor<?x128xf32, #prim.dims<affine_map<()[s0] -> (s0, 128)>>> attributes {prim.symbols = [#prim.symbol<"n", 1, 64, 1>]} {
  %d = prim.dot_general %x, %w batch [] x [] contract [1] x [0] : (tensor<?x64xf32, #prim.dims<affine_map<()[s0] -> (s0, 64)>>>, tensor<64x128xf32>) -> tensor<?x128xf32, #prim.dims<affine_map<()[s0] -> (s0, 128)>>>
  %c = prim.broadcast %b [1] : tensor<128xf32> -> tensor<?x128xf32, #prim.dims<affine_map<()[s0] -> (s0, 128)>>>
  %a = prim.add %d, %c : tensor<?x128xf32, #prim.dims<affine_map<()[s0] -> (s0, 128)>>>
  %t = prim.tanh %a : tensor<?x128xf32, #prim.dims<affine_map<()[s0] -> (s0, 128)>>>
  return %t : tensor<?x128xf32, #prim.dims<affine_map<()[s0] -> (s0, 128)>>>
}
