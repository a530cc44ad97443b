//===- ATenVectors.cpp - products, differences and sums of vectors of ATen ----------------------------------------===//
//
// Source: the native function schemas of PyTorch (aten/src/ATen/native/native_functions.yaml).
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ATenMovement.h"
#include "OpRegistry.h"
#include "Selection.h"
#include "Shared.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

/// The product of equal types; of bools, and.
Value product(PrimBuilder &b, Value x, Value y) {
  return b.elementOf(x).isInteger(1) ? b.binary<AndOp>(x, y) : b.mul(x, y);
}

/// Two tensors in their common type.
FailureOr<std::pair<Value, Value>> readPair(Call &c, StringRef first, StringRef second) {
  FailureOr<Value> x = c.required(first), y = c.required(second);
  if (failed(x) || failed(y))
    return failure();
  Value both[] = {*x, *y};
  if (failed(promoteTogether(c, both)))
    return failure();
  if (c.b.isComplex(both[0]))
    return c.ctx.unsupported("of complex numbers is not supported");
  return std::pair(both[0], both[1]);
}

LogicalResult outer(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  auto pair = readPair(c, "self", "vec2");
  if (failed(pair))
    return failure();
  auto [x, y] = *pair;
  if (b.rankOf(x) != 1 || b.rankOf(y) != 1)
    return ctx.invalid("takes vectors, but got " + describe(x) + " and " + describe(y));
  Sizes sizes{getSizes(x)[0], getSizes(y)[0]};
  return ctx.result(product(b, b.broadcastInDims(x, sizes, {0}), b.broadcastInDims(y, sizes, {1})));
}

LogicalResult dot(NodeContext &ctx, StringRef second) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> x = c.required("self"), y = c.required(second);
  if (failed(x) || failed(y))
    return failure();
  if (b.rankOf(*x) != 1 || b.rankOf(*y) != 1 || b.elementOf(*x) != b.elementOf(*y) || b.elementOf(*x).isInteger(1))
    return ctx.invalid("takes vectors of numbers of one element type, but got " + describe(*x) + " and " +
                       describe(*y));
  FailureOr<Value> value = emitMatMul(ctx, *x, *y);
  return failed(value) ? failure() : ctx.result(*value);
}

LogicalResult kron(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  auto pair = readPair(c, "self", "other");
  if (failed(pair))
    return failure();
  auto [x, y] = *pair;
  Sizes sx = getSizes(x), sy = getSizes(y), spreadX, spreadY, both, out;
  const size_t rank = std::max(sx.size(), sy.size());
  sx.insert(sx.begin(), rank - sx.size(), b.size(1));
  sy.insert(sy.begin(), rank - sy.size(), b.size(1));
  for (auto [m, n] : llvm::zip_equal(sx, sy)) {
    spreadX.append({m, b.size(1)});
    spreadY.append({b.size(1), n});
    both.append({m, n});
    out.push_back(simplifySize(m * n));
  }
  x = b.broadcastTo(b.reshape(x, spreadX), both);
  y = b.broadcastTo(b.reshape(y, spreadY), both);
  return ctx.result(b.reshape(product(b, x, y), out));
}

/// x[i + 1] y[i + 2] - x[i + 2] y[i + 1] along a dim of 3.
LogicalResult cross(NodeContext &ctx, std::optional<int64_t> otherwise) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  auto pair = readPair(c, "self", "other");
  if (failed(pair))
    return failure();
  Value both[] = {pair->first, pair->second};
  if (b.elementOf(both[0]).isInteger(1))
    return ctx.invalid("takes no bools");
  if (failed(ctx.broadcastTogether(both)))
    return failure();
  Sizes sizes = getSizes(both[0]);
  int64_t axis = -1;
  if (ctx.hasAttr("dim") || otherwise) {
    FailureOr<int64_t> given = ctx.axis(c.integer("dim", otherwise.value_or(0)), sizes.size());
    if (failed(given))
      return failure();
    axis = *given;
  } else {
    for (size_t d = 0; d < sizes.size() && axis < 0; ++d)
      if (getConstantSize(sizes[d]) == 3)
        axis = d;
    if (axis < 0)
      return ctx.invalid("finds no dim of 3 elements in " + describe(both[0]));
  }
  if (failed(ctx.requireEqual(sizes[axis], b.size(3), "3 elements in dim " + Twine(axis))))
    return failure();
  auto part = [&](Value v, int64_t i) { return b.sliceDim(v, axis, b.size(i), b.size(1)); };
  SmallVector<Value> parts;
  for (int64_t i : {0, 1, 2}) {
    const int64_t j = (i + 1) % 3, k = (i + 2) % 3;
    parts.push_back(b.sub(b.mul(part(both[0], j), part(both[1], k)), b.mul(part(both[0], k), part(both[1], j))));
  }
  return ctx.result(b.concat(parts, axis));
}

