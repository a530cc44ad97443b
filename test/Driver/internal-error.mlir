// A defect of tc: exit code 6, a sentence, and a module that fails the same way; beside the output or in the debug folder.
// RUN: rm -rf %t && mkdir %t
// RUN: %python %S/Inputs/status.py 6 tc-compile %s -o %t/out.bin 2>&1 | FileCheck %s
// RUN: not ls %t/out.bin
// RUN: %python %S/Inputs/status.py 6 tc-compile %t/out.bin.reproducer.mlir -o %t/again.bin 2>&1 | FileCheck %s
// RUN: %python %S/Inputs/status.py 6 tc-compile %s -o %t/out.bin --debug-dir %t/debug 2>&1 | FileCheck %s --check-prefix=DEBUG
// RUN: ls %t/debug/reproducer.mlir

// CHECK: error: internal error: {{.*}}the strategy of schedule #kernel.cpu.scan<{{.*}}> has no code for this region; {{.*}}; this is a defect of tc, please report it with the model and this command: {{.*}}tc-compile {{.*}} -o
// CHECK: note: the module before that phase is in {{.*}}.bin.reproducer.mlir
// DEBUG: note: the module before that phase is in {{.*}}debug/reproducer.mlir

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = kernel.region(%a = %x : tensor<4xf32>) -> (tensor<4xf32>) attributes {schedule = #kernel.cpu.scan<block = 64>} {
    %1 = prim.add %a, %a : tensor<4xf32>
    kernel.yield %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
