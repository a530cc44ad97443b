// Proves: with fuse=false each primitive is its own region; verify-fuse names what stands outside.
// RUN: tc-opt %s --tc-fuse=fuse=false --tc-verify-fuse | FileCheck %s
// RUN: not tc-opt %s --tc-verify-fuse 2>&1 | FileCheck %s --check-prefix=BAD

// BAD: 'prim.exp' op stands outside of a kernel.region after the fuse phase; run tc-fuse
// CHECK-LABEL: func.func @chain
// CHECK-COUNT-3: kernel.region
// CHECK-NOT: kernel.region
func.func @chain(%x: tensor<8x4xf32>) -> tensor<32xf32> {
  %e = prim.exp %x : tensor<8x4xf32>
  %t = prim.transpose %e [1, 0] : tensor<8x4xf32> -> tensor<4x8xf32>
  %v = prim.reshape %t : tensor<4x8xf32> -> tensor<32xf32>
  %n = prim.neg %v : tensor<32xf32>
  return %n : tensor<32xf32>
}
