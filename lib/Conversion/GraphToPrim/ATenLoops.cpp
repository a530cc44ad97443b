//===- ATenLoops.cpp - operators of ATen whose steps depend on the data -------------------------------------------===//
//
// Common divisors, exponentials of matrices, Hurwitz' zeta function and the derivatives of log gamma that follow from
// it. A loop goes on until no element needs another step.
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

/// Whether any element of a tensor of bools is true: 0-D.
Value isAny(PrimBuilder &b, Value flags) {
  return b.reduce(ReduceKind::Or, flags, llvm::to_vector(llvm::seq<int64_t>(0, b.rankOf(flags))));
}

//===--- common divisors ------------------------------------------------------------------------------------------===//

/// By Euclid's algorithm, of absolute values: numbers of 64 bits take 91 steps at most.
Value emitGcd(PrimBuilder &b, Value x, Value y) {
  auto isLeft = [&](ValueRange v) { return isAny(b, b.compare(CompareKind::NE, v[1], 0)); };
  return emitTurns(b, b.scalar(b.getI64Type(), 100), {x, y}, isLeft, [&](Value, ValueRange v) -> SmallVector<Value> {
    Value isDone = b.compare(CompareKind::EQ, v[1], 0);
    Value rest = b.binary<RemOp>(v[0], b.select(isDone, b.splatLike(v[1], 1), v[1]));
    return {b.select(isDone, v[0], v[1]), b.select(isDone, v[1], rest)};
  })[0];
}

template <bool isMultiple> LogicalResult commonDivisor(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  auto v = c.promoted({"self", "other"});
  if (failed(v))
    return failure();
  Value x = (*v)[0], y = (*v)[1];
  auto type = dyn_cast<IntegerType>(b.elementOf(x));
  if (!type || type.isInteger(1))
    return ctx.invalid("takes integers, but got " + describe(x));
  auto size = [&](Value value) { return type.isUnsigned() ? value : b.unary<AbsOp>(value); };
  Value divisor = size(emitGcd(b, size(x), size(y)));
  if (!isMultiple)
    return ctx.result(divisor);
  Value isNone = b.compare(CompareKind::EQ, divisor, 0); // of two zeros
  Value quotient = b.div(x, b.select(isNone, b.splatLike(divisor, 1), divisor));
  return ctx.result(size(b.mul(quotient, y)));
}

//===--- zeta and polygamma, of f64 -------------------------------------------------------------------------------===//

/// The sum of 1 / (q + k)^x over k >= 0: nine terms beyond 0, and what follows by Euler and Maclaurin. Source of the
/// coefficients (2k)! / B2k: S. Moshier, Cephes Math Library (1984), zeta.c, as in PyTorch.
Value emitZeta(PrimBuilder &b, Value x, Value q) {
  static constexpr double kTerms[] = {12.0,
                                      -720.0,
                                      30240.0,
                                      -1209600.0,
                                      47900160.0,
                                      -1.8924375803183791606e9,
                                      7.47242496e10,
                                      -2.950130727918164224e12,
                                      1.1646782814350067249e14,
                                      -4.5979787224074726105e15,
                                      1.8152105401943546773e17,
                                      -7.1661652561756670113e18};
  auto power = [&](Value base) { return b.binary<PowOp>(base, b.unary<NegOp>(x)); };
  Value isWhole = b.compare(CompareKind::EQ, b.unary<FloorOp>(q), q), zero = b.splatLike(q, 0);
  Value isPole = b.binary<AndOp>(isWhole, b.compare(CompareKind::LE, q, 0));
  // Left of 0 there are terms before these; places that give no number need none.
  Value isUsed = b.unary<NotOp>(b.binary<OrOp>(isPole, b.compare(CompareKind::LE, x, 1)));
  auto isBelow = [&](Value a) { return b.binary<AndOp>(isUsed, b.compare(CompareKind::LE, a, 0)); };
  ValueRange begun = emitTurns(
      b, b.scalar(b.getI64Type(), 1e6), {q, zero}, [&](ValueRange v) { return isAny(b, isBelow(v[0])); },
      [&](Value, ValueRange v) -> SmallVector<Value> {
        Value flag = isBelow(v[0]);
        return {b.select(flag, b.binary<AddOp>(v[0], 1), v[0]), b.select(flag, b.add(v[1], power(v[0])), v[1])};
      });
  Value a = begun[0], sum = b.add(begun[1], power(a)), last = sum;
  for (int i = 0; i < 9; ++i) {
    a = b.binary<AddOp>(a, 1);
    last = power(a);
    sum = b.add(sum, last);
  }
  sum = b.add(sum, b.div(b.mul(last, a), b.binary<SubOp>(x, 1)));
  sum = b.sub(sum, b.binary<MulOp>(last, 0.5));
  Value inverse = b.unary<ReciprocalOp>(a), part = last;
  for (auto [i, term] : llvm::enumerate(kTerms)) {
    // (x)(x + 1)..(x + 2i) a^-(x + 2i + 1), which vanishes before its factors exceed their range.
    part = b.mul(b.mul(part, b.binary<AddOp>(x, 2.0 * double(i))), inverse);
    Value next = b.binary<MulOp>(part, 1 / term);
    sum = b.add(sum, b.select(b.compare(CompareKind::EQ, next, next), next, zero));
    part = b.mul(b.mul(part, b.binary<AddOp>(x, 2.0 * double(i) + 1)), inverse);
  }
  Value isNone = b.binary<AndOp>(b.compare(CompareKind::LT, q, 0),
                                 b.compare(CompareKind::NE, b.unary<FloorOp>(x), x)); // powers of negative numbers
  isNone = b.binary<OrOp>(isNone, isBelow(begun[0]));                                 // further from 0 than is gone
  sum = b.select(isNone, b.splatLike(x, NAN), sum);
  sum = b.select(isPole, b.splatLike(x, INFINITY), sum);
  sum = b.select(b.compare(CompareKind::LT, x, 1), b.splatLike(x, NAN), sum);
  return b.select(b.compare(CompareKind::EQ, x, 1), b.splatLike(x, INFINITY), sum);
}

