// Operands are promoted as PyTorch promotes them, which the archive's types say again: a handler that promotes otherwise fails. What has no meaning is refused.
// RUN: not tc-opt %s --split-input-file --tc-convert-graph-to-prim 2>&1 | FileCheck %s --implicit-check-not="tc computes"

graph.func @halves(%a: tensor<2xf16> {graph.name = "a"}, %b: tensor<2xbf16> {graph.name = "b"}) -> (tensor<2xf32>) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"add.Tensor" opset 1(%a, %b) {arg_names = ["self", "other"]} : (tensor<2xf16>, tensor<2xbf16>) -> tensor<2xf32> loc("halves")
  graph.yield %y : tensor<2xf32>
}

// -----

graph.func @bytes(%a: tensor<2xui8> {graph.name = "a"}, %b: tensor<2xi8> {graph.name = "b"}) -> (tensor<2xi16>) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"add.Tensor" opset 1(%a, %b) {arg_names = ["self", "other"]} : (tensor<2xui8>, tensor<2xi8>) -> tensor<2xi16> loc("bytes")
  graph.yield %y : tensor<2xi16>
}

// -----

graph.func @scalar(%a: tensor<2xi32> {graph.name = "a"}, %b: tensor<f64> {graph.name = "b"}) -> (tensor<2xf64>) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"mul.Tensor" opset 1(%a, %b) {arg_names = ["self", "other"]} : (tensor<2xi32>, tensor<f64>) -> tensor<2xf64> loc("scalar")
  graph.yield %y : tensor<2xf64>
}

// -----

graph.func @narrow(%a: tensor<2xf16> {graph.name = "a"}, %b: tensor<f64> {graph.name = "b"}) -> (tensor<2xf16>) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"mul.Tensor" opset 1(%a, %b) {arg_names = ["self", "other"]} : (tensor<2xf16>, tensor<f64>) -> tensor<2xf16> loc("narrow")
  graph.yield %y : tensor<2xf16>
}

// -----

graph.func @number(%a: tensor<2xi8> {graph.name = "a"}) -> (tensor<2xf32>) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"mul.Tensor" opset 1(%a) {arg_names = ["self"], other = 2.5 : f64} : (tensor<2xi8>) -> tensor<2xf32> loc("number")
  graph.yield %y : tensor<2xf32>
}

// -----

graph.func @truth(%a: tensor<2xi1> {graph.name = "a"}) -> (tensor<2xi64>) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"add.Tensor" opset 1(%a) {arg_names = ["self"], other = 1 : i64} : (tensor<2xi1>) -> tensor<2xi64> loc("truth")
  graph.yield %y : tensor<2xi64>
}

// -----

graph.func @quotient(%a: tensor<2xi64> {graph.name = "a"}, %b: tensor<2xi32> {graph.name = "b"}) -> (tensor<2xf32>) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"div.Tensor" opset 1(%a, %b) {arg_names = ["self", "other"]} : (tensor<2xi64>, tensor<2xi32>) -> tensor<2xf32> loc("quotient")
  graph.yield %y : tensor<2xf32>
}

// -----

graph.func @chosen(%a: tensor<2xi1> {graph.name = "a"}, %b: tensor<1xi16> {graph.name = "b"}) -> (tensor<2xi16>) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"where.ScalarOther" opset 1(%a, %b) {arg_names = ["condition", "self"], other = true} : (tensor<2xi1>, tensor<1xi16>) -> tensor<2xi16> loc("chosen")
  graph.yield %y : tensor<2xi16>
}

// -----

graph.func @power(%a: tensor<2xi64> {graph.name = "a"}) -> (tensor<2xi64>) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"pow.Scalar" opset 1(%a) {arg_names = ["exponent"], self = 2 : i64} : (tensor<2xi64>) -> tensor<2xi64> loc("power")
  graph.yield %y : tensor<2xi64>
}

// -----

graph.func @wide(%a: tensor<2xi64> {graph.name = "a"}) -> (tensor<2xf64>) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"float_power.Tensor_Scalar" opset 1(%a) {arg_names = ["self"], exponent = 2 : i64} : (tensor<2xi64>) -> tensor<2xf64> loc("wide")
  graph.yield %y : tensor<2xf64>
}

// -----

graph.func @total(%a: tensor<2xi1> {graph.name = "a"}) -> (tensor<i64>) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"sum.default" opset 1(%a) {arg_names = ["self"]} : (tensor<2xi1>) -> tensor<i64> loc("total")
  graph.yield %y : tensor<i64>
}

// -----

graph.func @some(%a: tensor<2x3xui8> {graph.name = "a"}) -> (tensor<2xui8>) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"any.dim" opset 1(%a) {arg_names = ["self"], dim = 1 : i64} : (tensor<2x3xui8>) -> tensor<2xui8> loc("some")
  graph.yield %y : tensor<2xui8>
}

