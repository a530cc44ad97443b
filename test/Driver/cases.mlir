// A region with a schedule for at most four rows, one for the better kind of CPU, and one for all else: each run takes what fits.
// RUN: tc-opt %s --tc-lower-kernels=variants=x86-64-v3,x86-64-v4 --tc-plan-memory | FileCheck %s
// RUN: tc-compile %s -o %t.bin --cpu x86-64-v3,x86-64-v4
// RUN: sed -e 's/cases = [[].*[]], //' %s > %t.one.mlir
// RUN: tc-compile %t.one.mlir -o %t.one.bin --cpu x86-64-v3
// RUN: tc-run %t.one.bin --random-inputs --dim rows=4 --outputs %t.4.npz
// RUN: tc-run %t.one.bin --random-inputs --dim rows=5 --outputs %t.5.npz
// RUN: tc-run %t.bin --variant x86-64-v3 --random-inputs --dim rows=4 --expect %t.4.npz
// RUN: tc-run %t.bin --variant x86-64-v3 --random-inputs --dim rows=5 --expect %t.5.npz
// RUN: tc-run %t.bin --variant x86-64-v3 --random-inputs --dim rows=4 --profile | FileCheck %s --check-prefix=FEW
// RUN: tc-run %t.bin --variant x86-64-v3 --random-inputs --dim rows=0
// RUN: tc-run %t.bin --variant x86-64-v3 --random-inputs --dim rows=5 --profile | FileCheck %s --check-prefix=MANY

// What each region yields lives in the caller's buffer; the sums of the first in the arena.
// CHECK-DAG: #[[SET:.*]] = affine_set<()[s0] : (-s0 + 4 >= 0)>
// CHECK: host.choose [#host.guard<sizes = #[[SET]]>, #host.guard<machine = #machine.cpu<name = "x86-64-v4"
// CHECK: host.launch @k0_reduce_sub_rows({{.*}}host.places = [#host.place<arena[0]
// CHECK: host.launch @k0_reduce_sub({{.*}}host.places = [#host.place<output[0]
// CHECK: host.launch @k1_reduce_sub({{.*}}host.places = [#host.place<output[0]
// CHECK: host.launch @k2_reduce_sub({{.*}}host.places = [#host.place<output[0]

// FEW-NOT: {{k[12]_}}
// FEW: k0_reduce_sub
// FEW-NOT: {{k[12]_}}
// MANY-NOT: {{k[01]_}}
// MANY: k2_reduce_sub
// MANY-NOT: {{k[01]_}}

!x = tensor<?x64xf32, #prim.dims<affine_map<()[s0] -> (s0, 64)>>>
!s = tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>
#few = affine_set<()[s0] : (4 - s0 >= 0)>
#wide = #machine.cpu<name = "x86-64-v4", cpu = "x86-64-v4">
func.func @main(%x: !x) -> !x attributes {prim.symbols = [#prim.symbol<"rows", 0, 1024, 1>]} {
  %r = kernel.region(%a = %x : !x) -> (!x) attributes {cases = [#kernel.case<sizes = #few, schedule = #kernel.cpu.loops<lanes = true, reduceLaunch = true>>, #kernel.case<machine = #wide, schedule = #kernel.cpu.loops<lanes = true, grain = 2>>], schedule = #kernel.cpu.loops<lanes = true, grain = 3>} {
    %m = prim.reduce sum %a [1] : !x -> !s
    %b = prim.broadcast %m [0] : !s -> !x
    %d = prim.sub %a, %b : !x
    kernel.yield %d : !x
  }
  return %r : !x
}
