//===- ATenElementwise.cpp - arithmetic, comparisons, bits and selections of ATen ---------------------------------===//
//
// Operands are promoted as PyTorch promotes them (TypePromotion). Floats narrower than f32 are computed in f32 and
// rounded once, as PyTorch's CPU kernels do, where one prim op would not give the same.
//
// Source: the native function schemas of PyTorch (aten/src/ATen/native/native_functions.yaml).
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ATenSupport.h"
#include "OpRegistry.h"

#include <cmath>

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

/// Bools order as 0 and 1, in bytes.
Value ordered(PrimBuilder &b, Value v) {
  return b.elementOf(v).isInteger(1) ? b.convert(v, b.getIntegerType(8, /*isSigned=*/false)) : v;
}

bool isComplex(Type type) { return isa<ComplexType>(type); }

/// The arguments in `type`; narrow floats in f32 unless one prim op on tensors of the type itself gives the same.
FailureOr<SmallVector<Value>> forOneOp(Call &c, ArrayRef<StringRef> names, Type type, bool severalOps = false) {
  return c.promoted(names, Integers::Kept, severalOps || !c.areOf(type, names), type);
}

/// The arguments in `type`, numbers rounded to it: so PyTorch adds, subtracts, takes remainders and powers of narrow
/// floats on CPUs, where it multiplies and divides by numbers as they are. `inAccumulator`: then made f32.
FailureOr<SmallVector<Value>> roundedFirst(Call &c, ArrayRef<StringRef> names, Type type, bool inAccumulator) {
  FailureOr<SmallVector<Value>> values = c.promoted(names, Integers::Kept, /*inAccumulator=*/false, type);
  if (inAccumulator && succeeded(values))
    for (Value &value : *values)
      value = c.b.convert(value, c.b.accumulatorOf(type));
  return values;
}

/// A number of the schema, broadcast to the sizes of `like` and of its type; `type`: what it is rounded to before.
FailureOr<Value> numberLike(Call &c, StringRef name, Value like, std::optional<double> otherwise = {}, Type type = {}) {
  FailureOr<Value> value = c.as(name, type ? type : c.b.elementOf(like), otherwise);
  if (failed(value))
    return failure();
  if (c.b.rankOf(*value) != 0)
    return c.ctx.invalid("argument \"" + name + "\" must be one number, but is " + describe(*value));
  return c.b.broadcastTo(c.b.convert(*value, c.b.elementOf(like)), getSizes(like));
}

/// left + alpha right, or left - alpha right.
LogicalResult sum(NodeContext &ctx, bool isSub, StringRef left = "self", StringRef right = "other") {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Type> type = c.commonType({left, right});
  if (failed(type))
    return failure();
  bool isBool = type->isInteger(1);
  if (isSub && isBool)
    return ctx.invalid("takes no bools; use logical_xor or bitwise_not");
  Attribute alpha = ctx.attr("alpha");
  bool isScaled = alpha && !(isa<IntegerAttr, FloatAttr>(alpha) && c.number("alpha", 1) == 1);
  FailureOr<SmallVector<Value>> v = roundedFirst(c, {left, right}, *type, isScaled);
  if (failed(v))
    return failure();
  Value x = (*v)[0], y = (*v)[1];
  if (isComplex(*type)) {
    if (isScaled)
      return ctx.unsupported("of complex numbers with alpha is not supported; multiply before");
    x = b.asParts(x), y = b.asParts(y);
    return ctx.result(b.asComplex(isSub ? b.sub(x, y) : b.add(x, y)));
  }
  if (isScaled) {
    FailureOr<Value> factor = numberLike(c, "alpha", y, {}, *type);
    if (failed(factor))
      return failure();
    y = isBool ? b.binary<AndOp>(y, *factor) : b.mul(y, *factor);
  }
  return c.rounded(isBool ? b.binary<OrOp>(x, y) : isSub ? b.sub(x, y) : b.add(x, y), *type);
}

