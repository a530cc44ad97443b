//===- ONNXTraining.cpp - gradients and optimisers of ai.onnx.preview.training ------------------------------------===//
//
// An optimiser's node updates any number of tensors: operands are the learning rate R, the update count T, then for
// each kind of tensor (value, gradient, state...) all tensors in turn; results are the new values, then the new states.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ONNXSupport.h"
#include "OpRegistry.h"

#include "tc/Dialect/Prim/Utils/Differentiate.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

/// New values for one tensor: value, then states. `v` are value, gradient and states; scalars are already broadcast.
using Update = llvm::function_ref<SmallVector<Value>(ArrayRef<Value> v, Value rate, Value count)>;

LogicalResult updateAll(NodeContext &ctx, size_t kinds, Update update) {
  PrimBuilder &b = ctx.b;
  size_t given = ctx.numOperands() - 2;
  if (given % kinds != 0)
    return ctx.invalid("needs R, T and " + Twine(kinds) + " operands for each tensor, but has " +
                       Twine(ctx.numOperands()));
  FailureOr<Value> rate = ctx.scalar(ctx.operand(0), "R"), count = ctx.scalar(ctx.operand(1), "T");
  if (failed(rate) || failed(count))
    return failure();
  size_t tensors = given / kinds;
  for (size_t i = 0; i < tensors; ++i) {
    SmallVector<Value> values;
    for (size_t kind = 0; kind < kinds; ++kind) {
      Value v = ctx.operand(2 + kind * tensors + i);
      if (!v || !b.isFloat(v) || b.elementOf(v) != b.elementOf(ctx.operand(2 + i)))
        return ctx.invalid("the operands of one tensor must be floats of one element type");
      FailureOr<Value> fitting = ctx.castSizes(v, getSizes(ctx.operand(2 + i)));
      if (failed(fitting))
        return failure();
      values.push_back(*fitting);
    }
    auto spread = [&](Value v) { return b.broadcastTo(b.convert(v, b.elementOf(values[0])), getSizes(values[0])); };
    for (auto [kind, v] : llvm::enumerate(update(values, spread(*rate), spread(*count))))
      if (kind * tensors + i < ctx.numResults())
        (void)ctx.set(kind * tensors + i, v);
  }
  return success();
}

/// The gradient with that of norm_coefficient / 2 * |x|^2.
Value regularized(NodeContext &ctx, Value x, Value gradient) {
  return ctx.b.add(ctx.b.binary<MulOp>(x, ctx.getFloat("norm_coefficient", 0)), gradient);
}

LogicalResult adagrad(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  return updateAll(ctx, 3, [&](ArrayRef<Value> v, Value rate, Value count) -> SmallVector<Value> {
    Value r = b.div(rate, b.binary<AddOp>(b.binary<MulOp>(count, ctx.getFloat("decay_factor", 0)), 1));
    Value gradient = regularized(ctx, v[0], v[1]);
    Value squares = b.add(v[2], b.mul(gradient, gradient));
    Value adaptive = b.binary<AddOp>(b.unary<SqrtOp>(squares), ctx.getFloat("epsilon", 1e-6));
    return {b.sub(v[0], b.div(b.mul(r, gradient), adaptive)), squares};
  });
}

