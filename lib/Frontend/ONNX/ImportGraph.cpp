//===- ImportGraph.cpp - ONNX nodes and graphs to ops of the graph dialect ----------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ImportGraph.h"

#include "OnnxLibrary.h"
#include "tc/Dialect/Graph/IR/Source.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Path.h"
#include <limits>

using namespace mlir;
using llvm::Error;
using llvm::Twine;

namespace tc::onnxfe {

std::string quote(StringRef text) {
  constexpr size_t kMaxLength = 200;
  std::string out = "\"";
  for (char c : text.take_front(kMaxLength)) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += '?';
    } else {
      if (c == '"' || c == '\\')
        out += '\\';
      out += c;
    }
  }
  if (text.size() > kMaxLength)
    out += "...";
  return out + "\"";
}

Error GraphImporter::error(const Twine &what) const {
  return llvm::createStringError(std::make_error_code(std::errc::invalid_argument), path + ": error: " + what);
}
Error GraphImporter::nodeError(StringRef node, const Twine &what) const {
  return error("node " + quote(node) + ": " + what);
}

Value GraphImporter::lookup(StringRef name) const {
  for (const std::unique_ptr<Scope> &scope : llvm::reverse(scopes)) {
    auto it = scope->values.find(name);
    if (it != scope->values.end())
      return it->second;
  }
  return {};
}

Error GraphImporter::define(StringRef name, Value value, StringRef node) {
  if (scopes.back()->values.try_emplace(name, value).second)
    return Error::success();
  std::string what = "the value " + quote(name) + " is defined twice; names of values must be unique in a graph";
  return node.empty() ? error(what) : nodeError(node, what);
}

Location GraphImporter::getLocation(StringRef name, int index) const {
  Location file = FileLineColLoc::get(context, fileName, index + 1, 1);
  return NameLoc::get(StringAttr::get(context, name), file);
}

Error GraphImporter::setOpsets(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto> &imports) {
  opsets.clear();
  for (const onnx::OperatorSetIdProto &import : imports) {
    std::string domain = import.domain().empty() ? "ai.onnx" : import.domain();
    int64_t version = import.version();
    std::optional<std::pair<int64_t, int64_t>> range = getOnnxOpsetRange(domain);
    if (range && (version < range->first || version > range->second))
      return error("opset " + Twine(version) + " of domain " + quote(domain) + " is not supported; supported are " +
                   Twine(range->first) + " to " + Twine(range->second) + "; export the model with one of these");
    if (version < 1)
      return error("opset " + Twine(version) + " of domain " + quote(domain) + " is not valid; versions count from 1");
    auto [it, isNew] = opsets.try_emplace(domain, version);
    if (!isNew && it->second != version)
      return error("domain " + quote(domain) + " is imported with opsets " + Twine(it->second) + " and " +
                   Twine(version) + "; a model has one opset per domain");
  }
  return Error::success();
}

void GraphImporter::declareTypes(Scope &scope, const google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> &infos) {
  for (const onnx::ValueInfoProto &info : infos) {
    // These types are hints: one that makes no sense is left to the conversion, which knows the true one.
    llvm::Expected<Type> type = importType(info.type(), info.name());
    if (type && !isa<base::UnknownType>(*type))
      scope.types[info.name()] = *type;
    else if (!type)
      llvm::consumeError(type.takeError());
  }
}

//===--- nodes ----------------------------------------------------------------------------------------------------===//

const OnnxSchema *GraphImporter::getSchema(StringRef domain, StringRef type, int64_t opset) {
  auto [it, isNew] = schemas.try_emplace((domain + ":" + type + ":" + Twine(opset)).str());
  if (isNew)
    it->second = getOnnxSchema(domain, type, opset);
  return it->second ? &*it->second : nullptr;
}

