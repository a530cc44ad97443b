//===- ColumnReduce.cpp - the "cpu.column_reduce" strategy: reductions whose last dim stays ----------------------===//
//
// result[i.., n] = reduction over j.. of operand[i.., j.., n], and what follows it: pooling of channels-last images,
// statistics of channels. Rows of a power of two of elements would make a pass over a vector's width of columns visit
// a new page, and the same few sets of the caches, with each step; a task takes kColumns columns at once instead, some
// lines of each row, with an accumulator in a register for each vector.
//
// An operand that does not fit the second-level cache is streamed: some rows at once, and long stretches of them, whose
// accumulators stay in the first-level cache. Where few tasks would stream everything, the rows are cut into parts: a
// launch before leaves a row of results for each, which are combined.
//
// Fewer columns than a vector has are read as they lie: so many vectors hold a number of whole rows, and each has an
// accumulator of its own, whose lanes are folded in the end.
//
// Parameters: include/tc/Dialect/Kernel/IR/Schedules.td.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CPU/MicroKernel.h"
#include "Common/Anchor.h"
#include "Common/Generators.h"
#include "tc/Analysis/LikelySizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

namespace {

using Schedule = kernel::CpuColumnReduceAttr;

// 8 lines of f32 a row: enough that the hardware's prefetcher runs ahead within a page.
constexpr int64_t kColumns = 128;
// Accumulators at once: half of the smallest register file.
constexpr int64_t kVectors = 8;
// Rows that are combined before an accumulator takes them, where a task has few vectors; powers of two.
constexpr int64_t kMostRows = 4;
// Operands from this size on are streamed, by so many rows at once, so many columns of each: as many streams as the
// hardware's prefetcher follows, and long ones, for accumulators of 8 KiB (4096 x 4096 takes 0.45 of the time).
constexpr int64_t kStreamedBytes = machine::kCaches.l2 / 4 * 3, kStreamedRows = 8, kStreamedColumns = 2048;
// Tasks that keep many cores busy, and rows that a part of them has at least.
constexpr int64_t kTasks = 16, kLeastPart = 64;
// Fewer columns than these, of so many rows at least, are read as they lie, with so many accumulators at least;
// elements of a task where there are few of them.
constexpr int64_t kLeastColumns = 16, kLeastFolded = 64, kLeastFoldedVectors = 8, kFoldedElements = 32 * 1024;
// Rows that are added up on their own.
constexpr int64_t kPartialRows = 1024;
// What a thread should get at least, in elements.
constexpr double kGrainElements = 30000;

/// The region's one reduction, whose last dim stays.
struct Problem {
  const Reduction &reduction;
  const Epilogue &epilogue;
};

class ColumnReduceGenerator final : public GeneratorFor<Schedule, Problem> {
public:
  std::optional<Problem> analyze(const RegionProblem &region) const override {
    const Reduction *reduction = region.findReduction();
    if (!reduction || !reduction->keepsLast || reduction->sizes.empty())
      return std::nullopt;
    const Epilogue *epilogue = region.findWholeEpilogue(reduction->op.getResult());
    return epilogue ? std::optional(Problem{*reduction, *epilogue}) : std::nullopt;
  }

