//===- BackendParts.cpp - parts of a graph that another library computes ------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "BackendParts.h"

#include "InnerOutputs.h"
#include "SummaryText.h"
#include "tc/Analysis/LikelySizes.h"
#include "tc/Analysis/RegionInfo.h"
#include "tc/Conversion/GraphToPrim/GraphTypes.h"
#include "tc/Dialect/Graph/IR/Signature.h"
#include "tc/Dialect/Machine/IR/Machine.h"
#include "tc/Dialect/TC/IR/NodeNames.h"
#include "tc/Frontend/ONNX.h"
#include "tc/Support/NodePattern.h"

#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tc;
using namespace tc::driver;

/// The first IR version in which initializers are no inputs by themselves.
static constexpr int64_t kLeastIrVersion = 4;

std::string tc::driver::findBackendError(ArrayRef<std::string> backendFor) {
  for (StringRef text : backendFor)
    if (auto [pattern, backend] = text.rsplit('='); pattern.empty() || backend != graph::kOnnxRuntime)
      return "--backend-for " + text.str() +
             (pattern.empty()      ? " names no node"
              : text.contains('=') ? " is not known"
                                   : " names no library") +
             "; after the node or pattern comes =onnxruntime";
  return "";
}

namespace {

//===--- candidates -----------------------------------------------------------------------------------------------===//

/// Tensors of what both libraries hold alike in memory.
bool isDense(Type type) {
  auto tensor = dyn_cast<TensorType>(type);
  if (!tensor)
    return false;
  Type element = tensor.getElementType();
  if (auto integer = dyn_cast<IntegerType>(element))
    return integer.getWidth() == 1 || (integer.getWidth() >= 8 && integer.getWidth() <= 64);
  return element.isF16() || element.isBF16() || element.isF32() || element.isF64();
}

/// A constant, which each part that reads it has a copy of: ONNX Runtime folds and packs them.
bool isConstant(Operation *op) {
  auto node = dyn_cast_or_null<graph::NodeOp>(op);
  return isa_and_nonnull<graph::ConstantOp, graph::NoneOp>(op) ||
         (node && node.getDomain() == "ai.onnx" && node.getOpType() == "Constant");
}

/// What tc knows of the values of a graph before it is converted: their types, and what it takes to compute them.
class Costs {
public:
  Costs(graph::FuncOp main, const GraphToPrimOptions &options) : types(main, options) {}

  /// The type of the value in the model, or, where tc's code for it knows more, that one.
  Type getType(Value value) {
    Value converted = types.getConverted(value);
    auto type = dyn_cast_or_null<RankedTensorType>(converted ? converted.getType() : Type());
    return type ? RankedTensorType::get(type.getShape(), type.getElementType()) : value.getType();
  }
  bool hasCode(graph::NodeOp node) {
    return llvm::all_of(node.getOutputs(),
                        [&](Value result) { return result.use_empty() || types.getConverted(result); });
  }
  /// Bytes at likely sizes; 0 where the size is not known.
  double getBytes(Value value) {
    Value converted = types.getConverted(value);
    if (converted && isa<RankedTensorType>(converted.getType()))
      return evaluate(tc::getBytes(converted.getType()), converted.getParentRegion()->getParentOp());
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type && type.hasStaticShape() ? double(base::getPackedSizeBytes(type).value_or(0)) : 0;
  }
  /// Of all nodes that were asked for, by name.
  llvm::StringMap<double> getFlops(ArrayRef<Value> values) {
    llvm::StringMap<double> flops;
    func::FuncOp function;
    for (Value value : values)
      if (Value converted = types.getConverted(value))
        function = converted.getParentRegion()->getParentOfType<func::FuncOp>();
    if (function)
      function.walk([&](prim::CostOpInterface op) {
        SmallVector<StringRef> names = base::getNodeNames(ArrayRef<Location>(op->getLoc()));
        if (!names.empty())
          flops[names.front()] += evaluate(op.getFlops(), op);
      });
    return flops;
  }

private:
  static double evaluate(AffineExpr size, Operation *scope) {
    return double(evaluateLikely(size, scope, usual::kSymbol));
  }

