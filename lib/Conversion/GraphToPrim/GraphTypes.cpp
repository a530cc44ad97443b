//===- GraphTypes.cpp - types of values of a graph that is still being made ---------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Conversion/GraphToPrim/GraphTypes.h"

#include "Converter.h"

#include "tc/Dialect/Graph/Torch/Schemas.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;

/// The arguments of a graph of which nodes are converted one by one.
void Converter::addArguments(graph::FuncOp source, Block &block) {
  builder.setInsertionPointToEnd(&block);
  argumentSizes.readOptions(source);
  for (bool withShape : {true, false})
    for (unsigned i = 0; i < source.getNumArguments(); ++i) {
      if (withShape != (options.shapes.count(source.getArgName(i).str()) > 0))
        continue;
      BlockArgument argument = source.getBody().getArgument(i);
      FailureOr<RankedTensorType> type = argumentType(source, i);
      if (succeeded(type))
        values[argument] = block.addArgument(*type, argument.getLoc());
    }
  inputSymbols = symbols.size();
}

/// A node whose results are not used yet, but will be, and that may write tensors: the pass that makes values of writes
/// has not run. What is written keeps its type.
static bool hasRunning(graph::NodeOp node) {
  auto names = dyn_cast_or_null<ArrayAttr>(node.getNodeAttr("arg_names"));
  return names && llvm::is_contained(names.getAsValueRange<StringAttr>(), "running_mean");
}

void Converter::convertEarly(graph::NodeOp node) {
  if (const torch::Schema *schema = torch::findSchema(node.getDomain(), node.getOpType());
      schema && schema->writes() && schema->results.size() == node->getNumResults()) {
    auto names = dyn_cast_or_null<ArrayAttr>(node.getNodeAttr("arg_names"));
    SmallVector<Value> written;
    for (const torch::SchemaArgument &result : schema->results)
      for (const torch::SchemaArgument &argument : schema->arguments)
        if (argument.isWritten() && result.type.findAlias() &&
            result.type.findAlias()->aliasSet == argument.type.findAlias()->aliasSet && names)
          for (auto [i, name] : llvm::enumerate(names.getAsRange<StringAttr>()))
            if (name.getValue() == argument.name)
              written.push_back(values.lookup(node.getInputs()[i]));
    if (written.size() == node->getNumResults()) {
      for (auto [result, value] : llvm::zip_equal(node.getOutputs(), written))
        values[result] = value;
      return;
    }
  }
  OpBuilder b(node);
  b.setInsertionPointAfter(node);
  auto use = graph::NodeOp::create(b, node.getLoc(), "tc", "use", 1, TypeRange(), node.getOutputs());
  // What norms write in training is for functionalisation; what they give has the type that it has outside of it.
  const DictionaryAttr given = node.getAttrs();
  NamedAttrList attributes(given);
  if (StringRef(node.getOpType()).ends_with("_norm.default"))
    for (StringRef mode : {"training", "use_input_stats"})
      if (auto flag = dyn_cast_or_null<BoolAttr>(given.get(mode)); flag && hasRunning(node))
        attributes.set(mode, builder.getBoolAttr(false));
  node.setAttrsAttr(attributes.getDictionary(node.getContext()));
  isEarly = true;
  const size_t known = hostNodes ? hostNodes->size() : 0;
  convertNode(node);
  if (hostNodes && hostNodes->size() > known)
    convertNode(node); // by the function that computes it
  isEarly = false;
  node.setAttrsAttr(given);
  use.erase();
}

