//===- ATenFunctions.cpp - functions of one operand, activations and conversions of ATen --------------------------===//
//
// Functions of reals take integers as floats. Floats narrower than f32 are computed in f32 and rounded once, as
// PyTorch's CPU kernels do.
//
// Source: the native function schemas of PyTorch (aten/src/ATen/native/native_functions.yaml).
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ATenSupport.h"
#include "OpRegistry.h"
#include "Shared.h"

#include <cmath>

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

using Function = Value (*)(PrimBuilder &, Value);

enum class Of {
  Reals,    ///< integers and bools are made floats
  Floats,   ///< integers are refused
  Unchanged ///< integers and bools are given back as they are
};

/// `fn` of argument "self". `isOneOp`: narrow floats need no f32 in between.
NodeHandler function(Function fn, Of of = Of::Reals, bool isOneOp = false) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    PrimBuilder &b = ctx.b;
    FailureOr<Value> self =
        of == Of::Floats || of == Of::Reals ? c.floats("self", of == Of::Reals) : c.required("self");
    if (failed(self))
      return failure();
    Type type = b.elementOf(*self);
    if (of == Of::Unchanged && !b.isFloat(*self))
      return ctx.result(*self);
    if (isOneOp)
      return ctx.result(fn(b, *self));
    return c.rounded(fn(b, b.convert(*self, b.accumulatorOf(type))), type);
  };
}

template <typename Op> Value op(PrimBuilder &b, Value x) { return b.unary<Op>(x); }
template <typename Op> NodeHandler oneOp(Of of = Of::Reals) { return function(op<Op>, of, /*isOneOp=*/true); }

/// `fn` of argument "self" of any type, where it is not complex.
NodeHandler ofAny(Function fn) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    FailureOr<Value> self = c.required("self");
    return failed(self) ? failure() : ctx.result(fn(ctx.b, *self));
  };
}

Value isFinite(PrimBuilder &b, Value x) { return b.unary<NotOp>(b.binary<OrOp>(isNan(b, x), isInf(b, x))); }
Value isPositiveInf(PrimBuilder &b, Value x) {
  return b.isFloat(x) ? b.compare(CompareKind::EQ, x, INFINITY) : isInf(b, x);
}
Value isNegativeInf(PrimBuilder &b, Value x) {
  return b.isFloat(x) ? b.compare(CompareKind::EQ, x, -INFINITY) : isInf(b, x);
}

/// NaN gives 0 in PyTorch.
Value sign(PrimBuilder &b, Value x) {
  if (b.elementOf(x).isInteger(1))
    return x;
  if (!b.isFloat(x))
    return b.unary<SignOp>(x);
  Value below = b.select(b.compare(CompareKind::LT, x, 0), b.splatLike(x, -1), b.splatLike(x, 0));
  return b.select(b.compare(CompareKind::GT, x, 0), b.splatLike(x, 1), below);
}

Value square(PrimBuilder &b, Value x) {
  if (b.elementOf(x).isInteger(1)) // a power of an integer
    x = b.convert(x, b.getI64Type());
  return b.mul(x, x);
}
Value fraction(PrimBuilder &b, Value x) { return b.sub(x, b.unary<TruncOp>(x)); }
Value exp2(PrimBuilder &b, Value x) { return b.binary<PowOp>(b.splatLike(x, 2), x); }
template <int base> Value logarithm(PrimBuilder &b, Value x) {
  return b.binary<MulOp>(b.unary<LogOp>(x), 1 / std::log(double(base)));
}
template <int numerator, int denominator> Value scalePi(PrimBuilder &b, Value x) {
  return b.binary<MulOp>(x, numerator > 1 ? numerator / M_PI : M_PI / denominator);
}
/// The normal distribution's cumulative function, with its relative accuracy far below 0.
Value normalCdf(PrimBuilder &b, Value x) { return b.binary<MulOp>(emitErfc(b, b.binary<MulOp>(x, -M_SQRT1_2)), 0.5); }
/// sin(pi x) / (pi x).
Value sinc(PrimBuilder &b, Value x) {
  Value angle = b.binary<MulOp>(x, M_PI);
  return b.select(b.compare(CompareKind::EQ, x, 0), b.splatLike(x, 1), b.div(b.unary<SinOp>(angle), angle));
}

