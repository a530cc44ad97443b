//===- KeySort.cpp - the first elements of a row in order ---------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CPU/KeySort.h"

#include "Common/OrderedKey.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

namespace {
/// Up to here ranks are faster than digits, whose tables cost 1500 cycles whatever there is to sort.
constexpr int64_t kMostByRank = 160;
/// So many elements asked for are worth looking for a limit in advance, in rows of so many elements for each lane that
/// looks, and in their beginning of this length.
constexpr int64_t kMostSampled = 32, kLeastPerLane = 8, kSampledLength = 4096;
/// A key's place beside its number in one i64, which is never negative.
constexpr int64_t kNumberBits = 31;

using P = arith::CmpIPredicate;

/// The arith ops of one emitter, on scalars and vectors.
struct Ops {
  Emitter &e;
  OpBuilder &b = e.builder();

  Value like(Value v, int64_t value) const {
    auto type = cast<IntegerType>(getElementTypeOrSelf(v.getType()));
    APInt number(type.getWidth(), uint64_t(value), /*isSigned=*/true, /*implicitTrunc=*/true);
    Value scalar = arith::ConstantOp::create(b, e.loc(), b.getIntegerAttr(type, number));
    return isa<VectorType>(v.getType()) ? e.broadcast(scalar) : scalar;
  }
  Type typeLike(Value v, Type element) const {
    return isa<VectorType>(v.getType()) ? Type(e.vectorOf(element)) : element;
  }
  Value bitAnd(Value x, Value y) const { return arith::AndIOp::create(b, e.loc(), x, y); }
  Value bitOr(Value x, Value y) const { return arith::OrIOp::create(b, e.loc(), x, y); }
  Value bitXor(Value x, Value y) const { return arith::XOrIOp::create(b, e.loc(), x, y); }
  Value plus(Value x, Value y) const { return arith::AddIOp::create(b, e.loc(), x, y); }
  Value minus(Value x, Value y) const { return arith::SubIOp::create(b, e.loc(), x, y); }
  Value compare(P kind, Value x, Value y) const { return arith::CmpIOp::create(b, e.loc(), kind, x, y); }
  Value wide(Value x) const { return arith::ExtUIOp::create(b, e.loc(), typeLike(x, b.getI64Type()), x); }
};
} // namespace

/// Addresses of what is held, of the other half of its memory, and of the row's variables.
struct KeySort::State {
  Held held, other;
  Value number,
      limit;    // stack: how many are held, i64; greatest key that may be among the first, orderedKeyType(element)
  Value tables; // stack: i32 for each value of each digit
};

//===--- sizes ----------------------------------------------------------------------------------------------------===//

/// As many as are sorted at once: more than are asked for, so that sorting is rare, and few, so that a limit is soon
/// known.
AffineExpr KeySort::capacity() const {
  auto k = prim::getConstantSize(count), n = prim::getConstantSize(length);
  if (!k)
    return prim::simplifySize(count.ceilDiv(32) * 64 + 256);
  int64_t held = int64_t(llvm::alignTo(*k + std::max(*k, std::clamp<int64_t>(4 * *k, 48, 256)), 64));
  if (n && *n <= held)
    held = int64_t(llvm::alignTo(std::max<int64_t>(*n, 1), 64));
  return getAffineConstantExpr(held, count.getContext());
}

bool KeySort::holdsAll() const {
  auto n = prim::getConstantSize(length), most = prim::getConstantSize(capacity());
  return length == count || (n && most && *n <= *most);
}

/// Elements of each half. Beyond the capacity, a vector may be appended before those held are sorted.
AffineExpr KeySort::room() const { return prim::simplifySize(capacity() + 64); }

AffineExpr KeySort::scratchBytes() const { return prim::simplifySize(room() * (splitKeys ? 32 : 16)); }

//===--- keys -----------------------------------------------------------------------------------------------------===//

