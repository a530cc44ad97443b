//===- InnerOutputs.cpp - values inside of a model as outputs -----------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "InnerOutputs.h"

#include "tc/Support/NodePattern.h"
#include "tc/Support/Suggest.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace tc;
using namespace tc::driver;

static std::string describeUnused(const NodePattern &pattern, graph::FuncOp main) {
  std::vector<std::string> names;
  bool isInside = false;
  main.walk([&](graph::NodeOp node) {
    if (node->getParentOp() == main)
      names.push_back(node.getNodeName());
    else
      isInside |= pattern.matches(node.getNodeName());
  });
  const std::string what = "--outputs " + pattern.text + " names no node of the model";
  if (isInside)
    return what + " but some inside of a branch or loop, whose values are none outside of it; name the node that holds "
                  "them";
  return what + didYouMean(pattern.text, names) +
         "; tc-compile --compile-to=import -o - shows their names, and * is any text";
}

graph::FuncOp tc::driver::findMain(ModuleOp module) {
  for (graph::FuncOp function : module.getOps<graph::FuncOp>())
    if (function.isPublic())
      return function;
  return nullptr;
}

void tc::driver::setResults(graph::FuncOp main, ArrayRef<Value> values, ArrayRef<Attribute> attrs) {
  Builder b(main.getContext());
  Operation *yield = main.getBody().front().getTerminator();
  yield->setOperands(values);
  main.setFunctionType(b.getFunctionType(main.getArgumentTypes(), TypeRange(yield->getOperandTypes())));
  main.setResAttrsAttr(b.getArrayAttr(attrs));
}

/// The outputs of a graph, with their attributes, to which values of nodes are added under names that differ.
class OutputList {
public:
  explicit OutputList(graph::FuncOp main) : main(main), b(main.getContext()) {}

  void addOwn(unsigned number, Value value) {
    names.insert(main.getResultName(number));
    DictionaryAttr ofResult = main.getResultAttrDict(number);
    values.push_back(value);
    attrs.push_back(ofResult ? ofResult : b.getDictionaryAttr({}));
  }
  /// Result `number` of a node, by the node's name.
  void add(graph::NodeOp node, unsigned number) {
    const size_t count = llvm::count_if(node.getResultTypes(), [](Type type) { return !isa<NoneType>(type); });
    const std::string name = node.getNodeName(), stem = count == 1 ? name : name + "." + std::to_string(number);
    std::string unique = stem;
    for (unsigned again = 2; !names.insert(unique).second; ++again)
      unique = stem + "#" + std::to_string(again);
    values.push_back(node.getResult(number));
    attrs.push_back(b.getDictionaryAttr(b.getNamedAttr(graph::kNameAttr, b.getStringAttr(unique))));
  }
  size_t size() const { return values.size(); }
  void apply() { setResults(main, values, attrs); }

private:
  graph::FuncOp main;
  Builder b;
  llvm::StringSet<> names;
  SmallVector<Value> values;
  std::vector<Attribute> attrs;
};

std::string tc::driver::addInnerOutputs(ModuleOp module, ArrayRef<std::string> patterns) {
  if (patterns.empty())
    return "";
  graph::FuncOp main = findMain(module);
  if (!main)
    return "--outputs needs a model or a module of phase import";
  const NodePatterns all(patterns);

  Operation *yield = main.getBody().front().getTerminator();
  llvm::SetVector<Value> outputs(yield->operand_begin(), yield->operand_end());
  OutputList list(main);
  for (auto [i, value] : llvm::enumerate(yield->getOperands()))
    list.addOwn(i, value);
  const size_t own = list.size();
  for (graph::NodeOp node : main.getBody().getOps<graph::NodeOp>()) {
    const std::string name = node.getNodeName();
    bool isWanted = false, isNamed = false;
    for (const std::unique_ptr<NodePattern> &pattern : all.all())
      if (pattern->matches(name)) {
        isWanted = pattern->isUsed = true;
        isNamed |= pattern->isExact(name);
      }
    if (!isWanted)
      continue;
    for (auto [i, result] : llvm::enumerate(node.getResults()))
      // Of those that a pattern happens to name, lists and the like are left out.
      if (!isa<NoneType>(result.getType()) && (isNamed || isa<TensorType, base::UnknownType>(result.getType())) &&
          outputs.insert(result))
        list.add(node, i);
  }
  for (const std::unique_ptr<NodePattern> &pattern : all.all())
    if (!pattern->isUsed)
      return describeUnused(*pattern, main);
  list.apply();
  if (list.size() > own)
    module->setAttr(kInnerOutputsAttr, Builder(module.getContext()).getI64IntegerAttr(list.size() - own));
  return "";
}