/// Powers 0 .. N - 1 of each element, along a last dim; `falls`: the highest first.
LogicalResult vander(NodeContext &ctx, bool falls) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> x = c.required("x");
  if (failed(x))
    return failure();
  if (b.isComplex(*x))
    return ctx.unsupported("of " + describe(*x) + " is not supported; supported are real tensors");
  Value v = isa<IntegerType>(b.elementOf(*x)) ? b.convert(*x, b.getI64Type()) : *x;
  if (b.rankOf(v) == 0)
    v = b.reshape(v, {b.size(1)});
  FailureOr<AffineExpr> given = readSize(c, "N", 0);
  if (failed(given))
    return failure();
  const int64_t rank = b.rankOf(v);
  auto count = getConstantSize(ctx.hasAttr("N") ? *given : getSizes(v).back());
  if (!count || *count < 0 || *count > 4096)
    return ctx.unsupported("with a number of powers that is not known, or more than 4096, is not supported; give N");
  SmallVector<Value> columns;
  Value power = b.splatLike(v, 1);
  for (int64_t i = 0; i < *count; ++i) {
    columns.push_back(b.unsqueeze(power, rank));
    power = b.mul(power, v);
  }
  if (columns.empty()) {
    Sizes none = getSizes(v);
    none.push_back(b.size(0));
    return ctx.result(b.splat(b.elementOf(v), none, 0));
  }
  if (falls)
    std::reverse(columns.begin(), columns.end());
  return ctx.result(b.concat(columns, rank));
}

LogicalResult diff(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  const int64_t rank = b.rankOf(*self);
  FailureOr<int64_t> axis = ctx.axis(c.integer("dim", -1), rank);
  if (failed(axis))
    return failure();
  SmallVector<Value> parts;
  for (StringRef name : {"prepend", "self", "append"})
    if (Value v = c.tensor(name))
      parts.push_back(v);
  if (failed(promoteTogether(c, parts)))
    return failure();
  if (b.isComplex(parts.front()))
    return ctx.unsupported("of complex numbers is not supported");
  FailureOr<Value> all = emitConcat(ctx, parts, *axis);
  const int64_t n = c.integer("n", 1);
  if (failed(all) || n < 0)
    return n < 0 ? ctx.invalid("argument \"n\" is negative") : failure();
  if (n == 0)
    return ctx.result(*self);
  Value v = *all;
  for (int64_t i = 0; i < n; ++i) {
    AffineExpr size = getSizes(v)[*axis], fewer = notNegative(b, simplifySize(size - 1));
    if (getConstantSize(size) == 0)
      break;
    Value later = b.sliceDim(v, *axis, getConstantSize(fewer) == 0 ? b.size(0) : b.size(1), fewer);
    Value earlier = b.sliceDim(v, *axis, b.size(0), fewer);
    v = b.elementOf(v).isInteger(1) ? b.binary<XorOp>(later, earlier) : b.sub(later, earlier);
  }
  return ctx.result(v);
}

