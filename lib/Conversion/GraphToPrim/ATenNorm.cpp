//===- ATenNorm.cpp - normalisations of ATen ----------------------------------------------------------------------===//
//
// Source: the native function schemas of PyTorch (aten/src/ATen/native/native_functions.yaml).
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ATenSupport.h"
#include "OpRegistry.h"
#include "Windows.h"

#include <limits>

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

constexpr StringLiteral kTraining =
    "in training, where it writes running statistics, is not supported; export the model after "
    "model.eval()";

/// The operand that is normalised, in the type that is computed with: parameters may be of f32 beside one of half
/// precision.
struct Normalised {
  Value x;
  Type type; ///< of the result
};

FailureOr<Normalised> readOperand(Call &c, ArrayRef<StringRef> parameters, StringRef name = "input") {
  PrimBuilder &b = c.b;
  FailureOr<Value> x = c.floats(name);
  if (failed(x))
    return failure();
  Type type = b.elementOf(*x), compute = type;
  for (StringRef parameter : parameters)
    if (Value v = c.tensor(parameter)) {
      if (!b.isFloat(v))
        return c.ctx.invalid("argument \"" + parameter + "\" must be a tensor of floats, but is " + describe(v));
      if (b.elementOf(v).getIntOrFloatBitWidth() > compute.getIntOrFloatBitWidth())
        compute = b.elementOf(v);
    }
  return Normalised{b.convert(*x, compute), type};
}

/// Sets a result besides the first, where something reads it, as the type that the program gives it.
void setStatistic(NodeContext &ctx, size_t i, llvm::function_ref<Value()> emit) {
  if (!ctx.isResultUsed(i))
    return;
  auto declared = dyn_cast<TensorType>(ctx.node()->getResult(i).getType());
  Value v = emit();
  (void)ctx.set(i, declared && isa<FloatType>(declared.getElementType()) ? ctx.b.convert(v, declared.getElementType())
                                                                         : v);
}

/// Mean and variance of `x` over `dims`, which the results lack: in the form that prim.norm takes apart into, so that
/// both are computed once.
struct Statistics {
  Value mean, variance;
};
Statistics statisticsOf(PrimBuilder &b, Value x, ArrayRef<int64_t> dims) {
  Value wide = b.convert(x, b.accumulatorOf(b.elementOf(x))), mean = b.mean(wide, dims);
  SmallVector<int64_t> kept;
  for (int64_t dim = 0; dim < b.rankOf(x); ++dim)
    if (!llvm::is_contained(dims, dim))
      kept.push_back(dim);
  Value centred = b.sub(wide, b.broadcastInDims(mean, getSizes(wide), kept));
  return {mean, b.mean(b.mul(centred, centred), dims)};
}
Value inverseDeviation(PrimBuilder &b, Value variance, double epsilon) {
  return b.unary<RsqrtOp>(b.binary<AddOp>(variance, epsilon));
}

