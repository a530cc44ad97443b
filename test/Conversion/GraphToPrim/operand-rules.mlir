// What OperandRules.def asks of ranks, sizes and constants: one sentence names the node, the operand, what came and what may.
// RUN: not tc-opt %s -split-input-file -tc-convert-graph-to-prim 2>&1 | FileCheck %s

// A size that another operand has.
// CHECK: node "bias": Conv (opset 22): operand 2 ("B") is tensor<17xf32>; it must be [O], where O = 16
graph.func @size(%x: tensor<1x3x8x8xf32> {graph.name = "x"}, %w: tensor<16x3x3x3xf32> {graph.name = "w"}, %b: tensor<17xf32> {graph.name = "b"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 22 : i64}} {
  %y = graph.node "ai.onnx":"Conv" opset 22(%x, %w, %b) : (tensor<1x3x8x8xf32>, tensor<16x3x3x3xf32>, tensor<17xf32>) -> !tc.unknown loc("bias")
  graph.yield %y : !tc.unknown
}

// -----

// A quotient with an attribute, and dims as many as others.
// CHECK: node "group": Conv (opset 22): operand 1 ("W") is tensor<16x3x3x3xf32>; it must be [O, C / group, K.. (one or more)], where C = 3, group = 2 and K.. = 2 dims
graph.func @quotient(%x: tensor<1x3x8x8xf32> {graph.name = "x"}, %w: tensor<16x3x3x3xf32> {graph.name = "w"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 22 : i64}} {
  %y = graph.node "ai.onnx":"Conv" opset 22(%x, %w) {group = 2 : i64} : (tensor<1x3x8x8xf32>, tensor<16x3x3x3xf32>) -> !tc.unknown loc("group")
  graph.yield %y : !tc.unknown
}

// -----

