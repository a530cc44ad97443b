// Proves: what a branch computes and yields is made where the result lives, and only the rest is copied; a condition that sizes decide
// is written nowhere, nor is what a loop is known to count to.
// RUN: tc-opt %s --tc-plan-memory -split-input-file | FileCheck %s --check-prefix=PLACES
// RUN: tc-opt %s --tc-plan-memory --tc-convert-host-to-llvm -split-input-file | FileCheck %s

#one = affine_map<() -> (1)>
#eight = affine_set<()[s0] : (s0 - 8 == 0)>
!x = tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>

// PLACES-LABEL: func.func @main
// PLACES: prim.if
// PLACES: host.launch @fixed({{.*}}host.places = [#host.place<output[0]
// PLACES: host.launch @first({{.*}}host.places = [#host.place<arena[1]
// PLACES: host.launch @general({{.*}}host.places = [#host.place<output[0]
// CHECK-LABEL: llvm.func hidden @tc_run
// CHECK-NOT: llvm.store {{.*}} : i8
// CHECK: llvm.icmp "eq"
// CHECK: llvm.cond_br
// CHECK: llvm.mlir.addressof @fixed
// CHECK-NOT: llvm.intr.memcpy
// CHECK: llvm.mlir.addressof @first
// CHECK: llvm.mlir.addressof @general
// CHECK-NOT: llvm.intr.memcpy
// CHECK: llvm.return
module {
  func.func @main(%x: !x) -> !x attributes {prim.symbols = [#prim.symbol<"n", 0, 100, 1>]} {
    %always = prim.splat true : tensor<i1>
    %r = prim.if %always : tensor<i1> -> (!x) {
      %a = prim.reshape %x : !x -> tensor<8xf32>
      %b = host.launch @fixed(%a) symbols [] tasks #one grain #one : (tensor<8xf32>) -> tensor<8xf32>
      %c = prim.reshape %b : tensor<8xf32> -> !x
      prim.yield %c : !x
    } else {
      %a = host.launch @first(%x) symbols [0] tasks #one grain #one : (!x) -> !x
      %b = host.launch @general(%a) symbols [0] tasks #one grain #one : (!x) -> !x
      prim.yield %b : !x
    } {prim.when = #eight}
    return %r : !x
  }
  host.variant @cpu machines [#machine.cpu<name = "x86-64-v3", cpu = "x86-64-v3">] {
    llvm.func @fixed(%args: !llvm.ptr, %begin: i64, %end: i64, %worker: i64) {
      llvm.return
    }
    llvm.func @first(%args: !llvm.ptr, %begin: i64, %end: i64, %worker: i64) {
      llvm.return
    }
    llvm.func @general(%args: !llvm.ptr, %begin: i64, %end: i64, %worker: i64) {
      llvm.return
    }
  }
}

// -----

// A value that is yielded twice, one from outside and a view of an input are copied.
#one = affine_map<() -> (1)>
!x = tensor<8xf32>
// PLACES-LABEL: func.func @main
// PLACES: host.launch @outer({{.*}}host.places = [#host.place<arena[0]
// PLACES: prim.if
// PLACES: host.launch @inner({{.*}}host.places = [#host.place<output[0]
// CHECK-LABEL: llvm.func hidden @tc_run
// CHECK: llvm.mlir.addressof @outer
// CHECK: llvm.cond_br
// CHECK: llvm.mlir.addressof @inner
// CHECK-COUNT-3: llvm.intr.memcpy
// CHECK-NOT: llvm.intr.memcpy
// CHECK: llvm.return
module {
  func.func @main(%x: !x, %c: tensor<i1>) -> (!x, !x) attributes {prim.symbols = []} {
    %o = host.launch @outer(%x) symbols [] tasks #one grain #one : (!x) -> !x
    %r:2 = prim.if %c : tensor<i1> -> (!x, !x) {
      %a = host.launch @inner(%o) symbols [] tasks #one grain #one : (!x) -> !x
      prim.yield %a, %a : !x, !x
    } else {
      prim.yield %o, %x : !x, !x
    }
    %s = host.launch @outer(%o) symbols [] tasks #one grain #one : (!x) -> !x
    return %r#0, %r#1 : !x, !x
  }
  host.variant @cpu machines [#machine.cpu<name = "x86-64-v3", cpu = "x86-64-v3">] {
    llvm.func @outer(%args: !llvm.ptr, %begin: i64, %end: i64, %worker: i64) {
      llvm.return
    }
    llvm.func @inner(%args: !llvm.ptr, %begin: i64, %end: i64, %worker: i64) {
      llvm.return
    }
  }
}
