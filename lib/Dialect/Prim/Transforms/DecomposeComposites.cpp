//===- DecomposeComposites.cpp - composites as reductions and elementwise ops -------------------------------------===//
//
// prim.softmax, prim.norm, prim.attention, prim.rnn, prim.block_dot and prim.fft in the form that loses least: softmax
// with its maximum taken out, norm in two passes over the row (mean first, then the squares of what is left), all in
// f32 for narrower elements. Attention and rnn of narrower elements first become their f32 forms, which a target may
// take whole.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Prim/Transforms/Passes.h"
#include "tc/Dialect/Prim/Utils/BlockWeights.h"
#include "tc/Dialect/Prim/Utils/PrimBuilder.h"
#include "tc/Dialect/Prim/Utils/Recurrence.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <cmath>

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
    // The sum is in [1, size]: one division a row and a product per element are as good to a bit as a division each,
    // which takes ten times as long.
    Value result =
        op.getLog() ? b.sub(centred, along(b.unary<LogOp>(sum))) : b.mul(exp, along(b.unary<ReciprocalOp>(sum)));
    rewriter.replaceOp(op, b.convert(result, type));
    return success();
  }
};

/// Where the last of several reduced dims is short, as the channels of a group are, lanes would not fill a register:
/// pixels are reduced first, for each channel, and then the channels of a group.
struct NormDims {
  NormDims(PrimBuilder &b, NormOp op) : b(b), sizes(getSizes(op.getOperand())) {
    dims.assign(op.getDims().begin(), op.getDims().end());
    joined = sizes;
    first = dims;
    const int64_t last = int64_t(sizes.size()) - 1;
    const auto isReduced = [&](int64_t dim) { return llvm::is_contained(dims, dim); };
    if (last >= 2 && isReduced(last) && !isReduced(last - 1) && dims.size() > 1 && getConstantSize(sizes[last]) &&
        *getConstantSize(sizes[last]) < kShort) {
      joined.pop_back();
      joined.back() = simplifySize(sizes[last - 1] * sizes[last]);
      first.erase(llvm::find(first, last));
      isSplit = true;
    }
    for (int64_t i = 0, e = joined.size(); i < e; ++i)
      if (!llvm::is_contained(first, i))
        kept.push_back(i);
  }

  /// What the statistics are taken of.
  Value join(Value x) { return isSplit ? b.reshape(x, joined) : x; }
  Value split(Value x) { return isSplit ? b.reshape(x, sizes) : x; }
  /// Means of `x` (joined), and statistics repeated for the elements that they are of.
  Value mean(Value x) {
    Value means = b.mean(x, first);
    if (!isSplit)
      return means;
    Sizes split = getSizes(means);
    split.back() = sizes[sizes.size() - 2];
    split.push_back(sizes.back());
    return b.mean(b.reshape(means, split), {int64_t(split.size()) - 1});
  }
  Value along(Value v) {
    if (isSplit) {
      Sizes split = getSizes(v), whole = split;
      split.push_back(sizes.back());
      whole.back() = joined.back();
      v = b.reshape(b.broadcastInDims(v, split, llvm::to_vector(llvm::seq<int64_t>(0, whole.size()))), whole);
    }
    return b.broadcastInDims(v, joined, kept);
  }

private:
  // Elements of a short dim: four vectors.
  static constexpr int64_t kShort = 64;

  PrimBuilder &b;
  Sizes sizes, joined;                    // of the operand; with the short dim and the one before it as one
  SmallVector<int64_t> dims, first, kept; // reduced; of `joined`: reduced first, and not
  bool isSplit = false;
};

struct DecomposeNorm : OpRewritePattern<NormOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(NormOp op, PatternRewriter &rewriter) const override {
    PrimBuilder b(rewriter, op);
    NormDims dims(b, op);
    Type type = b.elementOf(op.getOperand());
    Value x = dims.join(b.convert(op.getOperand(), b.accumulatorOf(type)));
    Value centred = op.getRms() ? x : b.sub(x, dims.along(dims.mean(x)));
    Value variance = dims.mean(b.mul(centred, centred));
    Value factor = b.unary<RsqrtOp>(b.binary<AddOp>(variance, op.getEpsilon().convertToDouble()));
    rewriter.replaceOp(op, b.convert(dims.split(b.mul(centred, dims.along(factor))), type));
    return success();
  }
};

