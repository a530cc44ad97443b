// scan, scatter_nd, scatter_elements, arg_sort and arg_reduce as native code, against the interpreter.
// RUN: %python %S/native.py %s

!n = tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>
!nk = tensor<?x1xf32, #prim.dims<affine_map<()[s0] -> (s0, 1)>>>
!ni = tensor<?xi64, #prim.dims<affine_map<()[s0] -> (s0)>>>
!mi = tensor<?xi64, #prim.dims<affine_map<()[s0, s1] -> (s1)>>>
!nc = tensor<?x37xf32, #prim.dims<affine_map<()[s0] -> (s0, 37)>>>

// CASE: f32[5,7,33]
func.func @scan_middle(%x: tensor<5x7x33xf32>) -> tensor<5x7x33xf32> {
  %0 = prim.scan sum %x axis = 1 : tensor<5x7x33xf32> -> tensor<5x7x33xf32>
  return %0 : tensor<5x7x33xf32>
}

// CASE: f32[5,130]
func.func @scan_last_exclusive_reverse(%x: tensor<5x130xf32>) -> tensor<5x130xf32> {
  %0 = prim.scan prod %x axis = 1 exclusive reverse : tensor<5x130xf32> -> tensor<5x130xf32>
  return %0 : tensor<5x130xf32>
}

// CASE: f32[4,200]!
func.func @scan_max_nan(%x: tensor<4x200xf32>) -> tensor<4x200xf32> {
  %0 = prim.scan max %x axis = 0 reverse : tensor<4x200xf32> -> tensor<4x200xf32>
  return %0 : tensor<4x200xf32>
}

// CASE: f16[3,9]
func.func @scan_f16(%x: tensor<3x9xf16>) -> tensor<3x9xf16> {
  %0 = prim.scan max %x axis = 1 : tensor<3x9xf16> -> tensor<3x9xf16>
  return %0 : tensor<3x9xf16>
}

