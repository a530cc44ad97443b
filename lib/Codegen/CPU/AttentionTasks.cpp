//===- AttentionTasks.cpp - code of tiled attention ---------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CPU/Attention.h"
#include "Common/Anchor.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;
using namespace tc::codegen::attention;

using Problem = AttentionProblem;

namespace {
// Independent chains of maxima and of sums: an addition takes 4 cycles.
constexpr int64_t kChains = 4;

class Task {
public:
  Task(const Problem &p, Schedule schedule, Emitter &em)
      : p(p), schedule(schedule), em(em), b(em.builder()), loc(em.loc()), f32(b.getF32Type()), vector(em.vectorOf(f32)),
        width(em.width()), tileT(schedule.getTileT()), tileS(schedule.getTileS()), layout(p, tileT, tileS) {
    panels = schedule.panelsFor(em.vectors().bits);
    scoreRows = schedule.scoreRowsFor(em.vectors().bits);
    valueRows = schedule.valueRowsFor(em.vectors().bits);
    auto t = prim::getConstantSize(p.T), s = prim::getConstantSize(p.S);
    scoreFloats = Layout::scoreRows(tileS) * kPanel;
    transposesMask = p.op.getMask() && isReadByRows(p.op.getMask());
    isSingle = s && *s > 0 && *s <= tileS && (!p.op.getCausal() || (t && *t <= *s));
  }

  void run(Index task, const Epilogue &epilogue) {
    SmallVector<Index> at = em.delinearize(task, grid(p, schedule));
    t0 = em.mulIndex(at.pop_back_val(), em.i64(tileT), tileT);
    batchAt = at;
    Value base = em.scratch();
    rowsQ = offsetBy(em, base, layout.rowsQ);
    packedQ = offsetBy(em, base, layout.packedQ);
    keys = offsetBy(em, base, layout.keys);
    values = offsetBy(em, base, layout.values);
    scores = offsetBy(em, base, layout.scores);
    result = offsetBy(em, base, layout.result);
    maxima = em.stackBuffer(f32, tileT);
    sums = em.stackBuffer(f32, tileT);
    T = em.size(p.T);
    S = em.size(p.S);
    countT = em.min(em.i64(tileT), em.sub(T, t0.base));

    packQueries();
    clear();
    Value visible = S;
    if (p.op.getCausal()) {
      // Keys that the last query sees.
      Value last = em.add(em.add(t0.base, countT), em.sub(S, T));
      visible = em.min(S, arith::MaxSIOp::create(b, loc, last, em.i64(0)));
    }
    em.loop(em.i64(0), visible, tileS, [&](Index s0) {
      Value countS = em.min(em.i64(tileS), em.sub(visible, s0.base));
      copyRows(p.op.getKey(), s0, countS, false, p.D, keys);
      multiplyScores(countS);
      if (transposesMask)
        addMask(s0, countS);
      softmax(s0, countS);
      copyRows(p.op.getValue(), s0, countS, false, p.E, values);
      multiplyValues(countS);
    });
    finish(epilogue);
    em.clearSources();
  }

private:
  Value zero() { return arith::ConstantOp::create(b, loc, vector, b.getZeroAttr(vector)); }
  Value constant(float value) {
    return arith::ConstantOp::create(b, loc, vector, DenseElementsAttr::get(vector, value));
  }
  Value minusInfinity() { return constant(-std::numeric_limits<float>::infinity()); }
  Value load(Value pointer, int64_t offset) {
    return LLVM::LoadOp::create(b, loc, vector, offsetBy(em, pointer, offset), 4);
  }
  void store(Value value, Value pointer, int64_t offset) {
    LLVM::StoreOp::create(b, loc, value, offsetBy(em, pointer, offset), 4);
  }

