// Proves: independent launches of few tasks stand side by side with one group, behind what they need; others stay.
// RUN: tc-opt %s --tc-group-launches | FileCheck %s
// RUN: tc-opt %s --tc-group-launches --tc-plan-memory | FileCheck %s --check-prefix=PLAN

// PLAN-DAG: #[[A:map[0-9]*]] = affine_map<() -> (0)>{{$}}
// PLAN-DAG: #[[B:map[0-9]*]] = affine_map<()[s0] -> (s0 * 64)>{{$}}
// PLAN-DAG: #[[BOTH:map[0-9]*]] = affine_map<() -> (1152)>{{$}}
// PLAN-DAG: #[[C:map[0-9]*]] = affine_map<()[s0] -> (s0 * 128)>{{$}}

#one = affine_map<() -> (1)>
#many = affine_map<() -> (64)>
#rows = affine_map<()[s0] -> (s0 ceildiv 8)>

// Each member has scratch of its own: the function needs the sum of them, not the largest.
// PLAN-LABEL: func.func @scratch
// PLAN-SAME: host.scratch = #[[BOTH]]
#small = affine_map<() -> (64)>
#large = affine_map<() -> (1088)>
func.func @scratch(%x: tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>) attributes {prim.symbols = []} {
  %f = host.launch @forward(%x) symbols [] tasks #one grain #one scratch #small {cost = #tc.cost<flops = 9000000, bytes = 1>} : (tensor<1024xf32>) -> tensor<1024xf32>
  %r = host.launch @backward(%x) symbols [] tasks #one grain #one scratch #large {cost = #tc.cost<flops = 9000000, bytes = 1>} : (tensor<1024xf32>) -> tensor<1024xf32>
  return %f, %r : tensor<1024xf32>, tensor<1024xf32>
}

// The two directions of a recurrent layer: the second one's product moves before both.
// CHECK-LABEL: func.func @directions
func.func @directions(%x: tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>) attributes {prim.symbols = []} {
  // CHECK: %[[A:.*]] = host.launch @product(%{{.*}}) symbols [] tasks
  // CHECK: %[[B:.*]] = host.launch @product(%{{.*}}) symbols [] tasks
  // CHECK-NEXT: host.launch @forward(%[[A]]) {{.*}}group = 0
  // CHECK-NEXT: host.launch @backward(%[[B]]) {{.*}}group = 0
  // PLAN-LABEL: func.func @directions
  // Neither result may take the memory of what the other direction reads.
  // PLAN: host.launch @forward{{.*}}host.places = [#host.place<output[0]
  // PLAN: host.launch @backward{{.*}}host.places = [#host.place<output[1]
  %a = host.launch @product(%x) symbols [] tasks #many grain #one {cost = #tc.cost<flops = 9000000, bytes = 1>} : (tensor<1024xf32>) -> tensor<1024xf32>
  %f = host.launch @forward(%a) symbols [] tasks #one grain #one {cost = #tc.cost<flops = 9000000, bytes = 1>} : (tensor<1024xf32>) -> tensor<1024xf32>
  %b = host.launch @product(%x) symbols [] tasks #many grain #one {cost = #tc.cost<flops = 9000000, bytes = 1>} : (tensor<1024xf32>) -> tensor<1024xf32>
  %r = host.launch @backward(%b) symbols [] tasks #one grain #one {cost = #tc.cost<flops = 9000000, bytes = 1>} : (tensor<1024xf32>) -> tensor<1024xf32>
  return %f, %r : tensor<1024xf32>, tensor<1024xf32>
}

// One that depends on the other, one that takes less time than a fork, and one of many tasks have no company.
// CHECK-LABEL: func.func @alone
// CHECK-NOT: group
func.func @alone(%x: tensor<1024xf32>) -> tensor<1024xf32> attributes {prim.symbols = []} {
  %a = host.launch @a(%x) symbols [] tasks #one grain #one {cost = #tc.cost<flops = 9000000, bytes = 1>} : (tensor<1024xf32>) -> tensor<1024xf32>
  %b = host.launch @b(%a) symbols [] tasks #one grain #one {cost = #tc.cost<flops = 9000000, bytes = 1>} : (tensor<1024xf32>) -> tensor<1024xf32>
  %c = host.launch @c(%x) symbols [] tasks #one grain #one {cost = #tc.cost<flops = 9000, bytes = 1>} : (tensor<1024xf32>) -> tensor<1024xf32>
  %d = host.launch @d(%x) symbols [] tasks #many grain #one {cost = #tc.cost<flops = 9000000, bytes = 1>} : (tensor<1024xf32>) -> tensor<1024xf32>
  %e = host.launch @e(%b, %c, %d) symbols [] tasks #many grain #one : (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
  return %e : tensor<1024xf32>
}