Value Converter::convertValue(Value graphValue) {
  SmallVector<Value> stack{graphValue};
  llvm::DenseSet<Operation *> opened;
  while (!stack.empty()) {
    Operation *op = stack.back().getDefiningOp();
    if (values.count(stack.back())) {
      stack.pop_back();
      continue;
    }
    if (!op)
      return {};
    if (opened.insert(op).second) {
      op->walk([&](Operation *inner) {
        for (Value operand : inner->getOperands())
          if (!values.count(operand) && (!operand.getDefiningOp() || !op->isProperAncestor(operand.getDefiningOp())))
            stack.push_back(operand);
      });
      continue;
    }
    if (auto node = dyn_cast<graph::NodeOp>(op))
      convertEarly(node);
    else if (auto constant = dyn_cast<graph::ConstantOp>(op))
      convertConstant(constant);
    else if (auto none = dyn_cast<graph::NoneOp>(op))
      values[none.getResult()] = Value();
    if (!values.count(stack.back()))
      return {};
  }
  return values.lookup(graphValue);
}

void Converter::replaceByArgument(Value graphValue, Block &block) {
  Value &known = values[graphValue];
  if (known)
    known = block.addArgument(known.getType(), known.getLoc());
}

struct GraphTypes::State {
  State(graph::FuncOp source, const GraphToPrimOptions &given)
      : options(given),
        function(func::FuncOp::create(source.getLoc(), "types", FunctionType::get(source.getContext(), {}, {}))),
        converter(source->getParentOfType<ModuleOp>(), options, report) {
    function->getBody().emplaceBlock();
    converter.setHostNodes(hostNodes);
    ScopedDiagnosticHandler ignore(source.getContext(), [](Diagnostic &) { return success(); });
    converter.addArguments(source, function->getBody().front());
  }

  GraphToPrimOptions options;
  GraphToPrimReport report;
  llvm::DenseSet<Operation *> hostNodes;
  OwningOpRef<func::FuncOp> function; // before the converter, whose regions use its values
  Converter converter;
};

GraphTypes::GraphTypes(graph::FuncOp function, const GraphToPrimOptions &options) {
  // What a pass would name as its dependent dialects: a front end has loaded those of its own IR alone.
  function.getContext()->loadDialect<func::FuncDialect, base::TCDialect, prim::PrimDialect>();
  state = std::make_unique<State>(function, options);
}
GraphTypes::~GraphTypes() = default;

llvm::Expected<RankedTensorType> GraphTypes::getType(Value value) {
  std::string said;
  ScopedDiagnosticHandler keep(value.getContext(), [&](Diagnostic &diagnostic) {
    if (said.empty())
      said = diagnostic.str();
    return success();
  });
  state->converter.forgetReport();
  Value converted = state->converter.convertValue(value);
  if (auto type = dyn_cast_or_null<RankedTensorType>(converted ? converted.getType() : Type()))
    return RankedTensorType::get(type.getShape(), type.getElementType());
  if (said.empty() && !state->report.unsupported.empty()) {
    const UnsupportedNode &node = state->report.unsupported.front();
    said = "node \"" + node.name + "\": " + node.domain + "." + node.type + " " + node.reason;
  }
  return llvm::createStringError(said.empty() ? "branches that data decide give a value of two ranks, which the code "
                                                "asks for; give both one rank, or export the model with torch.export"
                                              : said);
}

Value GraphTypes::getConverted(Value value) {
  ScopedDiagnosticHandler ignore(value.getContext(), [](Diagnostic &) { return success(); });
  state->converter.forgetReport();
  return state->converter.convertValue(value);
}

void GraphTypes::forgetNumbers(Value value) {
  llvm::Expected<RankedTensorType> type = getType(value);
  if (!type) {
    llvm::consumeError(type.takeError());
    return;
  }
  if (isa<IntegerType>(type->getElementType())) // floats are no sizes
    state->converter.replaceByArgument(value, state->function->getBody().front());
}

std::optional<int64_t> GraphTypes::getInteger(Value value) {
  llvm::Expected<RankedTensorType> type = getType(value);
  if (!type) {
    llvm::consumeError(type.takeError());
    return std::nullopt;
  }
  IntValues &ints = state->converter.getInts();
  if (isa<FloatType>(type->getElementType()))
    return ints.getTruncated(state->converter.convertValue(value));
  std::optional<Sizes> known = ints.get(state->converter.convertValue(value));
  if (!known || known->size() != 1)
    return std::nullopt;
  return getConstantSize(known->front());
}
