//===- MmaTasks.cpp - the "gpu.mma" strategy: the code of a block -------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Common/EmitterHelpers.h"
#include "GPU/Mma.h"
#include "GPU/Ring.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;
using namespace tc::codegen::gpu;

namespace {

constexpr int64_t kSteps = kLineBytes / kFragmentBytes; // of a slice
constexpr int64_t kConsumersMeet = 1;                   // the barrier
// Registers of a thread of the warpgroup that copies.
constexpr int64_t kProducerRegisters = 40;

/// Registers of each of so many threads that multiply beside that warpgroup. A block has those that its threads begin
/// with: more would be waited for without end.
int64_t countConsumerRegisters(int64_t threads) {
  constexpr int64_t kMost = 232, kUnit = 8;
  const int64_t all = threads + kGroupThreads, first = kRegisters / all / kUnit * kUnit;
  return std::min(kMost, (first * all - kProducerRegisters * kGroupThreads) / threads / kUnit * kUnit);
}

// What TF32 keeps of f32, and half of its last place.
constexpr uint32_t kHighBits = 0xffffe000, kHalf = 0x1000;

SmallVector<Index> resultAt(const MmaProblem &p, Emitter &e, ArrayRef<Index> batch, const Index &row,
                            const Index &column) {
  return p.resultAt(e, batch, e.delinearize(row, p.rows),
                    e.delinearize(lanesOf(p) == 1 ? column : e.contiguous(column), p.columns));
}

/// x = high + low of f32, where high is what tensor cores take of x. They cut off what they do not take: of x that is
/// in low, of low it would make all products smaller, by 4 in 10^7, so that `low` is rounded to nearest by the cut. It
/// is 0 where x is not finite, and `factor`, which stands for high where it meets the other operand's low, too:
/// infinity times 0 must not give NaN.
struct Parts {
  Value factor, low;
};
Parts splitFloat(Emitter &e, Value x) {
  OpBuilder &b = e.builder();
  auto vector = dyn_cast<VectorType>(x.getType());
  const Type bitsType = vector ? Type(vector.clone(b.getI32Type())) : b.getI32Type();
  auto constant = [&](uint32_t value) -> Value {
    const auto attr = b.getI32IntegerAttr(int32_t(value));
    return vector
               ? Value(arith::ConstantOp::create(b, e.loc(), DenseElementsAttr::get(cast<VectorType>(bitsType), attr)))
               : Value(arith::ConstantOp::create(b, e.loc(), attr));
  };
  const Value bits = LLVM::BitcastOp::create(b, e.loc(), bitsType, x), zero = constant(0);
  const Value high = arith::AndIOp::create(b, e.loc(), bits, constant(kHighBits));
  const Value low = arith::SubFOp::create(b, e.loc(), x, LLVM::BitcastOp::create(b, e.loc(), x.getType(), high));
  const Value isFinite = arith::CmpFOp::create(b, e.loc(), arith::CmpFPredicate::ORD, low, low);
  const Value nearest =
      arith::AddIOp::create(b, e.loc(), LLVM::BitcastOp::create(b, e.loc(), bitsType, low), constant(kHalf));
  return {arith::SelectOp::create(b, e.loc(), isFinite, high, zero),
          arith::SelectOp::create(b, e.loc(), isFinite, nearest, zero)};
}

class BlockCode {
public:
  BlockCode(const MmaProblem &p, MmaSchedule s, Emitter &e, Value number);
  void emit();

private:
  /// Warpgroups take 64 rows and all columns, each.
  static bool takesGroups(Emitter &e, MmaSchedule s) {
    return e.gpu().hasMma(machine::MmaKind::WarpGroup) && s.getTileM() % kGroupM == 0 &&
           s.getTileM() / kGroupM * kGroupThreads == countThreads(s);
  }
  bool isExact() const { return s.getPasses() == 3; }
  /// Warpgroups take rows of TF32 from registers, where they are rounded on their way from shared memory.
  bool takesRows() const { return hasGroups && p.takesTf32(s); }
  /// Products of a slice go on while those of the next are begun; else they are waited for.
  bool overlaps() const { return hasGroups && !isExact() && !takesRows(); }
  /// Tensor cores take the upper bits of f32: less than what is nearest, all to the same side. Whether columns are
  /// rounded before they are in shared memory.
  bool hasRoundColumns() const {
    return !p.takesTf32(s) || s.getPacksRhs() || s.getRhsLaunch() || !TileFiller::isAsync(p.rhsOf(s), layout.rhs);
  }
  int64_t warpsM() const { return hasGroups ? s.getWarpsM() * s.getWarpsN() : s.getWarpsM(); }
  int64_t warpsN() const { return hasGroups ? 1 : s.getWarpsN(); }
  /// Rows and columns of a warp.
  int64_t warpM() const { return s.getTileM() / warpsM(); }
  int64_t warpN() const { return s.getTileN() / warpsN(); }
  Value warpRow() const { return w.mul(w.div(warp, warpsN()), warpM()); }
  Value warpColumn() const { return w.mul(w.rem(warp, warpsN()), warpN()); }
  Value sharedPlace(Value offset, int64_t more = 0) const { return sharedAt(e, shared, w.add(offset, more)); }

