//===- Scan.cpp - the "gpu.scan" strategy: running values along an axis -------------------------------------------===//
//
// Lines are independent. Many of them are a thread's each; else `down` threads share a line:
//
// in turn    lines of the last dim: a block takes its line's elements one tile after another, 4 neighbours a thread. A
//            tile's running values are those of a thread's elements, then of a warp's threads by shuffles, then of the
//            warps through shared memory, after what all earlier tiles leave
// by pieces  other lines: neighbouring threads lie across neighbouring lines, and each of the `down` threads of a line
//            has a piece of it, which it reads twice: for its total, and for the running values after the totals of
//            the pieces before
//
// Who adds what, and in which order, depends on the sizes alone: the same bits in each run.
//
// Parameters: include/tc/Dialect/Kernel/IR/Schedules.td.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Common/EmitterHelpers.h"
#include "Common/Lines.h"
#include "GPU/Gpu.h"
#include "tc/Analysis/LikelySizes.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;
using namespace tc::codegen::gpu;

namespace {

using Schedule = kernel::GpuScanAttr;

// Lines that keep all processors busy with a thread each.
constexpr int64_t kManyLines = 1 << 17;
// Elements of a line that are worth several threads.
constexpr int64_t kLeastShared = 64;
// Threads of a line in turn; of a block by pieces, and its neighbouring lines.
constexpr int64_t kMostInTurn = 256, kBlockOfPieces = 512, kLinesOfBlock = 32;

struct Problem {
  mutable prim::ScanOp op; // accessors of ops are not const
  Lines lines;

  /// Whether lines lie along the last dim.
  bool isLast() const { return lines.inner.empty(); }
  /// Neighbouring elements of a line that a thread takes at once.
  int64_t lanes() const {
    const std::optional<int64_t> length = prim::getConstantSize(lines.length);
    return isLast() && !op.getReverse() && length && *length > 0 && *length % 4 == 0 ? 4 : 1;
  }
};

class ScanCode {
public:
  ScanCode(const Problem &p, Schedule schedule, Emitter &e)
      : p(p), s(schedule), e(e), b(e.builder()), element(elementOf(p.op.getResult())),
        accumulator(Emitter::accumulatorOf(element)), length(e.size(p.lines.length)), none(neutral()) {}

  /// A line a thread.
  void emitLine(const Index &item, ArrayRef<AffineExpr> grid) {
    const SmallVector<Index> line = e.delinearize(item, grid);
    walk({line[0], line[1]}, e.i64(0), length, none);
  }

  void emitInTurn(const Index &line) {
    const int64_t lanes = p.lanes(), warps = s.getBlock() / machine::kWarpThreads, tile = s.getBlock() * lanes;
    const Value thread = threadIndex(e), lane = e.remUnsigned(thread, e.i64(machine::kWarpThreads)),
                warp = e.divUnsigned(thread, e.i64(machine::kWarpThreads));
    const Value words = sharedArray(e, "warps", Emitter::memoryType(accumulator), warps);
    e.alignedBuffers = true;
    const Value first = e.mul(thread, e.i64(lanes));
    e.loop(e.i64(0), length, tile, none, [&](Index turn, ValueRange before) {
      const Value own = e.add(turn.base, first), isInside = compare(arith::CmpIPredicate::slt, own, length);
      const SmallVector<Index> at = placeOf({line, e.constant(0)}, e.min(own, e.sub(length, e.i64(lanes))), lanes);
      const Value read = vectorOf(e, e.toAccumulator(e.emit(p.op.getOperand(), at)), lanes);
      SmallVector<Value> sums; // of the thread's elements up to each
      for (int64_t i = 0; i < lanes; ++i) {
        const Value value = lanes == 1 ? read : Value(vector::ExtractOp::create(b, e.loc(), read, ArrayRef{i}));
        sums.push_back(i ? combine(sums.back(), value) : value);
      }
      // Of the threads of the warp up to this one, and before it.
      Value upTo = select(isInside, sums.back(), none);
      for (int32_t distance = 1; distance < machine::kWarpThreads; distance *= 2) {
        const Value isLater = compare(arith::CmpIPredicate::sge, lane, e.i64(distance));
        upTo = select(isLater, combine(shuffleUp(e, upTo, distance), upTo), upTo);
      }
      const Value isFirst = compare(arith::CmpIPredicate::eq, lane, e.i64(0));
      Value start = select(isFirst, none, shuffleUp(e, upTo, 1));
      // Of the warps before, and of all.
      const Value isLastLane = compare(arith::CmpIPredicate::eq, lane, e.i64(machine::kWarpThreads - 1));
      barrier(e); // the words of the tile before have been read
      e.ifThen(isLastLane, [&] { e.storeAt(upTo, words, accumulator, e.uniform(warp)); });
      barrier(e);
      Value ofWarps = none, total = none;
      for (int64_t i = 0; i < warps; ++i) {
        ofWarps = select(compare(arith::CmpIPredicate::eq, warp, e.i64(i)), total, ofWarps);
        total = combine(total, e.loadAt(words, accumulator, e.constant(i)));
      }
      start = combine(combine(before[0], ofWarps), start);
      SmallVector<Value> results;
      for (int64_t i = 0; i < lanes; ++i)
        results.push_back(p.op.getExclusive() ? (i ? combine(start, sums[i - 1]) : start) : combine(start, sums[i]));
      const Value result =
          lanes == 1 ? results[0]
                     : Value(vector::FromElementsOp::create(b, e.loc(), cast<VectorType>(read.getType()), results));
      e.ifThen(isInside, [&] { store(result, at); });
      return SmallVector<Value>{combine(before[0], total)};
    });
  }

