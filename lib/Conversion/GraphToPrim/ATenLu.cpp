//===- ATenLu.cpp - LU factors of matrices of ATen, and what follows from them ------------------------------------===//
//
// Factors and solutions are functions of the runtime (lib/Functions/Linalg.c). Row k was exchanged with row pivots[k],
// for rising k: the permutation that follows is a loop. Source: the native function schemas of PyTorch
// (aten/src/ATen/native/native_functions.yaml), and what torch.linalg's documentation says of shapes.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ATenMatrices.h"
#include "OpRegistry.h"
#include "Shared.h"

#include <cmath>

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

struct Lu {
  Value factors, pivots, info;
};

FailureOr<Lu> factorLu(NodeContext &ctx, const Matrices &m) {
  PrimBuilder &b = ctx.b;
  FailureOr<AffineExpr> k = shorterSide(ctx, m);
  if (failed(k))
    return failure();
  Type i64 = b.getI64Type();
  ValueRange r =
      callOf(b, "linalg_lu", m.all, {{typeOf(b, m), getSizes(m.all)}, {i64, {batchOf(m), *k}}, {i64, {batchOf(m)}}});
  return Lu{r[0], r[1], r[2]};
}

/// Of the operand A, which `m` becomes.
FailureOr<Lu> factorOperand(Call &c, Matrices &m) {
  FailureOr<Matrices> a = readMatrices(c, "A");
  if (failed(a))
    return failure();
  if (!c.flag("pivot", true))
    return LogicalResult(c.ctx.unsupported("without pivots is not supported"));
  m = *a;
  return factorLu(c.ctx, m);
}

struct Determinant {
  Value sign, logarithm; ///< [B]
};

/// Of the diagonal of U, and of how many rows were exchanged.
Determinant readDeterminant(PrimBuilder &b, const Matrices &m, const Lu &lu) {
  Type type = typeOf(b, m), i64 = b.getI64Type();
  const Sizes all = getSizes(lu.factors), row{all[0], all[1]};
  Value isDiagonal = b.compare(CompareKind::EQ, b.iota(i64, all, 1), b.iota(i64, all, 2));
  Value diagonal = b.reduce(ReduceKind::Sum, b.select(isDiagonal, lu.factors, b.splatLike(lu.factors, 0)), {2});
  Value isMoved = b.compare(CompareKind::NE, lu.pivots, b.iota(i64, row, 1));
  Value turned = b.select(isMoved, b.splat(type, row, -1), b.splat(type, row, 1));
  Value sign = b.mul(turned, b.unary<SignOp>(diagonal));
  return {b.reduce(ReduceKind::Prod, sign, {1}),
          b.reduce(ReduceKind::Sum, b.unary<LogOp>(b.unary<AbsOp>(diagonal)), {1})};
}

/// The pivots as LAPACK counts them.
Value pivotsFromOne(PrimBuilder &b, Value pivots) {
  return b.convert(b.binary<AddOp>(pivots, 1), b.getIntegerType(32));
}

/// Refuses factors among the results, from result `first` on: PyTorch takes them of the matrix or of the transposed
/// one, as it lies in memory, which is not known here.
LogicalResult refuseFactors(NodeContext &ctx, size_t first) {
  if (ctx.isResultUsed(first) || ctx.isResultUsed(first + 1))
    return ctx.unsupported("with its factors as results is not supported; call torch.linalg.lu_factor");
  return success();
}

/// linalg_slogdet and the like.
NodeHandler slogdet(StringRef name) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    FailureOr<Matrices> m = readSquare(c, name);
    if (failed(m) || failed(refuseFactors(ctx, 2)))
      return failure();
    FailureOr<Lu> lu = factorLu(ctx, *m);
    if (failed(lu))
      return failure();
    Determinant d = readDeterminant(ctx.b, *m, *lu);
    return success(succeeded(ctx.set(0, spreadOuter(ctx.b, d.sign, m->outer))) &&
                   succeeded(ctx.set(1, spreadOuter(ctx.b, d.logarithm, m->outer))));
  };
}

