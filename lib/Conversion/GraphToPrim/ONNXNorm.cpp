//===- ONNXNorm.cpp - softmax and normalizations of ONNX ----------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ONNXSupport.h"
#include "OpRegistry.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

NodeHandler softmax(bool log) {
  return [log](NodeContext &ctx) -> LogicalResult {
    PrimBuilder &b = ctx.b;
    Value x = ctx.operand(0);
    int64_t rank = b.rankOf(x);
    if (rank == 0)
      return ctx.result(b.splatLike(x, log ? 0 : 1));
    FailureOr<int64_t> axis = ctx.axis(ctx.getInt("axis", ctx.opset() < 13 ? 1 : -1), rank);
    if (failed(axis))
      return failure();
    auto emit = [&](Value v, int64_t along) -> Value { return SoftmaxOp::create(b, v.getType(), v, along, log); };
    if (ctx.opset() >= 13 || *axis == rank - 1)
      return ctx.result(emit(x, *axis));
    // Before opset 13 all dims from `axis` on were one.
    Sizes sizes = getSizes(x);
    Sizes flat(sizes.begin(), sizes.begin() + *axis);
    flat.push_back(product(b.getContext(), SizesRef(sizes).drop_front(*axis)));
    return ctx.result(b.reshape(emit(b.reshape(x, flat), *axis), sizes));
  };
}

LogicalResult hardmax(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  FailureOr<int64_t> axis = ctx.axis(ctx.getInt("axis", ctx.opset() < 13 ? 1 : -1), b.rankOf(x));
  if (failed(axis))
    return failure();
  Sizes sizes = getSizes(x), flat = sizes;
  if (ctx.opset() < 13) {
    flat.resize(*axis);
    flat.push_back(product(b.getContext(), SizesRef(sizes).drop_front(*axis)));
  }
  Sizes dropped = flat;
  dropped.erase(dropped.begin() + *axis);
  Value best = ArgReduceOp::create(b, makeType(b.getI64Type(), dropped), ReduceKind::Max, b.reshape(x, flat), *axis,
                                   /*lastIndex=*/false);
  Value hot =
      b.compare(CompareKind::EQ, b.iota(b.getI64Type(), flat, *axis), b.broadcastTo(b.unsqueeze(best, *axis), flat));
  return ctx.result(b.reshape(b.convert(hot, b.elementOf(x)), sizes));
}

/// x * scale + bias, both broadcast from the right; computed in x's element type.
FailureOr<Value> scaleAndShift(NodeContext &ctx, Value x, Value scale, Value bias) {
  PrimBuilder &b = ctx.b;
  for (Value v : {scale, bias})
    if (v) {
      FailureOr<Value> wide = ctx.broadcastOnto(b.convert(v, b.elementOf(x)), getSizes(x));
      if (failed(wide))
        return failure();
      x = v == scale ? b.mul(x, *wide) : b.add(x, *wide);
    }
  return x;
}

NodeHandler layerNorm(bool rms) {
  return [rms](NodeContext &ctx) -> LogicalResult {
    PrimBuilder &b = ctx.b;
    Value x = ctx.operand(0);
    int64_t rank = b.rankOf(x);
    FailureOr<int64_t> axis = ctx.axis(ctx.getInt("axis", -1), rank);
    if (failed(axis))
      return failure();
    double epsilon = ctx.getFloat("epsilon", 1e-5);
    SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(*axis, rank));
    Value norm = b.norm(x, dims, epsilon, rms);
    Value bias = rms ? Value() : ctx.operand(2);
    FailureOr<Value> y = scaleAndShift(ctx, norm, ctx.operand(1), bias);
    if (failed(y))
      return failure();
    if (ctx.isResultUsed(1) || ctx.isResultUsed(2)) {
      Value wide = b.convert(x, b.accumulatorOf(b.elementOf(x)));
      Value mean = b.mean(wide, dims, /*keepDims=*/true);
      Value centred = b.sub(wide, b.broadcastTo(mean, getSizes(wide)));
      Value variance = b.mean(b.mul(centred, centred), dims, /*keepDims=*/true);
      FailureOr<Type> stash = readElementType(ctx, "stash_type", /*defaultType=*/1);
      if (failed(stash))
        return failure();
      (void)ctx.set(1, b.convert(mean, *stash));
      (void)ctx.set(2, b.convert(b.unary<RsqrtOp>(b.binary<AddOp>(variance, epsilon)), *stash));
    }
    return ctx.result(*y);
  };
}

