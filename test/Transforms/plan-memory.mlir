// Proves: values of the host program get places with reuse, in place, through views, in the caller's buffers, and by symbolic size.
// RUN: tc-opt %s --tc-plan-memory | FileCheck %s

// CHECK-DAG: #[[M0:map[0-9]*]] = affine_map<() -> (8192)>{{$}}
// CHECK-DAG: #[[M1:map[0-9]*]] = affine_map<() -> (0)>{{$}}
// CHECK-DAG: #[[M2:map[0-9]*]] = affine_map<() -> (4096)>{{$}}
// CHECK-DAG: #[[M3:map[0-9]*]] = affine_map<() -> (512)>{{$}}
// CHECK-DAG: #[[M4:map[0-9]*]] = affine_map<() -> (256)>{{$}}
// CHECK-DAG: #[[S5:map[0-9]*]] = affine_map<()[s0, s1] -> ((s0 * s1) * 6144)>{{$}}
// CHECK-DAG: #[[S6:map[0-9]*]] = affine_map<()[s0, s1] -> (s1 * 64, 4096)>{{$}}
// CHECK-DAG: #[[S7:map[0-9]*]] = affine_map<()[s0, s1] -> ((s0 * s1) * 4096)>{{$}}

#one = affine_map<() -> (1)>

// A chain: two buffers in turn, the last value straight into the output.
// CHECK-LABEL: func.func @chain
// CHECK-SAME: host.arena = #[[M0]]
// CHECK-SAME: host.live = 8192
func.func @chain(%x: tensor<1024xf32>) -> tensor<1024xf32> attributes {prim.symbols = []} {
  // CHECK: host.launch @a{{.*}}host.places = [#host.place<arena[0], #[[M1]]>]
  %a = host.launch @a(%x) symbols [] tasks #one grain #one : (tensor<1024xf32>) -> tensor<1024xf32>
  // CHECK: host.launch @b{{.*}}host.places = [#host.place<arena[0], #[[M2]]>]
  %b = host.launch @b(%a) symbols [] tasks #one grain #one : (tensor<1024xf32>) -> tensor<1024xf32>
  // CHECK: host.launch @c{{.*}}host.places = [#host.place<arena[0], #[[M1]]>]
  %c = host.launch @c(%b) symbols [] tasks #one grain #one : (tensor<1024xf32>) -> tensor<1024xf32>
  // CHECK: host.launch @d{{.*}}host.places = [#host.place<output[0], #[[M1]]>]
  %d = host.launch @d(%c) symbols [] tasks #one grain #one : (tensor<1024xf32>) -> tensor<1024xf32>
  return %d : tensor<1024xf32>
}

// A chain in place stays in one buffer; an input of the function is never written.
// CHECK-LABEL: func.func @in_place
// CHECK-SAME: host.arena = #[[M1]]
func.func @in_place(%x: tensor<1024xf32>) -> tensor<1024xf32> attributes {prim.symbols = []} {
  // CHECK: host.launch @a{{.*}}host.places = [#host.place<output[0]
  %a = host.launch @a(%x) symbols [] tasks #one grain #one in_place [0, 0] : (tensor<1024xf32>) -> tensor<1024xf32>
  // CHECK: host.launch @b{{.*}}host.places = [#host.place<output[0]
  %b = host.launch @b(%a) symbols [] tasks #one grain #one in_place [0, 0] : (tensor<1024xf32>) -> tensor<1024xf32>
  return %b : tensor<1024xf32>
}

// A diamond: %a is live until both readers are done, so the first reader may not write in place, the second may.
// CHECK-LABEL: func.func @diamond
// CHECK-SAME: host.arena = #[[M3]]
func.func @diamond(%x: tensor<64xf32>) -> tensor<64xf32> attributes {prim.symbols = []} {
  // CHECK: host.launch @a{{.*}}host.places = [#host.place<arena[0], #[[M1]]>]
  %a = host.launch @a(%x) symbols [] tasks #one grain #one : (tensor<64xf32>) -> tensor<64xf32>
  // CHECK: host.launch @b{{.*}}host.places = [#host.place<arena[0], #[[M4]]>]
  %b = host.launch @b(%a) symbols [] tasks #one grain #one in_place [0, 0] : (tensor<64xf32>) -> tensor<64xf32>
  // CHECK: host.launch @c{{.*}}host.places = [#host.place<arena[0], #[[M1]]>]
  %c = host.launch @c(%a) symbols [] tasks #one grain #one in_place [0, 0] : (tensor<64xf32>) -> tensor<64xf32>
  %d = host.launch @d(%b, %c) symbols [] tasks #one grain #one : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %d : tensor<64xf32>
}

