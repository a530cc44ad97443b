//===- ColumnReduce.cpp - "gpu.column_reduce": reductions of many elements to few -------------------------------===//
//
// result[i.., n] = reduction over j.. of operand[i.., j.., n], and results that are few beside what is reduced: sums of
// columns, statistics of channels, sums of everything. A block a result would leave most of the GPU idle, so the
// reduced elements, in row-major order, are cut into parts that one wave of blocks takes; a second launch combines
// them. Which thread adds what, and in which order, depends on the sizes alone: the same bits in each run.
//
// Where the last dim stays, `across` threads of a block lie along it, 4 neighbouring columns each, and the others along
// the rows; they are combined through shared memory. Where it is reduced, threads take 4 neighbouring elements each,
// and `across` is 0.
//
// Parameters: include/tc/Dialect/Kernel/IR/Schedules.td.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Common/Anchor.h"
#include "GPU/Gpu.h"
#include "tc/Analysis/LikelySizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;
using namespace tc::codegen::gpu;

namespace {

using Schedule = kernel::GpuColumnReduceAttr;

constexpr int64_t kBlock = 256;
// Blocks of one wave on each multiprocessor: of 256 threads and up to 64 registers.
constexpr int64_t kBlocksOfWave = 4;
// Threads along the columns: 512 bytes of a row, so that a page of memory is used when it is opened.
constexpr int64_t kMostAcross = 32, kLeastAcross = 4;
// Loads of a thread on their way at once; 16 KiB an SM of them hide the latency of memory.
constexpr int64_t kUnroll = 8;
// Loads of a thread where a result has few elements.
constexpr int64_t kUnrollOfFew = 4;
// Steps of a thread that are worth a part of their own.
constexpr int64_t kLeastSteps = 8;
// Rows of the last dim that gpu.rows takes as well, with a block each, from so many on.
constexpr int64_t kManyRows = 264;

/// The reduction of a region as one of rows.
struct Rows : Reduction {
  Rows(const Reduction &reduction, const Epilogue &epilogue)
      : Reduction(reduction), epilogue(epilogue), accumulator(Emitter::accumulatorOf(element())) {
    const std::optional<int64_t> last = prim::getConstantSize(sizes.back());
    lanes = last && *last > 0 && *last % 4 == 0 ? 4 : 1;
  }

  /// Where the operand is read for the reduced element `row` of the result at `at`.
  SmallVector<Index> operandAt(Emitter &e, const Index &row, ArrayRef<Index> at) const {
    SmallVector<Index> within = e.delinearize(row, reduced), full(sizes.size());
    size_t inner = 0, kept = 0;
    for (size_t dim = 0; dim < sizes.size(); ++dim)
      full[dim] = llvm::is_contained(op.getDims(), int64_t(dim)) ? within[inner++] : at[kept++];
    return full;
  }

  /// Whether the reduced dims are the last ones, of which gpu.rows takes many.
  bool areRows() const { return op.getDims().front() == int64_t(sizes.size() - reduced.size()); }

  const Epilogue &epilogue;
  Type accumulator;
  /// Neighbouring elements that a thread reads at once.
  int64_t lanes;
};

int64_t likelyProduct(ArrayRef<AffineExpr> sizes, Operation *scope) {
  return int64_t(std::min(getLikelyCount(sizes, scope), double(int64_t(1) << 40)));
}

class ColumnReduceGenerator final : public GeneratorFor<Schedule, Rows> {
public:
  std::optional<Rows> analyze(const RegionProblem &region) const override {
    const Reduction *reduction = region.findReduction();
    // A block's threads would meet in searches for the best element.
    if (!reduction || reduction->sizes.empty() || !region.getBody().getOps<prim::ArgReduceOp>().empty())
      return std::nullopt;
    const Epilogue *epilogue = region.findWholeEpilogue(reduction->op.getResult());
    return epilogue ? std::optional(Rows(*reduction, *epilogue)) : std::nullopt;
  }

