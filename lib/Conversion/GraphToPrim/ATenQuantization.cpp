//===- ATenQuantization.cpp - quantised tensors of PyTorch's exported programs ------------------------------------===//
//
// PT2E leaves torch.ops.quantized_decomposed: conversions between floats and integers, with operators on floats between
// them. They become what ONNX's QuantizeLinear and DequantizeLinear become, so that the same passes make products of
// bytes. PyTorch multiplies by the reciprocal of a scale where ONNX divides, and holds the results to a range.
//
// Source: torch/ao/quantization/fx/_decomposed.py.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ATenSupport.h"
#include "ONNXSupport.h"
#include "OpRegistry.h"
#include "Windows.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

/// Scales or zero points: one number that is known, or a tensor.
struct Parameter {
  std::optional<double> number;
  Value value;

  bool isZero() const { return number == 0.0; }
};

/// `axis`: nullopt where it must be one for all. An argument that is absent is 0.
FailureOr<Parameter> readParameter(Call &c, StringRef name, std::optional<int64_t> axis = {}) {
  Value value = c.tensor(name);
  if (!value || c.isNumber(name))
    return Parameter{c.number(name, 0), {}};
  if (std::optional<double> number = getSplatValue(value))
    return Parameter{number, {}};
  if (axis)
    return Parameter{{}, value};
  FailureOr<Value> only = c.ctx.scalar(value, "argument \"" + name + "\"");
  if (failed(only))
    return failure();
  return Parameter{{}, *only};
}

/// In `type`, for each element of a tensor of `sizes`.
FailureOr<Value> spread(Call &c, const Parameter &parameter, Type type, SizesRef sizes,
                        std::optional<int64_t> axis = {}) {
  PrimBuilder &b = c.b;
  if (parameter.number)
    return b.splat(type, sizes, *parameter.number);
  Value value = b.convert(parameter.value, type);
  if (axis)
    return broadcastAlong(c.ctx, value, *axis, sizes);
  return b.broadcastTo(value, sizes);
}

/// 1 / scale, computed in `wide` and rounded to `type`.
Parameter invert(Call &c, const Parameter &scale, Type wide, Type type) {
  PrimBuilder &b = c.b;
  if (scale.number)
    return {1 / *scale.number, {}};
  Value value = b.convert(scale.value, wide);
  return {{}, b.convert(b.div(b.splatLike(value, 1), value), type)};
}

FailureOr<Type> integerType(Call &c, StringRef name = "dtype") {
  FailureOr<Type> type = c.dtype(c.b.getI8Type(), name);
  if (failed(type))
    return failure();
  if (!isa<IntegerType>(*type) || type->getIntOrFloatBitWidth() > 32 || type->getIntOrFloatBitWidth() < 8)
    return (void)c.ctx.unsupported("to elements of another type than 8, 16 or 32-bit integers is not supported; choose "
                                   "such a dtype"),
           failure();
  return type;
}

/// What is quantised: f32, as PyTorch converts narrower floats to it.
FailureOr<Value> floatInput(Call &c) {
  FailureOr<Value> x = c.floats("input");
  if (failed(x))
    return failure();
  if (c.b.elementOf(*x).isF64())
    return c.ctx.invalid("takes a tensor of f32, but got " + describe(*x));
  return c.b.convert(*x, c.b.getF32Type());
}

std::pair<double, double> readRange(Call &c) {
  return {double(c.integer("quant_min", -128)), double(c.integer("quant_max", 127))};
}

/// The type of arithmetic of f32 with a tensor of scales.
Type scaleType(PrimBuilder &b, const Parameter &scale) {
  return scale.value && b.elementOf(scale.value).isF64() ? Type(b.getF64Type()) : Type(b.getF32Type());
}

/// How integers stand for floats: by one scale and zero point, or by one for each index of dim `axis`.
struct Scaling {
  std::optional<int64_t> axis;
  Parameter scale, zero;
};

