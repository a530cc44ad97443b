//===- ATenIndexing.cpp - gathers, scatters and masks of ATen -----------------------------------------------------===//
//
// Indices that are out of range are those of ONNX's Gather: constant ones are refused, negative ones count from the
// end, and of the rest the nearest element is taken, or --check-bounds refuses the run.
//
// Source: the native function schemas of PyTorch (aten/src/ATen/native/native_functions.yaml).
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ATenMovement.h"
#include "OpRegistry.h"
#include "Selection.h"

#include "llvm/ADT/StringSwitch.h"

#include <cmath>

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

/// Indices as prim takes them.
FailureOr<Value> readIndex(Call &c, StringRef name) {
  FailureOr<Value> index = c.required(name);
  if (failed(index))
    return failure();
  auto type = dyn_cast<IntegerType>(c.b.elementOf(*index));
  if (!type || type.getWidth() == 1)
    return c.ctx.invalid("argument \"" + name + "\" must be a tensor of integers, but is " + describe(*index));
  return type.getWidth() == 32 && !type.isUnsigned() ? *index : c.b.convert(*index, c.b.getI64Type());
}

bool isMask(PrimBuilder &b, Value v) {
  auto type = dyn_cast<IntegerType>(b.elementOf(v));
  return type && (type.getWidth() == 1 || (type.getWidth() == 8 && type.isUnsigned()));
}

ReduceKindAttr asAttr(PrimBuilder &b, std::optional<ReduceKind> kind) {
  return kind ? ReduceKindAttr::get(b.getContext(), *kind) : ReduceKindAttr();
}

/// With a dim where it has none.
Value atLeast1(PrimBuilder &b, Value v) { return b.rankOf(v) == 0 ? b.reshape(v, {b.size(1)}) : v; }

//===--- index and index_put: NumPy's rule ------------------------------------------------------------------------===//

/// The operand of an indexing and its indices, one for each dim; null where a dim is taken whole.
struct Indexing {
  Value self;
  SmallVector<Value> indices;
  /// Sizes of the indices, broadcast together.
  Sizes shape;
  /// Dims that are indexed, and those that are not.
  SmallVector<int64_t> indexed, whole;
  /// Whether those that are indexed are neighbours: the dims of the indices stand in their place then, else in front.
  bool areNeighbours = true;
};

/// A mask stands for as many dims as it has, which become one here.
FailureOr<Indexing> readIndexing(Call &c) {
  NodeContext &ctx = c.ctx;
  PrimBuilder &b = c.b;
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  Indexing indexing;
  Sizes in = getSizes(*self), merged;
  size_t at = 0;
  const int64_t count = ctx.getInt("indices.count", 0);
  for (int64_t i = 0; i < count; ++i) {
    Value index = c.tensor(("indices." + Twine(i)).str());
    const int64_t takes = index && isMask(b, index) ? b.rankOf(index) : 1;
    if (at + takes > in.size())
      return ctx.invalid("has more indices than the operand " + describe(*self) + " has dims");
    if (!index) {
      merged.push_back(in[at++]);
      indexing.indices.push_back({});
      continue;
    }
    if (isMask(b, index)) {
      Sizes own(in.begin() + at, in.begin() + at + takes);
      FailureOr<Value> same = ctx.castSizes(index, own);
      if (failed(same))
        return failure();
      Value flat = flattened(b, *same);
      merged.push_back(product(b.getContext(), own));
      indexing.indices.push_back(
          emitCompact(b, b.elementOf(flat).isInteger(1) ? flat : b.compare(CompareKind::NE, flat, 0)));
      at += takes;
      continue;
    }
    FailureOr<Value> numbers = readIndex(c, ("indices." + Twine(i)).str());
    if (failed(numbers) || failed(requireInside(ctx, *numbers, in[at])))
      return failure();
    merged.push_back(in[at++]);
    indexing.indices.push_back(*numbers);
  }
  merged.append(in.begin() + at, in.end());
  indexing.indices.resize(merged.size());
  indexing.self = b.reshape(*self, merged);
  SmallVector<Value> given;
  for (auto [d, index] : llvm::enumerate(indexing.indices)) {
    if (!index) {
      indexing.whole.push_back(d);
      continue;
    }
    indexing.indexed.push_back(d);
    given.push_back(index);
  }
  if (given.empty())
    return ctx.invalid("has no indices");
  if (given.size() > 1) {
    for (Value &v : given)
      v = b.convert(v, b.getI64Type());
    if (failed(ctx.broadcastTogether(given)))
      return failure();
  }
  for (auto [d, v] : llvm::zip_equal(indexing.indexed, given))
    indexing.indices[d] = v;
  indexing.shape = getSizes(given.front());
  indexing.areNeighbours = indexing.indexed.back() - indexing.indexed.front() + 1 == int64_t(indexing.indexed.size());
  return indexing;
}

