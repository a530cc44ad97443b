//===- OnnxLibrary.cpp - the ONNX library behind functions that do not throw --------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "OnnxLibrary.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/stubs/logging.h"
#include "onnx/defs/schema.h"
#include "onnx/shape_inference/implementation.h"
#include "tc/Frontend/ONNX.h"
#include "tc/Support/ChildProcess.h"
#include <algorithm>
#include <exception>
#include <limits>
#include <map>
#include <mutex>
#include <set>

using namespace llvm;

namespace tc {

static std::string fromOnnxDomain(const std::string &domain) { return domain.empty() ? "ai.onnx" : domain; }

std::string onnxfe::toOnnxDomain(StringRef domain) { return domain == "ai.onnx" ? "" : domain.str(); }

// Opsets of other domains may be any 64-bit number; schemas count in int.
static int clampOpset(int64_t opset) {
  return static_cast<int>(std::clamp<int64_t>(opset, 0, std::numeric_limits<int>::max()));
}

static const onnx::OpSchema *findSchema(StringRef domain, StringRef type, int64_t opset) {
  try {
    return onnx::OpSchemaRegistry::Schema(type.str(), clampOpset(opset), onnxfe::toOnnxDomain(domain));
  } catch (const std::exception &) {
    return nullptr;
  }
}

std::unique_ptr<onnx::ModelProto> onnxfe::parseModel(StringRef bytes) {
  try {
    // Protobuf prints what it dislikes; our sentence is the only one that a user sees.
    static google::protobuf::LogHandler *previous = google::protobuf::SetLogHandler(nullptr);
    (void)previous;
    google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
    google::protobuf::io::CodedInputStream input(&stream);
    // Depth is bounded before: at most three messages per nested graph, two per nested type.
    input.SetRecursionLimit(10000);
    auto model = std::make_unique<onnx::ModelProto>();
    if (!model->ParseFromCodedStream(&input) || !input.ConsumedEntireMessage())
      return nullptr;
    return model;
  } catch (const std::exception &) {
    return nullptr;
  }
}

namespace {
/// ONNX's schemas, with an EyeLike whose inference looks before it reads: that of ONNX 1.23.2 follows a null pointer
/// where the type of its operand is unknown, as behind most operators of ai.onnx.ml.
class GuardedRegistry final : public onnx::ISchemaRegistry {
public:
  const onnx::OpSchema *GetSchema(const std::string &type, int opset, const std::string &domain) const override {
    const onnx::OpSchema *schema = onnx::OpSchemaRegistry::Instance()->GetSchema(type, opset, domain);
    if (!schema || !domain.empty() || type != "EyeLike")
      return schema;
    auto [it, added] = guarded.try_emplace(schema->SinceVersion(), *schema);
    if (added)
      it->second.TypeAndShapeInferenceFunction(
          [infer = schema->GetTypeAndShapeInferenceFunction()](onnx::InferenceContext &context) {
            if (context.getInputType(0))
              infer(context);
          });
    return &it->second;
  }

private:
  mutable std::map<int, onnx::OpSchema> guarded;
};
} // namespace

// Inference writes into the types that graphs declare, those of nested graphs too: visits all graphs, outer ones first.
template <typename Visit> static void forEachGraph(onnx::GraphProto &graph, Visit visit) {
  visit(graph);
  for (onnx::NodeProto &node : *graph.mutable_node())
    for (onnx::AttributeProto &attribute : *node.mutable_attribute()) {
      if (attribute.has_g())
        forEachGraph(*attribute.mutable_g(), visit);
      for (onnx::GraphProto &inner : *attribute.mutable_graphs())
        forEachGraph(inner, visit);
    }
}

// The types of all graphs, one after another, each behind its length.
static std::string serialiseTypes(onnx::ModelProto &model) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream out(&stream);
  forEachGraph(*model.mutable_graph(), [&](onnx::GraphProto &graph) {
    onnx::GraphProto types;
    types.mutable_input()->Swap(graph.mutable_input());
    types.mutable_output()->Swap(graph.mutable_output());
    types.mutable_value_info()->Swap(graph.mutable_value_info());
    const size_t size = types.ByteSizeLong();
    out.WriteVarint64(size);
    types.SerializeToCodedStream(&out);
  });
  out.Trim();
  return bytes;
}