// CASE: f32[6,37]
// CASE: f32[1,37]
// CASE: f32[0,37]
func.func @scan_symbolic(%x: !nc) -> !nc attributes {prim.symbols = [#prim.symbol<"n", 0, 1000, 1>]} {
  %0 = prim.scan sum %x axis = 0 exclusive : !nc -> !nc
  return %0 : !nc
}

// The last of several updates wins; negative and wild indices as in gather.
// CASE: f32[40] i64[30,1] f32[30]
func.func @scatter_nd_elements(%x: tensor<40xf32>, %i: tensor<30x1xi64>, %u: tensor<30xf32>) -> tensor<40xf32> {
  %0 = prim.scatter_nd %x[%i], %u : (tensor<40xf32>, tensor<30x1xi64>, tensor<30xf32>) -> tensor<40xf32>
  return %0 : tensor<40xf32>
}

// CASE: f32[4,5,300] i64[6,2]<4 f32[6,300]
func.func @scatter_nd_slices(%x: tensor<4x5x300xf32>, %i: tensor<6x2xi64>, %u: tensor<6x300xf32>) -> tensor<4x5x300xf32> {
  %0 = prim.scatter_nd %x[%i], %u kind sum : (tensor<4x5x300xf32>, tensor<6x2xi64>, tensor<6x300xf32>) -> tensor<4x5x300xf32>
  return %0 : tensor<4x5x300xf32>
}

// In place of a value that is computed here, and not in place of the input.
// CASE: f32[8,3] i64[2,1]<8 f32[2,3]
func.func @scatter_nd_in_place(%x: tensor<8x3xf32>, %i: tensor<2x1xi64>, %u: tensor<2x3xf32>) -> (tensor<8x3xf32>, tensor<8x3xf32>) {
  %0 = prim.exp %x : tensor<8x3xf32>
  %1 = prim.scatter_nd %0[%i], %u kind max : (tensor<8x3xf32>, tensor<2x1xi64>, tensor<2x3xf32>) -> tensor<8x3xf32>
  %2 = prim.scatter_nd %x[%i], %u kind prod : (tensor<8x3xf32>, tensor<2x1xi64>, tensor<2x3xf32>) -> tensor<8x3xf32>
  return %1, %2 : tensor<8x3xf32>, tensor<8x3xf32>
}

// CASE: f32[6,37] i64[3,1]<6 f32[3,37]
// CASE: f32[1,37] i64[3,1]<1 f32[3,37]
func.func @scatter_nd_symbolic(%x: !nc, %i: tensor<3x1xi64>, %u: tensor<3x37xf32>) -> !nc
    attributes {prim.symbols = [#prim.symbol<"n", 0, 1000, 1>]} {
  %0 = prim.scatter_nd %x[%i], %u kind min : (!nc, tensor<3x1xi64>, tensor<3x37xf32>) -> !nc
  return %0 : !nc
}

// CASE: f32[5,400] i64[3,350]<5 f32[3,350]
func.func @scatter_elements_first_axis(%x: tensor<5x400xf32>, %i: tensor<3x350xi64>, %u: tensor<3x350xf32>) -> tensor<5x400xf32> {
  %0 = prim.scatter_elements %x[%i], %u axis = 0 : (tensor<5x400xf32>, tensor<3x350xi64>, tensor<3x350xf32>) -> tensor<5x400xf32>
  return %0 : tensor<5x400xf32>
}

// CASE: i32[7,5] i32[6,9] i32[6,9]
func.func @scatter_elements_last_axis(%x: tensor<7x5xi32>, %i: tensor<6x9xi32>, %u: tensor<6x9xi32>) -> tensor<7x5xi32> {
  %0 = prim.scatter_elements %x[%i], %u axis = 1 kind sum : (tensor<7x5xi32>, tensor<6x9xi32>, tensor<6x9xi32>) -> tensor<7x5xi32>
  return %0 : tensor<7x5xi32>
}

// CASE: f16[3,4,5] i64[3,2,4]<4 f16[3,2,4]
func.func @scatter_elements_middle(%x: tensor<3x4x5xf16>, %i: tensor<3x2x4xi64>, %u: tensor<3x2x4xf16>) -> tensor<3x4x5xf16> {
  %0 = prim.scatter_elements %x[%i], %u axis = 1 kind max : (tensor<3x4x5xf16>, tensor<3x2x4xi64>, tensor<3x2x4xf16>) -> tensor<3x4x5xf16>
  return %0 : tensor<3x4x5xf16>
}

// Two results of one kernel: the first stands in the memory of a value that the second reads.
// CASE: f32[40] f32[40]
func.func @two_results_in_place(%x: tensor<40xf32>, %y: tensor<40xf32>) -> tensor<80xf32> {
  %1 = kernel.region(%a = %x : tensor<40xf32>, %b = %y : tensor<40xf32>) -> (tensor<40xf32>) {
    %4 = prim.add %a, %b : tensor<40xf32>
    kernel.yield %4 : tensor<40xf32>
  }
  %2:2 = kernel.region(%a = %1 : tensor<40xf32>, %b = %y : tensor<40xf32>) -> (tensor<40xf32>, tensor<40xf32>) {
    %4 = prim.neg %b : tensor<40xf32>
    %5 = prim.mul %a, %b : tensor<40xf32>
    kernel.yield %4, %5 : tensor<40xf32>, tensor<40xf32>
  }
  %3 = kernel.region(%a = %2#0 : tensor<40xf32>, %b = %2#1 : tensor<40xf32>) -> (tensor<80xf32>) {
    %4 = prim.concat %a, %b axis = 0 : (tensor<40xf32>, tensor<40xf32>) -> tensor<80xf32>
    kernel.yield %4 : tensor<80xf32>
  }
  return %3 : tensor<80xf32>
}

// CASE: f32[3,20,1]
func.func @sort(%x: tensor<3x20x1xf32>) -> tensor<3x20xi64> {
  %0 = prim.arg_sort %x : tensor<3x20x1xf32> -> tensor<3x20xi64>
  return %0 : tensor<3x20xi64>
}

// Infinities in order, NaN above them, equal keys in their order.
// CASE: f32[33,1]!
func.func @sort_nan_descending(%x: tensor<33x1xf32>) -> tensor<10xi64> {
  %0 = prim.arg_sort %x descending : tensor<33x1xf32> -> tensor<10xi64>
  return %0 : tensor<10xi64>
}

// CASE: ui8[50,3]
func.func @sort_rows(%x: tensor<50x3xui8>) -> tensor<50xi64> {
  %0 = prim.arg_sort %x : tensor<50x3xui8> -> tensor<50xi64>
  return %0 : tensor<50xi64>
}

// CASE: i32[2,64,2]
func.func @sort_rows_descending(%x: tensor<2x64x2xi32>) -> tensor<2x64xi64> {
  %0 = prim.arg_sort %x descending : tensor<2x64x2xi32> -> tensor<2x64xi64>
  return %0 : tensor<2x64xi64>
}

// CASE: f32[0]
// CASE: f32[1]
// CASE: f32[2]
// CASE: f32[1000]
func.func @sort_symbolic(%x: !n) -> !ni attributes {prim.symbols = [#prim.symbol<"n", 0, 1000, 1>]} {
  %k = prim.reshape %x : !n -> !nk
  %0 = prim.arg_sort %k : !nk -> !ni
  return %0 : !ni
}

// Few of many: most are compared with a limit only, and those held are sorted when there is no more room.
// CASE: f32[3,700,1]!
func.func @sort_few(%x: tensor<3x700x1xf32>) -> tensor<3x5xi64> {
  %0 = prim.arg_sort %x descending : tensor<3x700x1xf32> -> tensor<3x5xi64>
  return %0 : tensor<3x5xi64>
}

// By digits.
// CASE: f16[2,611,1]!
func.func @sort_digits_f16(%x: tensor<2x611x1xf16>) -> tensor<2x611xi64> {
  %0 = prim.arg_sort %x : tensor<2x611x1xf16> -> tensor<2x611xi64>
  return %0 : tensor<2x611xi64>
}

// CASE: i8[900,1]
func.func @sort_digits_i8(%x: tensor<900x1xi8>) -> tensor<400xi64> {
  %0 = prim.arg_sort %x descending : tensor<900x1xi8> -> tensor<400xi64>
  return %0 : tensor<400xi64>
}

// Keys and numbers apart.
// CASE: f64[500,1]!
func.func @sort_apart(%x: tensor<500x1xf64>) -> tensor<500xi64> {
  %0 = prim.arg_sort %x : tensor<500x1xf64> -> tensor<500xi64>
  return %0 : tensor<500xi64>
}

// CASE: i64[3,90,1]
func.func @sort_apart_few(%x: tensor<3x90x1xi64>) -> tensor<3x3xi64> {
  %0 = prim.arg_sort %x descending : tensor<3x90x1xi64> -> tensor<3x3xi64>
  return %0 : tensor<3x3xi64>
}

// CASE: f32[0]
// CASE: f32[50]!
// CASE: f32[2000]!
func.func @sort_unbounded(%x: !n) -> !ni attributes {prim.symbols = [#prim.symbol<"n", 0, 9223372036854775807, 1>]} {
  %k = prim.reshape %x : !n -> !nk
  %0 = prim.arg_sort %k descending : !nk -> !ni
  return %0 : !ni
}

// CASE: f32[0] i64[0]
// CASE: f32[40] i64[3]
// CASE: f32[3000]! i64[7]
// CASE: f32[3000]! i64[0]
func.func @sort_symbolic_few(%x: !n, %k: !mi) -> !mi attributes {prim.symbols = [#prim.symbol<"n", 0, 9000, 1>, #prim.symbol<"m", 0, 9000, 1>]} {
  %0 = prim.reshape %x : !n -> !nk
  %1 = prim.arg_sort %0 descending : !nk -> !mi
  %2 = prim.add %1, %k : !mi
  return %2 : !mi
}

// The first alone; the greatest, lanes along the axis.
// CASE: f32[5,41]!
// CASE: f32[5,41]=0
func.func @first(%x: tensor<5x41xf32>) -> (tensor<5x1xi64>, tensor<5x1xi64>, tensor<5xi64>, tensor<5xi64>) {
  %k = prim.reshape %x : tensor<5x41xf32> -> tensor<5x41x1xf32>
  %0 = prim.arg_sort %k : tensor<5x41x1xf32> -> tensor<5x1xi64>
  %1 = prim.arg_sort %k descending : tensor<5x41x1xf32> -> tensor<5x1xi64>
  %2 = prim.arg_reduce max %x axis = 1 : tensor<5x41xf32> -> tensor<5xi64>
  %3 = prim.arg_reduce min %x axis = 1 last : tensor<5x41xf32> -> tensor<5xi64>
  return %0, %1, %2, %3 : tensor<5x1xi64>, tensor<5x1xi64>, tensor<5xi64>, tensor<5xi64>
}

// CASE: i32[37]
// CASE: i32[7]
// CASE: i32[1]
func.func @greatest_symbolic(%x: tensor<?xi32, #prim.dims<affine_map<()[s0] -> (s0)>>>) -> (tensor<i64>, tensor<i64>) attributes {prim.symbols = [#prim.symbol<"n", 1, 9000, 1>]} {
  %0 = prim.arg_reduce max %x axis = 0 : tensor<?xi32, #prim.dims<affine_map<()[s0] -> (s0)>>> -> tensor<i64>
  %1 = prim.arg_reduce max %x axis = 0 last : tensor<?xi32, #prim.dims<affine_map<()[s0] -> (s0)>>> -> tensor<i64>
  return %0, %1 : tensor<i64>, tensor<i64>
}
