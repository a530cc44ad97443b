//===- ATenReduction.cpp - reductions, statistics and norms of ATen -----------------------------------------------===//
//
// Source: the native function schemas of PyTorch (aten/src/ATen/native/native_functions.yaml).
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ATenSupport.h"
#include "OpRegistry.h"

#include <cmath>

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

/// The operand in the type that is computed in, and what is reduced.
struct Reduction {
  Value x;
  SmallVector<int64_t> dims;
  bool keep = false;

  Value reduce(PrimBuilder &b, ReduceKind kind, Value v) const { return b.reduce(kind, v, dims, keep); }
  /// Of the operand's sizes, from one that kept its dims.
  Value spread(PrimBuilder &b, Value kept) const { return b.broadcastTo(kept, getSizes(x)); }
};

FailureOr<Reduction> readReduction(Call &c, bool emptyIsNone = false) {
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  auto dims = c.dims("dim", c.b.rankOf(*self), emptyIsNone);
  if (failed(dims))
    return failure();
  return Reduction{*self, *dims, c.flag("keepdim")};
}

/// The number of elements that each result is made of, 0-D of `type`.
Value countOf(PrimBuilder &b, const Reduction &r, Type type) {
  Sizes all = getSizes(r.x), counted;
  for (int64_t dim : r.dims)
    counted.push_back(all[dim]);
  AffineExpr count = product(b.getContext(), counted);
  if (auto constant = getConstantSize(count))
    return b.scalar(type, double(*constant));
  return b.convert(b.sizeValue(count), type);
}

/// Takes argument "dtype", or else i64 for integers, as the type to add and multiply in.
LogicalResult widen(Call &c, Reduction &r, Type &type) {
  Type own = c.b.elementOf(r.x);
  FailureOr<Type> given = c.dtype(isa<IntegerType>(own) ? Type(c.b.getI64Type()) : own);
  if (failed(given))
    return failure();
  if (isa<ComplexType>(*given))
    return c.ctx.unsupported("with a complex dtype is not supported; reduce real and imaginary part by themselves");
  type = *given;
  FailureOr<Value> x = c.convert(r.x, type.isInteger(1) ? Type(c.b.getI64Type()) : type);
  if (succeeded(x))
    r.x = *x;
  return x;
}

LogicalResult sum(NodeContext &ctx, bool skipNan = false) {
  Call c(ctx);
  FailureOr<Reduction> r = readReduction(c);
  if (failed(r))
    return failure();
  Type type;
  if (skipNan && ctx.b.isFloat(r->x))
    r->x = ctx.b.select(isNan(ctx.b, r->x), ctx.b.splatLike(r->x, 0), r->x);
  if (failed(widen(c, *r, type)))
    return failure();
  return c.rounded(r->reduce(ctx.b, ReduceKind::Sum, r->x), type);
}

LogicalResult prod(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Reduction> r = readReduction(c);
  Type type;
  if (failed(r) || failed(widen(c, *r, type)))
    return failure();
  Value x = ctx.b.convert(r->x, ctx.b.accumulatorOf(ctx.b.elementOf(r->x)));
  return c.rounded(r->reduce(ctx.b, ReduceKind::Prod, x), type);
}

LogicalResult mean(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Reduction> r = readReduction(c);
  Type type;
  if (failed(r) || failed(widen(c, *r, type)))
    return failure();
  if (!isa<FloatType>(type))
    return ctx.invalid("takes floats, but got " + describe(*c.required("self")) + "; give it a dtype of floats");
  return ctx.result(ctx.b.mean(r->x, r->dims, r->keep));
}

LogicalResult nanMean(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Reduction> r = readReduction(c);
  Type type;
  if (failed(r) || failed(widen(c, *r, type)))
    return failure();
  if (!isa<FloatType>(type))
    return ctx.invalid("takes floats, but got " + describe(r->x));
  Value nan = isNan(b, r->x), x = b.convert(r->x, b.accumulatorOf(type));
  x = b.select(nan, b.splatLike(x, 0), x);
  Value count = r->reduce(b, ReduceKind::Sum, b.convert(b.unary<NotOp>(nan), b.getI64Type()));
  Value total = r->reduce(b, ReduceKind::Sum, x);
  return c.rounded(b.div(total, b.convert(count, b.elementOf(total))), type);
}

