//===- CustomOperator.cpp - operators of the user's own -----------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "CustomOperator.h"

#include "ONNXSupport.h"
#include "tc/Format/Json.h"
#include "tc/Functions/Store.h"
#include "tc/Support/BlobStore.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace tc;
using namespace tc::prim;
using llvm::json::Array;
using llvm::json::Object;

namespace {

//===--- reading --------------------------------------------------------------------------------------------------===//

/// Reads one signature. Each function returns whether all was well, and else has set `problem`.
class Reader {
public:
  explicit Reader(CustomOperator &op) : op(op) {}
  bool read(const Object &object);
  std::string problem;

private:
  bool fail(const Twine &what) {
    if (problem.empty())
      problem = what.str();
    return false;
  }
  bool checkKeys(const Object &object, ArrayRef<StringRef> known, const Twine &where);
  bool readText(const Object &object, StringRef key, std::string &text, const Twine &where);
  bool readDtype(StringRef text, int64_t &dtype);
  bool readExpression(const llvm::json::Value &value, CustomOperator::Expression &steps);
  bool readOperand(const Object &object);
  bool readAttribute(const Object &object);
  bool readResult(const Object &object);
  std::optional<unsigned> findOperand(StringRef name) const;
  /// Objects of a list, which may be missing.
  bool forEach(const Object &object, StringRef key, llvm::function_ref<bool(const Object &)> readOne);

