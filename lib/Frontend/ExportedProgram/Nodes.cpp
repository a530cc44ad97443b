//===- Nodes.cpp - nodes of programs of torch.export to graph.node ------------------------------------------------===//
//
// The program is JSON: torch/_export/serde/schema.py, Graph, Node and Argument.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Nodes.h"

#include "tc/Dialect/Graph/IR/Source.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace tc;
using namespace tc::exported;

//===--- types and values -----------------------------------------------------------------------------------------===//

/// JSON has no infinities: they are strings.
static double readFloat(const json &value) {
  if (value.is_number())
    return value.get<double>();
  StringRef word = text(&value);
  if (word == "Infinity" || word == "-Infinity")
    return word.starts_with("-") ? -INFINITY : INFINITY;
  return NAN;
}

/// The kind of a union, such as as_tensor, and its value; the first is "" for what is none.
static std::pair<StringRef, const json *> readUnion(const json &value) {
  if (!value.is_object() || value.empty())
    return {"", nullptr};
  return {value.begin().key(), &value.begin().value()};
}

llvm::Expected<RankedTensorType> NodeImporter::tensorType(StringRef name, const json &meta,
                                                          llvm::SmallVectorImpl<std::optional<SizeExpr>> *exprs) {
  std::optional<int64_t> code = integer(member(meta, "dtype"));
  Type element = code ? elementType(context, *code) : Type();
  const json *sizes = member(meta, "sizes");
  if (!element)
    return error("tensor \"" + name + "\" has element type number " + Twine(code.value_or(-1)) +
                 ", which tc does not know; " + kKnownElementTypes);
  if (!sizes || !sizes->is_array())
    return error("tensor \"" + name + "\" has no sizes; the archive is damaged");
  constexpr int64_t kSparseFirst = 1, kSparseLast = 5; // schema.py, Layout
  if (int64_t layout = integer(member(meta, "layout")).value_or(0); layout >= kSparseFirst && layout <= kSparseLast)
    return error("tensor \"" + name + "\" is sparse; tc takes dense ones: call .to_dense() on it in the model");
  SmallVector<int64_t> shape;
  for (const json &size : *sizes) {
    std::optional<int64_t> constant = integer(member(size, "as_int"));
    if (constant && *constant < 0)
      return error("tensor \"" + name + "\" has a negative size");
    shape.push_back(constant.value_or(ShapedType::kDynamic));
    if (!exprs)
      continue;
    std::optional<SizeExpr> expr = SizeExpr();
    if (constant)
      expr->value = *constant;
    else if (const json *symbolic = member(size, "as_expr"))
      expr = parseSizeExpr(text(member(*symbolic, "expr_str")));
    else
      expr = std::nullopt;
    exprs->push_back(std::move(expr));
  }
  return RankedTensorType::get(shape, element);
}

llvm::Expected<Type> NodeImporter::typeOf(const Scope &scope, StringRef name,
                                          llvm::SmallVectorImpl<std::optional<SizeExpr>> *sizes) {
  auto find = [&](const char *table) -> const json * {
    const json *values = member(scope.graph, table);
    return values ? member(*values, name.str().c_str()) : nullptr;
  };
  if (const json *meta = find("tensor_values")) {
    llvm::Expected<RankedTensorType> type = tensorType(name, *meta, sizes);
    if (!type)
      return type.takeError();
    return Type(*type);
  }
  const std::pair<const char *, Type> numbers[] = {{"sym_int_values", builder.getI64Type()},
                                                   {"sym_float_values", builder.getF64Type()},
                                                   {"sym_bool_values", builder.getI1Type()}};
  for (auto [table, element] : numbers)
    if (find(table))
      return Type(RankedTensorType::get({}, element));
  return error("value \"" + name + "\" has no type in the archive");
}

llvm::Expected<Value> NodeImporter::lookup(const Scope &scope, StringRef reader, StringRef name) {
  auto found = scope.values.find(name);
  if (found == scope.values.end())
    return nodeError(reader, "reads \"" + name + "\", which no earlier node defines");
  return found->second;
}