/// Variance or its root, then (`withMean`) the mean. The divisor is the number of elements less the correction, but
/// not below 0, so that too few elements give NaN or infinity.
LogicalResult variance(NodeContext &ctx, bool isRoot, bool withMean) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> floats = c.floats("self");
  FailureOr<Reduction> r = failed(floats) ? FailureOr<Reduction>(failure()) : readReduction(c);
  if (failed(r))
    return failure();
  Type type = b.elementOf(r->x), compute = b.accumulatorOf(type);
  double correction = c.number("correction", c.flag("unbiased", true));
  r->x = b.convert(r->x, compute);
  Value mean = b.mean(r->x, r->dims, /*keepDims=*/true);
  Value away = b.sub(r->x, r->spread(b, mean));
  Value total = r->reduce(b, ReduceKind::Sum, b.mul(away, away));
  Value divisor = b.binary<MaxOp>(b.binary<SubOp>(countOf(b, *r, compute), correction), 0);
  Value result = b.div(total, b.broadcastTo(divisor, getSizes(total)));
  if (withMean && failed(c.rounded(b.reshape(mean, getSizes(result)), type, 1)))
    return failure();
  return c.rounded(isRoot ? b.unary<SqrtOp>(result) : result, type);
}

/// Bools have "or" as their greatest and "and" as their least.
Value extreme(PrimBuilder &b, const Reduction &r, bool isMax) {
  if (b.elementOf(r.x).isInteger(1))
    return r.reduce(b, isMax ? ReduceKind::Or : ReduceKind::And, r.x);
  return r.reduce(b, isMax ? ReduceKind::Max : ReduceKind::Min, r.x);
}

LogicalResult requireElements(NodeContext &ctx, const Reduction &r) {
  for (int64_t dim : r.dims)
    if (failed(ctx.require(CompareKind::LE, ctx.b.size(1), getSizes(r.x)[dim], "one element or more to choose from")))
      return failure();
  return success();
}

LogicalResult extremes(NodeContext &ctx, bool isMax) {
  Call c(ctx);
  FailureOr<Reduction> r = readReduction(c);
  if (failed(r) || failed(requireElements(ctx, *r)))
    return failure();
  return ctx.result(extreme(ctx.b, *r, isMax));
}

LogicalResult leastAndGreatest(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Reduction> r = readReduction(c);
  if (failed(r) || failed(requireElements(ctx, *r)))
    return failure();
  (void)ctx.set(1, extreme(ctx.b, *r, /*isMax=*/true));
  return ctx.result(extreme(ctx.b, *r, /*isMax=*/false));
}

/// The index of the first extreme element along a dim, or (without one) in row-major order.
FailureOr<Value> indexOf(Call &c, const Reduction &r, bool isMax) {
  PrimBuilder &b = c.b;
  Value x = r.x;
  if (b.elementOf(x).isInteger(1))
    x = b.convert(x, b.getIntegerType(8, /*isSigned=*/false));
  Sizes sizes = getSizes(x), kept;
  int64_t axis = 0;
  if (r.dims.size() == sizes.size() && sizes.size() != 1) {
    kept.assign(r.keep ? sizes.size() : 0, b.size(1));
    x = b.reshape(x, {product(b.getContext(), sizes)});
  } else {
    axis = r.dims.front();
    kept = sizes;
    if (r.keep)
      kept[axis] = b.size(1);
    else
      kept.erase(kept.begin() + axis);
  }
  Sizes dropped = getSizes(x);
  dropped.erase(dropped.begin() + axis);
  Value index = ArgReduceOp::create(b, makeType(b.getI64Type(), dropped), isMax ? ReduceKind::Max : ReduceKind::Min, x,
                                    axis, /*lastIndex=*/false);
  return b.reshape(index, kept);
}

/// `withValues`: max.dim and min.dim, whose results are the values and their indices.
LogicalResult indices(NodeContext &ctx, bool isMax, bool withValues) {
  Call c(ctx);
  FailureOr<Reduction> r = readReduction(c);
  if (failed(r) || failed(requireElements(ctx, *r)))
    return failure();
  FailureOr<Value> index = indexOf(c, *r, isMax);
  if (failed(index))
    return failure();
  if (withValues)
    (void)ctx.set(0, extreme(ctx.b, *r, isMax));
  return ctx.set(withValues, *index);
}

