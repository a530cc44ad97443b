//===- ExportOnnx.cpp - a graph to an ONNX file -------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ExportGraph.h"
#include "OnnxLibrary.h"
#include "tc/Frontend/ONNX.h"
#include "tc/Support/OutputFile.h"

using namespace mlir;
using namespace tc;
using namespace tc::onnxfe;
using llvm::Twine;

/// Of files that do not say theirs: functions have overloads, and tensors all types, from this one on.
static constexpr int64_t kIrVersion = 10;

namespace {

class ModelExporter {
public:
  explicit ModelExporter(ModuleOp module) : module(module) {}
  llvm::Expected<onnx::ModelProto> run();

private:
  using Opsets = google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>;
  llvm::Error exportOpsets(graph::FuncOp function, Opsets &opsets);
  llvm::Error exportMain(graph::FuncOp function);
  llvm::Error exportFunction(graph::FuncOp function);

  ModuleOp module;
  onnx::ModelProto model;
};

} // namespace

/// Nodes of functions that were inlined may be of other domains than the file has said.
llvm::Error ModelExporter::exportOpsets(graph::FuncOp function, Opsets &opsets) {
  llvm::MapVector<StringRef, int64_t> versions;
  std::string conflict;
  function.walk([&](graph::NodeOp node) {
    auto [known, isNew] = versions.insert({node.getDomain(), int64_t(node.getOpset())});
    if (!isNew && known->second != int64_t(node.getOpset()))
      conflict = node.getDomain().str();
  });
  if (!conflict.empty())
    return llvm::createStringError("nodes of the domain " + conflict + " are of several opsets");
  for (NamedAttribute opset : function.getOpsets())
    if (auto version = dyn_cast<IntegerAttr>(opset.getValue()))
      versions.insert({opset.getName(), version.getInt()});
  for (auto [domain, version] : versions) {
    onnx::OperatorSetIdProto *entry = opsets.Add();
    entry->set_domain(toOnnxDomain(domain));
    entry->set_version(version);
  }
  return llvm::Error::success();
}

static llvm::Error failed(graph::FuncOp function) {
  return llvm::createStringError("@" + function.getSymName() + " holds a constant or an attribute that ONNX has not");
}

llvm::Error ModelExporter::exportMain(graph::FuncOp function) {
  onnx::GraphProto &graph = *model.mutable_graph();
  auto name = module->getAttrOfType<StringAttr>(graph::kGraphNameAttr);
  graph.set_name(name ? name.getValue().str() : "main");
  GraphExporter exporter(nullptr);
  Block &body = function.getBody().front();
  for (BlockArgument argument : body.getArguments()) {
    const unsigned number = argument.getArgNumber();
    exporter.names.insert({argument, function.getArgName(number).str()});
    exporter.reserved.insert(function.getArgName(number));
    onnx::ValueInfoProto *input = graph.add_input();
    input->set_name(function.getArgName(number).str());
    exporter.exportType(argument.getType(), *input->mutable_type(), function.getArgDims(number));
    if (TypedAttr value = function.getArgDefault(number)) {
      onnx::TensorProto *tensor = graph.add_initializer();
      tensor->set_name(input->name());
      if (mlir::failed(exporter.exportTensor(value, *tensor)))
        return failed(function);
    }
  }
  // An input that is an output, or a value that is two of them, goes through a node.
  SmallVector<std::pair<Value, std::string>> copies;
  for (auto [i, value] : llvm::enumerate(body.getTerminator()->getOperands())) {
    const std::string output = function.getResultName(i).str();
    exporter.reserved.insert(output);
    if (!exporter.names.insert({value, output}).second)
      copies.emplace_back(value, output);
    onnx::ValueInfoProto *info = graph.add_output();
    info->set_name(output);
    exporter.exportType(value.getType(), *info->mutable_type(), function.getResultDims(i));
  }
  if (mlir::failed(exporter.exportBlock(body, *graph.mutable_node(), &graph)))
    return failed(function);
  for (auto &[value, output] : copies) {
    onnx::NodeProto *node = graph.add_node();
    node->set_op_type("Identity");
    node->add_input(exporter.getName(value));
    node->add_output(output);
  }
  if (llvm::Error error = exportOpsets(function, *model.mutable_opset_import()))
    return error;
  const bool hasOwn = llvm::any_of(model.opset_import(), [](auto &entry) { return entry.domain().empty(); });
  if (!hasOwn) {
    constexpr int64_t kAnyOpset = 17;
    onnx::OperatorSetIdProto *entry = model.add_opset_import();
    entry->set_version(kAnyOpset);
  }
  return llvm::Error::success();
}

llvm::Error ModelExporter::exportFunction(graph::FuncOp function) {
  onnx::FunctionProto &proto = *model.add_functions();
  proto.set_name(function.getOpType().value_or(function.getSymName()).str());
  proto.set_domain(toOnnxDomain(function.getDomain().value_or("")));
  if (function.getOverload())
    proto.set_overload(function.getOverload()->str());
  GraphExporter exporter(nullptr);
  for (BlockArgument argument : function.getArguments())
    proto.add_input(exporter.getName(argument));
  const DictionaryAttr defaults = function.getAttrDefaultsAttr();
  if (ArrayAttr parameters = function.getAttrParamsAttr())
    for (auto parameter : parameters.getAsRange<StringAttr>())
      if (!defaults || !defaults.get(parameter))
        proto.add_attribute(parameter.getValue().str());
  for (NamedAttribute attr : defaults ? defaults.getValue() : ArrayRef<NamedAttribute>())
    if (mlir::failed(exporter.exportAttribute(attr.getName(), attr.getValue(), *proto.add_attribute_proto())))
      return failed(function);
  if (mlir::failed(exporter.exportBlock(function.getBody().front(), *proto.mutable_node(), nullptr)))
    return failed(function);
  for (Value value : function.getBody().front().getTerminator()->getOperands())
    proto.add_output(exporter.getName(value));
  return exportOpsets(function, *proto.mutable_opset_import());
}

llvm::Expected<onnx::ModelProto> ModelExporter::run() {
  auto version = module->getAttrOfType<IntegerAttr>(graph::kIrVersionAttr);
  model.set_ir_version(version ? version.getInt() : kIrVersion);
  for (graph::FuncOp function : module.getOps<graph::FuncOp>())
    if (llvm::Error error = function.isPublic() ? exportMain(function) : exportFunction(function))
      return std::move(error);
  return std::move(model);
}

llvm::Expected<std::string> tc::exportOnnxBytes(ModuleOp module) {
  llvm::Expected<onnx::ModelProto> model = ModelExporter(module).run();
  if (!model)
    return model.takeError();
  std::string bytes;
  // Protocol Buffers' own limit.
  if (model->ByteSizeLong() > size_t(INT32_MAX) || !model->SerializeToString(&bytes))
    return llvm::createStringError("it is larger than 2 GB");
  return bytes;
}

llvm::Error tc::exportOnnx(ModuleOp module, StringRef path) {
  llvm::Expected<std::string> bytes = exportOnnxBytes(module);
  if (!bytes)
    return llvm::createStringError(
        path + ": error: the graph cannot be written as ONNX: " + llvm::toString(bytes.takeError()));
  return writeOutputFile(path, [&](llvm::raw_ostream &stream) { stream << *bytes; });
}
