//===- ATenLinalg.cpp - factors, inverses and norms of matrices of ATen -------------------------------------------===//
//
// Factors are functions of the runtime (lib/Functions/Linalg.c), what follows from them is prim. Signs of eigenvectors
// and singular vectors are free, as PyTorch says of them. Source: the native function schemas of PyTorch
// (aten/src/ATen/native/native_functions.yaml), and what torch.linalg's documentation says of tolerances and shapes.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ATenMatrices.h"
#include "OpRegistry.h"
#include "Shared.h"

#include <cfloat>

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

//===--- triangular systems ---------------------------------------------------------------------------------------===//

LogicalResult solveTriangular(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> a = c.required("self"), y = c.required("B");
  if (failed(a) || failed(y))
    return failure();
  const bool isUpper = c.flag("upper"), isUnit = c.flag("unitriangular");
  if (c.flag("left", true)) {
    FailureOr<Value> x = emitTriangular(ctx, *a, *y, isUpper, isUnit);
    return failed(x) ? failure() : ctx.result(*x);
  }
  if (failed(requireMatrices(ctx, {*a, *y})))
    return failure();
  FailureOr<Value> x = emitTriangular(ctx, turn(b, *a), turn(b, *y), !isUpper, isUnit);
  return failed(x) ? failure() : ctx.result(turn(b, *x));
}

/// The older form: arguments the other way round, and the matrix is a result, too.
LogicalResult triangularSolve(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> y = c.required("self"), a = c.required("A");
  if (failed(a) || failed(y) || failed(requireMatrices(ctx, *a)))
    return failure();
  const bool isTurned = c.flag("transpose"), isUpper = c.flag("upper", true);
  FailureOr<Value> x =
      emitTriangular(ctx, isTurned ? turn(b, *a) : *a, *y, isUpper != isTurned, c.flag("unitriangular"));
  if (failed(x) || failed(ctx.set(0, *x)))
    return failure();
  return ctx.isResultUsed(1) ? ctx.set(1, *a) : success();
}

//===--- Cholesky -------------------------------------------------------------------------------------------------===//

struct Cholesky {
  Value factor, info;
};

/// The lower factor of what the lower triangle, or (`isUpper`) the upper one, says; turned over for the upper one.
Cholesky factorCholesky(PrimBuilder &b, const Matrices &m, bool isUpper) {
  ValueRange r = callOf(b, "linalg_cholesky", isUpper ? turn(b, m.all) : m.all,
                        {{typeOf(b, m), getSizes(m.all)}, {b.getI64Type(), Sizes{batchOf(m)}}});
  return {isUpper ? turn(b, r[0]) : r[0], r[1]};
}

NodeHandler cholesky(bool isChecked) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    PrimBuilder &b = ctx.b;
    FailureOr<Matrices> m = readSquare(c, "self");
    if (failed(m))
      return failure();
    Cholesky f = factorCholesky(b, *m, c.flag("upper"));
    if (isChecked || c.flag("check_errors"))
      guardInfo(ctx, f.info, "its matrix is not positive definite");
    if (failed(ctx.set(0, spreadOuter(b, f.factor, m->outer))))
      return failure();
    return isChecked ? success() : ctx.set(1, spreadOuter(b, b.convert(f.info, b.getIntegerType(32)), m->outer));
  };
}

/// x of L L' x = y, or of U' U x = y.
FailureOr<Value> solveByFactor(NodeContext &ctx, Value factor, Value y, bool isUpper) {
  if (failed(requireMatrices(ctx, factor)))
    return failure();
  Value turned = turn(ctx.b, factor);
  FailureOr<Value> middle = emitTriangular(ctx, isUpper ? turned : factor, y, /*isUpper=*/false, /*isUnit=*/false);
  if (failed(middle))
    return failure();
  return emitTriangular(ctx, isUpper ? factor : turned, *middle, /*isUpper=*/true, /*isUnit=*/false);
}

LogicalResult choleskySolve(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> y = c.required("self"), factor = c.required("input2");
  if (failed(y) || failed(factor))
    return failure();
  FailureOr<Value> x = solveByFactor(ctx, *factor, *y, c.flag("upper"));
  return failed(x) ? failure() : ctx.result(*x);
}

