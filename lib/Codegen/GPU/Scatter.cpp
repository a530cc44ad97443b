//===- Scatter.cpp - the "gpu.scatter" strategy -------------------------------------------------------------------===//
//
// Updates are applied in row-major order by the one thread that an element belongs to, so that the last one wins and
// sums are the same in each run. A line along the axis (scatter_elements), or a column of the slices that indices name
// (scatter_nd), is dealt to `groups` threads: element i to thread i mod groups, which looks at all updates and takes
// its own. Neighbouring threads look at the same update at once. Of many updates of slices each block has a range: its
// threads look at as many updates at once, and then apply one after another of those that are the block's, a column
// each.
//
// With an order (prim.scatter_nd) the updates of a slice stand together: `slices` belong to a block, whose threads find
// where those of each begin, by binary searches; then `across` threads along the columns times `along` along its
// updates combine them in registers. What threads along the updates have is combined in shared memory, in turn.
//
// Where the last of many updates wins, launches find the number of the last one (`winners`): none at first, then the
// greatest of those that name the cell, by atomics, whose order does not matter; then a thread an element takes it.
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

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

#include <array>

using namespace mlir;
using namespace tc;
using namespace tc::codegen;
using namespace tc::codegen::gpu;

namespace {

/// Updates of elements `cells` of each of `columns`: those of a line along the axis, or the slices that indices name.
struct ScatterProblem {
  Operation *op;
  std::optional<prim::ReduceKind> kind;
  Value source, indices, updates, order; // order: of updates of slices, or null
  std::optional<Lines> lines;            // scatter_elements
  SmallVector<AffineExpr> named, slice;  // scatter_nd: dims of the source
  AffineExpr cells, columns;

  Type element() const { return elementOf(source); }
  /// What updates are numbered over: indices, or tuples of them.
  SmallVector<AffineExpr> numbered() const {
    SmallVector<AffineExpr> sizes = prim::getSizes(indices);
    if (!lines)
      sizes.pop_back();
    return sizes;
  }
  AffineExpr updateCount() const { return prim::product(op->getContext(), numbered()); }
  /// What has a last update: elements of lines, else slices.
  AffineExpr winnerCount() const { return lines ? elementCount() : cells; }
  AffineExpr elementCount() const { return prim::product(op->getContext(), prim::getSizes(source)); }
  /// Of the launches with winners: a thread each.
  std::array<AffineExpr, 3> winnerItems() const { return {winnerCount(), updateCount(), elementCount()}; }
  /// Of numbers of updates.
  RankedTensorType winnersType() const {
    const unsigned bits = getLargestSize(updateCount(), op) > INT32_MAX ? 64 : 32;
    return prim::makeType(IntegerType::get(op->getContext(), bits), {winnerCount()});
  }
  SmallVector<AffineExpr> grid(int64_t groups) const {
    const AffineExpr dealt = getAffineConstantExpr(groups, op->getContext());
    // Neighbouring threads take neighbours in memory.
    if (!lines)
      return {dealt, columns};
    return {prim::product(op->getContext(), lines->outer), dealt, lines->innerCount()};
  }
};

// Updates that a thread looks at as fast as a block, and so many that launches look for the last ones.
constexpr int64_t kFewUpdates = 32, kManyUpdates = 4096;
// Threads of a block that has a range, or slices, and blocks for each processor.
constexpr int64_t kBlockOfRange = 256, kRangesPerProcessor = 4;
// Threads of a block whose slices have thousands of updates each; slices of a block, at most; updates in flight.
constexpr int64_t kBlockOfMany = 1024, kMany = 1024, kMostSlices = 128, kAtOnce = 4;

class ScatterCode {
public:
  ScatterCode(const ScatterProblem &p, int64_t groups, Emitter &e)
      : p(p), groups(groups), e(e), b(e.builder()), sizes(prim::getSizes(p.source)) {}

