//===- Sort.cpp - the "cpu.sort" strategy: prim.arg_sort ---------------------------------------------------------===//
//
// A task is one set of rows.
//
// Rows of one key (parameter `single`) are sorted as KeySort.h says, in the worker's scratch (`splitKeys`: keys and
// numbers in two arrays).
//
// A few of the first elements of short rows that are adjacent in memory (the channels of each pixel) are found
// for as many rows as there are lanes (`laneDims`: so many of the last dims before the row hold the rows): each lane
// holds its best elements in order, and every element of the rows is put in its place among them.
//
// Rows of several keys in two launches, whose buffers are temporaries. The first launch copies the keys, so that they
// are contiguous, and merges runs of 1, 2, 4, ... row numbers from one half of a buffer to the other and back
// (bottom-up merge sort: stable, n log n, no branch that depends on data inside a merge). The second writes the first K
// numbers.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CPU/KeySort.h"
#include "CPU/MicroKernel.h"
#include "Common/Lines.h"
#include "Common/OrderedKey.h"
#include "tc/Analysis/LikelySizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

namespace {

using Schedule = kernel::CpuSortAttr;

/// Most elements that are asked for, which are held in registers, and the most of a row that are all put in their
/// place.
constexpr int64_t kMostHeld = 8, kMostAdjacent = 256;
/// Rows of a task that are adjacent, a multiple of all vector widths.
constexpr int64_t kBlock = 64;
/// Fewer such rows leave too many lanes empty.
constexpr int64_t kLeastAdjacent = 8;
/// Elements put in a place that are worth a thread.
constexpr double kGrainKeys = 3e5;

struct Problem {
  mutable prim::ArgSortOp op; // accessors of ops are not const
  SmallVector<AffineExpr> batch;
  AffineExpr rows, keys, count; // N, M, K

  Type element() const { return cast<RankedTensorType>(op.getOperand().getType()).getElementType(); }
  AffineExpr batches() const { return prim::product(op->getContext(), batch); }

  /// Whether rows are one key each.
  bool isSingle() const { return prim::getConstantSize(keys) == 1 && hasOrderedKey(element()); }
  /// Whether a key and a row's number are too many bits for one i64.
  bool needsSplitKeys() const { return orderedKeyBits(element()) == 64 || getLargestSize(rows, op) > INT32_MAX; }
  KeySort keySort(Schedule schedule) const {
    return {element(), op.getDescending(), rows, count, schedule.getSplitKeys() != 0};
  }

  /// How many of the last dims of the batch are neighbours in memory, with the row's elements further apart.
  int64_t adjacentDims() const {
    Value rowsOf = op.getOperand();
    SmallVector<AffineExpr> sizes = prim::getSizes(rowsOf);
    sizes.pop_back(); // the key
    if (auto reshape = rowsOf.getDefiningOp<prim::ReshapeOp>();
        reshape && prim::getSizes(reshape.getOperand()) == sizes)
      rowsOf = reshape.getOperand();
    auto transpose = rowsOf.getDefiningOp<prim::TransposeOp>();
    if (!transpose || prim::getSizes(rowsOf) != sizes)
      return 0;
    const ArrayRef<int64_t> from = transpose.getPermutation();
    int64_t dims = 0;
    for (int64_t i = int64_t(batch.size()) - 1; i >= 0 && from[i] == i + 1; --i)
      ++dims;
    return dims;
  }

  /// The rows that are adjacent, and the tasks: other dims of the batch, and blocks of such rows.
  AffineExpr adjacentRows(int64_t dims) const {
    return prim::product(op->getContext(), ArrayRef(batch).take_back(dims));
  }
  SmallVector<AffineExpr> adjacentGrid(int64_t dims) const {
    SmallVector<AffineExpr> grid(ArrayRef(batch).drop_back(dims));
    grid.push_back(prim::simplifySize(adjacentRows(dims).ceilDiv(kBlock)));
    return grid;
  }

private:
  Operation *function() const { return op->getParentOfType<func::FuncOp>(); }
};

std::optional<Problem> analyzeSort(const RegionProblem &region) {
  auto op = region.findYielded<prim::ArgSortOp>();
  if (!op)
    return std::nullopt;
  SmallVector<AffineExpr> in = prim::getSizes(op.getOperand());
  Problem p{op, SmallVector<AffineExpr>(in.begin(), in.end() - 2), in[in.size() - 2], in.back(),
            prim::getSizes(op.getResult()).back()};
  return p;
}

class SortGenerator final : public GeneratorFor<Schedule, Problem> {
public:
  std::optional<Problem> analyze(const RegionProblem &region) const override { return analyzeSort(region); }

