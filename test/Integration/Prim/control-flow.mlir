// if, while and kernel.region in the interpreter, and sizes that change on the way.
// RUN: tc-interpret %s --function branch | FileCheck %s --check-prefix=BRANCH
// RUN: tc-interpret %s --function power | FileCheck %s --check-prefix=POWER
// RUN: tc-interpret %s --function grow | FileCheck %s --check-prefix=GROW
// RUN: tc-interpret %s --function fused | FileCheck %s --check-prefix=FUSED
// RUN: tc-interpret %s --function bound | FileCheck %s --check-prefix=BOUND
// RUN: tc-interpret %s --function none | FileCheck %s --check-prefix=NONE

// BRANCH: output_0: tensor<2xf32> [3, 4]
func.func @branch() -> tensor<2xf32> {
  %x = prim.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %two = prim.splat 2.0 : f32 : tensor<2xf32>
  %c = prim.splat false : tensor<i1>
  %0 = prim.if %c : tensor<i1> -> (tensor<2xf32>) {
    prim.yield %x : tensor<2xf32>
  } else {
    %1 = prim.add %x, %two : tensor<2xf32>
    prim.yield %1 : tensor<2xf32>
  }
  return %0 : tensor<2xf32>
}

// 3^5: the condition ends the loop before the trip count does.
// POWER: output_0: tensor<i64> [243]
func.func @power() -> tensor<i64> {
  %n = prim.constant dense<1000> : tensor<i64>
  %four = prim.constant dense<4> : tensor<i64>
  %three = prim.constant dense<3> : tensor<i64>
  %one = prim.constant dense<1> : tensor<i64>
  %c = prim.splat true : tensor<i1>
  %0 = prim.while %n, %c carry %one : (tensor<i64>, tensor<i1>, tensor<i64>) -> tensor<i64> {
  ^bb0(%i: tensor<i64>, %v: tensor<i64>):
    %1 = prim.mul %v, %three : tensor<i64>
    %2 = prim.compare lt %i, %four : tensor<i64> -> tensor<i1>
    prim.yield %2, %1 : tensor<i1>, tensor<i64>
  }
  return %0 : tensor<i64>
}

// A carried value that doubles in size has a symbol of its own, rebound in each iteration; so has the result.
// GROW: output_0: tensor<8xi32> [7, 7, 7, 7, 7, 7, 7, 7]
!carried = tensor<?xi32, #prim.dims<affine_map<()[s0] -> (s0)>>>
!after = tensor<?xi32, #prim.dims<affine_map<()[s0] -> (s0 * 2)>>>
func.func @grow() -> !carried attributes {prim.symbols = [#prim.symbol<"carried", 0, 1000, 1>]} {
  %n = prim.constant dense<3> : tensor<i64>
  %c = prim.splat true : tensor<i1>
  %x = prim.constant dense<7> : tensor<1xi32>
  %0 = prim.while %n, %c carry %x binds [0] : (tensor<i64>, tensor<i1>, tensor<1xi32>) -> !carried {
  ^bb0(%i: tensor<i64>, %v: !carried):
    %1 = prim.concat %v, %v axis = 0 : (!carried, !carried) -> !after
    prim.yield %c, %1 : tensor<i1>, !after
  }
  return %0 : !carried
}

// FUSED: output_0: tensor<3xf32> [4, 5, 6]
func.func @fused() -> tensor<3xf32> {
  %x = prim.iota axis = 0 : tensor<3xf32>
  %0 = kernel.region(%a = %x : tensor<3xf32>) -> (tensor<3xf32>) {
    %1 = prim.splat 4.0 : f32 : tensor<3xf32>
    %2 = prim.add %a, %1 : tensor<3xf32>
    kernel.yield %2 : tensor<3xf32>
  }
  return %0 : tensor<3xf32>
}

// A size that depends on data.
// BOUND: output_0: tensor<3xi64> [0, 1, 2]
// BOUND: output_1: tensor<2xi64> [3, 7]
func.func @bound() -> (tensor<?xi64, #prim.dims<affine_map<()[s0] -> (s0)>>>, tensor<2xi64>)
    attributes {prim.symbols = [#prim.symbol<"found", 0, 1000, 1>]} {
  %x = prim.constant dense<[1, 0, 1, 1]> : tensor<4xi64>
  %n = prim.reduce sum %x [0] : tensor<4xi64> -> tensor<i64>
  prim.bind_symbol %n to 0 : tensor<i64>
  %0 = prim.iota axis = 0 : tensor<?xi64, #prim.dims<affine_map<()[s0] -> (s0)>>>
  %1 = prim.sizes affine_map<()[s0] -> (s0, s0 * 2 + 1)> : tensor<2xi64>
  return %0, %1 : tensor<?xi64, #prim.dims<affine_map<()[s0] -> (s0)>>>, tensor<2xi64>
}

// No trip at all gives the initial values.
// NONE: output_0: tensor<2xf32> [0, 1]
func.func @none() -> tensor<2xf32> {
  %n = prim.constant dense<0> : tensor<i64>
  %c = prim.splat true : tensor<i1>
  %x = prim.iota axis = 0 : tensor<2xf32>
  %0 = prim.while %n, %c carry %x : (tensor<i64>, tensor<i1>, tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%i: tensor<i64>, %v: tensor<2xf32>):
    prim.yield %c, %v : tensor<i1>, tensor<2xf32>
  }
  return %0 : tensor<2xf32>
}
