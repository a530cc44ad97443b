// Proves: products lose the rows and columns that no slice behind pointwise ops reads, sums of zeros that a pad adds where the other operand
// is finite, and trailing dims of 1; those that others read, of which most is kept, or whose other operand only the run knows, stay.
// RUN: tc-opt %s --pass-pipeline='builtin.module(func.func(tc-trim-products))' | FileCheck %s

#last = affine_map<() -> (0, 63, 0)>
#first = affine_map<() -> (0, 0)>
#low = affine_map<() -> (0, 64)>

// CHECK-LABEL: func.func @last_row
// CHECK: %[[X:.*]] = prim.slice %arg0 {{.*}} -> tensor<2x1x48xf32>
// CHECK: %[[Y:.*]] = prim.dot_general %[[X]], %arg1 {{.*}} -> tensor<2x1x500xf32>
// CHECK: %[[B:.*]] = prim.slice %{{.*}} -> tensor<2x1x500xf32>
// CHECK: prim.add %[[Y]], %[[B]] : tensor<2x1x500xf32>
func.func @last_row(%x: tensor<2x64x48xf32>, %w: tensor<48x500xf32>, %b: tensor<500xf32>) -> tensor<2x1x500xf32> {
  %p = prim.dot_general %x, %w batch [] x [] contract [2] x [0] : (tensor<2x64x48xf32>, tensor<48x500xf32>) -> tensor<2x64x500xf32>
  %c = prim.broadcast %b [2] : tensor<500xf32> -> tensor<2x64x500xf32>
  %a = prim.add %p, %c : tensor<2x64x500xf32>
  %y = prim.slice %a from #last step [1, 1, 1] : tensor<2x64x500xf32> -> tensor<2x1x500xf32>
  return %y : tensor<2x1x500xf32>
}

// Columns, through dims of 1.
// CHECK-LABEL: func.func @columns
// CHECK: prim.slice %arg1 {{.*}} -> tensor<48x100xf32>
// CHECK: prim.dot_general {{.*}} -> tensor<30x100xf32>
func.func @columns(%x: tensor<30x48xf32>, %w: tensor<48x200xf32>) -> tensor<30x100xf32> {
  %p = prim.dot_general %x, %w batch [] x [] contract [1] x [0] : (tensor<30x48xf32>, tensor<48x200xf32>) -> tensor<30x200xf32>
  %r = prim.reshape %p : tensor<30x200xf32> -> tensor<30x1x200xf32>
  %t = prim.tanh %r : tensor<30x1x200xf32>
  %u = prim.reshape %t : tensor<30x1x200xf32> -> tensor<30x200xf32>
  %y = prim.slice %u from #first step [1, 1] : tensor<30x200xf32> -> tensor<30x100xf32>
  return %y : tensor<30x100xf32>
}

// CHECK-LABEL: func.func @padded
// CHECK-NOT: prim.pad
// CHECK: %[[W:.*]] = prim.slice %{{.*}} from {{.*}} : tensor<256x96xf32> -> tensor<128x96xf32>
// CHECK: prim.dot_general %arg0, %[[W]] {{.*}} : (tensor<30x128xf32>, tensor<128x96xf32>) -> tensor<30x96xf32>
func.func @padded(%x: tensor<30x128xf32>) -> tensor<30x96xf32> {
  %w = prim.constant dense<0.5> : tensor<256x96xf32>
  %z = prim.splat 0.0 : f32 : tensor<f32>
  %q = prim.pad %x, %z low #low : (tensor<30x128xf32>, tensor<f32>) -> tensor<30x256xf32>
  %y = prim.dot_general %q, %w batch [] x [] contract [1] x [0] : (tensor<30x256xf32>, tensor<256x96xf32>) -> tensor<30x96xf32>
  return %y : tensor<30x96xf32>
}

// CHECK-LABEL: func.func @unit
// CHECK: prim.dot_general {{.*}} contract [1] x [0] : (tensor<24x512xf32>, tensor<512x96xf32>) -> tensor<24x96xf32>
// CHECK: prim.reshape {{.*}} -> tensor<24x1x96xf32>
func.func @unit(%x: tensor<24x512x1xf32>, %w: tensor<512x96xf32>) -> tensor<24x1x96xf32> {
  %y = prim.dot_general %x, %w batch [] x [] contract [1] x [0] : (tensor<24x512x1xf32>, tensor<512x96xf32>) -> tensor<24x1x96xf32>
  return %y : tensor<24x1x96xf32>
}

// A sum with what is not finite is not a number, whatever it is of.
// CHECK-LABEL: func.func @unchanged
// CHECK: prim.dot_general {{.*}} -> tensor<30x200xf32>
// CHECK: prim.dot_general {{.*}} : (tensor<30x256xf32>, tensor<256x96xf32>)
// CHECK: prim.dot_general {{.*}} : (tensor<30x256xf32>, tensor<256x96xf32>)
// CHECK: prim.dot_general {{.*}} -> tensor<30x108xf32>
func.func @unchanged(%x: tensor<30x48xf32>, %w: tensor<48x200xf32>, %v: tensor<30x128xf32>, %u: tensor<256x96xf32>, %s: tensor<48x108xf32>) -> (tensor<30x100xf32>, tensor<30x200xf32>, tensor<30x96xf32>, tensor<30x96xf32>, tensor<30x100xf32>) {
  %p = prim.dot_general %x, %w batch [] x [] contract [1] x [0] : (tensor<30x48xf32>, tensor<48x200xf32>) -> tensor<30x200xf32>
  %a = prim.slice %p from #first step [1, 1] : tensor<30x200xf32> -> tensor<30x100xf32>
  %z = prim.splat 0.0 : f32 : tensor<f32>
  %q = prim.pad %v, %z low #low : (tensor<30x128xf32>, tensor<f32>) -> tensor<30x256xf32>
  %b = prim.dot_general %q, %u batch [] x [] contract [1] x [0] : (tensor<30x256xf32>, tensor<256x96xf32>) -> tensor<30x96xf32>
  %i = prim.constant dense<0x7F800000> : tensor<256x96xf32>
  %c = prim.dot_general %q, %i batch [] x [] contract [1] x [0] : (tensor<30x256xf32>, tensor<256x96xf32>) -> tensor<30x96xf32>
  %d = prim.dot_general %x, %s batch [] x [] contract [1] x [0] : (tensor<30x48xf32>, tensor<48x108xf32>) -> tensor<30x108xf32>
  %e = prim.slice %d from #first step [1, 1] : tensor<30x108xf32> -> tensor<30x100xf32>
  return %a, %p, %b, %c, %e : tensor<30x100xf32>, tensor<30x200xf32>, tensor<30x96xf32>, tensor<30x96xf32>, tensor<30x100xf32>
}

// A whole dim that is reversed is no part of the product.
// CHECK-LABEL: func.func @reversed
// CHECK: prim.dot_general {{.*}} -> tensor<8x33xf32>
// CHECK: prim.slice {{.*}} step [1, -1] : tensor<8x33xf32> -> tensor<1x33xf32>
func.func @reversed(%x: tensor<8x5xf32>, %w: tensor<5x33xf32>) -> tensor<1x33xf32> {
  %0 = prim.dot_general %x, %w batch [] x [] contract [1] x [0] : (tensor<8x5xf32>, tensor<5x33xf32>) -> tensor<8x33xf32>
  %1 = prim.slice %0 from affine_map<() -> (1, 32)> step [1, -1] : tensor<8x33xf32> -> tensor<1x33xf32>
  return %1 : tensor<1x33xf32>
}