  /// Of the threads that multiply.
  void meet() const { p.hasMaps(s) ? meetAt(e, w.constant(kConsumersMeet), threads) : barrier(e); }
  /// A warp copies, others multiply.
  void emitRoles();
  void copySlices(const Ring &ring) const;
  SmallVector<Value> multiplySlices(const Ring &ring) const;
  SmallVector<Value> loadRows(Value a) const;
  void multiplyRowsByGroups(ArrayRef<Value> rows, Value b, MutableArrayRef<Value> sums) const;
  struct Slices {
    Value first, end; // i64
  };
  /// Of K, for the block's part.
  Slices slices() const;
  Value stageAt(Ring::Place place) const { return w.mul(place.slot, layout.stageBytes); }

  SmallVector<Value> multiplySlices();
  void multiplyByGroups(Value a, Value b, MutableArrayRef<Value> sums, bool adds) const;
  void multiplyByWarps(Value stage, MutableArrayRef<Value> sums) const;
  SmallVector<Value> roundedWords(ArrayRef<Value> words) const;
  void writeLowParts(Value stage) const;
  void roundColumns(Value stage) const;
  void finish(ArrayRef<Value> sums) const;
  void storePart(Value m, Value n, Value sums) const;

  const MmaProblem &p;
  const MmaSchedule s;
  Emitter &e;
  const Words w;
  const MmaLayout layout;
  const bool hasGroups; // warpgroups multiply
  const int64_t threads;
  SmallVector<Index> batch;
  Value split, rowBase, columnBase; // i64
  Value thread, lane, warp, shared;
};

BlockCode::BlockCode(const MmaProblem &p, MmaSchedule s, Emitter &e, Value number)
    : p(p), s(s), e(e), w(e), layout(p, s), hasGroups(takesGroups(e, s)), threads(countThreads(s)) {
  const SmallVector<AffineExpr> grid = p.grid(s);
  const SmallVector<Index> task = e.delinearize(e.uniform(number), grid);
  split = task[0].base;
  batch = e.delinearize(task[1], p.batch);
  // In groups of rows of tiles, column by column.
  const Value tileRows = e.size(grid[2]), tileColumns = e.size(grid[3]), group = e.i64(s.getGroup());
  const Value tile = e.add(e.mul(task[2].base, tileColumns), task[3].base), perGroup = e.mul(tileColumns, group);
  const Value first = e.mul(e.divUnsigned(tile, perGroup), group), inGroup = e.remUnsigned(tile, perGroup);
  const Value rows = e.min(e.sub(tileRows, first), group);
  rowBase = e.mul(e.add(first, e.remUnsigned(inGroup, rows)), e.i64(s.getTileM()));
  columnBase = e.mul(e.divUnsigned(inGroup, rows), e.i64(s.getTileN()));
  thread = threadNumber(e);
  lane = w.rem(thread, machine::kWarpThreads);
  warp = w.div(thread, machine::kWarpThreads);
  shared = dynamicShared(e);
}

void BlockCode::emit() {
  auto emitByThreads = [&] {
    const SmallVector<Value> sums = multiplySlices();
    waitForCopies(e, 0);
    meet(); // all slices have been read
    finish(sums);
  };
  if (!p.hasMaps(s))
    emitByThreads();
  else if (hasGroups)
    emitRoles();
  else // the copying warp has nothing to do
    e.ifThen(w.less(thread, w.constant(threads)), emitByThreads);
}

BlockCode::Slices BlockCode::slices() const {
  const Value all = e.size(prim::simplifySize(p.K.ceilDiv(layout.depth())));
  const Value perSplit = e.divUnsigned(e.add(all, e.i64(s.getSplits() - 1)), e.i64(s.getSplits()));
  const Value first = e.mul(split, perSplit), end = e.min(all, e.add(first, perSplit));
  if (!p.hasMaps(s))
    return {first, end};
  // One at least, which is zero beyond K.
  return {first, arith::MaxSIOp::create(e.builder(), e.loc(), end, e.add(first, e.i64(1)))};
}

void BlockCode::emitRoles() {
  OpBuilder &b = e.builder();
  const Ring ring = Ring::ofTensorCopies(e, sharedPlace(w.constant(layout.barriersAt())), layout.stages,
                                         threads / machine::kWarpThreads);
  auto isEqual = [&](Value x, int64_t y) -> Value {
    return arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::eq, x, w.constant(y));
  };
  e.ifThen(isEqual(thread, 0), [&] {
    ring.init();
    fenceBarriers(e);
  });
  barrier(e);
  ifElse(
      e, w.less(thread, w.constant(threads)),
      [&] {
        setRegisters(e, countConsumerRegisters(threads), /*more=*/true);
        const SmallVector<Value> sums = multiplySlices(ring);
        meet(); // all slices have been read
        finish(sums);
      },
      [&] {
        setRegisters(e, kProducerRegisters, /*more=*/false);
        e.ifThen(isEqual(warp, threads / machine::kWarpThreads), [&] { copySlices(ring); });
      });
}

