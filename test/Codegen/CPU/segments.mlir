// The inputs of a concat along the rows are written by loops of their own, without asking at each vector which one it is of; not where they
// are read elsewhere than where they are written.
// RUN: tc-opt %s --tc-choose-schedule | FileCheck %s
// RUN: tc-opt %s --tc-choose-schedule --tc-lower-kernels=variants=x86-64-v4 | FileCheck %s --check-prefix=LOWER

// CHECK-LABEL: func.func @main
// CHECK: #kernel.cpu.loops<{{.*}}segments = true
// CHECK: #kernel.cpu.loops<{{.*}}segments = true
// CHECK-NOT: pieces = 1

// LOWER-LABEL: llvm.func @k0_concat
// LOWER-NOT: llvm.icmp "sge"
// LOWER: llvm.fmul
// LOWER: llvm.store
// LOWER: llvm.fmul
// LOWER: llvm.store
// The second input ends with a part of a vector.
// LOWER-LABEL: llvm.func @k1_concat
// LOWER-NOT: llvm.icmp "sge"
// LOWER: llvm.intr.masked.store
// LOWER-LABEL: llvm.func @k2_
func.func @main(%x: tensor<90x32xf32>, %y: tensor<90x48xf32>, %z: tensor<90x9xf32>) -> (tensor<90x80xf32>, tensor<90x41xf32>, tensor<90x80xf32>) {
  %0 = kernel.region(%i = %x : tensor<90x32xf32>, %j = %y : tensor<90x48xf32>) -> (tensor<90x80xf32>) {
    %c = prim.concat %i, %j axis = 1 : (tensor<90x32xf32>, tensor<90x48xf32>) -> tensor<90x80xf32>
    %r = prim.mul %c, %c : tensor<90x80xf32>
    kernel.yield %r : tensor<90x80xf32>
  }
  %1 = kernel.region(%i = %x : tensor<90x32xf32>, %j = %z : tensor<90x9xf32>) -> (tensor<90x41xf32>) {
    %c = prim.concat %i, %j axis = 1 : (tensor<90x32xf32>, tensor<90x9xf32>) -> tensor<90x41xf32>
    kernel.yield %c : tensor<90x41xf32>
  }
  %2 = kernel.region(%i = %x : tensor<90x32xf32>, %j = %y : tensor<90x48xf32>) -> (tensor<90x80xf32>) {
    %c = prim.concat %i, %j axis = 1 : (tensor<90x32xf32>, tensor<90x48xf32>) -> tensor<90x80xf32>
    %s = prim.reduce sum %c [1] : tensor<90x80xf32> -> tensor<90xf32>
    %t = prim.broadcast %s [0] : tensor<90xf32> -> tensor<90x80xf32>
    %r = prim.mul %c, %t : tensor<90x80xf32>
    kernel.yield %r : tensor<90x80xf32>
  }
  return %0, %1, %2 : tensor<90x80xf32>, tensor<90x41xf32>, tensor<90x80xf32>
}

// Neighbours of fewer elements than a vector are one piece, of which each lane asks; the others are not asked for. Nothing but short ones
// is one row.
// CHECK-LABEL: func.func @short_neighbours
// CHECK: #kernel.cpu.loops<{{.*}}segments = true
// CHECK-NOT: pieces = 1
// LOWER-LABEL: llvm.func @k3_concat_mul
// LOWER-NOT: llvm.icmp "sge"
// LOWER: llvm.fmul
// LOWER: llvm.store
// LOWER: llvm.icmp "sge"{{.*}}vector<16x
// LOWER: llvm.intr.masked.store
func.func @short_neighbours(%x: tensor<90x64xf32>, %y: tensor<90x2xf32>, %z: tensor<90x3xf32>) -> (tensor<90x69xf32>, tensor<90x15xf32>) {
  %0 = kernel.region(%i = %x : tensor<90x64xf32>, %j = %y : tensor<90x2xf32>, %k = %z : tensor<90x3xf32>) -> (tensor<90x69xf32>) {
    %c = prim.concat %i, %j, %k axis = 1 : (tensor<90x64xf32>, tensor<90x2xf32>, tensor<90x3xf32>) -> tensor<90x69xf32>
    %r = prim.mul %c, %c : tensor<90x69xf32>
    kernel.yield %r : tensor<90x69xf32>
  }
  %1 = kernel.region(%j = %y : tensor<90x2xf32>, %k = %z : tensor<90x3xf32>) -> (tensor<90x15xf32>) {
    %c = prim.concat %j, %k, %j, %k, %j, %k axis = 1 : (tensor<90x2xf32>, tensor<90x3xf32>, tensor<90x2xf32>, tensor<90x3xf32>, tensor<90x2xf32>, tensor<90x3xf32>) -> tensor<90x15xf32>
    kernel.yield %c : tensor<90x15xf32>
  }
  return %0, %1 : tensor<90x69xf32>, tensor<90x15xf32>
}

// What a reflecting pad repeats: three runs of a list of indices, each of which lies in order, but not a list that jumps.
// CHECK-LABEL: func.func @reflected
// CHECK: #kernel.cpu.loops<{{.*}}segments = true
// CHECK-NOT: pieces = 1
func.func @reflected(%x: tensor<90x20xf32>) -> (tensor<90x25xf32>, tensor<90x25xf32>) {
  %0 = kernel.region(%i = %x : tensor<90x20xf32>) -> (tensor<90x25xf32>) {
    %l = prim.constant dense<[3, 2, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 18, 17]> : tensor<25xi64>
    %g = prim.gather %i[%l] axis = 1 : (tensor<90x20xf32>, tensor<25xi64>) -> tensor<90x25xf32>
    kernel.yield %g : tensor<90x25xf32>
  }
  %1 = kernel.region(%i = %x : tensor<90x20xf32>) -> (tensor<90x25xf32>) {
    %l = prim.constant dense<[3, 0, 9, 2, 7, 5, 1, 19, 4, 12, 3, 0, 9, 2, 7, 5, 1, 19, 4, 12, 3, 0, 9, 2, 7]> : tensor<25xi64>
    %g = prim.gather %i[%l] axis = 1 : (tensor<90x20xf32>, tensor<25xi64>) -> tensor<90x25xf32>
    kernel.yield %g : tensor<90x25xf32>
  }
  return %0, %1 : tensor<90x25xf32>, tensor<90x25xf32>
}
