// Attention of ATen: a causal mask counts from the first key whatever the number of keys, queries whose mask hides all keys give 0, heads
// of keys are repeated. What is random or contradicts itself is refused.
// RUN: not tc-opt %s --split-input-file --tc-convert-graph-to-prim 2>&1 | FileCheck %s
// RUN: not tc-opt %s --split-input-file --tc-convert-graph-to-prim 2>/dev/null | FileCheck %s --check-prefix=IR

// As many keys as queries: the primitive's own.
// IR-LABEL: func.func @square
// IR-NOT: prim.iota
// IR: prim.attention {{.*}} causal
graph.func @square(%q: tensor<1x2x4x8xf32> {graph.name = "q"}) -> (tensor<1x2x4x8xf32>) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"scaled_dot_product_attention.default" opset 1(%q, %q, %q) {arg_names = ["query", "key", "value"], is_causal = true} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> tensor<1x2x4x8xf32> loc("square")
  graph.yield %y : tensor<1x2x4x8xf32>
}

// -----

// Fewer queries than keys: query t sees keys 0 to t, where the primitive's would end at the last key.
// IR-LABEL: func.func @fewer
// IR: %[[KEY:.*]] = prim.iota axis = 1
// IR: %[[QUERY:.*]] = prim.iota axis = 0
// IR: prim.compare le %[[KEY]], %[[QUERY]]
// IR: prim.attention
// IR-NOT: causal
// IR: return
graph.func @fewer(%q: tensor<1x2x3x8xf32> {graph.name = "q"}, %k: tensor<1x2x7x8xf32> {graph.name = "k"}) -> (tensor<1x2x3x8xf32>) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"scaled_dot_product_attention.default" opset 1(%q, %k, %k) {arg_names = ["query", "key", "value"], is_causal = true} : (tensor<1x2x3x8xf32>, tensor<1x2x7x8xf32>, tensor<1x2x7x8xf32>) -> tensor<1x2x3x8xf32> loc("fewer")
  graph.yield %y : tensor<1x2x3x8xf32>
}

// -----

// Queries that see nothing see all instead, and their result is multiplied by 0.
// IR-LABEL: func.func @masked
// IR: %[[MOST:.*]] = prim.reduce max
// IR: %[[BLIND:.*]] = prim.compare eq
// IR: %[[MASK:.*]] = prim.select
// IR: %[[SPREAD:.*]] = prim.broadcast %[[MASK]]
// IR: %[[Y:.*]] = prim.attention {{.*}} mask %[[SPREAD]]
// IR: %[[NONE:.*]] = prim.mul %[[Y]]
// IR: prim.select %{{.*}}, %[[NONE]], %[[Y]]
graph.func @masked(%q: tensor<1x2x4x8xf32> {graph.name = "q"}, %m: tensor<4x4xi1> {graph.name = "m"}) -> (tensor<1x2x4x8xf32>) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"scaled_dot_product_attention.default" opset 1(%q, %q, %q, %m) {arg_names = ["query", "key", "value", "attn_mask"]} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<4x4xi1>) -> tensor<1x2x4x8xf32> loc("masked")
  graph.yield %y : tensor<1x2x4x8xf32>
}

// -----

// IR-LABEL: func.func @grouped
// IR: prim.broadcast {{.*}} -> tensor<1x2x3x5x8xf32>
// IR: prim.reshape {{.*}} -> tensor<1x6x5x8xf32>
// IR: prim.attention
graph.func @grouped(%q: tensor<1x6x4x8xf32> {graph.name = "q"}, %k: tensor<1x2x5x8xf32> {graph.name = "k"}) -> (tensor<1x6x4x8xf32>) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"scaled_dot_product_attention.default" opset 1(%q, %k, %k) {arg_names = ["query", "key", "value"], enable_gqa = true} : (tensor<1x6x4x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>) -> tensor<1x6x4x8xf32> loc("grouped")
  graph.yield %y : tensor<1x6x4x8xf32>
}

// -----

// CHECK: node "dropout": aten.scaled_dot_product_attention.default (opset 1): dropout_p is a probability from 0 to 1, not 1.5
graph.func @dropout(%q: tensor<1x2x4x8xf32> {graph.name = "q"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"scaled_dot_product_attention.default" opset 1(%q, %q, %q) {arg_names = ["query", "key", "value"], dropout_p = 1.5} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>) -> !tc.unknown loc("dropout")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "heads": aten.scaled_dot_product_attention.default (opset 1): the number of heads of the key, 4, does not divide the query's, 6
graph.func @heads(%q: tensor<1x6x4x8xf32> {graph.name = "q"}, %k: tensor<1x4x5x8xf32> {graph.name = "k"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"scaled_dot_product_attention.default" opset 1(%q, %k, %k) {arg_names = ["query", "key", "value"], enable_gqa = true} : (tensor<1x6x4x8xf32>, tensor<1x4x5x8xf32>, tensor<1x4x5x8xf32>) -> !tc.unknown loc("heads")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "two": aten.scaled_dot_product_attention.default (opset 1): takes attn_mask or is_causal, not both
graph.func @two(%q: tensor<1x2x4x8xf32> {graph.name = "q"}, %m: tensor<4x4xi1> {graph.name = "m"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"scaled_dot_product_attention.default" opset 1(%q, %q, %q, %m) {arg_names = ["query", "key", "value", "attn_mask"], is_causal = true} : (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<4x4xi1>) -> !tc.unknown loc("two")
  graph.yield %y : !tc.unknown
}
