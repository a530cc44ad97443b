//===- ATenNorm.cpp - normalisations of ATen ----------------------------------------------------------------------===//
//
// Source: the native function schemas of PyTorch (aten/src/ATen/native/native_functions.yaml).
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ATenSupport.h"
#include "OpRegistry.h"
#include "Windows.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

LogicalResult layerNorm(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> x = c.floats("input");
  std::optional<SmallVector<int64_t>> shape = c.integers("normalized_shape");
  if (failed(x) || !shape || shape->empty() || int64_t(shape->size()) > ctx.b.rankOf(*x))
    return ctx.invalid("normalized_shape does not fit the input");
  int64_t rank = ctx.b.rankOf(*x);
  for (auto [size, normalized] : llvm::zip(llvm::reverse(getSizes(*x)), llvm::reverse(*shape)))
    if (failed(ctx.requireEqual(size, ctx.b.size(normalized), "an input of the normalized_shape")))
      return failure();
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(rank - shape->size(), rank));
  Value y = ctx.b.norm(*x, dims, c.number("eps", 1e-5), /*rms=*/false);
  for (StringRef name : {"weight", "bias"}) {
    Value factor = c.tensor(name);
    if (!factor)
      continue;
    if (ctx.b.elementOf(factor) != ctx.b.elementOf(y))
      return ctx.unsupported("of two element types is not supported: " + describe(*x) + " and " + describe(factor));
    FailureOr<Value> spread = ctx.broadcastOnto(factor, getSizes(y));
    if (failed(spread))
      return failure();
    y = name == "weight" ? ctx.b.mul(y, *spread) : ctx.b.add(y, *spread);
  }
  return ctx.result(y);
}

LogicalResult batchNorm(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> x = c.floats("input");
  if (failed(x))
    return failure();
  Value mean = c.tensor("running_mean"), variance = c.tensor("running_var");
  if (c.flag("training") || !mean || !variance)
    return ctx.unsupported("in training, or without running statistics, is not supported; export the model after "
                           "model.eval()");
  if (b.rankOf(*x) < 2)
    return ctx.invalid("takes an input of rank 2 or more, but got " + describe(*x));
  Value operands[] = {c.tensor("weight"), c.tensor("bias"), mean, variance};
  // Statistics are of f32 beside operands of half precision.
  Type compute = b.elementOf(variance);
  for (Value &operand : operands) {
    if (!operand)
      continue;
    if (!b.isFloat(operand) || b.rankOf(operand) != 1)
      return ctx.invalid("takes statistics, weight and bias of rank 1 and of floats, but got " + describe(operand));
    FailureOr<Value> fitting = ctx.castSizes(b.convert(operand, compute), {getSizes(*x)[1]});
    if (failed(fitting))
      return failure();
    operand = *fitting;
  }
  FailureOr<Value> y = emitBatchNorm(ctx, *x, operands[0], operands[1], operands[2], operands[3], c.number("eps", 1e-5),
                                     [&](Value v) { return broadcastAlong(ctx, v, 1, getSizes(*x)); });
  return failed(y) ? failure() : ctx.result(*y);
}

} // namespace

void tc::populateATenNorm(OpRegistrar &onOp) {
  auto on = [&](StringRef type, NodeHandler handler, size_t minOperands = 1) {
    onOp(type, /*sinceVersion=*/1, std::move(handler), minOperands);
  };
  on("layer_norm.default", layerNorm);
  on("batch_norm.default", batchNorm, 3);
}
