//===- MicrosoftAttention.cpp - attention operators of com.microsoft ----------------------------------------------===//
//
// All forms end in prim.attention over [B, heads, T, D]; what differs is where queries, keys and values come from, and
// the mask. Letters: B batch, N heads, T positions of queries, S of keys, P of past keys, D elements of a head.
// Source: ONNX Runtime, docs/ContribOperators.md.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ONNXSupport.h"
#include "OpRegistry.h"
#include "Shared.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

/// [B, T, N * D] as [B, N, T, D].
FailureOr<Value> splitHeads(NodeContext &ctx, Value x, int64_t heads) {
  PrimBuilder &b = ctx.b;
  Sizes sizes = getSizes(x);
  if (heads < 1)
    return ctx.invalid("needs num_heads of 1 or more, but has " + Twine(heads));
  AffineExpr depth = ctx.divide(sizes[2], b.size(heads));
  if (failed(ctx.requireEqual(depth * heads, sizes[2], "a hidden size that the heads divide")))
    return failure();
  return b.transpose(b.reshape(x, {sizes[0], sizes[1], b.size(heads), depth}), {0, 2, 1, 3});
}

/// [B, N, T, D] as [B, T, N * D].
Value mergeHeads(PrimBuilder &b, Value x) {
  Sizes sizes = getSizes(x);
  return b.reshape(b.transpose(x, {0, 2, 1, 3}), {sizes[0], sizes[2], simplifySize(sizes[1] * sizes[3])});
}

/// Queries [B, N, T, D], keys and values [B, N, S, D].
struct Heads {
  Value query, key, value;
};

/// What is added to the scores [B, N, T, S].
struct Masks {
  /// Integers: keys to leave out (see addPadding); null if none.
  Value padding;
  /// Floats that broadcast to the scores; null if none.
  Value bias;
  double filter = -10000;
};

/// Keys that padding leaves out, as floats of the element type of `like` that broadcast to `scores` [B, N, T, S]:
/// `filter` there, else 0. `padding` is [B, S] or [B, T, S] with 0 for what is left out, [B, 1, M, M] of which the
/// part at the last T of S positions counts, [B] with the numbers of keys, or [2 * B] with where keys end and begin.
FailureOr<Value> emitPadding(NodeContext &ctx, Value padding, SizesRef scores, double filter, Type type) {
  PrimBuilder &b = ctx.b;
  AffineExpr batch = scores[0], rows = scores[2], keys = scores[3];
  Sizes sizes = getSizes(padding);
  Value isHidden;
  if (sizes.size() == 1) {
    Sizes grid{batch, keys};
    Value at = b.iota(b.getI64Type(), grid, 1);
    auto limits = [&](AffineExpr from) {
      Value part = b.convert(b.sliceDim(padding, 0, from, batch), b.getI64Type());
      return b.broadcastInDims(part, grid, {0});
    };
    if (sizes[0] == simplifySize(batch * 3 + 2))
      return ctx.unsupported("with a mask of 3 * B + 2 numbers is not supported; supported: [B], [2 * B], [B, S], "
                             "[B, T, S], [B, 1, M, M]");
    bool hasStarts = sizes[0] == simplifySize(batch * 2);
    if (!hasStarts && failed(ctx.requireEqual(sizes[0], batch, "a number of keys for each entry of the batch")))
      return failure();
    isHidden = b.compare(CompareKind::GE, at, limits(b.size(0)));
    if (hasStarts)
      isHidden = b.binary<OrOp>(isHidden, b.compare(CompareKind::LT, at, limits(batch)));
    isHidden = b.reshape(isHidden, {batch, b.size(1), b.size(1), keys});
  } else {
    Sizes wanted{batch, b.size(1), b.size(1), keys};
    Value shaped = padding;
    if (sizes.size() == 2) {
      shaped = b.reshape(padding, {sizes[0], b.size(1), b.size(1), sizes[1]});
    } else if (sizes.size() == 3) {
      shaped = b.unsqueeze(padding, 1);
      wanted[2] = rows;
    } else if (sizes.size() == 4) {
      // The positions before the queries are the past.
      AffineExpr past = simplifySize(keys - rows);
      if (failed(ctx.require(CompareKind::LE, keys, sizes[2], "a mask of at least as many positions as keys")) ||
          failed(ctx.require(CompareKind::LE, keys, sizes[3], "a mask of at least as many positions as keys")))
        return failure();
      shaped = b.sliceDim(b.sliceDim(padding, 2, past, rows), 3, b.size(0), keys);
      wanted[2] = rows;
    } else {
      return ctx.invalid("a mask of keys must have 1 to 4 dims, but is " + describe(padding));
    }
    FailureOr<Value> fitting = ctx.castSizes(shaped, wanted);
    if (failed(fitting))
      return failure();
    isHidden = b.compare(CompareKind::LE, *fitting, 0);
  }
  Sizes own = getSizes(isHidden);
  return b.select(isHidden, b.splat(type, own, filter), b.splat(type, own, 0));
}

