// Indexing, scatters, masks and searches of ATen: where the dims of indices go, what depends on data, and what is refused. test/Torch compares
// numbers.
// RUN: not tc-opt %s --split-input-file --tc-convert-graph-to-prim 2>&1 | FileCheck %s
// RUN: not tc-opt %s --split-input-file --tc-convert-graph-to-prim 2>/dev/null | FileCheck %s --check-prefix=IR

// Indices of neighbouring dims take their place; those with a dim between them come first.
// IR-LABEL: func.func @index
// IR: prim.gather {{.*}} axis = 1 : {{.*}} -> tensor<2x7x5xf32>
// IR: prim.gather_nd {{.*}} -> tensor<7x2x4xf32>
graph.func @index(%x: tensor<2x3x4x5xf32> {graph.name = "x"}, %i: tensor<7xi64> {graph.name = "i"}) -> (tensor<2x7x5xf32>, tensor<7x2x4xf32>) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"index.Tensor" opset 1(%x, %i, %i) {arg_names = ["self", "indices.1", "indices.2"], indices.count = 3 : i64} : (tensor<2x3x4x5xf32>, tensor<7xi64>, tensor<7xi64>) -> tensor<2x7x5xf32> loc("neighbours")
  %z = graph.node "aten":"index.Tensor" opset 1(%x, %i, %i) {arg_names = ["self", "indices.1", "indices.3"], indices.count = 4 : i64} : (tensor<2x3x4x5xf32>, tensor<7xi64>, tensor<7xi64>) -> tensor<7x2x4xf32> loc("apart")
  graph.yield %y, %z : tensor<2x7x5xf32>, tensor<7x2x4xf32>
}

// -----

// A mask of two dims stands for one, of which it takes as many elements as are true.
// IR-LABEL: func.func @mask
// IR: prim.bind_symbol %[[N:.*]] to 0
// IR: prim.gather {{.*}} axis = 0 : (tensor<6x4xf32>, tensor<?xi64
graph.func @mask(%x: tensor<2x3x4xf32> {graph.name = "x"}, %m: tensor<2x3xi1> {graph.name = "m"}) -> (tensor<?x4xf32>) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"index.Tensor" opset 1(%x, %m) {arg_names = ["self", "indices.0"], indices.count = 1 : i64} : (tensor<2x3x4xf32>, tensor<2x3xi1>) -> tensor<?x4xf32> loc("mask")
  graph.yield %y : tensor<?x4xf32>
}

// -----

// One number where a mask is true needs no indices.
// IR-LABEL: func.func @put
// IR-NOT: prim.scatter
// IR: prim.select
graph.func @put(%x: tensor<2x3xf32> {graph.name = "x"}, %m: tensor<2x3xi1> {graph.name = "m"}, %v: tensor<f32> {graph.name = "v"}) -> (tensor<2x3xf32>) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"index_put.default" opset 1(%x, %m, %v) {arg_names = ["self", "indices.0", "values"], indices.count = 1 : i64} : (tensor<2x3xf32>, tensor<2x3xi1>, tensor<f32>) -> tensor<2x3xf32> loc("put")
  graph.yield %y : tensor<2x3xf32>
}

// -----

// Of bools the sum is or.
// IR-LABEL: func.func @bools
// IR: prim.scatter_elements {{.*}} kind or
graph.func @bools(%x: tensor<4xi1> {graph.name = "x"}, %i: tensor<3xi64> {graph.name = "i"}, %s: tensor<3xi1> {graph.name = "s"}) -> (tensor<4xi1>) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"scatter_add.default" opset 1(%x, %i, %s) {arg_names = ["self", "index", "src"], dim = 0 : i64} : (tensor<4xi1>, tensor<3xi64>, tensor<3xi1>) -> tensor<4xi1> loc("bools")
  graph.yield %y : tensor<4xi1>
}

// -----

// Along a dim PyTorch numbers the groups whether it is asked for them or not.
// IR-LABEL: func.func @unique
// IR-SAME: -> (tensor<?x2xi64, {{.*}}> {tc.name = ""}, tensor<4xi64> {tc.name = ""}, tensor<0xi64> {tc.name = ""})
graph.func @unique(%x: tensor<4x2xi64> {graph.name = "x"}) -> (tensor<?x2xi64>, tensor<4xi64>, tensor<0xi64>) attributes {opsets = {aten = 1 : i64}} {
  %y:3 = graph.node "aten":"unique_dim.default" opset 1(%x) {arg_names = ["self"], dim = 0 : i64} : (tensor<4x2xi64>) -> (tensor<?x2xi64>, tensor<4xi64>, tensor<0xi64>) loc("unique")
  graph.yield %y#0, %y#1, %y#2 : tensor<?x2xi64>, tensor<4xi64>, tensor<0xi64>
}

// -----