// -----

graph.func @filled() -> (tensor<2xi1>) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"full.default" opset 1() {arg_names = [], size = array<i64: 2>, fill_value = true} : () -> tensor<2xi1> loc("filled")
  graph.yield %y : tensor<2xi1>
}

// -----

graph.func @steps() -> (tensor<3xf32>) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"arange.default" opset 1() {arg_names = [], end = 2.5 : f64} : () -> tensor<3xf32> loc("steps")
  graph.yield %y : tensor<3xf32>
}

// -----

// Integers between real ends are counted before they are cut.
graph.func @whole_steps() -> (tensor<4xi64>) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"arange.default" opset 1() {arg_names = [], end = 3.1 : f64, dtype = i64} : () -> tensor<4xi64> loc("whole_steps")
  graph.yield %y : tensor<4xi64>
}

// -----

// CHECK: node "unsigned": aten.add.Tensor (opset 1){{.*}}of tensor<2xui16>, tensor<2xi16> is not supported: they have no common type; convert them by .to(dtype) before
graph.func @unsigned(%a: tensor<2xui16> {graph.name = "a"}, %b: tensor<2xi16> {graph.name = "b"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"add.Tensor" opset 1(%a, %b) {arg_names = ["self", "other"]} : (tensor<2xui16>, tensor<2xi16>) -> !tc.unknown loc("unsigned")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "bools": aten.sub.Tensor (opset 1){{.*}}takes no bools; use logical_xor or bitwise_not
graph.func @bools(%a: tensor<2xi1> {graph.name = "a"}, %b: tensor<2xi1> {graph.name = "b"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"sub.Tensor" opset 1(%a, %b) {arg_names = ["self", "other"]} : (tensor<2xi1>, tensor<2xi1>) -> !tc.unknown loc("bools")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "complex": aten.mul.Tensor (opset 1){{.*}}with the complex number "other" is not supported; make it a tensor
graph.func @complex(%a: tensor<2xf32> {graph.name = "a"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"mul.Tensor" opset 1(%a) {arg_names = ["self"], other = "as_complex"} : (tensor<2xf32>) -> !tc.unknown loc("complex")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "mode": aten.div.Tensor_mode (opset 1){{.*}}rounding_mode is "up"; it may be "trunc" or "floor"
graph.func @mode(%a: tensor<2xf32> {graph.name = "a"}, %b: tensor<2xf32> {graph.name = "b"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"div.Tensor_mode" opset 1(%a, %b) {arg_names = ["self", "other"], rounding_mode = "up"} : (tensor<2xf32>, tensor<2xf32>) -> !tc.unknown loc("mode")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "nothing": aten.amax.default (opset 1){{.*}}needs one element or more to choose from
graph.func @nothing(%a: tensor<2x0xf32> {graph.name = "a"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"amax.default" opset 1(%a) {arg_names = ["self"], dim = array<i64: 1>} : (tensor<2x0xf32>) -> !tc.unknown loc("nothing")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "dims": aten.sum.dim_IntList (opset 1){{.*}}argument "dim" names dim 1 of a tensor without dims
graph.func @dims(%a: tensor<f32> {graph.name = "a"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"sum.dim_IntList" opset 1(%a) {arg_names = ["self"], dim = array<i64: 1>} : (tensor<f32>) -> !tc.unknown loc("dims")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "away": aten.arange.start_step (opset 1){{.*}}which it never reaches, or in too many steps
graph.func @away() -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"arange.start_step" opset 1() {arg_names = [], start = 0 : i64, end = 5 : i64, step = -1 : i64} : () -> !tc.unknown loc("away")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "classes": aten.cross_entropy_loss.default (opset 1){{.*}}needs equal sizes in dim 0
graph.func @classes(%a: tensor<2x3xf32> {graph.name = "a"}, %b: tensor<4xi64> {graph.name = "b"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"cross_entropy_loss.default" opset 1(%a, %b) {arg_names = ["self", "target"]} : (tensor<2x3xf32>, tensor<4xi64>) -> !tc.unknown loc("classes")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "reduction": aten.mse_loss.default (opset 1){{.*}}reduction is 7; it may be 0 (none), 1 (mean) or 2 (sum)
graph.func @reduction(%a: tensor<2xf32> {graph.name = "a"}, %b: tensor<2xf32> {graph.name = "b"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"mse_loss.default" opset 1(%a, %b) {arg_names = ["self", "target"], reduction = 7 : i64} : (tensor<2xf32>, tensor<2xf32>) -> !tc.unknown loc("reduction")
  graph.yield %y : !tc.unknown
}