/// The query and the factor of its scores: `given`, or where that is 0, one over the root of the head size. One that
/// only the run knows goes into the query.
std::pair<Value, double> scaleQuery(PrimBuilder &b, Value query, AffineExpr depth, double given) {
  if (given != 0)
    return {query, given};
  if (std::optional<int64_t> known = getConstantSize(depth))
    return {query, *known ? 1 / std::sqrt(double(*known)) : 1.0}; // scores of no elements are 0
  const Type type = b.elementOf(query), wide = b.accumulatorOf(type);
  Value root = b.unary<SqrtOp>(b.convert(b.sizeValue(depth), wide));
  Value scaled = b.div(b.convert(query, wide), b.broadcastTo(root, getSizes(query)));
  return {b.convert(scaled, type), 1.0};
}

/// softmax(scale * q k^T + masks) v, as [B, T, N * D].
FailureOr<Value> emitAttention(NodeContext &ctx, const Heads &heads, const Masks &masks, double scale, bool causal) {
  PrimBuilder &b = ctx.b;
  Sizes q = getSizes(heads.query), k = getSizes(heads.key), v = getSizes(heads.value);
  FailureOr<Value> key = ctx.castSizes(heads.key, {q[0], q[1], k[2], q[3]}),
                   value = ctx.castSizes(heads.value, {q[0], q[1], k[2], v[3]});
  if (failed(key) || failed(value))
    return failure();
  Type type = b.elementOf(heads.query);
  Sizes scores{q[0], q[1], q[2], k[2]}, result{q[0], q[1], q[2], v[3]};
  Value mask;
  auto add = [&](FailureOr<Value> term) -> LogicalResult {
    if (failed(term))
      return failure();
    FailureOr<Value> wide = ctx.broadcastOnto(b.convert(*term, type), scores);
    if (failed(wide))
      return failure();
    mask = mask ? b.add(mask, *wide) : *wide;
    return success();
  };
  if (masks.padding && failed(add(emitPadding(ctx, masks.padding, scores, masks.filter, type))))
    return failure();
  if (masks.bias && failed(add(masks.bias)))
    return failure();
  auto [query, factor] = scaleQuery(b, heads.query, q[3], scale);
  Value y = AttentionOp::create(b, makeType(type, result), query, *key, *value, mask, b.getF64FloatAttr(factor),
                                causal ? b.getUnitAttr() : UnitAttr(), /*zeroNan=*/UnitAttr());
  return mergeHeads(b, y);
}

/// Past and new positions one after the other, along dim 2 of [B, N, .., D].
FailureOr<Value> appendToPast(NodeContext &ctx, Value past, Value fresh) {
  if (!past)
    return fresh;
  Sizes wanted = getSizes(fresh), own = getSizes(past);
  wanted[2] = own[2];
  FailureOr<Value> fitting = ctx.castSizes(past, wanted);
  return failed(fitting) ? FailureOr<Value>(failure()) : FailureOr<Value>(ctx.b.concat({*fitting, fresh}, 2));
}

//===--- Attention and QAttention ---------------------------------------------------------------------------------===//