// Takes them over, all or none.
static void readTypes(onnx::ModelProto &model, StringRef bytes) {
  std::vector<onnx::GraphProto> all;
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
  google::protobuf::io::CodedInputStream in(&stream);
  in.SetRecursionLimit(10000); // depth is bounded, as in parseModel
  bool isWhole = true;
  forEachGraph(*model.mutable_graph(), [&](onnx::GraphProto &) {
    uint64_t size = 0;
    isWhole = isWhole && in.ReadVarint64(&size) && size <= bytes.size();
    auto limit = in.PushLimit(isWhole ? static_cast<int>(size) : 0);
    isWhole = isWhole && all.emplace_back().MergeFromCodedStream(&in) && in.ConsumedEntireMessage();
    in.PopLimit(limit);
  });
  if (!isWhole)
    return;
  auto types = all.begin();
  forEachGraph(*model.mutable_graph(), [&](onnx::GraphProto &graph) {
    graph.mutable_input()->Swap(types->mutable_input());
    graph.mutable_output()->Swap(types->mutable_output());
    graph.mutable_value_info()->Swap(types->mutable_value_info());
    ++types;
  });
}

void onnxfe::inferShapes(onnx::ModelProto &model) {
  // Makes the registry of schemas, which takes as long as to infer the types of a small model, once: for both
  // processes.
  findSchema("ai.onnx", "Add", 14);
  // ONNX's inference follows what a file says, into null pointers and through all memory: in a process of its own.
  std::optional<std::string> types = runInChild(ChildLimits(), [&]() -> std::string {
    try {
      GuardedRegistry registry;
      onnx::ShapeInferenceOptions options(/*check_type_val=*/false, /*strict_mode_val=*/0, /*data_prop_val=*/true);
      onnx::shape_inference::InferShapes(model, &registry, options);
    } catch (const std::exception &) {
      // What was inferred until here stays.
    }
    return serialiseTypes(model);
  });
  if (types && types->size() <= static_cast<size_t>(std::numeric_limits<int>::max()))
    try {
      readTypes(model, *types);
    } catch (const std::exception &) {
    }
}

std::optional<onnx::FunctionProto> onnxfe::getFunctionBody(const onnx::NodeProto &node, int opset,
                                                           const std::vector<onnx::TypeProto> &inputTypes) {
  const onnx::OpSchema *schema = findSchema(node.domain(), node.op_type(), opset);
  if (!schema)
    return std::nullopt;
  // Some builders of bodies read the types of their operands without asking whether they are known.
  auto isUnknown = [&](int i) {
    return !node.input(i).empty() &&
           (size_t(i) >= inputTypes.size() || inputTypes[i].value_case() == onnx::TypeProto::VALUE_NOT_SET);
  };
  bool typesAreKnown = llvm::none_of(llvm::seq<int>(0, node.input_size()), isUnknown);
  std::optional<onnx::FunctionProto> body;
  try {
    // A body that fits the node's types is the better one where a schema has both.
    if (schema->HasContextDependentFunction() && typesAreKnown) {
      onnx::FunctionBodyBuildContextImpl context(node, inputTypes);
      onnx::FunctionProto function;
      if (schema->BuildContextDependentFunction(context, function, opset))
        body = function;
    }
    if (!body && schema->HasFunction())
      if (const onnx::FunctionProto *function = schema->GetFunction(opset))
        body = *function;
  } catch (const std::exception &) {
  }
  // A body may leave out which of ONNX's own operators it means. That is the version asked for where the operator is
  // one of them, and else the library's newest, for which its bodies are written.
  if (body && std::none_of(body->opset_import().begin(), body->opset_import().end(),
                           [](const onnx::OperatorSetIdProto &import) { return import.domain().empty(); })) {
    std::optional<std::pair<int64_t, int64_t>> range = getOnnxOpsetRange("ai.onnx");
    onnx::OperatorSetIdProto *import = body->add_opset_import();
    import->set_domain("");
    import->set_version(schema->domain().empty() || !range ? opset : range->second);
  }
  return body;
}

