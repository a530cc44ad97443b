//===- ATenMovement.h - what ATen's movements, indexing and searches share ------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CONVERSION_GRAPHTOPRIM_ATENMOVEMENT_H
#define TC_LIB_CONVERSION_GRAPHTOPRIM_ATENMOVEMENT_H

#include "ATenSupport.h"
#include "Movement.h"

namespace tc {

/// A dim in [0, rank), from one that may be negative; a tensor without dims has dim 0, too.
inline mlir::FailureOr<int64_t> wrapDim(NodeContext &ctx, int64_t dim, int64_t rank) {
  return ctx.axis(dim, std::max<int64_t>(rank, 1));
}

/// An index into dim `axis` of `self`, counted from its start, with guards where the run decides whether it is in
/// range; null where only the run knows it, or its sign.
mlir::FailureOr<mlir::AffineExpr> resolveIndex(NodeContext &ctx, mlir::Value self, int64_t axis,
                                               const SliceBound &index);

/// An integer argument, which may be symbolic, or depend on data.
inline SliceBound readBound(Call &c, llvm::StringRef name, int64_t otherwise) {
  mlir::Value value;
  if (auto symbolic = llvm::dyn_cast_or_null<mlir::StringAttr>(c.ctx.attr(name)))
    value = c.tensor(symbolic.getValue());
  if (!value)
    return {c.b.size(c.integer(name, otherwise)), {}};
  std::optional<Sizes> known = c.ctx.intValues(value);
  return {known && known->size() == 1 ? known->front() : mlir::AffineExpr(), value};
}
/// One that must not depend on data, but where `bind` is given: what it is at least then.
inline mlir::FailureOr<mlir::AffineExpr> readSize(Call &c, llvm::StringRef name, int64_t otherwise,
                                                  std::optional<int64_t> bind = std::nullopt) {
  SliceBound bound = readBound(c, name, otherwise);
  if (bound.expr)
    return bound.expr;
  if (bind)
    return c.b.bindSymbol("data", bound.value, *bind);
  return c.ctx.unsupported("with argument \"" + name + "\" that depends on data is not supported; make it a constant");
}
/// Its value.
inline mlir::Value boundValue(PrimBuilder &b, const SliceBound &bound) {
  return bound.expr ? b.sizeValue(bound.expr) : b.reshape(b.convert(bound.value, b.getI64Type()), {});
}

/// `size`, or 0 where it is negative.
inline mlir::AffineExpr notNegative(PrimBuilder &b, mlir::AffineExpr size) {
  auto [low, high] = b.bounds(size);
  if (low >= 0)
    return size;
  return high <= 0 ? b.size(0) : b.bindSymbol("size", b.binary<prim::MaxOp>(b.sizeValue(size), 0));
}
inline mlir::AffineExpr smallerSize(PrimBuilder &b, mlir::AffineExpr x, mlir::AffineExpr y) {
  auto [low, high] = b.bounds(prim::simplifySize(x - y));
  if (high <= 0)
    return x;
  return low >= 0 ? y : b.bindSymbol("size", b.min(b.sizeValue(x), b.sizeValue(y)), INT64_MIN);
}

/// All in the type that PyTorch computes in of them.
inline mlir::LogicalResult promoteTogether(Call &c, llvm::MutableArrayRef<mlir::Value> values) {
  TypePromotion promotion;
  for (mlir::Value v : values)
    promotion.addTensor(c.b.elementOf(v), c.b.rankOf(v));
  mlir::Type type = promotion.get();
  if (!type)
    return c.ctx.unsupported("of " + describe(values.front()) + " and " + describe(values.back()) +
                             " is not supported; convert them to one element type");
  for (mlir::Value &v : values) {
    mlir::FailureOr<mlir::Value> same = c.convert(v, type);
    if (failed(same))
      return mlir::failure();
    v = *same;
  }
  return mlir::success();
}

/// `v` with dim `from` at `to`.
inline mlir::Value moveDim(PrimBuilder &b, mlir::Value v, int64_t from, int64_t to) {
  llvm::SmallVector<int64_t> order;
  for (int64_t d = 0; d < b.rankOf(v); ++d)
    if (d != from)
      order.push_back(d);
  order.insert(order.begin() + to, from);
  return b.transpose(v, order);
}

/// A number for each element of `sizes`.
inline mlir::Value filled(PrimBuilder &b, mlir::AffineExpr number, SizesRef sizes) {
  return b.broadcastTo(b.sizeValue(number), sizes);
}

/// The elements (row, column) of the last two dims of `sizes` with column - row at most (`below`) or at least
/// `diagonal`: bool.
mlir::Value emitTriangle(PrimBuilder &b, SizesRef sizes, const SliceBound &diagonal, bool below);
/// The diagonal of the last two dims, along a last dim.
mlir::Value emitDiagonal(PrimBuilder &b, mlir::Value v, int64_t offset);
/// The last dim as a diagonal of two last dims; zeros elsewhere.
mlir::Value emitDiagonalEmbedding(PrimBuilder &b, mlir::Value v, int64_t offset);

} // namespace tc

#endif // TC_LIB_CONVERSION_GRAPHTOPRIM_ATENMOVEMENT_H
