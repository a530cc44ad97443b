// Cases of one region may not read a constant in two layouts: it would be stored twice.
// RUN: tc-opt %s --tc-lower-kernels=variants=x86-64-v3 -verify-diagnostics

#few = affine_set<()[s0] : (4 - s0 >= 0)>
!x = tensor<?x32xf32, #prim.dims<affine_map<()[s0] -> (s0, 32)>>>
func.func @main(%x: !x) -> !x attributes {prim.symbols = [#prim.symbol<"rows", 0, 1024, 1>]} {
  %w = prim.constant dense<0.5> : tensor<32x32xf32>
  // expected-error @+1 {{schedules of the cases read constant input 1 in different layouts: #kernel.cpu.contract<rhs = 1, tileM = 8, rows256 = 4, cols256 = 16, rows512 = 8, cols512 = 16> and #kernel.cpu.loops<lanes = true>}}
  %r = kernel.region(%a = %x : !x, %b = %w : tensor<32x32xf32>) -> (!x) attributes {cases = [#kernel.case<sizes = #few, schedule = #kernel.cpu.loops<lanes = true>>], schedule = #kernel.cpu.contract<rhs = 1, tileM = 8, rows256 = 4, cols256 = 16, rows512 = 8, cols512 = 16>} {
    %d = prim.dot_general %a, %b batch [] x [] contract [1] x [0] : (!x, tensor<32x32xf32>) -> !x
    kernel.yield %d : !x
  }
  return %r : !x
}
