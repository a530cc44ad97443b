// Proves: 3x3 convolutions over an input that lies as it is read take Winograd's algorithm where the cost model says that it wins, with
// the filter transformed when the artifact is made; others stay direct.
// RUN: tc-opt %s --split-input-file --tc-choose-schedule | FileCheck %s
// RUN: tc-opt %s --split-input-file --tc-choose-schedule --tc-lower-kernels=variants=x86-64-v4 | FileCheck %s --check-prefix=LOWER

// CHECK-LABEL: func.func @wide
// CHECK: schedule = #kernel.cpu.winograd<{{.*}}rhs = 1{{[,>]}}{{.*}}tileN = {{.*}}
// LOWER: #[[MAP:.*]] = affine_map<(d0, d1, d2, d3) -> (d0 floordiv 3, d0 mod 3, d2, d1 * 16 + d3)>
// LOWER-LABEL: func.func @wide
// LOWER: host.constant dense<1.000000e+00> : tensor<3x3x64x64xf32> map #[[MAP]] transform dense<{{.*}}> : tensor<36x9xf64> : tensor<36x4x64x16xf32>
// LOWER: llvm.intr.prefetch
// LOWER: llvm.intr.fmuladd{{.*}}vector<16xf32>
// The sums of 32 channels are added to those before them.
// LOWER: %[[SUM:.*]] = llvm.fadd
// LOWER-NEXT: llvm.store %[[SUM]],
// LOWER-NEXT: llvm.load
// LOWER-NEXT: llvm.fadd
func.func @wide(%x: tensor<1x56x56x64xf32>, %b: tensor<64xf32>) -> tensor<1x56x56x64xf32> attributes {prim.symbols = []} {
  %w = prim.constant dense<1.0> : tensor<3x3x64x64xf32>
  %r = kernel.region(%i0 = %x : tensor<1x56x56x64xf32>, %i1 = %w : tensor<3x3x64x64xf32>, %i2 = %b : tensor<64xf32>) -> (tensor<1x56x56x64xf32>) {
    %0 = prim.conv %i0, %i1 strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x56x56x64xf32>, tensor<3x3x64x64xf32>) -> tensor<1x56x56x64xf32>
    %1 = prim.broadcast %i2 [3] : tensor<64xf32> -> tensor<1x56x56x64xf32>
    %2 = prim.add %0, %1 : tensor<1x56x56x64xf32>
    kernel.yield %2 : tensor<1x56x56x64xf32>
  }
  return %r : tensor<1x56x56x64xf32>
}

// -----

// The transformed filter of many channels is four times as large, which a few pixels do not pay for.
// CHECK-LABEL: func.func @few_pixels
// CHECK: schedule = #kernel.cpu.contract<
func.func @few_pixels(%x: tensor<1x4x4x512xf32>) -> tensor<1x4x4x512xf32> attributes {prim.symbols = []} {
  %w = prim.constant dense<1.0> : tensor<3x3x512x512xf32>
  %r = kernel.region(%i0 = %x : tensor<1x4x4x512xf32>, %i1 = %w : tensor<3x3x512x512xf32>) -> (tensor<1x4x4x512xf32>) {
    %0 = prim.conv %i0, %i1 strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x4x4x512xf32>, tensor<3x3x512x512xf32>) -> tensor<1x4x4x512xf32>
    kernel.yield %0 : tensor<1x4x4x512xf32>
  }
  return %r : tensor<1x4x4x512xf32>
}

// -----

