//===- IntValues.cpp - integer tensors as size expressions --------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "IntValues.h"

#include "ConstantData.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

int64_t tc::countTerms(AffineExpr expr) {
  int64_t count = 0;
  expr.walk([&](AffineExpr) { ++count; });
  return count;
}

AffineExpr IntValues::countElements(Value value) {
  SmallVector<Value> chain;
  AffineExpr shortest;
  for (Value at = value; !(shortest = counts.lookup(at));) {
    chain.push_back(at);
    Operation *op = at.getDefiningOp();
    const bool keeps =
        op && (isa<ReshapeOp, TransposeOp>(op) || (op->hasTrait<PointwiseTrait>() && op->getNumOperands() > 0 &&
                                                   getSizes(op->getOperand(0)) == getSizes(at)));
    if (!keeps)
      break;
    at = op->getOperand(0);
  }
  for (Value at : llvm::reverse(chain)) {
    const AffineExpr own = product(at.getContext(), getSizes(at));
    if (!shortest || countTerms(own) <= countTerms(shortest))
      shortest = own;
    counts[at] = shortest;
  }
  return shortest;
}

std::optional<Sizes> IntValues::get(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || !type.hasStaticShape() || !isa<IntegerType>(type.getElementType()) ||
      type.getNumElements() > kMaxElements)
    return std::nullopt;
  auto it = cache.find(value);
  if (it != cache.end())
    return it->second;
  std::optional<Sizes> result = compute(value);
  if (result && !llvm::all_of(*result, [&](AffineExpr &expr) { return fit(expr, type.getElementType()); }))
    result = std::nullopt;
  cache[value] = result;
  return result;
}

/// Constants from here on are not subtracted from sizes.
static constexpr int64_t kFar = int64_t(1) << 61;

/// Constants wrap around as in their type. False for what an expression, whose arithmetic is that of int64, cannot say.
bool IntValues::fit(AffineExpr &expr, Type elementType) {
  expr = simplifySize(expr);
  std::optional<int64_t> value = getConstantSize(expr);
  if (!value)
    return true;
  auto type = cast<IntegerType>(elementType);
  APInt wrapped = APInt(64, uint64_t(*value)).trunc(type.getWidth());
  bool isUnsigned = type.isUnsigned() || type.getWidth() == 1;
  int64_t kept = isUnsigned ? int64_t(wrapped.getZExtValue()) : wrapped.getSExtValue();
  if (isUnsigned && kept < 0)
    return false;
  if (kept != *value)
    expr = getAffineConstantExpr(kept, expr.getContext());
  return true;
}

