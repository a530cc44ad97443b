//===- ATenCalls.cpp - calls of operators on tensors, to nodes ----------------------------------------------------===//
//
// The code names operators without their overloads; the arguments choose, as in torch/csrc/jit/frontend/
// schema_matching.cpp: the first signature whose arguments fit as they are, else the first that they fit when a tensor
// of one element stands for a number. Nodes have the form that lib/Frontend/ExportedProgram gives them: arguments that
// equal their defaults are left out.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "HostOperators.h"
#include "ScalarTypes.h"

#include "tc/Dialect/Graph/IR/Graph.h"
#include "tc/Dialect/Graph/IR/Source.h"
#include "tc/Dialect/Graph/Torch/Schemas.h"
#include "tc/Dialect/TC/IR/TC.h"

using namespace mlir;
using namespace tc;
using namespace tc::torchscript;
using llvm::StringRef;
using llvm::Twine;
using torch::Schema;
using torch::SchemaArgument;
using torch::SchemaType;
using SchemaKind = torch::SchemaType::Kind;

//===--- scalars --------------------------------------------------------------------------------------------------===//

Location Interpreter::locationOf(StringRef op, Position at) {
  std::string name;
  for (const Frame *f = frame; f && name.empty(); f = f->caller)
    if (f->self && !f->self->path.empty())
      name = f->self->path + "/";
  name += (op + "#" + Twine(++nodeCount)).str();
  Location place = UnknownLoc::get(builder.getContext());
  if (frame) {
    place = FileLineColLoc::get(builder.getContext(), frame->file->path, at.line, at.column);
    if (std::optional<SourceLine> line = findLine(at))
      place = graph::addSource(place, line->file, line->line);
  }
  return NameLoc::get(builder.getStringAttr(name), place);
}

/// The number that a tensor is known to hold, or null.
static const PyValue *knownNumber(const PyValue &value) {
  return value.isTensor() && value.held && !value.held->items.empty() ? &value.held->items[0] : nullptr;
}

const PyValue *Interpreter::readNumber(const PyValue &tensor) {
  const PyValue *known = knownNumber(tensor);
  if (known && tensor.graph)
    takesConstant(tensor.graph);
  return known;
}

mlir::Value Interpreter::materialize(const PyValue &value) {
  if (value.graph)
    return value.graph;
  PyValue number = value;
  if (const PyValue *known = knownNumber(value))
    number = *known;
  if (number.graph)
    return number.graph;
  Type element = number.is(Kind::Bool)  ? Type(builder.getI1Type())
                 : number.is(Kind::Int) ? Type(builder.getI64Type())
                                        : Type(builder.getF64Type());
  Attribute attr = number.is(Kind::Float) ? Attribute(FloatAttr::get(element, number.number))
                                          : Attribute(IntegerAttr::get(element, number.integer));
  auto type = RankedTensorType::get({}, element);
  return graph::ConstantOp::create(builder, locationOf("constant", frame ? frame->at : Position()), type,
                                   base::fromDense(DenseElementsAttr::get(type, attr)));
}

std::optional<RankedTensorType> Interpreter::findType(const PyValue &tensor) {
  std::optional<RankedTensorType> type = isUnknown(tensor) ? std::nullopt : typeOf(tensor, Position());
  if (!type)
    recover();
  return type;
}

std::optional<RankedTensorType> Interpreter::typeOf(const PyValue &tensor, Position at) {
  if (const PyValue *known = knownNumber(tensor); known && !tensor.graph)
    return RankedTensorType::get({}, known->is(Kind::Bool)    ? Type(builder.getI1Type())
                                     : known->is(Kind::Float) ? Type(builder.getF64Type())
                                                              : Type(builder.getI64Type()));
  if (!oracle) {
    fail(at, "the code asks for the sizes of a tensor, which are not known here");
    return std::nullopt;
  }
  if (unknowns.contains(tensor.graph))
    return loseType(tensor, at, "nothing is known of a tensor");
  llvm::Expected<RankedTensorType> type = oracle->getType(tensor.graph);
  if (type)
    return *type;
  return loseType(tensor, at, llvm::toString(type.takeError()));
}

Result Interpreter::sizeOf(const PyValue &tensor, int64_t dim, Position at) {
  std::optional<RankedTensorType> type = typeOf(tensor, at);
  if (!type)
    return std::nullopt;
  int64_t rank = type->getRank(), axis = dim < 0 ? dim + rank : dim;
  if (axis < 0 || axis >= rank)
    return raise(at, "dimension " + Twine(dim) + " of a tensor of rank " + Twine(rank) + " is asked for");
  if (!type->isDynamicDim(axis))
    return PyValue::ofInt(type->getDimSize(axis));
  mlir::Value &node = sizeNodes[{tensor.graph, axis}];
  if (!node) {
    Builder &b = builder;
    NamedAttrList attributes;
    attributes.set("arg_names", b.getStrArrayAttr({"self"}));
    attributes.set("dim", b.getI64IntegerAttr(axis));
    Type unknown = base::UnknownType::get(b.getContext());
    auto op = graph::NodeOp::create(builder, locationOf("sym_size", at), "aten", "sym_size.int", 1, TypeRange(unknown),
                                    ValueRange(tensor.graph), attributes);
    node = op.getOutputs()[0];
  }
  return resolve(PyValue::ofGraph(Kind::SymInt, node));
}

