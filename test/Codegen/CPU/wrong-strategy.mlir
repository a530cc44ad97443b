// A schedule whose strategy has no code for the region is refused in a sentence, wherever it came from.
// RUN: tc-opt %s --split-input-file --tc-lower-kernels=variants=x86-64-v3 -verify-diagnostics

// No convolution.
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{the strategy of schedule #kernel.cpu.winograd<tiles = 2> has no code for this region; tc-choose-schedule writes one that has, where there is none}}
  %r = kernel.region(%a = %x : tensor<4xf32>) -> (tensor<4xf32>) attributes {schedule = #kernel.cpu.winograd<tiles = 2>} {
    %0 = prim.add %a, %a : tensor<4xf32>
    kernel.yield %0 : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// An output that does not depend on the product: nobody would write it.
func.func @main(%x: tensor<4x8xf32>, %y: tensor<8x16xf32>) -> (tensor<4x16xf32>, tensor<4x8xf32>) {
  // expected-error @+1 {{has no code for this region}}
  %r:2 = kernel.region(%a = %x : tensor<4x8xf32>, %b = %y : tensor<8x16xf32>) -> (tensor<4x16xf32>, tensor<4x8xf32>) attributes {schedule = #kernel.cpu.contract<tileM = 4, tileN = 16, rows256 = 4, cols256 = 16, rows512 = 4, cols512 = 16>} {
    %0 = prim.dot_general %a, %b batch [] x [] contract [1] x [0] : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
    %1 = prim.neg %a : tensor<4x8xf32>
    kernel.yield %0, %1 : tensor<4x16xf32>, tensor<4x8xf32>
  }
  return %r#0, %r#1 : tensor<4x16xf32>, tensor<4x8xf32>
}

// -----

// A reduction of rows: neighbours would be added to neighbours.
func.func @main(%x: tensor<4x64xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{has no code for this region}}
  %r = kernel.region(%a = %x : tensor<4x64xf32>) -> (tensor<4xf32>) attributes {schedule = #kernel.cpu.column_reduce<columns = 64>} {
    %0 = prim.reduce sum %a [1] : tensor<4x64xf32> -> tensor<4xf32>
    kernel.yield %0 : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
