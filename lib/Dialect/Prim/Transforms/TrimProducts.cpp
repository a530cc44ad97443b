//===- TrimProducts.cpp - products without what nobody reads and what is zero -------------------------------------===//
//
//   slice(relu(dot(x, w) + b))   ->  relu(dot(x, slice(w)) + slice(b))
//   dot(pad(x, 0), w)            ->  dot(x, slice(w))
//   dot(x [M, K, 1], w)          ->  reshape(dot(x [M, K], w))
//
// The first takes columns, or rows of x (the last token's logits); the second a constant w (transforms of padded
// lines); the third makes sums run along the last dim.
//
// Sums of the remaining elements have the same products in the same order; those with zeros are left out, which is only
// done where the other factors are finite.
//
// Run behind tc-recognize-composites, which looks for whole products, and before constants fold for the last time.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Prim/Interpreter/Tensor.h"
#include "tc/Dialect/Prim/Transforms/Passes.h"
#include "tc/Dialect/Prim/Utils/PrimBuilder.h"
#include "tc/Dialect/Prim/Utils/ProductDims.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <cmath>

namespace tc::prim {
#define GEN_PASS_DEF_TRIMPRODUCTSPASS
#include "tc/Dialect/Prim/Transforms/Passes.h.inc"
} // namespace tc::prim

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

// Slices that keep more of a product than this share leave it as it is; ops between the two at most.
constexpr double kMostKept = 0.875;
constexpr int kMostBetween = 8;

/// A contiguous part of a tensor.
struct Part {
  Sizes starts, counts;
};

/// For each dim of `to`, which has the same elements as `from` but for dims of 1, the dim of `from`, -1 for a dim of 1;
/// nullopt: the sizes differ otherwise.
std::optional<SmallVector<int64_t>> matchUnitDims(SizesRef from, SizesRef to) {
  SmallVector<int64_t> dims;
  size_t next = 0;
  auto skip = [&] {
    while (next < from.size() && getConstantSize(from[next]) == 1)
      ++next;
  };
  for (AffineExpr size : to) {
    if (getConstantSize(size) == 1) {
      dims.push_back(-1);
      continue;
    }
    skip();
    if (next == from.size() || from[next] != size)
      return std::nullopt;
    dims.push_back(int64_t(next++));
  }
  skip();
  return next == from.size() ? std::optional(dims) : std::nullopt;
}

/// The part of `reshape`'s operand that is `part` of its result; nullopt if it does more than add and drop dims of 1.
std::optional<Part> partBefore(ReshapeOp reshape, const Part &part) {
  const Sizes from = getSizes(reshape.getOperand()), to = getSizes(reshape.getResult());
  std::optional<SmallVector<int64_t>> dims = matchUnitDims(from, to);
  if (!dims)
    return std::nullopt;
  Part before{Sizes(from.size(), getAffineConstantExpr(0, reshape.getContext())), from};
  for (auto [i, dim] : llvm::enumerate(*dims))
    if (dim >= 0) {
      before.starts[dim] = part.starts[i];
      before.counts[dim] = part.counts[i];
    } else if (getConstantSize(part.counts[i]) != 1) {
      return std::nullopt;
    }
  return before;
}

/// Whether all that makes `part` of `v` are products, of which no more is then computed, behind pointwise ops.
bool isTrimmable(Value v, const Part &part, int depth = 0) {
  Operation *op = v.getDefiningOp();
  if (!op || !v.hasOneUse() || depth > kMostBetween)
    return false;
  if (isa<DotGeneralOp>(op))
    return true;
  if (auto reshape = dyn_cast<ReshapeOp>(op)) {
    std::optional<Part> before = partBefore(reshape, part);
    return before && isTrimmable(reshape.getOperand(), *before, depth + 1);
  }
  return op->hasTrait<PointwiseTrait>() && op->getNumResults() == 1 &&
         llvm::any_of(op->getOperands(), [&](Value operand) { return isTrimmable(operand, part, depth + 1); });
}