/// By a warp, of which lane 0 copies.
void BlockCode::copySlices(const Ring &ring) const {
  OpBuilder &b = e.builder();
  const Value isFirst = w.less(lane, w.constant(1));
  auto narrow = [&](Value x) -> Value { return arith::TruncIOp::create(b, e.loc(), b.getI32Type(), x); };
  const Value lhsMap = firstMap(e, e.input(e.region().getInputs().size() + p.launchesBefore(s) - 1)),
              rhsMap = nextMap(e, lhsMap, 1);
  acquireTensorMap(e, lhsMap);
  acquireTensorMap(e, rhsMap);
  const Value row = narrow(rowBase), column = narrow(columnBase);
  const Slices range = slices();
  const Ring::Place begin = ring.begin();
  e.loop(range.first, range.end, 1, {begin.slot, begin.lap}, [&](Index slice, ValueRange carried) {
    const Ring::Place at{carried[0], carried[1]}, next = ring.next(at);
    const Value depth = w.mul(narrow(slice.base), layout.depth());
    ring.awaitEmpty(at);
    const Value full = ring.expect(at, w.constant(layout.stageBytes), isFirst);
    auto copy = [&](const TiledOperand &operand, const SharedTile &tile, Value map, Value outer, int64_t offset) {
      for (int64_t panel = 0; panel < tile.panels(); ++panel) {
        SmallVector<Value> position{operand.alongDepth ? depth : outer, operand.alongDepth ? outer : depth};
        position[0] = w.add(position[0], panel * tile.perLine());
        for (size_t dim : operand.lines->batchDims())
          position.push_back(narrow(batch[dim].base));
        copyBox(e, map, position, sharedPlace(stageAt(at), offset + panel * tile.panelBytes()), full, isFirst);
      }
    };
    copy(p.lhs, layout.lhs, lhsMap, row, 0);
    copy(p.rhsOf(s), layout.rhs, rhsMap, column, layout.lhs.size());
    return SmallVector<Value>{next.slot, next.lap};
  });
}

