//===- SplitTransposedConvs.cpp - transposed convolutions by the phases of their results --------------------------===//
//
// A transposed convolution of stride s arrives as a convolution of the operand with s - 1 zeros behind each element:
// all but 1 / s of its products along that dim are products with zero. Result u = s q + r reads elements q, q + 1, ..
// with every s-th element of the filter only, from s - 1 - r on, so the s results of each q are s channels of one
// convolution of the operand itself, with a filter of ceil(K / s) elements:
//
//   conv(spread(x, s), w)  ->  slice(interleave(conv(x, w')))
//
// where w' has s times as many output channels and zeros where s does not divide K. Sums have the same products in the
// same order. Source: Shi et al., "Is the deconvolution layer the same as a convolutional layer?", section 3.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Prim/Transforms/Passes.h"
#include "tc/Dialect/Prim/Utils/PrimBuilder.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace tc::prim {
#define GEN_PASS_DEF_SPLITTRANSPOSEDCONVSPASS
#include "tc/Dialect/Prim/Transforms/Passes.h.inc"
} // namespace tc::prim

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

/// An operand [N, S.., C] with zeros behind each element.
struct Spread {
  Value operand; // [N, S1, 1, S2, 1, .., C]
  Sizes sizes;   // [N, S.., C]
  SmallVector<int64_t> strides;
};

/// Matches reshape(pad([N, S1, 1, S2, 1, .., C] to [N, S1, s1, S2, s2, .., C])).
std::optional<Spread> matchSpread(Value input) {
  auto joined = input.getDefiningOp<ReshapeOp>();
  auto pad = joined ? joined.getOperand().getDefiningOp<PadOp>() : PadOp();
  if (!pad || getSplatValue(pad.getValue()) != 0.0)
    return std::nullopt;
  const Sizes whole = getSizes(input), from = getSizes(pad.getOperand()), to = getSizes(pad.getResult());
  const size_t spatial = whole.size() - 2;
  if (from.size() != 2 * spatial + 2 ||
      llvm::any_of(pad.getLow().getResults(), [](AffineExpr low) { return getConstantSize(low) != 0; }))
    return std::nullopt;
  Spread spread{pad.getOperand(), {from.front()}, {}};
  for (size_t i = 0; i < spatial; ++i) {
    const AffineExpr size = from[2 * i + 1];
    const std::optional<int64_t> stride = getConstantSize(to[2 * i + 2]);
    if (getConstantSize(from[2 * i + 2]) != 1 || !stride || *stride < 1 || to[2 * i + 1] != size ||
        whole[i + 1] != simplifySize(size * *stride))
      return std::nullopt;
    spread.sizes.push_back(size);
    spread.strides.push_back(*stride);
  }
  if (to.front() != from.front() || to.back() != from.back() || whole.front() != from.front() ||
      whole.back() != from.back())
    return std::nullopt;
  spread.sizes.push_back(from.back());
  return spread;
}

struct SplitPhases : OpRewritePattern<ConvOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConvOp op, PatternRewriter &rewriter) const override {
    const std::optional<Spread> spread = matchSpread(op.getInput());
    const Sizes filter = getSizes(op.getFilter()), result = getSizes(op.getResult());
    const std::optional<int64_t> perGroup = getConstantSize(filter[filter.size() - 2]);
    auto isOne = [](int64_t value) { return value == 1; };
    if (!spread || !llvm::all_of(op.getStrides(), isOne) || !llvm::all_of(op.getDilations(), isOne))
      return rewriter.notifyMatchFailure(op, "no plain convolution of an operand spread out with zeros");
    if (op.getGroups() > 1 && perGroup == 1)
      return rewriter.notifyMatchFailure(op, "one channel for each group: no matrix product, with or without phases");
    PrimBuilder b(rewriter, op);
    const size_t spatial = spread->strides.size();
    const int64_t groups = op.getGroups();
    const AffineExpr outputs = simplifySize(filter.back().floorDiv(groups));
    AffineExpr channels = outputs; // of a group, with all phases

