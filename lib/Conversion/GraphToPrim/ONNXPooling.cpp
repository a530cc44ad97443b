//===- ONNXPooling.cpp - pools of ONNX ----------------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ONNXSupport.h"
#include "OpRegistry.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

FailureOr<Pool> readPool(NodeContext &ctx) {
  const Sizes in = getSizes(ctx.operand(0));
  auto kernel = ctx.getInts("kernel_shape");
  FailureOr<Window> window = readWindow(ctx, ctx.b.sizes(*kernel), SizesRef(in).drop_front(2));
  if (failed(window))
    return failure();
  return makePool(ctx, ctx.operand(0), *kernel, *window, ctx.getInt("ceil_mode", 0) != 0);
}

/// Where in spatial dim `i` element `k` of window `t` (i64, equal types) lies. Elements outside the operand stand for
/// the nearest one of their window that is inside.
Value placeInside(PrimBuilder &b, const Window &window, size_t i, AffineExpr size, Value t, Value k) {
  double dilation = double(window.dilations[i]);
  auto wide = [&](AffineExpr e) { return b.broadcastTo(b.sizeValue(e), getSizes(t)); };
  Value start = b.sub(b.binary<MulOp>(t, double(window.strides[i])), wide(window.low(b, i))), extent = wide(size);
  Value missing = b.binary<MaxOp>(b.sub(b.splatLike(start, dilation - 1), start), 0);
  Value first = b.binary<DivOp>(missing, dilation);
  Value last = b.binary<DivOp>(b.binary<SubOp>(b.sub(extent, start), 1), dilation);
  return b.add(start, b.binary<MulOp>(b.min(b.max(k, first), last), dilation));
}

/// For each window the position of its first largest element in the whole operand, counted in row-major order, or with
/// storage_order 1 with the first spatial dim fastest.
Value indicesOfMax(NodeContext &ctx, const Pool &pool) {
  PrimBuilder &b = ctx.b;
  Type i64 = b.getI64Type();
  Value windows = ctx.operand(0);
  const Window &window = pool.window;
  Sizes in = getSizes(windows), out{in[0], in[1]};
  size_t n = pool.sizes.size();
  llvm::append_range(out, pool.sizes);
  // The elements of all windows: [N, C, T0, K0, T1, K1, ..]. Standing for each other, elements inside keep their order,
  // so that the first largest one is found where it was.
  int64_t volume = 1;
  SmallVector<int64_t> order{0, 1};
  for (size_t i = 0; i < n; ++i) {
    Sizes grid{pool.sizes[i], b.size(pool.kernel[i])};
    Value at = placeInside(b, window, i, in[i + 2], b.iota(i64, grid, 0), b.iota(i64, grid, 1));
    windows = GatherOp::create(b, windows, at, 2 + 2 * i);
    order.push_back(2 + 2 * i);
    volume *= pool.kernel[i];
  }
  for (size_t i = 0; i < n; ++i)
    order.push_back(3 + 2 * i);
  Sizes flat = out;
  flat.push_back(b.size(volume));
  windows = b.reshape(b.transpose(windows, order), flat);
  Value found = ArgReduceOp::create(b, makeType(i64, out), ReduceKind::Max, windows, n + 2, /*lastIndex=*/false);
  auto scaled = [&](Value v, AffineExpr factor) { return b.mul(v, b.broadcastTo(b.sizeValue(factor), out)); };
  MLIRContext *context = b.getContext();
  SizesRef spatial = SizesRef(in).drop_front(2);
  Value place = b.add(scaled(b.iota(i64, out, 0), in[1]), b.iota(i64, out, 1));
  place = scaled(place, product(context, spatial));
  for (size_t i = 0; i < n; ++i) {
    volume /= pool.kernel[i];
    Value k = b.binary<RemOp>(b.binary<DivOp>(found, double(volume)), double(pool.kernel[i]));
    Value at = placeInside(b, window, i, spatial[i], b.iota(i64, out, i + 2), k);
    SizesRef faster = ctx.getInt("storage_order", 0) ? spatial.take_front(i) : spatial.drop_front(i + 1);
    place = b.add(place, scaled(at, product(context, faster)));
  }
  return place;
}