/// Areas under lines between neighbours: their sum, or (`isCumulative`) sums.
LogicalResult trapezoid(NodeContext &ctx, bool isCumulative) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> y = c.required("y");
  if (failed(y))
    return failure();
  FailureOr<int64_t> axis = ctx.axis(c.integer("dim", -1), b.rankOf(*y));
  if (failed(axis))
    return failure();
  Type type = b.elementOf(*y);
  if (b.isComplex(*y))
    return ctx.unsupported("of complex numbers is not supported");
  Value values = *y, x = c.tensor("x");
  const bool ofBools = type.isInteger(1);
  if (x) {
    Value both[] = {values, x};
    if (failed(promoteTogether(c, both)))
      return failure();
    if (ofBools || b.elementOf(x).isInteger(1))
      return ctx.invalid("takes no bools");
    values = both[0];
    x = both[1];
    type = b.elementOf(values);
  }
  const Sizes whole = getSizes(values);
  AffineExpr count = whole[*axis];
  auto neighbours = [&](Value v, int64_t dim) {
    AffineExpr fewer = notNegative(b, simplifySize(getSizes(v)[dim] - 1));
    return std::pair(b.sliceDim(v, dim, b.size(0), fewer),
                     b.sliceDim(v, dim, getConstantSize(fewer) == 0 ? b.size(0) : b.size(1), fewer));
  };
  const Type real = b.isFloat(values) ? type : Type(b.getF32Type());
  if (getConstantSize(count) == 0) {
    Sizes none = whole;
    if (!isCumulative)
      none.erase(none.begin() + *axis);
    return ctx.result(b.splat(real, none, 0));
  }
  auto [left, right] = neighbours(values, *axis);
  Value area;
  if (x) {
    // A vector is along the dim; else as values, which it is broadcast with.
    if (b.rankOf(x) == 1) {
      if (failed(ctx.requireEqual(getSizes(x)[0], count, "as many x as y")))
        return failure();
      Sizes along(whole.size(), b.size(1));
      along[*axis] = count;
      x = b.reshape(x, along);
    }
    while (b.rankOf(x) < b.rankOf(values))
      x = b.unsqueeze(x, 0);
    auto [from, to] = neighbours(x, *axis + b.rankOf(x) - b.rankOf(values));
    Value operands[] = {b.add(left, right), b.sub(to, from)};
    if (failed(ctx.broadcastTogether(operands)))
      return failure();
    area = b.mul(operands[0], operands[1]);
  } else {
    Type wide = ofBools ? Type(b.getF32Type()) : type; // of two bools the sum is or
    Value sum = ofBools ? b.convert(b.binary<OrOp>(left, right), wide) : b.add(left, right);
    // dx is a Python number: with a float of integers floats are computed.
    FailureOr<Value> dx = c.as("dx", isa_and_nonnull<FloatAttr>(ctx.attr("dx")) ? real : b.elementOf(sum), 1.0);
    if (failed(dx))
      return failure();
    sum = b.convert(sum, b.elementOf(*dx));
    area = b.mul(sum, b.broadcastTo(*dx, getSizes(sum)));
  }
  const int64_t dim = *axis + b.rankOf(area) - int64_t(whole.size());
  Value total = isa<IntegerType>(b.elementOf(area)) ? b.convert(area, b.getI64Type()) : area;
  total = isCumulative ? Value(ScanOp::create(b, total.getType(), ReduceKind::Sum, total, dim, /*exclusive=*/false,
                                              /*reverse=*/false))
                       : b.reduce(ReduceKind::Sum, total, {dim});
  total = b.isFloat(total) ? total : b.convert(total, b.getF32Type());
  return ctx.result(b.binary<DivOp>(total, 2));
}

/// What the slopes of one dim are computed with: one distance, or the places of the elements.
struct Spacing {
  double distance = 1;
  Value places;
};

