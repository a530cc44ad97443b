//===- LoopRows.cpp - what rows of a region cost, keep and join ---------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CPU/Loops.h"
#include "CPU/MicroKernel.h"
#include "CPU/Stream.h"
#include "Common/Anchor.h"
#include "tc/Analysis/LikelySizes.h"
#include "tc/Transforms/Fuse.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;
using namespace tc::codegen::loops;

namespace {
// Elements of a row that are kept at most: with the row itself they stay in the second-level cache.
constexpr int64_t kMostKept = machine::kCaches.l2 / 8 / sizeof(float);
// Elements from which a launch of its own is worth it; a single row of so many is worth cutting. (Several rows are not:
// one of them after the other stays in the second-level cache.)
constexpr double kLeastRowElements = 4096, kLongRow = machine::kCaches.l2 / 8 / sizeof(float);
// A last dim of up to so many elements, a power of two, is joined with those before it: every vector has several of it.
constexpr int64_t kMostPart = 8;
// One of up to so many elements, any number, is joined as well, where the code of as many vectors is of so many scalar
// operations at most.
constexpr int64_t kMostOddPart = 15;
constexpr double kMostOddCode = 600;
// Inputs of this size come from beyond the second-level cache.
constexpr int64_t kFetchedBytes = 2 * machine::kCaches.l2;
// Passes that keep nothing fetch what lies so far behind for rows that are shorter than a page, which end before what
// they would fetch of the next one is there, and the next one of long rows; rows between them the hardware sees for
// itself. (Norms of rows of 1 to 3 KB took 0.59 to 0.83 of the time on one core of Zen 4, 0.91 to 1.0 on two; of 16 KB
// 0.73 and 1.1.)
constexpr int64_t kPrefetchBytes = 32 * 1024, kShortRowBytes = 4096, kLongRowBytes = 8192;
// Scalar operations of an exponential.
constexpr double kTranscendental = 12;
} // namespace

bool loops::isAlongLast(prim::ReduceOp reduce, ArrayRef<AffineExpr> sizes) {
  return prim::getSizes(reduce.getOperand()) == sizes &&
         reduce.getDims() == ArrayRef<int64_t>{int64_t(sizes.size()) - 1};
}

double loops::costOf(Value value, DenseMap<Value, double> &known, ArrayRef<AffineExpr> rows) {
  if (auto found = known.find(value); found != known.end())
    return found->second;
  known[value] = 0;
  Operation *op = value.getDefiningOp();
  double cost = 1;
  if (op) {
    double inner = 0;
    for (Value operand : op->getOperands())
      inner += costOf(operand, known, rows);
    double factor = 1;
    auto reduce = dyn_cast<prim::ReduceOp>(op);
    const bool isOnceARow = reduce && !rows.empty() && isAlongLast(reduce, rows);
    if (auto primitive = dyn_cast<prim::CostOpInterface>(op); primitive && !isOnceARow)
      factor = getLikelyCount(primitive.getCombinedSizes(), op);
    if (isa<prim::ArgReduceOp>(op))
      factor *= 4;
    cost = (inner + (prim::isTranscendental(op) ? kTranscendental : 1)) * factor;
  }
  return known[value] = std::min(cost, 1e15);
}

RowUses::RowUses(Value value) : row(prim::getSizes(value)) { local = !row.empty() && follow(value, /*reads=*/true); }

bool RowUses::follow(Value value, bool reads) {
  if (!seen.insert({value, reads}).second)
    return true;
  SmallVector<AffineExpr> sizes = prim::getSizes(value);
  const bool full = sizes == row;
  const auto last = int64_t(row.size()) - 1;
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    if (isa<kernel::YieldOp>(user)) {
      reachesOutput |= full && reads;
      return true;
    }
    Value result = user->getResult(0);
    if (auto reduce = dyn_cast<prim::ReduceOp>(user)) {
      if (!full || reduce.getDims() != ArrayRef<int64_t>{last})
        return false;
      if (reads)
        reductions.insert(reduce);
      return follow(result, /*reads=*/false);
    }
    if (isa<prim::ReshapeOp>(user)) { // of a row's result: 1s at the end come and go
      SmallVector<AffineExpr> to = prim::getSizes(result);
      if (!to.empty() && prim::getConstantSize(to.back()) == 1)
        to.pop_back();
      return !full && ArrayRef(to) == ArrayRef(row).drop_back() && follow(result, reads);
    }
    if (auto broadcast = dyn_cast<prim::BroadcastOp>(user))
      return !full && prim::getSizes(result) == row &&
             llvm::equal(broadcast.getDims(), llvm::seq<int64_t>(0, sizes.size())) && follow(result, reads);
    return lookupPointwise(user) && follow(result, reads);
  });
}

