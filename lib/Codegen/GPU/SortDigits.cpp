//===- SortDigits.cpp - the "gpu.sort" strategy: by digits --------------------------------------------------------===//
//
// Words are moved in the order of one digit of their keys after another, the lowest first, those of equal digits as
// they stand (Knuth, "The Art of Computer Programming", vol. 3, 5.2.5). A line is cut into tiles of threads * items
// words. Three launches a digit:
//
//   counts   a block a tile: how many of its words have each digit
//   offsets  a block a digit and line: how many words of the tiles before each have it, and how many in all
//   words    a block a tile: a word's place is the number of words of lesser digits, those of its own in tiles before,
//            in warps before and in its warp before. Warps have neighbouring words, so that places keep their order
//
// The last launch writes the numbers of the rows. Words beyond the last row are behind all others.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "GPU/SortWords.h"

#include "Common/EmitterHelpers.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;
using namespace tc::codegen::gpu;

using P = arith::CmpIPredicate;

namespace {

constexpr int64_t kWarps = kDigitThreads / machine::kWarpThreads;

int64_t tileOf(SortSchedule s) { return kDigitThreads * s.getItems(); }
AffineExpr tilesOf(const SortProblem &p, SortSchedule s) { return prim::simplifySize(p.rows.ceilDiv(tileOf(s))); }

/// Counts of words of a line.
Type countType(const SortProblem &p) { return IntegerType::get(p.op->getContext(), p.isHuge() ? 64 : 32); }

class DigitSort {
public:
  DigitSort(const SortProblem &p, SortSchedule s, unsigned number, Emitter &e)
      : p(p), s(s), digit(number / 3), e(e), b(e.builder()), w(p, e), count(countType(p)), i32(b.getI32Type()),
        tiles(e.size(tilesOf(p, s))), thread(threadIndex(e)), lane(e.remUnsigned(thread, e.i64(machine::kWarpThreads))),
        warp(e.divUnsigned(thread, e.i64(machine::kWarpThreads))) {}

  void emitCounts(Value task) {
    const Value counts = sharedArray(e, "counts", i32, kDigitThreads);
    e.storeAt(number(0, i32), counts, i32, e.uniform(thread));
    barrier(e);
    const Value line = e.divUnsigned(task, tiles), tile = e.remUnsigned(task, tiles);
    SmallVector<Value> digits;
    for (int64_t j = 0; j < s.getItems(); ++j)
      digits.push_back(digitOf(wordAt(line, placeOf(tile, e.add(e.i64(j * kDigitThreads), thread)))));
    for (const Value value : digits)
      addAt(counts, i32, wide(value), number(1, i32));
    barrier(e);
    const Value row = e.add(e.mul(line, e.i64(kDigitThreads)), thread);
    e.storeAt(e.loadAt(counts, i32, e.uniform(thread)), e.output(0), i32, e.uniform(e.add(e.mul(row, tiles), tile)));
  }

  void emitOffsets(Value row) {
    const Value counts = temporary(0), from = e.mul(row, tiles), to = e.mul(row, e.add(tiles, e.i64(1)));
    const Value all = e.loop(e.i64(0), tiles, kDigitThreads, number(0, count), [&](Index turn, ValueRange before) {
      const Value tile = e.add(turn.base, thread), isTile = w.compare(P::slt, tile, tiles);
      const Value known = e.min(tile, e.sub(tiles, e.i64(1)));
      const Value own =
          w.select(isTile, asCount(e.loadAt(counts, i32, e.uniform(e.add(from, known)))), number(0, count));
      const std::pair<Value, Value> sums = sumBefore(own);
      e.ifThen(isTile, [&] { e.storeAt(plus(before[0], sums.first), e.output(0), count, e.uniform(e.add(to, tile))); });
      return SmallVector<Value>{plus(before[0], sums.second)};
    })[0];
    e.ifThen(w.compare(P::eq, thread, e.i64(0)),
             [&] { e.storeAt(all, e.output(0), count, e.uniform(e.add(to, tiles))); });
  }

