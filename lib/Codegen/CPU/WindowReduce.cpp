//===- WindowReduce.cpp - the "cpu.window_reduce" strategy: window reductions by one dim after the other ---------===//
//
// result[n, t.., u, c] = reduction over k.., l of operand[n, t.. * stride + k.., u * stride + l, c], and what follows
// it: pooling. A task is some lines of the result, and takes a line in two steps, as reductions over a box are
// reductions over its dims:
//
//   1. the lines of the operand that its windows meet become one, with lanes along the line, in scratch; there
//      neutral elements stand before and behind it, so that no window meets a border in the second step;
//   2. each element of the result becomes a reduction of neighbours in that line. Where the channels are last, lanes
//      are channels. Where there is but one, as in images that have their channels first
//      (tc-sink-window-transposes), lanes are along the result's line, which lie `stride` elements apart in scratch.
//
// Lines of the result that are too short for lanes are computed one element at a time in the second step. Small windows
// of channels that stand last are left to "cpu.loops", where each element reads its window.
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

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

namespace {

using Schedule = kernel::CpuWindowReduceAttr;

// Elements of a line of the result from which lanes are worth it.
constexpr int64_t kLeastLanes = 6;
// Vectors of the operand's lines that are reduced at once: as many chains as hide a maximum's latency.
constexpr int64_t kVectors = 4;
// Positions of a window along the line that are unrolled at most.
constexpr int64_t kUnrolled = 16;
// Windows of channels that stand last, measured on Zen 5 by an element's steps: what "cpu.loops" takes for one where
// windows meet borders and where so few vectors of channels share its loops, and what the scratch takes for an element.
constexpr double kBorder = 1.4, kFewChannels = 2, kStepsPerElement = 6;
constexpr int64_t kFewVectors = 2;
// What a thread should get at least, in elements.
constexpr double kGrainElements = 30000;

struct Problem {
  mutable prim::WindowReduceOp op; // accessors of ops are not const
  const Epilogue &epilogue;
  SmallVector<AffineExpr> in, out;

  std::optional<unsigned> input; // the operand, where the channels are last

  Type element() const { return cast<RankedTensorType>(op.getType()).getElementType(); }
  /// The dim of the lines, counted among the window's.
  size_t line() const { return op.getWindow().size() - 1; }
  int64_t padLow() const { return op.getPadLow()[line()]; }
  AffineExpr lineIn() const { return in[line() + 1]; }
  AffineExpr lineOut() const { return out[line() + 1]; }
  AffineExpr channels() const { return in.back(); }
  bool isChannelsLast() const { return input.has_value(); }
  /// Positions of the scratch before the operand's line; where lanes are along it, its vectors are aligned.
  int64_t before() const { return isChannelsLast() ? padLow() : roundUp(padLow(), kPanel); }
  /// Elements of the scratch in all: vectors of the last elements read what lies behind them, too.
  AffineExpr elements() const {
    const int64_t stride = op.getStrides()[line()], span = op.getWindow()[line()] * op.getDilations()[line()];
    if (isChannelsLast()) {
      const AffineExpr read = prim::simplifySize(lineOut() * stride + span), stored = lineIn() + before();
      const std::optional<int64_t> some = prim::getConstantSize(read),
                                   others = prim::getConstantSize(prim::simplifySize(stored));
      const AffineExpr positions =
          some && others ? getAffineConstantExpr(std::max(*some, *others), read.getContext()) : read + stored;
      return prim::simplifySize((positions * channels() + 64).ceilDiv(kPanel) * kPanel);
    }
    const AffineExpr read = (lineOut() + kPanel) * stride + span;
    return prim::simplifySize((read + lineIn() + before() + 64).ceilDiv(kPanel) * kPanel);
  }
  /// The dims of the tasks: all but the line's and the last.
  SmallVector<AffineExpr> grid() const { return SmallVector<AffineExpr>(out.begin(), out.end() - 2); }
};

std::optional<Problem> analyzeWindow(const RegionProblem &region) {
  auto found = region.findOnly<prim::WindowReduceOp>();
  if (!found || llvm::any_of(found.getPadLow(), [](int64_t pad) { return pad < 0; }))
    return std::nullopt;
  std::optional<unsigned> input;
  if (prim::getConstantSize(prim::getSizes(found.getResult()).back()) != 1) {
    input = inputThroughReshapes(found.getOperand());
    if (!input)
      return std::nullopt;
  }
  const Epilogue *epilogue = region.findWholeEpilogue(found.getResult());
  if (!epilogue)
    return std::nullopt;
  return Problem{found, *epilogue, prim::getSizes(found.getOperand()), prim::getSizes(found.getResult()), input};
}

class Task {
public:
  Task(const Problem &p, Schedule schedule, Emitter &em)
      : p(p), em(em), b(em.builder()), hasLanes(schedule.getLanes()), kind(p.op.getKind()),
        accumulator(em.accumulatorOf(p.element())) {}

