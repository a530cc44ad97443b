// Sizes that control flow and data decide, as native code, against the interpreter.
// RUN: %python %S/native.py %s

!s0 = tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>
!s0p1 = tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0 + 1)>>>
!s0x2 = tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0 * 2)>>>
!s1 = tensor<?xf32, #prim.dims<affine_map<()[s0, s1] -> (s1)>>>

// A branch's result is given its memory when its size is known.
// CASE: i1[]=0 f32[4]
// CASE: i1[] f32[4]
func.func @branch(%c: tensor<i1>, %x: tensor<4xf32>) -> (!s0, tensor<i64>)
    attributes {prim.symbols = [#prim.symbol<"n", 0, 100, 1>]} {
  %0 = prim.if %c binds [0] : tensor<i1> -> (!s0) {
    %1 = prim.exp %x : tensor<4xf32>
    prim.yield %1 : tensor<4xf32>
  } else {
    %1 = prim.slice %x from affine_map<() -> (1)> step [1] : tensor<4xf32> -> tensor<2xf32>
    prim.yield %1 : tensor<2xf32>
  }
  %2 = prim.neg %0 : !s0
  %3 = prim.sizes affine_map<()[s0] -> (s0)> : tensor<i64>
  return %2, %3 : !s0, tensor<i64>
}

// A loop that carries a growing value beside one of fixed size, none of them by reference into the other.
// CASE: i64[]<6 f32[3]
// CASE: i64[]=0 f32[3]
func.func @grow(%n: tensor<i64>, %x: tensor<3xf32>) -> (!s0, tensor<3xf32>)
    attributes {prim.symbols = [#prim.symbol<"n", 0, 100000, 1>]} {
  %go = prim.splat true : tensor<i1>
  %0, %1 = prim.while %n, %go carry %x, %x binds [0] : (tensor<i64>, tensor<i1>, tensor<3xf32>, tensor<3xf32>) -> (!s0, tensor<3xf32>) {
  ^bb0(%i: tensor<i64>, %v: !s0, %w: tensor<3xf32>):
    %2 = prim.concat %v, %v axis = 0 : (!s0, !s0) -> !s0x2
    %3 = prim.exp %2 : !s0x2
    %4 = prim.cos %w : tensor<3xf32>
    prim.yield %go, %3, %4 : tensor<i1>, !s0x2, tensor<3xf32>
  }
  return %0, %1 : !s0, tensor<3xf32>
}

// Two carried sizes: each new size is computed from the sizes before the iteration.
// CASE: i64[]<6 f32[1] f32[1]
func.func @swap(%n: tensor<i64>, %x: tensor<1xf32>, %y: tensor<1xf32>) -> (!s0, !s1)
    attributes {prim.symbols = [#prim.symbol<"a", 0, 100000, 1>, #prim.symbol<"b", 0, 100000, 1>]} {
  %go = prim.splat true : tensor<i1>
  %0, %1 = prim.while %n, %go carry %x, %y binds [0, 1] : (tensor<i64>, tensor<i1>, tensor<1xf32>, tensor<1xf32>) -> (!s0, !s1) {
  ^bb0(%i: tensor<i64>, %v: !s0, %w: !s1):
    %2 = prim.concat %v, %w axis = 0 : (!s0, !s1) -> tensor<?xf32, #prim.dims<affine_map<()[s0, s1] -> (s0 + s1)>>>
    prim.yield %go, %2, %v : tensor<i1>, tensor<?xf32, #prim.dims<affine_map<()[s0, s1] -> (s0 + s1)>>>, !s0
  }
  return %0, %1 : !s0, !s1
}

// Sizes that are used where the values are not: what defines them stays.
// CASE: i64[]<6 i1[] f32[3]
func.func @sizes_alone(%n: tensor<i64>, %c: tensor<i1>, %x: tensor<3xf32>) -> (tensor<i64>, tensor<i64>)
    attributes {prim.symbols = [#prim.symbol<"n", 0, 100000, 1>, #prim.symbol<"m", 0, 100, 1>]} {
  %go = prim.splat true : tensor<i1>
  %0 = prim.while %n, %go carry %x binds [0] : (tensor<i64>, tensor<i1>, tensor<3xf32>) -> !s0 {
  ^bb0(%i: tensor<i64>, %v: !s0):
    %4 = prim.concat %v, %v axis = 0 : (!s0, !s0) -> !s0x2
    prim.yield %go, %4 : tensor<i1>, !s0x2
  }
  %1 = prim.if %c binds [1] : tensor<i1> -> (!s1) {
    prim.yield %x : tensor<3xf32>
  } else {
    %4 = prim.slice %x from affine_map<() -> (1)> step [1] : tensor<3xf32> -> tensor<2xf32>
    prim.yield %4 : tensor<2xf32>
  }
  %2 = prim.sizes affine_map<()[s0] -> (s0)> : tensor<i64>
  %3 = prim.sizes affine_map<()[s0, s1] -> (s1)> : tensor<i64>
  return %2, %3 : tensor<i64>, tensor<i64>
}
