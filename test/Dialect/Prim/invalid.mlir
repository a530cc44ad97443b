// What the verifiers of prim refuse. Numbers (C1) are those of the ops' descriptions.
// RUN: tc-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{#prim.dims has 1 sizes for a tensor of rank 2}}
func.func private @dims_rank(tensor<?x4xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>)

// -----

// expected-error @+1 {{#prim.dims contradicts the tensor's static sizes}}
func.func private @dims_static(tensor<?x4xf32, #prim.dims<affine_map<()[s0] -> (s0, 5)>>>)

// -----

func.func @splat() {
  // expected-error @+1 {{value and result differ in element type}}
  %0 = prim.splat 1.0 : f32 : tensor<2xf64>
  return
}

// -----

func.func @iota() {
  // expected-error @+1 {{axis is out of range}}
  %0 = prim.iota axis = 1 : tensor<2xi64>
  return
}

// -----

func.func @sizes_c1() {
  // expected-error @+1 {{(C1) needs as many expressions as the 0-D or 1-D i64 result has elements}}
  %0 = prim.sizes affine_map<() -> (1, 2)> : tensor<3xi64>
  return
}

// -----

func.func @sizes_type() {
  // expected-error @+1 {{(C1) needs as many expressions as the 0-D or 1-D i64 result has elements}}
  %0 = prim.sizes affine_map<() -> (1, 2)> : tensor<2xi32>
  return
}

// -----

func.func @compare(%x: tensor<2xf32>) {
  // expected-error @+1 {{result has type 'tensor<2xf32>', expected 'tensor<2xi1>'}}
  %0 = prim.compare lt %x, %x : tensor<2xf32> -> tensor<2xf32>
  return
}

// -----

func.func @is_nan(%x: tensor<2xf32>) {
  // expected-error @+1 {{result has type 'tensor<3xi1>', expected 'tensor<2xi1>'}}
  %0 = prim.is_nan %x : tensor<2xf32> -> tensor<3xi1>
  return
}

// -----

func.func @is_inf(%x: tensor<2xf32>) {
  // expected-error @+1 {{result has type 'tensor<2xf32>', expected 'tensor<2xi1>'}}
  %0 = prim.is_inf %x : tensor<2xf32> -> tensor<2xf32>
  return
}

// -----

func.func @select(%c: tensor<2xi8>, %x: tensor<2xf32>) {
  // expected-error @+1 {{condition must be i1 of the result's sizes}}
  %0 = prim.select %c, %x, %x : tensor<2xi8>, tensor<2xf32>
  return
}

// -----

func.func @convert(%x: tensor<2xf32>) {
  // expected-error @+1 {{operand and result differ in sizes}}
  %0 = prim.convert %x : tensor<2xf32> -> tensor<3xf16>
  return
}

// -----

func.func @reshape(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{changes the number of elements from 6 to 7}}
  %0 = prim.reshape %x : tensor<2x3xf32> -> tensor<7xf32>
  return
}

// -----

func.func @reshape_type(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{operand and result differ in element type}}
  %0 = prim.reshape %x : tensor<2x3xf32> -> tensor<6xi32>
  return
}

// -----

func.func @transpose(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{permutation must name each dim once}}
  %0 = prim.transpose %x [0, 0] : tensor<2x3xf32> -> tensor<2x2xf32>
  return
}

// -----

func.func @broadcast_c1(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{(C1) dims must be strictly increasing, in range, one per operand dim}}
  %0 = prim.broadcast %x [1, 0] : tensor<2x3xf32> -> tensor<3x2xf32>
  return
}

// -----

func.func @broadcast_size(%x: tensor<2xf32>) {
  // expected-error @+1 {{(C1) can't repeat size 2 to 4}}
  %0 = prim.broadcast %x [0] : tensor<2xf32> -> tensor<4xf32>
  return
}

// -----

func.func @slice_step(%x: tensor<4xf32>) {
  // expected-error @+1 {{step is 0}}
  %0 = prim.slice %x from affine_map<() -> (0)> step [0] : tensor<4xf32> -> tensor<1xf32>
  return
}

// -----

func.func @slice_range(%x: tensor<4xf32>) {
  // expected-error @+1 {{dim 0 reaches outside its operand}}
  %0 = prim.slice %x from affine_map<() -> (2)> step [2] : tensor<4xf32> -> tensor<2xf32>
  return
}

// -----

