// Proves: nodes that name their arguments, as PyTorch's do, meet a signature by name, whatever the order; sizes that only the run knows
// are attributes all the same; what the signature lacks, and operators that write without a schema that says so, are refused.
// RUN: not tc-opt %s -tc-convert-graph-to-prim=custom-op=%S/Inputs/torch-operators.json -split-input-file 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=ERROR --input-file=%t

// CHECK-LABEL: func.func @named
// CHECK-DAG: %[[ALPHA:.*]] = prim.constant dense<2.000000e+00> : tensor<f64>
// CHECK-DAG: %[[N:.*]] = prim.reshape %arg2 : tensor<i64> -> tensor<1xi64>
// CHECK: %[[SIZES:.*]] = prim.concat %{{.*}}, %[[N]]
// CHECK: %[[WRAP:.*]] = prim.constant dense<1> : tensor<i64>
// CHECK: prim.host_call "my_blend"(%arg1, %arg0, %[[ALPHA]], %[[SIZES]], %[[WRAP]]) {{.*}} -> tensor<?x3xf32
graph.func @named(%y: tensor<?xf32> {graph.name = "y"}, %x: tensor<?x3xf32> {graph.name = "x"}, %n: tensor<i64> {graph.name = "n"}) -> !tc.unknown attributes {opsets = {my = 1 : i64}} {
  %z = graph.node "my":"blend.default" opset 1(%y, %x, %n) {arg_names = ["y", "x", "sizes.1"], alpha = 2 : i64, sizes = [4 : i64, "sizes.1"], wrap = true} : (tensor<?xf32>, tensor<?x3xf32>, tensor<i64>) -> !tc.unknown
  graph.yield %z : !tc.unknown
}

// -----

// ERROR: my.blend.default (opset 1): has the tensor argument mask, which its signature lacks
graph.func @unknown(%x: tensor<?x3xf32> {graph.name = "x"}) -> !tc.unknown attributes {opsets = {my = 1 : i64}} {
  %z = graph.node "my":"blend.default" opset 1(%x, %x) {arg_names = ["x", "mask"]} : (tensor<?x3xf32>, tensor<?x3xf32>) -> !tc.unknown
  graph.yield %z : !tc.unknown
}

// -----

// ERROR: my.blend.default (opset 1): operand 1 (y) is absent
graph.func @absent(%x: tensor<?x3xf32> {graph.name = "x"}) -> !tc.unknown attributes {opsets = {my = 1 : i64}} {
  %z = graph.node "my":"blend.default" opset 1(%x) {arg_names = ["x"]} : (tensor<?x3xf32>) -> !tc.unknown
  graph.yield %z : !tc.unknown
}

// -----

// ERROR: my.blend.default (opset 1): returns nothing, so that it can only write its arguments; its signature needs a "schema" that says which, such as "my::blend(Tensor(a!) x) -> ()"
graph.func @nothing(%x: tensor<?x3xf32> {graph.name = "x"}, %y: tensor<?xf32> {graph.name = "y"}) -> tensor<?x3xf32> attributes {opsets = {my = 1 : i64}} {
  graph.node "my":"blend.default" opset 1(%x, %y) {arg_names = ["x", "y"]} : (tensor<?x3xf32>, tensor<?xf32>) -> ()
  graph.yield %x : tensor<?x3xf32>
}

// -----

// ERROR: higher_order.auto_functionalized_v2 (opset 1) is not supported: it calls my.blend.default, which writes its arguments; give its signature by --custom-op, with a "schema"
graph.func @functionalized(%x: tensor<?x3xf32> {graph.name = "x"}) -> !tc.unknown attributes {opsets = {higher_order = 1 : i64}} {
  %z = graph.node "higher_order":"auto_functionalized_v2" opset 1(%x) {arg0 = "as_operator", arg0.value = "torch.ops.my.blend.default", arg_names = ["_all_bases.0"]} : (tensor<?x3xf32>) -> !tc.unknown
  graph.yield %z : !tc.unknown
}

