// An output may lie on an input that another output of the same kernel still reads: %s on %a here.
// RUN: rm -rf %t && mkdir %t
// RUN: %python -c "import numpy as np, sys; np.savez(sys.argv[1], x=np.linspace(-4, 4, 45, dtype=np.float32).reshape(5, 9))" %t/in.npz
// RUN: tc-interpret %s --inputs %t/in.npz --outputs %t/want.npz
// RUN: tc-compile %s -o %t/out.bin --cpu x86-64-v3
// RUN: tc-run %t/out.bin --inputs %t/in.npz --expect %t/want.npz --max-rel 2e-6
!t = tensor<5x9xf32>
func.func @main(%x: !t {tc.name = "x"}) -> (!t {tc.name = "s"}, !t {tc.name = "m"}) {
  %a = kernel.region(%i = %x : !t) -> (!t) {
    %0 = prim.add %i, %i : !t
    kernel.yield %0 : !t
  }
  %s, %m = kernel.region(%i = %x : !t, %j = %a : !t) -> (!t, !t) {
    %0 = prim.logistic %i : !t
    %1 = prim.min %i, %j : !t
    kernel.yield %0, %1 : !t, !t
  }
  return %s, %m : !t, !t
}
