// Proves: a product with weights over a dim that is not the last in memory has the weights as its left-hand side where its result is
// turned back, directly, behind pointwise ops or behind one further product; else it stays as it is.
// RUN: tc-opt %s --pass-pipeline='builtin.module(func.func(tc-contract-outer-dims))' | FileCheck %s

// CHECK-LABEL: func.func @tokens
// CHECK: %[[W:.*]] = prim.broadcast %{{.*}} [1, 2] : tensor<30x20xf32> -> tensor<4x30x20xf32>
// CHECK: %[[P:.*]] = prim.dot_general %[[W]], %{{.*}} batch [0] x [0] contract [2] x [1] : (tensor<4x30x20xf32>, tensor<4x20x50xf32>) -> tensor<4x30x50xf32>
// CHECK: prim.transpose %[[P]] [0, 2, 1] : tensor<4x30x50xf32> -> tensor<4x50x30xf32>
func.func @tokens(%x: tensor<4x20x50xf32>) -> tensor<4x30x50xf32> {
  %w = prim.constant dense<1.0> : tensor<20x30xf32>
  %s = prim.splat 0.0 : f32 : tensor<4x50x30xf32>
  %t = prim.transpose %x [0, 2, 1] : tensor<4x20x50xf32> -> tensor<4x50x20xf32>
  %p = prim.dot_general %t, %w batch [] x [] contract [2] x [0] : (tensor<4x50x20xf32>, tensor<20x30xf32>) -> tensor<4x50x30xf32>
  %m = prim.max %p, %s : tensor<4x50x30xf32>
  %y = prim.transpose %m [0, 2, 1] : tensor<4x50x30xf32> -> tensor<4x30x50xf32>
  return %y : tensor<4x30x50xf32>
}

// A batch of one is none; a further product over the outputs stands between.
// CHECK-LABEL: func.func @two
// CHECK: %[[X:.*]] = prim.reshape %arg0 : tensor<1x20x50xf32> -> tensor<20x50xf32>
// CHECK: prim.dot_general %{{.*}}, %[[X]] batch [] x [] contract [1] x [0] : (tensor<30x20xf32>, tensor<20x50xf32>) -> tensor<30x50xf32>
func.func @two(%x: tensor<1x20x50xf32>) -> tensor<1x20x50xf32> {
  %w = prim.constant dense<1.0> : tensor<20x30xf32>
  %v = prim.constant dense<1.0> : tensor<30x20xf32>
  %p = prim.dot_general %x, %w batch [] x [] contract [1] x [0] : (tensor<1x20x50xf32>, tensor<20x30xf32>) -> tensor<1x50x30xf32>
  %e = prim.exp %p : tensor<1x50x30xf32>
  %q = prim.dot_general %e, %v batch [] x [] contract [2] x [0] : (tensor<1x50x30xf32>, tensor<30x20xf32>) -> tensor<1x50x20xf32>
  %y = prim.transpose %q [0, 2, 1] : tensor<1x50x20xf32> -> tensor<1x20x50xf32>
  return %y : tensor<1x20x50xf32>
}

// The result is used as it is; the sum is over the last dim; few columns; what is added lies otherwise.
// CHECK-LABEL: func.func @unchanged
// CHECK-COUNT-4: contract [1] x [0]
// CHECK-NOT: prim.broadcast
func.func @unchanged(%x: tensor<4x20x50xf32>, %z: tensor<50x20xf32>, %u: tensor<4x20x5xf32>, %r: tensor<4x50x30xf32>) -> (tensor<4x50x30xf32>, tensor<30x50xf32>, tensor<4x30x5xf32>, tensor<4x30x50xf32>) {
  %w = prim.constant dense<1.0> : tensor<20x30xf32>
  %a = prim.dot_general %x, %w batch [] x [] contract [1] x [0] : (tensor<4x20x50xf32>, tensor<20x30xf32>) -> tensor<4x50x30xf32>
  %b = prim.dot_general %z, %w batch [] x [] contract [1] x [0] : (tensor<50x20xf32>, tensor<20x30xf32>) -> tensor<50x30xf32>
  %bt = prim.transpose %b [1, 0] : tensor<50x30xf32> -> tensor<30x50xf32>
  %c = prim.dot_general %u, %w batch [] x [] contract [1] x [0] : (tensor<4x20x5xf32>, tensor<20x30xf32>) -> tensor<4x5x30xf32>
  %ct = prim.transpose %c [0, 2, 1] : tensor<4x5x30xf32> -> tensor<4x30x5xf32>
  %d = prim.dot_general %x, %w batch [] x [] contract [1] x [0] : (tensor<4x20x50xf32>, tensor<20x30xf32>) -> tensor<4x50x30xf32>
  %ds = prim.add %d, %r : tensor<4x50x30xf32>
  %dt = prim.transpose %ds [0, 2, 1] : tensor<4x50x30xf32> -> tensor<4x30x50xf32>
  return %a, %bt, %ct, %dt : tensor<4x50x30xf32>, tensor<30x50xf32>, tensor<4x30x5xf32>, tensor<4x30x50xf32>
}
