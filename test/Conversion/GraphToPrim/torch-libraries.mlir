// Operators of torchvision and transformers are those of ai.onnx, or products of matrices, in other words.
// RUN: not tc-opt %s --split-input-file --tc-convert-graph-to-prim 2>&1 | FileCheck %s
// RUN: not tc-opt %s --split-input-file --tc-convert-graph-to-prim 2>/dev/null | FileCheck %s --check-prefix=IR

// IR-LABEL: func.func @boxes
// IR: prim.host_call "non_max_suppression"
graph.func @boxes(%x: tensor<9x4xf32> {graph.name = "x"}, %s: tensor<9xf32> {graph.name = "s"}) -> (!tc.unknown) attributes {opsets = {torchvision = 1 : i64}} {
  %y = graph.node "torchvision":"nms.default" opset 1(%x, %s) {arg_names = ["dets", "scores"], iou_threshold = 0.5} : (tensor<9x4xf32>, tensor<9xf32>) -> !tc.unknown loc("boxes")
  graph.yield %y : !tc.unknown
}

// -----

// CHECK: node "regions": torchvision.roi_align.default (opset 1): needs regions of 5 numbers (4 against 5)
graph.func @regions(%x: tensor<1x3x8x8xf32> {graph.name = "x"}, %r: tensor<9x4xf32> {graph.name = "r"}) -> (!tc.unknown) attributes {opsets = {torchvision = 1 : i64}} {
  %y = graph.node "torchvision":"roi_align.default" opset 1(%x, %r) {arg_names = ["input", "rois"], pooled_height = 2 : i64, pooled_width = 2 : i64, spatial_scale = 1.0, sampling_ratio = 2 : i64, aligned = true} : (tensor<1x3x8x8xf32>, tensor<9x4xf32>) -> !tc.unknown loc("regions")
  graph.yield %y : !tc.unknown
}

// -----

// Rows of each group, as many as the run knows, and zeros behind the last group.
// IR-LABEL: func.func @groups
// IR-COUNT-2: prim.dot_general
// IR: prim.concat
// IR: prim.pad
graph.func @groups(%x: tensor<7x4xf32> {graph.name = "x"}, %w: tensor<2x4x5xf32> {graph.name = "w"}, %o: tensor<2xi32> {graph.name = "o"}) -> (tensor<7x5xf32>) attributes {opsets = {transformers = 1 : i64}} {
  %y = graph.node "transformers":"grouped_mm_fallback.default" opset 1(%x, %w, %o) {arg_names = ["input", "weight", "offs"]} : (tensor<7x4xf32>, tensor<2x4x5xf32>, tensor<2xi32>) -> tensor<7x5xf32> loc("groups")
  graph.yield %y : tensor<7x5xf32>
}