/// Slopes along a dim: between both neighbours inside, at the edges to the next one or, of second order, two.
FailureOr<Value> slope(Call &c, Value x, int64_t axis, const Spacing &spacing, int64_t order) {
  NodeContext &ctx = c.ctx;
  PrimBuilder &b = c.b;
  AffineExpr n = getSizes(x)[axis];
  Type type = b.elementOf(x);
  if (failed(ctx.require(CompareKind::LE, b.size(order + 1), n, "more elements than edge_order in dim " + Twine(axis))))
    return failure();
  /// `count` elements from `start`, which counts from the end if it is negative.
  auto part = [&](Value v, int64_t dim, int64_t start, AffineExpr count) {
    AffineExpr size = getSizes(v)[dim];
    return b.sliceDim(v, dim,
                      getConstantSize(count) == 0 ? b.size(0) : simplifySize(start < 0 ? size + start : b.size(start)),
                      count);
  };
  auto one = [&](int64_t at) { return part(x, axis, at, b.size(1)); };
  AffineExpr inner = simplifySize(n - 2);
  SmallVector<Value> all;
  if (!spacing.places) {
    auto by = [&](Value v, double distance) { return b.binary<DivOp>(v, distance); };
    auto times = [&](Value v, double factor) { return b.binary<MulOp>(v, factor); };
    if (order == 1) {
      all = {by(b.sub(one(1), one(0)), spacing.distance), {}, by(b.sub(one(-1), one(-2)), spacing.distance)};
    } else {
      Value first = b.sub(b.sub(times(one(1), 2), times(one(0), 1.5)), times(one(2), 0.5));
      Value last = b.add(b.sub(times(one(-1), 1.5), times(one(-2), 2)), times(one(-3), 0.5));
      all = {by(first, spacing.distance), {}, by(last, spacing.distance)};
    }
    all[1] = by(by(b.sub(part(x, axis, 2, inner), part(x, axis, 0, inner)), spacing.distance), 2);
    return b.concat(all, axis);
  }
  FailureOr<Value> places = ctx.castSizes(spacing.places, {n});
  if (failed(places))
    return failure();
  Value at = b.convert(*places, type);
  AffineExpr gaps = simplifySize(n - 1);
  Value dx = b.sub(part(at, 0, 1, gaps), part(at, 0, 0, gaps));
  // Numbers along the dim.
  auto along = [&](Value v, Value like) { return b.broadcastInDims(v, getSizes(like), {axis}); };
  auto gap = [&](int64_t i) { return part(dx, 0, i, b.size(1)); };
  auto weighted = [&](ArrayRef<Value> weights, ArrayRef<Value> values) {
    Value sum;
    for (auto [w, v] : llvm::zip_equal(weights, values)) {
      Value term = b.mul(along(w, v), v);
      sum = sum ? b.add(sum, term) : term;
    }
    return sum;
  };
  auto ratio = [&](Value x, Value y) { return b.div(x, y); };
  Value dx1 = part(dx, 0, 0, inner), dx2 = part(dx, 0, 1, inner), both = b.add(dx1, dx2);
  Value middle = weighted({ratio(b.unary<NegOp>(dx2), b.mul(dx1, both)), ratio(b.sub(dx2, dx1), b.mul(dx1, dx2)),
                           ratio(dx1, b.mul(dx2, both))},
                          {part(x, axis, 0, inner), part(x, axis, 1, inner), part(x, axis, 2, inner)});
  Value first, last;
  if (order == 1) {
    first = b.div(b.sub(one(1), one(0)), along(gap(0), one(0)));
    last = b.div(b.sub(one(-1), one(-2)), along(gap(-1), one(0)));
  } else {
    Value g = gap(0), h = gap(1), sum = b.add(g, h);
    first = weighted({ratio(b.unary<NegOp>(b.add(b.binary<MulOp>(g, 2), h)), b.mul(g, sum)), ratio(sum, b.mul(g, h)),
                      ratio(b.unary<NegOp>(g), b.mul(h, sum))},
                     {one(0), one(1), one(2)});
    g = gap(-2), h = gap(-1), sum = b.add(g, h);
    last = weighted({ratio(h, b.mul(g, sum)), ratio(b.unary<NegOp>(sum), b.mul(g, h)),
                     ratio(b.add(b.binary<MulOp>(h, 2), g), b.mul(h, sum))},
                    {one(-3), one(-2), one(-1)});
  }
  return b.concat({first, middle, last}, axis);
}

LogicalResult gradient(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  if (b.isComplex(*self) || b.elementOf(*self).isInteger(1))
    return ctx.unsupported("of " + describe(*self) + " is not supported; supported are real numbers");
  Value x = b.isFloat(*self) ? *self : b.convert(*self, b.getF32Type());
  FailureOr<SmallVector<int64_t>> dims = c.dims("dim", b.rankOf(x));
  const int64_t order = c.integer("edge_order", 1);
  if (failed(dims))
    return failure();
  if (order != 1 && order != 2)
    return ctx.invalid("argument \"edge_order\" is " + Twine(order) + "; it may be 1 or 2");
  SmallVector<Spacing> spacings(dims->size());
  SmallVector<Value> places = c.tensors("spacing");
  SmallVector<double> distances = ctx.getFloats("spacing").value_or(SmallVector<double>());
  if (auto integers = c.integers("spacing"))
    distances.assign(integers->begin(), integers->end());
  if (!places.empty() || !distances.empty()) {
    const size_t given = places.empty() ? distances.size() : places.size();
    if (given != spacings.size())
      return ctx.invalid("argument \"spacing\" has " + Twine(given) + " entries for " + Twine(spacings.size()) +
                         " dims");
    for (auto [i, spacing] : llvm::enumerate(spacings)) {
      if (places.empty())
        spacing.distance = distances[i];
      else
        spacing.places = places[i];
    }
  } else {
    if (ctx.hasAttr("spacing") && !c.isNumber("spacing"))
      return ctx.unsupported("with spacings that only the run knows is not supported");
    for (Spacing &spacing : spacings)
      spacing.distance = c.number("spacing", 1);
  }
  for (auto [i, dim] : llvm::enumerate(*dims)) {
    FailureOr<Value> result = slope(c, x, dim, spacings[i], order);
    if (failed(result))
      return failure();
    (void)ctx.set(i, *result);
  }
  return success();
}

