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
// Products for each of many channels whose elements lie side by side in both operands (a filter over time for each
// channel) have no panels and no rows that are contiguous, and are sums along lanes that hold channels:
//
//   dot(x [M, K, C], y [K, N, C], batch C)  ->  reduce sum(broadcast(x) * broadcast(y), K)   of [M, N, K, C]
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Analysis/LikelySizes.h"
#include "tc/Dialect/Prim/Utils/Computed.h"
#include "tc/Dialect/Prim/Utils/PrimBuilder.h"
#include "tc/Dialect/Prim/Utils/ProductDims.h"
#include "tc/Transforms/Prepare/CPU/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tc::prepare {
#define GEN_PASS_DEF_REDUCEVECTORPRODUCTSPASS
#include "tc/Transforms/Prepare/CPU/Passes.h.inc"
} // namespace tc::prepare

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

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

// Channels that are worth lanes of their own, and rows or columns up to which an element that is transposed for a
// product is used too few times to be worth it.
constexpr int64_t kLeastChannels = 8, kFewLines = 16;

/// Number of the batch dim whose elements lie side by side in both operands and are worth lanes; -1: none.
int64_t channelsOf(DotGeneralOp op) {
  if (PrimBuilder::rankOf(op.getLhs()) == 0 || PrimBuilder::rankOf(op.getRhs()) == 0)
    return -1;
  const int64_t inLhs = memoryOrder(op.getLhs()).back(), inRhs = memoryOrder(op.getRhs()).back();
  for (auto [i, dims] : llvm::enumerate(llvm::zip(op.getLhsBatch(), op.getRhsBatch())))
    if (dims == std::tuple(inLhs, inRhs) &&
        getLikelySize(getSizes(op.getLhs())[inLhs], op, /*usual=*/kLeastChannels) >= kLeastChannels)
      return int64_t(i);
  return -1;
}

/// The number of elements of these dims, if it is known.
std::optional<int64_t> countOf(Value operand, ArrayRef<int64_t> dims) {
  int64_t count = 1;
  for (int64_t dim : dims) {
    const std::optional<int64_t> size = getConstantSize(getSizes(operand)[dim]);
    if (!size)
      return std::nullopt;
    count *= *size;
  }
  return count;
}

/// Whether one of the operands has so few rows or columns that turning the other one is not worth it.
bool hasFewLines(DotGeneralOp op) {
  auto isFew = [](std::optional<int64_t> count) { return count && *count <= kFewLines; };
  return isFew(countOf(op.getLhs(), freeDims(op.getLhs(), op.getLhsBatch(), op.getLhsContract()))) ||
         isFew(countOf(op.getRhs(), freeDims(op.getRhs(), op.getRhsBatch(), op.getRhsContract())));
}

/// The product as a reduction with the batch dim number `channels` along the lanes.
Value reduceChannels(PrimBuilder &b, DotGeneralOp op, int64_t channels) {
  // All dims: batch dims but the channels, rows, columns, contracted dims, channels.
  Sizes all;
  SmallVector<int64_t> lhsOrder, rhsOrder, lhsDims, rhsDims, contracted;
  auto add = [&](int64_t inLhs, int64_t inRhs) { // dims of the operands, -1: not in this one
    if (inLhs >= 0) {
      lhsOrder.push_back(inLhs);
      lhsDims.push_back(int64_t(all.size()));
    }
    if (inRhs >= 0) {
      rhsOrder.push_back(inRhs);
      rhsDims.push_back(int64_t(all.size()));
    }
    all.push_back(inLhs >= 0 ? getSizes(op.getLhs())[inLhs] : getSizes(op.getRhs())[inRhs]);
  };
  for (int64_t i : llvm::seq<int64_t>(0, int64_t(op.getLhsBatch().size())))
    if (i != channels)
      add(op.getLhsBatch()[i], op.getRhsBatch()[i]);
  for (int64_t dim : freeDims(op.getLhs(), op.getLhsBatch(), op.getLhsContract()))
    add(dim, -1);
  for (int64_t dim : freeDims(op.getRhs(), op.getRhsBatch(), op.getRhsContract()))
    add(-1, dim);
  for (auto [from, to] : llvm::zip(op.getLhsContract(), op.getRhsContract())) {
    contracted.push_back(int64_t(all.size()));
    add(from, to);
  }
  add(op.getLhsBatch()[channels], op.getRhsBatch()[channels]);
  const Value lhs = b.broadcastInDims(b.transpose(op.getLhs(), lhsOrder), all, lhsDims);
  const Value rhs = b.broadcastInDims(b.transpose(op.getRhs(), rhsOrder), all, rhsDims);
  const Value sums = b.reduce(ReduceKind::Sum, b.mul(lhs, rhs), contracted, /*keepDims=*/false);
  // The channels go to their place among the batch dims.
  SmallVector<int64_t> permutation = llvm::to_vector(llvm::seq<int64_t>(0, PrimBuilder::rankOf(sums) - 1));
  permutation.insert(permutation.begin() + channels, PrimBuilder::rankOf(sums) - 1);
  return b.reshape(b.transpose(sums, permutation), getSizes(op.getResult()));
}

struct ReduceVectorProductsPass : public tc::prepare::impl::ReduceVectorProductsPassBase<ReduceVectorProductsPass> {
  void runOnOperation() override {
    const llvm::DenseSet<Value> computed = collectComputed(getOperation());
    SmallVector<DotGeneralOp> products, channelProducts;
    getOperation().walk([&](DotGeneralOp op) {
      const bool hasOneRow =
          llvm::all_of(freeDims(op.getLhs(), op.getLhsBatch(), op.getLhsContract()),
                       [&](int64_t dim) { return getConstantSize(getSizes(op.getLhs())[dim]) == 1; });
      auto isF32 = [](Value value) { return PrimBuilder::elementOf(value).isF32(); };
      if (!isF32(op.getLhs()) || !isF32(op.getRhs()) || !isF32(op.getResult()))
        return;
      if (channelsOf(op) >= 0 && hasFewLines(op))
        channelProducts.push_back(op);
      else if (computed.contains(op.getRhs()) && hasOneRow)
        products.push_back(op);
    });
    for (DotGeneralOp op : channelProducts) {
      OpBuilder builder(op);
      PrimBuilder b(builder, op);
      op.getResult().replaceAllUsesWith(reduceChannels(b, op, channelsOf(op)));
      op.erase();
    }
    for (DotGeneralOp op : products) {
      OpBuilder builder(op);
      PrimBuilder b(builder, op);
      op.getResult().replaceAllUsesWith(reduceProduct(b, op));
      op.erase();
    }
  }
};

} // namespace
