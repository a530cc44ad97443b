//===- SortTasks.cpp - the "gpu.sort" strategy: words, networks and merges ----------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "GPU/SortWords.h"

#include "Common/EmitterHelpers.h"
#include "Common/OrderedKey.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;
using namespace tc::codegen::gpu;

using P = arith::CmpIPredicate;

Value SortWords::constant(int64_t value) const {
  return arith::ConstantOp::create(b, e.loc(), b.getIntegerAttr(type, APInt(p.wordBits(), uint64_t(value), true)));
}

Value SortWords::compare(P predicate, Value x, Value y) const {
  return arith::CmpIOp::create(b, e.loc(), predicate, x, y);
}

Value SortWords::select(Value condition, Value x, Value y) const {
  return arith::SelectOp::create(b, e.loc(), condition, x, y);
}

Value SortWords::bitAnd(Value x, Value y) const { return arith::AndIOp::create(b, e.loc(), x, y); }

Value SortWords::make(ArrayRef<Index> line, Value position) const {
  SmallVector<Index> at(line);
  at.append({e.uniform(position), e.constant(0)});
  const Type element = p.element();
  Value key = orderedKey(e, element, p.op.getDescending(), e.emit(p.op.getOperand(), at));
  if (!p.op.getKeyBits()) {
    const unsigned bits = orderedKeyBits(element), keyWidth = key.getType().getIntOrFloatBitWidth();
    const Value half = arith::ConstantOp::create(
        b, e.loc(), b.getIntegerAttr(key.getType(), APInt(keyWidth, uint64_t(1) << (bits - 1))));
    key = arith::AddIOp::create(b, e.loc(), key, half);
  }
  return arith::OrIOp::create(b, e.loc(),
                              arith::ShLIOp::create(b, e.loc(), resized(key, type), constant(p.numberBits())),
                              resized(position, type));
}

Value SortWords::number(Value word) const {
  const Type i64 = b.getI64Type();
  if (p.numberBits() == 64)
    return resized(word, i64);
  const int64_t mask = (int64_t(1) << p.numberBits()) - 1;
  if (p.wordBits() < 64)
    return resized(bitAnd(word, constant(mask)), i64);
  return bitAnd(resized(word, i64), e.i64(mask));
}

Value SortWords::keyBits(Value word, int64_t low, int64_t count) const {
  const Type i32 = b.getI32Type();
  const Value bits = resized(arith::ShRUIOp::create(b, e.loc(), word, constant(int64_t(p.numberBits()) + low)), i32);
  return bitAnd(bits, arith::ConstantIntOp::create(b, e.loc(), i32, (int64_t(1) << count) - 1));
}

Value SortWords::load(Value pointer, Value offset) const {
  return LLVM::LoadOp::create(b, e.loc(), type, e.address(pointer, type, offset), unsigned(bytes()));
}

void SortWords::store(Value word, Value pointer, Value offset) const {
  LLVM::StoreOp::create(b, e.loc(), word, e.address(pointer, type, offset), unsigned(bytes()));
}

Value SortWords::shuffled(Value word, int32_t mask) const {
  if (p.wordBits() <= 64)
    return shuffle(e, word, mask);
  const Type half = b.getI64Type();
  const Value high = arith::ShRUIOp::create(b, e.loc(), word, constant(64));
  const Value otherLow = shuffle(e, resized(word, half), mask), otherHigh = shuffle(e, resized(high, half), mask);
  return arith::OrIOp::create(b, e.loc(), resized(otherLow, type),
                              arith::ShLIOp::create(b, e.loc(), resized(otherHigh, type), constant(64)));
}

Value SortWords::resized(Value x, Type to) const {
  const unsigned from = x.getType().getIntOrFloatBitWidth(), bits = to.getIntOrFloatBitWidth();
  if (from == bits)
    return x;
  return from < bits ? Value(arith::ExtUIOp::create(b, e.loc(), to, x))
                     : Value(arith::TruncIOp::create(b, e.loc(), to, x));
}