  FailureOr<Schedule> decide(const RegionProblem &region, const Problem &p) const override {
    prim::ReduceOp reduce = p.reduction.op;
    const SmallVector<AffineExpr> &sizes = p.reduction.sizes;
    // Rows of fewer columns than a vector has must lie one after another.
    const bool isFolded = prim::getConstantSize(sizes.back()).value_or(kColumns) < kLeastColumns;
    if (isFolded && (reduce.getDims().back() != int64_t(sizes.size()) - 2 ||
                     getLikelySize(lastRows(reduce), reduce, /*usual=*/kLeastFolded) < kLeastFolded ||
                     prim::getConstantSize(sizes.back()) == 1))
      return failure();
    const double rows = getLikelyCount(p.reduction.reduced, reduce);
    int64_t columns = kColumns;
    auto type = cast<RankedTensorType>(reduce.getOperand().getType());
    const bool isStreamed = type.hasStaticShape() && type.getShape().back() > kColumns &&
                            type.getNumElements() * Emitter::memoryBytes(type.getElementType()) >= kStreamedBytes;
    if (isStreamed) { // tasks of equal size
      const int64_t all = type.getShape().back(), tasks = ceilDiv(all, kStreamedColumns);
      columns = roundUp(ceilDiv(all, tasks), kColumns);
    }
    Schedule::Params params;
    if (isFolded)
      params.folded = 1;
    if (isFolded && type.hasStaticShape()) {
      const int64_t last = type.getShape()[reduce.getDims().back()], row = type.getShape().back();
      int64_t tasks = 1;
      const SmallVector<AffineExpr> sizes = prim::getSizes(reduce.getResult());
      for (AffineExpr size : ArrayRef(sizes).drop_back())
        tasks *= *prim::getConstantSize(size);
      const int64_t part =
          roundUp(std::max(ceilDiv(last, ceilDiv(kTasks, std::max<int64_t>(tasks, 1))), ceilDiv(kFoldedElements, row)),
                  kLeastFolded);
      if (tasks < kTasks && part < last)
        params.part = part;
      columns = row;
    }
    params.columns = columns;
    params.rows = isStreamed ? kStreamedRows : 0;
    if (isStreamed) {
      int64_t tasks = ceilDiv(type.getShape().back(), columns);
      const SmallVector<AffineExpr> sizes = prim::getSizes(reduce.getResult());
      for (AffineExpr size : ArrayRef(sizes).drop_back())
        tasks *= *prim::getConstantSize(size);
      const int64_t last = type.getShape()[reduce.getDims().back()];
      const int64_t part = std::max(kLeastPart, roundUp(ceilDiv(last, ceilDiv(kTasks, tasks)), kStreamedRows));
      if (tasks < kTasks && part < last)
        params.part = part;
    }
    params.grain = grainFor(kGrainElements, rows * double(columns));
    return params.get(region.getContext());
  }

  SmallVector<Launch> makeLaunches(const Problem &p, Schedule schedule) const override {
    MLIRContext *context = schedule.getContext();
    prim::ReduceOp reduce = p.reduction.op;
    Launch launch;
    launch.tasks = prim::product(context, grid(reduce, schedule));
    if (schedule.getRows()) {
      const int64_t bytes = 2 * schedule.getColumns() * 8; // of the widest accumulator; for sums and a part
      launch.scratch = scratchBytes(context, bytes);
    }
    SmallVector<Launch> launches;
    if (schedule.getPart()) {
      Launch parts(launch);
      parts.suffix = "_parts";
      parts.doesWork = true;
      parts.tasks = prim::simplifySize(launch.tasks * countParts(reduce, schedule));
      parts.temporaries = {partsType(reduce, schedule)};
      launches.push_back(parts);
      launch.scratch = {};
    }
    launch.inPlace = p.epilogue.inPlace();
    launches.push_back(launch);
    return launches;
  }