/// Over the last dims, those of normalized_shape.
LogicalResult layerNorm(NodeContext &ctx, bool rms) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Normalised> in = readOperand(c, {"weight", "bias"});
  if (failed(in))
    return failure();
  const Value x = in->x;
  FailureOr<Sizes> shape = c.sizes("normalized_shape");
  if (failed(shape))
    return failure();
  int64_t rank = b.rankOf(x);
  if (shape->empty() || int64_t(shape->size()) > rank)
    return ctx.invalid("normalized_shape does not fit the input");
  const Sizes sizes = getSizes(x);
  for (auto [size, normalized] : llvm::zip(llvm::reverse(sizes), llvm::reverse(*shape)))
    if (failed(ctx.requireEqual(size, normalized, "an input of the normalized_shape")))
      return failure();
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(rank - shape->size(), rank));
  // Without eps, rms_norm takes that of the type which PyTorch computes with.
  const double least =
      b.elementOf(x).isF64() ? std::numeric_limits<double>::epsilon() : double(std::numeric_limits<float>::epsilon());
  const double epsilon = c.number("eps", rms ? least : 1e-5);
  Value y = b.norm(x, dims, epsilon, rms);
  for (StringRef name : {"weight", "bias"}) {
    Value factor = c.tensor(name);
    if (!factor)
      continue;
    FailureOr<Value> spread = ctx.broadcastOnto(b.convert(factor, b.elementOf(y)), getSizes(y));
    if (failed(spread))
      return failure();
    y = name == "weight" ? b.mul(y, *spread) : b.add(y, *spread);
  }
  if (rms) {
    setStatistic(ctx, 1, [&] {
      Value wide = b.convert(x, b.accumulatorOf(b.elementOf(x)));
      return inverseDeviation(b, b.mean(b.mul(wide, wide), dims, /*keepDims=*/true), epsilon);
    });
  } else {
    Sizes ones = sizes;
    for (int64_t dim : dims)
      ones[dim] = b.size(1);
    setStatistic(ctx, 1, [&] { return b.reshape(statisticsOf(b, x, dims).mean, ones); });
    setStatistic(ctx, 2,
                 [&] { return b.reshape(inverseDeviation(b, statisticsOf(b, x, dims).variance, epsilon), ones); });
  }
  return ctx.result(b.convert(y, in->type));
}

/// Weight, bias and running statistics of batch_norm, one number for each channel, in the order of `names`; null where
/// they are absent.
FailureOr<SmallVector<Value>> channelOperands(Call &c, Value x, ArrayRef<StringRef> names, Type compute) {
  NodeContext &ctx = c.ctx;
  if (ctx.b.rankOf(x) < 2)
    return ctx.invalid("takes an input of rank 2 or more, but got " + describe(x));
  SmallVector<Value> all;
  for (StringRef name : names) {
    Value operand = c.tensor(name);
    all.push_back(Value());
    if (!operand)
      continue;
    if (!ctx.b.isFloat(operand) || ctx.b.rankOf(operand) != 1)
      return ctx.invalid("takes statistics, weight and bias of rank 1 and of floats, but got " + describe(operand));
    FailureOr<Value> fitting = ctx.castSizes(ctx.b.convert(operand, compute), {getSizes(x)[1]});
    if (failed(fitting))
      return failure();
    all.back() = *fitting;
  }
  return all;
}

/// x * weight + bias, along dim 1.
FailureOr<Value> scaleChannels(Call &c, Value x) {
  FailureOr<SmallVector<Value>> operands = channelOperands(c, x, {"weight", "bias"}, c.b.elementOf(x));
  if (failed(operands))
    return failure();
  for (size_t i : {0, 1})
    if (Value v = (*operands)[i]) {
      FailureOr<Value> spread = broadcastAlong(c.ctx, v, 1, getSizes(x));
      if (failed(spread))
        return failure();
      x = i == 0 ? c.b.mul(x, *spread) : c.b.add(x, *spread);
    }
  return x;
}

/// With the running statistics; results behind the first have no elements.
LogicalResult batchNormByRunning(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> x = c.floats("input");
  if (failed(x))
    return failure();
  Value variance = c.tensor("running_var");
  if (!variance || !c.tensor("running_mean"))
    return ctx.invalid("needs running_mean and running_var");
  // Statistics are of f32 beside operands of half precision.
  FailureOr<SmallVector<Value>> operands =
      channelOperands(c, *x, {"weight", "bias", "running_mean", "running_var"}, b.elementOf(variance));
  if (failed(operands))
    return failure();
  FailureOr<Value> y =
      emitBatchNorm(ctx, *x, (*operands)[0], (*operands)[1], (*operands)[2], (*operands)[3], c.number("eps", 1e-5),
                    [&](Value v) { return broadcastAlong(ctx, v, 1, getSizes(*x)); });
  if (failed(y))
    return failure();
  for (size_t i = 1; i < std::min<size_t>(ctx.numResults(), 3); ++i)
    setStatistic(ctx, i, [&] { return b.splat(b.elementOf(variance), {b.size(0)}, 0); });
  return ctx.result(*y);
}

