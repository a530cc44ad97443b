// Proves: lengths and norms of PyTorch's transforms; complex numbers are their parts; what can't be is refused.
// RUN: not tc-opt %s -tc-convert-graph-to-prim -split-input-file 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=ERROR --input-file=%t

// The half of a spectrum of unknown length; the norm "ortho" divides by the root.
// CHECK: affine_map<()[s0] -> (s0 floordiv 2 + 1)>
// CHECK-LABEL: func.func @rfft
// CHECK: prim.rsqrt
// CHECK: prim.fft %{{.*}} length
graph.func @rfft(%x: tensor<?xf32> {graph.name = "x"}) -> tensor<?xcomplex<f32>> attributes {opsets = {aten = 10 : i64}} {
  %y = graph.node "aten":"fft_rfft.default" opset 10(%x) {arg_names = ["self"], norm = "ortho"} : (tensor<?xf32>) -> tensor<?xcomplex<f32>>
  graph.yield %y : tensor<?xcomplex<f32>>
}

// -----

// CHECK-LABEL: func.func @irfft
// CHECK: prim.fft inverse half
graph.func @irfft(%x: tensor<3x5xcomplex<f32>> {graph.name = "x"}) -> tensor<3x8xf32> attributes {opsets = {aten = 10 : i64}} {
  %y = graph.node "aten":"fft_irfft.default" opset 10(%x) {arg_names = ["self"]} : (tensor<3x5xcomplex<f32>>) -> tensor<3x8xf32>
  graph.yield %y : tensor<3x8xf32>
}

// -----

// ERROR: fft_rfft.default (opset 10): takes real numbers, but got complex ones
graph.func @of_complex(%x: tensor<4xcomplex<f32>> {graph.name = "x"}) -> !tc.unknown attributes {opsets = {aten = 10 : i64}} {
  %y = graph.node "aten":"fft_rfft.default" opset 10(%x) {arg_names = ["self"]} : (tensor<4xcomplex<f32>>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// ERROR: fft_fft.default (opset 10): transforms 0 elements; it needs 1 or more
graph.func @nothing(%x: tensor<4xf32> {graph.name = "x"}) -> !tc.unknown attributes {opsets = {aten = 10 : i64}} {
  %y = graph.node "aten":"fft_fft.default" opset 10(%x) {arg_names = ["self"], n = 0 : i64} : (tensor<4xf32>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// ERROR: fft_fft.default (opset 10): norm is "loud"; it may be "backward", "ortho" or "forward"
graph.func @norm(%x: tensor<4xf32> {graph.name = "x"}) -> !tc.unknown attributes {opsets = {aten = 10 : i64}} {
  %y = graph.node "aten":"fft_fft.default" opset 10(%x) {arg_names = ["self"], norm = "loud"} : (tensor<4xf32>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// ERROR: stft.default (opset 10): hop_length is 0; it must be 1 or more
graph.func @hop(%x: tensor<40xf32> {graph.name = "x"}) -> !tc.unknown attributes {opsets = {aten = 10 : i64}} {
  %y = graph.node "aten":"stft.default" opset 10(%x) {arg_names = ["self"], n_fft = 8 : i64, hop_length = 0 : i64} : (tensor<40xf32>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// ERROR: istft.default (opset 10): takes complex numbers, but got tensor<5x9xf32>
graph.func @real(%x: tensor<5x9xf32> {graph.name = "x"}) -> !tc.unknown attributes {opsets = {aten = 10 : i64}} {
  %y = graph.node "aten":"istft.default" opset 10(%x) {arg_names = ["self"], n_fft = 8 : i64} : (tensor<5x9xf32>) -> !tc.unknown
  graph.yield %y : !tc.unknown
}

// -----

// A window of Kaiser is the same for beta and -beta.
// CHECK-LABEL: func.func @kaiser
// CHECK: prim.constant dense<[0.43867{{[0-9]+}}, 1.000000e+00, 0.43867{{[0-9]+}}]> : tensor<3xf64>
graph.func @kaiser() -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %w = graph.node "aten":"kaiser_window.beta" opset 1() {arg_names = [], window_length = 3 : i64, periodic = false, beta = -2.000000e+00 : f64} : () -> !tc.unknown loc("kaiser")
  graph.yield %w : !tc.unknown
}

// -----

// ERROR: node "steep": aten.kaiser_window.beta (opset 1){{.*}}with beta = 20000.00 is not supported; it may be -700 to 700
graph.func @steep() -> (!tc.unknown) attributes {opsets = {aten = 1 : i64}} {
  %w = graph.node "aten":"kaiser_window.beta" opset 1() {arg_names = [], window_length = 3 : i64, periodic = false, beta = 2.000000e+04 : f64} : () -> !tc.unknown loc("steep")
  graph.yield %w : !tc.unknown
}