Value loops::chooseKept(Value root, Block &block, bool lanes) {
  SmallVector<AffineExpr> sizes = prim::getSizes(root);
  for (Operation &op : block) {
    // What the element costs by itself: an exponential is worth a store and a load.
    if (!prim::isTranscendental(&op))
      continue;
    Value value = op.getResult(0);
    SmallVector<AffineExpr> own = prim::getSizes(value);
    if (own.empty() || (lanes ? own != sizes : ArrayRef(own).drop_back() != ArrayRef(sizes)))
      continue;
    if (prim::getConstantSize(own.back()).value_or(0) > kMostKept)
      continue;
    RowUses uses(value);
    if (!uses.isLocal() || !uses.firstReduction() || uses.passes() < 2)
      continue;
    return value;
  }
  return {};
}

/// Whether both spaces have the same first `rank` dims, and as many elements behind them: rows may be taken apart in
/// different ways.
static bool haveEqualRows(ArrayRef<AffineExpr> a, ArrayRef<AffineExpr> b, unsigned rank) {
  return a == b || (a.size() > rank && b.size() > rank && a.take_front(rank) == b.take_front(rank) &&
                    prim::product(a.front().getContext(), a.drop_front(rank)) ==
                        prim::product(b.front().getContext(), b.drop_front(rank)));
}

SmallVector<Value> loops::rowResults(kernel::RegionOp region, Value root) {
  const fuse::Space full = fuse::getSpace(root);
  Block &block = region.getBody().front();
  std::optional<unsigned> rowRank;
  llvm::SmallSetVector<Value, 8> dependent; // on a reduction, in the space of the rows
  for (Operation &op : block.without_terminator()) {
    if (op.getNumResults() != 1 || combinesOtherwise(&op))
      return {};
    const Value result = op.getResult(0);
    if (auto reduce = dyn_cast<prim::ReduceOp>(op)) {
      const std::optional<unsigned> rank = getRowRank(reduce);
      if (!rank || rowRank.value_or(*rank) != *rank || !haveEqualRows(fuse::getSpace(reduce.getOperand()), full, *rank))
        return {};
      rowRank = rank;
      dependent.insert(result);
    } else if (rowRank && ArrayRef<AffineExpr>(fuse::getSpace(result)) == ArrayRef(full).take_front(*rowRank) &&
               llvm::any_of(op.getOperands(), [&](Value operand) { return dependent.contains(operand); })) {
      dependent.insert(result);
    }
  }
  SmallVector<Value> results;
  for (Value value : dependent) {
    if (llvm::all_of(value.getUsers(), [&](Operation *user) {
          return user->getNumResults() == 1 && dependent.contains(user->getResult(0));
        }))
      continue;
    Type element = cast<RankedTensorType>(value.getType()).getElementType();
    if (!element.isIntOrFloat() || (element.getIntOrFloatBitWidth() != 32 && element.getIntOrFloatBitWidth() != 64))
      return {};
    results.push_back(value);
  }
  return results;
}

bool loops::isWorthLaunch(Value root, ArrayRef<Value> results) {
  if (results.empty())
    return false;
  const double rows = getLikelyCount(results.front()), elements = getLikelyCount(root);
  SmallVector<AffineExpr> sizes = prim::getSizes(root);
  const double last = sizes.empty() ? 1 : double(getLikelySize(sizes.back(), root.getParentBlock()->getParentOp()));
  return rows < elements / last ? elements >= kLeastRowElements : rows == 1 && last >= kLongRow;
}

int64_t loops::countEvenlyJoined(ArrayRef<AffineExpr> sizes) {
  // Lanes are laid out by the number of a part: what only the run knows is none.
  auto isPart = [](std::optional<int64_t> count) {
    return count && *count >= 1 && *count <= kMostPart && llvm::isPowerOf2_64(*count);
  };
  int64_t joined = 0;
  std::optional<int64_t> count = 1;
  for (AffineExpr size : llvm::reverse(sizes)) {
    if (joined > 0 && !isPart(count))
      break;
    const std::optional<int64_t> known = prim::getConstantSize(size);
    count = known ? std::optional(*count * *known) : std::nullopt;
    ++joined;
  }
  return joined >= 2 && (!count || *count > kMostPart) ? joined : 0;
}

