// Custom operators whose schema says that they write: the node returns the new values, which other names of the memory show.
// RUN: tc-opt %s --split-input-file --tc-functionalize-graph=custom-op=%S/Inputs/custom-writes.json | FileCheck %s

// A result and a write through a view; the base is read later.
// CHECK-LABEL: @through_view
// CHECK: [[V:%.*]] = graph.node "aten":"slice.Tensor"
// CHECK: [[R:%.*]]:2 = graph.node "my":"blend.default" opset 1(%{{.*}}, [[V]]) {{.*}} attributes {graph.functional} : (tensor<2x4xf32>, tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
// CHECK: [[B:%.*]] = graph.node "aten":"slice_scatter.default" opset 1(%{{.*}}, [[R]]#1)
// CHECK: graph.yield [[R]]#0, [[B]]
graph.func @through_view(%a: tensor<3x4xf32>, %x: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<3x4xf32>) attributes {opsets = {aten = 1 : i64, my = 1 : i64}} {
  %b = graph.node "aten":"clone.default" opset 1(%a) {arg_names = ["self"]} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %v = graph.node "aten":"slice.Tensor" opset 1(%b) {arg_names = ["self"], dim = 0 : i64, start = 1 : i64, end = 3 : i64} : (tensor<3x4xf32>) -> tensor<2x4xf32>
  %r = graph.node "my":"blend.default" opset 1(%x, %v) {arg_names = ["x", "y"]} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  graph.yield %r, %b : tensor<2x4xf32>, tensor<3x4xf32>
}

// -----

// One that returns nothing, and one that returns the tensor that it writes. An argument that is written is an output, too.
// CHECK-LABEL: @nothing
// CHECK-SAME: -> (tensor<3xf32>, tensor<3xf32> {graph.name = "a.updated"})
// CHECK: [[A:%.*]] = graph.node "my":"bump.default" opset 1(%{{.*}}) {{.*}} attributes {graph.functional} : (tensor<3xf32>) -> tensor<3xf32>
// CHECK: [[B:%.*]] = graph.node "my":"inc.default" opset 1([[A]])
// CHECK: graph.yield [[B]], [[B]]
graph.func @nothing(%a: tensor<3xf32> {graph.name = "a"}) -> tensor<3xf32> attributes {opsets = {my = 1 : i64}} {
  graph.node "my":"bump.default" opset 1(%a) {arg_names = ["y"], n = 1 : i64} : (tensor<3xf32>) -> ()
  %r = graph.node "my":"inc.default" opset 1(%a) {arg_names = ["y"]} : (tensor<3xf32>) -> tensor<3xf32>
  graph.yield %r : tensor<3xf32>
}

// -----

// Two parts of one memory that have no element in common may be written at once.
// CHECK-LABEL: @apart
// CHECK: [[R:%.*]]:2 = graph.node "my":"exchange.default"
// CHECK-NOT: graph.refused
// CHECK: "aten":"select_scatter.default"
// CHECK: "aten":"select_scatter.default"
graph.func @apart(%a: tensor<3x4xf32>) -> tensor<3x4xf32> attributes {opsets = {aten = 1 : i64, my = 1 : i64}} {
  %b = graph.node "aten":"clone.default" opset 1(%a) {arg_names = ["self"]} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %0 = graph.node "aten":"select.int" opset 1(%b) {arg_names = ["self"], dim = 0 : i64, index = 0 : i64} : (tensor<3x4xf32>) -> tensor<4xf32>
  %1 = graph.node "aten":"select.int" opset 1(%b) {arg_names = ["self"], dim = 0 : i64, index = -1 : i64} : (tensor<3x4xf32>) -> tensor<4xf32>
  graph.node "my":"exchange.default" opset 1(%0, %1) {arg_names = ["x", "y"]} : (tensor<4xf32>, tensor<4xf32>) -> ()
  graph.yield %b : tensor<3x4xf32>
}

// -----