LogicalResult choleskyInverse(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Matrices> m = readSquare(c, "self");
  if (failed(m))
    return failure();
  Value unit = unitMatrices(ctx.b, typeOf(ctx.b, *m), getSizes(m->all));
  FailureOr<Value> x = solveByFactor(ctx, m->all, unit, c.flag("upper"));
  return failed(x) ? failure() : ctx.result(spreadOuter(ctx.b, *x, m->outer));
}

//===--- QR -------------------------------------------------------------------------------------------------------===//

LogicalResult emitQr(NodeContext &ctx, const Matrices &m, bool isComplete, bool hasQ) {
  PrimBuilder &b = ctx.b;
  AffineExpr inner = m.rows;
  if (!isComplete) {
    FailureOr<AffineExpr> k = shorterSide(ctx, m);
    if (failed(k))
      return failure();
    inner = *k;
  }
  Type type = typeOf(b, m);
  ValueRange r =
      callOf(b, "linalg_qr", m.all, {{type, {batchOf(m), m.rows, inner}}, {type, {batchOf(m), inner, m.columns}}});
  Value q = hasQ ? spreadOuter(b, r[0], m.outer) : b.splat(type, {b.size(0)}, 0);
  return success(succeeded(ctx.set(0, q)) && succeeded(ctx.set(1, spreadOuter(b, r[1], m.outer))));
}

LogicalResult qr(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Matrices> m = readMatrices(c, "A");
  if (failed(m))
    return failure();
  const std::string mode = ctx.getString("mode", "reduced");
  if (mode != "reduced" && mode != "complete" && mode != "r")
    return ctx.invalid("mode is \"" + mode + "\"; it may be \"reduced\", \"complete\" or \"r\"");
  return emitQr(ctx, *m, mode == "complete", mode != "r");
}

LogicalResult oldQr(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Matrices> m = readMatrices(c, "self");
  return failed(m) ? failure() : emitQr(ctx, *m, !c.flag("some", true), /*hasQ=*/true);
}

//===--- reflections ----------------------------------------------------------------------------------------------===//

/// Q c, or (`isTurned`) Q' c, of Q = H0 H1 .., in f32 or wider; Hi = 1 - tau[i] v v', where v is 0 before row i, 1
/// there, and column i of `a` below. a [B, M, N], tau [B, K], c [B, M, R].
Value emitReflections(PrimBuilder &b, Value a, Value tau, Value c, bool isTurned) {
  const Type i64 = b.getI64Type();
  const Sizes all = getSizes(c), column{all[0], all[1]};
  Value count = b.sizeValue(getSizes(tau)[1]);
  return emitSteps(b, count, c, [&](Value step, ValueRange v) -> SmallVector<Value> {
    Value i = isTurned ? step : b.binary<SubOp>(b.sub(count, step), 1); // what is next to c comes first
    Value row = b.iota(i64, column, 1), at = b.broadcastTo(i, column), given = GatherOp::create(b, a, i, 2);
    Value direction = b.select(b.compare(CompareKind::GT, row, at), given,
                               b.convert(b.compare(CompareKind::EQ, row, at), b.elementOf(a)));
    Value scaled = b.mul(direction, b.broadcastInDims(GatherOp::create(b, tau, i, 1), column, {0}));
    Value along = DotGeneralOp::create(b, direction, v[0], ArrayRef<int64_t>{0}, ArrayRef<int64_t>{0},
                                       ArrayRef<int64_t>{1}, ArrayRef<int64_t>{1}); // [B, R]
    return {b.sub(v[0], b.mul(b.broadcastInDims(scaled, all, {0, 1}), b.broadcastInDims(along, all, {0, 2})))};
  })[0];
}

/// Factors tau [.., K] of reflections, as many vectors as there are matrices: [B, K].
FailureOr<Value> readTau(Call &c, StringRef name, const Matrices &m) {
  FailureOr<Value> tau = c.required(name);
  if (failed(tau))
    return failure();
  if (c.b.rankOf(*tau) != int64_t(m.outer.size()) + 1 || c.b.elementOf(*tau) != typeOf(c.b, m))
    return LogicalResult(
        c.ctx.invalid("takes a vector of factors for each matrix, of its type, but got " + describe(*tau)));
  Sizes sizes(m.outer);
  sizes.push_back(getSizes(*tau).back());
  if (failed(c.ctx.require(CompareKind::LE, sizes.back(), m.columns, "as many factors as columns at most")))
    return failure();
  FailureOr<Value> fitting = c.ctx.castSizes(*tau, sizes);
  return failed(fitting) ? fitting : FailureOr<Value>(c.b.reshape(*fitting, {batchOf(m), sizes.back()}));
}

