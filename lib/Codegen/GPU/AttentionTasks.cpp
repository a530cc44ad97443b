//===- AttentionTasks.cpp - the "gpu.attention" strategy: the code of a block -------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "GPU/Attention.h"

#include "Common/EmitterHelpers.h"
#include "GPU/Ring.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;
using namespace tc::codegen::gpu;

namespace {

/// A thread has two rows of a fragment, eight apart, and of every eight columns two neighbours.
constexpr int64_t kRows = 2, kRowDistance = 8, kPerBlock = 4;
/// Maxima and sums of a row that are under way at once.
constexpr size_t kSideBySide = 4;
// Registers of a thread of producers, and of those of the two groups that they serve: in all what a launch gives.
constexpr int64_t kProducerRegisters = 72, kConsumerRegisters = 216;
// Barriers of a block: those that multiply, and whose turn it is.
constexpr int64_t kConsumersMeet = 1, kTurn = 2;

class BlockCode {
public:
  BlockCode(const TiledAttention &p, AttentionSchedule s, Emitter &e, Value number)
      : p(p), s(s), e(e), b(e.builder()), w(e), layout(p, s),
        hasGroups(e.gpu().hasMma(machine::MmaKind::WarpGroup) && s.getTileT() % kGroupM == 0), threads(countThreads(s)),
        tileS(s.getTileS()), f32(b.getF32Type()), S(e.size(p.S)) {
    const SmallVector<AffineExpr> grid = p.grid(s);
    batch = e.delinearize(e.uniform(number), grid);
    Value tile = batch.pop_back_val().base;
    if (p.op.getCausal())
      tile = e.sub(e.sub(e.size(grid.back()), e.i64(1)), tile);
    firstT = e.mul(tile, e.i64(s.getTileT()));
    thread = threadNumber(e);
    lane = w.rem(thread, machine::kWarpThreads);
    warp = w.div(thread, machine::kWarpThreads);
    shared = dynamicShared(e);
    row = w.add(w.mul(warp, kFragmentM), w.div(lane, kFragmentN / 2));
    const bool isPlain = !p.op.getMask() && p.op.getScale().convertToDouble() > 0;
    const double log2e = 1.4426950408889634, scale = p.op.getScale().convertToDouble();
    // Where nothing is added to them, scores are scaled as they become exponents.
    scoreScale = isPlain ? 1 : scale;
    exponentScale = isPlain ? scale * log2e : log2e;
  }

  void emit();
  /// With producers: for every thread of the block.
  void emitRoles();

private:
  /// What is carried from tile to tile: results, and of each row the largest score and the sum of the weights, of the
  /// thread's columns alone.
  struct State {
    SmallVector<Value> results, largest, sums;

    SmallVector<Value> pack() const { return llvm::to_vector(llvm::concat<const Value>(results, largest, sums)); }
    static State unpack(ValueRange values, size_t count) {
      return {llvm::to_vector(values.take_front(count)), llvm::to_vector(values.slice(count, kRows)),
              llvm::to_vector(values.slice(count + kRows, kRows))};
    }
  };

  size_t countScores() const { return tileS / kFragmentN * kPerBlock; }
  size_t countResults() const { return layout.value.outer / kFragmentN * kPerBlock; }
  Value f(double value) const { return arith::ConstantOp::create(b, e.loc(), b.getF32FloatAttr(float(value))); }
  Value add(Value x, Value y) const { return arith::AddFOp::create(b, e.loc(), x, y); }
  Value mul(Value x, Value y) const { return arith::MulFOp::create(b, e.loc(), x, y); }
  Value max(Value x, Value y) const { return arith::MaxNumFOp::create(b, e.loc(), x, y); }
  Value select(Value condition, Value x, Value y) const { return arith::SelectOp::create(b, e.loc(), condition, x, y); }
  Value compare(arith::CmpFPredicate predicate, Value x, Value y) const {
    return arith::CmpFOp::create(b, e.loc(), predicate, x, y);
  }
  Value minusInfinity() const { return f(-std::numeric_limits<double>::infinity()); }
  Value sharedPlace(Value offset, int64_t more = 0) const { return sharedAt(e, shared, w.add(offset, more)); }
  /// Over the four threads that share a row.
  Value acrossRow(Value x, llvm::function_ref<Value(Value, Value)> combine) const;

