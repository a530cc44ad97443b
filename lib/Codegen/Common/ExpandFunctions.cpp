//===- ExpandFunctions.cpp - tc-expand-functions: functions of vectors --------------------------------------------===//
//
// Polynomials for the f32 functions, upstream's but for those with a better form on AVX-512; calls into the code
// library for what has none.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Codegen/Passes.h"
#include "tc/Dialect/Host/IR/Host.h"

#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace tc::codegen {
#define GEN_PASS_DEF_EXPANDFUNCTIONSPASS
#include "tc/Codegen/Passes.h.inc"
} // namespace tc::codegen

using namespace mlir;
using namespace tc;

namespace {
/// A vector of what `function` makes of each lane of vectors.
Value byLanes(PatternRewriter &b, Location loc, VectorType type, ValueRange vectors,
              llvm::function_ref<Value(ValueRange)> function) {
  Value result = LLVM::PoisonOp::create(b, loc, type);
  for (int64_t lane = 0; lane < type.getNumElements(); ++lane) {
    SmallVector<Value> operands;
    for (Value vector : vectors)
      operands.push_back(vector::ExtractOp::create(b, loc, vector, ArrayRef<int64_t>{lane}));
    result = vector::InsertOp::create(b, loc, function(operands), result, ArrayRef<int64_t>{lane});
  }
  return result;
}

/// f64 transcendentals of scalars, those of vectors that have no form below, and the few f32 functions without an
/// inlined polynomial are calls of one lane each, resolved in the code library that is linked into every variant.
struct ScalarCallPattern : public RewritePattern {
  ScalarCallPattern(MLIRContext *context, StringRef opName, StringRef function, bool f32Too)
      : RewritePattern(opName, 1, context), function(function), f32Too(f32Too) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    Type type = op->getResult(0).getType(), element = getElementTypeOrSelf(type);
    if (!element.isF64() && !(f32Too && element.isF32()))
      return rewriter.notifyMatchFailure(op, "has an inlined form");
    std::string name = (function + (element.isF32() ? "_f32" : "_f64")).str();
    Operation *parent = op->getParentOfType<LLVM::LLVMFuncOp>()->getParentOp();
    auto callee = dyn_cast_or_null<LLVM::LLVMFuncOp>(SymbolTable::lookupSymbolIn(parent, name));
    if (!callee) {
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPointToStart(&parent->getRegion(0).front());
      SmallVector<Type> arguments(op->getNumOperands(), element);
      callee = LLVM::LLVMFuncOp::create(rewriter, op->getLoc(), name, LLVM::LLVMFunctionType::get(element, arguments));
    }
    auto call = [&](ValueRange operands) -> Value {
      return LLVM::CallOp::create(rewriter, op->getLoc(), callee, operands).getResult();
    };
    auto vectorType = dyn_cast<VectorType>(type);
    if (!vectorType) {
      rewriter.replaceOp(op, call(op->getOperands()));
      return success();
    }
    rewriter.replaceOp(op, byLanes(rewriter, op->getLoc(), vectorType, op->getOperands(), call));
    return success();
  }
  StringRef function;
  bool f32Too;
};

/// Whether the type is a vector of f32, or of f64, which the forms below take.
bool isLanes(Type type, unsigned bits = 32) {
  auto vector = dyn_cast<VectorType>(type);
  return vector && vector.getRank() == 1 && !vector.isScalable() &&
         (bits == 64 ? vector.getElementType().isF64() : vector.getElementType().isF32());
}

/// Whether the type is one register of AVX-512, of 16 lanes of f32.
bool isRegister(Type type) { return isLanes(type) && cast<VectorType>(type).getNumElements() == 16; }
bool isDoubleLanes(Type type) { return isLanes(type, 64); }
/// Whether it is f32 or a vector of it.
bool isOfF32(Type type) { return getElementTypeOrSelf(type).isF32(); }

/// q of e^r - 1 = r + r^2 q(r): minimax for the relative error, 2^-26, on |r| <= ln 2 / 2.
constexpr double kExpM1Coefficients[] = {1.3882516650483012e-3, 8.366547524929047e-3, 4.166720062494278e-2,
                                         1.666654348373413e-1, 4.999999701976776e-1};

/// What the patterns below write with: the values are all of one type, a float or a vector of it.
struct FloatBuilder {
  PatternRewriter &b;
  Location loc;
  Type type;

