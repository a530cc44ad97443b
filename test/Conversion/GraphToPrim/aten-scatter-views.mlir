// A tensor with the elements of a view replaced: what is wrong or not known is refused. test/Torch/writes compares numbers.
// RUN: not tc-opt %s --split-input-file --tc-convert-graph-to-prim 2>&1 | FileCheck %s
// RUN: not tc-opt %s --split-input-file --tc-convert-graph-to-prim 2>/dev/null | FileCheck %s --check-prefix=IR

// Rows in the middle are a concatenation; all of them are the new ones.
// IR-LABEL: func.func @rows
// IR: prim.concat
// IR-LABEL: func.func @all
// IR-NOT: prim.concat
// IR: return %arg1
graph.func @rows(%x: tensor<5x4xf32> {graph.name = "x"}, %s: tensor<2x4xf32> {graph.name = "s"}) -> tensor<5x4xf32> attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"slice_scatter.default" opset 1(%x, %s) {arg_names = ["self", "src"], start = 1 : i64, end = -2 : i64} : (tensor<5x4xf32>, tensor<2x4xf32>) -> tensor<5x4xf32>
  graph.yield %y : tensor<5x4xf32>
}

// -----

graph.func @all(%x: tensor<?x4xf32> {graph.name = "x", graph.dims = ["n", ""]}, %s: tensor<?x4xf32> {graph.name = "s", graph.dims = ["n", ""]}) -> tensor<?x4xf32> attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"slice_scatter.default" opset 1(%x, %s) {arg_names = ["self", "src"]} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  graph.yield %y : tensor<?x4xf32>
}

// -----

// CHECK: node "sizes": aten.slice_scatter.default (opset 1):
graph.func @sizes(%x: tensor<5x4xf32> {graph.name = "x"}, %s: tensor<3x4xf32> {graph.name = "s"}) -> tensor<5x4xf32> attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"slice_scatter.default" opset 1(%x, %s) {arg_names = ["self", "src"], start = 1 : i64, end = 3 : i64} : (tensor<5x4xf32>, tensor<3x4xf32>) -> tensor<5x4xf32> loc("sizes")
  graph.yield %y : tensor<5x4xf32>
}

// -----

// CHECK: node "index": aten.select_scatter.default (opset 1): index -6 is out of range for dim 0 of tensor<5x4xf32>
graph.func @index(%x: tensor<5x4xf32> {graph.name = "x"}, %s: tensor<4xf32> {graph.name = "s"}) -> tensor<5x4xf32> attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"select_scatter.default" opset 1(%x, %s) {arg_names = ["self", "src"], dim = 0 : i64, index = -6 : i64} : (tensor<5x4xf32>, tensor<4xf32>) -> tensor<5x4xf32> loc("index")
  graph.yield %y : tensor<5x4xf32>
}

// -----

// CHECK: node "shared": aten.as_strided_scatter.default (opset 1): writes elements that share memory
graph.func @shared(%x: tensor<6xf32> {graph.name = "x"}, %s: tensor<2x2xf32> {graph.name = "s"}) -> tensor<6xf32> attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"as_strided_scatter.default" opset 1(%x, %s) {arg_names = ["self", "src"], size = array<i64: 2, 2>, stride = array<i64: 1, 1>} : (tensor<6xf32>, tensor<2x2xf32>) -> tensor<6xf32> loc("shared")
  graph.yield %y : tensor<6xf32>
}

// -----

// An in-place operator never gives its tensor another shape.
// CHECK: node "larger": aten.copy.default (opset 1):
graph.func @larger(%x: tensor<1x4xf32> {graph.name = "x"}, %s: tensor<5x4xf32> {graph.name = "s"}) -> tensor<1x4xf32> attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"copy.default" opset 1(%x, %s) {arg_names = ["self", "src"]} : (tensor<1x4xf32>, tensor<5x4xf32>) -> tensor<1x4xf32> loc("larger")
  graph.yield %y : tensor<1x4xf32>
}

// -----

// Places behind the last row that is written read the row of zeros behind it: no index is out of range.
// IR-LABEL: func.func @steps
// IR: %[[SOURCE:.*]] = prim.pad
// IR: %[[INDEX:.*]] = prim.min
// IR: prim.gather %[[SOURCE]][%[[INDEX]]]
graph.func @steps(%x: tensor<9x4xf32> {graph.name = "x"}, %s: tensor<2x4xf32> {graph.name = "s"}) -> tensor<9x4xf32> attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"slice_scatter.default" opset 1(%x, %s) {arg_names = ["self", "src"], start = 1 : i64, end = 4 : i64, step = 2 : i64} : (tensor<9x4xf32>, tensor<2x4xf32>) -> tensor<9x4xf32>
  graph.yield %y : tensor<9x4xf32>
}

// -----

// IR-LABEL: func.func @tall
// IR: %[[SOURCE:.*]] = prim.pad
// IR: %[[INDEX:.*]] = prim.min
// IR: prim.gather %[[SOURCE]][%[[INDEX]]]
graph.func @tall(%x: tensor<9x2xf32> {graph.name = "x"}, %s: tensor<2xf32> {graph.name = "s"}) -> tensor<9x2xf32> attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"diagonal_scatter.default" opset 1(%x, %s) {arg_names = ["self", "src"]} : (tensor<9x2xf32>, tensor<2xf32>) -> tensor<9x2xf32>
  graph.yield %y : tensor<9x2xf32>
}