  /// The slices of a range, by a block.
  void emitRange(const Index &range, int64_t ranges, int64_t threads) {
    const int64_t warps = threads / machine::kWarpThreads;
    const Value thread = threadIndex(e), cells = e.size(p.cells), columns = e.size(p.columns);
    const Value size = e.divUnsigned(e.add(cells, e.i64(ranges - 1)), e.i64(ranges));
    const Value first = e.min(e.mul(range.base, size), cells), end = e.min(e.add(first, size), cells);
    const SmallVector<AffineExpr> slices{p.cells, p.columns};
    copyUnlessInPlace(e, p.source, [&] {
      e.loop(e.add(e.mul(first, columns), thread), e.mul(end, columns), threads, [&](Index linear) {
        const SmallVector<Index> at = e.delinearize(linear, slices);
        const SmallVector<Index> to = placeOf({e.constant(0), at[1]}, at[0]);
        e.store(e.emit(p.source, to), e.output(0), p.element(), sizes, to);
      });
    });
    const Type i32 = b.getI32Type();
    const Value words = sharedArray(e, "updates", i32, warps),
                lane = e.remUnsigned(thread, e.i64(machine::kWarpThreads));
    const Value all = arith::ConstantIntOp::create(b, e.loc(), i32, -1),
                one = arith::ConstantIntOp::create(b, e.loc(), i32, 1);
    auto wide = [&](Value x) -> Value { return arith::ExtUIOp::create(b, e.loc(), b.getI64Type(), x); };
    const Value count = e.sizeProduct(p.numbered());
    e.loop(e.i64(0), count, threads, [&](Index turn) {
      const Value own = e.add(turn.base, thread);
      const Index cell = cellOf(e.uniform(e.min(own, e.sub(count, e.i64(1)))));
      const Value isOwn = both(compare(arith::CmpIPredicate::slt, own, count),
                               both(compare(arith::CmpIPredicate::sge, cell.base, first),
                                    compare(arith::CmpIPredicate::slt, cell.base, end)));
      const Value vote = NVVM::VoteSyncOp::create(b, e.loc(), i32, all, isOwn, NVVM::VoteSyncKind::ballot);
      barrier(e); // the elements are there, or the words have been read
      e.ifThen(compare(arith::CmpIPredicate::eq, lane, e.i64(0)),
               [&] { e.storeAt(vote, words, i32, e.uniform(e.divUnsigned(thread, e.i64(machine::kWarpThreads)))); });
      barrier(e);
      e.loop(e.i64(0), e.i64(warps), 1, [&](Index warp) {
        const Value bits = e.loadAt(words, i32, warp);
        const Value before = e.add(turn.base, e.mul(warp.base, e.i64(machine::kWarpThreads)));
        e.loop(e.i64(0), wide(LLVM::CtPopOp::create(b, e.loc(), i32, bits)), 1, bits, [&](Index, ValueRange left) {
          const Value bit = LLVM::CountTrailingZerosOp::create(b, e.loc(), i32, left[0], /*is_zero_poison=*/false);
          const Index row = e.uniform(e.add(before, wide(bit)));
          e.loop(thread, columns, threads,
                 [&](Index column) { updateSlice({e.constant(0), column}, e.constant(0), row); });
          return SmallVector<Value>{both(left[0], arith::SubIOp::create(b, e.loc(), left[0], one))};
        });
      });
    });
  }

  /// The slices of a block, whose updates have an order.
  void emitOrdered(const Index &task, kernel::GpuScatterAttr s) {
    const int64_t across = s.getAcross(), along = s.getAlong(), teams = s.getBlock() / (across * along);
    const Value thread = threadIndex(e), cells = e.size(p.cells), first = e.mul(task.base, e.i64(s.getSlices()));
    const Value starts = sharedArray(e, "starts", b.getI64Type(), s.getSlices() + 1);
    e.loop(thread, e.i64(s.getSlices() + 1), s.getBlock(),
           [&](Index slot) { e.storeAt(firstUpdateOf(e.add(first, slot.base)), starts, b.getI64Type(), slot); });
    barrier(e);
    const Value lane = e.remUnsigned(thread, e.i64(across)),
                row = e.remUnsigned(e.divUnsigned(thread, e.i64(across)), e.i64(along)),
                team = e.divUnsigned(thread, e.i64(across * along));
    // Without elements no position is one of the source.
    const Value some = compare(arith::CmpIPredicate::sgt, e.size(prim::product(b.getContext(), sizes)), e.i64(0));
    e.ifThen(some, [&] {
      e.loop(team, e.i64(s.getSlices()), teams, [&](Index slot) {
        const Value cell = e.add(first, slot.base);
        const Value begin = e.loadAt(starts, b.getI64Type(), slot),
                    end = e.loadAt(starts, b.getI64Type(), e.uniform(e.add(slot.base, e.i64(1))));
        const Index own = e.uniform(e.min(cell, e.sub(cells, e.i64(1))));
        e.loop(e.i64(0), e.size(p.columns), across, [&](Index firstColumn) {
          const Value column = e.add(firstColumn.base, lane);
          const Value isInside = both(compare(arith::CmpIPredicate::slt, cell, cells),
                                      compare(arith::CmpIPredicate::slt, column, e.size(p.columns)));
          const Index known = e.uniform(e.min(column, e.sub(e.size(p.columns), e.i64(1))));
          const SmallVector<Index> to = placeOf({e.constant(0), known}, own);
          Value result = p.kind ? combineUpdates(to, known, e.add(begin, row), end, row, along)
                                : lastUpdate(to, known, begin, end);
          Value stores = isInside;
          if (along > 1) {
            result = combineRows(result, thread, row, across, along, s.getBlock());
            stores = both(stores, compare(arith::CmpIPredicate::eq, row, e.i64(0)));
          }
          e.ifThen(stores, [&] {
            e.store(p.kind ? e.fromAccumulator(result, p.element()) : result, e.output(0), p.element(), sizes, to);
          });
        });
      });
    });
  }

