// Proves: factors of PyTorch's linear algebra are functions of the runtime; a singular matrix fails at run time; what can't be is refused.
// RUN: not tc-opt %s -tc-convert-graph-to-prim -split-input-file 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=ERROR --input-file=%t

// CHECK-LABEL: func.func @inverse
// CHECK: prim.host_call "linalg_solve"
// CHECK: prim.bind_symbol {{.*}}its matrix is singular and has no inverse
graph.func @inverse(%x: tensor<?x4x4xf32> {graph.name = "x"}) -> tensor<?x4x4xf32> attributes {opsets = {aten = 10 : i64}} {
  %y = graph.node "aten":"linalg_inv.default" opset 10(%x) {arg_names = ["A"]} : (tensor<?x4x4xf32>) -> tensor<?x4x4xf32>
  graph.yield %y : tensor<?x4x4xf32>
}

// -----

// CHECK-LABEL: func.func @svd
// CHECK: prim.host_call "linalg_svd"{{.*}} -> (tensor<2x6x6xf64>, tensor<2x3xf64>, tensor<2x3x3xf64>)
graph.func @svd(%x: tensor<2x6x3xf64> {graph.name = "x"}) -> (tensor<2x6x6xf64>, tensor<2x3xf64>, tensor<2x3x3xf64>) attributes {opsets = {aten = 10 : i64}} {
  %y:3 = graph.node "aten":"linalg_svd.default" opset 10(%x) {arg_names = ["A"]} : (tensor<2x6x3xf64>) -> (tensor<2x6x6xf64>, tensor<2x3xf64>, tensor<2x3x3xf64>)
  graph.yield %y#0, %y#1, %y#2 : tensor<2x6x6xf64>, tensor<2x3xf64>, tensor<2x3x3xf64>
}

// -----

