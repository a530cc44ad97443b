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