  /// No update is the last one yet.
  void emitNoWinner(const Index &cell) { e.storeAt(winner(-1), e.output(0), winnerType(), cell); }

  /// Update `row` is one of what it names.
  void emitCandidate(const Index &row) {
    const Value some = compare(arith::CmpIPredicate::sgt, e.size(p.winnerCount()), e.i64(0));
    e.ifThen(some, [&] {
      Index cell = e.constant(0);
      if (p.lines) {
        const SmallVector<Index> from = tupleAt(row);
        SmallVector<Index> to(from);
        to[p.lines->outer.size()] = namedBy(from, p.lines->length);
        cell = e.linearize(to, sizes);
      } else {
        cell = cellOf(row);
      }
      const Type type = winnerType();
      const Value number = type == row.base.getType() ? row.base : arith::TruncIOp::create(b, e.loc(), type, row.base);
      LLVM::AtomicRMWOp::create(b, e.loc(), LLVM::AtomicBinOp::max, e.address(e.output(0), type, cell.base), number,
                                LLVM::AtomicOrdering::monotonic);
    });
  }

  /// The element number `item` of the result.
  void emitWinner(const Index &item) {
    const SmallVector<Index> to = e.delinearize(item, sizes);
    const Index cell = p.lines           ? item
                       : p.named.empty() ? e.constant(0)
                                         : e.linearize(ArrayRef(to).take_front(p.named.size()), p.named);
    const Value number = e.loadAt(e.input(e.region().getNumOperands() + 1), winnerType(), cell);
    const Value result = e.branch(
        compare(arith::CmpIPredicate::sge, number, winner(0)), p.element(), /*lanes=*/false,
        [&] {
          const Type i64 = b.getI64Type();
          const Index row =
              e.uniform(number.getType() == i64 ? number : arith::ExtUIOp::create(b, e.loc(), i64, number));
          SmallVector<Index> from = tupleAt(row);
          if (!p.lines)
            llvm::append_range(from, ArrayRef(to).drop_front(p.named.size()));
          return e.emit(p.updates, from);
        },
        [&] { return e.emit(p.source, to); });
    e.store(result, e.output(0), p.element(), sizes, to);
  }

  void emit(ArrayRef<Index> at) {
    const Index &group = p.lines ? at[1] : at[0];
    copyUnlessInPlace(e, p.source, [&] {
      e.loop(group.base, e.size(p.cells), groups, [&](Index cell) {
        const SmallVector<Index> to = placeOf(at, cell);
        e.store(e.emit(p.source, to), e.output(0), p.element(), sizes, to);
      });
    });
    // Without elements there is nothing that an index could name.
    const Value some = arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::sgt, e.size(p.cells), e.i64(0));
    e.ifThen(some, [&] { p.lines ? updateLine(at, group) : updateSlices(at, group); });
  }

private:
  Type winnerType() const { return p.winnersType().getElementType(); }
  Value winner(int64_t number) const { return arith::ConstantIntOp::create(b, e.loc(), winnerType(), number); }
  Value compare(arith::CmpIPredicate predicate, Value x, Value y) const {
    return arith::CmpIOp::create(b, e.loc(), predicate, x, y);
  }
  Value both(Value x, Value y) const { return arith::AndIOp::create(b, e.loc(), x, y); }

