//===- Sample.h - reading images at computed positions, for all front ends ------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CONVERSION_GRAPHTOPRIM_SAMPLE_H
#define TC_LIB_CONVERSION_GRAPHTOPRIM_SAMPLE_H

#include "NodeContext.h"

namespace tc {

struct GridOptions {
  std::string mode = "linear";   ///< nearest, linear, cubic
  std::string padding = "zeros"; ///< zeros, border, reflection
  bool alignCorners = false;
  /// Of cubic samples with padding "border": a position outside stays there, and each neighbour by itself is held at
  /// the border, as PyTorch does; else the position is held there.
  bool holdsNeighboursAlone = false;
  /// Positions that are no number or too far away are where PyTorch's CPU kernels read, which differ for images and
  /// volumes; the nearest element is found of what is reflected already.
  bool isAsPyTorch = false;
};

/// The elements of `x` [N, C, D..] at the positions `grid` [N, P.., dims], which are in [-1, 1] inside of the image.
mlir::FailureOr<mlir::Value> emitGridSample(NodeContext &ctx, mlir::Value x, mlir::Value grid,
                                            const GridOptions &options);

} // namespace tc

#endif // TC_LIB_CONVERSION_GRAPHTOPRIM_SAMPLE_H
