// Lanes run along the elements of a transform, or along columns and short rows; pairs of real elements are complex ones; prime factors
// without a radix make a convolution; what only the run knows, or has large tables, has a launch for its factors.
// RUN: tc-opt %s --tc-choose-schedule | FileCheck %s
// RUN: tc-opt %s --tc-choose-schedule --tc-lower-kernels=variants=x86-64-v3 | FileCheck %s --check-prefix=CODE
!f = tensor<?x64x1x2xf32, #prim.dims<affine_map<()[s0] -> (s0 floordiv 4096 - 3, 64, 1, 2)>>>
!n = tensor<?x?x1x1xf32, #prim.dims<affine_map<()[s0, s1] -> (s0, s1, 1, 1)>>>
!r = tensor<?x?x1x2xf32, #prim.dims<affine_map<()[s0, s1] -> (s0, s1, 1, 2)>>>

// CHECK-LABEL: @known
// CHECK: #kernel.cpu.fft<packed = true, radix256 = 8, radix512 = 16
// CHECK: #kernel.cpu.fft<radix256 = 8, radix512 = 16
// CHECK: #kernel.cpu.fft<batch = 16, radix256
// CHECK: #kernel.cpu.fft<batch = 16, radix256
// CHECK: #kernel.cpu.fft<bluestein = 224, radix256
// CHECK: #kernel.cpu.fft<twiddleLaunch = true
func.func @known(%real: tensor<4x4096x1x1xf32>, %complex: tensor<4x4096x1x2xf32>, %columns: tensor<4x64x50x2xf32>, %short: tensor<90x8x1x2xf32>,
                 %prime: tensor<4x97x1x2xf32>, %large: tensor<1x1048576x1x2xf32>)
    -> (tensor<4x2049x1x2xf32>, tensor<4x4096x1x2xf32>, tensor<4x64x50x2xf32>, tensor<90x8x1x2xf32>, tensor<4x97x1x2xf32>, tensor<1x1048576x1x2xf32>) {
  %0 = kernel.region(%i = %real : tensor<4x4096x1x1xf32>) -> (tensor<4x2049x1x2xf32>) {
    %f = prim.fft %i length affine_map<() -> (4096)> : tensor<4x4096x1x1xf32> -> tensor<4x2049x1x2xf32>
    kernel.yield %f : tensor<4x2049x1x2xf32>
  }
  %1 = kernel.region(%i = %complex : tensor<4x4096x1x2xf32>) -> (tensor<4x4096x1x2xf32>) {
    %f = prim.fft inverse %i length affine_map<() -> (4096)> : tensor<4x4096x1x2xf32> -> tensor<4x4096x1x2xf32>
    kernel.yield %f : tensor<4x4096x1x2xf32>
  }
  %2 = kernel.region(%i = %columns : tensor<4x64x50x2xf32>) -> (tensor<4x64x50x2xf32>) {
    %f = prim.fft %i length affine_map<() -> (64)> : tensor<4x64x50x2xf32> -> tensor<4x64x50x2xf32>
    kernel.yield %f : tensor<4x64x50x2xf32>
  }
  %3 = kernel.region(%i = %short : tensor<90x8x1x2xf32>) -> (tensor<90x8x1x2xf32>) {
    %f = prim.fft %i length affine_map<() -> (8)> : tensor<90x8x1x2xf32> -> tensor<90x8x1x2xf32>
    kernel.yield %f : tensor<90x8x1x2xf32>
  }
  %4 = kernel.region(%i = %prime : tensor<4x97x1x2xf32>) -> (tensor<4x97x1x2xf32>) {
    %f = prim.fft %i length affine_map<() -> (97)> : tensor<4x97x1x2xf32> -> tensor<4x97x1x2xf32>
    kernel.yield %f : tensor<4x97x1x2xf32>
  }
  %5 = kernel.region(%i = %large : tensor<1x1048576x1x2xf32>) -> (tensor<1x1048576x1x2xf32>) {
    %f = prim.fft %i length affine_map<() -> (1048576)> : tensor<1x1048576x1x2xf32> -> tensor<1x1048576x1x2xf32>
    kernel.yield %f : tensor<1x1048576x1x2xf32>
  }
  return %0, %1, %2, %3, %4, %5 : tensor<4x2049x1x2xf32>, tensor<4x4096x1x2xf32>, tensor<4x64x50x2xf32>, tensor<90x8x1x2xf32>, tensor<4x97x1x2xf32>, tensor<1x1048576x1x2xf32>
}

// Frames of a signal of which likely sizes have none.
// CHECK-LABEL: @no_frames
// CHECK: #kernel.cpu.fft<
func.func @no_frames(%x: !f) -> !f attributes {prim.symbols = [#prim.symbol<"n", 0, 1000000, 1>]} {
  %0 = kernel.region(%i = %x : !f) -> (!f) attributes {cost = #tc.cost<flops = ()[s0] -> ((s0 floordiv 4096) * 4480 - 13440), bytes = ()[s0] -> ((s0 floordiv 4096) * 1024 - 3072)>} {
    %f = prim.fft %i length affine_map<() -> (64)> : !f -> !f
    kernel.yield %f : !f
  }
  return %0 : !f
}

// CHECK-LABEL: @unknown
// CHECK: #kernel.cpu.fft<twiddleLaunch = true
func.func @unknown(%x: !n) -> !r attributes {prim.symbols = [#prim.symbol<"p", 0, 1000, 1>, #prim.symbol<"n", 1, 100000, 1>]} {
  %0 = kernel.region(%i = %x : !n) -> (!r) {
    %f = prim.fft %i length affine_map<()[s0, s1] -> (s1)> : !n -> !r
    kernel.yield %f : !r
  }
  return %0 : !r
}

// One launch makes the factors; in two steps another one transforms the chirp and then the elements, by the same code.
// CODE-LABEL: func.func @unknown
// CODE: host.launch @{{.*}}_twiddles
// CODE: host.launch @{{.*}}_fft({{.*}} steps
// CODE-NOT: host.launch
// CODE: return
