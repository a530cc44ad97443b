// Proves: a function computes each size once; the segments of an arena follow one another.
// RUN: tc-opt %s -split-input-file --tc-plan-memory --tc-convert-host-to-llvm | FileCheck %s

#one = affine_map<() -> (1)>
#tasks = affine_map<()[s0] -> ((s0 + 3) floordiv 4)>
!n = tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>
!m = tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0 + 1)>>>

// The tasks of both launches are one division. %a lies in the first segment, %b behind it, at the end of what %a may take.
// CHECK-LABEL: llvm.func hidden @tc_run(
// CHECK: %[[SECOND:.*]] = llvm.getelementptr %[[ARENA:.*]][%{{.*}}] : (!llvm.ptr, i64) -> !llvm.ptr, i8
// CHECK: llvm.store %[[ARENA]], %{{.*}} : !llvm.ptr, !llvm.ptr
// CHECK: llvm.mlir.addressof @a
// CHECK: %[[TASKS:.*]] = llvm.sub
// CHECK: llvm.call %{{.*}}, %[[TASKS]], %{{.*}}) : !llvm.ptr, (!llvm.ptr, i32, !llvm.ptr, !llvm.ptr, i64, i64) -> ()
// CHECK-NOT: llvm.sdiv
// CHECK: llvm.store %[[SECOND]], %{{.*}} : !llvm.ptr, !llvm.ptr
// CHECK: llvm.mlir.addressof @b
// CHECK: llvm.call %{{.*}}, %[[TASKS]], %{{.*}}) : !llvm.ptr, (!llvm.ptr, i32, !llvm.ptr, !llvm.ptr, i64, i64) -> ()
module {
  func.func @main(%x: !n) -> !n attributes {prim.symbols = [#prim.symbol<"n", 1, 1000, 1>]} {
    %a = host.launch @a(%x) symbols [0] tasks #tasks grain #one : (!n) -> !n
    %b = host.launch @b(%a) symbols [0] tasks #tasks grain #one : (!n) -> !m
    %c = host.launch @a(%b) symbols [0] tasks #tasks grain #one : (!m) -> !n
    return %c : !n
  }
  host.variant @x86_64_v3 machines [#machine.cpu<name = "x86-64-v3", cpu = "x86-64-v3">] {
    llvm.func @a(%args: !llvm.ptr, %begin: i64, %end: i64, %worker: i64) {
      llvm.return
    }
    llvm.func @b(%args: !llvm.ptr, %begin: i64, %end: i64, %worker: i64) {
      llvm.return
    }
  }
}
