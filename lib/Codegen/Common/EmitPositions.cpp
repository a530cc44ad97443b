//===- EmitPositions.cpp - arithmetic on positions, a lane or a vector at a time ----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Common/EmitterHelpers.h"

#include "tc/Support/Saturate.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

Index Emitter::constant(int64_t position) {
  Index index;
  index.base = i64(position);
  index.multiple = std::abs(position);
  return index;
}

Index Emitter::uniform(Value position, int64_t multiple) {
  if (auto known = constantOf(position))
    return constant(*known);
  Index index;
  index.base = position;
  index.multiple = multiple;
  index.depth = int(scopes.size()) - 1;
  return index;
}

Index Emitter::contiguous(Index base) {
  base.parts = nullptr;
  base.divided = nullptr;
  base.window = nullptr;
  base.step = 1;
  return base;
}

Index Emitter::withOffsets(Index index, ArrayRef<int64_t> offsets) {
  index.parts = nullptr;
  index.divided = nullptr;
  index.window = nullptr;
  index.step = 0;
  index.repeat = 1;
  index.modulus = 0;
  index.offsets = b.getDenseI64ArrayAttr(offsets);
  return index;
}

Index Emitter::partOf(Index base, int64_t first, int64_t count, int64_t block) {
  SmallVector<int64_t> offsets;
  for (int64_t lane = 0; lane < width(); ++lane)
    offsets.push_back(std::min(first + lane, count - 1));
  base.block = block;
  return withOffsets(base, offsets);
}

std::pair<Index, Index> Emitter::partOfRows(Index first, int64_t part, int64_t number) {
  SmallVector<int64_t> rows, elements;
  for (int64_t lane = 0; lane < width(); ++lane) {
    rows.push_back((number * width() + lane) / part);
    elements.push_back((number * width() + lane) % part);
  }
  first.block = width();
  return {simplified(withOffsets(first, rows)), simplified(withOffsets(constant(0), elements))};
}

Index Emitter::simplified(Index index) {
  if (!index.offsets)
    return index;
  const ArrayRef<int64_t> offsets = index.offsets;
  const bool isUniform = llvm::all_equal(offsets);
  if (!isUniform && !llvm::equal(offsets, llvm::seq(offsets.front(), offsets.front() + width())))
    return index;
  index.base = inScope(index.depth, [&, first = offsets.front()] { return add(index.base, i64(first)); });
  index.multiple = std::gcd(index.multiple, offsets.front());
  index.offsets = {};
  index.block = 0;
  index.step = isUniform ? 0 : 1;
  return index;
}

Value Emitter::laneOffsets(const Index &index) {
  SmallVector<int64_t> lanes;
  for (int64_t lane = 0; lane < width(); ++lane)
    lanes.push_back(index.offsetOf(lane));
  Value &known = laneOffsetVectors[b.getDenseI64ArrayAttr(lanes)];
  if (!known)
    known = atEntry([&]() -> Value {
      return arith::ConstantOp::create(b, location,
                                       DenseElementsAttr::get(vectorOf(b.getI64Type()), ArrayRef<int64_t>(lanes)));
    });
  return known;
}

Value Emitter::materialize(const Index &index) {
  if (index.lanes)
    return index.lanes;
  if (index.isUniform())
    return index.base;
  return inScope(index.depth, [&]() -> Value {
    return arith::AddIOp::create(b, location, broadcast(index.base), laneOffsets(index));
  });
}

std::shared_ptr<const Index::Window> Emitter::shifted(const Index::Window &window, const Index &by, int depth) {
  const Value start = inScope(depth, [&] { return add(window.start, by.base); });
  return std::make_shared<Index::Window>(Index::Window{start, window.at, window.last, window.size});
}

