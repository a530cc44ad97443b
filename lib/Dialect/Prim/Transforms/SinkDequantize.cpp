//===- SinkDequantize.cpp - dequantisation behind what can be done with bytes -------------------------------------===//
//
// A dequantised tensor is (x - zero) * scale with x of 8-bit integers. What commutes with that is done with x:
//
//   dot((x - xz) * xs, (w - wz) * ws)   ->  dot(x - xz, w - wz) * (xs * ws)       the same for conv; sums in i32
//   transpose((x - xz) * xs)            ->  (transpose(x) - xz) * xs              reshape, slice, max over windows
//   quantise((x - xz) * xs, xs, xz)     ->  x
//   (sums * f + bias) / s               ->  sums * (f / s) + bias / s             relu, sums of dequantised in between;
//                                                                                 the same where 1 / s is multiplied by
//
// where scales are constants: one for all, or one for each column of a product. Sums of integers are exact, so that a
// product is rounded once, where the float one is rounded with each summand; a quotient differs from that of the last
// line in its last bits. Products whose sums might leave i32, and scales that only the run knows, stay as they are.
//
// Run before constants fold, as dequantised weights would be kept, and before tc-narrow-products, which makes products
// of bytes of what stands here in i32.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Dequantised.h"
#include "tc/Dialect/Prim/Transforms/Passes.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <cmath>

namespace tc::prim {
#define GEN_PASS_DEF_SINKDEQUANTIZEPASS
#include "tc/Dialect/Prim/Transforms/Passes.h.inc"
} // namespace tc::prim

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

//===--- products -------------------------------------------------------------------------------------------------===//

/// Whether sums of so many products of two differences of bytes stay in i32.
bool fitsSums(AffineExpr depth) {
  auto count = getConstantSize(depth);
  return count && *count <= INT32_MAX / (255 * 255);
}

struct DotOfDequantised : OpRewritePattern<DotGeneralOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DotGeneralOp op, PatternRewriter &rewriter) const override {
    PrimBuilder b(rewriter, op);
    Sizes lhsSizes = getSizes(op.getLhs()), depth;
    for (int64_t dim : op.getLhsContract())
      depth.push_back(lhsSizes[dim]);
    if (!b.elementOf(op.getResult()).isF32() || !fitsSums(product(b.getContext(), depth)))
      return rewriter.notifyMatchFailure(op, "no product of f32 with few enough summands");
    std::optional<Dequantised> lhs = traceDequantised(op.getLhs()),
                               rhs = lhs ? traceDequantised(op.getRhs()) : std::nullopt;
    if (!rhs)
      return rewriter.notifyMatchFailure(op, "an operand is not dequantised");
    auto isFree = [](const Parameter &p, ArrayRef<int64_t> contract) { return !llvm::is_contained(contract, p.dim); };
    if (!isFree(lhs->scale, op.getLhsContract()) || !isFree(lhs->zero, op.getLhsContract()) ||
        !isFree(rhs->scale, op.getRhsContract()) || !isFree(rhs->zero, op.getRhsContract()))
      return rewriter.notifyMatchFailure(op, "a scale or zero point differs along the summands");
    lhs->materialise(b);
    rhs->materialise(b);
    Sizes sizes = getSizes(op.getResult());
    Value sums =
        DotGeneralOp::create(b, makeType(b.getI32Type(), sizes), lhs->centred(b), rhs->centred(b), op.getLhsBatchAttr(),
                             op.getRhsBatchAttr(), op.getLhsContractAttr(), op.getRhsContractAttr());
    // Where a free dim of an operand stands in the result: batch dims, free ones of the left, of the right.
    int64_t next = op.getLhsBatch().size();
    auto place = [&](Parameter &scale, int64_t rank, ArrayRef<int64_t> batch, ArrayRef<int64_t> contract) {
      int64_t found = -1;
      for (int64_t i = 0; i < rank; ++i) {
        const auto *at = llvm::find(batch, i);
        int64_t placed = at != batch.end() ? at - batch.begin() : llvm::is_contained(contract, i) ? -1 : next++;
        if (i == scale.dim)
          found = placed;
      }
      scale.dim = found;
    };
    place(lhs->scale, lhsSizes.size(), op.getLhsBatch(), op.getLhsContract());
    place(rhs->scale, b.rankOf(op.getRhs()), op.getRhsBatch(), op.getRhsContract());
    rewriter.replaceOp(op, scaled(b, sums, lhs->scale, rhs->scale));
    return success();
  }

  /// sums * lhs * rhs, the scales' dims being those of `sums`.
  static Value scaled(PrimBuilder &b, Value sums, const Parameter &lhs, const Parameter &rhs) {
    const Type f32 = b.getF32Type();
    Sizes sizes = getSizes(sums);
    Value factor;
    if (lhs.number && rhs.number) {
      factor = b.splat(f32, sizes, double(float(*lhs.number) * float(*rhs.number)));
    } else if (lhs.isUniform() || rhs.isUniform()) { // stays as small as it is
      const Parameter &one = lhs.isUniform() ? lhs : rhs, &other = lhs.isUniform() ? rhs : lhs;
      Value small = other.flat(b, f32);
      small = b.mul(small, one.spread(b, f32, getSizes(small)));
      factor = b.broadcastInDims(small, sizes, other.isUniform() ? ArrayRef<int64_t>() : ArrayRef(other.dim));
    } else {
      factor = b.mul(lhs.spread(b, f32, sizes), rhs.spread(b, f32, sizes));
    }
    return b.mul(b.convert(sums, f32), factor);
  }
};

