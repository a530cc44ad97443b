//===- ATenOrder.cpp - sorting, searching and counting of ATen ----------------------------------------------------===//
//
// Sorts are stable, whatever the operator asks for: where PyTorch leaves open which of several equal elements is meant,
// it is the first one.
//
// Source: the native function schemas of PyTorch (aten/src/ATen/native/native_functions.yaml).
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ATenMovement.h"
#include "OpRegistry.h"
#include "Selection.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

/// An operand of numbers that have an order, with a dim where it has none.
struct Ordered {
  Value self;
  int64_t axis;
  AffineExpr size;
  bool isNumber;
};
FailureOr<Ordered> readOrdered(Call &c, int64_t dim) {
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  if (!isa<FloatType, IntegerType>(c.b.elementOf(*self)))
    return c.ctx.unsupported("of " + describe(*self) + " is not supported: they have no order");
  FailureOr<int64_t> axis = wrapDim(c.ctx, dim, c.b.rankOf(*self));
  if (failed(axis))
    return failure();
  Ordered x{*self, *axis, {}, c.b.rankOf(*self) == 0};
  if (x.isNumber)
    x.self = c.b.reshape(x.self, {c.b.size(1)});
  x.size = getSizes(x.self)[x.axis];
  return x;
}

Value asGiven(PrimBuilder &b, const Ordered &x, Value v) { return x.isNumber ? b.reshape(v, {}) : v; }

FailureOr<Value> sortOrder(Call &c, const Ordered &x, AffineExpr count, bool descending) {
  return emitArgSort(c.b, x.self, x.axis, count, descending);
}

LogicalResult sort(NodeContext &ctx, bool isArg, int64_t otherwise = -1) {
  Call c(ctx);
  FailureOr<Ordered> x = readOrdered(c, c.integer("dim", otherwise));
  if (failed(x))
    return failure();
  FailureOr<Value> order = sortOrder(c, *x, x->size, c.flag("descending"));
  if (failed(order))
    return failure();
  if (isArg)
    return ctx.result(asGiven(ctx.b, *x, *order));
  (void)ctx.set(1, asGiven(ctx.b, *x, *order));
  return ctx.set(0, asGiven(ctx.b, *x, emitGatherElements(ctx.b, x->self, *order, x->axis)));
}

LogicalResult topK(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Ordered> x = readOrdered(c, c.integer("dim", -1));
  FailureOr<AffineExpr> k = readSize(c, "k", 1, /*bind=*/0);
  if (failed(x) || failed(k))
    return failure();
  if (getConstantSize(*k).value_or(0) < 0)
    return ctx.invalid("argument \"k\" is negative");
  if (failed(ctx.require(CompareKind::LE, *k, x->size, "no more elements than there are along its dim")))
    return failure();
  FailureOr<Value> order = sortOrder(c, *x, *k, c.flag("largest", true));
  if (failed(order))
    return failure();
  const bool asNumber = x->isNumber && isOne(*k);
  auto given = [&](Value v) { return asNumber ? b.reshape(v, {}) : v; };
  (void)ctx.set(1, given(*order));
  return ctx.set(0, given(emitGatherElements(b, x->self, *order, x->axis)));
}

/// The element of each slice whose position along the dim is `at` (dim of size 1), and that position.
LogicalResult setChosen(NodeContext &ctx, const Ordered &x, Value at, bool keeps) {
  PrimBuilder &b = ctx.b;
  Value chosen = emitGatherElements(b, x.self, at, x.axis);
  auto given = [&](Value v) {
    if (x.isNumber)
      return b.reshape(v, {});
    Sizes sizes = getSizes(v);
    if (!keeps)
      sizes.erase(sizes.begin() + x.axis);
    return b.reshape(v, sizes);
  };
  (void)ctx.set(1, given(at));
  return ctx.set(0, given(chosen));
}

LogicalResult kthValue(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Ordered> x = readOrdered(c, c.integer("dim", -1));
  FailureOr<AffineExpr> k = readSize(c, "k", 1, /*bind=*/1);
  if (failed(x) || failed(k))
    return failure();
  if (getConstantSize(*k).value_or(1) < 1)
    return ctx.invalid("argument \"k\" is less than 1");
  if (failed(ctx.require(CompareKind::LE, *k, x->size, "no more elements than there are along its dim")))
    return failure();
  FailureOr<Value> order = sortOrder(c, *x, *k, /*descending=*/false);
  if (failed(order))
    return failure();
  return setChosen(ctx, *x, b.sliceDim(*order, x->axis, simplifySize(*k - 1), b.size(1)), c.flag("keepdim"));
}

