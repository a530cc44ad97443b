//===- CanonicalizeArithmetic.cpp - identities that lose nothing --------------------------------------------------===//
//
// Of elementwise ops, products, gathers and conversions.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CanonicalizePrim.h"

#include "tc/Dialect/Prim/Utils/ChannelOrder.h"
#include "tc/Dialect/Prim/Utils/Indices.h"
#include "tc/Dialect/Prim/Utils/PrimBuilder.h"

#include "mlir/IR/IRMapping.h"

#include <cmath>

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {
bool isSplat(Value v, double value) { return getSplatValue(v) == value; }

/// Integer powers up to this one are products: they round 3.5 times as much as a single one at most.
constexpr int64_t kMostPower = 8;

struct SimplifyBinary : RewritePattern {
  explicit SimplifyBinary(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}
  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (op->getNumOperands() != 2 || !isa<AddOp, SubOp, MulOp, DivOp, PowOp, AndOp, OrOp>(op))
      return failure();
    Value a = op->getOperand(0), b = op->getOperand(1);
    auto keep = [&](Value v) {
      rewriter.replaceOp(op, v);
      return success();
    };
    bool isBool = PrimBuilder::elementOf(a).isInteger(1);
    if (isa<AddOp>(op) && isSplat(a, 0))
      return keep(b);
    if (isa<AddOp, SubOp>(op) && isSplat(b, 0))
      return keep(a);
    if (isa<MulOp>(op) && isSplat(a, 1))
      return keep(b);
    if (isa<MulOp, DivOp>(op) && isSplat(b, 1))
      return keep(a);
    if (isa<MulOp>(op) && !PrimBuilder::isFloat(a) && !PrimBuilder::isComplex(a) && (isSplat(a, 0) || isSplat(b, 0)))
      return keep(isSplat(a, 0) ? a : b);
    if (isBool && isa<AndOp>(op) && (isSplat(a, 1) || isSplat(b, 0)))
      return keep(b);
    if (isBool && isa<AndOp>(op) && (isSplat(b, 1) || isSplat(a, 0)))
      return keep(a);
    if (isBool && isa<OrOp>(op) && (isSplat(a, 0) || isSplat(b, 1)))
      return keep(b);
    if (isBool && isa<OrOp>(op) && (isSplat(b, 0) || isSplat(a, 1)))
      return keep(a);
    PrimBuilder builder(rewriter, op);
    std::optional<double> c = getSplatValue(b);
    if (!c || !PrimBuilder::isFloat(a))
      return failure();
    if (isa<DivOp>(op)) {
      std::optional<double> reciprocal = PrimBuilder::getExactReciprocal(*c);
      return reciprocal ? keep(builder.binary<MulOp>(a, *reciprocal)) : failure();
    }
    if (isa<PowOp>(op)) {
      if (*c == 1)
        return keep(a);
      // By squares: what is beyond the range is so in the result, too.
      if (*c >= 2 && *c <= kMostPower && *c == std::trunc(*c)) {
        Value result, square = a;
        for (int64_t bits = int64_t(*c); bits; bits >>= 1, square = bits ? builder.mul(square, square) : square)
          if (bits & 1)
            result = result ? builder.mul(square, result) : square;
        return keep(result);
      }
      if (*c == -2) {
        Value reciprocal = builder.unary<ReciprocalOp>(a);
        return keep(builder.mul(reciprocal, reciprocal));
      }
      if (*c == 0.5)
        return keep(builder.unary<SqrtOp>(a));
      if (*c == -0.5)
        return keep(builder.unary<RsqrtOp>(a));
      if (*c == -1)
        return keep(builder.unary<ReciprocalOp>(a));
    }
    return failure();
  }
};

/// A product that contracts nothing is elementwise, and one that contracts no elements is zero.
struct SimplifyDot : OpRewritePattern<DotGeneralOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DotGeneralOp op, PatternRewriter &rewriter) const override {
    PrimBuilder b(rewriter, op);
    auto type = cast<RankedTensorType>(op.getResult().getType());
    Sizes sizes = getSizes(type), lhsSizes = getSizes(op.getLhs().getType());
    if (llvm::any_of(op.getLhsContract(), [&](int64_t dim) { return getConstantSize(lhsSizes[dim]) == 0; })) {
      rewriter.replaceOp(op, b.splat(type.getElementType(), sizes, 0));
      return success();
    }
    if (!op.getLhsContract().empty())
      return failure();
    // Where the dims of each operand are in the result: batch dims, then the other ones, lhs before rhs.
    int64_t next = op.getLhsBatch().size();
    auto place = [&](Value operand, ArrayRef<int64_t> batch) {
      SmallVector<int64_t> dims(cast<RankedTensorType>(operand.getType()).getRank(), -1);
      for (auto [i, dim] : llvm::enumerate(batch))
        dims[dim] = i;
      for (int64_t &dim : dims)
        if (dim < 0)
          dim = next++;
      SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, dims.size()));
      llvm::sort(order, [&](int64_t x, int64_t y) { return dims[x] < dims[y]; });
      llvm::sort(dims);
      return b.broadcastInDims(b.transpose(b.convert(operand, type.getElementType()), order), sizes, dims);
    };
    Value lhs = place(op.getLhs(), op.getLhsBatch());
    Value rhs = place(op.getRhs(), op.getRhsBatch());
    rewriter.replaceOp(op, b.mul(lhs, rhs));
    return success();
  }
};