LogicalResult times(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Type> type = c.commonType({"self", "other"});
  if (failed(type))
    return failure();
  auto v = forOneOp(c, {"self", "other"}, *type);
  if (failed(v))
    return failure();
  Value x = (*v)[0], y = (*v)[1];
  if (isComplex(*type)) {
    auto [xr, xi] = splitComplex(b, x);
    auto [yr, yi] = splitComplex(b, y);
    return ctx.result(joinComplex(b, b.sub(b.mul(xr, yr), b.mul(xi, yi)), b.add(b.mul(xr, yi), b.mul(xi, yr))));
  }
  return c.rounded(type->isInteger(1) ? b.binary<AndOp>(x, y) : b.mul(x, y), *type);
}

/// a / b rounded toward -infinity; of floats as PyTorch (and Python) finds it, from the remainder.
Value floorDivide(PrimBuilder &b, Value x, Value y) {
  Value rest = b.binary<RemOp>(x, y);
  Value differ = b.binary<XorOp>(b.compare(CompareKind::LT, y, 0), b.compare(CompareKind::LT, rest, 0));
  Value isBelow = b.binary<AndOp>(b.compare(CompareKind::NE, rest, 0), differ);
  if (!b.isFloat(x)) {
    Value quotient = b.div(x, y);
    if (b.elementOf(x).isUnsignedInteger())
      return quotient;
    return b.sub(quotient, b.convert(isBelow, b.elementOf(x)));
  }
  Value plain = b.div(x, y), quotient = b.div(b.sub(x, rest), y);
  quotient = b.select(isBelow, b.binary<SubOp>(quotient, 1), quotient);
  Value floor = b.unary<FloorOp>(quotient);
  floor = b.select(b.compare(CompareKind::GT, b.sub(quotient, floor), 0.5), b.binary<AddOp>(floor, 1), floor);
  Value zero = b.select(isSigned(b, plain), b.splatLike(x, -0.0), b.splatLike(x, 0.0));
  Value result = b.select(b.compare(CompareKind::NE, quotient, 0), floor, zero);
  return b.select(b.compare(CompareKind::EQ, y, 0), plain, result);
}

enum class Rounding { None, Trunc, Floor, ByArgument };

LogicalResult quotient(NodeContext &ctx, Rounding rounding) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  if (rounding == Rounding::ByArgument) {
    std::string mode = ctx.getString("rounding_mode", "");
    if (!mode.empty() && mode != "trunc" && mode != "floor")
      return ctx.invalid("rounding_mode is \"" + mode + "\"; it may be \"trunc\" or \"floor\"");
    rounding = mode.empty() ? Rounding::None : mode == "trunc" ? Rounding::Trunc : Rounding::Floor;
  }
  bool isTrue = rounding == Rounding::None;
  FailureOr<Type> type = c.commonType({"self", "other"}, isTrue ? Integers::Floats : Integers::Kept);
  if (failed(type))
    return failure();
  if (type->isInteger(1))
    return ctx.invalid("takes no bools");
  auto v = forOneOp(c, {"self", "other"}, *type, !isTrue);
  if (failed(v))
    return failure();
  Value x = (*v)[0], y = (*v)[1];
  if (isComplex(*type)) {
    if (!isTrue)
      return ctx.invalid("rounds no complex numbers");
    const Value own = c.tensor("other");
    if (const Type given = own ? b.elementOf(own) : c.numberType("other"); given && !isComplex(given)) {
      Value parts = b.asParts(x);
      Value divisor = splitComplex(b, y).first;
      return ctx.result(
          b.asComplex(b.div(parts, b.broadcastInDims(divisor, getSizes(parts),
                                                     llvm::to_vector(llvm::seq<int64_t>(0, b.rankOf(divisor)))))));
    }
    auto [xr, xi] = splitComplex(b, x);
    auto [yr, yi] = splitComplex(b, y);
    // Scaled by the greater part of the divisor, so that its square can't overflow.
    Value most = b.max(b.unary<AbsOp>(yr), b.unary<AbsOp>(yi));
    Value ur = b.div(yr, most), ui = b.div(yi, most);
    Value square = b.mul(b.add(b.mul(ur, ur), b.mul(ui, ui)), most);
    return ctx.result(joinComplex(b, b.div(b.add(b.mul(xr, ur), b.mul(xi, ui)), square),
                                  b.div(b.sub(b.mul(xi, ur), b.mul(xr, ui)), square)));
  }
  if (rounding == Rounding::Floor)
    return c.rounded(floorDivide(b, x, y), *type);
  Value plain = b.div(x, y);
  bool cut = rounding == Rounding::Trunc && b.isFloat(plain);
  return c.rounded(cut ? b.unary<TruncOp>(plain) : plain, *type);
}