/// From projected [B, T, all hidden sizes]: splits off queries, keys and values, appends them to the past [2, B, N, P,
/// D] and sets the results output and present.
LogicalResult attendProjected(NodeContext &ctx, Value projected, ArrayRef<AffineExpr> hidden, Value padding, Value past,
                              Value bias) {
  PrimBuilder &b = ctx.b;
  const int64_t count = ctx.getInt("num_heads", 0);
  if (ctx.getInt("do_rotary", 0) || ctx.getInt("past_present_share_buffer", 0))
    return ctx.unsupported("with do_rotary or past_present_share_buffer is not supported; supported: neither");
  Heads heads;
  AffineExpr from = b.size(0);
  for (auto [part, size] : llvm::zip_equal(SmallVector<Value *>{&heads.query, &heads.key, &heads.value}, hidden)) {
    FailureOr<Value> split = splitHeads(ctx, b.sliceDim(projected, 2, from, size), count);
    if (failed(split))
      return failure();
    *part = *split;
    from = simplifySize(from + size);
  }
  if (past) {
    FailureOr<Value> key = appendToPast(ctx, b.take(past, 0, 0), heads.key),
                     value = appendToPast(ctx, b.take(past, 0, 1), heads.value);
    if (failed(key) || failed(value))
      return failure();
    heads.key = *key;
    heads.value = *value;
  }
  if (ctx.isResultUsed(1)) {
    FailureOr<Value> value = ctx.castSizes(heads.value, getSizes(heads.key));
    if (failed(value))
      return failure();
    (void)ctx.set(1, b.concat({b.unsqueeze(heads.key, 0), b.unsqueeze(*value, 0)}, 0));
  }
  FailureOr<Value> y = emitAttention(ctx, heads, {padding, bias, ctx.getFloat("mask_filter_value", -10000)},
                                     ctx.getFloat("scale", 0), ctx.getInt("unidirectional", 0));
  return failed(y) ? failure() : ctx.result(*y);
}

/// The hidden sizes of queries, keys and values in weights with `columns` columns.
FailureOr<Sizes> hiddenSizes(NodeContext &ctx, AffineExpr columns) {
  PrimBuilder &b = ctx.b;
  if (auto given = ctx.getInts("qkv_hidden_sizes"); given && !given->empty()) {
    if (given->size() != 3 || (*given)[0] != (*given)[1])
      return ctx.invalid("qkv_hidden_sizes needs three entries, of which the first two are equal");
    Sizes sizes = b.sizes(*given);
    if (failed(ctx.requireEqual(columns, sizes[0] + sizes[1] + sizes[2], "as many columns as qkv_hidden_sizes says")))
      return failure();
    return sizes;
  }
  AffineExpr each = ctx.divide(columns, b.size(3));
  if (failed(ctx.requireEqual(each * 3, columns, "columns for queries, keys and values")))
    return failure();
  return Sizes(3, each);
}

LogicalResult attention(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0), weights = ctx.operand(1);
  FailureOr<Value> projected = emitMatMul(ctx, x, weights);
  if (failed(projected))
    return failure();
  FailureOr<Sizes> hidden = hiddenSizes(ctx, getSizes(*projected)[2]);
  if (failed(hidden))
    return failure();
  if (Value bias = ctx.operand(2)) {
    FailureOr<Value> wide = broadcastAlong(ctx, bias, 2, getSizes(*projected));
    if (failed(wide))
      return failure();
    projected = b.add(*projected, *wide);
  }
  return attendProjected(ctx, *projected, *hidden, ctx.operand(3), ctx.operand(4), ctx.operand(5));
}

/// Attention of integers: input, weights, bias, two scales, mask, two zero points, past.
LogicalResult qAttention(NodeContext &ctx) {
  Value x = ctx.operand(0), weights = ctx.operand(1);
  FailureOr<Value> projected = emitScaledProduct(ctx, x, ctx.operand(3), ctx.operand(6), weights, ctx.operand(4),
                                                 ctx.operand(7), ctx.operand(2));
  if (failed(projected))
    return failure();
  FailureOr<Sizes> hidden = hiddenSizes(ctx, getSizes(*projected)[2]);
  if (failed(hidden))
    return failure();
  return attendProjected(ctx, *projected, *hidden, ctx.operand(5), ctx.operand(8), Value());
}

