// The host program prints as it parses.
// RUN: tc-opt %s > %t.once && tc-opt %t.once | diff %t.once -
// RUN: tc-opt %s --mlir-print-op-generic | tc-opt | diff %t.once -
// RUN: FileCheck %s < %t.once

// CHECK-LABEL: func @program
// CHECK-SAME: host.places = [#host.place<input[0], #{{.*}}>]
func.func @program(%x: tensor<?x4xf32, #prim.dims<affine_map<()[s0] -> (s0, 4)>>>) -> tensor<?x4xf32, #prim.dims<affine_map<()[s0] -> (s0, 4)>>>
    attributes {prim.symbols = [#prim.symbol<"n", 0, 64, 1>], host.places = [#host.place<input[0], affine_map<() -> (0)>>]} {
  // CHECK: host.constant dense<{{.*}}> : tensor<2x4xf32> map #{{.*}} : tensor<1x4x2xf32>
  %w = host.constant dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]> : tensor<2x4xf32> map affine_map<(p, k, c) -> (c, p * 4 + k)> : tensor<1x4x2xf32>
  // CHECK: host.constant dense<{{.*}}> : tensor<4xf32> : tensor<4xf32>
  %b = host.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32> : tensor<4xf32>
  // CHECK: host.constant dense<{{.*}}> : tensor<4xf32> map #{{.*}} tf32 : tensor<4xf32>
  %t = host.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32> map affine_map<(i) -> (3 - i)> tf32 : tensor<4xf32>
  // CHECK: host.launch @k0(%{{.*}}, %{{.*}}, %{{.*}}) symbols [0] tasks #{{.*}} grain #{{.*}} scratch #{{.*}} in_place [0, 0] {cost = #tc.cost<flops = ()[s0] -> (s0 * 8), bytes = 64>
  %0 = host.launch @k0(%x, %w, %b) symbols [0] tasks affine_map<()[s0] -> (s0)> grain affine_map<() -> (4)> scratch affine_map<() -> (64)> in_place [0, 0] {
    cost = #tc.cost<flops = ()[s0] -> (s0 * 8), bytes = 64>, host.places = [#host.place<arena[0], affine_map<()[s0] -> (s0 * 64)>>]
  } : (tensor<?x4xf32, #prim.dims<affine_map<()[s0] -> (s0, 4)>>>, tensor<1x4x2xf32>, tensor<4xf32>) -> tensor<?x4xf32, #prim.dims<affine_map<()[s0] -> (s0, 4)>>>
  // CHECK: host.launch @k0() symbols [0] tasks #{{.*}} grain #{{.*}} steps #{{.*}} scratch
  host.launch @k0() symbols [0] tasks affine_map<() -> (8)> grain affine_map<() -> (2)> steps affine_map<()[s0] -> (s0 + 1)> scratch affine_map<() -> (64)> : () -> ()
  // CHECK: host.copy %{{.*}} {host.places = [#host.place<output[0], #{{.*}}>]}
  %1 = host.copy %0 {host.places = [#host.place<output[0], affine_map<() -> (0)>>]} : tensor<?x4xf32, #prim.dims<affine_map<()[s0] -> (s0, 4)>>>
  return %1 : tensor<?x4xf32, #prim.dims<affine_map<()[s0] -> (s0, 4)>>>
}

// CHECK: host.variant @x86_64_v3 machines [#machine.cpu<name = "x86-64-v3", cpu = "x86-64-v3">] {
host.variant @x86_64_v3 machines [#machine.cpu<name = "x86-64-v3", cpu = "x86-64-v3">] {
  // CHECK: llvm.func @k0()
  llvm.func @k0() {
    llvm.return
  }
}
// CHECK: host.variant @cuda machines [#machine.gpu<name = "sm_80">, #machine.gpu<name = "sm_90a">] {
host.variant @cuda machines [#machine.gpu<name = "sm_80">, #machine.gpu<name = "sm_90a">] {
  llvm.func @k0()
}

// CHECK: host.binary @x86_64_v4 machines [#machine.cpu<name = "x86-64-v4", cpu = "x86-64-v4", features = "+avx512f">] requires 3 object dense<{{.*}}> : tensor<2xi8>
host.binary @x86_64_v4 machines [#machine.cpu<name = "x86-64-v4", cpu = "x86-64-v4", features = "+avx512f">] requires 3 object dense<[127, 69]> : tensor<2xi8>
