// Proves: launches that depend on static inputs alone become a function of their own, whose results the rest reads from states;
// what a kernel does not read keeps nothing alive; the rest refuses to run before; sizes that only the run knows stay.
// RUN: tc-opt %s --tc-mark-static=inputs=w,b* --tc-hoist-static | FileCheck %s
// Without names nothing changes, and there is no other option.
// RUN: tc-opt %s --tc-hoist-static | FileCheck %s --check-prefix=NONE
// NONE-NOT: prim.state
// RUN: not tc-opt %s --tc-mark-static=input=w 2>&1 | FileCheck %s --check-prefix=OPTION
// OPTION: no such option input

#one = affine_map<() -> (1)>
#n = affine_map<()[s0] -> (s0)>

// CHECK-DAG: prim.state @main.prepared : tensor<i64>
// CHECK-DAG: prim.state @main.static0 : tensor<4x16xf32>
// CHECK-DAG: prim.state @main.static1 : tensor<4xf32>
// CHECK-NOT: prim.state

// CHECK-LABEL: func.func @main
// CHECK-SAME: prim.symbols = [#prim.symbol<"prepared", 1, 1, 1>]
// CHECK-DAG: %[[READY:.*]] = prim.read_state @main.prepared
// CHECK-DAG: prim.bind_symbol %[[READY]] to 0 {message = "{{.*}}; run the function \22main.prepare\22 before"}
// CHECK-DAG: %[[P:.*]] = prim.read_state @main.static0
// CHECK-DAG: %[[B:.*]] = prim.read_state @main.static1
// CHECK-DAG: %[[V:.*]] = prim.reshape %[[B]] : tensor<4xf32> -> tensor<1x4xf32>
// CHECK-NOT: host.launch @transpose
// CHECK-NOT: host.launch @pack
// The kernel does not read what was packed.
// CHECK: %[[Y:.*]] = host.launch @product(%arg0, %[[P]], %[[P]])
// CHECK: %[[Z:.*]] = host.launch @add(%[[Y]], %[[V]])
// CHECK: return %[[Z]]
func.func @main(%x: tensor<8x4xf32> {tc.name = "x"}, %w: tensor<16x4xf32> {tc.name = "w"}, %b: tensor<4xf32> {tc.name = "bias"})
    -> tensor<8x16xf32> attributes {prim.symbols = []} {
  %c = prim.constant dense<2.0> : tensor<4xf32>
  %t = host.launch @transpose(%w) symbols [] tasks #one grain #one : (tensor<16x4xf32>) -> tensor<4x16xf32>
  %p = host.launch @pack(%x, %t) symbols [] tasks #one grain #one : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  %y = host.launch @product(%x, %t, %p) symbols [] tasks #one grain #one : (tensor<8x4xf32>, tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
  %s = host.launch @scale(%b, %c) symbols [] tasks #one grain #one : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %v = prim.reshape %s : tensor<4xf32> -> tensor<1x4xf32>
  %z = host.launch @add(%y, %v) symbols [] tasks #one grain #one : (tensor<8x16xf32>, tensor<1x4xf32>) -> tensor<8x16xf32>
  return %z : tensor<8x16xf32>
}

// CHECK-LABEL: func.func @sizes
// CHECK: host.launch @fill(%arg0)
// CHECK-NOT: read_state
func.func @sizes(%w: tensor<?xf32, #prim.dims<#n>> {tc.name = "w"}) -> tensor<?xf32, #prim.dims<#n>> attributes {prim.symbols = [#prim.symbol<"n", 1, 64, 1>]} {
  %y = host.launch @fill(%w) symbols [0] tasks #n grain #one : (tensor<?xf32, #prim.dims<#n>>) -> tensor<?xf32, #prim.dims<#n>>
  return %y : tensor<?xf32, #prim.dims<#n>>
}

// CHECK-LABEL: func.func @main.prepare
// CHECK-SAME: (%[[W:.*]]: tensor<16x4xf32> {prim.static, tc.name = "w"}, %[[BIAS:.*]]: tensor<4xf32> {prim.static, tc.name = "bias"})
// CHECK: %[[C:.*]] = prim.constant dense<2.0
// CHECK: %[[T:.*]] = host.launch @transpose(%[[W]])
// CHECK: %[[PACKED:.*]] = host.launch @pack(%[[T]], %[[T]])
// CHECK: %[[SCALED:.*]] = host.launch @scale(%[[BIAS]], %[[C]])
// CHECK: prim.write_state @main.static0, %[[PACKED]]
// CHECK: prim.write_state @main.static1, %[[SCALED]]
// CHECK: %[[ONE:.*]] = prim.constant dense<1> : tensor<i64>
// CHECK: prim.write_state @main.prepared, %[[ONE]]

// What these read is seen in their code.
host.variant @v machines [#machine.cpu<name = "x86-64-v3", cpu = "x86-64-v3">] {
  llvm.func @pack(%args: !llvm.ptr, %begin: i64, %end: i64, %worker: i64) {
    %0 = llvm.getelementptr %args[1] : (!llvm.ptr) -> !llvm.ptr, i64
    %1 = llvm.load %0 : !llvm.ptr -> !llvm.ptr
    llvm.return
  }
  llvm.func @product(%args: !llvm.ptr, %begin: i64, %end: i64, %worker: i64) {
    %0 = llvm.getelementptr %args[0] : (!llvm.ptr) -> !llvm.ptr, i64
    %1 = llvm.load %0 : !llvm.ptr -> !llvm.ptr
    %2 = llvm.getelementptr %args[2] : (!llvm.ptr) -> !llvm.ptr, i64
    %3 = llvm.load %2 : !llvm.ptr -> !llvm.ptr
    llvm.return
  }
  // Addresses that the run computes may be of any word.
  llvm.func @add(%args: !llvm.ptr, %begin: i64, %end: i64, %worker: i64) {
    %0 = llvm.getelementptr %args[%begin] : (!llvm.ptr, i64) -> !llvm.ptr, i64
    %1 = llvm.load %0 : !llvm.ptr -> !llvm.ptr
    llvm.return
  }
}
