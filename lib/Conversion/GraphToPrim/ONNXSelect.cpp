//===- ONNXSelect.cpp - sorting and choosing elements by their values in ONNX -------------------------------------===//
//
// How many elements are chosen is data: the count is bound at run time (compact), bounded by what there is.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ONNXSupport.h"
#include "OpRegistry.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

/// Numbers of the true elements of the 1-D bool tensor `mask`, in order: [count], where `count` is bound to their
/// number.
Value compact(PrimBuilder &b, Value mask) {
  AffineExpr length = getSizes(mask)[0];
  Value ones = b.convert(mask, b.getI64Type());
  Value before = ScanOp::create(b, ones.getType(), ReduceKind::Sum, ones, 0, /*exclusive=*/true, /*reverse=*/false);
  AffineExpr count = b.bindSymbol("found", b.reduce(ReduceKind::Sum, ones, {0}), 0, b.bounds(length).second);
  // False elements go to a place of their own at the end.
  Value nowhere = b.broadcastTo(b.sizeValue(length), {length});
  Value target = b.select(mask, before, nowhere);
  Value numbers = b.iota(b.getI64Type(), {length}, 0);
  Sizes longer{simplifySize(length + 1)};
  Value found = ScatterElementsOp::create(b, makeType(b.getI64Type(), longer), b.splat(b.getI64Type(), longer, 0),
                                          target, numbers, 0, ReduceKindAttr());
  return b.sliceDim(found, 0, b.size(0), count);
}

/// The permutation that moves dim `axis` to the end (or, inverted, back).
SmallVector<int64_t> axisLast(int64_t rank, int64_t axis, bool inverse = false) {
  SmallVector<int64_t> order;
  for (int64_t d = 0; d < rank; ++d)
    if (d != axis)
      order.push_back(d);
  order.push_back(axis);
  if (!inverse)
    return order;
  SmallVector<int64_t> back(rank);
  for (auto [i, d] : llvm::enumerate(order))
    back[d] = i;
  return back;
}

/// Positions along `axis` of the first `count` elements in order: as `v`, but with `count` elements along the axis.
Value argSort(PrimBuilder &b, Value v, int64_t axis, AffineExpr count, bool descending) {
  int64_t rank = b.rankOf(v);
  Value keys = b.unsqueeze(b.transpose(v, axisLast(rank, axis)), rank);
  Sizes sizes = getSizes(keys);
  sizes.pop_back();
  sizes.back() = count;
  Value order = ArgSortOp::create(b, makeType(b.getI64Type(), sizes), keys, descending);
  return b.transpose(order, axisLast(rank, axis, /*inverse=*/true));
}

Value gatherElements(PrimBuilder &b, Value source, Value indices, int64_t axis) {
  return GatherElementsOp::create(b, withElementType(indices.getType(), b.elementOf(source)), source, indices, axis);
}

/// out[i] = 0, and 1 where `numbers` name i, and so on: kind combines what meets. `length` elements.
Value scatterInto(PrimBuilder &b, AffineExpr length, Value numbers, Value updates, std::optional<ReduceKind> kind) {
  Type type = makeType(b.elementOf(updates), {length});
  Value zeros = b.splat(b.elementOf(updates), {length}, 0);
  auto attr = kind ? ReduceKindAttr::get(b.getContext(), *kind) : ReduceKindAttr();
  return ScatterElementsOp::create(b, type, zeros, numbers, updates, 0, attr);
}

Value flatten(PrimBuilder &b, Value v) { return b.reshape(v, {product(b.getContext(), getSizes(v))}); }

LogicalResult topK(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  Sizes sizes = getSizes(x);
  FailureOr<int64_t> axis = ctx.axis(ctx.getInt("axis", -1), sizes.size());
  if (failed(axis))
    return failure();
  AffineExpr count;
  if (ctx.opset() < 10) {
    count = b.size(ctx.getInt("k", 0));
  } else {
    FailureOr<Value> one = ctx.scalar(ctx.operand(1), "k");
    if (failed(one))
      return failure();
    FailureOr<Sizes> k = ctx.requireSizes(*one, "k");
    if (failed(k))
      return failure();
    count = k->front();
  }
  if (failed(ctx.require(CompareKind::LE, count, sizes[*axis], "no more elements than there are along its axis")))
    return failure();
  Value order = argSort(b, x, *axis, count, ctx.opset() < 11 || ctx.getInt("largest", 1));
  (void)ctx.set(1, order);
  return ctx.set(0, gatherElements(b, x, order, *axis));
}