  void emitTasks(const Problem &p, Schedule schedule, unsigned number, Emitter &em, Value begin,
                 Value end) const override {
    prim::ReduceOp reduce = p.reduction.op;
    const Epilogue &epilogue = p.epilogue;
    if (schedule.getPart())
      return number == 0 ? emitParts(reduce, schedule, em, begin, end)
                         : combineParts(reduce, schedule, epilogue, em, begin, end);
    const AffineExpr last = prim::getSizes(reduce.getOperand()).back();
    const int64_t columns = schedule.getColumns(), block = kVectors * em.width();
    em.loop(begin, end, 1, [&](Index task) {
      SmallVector<Index> outer = em.delinearize(task, grid(reduce, schedule));
      const Index first = em.mulIndex(outer.pop_back_val(), em.i64(columns), columns);
      if (schedule.getFolded())
        return fold(reduce, em, outer, em.i64(0), em.size(lastRows(reduce)), [&](Index lane, Value sum) {
          SmallVector<Index> position(outer);
          position.push_back(lane);
          storeEpilogue(em, epilogue, position, em.fromAccumulator(sum, elementOf(reduce)));
          em.clearSources();
        });
      if (int64_t rows = schedule.getRows())
        return stream(reduce, em, outer, first, columns, rows, em.i64(0), em.size(lastRows(reduce)),
                      [&](Index lane, Value sum) {
                        SmallVector<Index> position(outer);
                        position.push_back(em.addIndex(first, lane));
                        storeEpilogue(em, epilogue, position, em.fromAccumulator(sum, elementOf(reduce)));
                        em.clearSources();
                      });
      // Vectors from column `column` of the task on.
      auto vectors = [&](Index column, int64_t count) {
        SmallVector<Index> lanes;
        for (int64_t i = 0; i < count; ++i)
          lanes.push_back(em.contiguous(em.addIndex(em.addIndex(first, column), em.constant(i * em.width()))));
        SmallVector<Value> sums = reduced(reduce, em, outer, lanes);
        for (auto [lane, sum] : llvm::zip_equal(lanes, sums)) {
          SmallVector<Index> at = outer;
          at.push_back(lane);
          storeEpilogue(em, epilogue, at, sum);
          em.clearSources();
        }
      };
      const std::optional<int64_t> all = prim::getConstantSize(last);
      if (all && *all % columns == 0) {
        em.loop(em.i64(0), em.i64(columns), block, [&](Index column) { vectors(column, kVectors); }, block);
        return;
      }
      const Value here = em.min(em.i64(columns), em.sub(em.size(last), first.base));
      const Value whole = em.mul(em.divUnsigned(here, em.i64(block)), em.i64(block));
      em.loop(em.i64(0), whole, block, [&](Index column) { vectors(column, kVectors); }, block);
      if (!all || *all > columns) {
        em.laneLoop(here, std::nullopt, [&](Index lane) { vectors(em.uniform(lane.base), 1); }, whole);
        return;
      }
      // The only block of columns, of a known size: what is left of it at once.
      const int64_t left = *all % block / em.width() * em.width();
      if (left)
        vectors(em.constant(*all - *all % block), left / em.width());
      if (*all % em.width())
        em.laneLoop(
            em.i64(*all), *all, [&](Index lane) { vectors(em.uniform(lane.base), 1); },
            em.i64(*all - *all % em.width()));
    });
  }

private:
  /// The dims that stay, but the last; blocks of columns.
  static SmallVector<AffineExpr> grid(prim::ReduceOp reduce, Schedule schedule) {
    SmallVector<AffineExpr> grid = prim::getSizes(reduce.getResult());
    grid.back() = prim::simplifySize(grid.back().ceilDiv(schedule.getColumns()));
    return grid;
  }

  static Type elementOf(prim::ReduceOp reduce) {
    return cast<RankedTensorType>(reduce.getOperand().getType()).getElementType();
  }
  /// Size of the last reduced dim.
  static AffineExpr lastRows(prim::ReduceOp reduce) {
    return prim::getSizes(reduce.getOperand())[reduce.getDims().back()];
  }
  static int64_t countParts(prim::ReduceOp reduce, Schedule schedule) {
    return ceilDiv(*prim::getConstantSize(lastRows(reduce)), schedule.getPart());
  }
  /// What parts leave: [part, sizes of the result].
  static RankedTensorType partsType(prim::ReduceOp reduce, Schedule schedule) {
    SmallVector<AffineExpr> sizes = prim::getSizes(reduce.getResult());
    sizes.insert(sizes.begin(), getAffineConstantExpr(countParts(reduce, schedule), reduce.getContext()));
    return prim::makeType(Emitter::accumulatorOf(elementOf(reduce)), sizes);
  }

