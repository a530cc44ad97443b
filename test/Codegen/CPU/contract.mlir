// Proves: the contract generator takes products and convolutions, packs constant weights through views, and its kernels multiply in
// registers.
// RUN: tc-opt %s --split-input-file --tc-choose-schedule | FileCheck %s
// RUN: tc-opt %s --split-input-file --tc-choose-schedule --tc-lower-kernels=variants=x86-64-v3,x86-64-v4 | FileCheck %s --check-prefix=LOWER

// Weights in [N, K] order: packed as they are, panels of 16 columns, K-major. A dynamic number of rows; the epilogue is inside.
// CHECK-LABEL: func.func @linear
// CHECK: schedule = #kernel.cpu.contract<rhs = 1, tileM = {{[0-9]+}}, tileN = {{[0-9]+}}, rows256 = 6, cols256 = 16, prefetchBytes256 = 4096, rows512 = 8, cols512 = 48
// LOWER: #[[MAP:.*]] = affine_map<(d0, d1, d2) -> (d0 * 16 + d2, d1)>
// LOWER-LABEL: func.func @linear
// LOWER: host.constant dense<1.000000e+00> : tensor<200x96xf32> map #[[MAP]] : tensor<13x96x16xf32>
// LOWER: host.launch @[[KERNEL:k0_dot_general[a-z_]*]](
// LOWER-LABEL: host.variant @"x86-64-v3"
// LOWER: llvm.func @[[KERNEL]](
// LOWER: llvm.intr.fmuladd{{.*}}vector<8xf32>
// LOWER-LABEL: host.variant @"x86-64-v4"
// LOWER: llvm.func @[[KERNEL]](
// LOWER: llvm.intr.fmuladd{{.*}}vector<16xf32>
!x = tensor<?x96xf32, #prim.dims<affine_map<()[s0] -> (s0, 96)>>>
!y = tensor<?x200xf32, #prim.dims<affine_map<()[s0] -> (s0, 200)>>>
func.func @linear(%x: !x) -> !y attributes {prim.symbols = [#prim.symbol<"rows", 0, 1000000, 1>]} {
  %w = prim.constant dense<1.0> : tensor<200x96xf32>
  %b = prim.constant dense<2.0> : tensor<200xf32>
  %r = kernel.region(%i0 = %x : !x, %i1 = %w : tensor<200x96xf32>, %i2 = %b : tensor<200xf32>) -> (!y) {
    %t = prim.transpose %i1 [1, 0] : tensor<200x96xf32> -> tensor<96x200xf32>
    %0 = prim.dot_general %i0, %t batch [] x [] contract [1] x [0] : (!x, tensor<96x200xf32>) -> !y
    %1 = prim.broadcast %i2 [1] : tensor<200xf32> -> !y
    %2 = prim.add %0, %1 : !y
    kernel.yield %2 : !y
  }
  return %r : !y
}

// -----

// Both operands at run time: the task packs the second one, which lies along K, by transposing.
// CHECK-LABEL: func.func @scores
// CHECK: #kernel.cpu.contract<{{.*}}rhsTransposed = true
// LOWER-LABEL: func.func @scores
// LOWER: host.launch {{.*}} scratch
func.func @scores(%q: tensor<2x3x20x16xf32>, %k: tensor<2x3x35x16xf32>) -> tensor<2x3x20x35xf32> {
  %r = kernel.region(%i0 = %q : tensor<2x3x20x16xf32>, %i1 = %k : tensor<2x3x35x16xf32>) -> (tensor<2x3x20x35xf32>) {
    %0 = prim.dot_general %i0, %i1 batch [0, 1] x [0, 1] contract [3] x [3] : (tensor<2x3x20x16xf32>, tensor<2x3x35x16xf32>) -> tensor<2x3x20x35xf32>
    kernel.yield %0 : tensor<2x3x20x35xf32>
  }
  return %r : tensor<2x3x20x35xf32>
}

// -----

// A small matrix that only the run knows is read where it lies by few rows: nothing is packed. 40 columns are no whole panels.
// CHECK-LABEL: func.func @in_place
// CHECK: #kernel.cpu.contract<{{.*}}rhsInPlace = true
// CHECK: #kernel.cpu.contract<
// LOWER-LABEL: func.func @in_place
// LOWER: host.launch
// LOWER-NOT: scratch
// LOWER: host.launch {{.*}} scratch
func.func @in_place(%x: tensor<9x64x24xf32>, %y: tensor<9x24x48xf32>, %z: tensor<9x24x40xf32>) -> (tensor<9x64x48xf32>, tensor<9x64x40xf32>) {
  %r = kernel.region(%i0 = %x : tensor<9x64x24xf32>, %i1 = %y : tensor<9x24x48xf32>) -> (tensor<9x64x48xf32>) {
    %0 = prim.dot_general %i0, %i1 batch [0] x [0] contract [2] x [1] : (tensor<9x64x24xf32>, tensor<9x24x48xf32>) -> tensor<9x64x48xf32>
    kernel.yield %0 : tensor<9x64x48xf32>
  }
  %s = kernel.region(%i0 = %x : tensor<9x64x24xf32>, %i1 = %z : tensor<9x24x40xf32>) -> (tensor<9x64x40xf32>) {
    %0 = prim.dot_general %i0, %i1 batch [0] x [0] contract [2] x [1] : (tensor<9x64x24xf32>, tensor<9x24x40xf32>) -> tensor<9x64x40xf32>
    kernel.yield %0 : tensor<9x64x40xf32>
  }
  return %r, %s : tensor<9x64x48xf32>, tensor<9x64x40xf32>
}

// -----

// Many tasks read the same panels: a launch of its own packs them, once, into a temporary.
// CHECK-LABEL: func.func @many_rows
// CHECK: #kernel.cpu.contract<{{.*}}rhsLaunch = true
// LOWER-LABEL: func.func @many_rows
// LOWER: %[[PACKED:.*]] = host.launch @[[PACK:k[0-9]+[a-z_]*_pack]](%{{.*}}) {{.*}}-> {{.*}}tensor<1x{{[0-9]+}}x1024xf32>
// LOWER: host.launch {{.*}}%[[PACKED]]
func.func @many_rows(%x: tensor<1000x64xf32>, %y: tensor<64x80xf32>) -> tensor<1000x80xf32> {
  %r = kernel.region(%i0 = %x : tensor<1000x64xf32>, %i1 = %y : tensor<64x80xf32>) -> (tensor<1000x80xf32>) {
    %0 = prim.dot_general %i0, %i1 batch [] x [] contract [1] x [0] : (tensor<1000x64xf32>, tensor<64x80xf32>) -> tensor<1000x80xf32>
    kernel.yield %0 : tensor<1000x80xf32>
  }
  return %r : tensor<1000x80xf32>
}

// -----

// Columns of A are copied as they lie; many tasks read the same rows: a launch of its own copies them. 80 columns are 5 panels, the
// groups of 3 end in one of 2.
// CHECK-LABEL: func.func @transposed
// CHECK: #kernel.cpu.contract<{{.*}}rhs = 1{{[,>]}}{{.*}}lhsCopy = true{{.*}}lhsLaunch = true{{.*}}lhsTransposed = true
// CHECK: #kernel.cpu.contract<{{.*}}rhsLaunch = true{{.*}}lhsCopy = true{{.*}}lhsTransposed = true
// LOWER-LABEL: func.func @transposed
// LOWER: %[[COPIED:.*]] = host.launch @[[COPY:k[0-9]+[a-z_]*_copy]](%{{.*}}) {{.*}}-> {{.*}}tensor<1x{{[0-9]+}}x{{[0-9]+}}xf32>
// LOWER: host.launch {{.*}}%[[COPIED]]
func.func @transposed(%x: tensor<512x500xf32>, %y: tensor<512x80xf32>) -> (tensor<500x1024xf32>, tensor<500x80xf32>) {
  %w = prim.constant dense<1.0> : tensor<512x1024xf32>
  %r = kernel.region(%i0 = %x : tensor<512x500xf32>, %i1 = %w : tensor<512x1024xf32>) -> (tensor<500x1024xf32>) {
    %0 = prim.dot_general %i0, %i1 batch [] x [] contract [0] x [0] : (tensor<512x500xf32>, tensor<512x1024xf32>) -> tensor<500x1024xf32>
    kernel.yield %0 : tensor<500x1024xf32>
  }
  %s = kernel.region(%i0 = %x : tensor<512x500xf32>, %i1 = %y : tensor<512x80xf32>) -> (tensor<500x80xf32>) {
    %0 = prim.dot_general %i0, %i1 batch [] x [] contract [0] x [0] : (tensor<512x500xf32>, tensor<512x80xf32>) -> tensor<500x80xf32>
    kernel.yield %0 : tensor<500x80xf32>
  }
  return %r, %s : tensor<500x1024xf32>, tensor<500x80xf32>
}

// -----

// A padded convolution copies its rows; k runs over kernel rows, kernel columns and channels.
// CHECK-LABEL: func.func @conv3x3
// CHECK: #kernel.cpu.contract<{{.*}}lhsCopy = true{{.*}}cols256 = 16{{[,>]}}{{.*}}cols512 = 32{{[,>]}}
// LOWER: #[[MAP:.*]] = affine_map<(d0, d1, d2) -> ((d1 floordiv 64) floordiv 3, (d1 floordiv 64) mod 3, d1 mod 64, d0 * 16 + d2)>
// LOWER-LABEL: func.func @conv3x3
// LOWER: host.constant {{.*}} map #[[MAP]] : tensor<4x576x16xf32>
// The addresses of a kernel position, of A and of B, from which those of rows and panels are constant distances.
// LOWER: llvm.func @k0_conv(
// LOWER: %[[A:.*]] = llvm.inline_asm "", "=r,0"
// LOWER-NEXT: llvm.inline_asm "", "=r,0"
// LOWER: llvm.getelementptr %[[A]][
func.func @conv3x3(%x: tensor<1x14x14x64xf32>) -> tensor<1x14x14x64xf32> {
  %w = prim.constant dense<1.0> : tensor<3x3x64x64xf32>
  %r = kernel.region(%i0 = %x : tensor<1x14x14x64xf32>, %i1 = %w : tensor<3x3x64x64xf32>) -> (tensor<1x14x14x64xf32>) {
    %0 = prim.conv %i0, %i1 strides [1, 1] dilations [2, 2] pads [2, 2] [2, 2] groups 1 : (tensor<1x14x14x64xf32>, tensor<3x3x64x64xf32>) -> tensor<1x14x14x64xf32>
    kernel.yield %0 : tensor<1x14x14x64xf32>
  }
  return %r : tensor<1x14x14x64xf32>
}

// -----

// A filter that only the run knows is packed by a launch of its own; one of few products is not.
// CHECK-LABEL: func.func @given_filter
// CHECK: #kernel.cpu.contract<{{.*}}rhsLaunch = true{{.*}}lhsCopy = true
// CHECK: #kernel.cpu.width_conv<
// LOWER-LABEL: func.func @given_filter
// LOWER: host.launch @k0_conv_pack({{.*}} -> tensor<3x144x16xf32>
// LOWER: host.launch @k0_conv(
func.func @given_filter(%x: tensor<1x14x14x16xf32>, %z: tensor<1x14x14x2xf32>, %w: tensor<3x3x16x40xf32>, %v: tensor<3x3x2x3xf32>) -> (tensor<1x14x14x40xf32>, tensor<1x12x12x3xf32>) {
  %r = kernel.region(%i0 = %x : tensor<1x14x14x16xf32>, %i1 = %w : tensor<3x3x16x40xf32>) -> (tensor<1x14x14x40xf32>) {
    %0 = prim.conv %i0, %i1 strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x14x14x16xf32>, tensor<3x3x16x40xf32>) -> tensor<1x14x14x40xf32>
    kernel.yield %0 : tensor<1x14x14x40xf32>
  }
  %s = kernel.region(%i0 = %z : tensor<1x14x14x2xf32>, %i1 = %v : tensor<3x3x2x3xf32>) -> (tensor<1x12x12x3xf32>) {
    %0 = prim.conv %i0, %i1 strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x14x14x2xf32>, tensor<3x3x2x3xf32>) -> tensor<1x12x12x3xf32>
    kernel.yield %0 : tensor<1x12x12x3xf32>
  }
  return %r, %s : tensor<1x14x14x40xf32>, tensor<1x12x12x3xf32>
}