  FloatBuilder(PatternRewriter &b, Operation *op) : b(b), loc(op->getLoc()), type(op->getResult(0).getType()) {}
  Value constant(double value) const { return constantOf(type, b.getFloatAttr(getElementTypeOrSelf(type), value)); }
  Value fma(Value x, Value y, Value z) const { return math::FmaOp::create(b, loc, x, y, z); }
  Value add(Value x, Value y) const { return arith::AddFOp::create(b, loc, x, y); }
  Value sub(Value x, Value y) const { return arith::SubFOp::create(b, loc, x, y); }
  Value mul(Value x, Value y) const { return arith::MulFOp::create(b, loc, x, y); }
  Value select(arith::CmpFPredicate kind, Value x, Value y, Value yes, Value no) const {
    return arith::SelectOp::create(b, loc, arith::CmpFOp::create(b, loc, kind, x, y), yes, no);
  }
  /// Between `least` and `most`; NaN stays NaN.
  Value clamp(Value x, double least, double most) const {
    x = select(arith::CmpFPredicate::OGT, x, constant(most), constant(most), x);
    return select(arith::CmpFPredicate::OLT, x, constant(least), constant(least), x);
  }
  /// Horner's rule; the coefficient of the highest power first.
  Value polynomial(Value x, ArrayRef<double> coefficients) const {
    Value p = constant(coefficients.front());
    for (double coefficient : coefficients.drop_front())
      p = fma(p, x, constant(coefficient));
    return p;
  }
  /// The integers with the bits of floats, a constant of them, and back.
  Type bitsType() const {
    const Type integer = b.getIntegerType(getElementTypeOrSelf(type).getIntOrFloatBitWidth());
    auto vector = dyn_cast<VectorType>(type);
    return vector ? Type(vector.clone(integer)) : integer;
  }
  Value bits(Value x) const { return arith::BitcastOp::create(b, loc, bitsType(), x); }
  Value bits(int64_t value) const {
    return constantOf(bitsType(), b.getIntegerAttr(getElementTypeOrSelf(bitsType()), value));
  }
  Value fromBits(Value x) const { return arith::BitcastOp::create(b, loc, type, x); }

private:
  Value constantOf(Type valueType, TypedAttr one) const {
    auto vector = dyn_cast<VectorType>(valueType);
    return arith::ConstantOp::create(b, loc, vector ? DenseElementsAttr::get(vector, Attribute(one)) : one);
  }
};

/// The same of vectors, as CPUs take them.
struct LaneBuilder : FloatBuilder {
  using FloatBuilder::FloatBuilder;

  VectorType vectorType() const { return cast<VectorType>(type); }
  /// The logarithm of u where `result` is it for positive numbers: infinity and NaN stay; of 0 it is -infinity, of less
  /// there is none.
  Value logarithmOf(Value u, Value result) const {
    result = select(arith::CmpFPredicate::OLT, u, constant(INFINITY), result, u);
    result = select(arith::CmpFPredicate::OEQ, u, constant(0), constant(-INFINITY), result);
    return select(arith::CmpFPredicate::OLT, u, constant(0), constant(NAN), result);
  }
  Value intrinsic(StringRef name, ValueRange operands) const {
    return LLVM::CallIntrinsicOp::create(b, loc, type, b.getStringAttr(name), operands).getResult(0);
  }
  /// x = n ln 2 + r with a whole number n and |r| <= ln 2 / 2, for |x| below 2^22.
  std::pair<Value, Value> reduceByLn2(Value x) const {
    // Adding 1.5 * 2^23 rounds to an integer.
    Value magic = constant(12582912);
    Value n = sub(fma(x, constant(1.44269504088896341), magic), magic);
    Value r = fma(n, constant(-0.693359375), x);
    return {n, fma(n, constant(2.12194440e-4), r)};
  }
  /// x 2^n with the right overflow, where the mask (i16) is set; elsewhere 0. AVX-512.
  Value scaled(Value x, Value n, Value mask) const {
    Value current = LLVM::ConstantOp::create(b, loc, b.getI32IntegerAttr(4)); // rounding as it is set
    return intrinsic("llvm.x86.avx512.mask.scalef.ps.512", {x, n, constant(0), mask, current});
  }
  /// e^x for x in [-88, 89] where the mask (i16) is set; elsewhere 0. To a unit in the last place. AVX-512.
  Value exponential(Value x, Value mask) const {
    auto [n, r] = reduceByLn2(x);
    SmallVector<double> coefficients(ArrayRef<double>{kExpM1Coefficients});
    coefficients.append({1.0, 1.0});
    return scaled(polynomial(r, coefficients), n, mask);
  }
  Value allLanes() const { return LLVM::ConstantOp::create(b, loc, b.getI16IntegerAttr(-1)); }
  /// 1 / x for x in [2^-120, 2^126], to a unit in the last place: one step of Newton's from 14 bits. A division takes
  /// six times as long.
  Value reciprocal(Value x) const {
    Value r = intrinsic("llvm.x86.avx512.rcp14.ps.512", {x, constant(0), allLanes()});
    return fma(fma(arith::NegFOp::create(b, loc, x), r, constant(1)), r, r);
  }
};

/// A form of a function of one operand, for the types that `isTaken` names.
template <typename Op, typename Builder, bool (*isTaken)(Type)> struct FunctionPattern : public OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  virtual Value emit(const Builder &e, Value x) const = 0;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    if (!isTaken(op.getType()))
      return rewriter.notifyMatchFailure(op, "is of another type");
    rewriter.replaceOp(op, emit(Builder(rewriter, op), op.getOperand()));
    return success();
  }
};
template <typename Op> using Avx512Pattern = FunctionPattern<Op, LaneBuilder, isRegister>;