PyValue Interpreter::resolve(PyValue value) {
  if (!value.isSymbolic() || value.is(Kind::SymFloat) || !oracle || dataNumbers.contains(value.graph) ||
      unknowns.contains(value.graph))
    return value;
  std::optional<int64_t> known =
      takesConstant(value.graph) ? oracle->getInteger(value.graph) : std::optional<int64_t>();
  if (!known)
    return value;
  return value.is(Kind::SymBool) ? PyValue::ofBool(*known) : PyValue::ofInt(*known);
}

void Interpreter::setTypes(Operation *root) {
  if (!hasWrites || !oracle)
    return;
  root->walk<WalkOrder::PreOrder>([&](graph::NodeOp node) {
    for (mlir::Value result : node.getOutputs()) {
      llvm::Expected<RankedTensorType> type = oracle->getType(result);
      if (type)
        result.setType(*type);
      else
        llvm::consumeError(type.takeError()); // the conversion will say why
    }
  });
}

/// Whether the graph so far writes tensors that are no floats: numbers in tensors are then no constants.
bool Interpreter::writesIntegers() {
  for (mlir::Value written : std::exchange(uncheckedWrites, {})) {
    llvm::Expected<RankedTensorType> type = oracle->getType(written);
    if (!type)
      llvm::consumeError(type.takeError());
    else if (isa<FloatType>(type->getElementType()))
      continue;
    hasIntegerWrites = true;
  }
  return hasIntegerWrites;
}

Result Interpreter::toNumber(const PyValue &tensor, Kind kind, Position at) {
  if (isQuantized(tensor))
    return refuse("item", at, "a quantised tensor is made a number, which is not supported; dequantise it first");
  if (const PyValue *known = readNumber(tensor)) {
    PyValue number = *known;
    const char *name = kind == Kind::SymInt ? "aten::Int" : kind == Kind::SymFloat ? "aten::Float" : "aten::Bool";
    return callOperator(name, {number}, {}, at);
  }
  std::optional<RankedTensorType> type = typeOf(tensor, at);
  if (!type)
    return recover() ? Result(PyValue::ofGraph(kind, makeUnknown(at).graph)) : std::nullopt;
  for (int64_t size : type->getShape())
    if (size != 1 && !ShapedType::isDynamic(size))
      return raise(at, "a tensor of more or fewer than one element is made a number");
  Type element = type->getElementType();
  Kind own = isa<FloatType>(element) ? Kind::SymFloat : element.isInteger(1) ? Kind::SymBool : Kind::SymInt;
  bool isData = writesIntegers() || (own != Kind::SymFloat && !takesConstant(tensor.graph));
  if (own == Kind::SymFloat && kind == Kind::SymInt && oracle && !isData && takesConstant(tensor.graph)) {
    // Sizes that traces compute in floats, as of a scale.
    if (std::optional<int64_t> number = oracle->getInteger(tensor.graph))
      return PyValue::ofInt(*number);
  }
  if (own != Kind::SymFloat && oracle && !isData)
    if (std::optional<int64_t> number = oracle->getInteger(tensor.graph)) {
      PyValue known = own == Kind::SymBool ? PyValue::ofBool(*number) : PyValue::ofInt(*number);
      return kind == own ? Result(known) : toNumber(*callPrimNumber(known), kind, at);
    }
  Type unknown = base::UnknownType::get(builder.getContext());
  NamedAttrList attributes;
  attributes.set("arg_names", builder.getStrArrayAttr({"self"}));
  auto op = graph::NodeOp::create(builder, locationOf("item", at), "aten", "_local_scalar_dense.default", 1,
                                  TypeRange(unknown), ValueRange(tensor.graph), attributes);
  PyValue number = PyValue::ofGraph(own, op.getOutputs()[0]);
  if (isData)
    dataNumbers.insert(number.graph);
  if (kind == own)
    return number;
  const char *name = kind == Kind::SymInt ? "aten::Int" : kind == Kind::SymFloat ? "aten::Float" : "aten::Bool";
  return callOperator(name, {number}, {}, at);
}

Result Interpreter::callPrimNumber(const PyValue &number) {
  bool isKnown = false;
  return callPrim("NumToTensor", {number}, {}, frame ? frame->at : Position(), isKnown);
}

