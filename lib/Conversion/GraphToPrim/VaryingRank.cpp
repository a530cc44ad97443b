//===- VaryingRank.cpp - results whose rank depends on data -------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "VaryingRank.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tc;

LogicalResult tc::moveUserIntoBranches(graph::NodeOp node, ArrayRef<unsigned> varying) {
  graph::NodeOp user;
  for (unsigned index : varying)
    for (Operation *reader : node->getResult(index).getUsers()) {
      auto candidate = dyn_cast<graph::NodeOp>(node->getBlock()->findAncestorOpInBlock(*reader));
      if (!candidate)
        return failure();
      if (!user || candidate->isBeforeInBlock(user))
        user = candidate;
    }
  if (!user)
    return failure();
  // Results that are read by other nodes too stay results.
  SmallVector<unsigned> kept;
  SmallVector<Type> types;
  for (unsigned index : varying) {
    Value result = node->getResult(index);
    if (llvm::all_of(result.getUsers(), [&](Operation *reader) { return user->isAncestor(reader); }))
      continue;
    kept.push_back(index);
    types.push_back(result.getType());
  }
  llvm::append_range(types, user->getResultTypes());
  SmallVector<StringRef> names = llvm::to_vector(node.getRegionNames().getAsValueRange<StringAttr>());
  OpBuilder builder(user);
  auto joined = graph::NodeOp::create(builder, node.getLoc(), node.getDomain(), node.getOpType(), node.getOpset(),
                                      types, node.getInputs(), node.getAttrs().getValue(), names);
  for (auto [from, to] : llvm::zip_equal(node.getGraphs(), joined.getGraphs())) {
    IRMapping mapping;
    from.cloneInto(&to, mapping);
    auto yield = cast<graph::YieldOp>(to.front().getTerminator());
    SmallVector<Value> values;
    for (unsigned index : varying)
      mapping.map(node->getResult(index), yield.getValues()[index]);
    for (unsigned index : kept)
      values.push_back(yield.getValues()[index]);
    builder.setInsertionPoint(yield);
    llvm::append_range(values, builder.clone(*user, mapping)->getResults());
    yield.getValuesMutable().assign(values);
  }
  for (Region &graph : node.getGraphs()) {
    builder.setInsertionPoint(graph.front().getTerminator());
    Value none = graph::NoneOp::create(builder, node.getLoc(), builder.getNoneType());
    for (unsigned index : varying)
      graph.front().getTerminator()->setOperand(index, none);
  }
  for (auto [i, index] : llvm::enumerate(kept))
    node->getResult(index).replaceAllUsesExcept(joined->getResult(i), user);
  user->replaceAllUsesWith(joined->getResults().drop_front(kept.size()));
  user->erase();
  return success();
}

SmallVector<unsigned> tc::yieldedAs(graph::NodeOp node, ArrayRef<unsigned> results) {
  SmallVector<unsigned> positions;
  for (OpOperand &operand : node->getBlock()->getTerminator()->getOpOperands())
    if (operand.get().getDefiningOp() == node &&
        llvm::is_contained(results, cast<OpResult>(operand.get()).getResultNumber()))
      positions.push_back(operand.getOperandNumber());
  return positions;
}
