// Proves: a body per bucket, on tensors padded to it, in which what crosses the padding is masked; what cannot be is computed on exact sizes.
// RUN: tc-opt %s --tc-specialize-sizes --split-input-file --verify-diagnostics | FileCheck %s

#s = affine_map<()[s0] -> (s0)>
#s3 = affine_map<()[s0] -> (s0, 3)>
// CHECK: #[[S:.*]] = affine_map<()[s0] -> (s0)>
// CHECK: #set = affine_set<()[s0] : (-s0 + 4 >= 0)>
// CHECK-LABEL: func.func @reduce(
// CHECK-SAME: prim.specialized = [array<i64: 0, 4, 1>, array<i64: 0, 9, 1>]
// CHECK-NOT: prim.buckets
// CHECK: prim.if
// CHECK: %[[X:.*]] = prim.pad %arg0, {{.*}} -> tensor<4x3xf32>
// CHECK: %[[E:.*]] = prim.exp %[[X]] : tensor<4x3xf32>
// CHECK: %[[Z:.*]] = prim.splat 0.000000e+00 : f32
// CHECK: prim.sizes #[[S]] : tensor<i64>
// CHECK: %[[W:.*]] = prim.compare lt {{.*}} -> tensor<4xi1>
// CHECK: %[[M:.*]] = prim.broadcast %[[W]] [0] {{.*}} -> tensor<4x3xi1>
// CHECK: %[[T:.*]] = prim.select %[[M]], %[[E]], %[[Z]]
// CHECK: %[[R:.*]] = prim.reduce sum %[[T]] [0] : tensor<4x3xf32> -> tensor<3xf32>
// CHECK: %[[C:.*]] = prim.slice %[[E]] from {{.*}} : tensor<4x3xf32> -> tensor<?x3xf32
// CHECK: prim.yield %[[R]], %[[C]]
// CHECK: } else {
// CHECK-NOT: prim.if
// CHECK: prim.pad %arg0, {{.*}} -> tensor<9x3xf32>
// CHECK: prim.reduce sum {{.*}} : tensor<9x3xf32> -> tensor<3xf32>
// CHECK: prim.yield
// CHECK-NEXT: } {prim.when = #set}
// CHECK-NEXT: return
func.func @reduce(%x: tensor<?x3xf32, #prim.dims<#s3>>) -> (tensor<3xf32>, tensor<?x3xf32, #prim.dims<#s3>>)
    attributes {prim.symbols = [#prim.symbol<"s", 0, 9, 1>], prim.buckets = [array<i64: 0, 4, 9>]} {
  %e = prim.exp %x : tensor<?x3xf32, #prim.dims<#s3>>
  %r = prim.reduce sum %e [0] : tensor<?x3xf32, #prim.dims<#s3>> -> tensor<3xf32>
  return %r, %e : tensor<3xf32>, tensor<?x3xf32, #prim.dims<#s3>>
}

// -----

// One bucket needs no choice; sums over what is not padded, and of zeros, no mask.
#s3 = affine_map<()[s0] -> (s0, 3)>
#s = affine_map<()[s0] -> (s0)>
// CHECK-LABEL: func.func @one(
// CHECK-NOT: prim.if
// CHECK-NOT: prim.select
// CHECK: prim.reduce sum {{.*}} [1] : tensor<8x3xf32> -> tensor<8xf32>
// CHECK: prim.dot_general {{.*}} : (tensor<8x3xf32>, tensor<8x3xf32>) -> tensor<3x3xf32>
// CHECK: prim.slice {{.*}} : tensor<8xf32> -> tensor<?xf32
func.func @one(%x: tensor<?x3xf32, #prim.dims<#s3>>) -> (tensor<?xf32, #prim.dims<#s>>, tensor<3x3xf32>)
    attributes {prim.symbols = [#prim.symbol<"s", 0, 8, 1>], prim.buckets = [array<i64: 0, 8>]} {
  %r = prim.reduce sum %x [1] : tensor<?x3xf32, #prim.dims<#s3>> -> tensor<?xf32, #prim.dims<#s>>
  %p = prim.dot_general %x, %x batch [] x [] contract [0] x [0] : (tensor<?x3xf32, #prim.dims<#s3>>, tensor<?x3xf32, #prim.dims<#s3>>) -> tensor<3x3xf32>
  return %r, %p : tensor<?xf32, #prim.dims<#s>>, tensor<3x3xf32>
}

// -----

// Attention whose keys are padded: keys and values are zeros there, and hidden by its mask.
#q = affine_map<()[s0] -> (2, s0, 8)>
!q = tensor<2x?x8xf32, #prim.dims<#q>>
// CHECK-LABEL: func.func @attention(
// CHECK: %[[X:.*]] = prim.pad %arg0
// CHECK: %[[E:.*]] = prim.exp %[[X]]
// CHECK: %[[K:.*]] = prim.select {{.*}}, %[[E]]
// CHECK: %[[M:.*]] = prim.broadcast {{.*}} [2] : tensor<16xf32> -> tensor<2x16x16xf32>
// CHECK: prim.attention %[[E]], %[[K]], %[[X]] mask %[[M]] scale 1.000000e+00 :
func.func @attention(%x: !q) -> !q
    attributes {prim.symbols = [#prim.symbol<"s", 0, 16, 1>], prim.buckets = [array<i64: 0, 16>]} {
  %e = prim.exp %x : !q
  %a = prim.attention %e, %e, %x scale 1.0 : (!q, !q, !q) -> !q
  return %a : !q
}

// -----

// Merged behind another dim, what is padded would lie between rows.
#s3 = affine_map<()[s0] -> (2, s0)>
#m = affine_map<()[s0] -> (s0 * 2)>
// CHECK-LABEL: func.func @merged(
// CHECK: prim.reshape {{.*}} : tensor<2x?xf32, #{{.*}}> -> tensor<?xf32
// expected-warning @below {{--dim gives buckets; not padded, as padding would change results: arg_reduce of "last", reshape}}
func.func @merged(%x: tensor<2x?xf32, #prim.dims<#s3>>) -> (tensor<?xf32, #prim.dims<#m>>, tensor<2xi64>)
    attributes {prim.symbols = [#prim.symbol<"s", 0, 8, 1>], prim.buckets = [array<i64: 0, 8>]} {
  %r = prim.reshape %x : tensor<2x?xf32, #prim.dims<#s3>> -> tensor<?xf32, #prim.dims<#m>>
  %c = prim.arg_reduce max %x axis = 1 last : tensor<2x?xf32, #prim.dims<#s3>> -> tensor<2xi64> loc("last")
  return %r, %c : tensor<?xf32, #prim.dims<#m>>, tensor<2xi64>
}

// -----

// With listed sizes of another dim, each of these has all buckets, and then other sizes have.
#sb = affine_map<()[s0, s1] -> (s0, s1)>
// CHECK-LABEL: func.func @listed(
// CHECK-SAME: prim.specialized = [array<i64: 1, 3, 0, 0, 4, 1>, array<i64: 1, 3, 0, 0, 8, 1>, array<i64: 0, 4, 1>, array<i64: 0, 8, 1>]
func.func @listed(%x: tensor<?x?xf32, #prim.dims<#sb>>) -> tensor<?x?xf32, #prim.dims<#sb>>
    attributes {prim.symbols = [#prim.symbol<"s", 0, 8, 1>, #prim.symbol<"b", 0, 9, 1>], prim.buckets = [array<i64: 0, 4, 8>], prim.listed_sizes = [array<i64: 1, 3>]} {
  %e = prim.exp %x : tensor<?x?xf32, #prim.dims<#sb>>
  return %e : tensor<?x?xf32, #prim.dims<#sb>>
}

// -----

// What stands behind an input is put over its padding.
#s = affine_map<()[s0] -> (s0)>
#s2 = affine_map<()[s0] -> (s0 + 2)>
// CHECK: #[[B:.*]] = affine_map<()[s0] -> (s0)>
// CHECK-LABEL: func.func @concat(
// CHECK: %[[Y:.*]] = prim.pad %arg1, %{{.*}} low #[[B]] : (tensor<2xf32>, tensor<f32>) -> tensor<10xf32>
// CHECK: prim.select %{{.*}}, %{{.*}}, %[[Y]] : tensor<10xi1>, tensor<10xf32>
func.func @concat(%x: tensor<?xf32, #prim.dims<#s>>, %y: tensor<2xf32>) -> tensor<?xf32, #prim.dims<#s2>>
    attributes {prim.symbols = [#prim.symbol<"s", 0, 8, 1>], prim.buckets = [array<i64: 0, 8>]} {
  %c = prim.concat %x, %y axis = 0 : (tensor<?xf32, #prim.dims<#s>>, tensor<2xf32>) -> tensor<?xf32, #prim.dims<#s2>>
  return %c : tensor<?xf32, #prim.dims<#s2>>
}