LogicalResult indexWith(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Indexing> read = readIndexing(c);
  if (failed(read))
    return failure();
  Indexing &x = *read;
  Sizes sizes = getSizes(x.self);
  const int64_t first = x.indexed.front(), count = x.indexed.size();
  if (count == 1)
    return ctx.result(GatherOp::create(b, x.self, x.indices[first], first));
  if (!x.areNeighbours || first == 0) {
    SmallVector<int64_t> order(x.indexed);
    order.append(x.whole.begin(), x.whole.end());
    SmallVector<Value> columns;
    const int64_t rank = x.shape.size();
    for (int64_t d : x.indexed)
      columns.push_back(b.unsqueeze(x.indices[d], rank));
    Sizes out = x.shape;
    for (int64_t d : x.whole)
      out.push_back(sizes[d]);
    return ctx.result(GatherNDOp::create(b, makeType(b.elementOf(x.self), out), b.transpose(x.self, order),
                                         b.concat(columns, rank), 0));
  }
  // Neighbours behind other dims: their places in one dim.
  SmallVector<Value> given;
  for (int64_t d : x.indexed)
    given.push_back(x.indices[d]);
  SizesRef named = SizesRef(sizes).slice(first, count);
  Value place = emitPlaces(b, given, named, x.shape);
  Sizes joined(sizes.begin(), sizes.begin() + first);
  joined.push_back(product(b.getContext(), named));
  joined.append(sizes.begin() + first + count, sizes.end());
  return ctx.result(GatherOp::create(b, b.reshape(x.self, joined), place, first));
}

/// What values are combined by: bool's sum and maximum is or, its product and minimum and.
ReduceKind kindFor(PrimBuilder &b, Value v, ReduceKind kind) {
  if (!b.elementOf(v).isInteger(1))
    return kind;
  return kind == ReduceKind::Sum || kind == ReduceKind::Max ? ReduceKind::Or : ReduceKind::And;
}

LogicalResult indexPut(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> values = c.required("values"), self = c.required("self");
  if (failed(values) || failed(self))
    return failure();
  if (b.elementOf(*values) != b.elementOf(*self))
    return ctx.invalid("values and the operand differ in element type: " + describe(*values) + " and " +
                       describe(*self));
  const bool accumulates = c.flag("accumulate");
  // One number where a mask is true.
  if (ctx.getInt("indices.count", 0) == 1)
    if (Value mask = c.tensor("indices.0"); mask && b.elementOf(mask).isInteger(1) && !accumulates &&
                                            b.rankOf(mask) <= b.rankOf(*self) &&
                                            llvm::all_of(getSizes(*values), isOne)) {
      Sizes sizes = getSizes(*self), own(sizes.begin(), sizes.begin() + b.rankOf(mask));
      FailureOr<Value> same = ctx.castSizes(mask, own);
      if (failed(same))
        return failure();
      Value wide = b.broadcastInDims(*same, sizes, llvm::to_vector(llvm::seq<int64_t>(0, own.size())));
      return ctx.result(b.select(wide, b.broadcastTo(b.reshape(*values, {}), sizes), *self));
    }
  FailureOr<Indexing> read = readIndexing(c);
  if (failed(read))
    return failure();
  Indexing &x = *read;
  Sizes sizes = getSizes(x.self);
  const int64_t rank = x.shape.size(), first = x.areNeighbours ? x.indexed.front() : 0;
  // What index gives of the operand has these sizes.
  Sizes taken;
  for (int64_t d : x.whole)
    taken.push_back(sizes[d]);
  taken.insert(taken.begin() + first, x.shape.begin(), x.shape.end());
  // A list of more dims than that begins with ones.
  Sizes have = getSizes(*values);
  while (have.size() > taken.size() && isOne(have.front()))
    have.erase(have.begin());
  FailureOr<Value> wide = ctx.broadcastOnto(b.reshape(*values, have), taken);
  if (failed(wide))
    return failure();
  SmallVector<int64_t> toFront, order(x.indexed), back(sizes.size());
  for (int64_t d = first; d < first + rank; ++d)
    toFront.push_back(d);
  for (int64_t d = 0; d < int64_t(taken.size()); ++d)
    if (d < first || d >= first + rank)
      toFront.push_back(d);
  order.append(x.whole.begin(), x.whole.end());
  for (auto [i, d] : llvm::enumerate(order))
    back[d] = i;
  SmallVector<Value> columns;
  for (int64_t d : x.indexed)
    columns.push_back(b.unsqueeze(x.indices[d], rank));
  Value source = b.transpose(x.self, order);
  std::optional<ReduceKind> kind;
  if (accumulates)
    kind = kindFor(b, source, ReduceKind::Sum);
  Value put = ScatterNDOp::create(b, source.getType(), source, b.concat(columns, rank), b.transpose(*wide, toFront),
                                  asAttr(b, kind));
  return ctx.result(b.reshape(b.transpose(put, back), getSizes(*self)));
}

//===--- gathers --------------------------------------------------------------------------------------------------===//

LogicalResult indexSelect(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.required("self"), index = readIndex(c, "index");
  if (failed(self) || failed(index))
    return failure();
  FailureOr<int64_t> axis = wrapDim(ctx, c.integer("dim", 0), b.rankOf(*self));
  if (failed(axis))
    return failure();
  if (b.rankOf(*index) > 1)
    return ctx.invalid("argument \"index\" must be a vector, but is " + describe(*index));
  Value source = atLeast1(b, *self), list = atLeast1(b, *index);
  if (failed(requireInside(ctx, list, getSizes(source)[*axis])))
    return failure();
  Value taken = GatherOp::create(b, source, list, *axis);
  return ctx.result(b.rankOf(*self) == 0 ? b.reshape(taken, {}) : taken);
}

/// source[.. index ..] along `axis`, of operands of one rank.
FailureOr<Value> gatherAlong(NodeContext &ctx, Value source, Value index, int64_t axis) {
  Sizes in = getSizes(source), of = getSizes(index);
  if (in.size() != of.size())
    return ctx.invalid("index " + describe(index) + " and operand " + describe(source) + " differ in rank");
  for (size_t i = 0; i < in.size(); ++i)
    if (int64_t(i) != axis && !llvm::any_of(of, [](AffineExpr e) { return getConstantSize(e) == 0; }) &&
        failed(ctx.require(CompareKind::LE, of[i], in[i], "indices that are no larger in dim " + Twine(i))))
      return failure();
  if (failed(requireInside(ctx, index, in[axis])))
    return failure();
  return emitGatherElements(ctx.b, source, index, axis);
}