  /// How many tiles of keys the block's queries see.
  Value countTiles() const;
  void produce(const Ring &query, const Ring &keys, const Ring &values) const;
  void consume(const Ring &query, const Ring &keys, const Ring &values) const;
  /// Waits for the warpgroup's turn; gives the turn to the other one.
  void takeTurn() const { meetAt(e, w.add(group(), kTurn), threads); }
  void endTurn() const { arriveAt(e, w.add(w.bitXor(group(), w.constant(1)), kTurn), threads); }
  Value group() const { return w.div(warp, kGroupThreads / machine::kWarpThreads); }
  Value stageAt(Ring::Place place) const { return w.add(w.mul(place.slot, layout.stageBytes()), layout.query.size()); }
  /// Before the first tile.
  State makeState() const {
    return {SmallVector<Value>(countResults(), f(0)), SmallVector<Value>(kRows, minusInfinity()),
            SmallVector<Value>(kRows, f(0))};
  }
  void scaleResults(State &state, ArrayRef<Value> factors) const {
    for (size_t i = 0; i < state.results.size(); ++i)
      state.results[i] = mul(state.results[i], factors[i % kPerBlock / 2]);
  }
  /// Of the threads that multiply.
  void meet() const { s.getProducers() ? meetAt(e, w.constant(kConsumersMeet), threads) : barrier(e); }
  void fill(const TileFiller &filler, Value depth, Value to) const;
  void waitForGroups(int64_t pending) const {
    if (hasGroups)
      tc::codegen::gpu::waitForGroups(e, pending);
  }
  SmallVector<Value> multiplyKeys(Value keys) const;
  void multiplyValues(ArrayRef<Value> weights, Value values, MutableArrayRef<Value> results) const;
  void adjustScores(Value firstS, SmallVector<Value> &scores) const;
  void hideScores(Value firstS, SmallVector<Value> &scores) const;
  SmallVector<Value> takeWeights(ArrayRef<Value> scores, State &state, SmallVector<Value> &factors) const;
  void finish(const State &state) const;

  const TiledAttention &p;
  const AttentionSchedule s;
  Emitter &e;
  OpBuilder &b;
  const Words w;
  const AttentionLayout layout;
  const bool hasGroups; // warpgroups multiply
  const int64_t threads, tileS;
  const Type f32;
  SmallVector<Index> batch;
  Value S, firstT; // i64
  Value thread, lane, warp, shared;
  Value row; // of the block, the first of the thread's; i32
  double scoreScale, exponentScale;
};

Value BlockCode::acrossRow(Value x, llvm::function_ref<Value(Value, Value)> combine) const {
  for (int64_t mask = 1; mask < kFragmentN / 2; mask *= 2)
    x = combine(x, shuffle(e, x, int32_t(mask)));
  return x;
}

Value BlockCode::countTiles() const {
  // Keys that the last query of the block sees.
  Value visible = S;
  if (p.op.getCausal()) {
    const Value end = e.add(e.add(firstT, e.i64(s.getTileT())), e.sub(S, e.size(p.T)));
    visible = e.min(S, arith::MaxSIOp::create(b, e.loc(), end, e.i64(0)));
  }
  return e.divUnsigned(e.add(visible, e.i64(tileS - 1)), e.i64(tileS));
}

void BlockCode::emitRoles() {
  const Value multiplies = w.less(thread, w.constant(threads));
  if (!hasGroups) // producers have nothing to do
    return e.ifThen(multiplies, [&] { emit(); });
  const int64_t warps = threads / machine::kWarpThreads;
  const Value barriers = sharedAt(e, shared, w.constant(layout.barriersAt()));
  auto after = [&](int64_t bytes) { return sharedAt(e, barriers, w.constant(bytes)); };
  const int64_t ofQuery = Ring::barrierBytes(1), ofTiles = Ring::barrierBytes(layout.stages);
  const Ring query(e, barriers, 1, kGroupThreads, warps), keys(e, after(ofQuery), layout.stages, kGroupThreads, warps),
      values(e, after(ofQuery + ofTiles), layout.stages, kGroupThreads, warps);
  e.ifThen(arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::eq, thread, w.constant(0)), [&] {
    for (const Ring *ring : {&query, &keys, &values})
      ring->init();
  });
  barrier(e);
  ifElse(
      e, multiplies,
      [&] {
        setRegisters(e, kConsumerRegisters, /*more=*/true);
        consume(query, keys, values);
      },
      [&] {
        setRegisters(e, kProducerRegisters, /*more=*/false);
        produce(query, keys, values);
        waitForCopies(e, 0);
      });
}

