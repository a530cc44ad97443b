// Transposes sink and cancel; identities of arithmetic go.
// RUN: tc-opt %s -tc-canonicalize-prim -cse | FileCheck %s

// Between two convolutions of a channels-first model nothing is left, also with a residual sum and a bias per channel.
// CHECK-LABEL: func.func @between_convs
// CHECK: %[[A:.*]] = prim.conv %arg0
// CHECK-NEXT: %[[B:.*]] = prim.broadcast %arg2 [3] : tensor<4xf32> -> tensor<1x8x8x4xf32>
// CHECK-NEXT: %[[C:.*]] = prim.add %[[A]], %[[B]]
// CHECK-NEXT: %[[D:.*]] = prim.add %[[C]], %[[A]]
// CHECK-NEXT: %[[E:.*]] = prim.conv %[[D]]
// CHECK-NEXT: return %[[E]]
func.func @between_convs(%x: tensor<1x8x8x4xf32>, %w: tensor<1x1x4x4xf32>, %b: tensor<4xf32>) -> tensor<1x8x8x4xf32> {
  %0 = prim.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x8x8x4xf32>, tensor<1x1x4x4xf32>) -> tensor<1x8x8x4xf32>
  %1 = prim.transpose %0 [0, 3, 1, 2] : tensor<1x8x8x4xf32> -> tensor<1x4x8x8xf32>
  %2 = prim.reshape %b : tensor<4xf32> -> tensor<1x4x1x1xf32>
  %3 = prim.broadcast %2 [0, 1, 2, 3] : tensor<1x4x1x1xf32> -> tensor<1x4x8x8xf32>
  %4 = prim.add %1, %3 : tensor<1x4x8x8xf32>
  %5 = prim.add %4, %1 : tensor<1x4x8x8xf32>
  %6 = prim.transpose %5 [0, 2, 3, 1] : tensor<1x4x8x8xf32> -> tensor<1x8x8x4xf32>
  %7 = prim.conv %6, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x8x8x4xf32>, tensor<1x1x4x4xf32>) -> tensor<1x8x8x4xf32>
  return %7 : tensor<1x8x8x4xf32>
}

// A value in the other order would need a transpose of its own: nothing moves.
// CHECK-LABEL: func.func @other_operand_is_plain
// CHECK: prim.transpose
// CHECK-NEXT: prim.add
func.func @other_operand_is_plain(%x: tensor<2x3xf32>, %y: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %0 = prim.transpose %x [1, 0] : tensor<2x3xf32> -> tensor<3x2xf32>
  %1 = prim.add %0, %y : tensor<3x2xf32>
  return %1 : tensor<3x2xf32>
}

// Reductions take a transpose in; the mean of a channels-first tensor reads it channels-last.
// CHECK-LABEL: func.func @reduce
// CHECK: prim.reduce sum %arg0 [1, 2] : tensor<2x8x8x4xf32> -> tensor<2x4xf32>
// CHECK-NEXT: return
func.func @reduce(%x: tensor<2x8x8x4xf32>) -> tensor<2x4xf32> {
  %0 = prim.transpose %x [0, 3, 1, 2] : tensor<2x8x8x4xf32> -> tensor<2x4x8x8xf32>
  %1 = prim.reduce sum %0 [2, 3] : tensor<2x4x8x8xf32> -> tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}

// A transposed right side is another contracting dim.
// CHECK-LABEL: func.func @dot
// CHECK: prim.dot_general %arg0, %arg1 batch [0] x [0] contract [2] x [2]
func.func @dot(%x: tensor<2x3x4xf32>, %y: tensor<2x5x4xf32>) -> tensor<2x3x5xf32> {
  %0 = prim.transpose %y [0, 2, 1] : tensor<2x5x4xf32> -> tensor<2x4x5xf32>
  %1 = prim.dot_general %x, %0 batch [0] x [0] contract [2] x [1] : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
  return %1 : tensor<2x3x5xf32>
}

