// Attention in the forms that exporters write.
// RUN: tc-opt %s -tc-canonicalize-prim -tc-recognize-composites -canonicalize -split-input-file | FileCheck %s

// The square root of the scale on both sides, the key transposed before it is scaled.
// CHECK-LABEL: func.func @both_sides
// CHECK-NEXT: prim.attention %arg0, %arg1, %arg2 scale 1.250000e-01
// CHECK-NEXT: return
func.func @both_sides(%q: tensor<2x4x8x64xf32>, %k: tensor<2x4x16x64xf32>, %v: tensor<2x4x16x64xf32>) -> tensor<2x4x8x64xf32> {
  %c = prim.splat 0.25 : f32 : tensor<2x4x8x64xf32>
  %d = prim.splat 0.5 : f32 : tensor<2x4x64x16xf32>
  %0 = prim.mul %q, %c : tensor<2x4x8x64xf32>
  %1 = prim.transpose %k [0, 1, 3, 2] : tensor<2x4x16x64xf32> -> tensor<2x4x64x16xf32>
  %2 = prim.mul %1, %d : tensor<2x4x64x16xf32>
  %3 = prim.dot_general %0, %2 batch [0, 1] x [0, 1] contract [3] x [2] : (tensor<2x4x8x64xf32>, tensor<2x4x64x16xf32>) -> tensor<2x4x8x16xf32>
  %4 = prim.softmax %3 axis = 3 : tensor<2x4x8x16xf32>
  %5 = prim.dot_general %4, %v batch [0, 1] x [0, 1] contract [3] x [2] : (tensor<2x4x8x16xf32>, tensor<2x4x16x64xf32>) -> tensor<2x4x8x64xf32>
  return %5 : tensor<2x4x8x64xf32>
}

// -----

// Division after the product, then a mask.
// CHECK-LABEL: func.func @masked
// CHECK-NEXT: prim.attention %arg0, %arg1, %arg2 mask %arg3 scale 1.250000e-01
func.func @masked(%q: tensor<2x8x64xf32>, %k: tensor<2x16x64xf32>, %v: tensor<2x16x64xf32>, %mask: tensor<2x8x16xf32>) -> tensor<2x8x64xf32> {
  %c = prim.splat 8.0 : f32 : tensor<2x8x16xf32>
  %0 = prim.dot_general %q, %k batch [0] x [0] contract [2] x [2] : (tensor<2x8x64xf32>, tensor<2x16x64xf32>) -> tensor<2x8x16xf32>
  %1 = prim.div %0, %c : tensor<2x8x16xf32>
  %2 = prim.add %1, %mask : tensor<2x8x16xf32>
  %3 = prim.softmax %2 axis = 2 : tensor<2x8x16xf32>
  %4 = prim.dot_general %3, %v batch [0] x [0] contract [2] x [1] : (tensor<2x8x16xf32>, tensor<2x16x64xf32>) -> tensor<2x8x64xf32>
  return %4 : tensor<2x8x64xf32>
}

// -----

// The weights are an output: they must exist.
// CHECK-LABEL: func.func @weights_are_read
// CHECK: prim.softmax
// CHECK-NOT: prim.attention
func.func @weights_are_read(%q: tensor<2x8x64xf32>, %k: tensor<2x16x64xf32>, %v: tensor<2x16x64xf32>) -> (tensor<2x8x64xf32>, tensor<2x8x16xf32>) {
  %0 = prim.dot_general %q, %k batch [0] x [0] contract [2] x [2] : (tensor<2x8x64xf32>, tensor<2x16x64xf32>) -> tensor<2x8x16xf32>
  %3 = prim.softmax %0 axis = 2 : tensor<2x8x16xf32>
  %4 = prim.dot_general %3, %v batch [0] x [0] contract [2] x [1] : (tensor<2x8x16xf32>, tensor<2x16x64xf32>) -> tensor<2x8x64xf32>
  return %4, %3 : tensor<2x8x64xf32>, tensor<2x8x16xf32>
}

// -----

