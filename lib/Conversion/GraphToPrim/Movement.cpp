//===- Movement.cpp - slices, pads, indices and concatenations of all front ends ----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Movement.h"

#include "tc/Dialect/Graph/IR/Graph.h"
#include "tc/Dialect/Prim/Utils/Indices.h"
#include "tc/Support/Saturate.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

FailureOr<Value> tc::emitConcat(NodeContext &ctx, ArrayRef<Value> values, int64_t axis) {
  SmallVector<Value> inputs(values);
  // The other dims are equal by the operator's definition: a static size is taken from whichever operand has it.
  Sizes common = getSizes(inputs.front());
  for (Value v : inputs)
    for (auto [mine, theirs] : llvm::zip_equal(common, getSizes(v)))
      if (!getConstantSize(mine) && getConstantSize(theirs))
        mine = theirs;
  for (Value &v : inputs) {
    common[axis] = getSizes(v)[axis];
    FailureOr<Value> same = ctx.castSizes(v, common);
    if (failed(same))
      return failure();
    v = *same;
  }
  return ctx.b.concat(inputs, axis);
}

/// The bound clamped to [low, extent + high], counted from the end if negative.
static AffineExpr clampBound(NodeContext &ctx, const SliceBound &bound, AffineExpr extent, int64_t low, int64_t high) {
  PrimBuilder &b = ctx.b;
  AffineExpr top = simplifySize(extent + high);
  if (bound.expr) {
    AffineExpr e = bound.expr;
    auto constant = getConstantSize(e);
    // INT_MAX and friends mean "to the end".
    if (constant && *constant >= INT32_MAX && b.bounds(extent).second == INT64_MAX)
      return top;
    if (constant && *constant <= -INT32_MAX && b.bounds(extent).second == INT64_MAX)
      return b.size(low);
    if (b.bounds(e).second < 0)
      e = simplifySize(e + extent);
    else if (b.bounds(e).first < 0)
      e = {};
    if (e) {
      bool aboveLow = b.bounds(simplifySize(e - low)).first >= 0, belowTop = b.bounds(simplifySize(top - e)).first >= 0;
      // In an empty dim the top may be below the low end, and counts.
      if (e == top || b.bounds(simplifySize(top - low)).second < 0)
        return top;
      if (b.bounds(simplifySize(e - low)).second <= 0 && b.bounds(simplifySize(top - low)).first >= 0)
        return b.size(low);
      if (aboveLow && belowTop)
        return e;
      if (aboveLow && b.bounds(simplifySize(e - top)).first >= 0)
        return top;
    }
  }
  Value v = bound.expr ? b.sizeValue(bound.expr) : b.reshape(b.convert(bound.value, b.getI64Type()), {});
  v = b.select(b.compare(CompareKind::LT, v, 0), b.add(v, b.sizeValue(extent)), v);
  v = b.min(b.binary<MaxOp>(v, double(low)), b.sizeValue(top));
  return b.bindSymbol("slice", v, std::min({low, int64_t(0), b.bounds(top).first}), b.bounds(top).second);
}

FailureOr<SliceDim> tc::resolveSlice(NodeContext &ctx, Value source, AffineExpr extent, SliceBound start,
                                     SliceBound end, int64_t step, std::optional<int64_t> most) {
  PrimBuilder &b = ctx.b;
  // A table of fixed size cut to the length of an input (position ids): beyond the table the model is wrong anyway, so
  // the table's size bounds the input instead of a clamp that would make two lengths of one.
  if (step == 1 && source.getDefiningOp<prim::ConstantOp>() && getConstantSize(extent) && end.expr)
    if (auto symbol = dyn_cast<AffineSymbolExpr>(end.expr); symbol && b.bounds(end.expr).first >= 0)
      b.symbols.refineMax(symbol.getPosition(), *getConstantSize(extent));
  SliceDim dim;
  AffineExpr span;
  const int64_t stride = std::min(saturatingAbs(step), kLongestStep);
  if (step > 0) {
    dim.start = clampBound(ctx, start, extent, 0, 0);
    span = simplifySize(clampBound(ctx, end, extent, 0, 0) - dim.start);
  } else {
    dim.start = clampBound(ctx, start, extent, 0, -1);
    // An end of -1 after clamping means that index 0 is included; ONNX says so with a very negative end.
    span = simplifySize(dim.start - clampBound(ctx, end, extent, -1, -1));
  }
  if (b.bounds(span).first >= 0) {
    dim.count = simplifySize(span.ceilDiv(stride));
  } else if (b.bounds(span).second <= 0) {
    dim.count = b.size(0);
  } else {
    dim.count = b.bindSymbol("slice", b.binary<MaxOp>(b.sizeValue(simplifySize(span.ceilDiv(stride))), 0), 0,
                             most && step > 0 ? *most : INT64_MAX);
  }
  if (getConstantSize(dim.count) == 0)
    dim.start = b.size(0);
  return dim;
}

