// Writes to memory become values: in-place operators, views made before and after, out=, views of views. What can't be said is marked, and
// tc-convert-graph-to-prim reports it.
// RUN: tc-opt %s --split-input-file --tc-functionalize-graph | FileCheck %s

// The base is read after a write to a view, and the view after a write to the base.
// CHECK-LABEL: @through_view
// CHECK: [[Y:%.*]] = graph.node "aten":"select.int"
// CHECK: [[R:%.*]] = graph.node "aten":"relu.default" opset 1([[Y]])
// CHECK: [[C:%.*]] = graph.node "aten":"copy.default" opset 1([[Y]], [[R]])
// CHECK: [[X:%.*]] = graph.node "aten":"select_scatter.default" opset 1(%{{.*}}, [[C]]) {arg_names = ["self", "src"], dim = 0 : i64, index = 1 : i64}
// CHECK: [[N:%.*]] = graph.node "aten":"neg.default" opset 1([[X]])
// CHECK: [[X2:%.*]] = graph.node "aten":"copy.default" opset 1([[X]], [[N]])
// CHECK: [[Y2:%.*]] = graph.node "aten":"select.int" opset 1([[X2]])
// CHECK: graph.yield [[X2]], [[Y2]]
graph.func @through_view(%a: tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<4xf32>) attributes {opsets = {aten = 1 : i64}} {
  %x = graph.node "aten":"clone.default" opset 1(%a) {arg_names = ["self"]} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %y = graph.node "aten":"select.int" opset 1(%x) {arg_names = ["self"], dim = 0 : i64, index = 1 : i64} : (tensor<3x4xf32>) -> tensor<4xf32>
  %r = graph.node "aten":"relu_.default" opset 1(%y) {arg_names = ["self"]} : (tensor<4xf32>) -> tensor<4xf32>
  %n = graph.node "aten":"neg_.default" opset 1(%x) {arg_names = ["self"]} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  graph.yield %x, %r : tensor<3x4xf32>, tensor<4xf32>
}

// -----

