//===- ATenCreation.cpp - tensors that ATen makes of sizes and numbers, random ones too ---------------------------===//
//
// What empty, new_empty and empty_like leave open is 0 here. Sequences of floats are computed in f64 and rounded once.
//
// Source: the native function schemas of PyTorch (aten/src/ATen/native/native_functions.yaml).
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ATenSupport.h"
#include "OpRegistry.h"
#include "Random.h"

#include <cmath>

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

/// The default type of a number: bool, i64 or the default of floats.
Type defaultOf(Call &c, Type number) {
  return isa<FloatType>(number)     ? c.defaultFloat()
         : isa<ComplexType>(number) ? Type(ComplexType::get(c.defaultFloat()))
                                    : number;
}

/// What a creation fills with: a number, or an argument.
struct Fill {
  double number = 0;
  const char *argument = nullptr;
};

LogicalResult filled(Call &c, SizesRef sizes, Type type, Fill fill) {
  PrimBuilder &b = c.b;
  FailureOr<Value> value = fill.argument ? c.as(fill.argument, type) : FailureOr<Value>(b.scalar(type, fill.number));
  if (failed(value))
    return failure();
  if (b.rankOf(*value) != 0)
    return c.ctx.invalid(Twine("argument \"") + fill.argument + "\" must be one number, but is " + describe(*value));
  return c.ctx.result(b.broadcastTo(*value, sizes));
}

/// Of argument "size", and of the default float type where nothing tells another.
NodeHandler ofSize(Fill fill) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    FailureOr<Sizes> sizes = c.sizes("size");
    Type own = fill.argument ? c.numberType(fill.argument) : Type();
    FailureOr<Type> type =
        failed(sizes) ? FailureOr<Type>(failure()) : c.dtype(own ? defaultOf(c, own) : c.defaultFloat());
    return failed(type) ? failure() : filled(c, *sizes, *type, fill);
  };
}

/// Of the type of "self", and of its sizes or (`hasSize`) those given.
NodeHandler likeSelf(Fill fill, bool hasSize) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    FailureOr<Value> self = c.required("self");
    if (failed(self))
      return failure();
    FailureOr<Sizes> sizes = hasSize ? c.sizes("size") : FailureOr<Sizes>(getSizes(*self));
    FailureOr<Type> type = failed(sizes) ? FailureOr<Type>(failure()) : c.dtype(ctx.b.elementOf(*self));
    return failed(type) ? failure() : filled(c, *sizes, *type, fill);
  };
}

/// One number, of default f32 type.
LogicalResult scalarTensor(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Type> type = c.dtype(c.defaultFloat());
  return failed(type) ? failure() : filled(c, {}, *type, {0, "s"});
}

/// Whether argument `name` is a constant number, which is then in `value`; `otherwise` where it is absent.
bool constantNumber(Call &c, StringRef name, double otherwise, double &value) {
  Attribute attr = c.ctx.attr(name);
  bool isConstant = isa_and_nonnull<IntegerAttr, FloatAttr>(attr);
  value = isConstant ? c.number(name, otherwise) : otherwise;
  return isConstant || (!attr && !c.tensor(name));
}

