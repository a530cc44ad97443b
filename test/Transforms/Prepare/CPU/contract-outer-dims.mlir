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

// A chain of values that are each read twice is followed once.
// CHECK-LABEL: func.func @chain
// CHECK: prim.dot_general {{.*}} batch [0] x [0]
func.func @chain(%x: tensor<4x20x50xf32>) -> tensor<4x30x50xf32> {
  %w = prim.constant dense<1.0> : tensor<20x30xf32>
  %v0 = prim.dot_general %x, %w batch [] x [] contract [1] x [0] : (tensor<4x20x50xf32>, tensor<20x30xf32>) -> tensor<4x50x30xf32>
  %v1 = prim.mul %v0, %v0 : tensor<4x50x30xf32>
  %v2 = prim.mul %v1, %v1 : tensor<4x50x30xf32>
  %v3 = prim.mul %v2, %v2 : tensor<4x50x30xf32>
  %v4 = prim.mul %v3, %v3 : tensor<4x50x30xf32>
  %v5 = prim.mul %v4, %v4 : tensor<4x50x30xf32>
  %v6 = prim.mul %v5, %v5 : tensor<4x50x30xf32>
  %v7 = prim.mul %v6, %v6 : tensor<4x50x30xf32>
  %v8 = prim.mul %v7, %v7 : tensor<4x50x30xf32>
  %v9 = prim.mul %v8, %v8 : tensor<4x50x30xf32>
  %v10 = prim.mul %v9, %v9 : tensor<4x50x30xf32>
  %v11 = prim.mul %v10, %v10 : tensor<4x50x30xf32>
  %v12 = prim.mul %v11, %v11 : tensor<4x50x30xf32>
  %v13 = prim.mul %v12, %v12 : tensor<4x50x30xf32>
  %v14 = prim.mul %v13, %v13 : tensor<4x50x30xf32>
  %v15 = prim.mul %v14, %v14 : tensor<4x50x30xf32>
  %v16 = prim.mul %v15, %v15 : tensor<4x50x30xf32>
  %v17 = prim.mul %v16, %v16 : tensor<4x50x30xf32>
  %v18 = prim.mul %v17, %v17 : tensor<4x50x30xf32>
  %v19 = prim.mul %v18, %v18 : tensor<4x50x30xf32>
  %v20 = prim.mul %v19, %v19 : tensor<4x50x30xf32>
  %v21 = prim.mul %v20, %v20 : tensor<4x50x30xf32>
  %v22 = prim.mul %v21, %v21 : tensor<4x50x30xf32>
  %v23 = prim.mul %v22, %v22 : tensor<4x50x30xf32>
  %v24 = prim.mul %v23, %v23 : tensor<4x50x30xf32>
  %v25 = prim.mul %v24, %v24 : tensor<4x50x30xf32>
  %v26 = prim.mul %v25, %v25 : tensor<4x50x30xf32>
  %v27 = prim.mul %v26, %v26 : tensor<4x50x30xf32>
  %v28 = prim.mul %v27, %v27 : tensor<4x50x30xf32>
  %v29 = prim.mul %v28, %v28 : tensor<4x50x30xf32>
  %v30 = prim.mul %v29, %v29 : tensor<4x50x30xf32>
  %v31 = prim.mul %v30, %v30 : tensor<4x50x30xf32>
  %v32 = prim.mul %v31, %v31 : tensor<4x50x30xf32>
  %v33 = prim.mul %v32, %v32 : tensor<4x50x30xf32>
  %v34 = prim.mul %v33, %v33 : tensor<4x50x30xf32>
  %v35 = prim.mul %v34, %v34 : tensor<4x50x30xf32>
  %v36 = prim.mul %v35, %v35 : tensor<4x50x30xf32>
  %v37 = prim.mul %v36, %v36 : tensor<4x50x30xf32>
  %v38 = prim.mul %v37, %v37 : tensor<4x50x30xf32>
  %v39 = prim.mul %v38, %v38 : tensor<4x50x30xf32>
  %v40 = prim.mul %v39, %v39 : tensor<4x50x30xf32>
  %y = prim.transpose %v40 [0, 2, 1] : tensor<4x50x30xf32> -> tensor<4x30x50xf32>
  return %y : tensor<4x30x50xf32>
}

// Columns that only the run knows are taken for enough, unless their range says that they are few.
!d = tensor<4x20x?xf32, #prim.dims<affine_map<()[s0] -> (4, 20, s0)>>>
!dt = tensor<4x?x20xf32, #prim.dims<affine_map<()[s0] -> (4, s0, 20)>>>
!e = tensor<4x30x?xf32, #prim.dims<affine_map<()[s0] -> (4, 30, s0)>>>
!et = tensor<4x?x30xf32, #prim.dims<affine_map<()[s0] -> (4, s0, 30)>>>
// CHECK-LABEL: func.func @unknown_columns
// CHECK: prim.dot_general %{{.*}} batch [0] x [0] contract [2] x [1]
func.func @unknown_columns(%x: !d) -> !e attributes {prim.symbols = [#prim.symbol<"n", 0, 9223372036854775807, 1>]} {
  %w = prim.constant dense<1.0> : tensor<20x30xf32>
  %t = prim.transpose %x [0, 2, 1] : !d -> !dt
  %p = prim.dot_general %t, %w batch [] x [] contract [2] x [0] : (!dt, tensor<20x30xf32>) -> !et
  %y = prim.transpose %p [0, 2, 1] : !et -> !e
  return %y : !e
}

// CHECK-LABEL: func.func @few_columns
// CHECK: prim.dot_general %{{.*}} batch [] x [] contract [2] x [0]
func.func @few_columns(%x: !d) -> !e attributes {prim.symbols = [#prim.symbol<"n", 1, 9, 1>]} {
  %w = prim.constant dense<1.0> : tensor<20x30xf32>
  %t = prim.transpose %x [0, 2, 1] : !d -> !dt
  %p = prim.dot_general %t, %w batch [] x [] contract [2] x [0] : (!dt, tensor<20x30xf32>) -> !et
  %y = prim.transpose %p [0, 2, 1] : !et -> !e
  return %y : !e
}