    // Filter: [K.., C, g O] -> [T, s, T, s, .., C, g, O], s turned round -> [T.., C, g, s.., O] -> [T.., C, g s.. O]
    Sizes padded, split, starts;
    SmallVector<int64_t> taps, turn, order, steps;
    for (size_t i = 0; i < spatial; ++i) {
      const std::optional<int64_t> kernel = getConstantSize(filter[i]);
      if (!kernel || *kernel < 1)
        return rewriter.notifyMatchFailure(op, "a filter of unknown size");
      const int64_t stride = spread->strides[i];
      taps.push_back(llvm::divideCeil(*kernel, stride));
      padded.push_back(b.size(taps[i] * stride));
      split.append({b.size(taps[i]), b.size(stride)});
      starts.append({b.size(0), b.size(stride - 1)});
      steps.append({1, -1});
      channels = simplifySize(channels * stride);
    }
    padded.append({filter[spatial], filter[spatial + 1]});
    split.append({filter[spatial], b.size(groups), outputs});
    starts.append(3, b.size(0));
    steps.append(3, 1);
    Sizes filterSizes;
    for (size_t i = 0; i < spatial; ++i) {
      order.push_back(2 * i);
      filterSizes.push_back(b.size(taps[i]));
    }
    order.append({int64_t(2 * spatial), int64_t(2 * spatial + 1)});
    for (size_t i = 0; i < spatial; ++i)
      order.push_back(2 * i + 1);
    order.push_back(2 * spatial + 2);
    filterSizes.append({filter[spatial], simplifySize(channels * groups)});
    Value w = b.pad(op.getFilter(), b.scalar(b.elementOf(op.getFilter()), 0), Sizes(padded.size(), b.size(0)), padded);
    w = b.slice(b.reshape(w, split), starts, steps, split);
    w = b.reshape(b.transpose(w, order), filterSizes);

    // Positions: u = o - padLow + s - 1 for result o; q from that of the first result to that of the last one.
    SmallVector<int64_t> ones(spatial, 1), low, high;
    Sizes phases{result.front()}, joined{result.front()}, cut{b.size(0)};
    bool isWhole = true;
    for (size_t i = 0; i < spatial; ++i) {
      const int64_t stride = spread->strides[i], kernel = *getConstantSize(filter[i]), padLow = op.getPadLow()[i],
                    padHigh = op.getPadHigh()[i];
      const int64_t first = llvm::divideFloorSigned(stride - 1 - padLow, stride);
      // The operand's size less the last q, which is the same for all sizes.
      const int64_t beyond = -llvm::divideFloorSigned(stride - 1 + padHigh - kernel, stride);
      low.push_back(-first);
      high.push_back(taps[i] - beyond);
      const AffineExpr count = simplifySize(spread->sizes[i + 1] + (1 - beyond - first));
      phases.push_back(count);
      joined.push_back(simplifySize(count * stride));
      cut.push_back(b.size(stride - 1 - padLow - stride * first));
      isWhole &= joined.back() == result[i + 1];
    }
    Value y = ConvOp::create(b, b.reshape(spread->operand, spread->sizes), w, ones, ones, low, high, groups);
    // [N, Q.., g s.. O] -> [N, Q.., g, s.., O] -> [N, Q, s, Q, s, .., g, O] -> [N, Q s.., g O]
    Sizes apart = phases;
    apart.push_back(b.size(groups));
    for (int64_t stride : spread->strides)
      apart.push_back(b.size(stride));
    apart.push_back(outputs);
    turn.push_back(0);
    for (size_t i = 0; i < spatial; ++i)
      turn.append({int64_t(1 + i), int64_t(2 + spatial + i)});
    turn.append({int64_t(1 + spatial), int64_t(2 + 2 * spatial)});
    joined.push_back(result.back());
    y = b.reshape(b.transpose(b.reshape(y, apart), turn), joined);
    if (!isWhole) {
      cut.push_back(b.size(0));
      y = b.slice(y, cut, SmallVector<int64_t>(spatial + 2, 1), result);
    }
    rewriter.replaceOp(op, y);
    return success();
  }
};

struct SplitTransposedConvsPass : public tc::prim::impl::SplitTransposedConvsPassBase<SplitTransposedConvsPass> {
  using SplitTransposedConvsPassBase::SplitTransposedConvsPassBase;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<SplitPhases>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
