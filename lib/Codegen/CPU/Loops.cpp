//===- Loops.cpp - the "cpu.loops" strategy: pointwise chains, reductions, windows, anything ---------------------===//
//
// Every output is written by rows: a task is a row (all dims but the last of the largest output, flattened), or a
// segment of `chunk` elements of one. Within a row lanes run along the last dim. Reductions over trailing dims become
// loops at row level (Emitter.h), so that a row is read from memory once and from the cache afterwards. Outputs that
// lack the row's last dim are written once per row.
//
// Parameters: include/tc/Dialect/Kernel/IR/Schedules.td.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CPU/Loops.h"
#include "CPU/MicroKernel.h"
#include "CPU/Stream.h"
#include "Common/Anchor.h"
#include "tc/Analysis/LikelySizes.h"
#include "tc/Transforms/Fuse.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;
using namespace tc::codegen::loops;

namespace {
// Results of reductions that are stored before lanes take them, and the least scalar operations on each to be worth it.
constexpr int64_t kBlock = 64;
constexpr double kLeastFinish = 4;
// Operations of a range, or bytes that it reads and writes, below which sharing it is not worth it.
constexpr double kGrain = 1e5, kReducedGrain = 3e4;

/// Any region.
struct Problem {
  mutable kernel::RegionOp region; // its accessors are not const
  ValueRange outputs;
};

class LoopsGenerator final : public GeneratorFor<Schedule, Problem> {
public:
  std::optional<Problem> analyze(const RegionProblem &region) const override {
    return Problem{region.getOp(), region.getYielded()};
  }

  FailureOr<Schedule> decide(const RegionProblem &, const Problem &p) const override {
    kernel::RegionOp region = p.region;
    Block &block = region.getBody().front();
    // The output with the most dims, then the most elements, spans the rows.
    unsigned space = 0;
    auto weight = [&](unsigned i) {
      const Value value = p.outputs[i];
      return std::make_pair(getLikelyCount(value), prim::getSizes(value).size());
    };
    for (unsigned i = 1; i < p.outputs.size(); ++i)
      if (weight(i) > weight(space))
        space = i;
    Value root = p.outputs[space];
    SmallVector<AffineExpr> sizes = prim::getSizes(root);
    const SmallVector<Value> rowValues = rowResults(region, root);
    const bool rowsFirst = isWorthLaunch(root, rowValues);
    const SmallVector<AffineExpr> own = sizes;
    int64_t joined = 0;
    if (llvm::all_of(p.outputs, [&](Value value) { return prim::getSizes(value) == own; }) &&
        llvm::none_of(block, [](Operation &op) { return combinesOtherwise(&op); })) {
      auto reductions = block.getOps<prim::ReduceOp>();
      joined = reductions.empty() ? countEvenlyJoined(own) : countUnitJoined(own);
      const bool joinsOddly =
          !rowsFirst && llvm::all_of(reductions, [&](prim::ReduceOp reduce) { return isAlongLast(reduce, own); });
      if (const int64_t odd = joinsOddly ? countOddlyJoined(own, block) : 0; odd > joined)
        joined = odd;
      if (const int64_t dims = countOfShortSegments(block, root))
        return byElements(root, space, dims);
    }
    const int64_t odd = oddPart(own, joined);
    sizes = joinLast(sizes, joined);
    double last = sizes.empty() ? 1 : double(getLikelySize(sizes.back(), region));
    double rows = weight(space).first / std::max(last, 1.0);

    // Lanes belong to a reduction if the last dim of what it reduces is reduced: contiguous, and long enough.
    bool reductionLanes = false;
    bool fullSpace = false;
    auto see = [&](Value operand, ArrayRef<int64_t> dims) {
      auto in = prim::getSizes(operand);
      if (!llvm::is_contained(dims, int64_t(in.size()) - 1))
        return;
      // Part of a vector is worth it where it is loaded at once.
      const int64_t extent = getLikelySize(in.back(), region);
      reductionLanes |= extent >= kPanel || (extent >= kPanel / 2 && isInnermost(operand, int64_t(in.size()) - 1));
      fullSpace |= prim::getSizes(root) == in;
    };
    region.walk([&](Operation *op) {
      if (auto reduce = dyn_cast<prim::ReduceOp>(op))
        see(reduce.getOperand(), reduce.getDims());
      else if (auto arg = dyn_cast<prim::ArgReduceOp>(op))
        see(arg.getOperand(), {int64_t(arg.getAxis())});
    });
    DenseMap<Value, double> known;
    if (odd)
      reductionLanes = false;
    if (rowsFirst) {
      reductionLanes = false;
      for (Value value : rowValues)
        known[value] = 1;
    }
    bool lanes = !sizes.empty() && (!reductionLanes || fullSpace);
    double perElement = costOf(root, known, lanes ? own : SmallVector<AffineExpr>());
    int64_t chunk = 0;
    // Few long rows: cut them, so that all cores have work. Not with reductions along the row, which every segment
    // would repeat.
    if (lanes && !(reductionLanes && fullSpace) && rows < 64 && last * perElement > 16384)
      chunk = std::max<int64_t>(64, int64_t(16384 / std::max(perElement, 1.0)) / 64 * 64);
    // So many elements may be none or very many.
    if (lanes && joined && !prim::getConstantSize(sizes.back()))
      chunk = std::max<int64_t>(64, int64_t(16384 / std::max(perElement, 1.0)) / 64 * 64);
    if (odd && chunk)
      chunk = roundUp(chunk, 64 * odd); // whole blocks of vectors of any width
    if (!lanes && rows < 64 && last * perElement > 16384 && last > 1)
      chunk = std::max<int64_t>(1, int64_t(16384 / std::max(perElement, 1.0)));
    const Finish finish = finishOf(region, root);
    const bool isBlocked = !lanes && last > 1 && !finish.reductions.empty() && finish.cost >= kLeastFinish;
    if (isBlocked)
      chunk = roundUp(chunk, kPanel); // full vectors
    // Part of a vector takes as long as all of it.
    const double perTask =
        std::max(perElement, bytesPerElement(region, root)) * (chunk   ? double(chunk)
                                                               : lanes ? double(roundUp(int64_t(last), kPanel))
                                                                       : last);
    // To add up lanes for each result, or to shuffle them along short dims, is not counted.
    const double leastCost = lanes && !odd ? kGrain : kReducedGrain;

    Schedule::Params params;
    params.space = space;
    params.lanes = lanes;
    params.chunk = chunk;
    params.grain = grainFor(leastCost, perTask);
    if (rowsFirst)
      params.reduceLaunch = 1;
    if (joined)
      params.joined = joined;
    int64_t keep = -1;
    if (Value kept = (lanes && chunk) || sizes.empty() || rowsFirst || odd ? Value() : chooseKept(root, block, lanes))
      keep = std::distance(block.begin(), kept.getDefiningOp()->getIterator());
    params.keep = keep;
    if (isBlocked && keep < 0)
      params.block = kBlock;
    const bool isStreaming = lanes && isStreamed(root);
    const bool isKept = lanes && keep >= 0;
    if (isKept || (isStreaming && reductionLanes && fullSpace && !rowsFirst && !joined))
      if (const int64_t fetched = fetchedRows(region, root, isKept))
        params.fetch = fetched;
    if (isStreaming)
      params.stream = 1;
    if (lanes && keep < 0 && !joined && isInSegments(segmentsOf(region, root), chunk != 0))
      params.segments = 1;
    params.argLanes = hasLongArgReduce(block);
    return params.get(region.getContext());
  }

