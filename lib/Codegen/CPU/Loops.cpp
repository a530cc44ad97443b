//===- Loops.cpp - the "cpu.loops" strategy: pointwise chains, reductions, windows, anything ---------------------===//
//
// Every output is written by rows: a task is a row (all dims but the last of the largest output, flattened), or a piece
// of `chunk` elements of one. Within a row lanes run along the last dim. Reductions over trailing dims become loops at
// row level (Emitter.h), so that a row is read from memory once and from the cache afterwards. Outputs that lack the
// row's last dim are written once per row.
//
// Parameters: include/tc/Dialect/Kernel/IR/Schedules.td.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CPU/MicroKernel.h"
#include "CPU/Stream.h"
#include "Common/Anchor.h"
#include "Common/Generators.h"
#include "tc/Transforms/Fuse.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

namespace {

using Schedule = kernel::CpuLoopsAttr;

// Elements of a row that are kept at most: with the row itself they stay in the second-level cache.
constexpr int64_t kMostKept = 64 * 1024;

// Elements from which a launch of its own is worth it; a single row of so many is worth cutting. (Several rows are not:
// one of them after the other stays in the second-level cache.)
constexpr double kLeastAhead = 4096, kLongRow = 64 * 1024;

// A last dim of up to so many elements, a power of two, is joined with those before it: every vector has several of it.
constexpr int64_t kMostPart = 8;
// One of up to so many elements, any number, is joined as well, where the code of as many vectors is of so many scalar
// operations at most.
constexpr int64_t kMostOddPart = 15;
constexpr double kMostOddCode = 600;
// What a size counts that only the run knows.
constexpr int64_t kLikelyRows = 64;

// Inputs of this size come from beyond the second-level cache.
constexpr int64_t kFetchedBytes = 4 * 1024 * 1024;
// Passes that keep nothing fetch what lies so far behind for rows that are shorter than a page, which end before what
// they would fetch of the next one is there, and the next one of long rows; rows between them the hardware sees for
// itself. (Norms of rows of 1 to 3 KB took 0.59 to 0.83 of the time on one core of Zen 4, 0.91 to 1.0 on two; of 16 KB
// 0.73 and 1.1.)
constexpr int64_t kFetchAheadBytes = 32 * 1024, kShortRowBytes = 4096, kLongRowBytes = 8192;

// So many pieces of a row at most are written by loops of their own, each of so many elements at least and, where rows
// are cut, of whole vectors.
constexpr size_t kMostPieces = 32;
constexpr int64_t kLeastPiece = 16;
// Rows of which an input of a concat is put together, by their elements, that take lanes of their own.
constexpr int64_t kLeastRowApart = 4, kMostRowApart = 128;
// Rows of so many pieces at least, of so many elements each at most in the mean, and of no more elements than these are
// written element by element.
constexpr int64_t kLeastPieces = 24, kMeanPiece = 4, kMostElements = 1024;
// Results of reductions that are stored before lanes take them, and the least scalar operations on each to be worth it.
constexpr int64_t kBlock = 64;
constexpr double kLeastFinish = 4;
// Scalar operations of an exponential.
constexpr double kTranscendental = 12;
// Operations of a range, or bytes that it reads and writes, below which sharing it is not worth it.
constexpr double kGrain = 1e5, kReducedGrain = 3e4;
// A vector that is gathered takes as long as so many loads.
constexpr int64_t kGatherVectors = 4;

/// Whether a reduction is along the last of the dims `sizes`: of a row, or of a short last dim that lanes span with
/// others.
bool isAlongLast(prim::ReduceOp reduce, ArrayRef<AffineExpr> sizes) {
  return prim::getSizes(reduce.getOperand()) == sizes &&
         reduce.getDims() == ArrayRef<int64_t>{int64_t(sizes.size()) - 1};
}

/// Rough scalar operations per element of `value`, reductions multiplied by their extents (symbolic ones count 64), but
/// for those along the last of `rows`, if it is not empty: these are made once for a row.
double costOf(Value value, DenseMap<Value, double> &known, ArrayRef<AffineExpr> rows = {}) {
  if (auto found = known.find(value); found != known.end())
    return found->second;
  known[value] = 0;
  Operation *op = value.getDefiningOp();
  double cost = 1;
  if (op) {
    double inner = 0;
    for (Value operand : op->getOperands())
      inner += costOf(operand, known, rows);
    auto extent = [](AffineExpr expr) { return double(prim::getConstantSize(expr).value_or(64)); };
    double factor = 1;
    if (auto reduce = dyn_cast<prim::ReduceOp>(op)) {
      if (rows.empty() || !isAlongLast(reduce, rows))
        for (int64_t dim : reduce.getDims())
          factor *= extent(prim::getSizes(reduce.getOperand())[dim]);
    } else if (auto arg = dyn_cast<prim::ArgReduceOp>(op)) {
      factor = extent(prim::getSizes(arg.getOperand())[arg.getAxis()]) * 4;
    } else if (auto dot = dyn_cast<prim::DotGeneralOp>(op)) {
      for (int64_t dim : dot.getLhsContract())
        factor *= extent(prim::getSizes(dot.getLhs())[dim]);
    } else if (auto conv = dyn_cast<prim::ConvOp>(op)) {
      auto filter = prim::getSizes(conv.getFilter());
      for (AffineExpr expr : ArrayRef(filter).drop_back())
        factor *= extent(expr);
    } else if (auto window = dyn_cast<prim::WindowReduceOp>(op)) {
      for (int64_t size : window.getWindow())
        factor *= double(size);
    }
    cost = (inner + (prim::isTranscendental(op) ? kTranscendental : 1)) * factor;
  }
  return known[value] = std::min(cost, 1e15);
}

/// What is computed from one value, as far as it stays in the value's row (its last dim).
class RowUses {
public:
  explicit RowUses(Value value) : row(prim::getSizes(value)) { local = !row.empty() && follow(value, /*reads=*/true); }

