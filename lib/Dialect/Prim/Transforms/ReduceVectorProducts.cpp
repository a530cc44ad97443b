//===- ReduceVectorProducts.cpp - vectors times matrices that only the run knows, as reductions -------------------===//
//
// A constant matrix is packed when the model is compiled. One that is computed, or given, would be packed for one row:
// it is written and read again, where a sum of products reads it once, in the order in which it lies.
//
//   dot(v [1, K], m [K, N])  ->  reduce sum(broadcast(v) * m, K)
//
// Batch dims are dims like any other; the matrix may have its rows or its columns contiguous, as there are strategies
// for reductions of either.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Computed.h"
#include "tc/Dialect/Prim/Transforms/Passes.h"
#include "tc/Dialect/Prim/Utils/PrimBuilder.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tc::prim {
#define GEN_PASS_DEF_REDUCEVECTORPRODUCTSPASS
#include "tc/Dialect/Prim/Transforms/Passes.h.inc"
} // namespace tc::prim

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

/// The dims of an operand that are neither batch dims nor contracted.
SmallVector<int64_t> freeDims(Value operand, ArrayRef<int64_t> batch, ArrayRef<int64_t> contract) {
  SmallVector<int64_t> dims;
  for (int64_t dim : llvm::seq<int64_t>(0, PrimBuilder::rankOf(operand)))
    if (!llvm::is_contained(batch, dim) && !llvm::is_contained(contract, dim))
      dims.push_back(dim);
  return dims;
}

/// The product of a left-hand side of one row as a reduction.
Value reduceProduct(PrimBuilder &b, DotGeneralOp op) {
  const Sizes matrix = getSizes(op.getRhs());
  // The vector along the matrix's dims.
  SmallVector<std::pair<int64_t, int64_t>> places; // dim of the matrix, dim of the vector
  for (auto [from, to] : llvm::zip(op.getLhsBatch(), op.getRhsBatch()))
    places.emplace_back(to, from);
  for (auto [from, to] : llvm::zip(op.getLhsContract(), op.getRhsContract()))
    places.emplace_back(to, from);
  llvm::sort(places);
  SmallVector<int64_t> order, dims;
  Sizes kept;
  for (auto [to, from] : places) {
    order.push_back(from);
    dims.push_back(to);
    kept.push_back(matrix[to]);
  }
  llvm::append_range(order, freeDims(op.getLhs(), op.getLhsBatch(), op.getLhsContract())); // of one element
  const Value vector = b.broadcastInDims(b.reshape(b.transpose(op.getLhs(), order), kept), matrix, dims);
  const Value sums = b.reduce(ReduceKind::Sum, b.mul(vector, op.getRhs()), op.getRhsContract(), /*keepDims=*/false);
  // Batch dims first.
  SmallVector<int64_t> wanted(op.getRhsBatch());
  llvm::append_range(wanted, freeDims(op.getRhs(), op.getRhsBatch(), op.getRhsContract()));
  SmallVector<int64_t> left(wanted);
  llvm::sort(left);
  SmallVector<int64_t> permutation;
  for (int64_t dim : wanted)
    permutation.push_back(std::distance(left.begin(), llvm::find(left, dim)));
  return b.reshape(b.transpose(sums, permutation), getSizes(op.getResult()));
}

struct ReduceVectorProductsPass : public tc::prim::impl::ReduceVectorProductsPassBase<ReduceVectorProductsPass> {
  void runOnOperation() override {
    const llvm::DenseSet<Value> computed = collectComputed(getOperation());
    SmallVector<DotGeneralOp> products;
    getOperation().walk([&](DotGeneralOp op) {
      const bool hasOneRow =
          llvm::all_of(freeDims(op.getLhs(), op.getLhsBatch(), op.getLhsContract()),
                       [&](int64_t dim) { return getConstantSize(getSizes(op.getLhs())[dim]) == 1; });
      auto isF32 = [](Value value) { return PrimBuilder::elementOf(value).isF32(); };
      if (computed.contains(op.getRhs()) && isF32(op.getLhs()) && isF32(op.getRhs()) && isF32(op.getResult()) &&
          hasOneRow)
        products.push_back(op);
    });
    for (DotGeneralOp op : products) {
      OpBuilder builder(op);
      PrimBuilder b(builder, op);
      op.getResult().replaceAllUsesWith(reduceProduct(b, op));
      op.erase();
    }
  }
};

} // namespace