  static void emitParts(prim::ReduceOp reduce, Schedule schedule, Emitter &em, Value begin, Value end) {
    const RankedTensorType type = partsType(reduce, schedule);
    const int64_t part = schedule.getPart(), columns = schedule.getColumns();
    em.loop(begin, end, 1, [&](Index task) {
      SmallVector<AffineExpr> sizes = grid(reduce, schedule);
      sizes.insert(sizes.begin(), prim::getSizes(type).front());
      SmallVector<Index> at = em.delinearize(task, sizes);
      const Index first = em.mulIndex(at.pop_back_val(), em.i64(columns), columns);
      const Value from = em.mul(at.front().base, em.i64(part));
      const Value to = em.min(em.add(from, em.i64(part)), em.size(lastRows(reduce)));
      auto store = [&](Index lane, Value sum) {
        SmallVector<Index> position(at);
        position.push_back(em.addIndex(first, lane));
        em.store(sum, em.output(0), type.getElementType(), prim::getSizes(type), position);
      };
      if (schedule.getFolded())
        fold(reduce, em, ArrayRef(at).drop_front(), from, to, store);
      else
        stream(reduce, em, ArrayRef(at).drop_front(), first, columns, schedule.getRows(), from, to, store);
    });
  }

  static void combineParts(prim::ReduceOp reduce, Schedule schedule, const Epilogue &epilogue, Emitter &em, Value begin,
                           Value end) {
    const RankedTensorType type = partsType(reduce, schedule);
    const Value parts = em.input(em.region().getNumOperands());
    const int64_t columns = schedule.getColumns();
    em.loop(begin, end, 1, [&](Index task) {
      SmallVector<Index> outer = em.delinearize(task, grid(reduce, schedule));
      const Index first = em.mulIndex(outer.pop_back_val(), em.i64(columns), columns);
      const Extent here = blockExtent(em, prim::getSizes(reduce.getResult()).back(), first.base, columns);
      em.laneLoop(here.get(em), here.constant, [&](Index lane) {
        SmallVector<Index> position(outer);
        position.push_back(em.addIndex(first, lane));
        Value sum;
        for (int64_t part = 0; part < type.getDimSize(0); ++part) {
          SmallVector<Index> at{em.constant(part)};
          llvm::append_range(at, position);
          const Value value = em.load(parts, type.getElementType(), prim::getSizes(type), at);
          sum = sum ? em.combine(reduce.getKind(), type.getElementType(), sum, value) : value;
        }
        storeEpilogue(em, epilogue, position, em.fromAccumulator(sum, elementOf(reduce)));
        em.clearSources();
      });
    });
  }

  /// Where the operand is read for a result at `outer` (all dims but the last): the dims that are reduced, and the last
  /// one, stay open.
  static SmallVector<Index> operandAt(prim::ReduceOp reduce, ArrayRef<Index> outer) {
    SmallVector<Index> at(prim::getSizes(reduce.getOperand()).size());
    size_t next = 0;
    for (int64_t dim = 0, e = int64_t(at.size()) - 1; dim < e; ++dim)
      if (!llvm::is_contained(reduce.getDims(), dim))
        at[dim] = outer[next++];
    return at;
  }