std::optional<bool> IntValues::compare(CompareKind kind, AffineExpr a, AffineExpr b) {
  auto x = getConstantSize(a), y = getConstantSize(b);
  if (x && y) // data as well as sizes: a difference may overflow
    switch (kind) {
    case CompareKind::EQ:
      return *x == *y;
    case CompareKind::NE:
      return *x != *y;
    case CompareKind::LT:
      return *x < *y;
    case CompareKind::LE:
      return *x <= *y;
    case CompareKind::GT:
      return *x > *y;
    case CompareKind::GE:
      return *x >= *y;
    }
  int64_t low, high; // of the difference
  auto isFar = [](std::optional<int64_t> v) { return v && (*v >= kFar || *v <= -kFar); };
  if (isFar(x) || isFar(y)) { // such as the least number of a type, from which no expression is subtracted in 64 bits
    auto [lowA, highA] = getSizeBounds(a, symbols.getAttr());
    auto [lowB, highB] = getSizeBounds(b, symbols.getAttr());
    auto minus = [](int64_t p, int64_t q) {
      int64_t r;
      return llvm::SubOverflow(p, q, r) ? p < 0 ? INT64_MIN : INT64_MAX : r;
    };
    low = minus(lowA, highB), high = minus(highA, lowB);
  } else {
    std::tie(low, high) = getSizeBounds(simplifySize(a - b), symbols.getAttr());
  }
  bool equal = low == 0 && high == 0, differ = low > 0 || high < 0;
  switch (kind) {
  case CompareKind::EQ:
    return equal ? std::optional(true) : differ ? std::optional(false) : std::nullopt;
  case CompareKind::NE:
    return equal ? std::optional(false) : differ ? std::optional(true) : std::nullopt;
  case CompareKind::LT:
    return high < 0 ? std::optional(true) : low >= 0 ? std::optional(false) : std::nullopt;
  case CompareKind::LE:
    return high <= 0 ? std::optional(true) : low > 0 ? std::optional(false) : std::nullopt;
  case CompareKind::GT:
    return low > 0 ? std::optional(true) : high <= 0 ? std::optional(false) : std::nullopt;
  case CompareKind::GE:
    return low >= 0 ? std::optional(true) : high < 0 ? std::optional(false) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<AffineExpr> IntValues::binary(Operation *op, AffineExpr a, AffineExpr b) {
  auto x = getConstantSize(a), y = getConstantSize(b);
  auto constant = [&](int64_t v) { return getAffineConstantExpr(v, a.getContext()); };
  auto nonNegative = [&](AffineExpr e) { return getSizeBounds(e, symbols.getAttr()).first >= 0; };
  const Type element = cast<RankedTensorType>(op->getResult(0).getType()).getElementType();
  bool isBool = element.isInteger(1);
  if (x && y && isa<AddOp, SubOp, MulOp>(op)) {
    // Numbers wrap as elements do; sizes, which saturate, come only from what is checked.
    const uint64_t p = uint64_t(*x), q = uint64_t(*y), z = isa<AddOp>(op) ? p + q : isa<SubOp>(op) ? p - q : p * q;
    const llvm::APInt wrapped = llvm::APInt(64, z).trunc(element.getIntOrFloatBitWidth());
    return constant(element.isUnsignedInteger() ? int64_t(wrapped.getZExtValue()) : wrapped.getSExtValue());
  }
  if (isa<AddOp>(op))
    return a + b;
  if (isa<SubOp>(op))
    return a - b;
  if (isa<MulOp>(op))
    return a * b;
  if (isa<DivOp>(op) || isa<RemOp>(op)) {
    if (x && y) {
      bool isDiv = isa<DivOp>(op);
      if (*y == 0)
        return constant(0);
      if (*y == -1)
        return isDiv ? constant(int64_t(-uint64_t(*x))) : constant(0);
      return constant(isDiv ? *x / *y : *x % *y);
    }
    // Truncation is flooring only where nothing is negative.
    if (!nonNegative(a) || getSizeBounds(b, symbols.getAttr()).first < 1)
      return std::nullopt;
    AffineExpr quotient = a.floorDiv(b);
    return isa<DivOp>(op) ? quotient : a - quotient * b;
  }
  if (isa<MaxOp>(op) || isa<MinOp>(op)) {
    std::optional<bool> greater = compare(CompareKind::GE, a, b);
    if (!greater)
      greater = compare(CompareKind::GT, a, b);
    if (!greater)
      return std::nullopt;
    return *greater == isa<MaxOp>(op) ? a : b;
  }
  if (x && y) {
    if (isa<AndOp>(op))
      return constant(*x & *y);
    if (isa<OrOp>(op))
      return constant(*x | *y);
    if (isa<XorOp>(op))
      return constant(*x ^ *y);
  }
  if (isBool && isa<AndOp>(op) && ((x && *x == 0) || (y && *y == 0)))
    return constant(0);
  return std::nullopt;
}

std::optional<APFloat> IntValues::getFloat(Value value, int depth) {
  auto known = floats.find(value);
  if (known != floats.end())
    return known->second;
  std::optional<APFloat> number = computeFloat(value, depth);
  if (depth == 0 || number) // what is too deep from one may be near to another
    floats.insert({value, number});
  return number;
}

std::optional<APFloat> IntValues::computeFloat(Value value, int depth) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  auto element = type ? dyn_cast<FloatType>(type.getElementType()) : FloatType();
  Operation *op = value.getDefiningOp();
  if (!element || !op || depth > 64 || !type.hasStaticShape() || type.getNumElements() != 1)
    return std::nullopt;
  auto rounded = [&](APFloat number) {
    bool loses;
    number.convert(element.getFloatSemantics(), APFloat::rmNearestTiesToEven, &loses);
    return number;
  };
  if (auto c = dyn_cast<prim::ConstantOp>(op)) {
    std::optional<SmallVector<double>> numbers = readFloats(c.getValue());
    return numbers && numbers->size() == 1 ? std::optional(rounded(APFloat(numbers->front()))) : std::nullopt;
  }
  if (auto splat = dyn_cast<SplatOp>(op)) {
    auto attr = dyn_cast<FloatAttr>(splat.getValue());
    return attr ? std::optional(attr.getValue()) : std::nullopt;
  }
  if (isa<ReshapeOp, BroadcastOp>(op))
    return getFloat(op->getOperand(0), depth + 1);
  if (isa<ConvertOp>(op)) {
    auto from = dyn_cast<IntegerType>(getElementTypeOrSelf(op->getOperand(0).getType()));
    if (!from) {
      std::optional<APFloat> number = getFloat(op->getOperand(0), depth + 1);
      return number ? std::optional(rounded(*number)) : std::nullopt;
    }
    std::optional<Sizes> known = get(op->getOperand(0));
    std::optional<int64_t> size = known && known->size() == 1 ? getConstantSize(known->front()) : std::nullopt;
    if (!size || from.isUnsigned())
      return std::nullopt;
    APFloat number(element.getFloatSemantics());
    number.convertFromAPInt(APInt(64, uint64_t(*size), /*isSigned=*/true), /*IsSigned=*/true,
                            APFloat::rmNearestTiesToEven);
    return number;
  }
  if (!isa<AddOp, SubOp, MulOp, DivOp, NegOp, FloorOp, CeilOp, TruncOp, RoundOp>(op))
    return std::nullopt;
  std::optional<APFloat> a = getFloat(op->getOperand(0), depth + 1);
  if (!a)
    return std::nullopt;
  std::optional<APFloat> b = op->getNumOperands() == 2 ? getFloat(op->getOperand(1), depth + 1) : a;
  if (!b)
    return std::nullopt;
  const APFloat::roundingMode nearest = APFloat::rmNearestTiesToEven;
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](AddOp) { a->add(*b, nearest); })
      .Case([&](SubOp) { a->subtract(*b, nearest); })
      .Case([&](MulOp) { a->multiply(*b, nearest); })
      .Case([&](DivOp) { a->divide(*b, nearest); })
      .Case([&](NegOp) { a->changeSign(); })
      .Case([&](FloorOp) { a->roundToIntegral(APFloat::rmTowardNegative); })
      .Case([&](CeilOp) { a->roundToIntegral(APFloat::rmTowardPositive); })
      .Case([&](TruncOp) { a->roundToIntegral(APFloat::rmTowardZero); })
      .Case([&](RoundOp) { a->roundToIntegral(nearest); });
  return a;
}