// -----

// A residual that only the epilogue reads, at the output's own positions, may give its memory to the output.
// CHECK-LABEL: func.func @residual
// LOWER-LABEL: func.func @residual
// LOWER: host.launch {{.*}} in_place [2, 0]
func.func @residual(%x: tensor<8x32xf32>, %old: tensor<8x48xf32>) -> tensor<8x48xf32> {
  %w = prim.constant dense<1.0> : tensor<32x48xf32>
  %r = kernel.region(%i0 = %x : tensor<8x32xf32>, %i1 = %w : tensor<32x48xf32>, %i2 = %old : tensor<8x48xf32>) -> (tensor<8x48xf32>) {
    %0 = prim.dot_general %i0, %i1 batch [] x [] contract [1] x [0] : (tensor<8x32xf32>, tensor<32x48xf32>) -> tensor<8x48xf32>
    %1 = prim.add %0, %i2 : tensor<8x48xf32>
    kernel.yield %1 : tensor<8x48xf32>
  }
  return %r : tensor<8x48xf32>
}

// -----

// A vector of f64 takes two registers: half as many sums stay in them.
// CHECK-LABEL: func.func @wide
// CHECK: #kernel.cpu.contract<{{.*}}rows256 = 2{{[,>]}}{{.*}}rows512 = 8{{[,>]}}{{.*}}cols512 = 16{{[,>]}}
func.func @wide(%x: tensor<8x8xf64>) -> tensor<8x8xf64> {
  %r = kernel.region(%i0 = %x : tensor<8x8xf64>) -> (tensor<8x8xf64>) {
    %0 = prim.dot_general %i0, %i0 batch [] x [] contract [1] x [0] : (tensor<8x8xf64>, tensor<8x8xf64>) -> tensor<8x8xf64>
    kernel.yield %0 : tensor<8x8xf64>
  }
  return %r : tensor<8x8xf64>
}

