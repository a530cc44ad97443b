//===- Transpose.cpp - regions in which another dim becomes the last ----------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Common/Transpose.h"

#include "tc/Analysis/Access.h"
#include "tc/Analysis/LikelySizes.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

namespace {

// Below this many elements of either dim most of a tile would be empty. Fewer rows of the operand are interleaved,
// where each has so many elements.
constexpr int64_t kLeast = 8, kMostNarrow = kLeast - 1, kLeastOfNarrow = 16;

/// Whether an element is computed from few others: no loops inside.
bool isElementwise(Operation &op) {
  return op.hasTrait<prim::PointwiseTrait>() || prim::isMovedBy(&op, prim::Addressing::Any) || isa<kernel::YieldOp>(op);
}

/// Whether the region's only result is what the op makes, in its order.
bool isStoredAsIs(const RegionProblem &region, prim::TransposeOp op) {
  const ValueRange yielded = region.getYielded();
  return yielded.size() == 1 && prim::skipReshapes(yielded.front()) == op.getResult();
}

} // namespace

std::optional<TransposeProblem> tc::codegen::analyzeTranspose(const RegionProblem &region) {
  Block &body = region.getBody();
  if (!llvm::all_of(body, isElementwise))
    return std::nullopt;
  for (auto op : body.getOps<prim::TransposeOp>()) {
    const ArrayRef<int64_t> permutation = op.getPermutation();
    const auto innermost = int64_t(permutation.size()) - 1;
    if (innermost < 1 || permutation.back() == innermost || !isInnermost(op.getOperand(), innermost))
      continue;
    SmallVector<AffineExpr> sizes = prim::getSizes(op.getResult());
    const auto dim = size_t(std::distance(permutation.begin(), llvm::find(permutation, innermost)));
    // A dim of which nothing is known is taken for one that fills a tile.
    auto likely = [&](AffineExpr size) { return getLikelySize(size, op, /*usual=*/kLeast); };
    const std::optional<int64_t> last = prim::getConstantSize(sizes.back());
    const bool isNarrow =
        last && *last >= 2 && *last <= kMostNarrow && dim + 2 == sizes.size() && isStoredAsIs(region, op);
    SmallVector<AffineExpr> columns(1, sizes.back());
    if (likely(sizes.back()) < kLeast && !isNarrow) {
      // A short dim and those around it, up to the one that lanes read.
      columns.assign(sizes.begin() + dim + 1, sizes.end());
      sizes.truncate(dim + 1);
      sizes.push_back(prim::product(op.getContext(), columns));
    }
    if (getLikelySize(sizes[dim], op, /*usual=*/kLeastOfNarrow) < (isNarrow ? kLeastOfNarrow : kLeast) ||
        (likely(sizes.back()) < kLeast && !isNarrow))
      continue;
    if (const Epilogue *epilogue = region.findWholeEpilogue(op.getResult()))
      return TransposeProblem{op, *epilogue, dim, sizes, columns, isNarrow};
  }
  return std::nullopt;
}

SmallVector<Index> TransposeProblem::inResult(Emitter &em, ArrayRef<Index> at) const {
  SmallVector<Index> to(at.drop_back());
  to.append(em.delinearize(at.back(), columns));
  return to;
}

SmallVector<Index> TransposeProblem::inOperand(Emitter &em, ArrayRef<Index> at) const {
  const SmallVector<Index> to = inResult(em, at);
  SmallVector<Index> from(to.size());
  for (auto [number, place] : llvm::enumerate(op.getPermutation()))
    from[place] = to[number];
  return from;
}
