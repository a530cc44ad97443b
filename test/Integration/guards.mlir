// A guard refuses sizes before any kernel runs; sizes that fit pass.
// RUN: tc-compile %s -o %t.bin
// RUN: tc-run %t.bin --random-inputs --dim n=3 --dim m=3 | FileCheck %s --check-prefix=FITS
// RUN: %python -c "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode != 4)" tc-run %t.bin --random-inputs --dim n=3 --dim m=4 2>&1 | FileCheck %s --check-prefix=REFUSED
// FITS: f32 (3)
// REFUSED: error: node "sum": Add needs equal sizes in dim 0; n is not m for these inputs
!n = tensor<?xf32, #prim.dims<affine_map<()[s0, s1] -> (s0)>>>
!m = tensor<?xf32, #prim.dims<affine_map<()[s0, s1] -> (s1)>>>
func.func @main(%x: !n, %y: !m) -> !n
    attributes {prim.symbols = [#prim.symbol<"n", 0, 1000, 1>, #prim.symbol<"m", 0, 1000, 1>]} {
  prim.guard eq affine_map<()[s0, s1] -> (s0, s1)> "Add needs equal sizes in dim 0" loc("sum")
  %0 = prim.reshape %y : !m -> !n
  %1 = prim.add %x, %0 : !n
  return %1 : !n
}
