// Axes that only the run knows: their number fixes the rank, sizes are symbols bound to data.
// RUN: tc-opt %s -tc-convert-graph-to-prim -split-input-file -verify-diagnostics | FileCheck %s

// Each dim is split in [kept, reduced]; one of the two is 1.
// CHECK-LABEL: func.func @reduce
// CHECK: %[[HIT:.*]] = prim.reduce or
// CHECK: prim.select %[[HIT]]
// CHECK-COUNT-4: prim.bind_symbol
// CHECK: %[[X:.*]] = prim.reshape %arg0 : tensor<3x4xf32> -> tensor<?x?x?x?xf32
// CHECK: prim.bind_symbol %{{.*}} to 4
// CHECK: %[[Y:.*]] = prim.reduce sum %[[X]] [1, 3]
// CHECK: prim.reshape %[[Y]] {{.*}} -> tensor<?xf32
graph.func @reduce(%x: tensor<3x4xf32>, %axes: tensor<1xi64>) -> (!tc.unknown) attributes {opsets = {ai.onnx = 18 : i64}} {
  %y = graph.node "ai.onnx":"ReduceSum" opset 18(%x, %axes) {keepdims = 0 : i64} : (tensor<3x4xf32>, tensor<1xi64>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// CHECK-LABEL: func.func @unsqueeze
// CHECK-COUNT-3: prim.bind_symbol
// CHECK: prim.reshape %arg0 : tensor<3x4xf32> -> tensor<?x?x?xf32
graph.func @unsqueeze(%x: tensor<3x4xf32>, %axes: tensor<1xi64>) -> (!tc.unknown) attributes {opsets = {ai.onnx = 18 : i64}} {
  %y = graph.node "ai.onnx":"Unsqueeze" opset 18(%x, %axes) : (tensor<3x4xf32>, tensor<1xi64>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// One gather for each dim, at start + i * step.
// CHECK-LABEL: func.func @slice
// CHECK: prim.bind_symbol
// CHECK: prim.gather %arg0[%{{.*}}] axis = 0
// CHECK: prim.bind_symbol
// CHECK: prim.gather %{{.*}}[%{{.*}}] axis = 1
graph.func @slice(%x: tensor<3x4xf32>, %from: tensor<1xi64>, %to: tensor<1xi64>, %axes: tensor<1xi64>, %steps: tensor<1xi64>) -> (!tc.unknown) attributes {opsets = {ai.onnx = 18 : i64}} {
  %y = graph.node "ai.onnx":"Slice" opset 18(%x, %from, %to, %axes, %steps) : (tensor<3x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

graph.func @unknown_number(%x: tensor<3x4xf32>, %axes: tensor<?xi64>) -> (!tc.unknown) attributes {opsets = {ai.onnx = 18 : i64}} {
  // expected-error @+1 {{with axes of unknown number (a result of unknown rank) is not supported}}
  %y = graph.node "ai.onnx":"ReduceSum" opset 18(%x, %axes) : (tensor<3x4xf32>, tensor<?xi64>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}
