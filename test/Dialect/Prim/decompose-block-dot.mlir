// Proves: a target that does not take prim.block_dot gets a product with the weights written out.
// RUN: tc-opt %s --tc-decompose-composites | FileCheck %s

// CHECK-LABEL: func.func @block_dot
// CHECK-NOT: block_dot
// CHECK: prim.shr
// CHECK: prim.slice {{.*}} -> tensor<7x40xf32>
// CHECK: prim.dot_general {{.*}} -> tensor<3x7xf32>
func.func @block_dot(%x: tensor<3x40xf32>, %w: tensor<7x32xui8>, %s: tensor<7x2xf32>) -> tensor<3x7xf32> {
  %0 = prim.block_dot %x, %w, %s bits = 4 block = 32 : (tensor<3x40xf32>, tensor<7x32xui8>, tensor<7x2xf32>) -> tensor<3x7xf32>
  return %0 : tensor<3x7xf32>
}