/// What is held of a key. With split keys: the key, not negative where it has fewer than 64 bits.
Value KeySort::heldKey(Emitter &e, Value key, Value number) const {
  Ops o{e};
  const unsigned bits = orderedKeyBits(element);
  if (bits == 64)
    return key;
  Value positive = o.wide(o.plus(key, o.like(key, int64_t(1) << (bits - 1))));
  if (splitKeys)
    return positive;
  Value shifted = arith::ShLIOp::create(o.b, e.loc(), positive, o.like(positive, kNumberBits));
  return o.bitOr(shifted, number);
}

/// The greatest key before the held `key`. That of the least one is the greatest of all: then all pass.
Value KeySort::limitAfter(Emitter &e, Value key) const {
  Ops o{e};
  const unsigned bits = orderedKeyBits(element);
  if (bits < 64) {
    if (!splitKeys)
      key = arith::ShRUIOp::create(o.b, e.loc(), key, o.like(key, kNumberBits));
    key = arith::TruncIOp::create(o.b, e.loc(), o.b.getI32Type(), key);
    key = o.minus(key, o.like(key, int64_t(1) << (bits - 1)));
  }
  return o.minus(key, o.like(key, 1));
}

//===--- a row ----------------------------------------------------------------------------------------------------===//

void KeySort::emit(Emitter &e, Value scratch, llvm::function_ref<Value(Index)> read,
                   llvm::function_ref<void(Index, Value)> write) const {
  Ops o{e};
  const Type i64 = o.b.getI64Type();
  auto constantLength = prim::getConstantSize(length), constantCount = prim::getConstantSize(count);
  if (constantCount == 0)
    return;
  if (constantCount == 1)
    return emitFirst(e, read, write);
  State state;
  auto part = [&](int64_t i) { return e.address(scratch, i64, e.mul(e.size(room()), e.i64(i))); };
  state.held.keys = scratch;
  state.other.keys = part(1);
  if (splitKeys) {
    state.held.numbers = part(2);
    state.other.numbers = part(3);
  }
  state.number = e.stackBuffer(i64, 1);
  state.limit = e.stackBuffer(orderedKeyType(element), 1);
  state.tables = e.stackBuffer(o.b.getI32Type(), int64_t(256) * (orderedKeyBits(element) / 8));
  auto row = [&] {
    if (holdsAll()) {
      e.laneLoop(e.size(length), constantLength,
                 [&](Index at) { hold(e, state, at, orderedKey(e, element, isDescending, e.broadcast(read(at)))); });
      sort(e, state, e.size(length));
    } else {
      e.storeAt(e.i64(0), state.number, i64, e.constant(0));
      e.storeAt(worstKey(e), state.limit, orderedKeyType(element), e.constant(0));
      if (sampleVectors(e) > 0)
        sample(e, state, read);
      e.laneLoop(e.size(length), constantLength,
                 [&](Index at) { choose(e, state, at, orderedKey(e, element, isDescending, e.broadcast(read(at)))); });
      sort(e, state, e.loadAt(state.number, i64, e.constant(0)));
    }
    e.laneLoop(e.size(count), constantCount, [&](Index i) {
      Value number = e.loadAt(splitKeys ? state.held.numbers : state.held.keys, i64, i);
      if (!splitKeys)
        number = o.bitAnd(number, o.like(number, (int64_t(1) << kNumberBits) - 1));
      write(i, number);
    });
  };
  if (constantCount)
    row();
  else
    e.ifThen(o.compare(P::sgt, e.size(count), e.i64(0)), row);
}