/// linalg_householder_product: the first columns of Q.
LogicalResult householderProduct(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Matrices> m = readMatrices(c, "input");
  FailureOr<Value> tau = failed(m) ? FailureOr<Value>(failure()) : readTau(c, "tau", *m);
  if (failed(tau))
    return failure();
  Value unit = unitMatrices(ctx.b, typeOf(ctx.b, *m), getSizes(m->all));
  return ctx.result(spreadOuter(ctx.b, emitReflections(ctx.b, m->all, *tau, unit, /*isTurned=*/false), m->outer));
}

/// ormqr: Q or its transpose times a matrix, or a matrix times those.
LogicalResult multiplyByReflections(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Matrices> m = readMatrices(c, "self"), other = failed(m) ? m : readMatrices(c, "input3");
  FailureOr<Value> tau = failed(other) ? FailureOr<Value>(failure()) : readTau(c, "input2", *m);
  if (failed(tau))
    return failure();
  const bool isLeft = c.flag("left", true), isTurned = c.flag("transpose") == isLeft; // c Q is (Q' c')'
  Value right = isLeft ? other->all : turn(ctx.b, other->all);
  Sizes sizes = getSizes(right);
  sizes[0] = batchOf(*m);
  sizes[1] = m->rows;
  FailureOr<Value> fitting = ctx.castSizes(right, sizes);
  if (failed(fitting))
    return failure();
  Value y = emitReflections(ctx.b, m->all, *tau, *fitting, isTurned);
  return ctx.result(spreadOuter(ctx.b, isLeft ? y : turn(ctx.b, y), m->outer));
}

//===--- eigenvalues, singular values -----------------------------------------------------------------------------===//

struct Eigen {
  Value values, vectors;
};

Eigen emitEigh(PrimBuilder &b, const Matrices &m, bool isUpper) {
  ValueRange r = callOf(b, "linalg_eigh", isUpper ? turn(b, m.all) : m.all,
                        {{typeOf(b, m), {batchOf(m), m.rows}}, {typeOf(b, m), getSizes(m.all)}});
  return {r[0], r[1]};
}

/// linalg_eigh and (`hasVectors` false) linalg_eigvalsh.
NodeHandler eigh(StringRef name, bool hasVectors) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    FailureOr<Matrices> m = readSquare(c, name);
    if (failed(m))
      return failure();
    const std::string triangle = ctx.getString("UPLO", "L");
    if (triangle != "L" && triangle != "U" && triangle != "l" && triangle != "u")
      return ctx.invalid("UPLO is \"" + triangle + "\"; it may be \"L\" or \"U\"");
    Eigen e = emitEigh(ctx.b, *m, triangle == "U" || triangle == "u");
    if (failed(ctx.set(0, spreadOuter(ctx.b, e.values, m->outer))))
      return failure();
    if (!hasVectors)
      return success();
    if (!c.flag("compute_v", true))
      return ctx.set(1, ctx.b.splat(typeOf(ctx.b, *m), {ctx.b.size(0)}, 0));
    return ctx.set(1, spreadOuter(ctx.b, e.vectors, m->outer));
  };
}

struct Svd {
  Value u, values, vh; ///< [B, M, p], [B, k], [B, q, N]
};

FailureOr<Svd> emitSvd(NodeContext &ctx, const Matrices &m, bool isFull = false) {
  PrimBuilder &b = ctx.b;
  FailureOr<AffineExpr> k = shorterSide(ctx, m);
  if (failed(k))
    return failure();
  Type type = typeOf(b, m);
  ValueRange r = callOf(b, "linalg_svd", m.all,
                        {{type, {batchOf(m), m.rows, isFull ? m.rows : *k}},
                         {type, {batchOf(m), *k}},
                         {type, {batchOf(m), isFull ? m.columns : *k, m.columns}}});
  return Svd{r[0], r[1], r[2]};
}

