// Nodes that draw random numbers and have no seed of their own draw others in each run; the seed is fixed, and settable.
// RUN: rm -rf %t && mkdir %t && tc-compile %s -o %t/m.bin
// RUN: tc-inspect %t/m.bin | FileCheck %s
// CHECK: states
// CHECK-NEXT: tc.random {{ *}}i64 (2)
// Two processes agree, with the same number of threads or another.
// RUN: tc-run %t/m.bin --random-inputs --outputs %t/first.npz
// RUN: tc-run %t/m.bin --random-inputs --expect %t/first.npz --threads 1 | FileCheck %s --check-prefix=SAME
// RUN: tc-run %t/m.bin --random-inputs --seed 0 --expect %t/first.npz | FileCheck %s --check-prefix=SAME
// SAME: ok: 5 of 5 outputs as expected
// The second run differs in what is drawn, and not in what has a seed.
// RUN: %python %S/../../Driver/Inputs/status.py 3 tc-run %t/m.bin --random-inputs --runs 2 --expect %t/first.npz 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: %python %S/../../Driver/Inputs/status.py 3 tc-run %t/m.bin --random-inputs --seed 1 --expect %t/first.npz 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER-DAG: output "normal" differs
// OTHER-DAG: output "like" differs
// OTHER-DAG: output "mask" differs
// OTHER-DAG: output "twice" differs
// OTHER-NOT: output "seeded" differs
// OTHER: FAILED: 1 of 5 outputs as expected
// A seed of all 64 bits; run by run the same.
// RUN: tc-run %t/m.bin --random-inputs --seed 18446744073709551615 --runs 3 --outputs %t/third.npz --state-out %t/state.npz
// RUN: tc-run %t/m.bin --random-inputs --seed 18446744073709551615 --runs 3 --expect %t/third.npz | FileCheck %s --check-prefix=SAME
// RUN: tc-run %t/m.bin --random-inputs --state-in %t/state.npz --outputs %t/fourth.npz
// RUN: tc-run %t/m.bin --random-inputs --seed 18446744073709551615 --runs 4 --expect %t/fourth.npz | FileCheck %s --check-prefix=SAME
// RUN: %python %S/../../Driver/Inputs/status.py 3 tc-run %t/m.bin --random-inputs --seed 18446744073709551615 --runs 4 --expect %t/third.npz 2>&1 | FileCheck %s --check-prefix=OTHER
// The oracle draws the same.
// RUN: tc-compile %s -o %t/verified.bin --verify
graph.func @main(%x: tensor<4x64xf32> {graph.name = "x"}) -> (!tc.unknown {graph.name = "normal"}, !tc.unknown {graph.name = "like"}, !tc.unknown {graph.name = "seeded"}, !tc.unknown {graph.name = "mask"}, !tc.unknown {graph.name = "twice"}) attributes {opsets = {ai.onnx = 22 : i64}} {
  %ratio = graph.constant dense<0.5> : tensor<f32>
  %training = graph.constant dense<true> : tensor<i1>
  %normal = graph.node "ai.onnx":"RandomNormal" opset 22() {shape = array<i64: 3, 100>} : () -> !tc.unknown
  %like = graph.node "ai.onnx":"RandomUniformLike" opset 22(%x) : (tensor<4x64xf32>) -> !tc.unknown
  %seeded = graph.node "ai.onnx":"RandomUniform" opset 22() {shape = array<i64: 50>, seed = 7.0 : f32} : () -> !tc.unknown
  %dropped, %mask = graph.node "ai.onnx":"Dropout" opset 22(%x, %ratio, %training) : (tensor<4x64xf32>, tensor<f32>, tensor<i1>) -> (!tc.unknown, !tc.unknown)
  %twice = graph.node "ai.onnx":"Add" opset 14(%normal, %normal) : (!tc.unknown, !tc.unknown) -> !tc.unknown
  graph.yield %normal, %like, %seeded, %mask, %twice : !tc.unknown, !tc.unknown, !tc.unknown, !tc.unknown, !tc.unknown
}
