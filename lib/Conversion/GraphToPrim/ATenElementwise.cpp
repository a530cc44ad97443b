//===- ATenElementwise.cpp - arithmetic, functions and conversions of ATen ----------------------------------------===//
//
// Source: the native function schemas of PyTorch (aten/src/ATen/native/native_functions.yaml).
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ATenSupport.h"
#include "OpRegistry.h"
#include "Shared.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

/// An operand that is a tensor or a number, as a tensor of the other one's element type.
template <typename Op> LogicalResult arithmetic(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  Type element = ctx.b.elementOf(*self);
  if (!ctx.b.isFloat(*self) && !isa<IntegerType>(element))
    return ctx.unsupported("of " + describe(*self) + " is not supported");
  Value other = c.tensor("other");
  // Of integers PyTorch makes f32 to divide them, and beside a number that is none.
  bool isDivision = std::is_same_v<Op, DivOp>, beside = !other && isa_and_nonnull<FloatAttr>(ctx.attr("other"));
  if (isa<IntegerType>(element) && (isDivision || beside)) {
    self = ctx.b.convert(*self, ctx.b.getF32Type());
    if (other && isa<IntegerType>(ctx.b.elementOf(other)))
      other = ctx.b.convert(other, ctx.b.getF32Type());
  }
  if (ctx.b.elementOf(*self).isInteger(1))
    return ctx.unsupported("of bool is not supported");
  if (!other)
    other = ctx.b.scalar(ctx.b.elementOf(*self), c.number("other", 0));
  if (ctx.b.elementOf(other) != ctx.b.elementOf(*self)) {
    // A 0-D tensor takes the other's type; all else must agree, as torch.export has made conversions explicit.
    if (ctx.b.rankOf(other) == 0)
      other = ctx.b.convert(other, ctx.b.elementOf(*self));
    else
      return ctx.unsupported("of two element types is not supported: " + describe(*self) + " and " + describe(other));
  }
  if (double alpha = c.number("alpha", 1); alpha != 1)
    other = ctx.b.binary<MulOp>(other, alpha);
  Value operands[] = {*self, other};
  if (failed(ctx.broadcastTogether(operands)))
    return failure();
  return ctx.result(ctx.b.binary<Op>(operands[0], operands[1]));
}

template <typename Op> LogicalResult unary(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> self = c.floats("self", /*orIntegers=*/true);
  return failed(self) ? failure() : ctx.result(ctx.b.unary<Op>(*self));
}

/// Of integers, too: what it gives is of their type. `ofIntegers`: whether it changes them.
template <typename Op, bool ofIntegers> LogicalResult unaryOfNumbers(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  if (ctx.b.isFloat(*self))
    return ctx.result(ctx.b.unary<Op>(*self));
  if (!isa<IntegerType>(ctx.b.elementOf(*self)) || ctx.b.elementOf(*self).isInteger(1))
    return ctx.unsupported("of " + describe(*self) + " is not supported");
  return ctx.result(ofIntegers ? ctx.b.unary<Op>(*self) : *self);
}

LogicalResult gelu(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> self = c.floats("self");
  if (failed(self))
    return failure();
  return ctx.result(emitGelu(ctx.b, *self, ctx.getString("approximate", "none") == "tanh"));
}

LogicalResult convert(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  auto type = dyn_cast_or_null<TypeAttr>(ctx.attr("dtype"));
  if (type && !isa<FloatType, IntegerType>(type.getValue()))
    return ctx.unsupported("to complex numbers is not supported");
  return ctx.result(type ? ctx.b.convert(*self, type.getValue()) : *self);
}

LogicalResult same(NodeContext &ctx) {
  Call c(ctx);
  Value self = c.tensor("self") ? c.tensor("self") : c.tensor("input");
  return self ? ctx.result(self) : ctx.invalid("needs an operand");
}

} // namespace

void tc::populateATenElementwise(OpRegistrar &onOp) {
  auto on = [&](StringRef type, NodeHandler handler, size_t minOperands = 1) {
    onOp(type, /*sinceVersion=*/1, std::move(handler), minOperands);
  };
  on("add.Tensor", arithmetic<AddOp>);
  on("add.Scalar", arithmetic<AddOp>);
  on("sub.Tensor", arithmetic<SubOp>);
  on("mul.Tensor", arithmetic<MulOp>);
  on("mul.Scalar", arithmetic<MulOp>);
  on("div.Tensor", arithmetic<DivOp>);
  on("div.Scalar", arithmetic<DivOp>);
  on("maximum.default", arithmetic<MaxOp>, 2);
  on("minimum.default", arithmetic<MinOp>, 2);
  on("abs.default", unaryOfNumbers<AbsOp, true>);
  on("neg.default", unaryOfNumbers<NegOp, true>);
  on("exp.default", unary<ExpOp>);
  on("log.default", unary<LogOp>);
  on("sqrt.default", unary<SqrtOp>);
  on("rsqrt.default", unary<RsqrtOp>);
  on("reciprocal.default", unary<ReciprocalOp>);
  on("sigmoid.default", unary<LogisticOp>);
  on("tanh.default", unary<TanhOp>);
  on("erf.default", unary<ErfOp>);
  on("sin.default", unary<SinOp>);
  on("cos.default", unary<CosOp>);
  on("floor.default", unaryOfNumbers<FloorOp, false>);
  on("ceil.default", unaryOfNumbers<CeilOp, false>);
  for (StringRef name : {"relu.default", "relu_.default"})
    on(name, [](NodeContext &ctx) {
      Call c(ctx);
      FailureOr<Value> self = c.required("self");
      if (failed(self))
        return failure();
      if (ctx.b.elementOf(*self).isInteger(1))
        return ctx.invalid("takes no bools");
      return ctx.result(ctx.b.binary<MaxOp>(*self, 0.0));
    });
  on("silu.default", [](NodeContext &ctx) {
    Call c(ctx);
    FailureOr<Value> self = c.floats("self");
    return failed(self) ? failure() : ctx.result(ctx.b.mul(*self, ctx.b.unary<LogisticOp>(*self)));
  });
  on("gelu.default", gelu);
  for (StringRef name : {"to.dtype", "_to_copy.default"})
    on(name, convert);
  for (StringRef name : {"contiguous.default", "clone.default", "alias.default", "detach.default"})
    on(name, same);
  on("dropout.default", [](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    if (c.flag("train") && c.number("p", 0.5) != 0)
      return ctx.unsupported("in training is not supported; export the model after model.eval()");
    return same(ctx);
  });
}
