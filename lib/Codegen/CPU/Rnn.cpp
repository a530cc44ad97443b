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

#include "CPU/MicroKernel.h"
#include "Common/Anchor.h"
#include "Common/Generators.h"
#include "tc/Analysis/LikelySizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

namespace {

using Schedule = kernel::CpuRnnAttr;

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

struct Problem {
  mutable prim::RnnOp op; // accessors of ops are not const
  /// Of the three results; none for an op outside of a region.
  SmallVector<const Epilogue *> epilogues;
  AffineExpr T, B;
  int64_t H, gates;
  bool isGru, isLinear;

  int64_t panels() const { return roundUp(H, kPanel) / kPanel; }
  /// Distance of rows of state: whole panels fit, not a multiple of a cache way.
  int64_t stride() const { return roundUp(H, kPanel) + kPanel; }
  int64_t panelFloats() const { return H * kPanel; }
  int64_t weightFloats() const { return gates * panels() * panelFloats(); }
  bool resetsFirst() const { return isGru && !isLinear; }
  bool streams() const { return !fitsTwice(weightFloats() * 4); }
};

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

/// Offsets in floats of the parts of a worker's scratch or, with slices, of the shared state; then only the sums are in
/// the scratch.
struct Layout {
  int64_t rows; // of a block of state
  int64_t hidden, cell, reset, sums, weights, end;
  int64_t stateEnd = 0; // of shared state

  Layout(const Problem &p, Schedule schedule) : rows(schedule.getTileB() * schedule.getMerged() * p.stride()) {
    const bool packHere = schedule.getRhs() < 0;
    hidden = 0;
    if (schedule.getSlice() > 0) {
      cell = 2 * rows; // behind both hidden states
      reset = 3 * rows;
      stateEnd = (p.resetsFirst() ? 4 : 3) * rows;
      sums = 0;
      weights = p.gates * rows;
      end = weights + 64;
      return;
    }
    cell = rows;
    reset = 2 * rows;
    sums = 3 * rows; // one block for each gate
    weights = (3 + p.gates) * rows;
    end = weights + (packHere ? p.weightFloats() : 0) + 64;
  }
};

/// Steps of the launch with slices.
AffineExpr launchSteps(const Problem &p) { return prim::simplifySize(p.T * (p.resetsFirst() ? 2 : 1) + 1); }

class Task {
public:
  Task(const Problem &p, Schedule schedule, Emitter &em)
      : p(p), schedule(schedule), em(em), b(em.builder()), loc(em.loc()), f32(b.getF32Type()), vector(em.vectorOf(f32)),
        epilogues(p.epilogues), tileB(schedule.getTileB()), rhs(schedule.getRhs()), slice(schedule.getSlice()),
        layout(p, schedule) {
    rows = schedule.rowsFor(em.vectors().bits);
    merged = tileB % rows == 0 ? schedule.getMerged() : 1;
    panels = schedule.colsFor(em.vectors().bits) / kPanel;
  }

  /// The tasks from `begin` to `end`.
  void run(Value begin, Value end) {
    if (slice > 0)
      return runSlices(begin, end);
    em.loop(begin, end, merged, [&](Index task) { runBlock(task, end); });
  }

private:
  void runBlock(Index task, Value end) {
    b0 = em.mulIndex(task, em.i64(tileB), tileB);
    count = blockExtent(em, p.B, b0.base, tileB);
    if (merged > 1) {
      Value tasks = em.min(em.sub(end, task.base), em.i64(merged));
      count = Extent(em.min(em.mul(tasks, em.i64(tileB)), em.sub(em.size(p.B), b0.base)));
    }
    rest = blockRest(prim::getConstantSize(p.B), tileB, rows);
    Value base = em.scratch();
    hidden = nextHidden = offsetBy(em, base, layout.hidden);
    cell = offsetBy(em, base, layout.cell);
    reset = offsetBy(em, base, layout.reset);
    sums = offsetBy(em, base, layout.sums);
    if (rhs >= 0) {
      weights = em.input(rhs);
    } else {
      weights = offsetBy(em, base, layout.weights);
      packWeights();
    }
    loadInitial();
    em.loop(em.i64(0), em.size(p.T), 1, [&](Index number) {
      Index t = timeOf(number);
      if (p.resetsFirst())
        computeReset(t);
      step(t);
    });
    storeFinal();
    em.clearSources();
  }