/// C's fmod, or with `ofDivisor` the remainder with the sign of the divisor.
LogicalResult remainder(NodeContext &ctx, bool ofDivisor) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Type> type = c.commonType({"self", "other"});
  if (failed(type))
    return failure();
  if (type->isInteger(1) || isComplex(*type))
    return ctx.invalid("takes neither bools nor complex numbers");
  auto v = roundedFirst(c, {"self", "other"}, *type, /*inAccumulator=*/true);
  if (failed(v))
    return failure();
  Value x = (*v)[0], y = (*v)[1];
  const bool mayDiffer = ofDivisor && !type->isUnsignedInteger();
  return c.rounded(mayDiffer ? emitRemainder(b, x, y) : b.binary<RemOp>(x, y), *type);
}

/// x to a constant power that is one or two simpler operations, as PyTorch computes it; null of others.
Value simplePower(PrimBuilder &b, Value x, double exponent) {
  if (exponent == 0)
    return b.splatLike(x, 1);
  if (exponent == 1)
    return x;
  if (exponent == 2)
    return b.mul(x, x);
  if (exponent == 3)
    return b.mul(b.mul(x, x), x);
  if (!b.isFloat(x))
    return {};
  if (exponent == 0.5)
    return b.unary<SqrtOp>(x);
  if (exponent == -0.5)
    return b.unary<RsqrtOp>(x);
  if (exponent == -1)
    return b.unary<ReciprocalOp>(x);
  if (exponent == -2)
    return b.unary<ReciprocalOp>(b.mul(x, x));
  return {};
}

LogicalResult power(NodeContext &ctx, bool inDouble = false) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Type> type = c.commonType({"self", "exponent"});
  if (failed(type))
    return failure();
  if (isComplex(*type))
    return ctx.unsupported("of complex numbers is not supported; write it as products");
  if (inDouble)
    type = b.getF64Type();
  // Bools have no powers in PyTorch, but for constant exponents, which it copies.
  auto v = roundedFirst(c, {"self", "exponent"}, *type, /*inAccumulator=*/true);
  if (failed(v))
    return failure();
  Value x = (*v)[0], y = (*v)[1];
  bool isConstant = isa_and_nonnull<IntegerAttr, FloatAttr>(ctx.attr("exponent"));
  Value simple = isConstant ? simplePower(b, x, c.number("exponent", 1)) : Value();
  if (type->isInteger(1) && !simple)
    return ctx.unsupported("of bools is not supported; convert them by .to(torch.int64) before");
  return c.rounded(simple ? simple : b.binary<PowOp>(x, y), *type);
}

template <CompareKind kind> LogicalResult compare(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  auto v = c.promoted({"self", "other"});
  if (failed(v))
    return failure();
  Value x = (*v)[0], y = (*v)[1];
  if (b.isComplex(x)) {
    if (kind != CompareKind::EQ && kind != CompareKind::NE)
      return ctx.invalid("takes no complex numbers, which have no order");
    auto [xr, xi] = splitComplex(b, x);
    auto [yr, yi] = splitComplex(b, y);
    Value real = b.compare(kind, xr, yr), imaginary = b.compare(kind, xi, yi);
    return ctx.result(kind == CompareKind::EQ ? b.binary<AndOp>(real, imaginary) : b.binary<OrOp>(real, imaginary));
  }
  return ctx.result(b.compare(kind, ordered(b, x), ordered(b, y)));
}