SmallVector<Value> BlockCode::multiplySlices(const Ring &ring) const {
  OpBuilder &b = e.builder();
  const Value zero = arith::ConstantOp::create(b, e.loc(), b.getF32FloatAttr(0));
  const size_t count = warpM() / kFragmentM * (warpN() / kFragmentN) * 4;
  SmallVector<Value> carried(count, zero);
  const Slices range = slices();
  auto lhsOf = [&](Ring::Place at) { return sharedPlace(stageAt(at)); };
  auto rhsOf = [&](Ring::Place at) { return sharedPlace(stageAt(at), layout.lhs.size()); };
  const Ring::Place begin = ring.begin();
  if (takesRows()) {
    // Rows of the next slice are read while this one is multiplied, and rounded when that is done: ptxas wants
    // registers that warpgroups read written outside.
    ring.awaitFull(begin);
    carried.append(loadRows(lhsOf(begin)));
    const size_t rowsCount = carried.size() - count;
    carried.append({begin.slot, begin.lap});
    carried = e.loop(e.add(range.first, e.i64(1)), range.end, 1, carried, [&](Index, ValueRange values) {
      SmallVector<Value> sums(values.take_front(count));
      const Ring::Place at{values[count + rowsCount], values[count + rowsCount + 1]}, next = ring.next(at);
      multiplyRowsByGroups(roundedWords(llvm::to_vector(values.slice(count, rowsCount))), rhsOf(at), sums);
      ring.awaitFull(next);
      const SmallVector<Value> rows = loadRows(lhsOf(next));
      waitForGroups(e, 0);
      ring.release(at);
      sums.append(rows);
      sums.append({next.slot, next.lap});
      return sums;
    });
    SmallVector<Value> sums(ArrayRef(carried).take_front(count));
    multiplyRowsByGroups(roundedWords(ArrayRef(carried).slice(count, rowsCount)),
                         rhsOf({carried[count + rowsCount], carried[count + rowsCount + 1]}), sums);
    waitForGroups(e, 0);
    return sums;
  }
  carried.append({begin.slot, begin.lap, begin.slot});
  carried = e.loop(range.first, range.end, 1, carried, [&](Index slice, ValueRange values) {
    SmallVector<Value> sums(values.take_front(count));
    const Ring::Place at{values[count], values[count + 1]}, next = ring.next(at);
    ring.awaitFull(at);
    multiplyByGroups(lhsOf(at), rhsOf(at), sums, /*adds=*/true);
    waitForGroups(e, 1); // the slice before has been multiplied
    ring.release({values[count + 2], Value()},
                 arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::ne, slice.base, range.first));
    sums.append({next.slot, next.lap, at.slot});
    return sums;
  });
  waitForGroups(e, 0);
  carried.truncate(count);
  return carried;
}

/// The warp's rows of a slice, kSteps fragments.
SmallVector<Value> BlockCode::loadRows(Value a) const {
  SmallVector<Value> words;
  for (int64_t step = 0; step < kSteps; ++step)
    words.append(loadFragment(e, layout.lhs, a, warpRow(), step, /*byLines=*/true));
  return words;
}

void BlockCode::multiplyRowsByGroups(ArrayRef<Value> rows, Value b, MutableArrayRef<Value> sums) const {
  const Value bTile = describe(e, layout.rhs, b);
  beginGroup(e);
  for (int64_t step = 0; step < kSteps; ++step)
    multiplyRows(e, p.element, s.getTileN(), rows.slice(step * rows.size() / kSteps, rows.size() / kSteps),
                 atStep(e, layout.rhs, bTile, step), /*bIsTransposed=*/false, sums);
  endGroup(e);
}