  CustomOperator &op;
};

bool Reader::checkKeys(const Object &object, ArrayRef<StringRef> known, const Twine &where) {
  std::vector<StringRef> keys;
  for (const auto &entry : object)
    keys.push_back(entry.first);
  llvm::sort(keys);
  for (StringRef key : keys)
    if (!llvm::is_contained(known, key))
      return fail(where + " has the key \"" + key + "\"; known: " + llvm::join(known, ", "));
  return true;
}

bool Reader::readText(const Object &object, StringRef key, std::string &text, const Twine &where) {
  std::optional<StringRef> value = object.getString(key);
  if (!value || value->empty())
    return fail(where + " needs \"" + key + "\", a string");
  text = value->str();
  return true;
}

bool Reader::readDtype(StringRef text, int64_t &dtype) {
  for (int64_t i = TCRT_DTYPE_F32; i <= TCRT_DTYPE_BF16; ++i)
    if (text == tcrt_dtype_name(tcrt_dtype_t(i))) {
      dtype = i;
      return true;
    }
  return false;
}

std::optional<unsigned> Reader::findOperand(StringRef name) const {
  for (auto [i, operand] : llvm::enumerate(op.operands))
    if (operand.name == name)
      return i;
  return std::nullopt;
}

/// Numbers, dims ("x.0"), + - * / (rounding down) and parentheses, by Dijkstra's shunting yard.
bool Reader::readExpression(const llvm::json::Value &value, CustomOperator::Expression &steps) {
  using Step = CustomOperator::Step;
  if (std::optional<int64_t> number = value.getAsInteger()) {
    if (*number < 0)
      return fail("a size of a result is " + Twine(*number));
    steps.push_back({Step::Number, *number, 0});
    return true;
  }
  std::optional<StringRef> given = value.getAsString();
  if (!given)
    return fail("sizes of results are numbers or expressions in strings, such as \"x.0 + 1\"");
  StringRef text = *given;
  auto wrong = [&](const Twine &what) { return fail("the size \"" + *given + "\" " + what); };
  SmallVector<char> pending;
  auto kindOf = [](char c) {
    return c == '+' ? Step::Add : c == '-' ? Step::Subtract : c == '*' ? Step::Multiply : Step::Divide;
  };
  auto binds = [](char c) { return c == '*' || c == '/' ? 2 : c == '(' ? 0 : 1; };
  bool isOperandNext = true;
  while (!(text = text.ltrim()).empty()) {
    char c = text.front();
    if (isOperandNext && c != '(') {
      StringRef word = text.take_while([](char c) { return !StringRef("+-*/() \t").contains(c); });
      Step step{Step::Number, 0, 0};
      if (word.empty())
        return wrong("lacks a number or a dim before \"" + text + "\"");
      if (word.getAsInteger(10, step.number)) {
        auto [name, dim] = word.rsplit('.');
        std::optional<unsigned> operand = findOperand(name);
        if (!operand || dim.getAsInteger(10, step.number) || step.number < 0)
          return wrong("has \"" + word + "\", which is neither a number nor OPERAND.DIM");
        int64_t rank = op.operands[*operand].rank;
        if (rank < 0 || step.number >= rank)
          return wrong("reads dim " + Twine(step.number) + " of \"" + name + "\", whose \"rank\" " +
                       (rank < 0 ? Twine("is not given") : "is " + Twine(rank)));
        step.kind = Step::Dim;
        step.operand = *operand;
      }
      steps.push_back(step);
      text = text.drop_front(word.size());
      isOperandNext = false;
      continue;
    }
    text = text.drop_front();
    if (c == '(' && isOperandNext) {
      pending.push_back(c);
      continue;
    }
    if (isOperandNext || !StringRef("+-*/)").contains(c))
      return wrong("has a \"" + Twine(c) + "\" where an operator belongs");
    while (!pending.empty() && pending.back() != '(' && (c == ')' || binds(pending.back()) >= binds(c)))
      steps.push_back({kindOf(pending.pop_back_val())});
    if (c == ')') {
      if (pending.empty())
        return wrong("closes a parenthesis that is not open");
      pending.pop_back();
    } else {
      pending.push_back(c);
      isOperandNext = true;
    }
  }
  if (isOperandNext)
    return wrong("ends too early");
  for (; !pending.empty(); pending.pop_back()) {
    if (pending.back() == '(')
      return wrong("does not close a parenthesis");
    steps.push_back({kindOf(pending.back())});
  }
  return true;
}

bool Reader::readOperand(const Object &object) {
  CustomOperator::Operand operand;
  if (!readText(object, "name", operand.name, "an operand") ||
      !checkKeys(object, {"name", "dtype", "rank"}, "operand \"" + operand.name + "\""))
    return false;
  if (findOperand(operand.name))
    return fail("two operands have the name \"" + operand.name + "\"");
  if (object.get("dtype") && !readDtype(object.getString("dtype").value_or(""), operand.dtype))
    return fail("operand \"" + operand.name +
                "\": \"dtype\" is no dtype; known are f32, i64, u8, bool, string and others");
  if (const llvm::json::Value *rank = object.get("rank")) {
    operand.rank = rank->getAsInteger().value_or(-1);
    if (operand.rank < 0 || operand.rank > TCRT_MAX_RANK)
      return fail("operand \"" + operand.name + "\": \"rank\" must be a number from 0 to " + Twine(TCRT_MAX_RANK));
  }
  op.operands.push_back(operand);
  return true;
}

bool Reader::readAttribute(const Object &object) {
  CustomOperator::Attribute attribute;
  std::string type;
  if (!readText(object, "name", attribute.name, "an attribute"))
    return false;
  std::string where = "attribute \"" + attribute.name + "\"";
  if (!checkKeys(object, {"name", "type", "default"}, where) || !readText(object, "type", type, where))
    return false;
  StringRef kind = type;
  attribute.isList = kind.consume_back("s");
  if (kind != "int" && kind != "float" && kind != "string")
    return fail(where + ": \"type\" is \"" + type + "\"; known: int, ints, float, floats, string, strings");
  attribute.kind = kind == "int"     ? CustomOperator::Attribute::Int
                   : kind == "float" ? CustomOperator::Attribute::Float
                                     : CustomOperator::Attribute::String;
  if (const llvm::json::Value *given = object.get("default")) {
    attribute.hasDefault = true;
    Array single{*given};
    const Array *values = attribute.isList ? given->getAsArray() : &single;
    bool fits = values;
    for (const llvm::json::Value &value : fits ? *values : Array()) {
      if (std::optional<int64_t> number = value.getAsInteger();
          number && attribute.kind == CustomOperator::Attribute::Int)
        attribute.ints.push_back(*number);
      else if (std::optional<double> number = value.getAsNumber();
               number && attribute.kind == CustomOperator::Attribute::Float)
        attribute.floats.push_back(*number);
      else if (std::optional<StringRef> text = value.getAsString();
               text && attribute.kind == CustomOperator::Attribute::String)
        attribute.strings.push_back(text->str());
      else
        fits = false;
    }
    if (!fits)
      return fail(where + ": \"default\" is not of type " + type);
  }
  op.attributes.push_back(std::move(attribute));
  return true;
}

bool Reader::readResult(const Object &object) {
  CustomOperator::Result result;
  std::string dtype;
  std::string where = ("result " + Twine(op.results.size())).str();
  if (!checkKeys(object, {"name", "dtype", "dims", "rank"}, where) || !readText(object, "dtype", dtype, where))
    return false;
  if (!readDtype(dtype, result.dtype)) {
    std::optional<unsigned> like = findOperand(dtype);
    if (!like)
      return fail(where + ": \"dtype\" is \"" + dtype + "\", which is neither a dtype nor an operand");
    result.like = *like;
  }
  const llvm::json::Value *dims = object.get("dims"), *rank = object.get("rank");
  if (bool(dims) == bool(rank))
    return fail(where + " needs either \"dims\" or, where only the function knows them, \"rank\"");
  if (rank) {
    result.freeRank = rank->getAsInteger().value_or(-1);
    if (*result.freeRank < 0 || *result.freeRank > TCRT_MAX_RANK)
      return fail(where + ": \"rank\" must be a number from 0 to " + Twine(TCRT_MAX_RANK));
  } else if (std::optional<StringRef> name = dims->getAsString()) {
    result.dimsOf = findOperand(*name);
    if (!result.dimsOf)
      return fail(where + ": \"dims\" is \"" + *name + "\", which is no operand");
  } else if (const Array *list = dims->getAsArray()) {
    for (const llvm::json::Value &value : *list)
      if (!readExpression(value, result.dims.emplace_back()))
        return false;
  } else {
    return fail(where + ": \"dims\" must be a list of sizes, or the name of an operand of these sizes");
  }
  op.results.push_back(std::move(result));
  return true;
}

bool Reader::forEach(const Object &object, StringRef key, llvm::function_ref<bool(const Object &)> readOne) {
  const llvm::json::Value *value = object.get(key);
  const Array *list = value ? value->getAsArray() : nullptr;
  if (value && !list)
    return fail("\"" + key + "\" must be a list of objects");
  for (const llvm::json::Value &entry : list ? *list : Array()) {
    const Object *one = entry.getAsObject();
    if (!one)
      return fail("\"" + key + "\" must be a list of objects");
    if (!readOne(*one))
      return false;
  }
  return true;
}

bool Reader::read(const Object &object) {
  if (!readText(object, "name", op.name, "an operator"))
    return false;
  if (!checkKeys(object, {"domain", "name", "since_version", "function", "operands", "attributes", "results"}, "it") ||
      !readText(object, "function", op.function, "it"))
    return false;
  op.domain = object.getString("domain").value_or("ai.onnx").str();
  if (op.domain.empty())
    op.domain = "ai.onnx";
  if (const llvm::json::Value *version = object.get("since_version")) {
    op.sinceVersion = version->getAsInteger().value_or(0);
    if (op.sinceVersion < 1)
      return fail("\"since_version\" must be a number from 1 on");
  }
  if (tcrt_find_function(op.function.data(), op.function.size()))
    return fail("libtcrt has a function \"" + op.function + "\" of its own; choose another name");
  return forEach(object, "operands", [&](const Object &o) { return readOperand(o); }) &&
         forEach(object, "attributes", [&](const Object &o) { return readAttribute(o); }) &&
         forEach(object, "results", [&](const Object &o) { return readResult(o); }) &&
         (!op.results.empty() || fail("it has no results"));
}

//===--- converting -----------------------------------------------------------------------------------------------===//

FailureOr<AffineExpr> evaluate(NodeContext &ctx, ValueRange operands, const CustomOperator::Expression &steps) {
  using Step = CustomOperator::Step;
  SmallVector<AffineExpr> stack;
  for (const Step &step : steps) {
    if (step.kind == Step::Number || step.kind == Step::Dim) {
      stack.push_back(step.kind == Step::Number ? ctx.b.size(step.number)
                                                : getSizes(operands[step.operand])[step.number]);
      continue;
    }
    AffineExpr right = stack.pop_back_val(), left = stack.pop_back_val();
    if (step.kind == Step::Divide && failed(ctx.require(CompareKind::LE, ctx.b.size(1), right, "a divisor above 0")))
      return failure();
    stack.push_back(step.kind == Step::Add        ? left + right
                    : step.kind == Step::Subtract ? left - right
                    : step.kind == Step::Multiply ? left * right
                                                  : left.floorDiv(right));
  }
  AffineExpr size = simplifySize(stack.front());
  if (failed(ctx.require(CompareKind::LE, ctx.b.size(0), size, "results of sizes that are not negative")))
    return failure();
  return size;
}

Type elementTypeOf(NodeContext &ctx, int64_t dtype) {
  return dtype == TCRT_DTYPE_STRING ? Type(base::StringType::get(ctx.b.getContext()))
                                    : elementTypeOfONNX(ctx.b.getContext(), dtype);
}

/// Where the operands of a node stand: in the order of its signature, or, where the node says which argument each one
/// is
/// (`arg_names`, as PyTorch's doors give), by name.
class Arguments {
public:
  explicit Arguments(NodeContext &ctx) : ctx(ctx), names(dyn_cast_or_null<ArrayAttr>(ctx.attr("arg_names"))) {}
  bool areNamed() const { return bool(names); }
  Value find(StringRef name, size_t position) const {
    if (!names)
      return ctx.operand(position);
    for (auto [i, known] : llvm::enumerate(names.getAsRange<StringAttr>()))
      if (known.getValue() == name)
        return ctx.operand(i);
    return {};
  }
  /// Whether a signature has none for this attribute, as it only describes the operands.
  bool describesOperands(StringRef attribute) const { return names && attribute == "arg_names"; }
  /// The first operand whose argument is neither an operand nor an attribute of the signature; empty if there is none.
  StringRef findUnknown(const CustomOperator &custom) const {
    auto knows = [&](const auto &list, StringRef name) {
      return llvm::any_of(list, [&](const auto &entry) { return entry.name == name; });
    };
    if (!names)
      return {};
    for (StringAttr known : names.getAsRange<StringAttr>()) {
      // An entry of a list is its name and its number.
      auto [list, number] = known.getValue().rsplit('.');
      if (!knows(custom.operands, known.getValue()) && !knows(custom.attributes, known.getValue()) &&
          !knows(custom.attributes, list))
        return known.getValue();
    }
    return {};
  }

private:
  NodeContext &ctx;
  ArrayAttr names;
};

/// An integer attribute, or a list, with entries that only the run knows: a tensor of i64. Null if it is none such.
Value symbolicValue(NodeContext &ctx, const Arguments &arguments, const CustomOperator::Attribute &attribute) {
  PrimBuilder &b = ctx.b;
  Attribute given = ctx.attr(attribute.name);
  if (!arguments.areNamed() || !given || attribute.kind != CustomOperator::Attribute::Int)
    return {};
  auto entryValue = [&](Attribute entry) -> Value {
    if (auto name = dyn_cast<StringAttr>(entry)) {
      Value v = arguments.find(name.getValue(), 0);
      return v && isa<IntegerType>(b.elementOf(v)) && b.rankOf(v) == 0 ? b.convert(v, b.getI64Type()) : Value();
    }
    auto number = dyn_cast<IntegerAttr>(entry);
    return number ? b.sizeValue(b.size(number.getInt())) : Value();
  };
  if (!attribute.isList)
    return isa<StringAttr>(given) ? entryValue(given) : Value();
  auto list = dyn_cast<ArrayAttr>(given);
  if (!list || list.empty())
    return {};
  SmallVector<Value> entries;
  for (Attribute entry : list) {
    Value v = entryValue(entry);
    if (!v)
      return {};
    entries.push_back(b.unsqueeze(v, 0));
  }
  return b.concat(entries, 0);
}

/// The attribute as a constant: i64, f64 or string, 0-D or a list.
FailureOr<Value> attributeValue(NodeContext &ctx, const Arguments &arguments,
                                const CustomOperator::Attribute &attribute) {
  PrimBuilder &b = ctx.b;
  Attribute given = ctx.attr(attribute.name);
  if (Value v = symbolicValue(ctx, arguments, attribute))
    return v;
  auto wrong = [&](const Twine &what) {
    return LogicalResult(ctx.invalid("attribute " + attribute.name + " " + what));
  };
  if (!given && !attribute.hasDefault)
    return wrong("is missing, and its signature has no default");
  std::vector<int64_t> ints = attribute.ints;
  std::vector<double> floats = attribute.floats;
  std::vector<std::string> strings = attribute.strings;
  if (given) {
    bool fits = false;
    auto take = [&](auto &values, auto list, auto one) {
      values.clear();
      if (attribute.isList && list)
        values.assign(list->begin(), list->end());
      else if (!attribute.isList && one)
        values.push_back(*one);
      // An empty list has no kind of its own.
      auto array = dyn_cast<ArrayAttr>(given);
      fits = attribute.isList ? list || (array && array.empty()) : bool(one);
    };
    if (attribute.kind == CustomOperator::Attribute::Int)
      take(ints, ctx.getInts(attribute.name),
           isa<BoolAttr>(given)      ? std::optional<int64_t>(cast<BoolAttr>(given).getValue())
           : isa<IntegerAttr>(given) ? std::optional(ctx.getInt(attribute.name, 0))
                                     : std::nullopt);
    else if (attribute.kind == CustomOperator::Attribute::Float)
      // Where a schema says Scalar, a whole number is stored as one.
      take(floats, ctx.getFloats(attribute.name),
           isa<FloatAttr>(given) ? std::optional(ctx.getFloat(attribute.name, 0))
           : arguments.areNamed() && isa<IntegerAttr>(given)
               ? std::optional<double>(cast<IntegerAttr>(given).getValue().getSExtValue())
               : std::nullopt);
    else
      take(strings, ctx.getStrings(attribute.name),
           isa<StringAttr>(given) ? std::optional(ctx.getString(attribute.name, "")) : std::nullopt);
    if (!fits)
      return wrong("is not of the type that its signature says");
  }
  if (attribute.kind == CustomOperator::Attribute::Int)
    return attribute.isList ? b.constantI64s(ints) : b.sizeValue(b.size(ints.front()));
  if (attribute.kind == CustomOperator::Attribute::Float) {
    SmallVector<int64_t> shape;
    if (attribute.isList)
      shape.push_back(floats.size());
    auto type = RankedTensorType::get(shape, b.getF64Type());
    return Value(prim::ConstantOp::create(b, cast<TypedAttr>(DenseElementsAttr::get(type, ArrayRef<double>(floats)))));
  }
  SmallVector<StringRef> texts(strings.begin(), strings.end());
  return attribute.isList ? b.strings(texts, {int64_t(texts.size())}) : b.string(texts.front());
}

} // namespace

