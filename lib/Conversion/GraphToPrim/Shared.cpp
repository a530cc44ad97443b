//===- Shared.cpp - operators that several front ends have --------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Shared.h"

#include <cmath>

using namespace mlir;
using namespace tc;
using namespace tc::prim;

Value tc::emitGelu(PrimBuilder &b, Value x, bool usesTanh) {
  Value inner;
  if (usesTanh) {
    Value cube = b.mul(b.mul(x, x), x);
    inner = b.unary<TanhOp>(b.binary<MulOp>(b.add(x, b.binary<MulOp>(cube, 0.044715)), std::sqrt(2 / M_PI)));
  } else {
    inner = b.unary<ErfOp>(b.binary<MulOp>(x, M_SQRT1_2));
  }
  return b.mul(b.binary<MulOp>(x, 0.5), b.binary<AddOp>(inner, 1));
}

Value tc::emitSoftplus(PrimBuilder &b, Value x) {
  Value tail = b.unary<Log1pOp>(b.unary<ExpOp>(b.unary<NegOp>(b.unary<AbsOp>(x))));
  return b.add(b.binary<MaxOp>(x, 0), tail);
}

Value tc::emitMish(PrimBuilder &b, Value x) {
  // n / (n + 2) with n = e^x (e^x + 2); from 20 on the quotient is 1.
  Value e = b.unary<ExpOp>(b.binary<MinOp>(x, 20));
  Value n = b.mul(e, b.binary<AddOp>(e, 2));
  return b.mul(x, b.div(n, b.binary<AddOp>(n, 2)));
}

LogicalResult tc::unifySizes(NodeContext &ctx, Value &a, int64_t da, Value &b, int64_t db, StringRef what) {
  Sizes sa = getSizes(a), sb = getSizes(b);
  if (sa[da] == sb[db])
    return success();
  auto ca = getConstantSize(sa[da]), cb = getConstantSize(sb[db]);
  if (ca && cb)
    return ctx.invalid(what + " of " + describe(a) + " and " + describe(b) + " differ");
  if (failed(ctx.requireEqual(sa[da], sb[db], "equal " + what)))
    return failure();
  if (cb) {
    sa[da] = sb[db];
    a = ctx.b.reshape(a, sa);
  } else {
    sb[db] = sa[da];
    b = ctx.b.reshape(b, sb);
  }
  return success();
}

FailureOr<Value> tc::emitMatMul(NodeContext &ctx, Value lhs, Value rhs) {
  PrimBuilder &b = ctx.b;
  int64_t ra = b.rankOf(lhs), rb = b.rankOf(rhs);
  if (ra < 1 || rb < 1)
    return ctx.invalid("operands must have one dim or more: " + describe(lhs) + " and " + describe(rhs));
  if (b.elementOf(lhs) != b.elementOf(rhs))
    return ctx.invalid("operands differ in element type: " + describe(lhs) + " and " + describe(rhs));
  if (failed(unifySizes(ctx, lhs, ra - 1, rhs, rb == 1 ? 0 : rb - 2, "inner sizes")))
    return failure();
  // A matrix on the right needs no batch dims: [.., K] x [K, N], the form of most linear layers.
  if (rb <= 2)
    return Value(DotGeneralOp::create(b, lhs, rhs, ArrayRef<int64_t>{}, ArrayRef<int64_t>{}, ArrayRef<int64_t>{ra - 1},
                                      ArrayRef<int64_t>{0}));
  bool vector = ra == 1;
  if (vector)
    lhs = b.unsqueeze(lhs, 0), ra = 2;
  Sizes sa = getSizes(lhs), sb = getSizes(rhs);
  FailureOr<Sizes> batch = ctx.broadcastSizes({Sizes(sa.begin(), sa.end() - 2), Sizes(sb.begin(), sb.end() - 2)});
  if (failed(batch))
    return failure();
  Sizes fullA(*batch), fullB(*batch);
  fullA.append(sa.end() - 2, sa.end());
  fullB.append(sb.end() - 2, sb.end());
  lhs = b.broadcastTo(lhs, fullA);
  rhs = b.broadcastTo(rhs, fullB);
  int64_t n = batch->size();
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, n));
  Value result = DotGeneralOp::create(b, lhs, rhs, dims, dims, ArrayRef<int64_t>{n + 1}, ArrayRef<int64_t>{n});
  if (vector) {
    Sizes sizes = getSizes(result);
    sizes.erase(sizes.end() - 2);
    result = b.reshape(result, sizes);
  }
  return result;
}

ValueRange tc::emitTurns(PrimBuilder &b, Value trips, ValueRange inits, llvm::function_ref<Value(ValueRange)> goesOn,
                         llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  auto loop = prim::WhileOp::create(b, inits.getTypes(), trips, goesOn(inits), inits, ArrayRef<int64_t>{});
  OpBuilder::InsertionGuard guard(b);
  Block *block = b.createBlock(&loop.getBody());
  Value step = block->addArgument(RankedTensorType::get({}, b.getI64Type()), b.getLoc());
  for (Type carried : inits.getTypes())
    block->addArgument(carried, b.getLoc());
  SmallVector<Value> results = body(step, block->getArguments().drop_front());
  results.insert(results.begin(), goesOn(results));
  prim::YieldOp::create(b, results);
  return loop.getResults();
}

ValueRange tc::emitSteps(PrimBuilder &b, Value count, ValueRange inits,
                         llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  return emitTurns(b, count, inits, [&](ValueRange) { return b.scalar(b.getI1Type(), 1); }, body);
}
