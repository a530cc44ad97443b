//===- ControlFlow.cpp - if, while, kernel.region -----------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Handlers.h"

#include "tc/Dialect/Prim/IR/ListedSizes.h"

#include "mlir/IR/IntegerSet.h"

using namespace mlir;
using namespace tc::prim;
using namespace tc::prim::interpreter;

namespace {

Results evalIf(const Call &call) {
  if (IntegerSetAttr when = getWhen(call.op)) {
    const IntegerSet set = when.getValue();
    bool holds = true;
    for (unsigned i = 0; i < set.getNumConstraints(); ++i) {
      llvm::Expected<int64_t> value = call.frame.evaluate(set.getConstraint(i));
      if (!value)
        return call.fail(llvm::toString(value.takeError()));
      holds &= set.isEq(i) ? *value == 0 : *value >= 0;
    }
    return call.frame.runRegion(call.op->getRegion(holds ? 0 : 1), {});
  }
  if (call.operands[0].numElements() != 1)
    return call.fail("the condition must have one element");
  return call.frame.runRegion(call.op->getRegion(call.operands[0].bytes.get()[0] ? 0 : 1), {});
}

Results evalWhile(const Call &call) {
  if (call.operands[0].numElements() != 1 || call.operands[1].numElements() != 1 || call.isFloat(0))
    return call.fail("trip count and condition must have one element");
  int64_t maxTrips = toInts(call.operands[0])[0];
  bool condition = call.operands[1].bytes.get()[0];
  std::vector<Tensor> carried = call.operands.drop_front(2).vec();
  Type i64 = IntegerType::get(call.op->getContext(), 64);
  for (int64_t trip = 0; condition && trip < maxTrips; ++trip) {
    std::vector<Tensor> arguments{fromInts(i64, {}, {trip})};
    arguments.insert(arguments.end(), carried.begin(), carried.end());
    Results yielded = call.frame.runRegion(call.op->getRegion(0), arguments);
    if (!yielded)
      return yielded;
    if (yielded->size() != carried.size() + 1 || yielded->front().numElements() != 1)
      return call.fail("the body must yield a condition and the carried values");
    condition = yielded->front().bytes.get()[0];
    carried.assign(yielded->begin() + 1, yielded->end());
  }
  return carried;
}

/// A fused region computes what its ops compute.
Results evalRegion(const Call &call) { return call.frame.runRegion(call.op->getRegion(0), call.operands); }

} // namespace

void tc::prim::interpreter::addControlFlowHandlers(Registry &registry) {
  registry.add(IfOp::getOperationName(), evalIf);
  registry.add(WhileOp::getOperationName(), evalWhile);
  // By name: the interpreter stands below the kernel dialect.
  registry.add("kernel.region", evalRegion);
}
