//===- ATenScatterViews.cpp - ATen's writes to parts of a tensor, as values ---------------------------------------===//
//
// What tc-functionalize-graph makes of writes through views: a tensor with the elements of a view replaced. And copy,
// which takes shape and element type of the tensor that it stands for.
//
// Source: the native function schemas of PyTorch (aten/src/ATen/native/native_functions.yaml).
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ATenMovement.h"
#include "OpRegistry.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

/// The tensor, and the new elements of its view, in its element type.
struct Operands {
  Value self, src;
};
FailureOr<Operands> readOperands(Call &c) {
  FailureOr<Value> self = c.required("self"), src = c.required("src");
  if (failed(self) || failed(src))
    return failure();
  src = c.convert(*src, c.b.elementOf(*self));
  if (failed(src))
    return failure();
  return Operands{*self, *src};
}

/// `src` with the sizes of the view that it replaces.
FailureOr<Value> asView(NodeContext &ctx, Value src, SizesRef sizes) {
  if (ctx.b.rankOf(src) != int64_t(sizes.size()))
    return ctx.invalid("argument \"src\" is " + describe(src) + ", but the view that it replaces has " +
                       Twine(sizes.size()) + " dims");
  return ctx.castSizes(src, sizes);
}

/// i64 [n], along dim `axis` of `sizes`: the positions there.
Value positions(PrimBuilder &b, SizesRef sizes, int64_t axis) { return b.iota(b.getI64Type(), sizes, axis); }

/// `self` with `count` elements along `axis` from `start` on, `step` apart, replaced by `src`.
Value replaceAlong(PrimBuilder &b, Value self, Value src, int64_t axis, AffineExpr start, AffineExpr count,
                   int64_t step) {
  Sizes sizes = getSizes(self);
  AffineExpr size = sizes[axis], end = simplifySize(start + count);
  if (count == b.size(0))
    return self;
  if (step == 1 || count == b.size(1)) {
    SmallVector<Value> parts;
    auto add = [&](AffineExpr from, AffineExpr length) {
      if (length != b.size(0))
        parts.push_back(b.sliceDim(self, axis, from, length));
    };
    add(b.size(0), start);
    parts.push_back(src);
    if (step != 1)
      end = simplifySize(start + 1);
    add(end, simplifySize(size - end));
    return parts.size() == 1 ? src : b.concat(parts, axis);
  }
  // One element more, so that there is one to read where the view is empty, and behind its end.
  Sizes padded = getSizes(src);
  padded[axis] = simplifySize(count + 1);
  SmallVector<AffineExpr> low(padded.size(), b.size(0));
  Value source = b.pad(src, b.scalar(b.elementOf(src), 0), low, padded);
  Value offset = b.sub(positions(b, {size}, 0), b.broadcastTo(b.sizeValue(start), {size}));
  Value index = b.binary<DivOp>(b.max(offset, b.splatLike(offset, 0)), double(step));
  Value at = b.add(b.broadcastTo(b.sizeValue(start), {size}), b.binary<MulOp>(index, double(step)));
  Value inside = b.compare(CompareKind::EQ, at, positions(b, {size}, 0)),
        last = b.broadcastTo(b.sizeValue(count), {size});
  inside = b.binary<AndOp>(inside, b.compare(CompareKind::LT, index, last));
  Value gathered = GatherOp::create(b, source, b.min(index, last), axis);
  return b.select(b.broadcastInDims(inside, sizes, {axis}), gathered, self);
}

LogicalResult sliceScatter(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Operands> given = readOperands(c);
  if (failed(given))
    return failure();
  auto [self, src] = *given;
  FailureOr<int64_t> axis = ctx.axis(c.integer("dim", 0), b.rankOf(self));
  if (failed(axis))
    return failure();
  FailureOr<AffineExpr> step = readSize(c, "step", 1);
  if (failed(step))
    return failure();
  auto by = getConstantSize(*step);
  if (!by)
    return ctx.unsupported("with a step that only the run knows is not supported");
  if (*by < 1)
    return ctx.invalid("argument \"step\" is " + Twine(*by) + "; it must be 1 or more");
  Sizes sizes = getSizes(self);
  FailureOr<SliceDim> dim = resolveSlice(ctx, self, sizes[*axis], readBound(c, "start", 0),
                                         readBound(c, "end", INT64_MAX), *by, std::nullopt);
  if (failed(dim))
    return failure();
  sizes[*axis] = dim->count;
  FailureOr<Value> view = asView(ctx, src, sizes);
  const int64_t apart = *by >= kLongestStep ? 1 : *by;
  return failed(view) ? failure() : ctx.result(replaceAlong(b, self, *view, *axis, dim->start, dim->count, apart));
}

