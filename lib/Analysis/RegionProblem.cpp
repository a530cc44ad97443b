//===- RegionProblem.cpp - what a region computes, found out once -------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Analysis/RegionProblem.h"

using namespace mlir;
using namespace tc;

// A filter or weight is not computed of more values than these.
constexpr unsigned kMostStaticValues = 16;

bool RegionProblem::isStatic(unsigned input) const {
  llvm::SetVector<Value> values;
  values.insert(region.getInputs()[input]);
  bool isGiven = false;
  for (unsigned i = 0; i < values.size(); ++i) {
    if (auto argument = dyn_cast<BlockArgument>(values[i])) {
      auto func = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
      if (!func || !func.getArgAttr(argument.getArgNumber(), prim::kStaticAttr))
        return false;
      isGiven = true;
      continue;
    }
    Operation *op = values[i].getDefiningOp();
    if (isa<prim::ConstantOp>(op))
      continue;
    if (values.size() > kMostStaticValues || !isa<kernel::RegionOp, prim::ReshapeOp>(op))
      return false;
    values.insert_range(op->getOperands());
  }
  return isGiven;
}

Operation *RegionProblem::findAnchor() const {
  if (!anchor)
    anchor = tc::findAnchor(region);
  return *anchor;
}

const Product *RegionProblem::findProduct() const {
  return answer(product, [&] { return findAnchor() ? asProduct(findAnchor()) : std::nullopt; });
}

const Convolution *RegionProblem::findConvolution() const {
  return answer(convolution, [&] { return findAnchor() ? asConvolution(findAnchor()) : std::nullopt; });
}

const Reduction *RegionProblem::findReduction() const {
  return answer(reduction, [&]() -> std::optional<Reduction> {
    auto reduce = findOnly<prim::ReduceOp>();
    return reduce ? std::optional(Reduction(reduce)) : std::nullopt;
  });
}

const Epilogue *RegionProblem::findEpilogue(Value result) const {
  auto [known, isNew] = epilogues.try_emplace(result);
  if (isNew)
    if (FailureOr<Epilogue> epilogue = Epilogue::analyze(region, result); succeeded(epilogue))
      known->second = std::make_unique<Epilogue>(std::move(*epilogue));
  return known->second.get();
}

const Epilogue *RegionProblem::findWholeEpilogue(Value result) const {
  const Epilogue *epilogue = findEpilogue(result);
  return epilogue && epilogue->roots().size() == getYielded().size() ? epilogue : nullptr;
}