/// The greater or lesser of two; with `dropNan` NaN only where both are.
LogicalResult extreme(NodeContext &ctx, bool isMax, bool dropNan = false) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  auto v = c.promoted({"self", "other"});
  if (failed(v))
    return failure();
  Value x = (*v)[0], y = (*v)[1];
  if (b.isComplex(x))
    return ctx.invalid("takes no complex numbers, which have no order");
  if (b.elementOf(x).isInteger(1))
    return ctx.result(isMax ? b.binary<OrOp>(x, y) : b.binary<AndOp>(x, y));
  Value result = isMax ? b.max(x, y) : b.min(x, y);
  if (dropNan && b.isFloat(x))
    result = b.select(isNan(b, x), y, b.select(isNan(b, y), x, result));
  return ctx.result(result);
}

/// Bits of integers, or bools.
template <typename Op> LogicalResult bitwise(NodeContext &ctx) {
  Call c(ctx);
  auto v = c.promoted({"self", "other"});
  if (failed(v))
    return failure();
  if (!isa<IntegerType>(ctx.b.elementOf((*v)[0])))
    return ctx.invalid("takes integers and bools, but got " + describe((*v)[0]));
  return ctx.result(ctx.b.binary<Op>((*v)[0], (*v)[1]));
}

template <typename Op> LogicalResult shift(NodeContext &ctx) {
  Call c(ctx);
  auto v = c.promoted({"self", "other"});
  if (failed(v))
    return failure();
  Type type = ctx.b.elementOf((*v)[0]);
  if (!isa<IntegerType>(type) || type.isInteger(1))
    return ctx.unsupported("of " + describe((*v)[0]) + " is not supported; shift integers, or use ldexp");
  return ctx.result(ctx.b.binary<Op>((*v)[0], (*v)[1]));
}

/// Whether elements are not 0.
FailureOr<Value> truth(Call &c, StringRef name) {
  FailureOr<Value> value = c.required(name);
  return failed(value) ? value : c.convert(*value, c.b.getI1Type());
}

template <typename Op> LogicalResult logical(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> x = truth(c, "self"), y = failed(x) ? x : truth(c, "other");
  if (failed(y))
    return failure();
  Value v[] = {*x, *y};
  if (failed(ctx.broadcastTogether(v)))
    return failure();
  return ctx.result(ctx.b.binary<Op>(v[0], v[1]));
}

LogicalResult notOf(NodeContext &ctx, bool isLogical) {
  Call c(ctx);
  FailureOr<Value> x = isLogical ? truth(c, "self") : c.required("self");
  if (failed(x))
    return failure();
  if (!isa<IntegerType>(ctx.b.elementOf(*x)))
    return ctx.invalid("takes integers and bools, but got " + describe(*x));
  return ctx.result(ctx.b.unary<NotOp>(*x));
}

LogicalResult where(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> condition = truth(c, "condition");
  FailureOr<Type> type = failed(condition) ? FailureOr<Type>(failure()) : c.commonType({"self", "other"});
  if (failed(type))
    return failure();
  FailureOr<Value> x = c.as("self", *type), y = c.as("other", *type);
  if (failed(x) || failed(y))
    return failure();
  Value v[] = {*condition, *x, *y};
  if (failed(ctx.broadcastTogether(v)))
    return failure();
  return ctx.result(b.select(v[0], v[1], v[2]));
}