  /// The columns of a task from `first` on, `rows` rows at once, of those in [lower, upper) of the last reduced dim:
  /// finish(lanes from `first` on, the accumulators) for each vector.
  static void stream(prim::ReduceOp reduce, Emitter &em, ArrayRef<Index> outer, Index first, int64_t columns,
                     int64_t rows, Value lower, Value upper, llvm::function_ref<void(Index, Value)> finish) {
    const Value operand = reduce.getOperand();
    const SmallVector<AffineExpr> sizes = prim::getSizes(operand);
    const Type element = elementOf(reduce), accumulator = em.accumulatorOf(element);
    const int64_t all = *prim::getConstantSize(sizes.back());
    const bool isWhole = all % columns == 0;
    const Value here = isWhole ? em.i64(columns) : em.min(em.i64(columns), em.sub(em.i64(all), first.base));
    const std::optional<int64_t> known = isWhole ? std::optional(columns) : std::nullopt;
    const Value sums = em.scratch(), part = em.address(sums, accumulator, em.i64(columns));
    const Value start = em.neutral(reduce.getKind(), element);
    auto clear = [&](Value into) {
      em.laneLoop(here, known, [&](Index lane) { em.storeAt(start, into, accumulator, lane); });
    };
    clear(sums);
    SmallVector<Index> at = operandAt(reduce, outer);
    // Adds `count` rows from position `row` of the last reduced dim on.
    auto add = [&](Index row, int64_t count, Value into) {
      em.laneLoop(here, known, [&](Index lane) {
        // The rows first: rounding errors stay small.
        Value sum;
        for (int64_t i = 0; i < count; ++i) {
          SmallVector<Index> position = at;
          position[reduce.getDims().back()] = em.addIndex(row, em.constant(i));
          position.back() = em.addIndex(first, lane);
          const Value value = em.broadcast(em.toAccumulator(em.emit(operand, position)));
          sum = sum ? em.combine(reduce.getKind(), accumulator, sum, value) : value;
        }
        sum = em.combine(reduce.getKind(), accumulator, em.loadAt(into, accumulator, lane), sum);
        em.storeAt(sum, into, accumulator, lane);
      });
    };
    auto addAll = [&](Value from, Value to, Value into) {
      const Value whole = em.add(from, em.mul(em.divUnsigned(em.sub(to, from), em.i64(rows)), em.i64(rows)));
      em.loop(from, whole, rows, [&](Index row) { add(row, rows, into); });
      em.loop(whole, to, 1, [&](Index row) { add(row, 1, into); });
    };
    std::function<void(size_t)> nest = [&](size_t number) {
      if (number + 1 < reduce.getDims().size()) {
        em.loop(em.i64(0), em.size(sizes[reduce.getDims()[number]]), 1, [&](Index position) {
          at[reduce.getDims()[number]] = position;
          nest(number + 1);
        });
        return;
      }
      // As Emitter::reduceLoop: sums of many rows in segments, which are added up.
      const int64_t segment = kPartialRows;
      if (!Emitter::addsInSegments(reduce.getKind(), accumulator) ||
          prim::getConstantSize(sizes[reduce.getDims()[number]]).value_or(segment + 1) <= segment)
        return addAll(lower, upper, sums);
      em.loop(lower, upper, segment, [&](Index first) {
        clear(part);
        addAll(first.base, em.min(em.add(first.base, em.i64(segment)), upper), part);
        em.laneLoop(here, known, [&](Index lane) {
          em.storeAt(em.combine(reduce.getKind(), accumulator, em.loadAt(sums, accumulator, lane),
                                em.loadAt(part, accumulator, lane)),
                     sums, accumulator, lane);
        });
      });
    };
    nest(0);
    em.laneLoop(here, known, [&](Index lane) { finish(lane, em.loadAt(sums, accumulator, lane)); });
  }