/// [rank, count]: coordinates of the flat positions `numbers` in a tensor of `sizes`.
Value coordinates(PrimBuilder &b, Value numbers, SizesRef sizes) {
  AffineExpr stride = b.size(1);
  SmallVector<Value> rows;
  for (AffineExpr size : llvm::reverse(sizes)) {
    auto wide = [&](AffineExpr e) { return b.broadcastTo(b.sizeValue(e), getSizes(numbers)); };
    rows.push_back(b.unsqueeze(b.binary<RemOp>(b.div(numbers, wide(stride)), wide(size)), 0));
    stride = simplifySize(stride * size);
  }
  std::reverse(rows.begin(), rows.end());
  return b.concat(rows, 0);
}

LogicalResult nonZero(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  Value flat = flatten(b, x);
  Value mask = b.elementOf(x).isInteger(1) ? flat : b.compare(CompareKind::NE, flat, 0);
  Value found = compact(b, mask);
  if (b.rankOf(x) == 0) // coordinates of no dim
    return ctx.result(b.splat(b.getI64Type(), {b.size(0), getSizes(found)[0]}, 0));
  return ctx.result(coordinates(b, found, getSizes(x)));
}

LogicalResult compress(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0), condition = ctx.operand(1);
  int64_t axis = 0;
  if (ctx.hasAttr("axis")) {
    FailureOr<int64_t> given = ctx.axis(ctx.getInt("axis", 0), b.rankOf(x));
    if (failed(given))
      return failure();
    axis = *given;
  } else {
    x = flatten(b, x);
  }
  if (failed(ctx.require(CompareKind::LE, getSizes(condition)[0], getSizes(x)[axis],
                         "a condition that is no longer than the operand's axis")))
    return failure();
  return ctx.result(GatherOp::create(b, x, compact(b, condition), axis));
}

/// Floats along a last dim that stand for complex numbers, to sort them and to tell them apart: in the order of their
/// real, then of their imaginary parts; behind them those with a NaN, first in the imaginary part, then in the real,
/// then in both, which all are the same. Source: NumPy's sort and unique.
std::pair<Value, Value> complexKeys(PrimBuilder &b, Value x) {
  Value parts = b.asParts(x);
  int64_t rank = b.rankOf(x);
  Value isNaN = IsNanOp::create(b, withElementType(parts.getType(), b.getI1Type()), parts);
  Value real = b.take(isNaN, rank, 0), imaginary = b.take(isNaN, rank, 1);
  Type element = b.elementOf(parts);
  Value kind = b.add(b.binary<MulOp>(b.convert(real, element), 2), b.convert(imaginary, element));
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  Value any = b.broadcastInDims(b.binary<OrOp>(real, imaginary), getSizes(parts), dims);
  Value nan = b.splatLike(parts, std::numeric_limits<double>::quiet_NaN());
  return {b.concat({b.unsqueeze(kind, rank), parts}, rank), b.select(any, nan, parts)};
}