/// `low` and `high`: names of the bounds, which may be absent. NaN in any gives NaN; the upper one wins.
LogicalResult clamp(NodeContext &ctx, StringRef low, StringRef high) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  SmallVector<StringRef> names{"self"};
  for (StringRef name : {low, high})
    if (!name.empty() && c.has(name))
      names.push_back(name);
  if (names.size() == 1)
    return ctx.invalid("needs a bound");
  FailureOr<Type> type = c.commonType(names);
  if (failed(type))
    return failure();
  if (isComplex(*type))
    return ctx.invalid("takes no complex numbers, which have no order");
  SmallVector<Value> v;
  for (StringRef name : names) {
    FailureOr<Value> value = name == "self" ? c.as(name, *type) : c.bound(name, *type, /*isLower=*/name == low);
    if (failed(value))
      return failure();
    v.push_back(*value);
  }
  if (failed(ctx.broadcastTogether(v)))
    return failure();
  Value x = v[0];
  bool isBool = type->isInteger(1);
  for (auto [name, bound] : llvm::drop_begin(llvm::zip_equal(names, v))) {
    if (name == low)
      x = isBool ? b.binary<OrOp>(x, bound) : b.max(x, bound);
    else
      x = isBool ? b.binary<AndOp>(x, bound) : b.min(x, bound);
  }
  return ctx.result(x);
}

LogicalResult maskedFill(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> self = c.required("self"), mask = truth(c, "mask");
  if (failed(self) || failed(mask))
    return failure();
  FailureOr<Value> value = c.as("value", ctx.b.elementOf(*self));
  if (failed(value))
    return failure();
  Value v[] = {*mask, *value, *self};
  if (failed(ctx.broadcastTogether(v)))
    return failure();
  return ctx.result(ctx.b.select(v[0], v[1], v[2]));
}

/// self + value * tensor1 * tensor2, or self + value * tensor1 / tensor2.
LogicalResult addCombined(NodeContext &ctx, bool divides) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  SmallVector<StringRef> names{"self", "tensor1", "tensor2"};
  FailureOr<Type> type = c.commonType(names);
  if (failed(type))
    return failure();
  if (isComplex(*type) || type->isInteger(1) || (divides && !isa<FloatType>(*type)))
    return ctx.unsupported(Twine("of these element types is not supported; use ") +
                           (divides ? "add and div" : "add and mul"));
  auto v = forOneOp(c, names, *type, /*severalOps=*/true);
  if (failed(v))
    return failure();
  FailureOr<Value> value = numberLike(c, "value", (*v)[1], 1);
  if (failed(value))
    return failure();
  Value scaled = b.mul(*value, (*v)[1]);
  return c.rounded(b.add((*v)[0], divides ? b.div(scaled, (*v)[2]) : b.mul(scaled, (*v)[2])), *type);
}

/// From whichever end is nearer, so that weights 0 and 1 give the ends.
LogicalResult lerp(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Type> type = c.commonType({"self", "end"});
  if (failed(type))
    return failure();
  if (!isa<FloatType>(*type))
    return ctx.unsupported("of these element types is not supported; use add, sub and mul");
  auto v = c.promoted({"self", "end", "weight"}, Integers::Kept, /*inAccumulator=*/true, *type);
  if (failed(v))
    return failure();
  Value from = (*v)[0], to = (*v)[1], weight = (*v)[2], way = b.sub(to, from);
  Value near = b.add(from, b.mul(weight, way));
  Value far = b.sub(to, b.mul(way, b.sub(b.splatLike(weight, 1), weight)));
  return c.rounded(b.select(b.compare(CompareKind::LT, b.unary<AbsOp>(weight), 0.5), near, far), *type);
}

using OfTwo = Value (*)(PrimBuilder &, Value, Value);

/// A function of two reals: integers are made floats first.
NodeHandler functionOfTwo(OfTwo fn, StringRef second = "other") {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    FailureOr<Type> type = c.commonType({"self", second}, Integers::Floats);
    if (failed(type))
      return failure();
    if (isComplex(*type))
      return ctx.unsupported("of complex numbers is not supported; write it of their real and imaginary parts");
    auto v = c.promoted({"self", second}, Integers::Floats, /*inAccumulator=*/true, *type);
    if (failed(v))
      return failure();
    return c.rounded(fn(ctx.b, (*v)[0], (*v)[1]), *type);
  };
}

