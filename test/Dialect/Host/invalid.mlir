// What the host dialect refuses.
// RUN: tc-opt %s --split-input-file --verify-diagnostics

func.func @copy(%x: tensor<4xf32>) {
  // expected-error @+1 {{failed to verify that all of {input, result} have same type}}
  %0 = "host.copy"(%x) : (tensor<4xf32>) -> tensor<5xf32>
  return
}

// -----

module {
  // expected-note @+1 {{see existing symbol definition here}}
  host.variant @a machines [#machine.cpu<name = "x86-64-v3", cpu = "x86-64-v3">] {
  }
  // expected-error @+1 {{redefinition of symbol named 'a'}}
  host.variant @a machines [#machine.cpu<name = "x86-64-v3", cpu = "x86-64-v3">] {
  }
}

// -----

func.func @group_depends(%x: tensor<4xf32>) {
  %0 = host.launch @a(%x) symbols [] tasks affine_map<() -> (1)> grain affine_map<() -> (1)> {group = 0} : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error @+1 {{reads what a launch of its group computes}}
  %1 = host.launch @b(%0) symbols [] tasks affine_map<() -> (1)> grain affine_map<() -> (1)> {group = 0} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @group_on_device(%x: tensor<4xf32>) {
  // expected-error @+1 {{of a device is part of a group; groups are of CPU launches}}
  %0 = host.launch @a(%x) symbols [] tasks affine_map<() -> (1)> grain affine_map<() -> (1)> {device = {}, group = 0} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// C3
func.func @tied_to_an_input(%x: tensor<4xf32>) {
  // expected-error @+1 {{ties an output to what is no result of a launch of the same type}}
  %0 = host.launch @a(%x) symbols [] tasks affine_map<() -> (1)> grain affine_map<() -> (1)> tied [0, 0] : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @steps_on_device(%x: tensor<4xf32>) {
  // expected-error @+1 {{of a device has steps; launches in steps are of the CPU}}
  %0 = host.launch @a(%x) symbols [] tasks affine_map<() -> (1)> grain affine_map<() -> (1)> steps affine_map<() -> (3)> {device = {}} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// C3
func.func @two_sizes(%x: tensor<4xf32>) {
  // expected-error @+1 {{needs one size for its steps}}
  %0 = host.launch @a(%x) symbols [] tasks affine_map<() -> (1)> grain affine_map<() -> (1)> steps affine_map<() -> (3, 4)> : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// C4
func.func @group_of_other_steps(%x: tensor<4xf32>) {
  %0 = host.launch @a(%x) symbols [] tasks affine_map<() -> (1)> grain affine_map<() -> (1)> steps affine_map<() -> (3)> {group = 0} : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error @+1 {{has other steps than its group}}
  %1 = host.launch @b(%x) symbols [] tasks affine_map<() -> (1)> grain affine_map<() -> (1)> {group = 0} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----
// expected-error @below {{needs a machine}}
host.variant @a machines [] {
}

// -----
// expected-error @below {{is for machines of several devices}}
host.variant @a machines [#machine.gpu<name = "sm_90">, #machine.cpu<name = "x86-64-v3", cpu = "x86-64-v3">] {
}

// -----
// expected-error @below {{is for several CPUs; each has a variant of its own}}
host.binary @a machines [#machine.cpu<name = "a", cpu = "x86-64-v3">, #machine.cpu<name = "b", cpu = "x86-64-v3">] requires 3 object dense<[127, 69]> : tensor<2xi8>

// -----
// expected-error @below {{constraint: machines}}
host.variant @a machines ["x86-64-v3"] {
}

// -----

// expected-error @+1 {{a guard needs sizes or a machine}}
module attributes {x = #host.guard<>} {}

// -----

#of_dims = affine_set<(d0) : (d0 >= 0)>
// expected-error @+1 {{the sizes of a guard are over symbols, not dims}}
module attributes {x = #host.guard<sizes = #of_dims>} {}

// -----

// C1
func.func @choice_without_guard(%x: tensor<4xf32>) {
  // expected-error @+1 {{needs a guard for each region but the last}}
  %0 = host.choose [] : tensor<4xf32> {
    %a = host.launch @a(%x) symbols [] tasks affine_map<() -> (1)> grain affine_map<() -> (1)> : (tensor<4xf32>) -> tensor<4xf32>
    host.yield %a : tensor<4xf32>
  }, {
    %a = host.launch @b(%x) symbols [] tasks affine_map<() -> (1)> grain affine_map<() -> (1)> : (tensor<4xf32>) -> tensor<4xf32>
    host.yield %a : tensor<4xf32>
  }
  return
}

// -----

// C2
func.func @choice_of_other_type(%x: tensor<4xf32>) {
  // expected-error @+1 {{has a region that yields other types than the results'}}
  %0 = host.choose [] : tensor<4xf32> {
    host.yield
  }
  return
}

// -----

// C2
func.func @choice_of_outer_value(%x: tensor<4xf32>) {
  // expected-error @+1 {{has a region that yields what is not a launch's in it, or yields it twice}}
  %0 = host.choose [] : tensor<4xf32> {
    host.yield %x : tensor<4xf32>
  }
  return
}
