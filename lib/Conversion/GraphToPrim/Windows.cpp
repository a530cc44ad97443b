//===- Windows.cpp - convolutions and pools of all front ends -----------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Windows.h"

#include "tc/Dialect/Prim/Utils/ChannelOrder.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tc;
using namespace tc::prim;

Value tc::emitPads(PrimBuilder &b, Value x, const Window &window, Value value) {
  if (window.emittedLow.empty())
    return x;
  Sizes low(2, b.size(0)), sizes = getSizes(x);
  for (size_t i = 0; i < window.emittedLow.size(); ++i) {
    low.push_back(window.emittedLow[i]);
    sizes[i + 2] = simplifySize(sizes[i + 2] + window.emittedLow[i] + window.emittedHigh[i]);
  }
  return b.pad(x, value, low, sizes);
}

FailureOr<Value> tc::broadcastAlong(NodeContext &ctx, Value v, int64_t axis, SizesRef sizes) {
  Sizes own = getSizes(v);
  if (axis >= int64_t(sizes.size()))
    return ctx.invalid("needs an operand with channels in dim " + Twine(axis) + ", but it has rank " +
                       Twine(sizes.size()));
  auto have = own.size() == 1 ? getConstantSize(own[0]) : std::nullopt, want = getConstantSize(sizes[axis]);
  if (own.size() != 1 || (have && want && *have != *want))
    return ctx.invalid(describe(v) + " must have one element for each of the " +
                       (want ? Twine(*want) : Twine("unknown")) + " channels");
  if (failed(ctx.requireEqual(own[0], sizes[axis], "one element for each channel")))
    return failure();
  return ctx.b.broadcastInDims(v, sizes, {axis});
}

FailureOr<Value> tc::emitConv(NodeContext &ctx, Value x, Value w, Value bias, SizesRef kernel, const Window &window,
                              int64_t groups) {
  PrimBuilder &b = ctx.b;
  int64_t rank = b.rankOf(x);
  Sizes in = getSizes(x), filter = getSizes(w);
  if (auto outputs = getConstantSize(filter[0]); outputs && *outputs % groups != 0)
    return ctx.invalid("group " + Twine(groups) + " does not fit the operands " + describe(x) + " and " + describe(w));
  if (failed(ctx.requireEqual(in[1], filter[1] * groups, "the filter's channels, times group, in dim 1")))
    return failure();
  for (size_t i = 0; i < kernel.size(); ++i) {
    AffineExpr padded = in[i + 2] + window.low(b, i) + window.high(b, i), extent = getExtent(window, i, kernel[i]);
    auto rest = getConstantSize(simplifySize(padded - extent));
    if (rest && *rest < 0)
      return ctx.invalid("the filter " + describe(w) + " is larger than the padded operand " + describe(x));
    if (failed(ctx.require(CompareKind::LE, extent, padded, "a padded operand that the filter fits into")))
      return failure();
  }
  if (failed(ctx.requireEqual(filter[0], filter[0].floorDiv(groups) * groups, "a group that divides the filters")))
    return failure();
  SmallVector<int64_t> filterLast;
  for (int64_t i = 2; i < rank; ++i)
    filterLast.push_back(i);
  filterLast.append({1, 0});
  x = emitPads(b, x, window, b.scalar(b.elementOf(x), 0));
  Value result = ConvOp::create(b, b.transpose(x, toChannelsLast(rank)), b.transpose(w, filterLast), window.strides,
                                window.dilations, window.padLow, window.padHigh, groups);
  if (bias) {
    FailureOr<Value> wide = broadcastAlong(ctx, bias, rank - 1, getSizes(result));
    if (failed(wide))
      return failure();
    result = b.add(result, *wide);
  }
  return b.transpose(result, toChannelsFirst(rank));
}

