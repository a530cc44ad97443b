// Proves: which primitives share a region, and which do not, rule by rule (include/tc/Transforms/Fuse.h).
// RUN: tc-opt %s --tc-fuse --tc-verify-fuse | FileCheck %s

// Softmax and entropy over the same rows: one pass, one region; the small constant is inside.
// CHECK-LABEL: func.func @entropy
// CHECK: kernel.region(%{{[a-z0-9]+}} = %{{[a-z0-9]+}} : tensor<32x196x768xf32>) -> (tensor<32x196xf32>)
// CHECK-SAME: flops = 43358336
// CHECK-SAME: stopped = ["neg -> return: result of the function"]
// CHECK-NOT: kernel.region
func.func @entropy(%x: tensor<32x196x768xf32>) -> tensor<32x196xf32> {
  %m = prim.reduce max %x [2] : tensor<32x196x768xf32> -> tensor<32x196xf32>
  %mk = prim.reshape %m : tensor<32x196xf32> -> tensor<32x196x1xf32>
  %mb = prim.broadcast %mk [0, 1, 2] : tensor<32x196x1xf32> -> tensor<32x196x768xf32>
  %d = prim.sub %x, %mb : tensor<32x196x768xf32>
  %e = prim.exp %d : tensor<32x196x768xf32>
  %s = prim.reduce sum %e [2] : tensor<32x196x768xf32> -> tensor<32x196xf32>
  %sb = prim.broadcast %s [0, 1] : tensor<32x196xf32> -> tensor<32x196x768xf32>
  %p = prim.div %e, %sb : tensor<32x196x768xf32>
  %c = prim.constant dense<9.99e-10> : tensor<f32>
  %cb = prim.broadcast %c [] : tensor<f32> -> tensor<32x196x768xf32>
  %pe = prim.add %p, %cb : tensor<32x196x768xf32>
  %l = prim.log %pe : tensor<32x196x768xf32>
  %pl = prim.mul %p, %l : tensor<32x196x768xf32>
  %h = prim.reduce sum %pl [2] : tensor<32x196x768xf32> -> tensor<32x196xf32>
  %n = prim.neg %h : tensor<32x196xf32>
  return %n : tensor<32x196xf32>
}

// Rows with symbolic sizes are compared by size expression.
// CHECK-LABEL: func.func @symbolic_norm
// CHECK-COUNT-1: kernel.region
// CHECK-NOT: kernel.region
func.func @symbolic_norm(%x: tensor<?x768xf32, #prim.dims<affine_map<()[s0] -> (s0 * 2, 768)>>>)
    -> tensor<?x768xf32, #prim.dims<affine_map<()[s0] -> (s0 * 2, 768)>>> attributes {prim.symbols = [#prim.symbol<"n", 1, 64, 1>]} {
  %q = prim.mul %x, %x : tensor<?x768xf32, #prim.dims<affine_map<()[s0] -> (s0 * 2, 768)>>>
  %s = prim.reduce sum %q [1] : tensor<?x768xf32, #prim.dims<affine_map<()[s0] -> (s0 * 2, 768)>>> -> tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0 * 2)>>>
  %r = prim.rsqrt %s : tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0 * 2)>>>
  %b = prim.broadcast %r [0] : tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0 * 2)>>> -> tensor<?x768xf32, #prim.dims<affine_map<()[s0] -> (s0 * 2, 768)>>>
  %y = prim.mul %x, %b : tensor<?x768xf32, #prim.dims<affine_map<()[s0] -> (s0 * 2, 768)>>>
  return %y : tensor<?x768xf32, #prim.dims<affine_map<()[s0] -> (s0 * 2, 768)>>>
}

// A row statistic that comes back as a column is no row of the same region.
// CHECK-LABEL: func.func @column_of_rows
// CHECK-COUNT-2: kernel.region
// CHECK-NOT: kernel.region
func.func @column_of_rows(%x: tensor<128x128xf32>) -> tensor<128x128xf32> {
  %s = prim.reduce sum %x [1] : tensor<128x128xf32> -> tensor<128xf32>
  %b = prim.broadcast %s [1] : tensor<128xf32> -> tensor<128x128xf32>
  %y = prim.mul %x, %b : tensor<128x128xf32>
  return %y : tensor<128x128xf32>
}

// Row sums, then their mean: the second reduction would serialise the first. Its constant factor joins it.
// CHECK-LABEL: func.func @sum_then_mean
// CHECK: kernel.region
// CHECK-SAME: -> (tensor<2000xf32>)
// CHECK-SAME: stopped = ["reduce -> reduce: it has another shape than the loops there"]
// CHECK: kernel.region
// CHECK-SAME: -> (tensor<f32>)
// CHECK-NOT: kernel.region
func.func @sum_then_mean(%x: tensor<2000x2000xf32>) -> tensor<f32> {
  %g = prim.logistic %x : tensor<2000x2000xf32>
  %p = prim.mul %g, %x : tensor<2000x2000xf32>
  %s = prim.reduce sum %p [1] : tensor<2000x2000xf32> -> tensor<2000xf32>
  %t = prim.reduce sum %s [0] : tensor<2000xf32> -> tensor<f32>
  %c = prim.constant dense<5.0e-4> : tensor<f32>
  %m = prim.mul %t, %c : tensor<f32>
  return %m : tensor<f32>
}

// A reduction over leading dims takes its pointwise producer in.
// CHECK-LABEL: func.func @column_sums
// CHECK: kernel.region
// CHECK: prim.exp
// CHECK: prim.reduce
// CHECK: prim.sqrt
// CHECK-NOT: kernel.region
func.func @column_sums(%x: tensor<512x64xf32>) -> tensor<64xf32> {
  %e = prim.exp %x : tensor<512x64xf32>
  %s = prim.reduce sum %e [0] : tensor<512x64xf32> -> tensor<64xf32>
  %r = prim.sqrt %s : tensor<64xf32>
  return %r : tensor<64xf32>
}