/// Rows are sorted; equal ones are neighbours then and form a group.
LogicalResult unique(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Type i64 = b.getI64Type();
  Value x = ctx.operand(0);
  bool flat = !ctx.hasAttr("axis");
  if (flat)
    x = flatten(b, x);
  FailureOr<int64_t> axis = ctx.axis(ctx.getInt("axis", 0), b.rankOf(x));
  if (failed(axis))
    return failure();
  Sizes sizes = getSizes(x);
  AffineExpr n = sizes[*axis];
  SmallVector<int64_t> first{*axis};
  for (int64_t d = 0; d < int64_t(sizes.size()); ++d)
    if (d != *axis)
      first.push_back(d);
  Value keys = b.isString(x) ? b.hostCall("string_rank", x, i64, sizes) : x; // strings in the order of their bytes
  Value sortKeys = keys;
  if (b.isComplex(x)) {
    std::tie(sortKeys, keys) = complexKeys(b, x);
    first.push_back(sizes.size());
  }
  auto toRows = [&](Value v) {
    Sizes all = getSizes(v);
    all.erase(all.begin() + *axis);
    return b.reshape(b.transpose(v, first), {n, product(b.getContext(), all)});
  };
  Value rows = toRows(keys);
  Value order =
      ArgSortOp::create(b, makeType(i64, {n}), sortKeys == keys ? rows : toRows(sortKeys), /*descending=*/false);
  Value number = b.iota(i64, {n}, 0);
  Value before = GatherOp::create(b, order, b.binary<MaxOp>(b.binary<SubOp>(number, 1), 0), 0);
  Value here = GatherOp::create(b, rows, order, 0), previous = GatherOp::create(b, rows, before, 0);
  Value differ = b.compare(CompareKind::NE, here, previous);
  if (b.isFloat(here)) { // NaN equals NaN here
    auto isNaN = [&](Value v) { return IsNanOp::create(b, differ.getType(), v); };
    differ = b.binary<AndOp>(differ, b.unary<NotOp>(b.binary<AndOp>(isNaN(here), isNaN(previous))));
  }
  Value starts = b.binary<OrOp>(b.reduce(ReduceKind::Or, differ, {1}), b.compare(CompareKind::EQ, number, 0));
  Value ones = b.convert(starts, i64);
  Value group = ScanOp::create(b, ones.getType(), ReduceKind::Sum, ones, 0, /*exclusive=*/false, /*reverse=*/false);
  group = b.binary<SubOp>(group, 1);
  // The sort is stable: the first row of a group is its first occurrence.
  Value occurrence = GatherOp::create(b, order, compact(b, starts), 0);
  AffineExpr groups = getSizes(occurrence)[0];
  Value counts = scatterInto(b, groups, group, b.splat(i64, {n}, 1), ReduceKind::Sum);
  if (!ctx.getInt("sorted", 1)) { // groups in order of their first occurrence
    Value byOccurrence = argSort(b, occurrence, 0, groups, /*descending=*/false);
    Value rank = scatterInto(b, groups, byOccurrence, b.iota(i64, {groups}, 0), std::nullopt);
    group = GatherOp::create(b, rank, group, 0);
    counts = GatherOp::create(b, counts, byOccurrence, 0);
    occurrence = GatherOp::create(b, occurrence, byOccurrence, 0);
  }
  (void)ctx.set(0, GatherOp::create(b, x, occurrence, *axis));
  (void)ctx.set(1, occurrence);
  (void)ctx.set(2, scatterInto(b, n, order, group, std::nullopt));
  return ctx.set(3, counts);
}

/// Which boxes stay is known one after the other, and how many only in the end: a function of the runtime.
LogicalResult nonMaxSuppression(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value boxes = ctx.operand(0), scores = ctx.operand(1);
  Sizes s = getSizes(scores), boxSizes = getSizes(boxes);
  if (failed(ctx.requireEqual(boxSizes[2], b.size(4), "boxes of 4 numbers")) ||
      failed(ctx.requireEqual(boxSizes[0], s[0], "as many batches of boxes as of scores")) ||
      failed(ctx.requireEqual(boxSizes[1], s[2], "as many boxes as scores")))
    return failure();
  auto computed = [&](Value v) { return b.convert(v, b.elementOf(v).isF64() ? b.getF64Type() : b.getF32Type()); };
  boxes = computed(boxes);
  scores = computed(scores);
  auto scalar = [&](size_t i, Type type) -> FailureOr<Value> {
    return ctx.has(i) ? ctx.scalar(b.convert(ctx.operand(i), type), "operand " + Twine(i)) : b.scalar(type, 0);
  };
  FailureOr<Value> most = scalar(2, b.getI64Type()), overlap = scalar(3, b.elementOf(boxes)),
                   least = scalar(4, b.elementOf(scores));
  if (failed(most) || failed(overlap) || failed(least))
    return failure();
  // The flags are those of lib/Functions/NonMaxSuppression.c.
  const int64_t flags = (ctx.getInt("center_point_box", 0) ? 1 : 0) + (ctx.has(4) ? 2 : 0);
  auto inside = RankedTensorType::get({ShapedType::kDynamic, 3}, b.getI64Type());
  Value kept = b.hostCall("non_max_suppression", {boxes, scores, *most, *overlap, *least, b.sizeValue(b.size(flags))},
                          base::OptType::get(b.getContext(), inside), {});
  FailureOr<Value> result = takeOut(ctx, kept, inside);
  return failed(result) ? failure() : ctx.result(*result);
}