  FailureOr<Schedule> decide(const RegionProblem &region, const Rows &rows) const override {
    Schedule::Params params;
    params.block = kBlock;
    params.unroll = kUnroll;
    const int64_t count = likelyProduct(rows.reduced, rows.op);
    int64_t tasks = likelyProduct(rows.outer, rows.op), steps = count;
    if (rows.keepsLast) {
      const int64_t columns = getLikelySize(rows.sizes.back(), rows.op, /*usual=*/kMostAcross * rows.lanes);
      params.across =
          std::clamp(int64_t(llvm::PowerOf2Ceil(std::max<int64_t>(llvm::divideCeil(columns, rows.lanes), 1))),
                     kLeastAcross, kMostAcross);
      tasks *= int64_t(llvm::divideCeil(columns, params.across * rows.lanes));
      steps = llvm::divideCeil(count, kBlock / params.across);
    } else {
      if (rows.areRows() && tasks >= kManyRows)
        return failure();
      // Small blocks for few elements, of which each thread has some.
      params.block = std::clamp<int64_t>(
          int64_t(llvm::PowerOf2Ceil(std::max<int64_t>(llvm::divideCeil(count, kUnrollOfFew * rows.lanes), 1))),
          machine::kWarpThreads, kBlock);
      steps = llvm::divideCeil(count, params.block * rows.lanes);
      params.unroll = std::min(kUnroll, int64_t(llvm::bit_floor(uint64_t(std::max<int64_t>(steps, 1)))));
    }
    const int64_t wave = kBlocksOfWave * machine::getDefaultGpu(region.getContext()).getMultiprocessors();
    params.parts = std::clamp<int64_t>(std::min(wave / std::max<int64_t>(tasks, 1), steps / kLeastSteps), 1, wave);
    if (rows.areRows() && params.parts == 1)
      return failure();
    return params.get(region.getContext());
  }

  std::optional<double> compareAtSizes(const RegionProblem &region, const Rows &rows,
                                       Schedule schedule) const override {
    return compareWithChoice(region, rows, schedule);
  }

  /// More and fewer parts, loads at once and threads along the columns.
  SmallVector<kernel::ScheduleAttr> decideOthersOnGpus(const RegionProblem &region, const Rows &rows) const override {
    const FailureOr<Schedule> chosen = decide(region, rows);
    if (failed(chosen))
      return {};
    SmallVector<kernel::ScheduleAttr> others;
    auto add = [&](int64_t block, int64_t across, int64_t parts, int64_t unroll) {
      Schedule::Params params = chosen->getParams();
      params.block = block;
      params.across = across;
      params.parts = parts;
      params.unroll = unroll;
      if (block >= std::max(across, machine::kWarpThreads) && unroll >= 1)
        others.push_back(params.get(region.getContext()));
    };
    const int64_t block = chosen->getBlock(), across = chosen->getAcross(), parts = chosen->getParts(),
                  unroll = chosen->getUnroll();
    add(block, across, parts * 2, unroll);
    if (parts > 1)
      add(block, across, parts / 2, unroll);
    add(block, across, parts, unroll / 2);
    if (across > kLeastAcross)
      add(block, across / 2, parts, unroll);
    add(block * 2, across, parts, unroll);
    add(block / 2, across, parts, unroll);
    return others;
  }

  SmallVector<Launch> makeLaunches(const Rows &rows, Schedule schedule) const override {
    MLIRContext *context = schedule.getContext();
    Launch last;
    last.tasks = prim::product(context, grid(rows, schedule, 1));
    last.device = deviceAttr(context, schedule.getBlock());
    SmallVector<Launch> launches;
    if (schedule.getParts() > 1) {
      Launch parts(last);
      parts.suffix = "_parts";
      parts.doesWork = true;
      parts.tasks = prim::product(context, grid(rows, schedule, schedule.getParts()));
      parts.temporaries = {partsType(rows, schedule)};
      launches.push_back(parts);
    }
    last.inPlace = rows.epilogue.inPlace();
    launches.push_back(last);
    return launches;
  }

