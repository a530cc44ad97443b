//===- AttentionRows.cpp - the "cpu.attention_rows" strategy: attention of few queries ---------------------------===//
//
// With few queries, as where a language model decodes a token against a cache of keys and values, time is that of
// reading keys and values once. Lanes lie along their rows, which are read where they are, or computed on the fly by
// whatever stands before the anchor:
//  - scores: a vector of products for each of width() keys, whose sums across lanes are taken together, by a tree of
//    shuffles that leaves a key's score in its lane;
//  - exponentials have lanes along the keys;
//  - the result has its lanes along the columns of the values, an accumulator in a register for each vector and query.
// A task is all queries of one batch element. It walks over blocks of keys with an online softmax; mostly there is one.
//
// Rows with no visible key give NaN, as softmax does; without any key at all the result is 0.
//
// Source: Milakov and Gimelshein, "Online normalizer calculation for softmax".
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
using namespace tc::codegen::attention_rows;

using Problem = AttentionProblem;

namespace {

// From more queries on, lanes along the queries win.
constexpr int64_t kMostQueries = 8;
// Keys of a block: their scores stay in the first-level cache, their rows in the second-level one.
constexpr int64_t kMostKeys = 256;
// Keys are fetched so far ahead, where they and the values do not fit the second-level cache.
constexpr int64_t kPrefetchFloats = 2048, kNearBytes = machine::kCaches.l2 / 8 * 5;
// What a thread should get at least, for data that comes from beyond the second-level cache at 10 flops a byte.
constexpr double kGrainFlops = 1e6, kFlopsPerByte = 10;

class AttentionRowsGenerator final : public GeneratorFor<Schedule, Problem> {
public:
  std::optional<Problem> analyze(const RegionProblem &region) const override {
    std::optional<Problem> p = analyzeAttention(region);
    return p && prim::getConstantSize(p->T).value_or(0) >= 1 ? p : std::nullopt;
  }

  FailureOr<Schedule> decide(const RegionProblem &, const Problem &p) const override {
    const int64_t rank = int64_t(p.batch.size()) + 2;
    if (*prim::getConstantSize(p.T) > kMostQueries || !isReadByVectors(p.op.getKey(), rank - 1) ||
        !isReadByVectors(p.op.getValue(), rank - 1))
      return failure();
    return scheduleFor(p, chooseKeys(p));
  }

  SmallVector<kernel::ScheduleAttr> decideOthers(const RegionProblem &region, const Problem &p,
                                                 machine::CpuAttr) const override {
    FailureOr<Schedule> chosen = decide(region, p);
    SmallVector<kernel::ScheduleAttr> all;
    if (failed(chosen))
      return all;
    const int64_t tileS = chosen->getTileS();
    for (int64_t other : {roundUp(tileS / 2, 16), tileS * 2})
      if (other >= 64 && other < 2 * prim::getConstantSize(p.S).value_or(4 * kMostKeys))
        all.push_back(scheduleFor(p, other));
    return all;
  }

  SmallVector<Launch> makeLaunches(const Problem &p, Schedule schedule) const override {
    return {p.launch(p.batch, Layout(p, *prim::getConstantSize(p.T), schedule.getTileS()).end)};
  }

  void emitTasks(const Problem &p, Schedule schedule, unsigned, Emitter &em, Value begin, Value end) const override {
    attention_rows::emit(p, schedule, em, begin, end);
  }

private:
  /// Vectors of a row of values at once: accumulators for all queries are half of the registers.
  static int64_t chooseVectors(const VectorUnit &unit, const Problem &p, int64_t T) {
    return std::clamp<int64_t>(unit.registers / 2 / T, 1, ceilDiv(p.E, unit.width()));
  }
  /// As few blocks as there may be, of equal size.
  static int64_t chooseKeys(const Problem &p) {
    const int64_t s = std::max<int64_t>(1, getLikelySize(p.S, p.op, /*usual=*/kMostKeys));
    return roundUp(ceilDiv(s, ceilDiv(s, kMostKeys)), 16);
  }

  static Schedule scheduleFor(const Problem &p, int64_t tileS) {
    const int64_t T = *prim::getConstantSize(p.T);
    Schedule::Params params;
    params.tileS = tileS;
    for (const VectorUnit &unit : machine::kVectorUnits)
      params.vectorsFor(unit.bits) = chooseVectors(unit, p, T);
    // What the second-level cache holds needs no fetching.
    auto all = prim::getConstantSize(prim::product(p.S.getContext(), p.batch) * p.S);
    const bool isNear = all && *all * (p.D + p.E) * 4 <= kNearBytes;
    params.prefetchKeys = isNear ? 0 : ceilDiv(kPrefetchFloats, std::max<int64_t>(1, p.D));
    const double elements = double(getLikelySize(p.S, p.op, /*usual=*/kMostKeys)) * double(p.D + p.E);
    const double flops = std::max(2.0 * double(T), 4 * kFlopsPerByte) * elements;
    params.grain = grainFor(kGrainFlops, flops);
    return params.get(p.S.getContext());
  }
};

} // namespace

const Generator *tc::codegen::attentionRowsGenerator() {
  static const AttentionRowsGenerator generator;
  return &generator;
}
