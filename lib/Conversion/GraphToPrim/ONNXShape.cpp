//===- ONNXShape.cpp - constants, sizes and ranges of ONNX --------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ConstantData.h"
#include "ONNXSupport.h"
#include "OpRegistry.h"

#include "tc/Dialect/Prim/Utils/Admission.h"
#include "tc/Support/Saturate.h"

#include <cmath>

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

LogicalResult constant(NodeContext &ctx) {
  if (auto value = dyn_cast_or_null<TypedAttr>(ctx.attr("value"))) {
    if (!isa<RankedTensorType>(value.getType()))
      return ctx.unsupported("with a value that is no dense tensor is not supported");
    FailureOr<Value> result = makeConstant(ctx, value);
    return failed(result) ? failure() : ctx.result(*result);
  }
  Builder &b = ctx.b;
  Type f32 = b.getF32Type(), i64 = b.getI64Type();
  auto emit = [&](DenseElementsAttr dense) -> LogicalResult {
    FailureOr<Value> result = makeConstant(ctx, dense);
    return failed(result) ? failure() : ctx.result(*result);
  };
  if (ctx.hasAttr("value_float"))
    return ctx.result(ctx.b.scalar(f32, ctx.getFloat("value_float", 0)));
  if (ctx.hasAttr("value_int"))
    return emit(DenseElementsAttr::get(RankedTensorType::get({}, i64), ctx.getInt("value_int", 0)));
  if (auto values = ctx.getInts("value_ints"))
    return emit(DenseElementsAttr::get(RankedTensorType::get({int64_t(values->size())}, i64), ArrayRef(*values)));
  if (auto values = ctx.getFloats("value_floats")) {
    SmallVector<float> floats(values->begin(), values->end());
    return emit(DenseElementsAttr::get(RankedTensorType::get({int64_t(floats.size())}, f32), ArrayRef(floats)));
  }
  if (auto sparse = dyn_cast_or_null<TypedAttr>(ctx.attr("sparse_value"))) {
    FailureOr<Value> result = makeConstant(ctx, sparse);
    return failed(result) ? failure() : ctx.result(*result);
  }
  return ctx.unsupported("with a string value is not supported; supported: tensors of numbers");
}

LogicalResult constantOfShape(NodeContext &ctx) {
  FailureOr<Sizes> sizes = ctx.requireSizes(ctx.operand(0), "the shape");
  if (failed(sizes))
    return failure();
  auto value = dyn_cast_or_null<TypedAttr>(ctx.attr("value"));
  if (!value)
    return ctx.result(ctx.b.splat(ctx.b.getF32Type(), *sizes, 0));
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || type.getNumElements() != 1)
    return ctx.invalid("value must have one element");
  FailureOr<Value> one = makeConstant(ctx, value);
  if (failed(one))
    return failure();
  return ctx.result(ctx.b.broadcastTo(ctx.b.reshape(*one, {}), *sizes));
}

LogicalResult shape(NodeContext &ctx) {
  Sizes sizes = getSizes(ctx.operand(0));
  int64_t rank = sizes.size(), start = ctx.getInt("start", 0), end = ctx.getInt("end", rank);
  start = std::clamp<int64_t>(start < 0 ? start + rank : start, 0, rank);
  end = std::clamp<int64_t>(end < 0 ? end + rank : end, start, rank);
  return ctx.result(ctx.b.sizesValue(SizesRef(sizes).slice(start, end - start)));
}

LogicalResult size(NodeContext &ctx) {
  return ctx.result(ctx.b.sizeValue(product(ctx.b.getContext(), getSizes(ctx.operand(0)))));
}

/// a - b of i64; what 64 bits do not hold is the nearest number that they hold.
Value saturatingDifference(PrimBuilder &b, Value x, Value y) {
  Value difference = b.sub(x, y);
  // It overflows where the operands differ in sign, and the result from the first.
  Value wraps = b.compare(CompareKind::LT, b.binary<AndOp>(b.binary<XorOp>(x, y), b.binary<XorOp>(x, difference)), 0);
  auto all = [&](int64_t number) { return b.broadcastTo(b.reshape(b.constantI64s({number}), {}), getSizes(x)); };
  return b.select(wraps, b.select(b.compare(CompareKind::LT, x, 0), all(INT64_MIN), all(INT64_MAX)), difference);
}

