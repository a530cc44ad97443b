//===- MicrosoftFused.cpp - fused operators of com.microsoft ------------------------------------------------------===//
//
// What ONNX Runtime's optimiser writes in place of a few nodes, taken apart again: tc's own fusion decides what becomes
// one kernel. Source: ONNX Runtime, docs/ContribOperators.md.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ONNXSupport.h"
#include "OpRegistry.h"
#include "Shared.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

//===--- activations ----------------------------------------------------------------------------------------------===//

/// x + bias, which has the size of x's last dim and may be null.
FailureOr<Value> addBias(NodeContext &ctx, Value x, Value bias) {
  if (!bias)
    return x;
  if (ctx.b.rankOf(x) < 1 || ctx.b.elementOf(x) != ctx.b.elementOf(bias))
    return ctx.invalid("the bias " + describe(bias) + " can't be added to " + describe(x));
  FailureOr<Value> wide = broadcastAlong(ctx, bias, ctx.b.rankOf(x) - 1, getSizes(x));
  return failed(wide) ? FailureOr<Value>(failure()) : FailureOr<Value>(ctx.b.add(x, *wide));
}

LogicalResult gelu(NodeContext &ctx) {
  FailureOr<Value> x = addBias(ctx, ctx.operand(0), ctx.operand(1));
  return failed(x) ? failure() : ctx.result(emitGelu(ctx.b, *x));
}

LogicalResult fastGelu(NodeContext &ctx) {
  FailureOr<Value> x = addBias(ctx, ctx.operand(0), ctx.operand(1));
  return failed(x) ? failure() : ctx.result(emitGelu(ctx.b, *x, /*usesTanh=*/true));
}

LogicalResult quickGelu(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  return ctx.result(b.mul(x, b.unary<LogisticOp>(b.binary<MulOp>(x, ctx.getFloat("alpha", 1.702)))));
}

/// The left half of the columns times the gelu of the right half.
LogicalResult biasSplitGelu(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  FailureOr<Value> x = addBias(ctx, ctx.operand(0), ctx.operand(1));
  if (failed(x))
    return failure();
  int64_t last = b.rankOf(*x) - 1;
  AffineExpr half = ctx.divide(getSizes(*x)[last], b.size(2));
  if (failed(ctx.requireEqual(half * 2, getSizes(*x)[last], "an even number of columns")))
    return failure();
  Value left = b.sliceDim(*x, last, b.size(0), half), right = b.sliceDim(*x, last, half, half);
  return ctx.result(b.mul(left, emitGelu(b, right)));
}

LogicalResult biasAdd(NodeContext &ctx) {
  FailureOr<Value> x = addBias(ctx, ctx.operand(0), ctx.operand(1));
  if (failed(x))
    return failure();
  FailureOr<Value> skip = ctx.castSizes(ctx.operand(2), getSizes(*x));
  return failed(skip) ? failure() : ctx.result(ctx.b.add(*x, *skip));
}

/// The activation that the attribute `name` tells, with parameters in `name`_params.
FailureOr<Value> emitActivation(NodeContext &ctx, Value x) {
  PrimBuilder &b = ctx.b;
  std::string kind = ctx.getString("activation", "");
  SmallVector<double> parameters = ctx.getFloats("activation_params").value_or(SmallVector<double>());
  for (StringRef name : {"activation_alpha", "activation_beta"})
    if (ctx.hasAttr(name))
      parameters.push_back(ctx.getFloat(name, 0));
  auto parameter = [&](size_t i, double otherwise) { return i < parameters.size() ? parameters[i] : otherwise; };
  if (kind.empty())
    return x;
  if (kind == "Relu")
    return b.binary<MaxOp>(x, 0);
  if (kind == "Sigmoid")
    return b.unary<LogisticOp>(x);
  if (kind == "Tanh")
    return b.unary<TanhOp>(x);
  if (kind == "LeakyRelu")
    return b.select(b.compare(CompareKind::GE, x, 0), x, b.binary<MulOp>(x, parameter(0, 0.01)));
  if (kind == "Clip")
    return b.binary<MinOp>(b.binary<MaxOp>(x, parameter(0, -INFINITY)), parameter(1, INFINITY));
  if (kind == "HardSigmoid") {
    Value line = b.binary<AddOp>(b.binary<MulOp>(x, parameter(0, 0.2)), parameter(1, 0.5));
    return b.binary<MinOp>(b.binary<MaxOp>(line, 0), 1);
  }
  return ctx.unsupported("with activation \"" + kind +
                         "\" is not supported; supported: Relu, Sigmoid, Tanh, LeakyRelu, Clip, HardSigmoid");
}

//===--- products and convolutions --------------------------------------------------------------------------------===//

