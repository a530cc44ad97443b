// The passes of tc-lower-kernels, one after another: regions to kernels of vectors, their functions to multiply-adds, the bodies to the
// LLVM dialect.
// RUN: tc-opt %s --tc-emit-kernels=variants=x86-64-v4 | FileCheck %s --check-prefix=EMIT
// RUN: tc-opt %s --pass-pipeline='builtin.module(tc-emit-kernels{variants=x86-64-v4},host.variant(tc-expand-functions))' | FileCheck %s --check-prefix=EXPAND
// RUN: tc-opt %s --pass-pipeline='builtin.module(tc-emit-kernels{variants=x86-64-v4},host.variant(tc-expand-functions,tc-pair-gathers,tc-interleave-lanes,tc-lower-to-llvm))' > %t.passes
// RUN: tc-opt %s --tc-lower-kernels=variants=x86-64-v4 > %t.pipeline
// RUN: diff %t.passes %t.pipeline
// RUN: FileCheck %s --check-prefix=LOWER --input-file %t.pipeline
// RUN: not tc-opt %s --tc-emit-kernels=variants=z80 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// EMIT: host.launch @k0_exp
// EMIT: host.variant @"x86-64-v4"
// EMIT: scf.for
// EMIT: math.exp {{.*}} : vector<16xf32>
// EXPAND: scf.for
// EXPAND-NOT: math.exp
// EXPAND: math.fma {{.*}} : vector<16xf32>
// LOWER: host.variant @"x86-64-v4"
// LOWER-NOT: scf.
// LOWER-NOT: arith.
// LOWER: llvm.intr.fma{{.*}}vector<16xf32>
// UNKNOWN: error: variant z80
func.func @main(%x: tensor<64x256xf32>) -> tensor<64x256xf32> {
  %r = kernel.region(%a = %x : tensor<64x256xf32>) -> (tensor<64x256xf32>) attributes {schedule = #kernel.cpu.loops<lanes = true>} {
    %0 = prim.exp %a : tensor<64x256xf32>
    kernel.yield %0 : tensor<64x256xf32>
  }
  return %r : tensor<64x256xf32>
}