/// det.default and the like: the operator of ONNX.
NodeHandler det(StringRef name) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    FailureOr<Matrices> m = readSquare(c, name);
    if (failed(m) || failed(refuseFactors(ctx, 1)))
      return failure();
    FailureOr<Value> d = ctx.emitAs("Det", 11, m->all);
    return failed(d) ? failure() : ctx.result(spreadOuter(ctx.b, *d, m->outer));
  };
}

/// Not a number where the determinant is negative, minus infinity where it is 0.
LogicalResult logdet(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<Matrices> m = readSquare(c, "self");
  if (failed(m))
    return failure();
  FailureOr<Lu> lu = factorLu(ctx, *m);
  if (failed(lu))
    return failure();
  Determinant d = readDeterminant(b, *m, *lu);
  Value isNegative = b.compare(CompareKind::LT, d.sign, 0);
  Value y = b.select(isNegative, b.splatLike(d.logarithm, NAN), d.logarithm);
  return ctx.result(spreadOuter(b, y, m->outer));
}

/// Factors and pivots as results `first` and the next one.
LogicalResult setPacked(NodeContext &ctx, size_t first, const Matrices &m, const Lu &lu) {
  PrimBuilder &b = ctx.b;
  return success(succeeded(ctx.set(first, spreadOuter(b, lu.factors, m.outer))) &&
                 succeeded(ctx.set(first + 1, spreadOuter(b, pivotsFromOne(b, lu.pivots), m.outer))));
}

/// linalg_lu_factor(_ex): factors, pivots, and (`hasInfo`) the number of the first pivot of 0.
NodeHandler luFactor(bool hasInfo) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    Matrices m;
    FailureOr<Lu> lu = factorOperand(c, m);
    if (failed(lu) || failed(setPacked(ctx, 0, m, *lu)))
      return failure();
    if (!hasInfo)
      return success();
    return ctx.set(2, spreadOuter(ctx.b, ctx.b.convert(lu->info, ctx.b.getIntegerType(32)), m.outer));
  };
}

/// linalg_inv(_ex) and inverse; with `isChecked` a singular matrix fails, else it is told of in result 1.
NodeHandler inverse(StringRef name, bool isChecked) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    PrimBuilder &b = ctx.b;
    FailureOr<Matrices> m = readSquare(c, name);
    if (failed(m))
      return failure();
    Solution s = emitSolve(b, m->all, unitMatrices(b, typeOf(b, *m), getSizes(m->all)));
    if (isChecked || c.flag("check_errors"))
      guardInfo(ctx, s.info, "its matrix is singular and has no inverse");
    if (failed(ctx.set(0, spreadOuter(b, s.x, m->outer))))
      return failure();
    return isChecked ? success() : ctx.set(1, spreadOuter(b, b.convert(s.info, b.getIntegerType(32)), m->outer));
  };
}

/// linalg_solve(_ex), _linalg_solve_ex: results 0 and, where there are any, those that `positions` names.
struct SolveResults {
  bool isChecked;
  int factors = -1, info = -1; ///< pivots follow factors
};

