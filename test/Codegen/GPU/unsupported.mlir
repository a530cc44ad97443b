// What no generator of a GPU takes is refused in a sentence that does not speak of CPUs.
// RUN: tc-opt %s --tc-choose-schedule=device=cuda --tc-lower-kernels=variants=sm_90 -verify-diagnostics

func.func @main(%x: tensor<1x8x1x1xf32>) -> tensor<1x8x1x1xf32> {
  // expected-error @+1 {{no code generator of this target takes prim.fft inside a fused region}}
  %r = kernel.region(%a = %x : tensor<1x8x1x1xf32>) -> (tensor<1x8x1x1xf32>) {
    %d = prim.fft %a length affine_map<() -> (8)> : tensor<1x8x1x1xf32> -> tensor<1x8x1x1xf32>
    kernel.yield %d : tensor<1x8x1x1xf32>
  }
  return %r : tensor<1x8x1x1xf32>
}
