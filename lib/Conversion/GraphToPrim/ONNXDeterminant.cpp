//===- ONNXDeterminant.cpp - determinants and inverses of matrices ---------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ONNXSupport.h"
#include "OpRegistry.h"
#include "Shared.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

/// A step of elimination on matrices [B, M, W], W >= M, side by side: the row from row `step` on whose element in
/// column `step` is the largest changes places with row `step`.
struct Pivoting {
  Value matrix; ///< after the exchange
  Value column; ///< its column `step` [B, M]
  Value row;    ///< its row `step` [B, W]
  Value pivot;  ///< their common element [B]
  Value isKept; ///< no rows were exchanged [B]
  Value number; ///< of each row [B, M]
  Value here;   ///< `step` for each row [B, M]
};

Pivoting exchangeRows(PrimBuilder &b, Value matrix, Value step) {
  Type type = b.elementOf(matrix), i64 = b.getI64Type();
  Sizes all = getSizes(matrix), rows{all[0], all[1]}, columns{all[0], all[2]}, each{all[0]};
  Value zero = b.scalar(i64, 0);
  auto columnOf = [&](Value m) {
    Value slice =
        DynamicSliceOp::create(b, makeType(type, {all[0], all[1], b.size(1)}), m, ValueRange{zero, zero, step});
    return b.reshape(slice, rows);
  };
  Pivoting p;
  p.number = b.iota(i64, rows, 1);
  p.here = b.broadcastTo(step, rows);
  Value magnitude = b.unary<AbsOp>(columnOf(matrix));
  magnitude = b.select(b.compare(CompareKind::GE, p.number, p.here), magnitude, b.splatLike(magnitude, -1));
  Value best = ArgReduceOp::create(b, makeType(i64, each), ReduceKind::Max, magnitude, 1, /*lastIndex=*/false);
  Value wideBest = b.broadcastInDims(best, rows, {0});
  Value from = b.select(b.compare(CompareKind::EQ, p.number, p.here), wideBest,
                        b.select(b.compare(CompareKind::EQ, p.number, wideBest), p.here, p.number));
  p.matrix = GatherElementsOp::create(b, matrix.getType(), matrix, b.broadcastInDims(from, all, {0, 1}), 1);
  p.column = columnOf(p.matrix);
  Value row =
      DynamicSliceOp::create(b, makeType(type, {all[0], b.size(1), all[2]}), p.matrix, ValueRange{zero, step, zero});
  p.row = b.reshape(row, columns);
  p.pivot =
      b.reshape(DynamicSliceOp::create(b, makeType(type, {all[0], b.size(1)}), p.column, ValueRange{zero, step}), each);
  p.isKept = b.compare(CompareKind::EQ, best, b.broadcastTo(step, each));
  return p;
}

/// The operand [.., M, M] as [B, M, M] of floats of at least 32 bits.
FailureOr<Value> squareMatrices(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  Sizes sizes = getSizes(x);
  AffineExpr M = sizes[sizes.size() - 1];
  if (failed(ctx.requireEqual(sizes[sizes.size() - 2], M, "square matrices")))
    return failure();
  Sizes outer(sizes.begin(), sizes.end() - 2);
  return b.reshape(b.convert(x, b.accumulatorOf(b.elementOf(x))), {product(b.getContext(), outer), M, M});
}

/// Matrices of so many rows at most are eliminated side by side by kernels, a step after another (1000 of 3 x 3 take 45
/// us); larger ones, whose steps are many and small, one after another by the host (256 x 256: 1490 us by steps).
constexpr int64_t kMostRowsOfSteps = 4;

/// The product of the pivots, negated for each exchange of rows. Without columns it is 1.
LogicalResult det(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  FailureOr<Value> matrices = squareMatrices(ctx);
  if (failed(matrices))
    return failure();
  Sizes all = getSizes(*matrices), rows{all[0], all[1]}, outer = getSizes(ctx.operand(0));
  outer.resize(outer.size() - 2);
  if (getConstantSize(all[1]).value_or(kMostRowsOfSteps + 1) > kMostRowsOfSteps) {
    Value found = b.hostCall("determinant", *matrices, b.elementOf(*matrices), {all[0]});
    return ctx.result(b.convert(b.reshape(found, outer), b.elementOf(ctx.operand(0))));
  }
  Value inits[] = {*matrices, b.splat(b.elementOf(*matrices), {all[0]}, 1)};
  ValueRange results =
      emitSteps(b, b.sizeValue(all[1]), inits, [&](Value step, ValueRange carried) -> SmallVector<Value> {
        Pivoting p = exchangeRows(b, carried[0], step);
        Value result = b.mul(carried[1], b.select(p.isKept, p.pivot, b.unary<NegOp>(p.pivot)));
        // Rows below lose their multiple of it. A pivot of 0 has only zeros below, and the determinant is 0.
        Value divisor = b.select(b.compare(CompareKind::EQ, p.pivot, 0), b.splatLike(p.pivot, 1), p.pivot);
        Value factor = b.div(p.column, b.broadcastInDims(divisor, rows, {0}));
        factor = b.select(b.compare(CompareKind::GT, p.number, p.here), factor, b.splatLike(factor, 0));
        Value less = b.mul(b.broadcastInDims(factor, all, {0, 1}), b.broadcastInDims(p.row, all, {0, 2}));
        return {b.sub(p.matrix, less), result};
      });
  return ctx.result(b.convert(b.reshape(results[1], outer), b.elementOf(ctx.operand(0))));
}

/// Elimination of the matrix beside the unit matrix, which becomes the inverse.
LogicalResult inverse(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  FailureOr<Value> matrices = squareMatrices(ctx);
  if (failed(matrices))
    return failure();
  Sizes all = getSizes(*matrices), rows{all[0], all[1]};
  Type i64 = b.getI64Type();
  Value isUnit = b.compare(CompareKind::EQ, b.iota(i64, all, 1), b.iota(i64, all, 2));
  Value init = b.concat({*matrices, b.convert(isUnit, b.elementOf(*matrices))}, 2);
  Sizes wide = getSizes(init), columns{wide[0], wide[2]};
  ValueRange results =
      emitSteps(b, b.sizeValue(all[1]), init, [&](Value step, ValueRange carried) -> SmallVector<Value> {
        Pivoting p = exchangeRows(b, carried[0], step);
        Value row = b.broadcastInDims(b.div(p.row, b.broadcastInDims(p.pivot, columns, {0})), wide, {0, 2});
        Value less = b.sub(p.matrix, b.mul(b.broadcastInDims(p.column, wide, {0, 1}), row));
        Value isPivot = b.broadcastInDims(b.compare(CompareKind::EQ, p.number, p.here), wide, {0, 1});
        return {b.select(isPivot, row, less)};
      });
  Value result = b.sliceDim(results[0], 2, all[1], all[1]);
  return ctx.result(b.convert(b.reshape(result, getSizes(x)), b.elementOf(x)));
}

} // namespace

void tc::populateONNXDeterminant(OpRegistrar &onOp) { onOp("Det", 11, det); }
void tc::populateMicrosoftInverse(OpRegistrar &onOp) { onOp("Inverse", 1, inverse); }