Result Interpreter::callSymbolic(StringRef name, Values args, Kind kind, Position at) {
  static const char *const kNames[] = {"a", "b", "c"};
  bool isTorch = name.starts_with("sym_");
  bool isMath = name == "floor" || name == "ceil";
  NamedAttrList attributes;
  llvm::SmallVector<mlir::Value> operands;
  llvm::SmallVector<StringRef> names;
  bool isData = false;
  for (auto [i, arg] : llvm::enumerate(args)) {
    // sym_ite(b, t, f); sym_int(a); floor(x).
    StringRef argName = name == "sym_ite" ? StringRef("btf").substr(i, 1) : isMath ? "x" : kNames[i];
    PyValue value = resolve(arg);
    if (value.is(Kind::Bool)) {
      attributes.set(argName, builder.getBoolAttr(value.integer));
    } else if (value.is(Kind::Int)) {
      attributes.set(argName, builder.getI64IntegerAttr(value.integer));
    } else if (value.is(Kind::Float)) {
      attributes.set(argName, builder.getF64FloatAttr(value.number));
    } else if (value.isSymbolic()) {
      attributes.set(argName, builder.getStringAttr(argName));
      names.push_back(argName);
      operands.push_back(value.graph);
      isData |= dataNumbers.contains(value.graph);
    } else {
      return fail(at, describe(value) + " stands where a number is expected");
    }
  }
  attributes.set("arg_names", builder.getStrArrayAttr(names));
  std::string type = (isTorch ? "torch." : isMath ? "math." : "_operator.") + name.str();
  Type unknown = base::UnknownType::get(builder.getContext());
  auto op =
      graph::NodeOp::create(builder, locationOf(name, at), "torch", type, 1, TypeRange(unknown), operands, attributes);
  spreadUnknown(op);
  if (isData)
    dataNumbers.insert(op.getOutputs()[0]);
  return resolve(PyValue::ofGraph(kind, op.getOutputs()[0]));
}

void Interpreter::emitAssert(const PyValue &condition, StringRef message, Position at) {
  NamedAttrList attributes;
  attributes.set("arg_names", builder.getStrArrayAttr({"self"}));
  attributes.set("self", builder.getStringAttr("self"));
  attributes.set("assert_msg", builder.getStringAttr(message));
  graph::NodeOp::create(builder, locationOf("assert", at), "aten", "_assert_scalar.default", 1, TypeRange(),
                        ValueRange(materialize(condition)), attributes);
}

//===--- the choice of an overload --------------------------------------------------------------------------------===//

/// Whether `value` may stand for an argument of `type`. `converts`: tensors may stand for numbers.
static bool fits(const SchemaType &type, const PyValue &value, bool converts) {
  switch (type.kind) {
  case SchemaKind::Tensor:
    return value.isTensor();
  case SchemaKind::Int:
  case SchemaKind::SymInt:
    return value.is(Kind::Int) || value.is(Kind::SymInt) || (converts && value.isTensor());
  case SchemaKind::Float:
    return value.is(Kind::Float) || value.is(Kind::SymFloat) ||
           (converts && (value.isTensor() || value.is(Kind::Int) || value.is(Kind::SymInt)));
  case SchemaKind::Bool:
    return value.is(Kind::Bool) || value.is(Kind::SymBool) || (converts && value.isTensor());
  case SchemaKind::Complex:
    return value.is(Kind::Complex);
  case SchemaKind::Scalar:
    return value.isScalar() || value.is(Kind::Complex) || (converts && value.isTensor());
  case SchemaKind::String:
    return value.is(Kind::String);
  case SchemaKind::ScalarType:
  case SchemaKind::Layout:
  case SchemaKind::MemoryFormat:
    return value.is(Kind::Int);
  case SchemaKind::Device:
    return value.is(Kind::Device) || (converts && value.is(Kind::String));
  case SchemaKind::Generator:
    return false;
  case SchemaKind::Any:
  case SchemaKind::Variable:
    return true;
  case SchemaKind::List: {
    const SchemaType &element = type.elements[0];
    if (!value.is(Kind::List) && !(converts && value.is(Kind::Tuple)))
      return type.length && fits(element, value, converts);
    if (value.held->items.empty() && !value.held->text.empty())
      return (value.held->text == "Tensor") == (element.required().kind == SchemaKind::Tensor) &&
             (value.held->text != "float" || element.kind != SchemaKind::Int);
    return llvm::all_of(value.held->items, [&](const PyValue &item) { return fits(element, item, converts); });
  }
  case SchemaKind::Optional:
    return value.isNone() || fits(type.elements[0], value, converts);
  case SchemaKind::Dict:
    return value.is(Kind::Dict);
  case SchemaKind::Tuple:
    return value.is(Kind::Tuple);
  case SchemaKind::Future:
  case SchemaKind::Class:
    return value.is(Kind::Object);
  }
  llvm_unreachable("all kinds are handled");
}

/// The arguments in the order of the signature, absent where left out; nullopt where they do not fit.
static std::optional<std::vector<Result>> match(const Schema &schema, Values args, NamedValues named, bool converts) {
  size_t positional =
      llvm::count_if(schema.arguments, [](const SchemaArgument &argument) { return !argument.keywordOnly; });
  if (args.size() > positional && !schema.variadic)
    return std::nullopt;
  std::vector<Result> all(schema.arguments.size());
  for (size_t i = 0; i < std::min(args.size(), positional); ++i)
    all[i] = args[i];
  for (const NamedValue &value : named) {
    const SchemaArgument *argument = schema.find(value.name);
    if (!argument)
      return std::nullopt;
    Result &place = all[size_t(argument - schema.arguments.data())];
    if (place)
      return std::nullopt;
    place = value.value;
  }
  for (auto [argument, value] : llvm::zip_equal(schema.arguments, all)) {
    if (!value ? !argument.defaultText.has_value() : !fits(argument.type, *value, converts))
      return std::nullopt;
  }
  return all;
}

/// Itself, or in a list of at most two levels, as signatures have them.
static bool hasTensor(const PyValue &value, int levels = 2) {
  if (value.isTensor())
    return true;
  return levels > 0 && (value.is(Kind::List) || value.is(Kind::Tuple)) &&
         llvm::any_of(value.held->items, [&](const PyValue &item) { return hasTensor(item, levels - 1); });
}