// The type that an attribute has, also where an old exporter did not write it down.
static onnx::AttributeProto::AttributeType getAttributeKind(const onnx::AttributeProto &attribute) {
  using A = onnx::AttributeProto;
  if (attribute.type() != A::UNDEFINED)
    return attribute.type();
  if (attribute.has_f())
    return A::FLOAT;
  if (attribute.has_i())
    return A::INT;
  if (attribute.has_s())
    return A::STRING;
  if (attribute.has_t())
    return A::TENSOR;
  if (attribute.has_g())
    return A::GRAPH;
  if (attribute.floats_size())
    return A::FLOATS;
  if (attribute.ints_size())
    return A::INTS;
  if (attribute.strings_size())
    return A::STRINGS;
  if (attribute.tensors_size())
    return A::TENSORS;
  if (attribute.graphs_size())
    return A::GRAPHS;
  if (attribute.has_sparse_tensor())
    return A::SPARSE_TENSOR;
  if (attribute.has_tp())
    return A::TYPE_PROTO;
  return A::UNDEFINED;
}

Error GraphImporter::checkNode(const onnx::NodeProto &node, StringRef name, StringRef domain, int64_t opset) {
  const OnnxSchema *schema = getSchema(domain, node.op_type(), opset);
  // Operators that ONNX does not know are for the conversion to refuse, all at once.
  if (!schema)
    return Error::success();
  std::string op = (node.op_type() + Twine(" (opset ") + Twine(opset) + ")").str();
  if (schema->deprecated)
    return nodeError(name, op + " was withdrawn from " + domain.str() + " in opset " + Twine(schema->sinceVersion) +
                               "; export the model with an older opset, or with the operator that replaces it");
  auto range = [](unsigned min, unsigned max) {
    if (min == max)
      return std::to_string(min);
    return max == static_cast<unsigned>(std::numeric_limits<int>::max())
               ? std::to_string(min) + " or more"
               : std::to_string(min) + " to " + std::to_string(max);
  };
  unsigned inputs = node.input_size(), outputs = node.output_size();
  if (inputs < schema->minInputs || inputs > schema->maxInputs)
    return nodeError(name,
                     op + " has " + Twine(inputs) + " inputs; it takes " + range(schema->minInputs, schema->maxInputs));
  if (outputs < schema->minOutputs || outputs > schema->maxOutputs)
    return nodeError(name, op + " has " + Twine(outputs) + " outputs; it gives " +
                               range(schema->minOutputs, schema->maxOutputs));
  for (unsigned i = 0; i < inputs && i < schema->inputs.size(); ++i)
    if (node.input(i).empty() && schema->inputs[i].kind == OnnxParameter::Single)
      return nodeError(name, op + " lacks its input " + quote(schema->inputs[i].name) + ", which is not optional");
  llvm::StringSet<> given;
  for (const onnx::AttributeProto &attribute : node.attribute()) {
    given.insert(attribute.name());
    auto known = llvm::find_if(schema->attributes, [&](const OnnxAttribute &a) { return a.name == attribute.name(); });
    if (known == schema->attributes.end()) {
      // Names with two underscores are private to an exporter.
      if (StringRef(attribute.name()).starts_with("__"))
        continue;
      return nodeError(name, op + " has no attribute " + quote(attribute.name()));
    }
    std::string kind = onnx::AttributeProto_AttributeType_Name(getAttributeKind(attribute));
    if (attribute.ref_attr_name().empty() && kind != known->kind && kind != "UNDEFINED")
      return nodeError(name, "attribute " + quote(attribute.name()) + " of " + op + " is of kind " + kind +
                                 "; it must be " + known->kind);
  }
  for (const OnnxAttribute &attribute : schema->attributes)
    if (attribute.required && !given.contains(attribute.name))
      return nodeError(name, op + " lacks its attribute " + quote(attribute.name) + ", which is required");
  return Error::success();
}

