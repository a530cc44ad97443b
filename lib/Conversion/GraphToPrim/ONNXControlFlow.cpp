//===- ONNXControlFlow.cpp - If and Loop of ONNX ------------------------------------------------------------------===//
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

/// One 0-D bool of a tensor with one element.
FailureOr<Value> scalarCondition(NodeContext &ctx, Value v) {
  auto type = ctx.b.typeOf(v);
  if (!type.getElementType().isInteger(1) || !type.hasStaticShape() || type.getNumElements() != 1)
    return ctx.invalid("the condition must be a bool scalar, but is " + describe(v));
  return ctx.b.reshape(v, {});
}

/// States, at the builder's position, that symbol expressions `symbols` have the sizes of `v` where the target type
/// says so, and gives `v` that type.
Value rebind(PrimBuilder &b, Value v, SizesRef target, ArrayRef<bool> isNew) {
  Sizes have = getSizes(v);
  for (auto [i, fresh] : llvm::enumerate(isNew))
    if (fresh)
      BindSymbolOp::create(b, b.sizeValue(have[i]), cast<AffineSymbolExpr>(target[i]).getPosition());
  return b.reshape(v, target);
}

LogicalResult ifNode(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  FailureOr<Value> condition = scalarCondition(ctx, ctx.operand(0));
  if (failed(condition))
    return failure();
  Region *thenGraph = ctx.region("then_branch"), *elseGraph = ctx.region("else_branch");
  if (!thenGraph || !elseGraph)
    return ctx.invalid("a branch is missing");
  // A known condition leaves one branch, for instance of a model that asks for a rank.
  if (auto known = ctx.constantInts(*condition); known && known->size() == 1) {
    auto values = ctx.convertRegion(known->front() ? *thenGraph : *elseGraph, {});
    if (failed(values))
      return failure();
    for (auto [i, v] : llvm::enumerate(*values))
      (void)ctx.set(i, v);
    return success();
  }
  Region &thenRegion = ctx.newRegion(), &elseRegion = ctx.newRegion();
  SmallVector<SmallVector<Value>> yielded;
  for (auto [source, target] : {std::pair(thenGraph, &thenRegion), std::pair(elseGraph, &elseRegion)}) {
    OpBuilder::InsertionGuard guard(b);
    b.createBlock(target);
    auto values = ctx.convertRegion(*source, {});
    if (failed(values))
      return failure();
    yielded.push_back(*values);
  }
  if (yielded[0].size() != yielded[1].size() || yielded[0].size() != ctx.numResults())
    return ctx.invalid("the branches differ in their number of results");
  SmallVector<Type> types;
  SmallVector<std::pair<Sizes, SmallVector<bool>>> targets;
  for (auto [x, y] : llvm::zip_equal(yielded[0], yielded[1])) {
    if (!x || !y)
      return ctx.invalid("a branch has an absent result");
    if (b.elementOf(x) != b.elementOf(y))
      return ctx.invalid("the branches give " + describe(x) + " and " + describe(y));
    if (b.rankOf(x) != b.rankOf(y))
      return ctx.unsupported("with branches whose results differ in rank is not supported");
    Sizes sizes = getSizes(x);
    SmallVector<bool> fresh(sizes.size(), false);
    for (auto [i, other] : llvm::enumerate(getSizes(y)))
      if (sizes[i] != other) {
        sizes[i] = b.symbols.add("branch");
        fresh[i] = true;
      }
    types.push_back(makeType(b.elementOf(x), sizes));
    targets.push_back({sizes, fresh});
  }
  for (auto [region, values] : {std::pair(&thenRegion, &yielded[0]), std::pair(&elseRegion, &yielded[1])}) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(&region->front());
    SmallVector<Value> results;
    for (auto [v, target] : llvm::zip_equal(*values, targets))
      results.push_back(rebind(b, v, target.first, target.second));
    prim::YieldOp::create(b, results);
  }
  auto op = prim::IfOp::create(b, types, *condition);
  op.getThenRegion().takeBody(thenRegion);
  op.getElseRegion().takeBody(elseRegion);
  for (auto [i, v] : llvm::enumerate(op.getResults()))
    (void)ctx.set(i, v);
  return success();
}

