//===- ExpandFunction.cpp - a graph.node to the function body of its ONNX schema ----------------------------------===//
//
// The node goes back to a NodeProto (schemas of bodies that depend on the node want one), its tensors by reference, and
// the body's nodes are imported in its place.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ImportGraph.h"
#include "OnnxFile.h"
#include "OnnxLibrary.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include <limits>

using namespace mlir;
using llvm::Error;
using llvm::Twine;

namespace tc {

using namespace onnxfe;

namespace {

// Ops and attributes to protos. Values get names by first use; `names` has them for the importer.
class Exporter {
public:
  explicit Exporter(std::vector<Attribute> &tensors) : tensors(tensors) {}

  llvm::MapVector<Value, std::string> names;

  std::string getName(Value value) {
    if (!value || isa<NoneType>(value.getType()))
      return "";
    auto [it, isNew] = names.insert({value, ""});
    if (isNew)
      it->second = "v" + std::to_string(names.size());
    return it->second;
  }

  // Leaves the proto unset for unknown types.
  void exportType(Type type, onnx::TypeProto &proto) {
    auto fill = [&](TensorType tensor, auto *out) {
      out->set_elem_type(getDataType(tensor.getElementType()));
      if (!tensor.hasRank())
        return;
      out->mutable_shape();
      for (int64_t dim : tensor.getShape()) {
        auto *added = out->mutable_shape()->add_dim();
        if (!ShapedType::isDynamic(dim))
          added->set_dim_value(dim);
      }
    };
    if (auto tensor = dyn_cast<TensorType>(type))
      fill(tensor, proto.mutable_tensor_type());
    else if (auto sparse = dyn_cast<base::SparseType>(type); sparse && isa<TensorType>(sparse.getDense()))
      fill(cast<TensorType>(sparse.getDense()), proto.mutable_sparse_tensor_type());
    else if (auto seq = dyn_cast<base::SeqType>(type))
      exportType(seq.getElementType(), *proto.mutable_sequence_type()->mutable_elem_type());
    else if (auto opt = dyn_cast<base::OptType>(type))
      exportType(opt.getElementType(), *proto.mutable_optional_type()->mutable_elem_type());
  }

  LogicalResult exportTensor(Attribute attr, onnx::TensorProto &proto) {
    auto data = dyn_cast<base::DataAttr>(attr);
    if (!data)
      return failure();
    proto.set_data_type(getDataType(data.getType().getElementType()));
    for (int64_t dim : data.getType().getShape())
      proto.add_dims(dim);
    FailureOr<ArrayRef<char>> bytes = base::getBytes(data);
    // Small tensors by value: builders of bodies read them.
    if (succeeded(bytes) && bytes->size() <= kMaxSkeletonTensor &&
        !isa<base::StringType>(data.getType().getElementType()) && !data.getType().getElementType().isFloat(6)) {
      proto.set_raw_data(bytes->data(), bytes->size());
      return success();
    }
    tensors.push_back(attr);
    proto.set_data_location(onnx::TensorProto::EXTERNAL);
    auto *entry = proto.add_external_data();
    entry->set_key("location");
    entry->set_value((kAttrLocation + Twine(tensors.size() - 1)).str());
    return success();
  }

