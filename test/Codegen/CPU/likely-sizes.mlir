// Proves: schedules plan for the sizes that are usual (64 scans side by side), unless the declared range leaves them out.
// RUN: tc-opt %s --tc-choose-schedule | FileCheck %s
!x = tensor<1000x?xf32, #prim.dims<affine_map<()[s0] -> (1000, s0)>>>
!x3 = tensor<1000x?xf32, #prim.dims<affine_map<()[s0] -> (1000, s0 * 3)>>>

// CHECK-LABEL: func.func @no_symbols
// CHECK: #kernel.cpu.scan<{{.*}}block = 64
func.func @no_symbols(%x: !x) -> !x {
  %0 = kernel.region(%i = %x : !x) -> (!x) {
    %s = prim.scan sum %i axis = 0 : !x -> !x
    kernel.yield %s : !x
  }
  return %0 : !x
}

// CHECK-LABEL: func.func @no_range
// CHECK: #kernel.cpu.scan<{{.*}}block = 64
func.func @no_range(%x: !x) -> !x attributes {prim.symbols = [#prim.symbol<"n", 0, 9223372036854775807, 1>]} {
  %0 = kernel.region(%i = %x : !x) -> (!x) {
    %s = prim.scan sum %i axis = 0 : !x -> !x
    kernel.yield %s : !x
  }
  return %0 : !x
}

// CHECK-LABEL: func.func @usual_within
// CHECK: #kernel.cpu.scan<{{.*}}block = 64
func.func @usual_within(%x: !x) -> !x attributes {prim.symbols = [#prim.symbol<"n", 1, 1000, 1>]} {
  %0 = kernel.region(%i = %x : !x) -> (!x) {
    %s = prim.scan sum %i axis = 0 : !x -> !x
    kernel.yield %s : !x
  }
  return %0 : !x
}

// CHECK-LABEL: func.func @few
// CHECK: #kernel.cpu.scan<{{.*}}block = 4
func.func @few(%x: !x) -> !x attributes {prim.symbols = [#prim.symbol<"n", 1, 6, 1>]} {
  %0 = kernel.region(%i = %x : !x) -> (!x) {
    %s = prim.scan sum %i axis = 0 : !x -> !x
    kernel.yield %s : !x
  }
  return %0 : !x
}

// The range of an expression: 3 to 18.
// CHECK-LABEL: func.func @few_threefold
// CHECK: #kernel.cpu.scan<{{.*}}block = 16
func.func @few_threefold(%x: !x3) -> !x3 attributes {prim.symbols = [#prim.symbol<"n", 1, 6, 1>]} {
  %0 = kernel.region(%i = %x : !x3) -> (!x3) {
    %s = prim.scan sum %i axis = 0 : !x3 -> !x3
    kernel.yield %s : !x3
  }
  return %0 : !x3
}

// CHECK-LABEL: func.func @many
// CHECK: #kernel.cpu.scan<{{.*}}block = 128
func.func @many(%x: !x) -> !x attributes {prim.symbols = [#prim.symbol<"n", 100, 1000, 1>]} {
  %0 = kernel.region(%i = %x : !x) -> (!x) {
    %s = prim.scan sum %i axis = 0 : !x -> !x
    kernel.yield %s : !x
  }
  return %0 : !x
}

// CHECK-LABEL: func.func @multiple
// CHECK: #kernel.cpu.scan<{{.*}}block = 24
func.func @multiple(%x: !x) -> !x attributes {prim.symbols = [#prim.symbol<"n", 24, 60, 24>]} {
  %0 = kernel.region(%i = %x : !x) -> (!x) {
    %s = prim.scan sum %i axis = 0 : !x -> !x
    kernel.yield %s : !x
  }
  return %0 : !x
}

// So few rows of few columns are no stream of vectors to fold.
!r = tensor<?x4xf32, #prim.dims<affine_map<()[s0] -> (s0, 4)>>>
// CHECK-LABEL: func.func @few_rows
// CHECK-NOT: folded
func.func @few_rows(%x: !r) -> tensor<4xf32> attributes {prim.symbols = [#prim.symbol<"n", 1, 8, 1>]} {
  %0 = kernel.region(%i = %x : !r) -> (tensor<4xf32>) {
    %s = prim.reduce sum %i [0] : !r -> tensor<4xf32>
    kernel.yield %s : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @rows
// CHECK: #kernel.cpu.column_reduce<folded = true
func.func @rows(%x: !r) -> tensor<4xf32> attributes {prim.symbols = [#prim.symbol<"n", 0, 9223372036854775807, 1>]} {
  %0 = kernel.region(%i = %x : !r) -> (tensor<4xf32>) {
    %s = prim.reduce sum %i [0] : !r -> tensor<4xf32>
    kernel.yield %s : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// Lanes find the best elements of long rows.
!a = tensor<64x?xf32, #prim.dims<affine_map<()[s0] -> (64, s0)>>>
// CHECK-LABEL: func.func @best_of_many
// CHECK: #kernel.cpu.loops<{{.*}}argLanes = true
func.func @best_of_many(%x: !a) -> tensor<64xi64> attributes {prim.symbols = [#prim.symbol<"n", 0, 9223372036854775807, 1>]} {
  %0 = kernel.region(%i = %x : !a) -> (tensor<64xi64>) {
    %s = prim.arg_reduce max %i axis = 1 : !a -> tensor<64xi64>
    kernel.yield %s : tensor<64xi64>
  }
  return %0 : tensor<64xi64>
}

// CHECK-LABEL: func.func @best_of_few
// CHECK: #kernel.cpu.loops<
// CHECK-NOT: argLanes
func.func @best_of_few(%x: !a) -> tensor<64xi64> attributes {prim.symbols = [#prim.symbol<"n", 1, 6, 1>]} {
  %0 = kernel.region(%i = %x : !a) -> (tensor<64xi64>) {
    %s = prim.arg_reduce max %i axis = 1 : !a -> tensor<64xi64>
    kernel.yield %s : tensor<64xi64>
  }
  return %0 : tensor<64xi64>
}