LogicalResult absolute(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  if (b.isComplex(*self)) {
    auto [real, imaginary] = splitComplex(b, *self);
    return ctx.result(emitHypot(b, real, imaginary));
  }
  Type type = b.elementOf(*self);
  return ctx.result(type.isInteger(1) || type.isUnsignedInteger() ? *self : b.unary<AbsOp>(*self));
}

LogicalResult negate(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  if (b.isComplex(*self))
    return ctx.result(b.asComplex(b.unary<NegOp>(b.asParts(*self))));
  if (b.elementOf(*self).isInteger(1))
    return ctx.invalid("takes no bools");
  return ctx.result(b.unary<NegOp>(*self));
}

LogicalResult roundTo(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  if (!b.isFloat(*self))
    return ctx.result(*self);
  Type type = b.elementOf(*self);
  int64_t decimals = c.integer("decimals", 0);
  Value x = b.convert(*self, b.accumulatorOf(type));
  double scale = std::pow(10.0, double(std::abs(decimals)));
  if (decimals > 0)
    x = b.binary<DivOp>(b.unary<RoundOp>(b.binary<MulOp>(x, scale)), scale);
  else if (decimals < 0)
    x = b.binary<MulOp>(b.unary<RoundOp>(b.binary<DivOp>(x, scale)), scale);
  else
    x = b.unary<RoundOp>(x);
  return c.rounded(x, type);
}

LogicalResult nanToNum(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  if (!b.isFloat(*self))
    return b.isComplex(*self) ? ctx.unsupported("of complex numbers is not supported; use it on their parts")
                              : ctx.result(*self);
  Value x = *self;
  double most = APFloat::getLargest(cast<FloatType>(b.elementOf(x)).getFloatSemantics()).convertToDouble();
  Value result = b.select(isNan(b, x), b.splatLike(x, c.number("nan", 0)), x);
  result = b.select(isPositiveInf(b, x), b.splatLike(x, c.number("posinf", most)), result);
  return ctx.result(b.select(isNegativeInf(b, x), b.splatLike(x, c.number("neginf", -most)), result));
}

/// log(x / (1 - x)), x kept `eps` away from 0 and 1.
LogicalResult logit(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.floats("self", /*orIntegers=*/true);
  if (failed(self))
    return failure();
  Type type = b.elementOf(*self);
  Value x = b.convert(*self, b.accumulatorOf(type));
  if (double eps = c.number("eps", -1); eps >= 0) {
    Value low = b.splatLike(x, eps), high = b.splatLike(x, 1 - eps); // low is above high for more than 1 / 2
    Value inside = b.select(b.compare(CompareKind::GT, x, high), high, x);
    x = b.select(b.compare(CompareKind::LT, x, low), low, inside);
  }
  return c.rounded(b.unary<LogOp>(b.div(x, b.sub(b.splatLike(x, 1), x))), type);
}

//===--- activations
//--------------------------------------------------------------------------------------------------===//

/// An activation of floats with numbers among its arguments.
NodeHandler activation(Value (*fn)(Call &, Value)) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    FailureOr<Value> self = c.floats("self");
    if (failed(self))
      return failure();
    Type type = ctx.b.elementOf(*self);
    return c.rounded(fn(c, ctx.b.convert(*self, ctx.b.accumulatorOf(type))), type);
  };
}

Value isAbove(Call &c, Value x, double bound) { return c.b.compare(CompareKind::GT, x, bound); }

Value clampTo(PrimBuilder &b, Value x, double low, double high) {
  return b.binary<MinOp>(b.binary<MaxOp>(x, low), high);
}

/// scale * x right of 0; scale * alpha * (exp(x * inputScale) - 1) else.
Value exponentialUnit(Call &c, Value x, double alpha, double scale, double inputScale) {
  PrimBuilder &b = c.b;
  Value inner = inputScale == 1 ? x : b.binary<MulOp>(x, inputScale);
  Value negative = b.unary<Expm1Op>(inner);
  double factor = alpha * scale;
  if (factor != 1)
    negative = b.binary<MulOp>(negative, factor);
  return b.select(isAbove(c, x, 0), scale == 1 ? x : b.binary<MulOp>(x, scale), negative);
}