func.func @slice_rank(%x: tensor<4xf32>) {
  // expected-error @+1 {{needs a start and a step per dim}}
  %0 = prim.slice %x from affine_map<() -> (2, 3)> step [1] : tensor<4xf32> -> tensor<2xf32>
  return
}

// -----

func.func @pad(%x: tensor<4xf32>, %v: tensor<1xf32>) {
  // expected-error @+1 {{value must be 0-D of the operand's element type}}
  %0 = prim.pad %x, %v low affine_map<() -> (1)> : (tensor<4xf32>, tensor<1xf32>) -> tensor<6xf32>
  return
}

// -----

func.func @concat(%x: tensor<4x2xf32>, %y: tensor<4x3xf32>) {
  // expected-error @+1 {{inputs differ in dim 1}}
  %0 = prim.concat %x, %y axis = 0 : (tensor<4x2xf32>, tensor<4x3xf32>) -> tensor<8x2xf32>
  return
}

// -----

func.func @concat_none() {
  // expected-error @+1 {{needs an input}}
  %0 = "prim.concat"() <{axis = 0 : i64}> : () -> tensor<8x2xf32>
  return
}

// -----

func.func @gather_c1(%x: tensor<4x2xf32>, %i: tensor<3xi64>) {
  // expected-error @+1 {{(C1) axis is out of range}}
  %0 = prim.gather %x[%i] axis = 2 : (tensor<4x2xf32>, tensor<3xi64>) -> tensor<4x3xf32>
  return
}

// -----

func.func @gather_c2(%x: tensor<4x2xf32>, %i: tensor<3xi64>) {
  // expected-error @+1 {{result has type 'tensor<3x2xf64>', expected 'tensor<3x2xf32>'}}
  %0 = prim.gather %x[%i] axis = 0 : (tensor<4x2xf32>, tensor<3xi64>) -> tensor<3x2xf64>
  return
}

// -----

func.func @gather_elements(%x: tensor<4x2xf32>, %i: tensor<3x2xi64>) {
  // expected-error @+1 {{axis is out of range or ranks differ}}
  %0 = prim.gather_elements %x[%i] axis = 2 : (tensor<4x2xf32>, tensor<3x2xi64>) -> tensor<3x2xf32>
  return
}

// -----