LogicalResult selectScatter(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Operands> given = readOperands(c);
  if (failed(given))
    return failure();
  auto [self, src] = *given;
  FailureOr<int64_t> axis = ctx.axis(c.integer("dim", 0), b.rankOf(self));
  if (failed(axis))
    return failure();
  Sizes sizes = getSizes(self), part = sizes;
  AffineExpr size = sizes[*axis];
  part.erase(part.begin() + *axis);
  FailureOr<Value> view = asView(ctx, src, part);
  if (failed(view))
    return failure();
  Value row = b.unsqueeze(*view, *axis);
  SliceBound index = readBound(c, "index", 0);
  FailureOr<AffineExpr> at = resolveIndex(ctx, self, *axis, index);
  if (failed(at))
    return failure();
  if (*at)
    return ctx.result(replaceAlong(b, self, row, *axis, *at, b.size(1), 1));
  // Only the run knows it, or its sign.
  Value wanted = boundValue(b, index);
  wanted = b.select(b.compare(CompareKind::LT, wanted, 0), b.add(wanted, b.sizeValue(size)), wanted);
  Value here = b.compare(CompareKind::EQ, positions(b, {size}, 0), b.broadcastTo(wanted, {size}));
  return ctx.result(b.select(b.broadcastInDims(here, sizes, {*axis}), b.broadcastTo(row, sizes), self));
}

LogicalResult diagonalScatter(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Operands> given = readOperands(c);
  if (failed(given))
    return failure();
  auto [self, src] = *given;
  const int64_t rank = b.rankOf(self), offset = c.integer("offset", 0);
  FailureOr<int64_t> rows = ctx.axis(c.integer("dim1", 0), rank), columns = ctx.axis(c.integer("dim2", 1), rank);
  if (failed(rows) || failed(columns))
    return failure();
  if (*rows == *columns)
    return ctx.invalid("dim1 and dim2 are one dim");
  SmallVector<int64_t> order, inverse(rank);
  for (int64_t d = 0; d < rank; ++d)
    if (d != *rows && d != *columns)
      order.push_back(d);
  order.append({*rows, *columns});
  for (auto [to, from] : llvm::enumerate(order))
    inverse[from] = to;
  Value matrix = b.transpose(self, order);
  Sizes sizes = getSizes(matrix);
  AffineExpr down = b.size(std::max<int64_t>(-offset, 0)), right = b.size(std::max<int64_t>(offset, 0));
  AffineExpr length =
      notNegative(b, smallerSize(b, simplifySize(sizes[rank - 2] - down), simplifySize(sizes[rank - 1] - right)));
  Sizes part(sizes.begin(), sizes.end() - 2);
  part.push_back(length);
  FailureOr<Value> view = asView(ctx, src, part);
  if (failed(view))
    return failure();
  if (length == b.size(0))
    return ctx.result(self);
  // Row r has the element r - down of the diagonal; one more, so that there is one to read where it is empty, and for
  // rows below it.
  Sizes padded = part;
  padded.back() = simplifySize(length + 1);
  SmallVector<AffineExpr> low(padded.size(), b.size(0));
  Value source = b.pad(*view, b.scalar(b.elementOf(self), 0), low, padded);
  Value index = b.binary<SubOp>(positions(b, {sizes[rank - 2]}, 0), double(-std::min<int64_t>(offset, 0)));
  index = b.min(b.binary<MaxOp>(index, 0), b.broadcastTo(b.sizeValue(length), {sizes[rank - 2]}));
  Value byRow = GatherOp::create(b, source, index, rank - 2);
  SmallVector<int64_t> leading = llvm::to_vector(llvm::seq<int64_t>(0, rank - 1));
  Value here =
      b.compare(CompareKind::EQ, b.sub(positions(b, sizes, rank - 1), positions(b, sizes, rank - 2)), double(offset));
  return ctx.result(b.transpose(b.select(here, b.broadcastInDims(byRow, sizes, leading), matrix), inverse));
}

