// Options that make no sense are refused by name.
// RUN: not tc-opt %s -tc-decompose-composites=keep=softmax,sofmax 2>&1 | FileCheck %s --check-prefix=KEEP
// RUN: not tc-opt %s -tc-round-products=precision=bf61 2>&1 | FileCheck %s --check-prefix=PRECISION
// RUN: not tc-opt %s -tc-fold-constants=max-bytes=-1 2>&1 | FileCheck %s --check-prefix=BYTES
// RUN: not tc-opt %s -tc-fold-constants=max-work=-1 2>&1 | FileCheck %s --check-prefix=BYTES
// KEEP: error: keep=sofmax names no composite: softmax, norm, attention, rnn, block_dot
// PRECISION: error: precision=bf61 is none of f32, tf32, bf16, f16
// BYTES: error: max-bytes and max-work are at least 0
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