struct ConvOfDequantised : OpRewritePattern<ConvOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConvOp op, PatternRewriter &rewriter) const override {
    PrimBuilder b(rewriter, op);
    Sizes filter = getSizes(op.getFilter());
    if (!b.elementOf(op.getResult()).isF32() || !fitsSums(product(b.getContext(), SizesRef(filter).drop_back())) ||
        !isMadeOfConstants(op.getFilter()))
      return rewriter.notifyMatchFailure(op, "no convolution of f32 with a constant filter and few enough summands");
    std::optional<Dequantised> x = traceDequantised(op.getInput()),
                               w = x ? traceDequantised(op.getFilter()) : std::nullopt;
    if (!w || !x->isUniform())
      return rewriter.notifyMatchFailure(op, "an operand is not dequantised, or by channels");
    const int64_t last = filter.size() - 1;
    auto byColumn = [&](const Parameter &p) { return p.dim < 0 || p.dim == last; };
    if (!byColumn(w->scale) || !byColumn(w->zero))
      return rewriter.notifyMatchFailure(op, "a scale or zero point differs along the summands");
    x->materialise(b);
    w->materialise(b);
    Value sums = isExactDepthwise(op)
                     ? emitExactDepthwise(b, op, *x, *w)
                     : Value(ConvOp::create(b, x->centred(b), w->centred(b), op.getStrides(), op.getDilations(),
                                            op.getPadLow(), op.getPadHigh(), op.getGroups()));
    if (w->scale.dim >= 0)
      w->scale.dim = b.rankOf(sums) - 1;
    rewriter.replaceOp(op, DotOfDequantised::scaled(b, sums, x->scale, w->scale));
    return success();
  }
};

//===--- movement, windows ----------------------------------------------------------------------------------------===//

/// A move of a dequantised tensor: the move is of bytes then.
struct MoveDequantised : RewritePattern {
  explicit MoveDequantised(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}
  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!isa<TransposeOp, ReshapeOp, SliceOp>(op) || !op->getOperand(0).getDefiningOp<MulOp>())
      return failure();
    PrimBuilder b(rewriter, op);
    std::optional<Dequantised> x = traceDequantised(op->getOperand(0));
    if (!x || !x->isUniform())
      return rewriter.notifyMatchFailure(op, "the operand is not dequantised, or by channels");
    x->materialise(b);
    x->bytes = emitMove(b, op, x->bytes);
    rewriter.replaceOp(op, x->emit(b));
    return success();
  }
};

/// The largest of dequantised numbers is that of the bytes, as long as each window has an element.
struct LargestDequantised : OpRewritePattern<WindowReduceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(WindowReduceOp op, PatternRewriter &rewriter) const override {
    if (op.getKind() != ReduceKind::Max)
      return failure();
    PrimBuilder b(rewriter, op);
    Sizes in = getSizes(op.getOperand()), out = getSizes(op.getResult());
    for (size_t i = 0; i < op.getWindow().size(); ++i) {
      auto size = getConstantSize(in[i + 1]), count = getConstantSize(out[i + 1]);
      if (!size || !count || op.getPadLow()[i] >= op.getWindow()[i] ||
          (op.getDilations()[i] > 1 && op.getPadLow()[i] > 0) ||
          (*count - 1) * op.getStrides()[i] - op.getPadLow()[i] >= *size)
        return rewriter.notifyMatchFailure(op, "a window may have no element");
    }
    std::optional<Dequantised> x = traceDequantised(op.getOperand());
    if (!x || !x->isUniform() || !x->scale.number || !(*x->scale.number > 0))
      return rewriter.notifyMatchFailure(op, "the operand is not dequantised by one positive scale");
    x->materialise(b);
    x->bytes = WindowReduceOp::create(b, makeType(b.elementOf(x->bytes), out), op.getKind(), x->bytes, op.getWindow(),
                                      op.getStrides(), op.getDilations(), op.getPadLow());
    rewriter.replaceOp(op, x->emit(b));
    return success();
  }
};