SmallVector<Value> BlockCode::multiplySlices() {
  OpBuilder &b = e.builder();
  const TileFiller lhs(e, p.lhs, layout.lhs, batch, rowBase, threads),
      rhs(e, p.rhsOf(s), layout.rhs, batch, columnBase, threads, p.takesTf32(s));
  const std::pair<const TileFiller *, int64_t> fillers[] = {{&lhs, 0}, {&rhs, layout.lhs.size()}};
  const int64_t ahead = s.getStages() - 1;
  const Slices range = slices();
  const Value firstSlice = range.first, endSlice = range.end;
  // Past the last slice it is computed again, and not read.
  const Value last = arith::MaxSIOp::create(b, e.loc(), e.sub(endSlice, e.i64(1)), e.i64(0));
  auto depthOf = [&](Value slice) { return e.mul(slice, e.i64(layout.depth())); };
  auto copy = [&](Value slice, Value stage) {
    const Value isSlice = arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::slt, slice, endSlice);
    if (lhs.isAsync() || rhs.isAsync())
      e.ifThen(isSlice, [&] {
        for (auto [filler, offset] : fillers)
          if (filler->isAsync())
            filler->copy(depthOf(slice), sharedPlace(stage, offset));
      });
    commitCopies(e);
  };
  using Pieces = SmallVector<SmallVector<Value>, 2>;
  auto compute = [&](Value slice) {
    Pieces pieces;
    for (auto [filler, offset] : fillers)
      pieces.push_back(filler->isAsync() ? SmallVector<Value>() : filler->compute(depthOf(e.min(slice, last))));
    return pieces;
  };
  auto store = [&](const Pieces &pieces, Value slice, Value stage) {
    for (size_t i = 0; i < 2; ++i)
      if (const auto [filler, offset] = fillers[i]; !filler->isAsync())
        filler->store(pieces[i], depthOf(e.min(slice, last)), sharedPlace(stage, offset));
  };
  for (int64_t i = 0; i < ahead; ++i) {
    const Value slice = e.add(firstSlice, e.i64(i)), stage = w.constant(i * layout.stageBytes);
    copy(slice, stage);
    store(compute(slice), slice, stage);
  }

  const Value zero = arith::ConstantOp::create(b, e.loc(), b.getF32FloatAttr(0));
  const size_t count = warpM() / kFragmentM * (warpN() / kFragmentN) * 4;
  const bool isSplit = isExact() && hasGroups; // products with low parts are summed on their own
  SmallVector<Value> carried((isSplit ? 2 : 1) * count, zero);
  // Slices are rounded while the one before is multiplied.
  const bool rounds = hasGroups && !hasRoundColumns();
  if (rounds) {
    waitForCopies(e, ahead - 1);
    meet();
    roundColumns(w.constant(0));
  }
  const size_t sumsCount = carried.size();
  carried.append({w.constant(0), w.constant(ahead * layout.stageBytes)});
  auto next = [&](Value stage) {
    const Value after = w.add(stage, layout.stageBytes);
    const Value wraps =
        arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::eq, after, w.constant(layout.ringBytes()));
    return w.select(wraps, w.constant(0), after);
  };
  SmallVector<Value> sums = e.loop(firstSlice, endSlice, 1, carried, [&](Index slice, ValueRange values) {
    SmallVector<Value> sums(values.take_front(sumsCount));
    const Value from = values[sumsCount], to = values[sumsCount + 1];
    const Value a = sharedPlace(from), c = sharedPlace(from, layout.lhs.size());
    if (!rounds)
      waitForCopies(e, ahead - 1);
    if (hasGroups)
      fenceForTensorCores(e);
    meet(); // the slice is there, and if nothing overlaps the one before has been read
    const Value later = e.add(slice.base, e.i64(ahead));
    SmallVector<Value> part;
    if (!hasGroups) {
      copy(later, to);
      const Pieces pieces = compute(later);
      multiplyByWarps(from, sums);
      store(pieces, later, to);
    } else {
      if (isSplit) {
        part.assign(count, LLVM::UndefOp::create(b, e.loc(), b.getF32Type()));
        multiplyByGroups(a, c, part, /*adds=*/false);
        writeLowParts(from);
        fenceForTensorCores(e);
        meet();
        const Value low = w.constant(layout.ringBytes());
        const auto products = MutableArrayRef(sums).drop_front(count);
        multiplyByGroups(a, sharedPlace(low, layout.lhs.size()), products, /*adds=*/true);
        multiplyByGroups(sharedPlace(low), c, products, /*adds=*/true);
      } else {
        multiplyByGroups(a, c, sums, /*adds=*/true);
      }
      const Pieces pieces = compute(later);
      if (overlaps()) {
        waitForGroups(e, 1);
        meet(); // the slice before has been multiplied
      }
      copy(later, to);
      store(pieces, later, to);
      if (rounds) {
        waitForCopies(e, ahead - 1);
        meet(); // the next slice is there
        roundColumns(next(from));
      }
      if (!overlaps())
        waitForGroups(e, 0);
    }
    for (auto [sum, more] : llvm::zip(sums, part))
      sum = arith::AddFOp::create(b, e.loc(), sum, more);
    sums.append({next(from), next(to)});
    return sums;
  });
  sums.truncate(sumsCount);
  if (overlaps())
    waitForGroups(e, 0);
  if (!isSplit)
    return sums;
  // Where an element is infinite its products with low parts mean nothing.
  const Value infinity =
      arith::ConstantOp::create(b, e.loc(), b.getFloatAttr(b.getF32Type(), std::numeric_limits<float>::infinity()));
  for (size_t i = 0; i < count; ++i) {
    const Value low = sums[count + i], size = LLVM::FAbsOp::create(b, e.loc(), low);
    const Value isFinite = arith::CmpFOp::create(b, e.loc(), arith::CmpFPredicate::OLT, size, infinity);
    sums[i] = arith::AddFOp::create(b, e.loc(), sums[i], arith::SelectOp::create(b, e.loc(), isFinite, low, zero));
  }
  sums.truncate(count);
  return sums;
}