  /// The slices from `begin` to `end` of a launch step.
  void runSlices(Value begin, Value end) {
    const int64_t tasks = ceilDiv(p.panels(), slice);
    Value number = em.divUnsigned(begin, em.i64(tasks)), before = em.mul(number, em.i64(tasks));
    firstPanel = em.mul(em.sub(begin, before), em.i64(slice));
    endPanel = em.min(em.mul(em.sub(end, before), em.i64(slice)), em.i64(p.panels()));
    b0 = em.constant(0);
    count = Extent(tileB);
    rest = blockRest(tileB, tileB, rows);
    sums = offsetBy(em, em.scratch(), layout.sums);
    weights = em.input(rhs);
    Value state = em.output(em.region().getOutputs().size());
    cell = offsetBy(em, state, layout.cell);
    reset = offsetBy(em, state, layout.reset);
    auto hiddenAfter = [&](Value steps) {
      return offsetBy(em, state, em.mul(em.remUnsigned(steps, em.i64(2)), em.i64(layout.rows)));
    };
    auto is = [&](arith::CmpIPredicate predicate, Value x, int64_t y) {
      return arith::CmpIOp::create(b, loc, predicate, x, em.i64(y));
    };

    em.ifThen(is(arith::CmpIPredicate::eq, number, 0), [&] {
      nextHidden = hiddenAfter(em.i64(0));
      loadInitial();
    });
    em.ifThen(is(arith::CmpIPredicate::ne, number, 0), [&] {
      const int64_t parts = p.resetsFirst() ? 2 : 1;
      Value done = em.sub(number, em.i64(1)), steps = em.divUnsigned(done, em.i64(parts));
      hidden = hiddenAfter(steps);
      nextHidden = hiddenAfter(em.add(steps, em.i64(1)));
      Index t = timeOf(em.uniform(steps));
      if (parts == 1)
        return step(t);
      Value part = em.remUnsigned(done, em.i64(2));
      em.ifThen(is(arith::CmpIPredicate::eq, part, 0), [&] { computeReset(t); });
      em.ifThen(is(arith::CmpIPredicate::ne, part, 0), [&] { step(t); });
    });
    Value last = em.size(launchSteps(p) - 1);
    em.ifThen(arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, number, last), [&] {
      hidden = hiddenAfter(em.size(p.T));
      storeFinal();
    });
    em.clearSources();
  }

  /// The position in time of a step.
  Index timeOf(Index number) {
    if (!p.op.getReverse())
      return number;
    return em.uniform(em.sub(em.sub(em.size(p.T), em.i64(1)), number.base));
  }

  void loadInitial() {
    forElements([&](Index row, Index j, Index at) {
      SmallVector<Index> position{em.addIndex(b0, row), j};
      em.storeAt(em.emit(p.op.getInitialHidden(), position), nextHidden, f32, at);
      em.storeAt(em.emit(p.op.getInitialCell(), position), cell, f32, at);
    });
  }

  void storeFinal() {
    forElements([&](Index row, Index j, Index at) {
      SmallVector<Index> position{em.addIndex(b0, row), j};
      if (!epilogues[1]->roots().empty())
        storeEpilogue(em, *epilogues[1], position, em.loadAt(hidden, f32, at));
      if (!epilogues[2]->roots().empty())
        storeEpilogue(em, *epilogues[2], position, em.loadAt(cell, f32, at));
    });
  }

