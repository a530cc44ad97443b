//===- ImportTorchScript.cpp - archives of torch.jit.save (.pt) to graph ------------------------------------------===//
//
// Reads the module object and its tensors from data.pkl, decides the types of forward's inputs, runs forward, and makes
// outputs of what it returns.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Frontend/TorchScript.h"

#include "Archive.h"
#include "Interpreter.h"
#include "ScalarTypes.h"

#include "tc/Dialect/Graph/IR/Graph.h"
#include "tc/Dialect/Graph/IR/Layouts.h"
#include "tc/Dialect/Graph/IR/Signature.h"
#include "tc/Dialect/TC/IR/TC.h"
#include "tc/Frontend/Torch/TorchArchive.h"

using namespace mlir;
using namespace tc;
using namespace tc::torchscript;
using llvm::StringRef;
using llvm::Twine;
using torch::PickledValue;

namespace {

/// Versions of the operators that archives may be written against (torch/csrc/jit/serialization: kMinSupported...).
constexpr int64_t kMinVersion = 1, kMaxVersion = 10;

class CodeArchive : public Archive {
public:
  explicit CodeArchive(torch::TorchArchive &archive) : archive(archive) {}

protected:
  llvm::Expected<std::optional<std::string>> readCode(StringRef path) override {
    if (!archive.has(path))
      return std::nullopt;
    llvm::Expected<ZipArchive::Contents> contents = archive.read(path);
    if (!contents)
      return contents.takeError();
    return std::string(contents->text());
  }
  std::optional<torch::Pickle> readRanges(StringRef path) override {
    llvm::Expected<torch::Pickle> pickle = archive.has(path) ? archive.pickle(path) : llvm::createStringError("");
    if (pickle)
      return std::move(*pickle);
    llvm::consumeError(pickle.takeError()); // messages have fewer lines
    return std::nullopt;
  }

private:
  torch::TorchArchive &archive;
};

class Importer {
public:
  Importer(MLIRContext *context, StringRef path, const TorchScriptOptions &options)
      : context(context), path(path), options(options), builder(context), unknown(builder.getUnknownLoc()) {}

  llvm::Expected<OwningOpRef<ModuleOp>> run();
  /// What a run knows of its states that this import did not; empty where all is known.
  bool learnStates(llvm::StringSet<> &newChanging, llvm::StringSet<> &newKept) const {
    bool isNew = false;
    for (const std::string &state : interpreter ? interpreter->getStaleStates() : std::vector<std::string>())
      isNew |= newChanging.insert(state).second;
    for (const auto &entry : interpreter ? interpreter->getAttributesToKeep() : llvm::StringSet<>())
      isNew |= newKept.insert(entry.getKey()).second;
    return isNew;
  }
  /// States whose numbers only a run knows.
  llvm::StringSet<> changing;
  /// Attributes that get other values from run to run.
  llvm::StringSet<> kept;

private:
  llvm::Error error(const Twine &what) { return llvm::createStringError(path + ": error: " + what); }
  /// What the interpreter said.
  llvm::Error said() { return error(interpreter->message()); }
  llvm::Error readVersion();
  llvm::Error readTracedInputs();
  llvm::Error addInputs(const Function &forward);
  llvm::Error addInput(const std::string &name, const Expr &type, const Parameter &parameter,
                       const PickledValue *traced, PyValue &value);
  llvm::Expected<PyValue> addTensor(const std::string &name, const PickledValue *traced);
  /// A value of a pickle. `name`: where the module has it, "layer1.0.conv1.weight".
  llvm::Expected<PyValue> toValue(const PickledValue &value, const std::string &name, StringRef storages);
  llvm::Error readPacked(const PickledValue &value, const std::string &name, StringRef storages, Held &packed);
  llvm::Expected<PyValue> toQuantized(const PickledValue &value, const std::string &name, StringRef storages);
  llvm::Expected<PyValue> toTensor(const PickledValue &value, const std::string &name, StringRef storages);
  llvm::Error addOutputs(const PyValue &value, const std::string &name, int depth = 0);
  bool isGiven(const std::string &name) const {
    return options.inputs.count(name) > 0 ||
           llvm::any_of(options.inputs, [&](auto &entry) { return StringRef(entry.first).starts_with(name + "."); });
  }

