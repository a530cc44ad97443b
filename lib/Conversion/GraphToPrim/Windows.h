//===- Windows.h - convolutions and pools of all front ends ---------------------------------------------*- C++ -*-===//
//
// Operands are channels-first here, [N, C, spatial..], as in ONNX and PyTorch; prim is channels-last, so that each
// operator stands between two transposes, which tc-canonicalize-prim cancels between layers.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CONVERSION_GRAPHTOPRIM_WINDOWS_H
#define TC_LIB_CONVERSION_GRAPHTOPRIM_WINDOWS_H

#include "NodeContext.h"

namespace tc {

/// Strides, dilations and pads of a convolution or pool, defaults and auto_pad resolved.
struct Window {
  llvm::SmallVector<int64_t> strides, dilations, padLow, padHigh;
  /// Pads that depend on sizes which only the run knows (auto_pad), one for each dim: emitPads puts them around the
  /// operand, and padLow and padHigh are 0. Empty: there are none.
  Sizes emittedLow, emittedHigh;

  mlir::AffineExpr low(PrimBuilder &b, size_t i) const {
    return emittedLow.empty() ? b.size(padLow[i]) : emittedLow[i];
  }
  mlir::AffineExpr high(PrimBuilder &b, size_t i) const {
    return emittedHigh.empty() ? b.size(padHigh[i]) : emittedHigh[i];
  }
};
/// How many elements a window of `kernel` elements in spatial dim `i` spans.
inline mlir::AffineExpr getExtent(const Window &window, size_t i, mlir::AffineExpr kernel) {
  return prim::simplifySize((kernel - 1) * window.dilations[i] + 1);
}
/// `x` [N, C, ..] with the window's emitted pads, filled with `value` (0-D).
mlir::Value emitPads(PrimBuilder &b, mlir::Value x, const Window &window, mlir::Value value);
/// `v` [C] added to (or multiplied with) the dim `axis` of a tensor of these sizes: broadcast there.
mlir::FailureOr<mlir::Value> broadcastAlong(NodeContext &ctx, mlir::Value v, int64_t axis, SizesRef sizes);

/// The convolution of `x` with the filters `w` [O, C / groups, kernel..], and `bias` [O], which may be null. `kernel`:
/// the spatial sizes of `w`.
mlir::FailureOr<mlir::Value> emitConv(NodeContext &ctx, mlir::Value x, mlir::Value w, mlir::Value bias, SizesRef kernel,
                                      const Window &window, int64_t groups);

/// A pool's window and the spatial sizes of its result.
struct Pool {
  Window window;
  llvm::SmallVector<int64_t> kernel;
  Sizes sizes;
};
/// `reachesOut`: a window may begin inside the operand and reach beyond its end (ceil_mode).
mlir::FailureOr<Pool> makePool(NodeContext &ctx, mlir::Value x, llvm::ArrayRef<int64_t> kernel, const Window &window,
                               bool reachesOut);
/// `v` [N, spatial.., C] reduced over the pool's windows.
mlir::Value windowReduce(PrimBuilder &b, prim::ReduceKind kind, mlir::Value v, const Pool &pool,
                         llvm::ArrayRef<int64_t> padLow);
mlir::Value emitMaxPool(PrimBuilder &b, mlir::Value x, const Pool &pool);

/// (x - mean) / sqrt(variance + epsilon) * scale + bias, where scale and bias may be null. `spread` broadcasts a
/// statistic onto x.
mlir::FailureOr<mlir::Value> emitBatchNorm(NodeContext &ctx, mlir::Value x, mlir::Value scale, mlir::Value bias,
                                           mlir::Value mean, mlir::Value variance, double epsilon,
                                           llvm::function_ref<mlir::FailureOr<mlir::Value>(mlir::Value)> spread);

} // namespace tc

#endif // TC_LIB_CONVERSION_GRAPHTOPRIM_WINDOWS_H
