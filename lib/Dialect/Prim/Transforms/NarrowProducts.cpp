//===- NarrowProducts.cpp - products of 8-bit integers as such ----------------------------------------------------===//
//
//   dot(convert(x) - xz, convert(w) - wz)  ->  dot(x, w) - xz * (sums of w - K * wz) - wz * sums of x
//
// where x and w are 8-bit integers, everything else i32, and the zero points the same along K. i32 arithmetic wraps, so
// the two are equal to the last bit. The product's left side becomes ui8 and its right side i8, the form of vpdpbusd:
// the other kinds are moved by 128, and their zero points with them. With constant weights, their sums fold, and so do
// zero points of 128.
//
// Convolutions become the same, with padding by x's zero point: then x counts as padded, and the sums of w are those of
// whole filters. One with an input channel for each filter is computed in f32, which is exact for bytes.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Dequantised.h"
#include "tc/Dialect/Prim/Transforms/Passes.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace tc::prim {
#define GEN_PASS_DEF_NARROWPRODUCTSPASS
#include "tc/Dialect/Prim/Transforms/Passes.h.inc"
} // namespace tc::prim

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

/// Numbers of which dim i is dim dims[i] of a larger tensor that they are spread over.
struct Spread {
  Value value;
  SmallVector<int64_t> dims;
};

/// A zero point: a number, or what a broadcast spreads.
struct Zero {
  std::optional<double> number;
  BroadcastOp broadcast;

  Spread emit(PrimBuilder &b) const {
    if (number)
      return {b.scalar(b.getI32Type(), *number), {}};
    BroadcastOp op = broadcast;
    Spread spread;
    Sizes kept;
    for (auto [size, dim] : llvm::zip_equal(getSizes(op.getOperand()), op.getDims()))
      if (getConstantSize(size) != 1) {
        kept.push_back(size);
        spread.dims.push_back(dim);
      }
    spread.value = b.convert(b.reshape(op.getOperand(), kept), b.getI32Type());
    return spread;
  }
};

/// `v`, of i32, as something that repeats along the dims `depth`; nullopt if it does not.
std::optional<Zero> traceZero(Value v, ArrayRef<int64_t> depth) {
  if (auto convert = v.getDefiningOp<ConvertOp>(); convert && !getSplatValue(v))
    v = convert.getOperand();
  if (auto number = getSplatValue(v))
    return Zero{number, {}};
  auto broadcast = v.getDefiningOp<BroadcastOp>();
  if (!broadcast || !isa<IntegerType>(PrimBuilder::elementOf(v)))
    return std::nullopt;
  Sizes full = getSizes(v);
  for (auto [size, dim] : llvm::zip_equal(getSizes(broadcast.getOperand()), broadcast.getDims()))
    if (getConstantSize(size) != 1 && (llvm::is_contained(depth, dim) || size != full[dim]))
      return std::nullopt;
  return Zero{std::nullopt, broadcast};
}

/// One side of the product.
struct Side {
  Value bytes;
  std::optional<Zero> traced;
  std::optional<Dequantised> moved; ///< instead of the two, where something is moved in between
  std::optional<Spread> zero;       ///< of `traced`, when it is written
};

std::optional<Side> traceSide(Value v, ArrayRef<int64_t> depth) {
  Side side;
  Value from = v;
  auto sub = v.getDefiningOp<SubOp>();
  if (sub) {
    side.traced = traceZero(sub.getRhs(), depth);
    from = sub.getLhs();
  }
  auto convert = from.getDefiningOp<ConvertOp>();
  if (convert && isByte(convert.getOperand()) && (!sub || side.traced)) {
    side.bytes = convert.getOperand();
    return side;
  }
  side.traced.reset();
  side.moved = traceCentred(v);
  if (!side.moved || llvm::is_contained(depth, side.moved->zero.dim))
    return std::nullopt;
  return side;
}

/// The bytes with the top bit flipped, as the other kind of integers, and the zero point moved alike.
void emitBytes(PrimBuilder &b, Side &side, Type type, double by) {
  if (side.moved) {
    side.moved->materialise(b);
    side.bytes = side.moved->bytes;
    const Parameter &zero = side.moved->zero;
    side.zero = Spread{zero.flat(b, b.getI32Type()), {}};
    if (!zero.isUniform())
      side.zero->dims.push_back(zero.dim);
  } else if (side.traced) {
    side.zero = side.traced->emit(b);
  }
  if (b.elementOf(side.bytes) == type)
    return;
  double top = b.elementOf(side.bytes).isUnsignedInteger(8) ? 128 : -128;
  side.bytes = BitcastOp::create(b, b.binary<XorOp>(side.bytes, top), type);
  if (!side.zero)
    side.zero = Spread{b.scalar(b.getI32Type(), by), {}};
  else if (auto number = getSplatValue(side.zero->value))
    side.zero->value = b.splatLike(side.zero->value, *number + by);
  else
    side.zero->value = b.binary<AddOp>(side.zero->value, by);
}

