// Proves: operators that are expanded by their definitions in the midst of the conversion, as their operands' types are known only there, get what expansion before it gives them.
// RUN: tc-opt %s -tc-convert-graph-to-prim -split-input-file | FileCheck %s

// Values of f16 beside queries of f32: the two have one type in the definition, which multiplies them.
// CHECK-LABEL: func.func @attention
// CHECK: prim.convert %{{.*}} : tensor<2x3x6x4xf16> -> tensor<2x3x6x4xf32>
// CHECK: prim.dot_general {{.*}} : (tensor<2x3x5x6xf32>, tensor<2x3x6x4xf32>) -> tensor<2x3x5x4xf32>
// CHECK: return %{{.*}} : tensor<2x3x5x4xf32>
graph.func @attention(%q: tensor<2x3x5x8xf32> {graph.name = "q"}, %k: tensor<2x3x6x8xf32> {graph.name = "k"}, %v: tensor<2x3x6x4xf16> {graph.name = "v"}, %b: tensor<4xf16> {graph.name = "b"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 24 : i64, com.microsoft = 1 : i64}} {
  %g = graph.node "com.microsoft":"FastGelu" opset 1(%v, %b) : (tensor<2x3x6x4xf16>, tensor<4xf16>) -> !tc.unknown
  %y = graph.node "ai.onnx":"Attention" opset 24(%q, %k, %g) : (tensor<2x3x5x8xf32>, tensor<2x3x6x8xf32>, !tc.unknown) -> !tc.unknown
  graph.yield %y : !tc.unknown
}
