//===- PointwiseConvs.cpp - 1x1 convolutions between images that have their channels first -----------------------===//
//
// A convolution has its channels last; a layer alone, or one at both ends of a network, turns an image whose channels
// are first, and turns the result back. One whose kernel has a single position is a product that takes the image as it
// lies, and leaves the result so:
//
//   %a = prim.transpose %x [0, 2, 3, 1]                        %w2 = prim.transpose (reshape %w)         [O, C]
//   %y = prim.conv %a, %w         [N, H, W, O]       -->       %p = prim.dot_general %w2, reshape %x     [O, N, H * W]
//   ...  pointwise ops, transpose [0, 3, 1, 2]                 %y = prim.transpose (reshape %p)
//
// where transposes then meet their inverses. The product packs the image while it runs, which takes no longer than to
// turn it.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Analysis/LikelySizes.h"
#include "tc/Dialect/Prim/Utils/ChannelOrder.h"
#include "tc/Dialect/Prim/Utils/Computed.h"
#include "tc/Dialect/Prim/Utils/PrimBuilder.h"
#include "tc/Transforms/Prepare/CPU/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tc::prepare {
#define GEN_PASS_DEF_POINTWISECONVSPASS
#include "tc/Transforms/Prepare/CPU/Passes.h.inc"
} // namespace tc::prepare

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

// Fewer pixels do not pay for a filter that is not packed ahead.
constexpr int64_t kLeastPixels = 256;
// Products of so few rows read the image where it lies (strategy "cpu.skinny_gemm"), each image by itself.
constexpr int64_t kFewOutputs = 16;
// Groups of more outputs need sums of so many channels at least, and of few outputs, of so many.
constexpr int64_t kLeastDepth = 32, kLeastFewDepth = 8;
// Columns that a product takes together: those of several images side by side must not mix two of them.
constexpr int64_t kColumns = 16;

/// Whether all that is made of `value` by pointwise ops is transposed to channels first, and what else they read can be
/// transposed for nothing.
bool isTransposedBack(Value value) {
  // Values that broadcasts spread over pixels, or that are channels first already.
  auto isFree = [&](Value operand) {
    Operation *op = operand.getDefiningOp();
    auto transpose = dyn_cast_or_null<TransposeOp>(op);
    return isa_and_nonnull<SplatOp, BroadcastOp>(op) || (transpose && isToChannelsLast(transpose.getPermutation()));
  };
  return value.hasOneUse() && llvm::all_of(value.getUsers(), [&](Operation *user) {
           if (auto transpose = dyn_cast<TransposeOp>(user))
             return isToChannelsFirst(transpose.getPermutation());
           return user->hasTrait<PointwiseTrait>() && user->getNumResults() == 1 &&
                  llvm::all_of(user->getOperands(),
                               [&](Value operand) { return operand == value || isFree(operand); }) &&
                  isTransposedBack(user->getResult(0));
         });
}

/// Whether `image` is every second or third pixel of another: to pick these while an operand is packed takes longer
/// than while the image is transposed.
bool isSubsampled(Value image) {
  auto slice = image.getDefiningOp<SliceOp>();
  return slice && llvm::any_of(slice.getSteps(), [](int64_t step) { return step != 1; });
}