FailureOr<Scaling> readScaling(Call &c, bool perChannel, int64_t rank) {
  Scaling scaling;
  if (perChannel) {
    FailureOr<int64_t> axis = c.ctx.axis(c.integer("axis", 0), rank);
    if (failed(axis))
      return failure();
    scaling.axis = *axis;
  }
  FailureOr<Parameter> scale = readParameter(c, perChannel ? "scales" : "scale", scaling.axis),
                       zero = readParameter(c, perChannel ? "zero_points" : "zero_point", scaling.axis);
  if (failed(scale) || failed(zero))
    return failure();
  scaling.scale = *scale;
  scaling.zero = *zero;
  return scaling;
}

LogicalResult quantize(NodeContext &ctx, bool perChannel) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> x = floatInput(c);
  FailureOr<Type> to = integerType(c);
  if (failed(x) || failed(to))
    return failure();
  const Sizes sizes = getSizes(*x);
  FailureOr<Scaling> scaling = readScaling(c, perChannel, sizes.size());
  if (failed(scaling))
    return failure();
  const auto &[axis, scale, zero] = *scaling;
  // One scale is a number of Python's, which is an f64.
  const Type type = perChannel ? scaleType(b, scale) : b.getF32Type(), wide = perChannel ? type : b.getF64Type();
  FailureOr<Value> factor = spread(c, invert(c, scale, wide, type), type, sizes, axis), offset = Value();
  if (!zero.isZero())
    offset = spread(c, zero, type, sizes, axis);
  if (failed(factor) || failed(offset))
    return failure();
  return ctx.result(saturateTo(b, b.mul(b.convert(*x, type), *factor), *offset, *to, readRange(c)));
}

LogicalResult dequantize(NodeContext &ctx, bool perChannel) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> x = c.required("input");
  FailureOr<Type> out = c.dtype(b.getF32Type(), "out_dtype");
  if (failed(x) || failed(out))
    return failure();
  const Type from = b.elementOf(*x);
  if (!isa<IntegerType>(from) || from.getIntOrFloatBitWidth() > 32 || !isa<FloatType>(*out))
    return ctx.invalid("takes integers of at most 32 bits and gives floats, but got " + describe(*x));
  const Sizes sizes = getSizes(*x);
  FailureOr<Scaling> scaling = readScaling(c, perChannel, sizes.size());
  if (failed(scaling))
    return failure();
  const auto &[axis, scale, zero] = *scaling;
  // Differences of integers of 16 bits are exact in f32, so that they may be taken before the conversion.
  const bool isExact = zero.isZero() || (from.getIntOrFloatBitWidth() <= 16 && (perChannel || out->isF32()) &&
                                         (!zero.value || isa<IntegerType>(b.elementOf(zero.value))));
  const Type type = perChannel ? scaleType(b, scale) : b.accumulatorOf(*out);
  FailureOr<Value> offset = Value(), factor = spread(c, scale, type, sizes, axis);
  if (!zero.isZero())
    offset = spread(c, zero, isExact ? Type(b.getI32Type()) : type, sizes, axis);
  if (failed(factor) || failed(offset))
    return failure();
  // PyTorch converts to the result's type first, unless scales are tensors.
  auto round = [&](Value v) { return perChannel ? v : b.convert(b.convert(v, *out), type); };
  Value y;
  if (isExact)
    y = round(b.convert(subtractZeroPoint(b, *x, *offset), type));
  else
    y = round(b.sub(round(b.convert(*x, type)), *offset));
  return ctx.result(b.convert(b.mul(y, *factor), *out));
}

/// The least and the largest element along `dims`, or 0 where that is beyond.
std::pair<Value, Value> rangeWithZero(PrimBuilder &b, Value x, ArrayRef<int64_t> dims, bool keepDims) {
  Value least = b.reduce(ReduceKind::Min, x, dims, keepDims), most = b.reduce(ReduceKind::Max, x, dims, keepDims);
  return {b.min(least, b.splatLike(least, 0)), b.max(most, b.splatLike(most, 0))};
}

