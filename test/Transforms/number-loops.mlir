// Loops on a device that run at most so many times have the numbers of their iterations in a table; those that read none, or run as often as data or
// sizes say, do not. The plan then has no memory for the number, and the next value of what was read before lives where the old one did.
// RUN: tc-opt %s --pass-pipeline='builtin.module(func.func(tc-number-loops))' | FileCheck %s --implicit-check-not=host.numbers
// RUN: tc-opt %s --pass-pipeline='builtin.module(func.func(tc-number-loops),tc-plan-memory)' | FileCheck %s --check-prefix=PLAN

// CHECK-LABEL: func.func @steps
// CHECK: prim.while
// CHECK-NEXT: ^bb0(%[[I:.*]]: tensor<i64>
// CHECK-NEXT: prim.constant dense<[0, 1, 2]> : tensor<3xi64> {host.numbers}
// CHECK-NEXT: host.launch @step(%[[I]]
// PLAN-LABEL: func.func @steps
// PLAN: prim.while
// PLAN: host.launch @step
// PLAN: host.launch @add({{.*}}host.places = [#host.place<arena[0], #[[PLACE:.*]]>]
// PLAN: host.iteration = [#host.place<heap[0], {{.*}}>], host.places = [#host.place<arena[0], #[[PLACE]]>]
func.func @steps(%x: tensor<8xf32>) -> tensor<8xf32> attributes {prim.symbols = []} {
  %n = prim.splat 3 : i64 : tensor<i64>
  %yes = prim.splat true : tensor<i1>
  %r = prim.while %n, %yes carry %x : (tensor<i64>, tensor<i1>, tensor<8xf32>) -> (tensor<8xf32>) {
  ^bb0(%i: tensor<i64>, %h: tensor<8xf32>):
    %a = host.launch @step(%i, %h) symbols [] tasks affine_map<() -> (1)> grain affine_map<() -> (1)> : (tensor<i64>, tensor<8xf32>) -> tensor<8xf32>
    %b = host.launch @add(%a) symbols [] tasks affine_map<() -> (1)> grain affine_map<() -> (1)> : (tensor<8xf32>) -> tensor<8xf32>
    prim.yield %yes, %b : tensor<i1>, tensor<8xf32>
  }
  %y = host.launch @add(%r) symbols [] tasks affine_map<() -> (1)> grain affine_map<() -> (1)> : (tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// CHECK-LABEL: func.func @unread
func.func @unread(%x: tensor<8xf32>, %m: tensor<i64>) -> tensor<8xf32> attributes {prim.symbols = []} {
  %n = prim.splat 3 : i64 : tensor<i64>
  %yes = prim.splat true : tensor<i1>
  %r = prim.while %n, %yes carry %x : (tensor<i64>, tensor<i1>, tensor<8xf32>) -> (tensor<8xf32>) {
  ^bb0(%i: tensor<i64>, %h: tensor<8xf32>):
    %a = host.launch @add(%h) symbols [] tasks affine_map<() -> (1)> grain affine_map<() -> (1)> : (tensor<8xf32>) -> tensor<8xf32>
    prim.yield %yes, %a : tensor<i1>, tensor<8xf32>
  }
  %s = prim.while %m, %yes carry %r : (tensor<i64>, tensor<i1>, tensor<8xf32>) -> (tensor<8xf32>) {
  ^bb0(%i: tensor<i64>, %h: tensor<8xf32>):
    %a = host.launch @step(%i, %h) symbols [] tasks affine_map<() -> (1)> grain affine_map<() -> (1)> : (tensor<i64>, tensor<8xf32>) -> tensor<8xf32>
    prim.yield %yes, %a : tensor<i1>, tensor<8xf32>
  }
  return %s : tensor<8xf32>
}