namespace {

/// A team of threads and its network.
///
/// Words have places 0 .. size - 1. A layout says which of a place's bits tell a thread's own word: `items` = 2^k words
/// lie at the bits [low, low + k), the other bits are the thread's number. Words whose places differ in one bit are
/// compared in registers where the bit is one of those, and between the lanes of a warp where low is 0 and the bit is
/// one of the next five; the layout changes through shared memory.
///
/// Runs of 2^(m - 1) in order are merged to such of 2^m by comparing each word with that of the mirrored place, then
/// at distances of 2^(m - 2), ..., 1: the lesser word always moves to the lower place.
class Team {
public:
  Team(const SortWords &words, SortSchedule s)
      : w(words), e(words.e), b(words.b), items(s.getItems()), across(s.getAcross()), block(s.getBlock()),
        itemBits(llvm::Log2_64(uint64_t(items))), sizeBits(llvm::Log2_64(uint64_t(networkSize(s)))),
        usesShared(across > machine::kWarpThreads || s.getLimit()) {
    thread = threadIndex(e);
    member = e.remUnsigned(thread, e.i64(across));
    team = e.divUnsigned(thread, e.i64(across));
    if (usesShared) {
      // Another word after as many as a thread holds, so that threads that store theirs do not meet at one bank.
      const int64_t padded = size() + size() / items;
      shared = sharedArray(e, "words", w.type, padded * (block / across));
      if (block > across)
        shared = e.address(shared, w.type, e.mul(team, e.i64(padded)));
    }
  }

  int64_t size() const { return items * across; }

  /// The place of the word number `item`, where neighbouring threads have neighbours: read before, and written behind
  /// the network.
  Value placeOf(int64_t item) const { return e.add(member, e.i64(item * across)); }

  /// In: words in any order. Out: in order, a thread's one after another.
  void sort(MutableArrayRef<Value> words) const {
    for (unsigned m = 1; m <= sizeBits; ++m)
      merge(words, m);
  }

  /// Calls fn(place, word) for those at places below `most`.
  void take(ArrayRef<Value> words, int64_t most, llvm::function_ref<void(Value, Value)> fn) const {
    if (!usesShared) {
      for (int64_t j = 0; j < items; ++j)
        fn(e.add(e.mul(member, e.i64(items)), e.i64(j)), words[j]);
      return;
    }
    leave(words, 0);
    for (int64_t j = 0; j < items && j * across < most; ++j)
      fn(placeOf(j), load(placeOf(j)));
  }

  /// The words are in shared memory, at their places, for the whole block; what is left there before is lost.
  void leave(ArrayRef<Value> words, unsigned low) const {
    const Value base = baseOf(low);
    for (int64_t j = 0; j < items; ++j)
      w.store(words[j], shared, e.add(base, e.i64(j * distanceOf(low))));
    barrier(e);
  }
  Value load(Value place) const { return w.load(shared, padded(place)); }
  void store(Value word, Value place) const { w.store(word, shared, padded(place)); }

  Value member, thread, team;

private:
  /// Where a place is in shared memory.
  Value padded(Value place) const { return e.add(place, e.divUnsigned(place, e.i64(items))); }
  /// In shared memory: the first word of a thread, with bits of the place mirrored below `low`, and the distance
  /// between its words.
  Value baseOf(unsigned low, bool isMirrored = false) const {
    if (low == 0)
      return e.mul(member, e.i64(items + 1));
    const int64_t below = int64_t(1) << low;
    Value inner = e.remUnsigned(member, e.i64(below));
    if (isMirrored)
      inner = e.sub(e.i64(below - 1), inner);
    return padded(e.add(e.mul(e.divUnsigned(member, e.i64(below)), e.i64(below * items)), inner));
  }
  int64_t distanceOf(unsigned low) const { return low == 0 ? 1 : (int64_t(1) << low) + (int64_t(1) << low) / items; }

  /// From one layout to another. `isMirrored`: places of the upper half, by the highest of the bits of items, read
  /// what lies at the mirrored places of it.
  void relayout(MutableArrayRef<Value> words, unsigned from, unsigned to, bool isMirrored) const {
    leave(words, from);
    const Value base = baseOf(to);
    for (int64_t j = 0; j < items; ++j) {
      const bool isUpper = isMirrored && j >= items / 2;
      const int64_t item = isUpper ? items + items / 2 - 1 - j : j;
      words[j] = w.load(shared, e.add(isUpper ? baseOf(to, true) : base, e.i64(item * distanceOf(to))));
    }
    barrier(e);
  }