StringRef NodeImporter::nameOf(const json &argument) {
  auto [kind, value] = readUnion(argument);
  if (kind == "as_tensor")
    return text(member(*value, "name"));
  if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool")
    return text(member(*value, "as_name"));
  return "";
}

bool NodeImporter::isConstant(const json &argument) {
  return llvm::is_contained({"as_none", "as_bool", "as_int", "as_float", "as_string"}, readUnion(argument).first);
}

Value NodeImporter::constant(Type element, Attribute value) {
  auto dense = DenseElementsAttr::get(RankedTensorType::get({}, element), value);
  return graph::ConstantOp::create(builder, builder.getUnknownLoc(), base::fromDense(dense));
}

llvm::Expected<Value> NodeImporter::valueOf(Scope &scope, StringRef reader, const json &argument) {
  if (StringRef name = nameOf(argument); !name.empty())
    return lookup(scope, reader, name);
  auto [kind, value] = readUnion(argument);
  if (kind.starts_with("as_sym_")) // a constant where others have a name
    std::tie(kind, value) = readUnion(*value);
  if (kind == "as_none")
    return Value(graph::NoneOp::create(builder, builder.getUnknownLoc(), builder.getNoneType()));
  if (kind == "as_bool" && value->is_boolean())
    return constant(builder.getI1Type(), builder.getBoolAttr(value->get<bool>()));
  if (kind == "as_int" && value->is_number_integer())
    return constant(builder.getI64Type(), builder.getI64IntegerAttr(value->get<int64_t>()));
  if (kind == "as_float")
    return constant(builder.getF64Type(), builder.getF64FloatAttr(readFloat(*value)));
  return nodeError(reader, "is \"" + kind + "\"; supported are tensors, numbers and None");
}

//===--- arguments ------------------------------------------------------------------------------------------------===//