// Two contractions and a residual: the addition joins the later one, the other operand is read from memory.
// CHECK-LABEL: func.func @residual
// CHECK: %[[A:.*]] = kernel.region
// CHECK: prim.dot_general
// CHECK: prim.tanh
// CHECK: kernel.region(%{{.*}} = %[[A]]
// CHECK: prim.dot_general
// CHECK: prim.add
// CHECK-NOT: kernel.region
func.func @residual(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>, %v: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %d = prim.dot_general %x, %w batch [] x [] contract [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %t = prim.tanh %d : tensor<64x64xf32>
  %e = prim.dot_general %t, %v batch [] x [] contract [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %y = prim.add %t, %e : tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}

// exp may not join the region of the first dot: its other operand runs through a reduction of that region's result.
// CHECK-LABEL: func.func @no_cycle
// CHECK: kernel.region
// CHECK: prim.dot_general
// CHECK: kernel.yield
// CHECK: kernel.region
// CHECK: prim.reduce max
// CHECK: prim.sub
// CHECK-NOT: kernel.region
func.func @no_cycle(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %d = prim.dot_general %x, %w batch [] x [] contract [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %m = prim.reduce max %d [1] : tensor<64x64xf32> -> tensor<64xf32>
  %b = prim.broadcast %m [0] : tensor<64xf32> -> tensor<64x64xf32>
  %y = prim.sub %d, %b : tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}

// A value that others need too is a second output.
// CHECK-LABEL: func.func @two_outputs
// CHECK: %[[R:.*]]:2 = kernel.region
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @two_outputs(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64xf32>) {
  %a = prim.add %x, %y : tensor<64x64xf32>
  %s = prim.reduce sum %a [1] : tensor<64x64xf32> -> tensor<64xf32>
  return %a, %s : tensor<64x64xf32>, tensor<64xf32>
}

// Independent readers of one tensor share a region.
// CHECK-LABEL: func.func @siblings
// CHECK: kernel.region(%{{[a-z0-9]+}} = %{{[a-z0-9]+}} : tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>)
// CHECK-NOT: kernel.region
func.func @siblings(%x: tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>) {
  %a = prim.exp %x : tensor<1024xf32>
  %b = prim.sin %x : tensor<1024xf32>
  return %a, %b : tensor<1024xf32>, tensor<1024xf32>
}

// The heads are put back together by attention's epilogue; the reshape behind is a view. The products before it write heads.
// CHECK-LABEL: func.func @attention
// CHECK: kernel.region
// CHECK: prim.dot_general
// CHECK: prim.add
// CHECK: prim.transpose
// CHECK: kernel.yield %{{.*}} : tensor<3x4x12x128x64xf32>
// CHECK: kernel.region
// CHECK-COUNT-3: prim.slice
// CHECK: prim.attention
// CHECK: prim.transpose
// CHECK: kernel.yield %{{.*}} : tensor<4x128x12x64xf32>
// CHECK: prim.reshape
// CHECK-SAME: tensor<4x128x768xf32>
// CHECK: kernel.region
// CHECK: prim.dot_general
// CHECK: prim.add
// CHECK-NOT: kernel.region
func.func @attention(%x: tensor<4x128x768xf32>, %w: tensor<768x2304xf32>, %b: tensor<2304xf32>, %o: tensor<768x768xf32>) -> tensor<4x128x768xf32> {
  %d = prim.dot_general %x, %w batch [] x [] contract [2] x [0] : (tensor<4x128x768xf32>, tensor<768x2304xf32>) -> tensor<4x128x2304xf32>
  %bb = prim.broadcast %b [2] : tensor<2304xf32> -> tensor<4x128x2304xf32>
  %qkv = prim.add %d, %bb : tensor<4x128x2304xf32>
  %h = prim.reshape %qkv : tensor<4x128x2304xf32> -> tensor<4x128x3x12x64xf32>
  %p = prim.transpose %h [2, 0, 3, 1, 4] : tensor<4x128x3x12x64xf32> -> tensor<3x4x12x128x64xf32>
  %q0 = prim.slice %p from affine_map<() -> (0, 0, 0, 0, 0)> step [1, 1, 1, 1, 1] : tensor<3x4x12x128x64xf32> -> tensor<1x4x12x128x64xf32>
  %k0 = prim.slice %p from affine_map<() -> (1, 0, 0, 0, 0)> step [1, 1, 1, 1, 1] : tensor<3x4x12x128x64xf32> -> tensor<1x4x12x128x64xf32>
  %v0 = prim.slice %p from affine_map<() -> (2, 0, 0, 0, 0)> step [1, 1, 1, 1, 1] : tensor<3x4x12x128x64xf32> -> tensor<1x4x12x128x64xf32>
  %q = prim.reshape %q0 : tensor<1x4x12x128x64xf32> -> tensor<4x12x128x64xf32>
  %k = prim.reshape %k0 : tensor<1x4x12x128x64xf32> -> tensor<4x12x128x64xf32>
  %v = prim.reshape %v0 : tensor<1x4x12x128x64xf32> -> tensor<4x12x128x64xf32>
  %a = prim.attention %q, %k, %v scale 1.250000e-01 : (tensor<4x12x128x64xf32>, tensor<4x12x128x64xf32>, tensor<4x12x128x64xf32>) -> tensor<4x12x128x64xf32>
  %t = prim.transpose %a [0, 2, 1, 3] : tensor<4x12x128x64xf32> -> tensor<4x128x12x64xf32>
  %r = prim.reshape %t : tensor<4x128x12x64xf32> -> tensor<4x128x768xf32>
  %e = prim.dot_general %r, %o batch [] x [] contract [2] x [0] : (tensor<4x128x768xf32>, tensor<768x768xf32>) -> tensor<4x128x768xf32>
  %y = prim.add %x, %e : tensor<4x128x768xf32>
  return %y : tensor<4x128x768xf32>
}

// A convolution's epilogue through a transpose; its input's padding is made once, in the layout that it reads.
// CHECK-LABEL: func.func @conv
// CHECK: kernel.region
// CHECK: prim.pad
// CHECK: prim.transpose
// CHECK: kernel.yield
// CHECK: kernel.region
// CHECK-NOT: prim.pad
// CHECK: prim.conv
// CHECK: prim.max
// CHECK: prim.transpose
// CHECK: kernel.yield
// CHECK-NOT: kernel.region
func.func @conv(%x: tensor<1x3x30x30xf32>, %f: tensor<3x3x3x8xf32>) -> tensor<1x8x30x30xf32> {
  %z = prim.constant dense<0.0> : tensor<f32>
  %p = prim.pad %x, %z low affine_map<() -> (0, 0, 1, 1)> : (tensor<1x3x30x30xf32>, tensor<f32>) -> tensor<1x3x32x32xf32>
  %n = prim.transpose %p [0, 2, 3, 1] : tensor<1x3x32x32xf32> -> tensor<1x32x32x3xf32>
  %c = prim.conv %n, %f strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x32x32x3xf32>, tensor<3x3x3x8xf32>) -> tensor<1x30x30x8xf32>
  %b = prim.broadcast %z [] : tensor<f32> -> tensor<1x30x30x8xf32>
  %r = prim.max %c, %b : tensor<1x30x30x8xf32>
  %t = prim.transpose %r [0, 3, 1, 2] : tensor<1x30x30x8xf32> -> tensor<1x8x30x30xf32>
  return %t : tensor<1x8x30x30xf32>
}

// Cheap pointwise ops are computed again by each reader, costly ones are not.
// CHECK-LABEL: func.func @recompute
// CHECK: kernel.region
// CHECK: prim.exp
// CHECK: kernel.yield
// CHECK: kernel.region
// CHECK: prim.neg
// CHECK: prim.reduce
// CHECK: kernel.region
// CHECK: prim.neg
// CHECK: prim.sin
// CHECK-NOT: kernel.region
func.func @recompute(%x: tensor<64x32xf32>) -> (tensor<32xf32>, tensor<32x64xf32>) {
  %e = prim.exp %x : tensor<64x32xf32>
  %n = prim.neg %x : tensor<64x32xf32>
  %et = prim.transpose %e [1, 0] : tensor<64x32xf32> -> tensor<32x64xf32>
  %nt = prim.transpose %n [1, 0] : tensor<64x32xf32> -> tensor<32x64xf32>
  %es = prim.reduce sum %e [0] : tensor<64x32xf32> -> tensor<32xf32>
  %ns = prim.reduce sum %n [0] : tensor<64x32xf32> -> tensor<32xf32>
  %s = prim.mul %es, %ns : tensor<32xf32>
  %m = prim.mul %et, %nt : tensor<32x64xf32>
  %t = prim.sin %m : tensor<32x64xf32>
  return %s, %t : tensor<32xf32>, tensor<32x64xf32>
}

// Control flow: inner blocks are fused on their own; outer values and constants cross.
// CHECK-LABEL: func.func @branches
// CHECK: %[[A:.*]] = kernel.region
// CHECK: prim.if
// CHECK: kernel.region(%{{.*}} = %[[A]]
// CHECK: prim.yield
// CHECK: else
// CHECK: kernel.region(%{{.*}} = %[[A]]
// CHECK: prim.yield
func.func @branches(%c: tensor<i1>, %x: tensor<256xf32>) -> tensor<256xf32> {
  %e = prim.exp %x : tensor<256xf32>
  %one = prim.constant dense<1.0> : tensor<f32>
  %ones = prim.broadcast %one [] : tensor<f32> -> tensor<256xf32>
  %r = prim.if %c : tensor<i1> -> (tensor<256xf32>) {
    %a = prim.add %e, %ones : tensor<256xf32>
    prim.yield %a : tensor<256xf32>
  } else {
    %s = prim.sub %e, %e : tensor<256xf32>
    %t = prim.tanh %s : tensor<256xf32>
    prim.yield %t : tensor<256xf32>
  }
  return %r : tensor<256xf32>
}

// Who uses a size that depends on data comes after the op that defines it.
// CHECK-LABEL: func.func @data_dependent
// CHECK: kernel.region
// CHECK: prim.bind_symbol
// CHECK: kernel.region
func.func @data_dependent(%x: tensor<64xf32>, %n: tensor<i64>) -> tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>> attributes {prim.symbols = [#prim.symbol<"n", 0, 64, 1>]} {
  %m = prim.add %n, %n : tensor<i64>
  prim.bind_symbol %m to 0 : tensor<i64>
  %s = prim.slice %x from affine_map<() -> (0)> step [1] : tensor<64xf32> -> tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>
  %e = prim.exp %s : tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>
  return %e : tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>
}

// What the function returns is in memory: movement ops and generators become regions, reshapes and constants stay.
// CHECK-LABEL: func.func @results
// CHECK: prim.constant
// CHECK: kernel.region
// CHECK: prim.transpose
// CHECK: kernel.region
// CHECK: prim.iota
// CHECK: %[[V:.*]] = prim.reshape
// CHECK: return %{{.*}}, %{{.*}}, %[[V]], %{{.*}}
func.func @results(%x: tensor<4x6xf32>) -> (tensor<6x4xf32>, tensor<8xi64>, tensor<24xf32>, tensor<2xf32>) {
  %t = prim.transpose %x [1, 0] : tensor<4x6xf32> -> tensor<6x4xf32>
  %i = prim.iota axis = 0 : tensor<8xi64>
  %v = prim.reshape %x : tensor<4x6xf32> -> tensor<24xf32>
  %c = prim.constant dense<[1.0, 2.0]> : tensor<2xf32>
  return %t, %i, %v, %c : tensor<6x4xf32>, tensor<8xi64>, tensor<24xf32>, tensor<2xf32>
}

// The names of the model's nodes survive.
// CHECK-LABEL: func.func @names
// CHECK: kernel.region
// CHECK-SAME: nodes = ["/exp", "/neg"]
func.func @names(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = prim.exp %x : tensor<8xf32> loc("/exp")
  %n = prim.neg %e : tensor<8xf32> loc("/neg"("m.onnx":3:0))
  return %n : tensor<8xf32>
}

// A size that data decides is not read before it is bound, although both regions read the same tensor.
// CHECK-LABEL: func.func @bound_size
// CHECK:      kernel.region
// CHECK-NOT:  prim.sizes
// CHECK:      prim.bind_symbol
// CHECK:      kernel.region
// CHECK:      prim.sizes
func.func @bound_size(%x: tensor<3xi64>) -> tensor<3xi64> attributes {prim.symbols = [#prim.symbol<"n", 0, 64, 1>]} {
  %zero = prim.splat 0 : i64 : tensor<3xi64>
  %hit = prim.max %x, %zero : tensor<3xi64>
  %n = prim.reduce prod %hit [0] : tensor<3xi64> -> tensor<i64>
  prim.bind_symbol %n to 0 : tensor<i64>
  %size = prim.sizes affine_map<()[s0] -> (s0)> : tensor<i64>
  %all = prim.broadcast %size [] : tensor<i64> -> tensor<3xi64>
  %y = prim.add %all, %hit : tensor<3xi64>
  return %y : tensor<3xi64>
}

// Bytes that several readers widen are what stands in memory, not what they become.
// CHECK-LABEL: func.func @widened
// CHECK: kernel.region({{.*}}) -> (tensor<8x16x16x32xui8>, tensor<8x16x16xf32>)
// CHECK: kernel.region(%[[BYTES:.*]] = {{.*}} : tensor<8x16x16x32xui8>, {{.*}}) -> (tensor<8x16x16x32xf32>)
// CHECK: %[[WIDE:.*]] = prim.convert %[[BYTES]]
// CHECK: prim.conv %[[WIDE]]
// CHECK: prim.mul %[[WIDE]]
func.func @widened(%x: tensor<8x16x16x32xf32>, %w: tensor<3x3x1x32xf32>) -> (tensor<8x16x16x32xf32>, tensor<8x16x16xf32>) {
  %0 = prim.round %x : tensor<8x16x16x32xf32>
  %1 = prim.convert %0 : tensor<8x16x16x32xf32> -> tensor<8x16x16x32xui8>
  %2 = prim.convert %1 : tensor<8x16x16x32xui8> -> tensor<8x16x16x32xf32>
  %3 = prim.conv %2, %w strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 32 : (tensor<8x16x16x32xf32>, tensor<3x3x1x32xf32>) -> tensor<8x16x16x32xf32>
  %s = prim.splat 0.5 : f32 : tensor<8x16x16x32xf32>
  %4 = prim.mul %2, %s : tensor<8x16x16x32xf32>
  %5 = prim.add %3, %4 : tensor<8x16x16x32xf32>
  %6 = prim.reduce max %4 [3] : tensor<8x16x16x32xf32> -> tensor<8x16x16xf32>
  return %5, %6 : tensor<8x16x16x32xf32>, tensor<8x16x16xf32>
}

// Rows of bf16 are rounded by a kernel of their own, not by each task that copies them; columns by the one that packs them.
// CHECK-LABEL: func.func @rounded_rows
// CHECK: %[[X:[0-9]+]] = kernel.region({{.*}}) -> (tensor<64x96xbf16>)
// CHECK: kernel.region(%{{[a-z0-9]+}} = %arg1 : tensor<96x40xf32>, %{{[a-z0-9]+}} = %[[X]] : tensor<64x96xbf16>)
// CHECK: prim.convert {{.*}} : tensor<96x40xf32> -> tensor<96x40xbf16>
// CHECK: prim.dot_general
func.func @rounded_rows(%x: tensor<64x96xf32>, %w: tensor<96x40xf32>) -> tensor<64x40xf32> {
  %0 = prim.convert %x : tensor<64x96xf32> -> tensor<64x96xbf16>
  %1 = prim.convert %w : tensor<96x40xf32> -> tensor<96x40xbf16>
  %2 = prim.dot_general %0, %1 batch [] x [] contract [1] x [0] : (tensor<64x96xbf16>, tensor<96x40xbf16>) -> tensor<64x40xf32>
  return %2 : tensor<64x40xf32>
}

// A row of which the neighbours lie apart, read by all rows: it is turned once. One that each reader reads once is not.
// CHECK-LABEL: func.func @row_for_all_rows
// CHECK: %[[ROW:[0-9]+]] = kernel.region({{.*}} : tensor<256x4xf32>) -> (tensor<4x256xf32>)
// CHECK-NEXT: prim.transpose
// CHECK: kernel.region({{.*}}%[[ROW]]
// CHECK-NOT: prim.transpose
// CHECK: kernel.region
// CHECK-NEXT: prim.transpose
// CHECK-NEXT: prim.exp
func.func @row_for_all_rows(%x: tensor<4x256x256xf32>, %r: tensor<256x4xf32>, %s: tensor<256x512xf32>) -> (tensor<4x256x256xf32>, tensor<512x256xf32>) {
  %0 = prim.transpose %r [1, 0] : tensor<256x4xf32> -> tensor<4x256xf32>
  %1 = prim.broadcast %0 [0, 2] : tensor<4x256xf32> -> tensor<4x256x256xf32>
  %2 = prim.add %x, %1 : tensor<4x256x256xf32>
  %3 = prim.transpose %s [1, 0] : tensor<256x512xf32> -> tensor<512x256xf32>
  %4 = prim.exp %3 : tensor<512x256xf32>
  return %2, %4 : tensor<4x256x256xf32>, tensor<512x256xf32>
}

// Channels for all pixels: a convolution and a pool of 8 channels and more read their input turned, and what turns a result's innermost
// dim stands behind the convolution. Three channels are gathered, but for patches that do not overlap.
// CHECK-LABEL: func.func @images
// CHECK: %[[IMAGE:[0-9]+]] = kernel.region({{.*}} : tensor<1x32x8x8xf32>) -> (tensor<1x8x8x32xf32>)
// CHECK-NEXT: prim.transpose
// CHECK: %[[CONV:[0-9]+]] = kernel.region({{.*}}%[[IMAGE]]
// CHECK-NEXT: prim.conv
// CHECK: kernel.region({{.*}}%[[IMAGE]]
// CHECK-NEXT: prim.window_reduce
// CHECK: kernel.region({{.*}}%[[CONV]]
// CHECK-NEXT: prim.transpose
func.func @images(%x: tensor<1x32x8x8xf32>, %w: tensor<3x3x32x16xf32>) -> (tensor<1x16x8x8xf32>, tensor<1x4x4x32xf32>) {
  %0 = prim.transpose %x [0, 2, 3, 1] : tensor<1x32x8x8xf32> -> tensor<1x8x8x32xf32>
  %1 = prim.conv %0, %w strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x8x8x32xf32>, tensor<3x3x32x16xf32>) -> tensor<1x8x8x16xf32>
  %2 = prim.window_reduce max %0 window [2, 2] strides [2, 2] dilations [1, 1] low [0, 0] : tensor<1x8x8x32xf32> -> tensor<1x4x4x32xf32>
  %3 = prim.transpose %1 [0, 3, 1, 2] : tensor<1x8x8x16xf32> -> tensor<1x16x8x8xf32>
  return %3, %2 : tensor<1x16x8x8xf32>, tensor<1x4x4x32xf32>
}

// CHECK-LABEL: func.func @three_channels
// CHECK: kernel.region
// CHECK-NEXT: prim.transpose
// CHECK-NEXT: prim.conv
// CHECK: kernel.region
// CHECK-NEXT: prim.transpose
// CHECK-NEXT: kernel.yield
// CHECK: kernel.region
// CHECK-NEXT: prim.conv
func.func @three_channels(%x: tensor<1x3x32x32xf32>, %y: tensor<1x3x64x32xf32>, %w: tensor<3x3x3x16xf32>, %v: tensor<4x4x3x16xf32>) -> (tensor<1x30x30x16xf32>, tensor<1x16x8x16xf32>) {
  %0 = prim.transpose %x [0, 2, 3, 1] : tensor<1x3x32x32xf32> -> tensor<1x32x32x3xf32>
  %1 = prim.conv %0, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x32x32x3xf32>, tensor<3x3x3x16xf32>) -> tensor<1x30x30x16xf32>
  %2 = prim.transpose %y [0, 2, 3, 1] : tensor<1x3x64x32xf32> -> tensor<1x64x32x3xf32>
  %3 = prim.conv %2, %v strides [4, 4] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x64x32x3xf32>, tensor<4x4x3x16xf32>) -> tensor<1x16x8x16xf32>
  return %1, %3 : tensor<1x30x30x16xf32>, tensor<1x16x8x16xf32>
}

// A group's value for each of its channels, read by all pixels: it is repeated once.
// CHECK-LABEL: func.func @groups
// CHECK: kernel.region({{.*}} : tensor<4x8xf32>) -> (tensor<4x8x8xf32>)
// CHECK-NEXT: prim.broadcast
// CHECK: kernel.region
// CHECK-NOT: tensor<4x8x8xf32>
// CHECK: prim.mul
func.func @groups(%x: tensor<4x56x56x64xf32>, %s: tensor<4x8xf32>) -> tensor<4x56x56x64xf32> {
  %0 = prim.broadcast %s [0, 1] : tensor<4x8xf32> -> tensor<4x8x8xf32>
  %1 = prim.reshape %0 : tensor<4x8x8xf32> -> tensor<4x64xf32>
  %2 = prim.broadcast %1 [0, 3] : tensor<4x64xf32> -> tensor<4x56x56x64xf32>
  %3 = prim.mul %x, %2 : tensor<4x56x56x64xf32>
  return %3 : tensor<4x56x56x64xf32>
}

// Slices of channels that lie apart: the image is turned once, unless few are gathered.
// CHECK-LABEL: func.func @gathered_slices
// CHECK: kernel.region({{.*}} : tensor<2x16x6x6xf32>) -> (tensor<2x6x6x16xf32>)
// CHECK-NEXT: prim.transpose
// CHECK-NEXT: kernel.yield
// CHECK: kernel.region({{.*}} : tensor<2x6x6x16xf32>
// CHECK-NEXT: prim.gather_nd
// CHECK: kernel.region({{.*}} : tensor<2x16x6x6xf32>
// CHECK-NEXT: prim.transpose
// CHECK-NEXT: prim.gather_nd
func.func @gathered_slices(%x: tensor<2x16x6x6xf32>, %z: tensor<2x16x6x6xf32>, %i: tensor<2x40x2xi64>, %j: tensor<2x4x2xi64>) -> (tensor<2x40x16xf32>, tensor<2x4x16xf32>) {
  %0 = prim.transpose %x [0, 2, 3, 1] : tensor<2x16x6x6xf32> -> tensor<2x6x6x16xf32>
  %1 = prim.gather_nd %0[%i] batch_dims = 1 : (tensor<2x6x6x16xf32>, tensor<2x40x2xi64>) -> tensor<2x40x16xf32>
  %2 = prim.exp %1 : tensor<2x40x16xf32>
  %3 = prim.transpose %z [0, 2, 3, 1] : tensor<2x16x6x6xf32> -> tensor<2x6x6x16xf32>
  %4 = prim.gather_nd %3[%j] batch_dims = 1 : (tensor<2x6x6x16xf32>, tensor<2x4x2xi64>) -> tensor<2x4x16xf32>
  %5 = prim.exp %4 : tensor<2x4x16xf32>
  return %2, %5 : tensor<2x40x16xf32>, tensor<2x4x16xf32>
}

// A residual that lies channels first: what adds it turns the convolution's result, which is stored as it is made.
// CHECK-LABEL: func.func @residual_transposed
// CHECK: kernel.region
// CHECK: prim.conv
// CHECK-NEXT: kernel.yield
// CHECK: kernel.region
// CHECK: prim.transpose
// CHECK-NEXT: prim.add
func.func @residual_transposed(%x: tensor<1x16x20x20xf32>, %a: tensor<1x20x20x16xf32>, %w: tensor<1x1x16x16xf32>) -> tensor<1x16x20x20xf32> {
  %0 = prim.conv %a, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x20x20x16xf32>, tensor<1x1x16x16xf32>) -> tensor<1x20x20x16xf32>
  %1 = prim.transpose %0 [0, 3, 1, 2] : tensor<1x20x20x16xf32> -> tensor<1x16x20x20xf32>
  %2 = prim.add %x, %1 : tensor<1x16x20x20xf32>
  return %2 : tensor<1x16x20x20xf32>
}

