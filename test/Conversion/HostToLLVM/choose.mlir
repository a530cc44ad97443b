// Proves: a choice is a branch on the sizes of the run; a region for another machine is not part of the program.
// RUN: tc-opt %s --tc-plan-memory --tc-convert-host-to-llvm | FileCheck %s

#one = affine_map<() -> (1)>
!x = tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>
#few = affine_set<()[s0] : (4 - s0 >= 0)>
#odd = affine_set<()[s0] : (s0 mod 2 - 1 == 0)>
#wide = #machine.cpu<name = "x86-64-v4", cpu = "x86-64-v4", vectorBits = 512, vectorRegisters = 32, masks = true>

// CHECK-LABEL: host.variant @narrow
// CHECK: llvm.func hidden @tc_run
// CHECK: llvm.icmp "sge"
// CHECK: llvm.cond_br
// CHECK: llvm.mlir.addressof @few
// CHECK-NOT: @wide
// CHECK: llvm.icmp "eq"
// CHECK: llvm.cond_br
// CHECK: llvm.mlir.addressof @odd
// CHECK: llvm.mlir.addressof @rest
// CHECK-LABEL: host.variant @wide
// CHECK: llvm.func hidden @tc_run
// CHECK: llvm.mlir.addressof @few
// CHECK: llvm.mlir.addressof @wide
// What stands behind a guard that always holds is left out.
// CHECK-NOT: llvm.mlir.addressof @odd
// CHECK-NOT: llvm.mlir.addressof @rest
module {
  func.func @main(%x: !x) -> !x attributes {prim.symbols = [#prim.symbol<"n", 0, 100, 1>]} {
    %0 = host.choose [#host.guard<sizes = #few>, #host.guard<machine = #wide>, #host.guard<sizes = #odd>] : !x {
      %a = host.launch @few(%x) symbols [0] tasks #one grain #one : (!x) -> !x
      host.yield %a : !x
    }, {
      %a = host.launch @wide(%x) symbols [0] tasks #one grain #one : (!x) -> !x
      host.yield %a : !x
    }, {
      %a = host.launch @odd(%x) symbols [0] tasks #one grain #one : (!x) -> !x
      host.yield %a : !x
    }, {
      %a = host.launch @rest(%x) symbols [0] tasks #one grain #one : (!x) -> !x
      host.yield %a : !x
    }
    return %0 : !x
  }
  host.variant @narrow machines [#machine.cpu<name = "x86-64-v3", cpu = "x86-64-v3">] {
    llvm.func @few(%args: !llvm.ptr, %begin: i64, %end: i64, %worker: i64) {
      llvm.return
    }
    llvm.func @odd(%args: !llvm.ptr, %begin: i64, %end: i64, %worker: i64) {
      llvm.return
    }
    llvm.func @rest(%args: !llvm.ptr, %begin: i64, %end: i64, %worker: i64) {
      llvm.return
    }
  }
  host.variant @wide machines [#wide] {
    llvm.func @few(%args: !llvm.ptr, %begin: i64, %end: i64, %worker: i64) {
      llvm.return
    }
    llvm.func @wide(%args: !llvm.ptr, %begin: i64, %end: i64, %worker: i64) {
      llvm.return
    }
  }
}