/// A matrix times a vector is the vector times the matrix: generators keep the right-hand side in panels and read it
/// once, as constants are made for.
struct VectorFirst : OpRewritePattern<DotGeneralOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DotGeneralOp op, PatternRewriter &rewriter) const override {
    auto rowsOf = [](Value operand, ArrayRef<int64_t> batch, ArrayRef<int64_t> contract) {
      Sizes rows;
      for (auto [dim, size] : llvm::enumerate(getSizes(operand)))
        if (!llvm::is_contained(batch, int64_t(dim)) && !llvm::is_contained(contract, int64_t(dim)))
          rows.push_back(size);
      return getConstantSize(product(operand.getContext(), rows));
    };
    auto type = cast<RankedTensorType>(op.getResult().getType());
    if (!isa<FloatType>(type.getElementType()) || rowsOf(op.getRhs(), op.getRhsBatch(), op.getRhsContract()) != 1 ||
        rowsOf(op.getLhs(), op.getLhsBatch(), op.getLhsContract()) == 1)
      return rewriter.notifyMatchFailure(op, "no matrix times a vector");
    PrimBuilder b(rewriter, op);
    Value swapped = DotGeneralOp::create(b, op.getRhs(), op.getLhs(), op.getRhsBatch(), op.getLhsBatch(),
                                         op.getRhsContract(), op.getLhsContract());
    swapped.setType(makeType(type.getElementType(), getSizes(swapped)));
    rewriter.replaceOp(op, b.reshape(swapped, getSizes(type)));
    return success();
  }
};

/// What is gathered from nothing has no elements: no code is to compute where they would lie.
struct GatherFromNothing : OpRewritePattern<GatherOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(GatherOp op, PatternRewriter &rewriter) const override {
    if (getConstantSize(getSizes(op.getSource())[op.getAxis()]) != 0)
      return rewriter.notifyMatchFailure(op, "the source may have elements");
    PrimBuilder b(rewriter, op);
    rewriter.replaceOp(op, b.splatLike(op.getResult(), 0));
    return success();
  }
};

/// A list of indices that runs evenly is a slice; one that repeats each index of the dim equally often (nearest
/// upsampling by a whole factor, repeat_interleave) a broadcast.
struct GatherEvenly : OpRewritePattern<GatherOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(GatherOp op, PatternRewriter &rewriter) const override {
    const DenseIntElementsAttr indices = getConstantIndices(op.getIndices());
    const auto axis = int64_t(op.getAxis());
    const Sizes in = getSizes(op.getSource());
    const std::optional<int64_t> size = getConstantSize(in[axis]);
    if (!indices || indices.getType().getRank() != 1 || indices.empty() || !size || *size == 0)
      return rewriter.notifyMatchFailure(op, "no constant list of indices into a dim of a known size");
    const int64_t count = indices.getNumElements();
    auto all = indices.getValues<APInt>();
    auto at = [&](int64_t i) {
      const int64_t index = all[i].getSExtValue();
      return index < 0 ? index + *size : index;
    };
    PrimBuilder b(rewriter, op);
    const std::optional<EvenIndices> even = findEvenIndices(indices, *size);
    const int64_t step = count == 1 ? 1 : even ? even->steps.front() : 0;
    if (even && step != 0) {
      rewriter.replaceOp(op, b.sliceDim(op.getSource(), axis, b.size(even->first), b.size(count), step));
      return success();
    }
    const int64_t times = count / *size;
    if (times < 2 || count % *size != 0 ||
        !llvm::all_of(llvm::seq(count), [&](int64_t i) { return at(i) == i / times; }))
      return rewriter.notifyMatchFailure(op, "the indices do not run evenly");
    Sizes repeated(in);
    repeated.insert(repeated.begin() + axis + 1, b.size(times));
    SmallVector<int64_t> dims;
    for (int64_t dim = 0; dim < int64_t(in.size()); ++dim)
      dims.push_back(dim + (dim > axis));
    rewriter.replaceOp(op, b.reshape(b.broadcastInDims(op.getSource(), repeated, dims), getSizes(op.getResult())));
    return success();
  }
};

