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
  if (!ctx.b.elementOf(v).isInteger(1))
    return ctx.invalid("the condition must be a bool scalar, but is " + describe(v));
  return ctx.scalar(v, "the condition");
}

/// A new symbol that control flow binds.
AffineExpr addBoundSymbol(PrimBuilder &b, StringRef name, SmallVectorImpl<int64_t> &binds) {
  AffineExpr symbol = b.symbols.add(name);
  binds.push_back(cast<AffineSymbolExpr>(symbol).getPosition());
  return symbol;
}

/// Whether `size` mentions a symbol made since there were `count`.
bool dependsOnSymbolsFrom(AffineExpr size, unsigned count) {
  bool found = false;
  size.walk([&](AffineExpr e) {
    auto symbol = dyn_cast<AffineSymbolExpr>(e);
    found |= symbol && symbol.getPosition() >= count;
  });
  return found;
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
  unsigned outerSymbols = b.symbols.size();
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
  auto op = prim::IfOp::create(b, types, *condition, binds);
  op.getThenRegion().takeBody(thenRegion);
  op.getElseRegion().takeBody(elseRegion);
  for (auto [i, v] : llvm::zip_equal(used, op.getResults()))
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
    if (!b.elementOf(m).isInteger(64))
      return ctx.invalid("the trip count must be an i64 scalar, but is " + describe(m));
    FailureOr<Value> given = ctx.scalar(m, "the trip count");
    if (failed(given))
      return failure();
    maxTrips = *given;
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
  SmallVector<Type> elements = llvm::map_to_vector(inits, [&](Value v) { return b.elementOf(v); });
  SmallVector<int64_t> binds;
  for (int64_t attempt = 0; attempt < 64; ++attempt) {
    Region &body = ctx.newRegion();
    SmallVector<Value> values;
    unsigned outerSymbols = b.symbols.size();
    OpBuilder::InsertionGuard guard(b);
    Block *before = b.getInsertionBlock(), *block = b.createBlock(&body);
    Value iteration = block->addArgument(RankedTensorType::get({}, i64), b.getLoc());
    SmallVector<Value> all{iteration, b.scalar(b.getI1Type(), 1)};
    for (auto [v, given] : llvm::zip_equal(all, graph->front().getArguments().take_front(2)))
      if (auto type = dyn_cast<RankedTensorType>(given.getType()); type && type.getRank() == 1)
        v = b.reshape(v, {b.size(1)});
    for (auto [element, sizes] : llvm::zip_equal(elements, carried))
      all.push_back(block->addArgument(makeType(element, sizes), b.getLoc()));
    auto converted = ctx.convertRegion(*graph, all, iteration);
    if (failed(converted))
      return failure();
    values = *converted;
    if (llvm::is_contained(values, Value()))
      return ctx.invalid("the body yields an absent value");
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

/// One entry of `name` for each of `count` values, `otherwise` where the attribute is absent.
FailureOr<SmallVector<int64_t>> intsFor(NodeContext &ctx, StringRef name, int64_t count, int64_t otherwise) {
  SmallVector<int64_t> values = ctx.getInts(name).value_or(SmallVector<int64_t>(count, otherwise));
  if (int64_t(values.size()) != count)
    return ctx.invalid(name + " has " + Twine(values.size()) + " entries for " + Twine(count) + " values");
  return values;
}

/// What a Scan loops over: slices of its inputs along dims of their own, from the first or the last on.
struct ScanLoop {
  Region *graph;
  SmallVector<Value> states, inputs;
  SmallVector<int64_t> inputAxes, inputDirections, outputDirections;
  AffineExpr length;
  /// 0-D i64: how many slices to take, at most `length`; null: all.
  Value trips;
};

/// A loop under construction: what it carries, with the values before it, and what its body yields.
struct LoopParts {
  Block *before, *body;
  unsigned outerSymbols; ///< how many symbols there were before the body
  /// Rows whose sizes are 0 come from an inner loop without iterations, which knows none.
  bool mayBeEmpty = false;
  SmallVector<Value> starts, results;
  SmallVector<Type> types;
  SmallVector<int64_t> binds;
};

/// Carries a tensor of `length` rows, in which each iteration puts `value` at `row`. Sizes that are known only inside
/// the loop are 0 before the first iteration, then those of all rows.
void collectRows(NodeContext &ctx, LoopParts &loop, Value value, AffineExpr length, Value row) {
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

/// The final states, then each output with its slices along dim 0.
FailureOr<SmallVector<Value>> emitScan(NodeContext &ctx, const ScanLoop &scan) {
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

/// The length of dim `axis` that all of `inputs` share.
FailureOr<AffineExpr> commonSize(NodeContext &ctx, ValueRange inputs, ArrayRef<int64_t> axes, const Twine &what) {
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

/// A loop over the slices of its scan inputs; what it yields for each becomes a slice of a result.
LogicalResult scan(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  ScanLoop loop;
  loop.graph = ctx.region("body");
  int64_t inputCount = ctx.getInt("num_scan_inputs", 0), operandCount = ctx.numOperands();
  int64_t stateCount = operandCount - inputCount;
  if (!loop.graph || inputCount < 1 || stateCount < 0 || int64_t(loop.graph->front().getNumArguments()) != operandCount)
    return ctx.invalid("the body does not take the operands' states and slices");
  int64_t outputCount = int64_t(loop.graph->front().getTerminator()->getNumOperands()) - stateCount;
  if (outputCount < 0)
    return ctx.invalid("the body yields too few values");
  auto inputAxes = intsFor(ctx, "scan_input_axes", inputCount, 0),
       inputDirections = intsFor(ctx, "scan_input_directions", inputCount, 0),
       outputAxes = intsFor(ctx, "scan_output_axes", outputCount, 0),
       outputDirections = intsFor(ctx, "scan_output_directions", outputCount, 0);
  if (failed(inputAxes) || failed(inputDirections) || failed(outputAxes) || failed(outputDirections))
    return failure();
  loop.states.assign(ctx.allOperands().begin(), ctx.allOperands().begin() + stateCount);
  loop.inputs.assign(ctx.allOperands().begin() + stateCount, ctx.allOperands().end());
  for (auto [v, axis] : llvm::zip_equal(loop.inputs, *inputAxes)) {
    FailureOr<int64_t> normal = ctx.axis(axis, b.rankOf(v));
    if (failed(normal))
      return failure();
    loop.inputAxes.push_back(*normal);
  }
  loop.inputDirections = *inputDirections;
  loop.outputDirections = *outputDirections;
  FailureOr<AffineExpr> length = commonSize(ctx, loop.inputs, loop.inputAxes, "scan inputs of equal lengths");
  if (failed(length))
    return failure();
  loop.length = *length;
  FailureOr<SmallVector<Value>> results = emitScan(ctx, loop);
  if (failed(results))
    return failure();
  for (int64_t i = 0; i < stateCount; ++i)
    (void)ctx.set(i, (*results)[i]);
  for (int64_t i = 0; i < outputCount; ++i) {
    Value all = (*results)[stateCount + i];
    FailureOr<int64_t> axis = ctx.axis((*outputAxes)[i], b.rankOf(all));
    if (failed(axis))
      return failure();
    SmallVector<int64_t> permutation = llvm::to_vector(llvm::seq<int64_t>(1, b.rankOf(all)));
    permutation.insert(permutation.begin() + *axis, 0);
    (void)ctx.set(stateCount + i, b.transpose(all, permutation));
  }
  return success();
}

/// Scan-8: a loop for each element of a batch, in dim 0 of all operands and results; slices are along dim 1. Operand 0
/// may give each element a length of its own; what lies beyond in a result is 0.
LogicalResult batchedScan(NodeContext &ctx) {
  PrimBuilder &b = ctx.b;
  Type i64 = b.getI64Type(), i1 = b.getI1Type();
  ScanLoop inner;
  inner.graph = ctx.region("body");
  int64_t inputCount = ctx.getInt("num_scan_inputs", 0), operandCount = int64_t(ctx.numOperands()) - 1;
  int64_t stateCount = operandCount - inputCount;
  if (!inner.graph || inputCount < 1 || stateCount < 0 ||
      int64_t(inner.graph->front().getNumArguments()) != operandCount)
    return ctx.invalid("the body does not take the operands' states and slices");
  int64_t outputCount = int64_t(inner.graph->front().getTerminator()->getNumOperands()) - stateCount;
  if (outputCount < 0)
    return ctx.invalid("the body yields too few values");
  auto directions = intsFor(ctx, "directions", inputCount, 0);
  if (failed(directions))
    return failure();
  ArrayRef<Value> operands = ctx.allOperands().drop_front();
  for (auto [i, v] : llvm::enumerate(operands))
    if (!v || b.rankOf(v) < (int64_t(i) < stateCount ? 1 : 2))
      return ctx.invalid("operand " + Twine(i + 1) + " is missing or lacks the dims of batch and sequence");
  FailureOr<AffineExpr> batch =
      commonSize(ctx, operands, SmallVector<int64_t>(operandCount, 0), "batches of equal sizes");
  FailureOr<AffineExpr> length = commonSize(ctx, operands.drop_front(stateCount), SmallVector<int64_t>(inputCount, 1),
                                            "scan inputs of equal lengths");
  if (failed(batch) || failed(length))
    return failure();
  Value lengths;
  if (ctx.has(0)) {
    FailureOr<Value> fitting = ctx.castSizes(ctx.operand(0), {*batch});
    if (failed(fitting))
      return failure();
    Value most = b.broadcastTo(b.sizeValue(*length), {*batch});
    lengths = b.min(b.convert(*fitting, i64), most);
  }
  inner.length = *length;
  inner.inputAxes.assign(inputCount, 0);
  inner.inputDirections = *directions;
  inner.outputDirections.assign(outputCount, 0);

  Region &body = ctx.newRegion();
  LoopParts loop;
  loop.mayBeEmpty = true;
  {
    OpBuilder::InsertionGuard guard(b);
    loop.before = b.getInsertionBlock();
    loop.body = b.createBlock(&body);
    loop.outerSymbols = b.symbols.size();
    Value number = loop.body->addArgument(RankedTensorType::get({}, i64), b.getLoc()), zero = b.scalar(i64, 0);
    auto ofBatch = [&](Value v) { // the element of the batch, without its dim
      Sizes sizes = getSizes(v), rest(sizes.begin() + 1, sizes.end());
      sizes[0] = b.size(1);
      SmallVector<Value> from(sizes.size(), zero);
      from[0] = number;
      return b.reshape(DynamicSliceOp::create(b, makeType(b.elementOf(v), sizes), v, from), rest);
    };
    for (auto [i, v] : llvm::enumerate(operands))
      (int64_t(i) < stateCount ? inner.states : inner.inputs).push_back(ofBatch(v));
    if (lengths)
      inner.trips = ofBatch(lengths);
    FailureOr<SmallVector<Value>> values = emitScan(ctx, inner);
    if (failed(values))
      return failure();
    loop.results = {b.scalar(i1, 1)};
    for (Value v : *values)
      collectRows(ctx, loop, v, *batch, number);
    prim::YieldOp::create(b, loop.results);
  }
  auto op = prim::WhileOp::create(b, loop.types, b.sizeValue(*batch), b.scalar(i1, 1), loop.starts, loop.binds);
  op.getBody().takeBody(body);
  for (auto [i, v] : llvm::enumerate(op.getResults()))
    (void)ctx.set(i, v);
  return success();
}

} // namespace

void tc::populateONNXControlFlow(OpRegistrar &onOp) {
  onOp("If", 1, ifNode);
  onOp("Loop", 1, loop, 0);
  onOp("Scan", 8, batchedScan, 0);
  onOp("Scan", 9, scan, 0);
  onOp.takeComplex(ComplexUse::Moved, {"Loop", "Scan"});
}
