//===- ATenAttention.cpp - attention of ATen ----------------------------------------------------------------------===//
//
// All forms become one prim.attention. What PyTorch says of positions that see nothing (they give 0) and of causal
// masks (position t sees keys 0 to t, whatever their number) is written around it.
//
// Source: the native function schemas of PyTorch (aten/src/ATen/native/native_functions.yaml), and
// aten/src/ATen/native/transformers/attention.cpp.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ATenSupport.h"
#include "Dropout.h"
#include "OpRegistry.h"

#include <cmath>

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

/// Heads [.., H, S, D] of keys or values as many as the queries have: each stands for as many queries that follow each
/// other.
FailureOr<Value> repeatHeads(NodeContext &ctx, Value heads, AffineExpr queries, StringRef what) {
  PrimBuilder &b = ctx.b;
  Sizes sizes = getSizes(heads);
  const size_t dim = sizes.size() - 3;
  if (sizes[dim] == queries)
    return heads;
  std::optional<int64_t> have = getConstantSize(sizes[dim]), want = getConstantSize(queries);
  if (!have || !want)
    return ctx.unsupported("with enable_gqa and a number of heads that is not known is not supported; export the model "
                           "with a static number of heads");
  if (*have == 0 || *want % *have != 0)
    return ctx.invalid("the number of heads of " + what + ", " + Twine(*have) + ", does not divide the query's, " +
                       Twine(*want));
  Sizes spread = sizes, all = sizes;
  spread.insert(spread.begin() + dim + 1, b.size(*want / *have));
  all[dim] = queries;
  SmallVector<int64_t> dims;
  for (size_t i = 0; i < sizes.size(); ++i)
    dims.push_back(int64_t(i <= dim ? i : i + 1));
  return b.reshape(b.broadcastInDims(heads, spread, dims), all);
}

/// A mask that is added: of bools, true is 0 and false minus infinity.
FailureOr<Value> additiveMask(NodeContext &ctx, Value mask, Type type) {
  PrimBuilder &b = ctx.b;
  if (b.elementOf(mask).isInteger(1)) {
    if (ctx.node().getOpType().contains("_math"))
      return ctx.unsupported("with a mask of bools is not supported; use scaled_dot_product_attention");
    Value none = b.splat(type, getSizes(mask), -INFINITY), zero = b.splat(type, getSizes(mask), 0);
    return b.select(mask, zero, none);
  }
  if (!b.isFloat(mask))
    return ctx.invalid("attn_mask " + describe(mask) + " is neither of bools nor of floats");
  return b.convert(mask, type);
}

/// Keys 0 to t for query t, as a mask that is added.
Value causalMask(PrimBuilder &b, Type type, AffineExpr queries, AffineExpr keys) {
  const Sizes sizes{queries, keys};
  Value isSeen = b.compare(CompareKind::LE, b.iota(b.getI64Type(), sizes, 1), b.iota(b.getI64Type(), sizes, 0));
  return b.select(isSeen, b.splat(type, sizes, 0), b.splat(type, sizes, -INFINITY));
}

/// q k^T scale + mask of matrices in a batch. `mask`: of the scores' sizes, or null.
Value emitScores(PrimBuilder &b, Value query, Value key, Value mask, double scale) {
  const int64_t rank = b.rankOf(query);
  const SmallVector<int64_t> batch = llvm::to_vector(llvm::seq<int64_t>(0, rank - 2));
  Value scores =
      DotGeneralOp::create(b, query, key, batch, batch, ArrayRef<int64_t>{rank - 1}, ArrayRef<int64_t>{rank - 1});
  scores = b.binary<MulOp>(scores, scale);
  return mask ? b.add(scores, mask) : scores;
}

/// softmax(q k^T scale + mask), of which weights are left out at random, times v; of matrices in a batch. `mask`: of
/// the scores' sizes, or null.
Value attendWithDropout(NodeContext &ctx, Value query, Value key, Value value, Value mask, double scale, double p) {
  PrimBuilder &b = ctx.b;
  const Type type = b.elementOf(query), compute = b.accumulatorOf(type);
  const int64_t rank = b.rankOf(query);
  const SmallVector<int64_t> batch = llvm::to_vector(llvm::seq<int64_t>(0, rank - 2));
  auto wide = [&](Value x) { return b.convert(x, compute); };
  Value scores = emitScores(b, wide(query), wide(key), mask ? wide(mask) : mask, scale);
  Value weights = SoftmaxOp::create(b, scores.getType(), scores, rank - 1, /*log=*/false);
  weights = applyDropout(b, weights, emitKept(ctx, getSizes(weights), p), p);
  Value y = DotGeneralOp::create(b, weights, wide(value), batch, batch, ArrayRef<int64_t>{rank - 1},
                                 ArrayRef<int64_t>{rank - 2});
  return b.convert(y, type);
}

