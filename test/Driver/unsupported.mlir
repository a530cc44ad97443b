// What a valid model needs and tc lacks is exit code 2 in later phases too, without a reproducer.
// RUN: rm -rf %t && split-file %s %t
// RUN: %python %S/Inputs/status.py 2 tc-compile %t/type.mlir -o %t/out.bin 2>&1 | FileCheck %s --check-prefix=TYPE
// RUN: not ls %t/out.bin
// RUN: not ls %t/out.bin.reproducer.mlir
// TYPE: type.mlir: error: input "input_0" has the type tensor<4xf80>, which artifacts cannot hold
// TYPE-NOT: note

//--- type.mlir
func.func @main(%x: tensor<4xf80>) -> tensor<4xf80> {
  return %x : tensor<4xf80>
}
