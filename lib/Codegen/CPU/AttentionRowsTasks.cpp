//===- AttentionRowsTasks.cpp - code of attention of few queries --------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CPU/Attention.h"
#include "Common/Anchor.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;
using namespace tc::codegen::attention_rows;

using Problem = AttentionProblem;

namespace {
// Elements of a row of keys that are unrolled; longer rows loop over segments of kSegment.
constexpr int64_t kUnrolled = 256, kSegment = 128;
// Chains of multiply-adds that hide their latency.
constexpr int64_t kChains = 8;

class Task {
public:
  Task(const Problem &p, Schedule schedule, Emitter &em)
      : p(p), em(em), b(em.builder()), loc(em.loc()), f32(b.getF32Type()), vector(em.vectorOf(f32)), width(em.width()),
        T(*prim::getConstantSize(p.T)), tileS(schedule.getTileS()), vectors(schedule.vectorsFor(em.vectors().bits)),
        prefetchKeys(schedule.getPrefetchKeys()), layout(p, T, tileS) {
    knownS = prim::getConstantSize(p.S);
    isSingle = knownS && *knownS > 0 && *knownS <= tileS;
  }

  void run(Index number, const Epilogue &epilogue) {
    task = number.base;
    batchAt = em.delinearize(number, p.batch);
    Value base = em.scratch();
    queries = offsetBy(em, base, layout.queries);
    scores = offsetBy(em, base, layout.scores);
    result = offsetBy(em, base, layout.result);
    sums = em.stackBuffer(f32, T * width);
    S = em.size(p.S);

    copyQueries();
    if (isSingle) {
      addBlock(em.constant(0), Extent(*knownS));
    } else {
      maxima = em.stackBuffer(f32, T * width);
      corrections = em.stackBuffer(f32, T * width);
      clear();
      const bool isWhole = knownS && *knownS % tileS == 0;
      em.loop(em.i64(0), S, tileS, [&](Index s0) {
        addBlock(s0, isWhole ? Extent(tileS) : Extent(em.min(em.i64(tileS), em.sub(S, s0.base))));
      });
    }
    finish(epilogue);
    em.clearSources();
  }

private:
  Value constant(float value) {
    return arith::ConstantOp::create(b, loc, vector, DenseElementsAttr::get(vector, value));
  }
  Value zero() { return constant(0); }
  Value minusInfinity() { return constant(-std::numeric_limits<float>::infinity()); }
  Value load(Value pointer, int64_t offset = 0) {
    return LLVM::LoadOp::create(b, loc, vector, offsetBy(em, pointer, offset), 4);
  }
  void store(Value value, Value pointer, int64_t offset = 0) {
    LLVM::StoreOp::create(b, loc, value, offsetBy(em, pointer, offset), 4);
  }
  Value add(Value x, Value y) { return arith::AddFOp::create(b, loc, x, y); }
  /// One instruction; a score that is no number is passed over, and makes the sum none.
  Value larger(Value x, Value y) {
    Value isLarger = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, x, y);
    return arith::SelectOp::create(b, loc, isLarger, x, y);
  }
  /// All lanes combined, in every lane.
  Value acrossLanes(Value value, llvm::function_ref<Value(Value, Value)> combine) {
    for (int64_t distance = width / 2; distance >= 1; distance /= 2) {
      SmallVector<int64_t> lanes;
      for (int64_t i = 0; i < width; ++i)
        lanes.push_back(i ^ distance);
      value = combine(value, vector::ShuffleOp::create(b, loc, value, value, lanes));
    }
    return value;
  }

  void forQueries(llvm::function_ref<void(Index)> body) {
    if (T == 1)
      body(em.constant(0));
    else
      em.loop(em.i64(0), em.i64(T), 1, body);
  }
  /// Address of the part of query `t` in a buffer with `stride` floats for each.
  Value partOf(Value buffer, Index t, int64_t stride) { return offsetBy(em, buffer, em.mul(t.base, em.i64(stride))); }

  /// Lanes from `first` on that belong to the innermost scope, whatever the position: nothing that is read there
  /// leaves it, nor the mask that is set in it.
  Index lanesHere(Index first) {
    Index lanes = em.contiguous(first);
    lanes.depth = em.uniform(task).depth;
    return lanes;
  }
  /// A vector of `tensor` at `row` of the batch element; lanes from `used` on are 0, and nothing is read there.
  Value read(Value tensor, Index row, Index lanes, int64_t used) {
    SmallVector<Index> at = batchAt;
    at.push_back(row);
    at.push_back(lanes);
    Value on, value;
    if (used < width) {
      SmallVector<bool> bits(width, false);
      std::fill_n(bits.begin(), used, true);
      on = arith::ConstantOp::create(b, loc, DenseElementsAttr::get(em.vectorOf(b.getI1Type()), ArrayRef<bool>(bits)));
    }
    em.withMask(on, [&] { value = em.broadcast(em.emit(tensor, at)); });
    return on ? Value(arith::SelectOp::create(b, loc, on, value, zero())) : value;
  }