// Weights that are no numbers count as 0, as PyTorch writes it.
// CHECK-LABEL: func.func @safe
// CHECK-NEXT: prim.attention %arg0, %arg1, %arg2 scale 1.000000e+00 zero_nan
// CHECK-NEXT: return
func.func @safe(%q: tensor<2x8x64xf32>, %k: tensor<2x16x64xf32>, %v: tensor<2x16x64xf32>) -> tensor<2x8x64xf32> {
  %z = prim.splat 0.0 : f32 : tensor<2x8x16xf32>
  %0 = prim.dot_general %q, %k batch [0] x [0] contract [2] x [2] : (tensor<2x8x64xf32>, tensor<2x16x64xf32>) -> tensor<2x8x16xf32>
  %1 = prim.softmax %0 axis = 2 : tensor<2x8x16xf32>
  %2 = prim.is_nan %1 : tensor<2x8x16xf32> -> tensor<2x8x16xi1>
  %3 = prim.select %2, %z, %1 : tensor<2x8x16xi1>, tensor<2x8x16xf32>
  %4 = prim.dot_general %3, %v batch [0] x [0] contract [2] x [1] : (tensor<2x8x16xf32>, tensor<2x16x64xf32>) -> tensor<2x8x64xf32>
  return %4 : tensor<2x8x64xf32>
}

// -----

// Where other weights are replaced, they are not that.
// CHECK-LABEL: func.func @replaced_by_one
// CHECK: prim.softmax
// CHECK-NOT: prim.attention
func.func @replaced_by_one(%q: tensor<2x8x64xf32>, %k: tensor<2x16x64xf32>, %v: tensor<2x16x64xf32>) -> tensor<2x8x64xf32> {
  %z = prim.splat 1.0 : f32 : tensor<2x8x16xf32>
  %0 = prim.dot_general %q, %k batch [0] x [0] contract [2] x [2] : (tensor<2x8x64xf32>, tensor<2x16x64xf32>) -> tensor<2x8x16xf32>
  %1 = prim.softmax %0 axis = 2 : tensor<2x8x16xf32>
  %2 = prim.is_nan %1 : tensor<2x8x16xf32> -> tensor<2x8x16xi1>
  %3 = prim.select %2, %z, %1 : tensor<2x8x16xi1>, tensor<2x8x16xf32>
  %4 = prim.dot_general %3, %v batch [0] x [0] contract [2] x [1] : (tensor<2x8x16xf32>, tensor<2x16x64xf32>) -> tensor<2x8x64xf32>
  return %4 : tensor<2x8x64xf32>
}

// -----