struct ConcatDequantised : OpRewritePattern<ConcatOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConcatOp op, PatternRewriter &rewriter) const override {
    PrimBuilder b(rewriter, op);
    SmallVector<Dequantised> all;
    for (Value input : op.getInputs()) {
      std::optional<Dequantised> x = traceDequantised(input);
      if (!x || !x->isUniform() || (!all.empty() && !all[0].isLike(*x)))
        return rewriter.notifyMatchFailure(op, "the operands are not dequantised alike");
      all.push_back(*x);
    }
    if (all.empty())
      return failure();
    SmallVector<Value> bytes;
    for (Dequantised &x : all) {
      x.materialise(b);
      bytes.push_back(x.bytes);
    }
    all[0].bytes = b.concat(bytes, op.getAxis());
    rewriter.replaceOp(op, all[0].emit(b));
    return success();
  }
};

//===--- quantisation ---------------------------------------------------------------------------------------------===//

/// What `op` of f32 divides by: a constant, or the reciprocal of one that it multiplies by.
std::optional<double> findDivisor(Operation *op) {
  auto isNormal = [](double scale) { return scale > 1e-30 && scale < 1e30; };
  if (!isa_and_nonnull<DivOp, MulOp>(op) || !PrimBuilder::elementOf(op->getResult(0)).isF32())
    return std::nullopt;
  std::optional<double> number = getSplatValue(op->getOperand(1));
  if (!number || !isNormal(*number))
    return std::nullopt;
  return isa<DivOp>(op) ? *number : 1 / *number;
}

/// round(value / scale) + zero, held in the range of the type of `op`.
struct Quantise {
  Value value;
  double scale = 1, zero = 0;
};
std::optional<Quantise> traceQuantise(ConvertOp op) {
  if (!isByte(op.getResult()))
    return std::nullopt;
  const bool isUnsigned = PrimBuilder::elementOf(op.getResult()).isUnsignedInteger();
  auto fromFloat = op.getOperand().getDefiningOp<ConvertOp>();
  auto min = fromFloat ? fromFloat.getOperand().getDefiningOp<MinOp>() : MinOp();
  auto max = min ? min.getLhs().getDefiningOp<MaxOp>() : MaxOp();
  if (!max || !PrimBuilder::elementOf(max.getResult()).isF32() ||
      getSplatValue(min.getRhs()) != (isUnsigned ? 255.0 : 127.0) ||
      getSplatValue(max.getRhs()) != (isUnsigned ? 0.0 : -128.0))
    return std::nullopt;
  Quantise found;
  Value v = max.getLhs();
  if (auto add = v.getDefiningOp<AddOp>()) {
    Value zero = add.getRhs();
    while (auto convert = zero.getDefiningOp<ConvertOp>())
      zero = convert.getOperand();
    auto number = getSplatValue(zero);
    if (!number)
      return std::nullopt;
    found.zero = *number;
    v = add.getLhs();
  }
  auto round = v.getDefiningOp<RoundOp>();
  Operation *quotient = round ? round.getOperand().getDefiningOp() : nullptr;
  std::optional<double> scale = findDivisor(quotient);
  if (!scale)
    return std::nullopt;
  found.scale = *scale;
  found.value = quotient->getOperand(0);
  return found;
}

struct QuantiseDequantised : OpRewritePattern<ConvertOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConvertOp op, PatternRewriter &rewriter) const override {
    std::optional<Quantise> quantise = traceQuantise(op);
    if (!quantise)
      return failure();
    PrimBuilder b(rewriter, op);
    // The quotient of two equal normal numbers times at most 255 is within 1e-4 of the integer.
    std::optional<Dequantised> x = traceDequantised(quantise->value);
    if (!x || !x->scale.number || std::abs(*x->scale.number / quantise->scale - 1) > 1e-7 * 2 ||
        x->zero.number != quantise->zero || b.elementOf(x->source) != b.elementOf(op.getResult()))
      return rewriter.notifyMatchFailure(op, "the operand was dequantised otherwise");
    x->materialise(b);
    rewriter.replaceOp(op, x->bytes);
    return success();
  }
};

/// The division of a quantisation goes into the factors before it, which are constants.
template <typename Op> struct DivideFactors : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    std::optional<double> by = findDivisor(op);
    if (!by || !op.getResult().hasOneUse() || !isa<RoundOp>(*op.getResult().user_begin()))
      return rewriter.notifyMatchFailure(op, "no quantisation by a constant");
    if (isMadeOfConstants(op.getLhs()) || !isDivisible(op.getLhs()))
      return rewriter.notifyMatchFailure(op, "the dividend is no sum of integers times constants");
    PrimBuilder b(rewriter, op);
    rewriter.replaceOp(op, divide(b, op.getLhs(), *by));
    return success();
  }

