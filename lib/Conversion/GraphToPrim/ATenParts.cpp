//===- ATenParts.cpp - slices, splits, joins, pads and repeats of ATen --------------------------------------------===//
//
// Source: the native function schemas of PyTorch (aten/src/ATen/native/native_functions.yaml).
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ATenMovement.h"
#include "AxisList.h"
#include "OpRegistry.h"
#include "Selection.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

/// An operand and one of its dims.
struct Along {
  Value self;
  int64_t axis;
  AffineExpr size;
};
FailureOr<Along> readAlong(Call &c, StringRef dimName = "dim", int64_t otherwise = 0, StringRef name = "self") {
  FailureOr<Value> self = c.required(name);
  if (failed(self))
    return failure();
  FailureOr<int64_t> axis = c.ctx.axis(c.integer(dimName, otherwise), c.b.rankOf(*self));
  if (failed(axis))
    return failure();
  return Along{*self, *axis, getSizes(*self)[*axis]};
}

Value dropDim(PrimBuilder &b, Value v, int64_t axis) {
  Sizes sizes = getSizes(v);
  sizes.erase(sizes.begin() + axis);
  return b.reshape(v, sizes);
}

LogicalResult selectIndex(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Along> along = readAlong(c);
  if (failed(along))
    return failure();
  auto [self, axis, size] = *along;
  SliceBound index = readBound(c, "index", 0);
  FailureOr<AffineExpr> at = resolveIndex(ctx, self, axis, index);
  if (failed(at))
    return failure();
  if (*at)
    return ctx.result(dropDim(b, b.sliceDim(self, axis, *at, b.size(1)), axis));
  return ctx.result(GatherOp::create(b, self, boundValue(b, index), axis));
}

LogicalResult slice(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Along> along = readAlong(c);
  FailureOr<AffineExpr> step = readSize(c, "step", 1);
  if (failed(along) || failed(step))
    return failure();
  auto by = getConstantSize(*step);
  if (!by)
    return ctx.unsupported("with a step that only the run knows is not supported");
  if (*by < 1)
    return ctx.invalid("argument \"step\" is " + Twine(*by) + "; it must be 1 or more");
  FailureOr<SliceDim> dim = resolveSlice(ctx, along->self, along->size, readBound(c, "start", 0),
                                         readBound(c, "end", INT64_MAX), *by, std::nullopt);
  if (failed(dim))
    return failure();
  const bool takesOne = *by >= kLongestStep || b.bounds(dim->count).second <= 1;
  return ctx.result(b.sliceDim(along->self, along->axis, dim->start, dim->count, takesOne ? 1 : *by));
}

/// narrow: a start that counts from the end if it is negative, and a length; both inside.
LogicalResult narrow(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Along> along = readAlong(c);
  FailureOr<AffineExpr> length = readSize(c, "length", 0, /*bind=*/0);
  if (failed(along) || failed(length))
    return failure();
  auto [self, axis, size] = *along;
  if (getConstantSize(*length).value_or(0) < 0)
    return ctx.invalid("argument \"length\" is negative");
  SliceBound start = readBound(c, "start", 0);
  if (Value v = c.tensor("start")) { // narrow.Tensor
    FailureOr<Value> one = ctx.scalar(v, "start");
    if (failed(one))
      return failure();
    std::optional<Sizes> known = ctx.intValues(*one);
    start = {known ? known->front() : AffineExpr(), *one};
  }
  AffineExpr at = start.expr;
  if (at && b.bounds(at).second < 0)
    at = simplifySize(at + size);
  if (!at || b.bounds(at).first < 0) {
    Value v = boundValue(b, start);
    v = b.select(b.compare(CompareKind::LT, v, 0), b.add(v, b.sizeValue(size)), v);
    at = b.bindSymbol("start", v, 0, b.bounds(size).second);
  }
  if (failed(ctx.require(CompareKind::LE, simplifySize(at + *length), size,
                         "a part that lies inside of dim " + Twine(axis))))
    return failure();
  return ctx.result(b.sliceDim(self, axis, getConstantSize(*length) == 0 ? b.size(0) : at, *length));
}

/// Sets a result for each part of `self`, one behind the other.
LogicalResult setParts(NodeContext &ctx, const Along &along, SizesRef parts) {
  PrimBuilder &b = ctx.b;
  if (parts.size() != ctx.numResults())
    return ctx.invalid("splits " + describe(along.self) + " in " + Twine(parts.size()) + " parts, but has " +
                       Twine(ctx.numResults()) + " results");
  AffineExpr start = b.size(0);
  for (auto [i, part] : llvm::enumerate(parts)) {
    if (getConstantSize(part).value_or(0) < 0)
      return ctx.invalid("a part has a negative size");
    (void)ctx.set(i, b.sliceDim(along.self, along.axis, getConstantSize(part) == 0 ? b.size(0) : start, part));
    start = simplifySize(start + part);
  }
  return ctx.requireEqual(start, along.size, "parts that add up to dim " + Twine(along.axis));
}

/// As many parts as there are results, all but the last of size `part`.
LogicalResult setEqualParts(NodeContext &ctx, const Along &along, AffineExpr part) {
  PrimBuilder &b = ctx.b;
  const int64_t count = ctx.numResults();
  if (count == 0)
    return ctx.invalid("has no results");
  Sizes parts(count, part);
  parts.back() = simplifySize(along.size - part * (count - 1));
  if (getConstantSize(parts.back()).value_or(0) < 0)
    return ctx.invalid("does not split " + describe(along.self) + " in " + Twine(count) + " parts");
  // The number of parts is that of the run in which the model was exported.
  if (failed(ctx.require(CompareKind::LE, parts.back(), part, "as many parts as results")) ||
      failed(ctx.require(CompareKind::LE, b.size(0), parts.back(), "as many parts as results")))
    return failure();
  return setParts(ctx, along, parts);
}