/// start, start + step, ... below end.
LogicalResult arange(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  bool isReal = false;
  for (StringRef name : {"start", "end", "step"})
    isReal |= isa_and_nonnull<FloatType>(c.numberType(name));
  FailureOr<Type> type = c.dtype(isReal ? c.defaultFloat() : Type(b.getI64Type()));
  if (failed(type))
    return failure();
  if (!isa<FloatType, IntegerType>(*type))
    return ctx.unsupported("of complex numbers is not supported; make it of real ones");
  double start, end, step;
  bool isConstant = constantNumber(c, "start", 0, start);
  isConstant &= constantNumber(c, "end", 0, end);
  if (!constantNumber(c, "step", 1, step))
    return ctx.unsupported("with a step that the program computes is not supported; multiply arange(n) by it");
  // Of integers PyTorch counts the steps as numbers were given, and cuts what is no integer then.
  bool isCut = isReal && isConstant && isa<IntegerType>(*type);
  if (step == 0 || (isCut && std::trunc(step) == 0))
    return ctx.invalid("has a step of 0");
  if (!isConstant && isReal)
    return ctx.unsupported(
        "with floats that the program computes is not supported; compute them of an arange of integers");
  AffineExpr count;
  Value first;
  if (isConstant) {
    double n = std::ceil((end - start) / step);
    if (!(n >= 0) || n >= double(int64_t(1) << kSizeBits))
      return ctx.invalid("goes from " + std::to_string(start) + " to " + std::to_string(end) + " by " +
                         std::to_string(step) + ", which it never reaches, or in too many steps");
    count = b.size(int64_t(n));
    if (!isReal) { // exact beyond 2^53
      FailureOr<Value> exact = c.as("start", b.getI64Type(), 0);
      if (failed(exact))
        return failure();
      first = *exact;
    }
  } else {
    FailureOr<AffineExpr> from = c.size("start", 0), to = failed(from) ? from : c.size("end");
    if (failed(to))
      return failure();
    AffineExpr distance = step > 0 ? *to - *from : *from - *to;
    count = simplifySize(distance.ceilDiv(int64_t(std::abs(step))));
    if (failed(ctx.require(CompareKind::LE, b.size(0), count, "an end that its steps reach")))
      return failure();
    first = b.sizeValue(*from);
  }
  if (isCut)
    start = std::trunc(start), step = std::trunc(step);
  Type compute = isReal ? Type(b.getF64Type()) : Type(b.getI64Type());
  Value v = b.iota(compute, {count}, 0);
  if (step != 1)
    v = b.binary<MulOp>(v, step);
  if (isReal)
    v = b.binary<AddOp>(v, start);
  else if (c.has("start"))
    v = b.add(v, b.broadcastTo(first, {count}));
  FailureOr<Value> result = c.convert(v, *type);
  return failed(result) ? failure() : ctx.result(*result);
}

/// `steps` numbers from start to end, from whichever is nearer; `isLog`: powers of argument "base".
LogicalResult linspace(NodeContext &ctx, bool isLog) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Type> type = c.dtype(c.defaultFloat());
  FailureOr<AffineExpr> steps = failed(type) ? FailureOr<AffineExpr>(failure()) : c.size("steps");
  if (failed(steps))
    return failure();
  if (!isa<FloatType, IntegerType>(*type))
    return ctx.unsupported("of complex numbers is not supported; make it of real ones");
  auto known = getConstantSize(*steps);
  if (!known || *known < 0)
    return ctx.unsupported("with a number of steps that the program computes is not supported; use arange");
  Type f64 = b.getF64Type();
  Sizes sizes{*steps};
  // Bounds of integer sequences are integers, also as exponents.
  const bool isInteger = isa<IntegerType>(*type);
  auto bound = [&](StringRef name) -> FailureOr<Value> {
    FailureOr<Value> value = c.as(name, isInteger ? Type(b.getI64Type()) : f64);
    if (failed(value))
      return failure();
    if (b.rankOf(*value) != 0)
      return ctx.invalid("argument \"" + name + "\" must be one number");
    return b.broadcastTo(b.convert(*value, f64), sizes);
  };
  FailureOr<Value> start = bound("start"), end = failed(start) ? start : bound("end");
  if (failed(end))
    return failure();
  Value step = b.binary<DivOp>(b.sub(*end, *start), double(std::max<int64_t>(*known - 1, 1)));
  Value position = b.iota(f64, sizes, 0), back = b.sub(b.splat(f64, sizes, double(*known - 1)), position);
  Value fromStart = b.add(*start, b.mul(step, position)), fromEnd = b.sub(*end, b.mul(step, back));
  Value v =
      *known == 1 ? *start : b.select(b.compare(CompareKind::LT, position, double(*known / 2)), fromStart, fromEnd);
  if (isLog)
    v = b.binary<PowOp>(b.splatLike(v, c.number("base", 10)), v);
  FailureOr<Value> result = c.convert(v, *type);
  return failed(result) ? failure() : ctx.result(*result);
}

LogicalResult eye(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<AffineExpr> rows = c.size("n"), columns = failed(rows) || !c.has("m") ? rows : c.size("m");
  FailureOr<Type> type = failed(columns) ? FailureOr<Type>(failure()) : c.dtype(c.defaultFloat());
  if (failed(type))
    return failure();
  Sizes sizes{*rows, *columns};
  Value isDiagonal = b.compare(CompareKind::EQ, b.iota(b.getI64Type(), sizes, 0), b.iota(b.getI64Type(), sizes, 1));
  FailureOr<Value> result = c.convert(isDiagonal, *type);
  return failed(result) ? failure() : ctx.result(*result);
}

