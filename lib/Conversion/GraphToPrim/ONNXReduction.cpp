//===- ONNXReduction.cpp - reductions, arg-reductions, cumulative sums of ONNX ------------------------------------===//
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

/// Axes of a Reduce node, all if none are given; empty with `noop` where the node does nothing.
struct ReduceAxes {
  SmallVector<int64_t> axes;
  bool noop = false, keepDims = true;
};

FailureOr<ReduceAxes> readAxes(NodeContext &ctx) {
  int64_t rank = ctx.b.rankOf(ctx.operand(0));
  auto given = ctx.intsOf("axes", 1);
  if (failed(given))
    return failure();
  ReduceAxes result;
  result.keepDims = ctx.getInt("keepdims", 1);
  if (*given && !(*given)->empty()) {
    FailureOr<SmallVector<int64_t>> axes = ctx.axes(**given, rank);
    if (failed(axes))
      return failure();
    result.axes = *axes;
  } else if (ctx.getInt("noop_with_empty_axes", 0)) {
    result.noop = true;
  } else {
    result.axes = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  }
  return result;
}

using Prepare = Value (*)(PrimBuilder &, Value);

Value same(PrimBuilder &, Value v) { return v; }
Value absolute(PrimBuilder &b, Value v) { return b.unary<AbsOp>(v); }
Value square(PrimBuilder &b, Value v) { return b.mul(v, v); }
Value root(PrimBuilder &b, Value v) { return PrimBuilder::isFloat(v) ? b.unary<SqrtOp>(v) : v; }
Value logarithm(PrimBuilder &b, Value v) { return b.unary<LogOp>(v); }

/// before, reduce, after: each a cheap elementwise step.
NodeHandler reduce(ReduceKind kind, Prepare before = same, Prepare after = same, bool floatOnly = false) {
  return [=](NodeContext &ctx) -> LogicalResult {
    FailureOr<ReduceAxes> axes = readAxes(ctx);
    if (failed(axes))
      return failure();
    Value x = ctx.operand(0);
    Type type = ctx.b.elementOf(x);
    if (type.isInteger(1) && (kind == ReduceKind::Max || kind == ReduceKind::Min)) {
      ReduceKind logical = kind == ReduceKind::Max ? ReduceKind::Or : ReduceKind::And;
      return ctx.result(axes->noop ? x : ctx.b.reduce(logical, x, axes->axes, axes->keepDims));
    }
    // Integers under a function of floats (ReduceL2 of i32) are computed in f32 or f64 and converted back.
    Type compute = type;
    if (floatOnly && !isa<FloatType>(type))
      compute = type.getIntOrFloatBitWidth() > 16 ? Type(ctx.b.getF64Type()) : Type(ctx.b.getF32Type());
    else if (floatOnly)
      compute = ctx.b.accumulatorOf(type);
    x = before(ctx.b, ctx.b.convert(x, compute));
    if (!axes->noop)
      x = ctx.b.reduce(kind, x, axes->axes, axes->keepDims);
    return ctx.result(ctx.b.convert(after(ctx.b, x), type));
  };
}

LogicalResult reduceMean(NodeContext &ctx) {
  FailureOr<ReduceAxes> axes = readAxes(ctx);
  if (failed(axes))
    return failure();
  return ctx.result(axes->noop ? ctx.operand(0) : ctx.b.mean(ctx.operand(0), axes->axes, axes->keepDims));
}

/// log(sum(exp(x))) with the maximum taken out, so that exp can't overflow; infinite maxima are left in.
LogicalResult reduceLogSumExp(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  FailureOr<ReduceAxes> axes = readAxes(ctx);
  if (failed(axes))
    return failure();
  Value x = ctx.operand(0);
  Type type = b.elementOf(x);
  if (axes->noop)
    return ctx.result(x);
  x = b.convert(x, isa<FloatType>(type) ? b.accumulatorOf(type) : Type(b.getF64Type()));
  Value max = b.reduce(ReduceKind::Max, x, axes->axes, /*keepDims=*/true);
  Value inf = IsInfOp::create(b, withElementType(max.getType(), b.getI1Type()), max);
  max = b.select(inf, b.splatLike(max, 0), max);
  Value sum = b.reduce(ReduceKind::Sum, b.unary<ExpOp>(b.sub(x, b.broadcastTo(max, getSizes(x)))), axes->axes, true);
  Value result = b.add(b.unary<LogOp>(sum), max);
  if (!axes->keepDims) {
    Sizes kept;
    for (auto [i, size] : llvm::enumerate(getSizes(x)))
      if (!llvm::is_contained(axes->axes, int64_t(i)))
        kept.push_back(size);
    result = b.reshape(result, kept);
  }
  return ctx.result(b.convert(result, type));
}

NodeHandler argReduce(ReduceKind kind) {
  return [kind](NodeContext &ctx) -> LogicalResult {
    Value x = ctx.operand(0);
    Sizes sizes = getSizes(x);
    FailureOr<int64_t> axis = ctx.axis(ctx.getInt("axis", 0), sizes.size());
    if (failed(axis))
      return failure();
    Sizes dropped = sizes;
    dropped.erase(dropped.begin() + *axis);
    Value result = ArgReduceOp::create(ctx.b, makeType(ctx.b.getI64Type(), dropped), kind, x, *axis,
                                       ctx.getInt("select_last_index", 0) != 0);
    return ctx.result(ctx.getInt("keepdims", 1) ? ctx.b.unsqueeze(result, *axis) : result);
  };
}

NodeHandler cumulate(ReduceKind kind) {
  return [kind](NodeContext &ctx) -> LogicalResult {
    Value x = ctx.operand(0);
    std::optional<SmallVector<int64_t>> given = ctx.constantInts(ctx.operand(1));
    if (!given || given->size() != 1)
      return ctx.unsupported("with an axis that is not known at compile time is not supported");
    FailureOr<int64_t> axis = ctx.axis(given->front(), ctx.b.rankOf(x));
    if (failed(axis))
      return failure();
    return ctx.result(ScanOp::create(ctx.b, x.getType(), kind, x, *axis, ctx.getInt("exclusive", 0) != 0,
                                     ctx.getInt("reverse", 0) != 0));
  };
}

} // namespace

void tc::populateONNXReduction(OpRegistrar &onOp) {
  onOp("ReduceSum", 1, reduce(ReduceKind::Sum));
  onOp("ReduceProd", 1, reduce(ReduceKind::Prod));
  onOp("ReduceMax", 1, reduce(ReduceKind::Max));
  onOp("ReduceMin", 1, reduce(ReduceKind::Min));
  onOp("ReduceMean", 1, reduceMean);
  onOp("ReduceL1", 1, reduce(ReduceKind::Sum, absolute));
  onOp("ReduceL2", 1, reduce(ReduceKind::Sum, square, root, /*floatOnly=*/true));
  onOp("ReduceSumSquare", 1, reduce(ReduceKind::Sum, square));
  onOp("ReduceLogSum", 1, reduce(ReduceKind::Sum, same, logarithm, /*floatOnly=*/true));
  onOp("ReduceLogSumExp", 1, reduceLogSumExp);
  onOp("ArgMax", 1, argReduce(ReduceKind::Max));
  onOp("ArgMin", 1, argReduce(ReduceKind::Min));
  onOp("CumSum", 11, cumulate(ReduceKind::Sum), 2);
  onOp("CumProd", 26, cumulate(ReduceKind::Prod), 2);
}