/// The remainder of x / y, with the sign of x, for vectors of f32: x - q y with q the quotient's whole part. Both are
/// multiples of y's last place, so that the difference is exact, and so is q, or one too many, while it is below 2^23.
/// Vectors with another lane (no number, infinity or 0 among them) call the scalar function.
struct RemainderPattern : public OpRewritePattern<arith::RemFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::RemFOp op, PatternRewriter &rewriter) const override {
    if (!isLanes(op.getType()))
      return rewriter.notifyMatchFailure(op, "is of another type");
    const LaneBuilder e(rewriter, op);
    const Location loc = e.loc;
    const Value x = op.getLhs(), y = op.getRhs();
    const Value dividend = math::AbsFOp::create(rewriter, loc, x), divisor = math::AbsFOp::create(rewriter, loc, y);
    const Value quotient = arith::DivFOp::create(rewriter, loc, dividend, divisor);
    // (Not of what is no number.)
    const Value isFar = arith::CmpFOp::create(rewriter, loc, arith::CmpFPredicate::UGE, quotient, e.constant(0x1p23));
    const Value isAnyFar = vector::ReductionOp::create(rewriter, loc, vector::CombiningKind::OR, isFar);
    auto ifOp = scf::IfOp::create(rewriter, loc, TypeRange{e.type}, isAnyFar, /*withElseRegion=*/true);
    {
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPointToStart(ifOp.thenBlock());
      scf::YieldOp::create(rewriter, loc,
                           byLanes(rewriter, loc, e.vectorType(), {x, y}, [&](ValueRange operands) -> Value {
                             return arith::RemFOp::create(rewriter, loc, operands[0], operands[1]);
                           }));
      rewriter.setInsertionPointToStart(ifOp.elseBlock());
      const Value whole = math::TruncOp::create(rewriter, loc, quotient);
      Value rest = e.fma(arith::NegFOp::create(rewriter, loc, whole), divisor, dividend);
      rest = e.select(arith::CmpFPredicate::OLT, rest, e.constant(0), e.add(rest, divisor), rest);
      // 0 times infinity is no number.
      rest = e.select(arith::CmpFPredicate::OEQ, divisor, e.constant(INFINITY), dividend, rest);
      scf::YieldOp::create(rewriter, loc, Value(math::CopySignOp::create(rewriter, loc, rest, x)));
    }
    rewriter.replaceOp(op, ifOp.getResults());
    return success();
  }
};

/// e^x: x = n ln 2 + r, e^x = 2^n p(r), where vscalefps brings in 2^n with the right overflow. Half the instructions of
/// the general form, which builds 2^n from bits and guards its range. Results below the smallest normal number are 0,
/// as they are there. p: 1 + r + r^2 q(r), q minimax for the relative error of e^x - 1.
struct ExpAvx512Pattern : public Avx512Pattern<math::ExpOp> {
  using FunctionPattern::FunctionPattern;

  Value emit(const LaneBuilder &e, Value x) const override {
    Value most = e.constant(89);
    // NaN stays NaN; infinity would leave no remainder.
    Value clamped = e.select(arith::CmpFPredicate::OGT, x, most, most, x);
    Value isNormal = arith::CmpFOp::create(e.b, e.loc, arith::CmpFPredicate::UGE, x, e.constant(-87.336544));
    Value mask = LLVM::BitcastOp::create(e.b, e.loc, e.b.getI16Type(), isNormal);
    return e.exponential(clamped, mask);
  }
};

/// What is common to forms for vectors of f64.
struct DoubleBuilder : LaneBuilder {
  using LaneBuilder::LaneBuilder;

  /// x = n ln 2 + r with |r| <= ln 2 / 2, and n + bias (i64).
  std::pair<Value, Value> reduce(Value x, int64_t bias) const {
    // Adding 1.5 * 2^52 rounds to an integer, which the last bits then are.
    Value magic = constant(0x1.8p52), shifted = fma(x, constant(1.4426950408889634074), magic), n = sub(shifted, magic);
    Value r = fma(n, constant(-1.90821492927058770002e-10), fma(n, constant(-6.93147180369123816490e-1), x));
    return {r, arith::SubIOp::create(b, loc, bits(shifted), bits(llvm::bit_cast<int64_t>(0x1.8p52) - bias))};
  }
  /// The number with these exponents, biased by 1023.
  Value power(Value exponents) const { return fromBits(arith::ShLIOp::create(b, loc, exponents, bits(52))); }
  /// The series of e^r from r^`first` on to r^13, over r^`first`: it ends below 2^-57 for |r| <= ln 2 / 2.
  Value series(Value r, int first) const {
    SmallVector<double> coefficients;
    double factorial = 1;
    for (int i = 0; i <= 13; ++i) {
      factorial *= std::max(i, 1);
      if (i >= first)
        coefficients.insert(coefficients.begin(), 1 / factorial);
    }
    return polynomial(r, coefficients);
  }
};

template <typename Op> using DoublePattern = FunctionPattern<Op, DoubleBuilder, isDoubleLanes>;

/// e^x: x = n ln 2 + r, e^x = 2^n p(r). 2^n comes in two factors, so that results overflow and become denormal where
/// they should.
struct ExpF64Pattern : public DoublePattern<math::ExpOp> {
  using FunctionPattern::FunctionPattern;