  /// The lesser word to the lower place.
  void order(Value &lower, Value &upper) const {
    const Value isLess = w.compare(P::ult, upper, lower);
    const Value least = w.select(isLess, upper, lower);
    upper = w.select(isLess, lower, upper);
    lower = least;
  }
  /// Words at places that differ in bit number `bit` of those of items.
  void orderItems(MutableArrayRef<Value> words, unsigned bit) const {
    for (int64_t j = 0; j < items; ++j)
      if (!(j >> bit & 1))
        order(words[j], words[j | int64_t(1) << bit]);
  }
  /// Words with those of the thread whose number differs by `mask`, of which `highest` is the highest bit.
  /// `isMirrored`: with its last one the first.
  void orderLanes(MutableArrayRef<Value> words, int64_t mask, int64_t highest, bool isMirrored) const {
    const Value isUpper = w.compare(P::ne, w.bitAnd(member, e.i64(highest)), e.i64(0));
    SmallVector<Value> others;
    for (int64_t j = 0; j < items; ++j)
      others.push_back(w.shuffled(words[isMirrored ? items - 1 - j : j], int32_t(mask)));
    for (int64_t j = 0; j < items; ++j) {
      const Value isLess = w.compare(P::ult, others[j], words[j]);
      words[j] = w.select(arith::XOrIOp::create(b, e.loc(), isLess, isUpper), others[j], words[j]);
    }
  }

  void merge(MutableArrayRef<Value> words, unsigned m) const {
    int64_t bit = int64_t(m) - 1;
    const int64_t firstShared = itemBits + llvm::Log2_64(uint64_t(machine::kWarpThreads));
    if (m <= itemBits) {
      const int64_t mirror = (int64_t(1) << m) - 1;
      for (int64_t j = 0; j < items; ++j)
        if (j < (j ^ mirror))
          order(words[j], words[j ^ mirror]);
      --bit;
    } else if (bit < firstShared) {
      const int64_t threads = int64_t(1) << (m - itemBits);
      orderLanes(words, threads - 1, threads / 2, /*isMirrored=*/true);
      --bit;
    } else {
      unsigned layout = 0;
      for (bool isFirst = true; bit >= firstShared; isFirst = false) {
        const unsigned low = unsigned(bit) + 1 - itemBits;
        relayout(words, layout, low, isFirst);
        for (; bit >= int64_t(low); --bit)
          orderItems(words, unsigned(bit - low));
        layout = low;
      }
      relayout(words, layout, 0, false);
    }
    for (; bit >= int64_t(itemBits); --bit)
      orderLanes(words, int64_t(1) << (bit - itemBits), int64_t(1) << (bit - itemBits), /*isMirrored=*/false);
    for (; bit >= 0; --bit)
      orderItems(words, unsigned(bit));
  }

  const SortWords &w;
  Emitter &e;
  OpBuilder &b;
  const int64_t items, across, block;
  const unsigned itemBits, sizeBits;
  const bool usesShared;
  Value shared;
};

/// A launch that sorts: where its words come from, and where they go.
class Network {
public:
  Network(const SortProblem &p, SortSchedule s, unsigned number, Emitter &e, Value task)
      : p(p), s(s), e(e), w(p, e), team(w, s), leaves(s.getMerges() > 0 || (s.getParts() > 1 && number == 0)),
        takesLeft(number == 1) {
    // A line's part; all of it is one where lines are not cut. What there is not reads the last one that there is,
    // without a branch that loads would wait in.
    const AffineExpr cuts = partsOfLaunch(p, s, number), all = prim::simplifySize(p.lines() * cuts);
    const int64_t teams = s.getBlock() / s.getAcross();
    const Value unit = e.add(e.mul(task, e.i64(teams)), team.team);
    const std::optional<int64_t> units = prim::getConstantSize(all);
    if (teams > 1 && !(units && *units % teams == 0))
      isUnit = w.compare(P::slt, unit, e.size(all));
    const Value known = isUnit ? e.min(unit, e.sub(e.size(all), e.i64(1))) : unit;
    line = e.divUnsigned(known, e.size(cuts));
    part = e.remUnsigned(known, e.size(cuts));
    const Value rows = e.size(p.rows);
    first = e.i64(0);
    end = rows;
    if (s.getMerges()) {
      first = e.mul(part, e.i64(team.size()));
    } else if (leaves) {
      const Value length = e.divUnsigned(e.add(rows, e.i64(s.getParts() - 1)), e.i64(s.getParts()));
      first = e.min(e.mul(part, length), rows);
      end = e.min(e.add(first, length), rows);
    }
    batch = p.batch.empty() ? SmallVector<Index>{} : e.delinearize(e.uniform(line), p.batch);
  }