Index Emitter::addIndex(const Index &x, const Index &y) {
  auto isZero = [](const Index &index) { return index.isUniform() && index.multiple == 0; };
  if (isZero(x))
    return y;
  if (isZero(y))
    return x;
  Index result;
  result.depth = std::max(x.depth, y.depth);
  result.mayPrecede = x.mayPrecede || y.mayPrecede;
  if (!x.lanes && !y.lanes && (x.offsets || y.offsets)) {
    result.base = inScope(result.depth, [&] { return add(x.base, y.base); });
    result.multiple = std::gcd(x.multiple, y.multiple);
    SmallVector<int64_t> offsets;
    for (int64_t lane = 0; lane < width(); ++lane)
      offsets.push_back(x.offsetOf(lane) + y.offsetOf(lane));
    return withOffsets(result, offsets);
  }
  // Quotient times divisor plus remainder, as `divide` makes them, are what was divided.
  auto isDivided = [](const Index &quotient, const Index &remainder) {
    return remainder.modulus != 0 && remainder.step != 0 && quotient.modulus == 0 &&
           quotient.step == remainder.modulus &&
           quotient.repeat == remainder.modulus / remainder.step * remainder.repeat;
  };
  const bool isJoined = !x.lanes && !y.lanes && (isDivided(x, y) || isDivided(y, x));
  if (x.window && y.isUniform())
    result.window = shifted(*x.window, y, result.depth);
  else if (y.window && x.isUniform())
    result.window = shifted(*y.window, x, result.depth);
  if (x.lanes || y.lanes ||
      (x.step != 0 && y.step != 0 && !isJoined && (x.repeat != y.repeat || x.modulus != 0 || y.modulus != 0))) {
    Value a = materialize(x), c = materialize(y);
    result.multiple = 1;
    result.lanes = inScope(result.depth,
                           [&]() -> Value { return arith::AddIOp::create(b, location, broadcast(a), broadcast(c)); });
    return result;
  }
  result.base = inScope(result.depth, [&] { return add(x.base, y.base); });
  if (isJoined) {
    const Index &remainder = x.modulus ? x : y;
    result.step = remainder.step;
    result.repeat = remainder.repeat;
  } else {
    result.step = x.step + y.step;
    if (result.step != 0) {
      result.repeat = std::max(x.repeat, y.repeat);
      result.modulus = x.modulus + y.modulus; // one of them at most has lanes that differ
    }
  }
  result.multiple = std::gcd(x.multiple, y.multiple);
  return result;
}

Index Emitter::mulIndex(const Index &x, Value factor, std::optional<int64_t> constantFactor, int depth) {
  if (constantFactor && *constantFactor == 1)
    return x;
  if ((constantFactor && *constantFactor == 0) || (x.isUniform() && x.multiple == 0))
    return constant(0);
  Index result;
  result.depth = std::max(x.depth, depth);
  result.mayPrecede = x.mayPrecede;
  const bool isNegative = constantFactor && *constantFactor < 0;
  // Distances of lanes that numbers of 64 bits do not hold are computed as the run does: lanes that are not used wrap.
  auto wraps = [&](int64_t of) {
    int64_t product;
    return constantFactor && llvm::MulOverflow(of, *constantFactor, product);
  };
  const bool isFar = wraps(x.step) || wraps(x.modulus) || (x.offsets && llvm::any_of(x.offsets.asArrayRef(), wraps));
  if (x.lanes || isFar || (!x.isUniform() && !constantFactor) || ((x.modulus != 0 || x.offsets) && isNegative)) {
    Value a = materialize(x);
    result.lanes = inScope(
        result.depth, [&]() -> Value { return arith::MulIOp::create(b, location, broadcast(a), broadcast(factor)); });
    if (x.window && constantFactor && *constantFactor > 0 &&
        saturatingMul(x.window->size - 1, *constantFactor) < width()) {
      const Index::Window &w = *x.window;
      auto window = std::make_shared<Index::Window>(Index::Window{{}, {}, {}, (w.size - 1) * *constantFactor + 1});
      window->start = inScope(result.depth, [&] { return mul(w.start, factor); });
      window->last = inScope(result.depth, [&] { return mul(w.last, factor); });
      window->at = inScope(result.depth, [&]() -> Value {
        const Value small = broadcast(arith::TruncIOp::create(b, location, b.getI32Type(), factor));
        return arith::MulIOp::create(b, location, w.at, small);
      });
      result.window = window;
    }
    return result;
  }
  result.base = inScope(result.depth, [&] { return mul(x.base, factor); });
  result.multiple = !constantFactor     ? x.multiple
                    : wraps(x.multiple) ? 1 // of which everything is a multiple
                                        : std::abs(x.multiple * *constantFactor);
  if (x.offsets)
    return withOffsets(result,
                       llvm::map_to_vector(x.offsets.asArrayRef(), [&](int64_t o) { return o * *constantFactor; }));
  result.step = constantFactor ? x.step * *constantFactor : 0;
  result.repeat = x.repeat;
  result.modulus = constantFactor ? x.modulus * *constantFactor : 0;
  return result;
}

