//===- States.cpp - numbers in attributes that a run changes ------------------------------------------------------===//
//
// Code may read a number from an attribute and write the attribute further down: the number is the saved one in the
// first run alone. What was taken for a constant so far is then read when it runs, in an import from the beginning that
// knows these attributes.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Interpreter.h"

#include "tc/Dialect/Graph/IR/Signature.h"
#include "tc/Dialect/Graph/Torch/Schemas.h"

using namespace mlir;
using namespace tc;
using namespace tc::torchscript;

static StringRef stateOf(mlir::Value value) {
  auto constant = value.getDefiningOp<graph::ConstantOp>();
  auto name = constant ? constant->getAttrOfType<StringAttr>(graph::kStateAttr) : StringAttr();
  return name ? name.getValue() : StringRef();
}

bool Interpreter::takesConstant(mlir::Value value) {
  SmallVector<mlir::Value> pending{value}, seen;
  llvm::StringSet<> states;
  auto push = [&](mlir::Value next) {
    if (independent.insert(next).second) {
      seen.push_back(next);
      pending.push_back(next);
    }
  };
  while (!pending.empty()) {
    mlir::Value next = pending.pop_back_val();
    if (const StringRef state = stateOf(next); !state.empty()) {
      if (changing.contains(state)) {
        for (mlir::Value visited : seen)
          independent.erase(visited);
        return false;
      }
      readStates.insert(state);
    }
    Operation *op = next.getDefiningOp();
    if (!op) // of a branch or loop
      op = next.getParentBlock()->getParentOp();
    if (isa<graph::FuncOp>(op))
      continue;
    for (mlir::Value operand : op->getOperands())
      push(operand);
    for (Region &region : op->getRegions())
      region.walk([&](Operation *inner) { llvm::for_each(inner->getOperands(), push); });
  }
  return true;
}

void Interpreter::noteWrite(mlir::Value written) {
  forgetNumbers(written);
  // And what it is a view of.
  while (auto node = written.getDefiningOp<graph::NodeOp>()) {
    const torch::Schema *schema = torch::findSchema(node.getDomain(), node.getOpType());
    if (!schema || node.getInputs().empty() ||
        llvm::none_of(schema->results, [](const torch::SchemaArgument &result) { return result.type.findAlias(); }))
      return;
    written = node.getInputs()[0];
    forgetNumbers(written);
  }
  if (const StringRef state = stateOf(written); !state.empty())
    writtenStates.insert(state);
}

std::vector<std::string> Interpreter::getStaleStates() const {
  std::vector<std::string> stale;
  for (const auto &entry : readStates)
    if (writtenStates.contains(entry.getKey()))
      stale.push_back(entry.getKey().str());
  return stale;
}
