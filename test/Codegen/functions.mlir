// Proves: functions share a kernel where its sizes have the same ranges in both, as what is emitted may rely on them.
// RUN: tc-compile %s --cpu x86-64-v3 --compile-to=kernel -o - | FileCheck %s

!n = tensor<?x8xf32, #prim.dims<affine_map<()[s0] -> (s0, 8)>>>

// CHECK-LABEL: func.func @first
func.func @first(%x: !n) -> !n attributes {prim.symbols = [#prim.symbol<"n", 1, 64, 1>]} {
  // CHECK: host.launch @k0_exp
  %0 = prim.exp %x : !n
  return %0 : !n
}
// CHECK-LABEL: func.func @same
func.func @same(%x: !n) -> !n attributes {prim.symbols = [#prim.symbol<"n", 1, 64, 1>]} {
  // CHECK: host.launch @k0_exp
  %0 = prim.exp %x : !n
  return %0 : !n
}
// CHECK-LABEL: func.func @other
func.func @other(%x: !n) -> !n attributes {prim.symbols = [#prim.symbol<"n", 0, 8, 1>]} {
  // CHECK: host.launch @k1_exp
  %0 = prim.exp %x : !n
  return %0 : !n
}
// No sizes, no ranges.
// CHECK-LABEL: func.func @fixed_0
func.func @fixed_0(%x: tensor<300xf32>) -> tensor<300xf32> attributes {prim.symbols = []} {
  // CHECK: host.launch @k2_tanh
  %0 = prim.tanh %x : tensor<300xf32>
  return %0 : tensor<300xf32>
}
// CHECK-LABEL: func.func @fixed_1
func.func @fixed_1(%x: tensor<300xf32>, %y: !n) -> tensor<300xf32> attributes {prim.symbols = [#prim.symbol<"n", 0, 8, 1>]} {
  // CHECK: host.launch @k2_tanh
  %0 = prim.tanh %x : tensor<300xf32>
  return %0 : tensor<300xf32>
}
