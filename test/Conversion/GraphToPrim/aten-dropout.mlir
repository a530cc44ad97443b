// Dropout of ATen draws numbers in training, and is its operand else. Whole channels are left out by one number each; all by p = 1.
// RUN: tc-opt %s --split-input-file --tc-convert-graph-to-prim | FileCheck %s

// CHECK-LABEL: func.func @eval
// CHECK: return %arg0
graph.func @eval(%x: tensor<2x3xf32> {graph.name = "x"}) -> (tensor<2x3xf32>) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"dropout.default" opset 1(%x) {arg_names = ["input"], p = 0.5 : f64, train = false} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  graph.yield %y : tensor<2x3xf32>
}

// -----

// CHECK-LABEL: func.func @trains
// CHECK: prim.compare ge {{.*}} tensor<2x3xf32>
// CHECK: prim.splat 1.33333{{[0-9]*}} : f32 : tensor<2x3xf32>
// CHECK: prim.mul %arg0
graph.func @trains(%x: tensor<2x3xf32> {graph.name = "x"}) -> (tensor<2x3xf32>) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"dropout.default" opset 1(%x) {arg_names = ["input"], p = 0.25 : f64, train = true} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  graph.yield %y : tensor<2x3xf32>
}

// -----

// CHECK-LABEL: func.func @channels
// CHECK: prim.compare ge {{.*}} tensor<2x3x1x1xf32>
graph.func @channels(%x: tensor<2x3x4x5xf32> {graph.name = "x"}) -> (tensor<2x3x4x5xf32>) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"feature_dropout.default" opset 1(%x) {arg_names = ["input"], p = 0.25 : f64, train = true} : (tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32>
  graph.yield %y : tensor<2x3x4x5xf32>
}

// -----

// CHECK-LABEL: func.func @none
// CHECK-NOT: prim.compare
// CHECK: prim.mul %arg0
graph.func @none(%x: tensor<2x3xf32> {graph.name = "x"}) -> (tensor<2x3xf32>) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"dropout.default" opset 1(%x) {arg_names = ["input"], p = 1.0 : f64, train = true} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  graph.yield %y : tensor<2x3xf32>
}

// -----

// The weights of attention are left out: it is written out.
// CHECK-LABEL: func.func @attention
// CHECK: prim.softmax
// CHECK: prim.compare ge {{.*}} tensor<1x2x4x4xf32>
// CHECK: prim.dot_general
// CHECK-NOT: prim.attention
graph.func @attention(%q: tensor<1x2x4x8xf32> {graph.name = "q"}) -> (tensor<1x2x4x8xf32>) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"scaled_dot_product_attention.default" opset 1(%q, %q, %q) {arg_names = ["query", "key", "value"], dropout_p = 0.5 : f64} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32>
  graph.yield %y : tensor<1x2x4x8xf32>
}
