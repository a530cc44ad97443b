//===- PickleGlobals.cpp - the names that pickles may ask for -----------------------------------------------------===//
//
// Sources: torch/_utils.py, torch/_tensor.py, torch/serialization.py, torch/jit/_pickle.py and
// torch/csrc/jit/serialization/{pickler,unpickler}.cpp. Names of PyTorch's own stay readable over its versions.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Unpickler.h"

using namespace tc::torch;

namespace {

/// Names that stand for themselves.
constexpr std::string_view symbols[] = {"torch.strided",
                                        "torch.sparse_coo",
                                        "torch.sparse_csr",
                                        "torch.sparse_csc",
                                        "torch.sparse_bsr",
                                        "torch.sparse_bsc",
                                        "torch.jagged",
                                        "torch.contiguous_format",
                                        "torch.channels_last",
                                        "torch.channels_last_3d",
                                        "torch.preserve_format",
                                        "torch.per_tensor_affine",
                                        "torch.per_tensor_symmetric",
                                        "torch.per_channel_affine",
                                        "torch.per_channel_symmetric",
                                        "torch.per_channel_affine_float_qparams",
                                        "torch.Tensor",
                                        "torch.nn.parameter.Parameter",
                                        "torch.nn.parameter.Buffer",
                                        "torch.UntypedStorage",
                                        "torch.storage.UntypedStorage",
                                        "torch.storage._UntypedStorage"};

/// What is refused with more than its name.
constexpr struct {
  std::string_view prefix, what;
} refusals[] = {
    {"torch._utils._rebuild_sparse",
     "a sparse tensor, which is not supported; call .to_dense() on it before the model is exported"},
    {"torch._utils._rebuild_nested",
     "a nested tensor, which is not supported; pad it to a plain one before the model is exported"},
    {"torch._utils._rebuild_wrapper_subclass",
     "a tensor subclass, which is not supported; replace it by a plain tensor before the model is exported"},
    {"torchao.",
     "a tensor subclass of torchao, which is not supported; call torchao.utils.unwrap_tensor_subclass on the "
     "model before it is exported"},
    {"torch._subclasses.", "a fake tensor, which has no numbers; save the model with real weights"},
    {"torch._export.serde.serialize._reconstruct_fake_tensor",
     "a fake tensor, which has no numbers; save the model with real weights"},
    {"torch._C.ScriptObject", "an object of a C++ class, which is not supported; keep it out of the model"},
    {"torch.distributed.",
     "a distributed tensor, which is not supported; gather it into a plain one before the model is exported"},
    {"numpy",
     "a NumPy array, which is not supported; make it a tensor with torch.from_numpy before the model is exported"},
};

constexpr size_t kMaxName = 1000;

} // namespace

std::string tc::torch::quoted(std::string_view name) {
  std::string result = "\"";
  for (char c : name.substr(0, 200))
    result += uint8_t(c) < ' ' || c == 127 ? '?' : c;
  return result + (name.size() > 200 ? "...\"" : "\"");
}

