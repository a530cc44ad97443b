//===- Reduction.cpp - a reduction in one form --------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Analysis/Reduction.h"

using namespace mlir;
using namespace tc;

Reduction::Reduction(prim::ReduceOp op)
    : op(op), sizes(prim::getSizes(op.getOperand())), results(prim::getSizes(op.getResult())) {
  for (int64_t dim : op.getDims())
    reduced.push_back(sizes[dim]);
  keepsLast = !llvm::is_contained(op.getDims(), int64_t(sizes.size()) - 1);
  outer = results;
  if (keepsLast && !outer.empty())
    outer.pop_back();
}

std::optional<unsigned> tc::getRowRank(Operation *reduce) {
  const SmallVector<int64_t> dims = cast<prim::FusionOpInterface>(reduce).getReducedDims();
  unsigned kept = 0, reduced = 0;
  for (auto [i, size] : llvm::enumerate(prim::getSizes(reduce->getOperand(0)))) {
    if (prim::isOne(size))
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
