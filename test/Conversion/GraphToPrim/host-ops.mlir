// allow-host-ops: a signature of an operator that tc has computes the nodes that tc refuses, and no others; without it, all of them.
// RUN: tc-opt %s --tc-convert-graph-to-prim="custom-op=%S/Inputs/host-ops.json allow-host-ops=true" 2>&1 | FileCheck %s
// RUN: tc-opt %s --tc-convert-graph-to-prim=custom-op=%S/Inputs/host-ops.json | FileCheck %s --check-prefix=FIRST
// RUN: not tc-opt %s --tc-convert-graph-to-prim 2>&1 | FileCheck %s --check-prefix=NONE

// NONE: node "beyond": aten.as_strided.default (opset 1) of elements beyond the operand tensor<4xf32> is not supported

// CHECK-NOT: error
// CHECK-LABEL: func.func @main
// CHECK-NOT: host_call
// CHECK: prim.neg
// CHECK: prim.host_call "my_as_strided"(%{{[a-z0-9]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}})
// CHECK-NOT: host_call "my
// CHECK: return

// FIRST-COUNT-2: prim.host_call "my_as_strided"
graph.func @main(%x: tensor<4xf32> {graph.name = "x"}) -> (!tc.unknown, !tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %a = graph.node "aten":"as_strided.default" opset 1(%x) {arg_names = ["self"], size = array<i64: 2>, stride = array<i64: 2>} : (tensor<4xf32>) -> !tc.unknown loc("inside")
  %n = graph.node "aten":"neg.default" opset 1(%a) {arg_names = ["self"]} : (!tc.unknown) -> !tc.unknown
  %b = graph.node "aten":"as_strided.default" opset 1(%x) {arg_names = ["self"], size = array<i64: 2>, stride = array<i64: 9>} : (tensor<4xf32>) -> !tc.unknown loc("beyond")
  graph.yield %n, %b : !tc.unknown, !tc.unknown
}