  /// Whether the last dim of an arg-reduction has as many elements as the narrowest vectors have lanes.
  static bool hasLongArgReduce(Block &block) {
    return llvm::any_of(block.getOps<prim::ArgReduceOp>(), [](prim::ArgReduceOp op) {
      const SmallVector<AffineExpr> sizes = prim::getSizes(op.getOperand());
      return op.getAxis() + 1 == sizes.size() && getLikelySize(sizes.back(), op) >= machine::kVectorUnits[0].width();
    });
  }

  /// The schedule that writes rows of so many dims element by element.
  static Schedule byElements(Value root, unsigned space, int64_t dims) {
    const auto sizes = prim::getSizes(root);
    const double elements =
        double(*prim::getConstantSize(prim::product(root.getContext(), ArrayRef(sizes).take_back(dims))));
    Schedule::Params params;
    params.space = space;
    params.lanes = 0;
    params.chunk = 0;
    params.grain = grainFor(kReducedGrain, elements);
    if (dims > 1)
      params.joined = dims;
    params.keep = -1;
    params.elements = 1;
    params.argLanes = hasLongArgReduce(*root.getParentBlock());
    return params.get(root.getContext());
  }

  /// Other segments of rows; what is kept is computed again.
  SmallVector<kernel::ScheduleAttr> decideOthers(const RegionProblem &region, const Problem &p,
                                                 machine::CpuAttr) const override {
    FailureOr<Schedule> chosen = decide(region, p);
    if (failed(chosen))
      return {};
    SmallVector<kernel::ScheduleAttr> all;
    auto add = [&](int64_t Schedule::Params::*param, int64_t value) {
      Schedule::Params params = chosen->getParams();
      params.*param = value;
      all.push_back(params.get(region.getContext()));
    };
    if (int64_t chunk = chosen->getChunk(); chunk && chosen->getLanes()) {
      const int64_t odd = oddPart(prim::getSizes(p.outputs[chosen->getSpace()]), chosen->getJoined());
      const int64_t step = 64 * std::max<int64_t>(odd, 1);
      if (chunk > step)
        add(&Schedule::Params::chunk, roundUp(chunk / 2, step));
      add(&Schedule::Params::chunk, chunk * 2);
      add(&Schedule::Params::chunk, 0);
    }
    if (chosen->getKeep() >= 0)
      add(&Schedule::Params::keep, -1);
    if (chosen->getBlock())
      add(&Schedule::Params::block, 0);
    return all;
  }