// A convolution with few channels in its result runs along the lines of the image: what turns its input and its result is part of it.
// CHECK-LABEL: func.func @few_channels
// CHECK: kernel.region(%{{[a-z0-9]+}} = %arg0 : tensor<1x24x40x40xf32>
// CHECK-SAME: -> (tensor<1x3x40x40xf32>)
// CHECK-NOT: kernel.region
func.func @few_channels(%x: tensor<1x24x40x40xf32>, %w: tensor<3x3x24x3xf32>) -> tensor<1x3x40x40xf32> {
  %t = prim.transpose %x [0, 2, 3, 1] : tensor<1x24x40x40xf32> -> tensor<1x40x40x24xf32>
  %c = prim.conv %t, %w strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x40x40x24xf32>, tensor<3x3x24x3xf32>) -> tensor<1x40x40x3xf32>
  %a = prim.tanh %c : tensor<1x40x40x3xf32>
  %y = prim.transpose %a [0, 3, 1, 2] : tensor<1x40x40x3xf32> -> tensor<1x3x40x40xf32>
  return %y : tensor<1x3x40x40xf32>
}

// With more of them, both are regions of their own.
// CHECK-LABEL: func.func @more_channels
// CHECK-COUNT-3: kernel.region
func.func @more_channels(%x: tensor<1x24x40x40xf32>, %w: tensor<3x3x24x9xf32>) -> tensor<1x9x40x40xf32> {
  %t = prim.transpose %x [0, 2, 3, 1] : tensor<1x24x40x40xf32> -> tensor<1x40x40x24xf32>
  %c = prim.conv %t, %w strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x40x40x24xf32>, tensor<3x3x24x9xf32>) -> tensor<1x40x40x9xf32>
  %a = prim.tanh %c : tensor<1x40x40x9xf32>
  %y = prim.transpose %a [0, 3, 1, 2] : tensor<1x40x40x9xf32> -> tensor<1x9x40x40xf32>
  return %y : tensor<1x9x40x40xf32>
}