  Value emit(const DoubleBuilder &e, Value x) const override {
    auto [r, exponents] = e.reduce(e.clamp(x, -746, 710), 2 * 1023);
    Value first = arith::ShRUIOp::create(e.b, e.loc, exponents, e.bits(1));
    Value second = arith::SubIOp::create(e.b, e.loc, exponents, first);
    return e.mul(e.mul(e.series(r, 0), e.power(first)), e.power(second));
  }
};

/// e^x - 1: x = n ln 2 + r, e^x - 1 = 2 (2^(n-1) (e^r - 1) + (2^(n-1) - 1/2)), exact for n = 0.
struct ExpM1F64Pattern : public DoublePattern<math::ExpM1Op> {
  using FunctionPattern::FunctionPattern;

  Value emit(const DoubleBuilder &e, Value x) const override {
    auto [r, exponents] = e.reduce(e.clamp(x, -40, 710), 1022);
    Value scale = e.power(exponents), p = e.fma(e.series(r, 2), e.mul(r, r), r);
    Value result = e.mul(e.constant(2), e.fma(scale, p, e.sub(scale, e.constant(0.5))));
    Value magnitude = math::AbsFOp::create(e.b, e.loc, x);
    return e.select(arith::CmpFPredicate::OLT, magnitude, e.constant(0x1p-54), x, result);
  }
};

/// tanh |x| = t / (t + 2), where t = e^(2 |x|) - 1.
struct TanhF64Pattern : public DoublePattern<math::TanhOp> {
  using FunctionPattern::FunctionPattern;

  Value emit(const DoubleBuilder &e, Value x) const override {
    Value magnitude = math::AbsFOp::create(e.b, e.loc, x);
    Value t = math::ExpM1Op::create(e.b, e.loc, e.clamp(e.mul(e.constant(2), magnitude), 0, 44));
    Value ratio = arith::DivFOp::create(e.b, e.loc, t, e.add(t, e.constant(2)));
    return math::CopySignOp::create(e.b, e.loc, ratio, x);
  }
};

/// log x: x = 2^n (1 + f) with 1 + f in [sqrt 1/2, sqrt 2), s = f / (2 + f),
/// log(1 + f) = f - (f^2 / 2 - s (f^2 / 2 + R(s^2))). Polynomial: fdlibm, e_log.c.
struct LogF64Pattern : public DoublePattern<math::LogOp> {
  using FunctionPattern::FunctionPattern;

  Value emit(const DoubleBuilder &e, Value x) const override {
    // The bits of sqrt 1/2.
    constexpr int64_t kRootHalf = 0x3fe6a09e667f3bcd;
    Value isTiny = arith::CmpFOp::create(e.b, e.loc, arith::CmpFPredicate::OLT, x, e.constant(0x1p-1022));
    Value scaled = arith::SelectOp::create(e.b, e.loc, isTiny, e.mul(x, e.constant(0x1p54)), x);
    Value exponent = arith::ShRSIOp::create(
        e.b, e.loc, arith::SubIOp::create(e.b, e.loc, e.bits(scaled), e.bits(kRootHalf)), e.bits(52));
    Value mantissa = e.fromBits(
        arith::SubIOp::create(e.b, e.loc, e.bits(scaled), arith::ShLIOp::create(e.b, e.loc, exponent, e.bits(52))));
    // Integers of 32 bits in f64, without the conversion that AVX2 lacks.
    Value magic = arith::AddIOp::create(e.b, e.loc, exponent, e.bits(llvm::bit_cast<int64_t>(0x1.8p52)));
    Value n = e.sub(e.fromBits(magic), e.constant(0x1.8p52));
    n = e.sub(n, arith::SelectOp::create(e.b, e.loc, isTiny, e.constant(54), e.constant(0)));
    Value f = e.sub(mantissa, e.constant(1)), half = e.mul(e.mul(e.constant(0.5), f), f);
    Value s = arith::DivFOp::create(e.b, e.loc, f, e.add(f, e.constant(2))), z = e.mul(s, s);
    Value rest = e.mul(z, e.polynomial(z, {1.479819860510658591e-1, 1.531383769920937332e-1, 1.818357216161805012e-1,
                                           2.222219843214978396e-1, 2.857142874366239149e-1, 3.999999999940941908e-1,
                                           6.666666666666735130e-1}));
    Value low = e.fma(n, e.constant(1.90821492927058770002e-10), e.mul(s, e.add(half, rest)));
    return e.logarithmOf(x, e.fma(n, e.constant(6.93147180369123816490e-1), e.sub(f, e.sub(half, low))));
  }
};

