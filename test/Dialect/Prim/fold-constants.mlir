// What tc-fold-constants stores, what it leaves, and that bits survive.
// RUN: tc-opt %s --tc-fold-constants --split-input-file | FileCheck %s
// RUN: tc-opt %s --tc-fold-constants=max-bytes=16 --split-input-file | FileCheck %s --check-prefix=SMALL

// Values are computed once; only the last of the chain is stored.
// CHECK-LABEL: func @chain
// CHECK-NEXT:    %[[C:.*]] = prim.constant dense<{{\[\[}}2.000000e+00, 6.000000e+00], [4.000000e+00, 8.000000e+00]]> : tensor<2x2xf32>
// CHECK-NEXT:    return %[[C]]
func.func @chain() -> tensor<2x2xf32> {
  %0 = prim.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %1 = prim.transpose %0 [1, 0] : tensor<2x2xf32> -> tensor<2x2xf32>
  %2 = prim.splat 2.0 : f32 : tensor<2x2xf32>
  %3 = prim.mul %1, %2 : tensor<2x2xf32>
  return %3 : tensor<2x2xf32>
}

// -----

// The sign of zero and the payload of a NaN survive movement; sums that are NaN stay NaN.
// CHECK-LABEL: func @bits
// CHECK-DAG:     prim.constant dense<[0x7FC12345, -0.000000e+00, 0.000000e+00]> : tensor<3xf32>
// CHECK-DAG:     prim.constant dense<[0x7FC12345, 0.000000e+00, -0.000000e+00]> : tensor<3xf32>
func.func @bits() -> (tensor<3xf32>, tensor<3xf32>) {
  %0 = prim.constant dense<[0.0, -0.0, 0x7FC12345]> : tensor<3xf32>
  %1 = prim.slice %0 from affine_map<() -> (2)> step [-1] : tensor<3xf32> -> tensor<3xf32>
  %2 = prim.neg %1 : tensor<3xf32>
  %3 = prim.abs %2 : tensor<3xf32>
  %4 = prim.neg %3 : tensor<3xf32>
  %5 = prim.constant dense<[0, 2, 1]> : tensor<3xi64>
  %6 = prim.gather %1[%5] axis = 0 : (tensor<3xf32>, tensor<3xi64>) -> tensor<3xf32>
  return %1, %6 : tensor<3xf32>, tensor<3xf32>
}

// -----

