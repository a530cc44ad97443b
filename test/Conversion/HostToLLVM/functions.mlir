// Proves: each function has a program of its own, behind one entry point; states are read and written where the context has them;
// launches on a device hold their block of parameters, cluster and graph.
// RUN: tc-opt %s -split-input-file --tc-plan-memory --tc-convert-host-to-llvm | FileCheck %s

#one = affine_map<() -> (1)>

prim.state @a : tensor<64xf32>
prim.state @b : tensor<64xf32>

// Made in place: no copy.
func.func @step(%x: tensor<64xf32>) attributes {prim.symbols = []} {
  %old = prim.read_state @b : tensor<64xf32>
  %new = host.launch @k(%old, %x) symbols [] tasks #one grain #one in_place [0, 0] : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  prim.write_state @b, %new : tensor<64xf32>
  return
}
func.func @move() -> tensor<64xf32> attributes {prim.symbols = []} {
  %b = prim.read_state @b : tensor<64xf32>
  prim.write_state @a, %b : tensor<64xf32>
  prim.write_state @b, %b : tensor<64xf32>
  return %b : tensor<64xf32>
}
host.variant @v machines [#machine.cpu<name = "x86-64-v3", cpu = "x86-64-v3">] {
  llvm.func @k(%args: !llvm.ptr, %begin: i64, %end: i64, %worker: i64) {
    llvm.return
  }
}
// CHECK: llvm.mlir.global internal constant @tc_routines() {{.*}} : !llvm.array<2 x struct<(ptr, ptr)>>
// CHECK: llvm.mlir.addressof @tc_infer :
// CHECK: llvm.mlir.addressof @tc_run :
// CHECK: llvm.mlir.addressof @tc_infer.move
// CHECK: llvm.mlir.addressof @tc_run.move
// CHECK: llvm.mlir.global internal constant @tc_program() {{.*}} : !llvm.struct<(i32, i32, i32, i32, ptr)>
// CHECK-DAG: llvm.mlir.constant(2 : i32)
// CHECK-LABEL: llvm.func hidden @tc_run(
// CHECK: %[[SP:.*]] = llvm.getelementptr %{{.*}}[88] : (!llvm.ptr) -> !llvm.ptr, i8
// CHECK: %[[S:.*]] = llvm.load %[[SP]]
// CHECK: llvm.getelementptr %[[S]][8]
// CHECK-NOT: llvm.intr.memcpy
// CHECK-LABEL: llvm.func hidden @tc_infer.move
// CHECK-LABEL: llvm.func hidden @tc_run.move
// The result, and @a; @b keeps its value.
// CHECK-COUNT-2: llvm.intr.memcpy
// CHECK-NOT: llvm.intr.memcpy
// CHECK: llvm.return

// -----

#one = affine_map<() -> (1)>
#grid = affine_map<() -> (8, 1, 1)>

func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> attributes {prim.symbols = []} {
  %a = host.launch @k(%x) symbols [] tasks #one grain #one {device = {grid = #grid, block = array<i64: 128, 1, 1>, cluster = array<i64: 2, 1, 1>, smem = 1024 : i64}} : (tensor<64xf32>) -> tensor<64xf32>
  %b = host.launch @k(%a) symbols [] tasks #one grain #one {device = {grid = #grid, block = array<i64: 128, 1, 1>}} : (tensor<64xf32>) -> tensor<64xf32>
  return %b : tensor<64xf32>
}
host.variant @cuda machines [#machine.gpu<name = "sm_90a">] {
  llvm.func @k(%args: !llvm.ptr) {
    llvm.return
  }
}
// CHECK-LABEL: llvm.func hidden @tc_run(
// The block of parameters; then both records have their graph, 1, at 52, and the first its cluster of 2 at 32.
// CHECK-DAG: llvm.alloca %{{.*}} x i64 {alignment = 128 : i64}
// CHECK-DAG: %[[SMEM:.*]] = llvm.mlir.constant(1024 : i32)
// CHECK-DAG: llvm.getelementptr %[[R:.*]][32] : (!llvm.ptr) -> !llvm.ptr, i8
// CHECK-DAG: llvm.getelementptr %{{.*}}[52] : (!llvm.ptr) -> !llvm.ptr, i8
// CHECK: llvm.call %{{.*}}(%{{.*}}, %{{.*}}) : !llvm.ptr, (!llvm.ptr, !llvm.ptr) -> i32
// CHECK: llvm.call %{{.*}}(%{{.*}}, %{{.*}}) : !llvm.ptr, (!llvm.ptr, !llvm.ptr) -> i32
