//===- ONNXReduction.cpp - reductions, arg-reductions, cumulative sums of ONNX ------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "AxisList.h"
#include "ONNXSupport.h"
#include "OpRegistry.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

/// What a Reduce node reduces: `dims` of `operand` (all if none are given), to `result`; nothing with `noop`.
struct Reduction {
  Value operand;
  SmallVector<int64_t> dims;
  Sizes result;
  bool noop = false;

  Value reduce(PrimBuilder &b, ReduceKind kind, Value v) const {
    return noop ? v : b.reshape(b.reduce(kind, v, dims), result);
  }
};

FailureOr<Reduction> readReduction(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Reduction r{ctx.operand(0), {}, {}};
  Sizes sizes = getSizes(r.operand);
  int64_t rank = sizes.size();
  bool keepDims = ctx.getInt("keepdims", 1);
  std::optional<SmallVector<int64_t>> given = ctx.getInts("axes");
  if (ctx.has(1)) {
    given = ctx.constantInts(ctx.operand(1));
    if (ctx.b.typeOf(ctx.operand(1)).getShape() == ArrayRef<int64_t>{0})
      given.emplace();
    if (!given) {
      FailureOr<AxisList> list = AxisList::get(ctx, ctx.operand(1), rank);
      if (failed(list))
        return failure();
      r.operand = splitListed(b, r.operand, *list);
      Sizes split = getSizes(r.operand);
      for (int64_t i = 0; i < rank; ++i) {
        r.dims.push_back(2 * i + 1);
        r.result.push_back(split[2 * i]);
      }
      if (!keepDims && rank > list->count())
        r.result = bindSizes(b, "kept", list->dropListed(b.sizesValue(sizes)), {0, INT64_MAX});
      else if (!keepDims)
        r.result.clear();
      return r;
    }
  }
  if (given && !given->empty()) {
    FailureOr<SmallVector<int64_t>> axes = ctx.axes(*given, rank);
    if (failed(axes))
      return failure();
    r.dims = *axes;
  } else if (ctx.getInt("noop_with_empty_axes", 0)) {
    r.noop = true;
  } else {
    r.dims = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  }
  for (int64_t i = 0; i < rank; ++i)
    if (!llvm::is_contained(r.dims, i))
      r.result.push_back(sizes[i]);
    else if (keepDims)
      r.result.push_back(b.size(1));
  return r;
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
    FailureOr<Reduction> r = readReduction(ctx);
    if (failed(r))
      return failure();
    Value x = r->operand;
    Type type = ctx.b.elementOf(x);
    if (type.isInteger(1) && (kind == ReduceKind::Max || kind == ReduceKind::Min))
      return ctx.result(r->reduce(ctx.b, kind == ReduceKind::Max ? ReduceKind::Or : ReduceKind::And, x));
    // Integers under a function of floats (ReduceL2 of i32) are computed in f32 or f64 and converted back.
    Type compute = type;
    if (floatOnly && !isa<FloatType>(type))
      compute = type.getIntOrFloatBitWidth() > 16 ? Type(ctx.b.getF64Type()) : Type(ctx.b.getF32Type());
    else if (floatOnly)
      compute = ctx.b.accumulatorOf(type);
    x = r->reduce(ctx.b, kind, before(ctx.b, ctx.b.convert(x, compute)));
    return ctx.result(ctx.b.convert(after(ctx.b, x), type));
  };
}

LogicalResult reduceMean(NodeContext &ctx) {
  FailureOr<Reduction> r = readReduction(ctx);
  if (failed(r))
    return failure();
  return ctx.result(r->noop ? r->operand : ctx.b.reshape(ctx.b.mean(r->operand, r->dims), r->result));
}

/// log(sum(exp(x))) with the maximum taken out, so that exp can't overflow; infinite maxima are left in.
LogicalResult reduceLogSumExp(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  FailureOr<Reduction> r = readReduction(ctx);
  if (failed(r))
    return failure();
  Value x = r->operand;
  Type type = b.elementOf(x);
  if (r->noop)
    return ctx.result(x);
  x = b.convert(x, isa<FloatType>(type) ? b.accumulatorOf(type) : Type(b.getF64Type()));
  Value max = b.reduce(ReduceKind::Max, x, r->dims, /*keepDims=*/true);
  Value inf = IsInfOp::create(b, withElementType(max.getType(), b.getI1Type()), max);
  max = b.select(inf, b.splatLike(max, 0), max);
  Value sum = b.reduce(ReduceKind::Sum, b.unary<ExpOp>(b.sub(x, b.broadcastTo(max, getSizes(x)))), r->dims, true);
  Value result = b.reshape(b.add(b.unary<LogOp>(sum), max), r->result);
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
    PrimBuilder &b = ctx.b;
    Value x = ctx.operand(0);
    auto along = [&](Value v, int64_t axis) -> Value {
      return ScanOp::create(b, v.getType(), kind, v, axis, ctx.getInt("exclusive", 0) != 0,
                            ctx.getInt("reverse", 0) != 0);
    };
    if (!isa<IntegerType>(b.elementOf(ctx.operand(1))))
      return ctx.invalid("axis must be one integer, but is " + describe(ctx.operand(1)));
    FailureOr<Value> one = ctx.scalar(ctx.operand(1), "axis");
    if (failed(one))
      return failure();
    if (std::optional<SmallVector<int64_t>> given = ctx.constantInts(*one)) {
      FailureOr<int64_t> axis = ctx.axis(given->front(), b.rankOf(x));
      return failed(axis) ? failure() : ctx.result(along(x, *axis));
    }
    // An axis that only the run knows: the dims before it, its own, those after it.
    Sizes sizes = getSizes(x), split;
    if (sizes.empty())
      return ctx.invalid("has no axis to go along, as its operand is " + describe(x));
    Value extents = b.sizesValue(sizes), dims = b.iota(b.getI64Type(), getSizes(extents), 0);
    Value axis = b.convert(*one, b.getI64Type());
    axis = b.select(b.compare(CompareKind::LT, axis, 0), b.binary<AddOp>(axis, b.rankOf(x)), axis);
    axis = b.broadcastTo(axis, getSizes(dims));
    for (CompareKind part : {CompareKind::LT, CompareKind::EQ, CompareKind::GT}) {
      Value own = b.select(b.compare(part, dims, axis), extents, b.splatLike(extents, 1));
      split.push_back(b.bindSymbol("axis", b.reduce(ReduceKind::Prod, own, {0}), 0, INT64_MAX));
    }
    return ctx.result(b.reshape(along(b.reshape(x, split), 1), sizes));
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
  onOp.takeAnyInteger({"ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceL1", "ReduceL2",
                       "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp", "CumSum", "CumProd"});
}
