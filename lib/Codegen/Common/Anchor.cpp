//===- Anchor.cpp - how kernels read what an anchor reads, and store what follows it ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Common/Anchor.h"

using namespace mlir;
using namespace tc;
using namespace tc::codegen;

bool tc::codegen::isF32(Value tensor) { return cast<RankedTensorType>(tensor.getType()).getElementType().isF32(); }

void tc::codegen::storeEpilogue(Emitter &em, const Epilogue &epilogue, ArrayRef<Index> at, Value value) {
  const Value result = epilogue.getResult();
  em.setSource(result, [value](ArrayRef<Index>) { return value; });
  em.setPosition(result, at);
  llvm::DenseMap<Value, SmallVector<Index>> positions;
  positions[result] = SmallVector<Index>(at);
  for (auto [op, operand] : epilogue.getSteps()) {
    SmallVector<Index> position = positions[op->getOperand(operand)];
    if (op->hasTrait<prim::BijectiveTrait>())
      position = em.forward(op, position);
    em.setPosition(op->getResult(0), position);
    positions[op->getResult(0)] = std::move(position);
  }
  // All values before all stores: an output may lie on an input.
  auto yield = cast<kernel::YieldOp>(em.region().getBody().front().getTerminator());
  SmallVector<Value> values;
  for (unsigned output : epilogue.roots())
    values.push_back(em.emit(yield.getValues()[output], positions[yield.getValues()[output]]));
  for (auto [output, stored] : llvm::zip_equal(epilogue.roots(), values)) {
    Value root = yield.getValues()[output];
    em.store(stored, em.output(output), cast<RankedTensorType>(root.getType()).getElementType(), prim::getSizes(root),
             positions[root]);
  }
}
