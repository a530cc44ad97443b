// The work of kernels whose sizes are not known is an expression in explain and tc-inspect, and a number in a profile:
// of sizes that inputs bind, and of sizes that data decide.
// RUN: tc-compile %s -o %t.bin --explain | FileCheck %s --check-prefix=EXPLAIN
// RUN: tc-inspect %t.bin | FileCheck %s --check-prefix=INSPECT
// RUN: tc-run %t.bin --random-inputs --dim "batch size=3" --profile --benchmark=0.01 | FileCheck %s --check-prefix=PROFILE
// EXPLAIN: dot_general; batch size * 2097152 flops; batch size * 8192 + 4194304 bytes
// EXPLAIN: exp; found flops; found * 4 + 4 bytes
// INSPECT: batch size * 2097152 flops batch size * 8192 + 4194304 bytes  product
// INSPECT: {{^ .*}} found flops found * 4 + 4 bytes  spread
// Neither rate is without a number for these two.
// PROFILE: GFLOP/s       GB/s  kernel
// PROFILE-DAG: {{[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +[^ ]+ +}}product
// PROFILE-DAG: {{[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +[^ ]+ +}}spread
!x = tensor<?x1024xf32, #prim.dims<affine_map<()[s0, s1] -> (s0, 1024)>>>
!f = tensor<?xf32, #prim.dims<affine_map<()[s0, s1] -> (s1)>>>
func.func @main(%x: !x, %w: tensor<1024x1024xf32>, %n: tensor<i64> {tc.range = array<i64: 700, 701>}, %v: tensor<f32>) -> (!x, !f)
    attributes {prim.symbols = [#prim.symbol<"batch size", 0, 1000, 1>, #prim.symbol<"found", 0, 1000, 1>]} {
  %0 = prim.dot_general %x, %w batch [] x [] contract [1] x [0] : (!x, tensor<1024x1024xf32>) -> !x loc("product")
  prim.bind_symbol %n to 1 : tensor<i64>
  %1 = prim.broadcast %v [] : tensor<f32> -> !f
  %2 = prim.exp %1 : !f loc("spread")
  return %0, %2 : !x, !f
}