// What a function would see change under it is refused: parts that overlap, and the tensor itself as another argument.
// CHECK-LABEL: @overlap
// CHECK: "my":"exchange.default"{{.*}}graph.refused = "writes \22b\22, of whose memory another argument may be, too; give the operator a .clone() in its place"
// CHECK: "my":"blend.default"{{.*}}graph.refused = "writes \22b\22, of whose memory another argument may be, too
graph.func @overlap(%a: tensor<3x4xf32>) -> tensor<3x4xf32> attributes {opsets = {aten = 1 : i64, my = 1 : i64}} {
  %b = graph.node "aten":"clone.default" opset 1(%a) {arg_names = ["self"]} : (tensor<3x4xf32>) -> tensor<3x4xf32> loc("b")
  %0 = graph.node "aten":"slice.Tensor" opset 1(%b) {arg_names = ["self"], dim = 0 : i64, start = 0 : i64, end = 2 : i64} : (tensor<3x4xf32>) -> tensor<2x4xf32>
  %1 = graph.node "aten":"slice.Tensor" opset 1(%b) {arg_names = ["self"], dim = 0 : i64, start = 1 : i64, end = 3 : i64} : (tensor<3x4xf32>) -> tensor<2x4xf32>
  graph.node "my":"exchange.default" opset 1(%0, %1) {arg_names = ["x", "y"]} : (tensor<2x4xf32>, tensor<2x4xf32>) -> ()
  %r = graph.node "my":"blend.default" opset 1(%b, %b) {arg_names = ["x", "y"]} : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  graph.yield %b : tensor<3x4xf32>
}

// -----

// What is made of a pure one is new, whatever PyTorch's operator of its name does.
// CHECK-LABEL: @pure
// CHECK: [[D:%.*]] = graph.node "my":"dropout.default"
// CHECK-NOT: graph.functional
// CHECK: [[R:%.*]] = graph.node "aten":"relu.default" opset 1([[D]])
// CHECK: [[C:%.*]] = graph.node "aten":"copy.default" opset 1([[D]], [[R]])
// CHECK: graph.yield %arg0, [[C]]
graph.func @pure(%a: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) attributes {opsets = {aten = 1 : i64, my = 1 : i64}} {
  %d = graph.node "my":"dropout.default" opset 1(%a) {arg_names = ["x"], train = false} : (tensor<3xf32>) -> tensor<3xf32>
  %r = graph.node "aten":"relu_.default" opset 1(%d) {arg_names = ["self"]} : (tensor<3xf32>) -> tensor<3xf32>
  graph.yield %a, %d : tensor<3xf32>, tensor<3xf32>
}

// -----

