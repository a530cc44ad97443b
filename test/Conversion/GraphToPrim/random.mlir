// Random numbers are integer arithmetic on positions and a key: the seed, or the node's number. Distributions: test/Integration/operators.py.
// RUN: tc-opt %s -tc-convert-graph-to-prim -split-input-file | FileCheck %s

// The first round's key is the seed's bits, 1.0f.
// CHECK-NOT: prim.state
// CHECK-LABEL: func.func @seeded
// CHECK: prim.splat 3528531795 : ui64 : tensor<6xui64>
// CHECK: prim.splat 1065353216 : ui32
// CHECK: prim.shr
// CHECK: prim.convert {{.*}} : tensor<6xui32> -> tensor<6xf32>
// CHECK: return %{{.*}} : tensor<2x3xf32>
graph.func @seeded() -> (!tc.unknown) attributes {opsets = {ai.onnx = 22 : i64}} {
  %y = graph.node "ai.onnx":"RandomUniform" opset 22() {shape = array<i64: 2, 3>, seed = 1.0 : f32} : () -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// Nodes without a seed draw from the context's sequence: its seed and run are a state, their numbers differ, and the next run draws others.
// CHECK: prim.state @tc.random : tensor<2xi64>
// CHECK-LABEL: func.func @unseeded
// CHECK: prim.read_state @tc.random : tensor<2xi64>
// CHECK: prim.splat 1 : ui32 : tensor<4xui32>
// CHECK: prim.splat 2 : ui32 : tensor<4xui32>
// CHECK: %[[STATE:.*]] = prim.read_state @tc.random : tensor<2xi64>
// CHECK: %[[NEXT:.*]] = prim.add %[[STATE]], %{{.*}} : tensor<2xi64>
// CHECK: prim.write_state @tc.random, %[[NEXT]] : tensor<2xi64>
// CHECK-NEXT: return
graph.func @unseeded() -> (!tc.unknown, !tc.unknown) attributes {opsets = {ai.onnx = 22 : i64}} {
  %x = graph.node "ai.onnx":"RandomNormal" opset 22() {shape = array<i64: 4>} : () -> !tc.unknown
  %y = graph.node "ai.onnx":"RandomNormal" opset 22() {shape = array<i64: 4>} : () -> !tc.unknown
  graph.yield %x, %y : !tc.unknown, !tc.unknown
}

// -----

// Dropout that is not training, or drops nothing, costs nothing.
// CHECK-NOT: prim.state
// CHECK-LABEL: func.func @inference
// CHECK-NOT: prim.xor
// CHECK: return %arg0
graph.func @inference(%x: tensor<4xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 22 : i64}} {
  %ratio = graph.constant dense<0.0> : tensor<f32>
  %training = graph.constant dense<true> : tensor<i1>
  %y = graph.node "ai.onnx":"Dropout" opset 22(%x, %ratio, %training) : (tensor<4xf32>, tensor<f32>, tensor<i1>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}
