//===- ONNXSelect.cpp - sorting and choosing elements by their values in ONNX -------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ONNXSupport.h"
#include "OpRegistry.h"
#include "Selection.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

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
  Value order = emitArgSort(b, x, *axis, count, ctx.opset() < 11 || ctx.getInt("largest", 1));
  (void)ctx.set(1, order);
  return ctx.set(0, emitGatherElements(b, x, order, *axis));
}

LogicalResult nonZero(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  Value flat = flattened(b, x);
  Value mask = b.elementOf(x).isInteger(1) ? flat : b.compare(CompareKind::NE, flat, 0);
  Value found = emitCompact(b, mask);
  if (b.rankOf(x) == 0) // coordinates of no dim
    return ctx.result(b.splat(b.getI64Type(), {b.size(0), getSizes(found)[0]}, 0));
  return ctx.result(emitCoordinates(b, found, getSizes(x)));
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
    x = flattened(b, x);
  }
  if (failed(ctx.require(CompareKind::LE, getSizes(condition)[0], getSizes(x)[axis],
                         "a condition that is no longer than the operand's axis")))
    return failure();
  return ctx.result(GatherOp::create(b, x, emitCompact(b, condition), axis));
}

LogicalResult unique(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  if (!ctx.hasAttr("axis"))
    x = flattened(b, x);
  FailureOr<int64_t> axis = ctx.axis(ctx.getInt("axis", 0), b.rankOf(x));
  if (failed(axis))
    return failure();
  Groups groups = findGroups(b, x, *axis, ctx.getInt("sorted", 1) ? GroupOrder::OfValues : GroupOrder::OfFirst,
                             /*equalNaN=*/true);
  (void)ctx.set(0, GatherOp::create(b, x, groups.first, *axis));
  (void)ctx.set(1, groups.first);
  (void)ctx.set(2, groups.groupOf);
  return ctx.set(3, groups.counts);
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
  return ctx.result(emitGatherElements(b, x, index, time));
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
