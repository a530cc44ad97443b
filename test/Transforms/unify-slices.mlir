// RUN: tc-opt %s --tc-unify-slices --split-input-file | FileCheck %s

// Eight regions that differ in where they read are one kernel: the starts that differ are data, a row of them each.
// CHECK-LABEL: func.func @rows
// CHECK: %[[C:.*]] = prim.constant dense<2> : tensor<1xi64>
// CHECK: kernel.region(%[[X:.*]] = %arg0 : tensor<8x6xf32>, %[[S:.*]] = %[[C]] : tensor<1xi64>)
// CHECK-SAME: reads = ["moved", "scalar"]
// CHECK: %[[I:.*]] = prim.reshape %[[S]] : tensor<1xi64> -> tensor<i64>
// CHECK: %[[Z:.*]] = prim.constant dense<0> : tensor<i64>
// CHECK: prim.dynamic_slice %[[X]] from(%[[I]], %[[Z]])
// CHECK-COUNT-7: prim.dynamic_slice
// CHECK-NOT: prim.dynamic_slice
func.func @rows(%x: tensor<8x6xf32>) -> (tensor<1x6xf32>, tensor<1x6xf32>, tensor<1x6xf32>, tensor<1x6xf32>, tensor<1x6xf32>, tensor<1x6xf32>, tensor<1x6xf32>, tensor<1x6xf32>) {
  %0 = kernel.region(%a = %x : tensor<8x6xf32>) -> (tensor<1x6xf32>) attributes {fusion = #kernel.fusion<ops = 2, reads = ["moved"], stopped = []>} {
    %s = prim.slice %a from affine_map<() -> (2, 0)> step [1, 1] : tensor<8x6xf32> -> tensor<1x6xf32>
    %t = prim.tanh %s : tensor<1x6xf32>
    kernel.yield %t : tensor<1x6xf32>
  }
  %1 = kernel.region(%a = %x : tensor<8x6xf32>) -> (tensor<1x6xf32>) attributes {fusion = #kernel.fusion<ops = 2, reads = ["moved"], stopped = []>} {
    %s = prim.slice %a from affine_map<() -> (3, 0)> step [1, 1] : tensor<8x6xf32> -> tensor<1x6xf32>
    %t = prim.tanh %s : tensor<1x6xf32>
    kernel.yield %t : tensor<1x6xf32>
  }
  %2 = kernel.region(%a = %x : tensor<8x6xf32>) -> (tensor<1x6xf32>) attributes {fusion = #kernel.fusion<ops = 2, reads = ["moved"], stopped = []>} {
    %s = prim.slice %a from affine_map<() -> (4, 0)> step [1, 1] : tensor<8x6xf32> -> tensor<1x6xf32>
    %t = prim.tanh %s : tensor<1x6xf32>
    kernel.yield %t : tensor<1x6xf32>
  }
  %3 = kernel.region(%a = %x : tensor<8x6xf32>) -> (tensor<1x6xf32>) attributes {fusion = #kernel.fusion<ops = 2, reads = ["moved"], stopped = []>} {
    %s = prim.slice %a from affine_map<() -> (5, 0)> step [1, 1] : tensor<8x6xf32> -> tensor<1x6xf32>
    %t = prim.tanh %s : tensor<1x6xf32>
    kernel.yield %t : tensor<1x6xf32>
  }
  %4 = kernel.region(%a = %x : tensor<8x6xf32>) -> (tensor<1x6xf32>) attributes {fusion = #kernel.fusion<ops = 2, reads = ["moved"], stopped = []>} {
    %s = prim.slice %a from affine_map<() -> (6, 0)> step [1, 1] : tensor<8x6xf32> -> tensor<1x6xf32>
    %t = prim.tanh %s : tensor<1x6xf32>
    kernel.yield %t : tensor<1x6xf32>
  }
  %5 = kernel.region(%a = %x : tensor<8x6xf32>) -> (tensor<1x6xf32>) attributes {fusion = #kernel.fusion<ops = 2, reads = ["moved"], stopped = []>} {
    %s = prim.slice %a from affine_map<() -> (7, 0)> step [1, 1] : tensor<8x6xf32> -> tensor<1x6xf32>
    %t = prim.tanh %s : tensor<1x6xf32>
    kernel.yield %t : tensor<1x6xf32>
  }
  %6 = kernel.region(%a = %x : tensor<8x6xf32>) -> (tensor<1x6xf32>) attributes {fusion = #kernel.fusion<ops = 2, reads = ["moved"], stopped = []>} {
    %s = prim.slice %a from affine_map<() -> (0, 0)> step [1, 1] : tensor<8x6xf32> -> tensor<1x6xf32>
    %t = prim.tanh %s : tensor<1x6xf32>
    kernel.yield %t : tensor<1x6xf32>
  }
  %7 = kernel.region(%a = %x : tensor<8x6xf32>) -> (tensor<1x6xf32>) attributes {fusion = #kernel.fusion<ops = 2, reads = ["moved"], stopped = []>} {
    %s = prim.slice %a from affine_map<() -> (1, 0)> step [1, 1] : tensor<8x6xf32> -> tensor<1x6xf32>
    %t = prim.tanh %s : tensor<1x6xf32>
    kernel.yield %t : tensor<1x6xf32>
  }
  return %0, %1, %2, %3, %4, %5, %6, %7 : tensor<1x6xf32>, tensor<1x6xf32>, tensor<1x6xf32>, tensor<1x6xf32>, tensor<1x6xf32>, tensor<1x6xf32>, tensor<1x6xf32>, tensor<1x6xf32>
}

