//===- ATenMovement.cpp - views of ATen ---------------------------------------------------------------------------===//
//
// Source: the native function schemas of PyTorch (aten/src/ATen/native/native_functions.yaml).
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ATenMovement.h"
#include "OpRegistry.h"

#include <utility>

using namespace mlir;
using namespace tc;
using namespace tc::prim;

Value tc::emitTriangle(PrimBuilder &b, SizesRef sizes, const SliceBound &diagonal, bool below) {
  Type i64 = b.getI64Type();
  Sizes matrix(sizes.end() - 2, sizes.end());
  Value shift = b.sub(b.iota(i64, matrix, 1), b.iota(i64, matrix, 0));
  Value kept =
      b.compare(below ? CompareKind::LE : CompareKind::GE, shift, b.broadcastTo(boundValue(b, diagonal), matrix));
  return b.broadcastTo(kept, sizes);
}

Value tc::emitDiagonal(PrimBuilder &b, Value v, int64_t offset) {
  Sizes sizes = getSizes(v);
  AffineExpr columns = sizes.pop_back_val(), rows = sizes.pop_back_val();
  AffineExpr length = smallerSize(b, simplifySize(rows + std::min<int64_t>(offset, 0)),
                                  simplifySize(columns - std::max<int64_t>(offset, 0)));
  length = notNegative(b, length);
  AffineExpr first = simplifySize(offset >= 0 ? b.size(offset) : columns * -offset);
  int64_t axis = sizes.size();
  sizes.push_back(simplifySize(rows * columns));
  Value flat = b.reshape(v, sizes);
  if (getConstantSize(length) == 0)
    first = b.size(0);
  if (auto step = getConstantSize(columns))
    return b.sliceDim(flat, axis, first, length, *step + 1);
  Value index = b.mul(b.iota(b.getI64Type(), {length}, 0), filled(b, simplifySize(columns + 1), {length}));
  return GatherOp::create(b, flat, b.add(index, filled(b, first, {length})), axis);
}

Value tc::emitDiagonalEmbedding(PrimBuilder &b, Value v, int64_t offset) {
  Sizes sizes = getSizes(v);
  const int64_t rank = sizes.size();
  AffineExpr n = simplifySize(sizes.back() + std::abs(offset));
  Value zero = b.scalar(b.elementOf(v), 0);
  // By column: element i stands in column i + offset, or i.
  Sizes low(rank, b.size(0));
  low.back() = b.size(std::max<int64_t>(offset, 0));
  sizes.back() = n;
  Value byColumn = b.pad(v, zero, low, sizes);
  sizes.push_back(n);
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  dims.back() = rank;
  Value shift = b.sub(b.iota(b.getI64Type(), {n, n}, 1), b.iota(b.getI64Type(), {n, n}, 0));
  Value on = b.broadcastTo(b.compare(CompareKind::EQ, shift, double(offset)), sizes);
  return b.select(on, b.broadcastInDims(byColumn, sizes, dims), b.broadcastTo(zero, sizes));
}