  /// Rows [from, from + count) of `tensor` to `to`; `clamp`: rows behind the last one repeat it.
  void copyRows(Value tensor, Index from, Value count, bool clamp, int64_t columns, Value to) {
    int64_t stride = Problem::stride(columns);
    em.loop(em.i64(0), count, 1, [&](Index row) {
      Index position = em.addIndex(from, row);
      if (clamp)
        position = em.uniform(em.min(position.base, em.sub(T, em.i64(1))));
      Index start = em.mulIndex(row, em.i64(stride), stride);
      em.laneLoop(em.i64(columns), columns, [&](Index lane) {
        SmallVector<Index> at = batchAt;
        at.push_back(position);
        at.push_back(lane);
        em.storeAt(em.emit(tensor, at), to, f32, em.addIndex(start, lane));
      });
    });
  }

  /// scale * query, as panels [t / 16][d][16].
  void packQueries() {
    copyRows(p.op.getQuery(), t0, em.i64(tileT), /*clamp=*/true, p.D, rowsQ);
    Value scale = constant(float(p.op.getScale().convertToDouble()));
    const int64_t stride = Problem::stride(p.D), panelFloats = roundUp(p.D, 16) * kPanel;
    em.loop(em.i64(0), em.i64(tileT / width), 1, [&](Index block) {
      Value from = offsetBy(em, rowsQ, em.mul(block.base, em.i64(width * stride)));
      Value to = packedPanel(packedQ, block, panelFloats);
      em.loop(em.i64(0), em.i64(roundUp(p.D, width) / width), 1, [&](Index d) {
        Value fromHere = offsetBy(em, from, em.mul(d.base, em.i64(width)));
        Value toHere = offsetBy(em, to, em.mul(d.base, em.i64(width * kPanel)));
        SmallVector<Value> rows;
        for (int64_t i = 0; i < width; ++i)
          rows.push_back(arith::MulFOp::create(b, loc, load(fromHere, i * stride), scale));
        for (auto [i, row] : llvm::enumerate(transposeLanes(em, rows)))
          store(row, toHere, i * kPanel);
      });
    });
  }

  /// Address of the lanes of block `block` (width() lanes each) in panels of `panelFloats`.
  Value packedPanel(Value pointer, Index block, int64_t panelFloats) {
    if (width == kPanel)
      return offsetBy(em, pointer, em.mul(block.base, em.i64(panelFloats)));
    Value perPanel = em.i64(kPanel / width);
    Value panel = em.divUnsigned(block.base, perPanel), part = em.remUnsigned(block.base, perPanel);
    return offsetBy(em, pointer, em.add(em.mul(panel, em.i64(panelFloats)), em.mul(part, em.i64(width))));
  }

  /// What blocks of keys add to; or, where one block writes everything, the rows behind the last one, which fill the
  /// registers that turn them.
  void clear() {
    const int64_t rows = roundUp(p.E, 16), first = isSingle ? p.E : 0;
    em.loop(em.i64(0), em.i64(tileT / kPanel), 1, [&](Index panel) {
      Value to = offsetBy(em, result, em.mul(panel.base, em.i64(rows * kPanel)));
      em.loop(em.i64(first * kPanel), em.i64(rows * kPanel), width,
              [&](Index i) { store(zero(), offsetBy(em, to, i.base), 0); });
    });
    if (isSingle)
      return;
    em.loop(em.i64(0), em.i64(tileT), width, [&](Index i) {
      store(minusInfinity(), offsetBy(em, maxima, i.base), 0);
      store(zero(), offsetBy(em, sums, i.base), 0);
    });
  }

  /// Groups of the panels of queries that are in use: body(first, count). Where the number of queries is known, the
  /// last group of the last task has no more than it needs.
  void forPanelGroups(llvm::function_ref<void(Index, int64_t)> body) {
    Value used = em.divUnsigned(em.add(countT, em.i64(kPanel - 1)), em.i64(kPanel));
    const auto t = prim::getConstantSize(p.T);
    const int64_t rest = t ? ceilDiv(*t % tileT, kPanel) % panels : 0;
    if (!rest)
      return em.loop(em.i64(0), used, panels, [&](Index panel) { body(panel, panels); });
    Value whole = em.mul(em.divUnsigned(used, em.i64(panels)), em.i64(panels));
    em.loop(em.i64(0), whole, panels, [&](Index panel) { body(panel, panels); });
    Value hasRest = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, whole, used);
    em.ifThen(hasRest, [&] { body(em.uniform(whole), rest); });
  }