  GraphTypes types;
};

//===--- parts ----------------------------------------------------------------------------------------------------===//

/// Sets of nodes of a block that are connected by values, none of which needs another's results before it can end. They
/// grow as long as that stays so.
class Partition {
public:
  Partition(Block &body, ArrayRef<graph::NodeOp> candidates) {
    llvm::DenseMap<Operation *, unsigned> numbers;
    for (Operation &op : body) {
      numbers[&op] = unsigned(ops.size());
      ops.push_back(&op);
    }
    users.resize(ops.size());
    for (unsigned i = 0; i < ops.size(); ++i) {
      leader.push_back(i);
      members.push_back({i});
      for (Operation *user : ops[i]->getUsers())
        users[i].push_back(numbers.lookup(body.findAncestorOpInBlock(*user)));
    }
    seen.assign(ops.size(), 0);
    llvm::DenseSet<unsigned> isCandidate;
    for (graph::NodeOp node : candidates)
      isCandidate.insert(numbers.lookup(node));
    for (bool grew = true; grew;) {
      grew = false;
      for (unsigned i = 0; i < ops.size(); ++i)
        for (unsigned user : users[i])
          if (isCandidate.contains(i) && isCandidate.contains(user) && leader[i] != leader[user])
            grew |= tryToMerge(leader[i], leader[user]);
    }
    for (graph::NodeOp node : candidates)
      parts[leader[numbers.lookup(node)]].push_back(node);
  }

  /// The nodes of each part, in the order of the block.
  SmallVector<SmallVector<graph::NodeOp>> take() {
    return llvm::map_to_vector(parts, [](auto &entry) { return entry.second; });
  }

private:
  /// Unless a value that leaves one of them comes back through others.
  bool tryToMerge(unsigned a, unsigned b) {
    ++mark;
    SmallVector<unsigned> pending{a, b};
    bool isFirst = true;
    for (size_t i = 0; i < pending.size(); isFirst = i + 1 < 2, ++i)
      for (unsigned member : members[pending[i]])
        for (unsigned user : users[member]) {
          const unsigned next = leader[user];
          if (next == a || next == b) {
            if (!isFirst)
              return false;
            continue;
          }
          if (std::exchange(seen[next], mark) != mark)
            pending.push_back(next);
        }
    for (unsigned member : members[b])
      leader[member] = a;
    llvm::append_range(members[a], std::exchange(members[b], {}));
    return true;
  }