bool Unpickler::pushGlobal(std::string_view module, std::string_view name) {
  static constexpr struct {
    std::string_view name;
    Function function;
  } functions[] = {
      {"collections.OrderedDict", MakeDict},
      {"builtins.dict", MakeDict},
      {"__builtin__.dict", MakeDict},
      {"torch.device", MakeDevice},
      {"torch.Size", MakeSize},
      {"torch.serialization._get_layout", GetLayout},
      {"_codecs.encode", Encode},
      {"builtins.bytes", MakeBytes},
      {"__builtin__.bytes", MakeBytes},
      {"builtins.set", MakeList},
      {"__builtin__.set", MakeList},
      {"builtins.frozenset", MakeList},
      {"__builtin__.frozenset", MakeList},
      {"builtins.list", MakeList},
      {"builtins.complex", MakeComplex},
      {"__builtin__.complex", MakeComplex},
      {"torch.jit._pickle.restore_type_tag", RestoreTag},
      {"torch.jit._pickle.build_intlist", BuildList},
      {"torch.jit._pickle.build_tensorlist", BuildList},
      {"torch.jit._pickle.build_doublelist", BuildList},
      {"torch.jit._pickle.build_boollist", BuildList},
      {"torch._utils._rebuild_tensor", RebuildTensor},
      {"torch._utils._rebuild_tensor_v2", RebuildTensor},
      {"torch._utils._rebuild_tensor_v3", RebuildTensorV3},
      {"torch._utils._rebuild_parameter", RebuildParameter},
      {"torch._utils._rebuild_parameter_with_state", RebuildParameter},
      {"torch._utils._rebuild_qtensor", RebuildQuantized},
      {"torch._utils._rebuild_meta_tensor_no_storage", RebuildMeta},
      {"torch._tensor._rebuild_from_type", RebuildFromType},
      {"torch._tensor._rebuild_from_type_v2", RebuildFromType},
  };
  if (module.size() + name.size() > kMaxName)
    return fail("the pickle asks for a name of " + std::to_string(module.size() + name.size()) + " characters");
  const std::string full = std::string(module) + "." + std::string(name);
  if (!charge(full.size()))
    return false;
  if (module == "torch" || module == "torch.cuda" || module == "torch.storage") {
    ScalarType type = scalarTypeOfStorage(name);
    const bool isStorage = type != ScalarType::Undefined;
    if (!isStorage && module == "torch")
      type = scalarTypeOf(name);
    if (type != ScalarType::Undefined) {
      Value *value = make(isStorage ? Kind::Symbol : Kind::ScalarType);
      if (!value)
        return false;
      value->integer = int64_t(type);
      if (isStorage) {
        value->text = full;
        value->integer = None;
      }
      return push(value);
    }
  }
  Function function = None;
  bool isKnown = module == "__torch__" || module.substr(0, 10) == "__torch__.";
  if (isKnown)
    function = Class;
  for (const auto &entry : functions)
    if (entry.name == full) {
      function = entry.function;
      isKnown = true;
    }
  for (std::string_view symbol : symbols)
    isKnown |= symbol == full;
  if (!isKnown) {
    for (const auto &refusal : refusals)
      if (full.compare(0, refusal.prefix.size(), refusal.prefix) == 0)
        return fail("the pickle has " + std::string(refusal.what));
    return fail("the pickle asks for " + quoted(full) +
                ", which is no plain data, and is never run; keep tensors, numbers, strings, lists and dicts alone in "
                "what is saved");
  }
  Value *value = make(Kind::Symbol);
  if (!value)
    return false;
  value->text = full;
  value->integer = function;
  return push(value);
}

bool Unpickler::readDims(const Value *value, std::vector<int64_t> &dims) {
  if (value->kind != Kind::Tuple && value->kind != Kind::List)
    return damaged("a tensor's sizes are no tuple");
  if (value->items.size() > kMaxPickledRank)
    return damaged("a tensor has " + std::to_string(value->items.size()) + " dims");
  for (const Value *item : value->items) {
    if (item->kind != Kind::Int)
      return damaged("a tensor's size is no integer");
    dims.push_back(item->integer);
  }
  return true;
}

bool Unpickler::isBoolOf(const Value *dict, const char *key) {
  const Value *found = dict->find(key);
  return found && found->kind == Kind::Bool && found->integer;
}

bool Unpickler::pushStorage(const Value *id) {
  // ('storage', class, key, location, elements): torch/serialization.py, persistent_id.
  if (id->kind != Kind::Tuple || id->items.size() < 5 || !id->items[0]->isString() || id->items[0]->text != "storage" ||
      id->items[1]->kind != Kind::Symbol || !id->items[2]->isString() || !id->items[3]->isString() ||
      id->items[4]->kind != Kind::Int || id->items[4]->integer < 0)
    return damaged("it has a storage that is not readable");
  const std::string &name = id->items[1]->text;
  const ScalarType type = scalarTypeOfStorage(std::string_view(name).substr(name.rfind('.') + 1));
  if (type == ScalarType::Undefined && name.find("UntypedStorage") == std::string::npos)
    return damaged("it has a storage of " + quoted(name));
  if (id->items[2]->text.size() > kMaxName || id->items[3]->text.size() > kMaxName)
    return damaged("it has a storage with a name of more than " + std::to_string(kMaxName) + " characters");
  if (!charge(id->items[2]->text.size() + id->items[3]->text.size()))
    return false;
  Value *value = make(Kind::Storage);
  if (!value)
    return false;
  value->storage = std::make_unique<PickledStorage>();
  value->storage->dtype = type;
  value->storage->key = id->items[2]->text;
  value->storage->location = id->items[3]->text;
  value->storage->elements = uint64_t(id->items[4]->integer);
  return push(value);
}