  void emit() {
    const std::optional<int64_t> rows = prim::getConstantSize(p.rows);
    if (rows == 0)
      return;
    if (rows)
      return emitRows();
    e.ifThen(w.compare(P::sgt, e.size(p.rows), e.i64(0)), [&] { emitRows(); });
  }

private:
  void emitRows() {
    SmallVector<Value> words;
    if (takesLeft)
      words = readLeft();
    else if (s.getLimit())
      words = withinLimit();
    else
      words = readFrom(first);
    team.sort(words);
    store(words);
  }

  /// What the launch before left of the line.
  SmallVector<Value> readLeft() const {
    const AffineExpr left = leftWords(p, s);
    const Value before = e.mul(line, e.size(left)), temporary = e.input(e.region().getNumOperands());
    SmallVector<Value> words;
    for (int64_t j = 0; j < s.getItems(); ++j) {
      const Value place = team.placeOf(j), known = e.min(place, e.sub(e.size(left), e.i64(1)));
      words.push_back(w.where(w.compare(P::slt, place, e.size(left)), w.load(temporary, e.add(before, known))));
    }
    return words;
  }

  /// The word of the row at a position of the line, where the part has it. `isInside`: it has.
  Value read(Value position, bool isInside) const {
    if (isInside)
      return w.make(batch, position);
    const Value last = e.sub(e.size(p.rows), e.i64(1));
    return w.where(w.compare(P::slt, position, end), w.make(batch, e.min(position, last)));
  }

  /// A word for each lane, from the row at `start` on.
  SmallVector<Value> readFrom(Value start) const {
    const std::optional<int64_t> rows = prim::getConstantSize(p.rows);
    const bool isWhole = !s.getMerges() && !s.getLimit();
    SmallVector<Value> words;
    for (int64_t j = 0; j < s.getItems(); ++j) {
      if (isWhole && rows && j * s.getAcross() >= *rows)
        words.push_back(w.last());
      else
        words.push_back(read(e.add(start, team.placeOf(j)), isWhole && rows && (j + 1) * s.getAcross() <= *rows));
    }
    return words;
  }

  /// The words of the part that do not exceed the limit.
  SmallVector<Value> withinLimit() const {
    const int64_t items = s.getItems();
    SmallVector<Value> least =
        e.loop(first, end, team.size(), SmallVector<Value>(items, w.last()), [&](Index from, ValueRange before) {
          SmallVector<Value> next;
          for (auto [word, best] : llvm::zip_equal(readFrom(from.base), before))
            next.push_back(w.select(w.compare(P::ult, word, best), word, best));
          return next;
        });
    team.sort(least);
    team.leave(least, 0);
    const Value limit = team.load(e.i64(*prim::getConstantSize(p.count) - 1));
    barrier(e);
    // In any order: they are sorted.
    OpBuilder &b = e.builder();
    const Type i32 = b.getI32Type();
    const Value taken = e.address(sharedArray(e, "taken", i32, s.getBlock() / s.getAcross()), i32, team.team),
                zero = arith::ConstantIntOp::create(b, e.loc(), i32, 0),
                one = arith::ConstantIntOp::create(b, e.loc(), i32, 1);
    for (int64_t j = 0; j < items; ++j)
      team.store(w.last(), team.placeOf(j));
    e.ifThen(w.compare(P::eq, team.member, e.i64(0)), [&] { LLVM::StoreOp::create(b, e.loc(), zero, taken, 4); });
    barrier(e);
    e.loop(first, end, team.size(), [&](Index from) {
      for (const Value word : readFrom(from.base)) {
        const Value isIn = w.both(w.compare(P::ule, word, limit), w.compare(P::ne, word, w.last()));
        e.ifThen(isIn, [&] {
          const Value number = LLVM::AtomicRMWOp::create(b, e.loc(), LLVM::AtomicBinOp::add, taken, one,
                                                         LLVM::AtomicOrdering::monotonic);
          team.store(word, arith::ExtUIOp::create(b, e.loc(), b.getI64Type(), number));
        });
      }
    });
    barrier(e);
    SmallVector<Value> words;
    for (int64_t j = 0; j < items; ++j)
      words.push_back(team.load(team.placeOf(j)));
    barrier(e);
    return words;
  }