LogicalResult batchNorm(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  int64_t rank = b.rankOf(x);
  // Before opset 14 a node in training has more results than Y.
  bool training = ctx.getInt("training_mode", 0);
  for (size_t i = 1; i < 5; ++i)
    training |= ctx.opset() < 14 && !ctx.getInt("is_test", 0) && ctx.isResultUsed(i);
  // Statistics are per channel; before opset 9 also, with spatial 0, per element of what follows N.
  bool perChannel = ctx.getInt("spatial", 1);
  auto spreadStatistic = [&](Value v) -> FailureOr<Value> {
    return perChannel ? broadcastAlong(ctx, v, 1, getSizes(x)) : ctx.broadcastOnto(v, getSizes(x));
  };
  Type compute = b.elementOf(ctx.operand(4));
  Value scale = b.convert(ctx.operand(1), compute), bias = b.convert(ctx.operand(2), compute);
  Value mean = b.convert(ctx.operand(3), compute), variance = ctx.operand(4);
  for (Value *v : {&scale, &bias, &mean}) {
    FailureOr<Value> same = ctx.castSizes(*v, getSizes(variance));
    if (failed(same))
      return failure();
    *v = *same;
  }
  if (training) {
    // Statistics of this batch, and the running ones moved towards them.
    SmallVector<int64_t> dims{0};
    for (int64_t i = 2; i < rank && perChannel; ++i)
      dims.push_back(i);
    Value wide = b.convert(x, b.accumulatorOf(compute)), batchMean = b.mean(wide, dims);
    FailureOr<Value> spread = spreadStatistic(batchMean);
    if (failed(spread))
      return failure();
    Value centred = b.sub(wide, *spread), batchVariance = b.mean(b.mul(centred, centred), dims);
    double momentum = ctx.getFloat("momentum", 0.9);
    auto move = [&](Value running, Value batch) {
      return b.add(b.binary<MulOp>(running, momentum), b.binary<MulOp>(batch, 1 - momentum));
    };
    FailureOr<Value> ofBatch[] = {ctx.castSizes(b.convert(batchMean, compute), getSizes(variance)),
                                  ctx.castSizes(b.convert(batchVariance, compute), getSizes(variance))};
    if (failed(ofBatch[0]) || failed(ofBatch[1]))
      return failure();
    Value running[] = {move(mean, *ofBatch[0]), move(variance, *ofBatch[1])};
    for (size_t i = 0; i < 2; ++i) {
      (void)ctx.set(i + 1, running[i]);
      if (i + 3 < ctx.numResults()) // before opset 14
        (void)ctx.set(i + 3, *ofBatch[i]);
    }
    mean = *ofBatch[0];
    variance = *ofBatch[1];
  }
  FailureOr<Value> y =
      emitBatchNorm(ctx, x, scale, bias, mean, variance, ctx.getFloat("epsilon", 1e-5), spreadStatistic);
  return failed(y) ? failure() : ctx.result(*y);
}

/// x / (bias + alpha / size * s)^beta, where s sums the squares of `size` channels around each one.
LogicalResult localResponseNorm(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  const int64_t size = ctx.getInt("size", 1);
  Value wide = b.convert(x, b.accumulatorOf(b.elementOf(x))), squares = b.mul(wide, wide);
  // window_reduce has its channels last: here, what follows C.
  Sizes sizes = getSizes(x);
  MLIRContext *context = b.getContext();
  squares = b.reshape(squares, {sizes[0], sizes[1], product(context, SizesRef(sizes).drop_front(2))});
  Value sum = WindowReduceOp::create(b, squares.getType(), ReduceKind::Sum, squares, ArrayRef<int64_t>{size},
                                     ArrayRef<int64_t>{1}, ArrayRef<int64_t>{1}, ArrayRef<int64_t>{(size - 1) / 2});
  const double alpha = ctx.getFloat("alpha", 1e-4), beta = ctx.getFloat("beta", 0.75), bias = ctx.getFloat("bias", 1);
  Value base = b.binary<AddOp>(b.binary<MulOp>(b.reshape(sum, sizes), alpha / double(size)), bias);
  // Of what is not negative the usual powers are roots, for a fraction of a logarithm and an exponential.
  const bool isRoot = alpha >= 0 && bias >= 0 && (beta == 0.5 || beta == 0.75);
  Value scale = isRoot ? b.unary<SqrtOp>(base) : b.binary<PowOp>(base, beta);
  if (isRoot && beta == 0.75)
    scale = b.mul(scale, b.unary<SqrtOp>(scale));
  Value y = b.div(wide, scale);
  return ctx.result(b.convert(y, b.elementOf(x)));
}

/// x * scale + bias, of one number for each channel; absent where a front end lets them be.
FailureOr<Value> scaleChannels(NodeContext &ctx, Value x, Value scale, Value bias) {
  PrimBuilder &b = ctx.b;
  for (auto [v, isScale] : {std::pair(scale, true), std::pair(bias, false)})
    if (v) {
      FailureOr<Value> wide = broadcastAlong(ctx, b.convert(v, b.elementOf(x)), 1, getSizes(x));
      if (failed(wide))
        return failure();
      x = isScale ? b.mul(x, *wide) : b.add(x, *wide);
    }
  return x;
}

