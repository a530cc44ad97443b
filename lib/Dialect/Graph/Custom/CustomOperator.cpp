//===- CustomOperator.cpp - operators of the user's own -----------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Graph/Custom/CustomOperator.h"

#include "tc/Format/Json.h"
#include "tc/Functions/Store.h"
#include "tc/Support/BlobStore.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace tc;
using llvm::json::Array;
using llvm::json::Object;

namespace {

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
  bool readSchema(StringRef text);
  bool addArgument(const torch::SchemaArgument &argument);
  bool readOperand(const Object &object);
  bool readAttribute(const Object &object);
  bool readResult(const Object &object);
  bool checkResults();
  std::optional<unsigned> findOperand(StringRef name) const;
  /// One that is never None, which results may be like.
  std::optional<unsigned> findGiven(StringRef name) const {
    std::optional<unsigned> found = findOperand(name);
    return found && !op.operands[*found].isOptional ? found : std::nullopt;
  }
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
        std::optional<unsigned> operand = findGiven(name);
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
  std::optional<unsigned> known = findOperand(operand.name);
  if (op.schema && !known)
    return fail("operand \"" + operand.name + "\" is no tensor of its schema");
  if (!op.schema && known)
    return fail("two operands have the name \"" + operand.name + "\"");
  if (object.get("dtype") && !readDtype(object.getString("dtype").value_or(""), operand.dtype))
    return fail("operand \"" + operand.name +
                "\": \"dtype\" is no dtype; known are f32, i64, u8, bool, string and others");
  if (const llvm::json::Value *rank = object.get("rank")) {
    operand.rank = rank->getAsInteger().value_or(-1);
    if (operand.rank < 0 || operand.rank > TCRT_MAX_RANK)
      return fail("operand \"" + operand.name + "\": \"rank\" must be a number from 0 to " + Twine(TCRT_MAX_RANK));
  }
  if (known) {
    operand.written = op.operands[*known].written;
    operand.isOptional = op.operands[*known].isOptional;
    op.operands[*known] = operand;
  } else {
    op.operands.push_back(operand);
  }
  return true;
}

/// Operands, attributes, and what is written, in the order of the signature that torch.library was given.
bool Reader::readSchema(StringRef text) {
  op.schemaText = text.str();
  op.schema = torch::parseSchema(op.schemaText);
  if (!op.schema || op.schema->variadic)
    return fail("\"schema\" is not what torch.library takes and PyTorch prints of an operator, such as "
                "my::blend(Tensor x, Tensor(a!) y, float alpha=1) -> Tensor");
  op.domain = op.schema->domain.str();
  op.name = op.schema->overload.empty() ? op.schema->name.str() : op.schema->nodeType();
  for (const torch::SchemaArgument &argument : op.schema->arguments)
    if (!addArgument(argument))
      return false;
  auto isWritten = [&](StringRef set) {
    return llvm::any_of(op.schema->arguments, [&](const torch::SchemaArgument &argument) {
      return argument.isWritten() && argument.type.findAlias()->aliasSet == set;
    });
  };
  for (const torch::SchemaArgument &result : op.schema->results) {
    if (result.type.kind != torch::SchemaType::Kind::Tensor)
      return fail("its schema returns " + result.type.str() + "; functions make tensors");
    if (const torch::SchemaType *alias = result.type.findAlias(); alias && !isWritten(alias->aliasSet))
      return fail("its schema returns a view of an argument, which no function can make; return a new tensor");
  }
  if (op.schema->results.empty() && !op.writes())
    return fail("its schema returns nothing and writes nothing");
  return true;
}

