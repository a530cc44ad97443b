//===- ExpandFunction.cpp - a graph.node to the function body of its ONNX schema ----------------------------------===//
//
// The node goes back to a NodeProto (schemas of bodies that depend on the node want one), its tensors by reference, and
// the body's nodes are imported in its place.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ExportGraph.h"
#include "ImportGraph.h"
#include "OnnxLibrary.h"
#include "mlir/IR/PatternMatch.h"
#include <limits>

using namespace mlir;
using llvm::Error;
using llvm::Twine;

namespace tc {

using namespace onnxfe;

static std::optional<OnnxSchema> getFunctionSchema(graph::NodeOp node) {
  if (!node || node.getCallee() || node.getOpset() > std::numeric_limits<int>::max())
    return std::nullopt;
  std::optional<OnnxSchema> schema = getOnnxSchema(node.getDomain(), node.getOpType(), node.getOpset());
  return schema && schema->hasFunctionBody ? schema : std::nullopt;
}

bool hasOnnxFunction(Operation *node) { return getFunctionSchema(dyn_cast<graph::NodeOp>(node)).has_value(); }

LogicalResult expandOnnxFunction(Operation *op, RewriterBase &rewriter) {
  auto node = dyn_cast<graph::NodeOp>(op);
  std::optional<OnnxSchema> schema = getFunctionSchema(node);
  if (!schema)
    return failure();
  int64_t opset = node.getOpset();

  GraphImporter importer(op->getContext());
  importer.path = importer.fileName = "function";
  importer.irVersion = onnx::IR_VERSION;
  importer.substituteParameters = true;
  importer.options.checkNodes = false;
  importer.namePrefix = node.getNodeName();

  onnx::NodeProto proto;
  GraphExporter exporter(&importer.tensorAttrs);
  if (failed(exporter.exportNode(node, proto)))
    return failure();
  std::vector<onnx::TypeProto> inputTypes;
  for (Value input : node.getInputs())
    exporter.exportType(input.getType(), inputTypes.emplace_back());
  std::optional<onnx::FunctionProto> function = getFunctionBody(proto, static_cast<int>(opset), inputTypes);
  if (!function)
    return failure();

  // Attribute parameters: the node's, then the function's own defaults, then the schema's.
  for (const OnnxAttribute &attribute : schema->attributes)
    if (Attribute value =
            getOnnxAttributeDefault(op->getContext(), node.getDomain(), node.getOpType(), opset, attribute.name))
      importer.parameters[attribute.name] = value;
  for (const onnx::AttributeProto &attribute : function->attribute_proto()) {
    GraphImporter::AttrResult value = importer.importAttribute(attribute, "");
    if (value)
      importer.parameters[attribute.name()] = *value;
    else
      llvm::consumeError(value.takeError());
  }
  for (NamedAttribute attr : node.getAttrs())
    importer.parameters[attr.getName()] = attr.getValue();
  for (const onnx::AttributeProto &attribute : proto.attribute())
    if (attribute.type() == onnx::AttributeProto::GRAPH)
      importer.graphParameters[attribute.name()] = &attribute.g();

  if (Error error = importer.setOpsets(function->opset_import())) {
    llvm::consumeError(std::move(error));
    return failure();
  }
  // Bodies that were built for the node's opset may leave their own out.
  importer.opsets.try_emplace(node.getDomain(), opset);

  // Outer values that the node's subgraphs use keep the names that the exporter gave them.
  GraphImporter::Scope &outer = importer.pushScope();
  for (auto &[value, name] : exporter.names)
    if (value.getDefiningOp() != op && !op->isAncestor(value.getParentRegion()->getParentOp()))
      outer.values.try_emplace(name, value);
  GraphImporter::Scope &scope = importer.pushScope();
  importer.declareTypes(scope, function->value_info());
  OpBuilder &builder = importer.builder;
  // The body goes into a block of its own first, so that a body which cannot be imported leaves no trace.
  Region scratch;
  Block *block = builder.createBlock(&scratch);
  Value none;
  for (int i = 0; i < function->input_size(); ++i) {
    Value input = i < static_cast<int>(node.getInputs().size()) ? node.getInputs()[i] : Value();
    if (!input) {
      if (!none)
        none = graph::NoneOp::create(builder, op->getLoc(), builder.getNoneType());
      input = none;
    }
    scope.values[function->input(i)] = input;
  }
  for (int i = 0; i < function->output_size() && i < static_cast<int>(node.getNumResults()); ++i)
    if (node.hasOutput(i))
      scope.types[function->output(i)] = node.getResult(i).getType();

  Error error = importer.importNodes(function->node());
  SmallVector<Value> results;
  for (unsigned i = 0; i < node.getNumResults() && !error; ++i) {
    if (!node.hasOutput(i)) {
      results.push_back(graph::NoneOp::create(builder, op->getLoc(), builder.getNoneType()));
      continue;
    }
    Value value = i < static_cast<unsigned>(function->output_size()) ? importer.lookup(function->output(i)) : Value();
    if (!value)
      error = importer.error("missing output");
    results.push_back(value);
  }
  if (error) {
    llvm::consumeError(std::move(error));
    block->dropAllDefinedValueUses();
    return failure();
  }
  rewriter.inlineBlockBefore(block, op, {});
  rewriter.replaceOp(op, results);
  return success();
}

} // namespace tc
