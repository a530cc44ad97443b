//===- SortScatters.cpp - scatters of many updates by the order of what these name --------------------------------===//
//
// Updates that meet in a slice are combined as they come, so that sums are the same in each run. Threads of a slice
// that look for its updates look at all of them, which grows with slices times updates. Sorted by the slice that they
// name, those of one stand together (where the last one wins, gpu.scatter finds it without):
//
//   scatter_nd(source [A.., K..], indices [J.., D], updates [J.., K..])
//     ->  cell  = the number of the slice that an update names, [n]
//         order = arg_sort(cell), stable
//         scatter_nd(source [a, K..], cell, updates [n, K..]) order
//
// Updates of single elements of a vector (scatter_elements) are such slices, too.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Analysis/LikelySizes.h"
#include "tc/Dialect/Prim/Utils/PrimBuilder.h"
#include "tc/Transforms/Prepare/CUDA/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tc::prepare {
#define GEN_PASS_DEF_SORTSCATTERSPASS
#include "tc/Transforms/Prepare/CUDA/Passes.h.inc"
} // namespace tc::prepare

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

// Updates that are worth a sort.
constexpr int64_t kLeastUpdates = 4096;

/// The number of the slice, [n] of i64, that each update of `op` names, as scatters read indices: from the end where
/// they are below 0, and within the source.
Value cellsOf(PrimBuilder &b, ScatterNDOp op, ArrayRef<AffineExpr> named, AffineExpr count) {
  const Value indices = op.getIndices();
  const int64_t axis = PrimBuilder::rankOf(indices) - 1;
  const Type i64 = b.getI64Type();
  const Value zero = b.splat(i64, {count}, 0);
  Value cells;
  for (auto [dim, size] : llvm::enumerate(named)) {
    const Value extent = b.broadcastTo(b.sizeValue(size), {count});
    Value index = b.convert(b.reshape(b.take(indices, axis, int64_t(dim)), {count}), i64);
    index = b.select(b.compare(CompareKind::LT, index, zero), b.add(index, extent), index);
    index = b.max(b.min(index, b.sub(extent, b.splat(i64, {count}, 1))), zero);
    cells = cells ? b.add(b.mul(cells, extent), index) : index;
  }
  return cells;
}

/// `most`: slices that there are, at most.
Value sortScatter(PrimBuilder &b, ScatterNDOp op, ArrayRef<AffineExpr> named, int64_t most) {
  MLIRContext *context = op.getContext();
  const Sizes of = getSizes(op.getSource()), tuples = getSizes(op.getIndices());
  const AffineExpr count = product(context, ArrayRef(tuples).drop_back());
  Value cells = cellsOf(b, op, named, count);
  if (most <= INT32_MAX)
    cells = b.convert(cells, b.getI32Type());
  const auto keyBits = int64_t(llvm::Log2_64_Ceil(uint64_t(std::max<int64_t>(most, 2))));
  const Value order = ArgSortOp::create(b, makeType(b.getI64Type(), {count}), b.unsqueeze(cells, 1),
                                        /*descending=*/UnitAttr(), b.getI64IntegerAttr(keyBits));
  Sizes slices{product(context, named)}, updates{count};
  for (AffineExpr size : ArrayRef(of).drop_front(named.size())) {
    slices.push_back(size);
    updates.push_back(size);
  }
  const Value source = b.reshape(op.getSource(), slices);
  const Value result = ScatterNDOp::create(b, source.getType(), source, b.unsqueeze(cells, 1),
                                           b.reshape(op.getUpdates(), updates), order, op.getKindAttr());
  return b.reshape(result, of);
}

/// A scatter of elements of a vector as one of slices of one element.
ScatterNDOp asSlices(PrimBuilder &b, ScatterElementsOp op) {
  return ScatterNDOp::create(b, op.getType(), op.getSource(), b.unsqueeze(op.getIndices(), 1), op.getUpdates(),
                             op.getKindAttr());
}

struct SortScattersPass : tc::prepare::impl::SortScattersPassBase<SortScattersPass> {
  void runOnOperation() override {
    SmallVector<ScatterNDOp> scatters;
    SmallVector<ScatterElementsOp> vectors;
    getOperation().walk([&](Operation *op) {
      if (auto slices = dyn_cast<ScatterNDOp>(op))
        scatters.push_back(slices);
      else if (auto elements = dyn_cast<ScatterElementsOp>(op);
               elements && PrimBuilder::rankOf(elements.getSource()) == 1)
        vectors.push_back(elements);
    });
    for (ScatterElementsOp op : vectors) {
      OpBuilder builder(op);
      PrimBuilder b(builder, op);
      ScatterNDOp slices = asSlices(b, op);
      op.getResult().replaceAllUsesWith(slices.getResult());
      op.erase();
      scatters.push_back(slices);
    }
    for (ScatterNDOp op : scatters) {
      const Sizes of = getSizes(op.getSource()), tuples = getSizes(op.getIndices());
      const ArrayRef<AffineExpr> named = ArrayRef(of).take_front(size_t(*getConstantSize(tuples.back())));
      const AffineExpr count = product(&getContext(), ArrayRef(tuples).drop_back());
      if (op.getOrder() || !op.getKind() || named.empty() ||
          getLikelySize(count, op, /*usual=*/kLeastUpdates) < kLeastUpdates)
        continue;
      OpBuilder builder(op);
      PrimBuilder b(builder, op);
      op.getResult().replaceAllUsesWith(sortScatter(b, op, named, getLargestSize(product(&getContext(), named), op)));
      op.erase();
    }
  }
};

} // namespace
