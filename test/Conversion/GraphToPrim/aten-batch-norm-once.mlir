// The statistics that training keeps of a batch, its running ones and those that it divides by are made once: of 17 numbers for
// each channel as of 16, whose reciprocal is exact.
// RUN: rm -rf %t && mkdir %t
// RUN: tc-compile %s -o %t/out.bin -q --debug-dir %t/debug
// RUN: FileCheck %s < %t/debug/2-fuse.mlir
!x = tensor<16x8x4x4xf32>
!y = tensor<17x8x1x1xf32>
!c = tensor<8xf32>
// CHECK: func.func @main
// CHECK-COUNT-4: prim.reduce sum
// CHECK-NOT: prim.reduce sum
graph.func @main(%x: !x {graph.name = "x"}, %y: !y {graph.name = "y"}, %w: !c {graph.name = "w"}, %b: !c {graph.name = "b"}, %m: !c {graph.name = "m"}, %v: !c {graph.name = "v"}) -> (!x, !c, !c, !c, !c, !y, !c, !c, !c, !c) attributes {opsets = {aten = 1 : i64}} {
  %0:5 = graph.node "aten":"_native_batch_norm_legit_functional.default" opset 1(%x, %w, %b, %m, %v) {arg_names = ["input", "weight", "bias", "running_mean", "running_var"], training = true, momentum = 0.1, eps = 1.0e-05} : (!x, !c, !c, !c, !c) -> (!x, !c, !c, !c, !c) loc("even")
  %1:5 = graph.node "aten":"_native_batch_norm_legit_functional.default" opset 1(%y, %w, %b, %m, %v) {arg_names = ["input", "weight", "bias", "running_mean", "running_var"], training = true, momentum = 0.1, eps = 1.0e-05} : (!y, !c, !c, !c, !c) -> (!y, !c, !c, !c, !c) loc("odd")
  graph.yield %0#0, %0#1, %0#2, %0#3, %0#4, %1#0, %1#1, %1#2, %1#3, %1#4 : !x, !c, !c, !c, !c, !y, !c, !c, !c, !c
}
