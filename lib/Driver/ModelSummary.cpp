//===- ModelSummary.cpp - what a model's file holds ---------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Driver/ModelSummary.h"

#include "LoadModel.h"

#include "tc/Dialect/Graph/IR/Graph.h"
#include "tc/Dialect/TC/IR/Dtypes.h"
#include "tc/Driver/Operators.h"
#include "tc/Frontend/ONNX.h"
#include "tcrt/tcrt.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>

using namespace mlir;
using namespace tc;
using llvm::json::Array;
using llvm::json::fixUTF8;
using llvm::json::Object;

static std::string getDtypeName(Type element) {
  tcrt_dtype_t dtype = isa<base::StringType>(element) ? TCRT_DTYPE_STRING : base::getDtype(element);
  if (dtype != TCRT_DTYPE_INVALID)
    return tcrt_dtype_name(dtype);
  std::string text;
  llvm::raw_string_ostream(text) << element;
  return text;
}

/// "f32 (batch, 3)", "sequence of f32 (?)": `dims` names the sizes of the tensor inside.
static std::string describeType(Type type, ArrayAttr dims) {
  if (auto sequence = dyn_cast<base::SeqType>(type))
    return "sequence of " + describeType(sequence.getElementType(), dims);
  if (auto optional = dyn_cast<base::OptType>(type))
    return "optional of " + describeType(optional.getElementType(), dims);
  if (auto map = dyn_cast<base::MapType>(type))
    return "map of " + getDtypeName(map.getKeyType()) + " to " + describeType(map.getValueType(), dims);
  if (isa<base::UnknownType>(type))
    return "known when it is compiled";
  auto tensor = dyn_cast<TensorType>(type);
  if (!tensor)
    return getDtypeName(type);
  std::string text = getDtypeName(tensor.getElementType());
  auto ranked = dyn_cast<RankedTensorType>(type);
  if (!ranked)
    return text + " of any shape";
  text += " (";
  for (auto [i, size] : llvm::enumerate(ranked.getShape())) {
    StringRef name = dims && i < dims.size() ? cast<StringAttr>(dims[i]).getValue() : "";
    text += i ? ", " : "";
    text += !ShapedType::isDynamic(size) ? std::to_string(size) : name.empty() ? "?" : fixUTF8(name);
  }
  return text + ")";
}

static Object describeValue(StringRef name, Type type, ArrayAttr dims) {
  Object value{{"name", fixUTF8(name)}, {"type", describeType(type, dims)}};
  if (auto ranked = dyn_cast<RankedTensorType>(type)) {
    value["dtype"] = getDtypeName(ranked.getElementType());
    Array sizes;
    for (auto [i, size] : llvm::enumerate(ranked.getShape())) {
      StringRef symbol = dims && i < dims.size() ? cast<StringAttr>(dims[i]).getValue() : "";
      if (ShapedType::isDynamic(size))
        sizes.push_back(symbol.empty() ? "?" : fixUTF8(symbol));
      else
        sizes.push_back(size);
    }
    value["dims"] = std::move(sizes);
  }
  return value;
}

/// What all tensors of one element type hold together.
struct Amount {
  int64_t tensors = 0, elements = 0;
  uint64_t bytes = 0;
};

static Object describeAmount(const Amount &amount) {
  return Object{{"tensors", amount.tensors}, {"elements", amount.elements}, {"bytes", int64_t(amount.bytes)}};
}