// A triangle of ones where 0 is hidden, for each head.
// CHECK-LABEL: func.func @causal_by_positions
// CHECK: prim.attention %arg0, %arg1, %arg2 scale 1.000000e+00 causal
!n = tensor<1x2x?x64xf32, #prim.dims<affine_map<()[s0] -> (1, 2, s0, 64)>>>
!i = tensor<?x?xi64, #prim.dims<affine_map<()[s0] -> (s0, s0)>>>
!b = tensor<?x?xi1, #prim.dims<affine_map<()[s0] -> (s0, s0)>>>
!f = tensor<?x?xf32, #prim.dims<affine_map<()[s0] -> (s0, s0)>>>
!m = tensor<1x2x?x?xf32, #prim.dims<affine_map<()[s0] -> (1, 2, s0, s0)>>>
func.func @causal_by_positions(%q: !n, %k: !n, %v: !n) -> !n attributes {prim.symbols = [#prim.symbol<"n", 1, 512, 1>]} {
  %t = prim.iota axis = 0 : !i
  %s = prim.iota axis = 1 : !i
  %ge = prim.compare ge %t, %s : !i -> !b
  %one = prim.splat 1.0 : f32 : !f
  %zero = prim.splat 0.0 : f32 : !f
  %low = prim.select %ge, %one, %zero : !b, !f
  %hidden = prim.compare eq %low, %zero : !f -> !b
  %least = prim.splat -3.40282347E+38 : f32 : !f
  %mask = prim.select %hidden, %least, %zero : !b, !f
  %all = prim.broadcast %mask [2, 3] : !f -> !m
  %y = prim.attention %q, %k, %v mask %all scale 1.0 : (!n, !n, !n, !m) -> !n
  return %y : !n
}

// -----

// The same, where queries that see nothing would see all: there are none.
// CHECK-LABEL: func.func @causal_seeing
// CHECK-NOT: prim.reduce
// CHECK: prim.attention %arg0, %arg1, %arg2 scale 1.000000e+00 causal
!n = tensor<1x2x?x64xf32, #prim.dims<affine_map<()[s0] -> (1, 2, s0, 64)>>>
!i = tensor<?x?xi64, #prim.dims<affine_map<()[s0] -> (s0, s0)>>>
!b = tensor<?x?xi1, #prim.dims<affine_map<()[s0] -> (s0, s0)>>>
!f = tensor<?x?xf32, #prim.dims<affine_map<()[s0] -> (s0, s0)>>>
!r = tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>
!c = tensor<?xi1, #prim.dims<affine_map<()[s0] -> (s0)>>>
!m = tensor<1x2x?x?xf32, #prim.dims<affine_map<()[s0] -> (1, 2, s0, s0)>>>
func.func @causal_seeing(%q: !n, %k: !n, %v: !n) -> (!n, !c) attributes {prim.symbols = [#prim.symbol<"n", 1, 512, 1>]} {
  %t = prim.iota axis = 0 : !i
  %s = prim.iota axis = 1 : !i
  %ge = prim.compare ge %t, %s : !i -> !b
  %zero = prim.splat 0.0 : f32 : !f
  %least = prim.splat 0xFF800000 : f32 : !f
  %mask = prim.select %ge, %zero, %least : !b, !f
  %most = prim.reduce max %mask [1] : !f -> !r
  %none = prim.splat 0xFF800000 : f32 : !r
  %blind = prim.compare eq %most, %none : !r -> !c
  %each = prim.broadcast %blind [0] : !c -> !b
  %seeing = prim.select %each, %zero, %mask : !b, !f
  %all = prim.broadcast %seeing [2, 3] : !f -> !m
  %y = prim.attention %q, %k, %v mask %all scale 1.0 : (!n, !n, !n, !m) -> !n
  return %y, %blind : !n, !c
}

// -----

// A constant, of two positions behind one that was there before.
// CHECK-LABEL: func.func @causal_constant
// CHECK-NEXT: prim.attention %arg0, %arg1, %arg2 scale 1.000000e+00 causal
func.func @causal_constant(%q: tensor<1x2x8xf32>, %k: tensor<1x3x8xf32>, %v: tensor<1x3x8xf32>) -> tensor<1x2x8xf32> {
  %m = prim.constant dense<[[[0.0, 0.0, 0xFF800000], [0.0, 0.0, 0.0]]]> : tensor<1x2x3xf32>
  %y = prim.attention %q, %k, %v mask %m scale 1.0 : (tensor<1x2x8xf32>, tensor<1x3x8xf32>, tensor<1x3x8xf32>, tensor<1x2x3xf32>) -> tensor<1x2x8xf32>
  return %y : tensor<1x2x8xf32>
}

// -----

// One that hides a position of the past too, one that hides too little, and one of which the first position sees nothing but may weigh it.
// CHECK-LABEL: func.func @not_causal
// CHECK-COUNT-3: prim.attention {{.*}} mask
func.func @not_causal(%q: tensor<1x2x8xf32>, %k: tensor<1x2x8xf32>, %v: tensor<1x2x8xf32>, %k1: tensor<1x1x8xf32>) -> (tensor<1x2x8xf32>, tensor<1x2x8xf32>, tensor<1x2x8xf32>) {
  %past = prim.constant dense<[[[0.0, 0xFF800000], [0xFF800000, 0.0]]]> : tensor<1x2x2xf32>
  %little = prim.constant dense<[[[0.0, -100.0], [0.0, 0.0]]]> : tensor<1x2x2xf32>
  %none = prim.constant dense<[[[-3.40282347E+38], [0.0]]]> : tensor<1x2x1xf32>
  %x = prim.attention %q, %k, %v mask %past scale 1.0 : (tensor<1x2x8xf32>, tensor<1x2x8xf32>, tensor<1x2x8xf32>, tensor<1x2x2xf32>) -> tensor<1x2x8xf32>
  %y = prim.attention %q, %k, %v mask %little scale 1.0 : (tensor<1x2x8xf32>, tensor<1x2x8xf32>, tensor<1x2x8xf32>, tensor<1x2x2xf32>) -> tensor<1x2x8xf32>
  %z = prim.attention %q, %k1, %k1 mask %none scale 1.0 : (tensor<1x2x8xf32>, tensor<1x1x8xf32>, tensor<1x1x8xf32>, tensor<1x2x1xf32>) -> tensor<1x2x8xf32>
  return %x, %y, %z : tensor<1x2x8xf32>, tensor<1x2x8xf32>, tensor<1x2x8xf32>
}

// -----

// The square root of the scale on query and key before they are split into heads.
// CHECK-LABEL: func.func @scaled_before_heads
// CHECK-NOT: prim.mul
// CHECK: prim.attention %{{.*}}, %{{.*}}, %arg2 scale 1.250000e-01
func.func @scaled_before_heads(%q: tensor<8x128xf32>, %k: tensor<16x128xf32>, %v: tensor<2x16x64xf32>) -> tensor<2x8x64xf32> {
  %c = prim.splat 0.25 : f32 : tensor<8x128xf32>
  %d = prim.splat 0.5 : f32 : tensor<16x128xf32>
  %0 = prim.mul %q, %c : tensor<8x128xf32>
  %1 = prim.reshape %0 : tensor<8x128xf32> -> tensor<8x2x64xf32>
  %2 = prim.transpose %1 [1, 0, 2] : tensor<8x2x64xf32> -> tensor<2x8x64xf32>
  %3 = prim.mul %k, %d : tensor<16x128xf32>
  %4 = prim.reshape %3 : tensor<16x128xf32> -> tensor<16x2x64xf32>
  %5 = prim.transpose %4 [1, 0, 2] : tensor<16x2x64xf32> -> tensor<2x16x64xf32>
  %6 = prim.attention %2, %5, %v scale 1.0 : (tensor<2x8x64xf32>, tensor<2x16x64xf32>, tensor<2x16x64xf32>) -> tensor<2x8x64xf32>
  return %6 : tensor<2x8x64xf32>
}

// -----

// Positions of 8 bits wrap: 128 and more are no later ones.
// CHECK-LABEL: func.func @positions_wrap
// CHECK: prim.attention {{.*}} mask
func.func @positions_wrap(%q: tensor<1x300x8xf32>, %k: tensor<1x300x8xf32>, %v: tensor<1x300x8xf32>) -> tensor<1x300x8xf32> {
  %t = prim.iota axis = 1 : tensor<1x300x300xi64>
  %s = prim.iota axis = 2 : tensor<1x300x300xi64>
  %t8 = prim.convert %t : tensor<1x300x300xi64> -> tensor<1x300x300xi8>
  %s8 = prim.convert %s : tensor<1x300x300xi64> -> tensor<1x300x300xi8>
  %later = prim.compare gt %s8, %t8 : tensor<1x300x300xi8> -> tensor<1x300x300xi1>
  %zero = prim.splat 0.0 : f32 : tensor<1x300x300xf32>
  %least = prim.splat 0xFF800000 : f32 : tensor<1x300x300xf32>
  %m = prim.select %later, %least, %zero : tensor<1x300x300xi1>, tensor<1x300x300xf32>
  %y = prim.attention %q, %k, %v mask %m scale 1.0 : (tensor<1x300x8xf32>, tensor<1x300x8xf32>, tensor<1x300x8xf32>, tensor<1x300x300xf32>) -> tensor<1x300x8xf32>
  return %y : tensor<1x300x8xf32>
}