/// The first element alone: the best of each lane, then of the lanes.
void KeySort::emitFirst(Emitter &e, llvm::function_ref<Value(Index)> read,
                        llvm::function_ref<void(Index, Value)> write) const {
  Ops o{e};
  const Type i64 = o.b.getI64Type();
  SmallVector<Value> start{orderedKey(e, element, isDescending, e.broadcast(read(e.constant(0)))),
                           e.broadcast(e.i64(0))};
  SmallVector<Value> best =
      e.laneLoop(e.size(length), prim::getConstantSize(length), start, [&](Index at, ValueRange carried) {
        Value key = orderedKey(e, element, isDescending, e.broadcast(read(at)));
        Value isBetter = o.compare(P::slt, key, carried[0]);
        if (Value on = e.mask())
          isBetter = o.bitAnd(isBetter, on);
        return SmallVector<Value>{arith::SelectOp::create(o.b, e.loc(), isBetter, key, carried[0]),
                                  arith::SelectOp::create(o.b, e.loc(), isBetter, e.materialize(at), carried[1])};
      });
  Value least = e.broadcast(e.reduceLanes(prim::ReduceKind::Min, orderedKeyType(element), best[0]));
  Value isLeast = o.compare(P::eq, best[0], least);
  Value number = arith::SelectOp::create(o.b, e.loc(), isLeast, best[1], o.like(best[1], INT64_MAX));
  write(e.constant(0), e.reduceLanes(prim::ReduceKind::Min, i64, number));
}

/// The key that no other one comes after.
Value KeySort::worstKey(Emitter &e) const {
  const int64_t greatest = orderedKeyBits(element) == 64 ? INT64_MAX : INT32_MAX;
  return arith::ConstantOp::create(e.builder(), e.loc(), e.builder().getIntegerAttr(orderedKeyType(element), greatest));
}

/// Holds the keys of the numbers `at` there.
void KeySort::hold(Emitter &e, const State &state, Index at, Value key) const {
  const Type i64 = e.builder().getI64Type();
  const Value number = e.materialize(at);
  e.storeAt(heldKey(e, key, number), state.held.keys, i64, at);
  if (splitKeys)
    e.storeAt(number, state.held.numbers, i64, at);
}

/// Vectors of lanes that look for a limit; 0: none.
int64_t KeySort::sampleVectors(Emitter &e) const {
  auto k = prim::getConstantSize(count), n = prim::getConstantSize(length);
  if (!k || *k > kMostSampled)
    return 0;
  const int64_t vectors = llvm::divideCeil(2 * *k, e.width());
  return !n || *n >= vectors * e.width() * kLeastPerLane ? vectors : 0;
}

/// The best element of each lane; the last of `count` of them is the limit.
void KeySort::sample(Emitter &e, const State &state, llvm::function_ref<Value(Index)> read) const {
  Ops o{e};
  const Type i64 = o.b.getI64Type();
  const int64_t vectors = sampleVectors(e), together = vectors * e.width();
  auto better = [&](Value key, Value best) {
    return arith::SelectOp::create(o.b, e.loc(), o.compare(P::slt, key, best), key, best).getResult();
  };
  const Value all = e.min(e.size(length), e.i64(kSampledLength));
  const Value whole = e.mul(e.divUnsigned(all, e.i64(together)), e.i64(together));
  SmallVector<Value> best = e.loop(
      e.i64(0), whole, together, SmallVector<Value>(vectors, e.broadcast(worstKey(e))),
      [&](Index from, ValueRange carried) {
        SmallVector<Value> next;
        for (auto [i, before] : llvm::enumerate(carried)) {
          const Index at = e.contiguous(e.addIndex(from, e.constant(int64_t(i) * e.width())));
          next.push_back(better(orderedKey(e, element, isDescending, e.broadcast(read(at))), before));
        }
        return next;
      },
      0);
  best[0] = e.laneLoop(
      all, std::nullopt, best[0],
      [&](Index at, ValueRange carried) {
        Value next = better(orderedKey(e, element, isDescending, e.broadcast(read(at))), carried[0]);
        if (Value on = e.mask())
          next = arith::SelectOp::create(o.b, e.loc(), on, next, carried[0]);
        return SmallVector<Value>{next};
      },
      whole)[0];
  for (auto [i, key] : llvm::enumerate(best))
    hold(e, state, e.contiguous(e.constant(int64_t(i) * e.width())), key);
  sort(e, state, e.i64(together));
  const Value last = e.loadAt(state.held.keys, i64, e.constant(*prim::getConstantSize(count) - 1));
  const Value before = limitAfter(e, last);
  e.storeAt(o.plus(before, o.like(before, 1)), state.limit, orderedKeyType(element), e.constant(0)); // itself passes
}

