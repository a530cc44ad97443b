//===- ONNXDeterminant.cpp - determinants of ONNX -----------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ONNXSupport.h"
#include "OpRegistry.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

/// Elimination with the largest element of each column as pivot, all matrices side by side; a loop over the columns.
/// The determinant is the product of the pivots, negated for each exchange of rows. Without columns it is 1.
LogicalResult det(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Value x = ctx.operand(0);
  Type type = b.elementOf(x), compute = b.accumulatorOf(type), i64 = b.getI64Type();
  Sizes sizes = getSizes(x);
  if (sizes.size() < 2 || !b.isFloat(x))
    return ctx.invalid("needs a float operand [.., M, M], but has " + describe(x));
  AffineExpr M = sizes[sizes.size() - 1];
  if (failed(ctx.requireEqual(sizes[sizes.size() - 2], M, "square matrices")))
    return failure();
  Sizes outer(sizes.begin(), sizes.end() - 2);
  AffineExpr B = product(b.getContext(), outer);
  Sizes all{B, M, M}, rows{B, M}, each{B};
  SmallVector<Value> inits{b.reshape(b.convert(x, compute), all), b.splat(compute, each, 1)};
  SmallVector<Type> types(ValueRange(inits).getTypes());
  auto loop = prim::WhileOp::create(b, types, b.sizeValue(M), b.scalar(b.getI1Type(), 1), inits, ArrayRef<int64_t>{});
  {
    OpBuilder::InsertionGuard guard(b);
    Block *block = b.createBlock(&loop.getBody());
    Value step = block->addArgument(RankedTensorType::get({}, i64), b.getLoc()), zero = b.scalar(i64, 0);
    for (Type carried : types)
      block->addArgument(carried, b.getLoc());
    Value matrix = block->getArgument(1), result = block->getArgument(2);
    auto columnOf = [&](Value m) { // column `step`: [B, M]
      Value slice = DynamicSliceOp::create(b, makeType(compute, {B, M, b.size(1)}), m, ValueRange{zero, zero, step});
      return b.reshape(slice, rows);
    };
    // The row of the pivot changes places with row `step`.
    Value row = b.iota(i64, rows, 1), here = b.broadcastTo(step, rows);
    Value magnitude = b.unary<AbsOp>(columnOf(matrix));
    magnitude = b.select(b.compare(CompareKind::GE, row, here), magnitude, b.splatLike(magnitude, -1));
    Value best = ArgReduceOp::create(b, makeType(i64, each), ReduceKind::Max, magnitude, 1, /*lastIndex=*/false);
    Value wideBest = b.broadcastInDims(best, rows, {0});
    Value from = b.select(b.compare(CompareKind::EQ, row, here), wideBest,
                          b.select(b.compare(CompareKind::EQ, row, wideBest), here, row));
    matrix = GatherElementsOp::create(b, matrix.getType(), matrix, b.broadcastInDims(from, all, {0, 1}), 1);
    Value column = columnOf(matrix);
    Value pivotRow =
        DynamicSliceOp::create(b, makeType(compute, {B, b.size(1), M}), matrix, ValueRange{zero, step, zero});
    pivotRow = b.reshape(pivotRow, rows);
    Value pivot =
        b.reshape(DynamicSliceOp::create(b, makeType(compute, {B, b.size(1)}), column, ValueRange{zero, step}), each);
    Value kept = b.compare(CompareKind::EQ, best, b.broadcastTo(step, each));
    result = b.mul(result, b.select(kept, pivot, b.unary<NegOp>(pivot)));
    // Rows below lose their multiple of it. A pivot of 0 has only zeros below, and the determinant is 0.
    Value divisor = b.select(b.compare(CompareKind::EQ, pivot, 0), b.splatLike(pivot, 1), pivot);
    Value factor = b.div(column, b.broadcastInDims(divisor, rows, {0}));
    factor = b.select(b.compare(CompareKind::GT, row, here), factor, b.splatLike(factor, 0));
    Value less = b.mul(b.broadcastInDims(factor, all, {0, 1}), b.broadcastInDims(pivotRow, all, {0, 2}));
    prim::YieldOp::create(b, ValueRange{b.scalar(b.getI1Type(), 1), b.sub(matrix, less), result});
  }
  return ctx.result(b.convert(b.reshape(loop.getResult(1), outer), type));
}

} // namespace

void tc::populateONNXDeterminant(OpRegistrar &onOp) { onOp("Det", 11, det); }
