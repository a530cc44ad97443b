// Ranges of integer inputs, from all dims that they index; and guards in place of clamping.
// RUN: tc-opt %s --tc-infer-input-ranges | FileCheck %s
// RUN: tc-opt %s --tc-check-bounds --tc-verify-prim | FileCheck %s --check-prefix=GUARD

!ids = tensor<?xi64, #prim.dims<affine_map<()[s0] -> (s0)>>>
!rows = tensor<?x3xf32, #prim.dims<affine_map<()[s0] -> (s0, 3)>>>

// The smaller table decides; what is computed from an index is another number.
// CHECK-LABEL: func @lookups
// CHECK-SAME: tensor<11x3xf32>
// CHECK-SAME: {tc.range = array<i64: -7, 7>}
// GUARD-LABEL: func @lookups
// GUARD: prim.bind_symbol %{{.*}} to 1 {message = "node \22prim.gather\22: an index is outside of [-11, 11)"} : tensor<i64>
// GUARD: prim.gather
// GUARD: prim.bind_symbol %{{.*}} to 2 {message = "node \22small\22: an index is outside of [-7, 7)"}
// GUARD: prim.gather
func.func @lookups(%a: tensor<11x3xf32>, %b: tensor<7x3xf32>, %ids: !ids) -> (!rows, !rows) attributes {prim.symbols = [#prim.symbol<"n", 0, 64, 1>]} {
  %0 = prim.gather %a[%ids] axis = 0 : (tensor<11x3xf32>, !ids) -> !rows
  %1 = prim.gather %b[%ids] axis = 0 : (tensor<7x3xf32>, !ids) -> !rows loc("small")
  return %0, %1 : !rows, !rows
}

// Through conversions and views; one byte holds no more than 127; a dim that may be empty counts as 1.
// CHECK-LABEL: func @views
// CHECK-SAME: %{{.*}}: tensor<2x2xi8> {tc.range = array<i64: -128, 128>}
// CHECK-SAME: %{{.*}}: tensor<3xui8> {tc.range = array<i64: 0, 1>}
// CHECK-SAME: %{{.*}}: tensor<3xi32>)
func.func @views(%a: tensor<1000xf32>, %e: !ids, %i: tensor<2x2xi8>, %j: tensor<3xui8>, %k: tensor<3xi32>) -> (tensor<4xf32>, tensor<3xi64>, tensor<3xf32>) attributes {prim.symbols = [#prim.symbol<"n", 0, 64, 1>]} {
  %0 = prim.reshape %i : tensor<2x2xi8> -> tensor<4xi8>
  %1 = prim.convert %0 : tensor<4xi8> -> tensor<4xi64>
  %2 = prim.gather %a[%1] axis = 0 : (tensor<1000xf32>, tensor<4xi64>) -> tensor<4xf32>
  %3 = prim.convert %j : tensor<3xui8> -> tensor<3xi64>
  %4 = prim.gather %e[%3] axis = 0 : (!ids, tensor<3xi64>) -> tensor<3xi64>
  %5 = prim.add %k, %k : tensor<3xi32>
  %6 = prim.convert %5 : tensor<3xi32> -> tensor<3xi64>
  %7 = prim.gather %a[%6] axis = 0 : (tensor<1000xf32>, tensor<3xi64>) -> tensor<3xf32>
  return %2, %4, %7 : tensor<4xf32>, tensor<3xi64>, tensor<3xf32>
}

// Tuples of indices: each column has a dim of its own.
// CHECK-LABEL: func @tuples
// CHECK-SAME: tensor<5x2xi64> {tc.range = array<i64: -4, 4>}
// GUARD-LABEL: func @tuples
// GUARD: outside of [-9, 9)
// GUARD: outside of [-4, 4)
// GUARD: prim.gather_nd
func.func @tuples(%x: tensor<9x4xf32>, %i: tensor<5x2xi64>) -> tensor<5xf32> {
  %0 = prim.gather_nd %x[%i] batch_dims = 0 : (tensor<9x4xf32>, tensor<5x2xi64>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}
