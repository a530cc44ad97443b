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

EpilogueValues tc::codegen::computeEpilogue(Emitter &em, const Epilogue &epilogue, ArrayRef<Index> at, Value value) {
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
  auto yield = cast<kernel::YieldOp>(em.region().getBody().front().getTerminator());
  EpilogueValues computed;
  for (unsigned output : epilogue.roots()) {
    computed.positions.push_back(positions[yield.getValues()[output]]);
    computed.values.push_back(em.emit(yield.getValues()[output], computed.positions.back()));
  }
  return computed;
}

void tc::codegen::storeEpilogue(Emitter &em, const Epilogue &epilogue, const EpilogueValues &computed) {
  auto yield = cast<kernel::YieldOp>(em.region().getBody().front().getTerminator());
  for (auto [output, stored, at] : llvm::zip_equal(epilogue.roots(), computed.values, computed.positions)) {
    Value root = yield.getValues()[output];
    em.store(stored, em.output(output), cast<RankedTensorType>(root.getType()).getElementType(), prim::getSizes(root),
             at);
  }
}

void tc::codegen::storeEpilogue(Emitter &em, const Epilogue &epilogue, ArrayRef<Index> at, Value value) {
  // All values before all stores: an output may lie on an input.
  storeEpilogue(em, epilogue, computeEpilogue(em, epilogue, at, value));
}
