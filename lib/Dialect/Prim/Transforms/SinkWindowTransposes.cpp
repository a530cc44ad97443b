//===- SinkWindowTransposes.cpp - pooling where the image lies ----------------------------------------------------===//
//
// A window reduction has its channels last, but does not mix them: an image whose channels are first in memory is as
// many images of one channel. Behind tc-canonicalize-prim a transpose before a window stands for data that lie so (the
// image comes from the caller, or from what keeps channels first); it moves behind the window:
//
//   %a = prim.transpose %x [0, 2, 3, 1]           %a = prim.reshape %x            [N * C, H, W, 1]
//   %y = prim.window_reduce max %a         -->    %b = prim.window_reduce max %a
//                                                 %c = prim.reshape %b            [N, C, T, U]
//                                                 %y = prim.transpose %c [0, 2, 3, 1]
//
// where it meets its inverse, or turns fewer elements than before. Through elementwise ops it goes on to the next
// window: what is dilated, and then eroded as the dilation of its negative.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Prim/Transforms/Passes.h"
#include "tc/Dialect/Prim/Utils/ChannelOrder.h"
#include "tc/Dialect/Prim/Utils/PrimBuilder.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace tc::prim {
#define GEN_PASS_DEF_SINKWINDOWTRANSPOSESPASS
#include "tc/Dialect/Prim/Transforms/Passes.h.inc"
} // namespace tc::prim

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

struct SinkThroughWindow : OpRewritePattern<WindowReduceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(WindowReduceOp op, PatternRewriter &rewriter) const override {
    auto transpose = op.getOperand().getDefiningOp<TransposeOp>();
    // What others read channels last is transposed anyway.
    if (!transpose || !transpose->hasOneUse())
      return rewriter.notifyMatchFailure(op, "no transpose of its own");
    const ArrayRef<int64_t> permutation = transpose.getPermutation();
    // From [N, C, S..], or from [C, N, S..], which are as many images.
    SmallVector<int64_t> fromBatch(permutation);
    if (fromBatch.front() == 1)
      std::swap(fromBatch.front(), fromBatch.back());
    if (!isToChannelsLast(fromBatch))
      return rewriter.notifyMatchFailure(op, "no transpose from channels first");
    PrimBuilder b(rewriter, op);
    const Sizes in = getSizes(transpose.getOperand()), out = getSizes(op.getResult());
    const AffineExpr images = simplifySize(in[0] * in[1]), one = b.size(1);
    // Images, the spatial dims, one channel; and with batch and channels apart.
    auto flat = [&](SizesRef spatial) {
      Sizes sizes{images};
      llvm::append_range(sizes, spatial);
      sizes.push_back(one);
      return sizes;
    };
    const SizesRef spatialOut = SizesRef(out).drop_front().drop_back();
    Sizes split{in[0], in[1]};
    llvm::append_range(split, spatialOut);
    Value image = b.reshape(transpose.getOperand(), flat(SizesRef(in).drop_front(2)));
    Value result = WindowReduceOp::create(b, makeType(b.elementOf(op.getResult()), flat(spatialOut)), op.getKind(),
                                          image, op.getWindow(), op.getStrides(), op.getDilations(), op.getPadLow());
    rewriter.replaceOp(op, b.transpose(b.reshape(result, split), permutation));
    return success();
  }
};

struct SinkWindowTransposesPass : public tc::prim::impl::SinkWindowTransposesPassBase<SinkWindowTransposesPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<SinkThroughWindow>(&getContext());
    populateSinkThroughElementwise(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