  /// Products and reductions over several dims take an element at a time from memory.
  Efficiency efficiency(const RegionProblem &, kernel::ScheduleAttr) const override {
    return {/*arithmetic=*/0.1, /*bandwidth=*/1};
  }

  SmallVector<Launch> makeLaunches(const Problem &p, Schedule schedule) const override {
    MLIRContext *context = schedule.getContext();
    const Value root = p.outputs[schedule.getSpace()];
    SmallVector<AffineExpr> sizes = joinLast(prim::getSizes(root), schedule.getJoined());
    Launch launch;
    AffineExpr rows = prim::product(context, sizes.empty() ? ArrayRef<AffineExpr>() : ArrayRef(sizes).drop_back());
    if (int64_t chunk = schedule.getChunk(); chunk && !sizes.empty())
      rows = prim::simplifySize(rows * sizes.back().ceilDiv(chunk));
    launch.tasks = rows;
    SmallVector<Launch> launches;
    if (schedule.getReduceLaunch()) {
      Launch rows;
      rows.suffix = "_rows";
      const SmallVector<Value> results = rowResults(p.region, root);
      for (Value value : results)
        rows.temporaries.push_back(cast<RankedTensorType>(value.getType()));
      rows.tasks = prim::product(context, prim::getSizes(results.front()));
      rows.grain = getAffineConstantExpr(1, context);
      launches.push_back(rows);
    }
    if (Kept kept = getKept(p.region, schedule); kept.value) {
      int64_t bytes = cast<RankedTensorType>(kept.value.getType()).getElementTypeBitWidth() / 8;
      launch.scratch = prim::simplifySize((prim::getSizes(kept.value).back() * bytes).ceilDiv(64) * 64 + 64);
    }
    // In place: every use of an input is pointwise at the output's own position.
    for (auto [i, argument] : llvm::enumerate(p.region.getBody().getArguments()))
      for (auto [o, value] : llvm::enumerate(p.outputs))
        if (argument.getType() == value.getType() && isPointwiseUse(argument) && schedule.getLanes() &&
            o == size_t(schedule.getSpace())) {
          launch.inPlace.push_back(i);
          launch.inPlace.push_back(o);
        }
    launches.push_back(launch);
    return launches;
  }

  void emitTasks(const Problem &p, Schedule schedule, unsigned number, Emitter &e, Value begin,
                 Value end) const override {
    const Value root = p.outputs[schedule.getSpace()];
    e.argReduceLanes = schedule.getArgLanes();
    if (schedule.getReduceLaunch()) {
      const SmallVector<Value> results = rowResults(p.region, root);
      if (number == 0)
        return emitRowResults(results, e, begin, end);
      for (auto [i, value] : llvm::enumerate(results)) {
        const Value buffer = e.input(p.region.getNumOperands() + i);
        e.setSource(value, [&e, value = value, buffer](ArrayRef<Index> at) {
          return e.loadAt(buffer, cast<RankedTensorType>(value.getType()).getElementType(),
                          e.linearize(at, prim::getSizes(value)));
        });
      }
    }
    SmallVector<AffineExpr> sizes = prim::getSizes(root);
    if (sizes.empty()) {
      e.loop(begin, end, 1, [&](Index) {
        for (auto [o, value] : llvm::enumerate(p.outputs))
          e.storeAt(e.emit(value, {}), e.output(o), cast<RankedTensorType>(value.getType()).getElementType(),
                    e.constant(0));
      });
      return;
    }
    if (!schedule.getStream())
      return emitRows(p.region, schedule, e, begin, end, /*isStreaming=*/false);
    SmallVector<Value> buffers;
    for (auto [o, value] : llvm::enumerate(p.outputs))
      if (prim::getSizes(value) == sizes)
        buffers.push_back(e.output(o));
    emitStreaming(e, buffers, [&](bool isStreaming) { emitRows(p.region, schedule, e, begin, end, isStreaming); });
  }
};

} // namespace

const Generator *tc::codegen::loopsGenerator() {
  static const LoopsGenerator generator;
  return &generator;
}