LogicalResult attention(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  Value query = c.tensor("query"), key = c.tensor("key"), value = c.tensor("value"),
        mask = c.tensor("attn_mask") ? c.tensor("attn_mask") : c.tensor("attn_bias");
  if (!query || !key || !value)
    return ctx.invalid("needs query, key and value");
  const Type type = b.elementOf(query);
  if (!b.isFloat(query) || b.elementOf(key) != type || b.elementOf(value) != type)
    return ctx.invalid("query, key and value must be floats of one type, but are " + describe(query) + ", " +
                       describe(key) + " and " + describe(value));
  const double dropout = c.number("dropout_p", 0);
  if (failed(checkProbability(ctx, dropout, "dropout_p")))
    return failure();
  for (Value v : {query, key, value})
    if (b.rankOf(v) < 2)
      return ctx.invalid("query, key and value have two dims or more, but one is " + describe(v));
  if (c.flag("is_causal") && mask)
    return ctx.invalid("takes attn_mask or is_causal, not both");
  const bool isOfCPU = ctx.node().getOpType().starts_with("_scaled_dot_product_flash_attention_for_cpu");
  if (c.flag("enable_gqa") ||
      (isOfCPU && b.rankOf(query) == 4 && b.rankOf(key) == 4 && getSizes(query)[1] != getSizes(key)[1])) {
    if (b.rankOf(query) < 3 || b.rankOf(key) < 3 || b.rankOf(value) < 3)
      return ctx.invalid("enable_gqa asks for heads, which " + describe(query) + " lacks");
    const AffineExpr heads = getSizes(query)[b.rankOf(query) - 3];
    FailureOr<Value> keys = repeatHeads(ctx, key, heads, "the key"),
                     values = repeatHeads(ctx, value, heads, "the value");
    if (failed(keys) || failed(values))
      return failure();
    key = *keys;
    value = *values;
  }
  // A mask of f32 beside queries of half precision would lose its range: all is computed in f32 then.
  Type compute = type;
  if (mask && b.isFloat(mask) && b.elementOf(mask).getIntOrFloatBitWidth() > type.getIntOrFloatBitWidth())
    compute = b.elementOf(mask);
  // Leading dims broadcast, keys are as deep as queries, and there are as many values as keys.
  const Sizes q = getSizes(query), k = getSizes(key), v = getSizes(value);
  auto leading = [](const Sizes &sizes) { return Sizes(sizes.begin(), sizes.end() - 2); };
  FailureOr<Sizes> batch = ctx.broadcastSizes({leading(q), leading(k), leading(v)});
  if (failed(batch))
    return failure();
  const bool isMatrix = batch->empty(); // prim.attention has a dim before those of the matrices
  if (isMatrix)
    batch->push_back(b.size(1));
  const AffineExpr queries = q[q.size() - 2], keys = k[k.size() - 2], depth = q.back();
  auto shaped = [&](Value x, AffineExpr rows, AffineExpr columns) -> FailureOr<Value> {
    const Sizes sizes = getSizes(x);
    Sizes own = leading(sizes), all(*batch);
    own.append({rows, columns});
    all.append({rows, columns});
    FailureOr<Value> fitting = ctx.castSizes(x, own);
    if (failed(fitting))
      return failure();
    return b.broadcastTo(b.convert(*fitting, compute), all);
  };
  FailureOr<Value> wideQuery = shaped(query, queries, depth), wideKey = shaped(key, keys, depth),
                   wideValue = shaped(value, keys, v.back());
  if (failed(wideQuery) || failed(wideKey) || failed(wideValue))
    return failure();

  const std::optional<int64_t> known = getConstantSize(depth);
  if (!known && !ctx.hasAttr("scale"))
    return ctx.unsupported("with a head size that is not known is not supported; export the model with a static head "
                           "size, or give scale");
  const double scale = c.number("scale", known && *known ? 1 / std::sqrt(double(*known)) : 1); // no elements: scores 0
  auto sizesWith = [&](AffineExpr columns) {
    Sizes all(*batch);
    all.append({queries, columns});
    return all;
  };
  const Sizes scores = sizesWith(keys), sizes = sizesWith(v.back());
  bool isCausal = c.flag("is_causal");
  if (isCausal && queries != keys) {
    isCausal = false;
    mask = causalMask(b, compute, queries, keys);
  }
  // Queries that see nothing give 0, but what is no number in keys and values makes it none: they see all, times 0.
  // (zero_nan would make 0 of queries that are no numbers, too.)
  Value isBlind;
  if (mask) {
    FailureOr<Value> added = additiveMask(ctx, mask, compute);
    if (failed(added))
      return failure();
    if (!c.flag("is_causal")) {
      Value most =
          b.rankOf(*added) ? b.reduce(ReduceKind::Max, *added, {b.rankOf(*added) - 1}, /*keepDims=*/true) : *added;
      isBlind = b.compare(CompareKind::EQ, most, -INFINITY);
      added = b.select(b.broadcastTo(isBlind, getSizes(*added)), b.splatLike(*added, 0), *added);
    }
    FailureOr<Value> spread = ctx.broadcastOnto(*added, scores);
    if (failed(spread))
      return failure();
    mask = *spread;
  }
  Value y;
  if (dropout != 0) {
    if (isCausal)
      mask = b.broadcastTo(causalMask(b, compute, queries, keys), scores);
    y = attendWithDropout(ctx, *wideQuery, *wideKey, *wideValue, mask, scale, dropout);
  } else {
    y = AttentionOp::create(b, makeType(compute, sizes), *wideQuery, *wideKey, *wideValue, mask,
                            b.getF64FloatAttr(scale), isCausal ? b.getUnitAttr() : UnitAttr(), /*zeroNan=*/UnitAttr());
  }
  if (isBlind)
    y = b.select(b.broadcastTo(isBlind, sizes), b.binary<MulOp>(y, 0), y);
  if (isOfCPU && ctx.isResultUsed(1)) {
    // Of the scores, for who reads it: tc's gradient does not. It is f32 where the others have half its width.
    const Type wide = b.accumulatorOf(compute);
    if (isCausal)
      mask = causalMask(b, compute, queries, keys);
    if (mask)
      mask = b.broadcastTo(b.convert(mask, wide), scores);
    Value s = emitScores(b, b.convert(*wideQuery, wide), b.convert(*wideKey, wide), mask, scale);
    Value most = b.reduce(ReduceKind::Max, s, {b.rankOf(s) - 1}, /*keepDims=*/true);
    Value sum = b.reduce(ReduceKind::Sum, b.unary<ExpOp>(b.sub(s, b.broadcastTo(most, scores))), {b.rankOf(s) - 1});
    (void)ctx.set(1, b.add(b.unary<LogOp>(sum), b.reshape(most, getSizes(sum))));
  }
  y = b.convert(y, type);
  return ctx.result(isMatrix ? b.take(y, 0, 0) : y);
}