llvm::Expected<Object> driver::summarizeModel(StringRef path) {
  DialectRegistry registry;
  registerOnnxDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  // What the front ends would say through the context, they return.
  ScopedDiagnosticHandler handler(&context, [](Diagnostic &) { return success(); });
  if (path.ends_with(".mlir"))
    return llvm::createStringError(path + ": error: this is a module of tc's IR, which is text; tc-inspect shows "
                                          "artifacts, .onnx, .pt2 and .pt models");
  bool isMlir = false;
  llvm::Expected<OwningOpRef<ModuleOp>> loaded = loadModel(&context, path, isMlir);
  if (!loaded)
    return loaded.takeError();
  ModuleOp module = **loaded;

  Object model{{"file", fixUTF8(path)}};
  uint64_t size = 0;
  if (!llvm::sys::fs::file_size(path, size))
    model["file_size"] = int64_t(size);
  auto irVersion = module->getAttrOfType<IntegerAttr>(graph::kIrVersionAttr);
  auto producer = module->getAttrOfType<StringAttr>(graph::kProducerAttr);
  bool isScript = producer && producer.getValue().starts_with("TorchScript");
  model["format"] = irVersion ? "onnx" : isScript ? "pt" : "pt2";
  if (irVersion)
    model["ir_version"] = irVersion.getInt();
  for (auto [key, attribute] : {std::pair("producer", graph::kProducerAttr), std::pair("name", graph::kGraphNameAttr)})
    if (auto text = module->getAttrOfType<StringAttr>(attribute))
      model[key] = fixUTF8(text.getValue());
  if (auto metadata = module->getAttrOfType<DictionaryAttr>(graph::kMetadataAttr)) {
    Object entries;
    for (NamedAttribute entry : metadata)
      if (auto text = dyn_cast<StringAttr>(entry.getValue()))
        entries[fixUTF8(entry.getName().strref())] = fixUTF8(text.getValue());
    model["metadata"] = std::move(entries);
  }

  Array functions;
  llvm::MapVector<Type, Amount> amounts;
  auto count = [&](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape())
      return;
    Amount &amount = amounts[tensor.getElementType()];
    ++amount.tensors;
    amount.elements += tensor.getNumElements();
    amount.bytes += base::getPackedSizeBytes(tensor).value_or(0);
  };
  // Of all models of an archive, each of which becomes a function of the artifact.
  Array inputs, outputs;
  llvm::SmallSetVector<StringRef, 4> symbols;
  const bool isOneOfSeveral =
      llvm::count_if(module.getOps<graph::FuncOp>(), [](graph::FuncOp function) { return !function.isPrivate(); }) > 1;
  for (auto function : module.getOps<graph::FuncOp>()) {
    if (function.isPrivate()) {
      functions.push_back(fixUTF8(function.getSymName()));
      continue;
    }
    Object opsets;
    for (NamedAttribute entry : function.getOpsets())
      opsets[fixUTF8(entry.getName().strref())] = cast<IntegerAttr>(entry.getValue()).getInt();
    if (!isScript) // which has none of its own
      model["opsets"] = std::move(opsets);
    auto addSymbols = [&](ArrayAttr dims) {
      if (dims)
        for (auto name : dims.getAsRange<StringAttr>())
          if (!name.getValue().empty())
            symbols.insert(name.getValue());
    };
    for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
      Object input = describeValue(function.getArgName(i), type, function.getArgDims(i));
      if (TypedAttr value = function.getArgDefault(i)) {
        input["has_default"] = true;
        count(value.getType());
      }
      addSymbols(function.getArgDims(i));
      if (isOneOfSeveral)
        input["function"] = fixUTF8(function.getSymName());
      inputs.push_back(std::move(input));
    }
    for (auto [i, type] : llvm::enumerate(function.getResultTypes())) {
      Object output = describeValue(function.getResultName(i), type, function.getResultDims(i));
      if (isOneOfSeveral)
        output["function"] = fixUTF8(function.getSymName());
      outputs.push_back(std::move(output));
    }
  }
  model["inputs"] = std::move(inputs);
  model["outputs"] = std::move(outputs);
  Array names;
  for (StringRef name : symbols)
    names.push_back(fixUTF8(name));
  model["symbols"] = std::move(names);

  // Nodes of subgraphs and functions, too: each stands once in the file.
  int64_t nodes = 0;
  std::map<std::tuple<std::string, std::string, int64_t>, std::pair<int64_t, bool>> operators;
  module.walk([&](Operation *op) {
    if (auto constant = dyn_cast<graph::ConstantOp>(op))
      count(constant.getType());
    auto node = dyn_cast<graph::NodeOp>(op);
    if (!node)
      return;
    ++nodes;
    auto &[number, isCall] = operators[{node.getDomain().str(), node.getOpType().str(), int64_t(node.getOpset())}];
    ++number;
    isCall = bool(node.getCalleeAttr());
  });
  auto byCount = llvm::map_to_vector(operators, [](const auto &entry) { return &entry; });
  // The most frequent first, then by name.
  llvm::sort(byCount, [](const auto *a, const auto *b) {
    return std::tie(b->second.first, a->first) < std::tie(a->second.first, b->first);
  });
  Array counted;
  for (const auto *entry : byCount) {
    const auto &[key, value] = *entry;
    const auto &[domain, type, opset] = key;
    StringRef support = value.second ? "function of the model" : getName(findOperatorSupport(domain, type, opset));
    counted.push_back(Object{{"domain", fixUTF8(domain)},
                             {"type", fixUTF8(type)},
                             {"opset", opset},
                             {"count", value.first},
                             {"support", support}});
  }
  model["node_count"] = nodes;
  model["operators"] = std::move(counted);
  model["functions"] = std::move(functions);

  Amount total;
  Object byDtype;
  for (auto &[type, amount] : amounts) {
    total.tensors += amount.tensors;
    total.elements += amount.elements;
    total.bytes += amount.bytes;
    byDtype[getDtypeName(type)] = describeAmount(amount);
  }
  Object parameters = describeAmount(total);
  parameters["dtypes"] = std::move(byDtype);
  model["parameters"] = std::move(parameters);
  return model;
}

