// Proves: states are read where the context has them, made in place where that is safe and copied at the end where not; functions
// share equal constants.
// RUN: tc-opt %s --tc-plan-memory | FileCheck %s

// CHECK-DAG: #[[Z:map[0-9]*]] = affine_map<() -> (0)>{{$}}
// CHECK-DAG: #[[C256:map[0-9]*]] = affine_map<() -> (256)>{{$}}

#one = affine_map<() -> (1)>

prim.state @a : tensor<64xf32>
prim.state @b : tensor<64xf32>

// The launch that reads the old value last may write in its place: the next value is made in the state.
// CHECK-LABEL: func.func @in_place
// CHECK-SAME: host.arena = #[[Z]]
func.func @in_place(%x: tensor<64xf32>) attributes {prim.symbols = []} {
  // CHECK: prim.read_state @b {host.places = [#host.place<state[1], #[[Z]]>]}
  %old = prim.read_state @b : tensor<64xf32>
  // CHECK: host.launch @add{{.*}}host.places = [#host.place<state[1], #[[Z]]>]
  %new = host.launch @add(%old, %x) symbols [] tasks #one grain #one in_place [0, 0] : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  prim.write_state @b, %new : tensor<64xf32>
  return
}

// It may not: the value has memory of its own, and the write copies.
// CHECK-LABEL: func.func @not_in_place
// CHECK-SAME: host.arena = #[[C256]]
func.func @not_in_place(%x: tensor<64xf32>) attributes {prim.symbols = []} {
  %old = prim.read_state @b : tensor<64xf32>
  // CHECK: host.launch @add{{.*}}host.places = [#host.place<arena[0], #[[Z]]>]
  %new = host.launch @add(%old, %x) symbols [] tasks #one grain #one : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  prim.write_state @b, %new : tensor<64xf32>
  return
}

// A launch changes what it is tied to, which other values do not share while it lives.
// CHECK-LABEL: func.func @tied
// CHECK-SAME: host.arena = #[[C512:map[0-9]*]]
func.func @tied(%x: tensor<64xf32>) -> tensor<64xf32> attributes {prim.symbols = []} {
  // CHECK: host.launch @none{{.*}}host.places = [#host.place<arena[0], #[[P:map[0-9]*]]>]
  %none = host.launch @none(%x) symbols [] tasks #one grain #one : (tensor<64xf32>) -> tensor<64xf32>
  // CHECK: host.launch @other{{.*}}host.places = [#host.place<arena[0], #[[Q:map[0-9]*]]>]
  %other = host.launch @other(%x) symbols [] tasks #one grain #one : (tensor<64xf32>) -> tensor<64xf32>
  // CHECK: host.launch @mark{{.*}} tied [2, 0] {host.places = [#host.place<arena[0], #[[P]]>]}
  %mark = host.launch @mark(%x, %other, %none) symbols [] tasks #one grain #one tied [2, 0] : (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  // CHECK: host.launch @take{{.*}}host.places = [#host.place<output[0], #[[Z]]>]
  %r = host.launch @take(%x, %mark) symbols [] tasks #one grain #one : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %r : tensor<64xf32>
}

// The old value is read afterwards.
// CHECK-LABEL: func.func @read_later
func.func @read_later(%x: tensor<64xf32>) -> tensor<64xf32> attributes {prim.symbols = []} {
  %old = prim.read_state @b : tensor<64xf32>
  // CHECK: host.launch @add{{.*}}host.places = [#host.place<arena[0], #[[Z]]>]
  %new = host.launch @add(%old, %x) symbols [] tasks #one grain #one in_place [0, 0] : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  prim.write_state @b, %new : tensor<64xf32>
  // CHECK: host.launch @after{{.*}}host.places = [#host.place<output[0]
  %r = host.launch @after(%old) symbols [] tasks #one grain #one : (tensor<64xf32>) -> tensor<64xf32>
  // The write moved to the end.
  // CHECK-NEXT: prim.write_state @b
  // CHECK-NEXT: return
  return %r : tensor<64xf32>
}