  /// scores[t / 16][s][16] = keys x queries.
  void multiplyScores(Value countS) {
    forPanelGroups([&](Index panel, int64_t count) {
      Value query = offsetBy(em, packedQ, em.mul(panel.base, em.i64(roundUp(p.D, 16) * kPanel)));
      Value to = offsetBy(em, scores, em.mul(panel.base, em.i64(scoreFloats)));
      forRowBlocks(em, Extent(countS, constantS()), scoreRows, restS(scoreRows), [&](Value row, int64_t rows) {
        MicroKernel kernel;
        kernel.a = offsetBy(em, keys, em.mul(row, em.i64(Problem::stride(p.D))));
        kernel.rowOffsets = uniformRows(rows, Problem::stride(p.D));
        kernel.depth = Extent(p.D);
        kernel.b = query;
        kernel.panels = count;
        kernel.panelStride = Extent(roundUp(p.D, 16) * kPanel);
        kernel.c = offsetBy(em, to, em.mul(row, em.i64(kPanel)));
        kernel.cOffsets = uniformRows(rows, kPanel);
        kernel.cPanelStride = scoreFloats;
        emitMicroKernel(em, kernel);
      });
    });
  }

  /// Extent of a block of keys when code is made: all blocks equal.
  std::optional<int64_t> constantS() {
    auto s = prim::getConstantSize(p.S);
    if (s && *s > 0 && *s % tileS == 0 && !p.op.getCausal())
      return tileS;
    return std::nullopt;
  }
  std::optional<int64_t> restS(int64_t rows) {
    return p.op.getCausal() ? std::nullopt : blockRest(prim::getConstantSize(p.S), tileS, rows);
  }

  /// Calls body(row, carried) for each of `count` rows, kChains of them at a time that carry a value each, and
  /// combines what they carried.
  Value overRows(Value count, Value init, llvm::function_ref<Value(Index, Value)> body,
                 llvm::function_ref<Value(Value, Value)> combine) {
    const std::optional<int64_t> known = constantS();
    Value whole =
        known ? em.i64(*known / kChains * kChains) : em.mul(em.divUnsigned(count, em.i64(kChains)), em.i64(kChains));
    SmallVector<Value> chains(kChains, init);
    chains = em.loop(em.i64(0), whole, kChains, chains, [&](Index row, ValueRange carried) {
      SmallVector<Value> next;
      for (int64_t i = 0; i < kChains; ++i)
        next.push_back(body(em.addIndex(row, em.constant(i)), carried[i]));
      return next;
    });
    chains.resize(kChains);
    for (size_t i = 1; i < chains.size(); ++i)
      chains[0] = combine(chains[0], chains[i]);
    if (known && *known % kChains == 0)
      return chains[0];
    return em
        .loop(whole, count, 1, ValueRange{chains[0]},
              [&](Index row, ValueRange carried) { return SmallVector<Value>{body(row, carried[0])}; })
        .front();
  }

  /// Adds the mask to the scores: lanes along its rows, which are contiguous, transposed to the queries' lanes.
  void addMask(Index s0, Value countS) {
    em.loop(em.i64(0), countT, width, [&](Index query) {
      const SmallVector<Index> lines = linesFrom(em, em.add(t0.base, query.base), p.T);
      Value here = packedPanel(scores, em.uniform(em.divUnsigned(query.base, em.i64(width))), scoreFloats);
      em.laneLoop(countS, constantS(), [&](Index lane) {
        SmallVector<Value> rows;
        for (const Index &line : lines) {
          SmallVector<Index> position = batchAt;
          position.push_back(line);
          position.push_back(em.addIndex(s0, lane));
          rows.push_back(em.broadcast(em.emit(p.op.getMask(), position)));
        }
        Value to = offsetBy(em, here, em.mul(lane.base, em.i64(kPanel)));
        for (auto [i, row] : llvm::enumerate(transposeLanes(em, rows)))
          store(arith::AddFOp::create(b, loc, load(to, i * kPanel), row), to, i * kPanel);
      });
    });
  }

