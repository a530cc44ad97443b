// The reference target: one primitive per kernel, plain loops; and fusion does not change what is computed.
// RUN: tc-opt %s --pass-pipeline="builtin.module(func.func(tc-fuse{fuse=false}),tc-choose-schedule{device=reference})" -o %t.plain
// RUN: FileCheck %s < %t.plain
// RUN: tc-interpret %t.plain --against %s --random-inputs 3 --dim n=5 | FileCheck %s --check-prefix=EQUAL
// RUN: tc-opt %s --pass-pipeline="builtin.module(func.func(tc-fuse),tc-choose-schedule)" -o %t.fused
// RUN: tc-interpret %t.fused --against %s --random-inputs 3 --dim n=7 | FileCheck %s --check-prefix=EQUAL
// RUN: tc-interpret %t.fused --against %s --random-inputs 3 --dim n=0 | FileCheck %s --check-prefix=EQUAL
// EQUAL: all outputs agree

!x = tensor<?x8xf32, #prim.dims<affine_map<()[s0] -> (s0, 8)>>>
!y = tensor<?x4xf32, #prim.dims<affine_map<()[s0] -> (s0, 4)>>>
// CHECK-LABEL: func @f
// CHECK-COUNT-4: schedule = #kernel.cpu.loops<
// CHECK-NOT:     kernel.region
func.func @f(%x: !x, %w: tensor<8x4xf32>, %b: !y) -> !y attributes {prim.symbols = [#prim.symbol<"n", 0, 64, 1>]} {
  %0 = prim.dot_general %x, %w batch [] x [] contract [1] x [0] : (!x, tensor<8x4xf32>) -> !y
  %1 = prim.add %0, %b : !y
  %2 = prim.exp %1 : !y
  %3 = prim.mul %2, %b : !y
  return %3 : !y
}