static std::string formatBytes(int64_t bytes) {
  if (bytes < 10 * 1024)
    return std::to_string(bytes) + " B";
  return bytes < (int64_t(10) << 20) ? llvm::formatv("{0:f1} KiB", double(bytes) / 1024).str()
                                     : llvm::formatv("{0:f1} MiB", double(bytes) / (1 << 20)).str();
}

void driver::printModelSummary(llvm::raw_ostream &stream, const Object &model) {
  auto row = [&](StringRef name, const std::string &what) { stream << llvm::formatv("  {0,-24} {1}\n", name, what); };
  const bool isOnnx = model.getString("format") == "onnx";
  stream << *model.getString("file") << ": ";
  if (isOnnx)
    stream << "ONNX model, IR version " << *model.getInteger("ir_version");
  else
    stream << (model.getString("format") == "pt" ? "TorchScript module (.pt)" : "program of torch.export (.pt2)");
  if (const Object *opsets = model.getObject("opsets"))
    for (const auto &[domain, version] : *opsets)
      stream << ", opset " << *version.getAsInteger() << " of " << StringRef(domain);
  if (auto size = model.getInteger("file_size"))
    stream << ", " << formatBytes(*size);
  stream << "\n";
  if (auto producer = model.getString("producer"))
    stream << "written by\n  " << *producer << "\n";
  for (StringRef what : {"inputs", "outputs"}) {
    stream << what << "\n";
    for (const llvm::json::Value &entry : *model.getArray(what)) {
      const Object &value = *entry.getAsObject();
      const std::string function = value.getString("function").value_or("").str();
      row((function.empty() ? "" : function + ": ") + value.getString("name")->str(),
          value.getString("type")->str() + (value.get("has_default") ? ", has a default" : ""));
    }
  }
  if (const Array *symbols = model.getArray("symbols"); symbols && !symbols->empty()) {
    stream << "symbolic sizes: tc-compile --dim NAME=SIZE fixes one, NAME=MIN..MAX gives its range, NAME=1,8,MIN..MAX "
              "code of their own for some\n";
    for (const llvm::json::Value &name : *symbols)
      stream << "  " << *name.getAsString() << "\n";
  }
  // Sizes without a name get one when the model is compiled.
  auto findUnnamed = [&]() -> std::string {
    for (const llvm::json::Value &entry : *model.getArray("inputs"))
      if (const Array *dims = entry.getAsObject()->getArray("dims"))
        for (auto [i, size] : llvm::enumerate(*dims))
          if (size.getAsString() == StringRef("?"))
            return entry.getAsObject()->getString("name")->str() + "_dim" + std::to_string(i);
    return "";
  };
  if (std::string name = findUnnamed(); !name.empty())
    stream << "sizes shown as ?: tc-compile names them after input and position, as in --dim " << name << "=SIZE\n";
  const Array &operators = *model.getArray("operators");
  const int64_t nodes = *model.getInteger("node_count");
  stream << "operators: " << operators.size() << " in " << nodes << (nodes == 1 ? " node" : " nodes") << "\n";
  for (const llvm::json::Value &entry : operators) {
    const Object &op = *entry.getAsObject();
    StringRef domain = *op.getString("domain"), support = *op.getString("support");
    std::string name =
        (domain == "ai.onnx" || domain == "aten" ? "" : domain + ".").str() + op.getString("type")->str();
    StringRef remark = support == "none" ? "  not supported; tc-compile --explain says more, --custom-op takes your own"
                       : support == "function of the model" ? "  function of the model"
                                                            : "";
    stream << llvm::formatv("  {0,-24} {1,6}{2}\n", name, *op.getInteger("count"), remark);
  }
  if (const Array *functions = model.getArray("functions"); functions && !functions->empty()) {
    stream << "functions of its own\n";
    for (const llvm::json::Value &name : *functions)
      stream << "  " << *name.getAsString() << "\n";
  }
  const Object &parameters = *model.getObject("parameters");
  auto describe = [](const Object &amount) {
    const int64_t elements = *amount.getInteger("elements"), tensors = *amount.getInteger("tensors");
    return std::to_string(elements) + " in " + std::to_string(tensors) + (tensors == 1 ? " tensor, " : " tensors, ") +
           formatBytes(*amount.getInteger("bytes"));
  };
  stream << "parameters and other constants: " << describe(parameters) << "\n";
  for (const auto &[dtype, value] : *parameters.getObject("dtypes"))
    row(StringRef(dtype), describe(*value.getAsObject()));
  if (const Object *metadata = model.getObject("metadata"); metadata && !metadata->empty()) {
    stream << "metadata\n";
    for (const auto &[key, value] : *metadata)
      row(StringRef(key), value.getAsString()->str());
  }
}