Value elu(Call &c, Value x) {
  return exponentialUnit(c, x, c.number("alpha", 1), c.number("scale", 1), c.number("input_scale", 1));
}
Value selu(Call &c, Value x) {
  return exponentialUnit(c, x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1);
}
Value celu(Call &c, Value x) {
  double alpha = c.number("alpha", 1);
  return exponentialUnit(c, x, alpha, 1, 1 / alpha);
}
Value silu(Call &c, Value x) { return c.b.mul(x, c.b.unary<LogisticOp>(x)); }
Value gelu(Call &c, Value x) { return emitGelu(c.b, x, c.ctx.getString("approximate", "none") == "tanh"); }
Value hardSigmoid(Call &c, Value x) { return c.b.binary<DivOp>(clampTo(c.b, c.b.binary<AddOp>(x, 3), 0, 6), 6); }
Value hardSwish(Call &c, Value x) {
  return c.b.binary<DivOp>(c.b.mul(x, clampTo(c.b, c.b.binary<AddOp>(x, 3), 0, 6)), 6);
}
Value leakyRelu(Call &c, Value x) {
  Value scaled = c.b.binary<MulOp>(x, c.number("negative_slope", 0.01));
  return c.b.select(isAbove(c, x, 0), x, scaled);
}
/// In evaluation the slope is the mean of the bounds.
Value meanLeakyRelu(Call &c, Value x) {
  Value scaled = c.b.binary<MulOp>(x, (c.number("lower", 1.0 / 8) + c.number("upper", 1.0 / 3)) / 2);
  return c.b.select(c.b.compare(CompareKind::GE, x, 0), x, scaled);
}
Value mish(Call &c, Value x) { return emitMish(c.b, x); }
/// log(1 + exp(beta x)) / beta; x itself from the threshold on.
Value softplus(Call &c, Value x) {
  PrimBuilder &b = c.b;
  double beta = c.number("beta", 1);
  Value scaled = beta == 1 ? x : b.binary<MulOp>(x, beta);
  Value soft = emitSoftplus(b, scaled);
  if (beta != 1)
    soft = b.binary<DivOp>(soft, beta);
  return b.select(isAbove(c, scaled, c.number("threshold", 20)), x, soft);
}
Value logSigmoid(Call &c, Value x) {
  PrimBuilder &b = c.b;
  return b.unary<NegOp>(emitSoftplus(b, b.unary<NegOp>(x)));
}
Value softShrink(Call &c, Value x) {
  PrimBuilder &b = c.b;
  double lambda = c.number("lambd", 0.5);
  Value inside = b.binary<MulOp>(x, 0); // NaN stays
  Value below = b.select(b.compare(CompareKind::LT, x, -lambda), b.binary<AddOp>(x, lambda), inside);
  return b.select(isAbove(c, x, lambda), b.binary<SubOp>(x, lambda), below);
}
Value hardShrink(Call &c, Value x) {
  PrimBuilder &b = c.b;
  double lambda = c.number("lambd", 0.5);
  Value inside = b.binary<AndOp>(b.compare(CompareKind::GE, x, -lambda), b.compare(CompareKind::LE, x, lambda));
  return b.select(inside, b.splatLike(x, 0), x);
}

LogicalResult relu(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  if (ctx.b.elementOf(*self).isInteger(1))
    return ctx.invalid("takes no bools");
  return ctx.result(ctx.b.binary<MaxOp>(*self, 0.0));
}

/// Bounds as numbers, of integers too.
NodeHandler bounded(StringRef low, StringRef high, double lowest, double highest) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    FailureOr<Value> self = c.required("self");
    if (failed(self))
      return failure();
    Type type = ctx.b.elementOf(*self);
    if (type.isInteger(1))
      return ctx.invalid("takes no bools");
    FailureOr<Value> from = c.as(low, type, lowest), to = c.as(high, type, highest);
    if (failed(from) || failed(to))
      return failure();
    Sizes sizes = getSizes(*self);
    return ctx.result(ctx.b.min(ctx.b.max(*self, ctx.b.broadcastTo(*from, sizes)), ctx.b.broadcastTo(*to, sizes)));
  };
}

/// `value` where x is not above the threshold; NaN stays.
LogicalResult threshold(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  Type type = ctx.b.elementOf(*self);
  FailureOr<Value> bound = c.as("threshold", type), value = c.as("value", type);
  if (failed(bound) || failed(value))
    return failure();
  Sizes sizes = getSizes(*self);
  Value isBelow = ctx.b.compare(CompareKind::LE, *self, ctx.b.broadcastTo(*bound, sizes));
  return ctx.result(ctx.b.select(isBelow, ctx.b.broadcastTo(*value, sizes), *self));
}

