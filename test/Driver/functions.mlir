// Proves: an artifact holds several functions and states; states outlive the runs of a context, are seen by all its functions,
// and begin anew, with a file's values, or where a file says; a constant of two functions stands once.
// RUN: rm -rf %t && mkdir %t && cd %t
// RUN: tc-compile %s -o m.bin --verify -v 2>&1 | FileCheck %s --check-prefix=COMPILE
// RUN: tc-inspect m.bin | FileCheck %s --check-prefix=INSPECT
// RUN: tc-inspect m.bin --json | %python -c "import json, sys; d = json.load(sys.stdin); assert [f['name'] for f in d['functions']] == ['accumulate', 'look'] and [s['name'] for s in d['states']] == ['runs', 'sum'], d; weights = [s['size'] for s in d['sections'] if s['kind'] == 'weights']; assert weights == [4 * 80 + 4 * 80], weights"

// A run after the other in one context: the counter counts, the sum adds up. The first function is the default.
// RUN: %python -c "import numpy as np; np.savez('x.npz', x=np.full(80, 2, np.float32)); np.savez('scale.npz', scale=np.full(3, 10, np.float32))"
// RUN: tc-run m.bin --inputs x.npz | FileCheck %s --check-prefix=ONCE
// RUN: tc-run m.bin --inputs x.npz --runs 3 --state-out after.npz --outputs y.npz
// RUN: %python -c "import numpy as np; s = np.load('after.npz'); w = np.arange(80) % 7 - 3; assert s['runs'] == 3 and (s['sum'] == 1 + 6 * w).all() and (np.load('y.npz')['total'] == s['sum']).all(), dict(s)"
// The other function, by its name, with the states that were kept.
// RUN: tc-run m.bin --function look --inputs scale.npz --state-in after.npz --outputs z.npz
// RUN: %python -c "import numpy as np; z = np.load('z.npz'); w = np.arange(80) % 7 - 3; assert z['runs'] == 3 and z['product'].shape == (3,) and np.allclose(z['product'], 10 * ((1 + 6 * w) * w).sum()), dict(z)"
// RUN: tc-run m.bin --function look --random-inputs --dim n=4 | FileCheck %s --check-prefix=LOOK
// RUN: not tc-run m.bin --function none --random-inputs 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not tc-run m.bin --inputs x.npz --state-in scale.npz 2>&1 | FileCheck %s --check-prefix=STATE
// RUN: not tc-run m.bin --inputs x.npz --runs 0 2>&1 | FileCheck %s --check-prefix=RUNS

// The same in C.
// RUN: tc-sample-states m.bin | FileCheck %s --check-prefix=SAMPLE

// COMPILE: verified
// COMPILE: arena {{.*}} (accumulate)
// COMPILE: arena {{.*}} (look)
// INSPECT: artifact of format 1, ABI 2
// INSPECT-NEXT: function accumulate: {{[0-9]+}} launches
// INSPECT-NEXT: inputs
// INSPECT-NEXT: x {{ *}}f32 (80)
// INSPECT: total {{ *}}f32 (80)
// INSPECT: function look: {{[0-9]+}} launches
// INSPECT: scale {{ *}}f32 (n)
// INSPECT: runs {{ *}}i64 ()
// INSPECT: n {{ *}}1 to 64
// INSPECT: states
// INSPECT-NEXT: runs {{ *}}i64 (){{$}}
// INSPECT-NEXT: sum {{ *}}f32 (80), begins with a value
// ONCE: total: f32 (80) = -5, -3, -1, 1, 3, 5, 7, -5, ...
// ONCE: count: i64 () = 1
// LOOK: runs: i64 () = 0
// NONE: m.bin: error: the model has no function "none"; its first function is "accumulate"
// STATE: m.bin: error: the model has no state "scale"; it has 2 states
// RUNS: tc-run: error: --runs takes a number from 1 on
// SAMPLE: function 0: accumulate
// SAMPLE-NEXT: function 1: look
// SAMPLE-NEXT: state 0: runs, 8 bytes
// SAMPLE-NEXT: state 1: sum, 320 bytes
// SAMPLE-NEXT: runs after 3 runs: 3
// SAMPLE-NEXT: runs after a reset: 0

prim.state @runs : tensor<i64>
prim.state @sum : tensor<80xf32> = dense<1.0> : tensor<80xf32>

func.func @accumulate(%x: tensor<80xf32> {tc.name = "x"}) -> (tensor<80xf32> {tc.name = "total"}, tensor<i64> {tc.name = "count"})
    attributes {prim.symbols = []} {
  %w = prim.constant dense<[-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, -3.0, -2.0, -1.0]> : tensor<80xf32>
  %sum = prim.read_state @sum : tensor<80xf32>
  %product = prim.mul %x, %w : tensor<80xf32>
  %total = prim.add %sum, %product : tensor<80xf32>
  prim.write_state @sum, %total : tensor<80xf32>
  %runs = prim.read_state @runs : tensor<i64>
  %one = prim.constant dense<1> : tensor<i64>
  %count = prim.add %runs, %one : tensor<i64>
  prim.write_state @runs, %count : tensor<i64>
  return %total, %count : tensor<80xf32>, tensor<i64>
}

!n = tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>

func.func @look(%scale: !n {tc.name = "scale"}) -> (!n {tc.name = "product"}, tensor<i64> {tc.name = "runs"})
    attributes {prim.symbols = [#prim.symbol<"n", 1, 64, 1>]} {
  %w = prim.constant dense<[-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, -3.0, -2.0, -1.0]> : tensor<80xf32>
  %sum = prim.read_state @sum : tensor<80xf32>
  %weighted = prim.mul %sum, %w : tensor<80xf32>
  %dot = prim.reduce sum %weighted [0] : tensor<80xf32> -> tensor<f32>
  %all = prim.broadcast %dot [] : tensor<f32> -> !n
  %product = prim.mul %scale, %all : !n
  %runs = prim.read_state @runs : tensor<i64>
  return %product, %runs : !n, tensor<i64>
}
