//===- Scan.cpp - the "cpu.scan" strategy: cumulative sums and their like ----------------------------------------===//
//
// A line is what one running value walks along; lines are independent. A task is a block of neighbouring lines, which
// are the lanes where the scanned dim is not the last.
//
// Parameters: include/tc/Dialect/Kernel/IR/Schedules.td.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Common/Lines.h"
#include "tc/Analysis/LikelySizes.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

namespace {

using Schedule = kernel::CpuScanAttr;

// Vectors of lines at once: a step visits as many neighbours in memory, where lines of a power of two of elements lie
// in the same few sets of the caches.
constexpr int64_t kVectors = 8;
// Lines from which on tasks go step by step.
constexpr int64_t kLeastRow = 512;

struct Problem {
  mutable prim::ScanOp op; // accessors of ops are not const
  Lines lines;
};

class ScanGenerator final : public GeneratorFor<Schedule, Problem> {
public:
  std::optional<Problem> analyze(const RegionProblem &region) const override {
    auto op = region.findYielded<prim::ScanOp>();
    return op ? std::optional(Problem{op, Lines(op.getOperand(), op.getAxis())}) : std::nullopt;
  }

  FailureOr<Schedule> decide(const RegionProblem &region, const Problem &p) const override {
    prim::ScanOp op = p.op;
    const Lines &lines = p.lines;
    double length = double(getLikelySize(lines.length, op));
    double inner = double(getLikelySize(lines.innerCount(), op));
    int64_t block = inner >= 128 ? 128 : inner >= 64 ? 64 : std::max<int64_t>(int64_t(inner), 1);
    Schedule::Params params;
    // The result holds the running values.
    const Type element = cast<RankedTensorType>(op.getResult().getType()).getElementType();
    if (inner >= kLeastRow && element.isIntOrFloat() && element.getIntOrFloatBitWidth() >= 32)
      params.rows = 1;
    params.lanes = inner >= 8;
    params.block = block;
    params.grain = grainFor(30000, 1 + length * double(block));
    return params.get(region.getContext());
  }

  SmallVector<Launch> makeLaunches(const Problem &p, Schedule schedule) const override {
    Launch launch;
    launch.tasks = p.lines.tasks(schedule.getBlock());
    return {launch};
  }

  void emitTasks(const Problem &p, Schedule schedule, unsigned, Emitter &e, Value begin, Value end) const override {
    prim::ScanOp op = p.op;
    const Lines &lines = p.lines;
    Type element = cast<RankedTensorType>(op.getResult().getType()).getElementType();
    const Type accumulator = e.accumulatorOf(element);
    if (schedule.getRows())
      return emitRows(op, lines, schedule.getBlock(), e, begin, end);
    e.loop(begin, end, 1, [&](Index task) {
      lines.forEachOfTask(e, task, schedule.getBlock(), schedule.getLanes(), kVectors,
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
    OpBuilder &b = e.builder();
    const Type element = cast<RankedTensorType>(op.getResult().getType()).getElementType();
    const SmallVector<AffineExpr> sizes = prim::getSizes(op.getResult());
    const Value length = e.size(lines.length), last = e.sub(length, e.i64(1)), all = e.size(lines.innerCount());
    const Value blocks = e.size(prim::simplifySize(lines.innerCount().ceilDiv(block)));
    auto positionOf = [&](Value step) { return e.uniform(op.getReverse() ? e.sub(last, step) : step); };
    // The range is in several tensors of lines: of each the part that is within.
    const Value firstOuter = e.divUnsigned(begin, blocks),
                lastOuter = e.divUnsigned(e.add(end, e.sub(blocks, e.i64(1))), blocks);
    e.loop(firstOuter, lastOuter, 1, [&](Index outer) {
      const Value before = e.mul(outer.base, blocks);
      const Value from = e.mul(arith::MaxSIOp::create(b, e.loc(), e.sub(begin, before), e.i64(0)), e.i64(block)),
                  to = e.min(e.mul(e.sub(end, before), e.i64(block)), all);
      auto step = [&](Value k, bool isFirst) {
        e.laneLoop(
            to, std::nullopt,
            [&](Index lane) {
              auto place = [&](Value step) { return lines.at(e, {outer, lane}, positionOf(step)); };
              auto operand = [&](ArrayRef<Index> at) {
                const Value value = e.emit(op.getOperand(), at);
                return lane.isUniform() ? value : e.broadcast(value);
              };
              const SmallVector<Index> at = place(k);
              Value value;
              if (isFirst) {
                const Value neutral = e.neutral(op.getKind(), element);
                const Value start = lane.isUniform() ? neutral : e.broadcast(neutral);
                value = op.getExclusive() ? start : e.combine(op.getKind(), element, start, operand(at));
              } else {
                const SmallVector<Index> previous = place(e.sub(k, e.i64(1)));
                value = e.combine(op.getKind(), element, e.load(e.output(0), element, sizes, previous),
                                  operand(op.getExclusive() ? previous : at));
              }
              e.store(value, e.output(0), element, sizes, at);
            },
            from);
      };
      const Value some = arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::sgt, length, e.i64(0));
      e.ifThen(some, [&] { step(e.i64(0), /*isFirst=*/true); });
      e.loop(e.i64(1), length, 1, [&](Index k) { step(k.base, /*isFirst=*/false); });
    });
  }
};

} // namespace

const Generator *tc::codegen::scanGenerator() {
  static const ScanGenerator generator;
  return &generator;
}