/// The slope is one number, or one for each channel (dim 1).
LogicalResult prelu(NodeContext &ctx, bool isKernel) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.floats("self"), weight = c.required("weight");
  if (failed(self) || failed(weight))
    return failure();
  Sizes sizes = getSizes(*self);
  Value slope = *weight;
  if (!isKernel && b.rankOf(slope) == 1 && sizes.size() > 1) {
    Sizes channels(sizes.size(), b.size(1));
    channels[1] = getSizes(slope)[0];
    slope = b.reshape(slope, channels);
  }
  FailureOr<Value> wide = ctx.broadcastOnto(b.convert(slope, b.elementOf(*self)), sizes);
  if (failed(wide))
    return failure();
  return ctx.result(b.select(b.compare(CompareKind::GT, *self, 0), *self, b.mul(*self, *wide)));
}

/// The first half of a dim times the sigmoid of the second.
LogicalResult glu(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.floats("self");
  if (failed(self))
    return failure();
  FailureOr<int64_t> axis = ctx.axis(c.integer("dim", -1), b.rankOf(*self));
  if (failed(axis))
    return failure();
  AffineExpr size = getSizes(*self)[*axis], half = simplifySize(size.floorDiv(2));
  if (failed(ctx.requireEqual(simplifySize(half * 2), size, "an even size in dim " + Twine(*axis))))
    return failure();
  Type type = b.elementOf(*self);
  Value x = b.convert(*self, b.accumulatorOf(type));
  Value first = b.sliceDim(x, *axis, b.size(0), half), second = b.sliceDim(x, *axis, half, half);
  return c.rounded(b.mul(first, b.unary<LogisticOp>(second)), type);
}

//===--- conversions
//--------------------------------------------------------------------------------------------------===//

/// To argument "dtype" where it is there; `like`: an argument whose type is taken.
NodeHandler convertTo(StringRef like = "") {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    FailureOr<Value> self = c.required("self"), other = like.empty() ? self : c.required(like);
    if (failed(self) || failed(other))
      return failure();
    FailureOr<Type> type = c.dtype(ctx.b.elementOf(*other));
    FailureOr<Value> result = failed(type) ? FailureOr<Value>(failure()) : c.convert(*self, *type);
    return failed(result) ? failure() : ctx.result(*result);
  };
}

LogicalResult same(NodeContext &ctx) {
  Call c(ctx);
  Value self = c.tensor("self") ? c.tensor("self") : c.tensor("input");
  return self ? ctx.result(self) : ctx.invalid("needs an operand");
}

/// Randomness in training is refused; what remains is the operand.
LogicalResult dropout(NodeContext &ctx) {
  Call c(ctx);
  if (c.flag("train") && c.number("p", 0.5) != 0)
    return ctx.unsupported("in training is not supported; export the model after model.eval()");
  if (ctx.numResults() > 1 && c.tensor("input"))
    (void)ctx.set(1, ctx.b.splat(ctx.b.getI1Type(), getSizes(c.tensor("input")), 1));
  return same(ctx);
}

} // namespace

