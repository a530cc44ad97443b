// What the file declares of an output holds: known sizes of a dim that is dynamic become guards of the run; symbolic
// dims and missing shapes bind to whatever the nodes compute.
// RUN: split-file %s %t
// RUN: tc-compile %t/guard.mlir -o %t/guard.bin
// RUN: tc-run %t/guard.bin --random-inputs --dim n=3
// RUN: not tc-run %t/guard.bin --random-inputs --dim n=4 2>&1 | FileCheck %s --check-prefix=GUARD
// RUN: tc-compile %t/binds.mlir -o %t/binds.bin
// RUN: tc-run %t/binds.bin --random-inputs --dim n=4
// RUN: tc-compile %t/data.mlir -o %t/data.bin
// RUN: %python -c "import numpy as np, sys; [np.save(f'{sys.argv[1]}/{n}.npy', np.array(n)) for n in (2, 3)]" %t
// RUN: tc-run %t/data.bin --input n=%t/2.npy
// RUN: not tc-run %t/data.bin --input n=%t/3.npy 2>&1 | FileCheck %s --check-prefix=DATA

// GUARD: error: output "y": dim 0 is not 3, as the model declares
// DATA: error: node "count": dim 0 of its result is not 2, as the model declares

//--- guard.mlir
module {
  graph.func @main(%x: tensor<?x2xf32> {graph.dims = ["n", ""], graph.name = "x"}) -> (tensor<3x2xf32> {graph.name = "y"}) attributes {opsets = {ai.onnx = 20 : i64}} {
    %0 = graph.node "ai.onnx":"Relu" opset 20(%x) : (tensor<?x2xf32>) -> tensor<3x2xf32>
    graph.yield %0 : tensor<3x2xf32>
  }
}

//--- binds.mlir
module {
  graph.func @main(%x: tensor<?x2xf32> {graph.dims = ["n", ""], graph.name = "x"}) -> (tensor<?x2xf32> {graph.name = "y", graph.dims = ["m", ""]}, tensor<*xf32> {graph.name = "z"}) attributes {opsets = {ai.onnx = 20 : i64}} {
    %0 = graph.node "ai.onnx":"Relu" opset 20(%x) : (tensor<?x2xf32>) -> tensor<?x2xf32>
    %1 = graph.node "ai.onnx":"Neg" opset 20(%x) : (tensor<?x2xf32>) -> tensor<*xf32>
    graph.yield %0, %1 : tensor<?x2xf32>, tensor<*xf32>
  }
}

//--- data.mlir
module {
  graph.func @main(%n: tensor<i64> {graph.name = "n"}) -> (tensor<2xi64> {graph.name = "y"}) attributes {opsets = {ai.onnx = 20 : i64}} {
    %start = graph.node "ai.onnx":"Constant" opset 20() {value_int = 0 : i64} : () -> tensor<i64>
    %step = graph.node "ai.onnx":"Constant" opset 20() {value_int = 1 : i64} : () -> tensor<i64>
    %0 = graph.node "ai.onnx":"Range" opset 20(%start, %n, %step) : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<2xi64> loc("count")
    graph.yield %0 : tensor<2xi64>
  }
}
