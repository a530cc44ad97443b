// Attributes of trees that contradict each other are errors that name the attribute or the node.
// RUN: not tc-opt %s -tc-convert-graph-to-prim -split-input-file 2>&1 | FileCheck %s

// CHECK: node "loop": ai.onnx.ml.TreeEnsemble (opset 5): has a tree in which node 0 is reached twice
graph.func @loop(%x: tensor<5x3xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 21 : i64, ai.onnx.ml = 5 : i64}} {
  %y = graph.node "ai.onnx.ml":"TreeEnsemble" opset 5(%x) {
    tree_roots = array<i64: 0>, nodes_featureids = array<i64: 0>, nodes_splits = dense<1.0> : tensor<1xf32>, nodes_modes = dense<0> : tensor<1xui8>,
    nodes_trueleafs = array<i64: 1>, nodes_truenodeids = array<i64: 0>, nodes_falseleafs = array<i64: 0>, nodes_falsenodeids = array<i64: 0>,
    leaf_targetids = array<i64: 0>, leaf_weights = dense<1.0> : tensor<1xf32>} : (tensor<5x3xf32>) -> !tc.unknown loc("loop")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "narrow": ai.onnx.ml.TreeEnsemble (opset 5): needs an operand with at least 5 features (5 against 3)
graph.func @narrow(%x: tensor<5x3xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 21 : i64, ai.onnx.ml = 5 : i64}} {
  %y = graph.node "ai.onnx.ml":"TreeEnsemble" opset 5(%x) {
    tree_roots = array<i64: 0>, nodes_featureids = array<i64: 4>, nodes_splits = dense<1.0> : tensor<1xf32>, nodes_modes = dense<0> : tensor<1xui8>,
    nodes_trueleafs = array<i64: 1>, nodes_truenodeids = array<i64: 0>, nodes_falseleafs = array<i64: 1>, nodes_falsenodeids = array<i64: 0>,
    leaf_targetids = array<i64: 0>, leaf_weights = dense<1.0> : tensor<1xf32>} : (tensor<5x3xf32>) -> !tc.unknown loc("narrow")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "lost": ai.onnx.ml.TreeEnsembleRegressor (opset 3): node 0 of tree 0 leads to node 7, which the tree does not have
graph.func @lost(%x: tensor<5x3xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 21 : i64, ai.onnx.ml = 3 : i64}} {
  %y = graph.node "ai.onnx.ml":"TreeEnsembleRegressor" opset 3(%x) {
    nodes_treeids = array<i64: 0, 0>, nodes_nodeids = array<i64: 0, 1>, nodes_featureids = array<i64: 1, 0>, nodes_values = array<f32: 2.0, 0.0>,
    nodes_modes = ["BRANCH_LT", "LEAF"], nodes_truenodeids = array<i64: 1, 0>, nodes_falsenodeids = array<i64: 7, 0>,
    target_treeids = array<i64: 0>, target_nodeids = array<i64: 1>, target_ids = array<i64: 0>, target_weights = array<f32: 1.0>}
    : (tensor<5x3xf32>) -> !tc.unknown loc("lost")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "kinds": ai.onnx.ml.LabelEncoder (opset 4): the keys' element type differs from that of the operand tensor<5xi64>
graph.func @kinds(%x: tensor<5xi64> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 21 : i64, ai.onnx.ml = 4 : i64}} {
  %y = graph.node "ai.onnx.ml":"LabelEncoder" opset 4(%x) {keys_strings = ["a"], values_floats = array<f32: 1.0>} : (tensor<5xi64>) -> !tc.unknown loc("kinds")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "words": ai.onnx.ml.DictVectorizer (opset 1): needs int64_vocabulary for a map with int64 keys
graph.func @words(%x: !tc.map<i64, tensor<f32>> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 21 : i64, ai.onnx.ml = 1 : i64}} {
  %y = graph.node "ai.onnx.ml":"DictVectorizer" opset 1(%x) {string_vocabulary = ["a"]} : (!tc.map<i64, tensor<f32>>) -> !tc.unknown loc("words")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "columns": ai.onnx.ml.ZipMap (opset 1): needs as many columns as there are labels (3 against 2)
graph.func @columns(%x: tensor<5x3xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 21 : i64, ai.onnx.ml = 1 : i64}} {
  %y = graph.node "ai.onnx.ml":"ZipMap" opset 1(%x) {classlabels_int64s = array<i64: 5, 3>} : (tensor<5x3xf32>) -> !tc.unknown loc("columns")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "tensor": ai.onnx.ml.CastMap (opset 1): operand 0 ("X") is a tensor of float; it must be a map
graph.func @tensor(%x: tensor<5xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 21 : i64, ai.onnx.ml = 1 : i64}} {
  %y = graph.node "ai.onnx.ml":"CastMap" opset 1(%x) : (tensor<5xf32>) -> !tc.unknown loc("tensor")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "twice": TfIdfVectorizer (opset 9): the pool holds an n-gram of 1 elements twice, at 2
graph.func @twice(%x: tensor<5x!tc.string> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 21 : i64}} {
  %y = graph.node "ai.onnx":"TfIdfVectorizer" opset 9(%x) {mode = "TF", pool_strings = ["a", "b", "a"], ngram_counts = array<i64: 0>,
    ngram_indexes = array<i64: 0, 1, 2>, min_gram_length = 1 : i64, max_gram_length = 1 : i64, max_skip_count = 0 : i64}
    : (tensor<5x!tc.string>) -> !tc.unknown loc("twice")
  graph.yield %y : !tc.unknown
}
