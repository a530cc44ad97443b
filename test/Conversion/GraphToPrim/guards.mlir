// Sizes that an operator needs to be equal, and that can't be compared at compile time, are compared by a guard.
// RUN: tc-opt %s -tc-convert-graph-to-prim -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @concat
// CHECK: prim.guard eq {{.*}} "Concat needs equal sizes in dim 1"
// CHECK: prim.concat
graph.func @concat(%x: tensor<2x?xf32> {graph.name = "x", graph.dims = ["", "n"]}, %y: tensor<3x?xf32> {graph.name = "y", graph.dims = ["", "m"]}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 17 : i64}} {
  %z = graph.node "ai.onnx":"Concat" opset 17(%x, %y) {axis = 0 : i64} : (tensor<2x?xf32>, tensor<3x?xf32>) -> !tc.unknown
  graph.yield %z : !tc.unknown
}

// -----

// CHECK-LABEL: func.func @matmul
// CHECK: prim.guard eq {{.*}} "MatMul needs equal inner sizes"
// CHECK: prim.dot_general
graph.func @matmul(%x: tensor<2x?xf32> {graph.name = "x", graph.dims = ["", "n"]}, %y: tensor<?x3xf32> {graph.name = "y", graph.dims = ["m", ""]}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 17 : i64}} {
  %z = graph.node "ai.onnx":"MatMul" opset 17(%x, %y) : (tensor<2x?xf32>, tensor<?x3xf32>) -> !tc.unknown
  graph.yield %z : !tc.unknown
}

// -----

// CHECK-LABEL: func.func @squeeze
// CHECK: prim.guard eq {{.*}} "Squeeze needs size 1 in dim 0"
graph.func @squeeze(%x: tensor<?x3xf32> {graph.name = "x", graph.dims = ["n", ""]}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 17 : i64}} {
  %axes = graph.constant dense<0> : tensor<1xi64>
  %z = graph.node "ai.onnx":"Squeeze" opset 17(%x, %axes) : (tensor<?x3xf32>, tensor<1xi64>) -> !tc.unknown
  graph.yield %z : !tc.unknown
}

// -----

// CHECK-LABEL: func.func @reshape
// CHECK: prim.guard eq {{.*}} "Reshape needs as many elements after as before"
graph.func @reshape(%x: tensor<?xf32> {graph.name = "x", graph.dims = ["n"]}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 17 : i64}} {
  %to = graph.constant dense<[-1, 4]> : tensor<2xi64>
  %z = graph.node "ai.onnx":"Reshape" opset 17(%x, %to) : (tensor<?xf32>, tensor<2xi64>) -> !tc.unknown
  graph.yield %z : !tc.unknown
}

// -----

// CHECK-LABEL: func.func @elementwise
// CHECK: prim.guard eq {{.*}} or_one "Add needs sizes that are equal or 1 in dim 0"
graph.func @elementwise(%x: tensor<?xf32> {graph.name = "x", graph.dims = ["n"]}, %y: tensor<5xf32> {graph.name = "y"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 17 : i64}} {
  %z = graph.node "ai.onnx":"Add" opset 17(%x, %y) : (tensor<?xf32>, tensor<5xf32>) -> !tc.unknown
  graph.yield %z : !tc.unknown
}

// -----

// CHECK-LABEL: func.func @space_to_depth
// CHECK: prim.guard eq {{.*}} "SpaceToDepth needs a blocksize that divides dim 2"
// CHECK: prim.transpose %{{.*}} [0, 1, 3, 5, 2, 4]
graph.func @space_to_depth(%x: tensor<1x3x?x8xf32> {graph.name = "x", graph.dims = ["", "", "h", ""]}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 28 : i64}} {
  %z = graph.node "ai.onnx":"SpaceToDepth" opset 28(%x) {blocksize = 2 : i64, mode = "CRD"} : (tensor<1x3x?x8xf32>) -> !tc.unknown
  graph.yield %z : !tc.unknown
}

// -----

// Without axes the result's rank is that of sizes other than 1, unless the model declares another one.
// CHECK-LABEL: func.func @squeeze_all
// CHECK: prim.bind_symbol {{.*}}Squeeze without axes was compiled for sizes other than 1 in dim 0
// CHECK: return %{{.*}} : tensor<?x3xf32
graph.func @squeeze_all(%x: tensor<?x1x3xf32> {graph.name = "x", graph.dims = ["n", "", ""]}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 17 : i64}} {
  %z = graph.node "ai.onnx":"Squeeze" opset 17(%x) : (tensor<?x1x3xf32>) -> !tc.unknown
  graph.yield %z : !tc.unknown
}

// -----

// CHECK-LABEL: func.func @squeeze_declared
// CHECK: prim.bind_symbol {{.*}}does not give the declared rank 1
graph.func @squeeze_declared(%x: tensor<?x?xf32> {graph.name = "x", graph.dims = ["n", "m"]}) -> (tensor<?xf32>) attributes {opsets = {ai.onnx = 17 : i64}} {
  %z = graph.node "ai.onnx":"Squeeze" opset 17(%x) : (tensor<?x?xf32>) -> tensor<?xf32>
  graph.yield %z : tensor<?xf32>
}

// -----

// A size of 0 that inference gives is no promise.
// CHECK-LABEL: func.func @inferred_zero
// CHECK: prim.bind_symbol %{{.*}} to 0
// CHECK-NOT: prim.bind_symbol
graph.func @inferred_zero(%x: tensor<4xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 17 : i64}} {
  %y = graph.node "ai.onnx":"NonZero" opset 17(%x) : (tensor<4xf32>) -> tensor<1x0xi64>
  %z = graph.node "ai.onnx":"Neg" opset 17(%y) : (tensor<1x0xi64>) -> !tc.unknown
  graph.yield %z : !tc.unknown
}
