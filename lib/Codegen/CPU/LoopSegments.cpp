//===- LoopSegments.cpp - rows that are put together of segments --------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CPU/Loops.h"
#include "CPU/MicroKernel.h"
#include "CPU/Stream.h"
#include "Common/Anchor.h"
#include "tc/Transforms/Fuse.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;
using namespace tc::codegen::loops;

namespace {
// So many segments of a row at most are written by loops of their own, each of so many elements at least and, where
// rows are cut, of whole vectors.
constexpr size_t kMostSegments = 32;
constexpr int64_t kLeastSegment = 16;
// Rows of which an input of a concat is put together, by their elements, that take lanes of their own.
constexpr int64_t kLeastStride = 4, kMostStride = 128;
// Rows of so many segments at least, of so many elements each at most in the mean, and of no more elements than these
// are written element by element.
constexpr int64_t kLeastSegments = 24, kMeanSegment = 4, kMostElements = 1024;
// A vector that is gathered takes as long as so many loads.
constexpr int64_t kGatherVectors = 4;
} // namespace

/// The gather's list of indices by the fewest even runs from its beginning on, if it is constant and all are inside.
static SmallVector<Run> runsOf(kernel::RegionOp region, prim::GatherOp gather) {
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

/// Inputs of concats that hold fewer than kLeastSegment elements of a row each become one segment with such neighbours,
/// as long as that fills no more than a vector.
static void joinShort(Segments &segments) {
  SmallVector<int64_t> bounds;
  bool wasShort = false;
  for (auto [begin, end] : llvm::zip(segments.bounds, ArrayRef(segments.bounds).drop_front())) {
    const bool isShort = end - begin < kLeastSegment;
    if (!isShort || !wasShort || end - bounds.back() > kPanel)
      bounds.push_back(begin);
    wasShort = isShort;
  }
  bounds.push_back(segments.bounds.back());
  segments.bounds = std::move(bounds);
}

Segments loops::segmentsOf(kernel::RegionOp region, Value root) {
  const SmallVector<AffineExpr> sizes = prim::getSizes(root);
  Block &block = region.getBody().front();
  auto isAlongRows = [&](Value result, uint64_t axis) {
    return prim::getSizes(result) == sizes && axis + 1 == sizes.size() && isPointwiseUse(result);
  };
  Segments segments;
  bool isKnown = true;
  std::function<void(prim::ConcatOp, int64_t)> place = [&](prim::ConcatOp concat, int64_t begin) {
    segments.concats.push_back({concat, begin});
    segments.bounds.push_back(begin);
    for (Value input : concat.getInputs()) {
      auto inner = input.getDefiningOp<prim::ConcatOp>();
      if (inner && input.hasOneUse() && inner.getAxis() == concat.getAxis())
        place(inner, begin);
      const std::optional<int64_t> size = prim::getConstantSize(prim::getSizes(input).back());
      isKnown &= size.has_value();
      begin += size.value_or(0);
      segments.bounds.push_back(begin);
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
    if (runs.empty() || runs.size() > kMostSegments)
      continue;
    for (const Run &run : runs)
      segments.bounds.push_back(run.begin);
    segments.bounds.push_back(*prim::getConstantSize(sizes.back()));
    segments.gathers.push_back({gather, std::move(runs)});
  }
  llvm::sort(segments.bounds);
  segments.bounds.erase(llvm::unique(segments.bounds), segments.bounds.end());
  if (segments.gathers.empty() && !segments.bounds.empty())
    joinShort(segments);
  return segments;
}

std::pair<Value, int64_t> loops::inputAt(const PlacedConcat &concat, int64_t begin, int64_t end) {
  int64_t start = 0;
  for (Value input : concat.op.getInputs()) {
    const int64_t size = *prim::getConstantSize(prim::getSizes(input).back());
    if (begin >= concat.begin + start && begin < concat.begin + start + size)
      return {end <= concat.begin + start + size ? input : Value(), start};
    start += size;
  }
  return {};
}

int64_t loops::segmentStride(Value input) {
  auto reshape = input ? input.getDefiningOp<prim::ReshapeOp>() : prim::ReshapeOp();
  if (!reshape)
    return 0;
  const auto from = prim::getSizes(reshape.getOperand()), to = prim::getSizes(input);
  const std::optional<int64_t> row = from.size() < 2 ? std::nullopt : prim::getConstantSize(from.back());
  const std::optional<int64_t> last = prim::getConstantSize(to.back());
  if (!row || !last || *row < kLeastStride || *row % kPanel == 0 || *row > kMostStride || *last <= *row ||
      *last % *row != 0)
    return 0;
  SetVector<Operation *> before;
  (void)getBackwardSlice(reshape.getOperation(), &before);
  return llvm::any_of(before,
                      [](Operation *op) { return isa<prim::GatherOp, prim::GatherNDOp, prim::TransposeOp>(op); })
             ? *row
             : 0;
}

bool loops::isInSegments(const Segments &segments, bool isCut) {
  if (segments.bounds.size() < 3 || segments.bounds.size() > kMostSegments + 1)
    return false;
  int64_t vectors = 0;
  for (auto [begin, end] : llvm::zip(segments.bounds, ArrayRef(segments.bounds).drop_front())) {
    if (isCut && (begin % kPanel != 0 || end % kPanel != 0))
      return false;
    vectors += ceilDiv(end - begin, kPanel);
  }
  return segments.gathers.empty() || vectors <= kGatherVectors * ceilDiv(segments.bounds.back(), kPanel);
}

int64_t loops::countOfShortSegments(Block &block, Value root) {
  const SmallVector<AffineExpr> own = prim::getSizes(root);
  while (auto reshape = root.getDefiningOp<prim::ReshapeOp>()) {
    if (fuse::getSpace(reshape.getType()) != fuse::getSpace(reshape.getOperand().getType()))
      return 0;
    root = reshape.getOperand();
  }
  auto concat = root.getDefiningOp<prim::ConcatOp>();
  if (!concat || !llvm::all_of(block.without_terminator(), [](Operation &op) {
        return prim::isMovedBy(&op, prim::Addressing::Any) ||
               (op.hasTrait<prim::PointwiseTrait>() && !prim::isTranscendental(&op));
      }))
    return 0;
  int64_t segments = 0;
  for (auto other : block.getOps<prim::ConcatOp>())
    segments += int64_t(other.getInputs().size());
  const SmallVector<AffineExpr> sizes = prim::getSizes(concat.getResult());
  const std::optional<int64_t> row =
      prim::getConstantSize(prim::product(concat.getContext(), ArrayRef(sizes).drop_front(concat.getAxis())));
  if (!row || *row == 0 || segments < kLeastSegments || *row > kMostElements || *row > kMeanSegment * segments)
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