  void emitWords(Value task) {
    const Value line = e.divUnsigned(task, tiles), tile = e.remUnsigned(task, tiles);
    const Value counts = sharedArray(e, "places", count, kWarps * kDigitThreads), none = number(0, count);
    for (int64_t i = 0; i < kWarps; ++i)
      e.storeAt(none, counts, count, e.uniform(e.add(thread, e.i64(i * kDigitThreads))));
    const Value first = e.mul(warp, e.i64(s.getItems() * machine::kWarpThreads));
    SmallVector<Value> positions, words;
    for (int64_t j = 0; j < s.getItems(); ++j) {
      positions.push_back(placeOf(tile, e.add(first, e.add(e.i64(j * machine::kWarpThreads), lane))));
      words.push_back(wordAt(line, positions.back()));
    }
    barrier(e);
    // Places of words of one digit in the warp.
    SmallVector<Value> slots, ranks;
    const Value before = lanesBefore();
    for (const Value word : words) {
      const Value value = digitOf(word), all = number(-1, i32);
      const Value same = NVVM::MatchSyncOp::create(b, e.loc(), i32, all, value, NVVM::MatchSyncKind::any);
      const Value leader = LLVM::CountTrailingZerosOp::create(b, e.loc(), i32, same, /*is_zero_poison=*/false);
      slots.push_back(e.add(e.mul(warp, e.i64(kDigitThreads)), wide(value)));
      const Value isLeader = w.compare(P::eq, wide(leader), lane);
      const Value old = e.branch(
          isLeader, count, /*lanes=*/false, [&] { return addAt(counts, count, slots.back(), asCount(ones(same))); },
          [&] { return none; });
      ranks.push_back(plus(ofLane(old, leader), asCount(ones(w.bitAnd(same, before)))));
    }
    barrier(e);
    // A thread a digit: where those of the tile begin, then of each of its warps.
    const Value row = e.add(e.mul(line, e.i64(kDigitThreads)), thread), offsets = temporary(1);
    const Value from = e.mul(row, e.add(tiles, e.i64(1)));
    const Value lesser = sumBefore(e.loadAt(offsets, count, e.uniform(e.add(from, tiles)))).first;
    Value start = plus(lesser, e.loadAt(offsets, count, e.uniform(e.add(from, tile))));
    for (int64_t i = 0; i < kWarps; ++i) {
      const Index slot = e.uniform(e.add(thread, e.i64(i * kDigitThreads)));
      const Value own = e.loadAt(counts, count, slot);
      e.storeAt(start, counts, count, slot);
      start = plus(start, own);
    }
    barrier(e);
    const bool isLast = digit + 1 == s.getDigits();
    const Value rows = e.size(p.rows), wanted = isLast ? e.size(p.count) : rows;
    for (size_t j = 0; j < words.size(); ++j) {
      const Value place = wide(plus(e.loadAt(counts, count, e.uniform(slots[j])), ranks[j]));
      e.ifThen(w.bitAnd(w.compare(P::slt, positions[j], rows), w.compare(P::slt, place, wanted)), [&] {
        const Value to = e.add(e.mul(line, wanted), place);
        if (isLast)
          e.storeAt(w.number(words[j]), e.output(0), b.getI64Type(), e.uniform(to));
        else
          w.store(words[j], e.output(0), to);
      });
    }
  }

private:
  Value number(int64_t value, Type type) { return arith::ConstantIntOp::create(b, e.loc(), type, value); }
  Value plus(Value x, Value y) { return arith::AddIOp::create(b, e.loc(), x, y); }
  Value ones(Value x) { return LLVM::CtPopOp::create(b, e.loc(), i32, x); }
  Value extended(Value x, Type to) { return x.getType() == to ? x : arith::ExtUIOp::create(b, e.loc(), to, x); }
  Value wide(Value x) { return extended(x, b.getI64Type()); }
  Value asCount(Value x) { return extended(x, count); }
  /// Number `k` of what the launches before this digit's left for it: counts, offsets.
  Value temporary(unsigned k) { return e.input(unsigned(e.region().getNumOperands() + 3 * digit + k)); }

  /// i32: a bit for each lane before this one.
  Value lanesBefore() {
    const Value own = arith::TruncIOp::create(b, e.loc(), i32, lane);
    return arith::SubIOp::create(b, e.loc(), arith::ShLIOp::create(b, e.loc(), number(1, i32), own), number(1, i32));
  }
  /// Adds to shared memory; what was there before.
  Value addAt(Value array, Type type, Value slot, Value value) {
    return LLVM::AtomicRMWOp::create(b, e.loc(), LLVM::AtomicBinOp::add, e.address(array, type, slot), value,
                                     LLVM::AtomicOrdering::monotonic);
  }
  /// What the lane whose number is `from` has.
  Value ofLane(Value value, Value from) {
    auto get = [&](Value word) -> Value {
      return NVVM::ShflOp::create(b, e.loc(), i32, number(-1, i32), word, from, number(machine::kWarpThreads - 1, i32),
                                  NVVM::ShflKind::idx, UnitAttr());
    };
    if (count == i32)
      return get(value);
    const Value half = number(32, count);
    const Value low = get(arith::TruncIOp::create(b, e.loc(), i32, value)),
                high = get(arith::TruncIOp::create(b, e.loc(), i32, arith::ShRUIOp::create(b, e.loc(), value, half)));
    return arith::OrIOp::create(b, e.loc(), asCount(low), arith::ShLIOp::create(b, e.loc(), asCount(high), half));
  }

