//===- FuseRules.cpp - what fusion knows of each primitive --------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Transforms/Fuse.h"

using namespace mlir;
using namespace tc;
using namespace tc::fuse;

bool tc::fuse::isMadeByHost(Operation *op, Operation *reader) {
  constexpr int64_t kMaxElements = 16;
  if (isa<prim::SizesOp>(op))
    return isa<prim::BindSymbolOp, prim::HostCallOp>(reader);
  auto splat = dyn_cast<prim::SplatOp>(op);
  if (!splat || !isa<prim::BindSymbolOp, prim::HostCallOp, prim::IfOp, prim::WhileOp, prim::YieldOp>(reader))
    return false;
  auto type = cast<RankedTensorType>(splat.getType());
  return type.hasStaticShape() && type.getNumElements() <= kMaxElements && type.getElementTypeBitWidth() <= 64 &&
         !prim::isNarrowElement(type.getElementType());
}

bool tc::fuse::isCopiedByLines(Value input) {
  Type element = cast<RankedTensorType>(input.getType()).getElementType();
  return element.isUnsignedInteger(8) || element.isBF16();
}

bool tc::fuse::isReadInPlace(Value operand, Operation *product) {
  if (operand != product->getOperand(0))
    return false;
  // Tiles of bf16 are multiplied faster than their rows can be rounded for each block of columns.
  return isa<prim::ConvOp>(product)
             ? isCopiedByLines(operand)
             : isa<prim::DotGeneralOp>(product) && cast<RankedTensorType>(operand.getType()).getElementType().isBF16();
}

/// Sizes and strides of the window that a convolution or a window reduction reads.
static std::optional<std::pair<SmallVector<int64_t>, SmallVector<int64_t>>> getReadWindow(Operation *op) {
  if (auto window = dyn_cast<prim::WindowReduceOp>(op))
    return std::pair(SmallVector<int64_t>(window.getWindow()), SmallVector<int64_t>(window.getStrides()));
  auto conv = dyn_cast<prim::ConvOp>(op);
  if (!conv)
    return std::nullopt;
  SmallVector<int64_t> sizes;
  const SmallVector<AffineExpr> filter = prim::getSizes(conv.getFilter());
  for (AffineExpr size : ArrayRef(filter).take_front(conv.getStrides().size()))
    sizes.push_back(prim::getConstantSize(size).value_or(1));
  return std::pair(sizes, SmallVector<int64_t>(conv.getStrides()));
}

/// Whether what pointwise ops make of `value` is transposed, and nothing else reads it.
static bool isTransposedBehind(Value value) {
  for (int depth = 0; depth < 8 && value.hasOneUse(); ++depth) {
    Operation *user = *value.getUsers().begin();
    if (transposesInnermost(user))
      return true;
    if (!user->hasTrait<prim::PointwiseTrait>() || user->getNumResults() != 1)
      return false;
    value = user->getResult(0);
  }
  return false;
}

bool tc::fuse::isWidthVectorised(Operation *op, const Preferences &prefer) {
  auto conv = dyn_cast<prim::ConvOp>(op);
  if (!conv || !cast<RankedTensorType>(conv.getType()).getElementType().isF32())
    return false;
  const auto in = prim::getSizes(conv.getInput()), out = prim::getSizes(conv.getResult());
  auto most = [](AffineExpr size, int64_t count) { return prim::getConstantSize(size).value_or(count + 1) <= count; };
  const bool isFirst = most(out.back(), prefer.lineChannelsFirst) && most(in.back(), prefer.lineSourcesFirst) &&
                       conv.getGroups() == 1 && !most(out[out.size() - 2], prefer.leastLine - 1) &&
                       isTransposedBehind(conv.getResult());
  if (!most(out.back(), prefer.lineChannels) && !isFirst)
    return false;
  const auto [kernel, strides] = *getReadWindow(op);
  return llvm::any_of(kernel, [](int64_t size) { return size > 1; });
}

bool tc::fuse::isPrologue(Operation *consumer, Operation *op, const Preferences &prefer) {
  // Kernels copy what they read of bytes and bf16 line by line, and padding with a zero point is part of that.
  if (isa<prim::ConvOp>(consumer) && isa<prim::PadOp>(op) && isCopiedByLines(op->getResult(0)))
    return true;
  if (isa<prim::ConvOp>(consumer) && isCopiedByLines(consumer->getOperand(0)))
    return isa<prim::ReshapeOp>(op);
  if (transposesInnermost(op)) {
    if (isWidthVectorised(consumer, prefer))
      return true;
    if (auto window = getReadWindow(consumer)) {
      int64_t positions = 1;
      bool overlaps = false;
      for (auto [size, stride] : llvm::zip_equal(window->first, window->second)) {
        positions *= size;
        overlaps |= stride < size;
      }
      return prim::getConstantSize(prim::getSizes(op->getResult(0)).back()).value_or(0) < prefer.transposedChannels &&
             (overlaps || positions < prefer.patchPositions);
    }
  }
  auto movement = dyn_cast<prim::FusionOpInterface>(op), reader = dyn_cast<prim::FusionOpInterface>(consumer);
  return !movement || !reader || movement.getAddressing() <= reader.readsThrough();
}

bool tc::fuse::isSmallConstant(Operation *op) {
  auto constant = dyn_cast_or_null<prim::ConstantOp>(op);
  if (!constant)
    return false;
  if (auto dense = dyn_cast<DenseElementsAttr>(constant.getValue()); dense && dense.isSplat())
    return true;
  auto type = cast<RankedTensorType>(constant.getType());
  return type.hasStaticShape() && type.getNumElements() <= 64;
}

bool tc::fuse::isCheap(Operation *op) {
  const Role role = getRole(op);
  return (role == Role::Movement || role == Role::Pointwise) && !op->hasTrait<prim::TranscendentalTrait>() &&
         !op->hasTrait<prim::CostlyTrait>();
}