// Division by 4 is exact as a product, division by 3 is not; x^2 is a product.
// CHECK-LABEL: func.func @arithmetic
// CHECK: %[[Q:.*]] = prim.splat 2.500000e-01
// CHECK: %[[A:.*]] = prim.mul %arg0, %[[Q]]
// CHECK: %[[B:.*]] = prim.div %[[A]], %{{.*}}
// CHECK: prim.mul %[[B]], %[[B]]
// CHECK-NEXT: return
func.func @arithmetic(%x: tensor<8xf32>) -> tensor<8xf32> {
  %four = prim.splat 4.0 : f32 : tensor<8xf32>
  %three = prim.splat 3.0 : f32 : tensor<8xf32>
  %two = prim.splat 2.0 : f32 : tensor<8xf32>
  %one = prim.splat 1.0 : f32 : tensor<8xf32>
  %zero = prim.splat 0.0 : f32 : tensor<8xf32>
  %0 = prim.mul %x, %one : tensor<8xf32>
  %1 = prim.add %0, %zero : tensor<8xf32>
  %2 = prim.div %1, %four : tensor<8xf32>
  %3 = prim.div %2, %three : tensor<8xf32>
  %4 = prim.pow %3, %two : tensor<8xf32>
  return %4 : tensor<8xf32>
}

