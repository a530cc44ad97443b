// Another dim becomes the last: a tile is turned in shared memory. Where neither dim is known to be whole pieces, elements are moved.
// RUN: tc-opt %s --tc-choose-schedule=device=cuda --tc-lower-kernels=variants=sm_90a -split-input-file | FileCheck %s
// RUN: tc-opt %s --tc-choose-schedule=device=cuda -split-input-file | FileCheck %s --check-prefix=SCHEDULE

// CHECK-LABEL: func.func @pieces
// CHECK: llvm.mlir.global internal {{.*}}_tile() {addr_space = 3 {{.*}}!llvm.array<4160 x f32>
// CHECK: nvvm.barrier0
// CHECK-NOT: scf.if
// SCHEDULE-LABEL: func.func @pieces
// SCHEDULE: #kernel.gpu.transpose<>
func.func @pieces(%x: tensor<128x256xf32>, %y: tensor<256x128xf32>) -> tensor<256x128xf32> {
  %r = kernel.region(%a = %x : tensor<128x256xf32>, %b = %y : tensor<256x128xf32>) -> (tensor<256x128xf32>) {
    %t = prim.transpose %a [1, 0] : tensor<128x256xf32> -> tensor<256x128xf32>
    %s = prim.add %t, %b : tensor<256x128xf32>
    kernel.yield %s : tensor<256x128xf32>
  }
  return %r : tensor<256x128xf32>
}

// -----

// CHECK-LABEL: func.func @elements
// CHECK: !llvm.array<1056 x bf16>
// SCHEDULE-LABEL: func.func @elements
// SCHEDULE: #kernel.gpu.transpose<tile = 32>
func.func @elements(%x: tensor<3x50x77xbf16>) -> tensor<3x77x50xbf16> {
  %r = kernel.region(%a = %x : tensor<3x50x77xbf16>) -> (tensor<3x77x50xbf16>) {
    %t = prim.transpose %a [0, 2, 1] : tensor<3x50x77xbf16> -> tensor<3x77x50xbf16>
    kernel.yield %t : tensor<3x77x50xbf16>
  }
  return %r : tensor<3x77x50xbf16>
}