/// Of query, key and value [B, H, S, D]; keys and values may have fewer heads. The weights are computed anew from query
/// and key, so that the forward operator need not keep anything.
LogicalResult attentionBackward(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> g = c.floats("grad_out"), query = c.floats("query"), key = c.floats("key"),
                   value = c.floats("value"), out = c.floats("out");
  if (failed(g) || failed(query) || failed(key) || failed(value) || failed(out))
    return failure();
  for (Value v : {*g, *query, *key, *value, *out})
    if (b.rankOf(v) != 4)
      return ctx.invalid("takes tensors of rank 4, but got " + describe(v));
  if (c.number("dropout_p", 0) != 0)
    return ctx.unsupported("with dropout is not supported; compute attention by softmax and dropout");
  const Type type = b.elementOf(*query), compute = b.accumulatorOf(type);
  const Sizes q = getSizes(*query), k = getSizes(*key), v = getSizes(*value);
  FailureOr<Value> keys = repeatHeads(ctx, *key, q[1], "the key"), values = repeatHeads(ctx, *value, q[1], "the value");
  const Sizes result{q[0], q[1], q[2], v[3]}, scores{q[0], q[1], q[2], k[2]};
  FailureOr<Value> fg = ctx.castSizes(b.convert(*g, compute), result),
                   fy = ctx.castSizes(b.convert(*out, compute), result);
  const std::optional<int64_t> depth = getConstantSize(q[3]);
  if (failed(keys) || failed(values) || failed(fg) || failed(fy))
    return failure();
  if (!depth && !ctx.hasAttr("scale"))
    return ctx.unsupported("with a head size that is not known is not supported; export the model with a static head "
                           "size, or give scale");
  const double scale = c.number("scale", depth && *depth ? 1 / std::sqrt(double(*depth)) : 1);
  auto wide = [&](Value x) { return b.convert(x, compute); };
  Value fq = wide(*query), fk = wide(*keys), fv = wide(*values), mask;
  if (Value given = c.tensor("attn_mask")) {
    FailureOr<Value> added = additiveMask(ctx, given, compute);
    FailureOr<Value> spread = failed(added) ? added : ctx.broadcastOnto(*added, scores);
    if (failed(spread))
      return failure();
    mask = *spread;
  }
  if (c.flag("is_causal")) {
    Value causal = b.broadcastTo(causalMask(b, compute, q[2], k[2]), scores);
    mask = mask ? b.add(mask, causal) : causal;
  }
  const int64_t batch[] = {0, 1}, row[] = {2}, last[] = {3};
  Value s = emitScores(b, fq, fk, mask, scale);
  Value weights = SoftmaxOp::create(b, s.getType(), s, 3, /*log=*/false);
  if (mask) { // queries that see nothing
    Value most = b.reduce(ReduceKind::Max, mask, {3}, /*keepDims=*/true);
    Value isBlind = b.broadcastTo(b.compare(CompareKind::EQ, most, -INFINITY), scores);
    weights = b.select(isBlind, b.splatLike(weights, 0), weights);
  }
  Value ofValue = DotGeneralOp::create(b, weights, *fg, batch, batch, row, row);
  Value inner = b.reduce(ReduceKind::Sum, b.mul(*fg, *fy), {3}, /*keepDims=*/true);
  Value ofWeights = DotGeneralOp::create(b, *fg, fv, batch, batch, last, last);
  Value ofScores = b.binary<MulOp>(b.mul(weights, b.sub(ofWeights, b.broadcastTo(inner, scores))), scale);
  Value ofQuery = DotGeneralOp::create(b, ofScores, fk, batch, batch, last, row);
  Value ofKey = DotGeneralOp::create(b, ofScores, fq, batch, batch, row, row);
  auto shared = [&](Value x, const Sizes &sizes) { // what stands for several heads has their sum
    if (sizes[1] != q[1]) {
      const std::optional<int64_t> have = getConstantSize(sizes[1]), all = getConstantSize(q[1]);
      x = b.reshape(x, {sizes[0], sizes[1], b.size(*all / *have), sizes[2], sizes[3]});
      x = b.reduce(ReduceKind::Sum, x, {2});
    }
    return b.convert(x, type);
  };
  (void)ctx.set(0, b.convert(ofQuery, type));
  (void)ctx.set(1, shared(ofKey, k));
  return ctx.set(2, shared(ofValue, v));
}

