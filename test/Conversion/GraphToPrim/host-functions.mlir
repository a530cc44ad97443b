// Proves: ImageDecoder and RegexFullMatch are functions of libtcrt-host; nodes of a signature file are functions of the user's.
// RUN: tc-opt %s -tc-convert-graph-to-prim=custom-op=%S/Inputs/custom-op.json -split-input-file | FileCheck %s

// What the function decodes is a tensor whose sizes are bound before its data is taken.
// CHECK-LABEL: func.func @image
// CHECK: %[[N:.*]] = prim.constant {{.*}} : tensor<i64>
// CHECK: %[[I:.*]] = prim.host_call "image_decode"(%arg0, %[[N]]) words [0, 0, 2]
// CHECK: %[[D:.*]]:3 = prim.host_call "object_dims"(%[[I]]) words [2, 0, 0, 0]
// CHECK: prim.bind_symbol %[[D]]#0
// CHECK: prim.bind_symbol %[[D]]#1
// CHECK: prim.host_call "object_data"(%[[I]]) words [2, 0] : (tensor<i64>) -> tensor<?x?x1xui8
graph.func @image(%x: tensor<?xui8> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 20 : i64}} {
  %y = graph.node "ai.onnx":"ImageDecoder" opset 20(%x) {pixel_format = "Grayscale"} : (tensor<?xui8>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// CHECK-LABEL: func.func @regex
// CHECK-SAME: prim.strings = ["", "a+"]
// CHECK: prim.host_call "regex_full_match"(%arg0, %{{.*}}) words [1, 1, 0] : (tensor<2x3xi64>, tensor<i64>) -> tensor<2x3xi1>
graph.func @regex(%x: tensor<2x3x!tc.string> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 20 : i64}} {
  %y = graph.node "ai.onnx":"RegexFullMatch" opset 20(%x) {pattern = "a+"} : (tensor<2x3x!tc.string>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// Operands, then attributes; sizes are expressions over the operands' dims, or come with a handle.
// CHECK: affine_map<()[s0] -> (s0 * 2, 4)>
// CHECK-LABEL: func.func @custom
// CHECK-SAME: prim.strings = ["", "s"]
// CHECK-DAG: %[[K:.*]] = prim.constant dense<[1, 2]> : tensor<2xi64>
// CHECK-DAG: %[[F:.*]] = prim.constant dense<5.000000e-01> : tensor<f64>
// CHECK: %[[R:.*]]:2 = prim.host_call "mine"(%arg0, %[[K]], %[[F]], %{{.*}}) words [0, 0, 0, 1, 0, 2] : ({{.*}}) -> (tensor<?x4xf32, {{.*}}>, tensor<i64>)
// CHECK: prim.host_call "object_dims"(%[[R]]#1) words [2, 0]
// CHECK: prim.host_call "object_data"(%[[R]]#1) words [2, 1]
graph.func @custom(%x: tensor<?x3xf32> {graph.name = "x"}) -> (!tc.unknown, !tc.unknown) attributes {opsets = {org.me = 3 : i64}} {
  %y:2 = graph.node "org.me":"Mine" opset 3(%x) {ks = array<i64: 1, 2>} : (tensor<?x3xf32>) -> (!tc.unknown, !tc.unknown)
  graph.yield %y#0, %y#1 : !tc.unknown, !tc.unknown
}

// -----

// CHECK-LABEL: func.func @custom_complex
// CHECK: prim.host_call "waves"(%arg0) words [0, 0] : (tensor<3xcomplex<f32>>) -> tensor<3xcomplex<f64>>
graph.func @custom_complex(%x: tensor<3xcomplex<f32>> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {org.me = 3 : i64}} {
  %y = graph.node "org.me":"Waves" opset 3(%x) : (tensor<3xcomplex<f32>>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// Large matrices, one after another; small ones are eliminated side by side.
// CHECK-LABEL: func.func @determinant
// CHECK: %[[D:.*]] = prim.host_call "determinant"(%arg0) {{.*}} : (tensor<3x9x9xf32>) -> tensor<3xf32>
// CHECK: prim.while
graph.func @determinant(%x: tensor<3x9x9xf32> {graph.name = "x"}, %z: tensor<3x4x4xf32> {graph.name = "z"}) -> (!tc.unknown, !tc.unknown) attributes {opsets = {ai.onnx = 11 : i64}} {
  %y = graph.node "ai.onnx":"Det" opset 11(%x) : (tensor<3x9x9xf32>) -> !tc.unknown
  %w = graph.node "ai.onnx":"Det" opset 11(%z) : (tensor<3x4x4xf32>) -> !tc.unknown
  graph.yield %y, %w : !tc.unknown, !tc.unknown
}

// -----

// How many boxes stay is known in the end only. Flags: 1 for centers, 2 for a threshold.
// CHECK-LABEL: func.func @suppression
// CHECK: %[[F:.*]] = prim.constant dense<3> : tensor<i64>
// CHECK: %[[K:.*]] = prim.host_call "non_max_suppression"(%arg0, %arg1, {{.*}}, {{.*}}, {{.*}}, %[[F]]) words [0, 0, 0, 0, 0, 0, 2]
// CHECK: %[[D:.*]]:2 = prim.host_call "object_dims"(%[[K]]) words [2, 0, 0]
// CHECK: prim.bind_symbol %[[D]]#0
// CHECK: prim.host_call "object_data"(%[[K]]) words [2, 0] : (tensor<i64>) -> tensor<?x3xi64
graph.func @suppression(%b: tensor<1x9x4xf32> {graph.name = "b"}, %s: tensor<1x2x9xf32> {graph.name = "s"}, %m: tensor<i64> {graph.name = "m"}, %o: tensor<f32> {graph.name = "o"}, %t: tensor<f32> {graph.name = "t"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 11 : i64}} {
  %y = graph.node "ai.onnx":"NonMaxSuppression" opset 11(%b, %s, %m, %o, %t) {center_point_box = 1 : i64} : (tensor<1x9x4xf32>, tensor<1x2x9xf32>, tensor<i64>, tensor<f32>, tensor<f32>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}
