// Chips that are asked for: each has a cubin, once, newer ones than those with schedules of their own too. What LLVM does
// not know is refused, as are schedules of GPUs where CPUs are compiled for.
// REQUIRES: ptxas
// RUN: rm -rf %t && mkdir %t && cd %t && cp %s model.mlir
// RUN: tc-compile model.mlir -o chips.bin --target cuda --gpu sm_86,sm_86,sm_89,sm_90 --gpu sm_100,sm_120,sm_86 -q
// RUN: tc-inspect chips.bin | FileCheck %s
// RUN: tc-compile model.mlir -o exact.bin --target cuda --gpu sm_90a,sm_100a,sm_103,sm_120a -q
// RUN: tc-inspect exact.bin | FileCheck %s --check-prefix=EXACT
// RUN: not tc-compile model.mlir -o x.bin --target cuda --gpu sm_999 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: tc-compile model.mlir -o schedule.mlir --target cuda --gpu sm_86 --compile-to=schedule -q
// RUN: not tc-compile schedule.mlir -o x.bin 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: tc-compile schedule.mlir -o x.bin --target cuda --gpu sm_86 --debug-dir debug -q
// RUN: FileCheck %s --check-prefix=PAGE --input-file=debug/index.html

// CHECK: of host code, {{[0-9.]+}} KiB of cubin for sm_86, {{[0-9.]+}} KiB of cubin for sm_89, {{[0-9.]+}} KiB of cubin for sm_90, {{[0-9.]+}} KiB of cubin for sm_100, {{[0-9.]+}} KiB of cubin for sm_120, {{[0-9.]+}} KiB of PTX for sm_80
// EXACT: cubin for sm_90a, {{.*}} cubin for sm_100a, {{.*}} cubin for sm_103, {{.*}} cubin for sm_120a
// UNKNOWN: tc-compile: error: --gpu sm_999 is not known to LLVM 22.{{[0-9.]+}}'s code generator; give an older chip, of which the driver compiles PTX for newer ones
// OTHER: schedule.mlir: error: the module has schedules of another target than cpu; give the --target that it was made for, and its --gpu or --cpu
// PAGE: tc-compile 4-kernel.mlir --target cuda --gpu sm_86 -o model.bin

func.func @main(%x: tensor<64x256xbf16>, %w: tensor<256x128xbf16>, %s: tensor<64x512xf32>) -> (tensor<64x128xbf16>, tensor<64x512xf32>) attributes {prim.symbols = []} {
  %p = prim.dot_general %x, %w batch [] x [] contract [1] x [0] : (tensor<64x256xbf16>, tensor<256x128xbf16>) -> tensor<64x128xbf16>
  %y = prim.softmax %s axis = 1 : tensor<64x512xf32>
  return %p, %y : tensor<64x128xbf16>, tensor<64x512xf32>
}