/// linalg_svd, _linalg_svd and (`isTurned`: V instead of V') svd.
NodeHandler svd(StringRef name, bool isFullByDefault, bool isTurned) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    PrimBuilder &b = ctx.b;
    FailureOr<Matrices> m = readMatrices(c, name);
    if (failed(m))
      return failure();
    const bool isFull = isTurned ? !c.flag("some", true) : c.flag("full_matrices", isFullByDefault);
    const bool hasVectors = c.flag("compute_uv", true);
    if (!hasVectors && isTurned)
      return ctx.unsupported("without vectors is not supported; call torch.linalg.svdvals");
    FailureOr<Svd> s = emitSvd(ctx, *m, isFull && hasVectors);
    if (failed(s))
      return failure();
    Value none = b.splat(typeOf(b, *m), {b.size(0)}, 0);
    return success(
        succeeded(ctx.set(0, hasVectors ? spreadOuter(b, s->u, m->outer) : none)) &&
        succeeded(ctx.set(1, spreadOuter(b, s->values, m->outer))) &&
        succeeded(ctx.set(2, hasVectors ? spreadOuter(b, isTurned ? turn(b, s->vh) : s->vh, m->outer) : none)));
  };
}

LogicalResult svdvals(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Matrices> m = readMatrices(c, "A");
  if (failed(m))
    return failure();
  FailureOr<Svd> s = emitSvd(ctx, *m);
  return failed(s) ? failure() : ctx.result(spreadOuter(ctx.b, s->values, m->outer));
}

/// The absolute and the relative tolerance [B], from numbers or tensors. Neither is given: the larger side times the
/// type's epsilon; only an absolute one above 0: that alone.
FailureOr<Value> readTolerance(NodeContext &ctx, const Matrices &m, Value largest, StringRef absolute,
                               StringRef relative) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  Type type = typeOf(b, m);
  const Sizes batch = getSizes(largest);
  auto read = [&](StringRef name) -> FailureOr<Value> {
    if (name.empty() || !c.has(name))
      return Value();
    FailureOr<Value> v = c.as(name, type);
    if (failed(v))
      return failure();
    FailureOr<Value> spread = ctx.broadcastOnto(*v, m.outer);
    return failed(spread) ? FailureOr<Value>(failure()) : b.reshape(*spread, batch);
  };
  FailureOr<Value> atol = read(absolute), rtol = read(relative);
  if (failed(atol) || failed(rtol))
    return failure();
  if (!*rtol) {
    auto [low, high] = b.bounds(simplifySize(m.rows - m.columns));
    if (low < 0 && high > 0)
      return LogicalResult(ctx.unsupported("of matrices that may be higher or wider is not supported"));
    Value side = b.convert(b.sizeValue(low >= 0 ? m.rows : m.columns), type);
    Value usual = b.broadcastTo(b.binary<MulOp>(side, type.isF64() ? DBL_EPSILON : FLT_EPSILON), batch);
    rtol = *atol ? b.select(b.compare(CompareKind::GT, *atol, 0), b.splatLike(usual, 0), usual) : usual;
  }
  Value limit = b.mul(*rtol, largest);
  return *atol ? b.max(*atol, limit) : limit;
}

/// Singular values, or the sizes of the eigenvalues of symmetric matrices [B, k], and their largest [B].
struct Spectrum {
  Value values, largest;
};

FailureOr<Spectrum> readSpectrum(NodeContext &ctx, const Matrices &m, bool isHermitian, Svd *factors, Eigen *eigen) {
  PrimBuilder &b = ctx.b;
  Spectrum s;
  if (isHermitian) {
    if (failed(ctx.requireEqual(m.rows, m.columns, "square matrices")))
      return failure();
    *eigen = emitEigh(b, m, /*isUpper=*/false);
    s.values = b.unary<AbsOp>(eigen->values);
  } else {
    FailureOr<Svd> svd = emitSvd(ctx, m);
    if (failed(svd))
      return failure();
    *factors = *svd;
    s.values = svd->values;
  }
  // None is below 0, which stands for the largest of none.
  s.largest = b.reduce(ReduceKind::Max,
                       b.pad(s.values, b.scalar(b.elementOf(s.values), 0), Sizes(2, b.size(0)),
                             {getSizes(s.values)[0], simplifySize(getSizes(s.values)[1] + 1)}),
                       {1});
  return s;
}