llvm::Error tc::readCustomOperators(StringRef path, GraphToPrimOptions &options) {
  auto fail = [&](const Twine &what) { return llvm::createStringError(path + ": error: " + what); };
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> file = mapFile(path);
  if (!file)
    return file.takeError();
  StringRef text = (*file)->getBuffer();
  if (text.starts_with("\x7f"
                       "ELF") ||
      text.starts_with("!<arch>"))
    return fail(
        "this is object code, which cannot be linked into artifacts; give the JSON file with the signatures here, "
        "and the shared library to the runtime (tc-run --custom-op)");
  if (isJsonTooDeep(text.data(), text.size()))
    return fail("the file is nested too deeply; examples/custom-op has one that is right");
  llvm::Expected<llvm::json::Value> json = llvm::json::parse(text);
  if (!json)
    return fail("the file is not JSON: " + llvm::toString(json.takeError()));
  const Object *root = json->getAsObject();
  const Array *list = root ? root->getArray("operators") : nullptr;
  if (!list)
    return fail("an object with a list \"operators\" is expected; examples/custom-op has one");
  for (auto [i, value] : llvm::enumerate(*list)) {
    auto custom = std::make_shared<CustomOperator>();
    Reader reader(*custom);
    const Object *object = value.getAsObject();
    if (!object)
      return fail("operator " + Twine(i) + " is no object");
    if (!reader.read(*object))
      return fail("operator " + Twine(i) + (custom->name.empty() ? "" : " (\"" + custom->name + "\")") + ": " +
                  reader.problem);
    for (const auto &other : options.customOperators)
      if (other->domain == custom->domain && other->name == custom->name && other->sinceVersion == custom->sinceVersion)
        return fail("operator " + Twine(i) + " (\"" + custom->name + "\"): it has two signatures since version " +
                    Twine(custom->sinceVersion));
    options.customOperators.push_back(std::move(custom));
  }
  return llvm::Error::success();
}

