//===- FuseRules.cpp - what fusion knows of each primitive --------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Transforms/Fuse.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tc;
using namespace tc::fuse;

Role tc::fuse::getRole(Operation *op) {
  if (!isa_and_nonnull<prim::PrimDialect>(op->getDialect()))
    return Role::Function;
  if (isa<prim::ConstantOp, prim::StorageOp, prim::BindSymbolOp, prim::GuardOp, prim::HostCallOp, prim::IfOp,
          prim::WhileOp, prim::YieldOp>(op))
    return Role::Function;
  if (isa<prim::SplatOp, prim::IotaOp, prim::SizesOp, prim::ReshapeOp, prim::TransposeOp, prim::BroadcastOp,
          prim::SliceOp, prim::DynamicSliceOp, prim::PadOp, prim::ConcatOp, prim::GatherOp, prim::GatherElementsOp,
          prim::GatherNDOp>(op))
    return Role::Movement;
  if (op->hasTrait<prim::PointwiseTrait>())
    return Role::Pointwise;
  if (isa<prim::ReduceOp, prim::ArgReduceOp>(op))
    return Role::Reduce;
  if (isa<prim::DotGeneralOp, prim::ConvOp, prim::AttentionOp, prim::BlockDotOp>(op))
    return Role::Contraction;
  if (isa<prim::WindowReduceOp>(op))
    return Role::Window;
  return op->getNumRegions() == 0 ? Role::Alone : Role::Function;
}

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
  for (AffineExpr size : ArrayRef(prim::getSizes(conv.getFilter())).take_front(conv.getStrides().size()))
    sizes.push_back(prim::getConstantSize(size).value_or(1));
  return std::pair(sizes, SmallVector<int64_t>(conv.getStrides()));
}

/// Whether what pointwise ops make of `value` is turned, and nothing else reads it.
static bool isTurnedBehind(Value value) {
  for (int depth = 0; depth < 8 && value.hasOneUse(); ++depth) {
    Operation *user = *value.getUsers().begin();
    if (fuse::turnsInnermost(user))
      return true;
    if (!user->hasTrait<prim::PointwiseTrait>() || user->getNumResults() != 1)
      return false;
    value = user->getResult(0);
  }
  return false;
}

bool tc::fuse::isAlongLines(Operation *op) {
  // A vector of the channels would have a quarter of its lanes in use at most.
  constexpr int64_t kMostChannels = 4;
  // Between images that lie channels first, results of so many channels of so few.
  constexpr int64_t kMostFirst = 64, kMostOfFirst = 4, kLeastLine = 64;
  auto conv = dyn_cast<prim::ConvOp>(op);
  if (!conv || !cast<RankedTensorType>(conv.getType()).getElementType().isF32())
    return false;
  const auto in = prim::getSizes(conv.getInput()), out = prim::getSizes(conv.getResult());
  auto most = [](AffineExpr size, int64_t count) { return prim::getConstantSize(size).value_or(count + 1) <= count; };
  const bool isFirst = most(out.back(), kMostFirst) && most(in.back(), kMostOfFirst) && conv.getGroups() == 1 &&
                       !most(out[out.size() - 2], kLeastLine - 1) && isTurnedBehind(conv.getResult());
  if (!most(out.back(), kMostChannels) && !isFirst)
    return false;
  const auto [kernel, strides] = *getReadWindow(op);
  return llvm::any_of(kernel, [](int64_t size) { return size > 1; });
}

bool tc::fuse::turnsInnermost(Operation *op) {
  auto transpose = dyn_cast<prim::TransposeOp>(op);
  if (!transpose)
    return false;
  auto sizes = prim::getSizes(transpose.getResult());
  for (int64_t i = int64_t(sizes.size()) - 1; i >= 0; --i) {
    if (prim::getConstantSize(sizes[i]) == 1)
      continue;
    auto from = prim::getSizes(transpose.getOperand());
    int64_t last = int64_t(from.size()) - 1;
    while (prim::getConstantSize(from[last]) == 1)
      --last;
    return transpose.getPermutation()[i] != last;
  }
  return false;
}

