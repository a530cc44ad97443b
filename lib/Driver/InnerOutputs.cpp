//===- InnerOutputs.cpp - values inside of a model as outputs -----------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "InnerOutputs.h"

#include "tc/Dialect/Graph/IR/Graph.h"
#include "tc/Support/Suggest.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/GlobPattern.h"

using namespace mlir;
using namespace tc;
using namespace tc::driver;

namespace {

/// A name of its own counts as such, whatever characters are in it.
struct NodePattern {
  std::string text;
  std::optional<llvm::GlobPattern> glob;
  bool isUsed = false;

  bool isExact(StringRef name) const { return name == text; }
  bool matches(StringRef name) const { return isExact(name) || (glob && glob->match(name)); }
};

} // namespace

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

std::string tc::driver::addInnerOutputs(ModuleOp module, ArrayRef<std::string> patterns) {
  if (patterns.empty())
    return "";
  graph::FuncOp main;
  for (graph::FuncOp function : module.getOps<graph::FuncOp>())
    main = function.isPublic() && !main ? function : main;
  if (!main)
    return "--outputs needs a model or a module of phase import";
  std::vector<NodePattern> all;
  for (const std::string &text : patterns) {
    NodePattern &pattern = all.emplace_back();
    pattern.text = text;
    if (llvm::Expected<llvm::GlobPattern> glob = llvm::GlobPattern::create(text))
      pattern.glob = std::move(*glob);
    else
      llvm::consumeError(glob.takeError());
  }

  Operation *yield = main.getBody().front().getTerminator();
  Builder b(main.getContext());
  llvm::SetVector<Value> outputs(yield->operand_begin(), yield->operand_end());
  llvm::StringSet<> names;
  std::vector<Attribute> attrs;
  for (unsigned i = 0; i < main.getNumResults(); ++i) {
    names.insert(main.getResultName(i));
    DictionaryAttr ofResult = main.getResultAttrDict(i);
    attrs.push_back(ofResult ? ofResult : b.getDictionaryAttr({}));
  }
  const size_t own = attrs.size();
  SmallVector<Value> values(yield->getOperands());
  for (graph::NodeOp node : main.getBody().getOps<graph::NodeOp>()) {
    const std::string name = node.getNodeName();
    bool isWanted = false, isNamed = false;
    for (NodePattern &pattern : all)
      if (pattern.matches(name)) {
        isWanted = pattern.isUsed = true;
        isNamed |= pattern.isExact(name);
      }
    if (!isWanted)
      continue;
    const size_t count = llvm::count_if(node.getResultTypes(), [](Type type) { return !isa<NoneType>(type); });
    for (auto [i, result] : llvm::enumerate(node.getResults())) {
      // Of those that a pattern happens to name, lists and the like are left out.
      if (isa<NoneType>(result.getType()) || (!isNamed && !isa<TensorType, base::UnknownType>(result.getType())) ||
          !outputs.insert(result))
        continue;
      const std::string stem = count == 1 ? name : name + "." + std::to_string(i);
      std::string unique = stem;
      for (unsigned number = 2; !names.insert(unique).second; ++number)
        unique = stem + "#" + std::to_string(number);
      values.push_back(result);
      attrs.push_back(b.getDictionaryAttr(b.getNamedAttr(graph::kNameAttr, b.getStringAttr(unique))));
    }
  }
  for (const NodePattern &pattern : all)
    if (!pattern.isUsed)
      return describeUnused(pattern, main);
  yield->setOperands(values);
  main.setFunctionType(b.getFunctionType(main.getArgumentTypes(), TypeRange(yield->getOperandTypes())));
  main.setResAttrsAttr(b.getArrayAttr(attrs));
  if (values.size() > own)
    module->setAttr(kInnerOutputsAttr, b.getI64IntegerAttr(values.size() - own));
  return "";
}