  /// Masks the scores, makes them probabilities, updates maxima and sums and scales the result so far.
  void softmax(Index s0, Value countS) {
    Value mask = transposesMask ? Value() : p.op.getMask();
    em.laneLoop(countT, std::nullopt, [&](Index query) {
      Index t = em.addIndex(t0, query);
      Value block = em.divUnsigned(query.base, em.i64(width));
      Value here = packedPanel(scores, em.uniform(block), scoreFloats);
      // One instruction; a score that is no number is passed over, and makes the sum none.
      auto larger = [&](Value x, Value y) -> Value {
        Value isLarger = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, x, y);
        return arith::SelectOp::create(b, loc, isLarger, x, y);
      };
      Value oldMax = isSingle ? minusInfinity() : load(offsetBy(em, maxima, query.base), 0);
      // First walk: mask and maximum.
      auto masked = [&](Index row, Value max) {
        Value at = offsetBy(em, here, em.mul(row.base, em.i64(kPanel)));
        Value x = load(at, 0);
        Index s = em.addIndex(s0, row);
        if (mask) {
          SmallVector<Index> position = batchAt;
          position.push_back(t);
          position.push_back(s);
          x = arith::AddFOp::create(b, loc, x, em.broadcast(em.emit(mask, position)));
        }
        if (p.op.getCausal()) {
          // Visible: s <= t + (S - T).
          Value limit = em.materialize(em.addIndex(t, em.uniform(em.sub(S, T))));
          Value hidden = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, em.broadcast(s.base), limit);
          x = arith::SelectOp::create(b, loc, hidden, minusInfinity(), x);
        }
        if (mask || p.op.getCausal())
          store(x, at, 0);
        return larger(x, max);
      };
      Value max = overRows(countS, oldMax, masked, larger);
      // Rows without any visible key so far keep probabilities of 0.
      Value none = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, max, minusInfinity());
      Value reference = arith::SelectOp::create(b, loc, none, zero(), max);
      auto added = [&](Index row, Value sum) -> Value {
        Value at = offsetBy(em, here, em.mul(row.base, em.i64(kPanel)));
        Value probability = math::ExpOp::create(b, loc, arith::SubFOp::create(b, loc, load(at, 0), reference));
        store(probability, at, 0);
        return arith::AddFOp::create(b, loc, sum, probability);
      };
      Value sum =
          overRows(countS, zero(), added, [&](Value x, Value y) { return arith::AddFOp::create(b, loc, x, y); });
      Value sumAt = offsetBy(em, sums, query.base);
      if (isSingle)
        return store(sum, sumAt, 0);
      Value correction = math::ExpOp::create(b, loc, arith::SubFOp::create(b, loc, oldMax, reference));
      store(arith::AddFOp::create(b, loc, arith::MulFOp::create(b, loc, load(sumAt, 0), correction), sum), sumAt, 0);
      store(max, offsetBy(em, maxima, query.base), 0);
      Value out = packedPanel(result, em.uniform(block), roundUp(p.E, 16) * kPanel);
      em.loop(em.i64(0), em.i64(p.E), 1, [&](Index e) {
        Value at = offsetBy(em, out, em.mul(e.base, em.i64(kPanel)));
        store(arith::MulFOp::create(b, loc, load(at, 0), correction), at, 0);
      });
    });
  }

  /// result[t / 16][e][16] += values x probabilities.
  void multiplyValues(Value countS) {
    forPanelGroups([&](Index panel, int64_t count) {
      Value probabilities = offsetBy(em, scores, em.mul(panel.base, em.i64(scoreFloats)));
      Value to = offsetBy(em, result, em.mul(panel.base, em.i64(roundUp(p.E, 16) * kPanel)));
      forRowBlocks(em, Extent(p.E), valueRows, std::nullopt, [&](Value row, int64_t rows) {
        MicroKernel kernel;
        kernel.a = offsetBy(em, values, row);
        kernel.rowOffsets = uniformRows(rows, 1);
        kernel.depth = Extent(countS, constantS());
        kernel.depthStride = Problem::stride(p.E);
        kernel.partialDepth = 0; // a block of keys is short
        kernel.b = probabilities;
        kernel.panels = count;
        kernel.panelStride = Extent(scoreFloats);
        kernel.c = offsetBy(em, to, em.mul(row, em.i64(kPanel)));
        kernel.cOffsets = uniformRows(rows, kPanel);
        kernel.cPanelStride = roundUp(p.E, 16) * kPanel;
        kernel.accumulate = !isSingle;
        emitMicroKernel(em, kernel);
      });
    });
  }

  /// Divides by the sums, turns the result back to rows and stores it through the epilogue.
  void finish(const Epilogue &epilogue) {
    const int64_t stride = Problem::stride(p.E), panelFloats = roundUp(p.E, 16) * kPanel;
    Value noKeys = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, S, em.i64(0));
    const Value blocks = em.divUnsigned(em.add(countT, em.i64(width - 1)), em.i64(width));
    em.loop(em.i64(0), blocks, 1, [&](Index block) {
      Value sum = load(offsetBy(em, sums, em.mul(block.base, em.i64(width))), 0);
      sum = arith::SelectOp::create(b, loc, noKeys, constant(1), sum);
      // A sum is at least 1, or 0 where all keys are hidden: no number then, as 0 / 0 is none.
      Value factor = arith::DivFOp::create(b, loc, constant(1), sum);
      Value isNone; // such weights count as 0
      if (p.op.getZeroNan())
        isNone = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UEQ, sum, zero());
      Value from = packedPanel(result, block, panelFloats);
      Value to = offsetBy(em, rowsQ, em.mul(block.base, em.i64(width * stride)));
      em.loop(em.i64(0), em.i64(roundUp(p.E, width) / width), 1, [&](Index e) {
        Value fromHere = offsetBy(em, from, em.mul(e.base, em.i64(width * kPanel)));
        Value toHere = offsetBy(em, to, em.mul(e.base, em.i64(width)));
        SmallVector<Value> rows;
        for (int64_t i = 0; i < width; ++i) {
          Value row = arith::MulFOp::create(b, loc, load(fromHere, i * kPanel), factor);
          rows.push_back(isNone ? Value(arith::SelectOp::create(b, loc, isNone, zero(), row)) : row);
        }
        for (auto [i, row] : llvm::enumerate(transposeLanes(em, rows)))
          store(row, toHere, i * stride);
      });
    });
    em.loop(em.i64(0), countT, 1, [&](Index row) {
      Index start = em.mulIndex(row, em.i64(stride), stride);
      Index t = em.addIndex(t0, row);
      em.laneLoop(em.i64(p.E), p.E, [&](Index lane) {
        SmallVector<Index> at = batchAt;
        at.push_back(t);
        at.push_back(lane);
        storeEpilogue(em, epilogue, at, em.loadAt(rowsQ, f32, em.addIndex(start, lane)));
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
  int64_t width, tileT, tileS, panels, scoreRows, valueRows;
  int64_t scoreFloats; // of a panel of queries
  bool transposesMask; // rows of the mask are read as they lie and transposed in registers
  bool isSingle;       // all keys are one block
  Layout layout;
  Index t0;
  SmallVector<Index> batchAt;
  Value rowsQ, packedQ, keys, values, scores, result, maxima, sums, T, S, countT;
};
} // namespace

void attention::emit(const Problem &p, Schedule schedule, Emitter &em, Value begin, Value end) {
  em.loop(begin, end, 1, [&](Index task) { Task(p, schedule, em).run(task, *p.epilogue); });
}
