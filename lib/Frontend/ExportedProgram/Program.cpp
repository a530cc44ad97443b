//===- Program.cpp - programs of torch.export to graph
//--------------------------------------------------------------===//
//
// The program is JSON (torch/_export/serde/schema.py, schema 8). Nothing is interpreted here.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Frontend/ExportedProgram.h"

#include "Archive.h"

#include "tc/Dialect/Graph/IR/Graph.h"
#include "tc/Dialect/Graph/IR/Source.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace tc;
using namespace tc::exported;

namespace {

class Importer {
public:
  Importer(MLIRContext *context, StringRef path)
      : context(context), path(path), builder(context), unknown(builder.getUnknownLoc()) {}

  llvm::Expected<OwningOpRef<ModuleOp>> run();

private:
  llvm::Error error(const Twine &what) { return llvm::createStringError(path + ": error: " + what); }
  llvm::Error nodeError(StringRef node, const Twine &what) { return error("node \"" + node + "\": " + what); }
  /// Tensor type of a tensor_meta; `names`, if given, receives the symbolic dims' names.
  llvm::Expected<RankedTensorType> tensorType(StringRef name, const json &meta, SmallVectorImpl<StringRef> *names);
  llvm::Expected<Type> typeOf(StringRef name, SmallVectorImpl<StringRef> *names = nullptr);
  llvm::Expected<Value> valueOf(StringRef node, StringRef name);
  llvm::Error importNode(const json &node, int64_t number);
  void describeMemory(const json &input, NamedAttrList &attributes);
  /// One argument: appends operands and their names, or an attribute.
  llvm::Error importArgument(StringRef node, StringRef name, const json &argument, SmallVectorImpl<Value> &operands,
                             SmallVectorImpl<StringRef> &names, NamedAttrList &attributes);

