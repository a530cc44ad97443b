// Proves: --static-input computes what depends on weights alone in a function of its own, which runs before the first run and after a
// change; --verify, --cache-dir and tc-refit know of it; names that no input has, and GPUs, are refused.
// RUN: rm -rf %t && mkdir %t && cd %t
// RUN: tc-compile %s -o each.bin -q && tc-compile %s -o m.bin --static-input 'w*' --verify 2>&1 | FileCheck %s --check-prefix=VERIFIED
// VERIFIED: verified
// RUN: tc-inspect m.bin | FileCheck %s --check-prefix=INSPECT
// INSPECT: function main: 1 launch{{$}}
// INSPECT: static inputs alone was not computed; run the function "main.prepare" before
// INSPECT: function main.prepare: 2 launches
// INSPECT: main.static0 {{ *}}f32 (
// INSPECT: --static-input w*
// RUN: not tc-run m.bin --random-inputs 2>&1 | FileCheck %s --check-prefix=EARLY
// EARLY: m.bin: error: what depends on static inputs alone was not computed; run the function "main.prepare" before
// RUN: %python -c "import numpy as np; r = np.random.default_rng(0); w = r.standard_normal((2, 128, 64, 1, 1)).astype(np.float32); x = r.standard_normal((1, 16, 16, 64)).astype(np.float32); [np.savez(f'{n}{i}.npz', w1=w[i], **({'x': x} if n == 'all' else {})) for i in range(2) for n in ('all', 'w')]"
// RUN: tc-run each.bin --inputs all0.npz --outputs y0.npz && tc-run each.bin --inputs all1.npz --outputs y1.npz
// RUN: tc-run m.bin --function main.prepare --inputs w0.npz --state-out s0.npz
// RUN: tc-run m.bin --inputs all0.npz --state-in s0.npz --expect y0.npz
// Until it runs again, other weights are not seen.
// RUN: tc-run m.bin --inputs all1.npz --state-in s0.npz --expect y0.npz
// RUN: tc-run m.bin --function main.prepare --inputs w1.npz --state-in s0.npz --state-out s1.npz
// RUN: tc-run m.bin --inputs all1.npz --state-in s1.npz --expect y1.npz

// RUN: tc-compile %s -o c1.bin --cache-dir cache -q && tc-compile %s -o c2.bin --cache-dir cache --static-input 'w*' -q && cmp c1.bin each.bin && cmp c2.bin m.bin
// RUN: tc-refit m.bin %s -o again.bin -q && cmp m.bin again.bin
// RUN: not tc-compile %s -o no.bin --static-input w 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: --static-input w names no input of the model{{.*}}; tc-inspect MODEL shows their names, and * is any text
// RUN: tc-compile %s -o host.mlir --compile-to=host -q && not tc-compile host.mlir -o no.bin --static-input 'w*' 2>&1 | FileCheck %s --check-prefix=LATE
// LATE: the module stands at the end of phase host; --static-input needs a model or a module of phase kernel or before

func.func @main(%x: tensor<1x16x16x64xf32> {tc.name = "x"}, %w: tensor<128x64x1x1xf32> {tc.name = "w1"}) -> (tensor<1x16x16x128xf32> {tc.name = "y"})
    attributes {prim.symbols = []} {
  %t = prim.transpose %w [2, 3, 1, 0] : tensor<128x64x1x1xf32> -> tensor<1x1x64x128xf32>
  %y = prim.conv %x, %t strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x16x16x64xf32>, tensor<1x1x64x128xf32>) -> tensor<1x16x16x128xf32>
  %r = prim.abs %y : tensor<1x16x16x128xf32>
  return %r : tensor<1x16x16x128xf32>
}