  SmallVector<Operation *> ops;
  SmallVector<SmallVector<unsigned>> users;
  SmallVector<unsigned> leader;               ///< the number of the op that stands for its part
  SmallVector<SmallVector<unsigned>> members; ///< of a leader
  SmallVector<unsigned> seen;
  unsigned mark = 0;
  llvm::MapVector<unsigned, SmallVector<graph::NodeOp>> parts;
};

struct Part {
  SmallVector<graph::NodeOp> nodes;
  llvm::SetVector<Value> inputs, outputs;
  SmallVector<Type> inputTypes, outputTypes;
  double flops = 0, inputBytes = 0, outputBytes = 0;
  bool isNamed = false; ///< of a node by its whole name
  std::string foreign;  ///< a node that tc has no code for
};

Part makePart(Block &body, ArrayRef<graph::NodeOp> nodes) {
  Part part;
  part.nodes.assign(nodes.begin(), nodes.end());
  const llvm::DenseSet<Operation *> inside(nodes.begin(), nodes.end());
  for (graph::NodeOp node : nodes) {
    for (Value input : node.getInputs())
      if (!isConstant(input.getDefiningOp()) && !inside.contains(input.getDefiningOp()))
        part.inputs.insert(input);
    for (Value output : node.getOutputs())
      if (llvm::any_of(output.getUsers(),
                       [&](Operation *user) { return !inside.contains(body.findAncestorOpInBlock(*user)); }))
        part.outputs.insert(output);
  }
  return part;
}

std::string describeNodes(ArrayRef<graph::NodeOp> nodes) {
  std::string first = graph::NodeOp(nodes.front()).getNodeName();
  return nodes.size() == 1 ? first : first + ".." + graph::NodeOp(nodes.back()).getNodeName();
}

/// Puts the part's function behind @main, and a node that calls it before the part's first one, instead of its nodes.
std::string replacePart(graph::FuncOp main, const Part &planned, unsigned number, int64_t &modelBytes) {
  auto module = main->getParentOfType<ModuleOp>();
  MLIRContext *context = main.getContext();
  Builder b(context);
  const std::string what = describeNodes(planned.nodes);
  const Location loc = planned.nodes.size() == 1 ? graph::NodeOp(planned.nodes.front()).getLoc()
                                                 : Location(NameLoc::get(b.getStringAttr(what), main.getLoc()));
  // Other parts that it reads may have been replaced since; the order is the same.
  const Part part = makePart(main.getBody().front(), planned.nodes);
  ArrayRef<Type> inputs = planned.inputTypes, outputs = planned.outputTypes;
  std::string name = (graph::kOnnxRuntime + "_" + Twine(number)).str();
  while (module.lookupSymbol(name))
    name += "_";
  OpBuilder behind = OpBuilder::atBlockEnd(module.getBody());
  auto function = graph::FuncOp::create(behind, loc, name, b.getFunctionType(inputs, outputs));
  function.setOpsetsAttr(main.getOpsets());
  auto named = [&](StringRef letter, size_t count) {
    SmallVector<Attribute> all;
    for (size_t i = 0; i < count; ++i)
      all.push_back(b.getDictionaryAttr(b.getNamedAttr(graph::kNameAttr, b.getStringAttr(letter + Twine(i)))));
    return b.getArrayAttr(all);
  };
  function.setArgAttrsAttr(named("x", inputs.size()));
  function.setResAttrsAttr(named("y", outputs.size()));
  Block &block = function.getBody().emplaceBlock();
  IRMapping mapping;
  for (auto [input, type] : llvm::zip_equal(part.inputs, inputs))
    mapping.map(input, block.addArgument(type, loc));
  OpBuilder inside = OpBuilder::atBlockEnd(&block);
  for (graph::NodeOp node : part.nodes) {
    for (Value input : node.getInputs())
      if (Operation *maker = input.getDefiningOp(); isConstant(maker) && !mapping.contains(input))
        inside.clone(*maker, mapping);
    inside.clone(*node, mapping);
  }
  for (auto [output, type] : llvm::zip_equal(part.outputs, outputs))
    mapping.lookup(output).setType(type);
  graph::YieldOp::create(inside, loc, llvm::map_to_vector(part.outputs, [&](Value v) { return mapping.lookup(v); }));

  OwningOpRef<ModuleOp> own = ModuleOp::create(loc);
  const auto version = module->getAttrOfType<IntegerAttr>(graph::kIrVersionAttr);
  if (version)
    own.get()->setAttr(graph::kIrVersionAttr, b.getI64IntegerAttr(std::max(version.getInt(), kLeastIrVersion)));
  own->push_back(function->clone());
  llvm::Expected<std::string> bytes = exportOnnxBytes(*own);
  if (!bytes)
    return "--backend-for: node \"" + what +
           "\": the part cannot be written as ONNX: " + llvm::toString(bytes.takeError()) +
           "; leave some of its nodes out of the pattern";
  modelBytes = int64_t(bytes->size());
  SymbolTable::setSymbolVisibility(function, SymbolTable::Visibility::Private);
  auto data = base::makeData(RankedTensorType::get({modelBytes}, IntegerType::get(context, 8, IntegerType::Unsigned)),
                             std::vector<char>(bytes->begin(), bytes->end()));

  OpBuilder before(part.nodes.front());
  const auto declared = llvm::map_to_vector(part.outputs, [](Value output) { return output.getType(); });
  auto call = graph::NodeOp::create(before, loc, graph::kOwnDomain, graph::kOnnxRuntime, 1, declared,
                                    part.inputs.getArrayRef(), b.getNamedAttr(graph::kBackendModel, data));
  call.setCalleeAttr(FlatSymbolRefAttr::get(function.getSymNameAttr()));
  for (auto [output, result] : llvm::zip_equal(part.outputs, call.getOutputs()))
    Value(output).replaceAllUsesWith(result);
  for (graph::NodeOp node : llvm::reverse(part.nodes))
    node.erase();
  return "";
}

//===--- which
//-----------------------------------------------------------------------------------------------------===//

/// Why a node stays with tc; empty: it need not.
std::string findObstacle(graph::NodeOp node, graph::FuncOp main, Costs &costs) {
  if (node->getParentOp() != main)
    return "it stands inside of a branch or loop";
  if (!node.getGraphs().empty())
    return "it holds a graph of its own";
  if (node.getCallee())
    return "it calls a function that the model brings along";
  if (node->hasAttr(graph::kRefusedAttr) || node->hasAttr(graph::kUnknownAttr))
    return "it is none that an ONNX file can hold";
  SmallVector<Value> values(node.getInputs());
  llvm::append_range(values, node.getOutputs());
  for (Value value : values) {
    if (isa<NoneType>(value.getType()) || (value.getDefiningOp() == node && value.use_empty()))
      continue;
    const Type type = isConstant(value.getDefiningOp()) ? value.getType() : costs.getType(value);
    if (isDense(type))
      continue;
    if (isa<base::UnknownType>(type))
      return "the type of one of its values is not known; export the model with shapes";
    auto tensor = dyn_cast<TensorType>(type);
    if (!tensor || base::isWord(tensor.getElementType()))
      return "one of its values is no tensor of numbers; strings, sequences, optionals and maps stay with tc";
    std::string text;
    llvm::raw_string_ostream(text) << tensor.getElementType();
    return "one of its values is of " + text +
           "; bools, integers of 8 bits and more, and floats of 16 bits and more are handed over";
  }
  return "";
}

/// "1.2M".
std::string shortCount(double count) {
  const char *units = "kMGT";
  if (count < 1000)
    return llvm::formatv("{0:f0}", count);
  for (count /= 1000; count >= 999.5 && units[1]; ++units)
    count /= 1000;
  return llvm::formatv("{0:f1} {1}", count, *units).str();
}

/// Why the part goes, or stays; the second says which.
std::pair<std::string, bool> judge(const Part &part) {
  if (part.isNamed)
    return {"--backend-for names a node of it", true};
  if (!part.foreign.empty())
    return {"tc has no code for \"" + part.foreign + "\"", true};
  const double bytes = part.inputBytes + part.outputBytes, worth = bytes * machine::kCpuFlopsPerByte;
  const std::string figures = "it computes " + shortCount(part.flops) + " flops, and handing over " +
                              describeSize(uint64_t(bytes)) + " takes the time of " + shortCount(worth);
  return {figures, part.flops >= worth};
}

} // namespace

