//===- Edits.cpp - what can be taken away from a graph ------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Edits.h"
#include "FunctionEditor.h"

#include "tc/Dialect/TC/IR/Seeded.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;
using namespace tc;
using namespace tc::reduce;
using llvm::BitVector;

graph::FuncOp tc::reduce::getMain(ModuleOp module) {
  for (graph::FuncOp function : module.getOps<graph::FuncOp>())
    if (function.isPublic())
      return function;
  return {};
}

std::vector<graph::NodeOp> tc::reduce::getNodes(graph::FuncOp main) {
  std::vector<graph::NodeOp> nodes;
  main.walk<WalkOrder::PreOrder>([&](graph::NodeOp node) { nodes.push_back(node); });
  return nodes;
}

namespace {

//===--- nodes ----------------------------------------------------------------------------------------------------===//

size_t countNodes(graph::FuncOp main) { return getNodes(main).size(); }

/// Nodes that go, with all that is inside of them.
class Gone {
public:
  Gone(ArrayRef<graph::NodeOp> nodes, const BitVector &dropped) {
    for (auto [i, node] : llvm::enumerate(nodes))
      if (dropped[i] || contains(node->getParentOp()))
        gone.insert(node);
    // A value that can be no input of the model keeps its node, the last first: its own operands may do the same.
    for (graph::NodeOp node : llvm::reverse(nodes))
      if (gone.contains(node) && llvm::any_of(node.getResults(), [&](Value result) {
            return !canBeArgument(result.getType()) && llvm::any_of(result.getUsers(), [&](Operation *user) {
              return !contains(user) && !(isa<graph::YieldOp>(user) && isa<graph::FuncOp>(user->getParentOp()));
            });
          }))
        gone.erase(node);
  }
  /// Whether `op` is such a node, or ends a subgraph of one.
  bool contains(Operation *op) const {
    return op && (gone.contains(op) || (isa<graph::YieldOp>(op) && gone.contains(op->getParentOp())));
  }

private:
  llvm::DenseSet<Operation *> gone;
};

bool dropNodes(graph::FuncOp main, const BitVector &dropped) {
  const std::vector<graph::NodeOp> nodes = getNodes(main);
  Gone gone(nodes, dropped);
  FunctionEditor editor(main);
  BitVector outputs(editor.getOutputs().size());
  llvm::DenseSet<Value> known;
  for (auto [i, output] : llvm::enumerate(editor.getOutputs())) {
    outputs[i] = gone.contains(output.getDefiningOp());
    if (!outputs[i])
      known.insert(output);
  }
  editor.eraseOutputs(outputs);
  // What a node that goes has read is looked at by nobody else: without being an output it would be no work at all.
  for (graph::NodeOp node : nodes)
    if (!gone.contains(node) && isa<graph::FuncOp>(node->getParentOp()))
      for (Value result : node.getResults())
        if (!isa<NoneType>(result.getType()) &&
            llvm::any_of(result.getUsers(), [&](Operation *user) { return gone.contains(user); }) &&
            known.insert(result).second)
          editor.addOutput(result);
  for (graph::NodeOp node : llvm::reverse(nodes)) {
    if (!gone.contains(node) || gone.contains(node->getParentOp()))
      continue;
    for (Value result : node.getResults())
      if (!result.use_empty())
        result.replaceAllUsesWith(editor.addArgument(result.getType(), node.getLoc()));
    node.erase();
  }
  return editor.finish();
}

//===--- outputs and inputs ---------------------------------------------------------------------------------------===//

size_t countOutputs(graph::FuncOp main) {
  const size_t count = FunctionEditor(main).getOutputs().size();
  return count > 1 ? count : 0;
}

bool dropOutputs(graph::FuncOp main, const BitVector &dropped) {
  if (dropped.all())
    return false;
  FunctionEditor editor(main);
  editor.eraseOutputs(dropped);
  return editor.finish();
}

size_t countArguments(graph::FuncOp main) { return main.getNumArguments(); }

/// An input is as good as an earlier one of its type.
bool mergeArguments(graph::FuncOp main, const BitVector &dropped) {
  bool changed = false;
  for (unsigned i : dropped.set_bits()) {
    BlockArgument argument = main.getArgument(i);
    for (unsigned k = 0; k < i && !argument.use_empty(); ++k)
      if (!dropped[k] && main.getArgument(k).getType() == argument.getType()) {
        argument.replaceAllUsesWith(main.getArgument(k));
        changed = true;
      }
  }
  return changed && FunctionEditor(main).finish();
}

//===--- what holds other nodes -----------------------------------------------------------------------------------===//

std::vector<graph::NodeOp> getCalls(graph::FuncOp main) {
  std::vector<graph::NodeOp> calls = getNodes(main);
  llvm::erase_if(calls, [](graph::NodeOp node) {
    return !node.getCalleeAttr() || !SymbolTable::lookupNearestSymbolFrom<graph::FuncOp>(node, node.getCalleeAttr());
  });
  return calls;
}

size_t countCalls(graph::FuncOp main) { return getCalls(main).size(); }

/// The nodes of a function stand where it was called.
bool inlineCalls(graph::FuncOp main, const BitVector &dropped) {
  const std::vector<graph::NodeOp> calls = getCalls(main);
  for (unsigned i : dropped.set_bits()) {
    graph::NodeOp call = calls[i];
    auto callee = SymbolTable::lookupNearestSymbolFrom<graph::FuncOp>(call, call.getCalleeAttr());
    OpBuilder b(call);
    IRMapping mapping;
    for (BlockArgument argument : callee.getArguments()) {
      const unsigned number = argument.getArgNumber();
      mapping.map(argument, number < call.getInputs().size()
                                ? call.getInputs()[number]
                                : graph::NoneOp::create(b, call.getLoc(), b.getNoneType()).getResult());
    }
    auto resolve = [&](graph::NodeOp node) {
      NamedAttrList attrs(node.getAttrs());
      for (NamedAttribute attr : node.getAttrs()) {
        auto reference = dyn_cast<graph::RefAttr>(attr.getValue());
        if (!reference)
          continue;
        Attribute value = call.getNodeAttr(reference.getParam());
        if (!value && callee.getAttrDefaults())
          value = callee.getAttrDefaults()->get(reference.getParam());
        if (value)
          attrs.set(attr.getName(), value);
        else
          attrs.erase(attr.getName());
      }
      node.setAttrsAttr(attrs.getDictionary(node.getContext()));
    };
    for (Operation &op : callee.getBody().front().without_terminator())
      b.clone(op, mapping)->walk(resolve);
    for (auto [result, value] : llvm::zip(call.getResults(), callee.getBody().front().getTerminator()->getOperands()))
      result.replaceAllUsesWith(mapping.lookupOrDefault(value));
    if (!call.use_empty())
      return false;
    call.erase();
  }
  return FunctionEditor(main).finish();
}

std::vector<Region *> getSubgraphs(graph::FuncOp main) {
  std::vector<Region *> regions;
  for (graph::NodeOp node : getNodes(main))
    for (Region &region : node.getGraphs())
      regions.push_back(&region);
  return regions;
}

size_t countSubgraphs(graph::FuncOp main) { return getSubgraphs(main).size(); }

/// The nodes of a branch, or of a loop's body, stand where the node was, and run once; what the node hands to it are
/// inputs of the model.
bool peelSubgraphs(graph::FuncOp main, const BitVector &dropped) {
  const std::vector<Region *> regions = getSubgraphs(main);
  FunctionEditor editor(main);
  llvm::DenseSet<Region *> lost;
  bool changed = false;
  for (unsigned i : dropped.set_bits()) {
    if (lost.contains(regions[i]))
      continue;
    auto node = cast<graph::NodeOp>(regions[i]->getParentOp());
    Block &body = regions[i]->front();
    if (!llvm::all_of(body.getArgumentTypes(), canBeArgument))
      continue;
    for (BlockArgument argument : body.getArguments())
      if (!argument.use_empty())
        argument.replaceAllUsesWith(editor.addArgument(argument.getType(), node.getLoc()));
    auto yield = cast<graph::YieldOp>(body.back());
    node->getBlock()->getOperations().splice(node->getIterator(), body.getOperations(), body.begin(),
                                             yield->getIterator());
    // A loop's body begins with whether it goes on.
    const size_t results = node.getNumResults(), values = yield.getValues().size(), first = values == results + 1;
    for (auto [k, result] : llvm::enumerate(node.getResults())) {
      if (result.use_empty())
        continue;
      if (values >= results)
        result.replaceAllUsesWith(yield.getValues()[first + k]);
      else if (canBeArgument(result.getType()))
        result.replaceAllUsesWith(editor.addArgument(result.getType(), node.getLoc()));
      else
        return false;
    }
    node->walk([&](Operation *op) {
      for (Region &region : op->getRegions())
        lost.insert(&region);
    });
    node.erase();
    changed = true;
  }
  return changed && editor.finish();
}

//===--- parts of nodes -------------------------------------------------------------------------------------------===//

std::vector<OpOperand *> getDetours(graph::FuncOp main) {
  std::vector<OpOperand *> operands;
  for (graph::NodeOp node : getNodes(main)) {
    auto others = llvm::drop_begin(node.getResults(), node.getNumResults() != 0);
    if (node.getNumResults() == 0 || llvm::any_of(others, [](Value result) { return !result.use_empty(); }))
      continue;
    for (OpOperand &operand : node->getOpOperands())
      if (isa<TensorType>(operand.get().getType()) && operand.get().getType() == node.getResult(0).getType())
        operands.push_back(&operand);
  }
  return operands;
}

size_t countDetours(graph::FuncOp main) { return getDetours(main).size(); }

/// A node is as good as an operand of its type.
bool passBy(graph::FuncOp main, const BitVector &dropped) {
  const std::vector<OpOperand *> operands = getDetours(main);
  llvm::SetVector<Operation *> passed;
  for (unsigned i : dropped.set_bits()) {
    Operation *node = operands[i]->getOwner();
    if (passed.insert(node))
      node->getResult(0).replaceAllUsesWith(operands[i]->get());
  }
  for (Operation *node : llvm::reverse(passed.getArrayRef()))
    if (node->use_empty())
      node->erase();
    else
      return false;
  return FunctionEditor(main).finish();
}

std::vector<OpOperand *> getOperands(graph::FuncOp main) {
  std::vector<OpOperand *> operands;
  for (graph::NodeOp node : getNodes(main))
    for (OpOperand &operand : node->getOpOperands())
      if (!isa<NoneType>(operand.get().getType()))
        operands.push_back(&operand);
  return operands;
}

size_t countOperands(graph::FuncOp main) { return getOperands(main).size(); }

bool dropOperands(graph::FuncOp main, const BitVector &dropped) {
  const std::vector<OpOperand *> operands = getOperands(main);
  llvm::SetVector<Operation *> nodes;
  for (unsigned i : dropped.set_bits()) {
    Operation *node = operands[i]->getOwner();
    OpBuilder b(node);
    operands[i]->set(graph::NoneOp::create(b, node->getLoc(), b.getNoneType()));
    nodes.insert(node);
  }
  // One that is not there at the end is not written.
  for (Operation *node : nodes)
    while (node->getNumOperands() && isa<NoneType>(node->getOperands().back().getType()))
      node->eraseOperand(node->getNumOperands() - 1);
  return FunctionEditor(main).finish();
}

size_t countAttributes(graph::FuncOp main) {
  size_t count = 0;
  for (graph::NodeOp node : getNodes(main))
    count += node.getAttrs().size();
  return count;
}

bool dropAttributes(graph::FuncOp main, const BitVector &dropped) {
  unsigned index = 0;
  for (graph::NodeOp node : getNodes(main)) {
    SmallVector<NamedAttribute> kept;
    for (NamedAttribute attr : node.getAttrs())
      if (!dropped[index++])
        kept.push_back(attr);
    node.setAttrsAttr(DictionaryAttr::get(node.getContext(), kept));
  }
  return true;
}

/// What the file says of itself. Its version is needed to write it again.
SmallVector<StringAttr> getNotes(graph::FuncOp main) {
  SmallVector<StringAttr> names;
  for (NamedAttribute attr : main->getParentOp()->getDiscardableAttrs())
    if (attr.getName() != graph::kIrVersionAttr)
      names.push_back(attr.getName());
  return names;
}

size_t countNotes(graph::FuncOp main) { return getNotes(main).size(); }

bool dropNotes(graph::FuncOp main, const BitVector &dropped) {
  const SmallVector<StringAttr> names = getNotes(main);
  for (unsigned i : dropped.set_bits())
    main->getParentOp()->removeAttr(names[i]);
  return true;
}

//===--- constants ------------------------------------------------------------------------------------------------===//

/// Smaller ones are readable, and more often sizes and the like than weights.
constexpr uint64_t kLeastWeights = 16;

std::vector<graph::ConstantOp> getWeights(graph::FuncOp main) {
  std::vector<graph::ConstantOp> weights;
  main.walk([&](graph::ConstantOp constant) {
    auto data = dyn_cast<base::DataAttr>(constant.getValue());
    if (data && !base::isSeeded(data) && isa<FloatType>(data.getType().getElementType()) &&
        base::getNumElements(data.getType()).value_or(0) >= kLeastWeights)
      weights.push_back(constant);
  });
  return weights;
}

size_t countWeights(graph::FuncOp main) { return getWeights(main).size(); }

bool seedWeights(graph::FuncOp main, const BitVector &dropped) {
  const std::vector<graph::ConstantOp> weights = getWeights(main);
  bool changed = false;
  for (unsigned i : dropped.set_bits()) {
    graph::ConstantOp constant = weights[i];
    if (base::DataAttr seeded = base::makeSeeded(cast<RankedTensorType>(constant.getType()), i)) {
      constant.setValueAttr(seeded);
      changed = true;
    }
  }
  return changed;
}

} // namespace

ArrayRef<Step> tc::reduce::getSteps() {
  static constexpr Step steps[] = {{"no notes", countNotes, dropNotes},
                                   {"functions inlined", countCalls, inlineCalls},
                                   {"fewer nodes", countNodes, dropNodes},
                                   {"fewer outputs", countOutputs, dropOutputs},
                                   {"subgraphs peeled", countSubgraphs, peelSubgraphs},
                                   {"nodes passed by", countDetours, passBy},
                                   {"fewer operands", countOperands, dropOperands},
                                   {"fewer attributes", countAttributes, dropAttributes},
                                   {"fewer inputs", countArguments, mergeArguments},
                                   {"seeded weights", countWeights, seedWeights}};
  return steps;
}
