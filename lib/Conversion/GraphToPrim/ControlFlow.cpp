//===- ControlFlow.cpp - branches and loops of all front ends -----------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ControlFlow.h"

#include "ONNXSupport.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

FailureOr<Value> tc::scalarCondition(NodeContext &ctx, Value v) {
  if (!ctx.b.elementOf(v).isInteger(1))
    return ctx.invalid("the condition must be a bool scalar, but is " + describe(v));
  return ctx.scalar(v, "the condition");
}

/// A new symbol that control flow binds.
static AffineExpr addBoundSymbol(PrimBuilder &b, StringRef name, SmallVectorImpl<int64_t> &binds) {
  AffineExpr symbol = b.symbols.add(name);
  binds.push_back(cast<AffineSymbolExpr>(symbol).getPosition());
  return symbol;
}

/// Whether `size` mentions a symbol made since there were `count`.
static bool dependsOnSymbolsFrom(AffineExpr size, unsigned count) {
  bool found = false;
  size.walk([&](AffineExpr e) {
    auto symbol = dyn_cast<AffineSymbolExpr>(e);
    found |= symbol && symbol.getPosition() >= count;
  });
  return found;
}

LogicalResult tc::emitBranches(NodeContext &ctx, Value condition, Region &thenGraph, Region &elseGraph,
                               ValueRange arguments) {
  PrimBuilder &b = ctx.b;
  // A known condition leaves one branch, for instance of a model that asks for a rank.
  if (auto known = ctx.constantInts(condition); known && known->size() == 1) {
    auto values = ctx.convertRegion(known->front() ? thenGraph : elseGraph, arguments);
    if (failed(values))
      return failure();
    for (auto [i, v] : llvm::enumerate(*values))
      (void)ctx.set(i, v);
    return success();
  }
  Region &thenRegion = ctx.newRegion(), &elseRegion = ctx.newRegion();
  unsigned outerSymbols = b.symbols.size();
  SmallVector<SmallVector<Value>> yielded;
  for (auto [source, target] : {std::pair(&thenGraph, &thenRegion), std::pair(&elseGraph, &elseRegion)}) {
    OpBuilder::InsertionGuard guard(b);
    b.createBlock(target);
    auto values = ctx.convertRegion(*source, arguments);
    if (failed(values))
      return failure();
    yielded.push_back(*values);
  }
  if (yielded[0].size() != yielded[1].size() || yielded[0].size() != ctx.numResults())
    return ctx.invalid("the branches differ in their number of results");
  SmallVector<unsigned> used, varying;
  for (unsigned i = 0; i < ctx.numResults(); ++i) {
    if (!ctx.isResultUsed(i))
      continue;
    if (!yielded[0][i] || !yielded[1][i])
      return ctx.invalid("a branch has an absent result");
    used.push_back(i);
    if (b.rankOf(yielded[0][i]) != b.rankOf(yielded[1][i]))
      varying.push_back(i);
  }
  if (!varying.empty())
    return ctx.ranksVary(varying);
  if (used.empty())
    return success();
  for (SmallVector<Value> &values : yielded)
    values = llvm::map_to_vector(used, [&](unsigned i) { return values[i]; });
  SmallVector<Type> types;
  SmallVector<int64_t> binds;
  for (auto [x, y] : llvm::zip_equal(yielded[0], yielded[1])) {
    Type element = joinElements(b.elementOf(x), b.elementOf(y));
    if (!element)
      return ctx.invalid("the branches give " + describe(x) + " and " + describe(y));
    Sizes sizes = getSizes(x);
    for (auto [i, other] : llvm::enumerate(getSizes(y)))
      if (sizes[i] != other || dependsOnSymbolsFrom(other, outerSymbols))
        sizes[i] = addBoundSymbol(b, "branch", binds);
    types.push_back(makeType(element, sizes));
  }
  for (auto [region, values] : {std::pair(&thenRegion, &yielded[0]), std::pair(&elseRegion, &yielded[1])}) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(&region->front());
    prim::YieldOp::create(b, *values);
  }
  auto op = prim::IfOp::create(b, types, condition, binds);
  op.getThenRegion().takeBody(thenRegion);
  op.getElseRegion().takeBody(elseRegion);
  for (auto [i, v] : llvm::zip_equal(used, op.getResults()))
    (void)ctx.set(i, v);
  return success();
}