std::optional<onnx::AttributeProto> onnxfe::getAttributeDefault(StringRef domain, StringRef type, int opset,
                                                                StringRef attribute) {
  const onnx::OpSchema *schema = findSchema(domain, type, opset);
  if (!schema)
    return std::nullopt;
  auto it = schema->attributes().find(attribute.str());
  if (it == schema->attributes().end() || it->second.default_value.name().empty())
    return std::nullopt;
  return it->second.default_value;
}

// The bit of "float" in OperandType::elements.
static uint64_t getElementBit(StringRef name) {
  onnx::TensorProto::DataType type;
  return onnx::TensorProto_DataType_Parse(name.upper(), &type) ? uint64_t(1) << type : 0;
}

// Adds types of operands as ONNX writes them: "tensor(float)", "seq(tensor(float))".
static void addTypes(onnxfe::OperandType &to, const onnx::OpSchema::FormalParameter &parameter) {
  for (onnx::DataType text : parameter.GetTypes()) {
    auto [kind, inside] = StringRef(*text).split('(');
    if (kind == "tensor")
      to.elements |= getElementBit(inside.drop_back());
    to.isSequence |= kind == "seq";
    to.isOptional |= kind == "optional";
    to.isMap |= kind == "map";
    to.isSparse |= kind == "sparse_tensor";
  }
}

static std::vector<onnxfe::OperandType> readOperandTypes(const onnx::OpSchema &schema) {
  std::vector<const onnx::OpSchema *> versions = {&schema};
  std::optional<std::pair<int64_t, int64_t>> range = getOnnxOpsetRange(fromOnnxDomain(schema.domain()));
  for (int64_t opset = schema.SinceVersion() + 1; range && opset <= range->second; ++opset)
    if (const onnx::OpSchema *later = findSchema(schema.domain(), schema.Name(), opset);
        later && later != versions.back() && !later->Deprecated())
      versions.push_back(later);
  std::vector<onnxfe::OperandType> operands;
  for (const onnx::OpSchema::FormalParameter &own : schema.inputs()) {
    onnxfe::OperandType &operand = operands.emplace_back();
    operand.name = own.GetName();
    operand.isVariadic = own.GetOption() == onnx::OpSchema::Variadic;
    for (const onnx::OpSchema *version : versions) {
      auto same = llvm::find_if(version->inputs(), [&](const auto &other) { return other.GetName() == own.GetName(); });
      const onnx::OpSchema::FormalParameter &parameter = same == version->inputs().end() ? own : *same;
      addTypes(operand, parameter);
      // Operands that later versions tell apart differ.
      operand.variable += parameter.GetTypeStr() + ";";
    }
    if (operand.isVariadic && !own.GetIsHomogeneous())
      operand.variable.clear();
  }
  return operands;
}

// Of com.microsoft, by operator.
static StringMap<std::vector<onnxfe::OperandType>> makeMicrosoftOperands() {
  StringMap<std::vector<onnxfe::OperandType>> operators;
  auto add = [&](StringRef type, StringRef name, StringRef variable, StringRef elements, bool isVariadic) {
    onnxfe::OperandType &operand = operators[type].emplace_back();
    operand.name = name.str();
    operand.variable = variable.str();
    operand.isVariadic = isVariadic;
    SmallVector<StringRef> names;
    elements.split(names, ' ');
    for (StringRef element : names)
      operand.elements |= getElementBit(element);
  };
#define OPERAND(type, ...) add(#type, __VA_ARGS__, false);
#define VARIADIC(type, ...) add(#type, __VA_ARGS__, true);
#include "MicrosoftOperands.def"
#undef OPERAND
#undef VARIADIC
  return operators;
}

const std::vector<onnxfe::OperandType> *onnxfe::getOperandTypes(StringRef domain, StringRef type, int64_t opset) {
  if (domain == "com.microsoft") {
    static const StringMap<std::vector<OperandType>> operators = makeMicrosoftOperands();
    auto it = operators.find(type);
    return it == operators.end() ? nullptr : &it->second;
  }
  static std::mutex mutex;
  static std::map<const onnx::OpSchema *, std::vector<OperandType>> known;
  const onnx::OpSchema *schema = findSchema(domain, type, opset);
  if (!schema)
    return nullptr;
  std::lock_guard<std::mutex> lock(mutex);
  auto [it, isNew] = known.try_emplace(schema);
  if (isNew)
    it->second = readOperandTypes(*schema);
  return &it->second;
}