LogicalResult reverseSequence(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0), lengths = ctx.operand(1);
  Sizes sizes = getSizes(x);
  int64_t batch = ctx.getInt("batch_axis", 1), time = ctx.getInt("time_axis", 0);
  if (batch == time)
    return ctx.invalid("time_axis and batch_axis are both " + Twine(time) + "; one must be 0, the other 1");
  if (failed(ctx.requireEqual(getSizes(lengths)[0], sizes[batch], "one length for each batch")))
    return failure();
  Value length = b.broadcastInDims(b.reshape(lengths, {sizes[batch]}), sizes, {batch});
  Value step = b.iota(b.getI64Type(), sizes, time);
  length = b.convert(length, b.getI64Type());
  Value mirrored = b.sub(b.binary<SubOp>(length, 1), step);
  Value index = b.select(b.compare(CompareKind::LT, step, length), mirrored, step);
  return ctx.result(gatherElements(b, x, index, time));
}

/// A cache [B, .., S, ..] with an update at each batch's own position.
LogicalResult tensorScatter(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value cache = ctx.operand(0), update = ctx.operand(1);
  Sizes sizes = getSizes(cache), of = getSizes(update);
  FailureOr<int64_t> axis = ctx.axis(ctx.getInt("axis", -2), sizes.size());
  if (failed(axis))
    return failure();
  std::string mode = ctx.getString("mode", "linear");
  if (*axis == 0)
    return ctx.invalid("axis is that of the batch; it must be another one");
  for (size_t d = 0; d < sizes.size(); ++d)
    if (int64_t(d) != *axis &&
        failed(ctx.requireEqual(of[d], sizes[d], "an update of the cache's size in dim " + Twine(d))))
      return failure();
  Sizes same = sizes;
  same[*axis] = of[*axis];
  update = b.reshape(update, same);
  Value index = b.iota(b.getI64Type(), same, *axis);
  if (Value start = ctx.operand(2)) {
    if (failed(ctx.requireEqual(getSizes(start)[0], sizes[0], "one position for each batch")))
      return failure();
    start = b.reshape(b.convert(start, b.getI64Type()), {sizes[0]});
    index = b.add(index, b.broadcastInDims(start, same, {0}));
  }
  if (mode == "circular")
    index = b.binary<RemOp>(index, b.broadcastTo(b.sizeValue(sizes[*axis]), same));
  return ctx.result(ScatterElementsOp::create(b, cache.getType(), cache, index, update, *axis, ReduceKindAttr()));
}

} // namespace

void tc::populateONNXSelect(OpRegistrar &onOp) {
  onOp("TopK", 1, topK);
  onOp("NonZero", 9, nonZero);
  onOp("Compress", 9, compress, 2);
  onOp("Unique", 11, unique);
  onOp("NonMaxSuppression", 10, nonMaxSuppression, 2);
  onOp.takeAnyFloat("NonMaxSuppression");
  onOp("ReverseSequence", 10, reverseSequence, 2);
  onOp("TensorScatter", 24, tensorScatter, 2);
  onOp.takeComplex(ComplexUse::Moved, {"NonZero", "Compress", "Unique", "ReverseSequence", "TensorScatter"});
}
