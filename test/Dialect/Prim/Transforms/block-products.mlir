// Proves: products with weights of bytes that are widened and scaled, by rows or by blocks of rows, are block products; those whose rows
// have no block of 16, whose scales vary within it, or whose bytes are computed, stay.
// RUN: tc-opt %s --pass-pipeline='builtin.module(func.func(tc-block-products))' | FileCheck %s

// CHECK-LABEL: func.func @blocks
// CHECK: prim.block_dot %arg0, {{.*}} bits = 8 block = 64 : (tensor<3x768xf32>, tensor<500x768xui8>, tensor<500x12xf32>) -> tensor<3x500xf32>
func.func @blocks(%x: tensor<3x768xf32>) -> tensor<3x500xf32> {
  %q = prim.constant dense<7> : tensor<6000x64xi8>
  %s = prim.constant dense<0.5> : tensor<6000xf32>
  %f = prim.convert %q : tensor<6000x64xi8> -> tensor<6000x64xf32>
  %b = prim.broadcast %s [0] : tensor<6000xf32> -> tensor<6000x64xf32>
  %m = prim.mul %f, %b : tensor<6000x64xf32>
  %w = prim.reshape %m : tensor<6000x64xf32> -> tensor<500x768xf32>
  %y = prim.dot_general %x, %w batch [] x [] contract [1] x [1] : (tensor<3x768xf32>, tensor<500x768xf32>) -> tensor<3x500xf32>
  return %y : tensor<3x500xf32>
}

// A scale for each row: of blocks of as large a power of two as divides it.
// CHECK-LABEL: func.func @rows
// CHECK: prim.block_dot {{.*}} bits = 8 block = 32 : (tensor<2x5x96xf32>, tensor<30x96xui8>, tensor<30x3xf32>) -> tensor<2x5x30xf32>
func.func @rows(%x: tensor<2x5x96xf32>) -> tensor<2x5x30xf32> {
  %q = prim.constant dense<7> : tensor<30x96xi8>
  %s = prim.constant dense<0.5> : tensor<30x1xf32>
  %f = prim.convert %q : tensor<30x96xi8> -> tensor<30x96xf32>
  %b = prim.broadcast %s [0, 1] : tensor<30x1xf32> -> tensor<30x96xf32>
  %w = prim.mul %b, %f : tensor<30x96xf32>
  %y = prim.dot_general %x, %w batch [] x [] contract [2] x [1] : (tensor<2x5x96xf32>, tensor<30x96xf32>) -> tensor<2x5x30xf32>
  return %y : tensor<2x5x30xf32>
}

// CHECK-LABEL: func.func @unchanged
// CHECK-NOT: prim.block_dot
func.func @unchanged(%x: tensor<3x72xf32>, %g: tensor<30x96xi8>, %z: tensor<3x96xf32>) -> (tensor<3x30xf32>, tensor<3x30xf32>, tensor<3x30xf32>) {
  %q = prim.constant dense<7> : tensor<30x72xi8>
  %s = prim.constant dense<0.5> : tensor<30xf32>
  %f = prim.convert %q : tensor<30x72xi8> -> tensor<30x72xf32>
  %b = prim.broadcast %s [0] : tensor<30xf32> -> tensor<30x72xf32>
  %w = prim.mul %f, %b : tensor<30x72xf32>
  %y = prim.dot_general %x, %w batch [] x [] contract [1] x [1] : (tensor<3x72xf32>, tensor<30x72xf32>) -> tensor<3x30xf32>
  %gf = prim.convert %g : tensor<30x96xi8> -> tensor<30x96xf32>
  %gb = prim.broadcast %s [0] : tensor<30xf32> -> tensor<30x96xf32>
  %gw = prim.mul %gf, %gb : tensor<30x96xf32>
  %gy = prim.dot_general %z, %gw batch [] x [] contract [1] x [1] : (tensor<3x96xf32>, tensor<30x96xf32>) -> tensor<3x30xf32>
  %k = prim.constant dense<7> : tensor<30x96xi8>
  %t = prim.constant dense<0.5> : tensor<96xf32>
  %kf = prim.convert %k : tensor<30x96xi8> -> tensor<30x96xf32>
  %kb = prim.broadcast %t [1] : tensor<96xf32> -> tensor<30x96xf32>
  %kw = prim.mul %kf, %kb : tensor<30x96xf32>
  %ky = prim.dot_general %z, %kw batch [] x [] contract [1] x [1] : (tensor<3x96xf32>, tensor<30x96xf32>) -> tensor<3x30xf32>
  return %y, %gy, %ky : tensor<3x30xf32>, tensor<3x30xf32>, tensor<3x30xf32>
}