llvm::Error NodeImporter::importArgument(Scope &scope, StringRef node, StringRef name, const json &argument,
                                         Arguments &to) {
  auto addOperand = [&](const Twine &operandName, StringRef valueName) -> llvm::Error {
    llvm::Expected<Value> value = lookup(scope, node, valueName);
    if (!value)
      return value.takeError();
    to.operands.push_back(*value);
    to.names.push_back(saver.save(operandName.str()));
    return llvm::Error::success();
  };
  auto [kind, held] = readUnion(argument);
  if (kind.empty())
    return nodeError(node, "argument \"" + name + "\" is not readable; the archive is damaged");
  const json &value = *held;
  auto addTensors = [&](const json &list, const Twine &prefix) -> llvm::Error {
    for (size_t i = 0; list.is_array() && i < list.size(); ++i) {
      // An absent entry of an optional list: its number is missing from the names.
      const json *tensor = member(list[i], "as_none")     ? nullptr
                           : member(list[i], "as_tensor") ? member(list[i], "as_tensor")
                                                          : &list[i];
      if (tensor)
        if (llvm::Error e = addOperand(prefix + "." + Twine(i), text(member(*tensor, "name"))))
          return e;
    }
    to.attributes.set((prefix + ".count").str(), builder.getI64IntegerAttr(list.is_array() ? list.size() : 0));
    return llvm::Error::success();
  };
  // A number, or what names one: then the attribute names the operand.
  auto symbolic = [&](const json &entry, const Twine &operandName) -> llvm::Expected<Attribute> {
    auto [entryKind, number] = readUnion(entry);
    if (entryKind == "as_int" && number->is_number_integer())
      return Attribute(builder.getI64IntegerAttr(number->get<int64_t>()));
    if (entryKind == "as_float")
      return Attribute(builder.getF64FloatAttr(readFloat(*number)));
    if (entryKind == "as_bool" && number->is_boolean())
      return Attribute(builder.getBoolAttr(number->get<bool>()));
    if (llvm::Error e = addOperand(operandName, text(member(entry, "as_name"))))
      return std::move(e);
    return Attribute(builder.getStringAttr(operandName));
  };
  auto set = [&](Attribute attr) {
    to.attributes.set(name, attr);
    return llvm::Error::success();
  };
  /// Each entry of a list by `read`.
  auto each = [&](auto read) {
    SmallVector<decltype(read(value))> all;
    for (size_t i = 0; value.is_array() && i < value.size(); ++i)
      all.push_back(read(value[i]));
    return all;
  };
  auto readInt = [](const json &entry) -> int64_t { return integer(&entry).value_or(0); };
  auto readBool = [](const json &entry) -> bool { return entry.is_boolean() && entry.get<bool>(); };

  if (kind == "as_none" || (kind == "as_optional_tensor" && !member(value, "as_tensor")))
    return llvm::Error::success();
  if (kind == "as_tensor")
    return addOperand(name, text(member(value, "name")));
  if (kind == "as_optional_tensor")
    return addOperand(name, text(member(*member(value, "as_tensor"), "name")));
  if (kind == "as_tensors" || kind == "as_optional_tensors")
    return addTensors(value, name);
  if (kind == "as_nested_tensors" && value.is_array()) {
    for (size_t i = 0; i < value.size(); ++i)
      if (llvm::Error e = addTensors(value[i], name + "." + Twine(i)))
        return e;
    to.attributes.set((name + ".count").str(), builder.getI64IntegerAttr(value.size()));
    return llvm::Error::success();
  }
  if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool") {
    llvm::Expected<Attribute> attr = symbolic(value, name);
    return attr ? set(*attr) : attr.takeError();
  }
  if ((kind == "as_sym_ints" || kind == "as_sym_floats" || kind == "as_sym_bools") && value.is_array()) {
    SmallVector<Attribute> entries;
    for (size_t i = 0; i < value.size(); ++i) {
      llvm::Expected<Attribute> attr = symbolic(value[i], name + "." + Twine(i));
      if (!attr)
        return attr.takeError();
      entries.push_back(*attr);
    }
    return set(builder.getArrayAttr(entries));
  }
  if (kind == "as_int" && value.is_number_integer())
    return set(builder.getI64IntegerAttr(value.get<int64_t>()));
  if (kind == "as_float")
    return set(builder.getF64FloatAttr(readFloat(value)));
  if (kind == "as_bool" && value.is_boolean())
    return set(builder.getBoolAttr(value.get<bool>()));
  if (kind == "as_string" && value.is_string())
    return set(builder.getStringAttr(text(&value)));
  if (kind == "as_ints")
    return set(builder.getDenseI64ArrayAttr(each(readInt)));
  if (kind == "as_floats")
    return set(builder.getDenseF64ArrayAttr(each(readFloat)));
  if (kind == "as_bools")
    return set(builder.getDenseBoolArrayAttr(each(readBool)));
  if (kind == "as_strings")
    return set(builder.getStrArrayAttr(each([](const json &entry) { return text(&entry); })));
  if (kind == "as_int_lists" && value.is_array()) {
    SmallVector<Attribute> lists;
    for (const json &list : value) {
      SmallVector<int64_t> ints;
      for (size_t i = 0; list.is_array() && i < list.size(); ++i)
        ints.push_back(readInt(list[i]));
      lists.push_back(builder.getDenseI64ArrayAttr(ints));
    }
    return set(builder.getArrayAttr(lists));
  }
  if (kind == "as_complex") {
    const json *real = member(value, "real"), *imaginary = member(value, "imag");
    to.attributes.set((name + ".value").str(), builder.getDenseF64ArrayAttr({real ? readFloat(*real) : 0,
                                                                             imaginary ? readFloat(*imaginary) : 0}));
    return set(builder.getStringAttr(kind));
  }
  if (kind == "as_scalar_type" && value.is_number_integer()) {
    Type type = elementType(context, value.get<int64_t>());
    if (!type)
      return nodeError(node, "argument \"" + name + "\" is an element type that tc does not know");
    return set(TypeAttr::get(type));
  }
  if (kind == "as_graph") {
    if (const json *graph = member(value, "graph")) {
      to.graphs.push_back({name.str(), graph});
      return llvm::Error::success();
    }
    return nodeError(node, "argument \"" + name + "\" is a graph that is missing; the archive is damaged");
  }
  if (kind == "as_custom_obj")
    return nodeError(node, "argument \"" + name + "\" is an object of the class " + text(member(value, "class_fqn")) +
                               ", which only PyTorch can run; keep such objects out of what is exported");
  if (kind == "as_memory_format" && value.is_number_integer())
    to.attributes.set((name + ".value").str(), builder.getI64IntegerAttr(value.get<int64_t>()));
  if (kind == "as_operator" && value.is_string())
    to.attributes.set((name + ".value").str(), builder.getStringAttr(text(&value)));
  // Device, layout, memory format: where a value lives is the target's affair. Kept by name for messages.
  return set(builder.getStringAttr(kind));
}