  void run(Value begin, Value end) {
    fillBorders();
    em.loop(begin, end, 1, [&](Index task) {
      const SmallVector<Index> at = em.delinearize(task, p.grid());
      findLines(at);
      reduceLines(at);
      if (p.isChannelsLast())
        reducePositions(at);
      else
        reduceNeighbours(at);
      em.clearSources();
    });
  }

private:
  Value neutral() { return em.neutral(kind, p.element()); }

  /// Neutral elements where no line is ever stored.
  void fillBorders() {
    auto fill = [&](Value from, Value to) {
      em.laneLoop(
          to, {}, [&](Index lane) { em.storeAt(em.broadcast(neutral()), em.scratch(), accumulator, lane); }, from);
    };
    fill(em.i64(0), em.size(p.before() * p.channels()));
    fill(em.size((p.lineIn() + p.before()) * p.channels()), em.size(p.elements()));
  }

  /// For each outer dim of the window where it begins, and which of its positions lie in the operand: from `first` to
  /// `last` (exclusive).
  void findLines(ArrayRef<Index> at) {
    starts.clear();
    first.clear();
    last.clear();
    for (size_t i = 0; i < p.line(); ++i) {
      const int64_t dilation = p.op.getDilations()[i], window = p.op.getWindow()[i];
      // Position k lies at start + k * dilation.
      const Value start = em.sub(em.mul(at[i + 1].base, em.i64(p.op.getStrides()[i])), em.i64(p.op.getPadLow()[i]));
      auto ceilOf = [&](Value distance) -> Value { // 0 for what is not positive
        const Value positive = arith::MaxSIOp::create(b, em.loc(), distance, em.i64(0));
        return em.divUnsigned(em.add(positive, em.i64(dilation - 1)), em.i64(dilation));
      };
      first.push_back(em.min(ceilOf(em.sub(em.i64(0), start)), em.i64(window)));
      last.push_back(em.min(ceilOf(em.sub(em.size(p.in[i + 1]), start)), em.i64(window)));
      starts.push_back(start);
    }
  }

  /// The element at `lane` of a line of the operand.
  Value element(ArrayRef<Index> position, const Index &lane) {
    if (p.isChannelsLast()) {
      Value line = position.front().base;
      for (size_t i = 1; i < position.size(); ++i)
        line = em.add(em.mul(line, em.size(p.in[i])), position[i].base);
      const Value start = em.mul(line, em.size(prim::simplifySize(p.lineIn() * p.channels())));
      return em.loadAt(em.input(*p.input), p.element(), em.addIndex(em.uniform(start), lane));
    }
    SmallVector<Index> full(position);
    full.push_back(lane);
    full.push_back(em.constant(0));
    return em.emit(p.op.getOperand(), full);
  }

  /// Combines the elements at `lanes` of all lines that the windows of `at` meet.
  SmallVector<Value> combineLines(ArrayRef<Index> at, ArrayRef<Index> lanes) {
    std::function<SmallVector<Value>(size_t, SmallVector<Index>, SmallVector<Value>)> nest =
        [&](size_t dim, SmallVector<Index> position, SmallVector<Value> sums) -> SmallVector<Value> {
      if (dim == p.line()) {
        for (auto [sum, lane] : llvm::zip_equal(sums, lanes)) {
          sum = em.combine(kind, accumulator, sum, em.toAccumulator(em.broadcast(element(position, lane))));
        }
        return sums;
      }
      return em.loop(first[dim], last[dim], 1, sums, [&](Index k, ValueRange carried) {
        const Value place = em.add(starts[dim], em.mul(k.base, em.i64(p.op.getDilations()[dim])));
        SmallVector<Index> inner(position);
        inner.push_back(em.uniform(place));
        return nest(dim + 1, inner, SmallVector<Value>(carried));
      });
    };
    return nest(0, {at[0]}, SmallVector<Value>(lanes.size(), em.broadcast(neutral())));
  }

  /// Step 1.
  void reduceLines(ArrayRef<Index> at) {
    const Value before = em.size(p.before() * p.channels());
    auto store = [&](ArrayRef<Index> lanes) {
      for (auto [lane, value] : llvm::zip_equal(lanes, combineLines(at, lanes)))
        em.storeAt(value, em.scratch(), accumulator, em.addIndex(lane, em.uniform(before)));
    };
    const AffineExpr elements = prim::simplifySize(p.lineIn() * p.channels());
    em.laneBlocks(em.size(elements), prim::getConstantSize(elements), kVectors, store);
  }

