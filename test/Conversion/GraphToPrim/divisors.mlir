// --dim NAME=multiple-of:N is the divisor of the dim's symbol, whose ends are multiples; one multiple alone is a number. Buckets end at the last.
// RUN: tc-opt %s --tc-convert-graph-to-prim=dim=n=multiple-of:8 | FileCheck %s --check-prefix=OPEN
// RUN: tc-compile %s -o - -q --compile-to=prim --dim n=multiple-of:8,5..30 | FileCheck %s --check-prefix=RANGE
// RUN: tc-compile %s -o - -q --compile-to=prim --dim x.0=multiple-of:8,16,24,0..30 | FileCheck %s --check-prefix=LISTED
// RUN: tc-compile %s -o - -q --compile-to=prim --dim n=multiple-of:8,5..15 | FileCheck %s --check-prefix=ONE
// RUN: tc-opt %s --tc-convert-graph-to-prim=dim=n=multiple-of:1 | FileCheck %s --check-prefix=ANY
// RUN: not tc-opt %s --tc-convert-graph-to-prim=dim=k=multiple-of:8 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not tc-opt %s "--tc-convert-graph-to-prim=dim=n=multiple-of:8 shape=x=12x3x7" 2>&1 | FileCheck %s --check-prefix=SHAPE
// RUN: not tc-compile %s -o %t --dim n=multiple-of:8,12,0..64 2>&1 | FileCheck %s --check-prefix=NO-MULTIPLE
// RUN: not tc-compile %s -o %t --dim n=bucket:4,8 --shape x=9,3,2 2>&1 | FileCheck %s --check-prefix=OUTSIDE
// RUN: tc-opt %s --tc-convert-graph-to-prim=dim=k=bucket:7 | FileCheck %s --check-prefix=BUCKETS
// RUN: not tc-opt %s --tc-convert-graph-to-prim=dim=k=bucket:8 2>&1 | FileCheck %s --check-prefix=BEYOND

// OPEN: prim.symbols = [#prim.symbol<"n", 0, 9223372036854775807, 8>, #prim.symbol<"k", 2, 7, 1>]
// RANGE: prim.symbols = [#prim.symbol<"n", 8, 24, 8>
// LISTED: prim.specialized = [array<i64: 0, 16, 0>, array<i64: 0, 24, 0>]
// LISTED-SAME: #prim.symbol<"n", 0, 24, 8>
// ONE: func.func @main(%{{.*}}: tensor<8x3x?xf32
// ANY: #prim.symbol<"n", 0, 9223372036854775807, 1>
// NONE: input "x": --dim gives dim "k" multiples of 8, of which none lies in the 2 to 7 that the model takes; give a divisor that has one
// SHAPE: input "x": --shape gives dim "n" the size 12, --dim multiples of 8; leave one of them out
// NO-MULTIPLE: --dim n=multiple-of:8,12,0..64: 12 is no multiple of 8; list multiples, or leave multiple-of out
// OUTSIDE: input "x": --shape gives dim "n" the size 9, --dim others; leave one of them out
// BUCKETS: prim.buckets = [array<i64: 1, 7>]
// BUCKETS-SAME: #prim.symbol<"k", 2, 7, 1>
// BEYOND: input "x": --dim gives dim "k" the size 8; the model takes 2 to 7
graph.func @main(%x: tensor<?x3x?xf32> {graph.name = "x", graph.dims = ["n", "", "k"], graph.ranges = array<i64: 0, 9223372036854775807, 3, 3, 2, 7>})
    -> (tensor<?x3x?xf32> {graph.name = "y"}) attributes {opsets = {ai.onnx = 20 : i64}} {
  %y = graph.node "ai.onnx":"Relu" opset 20(%x) : (tensor<?x3x?xf32>) -> tensor<?x3x?xf32> loc("relu")
  graph.yield %y : tensor<?x3x?xf32>
}