/// alpha * op(A) op(B), where op exchanges the last two dims (trans), or moves dim 0 behind the batch (transBatch).
LogicalResult fusedMatMul(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value sides[] = {ctx.operand(0), ctx.operand(1)};
  for (auto [v, side] : llvm::zip_equal(sides, StringRef("AB"))) {
    int64_t rank = b.rankOf(v);
    bool trans = ctx.getInt((Twine("trans") + Twine(side)).str(), 0),
         transBatch = ctx.getInt((Twine("transBatch") + Twine(side)).str(), 0);
    if (rank < 2)
      continue; // a vector is its own transpose
    SmallVector<int64_t> permutation = llvm::to_vector(llvm::seq<int64_t>(0, rank));
    // [M, B.., K] becomes [B.., M, K]: what was dim 0 comes last but one.
    if (transBatch)
      std::rotate(permutation.begin(), permutation.begin() + 1, permutation.end() - 1);
    if (trans)
      std::swap(permutation[rank - 1], permutation[rank - 2]);
    v = b.transpose(v, permutation);
  }
  FailureOr<Value> y = emitMatMul(ctx, sides[0], sides[1]);
  if (failed(y))
    return failure();
  double alpha = ctx.getFloat("alpha", 1);
  return ctx.result(alpha == 1 ? *y : b.binary<MulOp>(*y, alpha));
}

LogicalResult fusedGemm(NodeContext &ctx) {
  FailureOr<Value> y = ctx.emitAs("Gemm", 13, ctx.allOperands());
  if (failed(y))
    return failure();
  y = emitActivation(ctx, *y);
  return failed(y) ? failure() : ctx.result(*y);
}

/// A convolution, then a tensor added to it, then an activation; with channels first or last.
NodeHandler fusedConv(bool channelsLast) {
  return [channelsLast](NodeContext &ctx) -> LogicalResult {
    PrimBuilder &b = ctx.b;
    Value x = ctx.operand(0);
    int64_t rank = b.rankOf(x);
    if (channelsLast)
      x = b.transpose(x, toChannelsFirst(rank));
    FailureOr<Value> y = emitConv(ctx, x, ctx.operand(1), ctx.operand(2));
    if (failed(y))
      return failure();
    if (channelsLast)
      y = b.transpose(*y, toChannelsLast(rank));
    if (Value addend = ctx.operand(3)) {
      FailureOr<Value> fitting = ctx.castSizes(addend, getSizes(*y));
      if (failed(fitting))
        return failure();
      y = b.add(*y, *fitting);
    }
    y = emitActivation(ctx, *y);
    return failed(y) ? failure() : ctx.result(*y);
  };
}

//===--- normalisations -------------------------------------------------------------------------------------------===//

/// A norm along the last dim with its scale and shift, either of which may be null.
FailureOr<Value> emitLayerNorm(NodeContext &ctx, Value x, Value scale, Value shift, bool rms, double epsilon) {
  PrimBuilder &b = ctx.b;
  int64_t last = b.rankOf(x) - 1;
  Value y = b.norm(x, {last}, epsilon, rms);
  for (Value v : {scale, shift})
    if (v) {
      FailureOr<Value> wide = broadcastAlong(ctx, b.convert(v, b.elementOf(x)), last, getSizes(x));
      if (failed(wide))
        return failure();
      y = v == scale ? b.mul(y, *wide) : b.add(y, *wide);
    }
  return y;
}

/// Results 1 and 2: mean (for what is no root mean square) and reciprocal deviation of each row.
void setStatistics(NodeContext &ctx, Value x, bool rms, double epsilon) {
  PrimBuilder &b = ctx.b;
  if (!ctx.isResultUsed(1) && !ctx.isResultUsed(2))
    return;
  int64_t last = b.rankOf(x) - 1;
  Value wide = b.convert(x, b.accumulatorOf(b.elementOf(x)));
  if (!rms) {
    Value mean = b.mean(wide, {last}, /*keepDims=*/true);
    (void)ctx.set(1, mean);
    wide = b.sub(wide, b.broadcastTo(mean, getSizes(wide)));
  }
  Value variance = b.mean(b.mul(wide, wide), {last}, /*keepDims=*/true);
  (void)ctx.set(2, b.unary<RsqrtOp>(b.binary<AddOp>(variance, epsilon)));
}

/// norm(input + skip + bias): the operands are input, skip, gamma, (without `rms`) beta, bias.
NodeHandler skipLayerNorm(bool rms) {
  return [rms](NodeContext &ctx) -> LogicalResult {
    PrimBuilder &b = ctx.b;
    Value x = ctx.operand(0), skip = ctx.operand(1);
    FailureOr<Value> wide = ctx.broadcastOnto(skip, getSizes(x));
    if (failed(wide))
      return failure();
    FailureOr<Value> sum = addBias(ctx, b.add(x, *wide), ctx.operand(rms ? 3 : 4));
    if (failed(sum))
      return failure();
    double epsilon = ctx.getFloat("epsilon", 1e-12);
    FailureOr<Value> y = emitLayerNorm(ctx, *sum, ctx.operand(2), rms ? Value() : ctx.operand(3), rms, epsilon);
    if (failed(y))
      return failure();
    setStatistics(ctx, *sum, rms, epsilon);
    (void)ctx.set(3, *sum);
    return ctx.result(*y);
  };
}

