// Products of few rows and a matrix that only the run knows read it where it lies, along its rows or along its columns; not with many
// rows, constant matrices, ones that are computed, or short sums of many rows along the columns.
// RUN: tc-opt %s --tc-choose-schedule | FileCheck %s
// CHECK: #kernel.cpu.skinny_gemm<{{.*}}tileN = 256{{[,>]}}{{.*}}steps = 64{{[,>]}}{{.*}}rows256 = 2{{[,>]}}{{.*}}cols256 = 32{{[,>]}}{{.*}}rows512 = 2{{[,>]}}{{.*}}cols512 = 128{{[,>]}}
// CHECK: #kernel.cpu.skinny_gemm<{{.*}}tileN = 128{{[,>]}}{{.*}}transposed = true{{.*}}lhsCopy = true{{.*}}steps = 1024{{[,>]}}{{.*}}rows256 = 4{{[,>]}}{{.*}}rows512 = 4{{[,>]}}
// CHECK-COUNT-4: #kernel.cpu.contract<
func.func @main(%x: tensor<2x2048xf32>, %y: tensor<8x2048xf32>, %m: tensor<2048x2048xf32>, %z: tensor<17x2048xf32>, %u: tensor<5x16xf32>, %v: tensor<40x16xf32>) {
  %c = prim.constant dense<1.0> : tensor<2048x64xf32>
  %0 = kernel.region(%i = %x : tensor<2x2048xf32>, %j = %m : tensor<2048x2048xf32>) -> (tensor<2x2048xf32>) {
    %r = prim.dot_general %i, %j batch [] x [] contract [1] x [0] : (tensor<2x2048xf32>, tensor<2048x2048xf32>) -> tensor<2x2048xf32>
    kernel.yield %r : tensor<2x2048xf32>
  }
  %1 = kernel.region(%i = %y : tensor<8x2048xf32>, %j = %m : tensor<2048x2048xf32>) -> (tensor<8x2048xf32>) {
    %r = prim.dot_general %i, %j batch [] x [] contract [1] x [1] : (tensor<8x2048xf32>, tensor<2048x2048xf32>) -> tensor<8x2048xf32>
    kernel.yield %r : tensor<8x2048xf32>
  }
  %2 = kernel.region(%i = %z : tensor<17x2048xf32>, %j = %m : tensor<2048x2048xf32>) -> (tensor<17x2048xf32>) {
    %r = prim.dot_general %i, %j batch [] x [] contract [1] x [0] : (tensor<17x2048xf32>, tensor<2048x2048xf32>) -> tensor<17x2048xf32>
    kernel.yield %r : tensor<17x2048xf32>
  }
  %3 = kernel.region(%i = %x : tensor<2x2048xf32>, %j = %c : tensor<2048x64xf32>) -> (tensor<2x64xf32>) {
    %r = prim.dot_general %i, %j batch [] x [] contract [1] x [0] : (tensor<2x2048xf32>, tensor<2048x64xf32>) -> tensor<2x64xf32>
    kernel.yield %r : tensor<2x64xf32>
  }
  %4 = kernel.region(%i = %x : tensor<2x2048xf32>, %j = %m : tensor<2048x2048xf32>) -> (tensor<2x2048xf32>) {
    %e = prim.exp %j : tensor<2048x2048xf32>
    %r = prim.dot_general %i, %e batch [] x [] contract [1] x [0] : (tensor<2x2048xf32>, tensor<2048x2048xf32>) -> tensor<2x2048xf32>
    kernel.yield %r : tensor<2x2048xf32>
  }
  %5 = kernel.region(%i = %u : tensor<5x16xf32>, %j = %v : tensor<40x16xf32>) -> (tensor<5x40xf32>) {
    %r = prim.dot_general %i, %j batch [] x [] contract [1] x [1] : (tensor<5x16xf32>, tensor<40x16xf32>) -> tensor<5x40xf32>
    kernel.yield %r : tensor<5x40xf32>
  }
  return
}
