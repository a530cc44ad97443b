// Options that make no sense are refused by name.
// RUN: not tc-opt %s -tc-fuse=max-ops=0 2>&1 | FileCheck %s
// RUN: not tc-opt %s -tc-fuse=max-buffers=-1 2>&1 | FileCheck %s
// CHECK: error: max-ops and max-buffers are at least 1
// RUN: not tc-opt %s -tc-collapse-dims=device=gpu 2>&1 | FileCheck %s --check-prefix=DEVICE
// RUN: not tc-opt %s -tc-fuse=device=gpu 2>&1 | FileCheck %s --check-prefix=DEVICE
// DEVICE: Cannot find option named 'gpu'
// RUN: not tc-opt %s -tc-compile-variants=debug-dir=%t.none 2>&1 | FileCheck %s --check-prefix=FOLDER
// FOLDER: error: {{.*}}.none is no folder
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