Value isNaN(PrimBuilder &b, Value v) {
  return b.isFloat(v) ? Value(IsNanOp::create(b, withElementType(v.getType(), b.getI1Type()), v))
                      : b.splat(b.getI1Type(), getSizes(v), 0);
}

/// The lower one of two elements in the middle; NaN where there is one, or, with `ignoresNaN`, of the others.
LogicalResult median(NodeContext &ctx, bool ignoresNaN) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  const bool isOfAll = !ctx.hasAttr("dim");
  FailureOr<Ordered> x = readOrdered(c, isOfAll ? -1 : c.integer("dim", 0));
  if (failed(x))
    return failure();
  if (isOfAll)
    x = Ordered{flattened(b, x->self), 0, ctx.countElements(x->self), false};
  auto known = getConstantSize(x->size);
  if (known == 0) {
    if (!isOfAll || !b.isFloat(x->self))
      return ctx.invalid("of no elements is not defined: " + describe(x->self));
    return ctx.result(b.scalar(b.elementOf(x->self), std::numeric_limits<double>::quiet_NaN()));
  }
  if (failed(ctx.require(CompareKind::LE, b.size(1), x->size, "an element")))
    return failure();
  FailureOr<Value> order = sortOrder(c, *x, x->size, /*descending=*/false);
  if (failed(order))
    return failure();
  Value at;
  if (!b.isFloat(x->self)) {
    at = b.sliceDim(*order, x->axis, simplifySize((x->size - 1).floorDiv(2)), b.size(1));
  } else {
    // NaNs are sorted behind all numbers.
    Value nans = isNaN(b, x->self);
    Value count = b.reduce(ReduceKind::Sum, b.convert(nans, b.getI64Type()), {x->axis}, /*keepDims=*/true);
    Value last = filled(b, simplifySize(x->size - 1), getSizes(count));
    Value numbers = b.binary<MaxOp>(b.sub(last, count), 0); // less one
    Value middle = b.binary<DivOp>(ignoresNaN ? numbers : last, 2);
    at = emitGatherElements(b, *order, middle, x->axis);
    if (!ignoresNaN) {
      Value place = b.min(b.binary<AddOp>(b.sub(last, count), 1), last);
      Value firstNaN = emitGatherElements(b, *order, place, x->axis);
      at = b.select(b.compare(CompareKind::GT, count, 0), firstNaN, at);
    }
  }
  if (!isOfAll)
    return setChosen(ctx, *x, at, c.flag("keepdim"));
  return ctx.result(b.reshape(emitGatherElements(b, x->self, at, 0), {}));
}

/// The most frequent element, of several the smallest; its last position.
LogicalResult mode(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  Type i64 = b.getI64Type();
  FailureOr<Ordered> x = readOrdered(c, c.integer("dim", -1));
  if (failed(x))
    return failure();
  if (failed(ctx.require(CompareKind::LE, b.size(1), x->size, "an element")))
    return failure();
  FailureOr<Value> order = sortOrder(c, *x, x->size, /*descending=*/false);
  if (failed(order))
    return failure();
  Value sorted = emitGatherElements(b, x->self, *order, x->axis), at = b.iota(i64, getSizes(sorted), x->axis);
  Value before = emitGatherElements(b, sorted, b.binary<MaxOp>(b.binary<SubOp>(at, 1), 0), x->axis);
  // How many equal ones stand before each, itself included: the longest run ends where that is largest first.
  Value begin = b.select(b.compare(CompareKind::NE, sorted, before), at, b.splatLike(at, 0));
  Value start = ScanOp::create(b, begin.getType(), ReduceKind::Max, begin, x->axis, /*exclusive=*/false,
                               /*reverse=*/false);
  Sizes reduced = getSizes(at), kept = reduced;
  reduced.erase(reduced.begin() + x->axis);
  kept[x->axis] = b.size(1);
  Value end = ArgReduceOp::create(b, makeType(i64, reduced), ReduceKind::Max, b.sub(at, start), x->axis,
                                  /*lastIndex=*/false);
  return setChosen(ctx, *x, emitGatherElements(b, *order, b.reshape(end, kept), x->axis), c.flag("keepdim"));
}