Index Emitter::joinIndex(const Index &outer, const Index &inner, int64_t size) {
  Index joined = addIndex(mulIndex(outer, i64(size), size), inner);
  joined.parts = std::make_shared<Index::Parts>(Index::Parts{outer, inner, size});
  return joined;
}

Index Emitter::linearize(ArrayRef<Index> places, ArrayRef<AffineExpr> ofDims) {
  // Quotients beside their remainders are what was divided, whose lanes may be side by side.
  SmallVector<Index> at;
  SmallVector<AffineExpr> sizes;
  for (auto [place, size] : llvm::zip_equal(places, ofDims)) {
    at.push_back(place);
    sizes.push_back(size);
    while (at.size() > 1 && at.back().divided && at.back().isRemainder && !at[at.size() - 2].isRemainder &&
           at[at.size() - 2].divided == at.back().divided && at.back().divided->by == sizes.back()) {
      const Index whole = at.back().divided->index;
      const AffineExpr joined = prim::simplifySize(sizes[sizes.size() - 2] * sizes.back());
      at.pop_back();
      sizes.pop_back();
      at.back() = whole;
      sizes.back() = joined;
    }
  }
  Index result = constant(0);
  AffineExpr stride = getAffineConstantExpr(1, b.getContext());
  for (size_t i = at.size(); i-- > 0;) {
    if (prim::getConstantSize(sizes[i]) == 1 && at[i].isUniform())
      continue; // the position is 0; one that has lanes says that the tensor has
    result = addIndex(mulIndex(at[i], size(stride), prim::getConstantSize(stride)), result);
    stride = prim::simplifySize(sizes[i] * stride);
  }
  return result;
}

