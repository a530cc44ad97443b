// Schedules that have no code in the kernel alone are left out of a file of candidates, and a line says of how many kernels all are.
// RUN: tc-compile %s --tuning-candidates %t.tune --cpu x86-64-v3 --logs tuning > %t.txt 2>&1
// RUN: FileCheck %s < %t.txt
// RUN: tc-compile %s --tuning-candidates %t.tune --cpu x86-64-v3 --explain 2>&1 | FileCheck %s --check-prefix=EXPLAIN
// RUN: tc-inspect %t.tune | FileCheck %s --check-prefix=FILE

// CHECK: tuning: left out compress: a part of the model cannot be compiled on its own: {{.*}}: #kernel.cpu.loops<
// CHECK: tuning: compress: not tuned: none of its other schedules has code
// CHECK: tc-compile: warning: --tuning-candidates leaves 2 of 6 kernels with default schedules; of the first none of its other schedules has code; --explain lists them
// EXPLAIN-DAG: not tuned: none of its other schedules has code
// EXPLAIN-DAG: tc-compile: warning: --tuning-candidates leaves 2 of 6 kernels with default schedules; of the first none of its other schedules has code{{$}}
// FILE: 6 schedules of 2 kernels
// FILE-NOT: compress:
graph.func @main(%x: tensor<64x512xf32> {graph.name = "x"}, %flags: tensor<64xi1> {graph.name = "flags"}) -> (tensor<64x512xf32> {graph.name = "s"}, tensor<?x512xf32> {graph.name = "y"}) attributes {opsets = {ai.onnx = 20 : i64}} {
  %s = graph.node "ai.onnx":"Softmax" opset 20(%x) : (tensor<64x512xf32>) -> tensor<64x512xf32> loc("soft")
  %chosen = graph.node "ai.onnx":"Compress" opset 20(%x, %flags) {axis = 0 : i64} : (tensor<64x512xf32>, tensor<64xi1>) -> tensor<?x512xf32> loc("compress")
  %y = graph.node "ai.onnx":"Softmax" opset 20(%chosen) : (tensor<?x512xf32>) -> tensor<?x512xf32> loc("rows")
  graph.yield %s, %y : tensor<64x512xf32>, tensor<?x512xf32>
}
