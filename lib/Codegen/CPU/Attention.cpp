//===- Attention.cpp - the "cpu.attention" strategy: tiled attention with an online softmax ----------------------===//
//
// A task is a block of queries of one batch element. It walks over blocks of keys and never holds more than one block
// of scores. Everything is transposed: scores[s][t] and the result[e][t] have the queries along the lanes, so that
//  - keys and values are the broadcast side of the micro-kernels (MicroKernel.h) and need no packing, only a copy of
//  their rows that
//    evaluates whatever stands before the anchor;
//  - the queries are packed once per task, the scores are born in the layout that the second product wants;
//  - maximum and sum of a row are lanes, not horizontal reductions.
// At the end the result is divided by the sums, transposed back in registers, and goes through the epilogue.
//
// Rows with no visible key give NaN, as softmax does; without any key at all the result is 0.
//
// Source: Dao et al., "FlashAttention", section 3.1; the online softmax is Milakov and Gimelshein, "Online normalizer
// calculation for softmax".
//
// Parameters: include/tc/Dialect/Kernel/IR/Schedules.td.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CPU/Attention.h"
#include "Common/Anchor.h"
#include "Common/Generators.h"
#include "tc/Analysis/LikelySizes.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;
using namespace tc::codegen::attention;

using Problem = AttentionProblem;

namespace {

// Keys of a block: whole micro-kernels of 14 rows; the most that a block has.
constexpr int64_t kKeys = 112, kMostKeys = 256;
// Cycles of 16 exponentials and what goes with them, and of the copy of 16 elements.
constexpr double kExpCycles = 20, kCopyCycles = 4;
// What a task should get at least: its keys are copied for it alone.
constexpr double kTaskFlops = 2.5e6;
// Operations worth a thread.
constexpr double kGrainFlops = 1e6;

class AttentionGenerator final : public GeneratorFor<Schedule, Problem> {
public:
  bool takesWhole(Operation *composite) const override {
    auto op = dyn_cast<prim::AttentionOp>(composite);
    return op && analyzeAttention(op).has_value();
  }

  std::optional<Problem> analyze(const RegionProblem &region) const override { return analyzeAttention(region); }

  FailureOr<Schedule> decide(const RegionProblem &, const Problem &p) const override {
    auto [tileT, tileS] = chooseTiles(p);
    return scheduleFor(p, tileT, tileS);
  }

  SmallVector<kernel::ScheduleAttr> decideOthers(const RegionProblem &, const Problem &p,
                                                 machine::CpuAttr) const override {
    auto [tileT, tileS] = chooseTiles(p);
    auto t = prim::getConstantSize(p.T), s = prim::getConstantSize(p.S);
    SmallVector<kernel::ScheduleAttr> all;
    for (int64_t other : {tileT / 2, tileT * 2})
      if (other >= kPanel && other <= 128 && other % kPanel == 0 && (!t || other <= roundUp(*t, kPanel)))
        all.push_back(scheduleFor(p, other, tileS));
    for (int64_t other : {56, 168, 224})
      if (!s || other <= *s)
        all.push_back(scheduleFor(p, tileT, other));
    return all;
  }

  SmallVector<Launch> makeLaunches(const Problem &p, Schedule schedule) const override {
    return {p.launch(grid(p, schedule), Layout(p, schedule.getTileT(), schedule.getTileS()).end)};
  }