bool isEmpty(Value v) {
  return llvm::any_of(getSizes(v), [](AffineExpr e) { return getConstantSize(e) == 0; });
}

LogicalResult gather(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.required("self"), index = readIndex(c, "index");
  if (failed(self) || failed(index))
    return failure();
  FailureOr<int64_t> axis = wrapDim(ctx, c.integer("dim", 0), b.rankOf(*self));
  if (failed(axis))
    return failure();
  if (isEmpty(*index))
    return ctx.result(b.splat(b.elementOf(*self), getSizes(*index), 0));
  FailureOr<Value> taken = gatherAlong(ctx, atLeast1(b, *self), atLeast1(b, *index), *axis);
  return failed(taken) ? failure() : ctx.result(b.reshape(*taken, getSizes(*index)));
}

LogicalResult take(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.required("self"), index = readIndex(c, "index");
  if (failed(self) || failed(index))
    return failure();
  Value flat = flattened(b, *self);
  if (failed(requireInside(ctx, *index, getSizes(flat)[0])))
    return failure();
  return ctx.result(GatherOp::create(b, flat, *index, 0));
}

LogicalResult takeAlongDim(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.required("self"), index = readIndex(c, "indices");
  if (failed(self) || failed(index))
    return failure();
  if (!ctx.hasAttr("dim")) {
    FailureOr<Value> taken = gatherAlong(ctx, flattened(b, *self), flattened(b, *index), 0);
    return failed(taken) ? failure() : ctx.result(*taken);
  }
  FailureOr<int64_t> axis = wrapDim(ctx, c.integer("dim", 0), b.rankOf(*self));
  if (failed(axis))
    return failure();
  Value source = atLeast1(b, *self), list = atLeast1(b, *index);
  if (b.rankOf(source) != b.rankOf(list))
    return ctx.invalid("indices " + describe(*index) + " and operand " + describe(*self) + " differ in rank");
  Sizes a = getSizes(source), z = getSizes(list);
  AffineExpr own = a[*axis], wanted = z[*axis];
  a[*axis] = z[*axis] = b.size(1);
  FailureOr<Sizes> common = ctx.broadcastSizes({a, z});
  if (failed(common))
    return failure();
  (*common)[*axis] = own;
  source = b.broadcastTo(source, *common);
  (*common)[*axis] = wanted;
  FailureOr<Value> taken = gatherAlong(ctx, source, b.broadcastTo(list, *common), *axis);
  return failed(taken) ? failure() : ctx.result(b.rankOf(*index) == 0 ? b.reshape(*taken, {}) : *taken);
}

//===--- scatters -------------------------------------------------------------------------------------------------===//

/// Numbers that change nothing when they are combined.
Value neutral(PrimBuilder &b, Value like, ReduceKind kind) {
  Type type = b.elementOf(like);
  Sizes sizes = getSizes(like);
  if (kind == ReduceKind::Sum || kind == ReduceKind::Or)
    return b.splat(type, sizes, 0);
  if (kind == ReduceKind::Prod || kind == ReduceKind::And)
    return b.splat(type, sizes, 1);
  const bool isMax = kind == ReduceKind::Max;
  TypedAttr value;
  if (auto integer = dyn_cast<IntegerType>(type)) {
    const unsigned width = integer.getWidth();
    APInt bound = integer.isUnsigned() ? (isMax ? APInt::getMinValue(width) : APInt::getMaxValue(width))
                                       : (isMax ? APInt::getSignedMinValue(width) : APInt::getSignedMaxValue(width));
    value = IntegerAttr::get(type, bound);
  } else {
    value = b.getFloatAttr(cast<FloatType>(type), isMax ? -INFINITY : INFINITY);
  }
  return SplatOp::create(b, makeType(type, sizes), value);
}

/// A scatter of either form; the last one wins, or `kind` combines them, with what was there where `includesSelf`.
/// `isMean`: the sum by how many there are.
FailureOr<Value> scatterBy(NodeContext &ctx, Value self, Value updates, std::optional<ReduceKind> kind, bool isMean,
                           bool includesSelf, llvm::function_ref<Value(Value, Value, std::optional<ReduceKind>)> put) {
  PrimBuilder &b = ctx.b;
  if (kind && b.isComplex(self) && *kind != ReduceKind::Sum)
    return ctx.unsupported("of complex numbers is not supported with this reduction; supported is the sum");
  if (!kind)
    return put(self, updates, kind);
  const ReduceKind by = kindFor(b, self, *kind);
  Value base = includesSelf ? self : put(self, neutral(b, updates, by), std::nullopt);
  Value result = put(base, updates, by);
  if (!isMean)
    return result;
  if (b.isComplex(self) || b.elementOf(self).isInteger(1))
    return ctx.unsupported("of " + describe(self) +
                           " is not supported with the mean; supported are floats and integers");
  // Counts in a type that holds them.
  Type type = b.elementOf(self), counter = b.isFloat(self) ? b.accumulatorOf(type) : b.getI64Type();
  Value counts = b.splat(counter, getSizes(self), 1);
  if (!includesSelf)
    counts = put(counts, b.splat(counter, getSizes(updates), 0), std::nullopt);
  counts = put(counts, b.splat(counter, getSizes(updates), 1), ReduceKind::Sum);
  counts = b.binary<MaxOp>(counts, 1);
  Value sum = b.convert(result, counter), mean = b.div(sum, counts);
  if (!b.isFloat(self)) // rounded down
    mean = b.sub(mean, b.convert(b.binary<AndOp>(b.compare(CompareKind::LT, sum, 0),
                                                 b.compare(CompareKind::NE, b.mul(mean, counts), sum)),
                                 counter));
  return b.convert(mean, type);
}