void BlockCode::produce(const Ring &query, const Ring &keys, const Ring &values) const {
  const Value number = w.rem(thread, kGroupThreads);
  auto copy = [&](const TiledOperand &operand, const SharedTile &tile, Value outer, Value depth, Value to) {
    TileFiller(e, operand, tile, batch, outer, kGroupThreads, /*rounds=*/false, number).copy(depth, to);
  };
  copy(p.query, layout.query, firstT, e.i64(0), shared);
  query.fill(query.begin());
  const Ring::Place first = keys.begin();
  // Without any key there is one tile, of zeros.
  const Value tiles = arith::MaxSIOp::create(b, e.loc(), countTiles(), e.i64(1));
  e.loop(e.i64(0), tiles, 1, {first.slot, first.lap}, [&](Index tile, ValueRange carried) {
    const Ring::Place at{carried[0], carried[1]};
    const Value firstS = e.mul(tile.base, e.i64(tileS)), stage = stageAt(at);
    keys.awaitEmpty(at);
    copy(p.key, layout.key, firstS, e.i64(0), sharedPlace(stage));
    keys.fill(at);
    values.awaitEmpty(at);
    copy(p.value, layout.value, e.i64(0), firstS, sharedPlace(stage, layout.key.size()));
    values.fill(at);
    const Ring::Place next = keys.next(at);
    return SmallVector<Value>{next.slot, next.lap};
  });
}

void BlockCode::consume(const Ring &query, const Ring &keys, const Ring &values) const {
  auto isGroup = [&](int64_t number) -> Value {
    return arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::eq, group(), w.constant(number));
  };
  auto valuesOf = [&](Ring::Place place) { return sharedPlace(stageAt(place), layout.key.size()); };
  // The first turn is the first group's.
  e.ifThen(isGroup(1), [&] { endTurn(); });
  State state = makeState();
  Ring::Place at = keys.begin();
  query.awaitFull(query.begin());
  keys.awaitFull(at);
  takeTurn();
  SmallVector<Value> scores = multiplyKeys(sharedPlace(stageAt(at)));
  endTurn();
  waitForGroups(0);
  keys.release(at);
  adjustScores(e.i64(0), scores);
  SmallVector<Value> factors;
  SmallVector<Value> weights = takeWeights(scores, state, factors);

  SmallVector<Value> carried = state.pack();
  const size_t stateSize = carried.size();
  carried.append(weights);
  carried.append({at.slot, at.lap});
  // Step j multiplies the keys of tile j and the values of the tile before, so that softmax goes on beside products:
  // these, and those of the other group.
  carried = e.loop(e.i64(1), countTiles(), 1, carried, [&](Index tile, ValueRange passed) {
    State state = State::unpack(passed, countResults());
    SmallVector<Value> weights = llvm::to_vector(passed.slice(stateSize, countScores() / 2));
    const Ring::Place before{passed.drop_back().back(), passed.back()}, at = keys.next(before);
    keys.awaitFull(at);
    values.awaitFull(before);
    takeTurn();
    SmallVector<Value> scores = multiplyKeys(sharedPlace(stageAt(at)));
    multiplyValues(weights, valuesOf(before), state.results);
    endTurn();
    waitForGroups(1);
    keys.release(at);
    adjustScores(e.mul(tile.base, e.i64(tileS)), scores);
    SmallVector<Value> factors;
    weights = takeWeights(scores, state, factors);
    waitForGroups(0);
    values.release(before);
    scaleResults(state, factors);
    SmallVector<Value> next = state.pack();
    next.append(weights);
    next.append({at.slot, at.lap});
    return next;
  });
  state = State::unpack(carried, countResults());
  weights = llvm::to_vector(ArrayRef(carried).slice(stateSize, countScores() / 2));
  const Ring::Place last{carried[carried.size() - 2], carried.back()};
  values.awaitFull(last);
  takeTurn();
  multiplyValues(weights, valuesOf(last), state.results);
  e.ifThen(isGroup(0), [&] { endTurn(); });
  waitForGroups(0);
  meet(); // all tiles have been read
  finish(state);
}