  FailureOr<Schedule> decide(const RegionProblem &region, const Problem &p) const override {
    double rows = double(getLikelySize(p.rows, p.op, usual::kRowLength));
    Schedule::Params params;
    params.grain = grainFor(2000, rows + 1);
    if (p.isSingle()) {
      params.single = 1;
      params.splitKeys = p.needsSplitKeys();
      const std::optional<int64_t> count = prim::getConstantSize(p.count), length = prim::getConstantSize(p.rows);
      const int64_t adjacent = p.adjacentDims();
      if (count && *count > 0 && *count <= kMostHeld && length && *length <= kMostAdjacent && adjacent &&
          orderedKeyBits(p.element()) <= 32 &&
          getLikelySize(p.adjacentRows(adjacent), p.op, /*usual=*/kBlock) >= kLeastAdjacent) {
        params.laneDims = adjacent;
        params.grain = grainFor(kGrainKeys, double(*count * *length) * kBlock);
      }
    }
    return params.get(region.getContext());
  }

  SmallVector<Launch> makeLaunches(const Problem &p, Schedule schedule) const override {
    MLIRContext *context = schedule.getContext();
    AffineExpr two = getAffineConstantExpr(2, context);
    if (const int64_t adjacent = schedule.getLaneDims()) {
      Launch launch;
      launch.tasks = prim::product(context, p.adjacentGrid(adjacent));
      return {launch};
    }
    if (schedule.getSingle()) {
      Launch launch;
      launch.tasks = p.batches();
      launch.scratch = p.keySort(schedule).scratchBytes();
      return {launch};
    }
    Launch sort, take;
    sort.suffix = "_sort";
    sort.tasks = take.tasks = p.batches();
    sort.temporaries = {prim::makeType(IntegerType::get(context, 64), {p.batches(), two, p.rows}),
                        prim::makeType(p.element(), {p.batches(), p.rows, p.keys})};
    return {sort, take};
  }

  void emitTasks(const Problem &p, Schedule schedule, unsigned number, Emitter &e, Value begin,
                 Value end) const override {
    if (const int64_t adjacent = schedule.getLaneDims())
      return emitAdjacent(p, adjacent, e, begin, end);
    if (schedule.getSingle())
      return emitSingle(p, schedule, e, begin, end);
    unsigned inputs = e.region().getInputs().size();
    OpBuilder &b = e.builder();
    Type i64 = b.getI64Type();
    Value rows = e.size(p.rows);
    if (number == 1) {
      e.loop(begin, end, 1, [&](Index task) {
        Value from = e.address(e.input(inputs), i64, finalOffset(e, p, task.base));
        Value to = e.address(e.output(0), i64, e.mul(task.base, e.size(p.count)));
        e.laneLoop(e.size(p.count), prim::getConstantSize(p.count),
                   [&](Index i) { e.storeAt(e.loadAt(from, i64, i), to, i64, i); });
      });
      return;
    }
    e.loop(begin, end, 1, [&](Index task) {
      SmallVector<AffineExpr> matrix{p.rows, p.keys};
      SmallVector<Index> batch = p.batch.empty() ? SmallVector<Index>{} : e.delinearize(task, p.batch);
      AffineExpr perBatch = prim::product(b.getContext(), matrix);
      Value keys = e.address(e.output(1), Emitter::memoryType(p.element()), e.mul(task.base, e.size(perBatch)));
      e.laneLoop(e.size(perBatch), prim::getConstantSize(perBatch), [&](Index i) {
        SmallVector<Index> at(batch);
        llvm::append_range(at, e.delinearize(i, matrix));
        e.storeAt(e.emit(p.op.getOperand(), at), keys, p.element(), i);
      });
      Value half = e.mul(e.mul(task.base, e.i64(2)), rows);
      Value numbers = e.address(e.output(0), i64, half);
      e.laneLoop(rows, prim::getConstantSize(p.rows), [&](Index i) { e.storeAt(e.materialize(i), numbers, i64, i); });
      SmallVector<Value> state{e.i64(1), e.i64(0)}; // length of the runs, offset of the half that they are in
      e.loop(e.i64(0), passes(e, rows), 1, state, [&](Index, ValueRange carried) {
        Value run = carried[0], from = carried[1], to = arith::SubIOp::create(b, e.loc(), rows, from);
        Value pair = arith::AddIOp::create(b, e.loc(), run, run);
        Value pairs = arith::CeilDivUIOp::create(b, e.loc(), rows, pair);
        Value source = e.address(numbers, i64, from), target = e.address(numbers, i64, to);
        e.loop(e.i64(0), pairs, 1, [&](Index number) { merge(e, p, keys, source, target, number.base, run, rows); });
        return SmallVector<Value>{pair, to};
      });
    });
  }

private:
  static void emitSingle(const Problem &p, Schedule schedule, Emitter &e, Value begin, Value end) {
    const Type i64 = e.builder().getI64Type();
    e.loop(begin, end, 1, [&](Index task) {
      SmallVector<Index> batch = p.batch.empty() ? SmallVector<Index>{} : e.delinearize(task, p.batch);
      Value to = e.address(e.output(0), i64, e.mul(task.base, e.size(p.count)));
      auto read = [&](Index row) {
        SmallVector<Index> at(batch);
        at.push_back(row);
        at.push_back(e.constant(0));
        return e.emit(p.op.getOperand(), at);
      };
      p.keySort(schedule).emit(e, e.scratch(), read, [&](Index i, Value number) { e.storeAt(number, to, i64, i); });
    });
  }