struct Reduction {
  std::optional<ReduceKind> kind;
  bool isMean = false;
};
FailureOr<Reduction> readReduction(NodeContext &ctx) {
  std::string word = ctx.getString("reduce", "");
  auto kind = llvm::StringSwitch<std::optional<ReduceKind>>(word)
                  .Cases({"sum", "add", "mean"}, ReduceKind::Sum)
                  .Cases({"prod", "multiply"}, ReduceKind::Prod)
                  .Case("amax", ReduceKind::Max)
                  .Case("amin", ReduceKind::Min)
                  .Default(std::nullopt);
  if (!kind)
    return ctx.invalid("argument \"reduce\" is \"" + word +
                       "\"; it may be \"sum\", \"prod\", \"mean\", \"amax\" or \"amin\", of scatter.reduce \"add\" or "
                       "\"multiply\"");
  return Reduction{kind, word == "mean"};
}

/// The scatters along a dim: index and updates have one element for each that is written.
LogicalResult scatter(NodeContext &ctx, FailureOr<Reduction> by, bool includesSelf = true) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.required("self"), index = readIndex(c, "index");
  if (failed(self) || failed(index) || failed(by))
    return failure();
  FailureOr<int64_t> axis = wrapDim(ctx, c.integer("dim", 0), b.rankOf(*self));
  if (failed(axis))
    return failure();
  if (isEmpty(*index))
    return ctx.result(*self);
  Value target = atLeast1(b, *self), places = atLeast1(b, *index), updates;
  Sizes in = getSizes(target), of = getSizes(places);
  if (in.size() != of.size())
    return ctx.invalid("index " + describe(*index) + " and operand " + describe(*self) + " differ in rank");
  if (Value src = c.tensor("src")) {
    if (b.elementOf(src) != b.elementOf(*self))
      return ctx.invalid("src and the operand differ in element type: " + describe(src) + " and " + describe(*self));
    updates = atLeast1(b, src);
    if (b.rankOf(updates) != b.rankOf(places))
      return ctx.invalid("index " + describe(*index) + " and src " + describe(src) + " differ in rank");
    // The first elements of src, as many as there are indices.
    for (auto [i, size] : llvm::enumerate(getSizes(updates)))
      if (failed(ctx.require(CompareKind::LE, of[i], size, "a src that is no smaller than index in dim " + Twine(i))))
        return failure();
    updates = b.slice(updates, Sizes(of.size(), b.size(0)), SmallVector<int64_t>(of.size(), 1), of);
  } else {
    FailureOr<Value> number = c.as("value", b.elementOf(*self));
    if (failed(number))
      return failure();
    updates = b.broadcastTo(*number, of);
  }
  for (size_t i = 0; i < in.size(); ++i)
    if (int64_t(i) != *axis &&
        failed(ctx.require(CompareKind::LE, of[i], in[i], "indices that are no larger in dim " + Twine(i))))
      return failure();
  if (failed(requireInside(ctx, places, in[*axis])))
    return failure();
  FailureOr<Value> result =
      scatterBy(ctx, target, updates, by->kind, by->isMean, includesSelf,
                [&, at = *axis](Value base, Value values, std::optional<ReduceKind> kind) -> Value {
                  return ScatterElementsOp::create(b, base.getType(), base, places, values, at, asAttr(b, kind));
                });
  return failed(result) ? failure() : ctx.result(b.reshape(*result, getSizes(*self)));
}

/// index_add and its kin: index is a list of slices along a dim.
LogicalResult scatterSlices(NodeContext &ctx, FailureOr<Reduction> by, bool includesSelf = true) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.required("self"), index = readIndex(c, "index");
  if (failed(self) || failed(index) || failed(by))
    return failure();
  FailureOr<int64_t> axis = wrapDim(ctx, c.integer("dim", 0), b.rankOf(*self));
  if (failed(axis))
    return failure();
  if (b.rankOf(*index) > 1)
    return ctx.invalid("argument \"index\" must be a vector, but is " + describe(*index));
  Value target = atLeast1(b, *self), list = atLeast1(b, *index), updates;
  Sizes in = getSizes(target), of = in;
  of[*axis] = getSizes(list)[0];
  if (Value source = c.tensor("source")) {
    if (b.elementOf(source) != b.elementOf(*self))
      return ctx.invalid("source and the operand differ in element type: " + describe(source) + " and " +
                         describe(*self));
    if (b.rankOf(source) == 0)
      source = b.reshape(source, Sizes(of.size(), b.size(1)));
    FailureOr<Value> same = ctx.castSizes(source, of);
    if (failed(same))
      return failure();
    updates = *same;
    if (c.has("alpha")) {
      FailureOr<Value> alpha = c.as("alpha", b.elementOf(*self));
      if (failed(alpha))
        return failure();
      if (ctx.constantScalar(*alpha) != 1.0)
        updates = b.elementOf(updates).isInteger(1) ? b.binary<AndOp>(updates, b.broadcastTo(*alpha, of))
                                                    : b.mul(updates, b.broadcastTo(*alpha, of));
    }
  } else {
    FailureOr<Value> number = c.as("value", b.elementOf(*self));
    if (failed(number))
      return failure();
    FailureOr<Value> one = ctx.scalar(*number, "value");
    if (failed(one))
      return failure();
    updates = b.broadcastTo(*one, of);
  }
  if (isEmpty(list))
    return ctx.result(*self);
  if (failed(requireInside(ctx, list, in[*axis])))
    return failure();
  Value column = b.unsqueeze(list, 1);
  auto front = [&](Value v) { return moveDim(b, v, *axis, 0); };
  FailureOr<Value> result =
      scatterBy(ctx, front(target), front(updates), by->kind, by->isMean, includesSelf,
                [&](Value base, Value values, std::optional<ReduceKind> kind) -> Value {
                  return ScatterNDOp::create(b, base.getType(), base, column, values, asAttr(b, kind));
                });
  return failed(result) ? failure() : ctx.result(b.reshape(moveDim(b, *result, 0, *axis), getSizes(*self)));
}

