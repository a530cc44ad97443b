// Complex elements stay in signatures and in calls of the runtime only; inside there are pairs of floats.
// RUN: tc-opt %s -tc-expand-complex -split-input-file -verify-diagnostics | FileCheck %s
// RUN: tc-opt %s -tc-expand-complex -tc-expand-complex -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-LABEL: func @move
// CHECK-SAME: %[[X:.*]]: tensor<2x3xcomplex<f32>>
// CHECK: %[[P:.*]] = prim.storage %[[X]] : tensor<2x3xcomplex<f32>> -> tensor<2x3x2xf32>
// CHECK: %[[T:.*]] = prim.transpose %[[P]] [1, 0, 2]
// CHECK: %[[S:.*]] = prim.slice %[[T]] from {{.*}} step [1, -1, 1]
// CHECK: %[[G:.*]] = prim.gather %[[S]]{{.*}} axis = 0 : (tensor<2x2x2xf32>, tensor<4xi64>) -> tensor<4x2x2xf32>
// CHECK: %[[Y:.*]] = prim.storage %[[G]] : tensor<4x2x2xf32> -> tensor<4x2xcomplex<f32>>
// CHECK: return %[[Y]]
func.func @move(%x: tensor<2x3xcomplex<f32>>, %i: tensor<4xi64>) -> tensor<4x2xcomplex<f32>> {
  %0 = prim.transpose %x [1, 0] : tensor<2x3xcomplex<f32>> -> tensor<3x2xcomplex<f32>>
  %1 = prim.slice %0 from affine_map<() -> (1, 1)> step [1, -1] : tensor<3x2xcomplex<f32>> -> tensor<2x2xcomplex<f32>>
  %2 = prim.gather %1[%i] axis = 0 : (tensor<2x2xcomplex<f32>>, tensor<4xi64>) -> tensor<4x2xcomplex<f32>>
  return %2 : tensor<4x2xcomplex<f32>>
}

// -----

// Parts of the pad value that are the same are the value of all; else the pair is chosen outside.
// CHECK-LABEL: func @pads
// CHECK: %[[Z:.*]] = prim.constant dense<0.000000e+00> : tensor<f64>
// CHECK: prim.pad %{{.*}}, %[[Z]] {{.*}} -> tensor<3x2xf64>
// CHECK: prim.pad {{.*}} -> tensor<3x2xi1>
// CHECK: prim.select
func.func @pads(%x: tensor<2xcomplex<f64>>, %v: tensor<complex<f64>>) -> (tensor<3xcomplex<f64>>, tensor<3xcomplex<f64>>) {
  %c = prim.constant dense<0.0> : tensor<2xf64>
  %z = prim.storage %c : tensor<2xf64> -> tensor<complex<f64>>
  %0 = prim.pad %x, %z low affine_map<() -> (1)> : (tensor<2xcomplex<f64>>, tensor<complex<f64>>) -> tensor<3xcomplex<f64>>
  %1 = prim.pad %x, %v low affine_map<() -> (0)> : (tensor<2xcomplex<f64>>, tensor<complex<f64>>) -> tensor<3xcomplex<f64>>
  return %0, %1 : tensor<3xcomplex<f64>>, tensor<3xcomplex<f64>>
}

// -----

// A loop carries pairs; the runtime takes and gives complex numbers; symbolic sizes keep their place.
// CHECK-LABEL: func @loop
// CHECK: %[[P:.*]] = prim.storage %arg0
// CHECK: prim.while {{.*}} carry %[[P]]
// CHECK: prim.concat {{.*}} axis = 0 : (tensor<?x2xf32
// CHECK: %[[R:.*]] = prim.storage {{.*}} -> tensor<?xcomplex<f32>
// CHECK: prim.host_call "box"(%[[R]])
func.func @loop(%x: tensor<?xcomplex<f32>, #prim.dims<affine_map<()[s0] -> (s0)>>>, %n: tensor<i64>, %c: tensor<i1>) -> tensor<i64>
    attributes {prim.symbols = [#prim.symbol<"n", 0, 1000, 1>, #prim.symbol<"m", 0, 1000, 1>]} {
  %0 = prim.while %n, %c carry %x binds [1] : (tensor<i64>, tensor<i1>, tensor<?xcomplex<f32>, #prim.dims<affine_map<()[s0] -> (s0)>>>) -> tensor<?xcomplex<f32>, #prim.dims<affine_map<()[s0, s1] -> (s1)>>> {
  ^bb0(%i: tensor<i64>, %v: tensor<?xcomplex<f32>, #prim.dims<affine_map<()[s0, s1] -> (s1)>>>):
    %1 = prim.concat %v, %v axis = 0 : (tensor<?xcomplex<f32>, #prim.dims<affine_map<()[s0, s1] -> (s1)>>>, tensor<?xcomplex<f32>, #prim.dims<affine_map<()[s0, s1] -> (s1)>>>) -> tensor<?xcomplex<f32>, #prim.dims<affine_map<()[s0, s1] -> (s1 * 2)>>>
    prim.yield %c, %1 : tensor<i1>, tensor<?xcomplex<f32>, #prim.dims<affine_map<()[s0, s1] -> (s1 * 2)>>>
  }
  %2 = prim.host_call "box"(%0) words [0, 2] : (tensor<?xcomplex<f32>, #prim.dims<affine_map<()[s0, s1] -> (s1)>>>) -> tensor<i64>
  return %2 : tensor<i64>
}

// -----

// CHECK-LABEL: func @differ
// CHECK: %[[NE:.*]] = prim.compare ne {{.*}} : tensor<2x2xf32> -> tensor<2x2xi1>
// CHECK: prim.or
func.func @differ(%x: tensor<2xcomplex<f32>>, %y: tensor<2xcomplex<f32>>) -> tensor<2xi1> {
  %0 = prim.compare ne %x, %y : tensor<2xcomplex<f32>> -> tensor<2xi1>
  return %0 : tensor<2xi1>
}

// -----

// An argument that is returned stays what it is.
// CHECK-LABEL: func @same
// CHECK: return %arg0
func.func @same(%x: tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>> {
  return %x : tensor<2xcomplex<f32>>
}

// -----

func.func @product(%x: tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>> {
  // expected-error @+1 {{prim.mul does not take complex elements in this form; write it on their real and imaginary parts}}
  %0 = prim.mul %x, %x : tensor<2xcomplex<f32>>
  return %0 : tensor<2xcomplex<f32>>
}