  LogicalResult exportAttribute(StringRef name, Attribute attr, onnx::AttributeProto &proto) {
    using A = onnx::AttributeProto;
    proto.set_name(name.str());
    if (auto value = dyn_cast<IntegerAttr>(attr); value && value.getType().isSignlessInteger(64)) {
      proto.set_type(A::INT);
      proto.set_i(value.getInt());
    } else if (auto value = dyn_cast<FloatAttr>(attr)) {
      proto.set_type(A::FLOAT);
      proto.set_f(static_cast<float>(value.getValueAsDouble()));
    } else if (auto value = dyn_cast<StringAttr>(attr)) {
      proto.set_type(A::STRING);
      proto.set_s(value.getValue().str());
    } else if (auto value = dyn_cast<DenseI64ArrayAttr>(attr)) {
      proto.set_type(A::INTS);
      for (int64_t item : value.asArrayRef())
        proto.add_ints(item);
    } else if (auto value = dyn_cast<DenseF32ArrayAttr>(attr)) {
      proto.set_type(A::FLOATS);
      for (float item : value.asArrayRef())
        proto.add_floats(item);
    } else if (auto value = dyn_cast<TypeAttr>(attr)) {
      proto.set_type(A::TYPE_PROTO);
      exportType(value.getValue(), *proto.mutable_tp());
    } else if (auto value = dyn_cast<graph::RefAttr>(attr)) {
      A::AttributeType kind;
      if (!onnx::AttributeProto_AttributeType_Parse(value.getKind().str(), &kind))
        return failure();
      proto.set_type(kind);
      proto.set_ref_attr_name(value.getParam().str());
    } else if (auto value = dyn_cast<ArrayAttr>(attr)) {
      bool strings = llvm::all_of(value, [](Attribute item) { return isa<StringAttr>(item); });
      proto.set_type(strings ? A::STRINGS : A::TENSORS);
      for (Attribute item : value) {
        if (strings)
          proto.add_strings(cast<StringAttr>(item).getValue().str());
        else if (failed(exportTensor(item, *proto.add_tensors())))
          return failure();
      }
    } else {
      proto.set_type(A::TENSOR);
      return exportTensor(attr, *proto.mutable_t());
    }
    return success();
  }

  LogicalResult exportGraph(Region &region, onnx::GraphProto &graph) {
    graph.set_name("subgraph");
    auto addInfo = [&](Value value, onnx::ValueInfoProto *info) {
      info->set_name(getName(value));
      exportType(value.getType(), *info->mutable_type());
    };
    for (BlockArgument argument : region.getArguments())
      addInfo(argument, graph.add_input());
    for (Operation &op : region.front()) {
      if (auto node = dyn_cast<graph::NodeOp>(op)) {
        if (failed(exportNode(node, *graph.add_node())))
          return failure();
        for (Value result : node.getOutputs())
          if (!isa<NoneType, base::UnknownType>(result.getType()))
            addInfo(result, graph.add_value_info());
      } else if (auto constant = dyn_cast<graph::ConstantOp>(op)) {
        onnx::TensorProto *tensor = graph.add_initializer();
        if (failed(exportTensor(constant.getValue(), *tensor)))
          return failure();
        tensor->set_name(getName(constant));
      } else if (auto yield = dyn_cast<graph::YieldOp>(op)) {
        for (Value value : yield.getValues())
          addInfo(value, graph.add_output());
      } else if (!isa<graph::NoneOp>(op)) {
        return failure();
      }
    }
    return success();
  }

  LogicalResult exportNode(graph::NodeOp node, onnx::NodeProto &proto) {
    proto.set_name(node.getNodeName());
    proto.set_op_type(node.getOpType().str());
    proto.set_domain(toOnnxDomain(node.getDomain()));
    if (node.getOverload())
      proto.set_overload(node.getOverload()->str());
    for (Value input : node.getInputs())
      proto.add_input(getName(input));
    for (Value output : node.getOutputs())
      proto.add_output(getName(output));
    for (NamedAttribute attr : node.getAttrs())
      if (failed(exportAttribute(attr.getName(), attr.getValue(), *proto.add_attribute())))
        return failure();
    llvm::StringMap<onnx::AttributeProto *> lists;
    for (auto [nameAttr, region] : llvm::zip(node.getRegionNames(), node.getGraphs())) {
      StringRef name = cast<StringAttr>(nameAttr).getValue();
      size_t dot = name.rfind('.');
      unsigned index = 0;
      bool isList = dot != StringRef::npos && !name.drop_front(dot + 1).getAsInteger(10, index);
      onnx::AttributeProto *&attribute = lists[isList ? name.take_front(dot) : name];
      if (!attribute) {
        attribute = proto.add_attribute();
        attribute->set_name((isList ? name.take_front(dot) : name).str());
        attribute->set_type(isList ? onnx::AttributeProto::GRAPHS : onnx::AttributeProto::GRAPH);
      }
      if (failed(exportGraph(region, isList ? *attribute->add_graphs() : *attribute->mutable_g())))
        return failure();
    }
    return success();
  }

private:
  std::vector<Attribute> &tensors;
};

} // namespace

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
  Exporter exporter(importer.tensorAttrs);
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
