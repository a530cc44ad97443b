//===- SplitWindows.cpp - long windows as windows of windows ------------------------------------------------------===//
//
// A window of K positions reads K elements for each of the result's. Neighbouring windows share most of them: where one
// dim of a window is long, short windows are reduced once for every position, and the long one combines those of them
// that make it up, about 2 sqrt(K) reads for each element:
//
//   %y = prim.window_reduce max %x window [1001]    -->   %s = prim.window_reduce max %x window [41]
//                                                         %y = prim.window_reduce max %s window [31] dilations [32]
//
// Maxima, minima and the like may count an element twice, so that one more step reaches the window's end. Sums and
// products must not: what the short windows leave over, the first elements, is reduced by itself. Applied again while
// it pays.
//
// Elements that are rounded between the steps would lose what one reduction keeps: f16 and bf16 are reduced in f32.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Prim/Transforms/Passes.h"
#include "tc/Dialect/Prim/Utils/PrimBuilder.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace tc::prim {
#define GEN_PASS_DEF_SPLITWINDOWSPASS
#include "tc/Dialect/Prim/Transforms/Passes.h.inc"
} // namespace tc::prim

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

// What writing and reading the elements between two steps costs, in reads of a window, for each of them.
constexpr int64_t kBetween = 8;
// Windows up to this length are not looked at.
constexpr int64_t kShort = 24;
// The best count is about the root of the length.
constexpr int64_t kMostParts = 1 << 12;

/// How a dim of a window is made of short windows of `length` elements, `count` of them, `step` elements after each
/// other, and `rest` single elements before them.
struct Split {
  int64_t length, count, step, rest;
};

/// The cheapest split of a window of `window` elements that moves by `stride`, counted in reads for each element of the
/// result; none if the whole window is about as cheap.
std::optional<Split> chooseSplit(int64_t window, int64_t stride, bool mayOverlap) {
  std::optional<Split> best;
  int64_t least = window * 2 / 3;
  for (int64_t count = 2; count <= std::min(window / 2, kMostParts); ++count) {
    const int64_t step = window / count, rest = mayOverlap ? 0 : window % count;
    const int64_t length = mayOverlap ? window - (count - 1) * step : step;
    const int64_t reads = stride * (length + kBetween) + count + (rest ? rest + kBetween : 0);
    if (reads < least) {
      least = reads;
      best = Split{length, count, step, rest};
    }
  }
  return best;
}

struct SplitLongWindow : OpRewritePattern<WindowReduceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(WindowReduceOp op, PatternRewriter &rewriter) const override {
    const ArrayRef<int64_t> window = op.getWindow(), strides = op.getStrides();
    const size_t dim = llvm::max_element(window) - window.begin();
    if (window.empty() || window[dim] <= kShort)
      return rewriter.notifyMatchFailure(op, "no long window");
    const ReduceKind kind = op.getKind();
    const bool mayOverlap = kind != ReduceKind::Sum && kind != ReduceKind::Prod;
    const std::optional<Split> split = chooseSplit(window[dim], strides[dim], mayOverlap);
    if (!split)
      return rewriter.notifyMatchFailure(op, "the window moves by much of its length");

    PrimBuilder b(rewriter, op);
    const Type element = b.elementOf(op.getResult()), compute = mayOverlap ? element : b.accumulatorOf(element);
    Value x = b.convert(op.getOperand(), compute);
    const int64_t dilation = op.getDilations()[dim], stride = strides[dim];
    const Sizes out = getSizes(op.getResult());
    // Single elements come first: then nothing begins behind the operand's end.
    const int64_t first = split->rest * dilation, reach = (split->count - 1) * split->step * dilation;

    // The short windows that begin at each position from that of the first window's first element on, along `dim`
    // alone.
    const SmallVector<int64_t> ones(window.size(), 1);
    SmallVector<int64_t> length(ones), distance(ones), low(window.size(), 0);
    length[dim] = split->length;
    distance[dim] = dilation;
    low[dim] = op.getPadLow()[dim];
    Sizes positions = getSizes(x);
    positions[dim + 1] = simplifySize((out[dim + 1] - 1) * stride + (first + reach + 1));
    Value parts = WindowReduceOp::create(b, makeType(compute, positions), kind, x, length, ones, distance, low);
    if (first)
      parts = b.sliceDim(parts, dim + 1, b.size(first), simplifySize(positions[dim + 1] - first));

    // `count` elements along `dim`, and the whole window along the others.
    auto combine = [&](Value v, int64_t count, int64_t by, int64_t padLow) -> Value {
      SmallVector<int64_t> counts(window), distances(op.getDilations()), pads(op.getPadLow());
      counts[dim] = count;
      distances[dim] = by;
      pads[dim] = padLow;
      return WindowReduceOp::create(b, makeType(compute, out), kind, v, counts, strides, distances, pads);
    };
    Value result = combine(parts, split->count, split->step * dilation, 0);
    if (split->rest) {
      Value rest = combine(x, split->rest, dilation, low[dim]);
      result = kind == ReduceKind::Prod ? b.mul(result, rest) : b.add(result, rest);
    }
    rewriter.replaceOp(op, b.convert(result, element));
    return success();
  }
};

struct SplitWindowsPass : public tc::prim::impl::SplitWindowsPassBase<SplitWindowsPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<SplitLongWindow>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
