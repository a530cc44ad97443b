// Options that take lists leave the model alone, wherever it stands.
// RUN: tc-compile --compile-to=host --target cpu --cpu x86-64-v3,x86-64-v4 %s -o - | FileCheck %s
// RUN: tc-compile --cpu x86-64-v3 --cpu x86-64-v4 %s --compile-to=host -o - | FileCheck %s
// RUN: tc-compile --compile-to=fuse --target cuda --gpu sm_80 %s -o - | FileCheck %s --check-prefix=FUSE

// CHECK-DAG: host.variant @"x86-64-v3"
// CHECK-DAG: host.variant @"x86-64-v4"
// FUSE: kernel.region
func.func @main(%x: tensor<4xf32> {tc.name = "x"}) -> (tensor<4xf32> {tc.name = "y"}) {
  %y = prim.neg %x : tensor<4xf32>
  return %y : tensor<4xf32>
}