/// Results are bools, but of ui8 they are ui8.
LogicalResult quantified(NodeContext &ctx, ReduceKind kind) {
  Call c(ctx);
  FailureOr<Reduction> r = readReduction(c, /*emptyIsNone=*/true);
  if (failed(r))
    return failure();
  Type type = ctx.b.elementOf(r->x);
  FailureOr<Value> truth = c.convert(r->x, ctx.b.getI1Type());
  if (failed(truth))
    return failure();
  Type result = type.isUnsignedInteger(8) ? type : Type(ctx.b.getI1Type());
  return c.rounded(r->reduce(ctx.b, kind, *truth), result);
}

LogicalResult countNonZero(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Reduction> r = readReduction(c);
  if (failed(r))
    return failure();
  FailureOr<Value> truth = c.convert(r->x, ctx.b.getI1Type());
  if (failed(truth))
    return failure();
  return ctx.result(r->reduce(ctx.b, ReduceKind::Sum, ctx.b.convert(*truth, ctx.b.getI64Type())));
}

/// With the maximum taken out, so that exp can't overflow; infinite maxima are left in.
LogicalResult logSumExp(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.floats("self", /*orIntegers=*/true);
  FailureOr<Reduction> r = failed(self) ? FailureOr<Reduction>(failure()) : readReduction(c);
  if (failed(r))
    return failure();
  Type type = b.elementOf(*self);
  r->x = b.convert(*self, b.accumulatorOf(type));
  Value most = b.reduce(ReduceKind::Max, r->x, r->dims, /*keepDims=*/true);
  most = b.select(isInf(b, most), b.splatLike(most, 0), most);
  Value sum = r->reduce(b, ReduceKind::Sum, b.unary<ExpOp>(b.sub(r->x, r->spread(b, most))));
  return c.rounded(b.add(b.unary<LogOp>(sum), b.reshape(most, getSizes(sum))), type);
}

/// The p-norm; p is argument `order`.
LogicalResult norm(NodeContext &ctx, StringRef order) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Reduction> r = readReduction(c);
  if (failed(r))
    return failure();
  Type own = b.elementOf(r->x);
  FailureOr<Type> given = c.dtype(own);
  if (failed(given))
    return failure();
  if (auto complex = dyn_cast<ComplexType>(*given))
    given = complex.getElementType();
  if (!isa<FloatType>(*given))
    return ctx.invalid("takes floats, but got " + describe(r->x));
  if (ctx.hasAttr(order) && !isa<FloatAttr, IntegerAttr>(ctx.attr(order)))
    return ctx.unsupported(
        "with an order that the program computes, or by name, is not supported; give it as a number");
  if (b.isComplex(r->x)) {
    auto [real, imaginary] = splitComplex(b, r->x);
    r->x = emitHypot(b, real, imaginary);
  }
  Value x = b.unary<AbsOp>(b.convert(r->x, b.accumulatorOf(*given)));
  double p = c.number(order, 2);
  auto total = [&](Value v) { return r->reduce(b, ReduceKind::Sum, v); };
  Value result;
  if (std::isinf(p)) {
    if (p < 0 && failed(requireElements(ctx, *r)))
      return failure();
    result = r->reduce(b, p > 0 ? ReduceKind::Max : ReduceKind::Min, x);
    if (p > 0) // of nothing 0
      result = b.binary<MaxOp>(result, 0);
  } else if (p == 0) {
    result = total(b.convert(b.compare(CompareKind::NE, x, 0), b.elementOf(x)));
  } else if (p == 1) {
    result = total(x);
  } else if (p == 2) {
    result = b.unary<SqrtOp>(total(b.mul(x, x)));
  } else {
    result = b.binary<PowOp>(total(b.binary<PowOp>(x, p)), 1 / p);
  }
  return c.rounded(result, *given);
}

/// `guarded`: rows of nothing but -inf give 0.
LogicalResult softmax(NodeContext &ctx, bool log, bool guarded = false) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  Type own = b.elementOf(*self);
  FailureOr<Type> type = c.dtype(c.flag("half_to_float") ? Type(b.getF32Type()) : own);
  if (failed(type))
    return failure();
  if (!isa<FloatType>(*type))
    return ctx.invalid("takes floats, but got " + describe(*self) + "; give it a dtype of floats");
  FailureOr<std::optional<int64_t>> dim = c.dim("dim", b.rankOf(*self));
  FailureOr<Value> x = failed(dim) ? FailureOr<Value>(failure()) : c.convert(*self, *type);
  if (failed(x))
    return failure();
  Sizes sizes = getSizes(*x);
  Value v = sizes.empty() ? b.reshape(*x, {b.size(1)}) : *x;
  int64_t axis = dim->value_or(0);
  Value result = SoftmaxOp::create(b, v.getType(), v, axis, log);
  if (guarded) {
    Value none = b.reduce(ReduceKind::And, b.compare(CompareKind::EQ, v, -INFINITY), {axis}, /*keepDims=*/true);
    result = b.select(b.broadcastTo(none, getSizes(v)), b.splatLike(v, 0), result);
  }
  return ctx.result(b.reshape(result, sizes));
}

} // namespace