NodeHandler solve(SolveResults positions) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    PrimBuilder &b = ctx.b;
    FailureOr<Value> a = c.required("A"), y = c.required("B");
    if (failed(a) || failed(y))
      return failure();
    const bool isLeft = c.flag("left", true);
    // One right side: a vector, or as many vectors as there are matrices.
    const int64_t ra = b.rankOf(*a), ry = b.rankOf(*y);
    bool isVector = ry == 1;
    if (ry == ra - 1 && ry > 1) {
      const Sizes sa = getSizes(*a), sy = getSizes(*y);
      isVector = std::equal(sy.begin(), sy.end(), sa.begin());
    }
    Value right = isVector ? b.unsqueeze(*y, ry) : *y;
    if (isVector && !isLeft)
      return ctx.invalid("takes vectors on the right side only");
    if (!isLeft && failed(requireMatrices(ctx, {*a, right})))
      return failure();
    FailureOr<MatrixPair> pair =
        isLeft ? broadcastOuter(ctx, *a, right) : broadcastOuter(ctx, turn(b, *a), turn(b, right)); // x a = y
    if (failed(pair))
      return failure();
    if (failed(ctx.requireEqual(pair->a.rows, pair->a.columns, "square matrices")) ||
        failed(ctx.requireEqual(pair->a.rows, pair->y.rows, "right sides of as many rows as its matrices")))
      return failure();
    const Sizes square{batchOf(pair->a), pair->y.rows, pair->y.rows};
    Solution s = emitSolve(b, b.reshape(pair->a.all, square), pair->y.all);
    if (positions.isChecked || c.flag("check_errors"))
      guardInfo(ctx, s.info, "its matrix is singular: there is no solution, or more than one");
    Value x = spreadOuter(b, s.x, pair->outer);
    x = isVector ? b.take(x, b.rankOf(x) - 1, 0) : isLeft ? x : turn(b, x);
    if (failed(ctx.set(0, x)))
      return failure();
    if (positions.info >= 0 &&
        failed(ctx.set(positions.info, spreadOuter(b, b.convert(s.info, b.getIntegerType(32)), pair->outer))))
      return failure();
    const size_t first = size_t(positions.factors);
    if (positions.factors < 0 || (!ctx.isResultUsed(first) && !ctx.isResultUsed(first + 1)))
      return success();
    FailureOr<Matrices> m = readSquare(c, "A");
    FailureOr<Lu> lu = failed(m) ? FailureOr<Lu>(failure()) : factorLu(ctx, *m);
    return failed(lu) ? failure() : setPacked(ctx, first, *m, *lu);
  };
}

//===--- of factors that are given --------------------------------------------------------------------------------===//

/// For each row [B, M] of the product of both factors the row of the matrix that it is, of pivots [B, K] from 0 on.
Value emitPermutation(PrimBuilder &b, Value pivots, AffineExpr rows) {
  const Type i64 = b.getI64Type();
  const AffineExpr batch = getSizes(pivots)[0];
  const Sizes all{batch, rows};
  return emitSteps(
      b, b.sizeValue(getSizes(pivots)[1]), b.iota(i64, all, 1), [&](Value step, ValueRange v) -> SmallVector<Value> {
        Value other = GatherOp::create(b, pivots, step, 1), i = b.iota(i64, all, 1); // [B]
        auto spread = [&](Value one) { return b.broadcastInDims(one, all, {0}); };
        Value own = GatherOp::create(b, v[0], step, 1), at = b.unsqueeze(other, 1);
        Value from = b.reshape(GatherElementsOp::create(b, makeType(i64, {batch, b.size(1)}), v[0], at, 1), {batch});
        Value moved = b.select(b.compare(CompareKind::EQ, i, spread(other)), spread(own), v[0]);
        return {b.select(b.compare(CompareKind::EQ, i, b.broadcastTo(step, all)), spread(from), moved)};
      })[0];
}

/// Factors [.., M, N] and their pivots [.., K], as LAPACK counts them, as [B, K] from 0 on.
struct Factors {
  Matrices m;
  Value pivots;
};