// -----

// Seven are not worth it.
// CHECK-LABEL: func.func @few
// CHECK-NOT: prim.dynamic_slice
func.func @few(%x: tensor<8x6xf32>) -> (tensor<1x6xf32>, tensor<1x6xf32>, tensor<1x6xf32>, tensor<1x6xf32>, tensor<1x6xf32>, tensor<1x6xf32>, tensor<1x6xf32>) {
  %0 = kernel.region(%a = %x : tensor<8x6xf32>) -> (tensor<1x6xf32>) attributes {fusion = #kernel.fusion<ops = 2, reads = ["moved"], stopped = []>} {
    %s = prim.slice %a from affine_map<() -> (0, 0)> step [1, 1] : tensor<8x6xf32> -> tensor<1x6xf32>
    %t = prim.tanh %s : tensor<1x6xf32>
    kernel.yield %t : tensor<1x6xf32>
  }
  %1 = kernel.region(%a = %x : tensor<8x6xf32>) -> (tensor<1x6xf32>) attributes {fusion = #kernel.fusion<ops = 2, reads = ["moved"], stopped = []>} {
    %s = prim.slice %a from affine_map<() -> (1, 0)> step [1, 1] : tensor<8x6xf32> -> tensor<1x6xf32>
    %t = prim.tanh %s : tensor<1x6xf32>
    kernel.yield %t : tensor<1x6xf32>
  }
  %2 = kernel.region(%a = %x : tensor<8x6xf32>) -> (tensor<1x6xf32>) attributes {fusion = #kernel.fusion<ops = 2, reads = ["moved"], stopped = []>} {
    %s = prim.slice %a from affine_map<() -> (2, 0)> step [1, 1] : tensor<8x6xf32> -> tensor<1x6xf32>
    %t = prim.tanh %s : tensor<1x6xf32>
    kernel.yield %t : tensor<1x6xf32>
  }
  %3 = kernel.region(%a = %x : tensor<8x6xf32>) -> (tensor<1x6xf32>) attributes {fusion = #kernel.fusion<ops = 2, reads = ["moved"], stopped = []>} {
    %s = prim.slice %a from affine_map<() -> (3, 0)> step [1, 1] : tensor<8x6xf32> -> tensor<1x6xf32>
    %t = prim.tanh %s : tensor<1x6xf32>
    kernel.yield %t : tensor<1x6xf32>
  }
  %4 = kernel.region(%a = %x : tensor<8x6xf32>) -> (tensor<1x6xf32>) attributes {fusion = #kernel.fusion<ops = 2, reads = ["moved"], stopped = []>} {
    %s = prim.slice %a from affine_map<() -> (4, 0)> step [1, 1] : tensor<8x6xf32> -> tensor<1x6xf32>
    %t = prim.tanh %s : tensor<1x6xf32>
    kernel.yield %t : tensor<1x6xf32>
  }
  %5 = kernel.region(%a = %x : tensor<8x6xf32>) -> (tensor<1x6xf32>) attributes {fusion = #kernel.fusion<ops = 2, reads = ["moved"], stopped = []>} {
    %s = prim.slice %a from affine_map<() -> (5, 0)> step [1, 1] : tensor<8x6xf32> -> tensor<1x6xf32>
    %t = prim.tanh %s : tensor<1x6xf32>
    kernel.yield %t : tensor<1x6xf32>
  }
  %6 = kernel.region(%a = %x : tensor<8x6xf32>) -> (tensor<1x6xf32>) attributes {fusion = #kernel.fusion<ops = 2, reads = ["moved"], stopped = []>} {
    %s = prim.slice %a from affine_map<() -> (6, 0)> step [1, 1] : tensor<8x6xf32> -> tensor<1x6xf32>
    %t = prim.tanh %s : tensor<1x6xf32>
    kernel.yield %t : tensor<1x6xf32>
  }
  return %0, %1, %2, %3, %4, %5, %6 : tensor<1x6xf32>, tensor<1x6xf32>, tensor<1x6xf32>, tensor<1x6xf32>, tensor<1x6xf32>, tensor<1x6xf32>, tensor<1x6xf32>
}