LogicalResult put(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.required("self"), index = readIndex(c, "index"), source = c.required("source");
  if (failed(self) || failed(index) || failed(source))
    return failure();
  if (b.elementOf(*source) != b.elementOf(*self))
    return ctx.invalid("source and the operand differ in element type: " + describe(*source) + " and " +
                       describe(*self));
  Value flat = flattened(b, *self), places = flattened(b, *index);
  FailureOr<Value> values = ctx.reshape(*source, getSizes(places));
  if (failed(values) || failed(requireInside(ctx, places, getSizes(flat)[0])))
    return failure();
  std::optional<ReduceKind> kind;
  if (c.flag("accumulate"))
    kind = kindFor(b, flat, ReduceKind::Sum);
  Value result = ScatterElementsOp::create(b, flat.getType(), flat, places, *values, 0, asAttr(b, kind));
  return ctx.result(b.reshape(result, getSizes(*self)));
}

//===--- masks ----------------------------------------------------------------------------------------------------===//

FailureOr<SmallVector<Value>> readMasked(Call &c) {
  FailureOr<Value> self = c.required("self"), mask = c.required("mask");
  if (failed(self) || failed(mask))
    return failure();
  if (!isMask(c.b, *mask))
    return c.ctx.invalid("argument \"mask\" must be a tensor of bools, but is " + describe(*mask));
  SmallVector<Value> both{*self, c.b.convert(*mask, c.b.getI1Type())};
  if (failed(c.ctx.broadcastTogether(both)))
    return failure();
  return both;
}

LogicalResult maskedSelect(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<SmallVector<Value>> both = readMasked(c);
  if (failed(both))
    return failure();
  return ctx.result(GatherOp::create(b, flattened(b, (*both)[0]), emitCompact(b, flattened(b, (*both)[1])), 0));
}

/// The elements of source, one after the other, where the mask is true.
LogicalResult maskedScatter(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<SmallVector<Value>> both = readMasked(c);
  FailureOr<Value> source = c.required("source");
  if (failed(both) || failed(source))
    return failure();
  Value self = (*both)[0], mask = (*both)[1];
  if (b.elementOf(*source) != b.elementOf(self))
    return ctx.invalid("source and the operand differ in element type: " + describe(*source) + " and " +
                       describe(self));
  if (isEmpty(self))
    return ctx.result(self);
  Value flat = flattened(b, *source);
  if (isEmpty(flat)) // the mask must be false then
    return ctx.result(self);
  Value ones = b.convert(flattened(b, mask), b.getI64Type());
  Value place = ScanOp::create(b, ones.getType(), ReduceKind::Sum, ones, 0, /*exclusive=*/true, /*reverse=*/false);
  // Where the mask is false, too, an element of source is read.
  place = b.min(place, filled(b, simplifySize(getSizes(flat)[0] - 1), getSizes(place)));
  Value taken = b.reshape(GatherOp::create(b, flat, place, 0), getSizes(self));
  return ctx.result(b.select(mask, taken, self));
}

Value nonZeroMask(PrimBuilder &b, Value v) {
  if (b.isComplex(v)) // either part
    return b.reduce(ReduceKind::Or, b.compare(CompareKind::NE, b.asParts(v), 0), {b.rankOf(v)});
  return b.elementOf(v).isInteger(1) ? v : b.compare(CompareKind::NE, v, 0);
}

/// [rank, count]: where elements are not 0.
FailureOr<Value> whereNonZero(Call &c) {
  FailureOr<Value> self = c.tensor("condition") ? c.tensor("condition") : c.required("self");
  if (failed(self))
    return failure();
  PrimBuilder &b = c.b;
  Value found = emitCompact(b, flattened(b, nonZeroMask(b, *self)));
  if (b.rankOf(*self) == 0)
    return b.splat(b.getI64Type(), {b.size(0), getSizes(found)[0]}, 0);
  return emitCoordinates(b, found, getSizes(*self));
}

LogicalResult nonZero(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> found = whereNonZero(c);
  return failed(found) ? failure() : ctx.result(ctx.b.transpose(*found, {1, 0}));
}

/// A vector for each dim; of a number as of a vector.
LogicalResult nonZeroByDim(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.tensor("condition") ? c.tensor("condition") : c.required("self");
  if (failed(self))
    return failure();
  Value v = atLeast1(b, *self);
  Value found = emitCoordinates(b, emitCompact(b, flattened(b, nonZeroMask(b, v))), getSizes(v));
  for (int64_t d = 0; d < b.rankOf(v); ++d)
    (void)ctx.set(d, b.take(found, 0, d));
  return success();
}

