//===- Rnn.cpp - the "cpu.rnn" strategy: recurrent layers --------------------------------------------------------===//
//
// A task is a block of batch rows: it walks over all steps with its state in the scratch. Each step multiplies the
// state by the recurrent weights (panels of 16 columns, one set for each gate, packed when the artifact is made if they
// are constant), then computes gates and new state on lanes along the hidden dim. The input's part of the gates is
// asked from the emitter, so that its bias and reshapes cost no pass over memory.
//
// A batch of one block would leave all threads but one idle, and where the weights are larger than a second-level cache
// each block would read all of them again. If steps are long enough to wait for each other, the launch is one in steps
// (host.launch) and a task takes a slice of the hidden dim, all gates of it: a step needs the whole hidden state of the
// step before, but its own columns only of all else. The state then lies in memory that the tasks share, the hidden
// state twice, because others still read the old one:
//
//   launch step 0            hidden[0], cell = initial ones
//   launch step 1 + t        hidden[(t + 1) % 2] = gates of (input at t, hidden[t % 2]), result at t
//   at the end of the last   final states
//
// A GRU whose reset comes before the product takes two launch steps for each of its own: reset * hidden has to be
// whole.
//
// Parameters: include/tc/Dialect/Kernel/IR/Schedules.td.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CPU/Rnn.h"
#include "Common/Anchor.h"
#include "tc/Analysis/LikelySizes.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;
using namespace tc::codegen::rnn;

namespace {

// Rows of a task. A thread takes several tasks at once, up to so many rows, where the weights stream from beyond the
// second-level cache in each step: there 20 rows take no longer than one.
constexpr int64_t kTaskRows = 12, kStreamedRows = 24;
// Panels of a slice: what a micro-kernel of few rows takes at once.
constexpr int64_t kSlicePanels = 2;
// Rows up to which slices were faster than blocks of rows where the weights stream: with two threads 0.85 to 1.1 of the
// time, with 16 a third to a fifth (16 rows).
constexpr int64_t kSlicedRows = 64;
// Cycles of a step's products, as microKernelCycles counts, from which slices are worth it, and the least for a thread:
// threads wait for each other 0.3 us in each step if there are two, 1 to 2 us if there are 16. Measured with 1 to 16
// threads on Sapphire Rapids: 5000 for a thread was up to 1.4 times as slow, 10000 up to 2 times.
constexpr double kSlicedCycles = 7000, kThreadCycles = 2500;

std::optional<Problem> analyzeRnn(prim::RnnOp op) {
  for (Value operand : op->getOperands().drop_back())
    if (!isF32(operand))
      return std::nullopt;
  Problem p;
  p.op = op;
  auto gates = prim::getSizes(op.getGates()), hidden = prim::getSizes(op.getInitialHidden());
  auto h = prim::getConstantSize(hidden[1]);
  if (!h || *h == 0)
    return std::nullopt;
  p.T = gates[0];
  p.B = gates[1];
  p.H = *h;
  p.isGru = op.getKind() == prim::RnnKind::GRU;
  p.isLinear = op.getLinearBeforeReset();
  p.gates = op.getKind() == prim::RnnKind::LSTM ? 4 : p.isGru ? 3 : 1;
  return p;
}

/// The problem of the region's anchor; none where outputs are not what follows one of its results.
std::optional<Problem> analyzeRnn(const RegionProblem &region) {
  auto op = region.findAnchor<prim::RnnOp>();
  std::optional<Problem> p = op ? analyzeRnn(op) : std::nullopt;
  if (!p)
    return std::nullopt;
  SmallVector<unsigned> covered(region.getYielded().size(), 0);
  for (Value result : op->getResults()) {
    p->epilogues.push_back(region.findEpilogue(result));
    if (!p->epilogues.back())
      return std::nullopt;
    for (unsigned root : p->epilogues.back()->roots())
      ++covered[root];
  }
  return llvm::all_of(covered, [](unsigned count) { return count == 1; }) ? p : std::nullopt;
}

/// The packed weights: [gate][panel][k][16]. The last panel of a gate is filled with columns of the next one.
std::optional<PackedInput> packedWeights(const Problem &p, llvm::function_ref<bool(unsigned)> isConstant) {
  MLIRContext *context = p.T.getContext();
  AffineExpr gate = getAffineDimExpr(0, context), panel = getAffineDimExpr(1, context),
             k = getAffineDimExpr(2, context), c = getAffineDimExpr(3, context);
  prim::RnnOp op = p.op;
  std::optional<ConstantView> view = traceConstant(op.getRecurrent(), isConstant, {k, gate * p.H + panel * kPanel + c});
  if (!view)
    return std::nullopt;
  return PackedInput{view->input, AffineMap::get(4, 0, view->at, context),
                     RankedTensorType::get({p.gates, p.panels(), p.H, kPanel}, Float32Type::get(context))};
}

class RnnGenerator final : public GeneratorFor<Schedule, Problem> {
public:
  bool takesWhole(Operation *composite) const override {
    auto op = dyn_cast<prim::RnnOp>(composite);
    return op && analyzeRnn(op).has_value();
  }