/// 1 / (1 + e^t), the logistic function of -t, without the division.
struct LogisticAvx512Pattern : public OpRewritePattern<arith::DivFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::DivFOp op, PatternRewriter &rewriter) const override {
    auto sum = op.getRhs().getDefiningOp<arith::AddFOp>();
    if (!isRegister(op.getType()) || !matchPattern(op.getLhs(), m_OneFloat()) || !sum)
      return rewriter.notifyMatchFailure(op, "is no logistic function");
    Value x = sum.getLhs(), y = sum.getRhs();
    if (matchPattern(y, m_OneFloat()))
      std::swap(x, y);
    auto exp = y.getDefiningOp<math::ExpOp>();
    if (!exp || !matchPattern(x, m_OneFloat()))
      return rewriter.notifyMatchFailure(op, "is no logistic function");
    LaneBuilder e(rewriter, op);
    // Beyond, the result is below the smallest normal number, or 1. NaN stays NaN.
    constexpr double kMost = 87.336544;
    Value t = exp.getOperand();
    Value result = e.reciprocal(e.add(e.exponential(e.clamp(t, -kMost, kMost), e.allLanes()), e.constant(1)));
    rewriter.replaceOp(op, e.select(arith::CmpFPredicate::OGE, t, e.constant(kMost), e.constant(0), result));
    return success();
  }
};

/// e^x - 1 on AVX-512: x = n ln 2 + r, e^x - 1 = 2^n ((e^r - 1) + (1 - 2^-n)), exact for n = 0. The general form takes
/// an exponential, a logarithm and a division.
struct ExpM1Avx512Pattern : public Avx512Pattern<math::ExpM1Op> {
  using FunctionPattern::FunctionPattern;

  Value emit(const LaneBuilder &e, Value x) const override {
    // Below, the result is -1; beyond, infinity. NaN stays NaN.
    auto [n, r] = e.reduceByLn2(e.clamp(x, -18, 89));
    Value p = e.polynomial(r, kExpM1Coefficients);
    p = e.fma(p, e.mul(r, r), r);
    Value one = e.constant(1), all = e.allLanes();
    Value rest = e.sub(one, e.scaled(one, arith::NegFOp::create(e.b, e.loc, n), all));
    return e.scaled(e.add(p, rest), n, all);
  }
};

/// e^x - 1 of vectors elsewhere: a polynomial up to 1/2, where the exponential would cancel; there it loses two bits.
struct ExpM1Pattern : public OpRewritePattern<math::ExpM1Op> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::ExpM1Op op, PatternRewriter &rewriter) const override {
    if (!isLanes(op.getType()))
      return rewriter.notifyMatchFailure(op, "is no vector of f32");
    LaneBuilder e(rewriter, op);
    Value x = op.getOperand(), magnitude = math::AbsFOp::create(rewriter, e.loc, x);
    Value p = e.polynomial(x, {1.9849810632877052e-4, 1.3996176421642303e-3, 8.333578705787659e-3, 4.166536033153534e-2,
                               1.66666641831398e-1, 5.000000596046448e-1});
    Value near = e.fma(p, e.mul(x, x), x);
    Value far = e.sub(math::ExpOp::create(rewriter, e.loc, x), e.constant(1));
    rewriter.replaceOp(op, e.select(arith::CmpFPredicate::OLT, magnitude, e.constant(0.5), near, far));
    return success();
  }
};

/// log x and log(1 + x) of vectors, without a division: u = x or 1 + x is 2^n m with m in [3/4, 3/2), of which the
/// logarithm is a polynomial in m - 1, made of x so that what 1 + x rounds off is not lost. Numbers below the smallest
/// normal one are taken 2^23 times. Polynomial: minimax for the relative error, 2^-27, on [-1/4, 1/2].
template <typename Op, bool isOnePlus> struct LogPattern : public OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    if (!isLanes(op.getType()))
      return rewriter.notifyMatchFailure(op, "is no vector of f32");
    LaneBuilder e(rewriter, op);
    constexpr int32_t kThreeQuarters = 0x3f400000;
    const double smallest = std::numeric_limits<float>::min();
    const Location loc = e.loc;
    Value x = op.getOperand(), one = e.constant(1);
    Value u = isOnePlus ? e.add(x, one) : x;
    auto ifSmall = [&](Value small, Value other) {
      return isOnePlus ? other : e.select(arith::CmpFPredicate::OLT, u, e.constant(smallest), small, other);
    };
    Value positive = ifSmall(e.mul(u, e.constant(0x1p23)), u);
    Value exponent = arith::ShRSIOp::create(
        rewriter, loc, arith::SubIOp::create(rewriter, loc, e.bits(positive), e.bits(kThreeQuarters)), e.bits(23));
    Value shift = arith::ShLIOp::create(rewriter, loc, exponent, e.bits(23));
    Value f = e.sub(e.fromBits(arith::SubIOp::create(rewriter, loc, e.bits(positive), shift)), one);
    if (isOnePlus) {
      // x 2^-n + (2^-n - 1). Beyond 2^25, where 2^-n may be no normal number, the 1 of 1 + x is lost in any case.
      Value scale = e.fromBits(arith::SubIOp::create(rewriter, loc, e.bits(0x3f800000), shift));
      f = e.select(arith::CmpFPredicate::OGE, u, e.constant(0x1p25), f, e.fma(x, scale, e.sub(scale, one)));
    }
    Value p = e.polynomial(f, {-4.5074816793203354e-2, 1.046302318572998e-1, -1.316119283437729e-1,
                               1.4478394389152527e-1, -1.664731204509735e-1, 1.9990861415863037e-1,
                               -2.500009536743164e-1, 3.333345055580139e-1, -0.5});
    p = e.fma(p, e.mul(f, f), f);
    Value n = arith::SIToFPOp::create(rewriter, loc, e.type, exponent);
    n = ifSmall(e.sub(n, e.constant(23)), n);
    Value result = e.fma(n, e.constant(0.693145751953125), e.fma(n, e.constant(1.42860677e-6), p));
    rewriter.replaceOp(op, e.logarithmOf(u, result));
    return success();
  }
};

