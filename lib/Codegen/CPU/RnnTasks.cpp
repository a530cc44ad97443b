//===- RnnTasks.cpp - code of recurrent layers --------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CPU/Rnn.h"
#include "Common/Anchor.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;
using namespace tc::codegen::rnn;

namespace {
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
} // namespace

void rnn::emit(const Problem &p, Schedule schedule, Emitter &em, Value begin, Value end) {
  Task(p, schedule, em).run(begin, end);
}
