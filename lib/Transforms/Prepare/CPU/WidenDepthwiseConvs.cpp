//===- WidenDepthwiseConvs.cpp - depthwise convolutions whose channels fill vectors -------------------------------===//
//
// Lanes of a depthwise convolution are its channels. Two kinds have too few of them: of few channels, where the
// elements of a line take their place, and of several results for each channel in a number that divides no vector.
//
//   conv x [N, H, W, 3], filter [KH, 1, 1, 3], groups 3  ->  conv (reshape x [N, H, 1, W * 3]), filter repeated, groups
//   W * 3 conv x [N, H, W, C], filter [KH, KW, 1, 3 * C], groups C  ->  conv (x with each channel three times), groups
//   3 * C
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Prim/Utils/PrimBuilder.h"
#include "tc/Transforms/Prepare/CPU/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace tc::prepare {
#define GEN_PASS_DEF_WIDENDEPTHWISECONVSPASS
#include "tc/Transforms/Prepare/CPU/Passes.h.inc"
} // namespace tc::prepare

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

/// A depthwise convolution of few channels whose kernel does not reach along the last spatial dim is one of as many
/// channels as a line has elements, with the filter repeated: lanes for all of a vector.
struct JoinDepthwiseLine : OpRewritePattern<ConvOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConvOp op, PatternRewriter &rewriter) const override {
    constexpr int64_t kFewChannels = 16, kMostElements = 256 * 1024;
    const Sizes in = getSizes(op.getInput()), filter = getSizes(op.getFilter());
    const size_t spatial = op.getStrides().size(), last = spatial - 1;
    const std::optional<int64_t> width = getConstantSize(in[spatial]), channels = getConstantSize(in.back());
    auto constant = op.getFilter().getDefiningOp<prim::ConstantOp>();
    if (!constant || spatial < 2 || !width || !channels || *width < 2 || *channels >= kFewChannels ||
        int64_t(op.getGroups()) != *channels || getConstantSize(filter.back()) != *channels)
      return rewriter.notifyMatchFailure(op, "no depthwise convolution of few channels");
    if (getConstantSize(filter[last]) != 1 || op.getStrides()[last] != 1 || op.getPadLow()[last] != 0 ||
        op.getPadHigh()[last] != 0)
      return rewriter.notifyMatchFailure(op, "reaches along the line");
    const int64_t joined = *width * *channels;
    if (constant.getType().getNumElements() * *width > kMostElements)
      return rewriter.notifyMatchFailure(op, "the filter would be large");
    PrimBuilder b(rewriter, op);
    // Where the input is transposed anyway, the line stays in one piece: its channels one after another.
    const bool turns = op.getInput().getDefiningOp<TransposeOp>() != nullptr;
    SmallVector<int64_t> transposed = llvm::to_vector(llvm::seq<int64_t>(0, int64_t(in.size())));
    std::swap(transposed[spatial], transposed[spatial + 1]);
    Sizes lines(in), repeated(filter.begin(), filter.end() - 1), joinedFilter(repeated);
    lines.pop_back();
    lines.back() = b.size(1);
    lines.push_back(b.size(joined));
    joinedFilter.push_back(b.size(joined));
    repeated.append({b.size(turns ? *channels : *width), b.size(turns ? *width : *channels)});
    SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, int64_t(filter.size())));
    dims.back() += !turns;
    Value input = turns ? b.transpose(op.getInput(), transposed) : op.getInput();
    Value repeatedFilter = b.reshape(b.broadcastInDims(op.getFilter(), repeated, dims), joinedFilter);
    auto conv = ConvOp::create(rewriter, op.getLoc(), b.reshape(input, lines), repeatedFilter, op.getStrides(),
                               op.getDilations(), op.getPadLow(), op.getPadHigh(), joined);
    // Products of bytes are summed in wider integers.
    conv.getResult().setType(withElementType(conv.getType(), getElementTypeOrSelf(op.getType())));
    Value result = conv;
    Sizes out = getSizes(op.getResult());
    if (turns)
      std::swap(out[spatial], out[spatial + 1]);
    result = b.reshape(result, out);
    rewriter.replaceOp(op, turns ? b.transpose(result, transposed) : result);
    return success();
  }
};

/// A depthwise convolution with several results for each channel, in a number that divides no vector, is one of each
/// channel repeated: lanes along the results, and tasks that share no lines of them.
struct RepeatDepthwiseChannels : OpRewritePattern<ConvOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConvOp op, PatternRewriter &rewriter) const override {
    // From so many results on a channel's own fill most of a vector.
    constexpr int64_t kManyResults = 12, kVector = 16;
    const Sizes in = getSizes(op.getInput()), filter = getSizes(op.getFilter());
    const std::optional<int64_t> channels = getConstantSize(in.back()), results = getConstantSize(filter.back());
    if (!channels || !results || int64_t(op.getGroups()) != *channels || *results < kVector)
      return rewriter.notifyMatchFailure(op, "no depthwise convolution");
    const int64_t each = *results / *channels;
    if (each < 2 || each >= kManyResults || kVector % each == 0)
      return rewriter.notifyMatchFailure(op, "its results fill vectors");
    PrimBuilder b(rewriter, op);
    Sizes repeated(in), joined(in);
    repeated.push_back(b.size(each));
    joined.back() = b.size(*results);
    const SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, int64_t(in.size())));
    rewriter.replaceOpWithNewOp<ConvOp>(
        op, op.getType(), b.reshape(b.broadcastInDims(op.getInput(), repeated, dims), joined), op.getFilter(),
        op.getStrides(), op.getDilations(), op.getPadLow(), op.getPadHigh(), *results);
    return success();
  }
};

struct WidenDepthwiseConvsPass : public tc::prepare::impl::WidenDepthwiseConvsPassBase<WidenDepthwiseConvsPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<JoinDepthwiseLine, RepeatDepthwiseChannels>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