/// The norm of word + position + segment embeddings; the operands are the ids of words and segments, three tables,
/// gamma, beta, a mask and the ids of positions.
LogicalResult embedLayerNorm(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  if (failed(ctx.requireOperands({2, 3, 5, 6})))
    return failure();
  Value ids = ctx.operand(0), segments = ctx.operand(1), positions = ctx.operand(8);
  Sizes rows = getSizes(ids);
  Value sum = GatherOp::create(b, ctx.operand(2), ids, 0);
  Sizes sizes = getSizes(sum);
  auto addRows = [&](Value table, Value index) -> LogicalResult {
    FailureOr<Value> wide = ctx.broadcastOnto(index, rows);
    if (failed(wide))
      return failure();
    FailureOr<Value> found = ctx.castSizes(GatherOp::create(b, table, *wide, 0), sizes);
    if (failed(found))
      return failure();
    sum = b.add(sum, *found);
    return success();
  };
  if (!positions) { // the first S rows
    AffineExpr length = rows[1];
    if (failed(ctx.require(CompareKind::LE, length, getSizes(ctx.operand(3))[0], "a row of positions for each word")))
      return failure();
    positions = b.iota(b.getI32Type(), {b.size(1), length}, 1);
  }
  if (failed(addRows(ctx.operand(3), positions)))
    return failure();
  if (ctx.has(4) && segments && failed(addRows(ctx.operand(4), segments)))
    return failure();
  FailureOr<Value> y =
      emitLayerNorm(ctx, sum, ctx.operand(5), ctx.operand(6), /*rms=*/false, ctx.getFloat("epsilon", 1e-12));
  if (failed(y))
    return failure();
  // How many words each row has: its mask's sum, 0 without a mask.
  if (Value mask = ctx.operand(7))
    (void)ctx.set(1, b.reduce(ReduceKind::Sum, mask, {1}));
  else
    (void)ctx.set(1, b.splat(b.elementOf(ids), {rows[0]}, 0));
  (void)ctx.set(2, sum);
  return ctx.result(*y);
}

/// Groups of channels, in either layout, and with activation 1 a SiLU.
LogicalResult groupNorm(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  int64_t rank = b.rankOf(x), groups = ctx.getInt("groups", 0), activation = ctx.getInt("activation", 0);
  bool channelsLast = ctx.getInt("channels_last", 1);
  if (channelsLast)
    x = b.transpose(x, toChannelsFirst(rank));
  Sizes sizes = getSizes(x);
  AffineExpr each = ctx.divide(sizes[1], b.size(groups));
  if (failed(ctx.requireEqual(each * groups, sizes[1], "channels that groups divides")))
    return failure();
  Sizes grouped{sizes[0], b.size(groups), each};
  grouped.append(sizes.begin() + 2, sizes.end());
  Value y = b.norm(b.reshape(x, grouped), llvm::to_vector(llvm::seq<int64_t>(2, rank + 1)),
                   ctx.getFloat("epsilon", 1e-5), /*rms=*/false);
  y = b.reshape(y, sizes);
  for (size_t i : {1, 2}) {
    FailureOr<Value> wide = broadcastAlong(ctx, b.convert(ctx.operand(i), b.elementOf(x)), 1, sizes);
    if (failed(wide))
      return failure();
    y = i == 1 ? b.mul(y, *wide) : b.add(y, *wide);
  }
  if (activation)
    y = b.mul(y, b.unary<LogisticOp>(y));
  return ctx.result(channelsLast ? b.transpose(y, toChannelsLast(rank)) : y);
}

LogicalResult trilu(NodeContext &ctx) {
  FailureOr<Value> y = ctx.emitAs("Trilu", 14, ctx.allOperands());
  return failed(y) ? failure() : ctx.result(*y);
}

} // namespace

void tc::populateMicrosoftFused(OpRegistrar &onOp) {
  onOp("Gelu", 1, gelu);
  onOp("BiasGelu", 1, gelu, 2);
  onOp("FastGelu", 1, fastGelu);
  onOp("QuickGelu", 1, quickGelu);
  onOp("BiasSplitGelu", 1, biasSplitGelu, 2);
  onOp("BiasAdd", 1, biasAdd, 3);
  onOp("FusedMatMul", 1, fusedMatMul, 2);
  onOp("TransposeMatMul", 1, fusedMatMul, 2);
  onOp("FusedGemm", 1, fusedGemm, 2);
  onOp("FusedConv", 1, fusedConv(/*channelsLast=*/false), 2);
  onOp("NhwcConv", 1, fusedConv(/*channelsLast=*/true), 2);
  onOp("NhwcFusedConv", 1, fusedConv(/*channelsLast=*/true), 2);
  onOp("SkipLayerNormalization", 1, skipLayerNorm(/*rms=*/false), 3);
  onOp("SkipSimplifiedLayerNormalization", 1, skipLayerNorm(/*rms=*/true), 3);
  onOp("EmbedLayerNormalization", 1, embedLayerNorm);
  onOp("GroupNorm", 1, groupNorm, 3);
  onOp("Trilu", 1, trilu);
}
