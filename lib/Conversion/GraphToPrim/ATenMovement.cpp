//===- ATenMovement.cpp - views and movements of ATen -------------------------------------------------------------===//
//
// Source: the native function schemas of PyTorch (aten/src/ATen/native/native_functions.yaml).
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ATenSupport.h"
#include "OpRegistry.h"

#include <utility>

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

LogicalResult viewAs(NodeContext &ctx, StringRef name) {
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

LogicalResult swapDims(NodeContext &ctx, int64_t dim0, int64_t dim1) {
  Call c(ctx);
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  int64_t rank = ctx.b.rankOf(*self);
  if (rank < 2)
    return ctx.result(*self);
  FailureOr<int64_t> a = ctx.axis(dim0, rank), z = ctx.axis(dim1, rank);
  if (failed(a) || failed(z))
    return failure();
  SmallVector<int64_t> permutation = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  std::swap(permutation[*a], permutation[*z]);
  return ctx.result(ctx.b.transpose(*self, permutation));
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

LogicalResult cat(NodeContext &ctx) {
  Call c(ctx);
  SmallVector<Value> tensors = c.tensors("tensors");
  if (tensors.empty())
    return ctx.invalid("needs a tensor");
  FailureOr<int64_t> axis = ctx.axis(c.integer("dim", 0), ctx.b.rankOf(tensors[0]));
  if (failed(axis))
    return failure();
  for (Value &v : tensors) {
    if (ctx.b.elementOf(v) != ctx.b.elementOf(tensors[0]) || ctx.b.rankOf(v) != ctx.b.rankOf(tensors[0]))
      return ctx.invalid("tensors differ in rank or element type: " + describe(tensors[0]) + " and " + describe(v));
    Sizes sizes = getSizes(tensors[0]);
    sizes[*axis] = getSizes(v)[*axis];
    FailureOr<Value> fitting = ctx.castSizes(v, sizes);
    if (failed(fitting))
      return failure();
    v = *fitting;
  }
  return ctx.result(ctx.b.concat(tensors, *axis));
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

} // namespace

void tc::populateATenMovement(OpRegistrar &onOp) {
  auto on = [&](StringRef type, NodeHandler handler, size_t minOperands = 1) {
    onOp(type, /*sinceVersion=*/1, std::move(handler), minOperands);
  };
  for (StringRef name : {"view.default", "_unsafe_view.default"})
    on(name, [](NodeContext &ctx) { return viewAs(ctx, "size"); });
  on("reshape.default", [](NodeContext &ctx) { return viewAs(ctx, "shape"); });
  on("permute.default", [](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    FailureOr<Value> self = c.required("self");
    std::optional<SmallVector<int64_t>> dims = c.integers("dims");
    if (failed(self) || !dims)
      return ctx.invalid("needs constant dims");
    SmallVector<int64_t> permutation;
    for (int64_t dim : *dims) {
      FailureOr<int64_t> axis = ctx.axis(dim, dims->size());
      if (failed(axis) || llvm::is_contained(permutation, *axis))
        return ctx.invalid("dims are no permutation");
      permutation.push_back(*axis);
    }
    return ctx.result(ctx.b.transpose(*self, permutation));
  });
  on("transpose.int", [](NodeContext &ctx) {
    Call c(ctx);
    return swapDims(ctx, c.integer("dim0", 0), c.integer("dim1", 1));
  });
  on("t.default", [](NodeContext &ctx) { return swapDims(ctx, 0, 1); });
  on("unbind.int", unbind);
  on("select.int", [](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    FailureOr<Value> self = c.required("self");
    if (failed(self))
      return failure();
    FailureOr<int64_t> axis = ctx.axis(c.integer("dim", 0), ctx.b.rankOf(*self));
    if (failed(axis))
      return failure();
    int64_t index = c.integer("index", 0);
    std::optional<int64_t> size = getConstantSize(getSizes(*self)[*axis]);
    if (!size)
      return ctx.unsupported("along a dim of unknown size is not supported");
    if (index < -*size || index >= *size)
      return ctx.invalid("index " + Twine(index) + " is out of range for " + describe(*self));
    return ctx.result(ctx.b.take(*self, *axis, index < 0 ? index + *size : index));
  });
  on("unsqueeze.default", [](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    FailureOr<Value> self = c.required("self");
    if (failed(self))
      return failure();
    FailureOr<int64_t> axis = ctx.axis(c.integer("dim", 0), ctx.b.rankOf(*self) + 1);
    return failed(axis) ? failure() : ctx.result(ctx.b.unsqueeze(*self, *axis));
  });
  on("cat.default", cat);
  on("flatten.using_ints", flatten);
}