/// not(not(x)), neg(neg(x)).
template <typename Op> struct Involution : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    auto inner = op.getOperand().template getDefiningOp<Op>();
    if (!inner)
      return failure();
    rewriter.replaceOp(op, inner.getOperand());
    return success();
  }
};

/// Whether each value of `from` is a value of `to`.
bool isWidening(Type from, Type to) {
  auto f = dyn_cast<FloatType>(from), g = dyn_cast<FloatType>(to);
  if (f && g)
    return APFloat::isRepresentableBy(f.getFloatSemantics(), g.getFloatSemantics());
  auto i = dyn_cast<IntegerType>(from), j = dyn_cast<IntegerType>(to);
  if (!i || !j || i.isUnsigned() != j.isUnsigned() || (i.getWidth() == 1) != (j.getWidth() == 1))
    return false;
  return i.getWidth() <= j.getWidth();
}

struct SimplifyConvert : OpRewritePattern<ConvertOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConvertOp op, PatternRewriter &rewriter) const override {
    Value x = op.getOperand();
    if (x.getType() == op.getResult().getType()) {
      rewriter.replaceOp(op, x);
      return success();
    }
    auto inner = x.getDefiningOp<ConvertOp>();
    if (!inner || !isWidening(PrimBuilder::elementOf(inner.getOperand()), PrimBuilder::elementOf(x)))
      return rewriter.notifyMatchFailure(op, "no widening conversion before");
    PrimBuilder b(rewriter, op);
    rewriter.replaceOp(op, b.convert(inner.getOperand(), PrimBuilder::elementOf(op.getResult())));
    return success();
  }
};

/// min(max(convert(x) : i64, low), high)  ->  convert(min(max(convert(x) : i32, low), high)) : i64, for a float x and
/// bounds that i32 holds: positions of samples. Conversions saturate, so that nothing changes, and vectors of i64 take
/// twice the registers.
struct NarrowClampedConvert : OpRewritePattern<MinOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(MinOp op, PatternRewriter &rewriter) const override {
    auto bound = [](Value value) -> std::optional<int64_t> {
      auto splat = value.getDefiningOp<SplatOp>();
      auto number = splat ? dyn_cast<IntegerAttr>(splat.getValue()) : IntegerAttr();
      return number && llvm::isInt<32>(number.getInt()) ? std::optional(number.getInt()) : std::nullopt;
    };
    auto type = cast<RankedTensorType>(op.getType());
    auto max = op.getLhs().getDefiningOp<MaxOp>();
    auto convert = max ? max.getLhs().getDefiningOp<ConvertOp>() : ConvertOp();
    if (!type.getElementType().isSignlessInteger(64) || !convert || !max->hasOneUse() || !convert->hasOneUse() ||
        !isa<FloatType>(cast<RankedTensorType>(convert.getOperand().getType()).getElementType()))
      return failure();
    const std::optional<int64_t> low = bound(max.getRhs()), high = bound(op.getRhs());
    if (!low || !high)
      return failure();
    const Type narrow = RankedTensorType::get(type.getShape(), rewriter.getI32Type(), type.getEncoding());
    auto splat = [&](int64_t value) -> Value {
      return SplatOp::create(rewriter, op.getLoc(), narrow, rewriter.getI32IntegerAttr(int32_t(value)));
    };
    Value x = ConvertOp::create(rewriter, convert.getLoc(), narrow, convert.getOperand());
    x = MaxOp::create(rewriter, max.getLoc(), narrow, x, splat(*low));
    x = MinOp::create(rewriter, op.getLoc(), narrow, x, splat(*high));
    rewriter.replaceOpWithNewOp<ConvertOp>(op, type, x);
    return success();
  }
};

struct SimplifySelect : OpRewritePattern<SelectOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SelectOp op, PatternRewriter &rewriter) const override {
    std::optional<double> condition = getSplatValue(op.getCondition());
    if (op.getIfTrue() == op.getIfFalse())
      condition = 1;
    if (!condition)
      return failure();
    rewriter.replaceOp(op, *condition != 0 ? op.getIfTrue() : op.getIfFalse());
    return success();
  }
};
} // namespace

void tc::prim::populateArithmeticPatterns(RewritePatternSet &patterns) {
  patterns.add<SimplifyBinary, SimplifyDot, VectorFirst, GatherFromNothing, GatherEvenly, Involution<NegOp>,
               Involution<NotOp>, SimplifyConvert, NarrowClampedConvert, SimplifySelect>(patterns.getContext());
}
