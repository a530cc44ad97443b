//===- PointwiseConvs.cpp - 1x1 convolutions between images that have their channels first ------------------------===//
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

#include "ChannelOrder.h"
#include "Computed.h"
#include "tc/Dialect/Prim/Transforms/Passes.h"
#include "tc/Dialect/Prim/Utils/PrimBuilder.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tc::prim {
#define GEN_PASS_DEF_POINTWISECONVSPASS
#include "tc/Dialect/Prim/Transforms/Passes.h.inc"
} // namespace tc::prim

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

// Fewer pixels do not pay for a filter that is not packed ahead, and convolutions with fewer channels in the result
// take the image's lines as they lie (strategy "lines").
constexpr int64_t kLeastPixels = 256, kLeastChannels = 8;
// Columns that a product takes together: those of several images side by side must not mix two of them.
constexpr int64_t kColumns = 16;

/// Whether all that is made of `value` by pointwise ops is turned to channels first, and what else they read can be
/// turned for nothing.
bool isTurnedBack(Value value) {
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
                  isTurnedBack(user->getResult(0));
         });
}

/// The convolution's result by a product; null: it stays as it is.
Value multiply(PrimBuilder &b, ConvOp op) {
  auto transpose = op.getInput().getDefiningOp<TransposeOp>();
  if (!transpose || !transpose->hasOneUse() || !isToChannelsLast(transpose.getPermutation()) ||
      !isTurnedBack(op.getResult()))
    return {};
  const Sizes filter = getSizes(op.getFilter()), in = getSizes(transpose.getOperand()), out = getSizes(op.getResult());
  auto isOne = [](int64_t number) { return number == 1; };
  auto isZero = [](int64_t number) { return number == 0; };
  if (op.getGroups() != 1 || !llvm::all_of(op.getStrides(), isOne) || !llvm::all_of(op.getPadLow(), isZero) ||
      !llvm::all_of(op.getPadHigh(), isZero) ||
      !llvm::all_of(ArrayRef(filter).drop_back(2), [](AffineExpr size) { return getConstantSize(size) == 1; }))
    return {};
  for (Value value : {op.getInput(), op.getFilter(), op.getResult()})
    if (!b.elementOf(value).isF32())
      return {};
  const AffineExpr pixels = product(b.getContext(), SizesRef(in).drop_front(2));
  if (getConstantSize(pixels).value_or(kLeastPixels) < kLeastPixels ||
      getConstantSize(out.back()).value_or(kLeastChannels) < kLeastChannels)
    return {};
  const bool isSingle = getConstantSize(in.front()) == 1;
  if (!isSingle && getConstantSize(pixels).value_or(1) % kColumns != 0)
    return {};
  const AffineExpr channels = in[1], outputs = out.back();
  const Value weights = b.transpose(b.reshape(op.getFilter(), {channels, outputs}), {1, 0});
  Value image =
      b.reshape(transpose.getOperand(), isSingle ? Sizes{channels, pixels} : Sizes{in.front(), channels, pixels});
  Value result = DotGeneralOp::create(b, weights, image, ArrayRef<int64_t>{}, ArrayRef<int64_t>{}, ArrayRef<int64_t>{1},
                                      ArrayRef<int64_t>{isSingle ? 0 : 1});
  if (!isSingle)
    result = b.transpose(result, {1, 0, 2});
  Sizes first{in.front(), outputs};
  llvm::append_range(first, SizesRef(in).drop_front(2));
  return b.transpose(b.reshape(result, first), transpose.getPermutation());
}

struct PointwiseConvsPass : public tc::prim::impl::PointwiseConvsPassBase<PointwiseConvsPass> {
  void runOnOperation() override {
    const llvm::DenseSet<Value> computed = collectComputed(getOperation());
    SmallVector<ConvOp> convolutions;
    getOperation().walk([&](ConvOp conv) {
      if (!computed.contains(conv.getFilter()))
        convolutions.push_back(conv);
    });
    for (ConvOp conv : convolutions) {
      OpBuilder builder(conv);
      PrimBuilder b(builder, conv);
      if (Value result = multiply(b, conv)) {
        conv.getResult().replaceAllUsesWith(result);
        conv.erase();
      }
    }
  }
};

} // namespace