  std::optional<Problem> analyze(const RegionProblem &region) const override { return analyzeRnn(region); }

  FailureOr<Schedule> decide(const RegionProblem &region, const Problem &p) const override {
    Schedule::Params params;
    std::optional<PackedInput> packed = packedWeights(p, region.constants());
    params.rhs = packed ? int64_t(packed->input) : -1;
    // Every task reads all weights in each step: many rows share them.
    auto batch = prim::getConstantSize(p.B);
    int64_t tileB = batch && *batch > 0 ? ceilDiv(*batch, ceilDiv(*batch, kTaskRows)) : 8;
    params.tileB = tileB;
    const int64_t tasks = ceilDiv(getLikelySize(p.B, p.op, /*usual=*/kStreamedRows), tileB);
    params.merged = p.streams() ? std::max<int64_t>(1, std::min(kStreamedRows / tileB, tasks)) : 1;
    const bool isFew = batch && *batch > 0 && (tasks == 1 || (p.streams() && *batch <= kSlicedRows));
    const int64_t slice = packed && isFew ? chooseSlice(p, *batch, params) : 0;
    if (slice > 0) { // a slice is of all rows
      params.tileB = tileB = *batch;
      params.merged = 1;
    }
    params.slice = slice;
    for (const VectorUnit &unit : machine::kVectorUnits) {
      Tile tile = chooseTile(unit, tileB, p.panels(), maxRows(unit), /*isStreamed=*/false, slice);
      params.rowsFor(unit.bits) = tile.rows;
      params.colsFor(unit.bits) = tile.panels * kPanel;
    }
    return params.get(region.getContext());
  }

  static int64_t maxRows(const VectorUnit &unit) { return unit.bits == 512 ? 14 : 6; }

  /// Panels of a slice, 0 if steps are too short; sets their grain.
  static int64_t chooseSlice(const Problem &p, int64_t batch, Schedule::Params &params) {
    const Tile tile =
        chooseTile(widestUnit(), batch, p.panels(), maxRows(widestUnit()), /*isStreamed=*/false, kSlicePanels);
    const double cycles = double(p.gates) * p.H * blockCycles(widestUnit(), batch, p.panels(), tile);
    if (cycles < kSlicedCycles)
      return 0;
    const double sliceCycles = cycles / ceilDiv(p.panels(), kSlicePanels) / (p.resetsFirst() ? 2 : 1);
    params.grain = std::max<int64_t>(1, int64_t(std::ceil(kThreadCycles / sliceCycles)));
    return kSlicePanels;
  }

  SmallVector<PackedInput> packInputs(const Problem &p, Schedule schedule) const override {
    int64_t rhs = schedule.getRhs();
    if (rhs < 0)
      return {};
    std::optional<PackedInput> packed = packedWeights(p, [&](unsigned i) { return int64_t(i) == rhs; });
    return packed ? SmallVector<PackedInput>{*packed} : SmallVector<PackedInput>{};
  }

  SmallVector<Launch> makeLaunches(const Problem &p, Schedule schedule) const override {
    MLIRContext *context = schedule.getContext();
    Launch launch;
    launch.tasks = prim::simplifySize(p.B.ceilDiv(schedule.getTileB()));
    Layout layout(p, schedule);
    launch.scratch = scratchBytes(context, layout.end * 4);
    if (int64_t slice = schedule.getSlice(); slice > 0) {
      launch.tasks = getAffineConstantExpr(ceilDiv(p.panels(), slice), context);
      launch.steps = launchSteps(p);
      launch.temporaries = {
          prim::makeType(Float32Type::get(context), {getAffineConstantExpr(layout.stateEnd, context)})};
    }
    return {launch};
  }

  void emitTasks(const Problem &p, Schedule schedule, unsigned, Emitter &em, Value begin, Value end) const override {
    rnn::emit(p, schedule, em, begin, end);
  }
};

} // namespace

AffineExpr rnn::launchSteps(const Problem &p) { return prim::simplifySize(p.T * (p.resetsFirst() ? 2 : 1) + 1); }

const Generator *tc::codegen::rnnGenerator() {
  static const RnnGenerator generator;
  return &generator;
}