// Images of unknown size and number: planned for as one that has the size of ResNet's at so many channels.
// CHECK-LABEL: func.func @unknown
// CHECK: schedule = #kernel.cpu.winograd<
// CHECK: schedule = #kernel.cpu.contract<
!x64 = tensor<?x?x?x64xf32, #prim.dims<affine_map<()[s0, s1, s2] -> (s0, s1, s2, 64)>>>
!x512 = tensor<?x7x7x512xf32, #prim.dims<affine_map<()[s0] -> (s0, 7, 7, 512)>>>
func.func @unknown(%x: !x64, %y: !x512) -> (!x64, !x512) attributes {prim.symbols = [#prim.symbol<"n", 0, 64, 1>, #prim.symbol<"h", 1, 4096, 1>, #prim.symbol<"w", 1, 4096, 1>]} {
  %w = prim.constant dense<1.0> : tensor<3x3x64x64xf32>
  %v = prim.constant dense<1.0> : tensor<3x3x512x512xf32>
  %r = kernel.region(%i0 = %x : !x64, %i1 = %w : tensor<3x3x64x64xf32>) -> (!x64) {
    %0 = prim.conv %i0, %i1 strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (!x64, tensor<3x3x64x64xf32>) -> !x64
    kernel.yield %0 : !x64
  }
  %s = kernel.region(%i0 = %y : !x512, %i1 = %v : tensor<3x3x512x512xf32>) -> (!x512) {
    %0 = prim.conv %i0, %i1 strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (!x512, tensor<3x3x512x512xf32>) -> !x512
    kernel.yield %0 : !x512
  }
  return %r, %s : !x64, !x512
}

// -----

// CHECK-LABEL: func.func @strided
// CHECK: schedule = #kernel.cpu.contract<
func.func @strided(%x: tensor<1x56x56x64xf32>) -> tensor<1x28x28x64xf32> attributes {prim.symbols = []} {
  %w = prim.constant dense<1.0> : tensor<3x3x64x64xf32>
  %r = kernel.region(%i0 = %x : tensor<1x56x56x64xf32>, %i1 = %w : tensor<3x3x64x64xf32>) -> (tensor<1x28x28x64xf32>) {
    %0 = prim.conv %i0, %i1 strides [2, 2] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x56x56x64xf32>, tensor<3x3x64x64xf32>) -> tensor<1x28x28x64xf32>
    kernel.yield %0 : tensor<1x28x28x64xf32>
  }
  return %r : tensor<1x28x28x64xf32>
}

// -----

// Few tiles and many columns: a launch of its own transforms the tiles for all blocks of columns.
// CHECK-LABEL: func.func @ahead
// CHECK: schedule = #kernel.cpu.winograd<{{.*}}transformLaunch = true
// LOWER-LABEL: func.func @ahead
// LOWER: %[[TILES:.*]] = host.launch @[[AHEAD:.*_transform]](
// LOWER: host.launch {{.*}}%[[TILES]]
// LOWER: llvm.func @[[AHEAD]](
func.func @ahead(%x: tensor<1x14x14x256xf32>, %b: tensor<256xf32>) -> tensor<1x14x14x256xf32> attributes {prim.symbols = []} {
  %w = prim.constant dense<1.0> : tensor<3x3x256x256xf32>
  %r = kernel.region(%i0 = %x : tensor<1x14x14x256xf32>, %i1 = %w : tensor<3x3x256x256xf32>, %i2 = %b : tensor<256xf32>) -> (tensor<1x14x14x256xf32>) {
    %0 = prim.conv %i0, %i1 strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x14x14x256xf32>, tensor<3x3x256x256xf32>) -> tensor<1x14x14x256xf32>
    %1 = prim.broadcast %i2 [3] : tensor<256xf32> -> tensor<1x14x14x256xf32>
    %2 = prim.add %0, %1 : tensor<1x14x14x256xf32>
    kernel.yield %2 : tensor<1x14x14x256xf32>
  }
  return %r : tensor<1x14x14x256xf32>
}

// -----

// A filter that is a static input: a launch of its own transforms it, the columns beyond the last panel's 8 among it.
// CHECK-LABEL: func.func @given
// CHECK: schedule = #kernel.cpu.winograd<
// CHECK-NOT: rhs =
// CHECK: prim.conv
// LOWER-LABEL: func.func @given
// LOWER: %[[FILTER:.*]] = host.launch @[[PACK:.*_filter]]({{.*}}tensor<36x16x256x16xf32>
// LOWER: host.launch @{{.*}}, %[[FILTER]])
// LOWER: llvm.func @[[PACK]](
func.func @given(%x: tensor<4x14x14x256xf32>, %w: tensor<3x3x256x248xf32> {prim.static}) -> tensor<4x14x14x248xf32> attributes {prim.symbols = []} {
  %r = kernel.region(%i0 = %x : tensor<4x14x14x256xf32>, %i1 = %w : tensor<3x3x256x248xf32>) -> (tensor<4x14x14x248xf32>) {
    %0 = prim.conv %i0, %i1 strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<4x14x14x256xf32>, tensor<3x3x256x248xf32>) -> tensor<4x14x14x248xf32>
    kernel.yield %0 : tensor<4x14x14x248xf32>
  }
  return %r : tensor<4x14x14x248xf32>
}

