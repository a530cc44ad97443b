//===- UnfoldConvs.cpp - convolutions whose filter only the run knows, as matrix products -------------------------===//
//
// A constant filter is packed when the model is compiled; one that is computed, as in networks that modulate their
// filters, or given, as in training graphs, cannot be. Products pack such an operand while they run:
//
//   conv(x, w)  ->  reshape(dot(concat(slice(pad(x)), ..), reshape(w)))
//
// one slice for each kernel position, side by side: the rows of a matrix with a row for each pixel. Groups are batch
// dims of the product. Of an image of few channels, which come first, the slices lie one behind the other, and the
// product has a row for each channel of the result. The sums have the same products in the same order.
//
// Convolutions of few channels a group or few outputs of one stay as they are, those of many kernel positions (the
// gradients of filters) or many pixels, for which the matrix would be large, and small ones.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ChannelOrder.h"
#include "Computed.h"
#include "tc/Dialect/Prim/Transforms/Passes.h"
#include "tc/Dialect/Prim/Utils/PrimBuilder.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tc::prim {
#define GEN_PASS_DEF_UNFOLDCONVSPASS
#include "tc/Dialect/Prim/Transforms/Passes.h.inc"
} // namespace tc::prim

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

// Kernel positions at most, channels of a group at least, in the operand and in the result, and flops from which
// launches of their own are worth it.
constexpr int64_t kMostTaps = 64, kLeastChannels = 2, kLeastOutputs = 8;
constexpr double kLeastFlops = 200e3;
// So many channels of a group, times kernel positions, are worth it for fewer outputs.
constexpr int64_t kManyChannels = 16;
// Slices of so few channels are too short to lie side by side, as long as there are not too many: of 3 channels with
// 3x3 positions the first way takes a quarter of the time, with 5x5 as long, with 7x7 1.6 times as long (Zen 5).
constexpr int64_t kFewChannels = 7, kMostFirst = 64;
// Elements of the matrix at most: half a gigabyte.
constexpr double kMostElements = 128e6;

