// fft as native code, against the interpreter: what stands before it is computed as it reads.
// RUN: %python %S/native.py %s

!x = tensor<?x?x3x2xf32, #prim.dims<affine_map<()[s0, s1] -> (s0, s1, 3, 2)>>>
!y = tensor<?x?x3x2xf32, #prim.dims<affine_map<()[s0, s1, s2] -> (s0, s2, 3, 2)>>>
!l = tensor<?xf32, #prim.dims<affine_map<()[s0, s1, s2] -> (s2)>>>

// CASE: f32[2,500] f32[64]
func.func @window(%x: tensor<2x500xf32>, %w: tensor<64xf32>) -> tensor<14x33x1x2xf32> {
  %0 = prim.iota axis = 0 : tensor<7x64xi64>
  %1 = prim.splat 72 : i64 : tensor<7x64xi64>
  %2 = prim.mul %0, %1 : tensor<7x64xi64>
  %3 = prim.iota axis = 1 : tensor<7x64xi64>
  %4 = prim.add %2, %3 : tensor<7x64xi64>
  %5 = prim.gather %x[%4] axis = 1 : (tensor<2x500xf32>, tensor<7x64xi64>) -> tensor<2x7x64xf32>
  %6 = prim.broadcast %w [2] : tensor<64xf32> -> tensor<2x7x64xf32>
  %7 = prim.mul %5, %6 : tensor<2x7x64xf32>
  %8 = prim.reshape %7 : tensor<2x7x64xf32> -> tensor<14x64x1x1xf32>
  %9 = prim.fft %8 length affine_map<() -> (64)> : tensor<14x64x1x1xf32> -> tensor<14x33x1x2xf32>
  return %9 : tensor<14x33x1x2xf32>
}

// CASE: f32[20,7,2]
func.func @short_transposed(%x: tensor<20x7x2xf32>) -> tensor<7x20x1x2xf32> {
  %0 = prim.transpose %x [1, 0, 2] : tensor<20x7x2xf32> -> tensor<7x20x2xf32>
  %1 = prim.exp %0 : tensor<7x20x2xf32>
  %2 = prim.reshape %1 : tensor<7x20x2xf32> -> tensor<7x20x1x2xf32>
  %3 = prim.fft inverse %2 length affine_map<() -> (20)> : tensor<7x20x1x2xf32> -> tensor<7x20x1x2xf32>
  return %3 : tensor<7x20x1x2xf32>
}

// Real parts only, of a spectrum that is no real one's.
// CASE: f64[3,60,1,2]
func.func @real_parts(%x: tensor<3x60x1x2xf64>) -> (tensor<3x60x1x1xf64>, tensor<3x60x1x1xf64>, tensor<3x60x1x2xf64>) {
  %0 = prim.fft %x length affine_map<() -> (60)> : tensor<3x60x1x2xf64> -> tensor<3x60x1x1xf64>
  %1 = prim.fft inverse %x length affine_map<() -> (60)> : tensor<3x60x1x2xf64> -> tensor<3x60x1x1xf64>
  %2 = prim.fft half %x length affine_map<() -> (60)> : tensor<3x60x1x2xf64> -> tensor<3x60x1x2xf64>
  return %0, %1, %2 : tensor<3x60x1x1xf64>, tensor<3x60x1x1xf64>, tensor<3x60x1x2xf64>
}

// Forward what is mostly asked for backward, and the other way round.
// CASE: f32[3,100,1,1] f32[3,51,1,2]
func.func @directions(%x: tensor<3x100x1x1xf32>, %y: tensor<3x51x1x2xf32>) -> (tensor<3x100x1x2xf32>, tensor<3x100x1x1xf32>) {
  %0 = prim.fft inverse %x length affine_map<() -> (100)> : tensor<3x100x1x1xf32> -> tensor<3x100x1x2xf32>
  %1 = prim.fft half %y length affine_map<() -> (100)> : tensor<3x51x1x2xf32> -> tensor<3x100x1x1xf32>
  return %0, %1 : tensor<3x100x1x2xf32>, tensor<3x100x1x1xf32>
}

// Lengths and sizes that the run knows, where the operand has more elements than the transform, or fewer.
// CASE: f32[2,300,3,2] f32[256]
// CASE: f32[2,200,3,2] f32[256]
// CASE: f32[1,90,3,2] f32[77]
// CASE: f32[1,2,3,2] f32[1]
// CASE: f32[3,1,3,2] f32[2]
// CASE: f32[1,512,3,2] f32[512]
func.func @run_time(%x: !x, %l: !l) -> !y attributes {prim.symbols = [#prim.symbol<"p", 0, 1000, 1>, #prim.symbol<"l", 0, 100000, 1>, #prim.symbol<"n", 1, 100000, 1>]} {
  %0 = prim.fft %x length affine_map<()[s0, s1, s2] -> (s2)> : !x -> !y
  return %0 : !y
}
