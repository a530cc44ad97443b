//===- Scatter.cpp - the "cpu.scatter" strategy: prim.scatter_nd and prim.scatter_elements -----------------------===//
//
// Updates are applied in row-major order by one task for each element that they may meet in, so that the last one wins
// and sums are the same from any number of threads:
//
//   scatter_elements   a task is a block of lines along the axis
//   scatter_nd         a task is a block of columns of the slices that the indices name
//
// A task copies its part of the source first, unless the result stands in the source's memory.
//
// Parameters: include/tc/Dialect/Kernel/IR/Schedules.td.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Common/Lines.h"
#include "tc/Analysis/LikelySizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

namespace {

using Schedule = kernel::CpuScatterAttr;

/// A scatter_nd seen as rows of `columns`, or a scatter_elements seen as lines.
struct Problem {
  Operation *op;
  std::optional<prim::ReduceKind> kind;
  Value source, indices, updates;
  /// Of the source: the dims that indices name, and the slice after them (scatter_nd).
  SmallVector<AffineExpr> named, slice;
  std::optional<Lines> lines;

  Type element() const { return cast<RankedTensorType>(source.getType()).getElementType(); }
  AffineExpr columns() const { return prim::product(op->getContext(), slice); }
};

std::optional<Problem> analyzeScatter(const RegionProblem &region) {
  Problem p;
  if (auto nd = region.findYielded<prim::ScatterNDOp>()) {
    p = {nd, nd.getKind(), nd.getSource(), nd.getIndices(), nd.getUpdates(), {}, {}, std::nullopt};
    SmallVector<AffineExpr> sizes = prim::getSizes(p.source);
    int64_t depth = *prim::getConstantSize(prim::getSizes(p.indices).back());
    p.named.assign(sizes.begin(), sizes.begin() + depth);
    p.slice.assign(sizes.begin() + depth, sizes.end());
    return p;
  }
  if (auto elements = region.findYielded<prim::ScatterElementsOp>()) {
    p = {elements,
         elements.getKind(),
         elements.getSource(),
         elements.getIndices(),
         elements.getUpdates(),
         {},
         {},
         Lines(elements.getSource(), elements.getAxis())};
    return p;
  }
  return std::nullopt;
}

class Task {
public:
  Task(Emitter &e, const Problem &p, int64_t block) : e(e), p(p), block(block), b(e.builder()) {
    sizes = prim::getSizes(p.source);
  }

  void run(Index task) {
    // Without elements there is nothing that an index could name.
    Value some = arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::sgt,
                                       e.size(prim::product(b.getContext(), sizes)), e.i64(0));
    e.ifThen(some, [&] { p.lines ? runLines(task) : runSlices(task); });
  }

private:
  void copyElement(ArrayRef<Index> at) { e.store(e.emit(p.source, at), e.output(0), p.element(), sizes, at); }

  /// out[offset] = or combine= the update at `from`.
  void update(const Index &offset, ArrayRef<Index> from) {
    Value value = e.emit(p.updates, from);
    if (!offset.isUniform())
      value = e.broadcast(value);
    if (p.kind) {
      Value old = e.loadAt(e.output(0), p.element(), offset);
      Value sum = e.combine(*p.kind, e.accumulatorOf(p.element()), e.toAccumulator(old), e.toAccumulator(value));
      value = e.fromAccumulator(sum, p.element());
    }
    e.storeAt(value, e.output(0), p.element(), offset);
  }

