// Constants for tensor cores are rounded to TF32 when the artifact is written: to the nearest number of 11 significant bits, of two
// the larger; infinities and what is no number stay. The same data as it is beside it is another constant.
// RUN: rm -rf %t && mkdir %t
// RUN: tc-compile %s -o %t/model.bin
// RUN: %python -c "import numpy as np; x = np.array([0x3f801008, 0x3f801000, 0xbf800fff, 0x7f800000, 0x7fc00001], np.uint32); y = np.array([0x3f802000, 0x3f802000, 0xbf800000, 0x7f800000, 0x7fc00001], np.uint32); np.savez('%t/out.npz', y=y.view(np.float32), z=x.view(np.float32))"
// RUN: tc-run %t/model.bin --expect %t/out.npz --max-rel 0 | FileCheck %s
// CHECK: ok: 2 of 2 outputs as expected

#one = affine_map<() -> (1)>
#count = affine_map<() -> (5)>
!c = tensor<5xf32>
module {
  func.func @main() -> (!c {tc.name = "y"}, !c {tc.name = "z"}) attributes {prim.symbols = []} {
    %c = host.constant dense<[0x3F801008, 0x3F801000, 0xBF800FFF, 0x7F800000, 0x7FC00001]> : !c map affine_map<(i) -> (i)> tf32 : !c
    %d = host.constant dense<[0x3F801008, 0x3F801000, 0xBF800FFF, 0x7F800000, 0x7FC00001]> : !c map affine_map<(i) -> (i)> : !c
    %y = host.launch @copy(%c) symbols [] tasks #count grain #count : (!c) -> !c
    %z = host.launch @copy(%d) symbols [] tasks #count grain #count : (!c) -> !c
    return %y, %z : !c, !c
  }
  host.variant @x86_64_v3 machines [#machine.cpu<name = "x86-64-v3", cpu = "x86-64-v3">] {
    llvm.func @copy(%args: !llvm.ptr, %begin: i64, %end: i64, %worker: i64) {
      %0 = llvm.mlir.constant(1 : i64) : i64
      %x = llvm.load %args : !llvm.ptr -> !llvm.ptr
      %yp = llvm.getelementptr %args[1] : (!llvm.ptr) -> !llvm.ptr, i64
      %y = llvm.load %yp : !llvm.ptr -> !llvm.ptr
      llvm.br ^head(%begin : i64)
    ^head(%i: i64):
      %more = llvm.icmp "slt" %i, %end : i64
      llvm.cond_br %more, ^body, ^exit
    ^body:
      %a = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i32
      %b = llvm.load %a : !llvm.ptr -> i32
      %e = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i32
      llvm.store %b, %e : i32, !llvm.ptr
      %n = llvm.add %i, %0 : i64
      llvm.br ^head(%n : i64)
    ^exit:
      llvm.return
    }
  }
}