//===--- MultiHeadAttention ---------------------------------------------------------------------------------------===//

LogicalResult multiHeadAttention(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value query = ctx.operand(0), key = ctx.operand(1), value = ctx.operand(2), bias = ctx.operand(3);
  const int64_t count = ctx.getInt("num_heads", 0);
  if (ctx.has(8) || ctx.has(9))
    return ctx.unsupported("with past_sequence_length or cache_indirection is not supported; supported: past_key and "
                           "past_value of their own sizes");
  Heads heads;
  // One operand of several parts: [B, T, N, parts, D].
  auto unpack = [&](Value packed, MutableArrayRef<Value *> parts) -> LogicalResult {
    Sizes sizes = getSizes(packed);
    sizes[2] = b.size(count);
    sizes[3] = b.size(parts.size());
    FailureOr<Value> fitting = ctx.castSizes(packed, sizes);
    if (failed(fitting))
      return failure();
    for (auto [i, part] : llvm::enumerate(parts))
      *part = b.transpose(b.take(*fitting, 3, i), {0, 2, 1, 3});
    return success();
  };
  if (b.rankOf(query) == 5) {
    Value *parts[] = {&heads.query, &heads.key, &heads.value};
    if (failed(unpack(query, parts)))
      return failure();
  } else {
    if (!key)
      return ctx.invalid("needs a key, or a query [B, T, heads, 3, D], but has " + describe(query));
    FailureOr<Value> q = splitHeads(ctx, query, count), k = key, v = value;
    if (b.rankOf(key) == 5) {
      Value *parts[] = {&*k, &*v};
      if (failed(unpack(key, parts)))
        return failure();
    } else {
      if (!value)
        return ctx.invalid("needs a value, or a key [B, S, heads, 2, D], but has " + describe(key));
      k = b.rankOf(key) == 4 ? k : splitHeads(ctx, key, count);
      v = b.rankOf(value) == 4 ? v : splitHeads(ctx, value, count);
    }
    if (failed(q) || failed(k) || failed(v))
      return failure();
    heads = {*q, *k, *v};
  }
  if (bias) { // of the three projections, one behind the other; a key [B, N, S, D] is projected already
    AffineExpr from = b.size(0);
    size_t i = 0;
    for (Value *part : {&heads.query, &heads.key, &heads.value}) {
      Sizes sizes = getSizes(*part);
      AffineExpr hidden = simplifySize(sizes[1] * sizes[3]);
      Value own = b.sliceDim(bias, 0, from, hidden);
      from = simplifySize(from + hidden);
      Value original = i < ctx.numOperands() ? ctx.operand(i) : Value();
      if (i++ == 0 || !original || b.rankOf(original) != 4)
        *part = b.add(*part, b.broadcastInDims(b.reshape(own, {sizes[1], sizes[3]}), sizes, {1, 3}));
    }
    if (failed(ctx.requireEqual(getSizes(bias)[0], from, "a bias for queries, keys and values")))
      return failure();
  }
  FailureOr<Value> k = appendToPast(ctx, ctx.operand(6), heads.key), v = appendToPast(ctx, ctx.operand(7), heads.value);
  if (failed(k) || failed(v))
    return failure();
  heads.key = *k;
  heads.value = *v;
  (void)ctx.set(1, heads.key);
  (void)ctx.set(2, heads.value);
  FailureOr<Value> y =
      emitAttention(ctx, heads, {ctx.operand(4), ctx.operand(5), ctx.getFloat("mask_filter_value", -10000)},
                    ctx.getFloat("scale", 0), ctx.getInt("unidirectional", 0));
  return failed(y) ? failure() : ctx.result(*y);
}

//===--- rotary embeddings ----------------------------------------------------------------------------------------===//