LogicalResult maxPool(NodeContext &ctx) {
  FailureOr<Pool> pool = readPool(ctx);
  if (failed(pool))
    return failure();
  if (ctx.isResultUsed(1))
    (void)ctx.set(1, indicesOfMax(ctx, *pool));
  return ctx.result(emitMaxPool(ctx.b, ctx.operand(0), *pool));
}

/// The reverse of MaxPool: elements go to the places that its Indices name, the rest is 0. Indices count in the size
/// that kernel, strides and pads say; an output_shape that differs pads or crops at the end.
LogicalResult maxUnpool(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  Type type = b.elementOf(x);
  Sizes in = getSizes(x);
  auto kernel = ctx.getInts("kernel_shape");
  FailureOr<Window> window = readWindow(ctx, b.sizes(*kernel), SizesRef(in).drop_front(2));
  FailureOr<Value> indices = ctx.castSizes(ctx.operand(1), in);
  if (failed(window) || failed(indices))
    return failure();
  Sizes out{in[0], in[1]};
  for (size_t i = 0; i < kernel->size(); ++i) {
    int64_t more = (*kernel)[i] - window->padLow[i] - window->padHigh[i];
    out.push_back(simplifySize((in[i + 2] - 1) * window->strides[i] + more));
    if (getConstantSize(out.back()).value_or(0) < 0)
      return ctx.invalid("pads leave nothing of dim " + Twine(i + 2));
  }
  AffineExpr count = product(b.getContext(), in), all = product(b.getContext(), out);
  Value result = ScatterElementsOp::create(b, makeType(type, {all}), b.splat(type, {all}, 0),
                                           b.convert(b.reshape(*indices, {count}), b.getI64Type()),
                                           b.reshape(x, {count}), 0, ReduceKindAttr());
  result = b.reshape(result, out);
  if (ctx.has(2)) {
    FailureOr<Sizes> wanted = ctx.requireSizes(ctx.operand(2), "output_shape");
    if (failed(wanted))
      return failure();
    result = b.pad(result, b.scalar(type, 0), Sizes(in.size(), b.size(0)), *wanted);
  }
  return ctx.result(result);
}

/// How many elements each of the windows (in all spatial dims) has along spatial dim `i`, i64. With `countPads` pads
/// count, but not what lies beyond them where ceil_mode reaches out.
Value elementsAlong(NodeContext &ctx, const Pool &pool, size_t i, bool countPads) {
  PrimBuilder &b = ctx.b;
  const Window &window = pool.window;
  const int64_t dilation = window.dilations[i];
  const Sizes &sizes = pool.sizes;
  AffineExpr extent = getSizes(ctx.operand(0))[i + 2], low = window.low(b, i);
  if (countPads) {
    extent = simplifySize(extent + low + window.high(b, i));
    low = b.size(0);
  }
  // Elements start + k * dilation for k < kernel, of which those from 0 to the extent count.
  auto all = [&](AffineExpr size) { return b.broadcastTo(b.sizeValue(size), sizes); };
  Value start = b.sub(b.binary<MulOp>(b.iota(b.getI64Type(), sizes, i), double(window.strides[i])), all(low));
  auto steps = [&](Value distance) { // of the dilation, to cover what is not below 0
    distance = b.binary<MaxOp>(distance, 0);
    return dilation == 1 ? distance
                         : b.binary<DivOp>(b.binary<AddOp>(distance, double(dilation - 1)), double(dilation));
  };
  Value first = steps(b.sub(b.splatLike(start, 0), start)), end = steps(b.sub(all(extent), start));
  return b.binary<MaxOp>(b.sub(b.binary<MinOp>(end, double(pool.kernel[i])), first), 0);
}

