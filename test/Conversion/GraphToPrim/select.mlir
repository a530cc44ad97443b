// Proves: elements chosen by their values: counts are bound at run time, sorting is one op.
// RUN: tc-opt %s -tc-convert-graph-to-prim -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @nonzero
// CHECK-SAME: #prim.symbol<"found", 0, 12, 1>
// CHECK: prim.scan sum %{{.*}} axis = 0 exclusive
// CHECK: prim.bind_symbol %{{.*}} to 0
// CHECK: prim.scatter_elements
graph.func @nonzero(%x: tensor<3x4xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 18 : i64}} {
  %y = graph.node "ai.onnx":"NonZero" opset 18(%x) : (tensor<3x4xf32>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// CHECK-LABEL: func.func @topk
// CHECK: prim.arg_sort %{{.*}} descending : tensor<4x3x1xf32> -> tensor<4x2xi64>
// CHECK: prim.gather_elements %arg0
graph.func @topk(%x: tensor<3x4xf32> {graph.name = "x"}) -> (!tc.unknown, !tc.unknown) attributes {opsets = {ai.onnx = 18 : i64}} {
  %k = graph.constant dense<2> : tensor<1xi64>
  %y, %i = graph.node "ai.onnx":"TopK" opset 18(%x, %k) {axis = 0 : i64} : (tensor<3x4xf32>, tensor<1xi64>) -> (!tc.unknown, !tc.unknown)
  graph.yield %y, %i : !tc.unknown, !tc.unknown
}