  /// The update that stands at `place` of the order.
  Index updateAt(Value place) { return e.uniform(e.emit(p.order, {e.uniform(place)})); }

  /// The first place in the order whose update names no slice before `cell`.
  Value firstUpdateOf(Value cell) {
    const AffineExpr updates = p.updateCount();
    const int64_t bits = int64_t(llvm::Log2_64(uint64_t(std::max<int64_t>(getLargestSize(updates, p.op), 1)))) + 1;
    const Value count = e.size(updates), one = e.i64(1);
    auto search = [&]() -> Value {
      return e.loop(e.i64(0), e.i64(bits), 1, {e.i64(0), e.i64(int64_t(1) << (bits - 1))}, [&](Index, ValueRange now) {
        const Value next = e.add(now[0], now[1]);
        const Value named = cellOf(updateAt(e.sub(e.min(next, count), one))).base;
        const Value isBefore =
            both(compare(arith::CmpIPredicate::sle, next, count), compare(arith::CmpIPredicate::slt, named, cell));
        return SmallVector<Value>{arith::SelectOp::create(b, e.loc(), isBefore, next, now[0]),
                                  arith::ShRUIOp::create(b, e.loc(), now[1], one)};
      })[0];
    };
    return e.branch(compare(arith::CmpIPredicate::sgt, count, e.i64(0)), b.getI64Type(), /*lanes=*/false, search,
                    [&] { return e.i64(0); });
  }

  Value updateOf(const Index &row, const Index &column) {
    SmallVector<Index> from = tupleAt(row);
    if (!p.slice.empty())
      llvm::append_range(from, e.delinearize(column, p.slice));
    return e.emit(p.updates, from);
  }

  /// What `row` of a slice's threads makes of its updates, from `begin` in the order on: the first one has the source.
  Value combineUpdates(ArrayRef<Index> to, const Index &column, Value begin, Value end, Value row, int64_t along) {
    const Type type = e.accumulatorOf(p.element());
    Value result = e.toAccumulator(e.emit(p.source, to));
    if (along > 1)
      result = arith::SelectOp::create(b, e.loc(), compare(arith::CmpIPredicate::eq, row, e.i64(0)), result,
                                       e.neutral(*p.kind, type));
    const Value left = arith::MaxSIOp::create(b, e.loc(), e.sub(e.add(end, e.i64(along - 1)), begin), e.i64(0));
    const int64_t step = along * kAtOnce;
    const Value last = e.add(begin, e.mul(e.divUnsigned(left, e.i64(step)), e.i64(step)));
    auto combineFrom = [&](Value start, Value stop, int64_t count, Value before) {
      return e.loop(start, stop, along * count, before, [&](Index from, ValueRange now) {
        SmallVector<Index> rows;
        for (int64_t i = 0; i < count; ++i)
          rows.push_back(updateAt(e.add(from.base, e.i64(i * along))));
        SmallVector<Value> values;
        for (const Index &update : rows)
          values.push_back(e.toAccumulator(updateOf(update, column)));
        Value sum = now[0];
        for (const Value value : values)
          sum = e.combine(*p.kind, type, sum, value);
        return SmallVector<Value>{sum};
      })[0];
    };
    return combineFrom(last, end, 1, combineFrom(begin, last, kAtOnce, result));
  }

  /// The last of a slice's updates, or what the source has.
  Value lastUpdate(ArrayRef<Index> to, const Index &column, Value begin, Value end) {
    return e.branch(
        compare(arith::CmpIPredicate::slt, begin, end), p.element(), /*lanes=*/false,
        [&] { return updateOf(updateAt(e.sub(end, e.i64(1))), column); }, [&] { return e.emit(p.source, to); });
  }

