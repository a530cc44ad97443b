// Shape arithmetic becomes size expressions: no op of it is left.
// RUN: tc-opt %s -tc-convert-graph-to-prim -split-input-file | FileCheck %s

// reshape(x, concat(shape(x)[0:1], [12], [-1])) of [batch, 24, 64] is [batch, 12, 128].
// CHECK-LABEL: func.func @reshape
// CHECK-SAME: prim.symbols = [#prim.symbol<"batch", 0, {{[0-9]+}}, 1>]
// CHECK-NOT: prim.gather
// CHECK: prim.reshape %arg0 : tensor<?x24x64xf32, {{.*}}> -> tensor<?x12x128xf32
// CHECK-NEXT: return
graph.func @reshape(%x: tensor<?x24x64xf32> {graph.name = "x", graph.dims = ["batch", "", ""]}) -> (!tc.unknown {graph.name = "y"}) attributes {opsets = {ai.onnx = 17 : i64}} {
  %shape = graph.node "ai.onnx":"Shape" opset 17(%x) : (tensor<?x24x64xf32>) -> !tc.unknown
  %zero = graph.constant dense<0> : tensor<i64>
  %axes = graph.constant dense<0> : tensor<1xi64>
  %n = graph.node "ai.onnx":"Gather" opset 17(%shape, %zero) {axis = 0 : i64} : (!tc.unknown, tensor<i64>) -> !tc.unknown
  %n1 = graph.node "ai.onnx":"Unsqueeze" opset 17(%n, %axes) : (!tc.unknown, tensor<1xi64>) -> !tc.unknown
  %rest = graph.constant dense<[12, -1]> : tensor<2xi64>
  %to = graph.node "ai.onnx":"Concat" opset 17(%n1, %rest) {axis = 0 : i64} : (!tc.unknown, tensor<2xi64>) -> !tc.unknown
  %y = graph.node "ai.onnx":"Reshape" opset 17(%x, %to) : (tensor<?x24x64xf32>, !tc.unknown) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// Two sizes of which nothing is known: the result has the one that is not 1 at run time.
// CHECK-LABEL: func.func @broadcast_unknown
// CHECK-SAME: #prim.symbol<"n", {{.*}}#prim.symbol<"m", {{.*}}#prim.symbol<"broadcast"
// CHECK: prim.bind_symbol %{{.*}} to 2
// CHECK: prim.broadcast %arg0
// CHECK: prim.broadcast %arg1
// CHECK: prim.add
graph.func @broadcast_unknown(%x: tensor<?xf32> {graph.name = "x", graph.dims = ["n"]}, %y: tensor<?xf32> {graph.name = "y", graph.dims = ["m"]}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 17 : i64}} {
  %z = graph.node "ai.onnx":"Add" opset 17(%x, %y) : (tensor<?xf32>, tensor<?xf32>) -> !tc.unknown
  graph.yield %z : !tc.unknown
}

// -----

// A size that is data gets a symbol.
// CHECK-LABEL: func.func @data_dependent
// CHECK: %[[N:.*]] = prim.reshape %arg0 : tensor<1xi64> -> tensor<i64>
// CHECK: prim.bind_symbol %[[N]] to 0
// CHECK: prim.splat 1.000000e+00 : f32 : tensor<?xf32
graph.func @data_dependent(%n: tensor<1xi64> {graph.name = "n"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 17 : i64}} {
  %y = graph.node "ai.onnx":"ConstantOfShape" opset 17(%n) {value = dense<1.0> : tensor<1xf32>} : (tensor<1xi64>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// The end of a slice beyond any size; a table cut to the length of an input bounds that length.
// CHECK-LABEL: func.func @slices
// CHECK-SAME: #prim.symbol<"length", 0, 512, 1>
// CHECK: prim.slice %arg0 from #{{.*}} step [1, 2] : tensor<?x8xf32, {{.*}}> -> tensor<?x4xf32
// CHECK: prim.slice %{{.*}} : tensor<512xf32> -> tensor<?xf32
graph.func @slices(%x: tensor<?x8xf32> {graph.name = "x", graph.dims = ["length", ""]}) -> (!tc.unknown, !tc.unknown) attributes {opsets = {ai.onnx = 17 : i64}} {
  %zero2 = graph.constant dense<0> : tensor<2xi64>
  %far = graph.constant dense<9223372036854775807> : tensor<2xi64>
  %axes = graph.constant dense<[0, 1]> : tensor<2xi64>
  %steps = graph.constant dense<[1, 2]> : tensor<2xi64>
  %y = graph.node "ai.onnx":"Slice" opset 17(%x, %zero2, %far, %axes, %steps) : (tensor<?x8xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> !tc.unknown
  %table = graph.constant dense<1.0> : tensor<512xf32>
  %length = graph.node "ai.onnx":"Shape" opset 17(%x) {end = 1 : i64} : (tensor<?x8xf32>) -> !tc.unknown
  %zero = graph.constant dense<0> : tensor<1xi64>
  %z = graph.node "ai.onnx":"Slice" opset 17(%table, %zero, %length) : (tensor<512xf32>, tensor<1xi64>, !tc.unknown) -> !tc.unknown
  graph.yield %y, %z : !tc.unknown, !tc.unknown
}