// A value that nothing of the state goes into is made there, before or after the last read.
// CHECK-LABEL: func.func @overwrite
func.func @overwrite(%x: tensor<64xf32>) -> tensor<64xf32> attributes {prim.symbols = []} {
  %old = prim.read_state @a : tensor<64xf32>
  // CHECK: host.launch @first{{.*}}host.places = [#host.place<output[0]
  %r = host.launch @first(%old) symbols [] tasks #one grain #one : (tensor<64xf32>) -> tensor<64xf32>
  // CHECK: host.launch @second{{.*}}host.places = [#host.place<state[0], #[[Z]]>]
  %new = host.launch @second(%x) symbols [] tasks #one grain #one : (tensor<64xf32>) -> tensor<64xf32>
  prim.write_state @a, %new : tensor<64xf32>
  return %r : tensor<64xf32>
}

// States that change places: one is copied first, the other into place. An old value that is returned is copied before.
// CHECK-LABEL: func.func @swap
func.func @swap() -> tensor<64xf32> attributes {prim.symbols = []} {
  // CHECK: %[[A:.*]] = prim.read_state @a
  // CHECK: %[[B:.*]] = prim.read_state @b
  %a = prim.read_state @a : tensor<64xf32>
  %b = prim.read_state @b : tensor<64xf32>
  // CHECK: host.copy %[[A]] {host.places = [#host.place<output[0]
  // CHECK: %[[X:.*]] = host.copy %[[B]] {host.places = [#host.place<arena[0]
  // CHECK: %[[Y:.*]] = host.copy %[[A]] {host.places = [#host.place<state[1]
  // CHECK: prim.write_state @a, %[[X]]
  // CHECK: prim.write_state @b, %[[Y]]
  prim.write_state @a, %b : tensor<64xf32>
  prim.write_state @b, %a : tensor<64xf32>
  return %a : tensor<64xf32>
}

// What is returned lives in the caller's buffer.
// CHECK-LABEL: func.func @returned
func.func @returned(%x: tensor<64xf32>) -> tensor<64xf32> attributes {prim.symbols = []} {
  // CHECK: host.launch @make{{.*}}host.places = [#host.place<output[0]
  %new = host.launch @make(%x) symbols [] tasks #one grain #one : (tensor<64xf32>) -> tensor<64xf32>
  prim.write_state @a, %new : tensor<64xf32>
  return %new : tensor<64xf32>
}

// A constant of two functions stands once.
// CHECK-LABEL: func.func @constant_0
// CHECK-SAME: host.weights = 512
func.func @constant_0() -> tensor<2xf32> attributes {prim.symbols = []} {
  // CHECK: host.constant {{.*}}host.places = [#host.place<weights[0], #[[Z]]>]
  %w = host.constant dense<[1.0, 2.0]> : tensor<2xf32> : tensor<2xf32>
  // CHECK: host.constant {{.*}}host.places = [#host.place<weights[0], #[[W1:map[0-9]*]]>]
  %v = host.constant dense<3.0> : tensor<100xf32> : tensor<100xf32>
  %r = host.launch @k(%w, %v) symbols [] tasks #one grain #one : (tensor<2xf32>, tensor<100xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}
// CHECK-LABEL: func.func @constant_1
// CHECK-SAME: host.weights = 512
func.func @constant_1() -> tensor<2xf32> attributes {prim.symbols = []} {
  // CHECK: host.constant {{.*}}host.places = [#host.place<weights[0], #[[W1]]>]
  %v = host.constant dense<3.0> : tensor<100xf32> : tensor<100xf32>
  // CHECK: host.constant {{.*}}host.places = [#host.place<weights[0], #[[Z]]>]
  %w = host.constant dense<[1.0, 2.0]> : tensor<2xf32> : tensor<2xf32>
  %r = host.launch @k(%w, %v) symbols [] tasks #one grain #one : (tensor<2xf32>, tensor<100xf32>) -> tensor<2xf32>
  return %r : tensor<2xf32>
}