bool tc::fuse::isPrologue(Operation *consumer, Operation *op) {
  // Kernels copy what they read of bytes and bf16 line by line, and padding with a zero point is part of that.
  if (isa<prim::ConvOp>(consumer) && isa<prim::PadOp>(op) && isCopiedByLines(op->getResult(0)))
    return true;
  if (isa<prim::ConvOp>(consumer) && isCopiedByLines(consumer->getOperand(0)))
    return isa<prim::ReshapeOp>(op);
  if (turnsInnermost(op)) {
    if (isAlongLines(consumer))
      return true;
    if (auto window = getReadWindow(consumer)) {
      // An element is read for each position of the window and each block of output channels: from this number of
      // channels on gathers cost more than turning the input once, and of patches that do not overlap at any number.
      constexpr int64_t kTurnedChannels = 8, kPatch = 16;
      int64_t positions = 1;
      bool overlaps = false;
      for (auto [size, stride] : llvm::zip_equal(window->first, window->second)) {
        positions *= size;
        overlaps |= stride < size;
      }
      return prim::getConstantSize(prim::getSizes(op->getResult(0)).back()).value_or(0) < kTurnedChannels &&
             (overlaps || positions < kPatch);
    }
  }
  if (isa<prim::DotGeneralOp, prim::ConvOp, prim::WindowReduceOp, prim::AttentionOp>(consumer))
    return isa<prim::TransposeOp, prim::ReshapeOp, prim::BroadcastOp, prim::SliceOp, prim::SplatOp>(op);
  if (isa<prim::BlockDotOp>(consumer))
    return isa<prim::ReshapeOp, prim::SplatOp>(op);
  if (isa<prim::RnnOp>(consumer))
    return isa<prim::TransposeOp, prim::ReshapeOp, prim::BroadcastOp, prim::SplatOp>(op);
  return true;
}

bool tc::fuse::isBijection(Operation *op) { return isa<prim::TransposeOp, prim::ReshapeOp>(op); }

double tc::fuse::likelyCount(Value value) {
  double count = 1;
  for (AffineExpr size : prim::getSizes(value))
    count *= double(prim::getConstantSize(size).value_or(64));
  return count;
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
  if (getRole(op) == Role::Movement)
    return !isa<prim::GatherOp, prim::GatherElementsOp, prim::GatherNDOp, prim::ConcatOp, prim::PadOp>(op);
  return op->hasTrait<prim::PointwiseTrait>() && !prim::isTranscendental(op) && !isa<prim::RemOp>(op);
}

SmallVector<int64_t> tc::fuse::getReducedDims(Operation *op) {
  if (auto reduce = dyn_cast<prim::ReduceOp>(op))
    return SmallVector<int64_t>(reduce.getDims());
  return {int64_t(cast<prim::ArgReduceOp>(op).getAxis())};
}

namespace {
bool isOne(AffineExpr size) { return prim::getConstantSize(size) == std::optional<int64_t>(1); }
} // namespace

Space tc::fuse::getSpace(Type type) {
  Space space;
  for (AffineExpr size : prim::getSizes(type))
    if (!isOne(size))
      space.push_back(size);
  return space;
}

std::optional<unsigned> tc::fuse::getRowRank(Operation *reduce) {
  SmallVector<int64_t> dims = getReducedDims(reduce);
  unsigned kept = 0, reduced = 0;
  for (auto [i, size] : llvm::enumerate(prim::getSizes(reduce->getOperand(0)))) {
    if (isOne(size))
      continue;
    if (llvm::is_contained(dims, int64_t(i)))
      ++reduced;
    else if (reduced)
      return std::nullopt;
    else
      ++kept;
  }
  if (!reduced)
    return std::nullopt;
  return kept;
}

DimMap tc::fuse::identityMap(Value value) {
  DimMap map;
  for (auto [i, size] : llvm::enumerate(prim::getSizes(value)))
    map.push_back(isOne(size) ? int(kOrigin) : int(i));
  return map;
}