/// Whether results of this signature are tensors.
static bool givesTensors(const Schema &schema) {
  return schema.results.empty() || llvm::any_of(schema.results, [](const SchemaArgument &result) {
           const SchemaType &type = result.type.required();
           return type.kind == SchemaKind::Tensor || type.isListOf(SchemaKind::Tensor);
         });
}

//===--- nodes ----------------------------------------------------------------------------------------------------===//

namespace tc::torchscript {

/// Makes the node of one call.
class ATenCall {
public:
  ATenCall(Interpreter &in, const Schema &schema, Position at) : in(in), schema(schema), at(at), b(in.builder) {}

  Result emit(llvm::ArrayRef<Result> args);

private:
  bool addArgument(const SchemaArgument &argument, const PyValue &value);
  bool addList(StringRef name, const SchemaType &element, const PyValue &list, std::optional<int64_t> length);
  void addOperand(StringRef name, const PyValue &value) {
    names.push_back(in.keepText(name));
    operands.push_back(in.materialize(value));
  }
  bool isDefault(const SchemaArgument &argument, const PyValue &value);
  void weighNumbers();
  /// Of the call as a whole: false.
  bool refuse(const Twine &reason) {
    if (!isRefused && !in.hasFailed() && !in.hasRaised())
      refused = in.refuseCall((schema.domain + "::" + schema.nodeType()).str(), {}, at, reason);
    isRefused = true;
    return false;
  }
  bool isRefused = false;
  Result refused;
  /// Whether a run gives as many tensors as its statement unpacks, or else fails.
  bool givesAsTold() const { return schema.name == "unbind" || schema.name == "tensor_split"; }
  /// How many tensors a result that is a list has.
  std::optional<int64_t> countResults(llvm::ArrayRef<Result> args);
  Result argument(llvm::ArrayRef<Result> args, StringRef name) {
    const SchemaArgument *found = schema.find(name);
    return found ? args[size_t(found - schema.arguments.data())] : std::nullopt;
  }

  Interpreter &in;
  const Schema &schema;
  Position at;
  OpBuilder &b;
  llvm::SmallVector<mlir::Value> operands;
  llvm::SmallVector<StringRef> names;
  NamedAttrList attributes;
};

} // namespace tc::torchscript

bool ATenCall::isDefault(const SchemaArgument &argument, const PyValue &value) {
  std::optional<torch::SchemaValue> given = argument.defaultValue();
  if (!given)
    return false;
  auto sameList = [&](auto &list, auto same) {
    return value.is(Kind::List) && value.held->items.size() == list.size() &&
           llvm::all_of(llvm::zip_equal(list, value.held->items), same);
  };
  if (std::holds_alternative<std::monostate>(*given))
    return value.isNone();
  if (auto *flag = std::get_if<bool>(&*given))
    return value.is(Kind::Bool) && (value.integer != 0) == *flag;
  if (auto *number = std::get_if<int64_t>(&*given)) {
    if (argument.type.required().kind == SchemaKind::List)
      return value.is(Kind::List) &&
             llvm::all_of(value.held->items, [&](const PyValue &v) { return v.is(Kind::Int) && v.integer == *number; });
    return value.is(Kind::Int) && value.integer == *number;
  }
  if (auto *number = std::get_if<double>(&*given))
    return value.is(Kind::Float) && value.number == *number;
  if (auto *text = std::get_if<std::string>(&*given))
    return value.is(Kind::String) && value.held->text == *text;
  if (auto *list = std::get_if<std::vector<int64_t>>(&*given))
    return sameList(*list, [](auto pair) {
      return std::get<1>(pair).is(Kind::Int) && std::get<1>(pair).integer == std::get<0>(pair);
    });
  return false;
}

bool ATenCall::addList(StringRef name, const SchemaType &element, const PyValue &value, std::optional<int64_t> length) {
  std::vector<PyValue> items;
  if (value.is(Kind::List) || value.is(Kind::Tuple))
    items = value.held->items;
  else
    items.assign(size_t(length.value_or(1)), value);
  SchemaKind kind = element.required().kind;
  if (kind == SchemaKind::Tensor) {
    for (auto [i, item] : llvm::enumerate(items))
      if (!item.isNone())
        addOperand((name + "." + Twine(i)).str(), item);
    attributes.set((name + ".count").str(), b.getI64IntegerAttr(int64_t(items.size())));
    return true;
  }
  llvm::SmallVector<Attribute> entries;
  bool allKnown = true;
  for (auto [i, item] : llvm::enumerate(items)) {
    PyValue number = item;
    if (number.isTensor()) {
      Result held = in.toNumber(number, kind == SchemaKind::Float ? Kind::SymFloat : Kind::SymInt, at);
      if (!held)
        return false;
      number = *held;
    }
    items[i] = number = in.resolve(number);
    allKnown &= number.isNumber();
    if (number.isSymbolic()) {
      std::string operand = (name + "." + Twine(i)).str();
      addOperand(operand, number);
      entries.push_back(b.getStringAttr(operand));
    } else if (number.is(Kind::Float)) {
      entries.push_back(b.getF64FloatAttr(number.number));
    } else if (number.is(Kind::String)) {
      entries.push_back(b.getStringAttr(number.held->text));
    } else {
      entries.push_back(b.getI64IntegerAttr(number.integer));
    }
  }
  if (!allKnown)
    attributes.set(name, b.getArrayAttr(entries));
  else if (kind == SchemaKind::Float)
    attributes.set(name,
                   b.getDenseF64ArrayAttr(llvm::map_to_vector(items, [](const PyValue &v) { return v.asDouble(); })));
  else if (kind == SchemaKind::Bool)
    attributes.set(
        name, b.getDenseBoolArrayAttr(llvm::map_to_vector(items, [](const PyValue &v) -> bool { return v.integer; })));
  else if (kind == SchemaKind::Int || kind == SchemaKind::SymInt)
    attributes.set(name,
                   b.getDenseI64ArrayAttr(llvm::map_to_vector(items, [](const PyValue &v) { return v.integer; })));
  else
    attributes.set(name, b.getArrayAttr(entries));
  return true;
}

