//===- AxisList.cpp - axes that are data --------------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "AxisList.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

FailureOr<AxisList> AxisList::get(NodeContext &ctx, Value axes, int64_t rank) {
  auto type = ctx.b.typeOf(axes);
  if (type.getRank() != 1 || !isa<IntegerType>(type.getElementType()))
    return ctx.invalid("axes must be a 1-D integer tensor, but are " + describe(axes));
  if (!type.hasStaticShape())
    return ctx.unsupported("with axes of unknown number (a result of unknown rank) is not supported");
  if (type.getDimSize(0) > rank)
    return ctx.invalid("axes are more than the " + Twine(rank) + " dims");
  return AxisList(ctx, axes, rank);
}

/// `v` along one dim of [rows, columns].
Value AxisList::along(Value v, int64_t rows, int64_t columns, int64_t dim) const {
  return b.broadcastInDims(v, b.sizes({rows, columns}), {dim});
}

AxisList::AxisList(NodeContext &ctx, Value given, int64_t rank) : b(ctx.b), rank(rank) {
  axes = b.convert(given, b.getI64Type());
  axes = b.select(b.compare(CompareKind::LT, axes, 0), b.binary<AddOp>(axes, rank), axes);
  Value dims = b.iota(b.getI64Type(), b.sizes({rank, count()}), 0);
  matches = b.compare(CompareKind::EQ, dims, along(axes, rank, count(), 1));
  isListed = b.reduce(ReduceKind::Or, matches, {1});
  Sizes square = b.sizes({rank, rank});
  Value before = b.compare(CompareKind::LT, b.iota(b.getI64Type(), square, 1), b.iota(b.getI64Type(), square, 0));
  Value counted = b.binary<AndOp>(before, along(b.unary<NotOp>(isListed), rank, rank, 1));
  position = b.reduce(ReduceKind::Sum, b.convert(counted, b.getI64Type()), {1});
}

Value AxisList::spread(Value values, Value otherwise) const {
  Value v = along(b.convert(values, b.getI64Type()), rank, count(), 1);
  return b.select(isListed, b.reduce(ReduceKind::Sum, b.select(matches, v, b.splatLike(v, 0)), {1}), otherwise);
}

Value AxisList::choose(Value listed, Value otherwise) const { return b.select(isListed, listed, otherwise); }

/// Pairs the dims that are not listed with the numbers 0, 1, ... in order.
Value AxisList::placeUnlisted(int64_t unlisted, bool byUnlisted, Value values) const {
  int64_t rows = byUnlisted ? unlisted : rank, columns = byUnlisted ? rank : unlisted;
  int64_t dimAxis = byUnlisted ? 1 : 0;
  Value number = b.iota(b.getI64Type(), b.sizes({rows, columns}), 1 - dimAxis);
  Value fits = b.compare(CompareKind::EQ, number, along(position, rows, columns, dimAxis));
  fits = b.binary<AndOp>(fits, along(b.unary<NotOp>(isListed), rows, columns, dimAxis));
  Value v = along(values, rows, columns, 1);
  return b.reduce(ReduceKind::Sum, b.select(fits, v, b.splatLike(v, 0)), {1});
}

Value AxisList::dropListed(Value values) const { return placeUnlisted(rank - count(), /*byUnlisted=*/true, values); }

Value AxisList::insertOnes(Value values) const {
  Value placed = placeUnlisted(rank - count(), /*byUnlisted=*/false, values);
  return choose(b.splatLike(placed, 1), placed);
}

Sizes tc::bindSizes(PrimBuilder &b, StringRef name, Value values, std::pair<int64_t, int64_t> bounds) {
  Sizes result;
  for (int64_t i = 0, e = b.typeOf(values).getDimSize(0); i < e; ++i)
    result.push_back(b.bindSymbol(name, b.take(values, 0, i), bounds.first, bounds.second));
  return result;
}

Value tc::splitListed(PrimBuilder &b, Value x, const AxisList &list) {
  Sizes sizes = getSizes(x), split;
  if (sizes.empty())
    return x;
  Value extents = b.sizesValue(sizes), ones = b.splatLike(extents, 1);
  Value kept = list.choose(ones, extents), listed = list.choose(extents, ones);
  for (auto [i, size] : llvm::enumerate(sizes)) {
    auto [low, high] = b.bounds(size);
    for (Value v : {kept, listed})
      split.push_back(b.bindSymbol("axis", b.take(v, 0, i), std::min<int64_t>(low, 1), std::max<int64_t>(high, 1)));
  }
  return b.reshape(x, split);
}