/// The convolution's result by a product; null: it stays as it is.
Value unfold(PrimBuilder &b, ConvOp op) {
  const Sizes in = getSizes(op.getInput()), filter = getSizes(op.getFilter()), out = getSizes(op.getResult());
  const size_t spatial = op.getStrides().size();
  const auto groups = int64_t(op.getGroups());
  const std::optional<int64_t> channels = getConstantSize(filter[spatial]), outputs = getConstantSize(filter.back());
  for (Value value : {op.getInput(), op.getFilter(), op.getResult()})
    if (!b.elementOf(value).isF32())
      return {};
  if (!channels || !outputs || *channels < kLeastChannels)
    return {};
  int64_t taps = 1;
  double rows = double(getConstantSize(out.front()).value_or(1));
  for (size_t i = 0; i < spatial; ++i) {
    const std::optional<int64_t> size = getConstantSize(filter[i]);
    if (!size || *size < 1 || *size > kMostTaps || op.getPadLow()[i] < 0 || op.getPadHigh()[i] < 0)
      return {};
    taps *= *size;
    rows *= double(getConstantSize(out[i + 1]).value_or(64));
  }
  if (*outputs / groups < kLeastOutputs && (groups == 1 || *channels * taps < kManyChannels))
    return {};
  const double elements = rows * double(taps) * double(*channels) * double(groups);
  if (taps > kMostTaps || elements > kMostElements || 2 * elements * double(*outputs) / double(groups) < kLeastFlops)
    return {};

  // [N, S.., C] or, of few channels, [N, C, S..], with zeros around.
  Value x = op.getInput();
  auto turned = x.getDefiningOp<TransposeOp>();
  const bool isFirst = groups == 1 && *channels <= kFewChannels && taps * *channels <= kMostFirst && turned &&
                       isToChannelsLast(turned.getPermutation());
  if (isFirst)
    x = turned.getOperand();
  const size_t firstSpatial = isFirst ? 2 : 1;
  Sizes padded = getSizes(x), low(in.size(), b.size(0));
  for (size_t i = 0; i < spatial; ++i) {
    low[firstSpatial + i] = b.size(op.getPadLow()[i]);
    padded[firstSpatial + i] = simplifySize(in[i + 1] + op.getPadLow()[i] + op.getPadHigh()[i]);
  }
  if (padded != getSizes(x))
    x = b.pad(x, b.scalar(b.getF32Type(), 0), low, padded);

  // Each kernel position's: [N, P.., C] as [groups, pixels, channels]. Groups come first: rows of all of them side by
  // side would lie so far apart that products copy them.
  Sizes pixels(out);
  pixels.pop_back();
  const AffineExpr count = product(b.getContext(), pixels);
  Sizes picture(pixels);
  SmallVector<int64_t> steps{1};
  llvm::append_range(steps, op.getStrides());
  picture.insert(isFirst ? picture.begin() + 1 : picture.end(), in.back());
  steps.insert(isFirst ? steps.begin() + 1 : steps.end(), 1);
  SmallVector<Value> columns;
  for (int64_t tap = 0; tap < taps; ++tap) {
    Sizes starts(in.size(), b.size(0));
    int64_t rest = tap;
    for (size_t i = spatial; i-- > 0;) {
      const int64_t size = *getConstantSize(filter[i]);
      starts[firstSpatial + i] = b.size(rest % size * op.getDilations()[i]);
      rest /= size;
    }
    const Value window = b.slice(x, starts, steps, picture);
    if (isFirst) {
      columns.push_back(window);
      continue;
    }
    columns.push_back(groups == 1
                          ? b.reshape(window, {count, b.size(*channels)})
                          : b.transpose(b.reshape(window, {count, b.size(groups), b.size(*channels)}), {1, 0, 2}));
  }
  const int64_t depth = taps * *channels, each = *outputs / groups;
  const Value lhs = columns.size() == 1 ? columns.front() : b.concat(columns, groups == 1 ? 1 : 2);
  if (isFirst) { // [N, depth, P..]
    const Value filters = b.transpose(b.reshape(op.getFilter(), {b.size(depth), b.size(each)}), {1, 0});
    const Value rows = b.broadcastInDims(filters, {in.front(), b.size(each), b.size(depth)}, {1, 2});
    const Value flat =
        b.reshape(lhs, {in.front(), b.size(depth), product(b.getContext(), SizesRef(pixels).drop_front())});
    const Value result = DotGeneralOp::create(b, rows, flat, ArrayRef<int64_t>{0}, ArrayRef<int64_t>{0},
                                              ArrayRef<int64_t>{2}, ArrayRef<int64_t>{1});
    Sizes first{in.front(), out.back()};
    llvm::append_range(first, SizesRef(pixels).drop_front());
    return b.transpose(b.reshape(result, first), turned.getPermutation());
  }
  if (groups == 1) {
    const Value rhs = b.reshape(op.getFilter(), {b.size(depth), b.size(each)});
    return b.reshape(DotGeneralOp::create(b, lhs, rhs, ArrayRef<int64_t>{}, ArrayRef<int64_t>{}, ArrayRef<int64_t>{1},
                                          ArrayRef<int64_t>{0}),
                     out);
  }
  const Value rhs = b.reshape(op.getFilter(), {b.size(depth), b.size(groups), b.size(each)});
  const Value product = DotGeneralOp::create(b, lhs, rhs, ArrayRef<int64_t>{0}, ArrayRef<int64_t>{1},
                                             ArrayRef<int64_t>{2}, ArrayRef<int64_t>{0});
  return b.reshape(b.transpose(product, {1, 0, 2}), out);
}

struct UnfoldConvsPass : public tc::prim::impl::UnfoldConvsPassBase<UnfoldConvsPass> {
  using UnfoldConvsPassBase::UnfoldConvsPassBase;

  void runOnOperation() override {
    const llvm::DenseSet<Value> computed = collectComputed(getOperation());
    SmallVector<ConvOp> convolutions;
    getOperation().walk([&](ConvOp conv) {
      if (computed.contains(conv.getFilter()))
        convolutions.push_back(conv);
    });
    for (ConvOp conv : convolutions) {
      OpBuilder builder(conv);
      PrimBuilder b(builder, conv);
      if (Value result = unfold(b, conv)) {
        conv.getResult().replaceAllUsesWith(result);
        conv.erase();
      }
    }
  }
};

} // namespace