FailureOr<Factors> readFactors(Call &c, StringRef name, StringRef pivotsName) {
  NodeContext &ctx = c.ctx;
  PrimBuilder &b = c.b;
  FailureOr<Matrices> m = readMatrices(c, name);
  FailureOr<Value> pivots = c.required(pivotsName);
  if (failed(m) || failed(pivots))
    return failure();
  FailureOr<AffineExpr> k = shorterSide(ctx, *m);
  if (failed(k))
    return failure();
  Sizes sizes(m->outer);
  sizes.push_back(*k);
  if (b.rankOf(*pivots) != int64_t(sizes.size()) || !isa<IntegerType>(b.elementOf(*pivots)))
    return LogicalResult(
        ctx.invalid("takes as many vectors of pivots, of integers, as factors, but got " + describe(*pivots)));
  FailureOr<Value> fitting = ctx.castSizes(*pivots, sizes);
  if (failed(fitting))
    return failure();
  Value counted = b.binary<SubOp>(b.convert(*fitting, b.getI64Type()), 1);
  return Factors{*m, b.reshape(counted, {batchOf(*m), *k})};
}

/// Rows of v [B, M, K] in the order of `places` [B, M].
Value takeRows(PrimBuilder &b, Value v, Value places) {
  Value at = b.broadcastInDims(places, getSizes(v), {0, 1});
  return GatherElementsOp::create(b, makeType(b.elementOf(v), getSizes(v)), v, at, 1);
}

/// x of a x = y, or (`isTurned`) of a' x = y, for the factors of a: a with its rows permuted is L U.
FailureOr<Value> solveByFactors(NodeContext &ctx, const Factors &f, Value y, bool isTurned) {
  PrimBuilder &b = ctx.b;
  Value factors = spreadOuter(b, f.m.all, f.m.outer);
  FailureOr<MatrixPair> pair = broadcastOuter(ctx, factors, y);
  if (failed(pair) || failed(ctx.requireEqual(f.m.rows, f.m.columns, "factors of square matrices")) ||
      failed(ctx.requireEqual(pair->a.rows, pair->y.rows, "right sides of as many rows as its matrices")))
    return failure();
  const AffineExpr batch = batchOf(pair->a), rows = pair->y.rows;
  Sizes pivotSizes(pair->outer);
  pivotSizes.push_back(getSizes(f.pivots)[1]);
  Value pivots = b.reshape(b.broadcastTo(spreadOuter(b, f.pivots, f.m.outer), pivotSizes), {batch, pivotSizes.back()});
  Value permutation = emitPermutation(b, pivots, rows), all = b.reshape(pair->a.all, {batch, rows, rows});
  Value x = isTurned ? pair->y.all : takeRows(b, pair->y.all, permutation);
  for (const bool isUpper : {false, true}) { // by L and U, or by U' and L'; of L and L' the diagonal is 1
    FailureOr<Value> next =
        emitTriangular(ctx, isTurned ? turn(b, all) : all, x, isUpper, /*isUnit=*/isUpper == isTurned);
    if (failed(next))
      return failure();
    x = *next;
  }
  if (isTurned) {
    Value places = b.iota(b.getI64Type(), getSizes(permutation), 1);
    Value back = ScatterElementsOp::create(b, permutation.getType(), b.splatLike(permutation, 0), permutation, places,
                                           1, ReduceKindAttr());
    x = takeRows(b, x, back);
  }
  return spreadOuter(b, x, pair->outer);
}

/// linalg_lu_solve, and lu_solve, which has neither `left` nor `adjoint`.
NodeHandler luSolve(StringRef factorsName, StringRef pivotsName, StringRef rightName) {
  return [=](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    FailureOr<Factors> f = readFactors(c, factorsName, pivotsName);
    FailureOr<Value> y = c.required(rightName);
    if (failed(f) || failed(y) || failed(requireMatrices(ctx, *y)))
      return failure();
    const bool isLeft = c.flag("left", true), isTurned = c.flag("adjoint") == isLeft; // x a = y is a' x' = y'
    FailureOr<Value> x = solveByFactors(ctx, *f, isLeft ? *y : turn(ctx.b, *y), isTurned);
    return failed(x) ? failure() : ctx.result(isLeft ? *x : turn(ctx.b, *x));
  };
}

