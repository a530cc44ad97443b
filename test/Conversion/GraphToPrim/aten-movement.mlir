// Views, slices, splits, joins and pads of ATen with sizes that only the run knows, and what is refused. test/Torch compares numbers.
// RUN: not tc-opt %s --split-input-file --tc-convert-graph-to-prim 2>&1 | FileCheck %s
// RUN: not tc-opt %s --split-input-file --tc-convert-graph-to-prim 2>/dev/null | FileCheck %s --check-prefix=IR

// The last row of an unknown number; an index that only the run knows is one of a gather.
// IR: [[LAST:#map[0-9]*]] = affine_map<()[s0] -> (s0 - 1, 0)>
// IR-LABEL: func.func @select
// IR: prim.slice %arg0 from [[LAST]]
// IR: prim.gather %arg0[%arg1] axis = 0
graph.func @select(%x: tensor<?x4xf32> {graph.name = "x", graph.dims = ["n", ""]}, %i: tensor<i64> {graph.name = "i"}) -> (tensor<4xf32>, tensor<4xf32>) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"select.int" opset 1(%x) {arg_names = ["self"], dim = 0 : i64, index = -1 : i64} : (tensor<?x4xf32>) -> tensor<4xf32> loc("last")
  %z = graph.node "aten":"select.int" opset 1(%x, %i) {arg_names = ["self", "index"], dim = 0 : i64, index = "index"} : (tensor<?x4xf32>, tensor<i64>) -> tensor<4xf32> loc("any")
  graph.yield %y, %z : tensor<4xf32>, tensor<4xf32>
}

// -----

// As many parts as the model was exported with: a run that would need others is refused.
// IR-LABEL: func.func @chunk
// IR: prim.guard le {{.*}} "chunk.default needs as many parts as results"
// IR: prim.guard le {{.*}} "chunk.default needs as many parts as results"
graph.func @chunk(%x: tensor<?xf32> {graph.name = "x", graph.dims = ["n"]}) -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) attributes {opsets = {aten = 1 : i64}} {
  %y:3 = graph.node "aten":"chunk.default" opset 1(%x) {arg_names = ["self"], chunks = 3 : i64} : (tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) loc("chunk")
  graph.yield %y#0, %y#1, %y#2 : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
}

// -----

// The rank is that of the exported run.
// IR-LABEL: func.func @squeeze
// IR: message = "node \22squeeze\22: squeeze was compiled for sizes other than 1 in dim 0; fix the size by --dim or --shape, or export the model with this size"
graph.func @squeeze(%x: tensor<?x1xf32> {graph.name = "x", graph.dims = ["n", ""]}) -> (tensor<?xf32>) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"squeeze.default" opset 1(%x) {arg_names = ["self"]} : (tensor<?x1xf32>) -> tensor<?xf32> loc("squeeze")
  graph.yield %y : tensor<?xf32>
}

// -----

// A vector of no elements beside matrices is left out; integers join floats as floats.
// IR-LABEL: func.func @cat
// IR: %[[I:.*]] = prim.convert %arg1
// IR: prim.concat %arg0, %[[I]] axis = 1
graph.func @cat(%x: tensor<2x3xf32> {graph.name = "x"}, %y: tensor<2x1xi64> {graph.name = "y"}, %e: tensor<0xf32> {graph.name = "e"}) -> (tensor<2x4xf32>) attributes {opsets = {aten = 1 : i64}} {
  %z = graph.node "aten":"cat.default" opset 1(%x, %e, %y) {arg_names = ["tensors.0", "tensors.1", "tensors.2"], tensors.count = 3 : i64, dim = 1 : i64} : (tensor<2x3xf32>, tensor<0xf32>, tensor<2x1xi64>) -> tensor<2x4xf32> loc("cat")
  graph.yield %z : tensor<2x4xf32>
}

// -----

// Parts between indices that are data, cut to the dim.
// IR-LABEL: func.func @parts
// IR: prim.bind_symbol {{.*}} to 0
// IR: prim.slice
// IR: prim.slice
graph.func @parts(%x: tensor<9xf32> {graph.name = "x"}, %i: tensor<1xi64> {graph.name = "i"}) -> (tensor<?xf32>, tensor<?xf32>) attributes {opsets = {aten = 1 : i64}} {
  %y:2 = graph.node "aten":"tensor_split.tensor_indices_or_sections" opset 1(%x, %i) {arg_names = ["self", "tensor_indices_or_sections"]} : (tensor<9xf32>, tensor<1xi64>) -> (tensor<?xf32>, tensor<?xf32>) loc("parts")
  graph.yield %y#0, %y#1 : tensor<?xf32>, tensor<?xf32>
}

// -----

