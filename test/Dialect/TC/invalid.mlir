// Each numbered constraint of #tc.data and #tc.cost.
// RUN: tc-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{(C1) #tc.data needs a static tensor type}}
module attributes {x = #tc.data<"b", 0, 8, "00000000000000000000000000000000"> : tensor<?xf32>} {}
// -----
// expected-error @+1 {{(C1) #tc.data cannot hold elements of type 'index'}}
module attributes {x = #tc.data<"b", 0, 8, "00000000000000000000000000000000"> : tensor<2xindex>} {}
// -----
// expected-error @+1 {{(C1) #tc.data needs a static tensor type}}
module attributes {x = #tc.data<"b", 0, 8, "00000000000000000000000000000000"> : tensor<4611686018427387904x4611686018427387904xf32>} {}
// -----
// expected-error @+1 {{(C2) #tc.data of 'tensor<2xf32>' needs 8 bytes, its length is 7}}
module attributes {x = #tc.data<"b", 0, 7, "00000000000000000000000000000000"> : tensor<2xf32>} {}
// -----
// expected-error @+1 {{(C2) #tc.data of 2 strings needs at least 3 offsets of 8 bytes, its length is 23}}
module attributes {x = #tc.data<"b", 0, 23, "00000000000000000000000000000000"> : tensor<2x!tc.string>} {}
// -----
// expected-error @+1 {{(C3) #tc.data needs a content hash of 32 hex digits}}
module attributes {x = #tc.data<"b", 0, 8, "xyz"> : tensor<2xf32>} {}
// -----
// expected-error @+1 {{#tc.data needs a ranked tensor type}}
module attributes {x = #tc.data<"b", 0, 8, "00000000000000000000000000000000">} {}
// -----
// expected-error @+1 {{(C1) #tc.cost needs one size expression without dims each}}
module attributes {x = #tc.cost<flops = (d0)[s0] -> (d0), bytes = 1>} {}
// -----
// expected-error @+1 {{(C1) #tc.cost needs one size expression without dims each}}
module attributes {x = #tc.cost<flops = 1, bytes = () -> (1, 2)>} {}