// The value is not defined where the node uses it: say whether that is order, a cycle, or a name of nothing.
Error GraphImporter::undefinedValue(StringRef value, StringRef node, int index) {
  Scope &scope = *scopes.back();
  auto nameOf = [&](int i) {
    const onnx::NodeProto &other = (*scope.nodes)[i];
    return other.name().empty() ? other.op_type() + "#" + std::to_string(i) : other.name();
  };
  auto producer = scope.producers.find(value);
  if (producer == scope.producers.end()) {
    for (const std::unique_ptr<Scope> &outer : scopes)
      if (outer->producers.count(value))
        return nodeError(node,
                         "it uses the value " + quote(value) +
                             ", which a node of an outer graph makes only later; nodes must be in topological order");
    return nodeError(node, "it uses the value " + quote(value) +
                               ", which no node, input or initializer of the graph defines");
  }
  // Depth-first from the producer back to this node, without recursion.
  std::vector<int> from(scope.nodes->size(), -2);
  std::vector<int> stack = {producer->second};
  from[producer->second] = -1;
  while (!stack.empty() && from[index] == -2) {
    int current = stack.back();
    stack.pop_back();
    for (const std::string &input : (*scope.nodes)[current].input()) {
      auto it = scope.producers.find(input);
      if (it != scope.producers.end() && from[it->second] == -2) {
        from[it->second] = current;
        stack.push_back(it->second);
      }
    }
  }
  if (from[index] == -2)
    return nodeError(node, "it uses the value " + quote(value) + ", which node " + quote(nameOf(producer->second)) +
                               " makes only later; nodes must be in topological order");
  if (producer->second == index)
    return nodeError(node, "it uses its own output " + quote(value) + "; a graph has no cycles");
  // from[] leads from this node to the producer of the value, that is, along the flow of data.
  std::string cycle = quote(nameOf(index));
  unsigned shown = 1;
  for (int current = from[index]; current >= 0; current = from[current], ++shown)
    if (shown < 6)
      cycle += " -> " + quote(nameOf(current));
  if (shown > 6)
    cycle += " -> ... (" + std::to_string(shown) + " nodes)";
  return nodeError(node,
                   "it is part of the cycle " + cycle + " -> " + quote(nameOf(index)) + "; a graph has no cycles");
}

Error GraphImporter::importNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes) {
  Scope &scope = *scopes.back();
  scope.nodes = &nodes;
  for (int i = 0; i < nodes.size(); ++i)
    for (const std::string &output : nodes[i].output())
      if (!output.empty())
        scope.producers.try_emplace(output, i);
  for (int i = 0; i < nodes.size(); ++i)
    if (Error error = importNode(nodes[i], i))
      return error;
  return Error::success();
}