/// The low parts of a stage lie behind the ring as the stage does.
void BlockCode::writeLowParts(Value stage) const {
  OpBuilder &b = e.builder();
  const auto four = VectorType::get({kPieceBytes / 4}, b.getF32Type());
  const Value first = w.mul(thread, kPieceBytes);
  for (int64_t at = 0; at < layout.stageBytes; at += threads * kPieceBytes) {
    const Value x =
        LLVM::LoadOp::create(b, e.loc(), four, sharedAt(e, shared, w.add(w.add(stage, first), at)), kPieceBytes);
    LLVM::StoreOp::create(b, e.loc(), splitFloat(e, x).low, sharedPlace(first, layout.ringBytes() + at), kPieceBytes);
  }
}

void BlockCode::roundColumns(Value stage) const {
  OpBuilder &b = e.builder();
  const auto four = VectorType::get({kPieceBytes / 4}, b.getF32Type());
  const Value first = w.add(w.add(stage, w.mul(thread, kPieceBytes)), layout.lhs.size());
  for (int64_t at = 0; at < layout.rhs.size(); at += threads * kPieceBytes) {
    const Value place = sharedPlace(first, at);
    const Value x = LLVM::LoadOp::create(b, e.loc(), four, place, kPieceBytes);
    LLVM::StoreOp::create(b, e.loc(), roundToTf32(e, x), place, kPieceBytes);
  }
}