  void emitPieces(const Index &outer, const Index &columns) {
    const int64_t down = s.getDown(), across = s.getBlock() / down;
    const Value thread = threadIndex(e), threadDown = e.divUnsigned(thread, e.i64(across)),
                threadAcross = e.remUnsigned(thread, e.i64(across));
    const Value column = e.add(e.mul(columns.base, e.i64(across)), threadAcross), count = e.size(p.lines.innerCount());
    const Value isInside = compare(arith::CmpIPredicate::slt, column, count);
    // Threads beyond the last line have no elements.
    const LinePosition line{outer, e.uniform(e.min(column, e.sub(count, e.i64(1))))};
    const Value size = e.divUnsigned(e.add(length, e.i64(down - 1)), e.i64(down));
    const Value from = e.min(e.mul(threadDown, size), length);
    const Value to = select(isInside, e.min(e.add(from, size), length), from);
    const Value sum = e.loop(from, to, 1, none, [&](Index k, ValueRange before) {
      return SmallVector<Value>{combine(before[0], read(line, k))};
    })[0];
    const Value words = sharedArray(e, "pieces", Emitter::memoryType(accumulator), s.getBlock());
    e.storeAt(sum, words, accumulator, e.uniform(thread));
    barrier(e);
    const Value start = e.loop(e.i64(0), threadDown, 1, none, [&](Index piece, ValueRange before) {
      const Value word = e.add(e.mul(piece.base, e.i64(across)), threadAcross);
      return SmallVector<Value>{combine(before[0], e.loadAt(words, accumulator, e.uniform(word)))};
    })[0];
    walk(line, from, to, start);
  }

private:
  Value neutral() { return e.toAccumulator(e.neutral(p.op.getKind(), element)); }
  Value combine(Value x, Value y) { return e.combine(p.op.getKind(), accumulator, x, y); }
  Value select(Value condition, Value x, Value y) { return arith::SelectOp::create(b, e.loc(), condition, x, y); }
  Value compare(arith::CmpIPredicate predicate, Value x, Value y) {
    return arith::CmpIOp::create(b, e.loc(), predicate, x, y);
  }
  /// Of the element that comes after `step` others.
  SmallVector<Index> placeOf(const LinePosition &line, Value step, int64_t lanes = 1) {
    if (p.op.getReverse())
      step = e.sub(e.sub(length, e.i64(1)), step);
    const Index position = e.uniform(step, lanes);
    return p.lines.at(e, line, lanes == 1 ? position : e.contiguous(position));
  }
  Value read(const LinePosition &line, const Index &step) {
    return e.toAccumulator(e.emit(p.op.getOperand(), placeOf(line, step.base)));
  }
  void store(Value value, ArrayRef<Index> at) {
    e.store(e.fromAccumulator(value, element), e.output(0), element, prim::getSizes(p.op.getResult()), at);
  }
  void walk(const LinePosition &line, Value from, Value to, Value start) {
    e.loop(from, to, 1, start, [&](Index k, ValueRange before) {
      const SmallVector<Index> at = placeOf(line, k.base);
      const Value sum = combine(before[0], e.toAccumulator(e.emit(p.op.getOperand(), at)));
      store(p.op.getExclusive() ? before[0] : sum, at);
      return SmallVector<Value>{sum};
    });
  }

