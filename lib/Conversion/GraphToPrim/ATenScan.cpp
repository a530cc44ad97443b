//===- ATenScan.cpp - cumulative operators of ATen ----------------------------------------------------------------===//
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

Value scan(PrimBuilder &b, ReduceKind kind, Value v, int64_t axis) {
  return ScanOp::create(b, v.getType(), kind, v, axis, /*exclusive=*/false, /*reverse=*/false);
}

/// A tensor without dims as one of one element, and back by a reshape to its sizes.
Value withDim(PrimBuilder &b, Value v) { return b.rankOf(v) ? v : b.reshape(v, {b.size(1)}); }

/// Argument "self", with a dim, and the dim that argument "dim" names.
FailureOr<std::pair<Value, int64_t>> alongDim(Call &c, std::optional<int64_t> otherwise = {}) {
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  FailureOr<std::optional<int64_t>> dim = c.dim("dim", c.b.rankOf(*self), otherwise);
  if (failed(dim))
    return failure();
  return std::make_pair(withDim(c.b, *self), dim->value_or(0));
}

/// Sums and products: integers are of i64, as argument "dtype" says otherwise.
LogicalResult cumulate(NodeContext &ctx, ReduceKind kind) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  auto self = alongDim(c);
  if (failed(self))
    return failure();
  auto [x, axis] = *self;
  Type own = b.elementOf(x);
  FailureOr<Type> type = c.dtype(isa<IntegerType>(own) ? Type(b.getI64Type()) : own);
  FailureOr<Value> v = failed(type) ? FailureOr<Value>(failure()) : c.convert(x, *type);
  if (failed(v))
    return failure();
  if (b.isComplex(*v))
    return ctx.unsupported("with a complex dtype is not supported; cumulate real and imaginary part by themselves");
  if (b.isFloat(*v))
    v = b.convert(*v, b.accumulatorOf(*type));
  return c.rounded(b.reshape(scan(b, kind, *v, axis), getSizes(c.tensor("self"))), *type);
}

/// The extremes so far, and where the last one equal to each stands. NaN wins, and stays.
LogicalResult cumulateExtremes(NodeContext &ctx, ReduceKind kind) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  auto self = alongDim(c);
  if (failed(self))
    return failure();
  auto [x, axis] = *self;
  Type type = b.elementOf(x);
  Value v = type.isInteger(1) ? b.convert(x, b.getIntegerType(8, /*isSigned=*/false)) : x;
  Value extremes = scan(b, kind, v, axis);
  Value isNew = b.compare(CompareKind::EQ, v, extremes);
  if (b.isFloat(v))
    isNew = b.binary<OrOp>(isNew, isNan(b, v));
  Value position = b.iota(b.getI64Type(), getSizes(v), axis);
  Value index = scan(b, ReduceKind::Max, b.select(isNew, position, b.splatLike(position, 0)), axis);
  Sizes sizes = getSizes(c.tensor("self"));
  (void)ctx.set(1, b.reshape(index, sizes));
  return ctx.result(b.reshape(b.convert(extremes, type), sizes));
}

/// log of the sum of exponentials so far, in as many steps as the length has bits: each adds to every element what
/// stands 1, 2, 4, .. places before it, by their difference, so that no element is lost beside a greater one.
LogicalResult logCumSumExp(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> floats = c.floats("self", /*orIntegers=*/true);
  auto self = failed(floats) ? FailureOr<std::pair<Value, int64_t>>(failure()) : alongDim(c);
  if (failed(self))
    return failure();
  int64_t axis = self->second;
  Type type = b.elementOf(*floats);
  Value x = b.convert(withDim(b, *floats), b.accumulatorOf(type));
  Sizes sizes = getSizes(x);
  int64_t most = b.bounds(sizes[axis]).second;
  Value lowest = b.scalar(b.elementOf(x), -INFINITY);
  for (int64_t step = 1; step < most && step < int64_t(1) << 31; step *= 2) {
    Sizes low(sizes.size(), b.size(0));
    low[axis] = b.size(step);
    Value before = b.pad(x, lowest, low, sizes);
    Value greater = b.max(x, before), distance = b.unary<AbsOp>(b.sub(x, before));
    Value sum = b.add(greater, b.unary<Log1pOp>(b.unary<ExpOp>(b.unary<NegOp>(distance))));
    x = b.select(b.binary<AndOp>(b.compare(CompareKind::EQ, x, before), isInf(b, x)), x,
                 b.select(b.compare(CompareKind::EQ, before, -INFINITY), x, sum));
  }
  return c.rounded(b.reshape(x, getSizes(*floats)), type);
}

} // namespace

void tc::populateATenScan(OpRegistrar &onOp) {
  auto on = [&](std::initializer_list<StringRef> types, const NodeHandler &handler) {
    for (StringRef type : types)
      onOp(type, /*sinceVersion=*/1, handler, /*minOperands=*/1);
  };
  on({"cumsum.default"}, [](NodeContext &ctx) { return cumulate(ctx, ReduceKind::Sum); });
  on({"cumprod.default"}, [](NodeContext &ctx) { return cumulate(ctx, ReduceKind::Prod); });
  on({"cummax.default"}, [](NodeContext &ctx) { return cumulateExtremes(ctx, ReduceKind::Max); });
  on({"cummin.default"}, [](NodeContext &ctx) { return cumulateExtremes(ctx, ReduceKind::Min); });
  on({"logcumsumexp.default"}, logCumSumExp);
}