/// a + log(1 + base^-|x - y|) / log(base), with a the greater one.
Value logAdd(PrimBuilder &b, Value x, Value y, double logOfBase) {
  Value distance = b.unary<NegOp>(b.unary<AbsOp>(b.sub(x, y))), most = b.max(x, y);
  if (logOfBase != 1)
    distance = b.binary<MulOp>(distance, logOfBase);
  Value rest = b.unary<Log1pOp>(b.unary<ExpOp>(distance));
  if (logOfBase != 1)
    rest = b.binary<MulOp>(rest, 1 / logOfBase);
  Value same = b.binary<AndOp>(b.compare(CompareKind::EQ, x, y), isInf(b, x)); // infinite: no difference
  return b.select(same, x, b.add(most, rest));
}

LogicalResult isClose(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  auto v = c.promoted({"self", "other"});
  if (failed(v))
    return failure();
  Value x = (*v)[0], y = (*v)[1];
  if (b.isComplex(x))
    return ctx.unsupported("of complex numbers is not supported; compare their parts");
  Value close = b.compare(CompareKind::EQ, x, y);
  if (c.flag("equal_nan"))
    close = b.binary<OrOp>(close, b.binary<AndOp>(isNan(b, x), isNan(b, y)));
  double relative = c.number("rtol", 1e-5), absolute = c.number("atol", 1e-8);
  if (relative == 0 && absolute == 0)
    return ctx.result(close);
  Type compute = b.isFloat(x) ? b.accumulatorOf(b.elementOf(x)) : Type(b.getF32Type());
  x = b.convert(x, compute), y = b.convert(y, compute);
  Value allowed = b.binary<AddOp>(b.unary<AbsOp>(b.binary<MulOp>(y, relative)), absolute);
  Value distance = b.unary<AbsOp>(b.sub(x, y));
  Value isFinite = b.unary<NotOp>(b.binary<OrOp>(isNan(b, distance), isInf(b, distance)));
  Value within = b.binary<AndOp>(isFinite, b.compare(CompareKind::LE, distance, allowed));
  return ctx.result(b.binary<OrOp>(close, within));
}

/// 0 left of 0, 1 right of it, and at 0 what `values` says.
LogicalResult heaviside(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  auto v = c.promoted({"self", "values"});
  if (failed(v))
    return failure();
  Value x = (*v)[0];
  if (b.isComplex(x))
    return ctx.invalid("takes no complex numbers, which have no order");
  Value step = b.convert(b.compare(CompareKind::GT, ordered(b, x), 0), b.elementOf(x));
  return ctx.result(b.select(b.compare(CompareKind::EQ, x, 0), (*v)[1], step));
}

/// self * 2^other.
LogicalResult timesPowerOf2(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> other = c.required("other");
  FailureOr<Type> type = failed(other) ? FailureOr<Type>(failure()) : c.commonType({"self", "other"}, Integers::Floats);
  if (failed(type))
    return failure();
  if (isComplex(*type))
    return ctx.unsupported("of complex numbers is not supported; multiply by powers of 2");
  auto v = c.promoted({"self", "other"}, Integers::Floats, /*inAccumulator=*/true, *type);
  if (failed(v))
    return failure();
  return c.rounded(b.mul((*v)[0], b.binary<PowOp>(b.splatLike((*v)[1], 2), (*v)[1])), *type);
}

} // namespace

Value tc::emitRemainder(PrimBuilder &b, Value x, Value y) {
  Value rest = b.binary<RemOp>(x, y);
  Value differ = b.binary<XorOp>(b.compare(CompareKind::LT, rest, 0), b.compare(CompareKind::LT, y, 0));
  Value isOther = b.binary<AndOp>(b.compare(CompareKind::NE, rest, 0), differ);
  return b.select(isOther, b.add(rest, y), rest);
}