std::optional<int64_t> getOnnxSinceVersion(StringRef domain, StringRef type, int64_t opset) {
  const onnx::OpSchema *schema = findSchema(domain, type, opset);
  if (!schema)
    return std::nullopt;
  return schema->SinceVersion();
}

std::optional<OnnxSchema> getOnnxSchema(StringRef domain, StringRef type, int64_t opset) {
  const onnx::OpSchema *schema = findSchema(domain, type, opset);
  if (!schema)
    return std::nullopt;
  OnnxSchema result;
  result.domain = domain.str();
  result.type = type.str();
  result.sinceVersion = schema->SinceVersion();
  result.minInputs = schema->min_input();
  result.maxInputs = schema->max_input();
  result.minOutputs = schema->min_output();
  result.maxOutputs = schema->max_output();
  result.deprecated = schema->Deprecated();
  result.hasFunctionBody = schema->HasFunction() || schema->HasContextDependentFunction();
  auto convert = [](const std::vector<onnx::OpSchema::FormalParameter> &parameters) {
    std::vector<OnnxParameter> converted;
    for (const onnx::OpSchema::FormalParameter &parameter : parameters) {
      OnnxParameter::Kind kind = parameter.GetOption() == onnx::OpSchema::Single     ? OnnxParameter::Single
                                 : parameter.GetOption() == onnx::OpSchema::Optional ? OnnxParameter::Optional
                                                                                     : OnnxParameter::Variadic;
      converted.push_back({parameter.GetName(), kind});
    }
    return converted;
  };
  result.inputs = convert(schema->inputs());
  result.outputs = convert(schema->outputs());
  for (const auto &[name, attribute] : schema->attributes())
    result.attributes.push_back({name, onnx::AttributeProto_AttributeType_Name(attribute.type), attribute.required,
                                 !attribute.default_value.name().empty()});
  std::sort(result.attributes.begin(), result.attributes.end(),
            [](const OnnxAttribute &a, const OnnxAttribute &b) { return a.name < b.name; });
  std::set<std::string> elementTypes;
  auto addElementTypes = [&](StringRef text) { // "seq(tensor(float))", "map(int64, string)"
    SmallVector<StringRef> names;
    text.rsplit('(').second.take_until([](char c) { return c == ')'; }).split(names, ',');
    for (StringRef name : names)
      elementTypes.insert(name.trim().str());
  };
  for (const onnx::OpSchema::TypeConstraintParam &constraint : schema->typeConstraintParams())
    for (const std::string &text : constraint.allowed_type_strs)
      addElementTypes(text);
  for (const auto *parameters : {&schema->inputs(), &schema->outputs()})
    for (const onnx::OpSchema::FormalParameter &parameter : *parameters)
      if (StringRef(parameter.GetTypeStr()).contains('('))
        addElementTypes(parameter.GetTypeStr());
  elementTypes.erase("");
  result.elementTypes.assign(elementTypes.begin(), elementTypes.end());
  return result;
}