/// The rows and columns of the elements on one side of a diagonal, in row-major order.
LogicalResult triangleIndices(NodeContext &ctx, bool isLower) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Type> type = c.dtype(b.getI64Type());
  if (failed(type))
    return failure();
  int64_t rows = c.integer("row", -1), columns = c.integer("col", -1), offset = c.integer("offset", 0);
  constexpr int64_t kMost = 4096;
  if (rows < 0 || columns < 0 || rows > kMost || columns > kMost)
    return ctx.unsupported("of a matrix with " + Twine(rows) + " rows and " + Twine(columns) +
                           " columns is not supported; both must be constants up to " + Twine(kMost));
  SmallVector<int64_t> first, second;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      if (isLower ? j - i <= offset : j - i >= offset) {
        first.push_back(i);
        second.push_back(j);
      }
  int64_t count = first.size();
  first.append(second);
  auto tensor = RankedTensorType::get({2, count}, b.getI64Type());
  auto dense = DenseElementsAttr::get(tensor, ArrayRef<int64_t>(first));
  TypedAttr value = dense;
  if (first.size() > 64 && !dense.isSplat())
    value = base::fromDense(dense);
  return ctx.result(b.convert(prim::ConstantOp::create(b, value), *type));
}

//===--- random
//-------------------------------------------------------------------------------------------------------===//

enum class Distribution { Uniform, Normal, Integers };

/// The sizes of a node that makes numbers: argument "size", or those of `like`.
FailureOr<Sizes> sizesOf(Call &c, StringRef like) {
  if (like.empty())
    return c.sizes("size");
  FailureOr<Value> value = c.required(like);
  return failed(value) ? FailureOr<Sizes>(failure()) : FailureOr<Sizes>(getSizes(*value));
}

NodeHandler random(Distribution distribution, StringRef like = "") {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    PrimBuilder &b = ctx.b;
    FailureOr<Sizes> sizes = sizesOf(c, like);
    bool isInteger = distribution == Distribution::Integers;
    Type own = isInteger ? Type(b.getI64Type()) : c.defaultFloat();
    if (succeeded(sizes) && !like.empty())
      own = b.elementOf(c.tensor(like));
    FailureOr<Type> type = failed(sizes) ? FailureOr<Type>(failure()) : c.dtype(own);
    if (failed(type))
      return failure();
    if (isInteger) {
      double low = 0, high = 0;
      if (!constantNumber(c, "low", 0, low) || !constantNumber(c, "high", 0, high) || high <= low)
        return ctx.unsupported("needs constant bounds, the lower below the upper one");
      // Rounding may not reach the upper one.
      Value number = emitUniform(ctx, *sizes, b.getF64Type(), low, high);
      number = b.binary<MinOp>(b.unary<FloorOp>(number), high - 1);
      return ctx.result(b.convert(b.convert(number, b.getI64Type()), *type));
    }
    auto element = dyn_cast<FloatType>(*type);
    if (!element || element.getWidth() < 16)
      return ctx.unsupported("of " + Twine(like.empty() ? "this dtype" : describe(c.tensor(like))) +
                             " is not supported; supported: f16, bf16, f32, f64");
    if (distribution == Distribution::Normal)
      return ctx.result(emitNormal(ctx, *sizes, element, c.number("mean", 0), c.number("std", 1)));
    return ctx.result(emitUniform(ctx, *sizes, element, c.number("from", 0), c.number("to", 1)));
  };
}

/// Normal numbers whose means, standard deviations or both are tensors.
LogicalResult normalOfTensors(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  Value like = c.isNumber("mean") || !c.tensor("mean") ? c.tensor("std") : c.tensor("mean");
  auto element = like ? dyn_cast<FloatType>(b.elementOf(like)) : FloatType();
  if (!element)
    return ctx.invalid("needs a tensor of floats");
  FailureOr<Value> mean = c.as("mean", element, 0), deviation = c.as("std", element, 1);
  if (failed(mean) || failed(deviation))
    return failure();
  Value v[] = {*mean, *deviation};
  if (failed(ctx.broadcastTogether(v)))
    return failure();
  Value number = emitNormal(ctx, getSizes(v[0]), element, 0, 1);
  return ctx.result(b.add(b.mul(number, v[1]), v[0]));
}

/// 1 with the probability that the operand, or argument "p", says.
LogicalResult bernoulli(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  Type type = b.elementOf(*self), compute = isa<FloatType>(type) ? b.accumulatorOf(type) : Type(b.getF32Type());
  FailureOr<Value> chance = c.has("p") ? c.as("p", compute) : c.convert(*self, compute);
  if (failed(chance))
    return failure();
  FailureOr<Value> wide = ctx.broadcastOnto(*chance, getSizes(*self));
  if (failed(wide))
    return failure();
  Value number = emitUniform(ctx, getSizes(*self), cast<FloatType>(compute), 0, 1);
  FailureOr<Value> result = c.convert(b.compare(CompareKind::LT, number, *wide), type);
  return failed(result) ? failure() : ctx.result(*result);
}