LogicalResult chunk(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Along> along = readAlong(c);
  if (failed(along))
    return failure();
  int64_t chunks = c.integer("chunks", 1);
  if (chunks < 1)
    return ctx.invalid("argument \"chunks\" is " + Twine(chunks) + "; it must be 1 or more");
  return setEqualParts(ctx, *along, simplifySize(along->size.ceilDiv(chunks)));
}

LogicalResult split(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Along> along = readAlong(c);
  FailureOr<AffineExpr> part = readSize(c, "split_size", 1);
  if (failed(along) || failed(part))
    return failure();
  if (getConstantSize(*part).value_or(0) < 0)
    return ctx.invalid("argument \"split_size\" is negative");
  return setEqualParts(ctx, *along, *part);
}

LogicalResult splitWithSizes(NodeContext &ctx, StringRef name) {
  Call c(ctx);
  FailureOr<Along> along = readAlong(c);
  FailureOr<Sizes> sizes = c.sizes(name);
  if (failed(along) || failed(sizes))
    return failure();
  return setParts(ctx, *along, *sizes);
}

/// The parts between `indices`, which count from the end if they are negative, and are cut to the dim.
LogicalResult splitAt(NodeContext &ctx, const Along &along, ArrayRef<SliceBound> indices) {
  PrimBuilder &b = ctx.b;
  if (indices.size() + 1 != ctx.numResults())
    return ctx.invalid("splits " + describe(along.self) + " in " + Twine(indices.size() + 1) + " parts, but has " +
                       Twine(ctx.numResults()) + " results");
  SliceBound start{b.size(0), {}};
  for (size_t i = 0; i <= indices.size(); ++i) {
    SliceBound end = i < indices.size() ? indices[i] : SliceBound{b.size(INT64_MAX), {}};
    FailureOr<SliceDim> dim = resolveSlice(ctx, along.self, along.size, start, end, 1, std::nullopt);
    if (failed(dim))
      return failure();
    (void)ctx.set(i, b.sliceDim(along.self, along.axis, dim->start, dim->count));
    start = end;
  }
  return success();
}

/// `sections` parts; those that are one larger come first.
LogicalResult splitEvenly(NodeContext &ctx, const Along &along, int64_t sections) {
  PrimBuilder &b = ctx.b;
  if (sections < 1)
    return ctx.invalid("argument \"sections\" is " + Twine(sections) + "; it must be 1 or more");
  auto size = getConstantSize(along.size);
  Sizes parts;
  for (int64_t i = 0; i < sections; ++i) {
    // (size - i) / sections rounded up: one more for the first size mod sections.
    AffineExpr part = simplifySize((along.size + (sections - 1 - i)).floorDiv(sections));
    parts.push_back(size ? b.size((*size + sections - 1 - i) / sections) : part);
  }
  return setParts(ctx, along, parts);
}

LogicalResult tensorSplit(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Along> along = readAlong(c);
  if (failed(along))
    return failure();
  SmallVector<SliceBound> indices;
  if (Value given = c.tensor("tensor_indices_or_sections")) {
    if (!isa<IntegerType>(b.elementOf(given)) || b.rankOf(given) > 1 || !b.typeOf(given).hasStaticShape())
      return ctx.invalid("takes indices as a vector of integers of known length, or a number of sections, but got " +
                         describe(given));
    if (b.rankOf(given) == 0) { // as many as the model was exported with
      const int64_t sections = ctx.numResults();
      b.guard(given, sections,
              "node \"" + ctx.node().getNodeName() + "\": tensor_split was compiled for " + Twine(sections) +
                  " sections; export the model with this number");
      return splitEvenly(ctx, *along, sections);
    }
    for (int64_t i = 0; i < b.typeOf(given).getDimSize(0); ++i) {
      Value index = b.take(given, 0, i);
      std::optional<Sizes> known = ctx.intValues(index);
      indices.push_back({known ? known->front() : AffineExpr(), index});
    }
    return splitAt(ctx, *along, indices);
  }
  if (auto known = ctx.getInts("indices")) { // negative ones are none that Call::sizes takes
    for (int64_t index : *known)
      indices.push_back({b.size(index), {}});
    return splitAt(ctx, *along, indices);
  }
  if (ctx.hasAttr("indices")) {
    FailureOr<Sizes> sizes = c.sizes("indices");
    if (failed(sizes))
      return failure();
    for (AffineExpr index : *sizes)
      indices.push_back({index, {}});
    return splitAt(ctx, *along, indices);
  }
  FailureOr<AffineExpr> sections = readSize(c, "sections", 1);
  if (failed(sections))
    return failure();
  if (!getConstantSize(*sections))
    return ctx.unsupported("in a number of sections that only the run knows is not supported");
  return splitEvenly(ctx, *along, *getConstantSize(*sections));
}

/// hsplit, vsplit and dsplit: along dim 1 (0 of vectors), 0 and 2.
LogicalResult splitAlong(NodeContext &ctx, int64_t dim) {
  Call c(ctx);
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  const int64_t rank = ctx.b.rankOf(*self);
  if (dim == 1 && rank == 1)
    dim = 0;
  if (dim >= rank)
    return ctx.invalid("needs dim " + Twine(dim) + " of the operand " + describe(*self));
  Along along{*self, dim, getSizes(*self)[dim]};
  if (auto indices = ctx.getInts("indices"))
    return splitAt(ctx, along, llvm::map_to_vector(*indices, [&](int64_t i) { return SliceBound{ctx.b.size(i), {}}; }));
  const int64_t sections = c.integer("sections", 1);
  if (auto size = getConstantSize(along.size); size && (sections < 1 || *size % sections != 0))
    return ctx.invalid("does not split dim " + Twine(dim) + " of " + describe(*self) + " in " + Twine(sections) +
                       " equal parts");
  return splitEvenly(ctx, along, sections);
}