  Value placeOf(Value tile, Value inTile) { return e.add(e.mul(tile, e.i64(tileOf(s))), inTile); }

  /// The word at `position` of a line, in the order of the digits before.
  Value wordAt(Value line, Value position) {
    const Value rows = e.size(p.rows), known = e.min(position, e.sub(rows, e.i64(1)));
    const Value isRow = w.compare(P::slt, position, rows);
    if (digit > 0) {
      const Value left = e.input(unsigned(e.region().getNumOperands() + 3 * digit - 1));
      return w.where(isRow, w.load(left, e.add(e.mul(line, rows), known)));
    }
    if (batch.empty() && !p.batch.empty())
      batch = e.delinearize(e.uniform(line), p.batch);
    return w.where(isRow, w.make(batch, known));
  }
  /// i32
  Value digitOf(Value word) { return w.keyBits(word, digit * kDigitBits, kDigitBits); }

  /// The sum of what the threads before this one have, and of all.
  std::pair<Value, Value> sumBefore(Value own) {
    const Value words = sharedArray(e, "warps", count, kWarps), none = number(0, count);
    Value upTo = own;
    for (int32_t distance = 1; distance < machine::kWarpThreads; distance *= 2)
      upTo = w.select(w.compare(P::sge, lane, e.i64(distance)), plus(shuffleUp(e, upTo, distance), upTo), upTo);
    barrier(e); // what was there has been read
    e.ifThen(w.compare(P::eq, lane, e.i64(machine::kWarpThreads - 1)),
             [&] { e.storeAt(upTo, words, count, e.uniform(warp)); });
    barrier(e);
    Value ofWarps = none, all = none;
    for (int64_t i = 0; i < kWarps; ++i) {
      ofWarps = w.select(w.compare(P::eq, warp, e.i64(i)), all, ofWarps);
      all = plus(all, e.loadAt(words, count, e.constant(i)));
    }
    return {plus(ofWarps, arith::SubIOp::create(b, e.loc(), upTo, own)), all};
  }

  const SortProblem &p;
  const SortSchedule s;
  const int64_t digit;
  Emitter &e;
  OpBuilder &b;
  const SortWords w;
  const Type count, i32;
  const Value tiles, thread, lane, warp;
  SmallVector<Index> batch;
};

} // namespace

SmallVector<Launch> tc::codegen::gpu::makeDigitLaunches(const SortProblem &p, SortSchedule s) {
  MLIRContext *context = s.getContext();
  const AffineExpr tiles = tilesOf(p, s), values = getAffineConstantExpr(kDigitThreads, context);
  SmallVector<Launch> launches;
  auto add = [&](StringRef name, int64_t digit, AffineExpr tasks, RankedTensorType result) {
    Launch launch;
    launch.tasks = prim::simplifySize(tasks);
    launch.device = deviceAttr(context, kDigitThreads);
    if (result) {
      launch.suffix = (name + Twine(digit)).str();
      launch.temporaries = {result};
    }
    launches.push_back(launch);
  };
  for (int64_t digit = 0; digit < s.getDigits(); ++digit) {
    add("_counts", digit, p.lines() * tiles, prim::makeType(IntegerType::get(context, 32), {p.lines(), values, tiles}));
    add("_offsets", digit, p.lines() * values,
        prim::makeType(countType(p), {p.lines(), values, prim::simplifySize(tiles + 1)}));
    const bool isLast = digit + 1 == s.getDigits();
    add("_words", digit, p.lines() * tiles, isLast ? RankedTensorType() : wordsType(p, p.rows));
  }
  return launches;
}

void tc::codegen::gpu::emitDigits(const SortProblem &p, SortSchedule s, unsigned number, Emitter &e, Value task) {
  DigitSort sort(p, s, number, e);
  number % 3 == 0 ? sort.emitCounts(task) : number % 3 == 1 ? sort.emitOffsets(task) : sort.emitWords(task);
}