/// Holds those of a vector's elements that may be among the first.
void KeySort::choose(Emitter &e, const State &state, Index at, Value key) const {
  Ops o{e};
  const Type i64 = o.b.getI64Type();
  Value limit = e.loadAt(state.limit, orderedKeyType(element), e.constant(0));
  Value passes = o.compare(P::sle, key, e.broadcast(limit));
  if (Value on = e.mask())
    passes = o.bitAnd(passes, on);
  Value lanes = LLVM::BitcastOp::create(o.b, e.loc(), o.b.getIntegerType(e.width()), passes);
  e.ifThen(o.compare(P::ne, lanes, o.like(lanes, 0)), [&] {
    Value before = e.loadAt(state.number, i64, e.constant(0)), number = e.materialize(at);
    auto append = [&](Value value, Value to) {
      LLVM::masked_compressstore::create(o.b, e.loc(), value, e.address(to, i64, before), passes);
    };
    append(heldKey(e, key, number), state.held.keys);
    if (splitKeys)
      append(number, state.held.numbers);
    Value count64 = math::CtPopOp::create(o.b, e.loc(), o.wide(lanes));
    Value after = o.plus(before, count64);
    e.storeAt(after, state.number, i64, e.constant(0));
    e.ifThen(o.compare(P::sgt, after, e.size(capacity())), [&] {
      sort(e, state, after);
      Value k = e.size(count);
      e.storeAt(k, state.number, i64, e.constant(0));
      Value last = e.loadAt(state.held.keys, i64, e.uniform(e.sub(k, e.i64(1))));
      e.storeAt(limitAfter(e, last), state.limit, orderedKeyType(element), e.constant(0));
    });
  });
}

//===--- sorting what is held -------------------------------------------------------------------------------------===//

/// Sorts the n held elements; only the first `count` of them are in their place then. n >= 1 where it is variable.
void KeySort::sort(Emitter &e, const State &state, Value n) const {
  auto most = prim::getConstantSize(holdsAll() ? length : room());
  if (most && *most <= kMostByRank)
    return sortByRank(e, state, n);
  Ops o{e};
  if (auto known = holdsAll() ? prim::getConstantSize(length) : std::nullopt)
    return sortByDigits(e, state, n);
  e.ifThen(o.compare(P::sle, n, e.i64(kMostByRank)), [&] { sortByRank(e, state, n); });
  e.ifThen(o.compare(P::sgt, n, e.i64(kMostByRank)), [&] { sortByDigits(e, state, n); });
}

/// To the other half, each at its rank, and back.
void KeySort::sortByRank(Emitter &e, const State &state, Value n) const {
  Ops o{e};
  const Type i64 = o.b.getI64Type();
  auto known = holdsAll() ? prim::getConstantSize(length) : std::nullopt;
  e.laneLoop(n, known, [&](Index i) {
    Value key = e.loadAt(state.held.keys, i64, i);
    Value at = splitKeys ? e.materialize(i) : Value();
    Value rank = e.loop(e.i64(0), n, 1, e.broadcast(e.i64(0)), [&](Index j, ValueRange carried) {
      Value other = e.broadcast(e.loadAt(state.held.keys, i64, j));
      Value isBefore = o.compare(P::slt, other, key);
      if (splitKeys) // equal keys are held in the order of their numbers
        isBefore =
            o.bitOr(isBefore, o.bitAnd(o.compare(P::eq, other, key), o.compare(P::slt, e.broadcast(j.base), at)));
      return SmallVector<Value>{o.plus(carried[0], o.wide(isBefore))};
    })[0];
    Index place = i;
    place.base = {};
    place.step = 0;
    place.lanes = rank;
    e.storeAt(key, state.other.keys, i64, place);
    if (splitKeys)
      e.storeAt(e.loadAt(state.held.numbers, i64, i), state.other.numbers, i64, place);
  });
  auto constantCount = prim::getConstantSize(count);
  auto kept = constantCount && known ? std::optional(std::min(*constantCount, *known)) : std::nullopt;
  e.laneLoop(e.min(n, e.size(count)), kept, [&](Index i) {
    e.storeAt(e.loadAt(state.other.keys, i64, i), state.held.keys, i64, i);
    if (splitKeys)
      e.storeAt(e.loadAt(state.other.numbers, i64, i), state.held.numbers, i64, i);
  });
}