/// The one result of an operator of ATen.
FailureOr<Value> call(NodeContext &ctx, StringRef type, ArrayRef<TensorArgument> tensors,
                      NamedAttrList attributes = {}) {
  FailureOr<SmallVector<Value>> y = callATen(ctx, type, tensors, std::move(attributes));
  return failed(y) ? FailureOr<Value>(failure()) : FailureOr<Value>(y->front());
}

/// nn.MultiheadAttention, whose projections of queries, keys and values are one matrix [3 D, D].
struct MultiheadAttention {
  int64_t width, heads;
  Value qkvWeight, qkvBias, outWeight, outBias;
  Value hidden; ///< bools that broadcast to [B, H, S, S]; null where nothing is hidden
};

FailureOr<MultiheadAttention> readAttention(NodeContext &ctx, StringRef heads) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  MultiheadAttention a{c.integer("embed_dim", 0),
                       c.integer(heads, 0),
                       c.tensor("qkv_weight"),
                       c.tensor("qkv_bias"),
                       c.tensor("proj_weight"),
                       c.tensor("proj_bias"),
                       Value()};
  if (!a.qkvWeight || !a.outWeight)
    return ctx.invalid("needs qkv_weight and proj_weight");
  if (a.heads <= 0 || a.width <= 0 || a.width % a.heads != 0)
    return ctx.invalid("has " + Twine(a.heads) + " heads, which do not divide embed_dim, " + Twine(a.width));
  if (b.rankOf(a.qkvWeight) != 2 || getConstantSize(getSizes(a.qkvWeight)[0]) != std::optional<int64_t>(3 * a.width))
    return ctx.invalid("takes a qkv_weight of three times embed_dim rows, but got " + describe(a.qkvWeight));
  Value mask = c.tensor("mask");
  if (!mask)
    return a;
  const int64_t kind = c.integer("mask_type", -1); // 0: of queries and keys, 1: of a batch's keys, 2: of all
  if (kind < 0 || kind > 2 || b.rankOf(mask) != (kind == 2 ? 4 : 2))
    return ctx.invalid("takes a mask of two dims with mask_type 0 or 1, or of four with mask_type 2, but got " +
                       describe(mask));
  // Floats hide where they are not 0.
  a.hidden = b.elementOf(mask).isInteger(1) ? mask : b.compare(CompareKind::NE, mask, 0);
  if (kind == 1)
    a.hidden = b.unsqueeze(b.unsqueeze(a.hidden, 1), 1);
  return a;
}