private:
  /// Whether the quotient can be told without a division: of sums of integers times constants, read once.
  static bool isDivisible(Value v, int64_t depth = 12) {
    if (isMadeOfConstants(v))
      return true;
    Operation *op = v.getDefiningOp();
    if (!op || depth == 0 || !PrimBuilder::elementOf(v).isF32())
      return false;
    if (auto mul = dyn_cast<MulOp>(op))
      return isMadeOfConstants(mul.getRhs()) && (isInteger(mul.getLhs()) || isDivisible(mul.getLhs(), depth - 1));
    if (!v.hasOneUse())
      return false;
    if (isa<AddOp>(op))
      return isDivisible(op->getOperand(0), depth - 1) && isDivisible(op->getOperand(1), depth - 1);
    if (isa<MaxOp, MinOp>(op))
      return isMadeOfConstants(op->getOperand(1)) && isDivisible(op->getOperand(0), depth - 1);
    return isa<TransposeOp, ReshapeOp>(op) && isDivisible(op->getOperand(0), depth - 1);
  }

  /// Whether `v` of f32 holds integers: converted ones, or the sums of emitExactDepthwise.
  static bool isInteger(Value v) {
    if (auto convert = v.getDefiningOp<ConvertOp>())
      return isa<IntegerType>(PrimBuilder::elementOf(convert.getOperand()));
    if (auto sub = v.getDefiningOp<SubOp>(); sub && isMadeOfConstants(sub.getRhs()))
      v = sub.getLhs();
    auto conv = v.getDefiningOp<ConvOp>();
    return conv && isExactDepthwise(conv) && isInteger(conv.getInput());
  }

  /// What the constant `v` repeats and the dims of `v` that this has; `v` itself if it repeats nothing. Products of
  /// what repeats alike do so.
  static std::pair<Value, SmallVector<int64_t>> repeated(PrimBuilder &b, Value v) {
    if (auto broadcast = v.getDefiningOp<BroadcastOp>())
      return {broadcast.getOperand(), llvm::to_vector(broadcast.getDims())};
    auto mul = v.getDefiningOp<MulOp>();
    if (!mul)
      return {v, llvm::to_vector(llvm::seq<int64_t>(0, b.rankOf(v)))};
    auto number = [](Value x) { return getSplatValue(x); };
    for (auto [x, y] : {std::pair(mul.getLhs(), mul.getRhs()), std::pair(mul.getRhs(), mul.getLhs())})
      if (auto factor = number(y)) {
        auto [small, dims] = repeated(b, x);
        return {b.binary<MulOp>(small, *factor), dims};
      }
    auto [left, leftDims] = repeated(b, mul.getLhs());
    auto [right, rightDims] = repeated(b, mul.getRhs());
    if (leftDims == rightDims && left.getType() == right.getType())
      return {b.mul(left, right), leftDims};
    return {v, llvm::to_vector(llvm::seq<int64_t>(0, b.rankOf(v)))};
  }

  static Value divide(PrimBuilder &b, Value v, double by) {
    if (auto number = getSplatValue(v))
      return b.splatLike(v, *number / by);
    Operation *op = v.getDefiningOp();
    if (isMadeOfConstants(v)) {
      auto [small, dims] = repeated(b, v);
      return b.broadcastInDims(b.binary<DivOp>(small, by), getSizes(v), dims);
    }
    if (isa<MulOp>(op))
      return b.mul(op->getOperand(0), divide(b, op->getOperand(1), by));
    if (isMove(op))
      return emitMove(b, op, divide(b, op->getOperand(0), by));
    Value lhs = divide(b, op->getOperand(0), by), rhs = divide(b, op->getOperand(1), by);
    return isa<AddOp>(op) ? b.add(lhs, rhs) : isa<MaxOp>(op) ? b.max(lhs, rhs) : b.min(lhs, rhs);
  }
};

struct SinkDequantizePass : public tc::prim::impl::SinkDequantizePassBase<SinkDequantizePass> {
  using SinkDequantizePassBase::SinkDequantizePassBase;

  void runOnOperation() override {
    MLIRContext *context = &getContext();
    RewritePatternSet patterns(context), factors(context);
    patterns.add<DotOfDequantised, ConvOfDequantised, MoveDequantised, LargestDequantised, ConcatDequantised,
                 QuantiseDequantised>(context);
    // Last: what is left of a quantisation of what was dequantised alike would not be known again.
    factors.add<DivideFactors<DivOp>, DivideFactors<MulOp>>(context);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))) ||
        failed(applyPatternsGreedily(getOperation(), std::move(factors))))
      signalPassFailure();
  }
};

} // namespace
