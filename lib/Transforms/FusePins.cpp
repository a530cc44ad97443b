//===- FusePins.cpp - which movement ops are needed in memory -----------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "FusePlan.h"
#include "tc/Analysis/LikelySizes.h"

#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace tc;
using namespace tc::fuse;

void Plan::pinOperand(Operation *consumer, Value operand) {
  bool function = getRole(consumer) == Role::Function;
  Operation *op = operand.getDefiningOp();
  // Where an op on the way must be made, the ops between it and the consumer are applied there too if nobody else reads
  // in between: the consumer then reads a plain tensor. Not broadcasts, whose result is larger, and not the last
  // reshapes, which are views.
  Operation *best = nullptr;
  while (op && orderOf(op) && getRole(op) == Role::Movement && !pinned.contains(op)) {
    if (function) {
      // Views and what the host writes stay in the function.
      if (isMadeByHost(op, consumer))
        return;
      if (!isa<prim::ReshapeOp>(op)) {
        pinned.insert(op);
        return;
      }
    } else if (!isPrologue(consumer, op, prefer)) {
      pinned.insert(best && op->hasOneUse() ? best : op);
      return;
    } else if (isa<prim::BroadcastOp>(op)) {
      best = nullptr;
    } else if (best && !op->hasOneUse()) {
      best = isa<prim::ReshapeOp>(op) ? nullptr : op;
    } else if (!best && !isa<prim::ReshapeOp>(op)) {
      best = op;
    }
    op = op->getNumOperands() ? op->getOperand(0).getDefiningOp() : nullptr;
  }
}

/// Whether the elements of `v`, whose neighbours along its last dim lie apart in memory, are read many times each along
/// the lanes of pointwise ops: then gathers cost more than turning it once.
static bool isGatheredOften(Value v, AffineExpr elements, const Preferences &prefer) {
  const SmallVector<AffineExpr> sizes = prim::getSizes(v);
  return llvm::any_of(v.getUsers(), [&](Operation *user) {
    if (auto reshape = dyn_cast<prim::ReshapeOp>(user))
      return !prim::getSizes(reshape.getResult()).empty() &&
             prim::getSizes(reshape.getResult()).back() == sizes.back() &&
             isGatheredOften(reshape.getResult(), elements, prefer);
    auto broadcast = dyn_cast<prim::BroadcastOp>(user);
    if (!broadcast || !llvm::any_of(broadcast->getUsers(), [](Operation *reader) {
          return getRole(reader) == Role::Pointwise || getRole(reader) == Role::Reduce;
        }))
      return false;
    const SmallVector<AffineExpr> to = prim::getSizes(broadcast.getResult());
    if (broadcast.getDims().empty() || broadcast.getDims().back() + 1 != int64_t(to.size()) ||
        to.back() != sizes.back())
      return false;
    int64_t reads = 1;
    for (auto [i, size] : llvm::enumerate(to)) {
      const auto *dim = llvm::find(broadcast.getDims(), int64_t(i));
      const bool isRepeated =
          dim == broadcast.getDims().end() ||
          (prim::getConstantSize(sizes[dim - broadcast.getDims().begin()]) == 1 && prim::getConstantSize(size) != 1);
      if (isRepeated)
        reads *= getLikelySize(size, user);
    }
    return reads >= prefer.gatheredReads &&
           reads * getLikelySize(elements, user, usual::kExtent * usual::kExtent) >= prefer.gatheredInAll;
  });
}

/// Whether a reshape of the op's result `v` with another last dim is read as isGatheredOften counts.
static bool isGatheredReshaped(Value v, const Preferences &prefer) {
  const SmallVector<AffineExpr> sizes = prim::getSizes(v);
  return llvm::any_of(v.getUsers(), [&](Operation *user) {
    auto reshape = dyn_cast<prim::ReshapeOp>(user);
    return reshape && !prim::getSizes(reshape.getResult()).empty() &&
           prim::getSizes(reshape.getResult()).back() != sizes.back() &&
           isGatheredOften(reshape.getResult(), prim::product(v.getContext(), sizes), prefer);
  });
}

/// Whether `op` takes one of each row's elements (a coordinate of each box), or elements that lie apart (a diagonal),
/// which are then read along the lanes as often as isGatheredOften counts.
static bool isColumnReadOften(Operation *op, const Preferences &prefer) {
  auto slice = dyn_cast<prim::SliceOp>(op);
  if (!slice)
    return false;
  const SmallVector<AffineExpr> sizes = prim::getSizes(slice.getResult());
  if (!sizes.empty() && slice.getSteps().back() != 1 && slice.getSteps().back() != -1)
    return isGatheredOften(slice.getResult(), prim::product(op->getContext(), sizes), prefer);
  return !sizes.empty() && prim::getConstantSize(sizes.back()) == 1 &&
         prim::getConstantSize(prim::getSizes(slice.getOperand()).back()) != 1 &&
         isGatheredReshaped(slice.getResult(), prefer);
}

