//===- FftPasses.cpp - code of the passes of a Fourier transform --------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CPU/FftPasses.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

//===--- arithmetic -----------------------------------------------------------------------------------------------===//

Value FftPasses::add(Value x, Value y) { return arith::AddFOp::create(e.builder(), e.loc(), x, y); }
Value FftPasses::sub(Value x, Value y) { return arith::SubFOp::create(e.builder(), e.loc(), x, y); }
Value FftPasses::mul(Value x, Value y) { return arith::MulFOp::create(e.builder(), e.loc(), x, y); }
Value FftPasses::fma(Value x, Value y, Value z) { return vector::FMAOp::create(e.builder(), e.loc(), x, y, z); }
Value FftPasses::negate(Value x) { return arith::NegFOp::create(e.builder(), e.loc(), x); }
Value FftPasses::constant(double value) {
  OpBuilder &b = e.builder();
  const VectorType type = e.vectorOf(element);
  return arith::ConstantOp::create(b, e.loc(), DenseElementsAttr::get(type, b.getFloatAttr(element, value)));
}

ComplexVector FftPasses::mul(ComplexVector x, ComplexVector y) {
  return {fma(x.re, y.re, negate(mul(x.im, y.im))), fma(x.im, y.re, mul(x.re, y.im))};
}

ComplexVector FftPasses::rotate(ComplexVector x, int64_t numerator, int64_t denominator) {
  numerator %= denominator;
  // Quarters change places and signs only.
  const int64_t quarter = 4 * numerator / denominator, rest = 4 * numerator % denominator;
  if (rest != 0 && 2 * rest != denominator) {
    const HostComplex root = rootOfUnity(numerator, denominator);
    return mul(x, {constant(double(root.real())), constant(double(root.imag()))});
  }
  if (rest != 0) { // an eighth further
    const Value half = constant(double(std::sqrt(0.5L)));
    x = {mul(add(x.re, x.im), half), mul(sub(x.im, x.re), half)};
  }
  switch (quarter) {
  case 1:
    return {x.im, negate(x.re)};
  case 2:
    return {negate(x.re), negate(x.im)};
  case 3:
    return {negate(x.im), x.re};
  default:
    return x;
  }
}

SmallVector<ComplexVector> FftPasses::oddButterfly(ArrayRef<ComplexVector> x) {
  // Elements j and n - j together: their sum meets cosines, their difference sines.
  const int64_t count = int64_t(x.size()), half = count / 2;
  SmallVector<ComplexVector> result(count), sums, differences;
  result[0] = x[0];
  for (int64_t j = 1; j <= half; ++j) {
    sums.push_back(add(x[j], x[count - j]));
    differences.push_back(sub(x[j], x[count - j]));
    result[0] = add(result[0], sums.back());
  }
  for (int64_t k = 1; k <= half; ++k) {
    ComplexVector even = x[0], odd{};
    for (int64_t j = 1; j <= half; ++j) {
      const HostComplex root = rootOfUnity(j * k, count);
      const Value cosine = constant(double(root.real())), sine = constant(-double(root.imag()));
      const ComplexVector sum = sums[j - 1], difference = differences[j - 1];
      even = {fma(sum.re, cosine, even.re), fma(sum.im, cosine, even.im)};
      odd = odd.re ? ComplexVector{fma(difference.re, sine, odd.re), fma(difference.im, sine, odd.im)}
                   : ComplexVector{mul(difference.re, sine), mul(difference.im, sine)};
    }
    result[k] = {add(even.re, odd.im), sub(even.im, odd.re)};
    result[count - k] = {sub(even.re, odd.im), add(even.im, odd.re)};
  }
  return result;
}