  /// The few columns of rows in [lower, upper) of the last reduced dim, read as they lie: finish(lanes along the
  /// columns, the accumulators). `lower` is a multiple of kLeastFolded.
  static void fold(prim::ReduceOp reduce, Emitter &em, ArrayRef<Index> outer, Value lower, Value upper,
                   llvm::function_ref<void(Index, Value)> finish) {
    const Value operand = reduce.getOperand();
    const SmallVector<AffineExpr> sizes = prim::getSizes(operand);
    const Type element = elementOf(reduce), accumulator = em.accumulatorOf(element);
    const prim::ReduceKind kind = reduce.getKind();
    const int64_t width = em.width(), columns = *prim::getConstantSize(sizes.back()), last = reduce.getDims().back();
    const int64_t blocks = ceilDiv(kLeastFoldedVectors, columns);
    const Value start = em.broadcast(em.neutral(kind, element));
    const Value sums = em.stackBuffer(Emitter::memoryType(accumulator), columns * width),
                rest = em.stackBuffer(Emitter::memoryType(accumulator), columns);
    auto eachColumn = [&](llvm::function_ref<void(Index)> body) { em.laneLoop(em.i64(columns), columns, body); };
    eachColumn([&](Index lane) { em.storeAt(start, rest, accumulator, lane); });
    SmallVector<Index> at = operandAt(reduce, outer);
    auto read = [&] { return em.broadcast(em.toAccumulator(em.emit(operand, at))); };
    // Adds rows from `row` on, `count` times a vector's number of them.
    auto addRows = [&](Index row, int64_t count, ValueRange carried) {
      SmallVector<Value> next(carried);
      for (int64_t block = 0; block < count; ++block)
        for (int64_t number = 0; number < columns; ++number) {
          std::tie(at[last], at.back()) = em.partOfRows(em.addIndex(row, em.constant(block * width)), columns, number);
          Value &sum = next[block * columns + number];
          sum = em.combine(kind, accumulator, sum, read());
        }
      return next;
    };
    std::function<SmallVector<Value>(size_t, SmallVector<Value>)> nest = [&](size_t number,
                                                                             SmallVector<Value> carried) {
      if (number + 1 < reduce.getDims().size()) {
        const int64_t dim = reduce.getDims()[number];
        return em.reduceLoop(kind, accumulator, em.i64(0), em.size(sizes[dim]), 1, carried, std::nullopt,
                             [&](Index position, ValueRange inner) {
                               at[dim] = position;
                               return nest(number + 1, llvm::to_vector(inner));
                             });
      }
      const int64_t step = blocks * width;
      auto wholeOf = [&](Value from, int64_t count) {
        return em.add(from, em.mul(em.divUnsigned(em.sub(upper, from), em.i64(count)), em.i64(count)));
      };
      const Value whole = wholeOf(lower, step);
      carried = em.reduceLoop(
          kind, accumulator, lower, whole, step, carried, 1,
          [&](Index row, ValueRange inner) { return addRows(row, blocks, inner); }, width);
      Value done = whole;
      if (blocks > 1) {
        done = wholeOf(whole, width);
        SmallVector<Value> firsts(ArrayRef(carried).take_front(columns));
        firsts = em.loop(
            whole, done, width, firsts, [&](Index row, ValueRange inner) { return addRows(row, 1, inner); }, width);
        llvm::copy(firsts, carried.begin());
      }
      // Rows that fill no vectors.
      em.loop(done, upper, 1, [&](Index row) {
        eachColumn([&](Index lane) {
          at[last] = row;
          at.back() = lane;
          const Value sum = em.combine(kind, accumulator, em.loadAt(rest, accumulator, lane), read());
          em.storeAt(sum, rest, accumulator, lane);
        });
      });
      return carried;
    };
    const SmallVector<Value> all = nest(0, SmallVector<Value>(blocks * columns, start));
    for (int64_t number = 0; number < columns; ++number) {
      Value sum = all[number];
      for (int64_t block = 1; block < blocks; ++block)
        sum = em.combine(kind, accumulator, sum, all[block * columns + number]);
      em.storeAt(sum, sums, accumulator, em.contiguous(em.constant(number * width)));
    }
    eachColumn([&](Index lane) {
      Value total = em.loadAt(rest, accumulator, lane);
      for (int64_t row = 0; row < width; ++row)
        total = em.combine(kind, accumulator, total,
                           em.loadAt(sums, accumulator, em.addIndex(lane, em.constant(row * columns))));
      finish(lane, total);
    });
  }