NodeHandler matrixRank(StringRef name, StringRef absolute, StringRef relative) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    PrimBuilder &b = ctx.b;
    FailureOr<Matrices> m = readMatrices(c, name);
    if (failed(m))
      return failure();
    Svd svd;
    Eigen eigen;
    FailureOr<Spectrum> s = readSpectrum(ctx, *m, c.flag("hermitian"), &svd, &eigen);
    if (failed(s))
      return failure();
    FailureOr<Value> limit = readTolerance(ctx, *m, s->largest, absolute, relative);
    if (failed(limit))
      return failure();
    Value isAbove = b.compare(CompareKind::GT, s->values, b.broadcastInDims(*limit, getSizes(s->values), {0}));
    return ctx.result(spreadOuter(b, b.reduce(ReduceKind::Sum, b.convert(isAbove, b.getI64Type()), {1}), m->outer));
  };
}

NodeHandler pseudoInverse(StringRef name, StringRef absolute, StringRef relative) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    PrimBuilder &b = ctx.b;
    FailureOr<Matrices> m = readMatrices(c, name);
    if (failed(m))
      return failure();
    const bool isHermitian = c.flag("hermitian");
    Svd svd;
    Eigen eigen;
    FailureOr<Spectrum> s = readSpectrum(ctx, *m, isHermitian, &svd, &eigen);
    if (failed(s))
      return failure();
    FailureOr<Value> limit = readTolerance(ctx, *m, s->largest, absolute, relative);
    if (failed(limit))
      return failure();
    const Sizes sizes = getSizes(s->values);
    Value isKept = b.compare(CompareKind::GT, s->values, b.broadcastInDims(*limit, sizes, {0}));
    Value values = isHermitian ? eigen.values : s->values;
    Value inverses = b.select(isKept, b.unary<ReciprocalOp>(values), b.splatLike(values, 0));
    // V S^-1 U'
    Value left = isHermitian ? eigen.vectors : turn(b, svd.vh), right = turn(b, isHermitian ? eigen.vectors : svd.u);
    Value scaled = b.mul(left, b.broadcastInDims(inverses, getSizes(left), {0, 2}));
    FailureOr<Value> y = emitMatMul(ctx, scaled, right);
    return failed(y) ? failure() : ctx.result(spreadOuter(b, *y, m->outer));
  };
}

//===--- norms ----------------------------------------------------------------------------------------------------===//

/// The greatest (0 of none) or the least of norms [B, N], which are 0 or more.
Value extremeNorm(PrimBuilder &b, Value v, bool isMax) {
  Value result = b.reduce(isMax ? ReduceKind::Max : ReduceKind::Min, v, {1});
  return isMax ? b.binary<MaxOp>(result, 0) : result;
}

/// Norms [B] of matrices [B, M, N]. `order`: "fro", "nuc", or "" for the number.
FailureOr<Value> emitMatrixNorm(NodeContext &ctx, const Matrices &m, StringRef word, double order) {
  PrimBuilder &b = ctx.b;
  if (word == "fro") {
    Value square = b.mul(m.all, m.all);
    return b.unary<SqrtOp>(b.reduce(ReduceKind::Sum, square, {1, 2}));
  }
  const double size = std::abs(order);
  if (word == "nuc" || size == 2) {
    FailureOr<Svd> s = emitSvd(ctx, m);
    if (failed(s))
      return failure();
    return word == "nuc" ? b.reduce(ReduceKind::Sum, s->values, {1}) : extremeNorm(b, s->values, order > 0);
  }
  if (!word.empty() || (size != 1 && !std::isinf(order)))
    return LogicalResult(ctx.invalid("takes the orders \"fro\", \"nuc\", inf, -inf, 1, -1, 2 and -2"));
  Value sums = b.reduce(ReduceKind::Sum, b.unary<AbsOp>(m.all), {std::isinf(order) ? 2 : 1});
  return extremeNorm(b, sums, order > 0);
}

