// What reads an If whose branches differ in rank is converted inside the branches, until the ranks agree.
// RUN: tc-opt %s -tc-convert-graph-to-prim -split-input-file -verify-diagnostics | FileCheck %s

// The sum is of rank 1 in both branches; the other result leaves its own If.
// CHECK-LABEL: func.func @joins
// CHECK: %[[OTHER:.*]] = prim.if
// CHECK: %[[SUM:.*]] = prim.if
// CHECK: prim.add
// CHECK: prim.yield %{{.*}} : tensor<4xf32>
// CHECK: prim.add
// CHECK: prim.yield %{{.*}} : tensor<4xf32>
// CHECK: return %[[SUM]], %[[OTHER]]
graph.func @joins(%c: tensor<i1> {graph.name = "c"}, %x: tensor<4xf32> {graph.name = "x"}, %s: tensor<f32> {graph.name = "s"}) -> (!tc.unknown, !tc.unknown) attributes {opsets = {ai.onnx = 17 : i64}} {
  %r:2 = graph.node "ai.onnx":"If" opset 17(%c) graphs "then_branch"() {
    graph.yield %x, %s : tensor<4xf32>, tensor<f32>
  }, "else_branch"() {
    %t = graph.node "ai.onnx":"Neg" opset 17(%s) : (tensor<f32>) -> tensor<f32>
    graph.yield %s, %t : tensor<f32>, tensor<f32>
  } : (tensor<i1>) -> (!tc.unknown, !tc.unknown)
  %y = graph.node "ai.onnx":"Add" opset 17(%r#0, %x) : (!tc.unknown, tensor<4xf32>) -> !tc.unknown
  graph.yield %y, %r#1 : !tc.unknown, !tc.unknown
}

// -----

// A value that an inner branch yields: the outer If's user moves inwards twice.
// CHECK-LABEL: func.func @nested
// CHECK: prim.if
// CHECK: prim.if
// CHECK: prim.add
// CHECK: prim.add
// CHECK: return %{{.*}} : tensor<4xf32>
graph.func @nested(%c: tensor<i1> {graph.name = "c"}, %d: tensor<i1> {graph.name = "d"}, %x: tensor<4xf32> {graph.name = "x"}, %s: tensor<f32> {graph.name = "s"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 17 : i64}} {
  %r = graph.node "ai.onnx":"If" opset 17(%c) graphs "then_branch"() {
    %i = graph.node "ai.onnx":"If" opset 17(%d) graphs "then_branch"() {
      graph.yield %x : tensor<4xf32>
    }, "else_branch"() {
      graph.yield %s : tensor<f32>
    } : (tensor<i1>) -> !tc.unknown
    graph.yield %i : !tc.unknown
  }, "else_branch"() {
    graph.yield %s : tensor<f32>
  } : (tensor<i1>) -> !tc.unknown
  %y = graph.node "ai.onnx":"Add" opset 17(%r, %x) : (!tc.unknown, tensor<4xf32>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

graph.func @output(%c: tensor<i1> {graph.name = "c"}, %x: tensor<4xf32> {graph.name = "x"}, %s: tensor<f32> {graph.name = "s"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 17 : i64}} {
  // expected-error @+1 {{If (opset 17) with branches whose results differ in rank, up to an output of the graph, is not supported}}
  %r = graph.node "ai.onnx":"If" opset 17(%c) graphs "then_branch"() {
    graph.yield %x : tensor<4xf32>
  }, "else_branch"() {
    graph.yield %s : tensor<f32>
  } : (tensor<i1>) -> !tc.unknown
  graph.yield %r : !tc.unknown
}
