//===- ONNXControlFlow.cpp - If, Loop and Scan of ONNX ------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ControlFlow.h"
#include "ONNXSupport.h"
#include "OpRegistry.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

LogicalResult ifNode(NodeContext &ctx) {
  FailureOr<Value> condition = scalarCondition(ctx, ctx.operand(0));
  if (failed(condition))
    return failure();
  Region *thenGraph = ctx.region("then_branch"), *elseGraph = ctx.region("else_branch");
  if (!thenGraph || !elseGraph)
    return ctx.invalid("a branch is missing");
  return emitBranches(ctx, *condition, *thenGraph, *elseGraph, {});
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
  return emitLoop(ctx, maxTrips, condition, inits, [&](Value iteration, ArrayRef<Value> carried) {
    SmallVector<Value> all{iteration, b.scalar(b.getI1Type(), 1)};
    for (auto [v, given] : llvm::zip_equal(all, graph->front().getArguments().take_front(2)))
      if (auto type = dyn_cast<RankedTensorType>(given.getType()); type && type.getRank() == 1)
        v = b.reshape(v, {b.size(1)});
    llvm::append_range(all, carried);
    return ctx.convertRegion(*graph, all, iteration);
  });
}

/// One entry of `name` for each of `count` values, `otherwise` where the attribute is absent.
FailureOr<SmallVector<int64_t>> intsFor(NodeContext &ctx, StringRef name, int64_t count, int64_t otherwise) {
  SmallVector<int64_t> values = ctx.getInts(name).value_or(SmallVector<int64_t>(count, otherwise));
  if (int64_t(values.size()) != count)
    return ctx.invalid(name + " has " + Twine(values.size()) + " entries for " + Twine(count) + " values");
  return values;
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
