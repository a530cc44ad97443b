// Recurrent layers and cells of ATen: gates stand in another order than in prim; what is packed, projected or random is refused.
// RUN: not tc-opt %s --split-input-file --tc-convert-graph-to-prim 2>&1 | FileCheck %s
// RUN: not tc-opt %s --split-input-file --tc-convert-graph-to-prim 2>/dev/null | FileCheck %s --check-prefix=IR

// PyTorch's input, forget, cell and output gates become input, output, forget and cell.
// IR-DAG: #[[INPUT:.*]] = affine_map<() -> (0, 0)>
// IR-DAG: #[[OUTPUT:.*]] = affine_map<() -> (6, 0)>
// IR-DAG: #[[FORGET:.*]] = affine_map<() -> (2, 0)>
// IR-DAG: #[[CELL:.*]] = affine_map<() -> (4, 0)>
// IR: func.func @lstm
// IR: prim.slice %arg3 from #[[INPUT]]
// IR: prim.slice %arg3 from #[[OUTPUT]]
// IR: prim.slice %arg3 from #[[FORGET]]
// IR: prim.slice %arg3 from #[[CELL]]
// IR: prim.rnn lstm
graph.func @lstm(%x: tensor<5x3x4xf32> {graph.name = "x"}, %h: tensor<1x3x2xf32> {graph.name = "h"}, %c: tensor<1x3x2xf32> {graph.name = "c"}, %w: tensor<8x4xf32> {graph.name = "w"}, %r: tensor<8x2xf32> {graph.name = "r"}) -> (tensor<5x3x2xf32>) attributes {opsets = {aten = 1 : i64}} {
  %y:3 = graph.node "aten":"lstm.input" opset 1(%x, %h, %c, %w, %r) {arg_names = ["input", "hx.0", "hx.1", "params.0", "params.1"], hx.count = 2 : i64, params.count = 2 : i64, has_biases = false, num_layers = 1 : i64, dropout = 0.0, train = false, bidirectional = false, batch_first = false} : (tensor<5x3x4xf32>, tensor<1x3x2xf32>, tensor<1x3x2xf32>, tensor<8x4xf32>, tensor<8x2xf32>) -> (tensor<5x3x2xf32>, tensor<1x3x2xf32>, tensor<1x3x2xf32>) loc("lstm")
  graph.yield %y#0 : tensor<5x3x2xf32>
}

// -----

// A projected state: recurrent weights times the projection, and the first step's share by inputs of its own.
// IR-LABEL: func.func @projected
// IR: prim.concat %arg2, %arg3 axis = 1 : (tensor<8x4xf32>, tensor<8x1xf32>) -> tensor<8x5xf32>
// IR: prim.dot_general %arg3, %arg4 {{.*}} -> tensor<8x2xf32>
// IR: prim.concat %arg0, {{.*}} axis = 2 : (tensor<5x3x4xf32>, tensor<5x3x1xf32>) -> tensor<5x3x5xf32>
// IR: prim.rnn lstm
// IR: prim.dot_general {{.*}} -> tensor<5x3x1xf32>
graph.func @projected(%x: tensor<5x3x4xf32> {graph.name = "x"}, %h: tensor<1x3x1xf32> {graph.name = "h"}, %w: tensor<8x4xf32> {graph.name = "w"}, %r: tensor<8x1xf32> {graph.name = "r"}, %p: tensor<1x2xf32> {graph.name = "p"}, %c: tensor<1x3x2xf32> {graph.name = "c"}) -> (tensor<5x3x1xf32>) attributes {opsets = {aten = 1 : i64}} {
  %y:3 = graph.node "aten":"lstm.input" opset 1(%x, %h, %c, %w, %r, %p) {arg_names = ["input", "hx.0", "hx.1", "params.0", "params.1", "params.2"], hx.count = 2 : i64, params.count = 3 : i64, has_biases = false, num_layers = 1 : i64, dropout = 0.0, train = false, bidirectional = false, batch_first = false} : (tensor<5x3x4xf32>, tensor<1x3x1xf32>, tensor<1x3x2xf32>, tensor<8x4xf32>, tensor<8x1xf32>, tensor<1x2xf32>) -> (tensor<5x3x1xf32>, tensor<1x3x1xf32>, tensor<1x3x2xf32>) loc("projected")
  graph.yield %y#0 : tensor<5x3x1xf32>
}

// -----

// CHECK: node "count": aten.gru.input (opset 1): has 3 parameters, but 1 layers need 2
graph.func @count(%x: tensor<5x3x4xf32> {graph.name = "x"}, %h: tensor<1x3x2xf32> {graph.name = "h"}, %w: tensor<6x4xf32> {graph.name = "w"}, %r: tensor<6x2xf32> {graph.name = "r"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"gru.input" opset 1(%x, %h, %w, %r, %r) {arg_names = ["input", "hx", "params.0", "params.1", "params.2"], params.count = 3 : i64, has_biases = false, num_layers = 1 : i64, dropout = 0.0, train = false, bidirectional = false, batch_first = false} : (tensor<5x3x4xf32>, tensor<1x3x2xf32>, tensor<6x4xf32>, tensor<6x2xf32>, tensor<6x2xf32>) -> !tc.unknown loc("count")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "random": aten.gru.input (opset 1): dropout is a probability from 0 to 1, not -0.1
graph.func @random(%x: tensor<5x3x4xf32> {graph.name = "x"}, %h: tensor<2x3x2xf32> {graph.name = "h"}, %w: tensor<6x4xf32> {graph.name = "w"}, %r: tensor<6x2xf32> {graph.name = "r"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"gru.input" opset 1(%x, %h, %w, %r) {arg_names = ["input", "hx", "params.0", "params.1"], params.count = 2 : i64, has_biases = false, num_layers = 2 : i64, dropout = -0.1, train = true, bidirectional = false, batch_first = false} : (tensor<5x3x4xf32>, tensor<2x3x2xf32>, tensor<6x4xf32>, tensor<6x2xf32>) -> !tc.unknown loc("random")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "packed": aten.lstm.data (opset 1) of a packed sequence in both directions, with projections, is not supported; pass the padded tensor instead
graph.func @packed(%x: tensor<5x4xf32> {graph.name = "x"}, %n: tensor<3xi64> {graph.name = "n"}, %h: tensor<2x3x1xf32> {graph.name = "h"}, %c: tensor<2x3x2xf32> {graph.name = "c"}, %w: tensor<8x4xf32> {graph.name = "w"}, %r: tensor<8x1xf32> {graph.name = "r"}, %p: tensor<1x2xf32> {graph.name = "p"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"lstm.data" opset 1(%x, %n, %h, %c, %w, %r, %p, %w, %r, %p) {arg_names = ["data", "batch_sizes", "hx.0", "hx.1", "params.0", "params.1", "params.2", "params.3", "params.4", "params.5"], hx.count = 2 : i64, params.count = 6 : i64, has_biases = false, num_layers = 1 : i64, dropout = 0.0, train = false, bidirectional = true} : (tensor<5x4xf32>, tensor<3xi64>, tensor<2x3x1xf32>, tensor<2x3x2xf32>, tensor<8x4xf32>, tensor<8x1xf32>, tensor<1x2xf32>, tensor<8x4xf32>, tensor<8x1xf32>, tensor<1x2xf32>) -> !tc.unknown loc("packed")
  graph.yield %y : !tc.unknown
}