SmallVector<ComplexVector> FftPasses::butterfly(ArrayRef<ComplexVector> x) {
  const int64_t count = int64_t(x.size());
  if (count == 1)
    return {x[0]};
  if (count == 2)
    return {add(x[0], x[1]), sub(x[0], x[1])};
  if (count == 4) {
    const ComplexVector even = add(x[0], x[2]), odd = add(x[1], x[3]), a = sub(x[0], x[2]), b = sub(x[1], x[3]);
    return {add(even, odd), {add(a.re, b.im), sub(a.im, b.re)}, sub(even, odd), {sub(a.re, b.im), add(a.im, b.re)}};
  }
  int64_t outer = count % 4 == 0 ? 4 : 2;
  while (count % outer)
    ++outer;
  if (outer == count)
    return oddButterfly(x);
  const int64_t inner = count / outer;
  SmallVector<SmallVector<ComplexVector>> parts;
  for (int64_t i = 0; i < inner; ++i) {
    SmallVector<ComplexVector> part;
    for (int64_t j = 0; j < outer; ++j)
      part.push_back(x[i + inner * j]);
    parts.push_back(butterfly(part));
  }
  SmallVector<ComplexVector> result(count);
  for (int64_t k = 0; k < outer; ++k) {
    SmallVector<ComplexVector> across;
    for (int64_t i = 0; i < inner; ++i)
      across.push_back(rotate(parts[i][k], i * k, count));
    for (auto [j, value] : llvm::enumerate(butterfly(across)))
      result[k + outer * int64_t(j)] = value;
  }
  return result;
}

//===--- memory ---------------------------------------------------------------------------------------------------===//

Planes FftPasses::offset(Planes planes, Value elements) {
  return {e.address(planes.re, element, elements), e.address(planes.im, element, elements)};
}

ComplexVector FftPasses::loadTable(Planes table, const Index &index) {
  return {e.broadcast(e.loadAt(table.re, element, index)), e.broadcast(e.loadAt(table.im, element, index))};
}

FftPasses::Load FftPasses::from(Planes planes) {
  return [this, planes](const FftElements &at) -> ComplexVector {
    const Index index = batch ? e.addIndex(e.mulIndex(at.index, e.i64(batch), batch), at.lane) : at.index;
    return {e.loadAt(planes.re, element, index), e.loadAt(planes.im, element, index)};
  };
}

FftPasses::Store FftPasses::to(Planes planes) {
  return [this, planes](const FftElements &at, ComplexVector x) {
    const Index index = batch ? e.addIndex(e.mulIndex(at.index, e.i64(batch), batch), at.lane) : at.index;
    e.storeAt(x.re, planes.re, element, index);
    e.storeAt(x.im, planes.im, element, index);
  };
}

Value FftPasses::reverse(Value vector) {
  SmallVector<int64_t> lanes;
  for (int64_t lane = e.width() - 1; lane >= 0; --lane)
    lanes.push_back(lane);
  return vector::ShuffleOp::create(e.builder(), e.loc(), vector, vector, lanes);
}

void FftPasses::storePairs(ComplexVector x, Value pointer, Value offset, Value valid) {
  const int64_t width = e.width();
  for (int64_t half : {0, 1}) {
    SmallVector<int64_t> lanes;
    for (int64_t lane = 0; lane < width; ++lane)
      lanes.push_back(half * width / 2 + lane / 2 + lane % 2 * width);
    const Value pairs = vector::ShuffleOp::create(e.builder(), e.loc(), x.re, x.im, lanes);
    Value on;
    if (valid)
      on = e.lanesWithin(e.i64(0), e.sub(e.add(valid, valid), e.i64(half * width)));
    const Index at = e.contiguous(e.uniform(e.add(offset, e.i64(half * width))));
    e.withMask(on, [&] { e.storeAt(pairs, pointer, getElementTypeOrSelf(x.re.getType()), at); });
  }
}

//===--- passes ---------------------------------------------------------------------------------------------------===//