void tc::populateATenReduction(OpRegistrar &onOp) {
  auto on = [&](std::initializer_list<StringRef> types, const NodeHandler &handler, ComplexUse use = ComplexUse::None) {
    for (StringRef type : types) {
      onOp(type, /*sinceVersion=*/1, handler, /*minOperands=*/1);
      onOp.takeComplex(use, {type});
    }
  };
  on({"sum.default", "sum.dim_IntList"}, [](NodeContext &ctx) { return sum(ctx); }, ComplexUse::ByParts);
  on({"nansum.default"}, [](NodeContext &ctx) { return sum(ctx, /*skipNan=*/true); });
  on({"mean.default", "mean.dim"}, mean, ComplexUse::ByParts);
  on({"nanmean.default"}, nanMean);
  on({"prod.default", "prod.dim_int"}, prod);
  on({"var.default", "var.dim", "var.correction"}, [](NodeContext &ctx) { return variance(ctx, false, false); });
  on({"std.default", "std.dim", "std.correction"}, [](NodeContext &ctx) { return variance(ctx, true, false); });
  on({"var_mean.default", "var_mean.dim", "var_mean.correction"},
     [](NodeContext &ctx) { return variance(ctx, false, true); });
  on({"std_mean.default", "std_mean.dim", "std_mean.correction"},
     [](NodeContext &ctx) { return variance(ctx, true, true); });
  on({"amax.default", "max.default"}, [](NodeContext &ctx) { return extremes(ctx, /*isMax=*/true); });
  on({"amin.default", "min.default"}, [](NodeContext &ctx) { return extremes(ctx, /*isMax=*/false); });
  on({"aminmax.default"}, leastAndGreatest);
  on({"argmax.default"}, [](NodeContext &ctx) { return indices(ctx, true, false); });
  on({"argmin.default"}, [](NodeContext &ctx) { return indices(ctx, false, false); });
  on({"max.dim"}, [](NodeContext &ctx) { return indices(ctx, true, /*withValues=*/true); });
  on({"min.dim"}, [](NodeContext &ctx) { return indices(ctx, false, /*withValues=*/true); });
  on(
      {"any.default", "any.dim", "any.dims"}, [](NodeContext &ctx) { return quantified(ctx, ReduceKind::Or); },
      ComplexUse::Moved);
  on(
      {"all.default", "all.dim", "all.dims"}, [](NodeContext &ctx) { return quantified(ctx, ReduceKind::And); },
      ComplexUse::Moved);
  on({"_is_all_true.default"}, [](NodeContext &ctx) { return quantified(ctx, ReduceKind::And); });
  on({"_is_any_true.default"}, [](NodeContext &ctx) { return quantified(ctx, ReduceKind::Or); });
  on({"count_nonzero.default", "count_nonzero.dim_IntList"}, countNonZero, ComplexUse::Moved);
  on({"logsumexp.default", "special_logsumexp.default"}, logSumExp);
  on({"linalg_vector_norm.default"}, [](NodeContext &ctx) { return norm(ctx, "ord"); }, ComplexUse::Moved);
  on(
      {"norm.Scalar", "norm.ScalarOpt_dim", "norm.ScalarOpt_dtype", "norm.ScalarOpt_dim_dtype"},
      [](NodeContext &ctx) { return norm(ctx, "p"); }, ComplexUse::Moved);
  on({"softmax.int", "_softmax.default", "special_softmax.default"},
     [](NodeContext &ctx) { return softmax(ctx, /*log=*/false); });
  on({"log_softmax.int", "_log_softmax.default", "special_log_softmax.default"},
     [](NodeContext &ctx) { return softmax(ctx, /*log=*/true); });
  on({"_safe_softmax.default"}, [](NodeContext &ctx) { return softmax(ctx, false, /*guarded=*/true); });
}