LogicalResult asStridedScatter(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Operands> given = readOperands(c);
  if (failed(given))
    return failure();
  auto [self, src] = *given;
  std::optional<SmallVector<int64_t>> size = c.integers("size"), stride = c.integers("stride");
  auto count = getConstantSize(ctx.countElements(self));
  if (!size || !stride || !count || isa_and_nonnull<StringAttr>(ctx.attr("storage_offset")))
    return ctx.unsupported("with sizes, strides or an offset that only the run knows is not supported; write through "
                           "slices");
  if (size->size() != stride->size())
    return ctx.invalid("size and stride have " + Twine(size->size()) + " and " + Twine(stride->size()) + " entries");
  FailureOr<Value> view = asView(ctx, src, b.sizes(*size));
  if (failed(view))
    return failure();
  if (llvm::is_contained(*size, 0))
    return ctx.result(self);
  const int64_t first = c.integer("storage_offset", 0);
  int64_t last = first, elements = 1;
  for (auto [n, step] : llvm::zip_equal(*size, *stride)) {
    int64_t reach;
    if (n < 0 || step < 0 || first < 0)
      return ctx.invalid("size, stride or storage_offset is negative");
    if (llvm::MulOverflow(n - 1, step, reach) || llvm::AddOverflow(last, reach, last))
      return ctx.invalid("the strides reach beyond any memory");
    elements *= n;
  }
  if (last >= *count)
    return ctx.unsupported("of elements beyond the operand " + describe(self) + " is not supported");
  // Dims by stride: each must reach beyond all smaller ones.
  SmallVector<std::pair<int64_t, int64_t>> dims;
  for (auto [n, step] : llvm::zip_equal(*size, *stride))
    if (n > 1)
      dims.push_back({step, n});
  llvm::sort(dims);
  int64_t reach = 0;
  for (auto [step, n] : dims) {
    if (step <= reach)
      return ctx.invalid("writes elements that share memory");
    reach += step * (n - 1);
  }
  Sizes out = b.sizes(*size);
  Value index = b.splat(b.getI64Type(), out, double(first));
  for (auto [d, step] : llvm::enumerate(*stride))
    if ((*size)[d] > 1)
      index = b.add(index, b.binary<MulOp>(b.iota(b.getI64Type(), out, d), double(step)));
  Value flat = b.reshape(self, {b.size(*count)});
  Value result = ScatterElementsOp::create(b, flat.getType(), flat, b.reshape(index, {b.size(elements)}),
                                           b.reshape(*view, {b.size(elements)}), 0, ReduceKindAttr());
  return ctx.result(b.reshape(result, getSizes(self)));
}

/// "self" with another number where all indices are the same; with `wrap` a matrix has another diagonal below each.
LogicalResult fillDiagonal(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  const Sizes sizes = getSizes(*self);
  FailureOr<Value> number = c.as("fill_value", b.elementOf(*self));
  if (failed(number))
    return failure();
  if (sizes.size() < 2)
    return ctx.invalid("takes a tensor of rank 2 or more, but got " + describe(*self));
  for (AffineExpr size : ArrayRef(sizes).drop_front())
    if (sizes.size() > 2 && failed(ctx.requireEqual(sizes[0], size, "dims of one size")))
      return failure();
  auto index = [&](int64_t dim) { return b.iota(b.getI64Type(), sizes, dim); };
  Value isHere;
  if (c.flag("wrap") && sizes.size() == 2) {
    auto spread = [&](AffineExpr size) { return b.broadcastTo(b.sizeValue(simplifySize(size)), sizes); };
    Value place = b.add(b.mul(index(0), spread(sizes[1])), index(1));
    isHere = b.compare(CompareKind::EQ, b.binary<RemOp>(place, spread(sizes[1] + 1)), 0);
  } else {
    for (int64_t dim = 1; dim < int64_t(sizes.size()); ++dim) {
      Value same = b.compare(CompareKind::EQ, index(0), index(dim));
      isHere = isHere ? b.binary<AndOp>(isHere, same) : same;
    }
  }
  return ctx.result(b.select(isHere, b.broadcastTo(*number, sizes), *self));
}

} // namespace

void tc::populateATenScatterViews(OpRegistrar &onOp) {
  auto on = [&](StringRef type, NodeHandler handler, size_t minOperands) {
    onOp(type, /*sinceVersion=*/1, std::move(handler), minOperands);
  };
  on("slice_scatter.default", sliceScatter, 2);
  on("select_scatter.default", selectScatter, 2);
  on("diagonal_scatter.default", diagonalScatter, 2);
  on("as_strided_scatter.default", asStridedScatter, 2);
  on("fill_diagonal_.default", fillDiagonal, 1); // what functionalisation leaves of it
  onOp.takeComplex(ComplexUse::ByParts, {"slice_scatter.default", "select_scatter.default", "diagonal_scatter.default",
                                         "as_strided_scatter.default"});
}
