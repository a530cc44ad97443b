//===- States.cpp - numbers in attributes that a run changes ------------------------------------------------------===//
//
// Code may read a number from an attribute and write the attribute further down: the number is the saved one in the
// first run alone. What was taken for a constant so far is then read when it runs, in an import from the beginning that
// knows these attributes. Those that get another value, and not the same tensor written, are copied at a run's start
// and set at its end: what else holds the old value does not see the new one.
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

/// Where the module has an attribute, which is also what the state of a tensor there is called.
static std::string keyOf(const Held *object, StringRef name) {
  return object->path.empty() ? name.str() : object->path + "." + name.str();
}

bool Interpreter::keepAttribute(Held *object, StringRef name) {
  auto found = object->attributes.find(name);
  if (found == object->attributes.end())
    return false;
  PyValue &value = found->second;
  const std::string key = keyOf(object, name);
  const Kind kind = value.is(Kind::Int)     ? Kind::SymInt
                    : value.is(Kind::Float) ? Kind::SymFloat
                    : value.is(Kind::Bool)  ? Kind::SymBool
                                            : Kind::Tensor;
  mlir::Value state;
  if (kind != Kind::Tensor) {
    state = materialize(value);
    state.getDefiningOp()->setAttr(graph::kStateAttr, builder.getStringAttr(key));
    state.getDefiningOp()->setAttr(graph::kFreshAttr, builder.getUnitAttr());
  } else if (value.isTensor() && value.graph && stateOf(value.graph) == key && !isQuantized(value)) {
    state = value.graph;
  } else {
    return false;
  }
  changing.insert(key);
  const PyValue memory = PyValue::ofGraph(Kind::Tensor, state);
  Result copy = callATen("clone", memory, {}, Position());
  if (copy && kind != Kind::Tensor)
    copy = toNumber(*copy, kind, Position());
  if (!copy)
    return false;
  value = *copy;
  kept.push_back({object, found->first, memory});
  return true;
}

bool Interpreter::setKept(const Held *object, StringRef name, PyValue &old, const PyValue &value) {
  const bool isKept = llvm::any_of(kept, [&](auto &entry) { return entry.object == object && entry.name == name; });
  auto isOf = [](const PyValue &v, Kind known, Kind symbolic) { return v.is(known) || v.is(symbolic); };
  bool isAlike = false;
  for (auto [known, symbolic] :
       {std::pair(Kind::Int, Kind::SymInt), {Kind::Float, Kind::SymFloat}, {Kind::Bool, Kind::SymBool}})
    isAlike |= isOf(old, known, symbolic) && isOf(value, known, symbolic);
  if (old.isTensor() && value.isTensor() && !isQuantized(value) && !isUnknown(old) && !isUnknown(value)) {
    std::optional<RankedTensorType> before = findType(old), after = findType(value);
    isAlike = before && after && *before == *after && before->hasStaticShape();
  }
  if (!isAlike || !(isKept || toKeep.insert(keyOf(object, name)).second))
    return false;
  old = value;
  return true;
}

bool Interpreter::setKeptStates(Position at) {
  for (const KeptAttribute &entry : kept) {
    PyValue value = entry.object->attributes.lookup(entry.name);
    if (!value.isTensor() || !value.graph)
      value = PyValue::ofGraph(Kind::Tensor, materialize(value));
    if (!callATen("copy_", {entry.state, value}, {}, at))
      return false;
  }
  return true;
}