  /// The reduction at `outer` for each vector of columns. Some rows are taken at once and combined in pairs before they
  /// reach the accumulator: it is a shorter chain of dependent steps, whose rounding errors stay small where elements
  /// are equal and all err one way (squares of what a relu made 0, less its mean).
  static SmallVector<Value> reduced(prim::ReduceOp reduce, Emitter &em, ArrayRef<Index> outer, ArrayRef<Index> lanes) {
    const Value operand = reduce.getOperand();
    const SmallVector<AffineExpr> sizes = prim::getSizes(operand);
    const Type element = elementOf(reduce), accumulator = em.accumulatorOf(element);
    const Value start = em.broadcast(em.neutral(reduce.getKind(), element));
    const int64_t lines = int64_t(lanes.size()), last = reduce.getDims().back();
    const int64_t most = std::clamp<int64_t>(llvm::bit_floor(uint64_t(2 * kVectors / lines)), 2, kMostRows);
    const int64_t rows = prim::getConstantSize(sizes[last]).value_or(most) < most ? 1 : most;
    SmallVector<Index> at = operandAt(reduce, outer);
    // Adds `count` rows from `row` of the last reduced dim on.
    auto add = [&](Index row, int64_t count, ValueRange carried) {
      const prim::ReduceKind kind = reduce.getKind();
      SmallVector<SmallVector<Value>> parts(lines); // as the digits of a binary number, of 1, 2, 4.. rows
      for (int64_t i = 0; i < count; ++i)
        for (auto [lane, held] : llvm::zip_equal(lanes, parts)) {
          at[last] = em.addIndex(row, em.constant(i));
          at.back() = lane;
          Value value = em.broadcast(em.toAccumulator(em.emit(operand, at)));
          for (int64_t number = i; number % 2 == 1; number /= 2)
            value = em.combine(kind, accumulator, held.pop_back_val(), value);
          held.push_back(value);
        }
      SmallVector<Value> sums(carried);
      for (auto [sum, held] : llvm::zip_equal(sums, parts))
        sum = em.combine(kind, accumulator, sum, held.front());
      return sums;
    };
    std::function<SmallVector<Value>(size_t, SmallVector<Value>)> nest = [&](size_t number, SmallVector<Value> sums) {
      const int64_t dim = reduce.getDims()[number];
      const Value size = em.size(sizes[dim]);
      if (dim == last) {
        const Value whole = rows == 1 ? size : em.mul(em.divUnsigned(size, em.i64(rows)), em.i64(rows));
        sums = em.reduceLoop(reduce.getKind(), accumulator, em.i64(0), whole, rows, sums, rows,
                             [&](Index row, ValueRange carried) { return add(row, rows, carried); });
        if (rows > 1 && prim::getConstantSize(sizes[dim]).value_or(1) % rows != 0)
          sums = em.loop(whole, size, 1, sums, [&](Index row, ValueRange carried) { return add(row, 1, carried); });
        return sums;
      }
      const AffineExpr within =
          prim::product(em.builder().getContext(), llvm::map_to_vector(reduce.getDims().drop_front(number + 1),
                                                                       [&](int64_t inner) { return sizes[inner]; }));
      return em.reduceLoop(reduce.getKind(), accumulator, em.i64(0), size, 1, sums, prim::getConstantSize(within),
                           [&](Index position, ValueRange carried) {
                             at[dim] = position;
                             return nest(number + 1, llvm::to_vector(carried));
                           });
    };
    return llvm::map_to_vector(nest(0, SmallVector<Value>(lines, start)),
                               [&](Value sum) { return em.fromAccumulator(sum, element); });
  }
};

} // namespace

const Generator *tc::codegen::columnReduceGenerator() {
  static const ColumnReduceGenerator generator;
  return &generator;
}
