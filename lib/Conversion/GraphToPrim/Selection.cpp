//===- Selection.cpp - sorting and choosing elements by their values, of all front ends ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Selection.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

Value tc::emitCompact(PrimBuilder &b, Value mask) {
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
static SmallVector<int64_t> axisLast(int64_t rank, int64_t axis, bool inverse = false) {
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

Value tc::emitArgSort(PrimBuilder &b, Value v, int64_t axis, AffineExpr count, bool descending) {
  int64_t rank = b.rankOf(v);
  Value keys = b.unsqueeze(b.transpose(v, axisLast(rank, axis)), rank);
  Sizes sizes = getSizes(keys);
  sizes.pop_back();
  sizes.back() = count;
  Value order = ArgSortOp::create(b, makeType(b.getI64Type(), sizes), keys, descending, /*keyBits=*/{});
  return b.transpose(order, axisLast(rank, axis, /*inverse=*/true));
}

Value tc::emitGatherElements(PrimBuilder &b, Value source, Value indices, int64_t axis) {
  return GatherElementsOp::create(b, withElementType(indices.getType(), b.elementOf(source)), source, indices, axis);
}

Value tc::emitScatterInto(PrimBuilder &b, AffineExpr length, Value numbers, Value updates,
                          std::optional<ReduceKind> kind) {
  Type type = makeType(b.elementOf(updates), {length});
  Value zeros = b.splat(b.elementOf(updates), {length}, 0);
  auto attr = kind ? ReduceKindAttr::get(b.getContext(), *kind) : ReduceKindAttr();
  return ScatterElementsOp::create(b, type, zeros, numbers, updates, 0, attr);
}

Value tc::flattened(PrimBuilder &b, Value v) { return b.reshape(v, {product(b.getContext(), getSizes(v))}); }

Value tc::emitCoordinates(PrimBuilder &b, Value numbers, SizesRef sizes) {
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

/// Floats along a last dim that stand for complex numbers, to sort them and to tell them apart: in the order of their
/// real, then of their imaginary parts; behind them those with a NaN, first in the imaginary part, then in the real,
/// then in both, which all are the same. Source: NumPy's sort and unique.
static std::pair<Value, Value> complexKeys(PrimBuilder &b, Value x) {
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

/// Where a row of `rows` [N, M], in the order `order`, differs from the one before it: bool [N], true for the first.
static Value findStarts(PrimBuilder &b, Value rows, Value order, bool equalNaN) {
  Sizes length{getSizes(rows)[0]};
  Value number = b.iota(b.getI64Type(), length, 0);
  Value before = b.binary<MaxOp>(b.binary<SubOp>(number, 1), 0);
  if (order)
    before = GatherOp::create(b, order, before, 0);
  Value here = order ? Value(GatherOp::create(b, rows, order, 0)) : rows,
        previous = GatherOp::create(b, rows, before, 0);
  Value differ = b.compare(CompareKind::NE, here, previous);
  if (b.isFloat(here) && equalNaN) {
    auto isNaN = [&](Value v) { return IsNanOp::create(b, differ.getType(), v); };
    differ = b.binary<AndOp>(differ, b.unary<NotOp>(b.binary<AndOp>(isNaN(here), isNaN(previous))));
  }
  return b.binary<OrOp>(b.reduce(ReduceKind::Or, differ, {1}), b.compare(CompareKind::EQ, number, 0));
}

/// Rows are sorted; equal ones are neighbours then and form a group.
Groups tc::findGroups(PrimBuilder &b, Value x, int64_t axis, GroupOrder groupOrder, bool equalNaN) {
  Type i64 = b.getI64Type();
  Sizes sizes = getSizes(x);
  AffineExpr n = sizes[axis];
  SmallVector<int64_t> first{axis};
  for (int64_t d = 0; d < int64_t(sizes.size()); ++d)
    if (d != axis)
      first.push_back(d);
  Value keys = b.isString(x) ? b.hostCall("string_rank", x, i64, sizes) : x; // strings in the order of their bytes
  Value sortKeys = keys;
  if (b.isComplex(x)) {
    std::tie(sortKeys, keys) = complexKeys(b, x);
    first.push_back(sizes.size());
  }
  auto toRows = [&](Value v) {
    Sizes all = getSizes(v);
    all.erase(all.begin() + axis);
    return b.reshape(b.transpose(v, first), {n, product(b.getContext(), all)});
  };
  Value rows = toRows(keys), order;
  if (groupOrder != GroupOrder::OfNeighbours)
    order = ArgSortOp::create(b, makeType(i64, {n}), sortKeys == keys ? rows : toRows(sortKeys), /*descending=*/false,
                              /*keyBits=*/{});
  Value starts = findStarts(b, rows, order, equalNaN);
  Value ones = b.convert(starts, i64);
  Value group = ScanOp::create(b, ones.getType(), ReduceKind::Sum, ones, 0, /*exclusive=*/false, /*reverse=*/false);
  group = b.binary<SubOp>(group, 1);
  // The sort is stable: the first row of a group is its first occurrence.
  Groups groups;
  groups.first = emitCompact(b, starts);
  if (order)
    groups.first = GatherOp::create(b, order, groups.first, 0);
  AffineExpr count = getSizes(groups.first)[0];
  groups.counts = emitScatterInto(b, count, group, b.splat(i64, {n}, 1), ReduceKind::Sum);
  if (groupOrder == GroupOrder::OfFirst) {
    Value byFirst = emitArgSort(b, groups.first, 0, count, /*descending=*/false);
    Value rank = emitScatterInto(b, count, byFirst, b.iota(i64, {count}, 0), std::nullopt);
    group = GatherOp::create(b, rank, group, 0);
    groups.counts = GatherOp::create(b, groups.counts, byFirst, 0);
    groups.first = GatherOp::create(b, groups.first, byFirst, 0);
  }
  groups.groupOf = order ? emitScatterInto(b, n, order, group, std::nullopt) : group;
  return groups;
}