const CustomOperator *tc::findCustomOperator(const GraphToPrimOptions &options, graph::NodeOp node) {
  const CustomOperator *best = nullptr;
  // PyTorch's operators have overloads: "twice" in a signature is "twice.default".
  StringRef type = node.getOpType(), name = type;
  if (node.getNodeAttr("arg_names"))
    name.consume_back(".default");
  for (const auto &custom : options.customOperators)
    if (custom->domain == node.getDomain() && (custom->name == type || custom->name == name) &&
        custom->sinceVersion <= int64_t(node.getOpset()) && (!best || best->sinceVersion < custom->sinceVersion))
      best = custom.get();
  return best;
}

LogicalResult tc::convertCustomOperator(NodeContext &ctx, const CustomOperator &custom) {
  PrimBuilder &b = ctx.b;
  const Arguments arguments(ctx);
  if (StringRef unknown = arguments.findUnknown(custom); !unknown.empty())
    return ctx.invalid("has the tensor argument " + unknown + ", which its signature lacks");
  // Archives do not say which arguments an operator of torch.library writes, but one without results does nothing else.
  if (arguments.areNamed() && ctx.numResults() == 0)
    return ctx.invalid("returns nothing, so that it can only write its arguments, which is not supported; have the "
                       "operator return new values (mutates_args=()), and use these in the model");
  if (!arguments.areNamed() && ctx.numOperands() != custom.operands.size())
    return ctx.invalid("has " + Twine(ctx.numOperands()) + " operands, its signature " + Twine(custom.operands.size()));
  if (ctx.numResults() > custom.results.size())
    return ctx.invalid("has " + Twine(ctx.numResults()) + " results, its signature " + Twine(custom.results.size()));
  for (NamedAttribute attribute : ctx.node().getAttrs())
    if (!arguments.describesOperands(attribute.getName()) &&
        llvm::none_of(custom.attributes, [&](const auto &known) { return known.name == attribute.getName().strref(); }))
      return ctx.invalid("has the attribute " + attribute.getName().strref() + ", which its signature lacks");
  SmallVector<Value> operands;
  for (auto [i, operand] : llvm::enumerate(custom.operands)) {
    Value v = arguments.find(operand.name, i);
    if (!v)
      return ctx.invalid("operand " + Twine(i) + " (" + operand.name + ") is absent");
    Type element = b.elementOf(v);
    if (base::isHandle(element) || isNarrowElement(element))
      return ctx.unsupported("with operand " + operand.name + " of type " + describe(v) +
                             " is not supported; custom operators take tensors of elements of 8 bits and more, and of "
                             "strings");
    if ((operand.dtype && element != elementTypeOf(ctx, operand.dtype)) ||
        (operand.rank >= 0 && operand.rank != b.rankOf(v)))
      return ctx.invalid("operand " + operand.name + " is " + describe(v) + ", its signature says " +
                         (operand.dtype ? tcrt_dtype_name(tcrt_dtype_t(operand.dtype)) : "any dtype") +
                         (operand.rank >= 0 ? " of rank " + Twine(operand.rank) : Twine(" of any rank")));
    operands.push_back(v);
  }
  for (const CustomOperator::Attribute &attribute : custom.attributes) {
    FailureOr<Value> value = attributeValue(ctx, arguments, attribute);
    if (failed(value))
      return failure();
    operands.push_back(*value);
  }
  SmallVector<Type> types;
  SmallVector<RankedTensorType> insides;
  for (const CustomOperator::Result &result : custom.results) {
    Type element = result.dtype ? elementTypeOf(ctx, result.dtype) : b.elementOf(operands[result.like]);
    insides.emplace_back();
    if (result.freeRank) {
      SmallVector<int64_t> shape(*result.freeRank, ShapedType::kDynamic);
      insides.back() = RankedTensorType::get(shape, element);
      types.push_back(makeType(base::OptType::get(b.getContext(), insides.back()), {}));
      continue;
    }
    Sizes sizes;
    if (result.dimsOf)
      sizes = getSizes(operands[*result.dimsOf]);
    for (const CustomOperator::Expression &expression : result.dims) {
      FailureOr<AffineExpr> size = evaluate(ctx, operands, expression);
      if (failed(size))
        return failure();
      sizes.push_back(*size);
    }
    types.push_back(makeType(element, sizes));
  }
  SmallVector<Value> results(b.hostCall(custom.function, operands, types));
  for (size_t i = 0; i < ctx.numResults(); ++i) {
    FailureOr<Value> v = insides[i] ? takeOut(ctx, results[i], insides[i]) : FailureOr<Value>(results[i]);
    if (failed(v) || failed(ctx.set(i, *v)))
      return failure();
  }
  return success();
}
