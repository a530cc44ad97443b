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

// -----

// A layer with the norms first: one product projects queries, keys and values, and what a mask hides is minus infinity.
// IR-LABEL: func.func @layer
// IR: prim.norm
// IR: prim.dot_general {{.*}} : (tensor<2x5x8xf32>, tensor<24x8xf32>)
// IR: prim.attention {{.*}} mask
// IR: prim.norm
// IR: prim.erf
// IR: return
graph.func @layer(%x: tensor<2x5x8xf32> {graph.name = "x"}, %qkv: tensor<24x8xf32> {graph.name = "qkv"}, %bias: tensor<24xf32> {graph.name = "bias"},
                  %out: tensor<8x8xf32> {graph.name = "out"}, %n: tensor<8xf32> {graph.name = "n"}, %up: tensor<16x8xf32> {graph.name = "up"},
                  %upBias: tensor<16xf32> {graph.name = "up_bias"}, %down: tensor<8x16xf32> {graph.name = "down"}, %mask: tensor<2x5xi1> {graph.name = "mask"})
    -> (tensor<2x5x8xf32>) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"_transformer_encoder_layer_fwd.default" opset 1(%x, %qkv, %bias, %out, %n, %n, %n, %n, %n, %up, %upBias, %down, %n, %mask) {
      arg_names = ["src", "qkv_weight", "qkv_bias", "proj_weight", "proj_bias", "norm_weight_1", "norm_bias_1", "norm_weight_2", "norm_bias_2",
                   "ffn_weight_1", "ffn_bias_1", "ffn_weight_2", "ffn_bias_2", "mask"],
      embed_dim = 8 : i64, num_heads = 2 : i64, use_gelu = true, norm_first = true, eps = 1.0e-05 : f64, mask_type = 1 : i64}
      : (tensor<2x5x8xf32>, tensor<24x8xf32>, tensor<24xf32>, tensor<8x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>,
         tensor<16x8xf32>, tensor<16xf32>, tensor<8x16xf32>, tensor<8xf32>, tensor<2x5xi1>) -> tensor<2x5x8xf32> loc("layer")
  graph.yield %y : tensor<2x5x8xf32>
}

// -----

// CHECK: node "heads": aten._native_multi_head_attention.default (opset 1): has 3 heads, which do not divide embed_dim, 8
graph.func @heads(%x: tensor<2x5x8xf32> {graph.name = "x"}, %qkv: tensor<24x8xf32> {graph.name = "qkv"}, %out: tensor<8x8xf32> {graph.name = "out"})
    -> (tensor<2x5x8xf32>) attributes {opsets = {aten = 1 : i64}} {
  %y, %w = graph.node "aten":"_native_multi_head_attention.default" opset 1(%x, %x, %x, %qkv, %out) {
      arg_names = ["query", "key", "value", "qkv_weight", "proj_weight"], embed_dim = 8 : i64, num_head = 3 : i64}
      : (tensor<2x5x8xf32>, tensor<2x5x8xf32>, tensor<2x5x8xf32>, tensor<24x8xf32>, tensor<8x8xf32>) -> (tensor<2x5x8xf32>, tensor<2x5x5xf32>) loc("heads")
  graph.yield %y : tensor<2x5x8xf32>
}

// -----

// CHECK: node "mask": aten._native_multi_head_attention.default (opset 1): takes a mask of two dims with mask_type 0 or 1, or of four with mask_type 2, but got tensor<2x5xi1>
graph.func @mask(%x: tensor<2x5x8xf32> {graph.name = "x"}, %qkv: tensor<24x8xf32> {graph.name = "qkv"}, %out: tensor<8x8xf32> {graph.name = "out"},
                 %hidden: tensor<2x5xi1> {graph.name = "hidden"}) -> (tensor<2x5x8xf32>) attributes {opsets = {aten = 1 : i64}} {
  %y, %w = graph.node "aten":"_native_multi_head_attention.default" opset 1(%x, %x, %x, %qkv, %out, %hidden) {
      arg_names = ["query", "key", "value", "qkv_weight", "proj_weight", "mask"], embed_dim = 8 : i64, num_head = 2 : i64, mask_type = 2 : i64}
      : (tensor<2x5x8xf32>, tensor<2x5x8xf32>, tensor<2x5x8xf32>, tensor<24x8xf32>, tensor<8x8xf32>, tensor<2x5xi1>) -> (tensor<2x5x8xf32>, tensor<2x5x5xf32>) loc("mask")
  graph.yield %y : tensor<2x5x8xf32>
}