/// With the mean and variance of this batch.
LogicalResult batchNormByBatch(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Normalised> in = readOperand(c, {"weight", "bias"});
  if (failed(in))
    return failure();
  const Value x = in->x;
  if (b.rankOf(x) < 2)
    return ctx.invalid("takes an input of rank 2 or more, but got " + describe(x));
  SmallVector<int64_t> dims{0};
  llvm::append_range(dims, llvm::seq<int64_t>(2, b.rankOf(x)));
  const double epsilon = c.number("eps", 1e-5);
  FailureOr<Value> y = scaleChannels(c, b.norm(x, dims, epsilon, /*rms=*/false));
  if (failed(y))
    return failure();
  setStatistic(ctx, 1, [&] { return statisticsOf(b, x, dims).mean; });
  setStatistic(ctx, 2, [&] { return inverseDeviation(b, statisticsOf(b, x, dims).variance, epsilon); });
  return ctx.result(b.convert(*y, in->type));
}

/// Results `first` and the next one: the running statistics moved towards those of the batch, whose variance is that of
/// a sample.
LogicalResult moveStatistics(NodeContext &ctx, size_t first) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> x = c.floats("input"), mean = c.floats("running_mean"), variance = c.floats("running_var");
  if (failed(x) || failed(mean) || failed(variance))
    return failure();
  const Sizes sizes = getSizes(*x), channels{sizes[1]};
  SmallVector<int64_t> dims{0};
  llvm::append_range(dims, llvm::seq<int64_t>(2, b.rankOf(*x)));
  Statistics found = statisticsOf(b, *x, dims);
  const bool isComputed = bool(c.tensor("momentum")); // of a running average: 1 / the number of runs
  const double momentum = isComputed ? 0 : c.number("momentum", 0.1);
  auto move = [&](size_t i, Value running, Value batch) -> LogicalResult {
    const Type compute = b.elementOf(batch);
    FailureOr<Value> fitting = ctx.castSizes(running, channels);
    if (failed(fitting))
      return failure();
    FailureOr<Value> share = isComputed ? c.as("momentum", compute) : b.scalar(compute, momentum);
    if (failed(share))
      return failure();
    auto of = [&](Value value, Value factor, double known) {
      return isComputed ? b.mul(value, b.broadcastTo(factor, channels)) : b.binary<MulOp>(value, known);
    };
    Value kept = of(b.convert(*fitting, compute), b.sub(b.scalar(compute, 1), *share), 1 - momentum);
    Value moved = b.add(kept, of(batch, *share, momentum));
    return setFloats(ctx, i, moved, b.elementOf(running));
  };
  AffineExpr count = b.size(1);
  for (int64_t dim : dims)
    count = simplifySize(count * sizes[dim]);
  auto number = [&](AffineExpr size) {
    return b.broadcastTo(b.convert(b.sizeValue(size), b.elementOf(found.variance)), getSizes(found.variance));
  };
  Value ofSample = b.mul(found.variance, b.div(number(count), number(simplifySize(count - 1))));
  return success(succeeded(move(first, *mean, found.mean)) && succeeded(move(first + 1, *variance, ofSample)));
}

/// Gives what the operator would write as results.
LogicalResult functionalBatchNorm(NodeContext &ctx) {
  Call c(ctx);
  if (c.flag("training"))
    return success(succeeded(batchNormByBatch(ctx)) && succeeded(moveStatistics(ctx, 3)));
  for (auto [i, name] : {std::pair(3, "running_mean"), std::pair(4, "running_var")})
    if (Value kept = c.tensor(name))
      (void)setFloats(ctx, i, kept, ctx.b.elementOf(kept));
  return batchNormByRunning(ctx);
}

/// _batch_norm_with_update_functional: always in training; result 3 is what other devices keep for the gradient.
LogicalResult batchNormWithUpdate(NodeContext &ctx) {
  if (failed(batchNormByBatch(ctx)) || failed(moveStatistics(ctx, 4)))
    return failure();
  return ctx.set(3, ctx.b.splat(ctx.b.getIntegerType(8, /*isSigned=*/false), {ctx.b.size(0)}, 0));
}