// How many numbers an attribute has.
// CHECK: node "strides": AveragePool (opset 22): strides has 3 entries; it must have rank(X) - 2, where rank(X) = 4
graph.func @entries(%x: tensor<1x3x8x8xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 22 : i64}} {
  %y = graph.node "ai.onnx":"AveragePool" opset 22(%x) {kernel_shape = array<i64: 2, 2>, strides = array<i64: 1, 1, 1>} : (tensor<1x3x8x8xf32>) -> !tc.unknown loc("strides")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "dilations": MaxPool (opset 22): dilations holds 0; it must be > 0
graph.func @attribute(%x: tensor<1x3x8x8xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 22 : i64}} {
  %y = graph.node "ai.onnx":"MaxPool" opset 22(%x) {kernel_shape = array<i64: 2, 2>, dilations = array<i64: 1, 0>} : (tensor<1x3x8x8xf32>) -> !tc.unknown loc("dilations")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "none": MaxPool (opset 22): kernel_shape is missing
graph.func @given(%x: tensor<1x3x8x8xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 22 : i64}} {
  %y = graph.node "ai.onnx":"MaxPool" opset 22(%x) : (tensor<1x3x8x8xf32>) -> !tc.unknown loc("none")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "mode": Pad (opset 21): mode is "nearest"; it may be constant, edge, reflect or wrap
graph.func @word(%x: tensor<2x3xf32> {graph.name = "x"}, %p: tensor<4xi64> {graph.name = "p"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 21 : i64}} {
  %y = graph.node "ai.onnx":"Pad" opset 21(%x, %p) {mode = "nearest"} : (tensor<2x3xf32>, tensor<4xi64>) -> !tc.unknown loc("mode")
  graph.yield %y : !tc.unknown
}

// -----

// A length that a later operand tells, and one that stands in for it.
// CHECK: node "axes": Pad (opset 21): operand 1 ("pads") is tensor<4xi64>; it must be [2 * P], where P = 1
graph.func @later(%x: tensor<2x3xf32> {graph.name = "x"}, %p: tensor<4xi64> {graph.name = "p"}, %a: tensor<1xi64> {graph.name = "a"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 21 : i64}} {
  %none = graph.none : none
  %y = graph.node "ai.onnx":"Pad" opset 21(%x, %p, %none, %a) : (tensor<2x3xf32>, tensor<4xi64>, none, tensor<1xi64>) -> !tc.unknown loc("axes")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "pads": Pad (opset 21): operand 1 ("pads") is tensor<6xi64>; it must be [2 * P], where P = 2
graph.func @otherwise(%x: tensor<2x3xf32> {graph.name = "x"}, %p: tensor<6xi64> {graph.name = "p"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 21 : i64}} {
  %y = graph.node "ai.onnx":"Pad" opset 21(%x, %p) : (tensor<2x3xf32>, tensor<6xi64>) -> !tc.unknown loc("pads")
  graph.yield %y : !tc.unknown
}

// -----

// Several forms, of which none fits.
// CHECK: node "scales": Resize (opset 19): operand 2 ("scales") is tensor<3xf32>; it must be [P] or [0], where P = 2
graph.func @forms(%x: tensor<2x3xf32> {graph.name = "x"}, %s: tensor<3xf32> {graph.name = "s"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 19 : i64}} {
  %none = graph.none : none
  %y = graph.node "ai.onnx":"Resize" opset 19(%x, %none, %s) : (tensor<2x3xf32>, none, tensor<3xf32>) -> !tc.unknown loc("scales")
  graph.yield %y : !tc.unknown
}

// -----

// Constants among the operands, of floats and of integers.
// CHECK: node "nan": Resize (opset 19): operand 2 ("scales") holds {{.*}}nan{{.*}}; it must be > 0
graph.func @float(%x: tensor<2x3xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 19 : i64}} {
  %none = graph.none : none
  %s = graph.constant dense<[1.0, 0x7FC00000]> : tensor<2xf32>
  %y = graph.node "ai.onnx":"Resize" opset 19(%x, %none, %s) : (tensor<2x3xf32>, none, tensor<2xf32>) -> !tc.unknown loc("nan")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "delta": Range (opset 11): operand 2 ("delta") holds 0; it must be != 0
graph.func @integer(%x: tensor<i64> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 11 : i64}} {
  %s = graph.constant dense<0> : tensor<i64>
  %y = graph.node "ai.onnx":"Range" opset 11(%x, %x, %s) : (tensor<i64>, tensor<i64>, tensor<i64>) -> !tc.unknown loc("delta")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "perm": Transpose (opset 21): perm must name each of 0 to 1 once
graph.func @permutation(%x: tensor<2x3xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 21 : i64}} {
  %y = graph.node "ai.onnx":"Transpose" opset 21(%x) {perm = array<i64: 1, 1>} : (tensor<2x3xf32>) -> !tc.unknown loc("perm")
  graph.yield %y : !tc.unknown
}

// -----

// Dims that stand in two operands.
// CHECK: node "labels": NegativeLogLikelihoodLoss (opset 13): operand 1 ("target") is tensor<2x5xi64>; it must be [N, D..], where N = 2 and D.. = 4
graph.func @run(%x: tensor<2x3x4xf32> {graph.name = "x"}, %t: tensor<2x5xi64> {graph.name = "t"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 13 : i64}} {
  %y = graph.node "ai.onnx":"NegativeLogLikelihoodLoss" opset 13(%x, %t) : (tensor<2x3x4xf32>, tensor<2x5xi64>) -> !tc.unknown loc("labels")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "mask": com.microsoft.EmbedLayerNormalization (opset 1): operand 7 ("mask") is tensor<2xi32>; it must be [B, S], where B = 2 and S = 3
graph.func @microsoft(%i: tensor<2x3xi32> {graph.name = "i"}, %t: tensor<9x8xf32> {graph.name = "t"}, %g: tensor<8xf32> {graph.name = "g"}, %m: tensor<2xi32> {graph.name = "m"}) -> (!tc.unknown) attributes {opsets = {com.microsoft = 1 : i64}} {
  %none = graph.none : none
  %y = graph.node "com.microsoft":"EmbedLayerNormalization" opset 1(%i, %none, %t, %t, %none, %g, %g, %m) : (tensor<2x3xi32>, none, tensor<9x8xf32>, tensor<9x8xf32>, none, tensor<8xf32>, tensor<8xf32>, tensor<2xi32>) -> !tc.unknown loc("mask")
  graph.yield %y : !tc.unknown
}

// -----

// Operators of PyTorch name their arguments.
// CHECK: node "rows": aten.linear.default (opset 1): argument "weight" is tensor<3x5xf32>; it must be [N, K] or [K], where K = 4
graph.func @aten(%x: tensor<2x4xf32> {graph.name = "x"}, %w: tensor<3x5xf32> {graph.name = "w"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"linear.default" opset 1(%x, %w) {arg_names = ["input", "weight"]} : (tensor<2x4xf32>, tensor<3x5xf32>) -> !tc.unknown loc("rows")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "batch": aten.bmm.default (opset 1): argument "mat2" is tensor<3x5x6xf32>; it must be [B, K, N], where B = 2 and K = 5
graph.func @batches(%x: tensor<2x4x5xf32> {graph.name = "x"}, %w: tensor<3x5x6xf32> {graph.name = "w"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"bmm.default" opset 1(%x, %w) {arg_names = ["self", "mat2"]} : (tensor<2x4x5xf32>, tensor<3x5x6xf32>) -> !tc.unknown loc("batch")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "norm": aten.layer_norm.default (opset 1): normalized_shape has 2 entries; it must have rank(weight), where rank(weight) = 1
graph.func @norm(%x: tensor<2x4x5xf32> {graph.name = "x"}, %w: tensor<5xf32> {graph.name = "w"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"layer_norm.default" opset 1(%x, %w) {arg_names = ["input", "weight"], normalized_shape = array<i64: 4, 5>} : (tensor<2x4x5xf32>, tensor<5xf32>) -> !tc.unknown loc("norm")
  graph.yield %y : !tc.unknown
}

// -----

// What only the run knows is no error.
// CHECK-NOT: error
// CHECK: func.func @unknown
graph.func @unknown(%x: tensor<?x?x?x?xf32> {graph.name = "x"}, %w: tensor<?x3x3x3xf32> {graph.name = "w"}, %b: tensor<?xf32> {graph.name = "b"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 22 : i64}} {
  %y = graph.node "ai.onnx":"Conv" opset 22(%x, %w, %b) : (tensor<?x?x?x?xf32>, tensor<?x3x3x3xf32>, tensor<?xf32>) -> !tc.unknown loc("unknown")
  graph.yield %y : !tc.unknown
}
