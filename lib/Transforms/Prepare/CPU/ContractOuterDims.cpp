//===- ContractOuterDims.cpp - products along a dim that is not the last in memory --------------------------------===//
//
// A linear layer over tokens, rows of an image or windows turns its operand so that the dim that it sums over comes
// last, and turns the result back. With the weights as the left-hand side the operand is read as it lies, and the
// result lies as the operand did:
//
//   transpose(dot(transpose(x [B, T, C]) [B, C, T], w [T, U]) [B, C, U])   ->   dot(w' [U, T], x [B, T, C])   [B, U, C]
//
// with what lies outside of T as batch dims. Done where the result is transposed back, with pointwise ops, or one
// further product over U, between: then transposes meet their inverses.
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
#define GEN_PASS_DEF_CONTRACTOUTERDIMSPASS
#include "tc/Transforms/Prepare/CPU/Passes.h.inc"
} // namespace tc::prepare

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

// Columns of the new product that are worth panels of their own.
constexpr int64_t kLeastColumns = 16;

class OuterProducts {
public:
  explicit OuterProducts(func::FuncOp function) : computed(collectComputed(function)) {}

  /// Whether the product sums over one dim of a computed left-hand side, which lies before others in memory, with
  /// constant weights, and its result is transposed back.
  bool matches(DotGeneralOp op) const {
    if (!isLinear(op))
      return false;
    const SmallVector<int64_t> memory = memoryOrder(op.getLhs());
    int64_t columns = 1;
    for (size_t i = memory.size(); i-- > 0 && memory[i] != op.getLhsContract().front();)
      columns *= getLikelySize(getSizes(op.getLhs())[memory[i]], op, /*usual=*/kLeastColumns);
    Seen seen;
    return memory.back() != op.getLhsContract().front() && columns >= kLeastColumns &&
           isTransposedBack(op.getResult(), rowOf(op, memory.back()), /*products=*/1, seen);
  }

private:
  /// Values that were looked at, with how many products may follow: chains of values with several readers each would
  /// take exponential time.
  using Seen = llvm::DenseSet<std::pair<Value, int>>;

  bool isLinear(DotGeneralOp op) const {
    auto isF32 = [](Value value) { return PrimBuilder::elementOf(value).isF32(); };
    return isF32(op.getLhs()) && isF32(op.getRhs()) && isF32(op.getResult()) && op.getLhsBatch().empty() &&
           op.getLhsContract().size() == 1 && PrimBuilder::rankOf(op.getRhs()) == 2 && computed.contains(op.getLhs()) &&
           !computed.contains(op.getRhs());
  }

  /// The dim of the result that is the free dim `dim` of the left-hand side.
  static int64_t rowOf(DotGeneralOp op, int64_t dim) { return dim > op.getLhsContract().front() ? dim - 1 : dim; }

  /// Whether all that is made of `value` is transposed so that its dim `inner` comes last, which what else is read
  /// allows; `products`: so many further products over the last dim may stand between.
  bool isTransposedBack(Value value, int64_t inner, int products, Seen &seen) const {
    if (!seen.insert({value, products}).second)
      return true;
    return !value.use_empty() && llvm::all_of(value.getUsers(), [&](Operation *user) {
      if (auto transpose = dyn_cast<TransposeOp>(user))
        return transpose.getPermutation().back() == inner;
      if (auto dot = dyn_cast<DotGeneralOp>(user))
        return products > 0 && dot.getLhs() == value && isLinear(dot) &&
               dot.getLhsContract().front() + 1 == PrimBuilder::rankOf(value) &&
               isTransposedBack(dot.getResult(), inner, products - 1, seen);
      auto isFree = [&](Value operand) {
        return operand == value || !computed.contains(operand) || dependsOn(operand, value);
      };
      return user->hasTrait<PointwiseTrait>() && user->getNumResults() == 1 &&
             llvm::all_of(user->getOperands(), isFree) && isTransposedBack(user->getResult(0), inner, products, seen);
    });
  }

  /// Whether `value` is made of `on` and constants by a few pointwise ops.
  bool dependsOn(Value value, Value on, int depth = 8) const {
    Operation *op = value.getDefiningOp();
    return value == on ||
           (depth > 0 && op && op->hasTrait<PointwiseTrait>() && llvm::all_of(op->getOperands(), [&](Value operand) {
              return !computed.contains(operand) || dependsOn(operand, on, depth - 1);
            }));
  }

  llvm::DenseSet<Value> computed;
};

/// The same product with the weights as the left-hand side, transposed to the result that it was.
Value swapOperands(PrimBuilder &b, DotGeneralOp op) {
  const SmallVector<int64_t> memory = memoryOrder(op.getLhs());
  const int64_t depth = op.getLhsContract().front();
  const Sizes sizes = getSizes(op.getLhs());
  const auto outerCount = int64_t(llvm::find(memory, depth) - memory.begin());
  const Value weights = b.transpose(op.getRhs(), {1 - op.getRhsContract().front(), op.getRhsContract().front()});
  const AffineExpr outputs = getSizes(weights).front();
  Value image = b.transpose(op.getLhs(), memory);
  // Batch dims of the product; a batch of one is none.
  Sizes batch, inner;
  for (auto [i, dim] : llvm::enumerate(memory))
    if (dim != depth)
      (int64_t(i) < outerCount ? batch : inner).push_back(sizes[dim]);
  Sizes result = batch; // batch, outputs, inner
  result.push_back(outputs);
  llvm::append_range(result, inner);
  if (getConstantSize(product(b.getContext(), batch)) == 1) {
    batch.clear();
    image = b.reshape(image, ArrayRef(getSizes(image)).drop_front(outerCount));
  }
  const auto batchCount = int64_t(batch.size());
  Sizes left(batch);
  llvm::append_range(left, getSizes(weights));
  const Value lhs = batch.empty() ? weights : b.broadcastInDims(weights, left, {batchCount, batchCount + 1});
  const SmallVector<int64_t> batchDims = llvm::to_vector(llvm::seq<int64_t>(0, batchCount));
  const Value product =
      b.reshape(DotGeneralOp::create(b, lhs, image, batchDims, batchDims, ArrayRef<int64_t>{batchCount + 1},
                                     ArrayRef<int64_t>{batchCount}),
                result);
  // From the order of memory, with the outputs in the place of the depth, to the dims of the left-hand side, the
  // outputs last.
  SmallVector<int64_t> permutation;
  for (int64_t dim : llvm::seq<int64_t>(0, int64_t(memory.size())))
    if (dim != depth)
      permutation.push_back(llvm::find(memory, dim) - memory.begin());
  permutation.push_back(outerCount);
  return b.transpose(product, permutation);
}

struct ContractOuterDimsPass : public tc::prepare::impl::ContractOuterDimsPassBase<ContractOuterDimsPass> {
  void runOnOperation() override {
    const OuterProducts outer(getOperation());
    SmallVector<DotGeneralOp> products;
    getOperation().walk([&](DotGeneralOp op) {
      if (outer.matches(op))
        products.push_back(op);
    });
    for (DotGeneralOp op : products) {
      OpBuilder builder(op);
      PrimBuilder b(builder, op);
      op.getResult().replaceAllUsesWith(swapOperands(b, op));
      op.erase();
    }
  }
};

} // namespace