void BlockCode::multiplyByGroups(Value a, Value b, MutableArrayRef<Value> sums, bool adds) const {
  const Value group = w.div(warp, kGroupThreads / machine::kWarpThreads);
  const Value bTile = describe(e, layout.rhs, b);
  if (takesRows()) {
    for (int64_t step = 0; step < kSteps; ++step) {
      const SmallVector<Value> rows = roundedWords(loadFragment(e, layout.lhs, a, warpRow(), step, /*byLines=*/true));
      beginGroup(e);
      multiplyRows(e, p.element, s.getTileN(), rows, atStep(e, layout.rhs, bTile, step), /*bIsTransposed=*/false, sums);
    }
    return endGroup(e);
  }
  // 64 rows are 64 lines, or a panel of as many.
  static_assert(kGroupM == kLineBytes / 2);
  const Value aTile = describe(e, layout.lhs, sharedAt(e, a, w.mul(group, kGroupM * kLineBytes)));
  beginGroup(e);
  for (int64_t step = 0; step < kSteps; ++step)
    multiplyTiles(e, p.element, s.getTileN(), atStep(e, layout.lhs, aTile, step), !layout.lhs.alongDepth,
                  atStep(e, layout.rhs, bTile, step), !layout.rhs.alongDepth, sums, adds || step > 0);
  endGroup(e);
}

/// A fragment of f32 as tensor cores shall take it.
SmallVector<Value> BlockCode::roundedWords(ArrayRef<Value> words) const {
  OpBuilder &b = e.builder();
  return llvm::map_to_vector(words, [&](Value word) -> Value {
    const Value x = LLVM::BitcastOp::create(b, e.loc(), b.getF32Type(), word);
    return LLVM::BitcastOp::create(b, e.loc(), word.getType(), roundToTf32(e, x));
  });
}

void BlockCode::multiplyByWarps(Value stage, MutableArrayRef<Value> sums) const {
  OpBuilder &b = e.builder();
  const Value lhs = sharedPlace(stage), rhs = sharedPlace(stage, layout.lhs.size());
  const int64_t blocksM = warpM() / kFragmentM, blocksN = warpN() / kFragmentN;
  struct Fragment {
    SmallVector<Value> whole, factor, low;
  };
  auto load = [&](const SharedTile &tile, Value base, Value first, int64_t step, bool byLines) {
    Fragment fragment;
    fragment.whole = loadFragment(e, tile, base, first, step, byLines);
    if (byLines ? p.takesTf32(s) : !hasRoundColumns())
      fragment.whole = roundedWords(fragment.whole);
    if (isExact())
      for (Value word : fragment.whole) {
        const Parts parts = splitFloat(e, LLVM::BitcastOp::create(b, e.loc(), b.getF32Type(), word));
        fragment.factor.push_back(parts.factor);
        fragment.low.push_back(parts.low);
      }
    return fragment;
  };
  const Value zero = arith::ConstantOp::create(b, e.loc(), b.getF32FloatAttr(0));
  for (int64_t step = 0; step < kSteps; ++step) {
    SmallVector<Fragment> rows;
    for (int64_t i = 0; i < blocksM; ++i)
      rows.push_back(load(layout.lhs, lhs, w.add(warpRow(), i * kFragmentM), step, /*byLines=*/true));
    for (int64_t j = 0; j < blocksN; j += 2) {
      const Fragment columns = load(layout.rhs, rhs, w.add(warpColumn(), j * kFragmentN), step, /*byLines=*/false);
      for (int64_t i = 0; i < blocksM; ++i)
        for (int64_t half = 0; half < 2; ++half) {
          const auto sum = sums.slice((i * blocksN + j + half) * 4, 4);
          auto ofHalf = [&](ArrayRef<Value> words) { return words.slice(2 * half, 2); };
          if (!isExact()) {
            multiplyFragments(e, p.element, rows[i].whole, ofHalf(columns.whole), sum);
            continue;
          }
          SmallVector<Value> part(4, zero);
          multiplyFragments(e, p.element, rows[i].low, ofHalf(columns.factor), part);
          multiplyFragments(e, p.element, rows[i].factor, ofHalf(columns.low), part);
          multiplyFragments(e, p.element, rows[i].whole, ofHalf(columns.whole), part);
          for (int64_t k = 0; k < 4; ++k)
            sum[k] = arith::AddFOp::create(b, e.loc(), sum[k], part[k]);
        }
    }
  }
}