//===--- joins ----------------------------------------------------------------------------------------------------===//

/// The tensors along one of their dims; vectors of no elements beside tensors of other ranks count for nothing.
LogicalResult join(NodeContext &ctx, SmallVector<Value> tensors, int64_t dim) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  if (tensors.empty())
    return ctx.invalid("needs a tensor");
  if (failed(promoteTogether(c, tensors)))
    return failure();
  auto isLegacy = [&](Value v) { return b.rankOf(v) == 1 && getConstantSize(getSizes(v)[0]) == 0; };
  SmallVector<Value> kept;
  for (Value v : tensors)
    if (!isLegacy(v))
      kept.push_back(v);
  if (kept.empty())
    return ctx.result(tensors.front());
  FailureOr<int64_t> axis = ctx.axis(dim, b.rankOf(kept.front()));
  if (failed(axis))
    return failure();
  for (Value v : kept)
    if (b.rankOf(v) != b.rankOf(kept.front()))
      return ctx.invalid("tensors differ in rank: " + describe(kept.front()) + " and " + describe(v));
  FailureOr<Value> all = emitConcat(ctx, kept, *axis);
  return failed(all) ? failure() : ctx.result(*all);
}

LogicalResult cat(NodeContext &ctx) {
  Call c(ctx);
  return join(ctx, c.tensors("tensors"), c.integer("dim", 0));
}

LogicalResult stack(NodeContext &ctx) {
  Call c(ctx);
  SmallVector<Value> tensors = c.tensors("tensors");
  if (tensors.empty())
    return ctx.invalid("needs a tensor");
  FailureOr<int64_t> axis = ctx.axis(c.integer("dim", 0), ctx.b.rankOf(tensors.front()) + 1);
  if (failed(axis))
    return failure();
  for (Value &v : tensors) {
    if (ctx.b.rankOf(v) < *axis)
      return ctx.invalid("tensors differ in rank: " + describe(tensors.front()) + " and " + describe(v));
    v = ctx.b.unsqueeze(v, *axis);
  }
  return join(ctx, tensors, *axis);
}

/// hstack, vstack, dstack and column_stack: with `rank` dims or more, along `dim`.
LogicalResult stackAt(NodeContext &ctx, int64_t rank, int64_t dim, bool isColumn = false) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  SmallVector<Value> tensors = c.tensors("tensors");
  for (Value &v : tensors) {
    if (isColumn && b.rankOf(v) < 2)
      v = b.reshape(v, {b.rankOf(v) == 0 ? b.size(1) : getSizes(v)[0], b.size(1)});
    bool isThird = rank == 3 && b.rankOf(v) < 3;
    while (b.rankOf(v) < (isThird ? 2 : rank))
      v = b.unsqueeze(v, 0);
    if (isThird)
      v = b.unsqueeze(v, 2);
  }
  return join(ctx, tensors, dim);
}

LogicalResult hstack(NodeContext &ctx) {
  Call c(ctx);
  SmallVector<Value> tensors = c.tensors("tensors");
  return stackAt(ctx, 1, !tensors.empty() && ctx.b.rankOf(tensors.front()) > 1 ? 1 : 0);
}

LogicalResult blockDiag(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  SmallVector<Value> tensors = c.tensors("tensors");
  if (tensors.empty() || failed(promoteTogether(c, tensors)))
    return tensors.empty() ? ctx.invalid("needs a tensor") : failure();
  AffineExpr columns = b.size(0), before = b.size(0);
  for (Value &v : tensors) {
    if (b.rankOf(v) > 2)
      return ctx.invalid("takes tensors of two dims at most, but got " + describe(v));
    while (b.rankOf(v) < 2)
      v = b.unsqueeze(v, 0);
    columns = simplifySize(columns + getSizes(v)[1]);
  }
  for (Value &v : tensors) {
    Sizes sizes = getSizes(v);
    AffineExpr own = sizes[1];
    sizes[1] = columns;
    v = b.pad(v, b.scalar(b.elementOf(v), 0), {b.size(0), before}, sizes);
    before = simplifySize(before + own);
  }
  return ctx.result(b.concat(tensors, 0));
}

//===--- pads -----------------------------------------------------------------------------------------------------===//