/// The norms over two dims.
LogicalResult matrixNorm(NodeContext &ctx, StringRef word, double order, ArrayRef<int64_t> dims) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  FailureOr<Type> type = c.dtype(b.elementOf(*self));
  if (failed(type))
    return failure();
  FailureOr<Value> x = c.convert(*self, *type);
  if (failed(x))
    return failure();
  const int64_t rank = b.rankOf(*x);
  FailureOr<SmallVector<int64_t>> axes = ctx.axes(dims, rank);
  if (failed(axes) || axes->size() != 2)
    return ctx.invalid("takes two dims");
  SmallVector<int64_t> permutation;
  for (int64_t i = 0; i < rank; ++i)
    if (!llvm::is_contained(*axes, i))
      permutation.push_back(i);
  permutation.append(axes->begin(), axes->end());
  FailureOr<Matrices> m = toMatrices(ctx, b.transpose(*x, permutation));
  if (failed(m))
    return failure();
  FailureOr<Value> norm = emitMatrixNorm(ctx, *m, word, order);
  if (failed(norm))
    return failure();
  Value y = spreadOuter(b, *norm, m->outer);
  if (c.flag("keepdim")) {
    Sizes sizes = getSizes(*x);
    for (int64_t axis : *axes)
      sizes[axis] = b.size(1);
    y = b.reshape(y, sizes);
  }
  return ctx.result(y);
}

SmallVector<int64_t> dimsOr(Call &c, SmallVector<int64_t> otherwise) {
  return c.integers("dim").value_or(std::move(otherwise));
}

LogicalResult linalgMatrixNorm(NodeContext &ctx) {
  Call c(ctx);
  auto word = dyn_cast_or_null<StringAttr>(ctx.attr("ord"));
  const bool isNumber = ctx.hasAttr("ord") && !word;
  return matrixNorm(ctx,
                    isNumber ? StringRef()
                    : word   ? word.getValue()
                             : StringRef("fro"),
                    c.number("ord", 0), dimsOr(c, {-2, -1}));
}

LogicalResult nuclearNorm(NodeContext &ctx) {
  Call c(ctx);
  return matrixNorm(ctx, "nuc", 0, dimsOr(c, {-2, -1}));
}

/// Of vectors where there is no order or one dim, else of matrices.
LogicalResult linalgNorm(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  std::optional<SmallVector<int64_t>> dims = c.integers("dim");
  const bool hasOrder = ctx.hasAttr("ord");
  auto word = dyn_cast_or_null<StringAttr>(ctx.attr("ord"));
  const int64_t rank = ctx.b.rankOf(*self);
  if (hasOrder && !dims && rank != 1 && rank != 2)
    return ctx.invalid("with an order but without dims takes vectors and matrices, but got " + describe(*self));
  if (hasOrder && (dims ? dims->size() == 2 : rank == 2))
    return matrixNorm(ctx, word ? word.getValue() : StringRef(), c.number("ord", 0),
                      dims ? *dims : SmallVector<int64_t>{0, 1});
  if (word)
    return ctx.invalid("takes a number as order of vectors, but got \"" + word.getValue() + "\"");
  FailureOr<SmallVector<Value>> norm = ctx.emitOperator("linalg_vector_norm.default", ctx.opset(), ctx.allOperands(),
                                                        ctx.node().getAttrs().getValue(), /*count=*/1, "aten");
  return failed(norm) ? failure() : ctx.result((*norm)[0]);
}

/// The norm times that of the inverse.
LogicalResult condition(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Matrices> m = readMatrices(c, "self");
  if (failed(m))
    return failure();
  auto word = dyn_cast_or_null<StringAttr>(ctx.attr("p"));
  const double order = c.number("p", 2);
  if (!word && std::abs(order) == 2) {
    FailureOr<Svd> s = emitSvd(ctx, *m);
    if (failed(s))
      return failure();
    Value largest = b.reduce(ReduceKind::Max, s->values, {1}), smallest = b.reduce(ReduceKind::Min, s->values, {1});
    return ctx.result(spreadOuter(b, order > 0 ? b.div(largest, smallest) : b.div(smallest, largest), m->outer));
  }
  m = readSquare(c, "self");
  if (failed(m))
    return failure();
  Solution s = emitSolve(b, m->all, unitMatrices(b, typeOf(b, *m), getSizes(m->all)));
  Matrices inverse = *m;
  inverse.all = s.x;
  const StringRef name = word ? word.getValue() : StringRef();
  FailureOr<Value> norm = emitMatrixNorm(ctx, *m, name, order);
  FailureOr<Value> other = failed(norm) ? norm : emitMatrixNorm(ctx, inverse, name, order);
  if (failed(other))
    return failure();
  Value y = b.mul(*norm, *other);
  y = b.select(b.compare(CompareKind::GT, s.info, 0), b.splatLike(y, INFINITY), y);
  return ctx.result(spreadOuter(b, y, m->outer));
}

