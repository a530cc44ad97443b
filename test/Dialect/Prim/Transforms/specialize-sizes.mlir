// Proves: listed sizes get bodies of their own, in which symbols are numbers; the host chooses by the sizes alone.
// RUN: tc-opt %s --tc-specialize-sizes --split-input-file --verify-diagnostics | FileCheck %s

// CHECK: #[[FOUR:.*]] = affine_map<() -> (8, 4)>
// CHECK: #set = affine_set<()[s0, s1] : (s0 - 1 == 0, s1 - 2 == 0)>
// CHECK: #set1 = affine_set<()[s0, s1] : (s0 - 8 == 0, s1 - 2 == 0)>
// CHECK-LABEL: func.func @products(
// CHECK-SAME: prim.specialized = [array<i64: 0, 8, 0, 1, 2, 0>, array<i64: 0, 1, 0, 1, 2, 0>]
// CHECK-NOT: prim.listed_sizes
// CHECK: %[[R:.*]]:2 = prim.if
// CHECK: %[[X:.*]] = prim.reshape %arg0 : {{.*}} -> tensor<8x2xf32>
// CHECK: %[[S:.*]] = prim.sizes #[[FOUR]] : tensor<2xi64>
// CHECK: %[[T:.*]] = prim.transpose %[[X]] [1, 0] : tensor<8x2xf32> -> tensor<2x8xf32>
// CHECK: prim.add %[[T]], %[[T]] : tensor<2x8xf32>
// CHECK: prim.reshape {{.*}} : tensor<2x8xf32> -> tensor<?x?xf32
// CHECK: prim.yield
// CHECK: } else {
// CHECK: prim.if
// CHECK: prim.reshape %arg0 : {{.*}} -> tensor<1x2xf32>
// CHECK: } else {
// CHECK: prim.transpose %arg0 [1, 0] : tensor<?x?xf32
// CHECK: } {prim.when = #set}
// CHECK: } {prim.when = #set1}
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @products(%x: tensor<?x?xf32, #prim.dims<affine_map<()[s0, s1] -> (s0, s1)>>>) -> (tensor<?x?xf32, #prim.dims<affine_map<()[s0, s1] -> (s1, s0)>>>, tensor<2xi64>)
    attributes {prim.symbols = [#prim.symbol<"a", 0, 64, 1>, #prim.symbol<"b", 0, 64, 1>], prim.listed_sizes = [array<i64: 0, 8, 1>, array<i64: 1, 2>]} {
  %s = prim.sizes affine_map<()[s0, s1] -> (s0, s1 * 2)> : tensor<2xi64>
  %t = prim.transpose %x [1, 0] : tensor<?x?xf32, #prim.dims<affine_map<()[s0, s1] -> (s0, s1)>>> -> tensor<?x?xf32, #prim.dims<affine_map<()[s0, s1] -> (s1, s0)>>>
  %y = prim.add %t, %t : tensor<?x?xf32, #prim.dims<affine_map<()[s0, s1] -> (s1, s0)>>>
  return %y, %s : tensor<?x?xf32, #prim.dims<affine_map<()[s0, s1] -> (s1, s0)>>>, tensor<2xi64>
}

// -----

// States are written behind the choice.
// CHECK-LABEL: func.func @counts(
// CHECK: %[[R:.*]]:2 = prim.if
// CHECK-NOT: prim.write_state
// CHECK: } {prim.when
// CHECK: prim.write_state @n, %[[R]]#1
// CHECK-NEXT: return %[[R]]#0
prim.state @n : tensor<f32>
func.func @counts(%x: tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>) -> tensor<f32>
    attributes {prim.symbols = [#prim.symbol<"a", 0, 64, 1>], prim.listed_sizes = [array<i64: 0, 4>]} {
  %s = prim.reduce sum %x [0] : tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>> -> tensor<f32>
  %o = prim.read_state @n : tensor<f32>
  %n = prim.add %o, %s : tensor<f32>
  prim.write_state @n, %n : tensor<f32>
  return %s : tensor<f32>
}

// -----

// expected-warning @below {{--dim lists sizes, which get no code of their own: other sizes of the model depend on its data}}
func.func @data(%x: tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>, %n: tensor<i64>) -> tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>
    attributes {prim.symbols = [#prim.symbol<"a", 0, 64, 1>, #prim.symbol<"d", 0, 64, 1>], prim.listed_sizes = [array<i64: 0, 4>]} {
  prim.bind_symbol %n to 1 : tensor<i64>
  return %x : tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>
}

// -----

// expected-error @below {{--dim lists sizes with more than 64 combinations, each of which would be compiled; list fewer}}
func.func @many(%x: tensor<?x?xf32, #prim.dims<affine_map<()[s0, s1] -> (s0, s1)>>>) -> tensor<?x?xf32, #prim.dims<affine_map<()[s0, s1] -> (s0, s1)>>>
    attributes {prim.symbols = [#prim.symbol<"a", 0, 64, 1>, #prim.symbol<"b", 0, 64, 1>], prim.listed_sizes = [array<i64: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9>, array<i64: 1, 1, 2, 3, 4, 5, 6, 7, 8>]} {
  return %x : tensor<?x?xf32, #prim.dims<affine_map<()[s0, s1] -> (s0, s1)>>>
}
