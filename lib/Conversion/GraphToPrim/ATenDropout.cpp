//===- ATenDropout.cpp - dropout of ATen ------------------------------------------------------------------------===//
//
// In training elements, or whole channels, are left out at random, by numbers of tc's own (Random.h); else the operand
// stays as it is. Source: ATen, native/Dropout.cpp.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ATenSupport.h"
#include "Dropout.h"
#include "OpRegistry.h"
#include "Random.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

Value tc::emitKept(NodeContext &ctx, SizesRef sizes, double p) {
  PrimBuilder &b = ctx.b;
  if (p == 0 || p == 1)
    return b.splat(b.getI1Type(), sizes, p == 0);
  return b.compare(CompareKind::GE, emitUniform(ctx, sizes, b.getF32Type(), 0, 1), p);
}

Value tc::applyDropout(PrimBuilder &b, Value x, Value kept, double p) {
  const Type type = b.elementOf(x), compute = b.accumulatorOf(type);
  // A product, as what is no number stays none.
  Value factor =
      b.select(kept, b.splat(compute, getSizes(kept), p == 1 ? 0 : 1 / (1 - p)), b.splat(compute, getSizes(kept), 0));
  return b.convert(b.mul(b.convert(x, compute), b.broadcastTo(factor, getSizes(x))), type);
}

LogicalResult tc::checkProbability(NodeContext &ctx, double p, StringRef name) {
  if (p >= 0 && p <= 1)
    return success();
  return ctx.invalid(name + " is a probability from 0 to 1, not " + std::to_string(p));
}

namespace {

enum class Parts { Elements, Channels };

/// `keepsSelf`: what is left out is not 0, but what makes mean and variance those of before, of self-normalising
/// networks.
LogicalResult dropout(NodeContext &ctx, Parts parts, bool keepsSelf) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> x = c.required("input");
  if (failed(x))
    return failure();
  const double p = c.number("p", 0.5);
  if (failed(checkProbability(ctx, p)))
    return failure();
  // native_dropout trains where it is not told.
  const bool trains = c.flag("train", ctx.numResults() > 1) && p != 0;
  if (!trains) {
    if (ctx.numResults() > 1)
      (void)ctx.set(1, b.splat(b.getI1Type(), getSizes(*x), 1));
    return ctx.result(*x);
  }
  if (!b.isFloat(*x))
    return ctx.invalid("takes a tensor of floats in training, but got " + describe(*x));
  Sizes sizes = getSizes(*x);
  if (parts == Parts::Channels) {
    if (sizes.size() < 2)
      return ctx.invalid("leaves out channels, of which " + describe(*x) + " has none");
    for (AffineExpr &size : MutableArrayRef(sizes).drop_front(2))
      size = b.size(1);
  }
  Value kept = emitKept(ctx, sizes, p);
  if (ctx.numResults() > 1)
    (void)ctx.set(1, kept);
  if (!keepsSelf || p == 1)
    return ctx.result(applyDropout(b, *x, kept, p));
  constexpr double kAlpha = 1.7580993408473766; // of SELU: its scale times its slope
  const double a = 1 / std::sqrt((kAlpha * kAlpha * p + 1) * (1 - p)), shift = kAlpha * a * p;
  const Type type = b.elementOf(*x), compute = b.accumulatorOf(type);
  auto choose = [&](double ifKept, double otherwise) {
    Value chosen = b.select(kept, b.splat(compute, sizes, ifKept), b.splat(compute, sizes, otherwise));
    return b.broadcastTo(chosen, getSizes(*x));
  };
  Value y = b.add(b.mul(b.convert(*x, compute), choose(a, 0)), choose(shift, shift - kAlpha * a));
  return ctx.result(b.convert(y, type));
}

} // namespace

void tc::populateATenDropout(OpRegistrar &onOp) {
  auto on = [&](std::initializer_list<StringRef> types, Parts parts, bool keepsSelf) {
    for (StringRef type : types)
      onOp(
          type, /*sinceVersion=*/1, [=](NodeContext &ctx) { return dropout(ctx, parts, keepsSelf); },
          /*minOperands=*/1);
  };
  on({"dropout.default", "native_dropout.default"}, Parts::Elements, false);
  on({"feature_dropout.default"}, Parts::Channels, false);
  on({"alpha_dropout.default"}, Parts::Elements, true);
  on({"feature_alpha_dropout.default"}, Parts::Channels, true);
}