void FftPasses::firstPass(int64_t radix, Extent m, Planes twiddles, const Load &load, Planes to) {
  const int64_t width = e.width();
  const Value count = m.get(e);
  // A number that only the run knows is one of whole vectors: lanes beyond it read and write what nobody needs.
  const Value vectors = e.divUnsigned(e.add(count, e.i64(width - 1)), e.i64(width));
  e.laneLoop(m.value ? e.mul(vectors, e.i64(width)) : count, m.value ? width : m.constant, [&](Index p) {
    keepRolled();
    SmallVector<ComplexVector> x;
    for (int64_t j = 0; j < radix; ++j) {
      FftElements at;
      at.index = e.addIndex(p, e.uniform(e.mul(e.i64(j), count)));
      if (e.mask())
        at.valid = e.sub(count, p.base);
      if (m.constant && !m.value) {
        at.begin = j * *m.constant;
        at.end = at.begin + *m.constant;
      }
      x.push_back(load(at));
    }
    SmallVector<ComplexVector> y = butterfly(x);
    for (int64_t k = 1; k < radix; ++k)
      y[k] = mul(y[k], loadTable(twiddles, e.addIndex(p, e.uniform(e.mul(e.i64(k - 1), count)))));
    // Row l of what is turned are the results of lane l. Vectors reach into what the next one writes, the last ones
    // beyond the transform.
    e.withMask({}, [&] {
      const Value nothing = LLVM::UndefOp::create(e.builder(), e.loc(), e.vectorOf(element));
      auto turn = [&](Value ComplexVector::*part, Value plane) {
        SmallVector<SmallVector<Value>> blocks;
        for (int64_t first = 0; first < radix; first += width) {
          SmallVector<Value> block;
          for (int64_t k = first; k < first + width; ++k)
            block.push_back(k < radix ? y[k].*part : nothing);
          blocks.push_back(transposeLanes(e, block));
        }
        for (int64_t lane = 0; lane < width; ++lane)
          for (auto [number, block] : llvm::enumerate(blocks)) {
            const Value start = e.add(e.mul(p.base, e.i64(radix)), e.i64(lane * radix + int64_t(number) * width));
            e.storeAt(block[lane], plane, element, e.contiguous(e.uniform(start)));
          }
      };
      turn(&ComplexVector::re, to.re);
      turn(&ComplexVector::im, to.im);
    });
  });
}

void FftPasses::pass(int64_t radix, Extent m, Extent s, Planes twiddles, const Load &load, const Store &store) {
  const Value count = m.get(e), stride = s.get(e);
  const bool isLast = !m.value && m.constant == 1, isKnown = !m.value && !s.value;
  auto atPosition = [&](Index p) {
    SmallVector<ComplexVector> factors(radix);
    if (!isLast)
      for (int64_t k = 1; k < radix; ++k)
        factors[k] = loadTable(twiddles, e.addIndex(e.uniform(p.base), e.uniform(e.mul(e.i64(k - 1), count))));
    auto butterflies = [&](Index q, Index lane) {
      keepRolled();
      FftElements at;
      at.lane = lane;
      if (!batch && e.mask())
        at.valid = e.sub(stride, q.base);
      SmallVector<ComplexVector> x;
      for (int64_t j = 0; j < radix; ++j) {
        at.index = e.addIndex(q, e.uniform(e.mul(e.add(p.base, e.mul(e.i64(j), count)), stride)));
        if (isKnown) {
          at.begin = j * *m.constant * *s.constant;
          at.end = at.begin + *m.constant * *s.constant;
        }
        x.push_back(load(at));
      }
      const SmallVector<ComplexVector> y = butterfly(x);
      for (int64_t k = 0; k < radix; ++k) {
        at.index = e.addIndex(q, e.uniform(e.mul(e.add(e.mul(p.base, e.i64(radix)), e.i64(k)), stride)));
        at.begin = 0;
        at.end = INT64_MAX;
        if (isKnown && isLast) {
          at.begin = k * *s.constant;
          at.end = at.begin + *s.constant;
        }
        store(at, k > 0 && !isLast ? mul(y[k], factors[k]) : y[k]);
      }
    };
    auto alongBatch = [&](Index q) { e.laneLoop(e.i64(batch), batch, [&](Index lane) { butterflies(q, lane); }); };
    if (!batch)
      e.laneLoop(stride, s.constant, [&](Index q) { butterflies(q, {}); });
    else if (isKnown && s.constant == 1)
      alongBatch(e.constant(0));
    else
      e.loop(e.i64(0), stride, 1, alongBatch);
  };
  if (isLast)
    atPosition(e.constant(0));
  else
    e.loop(e.i64(0), count, 1, [&](Index p) {
      keepRolled();
      atPosition(p);
    });
}

void FftPasses::emit(const FftPlan &plan, Planes twiddles, const Load &load, const Store &store,
                     const Planes (&buffers)[2], unsigned first) {
  unsigned next = first;
  for (const FftPass &step : plan.passes) {
    const bool isFirst = &step == &plan.passes.front(), isLast = &step == &plan.passes.back();
    const Planes factors = step.m > 1 ? offset(twiddles, e.i64(step.table)) : twiddles;
    if (isFirst && !batch)
      firstPass(step.radix, step.m, factors, load, buffers[next]);
    else
      pass(step.radix, step.m, step.s, factors, isFirst ? load : from(buffers[1 - next]),
           isLast ? store : to(buffers[next]));
    next = 1 - next;
  }
}