// A single task takes the other threads from less work on: nobody shares it.
// CHECK-LABEL: func.func @single_tasks
#two = affine_map<() -> (2)>
func.func @single_tasks(%x: tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) attributes {prim.symbols = []} {
  // CHECK: host.launch @forward{{.*}}group = 0
  // CHECK-NEXT: host.launch @backward{{.*}}group = 0
  // CHECK-NOT: group
  %f = host.launch @forward(%x) symbols [] tasks #one grain #one {cost = #tc.cost<flops = 3000000, bytes = 1>} : (tensor<1024xf32>) -> tensor<1024xf32>
  %r = host.launch @backward(%x) symbols [] tasks #one grain #one {cost = #tc.cost<flops = 3000000, bytes = 1>} : (tensor<1024xf32>) -> tensor<1024xf32>
  %a = host.launch @shared(%x) symbols [] tasks #two grain #one {cost = #tc.cost<flops = 3000000, bytes = 1>} : (tensor<1024xf32>) -> tensor<1024xf32>
  %b = host.launch @shared(%x) symbols [] tasks #two grain #one {cost = #tc.cost<flops = 3000000, bytes = 1>} : (tensor<1024xf32>) -> tensor<1024xf32>
  return %f, %r, %a, %b : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>
}

// Sizes of the run count as 16; a large copy is work too. Both read %a when they run, so neither may overwrite it.
// CHECK-LABEL: func.func @dynamic
// PLAN-LABEL: func.func @dynamic
!n = tensor<?x16xf32, #prim.dims<affine_map<()[s0] -> (s0, 16)>>>
func.func @dynamic(%x: !n) -> !n attributes {prim.symbols = [#prim.symbol<"n", 1, 4096, 1>]} {
  // PLAN: host.launch @a{{.*}}host.places = [#host.place<arena[0], #[[A]]>]
  %a = host.launch @a(%x) symbols [0] tasks #many grain #one : (!n) -> !n
  // CHECK: host.launch @b{{.*}}group = 0
  // PLAN: host.launch @b{{.*}}host.places = [#host.place<arena[0], #[[B]]>]
  %b = host.launch @b(%a) symbols [0] tasks #rows grain #one in_place [0, 0] {cost = #tc.cost<flops = ()[s0] -> (s0 * 1000000), bytes = 1>} : (!n) -> !n
  // CHECK-NEXT: host.launch @c{{.*}}group = 0
  // PLAN: host.launch @c{{.*}}host.places = [#host.place<arena[0], #[[C]]>]
  %c = host.launch @c(%a) symbols [0] tasks #rows grain #one in_place [0, 0] {cost = #tc.cost<flops = 0, bytes = 9000000>} : (!n) -> !n
  // PLAN: host.launch @d
  %d = host.launch @d(%b, %c) symbols [0] tasks #many grain #one : (!n, !n) -> !n
  return %d : !n
}

// Launches in steps join those of as many steps, whatever their ranges; nothing else joins them.
// CHECK-LABEL: func.func @in_steps
#steps = affine_map<()[s0] -> (s0 + 1)>
#other = affine_map<()[s0] -> (s0 * 2 + 1)>
func.func @in_steps(%x: !n) -> !n attributes {prim.symbols = [#prim.symbol<"n", 1, 4096, 1>]} {
  // CHECK-NEXT: host.launch @forward{{.*}} steps #[[STEPS:map[0-9]*]] {{.*}}group = 0
  // CHECK-NEXT: host.launch @backward{{.*}} steps #[[STEPS]] {{.*}}group = 0
  // CHECK-NEXT: host.launch @plain
  // CHECK-NOT: group
  // CHECK: host.launch @longer
  // CHECK-NOT: group
  // CHECK: return
  %f = host.launch @forward(%x) symbols [0] tasks #many grain affine_map<() -> (4)> steps #steps {cost = #tc.cost<flops = 9000000, bytes = 1>} : (!n) -> !n
  %p = host.launch @plain(%x) symbols [0] tasks #one grain #one {cost = #tc.cost<flops = 9000000, bytes = 1>} : (!n) -> !n
  %r = host.launch @backward(%x) symbols [0] tasks #many grain affine_map<() -> (4)> steps #steps {cost = #tc.cost<flops = 9000000, bytes = 1>} : (!n) -> !n
  %l = host.launch @longer(%x) symbols [0] tasks #one grain #one steps #other {cost = #tc.cost<flops = 9000000, bytes = 1>} : (!n) -> !n
  %e = host.launch @e(%f, %r, %p, %l) symbols [0] tasks #many grain #one : (!n, !n, !n, !n) -> !n
  return %e : !n
}