// A coordinate of each box, which all pairs of boxes read along the lanes, is made once.
// CHECK-LABEL: func.func @coordinate
// CHECK: kernel.region
// CHECK-SAME: -> (tensor<300x1xf32>)
// CHECK: kernel.region
// CHECK-SAME: -> (tensor<300x300xf32>)
func.func @coordinate(%x: tensor<300x4xf32>, %z: tensor<300x300xf32>) -> tensor<300x300xf32> {
  %s = prim.slice %x from affine_map<() -> (0, 2)> step [1, 1] : tensor<300x4xf32> -> tensor<300x1xf32>
  %r = prim.reshape %s : tensor<300x1xf32> -> tensor<300xf32>
  %b = prim.broadcast %r [1] : tensor<300xf32> -> tensor<300x300xf32>
  %y = prim.max %b, %z : tensor<300x300xf32>
  return %y : tensor<300x300xf32>
}

// A diagonal that all rows read along the lanes is gathered once.
// CHECK-LABEL: func.func @diagonal
// CHECK: kernel.region
// CHECK-SAME: -> (tensor<300xf32>)
// CHECK: kernel.region
// CHECK-SAME: -> (tensor<300x300xf32>)
func.func @diagonal(%x: tensor<90000xf32>, %z: tensor<300x300xf32>) -> tensor<300x300xf32> {
  %s = prim.slice %x from affine_map<() -> (0)> step [301] : tensor<90000xf32> -> tensor<300xf32>
  %b = prim.broadcast %s [1] : tensor<300xf32> -> tensor<300x300xf32>
  %y = prim.max %b, %z : tensor<300x300xf32>
  return %y : tensor<300x300xf32>
}