//===--- powers and tensors ---------------------------------------------------------------------------------------===//

LogicalResult matrixPower(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  const int64_t rank = b.rankOf(*self), n = c.integer("n", 1);
  if (rank < 2)
    return ctx.invalid("takes matrices, but got " + describe(*self));
  const Sizes sizes = getSizes(*self);
  if (failed(ctx.requireEqual(sizes[rank - 2], sizes[rank - 1], "square matrices")))
    return failure();
  if (n == 0)
    return ctx.result(unitMatrices(b, b.elementOf(*self), sizes));
  Value base = *self;
  if (n < 0) {
    FailureOr<Matrices> m = readSquare(c, "self");
    if (failed(m))
      return failure();
    Solution s = emitSolve(b, m->all, unitMatrices(b, typeOf(b, *m), getSizes(m->all)));
    guardInfo(ctx, s.info, "its matrix is singular and has no inverse");
    base = spreadOuter(b, s.x, m->outer);
  }
  Value result;
  for (uint64_t left = n < 0 ? -uint64_t(n) : uint64_t(n); left; left >>= 1) {
    if (left & 1) {
      FailureOr<Value> next = result ? emitMatMul(ctx, result, base) : FailureOr<Value>(base);
      if (failed(next))
        return failure();
      result = *next;
    }
    if (left > 1) {
      FailureOr<Value> square = emitMatMul(ctx, base, base);
      if (failed(square))
        return failure();
      base = *square;
    }
  }
  return ctx.result(result);
}

LogicalResult tensorInverse(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.required("self");
  if (failed(self))
    return failure();
  const Sizes sizes = getSizes(*self);
  const int64_t ind = c.integer("ind", 2);
  if (ind < 1 || ind > int64_t(sizes.size()))
    return ctx.invalid("ind is " + Twine(ind) + "; it must lie in [1, " + Twine(sizes.size()) + "]");
  AffineExpr rows = product(b.getContext(), SizesRef(sizes).take_front(ind)),
             columns = product(b.getContext(), SizesRef(sizes).drop_front(ind));
  if (failed(ctx.requireEqual(rows, columns, "as many elements before ind as behind it")))
    return failure();
  FailureOr<Matrices> m = toMatrices(ctx, b.reshape(*self, {rows, rows}));
  if (failed(m))
    return failure();
  Solution s = emitSolve(b, m->all, unitMatrices(b, typeOf(b, *m), getSizes(m->all)));
  guardInfo(ctx, s.info, "it is singular and has no inverse");
  Sizes result(sizes.begin() + ind, sizes.end());
  result.append(sizes.begin(), sizes.begin() + ind);
  return ctx.result(b.reshape(s.x, result));
}

LogicalResult tensorSolve(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> self = c.required("self"), other = c.required("other");
  if (failed(self) || failed(other))
    return failure();
  const int64_t rank = b.rankOf(*self);
  SmallVector<int64_t> permutation;
  if (std::optional<SmallVector<int64_t>> dims = c.integers("dims")) {
    FailureOr<SmallVector<int64_t>> moved = ctx.axes(*dims, rank);
    if (failed(moved))
      return failure();
    for (int64_t i = 0; i < rank; ++i)
      if (!llvm::is_contained(*moved, i))
        permutation.push_back(i);
    permutation.append(moved->begin(), moved->end());
    self = b.transpose(*self, permutation);
  }
  const Sizes sizes = getSizes(*self), given = getSizes(*other);
  if (given.size() > sizes.size())
    return ctx.invalid("takes a right side of lower rank, but got " + describe(*other));
  const AffineExpr rows = product(b.getContext(), given);
  Sizes result(sizes.begin() + given.size(), sizes.end());
  if (failed(ctx.requireEqual(product(b.getContext(), result), rows, "as many unknowns as equations")))
    return failure();
  FailureOr<Value> flat = ctx.reshape(*self, {rows, rows});
  if (failed(flat))
    return failure();
  FailureOr<Matrices> m = toMatrices(ctx, *flat);
  if (failed(m) || b.elementOf(*other) != typeOf(b, *m))
    return ctx.invalid("takes operands of one type, but got " + describe(*self) + " and " + describe(*other));
  Solution s = emitSolve(b, m->all, b.reshape(*other, {b.size(1), rows, b.size(1)}));
  guardInfo(ctx, s.info, "it is singular: there is no solution, or more than one");
  return ctx.result(b.reshape(s.x, result));
}

