//===- ONNXElementwise.cpp - arithmetic, activations, comparisons of ONNX -----------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ONNXSupport.h"
#include "OpRegistry.h"
#include "Shared.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

/// Before opset 7 operand 1 was broadcast only with `broadcast=1`, from dim `axis` of operand 0.
LogicalResult alignLegacy(NodeContext &ctx, SmallVector<Value> &values) {
  if (ctx.opset() >= 7 || values.size() != 2 || !ctx.getInt("broadcast", 0) || !ctx.hasAttr("axis"))
    return success();
  int64_t rank = ctx.b.rankOf(values[0]);
  FailureOr<int64_t> axis = ctx.axis(ctx.getInt("axis", 0), rank);
  if (failed(axis))
    return failure();
  Sizes sizes = getSizes(values[1]);
  if (*axis + int64_t(sizes.size()) > rank)
    return ctx.invalid("axis " + Twine(*axis) + " puts operand 1 outside operand 0");
  sizes.append(rank - *axis - sizes.size(), ctx.b.size(1));
  values[1] = ctx.b.reshape(values[1], sizes);
  return success();
}

/// All operands broadcast together; their element types must agree.
FailureOr<SmallVector<Value>> broadcastOperands(NodeContext &ctx, size_t first = 0) {
  SmallVector<Value> values(llvm::drop_begin(ctx.allOperands(), first));
  for (Value v : values) {
    if (!v)
      return ctx.invalid("an operand is missing");
    if (ctx.b.elementOf(v) != ctx.b.elementOf(values.front()))
      return ctx.invalid("operands differ in element type: " + describe(values.front()) + " and " + describe(v));
  }
  if (failed(alignLegacy(ctx, values)) || failed(ctx.broadcastTogether(values)))
    return failure();
  return values;
}

template <typename Op> LogicalResult unary(NodeContext &ctx) { return ctx.result(ctx.b.unary<Op>(ctx.operand(0))); }

template <typename Op> LogicalResult binary(NodeContext &ctx) {
  FailureOr<SmallVector<Value>> v = broadcastOperands(ctx);
  if (failed(v) || v->size() != 2)
    return ctx.invalid("needs two operands");
  return ctx.result(ctx.b.binary<Op>((*v)[0], (*v)[1]));
}

template <typename Op> LogicalResult variadic(NodeContext &ctx) {
  FailureOr<SmallVector<Value>> v = broadcastOperands(ctx);
  if (failed(v))
    return failure();
  Value result = v->front();
  for (Value next : llvm::drop_begin(*v))
    result = ctx.b.binary<Op>(result, next);
  return ctx.result(result);
}

LogicalResult mean(NodeContext &ctx) {
  if (failed(variadic<AddOp>(ctx)))
    return failure();
  return ctx.result(ctx.b.binary<DivOp>(ctx.results()[0], double(ctx.numOperands())));
}

NodeHandler compare(CompareKind kind) {
  return [kind](NodeContext &ctx) -> LogicalResult {
    FailureOr<SmallVector<Value>> v = broadcastOperands(ctx);
    if (failed(v) || v->size() != 2)
      return ctx.invalid("needs two operands");
    return ctx.result(ctx.b.compare(kind, (*v)[0], (*v)[1]));
  };
}

/// Wraps fn(builder, x) for float activations.
NodeHandler activation(Value (*fn)(NodeContext &, Value)) {
  return [fn](NodeContext &ctx) -> LogicalResult { return ctx.result(fn(ctx, ctx.operand(0))); };
}

Value isPositive(NodeContext &ctx, Value x) { return ctx.b.compare(CompareKind::GT, x, 0); }

