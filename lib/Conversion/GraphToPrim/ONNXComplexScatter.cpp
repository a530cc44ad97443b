//===- ONNXComplexScatter.cpp - scatters that multiply or compare complex numbers ---------------------------------===//
//
// A scatter of pairs can replace and add, but a product mixes the parts, and a maximum compares both. So updates are
// taken one after the other, in a loop that carries the result.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ONNXSupport.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

/// Pairs [.., 2] combined. Maximum and minimum are in the order of real, then imaginary parts; a NaN in either part
/// wins. Source: NumPy's maximum and minimum.
static Value combine(PrimBuilder &b, ReduceKind kind, Value x, Value y) {
  int64_t last = b.rankOf(x) - 1;
  Value xr = b.take(x, last, 0), xi = b.take(x, last, 1), yr = b.take(y, last, 0), yi = b.take(y, last, 1);
  if (kind == ReduceKind::Prod) {
    Value real = b.sub(b.mul(xr, yr), b.mul(xi, yi)), imaginary = b.add(b.mul(xr, yi), b.mul(xi, yr));
    return b.concat({b.unsqueeze(real, last), b.unsqueeze(imaginary, last)}, last);
  }
  auto isNaN = [&](Value v) -> Value { return IsNanOp::create(b, withElementType(v.getType(), b.getI1Type()), v); };
  auto both = [&](Value p, Value q) { return b.binary<AndOp>(p, q); };
  auto either = [&](Value p, Value q) { return b.binary<OrOp>(p, q); };
  bool isMax = kind == ReduceKind::Max;
  Value isBeyond =
      both(b.compare(isMax ? CompareKind::GT : CompareKind::LT, xr, yr), b.unary<NotOp>(either(isNaN(xi), isNaN(yi))));
  Value isLevel =
      both(b.compare(CompareKind::EQ, xr, yr), b.compare(isMax ? CompareKind::GE : CompareKind::LE, xi, yi));
  Value keeps = either(either(isBeyond, isLevel), either(isNaN(xr), isNaN(xi)));
  Sizes sizes = getSizes(x);
  return b.select(b.broadcastInDims(keeps, sizes, llvm::to_vector(llvm::seq<int64_t>(0, last))), x, y);
}

Value tc::emitComplexScatter(NodeContext &ctx, ReduceKind kind, Value source, Value at, Value updates) {
  PrimBuilder &b = ctx.b;
  Type i64 = b.getI64Type(), i1 = b.getI1Type();
  Value rows = b.asParts(source), parts = b.asParts(updates);
  Sizes row = getSizes(parts);
  AffineExpr count = std::exchange(row[0], b.size(1));
  Region &body = ctx.newRegion();
  {
    OpBuilder::InsertionGuard guard(b);
    Block *block = b.createBlock(&body);
    Value step = block->addArgument(RankedTensorType::get({}, i64), b.getLoc());
    Value result = block->addArgument(rows.getType(), b.getLoc()), zero = b.scalar(i64, 0);
    Value place = DynamicSliceOp::create(b, makeType(i64, {b.size(1)}), at, ValueRange{step});
    Value update = DynamicSliceOp::create(b, makeType(b.elementOf(parts), row), parts, ValueRange{step, zero, zero});
    Value next = combine(b, kind, GatherOp::create(b, result, place, 0), update);
    Value index = b.reshape(place, {b.size(1), b.size(1)});
    Value scattered = ScatterNDOp::create(b, result.getType(), result, index, next, ReduceKindAttr());
    prim::YieldOp::create(b, ValueRange{b.scalar(i1, 1), scattered});
  }
  auto loop = prim::WhileOp::create(b, TypeRange(rows.getType()), b.sizeValue(count), b.scalar(i1, 1), ValueRange(rows),
                                    ArrayRef<int64_t>{});
  loop.getBody().takeBody(body);
  return b.asComplex(loop.getResult(0));
}