  Value one() { return arith::ConstantOp::create(b, loc, vector, DenseElementsAttr::get(vector, 1.0f)); }
  Value add(Value x, Value y) { return arith::AddFOp::create(b, loc, em.broadcast(x), em.broadcast(y)); }
  Value sub(Value x, Value y) { return arith::SubFOp::create(b, loc, em.broadcast(x), em.broadcast(y)); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, loc, em.broadcast(x), em.broadcast(y)); }
  Value tanh(Value x) { return math::TanhOp::create(b, loc, x); }
  Value logistic(Value x) {
    Value e = math::ExpOp::create(b, loc, arith::NegFOp::create(b, loc, x));
    return arith::DivFOp::create(b, loc, one(), add(one(), e));
  }

  /// Lanes along the hidden dim, or the part of it that the call takes.
  void forHidden(llvm::function_ref<void(Index)> body) {
    if (slice == 0)
      return em.independentLanes(em.i64(p.H), p.H, body);
    Value columns = em.mul(endPanel, em.i64(kPanel));
    if (p.H % kPanel != 0)
      columns = em.min(columns, em.i64(p.H));
    em.independentLanes(columns, p.H % kPanel == 0 ? std::optional(p.H) : std::nullopt, body,
                        em.mul(firstPanel, em.i64(kPanel)));
  }

  /// Rows of the block, lanes along the hidden dim; `at` is the offset in a block of state.
  void forElements(llvm::function_ref<void(Index, Index, Index)> body) {
    em.loop(em.i64(0), count.get(em), 1, [&](Index row) {
      Index start = em.mulIndex(row, em.i64(p.stride()), p.stride());
      forHidden([&](Index j) { body(row, j, em.addIndex(start, j)); });
    });
  }

  void packWeights() {
    em.loop(em.i64(0), em.i64(p.gates * p.panels()), 1, [&](Index number) {
      SmallVector<Index> at = em.delinearize(
          number, {getAffineConstantExpr(p.gates, b.getContext()), getAffineConstantExpr(p.panels(), b.getContext())});
      Index column = em.mulIndex(at[1], em.i64(kPanel), kPanel);
      Value left = em.min(em.i64(kPanel), em.sub(em.i64(p.H), column.base));
      Index first = em.addIndex(em.mulIndex(at[0], em.i64(p.H), p.H), column);
      Index panel = em.mulIndex(number, em.i64(p.panelFloats()), p.panelFloats());
      em.loop(em.i64(0), em.i64(p.H), 1, [&](Index k) {
        Index start = em.addIndex(panel, em.mulIndex(k, em.i64(kPanel), kPanel));
        em.laneLoop(left, std::nullopt, [&](Index lane) {
          Value value = em.emit(p.op.getRecurrent(), {k, em.addIndex(first, lane)});
          em.storeAt(value, weights, f32, em.addIndex(start, lane));
        });
      });
    });
  }

  /// sums of `gate` = state x recurrent weights of the gate.
  void multiply(Value state, int64_t gate) {
    Value to = offsetBy(em, sums, gate * layout.rows);
    Value from = offsetBy(em, weights, gate * p.panels() * p.panelFloats());
    auto group = [&](Value panel, int64_t width) {
      forRowBlocks(em, count, rows, rest, [&](Value row, int64_t height) {
        MicroKernel kernel;
        Value offset = em.mul(row, em.i64(p.stride()));
        kernel.a = offsetBy(em, state, offset);
        kernel.rowOffsets = kernel.cOffsets = uniformRows(height, p.stride());
        kernel.depth = Extent(p.H);
        kernel.b = offsetBy(em, from, em.mul(panel, em.i64(p.panelFloats())));
        kernel.panels = width;
        kernel.panelStride = Extent(p.panelFloats());
        kernel.c = offsetBy(em, to, em.add(offset, em.mul(panel, em.i64(kPanel))));
        emitMicroKernel(em, kernel);
      });
    };
    int64_t main = p.panels() / panels * panels;
    const bool isWhole = main == p.panels();
    if (slice > 0) {
      Value end = isWhole ? endPanel : em.min(endPanel, em.i64(main));
      em.loop(firstPanel, end, panels, [&](Index panel) { group(panel.base, panels); });
      if (!isWhole)
        em.ifThen(arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, endPanel, em.i64(p.panels())),
                  [&] { group(em.i64(main), p.panels() - main); });
      return;
    }
    if (main)
      em.loop(em.i64(0), em.i64(main), panels, [&](Index panel) { group(panel.base, panels); });
    if (!isWhole)
      group(em.i64(main), p.panels() - main);
  }

  /// A gate before its activation: the input's part, the recurrent part and its bias.
  Value input(Index t, Index row, Index j, int64_t gate) {
    Index column = em.addIndex(em.constant(gate * p.H), j);
    return em.emit(p.op.getGates(), {t, em.addIndex(b0, row), column});
  }
  Value recurrent(Index j, Index at, int64_t gate) {
    Value sum = em.loadAt(offsetBy(em, sums, gate * layout.rows), f32, at);
    return add(sum, em.emit(p.op.getRecurrentBias(), {em.addIndex(em.constant(gate * p.H), j)}));
  }
  Value gateSum(Index t, Index row, Index j, Index at, int64_t gate) {
    return add(input(t, row, j, gate), recurrent(j, at, gate));
  }
  Value peephole(Index j, int64_t number) {
    return em.emit(p.op.getPeephole(), {em.addIndex(em.constant(number * p.H), j)});
  }

  /// reset = r * hidden, for the product of the gate that follows.
  void computeReset(Index t) {
    multiply(hidden, 1);
    forElements([&](Index row, Index j, Index at) {
      Value r = logistic(gateSum(t, row, j, at, 1));
      em.storeAt(mul(r, em.loadAt(hidden, f32, at)), reset, f32, at);
    });
  }

  void step(Index t) {
    const bool resetsFirst = p.resetsFirst(); // then computeReset has taken gate 1
    for (int64_t gate = 0; gate < p.gates; ++gate)
      if (!resetsFirst || gate != 1)
        multiply(resetsFirst && gate == 2 ? reset : hidden, gate);
    Value steps = t.base;
    em.loop(em.i64(0), count.get(em), 1, [&](Index row) {
      Index batch = em.addIndex(b0, row);
      Value length = em.emit(p.op.getSequenceLengths(), {batch});
      if (length.getType() != b.getI64Type())
        length = arith::ExtSIOp::create(b, loc, b.getI64Type(), length);
      Value on = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, steps, length);
      Index start = em.mulIndex(row, em.i64(p.stride()), p.stride());
      forHidden([&](Index j) {
        Index at = em.addIndex(start, j);
        Value h = em.loadAt(hidden, f32, at), next;
        switch (p.op.getKind()) {
        case prim::RnnKind::LSTM: {
          Value c = em.loadAt(cell, f32, at);
          Value i = logistic(add(gateSum(t, row, j, at, 0), mul(peephole(j, 0), c)));
          Value f = logistic(add(gateSum(t, row, j, at, 2), mul(peephole(j, 2), c)));
          Value g = tanh(gateSum(t, row, j, at, 3));
          Value newCell = add(mul(f, c), mul(i, g));
          Value o = logistic(add(gateSum(t, row, j, at, 1), mul(peephole(j, 1), newCell)));
          next = mul(o, tanh(newCell));
          em.storeAt(arith::SelectOp::create(b, loc, on, newCell, c), cell, f32, at);
          break;
        }
        case prim::RnnKind::GRU: {
          Value z = logistic(gateSum(t, row, j, at, 0));
          Value n = recurrent(j, at, 2);
          if (p.op.getLinearBeforeReset())
            n = mul(logistic(gateSum(t, row, j, at, 1)), n);
          Value candidate = tanh(add(input(t, row, j, 2), n));
          next = add(mul(sub(one(), z), candidate), mul(z, h));
          break;
        }
        case prim::RnnKind::RNN:
          next = tanh(gateSum(t, row, j, at, 0));
          break;
        }
        em.storeAt(arith::SelectOp::create(b, loc, on, next, h), nextHidden, f32, at);
        if (!epilogues[0]->roots().empty()) {
          Value zero = arith::ConstantOp::create(b, loc, vector, b.getZeroAttr(vector));
          storeEpilogue(em, *epilogues[0], {t, batch, j}, arith::SelectOp::create(b, loc, on, next, zero));
        }
      });
    });
  }

  const Problem &p;
  Schedule schedule;
  Emitter &em;
  OpBuilder &b;
  Location loc;
  Type f32;
  VectorType vector;
  ArrayRef<const Epilogue *> epilogues;
  int64_t tileB, rhs, slice, rows, panels, merged;
  Layout layout;
  Index b0;
  Extent count;
  std::optional<int64_t> rest;
  Value hidden, nextHidden, cell, reset, sums, weights;
  Value firstPanel, endPanel; // of the slices that the call takes
};

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
    launch.grain = getAffineConstantExpr(1, context);
    Layout layout(p, schedule);
    launch.scratch = getAffineConstantExpr(roundUp(layout.end * 4, 64), context);
    if (int64_t slice = schedule.getSlice(); slice > 0) {
      launch.tasks = getAffineConstantExpr(ceilDiv(p.panels(), slice), context);
      launch.grain = getAffineConstantExpr(schedule.getGrain(), context);
      launch.steps = launchSteps(p);
      launch.temporaries = {
          prim::makeType(Float32Type::get(context), {getAffineConstantExpr(layout.stateEnd, context)})};
    }
    return {launch};
  }

  void emitTasks(const Problem &p, Schedule schedule, unsigned, Emitter &em, Value begin, Value end) const override {
    Task(p, schedule, em).run(begin, end);
  }
};

} // namespace

const Generator *tc::codegen::rnnGenerator() {
  static const RnnGenerator generator;
  return &generator;
}