bool Reader::addArgument(const torch::SchemaArgument &argument) {
  using Kind = torch::SchemaType::Kind;
  using Attribute = CustomOperator::Attribute;
  const torch::SchemaType &type = argument.type;
  std::string name = argument.name.str();
  if (type.required().kind == Kind::Tensor) {
    op.operands.push_back({name, 0, -1, argument.isWritten(), type.isOptional() && !argument.isWritten()});
    return true;
  }
  std::optional<torch::SchemaValue> given = argument.defaultValue();
  if (argument.defaultText && !given)
    return fail("the default of its argument \"" + name + "\" is not of the type " + type.str());
  auto wrong = [&] {
    return fail(
        "its argument \"" + name + "\" is of the type " + type.str() +
        "; functions take tensors, int, SymInt, bool, float, Scalar and str, lists of these but for tensors, and "
        "others only where the default is None, which stays");
  };
  // There is no None of a number.
  if (type.isOptional()) {
    if (!given || !std::holds_alternative<std::monostate>(*given))
      return wrong();
    op.omitted.push_back(name);
    return true;
  }
  Attribute attribute;
  attribute.name = name;
  attribute.isList = type.kind == Kind::List;
  switch ((attribute.isList ? type.elements[0] : type).kind) {
  case Kind::Int:
  case Kind::SymInt:
  case Kind::Bool:
    attribute.kind = Attribute::Int;
    break;
  case Kind::Float:
  case Kind::Scalar:
    attribute.kind = Attribute::Float;
    break;
  case Kind::String:
    attribute.kind = Attribute::String;
    break;
  default:
    return wrong();
  }
  attribute.hasDefault = bool(given);
  bool fits = true;
  auto take = [&](const auto &values) {
    fits = attribute.kind != Attribute::String || values.empty();
    if (attribute.kind == Attribute::Int)
      attribute.ints.assign(values.begin(), values.end());
    else
      attribute.floats.assign(values.begin(), values.end());
  };
  if (!given)
    fits = true;
  else if (auto *flag = std::get_if<bool>(&*given))
    take(ArrayRef<int64_t>(int64_t(*flag)));
  else if (auto *integer = std::get_if<int64_t>(&*given))
    take(ArrayRef<int64_t>(*integer));
  else if (auto *number = std::get_if<double>(&*given); number && attribute.kind == Attribute::Float)
    take(ArrayRef<double>(*number));
  else if (auto *word = std::get_if<std::string>(&*given); word && attribute.kind == Attribute::String)
    attribute.strings.push_back(*word);
  else if (auto *integers = std::get_if<std::vector<int64_t>>(&*given))
    take(*integers);
  else if (auto *numbers = std::get_if<std::vector<double>>(&*given); numbers && attribute.kind == Attribute::Float)
    take(*numbers);
  else if (auto *flags = std::get_if<std::vector<bool>>(&*given))
    take(*flags);
  else
    fits = false;
  if (!fits)
    return fail("the default of its argument \"" + name + "\" is not of the type " + type.str());
  op.attributes.push_back(std::move(attribute));
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
    std::optional<unsigned> like = findGiven(dtype);
    if (!like)
      return fail(where + ": \"dtype\" is \"" + dtype +
                  "\", which is neither a dtype nor an operand that is always given");
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
    result.dimsOf = findGiven(*name);
    if (!result.dimsOf)
      return fail(where + ": \"dims\" is \"" + *name + "\", which is no operand that is always given");
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
  if (object.get("schema")) {
    std::string text;
    if (!readText(object, "schema", text, "it") || !readSchema(text) ||
        !checkKeys(object, {"schema", "function", "operands", "results"}, "it, whose schema says the rest,") ||
        !readText(object, "function", op.function, "it"))
      return false;
  } else {
    if (!readText(object, "name", op.name, "an operator"))
      return false;
    if (!checkKeys(object,
                   {"domain", "name", "schema", "since_version", "function", "operands", "attributes", "results"},
                   "it") ||
        !readText(object, "function", op.function, "it"))
      return false;
    op.domain = object.getString("domain").value_or("ai.onnx").str();
    if (op.domain.empty())
      op.domain = "ai.onnx";
  }
  if (const llvm::json::Value *version = object.get("since_version")) {
    op.sinceVersion = version->getAsInteger().value_or(0);
    if (op.sinceVersion < 1)
      return fail("\"since_version\" must be a number from 1 on");
  }
  if (tcrt_find_function(op.function.data(), op.function.size()))
    return fail("libtcrt has a function \"" + op.function + "\" of its own; choose another name");
  return forEach(object, "operands", [&](const Object &o) { return readOperand(o); }) &&
         forEach(object, "attributes", [&](const Object &o) { return readAttribute(o); }) &&
         forEach(object, "results", [&](const Object &o) { return readResult(o); }) && checkResults();
}

bool Reader::checkResults() {
  if (!op.schema)
    return !op.results.empty() || fail("it has no results; where it writes its operands, its \"schema\" says so");
  size_t made = llvm::count_if(op.schema->results, [](const auto &result) { return !result.type.findAlias(); });
  return op.results.size() == made ||
         fail("its schema returns " + Twine(made) + " new tensors, \"results\" has " + Twine(op.results.size()));
}

} // namespace

llvm::Error tc::readCustomOperators(StringRef path, CustomOperators &operators) {
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
    for (const auto &other : operators)
      if (other->domain == custom->domain && other->name == custom->name && other->sinceVersion == custom->sinceVersion)
        return fail("operator " + Twine(i) + " (\"" + custom->name + "\"): it has two signatures since version " +
                    Twine(custom->sinceVersion));
    operators.push_back(std::move(custom));
  }
  return llvm::Error::success();
}

const CustomOperator *tc::findCustomOperator(const CustomOperators &operators, graph::NodeOp node) {
  return findCustomOperator(operators, node.getDomain(), node.getOpType(), int64_t(node.getOpset()),
                            bool(node.getNodeAttr("arg_names")));
}

const CustomOperator *tc::findCustomOperator(const CustomOperators &operators, StringRef domain, StringRef type,
                                             int64_t opset, bool hasOverloads) {
  const CustomOperator *best = nullptr;
  // "twice" in a signature is "twice.default".
  StringRef name = type;
  if (hasOverloads)
    name.consume_back(".default");
  for (const auto &custom : operators)
    if (custom->domain == domain && (custom->name == type || custom->name == name) && custom->sinceVersion <= opset &&
        (!best || best->sinceVersion < custom->sinceVersion))
      best = custom.get();
  return best;
}
