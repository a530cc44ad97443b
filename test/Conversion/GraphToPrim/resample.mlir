// Resize, GridSample, Col2Im, Einsum, Scan, pools over regions as gathers, weights, products and loops. Their numbers: test/Conformance and
// test/Integration/operators.py.
// RUN: tc-opt %s -tc-convert-graph-to-prim -split-input-file | FileCheck %s

// Dims of scale 1 are left alone; a size that follows from constants is one.
// CHECK-LABEL: func.func @nearest
// CHECK: prim.gather %arg0[%{{.*}}] axis = 2
// CHECK-NOT: prim.gather
// CHECK: return %{{.*}} : tensor<1x2x6x4xf32>
graph.func @nearest(%x: tensor<1x2x3x4xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 19 : i64}} {
  %none = graph.none : none
  %s = graph.constant dense<[1.0, 1.0, 2.0, 1.0]> : tensor<4xf32>
  %y = graph.node "ai.onnx":"Resize" opset 19(%x, %none, %s) {mode = "nearest"} : (tensor<1x2x3x4xf32>, none, tensor<4xf32>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// Antialiasing contracts the dim with a matrix of weights.
// CHECK-LABEL: func.func @antialias
// CHECK: prim.dot_general %arg0, %{{.*}} contract [3] x [1]
graph.func @antialias(%x: tensor<1x2x3x8xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 19 : i64}} {
  %none = graph.none : none
  %s = graph.constant dense<[1.0, 1.0, 1.0, 0.5]> : tensor<4xf32>
  %y = graph.node "ai.onnx":"Resize" opset 19(%x, %none, %s) {mode = "linear", antialias = 1 : i64} : (tensor<1x2x3x8xf32>, none, tensor<4xf32>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// Taps of which the run knows the number are a dim: no matrix, and no product.
// CHECK-LABEL: func.func @antialias_data
// CHECK: prim.bind_symbol %{{.*}} to 1
// CHECK: prim.gather %arg0[%{{.*}}] axis = 3
// CHECK: prim.reduce sum %{{.*}} [3] : {{.*}} -> tensor<1x2x3x?xf32
// CHECK-NOT: prim.dot_general
graph.func @antialias_data(%x: tensor<1x2x3x8xf32> {graph.name = "x"}, %s: tensor<1xi64> {graph.name = "s"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 19 : i64}} {
  %none = graph.none : none
  %y = graph.node "ai.onnx":"Resize" opset 19(%x, %none, %none, %s) {mode = "linear", antialias = 1 : i64, axes = [3]} : (tensor<1x2x3x8xf32>, none, none, tensor<1xi64>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// Two taps in each of two dims.
// CHECK-LABEL: func.func @grid
// CHECK-COUNT-4: prim.gather_nd
// CHECK-NOT: prim.gather_nd
graph.func @grid(%x: tensor<1x2x3x4xf32> {graph.name = "x"}, %g: tensor<1x5x6x2xf32> {graph.name = "g"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 20 : i64}} {
  %y = graph.node "ai.onnx":"GridSample" opset 20(%x, %g) : (tensor<1x2x3x4xf32>, tensor<1x5x6x2xf32>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// Of many channels all neighbours are a sum, one gather, and positions of all dims are computed together.
// CHECK-LABEL: func.func @grid_cubic
// CHECK: prim.floor
// CHECK-NOT: prim.floor
// CHECK: prim.gather_nd {{.*}} -> tensor<1x5x6x4x4x?xf32
// CHECK-NOT: prim.gather_nd
// CHECK: prim.reduce sum %{{.*}} [3, 4]
graph.func @grid_cubic(%x: tensor<1x?x3x4xf32> {graph.name = "x"}, %g: tensor<1x5x6x2xf32> {graph.name = "g"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 20 : i64}} {
  %y = graph.node "ai.onnx":"GridSample" opset 20(%x, %g) {mode = "cubic"} : (tensor<1x?x3x4xf32>, tensor<1x5x6x2xf32>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// CHECK-LABEL: func.func @einsum
// CHECK: prim.dot_general %arg0, %arg1 batch [0] x [0] contract [2] x [1]
graph.func @einsum(%x: tensor<5x2x3xf32> {graph.name = "x"}, %y: tensor<5x3x4xf32> {graph.name = "y"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 12 : i64}} {
  %z = graph.node "ai.onnx":"Einsum" opset 12(%x, %y) {equation = "bij, bjk -> bik"} : (tensor<5x2x3xf32>, tensor<5x3x4xf32>) -> !tc.unknown
  graph.yield %z : !tc.unknown
}

// -----

// A diagonal is every seventh element of its plane.
// CHECK-LABEL: func.func @diagonal
// CHECK: %[[PLANE:.*]] = prim.reshape %arg0 : tensor<5x6x6xf32> -> tensor<5x36xf32>
// CHECK: prim.slice %[[PLANE]] {{.*}} step [1, 7] : tensor<5x36xf32> -> tensor<5x6xf32>
// CHECK-NOT: prim.reduce
graph.func @diagonal(%x: tensor<5x6x6xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 12 : i64}} {
  %z = graph.node "ai.onnx":"Einsum" opset 12(%x) {equation = "bii->bi"} : (tensor<5x6x6xf32>) -> !tc.unknown
  graph.yield %z : !tc.unknown
}

// -----

// Blocks twice as long as the stride, in each of two dims: four shifted tensors.
// CHECK-LABEL: func.func @columns
// CHECK-COUNT-3: prim.add
// CHECK-NOT: prim.add
// CHECK-NOT: prim.scatter
graph.func @columns(%x: tensor<1x32x9xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 18 : i64}} {
  %image = graph.node "ai.onnx":"Constant" opset 18() {value = dense<8> : tensor<2xi64>} : () -> !tc.unknown
  %block = graph.node "ai.onnx":"Constant" opset 18() {value = dense<4> : tensor<2xi64>} : () -> !tc.unknown
  %y = graph.node "ai.onnx":"Col2Im" opset 18(%x, %image, %block) {strides = [2, 2]} : (tensor<1x32x9xf32>, !tc.unknown, !tc.unknown) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// The factors meet the tensor one by one: their own product would have 60 million elements.
// CHECK-LABEL: func.func @einsum_order
// CHECK: %[[A:.*]] = prim.dot_general %arg0, %arg3 batch [] x [] contract [1] x [0]
// CHECK: %[[B:.*]] = prim.dot_general %[[A]], %arg1 batch [] x [] contract [1] x [1]
// CHECK: %[[C:.*]] = prim.dot_general %[[B]], %arg2 batch [] x [] contract [1] x [1]
// CHECK: return %[[C]] : tensor<20x20x20xf32>
graph.func @einsum_order(%a: tensor<20x20xf32> {graph.name = "a"}, %b: tensor<20x20xf32> {graph.name = "b"}, %c: tensor<20x20xf32> {graph.name = "c"}, %x: tensor<20x20x20xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 12 : i64}} {
  %z = graph.node "ai.onnx":"Einsum" opset 12(%a, %b, %c, %x) {equation = "ai,bj,ck,ijk->abc"} : (tensor<20x20xf32>, tensor<20x20xf32>, tensor<20x20xf32>, tensor<20x20x20xf32>) -> !tc.unknown
  graph.yield %z : !tc.unknown
}

// -----

// CHECK-LABEL: func.func @scan
// CHECK: prim.while %{{.*}} carry %arg0, %{{.*}} : (tensor<i64>, tensor<i1>, tensor<2xf32>, tensor<3x2xf32>)
// CHECK: prim.dynamic_slice %arg1
// CHECK: prim.scatter_nd
graph.func @scan(%s: tensor<2xf32> {graph.name = "s"}, %x: tensor<3x2xf32> {graph.name = "x"}) -> (!tc.unknown, !tc.unknown) attributes {opsets = {ai.onnx = 19 : i64}} {
  %a, %b = graph.node "ai.onnx":"Scan" opset 19(%s, %x) {num_scan_inputs = 1 : i64} graphs "body"(%state: tensor<2xf32>, %slice: tensor<2xf32>) {
    %sum = graph.node "ai.onnx":"Add" opset 19(%state, %slice) : (tensor<2xf32>, tensor<2xf32>) -> !tc.unknown
    graph.yield %sum, %sum : !tc.unknown, !tc.unknown
  } : (tensor<2xf32>, tensor<3x2xf32>) -> (!tc.unknown, !tc.unknown)
  graph.yield %a, %b : !tc.unknown, !tc.unknown
}

// -----

// Elements of windows are counted along each dim, by arithmetic on positions: no window over ones.
// CHECK-LABEL: func.func @mean
// CHECK-COUNT-1: prim.window_reduce sum
// CHECK-NOT: prim.window_reduce
// CHECK: prim.iota axis = 0 : tensor<8x6xi64>
// CHECK: prim.iota axis = 1 : tensor<8x6xi64>
// CHECK: prim.div
graph.func @mean(%x: tensor<1x2x8x6xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 22 : i64}} {
  %y = graph.node "ai.onnx":"AveragePool" opset 22(%x) {kernel_shape = [3 : i64, 3 : i64], pads = [1 : i64, 1 : i64, 1 : i64, 1 : i64]} : (tensor<1x2x8x6xf32>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// What is reshaped again is divided once: each size is one quotient of the number of all elements.
// CHECK: #[[SIZES:.*]] = affine_map<()[s0, s1] -> ((s0 * s1) floordiv 16, 16)>
// CHECK-LABEL: func.func @turns
// CHECK-SAME: tensor<?x16xf32, #prim.dims<#[[SIZES]]>> {tc.name
graph.func @turns(%x: tensor<?x?xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 22 : i64}} {
  %a = graph.constant dense<[-1, 24]> : tensor<2xi64>
  %b = graph.constant dense<[-1, 16]> : tensor<2xi64>
  %0 = graph.node "ai.onnx":"Reshape" opset 22(%x, %a) : (tensor<?x?xf32>, tensor<2xi64>) -> !tc.unknown
  %1 = graph.node "ai.onnx":"Transpose" opset 22(%0) {perm = [1 : i64, 0 : i64]} : (!tc.unknown) -> !tc.unknown
  %2 = graph.node "ai.onnx":"Relu" opset 22(%1) : (!tc.unknown) -> !tc.unknown
  %3 = graph.node "ai.onnx":"Reshape" opset 22(%2, %b) : (!tc.unknown, tensor<2xi64>) -> !tc.unknown
  graph.yield %3 : !tc.unknown
}

// -----

// The windows' elements, the number of the largest in each window, its place.
// CHECK-LABEL: func.func @indices
// CHECK-COUNT-2: prim.gather
// CHECK: prim.arg_reduce max
// CHECK: prim.window_reduce max
graph.func @indices(%x: tensor<1x2x6x6xf32> {graph.name = "x"}) -> (!tc.unknown, !tc.unknown) attributes {opsets = {ai.onnx = 12 : i64}} {
  %y, %i = graph.node "ai.onnx":"MaxPool" opset 12(%x) {kernel_shape = array<i64: 2, 2>} : (tensor<1x2x6x6xf32>) -> (!tc.unknown, !tc.unknown)
  graph.yield %y, %i : !tc.unknown, !tc.unknown
}

// -----

// Without a sampling ratio the region that needs most samples decides how many are taken.
// CHECK-LABEL: func.func @roialign
// CHECK: prim.symbol<"samples"
// CHECK-COUNT-2: prim.bind_symbol
// CHECK-COUNT-4: prim.gather_nd
// CHECK: prim.reduce sum {{.*}} [3, 4]
graph.func @roialign(%x: tensor<1x2x6x6xf32> {graph.name = "x"}, %r: tensor<3x4xf32> {graph.name = "r"}, %b: tensor<3xi64> {graph.name = "b"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 16 : i64}} {
  %y = graph.node "ai.onnx":"RoiAlign" opset 16(%x, %r, %b) {output_height = 2 : i64, output_width = 2 : i64} : (tensor<1x2x6x6xf32>, tensor<3x4xf32>, tensor<3xi64>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// CHECK-LABEL: func.func @deform
// CHECK-COUNT-4: prim.gather_nd
// CHECK-NOT: prim.gather_nd
// CHECK: prim.dot_general
graph.func @deform(%x: tensor<1x2x6x6xf32> {graph.name = "x"}, %w: tensor<3x2x2x2xf32> {graph.name = "w"}, %o: tensor<1x8x5x5xf32> {graph.name = "o"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 19 : i64}} {
  %y = graph.node "ai.onnx":"DeformConv" opset 19(%x, %w, %o) : (tensor<1x2x6x6xf32>, tensor<3x2x2x2xf32>, tensor<1x8x5x5xf32>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// Scan-8: a loop over the batch around one over the slices.
// CHECK-LABEL: func.func @batched_scan
// CHECK: prim.while
// CHECK: prim.while
graph.func @batched_scan(%s: tensor<3x2xf32> {graph.name = "s"}, %x: tensor<3x5x2xf32> {graph.name = "x"}) -> (!tc.unknown, !tc.unknown) attributes {opsets = {ai.onnx = 8 : i64}} {
  %none = graph.none : none
  %a, %b = graph.node "ai.onnx":"Scan" opset 8(%none, %s, %x) {num_scan_inputs = 1 : i64} graphs "body"(%state: tensor<2xf32>, %slice: tensor<2xf32>) {
    %sum = graph.node "ai.onnx":"Add" opset 8(%state, %slice) : (tensor<2xf32>, tensor<2xf32>) -> !tc.unknown
    graph.yield %sum, %sum : !tc.unknown, !tc.unknown
  } : (none, tensor<3x2xf32>, tensor<3x5x2xf32>) -> (!tc.unknown, !tc.unknown)
  graph.yield %a, %b : !tc.unknown, !tc.unknown
}