/// A composite that a target takes whole stays.
template <typename Op> struct DecomposeUnlessTaken : OpRewritePattern<Op> {
  DecomposeUnlessTaken(MLIRContext *context, const TakesWhole &takesWhole)
      : OpRewritePattern<Op>(context), takesWhole(takesWhole) {}

  /// The op with floats of 32 bits in place of narrower ones; failure where there are none.
  static LogicalResult widen(Op op, PatternRewriter &rewriter) {
    auto isNarrow = [](Type type) {
      auto f = dyn_cast<FloatType>(cast<RankedTensorType>(type).getElementType());
      return f && f.getWidth() < 32;
    };
    if (llvm::none_of(op->getOperandTypes(), isNarrow))
      return failure();
    PrimBuilder b(rewriter, op);
    Type f32 = b.getF32Type();
    OperationState state(op.getLoc(), op->getName());
    for (Value v : op->getOperands())
      state.operands.push_back(isNarrow(v.getType()) ? b.convert(v, f32) : v);
    for (Type type : op->getResultTypes())
      state.types.push_back(isNarrow(type) ? withElementType(type, f32) : type);
    state.attributes = op->getAttrs();
    state.propertiesAttr = op->getPropertiesAsAttribute();
    Operation *wide = b.create(state);
    SmallVector<Value> results;
    for (auto [narrow, v] : llvm::zip_equal(op->getResultTypes(), wide->getResults()))
      results.push_back(b.convert(v, cast<RankedTensorType>(narrow).getElementType()));
    rewriter.replaceOp(op, results);
    return success();
  }

  const TakesWhole &takesWhole;
};

struct DecomposeAttention : DecomposeUnlessTaken<AttentionOp> {
  using DecomposeUnlessTaken::DecomposeUnlessTaken;
  LogicalResult matchAndRewrite(AttentionOp op, PatternRewriter &rewriter) const override {
    if (takesWhole(op))
      return rewriter.notifyMatchFailure(op, "the target takes it whole");
    if (succeeded(widen(op, rewriter)))
      return success();
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
    if (op.getZeroNan()) {
      Value isNan = IsNanOp::create(b, makeType(b.getI1Type(), sizes), weights);
      weights = b.select(isNan, b.splat(type, sizes, 0), weights);
    }
    rewriter.replaceOpWithNewOp<DotGeneralOp>(op, weights, value, batch, batch, ArrayRef<int64_t>{batchRank + 1},
                                              ArrayRef<int64_t>{batchRank});
    return success();
  }
};

struct DecomposeRnn : DecomposeUnlessTaken<RnnOp> {
  using DecomposeUnlessTaken::DecomposeUnlessTaken;
  LogicalResult matchAndRewrite(RnnOp op, PatternRewriter &rewriter) const override {
    if (takesWhole(op))
      return rewriter.notifyMatchFailure(op, "the target takes it whole");
    if (succeeded(widen(op, rewriter)))
      return success();
    PrimBuilder b(rewriter, op);
    Recurrence layer;
    layer.kind = op.getKind();
    layer.gates = op.getGates();
    layer.recurrent = op.getRecurrent();
    layer.recurrentBias = op.getRecurrentBias();
    layer.initialHidden = op.getInitialHidden();
    layer.initialCell = op.getInitialCell();
    layer.peephole = op.getPeephole();
    layer.sequenceLengths = op.getSequenceLengths();
    layer.reverse = op.getReverse();
    layer.linearBeforeReset = op.getLinearBeforeReset();
    RecurrenceResults results = emitRecurrence(b, layer);
    rewriter.replaceOp(op, {results.hidden, results.finalHidden, results.finalCell});
    return success();
  }
};

struct DecomposeBlockDot : DecomposeUnlessTaken<BlockDotOp> {
  using DecomposeUnlessTaken::DecomposeUnlessTaken;
  LogicalResult matchAndRewrite(BlockDotOp op, PatternRewriter &rewriter) const override {
    if (takesWhole(op))
      return rewriter.notifyMatchFailure(op, "the target takes it whole");
    PrimBuilder b(rewriter, op);
    Value lhs = b.convert(op.getLhs(), b.getF32Type());
    int64_t last = b.rankOf(lhs) - 1;
    Value weights = emitBlockWeights(
        b, {op.getPacked(), op.getScales(), op.getZeros(), int64_t(op.getBits()), int64_t(op.getBlock())},
        getSizes(lhs)[last]);
    Value y = DotGeneralOp::create(b, lhs, weights, ArrayRef<int64_t>{}, ArrayRef<int64_t>{}, ArrayRef<int64_t>{last},
                                   ArrayRef<int64_t>{1});
    rewriter.replaceOp(op, b.convert(y, b.elementOf(op.getResult())));
    return success();
  }
};

/// A transform as a product with the matrix of its roots of unity, generated from iotas (and folded where the length is
/// known). Angles are reduced exactly, as integers modulo the length.
struct DecomposeFft : DecomposeUnlessTaken<FftOp> {
  using DecomposeUnlessTaken::DecomposeUnlessTaken;

