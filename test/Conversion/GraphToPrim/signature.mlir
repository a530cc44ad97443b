// Ranges and maps of arguments' sizes, states, and dims that options name by their places.
// RUN: not tc-opt %s --split-input-file --tc-convert-graph-to-prim="dim=x.0=4..20" 2>&1 | FileCheck %s
// RUN: not tc-opt %s --split-input-file --tc-convert-graph-to-prim="dim=x.0=4..20" 2>/dev/null | FileCheck %s --check-prefix=IR

// IR: prim.state @a.b : tensor<2xf32> = dense<[1.000000e+00, 2.000000e+00]>
// IR-LABEL: func.func @sizes
// IR: #prim.symbol<"n", 4, 10, 1>
// IR: prim.guard eq {{.*}} "the input's dim 0 must be n + 1"
// IR: %[[OLD:.*]] = prim.read_state @a.b
// IR: prim.write_state @a.b, %{{.*}} :
graph.func @sizes(%x: tensor<?xf32> {graph.name = "x", graph.dims = ["n"], graph.ranges = array<i64: 3, 10>}, %y: tensor<?xf32> {graph.name = "y", graph.dims = ["m"], graph.sizes = affine_map<()[s0, s1] -> (s0 + 1)>}) -> (tensor<?xf32> {graph.name = "z"}, tensor<2xf32> {graph.name = "old"}) attributes {opsets = {ai.onnx = 17 : i64}} {
  %s = graph.constant dense<[1.0, 2.0]> : tensor<2xf32> {graph.state = "a.b"}
  %t = graph.node "ai.onnx":"Neg" opset 17(%s) : (tensor<2xf32>) -> tensor<2xf32>
  graph.node "tc":"write_state" opset 1(%t) {state = "a.b"} : (tensor<2xf32>) -> ()
  %z = graph.node "ai.onnx":"Concat" opset 17(%x, %y) {axis = 0 : i64} : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  graph.yield %z, %s : tensor<?xf32>, tensor<2xf32>
}

// -----

// CHECK: error: input "x": --dim gives dim "n" the size 4 to 20; the model takes 21 or more
graph.func @outside(%x: tensor<?xf32> {graph.name = "x", graph.dims = ["n"], graph.ranges = array<i64: 21, 9223372036854775807>}) -> (tensor<?xf32>) attributes {opsets = {ai.onnx = 17 : i64}} {
  graph.yield %x : tensor<?xf32>
}

// -----

// CHECK: input "x": dim 0 must be 5, but is 7
graph.func @differs(%x: tensor<7xf32> {graph.name = "x", graph.sizes = affine_map<()[s0, s1] -> (s1)>}, %y: tensor<5xf32> {graph.name = "y"}) -> (tensor<7xf32>) attributes {opsets = {ai.onnx = 17 : i64}} {
  graph.yield %x : tensor<7xf32>
}

// -----

// CHECK: node "odd": tc.write_state (opset 1): writes a state that the function does not have
graph.func @absent(%x: tensor<?xf32> {graph.name = "x"}) -> (tensor<?xf32>) attributes {opsets = {ai.onnx = 17 : i64}} {
  graph.node "tc":"write_state" opset 1(%x) {state = "no"} : (tensor<?xf32>) -> () loc("odd")
  graph.yield %x : tensor<?xf32>
}

// -----

// CHECK: error: state "a": the state holds elements of another type than tensor<?xi64>
graph.func @other(%x: tensor<?xf32> {graph.name = "x"}, %i: tensor<?xi64> {graph.name = "i"}) -> (tensor<?xf32>) attributes {opsets = {ai.onnx = 17 : i64}} {
  %s = graph.constant dense<[1.0, 2.0]> : tensor<2xf32> {graph.state = "a"}
  graph.node "tc":"write_state" opset 1(%i) {state = "a"} : (tensor<?xi64>) -> ()
  graph.yield %x : tensor<?xf32>
}