  /// Fetches the lines of a row of keys from element `first` on that begin in the next `count` elements, if keys come
  /// from memory as they are.
  void fetchKeys(Index row, Index first, int64_t count) {
    for (int64_t d = 0; d + width <= count; d += kPanel) {
      SmallVector<Index> at = batchAt;
      at.push_back(row);
      at.push_back(lanesHere(em.addIndex(first, em.constant(d))));
      Value value;
      em.withMask({}, [&] { value = em.emit(p.op.getKey(), at); });
      // What is loaded is not used: the address remains.
      if (auto load = value.getDefiningOp<LLVM::LoadOp>())
        em.prefetch(load.getAddr());
    }
  }

  /// scale * query, rows filled up with 0.
  void copyQueries() {
    Value scale = constant(float(p.op.getScale().convertToDouble()));
    forQueries([&](Index t) {
      Value to = partOf(queries, t, layout.queryStride);
      em.laneLoop(em.i64(p.D), p.D, [&](Index lane) {
        SmallVector<Index> at = batchAt;
        at.push_back(t);
        at.push_back(lane);
        Value value = arith::MulFOp::create(b, loc, em.broadcast(em.emit(p.op.getQuery(), at)), scale);
        if (Value on = em.mask())
          value = arith::SelectOp::create(b, loc, on, value, zero());
        store(value, offsetBy(em, to, lane.base));
      });
    });
  }

  /// What blocks of keys add to.
  void clear() {
    em.loop(em.i64(0), em.i64(T * layout.resultStride), width,
            [&](Index i) { store(zero(), offsetBy(em, result, i.base)); });
    forQueries([&](Index t) {
      store(minusInfinity(), partOf(maxima, t, width));
      store(zero(), partOf(sums, t, width));
    });
  }

  void addBlock(Index s0, Extent count) {
    scoreKeys(s0, count);
    softmax(count);
    addValues(s0, count);
  }