LogicalResult tc::emitLoop(NodeContext &ctx, Value maxTrips, Value condition, ArrayRef<Value> inits,
                           LoopBody emitBody) {
  PrimBuilder &b = ctx.b;
  Type i64 = b.getI64Type();
  const int64_t carriedCount = inits.size();
  // Sizes of carried values that change between iterations get symbols of their own. Which ones do is found by trial:
  // convert the body with the initial types and see what it yields. Scan results are carried too, growing by one along
  // dim 0.
  SmallVector<Sizes> carried = llvm::map_to_vector(inits, [](Value v) { return getSizes(v); });
  SmallVector<Type> elements = llvm::map_to_vector(inits, [&](Value v) { return b.elementOf(v); });
  SmallVector<int64_t> binds;
  for (int64_t attempt = 0; attempt < 64; ++attempt) {
    Region &body = ctx.newRegion();
    SmallVector<Value> values;
    unsigned outerSymbols = b.symbols.size();
    OpBuilder::InsertionGuard guard(b);
    Block *before = b.getInsertionBlock(), *block = b.createBlock(&body);
    Value iteration = block->addArgument(RankedTensorType::get({}, i64), b.getLoc());
    SmallVector<Value> all;
    for (auto [element, sizes] : llvm::zip_equal(elements, carried))
      all.push_back(block->addArgument(makeType(element, sizes), b.getLoc()));
    FailureOr<SmallVector<Value>> converted = emitBody(iteration, all);
    if (failed(converted))
      return failure();
    values = *converted;
    if (llvm::is_contained(values, Value()))
      return ctx.invalid("the body yields an absent value");
    const int64_t scanCount = int64_t(values.size()) - 1 - carriedCount;
    if (scanCount < 0 || int64_t(ctx.numResults()) > carriedCount + scanCount)
      return ctx.invalid("the body yields too few values");
    bool stable = true;
    for (int64_t i = 0; i < carriedCount; ++i) {
      Value next = values[i + 1];
      Type joined = joinElements(elements[i], b.elementOf(next));
      if (!joined)
        return ctx.invalid("carried value " + Twine(i) + " changes from " + describe(inits[i]) + " to " +
                           describe(next));
      if (b.rankOf(next) != b.rankOf(inits[i]))
        return ctx.unsupported("with a carried value whose rank changes is not supported");
      if (joined != elements[i]) {
        elements[i] = joined;
        stable = false;
      }
      for (auto [size, now] : llvm::zip_equal(getSizes(next), carried[i])) {
        auto own = dyn_cast<AffineSymbolExpr>(now);
        if (size == now || (own && llvm::is_contained(binds, int64_t(own.getPosition()))))
          continue;
        now = addBoundSymbol(b, "carried", binds);
        stable = false;
      }
    }
    if (!stable)
      continue;
    FailureOr<Value> next = scalarCondition(ctx, values[0]);
    if (failed(next))
      return failure();
    SmallVector<Value> results{*next}, starts(inits);
    SmallVector<Type> types;
    for (int64_t i = 0; i < carriedCount; ++i) {
      results.push_back(values[i + 1]);
      types.push_back(block->getArgument(i + 1).getType());
    }
    for (int64_t i = 0; i < scanCount; ++i) {
      Value element = b.unsqueeze(values[1 + carriedCount + i], 0);
      // A size that is known only inside the loop is 0 before the first iteration, then that of all elements.
      Sizes sizes = getSizes(element), empty = sizes;
      AffineExpr length = sizes[0] = addBoundSymbol(b, "scan", binds);
      empty[0] = b.size(0);
      for (auto [size, start] : llvm::drop_begin(llvm::zip_equal(sizes, empty))) {
        bool isCarried = false;
        for (int64_t symbol : binds)
          isCarried |= size.isFunctionOfSymbol(symbol);
        if (!isCarried && !dependsOnSymbolsFrom(size, outerSymbols))
          continue;
        start = b.size(0);
        size = addBoundSymbol(b, "scan", binds);
      }
      Value grown = block->addArgument(makeType(b.elementOf(element), sizes), b.getLoc());
      types.push_back(grown.getType());
      Sizes same = getSizes(element);
      for (auto [d, size] : llvm::drop_begin(llvm::enumerate(sizes)))
        if (failed(ctx.requireEqual(length * size, length * same[d], "elements of equal sizes in each iteration")))
          return failure();
      same[0] = length;
      results.push_back(b.concat({b.reshape(grown, same), element}, 0));
      OpBuilder::InsertionGuard outside(b);
      b.setInsertionPointToEnd(before);
      starts.push_back(b.splat(b.elementOf(element), empty, 0));
    }
    prim::YieldOp::create(b, results);
    b.setInsertionPointToEnd(before);
    auto op = prim::WhileOp::create(b, types, maxTrips, condition, starts, binds);
    op.getBody().takeBody(body);
    for (auto [i, v] : llvm::enumerate(op.getResults()))
      (void)ctx.set(i, v);
    return success();
  }
  return ctx.unsupported("whose carried sizes do not settle is not supported");
}