DimMap tc::fuse::mapOperand(Operation *op, unsigned operand, ArrayRef<int> resultMap) {
  Value value = op->getOperand(operand);
  SmallVector<AffineExpr> sizes = prim::getSizes(value), result = prim::getSizes(op->getResult(0));
  DimMap map(sizes.size(), kUnknown);
  if (op->hasTrait<prim::PointwiseTrait>()) {
    map.assign(resultMap.begin(), resultMap.end());
  } else if (auto transpose = dyn_cast<prim::TransposeOp>(op)) {
    for (auto [i, dim] : llvm::enumerate(transpose.getPermutation()))
      map[dim] = resultMap[i];
  } else if (auto broadcast = dyn_cast<prim::BroadcastOp>(op)) {
    for (auto [i, dim] : llvm::enumerate(broadcast.getDims()))
      if (sizes[i] == result[dim])
        map[i] = resultMap[dim];
  } else if (auto gather = dyn_cast<prim::GatherOp>(op); gather && operand == 1) {
    for (size_t i = 0; i < sizes.size(); ++i)
      map[i] = resultMap[gather.getAxis() + i];
  } else if (isa<prim::GatherNDOp>(op) && operand == 1) {
    // The last dim holds the numbers of one index. Indices of slices have no lanes where their slices have them: made
    // there they would be made one at a time.
    if (llvm::all_of(ArrayRef(result).drop_front(sizes.size() - 1), isOne))
      for (size_t i = 0; i + 1 < sizes.size(); ++i)
        map[i] = resultMap[i];
  } else if (isa<prim::GatherElementsOp>(op) && operand == 1) {
    map.assign(resultMap.begin(), resultMap.end());
  } else if (auto concat = dyn_cast<prim::ConcatOp>(op); concat && resultMap[concat.getAxis()] == kUnknown) {
    // The numbers of indices, which are read one after another: each input at its only position.
    for (size_t i = 0; i < sizes.size(); ++i)
      if (int64_t(i) != int64_t(concat.getAxis()))
        map[i] = resultMap[i];
  } else if (isa<prim::ReshapeOp>(op)) {
    if (getSpace(value) == getSpace(op->getResult(0))) {
      unsigned from = 0;
      for (auto [i, size] : llvm::enumerate(sizes)) {
        if (isOne(size))
          continue;
        while (isOne(result[from]))
          ++from;
        map[i] = resultMap[from++];
      }
    }
  }
  for (auto [i, size] : llvm::enumerate(sizes))
    if (isOne(size))
      map[i] = kOrigin;
  return map;
}

std::optional<unsigned> tc::fuse::alignedRank(Value tensor, ArrayRef<int> map, Value spaceOf) {
  SmallVector<AffineExpr> sizes = prim::getSizes(tensor), outer = prim::getSizes(spaceOf);
  unsigned next = 0, count = 0;
  for (auto [i, size] : llvm::enumerate(sizes)) {
    if (isOne(size))
      continue;
    while (next < outer.size() && isOne(outer[next]))
      ++next;
    if (next >= outer.size() || map[i] != int(next))
      return std::nullopt;
    ++next;
    ++count;
  }
  return count;
}

namespace {
void collectNames(Location loc, llvm::SetVector<StringAttr> &names) {
  if (auto name = dyn_cast<NameLoc>(loc)) {
    if (!name.getName().empty())
      names.insert(name.getName());
  } else if (auto fused = dyn_cast<FusedLoc>(loc)) {
    for (Location part : fused.getLocations())
      collectNames(part, names);
  } else if (auto call = dyn_cast<CallSiteLoc>(loc)) {
    collectNames(call.getCallee(), names);
  }
}
std::string join(const llvm::SetVector<StringAttr> &names) {
  std::string text;
  for (StringAttr name : names)
    text += (text.empty() ? "" : "+") + name.str();
  return text;
}
} // namespace

std::string tc::fuse::getNodeNames(Location loc) {
  llvm::SetVector<StringAttr> names;
  collectNames(loc, names);
  return join(names);
}
std::string tc::fuse::getNodeNames(ArrayRef<Operation *> ops) {
  llvm::SetVector<StringAttr> names;
  for (Operation *op : ops)
    collectNames(op->getLoc(), names);
  return join(names);
}