/// What functions of PyTorch that raise errors are written as: the function, and this on what it tells.
LogicalResult checkErrors(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Value> info = c.required("info");
  if (failed(info))
    return failure();
  if (!isa<IntegerType>(b.elementOf(*info)))
    return ctx.invalid("takes integers, but got " + describe(*info));
  guardInfo(ctx, b.reshape(*info, {ctx.countElements(*info)}),
            ctx.getString("api_name", "linalg") + ": a matrix is singular, or not positive-definite");
  return success();
}

} // namespace

void tc::populateATenLinalg(OpRegistrar &onOp) {
  auto on = [&](StringRef type, NodeHandler handler, size_t minOperands = 1) {
    onOp(type, /*sinceVersion=*/1, std::move(handler), minOperands);
  };
  on("_linalg_check_errors.default", checkErrors);
  on("linalg_solve_triangular.default", solveTriangular, 2);
  on("triangular_solve.default", triangularSolve, 2);
  on("cholesky.default", cholesky(/*isChecked=*/true));
  on("linalg_cholesky.default", cholesky(/*isChecked=*/true));
  on("linalg_cholesky_ex.default", cholesky(/*isChecked=*/false));
  on("cholesky_solve.default", choleskySolve, 2);
  on("cholesky_inverse.default", choleskyInverse);
  on("linalg_householder_product.default", householderProduct, 2);
  on("ormqr.default", multiplyByReflections, 3);
  on("linalg_qr.default", qr);
  on("qr.default", oldQr);
  on("linalg_eigh.default", eigh("self", /*hasVectors=*/true));
  on("_linalg_eigh.default", eigh("A", /*hasVectors=*/true));
  on("linalg_eigvalsh.default", eigh("self", /*hasVectors=*/false));
  on("linalg_svd.default", svd("A", /*isFullByDefault=*/true, /*isTurned=*/false));
  on("_linalg_svd.default", svd("A", /*isFullByDefault=*/false, /*isTurned=*/false));
  on("svd.default", svd("self", /*isFullByDefault=*/false, /*isTurned=*/true));
  on("linalg_svdvals.default", svdvals);
  on("linalg_matrix_rank.default", matrixRank("self", "tol", ""));
  on("linalg_matrix_rank.tol_tensor", matrixRank("input", "tol", ""));
  on("linalg_matrix_rank.atol_rtol_float", matrixRank("self", "atol", "rtol"));
  on("linalg_matrix_rank.atol_rtol_tensor", matrixRank("input", "atol", "rtol"));
  on("pinverse.default", pseudoInverse("self", "", "rcond"));
  on("linalg_pinv.default", pseudoInverse("self", "", "rcond"));
  on("linalg_pinv.rcond_tensor", pseudoInverse("self", "", "rcond"));
  on("linalg_pinv.atol_rtol_float", pseudoInverse("self", "atol", "rtol"));
  on("linalg_pinv.atol_rtol_tensor", pseudoInverse("self", "atol", "rtol"));
  on("linalg_matrix_norm.default", linalgMatrixNorm);
  on("linalg_matrix_norm.str_ord", linalgMatrixNorm);
  on("nuclear_norm.default", nuclearNorm);
  on("nuclear_norm.dim", nuclearNorm);
  on("linalg_norm.default", linalgNorm);
  on("linalg_norm.ord_str", linalgNorm);
  on("linalg_cond.default", condition);
  on("linalg_cond.p_str", condition);
  on("matrix_power.default", matrixPower);
  on("linalg_matrix_power.default", matrixPower);
  on("linalg_tensorinv.default", tensorInverse);
  on("linalg_tensorsolve.default", tensorSolve, 2);
}
