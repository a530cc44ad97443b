//===- Loops.cpp - the "gpu.rows" and "gpu.flat" strategies: memory-bound GPU kernels ----------------------------===//
//
// gpu-rows: a block per row of the largest output. Reductions along the row are shared out among the block's threads
// and combined by warp shuffles and one exchange through shared memory; the row's elements are then computed 4 a thread
// and access. A row is read from memory once and comes from L1 afterwards. gpu-flat: no reduction along rows; a thread
// computes 4 neighbouring elements of the output.
//
// Parameters: include/tc/Dialect/Kernel/IR/Schedules.td.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "GPU/Gpu.h"
#include "tc/Analysis/LikelySizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen::gpu;

namespace {

Type elementOf(Value value) { return cast<RankedTensorType>(value.getType()).getElementType(); }

/// The output with the most elements.
unsigned largestOutput(ValueRange values) {
  unsigned best = 0;
  double most = -1;
  for (unsigned i = 0; i < values.size(); ++i) {
    const double count = getLikelyCount(values[i]);
    if (count > most) {
      most = count;
      best = i;
    }
  }
  return best;
}

template <typename Schedule> Schedule makeSchedule(const RegionProblem &region, int64_t threads) {
  typename Schedule::Params params;
  params.block = threads;
  params.space = largestOutput(region.getYielded());
  return params.get(region.getContext());
}

/// Writes outputs other than the spanning one element by element, shared out among `threads` threads of the first
/// block.
void writeOthers(Emitter &e, ValueRange values, unsigned space, Value first, Value thread, int64_t threads) {
  bool any = values.size() > 1;
  if (!any)
    return;
  e.ifThen(first, [&] {
    for (unsigned o = 0; o < values.size(); ++o) {
      Value value = values[o];
      SmallVector<AffineExpr> own = prim::getSizes(value);
      if (o == space || own == prim::getSizes(values[space]))
        continue;
      AffineExpr count = prim::product(e.builder().getContext(), own);
      e.loop(thread, e.size(count), threads, [&](Index linear) {
        SmallVector<Index> at = e.delinearize(linear, own);
        e.store(e.emit(value, at), e.output(o), elementOf(value), own, at);
      });
    }
  });
}

/// Rows of one output, with reductions along them.
struct RowsProblem {
  Value root;
  /// Length of the longest of these reductions.
  int64_t length;
  /// The output's dims that number the blocks: all but the last where the region computes whole rows, else all.
  SmallVector<AffineExpr> rows;
};

class RowsGenerator final : public GeneratorFor<kernel::GpuRowsAttr, RowsProblem> {
public:
  std::optional<RowsProblem> analyze(const RegionProblem &region) const override {
    if (region.getYielded().size() != 1)
      return std::nullopt;
    const Value root = region.getYielded().front();
    const SmallVector<AffineExpr> sizes = prim::getSizes(root);
    int64_t length = 0;
    bool spansRow = false;
    for (auto reduce : region.getBody().getOps<prim::ReduceOp>()) {
      const auto in = prim::getSizes(reduce.getOperand()), out = prim::getSizes(reduce.getResult());
      // All threads of a block must meet in every shared reduction: each lies along the rows of the grid, or is the
      // grid's point.
      for (auto [i, dim] : llvm::enumerate(reduce.getDims()))
        if (dim != int64_t(in.size() - reduce.getDims().size() + i))
          return std::nullopt;
      const bool isAlongRow = in == sizes && reduce.getDims().size() == 1;
      if (!isAlongRow && out != sizes)
        return std::nullopt;
      if (llvm::is_contained(reduce.getDims(), int64_t(in.size()) - 1)) {
        length = std::max(length, std::max<int64_t>(1, getLikelySize(in.back(), reduce, usual::kRowLength)));
        spansRow |= in == sizes;
      }
    }
    if (length == 0)
      return std::nullopt;
    return RowsProblem{root, length, spansRow ? SmallVector<AffineExpr>(ArrayRef(sizes).drop_back()) : sizes};
  }

  FailureOr<kernel::GpuRowsAttr> decide(const RegionProblem &region, const RowsProblem &p) const override {
    // 4 elements a thread; a warp for short rows, at most 256 threads.
    int64_t threads =
        std::min<int64_t>(256, std::max<int64_t>(machine::kWarpThreads, int64_t(llvm::PowerOf2Ceil(p.length / 4))));
    return makeSchedule<kernel::GpuRowsAttr>(region, threads);
  }

  SmallVector<Launch> makeLaunches(const RowsProblem &p, kernel::GpuRowsAttr schedule) const override {
    MLIRContext *context = schedule.getContext();
    Launch launch;
    launch.tasks = prim::product(context, p.rows);
    launch.device = deviceAttr(context, schedule.getBlock());
    return {launch};
  }