  void emitTasks(const Problem &p, Schedule schedule, unsigned, Emitter &em, Value begin, Value end) const override {
    attention::emit(p, schedule, em, begin, end);
  }

private:
  /// Of so many queries.
  static double flopsOf(const Problem &p, int64_t tileT) {
    return 2.0 * double(tileT) * double(getLikelySize(p.S, p.op, usual::kKeys)) * double(p.D + p.E);
  }
  /// Queries and keys of a block.
  static std::pair<int64_t, int64_t> chooseTiles(const Problem &p) {
    const int64_t tileS = chooseKeys(p);
    auto t = prim::getConstantSize(p.T);
    const double batch = double(getLikelySize(prim::product(p.T.getContext(), p.batch), p.op, usual::kHeads));
    int64_t best = 32;
    double least = std::numeric_limits<double>::infinity();
    for (int64_t tileT = kPanel; t && tileT <= 128 && tileT <= roundUp(std::max<int64_t>(*t, 1), kPanel);
         tileT += kPanel) {
      const double blocks = std::ceil(double(std::max<int64_t>(*t, 1)) / double(tileT));
      // Few queries leave work for all cores, but not tasks that take less time than to copy their keys.
      if (tileT > kPanel && batch * blocks < 16 && flopsOf(p, tileT - kPanel) >= kTaskFlops)
        break;
      const Tile tile = scoreTile(widestUnit(), tileT, tileS);
      // For a key: both products, groups of panels; exponentials; the copies of its rows, which many queries share.
      const int64_t last = ceilDiv(*t - int64_t(blocks - 1) * tileT, kPanel);
      auto groupCycles = [&](int64_t panels) {
        return panels ? microKernelCycles(widestUnit(), tile.rows, panels) : 0;
      };
      const double groups = ((blocks - 1) * double(tileT / kPanel / tile.panels) + double(last / tile.panels)) *
                                groupCycles(tile.panels) +
                            groupCycles(last % tile.panels);
      const double cycles = groups * double(p.D + p.E) / double(tile.rows) + double(ceilDiv(*t, kPanel)) * kExpCycles +
                            blocks * double(p.D + p.E) / kPanel * kCopyCycles;
      if (cycles < least * 0.98) {
        least = cycles;
        best = tileT;
      }
    }
    return {best, tileS};
  }
  /// Micro-kernel of the scores: whole groups of panels only.
  static Tile scoreTile(const VectorUnit &unit, int64_t tileT, int64_t tileS) {
    return chooseTile(unit, tileS, tileT / kPanel, unit.bits == 512 ? 14 : 6, /*isStreamed=*/false,
                      /*within=*/tileT / kPanel);
  }
  /// As few blocks as keep their scores near, of equal size; or whole micro-kernels.
  static int64_t chooseKeys(const Problem &p) {
    auto s = prim::getConstantSize(p.S);
    if (!s || p.op.getCausal())
      return std::min(kKeys, std::max<int64_t>(s.value_or(kKeys), 1));
    const int64_t blocks = std::max<int64_t>(1, ceilDiv(*s, kMostKeys));
    return *s % blocks == 0 ? std::max<int64_t>(1, *s / blocks) : kKeys;
  }

  static Schedule scheduleFor(const Problem &p, int64_t tileT, int64_t tileS) {
    Schedule::Params params;
    params.tileT = tileT;
    params.tileS = tileS;
    for (const VectorUnit &unit : machine::kVectorUnits) {
      int64_t maxRows = unit.bits == 512 ? 14 : 6;
      const Tile tile = scoreTile(unit, tileT, tileS);
      int64_t valueRows = 1;
      double best = std::numeric_limits<double>::infinity();
      for (int64_t rows = 1; rows <= maxRows; ++rows) {
        double cost = blockCycles(unit, p.E, tile.panels, {rows, tile.panels});
        if (rows > p.E || !fitsRegisters(unit, rows, tile.panels) || cost >= best * 0.999)
          continue;
        best = cost;
        valueRows = rows;
      }
      params.panelsFor(unit.bits) = tile.panels;
      params.scoreRowsFor(unit.bits) = tile.rows;
      params.valueRowsFor(unit.bits) = valueRows;
    }
    params.grain = grainFor(kGrainFlops, flopsOf(p, tileT));
    return params.get(p.T.getContext());
  }
};

} // namespace

SmallVector<AffineExpr> attention::grid(const Problem &p, Schedule schedule) {
  SmallVector<AffineExpr> sizes = p.batch;
  sizes.push_back(prim::simplifySize(p.T.ceilDiv(schedule.getTileT())));
  return sizes;
}

std::optional<AttentionProblem> tc::codegen::analyzeAttention(prim::AttentionOp op) {
  for (Value operand : op->getOperands())
    if (!isF32(operand))
      return std::nullopt;
  Problem p;
  p.op = op;
  auto query = prim::getSizes(op.getQuery()), key = prim::getSizes(op.getKey()), value = prim::getSizes(op.getValue());
  unsigned rank = query.size();
  auto d = prim::getConstantSize(query[rank - 1]), e = prim::getConstantSize(value[rank - 1]);
  // Larger heads than these would not fit the caches as they are used here.
  if (!d || !e || *e == 0 || *d > 1024 || *e > 1024)
    return std::nullopt;
  p.batch.assign(query.begin(), query.end() - 2);
  p.T = query[rank - 2];
  p.S = key[rank - 2];
  p.D = *d;
  p.E = *e;
  return p;
}

std::optional<AttentionProblem> tc::codegen::analyzeAttention(const RegionProblem &region) {
  auto op = region.findAnchor<prim::AttentionOp>();
  std::optional<AttentionProblem> p = op ? analyzeAttention(op) : std::nullopt;
  if (p)
    p->epilogue = region.findWholeEpilogue(op.getResult());
  return p && p->epilogue ? p : std::nullopt;
}

const Generator *tc::codegen::attentionGenerator() {
  static const AttentionGenerator generator;
  return &generator;
}