Error GraphImporter::importNode(const onnx::NodeProto &node, int index) {
  std::string name = node.name().empty() ? node.op_type() + "#" + std::to_string(index) : node.name();
  if (!namePrefix.empty())
    name = namePrefix + "/" + node.op_type();
  if (node.op_type().empty())
    return nodeError(node.name().empty() ? "#" + std::to_string(index) : node.name(), "it has no operator type");
  std::string domain = node.domain().empty() ? "ai.onnx" : node.domain();

  auto opset = opsets.find(domain);
  auto callee = functions.find(domain + ":" + node.op_type() + ":" + node.overload());
  if (opset == opsets.end() && callee == functions.end())
    return nodeError(name, "it is of domain " + quote(domain) + ", but the model imports no opset of that domain");
  int64_t version = opset == opsets.end() ? 1 : opset->second;
  if (options.checkNodes && callee == functions.end())
    if (Error error = checkNode(node, name, domain, version))
      return error;

  SmallVector<Value> inputs;
  for (const std::string &input : node.input()) {
    Value value = input.empty() ? Value(graph::NoneOp::create(builder, getLocation(name, index), builder.getNoneType()))
                                : lookup(input);
    if (!value)
      return undefinedValue(input, name, index);
    inputs.push_back(value);
  }
  // Gradient names tensors in its attributes: they become operands, as values of the graph dialect have no names.
  if (domain == "ai.onnx.preview.training" && node.op_type() == "Gradient")
    for (StringRef list : {"xs", "zs", "y"})
      for (const onnx::AttributeProto &attribute : node.attribute()) {
        if (attribute.name() != list)
          continue;
        SmallVector<std::string> names(attribute.strings().begin(), attribute.strings().end());
        if (list == "y")
          names = {attribute.s()};
        for (const std::string &tensor : names) {
          inputs.push_back(lookup(tensor));
          if (!inputs.back())
            return undefinedValue(tensor, name, index);
        }
      }
  SmallVector<Type> outputs;
  for (const std::string &output : node.output()) {
    auto type = scopes.back()->types.find(output);
    outputs.push_back(output.empty()                       ? Type(builder.getNoneType())
                      : type == scopes.back()->types.end() ? Type(base::UnknownType::get(context))
                                                           : type->second);
  }

  SmallVector<NamedAttribute> attrs;
  llvm::StringSet<> attrNames;
  SmallVector<std::string> graphNames;
  SmallVector<const onnx::GraphProto *> graphs;
  for (const onnx::AttributeProto &attribute : node.attribute()) {
    if (attribute.name().empty())
      return nodeError(name, "it has an attribute without a name");
    if (!attrNames.insert(attribute.name()).second)
      return nodeError(name, "it has the attribute " + quote(attribute.name()) + " twice");
    if (attribute.ref_attr_name().empty()) {
      onnx::AttributeProto::AttributeType kind = getAttributeKind(attribute);
      if (kind == onnx::AttributeProto::GRAPH) {
        graphNames.push_back(attribute.name());
        graphs.push_back(&attribute.g());
        continue;
      }
      if (kind == onnx::AttributeProto::GRAPHS) {
        for (int i = 0; i < attribute.graphs_size(); ++i) {
          graphNames.push_back(attribute.name() + "." + std::to_string(i));
          graphs.push_back(&attribute.graphs(i));
        }
        continue;
      }
    } else if (auto graph = graphParameters.find(attribute.ref_attr_name()); graph != graphParameters.end()) {
      graphNames.push_back(attribute.name());
      graphs.push_back(graph->second);
      continue;
    }
    AttrResult attr = importAttribute(attribute, name);
    if (!attr)
      return attr.takeError();
    if (*attr)
      attrs.push_back(builder.getNamedAttr(attribute.name(), *attr));
  }
  for (const std::string &graphName : graphNames)
    if (llvm::count(graphNames, graphName) > 1 ||
        llvm::any_of(attrs, [&](NamedAttribute attr) { return attr.getName() == graphName; }))
      return nodeError(name, "it has two attributes named " + quote(graphName));

  SmallVector<StringRef> regionNames(graphNames.begin(), graphNames.end());
  Location place = FileLineColLoc::get(context, fileName, index + 1, 1);
  for (const onnx::StringStringEntryProto &entry : node.metadata_props())
    if (entry.key() == graph::kStackTraceKey.str())
      place = graph::addSource(place, entry.value());
  Location loc = NameLoc::get(builder.getStringAttr(name), place);
  auto op = graph::NodeOp::create(builder, loc, domain, node.op_type(), version, outputs, inputs, attrs, regionNames);
  if (!node.overload().empty())
    op.setOverload(node.overload());
  if (callee != functions.end())
    op.setCallee(callee->second);
  for (auto [graph, region] : llvm::zip(graphs, op.getGraphs()))
    if (Error error = importSubgraph(*graph, region, name))
      return error;
  for (auto [output, value] : llvm::zip(node.output(), op.getOutputs()))
    if (!output.empty())
      if (Error error = define(output, value, name))
        return error;
  return Error::success();
}

Error GraphImporter::importSubgraph(const onnx::GraphProto &graph, Region &region, StringRef node) {
  OpBuilder::InsertionGuard guard(builder);
  Scope &scope = pushScope();
  declareTypes(scope, graph.value_info());
  declareTypes(scope, graph.output());
  Block *block = builder.createBlock(&region);
  llvm::StringSet<> initializers;
  for (const onnx::TensorProto &tensor : graph.initializer())
    initializers.insert(tensor.name());
  llvm::StringMap<Attribute> formals;
  for (const onnx::ValueInfoProto &input : graph.input()) {
    // Before IR version 4 each initializer had to be an input too; there it is a constant.
    if (irVersion < 4 && initializers.contains(input.name()))
      continue;
    llvm::Expected<Type> type = importType(input.type(), input.name());
    if (!type)
      return type.takeError();
    Location loc = NameLoc::get(builder.getStringAttr(input.name()));
    if (Error error = define(input.name(), block->addArgument(*type, loc), node))
      return error;
    formals[input.name()] = {};
  }
  if (Error error = importInitializers(graph, &formals))
    return error;
  if (Error error = importNodes(graph.node()))
    return error;
  SmallVector<Value> results;
  for (const onnx::ValueInfoProto &output : graph.output()) {
    Value value = lookup(output.name());
    if (!value)
      return nodeError(node, "the output " + quote(output.name()) + " of its subgraph " + quote(graph.name()) +
                                 " is defined by nothing");
    results.push_back(value);
  }
  graph::YieldOp::create(builder, builder.getUnknownLoc(), results);
  popScope();
  return Error::success();
}