func.func @gather_nd_c1(%x: tensor<4x2xf32>, %i: tensor<3x?xi64, #prim.dims<affine_map<()[s0] -> (3, s0)>>>) {
  // expected-error @+1 {{(C1) the last dim of indices must be static}}
  %0 = prim.gather_nd %x[%i] batch_dims = 0 : (tensor<4x2xf32>, tensor<3x?xi64, #prim.dims<affine_map<()[s0] -> (3, s0)>>>) -> tensor<3xf32>
  return
}

// -----

func.func @gather_nd_depth(%x: tensor<4x2xf32>, %i: tensor<3x3xi64>) {
  // expected-error @+1 {{indices name more dims than the source has}}
  %0 = prim.gather_nd %x[%i] batch_dims = 0 : (tensor<4x2xf32>, tensor<3x3xi64>) -> tensor<3xf32>
  return
}

// -----

func.func @reduce_c1(%x: tensor<4x2xf32>) {
  // expected-error @+1 {{(C1) dims must be strictly increasing and in range}}
  %0 = prim.reduce sum %x [1, 0] : tensor<4x2xf32> -> tensor<f32>
  return
}

// -----

func.func @dot_c1(%x: tensor<4x2xf32>, %y: tensor<3x2xf32>) {
  // expected-error @+1 {{(C1) contracting dims differ in size}}
  %0 = prim.dot_general %x, %y batch [] x [] contract [1] x [0] : (tensor<4x2xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
  return
}

// -----

func.func @dot_symbolic(%x: tensor<?x2xf32, #prim.dims<affine_map<()[s0] -> (s0, 2)>>>, %y: tensor<?x2xf32, #prim.dims<affine_map<()[s0] -> (s0 + 1, 2)>>>) {
  // expected-error @+1 {{(C1) batch dims differ in size}}
  %0 = prim.dot_general %x, %y batch [0] x [0] contract [1] x [1] : (tensor<?x2xf32, #prim.dims<affine_map<()[s0] -> (s0, 2)>>>, tensor<?x2xf32, #prim.dims<affine_map<()[s0] -> (s0 + 1, 2)>>>) -> tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>
  return
}

// -----

func.func @dot_dims(%x: tensor<4x2xf32>, %y: tensor<2x3xf32>) {
  // expected-error @+1 {{(C1) batch and contracting dims must be disjoint, in range and equally many on both sides}}
  %0 = prim.dot_general %x, %y batch [1] x [0] contract [1] x [0] : (tensor<4x2xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @conv_c1(%x: tensor<1x8x4xf32>, %w: tensor<3x4x6xf32>) {
  // expected-error @+1 {{(C1) needs a stride, dilation and pad per spatial dim}}
  %0 = prim.conv %x, %w strides [1, 1] dilations [1] pads [0] [0] groups 1 : (tensor<1x8x4xf32>, tensor<3x4x6xf32>) -> tensor<1x6x6xf32>
  return
}

// -----

func.func @conv_c2(%x: tensor<1x8x4xf32>, %w: tensor<3x4x6xf32>) {
  // expected-error @+1 {{(C2) groups must divide input and output channels}}
  %0 = prim.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 3 : (tensor<1x8x4xf32>, tensor<3x4x6xf32>) -> tensor<1x6x6xf32>
  return
}

// -----

func.func @conv_stride(%x: tensor<1x8x4xf32>, %w: tensor<3x4x6xf32>) {
  // expected-error @+1 {{strides and dilations must be positive}}
  %0 = prim.conv %x, %w strides [0] dilations [1] pads [0] [0] groups 1 : (tensor<1x8x4xf32>, tensor<3x4x6xf32>) -> tensor<1x6x6xf32>
  return
}

// -----

func.func @conv_size(%x: tensor<1x8x4xf32>, %w: tensor<3x4x6xf32>) {
  // expected-error @+1 {{result has sizes that its operands do not imply: 'tensor<1x7x6xf32>', expected 'tensor<1x6x6xf32>'}}
  %0 = prim.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x8x4xf32>, tensor<3x4x6xf32>) -> tensor<1x7x6xf32>
  return
}

// -----

func.func @window(%x: tensor<1x8x4xf32>) {
  // expected-error @+1 {{needs a window, stride, dilation and pad per spatial dim}}
  %0 = prim.window_reduce max %x window [2, 2] strides [1] dilations [1] low [0] : tensor<1x8x4xf32> -> tensor<1x7x4xf32>
  return
}

// -----

// C1
func.func @if_results(%c: tensor<i1>, %x: tensor<4xf32>, %y: tensor<4xi32>) -> tensor<4xf32> {
  // expected-error @+1 {{yielded values have type 'tensor<4xi32>' where a result has 'tensor<4xf32>'}}
  %0 = prim.if %c : tensor<i1> -> (tensor<4xf32>) {
    prim.yield %x : tensor<4xf32>
  } else {
    prim.yield %y : tensor<4xi32>
  }
  return %0 : tensor<4xf32>
}

// -----

// C2
func.func @if_binds(%c: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{binds symbol 3, which is no dim of a result}}
  %0 = prim.if %c binds [3] : tensor<i1> -> (tensor<4xf32>) {
    prim.yield %x : tensor<4xf32>
  } else {
    prim.yield %x : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

// C1
func.func @while_arguments(%n: tensor<i64>, %c: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{carried arguments of the body and results differ in type}}
  %0 = prim.while %n, %c carry %x : (tensor<i64>, tensor<i1>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%i: tensor<i64>, %v: tensor<5xf32>):
    prim.yield %c, %x : tensor<i1>, tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

// C1
func.func @guard() {
  // expected-error @+1 {{sizes must be a map with two results}}
  prim.guard eq affine_map<() -> (1)> "one"
  return
}

// -----

// C2
func.func @guard_kind() {
  // expected-error @+1 {{kind must be eq or le}}
  prim.guard gt affine_map<() -> (1, 2)> "one"
  return
}

// -----

// C1
func.func @scatter_order(%x: tensor<5x4xf32>, %i: tensor<6x1xi64>, %u: tensor<6x4xf32>, %o: tensor<5xi64>) -> tensor<5x4xf32> {
  // expected-error @+1 {{(C1) an order of i64 has an element for each of the indices [N, 1]}}
  %0 = prim.scatter_nd %x[%i], %u order %o : (tensor<5x4xf32>, tensor<6x1xi64>, tensor<6x4xf32>, tensor<5xi64>) -> tensor<5x4xf32>
  return %0 : tensor<5x4xf32>
}

// -----

// C1
func.func @arg_sort(%x: tensor<2x5x1xf32>) -> tensor<3x5xi64> {
  // expected-error @+1 {{operand and result differ in their leading sizes}}
  %0 = prim.arg_sort %x : tensor<2x5x1xf32> -> tensor<3x5xi64>
  return %0 : tensor<3x5xi64>
}

// -----

func.func @arg_sort_of_floats_with_bits(%x: tensor<5x1xf32>) -> tensor<5xi64> {
  // expected-error @+1 {{(C2) key_bits stand with integers of more bits, in rising order}}
  %0 = prim.arg_sort %x key_bits 9 : tensor<5x1xf32> -> tensor<5xi64>
  return %0 : tensor<5xi64>
}

// -----

// C1
func.func @fft_halves(%x: tensor<2x5x1x1xf16>) -> tensor<2x5x1x2xf16> {
  // expected-error @+1 {{(C1) operand and result are of f32, or both of f64}}
  %0 = prim.fft %x length affine_map<() -> (5)> : tensor<2x5x1x1xf16> -> tensor<2x5x1x2xf16>
  return %0 : tensor<2x5x1x2xf16>
}

// -----

// C2
func.func @fft_parts(%x: tensor<2x5x1x3xf32>) -> tensor<2x5x1x2xf32> {
  // expected-error @+1 {{(C2) needs an operand [P, L, Q, 1 or 2] and a result [P, K, Q, 1 or 2]}}
  %0 = prim.fft %x length affine_map<() -> (5)> : tensor<2x5x1x3xf32> -> tensor<2x5x1x2xf32>
  return %0 : tensor<2x5x1x2xf32>
}

// -----

// C3
func.func @fft_outputs(%x: tensor<2x5x1x1xf32>) -> tensor<2x6x1x2xf32> {
  // expected-error @+1 {{(C3) a transform of 5 elements has no 6}}
  %0 = prim.fft %x length affine_map<() -> (5)> : tensor<2x5x1x1xf32> -> tensor<2x6x1x2xf32>
  return %0 : tensor<2x6x1x2xf32>
}

// -----

func.func @yield(%x: tensor<4xf32>) {
  // expected-error @+1 {{expects parent op to be one of 'prim.if, prim.while'}}
  prim.yield %x : tensor<4xf32>
}

// -----

func.func @bitcast(%x: tensor<4xf32>) {
  // expected-error @+1 {{(C1) needs element types of the same number of bits}}
  %0 = prim.bitcast %x : tensor<4xf32> -> tensor<4xi64>
  return
}

// -----

func.func @bitcast_bool(%x: tensor<4xi1>) {
  // expected-error @+1 {{(C1) needs element types of the same number of bits}}
  %0 = prim.bitcast %x : tensor<4xi1> -> tensor<4xi1>
  return
}

// -----

func.func @storage_parts(%x: tensor<4xcomplex<f32>>) {
  // expected-error @+1 {{(C1) needs a tensor of complex elements and one of their floats}}
  %0 = prim.storage %x : tensor<4xcomplex<f32>> -> tensor<4x2xf64>
  return
}

// -----

func.func @storage_pairs(%x: tensor<4xcomplex<f32>>) {
  // expected-error @+1 {{(C2) the sizes of the floats must be those of}}
  %0 = prim.storage %x : tensor<4xcomplex<f32>> -> tensor<8xf32>
  return
}

// -----

func.func @storage_type(%x: tensor<4xi8>) {
  // expected-error @+1 {{(C1) needs a tensor of narrow elements and one of ui8}}
  %0 = prim.storage %x : tensor<4xi8> -> tensor<4xui8>
  return
}

// -----

func.func @storage_size(%x: tensor<5xi4>) {
  // expected-error @+1 {{(C2) the sizes of the ui8 tensor must be those of 'tensor<3xui8>'}}
  %0 = prim.storage %x : tensor<5xi4> -> tensor<2xui8>
  return
}

// -----

func.func @block_dot_bits(%x: tensor<3x40xf32>, %w: tensor<7x24xui8>, %s: tensor<7x2xf32>) {
  // expected-error @+1 {{(C1) bits must be 2, 4 or 8, and block a power of 2 of at least 16}}
  %0 = prim.block_dot %x, %w, %s bits = 3 block = 32 : (tensor<3x40xf32>, tensor<7x24xui8>, tensor<7x2xf32>) -> tensor<3x7xf32>
  return
}

// -----

func.func @block_dot_signed(%x: tensor<3x40xf32>, %w: tensor<7x32xi8>, %s: tensor<7x2xf32>) {
  // expected-error @+1 {{(C1) numbers with a sign have 8 bits}}
  %0 = prim.block_dot %x, %w, %s bits = 4 block = 32 : (tensor<3x40xf32>, tensor<7x32xi8>, tensor<7x2xf32>) -> tensor<3x7xf32>
  return
}

// -----

func.func @block_dot_sizes(%x: tensor<3x40xf32>, %w: tensor<7x20xui8>, %s: tensor<7x2xf32>) {
  // expected-error @+1 {{(C2) the operands' sizes do not fit each other}}
  %0 = prim.block_dot %x, %w, %s bits = 4 block = 32 : (tensor<3x40xf32>, tensor<7x20xui8>, tensor<7x2xf32>) -> tensor<3x7xf32>
  return
}

// -----

// expected-error @+1 {{(C1) a state cannot be of type 'tensor<?xf32>'}}
prim.state @s : tensor<?xf32>

// -----

// expected-error @+1 {{(C1) a state cannot be of type 'tensor<3xi4>'}}
prim.state @s : tensor<3xi4>

// -----

// expected-error @+1 {{(C1) a state cannot be of type 'tensor<3xcomplex<f32>>'}}
prim.state @s : tensor<3xcomplex<f32>>

// -----

// expected-error @+1 {{(C2) the initial value has the type 'tensor<2xf32>', expected 'tensor<3xf32>'}}
prim.state @s : tensor<3xf32> = dense<0.0> : tensor<2xf32>

// -----

func.func @read_no_state() -> tensor<3xf32> {
  // expected-error @+1 {{(C1) there is no prim.state @s}}
  %0 = prim.read_state @s : tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

prim.state @s : tensor<3xf32>
func.func @read_type() -> tensor<4xf32> {
  // expected-error @+1 {{(C1) the state @s is of type 'tensor<3xf32>'}}
  %0 = prim.read_state @s : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

prim.state @s : tensor<3xf32>
func.func @write_type(%x: tensor<3xi32>) {
  // expected-error @+1 {{(C1) the state @s is of type 'tensor<3xf32>'}}
  prim.write_state @s, %x : tensor<3xi32>
  return
}

// -----

prim.state @s : tensor<3xf32>
func.func @write_in_branch(%c: tensor<i1>, %x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = prim.if %c : tensor<i1> -> (tensor<3xf32>) {
    // expected-error @+1 {{(C2) stands in a loop or branch}}
    prim.write_state @s, %x : tensor<3xf32>
    prim.yield %x : tensor<3xf32>
  } else {
    prim.yield %x : tensor<3xf32>
  }
  return %0 : tensor<3xf32>
}

// -----

prim.state @s : tensor<3xf32>
func.func @write_twice(%x: tensor<3xf32>) {
  prim.write_state @s, %x : tensor<3xf32>
  // expected-error @+1 {{(C2) the function writes the state @s twice}}
  prim.write_state @s, %x : tensor<3xf32>
  return
}

// -----

// C1
func.func @host_call_words(%x: tensor<2xf32>) {
  // expected-error @+1 {{(C1) has 1 words for 2 operands and results}}
  %0 = prim.host_call "box"(%x) words [0] : (tensor<2xf32>) -> tensor<i64>
  return
}

// -----

// C1
func.func @host_call_string(%x: tensor<2xf32>) {
  // expected-error @+1 {{(C1) word 1 does not fit the type 'tensor<2xf32>'}}
  %0 = prim.host_call "f"(%x) words [1, 0] : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

// C1
func.func @host_call_handle(%x: tensor<2xf32>) {
  // expected-error @+1 {{(C1) word 2 does not fit the type 'tensor<2xi64>'}}
  %0 = prim.host_call "f"(%x) words [0, 2] : (tensor<2xf32>) -> tensor<2xi64>
  return
}

// -----

func.func @host_call_inits(%x: tensor<2xf32>) {
  // expected-error @+1 {{has prim.inits that are no numbers of an operand for each of 1 results}}
  %0 = prim.host_call "f"(%x) words [0, 0] {prim.inits = array<i64: 0, -1>} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @host_call_init(%x: tensor<2xf32>) {
  // expected-error @+1 {{has no operand 1, which prim.inits names}}
  %0 = prim.host_call "f"(%x) words [0, 0] {prim.inits = array<i64: 1>} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @host_call_init_type(%x: tensor<2xf32>) {
  // expected-error @+1 {{has a result of type 'tensor<2xi32>', which cannot begin as operand 0}}
  %0 = prim.host_call "f"(%x) words [0, 0] {prim.inits = array<i64: 0>} : (tensor<2xf32>) -> tensor<2xi32>
  return
}