  /// cos and sin of 2 pi n k / N, of the sizes [inputs, outputs]. Rows that the transform does not read are 0: those
  /// from N on, or with `half` from N / 2 + 1 on, where rows between the first and the middle also stand for their
  /// mirror images.
  static std::pair<Value, Value> makeRoots(PrimBuilder &b, FftOp op, AffineExpr inputs, AffineExpr outputs) {
    Sizes sizes{inputs, outputs};
    Type f64 = b.getF64Type(), type = b.elementOf(op.getResult());
    Value n = b.iota(b.getI64Type(), sizes, 0), k = b.iota(b.getI64Type(), sizes, 1);
    Value period = b.broadcastTo(b.sizeValue(op.getLengthExpr()), sizes);
    Value phase = b.convert(b.binary<RemOp>(b.mul(n, k), period), f64);
    Value angle = b.div(b.binary<MulOp>(phase, 2 * M_PI), b.convert(period, f64));
    Value weight = b.splatLike(angle, 1), reach = period;
    if (op.getHalf()) {
      Value isAlone =
          b.binary<OrOp>(b.compare(CompareKind::EQ, n, 0), b.compare(CompareKind::EQ, b.binary<MulOp>(n, 2), period));
      weight = b.select(isAlone, weight, b.splatLike(weight, 2));
      reach = b.binary<AddOp>(b.binary<DivOp>(period, 2), 1);
    }
    weight = b.select(b.compare(CompareKind::LT, n, reach), weight, b.splatLike(weight, 0));
    auto finish = [&](Value v) { return b.convert(b.mul(v, weight), type); };
    return {finish(b.unary<CosOp>(angle)), finish(b.unary<SinOp>(angle))};
  }

  LogicalResult matchAndRewrite(FftOp op, PatternRewriter &rewriter) const override {
    if (takesWhole(op))
      return rewriter.notifyMatchFailure(op, "the target takes it whole");
    PrimBuilder b(rewriter, op);
    Sizes in = getSizes(op.getOperand()), out = getSizes(op.getResult());
    auto [cosine, sine] = makeRoots(b, op, in[1], out[1]);
    auto product = [&](int64_t part, Value roots) -> Value {
      Value dot = DotGeneralOp::create(b, b.take(op.getOperand(), 3, part), roots, ArrayRef<int64_t>{},
                                       ArrayRef<int64_t>{}, ArrayRef<int64_t>{1}, ArrayRef<int64_t>{0});
      return b.transpose(dot, {0, 2, 1});
    };
    // Forward: (re + i im)(cos - i sin); inverse: (re + i im)(cos + i sin). With `half` what is imaginary cancels.
    const bool isReal = isOne(in[3]), both = !isOne(out[3]), inverse = op.getInverse();
    Value real = product(0, cosine);
    if (!isReal) {
      Value cross = product(1, sine);
      real = inverse ? b.sub(real, cross) : b.add(real, cross);
    }
    Value result = b.unsqueeze(real, 3);
    if (both) {
      Value imaginary;
      if (op.getHalf()) {
        imaginary = b.splatLike(real, 0);
      } else {
        imaginary = product(0, sine);
        if (!inverse)
          imaginary = b.unary<NegOp>(imaginary);
        if (!isReal)
          imaginary = b.add(imaginary, product(1, cosine));
      }
      result = b.concat({result, b.unsqueeze(imaginary, 3)}, 3);
    }
    rewriter.replaceOp(op, result);
    return success();
  }
};

struct DecomposeCompositesPass : public tc::prim::impl::DecomposeCompositesPassBase<DecomposeCompositesPass> {
  using DecomposeCompositesPassBase::DecomposeCompositesPassBase;
  DecomposeCompositesPass(TakesWhole takesWhole) : takesWhole(std::move(takesWhole)) {}

  void runOnOperation() override {
    for (const std::string &name : keep)
      if (!StringSwitch<bool>(name).Cases({"softmax", "norm", "attention", "rnn", "block_dot"}, true).Default(false)) {
        getOperation().emitError("keep=") << name << " names no composite: softmax, norm, attention, rnn, block_dot";
        return signalPassFailure();
      }
    auto wanted = [&](StringRef name) { return llvm::none_of(keep, [&](StringRef k) { return k == name; }); };
    RewritePatternSet patterns(&getContext());
    if (wanted("softmax"))
      patterns.add<DecomposeSoftmax>(&getContext());
    if (wanted("norm"))
      patterns.add<DecomposeNorm>(&getContext());
    if (wanted("attention"))
      patterns.add<DecomposeAttention>(&getContext(), takesWhole);
    if (wanted("rnn"))
      patterns.add<DecomposeRnn>(&getContext(), takesWhole);
    if (wanted("block_dot"))
      patterns.add<DecomposeBlockDot>(&getContext(), takesWhole);
    if (wanted("fft"))
      patterns.add<DecomposeFft>(&getContext(), takesWhole);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }

private:
  TakesWhole takesWhole = [](Operation *) { return false; };
};

} // namespace

std::unique_ptr<Pass> tc::prim::createDecomposeCompositesPass(TakesWhole takesWhole) {
  return std::make_unique<DecomposeCompositesPass>(std::move(takesWhole));
}