// The same operand twice, one of them not in place: no sharing.
// CHECK-LABEL: func.func @twice
// CHECK-SAME: host.arena = #[[M4]]
func.func @twice(%x: tensor<64xf32>) -> tensor<64xf32> attributes {prim.symbols = []} {
  // CHECK: host.launch @a{{.*}}#host.place<arena[0]
  %a = host.launch @a(%x) symbols [] tasks #one grain #one : (tensor<64xf32>) -> tensor<64xf32>
  %b = host.launch @b(%a, %a) symbols [] tasks #one grain #one in_place [0, 0] : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %b : tensor<64xf32>
}

// Two inputs that end here: the output takes the memory of one of them, and they stay apart.
// CHECK-LABEL: func.func @two_inputs
// CHECK-SAME: host.arena = #[[M3]]
func.func @two_inputs(%x: tensor<64xf32>) -> tensor<64xf32> attributes {prim.symbols = []} {
  // CHECK: host.launch @a{{.*}}#host.place<arena[0], #[[M1]]>
  %a = host.launch @a(%x) symbols [] tasks #one grain #one : (tensor<64xf32>) -> tensor<64xf32>
  // CHECK: host.launch @b{{.*}}#host.place<arena[0], #[[M4]]>
  %b = host.launch @b(%x) symbols [] tasks #one grain #one : (tensor<64xf32>) -> tensor<64xf32>
  %c = host.launch @c(%a, %b) symbols [] tasks #one grain #one in_place [0, 0, 1, 0] : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %d = host.launch @d(%c) symbols [] tasks #one grain #one : (tensor<64xf32>) -> tensor<64xf32>
  return %d : tensor<64xf32>
}

// Views: reading the view keeps the memory; a view is returned without a copy.
// CHECK-LABEL: func.func @views
// CHECK-SAME: host.arena = #[[M3]]
func.func @views(%x: tensor<64xf32>) -> tensor<64xf32> attributes {prim.symbols = []} {
  // CHECK: host.launch @a{{.*}}#host.place<arena[0], #[[M1]]>
  %a = host.launch @a(%x) symbols [] tasks #one grain #one : (tensor<64xf32>) -> tensor<64xf32>
  // CHECK: prim.reshape{{.*}}#host.place<arena[0], #[[M1]]>
  %v = prim.reshape %a : tensor<64xf32> -> tensor<8x8xf32>
  // CHECK: host.launch @b{{.*}}#host.place<arena[0], #[[M4]]>
  %b = host.launch @b(%a) symbols [] tasks #one grain #one : (tensor<64xf32>) -> tensor<64xf32>
  // CHECK: host.launch @c{{.*}}#host.place<output[0]
  %c = host.launch @c(%v, %b) symbols [] tasks #one grain #one : (tensor<8x8xf32>, tensor<64xf32>) -> tensor<8x8xf32>
  %w = prim.reshape %c : tensor<8x8xf32> -> tensor<64xf32>
  // CHECK-NOT: host.copy
  return %w : tensor<64xf32>
}

