//===- SplitTransposedConvs.cpp - transposed convolutions by the phases of their results --------------------------===//
//
// A transposed convolution of stride s arrives as a convolution of the operand with s - 1 zeros behind each element:
// all but 1 / s of its products along that dim are products with zero. Result u = s q + r reads elements q, q + 1, ..
// with every s-th element of the filter only, from s - 1 - r on, so the s results of each q are s channels of one
// convolution of the operand itself, with a filter of ceil(K / s) elements:
//
//   conv(spread(x, s), w)  ->  slice(interleave(conv(x, w')))
//
// where w' has s times as many output channels and zeros where s does not divide K. Where these zeros, or the positions
// at the edges that the slice cuts off, cost more than a pass over the result, each phase is a convolution of its own:
//
//   conv(spread(x, s), w)  ->  interleave(conv(x, w[k0 :: s]), ..)
//
// A filter of dilation d is cut in phases of every s / g-th element, g = gcd(s, d), which lie d / g apart in the
// operand. Its windows differ between phases, so each is a convolution of its own; results that no product reaches are
// zeros.
//
// Sums have the same products in the same order. Source: Shi et al., "Is the deconvolution layer the same as a
// convolutional layer?", section 3.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Analysis/LikelySizes.h"
#include "tc/Dialect/Prim/Transforms/Passes.h"
#include "tc/Dialect/Prim/Utils/PrimBuilder.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <functional>
#include <numeric>

namespace tc::prim {
#define GEN_PASS_DEF_SPLITTRANSPOSEDCONVSPASS
#include "tc/Dialect/Prim/Transforms/Passes.h.inc"
} // namespace tc::prim

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

// Products with zeros and of positions that are cut off, over all that count, from which each phase is a convolution of
// its own: that costs a pass over the result, which is needed anyway where positions are cut off.
constexpr double kLeastWaste = 1.25, kLeastWasteAtEdges = 1.05;
// Phases that are worth a convolution each: so many output channels, and so many flops saved by all.
constexpr int64_t kLeastChannels = 16, kMostPhases = 8;
constexpr double kLeastSaved = 400e3;

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

/// Along one dim: result o = s j + phase is the sum over t of operand[j - low + dilation t] * filter[start + step t].
struct Phase {
  int64_t start, taps, low, high;
};
struct Phases {
  int64_t step, dilation;
  /// Results of each; those behind the last one are cut off.
  AffineExpr count;
  SmallVector<Phase> phases;
};

/// The phases along dim `i` if all of them begin within the operand's padding.
std::optional<Phases> phasesOf(ConvOp op, const Spread &spread, unsigned i) {
  const int64_t stride = spread.strides[i], dilation = op.getDilations()[i], padLow = op.getPadLow()[i];
  const std::optional<int64_t> kernel = getConstantSize(getSizes(op.getFilter())[i]);
  const AffineExpr result = getSizes(op.getResult())[i + 1];
  const int64_t common = std::gcd(stride, dilation);
  Phases all{stride / common, dilation / common, simplifySize((result + (stride - 1)).floorDiv(stride)), {}};
  const std::optional<int64_t> beyond = getConstantSize(simplifySize(all.count - spread.sizes[i + 1]));
  if (!kernel || !beyond)
    return std::nullopt;
  for (int64_t phase = 0; phase < stride; ++phase) {
    // The first element whose product is not with a zero, if there is one.
    int64_t start = 0;
    while (start < std::min(all.step, *kernel) && (padLow - phase - dilation * start) % stride != 0)
      ++start;
    if (start >= std::min(all.step, *kernel)) {
      all.phases.push_back({0, 0, 0, 0});
      continue;
    }
    const int64_t taps = llvm::divideCeil(*kernel - start, all.step),
                  low = (padLow - phase - dilation * start) / stride;
    const int64_t high = *beyond + (taps - 1) * all.dilation - low;
    if (low < 0 || high < 0)
      return std::nullopt;
    all.phases.push_back({start, taps, low, high});
  }
  return all;
}

struct SplitPhases : OpRewritePattern<ConvOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConvOp op, PatternRewriter &rewriter) const override {
    const std::optional<Spread> spread = matchSpread(op.getInput());
    const Sizes filter = getSizes(op.getFilter()), result = getSizes(op.getResult());
    const std::optional<int64_t> perGroup = getConstantSize(filter[filter.size() - 2]);
    auto isOne = [](int64_t value) { return value == 1; };
    if (!spread || !llvm::all_of(op.getStrides(), isOne))
      return rewriter.notifyMatchFailure(op, "no plain convolution of an operand spread out with zeros");
    if (op.getGroups() > 1 && perGroup == 1)
      return rewriter.notifyMatchFailure(op, "one channel for each group: no matrix product, with or without phases");
    const bool isDilated = !llvm::all_of(op.getDilations(), isOne);
    if (succeeded(splitPhases(op, *spread, isDilated, rewriter)))
      return success();
    if (isDilated)
      return rewriter.notifyMatchFailure(op, "the windows of its phases differ");
    PrimBuilder b(rewriter, op);
    const size_t spatial = spread->strides.size();
    const int64_t groups = op.getGroups();
    const AffineExpr outputs = simplifySize(filter.back().floorDiv(groups));
    AffineExpr channels = outputs; // of a group, with all phases