LogicalResult batchNorm(NodeContext &ctx) {
  Call c(ctx);
  const bool isRunning = c.tensor("running_mean") && c.tensor("running_var");
  if (c.flag("training") && (c.tensor("running_mean") || c.tensor("running_var")))
    return ctx.unsupported(kTraining);
  return c.flag("training") || !isRunning ? batchNormByBatch(ctx) : batchNormByRunning(ctx);
}

/// Over the dims behind the first two, or (`use_input_stats` false) as batch norm.
LogicalResult instanceNorm(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  if (!c.flag("use_input_stats", true))
    return batchNormByRunning(ctx);
  if (c.tensor("running_mean") || c.tensor("running_var"))
    return ctx.unsupported(kTraining);
  FailureOr<Normalised> in = readOperand(c, {"weight", "bias"});
  if (failed(in))
    return failure();
  if (b.rankOf(in->x) < 3)
    return ctx.invalid("takes an input of rank 3 or more, but got " + describe(in->x));
  NamedAttribute epsilon(b.getStringAttr("epsilon"), b.getF64FloatAttr(c.number("eps", 1e-5)));
  FailureOr<SmallVector<Value>> y =
      ctx.emitOperator("InstanceNormalization", 6, {in->x, c.tensor("weight"), c.tensor("bias")}, epsilon);
  return failed(y) ? failure() : ctx.result(b.convert(y->front(), in->type));
}

LogicalResult groupNorm(NodeContext &ctx, StringRef groupsName) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Normalised> in = readOperand(c, {"weight", "bias"});
  if (failed(in))
    return failure();
  const Value x = in->x;
  const double eps = c.number("eps", 1e-5);
  const int64_t groups = c.integer(groupsName, 0), rank = b.rankOf(x);
  const NamedAttribute attributes[] = {b.getNamedAttr("epsilon", b.getF64FloatAttr(eps)),
                                       b.getNamedAttr("num_groups", b.getI64IntegerAttr(groups))};
  FailureOr<SmallVector<Value>> y =
      ctx.emitOperator("GroupNormalization", 21, {x, c.tensor("weight"), c.tensor("bias")}, attributes);
  if (failed(y))
    return failure();
  const Sizes sizes = getSizes(x);
  Sizes split{sizes[0], b.size(groups), simplifySize(sizes[1].floorDiv(groups))};
  split.append(sizes.begin() + 2, sizes.end());
  const SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(2, rank + 1));
  setStatistic(ctx, 1, [&] { return statisticsOf(b, b.reshape(x, split), dims).mean; });
  setStatistic(ctx, 2, [&] { return inverseDeviation(b, statisticsOf(b, b.reshape(x, split), dims).variance, eps); });
  return ctx.result(b.convert(y->front(), in->type));
}

/// The Euclidean norm over all dims but `dim`, which are kept as 1; -1: over all.
FailureOr<Value> normExceptDim(NodeContext &ctx, Value v, int64_t dim) {
  PrimBuilder &b = ctx.b;
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, b.rankOf(v)));
  if (dim != -1) {
    FailureOr<int64_t> axis = ctx.axis(dim, b.rankOf(v));
    if (failed(axis))
      return failure();
    dims.erase(dims.begin() + *axis);
  }
  Value wide = b.convert(v, b.accumulatorOf(b.elementOf(v)));
  return b.unary<SqrtOp>(b.reduce(ReduceKind::Sum, b.mul(wide, wide), dims, /*keepDims=*/true));
}