/// Between neighbours in the order of each slice, at q of the way; NaN where there is one, or of the others.
LogicalResult quantile(NodeContext &ctx, bool ignoresNaN) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  Type i64 = b.getI64Type();
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  Type type = b.elementOf(*self);
  if (!type.isF32() && !type.isF64())
    return ctx.invalid("takes floats of 32 or 64 bits, but got " + describe(*self));
  Value v = *self;
  const int64_t rank = b.rankOf(v);
  Sizes rest; // of the result, behind q's dim
  if (ctx.hasAttr("dim")) {
    FailureOr<int64_t> axis = wrapDim(ctx, c.integer("dim", 0), rank);
    if (failed(axis))
      return failure();
    rest = getSizes(v);
    if (rank == 0) {
      v = b.reshape(v, {b.size(1)});
    } else {
      if (c.flag("keepdim"))
        rest[*axis] = b.size(1);
      else
        rest.erase(rest.begin() + *axis);
      v = moveDim(b, v, *axis, rank - 1);
    }
  } else {
    if (c.flag("keepdim"))
      rest.assign(rank, b.size(1));
    v = flattened(b, v);
  }
  FailureOr<Value> q = c.as("q", type);
  if (failed(q))
    return failure();
  if (b.rankOf(*q) > 1)
    return ctx.invalid("argument \"q\" must be a number or a vector, but is " + describe(*q));
  const bool isList = b.rankOf(*q) == 1;
  Sizes lead = getSizes(v);
  AffineExpr n = lead.pop_back_val(), count = isList ? getSizes(*q)[0] : b.size(1);
  if (failed(ctx.require(CompareKind::LE, b.size(1), n, "an element")))
    return failure();
  AffineExpr rows = product(b.getContext(), lead);
  v = b.reshape(v, {rows, n});
  Value order = emitArgSort(b, v, 1, n, /*descending=*/false), sorted = emitGatherElements(b, v, order, 1);
  const Sizes out{rows, count};
  Value nans = b.reduce(ReduceKind::Sum, b.convert(isNaN(b, v), i64), {1}, /*keepDims=*/true);
  Value last = b.broadcastTo(filled(b, simplifySize(n - 1), getSizes(nans)), getSizes(nans));
  Value span = ignoresNaN ? b.binary<MaxOp>(b.sub(last, nans), 0) : last;
  Value at = b.mul(b.broadcastTo(b.convert(span, type), out), b.broadcastTo(b.reshape(*q, {b.size(1), count}), out));
  if (!ignoresNaN)
    at = b.select(b.broadcastTo(b.compare(CompareKind::GT, nans, 0), out), b.broadcastTo(b.convert(last, type), out),
                  at);
  std::string word = ctx.getString("interpolation", "linear");
  auto pick = [&](Value place) { return emitGatherElements(b, sorted, b.convert(place, i64), 1); };
  Value result;
  if (word == "lower") {
    result = pick(b.unary<FloorOp>(at));
  } else if (word == "higher") {
    result = pick(b.unary<CeilOp>(at));
  } else if (word == "nearest") {
    result = pick(b.unary<RoundOp>(at));
  } else if (word == "linear" || word == "midpoint") {
    Value below = b.unary<FloorOp>(at), weight = b.sub(at, below);
    if (word == "midpoint")
      weight = b.splatLike(at, 0.5);
    Value x = pick(below), y = pick(b.unary<CeilOp>(at)), difference = b.sub(y, x);
    Value fromLow = b.add(x, b.mul(weight, difference));
    Value fromHigh = b.sub(y, b.mul(difference, b.sub(b.splatLike(weight, 1), weight)));
    result = b.select(b.compare(CompareKind::LT, weight, 0.5), fromLow, fromHigh);
  } else {
    return ctx.invalid("argument \"interpolation\" is \"" + word +
                       "\"; it may be \"linear\", \"lower\", \"higher\", \"midpoint\" or \"nearest\"");
  }
  result = b.transpose(result, {1, 0});
  if (isList)
    rest.insert(rest.begin(), count);
  return ctx.result(b.reshape(result, rest));
}