LogicalResult pad(NodeContext &ctx, StringRef name, StringRef mode) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  const int64_t rank = b.rankOf(*self);
  // Negative ones, which cut, are none that Call::sizes takes.
  Sizes pads;
  if (auto known = ctx.getInts(name)) {
    pads = b.sizes(*known);
  } else {
    auto list = dyn_cast_or_null<ArrayAttr>(ctx.attr(name));
    for (size_t i = 0; list && i < list.size(); ++i) {
      auto constant = dyn_cast<IntegerAttr>(list[i]);
      auto symbolic = dyn_cast<StringAttr>(list[i]);
      Value v = symbolic ? c.tensor(symbolic.getValue()) : Value();
      std::optional<Sizes> values = v ? ctx.intValues(v) : std::nullopt;
      if (constant)
        pads.push_back(b.size(constant.getInt()));
      else if (values && values->size() == 1)
        pads.push_back(values->front());
      else if (v)
        pads.push_back(b.bindSymbol("pad", v, INT32_MIN, INT32_MAX));
    }
  }
  if (pads.size() % 2 != 0 || int64_t(pads.size()) > 2 * rank)
    return ctx.invalid("argument \"" + name + "\" has " + Twine(pads.size()) + " entries for the operand " +
                       describe(*self));
  for (AffineExpr e : pads)
    if (auto known = getConstantSize(e); known && (*known < -(int64_t(1) << 40) || *known > int64_t(1) << 40))
      return ctx.invalid("argument \"" + name + "\" holds " + Twine(*known) + ", which is too much");
  Sizes low(rank, b.size(0)), high(rank, b.size(0)), sizes = getSizes(*self);
  for (size_t i = 0; i < pads.size() / 2; ++i) {
    const int64_t dim = rank - 1 - i;
    low[dim] = pads[2 * i];
    high[dim] = pads[2 * i + 1];
    auto least = [&](AffineExpr x, AffineExpr y, const Twine &what) {
      return ctx.require(CompareKind::LE, simplifySize(x), y, what + " in dim " + Twine(dim));
    };
    for (AffineExpr e : {low[dim], high[dim]}) {
      if (mode == "reflect" && getConstantSize(e).value_or(1) > 0 &&
          failed(least(e + 1, sizes[dim], "pads that are smaller than the operand")))
        return failure();
      if (mode == "wrap" && failed(least(e, sizes[dim], "pads that are no larger than the operand")))
        return failure();
      if (mode == "edge" && getConstantSize(e).value_or(1) > 0 && failed(least(b.size(1), sizes[dim], "an element")))
        return failure();
    }
    if (failed(least(-(low[dim] + high[dim]), sizes[dim], "pads that cut no more than there is")))
      return failure();
  }
  Value value = b.scalar(b.elementOf(*self), 0);
  if (mode == "constant" && c.has("value")) {
    FailureOr<Value> given = c.as("value", b.elementOf(*self));
    if (failed(given))
      return failure();
    value = b.reshape(*given, {});
  }
  if (mode == "wrap") {
    // Cut first: what is left is wrapped around.
    Sizes cutLow(rank, b.size(0)), cutHigh(rank, b.size(0));
    for (auto [pads, cuts] : {std::pair(&low, &cutLow), std::pair(&high, &cutHigh)})
      for (auto [pad, cut] : llvm::zip_equal(*pads, *cuts))
        if (getConstantSize(pad).value_or(0) < 0)
          std::swap(pad, cut);
    self = emitPad(ctx, *self, cutLow, cutHigh, value, "constant");
    if (failed(self))
      return failure();
  }
  FailureOr<Value> result = emitPad(ctx, *self, low, high, value, mode);
  return failed(result) ? failure() : ctx.result(*result);
}

LogicalResult padByName(NodeContext &ctx) {
  std::string mode = ctx.getString("mode", "constant");
  StringRef known = llvm::StringSwitch<StringRef>(mode)
                        .Case("constant", "constant")
                        .Case("reflect", "reflect")
                        .Case("replicate", "edge")
                        .Case("circular", "wrap")
                        .Default("");
  if (known.empty())
    return ctx.invalid("argument \"mode\" is \"" + mode +
                       "\"; it may be \"constant\", \"reflect\", \"replicate\" or \"circular\"");
  return pad(ctx, "pad", known);
}

LogicalResult padByNumber(NodeContext &ctx) {
  static constexpr StringLiteral kModes[] = {"reflect", "edge", "wrap", "constant"};
  int64_t mode = ctx.getInt("mode", -1);
  if (mode < 0 || mode >= int64_t(std::size(kModes)))
    return ctx.invalid("argument \"mode\" is " + Twine(mode) + "; it lies in [0, 4)");
  return pad(ctx, "pad", kModes[mode]);
}

//===--- order ----------------------------------------------------------------------------------------------------===//

Value reverseAlong(PrimBuilder &b, Value v, int64_t axis) {
  AffineExpr size = getSizes(v)[axis];
  if (getConstantSize(size).value_or(2) <= 1)
    return v;
  return b.sliceDim(v, axis, simplifySize(size - 1), size, -1);
}

LogicalResult flip(NodeContext &ctx, ArrayRef<int64_t> dims) {
  Call c(ctx);
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  const int64_t rank = ctx.b.rankOf(*self);
  FailureOr<SmallVector<int64_t>> axes = ctx.axes(dims, std::max<int64_t>(rank, 1));
  if (failed(axes))
    return failure();
  Value v = *self;
  for (int64_t axis : *axes)
    if (rank > 0)
      v = reverseAlong(ctx.b, v, axis);
  return ctx.result(v);
}

LogicalResult rot90(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  FailureOr<SmallVector<int64_t>> axes =
      ctx.axes(c.integers("dims").value_or(SmallVector<int64_t>{0, 1}), b.rankOf(*self));
  if (failed(axes))
    return failure();
  if (axes->size() != 2)
    return ctx.invalid("argument \"dims\" has " + Twine(axes->size()) + " entries; it needs 2");
  const int64_t turns = (c.integer("k", 1) % 4 + 4) % 4;
  SmallVector<int64_t> swap = llvm::to_vector(llvm::seq<int64_t>(0, b.rankOf(*self)));
  std::swap(swap[(*axes)[0]], swap[(*axes)[1]]);
  Value v = *self;
  if (turns == 2)
    v = reverseAlong(b, reverseAlong(b, v, (*axes)[0]), (*axes)[1]);
  else if (turns != 0)
    v = b.transpose(reverseAlong(b, v, (*axes)[turns == 1 ? 1 : 0]), swap);
  return ctx.result(v);
}

