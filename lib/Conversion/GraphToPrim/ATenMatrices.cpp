//===- ATenMatrices.cpp - what ATen's handlers of matrices share --------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ATenMatrices.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

FailureOr<Matrices> tc::toMatrices(NodeContext &ctx, Value x) {
  PrimBuilder &b = ctx.b;
  if (b.isComplex(x))
    return LogicalResult(ctx.unsupported("of complex matrices is not supported"));
  if (!b.elementOf(x).isF32() && !b.elementOf(x).isF64())
    return LogicalResult(ctx.invalid("takes matrices of f32 or f64, but got " + describe(x)));
  Sizes sizes = getSizes(x);
  if (sizes.size() < 2)
    return LogicalResult(ctx.invalid("takes matrices, of rank 2 or more, but got " + describe(x)));
  Matrices m;
  m.columns = sizes.pop_back_val();
  m.rows = sizes.pop_back_val();
  m.outer = sizes;
  m.all = b.reshape(x, {product(b.getContext(), sizes), m.rows, m.columns});
  return m;
}

FailureOr<Matrices> tc::readMatrices(Call &c, StringRef name) {
  FailureOr<Value> x = c.required(name);
  return failed(x) ? FailureOr<Matrices>(failure()) : toMatrices(c.ctx, *x);
}

FailureOr<Matrices> tc::readSquare(Call &c, StringRef name) {
  FailureOr<Matrices> m = readMatrices(c, name);
  if (failed(m) || failed(c.ctx.requireEqual(m->rows, m->columns, "square matrices")))
    return failure();
  m->columns = m->rows;
  m->all = c.b.reshape(m->all, {getSizes(m->all)[0], m->rows, m->rows});
  return m;
}

Value tc::spreadOuter(PrimBuilder &b, Value v, const Sizes &outer) {
  Sizes sizes(outer);
  const Sizes own = getSizes(v);
  sizes.append(own.begin() + 1, own.end());
  return b.reshape(v, sizes);
}

LogicalResult tc::requireMatrices(NodeContext &ctx, ValueRange values) {
  for (Value v : values)
    if (ctx.b.rankOf(v) < 2)
      return ctx.invalid("takes matrices, of rank 2 or more, but got " + describe(v));
  return success();
}

Value tc::turn(PrimBuilder &b, Value v) {
  SmallVector<int64_t> permutation = llvm::to_vector(llvm::seq<int64_t>(0, b.rankOf(v)));
  std::swap(permutation[permutation.size() - 2], permutation[permutation.size() - 1]);
  return b.transpose(v, permutation);
}

FailureOr<AffineExpr> tc::shorterSide(NodeContext &ctx, const Matrices &m) {
  auto [low, high] = ctx.b.bounds(simplifySize(m.rows - m.columns));
  if (low >= 0)
    return m.columns;
  if (high <= 0)
    return m.rows;
  return LogicalResult(ctx.unsupported("of matrices that may be higher or wider is not supported; give their sizes "
                                       "with --dim"));
}

ValueRange tc::callOf(PrimBuilder &b, StringRef function, ValueRange operands,
                      ArrayRef<std::pair<Type, Sizes>> results) {
  SmallVector<Type> types;
  for (const auto &[element, sizes] : results)
    types.push_back(makeType(element, sizes));
  return b.hostCall(function, operands, types);
}

void tc::guardInfo(NodeContext &ctx, Value info, const Twine &what) {
  Value sum = ctx.b.reduce(ReduceKind::Sum, info, {0});
  ctx.b.guard(sum, 0, "node \"" + graph::getNodeName(ctx.b.getLoc()) + "\": " + what);
}

Value tc::unitMatrices(PrimBuilder &b, Type type, const Sizes &sizes) {
  const int64_t rank = sizes.size();
  Type i64 = b.getI64Type();
  return b.convert(b.compare(CompareKind::EQ, b.iota(i64, sizes, rank - 2), b.iota(i64, sizes, rank - 1)), type);
}

Solution tc::emitSolve(PrimBuilder &b, Value a, Value y) {
  ValueRange r =
      callOf(b, "linalg_solve", {a, y}, {{b.elementOf(a), getSizes(y)}, {b.getI64Type(), Sizes{getSizes(a)[0]}}});
  return {r[0], r[1]};
}

FailureOr<MatrixPair> tc::broadcastOuter(NodeContext &ctx, Value a, Value y) {
  PrimBuilder &b = ctx.b;
  Sizes sa = getSizes(a), sy = getSizes(y);
  if (sa.size() < 2 || sy.size() < 2)
    return LogicalResult(ctx.invalid("takes matrices, but got " + describe(a) + " and " + describe(y)));
  if (b.elementOf(a) != b.elementOf(y))
    return LogicalResult(ctx.invalid("operands " + describe(a) + " and " + describe(y) + " differ in element type"));
  Sizes outers[] = {Sizes(sa.begin(), sa.end() - 2), Sizes(sy.begin(), sy.end() - 2)};
  FailureOr<Sizes> outer = ctx.broadcastSizes(outers);
  if (failed(outer))
    return failure();
  auto spread = [&](Value v, const Sizes &own) {
    Sizes sizes(*outer);
    sizes.append(own.end() - 2, own.end());
    return b.broadcastTo(v, sizes);
  };
  FailureOr<Matrices> ma = toMatrices(ctx, spread(a, sa)), my = toMatrices(ctx, spread(y, sy));
  if (failed(ma) || failed(my))
    return failure();
  return MatrixPair{*ma, *my, *outer};
}

FailureOr<Value> tc::emitTriangular(NodeContext &ctx, Value a, Value y, bool isUpper, bool isUnit) {
  PrimBuilder &b = ctx.b;
  FailureOr<MatrixPair> pair = broadcastOuter(ctx, a, y);
  if (failed(pair) || failed(ctx.requireEqual(pair->a.rows, pair->a.columns, "square matrices")) ||
      failed(ctx.requireEqual(pair->a.rows, pair->y.rows, "right sides of as many rows as its matrices")))
    return failure();
  const Sizes square{batchOf(pair->a), pair->y.rows, pair->y.rows};
  Value operands[] = {b.reshape(pair->a.all, square), pair->y.all, b.sizeValue(b.size(isUpper)),
                      b.sizeValue(b.size(isUnit))};
  ValueRange r = callOf(b, "linalg_solve_triangular", operands, {{b.elementOf(y), getSizes(pair->y.all)}});
  return spreadOuter(b, r[0], pair->outer);
}