void BlockCode::emit() {
  const Value tiles = countTiles();
  // Step j multiplies the keys of tile j and the values of the tile before, so that softmax goes on beside products.
  // Its copies are group j: the values are one tile behind.
  const int64_t ahead = s.getStages() - 1, ring = layout.query.size();
  auto copyGroup = [&](Value group, Value keySlot, Value valueSlot) {
    auto ifTile = [&](Value tile, llvm::function_ref<void()> fn) {
      const Value isTile = arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::ult, tile, tiles);
      e.ifThen(isTile, fn);
    };
    ifTile(group, [&] {
      fill(TileFiller(e, p.key, layout.key, batch, e.mul(group, e.i64(tileS)), threads), e.i64(0), keySlot);
    });
    const Value before = e.sub(group, e.i64(1));
    ifTile(before, [&] {
      fill(TileFiller(e, p.value, layout.value, batch, e.i64(0), threads), e.mul(before, e.i64(tileS)), valueSlot);
    });
    commitCopies(e);
  };
  auto slot = [&](int64_t stage) { return w.constant(ring + stage * layout.stageBytes()); };
  auto keysOf = [&](Value slot) { return sharedPlace(slot); };
  auto valuesOf = [&](Value slot) { return sharedPlace(slot, layout.key.size()); };
  auto after = [&](Value slot) {
    const Value next = w.add(slot, layout.stageBytes());
    const Value wraps =
        arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::eq, next, w.constant(ring + layout.ringBytes()));
    return w.select(wraps, w.constant(ring), next);
  };
  auto await = [&](int64_t pending) {
    waitForCopies(e, pending);
    if (hasGroups)
      fenceForTensorCores(e);
    meet(); // what was copied is there, and what the step before read may be written
  };

  fill(TileFiller(e, p.query, layout.query, batch, firstT, threads), e.i64(0), shared);
  for (int64_t i = 0; i < ahead; ++i)
    copyGroup(e.i64(i), keysOf(slot(i)), valuesOf(slot(std::max<int64_t>(i - 1, 0))));
  await(ahead - 1);
  // The slots of tiles -1 and -2.
  const int64_t last = s.getStages() - 1, lastButOne = s.getStages() - 2;
  copyGroup(e.i64(ahead), keysOf(slot(last)), valuesOf(slot(lastButOne)));
  State state = makeState();
  SmallVector<Value> scores = multiplyKeys(keysOf(slot(0)));
  waitForGroups(0);
  adjustScores(e.i64(0), scores);
  SmallVector<Value> factors;
  SmallVector<Value> weights = takeWeights(scores, state, factors);

  SmallVector<Value> carried = state.pack();
  const size_t stateSize = carried.size();
  carried.append(weights);
  carried.append({slot(1), slot(0), slot(last)});
  carried = e.loop(e.i64(1), tiles, 1, carried, [&](Index tile, ValueRange values) {
    State state = State::unpack(values, countResults());
    SmallVector<Value> weights = llvm::to_vector(values.slice(stateSize, countScores() / 2));
    const Value at = values.drop_back(2).back(), before = values.drop_back().back(), twoBefore = values.back();
    await(ahead - 1);
    copyGroup(e.add(tile.base, e.i64(ahead)), keysOf(before), valuesOf(twoBefore));
    SmallVector<Value> scores = multiplyKeys(keysOf(at));
    multiplyValues(weights, valuesOf(before), state.results);
    waitForGroups(1);
    adjustScores(e.mul(tile.base, e.i64(tileS)), scores);
    SmallVector<Value> factors;
    weights = takeWeights(scores, state, factors);
    waitForGroups(0);
    scaleResults(state, factors);
    SmallVector<Value> next = state.pack();
    next.append(weights);
    next.append({after(at), at, before});
    return next;
  });
  state = State::unpack(carried, countResults());
  weights = llvm::to_vector(ArrayRef(carried).slice(stateSize, countScores() / 2));
  await(0);
  multiplyValues(weights, valuesOf(carried[carried.size() - 2]), state.results);
  waitForGroups(0);
  meet(); // all tiles have been read
  finish(state);
}

