// Scatters of many updates read them in the order of the slices that they name; of few updates, or where the last one wins, they do not.
// RUN: tc-opt %s --tc-prepare-cuda | FileCheck %s

// Several dims that indices name are one.
// CHECK-LABEL: func.func @slices
// CHECK-DAG: %[[TO:.*]] = prim.reshape %arg0 : tensor<20x50x8xf32> -> tensor<1000x8xf32>
// CHECK-DAG: %[[U:.*]] = prim.reshape %arg2 : tensor<60x100x8xf32> -> tensor<6000x8xf32>
// CHECK-DAG: %[[ORDER:.*]] = prim.arg_sort %[[CELLS:.*]] key_bits 10 : tensor<6000x1xi32> -> tensor<6000xi64>
// CHECK: %[[SUM:.*]] = prim.scatter_nd %[[TO]][%[[CELLS]]], %[[U]] order %[[ORDER]] kind sum
// CHECK: prim.reshape %[[SUM]] : tensor<1000x8xf32> -> tensor<20x50x8xf32>
func.func @slices(%x: tensor<20x50x8xf32>, %i: tensor<60x100x2xi64>, %u: tensor<60x100x8xf32>) -> tensor<20x50x8xf32> {
  %0 = prim.scatter_nd %x[%i], %u kind sum : (tensor<20x50x8xf32>, tensor<60x100x2xi64>, tensor<60x100x8xf32>) -> tensor<20x50x8xf32>
  return %0 : tensor<20x50x8xf32>
}

// A vector's elements are slices; two scatters by the same indices have one order.
// CHECK-LABEL: func.func @vectors
// CHECK: %[[ORDER:.*]] = prim.arg_sort
// CHECK-NOT: prim.arg_sort
// CHECK: prim.scatter_nd {{.*}} order %[[ORDER]] kind sum
// CHECK: prim.scatter_nd {{.*}} order %[[ORDER]] kind max
func.func @vectors(%x: tensor<300xf32>, %i: tensor<5000xi32>, %u: tensor<5000xf32>) -> (tensor<300xf32>, tensor<300xf32>) {
  %0 = prim.scatter_elements %x[%i], %u axis = 0 kind sum : (tensor<300xf32>, tensor<5000xi32>, tensor<5000xf32>) -> tensor<300xf32>
  %1 = prim.scatter_elements %x[%i], %u axis = 0 kind max : (tensor<300xf32>, tensor<5000xi32>, tensor<5000xf32>) -> tensor<300xf32>
  return %0, %1 : tensor<300xf32>, tensor<300xf32>
}

// The last one is found without.
// CHECK-LABEL: func.func @last
// CHECK-NOT: prim.arg_sort
func.func @last(%x: tensor<300xf32>, %i: tensor<5000xi32>, %u: tensor<5000xf32>) -> tensor<300xf32> {
  %0 = prim.scatter_elements %x[%i], %u axis = 0 : (tensor<300xf32>, tensor<5000xi32>, tensor<5000xf32>) -> tensor<300xf32>
  return %0 : tensor<300xf32>
}

// CHECK-LABEL: func.func @few
// CHECK-NOT: prim.arg_sort
func.func @few(%x: tensor<300x8xf32>, %i: tensor<100x1xi64>, %u: tensor<100x8xf32>) -> tensor<300x8xf32> {
  %0 = prim.scatter_nd %x[%i], %u kind sum : (tensor<300x8xf32>, tensor<100x1xi64>, tensor<100x8xf32>) -> tensor<300x8xf32>
  return %0 : tensor<300x8xf32>
}

// CHECK-LABEL: func.func @bounded
// CHECK: prim.arg_sort
func.func @bounded(%x: tensor<300x8xf32>, %i: tensor<?x1xi64, #prim.dims<affine_map<()[s0] -> (s0, 1)>>>,
                   %u: tensor<?x8xf32, #prim.dims<affine_map<()[s0] -> (s0, 8)>>>) -> tensor<300x8xf32> attributes {prim.symbols = [#prim.symbol<"n", 0, 100000, 1>]} {
  %0 = prim.scatter_nd %x[%i], %u kind sum : (tensor<300x8xf32>, tensor<?x1xi64, #prim.dims<affine_map<()[s0] -> (s0, 1)>>>, tensor<?x8xf32, #prim.dims<affine_map<()[s0] -> (s0, 8)>>>) -> tensor<300x8xf32>
  return %0 : tensor<300x8xf32>
}

// CHECK-LABEL: func.func @unbounded
// CHECK: prim.arg_sort
func.func @unbounded(%x: tensor<300x8xf32>, %i: tensor<?x1xi64, #prim.dims<affine_map<()[s0] -> (s0, 1)>>>,
                     %u: tensor<?x8xf32, #prim.dims<affine_map<()[s0] -> (s0, 8)>>>) -> tensor<300x8xf32> attributes {prim.symbols = [#prim.symbol<"n", 5000, 9223372036854775807, 1>]} {
  %0 = prim.scatter_nd %x[%i], %u kind sum : (tensor<300x8xf32>, tensor<?x1xi64, #prim.dims<affine_map<()[s0] -> (s0, 1)>>>, tensor<?x8xf32, #prim.dims<affine_map<()[s0] -> (s0, 8)>>>) -> tensor<300x8xf32>
  return %0 : tensor<300x8xf32>
}