LogicalResult range(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value start = ctx.operand(0), limit = ctx.operand(1), delta = ctx.operand(2);
  for (Value &v : {std::ref(start), std::ref(limit), std::ref(delta)}) {
    FailureOr<Value> one = ctx.scalar(v, "start, limit and delta");
    if (failed(one))
      return failure();
    v = *one;
  }
  Type type = b.elementOf(start);
  AffineExpr count;
  std::optional<Sizes> first = ctx.intValues(start), last = ctx.intValues(limit), step = ctx.intValues(delta);
  auto constantStep = step ? getConstantSize(step->front()) : std::nullopt;
  if (first && last && constantStep) {
    const bool isForward = *constantStep > 0;
    const int64_t stride = saturatingAbs(*constantStep);
    auto from = getConstantSize(isForward ? first->front() : last->front()),
         to = getConstantSize(isForward ? last->front() : first->front());
    if (from && to) {
      const __int128 span = __int128(*to) - *from, known = span <= 0 ? 0 : (span - 1) / stride + 1;
      if (known >= __int128(1) << kSizeBits)
        return ctx.invalid("the range is too long");
      count = b.size(int64_t(known));
    } else {
      AffineExpr span = simplifySize(isForward ? last->front() - first->front() : first->front() - last->front());
      if (b.bounds(span).first >= 0)
        count = simplifySize(span.ceilDiv(stride));
    }
  } else if (b.isFloat(start)) {
    auto x = ctx.constantScalar(start), y = ctx.constantScalar(limit), d = ctx.constantScalar(delta);
    if (x && y && d) {
      double n = std::ceil((*y - *x) / *d);
      if (!(n < 0x1p40))
        return ctx.invalid("the range is too long");
      count = b.size(n > 0 ? int64_t(n) : 0);
    }
  }
  if (!count) { // max(ceil((limit - start) / delta), 0) at run time
    Value n;
    if (b.isFloat(start)) {
      n = b.convert(b.unary<CeilOp>(b.div(b.sub(limit, start), delta)), b.getI64Type());
    } else {
      Value d = b.convert(delta, b.getI64Type());
      Value span = saturatingDifference(b, b.convert(limit, b.getI64Type()), b.convert(start, b.getI64Type()));
      Value quotient = b.div(span, d);
      // Truncation rounds a positive quotient down: one more where a remainder is left.
      Value rest = b.compare(CompareKind::NE, b.binary<RemOp>(span, d), 0);
      n = b.add(quotient, b.convert(rest, b.getI64Type()));
      Value sameSign =
          b.compare(CompareKind::EQ, b.compare(CompareKind::GT, span, 0), b.compare(CompareKind::GT, d, 0));
      n = b.select(sameSign, n, b.splatLike(n, 0));
    }
    count = b.bindSymbol("range", b.binary<MaxOp>(n, 0));
  }
  Value index = b.iota(type, {count}, 0);
  Sizes sizes{count};
  if (ctx.constantScalar(delta) != 1)
    index = b.mul(index, b.broadcastTo(delta, sizes));
  if (ctx.constantScalar(start) != 0)
    index = b.add(index, b.broadcastTo(start, sizes));
  return ctx.result(index);
}

LogicalResult eyeLike(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  Type type = b.elementOf(x);
  if (ctx.hasAttr("dtype")) {
    FailureOr<Type> given = readElementType(ctx, "dtype", 1);
    if (failed(given))
      return failure();
    type = *given;
  }
  Value row = b.iota(b.getI64Type(), getSizes(x), 0), column = b.iota(b.getI64Type(), getSizes(x), 1);
  Value diagonal = b.compare(CompareKind::EQ, b.binary<AddOp>(row, double(ctx.getInt("k", 0))), column);
  return ctx.result(b.convert(diagonal, type));
}

LogicalResult trilu(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  Sizes sizes = getSizes(x);
  Sizes matrix(sizes.end() - 2, sizes.end());
  Value row = b.iota(b.getI64Type(), matrix, 0), column = b.iota(b.getI64Type(), matrix, 1);
  if (Value k = ctx.operand(1)) {
    FailureOr<Value> one = ctx.scalar(b.convert(k, b.getI64Type()), "k");
    if (failed(one))
      return failure();
    // Diagonals beyond the matrix are not told apart.
    Value k64 = b.max(*one, b.sizeValue(simplifySize(-matrix[0])));
    row = b.add(row, b.broadcastTo(b.min(k64, b.sizeValue(matrix[1])), matrix));
  }
  Value keep = b.compare(ctx.getInt("upper", 1) ? CompareKind::LE : CompareKind::GE, row, column);
  return ctx.result(b.select(b.broadcastTo(keep, sizes), x, b.splatLike(x, 0)));
}

LogicalResult oneHot(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value indices = ctx.operand(0), depth = ctx.operand(1), values = ctx.operand(2);
  FailureOr<Value> one = ctx.scalar(b.convert(depth, b.getI64Type()), "depth"),
                   pair = ctx.castSizes(values, {b.size(2)}); // off, on
  if (failed(one) || failed(pair))
    return failure();
  depth = *one;
  values = *pair;
  FailureOr<Sizes> count = ctx.requireSizes(depth, "depth");
  if (failed(count))
    return failure();
  FailureOr<int64_t> axis = ctx.axis(ctx.getInt("axis", -1), b.rankOf(indices) + 1);
  if (failed(axis))
    return failure();
  Sizes sizes = getSizes(indices);
  SmallVector<int64_t> dims;
  for (int64_t i = 0, e = sizes.size() + 1; i < e; ++i)
    if (i != *axis)
      dims.push_back(i);
  sizes.insert(sizes.begin() + *axis, count->front());
  Value index = b.convert(indices, b.getI64Type());
  Value wrapped = b.add(index, b.broadcastTo(depth, getSizes(index)));
  index = b.select(b.compare(CompareKind::LT, index, 0), wrapped, index);
  Value hot = b.compare(CompareKind::EQ, b.broadcastInDims(index, sizes, dims), b.iota(b.getI64Type(), sizes, *axis));
  Value off = b.broadcastTo(b.take(values, 0, 0), sizes), on = b.broadcastTo(b.take(values, 0, 1), sizes);
  return ctx.result(b.select(hot, on, off));
}

} // namespace

void tc::populateONNXShape(OpRegistrar &onOp) {
  onOp("Constant", 1, constant, 0);
  onOp("ConstantOfShape", 9, constantOfShape);
  onOp("Shape", 1, shape);
  onOp("Size", 1, size);
  onOp("Range", 11, range, 3);
  onOp("EyeLike", 9, eyeLike);
  onOp("Trilu", 14, trilu);
  onOp("OneHot", 9, oneHot, 3);
  onOp.takeComplex(ComplexUse::Moved, {"Shape", "Size", "Trilu", "OneHot"});
}