  /// Whether everything is read at the row that it is computed in.
  bool isLocal() const { return local; }
  /// Passes over the row that read the value: reductions of it, and the output.
  size_t passes() const { return reductions.size() + reachesOutput; }
  /// The first of the reductions; null: none.
  Value firstReduction() const {
    auto first = llvm::min_element(reductions, [](auto a, auto b) { return a->isBeforeInBlock(b); });
    return first == reductions.end() ? Value() : (*first)->getResult(0);
  }

private:
  /// `reads`: `value` is made of the followed value's element, not only of its reductions.
  bool follow(Value value, bool reads) {
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

  SmallVector<AffineExpr> row;
  bool local = false, reachesOutput = false;
  llvm::SmallSetVector<Operation *, 4> reductions;
  DenseSet<std::pair<Value, unsigned>> seen;
};

/// The value that is worth keeping for a row of `root`; null: none.
Value chooseKept(Value root, Block &block, bool lanes) {
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
bool haveEqualRows(ArrayRef<AffineExpr> a, ArrayRef<AffineExpr> b, unsigned rank) {
  return a == b || (a.size() > rank && b.size() > rank && a.take_front(rank) == b.take_front(rank) &&
                    prim::product(a.front().getContext(), a.drop_front(rank)) ==
                        prim::product(b.front().getContext(), b.drop_front(rank)));
}

/// What a launch of its own computes: the values made of reductions over trailing dims that everything else of the
/// region reads, one element of each for a row of the reductions. Empty: there are none, or reductions of another kind.
SmallVector<Value> rowResults(kernel::RegionOp region, Value root) {
  const fuse::Space full = fuse::getSpace(root);
  Block &block = region.getBody().front();
  std::optional<unsigned> rowRank;
  llvm::SmallSetVector<Value, 8> dependent; // on a reduction, in the space of the rows
  for (Operation &op : block.without_terminator()) {
    if (op.getNumResults() != 1 || isa<prim::ArgReduceOp, prim::DotGeneralOp, prim::ConvOp, prim::WindowReduceOp>(op))
      return {};
    const Value result = op.getResult(0);
    if (auto reduce = dyn_cast<prim::ReduceOp>(op)) {
      const std::optional<unsigned> rank = fuse::getRowRank(reduce);
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

/// Whether tasks that are rows of `root`, or pieces of them, would compute `results` (see above) again and again, or
/// leave threads idle.
bool isWorthAhead(Value root, ArrayRef<Value> results) {
  if (results.empty())
    return false;
  const double rows = fuse::likelyCount(results.front()), elements = fuse::likelyCount(root);
  SmallVector<AffineExpr> sizes = prim::getSizes(root);
  const double last = sizes.empty() ? 1 : double(prim::getConstantSize(sizes.back()).value_or(64));
  return rows < elements / last ? elements >= kLeastAhead : rows == 1 && last >= kLongRow;
}

/// How many of the last dims of `sizes` tasks and lanes take as one; 0: none. Lanes stay evenly spaced in each of the
/// dims as long as those behind it are powers of two of elements that a vector holds.
int64_t countEvenlyJoined(ArrayRef<AffineExpr> sizes) {
  auto isPart = [](int64_t count) { return count >= 1 && count <= kMostPart && llvm::isPowerOf2_64(count); };
  int64_t joined = 0, count = 1;
  for (AffineExpr size : llvm::reverse(sizes)) {
    if (joined > 0 && !isPart(count))
      break;
    count *= prim::getConstantSize(size).value_or(kLikelyRows);
    ++joined;
  }
  return joined >= 2 && count > kMostPart ? joined : 0;
}

/// How many of the last dims of `sizes` all but the first of which have one element; 0: none of one element.
int64_t countUnitJoined(ArrayRef<AffineExpr> sizes) {
  int64_t joined = 1;
  for (AffineExpr size : llvm::reverse(sizes)) {
    if (prim::getConstantSize(size) != 1)
      return joined > 1 ? joined : 0;
    ++joined;
  }
  return 0;
}

/// Elements of the last `joined` dims but the first of them, where lanes are not evenly spaced in it; else 0.
int64_t oddPart(ArrayRef<AffineExpr> sizes, int64_t joined) {
  int64_t part = 1;
  for (AffineExpr size : sizes.take_back(std::max<int64_t>(joined - 1, 0)))
    part *= *prim::getConstantSize(size);
  return part <= kMostPart && llvm::isPowerOf2_64(part) ? 0 : part;
}

/// The same for dims that hold any small number of elements of what `block` computes.
int64_t countOddlyJoined(ArrayRef<AffineExpr> sizes, Block &block) {
  double code = 0;
  for (Operation &op : block.without_terminator())
    code += prim::isTranscendental(&op) ? kTranscendental : 1;
  int64_t joined = 0, part = 1;
  for (AffineExpr size : llvm::reverse(sizes)) {
    const int64_t count = prim::getConstantSize(size).value_or(kLikelyRows);
    if (count < 2)
      return 0;
    ++joined;
    if (part * count > kMostOddPart)
      return part > 1 && count >= kPanel && oddPart(sizes, joined) && code * double(part) <= kMostOddCode ? joined : 0;
    part *= count;
  }
  return 0;
}

/// Bytes that are read and written for each element of `root`. Of what is larger, only parts are.
double bytesPerElement(kernel::RegionOp region, Value root) {
  Block &block = region.getBody().front();
  const double elements = std::max(fuse::likelyCount(root), 1.0);
  auto bytes = [&](Value value) {
    const unsigned bits = cast<RankedTensorType>(value.getType()).getElementTypeBitWidth();
    return std::min(fuse::likelyCount(value), elements) * bits / 8;
  };
  double all = 0;
  for (Value argument : block.getArguments())
    all += bytes(argument);
  for (Value result : block.getTerminator()->getOperands())
    all += bytes(result);
  return all / elements;
}

/// The last `joined` dims as one.
SmallVector<AffineExpr> joinLast(ArrayRef<AffineExpr> sizes, int64_t joined) {
  SmallVector<AffineExpr> result(sizes);
  for (; joined > 1; --joined) {
    const AffineExpr last = result.pop_back_val();
    result.back() = prim::simplifySize(result.back() * last);
  }
  return result;
}

/// Reductions whose results make up the outputs, element by element, and rough scalar operations of what is in between.
struct Finish {
  llvm::SmallSetVector<Value, 4> reductions;
  double cost = 0;
};
Finish finishOf(kernel::RegionOp region, Value root) {
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

/// Whether all uses lead through pointwise ops only: the value is read at the written position and nowhere else.
bool isPointwiseUse(Value value) {
  for (Operation *user : value.getUsers()) {
    if (isa<kernel::YieldOp>(user))
      continue;
    if (!lookupPointwise(user) || !isPointwiseUse(user->getResult(0)))
      return false;
  }
  return true;
}

/// Positions from `begin` on, whose indices begin with `first` and lie `step` apart.
struct Run {
  int64_t begin, first, step;
};
/// A gather along the rows through a constant list, by runs.
struct GatherRuns {
  mutable prim::GatherOp op; // accessors of ops are not const
  SmallVector<Run> runs;
};

/// The gather's list of indices by the fewest even runs from its beginning on, if it is constant and all are inside.
SmallVector<Run> runsOf(kernel::RegionOp region, prim::GatherOp gather) {
  const DenseIntElementsAttr indices = findConstantIndices(region, gather.getIndices());
  const std::optional<int64_t> size = prim::getConstantSize(prim::getSizes(gather.getSource()).back());
  if (!indices || indices.getType().getRank() != 1 || !size)
    return {};
  SmallVector<Run> runs;
  int64_t position = 0, previous = 0;
  for (const APInt &number : indices.getValues<APInt>()) {
    const int64_t index = number.getSExtValue() + (number.isNegative() ? *size : 0);
    if (index < 0 || index >= *size)
      return {};
    if (!runs.empty() && position == runs.back().begin + 1)
      runs.back().step = index - previous;
    else if (runs.empty() || index != previous + runs.back().step)
      runs.push_back({position, index, 1});
    previous = index;
    ++position;
  }
  return runs;
}

/// Whether the region's input is as large as `root`, and comes from beyond the second-level cache.
bool isFetched(BlockArgument argument, ArrayRef<AffineExpr> sizes) {
  const auto type = cast<RankedTensorType>(argument.getType());
  return type.hasStaticShape() && prim::getSizes(argument) == sizes &&
         type.getNumElements() * type.getElementTypeBitWidth() / 8 >= kFetchedBytes;
}

/// So many rows further down is what the pass over a row fetches. `isKept`: it keeps what it computes, exponentials,
/// which takes as long as the next row is on its way.
int64_t fetchedRows(kernel::RegionOp region, Value root, bool isKept) {
  const SmallVector<AffineExpr> sizes = prim::getSizes(root);
  const auto input =
      llvm::find_if(region.getBody().getArguments(), [&](BlockArgument a) { return isFetched(a, sizes); });
  if (input == region.getBody().getArguments().end())
    return 0;
  if (isKept)
    return 1;
  const int64_t bytes =
      *prim::getConstantSize(sizes.back()) * Emitter::memoryBytes(getElementTypeOrSelf(input->getType()));
  return bytes < kShortRowBytes ? ceilDiv(kFetchAheadBytes, bytes) : bytes >= kLongRowBytes;
}

/// A concat along the rows, or one that is an input of such a concat alone, and the element of a row that it begins at.
struct PlacedConcat {
  mutable prim::ConcatOp op; // accessors of ops are not const
  int64_t begin;
};
/// The concats along the rows of `root`, and gathers through constant lists, that are read at the written position
/// only, and the elements of a row at which their inputs and runs, or several short inputs, begin, with its length at
/// the end.
struct Pieces {
  SmallVector<PlacedConcat> concats;
  SmallVector<GatherRuns> gathers;
  SmallVector<int64_t> bounds;
};
/// Inputs of concats that hold fewer than kLeastPiece elements of a row each become one piece with such neighbours, as
/// long as that fills no more than a vector.
void joinShort(Pieces &pieces) {
  SmallVector<int64_t> bounds;
  bool wasShort = false;
  for (auto [begin, end] : llvm::zip(pieces.bounds, ArrayRef(pieces.bounds).drop_front())) {
    const bool isShort = end - begin < kLeastPiece;
    if (!isShort || !wasShort || end - bounds.back() > kPanel)
      bounds.push_back(begin);
    wasShort = isShort;
  }
  bounds.push_back(pieces.bounds.back());
  pieces.bounds = std::move(bounds);
}

Pieces piecesOf(kernel::RegionOp region, Value root) {
  const SmallVector<AffineExpr> sizes = prim::getSizes(root);
  Block &block = region.getBody().front();
  auto isAlongRows = [&](Value result, uint64_t axis) {
    return prim::getSizes(result) == sizes && axis + 1 == sizes.size() && isPointwiseUse(result);
  };
  Pieces pieces;
  bool isKnown = true;
  std::function<void(prim::ConcatOp, int64_t)> place = [&](prim::ConcatOp concat, int64_t begin) {
    pieces.concats.push_back({concat, begin});
    pieces.bounds.push_back(begin);
    for (Value input : concat.getInputs()) {
      auto inner = input.getDefiningOp<prim::ConcatOp>();
      if (inner && input.hasOneUse() && inner.getAxis() == concat.getAxis())
        place(inner, begin);
      const std::optional<int64_t> size = prim::getConstantSize(prim::getSizes(input).back());
      isKnown &= size.has_value();
      begin += size.value_or(0);
      pieces.bounds.push_back(begin);
    }
  };
  for (auto concat : block.getOps<prim::ConcatOp>())
    if (isAlongRows(concat.getResult(), concat.getAxis()))
      place(concat, 0);
  if (!isKnown)
    return {};
  for (auto gather : block.getOps<prim::GatherOp>()) {
    if (!isAlongRows(gather.getResult(), gather.getAxis()))
      continue;
    SmallVector<Run> runs = runsOf(region, gather);
    if (runs.empty() || runs.size() > kMostPieces)
      continue;
    for (const Run &run : runs)
      pieces.bounds.push_back(run.begin);
    pieces.bounds.push_back(*prim::getConstantSize(sizes.back()));
    pieces.gathers.push_back({gather, std::move(runs)});
  }
  llvm::sort(pieces.bounds);
  pieces.bounds.erase(llvm::unique(pieces.bounds), pieces.bounds.end());
  if (pieces.gathers.empty() && !pieces.bounds.empty())
    joinShort(pieces);
  return pieces;
}

/// The input of the concat that holds the elements [begin, end) of a row, and its first element in the concat; null:
/// several do, or none.
std::pair<Value, int64_t> inputAt(const PlacedConcat &concat, int64_t begin, int64_t end) {
  int64_t start = 0;
  for (Value input : concat.op.getInputs()) {
    const int64_t size = *prim::getConstantSize(prim::getSizes(input).back());
    if (begin >= concat.begin + start && begin < concat.begin + start + size)
      return {end <= concat.begin + start + size ? input : Value(), start};
    start += size;
  }
  return {};
}

/// The elements of the rows of which the last dim of `input` is put together, if lanes that cross them would gather
/// each element: the rows lie apart behind a gather or a transpose, and are no whole vectors. Else 0.
int64_t rowsApart(Value input) {
  auto reshape = input ? input.getDefiningOp<prim::ReshapeOp>() : prim::ReshapeOp();
  if (!reshape)
    return 0;
  const auto from = prim::getSizes(reshape.getOperand()), to = prim::getSizes(input);
  const std::optional<int64_t> row = from.size() < 2 ? std::nullopt : prim::getConstantSize(from.back());
  const std::optional<int64_t> last = prim::getConstantSize(to.back());
  if (!row || !last || *row < kLeastRowApart || *row % kPanel == 0 || *row > kMostRowApart || *last <= *row ||
      *last % *row != 0)
    return 0;
  SetVector<Operation *> before;
  (void)getBackwardSlice(reshape.getOperation(), &before);
  return llvm::any_of(before,
                      [](Operation *op) { return isa<prim::GatherOp, prim::GatherNDOp, prim::TransposeOp>(op); })
             ? *row
             : 0;
}

/// Whether loops of their own are worth it for the pieces of a row that is cut into chunks or not.
bool isInPieces(const Pieces &pieces, bool isCut) {
  if (pieces.bounds.size() < 3 || pieces.bounds.size() > kMostPieces + 1)
    return false;
  int64_t vectors = 0;
  for (auto [begin, end] : llvm::zip(pieces.bounds, ArrayRef(pieces.bounds).drop_front())) {
    if (isCut && (begin % kPanel != 0 || end % kPanel != 0))
      return false;
    vectors += ceilDiv(end - begin, kPanel);
  }
  return pieces.gathers.empty() || vectors <= kGatherVectors * ceilDiv(pieces.bounds.back(), kPanel);
}

/// How many of the last dims of `root` make a row that is put together of many short pieces; 0: none do.
int64_t countOfShortPieces(Block &block, Value root) {
  const SmallVector<AffineExpr> own = prim::getSizes(root);
  while (auto reshape = root.getDefiningOp<prim::ReshapeOp>()) {
    if (fuse::getSpace(reshape.getType()) != fuse::getSpace(reshape.getOperand().getType()))
      return 0;
    root = reshape.getOperand();
  }
  auto concat = root.getDefiningOp<prim::ConcatOp>();
  if (!concat || !llvm::all_of(block.without_terminator(), [](Operation &op) {
        return fuse::getRole(&op) == fuse::Role::Movement || isa<prim::ConstantOp, prim::SplatOp>(op) ||
               (op.hasTrait<prim::PointwiseTrait>() && !prim::isTranscendental(&op));
      }))
    return 0;
  int64_t pieces = 0;
  for (auto other : block.getOps<prim::ConcatOp>())
    pieces += int64_t(other.getInputs().size());
  const SmallVector<AffineExpr> sizes = prim::getSizes(concat.getResult());
  const std::optional<int64_t> row =
      prim::getConstantSize(prim::product(concat.getContext(), ArrayRef(sizes).drop_front(concat.getAxis())));
  if (!row || *row == 0 || pieces < kLeastPieces || *row > kMostElements || *row > kMeanPiece * pieces)
    return 0;
  int64_t dims = 0, count = 1;
  for (AffineExpr size : llvm::reverse(own)) {
    ++dims;
    count *= prim::getConstantSize(size).value_or(0);
    if (count >= *row)
      return count == *row ? dims : 0;
  }
  return 0;
}

class LoopsGenerator final : public GeneratorOf<Schedule> {
public:
  FailureOr<Schedule> decide(kernel::RegionOp region, llvm::function_ref<bool(unsigned)>) const override {
    Block &block = region.getBody().front();
    auto yield = cast<kernel::YieldOp>(block.getTerminator());
    // The output with the most dims, then the most elements, spans the rows.
    unsigned space = 0;
    auto weight = [&](unsigned i) {
      const Value value = yield.getValues()[i];
      return std::make_pair(fuse::likelyCount(value), prim::getSizes(value).size());
    };
    for (unsigned i = 1; i < yield.getValues().size(); ++i)
      if (weight(i) > weight(space))
        space = i;
    Value root = yield.getValues()[space];
    SmallVector<AffineExpr> sizes = prim::getSizes(root);
    const SmallVector<Value> ahead = rowResults(region, root);
    const bool isAhead = isWorthAhead(root, ahead);
    const SmallVector<AffineExpr> own = sizes;
    int64_t joined = 0;
    if (llvm::all_of(yield.getValues(), [&](Value value) { return prim::getSizes(value) == own; }) &&
        llvm::none_of(block, [](Operation &op) {
          return isa<prim::ArgReduceOp, prim::DotGeneralOp, prim::ConvOp, prim::WindowReduceOp>(op);
        })) {
      auto reductions = block.getOps<prim::ReduceOp>();
      joined = reductions.empty() ? countEvenlyJoined(own) : countUnitJoined(own);
      const bool joinsOddly =
          !isAhead && llvm::all_of(reductions, [&](prim::ReduceOp reduce) { return isAlongLast(reduce, own); });
      if (const int64_t odd = joinsOddly ? countOddlyJoined(own, block) : 0; odd > joined)
        joined = odd;
      if (const int64_t dims = countOfShortPieces(block, root))
        return byElements(region, space, dims);
    }
    const int64_t odd = oddPart(own, joined);
    sizes = joinLast(sizes, joined);
    double last = sizes.empty() ? 1 : double(prim::getConstantSize(sizes.back()).value_or(64));
    double rows = weight(space).first / std::max(last, 1.0);

    // Lanes belong to a reduction if the last dim of what it reduces is reduced: contiguous, and long enough.
    bool reductionLanes = false;
    bool fullSpace = false;
    auto see = [&](Value operand, ArrayRef<int64_t> dims) {
      auto in = prim::getSizes(operand);
      if (!llvm::is_contained(dims, int64_t(in.size()) - 1))
        return;
      // Part of a vector is worth it where it is loaded at once.
      const int64_t extent = prim::getConstantSize(in.back()).value_or(64);
      reductionLanes |= extent >= kPanel || (extent >= kPanel / 2 && isInnermost(operand, int64_t(in.size()) - 1));
      fullSpace |= prim::getSizes(root) == in;
    };
    region.walk([&](Operation *op) {
      if (auto reduce = dyn_cast<prim::ReduceOp>(op))
        see(reduce.getOperand(), reduce.getDims());
      else if (auto arg = dyn_cast<prim::ArgReduceOp>(op))
        see(arg.getOperand(), {int64_t(arg.getAxis())});
    });
    DenseMap<Value, double> known;
    if (odd)
      reductionLanes = false;
    if (isAhead) {
      reductionLanes = false;
      for (Value value : ahead)
        known[value] = 1;
    }
    bool lanes = !sizes.empty() && (!reductionLanes || fullSpace);
    double perElement = costOf(root, known, lanes ? own : SmallVector<AffineExpr>());
    int64_t chunk = 0;
    // Few long rows: cut them, so that all cores have work. Not with reductions along the row, which every piece would
    // repeat.
    if (lanes && !(reductionLanes && fullSpace) && rows < 64 && last * perElement > 16384)
      chunk = std::max<int64_t>(64, int64_t(16384 / std::max(perElement, 1.0)) / 64 * 64);
    // So many elements may be none or very many.
    if (lanes && joined && !prim::getConstantSize(sizes.back()))
      chunk = std::max<int64_t>(64, int64_t(16384 / std::max(perElement, 1.0)) / 64 * 64);
    if (odd && chunk)
      chunk = roundUp(chunk, 64 * odd); // whole blocks of vectors of any width
    if (!lanes && rows < 64 && last * perElement > 16384 && last > 1)
      chunk = std::max<int64_t>(1, int64_t(16384 / std::max(perElement, 1.0)));
    const Finish finish = finishOf(region, root);
    const bool isBlocked = !lanes && last > 1 && !finish.reductions.empty() && finish.cost >= kLeastFinish;
    if (isBlocked)
      chunk = roundUp(chunk, kPanel); // full vectors
    // Part of a vector takes as long as all of it.
    const double perTask =
        std::max(perElement, bytesPerElement(region, root)) * (chunk   ? double(chunk)
                                                               : lanes ? double(roundUp(int64_t(last), kPanel))
                                                                       : last);
    // To add up lanes for each result, or to shuffle them along short dims, is not counted.
    const double leastCost = lanes && !odd ? kGrain : kReducedGrain;
    int64_t grain = std::max<int64_t>(1, int64_t(leastCost / std::max(perTask, 1.0)));

    Schedule::Params params;
    params.space = space;
    params.lanes = lanes;
    params.chunk = chunk;
    params.grain = grain;
    if (isAhead)
      params.reduceLaunch = 1;
    if (joined)
      params.joined = joined;
    int64_t keep = -1;
    if (Value kept = (lanes && chunk) || sizes.empty() || isAhead || odd ? Value() : chooseKept(root, block, lanes))
      keep = std::distance(block.begin(), kept.getDefiningOp()->getIterator());
    params.keep = keep;
    if (isBlocked && keep < 0)
      params.block = kBlock;
    const bool isStreaming = lanes && isStreamed(root);
    const bool isKept = lanes && keep >= 0;
    if (isKept || (isStreaming && reductionLanes && fullSpace && !isAhead && !joined))
      if (const int64_t fetched = fetchedRows(region, root, isKept))
        params.fetch = fetched;
    if (isStreaming)
      params.stream = 1;
    if (lanes && keep < 0 && !joined && isInPieces(piecesOf(region, root), chunk != 0))
      params.segments = 1;
    return params.get(region.getContext());
  }

  /// The schedule that writes rows of so many dims element by element.
  static Schedule byElements(kernel::RegionOp region, unsigned space, int64_t dims) {
    const auto sizes =
        prim::getSizes(cast<kernel::YieldOp>(region.getBody().front().getTerminator()).getValues()[space]);
    const double elements =
        double(*prim::getConstantSize(prim::product(region.getContext(), ArrayRef(sizes).take_back(dims))));
    Schedule::Params params;
    params.space = space;
    params.lanes = 0;
    params.chunk = 0;
    params.grain = std::max<int64_t>(1, int64_t(kReducedGrain / elements));
    if (dims > 1)
      params.joined = dims;
    params.keep = -1;
    params.elements = 1;
    return params.get(region.getContext());
  }

  /// Other pieces of rows; what is kept is computed again.
  SmallVector<kernel::ScheduleAttr> alternatives(kernel::RegionOp region, llvm::function_ref<bool(unsigned)> isConstant,
                                                 const CpuInfo &) const override {
    FailureOr<Schedule> chosen = decide(region, isConstant);
    if (failed(chosen))
      return {};
    SmallVector<kernel::ScheduleAttr> all;
    auto add = [&](int64_t Schedule::Params::*param, int64_t value) {
      Schedule::Params params = chosen->getParams();
      params.*param = value;
      all.push_back(params.get(region.getContext()));
    };
    if (int64_t chunk = chosen->getChunk(); chunk && chosen->getLanes()) {
      auto yield = cast<kernel::YieldOp>(region.getBody().front().getTerminator());
      const int64_t odd = oddPart(prim::getSizes(yield.getValues()[chosen->getSpace()]), chosen->getJoined());
      const int64_t step = 64 * std::max<int64_t>(odd, 1);
      if (chunk > step)
        add(&Schedule::Params::chunk, roundUp(chunk / 2, step));
      add(&Schedule::Params::chunk, chunk * 2);
      add(&Schedule::Params::chunk, 0);
    }
    if (chosen->getKeep() >= 0)
      add(&Schedule::Params::keep, -1);
    if (chosen->getBlock())
      add(&Schedule::Params::block, 0);
    return all;
  }

  SmallVector<Launch> makeLaunches(kernel::RegionOp region, Schedule schedule) const override {
    MLIRContext *context = region.getContext();
    auto yield = cast<kernel::YieldOp>(region.getBody().front().getTerminator());
    SmallVector<AffineExpr> sizes =
        joinLast(prim::getSizes(yield.getValues()[schedule.getSpace()]), schedule.getJoined());
    Launch launch;
    AffineExpr rows = prim::product(context, sizes.empty() ? ArrayRef<AffineExpr>() : ArrayRef(sizes).drop_back());
    if (int64_t chunk = schedule.getChunk(); chunk && !sizes.empty())
      rows = prim::simplifySize(rows * sizes.back().ceilDiv(chunk));
    launch.tasks = rows;
    launch.grain = getAffineConstantExpr(schedule.getGrain(), context);
    SmallVector<Launch> launches;
    if (schedule.getReduceLaunch()) {
      Launch ahead;
      ahead.suffix = "_rows";
      const SmallVector<Value> results = rowResults(region, yield.getValues()[schedule.getSpace()]);
      for (Value value : results)
        ahead.temporaries.push_back(cast<RankedTensorType>(value.getType()));
      ahead.tasks = prim::product(context, prim::getSizes(results.front()));
      ahead.grain = getAffineConstantExpr(1, context);
      launches.push_back(ahead);
    }
    if (Kept kept = getKept(region, schedule); kept.value) {
      int64_t bytes = cast<RankedTensorType>(kept.value.getType()).getElementTypeBitWidth() / 8;
      launch.scratch = prim::simplifySize((prim::getSizes(kept.value).back() * bytes).ceilDiv(64) * 64 + 64);
    }
    // In place: every use of an input is pointwise at the output's own position.
    for (auto [i, argument] : llvm::enumerate(region.getBody().getArguments()))
      for (auto [o, value] : llvm::enumerate(yield.getValues()))
        if (argument.getType() == value.getType() && isPointwiseUse(argument) && schedule.getLanes() &&
            o == size_t(schedule.getSpace())) {
          launch.inPlace.push_back(i);
          launch.inPlace.push_back(o);
        }
    launches.push_back(launch);
    return launches;
  }

  void emitTasks(kernel::RegionOp region, Schedule schedule, unsigned number, Emitter &e, Value begin,
                 Value end) const override {
    auto yield = cast<kernel::YieldOp>(region.getBody().front().getTerminator());
    if (schedule.getReduceLaunch()) {
      const SmallVector<Value> results = rowResults(region, yield.getValues()[schedule.getSpace()]);
      if (number == 0)
        return emitRowResults(results, e, begin, end);
      for (auto [i, value] : llvm::enumerate(results)) {
        const Value buffer = e.input(region.getNumOperands() + i);
        e.setSource(value, [&e, value = value, buffer](ArrayRef<Index> at) {
          return e.loadAt(buffer, cast<RankedTensorType>(value.getType()).getElementType(),
                          e.linearize(at, prim::getSizes(value)));
        });
      }
    }
    SmallVector<AffineExpr> sizes = prim::getSizes(yield.getValues()[schedule.getSpace()]);
    if (sizes.empty()) {
      e.loop(begin, end, 1, [&](Index) {
        for (auto [o, value] : llvm::enumerate(yield.getValues()))
          e.storeAt(e.emit(value, {}), e.output(o), cast<RankedTensorType>(value.getType()).getElementType(),
                    e.constant(0));
      });
      return;
    }
    if (!schedule.getStream())
      return emitRows(region, schedule, e, begin, end, /*isStreaming=*/false);
    SmallVector<Value> buffers;
    for (auto [o, value] : llvm::enumerate(yield.getValues()))
      if (prim::getSizes(value) == sizes)
        buffers.push_back(e.output(o));
    emitStreaming(e, buffers, [&](bool isStreaming) { emitRows(region, schedule, e, begin, end, isStreaming); });
  }

private:
  static void emitRowResults(ArrayRef<Value> results, Emitter &e, Value begin, Value end) {
    e.loop(begin, end, 1, [&](Index row) {
      for (auto [i, value] : llvm::enumerate(results)) {
        const SmallVector<AffineExpr> sizes = prim::getSizes(value);
        const SmallVector<Index> at = e.delinearize(row, sizes);
        e.storeAt(e.emit(value, at), e.output(i), cast<RankedTensorType>(value.getType()).getElementType(), row);
      }
    });
  }

  /// `isStreaming`: results are stored past the caches.
  static void emitRows(kernel::RegionOp region, Schedule schedule, Emitter &e, Value begin, Value end,
                       bool isStreaming) {
    auto yield = cast<kernel::YieldOp>(region.getBody().front().getTerminator());
    const bool lanes = schedule.getLanes();
    const int64_t chunk = schedule.getChunk(), joined = schedule.getJoined();
    const Value root = yield.getValues()[schedule.getSpace()];
    const SmallVector<AffineExpr> own = prim::getSizes(root);
    const SmallVector<AffineExpr> sizes = joinLast(own, joined);
    const Kept kept = getKept(region, schedule);
    AffineExpr last = sizes.back();
    SmallVector<AffineExpr> outer(sizes.begin(), sizes.end() - 1);
    e.loop(begin, end, 1, [&](Index task) {
      Index row = task;
      Value from = e.i64(0), to = e.size(last);
      std::optional<int64_t> constantTo = prim::getConstantSize(last);
      if (chunk) {
        SmallVector<AffineExpr> grid{prim::product(e.builder().getContext(), outer), last.ceilDiv(chunk)};
        grid[1] = prim::simplifySize(grid[1]);
        SmallVector<Index> at = e.delinearize(task, grid);
        row = at[0];
        from = e.mul(at[1].base, e.i64(chunk));
        if (!constantTo || *constantTo % chunk != 0) {
          to = e.min(e.add(from, e.i64(chunk)), to);
          constantTo = std::nullopt;
        } else {
          to = e.add(from, e.i64(chunk));
        }
      }
      SmallVector<Index> at = outer.empty() ? SmallVector<Index>{} : e.delinearize(row, outer);
      auto fetchAhead = [&](Index position) {
        if (const int64_t rows = schedule.getFetch())
          fetchRow(region, sizes, e, e.add(row.base, e.i64(rows)), position);
      };
      if (kept.value && lanes)
        e.keepRow(kept.value, kept.reduction, at, e.scratch(), fetchAhead);
      // `parts`: where the lanes of `position` are in the joined dims.
      auto writeAt = [&](Index position, ArrayRef<Index> parts) {
        SmallVector<Index> full = at;
        full.push_back(position);
        if (kept.value && !lanes)
          e.keepRow(kept.value, kept.reduction, full, e.scratch());
        // All values before all stores: an output may lie on an input.
        SmallVector<std::pair<unsigned, Value>> values;
        SmallVector<Index> apart = at;
        llvm::append_range(apart, parts);
        for (auto [o, value] : llvm::enumerate(yield.getValues()))
          if (prim::getSizes(value) == own)
            values.emplace_back(o, e.emit(value, apart));
        e.streamsStores = isStreaming;
        for (auto [o, value] : values)
          e.store(value, e.output(o), getElementTypeOrSelf(yield.getValues()[o].getType()), sizes, full);
        e.streamsStores = false;
      };
      const ArrayRef<AffineExpr> joinedDims = ArrayRef(own).take_back(joined);
      auto write = [&](Index position) {
        writeAt(position, joined ? e.delinearize(position, joinedDims) : SmallVector<Index>{position});
      };
      if (schedule.getElements())
        for (int64_t i = 0; i < *constantTo; ++i)
          write(e.constant(i));
      else if (const int64_t odd = oddPart(own, joined))
        emitOddParts(joinedDims, odd, e, from, to, writeAt);
      else if (schedule.getSegments())
        emitPieces(piecesOf(region, root), e, from, to, /*isCut=*/chunk != 0, write);
      else if (lanes)
        e.independentLanes(
            to, constantTo,
            [&](Index position) {
              if (!kept.value)
                fetchAhead(position);
              write(position);
            },
            from);
      else if (const int64_t block = schedule.getBlock())
        emitBlocks(finishOf(region, root).reductions.getArrayRef(), block, e, at, from, to, write);
      else
        e.loop(from, to, 1, [&](Index position) { write(position); });
      // Results in other spaces: the row space (once per row), or, if small, everything by the first task.
      for (unsigned o = 0; o < yield.getValues().size(); ++o) {
        Value value = yield.getValues()[o];
        const SmallVector<AffineExpr> others = prim::getSizes(value);
        if (others == own)
          continue;
        Type element = cast<RankedTensorType>(value.getType()).getElementType();
        Value first = arith::CmpIOp::create(e.builder(), e.loc(), arith::CmpIPredicate::eq, from, e.i64(0));
        std::optional<SmallVector<Index>> position = rowPosition(e, at, sizes, others);
        if (position) {
          e.ifThen(first, [&] { e.store(e.emit(value, *position), e.output(o), element, others, *position); });
        } else {
          Value isFirst = arith::CmpIOp::create(e.builder(), e.loc(), arith::CmpIPredicate::eq, task.base, e.i64(0));
          e.ifThen(isFirst, [&] {
            AffineExpr count = prim::product(e.builder().getContext(), others);
            e.loop(e.i64(0), e.size(count), 1, [&](Index linear) {
              SmallVector<Index> full = e.delinearize(linear, others);
              e.store(e.emit(value, full), e.output(o), element, others, full);
            });
          });
        }
      }
    });
  }

  /// Calls `write` with lanes over [from, to) of the joined dims `sizes`, of which those behind the first hold `part`
  /// elements, and with where the lanes are in each: `part` vectors at a time, then a part at a time.
  static void emitOddParts(ArrayRef<AffineExpr> sizes, int64_t part, Emitter &e, Value from, Value to,
                           llvm::function_ref<void(Index, ArrayRef<Index>)> write) {
    const int64_t block = part * e.width();
    const Value whole = e.add(from, e.mul(e.divUnsigned(e.sub(to, from), e.i64(block)), e.i64(block)));
    e.loop(
        from, whole, block,
        [&](Index first) {
          for (int64_t i = 0; i < part; ++i)
            write(e.contiguous(e.addIndex(first, e.constant(i * e.width()))),
                  e.delinearize(e.partOf(first, i * e.width(), block, block), sizes));
        },
        block);
    e.loop(
        whole, to, part,
        [&](Index first) {
          for (int64_t from = 0; from < part; from += e.width()) {
            const int64_t end = std::min(part, from + e.width());
            e.laneLoop(
                e.i64(end), end,
                [&](Index lane) {
                  write(e.addIndex(first, lane), e.delinearize(e.partOf(first, from, part, part), sizes));
                },
                e.i64(from));
          }
        },
        part);
  }

  /// Calls `write` with lanes over [from, to) of a row, piece by piece: what the concats read is known in each, but for
  /// pieces of several short inputs.
  static void emitPieces(const Pieces &pieces, Emitter &e, Value from, Value to, bool isCut,
                         llvm::function_ref<void(Index)> write) {
    for (size_t i = 0; i + 1 < pieces.bounds.size(); ++i) {
      const int64_t begin = pieces.bounds[i], end = pieces.bounds[i + 1];
      int64_t row = 0; // of an input that is put together of such, which is the piece
      Index inPiece;   // of the lanes, where it is
      for (const PlacedConcat &concat : pieces.concats) {
        auto [input, start] = inputAt(concat, begin, end);
        if (!input) {
          e.setSource(concat.op.getResult(), {});
          continue;
        }
        const bool isPiece = !isCut && concat.begin + start == begin &&
                             prim::getConstantSize(prim::getSizes(input).back()) == end - begin;
        if (const int64_t apart = isPiece ? rowsApart(input) : 0)
          row = apart;
        e.setSource(concat.op.getResult(), [&, input = input, start = start, isPiece](ArrayRef<Index> at) {
          SmallVector<Index> inner(at);
          inner.back() = isPiece && row ? inPiece : e.addIndex(at.back(), e.constant(-start));
          return e.emit(input, inner);
        });
      }
      for (const GatherRuns &gather : pieces.gathers) {
        const Run run = *std::prev(llvm::find_if(gather.runs, [&](const Run &other) { return other.begin > begin; }));
        e.setSource(gather.op.getResult(), [&e, gather = gather.op, run](ArrayRef<Index> at) mutable {
          SmallVector<Index> inner(at);
          const Index number = e.addIndex(at.back(), e.constant(-run.begin));
          inner.back() = e.addIndex(e.mulIndex(number, e.i64(run.step), run.step), e.constant(run.first));
          return e.emit(gather.getSource(), inner);
        });
      }
      if (row) {
        e.loop(e.i64(0), e.i64((end - begin) / row), 1, [&](Index number) {
          e.independentLanes(e.i64(row), row, [&](Index lane) {
            inPiece = e.joinIndex(number, lane, row);
            write(e.addIndex(inPiece, e.constant(begin)));
          });
        });
        continue;
      }
      Value first = e.i64(0), last = e.i64(end - begin);
      if (isCut) {
        OpBuilder &b = e.builder();
        first = arith::MaxSIOp::create(b, e.loc(), e.sub(from, e.i64(begin)), first);
        last = arith::MaxSIOp::create(b, e.loc(), e.min(e.sub(to, e.i64(begin)), last), first);
      }
      e.independentLanes(last, end - begin, [&](Index lane) { write(e.addIndex(lane, e.constant(begin))); }, first);
    }
    for (const PlacedConcat &concat : pieces.concats)
      e.setSource(concat.op.getResult(), {});
  }

  /// Calls `write` with lanes over [from, to) of the row `at`, `block` elements after those of `reductions`, each made
  /// by itself, are in a buffer.
  static void emitBlocks(ArrayRef<Value> reductions, int64_t block, Emitter &e, ArrayRef<Index> at, Value from,
                         Value to, llvm::function_ref<void(Index)> write) {
    SmallVector<Value> buffers;
    for (Value reduction : reductions)
      buffers.push_back(e.stackBuffer(Emitter::memoryType(getElementTypeOrSelf(reduction.getType())), block));
    e.loop(from, to, block, [&](Index first) {
      const Value count = e.min(e.sub(to, first.base), e.i64(block));
      e.loop(e.i64(0), count, 1, [&](Index number) {
        SmallVector<Index> full(at);
        full.push_back(e.addIndex(first, number));
        for (auto [reduction, buffer] : llvm::zip(reductions, buffers))
          e.storeAt(e.emit(reduction, full), buffer, getElementTypeOrSelf(reduction.getType()), number);
      });
      e.laneLoop(count, std::nullopt, [&](Index lane) {
        for (auto [reduction, buffer] : llvm::zip(reductions, buffers))
          e.setSource(reduction, [&e, lane, buffer = buffer, type = getElementTypeOrSelf(reduction.getType())](
                                     ArrayRef<Index>) { return e.loadAt(buffer, type, lane); });
        write(e.addIndex(first, lane));
      });
    });
  }

  /// Fetches, to the second-level cache, what the row of that number reads at `position` of inputs that come from
  /// beyond it: the pass that computes most leaves memory idle.
  static void fetchRow(kernel::RegionOp region, ArrayRef<AffineExpr> sizes, Emitter &e, Value row, Index position) {
    for (auto [i, argument] : llvm::enumerate(region.getBody().getArguments()))
      if (isFetched(argument, sizes))
        e.prefetch(e.address(e.input(i), Emitter::memoryType(getElementTypeOrSelf(argument.getType())),
                             e.add(e.mul(row, e.size(sizes.back())), position.base)));
  }

  /// A value that several passes over a row need, and the reduction of the first pass.
  struct Kept {
    Value value, reduction;
  };
  static Kept getKept(kernel::RegionOp region, Schedule schedule) {
    int64_t number = schedule.getKeep();
    if (number < 0)
      return {};
    Value value = std::next(region.getBody().front().begin(), number)->getResult(0);
    return {value, RowUses(value).firstReduction()};
  }

  /// Position of a row's element in an output whose sizes are the rows' outer dims, with 1s anywhere; nullopt: other
  /// sizes.
  static std::optional<SmallVector<Index>> rowPosition(Emitter &e, ArrayRef<Index> at, ArrayRef<AffineExpr> sizes,
                                                       ArrayRef<AffineExpr> own) {
    SmallVector<Index> position;
    size_t next = 0;
    for (AffineExpr size : own) {
      while (next + 1 < sizes.size() && sizes[next] != size && prim::getConstantSize(sizes[next]) == 1)
        ++next;
      if (next + 1 < sizes.size() && sizes[next] == size)
        position.push_back(at[next++]);
      else if (prim::getConstantSize(size) == 1)
        position.push_back(e.constant(0));
      else
        return std::nullopt;
    }
    while (next + 1 < sizes.size() && prim::getConstantSize(sizes[next]) == 1)
      ++next;
    if (next + 1 != sizes.size())
      return std::nullopt;
    return position;
  }
};

} // namespace

const Generator *tc::codegen::loopsGenerator() {
  static const LoopsGenerator generator;
  return &generator;
}