/// As PyTorch has it: by reflection left of 1/2, six steps up, and the asymptotic series.
Value emitTrigamma(PrimBuilder &b, Value x) {
  Value isLeft = b.compare(CompareKind::LT, x, 0.5), sine = b.unary<SinOp>(b.binary<MulOp>(x, M_PI));
  Value z = b.select(isLeft, b.sub(b.splatLike(x, 1), x), x);
  Value reflected = b.div(b.splatLike(x, -M_PI * M_PI), b.mul(sine, sine));
  Value sum = b.select(isLeft, reflected, b.splatLike(x, 0));
  for (int i = 0; i < 6; ++i) {
    sum = b.add(sum, b.unary<ReciprocalOp>(b.mul(z, z)));
    z = b.binary<AddOp>(z, 1);
  }
  Value square = b.unary<ReciprocalOp>(b.mul(z, z)), tail = b.splatLike(z, 1.0 / 42);
  for (double next : {1.0 / 30, 1.0 / 6})
    tail = b.sub(b.splatLike(z, next), b.mul(square, tail));
  tail = b.add(b.binary<AddOp>(b.div(b.splatLike(z, 0.5), z), 1), b.mul(square, tail));
  sum = b.add(sum, b.div(tail, z));
  return b.select(isLeft, b.unary<NegOp>(sum), sum);
}

LogicalResult zeta(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Type> type = c.commonType({"self", "other"}, Integers::Floats);
  auto v = failed(type) ? FailureOr<SmallVector<Value>>(failure())
                        : c.promoted({"self", "other"}, Integers::Floats, /*inAccumulator=*/false, b.getF64Type());
  return failed(v) ? failure() : c.rounded(emitZeta(b, (*v)[0], (*v)[1]), *type);
}

/// The derivative of order n + 1 of log gamma.
LogicalResult polygamma(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.floats("self", /*orIntegers=*/true);
  if (failed(self))
    return failure();
  const int64_t order = c.integer("n", 0);
  if (order < 0)
    return ctx.invalid("of order " + Twine(order) + "; it must be 0 or more");
  Value x = b.convert(*self, b.getF64Type());
  if (order == 0)
    return c.rounded(emitDigamma(b, x), b.elementOf(*self));
  if (order == 1)
    return c.rounded(emitTrigamma(b, x), b.elementOf(*self));
  const double factorial = std::tgamma(double(order) + 1) * (order % 2 ? 1 : -1);
  Value sum = emitZeta(b, b.splatLike(x, double(order) + 1), x);
  return c.rounded(b.binary<MulOp>(sum, factorial), b.elementOf(*self));
}