Unpickler::Value *Unpickler::makeTensor(Function function, const std::vector<const Value *> &arguments) {
  auto refuse = [&](const char *what) {
    damaged(what);
    return nullptr;
  };
  const bool isMeta = function == RebuildMeta;
  if (arguments.size() < 4)
    return refuse("a tensor lacks arguments");
  Value *value = make(Kind::Tensor);
  if (!value || !charge(64 + 16 * (arguments[2]->items.size() + arguments[3]->items.size())))
    return nullptr;
  value->tensor = std::make_unique<PickledTensor>();
  PickledTensor &tensor = *value->tensor;
  // (storage, offset, sizes, strides, ...), or (type, sizes, strides, requires_grad).
  if (!readDims(arguments[isMeta ? 1 : 2], tensor.sizes) || !readDims(arguments[isMeta ? 2 : 3], tensor.strides))
    return nullptr;
  if (tensor.sizes.size() != tensor.strides.size())
    return refuse("a tensor has other numbers of sizes and strides");
  for (int64_t size : tensor.sizes)
    if (size < 0)
      return refuse("a tensor has a negative size");
  const size_t grad = isMeta ? 3 : function == RebuildQuantized ? 5 : 4;
  tensor.requiresGrad = grad < arguments.size() && arguments[grad]->kind == Kind::Bool && arguments[grad]->integer;
  if (isMeta) {
    if (arguments[0]->kind != Kind::ScalarType)
      return refuse("a tensor's element type is none");
    tensor.dtype = ScalarType(arguments[0]->integer);
    return value;
  }
  if (arguments[0]->kind != Kind::Storage || arguments[1]->kind != Kind::Int || arguments[1]->integer < 0)
    return refuse("a tensor has no storage or no offset");
  tensor.storage = *arguments[0]->storage;
  tensor.dtype = tensor.storage->dtype;
  tensor.offset = arguments[1]->integer;
  size_t metadata = 6;
  if (function == RebuildTensorV3) {
    if (arguments.size() < 7 || arguments[6]->kind != Kind::ScalarType)
      return refuse("a tensor's element type is none");
    tensor.dtype = ScalarType(arguments[6]->integer);
    metadata = 7;
  }
  if (function == RebuildQuantized) {
    const Value *parameters = arguments.size() > 4 ? arguments[4] : none;
    const auto &items = parameters->items;
    if (parameters->kind != Kind::Tuple || items.size() < 3 || items[0]->kind != Kind::Symbol)
      return refuse("a quantized tensor lacks its scale");
    PickledTensor::Quantization quantization;
    if (items[0]->text == "torch.per_tensor_affine") {
      if (items[1]->kind != Kind::Float || items[2]->kind != Kind::Int)
        return refuse("a quantized tensor lacks its scale");
      quantization.scale = items[1]->real;
      quantization.zeroPoint = items[2]->integer;
    } else if (items.size() > 3 && items[1]->kind == Kind::Tensor && items[2]->kind == Kind::Tensor &&
               items[3]->kind == Kind::Int && items[3]->integer >= 0 &&
               items[3]->integer < int64_t(tensor.sizes.size())) {
      quantization.scales = items[1];
      quantization.zeroPoints = items[2];
      quantization.axis = items[3]->integer;
    } else {
      return refuse("a quantized tensor lacks its scales");
    }
    tensor.quantization = quantization;
  } else if (metadata < arguments.size() && arguments[metadata]->kind == Kind::Dict) {
    tensor.isConjugated = isBoolOf(arguments[metadata], "conj");
    tensor.isNegated = isBoolOf(arguments[metadata], "neg");
  }
  if (tensor.dtype == ScalarType::Undefined)
    return refuse("a tensor has no element type");
  return value;
}

