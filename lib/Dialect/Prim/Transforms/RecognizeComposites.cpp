//===- RecognizeComposites.cpp - attention in its written-out form ------------------------------------------------===//
//
//   softmax(dot(q * a, k * b) * c + mask) . v   ->   prim.attention q, k, v mask scale (a * b * c)
//
// Exporters write scaled dot product attention as two matrix products around a softmax, with the scale before the first
// product (on q, on k, or its square root on both, as PyTorch does) or after it, by multiplication or division, the
// mask added, and weights that are no numbers replaced by 0. A mask that hides the future becomes `causal`. Taken
// whole, a target never holds the T x S scores. The order of scaling changes by this, within rounding.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CausalMask.h"

#include "tc/Dialect/Prim/Transforms/Passes.h"
#include "tc/Dialect/Prim/Utils/PrimBuilder.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <limits>

namespace tc::prim {
#define GEN_PASS_DEF_RECOGNIZECOMPOSITESPASS
#include "tc/Dialect/Prim/Transforms/Passes.h.inc"
} // namespace tc::prim

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

/// Takes a factor that all elements share off `v`: x * c gives x, and c goes into `scale`.
Value stripScale(Value v, double &scale) {
  while (Operation *op = v.getDefiningOp()) {
    if (auto mul = dyn_cast<MulOp>(op)) {
      if (auto c = getSplatValue(mul.getRhs())) {
        scale *= *c;
        v = mul.getLhs();
        continue;
      }
      if (auto c = getSplatValue(mul.getLhs())) {
        scale *= *c;
        v = mul.getRhs();
        continue;
      }
    } else if (auto div = dyn_cast<DivOp>(op)) {
      if (auto c = getSplatValue(div.getRhs()); c && *c != 0) {
        scale /= *c;
        v = div.getLhs();
        continue;
      }
    }
    break;
  }
  return v;
}

/// x of `is_nan(x) ? 0 : x` that is read nowhere else: what PyTorch makes of positions that see nothing; null if `v` is
/// none.
Value stripZeroNan(Value v) {
  auto select = v.getDefiningOp<SelectOp>();
  if (!select || !v.hasOneUse() || getSplatValue(select.getIfTrue()) != 0.0)
    return {};
  Value x = select.getIfFalse();
  auto isNan = select.getCondition().getDefiningOp<IsNanOp>();
  if (!isNan || isNan.getOperand() != x || !isNan->hasOneUse() ||
      llvm::any_of(x.getUsers(), [&](Operation *user) { return user != isNan && user != select; }))
    return {};
  return x;
}

bool isSequence(ArrayRef<int64_t> dims, int64_t count) { return llvm::equal(dims, llvm::seq<int64_t>(0, count)); }

struct RecognizeAttention : OpRewritePattern<DotGeneralOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DotGeneralOp op, PatternRewriter &rewriter) const override {
    Value weights = op.getLhs();
    bool zeroNan = false;
    if (Value safe = stripZeroNan(weights)) {
      weights = safe;
      zeroNan = true;
    }
    auto softmax = weights.getDefiningOp<SoftmaxOp>();
    int64_t rank = PrimBuilder::rankOf(op.getLhs()), batch = rank - 2;
    if (!softmax || softmax.getLog() || (!zeroNan && !softmax->hasOneUse()) || int64_t(softmax.getAxis()) != rank - 1)
      return rewriter.notifyMatchFailure(op, "left side is no softmax over its last dim, read here alone");
    if (batch < 1 || PrimBuilder::rankOf(op.getRhs()) != rank || !isSequence(op.getLhsBatch(), batch) ||
        !isSequence(op.getRhsBatch(), batch) || op.getLhsContract() != ArrayRef<int64_t>{rank - 1} ||
        op.getResult().getType().getElementType() != PrimBuilder::elementOf(op.getRhs()))
      return rewriter.notifyMatchFailure(op, "not [B.., T, S] x [B.., S, E]");
    double scale = 1;
    Value scores = softmax.getOperand(), mask;
    auto dotOf = [&](Value v, double &factor) -> DotGeneralOp {
      Value stripped = stripScale(v, factor);
      auto dot = stripped.getDefiningOp<DotGeneralOp>();
      return dot && v.hasOneUse() && stripped.hasOneUse() ? dot : DotGeneralOp();
    };
    DotGeneralOp dot = dotOf(scores, scale);
    if (!dot)
      if (auto add = scores.getDefiningOp<AddOp>(); add && scores.hasOneUse())
        for (int64_t side : {0, 1}) {
          double factor = 1;
          if ((dot = dotOf(add->getOperand(side), factor))) {
            scale = factor;
            mask = add->getOperand(1 - side);
            break;
          }
        }
    if (!dot)
      return rewriter.notifyMatchFailure(op, "scores are no scaled and masked product, read here alone");
    if (PrimBuilder::rankOf(dot.getLhs()) != rank || PrimBuilder::rankOf(dot.getRhs()) != rank ||
        !isSequence(dot.getLhsBatch(), batch) || !isSequence(dot.getRhsBatch(), batch) ||
        dot.getLhsContract() != ArrayRef<int64_t>{rank - 1} || dot.getRhsContract().size() != 1)
      return rewriter.notifyMatchFailure(op, "scores are not [B.., T, D] x [B.., S, D]");
    PrimBuilder b(rewriter, op);
    Value query = stripScale(dot.getLhs(), scale), key = stripScale(dot.getRhs(), scale), value = op.getRhs();
    if (b.elementOf(query) != b.elementOf(op.getResult()))
      return rewriter.notifyMatchFailure(op, "element types differ");
    auto swapLast = [&](Value v) {
      SmallVector<int64_t> permutation = llvm::to_vector(llvm::seq<int64_t>(0, rank));
      std::swap(permutation[rank - 1], permutation[rank - 2]);
      return b.transpose(v, permutation);
    };
    if (dot.getRhsContract()[0] == rank - 2) {
      // A key that was transposed for the product, before it was scaled.
      if (auto transposed = key.getDefiningOp<TransposeOp>();
          transposed && isSequence(transposed.getPermutation().take_front(batch), batch) &&
          transposed.getPermutation()[batch] == rank - 1)
        key = stripScale(transposed.getOperand(), scale);
      else
        key = swapLast(key);
    }
    if (op.getRhsContract()[0] == rank - 1)
      value = swapLast(value);
    rewriter.replaceOpWithNewOp<AttentionOp>(op, op.getResult().getType(), query, key, value, mask,
                                             rewriter.getF64FloatAttr(scale), /*causal=*/UnitAttr(),
                                             zeroNan ? rewriter.getUnitAttr() : UnitAttr());
    return success();
  }
};

