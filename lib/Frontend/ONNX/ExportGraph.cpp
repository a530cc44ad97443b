//===- ExportGraph.cpp - ops of the graph dialect to ONNX protos --------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ExportGraph.h"

#include "ImportGraph.h"
#include "OnnxFile.h"
#include "OnnxLibrary.h"

using namespace mlir;
using namespace tc;
using namespace tc::onnxfe;
using llvm::Twine;

std::string GraphExporter::getName(Value value) {
  if (!value || isa<NoneType>(value.getType()))
    return "";
  auto [it, isNew] = names.insert({value, ""});
  for (size_t number = names.size(); isNew && it->second.empty(); ++number)
    if (std::string name = "v" + std::to_string(number); reserved.insert(name).second)
      it->second = name;
  return it->second;
}

void GraphExporter::exportType(Type type, onnx::TypeProto &proto, ArrayAttr dims) {
  auto fill = [&](TensorType tensor, auto *out) {
    out->set_elem_type(getDataType(tensor.getElementType()));
    if (!tensor.hasRank())
      return;
    out->mutable_shape();
    for (auto [i, dim] : llvm::enumerate(tensor.getShape())) {
      auto *added = out->mutable_shape()->add_dim();
      if (!ShapedType::isDynamic(dim))
        added->set_dim_value(dim);
      else if (dims && i < dims.size())
        added->set_dim_param(cast<StringAttr>(dims[i]).getValue().str());
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

LogicalResult GraphExporter::exportTensor(Attribute attr, onnx::TensorProto &proto) {
  auto data = dyn_cast<base::DataAttr>(attr);
  if (auto dense = dyn_cast<DenseElementsAttr>(attr)) // of a module that was written by hand
    data = base::fromDense(dense);
  if (!data)
    return failure();
  proto.set_data_type(getDataType(data.getType().getElementType()));
  for (int64_t dim : data.getType().getShape())
    proto.add_dims(dim);
  FailureOr<ArrayRef<char>> bytes = base::getBytes(data);
  const bool isText = isa<base::StringType>(data.getType().getElementType());
  // Small tensors by value: builders of bodies read them.
  if (succeeded(bytes) && (!tensors || bytes->size() <= kMaxSkeletonTensor) && !isText &&
      !data.getType().getElementType().isFloat(6)) {
    proto.set_raw_data(bytes->data(), bytes->size());
    return success();
  }
  if (!tensors) {
    FailureOr<SmallVector<StringRef>> strings = base::getStrings(data);
    if (failed(strings))
      return failure();
    for (StringRef string : *strings)
      proto.add_string_data(string.str());
    return success();
  }
  tensors->push_back(attr);
  proto.set_data_location(onnx::TensorProto::EXTERNAL);
  auto *entry = proto.add_external_data();
  entry->set_key("location");
  entry->set_value((kAttrLocation + Twine(tensors->size() - 1)).str());
  return success();
}

LogicalResult GraphExporter::exportAttribute(StringRef name, Attribute attr, onnx::AttributeProto &proto) {
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

LogicalResult GraphExporter::exportGraph(Region &region, onnx::GraphProto &graph) {
  graph.set_name("subgraph");
  auto addInfo = [&](Value value, onnx::ValueInfoProto *info) {
    info->set_name(getName(value));
    exportType(value.getType(), *info->mutable_type());
  };
  for (BlockArgument argument : region.getArguments())
    addInfo(argument, graph.add_input());
  if (failed(exportBlock(region.front(), *graph.mutable_node(), &graph)))
    return failure();
  for (Value value : region.front().getTerminator()->getOperands())
    addInfo(value, graph.add_output());
  return success();
}

LogicalResult GraphExporter::exportBlock(Block &block, google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes,
                                         onnx::GraphProto *graph) {
  for (Operation &op : block) {
    if (auto node = dyn_cast<graph::NodeOp>(op)) {
      if (failed(exportNode(node, *nodes.Add())))
        return failure();
      for (Value result : node.getOutputs())
        if (graph && !isa<NoneType, base::UnknownType>(result.getType())) {
          onnx::ValueInfoProto *info = graph->add_value_info();
          info->set_name(getName(result));
          exportType(result.getType(), *info->mutable_type());
        }
    } else if (auto constant = dyn_cast<graph::ConstantOp>(op)) {
      onnx::TensorProto *tensor;
      if (graph) {
        tensor = graph->add_initializer();
        tensor->set_name(getName(constant));
      } else {
        onnx::NodeProto *node = nodes.Add();
        node->set_op_type("Constant");
        node->add_output(getName(constant));
        onnx::AttributeProto *value = node->add_attribute();
        value->set_name("value");
        value->set_type(onnx::AttributeProto::TENSOR);
        tensor = value->mutable_t();
      }
      if (failed(exportTensor(constant.getValue(), *tensor)))
        return failure();
    } else if (!isa<graph::NoneOp, graph::YieldOp>(op)) {
      return failure();
    }
  }
  return success();
}

LogicalResult GraphExporter::exportNode(graph::NodeOp node, onnx::NodeProto &proto) {
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