void tc::populateATenElementwise(OpRegistrar &onOp) {
  auto on = [&](std::initializer_list<StringRef> types, const NodeHandler &handler, bool takesComplex = false) {
    for (StringRef type : types) {
      onOp(type, /*sinceVersion=*/1, handler, /*minOperands=*/0);
      if (takesComplex)
        onOp.takeComplex(ComplexUse::Moved, {type});
    }
  };
  on({"add.Tensor", "add.Scalar"}, [](NodeContext &ctx) { return sum(ctx, /*isSub=*/false); }, true);
  on(
      {"sub.Tensor", "sub.Scalar", "subtract.Tensor", "subtract.Scalar"},
      [](NodeContext &ctx) { return sum(ctx, /*isSub=*/true); }, true);
  on({"rsub.Tensor", "rsub.Scalar"}, [](NodeContext &ctx) { return sum(ctx, true, "other", "self"); }, true);
  on({"mul.Tensor", "mul.Scalar", "multiply.Tensor", "multiply.Scalar"}, times, true);
  on(
      {"div.Tensor", "div.Scalar", "divide.Tensor", "divide.Scalar", "true_divide.Tensor", "true_divide.Scalar"},
      [](NodeContext &ctx) { return quotient(ctx, Rounding::None); }, true);
  on(
      {"div.Tensor_mode", "div.Scalar_mode", "divide.Tensor_mode", "divide.Scalar_mode"},
      [](NodeContext &ctx) { return quotient(ctx, Rounding::ByArgument); }, true);
  on({"floor_divide.default", "floor_divide.Scalar"}, [](NodeContext &ctx) { return quotient(ctx, Rounding::Floor); });
  on({"fmod.Tensor", "fmod.Scalar"}, [](NodeContext &ctx) { return remainder(ctx, /*ofDivisor=*/false); });
  on({"remainder.Tensor", "remainder.Scalar", "remainder.Scalar_Tensor"},
     [](NodeContext &ctx) { return remainder(ctx, /*ofDivisor=*/true); });
  on({"pow.Tensor_Tensor", "pow.Tensor_Scalar", "pow.Scalar"}, [](NodeContext &ctx) { return power(ctx); });
  on({"float_power.Tensor_Tensor", "float_power.Tensor_Scalar", "float_power.Scalar"},
     [](NodeContext &ctx) { return power(ctx, /*inDouble=*/true); });
  on({"eq.Tensor", "eq.Scalar"}, compare<CompareKind::EQ>, true);
  on({"ne.Tensor", "ne.Scalar", "not_equal.Tensor", "not_equal.Scalar"}, compare<CompareKind::NE>, true);
  on({"lt.Tensor", "lt.Scalar", "less.Tensor", "less.Scalar"}, compare<CompareKind::LT>);
  on({"le.Tensor", "le.Scalar", "less_equal.Tensor", "less_equal.Scalar"}, compare<CompareKind::LE>);
  on({"gt.Tensor", "gt.Scalar", "greater.Tensor", "greater.Scalar"}, compare<CompareKind::GT>);
  on({"ge.Tensor", "ge.Scalar", "greater_equal.Tensor", "greater_equal.Scalar"}, compare<CompareKind::GE>);
  on({"maximum.default", "max.other"}, [](NodeContext &ctx) { return extreme(ctx, /*isMax=*/true); });
  on({"minimum.default", "min.other"}, [](NodeContext &ctx) { return extreme(ctx, /*isMax=*/false); });
  on({"fmax.default"}, [](NodeContext &ctx) { return extreme(ctx, true, /*dropNan=*/true); });
  on({"fmin.default"}, [](NodeContext &ctx) { return extreme(ctx, false, /*dropNan=*/true); });
  on({"bitwise_and.Tensor", "bitwise_and.Scalar", "bitwise_and.Scalar_Tensor", "__and__.Tensor", "__and__.Scalar"},
     bitwise<AndOp>);
  on({"bitwise_or.Tensor", "bitwise_or.Scalar", "bitwise_or.Scalar_Tensor", "__or__.Tensor", "__or__.Scalar"},
     bitwise<OrOp>);
  on({"bitwise_xor.Tensor", "bitwise_xor.Scalar", "bitwise_xor.Scalar_Tensor", "__xor__.Tensor", "__xor__.Scalar"},
     bitwise<XorOp>);
  on({"bitwise_left_shift.Tensor", "bitwise_left_shift.Tensor_Scalar", "bitwise_left_shift.Scalar_Tensor",
      "__lshift__.Tensor", "__lshift__.Scalar"},
     shift<ShlOp>);
  on({"bitwise_right_shift.Tensor", "bitwise_right_shift.Tensor_Scalar", "bitwise_right_shift.Scalar_Tensor",
      "__rshift__.Tensor", "__rshift__.Scalar"},
     shift<ShrOp>);
  on({"bitwise_not.default"}, [](NodeContext &ctx) { return notOf(ctx, /*isLogical=*/false); });
  on({"logical_not.default"}, [](NodeContext &ctx) { return notOf(ctx, /*isLogical=*/true); }, true);
  on({"logical_and.default"}, logical<AndOp>, true);
  on({"logical_or.default"}, logical<OrOp>, true);
  on({"logical_xor.default"}, logical<XorOp>, true);
  on({"where.self", "where.ScalarSelf", "where.ScalarOther", "where.Scalar"}, where, true);
  on({"clamp.default", "clamp.Tensor", "clip.default", "clip.Tensor"},
     [](NodeContext &ctx) { return clamp(ctx, "min", "max"); });
  on({"clamp_min.default", "clamp_min.Tensor"}, [](NodeContext &ctx) { return clamp(ctx, "min", ""); });
  on({"clamp_max.default", "clamp_max.Tensor"}, [](NodeContext &ctx) { return clamp(ctx, "", "max"); });
  on({"masked_fill.Scalar", "masked_fill.Tensor"}, maskedFill, true);
  on({"addcmul.default"}, [](NodeContext &ctx) { return addCombined(ctx, /*divides=*/false); });
  on({"addcdiv.default"}, [](NodeContext &ctx) { return addCombined(ctx, /*divides=*/true); });
  on({"lerp.Scalar", "lerp.Tensor"}, lerp);
  on({"isclose.default"}, isClose);
  on({"special_xlog1py.default", "special_xlog1py.self_scalar", "special_xlog1py.other_scalar"},
     functionOfTwo([](PrimBuilder &b, Value x, Value y) {
       Value plain = b.mul(x, b.unary<Log1pOp>(y));
       return b.select(isNan(b, y), y, b.select(b.compare(CompareKind::EQ, x, 0), b.splatLike(x, 0), plain));
     }));
  on({"heaviside.default"}, heaviside);
  on({"ldexp.Tensor"}, timesPowerOf2);
  on({"atan2.default", "arctan2.default"},
     functionOfTwo([](PrimBuilder &b, Value x, Value y) { return b.binary<Atan2Op>(x, y); }));
  on({"hypot.default"}, functionOfTwo(emitHypot));
  on({"copysign.Tensor", "copysign.Scalar"}, functionOfTwo([](PrimBuilder &b, Value x, Value y) {
       Value size = b.unary<AbsOp>(x);
       return b.select(isSigned(b, y), b.unary<NegOp>(size), size);
     }));
  on({"logaddexp.default"}, functionOfTwo([](PrimBuilder &b, Value x, Value y) { return logAdd(b, x, y, 1); }));
  on({"logaddexp2.default"}, functionOfTwo([](PrimBuilder &b, Value x, Value y) { return logAdd(b, x, y, M_LN2); }));
  // x log(y): 0 where x is, but for NaN.
  on({"xlogy.Tensor", "xlogy.Scalar_Self", "xlogy.Scalar_Other", "special_xlogy.default", "special_xlogy.self_scalar",
      "special_xlogy.other_scalar"},
     functionOfTwo([](PrimBuilder &b, Value x, Value y) {
       Value plain = b.mul(x, b.unary<LogOp>(y));
       Value zero = b.select(b.compare(CompareKind::EQ, x, 0), b.splatLike(x, 0), plain);
       return b.select(isNan(b, y), y, zero);
     }));
}