//===--- nodes ----------------------------------------------------------------------------------------------------===//

llvm::Error NodeImporter::listResults(StringRef node, const json &outputs, SmallVectorImpl<StringRef> &names) {
  for (const json &output : outputs) {
    auto [kind, value] = readUnion(output);
    if (StringRef name = nameOf(output); !name.empty())
      names.push_back(name);
    else if ((kind == "as_tensors" || kind == "as_optional_tensors") && value->is_array())
      for (const json &entry : *value) {
        const json *tensor = member(entry, "as_tensor");
        names.push_back(text(member(tensor ? *tensor : entry, "name")));
      }
    else if (kind == "as_none" && outputs.size() > 1)
      names.push_back(""); // those behind it keep their numbers
    else if (kind != "as_none" && !kind.empty())
      return nodeError(node,
                       "gives a value of the kind \"" + kind + "\"; supported are tensors, lists of them, numbers");
  }
  return llvm::Error::success();
}

/// Whether an operator converts its operands itself, or does not compute with them.
static bool convertsItself(StringRef type, const NamedAttrList &attributes) {
  return attributes.get("dtype") || type.starts_with("to.") || type.starts_with("_to_") ||
         type.starts_with("type_as.") || type.starts_with("_assert") || type.starts_with("copy_.") ||
         type.starts_with("view.dtype") || type.starts_with("sym_");
}

void NodeImporter::castOperands(Type autocast, StringRef type, Location loc, Arguments &arguments,
                                ArrayRef<Type> results) {
  // PyTorch has lists of operators that compute in the narrow type, in f32, or in the widest of their operands' types;
  // the archive has what they give, but not the conversions before them.
  auto declared = results.empty() ? RankedTensorType() : dyn_cast<RankedTensorType>(results[0]);
  Type f32 = builder.getF32Type();
  Type to = declared ? declared.getElementType() : Type();
  if ((to != autocast && to != f32) || convertsItself(type, arguments.attributes))
    return;
  Type from = to == f32 ? autocast : f32;
  for (Value &operand : arguments.operands) {
    auto tensor = dyn_cast<RankedTensorType>(operand.getType());
    if (!tensor || tensor.getElementType() != from)
      continue;
    const NamedAttribute attributes[] = {
        builder.getNamedAttr("arg_names", builder.getStrArrayAttr({"self"})),
        builder.getNamedAttr("dtype", TypeAttr::get(to)),
    };
    operand =
        graph::NodeOp::create(builder, loc, "aten", "to.dtype", opset, TypeRange(tensor.clone(to)), operand, attributes)
            .getOutputs()[0];
  }
}

llvm::Expected<SmallVector<Value>> NodeImporter::importGraph(StringRef node, const json &graph, ValueRange arguments,
                                                             Type autocast) {
  Scope inner(graph);
  inner.autocast = autocast;
  const json *inputs = member(graph, "inputs"), *outputs = member(graph, "outputs");
  if (!inputs || !inputs->is_array() || !outputs || !outputs->is_array() || inputs->size() != arguments.size())
    return nodeError(node, "has a graph that does not take what it is given; the archive is damaged");
  for (auto [input, value] : llvm::zip_equal(*inputs, arguments))
    inner.values[nameOf(input)] = value;
  if (llvm::Error e = importNodes(inner))
    return std::move(e);
  SmallVector<Value> results;
  for (const json &output : *outputs) {
    llvm::Expected<Value> value = valueOf(inner, node, output);
    if (!value)
      return value.takeError();
    results.push_back(*value);
  }
  return results;
}