/// tanh x as a quotient of polynomials on [-8, 8], beyond which it is 1; coefficients: Eigen, generic fast tanh.
struct TanhAvx512Pattern : public Avx512Pattern<math::TanhOp> {
  using FunctionPattern::FunctionPattern;

  Value emit(const LaneBuilder &e, Value x) const override {
    constexpr double kMost = 7.99881172180175781;
    Value clamped = e.clamp(x, -kMost, kMost), square = e.mul(clamped, clamped);
    Value p =
        e.polynomial(square, {-2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08,
                              1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03});
    Value q =
        e.polynomial(square, {1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03});
    Value result = e.mul(e.mul(clamped, p), e.reciprocal(q));
    Value magnitude = math::AbsFOp::create(e.b, e.loc, x);
    return e.select(arith::CmpFPredicate::OLT, magnitude, e.constant(0.0004), x, result);
  }
};

/// erf x = x g(|x|) with g smooth: a polynomial on each of 16 intervals about the multiples of kErfWidth, whose
/// coefficients a permutation looks up, the highest power first. Minimax for the relative error, at most 3.5 units in
/// the last place with what is rounded. Beyond the last multiple the result is 1. The general form blends the
/// coefficients of three intervals, and divides: three times as many instructions.
constexpr float kErfWidth = 0.26171875f;
constexpr float kErfCoefficients[5][16] = {
    {0.112150267f, 0.0863129199f, 0.0264122821f, -0.0309052486f, -0.0586185046f, -0.0546766743f, -0.0343829356f,
     -0.0139473258f, -0.00110589853f, 0.00419264752f, 0.00504669873f, 0.00419288222f, 0.00306677236f, 0.00215259544f,
     0.00150846993f, 0.00116487173f},
    {-2.80900411e-13f, 0.108052731f, 0.168593839f, 0.164649695f, 0.114845447f, 0.0533197559f, 0.00601491611f,
     -0.0188809801f, -0.0260642208f, -0.0239361357f, -0.0188571941f, -0.0139532499f, -0.0101584643f, -0.00744880363f,
     -0.0055523687f, -0.00419858424f},
    {-0.376121968f, -0.331591725f, -0.218076572f, -0.0825591832f, 0.0294257682f, 0.0951106027f, 0.116736963f,
     0.110014483f, 0.09132424f, 0.0712666735f, 0.0543999597f, 0.0415900685f, 0.0322164036f, 0.0253786054f,
     0.0203269795f, 0.0165283233f},
    {3.55271368e-15f, -0.188978419f, -0.33493039f, -0.413455337f, -0.425615877f, -0.390885621f, -0.333812237f,
     -0.273620188f, -0.22068958f, -0.178216279f, -0.145504162f, -0.12055061f, -0.101363949f, -0.0863827541f,
     -0.0744854212f, -0.0648854524f},
    {1.12837911f, 1.10313666f, 1.03327167f, 0.933781147f, 0.822697461f, 0.71510148f, 0.620024741f, 0.54061687f,
     0.476147413f, 0.424176753f, 0.382007569f, 0.347337902f, 0.318405122f, 0.293914586f, 0.272921056f, 0.25472635f}};

struct ErfAvx512Pattern : public Avx512Pattern<math::ErfOp> {
  using FunctionPattern::FunctionPattern;

  Value emit(const LaneBuilder &e, Value x) const override {
    constexpr float kMost = 15 * kErfWidth;
    Value clamped = e.clamp(x, -kMost, kMost);
    Value magnitude = math::AbsFOp::create(e.b, e.loc, clamped);
    // Adding 1.5 * 2^23 rounds to an integer, which the last bits then are.
    Value magic = e.constant(12582912), shifted = e.fma(magnitude, e.constant(1 / kErfWidth), magic);
    Value rest = e.fma(e.sub(shifted, magic), e.constant(-kErfWidth), magnitude);
    Value g;
    for (ArrayRef<float> ofIntervals : kErfCoefficients) {
      Value table = arith::ConstantOp::create(e.b, e.loc, DenseElementsAttr::get(e.vectorType(), ofIntervals));
      Value coefficient = e.intrinsic("llvm.x86.avx512.permvar.sf.512", {table, e.bits(shifted)});
      g = g ? e.fma(g, rest, coefficient) : coefficient;
    }
    g = e.select(arith::CmpFPredicate::OGE, magnitude, e.constant(kMost), e.constant(1 / kMost), g);
    return e.mul(clamped, g);
  }
};