/// The first `size` of them; rows of `fill_value` where there are fewer.
LogicalResult nonZeroStatic(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  Type i64 = b.getI64Type();
  FailureOr<Value> self = c.required("self");
  FailureOr<AffineExpr> size = c.size("size");
  if (failed(self) || failed(size))
    return failure();
  if (getConstantSize(*size).value_or(0) < 0)
    return ctx.invalid("argument \"size\" is negative");
  const int64_t rank = b.rankOf(*self);
  if (rank == 0)
    return ctx.result(b.splat(i64, {*size, b.size(0)}, 0));
  Value mask = flattened(b, nonZeroMask(b, *self)), ones = b.convert(mask, i64);
  Sizes all = getSizes(mask), longer{simplifySize(*size + 1)};
  Value before = ScanOp::create(b, ones.getType(), ReduceKind::Sum, ones, 0, /*exclusive=*/true, /*reverse=*/false);
  Value nowhere = filled(b, *size, all);
  Value target = b.select(mask, b.min(before, nowhere), nowhere);
  Value found = ScatterElementsOp::create(b, makeType(i64, longer), b.splat(i64, longer, -1), target,
                                          b.iota(i64, all, 0), 0, ReduceKindAttr());
  found = b.sliceDim(found, 0, b.size(0), *size);
  Value isThere = b.compare(CompareKind::GE, found, 0);
  Value rows = b.transpose(emitCoordinates(b, b.binary<MaxOp>(found, 0), getSizes(*self)), {1, 0});
  Value fill = b.splatLike(rows, double(c.integer("fill_value", -1)));
  return ctx.result(b.select(b.broadcastInDims(isThere, getSizes(rows), {0}), rows, fill));
}

//===--- tables ---------------------------------------------------------------------------------------------------===//

LogicalResult oneHot(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  Type i64 = b.getI64Type();
  FailureOr<Value> self = readIndex(c, "self");
  if (failed(self))
    return failure();
  Value v = b.convert(*self, i64);
  Sizes sizes = getSizes(v);
  AffineExpr classes = b.size(c.integer("num_classes", -1));
  if (getConstantSize(classes) == -1) {
    if (isEmpty(v))
      return ctx.invalid("of no elements needs num_classes");
    classes = b.bindSymbol("classes", b.binary<AddOp>(b.reduce(ReduceKind::Max, flattened(b, v), {0}), 1));
  }
  sizes.push_back(classes);
  Value wide = b.broadcastInDims(v, sizes, llvm::to_vector(llvm::seq<int64_t>(0, b.rankOf(v))));
  return ctx.result(b.convert(b.compare(CompareKind::EQ, wide, b.iota(i64, sizes, b.rankOf(v))), i64));
}

LogicalResult embedding(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> weight = c.required("weight"), indices = readIndex(c, "indices");
  if (failed(weight) || failed(indices))
    return failure();
  if (b.rankOf(*weight) < 1)
    return ctx.invalid("argument \"weight\" must have a dim, but is " + describe(*weight));
  if (failed(requireInside(ctx, *indices, getSizes(*weight)[0])))
    return failure();
  return ctx.result(GatherOp::create(b, *weight, *indices, 0));
}

/// The table with the rows that are read scaled down to a norm of `max_norm`, where theirs is larger.
LogicalResult embeddingRenorm(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.floats("self"), indices = readIndex(c, "indices");
  if (failed(self) || failed(indices))
    return failure();
  if (b.rankOf(*self) != 2)
    return ctx.invalid("takes a matrix, but got " + describe(*self));
  const Sizes sizes = getSizes(*self);
  if (failed(requireInside(ctx, *indices, sizes[0])))
    return failure();
  const double most = c.number("max_norm", 1), power = c.number("norm_type", 2);
  Type wide = b.accumulatorOf(b.elementOf(*self));
  Value rows = b.convert(*self, wide), sizesOf = b.unary<AbsOp>(rows), norm;
  if (std::isinf(power))
    norm = b.reduce(ReduceKind::Max, sizesOf, {1});
  else if (power == 1)
    norm = b.reduce(ReduceKind::Sum, sizesOf, {1});
  else if (power == 2)
    norm = b.unary<SqrtOp>(b.reduce(ReduceKind::Sum, b.mul(rows, rows), {1}));
  else
    norm = b.binary<PowOp>(b.reduce(ReduceKind::Sum, b.binary<PowOp>(sizesOf, power), {1}), 1 / power);
  Value list = flattened(b, *indices), ones = b.splat(b.getI1Type(), getSizes(list), 1);
  Value isRead = emitScatterInto(b, sizes[0], list, ones, std::nullopt);
  Value isLarge = b.binary<AndOp>(isRead, b.compare(CompareKind::GT, norm, most));
  Value scale = b.select(isLarge, b.div(b.splatLike(norm, most), b.binary<AddOp>(norm, 1e-7)), b.splatLike(norm, 1));
  return ctx.result(b.convert(b.mul(rows, b.broadcastInDims(scale, sizes, {0})), b.elementOf(*self)));
}