/// v g / |v|, the norm over all dims but one.
LogicalResult weightNorm(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> v = c.floats("v"), g = c.floats("g");
  if (failed(v) || failed(g))
    return failure();
  FailureOr<Value> norm = normExceptDim(ctx, *v, c.integer("dim", 0));
  if (failed(norm))
    return failure();
  const Type type = b.elementOf(*v), compute = b.elementOf(*norm);
  FailureOr<Value> spread = ctx.broadcastOnto(b.convert(*g, compute), getSizes(*norm));
  if (failed(spread))
    return failure();
  Value factor = b.broadcastTo(b.div(*spread, *norm), getSizes(*v));
  setStatistic(ctx, 1, [&] { return *norm; });
  return ctx.result(b.convert(b.mul(b.convert(*v, compute), factor), type));
}

/// Slices along `dim` whose p-norm is larger than maxnorm are scaled to have it.
LogicalResult renorm(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.floats("self");
  if (failed(self))
    return failure();
  FailureOr<int64_t> axis = ctx.axis(c.integer("dim", 0), b.rankOf(*self));
  if (failed(axis))
    return failure();
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, b.rankOf(*self)));
  dims.erase(dims.begin() + *axis);
  const double p = c.number("p", 2), most = c.number("maxnorm", 1);
  if (!(p > 0))
    return ctx.invalid("p must be positive");
  const Type type = b.elementOf(*self);
  Value wide = b.convert(*self, b.accumulatorOf(type)), size = b.unary<AbsOp>(wide), norm;
  if (std::isinf(p)) {
    norm = b.reduce(ReduceKind::Max, size, dims, /*keepDims=*/true);
  } else {
    norm = b.reduce(ReduceKind::Sum, b.binary<PowOp>(size, p), dims, /*keepDims=*/true);
    norm = b.binary<PowOp>(norm, 1 / p);
  }
  constexpr double kEpsilon = 1e-7; // of the definition
  Value factor = b.div(b.splatLike(norm, most), b.binary<AddOp>(norm, kEpsilon));
  factor = b.select(b.compare(CompareKind::GT, norm, most), factor, b.splatLike(factor, 1));
  return ctx.result(b.convert(b.mul(wide, b.broadcastTo(factor, getSizes(wide))), type));
}

} // namespace

void tc::populateATenNorm(OpRegistrar &onOp) {
  auto on = [&](StringRef type, NodeHandler handler, size_t minOperands = 1) {
    onOp(type, /*sinceVersion=*/1, std::move(handler), minOperands);
  };
  for (StringRef name : {"layer_norm.default", "native_layer_norm.default"})
    on(name, [](NodeContext &ctx) { return layerNorm(ctx, /*rms=*/false); });
  for (StringRef name : {"rms_norm.default", "_fused_rms_norm.default"})
    on(name, [](NodeContext &ctx) { return layerNorm(ctx, /*rms=*/true); });
  for (StringRef name : {"batch_norm.default", "native_batch_norm.default", "_native_batch_norm_legit.default",
                         "_native_batch_norm_legit.no_stats"})
    on(name, batchNorm);
  for (StringRef name : {"_native_batch_norm_legit_no_training.default", "_batch_norm_no_update.default"})
    on(name, batchNormByRunning, 3);
  on("_native_batch_norm_legit_functional.default", functionalBatchNorm, 3);
  on("_batch_norm_with_update_functional.default", batchNormWithUpdate, 3);
  on("instance_norm.default", instanceNorm);
  on("group_norm.default", [](NodeContext &ctx) { return groupNorm(ctx, "num_groups"); });
  on("native_group_norm.default", [](NodeContext &ctx) { return groupNorm(ctx, "group"); });
  for (StringRef name : {"_weight_norm.default", "_weight_norm_interface.default"})
    on(name, weightNorm, 2);
  on("norm_except_dim.default", [](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    FailureOr<Value> v = c.floats("v");
    if (failed(v))
      return failure();
    if (c.number("pow", 2) != 2)
      return ctx.unsupported("with another power than 2 is not supported");
    FailureOr<Value> norm = normExceptDim(ctx, *v, c.integer("dim", 0));
    return failed(norm) ? failure() : ctx.result(ctx.b.convert(*norm, ctx.b.elementOf(*v)));
  });
  on("renorm.default", renorm);
}
