//===- DecomposeComposites.cpp - composites as reductions and elementwise ops -------------------------------------===//
//
// prim.softmax, prim.norm and prim.attention in the form that loses least: softmax with its maximum taken out, norm in
// two passes over the row (mean first, then the squares of what is left), both in f32 for narrower elements.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Prim/Transforms/Passes.h"
#include "tc/Dialect/Prim/Utils/PrimBuilder.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace tc::prim {
#define GEN_PASS_DEF_DECOMPOSECOMPOSITESPASS
#include "tc/Dialect/Prim/Transforms/Passes.h.inc"
} // namespace tc::prim

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

struct DecomposeSoftmax : OpRewritePattern<SoftmaxOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SoftmaxOp op, PatternRewriter &rewriter) const override {
    PrimBuilder b(rewriter, op);
    Type type = b.elementOf(op.getOperand());
    Value x = b.convert(op.getOperand(), b.accumulatorOf(type));
    int64_t axis = op.getAxis();
    Sizes sizes = getSizes(x);
    SmallVector<int64_t> kept;
    for (int64_t i = 0, e = sizes.size(); i < e; ++i)
      if (i != axis)
        kept.push_back(i);
    auto along = [&](Value v) { return b.broadcastInDims(v, sizes, kept); };
    Value centred = b.sub(x, along(b.reduce(ReduceKind::Max, x, {axis})));
    Value exp = b.unary<ExpOp>(centred);
    Value sum = b.reduce(ReduceKind::Sum, exp, {axis});
    Value result = op.getLog() ? b.sub(centred, along(b.unary<LogOp>(sum))) : b.div(exp, along(sum));
    rewriter.replaceOp(op, b.convert(result, type));
    return success();
  }
};

struct DecomposeNorm : OpRewritePattern<NormOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(NormOp op, PatternRewriter &rewriter) const override {
    PrimBuilder b(rewriter, op);
    Type type = b.elementOf(op.getOperand());
    Value x = b.convert(op.getOperand(), b.accumulatorOf(type));
    Sizes sizes = getSizes(x);
    SmallVector<int64_t> kept, dims(op.getDims());
    for (int64_t i = 0, e = sizes.size(); i < e; ++i)
      if (!llvm::is_contained(dims, i))
        kept.push_back(i);
    auto along = [&](Value v) { return b.broadcastInDims(v, sizes, kept); };
    Value centred = op.getRms() ? x : b.sub(x, along(b.mean(x, dims)));
    Value variance = b.mean(b.mul(centred, centred), dims);
    Value factor = b.unary<RsqrtOp>(b.binary<AddOp>(variance, op.getEpsilon().convertToDouble()));
    rewriter.replaceOp(op, b.convert(b.mul(centred, along(factor)), type));
    return success();
  }
};

struct DecomposeAttention : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AttentionOp op, PatternRewriter &rewriter) const override {
    PrimBuilder b(rewriter, op);
    Value query = op.getQuery(), key = op.getKey(), value = op.getValue();
    int64_t batchRank = b.rankOf(query) - 2;
    SmallVector<int64_t> batch = llvm::to_vector(llvm::seq<int64_t>(0, batchRank));
    Type type = b.elementOf(query);
    Value scores = DotGeneralOp::create(b, query, key, batch, batch, ArrayRef<int64_t>{batchRank + 1},
                                        ArrayRef<int64_t>{batchRank + 1});
    double scale = op.getScale().convertToDouble();
    if (scale != 1)
      scores = b.binary<MulOp>(scores, scale);
    Sizes sizes = getSizes(scores);
    if (op.getMask())
      scores = b.add(scores, b.broadcastTo(op.getMask(), sizes));
    if (op.getCausal()) {
      // Position t sees s <= t + (S - T).
      Sizes matrix(sizes.end() - 2, sizes.end());
      Value row = b.iota(b.getI64Type(), matrix, 0), column = b.iota(b.getI64Type(), matrix, 1);
      Value offset = b.broadcastTo(b.sizeValue(simplifySize(matrix[1] - matrix[0])), matrix);
      Value visible = b.compare(CompareKind::LE, column, b.add(row, offset));
      Value hidden = b.splat(type, sizes, -std::numeric_limits<double>::infinity());
      scores = b.select(b.broadcastTo(visible, sizes), scores, hidden);
    }
    Value weights = SoftmaxOp::create(b, scores.getType(), scores, b.getI64IntegerAttr(batchRank + 1), UnitAttr());
    rewriter.replaceOpWithNewOp<DotGeneralOp>(op, weights, value, batch, batch, ArrayRef<int64_t>{batchRank + 1},
                                              ArrayRef<int64_t>{batchRank});
    return success();
  }
};

struct DecomposeCompositesPass : public tc::prim::impl::DecomposeCompositesPassBase<DecomposeCompositesPass> {
  using DecomposeCompositesPassBase::DecomposeCompositesPassBase;

  void runOnOperation() override {
    auto wanted = [&](StringRef name) { return llvm::none_of(keep, [&](StringRef k) { return k == name; }); };
    RewritePatternSet patterns(&getContext());
    if (wanted("softmax"))
      patterns.add<DecomposeSoftmax>(&getContext());
    if (wanted("norm"))
      patterns.add<DecomposeNorm>(&getContext());
    if (wanted("attention"))
      patterns.add<DecomposeAttention>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