// Negative: a value that is needed at two positions at once goes to the loops generator.
// CHECK-LABEL: func.func @symmetric
// CHECK: #kernel.cpu.loops<
func.func @symmetric(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %r = kernel.region(%i0 = %x : tensor<8x8xf32>) -> (tensor<8x8xf32>) {
    %0 = prim.dot_general %i0, %i0 batch [] x [] contract [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %1 = prim.transpose %0 [1, 0] : tensor<8x8xf32> -> tensor<8x8xf32>
    %2 = prim.add %0, %1 : tensor<8x8xf32>
    kernel.yield %2 : tensor<8x8xf32>
  }
  return %r : tensor<8x8xf32>
}

// -----

// One block of rows: the micro-kernel fetches its share of the next panels, a line for each step of K, and no rows after its own.
// LOWER-LABEL: func.func @few_rows
// LOWER-LABEL: host.variant @"x86-64-v4"
// LOWER-COUNT-4: llvm.intr.prefetch
// LOWER-NOT: llvm.intr.prefetch
func.func @few_rows(%x: tensor<5x96xf32>) -> tensor<5x16xf32> {
  %w = prim.constant dense<1.0> : tensor<96x16xf32>
  %r = kernel.region(%i0 = %x : tensor<5x96xf32>, %i1 = %w : tensor<96x16xf32>) -> (tensor<5x16xf32>) {
    %0 = prim.dot_general %i0, %i1 batch [] x [] contract [1] x [0] : (tensor<5x96xf32>, tensor<96x16xf32>) -> tensor<5x16xf32>
    kernel.yield %0 : tensor<5x16xf32>
  }
  return %r : tensor<5x16xf32>
}

// -----

// Weights of f16 are packed as they are, and widened as they are read.
// CHECK-LABEL: func.func @half_weights
// CHECK: schedule = #kernel.cpu.contract<{{.*}}rhs = 1{{[,>]}}
// LOWER-LABEL: func.func @half_weights
// LOWER: host.constant dense<1.{{.*}}> : tensor<64x200xf16> map {{.*}} : tensor<13x64x16xf16>
// LOWER-LABEL: host.variant @"x86-64-v3"
// LOWER: llvm.fpext {{.*}} : vector<8xf16> to vector<8xf32>
// LOWER-LABEL: host.variant @"x86-64-v4"
// LOWER: llvm.fpext {{.*}} : vector<16xf16> to vector<16xf32>
func.func @half_weights(%x: tensor<40x64xf32>) -> tensor<40x200xf32> {
  %w = prim.constant dense<1.0> : tensor<64x200xf16>
  %r = kernel.region(%i0 = %x : tensor<40x64xf32>, %i1 = %w : tensor<64x200xf16>) -> (tensor<40x200xf32>) {
    %0 = prim.convert %i1 : tensor<64x200xf16> -> tensor<64x200xf32>
    %1 = prim.dot_general %i0, %0 batch [] x [] contract [1] x [0] : (tensor<40x64xf32>, tensor<64x200xf32>) -> tensor<40x200xf32>
    kernel.yield %1 : tensor<40x200xf32>
  }
  return %r : tensor<40x200xf32>
}

// -----

// Pixels of a line of unknown length are read where they lie, in micro-kernels of one row.
// CHECK-LABEL: func.func @line
// CHECK: #kernel.cpu.contract<{{.*}}tileW = 112{{[,>]}}{{.*}}patchH256 = 1{{[,>]}}{{.*}}patchH512 = 1{{[,>]}}
!line = tensor<1x?x64xf32, #prim.dims<affine_map<()[s0] -> (1, s0 * 2 + 1, 64)>>>
!half = tensor<1x?x64xf32, #prim.dims<affine_map<()[s0] -> (1, s0, 64)>>>
func.func @line(%x: !line) -> !half attributes {prim.symbols = [#prim.symbol<"l", 0, 100000, 1>]} {
  %w = prim.constant dense<1.0> : tensor<3x64x64xf32>
  %r = kernel.region(%i0 = %x : !line, %i1 = %w : tensor<3x64x64xf32>) -> (!half) {
    %0 = prim.conv %i0, %i1 strides [2] dilations [1] pads [0] [0] groups 1 : (!line, tensor<3x64x64xf32>) -> !half
    kernel.yield %0 : !half
  }
  return %r : !half
}

// -----

// A product of one task is made of several where each is worth it, and in halves where a short last block would leave the busier of two
// threads with more than before: 3 panels at a time, but not 9 and 3 of 12.
// CHECK-LABEL: func.func @small_tasks
// CHECK: #kernel.cpu.contract<{{.*}}tileM = 64{{[,>]}}{{.*}}tileN = 48{{[,>]}}
// CHECK: #kernel.cpu.contract<{{.*}}tileM = 64{{[,>]}}{{.*}}tileN = 192{{[,>]}}
func.func @small_tasks(%x: tensor<64x96xf32>, %y: tensor<64x128xf32>) -> (tensor<64x144xf32>, tensor<128x192xf32>) {
  %w = prim.constant dense<1.0> : tensor<96x144xf32>
  %v = prim.constant dense<1.0> : tensor<64x192xf32>
  %r = kernel.region(%i0 = %x : tensor<64x96xf32>, %i1 = %w : tensor<96x144xf32>) -> (tensor<64x144xf32>) {
    %0 = prim.dot_general %i0, %i1 batch [] x [] contract [1] x [0] : (tensor<64x96xf32>, tensor<96x144xf32>) -> tensor<64x144xf32>
    kernel.yield %0 : tensor<64x144xf32>
  }
  %s = kernel.region(%i0 = %y : tensor<64x128xf32>, %i1 = %v : tensor<64x192xf32>) -> (tensor<128x192xf32>) {
    %0 = prim.dot_general %i0, %i1 batch [] x [] contract [0] x [0] : (tensor<64x128xf32>, tensor<64x192xf32>) -> tensor<128x192xf32>
    kernel.yield %0 : tensor<128x192xf32>
  }
  return %r, %s : tensor<64x144xf32>, tensor<128x192xf32>
}

// -----

// The constants of an epilogue's function are not held in registers through the micro-kernel; of an addition there are none.
// LOWER-LABEL: func.func @functions
// LOWER-LABEL: host.variant @"x86-64-v3"
// LOWER: llvm.inline_asm has_side_effects "", "~{ymm0},
// LOWER-LABEL: host.variant @"x86-64-v4"
// LOWER: llvm.func @k0_dot_general_tanh(
// LOWER: llvm.inline_asm has_side_effects "", "~{zmm0},{{.*}},~{zmm31}"
// LOWER: llvm.inline_asm has_side_effects "", "~{zmm0},{{.*}},~{zmm31}"
// LOWER: llvm.func @k1_dot_general_add(
// LOWER-NOT: llvm.inline_asm has_side_effects
func.func @functions(%x: tensor<64x96xf32>) -> (tensor<64x133xf32>, tensor<64x133xf32>) {
  %w = prim.constant dense<1.0> : tensor<96x133xf32>
  %r = kernel.region(%i0 = %x : tensor<64x96xf32>, %i1 = %w : tensor<96x133xf32>) -> (tensor<64x133xf32>) {
    %0 = prim.dot_general %i0, %i1 batch [] x [] contract [1] x [0] : (tensor<64x96xf32>, tensor<96x133xf32>) -> tensor<64x133xf32>
    %1 = prim.tanh %0 : tensor<64x133xf32>
    kernel.yield %1 : tensor<64x133xf32>
  }
  %s = kernel.region(%i0 = %x : tensor<64x96xf32>, %i1 = %w : tensor<96x133xf32>) -> (tensor<64x133xf32>) {
    %0 = prim.dot_general %i0, %i1 batch [] x [] contract [1] x [0] : (tensor<64x96xf32>, tensor<96x133xf32>) -> tensor<64x133xf32>
    %1 = prim.add %0, %0 : tensor<64x133xf32>
    kernel.yield %1 : tensor<64x133xf32>
  }
  return %r, %s : tensor<64x133xf32>, tensor<64x133xf32>
}

// -----

// A small B, which stays in the second-level cache, is read by all threads, each of which takes rows of its own: tasks are in the order
// of rows, then columns. One that is larger than the rows and the results is cut among the threads.
// CHECK-LABEL: func.func @rows_of_their_own
// CHECK: #kernel.cpu.contract<{{.*}}rasterOrder = rows_outer
// CHECK-NOT: rowsOuter
// CHECK: return
func.func @rows_of_their_own(%x: tensor<1024x256xf32>, %w: tensor<256x512xf32>, %y: tensor<120x256xf32>, %v: tensor<256x512xf32>) -> (tensor<1024x512xf32>, tensor<120x512xf32>) {
  %r = kernel.region(%i0 = %x : tensor<1024x256xf32>, %i1 = %w : tensor<256x512xf32>) -> (tensor<1024x512xf32>) {
    %0 = prim.dot_general %i0, %i1 batch [] x [] contract [1] x [0] : (tensor<1024x256xf32>, tensor<256x512xf32>) -> tensor<1024x512xf32>
    kernel.yield %0 : tensor<1024x512xf32>
  }
  %s = kernel.region(%i0 = %y : tensor<120x256xf32>, %i1 = %v : tensor<256x512xf32>) -> (tensor<120x512xf32>) {
    %0 = prim.dot_general %i0, %i1 batch [] x [] contract [1] x [0] : (tensor<120x256xf32>, tensor<256x512xf32>) -> tensor<120x512xf32>
    kernel.yield %0 : tensor<120x512xf32>
  }
  return %r, %s : tensor<1024x512xf32>, tensor<120x512xf32>
}

// -----

// A constant A is in the caches of all threads: a B that is larger than the results alone is cut among them, here the pixels of a 1x1
// convolution that the layer before wrote. A smaller one is not.
// CHECK-LABEL: func.func @columns_of_their_own
// CHECK: #kernel.cpu.contract<{{.*}}rhsLaunch = true{{.*}}rows256 = 6{{[,>]}}{{.*}}rows512 = 8{{[,>]}}
// CHECK: #kernel.cpu.contract<{{.*}}rasterOrder = rows_outer
// CHECK: return
func.func @columns_of_their_own(%x: tensor<197x323xf32>, %y: tensor<64x323xf32>) -> (tensor<131x323xf32>, tensor<256x323xf32>) {
  %f = prim.constant dense<1.5> : tensor<131x197xf32>
  %g = prim.constant dense<1.5> : tensor<256x64xf32>
  %r = kernel.region(%i0 = %f : tensor<131x197xf32>, %i1 = %x : tensor<197x323xf32>) -> (tensor<131x323xf32>) {
    %0 = prim.dot_general %i0, %i1 batch [] x [] contract [1] x [0] : (tensor<131x197xf32>, tensor<197x323xf32>) -> tensor<131x323xf32>
    kernel.yield %0 : tensor<131x323xf32>
  }
  %s = kernel.region(%i0 = %g : tensor<256x64xf32>, %i1 = %y : tensor<64x323xf32>) -> (tensor<256x323xf32>) {
    %0 = prim.dot_general %i0, %i1 batch [] x [] contract [1] x [0] : (tensor<256x64xf32>, tensor<64x323xf32>) -> tensor<256x323xf32>
    kernel.yield %0 : tensor<256x323xf32>
  }
  return %r, %s : tensor<131x323xf32>, tensor<256x323xf32>
}

// -----

// CHECK-LABEL: func.func @pixels_of_their_own
// CHECK: #kernel.cpu.contract<{{.*}}rasterOrder = rows_outer
// CHECK-NOT: pixelsOuter
// CHECK: return
func.func @pixels_of_their_own(%x: tensor<1x28x28x128xf32>) -> (tensor<1x28x28x128xf32>, tensor<1x14x14x512xf32>) {
  %f = prim.constant dense<1.5> : tensor<3x3x32x128xf32>
  %g = prim.constant dense<1.5> : tensor<3x3x128x512xf32>
  %r = kernel.region(%i0 = %x : tensor<1x28x28x128xf32>, %i1 = %f : tensor<3x3x32x128xf32>) -> (tensor<1x28x28x128xf32>) {
    %0 = prim.conv %i0, %i1 strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 4 : (tensor<1x28x28x128xf32>, tensor<3x3x32x128xf32>) -> tensor<1x28x28x128xf32>
    kernel.yield %0 : tensor<1x28x28x128xf32>
  }
  %s = kernel.region(%i0 = %x : tensor<1x28x28x128xf32>, %i1 = %g : tensor<3x3x128x512xf32>) -> (tensor<1x14x14x512xf32>) {
    %0 = prim.conv %i0, %i1 strides [2, 2] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x28x28x128xf32>, tensor<3x3x128x512xf32>) -> tensor<1x14x14x512xf32>
    kernel.yield %0 : tensor<1x14x14x512xf32>
  }
  return %r, %s : tensor<1x28x28x128xf32>, tensor<1x14x14x512xf32>
}

// -----

// Heads of 28 are no whole vectors: lanes do not cross them, and no element is stored on its own.
// CHECK-LABEL: func.func @heads
// CHECK: schedule = #kernel.cpu.contract<{{.*}}run = 28{{[,>]}}
// LOWER-LABEL: func.func @heads
// LOWER-LABEL: host.variant @"x86-64-v4"
// LOWER-NOT: llvm.intr.masked.scatter
func.func @heads(%x: tensor<50x96xf32>) -> tensor<4x50x28xf32> {
  %w = prim.constant dense<1.0> : tensor<96x112xf32>
  %r = kernel.region(%i0 = %x : tensor<50x96xf32>, %i1 = %w : tensor<96x112xf32>) -> (tensor<4x50x28xf32>) {
    %0 = prim.dot_general %i0, %i1 batch [] x [] contract [1] x [0] : (tensor<50x96xf32>, tensor<96x112xf32>) -> tensor<50x112xf32>
    %1 = prim.reshape %0 : tensor<50x112xf32> -> tensor<50x4x28xf32>
    %2 = prim.transpose %1 [1, 0, 2] : tensor<50x4x28xf32> -> tensor<4x50x28xf32>
    kernel.yield %2 : tensor<4x50x28xf32>
  }
  return %r : tensor<4x50x28xf32>
}