LogicalResult instanceNorm(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  int64_t rank = b.rankOf(x);
  Value norm = b.norm(x, llvm::to_vector(llvm::seq<int64_t>(2, rank)), ctx.getFloat("epsilon", 1e-5), /*rms=*/false);
  FailureOr<Value> y = scaleChannels(ctx, norm, ctx.operand(1), ctx.operand(2));
  return failed(y) ? failure() : ctx.result(*y);
}

LogicalResult groupNorm(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  Sizes sizes = getSizes(x);
  int64_t rank = sizes.size(), groups = ctx.getInt("num_groups", 0);
  auto channels = getConstantSize(sizes[1]);
  if (channels && *channels % groups != 0)
    return ctx.invalid("num_groups " + Twine(groups) + " does not divide the channels of " + describe(x));
  Sizes grouped{sizes[0], b.size(groups), simplifySize(sizes[1].floorDiv(groups))};
  grouped.append(sizes.begin() + 2, sizes.end());
  FailureOr<Value> groupsOfX = ctx.reshape(x, grouped);
  if (failed(groupsOfX))
    return failure();
  Value split = *groupsOfX;
  Value norm = b.norm(split, llvm::to_vector(llvm::seq<int64_t>(2, rank + 1)), ctx.getFloat("epsilon", 1e-5),
                      /*rms=*/false);
  // Scale and bias are per group before opset 21, per channel since.
  bool perGroup = ctx.opset() < 21;
  if (!perGroup)
    norm = b.reshape(norm, sizes);
  FailureOr<Value> y = scaleChannels(ctx, norm, ctx.operand(1), ctx.operand(2));
  return failed(y) ? failure() : ctx.result(b.reshape(*y, sizes));
}

LogicalResult lpNorm(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  FailureOr<int64_t> axis = ctx.axis(ctx.getInt("axis", -1), b.rankOf(x));
  if (failed(axis))
    return failure();
  int64_t p = ctx.getInt("p", 2);
  Type type = b.elementOf(x);
  x = b.convert(x, b.accumulatorOf(type)); // small numbers have no square in f16
  Value powers = p == 1 ? b.unary<AbsOp>(x) : b.mul(x, x);
  Value norm = b.reduce(ReduceKind::Sum, powers, {*axis}, /*keepDims=*/true);
  if (p == 2)
    norm = b.unary<SqrtOp>(norm);
  Value zero = b.compare(CompareKind::EQ, norm, 0);
  norm = b.select(zero, b.splatLike(norm, 1), norm); // 0 / 0 is 0 here
  return ctx.result(b.convert(b.div(x, b.broadcastTo(norm, getSizes(x))), type));
}

/// ONNX's body takes the variance as E[X^2] - E[X]^2, of which nothing is left far from zero: it is that of what the
/// mean is taken off here.
LogicalResult meanVarianceNorm(NodeContext &ctx) {
  constexpr double kEpsilon = 1e-9; // of the body
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  FailureOr<SmallVector<int64_t>> axes =
      ctx.axes(ctx.getInts("axes").value_or(SmallVector<int64_t>{0, 2, 3}), b.rankOf(x));
  if (failed(axes))
    return failure();
  const Type type = b.elementOf(x);
  x = b.convert(x, b.accumulatorOf(type));
  auto meanOf = [&](Value v) { return b.broadcastTo(b.mean(v, *axes, /*keepDims=*/true), getSizes(x)); };
  Value centred = b.sub(x, meanOf(x)), deviation = b.unary<SqrtOp>(meanOf(b.mul(centred, centred)));
  return ctx.result(b.convert(b.div(centred, b.binary<AddOp>(deviation, kEpsilon)), type));
}

} // namespace

void tc::populateONNXNorm(OpRegistrar &onOp) {
  onOp("Softmax", 1, softmax(/*log=*/false));
  onOp("LogSoftmax", 1, softmax(/*log=*/true));
  onOp("Hardmax", 1, hardmax);
  onOp("LayerNormalization", 1, layerNorm(/*rms=*/false), 2);
  onOp("SimplifiedLayerNormalization", 1, layerNorm(/*rms=*/true), 2);
  onOp("RMSNormalization", 23, layerNorm(/*rms=*/true), 2);
  onOp("BatchNormalization", 1, batchNorm, 5);
  onOp("InstanceNormalization", 1, instanceNorm, 3);
  onOp("GroupNormalization", 18, groupNorm, 3);
  onOp("LpNormalization", 1, lpNorm);
  onOp("MeanVarianceNormalization", 9, meanVarianceNorm);
  onOp("LRN", 1, localResponseNorm);
}
