// Narrow elements stay in signatures only; inside there are bytes.
// RUN: tc-opt %s -tc-expand-narrow-types -split-input-file -verify-diagnostics | FileCheck %s
// A model whose fused form has no regions goes through it again.
// RUN: tc-opt %s -tc-expand-narrow-types -tc-expand-narrow-types -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-LABEL: func @int4_to_float
// CHECK-SAME: tensor<5xi4>
// CHECK: %[[BYTES:.*]] = prim.storage %arg0 : tensor<5xi4> -> tensor<3xui8>
// CHECK: prim.broadcast %[[BYTES]] [0] : tensor<3xui8> -> tensor<3x2xui8>
// CHECK: prim.shl
// CHECK: prim.shr {{.*}} : tensor<3x2xi8>
// CHECK: %[[ALL:.*]] = prim.reshape {{.*}} -> tensor<6xi8>
// CHECK: %[[X:.*]] = prim.slice %[[ALL]] {{.*}} -> tensor<5xi8>
// CHECK: prim.convert %[[X]] : tensor<5xi8> -> tensor<5xf32>
func.func @int4_to_float(%x: tensor<5xi4>) -> tensor<5xf32> {
  %0 = prim.convert %x : tensor<5xi4> -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// -----

// An odd number of elements is filled up; only the low bits are kept.
// CHECK-LABEL: func @float_to_uint2
// CHECK: prim.pad {{.*}} -> tensor<8xui8>
// CHECK: prim.and
// CHECK: prim.or
// CHECK: %[[Y:.*]] = prim.storage {{.*}} : tensor<2xui8> -> tensor<7xui2>
// CHECK: return %[[Y]]
func.func @float_to_uint2(%x: tensor<7xf32>) -> tensor<7xui2> {
  %0 = prim.convert %x : tensor<7xf32> -> tensor<7xui2>
  return %0 : tensor<7xui2>
}

// -----

// 8-bit floats move as bytes and are decoded by a table where a number is needed.
// CHECK-LABEL: func @float8
// CHECK: %[[BYTES:.*]] = prim.storage %arg0 : tensor<2x3xf8E4M3FN> -> tensor<2x3xui8>
// CHECK: %[[T:.*]] = prim.transpose %[[BYTES]] [1, 0] : tensor<2x3xui8>
// CHECK: prim.gather %{{.*}}[%{{.*}}] axis = 0 : (tensor<256xf32>, tensor<3x2xi32>) -> tensor<3x2xf32>
// CHECK: prim.exp {{.*}} : tensor<3x2xf32>
// CHECK: prim.bitcast {{.*}} : tensor<3x2xf32> -> tensor<3x2xui32>
// CHECK: prim.storage {{.*}} : tensor<3x2xui8> -> tensor<3x2xf8E4M3FN>
func.func @float8(%x: tensor<2x3xf8E4M3FN>) -> tensor<3x2xf8E4M3FN> {
  %0 = prim.transpose %x [1, 0] : tensor<2x3xf8E4M3FN> -> tensor<3x2xf8E4M3FN>
  %1 = prim.exp %0 : tensor<3x2xf8E4M3FN>
  return %1 : tensor<3x2xf8E4M3FN>
}

// -----

// A loop carries bytes; sizes stay symbolic.
// CHECK-LABEL: func @symbolic
// CHECK: prim.storage %arg0 : tensor<?xi4, {{.*}}> -> tensor<?xui8, {{.*}}>
// CHECK: prim.if {{.*}} -> (tensor<?xi8
// CHECK: prim.storage {{.*}} -> tensor<?xi4
func.func @symbolic(%x: tensor<?xi4, #prim.dims<affine_map<()[s0] -> (s0)>>>, %c: tensor<i1>) -> tensor<?xi4, #prim.dims<affine_map<()[s0] -> (s0)>>>
    attributes {prim.symbols = [#prim.symbol<"n", 0, 1000, 1>]} {
  %0 = prim.if %c : tensor<i1> -> (tensor<?xi4, #prim.dims<affine_map<()[s0] -> (s0)>>>) {
    prim.yield %x : tensor<?xi4, #prim.dims<affine_map<()[s0] -> (s0)>>>
  } else {
    %1 = prim.neg %x : tensor<?xi4, #prim.dims<affine_map<()[s0] -> (s0)>>>
    prim.yield %1 : tensor<?xi4, #prim.dims<affine_map<()[s0] -> (s0)>>>
  }
  return %0 : tensor<?xi4, #prim.dims<affine_map<()[s0] -> (s0)>>>
}

// -----

// Nothing to do.
// CHECK-LABEL: func @wide
// CHECK-NEXT: prim.exp
// CHECK-NEXT: return
func.func @wide(%x: tensor<4xf16>) -> tensor<4xf16> {
  %0 = prim.exp %x : tensor<4xf16>
  return %0 : tensor<4xf16>
}

// -----

func.func @sum(%x: tensor<4xi4>) -> tensor<i4> {
  // expected-error @+1 {{element type 'i4' is not supported by prim.reduce; convert the operand to f32 or i8 before}}
  %0 = prim.reduce sum %x [0] : tensor<4xi4> -> tensor<i4>
  return %0 : tensor<i4>
}

// -----

// The runtime's functions take elements as they are packed, and give them so. Six bits have a byte.
// CHECK-LABEL: func @host_call
// CHECK: %[[B:.*]] = prim.storage %arg0 : tensor<4xf6E2M3FN> -> tensor<4xui8>
// CHECK: %[[R:.*]] = prim.slice %[[B]]
// CHECK: %[[X:.*]] = prim.storage %[[R]] : tensor<4xui8> -> tensor<4xf6E2M3FN>
// CHECK: prim.host_call "box"(%[[X]])
// CHECK: %[[D:.*]] = prim.host_call "object_data"
// CHECK: prim.storage %[[D]] : tensor<5xi4> -> tensor<3xui8>
func.func @host_call(%x: tensor<4xf6E2M3FN>, %h: tensor<i64>) -> (tensor<i64>, tensor<5xi8>) {
  %0 = prim.slice %x from affine_map<() -> (3)> step [-1] : tensor<4xf6E2M3FN> -> tensor<4xf6E2M3FN>
  %1 = prim.host_call "box"(%0) words [0, 2] : (tensor<4xf6E2M3FN>) -> tensor<i64>
  %2 = prim.host_call "object_data"(%h) words [2, 0] : (tensor<i64>) -> tensor<5xi4>
  %3 = prim.convert %2 : tensor<5xi4> -> tensor<5xi8>
  return %1, %3 : tensor<i64>, tensor<5xi8>
}
