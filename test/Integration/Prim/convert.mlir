// Conversions round once, to nearest even; where the exact value matters.
// RUN: tc-interpret %s | FileCheck %s

func.func @f() -> (tensor<4xf32>, tensor<4xf16>, tensor<3xf8E4M3FN>, tensor<4xi4>, tensor<3xui4>, tensor<3xi64>, tensor<5xbf16>) {
  // 2^60 + 2^36 + 1 lies just above the middle of two floats: rounding to double first would go down.
  // CHECK: output_0: tensor<4xf32> [1.15292164e+18, 16777216, 16777220, -9.22337204e+18]
  %0 = prim.constant dense<[1152921573326323713, 16777217, 16777219, -9223372036854775808]> : tensor<4xi64>
  %1 = prim.convert %0 : tensor<4xi64> -> tensor<4xf32>
  // The largest half, its rounding limit, the least subnormal, half of that.
  // CHECK: output_1: tensor<4xf16> [65504, inf, 5.96046448e-08, 0]
  %2 = prim.constant dense<[65519.0, 65520.0, 5.9604645e-8, 2.9802322e-8]> : tensor<4xf32>
  %3 = prim.convert %2 : tensor<4xf32> -> tensor<4xf16>
  // CHECK: output_2: tensor<3xf8E4M3FN> [448, 0.001953125, -1.125]
  %4 = prim.constant dense<[448.0, 0.002, -1.1]> : tensor<3xf32>
  %5 = prim.convert %4 : tensor<3xf32> -> tensor<3xf8E4M3FN>
  // CHECK: output_3: tensor<4xi4> [7, -8, 3, 0]
  %6 = prim.constant dense<[9.0, -100.0, 3.9, 0x7FC00000]> : tensor<4xf32>
  %7 = prim.convert %6 : tensor<4xf32> -> tensor<4xi4>
  // CHECK: output_4: tensor<3xui4> [15, 1, 8]
  %8 = prim.constant dense<[-1, 17, 8]> : tensor<3xi32>
  %9 = prim.convert %8 : tensor<3xi32> -> tensor<3xui4>
  // CHECK: output_5: tensor<3xi64> [9223372036854775807, -9223372036854775808, 0]
  %10 = prim.constant dense<[0x7F800000, 0xFF800000, 0x7FC00000]> : tensor<3xf32>
  %11 = prim.convert %10 : tensor<3xf32> -> tensor<3xi64>
  // 1 + 2^-8 is the middle of two bfloat16 numbers, 1 + 3 * 2^-8 too.
  // CHECK: output_6: tensor<5xbf16> [1, 1.015625, inf, -0, nan]
  %12 = prim.constant dense<[1.00390625, 1.01171875, 3.4e38, -0.0, 0x7FC00000]> : tensor<5xf32>
  %13 = prim.convert %12 : tensor<5xf32> -> tensor<5xbf16>
  return %1, %3, %5, %7, %9, %11, %13 : tensor<4xf32>, tensor<4xf16>, tensor<3xf8E4M3FN>, tensor<4xi4>, tensor<3xui4>, tensor<3xi64>, tensor<5xbf16>
}