// The exponentials of two of 66 channels: all lanes of a row would compute them, and most for nothing. A sum they may repeat.
// CHECK-LABEL: func.func @part_of_concat
// CHECK: kernel.region({{.*}}-> (tensor<400x2xf32>)
// CHECK-NEXT: prim.exp
// CHECK-NEXT: kernel.yield
// CHECK: kernel.region({{.*}}-> (tensor<400x66xf32>)
// CHECK-NOT: kernel.region
func.func @part_of_concat(%x: tensor<400x64xf32>, %y: tensor<400x2xf32>) -> tensor<400x66xf32> {
  %e = prim.exp %y : tensor<400x2xf32>
  %c = prim.concat %x, %e axis = 1 : (tensor<400x64xf32>, tensor<400x2xf32>) -> tensor<400x66xf32>
  return %c : tensor<400x66xf32>
}

// CHECK-LABEL: func.func @cheap_part_of_concat
// CHECK-COUNT-1: kernel.region
// CHECK-NOT: kernel.region
func.func @cheap_part_of_concat(%x: tensor<400x64xf32>, %y: tensor<400x2xf32>) -> tensor<400x66xf32> {
  %e = prim.add %y, %y : tensor<400x2xf32>
  %c = prim.concat %x, %e axis = 1 : (tensor<400x64xf32>, tensor<400x2xf32>) -> tensor<400x66xf32>
  return %c : tensor<400x66xf32>
}

// A sum of many gathered slices, whose channels a concat has across its rows (an adaptive pool before channels first): lanes along the
// rows would gather element by element. Of a few they may.
// CHECK-LABEL: func.func @many_slices
// CHECK: kernel.region({{.*}}-> (tensor<20x64xf32>)
// CHECK-NOT: prim.concat
// CHECK: kernel.yield
// CHECK: kernel.region({{.*}}-> (tensor<64x29xf32>)
// CHECK-NOT: prim.add
// CHECK: prim.concat
// CHECK-NOT: kernel.region
func.func @many_slices(%x: tensor<90x64xf32>, %i: tensor<20x10xi64>, %y: tensor<64x9xf32>) -> tensor<64x29xf32> {
  %g = prim.gather %x[%i] axis = 0 : (tensor<90x64xf32>, tensor<20x10xi64>) -> tensor<20x10x64xf32>
  %s0 = prim.slice %g from affine_map<() -> (0, 0, 0)> step [1, 1, 1] : tensor<20x10x64xf32> -> tensor<20x1x64xf32>
  %r0 = prim.reshape %s0 : tensor<20x1x64xf32> -> tensor<20x64xf32>
  %s1 = prim.slice %g from affine_map<() -> (0, 1, 0)> step [1, 1, 1] : tensor<20x10x64xf32> -> tensor<20x1x64xf32>
  %r1 = prim.reshape %s1 : tensor<20x1x64xf32> -> tensor<20x64xf32>
  %s2 = prim.slice %g from affine_map<() -> (0, 2, 0)> step [1, 1, 1] : tensor<20x10x64xf32> -> tensor<20x1x64xf32>
  %r2 = prim.reshape %s2 : tensor<20x1x64xf32> -> tensor<20x64xf32>
  %s3 = prim.slice %g from affine_map<() -> (0, 3, 0)> step [1, 1, 1] : tensor<20x10x64xf32> -> tensor<20x1x64xf32>
  %r3 = prim.reshape %s3 : tensor<20x1x64xf32> -> tensor<20x64xf32>
  %s4 = prim.slice %g from affine_map<() -> (0, 4, 0)> step [1, 1, 1] : tensor<20x10x64xf32> -> tensor<20x1x64xf32>
  %r4 = prim.reshape %s4 : tensor<20x1x64xf32> -> tensor<20x64xf32>
  %s5 = prim.slice %g from affine_map<() -> (0, 5, 0)> step [1, 1, 1] : tensor<20x10x64xf32> -> tensor<20x1x64xf32>
  %r5 = prim.reshape %s5 : tensor<20x1x64xf32> -> tensor<20x64xf32>
  %s6 = prim.slice %g from affine_map<() -> (0, 6, 0)> step [1, 1, 1] : tensor<20x10x64xf32> -> tensor<20x1x64xf32>
  %r6 = prim.reshape %s6 : tensor<20x1x64xf32> -> tensor<20x64xf32>
  %s7 = prim.slice %g from affine_map<() -> (0, 7, 0)> step [1, 1, 1] : tensor<20x10x64xf32> -> tensor<20x1x64xf32>
  %r7 = prim.reshape %s7 : tensor<20x1x64xf32> -> tensor<20x64xf32>
  %s8 = prim.slice %g from affine_map<() -> (0, 8, 0)> step [1, 1, 1] : tensor<20x10x64xf32> -> tensor<20x1x64xf32>
  %r8 = prim.reshape %s8 : tensor<20x1x64xf32> -> tensor<20x64xf32>
  %s9 = prim.slice %g from affine_map<() -> (0, 9, 0)> step [1, 1, 1] : tensor<20x10x64xf32> -> tensor<20x1x64xf32>
  %r9 = prim.reshape %s9 : tensor<20x1x64xf32> -> tensor<20x64xf32>
  %a1 = prim.add %r0, %r1 : tensor<20x64xf32>
  %a2 = prim.add %a1, %r2 : tensor<20x64xf32>
  %a3 = prim.add %a2, %r3 : tensor<20x64xf32>
  %a4 = prim.add %a3, %r4 : tensor<20x64xf32>
  %a5 = prim.add %a4, %r5 : tensor<20x64xf32>
  %a6 = prim.add %a5, %r6 : tensor<20x64xf32>
  %a7 = prim.add %a6, %r7 : tensor<20x64xf32>
  %a8 = prim.add %a7, %r8 : tensor<20x64xf32>
  %a9 = prim.add %a8, %r9 : tensor<20x64xf32>
  %t = prim.transpose %a9 [1, 0] : tensor<20x64xf32> -> tensor<64x20xf32>
  %c = prim.concat %t, %y axis = 1 : (tensor<64x20xf32>, tensor<64x9xf32>) -> tensor<64x29xf32>
  return %c : tensor<64x29xf32>
}