  MLIRContext *context;
  StringRef path;
  const TorchScriptOptions &options;
  OpBuilder builder;
  Location unknown;
  std::optional<torch::TorchArchive> archive;
  std::optional<CodeArchive> code;
  void markSharedStates();
  /// Of a tensor that the code may write: where it lies in its storage, in elements.
  struct State {
    std::string name, storage;
    int64_t first, last;
    graph::ConstantOp constant;
  };
  std::vector<State> states;
  std::optional<Interpreter> interpreter;
  std::vector<std::pair<Held *, StringRef>> keptAttributes;
  llvm::DenseSet<mlir::Value> sharedTensors; ///< of several attributes
  int64_t version = 0;
  std::optional<torch::Pickle> traced;
  std::vector<const PickledValue *> tracedInputs;
  llvm::DenseMap<const PickledValue *, PyValue> known;

  graph::FuncOp function;
  std::vector<PyValue> arguments; // of forward
  SmallVector<Type> argumentTypes;
  SmallVector<DictionaryAttr> argumentAttrs;
  std::vector<std::string> missing, openNames;
  SmallVector<mlir::Value> outputs;
  std::vector<std::string> outputNames;
  int64_t visitedOutputs = 0;
};

/// "x=1,3,224,224:f32": what --shape should say of an input.
std::string exampleOf(const std::string &name, StringRef type) {
  return "--shape " + name + (type == "int" ? "=:i64" : type == "float" ? "=:f64" : "=1,3,224,224:f32");
}

llvm::Error Importer::readVersion() {
  const char *member = archive->has(".data/version") ? ".data/version" : "version";
  if (!archive->has(member))
    return error("the archive has no member \"version\"; save the model again with torch.jit.save");
  llvm::Expected<ZipArchive::Contents> text = archive->read(member);
  if (!text)
    return error(llvm::toString(text.takeError()));
  StringRef number = StringRef(text->text()).trim();
  if (number.getAsInteger(10, version) || version < kMinVersion || version > kMaxVersion)
    return error("version \"" + number.take_front(20) +
                 "\" of TorchScript's archives is not supported; supported are " + Twine(kMinVersion) + " to " +
                 Twine(kMaxVersion) + ": load the model with the PyTorch that wrote it, and save it again");
  return llvm::Error::success();
}

llvm::Error Importer::readTracedInputs() {
  if (!archive->has("traced_inputs.pkl"))
    return llvm::Error::success();
  llvm::Expected<torch::Pickle> pickle = archive->pickle("traced_inputs.pkl");
  if (!pickle)
    return error(llvm::toString(pickle.takeError()));
  traced.emplace(std::move(*pickle));
  if (const PickledValue *inputs = traced->root().find("forward"))
    tracedInputs = inputs->items;
  return llvm::Error::success();
}

//===--- values of the archive ------------------------------------------------------------------------------------===//

/// The integers of a quantised tensor, of which the interpreter remembers what they stand for.
llvm::Expected<PyValue> Importer::toQuantized(const PickledValue &value, const std::string &name, StringRef storages) {
  const torch::PickledTensor::Quantization &how = *value.tensor->quantization;
  llvm::Expected<base::DataAttr> data = archive->integers(*value.tensor, storages);
  if (!data)
    return error("tensor \"" + name + "\": " + llvm::toString(data.takeError()));
  Location loc = NameLoc::get(builder.getStringAttr(name));
  PyValue integers =
      PyValue::ofGraph(Kind::Tensor, graph::ConstantOp::create(builder, loc, data->getType(), *data).getResult());
  const int64_t dtype = int64_t(value.tensor->dtype);
  if (!how.scales)
    return interpreter->markQuantized(integers,
                                      {PyValue::ofFloat(how.scale), PyValue::ofInt(how.zeroPoint), {}, dtype});
  llvm::Expected<PyValue> scales = toTensor(*how.scales, name + ".scales", storages);
  if (!scales)
    return scales;
  llvm::Expected<PyValue> zeros = toTensor(*how.zeroPoints, name + ".zero_points", storages);
  if (!zeros)
    return zeros;
  // PyTorch computes with them in f32.
  Result narrow = interpreter->callATen("to", {*scales, PyValue::ofInt(int64_t(torch::ScalarType::Float))}, {}, {});
  if (!narrow)
    return said();
  return interpreter->markQuantized(integers, {*narrow, *zeros, how.axis, dtype});
}

llvm::Expected<PyValue> Importer::toTensor(const PickledValue &value, const std::string &name, StringRef storages) {
  if (value.tensor->quantization && !value.tensor->isConjugated && !value.tensor->isNegated)
    return toQuantized(value, name, storages);
  llvm::Expected<base::DataAttr> data = archive->tensor(*value.tensor, storages);
  if (!data)
    return error("tensor \"" + name + "\": " + llvm::toString(data.takeError()));
  Location loc = NameLoc::get(builder.getStringAttr(name));
  auto constant = graph::ConstantOp::create(builder, loc, data->getType(), *data);
  const torch::PickledTensor &stored = *value.tensor;
  if (storages == "data") { // parameters and buffers, which the code may write
    constant->setAttr(graph::kStateAttr, builder.getStringAttr(name));
    int64_t last = stored.offset;
    for (auto [size, stride] : llvm::zip_equal(stored.sizes, stored.strides))
      last += (size - 1) * stride;
    if (stored.storage && !llvm::is_contained(stored.sizes, 0))
      states.push_back({name, stored.storage->key, stored.offset, last, constant});
  }
  // How it lies in memory says which operators give views of it.
  if (!graph::isRowMajor(stored.sizes, stored.strides))
    constant->setAttr(graph::kLayoutsAttr,
                      builder.getArrayAttr(graph::makeLayoutEntry(builder, stored.sizes, stored.strides)));
  PyValue tensor = PyValue::ofGraph(Kind::Tensor, constant);
  auto type = cast<RankedTensorType>(data->getType());
  if (changing.contains(name))
    interpreter->forgetNumbers(constant);
  else if (type.getRank() == 0 && type.getElementType().isInteger(64))
    if (FailureOr<ArrayRef<char>> bytes = base::getBytes(*data); succeeded(bytes) && bytes->size() == 8) {
      tensor.held = interpreter->newHeld();
      tensor.held->items = {PyValue::ofInt(base::readElement<int64_t>(*bytes, 0))};
    }
  return tensor;
}

/// The parameters of a quantised layer, as its prepack operator holds them; other objects stay as they are. Source:
/// ATen/native/quantized/cpu/{conv_serialization.h,qlinear_prepack.cpp}.
llvm::Error Importer::readPacked(const PickledValue &value, const std::string &name, StringRef storages, Held &packed) {
  using PickleKind = PickledValue::Kind;
  const StringRef kind = StringRef(value.text).rsplit('.').second;
  const PickledValue *state = value.state;
  auto isOf = [](const PickledValue *part, PickleKind wanted, size_t count) {
    return part && part->kind == wanted && part->items.size() >= count;
  };
  std::vector<const PickledValue *> parts;
  std::vector<PyValue> sizes;
  std::string prepack;
  if (kind == "LinearPackedParamsBase" && isOf(state, PickleKind::Tuple, 2)) {
    prepack = "quantized::linear_prepack";
    parts = {state->items[0], state->items[1]};
  } else if (kind.starts_with("Conv") && kind.ends_with("dPackedParamsBase") && isOf(state, PickleKind::Tuple, 3) &&
             state->items[0]->isString() && state->items[0]->text == "2" &&
             isOf(state->items[1], PickleKind::List, 2) && isOf(state->items[2], PickleKind::List, 1) &&
             state->items[1]->items[0]->kind == PickleKind::Tensor) {
    // Dims, then for each of them stride, padding, dilation and output padding; groups, and whether it is transposed.
    llvm::Expected<base::DataAttr> config = archive->tensor(*state->items[1]->items[0]->tensor, storages);
    if (!config)
      return error("tensor \"" + name + "\": " + llvm::toString(config.takeError()));
    FailureOr<ArrayRef<char>> bytes = base::getBytes(*config);
    auto number = [&](size_t i) { return int64_t(base::readElement<int16_t>(*bytes, i)); };
    const bool isShort = config->getType().getElementType().isInteger(16) && succeeded(bytes) && bytes->size() >= 2;
    const int64_t dims = isShort ? number(0) : 0;
    if (dims < 1 || dims > 3 || bytes->size() != size_t(2 * (4 * dims + 3)) || number(size_t(4 * dims + 2)) != 0)
      return llvm::Error::success();
    prepack = "quantized::conv" + std::to_string(dims) + "d_prepack";
    parts = {state->items[1]->items[1], state->items[2]->items[0]};
    for (size_t group : {0, 1, 2}) {
      std::vector<PyValue> list;
      for (size_t i = 0; i < size_t(dims); ++i)
        list.push_back(PyValue::ofInt(number(1 + group * size_t(dims) + i)));
      sizes.push_back(interpreter->makeList(list, "int"));
    }
    sizes.push_back(PyValue::ofInt(number(size_t(4 * dims + 1))));
  } else {
    return llvm::Error::success();
  }
  for (const PickledValue *part : parts) {
    llvm::Expected<PyValue> item = toValue(*part, name, storages);
    if (!item)
      return item.takeError();
    packed.items.push_back(*item);
  }
  packed.items.insert(packed.items.end(), sizes.begin(), sizes.end());
  packed.text = prepack;
  return llvm::Error::success();
}

llvm::Expected<PyValue> Importer::toValue(const PickledValue &value, const std::string &name, StringRef storages) {
  if (auto found = known.find(&value); found != known.end()) {
    if (found->second.isTensor() && found->second.graph)
      sharedTensors.insert(found->second.graph);
    return found->second;
  }
  auto items = [&](std::vector<PyValue> &all) -> llvm::Error {
    for (auto [i, item] : llvm::enumerate(value.items)) {
      llvm::Expected<PyValue> converted = toValue(*item, name + "." + std::to_string(i), storages);
      if (!converted)
        return converted.takeError();
      all.push_back(*converted);
    }
    return llvm::Error::success();
  };
  PyValue result;
  switch (value.kind) {
  case PickledValue::Kind::None:
    break;
  case PickledValue::Kind::Bool:
    result = PyValue::ofBool(value.integer);
    break;
  case PickledValue::Kind::Int:
  case PickledValue::Kind::ScalarType:
    result = PyValue::ofInt(value.integer);
    break;
  case PickledValue::Kind::Float:
    result = PyValue::ofFloat(value.real);
    break;
  case PickledValue::Kind::Complex:
    result = PyValue::ofFloat(value.imaginary);
    result.kind = Kind::Complex;
    break;
  case PickledValue::Kind::String:
  case PickledValue::Kind::Bytes:
    result = interpreter->makeString(value.text);
    break;
  case PickledValue::Kind::Device:
    result = interpreter->makeDevice(value.text);
    break;
  case PickledValue::Kind::Tuple:
  case PickledValue::Kind::List: {
    std::vector<PyValue> all;
    if (llvm::Error e = items(all))
      return std::move(e);
    StringRef element = value.text;
    if (!element.consume_front("List[") || !element.consume_back("]"))
      element = "";
    result = value.kind == PickledValue::Kind::List ? interpreter->makeList(std::move(all), element)
                                                    : interpreter->makeTuple(std::move(all));
    break;
  }
  case PickledValue::Kind::Dict: {
    std::vector<PyValue> all;
    if (llvm::Error e = items(all))
      return std::move(e);
    result = PyValue::ofHeld(Kind::Dict, interpreter->newHeld());
    for (size_t i = 0; i + 1 < all.size(); i += 2) {
      result.held->keys.push_back(all[i]);
      result.held->items.push_back(all[i + 1]);
    }
    break;
  }
  case PickledValue::Kind::Tensor: {
    llvm::Expected<PyValue> tensor = toTensor(value, name, storages);
    if (!tensor)
      return tensor.takeError();
    result = *tensor;
    break;
  }
  case PickledValue::Kind::Object: {
    if (StringRef(value.text).contains("torch.classes.")) {
      // Whose code is not in the archive: what uses it is refused, but for layers' parameters.
      result = PyValue::ofHeld(Kind::Object, interpreter->newHeld());
      result.held->text = value.text;
      result.held->path = name;
      if (llvm::Error e = readPacked(value, name, storages, *result.held))
        return std::move(e);
      return known[&value] = result;
    }
    auto [qualifier, className] = StringRef(value.text).rsplit('.');
    llvm::Expected<const SourceFile *> file = code->findSource(qualifier);
    if (!file)
      return error(llvm::toString(file.takeError()));
    const ClassDef *type = *file ? (*file)->classes.lookup(className) : nullptr;
    if (!type)
      return error("\"" + name + "\" is an object of class " + value.text +
                   ", which the archive has no code of; the archive is damaged");
    if (type->base == "Enum") {
      if (!value.arguments || value.arguments->kind == PickledValue::Kind::Tuple)
        return error("\"" + name + "\" is of the enum " + value.text + ", but has no value; the archive is damaged");
      llvm::Expected<PyValue> wanted = toValue(*value.arguments, name, storages);
      if (!wanted)
        return wanted.takeError();
      Result found = interpreter->enumOf(type, *file, *wanted);
      if (!found)
        return said();
      return *found;
    }
    result = PyValue::ofHeld(Kind::Object, interpreter->newHeld());
    result.held->type = type;
    result.held->file = *file;
    result.held->path = name;
    known[&value] = result;
    if (!value.state || value.state->isNone())
      return result;
    if (value.state->kind != PickledValue::Kind::Dict) {
      llvm::Expected<PyValue> state = toValue(*value.state, name, storages);
      if (!state)
        return state.takeError();
      if (!interpreter->callMethod(result, "__setstate__", *state, {}, Position()))
        return said();
      return result;
    }
    for (size_t i = 0; i + 1 < value.state->items.size(); i += 2) {
      const PickledValue &key = *value.state->items[i];
      if (!key.isString())
        return error("\"" + name + "\" has an attribute without a name; the archive is damaged");
      const std::string itemName = name.empty() ? key.text : name + "." + key.text;
      llvm::Expected<PyValue> item = toValue(*value.state->items[i + 1], itemName, storages);
      if (!item)
        return item.takeError();
      const StringRef attribute = interpreter->keepText(key.text);
      result.held->attributes[attribute] = *item;
      if (kept.contains(itemName))
        keptAttributes.push_back({result.held, attribute});
    }
    return result;
  }
  case PickledValue::Kind::Storage:
  case PickledValue::Kind::Symbol:
    return error("\"" + name + "\" is " + value.text + ", which is no value of a model; the archive is damaged");
  }
  known[&value] = result;
  return result;
}

//===--- inputs ---------------------------------------------------------------------------------------------------===//

llvm::Expected<PyValue> Importer::addTensor(const std::string &name, const PickledValue *traced) {
  SmallVector<int64_t> sizes;
  SmallVector<std::string> dims;
  Type element = builder.getF32Type();
  const torch::PickledTensor *example =
      traced && traced->kind == PickledValue::Kind::Tensor ? traced->tensor.get() : nullptr;
  if (example) {
    element = torch::elementType(context, example->dtype);
    if (!element)
      return error("input \"" + name +
                   "\" was traced with an element type that tc does not know; trace the model with "
                   "floats, integers or bools");
    for (int64_t size : example->sizes)
      sizes.push_back(size);
  }
  if (auto given = options.inputs.find(name); given != options.inputs.end()) {
    const TorchScriptInput &input = given->second;
    if (example && input.sizes.size() != sizes.size())
      return error("input \"" + name + "\": --shape has " + Twine(input.sizes.size()) +
                   " sizes, but the model was traced with " + Twine(sizes.size()));
    sizes.assign(input.sizes.begin(), input.sizes.end());
    dims.assign(input.names.begin(), input.names.end());
    if (!input.elementType.empty() && !(element = typeOfWord(context, input.elementType)))
      return error("input \"" + name + "\": \"" + input.elementType +
                   "\" is no element type; there are f16, bf16, f32, f64, i8, i16, i32, i64, u8, bool");
  }
  dims.resize(sizes.size());
  for (auto [i, size] : llvm::enumerate(sizes)) {
    std::string open = name + "." + std::to_string(i);
    if (llvm::is_contained(options.openDims, open)) {
      size = -1;
      dims[i] = open;
    }
    if (size < 0) {
      size = ShapedType::kDynamic;
      if (dims[i].empty())
        dims[i] = open;
    }
  }
  argumentTypes.push_back(RankedTensorType::get(sizes, element));
  auto names = llvm::map_to_vector(dims, [](const std::string &dim) { return StringRef(dim); });
  argumentAttrs.push_back(
      builder.getDictionaryAttr({builder.getNamedAttr(graph::kNameAttr, builder.getStringAttr(name)),
                                 builder.getNamedAttr(graph::kDimsAttr, builder.getStrArrayAttr(names))}));
  Location loc = NameLoc::get(builder.getStringAttr(name));
  return PyValue::ofGraph(Kind::Tensor, function.getBody().front().addArgument(argumentTypes.back(), loc));
}

llvm::Error Importer::addInput(const std::string &name, const Expr &type, const Parameter &parameter,
                               const PickledValue *traced, PyValue &value) {
  const bool isGeneric = type.kind == ExprKind::Subscript && type.operands[0]->kind == ExprKind::Name;
  StringRef word = isGeneric ? type.operands[0]->text : type.kind == ExprKind::Name ? type.text : StringRef();
  if (!isGeneric && (word == "Optional" || word == "List" || word == "Tuple" || word == "Dict"))
    return error("input \"" + name + "\" is of the type " + word +
                 ", which does not say what it holds; write it with types in brackets, as " + word +
                 (word == "Dict" ? "[str, Tensor]" : "[Tensor]"));
  if (word == "Optional") {
    if (isGiven(name) || (traced && !traced->isNone()))
      return addInput(name, *type.operands[1], parameter, traced, value);
    value = PyValue(); // what callers that have nothing to say give
    return llvm::Error::success();
  }
  if (word == "Tensor") {
    if (!isGiven(name) && !traced) {
      missing.push_back(exampleOf(name, word));
      return llvm::Error::success();
    }
    llvm::Expected<PyValue> tensor = addTensor(name, traced);
    if (!tensor)
      return tensor.takeError();
    value = *tensor;
    return llvm::Error::success();
  }
  if (word == "List" || word == "Tuple" || word == "Dict") {
    // One input for each tensor inside: x.0, x.1, or x.key.
    bool isTraced = traced && !traced->items.empty();
    std::vector<PyValue> items;
    std::vector<std::string> keys;
    size_t count = word == "Tuple" ? type.operands.size() - 1 : 0;
    if (word == "Dict") {
      if (isTraced)
        for (size_t i = 0; i + 1 < traced->items.size(); i += 2)
          keys.push_back(traced->items[i]->text);
      else
        for (auto &entry : options.inputs)
          if (StringRef(entry.first).starts_with(name + "."))
            keys.push_back(entry.first.substr(name.size() + 1));
      count = keys.size();
    } else if (word == "List") {
      if (isTraced)
        count = traced->items.size();
      else
        while (isGiven(name + "." + std::to_string(count)))
          ++count;
    }
    if (word == "Tuple" && isTraced && traced->items.size() != count)
      return error("input \"" + name + "\" is a tuple of " + Twine(count) + ", but the traced one has " +
                   Twine(traced->items.size()) + "; the archive is damaged");
    if (count == 0) {
      missing.push_back(exampleOf(name + (word == "Dict" ? ".KEY" : ".0"), "Tensor"));
      return llvm::Error::success();
    }
    for (size_t i = 0; i < count; ++i) {
      std::string itemName = name + "." + (word == "Dict" ? keys[i] : std::to_string(i));
      const Expr &itemType = *type.operands[word == "Tuple" ? i + 1 : word == "Dict" ? 2 : 1];
      const PickledValue *item = isTraced ? traced->items[word == "Dict" ? 2 * i + 1 : i] : nullptr;
      items.emplace_back();
      if (llvm::Error e = addInput(itemName, itemType, parameter, item, items.back()))
        return e;
    }
    if (word == "List") {
      value = interpreter->makeList(std::move(items), "Tensor");
    } else if (word == "Tuple") {
      value = interpreter->makeTuple(std::move(items));
    } else {
      value = PyValue::ofHeld(Kind::Dict, interpreter->newHeld());
      for (auto [key, item] : llvm::zip_equal(keys, items)) {
        value.held->keys.push_back(interpreter->makeString(key));
        value.held->items.push_back(item);
      }
    }
    return llvm::Error::success();
  }
  if (word == "int" || word == "float" || word == "bool") {
    if (traced && traced->kind != PickledValue::Kind::Tensor) {
      llvm::Expected<PyValue> constant = toValue(*traced, name, "traced_inputs");
      if (!constant)
        return constant.takeError();
      value = *constant;
      return llvm::Error::success();
    }
    if (!isGiven(name)) {
      missing.push_back(exampleOf(name, word));
      return llvm::Error::success();
    }
    llvm::Expected<PyValue> number = addTensor(name, nullptr);
    if (!number)
      return number.takeError();
    Type element = cast<RankedTensorType>(argumentTypes.back()).getElementType();
    Type wanted = word == "int"     ? Type(builder.getI64Type())
                  : word == "float" ? Type(builder.getF64Type())
                                    : Type(builder.getI1Type());
    if (element != wanted || cast<RankedTensorType>(argumentTypes.back()).getRank() != 0)
      return error("input \"" + name + "\" is one " + word + ": " +
                   (word == "int"     ? "--shape " + name + "=:i64"
                    : word == "float" ? "--shape " + name + "=:f64"
                                      : "--shape " + name + "=:bool"));
    value = PyValue::ofGraph(word == "int"     ? Kind::SymInt
                             : word == "float" ? Kind::SymFloat
                                               : Kind::SymBool,
                             number->graph);
    return llvm::Error::success();
  }
  return error("input \"" + name +
               "\" is of a type that is not supported; supported are tensors, int, float, bool, and "
               "lists, tuples and dicts of them: give it a default in the model, or wrap the model");
}

llvm::Error Importer::addInputs(const Function &forward) {
  auto tracedAt = [&](size_t i) { return i < tracedInputs.size() ? tracedInputs[i] : nullptr; };
  for (size_t i = 1; i < forward.parameters.size(); ++i) {
    const Parameter &parameter = forward.parameters[i];
    std::string name = parameter.name.str();
    if (parameter.defaultValue && !isGiven(name) && !tracedAt(i - 1))
      break; // this one and those that follow keep their defaults, but for the ones that are given by name below
    if (!parameter.type)
      return error("input \"" + name + "\" has no type; the archive is damaged");
    arguments.emplace_back();
    if (llvm::Error e = addInput(name, *parameter.type, parameter, tracedAt(i - 1), arguments.back()))
      return e;
  }
  if (missing.empty())
    return llvm::Error::success();
  std::string all;
  for (const std::string &text : missing)
    all += " " + text;
  return error(Twine(missing.size() > 1 ? "inputs" : "an input") +
               " without sizes and element types, which a scripted "
               "model does not hold; say to tc-compile what the model is to take, for instance:" +
               all + ", and give the artifact to tc-inspect and tc-bench");
}

//===--- outputs --------------------------------------------------------------------------------------------------===//

llvm::Error Importer::addOutputs(const PyValue &value, const std::string &name, int depth) {
  if (depth > 16 || ++visitedOutputs > 100'000)
    return error("the outputs of the model nest too deeply, or are more than 100,000; give back fewer");
  if (value.isTensor() && interpreter->isQuantized(value))
    return error("output " + (name.empty() ? "" : "\"" + name + "\" ") +
                 "of the model is a quantised tensor, which is not supported; give back the result of dequantize()");
  switch (value.kind) {
  case Kind::None:
  case Kind::String: // known when the model is compiled
  case Kind::Device:
    return llvm::Error::success();
  case Kind::Tensor:
  case Kind::SymInt:
  case Kind::SymFloat:
  case Kind::SymBool:
  case Kind::Int:
  case Kind::Float:
  case Kind::Bool:
    outputs.push_back(interpreter->materialize(value));
    outputNames.push_back(name.empty() ? "output_0" : name);
    return llvm::Error::success();
  case Kind::List:
  case Kind::Tuple:
    for (auto [i, item] : llvm::enumerate(value.held->items)) {
      std::string part = value.held->type && i < value.held->type->fields.size()
                             ? value.held->type->fields[i].name.str()
                             : std::to_string(i);
      bool isPlain = name.empty() && !value.held->type;
      if (llvm::Error e = addOutputs(item,
                                     isPlain        ? "output_" + part
                                     : name.empty() ? part
                                                    : name + "." + part,
                                     depth + 1))
        return e;
    }
    return llvm::Error::success();
  case Kind::Dict:
    for (auto [key, item] : llvm::zip_equal(value.held->keys, value.held->items)) {
      std::string part = toText(key).value_or("?");
      if (llvm::Error e = addOutputs(item, name.empty() ? part : name + "." + part, depth + 1))
        return e;
    }
    return llvm::Error::success();
  default:
    return error("output " + (name.empty() ? "" : "\"" + name + "\" ") + "of the model is " +
                 torchscript::describe(value) +
                 "; supported are tensors, numbers, and lists, tuples and dicts of them");
  }
}

/// Each state has memory of its own, so that what is written of one is not seen in another: functionalisation refuses
/// such writes.
void Importer::markSharedStates() {
  for (State &written : states) {
    if (!interpreter->writesState(written.name))
      continue;
    for (const State &other : states)
      if (&written != &other && written.storage == other.storage && written.first <= other.last &&
          other.first <= written.last)
        written.constant->setAttr(graph::kSharesAttr, builder.getStringAttr(other.name));
  }
}

llvm::Expected<OwningOpRef<ModuleOp>> Importer::run() {
  context->loadDialect<graph::GraphDialect, base::TCDialect>();
  llvm::Expected<StringRef> blob = base::getBlobStore(context).addFile(path);
  if (!blob)
    return blob.takeError();
  llvm::Expected<torch::TorchArchive> opened = torch::TorchArchive::open(context, *blob);
  if (!opened)
    return error(llvm::toString(opened.takeError()));
  archive.emplace(std::move(*opened));
  code.emplace(*archive);
  if (llvm::Error e = readVersion())
    return std::move(e);
  llvm::Expected<torch::Pickle> data = archive->pickle("data.pkl");
  if (!data)
    return error(llvm::toString(data.takeError()));
  llvm::Expected<torch::Pickle> constants = archive->pickle("constants.pkl");
  if (!constants)
    return error(llvm::toString(constants.takeError()));
  if (llvm::Error e = readTracedInputs())
    return std::move(e);

  const PickledValue &root = data->root();
  if (root.kind != PickledValue::Kind::Object)
    return error("the archive holds values, but no module; save a module with torch.jit.save");
  auto [qualifier, className] = StringRef(root.text).rsplit('.');
  llvm::Expected<const SourceFile *> file = code->findSource(qualifier);
  if (!file)
    return error(llvm::toString(file.takeError()));
  const ClassDef *type = *file ? (*file)->classes.lookup(className) : nullptr;
  const Function *forward = type ? type->findMethod("forward") : nullptr;
  if (!forward)
    return error("the module of class " + root.text + " has no method forward; script or trace a module that has");
  if (!type->preHooks.empty() || !type->hooks.empty())
    return error("the module has hooks around its forward, which are not supported; wrap it in a module without");
  if (forward->parameters.empty())
    return error("forward of class " + root.text + " has no parameter; the archive is damaged");

  OwningOpRef<ModuleOp> module = ModuleOp::create(unknown);
  builder.setInsertionPointToEnd(module->getBody());
  function = graph::FuncOp::create(builder, unknown, "main", builder.getFunctionType({}, {}));
  function.setOpsetsAttr(builder.getDictionaryAttr({builder.getNamedAttr("ai.onnx", builder.getI64IntegerAttr(19)),
                                                    builder.getNamedAttr("aten", builder.getI64IntegerAttr(1))}));
  builder.setInsertionPointToEnd(&function.getBody().emplaceBlock());
  interpreter.emplace(*code, builder);
  interpreter->setVersion(version);
  interpreter->setCustomOperators(options.customOperators);
  interpreter->setChangingStates(changing);
  if (llvm::Error e = addInputs(*forward))
    return std::move(e);
  function.setFunctionTypeAttr(TypeAttr::get(builder.getFunctionType(argumentTypes, {})));
  function.setAllArgAttrs(argumentAttrs);
  if (options.makeOracle)
    interpreter->setOracle(options.makeOracle(function));

  std::vector<PyValue> table;
  for (auto [i, item] : llvm::enumerate(constants->root().items)) {
    llvm::Expected<PyValue> value = toValue(*item, "CONSTANTS.c" + std::to_string(i), "constants");
    if (!value)
      return value.takeError();
    table.push_back(*value);
  }
  interpreter->setConstants(std::move(table));
  llvm::Expected<PyValue> object = toValue(root, "", "data");
  if (!object)
    return object.takeError();
  interpreter->freezeObjects();
  for (auto [held, attribute] : keptAttributes)
    if (!sharedTensors.contains(held->attributes.lookup(attribute).graph))
      interpreter->keepAttribute(held, attribute); // or what sets it is refused
  Result result = interpreter->callMethod(*object, "forward", arguments, {}, forward->at);
  if (!result && !interpreter->hasRefusals())
    return said();
  if (!interpreter->setKeptStates(forward->at) && !interpreter->hasRefusals())
    return said();

  markSharedStates();
  interpreter->setTypes(function);
  // So that nothing is taken for a model that lacks what was refused, or what was passed over behind it.
  if (interpreter->hasRefusals())
    result = interpreter->makeUnknown(forward->at);
  if (llvm::Error e = addOutputs(*result, ""))
    return std::move(e);
  if (outputs.empty() && !interpreter->writesTensors())
    return error("forward returns no tensor, and writes none; a model must have an output");
  SmallVector<DictionaryAttr> outputAttrs;
  for (const std::string &name : outputNames)
    outputAttrs.push_back(
        builder.getDictionaryAttr(builder.getNamedAttr(graph::kNameAttr, builder.getStringAttr(name))));
  graph::YieldOp::create(builder, unknown, outputs);
  function.setFunctionTypeAttr(TypeAttr::get(builder.getFunctionType(argumentTypes, ValueRange(outputs).getTypes())));
  function.setAllResultAttrs(outputAttrs);
  (*module)->setAttr(graph::kProducerAttr, builder.getStringAttr("TorchScript " + std::to_string(version)));
  if (failed(module->verify()))
    return error("the program is not well-formed");
  return module;
}

} // namespace

llvm::Expected<OwningOpRef<ModuleOp>> tc::importTorchScript(MLIRContext *context, StringRef path,
                                                            const TorchScriptOptions &options) {
  llvm::StringSet<> changing, kept;
  for (;;) {
    Importer importer(context, path, options);
    importer.changing = changing;
    importer.kept = kept;
    llvm::Expected<OwningOpRef<ModuleOp>> module = importer.run();
    if (!importer.learnStates(changing, kept))
      return module;
    if (!module)
      llvm::consumeError(module.takeError()); // what is wrong still is so in the next turn
  }
}

bool tc::isTorchScript(MLIRContext *context, StringRef path) {
  llvm::Expected<StringRef> blob = base::getBlobStore(context).addFile(path);
  llvm::Expected<torch::TorchArchive> archive = blob ? torch::TorchArchive::open(context, *blob) : blob.takeError();
  if (!archive) {
    llvm::consumeError(archive.takeError()); // whoever reads it next says what is wrong
    return false;
  }
  return archive->has("constants.pkl") && archive->has("data.pkl");
}
