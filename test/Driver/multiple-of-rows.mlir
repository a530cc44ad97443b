// Rows whose length is a multiple of the vectors' width: the values of the artifact for any length, without masks.
// RUN: tc-compile %s -o %t.open.bin -q && tc-compile %s -o %t.bin --dim n=multiple-of:8 --dim m=multiple-of:4 -q
// RUN: tc-run %t.open.bin --random-inputs --dim n=8 --dim m=4 --outputs %t.npz && tc-run %t.bin --random-inputs --dim n=8 --dim m=4 --expect %t.npz --max-rel 1e-6
// RUN: tc-run %t.open.bin --random-inputs --dim n=136 --dim m=12 --outputs %t.npz && tc-run %t.bin --random-inputs --dim n=136 --dim m=12 --expect %t.npz --max-rel 1e-6
// RUN: tc-run %t.open.bin --random-inputs --dim n=8 --dim m=92 --outputs %t.npz && tc-run %t.bin --random-inputs --dim n=8 --dim m=92 --expect %t.npz --max-rel 1e-6
// RUN: tc-run %t.open.bin --random-inputs --dim n=0 --dim m=4 --outputs %t.npz && tc-run %t.bin --random-inputs --dim n=0 --dim m=4 --expect %t.npz --max-rel 1e-6
// RUN: not tc-run %t.bin --random-inputs --dim n=8 --dim m=6 2>&1 | FileCheck %s
// CHECK: error: input "x": dim 0 (m) is 6, expected at least 0 and a multiple of 4
graph.func @main(%x: tensor<?x?xf32> {graph.name = "x", graph.dims = ["m", "n"]}, %w: tensor<?x20xf32> {graph.name = "w", graph.dims = ["n", ""]})
    -> (tensor<?x?xf32> {graph.name = "softmax"}, tensor<?x20xf32> {graph.name = "product"}, tensor<?x?xf32> {graph.name = "turned"}) attributes {opsets = {ai.onnx = 20 : i64}} {
  %s = graph.node "ai.onnx":"Softmax" opset 20(%x) {axis = -1 : si64} : (tensor<?x?xf32>) -> tensor<?x?xf32> loc("softmax")
  %p = graph.node "ai.onnx":"MatMul" opset 20(%s, %w) : (tensor<?x?xf32>, tensor<?x20xf32>) -> tensor<?x20xf32> loc("product")
  %t = graph.node "ai.onnx":"Transpose" opset 20(%x) : (tensor<?x?xf32>) -> tensor<?x?xf32> loc("turn")
  %e = graph.node "ai.onnx":"Exp" opset 20(%t) : (tensor<?x?xf32>) -> tensor<?x?xf32> loc("exp")
  graph.yield %s, %p, %e : tensor<?x?xf32>, tensor<?x20xf32>, tensor<?x?xf32>
}