  /// What the threads along the updates have, combined, in the first of them.
  Value combineRows(Value own, Value thread, Value row, int64_t across, int64_t along, int64_t block) {
    const Type type = e.accumulatorOf(p.element());
    const Value words = sharedArray(e, "rows", Emitter::memoryType(type), block);
    for (int64_t half = along / 2; half > 0; half /= 2) {
      e.storeAt(own, words, type, e.uniform(thread));
      barrier(e);
      const Value isFirst = compare(arith::CmpIPredicate::slt, row, e.i64(half));
      const Value place = arith::SelectOp::create(b, e.loc(), isFirst, e.add(thread, e.i64(half * across)), thread);
      const Value other = e.loadAt(words, type, e.uniform(place));
      own = arith::SelectOp::create(b, e.loc(), isFirst, e.combine(*p.kind, type, own, other), own);
      barrier(e); // what was written has been read
    }
    return own;
  }

  SmallVector<Index> placeOf(ArrayRef<Index> at, const Index &cell) {
    if (p.lines)
      return p.lines->at(e, {at[0], at[2]}, cell);
    SmallVector<Index> place = p.named.empty() ? SmallVector<Index>{} : e.delinearize(cell, p.named);
    if (!p.slice.empty())
      llvm::append_range(place, e.delinearize(at[1], p.slice));
    return place;
  }

  /// What indices name, `cell`, becomes or is combined with the update at `from`, if it is the group's.
  void update(ArrayRef<Index> at, const Index &group, const Index &cell, ArrayRef<Index> from) {
    auto apply = [&] {
      const Index offset = e.linearize(placeOf(at, cell), sizes);
      Value value = e.emit(p.updates, from);
      if (p.kind) {
        const Value old = e.loadAt(e.output(0), p.element(), offset);
        value = e.fromAccumulator(
            e.combine(*p.kind, e.accumulatorOf(p.element()), e.toAccumulator(old), e.toAccumulator(value)),
            p.element());
      }
      e.storeAt(value, e.output(0), p.element(), offset);
    };
    if (groups == 1)
      return apply();
    const Value of = arith::AndIOp::create(b, e.loc(), cell.base, e.i64(groups - 1));
    e.ifThen(arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::eq, of, group.base), apply);
  }

  Index namedBy(ArrayRef<Index> position, AffineExpr size) {
    return e.dataIndex(p.indices, e.emit(p.indices, position), size, e.depthOf(position));
  }

  void updateLine(ArrayRef<Index> at, const Index &group) {
    const SmallVector<AffineExpr> of = prim::getSizes(p.indices);
    const size_t axis = p.lines->outer.size();
    SmallVector<Index> from = placeOf(at, e.constant(0));
    // Indices may cover less than the source in the other dims.
    Value covered;
    for (size_t i = 0; i < of.size(); ++i)
      if (i != axis && of[i] != sizes[i])
        covered = within(covered, from[i].base, of[i]);
    auto updateAll = [&] {
      e.loop(e.i64(0), e.size(of[axis]), 1, [&](Index k) {
        from[axis] = k;
        update(at, group, namedBy(from, p.lines->length), from);
      });
    };
    covered ? e.ifThen(covered, updateAll) : updateAll();
  }

  SmallVector<Index> tupleAt(const Index &row) {
    const SmallVector<AffineExpr> of = p.numbered();
    return of.empty() ? SmallVector<Index>{} : e.delinearize(row, of);
  }

  /// What update `row` names.
  Index cellOf(const Index &row) {
    const SmallVector<Index> tuple = tupleAt(row);
    SmallVector<Index> cell;
    for (auto [dim, size] : llvm::enumerate(p.named)) {
      SmallVector<Index> position(tuple);
      position.push_back(e.constant(dim));
      cell.push_back(namedBy(position, size));
    }
    return cell.empty() ? e.constant(0) : e.linearize(cell, p.named);
  }

  void updateSlice(ArrayRef<Index> at, const Index &group, const Index &row) {
    SmallVector<Index> from = tupleAt(row);
    if (!p.slice.empty())
      llvm::append_range(from, e.delinearize(at[1], p.slice));
    update(at, group, cellOf(row), from);
  }

  void updateSlices(ArrayRef<Index> at, const Index &group) {
    e.loop(e.i64(0), e.sizeProduct(p.numbered()), 1, [&](Index row) { updateSlice(at, group, row); });
  }

  Value within(Value condition, Value position, AffineExpr size) {
    const Value inside = arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::slt, position, e.size(size));
    return condition ? Value(arith::AndIOp::create(b, e.loc(), condition, inside)) : inside;
  }

  const ScatterProblem &p;
  const int64_t groups;
  Emitter &e;
  OpBuilder &b;
  const SmallVector<AffineExpr> sizes;
};

