// atan2 as native code, against the interpreter: in all quadrants, of zeros, of infinities and of NaN, in vectors and in what is left of them.
// RUN: %python %S/native.py %s

// CASE: f32[37] f32[37]
// CASE: f32[37] f32[37]=0
// CASE: f32[37]=0 f32[37]
// CASE: f32[37]=0 f32[37]=0
// CASE: f32[37]! f32[37]!
// CASE: f32[37]! f32[37]=0
func.func @atan2(%y: tensor<37xf32>, %x: tensor<37xf32>) -> tensor<37xf32> {
  %0 = prim.atan2 %y, %x : tensor<37xf32>
  return %0 : tensor<37xf32>
}

// The sign of a zero tells the side: pi on the left.
// CASE: f32[37]=0
func.func @left(%y: tensor<37xf32>) -> tensor<37xf32> {
  %x = prim.neg %y : tensor<37xf32>
  %0 = prim.atan2 %y, %x : tensor<37xf32>
  return %0 : tensor<37xf32>
}

// CASE: f32[]=0 f32[]=0
func.func @alone(%y: tensor<f32>, %x: tensor<f32>) -> tensor<f32> {
  %0 = prim.atan2 %y, %x : tensor<f32>
  return %0 : tensor<f32>
}