Value FftPasses::bitsAfterFirstPass(Value length) {
  const Value zeros = math::CountTrailingZerosOp::create(e.builder(), e.loc(), length);
  return e.sub(zeros, e.i64(llvm::Log2_64(firstRadix())));
}

Value FftPasses::leastOddFactor(Value number) {
  OpBuilder &b = e.builder();
  // From the largest one down, the least one is found last; 9 is followed by 3.
  constexpr int64_t kTried = (kLargestPrime - 1) / 2;
  return e.loop(e.i64(0), e.i64(kTried), 1, {e.i64(1)}, [&](Index i, ValueRange state) {
    keepRolled();
    const Value prime = e.sub(e.i64(kLargestPrime), e.add(i.base, i.base)), rest = e.remUnsigned(number, prime);
    const Value divides = arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::eq, rest, e.i64(0));
    return SmallVector<Value>{arith::SelectOp::create(b, e.loc(), divides, prime, state[0])};
  })[0];
}

std::pair<FftPasses::RunTimeLength, Value> FftPasses::factorize(Value length) {
  OpBuilder &b = e.builder();
  auto is = [&](arith::CmpIPredicate kind, Value x, int64_t y) -> Value {
    return arith::CmpIOp::create(b, e.loc(), kind, x, e.i64(y));
  };
  const Value twos = math::CountTrailingZerosOp::create(b, e.loc(), length);
  const Value odd = arith::ShRUIOp::create(b, e.loc(), length, twos);
  // Not more than the bits of the number but the first.
  const Value most = e.sub(e.i64(63), math::CountLeadingZerosOp::create(b, e.loc(), odd));
  const SmallVector<Value> found = e.loop(e.i64(0), most, 1, {odd, e.i64(0)}, [&](Index, ValueRange state) {
    keepRolled();
    const Value factor = leastOddFactor(state[0]);
    const Value one = arith::ExtUIOp::create(b, e.loc(), b.getI64Type(), is(arith::CmpIPredicate::ne, factor, 1));
    return SmallVector<Value>{e.divUnsigned(state[0], factor), e.add(state[1], one)};
  });
  const Value isWhole = is(arith::CmpIPredicate::eq, e.remUnsigned(length, e.i64(firstRadix())), 0);
  const Value isSmooth = is(arith::CmpIPredicate::eq, found[0], 1);
  const Value isLong = is(arith::CmpIPredicate::sge, length, kLeastRunTime);
  return {{length, found[1]},
          arith::AndIOp::create(b, e.loc(), isLong, arith::AndIOp::create(b, e.loc(), isWhole, isSmooth))};
}

void FftPasses::forRunTimePasses(RunTimeLength all, llvm::function_ref<void(Value, Value, Value)> body) {
  OpBuilder &b = e.builder();
  const auto [length, odd] = all;
  const Value passes = e.add(e.add(e.i64(1), odd), e.divUnsigned(bitsAfterFirstPass(length), e.i64(2)));
  e.loop(e.i64(0), passes, 1, {all.value, e.i64(0)}, [&, odd = odd](Index number, ValueRange state) {
    const Value isFirst = arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::eq, number.base, e.i64(0));
    const Value isOdd = arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::sle, number.base, odd);
    const Value next = arith::SelectOp::create(b, e.loc(), isOdd, leastOddFactor(state[0]), e.i64(kNextRadix));
    const Value radix = arith::SelectOp::create(b, e.loc(), isFirst, e.i64(firstRadix()), next);
    const Value m = e.divUnsigned(state[0], radix);
    body(radix, m, state[1]);
    return SmallVector<Value>{m, e.add(state[1], e.mul(m, e.sub(radix, e.i64(1))))};
  });
}

// A multiple of all widths, as s is.
static constexpr int64_t whole = 16;

