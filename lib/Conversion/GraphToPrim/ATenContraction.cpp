//===- ATenContraction.cpp - matrix products and attention of ATen ------------------------------------------------===//
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

/// x w^T + bias.
FailureOr<Value> linear(Call &c, Value x, Value w, Value bias) {
  PrimBuilder &b = c.b;
  int64_t rank = b.rankOf(x);
  if (b.elementOf(x) != b.elementOf(w))
    return c.ctx.invalid("operands " + describe(x) + " and " + describe(w) + " differ in element type");
  Sizes sizes = getSizes(x);
  sizes.back() = getSizes(w)[1];
  FailureOr<Value> rows = c.ctx.castSizes(x, sizes);
  if (failed(rows))
    return failure();
  Value y = DotGeneralOp::create(b, *rows, w, ArrayRef<int64_t>{}, ArrayRef<int64_t>{}, ArrayRef<int64_t>{rank - 1},
                                 ArrayRef<int64_t>{1});
  if (!bias)
    return y;
  if (b.elementOf(bias) != b.elementOf(y))
    return c.ctx.invalid("bias " + describe(bias) + " is not of the operands' element type");
  FailureOr<Value> spread = c.ctx.broadcastOnto(bias, getSizes(y));
  if (failed(spread))
    return failure();
  return b.add(y, *spread);
}

LogicalResult attention(NodeContext &ctx) {
  Call c(ctx);
  Value q = c.tensor("query"), k = c.tensor("key"), v = c.tensor("value"), mask = c.tensor("attn_mask");
  if (!q || !k || !v)
    return ctx.invalid("needs query, key and value");
  PrimBuilder &b = ctx.b;
  int64_t rank = b.rankOf(q);
  if (rank < 3 || b.rankOf(k) != rank || b.rankOf(v) != rank || c.flag("enable_gqa") || c.number("dropout_p", 0) != 0)
    return ctx.unsupported("with grouped heads, dropout or operands of different ranks is not supported");
  if (!b.isFloat(q) || b.elementOf(k) != b.elementOf(q) || b.elementOf(v) != b.elementOf(q))
    return ctx.invalid("query, key and value must be floats of one type, but are " + describe(q) + ", " + describe(k) +
                       " and " + describe(v));
  // Leading dims are alike, keys are as deep as queries, and there are as many values as keys.
  Sizes keys(SizesRef(getSizes(q)).drop_back(2)), rows(keys);
  keys.append({getSizes(k)[rank - 2], getSizes(q).back()});
  rows.append({getSizes(k)[rank - 2], getSizes(v).back()});
  FailureOr<Value> fittingKeys = ctx.castSizes(k, keys), fittingValues = ctx.castSizes(v, rows);
  if (failed(fittingKeys) || failed(fittingValues))
    return failure();
  k = *fittingKeys;
  v = *fittingValues;
  std::optional<int64_t> depth = getConstantSize(getSizes(q).back());
  if (!depth)
    return ctx.unsupported("with an unknown head size is not supported");
  double scale = c.number("scale", 1 / std::sqrt(double(*depth)));
  Sizes sizes = getSizes(q), scores = getSizes(q);
  sizes.back() = getSizes(v).back();
  scores.back() = getSizes(k)[rank - 2];
  if (mask) {
    if (b.elementOf(mask).isInteger(1)) {
      Value none = b.splat(b.elementOf(q), getSizes(mask), -INFINITY),
            zero = b.splat(b.elementOf(q), getSizes(mask), 0);
      mask = b.select(mask, zero, none);
    }
    if (b.elementOf(mask) != b.elementOf(q))
      return ctx.invalid("attn_mask " + describe(mask) + " is neither of bools nor of the query's type");
    FailureOr<Value> spread = ctx.broadcastOnto(mask, scores);
    if (failed(spread))
      return failure();
    mask = *spread;
  }
  return ctx.result(AttentionOp::create(b, makeType(b.elementOf(q), sizes), q, k, v, mask, b.getF64FloatAttr(scale),
                                        c.flag("is_causal") ? b.getUnitAttr() : UnitAttr(), /*zeroNan=*/UnitAttr()));
}

} // namespace

void tc::populateATenContraction(OpRegistrar &onOp) {
  auto on = [&](StringRef type, NodeHandler handler, size_t minOperands = 1) {
    onOp(type, /*sinceVersion=*/1, std::move(handler), minOperands);
  };
  on(
      "linear.default",
      [](NodeContext &ctx) -> LogicalResult {
        Call c(ctx);
        FailureOr<Value> x = c.required("input"), w = c.required("weight");
        if (failed(x) || failed(w))
          return failure();
        FailureOr<Value> y = linear(c, *x, *w, c.tensor("bias"));
        return failed(y) ? failure() : ctx.result(*y);
      },
      2);
  for (StringRef name : {"matmul.default", "mm.default", "bmm.default"})
    on(
        name,
        [](NodeContext &ctx) -> LogicalResult {
          Call c(ctx);
          Value x = c.tensor("self"), y = c.tensor("other") ? c.tensor("other") : c.tensor("mat2");
          if (!x || !y)
            return ctx.invalid("needs two operands");
          FailureOr<Value> z = emitMatMul(ctx, x, y);
          return failed(z) ? failure() : ctx.result(*z);
        },
        2);
  on("scaled_dot_product_attention.default", attention, 3);
}