/// atan2(y, x) of f32: the arctangent of the quotient that is at most 1, turned into its octant. The upstream form, of
/// y / x, gives no number where both are 0 or both are infinite.
struct Atan2Pattern : public OpRewritePattern<math::Atan2Op> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::Atan2Op op, PatternRewriter &b) const override {
    const Type type = op.getType();
    if (!getElementTypeOrSelf(type).isF32())
      return b.notifyMatchFailure(op, "is of another type");
    const Location loc = op.getLoc();
    auto constant = [&](double value) -> Value {
      TypedAttr attr = b.getF32FloatAttr(float(value));
      if (auto vector = dyn_cast<VectorType>(type))
        attr = DenseElementsAttr::get(vector, Attribute(attr));
      return arith::ConstantOp::create(b, loc, attr);
    };
    auto select = [&](arith::CmpFPredicate kind, Value l, Value r, Value yes, Value no) -> Value {
      return arith::SelectOp::create(b, loc, arith::CmpFOp::create(b, loc, kind, l, r), yes, no);
    };
    const Value y = math::AbsFOp::create(b, loc, op.getLhs()), x = math::AbsFOp::create(b, loc, op.getRhs());
    const Value isSteep = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, y, x);
    const Value least = arith::SelectOp::create(b, loc, isSteep, x, y);
    const Value most = arith::SelectOp::create(b, loc, isSteep, y, x);
    Value quotient = arith::DivFOp::create(b, loc, least, most);
    // Equal ones may be infinite, or both 0; nothing equals what is no number.
    quotient = select(arith::CmpFPredicate::OEQ, least, most, constant(1), quotient);
    const Value sum = arith::AddFOp::create(b, loc, least, most);
    quotient = select(arith::CmpFPredicate::OEQ, sum, constant(0), constant(0), quotient);
    Value angle = math::AtanOp::create(b, loc, quotient);
    const Value steep = arith::SubFOp::create(b, loc, constant(M_PI_2), angle);
    angle = arith::SelectOp::create(b, loc, isSteep, steep, angle);
    // Left of 0, and at -0.
    const Value sign = math::CopySignOp::create(b, loc, constant(1), op.getRhs());
    const Value left = arith::SubFOp::create(b, loc, constant(M_PI), angle);
    angle = select(arith::CmpFPredicate::OLT, sign, constant(0), left, angle);
    b.replaceOpWithNewOp<math::CopySignOp>(op, angle, op.getLhs());
    return success();
  }
};

/// What the patterns for GPUs write with, of f32.
struct GpuBuilder : FloatBuilder {
  using FloatBuilder::FloatBuilder;

  /// 2^x, to 2^-22.
  Value exp2(Value x) const { return assemble(x, "ex2.approx.ftz.f32 $0, $1;"); }
  /// What these instructions make of each lane.
  Value assemble(Value x, StringRef instructions) const {
    auto one = [&](ValueRange operand) -> Value {
      return LLVM::InlineAsmOp::create(b, loc, b.getF32Type(), operand.front(), instructions, "=f,f",
                                       /*has_side_effects=*/false, /*is_align_stack=*/false, LLVM::TailCallKind::None,
                                       LLVM::AsmDialectAttr(), /*operand_attrs=*/ArrayAttr())
          .getRes();
    };
    auto vector = dyn_cast<VectorType>(type);
    return vector ? byLanes(b, loc, vector, x, one) : one(x);
  }
};

template <typename Op> using GpuPattern = FunctionPattern<Op, GpuBuilder, isOfF32>;

/// e^x of f32 on GPUs: x log2 e = n + r with n its floor, kept to [-126, 126]: 2^r is one instruction, which overflows
/// and vanishes where it should, and 2^n lies in the bits of the number that floor made. At most 2 units in the last
/// place. The general form has a polynomial, and selects.
struct ExpGpuPattern : public GpuPattern<math::ExpOp> {
  using FunctionPattern::FunctionPattern;

  Value emit(const GpuBuilder &e, Value x) const override {
    // sat(x log2 e / 252 + 1/2) 252 + 12582913, rounded down: 1.5 * 2^23 + n + 127.
    const Value shifted =
        e.assemble(x, "{ .reg .f32 t; fma.rn.sat.f32 t, $1, 0f3BBB989D, 0f3F000000; fma.rm.f32 $0, t, "
                      "0f437C0000, 0f4B400001; }");
    const Value n = e.sub(shifted, e.constant(12583039));
    // log2 e = 1.44269502... + 1.925963e-8, the first a float.
    const Value r = e.fma(x, e.constant(1.925963033500e-8),
                          e.fma(x, e.constant(1.44269504088896341), arith::NegFOp::create(e.b, e.loc, n)));
    const Value power = e.fromBits(arith::ShLIOp::create(e.b, e.loc, e.bits(shifted), e.bits(23)));
    return e.mul(e.exp2(r), power);
  }
};

/// erf x of f32 on GPUs, whose exponential is one instruction: x + x p(x^2) up to 1, 1 - 2^q(|x|) beyond; minimax but
/// for the nodes' choice, at most 2 units in the last place. The general form selects coefficients, one by one.
struct ErfGpuPattern : public GpuPattern<math::ErfOp> {
  using FunctionPattern::FunctionPattern;