// CHECK-LABEL: func.func @few_slices
// CHECK-COUNT-1: kernel.region
// CHECK-NOT: kernel.region
func.func @few_slices(%x: tensor<90x64xf32>, %i: tensor<20x3xi64>, %y: tensor<64x9xf32>) -> tensor<64x29xf32> {
  %g = prim.gather %x[%i] axis = 0 : (tensor<90x64xf32>, tensor<20x3xi64>) -> tensor<20x3x64xf32>
  %s0 = prim.slice %g from affine_map<() -> (0, 0, 0)> step [1, 1, 1] : tensor<20x3x64xf32> -> tensor<20x1x64xf32>
  %r0 = prim.reshape %s0 : tensor<20x1x64xf32> -> tensor<20x64xf32>
  %s1 = prim.slice %g from affine_map<() -> (0, 1, 0)> step [1, 1, 1] : tensor<20x3x64xf32> -> tensor<20x1x64xf32>
  %r1 = prim.reshape %s1 : tensor<20x1x64xf32> -> tensor<20x64xf32>
  %s2 = prim.slice %g from affine_map<() -> (0, 2, 0)> step [1, 1, 1] : tensor<20x3x64xf32> -> tensor<20x1x64xf32>
  %r2 = prim.reshape %s2 : tensor<20x1x64xf32> -> tensor<20x64xf32>
  %a1 = prim.add %r0, %r1 : tensor<20x64xf32>
  %a2 = prim.add %a1, %r2 : tensor<20x64xf32>
  %t = prim.transpose %a2 [1, 0] : tensor<20x64xf32> -> tensor<64x20xf32>
  %c = prim.concat %t, %y axis = 1 : (tensor<64x20xf32>, tensor<64x9xf32>) -> tensor<64x29xf32>
  return %c : tensor<64x29xf32>
}

// Of rows that are shorter than a vector lanes hold several; and few elements are not worth a launch of their own.
// CHECK-LABEL: func.func @part_of_short_concat
// CHECK-COUNT-2: kernel.region
// CHECK-NOT: kernel.region
func.func @part_of_short_concat(%x: tensor<900x5xf32>, %y: tensor<900x2xf32>, %z: tensor<60x64xf32>, %w: tensor<60x2xf32>) -> (tensor<900x7xf32>, tensor<60x66xf32>) {
  %e = prim.exp %y : tensor<900x2xf32>
  %c = prim.concat %x, %e axis = 1 : (tensor<900x5xf32>, tensor<900x2xf32>) -> tensor<900x7xf32>
  %f = prim.exp %w : tensor<60x2xf32>
  %d = prim.concat %z, %f axis = 1 : (tensor<60x64xf32>, tensor<60x2xf32>) -> tensor<60x66xf32>
  return %c, %d : tensor<900x7xf32>, tensor<60x66xf32>
}

// Each value is read at two places by the next: some are stored, or the first would be computed 2^5 times.
// CHECK-LABEL: func.func @doubling
// CHECK-COUNT-3: kernel.region
// CHECK-NOT: kernel.region
func.func @doubling(%x0: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %low = prim.constant dense<-1.0e+30> : tensor<f32>
  %s0 = prim.slice %x0 from affine_map<() -> (0, 0)> step [1, 1] : tensor<8x64xf32> -> tensor<8x63xf32>
  %p0 = prim.pad %s0, %low low affine_map<() -> (0, 1)> : (tensor<8x63xf32>, tensor<f32>) -> tensor<8x64xf32>
  %x1 = prim.max %x0, %p0 : tensor<8x64xf32>
  %s1 = prim.slice %x1 from affine_map<() -> (0, 0)> step [1, 1] : tensor<8x64xf32> -> tensor<8x62xf32>
  %p1 = prim.pad %s1, %low low affine_map<() -> (0, 2)> : (tensor<8x62xf32>, tensor<f32>) -> tensor<8x64xf32>
  %x2 = prim.max %x1, %p1 : tensor<8x64xf32>
  %s2 = prim.slice %x2 from affine_map<() -> (0, 0)> step [1, 1] : tensor<8x64xf32> -> tensor<8x60xf32>
  %p2 = prim.pad %s2, %low low affine_map<() -> (0, 4)> : (tensor<8x60xf32>, tensor<f32>) -> tensor<8x64xf32>
  %x3 = prim.max %x2, %p2 : tensor<8x64xf32>
  %s3 = prim.slice %x3 from affine_map<() -> (0, 0)> step [1, 1] : tensor<8x64xf32> -> tensor<8x56xf32>
  %p3 = prim.pad %s3, %low low affine_map<() -> (0, 8)> : (tensor<8x56xf32>, tensor<f32>) -> tensor<8x64xf32>
  %x4 = prim.max %x3, %p3 : tensor<8x64xf32>
  %s4 = prim.slice %x4 from affine_map<() -> (0, 0)> step [1, 1] : tensor<8x64xf32> -> tensor<8x48xf32>
  %p4 = prim.pad %s4, %low low affine_map<() -> (0, 16)> : (tensor<8x48xf32>, tensor<f32>) -> tensor<8x64xf32>
  %x5 = prim.max %x4, %p4 : tensor<8x64xf32>
  return %x5 : tensor<8x64xf32>
}

// Positions of samples of one channel are computed where the samples are gathered.
// CHECK-LABEL: func.func @samples
// CHECK: kernel.region
// CHECK-NOT: kernel.region
// CHECK: return
func.func @samples(%x: tensor<2x30x40xf32>, %p: tensor<2x50x60xf32>, %q: tensor<2x50x60xf32>) -> tensor<2x50x60xf32> {
  %n = prim.convert %p : tensor<2x50x60xf32> -> tensor<2x50x60xi64>
  %m = prim.convert %q : tensor<2x50x60xf32> -> tensor<2x50x60xi64>
  %one = prim.splat 1 : i64 : tensor<2x50x60xi64>
  %o = prim.add %m, %one : tensor<2x50x60xi64>
  %nr = prim.reshape %n : tensor<2x50x60xi64> -> tensor<2x50x60x1xi64>
  %mr = prim.reshape %m : tensor<2x50x60xi64> -> tensor<2x50x60x1xi64>
  %or = prim.reshape %o : tensor<2x50x60xi64> -> tensor<2x50x60x1xi64>
  %i = prim.concat %nr, %mr axis = 3 : (tensor<2x50x60x1xi64>, tensor<2x50x60x1xi64>) -> tensor<2x50x60x2xi64>
  %j = prim.concat %nr, %or axis = 3 : (tensor<2x50x60x1xi64>, tensor<2x50x60x1xi64>) -> tensor<2x50x60x2xi64>
  %a = prim.gather_nd %x[%i] batch_dims = 1 : (tensor<2x30x40xf32>, tensor<2x50x60x2xi64>) -> tensor<2x50x60xf32>
  %b = prim.gather_nd %x[%j] batch_dims = 1 : (tensor<2x30x40xf32>, tensor<2x50x60x2xi64>) -> tensor<2x50x60xf32>
  %r = prim.sub %a, %b : tensor<2x50x60xf32>
  return %r : tensor<2x50x60xf32>
}

