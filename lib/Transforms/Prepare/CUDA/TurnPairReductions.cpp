//===- TurnPairReductions.cpp - sums over pairs of rows, with the pairs along the lanes --------------------------===//
//
// What is computed of each row of one tensor with each row of another (distances, additive attention) is a reduction
// along the rows' elements:
//
//   reduce(f(broadcast x [M, K] to [M, N, K], broadcast y [N, K]), K)
//
// A warp that shares so short a row has as many sums across its lanes as it has rows. With y turned once, neighbouring
// threads have neighbouring columns, whose elements lie side by side, and nothing is summed across them:
//
//   reduce(f(broadcast x to [M, K, N], broadcast transpose(y) [K, N]), K)
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Analysis/LikelySizes.h"
#include "tc/Dialect/Prim/Utils/PrimBuilder.h"
#include "tc/Transforms/Prepare/CUDA/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"

namespace tc::prepare {
#define GEN_PASS_DEF_TURNPAIRREDUCTIONSPASS
#include "tc/Transforms/Prepare/CUDA/Passes.h.inc"
} // namespace tc::prepare

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

// Results that fill a GPU, columns that fill a warp, and elements of a row that a block shares better.
constexpr int64_t kLeastResults = 1 << 15, kLeastColumns = 32, kMostElements = 512;
// So many times each element of what is turned is read, at least.
constexpr double kLeastReads = 16;

/// The operand of a reduction along the last dim, with that dim and the one before it in turn; memo by value.
class Turned {
public:
  Turned(PrimBuilder &b, const Sizes &space) : b(b), space(space), turned(space) {
    std::swap(turned[rank() - 2], turned[rank() - 1]);
  }

  /// Whether all of it is computed of smaller tensors, by pointwise ops, and at least one of these is worth turning.
  bool canTurn(Value value) {
    llvm::SetVector<Value> values;
    values.insert(value);
    bool isWorth = false;
    for (size_t i = 0; i < values.size(); ++i) {
      Operation *op = values[i].getDefiningOp();
      if (!op || (!isa<SplatOp, BroadcastOp>(op) &&
                  (getRole(op) != Role::Pointwise || op->getNumResults() != 1 || getSizes(values[i]) != space)))
        return false;
      if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
        // As large as the space: it is read once, as it lies.
        if (getLikelyCount(broadcast.getOperand()) * kLeastReads > getLikelyCount(value))
          return false;
        isWorth |= hasBoth(broadcast);
      } else if (!isa<SplatOp>(op)) {
        values.insert_range(op->getOperands());
      }
    }
    return isWorth;
  }

  Value turn(Value value) {
    if (const Value known = memo.lookup(value))
      return known;
    Operation *op = value.getDefiningOp();
    Value result;
    if (auto splat = dyn_cast<SplatOp>(op)) {
      result = SplatOp::create(b, makeType(PrimBuilder::elementOf(value), turned), splat.getValue());
    } else if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
      SmallVector<int64_t> dims(broadcast.getDims());
      Value operand = broadcast.getOperand();
      if (hasBoth(broadcast)) {
        SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(dims.size()));
        std::swap(order[order.size() - 2], order.back());
        operand = b.transpose(operand, order);
      } else if (!dims.empty() && dims.back() >= rank() - 2) {
        dims.back() = dims.back() == rank() - 1 ? rank() - 2 : rank() - 1;
      }
      result = b.broadcastInDims(operand, turned, dims);
    } else {
      SmallVector<Value> operands;
      for (Value operand : op->getOperands())
        operands.push_back(turn(operand));
      Operation *copy = b.clone(*op);
      copy->setOperands(operands);
      copy->getResult(0).setType(makeType(PrimBuilder::elementOf(value), turned));
      result = copy->getResult(0);
    }
    return memo[value] = result;
  }

private:
  int64_t rank() const { return int64_t(space.size()); }
  /// Whether the operand has the reduced dim and the one before it.
  bool hasBoth(BroadcastOp op) const {
    const ArrayRef<int64_t> dims = op.getDims();
    return dims.size() >= 2 && dims[dims.size() - 2] == rank() - 2;
  }

  PrimBuilder &b;
  const Sizes space;
  Sizes turned;
  llvm::DenseMap<Value, Value> memo;
};

struct TurnPairReductionsPass : tc::prepare::impl::TurnPairReductionsPassBase<TurnPairReductionsPass> {
  void runOnOperation() override {
    SmallVector<ReduceOp> reductions;
    getOperation().walk([&](ReduceOp op) { reductions.push_back(op); });
    for (ReduceOp op : reductions) {
      const Sizes space = getSizes(op.getOperand());
      const int64_t rank = int64_t(space.size());
      if (rank < 3 || op.getDims() != ArrayRef<int64_t>{rank - 1} || getLikelyCount(op.getResult()) < kLeastResults ||
          getLikelySize(space[rank - 2], op) < kLeastColumns || getLikelySize(space.back(), op) > kMostElements)
        continue;
      OpBuilder builder(op);
      PrimBuilder b(builder, op);
      Turned turned(b, space);
      if (!turned.canTurn(op.getOperand()))
        continue;
      const Value result = ReduceOp::create(b, op.getKind(), turned.turn(op.getOperand()), ArrayRef<int64_t>{rank - 2});
      op.getResult().replaceAllUsesWith(result);
      op.erase();
    }
  }
};

} // namespace