  const Problem &p;
  Schedule s;
  Emitter &e;
  OpBuilder &b;
  const Type element, accumulator;
  const Value length, none;
};

class ScanGenerator final : public GeneratorFor<Schedule, Problem> {
public:
  std::optional<Problem> analyze(const RegionProblem &region) const override {
    auto op = region.findYielded<prim::ScanOp>();
    return op ? std::optional(Problem{op, Lines(op.getOperand(), op.getAxis())}) : std::nullopt;
  }

  FailureOr<Schedule> decide(const RegionProblem &region, const Problem &p) const override {
    Schedule::Params params;
    const int64_t length = getLikelySize(p.lines.length, p.op, usual::kRowLength);
    const double lines = getLikelyCount(p.lines.outer, p.op) * getLikelyCount(p.lines.inner, p.op);
    if (length < kLeastShared || (!p.isLast() && lines >= double(kManyLines)))
      return params.get(region.getContext());
    if (p.isLast()) {
      params.block = std::clamp<int64_t>(int64_t(llvm::PowerOf2Ceil(llvm::divideCeil(length, p.lanes()))),
                                         machine::kWarpThreads, kMostInTurn);
      params.down = params.block;
      params.inTurn = true;
    } else {
      params.block = kBlockOfPieces;
      params.down = kBlockOfPieces / kLinesOfBlock;
    }
    return params.get(region.getContext());
  }

  /// Blocks of fewer and of more threads, with other parts of a line or other lines.
  SmallVector<kernel::ScheduleAttr> decideOthersOnGpus(const RegionProblem &region, const Problem &p) const override {
    const Schedule chosen = *decide(region, p);
    SmallVector<kernel::ScheduleAttr> others;
    for (int64_t block : {chosen.getBlock() / 2, chosen.getBlock() / 4, chosen.getBlock() * 2}) {
      Schedule::Params params = chosen.getParams();
      params.block = block;
      if (params.inTurn)
        params.down = block;
      else if (params.down > 1)
        params.down = std::max<int64_t>(1, block / kLinesOfBlock);
      if (block >= machine::kWarpThreads && block <= 1024)
        others.push_back(params.get(region.getContext()));
    }
    return others;
  }

  SmallVector<Launch> makeLaunches(const Problem &p, Schedule s) const override {
    const AffineExpr items = prim::product(s.getContext(), grid(p, s));
    if (s.getDown() == 1)
      return {launchOf(items, s.getBlock())};
    Launch launch;
    launch.tasks = items;
    launch.device = deviceAttr(s.getContext(), s.getBlock());
    return {launch};
  }

  void emitTasks(const Problem &p, Schedule s, unsigned, Emitter &e, Value begin, Value) const override {
    const SmallVector<AffineExpr> grid = ScanGenerator::grid(p, s);
    ScanCode code(p, s, e);
    if (s.getDown() > 1) {
      const SmallVector<Index> at = e.delinearize(e.uniform(begin), grid);
      s.getInTurn() ? code.emitInTurn(at[0]) : code.emitPieces(at[0], at[1]);
      return;
    }
    forItem(e, prim::product(s.getContext(), grid), s.getBlock(), begin,
            [&](Index item) { code.emitLine(item, grid); });
  }

private:
  /// Of lines, or of blocks of them.
  static SmallVector<AffineExpr> grid(const Problem &p, Schedule s) {
    const AffineExpr outer = prim::product(s.getContext(), p.lines.outer), inner = p.lines.innerCount();
    return {outer,
            s.getDown() > 1 && !s.getInTurn() ? prim::simplifySize(inner.ceilDiv(s.getBlock() / s.getDown())) : inner};
  }
};

} // namespace

const Generator *tc::codegen::gpuScanGenerator() {
  static const ScanGenerator generator;
  return &generator;
}
