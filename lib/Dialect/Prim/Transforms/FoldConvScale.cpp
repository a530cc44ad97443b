//===- FoldConvScale.cpp - per-channel factors into weights -------------------------------------------------------===//
//
//   conv(x, w) * s[channel]           ->  conv(x, w * s)              batch normalization after a convolution
//   (conv(x, w) + b[channel]) * s     ->  conv(x, w * s) + b * s
//
// where w, b and s come from constants, so that the products fold, and the convolution has no other reader. The same
// for dot_general with a constant right side. Run tc-fold-constants before and after. The result differs from the
// unfolded one by the rounding of one product per weight.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Prim/Transforms/Passes.h"
#include "tc/Dialect/Prim/Utils/PrimBuilder.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace tc::prim {
#define GEN_PASS_DEF_FOLDCONVSCALEPASS
#include "tc/Dialect/Prim/Transforms/Passes.h.inc"
} // namespace tc::prim

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

/// Whether `v` is computed from constants alone, by a few ops.
bool isConstant(Value v, int64_t depth = 4) {
  Operation *op = v.getDefiningOp();
  if (!op)
    return false;
  if (isa<prim::ConstantOp, SplatOp>(op))
    return true;
  return depth > 0 && isa<TransposeOp, ReshapeOp, MulOp, ConvertOp, SliceOp>(op) &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return isConstant(operand, depth - 1); });
}

/// The 1-D constant that `v` repeats along its last dim, or null.
Value lastDimFactor(PrimBuilder &b, Value v) {
  int64_t last = b.rankOf(v) - 1;
  if (auto splat = v.getDefiningOp<SplatOp>())
    return SplatOp::create(b, makeType(b.elementOf(v), {getSizes(v)[last]}), splat.getValue());
  auto broadcast = v.getDefiningOp<BroadcastOp>();
  if (!broadcast || !isConstant(broadcast.getOperand()) || broadcast.getDims() != ArrayRef<int64_t>{last} ||
      getSizes(broadcast.getOperand())[0] != getSizes(v)[last])
    return {};
  return broadcast.getOperand();
}

struct FoldScale : OpRewritePattern<MulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MulOp op, PatternRewriter &rewriter) const override {
    PrimBuilder b(rewriter, op);
    for (int64_t side : {0, 1}) {
      Value product = op->getOperand(side), other = op->getOperand(1 - side);
      if (!PrimBuilder::isFloat(product) || !product.hasOneUse())
        continue;
      Value bias;
      if (auto add = product.getDefiningOp<AddOp>())
        for (int64_t i : {0, 1})
          if (auto repeated = add->getOperand(i).getDefiningOp<BroadcastOp>();
              repeated && isConstant(repeated.getOperand()) && add->getOperand(1 - i).hasOneUse()) {
            bias = add->getOperand(i);
            product = add->getOperand(1 - i);
            break;
          }
      Operation *producer = product.getDefiningOp();
      auto conv = dyn_cast_or_null<ConvOp>(producer);
      auto dot = dyn_cast_or_null<DotGeneralOp>(producer);
      if ((!conv && !dot) || !product.hasOneUse())
        continue;
      Value weight = conv ? conv.getFilter() : dot.getRhs();
      if (!isConstant(weight) || b.elementOf(weight) != b.elementOf(product))
        continue;
      int64_t weightDim = b.rankOf(weight) - 1;
      if (dot) { // one free dim of the right side, which is then the result's last
        if (!dot.getRhsBatch().empty() || b.rankOf(weight) != int64_t(dot.getRhsContract().size()) + 1)
          continue;
        for (int64_t i = 0; i < b.rankOf(weight); ++i)
          if (!llvm::is_contained(dot.getRhsContract(), i))
            weightDim = i;
      }
      Value factor = lastDimFactor(b, other);
      if (!factor)
        continue;
      Value scaled = b.mul(weight, b.broadcastInDims(factor, getSizes(weight), {weightDim}));
      IRMapping mapping;
      mapping.map(weight, scaled);
      Value result = b.clone(*producer, mapping)->getResult(0);
      if (bias) {
        Value perChannel = lastDimFactor(b, bias);
        Value shift = perChannel ? b.broadcastInDims(b.mul(perChannel, factor), getSizes(bias), {b.rankOf(bias) - 1})
                                 : b.mul(bias, other);
        result = b.add(result, shift);
      }
      rewriter.replaceOp(op, result);
      return success();
    }
    return rewriter.notifyMatchFailure(op,
                                       "no product with constant weights, read here alone, times a factor per channel");
  }
};

struct FoldConvScalePass : public tc::prim::impl::FoldConvScalePassBase<FoldConvScalePass> {
  using FoldConvScalePassBase::FoldConvScalePassBase;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FoldScale>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
