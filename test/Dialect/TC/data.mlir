// #tc.data and the types of the base dialect round-trip; small buffers travel as resources of the module.
// RUN: tc-opt %s -allow-unregistered-dialect | tc-opt -allow-unregistered-dialect | FileCheck %s
// RUN: rm -rf %t && mkdir %t && cp %s %t/m.mlir && printf 'abcdefgh' > %t/m.mlir.data
// RUN: tc-opt %t/m.mlir -allow-unregistered-dialect | FileCheck %s

// CHECK: @types
// CHECK-SAME: tensor<2x!tc.string>
// CHECK-SAME: !tc.seq<tensor<?xf32>>
// CHECK-SAME: !tc.opt<!tc.seq<tensor<*xi64>>>
// CHECK-SAME: !tc.map<i64, tensor<f32>>
// CHECK-SAME: !tc.sparse<tensor<3x4xf32>>
// CHECK-SAME: !tc.unknown
func.func private @types(tensor<2x!tc.string>, !tc.seq<tensor<?xf32>>, !tc.opt<!tc.seq<tensor<*xi64>>>,
                         !tc.map<i64, tensor<f32>>, !tc.sparse<tensor<3x4xf32>>, !tc.unknown)

// CHECK: test.inlined = #tc.data<"c_59ca8ebd93dbfa2b0b1e03e9a8ca0b0a", 0, 8, "59ca8ebd93dbfa2b0b1e03e9a8ca0b0a"> : tensor<2xf32>
// CHECK-SAME: test.packed = #tc.data<"data_0", 4, 2, "{{0+}}"> : tensor<3xi4>
module attributes {
  test.inlined = #tc.data<"c_59ca8ebd93dbfa2b0b1e03e9a8ca0b0a", 0, 8, "59ca8ebd93dbfa2b0b1e03e9a8ca0b0a"> : tensor<2xf32>,
  test.packed = #tc.data<"data_0", 4, 2, "00000000000000000000000000000000"> : tensor<3xi4>,
  test.strings = #tc.data<"data_0", 0, 27, "00000000000000000000000000000000"> : tensor<2x!tc.string>
} {}

// CHECK: dialect_resources
// CHECK: tc: {
// CHECK: c_59ca8ebd93dbfa2b0b1e03e9a8ca0b0a: "0x10000000000080BF00000040"
{-#
  dialect_resources: {
    tc: {
      c_59ca8ebd93dbfa2b0b1e03e9a8ca0b0a: "0x10000000000080BF00000040"
    }
  }
#-}