/// The range of all elements with 0 in it, the one scale for it, and the zero point: f64 [1] and i64 [1].
LogicalResult chooseParameters(NodeContext &ctx, bool symmetric) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> x = c.floats("input");
  FailureOr<Type> to = integerType(c);
  if (failed(x) || failed(to))
    return failure();
  if (!b.elementOf(*x).isF32())
    return ctx.unsupported("of " + describe(*x) + " is not supported; convert it to float32 first");
  auto [low, high] = std::pair(double(c.integer("quant_min", 0)), double(c.integer("quant_max", 255)));
  if (!(low < high))
    return ctx.invalid("quant_min " + Twine(int64_t(low)) + " is not below quant_max " + Twine(int64_t(high)));
  auto all = llvm::to_vector(llvm::seq<int64_t>(0, b.rankOf(*x)));
  const auto [least, most] = rangeWithZero(b, *x, all, /*keepDims=*/false);
  Value eps = b.splatLike(least, c.number("eps", 0)), scale, zero;
  if (symmetric) {
    Value reach = b.max(b.unary<NegOp>(least), most);
    scale = b.max(b.div(reach, b.splatLike(reach, (high - low) / 2)), eps);
    zero = b.splat(b.getI64Type(), {}, to->isUnsignedInteger(8) ? 128 : 0);
  } else {
    scale = b.max(b.div(b.sub(most, least), b.splatLike(least, high - low)), eps);
    Value steps = b.convert(b.unary<RoundOp>(b.div(least, scale)), b.getI32Type());
    zero = b.sub(b.splatLike(steps, low), steps);
    zero = b.convert(b.min(b.max(zero, b.splatLike(zero, low)), b.splatLike(zero, high)), b.getI64Type());
  }
  const Sizes one = {b.size(1)};
  if (failed(ctx.result(b.reshape(b.convert(scale, b.getF64Type()), one))))
    return failure();
  return ctx.set(1, b.reshape(zero, one));
}

/// A scale and a zero point for each row of the last dim, of i8: f64 and i64 [.., 1].
LogicalResult chooseForTokens(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> x = c.floats("input");
  if (failed(x))
    return failure();
  const int64_t rank = b.rankOf(*x);
  if (!b.elementOf(*x).isF32() || rank == 0)
    return ctx.unsupported("of " + describe(*x) + " is not supported; give float32 with at least one dim");
  const std::pair<Value, Value> range = rangeWithZero(b, *x, {rank - 1}, /*keepDims=*/true);
  Value least = range.first, most = range.second;
  auto number = [&](double value) { return b.splatLike(least, value); };
  Value scale = b.max(b.div(b.sub(most, least), number(255)), number(std::numeric_limits<float>::epsilon()));
  Value below = b.div(least, scale), above = b.div(most, scale);
  Value isBelow = b.compare(CompareKind::GT, b.add(b.add(below, number(-128)), b.add(above, number(127))), 0);
  Value zero = b.select(isBelow, b.sub(number(-128), below), b.sub(number(127), above));
  zero = b.unary<RoundOp>(b.min(b.max(zero, number(-128)), number(127)));
  if (failed(ctx.result(b.convert(scale, b.getF64Type()))))
    return failure();
  return ctx.set(1, b.convert(zero, b.getI64Type()));
}

/// Parameters that broadcast, of tokens or of groups: `sizes` are those of `x` as PyTorch sees it then.
LogicalResult quantizeSpread(Call &c, Value x, Value scales, Value zeros) {
  PrimBuilder &b = c.b;
  FailureOr<Type> to = integerType(c);
  if (failed(to))
    return failure();
  const Type type = scaleType(b, {{}, scales});
  scales = b.convert(scales, type);
  FailureOr<Value> factor = c.ctx.broadcastOnto(b.div(b.splatLike(scales, 1), scales), getSizes(x)),
                   offset = c.ctx.broadcastOnto(b.convert(zeros, type), getSizes(x));
  if (failed(factor) || failed(offset))
    return failure();
  // The zero point is added before the sum is rounded.
  Value q = b.add(b.mul(b.convert(x, type), *factor), *offset);
  return c.ctx.result(b.reshape(saturateTo(b, q, Value(), *to, readRange(c)), getSizes(c.tensor("input"))));
}

