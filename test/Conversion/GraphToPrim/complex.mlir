// Complex elements: moved by the same handlers as all others; what is linear is computed on real and imaginary parts. Numbers:
// test/Integration/element_types.py.
// RUN: tc-opt %s -tc-convert-graph-to-prim -split-input-file | FileCheck %s

// A constant is one of its parts.
// CHECK-LABEL: func.func @moved
// CHECK: %[[PARTS:.*]] = prim.constant dense<{{.*}}> : tensor<1x2x2xf32>
// CHECK: %[[C:.*]] = prim.storage %[[PARTS]] : tensor<1x2x2xf32> -> tensor<1x2xcomplex<f32>>
// CHECK: prim.concat %arg0, %[[C]] axis = 0
graph.func @moved(%x: tensor<3x2xcomplex<f32>> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 17 : i64}} {
  %c = graph.constant dense<[[(1.0, 2.0), (3.0, 4.0)]]> : tensor<1x2xcomplex<f32>>
  %y = graph.node "ai.onnx":"Concat" opset 17(%x, %c) {axis = 0 : i64} : (tensor<3x2xcomplex<f32>>, tensor<1x2xcomplex<f32>>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// CHECK-LABEL: func.func @by_parts
// CHECK: prim.slice {{.*}} : tensor<1x1x4x4x2xf32> -> tensor<1x1x4x4x1xf32>
// CHECK-COUNT-2: prim.gather {{.*}} axis = 3 : (tensor<1x1x4x4xf32>
// CHECK: prim.slice {{.*}} : tensor<1x1x4x4x2xf32> -> tensor<1x1x4x4x1xf32>
// CHECK-COUNT-2: prim.gather {{.*}} axis = 3 : (tensor<1x1x4x4xf32>
// CHECK: %[[BOTH:.*]] = prim.concat {{.*}} axis = 4
// CHECK: prim.storage %[[BOTH]] : tensor<1x1x4x8x2xf32> -> tensor<1x1x4x8xcomplex<f32>>
graph.func @by_parts(%x: tensor<1x1x4x4xcomplex<f32>> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 19 : i64}} {
  %none = graph.none : none
  %s = graph.constant dense<[1.0, 1.0, 1.0, 2.0]> : tensor<4xf32>
  %y = graph.node "ai.onnx":"Resize" opset 19(%x, %none, %s) {mode = "linear"} : (tensor<1x1x4x4xcomplex<f32>>, none, tensor<4xf32>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// Products mix the parts: updates are taken one by one.
// CHECK-LABEL: func.func @product
// CHECK: prim.while {{.*}} carry %{{.*}} : (tensor<i64>, tensor<i1>, tensor<3x1x2xf32>) -> tensor<3x1x2xf32>
// CHECK: prim.gather
// CHECK-COUNT-4: prim.mul
// CHECK: prim.scatter_nd
graph.func @product(%x: tensor<3xcomplex<f32>> {graph.name = "x"}, %i: tensor<4x1xi64> {graph.name = "i"}, %u: tensor<4xcomplex<f32>> {graph.name = "u"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 18 : i64}} {
  %y = graph.node "ai.onnx":"ScatterND" opset 18(%x, %i, %u) {reduction = "mul"} : (tensor<3xcomplex<f32>>, tensor<4x1xi64>, tensor<4xcomplex<f32>>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}
