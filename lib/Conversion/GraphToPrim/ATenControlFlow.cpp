//===- ATenControlFlow.cpp - operators of PyTorch that run graphs: cond, while_loop, scan, map --------------------===//
//
// Source: torch/_higher_order_ops/{cond,while_loop,scan,map}.py. Their arguments have no names, but arg0, arg1, ...
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ATenSupport.h"
#include "ControlFlow.h"
#include "OpRegistry.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

namespace {

/// A list of tensors and numbers.
FailureOr<SmallVector<Value>> valuesOf(Call &c, StringRef name) {
  if (c.ctx.hasAttr((name + ".count").str()))
    return c.tensors(name);
  SmallVector<Value> values;
  if (auto ints = dyn_cast_or_null<DenseI64ArrayAttr>(c.ctx.attr(name)))
    for (int64_t number : ints.asArrayRef())
      values.push_back(c.b.sizeValue(c.b.size(number)));
  if (auto entries = dyn_cast_or_null<ArrayAttr>(c.ctx.attr(name)))
    for (Attribute entry : entries) {
      auto operand = dyn_cast<StringAttr>(entry);
      Type type = isa<FloatAttr>(entry)  ? Type(c.b.getF64Type())
                  : isa<BoolAttr>(entry) ? Type(c.b.getI1Type())
                                         : Type(c.b.getI64Type());
      Value value = operand ? c.tensor(operand.getValue()) : makeNumber(c.b, entry, type);
      if (!value)
        return c.ctx.invalid("argument \"" + name + "\" holds what is no tensor and no number");
      values.push_back(value);
    }
  return values;
}

FailureOr<Region *> graphOf(NodeContext &ctx, StringRef name, size_t operands) {
  Region *graph = ctx.region(name);
  if (!graph)
    return ctx.invalid("argument \"" + name + "\" is no graph");
  if (graph->front().getNumArguments() != operands)
    return ctx.invalid("the graph \"" + name + "\" takes " + Twine(graph->front().getNumArguments()) +
                       " values, but gets " + Twine(operands));
  return graph;
}

/// One bool, of a tensor with one element or a number.
FailureOr<Value> conditionOf(NodeContext &ctx, Value value) {
  if (!isa<IntegerType, FloatType>(ctx.b.elementOf(value)))
    return ctx.invalid("the condition is " + describe(value) + "; it must be a number");
  return scalarCondition(ctx, ctx.b.convert(value, ctx.b.getI1Type()));
}

LogicalResult cond(NodeContext &ctx) {
  Call c(ctx);
  FailureOr<Value> given = c.isNumber("arg0") ? c.as("arg0", ctx.b.getI1Type()) : c.required("arg0");
  FailureOr<SmallVector<Value>> operands = valuesOf(c, "arg3");
  if (failed(given) || failed(operands))
    return failure();
  FailureOr<Value> condition = conditionOf(ctx, *given);
  FailureOr<Region *> yes = graphOf(ctx, "arg1", operands->size()), no = graphOf(ctx, "arg2", operands->size());
  if (failed(condition) || failed(yes) || failed(no))
    return failure();
  return emitBranches(ctx, *condition, **yes, **no, *operands);
}

LogicalResult whileLoop(NodeContext &ctx) {
  Call c(ctx);
  PrimBuilder &b = ctx.b;
  FailureOr<SmallVector<Value>> inits = valuesOf(c, "arg2"), extra = valuesOf(c, "arg3");
  if (failed(inits) || failed(extra))
    return failure();
  const size_t operands = inits->size() + extra->size();
  FailureOr<Region *> test = graphOf(ctx, "arg0", operands), body = graphOf(ctx, "arg1", operands);
  if (failed(test) || failed(body))
    return failure();
  auto holds = [&](ArrayRef<Value> carried, Value iteration) -> FailureOr<Value> {
    SmallVector<Value> arguments(carried);
    llvm::append_range(arguments, *extra);
    FailureOr<SmallVector<Value>> result = ctx.convertRegion(**test, arguments, iteration);
    if (failed(result))
      return failure();
    if (result->size() != 1 || !result->front())
      return ctx.invalid("the graph of the condition does not give one value");
    return conditionOf(ctx, result->front());
  };
  FailureOr<Value> first = holds(*inits, {});
  if (failed(first))
    return failure();
  return emitLoop(ctx, b.scalar(b.getI64Type(), 0x1p63), *first, *inits,
                  [&](Value iteration, ArrayRef<Value> carried) -> FailureOr<SmallVector<Value>> {
                    SmallVector<Value> arguments(carried);
                    llvm::append_range(arguments, *extra);
                    FailureOr<SmallVector<Value>> next = ctx.convertRegion(**body, arguments, iteration);
                    if (failed(next))
                      return failure();
                    if (next->size() != carried.size() || llvm::is_contained(*next, Value()))
                      return ctx.invalid("the body does not give as many values as it takes");
                    FailureOr<Value> again = holds(*next, iteration);
                    if (failed(again))
                      return failure();
                    next->insert(next->begin(), *again);
                    return next;
                  });
}

/// A loop over the first dims of the arguments `inputs`, of states that may be none.
LogicalResult scanOver(NodeContext &ctx, ArrayRef<Value> states, ArrayRef<Value> inputs, ArrayRef<Value> extra) {
  FailureOr<Region *> graph = graphOf(ctx, "arg0", states.size() + inputs.size() + extra.size());
  if (failed(graph))
    return failure();
  if (inputs.empty())
    return ctx.invalid("has no tensor to loop over");
  for (Value input : inputs)
    if (ctx.b.rankOf(input) == 0)
      return ctx.invalid("loops over a tensor without dims");
  const int64_t outputs = int64_t((*graph)->front().getTerminator()->getNumOperands()) - int64_t(states.size());
  if (outputs < 0 || ctx.numResults() != states.size() + outputs)
    return ctx.invalid("has a graph that gives another number of values than are read");
  ScanLoop loop;
  loop.graph = *graph;
  loop.states.assign(states.begin(), states.end());
  loop.inputs.assign(inputs.begin(), inputs.end());
  loop.extra.assign(extra.begin(), extra.end());
  loop.inputAxes.assign(inputs.size(), 0);
  loop.inputDirections.assign(inputs.size(), 0);
  loop.outputDirections.assign(outputs, 0);
  FailureOr<AffineExpr> length = commonSize(ctx, loop.inputs, loop.inputAxes, "tensors of equal lengths");
  if (failed(length))
    return failure();
  loop.length = *length;
  FailureOr<SmallVector<Value>> results = emitScan(ctx, loop);
  if (failed(results))
    return failure();
  for (auto [i, value] : llvm::enumerate(*results))
    (void)ctx.set(i, value);
  return success();
}

} // namespace

void tc::populateATenControlFlow(OpRegistrar &onOp) {
  auto on = [&](StringRef type, NodeHandler handler) { onOp(type, /*sinceVersion=*/1, std::move(handler), 0); };
  on("cond", cond);
  on("while_loop", whileLoop);
  on("scan", [](NodeContext &ctx) -> LogicalResult {
    Call c(ctx);
    FailureOr<SmallVector<Value>> states = valuesOf(c, "arg1"), inputs = valuesOf(c, "arg2"),
                                  extra = valuesOf(c, "arg3");
    return failed(states) || failed(inputs) || failed(extra) ? failure() : scanOver(ctx, *states, *inputs, *extra);
  });
  for (StringRef name : {"map_impl", "map"})
    on(name, [](NodeContext &ctx) -> LogicalResult {
      Call c(ctx);
      FailureOr<SmallVector<Value>> inputs = valuesOf(c, "arg1"), extra = valuesOf(c, "arg2");
      return failed(inputs) || failed(extra) ? failure() : scanOver(ctx, {}, *inputs, *extra);
    });
  onOp.takeComplex(ComplexUse::Moved, {"cond", "while_loop", "scan", "map_impl", "map"});
}