  /// scores[t][s], masked; -infinity behind the last key.
  void scoreKeys(Index s0, Extent count) {
    em.laneLoop(count.get(em), knownS, [&](Index s) {
      const Value on = em.mask();
      Index keys = em.addIndex(s0, s);
      forQueries([&](Index t) {
        Value x = scoreVector(keys, t, /*isLast=*/bool(on));
        if (Value mask = p.op.getMask()) {
          SmallVector<Index> at = batchAt;
          at.push_back(t);
          at.push_back(keys);
          x = add(x, em.broadcast(em.emit(mask, at)));
        }
        if (p.op.getCausal()) {
          // Visible: s <= t + (S - T).
          Value limit = em.add(t.base, em.sub(S, em.i64(T)));
          Value hidden =
              arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, em.materialize(keys), em.broadcast(limit));
          x = arith::SelectOp::create(b, loc, hidden, minusInfinity(), x);
        }
        if (on)
          x = arith::SelectOp::create(b, loc, on, x, minusInfinity());
        store(x, offsetBy(em, partOf(scores, t, layout.scoreStride), s.base));
      });
    });
  }

  /// The scores of the width() keys from keys.base on. `isLast`: there are fewer.
  Value scoreVector(Index keys, Index t, bool isLast) {
    const Value key = p.op.getKey();
    const Value query = partOf(queries, t, layout.queryStride);
    const int64_t present = isLast && knownS ? *knownS % width : width;
    SmallVector<Index> rows;
    for (int64_t i = 0; i < present; ++i) {
      Value row = em.add(keys.base, em.i64(i));
      // Some row where there is none.
      if (isLast && !knownS)
        row = em.min(row, em.sub(S, em.i64(1)));
      rows.push_back(em.uniform(row));
    }
    // The products of elements [first, first + count) of a row.
    auto products = [&](Index row, Index first, int64_t count, Value sum) {
      if (prefetchKeys && T == 1)
        fetchKeys(em.uniform(em.add(row.base, em.i64(prefetchKeys))), first, count);
      for (int64_t d = 0; d < count; d += width) {
        Index lanes = lanesHere(em.addIndex(first, em.constant(d)));
        Value x = read(key, row, lanes, std::min(width, count - d)), y = load(offsetBy(em, query, lanes.base));
        sum = sum ? Value(vector::FMAOp::create(b, loc, y, x, sum)) : arith::MulFOp::create(b, loc, y, x);
      }
      return sum;
    };
    const int64_t looped = p.D > kUnrolled ? p.D / kSegment * kSegment : 0;
    // Each of several queries fetches its share of the rows ahead.
    if (prefetchKeys && T > 1) {
      auto shareOf = [&](Value query) { return em.divUnsigned(em.mul(query, em.i64(width)), em.i64(T)); };
      Value next = em.add(keys.base, em.i64(prefetchKeys));
      em.loop(shareOf(t.base), shareOf(em.add(t.base, em.i64(1))), 1,
              [&](Index row) { fetchKeys(em.uniform(em.add(next, row.base)), em.constant(0), p.D); });
    }
    SmallVector<Value> begun(present);
    if (looped)
      begun = em.loop(em.i64(0), em.i64(looped), kSegment, SmallVector<Value>(present, zero()),
                      [&](Index d, ValueRange carried) {
                        SmallVector<Value> next;
                        for (auto [row, sum] : llvm::zip_equal(rows, carried))
                          next.push_back(products(row, d, kSegment, sum));
                        return next;
                      });
    Value sums = sumLanes(0, width, [&](int64_t i) {
      return i < present ? products(rows[i], em.constant(looped), p.D - looped, begun[i]) : Value();
    });
    return sums ? sums : zero();
  }

  /// Sums across the lanes of vectors [first, first + count): that of vector i in lane i - first of each group of
  /// `count` lanes, summed over what lies at the same lanes of the groups so far. Null vectors are absent. Each is
  /// asked for when the one before is in its pair, so that few are held.
  Value sumLanes(int64_t first, int64_t count, llvm::function_ref<Value(int64_t)> vectorAt) {
    if (count == 1)
      return vectorAt(first);
    Value low = sumLanes(first, count / 2, vectorAt), high = sumLanes(first + count / 2, count / 2, vectorAt);
    if (!low)
      return low;
    if (!high)
      high = low;
    // The even and the odd parts of both, side by side: first single lanes of quarters, which no shuffle leaves, then
    // whole quarters.
    const int64_t part = count <= 4 ? 1 : 4, group = count <= 4 ? 4 : width;
    SmallVector<int64_t> even, odd;
    for (int64_t start = 0; start < width; start += group)
      for (int64_t side : {int64_t(0), width})
        for (int64_t at = 0; at < group; at += 2 * part)
          for (int64_t lane = 0; lane < part; ++lane) {
            even.push_back(side + start + at + lane);
            odd.push_back(side + start + at + part + lane);
          }
    return add(vector::ShuffleOp::create(b, loc, low, high, even), vector::ShuffleOp::create(b, loc, low, high, odd));
  }

  /// Makes the scores probabilities, and updates maxima, sums and what the result so far is to be scaled by.
  void softmax(Extent count) {
    forQueries([&](Index t) {
      Value here = partOf(scores, t, layout.scoreStride);
      Value oldMax = isSingle ? minusInfinity() : load(partOf(maxima, t, width));
      Value max = em.loop(em.i64(0), count.get(em), width, ValueRange{oldMax}, [&](Index s, ValueRange carried) {
                      return SmallVector<Value>{larger(load(offsetBy(em, here, s.base)), carried[0])};
                    }).front();
      max = acrossLanes(max, [&](Value x, Value y) { return larger(x, y); });
      // Rows without any visible key so far keep probabilities of 0.
      Value none = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, max, minusInfinity());
      Value reference = arith::SelectOp::create(b, loc, none, zero(), max);
      Value sum = em.loop(em.i64(0), count.get(em), width, ValueRange{zero()}, [&](Index s, ValueRange carried) {
                      Value at = offsetBy(em, here, s.base);
                      Value x = math::ExpOp::create(b, loc, arith::SubFOp::create(b, loc, load(at), reference));
                      store(x, at);
                      return SmallVector<Value>{add(carried[0], x)};
                    }).front();
      Value sumAt = partOf(sums, t, width);
      if (isSingle)
        return store(sum, sumAt);
      Value correction = math::ExpOp::create(b, loc, arith::SubFOp::create(b, loc, oldMax, reference));
      store(add(arith::MulFOp::create(b, loc, load(sumAt), correction), sum), sumAt);
      store(max, partOf(maxima, t, width));
      store(correction, partOf(corrections, t, width));
    });
  }

  /// result[t][e] += probabilities x values.
  void addValues(Index s0, Extent count) {
    const int64_t columns = vectors * width, looped = p.E / columns * columns;
    if (looped == columns)
      addColumns(s0, count, em.constant(0), columns);
    else if (looped > 0)
      em.loop(em.i64(0), em.i64(looped), columns, [&](Index e0) { addColumns(s0, count, e0, columns); });
    if (looped < p.E)
      addColumns(s0, count, em.constant(looped), p.E - looped);
  }

  void addColumns(Index s0, Extent count, Index e0, int64_t columns) {
    const int64_t here = ceilDiv(columns, width), accumulators = T * here;
    // Sets of accumulators, for rows in turn.
    int64_t sets = 1;
    while (sets < 4 && sets * accumulators < kChains)
      sets *= 2;
    const int64_t rows = accumulators <= 16 ? std::max<int64_t>(2, sets) : 1;
    auto resultAt = [&](int64_t t, int64_t j) {
      return offsetBy(em, offsetBy(em, result, e0.base), t * layout.resultStride + j * width);
    };
    SmallVector<Value> sum(sets * accumulators, zero());
    if (!isSingle)
      for (int64_t t = 0; t < T; ++t) {
        Value correction = load(corrections, t * width);
        for (int64_t j = 0; j < here; ++j)
          sum[t * here + j] = arith::MulFOp::create(b, loc, load(resultAt(t, j)), correction);
      }
    auto addRow = [&](Index s, int64_t set, SmallVector<Value> &sum) {
      Index row = em.addIndex(s0, s);
      SmallVector<Value> values;
      for (int64_t j = 0; j < here; ++j)
        values.push_back(read(p.op.getValue(), row, lanesHere(em.addIndex(e0, em.constant(j * width))),
                              std::min(width, columns - j * width)));
      for (int64_t t = 0; t < T; ++t) {
        Value at = offsetBy(em, offsetBy(em, scores, s.base), t * layout.scoreStride);
        Value probability = em.broadcast(LLVM::LoadOp::create(b, loc, f32, at, 4));
        for (int64_t j = 0; j < here; ++j) {
          Value &to = sum[set * accumulators + t * here + j];
          to = vector::FMAOp::create(b, loc, probability, values[j], to);
        }
      }
    };
    const Value all = count.get(em);
    const Value whole = em.mul(em.divUnsigned(all, em.i64(rows)), em.i64(rows));
    sum = em.loop(em.i64(0), whole, rows, sum, [&](Index s, ValueRange carried) {
      SmallVector<Value> next(carried);
      for (int64_t i = 0; i < rows; ++i)
        addRow(em.addIndex(s, em.constant(i)), i % sets, next);
      return next;
    });
    if (!count.constant || *count.constant % rows != 0)
      sum = em.loop(whole, all, 1, sum, [&](Index s, ValueRange carried) {
        SmallVector<Value> next(carried);
        addRow(s, 0, next);
        return next;
      });
    for (int64_t set = 1; set < sets; ++set)
      for (int64_t i = 0; i < accumulators; ++i)
        sum[i] = add(sum[i], sum[set * accumulators + i]);
    for (int64_t t = 0; t < T; ++t)
      for (int64_t j = 0; j < here; ++j)
        store(sum[t * here + j], resultAt(t, j));
  }

  /// Divides by the sums and stores through the epilogue.
  void finish(const Epilogue &epilogue) {
    Value noKeys = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, S, em.i64(0));
    forQueries([&](Index t) {
      Value sum = acrossLanes(load(partOf(sums, t, width)), [&](Value x, Value y) { return add(x, y); });
      sum = arith::SelectOp::create(b, loc, noKeys, constant(1), sum);
      // A sum is at least 1, or 0 where all keys are hidden: no number then, as 0 / 0 is none.
      Value factor = arith::DivFOp::create(b, loc, constant(1), sum);
      Value isNone; // such weights count as 0
      if (p.op.getZeroNan())
        isNone = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UEQ, sum, zero());
      Value from = partOf(result, t, layout.resultStride);
      em.laneLoop(em.i64(p.E), p.E, [&](Index lane) {
        SmallVector<Index> at = batchAt;
        at.push_back(t);
        at.push_back(lane);
        Value value = arith::MulFOp::create(b, loc, em.loadAt(from, f32, lane), factor);
        storeEpilogue(em, epilogue, at, isNone ? Value(arith::SelectOp::create(b, loc, isNone, zero(), value)) : value);
      });
    });
  }

  const Problem &p;
  Emitter &em;
  OpBuilder &b;
  Location loc;
  Type f32;
  VectorType vector;
  int64_t width, T, tileS, vectors, prefetchKeys;
  Layout layout;
  std::optional<int64_t> knownS;
  bool isSingle; // all keys are one block
  Value task, queries, scores, result, sums, maxima, corrections, S;
  SmallVector<Index> batchAt;
};
} // namespace

void attention_rows::emit(const Problem &p, Schedule schedule, Emitter &em, Value begin, Value end) {
  em.loop(begin, end, 1, [&](Index task) { Task(p, schedule, em).run(task, *p.epilogue); });
}
