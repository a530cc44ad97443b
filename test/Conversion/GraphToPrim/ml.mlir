// Proves: trees become steps of gathers, one for each level and three for each step, whatever the decisions are; labels are searched by bisection.
// RUN: tc-opt %s -tc-convert-graph-to-prim -split-input-file | FileCheck %s

// One decision of each kind that needs no second: x < 2 is x <= the number below 2, x > 2 is x <= 2 with the children
// exchanged; a NaN, which is not above 2, then goes to the true side. Roots hold constants, so that the first step looks nothing up.
// CHECK-LABEL: func.func @stumps
// CHECK: %[[FEATURES:.*]] = prim.constant dense<[1, 2]> : tensor<2xi32>
// CHECK: %[[X:.*]] = prim.gather %arg0[%[[FEATURES]]] axis = 1
// CHECK: prim.constant dense<[1.99999988, 2.000000e+00]> : tensor<2xf32>
// CHECK: prim.constant dense<[2, 5]> : tensor<2xi32>
// CHECK: prim.constant dense<[false, true]> : tensor<2xi1>
// CHECK: prim.compare le %[[X]]
// CHECK: prim.is_nan %[[X]]
// CHECK-NOT: prim.gather_elements
// CHECK: %[[WEIGHT:.*]] = prim.constant dense<[{{.*}}, {{.*}}, 2.000000e+00, 1.000000e+00, {{.*}}, 3.000000e+00, 4.000000e+00]> : tensor<7xf32>
// CHECK: prim.gather %[[WEIGHT]]
// CHECK: prim.reduce sum
graph.func @stumps(%x: tensor<5x3xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 21 : i64, ai.onnx.ml = 3 : i64}} {
  %y = graph.node "ai.onnx.ml":"TreeEnsembleRegressor" opset 3(%x) {
    n_targets = 1 : i64, nodes_treeids = array<i64: 0, 0, 0, 1, 1, 1>, nodes_nodeids = array<i64: 0, 1, 2, 0, 1, 2>,
    nodes_featureids = array<i64: 1, 0, 0, 2, 0, 0>, nodes_values = array<f32: 2.0, 0.0, 0.0, 2.0, 0.0, 0.0>,
    nodes_modes = ["BRANCH_LT", "LEAF", "LEAF", "BRANCH_GT", "LEAF", "LEAF"],
    nodes_truenodeids = array<i64: 1, 0, 0, 1, 0, 0>, nodes_falsenodeids = array<i64: 2, 0, 0, 2, 0, 0>,
    target_treeids = array<i64: 0, 0, 1, 1>, target_nodeids = array<i64: 1, 2, 1, 2>, target_ids = array<i64: 0, 0, 0, 0>,
    target_weights = array<f32: 1.0, 2.0, 3.0, 4.0>} : (tensor<5x3xf32>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// Three keys: two steps of bisection and the test whether the key is there.
// CHECK-LABEL: func.func @labels
// CHECK-COUNT-2: prim.compare le
// CHECK-NOT: prim.compare le
// CHECK: prim.compare eq
graph.func @labels(%x: tensor<5xi64> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 21 : i64, ai.onnx.ml = 4 : i64}} {
  %y = graph.node "ai.onnx.ml":"LabelEncoder" opset 4(%x) {keys_int64s = array<i64: 7, 5, 6>, values_floats = array<f32: 1.0, 2.0, 3.0>} : (tensor<5xi64>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}
