// All that tc lacks is named in one run, with one diagnostic for each reason; contradictions of the model are errors too.
// RUN: not tc-opt %s -tc-convert-graph-to-prim -split-input-file 2>&1 | FileCheck %s

// CHECK-DAG: error: {{.*}}node "a": NoSuchOp (opset 17) is not supported
// CHECK-DAG: note: {{.*}}1 more node fails for the same reason; --explain lists them
// CHECK-DAG: error: {{.*}}node "c": Nope (opset 17) is not supported
graph.func @lacking(%x: tensor<1x3x?x8xf32> {graph.name = "x"}, %w: tensor<4x3x?x?xf32> {graph.name = "w"}) -> (!tc.unknown, !tc.unknown) attributes {opsets = {ai.onnx = 17 : i64}} {
  %a = graph.node "ai.onnx":"NoSuchOp" opset 17(%x) : (tensor<1x3x?x8xf32>) -> !tc.unknown loc("a")
  %b = graph.node "ai.onnx":"NoSuchOp" opset 17(%a) : (!tc.unknown) -> !tc.unknown loc("b")
  %c = graph.node "ai.onnx":"Nope" opset 17(%x, %w) : (tensor<1x3x?x8xf32>, tensor<4x3x?x?xf32>) -> !tc.unknown loc("c")
  graph.yield %b, %c : !tc.unknown, !tc.unknown
}

// -----

// CHECK: error: {{.*}}node "sum": Add (opset 17): sizes 3 and 4 can't be broadcast together
graph.func @contradiction(%x: tensor<3xf32> {graph.name = "x"}, %y: tensor<4xf32> {graph.name = "y"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 17 : i64}} {
  %z = graph.node "ai.onnx":"Add" opset 17(%x, %y) : (tensor<3xf32>, tensor<4xf32>) -> !tc.unknown loc("sum")
  graph.yield %z : !tc.unknown
}

// -----

// CHECK: error: {{.*}}input "any": type 'tensor<*xf32>' is not supported
graph.func @unranked(%x: tensor<*xf32> {graph.name = "any"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 28 : i64}} {
  %z = graph.node "ai.onnx":"Cast" opset 28(%x) {to = 1 : i64} : (tensor<*xf32>) -> !tc.unknown
  graph.yield %z : !tc.unknown
}

// -----

// CHECK: error: {{.*}}node "to": Cast (opset 28) with to of data type 14 is not supported
graph.func @to_complex(%x: tensor<4xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 28 : i64}} {
  %z = graph.node "ai.onnx":"Cast" opset 28(%x) {to = 14 : i64} : (tensor<4xf32>) -> !tc.unknown loc("to")
  graph.yield %z : !tc.unknown
}

// -----

// Of a PyTorch operator that is not there ONNX's form of the model is a way out.
// CHECK: error: {{.*}}node "odd": aten.no_such.default (opset 1) is not supported; tc-inspect --operators lists what is, others can be written by these in Python, and --custom-op takes operators of your own
graph.func @unknown_aten(%x: tensor<3xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 18 : i64}} {
  %y = graph.node "aten":"no_such.default" opset 1(%x) {arg_names = ["self"]} : (tensor<3xf32>) -> !tc.unknown loc("odd")
  graph.yield %y : !tc.unknown
}

// -----

// Operators say which of them take complex numbers.
// CHECK: error: {{.*}}node "floor": aten.floor.default (opset 1) on complex numbers is not supported
graph.func @complex(%x: tensor<3xcomplex<f32>> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 18 : i64}} {
  %y = graph.node "aten":"floor.default" opset 1(%x) {arg_names = ["self"]} : (tensor<3xcomplex<f32>>) -> !tc.unknown loc("floor")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: error: {{.*}}node "both": Squeeze (opset 23): {{.*}}as many elements after as before
graph.func @squeeze(%x: tensor<2x2xf32> {graph.name = "x"}, %a: tensor<2xi64> {graph.name = "a"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 23 : i64}} {
  %y = graph.node "ai.onnx":"Squeeze" opset 23(%x, %a) : (tensor<2x2xf32>, tensor<2xi64>) -> !tc.unknown loc("both")
  graph.yield %y : !tc.unknown
}
