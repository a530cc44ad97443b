// The first node whose value is off is found, however far from the outputs it is.
// RUN: tc-interpret %s --function first --random-inputs 1 --verify --max-rel 1e-6 | FileCheck %s --check-prefix=GOOD
// RUN: not tc-interpret %s --function first --random-inputs 1 --verify --max-rel 1e-12 2>&1 | FileCheck %s --check-prefix=FIRST
// RUN: not tc-interpret %s --function second --random-inputs 1 --verify --max-rel 1e-12 2>&1 | FileCheck %s --check-prefix=SECOND

// f32 holds halves and sums of few small integers exactly, but no third.
// GOOD: all outputs agree
// FIRST: error: node "third": element {{[0-9]+}} is 3.333333433e-01, expected 3.333333333e-01; the error is {{.*}} of the largest value, allowed 1.00e-12
func.func @first(%x: tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %one = prim.splat 1.0 : f32 : tensor<4xf32>
  %half = prim.splat 0.5 : f32 : tensor<4xf32>
  %three = prim.splat 3.0 : f32 : tensor<4xf32>
  %0 = prim.mul %one, %half : tensor<4xf32> loc("half")
  %1 = prim.div %one, %three : tensor<4xf32> loc("third")
  %2 = prim.add %0, %1 : tensor<4xf32> loc("sum")
  %3 = prim.sqrt %2 : tensor<4xf32> loc("root")
  return %0, %3 : tensor<4xf32>, tensor<4xf32>
}

// SECOND: error: node "scale":
func.func @second(%x: tensor<8x8xf32>) -> tensor<8xf32> {
  %s = prim.splat 0.1 : f32 : tensor<8x8xf32>
  %0 = prim.neg %x : tensor<8x8xf32> loc("negate")
  %1 = prim.abs %0 : tensor<8x8xf32> loc("absolute")
  %2 = prim.transpose %1 [1, 0] : tensor<8x8xf32> -> tensor<8x8xf32> loc("turn")
  %3 = prim.mul %2, %s : tensor<8x8xf32> loc("scale")
  %4 = prim.exp %3 : tensor<8x8xf32> loc("exp")
  %5 = prim.reduce sum %4 [1] : tensor<8x8xf32> -> tensor<8xf32> loc("sum")
  return %5 : tensor<8xf32>
}