LogicalResult averagePool(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  FailureOr<Pool> pool = readPool(ctx);
  if (failed(pool))
    return failure();
  int64_t rank = b.rankOf(ctx.operand(0)), volume = 1;
  const Window &window = pool->window;
  Type type = b.elementOf(ctx.operand(0)), accumulator = b.accumulatorOf(type);
  Value x = emitPads(b, ctx.operand(0), window, b.scalar(type, 0));
  x = b.transpose(x, toChannelsLast(rank));
  Value sum = windowReduce(b, ReduceKind::Sum, b.convert(x, accumulator), *pool, window.padLow);
  bool padded = false, countPads = ctx.getInt("count_include_pad", 0);
  for (size_t i = 0; i < pool->kernel.size(); ++i) {
    volume *= pool->kernel[i];
    padded |= getConstantSize(window.low(b, i)) != 0 || getConstantSize(window.high(b, i)) != 0;
  }
  bool ceil = ctx.getInt("ceil_mode", 0);
  if (!ceil && (!padded || countPads))
    return ctx.result(
        b.transpose(b.convert(b.div(sum, b.splatLike(sum, double(volume))), type), toChannelsFirst(rank)));
  Value count;
  SmallVector<int64_t> dims;
  for (size_t i = 0; i < pool->kernel.size(); ++i) {
    Value along = elementsAlong(ctx, *pool, i, countPads);
    count = count ? b.mul(count, along) : along;
    dims.push_back(int64_t(i) + 2);
  }
  // Channels first: counts are of the dims that lie together.
  sum = b.transpose(sum, toChannelsFirst(rank));
  count = b.broadcastInDims(b.convert(count, accumulator), getSizes(sum), dims);
  return ctx.result(b.convert(b.div(sum, count), type));
}

/// v as |v|^p, and back.
Value power(PrimBuilder &b, Value v, double p) {
  v = b.unary<AbsOp>(v);
  return p == 1 ? v : p == 2 ? b.mul(v, v) : b.binary<PowOp>(v, p);
}
Value root(PrimBuilder &b, Value v, double p) {
  return p == 1 ? v : p == 2 ? b.unary<SqrtOp>(v) : b.binary<PowOp>(v, 1 / p);
}

/// The p-norm of each window; p is a float before opset 2.
double normOf(NodeContext &ctx) { return ctx.opset() < 2 ? ctx.getFloat("p", 2) : double(ctx.getInt("p", 2)); }

LogicalResult lpPool(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  FailureOr<Pool> pool = readPool(ctx);
  if (failed(pool))
    return failure();
  Type type = b.elementOf(ctx.operand(0));
  int64_t rank = b.rankOf(ctx.operand(0));
  Value x = emitPads(b, ctx.operand(0), pool->window, b.scalar(type, 0));
  x = b.convert(b.transpose(x, toChannelsLast(rank)), b.accumulatorOf(type));
  Value sum = windowReduce(b, ReduceKind::Sum, power(b, x, normOf(ctx)), *pool, pool->window.padLow);
  return ctx.result(b.transpose(b.convert(root(b, sum, normOf(ctx)), type), toChannelsFirst(rank)));
}

SmallVector<int64_t> spatialDims(NodeContext &ctx) {
  return llvm::to_vector(llvm::seq<int64_t>(2, ctx.b.rankOf(ctx.operand(0))));
}

LogicalResult globalAveragePool(NodeContext &ctx) {
  return ctx.result(ctx.b.mean(ctx.operand(0), spatialDims(ctx), /*keepDims=*/true));
}

LogicalResult globalMaxPool(NodeContext &ctx) {
  return ctx.result(ctx.b.reduce(ReduceKind::Max, ctx.operand(0), spatialDims(ctx), true));
}

LogicalResult globalLpPool(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  SmallVector<int64_t> dims = spatialDims(ctx);
  Type type = b.elementOf(ctx.operand(0));
  Value x = b.convert(ctx.operand(0), b.accumulatorOf(type));
  Value sum = b.reduce(ReduceKind::Sum, power(b, x, normOf(ctx)), dims, /*keepDims=*/true);
  return ctx.result(b.convert(root(b, sum, normOf(ctx)), type));
}

} // namespace

void tc::populateONNXPooling(OpRegistrar &onOp) {
  onOp("MaxPool", 1, maxPool);
  onOp("AveragePool", 1, averagePool);
  onOp("GlobalAveragePool", 1, globalAveragePool);
  onOp("GlobalLpPool", 1, globalLpPool);
  onOp("GlobalMaxPool", 1, globalMaxPool);
  onOp("LpPool", 1, lpPool);
  onOp("MaxUnpool", 9, maxUnpool, 2);
}
