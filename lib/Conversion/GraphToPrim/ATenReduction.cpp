//===- ATenReduction.cpp - reductions and softmax of ATen ---------------------------------------------------------===//
//
// Source: the native function schemas of PyTorch (aten/src/ATen/native/native_functions.yaml).
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ATenSupport.h"
#include "OpRegistry.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

template <ReduceKind kind, bool isMean> LogicalResult reduceDims(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> self = isMean ? c.floats("self") : c.required("self");
  if (failed(self))
    return failure();
  // Sums of integers are of int64.
  if (isa<IntegerType>(ctx.b.elementOf(*self)) && kind == ReduceKind::Sum)
    self = ctx.b.convert(*self, ctx.b.getI64Type());
  if (!ctx.b.isFloat(*self) && !isa<IntegerType>(ctx.b.elementOf(*self)))
    return ctx.unsupported("of " + describe(*self) + " is not supported");
  int64_t rank = ctx.b.rankOf(*self);
  SmallVector<int64_t> dims = c.integers("dim").value_or(SmallVector<int64_t>{});
  if (dims.empty())
    dims = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  FailureOr<SmallVector<int64_t>> axes = ctx.axes(dims, rank);
  if (failed(axes))
    return failure();
  bool keep = c.flag("keepdim");
  return ctx.result(isMean ? ctx.b.mean(*self, *axes, keep) : ctx.b.reduce(kind, *self, *axes, keep));
}

LogicalResult softmax(NodeContext &ctx, bool log) {
  Call c(ctx);
  FailureOr<Value> self = c.floats("self");
  if (failed(self))
    return failure();
  FailureOr<int64_t> axis = ctx.axis(c.integer("dim", -1), ctx.b.rankOf(*self));
  if (failed(axis))
    return failure();
  return ctx.result(SoftmaxOp::create(ctx.b, self->getType(), *self, *axis, log));
}

} // namespace

void tc::populateATenReduction(OpRegistrar &onOp) {
  auto on = [&](StringRef type, NodeHandler handler, size_t minOperands = 1) {
    onOp(type, /*sinceVersion=*/1, std::move(handler), minOperands);
  };
  on("mean.dim", reduceDims<ReduceKind::Sum, true>);
  on("mean.default", reduceDims<ReduceKind::Sum, true>);
  on("sum.dim_IntList", reduceDims<ReduceKind::Sum, false>);
  on("sum.default", reduceDims<ReduceKind::Sum, false>);
  on("amax.default", reduceDims<ReduceKind::Max, false>);
  on("amin.default", reduceDims<ReduceKind::Min, false>);
  on("softmax.int", [](NodeContext &ctx) { return softmax(ctx, /*log=*/false); });
  on("_softmax.default", [](NodeContext &ctx) { return softmax(ctx, /*log=*/false); });
  on("log_softmax.int", [](NodeContext &ctx) { return softmax(ctx, /*log=*/true); });
}
