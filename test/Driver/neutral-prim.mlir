// Phase prim knows no machine: its end is the same for all targets, also where a CPU wants products turned, cut or reduced afterwards.
// RUN: tc-compile %s -o %t.cpu.mlir --target cpu --compile-to=prim
// RUN: tc-compile %s -o %t.cuda.mlir --target cuda --compile-to=prim
// RUN: tc-compile %s -o %t.both.mlir --target cpu --target cuda --compile-to=prim
// RUN: diff %t.cpu.mlir %t.cuda.mlir && diff %t.cpu.mlir %t.both.mlir
// RUN: FileCheck %s < %t.cpu.mlir
// RUN: tc-compile %t.cpu.mlir -o %t.fused.mlir --compile-to=fuse && FileCheck %s --check-prefix=CPU < %t.fused.mlir
// RUN: tc-compile %t.cpu.mlir -o %t.fused.mlir --compile-to=fuse --target cuda && FileCheck %s --check-prefix=CUDA < %t.fused.mlir
// CHECK: prim.dot_general %{{.*}} : (tensor<1x512xf32>, tensor<512x300xf32>) -> tensor<1x300xf32>
// CHECK: prim.conv %{{.*}} groups 8
// CPU-NOT: prim.dot_general
// CPU: prim.conv %{{.*}} groups 24
// CUDA: prim.dot_general
// CUDA: prim.conv %{{.*}} groups 8
func.func @main(%v: tensor<1x512xf32>, %m: tensor<512x300xf32>, %x: tensor<1x8x8x8xf32>, %w: tensor<3x3x1x24xf32>)
    -> (tensor<1x300xf32>, tensor<1x6x6x24xf32>) {
  %0 = prim.dot_general %v, %m batch [] x [] contract [1] x [0] : (tensor<1x512xf32>, tensor<512x300xf32>) -> tensor<1x300xf32>
  %1 = prim.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 8 : (tensor<1x8x8x8xf32>, tensor<3x3x1x24xf32>) -> tensor<1x6x6x24xf32>
  return %0, %1 : tensor<1x300xf32>, tensor<1x6x6x24xf32>
}