  void emitTasks(const Rows &rows, Schedule schedule, unsigned number, Emitter &e, Value begin, Value) const override {
    const bool leavesParts = schedule.getParts() > 1 && number == 0, combinesParts = number == 1;
    const RankedTensorType partsType = ColumnReduceGenerator::partsType(rows, schedule);
    const SmallVector<AffineExpr> partSizes = prim::getSizes(partsType);
    e.alignedBuffers = true;

    // What the task is.
    SmallVector<Index> at =
        e.delinearize(e.uniform(begin), grid(rows, schedule, leavesParts ? schedule.getParts() : 1));
    const Index part = at.front(), columns = at.back();
    at = SmallVector<Index>(ArrayRef(at).drop_front().drop_back());
    Value from = e.i64(0), to = combinesParts ? e.i64(schedule.getParts()) : e.sizeProduct(rows.reduced);
    if (leavesParts) {
      const int64_t unit = rows.keepsLast ? 1 : rows.lanes; // parts begin where a thread's elements do
      const Value size =
          e.mul(e.divUnsigned(e.add(to, e.i64(schedule.getParts() * unit - 1)), e.i64(schedule.getParts() * unit)),
                e.i64(unit));
      from = e.min(e.mul(part.base, size), to);
      to = e.min(e.add(from, size), to);
    }
    // The reduced element `row` of the results at `place`, as an accumulator.
    auto read = [&](const Index &row, ArrayRef<Index> place) -> Value {
      if (!combinesParts)
        return e.toAccumulator(e.emit(rows.op.getOperand(), rows.operandAt(e, row, place)));
      SmallVector<Index> full{row};
      llvm::append_range(full, place);
      return e.load(e.input(e.region().getNumOperands()), rows.accumulator, partSizes, full);
    };
    auto finish = [&](ArrayRef<Index> place, Value total) {
      if (leavesParts) {
        SmallVector<Index> full{part};
        llvm::append_range(full, place);
        e.store(total, e.output(0), rows.accumulator, partSizes, full);
        return;
      }
      storeEpilogue(e, rows.epilogue, place, e.fromAccumulator(total, rows.element()));
      e.clearSources();
    };
    if (rows.keepsLast)
      reduceColumns(rows, schedule, e, at, columns, from, to, read, finish);
    else
      reduceAll(rows, schedule, e, at, from, to, combinesParts ? 1 : rows.lanes, read, finish);
  }

private:
  using Read = llvm::function_ref<Value(const Index &, ArrayRef<Index>)>;
  using Finish = llvm::function_ref<void(ArrayRef<Index>, Value)>;

  /// Parts; the result's dims but a last one that stays; blocks of columns.
  static SmallVector<AffineExpr> grid(const Rows &rows, Schedule schedule, int64_t parts) {
    MLIRContext *context = schedule.getContext();
    SmallVector<AffineExpr> grid{getAffineConstantExpr(parts, context)};
    llvm::append_range(grid, rows.outer);
    grid.push_back(rows.keepsLast ? prim::simplifySize(rows.sizes.back().ceilDiv(schedule.getAcross() * rows.lanes))
                                  : getAffineConstantExpr(1, context));
    return grid;
  }

  /// What parts leave: [part, sizes of the result].
  static RankedTensorType partsType(const Rows &rows, Schedule schedule) {
    SmallVector<AffineExpr> sizes = rows.results;
    sizes.insert(sizes.begin(), getAffineConstantExpr(schedule.getParts(), schedule.getContext()));
    return prim::makeType(rows.accumulator, sizes);
  }

  /// The reduction of the elements first, first + stride, ... before `to`, `unroll` at once. first < to + stride.
  static Value accumulate(const Rows &rows, Emitter &e, Value first, Value to, int64_t stride, int64_t unroll,
                          Value start, llvm::function_ref<Value(const Index &)> read) {
    const prim::ReduceKind kind = rows.op.getKind();
    auto add = [&](Value sum, Value value) { return e.combine(kind, rows.accumulator, sum, value); };
    const Value count = e.divUnsigned(e.add(e.sub(to, first), e.i64(stride - 1)), e.i64(stride));
    const Value whole = e.mul(e.divUnsigned(count, e.i64(unroll)), e.i64(unroll));
    auto rowOf = [&](const Index &step, int64_t distance) {
      return e.uniform(e.add(first, e.mul(e.add(step.base, e.i64(distance)), e.i64(stride))));
    };
    SmallVector<Value> sums =
        e.loop(e.i64(0), whole, unroll, SmallVector<Value>(unroll, start), [&](Index step, ValueRange carried) {
          SmallVector<Value> values, next;
          for (int64_t i = 0; i < unroll; ++i)
            values.push_back(read(rowOf(step, i)));
          for (auto [sum, value] : llvm::zip_equal(carried, values))
            next.push_back(add(sum, value));
          return next;
        });
    sums = e.loop(whole, count, 1, sums, [&](Index step, ValueRange carried) {
      SmallVector<Value> next(carried);
      next.front() = add(next.front(), read(rowOf(step, 0)));
      return next;
    });
    // By halves: rounding errors stay small.
    for (size_t half = sums.size() / 2; half > 0; half /= 2) {
      for (size_t i = 0; i < half; ++i)
        sums[i] = add(sums[i], sums[i + half]);
      sums.resize(half);
    }
    return sums.front();
  }