class ScatterGenerator final : public GeneratorFor<kernel::GpuScatterAttr, ScatterProblem> {
public:
  std::optional<ScatterProblem> analyze(const RegionProblem &region) const override {
    MLIRContext *context = region.getContext();
    if (auto nd = region.findYielded<prim::ScatterNDOp>()) {
      ScatterProblem p{
          nd, nd.getKind(), nd.getSource(), nd.getIndices(), nd.getUpdates(), nd.getOrder(), {}, {}, {}, {}, {}};
      const SmallVector<AffineExpr> sizes = prim::getSizes(p.source);
      const int64_t depth = *prim::getConstantSize(prim::getSizes(p.indices).back());
      p.named.assign(sizes.begin(), sizes.begin() + depth);
      p.slice.assign(sizes.begin() + depth, sizes.end());
      p.cells = prim::product(context, p.named);
      p.columns = prim::product(context, p.slice);
      return p;
    }
    if (auto elements = region.findYielded<prim::ScatterElementsOp>()) {
      ScatterProblem p{elements,
                       elements.getKind(),
                       elements.getSource(),
                       elements.getIndices(),
                       elements.getUpdates(),
                       Value(),
                       Lines(elements.getSource(), elements.getAxis()),
                       {},
                       {},
                       {},
                       {}};
      p.cells = p.lines->length;
      p.columns = prim::simplifySize(prim::product(context, p.lines->outer) * p.lines->innerCount());
      return p;
    }
    return std::nullopt;
  }

  FailureOr<kernel::GpuScatterAttr> decide(const RegionProblem &region, const ScatterProblem &p) const override {
    // Threads for all processors, of which each has elements.
    constexpr int64_t kThreads = 1 << 15;
    const int64_t columns = std::max<int64_t>(1, getLikelySize(p.columns, p.op, usual::kRowLength)),
                  cells = std::max<int64_t>(1, getLikelySize(p.cells, p.op, usual::kRowLength));
    kernel::GpuScatterAttr::Params params;
    if (p.order) {
      decideOrdered(region, p, cells, columns, params);
      return params.get(region.getContext());
    }
    if (takesWinners(p)) {
      params.winners = true;
      return params.get(region.getContext());
    }
    if (!p.lines && getLikelyCount(ArrayRef(prim::getSizes(p.indices)).drop_back(), p.op) > double(kFewUpdates)) {
      params.block = kBlockOfRange;
      params.ranges = std::min<int64_t>(cells, kRangesPerProcessor *
                                                   machine::getDefaultGpu(region.getContext()).getMultiprocessors());
      return params.get(region.getContext());
    }
    params.groups = int64_t(llvm::PowerOf2Ceil(std::min<int64_t>(cells, llvm::divideCeil(kThreads, columns))));
    return params.get(region.getContext());
  }

  SmallVector<kernel::ScheduleAttr> decideOthersOnGpus(const RegionProblem &region,
                                                       const ScatterProblem &p) const override {
    const kernel::GpuScatterAttr chosen = *decide(region, p);
    if (chosen.getSlices())
      return othersOfOrdered(chosen);
    SmallVector<kernel::ScheduleAttr> others = withOtherBlocks(chosen);
    if (chosen.getWinners())
      return others;
    if (chosen.getRanges())
      for (int64_t ranges : {chosen.getRanges() * 2, chosen.getRanges() / 2}) {
        kernel::GpuScatterAttr::Params params = chosen.getParams();
        params.ranges = std::max<int64_t>(1, ranges);
        others.push_back(params.get(region.getContext()));
      }
    else
      for (int64_t groups : {chosen.getGroups() / 2, chosen.getGroups() / 4})
        if (groups >= 1) {
          kernel::GpuScatterAttr::Params params = chosen.getParams();
          params.groups = groups;
          others.push_back(params.get(region.getContext()));
        }
    return others;
  }