// -----

// Steps stay: the span from the first to the last element is at the place that is data.
// CHECK-LABEL: func.func @steps
// CHECK: prim.dynamic_slice {{.*}} : (tensor<30xf32>, tensor<i64>) -> tensor<7xf32>
// CHECK-NEXT: prim.slice {{.*}} step [3] : tensor<7xf32> -> tensor<3xf32>
func.func @steps(%x: tensor<30xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %0 = kernel.region(%a = %x : tensor<30xf32>) -> (tensor<3xf32>) {
    %s = prim.slice %a from affine_map<() -> (0)> step [3] : tensor<30xf32> -> tensor<3xf32>
    %t = prim.tanh %s : tensor<3xf32>
    kernel.yield %t : tensor<3xf32>
  }
  %1 = kernel.region(%a = %x : tensor<30xf32>) -> (tensor<3xf32>) {
    %s = prim.slice %a from affine_map<() -> (1)> step [3] : tensor<30xf32> -> tensor<3xf32>
    %t = prim.tanh %s : tensor<3xf32>
    kernel.yield %t : tensor<3xf32>
  }
  %2 = kernel.region(%a = %x : tensor<30xf32>) -> (tensor<3xf32>) {
    %s = prim.slice %a from affine_map<() -> (2)> step [3] : tensor<30xf32> -> tensor<3xf32>
    %t = prim.tanh %s : tensor<3xf32>
    kernel.yield %t : tensor<3xf32>
  }
  %3 = kernel.region(%a = %x : tensor<30xf32>) -> (tensor<3xf32>) {
    %s = prim.slice %a from affine_map<() -> (3)> step [3] : tensor<30xf32> -> tensor<3xf32>
    %t = prim.tanh %s : tensor<3xf32>
    kernel.yield %t : tensor<3xf32>
  }
  %4 = kernel.region(%a = %x : tensor<30xf32>) -> (tensor<3xf32>) {
    %s = prim.slice %a from affine_map<() -> (4)> step [3] : tensor<30xf32> -> tensor<3xf32>
    %t = prim.tanh %s : tensor<3xf32>
    kernel.yield %t : tensor<3xf32>
  }
  %5 = kernel.region(%a = %x : tensor<30xf32>) -> (tensor<3xf32>) {
    %s = prim.slice %a from affine_map<() -> (5)> step [3] : tensor<30xf32> -> tensor<3xf32>
    %t = prim.tanh %s : tensor<3xf32>
    kernel.yield %t : tensor<3xf32>
  }
  %6 = kernel.region(%a = %x : tensor<30xf32>) -> (tensor<3xf32>) {
    %s = prim.slice %a from affine_map<() -> (6)> step [3] : tensor<30xf32> -> tensor<3xf32>
    %t = prim.tanh %s : tensor<3xf32>
    kernel.yield %t : tensor<3xf32>
  }
  %7 = kernel.region(%a = %x : tensor<30xf32>) -> (tensor<3xf32>) {
    %s = prim.slice %a from affine_map<() -> (7)> step [3] : tensor<30xf32> -> tensor<3xf32>
    %t = prim.tanh %s : tensor<3xf32>
    kernel.yield %t : tensor<3xf32>
  }
  return %0, %1, %2, %3, %4, %5, %6, %7 : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
}

