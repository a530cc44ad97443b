//===- Pointwise.cpp - code of one pointwise prim op --------------------------------------------------------------===//
//
// A registry from op name to a function that emits the op for scalars or vectors. Elements arrive in the value type:
// floats, signless integers, i1; the prim op still has the signed and unsigned types. Narrow floats are widened to f32
// here.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Common/EmitterHelpers.h"

#include "tc/Dialect/Host/IR/Host.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

namespace {

/// What an emitter works with: builder, op, operands, and helpers that hide scalar versus vector.
struct Context {
  OpBuilder &b;
  Location loc;
  Operation *op;
  ValueRange operands;

  Value operator[](unsigned i) const { return operands[i]; }
  Type primElement(unsigned i = 0) const {
    return cast<RankedTensorType>(op->getOperand(i).getType()).getElementType();
  }
  Type resultElement() const { return cast<RankedTensorType>(op->getResult(0).getType()).getElementType(); }
  bool isFloat() const { return isa<FloatType>(primElement()); }
  bool isUnsigned() const { return primElement().isUnsignedInteger() || primElement().isInteger(1); }

  Type like(Value shape, Type element) const {
    if (auto vector = dyn_cast<VectorType>(shape.getType()))
      return VectorType::get(vector.getShape(), element);
    return element;
  }
  Value constant(Value shape, double value) const {
    Type type = getElementTypeOrSelf(shape.getType());
    TypedAttr attr = isa<FloatType>(type) ? TypedAttr(b.getFloatAttr(type, value))
                                          : TypedAttr(b.getIntegerAttr(type, int64_t(value)));
    if (auto vector = dyn_cast<VectorType>(shape.getType()))
      attr = DenseElementsAttr::get(vector, Attribute(attr));
    return arith::ConstantOp::create(b, loc, attr);
  }
  template <typename OpTy, typename... Args> Value make(Args &&...args) const {
    return OpTy::create(b, loc, std::forward<Args>(args)...);
  }
  Value compare(arith::CmpFPredicate kind, Value x, Value y) const { return make<arith::CmpFOp>(kind, x, y); }
  Value compare(arith::CmpIPredicate kind, Value x, Value y) const { return make<arith::CmpIOp>(kind, x, y); }
  Value select(Value c, Value x, Value y) const { return make<arith::SelectOp>(c, x, y); }
};

using Fn = Value (*)(const Context &);

template <typename MathOp> Value unaryMath(const Context &c) { return c.make<MathOp>(c[0]); }
template <typename FloatOp, typename SignedOp, typename UnsignedOp> Value binary(const Context &c) {
  if (c.isFloat())
    return c.make<FloatOp>(c[0], c[1]);
  if (c.isUnsigned())
    return c.make<UnsignedOp>(c[0], c[1]);
  return c.make<SignedOp>(c[0], c[1]);
}
template <typename IntOp> Value bitwise(const Context &c) { return c.make<IntOp>(c[0], c[1]); }

Value emitAbs(const Context &c) {
  if (c.isFloat())
    return c.make<math::AbsFOp>(c[0]);
  return c.isUnsigned() ? c[0] : c.make<math::AbsIOp>(c[0]);
}
Value emitNeg(const Context &c) {
  if (c.isFloat())
    return c.make<arith::NegFOp>(c[0]);
  return c.make<arith::SubIOp>(c.constant(c[0], 0), c[0]);
}
Value emitSign(const Context &c) {
  Value zero = c.constant(c[0], 0), one = c.constant(c[0], 1), minus = c.constant(c[0], -1);
  if (c.isFloat()) {
    Value negative = c.select(c.compare(arith::CmpFPredicate::OLT, c[0], zero), minus, c[0]); // keeps NaN and zeros
    return c.select(c.compare(arith::CmpFPredicate::OGT, c[0], zero), one, negative);
  }
  if (c.isUnsigned())
    return c.select(c.compare(arith::CmpIPredicate::ne, c[0], zero), one, zero);
  return c.select(c.compare(arith::CmpIPredicate::sgt, c[0], zero), one,
                  c.select(c.compare(arith::CmpIPredicate::slt, c[0], zero), minus, zero));
}
Value emitReciprocal(const Context &c) { return c.make<arith::DivFOp>(c.constant(c[0], 1), c[0]); }
Value emitRsqrt(const Context &c) { return c.make<arith::DivFOp>(c.constant(c[0], 1), c.make<math::SqrtOp>(c[0])); }
Value emitLogistic(const Context &c) {
  Value one = c.constant(c[0], 1);
  return c.make<arith::DivFOp>(one, c.make<arith::AddFOp>(one, c.make<math::ExpOp>(c.make<arith::NegFOp>(c[0]))));
}
/// A polynomial by Horner's rule, the coefficient of the highest power first.
Value emitPolynomial(const Context &c, Value x, ArrayRef<double> coefficients) {
  Value sum = c.constant(x, coefficients.front());
  for (double coefficient : coefficients.drop_front())
    sum = c.make<math::FmaOp>(sum, x, c.constant(x, coefficient));
  return sum;
}

// Sine, cosine and tangent of f32. The argument is reduced to r in [-pi/4, pi/4] and a quadrant in f64, where k pi/2 is
// exact enough up to |x| = 2^30; beyond, C's functions do it, which few models ever ask for. Minimax polynomials of sin
// and cos: S. Moshier, Cephes, single/sinf.c.
enum class Trig { Sin, Cos, Tan };
bool isOnCpu(const Context &c) {
  auto variant = c.b.getInsertionBlock()->getParentOp()->getParentOfType<host::VariantOp>();
  return variant && variant.getDevice() == machine::DeviceKind::Cpu;
}
/// What sine and cosine of the remainder make in this quadrant. sin and tan of a zero keep its sign.
Value combineQuadrant(const Context &c, Trig kind, Value quadrant, Value sine, Value cosine) {
  Value x = c[0], one = c.constant(quadrant, 1), zero = c.constant(quadrant, 0), result;
  auto isOdd = [&](Value n) { return c.compare(arith::CmpIPredicate::ne, c.make<arith::AndIOp>(n, one), zero); };
  if (kind == Trig::Tan) {
    Value odd = isOdd(quadrant);
    result = c.make<arith::DivFOp>(c.select(odd, cosine, sine), c.select(odd, sine, cosine));
    result = c.select(odd, c.make<arith::NegFOp>(result), result);
  } else {
    if (kind == Trig::Cos) // a quadrant further
      quadrant = c.make<arith::AddIOp>(quadrant, one);
    result = c.select(isOdd(quadrant), cosine, sine);
    Value negative = isOdd(c.make<arith::ShRUIOp>(quadrant, one));
    result = c.select(negative, c.make<arith::NegFOp>(result), result);
  }
  if (kind == Trig::Cos)
    return result;
  return c.select(c.compare(arith::CmpFPredicate::OEQ, x, c.constant(x, 0)), x, result);
}
/// `result`, but where a finite |x| is beyond `limit` what `far` makes, which is computed only if it is anywhere. Lanes
/// that are off hold whatever their operands, zeros for the most part, made: infinity and NaN, of which `result` is
/// NaN.
Value orFar(const Context &c, double limit, Value result, llvm::function_ref<Value()> far) {
  Value x = c[0], magnitude = c.make<math::AbsFOp>(x);
  Value isFar = c.compare(arith::CmpFPredicate::OGT, magnitude, c.constant(x, limit));
  Value isFinite =
      c.compare(arith::CmpFPredicate::OLT, magnitude, c.constant(x, std::numeric_limits<double>::infinity()));
  isFar = c.make<arith::AndIOp>(isFar, isFinite);
  Value anyFar = isFar;
  if (isa<VectorType>(isFar.getType()))
    anyFar = c.make<vector::ReductionOp>(vector::CombiningKind::OR, isFar);
  auto choice = scf::IfOp::create(c.b, c.loc, TypeRange{x.getType()}, anyFar, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(c.b);
  c.b.setInsertionPointToStart(choice.thenBlock());
  scf::YieldOp::create(c.b, c.loc, c.select(isFar, far(), result));
  c.b.setInsertionPointToStart(choice.elseBlock());
  scf::YieldOp::create(c.b, c.loc, result);
  return choice.getResult(0);
}
/// The same for vectors of f64: pi/2 in three parts, exact enough up to |x| = 10^6; beyond, `far`. Polynomials: fdlibm,
/// k_sin.c and k_cos.c.
Value emitTrigF64(const Context &c, Trig kind, llvm::function_ref<Value()> far) {
  Value x = c[0], magic = c.constant(x, 0x1.8p52);
  Value shifted = c.make<math::FmaOp>(x, c.constant(x, 0.63661977236758134308), magic);
  Value k = c.make<arith::SubFOp>(shifted, magic), r = x;
  for (double part : {-0x1.921fb54442d18p0, -0x1.1a62633145c07p-54, 0x1.f1976b7ed8fbcp-110})
    r = c.make<math::FmaOp>(k, c.constant(x, part), r);
  Value quadrant = c.make<arith::BitcastOp>(c.like(x, c.b.getI64Type()), shifted);
  Value z = c.make<arith::MulFOp>(r, r);
  Value sine = emitPolynomial(c, z,
                              {1.58969099521155010221e-10, -2.50507602534068634195e-8, 2.75573137070700676789e-6,
                               -1.98412698298579493134e-4, 8.33333333332248946124e-3, -1.66666666666666324348e-1});
  sine = c.make<math::FmaOp>(c.make<arith::MulFOp>(sine, z), r, r);
  Value rest = emitPolynomial(c, z,
                              {-1.13596475577881948265e-11, 2.08757232129817482790e-9, -2.75573143513906633035e-7,
                               2.48015872894767294178e-5, -1.38888888888741095749e-3, 4.16666666666666019037e-2});
  // 1 - z / 2, and what it rounds off.
  Value ones = c.constant(x, 1), half = c.make<arith::MulFOp>(z, c.constant(x, 0.5));
  Value near = c.make<arith::SubFOp>(ones, half);
  Value lost = c.make<arith::SubFOp>(c.make<arith::SubFOp>(ones, near), half);
  Value cosine = c.make<arith::AddFOp>(near, c.make<math::FmaOp>(c.make<arith::MulFOp>(z, z), rest, lost));
  return orFar(c, 1e6, combineQuadrant(c, kind, quadrant, sine, cosine), far);
}
Value emitTrig(const Context &c, Trig kind) {
  Value x = c[0];
  Type wide = c.like(x, c.b.getF64Type());
  auto inDouble = [&]() -> Value {
    Value full = getElementTypeOrSelf(x.getType()).isF64() ? x : c.make<arith::ExtFOp>(wide, x);
    if (kind == Trig::Tan)
      return c.make<arith::DivFOp>(c.make<math::SinOp>(full), c.make<math::CosOp>(full));
    return kind == Trig::Sin ? c.make<math::SinOp>(full) : c.make<math::CosOp>(full);
  };
  if (getElementTypeOrSelf(x.getType()).isF64())
    return isa<VectorType>(x.getType()) && isOnCpu(c) ? emitTrigF64(c, kind, inDouble) : inDouble();
  Value full = c.make<arith::ExtFOp>(wide, x);
  // Adding 1.5 * 2^52 rounds to an integer, which then stands in the low bits.
  Value magic = c.constant(full, 6755399441055744.0);
  Value shifted = c.make<math::FmaOp>(full, c.constant(full, 0.63661977236758134308), magic);
  Value k = c.make<arith::SubFOp>(shifted, magic);
  Value r = c.make<math::FmaOp>(k, c.constant(full, -1.5707963267948965580), full);
  r = c.make<math::FmaOp>(k, c.constant(full, -6.1232339957367660e-17), r);
  r = c.make<arith::TruncFOp>(x.getType(), r);
  Type i64 = c.like(x, c.b.getI64Type()), i32 = c.like(x, c.b.getI32Type());
  Value quadrant = c.make<arith::TruncIOp>(i32, c.make<arith::BitcastOp>(i64, shifted));
  Value z = c.make<arith::MulFOp>(r, r);
  Value sine = emitPolynomial(c, z, {-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1});
  sine = c.make<math::FmaOp>(c.make<arith::MulFOp>(sine, z), r, r);
  Value cosine = emitPolynomial(c, z, {2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2, -0.5, 1.0});
  Value result = combineQuadrant(c, kind, quadrant, sine, cosine);
  constexpr double kFar = 1073741824;
  return orFar(c, kFar, result, [&] { return c.make<arith::TruncFOp>(x.getType(), inDouble()); });
}
template <Trig kind> Value emitTrig(const Context &c) { return emitTrig(c, kind); }

// atan of f32: |x| is brought to [0, tan pi/8] by atan x = pi/2 - atan 1/x and pi/4 + atan (x - 1)/(x + 1). Polynomial:
// S. Moshier, Cephes, single/atanf.c.
Value emitAtan(const Context &c) {
  Value x = c[0];
  if (getElementTypeOrSelf(x.getType()).isF64())
    return c.make<math::AtanOp>(x);
  Value a = c.make<math::AbsFOp>(x), one = c.constant(x, 1);
  Value large = c.compare(arith::CmpFPredicate::OGT, a, c.constant(x, 2.414213562373095));
  Value medium = c.compare(arith::CmpFPredicate::OGT, a, c.constant(x, 0.4142135623730950));
  Value numerator = c.select(large, c.constant(x, -1), c.select(medium, Value(c.make<arith::SubFOp>(a, one)), a));
  Value denominator = c.select(large, a, c.select(medium, Value(c.make<arith::AddFOp>(a, one)), one));
  Value base = c.select(large, c.constant(x, 1.5707963267948966),
                        c.select(medium, c.constant(x, 0.78539816339744831), c.constant(x, 0)));
  Value t = c.make<arith::DivFOp>(numerator, denominator), z = c.make<arith::MulFOp>(t, t);
  Value sum = emitPolynomial(c, z, {8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1});
  Value small = c.make<math::FmaOp>(c.make<arith::MulFOp>(sum, z), t, t);
  return c.make<math::CopySignOp>(Value(c.make<arith::AddFOp>(base, small)), x);
}

// From here on e^|x| may be infinite where half of it is not, and e^-|x| does not count.
double getFarExponent(Value x) { return getElementTypeOrSelf(x.getType()).isF64() ? 700 : 80; }
// e^|x| / 2, as the square of e^(|x| / 2).
Value emitHalfExp(const Context &c, Value magnitude) {
  Value half = c.constant(magnitude, 0.5), e = c.make<math::ExpOp>(c.make<arith::MulFOp>(magnitude, half));
  return c.make<arith::MulFOp>(c.make<arith::MulFOp>(half, e), e);
}
// sinh x = sign(x) (e - e / (e + 1) ... )/2 written with expm1, exact near 0: u = expm1|x|; (u + u / (u + 1)) / 2.
Value emitSinh(const Context &c) {
  Value magnitude = c.make<math::AbsFOp>(c[0]), u = c.make<math::ExpM1Op>(magnitude), one = c.constant(c[0], 1);
  Value ratio = c.make<arith::DivFOp>(u, c.make<arith::AddFOp>(u, one));
  Value near = c.make<arith::MulFOp>(c.constant(c[0], 0.5), c.make<arith::AddFOp>(u, ratio));
  Value isFar = c.compare(arith::CmpFPredicate::OGT, magnitude, c.constant(c[0], getFarExponent(c[0])));
  return c.make<math::CopySignOp>(c.select(isFar, emitHalfExp(c, magnitude), near), c[0]);
}
Value emitCosh(const Context &c) {
  Value magnitude = c.make<math::AbsFOp>(c[0]), e = c.make<math::ExpOp>(magnitude), half = c.constant(c[0], 0.5);
  Value near = c.make<arith::AddFOp>(c.make<arith::MulFOp>(half, e), c.make<arith::DivFOp>(half, e));
  Value isFar = c.compare(arith::CmpFPredicate::OGT, magnitude, c.constant(c[0], getFarExponent(c[0])));
  return c.select(isFar, emitHalfExp(c, magnitude), near);
}
// asinh x = sign(x) log1p(|x| + x^2 / (1 + sqrt(1 + x^2))). From 2^28 on it is log|x| + log 2 within 2^-58, and x^2
// would leave the range of f32 later; acosh likewise.
Value emitAsinh(const Context &c) {
  Value a = c.make<math::AbsFOp>(c[0]), one = c.constant(c[0], 1), square = c.make<arith::MulFOp>(a, a);
  Value root = c.make<math::SqrtOp>(c.make<arith::AddFOp>(one, square));
  Value near =
      c.make<math::Log1pOp>(c.make<arith::AddFOp>(a, c.make<arith::DivFOp>(square, c.make<arith::AddFOp>(one, root))));
  Value far = c.make<arith::AddFOp>(c.make<math::LogOp>(a), c.constant(c[0], 0.69314718055994530942));
  Value big = c.compare(arith::CmpFPredicate::OGT, a, c.constant(c[0], 268435456));
  return c.make<math::CopySignOp>(c.select(big, far, near), c[0]);
}
Value emitAcosh(const Context &c) {
  Value one = c.constant(c[0], 1), t = c.make<arith::SubFOp>(c[0], one);
  Value root = c.make<math::SqrtOp>(
      c.make<arith::AddFOp>(c.make<arith::MulFOp>(c.constant(c[0], 2), t), c.make<arith::MulFOp>(t, t)));
  Value near = c.make<math::Log1pOp>(c.make<arith::AddFOp>(t, root));
  Value far = c.make<arith::AddFOp>(c.make<math::LogOp>(c[0]), c.constant(c[0], 0.69314718055994530942));
  Value result = c.select(c.compare(arith::CmpFPredicate::OGT, c[0], c.constant(c[0], 268435456)), far, near);
  return c.select(c.compare(arith::CmpFPredicate::OLT, c[0], one), c.constant(c[0], std::nan("")), result);
}
Value emitAtanh(const Context &c) {
  Value one = c.constant(c[0], 1), a = c.make<math::AbsFOp>(c[0]);
  Value ratio = c.make<arith::DivFOp>(c.make<arith::MulFOp>(c.constant(c[0], 2), a), c.make<arith::SubFOp>(one, a));
  return c.make<math::CopySignOp>(Value(c.make<arith::MulFOp>(c.constant(c[0], 0.5), c.make<math::Log1pOp>(ratio))),
                                  c[0]);
}
Value emitNot(const Context &c) {
  Value ones = c.constant(c[0], c.primElement().isInteger(1) ? 1 : -1);
  return c.make<arith::XOrIOp>(c[0], ones);
}
/// Integer division and remainder with the corner cases of prim.div: x / 0 is 0, MIN / -1 is MIN.
template <typename SignedOp, typename UnsignedOp, bool remainder> Value integerDivision(const Context &c) {
  Value zero = c.constant(c[0], 0), one = c.constant(c[0], 1);
  Value byZero = c.compare(arith::CmpIPredicate::eq, c[1], zero);
  Value divisor = c.select(byZero, one, c[1]);
  Value result;
  if (c.isUnsigned()) {
    result = c.make<UnsignedOp>(c[0], divisor);
  } else {
    Value byMinus = c.compare(arith::CmpIPredicate::eq, divisor, c.constant(c[0], -1));
    Value quotient = c.make<SignedOp>(c[0], c.select(byMinus, one, divisor));
    Value negated = remainder ? zero : c.make<arith::SubIOp>(zero, c[0]);
    result = c.select(byMinus, negated, quotient);
  }
  return c.select(byZero, zero, result);
}
Value emitDiv(const Context &c) {
  if (c.isFloat())
    return c.make<arith::DivFOp>(c[0], c[1]);
  return integerDivision<arith::DivSIOp, arith::DivUIOp, false>(c);
}
Value emitRem(const Context &c) {
  if (c.isFloat()) // LLVM's frem may lose the sign of a zero
    return c.make<math::CopySignOp>(c.make<arith::RemFOp>(c[0], c[1]), c[0]);
  return integerDivision<arith::RemSIOp, arith::RemUIOp, true>(c);
}
/// |x|^y of f32 as 2^(y log2 |x|) in f64, as the logarithm's error counts y times: with |x| = m 2^e and m in
/// [sqrt 1/2, sqrt 2], log2 |x| = e + 2 / ln 2 artanh((m - 1) / (m + 1)). Both series end below 2^-32.
Value emitMagnitudePower(const Context &c, Value magnitude, Value y) {
  Type wide = c.like(magnitude, c.b.getF64Type()), i64 = c.like(magnitude, c.b.getI64Type());
  Value x = c.make<arith::ExtFOp>(wide, magnitude), bits = c.make<arith::BitcastOp>(i64, x);
  Value exponent = c.make<arith::SubIOp>(c.make<arith::ShRUIOp>(bits, c.constant(bits, 52)), c.constant(bits, 1023));
  Value e = c.make<arith::SIToFPOp>(wide, exponent);
  Value mantissa = c.make<arith::SubIOp>(bits, c.make<arith::ShLIOp>(exponent, c.constant(bits, 52)));
  Value m = c.make<arith::BitcastOp>(wide, mantissa), one = c.constant(x, 1);
  Value upper = c.compare(arith::CmpFPredicate::OGT, m, c.constant(x, 1.4142135623730951));
  m = c.select(upper, c.make<arith::MulFOp>(m, c.constant(x, 0.5)), m);
  e = c.select(upper, c.make<arith::AddFOp>(e, one), e);
  Value s = c.make<arith::DivFOp>(c.make<arith::SubFOp>(m, one), c.make<arith::AddFOp>(m, one));
  Value series = emitPolynomial(c, c.make<arith::MulFOp>(s, s),
                                {1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3, 1.0});
  Value log2 = c.make<math::FmaOp>(c.make<arith::MulFOp>(s, series), c.constant(x, 2.8853900817779268), e);
  Value inf = c.constant(x, INFINITY);
  log2 = c.select(c.compare(arith::CmpFPredicate::OEQ, x, c.constant(x, 0)), c.constant(x, -INFINITY), log2);
  log2 = c.select(c.compare(arith::CmpFPredicate::OEQ, x, inf), inf, log2);
  Value power = c.make<arith::MulFOp>(c.make<arith::ExtFOp>(wide, y), log2);
  power = c.make<arith::MinimumFOp>(c.make<arith::MaximumFOp>(power, c.constant(x, -200)), c.constant(x, 200));
  // Adding 1.5 * 2^52 rounds to an integer, which then stands in the low bits.
  Value magic = c.constant(x, 6755399441055744.0), shifted = c.make<arith::AddFOp>(power, magic);
  Value r = c.make<arith::MulFOp>(c.make<arith::SubFOp>(power, c.make<arith::SubFOp>(shifted, magic)),
                                  c.constant(x, 0.69314718055994530942));
  Value fraction =
      emitPolynomial(c, r, {1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 1.0 / 2, 1.0, 1.0});
  Value scale = c.make<arith::AddIOp>(c.make<arith::BitcastOp>(i64, shifted), c.constant(bits, 1023));
  scale = c.make<arith::BitcastOp>(wide, c.make<arith::ShLIOp>(scale, c.constant(bits, 52)));
  Value result = c.make<arith::MulFOp>(fraction, scale);
  result = c.select(c.compare(arith::CmpFPredicate::UNO, x, x), x, result);
  return c.make<arith::TruncFOp>(magnitude.getType(), result);
}

/// x^y. f64: C's pow; other floats: |x|^y with the cases of C's pow; integers: by squaring (32 or 64 steps
/// at most, unrolled by bits of the exponent), a negative exponent gives 0 but for bases 1 and -1.
Value emitPow(const Context &c) {
  Value x = c[0], y = c[1];
  if (!c.isFloat()) {
    unsigned bits = getElementTypeOrSelf(x.getType()).getIntOrFloatBitWidth();
    Value zero = c.constant(x, 0), one = c.constant(x, 1), result = one, base = x, exponent = y;
    for (unsigned i = 0; i < std::min(bits, 64u); ++i) {
      Value odd = c.compare(arith::CmpIPredicate::ne, c.make<arith::AndIOp>(exponent, one), zero);
      result = c.select(odd, c.make<arith::MulIOp>(result, base), result);
      base = c.make<arith::MulIOp>(base, base);
      exponent = c.make<arith::ShRUIOp>(exponent, one);
    }
    if (!c.isUnsigned()) {
      Value negative = c.compare(arith::CmpIPredicate::slt, y, zero);
      Value isOne = c.compare(arith::CmpIPredicate::eq, x, one);
      Value isMinus = c.compare(arith::CmpIPredicate::eq, x, c.constant(x, -1));
      result = c.select(negative, c.select(isOne, one, c.select(isMinus, result, zero)), result);
    }
    return result;
  }
  if (getElementTypeOrSelf(x.getType()).isF64())
    return c.make<math::PowFOp>(x, y);
  Value zero = c.constant(x, 0), one = c.constant(x, 1), inf = c.constant(x, INFINITY);
  Value magnitude = c.make<math::AbsFOp>(x);
  Value power = emitMagnitudePower(c, magnitude, y);
  // log 0 = -inf and log inf = inf give the right limits; y = 0 and x = 1 give 1 even for NaN.
  Value whole = c.compare(arith::CmpFPredicate::OEQ, c.make<math::FloorOp>(y), y);
  Value halfY = c.make<arith::MulFOp>(y, c.constant(x, 0.5));
  Value odd = c.make<arith::AndIOp>(whole, c.compare(arith::CmpFPredicate::ONE, c.make<math::FloorOp>(halfY), halfY));
  Value signedPower = c.select(odd, c.make<math::CopySignOp>(power, x), power);
  Value negativeBase = c.compare(arith::CmpFPredicate::OLT, x, zero);
  Value finiteBase = c.compare(arith::CmpFPredicate::ONE, magnitude, inf);
  Value nan = c.constant(x, std::nan(""));
  Value isBad = c.make<arith::AndIOp>(c.make<arith::AndIOp>(negativeBase, finiteBase),
                                      c.compare(arith::CmpFPredicate::ONE, c.make<math::FloorOp>(y), y));
  Value result = c.select(isBad, nan, signedPower);
  Value isUnit =
      c.make<arith::OrIOp>(c.compare(arith::CmpFPredicate::OEQ, y, zero), c.compare(arith::CmpFPredicate::OEQ, x, one));
  return c.select(isUnit, one, result);
}
template <typename ShiftSigned, typename ShiftUnsigned, bool left> Value emitShift(const Context &c) {
  unsigned bits = getElementTypeOrSelf(c[0].getType()).getIntOrFloatBitWidth();
  Value limit = c.constant(c[0], bits), zero = c.constant(c[0], 0);
  Value tooFar = c.compare(arith::CmpIPredicate::uge, c[1], limit);
  Value amount = c.select(tooFar, c.constant(c[0], bits - 1), c[1]);
  if (left || c.isUnsigned())
    return c.select(tooFar, zero, c.make<ShiftUnsigned>(c[0], amount));
  return c.make<ShiftSigned>(c[0], amount);
}
Value emitCompare(const Context &c) {
  using prim::CompareKind;
  CompareKind kind = cast<prim::CompareOp>(c.op).getKind();
  if (c.isFloat()) {
    static const arith::CmpFPredicate table[] = {arith::CmpFPredicate::OEQ, arith::CmpFPredicate::UNE,
                                                 arith::CmpFPredicate::OLT, arith::CmpFPredicate::OLE,
                                                 arith::CmpFPredicate::OGT, arith::CmpFPredicate::OGE};
    return c.compare(table[unsigned(kind)], c[0], c[1]);
  }
  using P = arith::CmpIPredicate;
  static const P signedTable[] = {P::eq, P::ne, P::slt, P::sle, P::sgt, P::sge};
  static const P unsignedTable[] = {P::eq, P::ne, P::ult, P::ule, P::ugt, P::uge};
  return c.compare((c.isUnsigned() ? unsignedTable : signedTable)[unsigned(kind)], c[0], c[1]);
}
Value emitIsNan(const Context &c) {
  if (!c.isFloat())
    return c.constant(c.make<arith::CmpIOp>(arith::CmpIPredicate::ne, c[0], c[0]), 0);
  return c.compare(arith::CmpFPredicate::UNO, c[0], c[0]);
}
Value emitIsInf(const Context &c) {
  if (!c.isFloat())
    return c.constant(c.make<arith::CmpIOp>(arith::CmpIPredicate::ne, c[0], c[0]), 0);
  return c.compare(arith::CmpFPredicate::OEQ, c.make<math::AbsFOp>(c[0]), c.constant(c[0], INFINITY));
}
Value emitSelect(const Context &c) { return c.select(c[0], c[1], c[2]); }

/// Vectors of floats to integers in [-end, end): NaN gives 0, what lies beyond gives -end, or `most`.
Value emitHeld(const Context &c, double end, Type target, int64_t most) {
  Value x = c[0], last = c.constant(x, end), fits = c.compare(arith::CmpFPredicate::OLT, x, last);
  Value held = c.select(fits, c.make<arith::MaximumFOp>(x, c.constant(x, -end)), c.constant(x, 0));
  Value result = c.make<arith::FPToSIOp>(target, held);
  Value isBeyond = c.compare(arith::CmpFPredicate::OGE, x, last);
  return c.select(isBeyond,
                  c.make<arith::ConstantOp>(DenseElementsAttr::get(
                      cast<ShapedType>(target), Attribute(c.b.getIntegerAttr(getElementTypeOrSelf(target), most)))),
                  result);
}

/// Vectors of f32 to i32. What LLVM has for it (llvm.fptosi.sat) goes lane by lane.
Value emitVectorToI32(const Context &c) {
  Value x = c[0], zero = c.constant(x, 0);
  Type target = c.like(x, c.b.getI32Type());
  constexpr double kEnd = 2147483648.0;
  // Held in the range before, as numbers to quantise are: only NaN is left.
  auto bound = [](Value v) {
    auto splat = v.getDefiningOp<prim::SplatOp>();
    auto attr = splat ? dyn_cast<FloatAttr>(splat.getValue()) : FloatAttr();
    return attr ? attr.getValueAsDouble() : std::nan("");
  };
  auto min = c.op->getOperand(0).getDefiningOp<prim::MinOp>();
  auto max = min ? min.getLhs().getDefiningOp<prim::MaxOp>() : prim::MaxOp();
  if (max && bound(min.getRhs()) < kEnd && bound(max.getRhs()) >= -kEnd) {
    // The CPU makes 2^31 of NaN, which ends in zeros.
    auto isNarrow = [](Operation *user) {
      return isa<prim::ConvertOp>(user) &&
             cast<RankedTensorType>(user->getResult(0).getType()).getElementType().getIntOrFloatBitWidth() <= 16;
    };
    auto vector = dyn_cast<VectorType>(x.getType());
    if (isOnCpu(c) && llvm::all_of(c.op->getUsers(), isNarrow)) {
      auto call = [&](StringRef name, ValueRange operands) {
        return LLVM::CallIntrinsicOp::create(c.b, c.loc, target, c.b.getStringAttr(name), operands).getResult(0);
      };
      if (vector.getNumElements() == 8)
        return call("llvm.x86.avx.cvtt.ps2dq.256", {x});
      if (vector.getNumElements() == 16) {
        Value passed = c.make<arith::ConstantOp>(c.b.getZeroAttr(target));
        Value all = c.make<arith::ConstantIntOp>(c.b.getIntegerType(16), -1);
        Value rounding = LLVM::ConstantOp::create(c.b, c.loc, c.b.getI32IntegerAttr(4)); // as the CPU is set
        return call("llvm.x86.avx512.mask.cvttps2dq.512", {x, passed, all, rounding});
      }
    }
    return c.make<arith::FPToSIOp>(target, c.select(c.compare(arith::CmpFPredicate::ORD, x, x), x, zero));
  }
  return emitHeld(c, kEnd, target, INT32_MAX);
}

/// Vectors of f32 or f64 to integers whose range the float holds exactly, which become i32 first. What LLVM has for it
/// (llvm.fptoui.sat) goes lane by lane.
Value emitVectorSaturated(const Context &c, IntegerType to) {
  const bool isUnsigned = to.isUnsigned();
  const unsigned bits = to.getWidth();
  const double low = isUnsigned ? 0 : -std::ldexp(1.0, int(bits) - 1),
               high = std::ldexp(1.0, int(bits) - (isUnsigned ? 0 : 1)) - 1;
  Value x = c[0];
  x = c.select(c.compare(arith::CmpFPredicate::ORD, x, x), x, c.constant(x, 0));
  // No NaN is left, and zeros of either sign give the same.
  const auto flags =
      arith::FastMathFlagsAttr::get(c.b.getContext(), arith::FastMathFlags::nnan | arith::FastMathFlags::nsz);
  x = c.make<arith::MaxNumFOp>(x, c.constant(x, low), flags);
  x = c.make<arith::MinNumFOp>(x, c.constant(x, high), flags);
  Value wide = c.make<arith::FPToSIOp>(c.like(x, c.b.getI32Type()), x);
  return bits == 32 ? wide : c.make<arith::TruncIOp>(c.like(x, Emitter::valueType(to)), wide);
}

Value emitConvert(const Context &c) {
  Type from = c.primElement(), to = c.resultElement();
  Value x = c[0];
  if (from == to)
    return x;
  if (to.isInteger(1)) {
    if (isa<FloatType>(from))
      return c.compare(arith::CmpFPredicate::UNE, x, c.constant(x, 0));
    return c.compare(arith::CmpIPredicate::ne, x, c.constant(x, 0));
  }
  Type target = c.like(x, Emitter::valueType(to));
  bool fromUnsigned = from.isUnsignedInteger() || from.isInteger(1);
  if (isa<FloatType>(from) && isa<FloatType>(to)) {
    unsigned a = from.getIntOrFloatBitWidth(), z = to.getIntOrFloatBitWidth();
    if (a < z)
      return c.make<arith::ExtFOp>(target, x);
    if (a > z)
      return c.make<arith::TruncFOp>(target, x);
    // f16 <-> bf16
    Value wide = c.make<arith::ExtFOp>(c.like(x, c.b.getF32Type()), x);
    return c.make<arith::TruncFOp>(target, wide);
  }
  if (isa<FloatType>(from)) {
    if (isa<VectorType>(x.getType()) && from.isF32() && to.isSignlessInteger(32))
      return emitVectorToI32(c);
    auto integer = cast<IntegerType>(to);
    if (isa<VectorType>(x.getType()) && (from.isF32() || from.isF64()) &&
        (integer.getWidth() <= 16 || (from.isF64() && to.isSignlessInteger(32))))
      return emitVectorSaturated(c, integer);
    // Lane by lane, too, with branches.
    if (isa<VectorType>(x.getType()) && (from.isF32() || from.isF64()) && to.isSignlessInteger(64))
      return emitHeld(c, 0x1p63, target, INT64_MAX);
    StringRef name = to.isUnsignedInteger() ? "llvm.fptoui.sat" : "llvm.fptosi.sat";
    return LLVM::CallIntrinsicOp::create(c.b, c.loc, target, c.b.getStringAttr(name), ValueRange{x}).getResult(0);
  }
  if (isa<FloatType>(to)) {
    if (fromUnsigned)
      return c.make<arith::UIToFPOp>(target, x);
    return c.make<arith::SIToFPOp>(target, x);
  }
  unsigned a = from.getIntOrFloatBitWidth(), z = to.getIntOrFloatBitWidth();
  if (a == z)
    return x;
  if (a > z)
    return c.make<arith::TruncIOp>(target, x);
  if (fromUnsigned)
    return c.make<arith::ExtUIOp>(target, x);
  return c.make<arith::ExtSIOp>(target, x);
}

Value emitBitcast(const Context &c) {
  Type target = c.like(c[0], Emitter::valueType(c.resultElement()));
  return c[0].getType() == target ? c[0] : c.make<arith::BitcastOp>(target, c[0]);
}

const llvm::StringMap<Fn> &table() {
  static const llvm::StringMap<Fn> map = {
      {"prim.abs", emitAbs},
      {"prim.neg", emitNeg},
      {"prim.sign", emitSign},
      {"prim.ceil", unaryMath<math::CeilOp>},
      {"prim.floor", unaryMath<math::FloorOp>},
      {"prim.round", unaryMath<math::RoundEvenOp>},
      {"prim.trunc", unaryMath<math::TruncOp>},
      {"prim.sqrt", unaryMath<math::SqrtOp>},
      {"prim.rsqrt", emitRsqrt},
      {"prim.reciprocal", emitReciprocal},
      {"prim.exp", unaryMath<math::ExpOp>},
      {"prim.expm1", unaryMath<math::ExpM1Op>},
      {"prim.log", unaryMath<math::LogOp>},
      {"prim.log1p", unaryMath<math::Log1pOp>},
      {"prim.sin", emitTrig<Trig::Sin>},
      {"prim.cos", emitTrig<Trig::Cos>},
      {"prim.tan", emitTrig<Trig::Tan>},
      {"prim.asin", unaryMath<math::AsinOp>},
      {"prim.acos", unaryMath<math::AcosOp>},
      {"prim.atan", emitAtan},
      {"prim.sinh", emitSinh},
      {"prim.cosh", emitCosh},
      {"prim.tanh", unaryMath<math::TanhOp>},
      {"prim.asinh", emitAsinh},
      {"prim.acosh", emitAcosh},
      {"prim.atanh", emitAtanh},
      {"prim.erf", unaryMath<math::ErfOp>},
      {"prim.logistic", emitLogistic},
      {"prim.not", emitNot},
      {"prim.add", binary<arith::AddFOp, arith::AddIOp, arith::AddIOp>},
      {"prim.sub", binary<arith::SubFOp, arith::SubIOp, arith::SubIOp>},
      {"prim.mul", binary<arith::MulFOp, arith::MulIOp, arith::MulIOp>},
      {"prim.div", emitDiv},
      {"prim.rem", emitRem},
      {"prim.pow", emitPow},
      {"prim.atan2", [](const Context &c) -> Value { return c.make<math::Atan2Op>(c[0], c[1]); }},
      {"prim.max", binary<arith::MaximumFOp, arith::MaxSIOp, arith::MaxUIOp>},
      {"prim.min", binary<arith::MinimumFOp, arith::MinSIOp, arith::MinUIOp>},
      {"prim.and", bitwise<arith::AndIOp>},
      {"prim.or", bitwise<arith::OrIOp>},
      {"prim.xor", bitwise<arith::XOrIOp>},
      {"prim.shl", emitShift<arith::ShLIOp, arith::ShLIOp, true>},
      {"prim.shr", emitShift<arith::ShRSIOp, arith::ShRUIOp, false>},
      {"prim.compare", emitCompare},
      {"prim.is_nan", emitIsNan},
      {"prim.is_inf", emitIsInf},
      {"prim.select", emitSelect},
      {"prim.convert", emitConvert},
      {"prim.bitcast", emitBitcast},
  };
  return map;
}

/// Widens narrow floats to f32 around the op's emitter and rounds the result back, as the interpreter does.
Value emitThroughTable(OpBuilder &b, Location loc, Operation *op, ValueRange operands) {
  Fn fn = table().lookup(op->getName().getStringRef());
  Context context{b, loc, op, operands};
  if (isa<prim::ConvertOp, prim::BitcastOp, prim::SelectOp>(op))
    return fn(context);
  SmallVector<Value> wide;
  bool widened = false;
  for (Value operand : operands) {
    if (isNarrowFloat(operand.getType())) {
      widened = true;
      operand = arith::ExtFOp::create(b, loc, context.like(operand, b.getF32Type()), operand);
    }
    wide.push_back(operand);
  }
  Context inner{b, loc, op, wide};
  Value result = fn(inner);
  if (widened && isa<FloatType>(inner.resultElement()))
    result = arith::TruncFOp::create(b, loc, context.like(result, Emitter::valueType(inner.resultElement())), result);
  return result;
}

} // namespace

PointwiseEmitter tc::codegen::lookupPointwise(Operation *op) {
  return table().contains(op->getName().getStringRef()) ? emitThroughTable : nullptr;
}

bool tc::codegen::isPointwiseUse(Value value) {
  // Each value once: those read twice, one behind another, have exponentially many paths to the end.
  llvm::SmallSetVector<Value, 16> values;
  values.insert(value);
  for (size_t i = 0; i < values.size(); ++i)
    for (Operation *user : values[i].getUsers()) {
      if (isa<kernel::YieldOp>(user))
        continue;
      if (!lookupPointwise(user))
        return false;
      values.insert(user->getResult(0));
    }
  return true;
}
