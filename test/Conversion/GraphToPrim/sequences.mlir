// Proves: sequences, optionals and strings are words that functions of the runtime work on; sequences whose elements are known are none.
// RUN: tc-opt %s -tc-convert-graph-to-prim -split-input-file | FileCheck %s

// Sizes of what is taken out are bound before its data is.
// CHECK-LABEL: func.func @at
// CHECK-SAME: %[[S:.*]]: tensor<i64> {prim.value = !tc.seq<tensor<?x3xf32>>, tc.name = "s"}
// CHECK: %[[E:.*]] = prim.host_call "seq_at"(%[[S]], %{{.*}}) words [2, 0, 2]
// CHECK: %[[D:.*]]:2 = prim.host_call "object_dims"(%[[E]]) words [2, 0, 0]
// CHECK: prim.bind_symbol %[[D]]#0 to 0
// CHECK: prim.host_call "object_data"(%[[E]]) words [2, 0] : (tensor<i64>) -> tensor<?x3xf32
graph.func @at(%s: !tc.seq<tensor<?x3xf32>> {graph.name = "s"}, %i: tensor<i64> {graph.name = "i"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 18 : i64}} {
  %y = graph.node "ai.onnx":"SequenceAt" opset 11(%s, %i) : (!tc.seq<tensor<?x3xf32>>, tensor<i64>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// Split, take, concatenate with known lengths: slices and a concat.
// CHECK-LABEL: func.func @known
// CHECK-NOT: host_call
// CHECK: prim.slice %arg0
// CHECK: prim.concat
graph.func @known(%x: tensor<6x2xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 18 : i64}} {
  %n = graph.constant dense<4> : tensor<i64>
  %i = graph.constant dense<-1> : tensor<i64>
  %s = graph.node "ai.onnx":"SplitToSequence" opset 11(%x, %n) : (tensor<6x2xf32>, tensor<i64>) -> !tc.unknown
  %y = graph.node "ai.onnx":"SequenceAt" opset 11(%s, %i) : (!tc.unknown, tensor<i64>) -> !tc.unknown
  %t = graph.node "ai.onnx":"SequenceConstruct" opset 11(%y, %x) : (!tc.unknown, tensor<6x2xf32>) -> !tc.unknown
  %z = graph.node "ai.onnx":"ConcatFromSequence" opset 11(%t) {axis = 0 : i64} : (!tc.unknown) -> !tc.unknown
  graph.yield %z : !tc.unknown
}

// -----

// Constant strings have fixed ids; comparing and moving strings is arithmetic on ids.
// CHECK-LABEL: func.func @strings
// CHECK-SAME: tensor<2xi64> {prim.value = !tc.string, tc.name = "x"}
// CHECK-SAME: -> (tensor<2x?xi64{{.*}} {prim.value = !tc.string, tc.name = ""}, tensor<2xi1>
// CHECK-SAME: prim.strings = ["", "-"]
// CHECK: prim.compare eq %arg0, %arg1 : tensor<2xi64>
// CHECK: %[[XY:.*]] = prim.host_call "string_concat"(%arg0, %arg1) words [1, 1, 1]
// CHECK: %[[P:.*]]:2 = prim.host_call "string_split"(%[[XY]], %{{.*}}, %{{.*}}) words [1, 1, 0, 2, 0]
// CHECK: prim.host_call "object_data"(%[[P]]#0) words [2, 1]
graph.func @strings(%x: tensor<2x!tc.string> {graph.name = "x"}, %y: tensor<2x!tc.string> {graph.name = "y"}) -> (!tc.unknown, !tc.unknown) attributes {opsets = {ai.onnx = 20 : i64}} {
  %e = graph.node "ai.onnx":"Equal" opset 19(%x, %y) : (tensor<2x!tc.string>, tensor<2x!tc.string>) -> !tc.unknown
  %c = graph.node "ai.onnx":"StringConcat" opset 20(%x, %y) : (tensor<2x!tc.string>, tensor<2x!tc.string>) -> !tc.unknown
  %p = graph.node "ai.onnx":"StringSplit" opset 20(%c) {delimiter = "-"} : (!tc.unknown) -> !tc.unknown
  graph.yield %p, %e : !tc.unknown, !tc.unknown
}

// -----

// A loop may start with an empty sequence: what is inside is known after its first iteration.
// CHECK-LABEL: func.func @loop
// CHECK: prim.host_call "seq_construct"() words [2]
// CHECK: prim.while
// CHECK: prim.host_call "seq_insert"
// CHECK: prim.host_call "seq_concat_dims"
graph.func @loop(%n: tensor<i64> {graph.name = "n"}, %x: tensor<2xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 18 : i64}} {
  %none = graph.none : none
  %s = graph.node "ai.onnx":"SequenceEmpty" opset 11() : () -> !tc.unknown
  %r = graph.node "ai.onnx":"Loop" opset 16(%n, %none, %s) graphs "body"(%i: tensor<i64>, %c: tensor<i1>, %in: !tc.unknown) {
    %out = graph.node "ai.onnx":"SequenceInsert" opset 11(%in, %x) : (!tc.unknown, tensor<2xf32>) -> !tc.unknown
    graph.yield %c, %out : tensor<i1>, !tc.unknown
  } : (tensor<i64>, none, !tc.unknown) -> !tc.unknown
  %y = graph.node "ai.onnx":"ConcatFromSequence" opset 11(%r) {axis = 0 : i64} : (!tc.unknown) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// The definition of SequenceMap depends on what its operand is, which only the conversion finds out here.
// CHECK-LABEL: func.func @map
// CHECK: %[[A:.*]] = prim.abs %{{.*}} : tensor<3xf32>
graph.func @map(%x: tensor<3xf32> {graph.name = "x"}, %b: tensor<3xf32> {graph.name = "b"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 24 : i64, com.microsoft = 1 : i64}} {
  %i = graph.constant dense<0> : tensor<i64>
  %g = graph.node "com.microsoft":"FastGelu" opset 1(%x, %b) : (tensor<3xf32>, tensor<3xf32>) -> !tc.unknown
  %s = graph.node "ai.onnx":"SequenceConstruct" opset 24(%g, %g) : (!tc.unknown, !tc.unknown) -> !tc.unknown
  %m = graph.node "ai.onnx":"SequenceMap" opset 24(%s) graphs "body"(%e: tensor<?xf32>) {
    %r = graph.node "ai.onnx":"Abs" opset 24(%e) : (tensor<?xf32>) -> tensor<?xf32>
    graph.yield %r : tensor<?xf32>
  } : (!tc.unknown) -> !tc.unknown
  %y = graph.node "ai.onnx":"SequenceAt" opset 24(%m, %i) : (!tc.unknown, tensor<i64>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// An erased element says nothing of what is inserted later; elements of one rank and different sizes are taken out with sizes of the run.
// CHECK-LABEL: func.func @refilled
// CHECK: prim.host_call "seq_construct"(%arg0, %arg1)
// CHECK: prim.host_call "object_data"(%{{.*}}) words [2, 0] : (tensor<i64>) -> tensor<?x?xf64
graph.func @refilled(%x: tensor<9x11xf64> {graph.name = "x"}, %y: tensor<11x1xf64> {graph.name = "y"}, %z: tensor<1x6x1xf64> {graph.name = "z"}, %i: tensor<i32> {graph.name = "i"}) -> (!tc.unknown) attributes {opsets = {ai.onnx = 18 : i64}} {
  %s = graph.node "ai.onnx":"SequenceConstruct" opset 18(%z) : (tensor<1x6x1xf64>) -> !tc.unknown
  %e = graph.node "ai.onnx":"SequenceErase" opset 18(%s) : (!tc.unknown) -> !tc.unknown
  %a = graph.node "ai.onnx":"SequenceInsert" opset 18(%e, %x) : (!tc.unknown, tensor<9x11xf64>) -> !tc.unknown
  %b = graph.node "ai.onnx":"SequenceInsert" opset 18(%a, %y) : (!tc.unknown, tensor<11x1xf64>) -> !tc.unknown
  %r = graph.node "ai.onnx":"SequenceAt" opset 18(%b, %i) : (!tc.unknown, tensor<i32>) -> !tc.unknown
  graph.yield %r : !tc.unknown
}