/// The convolution's result by a product; null: it stays as it is. `isConstant`: its filter is known. Of groups whose
/// filters are computed (one for each instance of a batch) and have few outputs, products of pixels would copy their
/// rows: they take the image channels first wherever it comes from.
Value multiply(PrimBuilder &b, ConvOp op, bool isConstant) {
  auto transpose = op.getInput().getDefiningOp<TransposeOp>();
  const bool isTransposed = transpose && transpose->hasOneUse() && isToChannelsLast(transpose.getPermutation());
  const auto groups = int64_t(op.getGroups());
  const bool liesFirst = isTransposed && isTransposedBack(op.getResult());
  if ((!liesFirst && (isConstant || groups == 1)) ||
      (!isConstant && isTransposed && isSubsampled(transpose.getOperand())))
    return {};
  const Sizes filter = getSizes(op.getFilter()), out = getSizes(op.getResult());
  const SmallVector<int64_t> toFirst = toChannelsFirst(out.size());
  const Sizes in = permuted(getSizes(op.getInput()), toFirst);
  auto isOne = [](int64_t number) { return number == 1; };
  auto isZero = [](int64_t number) { return number == 0; };
  if (!llvm::all_of(op.getStrides(), isOne) || !llvm::all_of(op.getPadLow(), isZero) ||
      !llvm::all_of(op.getPadHigh(), isZero) ||
      !llvm::all_of(ArrayRef(filter).drop_back(2), [](AffineExpr size) { return getConstantSize(size) == 1; }))
    return {};
  for (Value value : {op.getInput(), op.getFilter(), op.getResult()})
    if (!b.elementOf(value).isF32())
      return {};
  const AffineExpr pixels = product(b.getContext(), SizesRef(in).drop_front(2));
  const AffineExpr depth = filter[filter.size() - 2], outputs = simplifySize(out.back().floorDiv(groups));
  const bool isFew = getLikelySize(outputs, op, /*usual=*/kFewOutputs + 1) <= kFewOutputs;
  const int64_t leastDepth = isFew ? kLeastFewDepth : kLeastDepth;
  if (getLikelySize(pixels, op, /*usual=*/kLeastPixels) < kLeastPixels ||
      (groups != 1 && getLikelySize(depth, op, /*usual=*/leastDepth) < leastDepth))
    return {};
  if (!liesFirst && !isFew)
    return {};
  const bool isSingle = getConstantSize(in.front()) == 1;
  if (!isSingle && !isFew && getConstantSize(pixels).value_or(1) % kColumns != 0)
    return {};
  // [groups, outputs, depth] x [N, groups, depth, pixels]: one group and one image are left out. Of few outputs N is a
  // batch dim that comes first, else one of the columns, which the rows come before.
  const bool isGrouped = groups != 1, isBatch = !isSingle && isFew;
  Sizes ofWeights{depth, outputs}, ofImage{depth, pixels}, first{in.front(), out.back()};
  SmallVector<int64_t> lhsBatch, rhsBatch;
  if (isBatch) {
    lhsBatch.push_back(0);
    rhsBatch.push_back(0);
  }
  if (isGrouped) {
    ofWeights.insert(ofWeights.begin() + 1, b.size(groups));
    ofImage.insert(ofImage.begin(), b.size(groups));
    lhsBatch.push_back(isBatch);
    rhsBatch.push_back(!isSingle);
  }
  if (!isSingle)
    ofImage.insert(ofImage.begin(), in.front());
  Value weights = b.transpose(b.reshape(op.getFilter(), ofWeights),
                              isGrouped ? SmallVector<int64_t>{1, 2, 0} : SmallVector<int64_t>{1, 0});
  if (isBatch) {
    Sizes spread = getSizes(weights);
    spread.insert(spread.begin(), in.front());
    weights = b.broadcastInDims(weights, spread, llvm::to_vector(llvm::seq<int64_t>(1, int64_t(spread.size()))));
  }
  const Value image = b.reshape(isTransposed ? transpose.getOperand() : b.transpose(op.getInput(), toFirst), ofImage);
  Value result = DotGeneralOp::create(b, weights, image, lhsBatch, rhsBatch, ArrayRef<int64_t>{b.rankOf(weights) - 1},
                                      ArrayRef<int64_t>{int64_t(ofImage.size()) - 2});
  if (!isSingle && !isFew)
    result = b.transpose(result, isGrouped ? SmallVector<int64_t>{2, 0, 1, 3} : SmallVector<int64_t>{1, 0, 2});
  llvm::append_range(first, SizesRef(in).drop_front(2));
  return b.transpose(b.reshape(result, first), toChannelsLast(in.size()));
}

struct PointwiseConvsPass : public tc::prepare::impl::PointwiseConvsPassBase<PointwiseConvsPass> {
  void runOnOperation() override {
    const llvm::DenseSet<Value> computed = collectComputed(getOperation());
    SmallVector<ConvOp> convolutions;
    getOperation().walk([&](ConvOp conv) { convolutions.push_back(conv); });
    for (ConvOp conv : convolutions) {
      OpBuilder builder(conv);
      PrimBuilder b(builder, conv);
      if (Value result = multiply(b, conv, !computed.contains(conv.getFilter()))) {
        conv.getResult().replaceAllUsesWith(result);
        conv.erase();
      }
    }
  }
};

} // namespace