/// Rows of `self` as variables: E[(x - E x)(x - E x)^T], with weights.
FailureOr<Value> covariance(Call &c, Value self, int64_t correction, Value counts, Value weights) {
  NodeContext &ctx = c.ctx;
  PrimBuilder &b = c.b;
  if (b.isComplex(self) || b.elementOf(self).isInteger(1) || b.rankOf(self) > 2)
    return ctx.unsupported("of " + describe(self) +
                           " is not supported; supported are real tensors of two dims at most that are not bool");
  const int64_t rank = b.rankOf(self);
  while (b.rankOf(self) < 2)
    self = b.unsqueeze(self, 0);
  Type type = b.isFloat(self) ? b.elementOf(self) : Type(b.getF32Type()), wide = b.accumulatorOf(type);
  Value x = b.convert(self, wide);
  const Sizes sizes = getSizes(x);
  AffineExpr n = sizes[1];
  // Sums of weights are f64: what is divided by is a difference of them, which may be small.
  const Type exact = b.getF64Type();
  Value weight;
  for (Value v : {counts, weights}) {
    if (!v)
      continue;
    FailureOr<Value> same = ctx.castSizes(v, {n});
    if (failed(same))
      return failure();
    Value own = b.convert(*same, exact);
    weight = weight ? b.mul(weight, own) : own;
  }
  Value sum = weight ? b.reduce(ReduceKind::Sum, weight, {0}) : b.convert(b.sizeValue(n), exact);
  Value spread = weight ? b.broadcastInDims(b.convert(weight, wide), sizes, {1}) : Value();
  Value mean = b.reduce(ReduceKind::Sum, weight ? b.mul(x, spread) : x, {1});
  mean = b.div(mean, b.broadcastTo(b.convert(sum, wide), getSizes(mean)));
  Value centred = b.sub(x, b.broadcastInDims(mean, sizes, {0}));
  // What is divided by: the sum of weights, less the correction.
  Value norm;
  if (!weight || correction == 0 || !weights) {
    norm = b.sub(sum, b.scalar(exact, double(correction)));
  } else {
    Value squares = b.reduce(ReduceKind::Sum, b.mul(weight, b.convert(weights, exact)), {0});
    norm = b.sub(sum, b.binary<MulOp>(b.div(squares, sum), double(correction)));
  }
  norm = b.convert(b.binary<MaxOp>(norm, 0), wide);
  Value right = weight ? b.mul(centred, spread) : centred;
  FailureOr<Value> value = emitMatMul(ctx, centred, b.transpose(right, {1, 0}));
  if (failed(value))
    return failure();
  Value result = b.convert(b.div(*value, b.broadcastTo(norm, getSizes(*value))), type);
  // One variable has a variance, without dims.
  return rank < 2 || isOne(sizes[0]) ? b.reshape(result, {}) : result;
}

LogicalResult cov(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  FailureOr<Value> value = covariance(c, *self, c.integer("correction", 1), c.tensor("fweights"), c.tensor("aweights"));
  return failed(value) ? failure() : ctx.result(*value);
}

LogicalResult corrcoef(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  FailureOr<Value> value = covariance(c, *self, 1, {}, {});
  if (failed(value))
    return failure();
  if (b.rankOf(*value) == 0)
    return ctx.result(b.div(*value, *value));
  const Sizes sizes = getSizes(*value);
  Value deviation = b.unary<SqrtOp>(emitDiagonal(b, *value, 0));
  Value result =
      b.div(b.div(*value, b.broadcastInDims(deviation, sizes, {0})), b.broadcastInDims(deviation, sizes, {1}));
  return ctx.result(b.binary<MaxOp>(b.binary<MinOp>(result, 1), -1));
}

/// All tuples of one element of each vector, the last one varying fastest.
LogicalResult cartesianProduct(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  SmallVector<Value> tensors = c.tensors("tensors");
  if (tensors.empty())
    return ctx.invalid("needs a tensor");
  Sizes sizes;
  for (Value v : tensors) {
    if (b.rankOf(v) != 1 || b.elementOf(v) != b.elementOf(tensors.front()))
      return ctx.invalid("takes vectors of one element type, but got " + describe(v));
    sizes.push_back(getSizes(v)[0]);
  }
  if (tensors.size() == 1)
    return ctx.result(tensors.front());
  AffineExpr count = prim::product(b.getContext(), sizes);
  SmallVector<Value> columns;
  for (auto [i, v] : llvm::enumerate(tensors))
    columns.push_back(b.reshape(b.broadcastInDims(v, sizes, {int64_t(i)}), {count, b.size(1)}));
  return ctx.result(b.concat(columns, 1));
}