// -----

// One that each run may change, a weight in training: direct.
// CHECK-LABEL: func.func @changing
// CHECK: schedule = #kernel.cpu.contract<
func.func @changing(%x: tensor<4x14x14x256xf32>, %w: tensor<3x3x256x248xf32>) -> tensor<4x14x14x248xf32> attributes {prim.symbols = []} {
  %r = kernel.region(%i0 = %x : tensor<4x14x14x256xf32>, %i1 = %w : tensor<3x3x256x248xf32>) -> (tensor<4x14x14x248xf32>) {
    %0 = prim.conv %i0, %i1 strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<4x14x14x256xf32>, tensor<3x3x256x248xf32>) -> tensor<4x14x14x248xf32>
    kernel.yield %0 : tensor<4x14x14x248xf32>
  }
  return %r : tensor<4x14x14x248xf32>
}

// -----

// What is computed of static inputs by another region is static.
// CHECK-LABEL: func.func @moved
// CHECK: schedule = #kernel.cpu.winograd<
func.func @moved(%x: tensor<4x14x14x256xf32>, %w: tensor<248x256x3x3xf32> {prim.static}) -> tensor<4x14x14x248xf32> attributes {prim.symbols = []} {
  %h = kernel.region(%i0 = %w : tensor<248x256x3x3xf32>) -> (tensor<3x3x256x248xf32>) {
    %0 = prim.transpose %i0 [2, 3, 1, 0] : tensor<248x256x3x3xf32> -> tensor<3x3x256x248xf32>
    kernel.yield %0 : tensor<3x3x256x248xf32>
  }
  %r = kernel.region(%i0 = %x : tensor<4x14x14x256xf32>, %i1 = %h : tensor<3x3x256x248xf32>) -> (tensor<4x14x14x248xf32>) {
    %0 = prim.conv %i0, %i1 strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<4x14x14x256xf32>, tensor<3x3x256x248xf32>) -> tensor<4x14x14x248xf32>
    kernel.yield %0 : tensor<4x14x14x248xf32>
  }
  return %r : tensor<4x14x14x248xf32>
}

// -----

// For few pixels it costs more than it saves, where a constant is worth it (@ahead).
// CHECK-LABEL: func.func @given_for_few
// CHECK: schedule = #kernel.cpu.contract<
func.func @given_for_few(%x: tensor<1x8x8x256xf32>, %w: tensor<3x3x256x256xf32> {prim.static}) -> tensor<1x8x8x256xf32> attributes {prim.symbols = []} {
  %r = kernel.region(%i0 = %x : tensor<1x8x8x256xf32>, %i1 = %w : tensor<3x3x256x256xf32>) -> (tensor<1x8x8x256xf32>) {
    %0 = prim.conv %i0, %i1 strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x8x8x256xf32>, tensor<3x3x256x256xf32>) -> tensor<1x8x8x256xf32>
    kernel.yield %0 : tensor<1x8x8x256xf32>
  }
  return %r : tensor<1x8x8x256xf32>
}

// -----

// A volume: each task clears its sums and takes the planes that a kernel of three meets one after another.
// CHECK-LABEL: func.func @volume
// CHECK: schedule = #kernel.cpu.winograd<
// LOWER-LABEL: func.func @volume
// LOWER: host.constant dense<1.000000e+00> : tensor<3x3x3x64x64xf32> map #{{.*}} transform dense<{{.*}}> : tensor<36x9xf64> : tensor<36x12x64x16xf32>
func.func @volume(%x: tensor<1x8x28x28x64xf32>) -> tensor<1x8x28x28x64xf32> attributes {prim.symbols = []} {
  %w = prim.constant dense<1.0> : tensor<3x3x3x64x64xf32>
  %r = kernel.region(%i0 = %x : tensor<1x8x28x28x64xf32>, %i1 = %w : tensor<3x3x3x64x64xf32>) -> (tensor<1x8x28x28x64xf32>) {
    %0 = prim.conv %i0, %i1 strides [1, 1, 1] dilations [1, 1, 1] pads [1, 1, 1] [1, 1, 1] groups 1 : (tensor<1x8x28x28x64xf32>, tensor<3x3x3x64x64xf32>) -> tensor<1x8x28x28x64xf32>
    kernel.yield %0 : tensor<1x8x28x28x64xf32>
  }
  return %r : tensor<1x8x28x28x64xf32>
}

