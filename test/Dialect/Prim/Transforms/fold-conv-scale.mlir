// A factor per channel goes into constant weights, past a bias; not if the convolution has another reader.
// RUN: tc-opt %s -tc-fold-conv-scale -tc-fold-constants -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @batch_norm
// CHECK-DAG: %[[W:.*]] = prim.constant dense<{{.*}}[1.000000e+00, 6.000000e+00], [3.000000e+00, 1.200000e+01]{{.*}}> : tensor<1x1x2x2xf32>
// CHECK-DAG: prim.constant dense<[1.000000e+00, 6.000000e+00]> : tensor<2xf32>
// CHECK-DAG: prim.conv %arg0, %[[W]]
// CHECK-NOT: prim.mul
func.func @batch_norm(%x: tensor<1x4x4x2xf32>) -> tensor<1x4x4x2xf32> {
  %w = prim.constant dense<[[[[1.0, 2.0], [3.0, 4.0]]]]> : tensor<1x1x2x2xf32>
  %b = prim.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %s = prim.constant dense<[1.0, 3.0]> : tensor<2xf32>
  %0 = prim.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x4x4x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x4x4x2xf32>
  %1 = prim.broadcast %b [3] : tensor<2xf32> -> tensor<1x4x4x2xf32>
  %2 = prim.add %0, %1 : tensor<1x4x4x2xf32>
  %3 = prim.broadcast %s [3] : tensor<2xf32> -> tensor<1x4x4x2xf32>
  %4 = prim.mul %2, %3 : tensor<1x4x4x2xf32>
  return %4 : tensor<1x4x4x2xf32>
}

// -----

// CHECK-LABEL: func.func @two_readers
// CHECK: prim.conv
// CHECK: prim.mul
func.func @two_readers(%x: tensor<1x4x4x2xf32>) -> (tensor<1x4x4x2xf32>, tensor<1x4x4x2xf32>) {
  %w = prim.constant dense<[[[[1.0, 2.0], [3.0, 4.0]]]]> : tensor<1x1x2x2xf32>
  %s = prim.constant dense<[1.0, 3.0]> : tensor<2xf32>
  %0 = prim.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x4x4x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x4x4x2xf32>
  %3 = prim.broadcast %s [3] : tensor<2xf32> -> tensor<1x4x4x2xf32>
  %4 = prim.mul %0, %3 : tensor<1x4x4x2xf32>
  return %4, %0 : tensor<1x4x4x2xf32>, tensor<1x4x4x2xf32>
}