// A running maximum by doubling: the concat that has three others within it, and is read by several ops, is made once.
// CHECK-LABEL: func.func @running
// CHECK: %[[X:.*]] = kernel.region({{.*}}) -> (tensor<4x96xf32>)
// CHECK: kernel.region(%{{.*}} = %[[X]] : tensor<4x96xf32>
// CHECK-NOT: kernel.region
// CHECK: return
func.func @running(%x0: tensor<4x96xf32>) -> tensor<4x96xf32> {
  %a0 = prim.slice %x0 from affine_map<() -> (0, 0)> step [1, 1] : tensor<4x96xf32> -> tensor<4x1xf32>
  %b0 = prim.slice %x0 from affine_map<() -> (0, 1)> step [1, 1] : tensor<4x96xf32> -> tensor<4x95xf32>
  %c0 = prim.slice %x0 from affine_map<() -> (0, 0)> step [1, 1] : tensor<4x96xf32> -> tensor<4x95xf32>
  %m0 = prim.max %b0, %c0 : tensor<4x95xf32>
  %x1 = prim.concat %a0, %m0 axis = 1 : (tensor<4x1xf32>, tensor<4x95xf32>) -> tensor<4x96xf32>
  %a1 = prim.slice %x1 from affine_map<() -> (0, 0)> step [1, 1] : tensor<4x96xf32> -> tensor<4x2xf32>
  %b1 = prim.slice %x1 from affine_map<() -> (0, 2)> step [1, 1] : tensor<4x96xf32> -> tensor<4x94xf32>
  %c1 = prim.slice %x1 from affine_map<() -> (0, 0)> step [1, 1] : tensor<4x96xf32> -> tensor<4x94xf32>
  %m1 = prim.max %b1, %c1 : tensor<4x94xf32>
  %x2 = prim.concat %a1, %m1 axis = 1 : (tensor<4x2xf32>, tensor<4x94xf32>) -> tensor<4x96xf32>
  %a2 = prim.slice %x2 from affine_map<() -> (0, 0)> step [1, 1] : tensor<4x96xf32> -> tensor<4x4xf32>
  %b2 = prim.slice %x2 from affine_map<() -> (0, 4)> step [1, 1] : tensor<4x96xf32> -> tensor<4x92xf32>
  %c2 = prim.slice %x2 from affine_map<() -> (0, 0)> step [1, 1] : tensor<4x96xf32> -> tensor<4x92xf32>
  %m2 = prim.max %b2, %c2 : tensor<4x92xf32>
  %x3 = prim.concat %a2, %m2 axis = 1 : (tensor<4x4xf32>, tensor<4x92xf32>) -> tensor<4x96xf32>
  %a3 = prim.slice %x3 from affine_map<() -> (0, 0)> step [1, 1] : tensor<4x96xf32> -> tensor<4x8xf32>
  %b3 = prim.slice %x3 from affine_map<() -> (0, 8)> step [1, 1] : tensor<4x96xf32> -> tensor<4x88xf32>
  %c3 = prim.slice %x3 from affine_map<() -> (0, 0)> step [1, 1] : tensor<4x96xf32> -> tensor<4x88xf32>
  %m3 = prim.max %b3, %c3 : tensor<4x88xf32>
  %x4 = prim.concat %a3, %m3 axis = 1 : (tensor<4x8xf32>, tensor<4x88xf32>) -> tensor<4x96xf32>
  %a4 = prim.slice %x4 from affine_map<() -> (0, 0)> step [1, 1] : tensor<4x96xf32> -> tensor<4x16xf32>
  %b4 = prim.slice %x4 from affine_map<() -> (0, 16)> step [1, 1] : tensor<4x96xf32> -> tensor<4x80xf32>
  %c4 = prim.slice %x4 from affine_map<() -> (0, 0)> step [1, 1] : tensor<4x96xf32> -> tensor<4x80xf32>
  %m4 = prim.max %b4, %c4 : tensor<4x80xf32>
  %x5 = prim.concat %a4, %m4 axis = 1 : (tensor<4x16xf32>, tensor<4x80xf32>) -> tensor<4x96xf32>
  return %x5 : tensor<4x96xf32>
}

// Few channels to many between images that lie channels first: the result is turned where it is stored. Of many channels it is turned by a
// kernel of its own.
// CHECK-LABEL: func.func @first_layer
// CHECK: kernel.region
// CHECK: prim.conv
// CHECK: prim.transpose
// CHECK: kernel.yield {{.*}} : tensor<1x40x100x96xf32>
// CHECK: kernel.region
// CHECK: prim.conv
// CHECK: kernel.yield {{.*}} : tensor<1x100x96x40xf32>
// CHECK: kernel.region
// CHECK: prim.transpose
func.func @first_layer(%x: tensor<1x3x100x96xf32>, %z: tensor<1x100x96x32xf32>) -> (tensor<1x40x100x96xf32>, tensor<1x40x100x96xf32>) {
  %w = prim.constant dense<1.0> : tensor<3x3x3x40xf32>
  %v = prim.constant dense<1.0> : tensor<3x3x32x40xf32>
  %t = prim.transpose %x [0, 2, 3, 1] : tensor<1x3x100x96xf32> -> tensor<1x100x96x3xf32>
  %c = prim.conv %t, %w strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x100x96x3xf32>, tensor<3x3x3x40xf32>) -> tensor<1x100x96x40xf32>
  %r = prim.tanh %c : tensor<1x100x96x40xf32>
  %y = prim.transpose %r [0, 3, 1, 2] : tensor<1x100x96x40xf32> -> tensor<1x40x100x96xf32>
  %d = prim.conv %z, %v strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x100x96x32xf32>, tensor<3x3x32x40xf32>) -> tensor<1x100x96x40xf32>
  %u = prim.transpose %d [0, 3, 1, 2] : tensor<1x100x96x40xf32> -> tensor<1x40x100x96xf32>
  return %y, %u : tensor<1x40x100x96xf32>, tensor<1x40x100x96xf32>
}