/// x [B, N, T, D] with its first 2 H elements rotated by the angles whose cosines and sines [.., H] stand at
/// `positions` [B, T]. Pairs are element i and H + i, or with `interleaved` 2 i and 2 i + 1.
FailureOr<Value> rotate(NodeContext &ctx, Value x, Value positions, Value cosines, Value sines, bool interleaved) {
  PrimBuilder &b = ctx.b;
  Sizes sizes = getSizes(x);
  const AffineExpr half = getSizes(cosines)[1], width = simplifySize(half * 2);
  if (failed(ctx.require(CompareKind::LE, width, sizes[3], "heads of at least twice the caches' columns")))
    return failure();
  FailureOr<Value> sine = ctx.castSizes(sines, getSizes(cosines));
  if (failed(sine))
    return failure();
  Sizes part = sizes;
  part[3] = half;
  auto angles = [&](Value cache) -> FailureOr<Value> {
    Value found = GatherOp::create(b, b.convert(cache, b.elementOf(x)), positions, 0); // [B, T, H]
    FailureOr<Value> fitting = ctx.castSizes(found, {sizes[0], sizes[2], half});
    return failed(fitting) ? FailureOr<Value>(failure())
                           : FailureOr<Value>(b.broadcastInDims(*fitting, part, {0, 2, 3}));
  };
  FailureOr<Value> c = angles(cosines), s = angles(*sine);
  if (failed(c) || failed(s))
    return failure();
  Value first, second;
  if (interleaved) {
    auto every = [&](int64_t start) -> Value {
      Sizes starts(4, b.size(0));
      starts[3] = b.size(start);
      return b.slice(x, starts, {1, 1, 1, 2}, part);
    };
    first = every(0);
    second = every(1);
  } else {
    first = b.sliceDim(x, 3, b.size(0), half);
    second = b.sliceDim(x, 3, half, half);
  }
  Value real = b.sub(b.mul(first, *c), b.mul(second, *s)), imaginary = b.add(b.mul(second, *c), b.mul(first, *s));
  SmallVector<Value> parts;
  if (interleaved) {
    Sizes whole = part;
    whole[3] = width;
    parts.push_back(b.reshape(b.concat({b.unsqueeze(real, 4), b.unsqueeze(imaginary, 4)}, 4), whole));
  } else {
    parts = {real, imaginary};
  }
  AffineExpr rest = simplifySize(sizes[3] - width);
  if (getConstantSize(rest) != 0)
    parts.push_back(b.sliceDim(x, 3, width, rest));
  return ctx.castSizes(parts.size() == 1 ? parts.front() : b.concat(parts, 3), sizes);
}

LogicalResult rotaryEmbedding(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0), positions = ctx.operand(1), cosines = ctx.operand(2);
  const int64_t rank = b.rankOf(x);
  if (ctx.getInt("is_packed_batching", 0))
    return ctx.unsupported("with is_packed_batching is not supported");
  Value heads = x;
  if (rank == 3) {
    int64_t count = ctx.getInt("num_heads", 0);
    auto hidden = getConstantSize(getSizes(x)[2]), half = getConstantSize(getSizes(cosines)[1]);
    if (count == 0) {
      if (!hidden || !half || *half == 0)
        return ctx.unsupported("with sizes that are not known at compile time and no num_heads is not supported");
      count = *hidden / (2 * *half);
    }
    FailureOr<Value> split = splitHeads(ctx, x, count);
    if (failed(split))
      return failure();
    heads = *split;
  }
  Sizes sizes = getSizes(heads), grid{sizes[0], sizes[2]};
  positions = b.convert(positions, b.getI64Type());
  if (b.rankOf(positions) < 2) { // one number: the position of the first row
    FailureOr<Value> first = ctx.reshape(positions, {});
    if (failed(first))
      return failure();
    positions = b.add(b.broadcastTo(*first, grid), b.iota(b.getI64Type(), grid, 1));
  } else {
    FailureOr<Value> fitting = ctx.castSizes(positions, grid);
    if (failed(fitting))
      return failure();
    positions = *fitting;
  }
  FailureOr<Value> y = rotate(ctx, heads, positions, cosines, ctx.operand(3), ctx.getInt("interleaved", 0));
  if (failed(y))
    return failure();
  if (double scale = ctx.getFloat("scale", 1); scale != 1)
    y = b.binary<MulOp>(*y, scale);
  return ctx.result(rank == 3 ? mergeHeads(b, *y) : *y);
}

//===--- GroupQueryAttention --------------------------------------------------------------------------------------===//