LogicalResult adam(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  double alpha = ctx.getFloat("alpha", 0.9), beta = ctx.getFloat("beta", 0.999);
  return updateAll(ctx, 4, [&](ArrayRef<Value> v, Value rate, Value count) -> SmallVector<Value> {
    Value gradient = regularized(ctx, v[0], v[1]);
    auto average = [&](Value old, Value fresh, double keep) {
      return b.add(b.binary<MulOp>(old, keep), b.binary<MulOp>(fresh, 1 - keep));
    };
    auto left = [&](double keep) { // 1 - keep^T
      return b.sub(b.splatLike(count, 1), b.binary<PowOp>(b.splatLike(count, keep), count));
    };
    Value mean = average(v[2], gradient, alpha), squares = average(v[3], b.mul(gradient, gradient), beta);
    Value adjusted = b.div(b.mul(rate, b.unary<SqrtOp>(left(beta))), left(alpha));
    adjusted = b.select(b.compare(CompareKind::GT, count, 0), adjusted, rate);
    Value root = b.binary<AddOp>(b.unary<SqrtOp>(squares), ctx.getFloat("epsilon", 1e-6));
    Value x = b.sub(v[0], b.div(b.mul(adjusted, mean), root));
    return {b.binary<MulOp>(x, 1 - ctx.getFloat("norm_coefficient_post", 0)), mean, squares};
  });
}

LogicalResult momentum(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  std::string mode = ctx.getString("mode", "");
  if (mode != "standard" && mode != "nesterov")
    return ctx.invalid("mode is \"" + mode + "\"; it may be standard or nesterov");
  double alpha = ctx.getFloat("alpha", 0), beta = ctx.getFloat("beta", 1);
  return updateAll(ctx, 3, [&](ArrayRef<Value> v, Value rate, Value count) -> SmallVector<Value> {
    Value gradient = regularized(ctx, v[0], v[1]);
    Value scale = b.select(b.compare(CompareKind::GT, count, 0), b.splatLike(count, beta), b.splatLike(count, 1));
    Value velocity = b.add(b.binary<MulOp>(v[2], alpha), b.mul(scale, gradient));
    Value step = mode == "standard" ? velocity : b.add(gradient, b.binary<MulOp>(velocity, alpha));
    return {b.sub(v[0], b.mul(rate, step)), velocity};
  });
}

/// Operands: values for the tensors that `xs` and `zs` name; behind them the importer puts these tensors themselves,
/// and the one that `y` names. Where a value is another one than its tensor, y is computed again from it.
LogicalResult gradient(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  auto xs = ctx.getStrings("xs"), zs = ctx.getStrings("zs");
  size_t xCount = xs ? xs->size() : 0, count = xCount + (zs ? zs->size() : 0);
  if (xCount == 0 || ctx.numOperands() != 2 * count + 1)
    return ctx.invalid("needs an operand for each of xs and zs");
  SmallVector<Value> given(ctx.allOperands().take_front(count)), named(ctx.allOperands().slice(count, count));
  Value y = ctx.operand(2 * count);
  if (!b.isFloat(y))
    return ctx.invalid("y must have a float element type, but is " + describe(y));
  for (size_t i = 0; i < count; ++i) {
    if (!given[i] || (i < xCount && !b.isFloat(given[i])))
      return ctx.invalid("operand " + Twine(i) + " is missing, or of xs and not of a float element type");
    if (given[i] == named[i])
      continue;
    FailureOr<Value> fitting = ctx.castSizes(given[i], getSizes(named[i]));
    if (failed(fitting))
      return failure();
    if (fitting->getType() != named[i].getType())
      return ctx.invalid("operand " + Twine(i) + " is " + describe(given[i]) + ", but its tensor is " +
                         describe(named[i]));
    given[i] = *fitting;
  }
  if (given != named)
    y = emitSubstituted(b, y, named, given);
  std::string why;
  auto gradients = emitGradients(b, y, ValueRange(given).take_front(xCount), ValueRange(given).drop_front(xCount), why);
  if (failed(gradients))
    return ctx.unsupported("with a gradient " + why + " is not supported");
  for (auto [i, g] : llvm::enumerate(*gradients))
    (void)ctx.set(i, g);
  return success();
}

} // namespace

void tc::populateONNXTraining(OpRegistrar &onOp) {
  onOp("Adagrad", 1, adagrad, 2);
  onOp("Adam", 1, adam, 2);
  onOp("Gradient", 1, gradient);
  onOp("Momentum", 1, momentum, 2);
}