// -----

// Starts over symbols come from the host program.
// CHECK-LABEL: func.func @unknown
// CHECK: %[[C:.*]] = prim.sizes #{{.*}} : tensor<1xi64>
// CHECK: kernel.region({{.*}} = %arg0 : {{.*}}, {{.*}} = %[[C]] : tensor<1xi64>)
func.func @unknown(%x: tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0 * 8)>>>) -> tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>> attributes {prim.symbols = [#prim.symbol<"N", 0, 1000, 1>]} {
  %0 = kernel.region(%a = %x : tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0 * 8)>>>) -> (tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>) {
    %s = prim.slice %a from affine_map<()[s0] -> (s0 * 3)> step [1] : tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0 * 8)>>> -> tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>
    %t = prim.tanh %s : tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>
    kernel.yield %t : tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>
  }
  %1 = kernel.region(%a = %x : tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0 * 8)>>>) -> (tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>) {
    %s = prim.slice %a from affine_map<()[s0] -> (s0 * 4)> step [1] : tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0 * 8)>>> -> tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>
    %t = prim.tanh %s : tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>
    kernel.yield %t : tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>
  }
  %2 = kernel.region(%a = %x : tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0 * 8)>>>) -> (tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>) {
    %s = prim.slice %a from affine_map<()[s0] -> (s0 * 5)> step [1] : tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0 * 8)>>> -> tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>
    %t = prim.tanh %s : tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>
    kernel.yield %t : tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>
  }
  %3 = kernel.region(%a = %x : tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0 * 8)>>>) -> (tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>) {
    %s = prim.slice %a from affine_map<()[s0] -> (s0 * 6)> step [1] : tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0 * 8)>>> -> tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>
    %t = prim.tanh %s : tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>
    kernel.yield %t : tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>
  }
  %4 = kernel.region(%a = %x : tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0 * 8)>>>) -> (tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>) {
    %s = prim.slice %a from affine_map<()[s0] -> (s0 * 7)> step [1] : tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0 * 8)>>> -> tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>
    %t = prim.tanh %s : tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>
    kernel.yield %t : tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>
  }
  %5 = kernel.region(%a = %x : tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0 * 8)>>>) -> (tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>) {
    %s = prim.slice %a from affine_map<()[s0] -> (s0 * 0)> step [1] : tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0 * 8)>>> -> tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>
    %t = prim.tanh %s : tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>
    kernel.yield %t : tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>
  }
  %6 = kernel.region(%a = %x : tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0 * 8)>>>) -> (tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>) {
    %s = prim.slice %a from affine_map<()[s0] -> (s0 * 1)> step [1] : tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0 * 8)>>> -> tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>
    %t = prim.tanh %s : tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>
    kernel.yield %t : tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>
  }
  %7 = kernel.region(%a = %x : tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0 * 8)>>>) -> (tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>) {
    %s = prim.slice %a from affine_map<()[s0] -> (s0 * 2)> step [1] : tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0 * 8)>>> -> tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>
    %t = prim.tanh %s : tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>
    kernel.yield %t : tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>
  }
  return %0 : tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>
}