std::string tc::driver::cutBackendParts(ModuleOp module, ArrayRef<std::string> backendFor,
                                        const GraphToPrimOptions &options, BackendParts &result) {
  if (backendFor.empty())
    return "";
  graph::FuncOp main = findMain(module);
  if (!main)
    return "--backend-for needs a model or a module of phase import";
  const auto patternTexts =
      llvm::map_to_vector(backendFor, [](StringRef text) { return text.rsplit('=').first.str(); });
  if (std::string sentence = findUnusedPattern(module, "--backend-for", patternTexts); !sentence.empty())
    return sentence;
  const NodePatterns patterns(patternTexts);
  Costs costs(main, options);
  SmallVector<graph::NodeOp> candidates;
  llvm::DenseSet<Operation *> named;
  std::string wrong;
  auto addStaying = [&](graph::NodeOp node, const std::string &reason) {
    result.all.push_back(llvm::json::Object{{"backend", graph::kOnnxRuntime},
                                            {"nodes", llvm::json::Array{llvm::json::fixUTF8(node.getNodeName())}},
                                            {"taken", false},
                                            {"reason", llvm::json::fixUTF8(reason)}});
  };
  main.walk<WalkOrder::PreOrder>([&](graph::NodeOp node) {
    const std::string name = node.getNodeName();
    bool isWanted = false, isNamed = false;
    for (const std::unique_ptr<NodePattern> &pattern : patterns.all()) {
      isWanted |= pattern->matches(name);
      isNamed |= pattern->isExact(name);
    }
    const StringRef domain = node.getDomain();
    if (!isWanted || isConstant(node) || domain == graph::kOwnDomain || !wrong.empty())
      return;
    if (domain == "aten" || domain == "prim" || domain == "higher_order") {
      wrong =
          "--backend-for: node \"" + name +
          "\" is of PyTorch, and ONNX Runtime takes nodes of ONNX; export the model with torch.onnx.export, or leave "
          "the option out";
      return;
    }
    const std::string obstacle = findObstacle(node, main, costs);
    if (obstacle.empty()) {
      candidates.push_back(node);
      if (isNamed)
        named.insert(node);
    } else if (isNamed) {
      wrong = "--backend-for: node \"" + name + "\" cannot be handed to ONNX Runtime: " + obstacle;
    } else {
      addStaying(node, obstacle);
    }
  });
  if (!wrong.empty())
    return wrong;

  Block &body = main.getBody().front();
  SmallVector<Value> values;
  for (graph::NodeOp node : candidates)
    llvm::append_range(values, node.getOutputs());
  const llvm::StringMap<double> flops = costs.getFlops(values);
  // All is asked before the graph changes.
  std::vector<Part> planned;
  for (ArrayRef<graph::NodeOp> nodes : Partition(body, candidates).take()) {
    Part part = makePart(body, nodes);
    for (graph::NodeOp node : nodes) {
      part.flops += flops.lookup(node.getNodeName());
      part.isNamed |= named.contains(node);
      if (part.foreign.empty() && !costs.hasCode(node))
        part.foreign = node.getNodeName();
    }
    for (Value value : part.inputs) {
      part.inputTypes.push_back(costs.getType(value));
      part.inputBytes += costs.getBytes(value);
    }
    for (Value value : part.outputs) {
      part.outputTypes.push_back(costs.getType(value));
      part.outputBytes += costs.getBytes(value);
    }
    planned.push_back(std::move(part));
  }
  for (const Part &part : planned) {
    auto [reason, goes] = judge(part);
    llvm::json::Array names;
    for (graph::NodeOp node : part.nodes)
      names.push_back(llvm::json::fixUTF8(node.getNodeName()));
    llvm::json::Object entry{{"backend", graph::kOnnxRuntime},
                             {"nodes", std::move(names)},
                             {"inputs", int64_t(part.inputs.size())},
                             {"outputs", int64_t(part.outputs.size())},
                             {"input_bytes", int64_t(part.inputBytes)},
                             {"output_bytes", int64_t(part.outputBytes)},
                             {"flops", int64_t(part.flops)},
                             {"taken", goes},
                             {"reason", llvm::json::fixUTF8(reason)}};
    if (goes) {
      int64_t modelBytes = 0;
      if (std::string sentence = replacePart(main, part, unsigned(result.taken++), modelBytes); !sentence.empty())
        return sentence;
      entry["model_bytes"] = modelBytes;
    }
    result.all.push_back(std::move(entry));
  }
  // Nodes stand where the first one of their part did, before some of what they read.
  sortTopologically(&body);
  for (auto constant : llvm::make_early_inc_range(body.getOps<graph::ConstantOp>()))
    if (constant->use_empty())
      constant.erase();
  return "";
}
