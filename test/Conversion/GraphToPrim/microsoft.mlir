// Proves: weights of few bits stay as they are stored; grouped queries share one attention per group; operators of ai.onnx
// stand behind quantised ones.
// RUN: tc-opt %s -tc-convert-graph-to-prim -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @bits
// CHECK: %[[BYTES:.*]] = prim.reshape {{.*}} : tensor<512x16x16xui8> -> tensor<512x256xui8>
// CHECK: prim.block_dot %{{.*}}, %[[BYTES]], %{{.*}} bits = 4 block = 32 : (tensor<3x512xf32>, tensor<512x256xui8>, tensor<512x16xf32>) -> tensor<3x512xf32>
graph.func @bits(%x: tensor<3x512xf32> {graph.name = "x"}, %w: tensor<512x16x16xui8> {graph.name = "w"}, %s: tensor<512x16xf32> {graph.name = "s"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 21 : i64, com.microsoft = 1 : i64}} {
  %y = graph.node "com.microsoft":"MatMulNBits" opset 1(%x, %w, %s) {K = 512 : i64, N = 512 : i64, bits = 4 : i64, block_size = 32 : i64} : (tensor<3x512xf32>, tensor<512x16x16xui8>, tensor<512x16xf32>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// CHECK-LABEL: func.func @groups
// CHECK: prim.attention {{.*}} : (tensor<1x2x12x16xf32>, tensor<1x2x10x16xf32>, tensor<1x2x10x16xf32>, tensor<1x2x12x10xf32>) -> tensor<1x2x12x16xf32>
graph.func @groups(%q: tensor<1x4x96xf32> {graph.name = "q"}, %k: tensor<1x4x32xf32> {graph.name = "k"}, %v: tensor<1x4x32xf32> {graph.name = "v"},
                   %pk: tensor<1x2x6x16xf32> {graph.name = "pk"}, %pv: tensor<1x2x6x16xf32> {graph.name = "pv"}, %n: tensor<1xi32> {graph.name = "n"})
    -> (!tc.unknown, !tc.unknown, !tc.unknown) attributes {opsets = {ai.onnx = 21 : i64, com.microsoft = 1 : i64}} {
  %t = graph.constant dense<10> : tensor<i32>
  %y, %k1, %v1 = graph.node "com.microsoft":"GroupQueryAttention" opset 1(%q, %k, %v, %pk, %pv, %n, %t) {num_heads = 6 : i64, kv_num_heads = 2 : i64}
    : (tensor<1x4x96xf32>, tensor<1x4x32xf32>, tensor<1x4x32xf32>, tensor<1x2x6x16xf32>, tensor<1x2x6x16xf32>, tensor<1xi32>, tensor<i32>) -> (!tc.unknown, !tc.unknown, !tc.unknown)
  graph.yield %y, %k1, %v1 : !tc.unknown, !tc.unknown, !tc.unknown
}

// -----

// CHECK-LABEL: func.func @pool
// CHECK: prim.window_reduce sum {{.*}} : tensor<1x8x8x3xf32>
// CHECK: prim.round
// CHECK: return {{.*}} : tensor<1x3x7x7xui8>
graph.func @pool(%x: tensor<1x3x8x8xui8> {graph.name = "x"}, %s: tensor<f32> {graph.name = "s"}, %z: tensor<ui8> {graph.name = "z"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 21 : i64, com.microsoft = 1 : i64}} {
  %y = graph.node "com.microsoft":"QLinearAveragePool" opset 1(%x, %s, %z, %s, %z) {kernel_shape = array<i64: 2, 2>}
    : (tensor<1x3x8x8xui8>, tensor<f32>, tensor<ui8>, tensor<f32>, tensor<ui8>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}