// -----

// Two and a half times as fast, and little behind it that makes an error larger.
// CHECK-LABEL: func.func @last
// CHECK: schedule = #kernel.cpu.winograd<
func.func @last(%x: tensor<1x128x128x32xf32>, %p: tensor<32x32xf32>) -> tensor<1x128x128x32xf32> attributes {prim.symbols = []} {
  %w = prim.constant dense<1.0> : tensor<3x3x32x32xf32>
  %0 = kernel.region(%i0 = %x : tensor<1x128x128x32xf32>, %i1 = %w : tensor<3x3x32x32xf32>) -> (tensor<1x128x128x32xf32>) {
    %c = prim.conv %i0, %i1 strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x128x128x32xf32>, tensor<3x3x32x32xf32>) -> tensor<1x128x128x32xf32>
    kernel.yield %c : tensor<1x128x128x32xf32>
  }
  %1 = prim.dot_general %0, %p batch [] x [] contract [3] x [0] : (tensor<1x128x128x32xf32>, tensor<32x32xf32>) -> tensor<1x128x128x32xf32>
  return %1 : tensor<1x128x128x32xf32>
}

// -----

// With thirteen products behind it is direct.
// CHECK-LABEL: func.func @first_of_deep
// CHECK: schedule = #kernel.cpu.contract<
func.func @first_of_deep(%x: tensor<1x128x128x32xf32>, %p: tensor<32x32xf32>) -> tensor<1x128x128x32xf32> attributes {prim.symbols = []} {
  %w = prim.constant dense<1.0> : tensor<3x3x32x32xf32>
  %0 = kernel.region(%i0 = %x : tensor<1x128x128x32xf32>, %i1 = %w : tensor<3x3x32x32xf32>) -> (tensor<1x128x128x32xf32>) {
    %c = prim.conv %i0, %i1 strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x128x128x32xf32>, tensor<3x3x32x32xf32>) -> tensor<1x128x128x32xf32>
    kernel.yield %c : tensor<1x128x128x32xf32>
  }
  %1 = prim.dot_general %0, %p batch [] x [] contract [3] x [0] : (tensor<1x128x128x32xf32>, tensor<32x32xf32>) -> tensor<1x128x128x32xf32>
  %2 = prim.dot_general %1, %p batch [] x [] contract [3] x [0] : (tensor<1x128x128x32xf32>, tensor<32x32xf32>) -> tensor<1x128x128x32xf32>
  %3 = prim.dot_general %2, %p batch [] x [] contract [3] x [0] : (tensor<1x128x128x32xf32>, tensor<32x32xf32>) -> tensor<1x128x128x32xf32>
  %4 = prim.dot_general %3, %p batch [] x [] contract [3] x [0] : (tensor<1x128x128x32xf32>, tensor<32x32xf32>) -> tensor<1x128x128x32xf32>
  %5 = prim.dot_general %4, %p batch [] x [] contract [3] x [0] : (tensor<1x128x128x32xf32>, tensor<32x32xf32>) -> tensor<1x128x128x32xf32>
  %6 = prim.dot_general %5, %p batch [] x [] contract [3] x [0] : (tensor<1x128x128x32xf32>, tensor<32x32xf32>) -> tensor<1x128x128x32xf32>
  %7 = prim.dot_general %6, %p batch [] x [] contract [3] x [0] : (tensor<1x128x128x32xf32>, tensor<32x32xf32>) -> tensor<1x128x128x32xf32>
  %8 = prim.dot_general %7, %p batch [] x [] contract [3] x [0] : (tensor<1x128x128x32xf32>, tensor<32x32xf32>) -> tensor<1x128x128x32xf32>
  %9 = prim.dot_general %8, %p batch [] x [] contract [3] x [0] : (tensor<1x128x128x32xf32>, tensor<32x32xf32>) -> tensor<1x128x128x32xf32>
  %10 = prim.dot_general %9, %p batch [] x [] contract [3] x [0] : (tensor<1x128x128x32xf32>, tensor<32x32xf32>) -> tensor<1x128x128x32xf32>
  %11 = prim.dot_general %10, %p batch [] x [] contract [3] x [0] : (tensor<1x128x128x32xf32>, tensor<32x32xf32>) -> tensor<1x128x128x32xf32>
  %12 = prim.dot_general %11, %p batch [] x [] contract [3] x [0] : (tensor<1x128x128x32xf32>, tensor<32x32xf32>) -> tensor<1x128x128x32xf32>
  %13 = prim.dot_general %12, %p batch [] x [] contract [3] x [0] : (tensor<1x128x128x32xf32>, tensor<32x32xf32>) -> tensor<1x128x128x32xf32>
  return %13 : tensor<1x128x128x32xf32>
}