/// The step of a vector 0, step, 2 step, ... of constants or as `arange` makes it; nullopt of another, or of one that
/// may be another.
std::optional<int64_t> stepFromZero(NodeContext &ctx, Value v) {
  if (std::optional<SmallVector<int64_t>> numbers = ctx.constantInts(v)) {
    const int64_t step = numbers->size() > 1 ? (*numbers)[1] : 0;
    for (auto [i, number] : llvm::enumerate(*numbers))
      if (number != int64_t(i) * step)
        return std::nullopt;
    return step > 0 ? std::optional(step) : std::nullopt;
  }
  int64_t step = 1;
  while (Operation *op = v.getDefiningOp()) {
    if (isa<IotaOp>(op))
      return step;
    const std::optional<double> other = op->getNumOperands() == 2 ? getSplatValue(op->getOperand(1)) : std::nullopt;
    if (isa<MulOp>(op) && step == 1 && other && *other >= 1 && *other < double(int64_t(1) << 31))
      step = int64_t(*other);
    else if (!isa<ConvertOp>(op) && !(isa<AddOp>(op) && other == 0.0))
      return std::nullopt;
    v = op->getOperand(0);
  }
  return std::nullopt;
}

/// Rows of a table, those of a bag combined. Bag i begins at offsets[i].
LogicalResult embeddingBag(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  Type i64 = b.getI64Type();
  FailureOr<Value> weight = c.required("weight"), indices = readIndex(c, "indices"), offsets = readIndex(c, "offsets");
  if (failed(weight) || failed(indices) || failed(offsets))
    return failure();
  const int64_t mode = c.integer("mode", 0);
  if (b.rankOf(*weight) != 2 || b.rankOf(*indices) != 1 || b.rankOf(*offsets) != 1 || !b.isFloat(*weight))
    return ctx.invalid("takes a matrix of floats and vectors of indices and offsets, but got " + describe(*weight) +
                       ", " + describe(*indices) + " and " + describe(*offsets));
  if (mode < 0 || mode > 2)
    return ctx.invalid("argument \"mode\" is " + Twine(mode) + "; it may be 0 (sum), 1 (mean) or 2 (max)");
  Sizes table = getSizes(*weight);
  AffineExpr n = getSizes(*indices)[0], d = table[1], bags = getSizes(*offsets)[0];
  if (failed(requireInside(ctx, *indices, table[0])))
    return failure();
  Value starts = b.convert(*offsets, i64);
  if (c.flag("include_last_offset")) {
    bags = simplifySize(bags - 1);
    starts = b.sliceDim(starts, 0, b.size(0), bags);
  }
  // The bag of each row: as many as begin at or before it, less one.
  Sizes longer{simplifySize(n + 1)};
  Value marks = ScatterElementsOp::create(b, makeType(i64, longer), b.splat(i64, longer, 0), starts,
                                          b.splatLike(starts, 1), 0, asAttr(b, ReduceKind::Sum));
  marks = b.sliceDim(marks, 0, b.size(0), n);
  Value bag = ScanOp::create(b, marks.getType(), ReduceKind::Sum, marks, 0, /*exclusive=*/false, /*reverse=*/false);
  bag = b.binary<SubOp>(bag, 1);
  Type type = b.elementOf(*weight), wide = b.accumulatorOf(type);
  Value rows = b.convert(GatherOp::create(b, *weight, *indices, 0), wide);
  const Sizes rowSizes{n, d}, out{bags, d};
  if (Value scale = c.tensor("per_sample_weights")) {
    if (mode != 0)
      return ctx.invalid("takes per_sample_weights with mode 0 (sum) only");
    FailureOr<Value> same = ctx.castSizes(scale, {n});
    if (failed(same))
      return failure();
    rows = b.mul(rows, b.broadcastInDims(b.convert(*same, wide), rowSizes, {0}));
  }
  // Rows of the padding index are in no bag: behind the last one. -1 is none in the operators that users do not call,
  // and the last row in the one that they do.
  const bool countsFromEnd = ctx.node().getOpType() == "embedding_bag.padding_idx";
  const int64_t padding = c.integer("padding_idx", -1);
  AffineExpr all = bags;
  Value isPadding;
  if (ctx.hasAttr("padding_idx") && (countsFromEnd || padding != -1)) {
    Value index = b.convert(*indices, i64);
    AffineExpr at = simplifySize(padding < 0 ? table[0] + padding : b.size(padding));
    isPadding = b.compare(CompareKind::EQ, index, filled(b, at, {n}));
    bag = b.select(isPadding, filled(b, bags, {n}), bag);
    all = simplifySize(bags + 1);
  }
  // A matrix of indices is bags of equal size, whose rows lie one after another.
  const std::optional<int64_t> perBag = getConstantSize(bags) == 1 ? getConstantSize(n) : stepFromZero(ctx, *offsets);
  const bool areEven = perBag && !c.flag("include_last_offset") && simplifySize(bags * *perBag - n) == b.size(0);
  auto into = [&](Value base, Value values, ReduceKind kind) {
    if (areEven) {
      Sizes sizes = getSizes(values), bySizes{bags, b.size(*perBag)};
      if (isPadding)
        values = b.select(b.broadcastInDims(isPadding, sizes, {0}),
                          b.broadcastTo(b.sliceDim(base, 0, b.size(0), b.size(1)), sizes), values);
      llvm::append_range(bySizes, ArrayRef(sizes).drop_front());
      return b.reduce(kind, b.reshape(values, bySizes), {1});
    }
    Value sums = ScatterNDOp::create(b, base.getType(), base, b.unsqueeze(bag, 1), values, asAttr(b, kind));
    return b.sliceDim(sums, 0, b.size(0), bags);
  };
  Value count = into(b.splat(wide, {all}, 0), b.splat(wide, {n}, 1), ReduceKind::Sum);
  Value counts = b.broadcastInDims(count, out, {0});
  Value result;
  if (mode == 2) {
    result = into(neutral(b, b.splat(wide, {all, d}, 0), ReduceKind::Max), rows, ReduceKind::Max);
    result = b.select(b.compare(CompareKind::EQ, counts, 0), b.splatLike(result, 0), result);
  } else {
    result = into(b.splat(wide, {all, d}, 0), rows, ReduceKind::Sum);
    if (mode == 1)
      result = b.div(result, b.binary<MaxOp>(counts, 1));
  }
  // For the gradient: the bag of each row, the rows of each bag, and for each column the row that is largest. Of the
  // first two PyTorch leaves out what it does not read.
  auto setSaved = [&](size_t i, Value v) {
    if (!ctx.isResultUsed(i))
      return;
    auto declared = dyn_cast<RankedTensorType>(ctx.node()->getResult(i).getType());
    v = b.convert(v, b.elementOf(*indices));
    if (declared && declared.hasStaticShape() && declared.getShape() != b.typeOf(v).getShape())
      v = b.splat(b.elementOf(v), b.sizes(declared.getShape()), 0);
    (void)ctx.set(i, v);
  };
  setSaved(1, bag);
  setSaved(2, b.convert(count, i64));
  if (mode == 2 && ctx.isResultUsed(3)) {
    Value inBag = b.pad(result, b.scalar(wide, 0), {b.size(0), b.size(0)}, {all, d});
    Value isLargest = b.compare(CompareKind::EQ, rows, GatherOp::create(b, inBag, bag, 0));
    Value place = b.select(isLargest, b.iota(i64, rowSizes, 0), b.broadcastTo(b.sizeValue(n), rowSizes));
    Value first = into(b.broadcastTo(b.sizeValue(n), {all, d}), place, ReduceKind::Min);
    Value isNone = b.compare(CompareKind::EQ, first, b.broadcastTo(b.sizeValue(n), out));
    Value row = b.select(isNone, b.splatLike(first, 0), first);
    Value list = b.concat({b.convert(*indices, i64), b.splat(i64, {b.size(1)}, 0)}, 0); // of no rows, too
    setSaved(3, b.select(isNone, b.splatLike(first, -1), GatherOp::create(b, list, row, 0)));
  } else {
    setSaved(3, b.splat(i64, {bags}, 0));
  }
  return ctx.result(b.convert(result, type));
}

} // namespace