int64_t loops::countUnitJoined(ArrayRef<AffineExpr> sizes) {
  int64_t joined = 1;
  for (AffineExpr size : llvm::reverse(sizes)) {
    if (prim::getConstantSize(size) != 1)
      return joined > 1 ? joined : 0;
    ++joined;
  }
  return 0;
}

int64_t loops::oddPart(ArrayRef<AffineExpr> sizes, int64_t joined) {
  int64_t part = 1;
  for (AffineExpr size : sizes.take_back(std::max<int64_t>(joined - 1, 0)))
    part *= *prim::getConstantSize(size);
  return part <= kMostPart && llvm::isPowerOf2_64(part) ? 0 : part;
}

int64_t loops::countOddlyJoined(ArrayRef<AffineExpr> sizes, Block &block) {
  double code = 0;
  for (Operation &op : block.without_terminator())
    code += prim::isTranscendental(&op) ? kTranscendental : 1;
  int64_t joined = 0, part = 1;
  for (AffineExpr size : llvm::reverse(sizes)) {
    const std::optional<int64_t> count = prim::getConstantSize(size);
    if (count && *count < 2)
      return 0;
    ++joined;
    // The first dim that is too long for a part is what the parts are rows of, as is one that only the run knows.
    if (!count || part * *count > kMostOddPart)
      return part > 1 && (!count || *count >= kPanel) && oddPart(sizes, joined) && code * double(part) <= kMostOddCode
                 ? joined
                 : 0;
    part *= *count;
  }
  return 0;
}

double loops::bytesPerElement(kernel::RegionOp region, Value root) {
  Block &block = region.getBody().front();
  const double elements = std::max(getLikelyCount(root), 1.0);
  auto bytes = [&](Value value) {
    const unsigned bits = cast<RankedTensorType>(value.getType()).getElementTypeBitWidth();
    return std::min(getLikelyCount(value), elements) * bits / 8;
  };
  double all = 0;
  for (Value argument : block.getArguments())
    all += bytes(argument);
  for (Value result : block.getTerminator()->getOperands())
    all += bytes(result);
  return all / elements;
}

SmallVector<AffineExpr> loops::joinLast(ArrayRef<AffineExpr> sizes, int64_t joined) {
  SmallVector<AffineExpr> result(sizes);
  for (; joined > 1; --joined) {
    const AffineExpr last = result.pop_back_val();
    result.back() = prim::simplifySize(result.back() * last);
  }
  return result;
}

Finish loops::finishOf(kernel::RegionOp region, Value root) {
  Finish finish;
  llvm::SmallSetVector<Value, 16> values;
  for (Value value : region.getBody().front().getTerminator()->getOperands())
    if (prim::getSizes(value) == prim::getSizes(root))
      values.insert(value);
  for (size_t i = 0; i < values.size(); ++i) {
    Operation *op = values[i].getDefiningOp();
    if (auto reduce = dyn_cast_or_null<prim::ReduceOp>(op)) {
      finish.reductions.insert(reduce.getResult());
    } else if (op && lookupPointwise(op)) {
      finish.cost += prim::isTranscendental(op) ? kTranscendental : 1;
      values.insert_range(op->getOperands());
    }
  }
  return finish;
}

bool loops::isFetched(BlockArgument argument, ArrayRef<AffineExpr> sizes) {
  const auto type = cast<RankedTensorType>(argument.getType());
  return type.hasStaticShape() && prim::getSizes(argument) == sizes &&
         type.getNumElements() * type.getElementTypeBitWidth() / 8 >= kFetchedBytes;
}

int64_t loops::fetchedRows(kernel::RegionOp region, Value root, bool isKept) {
  const SmallVector<AffineExpr> sizes = prim::getSizes(root);
  const auto input =
      llvm::find_if(region.getBody().getArguments(), [&](BlockArgument a) { return isFetched(a, sizes); });
  if (input == region.getBody().getArguments().end())
    return 0;
  if (isKept)
    return 1;
  const int64_t bytes =
      *prim::getConstantSize(sizes.back()) * Emitter::memoryBytes(getElementTypeOrSelf(input->getType()));
  return bytes < kShortRowBytes ? ceilDiv(kPrefetchBytes, bytes) : bytes >= kLongRowBytes;
}