/// The attention of queries, keys and values [B, S, D]; with `weights`, also the weights [B, H, S, S]. Queries that see
/// nothing give NaN here, unlike scaled_dot_product_attention.
FailureOr<Value> attend(NodeContext &ctx, const MultiheadAttention &a, ArrayRef<Value> given, Value *weights) {
  PrimBuilder &b = ctx.b;
  for (Value x : given)
    if (!b.isFloat(x) || b.rankOf(x) != 3)
      return ctx.invalid("takes floats [batch, sequence, embed_dim], but got " + describe(x));
  SmallVector<Value> parts;
  for (size_t first = 0, last = 0; first < 3; first = last) { // operands that are the same are projected at once
    while (last < 3 && given[last] == given[first])
      ++last;
    const AffineExpr start = b.size(int64_t(first) * a.width), count = b.size(int64_t(last - first) * a.width);
    FailureOr<Value> y = call(ctx, "linear.default",
                              {{"input", given[first]},
                               {"weight", b.sliceDim(a.qkvWeight, 0, start, count)},
                               {"bias", a.qkvBias ? b.sliceDim(a.qkvBias, 0, start, count) : Value()}});
    if (failed(y))
      return failure();
    const Sizes sizes = getSizes(*y);
    Value split =
        b.reshape(*y, {sizes[0], sizes[1], b.size(int64_t(last - first)), b.size(a.heads), b.size(a.width / a.heads)});
    for (size_t i = first; i < last; ++i)
      parts.push_back(b.transpose(b.take(split, 2, int64_t(i - first)), {0, 2, 1, 3}));
  }
  const Sizes q = getSizes(parts[0]), k = getSizes(parts[1]), scores{q[0], q[1], q[2], k[2]};
  for (Value &part : llvm::drop_begin(parts)) { // sizes that a run alone knows to be the query's
    FailureOr<Value> fitting = ctx.castSizes(part, {q[0], q[1], k[2], q[3]});
    if (failed(fitting))
      return failure();
    part = *fitting;
  }
  const Type type = b.elementOf(parts[0]);
  const double scale = 1 / std::sqrt(double(a.width / a.heads));
  Value mask;
  if (a.hidden) {
    FailureOr<Value> spread = ctx.broadcastOnto(a.hidden, scores);
    if (failed(spread))
      return failure();
    mask = b.select(*spread, b.splat(type, scores, -INFINITY), b.splat(type, scores, 0));
  }
  Value mixed = AttentionOp::create(b, makeType(type, q), parts[0], parts[1], parts[2], mask, b.getF64FloatAttr(scale),
                                    UnitAttr(), /*zeroNan=*/UnitAttr());
  if (weights) {
    const Type compute = b.accumulatorOf(type);
    Value s = emitScores(b, b.convert(parts[0], compute), b.convert(parts[1], compute),
                         mask ? b.convert(mask, compute) : mask, scale);
    *weights = SoftmaxOp::create(b, s.getType(), s, 3, /*log=*/false);
  }
  Value joined = b.reshape(b.transpose(mixed, {0, 2, 1, 3}), {q[0], q[2], b.size(a.width)});
  return call(ctx, "linear.default", {{"input", joined}, {"weight", a.outWeight}, {"bias", a.outBias}});
}

