//===- SplitDepth.cpp - long sums of small products in parts -----------------------------------------------------===//
//
// Tasks of a product are blocks of its result. A small one has few of them, whatever the length of its sums: matrices
// of scalar products, gradients of weights. Such sums are cut into parts, which are further tasks:
//
//   dot(x [M, K], y [K, N])  ->  reduce sum(dot(reshape x [M, P, K / P], reshape y [P, K / P, N]), P)
//
// with P as a batch dim. What is left of K where P does not divide it is a product of its own. Each task then also
// packs its part of y alone, where one core packed it for all of them. Where y is constant, it is packed ahead, and
// fewer longer tasks do as well; few rows read theirs where it lies (strategy "cpu.skinny_gemm").
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Prim/Utils/Computed.h"
#include "tc/Dialect/Prim/Utils/PrimBuilder.h"
#include "tc/Transforms/Prepare/CPU/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tc::prepare {
#define GEN_PASS_DEF_SPLITDEPTHPASS
#include "tc/Transforms/Prepare/CPU/Passes.h.inc"
} // namespace tc::prepare

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

// A block of the result that is worth a task, tasks that keep many cores busy, and as few as are cut. Few rows read a
// matrix whose rows are contiguous by longer lines.
constexpr int64_t kBlockRows = 48, kBlockColumns = 64, kTasks = 16, kFewTasks = 4;
constexpr int64_t kFewRows = 16, kLineColumns = 256, kFewLineTasks = 8;
// Rows, steps of a part, and its flops, at least.
constexpr int64_t kLeastRows = 2, kLeastSteps = 256;
constexpr double kLeastFlops = 1e6;

/// Into how many parts the sums of `op` are cut; 1: they stay as they are.
int64_t countParts(DotGeneralOp op) {
  if (op.getLhsContract().size() != 1 || !op.getResult().getType().hasStaticShape() ||
      !op.getLhs().getType().hasStaticShape() || !op.getRhs().getType().hasStaticShape())
    return 1;
  const int64_t steps = op.getLhs().getType().getDimSize(op.getLhsContract().front());
  int64_t batch = 1;
  for (int64_t dim : op.getLhsBatch())
    batch *= op.getLhs().getType().getDimSize(dim);
  auto lines = [&](Value operand) {
    return cast<RankedTensorType>(operand.getType()).getNumElements() / std::max<int64_t>(1, batch * steps);
  };
  const int64_t rows = lines(op.getLhs()), columns = lines(op.getRhs());
  const bool isByLines = rows <= kFewRows && op.getRhsContract().front() + 1 < op.getRhs().getType().getRank();
  const int64_t block = isByLines ? kLineColumns : kBlockColumns;
  const int64_t tasks = batch * ((rows + kBlockRows - 1) / kBlockRows) * ((columns + block - 1) / block);
  if (rows < kLeastRows || tasks < 1 || tasks > (isByLines ? kFewLineTasks : kFewTasks))
    return 1;
  const double flops = 2.0 * double(rows) * double(columns) * double(steps) * double(batch);
  const int64_t most =
      std::min({kTasks / tasks, steps / kLeastSteps, int64_t(std::min(flops / double(tasks) / kLeastFlops, 1e6))});
  // Another product for what is left is worth it where even parts would be half as many.
  for (int64_t parts = most; 2 * parts > most && parts > 1; --parts)
    if (steps % parts == 0)
      return parts;
  return std::max<int64_t>(most, 1);
}

Value splitDepth(PrimBuilder &b, DotGeneralOp op, int64_t parts) {
  const int64_t lhs = op.getLhsContract().front(), rhs = op.getRhsContract().front();
  const int64_t steps = op.getLhs().getType().getDimSize(lhs), even = steps / parts * parts;
  // The steps from `first` on.
  auto stepsOf = [&](Value operand, int64_t depth, int64_t first, int64_t count) {
    return count == steps ? operand : b.sliceDim(operand, depth, b.size(first), b.size(count));
  };
  // Dims of an operand whose dim `depth` became two.
  auto split = [&](Value operand, int64_t depth) {
    Sizes sizes = getSizes(operand);
    sizes[depth] = b.size(even / parts);
    sizes.insert(sizes.begin() + depth, b.size(parts));
    return b.reshape(stepsOf(operand, depth, 0, even), sizes);
  };
  auto batchOf = [](ArrayRef<int64_t> batch, int64_t depth) {
    SmallVector<int64_t> dims{depth};
    for (int64_t dim : batch)
      dims.push_back(dim > depth ? dim + 1 : dim);
    return dims;
  };
  const Value products =
      DotGeneralOp::create(b, split(op.getLhs(), lhs), split(op.getRhs(), rhs), batchOf(op.getLhsBatch(), lhs),
                           batchOf(op.getRhsBatch(), rhs), ArrayRef<int64_t>{lhs + 1}, ArrayRef<int64_t>{rhs + 1});
  const Value sum = b.reduce(ReduceKind::Sum, products, {0}, /*keepDims=*/false);
  if (even == steps)
    return sum;
  const Value left = DotGeneralOp::create(b, stepsOf(op.getLhs(), lhs, even, steps - even),
                                          stepsOf(op.getRhs(), rhs, even, steps - even), op.getLhsBatch(),
                                          op.getRhsBatch(), op.getLhsContract(), op.getRhsContract());
  return b.add(sum, left);
}

struct SplitDepthPass : public tc::prepare::impl::SplitDepthPassBase<SplitDepthPass> {
  void runOnOperation() override {
    const llvm::DenseSet<Value> computed = collectComputed(getOperation());
    SmallVector<std::pair<DotGeneralOp, int64_t>> products;
    getOperation().walk([&](DotGeneralOp op) {
      auto isF32 = [](Value value) { return PrimBuilder::elementOf(value).isF32(); };
      if (!computed.contains(op.getRhs()) || !isF32(op.getLhs()) || !isF32(op.getRhs()) || !isF32(op.getResult()))
        return;
      if (const int64_t parts = countParts(op); parts > 1)
        products.emplace_back(op, parts);
    });
    for (auto [op, parts] : products) {
      OpBuilder builder(op);
      PrimBuilder b(builder, op);
      op.getResult().replaceAllUsesWith(splitDepth(b, op, parts));
      op.erase();
    }
  }
};

} // namespace