namespace {

LogicalResult viewTo(NodeContext &ctx, StringRef name) {
  Call c(ctx);
  FailureOr<Value> self = c.required("self");
  FailureOr<Sizes> sizes = c.sizes(name);
  if (failed(self) || failed(sizes))
    return failure();
  AffineExpr known = ctx.b.size(1);
  std::optional<size_t> inferred;
  for (auto [i, size] : llvm::enumerate(*sizes)) {
    if (getConstantSize(size) != -1)
      known = known * size;
    else if (std::exchange(inferred, i))
      return ctx.invalid("argument \"" + name + "\" leaves two sizes open");
  }
  if (inferred) {
    known = simplifySize(known);
    if (getConstantSize(known) == 0)
      return ctx.invalid("argument \"" + name + "\" leaves a size open beside one of 0");
    (*sizes)[*inferred] = ctx.divide(ctx.countElements(*self), known);
  }
  FailureOr<Value> view = ctx.reshape(*self, *sizes);
  return failed(view) ? failure() : ctx.result(*view);
}

LogicalResult viewAs(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> self = c.required("self"), other = c.required("other");
  if (failed(self) || failed(other))
    return failure();
  FailureOr<Value> view = ctx.reshape(*self, getSizes(*other));
  return failed(view) ? failure() : ctx.result(*view);
}

/// The bytes of the elements as those of another type.
LogicalResult viewDtype(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> self = c.required("self");
  auto attr = dyn_cast_or_null<TypeAttr>(ctx.attr("dtype"));
  if (failed(self) || !attr)
    return failed(self) ? failure() : ctx.invalid("argument \"dtype\" is missing");
  Type from = ctx.b.elementOf(*self), to = attr.getValue();
  if (from == to)
    return ctx.result(*self);
  if (from.isInteger(1) && to.isInteger(8))
    return ctx.result(ctx.b.convert(*self, to));
  if (from.isInteger(1) || to.isInteger(1) || isa<ComplexType>(to) || getElementBits(from) != getElementBits(to)) {
    std::string text;
    llvm::raw_string_ostream(text) << from << " as " << to;
    return ctx.unsupported("of " + text +
                           " is not supported; supported are element types of the same number of bits that are neither "
                           "bool nor complex");
  }
  return ctx.result(BitcastOp::create(ctx.b, *self, to));
}

LogicalResult flatten(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  const int64_t rank = b.rankOf(*self);
  if (rank == 0)
    return ctx.result(b.reshape(*self, {b.size(1)}));
  FailureOr<int64_t> first = ctx.axis(c.integer("start_dim", 0), rank), last = ctx.axis(c.integer("end_dim", -1), rank);
  if (failed(first) || failed(last))
    return failure();
  if (*first > *last)
    return ctx.invalid("start_dim " + Twine(*first) + " lies behind end_dim " + Twine(*last));
  const Sizes in = getSizes(*self);
  Sizes out(in.begin(), in.begin() + *first);
  out.push_back(product(b.getContext(), SizesRef(in).slice(*first, *last + 1 - *first)));
  out.append(in.begin() + *last + 1, in.end());
  return ctx.result(b.reshape(*self, out));
}

LogicalResult unflatten(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> self = c.required("self");
  FailureOr<Sizes> parts = c.sizes("sizes");
  if (failed(self) || failed(parts))
    return failure();
  FailureOr<int64_t> axis = wrapDim(ctx, c.integer("dim", 0), ctx.b.rankOf(*self));
  if (failed(axis))
    return failure();
  if (parts->empty())
    return ctx.invalid("argument \"sizes\" is empty");
  Sizes sizes = getSizes(*self);
  AffineExpr whole = sizes.empty() ? ctx.b.size(1) : sizes[*axis], known = ctx.b.size(1);
  std::optional<size_t> inferred;
  for (auto [i, size] : llvm::enumerate(*parts)) {
    if (getConstantSize(size) != -1)
      known = simplifySize(known * size);
    else if (std::exchange(inferred, i))
      return ctx.invalid("argument \"sizes\" leaves two sizes open");
  }
  if (inferred) {
    if (getConstantSize(known) == 0)
      return ctx.invalid("argument \"sizes\" leaves a size open beside one of 0");
    (*parts)[*inferred] = ctx.divide(whole, known);
    known = simplifySize(known * (*parts)[*inferred]);
  }
  if (failed(ctx.requireEqual(known, whole, "sizes whose product is that of the dim")))
    return failure();
  if (!sizes.empty())
    sizes.erase(sizes.begin() + *axis);
  sizes.insert(sizes.begin() + *axis, parts->begin(), parts->end());
  return ctx.result(ctx.b.reshape(*self, sizes));
}

LogicalResult expandTo(NodeContext &ctx, Value self, Sizes sizes) {
  Sizes have = getSizes(self);
  if (sizes.size() < have.size())
    return ctx.invalid("argument \"size\" has " + Twine(sizes.size()) + " sizes for " + describe(self));
  const size_t added = sizes.size() - have.size();
  for (auto [i, size] : llvm::enumerate(sizes)) {
    if (getConstantSize(size) != -1)
      continue;
    if (i < added)
      return ctx.invalid("argument \"size\" leaves dim " + Twine(i) + " open, which the operand does not have");
    size = have[i - added];
  }
  FailureOr<Value> wide = ctx.broadcastOnto(self, sizes);
  return failed(wide) ? failure() : ctx.result(*wide);
}

LogicalResult expand(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> self = c.required("self");
  FailureOr<Sizes> sizes = c.sizes("size");
  return failed(self) || failed(sizes) ? failure() : expandTo(ctx, *self, *sizes);
}

LogicalResult expandAs(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> self = c.required("self"), other = c.required("other");
  return failed(self) || failed(other) ? failure() : expandTo(ctx, *self, getSizes(*other));
}

LogicalResult broadcastTensors(NodeContext &ctx) {
  Call c(ctx);
  SmallVector<Value> tensors = c.tensors("tensors");
  if (failed(ctx.broadcastTogether(tensors)))
    return failure();
  for (auto [i, v] : llvm::enumerate(tensors))
    (void)ctx.set(i, v);
  return success();
}

LogicalResult sumToSize(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.required("self");
  FailureOr<Sizes> sizes = c.sizes("size");
  if (failed(self) || failed(sizes))
    return failure();
  Sizes in = getSizes(*self);
  if (sizes->size() > in.size())
    return ctx.invalid("argument \"size\" has more dims than the operand " + describe(*self));
  const size_t added = in.size() - sizes->size();
  SmallVector<int64_t> dims;
  for (size_t i = 0; i < in.size(); ++i) {
    if (i < added || (isOne((*sizes)[i - added]) && !isOne(in[i])))
      dims.push_back(i);
    else if (failed(ctx.requireEqual(in[i], (*sizes)[i - added], "a size of the operand or 1 in dim " + Twine(i))))
      return failure();
  }
  if (dims.empty() && !sizes->empty())
    return ctx.result(*self);
  Value v = isa<IntegerType>(b.elementOf(*self)) ? b.convert(*self, b.getI64Type()) : *self;
  return ctx.result(b.reshape(b.reduce(ReduceKind::Sum, v, dims, /*keepDims=*/true), *sizes));
}

/// Dims of size 1 go, those of `list` or all.
LogicalResult squeeze(NodeContext &ctx, std::optional<SmallVector<int64_t>> list) {
  Call c(ctx);
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  const Sizes in = getSizes(*self);
  SmallVector<int64_t> asked = llvm::to_vector(llvm::seq<int64_t>(0, in.size()));
  if (list) {
    FailureOr<SmallVector<int64_t>> dims = ctx.axes(*list, std::max<int64_t>(in.size(), 1));
    if (failed(dims))
      return failure();
    asked = *dims;
  }
  Sizes out;
  for (auto [i, size] : llvm::enumerate(in)) {
    if (!llvm::is_contained(asked, int64_t(i)) || !isOne(size))
      out.push_back(size);
    // The result's rank is that of the run in which the model was exported.
    auto [low, high] = ctx.b.bounds(size);
    if (llvm::is_contained(asked, int64_t(i)) && low <= 1 && high >= 1 && !isOne(size))
      ctx.b.guard(ctx.b.compare(CompareKind::EQ, ctx.b.sizeValue(size), 1), 0,
                  "node \"" + ctx.node().getNodeName() + "\": squeeze was compiled for sizes other than 1 in dim " +
                      Twine(i) + "; fix the size by --dim or --shape, or export the model with this size");
  }
  return ctx.result(ctx.b.reshape(*self, out));
}

LogicalResult permute(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> self = c.required("self");
  std::optional<SmallVector<int64_t>> dims = c.integers("dims");
  if (failed(self) || !dims)
    return ctx.invalid("needs constant dims");
  if (int64_t(dims->size()) != ctx.b.rankOf(*self))
    return ctx.invalid("argument \"dims\" has " + Twine(dims->size()) + " entries for " + describe(*self));
  FailureOr<SmallVector<int64_t>> permutation = ctx.axes(*dims, dims->size());
  return failed(permutation) ? failure() : ctx.result(ctx.b.transpose(*self, *permutation));
}

LogicalResult swapDims(NodeContext &ctx, int64_t dim0, int64_t dim1) {
  Call c(ctx);
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  int64_t rank = ctx.b.rankOf(*self);
  FailureOr<int64_t> a = wrapDim(ctx, dim0, rank), z = wrapDim(ctx, dim1, rank);
  if (failed(a) || failed(z))
    return failure();
  SmallVector<int64_t> permutation = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  if (rank > 0)
    std::swap(permutation[*a], permutation[*z]);
  return ctx.result(ctx.b.transpose(*self, permutation));
}

/// t: a matrix transposed, vectors and numbers as they are.
LogicalResult transposeMatrix(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  return ctx.b.rankOf(*self) < 2 ? ctx.result(*self) : swapDims(ctx, 0, 1);
}

LogicalResult reverseDims(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  return ctx.result(ctx.b.transpose(*self, llvm::to_vector(llvm::reverse(llvm::seq<int64_t>(0, ctx.b.rankOf(*self))))));
}

LogicalResult moveDims(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  const int64_t rank = ctx.b.rankOf(*self);
  auto list = [&](StringRef name) { return c.integers(name).value_or(SmallVector<int64_t>{c.integer(name, 0)}); };
  FailureOr<SmallVector<int64_t>> from = ctx.axes(list("source"), std::max<int64_t>(rank, 1)),
                                  to = ctx.axes(list("destination"), std::max<int64_t>(rank, 1));
  if (failed(from) || failed(to))
    return failure();
  if (from->size() != to->size())
    return ctx.invalid("source and destination have " + Twine(from->size()) + " and " + Twine(to->size()) + " dims");
  if (rank == 0)
    return ctx.result(*self);
  SmallVector<int64_t> order(rank, -1);
  for (auto [source, destination] : llvm::zip_equal(*from, *to))
    order[destination] = source;
  int64_t next = 0;
  for (int64_t &place : order) {
    while (place < 0 && llvm::is_contained(*from, next))
      ++next;
    if (place < 0)
      place = next++;
  }
  return ctx.result(ctx.b.transpose(*self, order));
}

LogicalResult unbind(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  FailureOr<int64_t> axis = ctx.axis(c.integer("dim", 0), ctx.b.rankOf(*self));
  if (failed(axis))
    return failure();
  if (failed(
          ctx.requireEqual(getSizes(*self)[*axis], ctx.b.size(ctx.numResults()), "a result for each index of its dim")))
    return failure();
  for (size_t i = 0; i < ctx.numResults(); ++i)
    if (failed(ctx.set(i, ctx.b.take(*self, *axis, i))))
      return failure();
  return success();
}

LogicalResult diagonal(NodeContext &ctx, StringRef name, int64_t dim1, int64_t dim2) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.required(name);
  if (failed(self))
    return failure();
  const int64_t rank = b.rankOf(*self);
  FailureOr<SmallVector<int64_t>> dims = ctx.axes({c.integer("dim1", dim1), c.integer("dim2", dim2)}, rank);
  if (failed(dims))
    return failure();
  SmallVector<int64_t> order;
  for (int64_t d = 0; d < rank; ++d)
    if (!llvm::is_contained(*dims, d))
      order.push_back(d);
  order.append(dims->begin(), dims->end());
  return ctx.result(emitDiagonal(b, b.transpose(*self, order), c.integer("offset", 0)));
}

