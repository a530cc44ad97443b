// What can only be seen at run time is an error that names the node, not a crash.
// RUN: not tc-interpret %s --function reshape 2>&1 | FileCheck %s --check-prefix=RESHAPE
// RUN: not tc-interpret %s --function slice 2>&1 | FileCheck %s --check-prefix=SLICE
// RUN: not tc-interpret %s --function negative 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: not tc-interpret %s --function huge 2>&1 | FileCheck %s --check-prefix=HUGE
// RUN: not tc-interpret %s --function empty 2>&1 | FileCheck %s --check-prefix=EMPTY
// RUN: not tc-interpret %s --function host 2>&1 | FileCheck %s --check-prefix=HOST
// RUN: not tc-interpret %s --function unbound 2>&1 | FileCheck %s --check-prefix=UNBOUND

!n = tensor<?xi64, #prim.dims<affine_map<()[s0] -> (s0)>>>

// RESHAPE: error: node "flatten": prim.reshape: changes the number of elements
func.func @reshape() -> tensor<4xi64> attributes {prim.symbols = [#prim.symbol<"n", 0, 1000, 1>]} {
  %n = prim.constant dense<3> : tensor<i64>
  prim.bind_symbol %n to 0 : tensor<i64>
  %0 = prim.iota axis = 0 : !n
  %1 = prim.reshape %0 : !n -> tensor<4xi64> loc("flatten")
  return %1 : tensor<4xi64>
}

// SLICE: error: node "cut": prim.slice: dim 0 reaches outside its operand
func.func @slice() -> tensor<4xi64> attributes {prim.symbols = [#prim.symbol<"n", 0, 1000, 1>]} {
  %n = prim.constant dense<3> : tensor<i64>
  prim.bind_symbol %n to 0 : tensor<i64>
  %0 = prim.iota axis = 0 : !n
  %1 = prim.slice %0 from affine_map<() -> (0)> step [1] : !n -> tensor<4xi64> loc("cut")
  return %1 : tensor<4xi64>
}

// NEGATIVE: error: node "count": prim.iota: sizes [-3] are negative or too large
func.func @negative() -> !n {
  %n = prim.constant dense<-3> : tensor<i64>
  prim.bind_symbol %n to 0 : tensor<i64>
  %0 = prim.iota axis = 0 : !n loc("count")
  return %0 : !n
}

// HUGE: error: node "count": prim.iota: sizes [9223372036854775807] are negative or too large
func.func @huge() -> !n {
  %n = prim.constant dense<9223372036854775807> : tensor<i64>
  prim.bind_symbol %n to 0 : tensor<i64>
  %0 = prim.iota axis = 0 : !n loc("count")
  return %0 : !n
}

// EMPTY: error: node "pick": prim.gather: reads from a dim of size 0
func.func @empty() -> tensor<1xi64> {
  %0 = prim.iota axis = 0 : tensor<0xi64>
  %1 = prim.iota axis = 0 : tensor<1xi64>
  %2 = prim.gather %0[%1] axis = 0 : (tensor<0xi64>, tensor<1xi64>) -> tensor<1xi64> loc("pick")
  return %2 : tensor<1xi64>
}

// HOST: error: node "weights": host.constant can't be interpreted
func.func @host() -> tensor<1xf32> {
  %0 = host.constant dense<1.0> : tensor<1xf32> : tensor<1xf32> loc("weights")
  return %0 : tensor<1xf32>
}

// UNBOUND: error: node "count": prim.iota: size symbol s0 has no value here
func.func @unbound() -> !n {
  %0 = prim.iota axis = 0 : !n loc("count")
  return %0 : !n
}