LogicalResult combinations(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  const int64_t r = c.integer("r", 2);
  const bool repeats = c.flag("with_replacement");
  auto n = b.rankOf(*self) == 1 ? getConstantSize(getSizes(*self)[0]) : std::nullopt;
  if (b.rankOf(*self) != 1 || r < 0)
    return ctx.invalid("takes a vector and a length of 0 or more, but got " + describe(*self) + " and " + Twine(r));
  if (!n)
    return ctx.unsupported("of a number of elements that only the run knows is not supported; fix it by --dim");
  if (r == 0)
    return ctx.result(b.splat(b.elementOf(*self), {b.size(0)}, 0));
  constexpr size_t kMost = 1 << 20;
  SmallVector<int64_t> all, tuple;
  // Tuples whose numbers rise, or do not fall, in their order.
  for (int64_t i = 0; i < r; ++i)
    tuple.push_back(repeats ? 0 : i);
  while (*n > 0 && tuple.back() < *n) {
    all.append(tuple.begin(), tuple.end());
    if (all.size() > kMost)
      return ctx.unsupported("of more than " + Twine(kMost) + " numbers is not supported");
    int64_t at = r - 1;
    while (at >= 0 && tuple[at] == (repeats ? *n - 1 : *n - r + at))
      --at;
    if (at < 0)
      break;
    ++tuple[at];
    for (int64_t i = at + 1; i < r; ++i)
      tuple[i] = repeats ? tuple[at] : tuple[i - 1] + 1;
  }
  const int64_t rows = all.size() / r;
  if (rows == 0)
    return ctx.result(b.splat(b.elementOf(*self), {b.size(0), b.size(r)}, 0));
  auto dense = DenseElementsAttr::get(RankedTensorType::get({rows, r}, b.getI64Type()), ArrayRef<int64_t>(all));
  TypedAttr value = dense;
  if (all.size() > 64 && !dense.isSplat())
    value = base::fromDense(dense);
  return ctx.result(GatherOp::create(b, *self, prim::ConstantOp::create(b, value), 0));
}

} // namespace

void tc::populateATenVectors(OpRegistrar &onOp) {
  auto onAll = [&](ArrayRef<StringRef> types, const NodeHandler &handler, size_t minOperands = 1) {
    for (StringRef type : types)
      onOp(type, /*sinceVersion=*/1, handler, minOperands);
  };
  auto on = [&](StringRef type, const NodeHandler &handler, size_t minOperands = 1) {
    onAll({type}, handler, minOperands);
  };
  onAll({"outer.default", "ger.default"}, outer, 2);
  on("dot.default", [](NodeContext &ctx) { return dot(ctx, "tensor"); }, 2);
  on("vdot.default", [](NodeContext &ctx) { return dot(ctx, "other"); }, 2);
  on("kron.default", kron, 2);
  on("cross.default", [](NodeContext &ctx) { return cross(ctx, std::nullopt); }, 2);
  on("linalg_cross.default", [](NodeContext &ctx) { return cross(ctx, -1); }, 2);
  on("vander.default", [](NodeContext &ctx) { return vander(ctx, !Call(ctx).flag("increasing")); });
  on("linalg_vander.default", [](NodeContext &ctx) { return vander(ctx, /*falls=*/false); });
  on("diff.default", diff);
  onAll({"trapezoid.x", "trapezoid.dx", "trapz.x", "trapz.dx"},
        [](NodeContext &ctx) { return trapezoid(ctx, /*isCumulative=*/false); });
  onAll({"cumulative_trapezoid.x", "cumulative_trapezoid.dx"},
        [](NodeContext &ctx) { return trapezoid(ctx, /*isCumulative=*/true); });
  onAll({"gradient.scalarint", "gradient.scalararray", "gradient.array", "gradient.scalarrayint",
         "gradient.scalarrayarray", "gradient.tensorarrayint", "gradient.tensorarray"},
        gradient);
  on("cov.default", cov);
  on("corrcoef.default", corrcoef);
  on("cartesian_prod.default", cartesianProduct);
  on("combinations.default", combinations);
  onOp.takeComplex(ComplexUse::Moved, {"cartesian_prod.default", "combinations.default"});
}