    // Filter: [K.., C, g O] -> [T, s, T, s, .., C, g, O], s reversed -> [T.., C, g, s.., O] -> [T.., C, g s.. O]
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
    Sizes blocks = phases;
    blocks.push_back(b.size(groups));
    for (int64_t stride : spread->strides)
      blocks.push_back(b.size(stride));
    blocks.push_back(outputs);
    turn.push_back(0);
    for (size_t i = 0; i < spatial; ++i)
      turn.append({int64_t(1 + i), int64_t(2 + spatial + i)});
    turn.append({int64_t(1 + spatial), int64_t(2 + 2 * spatial)});
    joined.push_back(result.back());
    y = b.reshape(b.transpose(b.reshape(y, blocks), turn), joined);
    if (!isWhole) {
      cut.push_back(b.size(0));
      y = b.slice(y, cut, SmallVector<int64_t>(spatial + 2, 1), result);
    }
    rewriter.replaceOp(op, y);
    return success();
  }

  /// A convolution for each phase, if one of all phases wastes more, or cannot be.
  static LogicalResult splitPhases(ConvOp op, const Spread &spread, bool isDilated, PatternRewriter &rewriter) {
    const Sizes filter = getSizes(op.getFilter()), result = getSizes(op.getResult());
    const size_t spatial = spread.strides.size();
    SmallVector<Phases> dims;
    double waste = 1, work = 2;
    int64_t count = 1;
    bool isWhole = true, isCut = false, isFull = true;
    for (size_t i = 0; i < spatial; ++i) {
      std::optional<Phases> phases = phasesOf(op, spread, i);
      if (!phases)
        return rewriter.notifyMatchFailure(op, "its phases begin or end inside the operand");
      const int64_t stride = spread.strides[i], kernel = *getConstantSize(filter[i]);
      int64_t most = 0, first = phases->phases.front().low, last = first;
      for (const Phase &phase : phases->phases) {
        most = std::max(most, phase.taps);
        first = std::min(first, phase.low);
        last = std::max(last, phase.low);
        isFull &= phase.taps > 0;
      }
      // One window for all phases begins with the lowest of theirs: where they differ there are more positions.
      const double results = double(getLikelySize(result[i + 1], op)) / double(stride);
      waste *= (results + double(last != first)) / results * double(most * stride) / double(kernel);
      work *= results * double(kernel);
      isWhole &= last == first;
      isCut |= simplifySize(phases->count * stride) != result[i + 1];
      count *= stride;
      dims.push_back(*phases);
    }
    work *= getLikelyCount({result.front(), filter[spatial], filter[spatial + 1]}, op, usual::kImages);
    const int64_t channels = getConstantSize(filter[spatial + 1]).value_or(0) / op.getGroups();
    // Dilated, the other way is to multiply all the zeros.
    const double saved = work * (isDilated ? double(count - 1) : waste - 1);
    if (count > kMostPhases || saved < kLeastSaved ||
        (!isDilated && (!isFull || channels < kLeastChannels || waste < (isWhole ? kLeastWaste : kLeastWasteAtEdges))))
      return rewriter.notifyMatchFailure(op, "one convolution of all phases wastes little");
    PrimBuilder b(rewriter, op);
    Value x = b.reshape(spread.operand, spread.sizes);
    Sizes split{result.front()}, joined{result.front()}; // [N, Q, 1, Q, 1, .., C], [N, Q s, Q s, .., C]
    for (size_t i = 0; i < spatial; ++i) {
      split.append({dims[i].count, b.size(1)});
      joined.push_back(simplifySize(dims[i].count * spread.strides[i]));
    }
    split.push_back(result.back());
    joined.push_back(result.back());
    SmallVector<Phase> chosen;
    // The phases of the dims from `i` on, side by side: [N, Q, 1, .., Q, s, .., C].
    std::function<Value(size_t)> build = [&](size_t i) -> Value {
      if (i < spatial) {
        SmallVector<Value> parts;
        for (const Phase &phase : dims[i].phases) {
          chosen.push_back(phase);
          parts.push_back(build(i + 1));
          chosen.pop_back();
        }
        return b.concat(parts, int64_t(2 * i + 2));
      }
      if (llvm::any_of(chosen, [](const Phase &phase) { return phase.taps == 0; }))
        return b.splat(b.elementOf(op.getResult()), split, 0);
      Sizes starts, sizes;
      SmallVector<int64_t> steps, dilations, ones(spatial, 1), low, high;
      for (auto [phase, dim] : llvm::zip_equal(chosen, dims)) {
        starts.push_back(b.size(phase.start));
        sizes.push_back(b.size(phase.taps));
        steps.push_back(dim.step);
        dilations.push_back(dim.dilation);
        low.push_back(phase.low);
        high.push_back(phase.high);
      }
      starts.append(2, b.size(0));
      sizes.append({filter[spatial], filter[spatial + 1]});
      steps.append(2, 1);
      Value w = b.slice(op.getFilter(), starts, steps, sizes);
      return b.reshape(ConvOp::create(b, x, w, ones, dilations, low, high, op.getGroups()), split);
    };
    Value y = b.reshape(build(0), joined);
    if (isCut)
      y = b.slice(y, Sizes(joined.size(), b.size(0)), SmallVector<int64_t>(joined.size(), 1), result);
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