Value relu(NodeContext &ctx, Value x) { return ctx.b.binary<MaxOp>(x, 0); }
Value leakyRelu(NodeContext &ctx, Value x) {
  Value scaled = ctx.b.binary<MulOp>(x, ctx.getFloat("alpha", 0.01));
  return ctx.b.select(ctx.b.compare(CompareKind::GE, x, 0), x, scaled);
}
Value elu(NodeContext &ctx, Value x) {
  Value negative = ctx.b.binary<MulOp>(ctx.b.unary<Expm1Op>(x), ctx.getFloat("alpha", 1));
  return ctx.b.select(isPositive(ctx, x), x, negative);
}
Value celu(NodeContext &ctx, Value x) {
  double alpha = ctx.getFloat("alpha", 1);
  Value negative = ctx.b.binary<MulOp>(ctx.b.unary<Expm1Op>(ctx.b.binary<DivOp>(x, alpha)), alpha);
  return ctx.b.select(isPositive(ctx, x), x, negative);
}
Value selu(NodeContext &ctx, Value x) {
  Value negative = ctx.b.binary<MulOp>(ctx.b.unary<Expm1Op>(x), ctx.getFloat("alpha", 1.67326319217681884765625));
  return ctx.b.binary<MulOp>(ctx.b.select(isPositive(ctx, x), x, negative),
                             ctx.getFloat("gamma", 1.05070102214813232421875));
}
Value clampUnit(NodeContext &ctx, Value x) { return ctx.b.binary<MinOp>(ctx.b.binary<MaxOp>(x, 0), 1); }
Value hardSigmoid(NodeContext &ctx, Value x) {
  return clampUnit(ctx,
                   ctx.b.binary<AddOp>(ctx.b.binary<MulOp>(x, ctx.getFloat("alpha", 0.2)), ctx.getFloat("beta", 0.5)));
}
Value hardSwish(NodeContext &ctx, Value x) {
  return ctx.b.mul(x, clampUnit(ctx, ctx.b.binary<AddOp>(ctx.b.binary<MulOp>(x, 1.0 / 6), 0.5)));
}
Value softplus(NodeContext &ctx, Value x) { return emitSoftplus(ctx.b, x); }
Value softsign(NodeContext &ctx, Value x) { return ctx.b.div(x, ctx.b.binary<AddOp>(ctx.b.unary<AbsOp>(x), 1)); }
Value mish(NodeContext &ctx, Value x) { return emitMish(ctx.b, x); }
Value swish(NodeContext &ctx, Value x) {
  return ctx.b.mul(x, ctx.b.unary<LogisticOp>(ctx.b.binary<MulOp>(x, ctx.getFloat("alpha", 1))));
}
Value thresholdedRelu(NodeContext &ctx, Value x) {
  return ctx.b.select(ctx.b.compare(CompareKind::GT, x, ctx.getFloat("alpha", 1)), x, ctx.b.splatLike(x, 0));
}
/// Of integers too: computed in floats that hold them, and cut to integers.
LogicalResult shrink(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Type type = b.elementOf(ctx.operand(0));
  bool isWide = isa<IntegerType>(type) && type.getIntOrFloatBitWidth() > 16;
  Value x =
      isa<FloatType>(type) ? ctx.operand(0) : b.convert(ctx.operand(0), isWide ? Type(b.getF64Type()) : b.getF32Type());
  double lambda = ctx.getFloat("lambd", 0.5), bias = ctx.getFloat("bias", 0);
  Value low = b.compare(CompareKind::LT, x, -lambda), high = b.compare(CompareKind::GT, x, lambda);
  Value y = b.select(low, b.binary<AddOp>(x, bias), b.select(high, b.binary<SubOp>(x, bias), b.splatLike(x, 0)));
  return ctx.result(b.convert(y, type));
}

LogicalResult gelu(NodeContext &ctx) {
  Value x = ctx.operand(0);
  return ctx.result(emitGelu(ctx.b, x, ctx.getString("approximate", "none") == "tanh"));
}

LogicalResult prelu(NodeContext &ctx) {
  Value x = ctx.operand(0), slope = ctx.operand(1);
  Sizes sizes = getSizes(x);
  // Before opset 7 a 1-D slope is per channel.
  if (ctx.opset() < 7 && ctx.b.rankOf(slope) == 1 && sizes.size() > 2) {
    Sizes perChannel = getSizes(slope);
    perChannel.append(sizes.size() - 2, ctx.b.size(1));
    slope = ctx.b.reshape(slope, perChannel);
  }
  if (ctx.b.elementOf(x) != ctx.b.elementOf(slope))
    return ctx.invalid("operands differ in element type");
  FailureOr<Value> wide = ctx.broadcastOnto(slope, sizes);
  if (failed(wide))
    return failure();
  return ctx.result(ctx.b.select(ctx.b.compare(CompareKind::GE, x, 0), x, ctx.b.mul(x, *wide)));
}