LogicalResult diagEmbed(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  const int64_t rank = b.rankOf(*self) + 1;
  FailureOr<SmallVector<int64_t>> dims = ctx.axes({c.integer("dim1", -2), c.integer("dim2", -1)}, rank);
  if (failed(dims))
    return failure();
  if (rank < 2)
    return ctx.invalid("takes an operand of one dim or more, but got " + describe(*self));
  Value matrices = emitDiagonalEmbedding(b, *self, c.integer("offset", 0));
  SmallVector<int64_t> order(rank, -1);
  order[(*dims)[0]] = rank - 2;
  order[(*dims)[1]] = rank - 1;
  int64_t next = 0;
  for (int64_t &place : order)
    if (place < 0)
      place = next++;
  return ctx.result(b.transpose(matrices, order));
}

LogicalResult diag(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  int64_t rank = ctx.b.rankOf(*self), offset = c.integer("diagonal", 0);
  if (rank != 1 && rank != 2)
    return ctx.invalid("takes a vector or a matrix, but got " + describe(*self));
  return ctx.result(rank == 1 ? emitDiagonalEmbedding(ctx.b, *self, offset) : emitDiagonal(ctx.b, *self, offset));
}

LogicalResult diagFlat(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  Value flat = ctx.b.reshape(*self, {ctx.countElements(*self)});
  return ctx.result(emitDiagonalEmbedding(ctx.b, flat, c.integer("offset", 0)));
}