/// 1 where a tensor of these sizes has elements, else 0.
static AffineExpr hasElements(MLIRContext *context, SizesRef sizes) {
  constexpr int64_t kMost = int64_t(1) << 62; // elements of a tensor
  AffineExpr count = prim::product(context, sizes);
  if (const auto known = getConstantSize(count))
    return getAffineConstantExpr(*known != 0, context);
  return simplifySize(count.ceilDiv(kMost));
}

LogicalResult tc::requireElements(NodeContext &ctx, SizesRef taken, SizesRef sizes) {
  const AffineExpr takes = hasElements(ctx.b.getContext(), taken);
  for (AffineExpr size : sizes)
    if (ctx.b.bounds(size).first < 1 &&
        failed(ctx.require(CompareKind::LE, takes, size, "elements in the dim that its indices are of")))
      return failure();
  return success();
}

LogicalResult tc::requireInside(NodeContext &ctx, Value indices, SizesRef sizes) {
  if (failed(requireElements(ctx, getSizes(indices), sizes)))
    return failure();
  // A branch that holds a wild index may never run.
  if (isa<graph::NodeOp>(ctx.node()->getParentOp()))
    return success();
  DenseIntElementsAttr constant = getConstantIndices(indices);
  if (!constant || constant.empty())
    return success();
  const auto all = constant.getValues<APInt>();
  const int64_t count =
      constant.isSplat() ? std::min<int64_t>(constant.getNumElements(), sizes.size()) : constant.getNumElements();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = all[i].getSExtValue();
    const size_t dim = i % sizes.size();
    if (auto size = getConstantSize(sizes[dim]); size && (index < -*size || index >= *size))
      return ctx.invalid("index " + Twine(index) + " is outside of a dim of " + Twine(*size) +
                         " elements of the operand " + describe(ctx.operand(0)) + "; indices lie in [-" + Twine(*size) +
                         ", " + Twine(*size) + ")");
  }
  return success();
}

Value tc::emitPlaces(PrimBuilder &b, ArrayRef<Value> indices, SizesRef sizes, SizesRef of) {
  Value place = b.splat(b.getI64Type(), of, 0);
  AffineExpr stride = b.size(1);
  auto wide = [&](AffineExpr e) { return b.broadcastTo(b.sizeValue(e), of); };
  for (size_t i = sizes.size(); i-- > 0;) {
    Value index = b.convert(indices[i], b.getI64Type());
    index = b.select(b.compare(CompareKind::LT, index, 0), b.add(index, wide(sizes[i])), index);
    place = b.add(place, b.mul(index, wide(stride)));
    stride = simplifySize(stride * sizes[i]);
  }
  return place;
}

/// Pads one dim by reading at computed positions.
static Value padByIndex(NodeContext &ctx, Value x, int64_t axis, AffineExpr low, AffineExpr size, StringRef mode) {
  PrimBuilder &b = ctx.b;
  AffineExpr extent = getSizes(x)[axis];
  auto broadcast = [&](AffineExpr e) { return b.broadcastTo(b.sizeValue(e), {size}); };
  Value index = b.sub(b.iota(b.getI64Type(), {size}, 0), broadcast(low));
  Value last = broadcast(simplifySize(extent - 1));
  auto modulo = [&](Value v, Value period) {
    return b.binary<RemOp>(b.add(b.binary<RemOp>(v, period), period), period);
  };
  if (mode == "edge") {
    index = b.min(b.binary<MaxOp>(index, 0), last);
  } else if (mode == "reflect") {
    Value period = b.binary<MaxOp>(b.binary<MulOp>(last, 2), 1);
    index = modulo(index, period);
    index = b.min(index, b.sub(period, index));
  } else {
    index = modulo(index, broadcast(extent));
  }
  return GatherOp::create(b, x, index, axis);
}

FailureOr<Value> tc::emitPad(NodeContext &ctx, Value x, SizesRef low, SizesRef high, Value value, StringRef mode) {
  PrimBuilder &b = ctx.b;
  Sizes sizes = getSizes(x);
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    AffineExpr size = simplifySize(sizes[axis] + low[axis] + high[axis]);
    if (getConstantSize(size).value_or(0) < 0)
      return ctx.invalid("pads cut more of dim " + Twine(axis) + " than there is");
    if (mode != "constant" && (getConstantSize(low[axis]) != 0 || size != sizes[axis]))
      x = padByIndex(ctx, x, axis, low[axis], size, mode);
    sizes[axis] = size;
  }
  return mode == "constant" ? b.pad(x, value, low, sizes) : x;
}