  /// Columns of the block: finish(position of the result, accumulators) of each thread's.
  static void reduceColumns(const Rows &rows, Schedule schedule, Emitter &e, ArrayRef<Index> at, const Index &columns,
                            Value from, Value to, Read read, Finish finish) {
    const int64_t across = schedule.getAcross(), down = schedule.getBlock() / across, lanes = rows.lanes;
    const Value thread = threadIndex(e);
    const Value threadDown = e.divUnsigned(thread, e.i64(across)), threadAcross = e.remUnsigned(thread, e.i64(across));
    const Value own = e.add(e.mul(columns.base, e.i64(across)), threadAcross);
    auto lanesAt = [&](Value base) {
      const Index index = e.uniform(base, lanes);
      return lanes == 1 ? index : e.contiguous(index);
    };
    OpBuilder &b = e.builder();
    const Value isInside = arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::slt, e.mul(own, e.i64(lanes)),
                                                 e.size(rows.sizes.back()));
    const Value end = arith::SelectOp::create(b, e.loc(), isInside, to, from);
    // Threads beyond the last column add nothing, but what a column's rows share is read before their loop.
    const Value column = e.mul(arith::SelectOp::create(b, e.loc(), isInside, own, e.i64(0)), e.i64(lanes));
    SmallVector<Index> place(at);
    place.push_back(lanesAt(column));
    Value start = e.toAccumulator(e.neutral(rows.op.getKind(), rows.element()));
    if (lanes > 1)
      start = e.broadcast(start);
    const Value sum = accumulate(rows, e, e.add(from, threadDown), end, down, schedule.getUnroll(), start,
                                 [&](const Index &row) { return vectorOf(e, read(row, place), lanes); });
    const Value words = sharedArray(e, "columns", Emitter::memoryType(rows.accumulator), schedule.getBlock() * lanes);
    e.storeAt(sum, words, rows.accumulator, lanesAt(e.mul(thread, e.i64(lanes))));
    barrier(e);
    const Value isFirst = arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::eq, threadDown, e.i64(0));
    e.ifThen(arith::AndIOp::create(b, e.loc(), isFirst, isInside), [&] {
      SmallVector<Value> sums;
      for (int64_t i = 0; i < down; ++i)
        sums.push_back(
            e.loadAt(words, rows.accumulator, lanesAt(e.mul(e.add(thread, e.i64(i * across)), e.i64(lanes)))));
      for (size_t half = sums.size() / 2; half > 0; half /= 2)
        for (size_t i = 0; i < half; ++i)
          sums[i] = e.combine(rows.op.getKind(), rows.accumulator, sums[i], sums[i + half]);
      finish(place, sums.front());
    });
  }

  /// All elements of the result at `at`, by the whole block: finish(at, accumulator) of one thread. `lanes`: neighbours
  /// that a thread reads at once; from, to and the last dim are multiples of it.
  static void reduceAll(const Rows &rows, Schedule schedule, Emitter &e, ArrayRef<Index> at, Value from, Value to,
                        int64_t lanes, Read read, Finish finish) {
    makeTeam(e, schedule.getBlock());
    const Emitter::Team team = *e.team;
    const Value thread = team.member;
    Value start = e.toAccumulator(e.neutral(rows.op.getKind(), rows.element()));
    if (lanes > 1)
      start = e.broadcast(start);
    const Value units = e.i64(lanes);
    Value sum = accumulate(rows, e, e.add(e.divUnsigned(from, units), thread), e.divUnsigned(to, units),
                           schedule.getBlock(), schedule.getUnroll(), start, [&](const Index &unit) {
                             const Index row = e.uniform(e.mul(unit.base, units), lanes);
                             return vectorOf(e, read(lanes == 1 ? row : e.contiguous(row), at), lanes);
                           });
    if (lanes > 1)
      sum = e.reduceLanes(rows.op.getKind(), rows.accumulator, sum);
    sum = team.across(rows.op.getKind(), rows.accumulator, sum);
    e.team.reset();
    const Value leads = arith::CmpIOp::create(e.builder(), e.loc(), arith::CmpIPredicate::eq, thread, e.i64(0));
    e.ifThen(leads, [&] { finish(at, sum); });
  }
};

} // namespace

const Generator *tc::codegen::gpuColumnReduceGenerator() {
  static const ColumnReduceGenerator generator;
  return &generator;
}