LogicalResult trace(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  if (ctx.b.rankOf(*self) != 2)
    return ctx.invalid("takes a matrix, but got " + describe(*self));
  Value on = emitDiagonal(ctx.b, *self, 0);
  if (isa<IntegerType>(ctx.b.elementOf(on)))
    on = ctx.b.convert(on, ctx.b.getI64Type());
  return ctx.result(ctx.b.reduce(ReduceKind::Sum, on, {0}));
}

template <bool below> LogicalResult triangle(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  if (ctx.b.rankOf(*self) < 2)
    return ctx.invalid("takes an operand of two dims or more, but got " + describe(*self));
  Value kept = emitTriangle(ctx.b, getSizes(*self), readBound(c, "diagonal", 0), below);
  Value zero = ctx.b.splatLike(*self, 0);
  return ctx.result(ctx.b.select(kept, *self, zero));
}

/// Any elements of what holds the operand, of which nothing is known but the operand itself: its elements in row-major
/// order.
LogicalResult asStrided(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.required("self");
  std::optional<SmallVector<int64_t>> size = c.integers("size"), stride = c.integers("stride");
  auto count = failed(self) ? std::optional<int64_t>() : getConstantSize(ctx.countElements(*self));
  if (failed(self))
    return failure();
  if (!size || !stride || !count || isa_and_nonnull<StringAttr>(ctx.attr("storage_offset")))
    return ctx.unsupported("with sizes, strides or an offset that only the run knows is not supported; use views such "
                           "as unfold, or slices");
  if (ctx.hasAttr("self.strided"))
    return ctx.unsupported("of a tensor whose elements are not in row-major order is not supported; call .contiguous() "
                           "on it first");
  if (size->size() != stride->size())
    return ctx.invalid("size and stride have " + Twine(size->size()) + " and " + Twine(stride->size()) + " entries");
  // Where the operand begins in its memory, and where the result does.
  const int64_t own = c.integer("self.storage_offset", 0), first = c.integer("storage_offset", own) - own;
  int64_t last = first;
  if (first < 0 && c.integer("storage_offset", own) >= 0)
    return ctx.unsupported("of elements before the operand " + describe(*self) +
                           " is not supported; pass the tensor that it is a part of");
  bool isEmpty = false;
  for (auto [n, step] : llvm::zip_equal(*size, *stride)) {
    if (n < 0 || step < 0 || first < 0)
      return ctx.invalid("size, stride or storage_offset is negative");
    isEmpty |= n == 0;
    int64_t reach;
    if (n > 0 && (llvm::MulOverflow(n - 1, step, reach) || llvm::AddOverflow(last, reach, last)))
      return ctx.invalid("the strides reach beyond any memory");
  }
  if (!isEmpty && last >= *count)
    return ctx.unsupported("of elements beyond the operand " + describe(*self) +
                           " is not supported; pass the tensor that it is a part of");
  Sizes out = b.sizes(*size);
  if (isEmpty)
    return ctx.result(b.splat(b.elementOf(*self), out, 0));
  Value index = b.splat(b.getI64Type(), out, double(first));
  for (auto [d, step] : llvm::enumerate(*stride))
    if ((*size)[d] > 1)
      index = b.add(index, b.binary<MulOp>(b.iota(b.getI64Type(), out, d), double(step)));
  return ctx.result(GatherOp::create(b, b.reshape(*self, {b.size(*count)}), index, 0));
}

