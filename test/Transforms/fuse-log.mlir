// Proves: each decision of fusion and each refusal is printed with its reason.
// RUN: tc-opt %s --mlir-disable-threading --tc-fuse=log=true -o /dev/null 2>&1 | FileCheck %s

// CHECK: fusion: tanh "act" joins dot_general "fc1"
// CHECK: fusion: reduce "max" does not join tanh "act": it needs whole rows of dot_general "fc1", which is computed in tiles
// CHECK: fusion: sub joins reduce "max"
// CHECK: fusion: sub does not join tanh "act": it is in the kernel of reduce "max"
// CHECK: fusion: reduce "sum" does not join sub: it reduces other dims than the last ones
// CHECK: fusion: neg is computed inside reduce "total"
func.func @decisions(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>) {
  %d = prim.dot_general %x, %w batch [] x [] contract [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("fc1")
  %t = prim.tanh %d : tensor<64x64xf32> loc("act")
  %m = prim.reduce max %t [1] : tensor<64x64xf32> -> tensor<64xf32> loc("max")
  %b = prim.broadcast %m [0] : tensor<64xf32> -> tensor<64x64xf32>
  %y = prim.sub %t, %b : tensor<64x64xf32>
  %s = prim.reduce sum %y [0] : tensor<64x64xf32> -> tensor<64xf32> loc("sum")
  %n = prim.neg %x : tensor<64x64xf32>
  %a = prim.reduce sum %n [0] : tensor<64x64xf32> -> tensor<64xf32> loc("total")
  return %y, %s, %a : tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>
}

// CHECK: fusion: sub does not join dot_general "g1": reduce "r" must run between them
func.func @cycle(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %d = prim.dot_general %x, %w batch [] x [] contract [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("g1")
  %m = prim.reduce sum %d [0] : tensor<64x64xf32> -> tensor<64xf32> loc("r")
  %b = prim.broadcast %m [1] : tensor<64xf32> -> tensor<64x64xf32>
  %y = prim.sub %d, %b : tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}