LogicalResult roll(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  SmallVector<SliceBound> shifts;
  if (auto known = ctx.getInts("shifts")) {
    for (int64_t shift : *known)
      shifts.push_back({b.size(shift), {}});
  } else if (auto list = dyn_cast_or_null<ArrayAttr>(ctx.attr("shifts"))) {
    for (Attribute entry : list) {
      auto symbolic = dyn_cast<StringAttr>(entry);
      Value v = symbolic ? c.tensor(symbolic.getValue()) : Value();
      auto constant = dyn_cast<IntegerAttr>(entry);
      shifts.push_back({constant ? b.size(constant.getInt()) : AffineExpr(), v});
    }
  }
  SmallVector<int64_t> dims = c.integers("dims").value_or(SmallVector<int64_t>());
  Value v = *self;
  const Sizes sizes = getSizes(v);
  const bool isFlat = dims.empty();
  if (isFlat) {
    v = flattened(b, v);
    dims = {0};
  }
  if (shifts.size() != dims.size())
    return ctx.invalid("shifts and dims have " + Twine(shifts.size()) + " and " + Twine(dims.size()) + " entries");
  for (auto [shift, dim] : llvm::zip_equal(shifts, dims)) {
    FailureOr<int64_t> axis = wrapDim(ctx, dim, b.rankOf(v));
    if (failed(axis))
      return failure();
    if (b.rankOf(v) == 0)
      continue;
    AffineExpr size = getSizes(v)[*axis];
    auto by = shift.expr ? getConstantSize(shift.expr) : std::nullopt;
    if (auto n = getConstantSize(size); n && by) {
      const int64_t right = *n == 0 ? 0 : (*by % *n + *n) % *n;
      if (right == 0)
        continue;
      v = b.concat({b.sliceDim(v, *axis, b.size(*n - right), b.size(right)),
                    b.sliceDim(v, *axis, b.size(0), b.size(*n - right))},
                   *axis);
      continue;
    }
    Value n = filled(b, size, {size});
    Value index = b.sub(b.iota(b.getI64Type(), {size}, 0), b.broadcastTo(boundValue(b, shift), {size}));
    index = b.binary<RemOp>(b.add(b.binary<RemOp>(index, n), n), n);
    v = GatherOp::create(b, v, index, *axis);
  }
  return ctx.result(isFlat ? b.reshape(v, sizes) : v);
}

//===--- repeats --------------------------------------------------------------------------------------------------===//

/// [d] as [1, d], repeated to [r, d], read as [r * d]; further repeats than dims give dims in front.
LogicalResult repeat(NodeContext &ctx, StringRef name, bool isTile) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.required("self");
  FailureOr<Sizes> repeats = c.sizes(name);
  if (failed(self) || failed(repeats))
    return failure();
  Sizes in = getSizes(*self);
  for (AffineExpr e : *repeats)
    if (getConstantSize(e).value_or(0) < 0)
      return ctx.invalid("argument \"" + name + "\" holds a negative number");
  if (isTile)
    while (repeats->size() < in.size())
      repeats->insert(repeats->begin(), b.size(1));
  if (repeats->size() < in.size())
    return ctx.invalid("argument \"" + name + "\" has " + Twine(repeats->size()) + " entries for the operand " +
                       describe(*self));
  in.insert(in.begin(), repeats->size() - in.size(), b.size(1));
  Sizes split, repeated, joined;
  for (auto [r, d] : llvm::zip_equal(*repeats, in)) {
    if (getConstantSize(r) != 1) {
      split.push_back(b.size(1));
      repeated.push_back(r);
    }
    split.push_back(d);
    repeated.push_back(d);
    joined.push_back(simplifySize(r * d));
  }
  return ctx.result(b.reshape(b.broadcastTo(b.reshape(*self, split), repeated), joined));
}

/// Numbers of a list of counts, each as often as its count says: [1, 0, 2] gives 0 2 2.
FailureOr<Value> repeatNumbers(Call &c, Value repeats) {
  NodeContext &ctx = c.ctx;
  PrimBuilder &b = c.b;
  Type i64 = b.getI64Type();
  if (!isa<IntegerType>(b.elementOf(repeats)) || b.rankOf(repeats) != 1)
    return ctx.invalid("argument \"repeats\" must be a vector of integers, but is " + describe(repeats));
  repeats = b.convert(repeats, i64);
  Value ends =
      ScanOp::create(b, repeats.getType(), ReduceKind::Sum, repeats, 0, /*exclusive=*/false, /*reverse=*/false);
  Value sum = b.reduce(ReduceKind::Sum, repeats, {0});
  AffineExpr total;
  if (std::optional<Sizes> known = ctx.intValues(sum)) {
    total = known->front();
  } else if (ctx.hasAttr("output_size")) {
    FailureOr<AffineExpr> given = readSize(c, "output_size", 0, /*bind=*/0);
    if (failed(given))
      return failure();
    total = *given;
    Value same = b.compare(CompareKind::EQ, sum, b.sizeValue(total));
    b.guard(same, 1, "node \"" + ctx.node().getNodeName() + "\": output_size is not the sum of the repeats");
  } else {
    total = b.bindSymbol("repeated", sum);
  }
  // How many ends lie at or before each place.
  Sizes longer{simplifySize(total + 1)};
  Value marks = ScatterElementsOp::create(b, makeType(i64, longer), b.splat(i64, longer, 0), ends, b.splatLike(ends, 1),
                                          0, ReduceKindAttr::get(b.getContext(), ReduceKind::Sum));
  marks = b.sliceDim(marks, 0, b.size(0), total);
  return Value(ScanOp::create(b, marks.getType(), ReduceKind::Sum, marks, 0, /*exclusive=*/false, /*reverse=*/false));
}