  /// The first elements of rows in lanes; `dims`: the last dims of the batch, which lanes run along.
  static void emitAdjacent(const Problem &p, int64_t dims, Emitter &e, Value begin, Value end) {
    OpBuilder &b = e.builder();
    const Location loc = e.loc();
    const int64_t count = *prim::getConstantSize(p.count);
    const ArrayRef<AffineExpr> inner = ArrayRef(p.batch).take_back(dims);
    const AffineExpr rows = p.adjacentRows(dims);
    e.loop(begin, end, 1, [&](Index task) {
      const SmallVector<Index> grid = e.delinearize(task, p.adjacentGrid(dims));
      const Index first = e.mulIndex(grid.back(), e.i64(kBlock), kBlock);
      const Extent here = blockExtent(e, rows, first.base, kBlock);
      e.laneLoop(here.get(e), here.constant, [&](Index lane) {
        SmallVector<Index> batch(ArrayRef(grid).drop_back());
        llvm::append_range(batch, e.delinearize(e.addIndex(first, lane), inner));
        auto elementAt = [&](Index position) {
          SmallVector<Index> at(batch);
          at.push_back(position);
          at.push_back(e.constant(0));
          return orderedKey(e, p.element(), p.op.getDescending(), e.broadcast(e.emit(p.op.getOperand(), at)));
        };
        auto numberOf = [&](Value position) {
          return e.broadcast(arith::TruncIOp::create(b, loc, b.getI32Type(), position));
        };
        // Keys, then numbers, in order. An element takes the place of the first one that comes after it, and all from
        // there on move up by one; equal keys stay before what comes later in the row.
        auto put = [&](SmallVector<Value> &held, int64_t places, Value key, Value number) {
          Value movedKey = key, movedNumber = number;
          for (int64_t i = 0; i < places; ++i) {
            const Value isBefore = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, key, held[i]);
            auto move = [&](Value &held, Value &moved) {
              const Value before = held;
              held = arith::SelectOp::create(b, loc, isBefore, moved, before);
              moved = arith::SelectOp::create(b, loc, isBefore, before, moved);
            };
            move(held[i], movedKey);
            move(held[count + i], movedNumber);
          }
          return std::pair(movedKey, movedNumber);
        };
        SmallVector<Value> held(2 * count);
        for (int64_t i = 0; i < count; ++i)
          std::tie(held[i], held[count + i]) = put(held, i, elementAt(e.constant(i)), numberOf(e.i64(i)));
        held = e.loop(e.i64(count), e.size(p.rows), 1, held, [&](Index position, ValueRange before) {
          SmallVector<Value> next(before);
          put(next, count, elementAt(position), numberOf(position.base));
          return next;
        });
        const Type i64 = b.getI64Type();
        for (int64_t i = 0; i < count; ++i) {
          SmallVector<Index> at(batch);
          at.push_back(e.constant(i));
          e.store(arith::ExtUIOp::create(b, loc, e.vectorOf(i64), held[count + i]), e.output(0), i64,
                  prim::getSizes(p.op.getResult()), at);
        }
      });
    });
  }

  /// Number of merging passes: the runs have `rows` elements after them.
  static Value passes(Emitter &e, Value rows) {
    OpBuilder &b = e.builder();
    Value one = e.i64(1);
    Value most = arith::MaxSIOp::create(b, e.loc(), arith::SubIOp::create(b, e.loc(), rows, one), e.i64(0));
    Value zeros = math::CountLeadingZerosOp::create(b, e.loc(), most);
    return arith::SubIOp::create(b, e.loc(), e.i64(64), zeros);
  }