/// P, L and U, of which the matrix is the product.
LogicalResult setFactors(NodeContext &ctx, const Factors &f, bool hasP, bool hasFactors) {
  PrimBuilder &b = ctx.b;
  const Type i64 = b.getI64Type(), type = typeOf(b, f.m);
  const AffineExpr batch = batchOf(f.m), M = f.m.rows, N = f.m.columns, K = getSizes(f.pivots)[1];
  Value none = b.splat(type, {b.size(0)}, 0);
  auto set = [&](size_t i, Value v) { return ctx.set(i, spreadOuter(b, v, f.m.outer)); };
  if (!hasP) {
    if (failed(ctx.set(0, none)))
      return failure();
  } else if (ctx.isResultUsed(0)) {
    const Sizes square{batch, M, M};
    Value row = b.broadcastInDims(emitPermutation(b, f.pivots, M), square, {0, 2});
    if (failed(set(0, b.convert(b.compare(CompareKind::EQ, row, b.iota(i64, square, 1)), type))))
      return failure();
  }
  if (!hasFactors)
    return success(succeeded(ctx.set(1, none)) && succeeded(ctx.set(2, none)));
  const Sizes ofL{batch, M, K}, ofU{batch, K, N};
  auto compare = [&](CompareKind kind, const Sizes &sizes) {
    return b.compare(kind, b.iota(i64, sizes, 1), b.iota(i64, sizes, 2));
  };
  Value left = b.sliceDim(f.m.all, 2, b.size(0), K), right = b.sliceDim(f.m.all, 1, b.size(0), K);
  left = b.select(compare(CompareKind::GT, ofL), left, b.convert(compare(CompareKind::EQ, ofL), type));
  right = b.select(compare(CompareKind::LE, ofU), right, b.splatLike(right, 0));
  return success(succeeded(set(1, left)) && succeeded(set(2, right)));
}

LogicalResult luUnpack(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Factors> f = readFactors(c, "LU_data", "LU_pivots");
  if (failed(f))
    return failure();
  return setFactors(ctx, *f, c.flag("unpack_pivots", true), c.flag("unpack_data", true));
}

LogicalResult luOf(NodeContext &ctx) {
  Call c(ctx);
  Matrices m;
  FailureOr<Lu> lu = factorOperand(c, m);
  if (failed(lu))
    return failure();
  return setFactors(ctx, {{lu->factors, m.outer, m.rows, m.columns}, lu->pivots}, /*hasP=*/true,
                    /*hasFactors=*/true);
}

} // namespace

void tc::populateATenLu(OpRegistrar &onOp) {
  auto on = [&](StringRef type, NodeHandler handler, size_t minOperands = 1) {
    onOp(type, /*sinceVersion=*/1, std::move(handler), minOperands);
  };
  on("det.default", det("self"));
  on("linalg_det.default", det("A"));
  on("_linalg_det.default", det("A"));
  on("slogdet.default", slogdet("self"));
  on("linalg_slogdet.default", slogdet("A"));
  on("_linalg_slogdet.default", slogdet("A"));
  on("logdet.default", logdet);
  on("linalg_lu_factor.default", luFactor(/*hasInfo=*/false));
  on("linalg_lu_factor_ex.default", luFactor(/*hasInfo=*/true));
  on("inverse.default", inverse("self", /*isChecked=*/true));
  on("linalg_inv.default", inverse("A", /*isChecked=*/true));
  on("linalg_inv_ex.default", inverse("A", /*isChecked=*/false));
  on("linalg_solve.default", solve({/*isChecked=*/true}), 2);
  on("linalg_solve_ex.default", solve({/*isChecked=*/false, -1, 1}), 2);
  on("_linalg_solve_ex.default", solve({/*isChecked=*/false, 1, 3}), 2);
  on("linalg_lu.default", luOf);
  on("lu_unpack.default", luUnpack, 2);
  on("linalg_lu_solve.default", luSolve("LU", "pivots", "B"), 3);
  on("lu_solve.default", luSolve("LU_data", "LU_pivots", "self"), 3);
}
