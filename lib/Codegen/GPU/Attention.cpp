//===- Attention.cpp - the "gpu.attention" strategy: attention on tensor cores ------------------------------------===//
//
// A block takes tileT queries of one batch element and walks over tiles of tileS keys and values, which go through a
// ring in shared memory (SharedTile.h). Scores never leave the registers: a warp multiplies its 16 queries by a tile of
// keys, makes exponentials of the scores against the largest of their row so far, and multiplies these, as fragments of
// the second product, by the tile of values. Warpgroups multiply where the GPU has them (wgmma), else warps (mma.sync);
// the fragments, and so the softmax between, are the same. Maxima, sums and results are f32.
//
// With `producers` two warpgroups of 64 queries multiply in turns, so that one's exponentials go beside the other's
// products, and a third one copies for both (Ring.h). Else all copy, and what stands still in one block goes on in
// another of the processor.
//
// Keys that no query of a block sees are skipped; those that some see are masked in the tiles concerned alone. Blocks
// of a causal mask are numbered from the last queries on, which have most to do. Rows with no visible key give NaN, as
// softmax does; without any key at all the result is 0.
//
// Sources: Dao, "FlashAttention-2", section 3; Shah et al., "FlashAttention-3", section 3.1 (turns); the online softmax
// is Milakov and Gimelshein, "Online normalizer calculation for softmax".
//
// Parameters: include/tc/Dialect/Kernel/IR/Schedules.td.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "GPU/Attention.h"

#include "Common/EmitterHelpers.h"
#include "GPU/Ring.h"
#include "tc/Analysis/Access.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;
using namespace tc::codegen::gpu;

namespace {

// Larger heads' results do not fit the registers of 16 queries a warp.
constexpr int64_t kMostColumns = 256;
// Registers of a thread for scores, weights and results.
constexpr int64_t kMostRegisters = 176;
// Registers of a processor; what a thread has beside those.
constexpr int64_t kOtherRegisters = 44;
// The time of warpgroups that take turns, of that of two blocks of a processor.
constexpr double kProducersTime = 0.85;

/// [batch.., rows, columns] as an operand whose lines are rows, which are steps of K where `rowsAreDepth`.
TiledOperand operandOf(Value tensor, bool rowsAreDepth, int64_t perPiece) {
  const SmallVector<AffineExpr> sizes = prim::getSizes(tensor);
  const AffineExpr rows = sizes[sizes.size() - 2], columns = sizes.back();
  TiledOperand operand;
  operand.tensor = tensor;
  operand.outer = rowsAreDepth ? columns : rows;
  operand.depth = rowsAreDepth ? rows : columns;
  operand.alongDepth = !rowsAreDepth;
  operand.run = columns.getLargestKnownDivisor();
  operand.place = [rowsAreDepth](Emitter &, ArrayRef<Index> batch, const Index &outer, const Index &depth) {
    SmallVector<Index> at(batch);
    at.push_back(rowsAreDepth ? depth : outer);
    at.push_back(rowsAreDepth ? outer : depth);
    return Placed<SmallVector<Index>>{at, Value()};
  };
  const std::optional<StridedInput> view = inputThroughViews(tensor);
  if (!view || prim::getConstantSize(view->strides.back()) != 1 || !columns.isMultipleOf(perPiece) ||
      !view->offset.isMultipleOf(perPiece) || llvm::any_of(ArrayRef(view->strides).drop_back(), [&](AffineExpr stride) {
        return !stride.isMultipleOf(perPiece);
      }))
    return operand;
  operand.input = view->input;
  operand.locate = [view = *view, rowsAreDepth](Emitter &e, ArrayRef<Index> batch, Value outer, Value depth) {
    Value offset = e.add(e.size(view.offset), rowsAreDepth ? outer : depth);
    for (auto [index, stride] : llvm::zip(batch, view.strides))
      offset = e.add(offset, e.mul(index.base, e.size(stride)));
    const Value row = rowsAreDepth ? depth : outer;
    return Placed<Value>{e.add(offset, e.mul(row, e.size(view.strides[batch.size()]))), Value()};
  };
  return operand;
}

} // namespace