LogicalResult dequantizeSpread(Call &c, Value x, Value scales, Value zeros) {
  PrimBuilder &b = c.b;
  FailureOr<Type> out = c.dtype(b.getF32Type(), "output_dtype");
  if (failed(out))
    return failure();
  Type type = scaleType(b, {{}, scales}), from = b.elementOf(x);
  if (!isa<IntegerType>(from) || from.getIntOrFloatBitWidth() > 16 || !isa<FloatType>(*out))
    return c.ctx.invalid("takes integers of at most 16 bits and gives floats, but got " + describe(x));
  FailureOr<Value> factor = c.ctx.broadcastOnto(b.convert(scales, type), getSizes(x)), offset = Value();
  if (zeros)
    offset = c.ctx.broadcastOnto(zeros, getSizes(x));
  if (failed(factor) || failed(offset))
    return failure();
  Value y = *offset && isa<FloatType>(b.elementOf(*offset)) ? b.sub(b.convert(x, type), b.convert(*offset, type))
                                                            : b.convert(subtractZeroPoint(b, x, *offset), type);
  return c.ctx.result(b.reshape(b.convert(b.mul(y, *factor), *out), getSizes(c.tensor("input"))));
}

template <bool isBack> LogicalResult perToken(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> x = isBack ? c.required("input") : floatInput(c), scales = c.floats("scales"),
                   zeros = c.required("zero_points");
  if (failed(x) || failed(scales) || failed(zeros))
    return failure();
  return isBack ? dequantizeSpread(c, *x, *scales, *zeros) : quantizeSpread(c, *x, *scales, *zeros);
}

template <bool isBack> LogicalResult perGroup(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> x = isBack ? c.required("input") : floatInput(c), scales = c.floats("scales");
  if (failed(x) || failed(scales))
    return failure();
  const Sizes sizes = getSizes(*x), scaleSizes = getSizes(*scales);
  std::optional<int64_t> width = sizes.size() == 2 ? getConstantSize(sizes[1]) : std::nullopt;
  int64_t group = c.integer("group_size", 128);
  if (width && group > *width && !scaleSizes.empty() && getConstantSize(scaleSizes.back()) == 1)
    group = *width;
  if (!width || group <= 1 || *width % group != 0)
    return ctx.invalid("takes a matrix whose rows divide into groups of " + Twine(group) + ", but got " + describe(*x));
  const AffineExpr rows = simplifySize(sizes[0] * (*width / group));
  Value zeros = c.tensor("zero_points");
  auto column = [&](Value v) { return b.reshape(v, {product(b.getContext(), getSizes(v)), b.size(1)}); };
  Value parts = b.reshape(*x, {rows, b.size(group)});
  if (!isBack && !zeros)
    return ctx.invalid("argument \"zero_points\" is missing");
  return isBack ? dequantizeSpread(c, parts, column(*scales), zeros ? column(zeros) : Value())
                : quantizeSpread(c, parts, column(*scales), column(zeros));
}

/// What a tensor is after it was quantised, and with `hasMask` where it was in range. Source: FakeQuantize's CPU
/// kernels (aten/src/ATen/native/quantized/cpu/kernels/QuantizedOpKernels.cpp): the scale and its reciprocal are f32.
template <bool perChannel, bool hasMask> LogicalResult fakeQuantize(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.floats("self");
  if (failed(self))
    return failure();
  const Type type = b.elementOf(*self), compute = b.accumulatorOf(type), single = b.getF32Type();
  const Sizes sizes = getSizes(*self);
  std::optional<int64_t> axis;
  if (perChannel) {
    FailureOr<int64_t> dim = ctx.axis(c.integer("axis", 0), int64_t(sizes.size()));
    if (failed(dim))
      return failure();
    axis = *dim;
  }
  FailureOr<Parameter> scale = readParameter(c, "scale", axis), zero = readParameter(c, "zero_point", axis);
  if (failed(scale) || failed(zero))
    return failure();
  FailureOr<Value> step = spread(c, *scale, single, sizes, axis), offset = spread(c, *zero, compute, sizes, axis);
  if (failed(step) || failed(offset))
    return failure();
  const auto [low, high] = std::pair(double(c.integer("quant_min", 0)), double(c.integer("quant_max", 255)));
  Value inverse = b.convert(b.div(b.splatLike(*step, 1), *step), compute), x = b.convert(*self, compute);
  const bool isBetween = zero->value && isa<FloatType>(b.elementOf(zero->value)); // zero is then no integer
  Value place = b.mul(x, inverse);
  place = isBetween ? b.unary<RoundOp>(b.add(place, *offset)) : b.add(b.unary<RoundOp>(place), *offset);
  Value isAbove = b.compare(CompareKind::GE, place, low), isBelow = b.compare(CompareKind::LE, place, high);
  // NaN, too, is the lowest one.
  Value held = b.select(isAbove, b.binary<MinOp>(place, high), b.splatLike(place, low));
  Value result = b.mul(b.sub(held, *offset), b.convert(*step, compute)), isIn = b.binary<AndOp>(isAbove, isBelow);
  if (Value enabled = c.tensor("fake_quant_enabled")) {
    FailureOr<Value> flag = ctx.scalar(enabled, "argument \"fake_quant_enabled\"");
    if (failed(flag))
      return failure();
    Value isOn = b.broadcastTo(b.compare(CompareKind::NE, *flag, 0), sizes);
    result = b.select(isOn, result, x);
    isIn = b.binary<OrOp>(isIn, b.unary<NotOp>(isOn));
  }
  if (failed(c.rounded(result, type)))
    return failure();
  return hasMask ? ctx.set(1, isIn) : success();
}