// ERROR: linalg_inv.default (opset 10): needs square matrices (4 against 5)
graph.func @square(%x: tensor<4x5xf32> {graph.name = "x"}) -> !tc.unknown attributes {opsets = {aten = 10 : i64}} {
  %y = graph.node "aten":"linalg_inv.default" opset 10(%x) {arg_names = ["A"]} : (tensor<4x5xf32>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// ERROR: linalg_qr.default (opset 10) of matrices that may be higher or wider is not supported; give their sizes with --dim
graph.func @sides(%x: tensor<?x5xf32> {graph.name = "x"}) -> (!tc.unknown, !tc.unknown) attributes {opsets = {aten = 10 : i64}} {
  %y:2 = graph.node "aten":"linalg_qr.default" opset 10(%x) {arg_names = ["A"]} : (tensor<?x5xf32>) -> (!tc.unknown, !tc.unknown)
  graph.yield %y#0, %y#1 : !tc.unknown, !tc.unknown
}

// -----

// ERROR: linalg_matrix_norm.default (opset 10): takes the orders "fro", "nuc", inf, -inf, 1, -1, 2 and -2
graph.func @order(%x: tensor<4x5xf32> {graph.name = "x"}) -> !tc.unknown attributes {opsets = {aten = 10 : i64}} {
  %y = graph.node "aten":"linalg_matrix_norm.default" opset 10(%x) {arg_names = ["self"], ord = 3 : i64} : (tensor<4x5xf32>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// ERROR: linalg_det.default (opset 10): takes matrices of f32 or f64, but got tensor<4x4xf16>
graph.func @half(%x: tensor<4x4xf16> {graph.name = "x"}) -> !tc.unknown attributes {opsets = {aten = 10 : i64}} {
  %y = graph.node "aten":"linalg_det.default" opset 10(%x) {arg_names = ["A"]} : (tensor<4x4xf16>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// Sums of weights are f64: a covariance is divided by their difference, which may be small.
// CHECK-LABEL: func.func @weighted
// CHECK: prim.reduce sum {{.*}} : tensor<5xf64> -> tensor<f64>
// CHECK: prim.sub {{.*}} : tensor<f64>
// CHECK: prim.dot_general {{.*}} -> tensor<2x2xf32>
graph.func @weighted(%x: tensor<2x5xf32> {graph.name = "x"}, %w: tensor<5xf32> {graph.name = "w"}) -> tensor<2x2xf32> attributes {opsets = {aten = 10 : i64}} {
  %y = graph.node "aten":"cov.default" opset 10(%x, %w) {arg_names = ["self", "aweights"]} : (tensor<2x5xf32>, tensor<5xf32>) -> tensor<2x2xf32>
  graph.yield %y : tensor<2x2xf32>
}

// -----

// Operands of too low a rank, where they would be turned over first.
// ERROR: node "vector right": aten.linalg_solve.default (opset 1): takes matrices, of rank 2 or more, but got tensor<4xf32>
graph.func @vector_right(%a: tensor<4xf32> {graph.name = "a"}, %y: tensor<4x4xf32> {graph.name = "y"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %x = graph.node "aten":"linalg_solve.default" opset 1(%a, %y) {arg_names = ["A", "B"], left = false} : (tensor<4xf32>, tensor<4x4xf32>) -> !tc.unknown loc("vector right")
  graph.yield %x : !tc.unknown
}

// -----

// ERROR: node "triangle right": aten.linalg_solve_triangular.default (opset 1): takes matrices, of rank 2 or more, but got tensor<f32>
graph.func @triangle_right(%a: tensor<4x4xf32> {graph.name = "a"}, %y: tensor<f32> {graph.name = "y"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %x = graph.node "aten":"linalg_solve_triangular.default" opset 1(%a, %y) {arg_names = ["self", "B"], upper = true, left = false} : (tensor<4x4xf32>, tensor<f32>) -> !tc.unknown loc("triangle right")
  graph.yield %x : !tc.unknown
}

// -----

// ERROR: node "old triangle": aten.triangular_solve.default (opset 1): takes matrices, of rank 2 or more, but got tensor<4xf32>
graph.func @old_triangle(%a: tensor<4xf32> {graph.name = "a"}, %y: tensor<4x4xf32> {graph.name = "y"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %x:2 = graph.node "aten":"triangular_solve.default" opset 1(%y, %a) {arg_names = ["self", "A"], transpose = true} : (tensor<4x4xf32>, tensor<4xf32>) -> (!tc.unknown, !tc.unknown) loc("old triangle")
  graph.yield %x#0 : !tc.unknown
}

// -----

// ERROR: node "factor": aten.cholesky_solve.default (opset 1): takes matrices, of rank 2 or more, but got tensor<4xf32>
graph.func @factor(%y: tensor<4x4xf32> {graph.name = "y"}, %l: tensor<4xf32> {graph.name = "l"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %x = graph.node "aten":"cholesky_solve.default" opset 1(%y, %l) {arg_names = ["self", "input2"]} : (tensor<4x4xf32>, tensor<4xf32>) -> !tc.unknown loc("factor")
  graph.yield %x : !tc.unknown
}

// -----

// Factors that are given: the permutation is a loop over the pivots.
// CHECK-LABEL: func.func @lu_solve
// CHECK: prim.while
// CHECK: prim.host_call "linalg_solve_triangular"
// CHECK: prim.host_call "linalg_solve_triangular"
graph.func @lu_solve(%a: tensor<2x4x4xf32> {graph.name = "a"}, %p: tensor<2x4xi32> {graph.name = "p"}, %y: tensor<4x3xf32> {graph.name = "y"}) -> tensor<2x4x3xf32> attributes {opsets = {aten = 10 : i64}} {
  %x = graph.node "aten":"linalg_lu_solve.default" opset 10(%a, %p, %y) {arg_names = ["LU", "pivots", "B"]} : (tensor<2x4x4xf32>, tensor<2x4xi32>, tensor<4x3xf32>) -> tensor<2x4x3xf32>
  graph.yield %x : tensor<2x4x3xf32>
}

// -----

// ERROR: _linalg_det.default (opset 10) with its factors as results is not supported; call torch.linalg.lu_factor
graph.func @factors_of_det(%a: tensor<4x4xf32> {graph.name = "a"}) -> tensor<4x4xf32> attributes {opsets = {aten = 10 : i64}} {
  %x:3 = graph.node "aten":"_linalg_det.default" opset 10(%a) {arg_names = ["A"]} : (tensor<4x4xf32>) -> (tensor<f32>, tensor<4x4xf32>, tensor<4xi32>)
  graph.yield %x#1 : tensor<4x4xf32>
}

// -----

// ERROR: lu_unpack.default (opset 10): takes as many vectors of pivots, of integers, as factors, but got tensor<4xf32>
graph.func @pivots(%a: tensor<4x4xf32> {graph.name = "a"}, %p: tensor<4xf32> {graph.name = "p"}) -> tensor<4x4xf32> attributes {opsets = {aten = 10 : i64}} {
  %x:3 = graph.node "aten":"lu_unpack.default" opset 10(%a, %p) {arg_names = ["LU_data", "LU_pivots"]} : (tensor<4x4xf32>, tensor<4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>)
  graph.yield %x#1 : tensor<4x4xf32>
}

// -----

// ERROR: linalg_householder_product.default (opset 10): takes a vector of factors for each matrix, of its type, but got tensor<2x3xf32>
graph.func @factors_of_reflections(%a: tensor<4x3xf32> {graph.name = "a"}, %t: tensor<2x3xf32> {graph.name = "t"}) -> tensor<4x3xf32> attributes {opsets = {aten = 10 : i64}} {
  %x = graph.node "aten":"linalg_householder_product.default" opset 10(%a, %t) {arg_names = ["input", "tau"]} : (tensor<4x3xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  graph.yield %x : tensor<4x3xf32>
}
