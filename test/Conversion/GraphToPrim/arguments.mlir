// Operands and attributes that do not fit, or ask for too much, are refused before prim is built.
// RUN: not tc-opt %s -split-input-file -tc-convert-graph-to-prim 2>&1 | FileCheck %s

// CHECK: node "joined": aten.cat.default (opset 1): needs equal sizes in dim 1 (3 against 2)
graph.func @cat(%x: tensor<2x2xf32> {graph.name = "x"}, %y: tensor<2x3xf32> {graph.name = "y"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %z = graph.node "aten":"cat.default" opset 1(%x, %y) {arg_names = ["tensors.0", "tensors.1"], tensors.count = 2 : i64} : (tensor<2x2xf32>, tensor<2x3xf32>) -> !tc.unknown loc("joined")
  graph.yield %z : !tc.unknown
}

// -----

// CHECK: node "view": aten.view.default (opset 1): needs as many elements after as before (4 against 6)
graph.func @view(%x: tensor<2x2xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %z = graph.node "aten":"view.default" opset 1(%x) {arg_names = ["self"], size = array<i64: 2, 3>} : (tensor<2x2xf32>) -> !tc.unknown loc("view")
  graph.yield %z : !tc.unknown
}

// -----

// CHECK: node "open": aten.view.default (opset 1): argument "size" leaves two sizes open
graph.func @open(%x: tensor<2x2xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %z = graph.node "aten":"view.default" opset 1(%x) {arg_names = ["self"], size = array<i64: -1, -1>} : (tensor<2x2xf32>) -> !tc.unknown loc("open")
  graph.yield %z : !tc.unknown
}

// -----

// CHECK: node "wide": aten.linear.default (opset 1): argument "bias" is tensor<6xf32>; it must be [N or 1] or [], where N = 3
graph.func @linear(%x: tensor<2x4xf32> {graph.name = "x"}, %w: tensor<3x4xf32> {graph.name = "w"}, %b: tensor<6xf32> {graph.name = "b"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %z = graph.node "aten":"linear.default" opset 1(%x, %w, %b) {arg_names = ["input", "weight", "bias"]} : (tensor<2x4xf32>, tensor<3x4xf32>, tensor<6xf32>) -> !tc.unknown loc("wide")
  graph.yield %z : !tc.unknown
}

// -----

// CHECK: node "scores": aten.scaled_dot_product_attention.default (opset 1): needs equal sizes in dim 2 (5 against 4)
graph.func @attention(%q: tensor<1x3x4xf32> {graph.name = "q"}, %k: tensor<1x3x5xf32> {graph.name = "k"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %z = graph.node "aten":"scaled_dot_product_attention.default" opset 1(%q, %k, %k) {arg_names = ["query", "key", "value"]} : (tensor<1x3x4xf32>, tensor<1x3x5xf32>, tensor<1x3x5xf32>) -> !tc.unknown loc("scores")
  graph.yield %z : !tc.unknown
}

// -----

// CHECK: node "means": aten.mean.dim (opset 1): takes floats, but got tensor<2xi64>; give it a dtype of floats
graph.func @mean(%x: tensor<2xi64> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %z = graph.node "aten":"mean.dim" opset 1(%x) {arg_names = ["self"]} : (tensor<2xi64>) -> !tc.unknown loc("means")
  graph.yield %z : !tc.unknown
}

// -----

// CHECK: node "parts": aten.unbind.int (opset 1): needs a result for each index of its dim (3 against 2)
graph.func @unbind(%x: tensor<3x2xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %z:2 = graph.node "aten":"unbind.int" opset 1(%x) {arg_names = ["self"]} : (tensor<3x2xf32>) -> (!tc.unknown, !tc.unknown) loc("parts")
  graph.yield %z#0 : !tc.unknown
}

// -----

// CHECK: node "deep": Unsqueeze (opset 23) to {{[0-9]+}} dims is not supported; at most 16 are
graph.func @unsqueeze(%x: tensor<2x2xf32> {graph.name = "x"}, %a: tensor<4294967295xi64> {graph.name = "a"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 23 : i64}} {
  %y = graph.node "ai.onnx":"Unsqueeze" opset 23(%x, %a) : (tensor<2x2xf32>, tensor<4294967295xi64>) -> !tc.unknown loc("deep")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "flat": ConvInteger (opset 10): operand 0 ("x") is tensor<ui8>; it must be [N, C, D.. (one or more)]
graph.func @flat(%x: tensor<ui8> {graph.name = "x"}, %w: tensor<ui8> {graph.name = "w"}, %z: tensor<2xui8> {graph.name = "z"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 10 : i64}} {
  %y = graph.node "ai.onnx":"ConvInteger" opset 10(%x, %w, %z) : (tensor<ui8>, tensor<ui8>, tensor<2xui8>) -> !tc.unknown loc("flat")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "softmax": com.microsoft.QLinearSoftmax (opset 1): computes as Softmax of opset 0 does, which there is none of
graph.func @opset(%x: tensor<2x4xui8> {graph.name = "x"}, %s: tensor<f32> {graph.name = "s"}, %z: tensor<ui8> {graph.name = "z"}) -> (!tc.unknown) attributes {opsets = {com.microsoft = 1 : i64}} {
  %y = graph.node "com.microsoft":"QLinearSoftmax" opset 1(%x, %s, %z, %s, %z) {opset = 0 : i64} : (tensor<2x4xui8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<ui8>) -> !tc.unknown loc("softmax")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "far": TfIdfVectorizer (opset 9) with max_skip_count 983693581039 is not supported; at most 255 is
graph.func @far(%x: tensor<?xi32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 9 : i64}} {
  %y = graph.node "ai.onnx":"TfIdfVectorizer" opset 9(%x) {max_gram_length = 2 : i64, max_skip_count = 983693581039 : i64, min_gram_length = 2 : i64, mode = "TF", ngram_counts = array<i64: 0, 0>, ngram_indexes = array<i64: 0>, pool_int64s = array<i64: 2, 3>} : (tensor<?xi32>) -> !tc.unknown loc("far")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "targets": ai.onnx.ml.TreeEnsembleRegressor (opset 3) with n_targets 74296900702 is not supported; at most 2^24 are
graph.func @targets(%x: tensor<2x2xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {ai.onnx.ml = 3 : i64}} {
  %y = graph.node "ai.onnx.ml":"TreeEnsembleRegressor" opset 3(%x) {n_targets = 74296900702 : i64, nodes_treeids = array<i64: 0>, nodes_nodeids = array<i64: 0>, nodes_featureids = array<i64: 0>, nodes_modes = ["LEAF"], nodes_values = array<f32: 0.0>, nodes_truenodeids = array<i64: 0>, nodes_falsenodeids = array<i64: 0>, target_treeids = array<i64: 0>, target_nodeids = array<i64: 0>, target_ids = array<i64: 0>, target_weights = array<f32: 1.0>} : (tensor<2x2xf32>) -> !tc.unknown loc("targets")
  graph.yield %y : !tc.unknown
}
