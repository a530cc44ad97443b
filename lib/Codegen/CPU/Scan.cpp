//===- Scan.cpp - the "scan" strategy: cumulative sums and their like ---------------------------------------------===//
//
// A line is what one running value walks along; lines are independent. A task is a block of neighbouring lines, which
// are the lanes where the scanned dim is not the last.
//
// Parameters:
//   lanes   1: neighbouring lines are computed as lanes; 0: one by one
//   block   lines of a task, along the dims after the scanned one
//   rows    1: step by step, all lines of the task in each, whose running values are in a buffer in the first-level
//   cache:
//           long rows are read in the order of memory, where lanes that walk along lines of their own read a part of
//           each row only
//   grain   least number of tasks for a thread
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CPU/Lines.h"
#include "CPU/MicroKernel.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

namespace {

// Vectors of lines at once: a step visits as many neighbours in memory, where lines of a power of two of elements lie
// in the same few sets of the caches.
constexpr int64_t kVectors = 8;
// Lines from which on tasks go step by step, and that a task has at least and at most.
constexpr int64_t kLeastRow = 512, kLeastBlock = 256, kMostBlock = 2048;
// Elements of a tensor from which on its rows are cut for several threads.
constexpr double kManyElements = 2e6;

class ScanGenerator final : public Generator {
public:
  StringRef strategy() const override { return "scan"; }

  FailureOr<kernel::ScheduleAttr> choose(kernel::RegionOp region, llvm::function_ref<bool(unsigned)>) const override {
    auto op = findYielded<prim::ScanOp>(region);
    if (!op)
      return failure();
    Lines lines(op.getOperand(), op.getAxis());
    double length = double(prim::getConstantSize(lines.length).value_or(64));
    double inner = double(prim::getConstantSize(lines.innerCount()).value_or(64));
    int64_t block = inner >= 128 ? 128 : inner >= 64 ? 64 : std::max<int64_t>(int64_t(inner), 1);
    Params params(region);
    const std::optional<int64_t> row = prim::getConstantSize(lines.innerCount());
    const Type element = cast<RankedTensorType>(op.getResult().getType()).getElementType();
    if (row && *row >= kLeastRow && element.isIntOrFloat() && element.getIntOrFloatBitWidth() >= 32) {
      // Whole rows, unless there is enough for several threads.
      const double tensors = double(prim::getConstantSize(prim::product(region.getContext(), lines.outer)).value_or(8));
      const bool isCut = tensors < 4 && length * double(*row) >= kManyElements;
      block = std::clamp(roundUp(isCut ? ceilDiv(*row, 4) : *row, 64), kLeastBlock, kMostBlock);
      params.set("rows", 1);
    }
    params.set("lanes", inner >= 8);
    params.set("block", block);
    params.set("grain", std::max<int64_t>(1, int64_t(30000 / (1 + length * double(block)))));
    return params.schedule(strategy());
  }

  SmallVector<Launch> launches(kernel::RegionOp region, kernel::ScheduleAttr schedule) const override {
    auto op = findYielded<prim::ScanOp>(region);
    Launch launch;
    launch.tasks = Lines(op.getOperand(), op.getAxis()).tasks(getParam(schedule, "block"));
    launch.grain = getAffineConstantExpr(getParam(schedule, "grain", 1), region.getContext());
    return {launch};
  }

  void emit(kernel::RegionOp region, kernel::ScheduleAttr schedule, unsigned, Emitter &e, Value begin,
            Value end) const override {
    auto op = findYielded<prim::ScanOp>(region);
    Lines lines(op.getOperand(), op.getAxis());
    Type element = cast<RankedTensorType>(op.getResult().getType()).getElementType();
    const Type accumulator = e.accumulatorOf(element);
    if (getParam(schedule, "rows"))
      return emitRows(op, lines, getParam(schedule, "block"), e, begin, end);
    e.loop(begin, end, 1, [&](Index task) {
      lines.forEachOfTask(e, task, getParam(schedule, "block"), getParam(schedule, "lanes"), kVectors,
                          [&](ArrayRef<LinePosition> some) {
                            bool isVector = !some.front().inner.isUniform();
                            Value length = e.size(lines.length), last = e.sub(length, e.i64(1));
                            Value start = e.neutral(op.getKind(), element);
                            SmallVector<Value> starts(some.size(), isVector ? e.broadcast(start) : start);
                            e.loop(e.i64(0), length, 1, starts, [&](Index k, ValueRange carried) {
                              Index position = op.getReverse() ? e.uniform(e.sub(last, k.base)) : k;
                              SmallVector<Value> sums;
                              for (auto [line, before] : llvm::zip_equal(some, carried)) {
                                SmallVector<Index> at = lines.at(e, line, position);
                                Value value = e.emit(op.getOperand(), at);
                                if (isVector)
                                  value = e.broadcast(value);
                                sums.push_back(e.combine(op.getKind(), accumulator, before, e.toAccumulator(value)));
                                Value out = e.fromAccumulator(op.getExclusive() ? before : sums.back(), element);
                                e.store(out, e.output(0), element, prim::getSizes(op.getResult()), at);
                              }
                              return sums;
                            });
                          });
    });
  }

private:
  static void emitRows(prim::ScanOp op, const Lines &lines, int64_t block, Emitter &e, Value begin, Value end) {
    const Type element = cast<RankedTensorType>(op.getResult().getType()).getElementType(),
               accumulator = e.accumulatorOf(element);
    const Value buffer = e.stackBuffer(Emitter::memoryType(accumulator), block);
    const Value length = e.size(lines.length), last = e.sub(length, e.i64(1)), all = e.size(lines.innerCount());
    e.loop(begin, end, 1, [&](Index task) {
      const SmallVector<Index> at = e.delinearize(
          task, {prim::product(op.getContext(), lines.outer), prim::simplifySize(lines.innerCount().ceilDiv(block))});
      const Index from = e.mulIndex(at[1], e.i64(block), block);
      const Value count = e.min(e.i64(block), e.sub(all, from.base));
      e.laneLoop(count, std::nullopt,
                 [&](Index lane) { e.storeAt(e.neutral(op.getKind(), element), buffer, accumulator, lane); });
      e.loop(e.i64(0), length, 1, [&](Index k) {
        const Index position = op.getReverse() ? e.uniform(e.sub(last, k.base)) : k;
        e.laneLoop(count, std::nullopt, [&](Index lane) {
          const SmallVector<Index> place = lines.at(e, {at[0], e.addIndex(from, lane)}, position);
          const Value value = e.toAccumulator(e.emit(op.getOperand(), place)),
                      before = e.loadAt(buffer, accumulator, lane);
          const Value sum = e.combine(op.getKind(), accumulator, before,
                                      isa<VectorType>(before.getType()) ? e.broadcast(value) : value);
          e.storeAt(sum, buffer, accumulator, lane);
          e.store(e.fromAccumulator(op.getExclusive() ? before : sum, element), e.output(0), element,
                  prim::getSizes(op.getResult()), place);
        });
      });
    });
  }
};

} // namespace

const Generator *tc::codegen::scanGenerator() {
  static const ScanGenerator generator;
  return &generator;
}
