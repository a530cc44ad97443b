// Proves: attention, recurrent layers and convolutions of few channels a group have generators of their own, and refuse what they cannot take.
// RUN: tc-opt %s --tc-choose-schedule | FileCheck %s
// RUN: tc-opt %s --tc-choose-schedule --tc-lower-kernels=variants=x86-64-v4 | FileCheck %s --check-prefix=LOWER

// LOWER-DAG: #[[LSTM_STEPS:map[0-9]*]] = affine_map<()[s0] -> (s0 + 1)>
// LOWER-DAG: #[[GRU_STEPS:map[0-9]*]] = affine_map<()[s0] -> (s0 * 2 + 1)>

// The scratch holds blocks, never the whole matrix of scores: its size does not depend on the number of keys.
// CHECK-LABEL: func.func @attention
// CHECK: #kernel.cpu.attention<{{.*}}tileT = 32{{[,>]}}{{.*}}tileS = 112{{[,>]}}
// LOWER-LABEL: func.func @attention
// LOWER: host.launch {{.*}} scratch #{{map[0-9]*}}
!q = tensor<?x?x64xf32, #prim.dims<affine_map<()[s0, s1] -> (s0, s1, 64)>>>
func.func @attention(%x: !q) -> !q attributes {prim.symbols = [#prim.symbol<"b", 0, 64, 1>, #prim.symbol<"t", 0, 4096, 1>]} {
  %r = kernel.region(%q = %x : !q) -> (!q) {
    %0 = prim.attention %q, %q, %q scale 0.125 causal : (!q, !q, !q) -> !q
    kernel.yield %0 : !q
  }
  return %r : !q
}

// Few queries: rows of keys and values are read as they lie, in one block where their scores fit, with a task for each head.
// CHECK-LABEL: func.func @few_queries
// CHECK: #kernel.cpu.attention_rows<{{.*}}tileS = 256{{[,>]}}{{.*}}prefetchKeys = 32{{[,>]}}{{.*}}vectors256 = 4{{[,>]}}{{.*}}vectors512 = 7{{[,>]}}
// LOWER-LABEL: func.func @few_queries
// LOWER: host.launch @k1_attention(%arg0, %arg1, %arg2) {{.*}} tasks #{{map[0-9]*}}
func.func @few_queries(%x: tensor<8x2x64xf32>, %k: tensor<256x2x64xf32>, %v: tensor<8x256x100xf32>) -> tensor<8x2x100xf32> {
  %r = kernel.region(%q = %x : tensor<8x2x64xf32>, %i = %k : tensor<256x2x64xf32>, %w = %v : tensor<8x256x100xf32>) -> (tensor<8x2x100xf32>) {
    %t = prim.transpose %i [1, 0, 2] : tensor<256x2x64xf32> -> tensor<2x256x64xf32>
    %s = prim.broadcast %t [0, 2, 3] : tensor<2x256x64xf32> -> tensor<2x4x256x64xf32>
    %h = prim.reshape %s : tensor<2x4x256x64xf32> -> tensor<8x256x64xf32>
    %0 = prim.attention %q, %h, %w scale 0.125 : (tensor<8x2x64xf32>, tensor<8x256x64xf32>, tensor<8x256x100xf32>) -> tensor<8x2x100xf32>
    kernel.yield %0 : tensor<8x2x100xf32>
  }
  return %r : tensor<8x2x100xf32>
}

// Values whose columns are not neighbours would be gathered: they are copied by blocks.
// CHECK-LABEL: func.func @values_by_columns
// CHECK: #kernel.cpu.attention<
func.func @values_by_columns(%x: tensor<8x2x64xf32>, %k: tensor<8x256x64xf32>, %v: tensor<8x64x256xf32>) -> tensor<8x2x64xf32> {
  %r = kernel.region(%q = %x : tensor<8x2x64xf32>, %i = %k : tensor<8x256x64xf32>, %w = %v : tensor<8x64x256xf32>) -> (tensor<8x2x64xf32>) {
    %t = prim.transpose %w [0, 2, 1] : tensor<8x64x256xf32> -> tensor<8x256x64xf32>
    %0 = prim.attention %q, %i, %t scale 0.125 : (tensor<8x2x64xf32>, tensor<8x256x64xf32>, tensor<8x256x64xf32>) -> tensor<8x2x64xf32>
    kernel.yield %0 : tensor<8x2x64xf32>
  }
  return %r : tensor<8x2x64xf32>
}

// One panel set for each gate.
// CHECK-LABEL: func.func @lstm
// CHECK: #kernel.cpu.rnn<{{.*}}rhs = 1{{[,>]}}{{.*}}tileB = 4{{[,>]}}
// LOWER-LABEL: func.func @lstm
// LOWER: host.constant {{.*}} : tensor<4x2x20x16xf32>
func.func @lstm(%x: tensor<5x4x80xf32>, %h: tensor<4x20xf32>, %c: tensor<4x20xf32>, %n: tensor<4xi32>) -> (tensor<5x4x20xf32>, tensor<4x20xf32>) {
  %w = prim.constant dense<1.0> : tensor<20x80xf32>
  %b = prim.constant dense<2.0> : tensor<80xf32>
  %p = prim.constant dense<3.0> : tensor<60xf32>
  %r:2 = kernel.region(%i0 = %x : tensor<5x4x80xf32>, %i1 = %w : tensor<20x80xf32>, %i2 = %b : tensor<80xf32>, %i3 = %h : tensor<4x20xf32>, %i4 = %c : tensor<4x20xf32>, %i5 = %p : tensor<60xf32>, %i6 = %n : tensor<4xi32>) -> (tensor<5x4x20xf32>, tensor<4x20xf32>) {
    %y, %fh, %fc = prim.rnn lstm %i0, %i1, %i2, %i3, %i4, %i5, %i6 : (tensor<5x4x80xf32>, tensor<20x80xf32>, tensor<80xf32>, tensor<4x20xf32>, tensor<4x20xf32>, tensor<60xf32>, tensor<4xi32>) -> (tensor<5x4x20xf32>, tensor<4x20xf32>, tensor<4x20xf32>)
    kernel.yield %y, %fc : tensor<5x4x20xf32>, tensor<4x20xf32>
  }
  return %r#0, %r#1 : tensor<5x4x20xf32>, tensor<4x20xf32>
}

// One batch row and steps that take long: slices of the hidden dim, a launch step for the initial state and each step; a GRU whose
// reset comes first takes two, its state one more block. The state is a result that nothing else reads.
// CHECK-LABEL: func.func @one_row
// CHECK: #kernel.cpu.rnn<{{.*}}slice = 2{{[,>]}}
// LOWER-LABEL: func.func @one_row
// LOWER: host.launch {{.*}} steps #[[LSTM_STEPS]] {{.*}} -> (tensor<1x256xf32>, tensor<816xf32>)
// LOWER: host.launch {{.*}} steps #[[GRU_STEPS]] {{.*}} -> (tensor<1x256xf32>, tensor<1088xf32>)
!gates4 = tensor<?x1x1024xf32, #prim.dims<affine_map<()[s0] -> (s0, 1, 1024)>>>
!gates3 = tensor<?x1x768xf32, #prim.dims<affine_map<()[s0] -> (s0, 1, 768)>>>
!steps = tensor<?x1x256xf32, #prim.dims<affine_map<()[s0] -> (s0, 1, 256)>>>
func.func @one_row(%x: !gates4, %g: !gates3, %h: tensor<1x256xf32>, %n: tensor<1xi32>) -> (tensor<1x256xf32>, tensor<1x256xf32>) attributes {prim.symbols = [#prim.symbol<"t", 0, 4096, 1>]} {
  %w = prim.constant dense<1.0> : tensor<256x1024xf32>
  %v = prim.constant dense<1.0> : tensor<256x768xf32>
  %b = prim.constant dense<2.0> : tensor<1024xf32>
  %d = prim.constant dense<2.0> : tensor<768xf32>
  %p = prim.constant dense<3.0> : tensor<768xf32>
  %r = kernel.region(%i0 = %x : !gates4, %i1 = %w : tensor<256x1024xf32>, %i2 = %b : tensor<1024xf32>, %i3 = %h : tensor<1x256xf32>, %i5 = %p : tensor<768xf32>, %i6 = %n : tensor<1xi32>) -> (tensor<1x256xf32>) {
    %y, %fh, %fc = prim.rnn lstm %i0, %i1, %i2, %i3, %i3, %i5, %i6 : (!gates4, tensor<256x1024xf32>, tensor<1024xf32>, tensor<1x256xf32>, tensor<1x256xf32>, tensor<768xf32>, tensor<1xi32>) -> (!steps, tensor<1x256xf32>, tensor<1x256xf32>)
    kernel.yield %fh : tensor<1x256xf32>
  }
  %s = kernel.region(%i0 = %g : !gates3, %i1 = %v : tensor<256x768xf32>, %i2 = %d : tensor<768xf32>, %i3 = %h : tensor<1x256xf32>, %i5 = %p : tensor<768xf32>, %i6 = %n : tensor<1xi32>) -> (tensor<1x256xf32>) {
    %y, %fh, %fc = prim.rnn gru %i0, %i1, %i2, %i3, %i3, %i5, %i6 : (!gates3, tensor<256x768xf32>, tensor<768xf32>, tensor<1x256xf32>, tensor<1x256xf32>, tensor<768xf32>, tensor<1xi32>) -> (!steps, tensor<1x256xf32>, tensor<1x256xf32>)
    kernel.yield %fh : tensor<1x256xf32>
  }
  return %r, %s : tensor<1x256xf32>, tensor<1x256xf32>
}

// CHECK-LABEL: func.func @depthwise
// CHECK: #kernel.cpu.depthwise<{{.*}}pixels256 = 4{{[,>]}}{{.*}}pixels512 = 7{{[,>]}}
func.func @depthwise(%x: tensor<1x14x14x48xf32>) -> tensor<1x14x14x48xf32> {
  %w = prim.constant dense<1.0> : tensor<3x3x1x48xf32>
  %r = kernel.region(%i0 = %x : tensor<1x14x14x48xf32>, %i1 = %w : tensor<3x3x1x48xf32>) -> (tensor<1x14x14x48xf32>) {
    %0 = prim.conv %i0, %i1 strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 48 : (tensor<1x14x14x48xf32>, tensor<3x3x1x48xf32>) -> tensor<1x14x14x48xf32>
    kernel.yield %0 : tensor<1x14x14x48xf32>
  }
  return %r : tensor<1x14x14x48xf32>
}

// Channels that a reshape takes apart: no vector holds some of two parts, whose places lie apart.
// CHECK-LABEL: func.func @split_channels
// CHECK: #kernel.cpu.depthwise<{{.*}}run = 21{{[,>]}}
func.func @split_channels(%x: tensor<2x12x1x168xf32>) -> tensor<2x8x12x21xf32> {
  %w = prim.constant dense<1.0> : tensor<3x1x1x168xf32>
  %r = kernel.region(%i0 = %x : tensor<2x12x1x168xf32>, %i1 = %w : tensor<3x1x1x168xf32>) -> (tensor<2x8x12x21xf32>) {
    %0 = prim.conv %i0, %i1 strides [1, 1] dilations [1, 1] pads [1, 0] [1, 0] groups 168 : (tensor<2x12x1x168xf32>, tensor<3x1x1x168xf32>) -> tensor<2x12x1x168xf32>
    %1 = prim.reshape %0 : tensor<2x12x1x168xf32> -> tensor<2x12x8x21xf32>
    %2 = prim.transpose %1 [0, 2, 1, 3] : tensor<2x12x8x21xf32> -> tensor<2x8x12x21xf32>
    kernel.yield %2 : tensor<2x8x12x21xf32>
  }
  return %r : tensor<2x8x12x21xf32>
}

// Groups of 8 channels fill the lanes, groups of 12 are products.
// CHECK-LABEL: func.func @grouped
// CHECK: #kernel.cpu.depthwise<{{.*}}pixels256 = 7{{[,>]}}{{.*}}pixels512 = 14{{[,>]}}
// CHECK: #kernel.cpu.contract<
func.func @grouped(%x: tensor<1x14x14x48xf32>) -> (tensor<1x14x14x48xf32>, tensor<1x14x14x48xf32>) {
  %w = prim.constant dense<1.0> : tensor<3x3x8x48xf32>
  %v = prim.constant dense<1.0> : tensor<3x3x12x48xf32>
  %r = kernel.region(%i0 = %x : tensor<1x14x14x48xf32>, %i1 = %w : tensor<3x3x8x48xf32>) -> (tensor<1x14x14x48xf32>) {
    %0 = prim.conv %i0, %i1 strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 6 : (tensor<1x14x14x48xf32>, tensor<3x3x8x48xf32>) -> tensor<1x14x14x48xf32>
    kernel.yield %0 : tensor<1x14x14x48xf32>
  }
  %s = kernel.region(%i0 = %x : tensor<1x14x14x48xf32>, %i1 = %v : tensor<3x3x12x48xf32>) -> (tensor<1x14x14x48xf32>) {
    %0 = prim.conv %i0, %i1 strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 4 : (tensor<1x14x14x48xf32>, tensor<3x3x12x48xf32>) -> tensor<1x14x14x48xf32>
    kernel.yield %0 : tensor<1x14x14x48xf32>
  }
  return %r, %s : tensor<1x14x14x48xf32>, tensor<1x14x14x48xf32>
}

// A head of size 1 whose dim a reshape drops: one element is stored, not a vector.
// LOWER: llvm.func @k10_attention
// LOWER: %[[FIRST:.*]] = llvm.extractelement %{{.*}}[%{{.*}} : i64] : vector<16xf32>
// LOWER: llvm.store %[[FIRST]], %{{.*}} : f32, !llvm.ptr
// LOWER-NOT: llvm.store
// LOWER: llvm.return
func.func @one_column(%x: tensor<1x12x4x2xf32>, %v: tensor<1x4x7x1xf32>) -> tensor<1x12x4xf32> {
  %r = kernel.region(%q = %x : tensor<1x12x4x2xf32>, %w = %v : tensor<1x4x7x1xf32>) -> (tensor<1x12x4xf32>) {
    %k = prim.splat 0.5 : f32 : tensor<1x4x7x2xf32>
    %t = prim.transpose %q [0, 2, 1, 3] : tensor<1x12x4x2xf32> -> tensor<1x4x12x2xf32>
    %0 = prim.attention %t, %k, %w scale 1.0 : (tensor<1x4x12x2xf32>, tensor<1x4x7x2xf32>, tensor<1x4x7x1xf32>) -> tensor<1x4x12x1xf32>
    %1 = prim.transpose %0 [0, 2, 1, 3] : tensor<1x4x12x1xf32> -> tensor<1x12x4x1xf32>
    %2 = prim.reshape %1 : tensor<1x12x4x1xf32> -> tensor<1x12x4xf32>
    kernel.yield %2 : tensor<1x12x4xf32>
  }
  return %r : tensor<1x12x4xf32>
}

// More rows than a task's, whose weights stream from beyond the second-level cache: slices of all rows. Small weights: blocks of rows.
// CHECK-LABEL: func.func @rows_of_slices
// CHECK: #kernel.cpu.rnn<{{.*}}tileB = 16{{[,>]}}{{.*}}slice = 2{{[,>]}}
// CHECK: #kernel.cpu.rnn<{{.*}}tileB = 8{{[,>]}}
func.func @rows_of_slices(%x: tensor<5x16x512xf32>, %y: tensor<5x16x128xf32>, %h: tensor<16x512xf32>, %g: tensor<16x128xf32>, %n: tensor<16xi32>) -> (tensor<5x16x512xf32>, tensor<5x16x128xf32>) {
  %w = prim.constant dense<1.0> : tensor<512x512xf32>
  %v = prim.constant dense<1.0> : tensor<128x128xf32>
  %b = prim.constant dense<2.0> : tensor<512xf32>
  %d = prim.constant dense<2.0> : tensor<128xf32>
  %r = kernel.region(%i0 = %x : tensor<5x16x512xf32>, %i1 = %w : tensor<512x512xf32>, %i2 = %b : tensor<512xf32>, %i3 = %h : tensor<16x512xf32>, %i6 = %n : tensor<16xi32>) -> (tensor<5x16x512xf32>) {
    %s, %fh, %fc = prim.rnn rnn %i0, %i1, %i2, %i3, %i3, %i2, %i6 : (tensor<5x16x512xf32>, tensor<512x512xf32>, tensor<512xf32>, tensor<16x512xf32>, tensor<16x512xf32>, tensor<512xf32>, tensor<16xi32>) -> (tensor<5x16x512xf32>, tensor<16x512xf32>, tensor<16x512xf32>)
    kernel.yield %s : tensor<5x16x512xf32>
  }
  %q = kernel.region(%i0 = %y : tensor<5x16x128xf32>, %i1 = %v : tensor<128x128xf32>, %i2 = %d : tensor<128xf32>, %i3 = %g : tensor<16x128xf32>, %i6 = %n : tensor<16xi32>) -> (tensor<5x16x128xf32>) {
    %s, %fh, %fc = prim.rnn rnn %i0, %i1, %i2, %i3, %i3, %i2, %i6 : (tensor<5x16x128xf32>, tensor<128x128xf32>, tensor<128xf32>, tensor<16x128xf32>, tensor<16x128xf32>, tensor<128xf32>, tensor<16xi32>) -> (tensor<5x16x128xf32>, tensor<16x128xf32>, tensor<16x128xf32>)
    kernel.yield %s : tensor<5x16x128xf32>
  }
  return %r, %q : tensor<5x16x512xf32>, tensor<5x16x128xf32>
}