std::pair<Index, Index> Emitter::divide(const Index &x, AffineExpr by, std::optional<int64_t> bound) {
  auto divisor = prim::getConstantSize(by);
  if (divisor && *divisor == 1)
    return {x, constant(0)};
  if (x.isUniform() && x.multiple == 0)
    return {constant(0), constant(0)};
  if (x.parts && divisor == x.parts->size)
    return {x.parts->outer, x.parts->inner};
  Index quotient, remainder;
  quotient.depth = remainder.depth = x.depth;
  quotient.mayPrecede = x.mayPrecede;
  Value d = size(by);
  // A value of no elements has no position, but positions in it are computed where lanes read another part of a concat.
  if (!divisor)
    d = atEntry([&]() -> Value { return arith::MaxSIOp::create(b, location, d, i64(1)); });
  if (x.offsets && divisor && *divisor > 0) {
    const int64_t known = std::gcd(x.multiple, *divisor); // base % divisor is a multiple of it
    const int64_t first = *llvm::min_element(x.offsets.asArrayRef()), last = *llvm::max_element(x.offsets.asArrayRef());
    if (first >= 0 && (known == *divisor || last < known)) {
      SmallVector<int64_t> quotients, remainders;
      for (int64_t offset : x.offsets.asArrayRef()) {
        quotients.push_back(offset / *divisor);
        remainders.push_back(offset % *divisor);
      }
      quotient.base = inScope(x.depth, [&] { return divFloor(x, d); });
      quotient.multiple = x.multiple % *divisor == 0 ? x.multiple / *divisor : 1;
      if (known == *divisor) {
        remainder = constant(0);
        quotient.block = x.block / *divisor;
        remainder.block = std::min(x.block, *divisor);
      } else {
        remainder.base = inScope(x.depth, [&] { return remFloor(x, d); });
        remainder.multiple = known;
      }
      return {simplified(withOffsets(quotient, quotients)), simplified(withOffsets(remainder, remainders))};
    }
  }
  if (!x.lanes && !x.offsets && x.modulus == 0) {
    int64_t block = divisor ? std::gcd(x.multiple, *divisor) : 1; // base % divisor is a multiple of block
    bool within = divisor && x.step >= 0 && (width() - 1) / x.repeat * x.step < block;
    bool across = divisor && *divisor > 0 && x.step % *divisor == 0;
    if (x.step == 0 || within || across) {
      quotient.base = inScope(x.depth, [&] { return divFloor(x, d); });
      quotient.step = within || x.step == 0 ? 0 : x.step / *divisor;
      quotient.repeat = quotient.step == 0 ? 1 : x.repeat;
      quotient.multiple = divisor && *divisor > 0 && x.multiple % *divisor == 0 ? x.multiple / *divisor : 1;
      if (divisor && *divisor > 0 && x.multiple % *divisor == 0) {
        remainder = constant(0);
      } else {
        remainder.base = inScope(x.depth, [&] { return remFloor(x, d); });
        remainder.multiple = block;
      }
      remainder.step = across ? 0 : x.step;
      remainder.repeat = remainder.step == 0 ? 1 : x.repeat;
      remainder.depth = x.depth;
      return {quotient, remainder};
    }
    // Whole runs of lanes share a quotient.
    if (divisor && block == *divisor && x.step > 0 && *divisor % x.step == 0 &&
        width() % (*divisor / x.step * x.repeat) == 0) {
      quotient.base = inScope(x.depth, [&] { return divFloor(x, d); });
      quotient.step = 1;
      quotient.repeat = *divisor / x.step * x.repeat;
      quotient.multiple = x.multiple / *divisor;
      remainder = constant(0);
      remainder.step = x.step;
      remainder.repeat = x.repeat;
      remainder.modulus = *divisor;
      return {quotient, remainder};
    }
  }
  Value lanes = materialize(x);
  // There is no product of high halves for lanes of 64 bits.
  const bool isNarrow = bound && *bound < (int64_t(1) << 31) && divisor && *divisor > 0;
  auto here = [&](llvm::function_ref<Value()> fn) { return inScope(x.depth, fn); };
  if (isNarrow) {
    lanes = here([&]() -> Value { return arith::TruncIOp::create(b, location, vectorOf(b.getI32Type()), lanes); });
    d = here([&]() -> Value { return arith::ConstantOp::create(b, location, b.getI32IntegerAttr(int32_t(*divisor))); });
  }
  quotient.lanes = here([&]() -> Value { return arith::DivUIOp::create(b, location, lanes, broadcast(d)); });
  remainder.lanes = here([&]() -> Value { return arith::RemUIOp::create(b, location, lanes, broadcast(d)); });
  if (isNarrow)
    for (Value *value : {&quotient.lanes, &remainder.lanes})
      *value = here([&]() -> Value { return arith::ExtUIOp::create(b, location, vectorOf(b.getI64Type()), *value); });
  quotient.divided = remainder.divided = std::make_shared<Index::Divided>(Index::Divided{x, by});
  remainder.isRemainder = true;
  if (divisor && *divisor > 1 && *divisor < (int64_t(1) << 30) && x.step == 1 && x.repeat == 1 && !x.lanes &&
      !x.offsets && x.modulus == 0 && !alignedBuffers)
    setWindows(x, *divisor, quotient, remainder);
  return {quotient, remainder};
}

Value Emitter::laneNumbers() {
  SmallVector<int32_t> lanes(width());
  std::iota(lanes.begin(), lanes.end(), 0);
  return arith::ConstantOp::create(b, location,
                                   DenseElementsAttr::get(vectorOf(b.getI32Type()), ArrayRef<int32_t>(lanes)));
}