std::string tc::driver::stopAfter(ModuleOp module, unsigned count) {
  if (!count)
    return "";
  graph::FuncOp main = findMain(module);
  if (!main)
    return "--stop-after needs a model or a module of phase import";
  Block &body = main.getBody().front();
  SmallVector<graph::NodeOp> nodes;
  for (graph::NodeOp node : body.getOps<graph::NodeOp>())
    if (!node->hasAttr(graph::kUnknownAttr))
      nodes.push_back(node);
  if (count > nodes.size())
    return "--stop-after " + std::to_string(count) + ": the model has only " + std::to_string(nodes.size()) +
           " nodes; give a smaller number";
  graph::NodeOp last = nodes[count - 1];
  auto isKept = [&](Operation *op) {
    Operation *inBody = body.findAncestorOpInBlock(*op);
    return inBody == last || inBody->isBeforeInBlock(last);
  };
  OutputList list(main);
  Operation *yield = body.getTerminator();
  llvm::DenseSet<Value> outputs;
  for (auto [i, value] : llvm::enumerate(yield->getOperands()))
    if (Operation *producer = value.getDefiningOp(); !producer || isKept(producer)) {
      outputs.insert(value);
      list.addOwn(i, value);
    }
  for (graph::NodeOp node : nodes) {
    if (!isKept(node))
      break;
    for (auto [i, result] : llvm::enumerate(node.getResults()))
      if (!isa<NoneType>(result.getType()) && !outputs.contains(result) &&
          (node == last || llvm::any_of(result.getUsers(), [&](Operation *user) { return !isKept(user); })))
        list.add(node, i);
  }
  list.apply();
  while (&*std::prev(yield->getIterator()) != last)
    std::prev(yield->getIterator())->erase();
  return "";
}

/// The sentence about the first of the patterns that matches none of the `names`, which `hint` shows; empty: all do.
static std::string findUnused(StringRef option, ArrayRef<std::string> patterns, const std::vector<std::string> &names,
                              StringRef what, StringRef hint) {
  for (const std::string &text : patterns) {
    const NodePattern pattern(text);
    if (llvm::none_of(names, [&](const std::string &name) { return pattern.matches(name); }))
      return (option + " " + text + " names no " + what + " of the model" + didYouMean(text, names) + "; " + hint +
              " shows their names, and * is any text")
          .str();
  }
  return "";
}

std::string tc::driver::findUnusedInput(ModuleOp module, StringRef option, ArrayRef<std::string> patterns) {
  if (patterns.empty())
    return "";
  std::vector<std::string> names;
  for (auto function : module.getOps<graph::FuncOp>())
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      names.push_back(function.getArgName(i).str());
  for (auto function : module.getOps<func::FuncOp>())
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (auto name = function.getArgAttrOfType<StringAttr>(i, "tc.name"))
        names.push_back(name.str());
  return findUnused(option, patterns, names, "input", "tc-inspect MODEL");
}

std::string tc::driver::findUnusedPattern(ModuleOp module, StringRef option, ArrayRef<std::string> patterns) {
  if (patterns.empty())
    return "";
  std::vector<std::string> names;
  module.walk([&](graph::NodeOp node) { names.push_back(node.getNodeName()); });
  return findUnused(option, patterns, names, "node", "tc-compile --compile-to=import -o -");
}
