//===- Anchor.cpp - the op that a region is built around, and what follows it -------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Analysis/Anchor.h"

#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace tc;

static bool isPointwise(Operation *op) { return op->hasTrait<prim::PointwiseTrait>(); }
static bool isBijection(Operation *op) { return op->hasTrait<prim::BijectiveTrait>(); }

Operation *tc::findAnchor(kernel::RegionOp region) {
  Operation *anchor = nullptr;
  for (Operation &op : region.getBody().front()) {
    if (prim::getRole(&op) != prim::Role::Contraction && !isa<prim::RnnOp>(op))
      continue;
    if (anchor)
      return nullptr;
    anchor = &op;
  }
  return anchor;
}

FailureOr<Epilogue> Epilogue::analyze(kernel::RegionOp region, Value result) {
  Epilogue epilogue;
  epilogue.body = &region.getBody().front();
  epilogue.result = result;
  // Two values stand at the same position of the result when the same movements lead to them.
  llvm::DenseMap<Value, SmallVector<Operation *, 2>> moves;
  moves[result] = {};
  for (Operation &op : epilogue.body->without_terminator()) { // outputs may stand at positions of their own
    std::optional<unsigned> first;
    for (OpOperand &operand : op.getOpOperands()) {
      if (!moves.contains(operand.get()))
        continue;
      if (first && moves[op.getOperand(*first)] != moves[operand.get()])
        return failure();
      if (!first)
        first = operand.getOperandNumber();
    }
    if (!first)
      continue;
    if (isPointwise(&op)) {
      SmallVector<Operation *, 2> path = moves[op.getOperand(*first)];
      moves[op.getResult(0)] = path;
    } else if (isBijection(&op)) {
      SmallVector<Operation *, 2> path = moves[op.getOperand(*first)];
      path.push_back(&op);
      moves[op.getResult(0)] = path;
    } else {
      return failure();
    }
    epilogue.steps.push_back({&op, *first});
  }
  for (auto [number, value] : llvm::enumerate(epilogue.body->getTerminator()->getOperands()))
    if (moves.contains(value))
      epilogue.outputs.push_back(number);
  return epilogue;
}

SmallVector<int64_t> Epilogue::inPlace() const {
  llvm::SmallPtrSet<Operation *, 8> onTheWay;
  bool moved = false;
  for (auto [op, operand] : steps) {
    onTheWay.insert(op);
    moved |= isBijection(op);
  }
  SmallVector<int64_t> pairs;
  if (moved)
    return pairs;
  llvm::SmallDenseSet<unsigned> taken;
  auto elementBits = [](Value value) {
    return cast<RankedTensorType>(value.getType()).getElementType().getIntOrFloatBitWidth();
  };
  for (BlockArgument argument : body->getArguments()) {
    // Every reader is a pointwise op of the epilogue, so each element is read where the outputs' elements are written.
    bool onlyHere = llvm::all_of(argument.getUsers(), [&](Operation *user) { return onTheWay.contains(user); });
    if (!onlyHere || argument.use_empty())
      continue;
    for (unsigned output : outputs) {
      Value root = body->getTerminator()->getOperand(output);
      if (taken.contains(output) || !prim::sameSizes(root.getType(), argument.getType()) ||
          elementBits(root) != elementBits(argument))
        continue;
      taken.insert(output);
      pairs.append({int64_t(argument.getArgNumber()), int64_t(output)});
      break;
    }
  }
  return pairs;
}