  SmallVector<Launch> makeLaunches(const ScatterProblem &p, kernel::GpuScatterAttr s) const override {
    if (s.getWinners()) {
      const std::array<AffineExpr, 3> items = p.winnerItems();
      Launch none = launchOf(items[0], s.getBlock()), marks = launchOf(items[1], s.getBlock());
      none.suffix = "_none";
      marks.suffix = "_winners";
      none.temporaries = marks.temporaries = {p.winnersType()};
      marks.tied = {int64_t(p.op->getParentOp()->getNumOperands()), 0};
      return {none, marks, launchOf(items[2], s.getBlock())};
    }
    Launch launch = launchOf(prim::product(s.getContext(), p.grid(s.getGroups())), s.getBlock());
    if (s.getRanges() || s.getSlices()) {
      launch.tasks = s.getSlices() ? prim::simplifySize(p.cells.ceilDiv(s.getSlices()))
                                   : getAffineConstantExpr(s.getRanges(), s.getContext());
      launch.device = deviceAttr(s.getContext(), s.getBlock());
    }
    allowInPlace(launch, p.source);
    return {launch};
  }

  void emitTasks(const ScatterProblem &p, kernel::GpuScatterAttr s, unsigned number, Emitter &e, Value begin,
                 Value) const override {
    if (s.getWinners()) {
      return forItem(e, p.winnerItems()[number], s.getBlock(), begin, [&](Index item) {
        ScatterCode code(p, 1, e);
        number == 0 ? code.emitNoWinner(item) : number == 1 ? code.emitCandidate(item) : code.emitWinner(item);
      });
    }
    if (s.getSlices())
      return ScatterCode(p, 1, e).emitOrdered(e.uniform(begin), s);
    if (s.getRanges())
      return ScatterCode(p, 1, e).emitRange(e.uniform(begin), s.getRanges(), s.getBlock());
    const SmallVector<AffineExpr> grid = p.grid(s.getGroups());
    forItem(e, prim::product(s.getContext(), grid), s.getBlock(), begin,
            [&](Index item) { ScatterCode(p, s.getGroups(), e).emit(e.delinearize(item, grid)); });
  }

private:
  /// Whether the last update wins, of many: of lines, in each of them more than a thread looks at as fast.
  static bool takesWinners(const ScatterProblem &p) {
    if (p.kind || getLikelyCount(p.numbered(), p.op) < double(kManyUpdates))
      return false;
    return !p.lines || getLikelySize(p.numbered()[p.lines->outer.size()], p.op, usual::kRowLength) > kFewUpdates;
  }

  /// Threads along the columns, then along as many updates as a slice has, and slices for all processors.
  static void decideOrdered(const RegionProblem &region, const ScatterProblem &p, int64_t cells, int64_t columns,
                            kernel::GpuScatterAttr::Params &params) {
    const int64_t each = int64_t(getLikelyCount(ArrayRef(prim::getSizes(p.indices)).drop_back(), p.op)) / cells;
    params.block = each >= kMany ? kBlockOfMany : kBlockOfRange;
    params.across = std::min<int64_t>(params.block, int64_t(llvm::PowerOf2Ceil(uint64_t(columns))));
    if (p.kind)
      params.along =
          std::clamp<int64_t>(int64_t(llvm::bit_floor(uint64_t(each / kAtOnce))), 1, params.block / params.across);
    const int64_t teams = params.block / (params.across * params.along);
    const int64_t blocks = kRangesPerProcessor * machine::getDefaultGpu(region.getContext()).getMultiprocessors();
    params.slices = teams * std::clamp<int64_t>(cells / (teams * blocks), 1, std::max<int64_t>(1, kMostSlices / teams));
  }

  static SmallVector<kernel::ScheduleAttr> othersOfOrdered(kernel::GpuScatterAttr chosen) {
    SmallVector<kernel::ScheduleAttr> others;
    auto add = [&](int64_t slices, int64_t along) {
      kernel::GpuScatterAttr::Params params = chosen.getParams();
      params.slices = slices;
      params.along = along;
      const int64_t teams = params.block / (params.across * along);
      if (slices > 0 && along > 0 && teams > 0 && slices % teams == 0)
        others.push_back(params.get(chosen.getContext()));
    };
    add(chosen.getSlices() * 2, chosen.getAlong());
    add(chosen.getSlices() / 2, chosen.getAlong());
    if (chosen.getAlong() > 1)
      add(chosen.getSlices() * 2, chosen.getAlong() / 2);
    return others;
  }
};

} // namespace

const Generator *tc::codegen::gpuScatterGenerator() {
  static const ScatterGenerator generator;
  return &generator;
}