LogicalResult convertElements(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> x = c.required("input");
  FailureOr<Type> to = c.dtype(c.b.getF32Type());
  FailureOr<Value> result = failed(x) || failed(to) ? FailureOr<Value>(failure()) : c.convert(*x, *to);
  return failed(result) ? failure() : ctx.result(*result);
}

} // namespace

void tc::populateATenFakeQuantization(OpRegistrar &onOp) {
  auto on = [&](std::initializer_list<StringRef> types, NodeHandler handler) {
    for (StringRef type : types)
      onOp(type, /*sinceVersion=*/1, handler, /*minOperands=*/1);
  };
  on({"fake_quantize_per_tensor_affine.default", "fake_quantize_per_tensor_affine.tensor_qparams"},
     fakeQuantize<false, false>);
  on({"fake_quantize_per_tensor_affine_cachemask.default",
      "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default"},
     fakeQuantize<false, true>);
  on({"fake_quantize_per_channel_affine.default"}, fakeQuantize<true, false>);
  on({"fake_quantize_per_channel_affine_cachemask.default"}, fakeQuantize<true, true>);
}

void tc::populateTorchQuantization(OpRegistrar &onOp) {
  auto on = [&](std::initializer_list<StringRef> types, NodeHandler handler, size_t minOperands) {
    for (StringRef type : types)
      onOp(type, /*sinceVersion=*/1, handler, minOperands);
  };
  on(
      {"quantize_per_tensor.default", "quantize_per_tensor.tensor", "quantize_per_tensor.tensor2"},
      [](NodeContext &ctx) { return quantize(ctx, /*perChannel=*/false); }, 1);
  on(
      {"dequantize_per_tensor.default", "dequantize_per_tensor.tensor", "dequantize_per_tensor.tensor2"},
      [](NodeContext &ctx) { return dequantize(ctx, /*perChannel=*/false); }, 1);
  on({"quantize_per_channel.default"}, [](NodeContext &ctx) { return quantize(ctx, /*perChannel=*/true); }, 3);
  on({"dequantize_per_channel.default"}, [](NodeContext &ctx) { return dequantize(ctx, /*perChannel=*/true); }, 2);
  on({"choose_qparams.tensor"}, [](NodeContext &ctx) { return chooseParameters(ctx, /*symmetric=*/false); }, 1);
  on(
      {"choose_qparams_symmetric.tensor"}, [](NodeContext &ctx) { return chooseParameters(ctx, /*symmetric=*/true); },
      1);
  on({"choose_qparams_per_token_asymmetric.default", "_choose_qparams_per_token_asymmetric_impl.default"},
     chooseForTokens, 1);
  on({"convert_element_type.no_fuse"}, convertElements, 1);
  on({"quantize_per_token.default"}, perToken<false>, 3);
  on({"dequantize_per_token.default"}, perToken<true>, 3);
  on({"quantize_per_channel_group.default"}, perGroup<false>, 3);
  on({"dequantize_per_channel_group.default"}, perGroup<true>, 2);
}