bool Unpickler::call(Value *function, const Value *arguments) {
  if (function->kind != Kind::Symbol || function->integer == None)
    return damaged("it calls what is no function");
  const std::vector<const Value *> &items = arguments->items;
  const Value *first = items.empty() ? none : items[0];
  auto give = [&](const Value *value) { return push(const_cast<Value *>(value)); };
  auto copy = [&](Kind kind, const std::string &text) -> Value * {
    Value *made = text.size() < UINT32_MAX && charge(text.size()) ? make(kind) : nullptr;
    if (made)
      made->text = text;
    return made;
  };
  switch (Function(function->integer)) {
  case Class: {
    Value *object = copy(Kind::Object, function->text);
    if (object)
      object->arguments = arguments;
    return push(object);
  }
  case MakeDict: {
    Value *dict = make(Kind::Dict);
    if (!dict)
      return false;
    // Older Pythons give an OrderedDict its items as pairs.
    if (!items.empty() && (first->kind != Kind::List || !charge(16 * first->items.size())))
      return damaged("a dict is made of what is no list");
    for (const Value *pair : first->items) {
      if ((pair->kind != Kind::Tuple && pair->kind != Kind::List) || pair->items.size() != 2)
        return damaged("a dict is made of what are no pairs");
      dict->items.insert(dict->items.end(), pair->items.begin(), pair->items.end());
    }
    return push(dict);
  }
  case MakeDevice:
  case GetLayout: {
    if (!first->isString())
      return damaged("a device or layout has no name");
    std::string text = first->text;
    if (items.size() > 1 && items[1]->kind == Kind::Int)
      text += ":" + std::to_string(items[1]->integer);
    return push(copy(function->integer == MakeDevice ? Kind::Device : Kind::Symbol, text));
  }
  case MakeSize:
    return first->kind == Kind::Tuple || first->kind == Kind::List ? give(first)
                                                                   : damaged("a size is made of what is no tuple");
  case MakeList:
    if (items.empty())
      return push(make(Kind::List));
    return first->kind == Kind::List ? give(first) : damaged("a set is made of what is no list");
  case Encode: {
    // Protocol 2 has no bytes: they are a text whose characters are below 256.
    if (!first->isString() || items.size() < 2 || !items[1]->isString() || items[1]->text != "latin1")
      return damaged("it encodes what is no text");
    Value *value = make(Kind::Bytes);
    if (!value || !charge(uint32_t(first->text.size())))
      return false;
    const std::string &text = first->text;
    for (size_t i = 0; i < text.size(); ++i) {
      const uint8_t byte = uint8_t(text[i]);
      const bool isPair = (byte == 0xc2 || byte == 0xc3) && i + 1 < text.size() && (text[i + 1] & 0xc0) == 0x80;
      if (byte >= 0x80 && !isPair)
        return damaged("it encodes a text that is none");
      value->text += isPair ? char(byte << 6 | (text[++i] & 0x3f)) : char(byte);
    }
    return push(value);
  }
  case MakeBytes:
    return items.empty() ? push(make(Kind::Bytes)) : damaged("bytes are made of what is none");
  case MakeComplex: {
    if (items.size() != 2 || items[0]->kind != Kind::Float || items[1]->kind != Kind::Float)
      return damaged("a complex number is made of what are no numbers");
    Value *value = make(Kind::Complex);
    if (!value)
      return false;
    value->real = items[0]->real;
    value->imaginary = items[1]->real;
    return push(value);
  }
  case RestoreTag:
  case BuildList: {
    Value *list = const_cast<Value *>(first);
    const bool isTag = function->integer == RestoreTag;
    if (list->kind != Kind::List && !(isTag && list->kind == Kind::Dict))
      return damaged("it gives a type to what is no list");
    if (isTag && (items.size() < 2 || !items[1]->isString()))
      return damaged("it gives a list no type");
    const std::string &name = function->text;
    std::string type = isTag                                          ? items[1]->text
                       : name.find("intlist") != std::string::npos    ? "List[int]"
                       : name.find("doublelist") != std::string::npos ? "List[float]"
                       : name.find("boollist") != std::string::npos   ? "List[bool]"
                                                                      : "List[Tensor]";
    if (!charge(uint32_t(type.size())))
      return false;
    list->text = std::move(type);
    return push(list);
  }
  case RebuildTensor:
  case RebuildTensorV3:
  case RebuildQuantized:
  case RebuildMeta:
    return push(makeTensor(Function(function->integer), items));
  case RebuildParameter: {
    if (first->kind != Kind::Tensor)
      return damaged("a parameter is made of what is no tensor");
    // The tensor itself may stand elsewhere, too.
    Value *parameter = make(Kind::Tensor);
    if (!parameter || !charge(64 + 16 * first->tensor->sizes.size()))
      return false;
    parameter->tensor = std::make_unique<PickledTensor>(*first->tensor);
    parameter->tensor->isParameter = true;
    parameter->tensor->requiresGrad = items.size() > 1 && items[1]->kind == Kind::Bool && items[1]->integer;
    return push(parameter);
  }
  case RebuildFromType: {
    // (function, type, arguments, state): a tensor with attributes of Python's, or of a subclass.
    if (items.size() < 3 || first->kind != Kind::Symbol || items[1]->kind != Kind::Symbol ||
        items[2]->kind != Kind::Tuple)
      return damaged("a tensor lacks arguments");
    switch (first->integer) {
    case RebuildTensor:
    case RebuildTensorV3:
    case RebuildQuantized:
    case RebuildMeta:
    case RebuildParameter:
      return call(const_cast<Value *>(first), items[2]);
    default:
      return damaged("a tensor is made by what makes none");
    }
  }
  case None:
    break;
  }
  return damaged("it calls what is no function");
}
