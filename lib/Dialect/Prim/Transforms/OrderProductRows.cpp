//===- OrderProductRows.cpp - rows and sums of products in the order in which they lie in memory ------------------===//
//
// The rows of a left-hand side may lie along the last dim of its memory: kernels read such columns as they are, if
// neighbours among the rows are neighbours there. Rows of several dims may stand in another order:
//
//   dot(transpose(x [T, K, B]) [B, T, K], y [K, N])  ->  transpose(dot(x [T, K, B] as [T, B, K], y)  to [B, T, N])
//
// Only whole rows of the result change places, which costs nothing where they are stored.
//
// An image that is flattened channels first for a linear layer is summed over as it lies, and the weights, which are
// constant, are packed in its order:
//
//   dot(reshape(transpose(x [B, H, W, C]) [B, C, H, W]) [B, K], w [K, N])  ->  dot(x, reshape(w) [C, H, W, N]), over H,
//   W, C
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Computed.h"
#include "ProductDims.h"
#include "tc/Dialect/Prim/Transforms/Passes.h"
#include "tc/Dialect/Prim/Utils/PrimBuilder.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tc::prim {
#define GEN_PASS_DEF_ORDERPRODUCTROWSPASS
#include "tc/Dialect/Prim/Transforms/Passes.h.inc"
} // namespace tc::prim

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

/// The free dims of the left-hand side in the order of memory, if the last one there is a free dim but not the last of
/// them; else empty.
SmallVector<int64_t> orderRows(DotGeneralOp op) {
  const SmallVector<int64_t> rows = freeDims(op.getLhs(), op.getLhsBatch(), op.getLhsContract());
  const SmallVector<int64_t> memory = memoryOrder(op.getLhs());
  if (rows.size() < 2 || rows.back() == memory.back() || !llvm::is_contained(rows, memory.back()))
    return {};
  return llvm::filter_to_vector(memory, [&](int64_t dim) { return llvm::is_contained(rows, dim); });
}

/// The product that sums over the dims of what its left-hand side flattens; null: it is no such product.
Value sumAsItLies(PrimBuilder &b, DotGeneralOp op) {
  auto reshape = op.getLhs().getDefiningOp<ReshapeOp>();
  auto transpose = reshape ? reshape.getOperand().getDefiningOp<TransposeOp>() : TransposeOp();
  const int64_t lead = PrimBuilder::rankOf(op.getLhs()) - 1;
  if (!transpose || !op.getLhsBatch().empty() || op.getLhsContract() != ArrayRef<int64_t>{lead})
    return {};
  const ArrayRef<int64_t> p = transpose.getPermutation();
  const Sizes sizes = getSizes(transpose.getResult()), flat = getSizes(op.getLhs());
  // The rows are not moved.
  if (int64_t(p.size()) < lead + 2 || !llvm::equal(p.take_front(lead), llvm::seq<int64_t>(0, lead)) ||
      !llvm::equal(ArrayRef(sizes).take_front(lead), ArrayRef(flat).take_front(lead)))
    return {};
  const int64_t depth = op.getRhsContract().front();
  Sizes split = getSizes(op.getRhs());
  split.erase(split.begin() + depth);
  split.insert(split.begin() + depth, sizes.begin() + lead, sizes.end());
  SmallVector<int64_t> ours, theirs;
  for (int64_t dim : llvm::seq<int64_t>(lead, int64_t(p.size()))) {
    ours.push_back(dim);
    theirs.push_back(depth + (llvm::find(p, dim) - p.begin()) - lead);
  }
  return DotGeneralOp::create(b, op.getResult().getType(), transpose.getOperand(), b.reshape(op.getRhs(), split),
                              op.getLhsBatchAttr(), op.getRhsBatchAttr(), b.getDenseI64ArrayAttr(ours),
                              b.getDenseI64ArrayAttr(theirs));
}

struct OrderProductRowsPass : public tc::prim::impl::OrderProductRowsPassBase<OrderProductRowsPass> {
  void runOnOperation() override {
    const llvm::DenseSet<Value> computed = collectComputed(getOperation());
    SmallVector<DotGeneralOp> products, linear;
    getOperation().walk([&](DotGeneralOp op) {
      if (computed.contains(op.getLhs()) && !computed.contains(op.getRhs()))
        linear.push_back(op);
    });
    for (DotGeneralOp op : linear) {
      OpBuilder builder(op);
      PrimBuilder b(builder, op);
      if (Value sums = sumAsItLies(b, op)) {
        op.getResult().replaceAllUsesWith(sums);
        op.erase();
      }
    }
    getOperation().walk([&](DotGeneralOp op) {
      if (computed.contains(op.getLhs()) && !orderRows(op).empty())
        products.push_back(op);
    });
    for (DotGeneralOp op : products) {
      OpBuilder builder(op);
      PrimBuilder b(builder, op);
      const SmallVector<int64_t> rows = freeDims(op.getLhs(), op.getLhsBatch(), op.getLhsContract());
      const SmallVector<int64_t> ordered = orderRows(op);
      SmallVector<int64_t> lhsOrder = llvm::to_vector(llvm::seq<int64_t>(0, PrimBuilder::rankOf(op.getLhs())));
      SmallVector<int64_t> resultOrder = llvm::to_vector(llvm::seq<int64_t>(0, PrimBuilder::rankOf(op.getResult())));
      for (auto [i, row] : llvm::enumerate(rows)) {
        lhsOrder[row] = ordered[i];
        resultOrder[op.getLhsBatch().size() + i] =
            int64_t(op.getLhsBatch().size()) + std::distance(ordered.begin(), llvm::find(ordered, row));
      }
      const Type element = PrimBuilder::elementOf(op.getResult());
      const Sizes sizes = getSizes(op.getResult());
      Sizes newSizes(sizes.begin(), sizes.end());
      for (auto [to, from] : llvm::enumerate(resultOrder))
        newSizes[from] = sizes[to];
      Value product = DotGeneralOp::create(b, makeType(element, newSizes), b.transpose(op.getLhs(), lhsOrder),
                                           op.getRhs(), op.getLhsBatchAttr(), op.getRhsBatchAttr(),
                                           op.getLhsContractAttr(), op.getRhsContractAttr());
      op.getResult().replaceAllUsesWith(b.transpose(product, resultOrder));
      op.erase();
    }
  }
};

} // namespace
