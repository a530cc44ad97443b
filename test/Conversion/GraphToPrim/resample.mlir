// Resize, GridSample, Col2Im, Einsum and Scan as gathers, weights, products and loops. Their numbers: test/Conformance.
// RUN: tc-opt %s -tc-convert-graph-to-prim -split-input-file | FileCheck %s

// Dims of scale 1 are left alone; a size that follows from constants is one.
// CHECK-LABEL: func.func @nearest
// CHECK: prim.gather %arg0[%{{.*}}] axis = 2
// CHECK-NOT: prim.gather
// CHECK: return %{{.*}} : tensor<1x2x6x4xf32>
graph.func @nearest(%x: tensor<1x2x3x4xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 19 : i64}} {
  %none = graph.none : none
  %s = graph.constant dense<[1.0, 1.0, 2.0, 1.0]> : tensor<4xf32>
  %y = graph.node "ai.onnx":"Resize" opset 19(%x, %none, %s) {mode = "nearest"} : (tensor<1x2x3x4xf32>, none, tensor<4xf32>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// Antialiasing contracts the dim with a matrix of weights.
// CHECK-LABEL: func.func @antialias
// CHECK: prim.dot_general %arg0, %{{.*}} contract [3] x [1]
graph.func @antialias(%x: tensor<1x2x3x8xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 19 : i64}} {
  %none = graph.none : none
  %s = graph.constant dense<[1.0, 1.0, 1.0, 0.5]> : tensor<4xf32>
  %y = graph.node "ai.onnx":"Resize" opset 19(%x, %none, %s) {mode = "linear", antialias = 1 : i64} : (tensor<1x2x3x8xf32>, none, tensor<4xf32>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// Two taps in each of two dims.
// CHECK-LABEL: func.func @grid
// CHECK-COUNT-4: prim.gather_nd
// CHECK-NOT: prim.gather_nd
graph.func @grid(%x: tensor<1x2x3x4xf32> {graph.name = "x"}, %g: tensor<1x5x6x2xf32> {graph.name = "g"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 20 : i64}} {
  %y = graph.node "ai.onnx":"GridSample" opset 20(%x, %g) : (tensor<1x2x3x4xf32>, tensor<1x5x6x2xf32>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// CHECK-LABEL: func.func @einsum
// CHECK: prim.dot_general %arg0, %arg1 batch [0] x [0] contract [2] x [1]
graph.func @einsum(%x: tensor<5x2x3xf32> {graph.name = "x"}, %y: tensor<5x3x4xf32> {graph.name = "y"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 12 : i64}} {
  %z = graph.node "ai.onnx":"Einsum" opset 12(%x, %y) {equation = "bij, bjk -> bik"} : (tensor<5x2x3xf32>, tensor<5x3x4xf32>) -> !tc.unknown
  graph.yield %z : !tc.unknown
}

// -----

// CHECK-LABEL: func.func @scan
// CHECK: prim.while %{{.*}} carry %arg0, %{{.*}} : (tensor<i64>, tensor<i1>, tensor<2xf32>, tensor<3x2xf32>)
// CHECK: prim.dynamic_slice %arg1
// CHECK: prim.scatter_nd
graph.func @scan(%s: tensor<2xf32> {graph.name = "s"}, %x: tensor<3x2xf32> {graph.name = "x"}) -> (!tc.unknown, !tc.unknown) attributes {opsets = {ai.onnx = 19 : i64}} {
  %a, %b = graph.node "ai.onnx":"Scan" opset 19(%s, %x) {num_scan_inputs = 1 : i64} graphs "body"(%state: tensor<2xf32>, %slice: tensor<2xf32>) {
    %sum = graph.node "ai.onnx":"Add" opset 19(%state, %slice) : (tensor<2xf32>, tensor<2xf32>) -> !tc.unknown
    graph.yield %sum, %sum : !tc.unknown, !tc.unknown
  } : (tensor<2xf32>, tensor<3x2xf32>) -> (!tc.unknown, !tc.unknown)
  graph.yield %a, %b : !tc.unknown, !tc.unknown
}