  /// Offset of a batch's sorted numbers in the buffer: after an odd number of passes they are in the second half.
  static Value finalOffset(Emitter &e, const Problem &p, Value batch) {
    OpBuilder &b = e.builder();
    Value rows = e.size(p.rows);
    Value odd = arith::AndIOp::create(b, e.loc(), passes(e, rows), e.i64(1));
    Value halves = arith::AddIOp::create(b, e.loc(), arith::MulIOp::create(b, e.loc(), batch, e.i64(2)), odd);
    return arith::MulIOp::create(b, e.loc(), halves, rows);
  }

  /// Merges the runs [2 * number * run, + run) and the one after it.
  static void merge(Emitter &e, const Problem &p, Value keys, Value source, Value target, Value number, Value run,
                    Value rows) {
    OpBuilder &b = e.builder();
    Location loc = e.loc();
    Type i64 = b.getI64Type();
    auto min = [&](Value x, Value y) -> Value { return arith::MinSIOp::create(b, loc, x, y); };
    auto add = [&](Value x, Value y) -> Value { return arith::AddIOp::create(b, loc, x, y); };
    auto test = [&](arith::CmpIPredicate predicate, Value x, Value y) -> Value {
      return arith::CmpIOp::create(b, loc, predicate, x, y);
    };
    Value begin = arith::MulIOp::create(b, loc, number, add(run, run));
    Value middle = min(add(begin, run), rows), end = min(add(middle, run), rows), last = e.sub(rows, e.i64(1));
    e.loop(begin, end, 1, {begin, middle}, [&](Index to, ValueRange heads) {
      Value left = heads[0], right = heads[1];
      auto numberAt = [&](Value i) { return e.loadAt(source, i64, e.uniform(min(i, last))); };
      Value x = numberAt(left), y = numberAt(right);
      // The left one unless the right one comes strictly before it.
      Value rightFirst = comesBefore(e, p, keys, y, x);
      Value hasRight = test(arith::CmpIPredicate::slt, right, end);
      Value noLeft = test(arith::CmpIPredicate::sge, left, middle);
      Value takeRight = arith::AndIOp::create(b, loc, hasRight, arith::OrIOp::create(b, loc, noLeft, rightFirst));
      e.storeAt(arith::SelectOp::create(b, loc, takeRight, y, x), target, i64, to);
      Value one = e.i64(1);
      return SmallVector<Value>{arith::SelectOp::create(b, loc, takeRight, left, add(left, one)),
                                arith::SelectOp::create(b, loc, takeRight, add(right, one), right)};
    });
  }

  /// Whether row x stands strictly before row y.
  static Value comesBefore(Emitter &e, const Problem &p, Value keys, Value x, Value y) {
    OpBuilder &b = e.builder();
    Location loc = e.loc();
    Value columns = e.size(p.keys);
    Value baseX = arith::MulIOp::create(b, loc, x, columns), baseY = arith::MulIOp::create(b, loc, y, columns);
    auto keyAt = [&](Value base, Value column) {
      return e.loadAt(keys, p.element(), e.uniform(arith::AddIOp::create(b, loc, base, column)));
    };
    auto less = [&](Value s, Value t) -> Value {
      if (p.op.getDescending())
        std::swap(s, t);
      if (isa<FloatType>(p.element())) {
        Value below = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, s, t);
        Value isNumber = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::ORD, s, s);
        Value isNaN = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, t, t);
        return arith::OrIOp::create(b, loc, below, arith::AndIOp::create(b, loc, isNumber, isNaN));
      }
      bool isUnsigned = p.element().isUnsignedInteger() || p.element().isInteger(1);
      return arith::CmpIOp::create(b, loc, isUnsigned ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt, s, t);
    };
    if (prim::getConstantSize(p.keys) == std::optional<int64_t>(1))
      return less(keyAt(baseX, e.i64(0)), keyAt(baseY, e.i64(0)));
    // The first column where the rows differ decides.
    Value no = arith::ConstantOp::create(b, loc, b.getBoolAttr(false));
    return e.loop(e.i64(0), columns, 1, {no, no}, [&](Index column, ValueRange known) {
      Value s = keyAt(baseX, column.base), t = keyAt(baseY, column.base);
      Value below = less(s, t), above = less(t, s);
      Value open = arith::XOrIOp::create(b, loc, known[1], arith::ConstantOp::create(b, loc, b.getBoolAttr(true)));
      Value before = arith::OrIOp::create(b, loc, known[0], arith::AndIOp::create(b, loc, open, below));
      Value decided = arith::OrIOp::create(b, loc, known[1], arith::OrIOp::create(b, loc, below, above));
      return SmallVector<Value>{before, decided};
    })[0];
  }
};

} // namespace

const Generator *tc::codegen::sortGenerator() {
  static const SortGenerator generator;
  return &generator;
}