/// The order of random numbers.
LogicalResult permutation(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<AffineExpr> count = c.size("n");
  FailureOr<Type> type = failed(count) ? FailureOr<Type>(failure()) : c.dtype(b.getI64Type());
  if (failed(type))
    return failure();
  Value keys = emitUniform(ctx, {*count, b.size(1)}, b.getF64Type(), 0, 1);
  Value order = ArgSortOp::create(b, makeType(b.getI64Type(), {*count}), keys, /*descending=*/false, /*keyBits=*/{});
  FailureOr<Value> result = c.convert(order, *type);
  return failed(result) ? failure() : ctx.result(*result);
}

LogicalResult exponential(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.floats("self");
  if (failed(self))
    return failure();
  Type type = b.elementOf(*self);
  Value number = emitUniform(ctx, getSizes(*self), cast<FloatType>(b.accumulatorOf(type)), 0, 1);
  Value result = b.unary<NegOp>(b.unary<Log1pOp>(b.unary<NegOp>(number)));
  return c.rounded(b.binary<DivOp>(result, c.number("lambd", 1)), type);
}

} // namespace

void tc::populateATenCreation(OpRegistrar &onOp) {
  auto on = [&](std::initializer_list<StringRef> types, const NodeHandler &handler, bool takesComplex = false) {
    for (StringRef type : types) {
      onOp(type, /*sinceVersion=*/1, handler, /*minOperands=*/0);
      if (takesComplex)
        onOp.takeComplex(ComplexUse::Moved, {type});
    }
  };
  on({"zeros.default", "_efficientzerotensor.default", "empty.memory_format", "empty_strided.default",
      "empty_permuted.default"},
     ofSize({0}));
  on({"ones.default"}, ofSize({1}));
  on({"full.default"}, ofSize({0, "fill_value"}));
  on({"new_zeros.default", "new_empty.default", "new_empty_strided.default"}, likeSelf({0}, /*hasSize=*/true), true);
  on({"new_ones.default"}, likeSelf({1}, /*hasSize=*/true), true);
  on({"new_full.default"}, likeSelf({0, "fill_value"}, /*hasSize=*/true), true);
  on({"zeros_like.default", "empty_like.default", "zero.default"}, likeSelf({0}, /*hasSize=*/false), true);
  on({"ones_like.default"}, likeSelf({1}, /*hasSize=*/false), true);
  on({"full_like.default"}, likeSelf({0, "fill_value"}, /*hasSize=*/false), true);
  on({"fill.Scalar", "fill.Tensor"}, likeSelf({0, "value"}, /*hasSize=*/false), true);
  on({"scalar_tensor.default"}, scalarTensor);
  on({"arange.default", "arange.start", "arange.start_step"}, arange);
  on({"linspace.default", "linspace.Tensor_Tensor", "linspace.Tensor_Scalar", "linspace.Scalar_Tensor"},
     [](NodeContext &ctx) { return linspace(ctx, /*isLog=*/false); });
  on({"logspace.default", "logspace.Tensor_Tensor", "logspace.Tensor_Scalar", "logspace.Scalar_Tensor"},
     [](NodeContext &ctx) { return linspace(ctx, /*isLog=*/true); });
  on({"eye.default", "eye.m"}, eye);
  on({"tril_indices.default"}, [](NodeContext &ctx) { return triangleIndices(ctx, /*isLower=*/true); });
  on({"triu_indices.default"}, [](NodeContext &ctx) { return triangleIndices(ctx, /*isLower=*/false); });

  on({"rand.default"}, random(Distribution::Uniform));
  on({"rand_like.default", "uniform.default"}, random(Distribution::Uniform, "self"));
  on({"randn.default", "normal.float_float"}, random(Distribution::Normal));
  on({"randn_like.default", "normal_functional.default"}, random(Distribution::Normal, "self"));
  on({"normal.Tensor_float", "normal.float_Tensor", "normal.Tensor_Tensor"}, normalOfTensors);
  on({"randint.default", "randint.low"}, random(Distribution::Integers));
  on({"randint_like.default", "randint_like.low_dtype"}, random(Distribution::Integers, "self"));
  on({"randperm.default"}, permutation);
  on({"bernoulli.default", "bernoulli.p", "bernoulli.Tensor"}, bernoulli);
  on({"exponential.default"}, exponential);
}