//===--- exponentials of matrices ---------------------------------------------------------------------------------===//

/// A matrix is halved until its norm is at most 1, where 18 terms of the series are exact to f64, and the sum is
/// squared as often. Source: C. Moler, C. Van Loan, "Nineteen Dubious Ways to Compute the Exponential of a Matrix"
/// (2003).
LogicalResult matrixExp(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.floats("self");
  if (failed(self))
    return failure();
  const Sizes sizes = getSizes(*self);
  const size_t rank = sizes.size();
  if (rank < 2)
    return ctx.invalid("takes matrices, of rank 2 or more, but got " + describe(*self));
  if (failed(ctx.requireEqual(sizes[rank - 2], sizes[rank - 1], "square matrices")))
    return failure();
  const Sizes outer(sizes.begin(), sizes.end() - 2);
  const AffineExpr M = sizes[rank - 1], batch = product(b.getContext(), outer);
  const Sizes all{batch, M, M};
  Value x = b.convert(b.reshape(*self, all), b.getF64Type());
  Value norm = b.reduce(ReduceKind::Max, b.reduce(ReduceKind::Sum, b.unary<AbsOp>(x), {1}), {1});
  Value isFinite = b.unary<NotOp>(b.binary<OrOp>(isNan(b, norm), isInf(b, norm)));
  Value times = b.unary<CeilOp>(b.binary<MulOp>(b.unary<LogOp>(b.binary<MaxOp>(norm, 1)), 1 / M_LN2));
  times = b.select(isFinite, times, b.splatLike(times, 0));
  Value scale = b.binary<PowOp>(b.splatLike(times, 2), b.unary<NegOp>(times));
  x = b.mul(x, b.broadcastInDims(scale, all, {0}));
  auto multiply = [&](Value left, Value right) { return emitMatMul(ctx, left, right); };
  Value row = b.iota(b.getI64Type(), all, 1), column = b.iota(b.getI64Type(), all, 2);
  Value unit = b.convert(b.compare(CompareKind::EQ, row, column), b.getF64Type());
  // Four powers, and the series of the highest one with polynomials of the others as coefficients.
  SmallVector<Value> powers{unit, x};
  for (int i = 2; i <= 4; ++i) {
    FailureOr<Value> next = multiply(powers.back(), x);
    if (failed(next))
      return failure();
    powers.push_back(*next);
  }
  Value sum;
  for (int block = 4; block >= 0; --block) {
    Value part = sum;
    if (sum) {
      FailureOr<Value> raised = multiply(sum, powers[4]);
      if (failed(raised))
        return failure();
      part = *raised;
    }
    for (int i = 0; i < 4; ++i) {
      Value term = b.binary<MulOp>(powers[size_t(i)], 1 / std::tgamma(4 * block + i + 1.0));
      part = part ? b.add(part, term) : term;
    }
    sum = part;
  }
  Value most = b.convert(b.reduce(ReduceKind::Max, times, {0}), b.getI64Type());
  bool isWrong = false;
  sum = emitSteps(b, most, {sum}, [&](Value step, ValueRange v) -> SmallVector<Value> {
    FailureOr<Value> squared = multiply(v[0], v[0]);
    if (failed(squared)) {
      isWrong = true;
      return {v[0]};
    }
    Value isLeft = b.compare(CompareKind::LT, b.broadcastTo(b.convert(step, b.getF64Type()), {batch}), times);
    return {b.select(b.broadcastInDims(isLeft, all, {0}), *squared, v[0])};
  })[0];
  return isWrong ? failure() : ctx.result(b.reshape(b.convert(sum, b.elementOf(*self)), sizes));
}

} // namespace

void tc::populateATenLoops(OpRegistrar &onOp) {
  auto on = [&](std::initializer_list<StringRef> types, NodeHandler handler, size_t minOperands = 1) {
    for (StringRef type : types)
      onOp(type, /*sinceVersion=*/1, handler, minOperands);
  };
  on({"gcd.default"}, commonDivisor<false>, 2);
  on({"lcm.default"}, commonDivisor<true>, 2);
  on({"special_zeta.default", "special_zeta.other_scalar", "special_zeta.self_scalar"}, zeta);
  on({"polygamma.default", "special_polygamma.default"}, polygamma);
  on({"matrix_exp.default", "linalg_matrix_exp.default"}, matrixExp);
}