FailureOr<Pool> tc::makePool(NodeContext &ctx, Value x, ArrayRef<int64_t> kernel, const Window &window,
                             bool mayReachOut) {
  Sizes in = getSizes(x), spatial(in.begin() + 2, in.end());
  Pool pool{window, llvm::to_vector(kernel), {}};
  for (size_t i = 0; i < spatial.size(); ++i) {
    int64_t extent = window.dilations[i] * (kernel[i] - 1) + 1, stride = window.strides[i];
    AffineExpr low = window.low(ctx.b, i), high = window.high(ctx.b, i);
    AffineExpr span = simplifySize(spatial[i] + low + high - extent);
    const bool reachesOut = mayReachOut && stride > 1;
    if (auto known = getConstantSize(span); known && *known < 0) {
      // A window may reach beyond the end, but not by a stride: then there is none.
      if (!reachesOut || *known <= -stride || *known + extent <= 0)
        return ctx.invalid("the kernel is larger than dim " + Twine(i + 2) + " of the padded operand " + describe(x));
      pool.kernel[i] = llvm::divideCeil(*known + extent, window.dilations[i]);
    }
    AffineExpr size = simplifySize(span.floorDiv(stride) + 1);
    if (reachesOut) {
      // As many windows as reach to the end, but each must start inside the operand or its low pad. Where neither bound
      // is always the smaller one, the size at run time decides.
      PrimBuilder &b = ctx.b;
      AffineExpr reaching = simplifySize(span.ceilDiv(stride) + 1);
      AffineExpr starting = simplifySize((spatial[i] + low).ceilDiv(stride));
      auto rest = getConstantSize(simplifySize(extent - high)), x = getConstantSize(reaching),
           y = getConstantSize(starting);
      if (x && y)
        size = b.size(std::min(*x, *y));
      else if (rest && (*rest >= stride || *rest <= 1))
        size = *rest >= stride ? reaching : starting;
      else
        size = b.bindSymbol("pool", b.min(b.sizeValue(reaching), b.sizeValue(starting)));
    }
    pool.sizes.push_back(size);
  }
  return pool;
}

/// The smallest value of a type, as a 0-D tensor.
static Value lowest(PrimBuilder &b, Type type) {
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer)
    return b.scalar(type, -std::numeric_limits<double>::infinity());
  return b.scalar(type, integer.isUnsigned() ? 0 : -std::ldexp(1.0, int(integer.getWidth()) - 1));
}

Value tc::windowReduce(PrimBuilder &b, ReduceKind kind, Value v, const Pool &pool, ArrayRef<int64_t> padLow) {
  Sizes in = getSizes(v), out{in.front()};
  llvm::append_range(out, pool.sizes);
  out.push_back(in.back());
  return WindowReduceOp::create(b, makeType(b.elementOf(v), out), kind, v, pool.kernel, pool.window.strides,
                                pool.window.dilations, padLow);
}

Value tc::emitMaxPool(PrimBuilder &b, Value x, const Pool &pool) {
  const int64_t rank = b.rankOf(x);
  x = emitPads(b, x, pool.window, lowest(b, b.elementOf(x)));
  Value result = windowReduce(b, ReduceKind::Max, b.transpose(x, toChannelsLast(rank)), pool, pool.window.padLow);
  return b.transpose(result, toChannelsFirst(rank));
}

FailureOr<Value> tc::emitBatchNorm(NodeContext &ctx, Value x, Value scale, Value bias, Value mean, Value variance,
                                   double epsilon, llvm::function_ref<FailureOr<Value>(Value)> spread) {
  PrimBuilder &b = ctx.b;
  // scale / sqrt(var + epsilon) and bias - mean * that: constants as a rule, which fold into a convolution. What is
  // rounded on the way to them is off by the same at each position of a channel, and later means do not take it out.
  const Type wide = b.accumulatorOf(b.elementOf(variance));
  for (Value *v : {&scale, &bias, &mean, &variance})
    if (*v)
      *v = b.convert(*v, wide);
  Value factor = b.unary<SqrtOp>(b.binary<AddOp>(variance, epsilon));
  factor = scale ? b.div(scale, factor) : b.unary<ReciprocalOp>(factor);
  Value shift = b.mul(mean, factor);
  shift = bias ? b.sub(bias, shift) : b.unary<NegOp>(shift);
  FailureOr<Value> wideFactor = spread(b.convert(factor, b.elementOf(x)));
  FailureOr<Value> wideShift = spread(b.convert(shift, b.elementOf(x)));
  if (failed(wideFactor) || failed(wideShift))
    return failure();
  return b.add(b.mul(x, *wideFactor), *wideShift);
}