Error GraphImporter::importInitializers(const onnx::GraphProto &graph, const llvm::StringMap<Attribute> *skip) {
  int index = 0;
  auto add = [&](StringRef name, AttrResult attr) -> Error {
    if (!attr)
      return attr.takeError();
    auto op = graph::ConstantOp::create(builder, getLocation(name, index++), cast<TypedAttr>(*attr));
    return define(name, op, "");
  };
  for (const onnx::TensorProto &tensor : graph.initializer()) {
    if (skip && skip->count(tensor.name()))
      continue;
    if (tensor.name().empty())
      return error("the graph " + quote(graph.name()) + " has an initializer without a name");
    if (Error error = add(tensor.name(), importTensor(tensor, "", tensor.name())))
      return error;
  }
  for (const onnx::SparseTensorProto &sparse : graph.sparse_initializer()) {
    const std::string &name = sparse.values().name();
    if (skip && skip->count(name))
      continue;
    if (name.empty())
      return error("the graph " + quote(graph.name()) + " has a sparse initializer without a name");
    if (Error error = add(name, importSparse(sparse, "", name)))
      return error;
  }
  return Error::success();
}

//===--- attributes -----------------------------------------------------------------------------------------------===//

GraphImporter::AttrResult GraphImporter::importAttribute(const onnx::AttributeProto &attribute, StringRef node) {
  using A = onnx::AttributeProto;
  onnx::AttributeProto::AttributeType kind = getAttributeKind(attribute);
  if (!attribute.ref_attr_name().empty()) {
    if (substituteParameters)
      return parameters.lookup(attribute.ref_attr_name());
    return graph::RefAttr::get(context, attribute.ref_attr_name(), onnx::AttributeProto_AttributeType_Name(kind));
  }
  auto list = [&](int size, llvm::function_ref<AttrResult(int)> get) -> AttrResult {
    SmallVector<Attribute> items;
    for (int i = 0; i < size; ++i) {
      AttrResult item = get(i);
      if (!item)
        return item.takeError();
      items.push_back(*item);
    }
    return builder.getArrayAttr(items);
  };
  auto type = [&](const onnx::TypeProto &proto) -> AttrResult {
    llvm::Expected<Type> imported = importType(proto, attribute.name());
    if (!imported)
      return imported.takeError();
    return TypeAttr::get(*imported);
  };
  switch (kind) {
  case A::INT:
    return builder.getI64IntegerAttr(attribute.i());
  case A::FLOAT:
    return builder.getF32FloatAttr(attribute.f());
  case A::STRING:
    return builder.getStringAttr(attribute.s());
  case A::TENSOR:
    return importTensor(attribute.t(), node, attribute.name());
  case A::SPARSE_TENSOR:
    return importSparse(attribute.sparse_tensor(), node, attribute.name());
  case A::TYPE_PROTO:
    return type(attribute.tp());
  case A::INTS:
    return builder.getDenseI64ArrayAttr(SmallVector<int64_t>(attribute.ints().begin(), attribute.ints().end()));
  case A::FLOATS:
    return builder.getDenseF32ArrayAttr(SmallVector<float>(attribute.floats().begin(), attribute.floats().end()));
  case A::STRINGS:
    return list(attribute.strings_size(),
                [&](int i) -> AttrResult { return builder.getStringAttr(attribute.strings(i)); });
  case A::TENSORS:
    return list(attribute.tensors_size(),
                [&](int i) { return importTensor(attribute.tensors(i), node, attribute.name()); });
  case A::SPARSE_TENSORS:
    return list(attribute.sparse_tensors_size(),
                [&](int i) { return importSparse(attribute.sparse_tensors(i), node, attribute.name()); });
  case A::TYPE_PROTOS:
    return list(attribute.type_protos_size(), [&](int i) { return type(attribute.type_protos(i)); });
  case A::GRAPH:
  case A::GRAPHS:
    return nodeError(node, "attribute " + quote(attribute.name()) + " cannot be a graph here");
  case A::UNDEFINED:
    break;
  }
  return nodeError(node, "attribute " + quote(attribute.name()) + " has no value");
}

} // namespace tc::onnxfe