void tc::populateATenFunctions(OpRegistrar &onOp) {
  auto on = [&](std::initializer_list<StringRef> types, const NodeHandler &handler, bool takesComplex = false) {
    for (StringRef type : types) {
      onOp(type, /*sinceVersion=*/1, handler, /*minOperands=*/1);
      if (takesComplex)
        onOp.takeComplex(ComplexUse::Moved, {type});
    }
  };
  on({"abs.default", "absolute.default"}, absolute, true);
  on({"neg.default", "negative.default"}, negate, true);
  on({"positive.default", "contiguous.default", "clone.default", "alias.default", "detach.default", "lift.default",
      "lift_fresh.default", "lift_fresh_copy.default", "detach_copy.default", "alias_copy.default"},
     same, true);
  on({"conj_physical.default"}, same);
  on({"exp.default"}, oneOp<ExpOp>());
  on({"log.default"}, oneOp<LogOp>());
  on({"sqrt.default"}, oneOp<SqrtOp>());
  on({"rsqrt.default"}, oneOp<RsqrtOp>());
  on({"reciprocal.default"}, oneOp<ReciprocalOp>());
  on({"sigmoid.default", "special_expit.default"}, oneOp<LogisticOp>());
  on({"tanh.default"}, oneOp<TanhOp>());
  on({"erf.default", "special_erf.default"}, oneOp<ErfOp>());
  on({"sin.default"}, oneOp<SinOp>());
  on({"cos.default"}, oneOp<CosOp>());
  on({"tan.default"}, oneOp<TanOp>());
  on({"asin.default", "arcsin.default"}, oneOp<AsinOp>());
  on({"acos.default", "arccos.default"}, oneOp<AcosOp>());
  on({"atan.default", "arctan.default"}, oneOp<AtanOp>());
  on({"sinh.default"}, oneOp<SinhOp>());
  on({"cosh.default"}, oneOp<CoshOp>());
  on({"asinh.default", "arcsinh.default"}, oneOp<AsinhOp>());
  on({"acosh.default", "arccosh.default"}, oneOp<AcoshOp>());
  on({"atanh.default", "arctanh.default"}, oneOp<AtanhOp>());
  on({"expm1.default", "special_expm1.default"}, oneOp<Expm1Op>());
  on({"log1p.default", "special_log1p.default"}, oneOp<Log1pOp>());
  on({"exp2.default", "special_exp2.default"}, function(exp2));
  on({"log2.default"}, function(logarithm<2>));
  on({"log10.default"}, function(logarithm<10>));
  on({"erfc.default", "special_erfc.default"}, function(emitErfc));
  on({"special_ndtr.default"}, function(normalCdf));
  on({"sinc.default", "special_sinc.default"}, function(sinc));
  on({"deg2rad.default"}, function(scalePi<1, 180>));
  on({"rad2deg.default"}, function(scalePi<180, 1>));
  on({"logit.default", "special_logit.default"}, logit);
  on({"square.default"}, ofAny(square));
  on({"frac.default"}, function(fraction, Of::Floats));
  on({"floor.default"}, oneOp<FloorOp>(Of::Unchanged));
  on({"ceil.default"}, oneOp<CeilOp>(Of::Unchanged));
  on({"trunc.default", "fix.default"}, oneOp<TruncOp>(Of::Unchanged));
  on({"round.default", "round.decimals"}, roundTo);
  on({"sign.default", "sgn.default"}, ofAny(sign));
  on({"signbit.default"}, ofAny(isSigned));
  on({"isnan.default"}, ofAny(isNan));
  on({"isinf.default"}, ofAny(isInf));
  on({"isfinite.default"}, ofAny(isFinite));
  on({"isposinf.default"}, ofAny(isPositiveInf));
  on({"isneginf.default"}, ofAny(isNegativeInf));
  on({"nan_to_num.default"}, nanToNum);

  on({"relu.default", "relu_.default"}, relu);
  on({"relu6.default"}, bounded("", "", 0, 6));
  on({"hardtanh.default"}, bounded("min_val", "max_val", -1, 1));
  on({"threshold.default"}, threshold);
  on({"silu.default"}, activation(silu));
  on({"gelu.default"}, activation(gelu));
  on({"mish.default"}, activation(mish));
  on({"elu.default"}, activation(elu));
  on({"selu.default"}, activation(selu));
  on({"celu.default"}, activation(celu));
  on({"hardsigmoid.default"}, activation(hardSigmoid));
  on({"hardswish.default"}, activation(hardSwish));
  on({"leaky_relu.default"}, activation(leakyRelu));
  on({"softplus.default"}, activation(softplus));
  on({"softshrink.default"}, activation(softShrink));
  on({"hardshrink.default"}, activation(hardShrink));
  on({"log_sigmoid.default"}, activation(logSigmoid));
  on({"rrelu.default"}, [](NodeContext &ctx) -> LogicalResult {
    if (Call(ctx).flag("training"))
      return ctx.unsupported("in training is not supported; export the model after model.eval()");
    return activation(meanLeakyRelu)(ctx);
  });
  on({"prelu.default"}, [](NodeContext &ctx) { return prelu(ctx, /*isKernel=*/false); });
  on({"_prelu_kernel.default"}, [](NodeContext &ctx) { return prelu(ctx, /*isKernel=*/true); });
  on({"glu.default"}, glu);

  on({"to.dtype", "to.dtype_layout", "to.device", "_to_copy.default"}, convertTo(), true);
  on({"to.other", "type_as.default"}, convertTo("other"), true);
  on({"dropout.default", "native_dropout.default", "alpha_dropout.default", "feature_dropout.default",
      "feature_alpha_dropout.default"},
     dropout);
}
