//===- CanonicalizeShapes.cpp - reshapes, broadcasts, and taps that meet nothing but padding ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CanonicalizePrim.h"

#include "tc/Dialect/Prim/Utils/ChannelOrder.h"
#include "tc/Dialect/Prim/Utils/Indices.h"
#include "tc/Dialect/Prim/Utils/PrimBuilder.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {
/// A splat moved is a splat.
struct MoveSplat : RewritePattern {
  explicit MoveSplat(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}
  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!isa<ReshapeOp, TransposeOp, BroadcastOp, SliceOp>(op))
      return failure();
    auto splat = op->getOperand(0).getDefiningOp<SplatOp>();
    if (!splat)
      return failure();
    rewriter.replaceOpWithNewOp<SplatOp>(op, op->getResult(0).getType(), splat.getValue());
    return success();
  }
};

/// Unit dims of a broadcast's operand say nothing: they are dropped, so that its dims are those that it reads.
struct DropBroadcastUnitDims : OpRewritePattern<BroadcastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BroadcastOp op, PatternRewriter &rewriter) const override {
    Sizes kept;
    SmallVector<int64_t> dims;
    Sizes sizes = getSizes(op.getOperand());
    for (auto [size, dim] : llvm::zip_equal(sizes, op.getDims()))
      if (getConstantSize(size) != 1) {
        kept.push_back(size);
        dims.push_back(dim);
      }
    if (kept.size() == sizes.size())
      return failure();
    PrimBuilder b(rewriter, op);
    Value narrow = b.reshape(op.getOperand(), kept);
    rewriter.replaceOpWithNewOp<BroadcastOp>(op, op.getResult().getType(), narrow, dims);
    return success();
  }
};

/// A broadcast that only adds unit dims is a reshape.
struct BroadcastToReshape : OpRewritePattern<BroadcastOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(BroadcastOp op, PatternRewriter &rewriter) const override {
    Sizes in = getSizes(op.getOperand()), out = getSizes(op.getResult());
    size_t next = 0;
    for (auto [i, size] : llvm::enumerate(out)) {
      if (next < in.size() && op.getDims()[next] == int64_t(i)) {
        if (in[next++] != size)
          return failure();
      } else if (getConstantSize(size) != 1) {
        return failure();
      }
    }
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getResult().getType(), op.getOperand());
    return success();
  }
};

/// A scatter of elements along the outermost dim whose indices are the same everywhere else is one of slices.
struct ScatterElementsToSlices : OpRewritePattern<ScatterElementsOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ScatterElementsOp op, PatternRewriter &rewriter) const override {
    auto repeat = op.getIndices().getDefiningOp<BroadcastOp>();
    if (op.getAxis() != 0 || !repeat || repeat.getDims() != ArrayRef<int64_t>{0})
      return failure();
    const Sizes list = getSizes(repeat.getOperand()), all = getSizes(op.getIndices()), of = getSizes(op.getSource());
    if (list[0] != all[0] || ArrayRef(all).drop_front() != ArrayRef(of).drop_front() ||
        getSizes(op.getUpdates()) != all)
      return failure();
    PrimBuilder b(rewriter, op);
    rewriter.replaceOpWithNewOp<ScatterNDOp>(op, op.getResult().getType(), op.getSource(),
                                             b.unsqueeze(repeat.getOperand(), 1), op.getUpdates(), op.getKindAttr());
    return success();
  }
};

/// Convolutions of small images: taps at the ends of the kernel that lie outside of the input for every output element
/// leave the filter.
struct DropOuterTaps : OpRewritePattern<ConvOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConvOp op, PatternRewriter &rewriter) const override {
    PrimBuilder b(rewriter, op);
    const SmallVector<AffineExpr> input = getSizes(op.getInput()), out = getSizes(op.getResult());
    SmallVector<int64_t> low(op.getPadLow()), high(op.getPadHigh());
    Value filter = op.getFilter();
    for (size_t i = 0; i < low.size(); ++i) {
      auto in = getConstantSize(input[1 + i]), count = getConstantSize(out[1 + i]),
           kernel = getConstantSize(getSizes(filter)[i]);
      if (!in || !count || !kernel || *in < 1 || *count < 1 || *kernel < 2)
        continue;
      const int64_t stride = op.getStrides()[i], dilation = op.getDilations()[i];
      auto meets = [&](int64_t tap) {
        for (int64_t o = 0, at = tap * dilation - low[i]; o < *count && at < *in; ++o, at += stride)
          if (at >= 0)
            return true;
        return false;
      };
      int64_t first = 0, last = *kernel - 1;
      while (first < last && !meets(first) && low[i] >= (first + 1) * dilation)
        ++first;
      while (last > first && !meets(last) && high[i] >= (*kernel - last) * dilation)
        --last;
      if (last - first + 1 == *kernel)
        continue;
      filter = b.sliceDim(filter, i, b.size(first), b.size(last - first + 1));
      low[i] -= first * dilation;
      high[i] -= (*kernel - 1 - last) * dilation;
    }
    if (filter == op.getFilter())
      return failure();
    rewriter.replaceOpWithNewOp<ConvOp>(op, op.getType(), op.getInput(), filter, op.getStrides(), op.getDilations(),
                                        low, high, op.getGroups());
    return success();
  }
};

/// reshape(transpose(x)) where the transpose moves unit dims only is reshape(x).
struct ReshapeOfUnitTranspose : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op, PatternRewriter &rewriter) const override {
    auto transpose = op.getOperand().getDefiningOp<TransposeOp>();
    if (!transpose)
      return failure();
    Sizes sizes = getSizes(transpose.getOperand());
    int64_t last = -1;
    for (int64_t dim : transpose.getPermutation())
      if (getConstantSize(sizes[dim]) != 1) {
        if (dim < last)
          return rewriter.notifyMatchFailure(op, "the transpose moves more than unit dims");
        last = dim;
      }
    rewriter.modifyOpInPlace(op, [&] { op.getOperandMutable().assign(transpose.getOperand()); });
    return success();
  }
};
} // namespace

void tc::prim::populateShapePatterns(RewritePatternSet &patterns) {
  patterns.add<MoveSplat, DropBroadcastUnitDims, BroadcastToReshape, ScatterElementsToSlices, DropOuterTaps,
               ReshapeOfUnitTranspose>(patterns.getContext());
}