bool ATenCall::addArgument(const SchemaArgument &argument, const PyValue &given) {
  const SchemaType &type = argument.type.required();
  StringRef name = argument.name;
  if (isDefault(argument, given))
    return true;
  if (given.isNone()) {
    if (!argument.defaultText)
      return true;
    return refuse("with argument \"" + name + "\", which has a default, as None is not supported; give a value");
  }
  PyValue value = given;
  if (type.kind == SchemaKind::List)
    return addList(name, type.elements[0], value, type.length);
  if (type.kind == SchemaKind::Tensor) {
    addOperand(name, value);
    return true;
  }
  // Only a number that a tensor holds fits where no tensor does.
  if (value.isTensor() && type.kind != SchemaKind::Any && type.kind != SchemaKind::Variable) {
    Result held;
    if (type.kind == SchemaKind::Scalar) {
      std::optional<RankedTensorType> tensor = in.typeOf(value, at);
      if (!tensor)
        return false;
      Type element = tensor->getElementType();
      held = in.toNumber(value,
                         isa<FloatType>(element) ? Kind::SymFloat
                         : element.isInteger(1)  ? Kind::SymBool
                                                 : Kind::SymInt,
                         at);
    } else {
      held = in.toNumber(value,
                         type.kind == SchemaKind::Float  ? Kind::SymFloat
                         : type.kind == SchemaKind::Bool ? Kind::SymBool
                                                         : Kind::SymInt,
                         at);
    }
    if (!held)
      return false;
    value = *held;
  }
  value = in.resolve(value);
  switch (type.kind) {
  case SchemaKind::ScalarType: {
    Type element = typeOfCode(b.getContext(), value.integer);
    if (!element) {
      return refuse("with argument \"" + name + "\" as element type number " + Twine(value.integer) +
                    " is not supported; use a float, int or bool type");
    }
    attributes.set(name, TypeAttr::get(element));
    return true;
  }
  case SchemaKind::Layout:
    attributes.set(name, b.getStringAttr("as_layout"));
    return true;
  case SchemaKind::MemoryFormat:
    attributes.set(name, b.getStringAttr("as_memory_format"));
    return true;
  case SchemaKind::Device:
    attributes.set(name, b.getStringAttr("as_device"));
    return true;
  default:
    break;
  }
  if (value.isSymbolic()) {
    attributes.set(name, b.getStringAttr(name));
    addOperand(name, value);
  } else if (value.is(Kind::Bool)) {
    attributes.set(name, b.getBoolAttr(value.integer));
  } else if (value.is(Kind::Int)) {
    if (type.kind == SchemaKind::Float)
      attributes.set(name, b.getF64FloatAttr(double(value.integer)));
    else
      attributes.set(name, b.getI64IntegerAttr(value.integer));
  } else if (value.is(Kind::Float)) {
    attributes.set(name, b.getF64FloatAttr(value.number));
  } else if (value.is(Kind::String)) {
    attributes.set(name, b.getStringAttr(value.held->text));
  } else {
    return refuse("with argument \"" + name + "\" as " + describe(value) +
                  " is not supported; give tensors, numbers and lists of them");
  }
  return true;
}

/// A trace holds Python's floats as constants without dims, of f64. In promotion they stay Python's numbers: beside
/// integers they mean the default type.
void ATenCall::weighNumbers() {
  if (operands.size() != 2)
    return;
  for (size_t i = 0; i < 2; ++i) {
    auto constant = operands[i].getDefiningOp<graph::ConstantOp>();
    auto type = constant ? dyn_cast<RankedTensorType>(constant.getType()) : RankedTensorType();
    if (!type || type.getRank() != 0 || !type.getElementType().isF64())
      continue;
    std::optional<RankedTensorType> beside = in.findType(PyValue::ofGraph(Kind::Tensor, operands[1 - i]));
    if (!beside || !isa<IntegerType>(beside->getElementType()))
      continue;
    NamedAttrList converted;
    converted.set("arg_names", b.getStrArrayAttr({"self"}));
    converted.set("dtype", TypeAttr::get(b.getF32Type()));
    Type unknown = base::UnknownType::get(b.getContext());
    operands[i] = graph::NodeOp::create(in.builder, in.locationOf("to", at), "aten", "to.dtype", 1, TypeRange(unknown),
                                        operands[i], converted.getAttrs())
                      .getOutputs()[0];
  }
}