// Outputs that are an input, a constant, or repeated are copied; equal constants are stored once.
// CHECK-LABEL: func.func @outputs
// CHECK-SAME: host.weights = 64
func.func @outputs(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) attributes {prim.symbols = []} {
  // CHECK: host.constant{{.*}}#host.place<weights[0], #[[M1]]>
  %c = host.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32> : tensor<4xf32>
  // CHECK: host.constant{{.*}}#host.place<weights[0], #[[M1]]>
  %e = host.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32> : tensor<4xf32>
  %a = host.launch @a(%x, %e) symbols [] tasks #one grain #one : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK: host.copy %arg0 {host.places = [#host.place<output[0]
  // CHECK: host.copy %{{.*}} {host.places = [#host.place<output[1]
  // CHECK: host.copy %{{.*}} {host.places = [#host.place<output[3]
  return %x, %c, %a, %a : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// Symbolic sizes: multiples of batch * sequence share slots; scratch is the greatest of its expressions.
// CHECK-LABEL: func.func @symbolic
// CHECK-SAME: host.arena = #[[S5]]
// CHECK-SAME: host.scratch = #[[S6]]
!t = tensor<?x?x512xf32, #prim.dims<affine_map<()[s0, s1] -> (s0, s1, 512)>>>
!u = tensor<?x?x1024xf32, #prim.dims<affine_map<()[s0, s1] -> (s0, s1, 1024)>>>
func.func @symbolic(%x: !t) -> !t attributes {prim.symbols = [#prim.symbol<"b", 1, 64, 1>, #prim.symbol<"s", 1, 512, 1>]} {
  // CHECK: host.launch @a{{.*}}#host.place<arena[0], #[[S7]]>
  %a = host.launch @a(%x) symbols [0, 1] tasks affine_map<()[s0, s1] -> (s0 * s1)> grain #one scratch affine_map<()[s0, s1] -> (s1 * 64)> : (!t) -> !t
  // CHECK: host.launch @b{{.*}}#host.place<arena[0], #[[M1]]>
  %b = host.launch @b(%a) symbols [0, 1] tasks affine_map<()[s0, s1] -> (s0 * s1)> grain #one scratch affine_map<() -> (4096)> : (!t) -> !u
  // CHECK: host.launch @c{{.*}}#host.place<arena[0], #[[S7]]>
  %c = host.launch @c(%b) symbols [0, 1] tasks affine_map<()[s0, s1] -> (s0 * s1)> grain #one : (!u) -> !t
  // CHECK: host.launch @d{{.*}}#host.place<arena[0], #[[M1]]>
  %d = host.launch @d(%c) symbols [0, 1] tasks affine_map<()[s0, s1] -> (s0 * s1)> grain #one : (!t) -> !t
  %e = host.launch @e(%d) symbols [0, 1] tasks affine_map<()[s0, s1] -> (s0 * s1)> grain #one : (!t) -> !t
  return %e : !t
}

// Control flow: a value from outside stays for the whole loop; carried values live where the results do; a swap is copied.
// CHECK-LABEL: func.func @loop
func.func @loop(%x: tensor<64xf32>, %n: tensor<i64>, %go: tensor<i1>) -> (tensor<64xf32>, tensor<64xf32>) attributes {prim.symbols = []} {
  // CHECK: host.launch @a{{.*}}#host.place<arena[0], #[[M1]]>
  %a = host.launch @a(%x) symbols [] tasks #one grain #one : (tensor<64xf32>) -> tensor<64xf32>
  %p, %q = prim.while %n, %go carry %x, %x : (tensor<i64>, tensor<i1>, tensor<64xf32>, tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  ^bb0(%i: tensor<i64>, %u: tensor<64xf32>, %v: tensor<64xf32>):
    // CHECK: host.launch @b{{.*}}#host.place<arena[0], #[[M4]]>
    %b = host.launch @b(%u, %a) symbols [] tasks #one grain #one : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    // CHECK: host.copy
    // CHECK: prim.yield
    prim.yield %go, %v, %b : tensor<i1>, tensor<64xf32>, tensor<64xf32>
  }
  // CHECK: host.places = [#host.place<output[0], {{.*}}, #host.place<output[1]
  return %p, %q : tensor<64xf32>, tensor<64xf32>
}

// What a launch makes in place of a carried value is where the next iteration reads it, through views, too; not if something reads the old
// value afterwards, or if it is carried on at another place.
// CHECK-LABEL: func.func @carried
func.func @carried(%x: tensor<64xf32>, %n: tensor<i64>, %go: tensor<i1>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) attributes {prim.symbols = []} {
  %p, %q, %r = prim.while %n, %go carry %x, %x, %x : (tensor<i64>, tensor<i1>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {
  ^bb0(%i: tensor<i64>, %u: tensor<64xf32>, %v: tensor<64xf32>, %w: tensor<64xf32>):
    %view = prim.reshape %u : tensor<64xf32> -> tensor<8x8xf32>
    // CHECK: host.launch @b{{.*}}#host.place<output[0]
    %b = host.launch @b(%view) symbols [] tasks #one grain #one in_place [0, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %back = prim.reshape %b : tensor<8x8xf32> -> tensor<64xf32>
    // CHECK: host.launch @c{{.*}}#host.place<arena[0]
    %c = host.launch @c(%v, %b) symbols [] tasks #one grain #one in_place [0, 0] : (tensor<64xf32>, tensor<8x8xf32>) -> tensor<64xf32>
    // CHECK: host.launch @d{{.*}}#host.place<arena[0]
    %d = host.launch @d(%w, %v) symbols [] tasks #one grain #one in_place [0, 0, 1, 0] : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    // CHECK: host.copy
    prim.yield %go, %back, %c, %v : tensor<i1>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
  }
  return %p, %q, %r : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
}

// A size that data says is checked after the value is computed: the value is not written to the caller's buffer, which may be smaller.
// CHECK-LABEL: func.func @checked_after
!n = tensor<?xf32, #prim.dims<affine_map<()[s0, s1] -> (s0)>>>
func.func @checked_after(%x: tensor<4xf32>) -> tensor<3xf32> attributes {prim.symbols = [#prim.symbol<"n", 0, 10, 1>, #prim.symbol<"guard", 3, 3, 1>]} {
  %count = host.launch @count(%x) symbols [] tasks #one grain #one : (tensor<4xf32>) -> tensor<i64>
  prim.bind_symbol %count to 0 : tensor<i64>
  // CHECK: host.launch @a
  // CHECK-NOT: output[0]
  %a = host.launch @a(%x) symbols [0] tasks #one grain #one : (tensor<4xf32>) -> !n
  // CHECK: prim.bind_symbol
  prim.bind_symbol %count to 1 {message = "dim 0 is not 3"} : tensor<i64>
  %r = prim.reshape %a : !n -> tensor<3xf32>
  // CHECK: host.copy %{{.*}}output[0]
  return %r : tensor<3xf32>
}

// A result whose sizes are known after the value that it is a view of: a buffer of its own, copied at the end. Also without
// elements the caller is told sizes that depend on data.
// CHECK-LABEL: func.func @sized_later
func.func @sized_later(%x: tensor<i64>) -> (tensor<?x2xf32, #prim.dims<affine_map<()[s0, s1] -> (s1, 2)>>>, tensor<?x0xf32, #prim.dims<affine_map<()[s0] -> (s0, 0)>>>)
    attributes {prim.symbols = [#prim.symbol<"n", 0, 100, 1>, #prim.symbol<"m", 0, 100, 1>]} {
  prim.bind_symbol %x to 0 : tensor<i64>
  // CHECK: host.launch @a{{.*}}host.places = [#host.place<heap[0]
  %a = host.launch @a() symbols [0] tasks #one grain #one : () -> tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>
  // CHECK: host.launch @b{{.*}}host.places = [#host.place<late_output[1]
  %b = host.launch @b() symbols [0] tasks #one grain #one : () -> tensor<?x0xf32, #prim.dims<affine_map<()[s0] -> (s0, 0)>>>
  prim.bind_symbol %x to 1 : tensor<i64>
  %c = prim.reshape %a : tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>> -> tensor<?x2xf32, #prim.dims<affine_map<()[s0, s1] -> (s1, 2)>>>
  // CHECK: host.copy {{.*}}#host.place<late_output[0]
  return %c, %b : tensor<?x2xf32, #prim.dims<affine_map<()[s0, s1] -> (s1, 2)>>>, tensor<?x0xf32, #prim.dims<affine_map<()[s0] -> (s0, 0)>>>
}