  Value emit(const GpuBuilder &e, Value x) const override {
    const Value magnitude = math::AbsFOp::create(e.b, e.loc, x), one = e.constant(1);
    const Value p = e.polynomial(e.mul(x, x), {7.87587487e-05, -0.00080168643, 0.00518908724, -0.0268542115,
                                               0.112835944, -0.37612626, 0.128379167});
    const Value near = e.fma(p, x, x);
    // Beyond 4 the result is 1; what is no number stays.
    const Value clamped = e.select(arith::CmpFPredicate::OGT, magnitude, e.constant(4), e.constant(4), magnitude);
    const Value q = e.polynomial(clamped, {2.36753272e-06, -6.65578045e-05, 0.000861922919, -0.00687083881, 0.038129203,
                                           -0.158831537, -0.911512613, -1.63059294, 0.000464277051});
    const Value far = math::CopySignOp::create(e.b, e.loc, e.sub(one, e.exp2(q)), x);
    return e.select(arith::CmpFPredicate::OLT, magnitude, one, near, far);
  }
};

struct ExpandFunctionsPass : public codegen::impl::ExpandFunctionsPassBase<ExpandFunctionsPass> {
  void runOnOperation() override {
    host::VariantOp variant = getOperation();
    const bool isAvx512 = variant.getMachine().getVectors().bits == 512;
    MLIRContext *context = variant.getContext();
    IRRewriter rewriter(context);
    DominanceInfo dominance(variant);
    eliminateCommonSubExpressions(rewriter, dominance, variant);
    // Which zero a maximum gives is not told (prim.max): one instruction and the NaN's blend, instead of six.
    variant.walk([](Operation *op) {
      if (auto maximum = dyn_cast<arith::MaximumFOp>(op))
        maximum.setFastmath(maximum.getFastmath() | arith::FastMathFlags::nsz);
      else if (auto minimum = dyn_cast<arith::MinimumFOp>(op))
        minimum.setFastmath(minimum.getFastmath() | arith::FastMathFlags::nsz);
    });
    {
      RewritePatternSet patterns(context);
      struct Call {
        StringRef op, function;
        bool f32Too;
      };
      static const Call calls[] = {
          {"math.exp", "tc_exp", false},     {"math.log", "tc_log", false},     {"math.sin", "tc_sin", false},
          {"math.cos", "tc_cos", false},     {"math.asin", "tc_asin", false},   {"math.acos", "tc_acos", false},
          {"math.atan", "tc_atan", false},   {"math.tanh", "tc_tanh", false},   {"math.erf", "tc_erf", false},
          {"math.log1p", "tc_log1p", false}, {"math.expm1", "tc_expm1", false}, {"math.atan2", "tc_atan2", false},
          {"math.powf", "tc_pow", false},    {"arith.remf", "tc_fmod", true}};
      for (const Call &call : calls)
        patterns.add<ScalarCallPattern>(context, call.op, call.function, call.f32Too);
      if (isAvx512) {
        // Before the exponential inside becomes something else.
        RewritePatternSet first(context);
        first.add<LogisticAvx512Pattern>(context);
        expand(variant, std::move(first));
        patterns.add<ExpAvx512Pattern, TanhAvx512Pattern, ErfAvx512Pattern, ExpM1Avx512Pattern>(context, /*benefit=*/3);
      }
      if (variant.getDevice() == machine::DeviceKind::Cuda)
        patterns.add<ErfGpuPattern, ExpGpuPattern>(context, /*benefit=*/3);
      patterns.add<Atan2Pattern, RemainderPattern, ExpF64Pattern, ExpM1F64Pattern, TanhF64Pattern, LogF64Pattern,
                   ExpM1Pattern, LogPattern<math::LogOp, false>, LogPattern<math::Log1pOp, true>>(context,
                                                                                                  /*benefit=*/2);
      MathPolynomialApproximationOptions options;
      options.enableAvx2 = false;
      populateMathPolynomialApproximationPatterns(patterns, options);
      math::populateExpansionPatterns(patterns, {"tan", "copysign"});
      vector::populateVectorBitCastLoweringPatterns(patterns);
      vector::populateVectorBroadcastLoweringPatterns(patterns);
      vector::populateVectorShapeCastLoweringPatterns(patterns);
      expand(variant, std::move(patterns));
    }
  }

  /// Applies patterns to what they are about and to what comes of it. The rest of the code, most of it, is folded by
  /// LLVM.
  static void expand(host::VariantOp variant, RewritePatternSet patterns) {
    SmallVector<Operation *> functions;
    variant.walk([&](Operation *op) {
      if (isa<math::MathDialect>(op->getDialect()) ||
          isa<arith::DivFOp, arith::RemFOp, vector::BitCastOp, vector::BroadcastOp, vector::ShapeCastOp>(op))
        functions.push_back(op);
    });
    GreedyRewriteConfig config;
    config.setStrictness(GreedyRewriteStrictness::ExistingAndNewOps);
    (void)applyOpPatternsGreedily(functions, std::move(patterns), config);
  }
};

} // namespace
