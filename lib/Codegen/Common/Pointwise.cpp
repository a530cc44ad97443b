//===- Pointwise.cpp - code of one pointwise prim op --------------------------------------------------------------===//
//
// A registry from op name to a function that emits the op for scalars or vectors. Elements arrive in the value type:
// floats, signless integers, i1; the prim op still has the signed and unsigned types. Narrow floats are widened to f32
// here.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Common/Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringMap.h"

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
Value emitTan(const Context &c) { return c.make<arith::DivFOp>(c.make<math::SinOp>(c[0]), c.make<math::CosOp>(c[0])); }
// sinh x = sign(x) (e - e / (e + 1) ... )/2 written with expm1, exact near 0: u = expm1|x|; (u + u / (u + 1)) / 2.
Value emitSinh(const Context &c) {
  Value magnitude = c.make<math::AbsFOp>(c[0]), u = c.make<math::ExpM1Op>(magnitude), one = c.constant(c[0], 1);
  Value ratio = c.make<arith::DivFOp>(u, c.make<arith::AddFOp>(u, one));
  Value safe = c.select(c.compare(arith::CmpFPredicate::OEQ, u, c.constant(c[0], INFINITY)), one, ratio);
  Value half = c.make<arith::MulFOp>(c.constant(c[0], 0.5), c.make<arith::AddFOp>(u, safe));
  return c.make<math::CopySignOp>(half, c[0]);
}
Value emitCosh(const Context &c) {
  Value e = c.make<math::ExpOp>(c.make<math::AbsFOp>(c[0])), half = c.constant(c[0], 0.5);
  return c.make<arith::AddFOp>(c.make<arith::MulFOp>(half, e), c.make<arith::DivFOp>(half, e));
}
// asinh x = sign(x) log1p(|x| + x^2 / (1 + sqrt(1 + x^2))); for |x| > 2^20, log|x| + log 2.
Value emitAsinh(const Context &c) {
  Value a = c.make<math::AbsFOp>(c[0]), one = c.constant(c[0], 1), square = c.make<arith::MulFOp>(a, a);
  Value root = c.make<math::SqrtOp>(c.make<arith::AddFOp>(one, square));
  Value near =
      c.make<math::Log1pOp>(c.make<arith::AddFOp>(a, c.make<arith::DivFOp>(square, c.make<arith::AddFOp>(one, root))));
  Value far = c.make<arith::AddFOp>(c.make<math::LogOp>(a), c.constant(c[0], 0.69314718055994530942));
  Value big = c.compare(arith::CmpFPredicate::OGT, a, c.constant(c[0], 1048576));
  return c.make<math::CopySignOp>(c.select(big, far, near), c[0]);
}
Value emitAcosh(const Context &c) {
  Value one = c.constant(c[0], 1), t = c.make<arith::SubFOp>(c[0], one);
  Value root = c.make<math::SqrtOp>(
      c.make<arith::AddFOp>(c.make<arith::MulFOp>(c.constant(c[0], 2), t), c.make<arith::MulFOp>(t, t)));
  Value near = c.make<math::Log1pOp>(c.make<arith::AddFOp>(t, root));
  Value far = c.make<arith::AddFOp>(c.make<math::LogOp>(c[0]), c.constant(c[0], 0.69314718055994530942));
  return c.select(c.compare(arith::CmpFPredicate::OGT, c[0], c.constant(c[0], 1048576)), far, near);
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
/// x^y. Floats: |x|^y by exp and log with the cases of C's pow; integers: by squaring (32 or 64 steps at most, unrolled
/// by bits of the exponent), a negative exponent gives 0 but for bases 1 and -1.
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
  Value zero = c.constant(x, 0), one = c.constant(x, 1), inf = c.constant(x, INFINITY);
  Value magnitude = c.make<math::AbsFOp>(x);
  Value power = c.make<math::ExpOp>(c.make<arith::MulFOp>(y, c.make<math::LogOp>(magnitude)));
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
      {"prim.sin", unaryMath<math::SinOp>},
      {"prim.cos", unaryMath<math::CosOp>},
      {"prim.tan", emitTan},
      {"prim.asin", unaryMath<math::AsinOp>},
      {"prim.acos", unaryMath<math::AcosOp>},
      {"prim.atan", unaryMath<math::AtanOp>},
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

bool isNarrowFloat(Type type) {
  auto f = dyn_cast<FloatType>(getElementTypeOrSelf(type));
  return f && f.getWidth() < 32;
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