LogicalResult clip(NodeContext &ctx) {
  Value x = ctx.operand(0);
  if (ctx.opset() < 11) {
    // From Clip-6 on, absent bounds are the ends of f32: infinities become finite.
    constexpr double kEnd = std::numeric_limits<float>::max();
    if (ctx.hasAttr("min") || ctx.opset() >= 6)
      x = ctx.b.binary<MaxOp>(x, ctx.getFloat("min", -kEnd));
    if (ctx.hasAttr("max") || ctx.opset() >= 6)
      x = ctx.b.binary<MinOp>(x, ctx.getFloat("max", kEnd));
    return ctx.result(x);
  }
  for (size_t i : {1, 2})
    if (Value bound = ctx.operand(i)) {
      if (ctx.b.elementOf(bound) != ctx.b.elementOf(x))
        return ctx.invalid("bound " + describe(bound) + " is not a scalar of the operand's element type");
      FailureOr<Value> one = ctx.scalar(bound, "a bound");
      if (failed(one))
        return failure();
      bound = ctx.b.broadcastTo(*one, getSizes(x));
      x = i == 1 ? ctx.b.max(x, bound) : ctx.b.min(x, bound);
    }
  return ctx.result(x);
}

LogicalResult mod(NodeContext &ctx) {
  FailureOr<SmallVector<Value>> v = broadcastOperands(ctx);
  if (failed(v) || v->size() != 2)
    return ctx.invalid("needs two operands");
  Value a = (*v)[0], b = (*v)[1], rest = ctx.b.binary<RemOp>(a, b);
  if (ctx.getInt("fmod", 0))
    return ctx.result(rest);
  if (ctx.b.elementOf(a).isUnsignedInteger())
    return ctx.result(rest);
  // The sign of the divisor: where the remainder's differs, one divisor more.
  Value nonZero = ctx.b.compare(CompareKind::NE, rest, 0);
  Value differ = ctx.b.binary<XorOp>(ctx.b.compare(CompareKind::LT, rest, 0), ctx.b.compare(CompareKind::LT, b, 0));
  Value result = ctx.b.select(ctx.b.binary<AndOp>(nonZero, differ), ctx.b.add(rest, b), rest);
  if (ctx.b.isFloat(a)) { // zeros have the divisor's sign, too
    Value zero = ctx.b.select(ctx.b.compare(CompareKind::LT, b, 0), ctx.b.splatLike(b, -0.0), ctx.b.splatLike(b, 0.0));
    result = ctx.b.select(ctx.b.compare(CompareKind::EQ, rest, 0), zero, result);
  }
  return ctx.result(result);
}

LogicalResult power(NodeContext &ctx) {
  SmallVector<Value> v{ctx.operand(0), ctx.operand(1)};
  Type type = ctx.b.elementOf(v[0]), exponent = ctx.b.elementOf(v[1]);
  if (failed(alignLegacy(ctx, v)) || failed(ctx.broadcastTogether(v)))
    return failure();
  // An integer base with a float exponent is computed as a float.
  Type compute = isa<FloatType>(type) ? type : isa<FloatType>(exponent) ? exponent : type;
  for (Value &x : v)
    x = ctx.b.convert(x, compute);
  return ctx.result(ctx.b.convert(ctx.b.binary<PowOp>(v[0], v[1]), type));
}

LogicalResult where(NodeContext &ctx) {
  SmallVector<Value> v{ctx.operand(0), ctx.operand(1), ctx.operand(2)};
  if (!ctx.b.elementOf(v[0]).isInteger(1))
    return ctx.invalid("condition must be bool, but is " + describe(v[0]));
  if (ctx.b.elementOf(v[1]) != ctx.b.elementOf(v[2]))
    return ctx.invalid("operands differ in element type: " + describe(v[1]) + " and " + describe(v[2]));
  if (failed(ctx.broadcastTogether(v)))
    return failure();
  return ctx.result(ctx.b.select(v[0], v[1], v[2]));
}

LogicalResult isInf(NodeContext &ctx) {
  Value x = ctx.operand(0);
  if (!ctx.b.isFloat(x))
    return ctx.invalid("operand must have a float element type");
  bool negative = ctx.getInt("detect_negative", 1), positive = ctx.getInt("detect_positive", 1);
  Value inf = IsInfOp::create(ctx.b, withElementType(x.getType(), ctx.b.getI1Type()), x);
  if (negative && positive)
    return ctx.result(inf);
  if (!negative && !positive)
    return ctx.result(ctx.b.splatLike(inf, 0));
  return ctx.result(ctx.b.binary<AndOp>(inf, ctx.b.compare(positive ? CompareKind::GT : CompareKind::LT, x, 0)));
}

LogicalResult isNan(NodeContext &ctx) {
  Value x = ctx.operand(0);
  if (!ctx.b.isFloat(x))
    return ctx.invalid("operand must have a float element type");
  return ctx.result(IsNanOp::create(ctx.b, withElementType(x.getType(), ctx.b.getI1Type()), x));
}