/// Operators of higher order whose graph runs once, with its operands from this one on: it is as if its nodes stood in
/// the outer graph.
static std::optional<size_t> findFirstOperand(StringRef type) {
  return llvm::StringSwitch<std::optional<size_t>>(type)
      .Case("wrap_with_set_grad_enabled", 2) // enabled, graph
      .Case("wrap_with_autocast", 5)         // device, dtype, enabled, cached, graph
      .Case("invoke_subgraph", 2)            // graph, identifier
      .Case("tag_activation_checkpoint", 1)  // graph
      .Case("wrap_activation_checkpoint", 1)
      .Case("strict_mode", 1)
      .Case("wrap", 1)
      .Default(std::nullopt);
}

llvm::Error NodeImporter::inlineRegion(Scope &scope, StringRef node, StringRef type, const json &inputs,
                                       ArrayRef<StringRef> results) {
  const json *graph = nullptr;
  SmallVector<Value> operands;
  Type autocast = scope.autocast;
  const size_t firstOperand = *findFirstOperand(type);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const json *argument = member(inputs[i], "arg");
    auto [kind, value] = argument ? readUnion(*argument) : std::pair<StringRef, const json *>("", nullptr);
    if (kind == "as_graph") {
      graph = member(*value, "graph");
    } else if (i >= firstOperand && kind == "as_tensors" && value->is_array()) {
      for (const json &entry : *value) {
        llvm::Expected<Value> operand = lookup(scope, node, text(member(entry, "name")));
        if (!operand)
          return operand.takeError();
        operands.push_back(*operand);
      }
    } else if (i >= firstOperand && argument) {
      llvm::Expected<Value> operand = valueOf(scope, node, *argument);
      if (!operand)
        return operand.takeError();
      operands.push_back(*operand);
    } else if (type == "wrap_with_autocast" && i == 1) {
      // None is the device's default, which is bfloat16 on CPUs and float16 on GPUs.
      autocast = kind == "as_scalar_type" ? elementType(context, integer(value).value_or(-1)) : Type();
    } else if (type == "wrap_with_autocast" && i == 2 && kind == "as_bool" && value->is_boolean() &&
               !value->get<bool>()) {
      autocast = {};
    }
  }
  if (!graph)
    return nodeError(node, "has no graph; the archive is damaged");
  llvm::Expected<SmallVector<Value>> values = importGraph(node, *graph, operands, autocast);
  if (!values)
    return values.takeError();
  if (values->size() != results.size())
    return nodeError(node, "has a graph that gives " + Twine(values->size()) + " values where " +
                               Twine(results.size()) + " are read; the archive is damaged");
  for (auto [name, value] : llvm::zip_equal(results, *values))
    scope.values[name] = value;
  return llvm::Error::success();
}

const json *NodeImporter::metaOf(const Scope &scope, StringRef name) {
  const json *tensors = member(scope.graph, "tensor_values");
  return tensors ? member(*tensors, name.str().c_str()) : nullptr;
}