// -----

// The furthest of several results counts: what training keeps for its gradients is a result as well.
// CHECK-LABEL: func.func @kept_as_well
// CHECK: schedule = #kernel.cpu.contract<
func.func @kept_as_well(%x: tensor<1x128x128x32xf32>, %p: tensor<32x32xf32>) -> (tensor<1x128x128x32xf32>, tensor<1x128x128x32xf32>) attributes {prim.symbols = []} {
  %w = prim.constant dense<1.0> : tensor<3x3x32x32xf32>
  %0 = kernel.region(%i0 = %x : tensor<1x128x128x32xf32>, %i1 = %w : tensor<3x3x32x32xf32>) -> (tensor<1x128x128x32xf32>) {
    %c = prim.conv %i0, %i1 strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x128x128x32xf32>, tensor<3x3x32x32xf32>) -> tensor<1x128x128x32xf32>
    kernel.yield %c : tensor<1x128x128x32xf32>
  }
  %1 = prim.dot_general %0, %p batch [] x [] contract [3] x [0] : (tensor<1x128x128x32xf32>, tensor<32x32xf32>) -> tensor<1x128x128x32xf32>
  %2 = prim.dot_general %1, %p batch [] x [] contract [3] x [0] : (tensor<1x128x128x32xf32>, tensor<32x32xf32>) -> tensor<1x128x128x32xf32>
  %3 = prim.dot_general %2, %p batch [] x [] contract [3] x [0] : (tensor<1x128x128x32xf32>, tensor<32x32xf32>) -> tensor<1x128x128x32xf32>
  %4 = prim.dot_general %3, %p batch [] x [] contract [3] x [0] : (tensor<1x128x128x32xf32>, tensor<32x32xf32>) -> tensor<1x128x128x32xf32>
  %5 = prim.dot_general %4, %p batch [] x [] contract [3] x [0] : (tensor<1x128x128x32xf32>, tensor<32x32xf32>) -> tensor<1x128x128x32xf32>
  %6 = prim.dot_general %5, %p batch [] x [] contract [3] x [0] : (tensor<1x128x128x32xf32>, tensor<32x32xf32>) -> tensor<1x128x128x32xf32>
  %7 = prim.dot_general %6, %p batch [] x [] contract [3] x [0] : (tensor<1x128x128x32xf32>, tensor<32x32xf32>) -> tensor<1x128x128x32xf32>
  %8 = prim.dot_general %7, %p batch [] x [] contract [3] x [0] : (tensor<1x128x128x32xf32>, tensor<32x32xf32>) -> tensor<1x128x128x32xf32>
  %9 = prim.dot_general %8, %p batch [] x [] contract [3] x [0] : (tensor<1x128x128x32xf32>, tensor<32x32xf32>) -> tensor<1x128x128x32xf32>
  %10 = prim.dot_general %9, %p batch [] x [] contract [3] x [0] : (tensor<1x128x128x32xf32>, tensor<32x32xf32>) -> tensor<1x128x128x32xf32>
  %11 = prim.dot_general %10, %p batch [] x [] contract [3] x [0] : (tensor<1x128x128x32xf32>, tensor<32x32xf32>) -> tensor<1x128x128x32xf32>
  %12 = prim.dot_general %11, %p batch [] x [] contract [3] x [0] : (tensor<1x128x128x32xf32>, tensor<32x32xf32>) -> tensor<1x128x128x32xf32>
  %13 = prim.dot_general %12, %p batch [] x [] contract [3] x [0] : (tensor<1x128x128x32xf32>, tensor<32x32xf32>) -> tensor<1x128x128x32xf32>
  return %0, %13 : tensor<1x128x128x32xf32>, tensor<1x128x128x32xf32>
}

