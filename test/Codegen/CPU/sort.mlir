// Rows of one key are sorted with their keys, in scratch; rows of several by their numbers, and so are those whose number depends
// on data.
// RUN: tc-opt %s --tc-choose-schedule | FileCheck %s
!n = tensor<?x1xf32, #prim.dims<affine_map<()[s0] -> (s0, 1)>>>
!ni = tensor<?xi64, #prim.dims<affine_map<()[s0] -> (s0)>>>

// CHECK-LABEL: @known
// CHECK: #kernel.cpu.sort<{{.*}}single = true
// CHECK: #kernel.cpu.sort<{{.*}}single = true{{.*}}splitKeys = true
// CHECK: #kernel.cpu.sort<
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
// CHECK: #kernel.cpu.sort<
func.func @bound(%x: tensor<90x1xf32>, %n: tensor<i64>) -> !ni attributes {prim.symbols = [#prim.symbol<"n", 0, 90, 1>]} {
  prim.bind_symbol %n to 0 : tensor<i64>
  %0 = prim.slice %x from affine_map<()[s0] -> (0, 0)> step [1, 1] : tensor<90x1xf32> -> !n
  %1 = kernel.region(%i = %0 : !n) -> (!ni) {
    %s = prim.arg_sort %i : !n -> !ni
    kernel.yield %s : !ni
  }
  return %1 : !ni
}

// Channels of each pixel: lanes along the pixels, which lie beside each other, where few are asked for of rows that are not long.
// CHECK-LABEL: @beside
// CHECK: #kernel.cpu.sort<{{.*}}single = true{{.*}}laneDims = 2{{[,>]}}
// CHECK: #kernel.cpu.sort<{{.*}}single = true
// CHECK: #kernel.cpu.sort<{{.*}}single = true
func.func @beside(%x: tensor<3x60x25x29xf32>, %y: tensor<3x25x60x29xf32>) -> (tensor<3x25x29x8xi64>, tensor<3x25x29x9xi64>, tensor<3x60x25x8xi64>) {
  %0 = kernel.region(%i = %x : tensor<3x60x25x29xf32>) -> (tensor<3x25x29x8xi64>) {
    %t = prim.transpose %i [0, 2, 3, 1] : tensor<3x60x25x29xf32> -> tensor<3x25x29x60xf32>
    %r = prim.reshape %t : tensor<3x25x29x60xf32> -> tensor<3x25x29x60x1xf32>
    %s = prim.arg_sort %r descending : tensor<3x25x29x60x1xf32> -> tensor<3x25x29x8xi64>
    kernel.yield %s : tensor<3x25x29x8xi64>
  }
  // Too many to hold.
  %1 = kernel.region(%i = %x : tensor<3x60x25x29xf32>) -> (tensor<3x25x29x9xi64>) {
    %t = prim.transpose %i [0, 2, 3, 1] : tensor<3x60x25x29xf32> -> tensor<3x25x29x60xf32>
    %r = prim.reshape %t : tensor<3x25x29x60xf32> -> tensor<3x25x29x60x1xf32>
    %s = prim.arg_sort %r descending : tensor<3x25x29x60x1xf32> -> tensor<3x25x29x9xi64>
    kernel.yield %s : tensor<3x25x29x9xi64>
  }
  // The rows themselves lie last.
  %2 = kernel.region(%i = %y : tensor<3x25x60x29xf32>) -> (tensor<3x60x25x8xi64>) {
    %t = prim.transpose %i [0, 2, 1, 3] : tensor<3x25x60x29xf32> -> tensor<3x60x25x29xf32>
    %r = prim.reshape %t : tensor<3x60x25x29xf32> -> tensor<3x60x25x29x1xf32>
    %s = prim.arg_sort %r descending : tensor<3x60x25x29x1xf32> -> tensor<3x60x25x8xi64>
    kernel.yield %s : tensor<3x60x25x8xi64>
  }
  return %0, %1, %2 : tensor<3x25x29x8xi64>, tensor<3x25x29x9xi64>, tensor<3x60x25x8xi64>
}

// Neighbours that only the run knows are taken for a block of lanes, unless their range says that they are few.
!p = tensor<60x?xf32, #prim.dims<affine_map<()[s0] -> (60, s0)>>>
!pt = tensor<?x60xf32, #prim.dims<affine_map<()[s0] -> (s0, 60)>>>
!pk = tensor<?x60x1xf32, #prim.dims<affine_map<()[s0] -> (s0, 60, 1)>>>
!pi = tensor<?x8xi64, #prim.dims<affine_map<()[s0] -> (s0, 8)>>>
// CHECK-LABEL: @unknown_neighbours
// CHECK: laneDims = 1{{[,>]}}
func.func @unknown_neighbours(%x: !p) -> !pi attributes {prim.symbols = [#prim.symbol<"n", 0, 9223372036854775807, 1>]} {
  %0 = kernel.region(%i = %x : !p) -> (!pi) {
    %t = prim.transpose %i [1, 0] : !p -> !pt
    %r = prim.reshape %t : !pt -> !pk
    %s = prim.arg_sort %r descending : !pk -> !pi
    kernel.yield %s : !pi
  }
  return %0 : !pi
}

// CHECK-LABEL: @few_neighbours
// CHECK: #kernel.cpu.sort<
// CHECK-NOT: laneDims
func.func @few_neighbours(%x: !p) -> !pi attributes {prim.symbols = [#prim.symbol<"n", 1, 5, 1>]} {
  %0 = kernel.region(%i = %x : !p) -> (!pi) {
    %t = prim.transpose %i [1, 0] : !p -> !pt
    %r = prim.reshape %t : !pt -> !pk
    %s = prim.arg_sort %r descending : !pk -> !pi
    kernel.yield %s : !pi
  }
  return %0 : !pi
}