Value emitSlice(PrimBuilder &b, Value v, const Part &part) {
  if (part.counts == getSizes(v))
    return v;
  return b.slice(v, part.starts, SmallVector<int64_t>(part.starts.size(), 1), part.counts);
}

/// `part` of `v`, by smaller products where it is trimmable.
Value emitTrimmed(PrimBuilder &b, Value v, const Part &part) {
  if (!isTrimmable(v, part))
    return emitSlice(b, v, part);
  Operation *op = v.getDefiningOp();
  const Type type = makeType(b.elementOf(v), part.counts);
  if (auto reshape = dyn_cast<ReshapeOp>(op))
    return b.reshape(emitTrimmed(b, reshape.getOperand(), *partBefore(reshape, part)), part.counts);
  if (auto dot = dyn_cast<DotGeneralOp>(op)) {
    size_t next = dot.getLhsBatch().size();
    auto trimmed = [&](Value operand, ArrayRef<int64_t> batch, ArrayRef<int64_t> contract) {
      const Sizes sizes = getSizes(operand);
      Part of{Sizes(sizes.size(), b.size(0)), sizes};
      auto take = [&](int64_t dim, size_t i) {
        of.starts[dim] = part.starts[i];
        of.counts[dim] = part.counts[i];
      };
      for (auto [i, dim] : llvm::enumerate(batch))
        take(dim, i);
      for (int64_t dim : freeDims(operand, batch, contract))
        take(dim, next++);
      return emitSlice(b, operand, of);
    };
    const Value lhs = trimmed(dot.getLhs(), dot.getLhsBatch(), dot.getLhsContract()),
                rhs = trimmed(dot.getRhs(), dot.getRhsBatch(), dot.getRhsContract());
    auto result = DotGeneralOp::create(b, lhs, rhs, dot.getLhsBatch(), dot.getRhsBatch(), dot.getLhsContract(),
                                       dot.getRhsContract());
    result.getResult().setType(cast<RankedTensorType>(type));
    return result;
  }
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(emitTrimmed(b, operand, part));
  OperationState state(op->getLoc(), op->getName(), operands, type, op->getAttrs());
  return b.create(state)->getResult(0);
}

struct SliceOfProduct : OpRewritePattern<SliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SliceOp op, PatternRewriter &rewriter) const override {
    const Sizes from = getSizes(op.getOperand()), to = getSizes(op.getResult());
    double kept = 1;
    for (auto [whole, count, step] : llvm::zip_equal(from, to, op.getSteps())) {
      if (step != 1 && getConstantSize(count) != 1) // nor is a whole dim that is reversed
        return rewriter.notifyMatchFailure(op, "not contiguous");
      if (whole == count)
        continue;
      const std::optional<int64_t> size = getConstantSize(whole), left = getConstantSize(count);
      kept *= size && left && *size > 0 ? double(*left) / double(*size) : left ? 0.5 : 1;
    }
    const Part part{Sizes(op.getStarts().getResults()), to};
    if (kept > kMostKept)
      return rewriter.notifyMatchFailure(op, "most is kept");
    if (!isTrimmable(op.getOperand(), part))
      return rewriter.notifyMatchFailure(op, "no product behind pointwise ops that nobody else reads");
    PrimBuilder b(rewriter, op);
    rewriter.replaceOp(op, emitTrimmed(b, op.getOperand(), part));
    return success();
  }
};

/// Whether `v` is a constant all of whose elements are finite.
bool isFiniteConstant(Value v) {
  while (Operation *op = v.getDefiningOp()) {
    if (auto constant = dyn_cast<ConstantOp>(op)) {
      std::optional<Tensor> tensor = fromAttribute(constant.getValueAttr());
      return tensor && llvm::all_of(toDoubles(*tensor), [](double x) { return std::isfinite(x); });
    }
    if (!isa<ReshapeOp, TransposeOp, SliceOp>(op))
      return false;
    v = op->getOperand(0);
  }
  return false;
}