/// A factor of the query or of the key behind transposes and reshapes goes into the scale.
struct RecognizeScale : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AttentionOp op, PatternRewriter &rewriter) const override {
    for (unsigned number : {0, 1}) {
      SmallVector<Operation *> moves;
      Value v = op->getOperand(number);
      while (isa_and_nonnull<TransposeOp, ReshapeOp>(v.getDefiningOp())) {
        moves.push_back(v.getDefiningOp());
        v = v.getDefiningOp()->getOperand(0);
      }
      double scale = op.getScale().convertToDouble();
      Value plain = stripScale(v, scale);
      if (plain == v)
        continue;
      for (Operation *move : llvm::reverse(moves)) {
        Operation *copy = rewriter.clone(*move);
        copy->setOperand(0, plain);
        plain = copy->getResult(0);
      }
      rewriter.modifyOpInPlace(op, [&] {
        op->setOperand(number, plain);
        op.setScaleAttr(rewriter.getF64FloatAttr(scale));
      });
      return success();
    }
    return rewriter.notifyMatchFailure(op, "neither query nor key is scaled");
  }
};

Value skipViews(Value v) {
  while (Operation *op = v.getDefiningOp()) {
    if (!isa<BroadcastOp, ReshapeOp>(op))
      break;
    v = op->getOperand(0);
  }
  return v;
}

/// x of `max(x) == -inf ? 0 : x`, along the last dim: the mask that ATen's attention has, in which queries that see
/// nothing see all. `isBlind`: the comparison. Null if `mask` is none.
Value stripBlind(Value mask, CompareOp &isBlind) {
  auto select = skipViews(mask).getDefiningOp<SelectOp>();
  if (!select || getSplatValue(select.getIfTrue()) != 0.0)
    return {};
  isBlind = skipViews(select.getCondition()).getDefiningOp<CompareOp>();
  if (!isBlind || isBlind.getKind() != CompareKind::EQ ||
      getSplatValue(isBlind.getRhs()) != -std::numeric_limits<double>::infinity())
    return {};
  auto most = skipViews(isBlind.getLhs()).getDefiningOp<ReduceOp>();
  if (!most || most.getKind() != ReduceKind::Max ||
      most.getDims() != ArrayRef<int64_t>{PrimBuilder::rankOf(most.getOperand()) - 1} ||
      skipViews(most.getOperand()) != skipViews(select.getIfFalse()))
    return {};
  return select.getIfFalse();
}

/// A mask that hides the future alone leaves each query a key to see.
struct RecognizeSeeing : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AttentionOp op, PatternRewriter &rewriter) const override {
    CompareOp isBlind;
    Value mask = op.getMask() && !op.getCausal() ? stripBlind(op.getMask(), isBlind) : Value();
    if (!mask || !isCausalMask(mask))
      return rewriter.notifyMatchFailure(op, "no mask of queries that see nothing around one that hides the future");
    const Sizes sizes = getSizes(mask);
    if (getConstantSize(simplifySize(sizes[sizes.size() - 2] - sizes.back())).value_or(1) > 0)
      return rewriter.notifyMatchFailure(op, "the first of more queries than keys see nothing");
    rewriter.modifyOpInPlace(op, [&] {
      op.getMaskMutable().clear();
      op.setCausal(true);
    });
    PrimBuilder b(rewriter, isBlind);
    rewriter.replaceOp(isBlind, b.splatLike(isBlind, 0));
    return success();
  }
};

/// A mask that hides the future is no operand: half of the scores are never computed.
struct RecognizeCausal : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AttentionOp op, PatternRewriter &rewriter) const override {
    if (!op.getMask() || op.getCausal() || !isCausalMask(op.getMask()))
      return rewriter.notifyMatchFailure(op, "no mask that hides the future alone");
    rewriter.modifyOpInPlace(op, [&] {
      op.getMaskMutable().clear();
      op.setCausal(true);
    });
    return success();
  }
};

struct RecognizeCompositesPass : public tc::prim::impl::RecognizeCompositesPassBase<RecognizeCompositesPass> {
  using RecognizeCompositesPassBase::RecognizeCompositesPassBase;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<RecognizeAttention, RecognizeScale, RecognizeCausal, RecognizeSeeing>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
