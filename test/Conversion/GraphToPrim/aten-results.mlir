// What an archive declares of an ATen node's results is what PyTorch computed: where tc's meaning gives another element type, rank or size, that is an error.
// RUN: not tc-opt %s --split-input-file --tc-convert-graph-to-prim 2>&1 | FileCheck %s

// CHECK: node "element": aten.relu.default (opset 1): tc computes tensor<2x3xf32> as result 0, but the model declares tensor<2x3xf64>; please report this, and export what the node computes in another way meanwhile
graph.func @element(%x: tensor<2x3xf32> {graph.name = "x"}) -> (tensor<2x3xf64>) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"relu.default" opset 1(%x) {arg_names = ["self"]} : (tensor<2x3xf32>) -> tensor<2x3xf64> loc("element")
  graph.yield %y : tensor<2x3xf64>
}

// -----

// CHECK: node "rank": aten.sum.dim_IntList (opset 1): tc computes tensor<2xf32> as result 0, but the model declares tensor<2x1xf32>
graph.func @rank(%x: tensor<2x3xf32> {graph.name = "x"}) -> (tensor<2x1xf32>) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"sum.dim_IntList" opset 1(%x) {arg_names = ["self"], dim = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x1xf32> loc("rank")
  graph.yield %y : tensor<2x1xf32>
}

// -----

// CHECK: node "size": aten.relu.default (opset 1): tc computes tensor<2x?xf32> as result 0, but the model declares tensor<3x?xf32>
graph.func @size(%x: tensor<2x?xf32> {graph.name = "x"}) -> (tensor<3x?xf32>) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"relu.default" opset 1(%x) {arg_names = ["self"]} : (tensor<2x?xf32>) -> tensor<3x?xf32> loc("size")
  graph.yield %y : tensor<3x?xf32>
}

// -----

// What nobody reads may be declared otherwise: PyTorch 2.11 has a dim too many in the states of recurrent layers.
// CHECK-NOT: node "unread"
// CHECK: node "read": aten.max.dim (opset 1): tc computes tensor<2xi64> as result 1, but the model declares tensor<2x1xi64>
graph.func @unread(%x: tensor<2x3xf32> {graph.name = "x"}) -> (tensor<2xf32>, tensor<2x1xi64>) attributes {opsets = {aten = 1 : i64}} {
  %y:2 = graph.node "aten":"max.dim" opset 1(%x) {arg_names = ["self"], dim = 1 : i64} : (tensor<2x3xf32>) -> (tensor<2xf32>, tensor<2x1xi64>) loc("unread")
  %z:2 = graph.node "aten":"max.dim" opset 1(%x) {arg_names = ["self"], dim = 1 : i64} : (tensor<2x3xf32>) -> (tensor<2xf32>, tensor<2x1xi64>) loc("read")
  graph.yield %y#0, %z#1 : tensor<2xf32>, tensor<2x1xi64>
}