void tc::populateATenIndexing(OpRegistrar &onOp) {
  auto onAll = [&](ArrayRef<StringRef> types, const NodeHandler &handler, size_t minOperands = 1) {
    for (StringRef type : types)
      onOp(type, /*sinceVersion=*/1, handler, minOperands);
  };
  auto on = [&](StringRef type, const NodeHandler &handler, size_t minOperands = 1) {
    onAll({type}, handler, minOperands);
  };
  onAll({"index.Tensor", "_unsafe_index.Tensor", "index.Tensor_hacked_twin", "_unsafe_index.Tensor_hacked_twin"},
        indexWith);
  onAll({"index_put.default", "_unsafe_index_put.default", "index_put.hacked_twin", "_unsafe_index_put.hacked_twin"},
        indexPut);
  on("index_select.default", indexSelect, 2);
  on("gather.default", gather, 2);
  on("take.default", take, 2);
  on("take_along_dim.default", takeAlongDim, 2);
  onAll({"scatter.src", "scatter.value"}, [](NodeContext &ctx) { return scatter(ctx, Reduction{}); }, 2);
  onAll(
      {"scatter.reduce", "scatter.value_reduce"}, [](NodeContext &ctx) { return scatter(ctx, readReduction(ctx)); }, 2);
  on("scatter_add.default", [](NodeContext &ctx) { return scatter(ctx, Reduction{ReduceKind::Sum}); }, 3);
  on(
      "scatter_reduce.two",
      [](NodeContext &ctx) { return scatter(ctx, readReduction(ctx), Call(ctx).flag("include_self", true)); }, 3);
  onAll(
      {"index_copy.default", "index_fill.int_Scalar", "index_fill.int_Tensor"},
      [](NodeContext &ctx) { return scatterSlices(ctx, Reduction{}); }, 2);
  on("index_add.default", [](NodeContext &ctx) { return scatterSlices(ctx, Reduction{ReduceKind::Sum}); }, 3);
  on(
      "index_reduce.default",
      [](NodeContext &ctx) { return scatterSlices(ctx, readReduction(ctx), Call(ctx).flag("include_self", true)); }, 3);
  on("put.default", put, 3);
  on("masked_select.default", maskedSelect, 2);
  on("masked_scatter.default", maskedScatter, 3);
  onAll({"nonzero.default", "argwhere.default"}, nonZero);
  onAll({"where.default", "nonzero_numpy.default"}, nonZeroByDim);
  on("nonzero_static.default", nonZeroStatic);
  on("one_hot.default", oneHot);
  on("embedding.default", embedding, 2);
  on("embedding_renorm.default", embeddingRenorm, 2);
  onAll({"embedding_bag.default", "embedding_bag.padding_idx", "_embedding_bag.default",
         "_embedding_bag_forward_only.default"},
        embeddingBag, 3);
  onOp.takeComplex(
      ComplexUse::Moved,
      {"index.Tensor",          "_unsafe_index.Tensor",   "index_put.default",      "_unsafe_index_put.default",
       "index_select.default",  "gather.default",         "take.default",           "take_along_dim.default",
       "scatter.src",           "scatter_add.default",    "index_add.default",      "index_copy.default",
       "masked_select.default", "masked_scatter.default", "nonzero.default",        "argwhere.default",
       "where.default",         "nonzero_numpy.default",  "nonzero_static.default", "embedding.default"});
}