void BlockCode::fill(const TileFiller &filler, Value depth, Value to) const {
  if (filler.isAsync())
    filler.copy(depth, to);
  else
    filler.store(filler.compute(depth), depth, to);
}

/// The scores of the warp's queries and a tile of keys.
SmallVector<Value> BlockCode::multiplyKeys(Value keys) const {
  const int64_t steps = layout.query.depth * layout.query.bytes / kFragmentBytes;
  if (hasGroups) {
    const Value group = w.div(warp, kGroupThreads / machine::kWarpThreads);
    const Value a = describe(e, layout.query, sharedAt(e, shared, w.mul(group, kGroupM * kLineBytes))),
                c = describe(e, layout.key, keys);
    SmallVector<Value> scores(countScores(), LLVM::UndefOp::create(b, e.loc(), f32));
    beginGroup(e);
    for (int64_t step = 0; step < steps; ++step)
      multiplyTiles(e, p.element, tileS, atStep(e, layout.query, a, step), /*aIsTransposed=*/false,
                    atStep(e, layout.key, c, step), /*bIsTransposed=*/false, scores, /*adds=*/step > 0);
    endGroup(e);
    return scores;
  }
  SmallVector<Value> scores(countScores(), f(0));
  const Value firstRow = w.mul(warp, kFragmentM);
  for (int64_t step = 0; step < steps; ++step) {
    const SmallVector<Value> a = loadFragment(e, layout.query, shared, firstRow, step, /*byLines=*/true);
    for (int64_t i = 0; i < tileS; i += kFragmentM) {
      const SmallVector<Value> c = loadFragment(e, layout.key, keys, w.constant(i), step, /*byLines=*/false);
      for (int64_t half = 0; half < 2; ++half)
        multiplyFragments(e, p.element, a, ArrayRef(c).slice(2 * half, 2),
                          MutableArrayRef(scores).slice((i / kFragmentN + half) * kPerBlock, kPerBlock));
    }
  }
  return scores;
}

void BlockCode::multiplyValues(ArrayRef<Value> weights, Value values, MutableArrayRef<Value> results) const {
  const int64_t steps = tileS * layout.value.bytes / kFragmentBytes;
  if (hasGroups) {
    const Value c = describe(e, layout.value, values);
    beginGroup(e);
    for (int64_t step = 0; step < steps; ++step)
      multiplyRows(e, p.element, layout.value.outer, weights.slice(step * kPerBlock, kPerBlock),
                   atStep(e, layout.value, c, step), /*bIsTransposed=*/true, results);
    endGroup(e);
    return;
  }
  for (int64_t step = 0; step < steps; ++step)
    for (int64_t i = 0; i < layout.value.outer; i += kFragmentM) {
      const SmallVector<Value> c = loadFragment(e, layout.value, values, w.constant(i), step, /*byLines=*/false);
      for (int64_t half = 0; half < 2; ++half)
        multiplyFragments(e, p.element, weights.slice(step * kPerBlock, kPerBlock), ArrayRef(c).slice(2 * half, 2),
                          results.slice((i / kFragmentN + half) * kPerBlock, kPerBlock));
    }
}