struct ProductOfPadded : OpRewritePattern<DotGeneralOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DotGeneralOp op, PatternRewriter &rewriter) const override {
    for (bool isRhs : {false, true}) {
      const Value padded = isRhs ? op.getRhs() : op.getLhs(), other = isRhs ? op.getLhs() : op.getRhs();
      const ArrayRef<int64_t> dims = isRhs ? op.getRhsContract() : op.getLhsContract(),
                              otherDims = isRhs ? op.getLhsContract() : op.getRhsContract();
      auto pad = skipReshapes(padded).getDefiningOp<PadOp>();
      if (!pad || getSplatValue(pad.getValue()) != 0.0)
        continue;
      const Sizes in = getSizes(pad.getOperand()), out = getSizes(pad.getResult()), own = getSizes(padded);
      std::optional<SmallVector<int64_t>> match = matchUnitDims(out, own);
      if (!match)
        continue;
      // The operand as it is before, and the part of the other one.
      Sizes before(own), rest = getSizes(other);
      Part part{Sizes(rest.size(), getAffineConstantExpr(0, op.getContext())), rest};
      bool fits = true, changes = false;
      for (auto [i, dim] : llvm::enumerate(*match)) {
        if (dim < 0 || in[dim] == out[dim])
          continue;
        const auto *found = llvm::find(dims, int64_t(i));
        const AffineExpr low = pad.getLow().getResult(dim);
        const std::optional<int64_t> first = getConstantSize(low), size = getConstantSize(in[dim]),
                                     whole = getConstantSize(out[dim]);
        fits &= found != dims.end() && first && size && whole && *first >= 0 && *first + *size <= *whole && *size > 0;
        if (!fits)
          break;
        before[i] = in[dim];
        part.starts[otherDims[found - dims.begin()]] = low;
        part.counts[otherDims[found - dims.begin()]] = in[dim];
        changes = true;
      }
      for (auto [whole, size] : llvm::zip_equal(out, in))
        fits &= getConstantSize(whole) != 1 || whole == size;
      if (!fits || !changes || !isFiniteConstant(other))
        continue;
      PrimBuilder b(rewriter, op);
      const Value first = b.reshape(pad.getOperand(), before), second = emitSlice(b, other, part);
      rewriter.modifyOpInPlace(op, [&] {
        op->setOperand(isRhs, first);
        op->setOperand(!isRhs, second);
      });
      return success();
    }
    return failure();
  }
};

struct TrailingUnitDims : OpRewritePattern<DotGeneralOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(DotGeneralOp op, PatternRewriter &rewriter) const override {
    PrimBuilder b(rewriter, op);
    Value operands[2] = {op.getLhs(), op.getRhs()};
    bool changes = false;
    for (bool isRhs : {false, true}) {
      Value &operand = operands[isRhs];
      const ArrayRef<int64_t> batch = isRhs ? op.getRhsBatch() : op.getLhsBatch(),
                              contract = isRhs ? op.getRhsContract() : op.getLhsContract();
      Sizes sizes = getSizes(operand);
      auto isFree = [&](int64_t dim) { return !llvm::is_contained(batch, dim) && !llvm::is_contained(contract, dim); };
      size_t free = freeDims(operand, batch, contract).size();
      while (free > 1 && isFree(int64_t(sizes.size()) - 1) && getConstantSize(sizes.back()) == 1) {
        sizes.pop_back();
        --free;
      }
      if (sizes.size() == getSizes(operand).size())
        continue;
      operand = b.reshape(operand, sizes);
      changes = true;
    }
    if (!changes)
      return rewriter.notifyMatchFailure(op, "no trailing dims of 1");
    const Type element = b.elementOf(op.getResult());
    auto result = DotGeneralOp::create(b, operands[0], operands[1], op.getLhsBatch(), op.getRhsBatch(),
                                       op.getLhsContract(), op.getRhsContract());
    result.getResult().setType(cast<RankedTensorType>(makeType(element, getSizes(result.getResult()))));
    rewriter.replaceOp(op, b.reshape(result, getSizes(op.getResult())));
    return success();
  }
};

struct TrimProductsPass : public tc::prim::impl::TrimProductsPassBase<TrimProductsPass> {
  using TrimProductsPassBase::TrimProductsPassBase;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<SliceOfProduct, ProductOfPadded, TrailingUnitDims>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