std::optional<int64_t> ATenCall::countResults(llvm::ArrayRef<Result> args) {
  StringRef name = schema.name;
  name.consume_front("unsafe_");
  name.consume_back("_copy");
  auto integer = [&](StringRef argumentName, int64_t otherwise) {
    Result value = argument(args, argumentName);
    PyValue known = value ? in.resolve(*value) : PyValue::ofInt(otherwise);
    return known.is(Kind::Int) ? std::optional<int64_t>(known.integer) : std::nullopt;
  };
  auto listLength = [&](StringRef argumentName) -> std::optional<int64_t> {
    Result value = argument(args, argumentName);
    if (!value || !value->is(Kind::List))
      return std::nullopt;
    return int64_t(value->held->items.size());
  };
  for (StringRef list : {"tensors", "self"})
    if (const SchemaArgument *found = schema.find(list); found && found->type.isListOf(SchemaKind::Tensor))
      return listLength(list);
  if (name == "split_with_sizes")
    return listLength("split_sizes");
  if (std::optional<int64_t> sizes = name == "split" ? listLength("split_size") : std::nullopt)
    return sizes;
  if (std::optional<int64_t> indices = name.ends_with("split") ? listLength("indices") : std::nullopt)
    return *indices + 1;
  if (std::optional<int64_t> parts =
          name == "tensor_split" || name.ends_with("split") ? integer("sections", -1) : std::nullopt;
      parts && *parts > 0)
    return parts;
  if (Result given = argument(args, "tensor_indices_or_sections"); given && given->isTensor()) {
    std::optional<RankedTensorType> type = in.findType(*given);
    if (type && type->getRank() == 1 && type->hasStaticShape())
      return type->getDimSize(0) + 1;
    Result sections = type && type->getRank() == 0 ? in.toNumber(*given, Kind::SymInt, at) : std::nullopt;
    return sections && sections->is(Kind::Int) && sections->integer > 0 ? std::optional(sections->integer)
                                                                        : std::nullopt;
  }
  if (name == "gradient") // along the dims that are named, or those of the distances, or all
    for (StringRef list : {"dim", "spacing"})
      if (Result value = argument(args, list); value && !value->isNone() && (list == "dim" || value->is(Kind::List)))
        return value->is(Kind::List) ? int64_t(value->held->items.size()) : 1;
  Result self = argument(args, schema.name == "where" ? "condition" : "self");
  std::optional<RankedTensorType> type = self && self->isTensor() ? in.findType(*self) : std::nullopt;
  if (!type)
    return std::nullopt;
  if (schema.name == "where" || schema.name == "nonzero_numpy" || schema.name == "gradient")
    return std::max<int64_t>(type->getRank(), 1); // a tensor without dims counts as a vector
  std::optional<int64_t> dim = integer("dim", 0);
  if (dim && *dim < 0)
    *dim += type->getRank();
  if (!dim || *dim < 0 || *dim >= type->getRank())
    return std::nullopt;
  int64_t size = type->getDimSize(*dim);
  if (name == "chunk") {
    std::optional<int64_t> chunks = integer("chunks", 1);
    if (!chunks || *chunks < 1 || ShapedType::isDynamic(size))
      return chunks;
    // Fewer where they would be empty, but one at least.
    int64_t each = std::max<int64_t>(1, llvm::divideCeil(size, *chunks));
    return size == 0 ? *chunks : llvm::divideCeil(size, each);
  }
  if (ShapedType::isDynamic(size))
    return std::nullopt;
  if (name == "unbind")
    return size;
  std::optional<int64_t> each = integer("split_size", 0);
  if (name == "split" && each && *each > 0)
    return std::max<int64_t>(1, llvm::divideCeil(size, *each));
  return std::nullopt;
}

/// A number that stood as a tensor is from now on what the graph computes: all that hold it see the first operand.
static void forgetNumber(const PyValue &tensor, graph::NodeOp node) {
  const PyValue *known = knownNumber(tensor);
  if (!known)
    return;
  const Kind kind = known->is(Kind::Float) || known->is(Kind::SymFloat) ? Kind::SymFloat
                    : known->is(Kind::Bool) || known->is(Kind::SymBool) ? Kind::SymBool
                                                                        : Kind::SymInt;
  tensor.held->items.clear();
  if (!tensor.graph)
    tensor.held->items = {PyValue::ofGraph(kind, node.getInputs()[0])};
}