std::optional<TiledAttention> tc::codegen::gpu::asTiledAttention(prim::AttentionOp op) {
  TiledAttention p;
  p.op = op;
  p.element = elementOf(op.getQuery());
  if (!isa<Float16Type, BFloat16Type>(p.element) || elementOf(op.getKey()) != p.element ||
      elementOf(op.getValue()) != p.element ||
      (op.getMask() && !isa<Float16Type, BFloat16Type, Float32Type>(elementOf(op.getMask()))))
    return std::nullopt;
  const SmallVector<AffineExpr> query = prim::getSizes(op.getQuery()), key = prim::getSizes(op.getKey());
  const size_t rank = query.size();
  const auto d = prim::getConstantSize(query.back()), e = prim::getConstantSize(prim::getSizes(op.getValue()).back());
  if (!d || !e || *d == 0 || *e == 0 || *d > kMostColumns || *e > kMostColumns)
    return std::nullopt;
  p.batch.assign(query.begin(), query.end() - 2);
  p.T = query[rank - 2];
  p.S = key[rank - 2];
  p.D = *d;
  p.E = *e;
  const int64_t perPiece = kPieceBytes * 8 / p.element.getIntOrFloatBitWidth();
  p.query = operandOf(op.getQuery(), /*rowsAreDepth=*/false, perPiece);
  p.key = operandOf(op.getKey(), /*rowsAreDepth=*/false, perPiece);
  p.value = operandOf(op.getValue(), /*rowsAreDepth=*/true, perPiece);
  return p;
}

std::optional<TiledAttention> tc::codegen::gpu::asTiledAttention(const RegionProblem &region) {
  auto op = region.findAnchor<prim::AttentionOp>();
  std::optional<TiledAttention> p = op ? asTiledAttention(op) : std::nullopt;
  if (p)
    p->epilogue = region.findWholeEpilogue(op.getResult());
  return p && p->epilogue ? p : std::nullopt;
}

SmallVector<AffineExpr> TiledAttention::grid(AttentionSchedule s) const {
  SmallVector<AffineExpr> sizes = batch;
  sizes.push_back(prim::simplifySize(T.ceilDiv(s.getTileT())));
  return sizes;
}

int64_t tc::codegen::gpu::countThreads(AttentionSchedule s) {
  return s.getTileT() / kFragmentM * machine::kWarpThreads;
}

int64_t tc::codegen::gpu::lanesOf(const TiledAttention &p) { return p.E % kLanes == 0 ? kLanes : 1; }

AttentionLayout::AttentionLayout(const TiledAttention &p, AttentionSchedule s)
    : stages(s.getStages()),
      barrierBytes(s.getProducers() ? Ring::barrierBytes(1) + 2 * Ring::barrierBytes(s.getStages()) : 0) {
  const int64_t bytes = p.element.getIntOrFloatBitWidth() / 8, perLine = kLineBytes / bytes;
  query = {s.getTileT(), int64_t(llvm::alignTo(p.D, perLine)), bytes, /*alongDepth=*/true};
  key = {s.getTileS(), query.depth, bytes, /*alongDepth=*/true};
  value = {int64_t(llvm::alignTo(p.E, perLine)), s.getTileS(), bytes, /*alongDepth=*/false};
}

//===--- the strategy ---------------------------------------------------------------------------------------------===//

namespace {

/// Producers only copy.
bool isAsync(const TiledAttention &p, const AttentionLayout &layout) {
  return TileFiller::isAsync(p.query, layout.query) && TileFiller::isAsync(p.key, layout.key) &&
         TileFiller::isAsync(p.value, layout.value);
}

class AttentionGenerator final : public GeneratorFor<AttentionSchedule, TiledAttention> {
public:
  bool takesWhole(Operation *composite) const override {
    auto op = dyn_cast<prim::AttentionOp>(composite);
    return op && asTiledAttention(op).has_value();
  }

  std::optional<TiledAttention> analyze(const RegionProblem &region) const override { return asTiledAttention(region); }

  FailureOr<AttentionSchedule> decide(const RegionProblem &region, const TiledAttention &p) const override {
    const SmallVector<Costed> all = listSchedules(region, p);
    const auto best = llvm::min_element(all, [](const Costed &a, const Costed &b) { return a.cost < b.cost; });
    return best == all.end() ? FailureOr<AttentionSchedule>(failure()) : FailureOr<AttentionSchedule>(best->schedule);
  }

  std::optional<double> compareAtSizes(const RegionProblem &region, const TiledAttention &p,
                                       AttentionSchedule schedule) const override {
    return compareCosts<AttentionSchedule>(listSchedules(region, p), schedule);
  }