  /// Step 2, lanes along the channels.
  void reducePositions(ArrayRef<Index> at) {
    const int64_t stride = p.op.getStrides()[p.line()], dilation = p.op.getDilations()[p.line()],
                  window = p.op.getWindow()[p.line()];
    const Value channels = em.size(p.channels());
    em.loop(em.i64(0), em.size(p.lineOut()), 1, [&](Index position) {
      const Value from = em.mul(em.mul(position.base, em.i64(stride)), channels);
      em.laneBlocks(channels, prim::getConstantSize(p.channels()), kVectors, [&](ArrayRef<Index> lanes) {
        auto read = [&](const Index &lane, Value step) {
          const Value offset = em.add(from, em.mul(step, em.size(p.channels() * dilation)));
          Value value;
          em.withMask({}, [&] { value = em.loadAt(em.scratch(), accumulator, em.addIndex(em.uniform(offset), lane)); });
          return value;
        };
        SmallVector<Value> sums;
        for (const Index &lane : lanes)
          sums.push_back(read(lane, em.i64(0)));
        auto add = [&](Value step, ValueRange before) {
          SmallVector<Value> after;
          for (auto [lane, sum] : llvm::zip_equal(lanes, before))
            after.push_back(em.combine(kind, accumulator, sum, read(lane, step)));
          return after;
        };
        if (window <= kUnrolled)
          for (int64_t k = 1; k < window; ++k)
            sums = add(em.i64(k), sums);
        else
          sums = em.loop(em.i64(1), em.i64(window), 1, ValueRange(sums),
                         [&](Index k, ValueRange carried) { return add(k.base, carried); });
        for (auto [lane, sum] : llvm::zip_equal(lanes, sums)) {
          SmallVector<Index> to(at);
          to.push_back(position);
          to.push_back(lane);
          storeEpilogue(em, p.epilogue, to, em.fromAccumulator(sum, p.element()));
          em.clearSources();
        }
      });
    });
  }

  /// Step 2, lanes along the line.
  void reduceNeighbours(ArrayRef<Index> at) {
    const int64_t stride = p.op.getStrides()[p.line()], dilation = p.op.getDilations()[p.line()],
                  window = p.op.getWindow()[p.line()], start = p.before() - p.padLow();
    auto write = [&](Index element) {
      const Index from = em.addIndex(em.mulIndex(element, em.i64(stride), stride), em.constant(start));
      auto read = [&](Index k) {
        Value value;
        // Behind the line there is scratch enough for whole vectors.
        em.withMask({}, [&] { value = em.loadAt(em.scratch(), accumulator, em.addIndex(from, k)); });
        return value;
      };
      Value sum = read(em.constant(0));
      if (window <= kUnrolled) {
        for (int64_t k = 1; k < window; ++k)
          sum = em.combine(kind, accumulator, sum, read(em.constant(k * dilation)));
      } else {
        sum = em.loop(em.i64(1), em.i64(window), 1, ValueRange{sum}, [&](Index k, ValueRange carried) {
          const Index offset = em.mulIndex(k, em.i64(dilation), dilation);
          return SmallVector<Value>{em.combine(kind, accumulator, carried[0], read(offset))};
        })[0];
      }
      SmallVector<Index> to(at);
      to.push_back(element);
      to.push_back(em.constant(0));
      storeEpilogue(em, p.epilogue, to, em.fromAccumulator(sum, p.element()));
      em.clearSources();
    };
    if (hasLanes)
      em.laneLoop(em.size(p.lineOut()), prim::getConstantSize(p.lineOut()), write);
    else
      em.loop(em.i64(0), em.size(p.lineOut()), 1, write, 0);
  }

  const Problem &p;
  Emitter &em;
  OpBuilder &b;
  bool hasLanes;
  prim::ReduceKind kind;
  Type accumulator;
  SmallVector<Value> starts, first, last;
};

class WindowReduceGenerator final : public GeneratorFor<Schedule, Problem> {
public:
  std::optional<Problem> analyze(const RegionProblem &region) const override { return analyzeWindow(region); }

  FailureOr<Schedule> decide(const RegionProblem &region, const Problem &p) const override {
    auto likely = [&](AffineExpr size) { return double(getLikelySize(size, p.op)); };
    double outer = 1;
    for (int64_t size : p.op.getWindow().drop_back())
      outer *= double(size);
    const double channels = likely(p.channels()), window = double(p.op.getWindow().back());
    const double perLine = likely(p.lineIn()) * outer + likely(p.lineOut()) * window;
    if (p.isChannelsLast()) {
      const double border = llvm::any_of(p.op.getPadLow(), [](int64_t pad) { return pad > 0; }) ? kBorder : 1;
      const double few = channels <= kFewVectors * kPanel ? kFewChannels : 1;
      if (outer * window * border * few <= perLine / likely(p.lineOut()) + kStepsPerElement)
        return failure();
    }
    const double perTask = perLine * channels + 32;
    Schedule::Params params;
    params.lanes = p.isChannelsLast() || likely(p.lineOut()) >= double(kLeastLanes);
    params.grain = grainFor(kGrainElements, perTask);
    return params.get(region.getContext());
  }

  SmallVector<Launch> makeLaunches(const Problem &p, Schedule schedule) const override {
    MLIRContext *context = schedule.getContext();
    Launch launch;
    launch.tasks = prim::product(context, p.grid());
    launch.scratch = prim::simplifySize(p.elements() * 8); // of the widest accumulator
    launch.inPlace = p.epilogue.inPlace();
    return {launch};
  }

  void emitTasks(const Problem &p, Schedule schedule, unsigned, Emitter &em, Value begin, Value end) const override {
    Task(p, schedule, em).run(begin, end);
  }
};

} // namespace

const Generator *tc::codegen::windowReduceGenerator() {
  static const WindowReduceGenerator generator;
  return &generator;
}