/// Stable passes, two at a time: to the other half and back.
void KeySort::sortByDigits(Emitter &e, const State &state, Value n) const {
  Ops o{e};
  const Type i64 = o.b.getI64Type(), i32 = o.b.getI32Type();
  const int64_t bits = orderedKeyBits(element), digitBits = bits == 8 ? 4 : 8, digits = bits / digitBits;
  const int64_t values = int64_t(1) << digitBits;
  /// Position in the tables of the key's digit.
  auto entry = [&](Value key, int64_t digit) {
    if (bits == 64) // a signed number
      key = o.bitXor(key, o.like(key, INT64_MIN));
    int64_t from = digit * digitBits + (splitKeys ? 0 : kNumberBits);
    Value shifted = arith::ShRUIOp::create(o.b, e.loc(), key, o.like(key, from));
    return e.uniform(o.plus(o.bitAnd(shifted, o.like(shifted, values - 1)), e.i64(digit * values)));
  };
  auto table = [&](const Index &at) { return e.loadAt(state.tables, i32, at); };
  auto setTable = [&](Value value, const Index &at) { e.storeAt(value, state.tables, i32, at); };
  Value zero = arith::ConstantOp::create(o.b, e.loc(), o.b.getI32IntegerAttr(0));
  Value one = arith::ConstantOp::create(o.b, e.loc(), o.b.getI32IntegerAttr(1));
  e.laneLoop(e.i64(digits * values), digits * values, [&](Index i) { setTable(zero, i); });
  e.loop(e.i64(0), n, 1, [&](Index i) {
    Value key = e.loadAt(state.held.keys, i64, i);
    for (int64_t digit = 0; digit < digits; ++digit) {
      Index at = entry(key, digit);
      setTable(o.plus(table(at), one), at);
    }
  });
  Value first = e.loadAt(state.held.keys, i64, e.constant(0));
  for (int64_t pair = 0; pair < digits; pair += 2) {
    auto differ = [&](int64_t digit) { return o.compare(P::ne, o.wide(table(entry(first, digit))), n); };
    e.ifThen(o.bitOr(differ(pair), differ(pair + 1)), [&] {
      for (int64_t digit = pair; digit < pair + 2; ++digit) {
        const Held &from = digit == pair ? state.held : state.other, &to = digit == pair ? state.other : state.held;
        e.loop(e.i64(digit * values), e.i64((digit + 1) * values), 1, zero, [&](Index i, ValueRange sum) {
          Value here = table(i);
          setTable(sum[0], i);
          return SmallVector<Value>{o.plus(sum[0], here)};
        });
        e.loop(e.i64(0), n, 1, [&](Index i) {
          Value key = e.loadAt(from.keys, i64, i);
          Index at = entry(key, digit);
          Value place = table(at);
          setTable(o.plus(place, one), at);
          Index target = e.uniform(o.wide(place));
          e.storeAt(key, to.keys, i64, target);
          if (splitKeys)
            e.storeAt(e.loadAt(from.numbers, i64, i), to.numbers, i64, target);
        });
      }
    });
  }
}