//===--- groups ---------------------------------------------------------------------------------------------------===//

/// Of all elements, or of the slices along a dim.
LogicalResult unique(NodeContext &ctx, GroupOrder order) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  Value v = *self;
  const Sizes sizes = getSizes(v);
  int64_t axis = 0;
  const bool isOfAll = !ctx.hasAttr("dim");
  if (isOfAll) {
    v = flattened(b, v);
  } else {
    FailureOr<int64_t> given = ctx.axis(c.integer("dim", 0), sizes.size());
    if (failed(given))
      return failure();
    axis = *given;
  }
  Groups groups = findGroups(b, v, axis, order, /*equalNaN=*/false);
  (void)ctx.set(0, GatherOp::create(b, v, groups.first, axis));
  // What is not asked for has no elements, or, along a dim, is there all the same: as the model declares it.
  auto isWanted = [&](size_t i, StringRef flag) {
    auto declared = dyn_cast<RankedTensorType>(ctx.node()->getResult(i).getType());
    return c.flag(flag) || (declared ? declared.getRank() != 1 || declared.getDimSize(0) != 0 : !isOfAll);
  };
  Value none = b.splat(b.getI64Type(), {b.size(0)}, 0);
  Value inverse = isOfAll ? b.reshape(groups.groupOf, sizes) : groups.groupOf;
  if (ctx.numResults() > 1)
    (void)ctx.set(1, isWanted(1, "return_inverse") ? inverse : none);
  if (ctx.numResults() > 2)
    (void)ctx.set(2, isWanted(2, "return_counts") ? groups.counts : none);
  return success();
}

/// How many values of the sorted `boundaries` [.., N] stand before each of `values` [.., M] (of a vector: of any
/// sizes); `right`: or are equal to it.
Value searchSorted(PrimBuilder &b, Value boundaries, Value values, bool right) {
  Type i64 = b.getI64Type();
  const int64_t rank = b.rankOf(boundaries);
  AffineExpr n = getSizes(boundaries)[rank - 1];
  const Sizes out = getSizes(values);
  auto stands = [&](Value boundary, Value value) {
    return b.unary<NotOp>(b.compare(right ? CompareKind::GT : CompareKind::GE, boundary, value));
  };
  auto known = getConstantSize(n);
  if (known == 0)
    return b.splat(i64, out, 0);
  if (!known) {
    Sizes wide = out;
    wide.push_back(n);
    SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, out.size()));
    Value each = b.broadcastInDims(values, wide, dims);
    dims.back() = out.size();
    Value all = rank == 1 ? b.broadcastTo(boundaries, wide) : b.broadcastInDims(boundaries, wide, dims);
    return b.reduce(ReduceKind::Sum, b.convert(stands(all, each), i64), {int64_t(out.size())});
  }
  // Halving as PyTorch does it, step by step: with NaNs, which have no place, it ends where PyTorch does.
  Value start = b.splat(i64, out, 0), end = b.splat(i64, out, double(*known));
  for (int64_t left = *known; left > 0; left /= 2) {
    Value middle = b.add(start, b.binary<DivOp>(b.sub(end, start), 2));
    Value at = b.binary<MinOp>(middle, double(*known - 1));
    Value boundary =
        rank == 1 ? Value(GatherOp::create(b, boundaries, at, 0)) : emitGatherElements(b, boundaries, at, rank - 1);
    Value isOpen = b.compare(CompareKind::LT, start, end), isBehind = stands(boundary, values);
    Value isBefore = b.binary<AndOp>(isOpen, b.unary<NotOp>(isBehind));
    start = b.select(b.binary<AndOp>(isOpen, isBehind), b.binary<AddOp>(middle, 1), start);
    end = b.select(isBefore, middle, end);
  }
  return start;
}