  void emitTasks(const RowsProblem &p, kernel::GpuRowsAttr schedule, unsigned, Emitter &e, Value begin,
                 Value) const override {
    const Value root = p.root;
    int64_t threads = schedule.getBlock();
    makeTeam(e, threads);
    const SmallVector<AffineExpr> sizes = prim::getSizes(root), &rows = p.rows;
    SmallVector<Index> at = e.delinearize(e.uniform(begin), rows);
    if (rows.size() == sizes.size()) { // the output has one element a row
      Value value = e.emit(root, at);
      Value leads = arith::CmpIOp::create(e.builder(), e.loc(), arith::CmpIPredicate::eq, e.team->member, e.i64(0));
      e.ifThen(leads, [&] { e.store(value, e.output(0), elementOf(root), sizes, at); });
      return;
    }
    AffineExpr last = sizes.back();
    int64_t width = e.width();
    auto write = [&](const Index &position) {
      SmallVector<Index> full = at;
      full.push_back(position);
      e.store(e.emit(root, full), e.output(0), elementOf(root), sizes, full);
    };
    if (prim::getConstantSize(last).value_or(1) % width == 0) {
      e.loop(
          e.mul(e.team->member, e.i64(width)), e.size(last), width * threads,
          [&](Index iv) { write(e.contiguous(iv)); }, width);
    } else {
      e.loop(e.team->member, e.size(last), threads, [&](Index iv) { write(iv); });
    }
  }
};

/// The region's outputs.
struct FlatProblem {
  ValueRange values;
};

class FlatGenerator final : public GeneratorFor<kernel::GpuFlatAttr, FlatProblem> {
public:
  std::optional<FlatProblem> analyze(const RegionProblem &region) const override {
    return FlatProblem{region.getYielded()};
  }

  FailureOr<kernel::GpuFlatAttr> decide(const RegionProblem &region, const FlatProblem &) const override {
    return makeSchedule<kernel::GpuFlatAttr>(region, 256);
  }

  SmallVector<Launch> makeLaunches(const FlatProblem &p, kernel::GpuFlatAttr schedule) const override {
    MLIRContext *context = schedule.getContext();
    Launch launch;
    Value root = p.values[schedule.getSpace()];
    int64_t perBlock = schedule.getBlock() * lanesOf(root);
    launch.tasks = prim::simplifySize(prim::product(context, prim::getSizes(root)).ceilDiv(perBlock));
    launch.device = deviceAttr(context, schedule.getBlock());
    return {launch};
  }

  void emitTasks(const FlatProblem &p, kernel::GpuFlatAttr schedule, unsigned, Emitter &e, Value begin,
                 Value) const override {
    const ValueRange values = p.values;
    unsigned space = schedule.getSpace();
    int64_t threads = schedule.getBlock();
    Value root = values[space];
    SmallVector<AffineExpr> sizes = prim::getSizes(root);
    int64_t lanes = lanesOf(root);
    e.alignedBuffers = true;
    e.argReduceLanes = true;
    Value thread = threadIndex(e);
    Value start = e.mul(e.add(e.mul(begin, e.i64(threads)), thread), e.i64(lanes));
    Value count = e.sizeProduct(sizes);
    // A loop of at most one turn: the guard of the last block.
    e.loop(
        start, e.min(count, e.add(start, e.i64(lanes))), lanes,
        [&](Index iv) {
          SmallVector<Index> at = e.delinearize(lanes == 1 ? iv : e.contiguous(iv), sizes);
          for (unsigned o = 0; o < values.size(); ++o)
            if (prim::getSizes(values[o]) == sizes)
              e.store(e.emit(values[o], at), e.output(o), elementOf(values[o]), sizes, at);
        },
        lanes);
    Value first = arith::CmpIOp::create(e.builder(), e.loc(), arith::CmpIPredicate::eq, begin, e.i64(0));
    writeOthers(e, values, space, first, thread, threads);
  }

private:
  /// 4 where rows split into whole groups of 4, so that a group never crosses rows; else 1.
  static int64_t lanesOf(Value root) {
    SmallVector<AffineExpr> sizes = prim::getSizes(root);
    if (sizes.empty())
      return 1;
    auto last = prim::getConstantSize(sizes.back());
    return last && *last > 0 && *last % 4 == 0 ? 4 : 1;
  }
};

} // namespace

const Generator *tc::codegen::gpuRowsGenerator() {
  static const RowsGenerator generator;
  return &generator;
}
const Generator *tc::codegen::gpuFlatGenerator() {
  static const FlatGenerator generator;
  return &generator;
}