/// The cache after this step, [B, G, L, D]: what `past` [B, G, P, D] held before each entry's number of past positions
/// `counts` [B], then the rows of `fresh` [B, G, T, D]; behind them what the past's buffer held, or 0.
FailureOr<Value> updateCache(NodeContext &ctx, Value past, Value fresh, Value counts, AffineExpr length) {
  PrimBuilder &b = ctx.b;
  Sizes sizes = getSizes(fresh), wanted = sizes, before = sizes;
  AffineExpr rows = sizes[2];
  wanted[2] = length;
  Value old = b.splat(b.elementOf(fresh), wanted, 0);
  if (past) {
    before[2] = getSizes(past)[2];
    FailureOr<Value> fitting = ctx.castSizes(past, before);
    if (failed(fitting))
      return failure();
    old = b.pad(*fitting, b.scalar(b.elementOf(fresh), 0), Sizes(4, b.size(0)), wanted);
  }
  // Row l of an entry is row l - count of what is new.
  Value row = b.sub(b.iota(b.getI64Type(), wanted, 2), b.broadcastInDims(counts, wanted, {0}));
  Value limit = b.broadcastTo(b.sizeValue(rows), wanted);
  Value isNew = b.binary<AndOp>(b.compare(CompareKind::GE, row, 0), b.compare(CompareKind::LT, row, limit));
  Value found = GatherElementsOp::create(b, makeType(b.elementOf(fresh), wanted), fresh, emitClampedIndex(b, row, rows),
                                         b.getI64IntegerAttr(2));
  return b.select(isNew, found, old);
}