  void store(ArrayRef<Value> words) const {
    const std::optional<int64_t> count = prim::getConstantSize(p.count);
    const int64_t size = team.size();
    const Type i64 = e.builder().getI64Type();
    const bool leavesAll = s.getMerges() > 0;
    const int64_t most = count ? std::min(*count, size) : size;
    team.take(words, most, [&](Value place, Value word) {
      const Value wanted = leavesAll && most == size ? Value()
                           : leavesAll || count      ? w.compare(P::slt, place, e.i64(most))
                                                     : w.compare(P::slt, place, e.size(p.count));
      auto write = [&] {
        if (!leaves)
          return e.storeAt(w.number(word), e.output(0), i64, e.uniform(e.add(e.mul(line, e.size(p.count)), place)));
        const Value before = leavesAll ? first : e.mul(part, e.size(p.count));
        w.store(word, e.output(0), e.add(e.add(e.mul(line, e.size(leftWords(p, s))), before), place));
      };
      const Value condition = w.both(wanted, isUnit);
      condition ? e.ifThen(condition, write) : write();
    });
  }

  const SortProblem &p;
  const SortSchedule s;
  Emitter &e;
  const SortWords w;
  const Team team;
  const bool leaves, takesLeft; // words for another launch; those of the launch before
  Value line, part, first, end, isUnit;
  SmallVector<Index> batch;
};

} // namespace

void tc::codegen::gpu::emitNetwork(const SortProblem &p, SortSchedule s, unsigned number, Emitter &e, Value task) {
  Network(p, s, number, e, task).emit();
}

// Part q of the line's is merged with part q xor 1, if there is one, to part q / 2 of the next launch. Equal words,
// which only pad the last part, come first from the left one, so that no two get the same place.
void tc::codegen::gpu::emitMerge(const SortProblem &p, SortSchedule s, unsigned number, Emitter &e, Value task) {
  OpBuilder &b = e.builder();
  const SortWords w(p, e);
  const int64_t length = networkSize(s) << number;
  const bool isLast = number + 1 == s.getMerges();
  const AffineExpr kept = keptOf(p, length), left = leftWords(p, s);
  const SmallVector<AffineExpr> grid{p.lines(), partsOfLength(p, length), kept};
  forItem(e, prim::product(b.getContext(), grid), kMergeThreads, task, [&](Index item) {
    const SmallVector<Index> at = e.delinearize(item, grid);
    const Value part = at[1].base, place = at[2].base, before = e.mul(at[0].base, e.size(left));
    const Value source = e.input(e.region().getNumOperands() + number);
    // Where a part begins, and how many words of it are there.
    auto startOf = [&](Value part) { return e.mul(part, e.i64(length)); };
    auto countOf = [&](Value part) -> Value {
      return arith::MaxSIOp::create(b, e.loc(), e.min(e.size(kept), e.sub(e.size(left), startOf(part))), e.i64(0));
    };
    e.ifThen(w.compare(P::slt, place, countOf(part)), [&] {
      const Value word = w.load(source, e.add(before, e.add(startOf(part), place)));
      const Value other = arith::XOrIOp::create(b, e.loc(), part, e.i64(1));
      const Value otherCount = countOf(other), otherStart = startOf(other), lastWord = e.sub(e.size(left), e.i64(1));
      const Value isRight = w.compare(P::ne, w.bitAnd(part, e.i64(1)), e.i64(0));
      Value rank = e.i64(0);
      for (int64_t step = length; step > 0; step /= 2) {
        const Value next = e.add(rank, e.i64(step));
        // Beyond the line's words nothing is read.
        const Value compared = w.load(source, e.add(before, e.min(e.add(otherStart, e.sub(next, e.i64(1))), lastWord)));
        const Value comesFirst =
            w.select(isRight, w.compare(P::ule, compared, word), w.compare(P::ult, compared, word));
        rank = w.select(w.bitAnd(w.compare(P::sle, next, otherCount), comesFirst), next, rank);
      }
      const Value merged = e.add(place, rank);
      const Type i64 = b.getI64Type();
      if (isLast) {
        e.ifThen(w.compare(P::slt, merged, e.size(p.count)), [&] {
          e.storeAt(w.number(word), e.output(0), i64, e.uniform(e.add(e.mul(at[0].base, e.size(p.count)), merged)));
        });
        return;
      }
      e.ifThen(w.compare(P::slt, merged, e.size(keptOf(p, 2 * length))), [&] {
        const Value pair = e.divUnsigned(part, e.i64(2));
        w.store(word, e.output(0), e.add(before, e.add(e.mul(pair, e.i64(2 * length)), merged)));
      });
    });
  });
}