  /// Other tiles, and the best one with a longer ring.
  SmallVector<kernel::ScheduleAttr> decideOthersOnGpus(const RegionProblem &region,
                                                       const TiledAttention &p) const override {
    SmallVector<Costed> all = listSchedules(region, p);
    if (all.empty())
      return {};
    llvm::stable_sort(all, [](const Costed &a, const Costed &b) { return a.cost < b.cost; });
    SmallVector<kernel::ScheduleAttr> others;
    for (const Costed &other : ArrayRef(all).drop_front().take_front(kOtherTiles))
      others.push_back(other.schedule);
    AttentionSchedule::Params params = all.front().schedule.getParams();
    ++params.stages;
    const AttentionSchedule longer = params.get(region.getContext());
    if (AttentionLayout(p, longer).sharedBytes() <= region.getLimits().sharedBytes)
      others.push_back(longer);
    return others;
  }

private:
  // Other tiles than the cost model's first that are measured.
  static constexpr size_t kOtherTiles = 6;

  using Costed = CostedSchedule<AttentionSchedule>;
  /// The schedules that fit, with what they cost.
  SmallVector<Costed> listSchedules(const RegionProblem &region, const TiledAttention &p) const {
    const machine::GpuAttr gpu = machine::getDefaultGpu(region.getContext());
    const double queries = getLikelySize(p.T, p.op, usual::kKeys), keys = getLikelySize(p.S, p.op, usual::kKeys),
                 heads = getLikelySize(prim::product(region.getContext(), p.batch), p.op, usual::kHeads);
    const double processors = double(gpu.getMultiprocessors());
    SmallVector<Costed> all;
    // Fewer queries than a warpgroup's are for those that are no more.
    struct Shape {
      int64_t tileT;
      bool producers;
    };
    for (auto [tileT, producers] : {Shape{128, true}, {128, false}, {64, false}, {32, false}, {16, false}})
      for (int64_t tileS : {128, 64, 32}) {
        AttentionSchedule::Params params;
        params.tileT = tileT;
        params.tileS = tileS;
        params.producers = producers;
        const AttentionSchedule schedule = params.get(region.getContext());
        const AttentionLayout layout(p, schedule);
        const int64_t registers = tileS / 2 + tileS / 4 + layout.value.outer / 2;
        if (layout.sharedBytes() > region.getLimits().sharedBytes || registers > kMostRegisters ||
            (producers && !(region.getLimits().hasWarpGroups && isAsync(p, layout))) ||
            (tileT < kGroupM && queries > double(tileT)))
          continue;
        // While one block of a processor takes exponentials or waits for its copies, another multiplies.
        const int64_t resident = std::min(region.getLimits().sharedBytes / layout.sharedBytes(),
                                          kRegisters / (countThreads(schedule) * (registers + kOtherRegisters)));
        const double alone = producers ? kProducersTime : resident >= 2 ? 1 : tileT > kGroupM ? 1.12 : 1.3;
        // Scores of a tile, what its barriers and copies take in their time; the queries' own part.
        const double tile = double(tileT * tileS) + 2.0 * double(tileT + 2 * tileS) + 256, start = double(tileT) * 64;
        const double blocks = std::ceil(heads * std::ceil(queries / double(tileT)) / processors);
        const double cost = blocks * (std::ceil(keys / double(tileS)) * tile + start) * alone;
        all.push_back({cost, schedule});
      }
    return all;
  }

public:
  /// Of what f32's multiply-adds reach.
  Efficiency efficiency(const RegionProblem &, kernel::ScheduleAttr) const override { return {8, 1}; }

  SmallVector<Launch> makeLaunches(const TiledAttention &p, AttentionSchedule s) const override {
    Launch launch;
    launch.tasks = prim::product(s.getContext(), p.grid(s));
    launch.device = deviceAttr(s.getContext(), countThreads(s) + (s.getProducers() ? kGroupThreads : 0),
                               AttentionLayout(p, s).sharedBytes(), s.getProducers());
    return {launch};
  }

  void emitTasks(const TiledAttention &p, AttentionSchedule s, unsigned, Emitter &e, Value begin,
                 Value) const override {
    e.alignedBuffers = true;
    emitAttentionBlock(p, s, e, begin);
  }
};

} // namespace

const Generator *tc::codegen::gpuAttentionGenerator() {
  static const AttentionGenerator generator;
  return &generator;
}
