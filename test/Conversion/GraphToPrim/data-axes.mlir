// Axes that are data, and operators whose result sizes are data: sizes are bound at run time.
// RUN: tc-opt %s -tc-convert-graph-to-prim -split-input-file | FileCheck %s

// One branch for each dim that may be reduced; the size it leaves is bound there.
// CHECK-LABEL: func.func @reduce
// CHECK-COUNT-2: prim.if %{{.*}} binds [{{[0-9]+}}]
// CHECK-NOT: prim.if
// CHECK: return
graph.func @reduce(%x: tensor<3x4xf32> {graph.name = "x"}, %axes: tensor<1xi64> {graph.name = "axes"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 18 : i64}} {
  %y = graph.node "ai.onnx":"ReduceSum" opset 18(%x, %axes) {keepdims = 1 : i64} : (tensor<3x4xf32>, tensor<1xi64>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// The dims that stay are the first ones in the order of (named, number).
// CHECK-LABEL: func.func @squeeze
// CHECK: %[[KEPT:.*]] = prim.arg_sort %{{.*}} : tensor<3x1xi1> -> tensor<2xi64>
// CHECK: prim.gather %{{.*}}[%[[KEPT]]]
// CHECK-COUNT-2: prim.bind_symbol
// CHECK: prim.guard eq {{.*}} "Squeeze needs as many elements after as before"
graph.func @squeeze(%x: tensor<3x1x4xf32> {graph.name = "x"}, %axes: tensor<1xi64> {graph.name = "axes"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 18 : i64}} {
  %y = graph.node "ai.onnx":"Squeeze" opset 18(%x, %axes) : (tensor<3x1x4xf32>, tensor<1xi64>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// CHECK-LABEL: func.func @slice
// CHECK-COUNT-2: prim.bind_symbol
// CHECK-COUNT-2: prim.gather
graph.func @slice(%x: tensor<5x6xf32> {graph.name = "x"}, %s: tensor<1xi64> {graph.name = "s"}, %e: tensor<1xi64> {graph.name = "e"}, %a: tensor<1xi64> {graph.name = "a"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 18 : i64}} {
  %y = graph.node "ai.onnx":"Slice" opset 18(%x, %s, %e, %a) : (tensor<5x6xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

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