LogicalResult search(NodeContext &ctx, StringRef boundariesName) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Type> type = c.commonType({boundariesName, "self"});
  if (failed(type))
    return failure();
  if (isa<ComplexType>(*type))
    return ctx.unsupported("of complex numbers is not supported: they have no order");
  FailureOr<Value> boundaries = c.as(boundariesName, *type), values = c.as("self", *type);
  if (failed(boundaries) || failed(values))
    return failure();
  bool right = c.flag("right");
  std::string side = ctx.getString("side", "");
  if (side != "" && side != "left" && side != "right")
    return ctx.invalid("argument \"side\" is \"" + side + "\"; it may be \"left\" or \"right\"");
  right |= side == "right";
  const int64_t rank = b.rankOf(*boundaries);
  if (rank < 1)
    return ctx.invalid("argument \"" + boundariesName + "\" must have a dim");
  if (Value sorter = c.tensor("sorter"))
    *boundaries = emitGatherElements(b, *boundaries, sorter, rank - 1);
  if (rank > 1) {
    if (b.rankOf(*values) != rank)
      return ctx.invalid("sorted_sequence " + describe(*boundaries) + " and values " + describe(*values) +
                         " differ in rank");
    Sizes same = getSizes(*boundaries);
    same.back() = getSizes(*values).back();
    values = ctx.castSizes(*values, same);
    if (failed(values))
      return failure();
  }
  const Sizes out = getSizes(*values);
  Value v = out.empty() ? b.reshape(*values, {b.size(1)}) : *values;
  Value count = b.reshape(searchSorted(b, *boundaries, v, right), out);
  return ctx.result(c.flag("out_int32") ? b.convert(count, b.getI32Type()) : count);
}

LogicalResult isIn(NodeContext &ctx, StringRef elementsName, StringRef testName) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Type> type = c.commonType({elementsName, testName});
  if (failed(type))
    return failure();
  if (isa<ComplexType>(*type))
    return ctx.unsupported("of complex numbers is not supported");
  FailureOr<Value> elements = c.as(elementsName, *type), tests = c.as(testName, *type);
  if (failed(elements) || failed(tests))
    return failure();
  Sizes wide = getSizes(*elements);
  const int64_t rank = wide.size();
  Value list = flattened(b, *tests);
  wide.push_back(getSizes(list)[0]);
  Value each = b.broadcastInDims(*elements, wide, llvm::to_vector(llvm::seq<int64_t>(0, rank)));
  Value found =
      b.reduce(ReduceKind::Or, b.compare(CompareKind::EQ, each, b.broadcastInDims(list, wide, {rank})), {rank});
  return ctx.result(c.flag("invert") ? b.unary<NotOp>(found) : found);
}

//===--- counts ---------------------------------------------------------------------------------------------------===//

LogicalResult binCount(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  Type i64 = b.getI64Type();
  FailureOr<Value> self = c.required("self");
  FailureOr<AffineExpr> least = readSize(c, "minlength", 0, /*bind=*/0);
  if (failed(self) || failed(least))
    return failure();
  if (b.rankOf(*self) != 1 || !isa<IntegerType>(b.elementOf(*self)))
    return ctx.invalid("takes a vector of integers, but got " + describe(*self));
  Value at = b.convert(*self, i64), weights = c.tensor("weights");
  Value updates = b.splatLike(at, 1);
  if (weights) {
    FailureOr<Value> same = ctx.castSizes(weights, getSizes(at));
    if (failed(same))
      return failure();
    updates = b.elementOf(*same).isF32() ? *same : b.convert(*same, b.getF64Type());
  }
  if (getConstantSize(getSizes(at)[0]) == 0)
    return ctx.result(b.splat(i64, {*least}, 0));
  Value most = b.binary<AddOp>(b.reduce(ReduceKind::Max, at, {0}), 1);
  AffineExpr bins = b.bindSymbol("bins", b.max(most, b.sizeValue(*least)));
  return ctx.result(emitScatterInto(b, bins, at, updates, ReduceKind::Sum));
}