// -----

// A shortcut carries it past them.
// CHECK-LABEL: func.func @past_shortcut
// CHECK: schedule = #kernel.cpu.winograd<
func.func @past_shortcut(%x: tensor<1x128x128x32xf32>, %p: tensor<32x32xf32>) -> tensor<1x128x128x32xf32> attributes {prim.symbols = []} {
  %w = prim.constant dense<1.0> : tensor<3x3x32x32xf32>
  %0 = kernel.region(%i0 = %x : tensor<1x128x128x32xf32>, %i1 = %w : tensor<3x3x32x32xf32>) -> (tensor<1x128x128x32xf32>) {
    %c = prim.conv %i0, %i1 strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x128x128x32xf32>, tensor<3x3x32x32xf32>) -> tensor<1x128x128x32xf32>
    kernel.yield %c : tensor<1x128x128x32xf32>
  }
  %1 = prim.dot_general %0, %p batch [] x [] contract [3] x [0] : (tensor<1x128x128x32xf32>, tensor<32x32xf32>) -> tensor<1x128x128x32xf32>
  %2 = prim.dot_general %1, %p batch [] x [] contract [3] x [0] : (tensor<1x128x128x32xf32>, tensor<32x32xf32>) -> tensor<1x128x128x32xf32>
  %3 = prim.dot_general %2, %p batch [] x [] contract [3] x [0] : (tensor<1x128x128x32xf32>, tensor<32x32xf32>) -> tensor<1x128x128x32xf32>
  %4 = prim.dot_general %3, %p batch [] x [] contract [3] x [0] : (tensor<1x128x128x32xf32>, tensor<32x32xf32>) -> tensor<1x128x128x32xf32>
  %5 = prim.dot_general %4, %p batch [] x [] contract [3] x [0] : (tensor<1x128x128x32xf32>, tensor<32x32xf32>) -> tensor<1x128x128x32xf32>
  %6 = prim.dot_general %5, %p batch [] x [] contract [3] x [0] : (tensor<1x128x128x32xf32>, tensor<32x32xf32>) -> tensor<1x128x128x32xf32>
  %7 = prim.dot_general %6, %p batch [] x [] contract [3] x [0] : (tensor<1x128x128x32xf32>, tensor<32x32xf32>) -> tensor<1x128x128x32xf32>
  %8 = prim.dot_general %7, %p batch [] x [] contract [3] x [0] : (tensor<1x128x128x32xf32>, tensor<32x32xf32>) -> tensor<1x128x128x32xf32>
  %9 = prim.dot_general %8, %p batch [] x [] contract [3] x [0] : (tensor<1x128x128x32xf32>, tensor<32x32xf32>) -> tensor<1x128x128x32xf32>
  %10 = prim.dot_general %9, %p batch [] x [] contract [3] x [0] : (tensor<1x128x128x32xf32>, tensor<32x32xf32>) -> tensor<1x128x128x32xf32>
  %11 = prim.dot_general %10, %p batch [] x [] contract [3] x [0] : (tensor<1x128x128x32xf32>, tensor<32x32xf32>) -> tensor<1x128x128x32xf32>
  %12 = prim.dot_general %11, %p batch [] x [] contract [3] x [0] : (tensor<1x128x128x32xf32>, tensor<32x32xf32>) -> tensor<1x128x128x32xf32>
  %13 = prim.dot_general %12, %p batch [] x [] contract [3] x [0] : (tensor<1x128x128x32xf32>, tensor<32x32xf32>) -> tensor<1x128x128x32xf32>
  %14 = prim.add %13, %0 : tensor<1x128x128x32xf32>
  return %14 : tensor<1x128x128x32xf32>
}
