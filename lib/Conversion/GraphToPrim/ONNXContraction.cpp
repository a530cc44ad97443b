//===- ONNXContraction.cpp - matrix products and convolutions of ONNX ---------------------------------------------===//
//
// ONNX is channels-first, prim channels-last: convolutions stand between two transposes, which tc-canonicalize-prim
// cancels between layers. Filters are constants as a rule, so that their transposes fold.
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

LogicalResult matMul(NodeContext &ctx) {
  FailureOr<Value> result = emitMatMul(ctx, ctx.operand(0), ctx.operand(1));
  return failed(result) ? failure() : ctx.result(*result);
}

LogicalResult gemm(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value lhs = ctx.operand(0), rhs = ctx.operand(1);
  int64_t contractA = ctx.getInt("transA", 0) ? 0 : 1, contractB = ctx.getInt("transB", 0) ? 1 : 0;
  if (failed(unifySizes(ctx, lhs, contractA, rhs, contractB, "inner sizes")))
    return failure();
  Value result = DotGeneralOp::create(b, lhs, rhs, ArrayRef<int64_t>{}, ArrayRef<int64_t>{},
                                      ArrayRef<int64_t>{contractA}, ArrayRef<int64_t>{contractB});
  double alpha = ctx.getFloat("alpha", 1), beta = ctx.getFloat("beta", 1);
  if (alpha != 1)
    result = b.binary<MulOp>(result, alpha);
  if (Value c = ctx.operand(2)) {
    if (beta != 1)
      c = b.binary<MulOp>(c, beta);
    FailureOr<Value> wide = ctx.broadcastOnto(c, getSizes(result));
    if (failed(wide))
      return failure();
    result = b.add(result, *wide);
  }
  return ctx.result(result);
}

} // namespace

FailureOr<Value> tc::emitConv(NodeContext &ctx, Value x, Value w, Value bias) {
  FailureOr<Sizes> kernel = readKernel(ctx, w);
  if (failed(kernel))
    return failure();
  const Sizes in = getSizes(x);
  FailureOr<Window> window = readWindow(ctx, *kernel, SizesRef(in).drop_front(2));
  if (failed(window))
    return failure();
  return emitConv(ctx, x, w, bias, *kernel, *window, ctx.getInt("group", 1));
}

