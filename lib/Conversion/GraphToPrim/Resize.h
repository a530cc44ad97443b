//===- Resize.h - interpolation along dims, for all front ends ------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CONVERSION_GRAPHTOPRIM_RESIZE_H
#define TC_LIB_CONVERSION_GRAPHTOPRIM_RESIZE_H

#include "NodeContext.h"

namespace tc {

/// How positions are interpolated; the words are those of ONNX's Resize.
struct ResizeOptions {
  std::string mode, coordinates, nearest;
  double cubicA = -0.75, extrapolation = 0;
  bool excludeOutside = false, antialias = false;
};

/// A factor of a size: 0-D f64, and the number where it is constant.
struct ResizeScale {
  std::optional<double> known;
  mlir::Value value;
};

/// One dim that is resized. `scale` is 0-D f64, `known` the number where it is constant; `roi` its start and end in [0,
/// 1], for tf_crop_and_resize.
struct ResizedDim {
  int64_t dim = 0;
  mlir::AffineExpr in, out;
  mlir::Value scale, roiStart, roiEnd;
  std::optional<double> known;
};

/// `x` with these dims resized, one after the other.
mlir::Value emitResize(PrimBuilder &b, mlir::Value x, const ResizeOptions &options, llvm::ArrayRef<ResizedDim> dims);

/// in * scale, rounded down.
mlir::AffineExpr scaledSize(PrimBuilder &b, mlir::AffineExpr in, const ResizeScale &scale);

} // namespace tc

#endif // TC_LIB_CONVERSION_GRAPHTOPRIM_RESIZE_H