std::optional<int64_t> IntValues::getTruncated(Value value) {
  std::optional<APFloat> number = getFloat(value);
  APSInt whole(64, /*isUnsigned=*/false);
  bool isExact;
  if (!number || number->convertToInteger(whole, APFloat::rmTowardZero, &isExact) == APFloat::opInvalidOp)
    return std::nullopt;
  return whole.getSExtValue();
}

std::optional<Sizes> IntValues::compute(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return std::nullopt;
  auto type = cast<RankedTensorType>(value.getType());
  MLIRContext *context = value.getContext();
  int64_t count = type.getNumElements();
  auto constant = [&](int64_t v) { return getAffineConstantExpr(v, context); };
  auto all = [&](AffineExpr e) { return Sizes(count, e); };

  if (auto c = dyn_cast<prim::ConstantOp>(op)) {
    std::optional<SmallVector<int64_t>> ints = readInts(c.getValue());
    if (!ints)
      return std::nullopt;
    return llvm::map_to_vector(*ints, constant);
  }
  if (auto splat = dyn_cast<SplatOp>(op)) {
    auto attr = dyn_cast<IntegerAttr>(splat.getValue());
    if (!attr)
      return std::nullopt;
    bool isUnsigned = attr.getType().isUnsignedInteger() || attr.getType().isInteger(1);
    return all(constant(isUnsigned ? attr.getValue().getZExtValue() : attr.getValue().getSExtValue()));
  }
  if (auto sizes = dyn_cast<SizesOp>(op))
    return llvm::to_vector(sizes.getMap().getResults());

  SmallVector<int64_t> shape(type.getShape()), strides(shape.size(), 1);
  for (int64_t i = int64_t(shape.size()) - 2; i >= 0; --i)
    strides[i] = strides[i + 1] * shape[i + 1];
  /// Calls fn(index, coordinates) for each element.
  auto forEach = [&](auto &&fn) {
    SmallVector<int64_t> coordinates(shape.size());
    for (int64_t i = 0; i < count; ++i) {
      for (size_t d = 0; d < shape.size(); ++d)
        coordinates[d] = i / strides[d] % shape[d];
      fn(i, coordinates);
    }
  };
  auto linear = [](ArrayRef<int64_t> coordinates, ArrayRef<int64_t> of) {
    int64_t index = 0;
    for (auto [c, n] : llvm::zip_equal(coordinates, of))
      index = index * n + c;
    return index;
  };

  if (auto iota = dyn_cast<IotaOp>(op)) {
    Sizes result(count);
    forEach([&](int64_t i, ArrayRef<int64_t> at) { result[i] = constant(at[iota.getAxis()]); });
    return result;
  }
  if (isa<ReshapeOp>(op))
    return get(op->getOperand(0));
  if (auto convert = dyn_cast<ConvertOp>(op)) {
    auto from = dyn_cast<IntegerType>(cast<RankedTensorType>(convert.getOperand().getType()).getElementType());
    auto to = cast<IntegerType>(type.getElementType());
    if (!from) {
      std::optional<int64_t> number = getTruncated(convert.getOperand());
      if (!number || to.getWidth() < 32 || to.isUnsigned() || !llvm::isIntN(to.getWidth(), *number))
        return std::nullopt;
      return all(constant(*number));
    }
    std::optional<Sizes> in = get(convert.getOperand());
    if (!in)
      return std::nullopt;
    for (AffineExpr &e : *in) {
      if (to.getWidth() == 1) {
        std::optional<bool> truth = compare(CompareKind::NE, e, constant(0));
        if (!truth)
          return std::nullopt;
        e = constant(*truth);
      } else if (!getConstantSize(e) && to.getWidth() < 32) {
        return std::nullopt; // sizes fit 32 bits wherever a model says so
      }
    }
    return in;
  }
  if (auto transpose = dyn_cast<TransposeOp>(op)) {
    std::optional<Sizes> in = get(transpose.getOperand());
    if (!in)
      return std::nullopt;
    ArrayRef<int64_t> of = cast<RankedTensorType>(transpose.getOperand().getType()).getShape();
    Sizes result(count);
    forEach([&](int64_t i, ArrayRef<int64_t> at) {
      SmallVector<int64_t> source(at.size());
      for (auto [d, dim] : llvm::enumerate(transpose.getPermutation()))
        source[dim] = at[d];
      result[i] = (*in)[linear(source, of)];
    });
    return result;
  }
  if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
    std::optional<Sizes> in = get(broadcast.getOperand());
    if (!in)
      return std::nullopt;
    ArrayRef<int64_t> of = cast<RankedTensorType>(broadcast.getOperand().getType()).getShape();
    Sizes result(count);
    forEach([&](int64_t i, ArrayRef<int64_t> at) {
      SmallVector<int64_t> source;
      for (auto [d, n] : llvm::zip_equal(broadcast.getDims(), of))
        source.push_back(n == 1 ? 0 : at[d]);
      result[i] = (*in)[linear(source, of)];
    });
    return result;
  }
  if (auto slice = dyn_cast<SliceOp>(op)) {
    SmallVector<int64_t> starts;
    for (AffineExpr start : slice.getStarts().getResults()) {
      auto c = getConstantSize(start);
      if (!c)
        return std::nullopt;
      starts.push_back(*c);
    }
    std::optional<Sizes> in = get(slice.getOperand());
    if (auto concat = slice.getOperand().getDefiningOp<ConcatOp>(); !in && concat && starts.size() == 1) {
      // The parts beside it need not be known.
      int64_t at = starts[0];
      for (Value part : concat.getInputs()) {
        const int64_t size = cast<RankedTensorType>(part.getType()).getDimSize(0);
        if (ShapedType::isDynamic(size))
          return std::nullopt;
        if (at == 0 && size == count && (count == 1 || slice.getSteps()[0] == 1))
          return get(part);
        if (at < size)
          return std::nullopt;
        at -= size;
      }
    }
    if (!in)
      return std::nullopt;
    ArrayRef<int64_t> of = cast<RankedTensorType>(slice.getOperand().getType()).getShape();
    Sizes result(count);
    forEach([&](int64_t i, ArrayRef<int64_t> at) {
      SmallVector<int64_t> source;
      for (size_t d = 0; d < at.size(); ++d)
        source.push_back(starts[d] + at[d] * slice.getSteps()[d]);
      result[i] = (*in)[linear(source, of)];
    });
    return result;
  }
  if (auto concat = dyn_cast<ConcatOp>(op)) {
    SmallVector<Sizes> parts;
    for (Value input : concat.getInputs()) {
      std::optional<Sizes> in = get(input);
      if (!in)
        return std::nullopt;
      parts.push_back(std::move(*in));
    }
    Sizes result(count);
    forEach([&](int64_t i, ArrayRef<int64_t> at) {
      SmallVector<int64_t> source(at);
      for (auto [part, input] : llvm::zip_equal(parts, concat.getInputs())) {
        ArrayRef<int64_t> of = cast<RankedTensorType>(input.getType()).getShape();
        if (source[concat.getAxis()] < of[concat.getAxis()]) {
          result[i] = part[linear(source, of)];
          return;
        }
        source[concat.getAxis()] -= of[concat.getAxis()];
      }
    });
    return result;
  }
  if (auto gather = dyn_cast<GatherOp>(op)) {
    std::optional<Sizes> in = get(gather.getSource()), indices = get(gather.getIndices());
    if (!in || !indices)
      return std::nullopt;
    ArrayRef<int64_t> of = cast<RankedTensorType>(gather.getSource().getType()).getShape();
    ArrayRef<int64_t> indexShape = cast<RankedTensorType>(gather.getIndices().getType()).getShape();
    int64_t axis = gather.getAxis(), extent = of[axis];
    Sizes result(count);
    bool known = extent > 0;
    if (!known)
      return std::nullopt;
    forEach([&](int64_t i, ArrayRef<int64_t> at) {
      SmallVector<int64_t> source(at.take_front(axis));
      auto index = getConstantSize((*indices)[linear(at.slice(axis, indexShape.size()), indexShape)]);
      if (!index) {
        known = false;
        return;
      }
      int64_t position = *index < 0 ? *index + extent : *index;
      source.push_back(std::clamp<int64_t>(position, 0, extent - 1));
      llvm::append_range(source, at.drop_front(axis + indexShape.size()));
      result[i] = (*in)[linear(source, of)];
    });
    return known ? std::optional(result) : std::nullopt;
  }
  if (auto reduce = dyn_cast<ReduceOp>(op)) {
    std::optional<Sizes> in = get(reduce.getOperand());
    if (!in || count != 1)
      return std::nullopt;
    if (reduce.getKind() == ReduceKind::Prod)
      return Sizes{product(context, *in)};
    if (reduce.getKind() == ReduceKind::Sum) {
      AffineExpr sum = constant(0);
      for (AffineExpr e : *in)
        sum = sum + e;
      return Sizes{sum};
    }
    if ((reduce.getKind() == ReduceKind::Max || reduce.getKind() == ReduceKind::Min) && !in->empty()) {
      AffineExpr best = in->front();
      for (AffineExpr e : llvm::drop_begin(*in)) {
        std::optional<bool> greater = compare(CompareKind::GE, e, best);
        if (!greater)
          return std::nullopt;
        if (*greater == (reduce.getKind() == ReduceKind::Max))
          best = e;
      }
      return Sizes{best};
    }
    return std::nullopt;
  }
  if (auto cmp = dyn_cast<CompareOp>(op)) {
    std::optional<Sizes> a = get(cmp.getLhs()), b = get(cmp.getRhs());
    if (!a || !b)
      return std::nullopt;
    Sizes result;
    for (auto [x, y] : llvm::zip_equal(*a, *b)) {
      std::optional<bool> truth = compare(cmp.getKind(), x, y);
      if (!truth)
        return std::nullopt;
      result.push_back(constant(*truth));
    }
    return result;
  }
  if (auto select = dyn_cast<SelectOp>(op)) {
    std::optional<Sizes> c = get(select.getCondition()), a = get(select.getIfTrue()), b = get(select.getIfFalse());
    if (!c || !a || !b)
      return std::nullopt;
    Sizes result;
    for (auto [flag, x, y] : llvm::zip_equal(*c, *a, *b))
      result.push_back(getConstantSize(flag) != 0 ? x : y);
    return result;
  }
  if (isa<NegOp, AbsOp, NotOp>(op)) {
    std::optional<Sizes> in = get(op->getOperand(0));
    if (!in)
      return std::nullopt;
    for (AffineExpr &e : *in) {
      if (isa<NegOp>(op)) {
        e = -e;
      } else if (isa<AbsOp>(op)) {
        if (getSizeBounds(e, symbols.getAttr()).first < 0)
          return std::nullopt;
      } else {
        auto v = getConstantSize(e);
        if (!v)
          return std::nullopt;
        e = constant(type.getElementType().isInteger(1) ? !*v : ~*v);
      }
    }
    return in;
  }
  if (op->getNumOperands() == 2 && op->getNumResults() == 1 && op->hasTrait<PointwiseTrait>()) {
    std::optional<Sizes> a = get(op->getOperand(0)), b = get(op->getOperand(1));
    if (!a || !b)
      return std::nullopt;
    Sizes result;
    for (auto [x, y] : llvm::zip_equal(*a, *b)) {
      std::optional<AffineExpr> e = binary(op, x, y);
      if (!e)
        return std::nullopt;
      result.push_back(simplifySize(*e));
    }
    return result;
  }
  return std::nullopt;
}