// A product that contracts nothing is elementwise: of an outer product, and of batches only, in another order.
// CHECK-LABEL: func @dot_without_contraction
// CHECK:         %[[A:.*]] = prim.broadcast %arg0 [0] : tensor<2xf32> -> tensor<2x3xf32>
// CHECK:         %[[B:.*]] = prim.broadcast %arg1 [1] : tensor<3xf32> -> tensor<2x3xf32>
// CHECK:         prim.mul %[[A]], %[[B]] : tensor<2x3xf32>
// CHECK:         prim.mul %arg2, %arg2
// CHECK-NOT:     prim.dot_general
func.func @dot_without_contraction(%x: tensor<2xf32>, %y: tensor<3xf32>, %z: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3x2xf32>) {
  %0 = prim.dot_general %x, %y batch [] x [] contract [] x [] : (tensor<2xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %1 = prim.dot_general %z, %z batch [1, 0] x [1, 0] contract [] x [] : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<3x2xf32>
  return %0, %1 : tensor<2x3xf32>, tensor<3x2xf32>
}

// A product that contracts no elements is zero.
// CHECK-LABEL: func @dot_of_nothing
// CHECK:         prim.splat 0.000000e+00 : f32 : tensor<2x3xf32>
// CHECK-NOT:     prim.dot_general
func.func @dot_of_nothing(%x: tensor<2x0xf32>, %y: tensor<0x3xf32>) -> tensor<2x3xf32> {
  %0 = prim.dot_general %x, %y batch [] x [] contract [1] x [0] : (tensor<2x0xf32>, tensor<0x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// Pixels become one dim behind the channels, or two again: the same before the transpose. Not channels with one of them.
// CHECK-LABEL: func @reshape_of_transpose
// CHECK-DAG:     %[[J:.*]] = prim.reshape %arg0 : tensor<2x5x7x3xf32> -> tensor<2x35x3xf32>
// CHECK-DAG:     prim.transpose %[[J]] [0, 2, 1] : tensor<2x35x3xf32> -> tensor<2x3x35xf32>
// CHECK-DAG:     %[[S:.*]] = prim.reshape %arg1 : tensor<2x35x3xf32> -> tensor<2x5x7x3xf32>
// CHECK-DAG:     prim.transpose %[[S]] [0, 3, 1, 2] : tensor<2x5x7x3xf32> -> tensor<2x3x5x7xf32>
// CHECK-DAG:     %[[T:.*]] = prim.transpose %arg0 [0, 3, 1, 2]
// CHECK-DAG:     prim.reshape %[[T]] : tensor<2x3x5x7xf32> -> tensor<2x15x7xf32>
func.func @reshape_of_transpose(%x: tensor<2x5x7x3xf32>, %y: tensor<2x35x3xf32>) -> (tensor<2x3x35xf32>, tensor<2x3x5x7xf32>, tensor<2x15x7xf32>) {
  %0 = prim.transpose %x [0, 3, 1, 2] : tensor<2x5x7x3xf32> -> tensor<2x3x5x7xf32>
  %1 = prim.reshape %0 : tensor<2x3x5x7xf32> -> tensor<2x3x35xf32>
  %2 = prim.transpose %y [0, 2, 1] : tensor<2x35x3xf32> -> tensor<2x3x35xf32>
  %3 = prim.reshape %2 : tensor<2x3x35xf32> -> tensor<2x3x5x7xf32>
  %4 = prim.reshape %0 : tensor<2x3x5x7xf32> -> tensor<2x15x7xf32>
  return %1, %3, %4 : tensor<2x3x35xf32>, tensor<2x3x5x7xf32>, tensor<2x15x7xf32>
}

// The same with a size that only the run knows.
// CHECK-LABEL: func @symbolic_reshape_of_transpose
// CHECK:         %[[S:.*]] = prim.reshape %arg0 {{.*}} -> tensor<?x5x3xf32
// CHECK:         prim.transpose %[[S]] [2, 0, 1]
func.func @symbolic_reshape_of_transpose(%x: tensor<?x3xf32, #prim.dims<affine_map<()[s0] -> (s0 * 5, 3)>>>) -> tensor<3x?x5xf32, #prim.dims<affine_map<()[s0] -> (3, s0, 5)>>> {
  %0 = prim.transpose %x [1, 0] : tensor<?x3xf32, #prim.dims<affine_map<()[s0] -> (s0 * 5, 3)>>> -> tensor<3x?xf32, #prim.dims<affine_map<()[s0] -> (3, s0 * 5)>>>
  %1 = prim.reshape %0 : tensor<3x?xf32, #prim.dims<affine_map<()[s0] -> (3, s0 * 5)>>> -> tensor<3x?x5xf32, #prim.dims<affine_map<()[s0] -> (3, s0, 5)>>>
  return %1 : tensor<3x?x5xf32, #prim.dims<affine_map<()[s0] -> (3, s0, 5)>>>
}

// CHECK-LABEL: func @gather_of_transpose
// CHECK:         %[[G:.*]] = prim.gather %arg0[%arg1] axis = 0 : (tensor<5x3xf32>, tensor<7xi64>) -> tensor<7x3xf32>
// CHECK:         prim.transpose %[[G]] [1, 0]
func.func @gather_of_transpose(%x: tensor<5x3xf32>, %i: tensor<7xi64>) -> tensor<3x7xf32> {
  %0 = prim.transpose %x [1, 0] : tensor<5x3xf32> -> tensor<3x5xf32>
  %1 = prim.gather %0[%i] axis = 1 : (tensor<3x5xf32>, tensor<7xi64>) -> tensor<3x7xf32>
  return %1 : tensor<3x7xf32>
}

// The norm of a group of channels, channels first, is one over pixels and some of the channels, channels last.
// CHECK-LABEL: func @group_norm
// CHECK:         %[[S:.*]] = prim.reshape %arg0 : tensor<2x5x7x6xf32> -> tensor<2x5x7x3x2xf32>
// CHECK:         %[[N:.*]] = prim.norm %[[S]] [1, 2, 4]
// CHECK:         %[[R:.*]] = prim.reshape %[[N]] : tensor<2x5x7x3x2xf32> -> tensor<2x5x7x6xf32>
// CHECK:         prim.transpose %[[R]] [0, 3, 1, 2]
func.func @group_norm(%x: tensor<2x5x7x6xf32>) -> tensor<2x6x5x7xf32> {
  %0 = prim.transpose %x [0, 3, 1, 2] : tensor<2x5x7x6xf32> -> tensor<2x6x5x7xf32>
  %1 = prim.reshape %0 : tensor<2x6x5x7xf32> -> tensor<2x3x70xf32>
  %2 = prim.norm %1 [2] epsilon = 1.0e-05 : tensor<2x3x70xf32>
  %3 = prim.reshape %2 : tensor<2x3x70xf32> -> tensor<2x6x5x7xf32>
  return %3 : tensor<2x6x5x7xf32>
}

// Also of an unknown number of pixels, whose sides may be sums.
// CHECK-LABEL: func @group_norm_unknown
// CHECK:         %[[S:.*]] = prim.reshape %arg0 : tensor<?x?x?x6xf32{{.*}} -> tensor<?x?x?x3x2xf32
// CHECK:         %[[N:.*]] = prim.norm %[[S]] [1, 2, 4]
// CHECK:         %[[R:.*]] = prim.reshape %[[N]] : tensor<?x?x?x3x2xf32{{.*}} -> tensor<?x?x?x6xf32
// CHECK:         prim.transpose %[[R]] [0, 3, 1, 2]
!last = tensor<?x?x?x6xf32, #prim.dims<affine_map<()[s0, s1] -> (s0, s1 + 2, s1 * 3 - 1, 6)>>>
!first = tensor<?x6x?x?xf32, #prim.dims<affine_map<()[s0, s1] -> (s0, 6, s1 + 2, s1 * 3 - 1)>>>
!groups = tensor<?x3x?xf32, #prim.dims<affine_map<()[s0, s1] -> (s0, 3, (s1 + 2) * (s1 * 3 - 1) * 2)>>>
func.func @group_norm_unknown(%x: !last) -> !first attributes {prim.symbols = [#prim.symbol<"n", 0, 64, 1>, #prim.symbol<"h", 1, 64, 1>]} {
  %0 = prim.transpose %x [0, 3, 1, 2] : !last -> !first
  %1 = prim.reshape %0 : !first -> !groups
  %2 = prim.norm %1 [2] epsilon = 1.0e-05 : !groups
  %3 = prim.reshape %2 : !groups -> !first
  return %3 : !first
}

// CHECK-LABEL: func @gather_from_nothing
// CHECK:         prim.splat 0.000000e+00 : f16 : tensor<?xf16
// CHECK-NOT:     prim.gather
func.func @gather_from_nothing(%x: tensor<0xf16>, %i: tensor<?xi64, #prim.dims<affine_map<()[s0] -> (s0)>>>) -> tensor<?xf16, #prim.dims<affine_map<()[s0] -> (s0)>>> {
  %0 = prim.gather %x[%i] axis = 0 : (tensor<0xf16>, tensor<?xi64, #prim.dims<affine_map<()[s0] -> (s0)>>>) -> tensor<?xf16, #prim.dims<affine_map<()[s0] -> (s0)>>>
  return %0 : tensor<?xf16, #prim.dims<affine_map<()[s0] -> (s0)>>>
}

// Taps that meet nothing but padding leave the filter, here of images of one row; not where the pads that remain would be negative.
// CHECK-LABEL: func.func @outer_taps
// CHECK: %[[F:.*]] = prim.slice %arg1{{.*}} -> tensor<1x3x4x4xf32>
// CHECK: prim.conv %arg0, %[[F]] strides [1, 2] dilations [1, 1] pads [0, 1] [0, 1] groups 1
// CHECK: %[[G:.*]] = prim.slice %arg1{{.*}} -> tensor<2x3x4x4xf32>
// CHECK: prim.conv %arg2, %[[G]] strides [1, 1] dilations [2, 1] pads [1, 1] [1, 1] groups 1
func.func @outer_taps(%x: tensor<2x1x5x4xf32>, %w: tensor<3x3x4x4xf32>, %y: tensor<2x1x5x4xf32>) -> (tensor<2x1x3x4xf32>, tensor<2x1x5x4xf32>) {
  %0 = prim.conv %x, %w strides [1, 2] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<2x1x5x4xf32>, tensor<3x3x4x4xf32>) -> tensor<2x1x3x4xf32>
  %1 = prim.conv %y, %w strides [1, 1] dilations [2, 1] pads [1, 1] [3, 1] groups 1 : (tensor<2x1x5x4xf32>, tensor<3x3x4x4xf32>) -> tensor<2x1x5x4xf32>
  return %0, %1 : tensor<2x1x3x4xf32>, tensor<2x1x5x4xf32>
}

// Indices that run evenly are a slice; each of a dim's so often, a broadcast.
// CHECK-LABEL: func.func @gather_evenly
// CHECK: prim.slice %arg0 from #{{.*}} step [1, 3] : tensor<4x9xf32> -> tensor<4x3xf32>
// CHECK: prim.broadcast %arg0 [0, 2] : tensor<4x9xf32> -> tensor<4x2x9xf32>
// CHECK: prim.gather %arg0
func.func @gather_evenly(%x: tensor<4x9xf32>) -> (tensor<4x3xf32>, tensor<8x9xf32>, tensor<4x9xf32>) {
  %i = prim.constant dense<[1, 4, 7]> : tensor<3xi64>
  %0 = prim.gather %x[%i] axis = 1 : (tensor<4x9xf32>, tensor<3xi64>) -> tensor<4x3xf32>
  %j = prim.constant dense<[0, 0, 1, 1, 2, 2, 3, 3]> : tensor<8xi64>
  %1 = prim.gather %x[%j] axis = 0 : (tensor<4x9xf32>, tensor<8xi64>) -> tensor<8x9xf32>
  %k = prim.constant dense<[0, 0, 1, 3]> : tensor<4xi64>
  %2 = prim.gather %x[%k] axis = 0 : (tensor<4x9xf32>, tensor<4xi64>) -> tensor<4x9xf32>
  return %0, %1, %2 : tensor<4x3xf32>, tensor<8x9xf32>, tensor<4x9xf32>
}

// A matrix times a vector is the vector times the matrix; two vectors stay.
// CHECK-LABEL: func.func @vector_first
// CHECK: prim.dot_general %arg1, %arg0 batch [] x [] contract [0] x [1] : (tensor<7x1xf32>, tensor<5x7xf32>) -> tensor<1x5xf32>
// CHECK: prim.reshape %{{.*}} : tensor<1x5xf32> -> tensor<5x1xf32>
// CHECK: prim.dot_general %arg2, %arg1
func.func @vector_first(%a: tensor<5x7xf32>, %b: tensor<7x1xf32>, %c: tensor<1x7xf32>) -> (tensor<5x1xf32>, tensor<1x1xf32>) {
  %0 = prim.dot_general %a, %b batch [] x [] contract [1] x [0] : (tensor<5x7xf32>, tensor<7x1xf32>) -> tensor<5x1xf32>
  %1 = prim.dot_general %c, %b batch [] x [] contract [1] x [0] : (tensor<1x7xf32>, tensor<7x1xf32>) -> tensor<1x1xf32>
  return %0, %1 : tensor<5x1xf32>, tensor<1x1xf32>
}

// What is channels first is turned once where a convolution's result joins it for another convolution; not where nothing turns the sum.
// CHECK-LABEL: func.func @dense_block
// CHECK: %[[T:.*]] = prim.transpose %arg0 [0, 2, 3, 1] : tensor<1x8x6x6xf32> -> tensor<1x6x6x8xf32>
// CHECK: %[[C:.*]] = prim.conv %[[T]]
// CHECK: %[[J:.*]] = prim.concat %[[C]], %[[T]] axis = 3
// CHECK: prim.conv %[[J]]
func.func @dense_block(%x: tensor<1x8x6x6xf32>, %w: tensor<3x3x8x4xf32>, %v: tensor<3x3x12x4xf32>) -> tensor<1x6x6x4xf32> {
  %t = prim.transpose %x [0, 2, 3, 1] : tensor<1x8x6x6xf32> -> tensor<1x6x6x8xf32>
  %c = prim.conv %t, %w strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x6x6x8xf32>, tensor<3x3x8x4xf32>) -> tensor<1x6x6x4xf32>
  %f = prim.transpose %c [0, 3, 1, 2] : tensor<1x6x6x4xf32> -> tensor<1x4x6x6xf32>
  %j = prim.concat %f, %x axis = 1 : (tensor<1x4x6x6xf32>, tensor<1x8x6x6xf32>) -> tensor<1x12x6x6xf32>
  %jt = prim.transpose %j [0, 2, 3, 1] : tensor<1x12x6x6xf32> -> tensor<1x6x6x12xf32>
  %y = prim.conv %jt, %v strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x6x6x12xf32>, tensor<3x3x12x4xf32>) -> tensor<1x6x6x4xf32>
  return %y : tensor<1x6x6x4xf32>
}

// CHECK-LABEL: func.func @end
// CHECK: prim.concat %{{.*}}, %arg0 axis = 1
func.func @end(%x: tensor<1x8x6x6xf32>, %c: tensor<1x6x6x4xf32>) -> tensor<1x12x6x6xf32> {
  %f = prim.transpose %c [0, 3, 1, 2] : tensor<1x6x6x4xf32> -> tensor<1x4x6x6xf32>
  %j = prim.concat %f, %x axis = 1 : (tensor<1x4x6x6xf32>, tensor<1x8x6x6xf32>) -> tensor<1x12x6x6xf32>
  return %j : tensor<1x12x6x6xf32>
}

// Positions of samples, which are clamped, are numbers of 32 bits; where a bound does not fit, or the number is read otherwise, they stay.
// CHECK-LABEL: func.func @clamped
// CHECK: %[[C:.*]] = prim.convert %arg0 : tensor<8xf32> -> tensor<8xi32>
// CHECK: %[[L:.*]] = prim.max %[[C]], %{{.*}} : tensor<8xi32>
// CHECK: %[[H:.*]] = prim.min %[[L]], %{{.*}} : tensor<8xi32>
// CHECK: prim.convert %[[H]] : tensor<8xi32> -> tensor<8xi64>
// CHECK: prim.min {{.*}} : tensor<8xi64>
// CHECK: prim.min {{.*}} : tensor<8xi64>
func.func @clamped(%x: tensor<8xf32>) -> (tensor<8xi64>, tensor<8xi64>, tensor<8xi64>, tensor<8xi64>) {
  %low = prim.splat 0 : i64 : tensor<8xi64>
  %high = prim.splat 63 : i64 : tensor<8xi64>
  %far = prim.splat 3000000000 : i64 : tensor<8xi64>
  %a = prim.convert %x : tensor<8xf32> -> tensor<8xi64>
  %b = prim.max %a, %low : tensor<8xi64>
  %c = prim.min %b, %high : tensor<8xi64>
  %d = prim.neg %x : tensor<8xf32>
  %e = prim.convert %d : tensor<8xf32> -> tensor<8xi64>
  %f = prim.max %e, %low : tensor<8xi64>
  %g = prim.min %f, %far : tensor<8xi64>
  %h = prim.abs %x : tensor<8xf32>
  %i = prim.convert %h : tensor<8xf32> -> tensor<8xi64>
  %j = prim.max %i, %low : tensor<8xi64>
  %k = prim.min %j, %high : tensor<8xi64>
  return %c, %g, %i, %k : tensor<8xi64>, tensor<8xi64>, tensor<8xi64>, tensor<8xi64>
}

// A norm of bands, each with its own factor: the bands' dims stay apart.
// CHECK-LABEL: func.func @bands
// CHECK: %[[R:.*]] = prim.reshape %{{.*}} : tensor<8x3xf32> -> tensor<4x6xf32>
// CHECK: %[[F:.*]] = prim.broadcast %[[R]] [1, 2] : tensor<4x6xf32> -> tensor<2x4x6x5xf32>
// CHECK: %[[M:.*]] = prim.mul %arg0, %[[F]]
// CHECK-NEXT: return %[[M]]
func.func @bands(%x: tensor<2x4x6x5xf32>) -> tensor<2x4x6x5xf32> {
  %factor = prim.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf32>
  %1 = prim.reshape %x : tensor<2x4x6x5xf32> -> tensor<2x8x3x5xf32>
  %2 = prim.broadcast %factor [1] : tensor<8xf32> -> tensor<2x8x3x5xf32>
  %3 = prim.mul %1, %2 : tensor<2x8x3x5xf32>
  %4 = prim.reshape %3 : tensor<2x8x3x5xf32> -> tensor<2x4x6x5xf32>
  return %4 : tensor<2x4x6x5xf32>
}

// Reshapes that only add unit dims keep nothing apart.
// CHECK-LABEL: func.func @unit
// CHECK: prim.neg {{.*}} : tensor<6xf32>
func.func @unit(%x: tensor<6x1xf32>) -> tensor<6x1xf32> {
  %1 = prim.reshape %x : tensor<6x1xf32> -> tensor<6xf32>
  %2 = prim.neg %1 : tensor<6xf32>
  %3 = prim.reshape %2 : tensor<6xf32> -> tensor<6x1xf32>
  return %3 : tensor<6x1xf32>
}

// What turns an image to its channels first and back goes where what else is read has its dims in the other order, too: a constant, which is
// turned, and what was turned for a broadcast alone.
// CHECK-LABEL: func.func @turned_broadcasts
// CHECK: %[[C:.*]] = prim.transpose %{{.*}} [1, 0] : tensor<2x3xf32> -> tensor<3x2xf32>
// CHECK: %[[F:.*]] = prim.broadcast %[[C]] [1, 3] : tensor<3x2xf32> -> tensor<2x3x5x2xf32>
// CHECK: %[[M:.*]] = prim.mul %arg0, %[[F]]
// CHECK: %[[B:.*]] = prim.broadcast %arg1 [0, 2, 3] : tensor<2x5x2xf32> -> tensor<2x3x5x2xf32>
// CHECK: %[[A:.*]] = prim.add %[[M]], %[[B]]
// CHECK-NEXT: return %[[A]]
func.func @turned_broadcasts(%x: tensor<2x3x5x2xf32>, %y: tensor<2x5x2xf32>) -> tensor<2x3x5x2xf32> {
  %factor = prim.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %0 = prim.transpose %x [0, 3, 1, 2] : tensor<2x3x5x2xf32> -> tensor<2x2x3x5xf32>
  %1 = prim.broadcast %factor [1, 2] : tensor<2x3xf32> -> tensor<2x2x3x5xf32>
  %2 = prim.mul %0, %1 : tensor<2x2x3x5xf32>
  %3 = prim.transpose %y [0, 2, 1] : tensor<2x5x2xf32> -> tensor<2x2x5xf32>
  %4 = prim.broadcast %3 [0, 1, 3] : tensor<2x2x5xf32> -> tensor<2x2x3x5xf32>
  %5 = prim.add %2, %4 : tensor<2x2x3x5xf32>
  %6 = prim.transpose %5 [0, 2, 3, 1] : tensor<2x2x3x5xf32> -> tensor<2x3x5x2xf32>
  return %6 : tensor<2x3x5x2xf32>
}

// A factor that the run computes is not repeated within a run of dims; one that has all of them is split.
// CHECK-LABEL: func.func @bands_computed
// CHECK: prim.mul {{.*}} : tensor<2x8x3x5xf32>
// CHECK: %[[S:.*]] = prim.reshape %arg2 : tensor<8x3xf32> -> tensor<4x6xf32>
// CHECK: %[[T:.*]] = prim.broadcast %[[S]] [1, 2] : tensor<4x6xf32> -> tensor<2x4x6x5xf32>
// CHECK: prim.mul %arg0, %[[T]]
func.func @bands_computed(%x: tensor<2x4x6x5xf32>, %factor: tensor<8xf32>, %all: tensor<8x3xf32>) -> (tensor<2x4x6x5xf32>, tensor<2x4x6x5xf32>) {
  %1 = prim.reshape %x : tensor<2x4x6x5xf32> -> tensor<2x8x3x5xf32>
  %2 = prim.broadcast %factor [1] : tensor<8xf32> -> tensor<2x8x3x5xf32>
  %3 = prim.mul %1, %2 : tensor<2x8x3x5xf32>
  %4 = prim.reshape %3 : tensor<2x8x3x5xf32> -> tensor<2x4x6x5xf32>
  %5 = prim.broadcast %all [1, 2] : tensor<8x3xf32> -> tensor<2x8x3x5xf32>
  %6 = prim.mul %1, %5 : tensor<2x8x3x5xf32>
  %7 = prim.reshape %6 : tensor<2x8x3x5xf32> -> tensor<2x4x6x5xf32>
  return %4, %7 : tensor<2x4x6x5xf32>, tensor<2x4x6x5xf32>
}

// Powers are products, by squares.
// CHECK-LABEL: func.func @powers
// CHECK: %[[S:.*]] = prim.mul %arg0, %arg0
// CHECK-NEXT: %[[A:.*]] = prim.mul %[[S]], %arg0
// CHECK: %[[F:.*]] = prim.mul %[[S]], %[[S]]
// CHECK: prim.mul %[[F]], %
// CHECK: %[[R:.*]] = prim.reciprocal %arg0
// CHECK: prim.mul %[[R]], %[[R]]
// CHECK: prim.pow
// CHECK-NOT: prim.pow
func.func @powers(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %three = prim.splat 3.0 : f32 : tensor<8xf32>
  %seven = prim.splat 7.0 : f32 : tensor<8xf32>
  %minus = prim.splat -2.0 : f32 : tensor<8xf32>
  %nine = prim.splat 9.0 : f32 : tensor<8xf32>
  %0 = prim.pow %x, %three : tensor<8xf32>
  %1 = prim.pow %x, %seven : tensor<8xf32>
  %2 = prim.pow %x, %minus : tensor<8xf32>
  %3 = prim.pow %x, %nine : tensor<8xf32>
  return %0, %1, %2, %3 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// Unit dims that a reshape drops may be anywhere.
// CHECK-LABEL: func.func @reshape_of_unit_dims
// CHECK: %[[X:.*]] = prim.reshape %arg0 : tensor<7x1x5x62xf32> -> tensor<7x5x62xf32>
// CHECK: %[[S:.*]] = prim.add %[[X]], %{{.*}} : tensor<7x5x62xf32>
// CHECK: %[[T:.*]] = prim.transpose %[[S]] [2, 0, 1]
// CHECK: return %[[T]]
func.func @reshape_of_unit_dims(%x: tensor<7x1x5x62xf32>, %y: tensor<7x5x62x1xf32>) -> tensor<62x7x5xf32> {
  %0 = prim.transpose %x [3, 0, 2, 1] : tensor<7x1x5x62xf32> -> tensor<62x7x5x1xf32>
  %1 = prim.reshape %0 : tensor<62x7x5x1xf32> -> tensor<62x7x5xf32>
  %2 = prim.transpose %y [2, 3, 0, 1] : tensor<7x5x62x1xf32> -> tensor<62x1x7x5xf32>
  %3 = prim.reshape %2 : tensor<62x1x7x5xf32> -> tensor<62x7x5xf32>
  %4 = prim.add %1, %3 : tensor<62x7x5xf32>
  return %4 : tensor<62x7x5xf32>
}

// -----

// Elements along the outermost dim, named by one index a slice, are scattered as slices.
// CHECK-LABEL: func.func @scatter_of_slices
// CHECK: %[[ROWS:.*]] = prim.reshape %arg1 : tensor<5xi64> -> tensor<5x1xi64>
// CHECK: prim.scatter_nd %arg0[%[[ROWS]]], %arg2 kind sum
func.func @scatter_of_slices(%x: tensor<7x4xf32>, %i: tensor<5xi64>, %u: tensor<5x4xf32>) -> tensor<7x4xf32> {
  %b = prim.broadcast %i [0] : tensor<5xi64> -> tensor<5x4xi64>
  %r = prim.scatter_elements %x[%b], %u axis = 0 kind sum : (tensor<7x4xf32>, tensor<5x4xi64>, tensor<5x4xf32>) -> tensor<7x4xf32>
  return %r : tensor<7x4xf32>
}

// -----

// Not where the indices cover a part of the other dims.
// CHECK-LABEL: func.func @scatter_of_parts
// CHECK: prim.scatter_elements
func.func @scatter_of_parts(%x: tensor<7x4xf32>, %i: tensor<5xi64>, %u: tensor<5x3xf32>) -> tensor<7x4xf32> {
  %b = prim.broadcast %i [0] : tensor<5xi64> -> tensor<5x3xi64>
  %r = prim.scatter_elements %x[%b], %u axis = 0 kind sum : (tensor<7x4xf32>, tensor<5x3xi64>, tensor<5x3xf32>) -> tensor<7x4xf32>
  return %r : tensor<7x4xf32>
}