/// Counts in bins of equal width between `min` and `max`, or between the least and the largest element if these are
/// equal.
LogicalResult histc(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  Type type = b.elementOf(*self);
  const int64_t bins = c.integer("bins", 100);
  if (!b.isFloat(*self) || bins < 1 || bins > (int64_t(1) << 31))
    return ctx.invalid("takes floats and 1 bin or more, but got " + describe(*self) + " and " + Twine(bins));
  Value v = flattened(b, *self);
  const Sizes sizes = getSizes(v);
  FailureOr<Value> low = c.as("min", type, 0.0), high = c.as("max", type, 0.0);
  if (failed(low) || failed(high))
    return failure();
  if (getConstantSize(sizes[0]) == 0)
    return ctx.result(b.splat(type, {b.size(bins)}, 0));
  auto same = [&](Value x, Value y) { return b.compare(CompareKind::EQ, x, y); };
  Value isOpen = same(*low, *high);
  Value least = b.select(isOpen, b.reduce(ReduceKind::Min, v, {0}), *low),
        most = b.select(isOpen, b.reduce(ReduceKind::Max, v, {0}), *high);
  Value isFlat = same(least, most);
  least = b.select(isFlat, b.binary<SubOp>(least, 1), least);
  most = b.select(isFlat, b.binary<AddOp>(most, 1), most);
  Value from = b.broadcastTo(least, sizes), to = b.broadcastTo(most, sizes);
  Value isInside = b.binary<AndOp>(b.compare(CompareKind::GE, v, from), b.compare(CompareKind::LE, v, to));
  Value place = b.div(b.binary<MulOp>(b.sub(v, from), double(bins)), b.sub(to, from));
  place = b.binary<MinOp>(b.binary<MaxOp>(b.convert(place, b.getI64Type()), 0), double(bins - 1));
  place = b.select(isInside, place, b.splatLike(place, double(bins)));
  Value counts = emitScatterInto(b, b.size(bins + 1), place, b.splat(b.accumulatorOf(type), sizes, 1), ReduceKind::Sum);
  return ctx.result(b.convert(b.sliceDim(counts, 0, b.size(0), b.size(bins)), type));
}

} // namespace

void tc::populateATenOrder(OpRegistrar &onOp) {
  auto onAll = [&](ArrayRef<StringRef> types, const NodeHandler &handler, size_t minOperands = 1) {
    for (StringRef type : types)
      onOp(type, /*sinceVersion=*/1, handler, minOperands);
  };
  auto on = [&](StringRef type, const NodeHandler &handler, size_t minOperands = 1) {
    onAll({type}, handler, minOperands);
  };
  onAll({"sort.default", "sort.stable"}, [](NodeContext &ctx) { return sort(ctx, /*isArg=*/false); });
  onAll({"argsort.default", "argsort.stable"}, [](NodeContext &ctx) { return sort(ctx, /*isArg=*/true); });
  on("msort.default", [](NodeContext &ctx) { return sort(ctx, /*isArg=*/false, /*otherwise=*/0); });
  on("topk.default", topK);
  on("kthvalue.default", kthValue);
  onAll({"median.default", "median.dim"}, [](NodeContext &ctx) { return median(ctx, /*ignoresNaN=*/false); });
  onAll({"nanmedian.default", "nanmedian.dim"}, [](NodeContext &ctx) { return median(ctx, /*ignoresNaN=*/true); });
  on("mode.default", mode);
  onAll({"quantile.default", "quantile.scalar"}, [](NodeContext &ctx) { return quantile(ctx, /*ignoresNaN=*/false); });
  onAll({"nanquantile.default", "nanquantile.scalar"},
        [](NodeContext &ctx) { return quantile(ctx, /*ignoresNaN=*/true); });
  onAll({"_unique2.default", "_unique.default", "unique_dim.default"},
        [](NodeContext &ctx) { return unique(ctx, GroupOrder::OfValues); });
  onAll({"unique_consecutive.default", "unique_dim_consecutive.default"},
        [](NodeContext &ctx) { return unique(ctx, GroupOrder::OfNeighbours); });
  onAll({"searchsorted.Tensor", "searchsorted.Scalar"},
        [](NodeContext &ctx) { return search(ctx, "sorted_sequence"); });
  onAll({"bucketize.Tensor", "bucketize.Scalar"}, [](NodeContext &ctx) { return search(ctx, "boundaries"); });
  on("isin.Tensor_Tensor", [](NodeContext &ctx) { return isIn(ctx, "elements", "test_elements"); }, 2);
  on("isin.Tensor_Scalar", [](NodeContext &ctx) { return isIn(ctx, "elements", "test_element"); });
  on("isin.Scalar_Tensor", [](NodeContext &ctx) { return isIn(ctx, "element", "test_elements"); });
  on("bincount.default", binCount);
  on("histc.default", histc);
}