LogicalResult repeatInterleave(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  Value v = *self;
  int64_t axis = 0;
  if (ctx.hasAttr("dim")) {
    FailureOr<int64_t> given = wrapDim(ctx, c.integer("dim", 0), b.rankOf(v));
    if (failed(given))
      return failure();
    axis = *given;
  } else {
    v = flattened(b, v);
  }
  if (b.rankOf(v) == 0)
    v = b.reshape(v, {b.size(1)});
  Sizes sizes = getSizes(v);
  Value counts = isa_and_nonnull<StringAttr>(ctx.attr("repeats")) ? Value() : c.tensor("repeats");
  if (!counts || (b.typeOf(counts).hasStaticShape() && b.typeOf(counts).getNumElements() == 1)) {
    AffineExpr by;
    if (counts) {
      std::optional<Sizes> known = ctx.intValues(counts);
      by = known ? known->front() : b.bindSymbol("repeats", counts);
    } else {
      FailureOr<AffineExpr> given = readSize(c, "repeats", 1, /*bind=*/0);
      if (failed(given))
        return failure();
      by = *given;
    }
    if (getConstantSize(by).value_or(0) < 0)
      return ctx.invalid("argument \"repeats\" is negative");
    Sizes wide = sizes;
    wide.insert(wide.begin() + axis + 1, by);
    sizes[axis] = simplifySize(sizes[axis] * by);
    SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, sizes.size()));
    for (int64_t &d : MutableArrayRef(dims).drop_front(axis + 1))
      ++d;
    return ctx.result(b.reshape(b.broadcastInDims(v, wide, dims), sizes));
  }
  if (b.rankOf(counts) == 1 &&
      failed(ctx.requireEqual(getSizes(counts)[0], sizes[axis], "as many repeats as elements of the dim")))
    return failure();
  FailureOr<Value> index = repeatNumbers(c, counts);
  return failed(index) ? failure() : ctx.result(GatherOp::create(b, v, *index, axis));
}

LogicalResult repeatInterleaveNumbers(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> repeats = c.required("repeats");
  if (failed(repeats))
    return failure();
  FailureOr<Value> numbers = repeatNumbers(c, *repeats);
  return failed(numbers) ? failure() : ctx.result(ctx.b.convert(*numbers, ctx.b.elementOf(*repeats)));
}

//===--- windows --------------------------------------------------------------------------------------------------===//

/// [outer, inner]: outer * by + inner * step.
Value windowIndex(PrimBuilder &b, AffineExpr outer, int64_t by, AffineExpr inner, int64_t step) {
  Type i64 = b.getI64Type();
  return b.add(b.binary<MulOp>(b.iota(i64, {outer, inner}, 0), double(by)),
               b.binary<MulOp>(b.iota(i64, {outer, inner}, 1), double(step)));
}

LogicalResult unfold(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  Value v = *self;
  FailureOr<int64_t> axis = wrapDim(ctx, c.integer("dimension", 0), b.rankOf(v));
  if (failed(axis))
    return failure();
  const bool isNumber = b.rankOf(v) == 0;
  if (isNumber)
    v = b.reshape(v, {b.size(1)});
  const int64_t size = c.integer("size", 1), step = c.integer("step", 1);
  AffineExpr extent = getSizes(v)[*axis];
  if (size < 0 || step < 1)
    return ctx.invalid("size is " + Twine(size) + " and step " + Twine(step) +
                       "; they must be 0 or more, and 1 or more");
  if (failed(ctx.require(CompareKind::LE, b.size(size), extent, "windows that are no larger than their dim")))
    return failure();
  AffineExpr count = simplifySize((extent - size).floorDiv(step) + 1);
  Value windows = GatherOp::create(b, v, windowIndex(b, count, step, b.size(size), 1), *axis);
  windows = moveDim(b, windows, *axis + 1, b.rankOf(windows) - 1);
  return ctx.result(isNumber ? dropDim(b, windows, 0) : windows);
}

/// One dim of im2col and col2im.
struct WindowDim {
  int64_t kernel, dilation, padding, stride;
  AffineExpr padded, count;
};

FailureOr<SmallVector<WindowDim>> readWindows(Call &c, SizesRef spatial) {
  NodeContext &ctx = c.ctx;
  SmallVector<WindowDim> dims;
  auto list = [&](StringRef name, int64_t otherwise) {
    SmallVector<int64_t> all = c.integers(name).value_or(SmallVector<int64_t>());
    if (all.empty())
      all.push_back(c.integer(name, otherwise));
    if (all.size() == 1)
      all.push_back(all[0]);
    return all;
  };
  SmallVector<int64_t> kernel = list("kernel_size", 1), dilation = list("dilation", 1), padding = list("padding", 0),
                       stride = list("stride", 1);
  for (size_t i : {0, 1}) {
    if (kernel[i] < 1 || dilation[i] < 1 || padding[i] < 0 || stride[i] < 1)
      return ctx.invalid("kernel_size, dilation and stride must be 1 or more, padding 0 or more");
    AffineExpr padded = simplifySize(spatial[i] + 2 * padding[i]);
    AffineExpr room = simplifySize(padded - (dilation[i] * (kernel[i] - 1) + 1));
    if (failed(ctx.require(CompareKind::LE, c.b.size(0), room, "windows that are no larger than the padded operand")))
      return failure();
    dims.push_back({kernel[i], dilation[i], padding[i], stride[i], padded, simplifySize(room.floorDiv(stride[i]) + 1)});
  }
  return dims;
}

LogicalResult im2col(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  Value v = *self;
  const bool hasBatch = b.rankOf(v) == 4;
  if (!hasBatch && b.rankOf(v) != 3)
    return ctx.invalid("takes an operand of rank 3 or 4, but got " + describe(v));
  if (!hasBatch)
    v = b.unsqueeze(v, 0);
  Sizes sizes = getSizes(v);
  FailureOr<SmallVector<WindowDim>> dims = readWindows(c, SizesRef(sizes).drop_front(2));
  if (failed(dims))
    return failure();
  const WindowDim &h = (*dims)[0], &w = (*dims)[1];
  v = b.pad(v, b.scalar(b.elementOf(v), 0), {b.size(0), b.size(0), b.size(h.padding), b.size(w.padding)},
            {sizes[0], sizes[1], h.padded, w.padded});
  v = GatherOp::create(b, v, windowIndex(b, b.size(h.kernel), h.dilation, h.count, h.stride), 2);
  v = GatherOp::create(b, v, windowIndex(b, b.size(w.kernel), w.dilation, w.count, w.stride), 4);
  v = b.transpose(v, {0, 1, 2, 4, 3, 5});
  v = b.reshape(v, {sizes[0], simplifySize(sizes[1] * (h.kernel * w.kernel)), simplifySize(h.count * w.count)});
  return ctx.result(hasBatch ? v : dropDim(b, v, 0));
}

