// Proves: a module at the end of phase kernel becomes an object that holds only what the runtime loads.
// RUN: tc-opt %s --tc-plan-memory --tc-convert-host-to-llvm | FileCheck %s
// RUN: tc-opt %s --tc-plan-memory --tc-convert-host-to-llvm --tc-compile-variants --tc-verify-object | FileCheck %s --check-prefix=OBJECT

#one = affine_map<() -> (1)>
#grain = affine_map<() -> (1024)>
#rows = affine_map<()[s0] -> (s0 * 8)>
!x = tensor<?x8xf32, #prim.dims<affine_map<()[s0] -> (s0, 8)>>>

// y = (x + c) * 2, written as two launches: the first has to go through the arena, as the output is the second's.
module {
  func.func @main(%x: !x {tc.name = "x"}) -> (!x {tc.name = "y"}) attributes {prim.symbols = [#prim.symbol<"batch", 1, 1024, 1>]} {
    %c = host.constant dense<[0.5, 1.5]> : tensor<2xf32> map affine_map<(i) -> (1 - i)> : tensor<2xf32>
    %s = host.launch @add(%x, %c) symbols [0] tasks #rows grain #grain : (!x, tensor<2xf32>) -> !x loc("add_node")
    %y = host.launch @twice(%s) symbols [] tasks #rows grain #grain in_place [0, 0] : (!x) -> !x loc("mul_node")
    return %y : !x
  }
  // CHECK-DAG: llvm.mlir.global external hidden @tc_imports
  // CHECK-DAG: llvm.mlir.global internal constant @tc_program
  // CHECK-LABEL: llvm.func @tc_entry
  // CHECK-LABEL: llvm.func hidden @tc_infer
  // CHECK: llvm.intr.smul.with.overflow
  // CHECK-LABEL: llvm.func hidden @tc_run
  // CHECK: llvm.mlir.addressof @add
  // CHECK: llvm.mlir.addressof @twice
  // OBJECT: host.binary @x86_64_v3 machines [#machine.cpu<name = "x86-64-v3", cpu = "x86-64-v3">] requires {{[0-9]+}}
  host.variant @x86_64_v3 machines [#machine.cpu<name = "x86-64-v3", cpu = "x86-64-v3">] {
    llvm.func @add(%args: !llvm.ptr, %begin: i64, %end: i64, %worker: i64) {
      %0 = llvm.mlir.constant(1 : i64) : i64
      %x = llvm.load %args : !llvm.ptr -> !llvm.ptr
      %cp = llvm.getelementptr %args[1] : (!llvm.ptr) -> !llvm.ptr, i64
      %c = llvm.load %cp : !llvm.ptr -> !llvm.ptr
      %yp = llvm.getelementptr %args[2] : (!llvm.ptr) -> !llvm.ptr, i64
      %y = llvm.load %yp : !llvm.ptr -> !llvm.ptr
      // Adds map[0] = data[1] = 1.5.
      %v = llvm.load %c : !llvm.ptr -> f32
      llvm.br ^head(%begin : i64)
    ^head(%i: i64):
      %more = llvm.icmp "slt" %i, %end : i64
      llvm.cond_br %more, ^body, ^exit
    ^body:
      %a = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      %b = llvm.load %a : !llvm.ptr -> f32
      %d = llvm.fadd %b, %v : f32
      %e = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      llvm.store %d, %e : f32, !llvm.ptr
      %n = llvm.add %i, %0 : i64
      llvm.br ^head(%n : i64)
    ^exit:
      llvm.return
    }
    llvm.func @twice(%args: !llvm.ptr, %begin: i64, %end: i64, %worker: i64) {
      %0 = llvm.mlir.constant(1 : i64) : i64
      %x = llvm.load %args : !llvm.ptr -> !llvm.ptr
      %yp = llvm.getelementptr %args[1] : (!llvm.ptr) -> !llvm.ptr, i64
      %y = llvm.load %yp : !llvm.ptr -> !llvm.ptr
      llvm.br ^head(%begin : i64)
    ^head(%i: i64):
      %more = llvm.icmp "slt" %i, %end : i64
      llvm.cond_br %more, ^body, ^exit
    ^body:
      %a = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      %b = llvm.load %a : !llvm.ptr -> f32
      %d = llvm.fadd %b, %b : f32
      %e = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      llvm.store %d, %e : f32, !llvm.ptr
      %n = llvm.add %i, %0 : i64
      llvm.br ^head(%n : i64)
    ^exit:
      llvm.return
    }
  }
}
