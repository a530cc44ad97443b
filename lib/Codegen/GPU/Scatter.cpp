//===- Scatter.cpp - the "gpu.scatter" strategy -------------------------------------------------------------------===//
//
// Updates are applied in row-major order by the one thread that an element belongs to, so that the last one wins and
// sums are the same in each run. A line along the axis (scatter_elements), or a column of the slices that indices name
// (scatter_nd), is dealt to `groups` threads: element i to thread i mod groups, which looks at all updates and takes
// its own. Neighbouring threads look at the same update at once. Of many updates of slices each block has a range: its
// threads look at as many updates at once, and then apply one after another of those that are the block's, a column
// each.
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

using namespace mlir;
using namespace tc;
using namespace tc::codegen;
using namespace tc::codegen::gpu;

namespace {

/// Updates of elements `cells` of each of `columns`: those of a line along the axis, or the slices that indices name.
struct ScatterProblem {
  Operation *op;
  std::optional<prim::ReduceKind> kind;
  Value source, indices, updates;
  std::optional<Lines> lines;           // scatter_elements
  SmallVector<AffineExpr> named, slice; // scatter_nd: dims of the source
  AffineExpr cells, columns;

  Type element() const { return elementOf(source); }
  SmallVector<AffineExpr> grid(int64_t groups) const {
    const AffineExpr dealt = getAffineConstantExpr(groups, op->getContext());
    // Neighbouring threads take neighbours in memory.
    if (!lines)
      return {dealt, columns};
    return {prim::product(op->getContext(), lines->outer), dealt, lines->innerCount()};
  }
};

// Updates that a thread looks at as fast as a block.
constexpr int64_t kFewUpdates = 32;
// Threads of a block that has a range, and blocks for each processor.
constexpr int64_t kBlockOfRange = 256, kRangesPerProcessor = 4;

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
    e.loop(e.add(e.mul(first, columns), thread), e.mul(end, columns), threads, [&](Index linear) {
      const SmallVector<Index> at = e.delinearize(linear, slices);
      const SmallVector<Index> to = placeOf({e.constant(0), at[1]}, at[0]);
      e.store(e.emit(p.source, to), e.output(0), p.element(), sizes, to);
    });
    const Type i32 = b.getI32Type();
    const Value words = sharedArray(e, "updates", i32, warps),
                lane = e.remUnsigned(thread, e.i64(machine::kWarpThreads));
    const Value all = arith::ConstantIntOp::create(b, e.loc(), i32, -1),
                one = arith::ConstantIntOp::create(b, e.loc(), i32, 1);
    auto compare = [&](arith::CmpIPredicate predicate, Value x, Value y) -> Value {
      return arith::CmpIOp::create(b, e.loc(), predicate, x, y);
    };
    auto both = [&](Value x, Value y) -> Value { return arith::AndIOp::create(b, e.loc(), x, y); };
    auto wide = [&](Value x) -> Value { return arith::ExtUIOp::create(b, e.loc(), b.getI64Type(), x); };
    const Value count = e.sizeProduct(tuples());
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

  void emit(ArrayRef<Index> at) {
    const Index &group = p.lines ? at[1] : at[0];
    e.loop(group.base, e.size(p.cells), groups, [&](Index cell) {
      const SmallVector<Index> to = placeOf(at, cell);
      e.store(e.emit(p.source, to), e.output(0), p.element(), sizes, to);
    });
    // Without elements there is nothing that an index could name.
    const Value some = arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::sgt, e.size(p.cells), e.i64(0));
    e.ifThen(some, [&] { p.lines ? updateLine(at, group) : updateSlices(at, group); });
  }

private:
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

  SmallVector<AffineExpr> tuples() const {
    SmallVector<AffineExpr> tuples = prim::getSizes(p.indices);
    tuples.pop_back();
    return tuples;
  }
  SmallVector<Index> tupleAt(const Index &row) {
    const SmallVector<AffineExpr> of = tuples();
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
    e.loop(e.i64(0), e.sizeProduct(tuples()), 1, [&](Index row) { updateSlice(at, group, row); });
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
      ScatterProblem p{nd, nd.getKind(), nd.getSource(), nd.getIndices(), nd.getUpdates(), {}, {}, {}, {}, {}};
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
    SmallVector<kernel::ScheduleAttr> others = withOtherBlocks(chosen);
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
    if (s.getRanges()) {
      Launch launch;
      launch.tasks = getAffineConstantExpr(s.getRanges(), s.getContext());
      launch.device = deviceAttr(s.getContext(), s.getBlock());
      return {launch};
    }
    return {launchOf(prim::product(s.getContext(), p.grid(s.getGroups())), s.getBlock())};
  }

  void emitTasks(const ScatterProblem &p, kernel::GpuScatterAttr s, unsigned, Emitter &e, Value begin,
                 Value) const override {
    if (s.getRanges())
      return ScatterCode(p, 1, e).emitRange(e.uniform(begin), s.getRanges(), s.getBlock());
    const SmallVector<AffineExpr> grid = p.grid(s.getGroups());
    forItem(e, prim::product(s.getContext(), grid), s.getBlock(), begin,
            [&](Index item) { ScatterCode(p, s.getGroups(), e).emit(e.delinearize(item, grid)); });
  }
};

} // namespace

const Generator *tc::codegen::gpuScatterGenerator() {
  static const ScatterGenerator generator;
  return &generator;
}