LogicalResult col2im(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  Type i64 = b.getI64Type();
  FailureOr<Value> self = c.required("self");
  FailureOr<Sizes> out = c.sizes("output_size");
  if (failed(self) || failed(out))
    return failure();
  Value v = *self;
  const bool hasBatch = b.rankOf(v) == 3;
  if ((!hasBatch && b.rankOf(v) != 2) || out->size() != 2)
    return ctx.invalid("takes an operand of rank 2 or 3 and an output_size of 2 entries, but got " + describe(v));
  if (!hasBatch)
    v = b.unsqueeze(v, 0);
  FailureOr<SmallVector<WindowDim>> dims = readWindows(c, *out);
  if (failed(dims))
    return failure();
  const WindowDim &h = (*dims)[0], &w = (*dims)[1];
  Sizes sizes = getSizes(v);
  const int64_t kernel = h.kernel * w.kernel;
  AffineExpr channels = ctx.divide(sizes[1], b.size(kernel)), windows = simplifySize(h.count * w.count);
  if (failed(ctx.requireEqual(simplifySize(channels * kernel), sizes[1], "channels that the kernel divides")) ||
      failed(ctx.requireEqual(windows, sizes[2], "as many windows as columns")))
    return failure();
  AffineExpr planes = simplifySize(sizes[0] * channels), area = simplifySize(h.padded * w.padded),
             each = simplifySize(windows * kernel);
  v = b.reshape(v, {planes, each});
  // The place of [kh, kw, oh, ow] in the padded plane.
  Sizes grid{b.size(h.kernel), b.size(w.kernel), h.count, w.count};
  auto at = [&](const WindowDim &dim, int64_t inner, int64_t outer) {
    return b.add(b.binary<MulOp>(b.iota(i64, grid, inner), double(dim.dilation)),
                 b.binary<MulOp>(b.iota(i64, grid, outer), double(dim.stride)));
  };
  Value place = b.add(b.mul(at(h, 0, 2), filled(b, w.padded, grid)), at(w, 1, 3));
  place = b.broadcastTo(b.reshape(place, {each}), {planes, each});
  Value sum =
      ScatterElementsOp::create(b, makeType(b.elementOf(v), {planes, area}), b.splat(b.elementOf(v), {planes, area}, 0),
                                place, v, 1, ReduceKindAttr::get(b.getContext(), ReduceKind::Sum));
  sum = b.reshape(sum, {sizes[0], channels, h.padded, w.padded});
  sum = b.slice(sum, {b.size(0), b.size(0), b.size(h.padding), b.size(w.padding)}, {1, 1, 1, 1},
                {sizes[0], channels, (*out)[0], (*out)[1]});
  return ctx.result(hasBatch ? sum : dropDim(b, sum, 0));
}

//===--- channels -------------------------------------------------------------------------------------------------===//

LogicalResult pixelShuffle(NodeContext &ctx, bool isShuffle) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  const int64_t k = c.integer(isShuffle ? "upscale_factor" : "downscale_factor", 1), rank = b.rankOf(*self);
  if (rank < 3 || k < 1 || k > (int64_t(1) << 20))
    return ctx.invalid("takes an operand of rank 3 or more and a factor from 1 on, but got " + describe(*self) +
                       " and " + Twine(k));
  Sizes sizes = getSizes(*self), lead(sizes.begin(), sizes.end() - 3);
  AffineExpr channels = sizes[rank - 3], h = sizes[rank - 2], w = sizes[rank - 1], factor = b.size(k);
  auto with = [&](ArrayRef<AffineExpr> tail) {
    Sizes all = lead;
    all.append(tail.begin(), tail.end());
    return all;
  };
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, rank - 3));
  static constexpr int64_t kOrders[2][5] = {{0, 2, 4, 1, 3}, {0, 3, 1, 4, 2}};
  for (int64_t d : kOrders[isShuffle])
    order.push_back(rank - 3 + d);
  AffineExpr c1 = ctx.divide(channels, b.size(k * k)), h1 = ctx.divide(h, factor), w1 = ctx.divide(w, factor);
  FailureOr<Value> split =
      ctx.reshape(*self, isShuffle ? with({c1, factor, factor, h, w}) : with({channels, h1, factor, w1, factor}));
  if (failed(split))
    return failure();
  Value moved = b.transpose(*split, order);
  return ctx.result(b.reshape(moved, isShuffle ? with({c1, simplifySize(h * k), simplifySize(w * k)})
                                               : with({simplifySize(channels * (k * k)), h1, w1})));
}

LogicalResult channelShuffle(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.required("self");
  FailureOr<AffineExpr> groups = readSize(c, "groups", 1);
  if (failed(self) || failed(groups))
    return failure();
  auto count = getConstantSize(*groups);
  if (!count || *count < 1 || b.rankOf(*self) < 3)
    return ctx.invalid("takes an operand of rank 3 or more and a constant number of groups from 1 on");
  Sizes sizes = getSizes(*self), split(sizes);
  split[1] = b.size(*count);
  split.insert(split.begin() + 2, ctx.divide(sizes[1], b.size(*count)));
  FailureOr<Value> grouped = ctx.reshape(*self, split);
  if (failed(grouped))
    return failure();
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, split.size()));
  std::swap(order[1], order[2]);
  return ctx.result(b.reshape(b.transpose(*grouped, order), sizes));
}

} // namespace

