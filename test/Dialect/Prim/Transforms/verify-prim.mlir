// What the phase prim promises.
// RUN: tc-opt %s -tc-verify-prim -split-input-file -verify-diagnostics

// expected-error @+1 {{symbol s1 ("m") is used but not defined}}
func.func @undefined(%x: tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>) attributes {prim.symbols = [#prim.symbol<"n", 0, 8, 1>, #prim.symbol<"m", 0, 8, 1>]} {
  %0 = prim.splat 1.0 : f32 : tensor<?xf32, #prim.dims<affine_map<()[s0, s1] -> (s1)>>>
  return
}

// -----

// expected-error @+1 {{symbol s0 is not in prim.symbols}}
func.func @unlisted(%x: tensor<?xf32, #prim.dims<affine_map<()[s0] -> (s0)>>>) {
  return
}

// -----

// expected-error @+1 {{a value of type 'tensor<?xf32>' has no place in prim}}
func.func @unknown_size(%x: tensor<?xf32>) {
  return
}