// -----

// A schema gives the order of operands, then of the other arguments, and their defaults. What is written begins as the operand, behind
// what the function makes.
// CHECK-LABEL: func.func @schema
// CHECK-DAG: %[[BETA:.*]] = prim.constant dense<2.000000e+00> : tensor<f64>
// CHECK-DAG: %[[SIZES:.*]] = prim.constant dense<> : tensor<0xi64>
// CHECK-DAG: %[[WRAP:.*]] = prim.constant dense<0> : tensor<i64>
// CHECK: %[[R:.*]]:2 = prim.host_call "my_mix"(%arg0, %arg1, %[[BETA]], %[[SIZES]], %[[WRAP]]) {{.*}} {prim.inits = array<i64: -1, 1>}
// CHECK: return %[[R]]#0, %[[R]]#1
graph.func @schema(%x: tensor<?x3xf32> {graph.name = "x"}, %y: tensor<?xf32> {graph.name = "y"}) -> (!tc.unknown, !tc.unknown) attributes {opsets = {my = 1 : i64}} {
  %z:2 = graph.node "my":"mix.default" opset 1(%x, %y) {arg_names = ["x", "y"], beta = 2 : i64} attributes {graph.functional} : (tensor<?x3xf32>, tensor<?xf32>) -> (!tc.unknown, !tc.unknown)
  graph.yield %z#0, %z#1 : !tc.unknown, !tc.unknown
}

// -----

// CHECK-LABEL: func.func @overload
// CHECK: prim.host_call "my_mix_scaled"
graph.func @overload(%x: tensor<3xf32> {graph.name = "x"}) -> !tc.unknown attributes {opsets = {my = 1 : i64}} {
  %z = graph.node "my":"mix.scaled" opset 1(%x, %x) {arg_names = ["x", "scale"]} : (tensor<3xf32>, tensor<3xf32>) -> !tc.unknown
  graph.yield %z : !tc.unknown
}

// -----

// None is an empty optional.
// CHECK-LABEL: func.func @none
// CHECK: [[NONE:%.*]] = prim.constant dense<0> : tensor<i64>
// CHECK: prim.host_call "my_mix_scaled"(%arg0, [[NONE]]) words [0, 2, 0]
graph.func @none(%x: tensor<3xf32> {graph.name = "x"}) -> !tc.unknown attributes {opsets = {my = 1 : i64}} {
  %z = graph.node "my":"mix.scaled" opset 1(%x) {arg_names = ["x"]} : (tensor<3xf32>) -> !tc.unknown
  graph.yield %z : !tc.unknown
}

// -----

// ERROR: my.mix.default (opset 1): has the argument dtype, which is None by default, and functions are not given; leave it out
graph.func @omitted(%x: tensor<?x3xf32> {graph.name = "x"}, %y: tensor<?xf32> {graph.name = "y"}) -> (!tc.unknown, !tc.unknown) attributes {opsets = {my = 1 : i64}} {
  %z:2 = graph.node "my":"mix.default" opset 1(%x, %y) {arg_names = ["x", "y"], beta = 2.0 : f64, dtype = f32} attributes {graph.functional} : (tensor<?x3xf32>, tensor<?xf32>) -> (!tc.unknown, !tc.unknown)
  graph.yield %z#0, %z#1 : !tc.unknown, !tc.unknown
}

// -----

// ERROR: my.mix.default (opset 1): writes its arguments, of which tc-functionalize-graph makes values
graph.func @not_functional(%x: tensor<?x3xf32> {graph.name = "x"}, %y: tensor<?xf32> {graph.name = "y"}) -> !tc.unknown attributes {opsets = {my = 1 : i64}} {
  %z = graph.node "my":"mix.default" opset 1(%x, %y) {arg_names = ["x", "y"], beta = 2.0 : f64} : (tensor<?x3xf32>, tensor<?xf32>) -> !tc.unknown
  graph.yield %z : !tc.unknown
}
