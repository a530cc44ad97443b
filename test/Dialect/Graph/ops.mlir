// All forms of the graph ops round-trip.
// RUN: tc-opt %s | tc-opt | FileCheck %s

// CHECK: module attributes {graph.ir_version = 10 : i64, graph.metadata = {author = "me"}}
module attributes {graph.ir_version = 10 : i64, graph.metadata = {author = "me"}} {

// CHECK-LABEL: graph.func @main(
// CHECK-SAME: {graph.dims = ["batch", ""], graph.name = "x"}
// CHECK-SAME: graph.default = #tc.data<"b", 0, 4, "{{0+}}"> : tensor<f32>
// CHECK-SAME: attributes {opsets = {ai.onnx = 17 : i64, my.ops = 1 : i64}}
graph.func @main(%x: tensor<?x3xf32> {graph.dims = ["batch", ""], graph.name = "x"},
                 %s: tensor<f32> {graph.name = "s", graph.default = #tc.data<"b", 0, 4, "00000000000000000000000000000000"> : tensor<f32>},
                 %c: tensor<i1> {graph.name = "c"})
    -> (tensor<?x3xf32> {graph.name = "y"}, !tc.unknown) attributes {opsets = {ai.onnx = 17 : i64, my.ops = 1 : i64}} {
  // CHECK: %[[W:.*]] = graph.constant #tc.data<"model.onnx", 64, 24, "{{0+}}"> : tensor<2x3xf32>
  %w = graph.constant #tc.data<"model.onnx", 64, 24, "00000000000000000000000000000000"> : tensor<2x3xf32>
  // CHECK: graph.constant #graph.sparse<#tc.data<{{.*}}> : tensor<1xf32>, #tc.data<{{.*}}> : tensor<1x2xi64>> : tensor<3x4xf32>
  %sparse = graph.constant #graph.sparse<#tc.data<"b", 0, 4, "00000000000000000000000000000000"> : tensor<1xf32>,
                                         #tc.data<"b", 8, 16, "00000000000000000000000000000000"> : tensor<1x2xi64>> : tensor<3x4xf32>
  // CHECK: %[[NONE:.*]] = graph.none : none
  %none = graph.none : none
  // CHECK: graph.node "ai.onnx":"Clip" opset 17(%{{.*}}, %[[NONE]], %{{.*}}) : (tensor<?x3xf32>, none, tensor<f32>) -> tensor<?x3xf32>
  %0 = graph.node "ai.onnx":"Clip" opset 17(%x, %none, %s) : (tensor<?x3xf32>, none, tensor<f32>) -> tensor<?x3xf32>
  // CHECK: graph.node "ai.onnx":"Any" opset 17()
  // CHECK-SAME: {"a b" = "text", floats = array<f32: 1.000000e+00>, ints = array<i64: 1, 2>, t = tensor<2xf32>}
  // CHECK-SAME: : () -> (tensor<*xf32>, none)
  %1:2 = graph.node "ai.onnx":"Any" opset 17() {"a b" = "text", ints = array<i64: 1, 2>, floats = array<f32: 1.0>, t = tensor<2xf32>} : () -> (tensor<*xf32>, none)
  // CHECK: graph.node "ai.onnx":"If" opset 17(%{{.*}}) {k = 1 : i64} graphs "else_branch"() {
  // CHECK:   graph.yield %{{.*}} : tensor<?x3xf32>
  // CHECK: }, "then_branch"() {
  // CHECK: } : (tensor<i1>) -> tensor<?x3xf32>
  %2 = graph.node "ai.onnx":"If" opset 17(%c) {k = 1 : i64} graphs "else_branch"() {
    graph.yield %x : tensor<?x3xf32>
  }, "then_branch"() {
    graph.yield %0 : tensor<?x3xf32>
  } : (tensor<i1>) -> tensor<?x3xf32>
  // CHECK: graph.node "ai.onnx":"Loop" opset 17(%{{.*}}) graphs "body"(%{{.*}}: tensor<i64>, %[[COND:.*]]: tensor<i1>) {
  // CHECK:   graph.yield %[[COND]] : tensor<i1>
  graph.node "ai.onnx":"Loop" opset 17(%none) graphs "body"(%i: tensor<i64>, %cond: tensor<i1>) {
    graph.yield %cond : tensor<i1>
  } : (none) -> ()
  // CHECK: graph.node "my.ops":"Twice" opset 1 overload "f32" calls @my.ops_Twice(%{{.*}})
  %3 = graph.node "my.ops":"Twice" opset 1 overload "f32" calls @my.ops_Twice(%x) : (tensor<?x3xf32>) -> !tc.unknown
  graph.yield %2, %3 : tensor<?x3xf32>, !tc.unknown
}

// CHECK-LABEL: graph.func private @my.ops_Twice
// CHECK-SAME: attr_defaults = {alpha = 2.000000e+00 : f32}
// CHECK-SAME: attr_params = ["alpha"]
graph.func private @my.ops_Twice(%x: !tc.unknown) -> !tc.unknown
    attributes {domain = "my.ops", op_type = "Twice", overload = "f32", attr_params = ["alpha"],
                attr_defaults = {alpha = 2.0 : f32}, opsets = {ai.onnx = 17 : i64}} {
  // CHECK: {alpha = #graph.ref<"alpha", "FLOAT">}
  %0 = graph.node "ai.onnx":"LeakyRelu" opset 17(%x) {alpha = #graph.ref<"alpha", "FLOAT">} : (!tc.unknown) -> !tc.unknown
  graph.yield %0 : !tc.unknown
}
}