LogicalResult meshgrid(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  SmallVector<Value> tensors = c.tensors("tensors");
  const int64_t count = tensors.size();
  std::string indexing = ctx.getString("indexing", "ij");
  if (indexing != "ij" && indexing != "xy")
    return ctx.invalid("argument \"indexing\" is \"" + indexing + "\"; it may be \"ij\" or \"xy\"");
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, count));
  if (indexing == "xy" && count >= 2)
    std::swap(dims[0], dims[1]);
  Sizes sizes(count);
  for (auto [i, v] : llvm::enumerate(tensors)) {
    if (b.rankOf(v) > 1)
      return ctx.invalid("takes tensors of one dim or none, but got " + describe(v));
    sizes[dims[i]] = b.rankOf(v) == 0 ? b.size(1) : getSizes(v)[0];
  }
  for (auto [i, v] : llvm::enumerate(tensors))
    (void)ctx.set(i, b.broadcastInDims(b.reshape(v, {sizes[dims[i]]}), sizes, {dims[i]}));
  return success();
}

/// `rank` dims or more; the third one of atleast_3d stands behind.
Value atLeast(PrimBuilder &b, Value v, int64_t rank) {
  if (rank == 3 && b.rankOf(v) < 3)
    return b.unsqueeze(atLeast(b, v, 2), 2);
  while (b.rankOf(v) < rank)
    v = b.unsqueeze(v, 0);
  return v;
}

