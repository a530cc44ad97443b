//===- Computed.cpp - values that only the run knows --------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Prim/Utils/Computed.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

llvm::DenseSet<Value> tc::prim::collectComputed(func::FuncOp function) {
  llvm::DenseSet<Value> computed;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    for (Region &region : op->getRegions())
      for (Block &block : region)
        computed.insert(block.args_begin(), block.args_end());
    const bool isConstant = isMemoryEffectFree(op) && op->getNumRegions() == 0 &&
                            llvm::none_of(op->getOperands(), [&](Value operand) { return computed.contains(operand); });
    if (!isConstant)
      computed.insert(op->result_begin(), op->result_end());
  });
  return computed;
}
