//===- ONNXPooling.cpp - pools of ONNX ----------------------------------------------------------------------------===//
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

/// A pool's window and the spatial sizes of its result.
struct Pool {
  Window window;
  Sizes sizes;
};

FailureOr<Pool> readPool(NodeContext &ctx) {
  Value x = ctx.operand(0);
  int64_t rank = ctx.b.rankOf(x);
  auto kernel = ctx.getInts("kernel_shape");
  if (rank < 3 || !kernel || int64_t(kernel->size()) != rank - 2)
    return ctx.invalid("needs an operand [N, C, ..], but has " + describe(x) +
                       ", and a kernel_shape with an entry for each spatial dim");
  Sizes in = getSizes(x), spatial(in.begin() + 2, in.end());
  FailureOr<Window> window = readWindow(ctx, *kernel, spatial);
  if (failed(window))
    return failure();
  Pool pool{*window, {}};
  for (size_t i = 0; i < spatial.size(); ++i) {
    int64_t extent = window->dilations[i] * ((*kernel)[i] - 1) + 1, stride = window->strides[i];
    AffineExpr span = simplifySize(spatial[i] + (window->padLow[i] + window->padHigh[i] - extent));
    if (auto known = getConstantSize(span); known && *known < 0)
      return ctx.invalid("the kernel is larger than dim " + Twine(i + 2) + " of the padded operand " + describe(x));
    AffineExpr size = simplifySize(span.floorDiv(stride) + 1);
    if (ctx.getInt("ceil_mode", 0) && stride > 1) {
      auto known = getConstantSize(spatial[i]);
      if (!known)
        return ctx.unsupported("with ceil_mode and a size that is not known at compile time is not supported; "
                               "supported: a fixed size by --dim or --shape");
      int64_t count = (*getConstantSize(span) + stride - 1) / stride + 1;
      // A window must start inside the operand or its low pad.
      if ((count - 1) * stride >= *known + window->padLow[i])
        --count;
      size = ctx.b.size(count);
    }
    pool.sizes.push_back(size);
  }
  return pool;
}

Value windowReduce(NodeContext &ctx, ReduceKind kind, Value v, const Pool &pool, ArrayRef<int64_t> padLow) {
  Sizes in = getSizes(v), out{in.front()};
  llvm::append_range(out, pool.sizes);
  out.push_back(in.back());
  return WindowReduceOp::create(ctx.b, makeType(ctx.b.elementOf(v), out), kind, v, pool.window.kernel,
                                pool.window.strides, pool.window.dilations, padLow);
}

LogicalResult maxPool(NodeContext &ctx) {
  if (ctx.isResultUsed(1))
    return ctx.unsupported("with the result Indices is not supported; supported: the result Y alone");
  if (ctx.getInt("storage_order", 0))
    return ctx.unsupported("with storage_order 1 is not supported; supported: 0");
  FailureOr<Pool> pool = readPool(ctx);
  if (failed(pool))
    return failure();
  int64_t rank = ctx.b.rankOf(ctx.operand(0));
  Value x = ctx.b.transpose(ctx.operand(0), toChannelsLast(rank));
  Value result = windowReduce(ctx, ReduceKind::Max, x, *pool, pool->window.padLow);
  return ctx.result(ctx.b.transpose(result, toChannelsFirst(rank)));
}

LogicalResult averagePool(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  FailureOr<Pool> pool = readPool(ctx);
  if (failed(pool))
    return failure();
  int64_t rank = b.rankOf(ctx.operand(0)), volume = 1;
  const Window &window = pool->window;
  Value x = b.transpose(ctx.operand(0), toChannelsLast(rank));
  Type type = b.elementOf(x), accumulator = b.accumulatorOf(type);
  Value sum = windowReduce(ctx, ReduceKind::Sum, b.convert(x, accumulator), *pool, window.padLow);
  bool padded = false, countPads = ctx.getInt("count_include_pad", 0);
  for (size_t i = 0; i < window.kernel.size(); ++i) {
    volume *= window.kernel[i];
    padded |= window.padLow[i] != 0 || window.padHigh[i] != 0;
  }
  bool ceil = ctx.getInt("ceil_mode", 0);
  Value divisor;
  if (!ceil && (!padded || countPads)) {
    divisor = b.splatLike(sum, double(volume));
  } else {
    // How many elements each window has: the same pool over ones. With count_include_pad, pads count, but not what lies
    // beyond them where ceil_mode reaches out.
    Sizes ones = getSizes(x);
    ones.front() = ones.back() = b.size(1);
    SmallVector<int64_t> padLow = window.padLow;
    if (countPads)
      for (size_t i = 0; i < padLow.size(); ++i) {
        ones[i + 1] = simplifySize(ones[i + 1] + (padLow[i] + window.padHigh[i]));
        padLow[i] = 0;
      }
    Value count = windowReduce(ctx, ReduceKind::Sum, b.splat(accumulator, ones, 1), *pool, padLow);
    divisor = b.broadcastTo(count, getSizes(sum));
  }
  return ctx.result(b.transpose(b.convert(b.div(sum, divisor), type), toChannelsFirst(rank)));
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
  Value x = b.convert(b.transpose(ctx.operand(0), toChannelsLast(rank)), b.accumulatorOf(type));
  Value sum = windowReduce(ctx, ReduceKind::Sum, power(b, x, normOf(ctx)), *pool, pool->window.padLow);
  return ctx.result(b.transpose(b.convert(root(b, sum, normOf(ctx)), type), toChannelsFirst(rank)));
}

FailureOr<SmallVector<int64_t>> spatialDims(NodeContext &ctx) {
  int64_t rank = ctx.b.rankOf(ctx.operand(0));
  if (rank < 3)
    return ctx.invalid("needs an operand [N, C, ..], but has " + describe(ctx.operand(0)));
  return llvm::to_vector(llvm::seq<int64_t>(2, rank));
}

LogicalResult globalAveragePool(NodeContext &ctx) {
  FailureOr<SmallVector<int64_t>> dims = spatialDims(ctx);
  return failed(dims) ? failure() : ctx.result(ctx.b.mean(ctx.operand(0), *dims, /*keepDims=*/true));
}

LogicalResult globalMaxPool(NodeContext &ctx) {
  FailureOr<SmallVector<int64_t>> dims = spatialDims(ctx);
  return failed(dims) ? failure() : ctx.result(ctx.b.reduce(ReduceKind::Max, ctx.operand(0), *dims, true));
}

LogicalResult globalLpPool(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  FailureOr<SmallVector<int64_t>> dims = spatialDims(ctx);
  if (failed(dims))
    return failure();
  Type type = b.elementOf(ctx.operand(0));
  Value x = b.convert(ctx.operand(0), b.accumulatorOf(type));
  Value sum = b.reduce(ReduceKind::Sum, power(b, x, normOf(ctx)), *dims, /*keepDims=*/true);
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
}
