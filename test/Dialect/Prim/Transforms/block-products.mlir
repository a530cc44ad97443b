// Proves: products with weights of bytes that are widened and scaled, by rows or by blocks of rows, are block products, along either dim,
// with and without zeros; those whose rows have no block of 16, whose scales vary within it, whose bytes are computed, or that are small
// as floats, stay.
// RUN: tc-opt %s --pass-pipeline='builtin.module(func.func(tc-block-products))' | FileCheck %s

// CHECK-LABEL: func.func @blocks
// CHECK: prim.block_dot %arg0, {{.*}} bits = 8 block = 64 : (tensor<3x768xf32>, tensor<500x768xi8>, tensor<500x12xf32>) -> tensor<3x500xf32>
func.func @blocks(%x: tensor<3x768xf32>) -> tensor<3x500xf32> {
  %q = prim.constant dense<7> : tensor<6000x64xi8>
  %s0 = prim.constant dense<0.5> : tensor<3000xf32>
  %s1 = prim.constant dense<0.25> : tensor<3000xf32>
  %s = prim.concat %s0, %s1 axis = 0 : (tensor<3000xf32>, tensor<3000xf32>) -> tensor<6000xf32>
  %f = prim.convert %q : tensor<6000x64xi8> -> tensor<6000x64xf32>
  %b = prim.broadcast %s [0] : tensor<6000xf32> -> tensor<6000x64xf32>
  %m = prim.mul %f, %b : tensor<6000x64xf32>
  %w = prim.reshape %m : tensor<6000x64xf32> -> tensor<500x768xf32>
  %y = prim.dot_general %x, %w batch [] x [] contract [1] x [1] : (tensor<3x768xf32>, tensor<500x768xf32>) -> tensor<3x500xf32>
  return %y : tensor<3x500xf32>
}

// A scale for each row: of blocks of as large a power of two as divides it.
// CHECK-LABEL: func.func @rows
// CHECK: prim.block_dot {{.*}} bits = 8 block = 32 : (tensor<2x5x96xf32>, tensor<300x96xi8>, tensor<300x3xf32>) -> tensor<2x5x300xf32>
func.func @rows(%x: tensor<2x5x96xf32>) -> tensor<2x5x300xf32> {
  %q = prim.constant dense<7> : tensor<300x96xi8>
  %s0 = prim.constant dense<0.5> : tensor<150x1xf32>
  %s1 = prim.constant dense<0.25> : tensor<150x1xf32>
  %s = prim.concat %s0, %s1 axis = 0 : (tensor<150x1xf32>, tensor<150x1xf32>) -> tensor<300x1xf32>
  %f = prim.convert %q : tensor<300x96xi8> -> tensor<300x96xf32>
  %b = prim.broadcast %s [0, 1] : tensor<300x1xf32> -> tensor<300x96xf32>
  %w = prim.mul %b, %f : tensor<300x96xf32>
  %y = prim.dot_general %x, %w batch [] x [] contract [2] x [1] : (tensor<2x5x96xf32>, tensor<300x96xf32>) -> tensor<2x5x300xf32>
  return %y : tensor<2x5x300xf32>
}

// Columns of which each has a scale, and a zero of bytes; differences in i32.
// CHECK-LABEL: func.func @columns
// CHECK: %[[Q:.*]] = prim.transpose {{.*}} -> tensor<200x256xui8>
// CHECK: prim.block_dot %arg0, %[[Q]], {{.*}} zeros {{.*}} bits = 8 block = 128 : (tensor<4x256xf32>, tensor<200x256xui8>, tensor<200x2xf32>, tensor<200x2xf32>) -> tensor<4x200xf32>
func.func @columns(%x: tensor<4x256xf32>) -> tensor<4x200xf32> {
  %q = prim.constant dense<7> : tensor<256x200xui8>
  %z = prim.constant dense<9> : tensor<200xui8>
  %s0 = prim.constant dense<0.5> : tensor<100xf32>
  %s1 = prim.constant dense<0.25> : tensor<100xf32>
  %s = prim.concat %s0, %s1 axis = 0 : (tensor<100xf32>, tensor<100xf32>) -> tensor<200xf32>
  %i = prim.convert %q : tensor<256x200xui8> -> tensor<256x200xi32>
  %zb = prim.broadcast %z [1] : tensor<200xui8> -> tensor<256x200xui8>
  %zi = prim.convert %zb : tensor<256x200xui8> -> tensor<256x200xi32>
  %d = prim.sub %i, %zi : tensor<256x200xi32>
  %f = prim.convert %d : tensor<256x200xi32> -> tensor<256x200xf32>
  %b = prim.broadcast %s [1] : tensor<200xf32> -> tensor<256x200xf32>
  %w = prim.mul %f, %b : tensor<256x200xf32>
  %y = prim.dot_general %x, %w batch [] x [] contract [1] x [0] : (tensor<4x256xf32>, tensor<256x200xf32>) -> tensor<4x200xf32>
  return %y : tensor<4x200xf32>
}

