// Rows that are put together of many short pieces are written element by element, each at a position that is known: nothing asks which piece
// it is of. Rows of the last dims but one, too; long pieces have lanes, and so have rows without elements.
// RUN: tc-opt %s --tc-choose-schedule | FileCheck %s
// RUN: tc-opt %s --tc-choose-schedule --tc-lower-kernels=variants=x86-64-v4 | FileCheck %s --check-prefix=LOWER

// CHECK-LABEL: func.func @main
// CHECK: #kernel.cpu.loops<{{.*}}joined = 2{{[,>]}}{{.*}}elements = true
// CHECK-NOT: elements
// LOWER-LABEL: llvm.func @k0_
// LOWER-NOT: llvm.select
// LOWER-LABEL: llvm.func @k1_
func.func @main(%x: tensor<7x1x2xf32>, %y: tensor<7x1x2xf32>, %z: tensor<7x64xf32>, %e: tensor<7x3x0xf32>) -> (tensor<7x24x2xf32>, tensor<7x128xf32>, tensor<7x72x0xf32>) {
  %0 = kernel.region(%a = %x : tensor<7x1x2xf32>, %b = %y : tensor<7x1x2xf32>) -> (tensor<7x24x2xf32>) {
    %c = prim.concat %a, %b, %a, %b, %a, %b, %b, %b, %a, %b, %a, %a, %a, %b, %a, %b, %a, %b, %b, %b, %a, %b, %a, %a axis = 1 : (tensor<7x1x2xf32>, tensor<7x1x2xf32>, tensor<7x1x2xf32>, tensor<7x1x2xf32>, tensor<7x1x2xf32>, tensor<7x1x2xf32>, tensor<7x1x2xf32>, tensor<7x1x2xf32>, tensor<7x1x2xf32>, tensor<7x1x2xf32>, tensor<7x1x2xf32>, tensor<7x1x2xf32>, tensor<7x1x2xf32>, tensor<7x1x2xf32>, tensor<7x1x2xf32>, tensor<7x1x2xf32>, tensor<7x1x2xf32>, tensor<7x1x2xf32>, tensor<7x1x2xf32>, tensor<7x1x2xf32>, tensor<7x1x2xf32>, tensor<7x1x2xf32>, tensor<7x1x2xf32>, tensor<7x1x2xf32>) -> tensor<7x24x2xf32>
    kernel.yield %c : tensor<7x24x2xf32>
  }
  %1 = kernel.region(%a = %z : tensor<7x64xf32>) -> (tensor<7x128xf32>) {
    %c = prim.concat %a, %a axis = 1 : (tensor<7x64xf32>, tensor<7x64xf32>) -> tensor<7x128xf32>
    kernel.yield %c : tensor<7x128xf32>
  }
  %2 = kernel.region(%a = %e : tensor<7x3x0xf32>) -> (tensor<7x72x0xf32>) {
    %c = prim.concat %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a axis = 1 : (tensor<7x3x0xf32>, tensor<7x3x0xf32>, tensor<7x3x0xf32>, tensor<7x3x0xf32>, tensor<7x3x0xf32>, tensor<7x3x0xf32>, tensor<7x3x0xf32>, tensor<7x3x0xf32>, tensor<7x3x0xf32>, tensor<7x3x0xf32>, tensor<7x3x0xf32>, tensor<7x3x0xf32>, tensor<7x3x0xf32>, tensor<7x3x0xf32>, tensor<7x3x0xf32>, tensor<7x3x0xf32>, tensor<7x3x0xf32>, tensor<7x3x0xf32>, tensor<7x3x0xf32>, tensor<7x3x0xf32>, tensor<7x3x0xf32>, tensor<7x3x0xf32>, tensor<7x3x0xf32>, tensor<7x3x0xf32>) -> tensor<7x72x0xf32>
    kernel.yield %c : tensor<7x72x0xf32>
  }
  return %0, %1, %2 : tensor<7x24x2xf32>, tensor<7x128xf32>, tensor<7x72x0xf32>
}