  void runLines(Index task) {
    const Lines &lines = *p.lines;
    SmallVector<AffineExpr> of = prim::getSizes(p.indices);
    size_t axis = lines.outer.size();
    copyUnlessInPlace(e, p.source, [&] {
      lines.forEachOfTask(e, task, block, /*lanes=*/true, /*vectors=*/1, [&](ArrayRef<LinePosition> one) {
        const LinePosition &line = one.front();
        if (lines.inner.empty())
          e.laneLoop(e.size(lines.length), prim::getConstantSize(lines.length),
                     [&](Index k) { copyElement(lines.at(e, line, k)); });
        else
          e.loop(e.i64(0), e.size(lines.length), 1, [&](Index k) { copyElement(lines.at(e, line, k)); });
      });
    });
    lines.forEachOfTask(e, task, block, /*lanes=*/false, /*vectors=*/1, [&](ArrayRef<LinePosition> one) {
      const LinePosition &line = one.front();
      SmallVector<Index> at = lines.at(e, line, e.constant(0));
      // Indices may cover less than the source in the other dims.
      Value covered;
      for (size_t i = 0; i < of.size(); ++i)
        if (i != axis && of[i] != sizes[i]) {
          Value inside =
              arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::slt, e.materialize(at[i]), e.size(of[i]));
          covered = covered ? Value(arith::AndIOp::create(b, e.loc(), covered, inside)) : inside;
        }
      auto apply = [&] {
        e.loop(e.i64(0), e.size(of[axis]), 1, [&](Index k) {
          at[axis] = k;
          SmallVector<Index> to(at);
          to[axis] = e.dataIndex(p.indices, e.emit(p.indices, at), lines.length, 0);
          update(e.linearize(to, sizes), at);
        });
      };
      if (covered)
        e.ifThen(covered, apply);
      else
        apply();
    });
  }

  void runSlices(Index task) {
    MLIRContext *context = b.getContext();
    Value count = e.size(p.columns());
    Value from = e.mul(task.base, e.i64(block)), to = e.min(e.add(from, e.i64(block)), count);
    bool wide = prim::getConstantSize(p.columns()) != std::optional<int64_t>(1);
    auto forEachColumn = [&](llvm::function_ref<void(Index)> body) {
      if (wide)
        e.laneLoop(to, std::nullopt, body, from);
      else
        body(e.constant(0));
    };
    auto columnsOf = [&](const Index &column) {
      return p.slice.empty() ? SmallVector<Index>{} : e.delinearize(column, p.slice);
    };
    copyUnlessInPlace(e, p.source, [&] {
      SmallVector<AffineExpr> whole{prim::product(context, sizes)};
      if (!wide) { // one task: everything
        e.laneLoop(e.size(whole[0]), prim::getConstantSize(whole[0]),
                   [&](Index linear) { copyElement(e.delinearize(linear, sizes)); });
        return;
      }
      e.loop(e.i64(0), e.size(prim::product(context, p.named)), 1, [&](Index row) {
        SmallVector<Index> at = p.named.empty() ? SmallVector<Index>{} : e.delinearize(row, p.named);
        forEachColumn([&](Index column) {
          SmallVector<Index> full(at);
          llvm::append_range(full, columnsOf(column));
          copyElement(full);
        });
      });
    });
    SmallVector<AffineExpr> tuples = prim::getSizes(p.indices);
    tuples.pop_back();
    e.loop(e.i64(0), e.size(prim::product(context, tuples)), 1, [&](Index row) {
      SmallVector<Index> tuple = tuples.empty() ? SmallVector<Index>{} : e.delinearize(row, tuples), at;
      for (auto [d, size] : llvm::enumerate(p.named)) {
        SmallVector<Index> position(tuple);
        position.push_back(e.constant(d));
        at.push_back(e.dataIndex(p.indices, e.emit(p.indices, position), size, 0));
      }
      forEachColumn([&](Index column) {
        SmallVector<Index> full(at), of(tuple), inner = columnsOf(column);
        llvm::append_range(full, inner);
        llvm::append_range(of, inner);
        update(e.linearize(full, sizes), of);
      });
    });
  }

  Emitter &e;
  const Problem &p;
  int64_t block;
  OpBuilder &b;
  SmallVector<AffineExpr> sizes;
};

class ScatterGenerator final : public GeneratorFor<Schedule, Problem> {
public:
  std::optional<Problem> analyze(const RegionProblem &region) const override { return analyzeScatter(region); }

  FailureOr<Schedule> decide(const RegionProblem &region, const Problem &p) const override {
    AffineExpr across = p.lines ? p.lines->innerCount() : p.columns();
    int64_t count = getLikelySize(across, p.op, usual::kRowLength);
    Schedule::Params params;
    params.block = count > 256 ? 256 : std::max<int64_t>(count, 1);
    return params.get(region.getContext());
  }

  SmallVector<Launch> makeLaunches(const Problem &p, Schedule schedule) const override {
    int64_t block = schedule.getBlock();
    Launch launch;
    launch.tasks = p.lines ? p.lines->tasks(block) : prim::simplifySize(p.columns().ceilDiv(block));
    allowInPlace(launch, p.source);
    return {launch};
  }

  void emitTasks(const Problem &p, Schedule schedule, unsigned, Emitter &e, Value begin, Value end) const override {
    e.loop(begin, end, 1, [&](Index task) { Task(e, p, schedule.getBlock()).run(task); });
  }
};

} // namespace

const Generator *tc::codegen::scatterGenerator() {
  static const ScatterGenerator generator;
  return &generator;
}