LogicalResult groupQueryAttention(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  if (failed(ctx.requireOperands({5, 6})))
    return failure();
  Value query = ctx.operand(0), key = ctx.operand(1), value = ctx.operand(2), pastKey = ctx.operand(3),
        pastValue = ctx.operand(4);
  const int64_t count = ctx.getInt("num_heads", 0), groups = ctx.getInt("kv_num_heads", 0),
                window = ctx.getInt("local_window_size", -1);
  if (ctx.getInt("kv_cache_bit_width", 0) || ctx.has(12) || ctx.has(13) || ctx.getInt("sliding_window_cache", 0))
    return ctx.unsupported("with a quantised cache or sliding_window_cache is not supported; supported: caches of the "
                           "query's element type with a row for each position");
  if (groups < 1 || count % groups != 0)
    return ctx.invalid("needs num_heads that kv_num_heads divides, but has " + Twine(count) + " and " + Twine(groups));
  if (!key) { // queries, keys and values side by side
    const AffineExpr columns = getSizes(query)[2], depth = ctx.divide(columns, b.size(count + 2 * groups)),
                     own = simplifySize(depth * count), shared = simplifySize(depth * groups);
    if (failed(ctx.requireEqual(depth * (count + 2 * groups), columns, "a packed hidden size that the heads divide")))
      return failure();
    key = b.sliceDim(query, 2, own, shared);
    value = b.sliceDim(query, 2, simplifySize(own + shared), shared);
    query = b.sliceDim(query, 2, b.size(0), own);
  } else if (!value) {
    return ctx.invalid("has a key without a value");
  }
  FailureOr<Value> q = splitHeads(ctx, query, count), k = splitHeads(ctx, key, groups),
                   v = splitHeads(ctx, value, groups);
  if (failed(q) || failed(k) || failed(v))
    return failure();
  Sizes sizes = getSizes(*q);
  AffineExpr batch = sizes[0], rows = sizes[2], depth = sizes[3];
  Sizes fresh{batch, b.size(groups), rows, depth};
  k = ctx.castSizes(*k, fresh);
  v = ctx.castSizes(*v, fresh);
  if (failed(k) || failed(v))
    return failure();

  if (ctx.has(14) != ctx.has(15))
    return ctx.invalid("needs both q_norm_weight and k_norm_weight, or neither");
  for (auto [i, rows] : {std::pair(14, &q), std::pair(15, &k)})
    if (Value weight = ctx.operand(i)) {
      Sizes wide = getSizes(**rows);
      FailureOr<Value> fitting = ctx.castSizes(weight, {depth});
      if (failed(fitting))
        return failure();
      Value normal = b.norm(**rows, {3}, ctx.getFloat("qk_norm_epsilon", 1e-6), /*rms=*/true);
      *rows = b.mul(normal, b.broadcastInDims(b.convert(*fitting, b.elementOf(query)), wide, {3}));
    }

  // seqlens_k holds the number of keys, less one; the new ones are the last of them, or all where there are fewer.
  Type i64 = b.getI64Type();
  FailureOr<Value> last = ctx.reshape(b.convert(ctx.operand(5), i64), {batch});
  FailureOr<Value> totalValue = ctx.reshape(b.convert(ctx.operand(6), i64), {});
  if (failed(last) || failed(totalValue))
    return failure();
  Value counts = b.binary<AddOp>(*last, 1);
  counts = b.binary<MaxOp>(b.sub(counts, b.broadcastTo(b.sizeValue(rows), {batch})), 0);
  FailureOr<Sizes> given = ctx.requireSizes(*totalValue, "total_sequence_length");
  if (failed(given))
    return failure();
  AffineExpr total = given->front(), length = total;
  if (pastKey) {
    if (!pastValue || b.elementOf(pastKey) != b.elementOf(query) || b.elementOf(pastValue) != b.elementOf(query))
      return ctx.invalid("needs past_key and past_value of the query's element type");
    // The buffer, or what is longer.
    AffineExpr before = getSizes(pastKey)[2];
    if (b.bounds(simplifySize(total - before)).second <= 0)
      length = before;
    else if (b.bounds(simplifySize(total - before)).first < 0)
      length = b.bindSymbol("present", b.max(b.sizeValue(before), b.sizeValue(total)));
  }

  if (ctx.getInt("do_rotary", 0)) {
    if (!ctx.has(7) || !ctx.has(8))
      return ctx.invalid("has do_rotary without cos_cache and sin_cache");
    Sizes grid{batch, rows};
    Value positions = b.add(b.broadcastInDims(counts, grid, {0}), b.iota(i64, grid, 1));
    if (Value own = ctx.operand(9)) {
      FailureOr<Value> fitting = ctx.castSizes(b.convert(own, i64), grid);
      if (failed(fitting))
        return failure();
      positions = *fitting;
    }
    bool interleaved = ctx.getInt("rotary_interleaved", 0);
    q = rotate(ctx, *q, positions, ctx.operand(7), ctx.operand(8), interleaved);
    k = rotate(ctx, *k, positions, ctx.operand(7), ctx.operand(8), interleaved);
    if (failed(q) || failed(k))
      return failure();
  }
  FailureOr<Value> keys = updateCache(ctx, pastKey, *k, counts, length),
                   values = updateCache(ctx, pastValue, *v, counts, length);
  if (failed(keys) || failed(values))
    return failure();
  (void)ctx.set(1, *keys);
  (void)ctx.set(2, *values);

  // The heads of one group are rows of one attention: [B, groups, heads of a group * T, D].
  const int64_t each = count / groups;
  Sizes grouped{batch, b.size(groups), simplifySize(rows * each), depth};
  Value queries = b.reshape(*q, grouped);
  FailureOr<Value> seenKeys =
                       ctx.castSizes(b.sliceDim(*keys, 2, b.size(0), total), {batch, b.size(groups), total, depth}),
                   seenValues =
                       ctx.castSizes(b.sliceDim(*values, 2, b.size(0), total), {batch, b.size(groups), total, depth});
  if (failed(seenKeys) || failed(seenValues))
    return failure();
  // Query t of an entry stands at count + t; it sees keys up to there, at most `window` of them.
  Type type = b.elementOf(query);
  Sizes grid{batch, rows, total}, scores{batch, b.size(groups), b.size(each), rows, total};
  Value mask = b.splat(type, grid, 0);
  if (ctx.getInt("causal", 1)) {
    Value at = b.add(b.broadcastInDims(counts, grid, {0}), b.iota(i64, grid, 1)), other = b.iota(i64, grid, 2);
    Value isSeen = b.compare(CompareKind::LE, other, at);
    if (window >= 0)
      isSeen = b.binary<AndOp>(isSeen, b.compare(CompareKind::GT, other, b.binary<SubOp>(at, double(window))));
    mask = b.select(isSeen, mask, b.splat(type, grid, -INFINITY));
  }
  mask = b.broadcastInDims(mask, scores, {0, 3, 4});
  if (Value bias = ctx.operand(10)) { // [B or 1, N or 1, T, S]
    FailureOr<Value> wide = ctx.broadcastOnto(b.convert(bias, type), {batch, b.size(count), rows, total});
    if (failed(wide))
      return failure();
    mask = b.add(mask, b.reshape(*wide, scores));
  }
  Sizes flat{batch, b.size(groups), simplifySize(rows * each), total};
  mask = b.reshape(mask, flat);
  double cap = ctx.getFloat("softcap", 0), scale;
  std::tie(queries, scale) = scaleQuery(b, queries, depth, ctx.getFloat("scale", 0));
  // What one more key of a value 0 weighs in the softmax: 0, or a number for each head.
  Value sink = ctx.operand(11);
  if (!sink && ctx.getInt("smooth_softmax", 0))
    sink = b.splat(type, {b.size(count)}, 0);
  const int64_t shown = ctx.getInt("qk_output", 0);
  if (cap == 0 && !sink && shown == 0) {
    Value y = AttentionOp::create(b, makeType(type, grouped), queries, *seenKeys, *seenValues, mask,
                                  b.getF64FloatAttr(scale), /*causal=*/UnitAttr(), /*zeroNan=*/UnitAttr());
    return ctx.result(mergeHeads(b, b.reshape(y, sizes)));
  }
  const int64_t batches[] = {0, 1};
  Type wide = b.accumulatorOf(type);
  Value values32 = b.convert(*seenValues, wide);
  Value product = DotGeneralOp::create(b, b.convert(queries, wide), b.convert(*seenKeys, wide), batches, batches,
                                       ArrayRef<int64_t>{3}, ArrayRef<int64_t>{3});
  product = b.binary<MulOp>(product, scale);
  if (cap != 0) // before the mask
    product = b.binary<MulOp>(b.unary<TanhOp>(b.binary<MulOp>(product, 1 / cap)), cap);
  Value sum = b.add(product, b.convert(mask, wide)), weights;
  if (sink) {
    FailureOr<Value> fitting = ctx.castSizes(sink, {b.size(count)});
    if (failed(fitting))
      return failure();
    Value heads = b.reshape(b.convert(*fitting, wide), {b.size(groups), b.size(each)});
    Sizes column{batch, b.size(groups), b.size(each), rows, b.size(1)}, narrow = flat;
    narrow[3] = b.size(1);
    Value all = b.concat({sum, b.reshape(b.broadcastInDims(heads, column, {1, 2}), narrow)}, 3);
    weights = b.sliceDim(SoftmaxOp::create(b, all.getType(), all, 3, /*log=*/false), 3, b.size(0), total);
  } else {
    weights = SoftmaxOp::create(b, sum.getType(), sum, 3, /*log=*/false);
  }
  if (shown != 0) { // 0 for keys that are not seen, in both forms
    Value isHidden = b.compare(CompareKind::EQ, sum, -INFINITY);
    Value scoresSeen = shown == 1 ? b.select(isHidden, b.splatLike(sum, 0), sum) : weights;
    (void)ctx.set(3, b.reshape(b.convert(scoresSeen, type), {batch, b.size(count), rows, total}));
  }
  Value y = DotGeneralOp::create(b, weights, values32, batches, batches, ArrayRef<int64_t>{3}, ArrayRef<int64_t>{2});
  return ctx.result(mergeHeads(b, b.reshape(b.convert(y, type), sizes)));
}

} // namespace

void tc::populateMicrosoftAttention(OpRegistrar &onOp) {
  onOp("Attention", 1, attention, 2);
  onOp("QAttention", 1, qAttention, 5);
  onOp("MultiHeadAttention", 1, multiHeadAttention);
  onOp("RotaryEmbedding", 1, rotaryEmbedding, 4);
  onOp("GroupQueryAttention", 1, groupQueryAttention);
}
