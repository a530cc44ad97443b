// What no generator of a GPU takes is refused in a sentence that does not speak of CPUs.
// RUN: tc-opt %s --tc-choose-schedule=device=cuda --tc-lower-kernels=variants=sm_90 -verify-diagnostics

func.func @main(%x: tensor<2x3x4xf32>, %i: tensor<5x2xi64>, %u: tensor<5x4xf32>) -> tensor<2x3x4xf32> {
  // expected-error @+1 {{no code generator of this target takes prim.scatter_nd inside a fused region}}
  %r = kernel.region(%a = %x : tensor<2x3x4xf32>, %b = %i : tensor<5x2xi64>, %c = %u : tensor<5x4xf32>) -> (tensor<2x3x4xf32>) {
    %d = prim.scatter_nd %a[%b], %c kind sum : (tensor<2x3x4xf32>, tensor<5x2xi64>, tensor<5x4xf32>) -> tensor<2x3x4xf32>
    kernel.yield %d : tensor<2x3x4xf32>
  }
  return %r : tensor<2x3x4xf32>
}