void tc::collectRows(NodeContext &ctx, LoopParts &loop, Value value, AffineExpr length, Value row) {
  PrimBuilder &b = ctx.b;
  Value element = b.unsqueeze(value, 0), step = loop.body->getArgument(0);
  Sizes sizes = getSizes(element), empty, same;
  sizes[0] = length;
  empty = same = sizes;
  for (auto [d, size] : llvm::drop_begin(llvm::enumerate(sizes))) {
    if (!dependsOnSymbolsFrom(size, loop.outerSymbols))
      continue;
    empty[d] = b.size(0);
    size = addBoundSymbol(b, "scan", loop.binds);
    Value before = b.sizeValue(size), now = b.sizeValue(same[d]);
    Value fits = b.binary<OrOp>(b.compare(CompareKind::EQ, step, 0), b.compare(CompareKind::EQ, before, now));
    if (loop.mayBeEmpty) {
      fits = b.binary<OrOp>(fits, b.compare(CompareKind::EQ, b.min(before, now), 0));
      same[d] = b.bindSymbol("rows", b.max(before, now));
    }
    b.guard(fits, 1, "node \"" + ctx.node().getNodeName() + "\": Scan needs elements of equal sizes in each iteration");
  }
  Type type = b.elementOf(element);
  Value all = loop.body->addArgument(makeType(type, sizes), b.getLoc());
  loop.types.push_back(all.getType());
  {
    OpBuilder::InsertionGuard outside(b);
    b.setInsertionPointToEnd(loop.before);
    loop.starts.push_back(b.splat(type, empty, 0));
  }
  Sizes none(sizes.size(), b.size(0));
  all = b.pad(all, b.scalar(type, 0), none, same);
  same[0] = b.size(1);
  element = b.pad(element, b.scalar(type, 0), none, same);
  Value at = b.reshape(row, {b.size(1), b.size(1)});
  loop.results.push_back(ScatterNDOp::create(b, all.getType(), all, at, element, ReduceKindAttr()));
}

FailureOr<SmallVector<Value>> tc::emitScan(NodeContext &ctx, const ScanLoop &scan) {
  PrimBuilder &b = ctx.b;
  Type i64 = b.getI64Type(), i1 = b.getI1Type();
  int64_t stateCount = scan.states.size(), outputCount = scan.outputDirections.size();
  Region &body = ctx.newRegion();
  LoopParts loop;
  loop.starts = scan.states;
  llvm::append_range(loop.types, ValueRange(scan.states).getTypes());
  {
    OpBuilder::InsertionGuard guard(b);
    loop.before = b.getInsertionBlock();
    Block *block = loop.body = b.createBlock(&body);
    loop.outerSymbols = b.symbols.size();
    Value step = block->addArgument(RankedTensorType::get({}, i64), b.getLoc()), zero = b.scalar(i64, 0);
    Value last = scan.trips ? b.binary<SubOp>(scan.trips, 1) : b.sizeValue(simplifySize(scan.length - 1));
    Value mirrored = b.sub(last, step);
    SmallVector<Value> arguments;
    for (Value state : scan.states)
      arguments.push_back(block->addArgument(state.getType(), b.getLoc()));
    for (auto [v, axis, reverse] : llvm::zip_equal(scan.inputs, scan.inputAxes, scan.inputDirections)) {
      Sizes sizes = getSizes(v), rest = sizes;
      sizes[axis] = b.size(1);
      rest.erase(rest.begin() + axis);
      SmallVector<Value> from(sizes.size(), zero);
      from[axis] = reverse ? mirrored : step;
      arguments.push_back(b.reshape(DynamicSliceOp::create(b, makeType(b.elementOf(v), sizes), v, from), rest));
    }
    llvm::append_range(arguments, scan.extra);
    auto values = ctx.convertRegion(*scan.graph, arguments, step);
    if (failed(values))
      return failure();
    loop.results = {b.scalar(i1, 1)};
    for (int64_t i = 0; i < stateCount; ++i) {
      FailureOr<Value> next = ctx.castSizes((*values)[i], getSizes(scan.states[i]));
      if (failed(next))
        return failure();
      if (next->getType() != loop.types[i])
        return ctx.invalid("state " + Twine(i) + " changes from " + describe(scan.states[i]) + " to " +
                           describe(*next));
      loop.results.push_back(*next);
    }
    for (int64_t i = 0; i < outputCount; ++i) {
      Value row = scan.outputDirections[i] ? mirrored : step;
      collectRows(ctx, loop, (*values)[stateCount + i], scan.length, row);
    }
    prim::YieldOp::create(b, loop.results);
  }
  auto op = prim::WhileOp::create(b, loop.types, scan.trips ? scan.trips : b.sizeValue(scan.length), b.scalar(i1, 1),
                                  loop.starts, loop.binds);
  op.getBody().takeBody(body);
  return SmallVector<Value>(op.getResults());
}

FailureOr<AffineExpr> tc::commonSize(NodeContext &ctx, ValueRange inputs, ArrayRef<int64_t> axes, const Twine &what) {
  AffineExpr length;
  for (auto [v, axis] : llvm::zip_equal(inputs, axes)) {
    AffineExpr size = getSizes(v)[axis];
    if (!length)
      length = size;
    if (failed(ctx.requireEqual(size, length, what)))
      return failure();
  }
  return length;
}
