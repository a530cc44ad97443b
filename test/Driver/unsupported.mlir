// What a valid model needs and tc lacks is exit code 2 in later phases too, without a reproducer.
// RUN: rm -rf %t && split-file %s %t
// RUN: %python %S/Inputs/status.py 2 tc-compile %t/type.mlir -o %t/out.bin 2>&1 | FileCheck %s --check-prefix=TYPE
// RUN: %python %S/Inputs/status.py 2 tc-compile %t/loop.mlir -o %t/out.bin 2>&1 | FileCheck %s --check-prefix=LOOP
// RUN: not ls %t/out.bin
// RUN: not ls %t/out.bin.reproducer.mlir
// TYPE: type.mlir: error: input "input_0" has the type tensor<4xf6E2M3FN>, which artifacts cannot hold
// TYPE-NOT: note
// LOOP: loop.mlir: error: a loop that carries a value whose size depends on data is not supported
// LOOP-NOT: note

//--- type.mlir
func.func @main(%x: tensor<4xf6E2M3FN>) -> tensor<4xf6E2M3FN> {
  return %x : tensor<4xf6E2M3FN>
}

//--- loop.mlir
!d = tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>
func.func @main(%n: tensor<i64>, %c: tensor<i1>) -> !d attributes {prim.symbols = [#prim.symbol<"m", 0, 64, 1>]} {
  prim.bind_symbol %n to 0 : tensor<i64>
  %x = prim.splat 1.0 : f32 : !d
  %0 = prim.while %n, %c carry %x : (tensor<i64>, tensor<i1>, !d) -> !d {
  ^bb0(%i: tensor<i64>, %v: !d):
    %1 = prim.mul %v, %v : !d
    prim.yield %c, %1 : tensor<i1>, !d
  }
  return %0 : !d
}