LogicalResult multiheadAttention(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<MultiheadAttention> a = readAttention(ctx, "num_head");
  FailureOr<Value> query = c.floats("query"), key = c.floats("key"), value = c.floats("value");
  if (failed(a) || failed(query) || failed(key) || failed(value))
    return failure();
  Value weights;
  FailureOr<Value> y = attend(ctx, *a, {*query, *key, *value}, ctx.isResultUsed(1) ? &weights : nullptr);
  if (failed(y))
    return failure();
  if (weights) {
    if (c.flag("average_attn_weights", true))
      weights = b.mean(weights, {1});
    (void)ctx.set(1, b.convert(weights, b.elementOf(*query)));
  }
  return ctx.set(0, *y);
}

/// A layer of nn.TransformerEncoder, without dropout.
LogicalResult encoderLayer(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<MultiheadAttention> a = readAttention(ctx, "num_heads");
  FailureOr<Value> source = c.floats("src");
  if (failed(a) || failed(source))
    return failure();
  const bool isNormFirst = c.flag("norm_first");
  auto norm = [&](FailureOr<Value> x, StringRef index) -> FailureOr<Value> {
    if (failed(x))
      return failure();
    NamedAttrList attributes;
    attributes.set("normalized_shape", b.getDenseI64ArrayAttr({a->width}));
    attributes.set("eps", b.getF64FloatAttr(c.number("eps", 1e-5)));
    return call(ctx, "layer_norm.default",
                {{"input", *x},
                 {"weight", c.tensor(("norm_weight_" + index).str())},
                 {"bias", c.tensor(("norm_bias_" + index).str())}},
                attributes);
  };
  auto ffn = [&](FailureOr<Value> x, StringRef index) -> FailureOr<Value> {
    FailureOr<Value> weight = c.required(("ffn_weight_" + index).str());
    if (failed(x) || failed(weight))
      return failure();
    return call(ctx, "linear.default",
                {{"input", *x}, {"weight", *weight}, {"bias", c.tensor(("ffn_bias_" + index).str())}});
  };
  // x + f(x), with the norm before f or behind the sum.
  auto residual = [&](FailureOr<Value> x, StringRef index, auto f) -> FailureOr<Value> {
    FailureOr<Value> y = f(isNormFirst ? norm(x, index) : x);
    if (failed(y))
      return failure();
    FailureOr<Value> fitting = ctx.castSizes(*y, getSizes(*x));
    if (failed(fitting))
      return failure();
    FailureOr<Value> sum = b.add(*fitting, *x);
    return isNormFirst ? sum : norm(sum, index);
  };
  FailureOr<Value> x = residual(source, "1", [&](FailureOr<Value> x) -> FailureOr<Value> {
    if (failed(x))
      return failure();
    return attend(ctx, *a, {*x, *x, *x}, nullptr);
  });
  if (failed(x))
    return failure();
  x = residual(x, "2", [&](FailureOr<Value> x) -> FailureOr<Value> {
    FailureOr<Value> wide = ffn(x, "1");
    if (failed(wide))
      return failure();
    return ffn(call(ctx, c.flag("use_gelu") ? "gelu.default" : "relu.default", {{"self", *wide}}), "2");
  });
  if (failed(x))
    return failure();
  return ctx.result(*x);
}

} // namespace

void tc::populateATenAttention(OpRegistrar &onOp) {
  // Those of one target's kernels give more than the first result, for gradients: what reads these is refused.
  for (StringRef name :
       {"scaled_dot_product_attention.default", "_scaled_dot_product_attention_math.default",
        "_scaled_dot_product_flash_attention_for_cpu.default", "_scaled_dot_product_flash_attention.default",
        "_scaled_dot_product_efficient_attention.default", "_scaled_dot_product_cudnn_attention.default",
        "_scaled_dot_product_fused_attention_overrideable.default"})
    onOp(name, /*sinceVersion=*/1, attention, 3);
  onOp("_scaled_dot_product_flash_attention_for_cpu_backward.default", /*sinceVersion=*/1, attentionBackward, 5);
  onOp("_native_multi_head_attention.default", /*sinceVersion=*/1, multiheadAttention, 2);
  onOp("_transformer_encoder_layer_fwd.default", /*sinceVersion=*/1, encoderLayer, 1);
}