void FftPasses::oddPass(Value radix, Value m, Value s, Planes twiddles, Planes roots, Planes from, Planes to) {
  OpBuilder &b = e.builder();
  const Load load = this->from(from);
  const Store store = this->to(to);
  e.loop(e.i64(0), m, 1, [&](Index p) {
    keepRolled();
    e.loop(e.i64(0), radix, 1, [&](Index k) {
      keepRolled();
      const Value isFirst = arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::eq, k.base, e.i64(0));
      const Value row = arith::MaxSIOp::create(b, e.loc(), e.sub(k.base, e.i64(1)), e.i64(0));
      ComplexVector factor = loadTable(twiddles, e.uniform(e.add(p.base, e.mul(row, m))));
      factor.re = arith::SelectOp::create(b, e.loc(), isFirst, constant(1), factor.re);
      factor.im = arith::SelectOp::create(b, e.loc(), isFirst, constant(0), factor.im);
      e.laneLoop(s, whole, [&](Index q) {
        keepRolled();
        FftElements at;
        const SmallVector<Value> sum =
            e.loop(e.i64(0), radix, 1, {constant(0), constant(0), e.i64(0)}, [&](Index j, ValueRange state) {
              at.index = e.addIndex(q, e.uniform(e.mul(e.add(p.base, e.mul(j.base, m)), s)));
              const ComplexVector x = load(at), root = loadTable(roots, e.uniform(state[2]));
              // The root of j k, less whole turns.
              const Value further = e.add(state[2], k.base), less = e.sub(further, radix);
              const Value turns = arith::CmpIOp::create(b, e.loc(), arith::CmpIPredicate::sge, further, radix);
              return SmallVector<Value>{fma(x.re, root.re, fma(negate(x.im), root.im, state[0])),
                                        fma(x.im, root.re, fma(x.re, root.im, state[1])),
                                        arith::SelectOp::create(b, e.loc(), turns, less, further)};
            });
        at.index = e.addIndex(q, e.uniform(e.mul(e.add(e.mul(p.base, radix), k.base), s)));
        store(at, mul(ComplexVector{sum[0], sum[1]}, factor));
      });
    });
  });
}

void FftPasses::emitRunTime(RunTimeLength all, Planes twiddles, Planes (&buffers)[2]) {
  const Value length = all.value;
  const Value first = e.divUnsigned(length, e.i64(firstRadix())), bits = bitsAfterFirstPass(length), two = e.i64(2);
  firstPass(firstRadix(), Extent(first), twiddles, from(buffers[0]), buffers[1]);
  // What the buffers are called changes with each pass: the one that was written, the other one, m, s and the table.
  SmallVector<Value> state{buffers[1].re,
                           buffers[1].im,
                           buffers[0].re,
                           buffers[0].im,
                           first,
                           e.i64(firstRadix()),
                           e.mul(first, e.i64(firstRadix() - 1))};
  auto step = [&](int64_t radix, ValueRange now) {
    keepRolled();
    const Value m = e.divUnsigned(now[4], e.i64(radix));
    pass(radix, radix == kNextRadix ? Extent(m) : Extent(int64_t(1)), Extent(now[5], whole), offset(twiddles, now[6]),
         from({now[0], now[1]}), to({now[2], now[3]}));
    return SmallVector<Value>{
        now[2], now[3], now[0], now[1], m, e.mul(now[5], e.i64(radix)), e.add(now[6], e.mul(m, e.i64(radix - 1)))};
  };
  state = e.loop(e.i64(0), all.oddFactors, 1, state, [&](Index, ValueRange now) {
    keepRolled();
    const Value radix = leastOddFactor(now[4]), m = e.divUnsigned(now[4], radix);
    oddPass(radix, m, now[5], offset(twiddles, now[6]), offset(twiddles, rootsOf(length, radix)), {now[0], now[1]},
            {now[2], now[3]});
    return SmallVector<Value>{
        now[2], now[3], now[0], now[1], m, e.mul(now[5], radix), e.add(now[6], e.mul(m, e.sub(radix, e.i64(1))))};
  });
  state = e.loop(e.i64(0), e.divUnsigned(bits, two), 1, state,
                 [&](Index, ValueRange now) { return step(kNextRadix, now); });
  state = e.loop(e.i64(0), e.remUnsigned(bits, two), 1, state, [&](Index, ValueRange now) { return step(2, now); });
  buffers[0] = {state[0], state[1]};
  buffers[1] = {state[2], state[3]};
}