LogicalResult bitShift(NodeContext &ctx) {
  std::string direction = ctx.getString("direction", "");
  if (direction == "LEFT")
    return binary<ShlOp>(ctx);
  if (direction == "RIGHT")
    return binary<ShrOp>(ctx);
  return ctx.invalid("direction is \"" + direction + "\"; it may be LEFT or RIGHT");
}

LogicalResult identity(NodeContext &ctx) { return ctx.result(ctx.operand(0)); }

} // namespace

void tc::populateONNXElementwise(OpRegistrar &onOp) {
  onOp("Abs", 1, unary<AbsOp>);
  onOp("Neg", 1, unary<NegOp>);
  onOp("Sign", 1, unary<SignOp>);
  onOp("Ceil", 1, unary<CeilOp>);
  onOp("Floor", 1, unary<FloorOp>);
  onOp("Round", 1, unary<RoundOp>);
  onOp("Sqrt", 1, unary<SqrtOp>);
  onOp("Reciprocal", 1, unary<ReciprocalOp>);
  onOp("Exp", 1, unary<ExpOp>);
  onOp("Log", 1, unary<LogOp>);
  onOp("Sin", 1, unary<SinOp>);
  onOp("Cos", 1, unary<CosOp>);
  onOp("Tan", 1, unary<TanOp>);
  onOp("Asin", 1, unary<AsinOp>);
  onOp("Acos", 1, unary<AcosOp>);
  onOp("Atan", 1, unary<AtanOp>);
  onOp("Sinh", 1, unary<SinhOp>);
  onOp("Cosh", 1, unary<CoshOp>);
  onOp("Tanh", 1, unary<TanhOp>);
  onOp("Asinh", 1, unary<AsinhOp>);
  onOp("Acosh", 1, unary<AcoshOp>);
  onOp("Atanh", 1, unary<AtanhOp>);
  onOp("Erf", 1, unary<ErfOp>);
  onOp("Sigmoid", 1, unary<LogisticOp>);
  onOp("Not", 1, unary<NotOp>);
  onOp("BitwiseNot", 1, unary<NotOp>);

  onOp("Add", 1, binary<AddOp>, 2);
  onOp("Sub", 1, binary<SubOp>, 2);
  onOp("Mul", 1, binary<MulOp>, 2);
  onOp("Div", 1, binary<DivOp>, 2);
  onOp("And", 1, binary<AndOp>, 2);
  onOp("Or", 1, binary<OrOp>, 2);
  onOp("Xor", 1, binary<XorOp>, 2);
  onOp("BitwiseAnd", 1, binary<AndOp>, 2);
  onOp("BitwiseOr", 1, binary<OrOp>, 2);
  onOp("BitwiseXor", 1, binary<XorOp>, 2);
  onOp("BitShift", 1, bitShift, 2);
  onOp("Mod", 1, mod, 2);
  onOp("Pow", 1, power, 2);
  onOp("Max", 1, variadic<MaxOp>);
  onOp("Min", 1, variadic<MinOp>);
  onOp("Sum", 1, variadic<AddOp>);
  onOp("Mean", 1, mean);

  onOp("Equal", 1, compare(CompareKind::EQ), 2);
  onOp("Less", 1, compare(CompareKind::LT), 2);
  onOp("LessOrEqual", 1, compare(CompareKind::LE), 2);
  onOp("Greater", 1, compare(CompareKind::GT), 2);
  onOp("GreaterOrEqual", 1, compare(CompareKind::GE), 2);
  onOp("IsNaN", 1, isNan);
  onOp("IsInf", 1, isInf);
  onOp("Where", 1, where, 3);

  onOp("Relu", 1, [](NodeContext &ctx) { return ctx.result(relu(ctx, ctx.operand(0))); });
  onOp("LeakyRelu", 1, activation(leakyRelu));
  onOp("PRelu", 1, prelu, 2);
  onOp("Elu", 1, activation(elu));
  onOp("Celu", 1, activation(celu));
  onOp("Selu", 1, activation(selu));
  onOp("HardSigmoid", 1, activation(hardSigmoid));
  onOp("HardSwish", 1, activation(hardSwish));
  onOp("Softplus", 1, activation(softplus));
  onOp("Softsign", 1, activation(softsign));
  onOp("Mish", 1, activation(mish));
  onOp("Swish", 1, activation(swish));
  onOp("ThresholdedRelu", 1, activation(thresholdedRelu));
  onOp("Shrink", 1, shrink);
  onOp("Gelu", 20, gelu);
  onOp("Clip", 1, clip);
  onOp("Identity", 1, identity);
  onOp.takeComplex(ComplexUse::Moved, {"Where", "Identity"});
}
