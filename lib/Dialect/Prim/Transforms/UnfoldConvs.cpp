//===- UnfoldConvs.cpp - convolutions whose filter only the run knows, as matrix products -------------------------===//
//
// A constant filter is packed when the model is compiled; one that is computed, as in networks that modulate their
// filters, or given, as in training graphs, cannot be. Products pack such an operand while they run:
//
//   conv(x, w)  ->  reshape(dot(concat(slice(pad(x)), ..), reshape(w)))
//
// one slice for each kernel position, side by side: the rows of a matrix with a row for each pixel. Groups are batch
// dims of the product. The sums have the same products in the same order.
//
// Convolutions of few channels a group stay as they are, those of many kernel positions (the gradients of filters) or
// many pixels, for which the matrix would be large, and small ones.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

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
  if (!channels || !outputs || *channels < kLeastChannels || *outputs / groups < kLeastOutputs)
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
  const double elements = rows * double(taps) * double(*channels) * double(groups);
  if (taps > kMostTaps || elements > kMostElements || 2 * elements * double(*outputs) / double(groups) < kLeastFlops)
    return {};

  // [N, S.., C], with zeros around.
  Value x = op.getInput();
  Sizes padded(in), low(in.size(), b.size(0));
  for (size_t i = 0; i < spatial; ++i) {
    low[i + 1] = b.size(op.getPadLow()[i]);
    padded[i + 1] = simplifySize(in[i + 1] + op.getPadLow()[i] + op.getPadHigh()[i]);
  }
  if (padded != in)
    x = b.pad(x, b.scalar(b.getF32Type(), 0), low, padded);

  // Each kernel position's: [N, P.., C] as [groups, pixels, channels]. Groups come first: rows of all of them side by
  // side would lie so far apart that products copy them.
  Sizes pixels(out);
  pixels.pop_back();
  const AffineExpr count = product(b.getContext(), pixels);
  Sizes picture(pixels);
  picture.push_back(in.back());
  SmallVector<int64_t> steps{1};
  llvm::append_range(steps, op.getStrides());
  steps.push_back(1);
  SmallVector<Value> columns;
  for (int64_t tap = 0; tap < taps; ++tap) {
    Sizes starts(in.size(), b.size(0));
    int64_t rest = tap;
    for (size_t i = spatial; i-- > 0;) {
      const int64_t size = *getConstantSize(filter[i]);
      starts[i + 1] = b.size(rest % size * op.getDilations()[i]);
      rest /= size;
    }
    const Value window = b.slice(x, starts, steps, picture);
    columns.push_back(groups == 1
                          ? b.reshape(window, {count, b.size(*channels)})
                          : b.transpose(b.reshape(window, {count, b.size(groups), b.size(*channels)}), {1, 0, 2}));
  }
  const int64_t depth = taps * *channels, each = *outputs / groups;
  const Value lhs = columns.size() == 1 ? columns.front() : b.concat(columns, groups == 1 ? 1 : 2);
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