namespace {

LogicalResult conv(NodeContext &ctx) {
  FailureOr<Value> result = emitConv(ctx, ctx.operand(0), ctx.operand(1), ctx.operand(2));
  return failed(result) ? failure() : ctx.result(*result);
}

/// A transposed convolution is a convolution of the operand, spread out by the strides, with the flipped filter.
LogicalResult convTranspose(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0), w = ctx.operand(1);
  int64_t rank = b.rankOf(x), spatial = rank - 2, groups = ctx.getInt("group", 1);
  FailureOr<Sizes> kernel = readKernel(ctx, w);
  if (failed(kernel))
    return failure();
  Sizes in = getSizes(x), filter = getSizes(w);
  if (auto inputs = getConstantSize(filter[0]); inputs && *inputs % groups != 0)
    return ctx.invalid("group " + Twine(groups) + " does not fit the operands " + describe(x) + " and " + describe(w));
  if (failed(ctx.requireEqual(in[1], filter[0], "the filter's channels in dim 1")))
    return failure();
  SmallVector<int64_t> extra = ctx.getInts("output_padding").value_or(SmallVector<int64_t>(spatial, 0));
  std::string autoPad = ctx.getString("auto_pad", "NOTSET");
  auto outputShape = ctx.getInts("output_shape");
  auto strides = ctx.getInts("strides").value_or(SmallVector<int64_t>(spatial, 1));
  auto dilations = ctx.getInts("dilations").value_or(SmallVector<int64_t>(spatial, 1));
  auto pads = ctx.getInts("pads").value_or(SmallVector<int64_t>(2 * spatial, 0));
  if (outputShape && int64_t(outputShape->size()) == rank)
    outputShape->erase(outputShape->begin(), outputShape->begin() + 2);
  // What the pads take off the full result, of size * stride + reach + output_padding + 1 - stride elements.
  Sizes low(spatial), high(spatial), reach(spatial);
  for (int64_t i = 0; i < spatial; ++i) {
    if (failed(ctx.require(CompareKind::LE, b.size(1), (*kernel)[i], "a kernel of one element or more")))
      return failure();
    reach[i] = simplifySize(((*kernel)[i] - 1) * dilations[i]);
    low[i] = b.size(pads[i]);
    high[i] = b.size(pads[i + spatial]);
    if (outputShape || autoPad == "SAME_UPPER" || autoPad == "SAME_LOWER") {
      AffineExpr beyond = simplifySize(reach[i] + (1 + extra[i] - strides[i])); // size * stride
      AffineExpr total =
          outputShape ? simplifySize(in[i + 2] * strides[i] + beyond - (*outputShape)[i]) : atLeast0(b, beyond);
      // A result larger than the products reach is filled up at its end.
      AffineExpr shared = atLeast0(b, total), small = simplifySize(shared.floorDiv(2));
      low[i] = autoPad == "SAME_UPPER" ? small : simplifySize(shared - small);
      high[i] = simplifySize(total - low[i]);
    }
  }
  SmallVector<int64_t> padLow(spatial, 0), padHigh(spatial, 0), ones(spatial, 1);
  x = b.transpose(x, toChannelsLast(rank));
  // [N, S, C] -> [N, S, 1, C] -> zeros after each element -> [N, S * stride, C]
  Sizes sizes = getSizes(x), split{sizes[0]}, spread{sizes[0]}, joined{sizes[0]}, starts(rank, b.size(0));
  bool strided = false, emitted = false;
  for (int64_t i = 0; i < spatial; ++i) {
    split.append({sizes[i + 1], b.size(1)});
    spread.append({sizes[i + 1], b.size(strides[i])});
    joined.push_back(simplifySize(sizes[i + 1] * strides[i]));
    strided |= strides[i] != 1;
    low[i] = simplifySize(reach[i] - low[i]);
    high[i] = simplifySize(reach[i] - high[i] + (extra[i] + 1 - strides[i]));
    emitted |= !getConstantSize(low[i]) || !getConstantSize(high[i]);
    if (failed(ctx.require(CompareKind::LE, reach[i] + 1, joined.back() + low[i] + high[i],
                           "pads that leave something of dim " + Twine(i + 2))))
      return failure();
  }
  split.push_back(sizes.back());
  spread.push_back(sizes.back());
  joined.push_back(sizes.back());
  if (strided) {
    Value zeros = b.pad(b.reshape(x, split), b.scalar(b.elementOf(x), 0), Sizes(split.size(), b.size(0)), spread);
    x = b.reshape(zeros, joined);
  }
  Sizes padded = joined;
  for (int64_t i = 0; i < spatial; ++i) {
    if (emitted) { // all pads around the operand itself
      starts[i + 1] = low[i];
      padded[i + 1] = simplifySize(joined[i + 1] + low[i] + high[i]);
    } else {
      padLow[i] = *getConstantSize(low[i]);
      padHigh[i] = *getConstantSize(high[i]);
    }
  }
  if (emitted)
    x = b.pad(x, b.scalar(b.elementOf(x), 0), starts, padded);
  // [C, O / g, K..] -> [K.., C / g, O], flipped along K.
  AffineExpr perGroup = ctx.divide(filter[0], b.size(groups));
  Sizes wide{b.size(groups), perGroup, filter[1]}, flipped = *kernel, ends;
  llvm::append_range(wide, *kernel);
  SmallVector<int64_t> permutation, steps(spatial, -1);
  for (int64_t i = 0; i < spatial; ++i) {
    permutation.push_back(i + 3);
    ends.push_back(simplifySize((*kernel)[i] - 1));
  }
  permutation.append({1, 0, 2});
  flipped.append({perGroup, simplifySize(filter[1] * groups)});
  ends.append(2, b.size(0));
  steps.append(2, 1);
  FailureOr<Value> grouped = ctx.reshape(w, wide);
  if (failed(grouped))
    return failure();
  w = b.reshape(b.transpose(*grouped, permutation), flipped);
  if (llvm::any_of(*kernel, [](AffineExpr size) { return getConstantSize(size) != 1; }))
    w = SliceOp::create(b, w.getType(), w, makeSizeMap(b.getContext(), ends), steps);
  Value result = ConvOp::create(b, x, w, ones, dilations, padLow, padHigh, groups);
  if (Value bias = ctx.operand(2)) {
    FailureOr<Value> wideBias = broadcastAlong(ctx, bias, rank - 1, getSizes(result));
    if (failed(wideBias))
      return failure();
    result = b.add(result, *wideBias);
  }
  return ctx.result(b.transpose(result, toChannelsFirst(rank)));
}