  MLIRContext *context;
  StringRef path;
  OpBuilder builder;
  Location unknown;
  std::unique_ptr<Archive> archive;
  json tensorValues, symIntValues;
  int64_t opset = 1;
  llvm::StringMap<Value> values;
  llvm::BumpPtrAllocator allocator;
  llvm::StringSaver saver{allocator};
};

llvm::Expected<RankedTensorType> Importer::tensorType(StringRef name, const json &meta,
                                                      SmallVectorImpl<StringRef> *names) {
  std::optional<int64_t> code = integer(member(meta, "dtype"));
  Type element = code ? elementType(context, *code) : Type();
  const json *sizes = member(meta, "sizes");
  if (!element)
    return error("tensor \"" + name + "\" has element type number " + Twine(code.value_or(-1)) +
                 ", which tc does not know; " + kKnownElementTypes);
  if (!sizes || !sizes->is_array())
    return error("tensor \"" + name + "\" has no sizes; the archive is damaged");
  SmallVector<int64_t> shape;
  for (const json &size : *sizes) {
    if (std::optional<int64_t> constant = integer(member(size, "as_int"))) {
      if (*constant < 0)
        return error("tensor \"" + name + "\" has a negative size");
      shape.push_back(*constant);
      if (names)
        names->push_back("");
      continue;
    }
    shape.push_back(ShapedType::kDynamic);
    const json *expr = member(size, "as_expr");
    StringRef symbol = expr ? text(member(*expr, "expr_str")) : StringRef();
    bool plain = !symbol.empty() && llvm::all_of(symbol, [](char c) { return llvm::isAlnum(c) || c == '_'; });
    if (names)
      names->push_back(plain ? symbol : "");
  }
  return RankedTensorType::get(shape, element);
}

llvm::Expected<Type> Importer::typeOf(StringRef name, SmallVectorImpl<StringRef> *names) {
  if (const json *meta = member(tensorValues, name.str().c_str())) {
    llvm::Expected<RankedTensorType> type = tensorType(name, *meta, names);
    if (!type)
      return type.takeError();
    return Type(*type);
  }
  if (member(symIntValues, name.str().c_str()))
    return Type(RankedTensorType::get({}, builder.getI64Type()));
  return error("value \"" + name + "\" has no type in the archive");
}

llvm::Expected<Value> Importer::valueOf(StringRef node, StringRef name) {
  auto found = values.find(name);
  if (found == values.end())
    return nodeError(node, "reads \"" + name + "\", which no earlier node defines");
  return found->second;
}

llvm::Error Importer::importArgument(StringRef node, StringRef name, const json &argument,
                                     SmallVectorImpl<Value> &operands, SmallVectorImpl<StringRef> &names,
                                     NamedAttrList &attributes) {
  auto addOperand = [&](StringRef operandName, StringRef valueName) -> llvm::Error {
    llvm::Expected<Value> value = valueOf(node, valueName);
    if (!value)
      return value.takeError();
    operands.push_back(*value);
    names.push_back(saver.save(operandName));
    return llvm::Error::success();
  };
  if (!argument.is_object() || argument.empty())
    return nodeError(node, "argument \"" + name + "\" is not readable; the archive is damaged");
  const std::string &kind = argument.begin().key();
  const json &value = argument.begin().value();
  if (kind == "as_none")
    return llvm::Error::success();
  if (kind == "as_tensor")
    return addOperand(name, text(member(value, "name")));
  if (kind == "as_tensors" || kind == "as_optional_tensors") {
    for (size_t i = 0; value.is_array() && i < value.size(); ++i) {
      const json *tensor = kind == "as_tensors" ? &value[i] : member(value[i], "as_tensor");
      if (!tensor)
        continue; // an absent entry of an optional list; its number is missing from the names
      if (llvm::Error e = addOperand((name + "." + Twine(i)).str(), text(member(*tensor, "name"))))
        return e;
    }
    attributes.set((name + ".count").str(), builder.getI64IntegerAttr(value.is_array() ? value.size() : 0));
    return llvm::Error::success();
  }
  auto symbolic = [&](const json &entry, StringRef operandName) -> llvm::Expected<Attribute> {
    if (std::optional<int64_t> constant = integer(member(entry, "as_int")))
      return Attribute(builder.getI64IntegerAttr(*constant));
    if (llvm::Error e = addOperand(operandName, text(member(entry, "as_name"))))
      return std::move(e);
    return Attribute(builder.getStringAttr(operandName));
  };
  if (kind == "as_sym_int") {
    llvm::Expected<Attribute> attr = symbolic(value, name);
    if (!attr)
      return attr.takeError();
    attributes.set(name, *attr);
  } else if (kind == "as_sym_ints" && value.is_array()) {
    SmallVector<Attribute> entries;
    for (size_t i = 0; i < value.size(); ++i) {
      llvm::Expected<Attribute> attr = symbolic(value[i], (name + "." + Twine(i)).str());
      if (!attr)
        return attr.takeError();
      entries.push_back(*attr);
    }
    attributes.set(name, builder.getArrayAttr(entries));
  } else if (kind == "as_int" && value.is_number_integer()) {
    attributes.set(name, builder.getI64IntegerAttr(value.get<int64_t>()));
  } else if (kind == "as_ints" && value.is_array()) {
    SmallVector<int64_t> ints;
    for (const json &entry : value)
      ints.push_back(integer(&entry).value_or(0));
    attributes.set(name, builder.getDenseI64ArrayAttr(ints));
  } else if (kind == "as_float") {
    // JSON has no infinities: they are strings.
    double number = value.is_number() ? value.get<double>() : 0;
    StringRef word = text(&value);
    if (word == "Infinity" || word == "-Infinity")
      number = word.starts_with("-") ? -INFINITY : INFINITY;
    else if (word == "NaN")
      number = NAN;
    attributes.set(name, builder.getF64FloatAttr(number));
  } else if (kind == "as_floats" && value.is_array()) {
    SmallVector<double> floats;
    for (const json &entry : value)
      floats.push_back(entry.is_number() ? entry.get<double>() : 0);
    attributes.set(name, builder.getDenseF64ArrayAttr(floats));
  } else if (kind == "as_bool" && value.is_boolean()) {
    attributes.set(name, builder.getBoolAttr(value.get<bool>()));
  } else if (kind == "as_bools" && value.is_array()) {
    SmallVector<bool> bools;
    for (const json &entry : value)
      bools.push_back(entry.is_boolean() && entry.get<bool>());
    attributes.set(name, builder.getDenseBoolArrayAttr(bools));
  } else if (kind == "as_string" && value.is_string()) {
    attributes.set(name, builder.getStringAttr(text(&value)));
  } else if (kind == "as_scalar_type" && value.is_number_integer()) {
    Type type = elementType(context, value.get<int64_t>());
    if (!type)
      return nodeError(node, "argument \"" + name + "\" is an element type that tc does not know");
    attributes.set(name, TypeAttr::get(type));
  } else {
    // Device, layout, memory format: where a value lives is the target's affair. Kept by name for messages.
    attributes.set(name, builder.getStringAttr(kind));
  }
  return llvm::Error::success();
}

/// How the elements of a tensor argument lie in memory, for the operators that read it as such.
void Importer::describeMemory(const json &input, NamedAttrList &attributes) {
  const json *argument = member(input, "arg");
  const json *tensor = argument ? member(*argument, "as_tensor") : nullptr;
  const json *meta = tensor ? member(tensorValues, text(member(*tensor, "name")).str().c_str()) : nullptr;
  const json *sizes = meta ? member(*meta, "sizes") : nullptr, *strides = meta ? member(*meta, "strides") : nullptr;
  if (!sizes || !strides || !sizes->is_array() || !strides->is_array() || sizes->size() != strides->size())
    return;
  int64_t expected = 1;
  for (size_t i = sizes->size(); i-- > 0;) {
    const int64_t size = integer(member((*sizes)[i], "as_int")).value_or(0);
    if (size != 1 && integer(member((*strides)[i], "as_int")).value_or(-1) != expected)
      attributes.set("self.strided", builder.getUnitAttr());
    expected *= std::max<int64_t>(1, size);
  }
  const json *offset = member(*meta, "storage_offset");
  if (int64_t known = offset ? integer(member(*offset, "as_int")).value_or(0) : 0)
    attributes.set("self.storage_offset", builder.getI64IntegerAttr(known));
}

llvm::Error Importer::importNode(const json &node, int64_t number) {
  StringRef target = text(member(node, "target"));
  StringRef name = text(member(node, "name"));
  std::string fallback = target.str() + "#" + std::to_string(number);
  if (name.empty())
    name = saver.save(fallback);
  const json *inputs = member(node, "inputs"), *outputs = member(node, "outputs");
  if (target.empty() || !inputs || !inputs->is_array() || !outputs || !outputs->is_array())
    return nodeError(name, "is not readable; the archive is damaged");
  StringRef domain = "torch", type = target;
  if (type.consume_front("torch.ops."))
    std::tie(domain, type) = type.split('.');
  if (domain.empty() || type.empty())
    return nodeError(name, "calls \"" + target + "\", which names no operator; the archive is damaged");

  SmallVector<Value> operands;
  SmallVector<StringRef> names;
  NamedAttrList attributes;
  for (const json &input : *inputs) {
    const json *argument = member(input, "arg");
    StringRef argumentName = text(member(input, "name"));
    if (!argument)
      return nodeError(name, "has an argument without a value; the archive is damaged");
    if (argumentName.empty())
      argumentName = saver.save("arg" + std::to_string(names.size()));
    if (llvm::Error e = importArgument(name, argumentName, *argument, operands, names, attributes))
      return e;
  }
  attributes.set("arg_names", builder.getStrArrayAttr(names));
  if (type.starts_with("as_strided") && !inputs->empty())
    describeMemory((*inputs)[0], attributes);

  SmallVector<Type> types;
  SmallVector<StringRef> resultNames;
  auto addResult = [&](StringRef resultName) -> llvm::Error {
    llvm::Expected<Type> resultType = typeOf(resultName);
    if (!resultType)
      return resultType.takeError();
    types.push_back(*resultType);
    resultNames.push_back(resultName);
    return llvm::Error::success();
  };
  for (const json &output : *outputs) {
    if (const json *tensor = member(output, "as_tensor")) {
      if (llvm::Error e = addResult(text(member(*tensor, "name"))))
        return e;
    } else if (const json *tensors = member(output, "as_tensors"); tensors && tensors->is_array()) {
      for (const json &entry : *tensors)
        if (llvm::Error e = addResult(text(member(entry, "name"))))
          return e;
    } else if (const json *symInt = member(output, "as_sym_int")) {
      if (llvm::Error e = addResult(text(member(*symInt, "as_name"))))
        return e;
    } else if (!member(output, "as_none")) {
      return nodeError(name, Twine("gives a value that is neither a tensor nor an integer; supported are tensors, "
                                   "lists of tensors and sizes"));
    }
  }
  const json *metadata = member(node, "metadata");
  Location place = FileLineColLoc::get(context, llvm::sys::path::filename(path), number, 0);
  Location loc = NameLoc::get(builder.getStringAttr(name),
                              graph::addSource(place, metadata ? text(member(*metadata, "stack_trace")) : ""));
  auto op = graph::NodeOp::create(builder, loc, domain, type, opset, types, operands, attributes);
  for (auto [result, resultName] : llvm::zip_equal(op.getOutputs(), resultNames))
    values[resultName] = result;
  return llvm::Error::success();
}

llvm::Expected<OwningOpRef<ModuleOp>> Importer::run() {
  context->loadDialect<graph::GraphDialect, tc::base::TCDialect>();
  llvm::Expected<std::unique_ptr<Archive>> opened = Archive::open(context, path);
  if (!opened)
    return opened.takeError();
  archive = std::move(*opened);
  const json &file = archive->program();
  if (const json *versions = member(file, "opset_version"))
    opset = std::max<int64_t>(1, integer(member(*versions, "aten")).value_or(1));
  const json *module = member(file, "graph_module");
  const json *graph = module ? member(*module, "graph") : nullptr;
  const json *signature = module ? member(*module, "signature") : nullptr;
  const json *nodes = graph ? member(*graph, "nodes") : nullptr;
  const json *inputSpecs = signature ? member(*signature, "input_specs") : nullptr;
  const json *outputSpecs = signature ? member(*signature, "output_specs") : nullptr;
  if (!nodes || !nodes->is_array() || !inputSpecs || !inputSpecs->is_array() || !outputSpecs ||
      !outputSpecs->is_array())
    return error("the program has no graph or no signature; the archive is damaged");
  tensorValues = graph->value("tensor_values", json::object());
  symIntValues = graph->value("sym_int_values", json::object());

  // The signature: user inputs are arguments, all others constants.
  struct Input {
    StringRef value;
    tc::base::DataAttr constant;
  };
  SmallVector<Input> inputs;
  SmallVector<Type> argumentTypes;
  SmallVector<DictionaryAttr> argumentAttrs;
  auto describe = [&](StringRef name, ArrayRef<StringRef> dims) {
    return builder.getDictionaryAttr({builder.getNamedAttr(graph::kNameAttr, builder.getStringAttr(name)),
                                      builder.getNamedAttr(graph::kDimsAttr, builder.getStrArrayAttr(dims))});
  };
  for (const json &spec : *inputSpecs) {
    if (const json *user = member(spec, "user_input")) {
      const json *argument = member(*user, "arg");
      const json *tensor = argument ? member(*argument, "as_tensor") : nullptr;
      if (!tensor)
        return error("an input of the program is no tensor; supported are tensor inputs");
      StringRef name = text(member(*tensor, "name"));
      SmallVector<StringRef> dims;
      llvm::Expected<Type> type = typeOf(name, &dims);
      if (!type)
        return type.takeError();
      inputs.push_back({name, {}});
      argumentTypes.push_back(*type);
      argumentAttrs.push_back(describe(name, dims));
      continue;
    }
    static const std::pair<const char *, const char *> kinds[] = {
        {"parameter", "parameter_name"}, {"buffer", "buffer_name"}, {"tensor_constant", "tensor_constant_name"}};
    bool known = false;
    for (auto [kind, nameKey] : kinds)
      if (const json *held = member(spec, kind)) {
        StringRef name = text(member(*held, nameKey));
        const json *argument = member(*held, "arg");
        tc::base::DataAttr data = archive->constant(name);
        if (!argument || !data)
          return error(Twine(kind) + " \"" + name + "\" has no data in the archive");
        StringRef value = text(member(*argument, "name"));
        // The nodes' types were made of what the program says of it.
        if (tensorValues.is_object() && tensorValues.contains(value.str())) {
          llvm::Expected<Type> declared = typeOf(value);
          if (!declared)
            return declared.takeError();
          auto shaped = dyn_cast<RankedTensorType>(*declared);
          auto stored = cast<RankedTensorType>(data.getType());
          if (shaped && (shaped.getElementType() != stored.getElementType() ||
                         failed(verifyCompatibleShape(shaped.getShape(), stored.getShape())))) {
            std::string text;
            llvm::raw_string_ostream(text) << stored << " in the archive, but the program declares it as " << shaped;
            return error(Twine(kind) + " \"" + name + "\" is a " + text + "; the archive is damaged");
          }
        }
        inputs.push_back({value, data});
        known = true;
      }
    if (!known)
      return error("an input of the program is of a kind that tc does not know; supported are tensors, parameters, "
                   "buffers and constants");
  }

  OwningOpRef<ModuleOp> result = ModuleOp::create(unknown);
  builder.setInsertionPointToEnd(result->getBody());
  auto function = graph::FuncOp::create(builder, unknown, "main", builder.getFunctionType(argumentTypes, {}));
  function.setOpsetsAttr(builder.getDictionaryAttr(builder.getNamedAttr("aten", builder.getI64IntegerAttr(opset))));
  Block *body = &function.getBody().emplaceBlock();
  builder.setInsertionPointToEnd(body);
  for (auto [i, type] : llvm::enumerate(argumentTypes))
    body->addArgument(type, unknown);
  unsigned next = 0;
  for (const Input &input : inputs) {
    if (!input.constant) {
      values[input.value] = body->getArgument(next++);
      continue;
    }
    Location loc = NameLoc::get(builder.getStringAttr(input.value));
    values[input.value] = graph::ConstantOp::create(builder, loc, input.constant.getType(), input.constant);
  }
  int64_t number = 0;
  for (const json &node : *nodes)
    if (llvm::Error e = importNode(node, ++number))
      return std::move(e);

  SmallVector<Value> outputs;
  SmallVector<Type> outputTypes;
  SmallVector<DictionaryAttr> outputAttrs;
  for (const json &spec : *outputSpecs) {
    const json *user = member(spec, "user_output");
    if (!user)
      return error("the program updates a buffer or an input; supported are programs without mutation: export the "
                   "model in eval mode");
    const json *argument = member(*user, "arg");
    if (argument && member(*argument, "as_none"))
      continue;
    const json *tensor = argument ? member(*argument, "as_tensor") : nullptr;
    if (!tensor)
      return error("an output of the program is no tensor; supported are tensor outputs");
    StringRef name = text(member(*tensor, "name"));
    llvm::Expected<Value> value = valueOf("output", name);
    if (!value)
      return value.takeError();
    SmallVector<StringRef> dims;
    if (llvm::Expected<Type> type = typeOf(name, &dims); !type)
      return type.takeError();
    outputs.push_back(*value);
    outputTypes.push_back(value->getType());
    outputAttrs.push_back(describe("output_" + std::to_string(outputs.size() - 1), dims));
  }
  graph::YieldOp::create(builder, unknown, outputs);
  function.setFunctionTypeAttr(TypeAttr::get(builder.getFunctionType(argumentTypes, outputTypes)));
  function.setAllArgAttrs(argumentAttrs);
  function.setAllResultAttrs(outputAttrs);
  StringRef producer = text(member(file, "torch_version"));
  (*result)->setAttr(graph::kProducerAttr, builder.getStringAttr(("PyTorch " + producer).str()));
  if (failed(result->verify()))
    return error("the program is not well-formed");
  return result;
}

} // namespace

llvm::Expected<OwningOpRef<ModuleOp>> tc::importExportedProgram(MLIRContext *context, StringRef path) {
  return Importer(context, path).run();
}