FailureOr<AffineExpr> tc::resolveIndex(NodeContext &ctx, Value self, int64_t axis, const SliceBound &index) {
  if (!index.expr)
    return AffineExpr();
  PrimBuilder &b = ctx.b;
  const AffineExpr size = getSizes(self)[axis];
  auto [low, high] = b.bounds(index.expr);
  AffineExpr at = high < 0 ? simplifySize(index.expr + size) : low >= 0 ? index.expr : AffineExpr();
  if (!at)
    return at;
  auto known = getConstantSize(index.expr);
  if (known && (b.bounds(at).second < 0 || b.bounds(simplifySize(size - at)).second <= 0))
    return LogicalResult(
        ctx.invalid("index " + Twine(*known) + " is out of range for dim " + Twine(axis) + " of " + describe(self)));
  const std::string what = "an index that is in range for dim " + std::to_string(axis);
  if (failed(ctx.require(CompareKind::LE, b.size(0), at, what)) ||
      failed(ctx.require(CompareKind::LE, simplifySize(at + 1), size, what)))
    return failure();
  return at;
}

void tc::populateATenParts(OpRegistrar &onOp) {
  auto onAll = [&](ArrayRef<StringRef> types, const NodeHandler &handler, size_t minOperands = 1) {
    for (StringRef type : types) {
      onOp(type, /*sinceVersion=*/1, handler, minOperands);
      onOp.takeComplex(ComplexUse::Moved, {type});
    }
  };
  auto on = [&](StringRef type, const NodeHandler &handler, size_t minOperands = 1) {
    onAll({type}, handler, minOperands);
  };
  onAll({"select.int", "select_copy.int"}, selectIndex);
  onAll({"slice.Tensor", "slice_copy.Tensor"}, slice);
  onAll({"narrow.default", "narrow_copy.default", "narrow.Tensor"}, narrow);
  onAll({"chunk.default", "unsafe_chunk.default"}, chunk);
  onAll({"split.Tensor", "unsafe_split.Tensor", "split_copy.Tensor"}, split);
  onAll(
      {"split_with_sizes.default", "unsafe_split_with_sizes.default", "split_with_sizes_copy.default", "split.default"},
      [](NodeContext &ctx) { return splitWithSizes(ctx, "split_sizes"); });
  on("split.sizes", [](NodeContext &ctx) { return splitWithSizes(ctx, "split_size"); });
  onAll({"tensor_split.sections", "tensor_split.indices", "tensor_split.tensor_indices_or_sections"}, tensorSplit);
  onAll({"hsplit.int", "hsplit.array"}, [](NodeContext &ctx) { return splitAlong(ctx, 1); });
  onAll({"vsplit.int", "vsplit.array"}, [](NodeContext &ctx) { return splitAlong(ctx, 0); });
  onAll({"dsplit.int", "dsplit.array"}, [](NodeContext &ctx) { return splitAlong(ctx, 2); });

  onAll({"cat.default", "concat.default", "concatenate.default"}, cat);
  on("stack.default", stack);
  on("hstack.default", hstack);
  onAll({"vstack.default", "row_stack.default"}, [](NodeContext &ctx) { return stackAt(ctx, 2, 0); });
  on("dstack.default", [](NodeContext &ctx) { return stackAt(ctx, 3, 2); });
  on("column_stack.default", [](NodeContext &ctx) { return stackAt(ctx, 2, 1, /*isColumn=*/true); });
  on("block_diag.default", blockDiag);

  on("constant_pad_nd.default", [](NodeContext &ctx) { return pad(ctx, "pad", "constant"); });
  on("pad.default", padByName);
  on("_pad_enum.default", padByNumber);
  on("_pad_circular.default", [](NodeContext &ctx) { return pad(ctx, "pad", "wrap"); });
  onAll({"reflection_pad1d.default", "reflection_pad2d.default", "reflection_pad3d.default"},
        [](NodeContext &ctx) { return pad(ctx, "padding", "reflect"); });
  onAll({"replication_pad1d.default", "replication_pad2d.default", "replication_pad3d.default"},
        [](NodeContext &ctx) { return pad(ctx, "padding", "edge"); });

  on("flip.default", [](NodeContext &ctx) { return flip(ctx, ctx.getInts("dims").value_or(SmallVector<int64_t>())); });
  on("fliplr.default", [](NodeContext &ctx) { return flip(ctx, {1}); });
  on("flipud.default", [](NodeContext &ctx) { return flip(ctx, {0}); });
  on("rot90.default", rot90);
  on("roll.default", roll);
  on("repeat.default", [](NodeContext &ctx) { return repeat(ctx, "repeats", /*isTile=*/false); });
  on("tile.default", [](NodeContext &ctx) { return repeat(ctx, "dims", /*isTile=*/true); });
  onAll({"repeat_interleave.self_int", "repeat_interleave.self_Tensor"}, repeatInterleave);
  onOp("repeat_interleave.Tensor", 1, repeatInterleaveNumbers);

  onAll({"unfold.default", "unfold_copy.default"}, unfold);
  on("im2col.default", im2col);
  onOp("col2im.default", 1, col2im);
  on("pixel_shuffle.default", [](NodeContext &ctx) { return pixelShuffle(ctx, true); });
  on("pixel_unshuffle.default", [](NodeContext &ctx) { return pixelShuffle(ctx, false); });
  onAll({"channel_shuffle.default", "native_channel_shuffle.default"}, channelShuffle);
}
