// Every op of prim prints as it parses, in the text form and in the generic form.
// RUN: tc-opt %s > %t.once && tc-opt %t.once | diff %t.once -
// RUN: tc-opt %s --mlir-print-op-generic | tc-opt | diff %t.once -
// RUN: FileCheck %s < %t.once

!n4 = tensor<?x4xf32, #prim.dims<affine_map<()[s0] -> (s0, 4)>>>

// CHECK-LABEL: func @sources
func.func @sources(%x: !n4) -> tensor<2xi64> attributes {prim.symbols = [#prim.symbol<"n", 0, 9223372036854775807, 1>]} {
  // CHECK: prim.constant dense<[1.000000e+00, -0.000000e+00]> : tensor<2xf32>
  %0 = prim.constant dense<[1.0, -0.0]> : tensor<2xf32>
  // CHECK: prim.splat 2.500000e-01 : bf16 : tensor<?xbf16, #prim.dims<#{{.*}}>>
  %1 = prim.splat 0.25 : bf16 : tensor<?xbf16, #prim.dims<affine_map<()[s0] -> (s0 * 2)>>>
  // CHECK: prim.iota axis = 1 : tensor<2x3xui8>
  %2 = prim.iota axis = 1 : tensor<2x3xui8>
  // CHECK: prim.sizes #{{.*}} : tensor<2xi64>
  %3 = prim.sizes affine_map<()[s0] -> (s0, 4)> : tensor<2xi64>
  %4 = prim.constant dense<7> : tensor<i64>
  // CHECK: prim.bind_symbol %{{.*}} to 1 : tensor<i64>
  prim.bind_symbol %4 to 1 : tensor<i64>
  return %3 : tensor<2xi64>
}

// CHECK-LABEL: func @unary
func.func @unary(%x: !n4, %i: tensor<3xui16>) {
  // CHECK: prim.abs %{{.*}} : tensor<?x4xf32
  %0 = prim.abs %x : !n4
  // CHECK: prim.neg %{{.*}} : tensor<?x4xf32
  %1 = prim.neg %x : !n4
  // CHECK: prim.sign %{{.*}} : tensor<?x4xf32
  %2 = prim.sign %x : !n4
  // CHECK: prim.ceil %{{.*}} : tensor<?x4xf32
  %3 = prim.ceil %x : !n4
  // CHECK: prim.floor %{{.*}} : tensor<?x4xf32
  %4 = prim.floor %x : !n4
  // CHECK: prim.round %{{.*}} : tensor<?x4xf32
  %5 = prim.round %x : !n4
  // CHECK: prim.trunc %{{.*}} : tensor<?x4xf32
  %6 = prim.trunc %x : !n4
  // CHECK: prim.sqrt %{{.*}} : tensor<?x4xf32
  %7 = prim.sqrt %x : !n4
  // CHECK: prim.rsqrt %{{.*}} : tensor<?x4xf32
  %8 = prim.rsqrt %x : !n4
  // CHECK: prim.reciprocal %{{.*}} : tensor<?x4xf32
  %9 = prim.reciprocal %x : !n4
  // CHECK: prim.exp %{{.*}} : tensor<?x4xf32
  %10 = prim.exp %x : !n4
  // CHECK: prim.expm1 %{{.*}} : tensor<?x4xf32
  %11 = prim.expm1 %x : !n4
  // CHECK: prim.log %{{.*}} : tensor<?x4xf32
  %12 = prim.log %x : !n4
  // CHECK: prim.log1p %{{.*}} : tensor<?x4xf32
  %13 = prim.log1p %x : !n4
  // CHECK: prim.sin %{{.*}} : tensor<?x4xf32
  %14 = prim.sin %x : !n4
  // CHECK: prim.cos %{{.*}} : tensor<?x4xf32
  %15 = prim.cos %x : !n4
  // CHECK: prim.tan %{{.*}} : tensor<?x4xf32
  %16 = prim.tan %x : !n4
  // CHECK: prim.asin %{{.*}} : tensor<?x4xf32
  %17 = prim.asin %x : !n4
  // CHECK: prim.acos %{{.*}} : tensor<?x4xf32
  %18 = prim.acos %x : !n4
  // CHECK: prim.atan %{{.*}} : tensor<?x4xf32
  %19 = prim.atan %x : !n4
  // CHECK: prim.sinh %{{.*}} : tensor<?x4xf32
  %20 = prim.sinh %x : !n4
  // CHECK: prim.cosh %{{.*}} : tensor<?x4xf32
  %21 = prim.cosh %x : !n4
  // CHECK: prim.tanh %{{.*}} : tensor<?x4xf32
  %22 = prim.tanh %x : !n4
  // CHECK: prim.asinh %{{.*}} : tensor<?x4xf32
  %23 = prim.asinh %x : !n4
  // CHECK: prim.acosh %{{.*}} : tensor<?x4xf32
  %24 = prim.acosh %x : !n4
  // CHECK: prim.atanh %{{.*}} : tensor<?x4xf32
  %25 = prim.atanh %x : !n4
  // CHECK: prim.erf %{{.*}} : tensor<?x4xf32
  %26 = prim.erf %x : !n4
  // CHECK: prim.logistic %{{.*}} : tensor<?x4xf32
  %27 = prim.logistic %x : !n4
  // CHECK: prim.not %{{.*}} : tensor<3xui16>
  %not = prim.not %i : tensor<3xui16>
  return
}

// CHECK-LABEL: func @binary
func.func @binary(%x: !n4, %y: !n4, %i: tensor<3xi32>, %j: tensor<3xi32>) {
  // CHECK: prim.add %{{.*}}, %{{.*}} : tensor<?x4xf32
  %0 = prim.add %x, %y : !n4
  // CHECK: prim.sub %{{.*}}, %{{.*}} : tensor<?x4xf32
  %1 = prim.sub %x, %y : !n4
  // CHECK: prim.mul %{{.*}}, %{{.*}} : tensor<?x4xf32
  %2 = prim.mul %x, %y : !n4
  // CHECK: prim.div %{{.*}}, %{{.*}} : tensor<?x4xf32
  %3 = prim.div %x, %y : !n4
  // CHECK: prim.rem %{{.*}}, %{{.*}} : tensor<?x4xf32
  %4 = prim.rem %x, %y : !n4
  // CHECK: prim.pow %{{.*}}, %{{.*}} : tensor<?x4xf32
  %5 = prim.pow %x, %y : !n4
  // CHECK: prim.atan2 %{{.*}}, %{{.*}} : tensor<?x4xf32
  %6 = prim.atan2 %x, %y : !n4
  // CHECK: prim.max %{{.*}}, %{{.*}} : tensor<?x4xf32
  %7 = prim.max %x, %y : !n4
  // CHECK: prim.min %{{.*}}, %{{.*}} : tensor<?x4xf32
  %8 = prim.min %x, %y : !n4
  // CHECK: prim.and %{{.*}}, %{{.*}} : tensor<3xi32>
  %i0 = prim.and %i, %j : tensor<3xi32>
  // CHECK: prim.or %{{.*}}, %{{.*}} : tensor<3xi32>
  %i1 = prim.or %i, %j : tensor<3xi32>
  // CHECK: prim.xor %{{.*}}, %{{.*}} : tensor<3xi32>
  %i2 = prim.xor %i, %j : tensor<3xi32>
  // CHECK: prim.shl %{{.*}}, %{{.*}} : tensor<3xi32>
  %i3 = prim.shl %i, %j : tensor<3xi32>
  // CHECK: prim.shr %{{.*}}, %{{.*}} : tensor<3xi32>
  %i4 = prim.shr %i, %j : tensor<3xi32>
  // CHECK: prim.compare eq %{{.*}}, %{{.*}} : tensor<3xi32> -> tensor<3xi1>
  %eq = prim.compare eq %i, %j : tensor<3xi32> -> tensor<3xi1>
  // CHECK: prim.compare ne %{{.*}}, %{{.*}} : tensor<3xi32> -> tensor<3xi1>
  %ne = prim.compare ne %i, %j : tensor<3xi32> -> tensor<3xi1>
  // CHECK: prim.compare lt %{{.*}}, %{{.*}} : tensor<3xi32> -> tensor<3xi1>
  %lt = prim.compare lt %i, %j : tensor<3xi32> -> tensor<3xi1>
  // CHECK: prim.compare le %{{.*}}, %{{.*}} : tensor<3xi32> -> tensor<3xi1>
  %le = prim.compare le %i, %j : tensor<3xi32> -> tensor<3xi1>
  // CHECK: prim.compare gt %{{.*}}, %{{.*}} : tensor<3xi32> -> tensor<3xi1>
  %gt = prim.compare gt %i, %j : tensor<3xi32> -> tensor<3xi1>
  // CHECK: prim.compare ge %{{.*}}, %{{.*}} : tensor<3xi32> -> tensor<3xi1>
  %ge = prim.compare ge %i, %j : tensor<3xi32> -> tensor<3xi1>
  // CHECK: prim.is_nan %{{.*}} -> tensor<?x4xi1
  %nan = prim.is_nan %x : !n4 -> tensor<?x4xi1, #prim.dims<affine_map<()[s0] -> (s0, 4)>>>
  // CHECK: prim.is_inf %{{.*}} -> tensor<?x4xi1
  %inf = prim.is_inf %x : !n4 -> tensor<?x4xi1, #prim.dims<affine_map<()[s0] -> (s0, 4)>>>
  // CHECK: prim.select %{{.*}}, %{{.*}}, %{{.*}} : tensor<3xi1>, tensor<3xi32>
  %select = prim.select %eq, %i, %j : tensor<3xi1>, tensor<3xi32>
  // CHECK: prim.convert %{{.*}} : tensor<3xi32> -> tensor<3xf8E4M3FN>
  %convert = prim.convert %i : tensor<3xi32> -> tensor<3xf8E4M3FN>
  return
}

// CHECK-LABEL: func @movement
func.func @movement(%x: tensor<2x3x4xf32>, %v: tensor<f32>, %i: tensor<i64>, %d: !n4) {
  // CHECK: prim.reshape %{{.*}} -> tensor<?xf32, #prim.dims<#{{.*}}>>
  %0 = prim.reshape %d : !n4 -> tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0 * 4)>>>
  // CHECK: prim.transpose %{{.*}} [2, 0, 1] : tensor<2x3x4xf32> -> tensor<4x2x3xf32>
  %1 = prim.transpose %x [2, 0, 1] : tensor<2x3x4xf32> -> tensor<4x2x3xf32>
  // CHECK: prim.broadcast %{{.*}} [0, 1, 3] : tensor<2x3x4xf32> -> tensor<2x3x5x4xf32>
  %2 = prim.broadcast %x [0, 1, 3] : tensor<2x3x4xf32> -> tensor<2x3x5x4xf32>
  // CHECK: prim.slice %{{.*}} from #{{.*}} step [1, -1, 2] : tensor<2x3x4xf32> -> tensor<1x3x2xf32>
  %3 = prim.slice %x from affine_map<() -> (1, 2, 0)> step [1, -1, 2] : tensor<2x3x4xf32> -> tensor<1x3x2xf32>
  // CHECK: prim.dynamic_slice %{{.*}} from(%{{.*}}, %{{.*}}, %{{.*}}) : (tensor<2x3x4xf32>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<1x3x2xf32>
  %4 = prim.dynamic_slice %x from (%i, %i, %i) : (tensor<2x3x4xf32>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<1x3x2xf32>
  // CHECK: prim.pad %{{.*}}, %{{.*}} low #{{.*}} : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<3x2x4xf32>
  %5 = prim.pad %x, %v low affine_map<() -> (1, -1, 0)> : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<3x2x4xf32>
  // CHECK: prim.concat %{{.*}}, %{{.*}} axis = 1 : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x6x4xf32>
  %6 = prim.concat %x, %x axis = 1 : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x6x4xf32>
  return
}

// CHECK-LABEL: func @gathers
func.func @gathers(%x: tensor<2x3x4xf32>, %i: tensor<5x2xi64>, %u: tensor<5x4xf32>, %e: tensor<2x1x4xi32>, %w: tensor<2x1x4xf32>) {
  // CHECK: prim.gather %{{.*}}[%{{.*}}] axis = 1 : (tensor<2x3x4xf32>, tensor<5x2xi64>) -> tensor<2x5x2x4xf32>
  %0 = prim.gather %x[%i] axis = 1 : (tensor<2x3x4xf32>, tensor<5x2xi64>) -> tensor<2x5x2x4xf32>
  // CHECK: prim.gather_elements %{{.*}}[%{{.*}}] axis = 1 : (tensor<2x3x4xf32>, tensor<2x1x4xi32>) -> tensor<2x1x4xf32>
  %1 = prim.gather_elements %x[%e] axis = 1 : (tensor<2x3x4xf32>, tensor<2x1x4xi32>) -> tensor<2x1x4xf32>
  // CHECK: prim.gather_nd %{{.*}}[%{{.*}}] batch_dims = 0 : (tensor<2x3x4xf32>, tensor<5x2xi64>) -> tensor<5x4xf32>
  %2 = prim.gather_nd %x[%i] batch_dims = 0 : (tensor<2x3x4xf32>, tensor<5x2xi64>) -> tensor<5x4xf32>
  // CHECK: prim.scatter_nd %{{.*}}[%{{.*}}], %{{.*}} kind sum : (tensor<2x3x4xf32>, tensor<5x2xi64>, tensor<5x4xf32>) -> tensor<2x3x4xf32>
  %3 = prim.scatter_nd %x[%i], %u kind sum : (tensor<2x3x4xf32>, tensor<5x2xi64>, tensor<5x4xf32>) -> tensor<2x3x4xf32>
  // CHECK: prim.scatter_nd %{{.*}}[%{{.*}}], %{{.*}} : (
  %4 = prim.scatter_nd %x[%i], %u : (tensor<2x3x4xf32>, tensor<5x2xi64>, tensor<5x4xf32>) -> tensor<2x3x4xf32>
  // CHECK: prim.scatter_nd %{{.*}}[%{{.*}}], %{{.*}} order %{{.*}} : (tensor<2x3x4xf32>, tensor<6x1xi64>, tensor<6x3x4xf32>, tensor<6xi64>) -> tensor<2x3x4xf32>
  %order = prim.constant dense<[0, 1, 2, 3, 4, 5]> : tensor<6xi64>
  %rows = prim.reshape %order : tensor<6xi64> -> tensor<6x1xi64>
  %many = prim.constant dense<1.0> : tensor<6x3x4xf32>
  %6 = prim.scatter_nd %x[%rows], %many order %order : (tensor<2x3x4xf32>, tensor<6x1xi64>, tensor<6x3x4xf32>, tensor<6xi64>) -> tensor<2x3x4xf32>
  // CHECK: prim.scatter_elements %{{.*}}[%{{.*}}], %{{.*}} axis = 1 kind max : (
  %5 = prim.scatter_elements %x[%e], %w axis = 1 kind max : (tensor<2x3x4xf32>, tensor<2x1x4xi32>, tensor<2x1x4xf32>) -> tensor<2x3x4xf32>
  return
}

// CHECK-LABEL: func @reductions
func.func @reductions(%x: tensor<2x3x4xf32>, %b: tensor<2x3xi1>) {
  // CHECK: prim.reduce sum %{{.*}} [0, 2] : tensor<2x3x4xf32> -> tensor<3xf32>
  %sum = prim.reduce sum %x [0, 2] : tensor<2x3x4xf32> -> tensor<3xf32>
  // CHECK: prim.reduce prod %{{.*}} [0, 2] : tensor<2x3x4xf32> -> tensor<3xf32>
  %prod = prim.reduce prod %x [0, 2] : tensor<2x3x4xf32> -> tensor<3xf32>
  // CHECK: prim.reduce max %{{.*}} [0, 2] : tensor<2x3x4xf32> -> tensor<3xf32>
  %max = prim.reduce max %x [0, 2] : tensor<2x3x4xf32> -> tensor<3xf32>
  // CHECK: prim.reduce min %{{.*}} [0, 2] : tensor<2x3x4xf32> -> tensor<3xf32>
  %min = prim.reduce min %x [0, 2] : tensor<2x3x4xf32> -> tensor<3xf32>
  // CHECK: prim.reduce and %{{.*}} [0] : tensor<2x3xi1> -> tensor<3xi1>
  %and = prim.reduce and %b [0] : tensor<2x3xi1> -> tensor<3xi1>
  // CHECK: prim.reduce or %{{.*}} [0] : tensor<2x3xi1> -> tensor<3xi1>
  %or = prim.reduce or %b [0] : tensor<2x3xi1> -> tensor<3xi1>
  // CHECK: prim.arg_reduce max %{{.*}} axis = 1 last : tensor<2x3x4xf32> -> tensor<2x4xi64>
  %0 = prim.arg_reduce max %x axis = 1 last : tensor<2x3x4xf32> -> tensor<2x4xi64>
  // CHECK: prim.arg_reduce min %{{.*}} axis = 2 : tensor<2x3x4xf32> -> tensor<2x3xi64>
  %1 = prim.arg_reduce min %x axis = 2 : tensor<2x3x4xf32> -> tensor<2x3xi64>
  // CHECK: prim.scan sum %{{.*}} axis = 0 exclusive reverse : tensor<2x3x4xf32> -> tensor<2x3x4xf32>
  %2 = prim.scan sum %x axis = 0 exclusive reverse : tensor<2x3x4xf32> -> tensor<2x3x4xf32>
  return
}

// CHECK-LABEL: func @contractions
func.func @contractions(%a: tensor<2x3x4xf16>, %b: tensor<2x5x4xf16>, %x: tensor<1x8x8x4xf32>, %w: tensor<3x3x2x6xf32>) {
  // CHECK: prim.dot_general %{{.*}}, %{{.*}} batch [0] x [0] contract [2] x [2] : (tensor<2x3x4xf16>, tensor<2x5x4xf16>) -> tensor<2x3x5xf32>
  %0 = prim.dot_general %a, %b batch [0] x [0] contract [2] x [2] : (tensor<2x3x4xf16>, tensor<2x5x4xf16>) -> tensor<2x3x5xf32>
  // CHECK: prim.conv %{{.*}}, %{{.*}} strides [2, 1] dilations [1, 2] pads [1, 0] [0, 1] groups 2 : (tensor<1x8x8x4xf32>, tensor<3x3x2x6xf32>) -> tensor<1x4x5x6xf32>
  %1 = prim.conv %x, %w strides [2, 1] dilations [1, 2] pads [1, 0] [0, 1] groups 2 : (tensor<1x8x8x4xf32>, tensor<3x3x2x6xf32>) -> tensor<1x4x5x6xf32>
  // CHECK: prim.window_reduce max %{{.*}} window [2, 2] strides [2, 2] dilations [1, 1] low [0, 0] : tensor<1x8x8x4xf32> -> tensor<1x4x4x4xf32>
  %2 = prim.window_reduce max %x window [2, 2] strides [2, 2] dilations [1, 1] low [0, 0] : tensor<1x8x8x4xf32> -> tensor<1x4x4x4xf32>
  return
}

// CHECK-LABEL: func @composites
func.func @composites(%x: tensor<2x3x4xf32>, %k: tensor<2x5x4xf32>, %v: tensor<2x5x6xf32>, %m: tensor<2x3x5xf32>,
                      %g: tensor<7x2x12xf32>, %r: tensor<4x12xf32>, %b: tensor<12xf32>, %h: tensor<2x4xf32>,
                      %p: tensor<12xf32>, %l: tensor<2xi32>) {
  // CHECK: prim.softmax %{{.*}} axis = 2 log : tensor<2x3x4xf32>
  %0 = prim.softmax %x axis = 2 log : tensor<2x3x4xf32>
  // CHECK: prim.norm %{{.*}} [1, 2] epsilon = 1.000000e-05 rms : tensor<2x3x4xf32>
  %1 = prim.norm %x [1, 2] epsilon = 1.0e-5 rms : tensor<2x3x4xf32>
  // CHECK: prim.attention %{{.*}}, %{{.*}}, %{{.*}} mask %{{.*}} scale 5.000000e-01 causal : (
  %2 = prim.attention %x, %k, %v mask %m scale 5.0e-1 causal : (tensor<2x3x4xf32>, tensor<2x5x4xf32>, tensor<2x5x6xf32>, tensor<2x3x5xf32>) -> tensor<2x3x6xf32>
  // CHECK: prim.rnn gru %{{.*}} {linearBeforeReset, reverse} : (
  %3:3 = prim.rnn gru %g, %r, %b, %h, %h, %p, %l {reverse, linearBeforeReset} : (tensor<7x2x12xf32>, tensor<4x12xf32>, tensor<12xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<12xf32>, tensor<2xi32>) -> (tensor<7x2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>)
  return
}

// CHECK-LABEL: func @block_dot
func.func @block_dot(%x: tensor<3x5x40xf32>, %w: tensor<7x32xui8>, %s: tensor<7x2xf16>, %z: tensor<7x1xui8>, %f: tensor<7x2xf32>) {
  // CHECK: prim.block_dot %{{.*}}, %{{.*}}, %{{.*}} bits = 4 block = 32 : (tensor<3x5x40xf32>, tensor<7x32xui8>, tensor<7x2xf16>) -> tensor<3x5x7xf32>
  %0 = prim.block_dot %x, %w, %s bits = 4 block = 32 : (tensor<3x5x40xf32>, tensor<7x32xui8>, tensor<7x2xf16>) -> tensor<3x5x7xf32>
  // CHECK: prim.block_dot %{{.*}}, %{{.*}}, %{{.*}} zeros %{{.*}} bits = 4
  %1 = prim.block_dot %x, %w, %s zeros %z bits = 4 block = 32 : (tensor<3x5x40xf32>, tensor<7x32xui8>, tensor<7x2xf16>, tensor<7x1xui8>) -> tensor<3x5x7xf32>
  %2 = prim.block_dot %x, %w, %s zeros %f bits = 4 block = 32 : (tensor<3x5x40xf32>, tensor<7x32xui8>, tensor<7x2xf16>, tensor<7x2xf32>) -> tensor<3x5x7xf32>
  return
}

// CHECK-LABEL: func @bound_by_control_flow
!bound = tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>
func.func @bound_by_control_flow(%c: tensor<i1>, %n: tensor<i64>, %x: tensor<4xf32>) -> !bound
    attributes {prim.symbols = [#prim.symbol<"n", 0, 100, 1>]} {
  %one = prim.slice %x from affine_map<() -> (0)> step [1] : tensor<4xf32> -> tensor<1xf32>
  // CHECK: prim.if %{{.*}} binds [0] : tensor<i1>
  %0 = prim.if %c binds [0] : tensor<i1> -> (!bound) {
    prim.yield %x : tensor<4xf32>
  } else {
    prim.yield %one : tensor<1xf32>
  }
  // CHECK: prim.guard le {{.*}} "test needs few elements"
  prim.guard le affine_map<()[s0] -> (s0, 4)> "test needs few elements"
  // CHECK: prim.guard eq {{.*}} or_one "test needs one or four elements"
  prim.guard eq affine_map<()[s0] -> (s0, 4)> or_one "test needs one or four elements"
  return %0 : !bound
}

// CHECK-LABEL: func @arg_sort
func.func @arg_sort(%x: tensor<2x5x1xf32>) -> tensor<2x3xi64> {
  // CHECK: prim.arg_sort %{{.*}} descending : tensor<2x5x1xf32> -> tensor<2x3xi64>
  %0 = prim.arg_sort %x descending : tensor<2x5x1xf32> -> tensor<2x3xi64>
  // CHECK: prim.arg_sort %{{.*}} key_bits 9 : tensor<5x1xi32> -> tensor<5xi64>
  %keys = prim.splat 3 : i32 : tensor<5x1xi32>
  %1 = prim.arg_sort %keys key_bits 9 : tensor<5x1xi32> -> tensor<5xi64>
  return %0 : tensor<2x3xi64>
}

// CHECK-LABEL: func @fft
func.func @fft(%x: tensor<2x20x3x1xf32>, %y: tensor<2x11x3x2xf64>) -> (tensor<2x9x3x2xf32>, tensor<2x20x3x1xf64>) {
  // CHECK: prim.fft %{{.*}} length #{{.*}} : tensor<2x20x3x1xf32> -> tensor<2x9x3x2xf32>
  %0 = prim.fft %x length affine_map<() -> (16)> : tensor<2x20x3x1xf32> -> tensor<2x9x3x2xf32>
  // CHECK: prim.fft inverse half %{{.*}} length #{{.*}} : tensor<2x11x3x2xf64> -> tensor<2x20x3x1xf64>
  %1 = prim.fft inverse half %y length affine_map<() -> (20)> : tensor<2x11x3x2xf64> -> tensor<2x20x3x1xf64>
  return %0, %1 : tensor<2x9x3x2xf32>, tensor<2x20x3x1xf64>
}

// CHECK-LABEL: func @control_flow
func.func @control_flow(%c: tensor<i1>, %n: tensor<i64>, %x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: prim.if %{{.*}} : tensor<i1> -> (tensor<4xf32>) {
  %0 = prim.if %c : tensor<i1> -> (tensor<4xf32>) {
    %1 = prim.exp %x : tensor<4xf32>
    // CHECK: prim.yield %{{.*}} : tensor<4xf32>
    prim.yield %1 : tensor<4xf32>
  // CHECK: } else {
  } else {
    prim.yield %x : tensor<4xf32>
  }
  // CHECK: prim.while %{{.*}}, %{{.*}} carry %{{.*}} : (tensor<i64>, tensor<i1>, tensor<4xf32>) -> tensor<4xf32> {
  %2 = prim.while %n, %c carry %0 : (tensor<i64>, tensor<i1>, tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: ^bb0(%{{.*}}: tensor<i64>, %{{.*}}: tensor<4xf32>):
  ^bb0(%i: tensor<i64>, %v: tensor<4xf32>):
    %3 = prim.mul %v, %v : tensor<4xf32>
    prim.yield %c, %3 : tensor<i1>, tensor<4xf32>
  }
  return %2 : tensor<4xf32>
}

// CHECK-LABEL: func @bits
func.func @bits(%x: tensor<2x3xf32>, %n: tensor<5xi4>) -> (tensor<2x3xui32>, tensor<3xui8>) {
  // CHECK: prim.bitcast %{{.*}} : tensor<2x3xf32> -> tensor<2x3xui32>
  %0 = prim.bitcast %x : tensor<2x3xf32> -> tensor<2x3xui32>
  // CHECK: prim.storage %{{.*}} : tensor<5xi4> -> tensor<3xui8>
  %1 = prim.storage %n : tensor<5xi4> -> tensor<3xui8>
  return %0, %1 : tensor<2x3xui32>, tensor<3xui8>
}

// CHECK: prim.state @count : tensor<i64>{{$}}
prim.state @count : tensor<i64>
// CHECK: prim.state @mean : tensor<2x3xf32> = dense<1.000000e+00> : tensor<2x3xf32>
prim.state @mean : tensor<2x3xf32> = dense<1.0> : tensor<2x3xf32>

// CHECK-LABEL: func @states
func.func @states(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // CHECK: %[[OLD:.*]] = prim.read_state @mean : tensor<2x3xf32>
  %0 = prim.read_state @mean : tensor<2x3xf32>
  %1 = prim.add %0, %x : tensor<2x3xf32>
  // CHECK: prim.write_state @mean, %{{.*}} : tensor<2x3xf32>
  prim.write_state @mean, %1 : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