LogicalResult atLeastOf(NodeContext &ctx, int64_t rank) {
  Call c(ctx);
  FailureOr<Value> self = c.required("self");
  return failed(self) ? failure() : ctx.result(atLeast(ctx.b, *self, rank));
}

LogicalResult atLeastOfAll(NodeContext &ctx, int64_t rank) {
  Call c(ctx);
  for (auto [i, v] : llvm::enumerate(c.tensors("tensors")))
    (void)ctx.set(i, atLeast(ctx.b, v, rank));
  return success();
}

} // namespace

void tc::populateATenMovement(OpRegistrar &onOp) {
  auto on = [&](StringRef type, NodeHandler handler, size_t minOperands = 1) {
    onOp(type, /*sinceVersion=*/1, std::move(handler), minOperands);
    onOp.takeComplex(ComplexUse::Moved, {type});
  };
  auto onAll = [&](ArrayRef<StringRef> types, const NodeHandler &handler, size_t minOperands = 1) {
    for (StringRef type : types)
      on(type, handler, minOperands);
  };
  onAll({"view.default", "_unsafe_view.default", "view_copy.default", "_reshape_alias.default"},
        [](NodeContext &ctx) { return viewTo(ctx, "size"); });
  on("reshape.default", [](NodeContext &ctx) { return viewTo(ctx, "shape"); });
  onAll({"view_as.default", "reshape_as.default"}, viewAs, 2);
  onAll({"view.dtype", "view_copy.dtype"}, viewDtype);
  on("flatten.using_ints", flatten);
  on("ravel.default",
     [](NodeContext &ctx) { return ctx.result(ctx.b.reshape(ctx.operand(0), {ctx.countElements(ctx.operand(0))})); });
  on("unflatten.int", unflatten);
  onAll({"expand.default", "expand_copy.default", "broadcast_to.default"}, expand);
  on("expand_as.default", expandAs, 2);
  on("broadcast_tensors.default", broadcastTensors);
  onOp("sum_to_size.default", 1, sumToSize);
  onAll({"squeeze.default", "squeeze_copy.default"}, [](NodeContext &ctx) { return squeeze(ctx, std::nullopt); });
  onAll({"squeeze.dim", "squeeze_copy.dim"},
        [](NodeContext &ctx) { return squeeze(ctx, SmallVector<int64_t>{ctx.getInt("dim", 0)}); });
  onAll({"squeeze.dims", "squeeze_copy.dims"},
        [](NodeContext &ctx) { return squeeze(ctx, ctx.getInts("dim").value_or(SmallVector<int64_t>())); });
  onAll({"unsqueeze.default", "unsqueeze_copy.default"}, [](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    FailureOr<Value> self = c.required("self");
    if (failed(self))
      return failure();
    FailureOr<int64_t> axis = ctx.axis(c.integer("dim", 0), ctx.b.rankOf(*self) + 1);
    return failed(axis) ? failure() : ctx.result(ctx.b.unsqueeze(*self, *axis));
  });
  onAll({"permute.default", "permute_copy.default"}, permute);
  for (StringRef name : {"transpose.int", "transpose_copy.int", "swapdims.default"})
    on(name, [](NodeContext &ctx) { return swapDims(ctx, ctx.getInt("dim0", 0), ctx.getInt("dim1", 1)); });
  on("swapaxes.default",
     [](NodeContext &ctx) { return swapDims(ctx, ctx.getInt("axis0", 0), ctx.getInt("axis1", 1)); });
  onAll({"t.default", "t_copy.default"}, transposeMatrix);
  on("mT.default", [](NodeContext &ctx) { return swapDims(ctx, -2, -1); });
  // With conjugates of complex elements, which these do not take.
  for (StringRef name : {"mH.default", "adjoint.default"})
    onOp(name, 1, [](NodeContext &ctx) {
      return ctx.b.rankOf(ctx.operand(0)) == 0 ? ctx.result(ctx.operand(0)) : swapDims(ctx, -2, -1);
    });
  onOp("matrix_H.default", 1, transposeMatrix);
  on("numpy_T.default", reverseDims);
  onAll({"movedim.int", "movedim.intlist", "moveaxis.int", "moveaxis.intlist"}, moveDims);
  onAll({"unbind.int", "unbind_copy.int"}, unbind);
  onAll({"diagonal.default", "diagonal_copy.default"}, [](NodeContext &ctx) { return diagonal(ctx, "self", 0, 1); });
  on("linalg_diagonal.default", [](NodeContext &ctx) { return diagonal(ctx, "A", -2, -1); });
  on("diag_embed.default", diagEmbed);
  on("diag.default", diag);
  on("diagflat.default", diagFlat);
  onOp("trace.default", 1, trace);
  on("tril.default", triangle</*below=*/true>);
  on("triu.default", triangle</*below=*/false>);
  onAll({"as_strided.default", "as_strided_copy.default"}, asStrided);
  onAll({"meshgrid.default", "meshgrid.indexing"}, meshgrid);
  for (int64_t rank : {1, 2, 3}) {
    std::string name = "atleast_" + std::to_string(rank) + "d";
    on(name + ".default", [rank](NodeContext &ctx) { return atLeastOf(ctx, rank); });
    on(name + ".Sequence", [rank](NodeContext &ctx) { return atLeastOfAll(ctx, rank); });
  }
}
