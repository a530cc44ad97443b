// What the verifier of kernel.region refuses.
// RUN: tc-opt %s --split-input-file --verify-diagnostics

func.func @yield(%x: tensor<4xf32>) {
  // expected-error @+1 {{kernel.yield differs from the results}}
  %0 = kernel.region(%a = %x : tensor<4xf32>) -> (tensor<4xf32>) {
    %1 = prim.reduce sum %a [0] : tensor<4xf32> -> tensor<f32>
    kernel.yield %1 : tensor<f32>
  }
  return
}

// -----

func.func @arguments(%x: tensor<4xf32>) {
  // expected-error @+1 {{block arguments differ from the inputs}}
  %0 = "kernel.region"(%x) ({
  ^bb0(%a: tensor<5xf32>):
    "kernel.yield"(%a) : (tensor<5xf32>) -> ()
  }) : (tensor<4xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @isolated(%x: tensor<4xf32>) {
  // expected-note @+1 {{required by region isolation constraints}}
  %0 = kernel.region() -> (tensor<4xf32>) {
    // expected-error @+1 {{using value defined outside the region}}
    %1 = prim.exp %x : tensor<4xf32>
    kernel.yield %1 : tensor<4xf32>
  }
  return
}

// -----

func.func @parent(%x: tensor<4xf32>) {
  // expected-error @+1 {{expects parent op 'kernel.region'}}
  kernel.yield %x : tensor<4xf32>
}

// -----

// expected-error @+1 {{a case needs sizes or a machine}}
module attributes {x = #kernel.case<schedule = #kernel.cpu.loops<lanes = true>>} {}

// -----

#of_dims = affine_set<(d0) : (d0 >= 0)>
// expected-error @+1 {{the sizes of a case are over symbols, not dims}}
module attributes {x = #kernel.case<sizes = #of_dims, schedule = #kernel.cpu.loops<lanes = true>>} {}

// -----

// C1
#all = affine_set<()[s0] : (s0 >= 0)>
func.func @cases_alone(%x: tensor<4xf32>) {
  // expected-error @+1 {{has cases, but no schedule for all else}}
  %0 = kernel.region(%a = %x : tensor<4xf32>) -> (tensor<4xf32>) attributes {cases = [#kernel.case<sizes = #all, schedule = #kernel.cpu.loops<lanes = true>>]} {
    %1 = prim.exp %a : tensor<4xf32>
    kernel.yield %1 : tensor<4xf32>
  }
  return
}