/// Scales scores, adds the mask, and hides what no query may see.
void BlockCode::adjustScores(Value firstS, SmallVector<Value> &scores) const {
  if (scoreScale != 1)
    for (Value &score : scores)
      score = mul(score, f(scoreScale));
  if (Value mask = p.op.getMask()) {
    const Type element = elementOf(mask);
    const Value T = e.size(p.T), firstRow = e.add(firstT, w.wide(row));
    const Value firstColumn = e.add(firstS, w.wide(w.mul(w.rem(lane, kFragmentN / 2), 2)));
    auto isLess = [&](Value x, Value y) -> Value {
      return arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::slt, x, y);
    };
    for (size_t i = 0; i < scores.size(); ++i) {
      const int64_t block = i / kPerBlock, half = i % kPerBlock / 2;
      const Value t = e.add(firstRow, e.i64(half * kRowDistance)),
                  at = e.add(firstColumn, e.i64(block * kFragmentN + i % 2));
      const Value inside = arith::AndIOp::create(b, e.loc(), isLess(t, T), isLess(at, S));
      const Value zero = arith::ConstantOp::create(b, e.loc(), b.getZeroAttr(Emitter::valueType(element)));
      Value added = e.emitGuarded(inside, element, zero, /*lanes=*/false, [&] {
        SmallVector<Index> position(batch);
        position.append({e.uniform(t), e.uniform(at)});
        return e.emit(mask, position);
      });
      if (added.getType() != f32)
        added = arith::ExtFOp::create(b, e.loc(), f32, added);
      scores[i] = add(scores[i], added);
    }
  }
  // Where all keys of the tile are seen by all queries of the block, nothing is hidden.
  const auto size = prim::getConstantSize(p.S);
  if (!p.op.getCausal() && size && *size > 0 && *size % tileS == 0)
    return;
  Value seen = S;
  if (p.op.getCausal())
    seen = e.min(seen, e.add(e.add(firstT, e.sub(S, e.size(p.T))), e.i64(1)));
  const Value hides = arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::sgt, e.add(firstS, e.i64(tileS)), seen);
  auto branch = scf::IfOp::create(b, e.loc(), SmallVector<Type>(scores.size(), f32), hides, /*addElse=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&branch.getThenRegion().front());
    SmallVector<Value> hidden = scores;
    hideScores(firstS, hidden);
    scf::YieldOp::create(b, e.loc(), hidden);
    b.setInsertionPointToStart(&branch.getElseRegion().front());
    scf::YieldOp::create(b, e.loc(), scores);
  }
  scores.assign(branch.getResults().begin(), branch.getResults().end());
}

void BlockCode::hideScores(Value firstS, SmallVector<Value> &scores) const {
  const Value column = w.mul(w.rem(lane, kFragmentN / 2), 2);
  for (int64_t half = 0; half < kRows; ++half) {
    // How many keys from the tile's first on the row sees.
    Value seen = e.sub(S, firstS);
    if (p.op.getCausal()) {
      const Value t = e.add(firstT, w.wide(w.add(row, half * kRowDistance)));
      seen = e.min(seen, e.sub(e.add(e.add(t, e.sub(S, e.size(p.T))), e.i64(1)), firstS));
    }
    seen = arith::MaxSIOp::create(b, e.loc(), e.min(seen, e.i64(tileS)), e.i64(0));
    const Value count = arith::TruncIOp::create(b, e.loc(), b.getI32Type(), seen);
    for (int64_t block = 0; block < tileS / kFragmentN; ++block)
      for (int64_t i = 0; i < 2; ++i) {
        Value &score = scores[block * kPerBlock + half * 2 + i];
        score = select(w.less(w.add(column, block * kFragmentN + i), count), score, minusInfinity());
      }
  }
}

/// The weights of a tile's scores as words of the second product's fragments; brings the rows' maxima and sums up to
/// them. `factors`: of each row, what earlier results are multiplied by. Sums are of the weights as they are rounded to
/// the element type, so that the errors of few keys cancel; where roles show that many keys are expected, whose errors
/// average out, conversions back would cost more than they give.
SmallVector<Value> BlockCode::takeWeights(ArrayRef<Value> scores, State &state, SmallVector<Value> &factors) const {
  SmallVector<Value> words(scores.size() / 2);
  auto combineMax = [&](Value x, Value y) { return max(x, y); };
  auto combineSum = [&](Value x, Value y) { return add(x, y); };
  for (int64_t half = 0; half < kRows; ++half) {
    auto of = [&](size_t block, int64_t i) { return scores[block * kPerBlock + half * 2 + i]; };
    const size_t blocks = scores.size() / kPerBlock;
    // Several side by side: each waits for the one before.
    SmallVector<Value> largestOf(kSideBySide), sumOf(kSideBySide);
    auto combineInto = [&](Value &all, Value x, llvm::function_ref<Value(Value, Value)> combine) {
      all = all ? combine(all, x) : x;
    };
    for (size_t block = 0; block < blocks; ++block)
      combineInto(largestOf[block % kSideBySide], max(of(block, 0), of(block, 1)), combineMax);
    Value largest;
    for (Value part : ArrayRef(largestOf).take_front(blocks))
      combineInto(largest, part, combineMax);
    largest = max(state.largest[half], acrossRow(largest, combineMax));
    // Where nothing has been seen yet, exponents are those of minus infinity.
    const Value base = select(compare(arith::CmpFPredicate::OEQ, largest, minusInfinity()), f(0), largest);
    const Value scale = f(exponentScale), offset = mul(base, f(-exponentScale));
    auto exponential = [&](Value score) { return exp2(e, math::FmaOp::create(b, e.loc(), score, scale, offset)); };
    const Value factor = exponential(state.largest[half]);
    for (size_t block = 0; block < blocks; ++block) {
      Value x = exponential(of(block, 0)), y = exponential(of(block, 1));
      const auto pair = VectorType::get({2}, f32), narrowPair = VectorType::get({2}, p.element);
      const Value two = vector::FromElementsOp::create(b, e.loc(), pair, ValueRange{x, y});
      const Value narrow = arith::TruncFOp::create(b, e.loc(), narrowPair, two);
      words[block * 2 + half] = LLVM::BitcastOp::create(b, e.loc(), b.getI32Type(), narrow);
      if (!s.getProducers()) {
        // As arith, both conversions would fold.
        const Value rounded = LLVM::FPExtOp::create(b, e.loc(), pair, narrow);
        x = vector::ExtractOp::create(b, e.loc(), rounded, 0);
        y = vector::ExtractOp::create(b, e.loc(), rounded, 1);
      }
      combineInto(sumOf[block % kSideBySide], add(x, y), combineSum);
    }
    Value sum = mul(state.sums[half], factor);
    for (Value part : ArrayRef(sumOf).take_front(blocks))
      sum = add(sum, part);
    state.sums[half] = sum;
    state.largest[half] = largest;
    factors.push_back(factor);
  }
  return words;
}

/// Divides results by the sums, turns fragments into rows, and stores what is computed from them.
void BlockCode::finish(const State &state) const {
  SmallVector<Value> inverse;
  Value hasKeys; // without keys the result is 0
  if (prim::getConstantSize(p.S).value_or(0) == 0)
    hasKeys = arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::ne, S, e.i64(0));
  for (Value sum : state.sums) {
    sum = acrossRow(sum, [&](Value x, Value y) { return add(x, y); });
    inverse.push_back(arith::DivFOp::create(b, e.loc(), f(1), sum));
  }
  SmallVector<Value> results;
  for (auto [i, sum] : llvm::enumerate(state.results)) {
    const Value factor = inverse[i % kPerBlock / 2];
    Value result = mul(sum, factor);
    if (p.op.getZeroNan()) {
      // Weights that are no numbers count as 0: all of a row's, or none.
      const Value isNumber = compare(arith::CmpFPredicate::ORD, factor, factor);
      const Value isSeen = compare(arith::CmpFPredicate::OLT, factor, f(std::numeric_limits<double>::infinity()));
      result = select(arith::AndIOp::create(b, e.loc(), isNumber, isSeen), result, f(0));
    }
    results.push_back(hasKeys ? select(hasKeys, result, f(0)) : result);
  }
  const int64_t columns = layout.value.outer, lanes = lanesOf(p);
  storeFragments(e, shared, columns, w.mul(warp, kFragmentM), w.constant(0), columns, results);
  meet();
  storeSums(e, *p.epilogue, {shared, columns, threads, s.getTileT(), p.E, lanes}, [&](Value row, Value column) {
    const Value t = e.add(firstT, row), inside = andWithin(e, Value(), t, p.T, s.getTileT());
    SmallVector<Index> at(batch);
    at.push_back(e.uniform(clampTo(e, inside, t, p.T, 1)));
    at.push_back(lanes == 1 ? e.uniform(column) : e.contiguous(e.uniform(column, lanes)));
    return Placed<SmallVector<Index>>{at, inside};
  });
}

} // namespace

void tc::codegen::gpu::emitAttentionBlock(const TiledAttention &p, AttentionSchedule s, Emitter &e, Value block) {
  BlockCode code(p, s, e, block);
  s.getProducers() ? code.emitRoles() : code.emit();
}