double tc::fuse::countSliced(Value v) {
  const size_t rank = prim::getSizes(v).size();
  double gathered = 0, sliced = 0;
  for (Operation *user : v.getUsers()) {
    if (auto gather = dyn_cast<prim::GatherOp>(user)) {
      if (gather.getSource() == v && gather.getAxis() + 1 < rank)
        gathered += getLikelyCount(gather.getResult());
    } else if (auto gather = dyn_cast<prim::GatherNDOp>(user)) {
      const int64_t numbers = prim::getConstantSize(prim::getSizes(gather.getIndices()).back()).value_or(rank);
      if (gather.getSource() == v && int64_t(gather.getBatchDims()) + numbers < int64_t(rank))
        gathered += getLikelyCount(gather.getResult());
    } else if (isa<prim::SliceOp>(user)) {
      sliced += getLikelyCount(user->getResult(0));
    } else if (isa<prim::PadOp>(user) && user->getOperand(0) == v) {
      gathered += countSliced(user->getResult(0));
    }
  }
  return gathered + (sliced > getLikelyCount(v) ? sliced : 0);
}

bool tc::fuse::hasLanes(Value v, const Preferences &prefer) {
  const SmallVector<AffineExpr> sizes = prim::getSizes(v);
  return !sizes.empty() && prim::getConstantSize(sizes.back()).value_or(0) >= prefer.leastLanes;
}

/// Whether slices of `v` along its last dim, whose neighbours lie apart in memory, are read, and so many that lanes
/// along that dim pay for turning it once.
static bool isReadBySlices(Value v, const Preferences &prefer) {
  return hasLanes(v, prefer) && countSliced(v) >= getLikelyCount(v);
}

/// Whether a reshape of the op's result has dims merged into its last one of which the innermost repeats elements, as
/// the values of a group of channels for each of them, and is read often.
static bool repeatsWithinLanes(prim::BroadcastOp op, const Preferences &prefer) {
  const SmallVector<AffineExpr> sizes = prim::getSizes(op.getResult());
  if (sizes.empty() || prim::getConstantSize(sizes.back()) == 1 ||
      (!op.getDims().empty() && op.getDims().back() + 1 == int64_t(sizes.size())))
    return false;
  return isGatheredReshaped(op.getResult(), prefer);
}

/// Whether parts of the op's result are gathered, so many and of sizes known at run time only, that code for each of
/// them at each position costs more than to make them first: kernels of equal parts are one.
static bool isMadeOfGathers(prim::ConcatOp op, llvm::function_ref<bool(Value)> isGathered) {
  constexpr int64_t kFew = 8;
  return llvm::count_if(op.getInputs(), [&](Value input) {
           return !prim::getConstantSize(prim::getSizes(input)[op.getAxis()]) && isGathered(input);
         }) > kFew;
}

/// Whether `op` is a reshape, of which dims of size 1 are not all that changes.
static bool takesDimsApart(Operation *op) {
  auto reshape = dyn_cast<prim::ReshapeOp>(op);
  auto wideSizes = [](Value v) {
    SmallVector<AffineExpr> sizes = prim::getSizes(v);
    llvm::erase_if(sizes, [](AffineExpr size) { return prim::isOne(size); });
    return sizes;
  };
  return reshape && wideSizes(reshape.getOperand()) != wideSizes(reshape.getResult());
}