bool isZero(const std::optional<Spread> &spread) { return !spread || getSplatValue(spread->value) == 0.0; }

struct NarrowProduct : OpRewritePattern<DotGeneralOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DotGeneralOp op, PatternRewriter &rewriter) const override {
    PrimBuilder b(rewriter, op);
    Type i32 = b.getI32Type();
    if (b.elementOf(op.getLhs()) != i32 || b.elementOf(op.getRhs()) != i32 || b.elementOf(op.getResult()) != i32)
      return rewriter.notifyMatchFailure(op, "no product of i32");
    std::optional<Side> lhs = traceSide(op.getLhs(), op.getLhsContract());
    std::optional<Side> rhs = lhs ? traceSide(op.getRhs(), op.getRhsContract()) : std::nullopt;
    if (!rhs)
      return rewriter.notifyMatchFailure(op, "an operand is no 8-bit integer less a zero point");
    emitBytes(b, *lhs, b.getIntegerType(8, /*isSigned=*/false), 128);
    emitBytes(b, *rhs, b.getIntegerType(8), -128);

    // Where the dims of the operands stand in the result.
    Sizes sizes = getSizes(op.getResult()), lhsSizes = getSizes(op.getLhs());
    int64_t next = op.getLhsBatch().size();
    auto place = [&](int64_t rank, ArrayRef<int64_t> batch, ArrayRef<int64_t> contract) {
      SmallVector<int64_t> dims(rank, -1);
      for (int64_t i = 0; i < rank; ++i) {
        const auto *found = llvm::find(batch, i);
        if (found != batch.end())
          dims[i] = found - batch.begin();
        else if (!llvm::is_contained(contract, i))
          dims[i] = next++;
      }
      return dims;
    };
    SmallVector<int64_t> lhsPlace = place(lhsSizes.size(), op.getLhsBatch(), op.getLhsContract()),
                         rhsPlace = place(b.rankOf(op.getRhs()), op.getRhsBatch(), op.getRhsContract());
    auto onResult = [&](const Spread &spread, ArrayRef<int64_t> placed) -> Spread {
      Spread result{spread.value, {}};
      for (int64_t dim : spread.dims)
        result.dims.push_back(placed[dim]);
      // A broadcast's dims rise; those of a batch may not.
      SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, result.dims.size()));
      llvm::sort(order, [&](int64_t x, int64_t y) { return result.dims[x] < result.dims[y]; });
      if (!llvm::is_sorted(result.dims)) {
        result.value = b.transpose(result.value, order);
        llvm::sort(result.dims);
      }
      return result;
    };
    auto sumOf = [&](const Side &side, ArrayRef<int64_t> contract, ArrayRef<int64_t> placed) {
      Spread sum{b.reduce(ReduceKind::Sum, b.convert(side.bytes, i32), contract), {}};
      for (int64_t i = 0; i < b.rankOf(side.bytes); ++i)
        if (!llvm::is_contained(contract, i))
          sum.dims.push_back(i);
      return onResult(sum, placed);
    };
    auto wide = [&](const Spread &spread) { return b.broadcastInDims(spread.value, sizes, spread.dims); };
    // Numbers stay small as long as one side of a product is one number.
    auto times = [&](const Spread &x, const Spread &y) -> Spread {
      for (auto [one, other] : {std::pair(&x, &y), std::pair(&y, &x)})
        if (one->dims.empty())
          return {b.mul(b.broadcastTo(one->value, getSizes(other->value)), other->value), other->dims};
      SmallVector<int64_t> all = llvm::to_vector(llvm::seq<int64_t>(0, sizes.size()));
      return {b.mul(wide(x), wide(y)), all};
    };
    Value y = DotGeneralOp::create(b, op.getResult().getType(), lhs->bytes, rhs->bytes, op.getLhsBatchAttr(),
                                   op.getRhsBatchAttr(), op.getLhsContractAttr(), op.getRhsContractAttr());
    const bool lhsZero = !isZero(lhs->zero), rhsZero = !isZero(rhs->zero);
    if (lhsZero)
      y = b.sub(y, wide(times(onResult(*lhs->zero, lhsPlace), sumOf(*rhs, op.getRhsContract(), rhsPlace))));
    if (rhsZero)
      y = b.sub(y, wide(times(onResult(*rhs->zero, rhsPlace), sumOf(*lhs, op.getLhsContract(), lhsPlace))));
    if (lhsZero && rhsZero) {
      Spread both = times(onResult(*lhs->zero, lhsPlace), onResult(*rhs->zero, rhsPlace));
      Sizes depth;
      for (int64_t dim : op.getLhsContract())
        depth.push_back(lhsSizes[dim]);
      Value count = b.convert(b.sizeValue(product(b.getContext(), depth)), i32);
      y = b.add(y, wide(times(Spread{count, {}}, both)));
    }
    rewriter.replaceOp(op, y);
    return success();
  }
};

