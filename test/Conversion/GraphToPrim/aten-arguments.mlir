// Calls of PyTorch's operators are held against its signatures before their handlers run.
// RUN: not tc-opt %s --split-input-file --tc-convert-graph-to-prim 2>&1 | FileCheck %s

// CHECK: node "dim": aten.select.int (opset 1): argument "dim" is a string, where aten::select.int takes int
graph.func @dim(%x: tensor<3x4xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"select.int" opset 1(%x) {arg_names = ["self"], dim = "first", index = 0 : i64} : (tensor<3x4xf32>) -> !tc.unknown loc("dim")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "float": aten.softmax.int (opset 1): argument "dim" is a float, where aten::softmax.int takes int
graph.func @float(%x: tensor<3x4xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"softmax.int" opset 1(%x) {arg_names = ["self"], dim = 1.000000e+00 : f64} : (tensor<3x4xf32>) -> !tc.unknown loc("float")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "list": aten.cat.default (opset 1): argument "tensors" is an integer, where aten::cat takes Tensor[]
graph.func @list(%x: tensor<3x4xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"cat.default" opset 1(%x) {arg_names = ["other"], tensors = 1 : i64} : (tensor<3x4xf32>) -> !tc.unknown loc("list")
  graph.yield %y : !tc.unknown
}

// -----

// What tc-functionalize-graph refused is reported as the conversion's own refusals are.
// CHECK: node "resize": aten.resize_.default (opset 1) gives a tensor other memory, which is not supported; make a new tensor instead
graph.func @resize(%x: tensor<3x4xf32> {graph.name = "x"}) -> (tensor<3x4xf32>) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"resize_.default" opset 1(%x) {arg_names = ["self"], size = array<i64: 3, 4>} attributes {graph.refused = "gives a tensor other memory, which is not supported; make a new tensor instead"} : (tensor<3x4xf32>) -> tensor<3x4xf32> loc("resize")
  graph.yield %y : tensor<3x4xf32>
}
