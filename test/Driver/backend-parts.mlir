// --backend-for: nodes that a pattern names become the largest parts that are connected and run in one piece; a part goes if
// it computes more than handing over its values takes, or if its name is given whole.
// RUN: tc-compile %s -o - --compile-to=import --backend-for '/a/*=onnxruntime' --explain=%t.json | FileCheck %s
// RUN: %python -m json.tool %t.json | FileCheck %s --check-prefix=JSON
// RUN: tc-compile %s --explain --backend-for '/a/*=onnxruntime' | FileCheck %s --check-prefix=TEXT
// RUN: tc-compile %s -o - --compile-to=import --backend-for /a/scale=onnxruntime | FileCheck %s --check-prefix=NAMED
// RUN: not tc-compile %s -o - --compile-to=import --backend-for 'none*=onnxruntime' --backend-for '/a/*=onnxruntime' 2>&1 | FileCheck %s --check-prefix=UNUSED
// RUN: tc-compile %s -o - --compile-to=prim --backend-for '/a/*=onnxruntime' | FileCheck %s --check-prefix=PRIM

// The values of /a/soft's way round keep /a/second out of the first part. What both read is in both files.
// CHECK-LABEL: graph.func @main
// CHECK-NEXT: %[[FIRST:.*]]:2 = graph.node "tc":"onnxruntime" opset 1 calls @onnxruntime_0(%arg0) {model = #tc.data<{{.*}}>} : (tensor<64x512xf32>) -> (tensor<64x512xf32>, tensor<64x512xf32>)
// CHECK-NEXT: %[[SOFT:.*]] = graph.node "ai.onnx":"Softmax"{{.*}}(%[[FIRST]]#0)
// CHECK-NEXT: %[[SECOND:.*]] = graph.node "tc":"onnxruntime" opset 1 calls @onnxruntime_1(%[[SOFT]], %[[FIRST]]#1)
// CHECK-NEXT: %[[BETWEEN:.*]] = graph.node "ai.onnx":"Softmax"{{.*}}(%[[SECOND]])
// CHECK-NEXT: %[[SCALE:.*]] = graph.node "ai.onnx":"Relu"{{.*}}(%[[BETWEEN]])
// CHECK-NEXT: graph.yield %[[SCALE]]
// CHECK: graph.func private @onnxruntime_0(%arg0: tensor<64x512xf32> {graph.name = "x0"}{{.*}}) -> (tensor<64x512xf32> {graph.name = "y0"}, tensor<64x512xf32> {graph.name = "y1"})
// CHECK-NEXT: graph.constant
// CHECK-NEXT: graph.node "ai.onnx":"MatMul"
// CHECK-NEXT: graph.node "ai.onnx":"Relu"
// CHECK-NEXT: graph.yield
// CHECK: graph.func private @onnxruntime_1(%arg0: {{.*}} {graph.name = "x0"}{{.*}}, %arg1: {{.*}} {graph.name = "x1"}{{.*}})
// CHECK-NEXT: graph.node "ai.onnx":"Add"
// CHECK-NEXT: graph.constant
// CHECK-NEXT: graph.node "ai.onnx":"MatMul"

// JSON: "backend_parts": [
// JSON: "backend": "onnxruntime"
// JSON: "flops": 33
// JSON: "input_bytes": 131072
// JSON: "taken": true

// TEXT: parts for ONNX Runtime, by --backend-for
// TEXT-NEXT: /a/first, /a/relu (2 nodes): goes; 1 input of 131.1 kB, 2 outputs of 262.1 kB, a file of 1.0 MB; it computes 33.6 M flops, and handing over 393.2 kB takes the time of 6.3 M
// TEXT-NEXT: /a/add, /a/second (2 nodes): goes
// TEXT-NEXT: /a/scale: stays with tc; 1 input of 131.1 kB, 1 output of 131.1 kB; it computes 32.8 k flops, and handing over 262.1 kB takes the time of 4.2 M
// TEXT: breaks: 2 calls of functions outside of libtcrt: onnxruntime_run x 2

// NAMED: graph.node "tc":"onnxruntime" opset 1 calls @onnxruntime_0
// NAMED-NOT: @onnxruntime_1

// UNUSED: error: --backend-for none* names no node of the model

// Of tc's own code for a part nothing is left.
// PRIM: %{{[0-9]+}} = prim.constant {{.*}}xui8>
// PRIM: prim.host_call "onnxruntime_run"(%{{[0-9]+}}, %arg0) words [0, 0, 0, 0] : (tensor<{{[0-9]+}}xui8>, tensor<64x512xf32>) -> (tensor<64x512xf32>, tensor<64x512xf32>)
// PRIM-NOT: prim.dot_general
// PRIM: prim.softmax
// PRIM: prim.host_call "onnxruntime_run"
// PRIM-NOT: prim.dot_general
graph.func @main(%x: tensor<64x512xf32> {graph.name = "x"}) -> (tensor<64x512xf32> {graph.name = "y"}) attributes {opsets = {ai.onnx = 20 : i64}} {
  %w = graph.constant dense<0.5> : tensor<512x512xf32>
  %first = graph.node "ai.onnx":"MatMul" opset 20(%x, %w) : (tensor<64x512xf32>, tensor<512x512xf32>) -> tensor<64x512xf32> loc("/a/first")
  %relu = graph.node "ai.onnx":"Relu" opset 20(%first) : (tensor<64x512xf32>) -> tensor<64x512xf32> loc("/a/relu")
  %soft = graph.node "ai.onnx":"Softmax" opset 20(%first) : (tensor<64x512xf32>) -> tensor<64x512xf32> loc("soft")
  %add = graph.node "ai.onnx":"Add" opset 20(%soft, %relu) : (tensor<64x512xf32>, tensor<64x512xf32>) -> tensor<64x512xf32> loc("/a/add")
  %second = graph.node "ai.onnx":"MatMul" opset 20(%add, %w) : (tensor<64x512xf32>, tensor<512x512xf32>) -> tensor<64x512xf32> loc("/a/second")
  %between = graph.node "ai.onnx":"Softmax" opset 20(%second) : (tensor<64x512xf32>) -> tensor<64x512xf32> loc("between")
  %scale = graph.node "ai.onnx":"Relu" opset 20(%between) : (tensor<64x512xf32>) -> tensor<64x512xf32> loc("/a/scale")
  graph.yield %scale : tensor<64x512xf32>
}