/// A depthwise convolution over time that sees no later positions: before the operand stand the last positions of the
/// step before, or zeros. Results: the convolution, and the last k - 1 positions for the next step.
LogicalResult causalConvWithState(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0), w = ctx.operand(1), bias = ctx.operand(2), past = ctx.operand(3);
  std::string activation = ctx.getString("activation", "none");
  Sizes in = getSizes(x), filter = getSizes(w);
  AffineExpr kernel = filter[2], before = simplifySize(kernel - 1), length = simplifySize(in[2] + before);
  if (failed(ctx.require(CompareKind::LE, b.size(1), kernel, "a kernel of one element or more")))
    return failure();
  FailureOr<Value> taps = ctx.castSizes(w, {in[1], b.size(1), kernel});
  if (failed(taps))
    return failure();
  Value padded;
  if (past) {
    FailureOr<Value> fitting = ctx.castSizes(past, {in[0], in[1], before});
    if (failed(fitting))
      return failure();
    padded = b.reshape(b.concat({*fitting, x}, 2), {in[0], in[1], length});
  } else {
    padded = b.pad(x, b.scalar(b.elementOf(x), 0), {b.size(0), b.size(0), before}, {in[0], in[1], length});
  }
  Value y;
  if (auto channels = getConstantSize(in[1])) {
    const int64_t one = 1, zero = 0;
    y = ConvOp::create(b, b.transpose(padded, toChannelsLast(3)), b.transpose(*taps, {2, 1, 0}), one, one, zero, zero,
                       *channels);
    y = b.transpose(b.reshape(y, {in[0], in[2], in[1]}), toChannelsFirst(3));
  } else { // prim.conv has a fixed number of groups
    Sizes grid{in[2], kernel}, windows{in[0], in[1], in[2], kernel};
    Value at = b.add(b.iota(b.getI64Type(), grid, 0), b.iota(b.getI64Type(), grid, 1));
    Type compute = b.accumulatorOf(b.elementOf(x));
    Value factors = b.broadcastInDims(b.convert(b.reshape(*taps, {in[1], kernel}), compute), windows, {1, 3});
    Value elements = b.reshape(GatherOp::create(b, padded, at, 2), windows);
    y = b.convert(b.reduce(ReduceKind::Sum, b.mul(b.convert(elements, compute), factors), {3}), b.elementOf(x));
  }
  if (bias) {
    FailureOr<Value> wide = broadcastAlong(ctx, bias, 1, in);
    if (failed(wide))
      return failure();
    y = b.add(y, *wide);
  }
  if (activation != "none")
    y = b.mul(y, b.unary<LogisticOp>(y));
  return success(succeeded(ctx.set(0, y)) && succeeded(ctx.set(1, b.sliceDim(padded, 2, in[2], before))));
}

} // namespace

void tc::populateONNXContraction(OpRegistrar &onOp) {
  onOp("CausalConvWithState", 27, causalConvWithState, 2);
  onOp("MatMul", 1, matMul, 2);
  onOp("Gemm", 1, gemm, 2);
  onOp("Conv", 1, conv, 2);
  onOp("ConvTranspose", 1, convTranspose, 2);
}