// Columns lie between each other and have no element in common; a row and a column have one.
// CHECK-LABEL: @columns
// CHECK: "my":"exchange.default"
// CHECK-NOT: graph.refused
// CHECK: "my":"exchange.default"{{.*}}graph.refused = "writes
graph.func @columns(%a: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {opsets = {aten = 1 : i64, my = 1 : i64}} {
  %b = graph.node "aten":"clone.default" opset 1(%a) {arg_names = ["self"]} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %0 = graph.node "aten":"as_strided.default" opset 1(%b) {arg_names = ["self"], size = array<i64: 4>, stride = array<i64: 4>, storage_offset = 0 : i64} : (tensor<4x4xf32>) -> tensor<4xf32>
  %1 = graph.node "aten":"as_strided.default" opset 1(%b) {arg_names = ["self"], size = array<i64: 4>, stride = array<i64: 4>, storage_offset = 3 : i64} : (tensor<4x4xf32>) -> tensor<4xf32>
  %2 = graph.node "aten":"as_strided.default" opset 1(%b) {arg_names = ["self"], size = array<i64: 4>, stride = array<i64: 1>, storage_offset = 8 : i64} : (tensor<4x4xf32>) -> tensor<4xf32>
  graph.node "my":"exchange.default" opset 1(%0, %1) {arg_names = ["x", "y"]} : (tensor<4xf32>, tensor<4xf32>) -> ()
  graph.node "my":"exchange.default" opset 1(%1, %2) {arg_names = ["x", "y"]} : (tensor<4xf32>, tensor<4xf32>) -> ()
  graph.yield %b : tensor<4x4xf32>
}

// -----

// Calls that run_decompositions made values of. Views of a base are told by slice, by strides, or are the base itself; sizes of the
// run keep their names. Results: what the operator returns, or None, then the bases.
// CHECK-LABEL: @decomposed
// CHECK: [[C:%.*]] = graph.node "aten":"clone.default" opset 1(%arg0)
// CHECK: [[V:%.*]] = graph.node "aten":"slice.Tensor" opset 1([[C]], %arg2) {arg_names = ["self", "end"], dim = 0 : i64, end = "end", start = 1 : i64}
// CHECK: [[R:%.*]]:2 = graph.node "my":"blend.default" opset 1(%arg1, [[V]]) {alpha = 5.000000e-01 : f64, arg_names = ["x", "y"]}
// CHECK: [[B:%.*]] = graph.node "aten":"slice_scatter.default" opset 1([[C]], [[R]]#1, %arg2)
// CHECK: [[S:%.*]] = graph.node "aten":"as_strided.default"{{.*}} size = array<i64: 4, 3>, storage_offset = 0 : i64, stride = array<i64: 1, 4>
// CHECK: graph.node "my":"bump.default" opset 1([[S]])
// CHECK: as_strided_scatter.default
// CHECK: graph.node "my":"bump.default"
// CHECK-NOT: higher_order
graph.func @decomposed(%a: tensor<3x4xf32>, %x: tensor<2x4xf32>, %n: tensor<i64>) -> (tensor<2x4xf32>, tensor<3x4xf32>) attributes {opsets = {aten = 1 : i64, higher_order = 1 : i64}} {
  %r:2 = graph.node "higher_order":"auto_functionalized_v2" opset 1(%x, %n, %a) {_all_bases.count = 1 : i64, _y_base_index = 0 : i64, _y_slice_dim = 0 : i64, _y_slice_end = "_y_slice_end", _y_slice_start = 1 : i64, alpha = 5.000000e-01 : f64, arg0 = "as_operator", arg0.value = "torch.ops.my.blend.default", arg_names = ["x", "_y_slice_end", "_all_bases.0"]} : (tensor<2x4xf32>, tensor<i64>, tensor<3x4xf32>) -> (tensor<2x4xf32>, tensor<3x4xf32>)
  %s:2 = graph.node "higher_order":"auto_functionalized_v2" opset 1(%r#1) {_all_bases.count = 1 : i64, _y_base_index = 0 : i64, _y_size = array<i64: 4, 3>, _y_storage_offset = 0 : i64, _y_stride = array<i64: 1, 4>, arg0 = "as_operator", arg0.value = "torch.ops.my.bump.default", arg_names = ["_all_bases.0"], n = 3 : i64} : (tensor<3x4xf32>) -> (none, tensor<3x4xf32>)
  %t:2 = graph.node "higher_order":"auto_functionalized_v2" opset 1(%s#1) {_all_bases.count = 1 : i64, _y_base_index = 0 : i64, arg0 = "as_operator", arg0.value = "torch.ops.my.bump.default", arg_names = ["_all_bases.0"], n = 3 : i64} : (tensor<3x4xf32>) -> (none, tensor<3x4xf32>)
  graph.yield %r#0, %t#1 : tensor<2x4xf32>, tensor<3x4xf32>
}

// -----

// A view by strides must be constant.
// CHECK-LABEL: @decomposed_open
// CHECK: "aten":"as_strided.default"{{.*}}graph.refused = "of sizes that only the run knows, by which run_decompositions wrote a view, is not supported; compile the program that was not decomposed"
graph.func @decomposed_open(%a: tensor<?x4xf32>, %n: tensor<i64>) -> tensor<?x4xf32> attributes {opsets = {aten = 1 : i64, higher_order = 1 : i64}} {
  %s:2 = graph.node "higher_order":"auto_functionalized_v2" opset 1(%n, %a) {_all_bases.count = 1 : i64, _y_base_index = 0 : i64, _y_size = [4 : i64, "_y_size.1"], _y_storage_offset = 0 : i64, _y_stride = array<i64: 1, 4>, arg0 = "as_operator", arg0.value = "torch.ops.my.bump.default", arg_names = ["_y_size.1", "_all_bases.0"], n = 3 : i64} : (tensor<i64>, tensor<?x4xf32>) -> (none, tensor<?x4xf32>)
  graph.yield %s#1 : tensor<?x4xf32>
}

// -----

// The older form has the tensors that are written under their own names.
// CHECK-LABEL: @decomposed_before
// CHECK: [[C:%.*]] = graph.node "aten":"clone.default" opset 1(%arg0)
// CHECK: [[R:%.*]]:2 = graph.node "my":"blend.default" opset 1(%arg1, [[C]])
// CHECK: graph.yield [[R]]#0, [[R]]#1
graph.func @decomposed_before(%a: tensor<2x4xf32>, %x: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) attributes {opsets = {aten = 1 : i64, higher_order = 1 : i64}} {
  %r:2 = graph.node "higher_order":"auto_functionalized" opset 1(%x, %a) {arg0 = "as_operator", arg0.value = "torch.ops.my.blend.default", arg_names = ["x", "y"]} : (tensor<2x4xf32>, tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
  graph.yield %r#0, %r#1 : tensor<2x4xf32>, tensor<2x4xf32>
}
