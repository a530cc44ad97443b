// Each numbered constraint of the graph ops.
// RUN: tc-opt %s -split-input-file -verify-diagnostics

graph.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{(C1) yields other types than the results of @f}}
  graph.yield
}
// -----
// expected-error @+1 {{(C2) has a value of type 'f32', which is no type of a graph}}
graph.func @f(%x: f32) {
  graph.yield
}
// -----
// expected-error @+1 {{must end with graph.yield}}
graph.func @f() {
  %0 = graph.none : none
}
// -----
// expected-error @+1 {{attribute graph.dims must be an array of strings}}
graph.func @f(%x: tensor<2xf32> {graph.dims = 3}) {
  graph.yield
}
// -----
// expected-error @+1 {{attribute graph.ranges must have two numbers for each dim}}
graph.func @f(%x: tensor<?xf32> {graph.ranges = array<i64: 1>}) {
  graph.yield
}
// -----
// expected-error @+1 {{attribute graph.sizes must be an affine map of symbols}}
graph.func @f(%x: tensor<?xf32> {graph.sizes = affine_map<(d0) -> (d0)>}) {
  graph.yield
}
// -----
// expected-error @+1 {{attribute graph.other is unknown on arguments}}
graph.func @f(%x: tensor<2xf32> {graph.other = 3}) {
  graph.yield
}
// -----
graph.func @f() {
  // expected-error @+1 {{(C1) needs a domain and a type}}
  graph.node "":"Relu" opset 1() : () -> ()
  graph.yield
}
// -----
graph.func @f() {
  // expected-error @+1 {{(C1) has opset 0, which is below 1}}
  graph.node "ai.onnx":"Relu" opset 0() : () -> ()
  graph.yield
}
// -----
graph.func @f() {
  // expected-error @+1 {{(C2) has two attributes or subgraphs named "body"}}
  graph.node "ai.onnx":"Loop" opset 1() {body = 1 : i64} graphs "body"() {
    graph.yield
  } : () -> ()
  graph.yield
}
// -----
graph.func @f() {
  // expected-error @+1 {{(C3) subgraph "body" must be one block that ends with graph.yield}}
  graph.node "ai.onnx":"Loop" opset 1() graphs "body"() {
    %0 = graph.none : none
  } : () -> ()
  graph.yield
}
// -----
graph.func @f() {
  // expected-error @+1 {{(C4) has a value of type 'index', which is no type of a graph}}
  %0 = graph.node "ai.onnx":"Relu" opset 1() : () -> index
  graph.yield
}
// -----
// expected-error @+1 {{(C1) indices of #graph.sparse}}
module attributes {x = #graph.sparse<#tc.data<"b", 0, 4, "00000000000000000000000000000000"> : tensor<1xf32>, #tc.data<"b", 8, 16, "00000000000000000000000000000000"> : tensor<2xi64>> : tensor<3x4xf32>} {}
// -----
// expected-error @+1 {{(C1) values of #graph.sparse}}
module attributes {x = #graph.sparse<#tc.data<"b", 0, 4, "00000000000000000000000000000000"> : tensor<1xf32>, #tc.data<"b", 8, 8, "00000000000000000000000000000000"> : tensor<1xi64>> : tensor<3x4xf64>} {}