void Plan::pin() {
  // Movement ops with several operands multiply: past a bound, the value is made once.
  constexpr int kMaxReads = 32;
  // Concats within concats that several ops read (a running maximum by doubling) are chosen among again and again.
  constexpr int kMaxNested = 3;
  // What many of them in a row lead to is made on the way, so that no reader walks through thousands. A reshape that
  // takes dims apart divides positions, which makes the code of as many others.
  constexpr int kMaxInRow = 64, kReshapeInRow = 8;
  llvm::DenseMap<Operation *, int> reads, nested, inRow;
  llvm::DenseSet<Operation *> gathered;
  auto isGathered = [&](Value v) { return v.getDefiningOp() && gathered.contains(v.getDefiningOp()); };
  for (Operation *op : ops) {
    if (getRole(op) != Role::Movement)
      continue;
    int count = 0;
    for (Value operand : op->getOperands()) {
      auto it = reads.find(operand.getDefiningOp());
      count += it == reads.end() || pinned.contains(it->first) ? 1 : it->second;
    }
    reads[op] = std::max(count, 1);
    int within = 0, before = 0;
    for (Value operand : op->getOperands())
      if (Operation *def = operand.getDefiningOp(); def && !pinned.contains(def)) {
        within = std::max(within, nested.lookup(def));
        before = std::max(before, inRow.lookup(def));
      }
    nested[op] = within + isa<prim::ConcatOp>(op);
    inRow[op] = before + (takesDimsApart(op) ? kReshapeInRow : 1);
    if (auto concat = dyn_cast<prim::ConcatOp>(op); concat && isMadeOfGathers(concat, isGathered))
      for (Value input : concat.getInputs())
        if (isGathered(input))
          pinned.insert(input.getDefiningOp());
    if (prim::getAccess(op) == prim::Access::AtData || llvm::any_of(op->getOperands(), isGathered))
      gathered.insert(op);
    if (((count > kMaxReads || inRow[op] > kMaxInRow) && !isa<prim::ReshapeOp>(op)) ||
        (isa<prim::ConcatOp>(op) && nested[op] > kMaxNested && !op->hasOneUse()))
      pinned.insert(op);
  }
  for (Operation *op : ops) {
    if (transposesInnermost(op) &&
        (isGatheredOften(op->getResult(0), prim::product(op->getContext(), prim::getSizes(op->getResult(0))), prefer) ||
         isReadBySlices(op->getResult(0), prefer)))
      pinned.insert(op);
    if (isColumnReadOften(op, prefer))
      pinned.insert(op);
    if (auto broadcast = dyn_cast<prim::BroadcastOp>(op); broadcast && repeatsWithinLanes(broadcast, prefer))
      pinned.insert(op);
  }
  for (Operation *op : ops) {
    Role role = getRole(op);
    if (isAlone(op) && role == Role::Movement && !isa<prim::ReshapeOp>(op) &&
        !llvm::all_of(op->getUsers(), [&](Operation *user) { return isMadeByHost(op, user); }))
      pinned.insert(op);
    if (role == Role::Function) {
      llvm::SetVector<Value> values(op->operand_begin(), op->operand_end());
      getUsedValuesDefinedAbove(op->getRegions(), values);
      for (Value value : values)
        pinOperand(op, value);
    } else if (role == Role::Contraction || role == Role::Window || role == Role::Alone || disabled.contains(op)) {
      for (Value operand : op->getOperands())
        pinOperand(op, operand);
    }
  }
}

void Plan::findWidening() {
  auto isByte = [](Value v) {
    Type type = cast<RankedTensorType>(v.getType()).getElementType();
    return type.isSignlessInteger(8) || type.isUnsignedInteger(8);
  };
  for (Operation *op : ops) {
    if (disabled.contains(op) || getRole(op) != Role::Pointwise || !isCheap(op) || isByte(op->getResult(0)))
      continue;
    Operation *from = op->getOperand(0).getDefiningOp();
    bool isWidening = isByte(op->getOperand(0)) ? isa<prim::ConvertOp>(op) : from && widening.contains(from);
    for (Value other : op->getOperands().drop_front())
      isWidening &= isa_and_nonnull<prim::SplatOp>(other.getDefiningOp());
    if (isWidening)
      widening.insert(op);
  }
  // Convolutions widen bytes as they load them, if they lie in memory as the convolution reads them, or padded.
  auto isLoaded = [&](Operation *op) {
    Operation *from = op->getOperand(0).getDefiningOp();
    if (isa_and_nonnull<prim::PadOp>(from))
      from = from->getOperand(0).getDefiningOp();
    return isByte(op->getOperand(0)) && (!from || getRole(from) != Role::Movement);
  };
  // Last ops first: a value that is needed in memory needs what it is computed from once only.
  for (Operation *op : llvm::reverse(ops)) {
    auto isRepeated = [&](OpOperand &use) {
      Operation *user = use.getOwner();
      if (!orderOf(user))
        return false;
      if (isa<prim::ConvOp>(user))
        return use.getOperandNumber() == 0 && isLoaded(op);
      return widening.contains(user) || getRole(user) == Role::Pointwise || getRole(user) == Role::Reduce;
    };
    if (widening.contains(op) && !llvm::all_of(op->getUses(), isRepeated))
      widening.erase(op);
  }
}
