// Regions that differ in the names of their sizes alone share a kernel, if as much is known of these.
// RUN: tc-opt %s --tc-choose-schedule --tc-lower-kernels=variants=x86-64-v3 | FileCheck %s

#a = affine_map<()[s0] -> (s0)>
#b = affine_map<()[s0, s1] -> (s1)>
#c = affine_map<()[s0, s1, s2] -> (s2)>
#ab = affine_map<()[s0, s1] -> (s0, s1)>
#ba = affine_map<()[s0, s1] -> (s1, s0)>
// CHECK-LABEL: func.func @main
// CHECK: host.launch @[[K:.*]](%arg0) symbols [0] tasks
// CHECK: host.launch @[[K]](%arg1) symbols [1] tasks
// The third is at most 8.
// CHECK: host.launch @[[L:.*]](%arg2) symbols [2] tasks
// CHECK-NOT: @[[K]](%arg2)
// Words stand in the order of the first one's symbols.
// CHECK: host.launch @[[M:.*]](%arg3) symbols [0, 1] tasks #[[T:.*]] grain
// CHECK: host.launch @[[M]](%arg4) symbols [1, 0] tasks #[[U:.*]] grain
// CHECK-NOT: llvm.func @k4
func.func @main(%x: tensor<?xf32, #prim.dims<#a>>, %y: tensor<?xf32, #prim.dims<#b>>, %z: tensor<?xf32, #prim.dims<#c>>, %p: tensor<?x?xf32, #prim.dims<#ab>>, %q: tensor<?x?xf32, #prim.dims<#ba>>)
    -> (tensor<?xf32, #prim.dims<#a>>, tensor<?xf32, #prim.dims<#b>>, tensor<?xf32, #prim.dims<#c>>, tensor<?x?xf32, #prim.dims<#ba>>, tensor<?x?xf32, #prim.dims<#ab>>)
    attributes {prim.symbols = [#prim.symbol<"A", 1, 1000, 1>, #prim.symbol<"B", 1, 1000, 1>, #prim.symbol<"C", 1, 8, 1>]} {
  %0 = kernel.region(%a = %x : tensor<?xf32, #prim.dims<#a>>) -> (tensor<?xf32, #prim.dims<#a>>) {
    %t = prim.tanh %a : tensor<?xf32, #prim.dims<#a>>
    kernel.yield %t : tensor<?xf32, #prim.dims<#a>>
  }
  %1 = kernel.region(%a = %y : tensor<?xf32, #prim.dims<#b>>) -> (tensor<?xf32, #prim.dims<#b>>) {
    %t = prim.tanh %a : tensor<?xf32, #prim.dims<#b>>
    kernel.yield %t : tensor<?xf32, #prim.dims<#b>>
  }
  %2 = kernel.region(%a = %z : tensor<?xf32, #prim.dims<#c>>) -> (tensor<?xf32, #prim.dims<#c>>) {
    %t = prim.tanh %a : tensor<?xf32, #prim.dims<#c>>
    kernel.yield %t : tensor<?xf32, #prim.dims<#c>>
  }
  %3 = kernel.region(%a = %p : tensor<?x?xf32, #prim.dims<#ab>>) -> (tensor<?x?xf32, #prim.dims<#ba>>) {
    %t = prim.transpose %a [1, 0] : tensor<?x?xf32, #prim.dims<#ab>> -> tensor<?x?xf32, #prim.dims<#ba>>
    %u = prim.tanh %t : tensor<?x?xf32, #prim.dims<#ba>>
    kernel.yield %u : tensor<?x?xf32, #prim.dims<#ba>>
  }
  %4 = kernel.region(%a = %q : tensor<?x?xf32, #prim.dims<#ba>>) -> (tensor<?x?xf32, #prim.dims<#ab>>) {
    %t = prim.transpose %a [1, 0] : tensor<?x?xf32, #prim.dims<#ba>> -> tensor<?x?xf32, #prim.dims<#ab>>
    %u = prim.tanh %t : tensor<?x?xf32, #prim.dims<#ab>>
    kernel.yield %u : tensor<?x?xf32, #prim.dims<#ab>>
  }
  return %0, %1, %2, %3, %4 : tensor<?xf32, #prim.dims<#a>>, tensor<?xf32, #prim.dims<#b>>, tensor<?xf32, #prim.dims<#c>>, tensor<?x?xf32, #prim.dims<#ba>>, tensor<?x?xf32, #prim.dims<#ab>>
}