// Uniform values stay symbolic under symbolic sizes.
// CHECK-LABEL: func @uniform
// CHECK:         %[[S:.*]] = prim.splat 5.000000e-01 : f32 : tensor<?x3xf32, #prim.dims<#{{.*}}>>
// CHECK-NEXT:    return %[[S]]
!t = tensor<?x3xf32, #prim.dims<affine_map<()[s0] -> (s0, 3)>>>
func.func @uniform(%x: !t) -> !t attributes {prim.symbols = [#prim.symbol<"n", 0, 100, 1>]} {
  %0 = prim.constant dense<2.0> : tensor<f32>
  %1 = prim.broadcast %0 [] : tensor<f32> -> !t
  %2 = prim.reciprocal %1 : !t
  return %2 : !t
}

// -----

// Large iotas and enlarging broadcasts stay, but what is computed from them folds if it is small.
// CHECK-LABEL: func @symbolic
// CHECK-DAG:     prim.iota axis = 0 : tensor<100000xi64>
// CHECK-DAG:     prim.constant dense<{{.*}}3, 4, 5{{.*}}> : tensor<6xi64>
// CHECK-DAG:     %[[C:.*]] = prim.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
// CHECK-DAG:     prim.broadcast %[[C]] [1]
// CHECK-DAG:     prim.add %{{.*}}, %{{.*}} : tensor<100000xi64>
// CHECK-NOT:     prim.reduce
func.func @symbolic() -> (tensor<100000xi64>, tensor<6xi64>, tensor<20000x2xf32>, tensor<100000xi64>, tensor<f32>) {
  %0 = prim.iota axis = 0 : tensor<100000xi64>
  %1 = prim.iota axis = 0 : tensor<6xi64>
  %2 = prim.add %1, %1 : tensor<6xi64>
  %3 = prim.sub %2, %1 : tensor<6xi64>
  %4 = prim.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %5 = prim.broadcast %4 [1] : tensor<2xf32> -> tensor<20000x2xf32>
  %6 = prim.add %0, %0 : tensor<100000xi64>
  %7 = prim.reduce sum %5 [0, 1] : tensor<20000x2xf32> -> tensor<f32>
  return %0, %3, %5, %6, %7 : tensor<100000xi64>, tensor<6xi64>, tensor<20000x2xf32>, tensor<100000xi64>, tensor<f32>
}

// -----

// Size arithmetic with constants folds, with symbols it stays.
// CHECK-LABEL: func @sizes
// CHECK-DAG:     prim.constant dense<[3, 8]> : tensor<2xi64>
// CHECK-DAG:     prim.sizes #{{.*}} : tensor<2xi64>
func.func @sizes(%x: tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>) -> (tensor<2xi64>, tensor<2xi64>)
    attributes {prim.symbols = [#prim.symbol<"n", 0, 100, 1>]} {
  %0 = prim.sizes affine_map<() -> (3, 8)> : tensor<2xi64>
  %1 = prim.sizes affine_map<()[s0] -> (s0, 8)> : tensor<2xi64>
  %2 = prim.add %1, %0 : tensor<2xi64>
  %3 = prim.sub %2, %0 : tensor<2xi64>
  return %0, %3 : tensor<2xi64>, tensor<2xi64>
}

// -----

// More than max-bytes is stored only if it is no larger than the constants that it is made of.
// SMALL-LABEL: func @large
// SMALL:         prim.constant dense<[4.000000e+00, 3.000000e+00, 2.000000e+00, 1.000000e+00, 0.000000e+00]>
// SMALL:         %[[A:.*]] = prim.concat
// SMALL:         return %{{.*}}, %[[A]]
func.func @large() -> (tensor<5xf32>, tensor<15xf32>) {
  %0 = prim.constant dense<[0.0, 1.0, 2.0, 3.0, 4.0]> : tensor<5xf32>
  %1 = prim.slice %0 from affine_map<() -> (4)> step [-1] : tensor<5xf32> -> tensor<5xf32>
  %2 = prim.iota axis = 0 : tensor<10xf32>
  %3 = prim.concat %0, %2 axis = 0 : (tensor<5xf32>, tensor<10xf32>) -> tensor<15xf32>
  return %1, %3 : tensor<5xf32>, tensor<15xf32>
}

// -----

// A table of angles is stored whatever it is made of; what is as large and cheap to compute is not.
// SMALL-LABEL: func @table
// SMALL:         %[[I:.*]] = prim.iota
// SMALL:         %[[T:.*]] = prim.constant dense<[{{.*}}]> : tensor<9xf32>
// SMALL:         %[[A:.*]] = prim.add %arg0, %[[T]]
// SMALL:         prim.mul %[[I]], %[[I]]
func.func @table(%x: tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>) {
  %0 = prim.iota axis = 0 : tensor<9xf32>
  %1 = prim.cos %0 : tensor<9xf32>
  %2 = prim.add %x, %1 : tensor<9xf32>
  %3 = prim.mul %0, %0 : tensor<9xf32>
  %4 = prim.sub %x, %3 : tensor<9xf32>
  return %2, %4 : tensor<9xf32>, tensor<9xf32>
}

// -----

// How large a table may be depends on what else a run does: as many rows as are declared, few.
// CHECK-LABEL: func @few_rows
// CHECK:         prim.constant #tc.data<{{.*}}> : tensor<200000xf32>
func.func @few_rows(%x: tensor<200000xf32>, %y: tensor<?x1024xf32, #prim.dims<affine_map<()[s0] -> (s0, 1024)>>>, %w: tensor<1024x1024xf32>) -> (tensor<200000xf32>, tensor<?x1024xf32, #prim.dims<affine_map<()[s0] -> (s0, 1024)>>>) attributes {prim.symbols = [#prim.symbol<"n", 1, 4, 1>]} {
  %0 = prim.iota axis = 0 : tensor<200000xf32>
  %1 = prim.cos %0 : tensor<200000xf32>
  %2 = prim.add %x, %1 : tensor<200000xf32>
  %3 = prim.dot_general %y, %w batch [] x [] contract [1] x [0] : (tensor<?x1024xf32, #prim.dims<affine_map<()[s0] -> (s0, 1024)>>>, tensor<1024x1024xf32>) -> tensor<?x1024xf32, #prim.dims<affine_map<()[s0] -> (s0, 1024)>>>
  return %2, %3 : tensor<200000xf32>, tensor<?x1024xf32, #prim.dims<affine_map<()[s0] -> (s0, 1024)>>>
}

// -----

// Of 128, which is usual, it is computed in each run.
// CHECK-LABEL: func @rows
// CHECK:         prim.cos
func.func @rows(%x: tensor<200000xf32>, %y: tensor<?x1024xf32, #prim.dims<affine_map<()[s0] -> (s0, 1024)>>>, %w: tensor<1024x1024xf32>) -> (tensor<200000xf32>, tensor<?x1024xf32, #prim.dims<affine_map<()[s0] -> (s0, 1024)>>>) attributes {prim.symbols = [#prim.symbol<"n", 0, 9223372036854775807, 1>]} {
  %0 = prim.iota axis = 0 : tensor<200000xf32>
  %1 = prim.cos %0 : tensor<200000xf32>
  %2 = prim.add %x, %1 : tensor<200000xf32>
  %3 = prim.dot_general %y, %w batch [] x [] contract [1] x [0] : (tensor<?x1024xf32, #prim.dims<affine_map<()[s0] -> (s0, 1024)>>>, tensor<1024x1024xf32>) -> tensor<?x1024xf32, #prim.dims<affine_map<()[s0] -> (s0, 1024)>>>
  return %2, %3 : tensor<200000xf32>, tensor<?x1024xf32, #prim.dims<affine_map<()[s0] -> (s0, 1024)>>>
}

// -----

// Elements selected one by one and sums of products are stored, too; what selects by few bits is how a model is kept small, and long rows are
// read where they lie.
// SMALL-LABEL: func @selected
// SMALL-DAG:     prim.constant dense<[5.000000e+00, 3.000000e+00, 4.000000e+00, 3.000000e+00, 5.000000e+00, 4.000000e+00]> : tensor<6xf32>
// SMALL-DAG:     prim.constant dense<{{\[\[}}4.000000e+00, 4.000000e+00, 4.000000e+00], [4.000000e+00, 4.000000e+00, 4.000000e+00], [8.000000e+00, 8.000000e+00, 8.000000e+00]]> : tensor<3x3xf32>
// SMALL:         prim.gather %{{.*}} axis = 0 : (tensor<3xf32>, tensor<6xi64>) -> tensor<6xf32>
// SMALL:         prim.gather %{{.*}} axis = 0 : (tensor<2x64xf32>, tensor<6xi64>) -> tensor<6x64xf32>
func.func @selected(%x: tensor<6xf32>, %y: tensor<3x3xf32>, %z: tensor<6x64xf32>) -> (tensor<6xf32>, tensor<3x3xf32>, tensor<6xf32>, tensor<6x64xf32>) {
  %0 = prim.constant dense<[3.0, 4.0, 5.0]> : tensor<3xf32>
  %1 = prim.constant dense<[2, 0, 1, 0, 2, 1]> : tensor<6xi64>
  %2 = prim.gather %0[%1] axis = 0 : (tensor<3xf32>, tensor<6xi64>) -> tensor<6xf32>
  %3 = prim.add %x, %2 : tensor<6xf32>
  %4 = prim.constant dense<[[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0], [2.0, 2.0, 2.0, 2.0]]> : tensor<3x4xf32>
  %5 = prim.splat 1.0 : f32 : tensor<4x3xf32>
  %6 = prim.dot_general %4, %5 batch [] x [] contract [1] x [0] : (tensor<3x4xf32>, tensor<4x3xf32>) -> tensor<3x3xf32>
  %7 = prim.add %y, %6 : tensor<3x3xf32>
  %8 = prim.constant dense<[2, 0, 1, 0, 2, 1]> : tensor<6xi8>
  %9 = prim.convert %8 : tensor<6xi8> -> tensor<6xi64>
  %10 = prim.gather %0[%9] axis = 0 : (tensor<3xf32>, tensor<6xi64>) -> tensor<6xf32>
  %11 = prim.mul %x, %10 : tensor<6xf32>
  %12 = prim.iota axis = 0 : tensor<2x64xf32>
  %13 = prim.constant dense<[1, 0, 1, 0, 1, 1]> : tensor<6xi64>
  %14 = prim.gather %12[%13] axis = 0 : (tensor<2x64xf32>, tensor<6xi64>) -> tensor<6x64xf32>
  %15 = prim.mul %z, %14 : tensor<6x64xf32>
  return %3, %7, %11, %15 : tensor<6xf32>, tensor<3x3xf32>, tensor<6xf32>, tensor<6x64xf32>
}

// -----

// More than 64 elements go to the BlobStore.
// CHECK-LABEL: func @blob
// CHECK:         prim.constant #tc.data<{{.*}}> : tensor<65xf32>
func.func @blob() -> tensor<65xf32> {
  %0 = prim.iota axis = 0 : tensor<65xf32>
  %1 = prim.sqrt %0 : tensor<65xf32>
  return %1 : tensor<65xf32>
}

// -----

// A known condition takes its branch.
// CHECK-LABEL: func @branch
// CHECK-NOT:     prim.if
// CHECK:         %[[E:.*]] = prim.exp
// CHECK-NEXT:    return %[[E]]
func.func @branch(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = prim.constant dense<1> : tensor<i64>
  %1 = prim.constant dense<2> : tensor<i64>
  %2 = prim.compare lt %0, %1 : tensor<i64> -> tensor<i1>
  %3 = prim.if %2 : tensor<i1> -> (tensor<4xf32>) {
    %4 = prim.exp %x : tensor<4xf32>
    prim.yield %4 : tensor<4xf32>
  } else {
    %4 = prim.log %x : tensor<4xf32>
    prim.yield %4 : tensor<4xf32>
  }
  return %3 : tensor<4xf32>
}

// -----

// What depends on inputs stays, also inside of a loop; constants in it fold.
// CHECK-LABEL: func @loop
// CHECK:         prim.while
// CHECK:           %[[C:.*]] = prim.constant dense<[1.000000e+00, 4.000000e+00]> : tensor<2xf32>
// CHECK:           prim.add %{{.*}}, %[[C]]
func.func @loop(%x: tensor<2xf32>, %n: tensor<i64>) -> tensor<2xf32> {
  %c = prim.splat true : tensor<i1>
  %0 = prim.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %1 = prim.while %n, %c carry %x : (tensor<i64>, tensor<i1>, tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%i: tensor<i64>, %v: tensor<2xf32>):
    %2 = prim.mul %0, %0 : tensor<2xf32>
    %3 = prim.add %v, %2 : tensor<2xf32>
    prim.yield %c, %3 : tensor<i1>, tensor<2xf32>
  }
  return %1 : tensor<2xf32>
}

// -----

// What has no elements is not computed, and a reduction of it is its neutral element, also beside unknown sizes.
// CHECK-LABEL: func @empty
// CHECK-NOT:     prim.exp
// CHECK-DAG:     %[[E:.*]] = prim.constant dense<> : tensor<0x3xf32>
// CHECK-DAG:     %[[S:.*]] = prim.constant dense<0.000000e+00> : tensor<3xf32>
// CHECK:         return %[[E]], %[[S]]
func.func @empty(%x: tensor<0x3xf32>) -> (tensor<0x3xf32>, tensor<3xf32>) {
  %0 = prim.exp %x : tensor<0x3xf32>
  %1 = prim.reduce sum %0 [0] : tensor<0x3xf32> -> tensor<3xf32>
  return %0, %1 : tensor<0x3xf32>, tensor<3xf32>
}

// -----

// A function without inputs computes its results now: sizes that depend on data, loops, small splats.
// CHECK-LABEL: func @whole() -> (tensor<2xi64>, tensor<i64>, tensor<3xf32>)
// CHECK-DAG:     %[[A:.*]] = prim.constant dense<[0, 1]> : tensor<2xi64>
// CHECK-DAG:     %[[B:.*]] = prim.constant dense<8> : tensor<i64>
// CHECK-DAG:     %[[C:.*]] = prim.constant dense<1.500000e+00> : tensor<3xf32>
// CHECK-NOT:     prim.while
// CHECK-NOT:     prim.bind_symbol
// CHECK:         return %[[A]], %[[B]], %[[C]]
func.func @whole() -> (tensor<?xi64, #prim.dims<affine_map<()[s0] -> (s0)>>>, tensor<i64>, tensor<3xf32>) attributes {prim.symbols = [#prim.symbol<"n", 0, 10, 1>]} {
  %two = prim.constant dense<2> : tensor<i64>
  prim.bind_symbol %two to 0 : tensor<i64>
  %0 = prim.iota axis = 0 : tensor<?xi64, #prim.dims<affine_map<()[s0] -> (s0)>>>
  %c = prim.splat true : tensor<i1>
  %1 = prim.while %two, %c carry %two : (tensor<i64>, tensor<i1>, tensor<i64>) -> tensor<i64> {
  ^bb0(%i: tensor<i64>, %v: tensor<i64>):
    %2 = prim.mul %v, %two : tensor<i64>
    prim.yield %c, %2 : tensor<i1>, tensor<i64>
  }
  %3 = prim.splat 1.5 : f32 : tensor<3xf32>
  return %0, %1, %3 : tensor<?xi64, #prim.dims<affine_map<()[s0] -> (s0)>>>, tensor<i64>, tensor<3xf32>
}

// -----

// A small result that is uniform is stored where there are inputs, too: no kernel writes it.
// CHECK-LABEL: func @uniform_result
// CHECK:         %[[C:.*]] = prim.constant dense<0.000000e+00> : tensor<4xf32>
// CHECK:         return %{{.*}}, %[[C]]
func.func @uniform_result(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = prim.exp %x : tensor<4xf32>
  %1 = prim.splat 0.0 : f32 : tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// Weights of bytes that are widened are worth four times their bytes where products alone read them; others stay bytes.
// CHECK-LABEL: func @widened
// CHECK-DAG:     %[[W:.*]] = prim.constant {{.*}} : tensor<3x3x64x64xf32>
// CHECK:         prim.conv %arg0, %[[W]]
// CHECK:         %[[Q:.*]] = prim.convert {{.*}} : tensor<200x400xi8> -> tensor<200x400xf32>
// CHECK:         prim.add %[[Q]], %arg1
func.func @widened(%x: tensor<1x8x8x64xf32>, %y: tensor<200x400xf32>) -> (tensor<1x6x6x64xf32>, tensor<200x400xf32>) {
  %a = prim.constant dense<7> : tensor<32x64x3x3xi8>
  %b = prim.constant dense<5> : tensor<32x64x3x3xi8>
  %q = prim.concat %a, %b axis = 0 : (tensor<32x64x3x3xi8>, tensor<32x64x3x3xi8>) -> tensor<64x64x3x3xi8>
  %s0 = prim.constant dense<0.5> : tensor<32xf32>
  %s1 = prim.constant dense<0.25> : tensor<32xf32>
  %s = prim.concat %s0, %s1 axis = 0 : (tensor<32xf32>, tensor<32xf32>) -> tensor<64xf32>
  %f = prim.convert %q : tensor<64x64x3x3xi8> -> tensor<64x64x3x3xf32>
  %sb = prim.broadcast %s [0] : tensor<64xf32> -> tensor<64x64x3x3xf32>
  %w = prim.mul %f, %sb : tensor<64x64x3x3xf32>
  %t = prim.transpose %w [2, 3, 1, 0] : tensor<64x64x3x3xf32> -> tensor<3x3x64x64xf32>
  %0 = prim.conv %x, %t strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x8x8x64xf32>, tensor<3x3x64x64xf32>) -> tensor<1x6x6x64xf32>
  %c = prim.constant dense<7> : tensor<100x400xi8>
  %d = prim.constant dense<5> : tensor<100x400xi8>
  %p = prim.concat %c, %d axis = 0 : (tensor<100x400xi8>, tensor<100x400xi8>) -> tensor<200x400xi8>
  %pf = prim.convert %p : tensor<200x400xi8> -> tensor<200x400xf32>
  %1 = prim.add %pf, %y : tensor<200x400xf32>
  return %0, %1 : tensor<1x6x6x64xf32>, tensor<200x400xf32>
}