/// Turns fragments into rows, and stores what is computed from them.
void BlockCode::finish(ArrayRef<Value> sums) const {
  storeFragments(e, shared, s.getTileN(), warpRow(), warpColumn(), warpN(), sums);
  meet();
  const int64_t lanes = lanesOf(p);
  const BlockSums block{shared, s.getTileN(), threads, s.getTileM(), s.getTileN(), lanes};
  auto rowsInside = [&](Value m) { return andWithin(e, Value(), m, p.M, s.getTileM()); };
  auto bothInside = [&](Value m, Value n) { return andWithin(e, rowsInside(m), n, p.N, s.getTileN()); };
  if (s.getSplits() > 1)
    return forSums(e, block, [&](ArrayRef<SumsPiece> pieces) {
      for (const SumsPiece &piece : pieces) {
        const Value m = e.add(rowBase, piece.row), n = e.add(columnBase, piece.column), inside = bothInside(m, n);
        auto store = [&] { storePart(m, n, piece.sums); };
        inside ? e.ifThen(inside, store) : store();
      }
    });
  storeSums(e, *p.epilogue, block, [&](Value row, Value column) {
    const Value m = e.add(rowBase, row), n = e.add(columnBase, column), inside = bothInside(m, n);
    return Placed<SmallVector<Index>>{resultAt(p, e, batch, e.uniform(clampTo(e, inside, m, p.M, 1)),
                                               e.uniform(clampTo(e, inside, n, p.N, lanes), lanes)),
                                      inside};
  });
}

void BlockCode::storePart(Value m, Value n, Value sums) const {
  OpBuilder &b = e.builder();
  Value place = e.mul(split, e.size(p.B));
  if (!p.batch.empty())
    place = e.add(place, e.linearize(batch, p.batch).base);
  place = e.add(e.mul(e.add(e.mul(place, e.size(p.M)), m), e.size(p.N)), n);
  LLVM::StoreOp::create(b, e.loc(), sums, e.address(e.output(0), b.getF32Type(), place), unsigned(4 * lanesOf(p)));
}

} // namespace

void tc::codegen::gpu::emitMmaBlock(const MmaProblem &p, MmaSchedule s, Emitter &e, Value block) {
  BlockCode(p, s, e, block).emit();
}

// A thread's elements of the sum of all parts.
void tc::codegen::gpu::emitMmaSums(const MmaProblem &p, MmaSchedule s, Emitter &e, Value block) {
  OpBuilder &b = e.builder();
  const int64_t lanes = lanesOf(p);
  const SmallVector<AffineExpr> sizes{p.B, p.M, p.N};
  const Value count = e.sizeProduct(sizes), parts = e.input(e.region().getInputs().size() + p.launchesBefore(s));
  const Value start = e.mul(e.add(e.mul(block, e.i64(kSumThreads)), threadIndex(e)), e.i64(lanes));
  const Value inside = arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::slt, start, count);
  e.ifThen(inside, [&] {
    Value sum;
    for (int64_t part = 0; part < s.getSplits(); ++part) {
      const Value at = e.address(parts, b.getF32Type(), e.add(e.mul(count, e.i64(part)), start));
      const Value next = loadFloats(e, at, lanes);
      sum = sum ? Value(arith::AddFOp::create(b, e.loc(), sum, next)) : next;
    }
    const SmallVector<Index> at = e.delinearize(e.uniform(start, lanes), sizes);
    storeEpilogue(e, *p.epilogue,
                  computeFromSums(e, *p.epilogue, resultAt(p, e, e.delinearize(at[0], p.batch), at[1], at[2]), sum));
  });
}