// CHECK: node "many": aten.index.Tensor (opset 1): has more indices than the operand tensor<4xf32> has dims
graph.func @many(%x: tensor<4xf32> {graph.name = "x"}, %i: tensor<3xi64> {graph.name = "i"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"index.Tensor" opset 1(%x, %i, %i) {arg_names = ["self", "indices.0", "indices.1"], indices.count = 2 : i64} : (tensor<4xf32>, tensor<3xi64>, tensor<3xi64>) -> !tc.unknown loc("many")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "wild": aten.embedding.default (opset 1): index 9 is outside of a dim of 4 elements of the operand tensor<4x2xf32>; indices lie in [-4, 4)
graph.func @wild(%w: tensor<4x2xf32> {graph.name = "w"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %i = graph.constant dense<[1, 9]> : tensor<2xi64> loc("i")
  %y = graph.node "aten":"embedding.default" opset 1(%w, %i) {arg_names = ["weight", "indices"]} : (tensor<4x2xf32>, tensor<2xi64>) -> !tc.unknown loc("wild")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "floats": aten.gather.default (opset 1): argument "index" must be a tensor of integers, but is tensor<2xf32>
graph.func @floats(%x: tensor<4xf32> {graph.name = "x"}, %i: tensor<2xf32> {graph.name = "i"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"gather.default" opset 1(%x, %i) {arg_names = ["self", "index"], dim = 0 : i64} : (tensor<4xf32>, tensor<2xf32>) -> !tc.unknown loc("floats")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "types": aten.scatter.src (opset 1): src and the operand differ in element type: tensor<2xf64> and tensor<4xf32>
graph.func @types(%x: tensor<4xf32> {graph.name = "x"}, %i: tensor<2xi64> {graph.name = "i"}, %s: tensor<2xf64> {graph.name = "s"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"scatter.src" opset 1(%x, %i, %s) {arg_names = ["self", "index", "src"], dim = 0 : i64} : (tensor<4xf32>, tensor<2xi64>, tensor<2xf64>) -> !tc.unknown loc("types")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "reduce": aten.scatter_reduce.two (opset 1): argument "reduce" is "median"; it may be "sum", "prod", "mean", "amax" or "amin"
graph.func @reduce(%x: tensor<4xf32> {graph.name = "x"}, %i: tensor<2xi64> {graph.name = "i"}, %s: tensor<2xf32> {graph.name = "s"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"scatter_reduce.two" opset 1(%x, %i, %s) {arg_names = ["self", "index", "src"], dim = 0 : i64, reduce = "median"} : (tensor<4xf32>, tensor<2xi64>, tensor<2xf32>) -> !tc.unknown loc("reduce")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "topk": aten.topk.default (opset 1): needs no more elements than there are along its dim (5 against 4)
graph.func @topk(%x: tensor<4xf32> {graph.name = "x"}) -> (!tc.unknown, !tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y:2 = graph.node "aten":"topk.default" opset 1(%x) {arg_names = ["self"], k = 5 : i64} : (tensor<4xf32>) -> (!tc.unknown, !tc.unknown) loc("topk")
  graph.yield %y#0, %y#1 : !tc.unknown, !tc.unknown
}

// -----

// CHECK: node "sort": aten.sort.default (opset 1) on complex numbers is not supported
graph.func @sort(%x: tensor<4xcomplex<f32>> {graph.name = "x"}) -> (!tc.unknown, !tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y:2 = graph.node "aten":"sort.default" opset 1(%x) {arg_names = ["self"]} : (tensor<4xcomplex<f32>>) -> (!tc.unknown, !tc.unknown) loc("sort")
  graph.yield %y#0, %y#1 : !tc.unknown, !tc.unknown
}

// -----

// Bags of equal size, of which offsets are constants or an arange: rows that lie one after another, and no scatter.
// IR-LABEL: func.func @even_bags
// IR-NOT: prim.scatter
// IR: prim.reshape {{.*}} tensor<6x3xf32> -> tensor<2x3x3xf32>
// IR: prim.reduce sum
// IR-NOT: prim.scatter
// IR: return
graph.func @even_bags(%w: tensor<4x3xf32>, %i: tensor<6xi64>) -> tensor<2x3xf32> attributes {opsets = {aten = 1 : i64}} {
  %o = graph.constant dense<[0, 3]> : tensor<2xi64>
  %1:4 = graph.node "aten":"embedding_bag.padding_idx" opset 1(%w, %i, %o) {arg_names = ["weight", "indices", "offsets"], mode = 0 : i64} : (tensor<4x3xf32>, tensor<6xi64>, tensor<2xi64>) -> (tensor<2x3xf32>, !tc.unknown, !tc.unknown, !tc.unknown)
  graph.yield %1#0 : tensor<2x3xf32>
}

// -----

// Bags of other sizes.
// IR-LABEL: func.func @other_bags
// IR: prim.scatter_nd
graph.func @other_bags(%w: tensor<4x3xf32>, %i: tensor<6xi64>) -> tensor<2x3xf32> attributes {opsets = {aten = 1 : i64}} {
  %o = graph.constant dense<[0, 2]> : tensor<2xi64>
  %1:4 = graph.node "aten":"embedding_bag.padding_idx" opset 1(%w, %i, %o) {arg_names = ["weight", "indices", "offsets"], mode = 0 : i64} : (tensor<4x3xf32>, tensor<6xi64>, tensor<2xi64>) -> (tensor<2x3xf32>, !tc.unknown, !tc.unknown, !tc.unknown)
  graph.yield %1#0 : tensor<2x3xf32>
}