// Of neighbours from x.base on.
void Emitter::setWindows(const Index &x, int64_t divisor, Index &quotient, Index &remainder) {
  const auto type = vectorOf(b.getI32Type());
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, location, DenseElementsAttr::get(type, int32_t(value)));
  };
  auto here = [&](llvm::function_ref<Value()> fn) { return inScope(x.depth, fn); };
  const Value first = here([&] { return remFloor(x, i64(divisor)); });
  const Value positions = here([&]() -> Value {
    return arith::AddIOp::create(b, location, broadcast(arith::TruncIOp::create(b, location, b.getI32Type(), first)),
                                 laneNumbers());
  });
  const Value start = here([&] { return divFloor(x, i64(divisor)); });
  const Value last = here([&] { return divUnsigned(add(first, i64(width() - 1)), i64(divisor)); });
  const Value at = here([&]() -> Value {
    if (divisor < width())
      return arith::DivUIOp::create(b, location, positions, number(divisor));
    // Two at most.
    return arith::ExtUIOp::create(
        b, location, type, arith::CmpIOp::create(b, location, arith::CmpIPredicate::uge, positions, number(divisor)));
  });
  quotient.window = std::make_shared<Index::Window>(
      Index::Window{start, at, last, int64_t(llvm::divideCeil(width() - 1, divisor)) + 1});
  if (divisor > width())
    return;
  const Value rest = here([&]() -> Value { return arith::RemUIOp::create(b, location, positions, number(divisor)); });
  remainder.window = std::make_shared<Index::Window>(Index::Window{i64(0), rest, i64(divisor - 1), divisor});
}

SmallVector<Index> Emitter::delinearize(const Index &linear, ArrayRef<AffineExpr> sizes) {
  SmallVector<Index> at(sizes.size());
  // The first dim that is not 1 takes what is left: positions are in range.
  size_t first = 0;
  while (first + 1 < sizes.size() && prim::getConstantSize(sizes[first]) == 1)
    at[first++] = constant(0);
  Index rest = linear;
  for (size_t i = sizes.size(); i-- > first;) {
    if (i == first) {
      at[i] = rest;
      break;
    }
    if (prim::getConstantSize(sizes[i]) == 1) {
      at[i] = constant(0);
      continue;
    }
    const std::optional<int64_t> bound =
        prim::getConstantSize(prim::product(b.getContext(), sizes.slice(first, i + 1 - first)));
    std::tie(rest, at[i]) = divide(rest, sizes[i], bound);
  }
  return at;
}

SmallVector<Index> Emitter::reshapeIndex(ArrayRef<Index> at, ArrayRef<AffineExpr> from, ArrayRef<AffineExpr> to) {
  SmallVector<Index> result;
  size_t i = 0, j = 0;
  MLIRContext *context = b.getContext();
  // Dims at the end that are the same keep their positions. What is left may be one dim whose size only has another
  // form.
  size_t same = 0;
  while (same < std::min(from.size(), to.size()) && from[from.size() - 1 - same] == to[to.size() - 1 - same])
    ++same;
  const ArrayRef<Index> innermost = at.take_back(same);
  const size_t outer = to.size() - same;
  from = from.drop_back(same);
  to = to.drop_back(same);
  while (i < from.size() && j < to.size()) {
    // The smallest next groups with the same number of elements; everything that is left if none is provable.
    size_t ni = from.size() - i, nj = to.size() - j;
    bool found = false;
    for (size_t total = 2; total <= from.size() - i + to.size() - j && !found; ++total)
      for (size_t a = 1; a < total && !found; ++a) {
        size_t c = total - a;
        if (a > from.size() - i || c > to.size() - j)
          continue;
        if (prim::product(context, from.slice(i, a)) == prim::product(context, to.slice(j, c))) {
          ni = a;
          nj = c;
          found = true;
        }
      }
    if (ni == 1 && nj == 1)
      result.push_back(at[i]);
    else
      llvm::append_range(result, delinearize(linearize(at.slice(i, ni), from.slice(i, ni)), to.slice(j, nj)));
    i += ni;
    j += nj;
  }
  while (result.size() < outer) // left over: sizes of 1
    result.push_back(constant(0));
  llvm::append_range(result, innermost);
  return result;
}
