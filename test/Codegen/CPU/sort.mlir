// Rows of one key are sorted with their keys, in scratch; rows of several by their numbers, and so are those whose number depends
// on data.
// RUN: tc-opt %s --tc-choose-schedule | FileCheck %s
!n = tensor<?x1xf32, #prim.dims<affine_map<()[s0] -> (s0, 1)>>>
!ni = tensor<?xi64, #prim.dims<affine_map<()[s0] -> (s0)>>>

// CHECK-LABEL: @known
// CHECK: #kernel.schedule<"sort", {apart = 0 : i64, grain = {{.*}}, single = 1 : i64}>
// CHECK: #kernel.schedule<"sort", {apart = 1 : i64, grain = {{.*}}, single = 1 : i64}>
// CHECK: #kernel.schedule<"sort", {grain = {{[0-9]+}} : i64}>
func.func @known(%x: tensor<4x90x1xf32>, %y: tensor<90x1xf64>, %z: tensor<90x3xf32>) -> (tensor<4x7xi64>, tensor<7xi64>, tensor<7xi64>) {
  %0 = kernel.region(%i = %x : tensor<4x90x1xf32>) -> (tensor<4x7xi64>) {
    %s = prim.arg_sort %i : tensor<4x90x1xf32> -> tensor<4x7xi64>
    kernel.yield %s : tensor<4x7xi64>
  }
  %1 = kernel.region(%i = %y : tensor<90x1xf64>) -> (tensor<7xi64>) {
    %s = prim.arg_sort %i : tensor<90x1xf64> -> tensor<7xi64>
    kernel.yield %s : tensor<7xi64>
  }
  %2 = kernel.region(%i = %z : tensor<90x3xf32>) -> (tensor<7xi64>) {
    %s = prim.arg_sort %i : tensor<90x3xf32> -> tensor<7xi64>
    kernel.yield %s : tensor<7xi64>
  }
  return %0, %1, %2 : tensor<4x7xi64>, tensor<7xi64>, tensor<7xi64>
}

// CHECK-LABEL: @bound
// CHECK: #kernel.schedule<"sort", {grain = {{[0-9]+}} : i64}>
func.func @bound(%x: tensor<90x1xf32>, %n: tensor<i64>) -> !ni attributes {prim.symbols = [#prim.symbol<"n", 0, 90, 1>]} {
  prim.bind_symbol %n to 0 : tensor<i64>
  %0 = prim.slice %x from affine_map<()[s0] -> (0, 0)> step [1, 1] : tensor<90x1xf32> -> !n
  %1 = kernel.region(%i = %0 : !n) -> (!ni) {
    %s = prim.arg_sort %i : !n -> !ni
    kernel.yield %s : !ni
  }
  return %1 : !ni
}