struct NarrowConvolution : OpRewritePattern<ConvOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConvOp op, PatternRewriter &rewriter) const override {
    PrimBuilder b(rewriter, op);
    const Type i32 = b.getI32Type();
    if (b.elementOf(op.getInput()) != i32 || b.elementOf(op.getFilter()) != i32 || b.elementOf(op.getResult()) != i32)
      return rewriter.notifyMatchFailure(op, "no convolution of i32");
    std::optional<Dequantised> x = traceCentred(op.getInput()), w = traceCentred(op.getFilter());
    const Sizes filterSizes = getSizes(op.getFilter()), sizes = getSizes(op.getResult());
    const int64_t last = sizes.size() - 1, columns = filterSizes.size() - 1;
    if (!x || !w || !x->isUniform() || (!w->isUniform() && w->zero.dim != columns))
      return rewriter.notifyMatchFailure(op, "an operand is no 8-bit integer less a zero point");
    if (isExactDepthwise(op)) {
      x->materialise(b);
      w->materialise(b);
      rewriter.replaceOp(op, b.convert(emitExactDepthwise(b, op, *x, *w), i32));
      return success();
    }
    Side input, filter;
    input.moved = x;
    filter.moved = w;
    emitBytes(b, input, b.getIntegerType(8, /*isSigned=*/false), 128);
    emitBytes(b, filter, b.getIntegerType(8), -128);
    SmallVector<int64_t> low(op.getPadLow()), high(op.getPadHigh());
    const Value zero = input.zero->value;
    input.bytes = emitZeroPads(b, input.bytes, Parameter{getSplatValue(zero), zero, -1}, low, high);
    Value y = ConvOp::create(b, makeType(i32, sizes), input.bytes, filter.bytes, op.getStrides(), op.getDilations(),
                             low, high, op.getGroups());
    SmallVector<int64_t> summed = llvm::to_vector(llvm::seq<int64_t>(0, columns));
    auto perColumn = [&](const Spread &spread) {
      return spread.dims.empty() ? b.broadcastInDims(spread.value, {sizes[last]}, {}) : spread.value;
    };
    if (!isZero(input.zero)) {
      Value sums = b.reduce(ReduceKind::Sum, b.convert(filter.bytes, i32), summed);
      if (!isZero(filter.zero)) {
        Value count = b.convert(b.sizeValue(product(b.getContext(), SizesRef(filterSizes).drop_back())), i32);
        sums = b.sub(sums, b.mul(perColumn(*filter.zero), b.broadcastInDims(count, {sizes[last]}, {})));
      }
      y = b.sub(y, b.broadcastInDims(b.mul(sums, perColumn(*input.zero)), sizes, {last}));
    }
    if (!isZero(filter.zero))
      y = b.sub(y, b.mul(emitWindowSums(b, op, input.bytes, low, high),
                         b.broadcastInDims(perColumn(*filter.zero), sizes, {last})));
    rewriter.replaceOp(op, y);
    return success();
  }

private:
  /// For each output the sum of the inputs in its window, in i32.
  static Value emitWindowSums(PrimBuilder &b, ConvOp op, Value input, ArrayRef<int64_t> low, ArrayRef<int64_t> high) {
    Sizes sizes = getSizes(input), out = getSizes(op.getResult()), filter = getSizes(op.getFilter());
    const AffineExpr groups = b.size(op.getGroups()), columns = out.back();
    // Channels of a group first, then positions.
    sizes.back() = groups;
    sizes.push_back(filter[filter.size() - 2]);
    Value sums = b.convert(b.reshape(input, sizes), b.getI32Type());
    sums = b.reduce(ReduceKind::Sum, sums, {int64_t(sizes.size()) - 1});
    Value ones = b.splat(
        b.getI32Type(),
        [&] {
          Sizes ones(filter.begin(), filter.end() - 2);
          ones.append({b.size(1), groups});
          return ones;
        }(),
        1);
    sums = ConvOp::create(b, sums, ones, op.getStrides(), op.getDilations(), low, high, op.getGroups());
    // Each sum for all columns of its group.
    Sizes wide(out.begin(), out.end() - 1);
    wide.append({groups, simplifySize(columns.floorDiv(op.getGroups()))});
    return b.reshape(b.broadcastInDims(sums, wide, llvm::to_vector(llvm::seq<int64_t>(0, out.size()))), out);
  }
};

struct NarrowProductsPass : public tc::prim::impl::NarrowProductsPassBase<NarrowProductsPass> {
  using NarrowProductsPassBase::NarrowProductsPassBase;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<NarrowProduct, NarrowConvolution>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