Result ATenCall::emit(llvm::ArrayRef<Result> args) {
  for (auto [argument, value] : llvm::zip_equal(schema.arguments, args))
    if (value && !addArgument(argument, *value))
      return refused;
  weighNumbers();
  attributes.set("arg_names", b.getStrArrayAttr(names));
  Type unknown = base::UnknownType::get(b.getContext());
  llvm::SmallVector<Type> types;
  llvm::SmallVector<Kind> kinds;
  llvm::SmallVector<int64_t> counts; // -1: one that is no list
  bool isList = true;
  for (const SchemaArgument &result : schema.results) {
    if (result.type.isListOf(SchemaKind::Tensor)) {
      std::optional<int64_t> count = countResults(args);
      const bool isCut = llvm::any_of(args, [&](const Result &value) { return value && in.isUnknown(*value); });
      if (!count && !in.hasFailed() && !in.hasRaised() && (givesAsTold() || isCut))
        count = in.countOfUnpacking(at);
      if (!count && isCut) {
        isList = false; // for what the conversion says of the operator
        types.push_back(unknown);
        continue;
      }
      if (!count)
        return refuse("gives a number of tensors that only a run knows, which is not supported; fix the size with "
                      "--shape or --dim"),
               refused;
      if (*count < 0)
        return in.fail(at, schema.domain + "::" + schema.name + " is to give " + Twine(*count) + " tensors");
      if (*count > 100'000)
        return in.fail(at, schema.domain + "::" + schema.name + " gives more than 100,000 tensors");
      counts.push_back(*count);
      types.append(size_t(*count), unknown);
      kinds.append(size_t(*count), Kind::Tensor);
      continue;
    }
    counts.push_back(-1);
    types.push_back(unknown);
    SchemaKind kind = result.type.required().kind;
    kinds.push_back(kind == SchemaKind::Int || kind == SchemaKind::SymInt ? Kind::SymInt
                    : kind == SchemaKind::Float                           ? Kind::SymFloat
                    : kind == SchemaKind::Bool                            ? Kind::SymBool
                                                                          : Kind::Tensor);
    if (kind != SchemaKind::Tensor && kinds.back() == Kind::Tensor)
      return refuse("gives " + result.type.str() + ", which is not supported; results may be tensors and numbers"),
             refused;
  }
  auto node = graph::NodeOp::create(b, in.locationOf(schema.name, at), schema.domain, schema.nodeType(), 1, types,
                                    operands, attributes);
  in.spreadUnknown(node);
  if (!isList)
    return in.makeUnknownResults(at);
  for (auto [argument, value] : llvm::zip_equal(schema.arguments, args)) {
    if (!value)
      continue;
    if (argument.isWritten()) {
      in.hasWrites = true;
      if (!value->isTensor())
        continue;
      forgetNumber(*value, node);
      in.uncheckedWrites.push_back(value->graph ? value->graph : node.getInputs()[0]);
      in.noteWrite(in.uncheckedWrites.back());
    } else if (argument.type.findAlias() && value->isTensor()) {
      forgetNumber(*value, node); // it may be written through the other name
    }
  }
  std::vector<PyValue> results;
  unsigned next = 0;
  for (int64_t count : counts) {
    auto take = [&] {
      PyValue value = PyValue::ofGraph(kinds[next], node.getOutputs()[next]);
      ++next;
      return value;
    };
    if (count < 0) {
      results.push_back(take());
      continue;
    }
    std::vector<PyValue> items;
    for (int64_t i = 0; i < count; ++i)
      items.push_back(take());
    results.push_back(in.makeList(std::move(items), "Tensor"));
  }
  return results.empty() ? PyValue() : results.size() == 1 ? results[0] : in.makeTuple(std::move(results));
}

/// What operators give of tensors that hold known integers: traced code computes sizes with them. Nullopt without a
/// message where it is none of these.
/// x.to() of what x is already, which is x itself: models leave such values in their attributes (anchors of detectors).
static bool isConversionToItself(Values args, NamedValues named) {
  auto type = args[0].graph ? dyn_cast<RankedTensorType>(args[0].graph.getType()) : RankedTensorType();
  const size_t at = args.size() > 1 && args[1].is(Kind::Device) ? 2 : 1;
  if (!type || !named.empty() || args.size() <= at || !args[at].is(Kind::Int))
    return false;
  return codeOfType(type.getElementType()) == args[at].integer &&
         llvm::all_of(args.drop_front(at + 1), [](const PyValue &option) {
           return option.isNone() || (option.is(Kind::Bool) && !option.integer);
         });
}

static Result foldKnown(Interpreter &in, StringRef name, Values args, NamedValues named, Position at) {
  if (args.empty() || !llvm::all_of(named, [](const NamedValue &v) {
        return v.name != "alpha" || (v.value.is(Kind::Int) && v.value.integer == 1);
      }))
    return std::nullopt;
  if (!args[0].isTensor())
    return std::nullopt;
  if (name == "to" && isConversionToItself(args, named))
    return args[0];
  std::vector<PyValue> numbers;
  for (const PyValue &arg : args.take_front(2)) {
    const PyValue *known = in.readNumber(arg);
    if (arg.isTensor() && !known)
      return std::nullopt;
    PyValue number = known ? *known : arg;
    if (!number.is(Kind::Int) && !number.is(Kind::SymInt))
      return std::nullopt;
    numbers.push_back(in.resolve(number));
  }
  StringRef op = llvm::is_contained({"add", "sub", "mul", "remainder"}, name) ? name
                 : name == "floor_divide"                                     ? "floordiv"
                                                                              : "";
  if (name == "div")
    for (const NamedValue &value : named)
      if (value.name == "rounding_mode" && value.value.is(Kind::String)) {
        // Towards zero is downwards where nothing is negative.
        bool isPositive = llvm::all_of(numbers, [](const PyValue &v) { return v.is(Kind::Int) && v.integer >= 0; });
        op = value.value.held->text == "floor" || isPositive ? "floordiv" : "";
      }
  if (op.empty() || args.size() != 2 ||
      (op != "add" && op != "sub" && op != "mul" && numbers[1].is(Kind::Int) && numbers[1].integer == 0))
    return std::nullopt;
  Result number = in.arithmetic(op, numbers[0], numbers[1], at);
  return number ? in.callPrimNumber(*number) : std::nullopt;
}

Result Interpreter::callATen(StringRef name, Values args, NamedValues named, Position at) {
  Result value = callATenOnce(name, args, named, at);
  return value || !recover() ? value : makeUnknownResults(at);
}

Result Interpreter::callATenOnce(StringRef name, Values args, NamedValues named, Position at) {
  // What becomes a node costs more than what is computed at once.
  steps += 20;
  if (!spend(at))
    return std::nullopt;
  if (Result known = foldKnown(*this, name, args, named, at); known || hasFailed() || hasRaised())
    return known;
  // A number that stands as a tensor, by which traces count: all that hold the tensor see it change.
  if (name.ends_with("_") && !args.empty() && args[0].isTensor() && !args[0].graph && knownNumber(args[0])) {
    Result number = foldKnown(*this, name.drop_back(), args, named, at);
    if (hasFailed() || hasRaised())
      return std::nullopt;
    if (number) {
      const PyValue *known = knownNumber(*number);
      args[0].held->items = {known ? *known : PyValue::ofGraph(Kind::SymInt, number->graph)};
      return args[0];
    }
  }
  StringRef domain = "aten", type = name;
  if (name.contains("::"))
    std::tie(domain, type) = name.split("::");
  // Operators of the user's own go before PyTorch's.
  llvm::SmallVector<const Schema *> own;
  bool lacksSchema = false;
  for (const auto &custom : customOperators) {
    if (custom->schema && custom->schema->domain == domain && custom->schema->name == type)
      own.push_back(&*custom->schema);
    lacksSchema |= !custom->schema && custom->domain == domain && StringRef(custom->name).split('.').first == type;
  }
  if (!own.empty())
    return callOverload(own, domain, type, args, named, at);
  if (domain == "quantized" || (domain == "aten" && (type == "quantize_per_tensor" || type == "dequantize")) ||
      (!quantized.empty() && domain != "quantized_decomposed" &&
       (llvm::any_of(args, [&](const PyValue &value) { return isQuantized(value); }) ||
        llvm::any_of(named, [&](const NamedValue &value) { return isQuantized(value.value); }))))
    return callQuantized(domain, type, args, named, at);
  // In-place changes of a tensor's shape would change what all its other names are.
  static const char *const kReshaping[] = {"squeeze_",  "unsqueeze_", "transpose_", "t_",   "swapaxes_",
                                           "swapdims_", "resize_",    "resize_as_", "set_", "as_strided_"};
  if (domain == "aten" && llvm::is_contained(kReshaping, type))
    return refuseCall(("aten::" + type).str(), args, at,
                      "changes the shape of a tensor in place, which is not supported; use " + type.drop_back() +
                          " and its result");
  if (domain == "aten")
    if (Result upgraded = upgrade(type, args, named, at); upgraded || hasFailed() || hasRaised())
      return upgraded;
  if (domain == "aten" && type.starts_with("_"))
    if (Result parts = decompose(type, args, at); parts || hasFailed() || hasRaised())
      return parts;
  if (!nested.empty() && llvm::any_of(args, [&](const PyValue &value) { return findNested(value); }))
    return callNested(type, args, at);
  llvm::ArrayRef<const Schema *> overloads = torch::findOverloads(domain, type);
  if (!overloads.empty())
    return callOverload(overloads, domain, type, args, named, at);
  // An operator of the user's own, or one that PyTorch no longer has.
  return refuseCall((domain + "::" + type).str(), args, at,
                    lacksSchema ? "is not supported in TorchScript without a \"schema\", which says in what order "
                                  "arguments come; give one to --custom-op"
                                : "");
}

Result Interpreter::callOverload(llvm::ArrayRef<const Schema *> overloads, StringRef domain, StringRef type,
                                 Values args, NamedValues named, Position at) {
  bool ofTensors = llvm::any_of(args, [](const PyValue &value) { return hasTensor(value); }) ||
                   llvm::any_of(named, [](const NamedValue &value) { return hasTensor(value.value); });
  for (bool converts : {false, true})
    for (const Schema *schema : overloads) {
      // Operators on numbers alone were tried before.
      if (!givesTensors(*schema) && (!ofTensors || converts) && schema->results.size() == 1)
        continue;
      if (std::optional<std::vector<Result>> all = match(*schema, args, named, converts))
        return ATenCall(*this, *schema, at).emit(*all);
    }
  std::string given;
  for (const PyValue &arg : args)
    given += (given.empty() ? "" : ", ") + describe(arg).str();
  for (const NamedValue &value : named)
    given += (given.empty() ? "" : ", ") + value.name.str() + "=" + describe(value.value).str();
  const bool isCustom = llvm::any_of(
      customOperators, [&](const auto &custom) { return custom->schema && &*custom->schema == overloads.front(); });
  return fail(at, "no overload of " + domain + "::" + type + " takes (" + given + "); " +
                      (isCustom ? "correct its \"schema\" in the file of --custom-op"
                                : "the archive is damaged, or its PyTorch is newer than tc's table"));
}