// A zero that is taken off anyway, a scale that is one number.
// CHECK-LABEL: func.func @uniform
// CHECK: prim.block_dot %arg0, %{{[0-9]+}}, %{{[0-9]+}} bits = 8 block = 128 : (tensor<4x256xf32>, tensor<200x256xui8>, tensor<200x2xf32>) -> tensor<4x200xf32>
func.func @uniform(%x: tensor<4x256xf32>) -> tensor<4x200xf32> {
  %q = prim.constant dense<7> : tensor<200x256xui8>
  %f = prim.convert %q : tensor<200x256xui8> -> tensor<200x256xf32>
  %z = prim.splat 128.0 : f32 : tensor<200x256xf32>
  %d = prim.sub %f, %z : tensor<200x256xf32>
  %s = prim.splat 0.5 : f32 : tensor<200x256xf32>
  %w = prim.mul %d, %s : tensor<200x256xf32>
  %y = prim.dot_general %x, %w batch [] x [] contract [1] x [1] : (tensor<4x256xf32>, tensor<200x256xf32>) -> tensor<4x200xf32>
  return %y : tensor<4x200xf32>
}

// CHECK-LABEL: func.func @unchanged
// CHECK-NOT: prim.block_dot
func.func @unchanged(%x: tensor<3x72xf32>, %g: tensor<300x96xi8>, %z: tensor<3x96xf32>) -> (tensor<3x300xf32>, tensor<3x300xf32>, tensor<3x300xf32>) {
  %q = prim.constant dense<7> : tensor<300x72xi8>
  %s = prim.constant dense<0.5> : tensor<300xf32>
  %f = prim.convert %q : tensor<300x72xi8> -> tensor<300x72xf32>
  %b = prim.broadcast %s [0] : tensor<300xf32> -> tensor<300x72xf32>
  %w = prim.mul %f, %b : tensor<300x72xf32>
  %y = prim.dot_general %x, %w batch [] x [] contract [1] x [1] : (tensor<3x72xf32>, tensor<300x72xf32>) -> tensor<3x300xf32>
  %gf = prim.convert %g : tensor<300x96xi8> -> tensor<300x96xf32>
  %gb = prim.broadcast %s [0] : tensor<300xf32> -> tensor<300x96xf32>
  %gw = prim.mul %gf, %gb : tensor<300x96xf32>
  %gy = prim.dot_general %z, %gw batch [] x [] contract [1] x [1] : (tensor<3x96xf32>, tensor<300x96xf32>) -> tensor<3x300xf32>
  %k = prim.constant dense<7> : tensor<300x96xi8>
  %t0 = prim.constant dense<0.5> : tensor<48xf32>
  %t1 = prim.constant dense<0.25> : tensor<48xf32>
  %t = prim.concat %t0, %t1 axis = 0 : (tensor<48xf32>, tensor<48xf32>) -> tensor<96xf32>
  %kf = prim.convert %k : tensor<300x96xi8> -> tensor<300x96xf32>
  %kb = prim.broadcast %t [1] : tensor<96xf32> -> tensor<300x96xf32>
  %kw = prim.mul %kf, %kb : tensor<300x96xf32>
  %ky = prim.dot_general %z, %kw batch [] x [] contract [1] x [1] : (tensor<3x96xf32>, tensor<300x96xf32>) -> tensor<3x300xf32>
  return %y, %gy, %ky : tensor<3x300xf32>, tensor<3x300xf32>, tensor<3x300xf32>
}

// CHECK-LABEL: func.func @small
// CHECK-NOT: prim.block_dot
func.func @small(%x: tensor<3x64xf32>) -> tensor<3x64xf32> {
  %q = prim.constant dense<7> : tensor<64x64xi8>
  %w = prim.convert %q : tensor<64x64xi8> -> tensor<64x64xf32>
  %y = prim.dot_general %x, %w batch [] x [] contract [1] x [1] : (tensor<3x64xf32>, tensor<64x64xf32>) -> tensor<3x64xf32>
  return %y : tensor<3x64xf32>
}