LogicalResult loop(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Region *graph = ctx.region("body");
  if (!graph || graph->front().getNumArguments() < 2)
    return ctx.invalid("the body is missing or takes too few values");
  Type i64 = b.getI64Type();
  Value maxTrips = b.scalar(i64, 0x1p63), condition = b.scalar(b.getI1Type(), 1);
  if (Value m = ctx.operand(0)) {
    auto type = b.typeOf(m);
    if (!type.getElementType().isInteger(64) || !type.hasStaticShape() || type.getNumElements() != 1)
      return ctx.invalid("the trip count must be an i64 scalar, but is " + describe(m));
    maxTrips = b.reshape(m, {});
  }
  if (Value c = ctx.operand(1)) {
    FailureOr<Value> scalar = scalarCondition(ctx, c);
    if (failed(scalar))
      return failure();
    condition = *scalar;
  }
  // A node's trailing absent operands are not in allOperands, but carried values never are absent.
  int64_t carriedCount = graph->front().getNumArguments() - 2;
  SmallVector<Value> inits;
  for (int64_t i = 0; i < carriedCount; ++i) {
    Value v = ctx.operand(i + 2);
    if (!v)
      return ctx.invalid("carried value " + Twine(i) + " is missing");
    inits.push_back(v);
  }
  int64_t yieldCount = graph->front().getTerminator()->getNumOperands(), scanCount = yieldCount - 1 - carriedCount;
  if (scanCount < 0 || int64_t(ctx.numResults()) > carriedCount + scanCount)
    return ctx.invalid("the body yields too few values");

  // Sizes of carried values that change between iterations get symbols of their own. Which ones do is found by trial:
  // convert the body with the initial types and see what it yields. Scan results are carried too, growing by one along
  // dim 0.
  SmallVector<Sizes> carried = llvm::map_to_vector(inits, [](Value v) { return getSizes(v); });
  SmallVector<SmallVector<bool>> fresh;
  for (const Sizes &sizes : carried)
    fresh.emplace_back(sizes.size(), false);
  SmallVector<AffineExpr> scanLength;
  for (int64_t i = 0; i < scanCount; ++i)
    scanLength.push_back(b.symbols.add("scan"));
  for (int64_t attempt = 0; attempt < 8; ++attempt) {
    Region &body = ctx.newRegion();
    Block *block = nullptr;
    SmallVector<Value> values;
    bool stable = true;
    unsigned outerSymbols = b.symbols.size();
    {
      OpBuilder::InsertionGuard guard(b);
      block = b.createBlock(&body);
      Value iteration = block->addArgument(RankedTensorType::get({}, i64), b.getLoc());
      SmallVector<Value> arguments;
      for (auto [v, sizes] : llvm::zip_equal(inits, carried))
        arguments.push_back(block->addArgument(makeType(b.elementOf(v), sizes), b.getLoc()));
      SmallVector<Value> all{iteration, b.scalar(b.getI1Type(), 1)};
      for (auto [v, given] : llvm::zip_equal(all, graph->front().getArguments()))
        if (auto type = dyn_cast<RankedTensorType>(given.getType()); type && type.getRank() == 1)
          v = b.reshape(v, {b.size(1)});
      llvm::append_range(all, arguments);
      auto converted = ctx.convertRegion(*graph, all);
      if (failed(converted))
        return failure();
      values = *converted;
    }
    if (llvm::is_contained(values, Value()))
      return ctx.invalid("the body yields an absent value");
    for (int64_t i = 0; i < carriedCount; ++i) {
      Value next = values[i + 1];
      if (b.elementOf(next) != b.elementOf(inits[i]))
        return ctx.invalid("carried value " + Twine(i) + " changes from " + describe(inits[i]) + " to " +
                           describe(next));
      if (b.rankOf(next) != b.rankOf(inits[i]))
        return ctx.unsupported("with a carried value whose rank changes is not supported");
      for (auto [d, size] : llvm::enumerate(getSizes(next)))
        if (!fresh[i][d] && size != carried[i][d]) {
          carried[i][d] = b.symbols.add("carried");
          fresh[i][d] = true;
          stable = false;
        }
    }
    if (!stable)
      continue;
    // The loop for real: initial values bound, scan results carried from empty.
    SmallVector<Value> starts;
    SmallVector<Type> types;
    for (int64_t i = 0; i < carriedCount; ++i) {
      starts.push_back(rebind(b, inits[i], carried[i], fresh[i]));
      types.push_back(starts.back().getType());
    }
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToEnd(block);
      FailureOr<Value> next = scalarCondition(ctx, values[0]);
      if (failed(next))
        return failure();
      SmallVector<Value> results{*next};
      for (int64_t i = 0; i < carriedCount; ++i)
        results.push_back(rebind(b, values[i + 1], carried[i], fresh[i]));
      for (int64_t i = 0; i < scanCount; ++i) {
        Value element = b.unsqueeze(values[1 + carriedCount + i], 0);
        Sizes sizes = getSizes(element);
        sizes[0] = scanLength[i];
        SmallVector<bool> isNew(sizes.size(), false);
        isNew[0] = true;
        for (auto [d, size] : llvm::enumerate(llvm::drop_begin(sizes))) {
          bool outer = true; // sizes of a scan element must be known before the loop
          size.walk([&](AffineExpr e) {
            if (auto symbol = dyn_cast<AffineSymbolExpr>(e))
              outer &= symbol.getPosition() < outerSymbols;
            for (const auto &[each, flags] : llvm::zip_equal(carried, fresh))
              for (auto [c, flag] : llvm::zip_equal(each, flags))
                outer &= !(flag && c == e);
          });
          if (!outer)
            return ctx.unsupported("with a scan result whose elements change their size is not supported");
        }
        Value grown = block->addArgument(makeType(b.elementOf(element), sizes), b.getLoc());
        results.push_back(rebind(b, b.concat({grown, element}, 0), sizes, isNew));
        types.push_back(grown.getType());
      }
      prim::YieldOp::create(b, results);
    }
    for (int64_t i = 0; i < scanCount; ++i) {
      auto type = cast<RankedTensorType>(types[carriedCount + i]);
      Sizes sizes = getSizes(type), empty = sizes;
      empty[0] = b.size(0);
      SmallVector<bool> isNew(sizes.size(), false);
      isNew[0] = true;
      starts.push_back(rebind(b, b.splat(type.getElementType(), empty, 0), sizes, isNew));
    }
    auto op = prim::WhileOp::create(b, types, maxTrips, condition, starts);
    op.getBody().takeBody(body);
    for (auto [i, v] : llvm::enumerate(op.getResults()))
      (void)ctx.set(i, v);
    return success();
  }
  return ctx.unsupported("whose carried sizes do not settle is not supported");
}

} // namespace

void tc::populateONNXControlFlow(OpRegistrar &onOp) {
  onOp("If", 1, ifNode);
  onOp("Loop", 1, loop, 0);
}