// CHECK: node "index": aten.select.int (opset 1): index 4 is out of range for dim 0 of tensor<4xf32>
graph.func @index(%x: tensor<4xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"select.int" opset 1(%x) {arg_names = ["self"], dim = 0 : i64, index = 4 : i64} : (tensor<4xf32>) -> !tc.unknown loc("index")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "step": aten.slice.Tensor (opset 1): argument "step" is 0; it must be 1 or more
graph.func @step(%x: tensor<4xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"slice.Tensor" opset 1(%x) {arg_names = ["self"], step = 0 : i64} : (tensor<4xf32>) -> !tc.unknown loc("step")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "narrow": aten.narrow.default (opset 1): needs a part that lies inside of dim 0 (5 against 4)
graph.func @narrow(%x: tensor<4xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"narrow.default" opset 1(%x) {arg_names = ["self"], dim = 0 : i64, start = 2 : i64, length = 3 : i64} : (tensor<4xf32>) -> !tc.unknown loc("narrow")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "split": aten.split_with_sizes.default (opset 1): needs parts that add up to dim 0 (3 against 4)
graph.func @split(%x: tensor<4xf32> {graph.name = "x"}) -> (!tc.unknown, !tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y:2 = graph.node "aten":"split_with_sizes.default" opset 1(%x) {arg_names = ["self"], split_sizes = array<i64: 1, 2>} : (tensor<4xf32>) -> (!tc.unknown, !tc.unknown) loc("split")
  graph.yield %y#0, %y#1 : !tc.unknown, !tc.unknown
}

// -----

// CHECK: node "expand": aten.expand.default (opset 1): argument "size" leaves dim 0 open, which the operand does not have
graph.func @expand(%x: tensor<4xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"expand.default" opset 1(%x) {arg_names = ["self"], size = array<i64: -1, 4>} : (tensor<4xf32>) -> !tc.unknown loc("expand")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "bits": aten.view.dtype (opset 1) of f32 as i64 is not supported; supported are element types of the same number of bits that are neither bool nor complex
graph.func @bits(%x: tensor<4xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"view.dtype" opset 1(%x) {arg_names = ["self"], dtype = i64} : (tensor<4xf32>) -> !tc.unknown loc("bits")
  graph.yield %y : !tc.unknown
}

// -----

// What lies around a tensor is not known, nor how its elements lie if it is a part of another one.
// CHECK: node "beyond": aten.as_strided.default (opset 1) of elements beyond the operand tensor<4xf32> is not supported; pass the tensor that it is a part of
graph.func @beyond(%x: tensor<4xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"as_strided.default" opset 1(%x) {arg_names = ["self"], size = array<i64: 2, 2>, stride = array<i64: 3, 1>, storage_offset = 1 : i64} : (tensor<4xf32>) -> !tc.unknown loc("beyond")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "part": aten.as_strided.default (opset 1) of a tensor whose elements are not in row-major order is not supported
graph.func @part(%x: tensor<4xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"as_strided.default" opset 1(%x) {arg_names = ["self"], size = array<i64: 2>, stride = array<i64: 1>, self.strided} : (tensor<4xf32>) -> !tc.unknown loc("part")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "before": aten.as_strided.default (opset 1) of elements before the operand
graph.func @before(%x: tensor<4xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"as_strided.default" opset 1(%x) {arg_names = ["self"], size = array<i64: 2>, stride = array<i64: 1>, storage_offset = 0 : i64, self.storage_offset = 2 : i64} : (tensor<4xf32>) -> !tc.unknown loc("before")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "reflect": aten.pad.default (opset 1): needs pads that are smaller than the operand in dim 1 (4 against 3)
graph.func @reflect(%x: tensor<2x3xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"pad.default" opset 1(%x) {arg_names = ["self"], pad = array<i64: 3, 0>, mode = "reflect"} : (tensor<2x3xf32>) -> !tc.unknown loc("reflect")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "mode": aten.pad.default (opset 1): argument "mode" is "mirror"; it may be "constant", "reflect", "replicate" or "circular"
graph.func @mode(%x: tensor<2x3xf32> {graph.name = "x"}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"pad.default" opset 1(%x) {arg_names = ["self"], pad = array<i64: 1, 0>, mode = "mirror"} : (tensor<2x3xf32>) -> !tc.unknown loc("mode")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "combinations": aten.combinations.default (opset 1) of a number of elements that only the run knows is not supported; fix it by --dim
graph.func @combinations(%x: tensor<?xf32> {graph.name = "x", graph.dims = ["n"]}) -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %y = graph.node "aten":"combinations.default" opset 1(%x) {arg_names = ["self"]} : (tensor<?xf32>) -> !tc.unknown loc("combinations")
  graph.yield %y : !tc.unknown
}