// Of many movement ops in a row one is made on the way: no region holds them all.
// CHECK-LABEL: func.func @many_in_a_row
// CHECK: kernel.region
// CHECK: kernel.region
// CHECK: return
func.func @many_in_a_row(%v0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %v1 = prim.slice %v0 from affine_map<() -> (7, 0)> step [-1, 1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v2 = prim.slice %v1 from affine_map<() -> (0, 7)> step [1, -1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v3 = prim.slice %v2 from affine_map<() -> (7, 0)> step [-1, 1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v4 = prim.slice %v3 from affine_map<() -> (0, 7)> step [1, -1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v5 = prim.slice %v4 from affine_map<() -> (7, 0)> step [-1, 1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v6 = prim.slice %v5 from affine_map<() -> (0, 7)> step [1, -1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v7 = prim.slice %v6 from affine_map<() -> (7, 0)> step [-1, 1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v8 = prim.slice %v7 from affine_map<() -> (0, 7)> step [1, -1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v9 = prim.slice %v8 from affine_map<() -> (7, 0)> step [-1, 1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v10 = prim.slice %v9 from affine_map<() -> (0, 7)> step [1, -1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v11 = prim.slice %v10 from affine_map<() -> (7, 0)> step [-1, 1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v12 = prim.slice %v11 from affine_map<() -> (0, 7)> step [1, -1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v13 = prim.slice %v12 from affine_map<() -> (7, 0)> step [-1, 1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v14 = prim.slice %v13 from affine_map<() -> (0, 7)> step [1, -1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v15 = prim.slice %v14 from affine_map<() -> (7, 0)> step [-1, 1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v16 = prim.slice %v15 from affine_map<() -> (0, 7)> step [1, -1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v17 = prim.slice %v16 from affine_map<() -> (7, 0)> step [-1, 1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v18 = prim.slice %v17 from affine_map<() -> (0, 7)> step [1, -1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v19 = prim.slice %v18 from affine_map<() -> (7, 0)> step [-1, 1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v20 = prim.slice %v19 from affine_map<() -> (0, 7)> step [1, -1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v21 = prim.slice %v20 from affine_map<() -> (7, 0)> step [-1, 1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v22 = prim.slice %v21 from affine_map<() -> (0, 7)> step [1, -1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v23 = prim.slice %v22 from affine_map<() -> (7, 0)> step [-1, 1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v24 = prim.slice %v23 from affine_map<() -> (0, 7)> step [1, -1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v25 = prim.slice %v24 from affine_map<() -> (7, 0)> step [-1, 1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v26 = prim.slice %v25 from affine_map<() -> (0, 7)> step [1, -1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v27 = prim.slice %v26 from affine_map<() -> (7, 0)> step [-1, 1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v28 = prim.slice %v27 from affine_map<() -> (0, 7)> step [1, -1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v29 = prim.slice %v28 from affine_map<() -> (7, 0)> step [-1, 1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v30 = prim.slice %v29 from affine_map<() -> (0, 7)> step [1, -1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v31 = prim.slice %v30 from affine_map<() -> (7, 0)> step [-1, 1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v32 = prim.slice %v31 from affine_map<() -> (0, 7)> step [1, -1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v33 = prim.slice %v32 from affine_map<() -> (7, 0)> step [-1, 1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v34 = prim.slice %v33 from affine_map<() -> (0, 7)> step [1, -1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v35 = prim.slice %v34 from affine_map<() -> (7, 0)> step [-1, 1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v36 = prim.slice %v35 from affine_map<() -> (0, 7)> step [1, -1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v37 = prim.slice %v36 from affine_map<() -> (7, 0)> step [-1, 1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v38 = prim.slice %v37 from affine_map<() -> (0, 7)> step [1, -1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v39 = prim.slice %v38 from affine_map<() -> (7, 0)> step [-1, 1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v40 = prim.slice %v39 from affine_map<() -> (0, 7)> step [1, -1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v41 = prim.slice %v40 from affine_map<() -> (7, 0)> step [-1, 1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v42 = prim.slice %v41 from affine_map<() -> (0, 7)> step [1, -1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v43 = prim.slice %v42 from affine_map<() -> (7, 0)> step [-1, 1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v44 = prim.slice %v43 from affine_map<() -> (0, 7)> step [1, -1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v45 = prim.slice %v44 from affine_map<() -> (7, 0)> step [-1, 1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v46 = prim.slice %v45 from affine_map<() -> (0, 7)> step [1, -1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v47 = prim.slice %v46 from affine_map<() -> (7, 0)> step [-1, 1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v48 = prim.slice %v47 from affine_map<() -> (0, 7)> step [1, -1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v49 = prim.slice %v48 from affine_map<() -> (7, 0)> step [-1, 1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v50 = prim.slice %v49 from affine_map<() -> (0, 7)> step [1, -1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v51 = prim.slice %v50 from affine_map<() -> (7, 0)> step [-1, 1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v52 = prim.slice %v51 from affine_map<() -> (0, 7)> step [1, -1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v53 = prim.slice %v52 from affine_map<() -> (7, 0)> step [-1, 1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v54 = prim.slice %v53 from affine_map<() -> (0, 7)> step [1, -1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v55 = prim.slice %v54 from affine_map<() -> (7, 0)> step [-1, 1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v56 = prim.slice %v55 from affine_map<() -> (0, 7)> step [1, -1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v57 = prim.slice %v56 from affine_map<() -> (7, 0)> step [-1, 1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v58 = prim.slice %v57 from affine_map<() -> (0, 7)> step [1, -1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v59 = prim.slice %v58 from affine_map<() -> (7, 0)> step [-1, 1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v60 = prim.slice %v59 from affine_map<() -> (0, 7)> step [1, -1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v61 = prim.slice %v60 from affine_map<() -> (7, 0)> step [-1, 1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v62 = prim.slice %v61 from affine_map<() -> (0, 7)> step [1, -1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v63 = prim.slice %v62 from affine_map<() -> (7, 0)> step [-1, 1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v64 = prim.slice %v63 from affine_map<() -> (0, 7)> step [1, -1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v65 = prim.slice %v64 from affine_map<() -> (7, 0)> step [-1, 1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v66 = prim.slice %v65 from affine_map<() -> (0, 7)> step [1, -1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v67 = prim.slice %v66 from affine_map<() -> (7, 0)> step [-1, 1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v68 = prim.slice %v67 from affine_map<() -> (0, 7)> step [1, -1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v69 = prim.slice %v68 from affine_map<() -> (7, 0)> step [-1, 1] : tensor<8x8xf32> -> tensor<8x8xf32>
  %v70 = prim.slice %v69 from affine_map<() -> (0, 7)> step [1, -1] : tensor<8x8xf32> -> tensor<8x8xf32>
  return %v70 : tensor<8x8xf32>
}

// Reshapes that take dims apart are as much as eight others: eight of them are all that a region walks through.
// CHECK-LABEL: func.func @reshapes_in_a_row
// CHECK: kernel.region
// CHECK: kernel.region
// CHECK-NOT: kernel.region
// CHECK: return
func.func @reshapes_in_a_row(%v0: tensor<6x10xf32>) -> tensor<15x4xf32> {
  %t0 = prim.transpose %v0 [1, 0] : tensor<6x10xf32> -> tensor<10x6xf32>
  %v1 = prim.reshape %t0 : tensor<10x6xf32> -> tensor<4x15xf32>
  %t1 = prim.transpose %v1 [1, 0] : tensor<4x15xf32> -> tensor<15x4xf32>
  %v2 = prim.reshape %t1 : tensor<15x4xf32> -> tensor<6x10xf32>
  %t2 = prim.transpose %v2 [1, 0] : tensor<6x10xf32> -> tensor<10x6xf32>
  %v3 = prim.reshape %t2 : tensor<10x6xf32> -> tensor<4x15xf32>
  %t3 = prim.transpose %v3 [1, 0] : tensor<4x15xf32> -> tensor<15x4xf32>
  %v4 = prim.reshape %t3 : tensor<15x4xf32> -> tensor<6x10xf32>
  %t4 = prim.transpose %v4 [1, 0] : tensor<6x10xf32> -> tensor<10x6xf32>
  %v5 = prim.reshape %t4 : tensor<10x6xf32> -> tensor<4x15xf32>
  %t5 = prim.transpose %v5 [1, 0] : tensor<4x15xf32> -> tensor<15x4xf32>
  %v6 = prim.reshape %t5 : tensor<15x4xf32> -> tensor<6x10xf32>
  %t6 = prim.transpose %v6 [1, 0] : tensor<6x10xf32> -> tensor<10x6xf32>
  %v7 = prim.reshape %t6 : tensor<10x6xf32> -> tensor<4x15xf32>
  %t7 = prim.transpose %v7 [1, 0] : tensor<4x15xf32> -> tensor<15x4xf32>
  %v8 = prim.reshape %t7 : tensor<15x4xf32> -> tensor<6x10xf32>
  %t8 = prim.transpose %v8 [1, 0] : tensor<6x10xf32> -> tensor<10x6xf32>
  %v9 = prim.reshape %t8 : tensor<10x6xf32> -> tensor<4x15xf32>
  %y = prim.transpose %v9 [1, 0] : tensor<4x15xf32> -> tensor<15x4xf32>
  return %y : tensor<15x4xf32>
}

// A splat stands before its first reader in each region, wherever it stood before both: two regions that compute alike
// print alike, and share a kernel.
// CHECK-LABEL: func.func @shared_splat
// CHECK: kernel.region
// CHECK-NEXT: prim.abs
// CHECK-NEXT: prim.splat 2.000000e+00
// CHECK-NEXT: prim.mul
// CHECK: kernel.region
// CHECK-NEXT: prim.abs
// CHECK-NEXT: prim.splat 2.000000e+00
// CHECK-NEXT: prim.mul
func.func @shared_splat(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = prim.abs %x : tensor<4x8xf32>
  %c = prim.splat 2.000000e+00 : f32 : tensor<4x8xf32>
  %b = prim.mul %a, %c : tensor<4x8xf32>
  %r = prim.reduce sum %b [1] : tensor<4x8xf32> -> tensor<4xf32>
  %d = prim.abs %y : tensor<4x8xf32>
  %e = prim.mul %d, %c : tensor<4x8xf32>
  %s = prim.reduce sum %e [1] : tensor<4x8xf32> -> tensor<4xf32>
  return %r, %s : tensor<4xf32>, tensor<4xf32>
}
