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
  host.variant @a device "cpu" cpu "x86-64-v3" features "" {
  }
  // expected-error @+1 {{redefinition of symbol named 'a'}}
  host.variant @a device "cpu" cpu "x86-64-v3" features "" {
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