// Ten writes to one view of a view are carried to the base once, where that is read.
// CHECK-LABEL: @once
// CHECK-NOT: scatter
// CHECK: "aten":"mul.Scalar"
// CHECK-NOT: scatter
// CHECK: "aten":"add.Tensor"
// CHECK: slice_scatter.default
// CHECK-NEXT: permute.default{{.*}}dims = array<i64: 1, 0>
// CHECK-NEXT: graph.yield
graph.func @once(%a: tensor<3x4xf32>) -> tensor<3x4xf32> attributes {opsets = {aten = 1 : i64}} {
  %x = graph.node "aten":"clone.default" opset 1(%a) {arg_names = ["self"]} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %t = graph.node "aten":"t.default" opset 1(%x) {arg_names = ["self"]} : (tensor<3x4xf32>) -> tensor<4x3xf32>
  %y = graph.node "aten":"slice.Tensor" opset 1(%t) {arg_names = ["self"], dim = 0 : i64, start = 1 : i64, end = 3 : i64} : (tensor<4x3xf32>) -> tensor<2x3xf32>
  %1 = graph.node "aten":"mul_.Scalar" opset 1(%y) {arg_names = ["self"], other = 2 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = graph.node "aten":"add_.Tensor" opset 1(%1) {arg_names = ["self"], other = 2 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  graph.yield %x : tensor<3x4xf32>
}

// -----

// t_ makes the tensor a view of what it was; all of its names in the graph are one object, but not those of views.
// CHECK-LABEL: @metadata
// CHECK: [[T:%.*]] = graph.node "aten":"t.default"
// CHECK: graph.yield [[T]], [[T]], %1
graph.func @metadata(%a: tensor<3x4xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>, tensor<3x4xf32>) attributes {opsets = {aten = 1 : i64}} {
  %x = graph.node "aten":"clone.default" opset 1(%a) {arg_names = ["self"]} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %v = graph.node "aten":"alias.default" opset 1(%x) {arg_names = ["self"]} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %t = graph.node "aten":"t_.default" opset 1(%x) {arg_names = ["self"]} : (tensor<3x4xf32>) -> tensor<4x3xf32>
  %r = graph.node "aten":"relu_.default" opset 1(%a) {arg_names = ["self"]} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  graph.yield %t, %t, %v : tensor<4x3xf32>, tensor<4x3xf32>, tensor<3x4xf32>
}

// -----

// out= gives the operator that returns the value, in the element type of the tensor that is written. An argument's new value is a result.
// CHECK-LABEL: @out
// CHECK-SAME: {graph.name = "o.updated"}
// CHECK: [[R:%.*]] = graph.node "aten":"add.Tensor" opset 1(%arg0) {alpha = 2 : i64, arg_names = ["self"], other = 1 : i64} : (tensor<4xf32>) -> !tc.unknown
// CHECK: [[O:%.*]] = graph.node "aten":"copy.default" opset 1(%arg1, [[R]])
// CHECK: graph.yield [[O]], [[O]]
graph.func @out(%x: tensor<4xf32> {graph.name = "x"}, %o: tensor<4xf64> {graph.name = "o"}) -> tensor<4xf64> attributes {opsets = {aten = 1 : i64}} {
  %r = graph.node "aten":"add.out" opset 1(%x, %o) {arg_names = ["self", "out"], other = 1 : i64, alpha = 2 : i64} : (tensor<4xf32>, tensor<4xf64>) -> tensor<4xf64>
  graph.yield %r : tensor<4xf64>
}

// -----

// The statistics of batch_norm in training, and a counter, are buffers: states hold what they are after the call.
// CHECK-LABEL: @buffers
// CHECK: [[S:%.*]]:5 = graph.node "aten":"_native_batch_norm_legit_functional.default"
// CHECK: [[M:%.*]] = graph.node "aten":"copy.default" opset 1(%{{.*}}, [[S]]#3)
// CHECK: graph.node "tc":"write_state" opset 1([[M]]) {state = "bn.mean"}
// CHECK: graph.yield [[S]]#0
graph.func @buffers(%x: tensor<2x3xf32>) -> tensor<2x3xf32> attributes {opsets = {aten = 1 : i64}} {
  %m = graph.constant #tc.data<"b", 0, 12, "00000000000000000000000000000000"> : tensor<3xf32> {graph.state = "bn.mean"}
  %v = graph.constant #tc.data<"b", 64, 12, "00000000000000000000000000000000"> : tensor<3xf32> {graph.state = "bn.var"}
  %y = graph.node "aten":"batch_norm.default" opset 1(%x, %m, %v) {arg_names = ["input", "running_mean", "running_var"], training = true, momentum = 1.000000e-01 : f64, eps = 1.000000e-05 : f64, cudnn_enabled = false} : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  graph.yield %y : tensor<2x3xf32>
}

// -----

// So are those of instance_norm, for which PyTorch has no operator that returns them: they move towards the means over the batch.
// CHECK-LABEL: @instance_norm
// CHECK: [[Y:%.*]] = graph.node "aten":"instance_norm.default" opset 1(%{{.*}}) {arg_names = ["input"]
// CHECK: graph.node "aten":"flatten.using_ints"{{.*}}start_dim = 2
// CHECK: [[A:%.*]] = graph.node "aten":"mean.dim"{{.*}}dim = array<i64: 2>
// CHECK: [[B:%.*]] = graph.node "aten":"mean.dim" opset 1([[A]]){{.*}}dim = array<i64: 0>
// CHECK: graph.node "aten":"lerp.Scalar" opset 1(%{{.*}}, [[B]]){{.*}}weight = 1.000000e-01 : f64
// CHECK: [[V:%.*]] = graph.node "aten":"var.correction"{{.*}}correction = 1 : i64, dim = array<i64: 2>
// CHECK: graph.node "aten":"mean.dim" opset 1([[V]]){{.*}}dim = array<i64: 0>
// CHECK: graph.node "tc":"write_state"{{.*}}"in.mean"
// CHECK: graph.node "tc":"write_state"{{.*}}"in.var"
// CHECK: graph.yield [[Y]]
graph.func @instance_norm(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> attributes {opsets = {aten = 1 : i64}} {
  %m = graph.constant #tc.data<"b", 0, 12, "00000000000000000000000000000000"> : tensor<3xf32> {graph.state = "in.mean"}
  %v = graph.constant #tc.data<"b", 64, 12, "00000000000000000000000000000000"> : tensor<3xf32> {graph.state = "in.var"}
  %y = graph.node "aten":"instance_norm.default" opset 1(%x, %m, %v) {arg_names = ["input", "running_mean", "running_var"], use_input_stats = true, momentum = 1.000000e-01 : f64, eps = 1.000000e-05 : f64, cudnn_enabled = false} : (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3x4xf32>
  graph.yield %y : tensor<2x3x4xf32>
}

// -----

// Through a view, by an operator that has no other; a constant that each run makes anew may be written.
// CHECK-LABEL: @filled
// CHECK: [[F:%.*]] = graph.node "aten":"fill_diagonal_.default"{{.*}} -> !tc.unknown
// CHECK: "aten":"copy.default" opset 1({{.*}}, [[F]])
// CHECK: [[P:%.*]] = graph.node "aten":"neg.default"
// CHECK-NOT: graph.refused
graph.func @filled(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<2xf32>) attributes {opsets = {aten = 1 : i64}} {
  %b = graph.node "aten":"clone.default" opset 1(%x) {arg_names = ["self"]} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %v = graph.node "aten":"slice.Tensor" opset 1(%b) {arg_names = ["self"], dim = 0 : i64, start = 0 : i64, end = 2 : i64} : (tensor<4x4xf32>) -> tensor<2x4xf32>
  %f = graph.node "aten":"fill_diagonal_.default" opset 1(%v) {arg_names = ["self"], fill_value = 3 : i64} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %c = graph.constant dense<[1.0, 2.0]> : tensor<2xf32> {graph.fresh}
  %n = graph.node "aten":"neg_.default" opset 1(%c) {arg_names = ["self"]} : (tensor<2xf32>) -> tensor<2xf32>
  graph.yield %b, %c : tensor<4x4xf32>, tensor<2xf32>
}

// -----

// CHECK-LABEL: @refused
graph.func @refused(%a: tensor<3x1xf32>, %b: tensor<3x4xf32>, %c: tensor<?x?xf32>, %d: tensor<1xi1>) -> (tensor<3x1xf32>, tensor<3x4xf32>, tensor<?xf32>, tensor<?x?xf32>, tensor<3x4xf32>) attributes {opsets = {aten = 1 : i64}} {
  // CHECK: "aten":"relu_.default"{{.*}}graph.refused = "writes through \22expand.default\22, a view by expand.default, whose elements share memory; write to a .clone() of it"
  %x = graph.node "aten":"clone.default" opset 1(%a) {arg_names = ["self"]} : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %e = graph.node "aten":"expand.default" opset 1(%x) {arg_names = ["self"], size = array<i64: 3, 4>} : (tensor<3x1xf32>) -> tensor<3x4xf32>
  %1 = graph.node "aten":"relu_.default" opset 1(%e) {arg_names = ["self"]} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  // CHECK: "aten":"resize_.default"{{.*}}graph.refused = "gives a tensor other memory
  %y = graph.node "aten":"clone.default" opset 1(%b) {arg_names = ["self"]} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %2 = graph.node "aten":"resize_.default" opset 1(%y) {arg_names = ["self"], size = array<i64: 3, 4>} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  // A reshape of a tensor whose order in memory is not known: it may be read, and written, but not one after a write to the other.
  // CHECK: "aten":"neg.default"
  // CHECK: "aten":"relu.default"{{.*}}graph.refused = "reads \22nonzero.default\22 after a write by \22neg.default\22, and whether both are one memory is not known: reshape.default copies or does not; write .clone() in its place"
  %n = graph.node "aten":"nonzero.default" opset 1(%c) {arg_names = ["self"]} : (tensor<?x?xf32>) -> tensor<?x?xf32> loc("nonzero.default")
  %r = graph.node "aten":"reshape.default" opset 1(%n) {arg_names = ["self"], shape = array<i64: -1>} : (tensor<?x?xf32>) -> tensor<?xf32>
  %w = graph.node "aten":"neg_.default" opset 1(%r) {arg_names = ["self"]} : (tensor<?xf32>) -> tensor<?xf32>
  %o = graph.node "aten":"relu.default" opset 1(%n) {arg_names = ["self"]} : (tensor<?x?xf32>) -> tensor<?x?xf32>
  // CHECK: "aten":"neg_.default"{{.*}}graph.refused = "writes \22clone.default\22 inside control flow, where it was made outside of it; return the new value from the branch or the loop"
  %z = graph.node "aten":"clone.default" opset 1(%b) {arg_names = ["self"]} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %i = graph.node "higher_order":"cond" opset 1(%d) {arg_names = ["pred"]} graphs "true_graph"() {
    %3 = graph.node "aten":"neg_.default" opset 1(%z) {arg_names = ["self"]} : (tensor<3x4xf32>) -> tensor<3x4xf32>
    graph.yield %3 : tensor<3x4xf32>
  }, "false_graph"() {
    graph.yield %z : tensor<3x4xf32>
  } : (tensor<1xi1>) -> tensor<3x4xf32>
  graph.yield %x, %2, %w, %o, %i : tensor<3x1xf32>, tensor<3x4xf32>, tensor<?xf32>, tensor<?x?xf32>, tensor<3x4xf32>
}

// -----

// A graph that writes nothing stays as it is, PyTorch's or not.
// CHECK-LABEL: @pure
// CHECK-NEXT: graph.node "aten":"alias.default"
// CHECK-NEXT: graph.node "ai.onnx":"Relu"
// CHECK-NEXT: graph.yield
graph.func @pure(%a: tensor<3xf32>) -> tensor<3xf32> attributes {opsets = {aten = 1 : i64}} {
  %v = graph.node "aten":"alias.default" opset 1(%a) {arg_names = ["self"]} : (tensor<3xf32>) -> tensor<3xf32>
  %r = graph.node "ai.onnx":"Relu" opset 17(%v) : (tensor<3xf32>) -> tensor<3xf32>
  graph.yield %r : tensor<3xf32>
}

// -----

// Where no front end says how a product of a permuted tensor lies, it lies row by row, so that its memory may be strided over.
// CHECK-LABEL: @strided_product
// CHECK-NOT: graph.refused
// CHECK: [[Y:%.*]] = graph.node "aten":"linear.default"
// CHECK: graph.node "aten":"as_strided.default" opset 1([[Y]])
graph.func @strided_product(%a: tensor<2x4x8xf32>, %w: tensor<8x8xf32>) -> tensor<3x2x8xf32> attributes {opsets = {aten = 1 : i64}} {
  %t = graph.node "aten":"transpose.int" opset 1(%a) {arg_names = ["self"], dim0 = 0 : i64, dim1 = 1 : i64} : (tensor<2x4x8xf32>) -> tensor<4x2x8xf32>
  %y = graph.node "aten":"linear.default" opset 1(%t, %w) {arg_names = ["input", "weight"]} : (tensor<4x2x8xf32>, tensor<8x8xf32>) -> tensor<4x2x8xf32>
  %v = graph.node "aten":"view.default" opset 1(%y) {arg_names = ["self"], size = array<i64: 8, 8>} : (tensor<4x2x8xf32>) -> tensor<8x8xf32>
  %s = graph.node "aten":"as_strided.default" opset 1(%v) {arg_names = ["self"], size = array<i64: 3, 2, 8>, stride = array<i64: 16, 8, 1>} : (tensor<8x8xf32>) -> tensor<3x2x8xf32>
  graph.yield %s : tensor<3x2x8xf32>
}

// -----

// A result that out= writes has the type of the memory, where the call said none: the function's follows.
// CHECK-LABEL: @typed_out
// CHECK-SAME: -> tensor<3x4xi64>
// CHECK: [[S:%.*]] = graph.node "aten":"neg.default"
// CHECK: [[C:%.*]] = graph.node "aten":"copy.default" opset 1(%{{.*}}, [[S]]) {{.*}} -> tensor<3x4xi64>
// CHECK: graph.yield [[C]] : tensor<3x4xi64>
graph.func @typed_out(%a: tensor<3x4xi64>) -> !tc.unknown attributes {opsets = {aten = 1 : i64}} {
  %x = graph.node "aten":"clone.default" opset 1(%a) {arg_names = ["self"]} : (tensor<3x4xi64>) -> tensor<3x4xi64>
  %y = graph.node "aten":"neg.out" opset 1(%a, %x) {arg_names = ["self", "out"]} : (tensor<3x4xi64>, tensor<3x4xi64>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// Where no front end says how tensors lie, what is computed of a transposed one, and what LAPACK gives, is not known to lie row by row.
// CHECK-LABEL: @unknown_places
// CHECK: "as_strided.default"{{.*}}graph.refused = "of a tensor that is not known to lie row by row is not supported; call .contiguous() on it first"
// CHECK: "as_strided.default"{{.*}}graph.refused = "of a tensor that is not known
// CHECK: "as_strided.default"
// CHECK-NOT: graph.refused
graph.func @unknown_places(%x: tensor<3x4xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) attributes {opsets = {aten = 1 : i64}} {
  %t = graph.node "aten":"t.default" opset 1(%x) {arg_names = ["self"]} : (tensor<3x4xf32>) -> tensor<4x3xf32>
  %a = graph.node "aten":"neg.default" opset 1(%t) {arg_names = ["self"]} : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %y = graph.node "aten":"as_strided.default" opset 1(%a) {arg_names = ["self"], size = array<i64: 3>, stride = array<i64: 1>} : (tensor<4x3xf32>) -> tensor<3xf32>
  %q:2 = graph.node "aten":"linalg_qr.default" opset 1(%x) {arg_names = ["A"]} : (tensor<3x4xf32>) -> (tensor<3x3xf32>, tensor<3x4xf32>)
  %z = graph.node "aten":"as_strided.default" opset 1(%q#0) {arg_names = ["self"], size = array<i64: 3>, stride = array<i64: 1>} : (tensor<3x3xf32>) -> tensor<3xf32>
  %b = graph.node "aten":"neg.default" opset 1(%x) {arg_names = ["self"]} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %w = graph.node "aten":"as_strided.default" opset 1(%b) {arg_names = ["self"], size = array<i64: 3>, stride = array<i64: 1>} : (tensor<3x4xf32>) -> tensor<3xf32>
  graph.yield %y, %z, %w : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
}

// -----

// What is a copy unless sizes are 1 gets a guard where that matters: the copy is read after a write to the operand. The least sets of dims
// count: of x.transpose(1, 2) of [B, S, 4], S alone. Where nothing is written, there is none.
// CHECK-LABEL: @copies_unless_one
// CHECK: [[T:%.*]] = graph.node "aten":"transpose.int"
// CHECK-NEXT: [[S:%.*]] = graph.node "aten":"sym_size.int" opset 1([[T]]) {arg_names = ["self"], dim = 2 : i64}
// CHECK: [[N:%.*]] = graph.node "torch":"_operator.ne" opset 1([[S]]
// CHECK: "aten":"_assert_scalar.default" opset 1([[N]]) {arg_names = ["self"], assert_msg = "compiled as a copy, but it names memory that is written where dim 2 of its operand is of size 1; write .clone() in its place"}
// CHECK-NOT: _assert_scalar
// CHECK: "aten":"contiguous.default"
// CHECK-NOT: _assert_scalar
// CHECK: graph.yield
graph.func @copies_unless_one(%a: tensor<?x?x4xf32>) -> (tensor<?x4x?xf32>, tensor<?x?xf32>) attributes {opsets = {aten = 1 : i64}, graph.layouts = array<i64>} {
  %x = graph.node "aten":"clone.default" opset 1(%a) {arg_names = ["self"]} : (tensor<?x?x4xf32>) -> tensor<?x?x4xf32>
  %t = graph.node "aten":"transpose.int" opset 1(%x) {arg_names = ["self"], dim0 = 1 : i64, dim1 = 2 : i64} attributes {graph.layouts = [[array<i64: 5, 4, 7>, array<i64: 28, 1, 4>]]} : (tensor<?x?x4xf32>) -> tensor<?x4x?xf32>
  %c = graph.node "aten":"contiguous.default" opset 1(%t) {arg_names = ["self"]} : (tensor<?x4x?xf32>) -> tensor<?x4x?xf32>
  %r = graph.node "aten":"flatten.using_ints" opset 1(%t) {arg_names = ["self"], end_dim = -1 : i64, start_dim = 1 : i64} : (tensor<?x4x?xf32>) -> tensor<?x?xf32>
  %w = graph.node "aten":"relu_.default" opset 1(%x) {arg_names = ["self"]} : (tensor<?x?x4xf32>) -> tensor<?x?x4xf32>
  graph.yield %c, %r : tensor<?x4x?xf32>, tensor<?x?xf32>
}

// -----

// Of one tensor einsum returns a view, unless it sums.
// CHECK-LABEL: @einsum_of_one
// CHECK: "aten":"neg.default"{{.*}}graph.refused = "reads \22clone.default\22 after a write by \22neg.default\22, and whether both are one memory is not known: einsum.default copies or does not; write .clone() in its place"
graph.func @einsum_of_one(%a: tensor<3x4xf32>) -> tensor<3x4xf32> attributes {opsets = {aten = 1 : i64}} {
  %x = graph.node "aten":"clone.default" opset 1(%a) {arg_names = ["self"]} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %e = graph.node "aten":"einsum.default" opset 1(%x) {arg_names = ["tensors.0"], equation = "ij->ji", tensors.count = 1 : i64} : (tensor<3x4xf32>) -> tensor<4x3xf32>
  %w = graph.node "aten":"neg_.default" opset 1(%e) {arg_names = ["self"]} : (tensor<4x3xf32>) -> tensor<4x3xf32>
  graph.yield %x : tensor<3x4xf32>
}
