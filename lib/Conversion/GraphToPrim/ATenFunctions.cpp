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
#include "Random.h"
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

/// The sign, of complex numbers z / |z| and 0 of 0.
LogicalResult sgn(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  if (!b.isComplex(*self))
    return ctx.result(sign(b, *self));
  auto [real, imaginary] = splitComplex(b, *self);
  Value size = emitHypot(b, real, imaginary), isZero = b.compare(CompareKind::EQ, size, 0);
  auto part = [&](Value v) { return b.select(isZero, b.splatLike(v, 0), b.div(v, size)); };
  return ctx.result(joinComplex(b, part(real), part(imaginary)));
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

//===--- of few roundings only in f64, in which they are computed
//-----------------------------------------------------===//

/// (((c[0] x + c[1]) x + ...) + c[n - 1].
Value polynomial(PrimBuilder &b, Value x, ArrayRef<double> c) {
  Value sum = b.splatLike(x, c.front());
  for (double next : c.drop_front())
    sum = b.binary<AddOp>(b.mul(sum, x), next);
  return sum;
}

/// pi x modulo 2 pi.
Value anglePi(PrimBuilder &b, Value x) {
  Value turns = b.unary<FloorOp>(b.binary<MulOp>(x, 0.5));
  return b.binary<MulOp>(b.sub(x, b.binary<MulOp>(turns, 2)), M_PI);
}

/// log |gamma(x)|. Source: C. Lanczos, "A precision approximation of the gamma function" (1964), with the coefficients
/// for g = 7 and nine terms; left of 1/2 by reflection.
Value logGamma(PrimBuilder &b, Value x) {
  static constexpr double kTerms[] = {676.5203681218851,     -1259.1392167224028,  771.32342877765313,
                                      -176.61502916214059,   12.507343278686905,   -0.13857109526572012,
                                      9.9843695780195716e-6, 1.5056327351493116e-7};
  Value isLeft = b.compare(CompareKind::LT, x, 0.5), one = b.splatLike(x, 1);
  Value z = b.binary<SubOp>(b.select(isLeft, b.sub(one, x), x), 1);
  Value sum = b.splatLike(x, 0.99999999999980993);
  for (auto [i, term] : llvm::enumerate(kTerms))
    sum = b.add(sum, b.div(b.splatLike(x, term), b.binary<AddOp>(z, double(i + 1))));
  // (z + 1/2) log t - t with t = z + 15/2, by one product, as both may be infinite.
  Value t = b.binary<AddOp>(z, 7.5);
  Value main = b.mul(b.binary<AddOp>(z, 0.5), b.binary<SubOp>(b.unary<LogOp>(t), 1));
  Value right = b.add(b.binary<AddOp>(main, 0.91893853320467274178 - 7), b.unary<LogOp>(sum));
  Value sine = b.unary<AbsOp>(b.unary<SinOp>(anglePi(b, x)));
  Value isWhole = b.compare(CompareKind::EQ, b.unary<FloorOp>(x), x);
  sine = b.select(isWhole, b.splatLike(x, 0), sine);
  Value left = b.sub(b.unary<LogOp>(b.div(b.splatLike(x, M_PI), sine)), right);
  Value result = b.select(isLeft, left, right);
  return b.select(isInf(b, x), b.splatLike(x, INFINITY), result);
}

/// The derivative of log gamma: asymptotic from 10 on, below by psi(x) = psi(x + 1) - 1 / x, left of 0 by reflection.
Value digamma(PrimBuilder &b, Value x) {
  static constexpr double kTerms[] = {
      8.33333333333333333333e-2, -2.10927960927960927961e-2, 7.57575757575757575758e-3, -4.16666666666666666667e-3,
      3.96825396825396825397e-3, -8.33333333333333333333e-3, 8.33333333333333333333e-2};
  Value isLeft = b.compare(CompareKind::LT, x, 0), one = b.splatLike(x, 1);
  Value z = b.select(isLeft, b.sub(one, x), x), before = b.splatLike(x, 0);
  for (int step = 0; step < 10; ++step) {
    Value isSmall = b.compare(CompareKind::LT, z, 10);
    before = b.select(isSmall, b.sub(before, b.unary<ReciprocalOp>(z)), before);
    z = b.select(isSmall, b.binary<AddOp>(z, 1), z);
  }
  Value square = b.unary<ReciprocalOp>(b.mul(z, z));
  Value tail = b.mul(square, polynomial(b, square, kTerms));
  Value right = b.sub(b.sub(b.unary<LogOp>(z), b.div(b.splatLike(z, 0.5), z)), tail);
  right = b.add(right, before);
  Value cotangent = b.div(b.unary<CosOp>(anglePi(b, x)), b.unary<SinOp>(anglePi(b, x)));
  Value left = b.sub(right, b.binary<MulOp>(cotangent, M_PI));
  Value isPole = b.compare(CompareKind::EQ, b.unary<FloorOp>(x), x);
  left = b.select(isPole, b.splatLike(x, NAN), left);
  Value result = b.select(isLeft, left, right);
  Value atZero = b.select(isSigned(b, x), b.splatLike(x, INFINITY), b.splatLike(x, -INFINITY));
  return b.select(b.compare(CompareKind::EQ, x, 0), atZero, result);
}

/// The inverse of erf: quotients of polynomials to nine digits, one in the middle and one for the ends, and two of
/// Newton's steps.
Value inverseErf(PrimBuilder &b, Value y) {
  static constexpr double kA[] = {-0.140543331, 0.914624893, -1.645349621, 0.886226899};
  static constexpr double kB[] = {0.012229801, -0.329097515, 1.442710462, -2.118377725, 1};
  static constexpr double kC[] = {1.641345311, 3.429567803, -1.624906493, -1.970840454};
  static constexpr double kD[] = {1.637067800, 3.543889200, 1};
  Value size = b.unary<AbsOp>(y), square = b.mul(y, y);
  Value middle = b.div(b.mul(y, polynomial(b, square, kA)), polynomial(b, square, kB));
  Value rest = b.binary<MulOp>(b.sub(b.splatLike(y, 1), size), 0.5);
  Value z = b.unary<SqrtOp>(b.unary<NegOp>(b.unary<LogOp>(rest)));
  Value end = b.div(polynomial(b, z, kC), polynomial(b, z, kD));
  Value isNegative = b.compare(CompareKind::LT, y, 0);
  end = b.select(isNegative, b.unary<NegOp>(end), end);
  Value x = b.select(b.compare(CompareKind::LE, size, 0.7), middle, end);
  for (int step = 0; step < 2; ++step) {
    Value slope = b.binary<MulOp>(b.unary<ExpOp>(b.unary<NegOp>(b.mul(x, x))), M_2_SQRTPI);
    // erf(x) - y, beyond the middle by what both lack to 1.
    Value near = b.sub(b.unary<ErfOp>(x), y), lack = emitErfc(b, b.unary<AbsOp>(x));
    Value far = b.sub(b.sub(b.splatLike(y, 1), size), lack);
    far = b.select(isNegative, b.unary<NegOp>(far), far);
    Value error = b.select(b.compare(CompareKind::LE, size, 0.7), near, far);
    x = b.sub(x, b.div(error, slope));
  }
  Value infinite = b.select(isNegative, b.splatLike(y, -INFINITY), b.splatLike(y, INFINITY));
  x = b.select(b.compare(CompareKind::EQ, size, 1), infinite, x);
  return b.select(b.compare(CompareKind::GT, size, 1), b.splatLike(y, NAN), x);
}

/// A sum of Chebyshev polynomials of x / 2, the highest first, the one of degree 0 counted half. Source: C. Clenshaw,
/// "A note on the summation of Chebyshev series" (1955).
Value chebyshev(PrimBuilder &b, Value x, ArrayRef<double> c) {
  Value sum = b.splatLike(x, c.front()), before = b.splatLike(x, 0), last = before;
  for (double next : c.drop_front()) {
    last = before;
    before = sum;
    sum = b.binary<AddOp>(b.sub(b.mul(x, before), last), next);
  }
  return b.binary<MulOp>(b.sub(sum, last), 0.5);
}

/// The modified Bessel function of the first kind and of order 0 or 1, times exp(-|x|) if `isScaled`: Chebyshev series
/// of exp(-x) I(x) / x^order up to 8, beyond of exp(-x) sqrt(x) I(x) by 1 / x. Source of their coefficients: S.
/// Moshier, Cephes Math Library (1984), as in PyTorch.
template <int order, bool isScaled> Value bessel(PrimBuilder &b, Value x) {
  static constexpr double kNear0[] = {
      -4.4153416464793395e-18, 3.3307945188222384e-17, -2.431279846547955e-16, 1.715391285555133e-15,
      -1.1685332877993451e-14, 7.676185498604936e-14,  -4.856446783111929e-13, 2.95505266312964e-12,
      -1.726826291441556e-11,  9.675809035373237e-11,  -5.189795601635263e-10, 2.6598237246823866e-09,
      -1.300025009986248e-08,  6.046995022541919e-08,  -2.670793853940612e-07, 1.1173875391201037e-06,
      -4.4167383584587505e-06, 1.6448448070728896e-05, -5.754195010082104e-05, 0.00018850288509584165,
      -0.0005763755745385824,  0.0016394756169413357,  -0.004324309995050576,  0.010546460394594998,
      -0.02373741480589947,    0.04930528423967071,    -0.09490109704804764,   0.17162090152220877,
      -0.3046826723431984,     0.6767952744094761};
  static constexpr double kFar0[] = {
      -7.233180487874754e-18,  -4.830504485944182e-18,  4.46562142029676e-17,    3.461222867697461e-17,
      -2.8276239805165836e-16, -3.425485619677219e-16,  1.7725601330565263e-15,  3.8116806693526224e-15,
      -9.554846698828307e-15,  -4.150569347287222e-14,  1.54008621752141e-14,    3.8527783827421426e-13,
      7.180124451383666e-13,   -1.7941785315068062e-12, -1.3215811840447713e-11, -3.1499165279632416e-11,
      1.1889147107846439e-11,  4.94060238822497e-10,    3.3962320257083865e-09,  2.266668990498178e-08,
      2.0489185894690638e-07,  2.8913705208347567e-06,  6.889758346916825e-05,   0.0033691164782556943,
      0.8044904110141088};
  static constexpr double kNear1[] = {
      2.7779141127610464e-18, -2.111421214358166e-17,  1.5536319577362005e-16, -1.1055969477353862e-15,
      7.600684294735408e-15,  -5.042185504727912e-14,  3.223793365945575e-13,  -1.9839743977649436e-12,
      1.1736186298890901e-11, -6.663489723502027e-11,  3.625590281552117e-10,  -1.8872497517228294e-09,
      9.381537386495773e-09,  -4.445059128796328e-08,  2.0032947535521353e-07, -8.568720264695455e-07,
      3.4702513081376785e-06, -1.3273163656039436e-05, 4.781565107550054e-05,  -0.00016176081582589674,
      0.0005122859561685758,  -0.0015135724506312532,  0.004156422944312888,   -0.010564084894626197,
      0.024726449030626516,   -0.05294598120809499,    0.1026436586898471,     -0.17641651835783406,
      0.25258718644363365};
  static constexpr double kFar1[] = {
      7.517296310842105e-18,   4.414348323071708e-18,  -4.6503053684893586e-17, -3.209525921993424e-17,
      2.96262899764595e-16,    3.3082023109209285e-16, -1.8803547755107825e-15, -3.8144030724370075e-15,
      1.0420276984128802e-14,  4.272440016711951e-14,  -2.1015418427726643e-14, -4.0835511110921974e-13,
      -7.198551776245908e-13,  2.0356285441470896e-12, 1.4125807436613782e-11,  3.2526035830154884e-11,
      -1.8974958123505413e-11, -5.589743462196584e-10, -3.835380385964237e-09,  -2.6314688468895196e-08,
      -2.512236237870209e-07,  -3.882564808877691e-06, -0.00011058893876262371, -0.009761097491361469,
      0.7785762350182801};
  Value size = b.unary<AbsOp>(x);
  Value near = chebyshev(b, b.binary<SubOp>(b.binary<MulOp>(size, 0.5), 2),
                         order == 0 ? ArrayRef<double>(kNear0) : ArrayRef<double>(kNear1));
  Value far = chebyshev(b, b.binary<SubOp>(b.div(b.splatLike(x, 32), size), 2),
                        order == 0 ? ArrayRef<double>(kFar0) : ArrayRef<double>(kFar1));
  if (order == 1)
    near = b.mul(near, size);
  if (!isScaled) {
    near = b.mul(b.unary<ExpOp>(size), near);
    far = b.mul(b.unary<ExpOp>(size), far);
  }
  far = b.div(far, b.unary<SqrtOp>(size));
  Value result = b.select(b.compare(CompareKind::LE, size, 8), near, far);
  return order == 0 ? result : b.select(b.compare(CompareKind::LT, x, 0), b.unary<NegOp>(result), result);
}

template <Function fn> Value inDouble(PrimBuilder &b, Value x) {
  return b.convert(fn(b, b.convert(x, b.getF64Type())), b.elementOf(x));
}

/// The next number from "self" toward "other".
LogicalResult nextAfter(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  auto v = c.promoted({"self", "other"});
  if (failed(v))
    return failure();
  Value x = (*v)[0], y = (*v)[1];
  if (!b.isFloat(x))
    return ctx.invalid("takes floats, but got " + describe(x));
  Type type = b.elementOf(x), integer = b.getIntegerType(type.getIntOrFloatBitWidth());
  Value bits = BitcastOp::create(b, x, integer);
  // Bits of numbers of one sign grow with their size.
  Value isUp = b.compare(CompareKind::GT, y, x), isPositive = b.compare(CompareKind::GT, x, 0);
  Value isNearer = b.binary<XorOp>(isUp, isPositive);
  Value next = b.select(isNearer, b.binary<SubOp>(bits, 1), b.binary<AddOp>(bits, 1));
  Value result = BitcastOp::create(b, next, type);
  Value least = BitcastOp::create(b, b.splatLike(bits, 1), type);
  least = b.select(isUp, least, b.unary<NegOp>(least));
  result = b.select(b.compare(CompareKind::EQ, x, 0), least, result);
  result = b.select(b.compare(CompareKind::EQ, x, y), y, result);
  return ctx.result(b.select(b.binary<OrOp>(isNan(b, x), isNan(b, y)), b.splatLike(x, NAN), result));
}

/// A number of [1/2, 1) with the sign of "self", and the power of 2 (i32) by which it is that.
LogicalResult mantissaAndExponent(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.floats("self");
  if (failed(self))
    return failure();
  const Type type = b.elementOf(*self);
  Value x = b.convert(*self, b.accumulatorOf(type));
  const bool isDouble = b.elementOf(x).isF64();
  const int digits = isDouble ? 52 : 23, bias = isDouble ? 1022 : 126, reach = digits + 2;
  // Numbers below the normal ones have fewer digits until they are multiplied.
  Value isTiny = b.compare(CompareKind::LT, b.unary<AbsOp>(x), std::ldexp(1.0, -bias + 1));
  Value normal = b.select(isTiny, b.binary<MulOp>(x, std::ldexp(1.0, reach)), x);
  const Type integer = b.getIntegerType(isDouble ? 64 : 32);
  Value bits = BitcastOp::create(b, normal, integer);
  Value exponent = b.binary<AndOp>(b.binary<ShrOp>(bits, digits), isDouble ? 2047 : 255);
  exponent = b.binary<SubOp>(exponent, bias);
  exponent = b.select(isTiny, b.binary<SubOp>(exponent, reach), exponent);
  Value kept = b.binary<AndOp>(bits, std::ldexp(1.0, digits) - 1);
  kept = b.binary<OrOp>(kept, b.binary<AndOp>(bits, -std::ldexp(1.0, isDouble ? 63 : 31)));
  kept = b.binary<OrOp>(kept, std::ldexp(double(bias), digits));
  Value mantissa = BitcastOp::create(b, kept, b.elementOf(x));
  Value isAsIs = b.binary<OrOp>(b.binary<OrOp>(isNan(b, x), isInf(b, x)), b.compare(CompareKind::EQ, x, 0));
  if (failed(c.rounded(b.select(isAsIs, x, mantissa), type)))
    return failure();
  return ctx.set(1, b.convert(b.select(isAsIs, b.splatLike(exponent, 0), exponent), b.getI32Type()));
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

/// Of a complex number, e^real (cos imaginary + i sin imaginary).
LogicalResult exponential(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  if (!b.isComplex(*self))
    return oneOp<ExpOp>()(ctx);
  auto [real, imaginary] = splitComplex(b, *self);
  Value size = b.unary<ExpOp>(real);
  return ctx.result(joinComplex(b, b.mul(size, b.unary<CosOp>(imaginary)), b.mul(size, b.unary<SinOp>(imaginary))));
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

/// -x log(x); 0 at 0 and minus infinity below.
Value entropy(PrimBuilder &b, Value x) {
  Value y = b.unary<NegOp>(b.mul(x, b.unary<LogOp>(x)));
  y = b.select(b.compare(CompareKind::EQ, x, 0), b.splatLike(x, 0), y);
  return b.select(b.compare(CompareKind::LT, x, 0), b.splatLike(x, -INFINITY), y);
}

/// The logarithm of the gamma function of p variables: a sum of log gamma at p places.
LogicalResult logGammaOfMany(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.floats("self", /*orIntegers=*/true);
  if (failed(self))
    return failure();
  const int64_t p = c.integer("p", 1);
  constexpr int64_t kMost = 1024; // terms that are written out
  if (p < 1 || p > kMost)
    return ctx.invalid("p is " + Twine(p) + "; it lies in [1, " + Twine(kMost) + "]");
  Value x = b.convert(*self, b.getF64Type()), sum = b.splatLike(x, 0.25 * double(p * (p - 1)) * std::log(M_PI));
  for (int64_t i = 0; i < p; ++i)
    sum = b.add(sum, logGamma(b, b.binary<SubOp>(x, 0.5 * double(i))));
  return c.rounded(sum, b.elementOf(*self));
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
Value hardSigmoid(Call &c, Value x) { return c.b.binary<MulOp>(clampTo(c.b, c.b.binary<AddOp>(x, 3), 0, 6), 1.0 / 6); }
Value hardSwish(Call &c, Value x) { return c.b.mul(x, hardSigmoid(c, x)); }
Value leakyRelu(Call &c, Value x) {
  Value scaled = c.b.binary<MulOp>(x, c.number("negative_slope", 0.01));
  return c.b.select(isAbove(c, x, 0), x, scaled);
}
/// In evaluation the slope is the mean of the bounds.
Value meanLeakyRelu(Call &c, Value x) {
  Value scaled = c.b.binary<MulOp>(x, (c.number("lower", 1.0 / 8) + c.number("upper", 1.0 / 3)) / 2);
  return c.b.select(c.b.compare(CompareKind::GE, x, 0), x, scaled);
}
/// What each element is multiplied by in training: 1, or left of 0 a slope that it draws.
Value drawSlopes(Call &c, Value x) {
  PrimBuilder &b = c.b;
  const double lower = c.number("lower", 1.0 / 8), upper = c.number("upper", 1.0 / 3);
  Value slope = emitUniform(c.ctx, getSizes(x), cast<FloatType>(b.elementOf(x)), lower, upper);
  return b.select(b.compare(CompareKind::GT, x, 0), b.splatLike(x, 1), slope);
}
Value randomLeakyRelu(Call &c, Value x) { return c.b.mul(x, drawSlopes(c, x)); }
/// rrelu_with_noise_functional: the slopes are a result, which the gradient reads.
LogicalResult leakyReluWithNoise(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> self = c.floats("self");
  if (failed(self))
    return failure();
  const Type type = ctx.b.elementOf(*self);
  Value x = ctx.b.convert(*self, ctx.b.accumulatorOf(type));
  if (!c.flag("training")) {
    Value noise = c.tensor("noise");
    return success(succeeded(c.rounded(meanLeakyRelu(c, x), type)) && (!noise || succeeded(ctx.set(1, noise))));
  }
  Value slopes = drawSlopes(c, x);
  return success(succeeded(c.rounded(ctx.b.mul(x, slopes), type)) && succeeded(c.rounded(slopes, type, 1)));
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
    FailureOr<Value> from = c.bound(low, type, /*isLower=*/true, lowest),
                     to = c.bound(high, type, /*isLower=*/false, highest);
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
  } else if (!isKernel && sizes.empty() && getSizes(slope) == Sizes{b.size(1)}) {
    // One variable takes a weight of one element.
    slope = b.reshape(slope, {});
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

/// Refuses what PyTorch refuses: an operator in place, or with out=, that computes numbers of a kind, such as floats,
/// that the memory's type, such as an integer's, does not hold.
LogicalResult checkWritten(Call &c, Type computed, Type memory) {
  auto by = c.ctx.node()->getAttrOfType<StringAttr>(graph::kComputedByAttr);
  if (!by || categoryOf(computed) <= categoryOf(memory))
    return success();
  return c.ctx.invalid(
      llvm::formatv("{0} computes numbers of type {1} and writes them to memory of type {2}, which does "
                    "not hold them; convert them first, or write to memory of their type",
                    by.getValue(), computed, memory));
}

/// To argument "dtype" where it is there; `like`: an argument whose type is taken.
NodeHandler convertTo(StringRef like = "") {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    FailureOr<Value> self = c.required("self"), other = like.empty() ? self : c.required(like);
    if (failed(self) || failed(other))
      return failure();
    FailureOr<Type> type = c.dtype(ctx.b.elementOf(*other));
    if (failed(type) || failed(checkWritten(c, ctx.b.elementOf(*self), *type)))
      return failure();
    FailureOr<Value> result = c.convert(*self, *type);
    return failed(result) ? failure() : ctx.result(*result);
  };
}

/// "src" in the type and the sizes of "self".
LogicalResult copy(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> self = c.required("self"), source = c.required("src");
  if (failed(self) || failed(source))
    return failure();
  if (failed(checkWritten(c, ctx.b.elementOf(*source), ctx.b.elementOf(*self))))
    return failure();
  FailureOr<Value> result = c.convert(*source, ctx.b.elementOf(*self));
  if (succeeded(result))
    result = ctx.broadcastOnto(*result, getSizes(*self));
  return failed(result) ? failure() : ctx.result(*result);
}

LogicalResult same(NodeContext &ctx) {
  Call c(ctx);
  Value self = c.tensor("self") ? c.tensor("self") : c.tensor("input");
  return self ? ctx.result(self) : ctx.invalid("needs an operand");
}

} // namespace

Value tc::emitDigamma(PrimBuilder &b, Value x) { return digamma(b, x); }

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
      "lift_fresh.default", "lift_fresh_copy.default", "detach_copy.default", "alias_copy.default", "cpu.default",
      "cuda.default"},
     same, true);
  on({"conj_physical.default"}, same);
  on({"exp.default"}, exponential, true);
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
  on({"lgamma.default", "special_gammaln.default"}, function(inDouble<logGamma>));
  on({"mvlgamma.default", "special_multigammaln.default"}, logGammaOfMany);
  on({"special_entr.default"}, function(entropy));
  on({"digamma.default", "special_digamma.default", "special_psi.default"}, function(inDouble<digamma>));
  on({"erfinv.default", "special_erfinv.default"}, function(inDouble<inverseErf>));
  on({"i0.default", "special_i0.default", "special_modified_bessel_i0.default"}, function(inDouble<bessel<0, false>>));
  on({"special_i0e.default"}, function(inDouble<bessel<0, true>>));
  on({"special_i1.default", "special_modified_bessel_i1.default"}, function(inDouble<bessel<1, false>>));
  on({"special_i1e.default"}, function(inDouble<bessel<1, true>>));
  on({"nextafter.default"}, nextAfter);
  on({"frexp.Tensor"}, mantissaAndExponent);
  on({"deg2rad.default"}, function(scalePi<1, 180>));
  on({"rad2deg.default"}, function(scalePi<180, 1>));
  on({"logit.default", "special_logit.default"}, logit);
  on({"square.default"}, ofAny(square));
  on({"frac.default"}, function(fraction, Of::Floats));
  on({"floor.default"}, oneOp<FloorOp>(Of::Unchanged));
  on({"ceil.default"}, oneOp<CeilOp>(Of::Unchanged));
  on({"trunc.default", "fix.default"}, oneOp<TruncOp>(Of::Unchanged));
  on({"round.default", "round.decimals"}, roundTo);
  on({"sign.default"}, ofAny(sign));
  on({"sgn.default"}, sgn, true);
  on({"signbit.default"}, ofAny(isSigned));
  on({"isnan.default"}, ofAny(isNan));
  on({"isinf.default"}, ofAny(isInf));
  on({"isfinite.default"}, ofAny(isFinite));
  on({"isposinf.default"}, ofAny(isPositiveInf));
  on({"isneginf.default"}, ofAny(isNegativeInf));
  on({"nan_to_num.default"}, nanToNum);

  on({"relu.default"}, relu);
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
  on({"log_sigmoid_forward.default"}, [](NodeContext &ctx) -> LogicalResult {
    // exp(-|x|) for the gradient, which tc computes from x.
    if (Value x = Call(ctx).tensor("self"); x && ctx.b.isFloat(x) && ctx.isResultUsed(1))
      (void)ctx.set(1, ctx.b.unary<ExpOp>(ctx.b.unary<NegOp>(ctx.b.unary<AbsOp>(x))));
    return activation(logSigmoid)(ctx);
  });
  on({"rrelu.default"}, [](NodeContext &ctx) -> LogicalResult {
    return activation(Call(ctx).flag("training") ? randomLeakyRelu : meanLeakyRelu)(ctx);
  });
  on({"rrelu_with_noise_functional.default"}, leakyReluWithNoise);
  on({"prelu.default"}, [](NodeContext &ctx) { return prelu(ctx, /*isKernel=*/false); });
  on({"_prelu_kernel.default"}, [](NodeContext &ctx) { return prelu(ctx, /*isKernel=*/true); });
  on({"glu.default"}, glu);

  on({"to.dtype", "to.dtype_layout", "to.device", "_to_copy.default"}, convertTo(), true);
  on({"to.other", "type_as.default"}, convertTo("other"), true);
  on({"copy.default"}, copy, true);
}
