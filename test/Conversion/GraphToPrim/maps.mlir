// Proves: maps are taken apart into keys and values of a bound length; what is placed by key is searched by bisection.
// RUN: tc-opt %s -tc-convert-graph-to-prim -split-input-file | FileCheck %s

// A declared 1-D result is 1-D; else it is one row.
// CHECK-LABEL: func.func @dict
// CHECK-SAME: prim.strings = ["", "b", "a"]
// CHECK: %[[K:.*]] = prim.host_call "map_part"(%arg0, %{{.*}}) words [2, 0, 2]
// CHECK: %[[N:.*]] = prim.host_call "object_dims"(%[[K]]) words [2, 0]
// CHECK: prim.bind_symbol %[[N]] to 0
// CHECK: prim.host_call "object_data"(%[[K]]) words [2, 1] : (tensor<i64>) -> tensor<?xi64
// CHECK: prim.scatter_elements {{.*}} -> tensor<3xf32>
// CHECK: %[[Y:.*]] = prim.gather {{.*}} -> tensor<3xf32>
// CHECK: return %[[Y]]
graph.func @dict(%x: !tc.map<!tc.string, tensor<f32>> {graph.name = "x"}) -> (tensor<3xf32>) attributes {opsets = {ai.onnx = 21 : i64, ai.onnx.ml = 1 : i64}} {
  %y = graph.node "ai.onnx.ml":"DictVectorizer" opset 1(%x) {string_vocabulary = ["b", "a", "b"]} : (!tc.map<!tc.string, tensor<f32>>) -> tensor<3xf32>
  graph.yield %y : tensor<3xf32>
}

// -----

// CHECK-LABEL: func.func @dense
// CHECK: %[[O:.*]] = prim.arg_sort
// CHECK: prim.gather %{{.*}}[%[[O]]] axis = 0
// CHECK: return %{{.*}} : tensor<1x?xi64
graph.func @dense(%x: !tc.map<i64, tensor<f32>> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 21 : i64, ai.onnx.ml = 1 : i64}} {
  %y = graph.node "ai.onnx.ml":"CastMap" opset 1(%x) {cast_to = "TO_INT64"} : (!tc.map<i64, tensor<f32>>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// CHECK-LABEL: func.func @sparse
// CHECK: prim.bind_symbol {{.*}}CastMap met a negative key, which map_form SPARSE forbids
// CHECK: return %{{.*}} : tensor<1x4xf32>
graph.func @sparse(%x: !tc.map<i64, tensor<!tc.string>> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 21 : i64, ai.onnx.ml = 1 : i64}} {
  %y = graph.node "ai.onnx.ml":"CastMap" opset 1(%x) {map_form = "SPARSE", max_map = 4 : i64} : (!tc.map<i64, tensor<!tc.string>>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// Of a label that comes twice the last column counts.
// CHECK-LABEL: func.func @zip
// CHECK-SAME: prim.value = !tc.seq<!tc.map<i64, tensor<f32>>>
// CHECK-DAG: %[[C:.*]] = prim.constant dense<[1, 2]> : tensor<2xi64>
// CHECK-DAG: %[[K:.*]] = prim.constant dense<[3, 5]> : tensor<2xi64>
// CHECK-DAG: %[[X:.*]] = prim.gather %arg0[%[[C]]] axis = 1
// CHECK: prim.host_call "zip_map"(%[[K]], %[[X]]) words [0, 0, 2]
graph.func @zip(%x: tensor<?x3xf32> {graph.name = "x"}) -> (!tc.seq<!tc.map<i64, tensor<f32>>>) attributes {opsets = {ai.onnx = 21 : i64, ai.onnx.ml = 1 : i64}} {
  %y = graph.node "ai.onnx.ml":"ZipMap" opset 1(%x) {classlabels_int64s = array<i64: 5, 3, 5>} : (tensor<?x3xf32>) -> !tc.seq<!tc.map<i64, tensor<f32>>>
  graph.yield %y : !tc.seq<!tc.map<i64, tensor<f32>>>
}
