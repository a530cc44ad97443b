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
// Sums over several dims that stand around the rows are brought together by what writes the operand; a kernel would
// copy it element by element:
//
//   dot(x [B, H, K, M], y) over B, K  ->  dot(transpose(x) [B, K, H, M], y)
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Prim/Utils/ChannelOrder.h"
#include "tc/Dialect/Prim/Utils/Computed.h"
#include "tc/Dialect/Prim/Utils/PrimBuilder.h"
#include "tc/Dialect/Prim/Utils/ProductDims.h"
#include "tc/Transforms/Prepare/CPU/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tc::prepare {
#define GEN_PASS_DEF_ORDERPRODUCTROWSPASS
#include "tc/Transforms/Prepare/CPU/Passes.h.inc"
} // namespace tc::prepare

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

/// The dims of the left-hand side with its free dims in the order of memory, if the last one there is a free dim but
/// not the last of them; else empty.
SmallVector<int64_t> orderRows(DotGeneralOp op) {
  const SmallVector<int64_t> rows = freeDims(op.getLhs(), op.getLhsBatch(), op.getLhsContract());
  const SmallVector<int64_t> memory = memoryOrder(op.getLhs());
  if (rows.size() < 2 || rows.back() == memory.back() || !llvm::is_contained(rows, memory.back()))
    return {};
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, PrimBuilder::rankOf(op.getLhs())));
  const SmallVector<int64_t> ordered =
      llvm::filter_to_vector(memory, [&](int64_t dim) { return llvm::is_contained(rows, dim); });
  for (auto [row, from] : llvm::zip_equal(rows, ordered))
    order[row] = from;
  return order;
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

/// `value` with its dims in another order, made so by the elementwise ops that make it.
Value permute(PrimBuilder &b, Value value, ArrayRef<int64_t> order) {
  Operation *op = value.getDefiningOp();
  if (auto broadcast = value.getDefiningOp<BroadcastOp>()) {
    // Dims of the source follow those that they become.
    SmallVector<int64_t> dims, sourceOrder;
    for (auto [to, from] : llvm::enumerate(order))
      if (const auto *at = llvm::find(broadcast.getDims(), from); at != broadcast.getDims().end()) {
        dims.push_back(int64_t(to));
        sourceOrder.push_back(at - broadcast.getDims().begin());
      }
    return b.broadcastInDims(b.transpose(broadcast.getOperand(), sourceOrder), permuted(getSizes(value), order), dims);
  }
  if (!op || !op->hasTrait<PointwiseTrait>() || !op->hasOneUse())
    return b.transpose(value, order);
  SmallVector<Value> operands =
      llvm::map_to_vector(op->getOperands(), [&](Value operand) { return permute(b, operand, order); });
  OperationState state(op->getLoc(), op->getName(), operands,
                       makeType(PrimBuilder::elementOf(value), permuted(getSizes(value), order)), op->getAttrs());
  return b.create(state)->getResult(0);
}

/// The dims of the left-hand side with batches first, then those summed over, then rows, each in the order of memory,
/// where rows stand between sums and are neighbours in memory; else empty.
SmallVector<int64_t> gatherSums(DotGeneralOp op) {
  const Sizes sizes = getSizes(op.getLhs());
  auto isUnit = [&](int64_t dim) { return getConstantSize(sizes[dim]) == 1; };
  SmallVector<int64_t> memory = memoryOrder(op.getLhs());
  const SmallVector<int64_t> wide = llvm::filter_to_vector(memory, [&](int64_t dim) { return !isUnit(dim); });
  auto rank = [&](int64_t dim) {
    return llvm::is_contained(op.getLhsBatch(), dim) ? 0 : llvm::is_contained(op.getLhsContract(), dim) ? 1 : 2;
  };
  if (wide.empty() || rank(wide.back()) != 2)
    return {};
  int64_t groups = 0;
  for (size_t i = 0; i < wide.size(); ++i)
    groups += rank(wide[i]) == 1 && (i == 0 || rank(wide[i - 1]) != 1);
  if (groups < 2)
    return {};
  llvm::stable_sort(memory, [&](int64_t a, int64_t b) { return rank(a) < rank(b); });
  return memory;
}

/// The product with its left-hand side's dims in another order.
Value reorderLhs(PrimBuilder &b, DotGeneralOp op, ArrayRef<int64_t> order) {
  auto moved = [&](ArrayRef<int64_t> dims) {
    return llvm::map_to_vector(dims, [&](int64_t dim) { return int64_t(llvm::find(order, dim) - order.begin()); });
  };
  // Batches of the result are in the order of the attributes, rows in that of the operand.
  const SmallVector<int64_t> rows = freeDims(op.getLhs(), op.getLhsBatch(), op.getLhsContract());
  const SmallVector<int64_t> newRows =
      llvm::filter_to_vector(order, [&](int64_t dim) { return llvm::is_contained(rows, dim); });
  const int64_t lead = int64_t(op.getLhsBatch().size());
  SmallVector<int64_t> resultOrder = llvm::to_vector(llvm::seq<int64_t>(0, PrimBuilder::rankOf(op.getResult())));
  const Sizes sizes = getSizes(op.getResult());
  Sizes newSizes(sizes.begin(), sizes.end());
  for (auto [i, row] : llvm::enumerate(rows)) {
    resultOrder[lead + i] = lead + (llvm::find(newRows, row) - newRows.begin());
    newSizes[resultOrder[lead + i]] = sizes[lead + i];
  }
  Value product = DotGeneralOp::create(b, makeType(PrimBuilder::elementOf(op.getResult()), newSizes),
                                       permute(b, op.getLhs(), order), op.getRhs(),
                                       b.getDenseI64ArrayAttr(moved(op.getLhsBatch())), op.getRhsBatchAttr(),
                                       b.getDenseI64ArrayAttr(moved(op.getLhsContract())), op.getRhsContractAttr());
  return b.transpose(product, resultOrder);
}

struct OrderProductRowsPass : public tc::prepare::impl::OrderProductRowsPassBase<OrderProductRowsPass> {
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
      if (computed.contains(op.getLhs()))
        products.push_back(op);
    });
    for (DotGeneralOp op : products) {
      SmallVector<int64_t> order = gatherSums(op);
      if (order.empty())
        order = orderRows(op);
      if (order.empty())
        continue;
      OpBuilder builder(op);
      PrimBuilder b(builder, op);
      op.getResult().replaceAllUsesWith(reorderLhs(b, op, order));
      op.erase();
    }
  }
};

} // namespace
