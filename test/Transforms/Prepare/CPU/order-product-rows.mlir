// Rows that lie along the last dim of memory come last among the rows; where the last dim there is summed, or already the last row, the
// product stays as it is.
// RUN: tc-opt %s --pass-pipeline='builtin.module(func.func(tc-order-product-rows))' | FileCheck %s

// CHECK-LABEL: func.func @rows
// CHECK: %[[X:.*]] = prim.transpose %{{.*}} [1, 0, 2] : tensor<100x5x31xf32> -> tensor<5x100x31xf32>
// CHECK: %[[P:.*]] = prim.dot_general %[[X]], %arg1 batch [] x [] contract [2] x [0] : (tensor<5x100x31xf32>, tensor<31x24xf32>) -> tensor<5x100x24xf32>
// CHECK: prim.transpose %[[P]] [1, 0, 2] : tensor<5x100x24xf32> -> tensor<100x5x24xf32>
func.func @rows(%x: tensor<5x31x100xf32>, %y: tensor<31x24xf32>) -> tensor<100x5x24xf32> {
  %t = prim.transpose %x [2, 0, 1] : tensor<5x31x100xf32> -> tensor<100x5x31xf32>
  %0 = prim.dot_general %t, %y batch [] x [] contract [2] x [0] : (tensor<100x5x31xf32>, tensor<31x24xf32>) -> tensor<100x5x24xf32>
  return %0 : tensor<100x5x24xf32>
}

// Batch dims stay in front; three dims of rows.
// CHECK-LABEL: func.func @batch
// CHECK: prim.dot_general {{.*}} batch [0] x [0] contract [2] x [1] : (tensor<2x6x9x7x40xf32>, tensor<2x9x33xf32>) -> tensor<2x6x7x40x33xf32>
// CHECK: prim.transpose {{.*}} [0, 3, 1, 2, 4] : tensor<2x6x7x40x33xf32> -> tensor<2x40x6x7x33xf32>
func.func @batch(%x: tensor<2x6x7x9x40xf32>, %y: tensor<2x9x33xf32>) -> tensor<2x40x6x7x33xf32> {
  %t = prim.transpose %x [0, 4, 3, 1, 2] : tensor<2x6x7x9x40xf32> -> tensor<2x40x9x6x7xf32>
  %0 = prim.dot_general %t, %y batch [0] x [0] contract [2] x [1] : (tensor<2x40x9x6x7xf32>, tensor<2x9x33xf32>) -> tensor<2x40x6x7x33xf32>
  return %0 : tensor<2x40x6x7x33xf32>
}

// CHECK-LABEL: func.func @unchanged
// CHECK-NOT: prim.transpose %{{[0-9]+}} [1, 0, 2]
func.func @unchanged(%x: tensor<5x100x31xf32>, %z: tensor<5x31x100xf32>, %y: tensor<31x24xf32>) -> (tensor<100x5x24xf32>, tensor<5x100x24xf32>) {
  %t = prim.transpose %x [1, 0, 2] : tensor<5x100x31xf32> -> tensor<100x5x31xf32>
  %0 = prim.dot_general %t, %y batch [] x [] contract [2] x [0] : (tensor<100x5x31xf32>, tensor<31x24xf32>) -> tensor<100x5x24xf32>
  %1 = prim.dot_general %z, %y batch [] x [] contract [1] x [0] : (tensor<5x31x100xf32>, tensor<31x24xf32>) -> tensor<5x100x24xf32>
  return %0, %1 : tensor<100x5x24xf32>, tensor<5x100x24xf32>
}

// An image that is flattened channels first for constant weights is read as it lies; given weights have no order to choose.
// CHECK-LABEL: func.func @flatten
// CHECK: prim.dot_general %arg0, %{{.*}} batch [] x [] contract [1, 2, 3] x [1, 2, 0] : (tensor<5x6x4x4xf32>, tensor<4x6x4x10xf32>)
// CHECK: prim.dot_general %{{.*}}, %arg1 batch [] x [] contract [1] x [0]
func.func @flatten(%x: tensor<5x6x4x4xf32>, %v: tensor<96x10xf32>) -> (tensor<5x10xf32>, tensor<5x10xf32>) {
  %w = prim.constant dense<1.0> : tensor<96x10xf32>
  %t = prim.transpose %x [0, 3, 1, 2] : tensor<5x6x4x4xf32> -> tensor<5x4x6x4xf32>
  %r = prim.reshape %t : tensor<5x4x6x4xf32> -> tensor<5x96xf32>
  %y = prim.dot_general %r, %w batch [] x [] contract [1] x [0] : (tensor<5x96xf32>, tensor<96x10xf32>) -> tensor<5x10xf32>
  %z = prim.dot_general %r, %v batch [] x [] contract [1] x [0] : (tensor<5x96xf32>, tensor<96x10xf32>) -> tensor<5x10xf32>
  return %y, %z : tensor<5x10xf32>, tensor<5x10xf32>
}

// Sums that stand around the rows are brought together by what writes the operand, rows in the order of memory; an operand that is read
// as it is given stays.
// CHECK-LABEL: func.func @around
// CHECK-DAG: %[[T:.*]] = prim.transpose %arg0 [0, 2, 1] : tensor<37x14x22xf32> -> tensor<37x22x14xf32>
// CHECK-DAG: %[[X:.*]] = prim.broadcast %[[T]] [0, 1, 2] : tensor<37x22x14xf32> -> tensor<37x22x14x9xf32>
// CHECK-DAG: %[[Z:.*]] = prim.broadcast %arg1 [0, 3] : tensor<37x9xf32> -> tensor<37x22x14x9xf32>
// CHECK: %[[M:.*]] = prim.mul %[[X]], %[[Z]] : tensor<37x22x14x9xf32>
// CHECK: prim.dot_general %[[M]], %arg2 batch [] x [] contract [0, 1] x [2, 0] : (tensor<37x22x14x9xf32>, tensor<22x18x37xf32>) -> tensor<14x9x18xf32>
func.func @around(%x: tensor<37x14x22xf32>, %z: tensor<37x9xf32>, %y: tensor<22x18x37xf32>) -> tensor<14x9x18xf32> {
  %0 = prim.broadcast %x [0, 1, 2] : tensor<37x14x22xf32> -> tensor<37x14x22x9xf32>
  %1 = prim.broadcast %z [0, 3] : tensor<37x9xf32> -> tensor<37x14x22x9xf32>
  %2 = prim.mul %0, %1 : tensor<37x14x22x9xf32>
  %3 = prim.dot_general %2, %y batch [] x [] contract [0, 2] x [2, 0] : (tensor<37x14x22x9xf32>, tensor<22x18x37xf32>) -> tensor<14x9x18xf32>
  return %3 : tensor<14x9x18xf32>
}