/// How the elements of a tensor argument lie in memory, for the operators that read it as such.
void NodeImporter::describeMemory(const Scope &scope, const json &input, NamedAttrList &attributes) {
  const json *argument = member(input, "arg"), *tensors = member(scope.graph, "tensor_values");
  const json *meta = argument && tensors ? member(*tensors, nameOf(*argument).str().c_str()) : nullptr;
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

llvm::Error NodeImporter::importNode(Scope &scope, const json &node) {
  StringRef target = text(member(node, "target"));
  StringRef name = text(member(node, "name"));
  ++number;
  if (name.empty())
    name = saver.save(target.str() + "#" + std::to_string(number));
  const json *inputs = member(node, "inputs"), *outputs = member(node, "outputs");
  if (target.empty() || !inputs || !inputs->is_array() || !outputs || !outputs->is_array())
    return nodeError(name, "is not readable; the archive is damaged");
  StringRef domain = "torch", type = target;
  if (type.consume_front("torch.ops."))
    std::tie(domain, type) = type.split('.');
  if (domain.empty() || type.empty())
    return nodeError(name, "calls \"" + target + "\", which names no operator; the archive is damaged");
  SmallVector<StringRef> resultNames;
  if (llvm::Error e = listResults(name, *outputs, resultNames))
    return e;
  if (domain == "higher_order" && findFirstOperand(type))
    return inlineRegion(scope, name, type, *inputs, resultNames);

  Arguments arguments;
  for (size_t i = 0; i < inputs->size(); ++i) {
    const json *argument = member((*inputs)[i], "arg");
    StringRef argumentName = text(member((*inputs)[i], "name"));
    if (!argument)
      return nodeError(name, "has an argument without a value; the archive is damaged");
    if (argumentName.empty())
      argumentName = saver.save("arg" + std::to_string(i));
    if (llvm::Error e = importArgument(scope, name, argumentName, *argument, arguments))
      return e;
  }
  SmallVector<Type> types;
  if (!arguments.graphs.empty())
    llvm::erase(resultNames, ""); // what a graph yields as None is no result
  for (StringRef resultName : resultNames) {
    if (resultName.empty()) {
      types.push_back(builder.getNoneType());
      continue;
    }
    llvm::Expected<Type> resultType = typeOf(scope, resultName);
    if (!resultType)
      return resultType.takeError();
    types.push_back(*resultType);
  }
  const json *metadata = member(node, "metadata");
  Location place = FileLineColLoc::get(context, fileName, number, 0);
  Location loc = NameLoc::get(builder.getStringAttr(name),
                              graph::addSource(place, metadata ? text(member(*metadata, "stack_trace")) : ""));
  if (scope.autocast && domain == "aten")
    castOperands(scope.autocast, type, loc, arguments, types);
  arguments.attributes.set("arg_names", builder.getStrArrayAttr(arguments.names));
  if (type.starts_with("as_strided") && !inputs->empty())
    describeMemory(scope, (*inputs)[0], arguments.attributes);
  auto regionNames = llvm::map_to_vector(arguments.graphs, [](auto &graph) { return StringRef(graph.first); });
  auto op = graph::NodeOp::create(builder, loc, domain, type, opset, types, arguments.operands, arguments.attributes,
                                  regionNames);
  layouts.describe(op, llvm::map_to_vector(resultNames, [&](StringRef result) { return metaOf(scope, result); }));
  for (auto [i, entry] : llvm::enumerate(arguments.graphs)) {
    const json &graph = *entry.second;
    OpBuilder::InsertionGuard guard(builder);
    Block *block = builder.createBlock(&op.getGraphs()[i]);
    Scope types(graph);
    const json *graphInputs = member(graph, "inputs");
    for (size_t k = 0; graphInputs && graphInputs->is_array() && k < graphInputs->size(); ++k) {
      llvm::Expected<Type> type = typeOf(types, nameOf((*graphInputs)[k]));
      if (!type)
        return type.takeError();
      block->addArgument(*type, loc);
    }
    llvm::Expected<SmallVector<Value>> results = importGraph(name, graph, block->getArguments(), scope.autocast);
    if (!results)
      return results.takeError();
    // Those that are None have no result of the node, either.
    llvm::erase_if(*results, [](Value value) { return isa<NoneType>(value.getType()); });
    graph::YieldOp::create(builder, loc, *results);
  }
  for (auto [result, resultName] : llvm::zip_equal(op.getOutputs(), resultNames))
    if (!resultName.empty())
      scope.values[resultName] = result;
  return llvm::Error::success();
}

llvm::Error NodeImporter::importNodes(Scope &scope) {
  const json *nodes = member(scope.graph, "nodes");
  if (!nodes || !nodes->is_array())
    return error("the program has a graph without nodes; the archive is damaged");
  for (const json &node : *nodes)
    if (llvm::Error e = importNode(scope, node))
      return e;
  return llvm::Error::success();
}