/// A node of the operator with operands of the first tensor type that each may have: all that are named, or only those
/// that must be there; of this rank, or of an unknown one (0). Integers that must be given are 1, graphs return their
/// operand.
static onnx::NodeProto makePlainNode(const onnx::OpSchema &schema, bool withOptional, int rank,
                                     std::vector<onnx::TypeProto> &inputTypes) {
  onnx::NodeProto node;
  for (const auto &[name, attribute] : schema.attributes())
    if (attribute.required && attribute.type == onnx::AttributeProto::INT) {
      onnx::AttributeProto *given = node.add_attribute();
      given->set_name(name);
      given->set_type(attribute.type);
      given->set_i(1);
    } else if (attribute.required && attribute.type == onnx::AttributeProto::GRAPH) {
      onnx::AttributeProto *given = node.add_attribute();
      given->set_name(name);
      given->set_type(attribute.type);
      given->mutable_g()->add_input()->set_name("x");
      onnx::ValueInfoProto *output = given->mutable_g()->add_output();
      output->set_name("x");
      output->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
    }
  node.set_domain(schema.domain());
  node.set_op_type(schema.Name());
  for (const onnx::OpSchema::FormalParameter &parameter : schema.inputs()) {
    if (parameter.GetOption() == onnx::OpSchema::Optional && !withOptional)
      break;
    node.add_input("operand" + std::to_string(node.input_size()));
    std::vector<std::string> texts;
    for (onnx::DataType text : parameter.GetTypes())
      texts.push_back(*text);
    // The set has no order of its own.
    std::sort(texts.begin(), texts.end(), [](const std::string &a, const std::string &b) {
      return std::make_pair(a != "tensor(float)", a) < std::make_pair(b != "tensor(float)", b);
    });
    onnx::TypeProto &type = inputTypes.emplace_back();
    if (!texts.empty())
      type = onnx::Utils::DataTypeUtils::ToTypeProto(onnx::Utils::DataTypeUtils::ToType(texts.front()));
    for (int i = 0; type.has_tensor_type() && i < rank; ++i)
      type.mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(4);
  }
  for (size_t i = 0; i < schema.outputs().size(); ++i)
    node.add_output("result" + std::to_string(i));
  return node;
}

std::optional<std::vector<OnnxOperator>> getOnnxBodyOperators(StringRef domain, StringRef type, int64_t opset) {
  const onnx::OpSchema *schema = findSchema(domain, type, opset);
  if (!schema)
    return std::nullopt;
  std::optional<onnx::FunctionProto> body;
  try {
    for (bool withOptional : {false, true})
      for (int rank : {0, 3, 4}) {
        if (body)
          break;
        std::vector<onnx::TypeProto> inputTypes;
        onnx::NodeProto node = makePlainNode(*schema, withOptional, rank, inputTypes);
        body = onnxfe::getFunctionBody(node, clampOpset(opset), inputTypes);
      }
  } catch (const std::exception &) {
  }
  if (!body)
    return std::nullopt;
  std::map<std::string, int64_t> opsets;
  for (const onnx::OperatorSetIdProto &import : body->opset_import())
    opsets[fromOnnxDomain(import.domain())] = import.version();
  std::map<std::pair<std::string, std::string>, int64_t> found;
  std::vector<const google::protobuf::RepeatedPtrField<onnx::NodeProto> *> lists = {&body->node()};
  while (!lists.empty()) {
    const auto *nodes = lists.back();
    lists.pop_back();
    for (const onnx::NodeProto &node : *nodes) {
      std::string inner = fromOnnxDomain(node.domain());
      found[{inner, node.op_type()}] = opsets.count(inner) ? opsets[inner] : opset;
      for (const onnx::AttributeProto &attribute : node.attribute()) {
        if (attribute.has_g())
          lists.push_back(&attribute.g().node());
        for (const onnx::GraphProto &graph : attribute.graphs())
          lists.push_back(&graph.node());
      }
    }
  }
  std::vector<OnnxOperator> operators;
  for (const auto &[key, version] : found)
    operators.push_back({key.first, key.second, version, /*deprecated=*/false});
  return operators;
}

std::optional<std::pair<int64_t, int64_t>> getOnnxOpsetRange(StringRef domain) {
  const auto &map = onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map();
  auto it = map.find(onnxfe::toOnnxDomain(domain));
  if (it == map.end())
    return std::nullopt;
  return std::make_pair<int64_t, int64_t>(it->second.first, it->second.second);
}

std::vector<OnnxOperator> getOnnxOperators() {
  std::vector<OnnxOperator> operators;
  try {
    for (const onnx::OpSchema &schema : onnx::OpSchemaRegistry::get_all_schemas_with_history())
      operators.push_back({fromOnnxDomain(schema.domain()), schema.Name(), schema.SinceVersion(), schema.Deprecated()});
  } catch (const std::exception &) {
  }
  std::sort(operators.begin(), operators.end(), [](const OnnxOperator &a, const OnnxOperator &b) {
    return std::tie(a.domain, a.type, a.sinceVersion) < std::tie(b.domain, b.type, b.sinceVersion);
  });
  return operators;
}

} // namespace tc
