//===- Scan.cpp - the "scan" strategy: cumulative sums and their like ---------------------------------------------===//
//
// A line is what one running value walks along; lines are independent. A task is a block of neighbouring lines, which
// are the lanes where the scanned dim is not the last.
//
// Parameters:
//   lanes   1: neighbouring lines are computed as lanes; 0: one by one
//   block   lines of a task, along the dims after the scanned one
//   grain   least number of tasks for a thread
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CPU/Lines.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

namespace {

// Vectors of lines at once: a step visits as many neighbours in memory, where lines of a power of two of elements lie
// in the same few sets of the caches.
constexpr int64_t kVectors = 8;

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
};

} // namespace

const Generator *tc::codegen::scanGenerator() {
  static const ScanGenerator generator;
  return &generator;
}
