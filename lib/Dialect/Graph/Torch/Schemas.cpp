//===- Schemas.cpp - the signatures of PyTorch's operators --------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Dialect/Graph/Torch/Schemas.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"

#include <memory>
#include <mutex>

using namespace tc;
using namespace tc::torch;
using llvm::ArrayRef;
using llvm::StringRef;
using Kind = SchemaType::Kind;

namespace {

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverlength-strings"
constexpr StringRef kText =
#include "Schemas.txt"
    ;
constexpr StringRef kCore =
#include "Core.txt"
    ;
#pragma GCC diagnostic pop

/// Reads one signature: domain::name.overload(type name=default, *, ...) -> type.
class Parser {
public:
  explicit Parser(StringRef text) : rest(text) {}
  bool parse(Schema &schema);

private:
  void blanks() { rest = rest.ltrim(' '); }
  bool accept(StringRef what) {
    blanks();
    return rest.consume_front(what);
  }
  void expect(StringRef what) { failed |= !accept(what); }
  StringRef word() {
    blanks();
    StringRef taken = rest.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
    rest = rest.drop_front(taken.size());
    return taken;
  }
  SchemaType type();
  void marks(SchemaType &of);
  SchemaArgument argument();
  void list(std::vector<SchemaArgument> &arguments, Schema *of);
  StringRef literal();

  StringRef rest;
  bool failed = false;
  unsigned depth = 0; ///< of types inside of types
};

Kind kindOf(StringRef name) {
  return llvm::StringSwitch<Kind>(name)
      .Case("Tensor", Kind::Tensor)
      .Case("int", Kind::Int)
      .Case("SymInt", Kind::SymInt)
      .Case("float", Kind::Float)
      .Case("bool", Kind::Bool)
      .Case("complex", Kind::Complex)
      .Case("Scalar", Kind::Scalar)
      .Case("str", Kind::String)
      .Case("ScalarType", Kind::ScalarType)
      .Case("Layout", Kind::Layout)
      .Case("Device", Kind::Device)
      .Case("MemoryFormat", Kind::MemoryFormat)
      .Case("Generator", Kind::Generator)
      .Case("Any", Kind::Any)
      .Case("Dict", Kind::Dict)
      .Cases({"Future", "RRef", "Await"}, Kind::Future)
      .Cases({"t", "tVal", "b", "t1", "t2"}, Kind::Variable)
      .Default(Kind::Class);
}

/// The alias set behind a type: (a), (a!), (a -> *); of (b|a), a new tensor or one of a, it is a.
void Parser::marks(SchemaType &of) {
  if (!accept("("))
    return;
  StringRef inside = rest.take_until([](char c) { return c == ')'; });
  rest = rest.drop_front(inside.size());
  expect(")");
  of.written = inside.contains('!');
  if (size_t bar = inside.find('|'); bar != StringRef::npos)
    inside = inside.drop_front(bar + 1);
  of.aliasSet = inside.take_while([](char c) { return llvm::isAlnum(c) || c == '*'; });
}

SchemaType Parser::type() {
  constexpr unsigned kMaxDepth = 16;
  constexpr int64_t kMaxLength = 1000;
  SchemaType result;
  if (++depth > kMaxDepth) {
    failed = true;
    rest = "";
    return result;
  }
  blanks();
  StringRef begin = rest;
  if (accept("(")) {
    result.kind = Kind::Tuple;
    while (!accept(")") && !failed) {
      result.elements.push_back(type());
      accept(",");
      failed |= rest.empty();
    }
    result.name = begin.drop_back(rest.size());
  } else {
    StringRef name = rest.take_while([](char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; });
    rest = rest.drop_front(name.size());
    failed |= name.empty();
    result.name = name;
    result.kind = kindOf(name);
    if (result.kind == Kind::Dict || result.kind == Kind::Future) {
      expect("(");
      do
        result.elements.push_back(type());
      while (!failed && accept(","));
      expect(")");
    }
  }
  for (unsigned marked = 0;; ++marked) {
    failed |= marked > kMaxDepth;
    if (failed)
      return result;
    if (rest.starts_with("(")) {
      marks(result);
    } else if (rest.consume_front("[")) {
      SchemaType list;
      list.kind = Kind::List;
      if (int64_t length; !rest.consumeInteger(10, length)) {
        list.length = length;
        failed |= length < 0 || length > kMaxLength;
      }
      expect("]");
      list.elements.push_back(std::move(result));
      result = std::move(list);
    } else if (rest.consume_front("?")) {
      SchemaType optional;
      optional.kind = Kind::Optional;
      optional.elements.push_back(std::move(result));
      result = std::move(optional);
    } else {
      --depth;
      return result;
    }
  }
}

/// A default, up to the comma or bracket behind it.
StringRef Parser::literal() {
  size_t depth = 0, i = 0;
  bool quoted = false;
  for (; i < rest.size(); ++i) {
    char c = rest[i];
    if (quoted && c == '\\')
      ++i;
    else if (c == '"')
      quoted = !quoted;
    else if (!quoted && (c == '[' || c == '('))
      ++depth;
    else if (!quoted && depth == 0 && (c == ',' || c == ')'))
      break;
    else if (!quoted && (c == ']' || c == ')'))
      --depth;
  }
  StringRef taken = rest.take_front(i);
  rest = rest.drop_front(i);
  return taken;
}

SchemaArgument Parser::argument() {
  SchemaArgument result;
  result.type = type();
  result.name = word();
  if (rest.consume_front("="))
    result.defaultText = literal();
  return result;
}

void Parser::list(std::vector<SchemaArgument> &arguments, Schema *of) {
  bool keywordOnly = false;
  while (!accept(")") && !failed) {
    if (accept("...")) {
      of->variadic = true;
    } else if (accept("*")) {
      keywordOnly = true;
    } else {
      arguments.push_back(argument());
      arguments.back().keywordOnly = keywordOnly;
    }
    accept(",");
    failed |= rest.empty();
  }
}

bool Parser::parse(Schema &schema) {
  schema.text = rest;
  schema.domain = word();
  expect("::");
  schema.name = word();
  if (rest.consume_front("."))
    schema.overload = word();
  expect("(");
  list(schema.arguments, &schema);
  expect("->");
  blanks();
  // One result without a name, or several in brackets.
  if (accept("("))
    list(schema.results, &schema);
  else if (accept("..."))
    schema.variadic = true;
  else
    schema.results.push_back(argument());
  blanks();
  return !failed && rest.empty();
}

/// "aten::add.Tensor" of a line.
StringRef keyOf(StringRef line) {
  return line.take_until([](char c) { return c == '('; });
}
/// "aten::add"
StringRef nameOf(StringRef key) {
  return key.take_until([](char c) { return c == '.'; });
}

class Table {
public:
  static Table &get() {
    static Table table;
    return table;
  }

  ArrayRef<const Schema *> overloads(StringRef domain, StringRef name) {
    std::string key = (domain + "::" + name).str();
    std::lock_guard<std::mutex> lock(mutex);
    auto [it, isNew] = byName.try_emplace(key);
    if (!isNew)
      return it->second;
    auto line = llvm::lower_bound(lines, StringRef(key),
                                  [](StringRef line, StringRef wanted) { return nameOf(keyOf(line)) < wanted; });
    for (; line != lines.end() && nameOf(keyOf(*line)) == key; ++line) {
      auto schema = std::make_unique<Schema>();
      if (Parser(*line).parse(*schema)) {
        it->second.push_back(schema.get());
        owned.push_back(std::move(schema));
      }
    }
    return it->second;
  }

  std::vector<const Schema *> all() {
    std::vector<const Schema *> schemas;
    StringRef last;
    for (StringRef line : lines)
      if (StringRef name = nameOf(keyOf(line)); name != last) {
        last = name;
        auto [domain, operatorName] = name.split("::");
        llvm::append_range(schemas, overloads(domain, operatorName));
      }
    return schemas;
  }

private:
  Table() {
    for (StringRef text = kText; !text.empty();) {
      auto [line, rest] = text.split('\n');
      if (!line.empty())
        lines.push_back(line);
      text = rest;
    }
  }

  std::vector<StringRef> lines; ///< sorted by name
  std::mutex mutex;             ///< guards what follows
  llvm::StringMap<std::vector<const Schema *>> byName;
  std::vector<std::unique_ptr<Schema>> owned;
};

template <typename T>
std::optional<std::vector<T>> parseEach(ArrayRef<StringRef> parts, llvm::function_ref<bool(StringRef, T &)> parse) {
  std::vector<T> all;
  for (StringRef part : parts) {
    T value{};
    if (!parse(part.trim(), value))
      return std::nullopt;
    all.push_back(value);
  }
  return all;
}
bool parseBool(StringRef text, bool &value) {
  value = text == "True";
  return value || text == "False";
}
bool parseInt(StringRef text, int64_t &value) { return !text.getAsInteger(10, value); }
bool parseDouble(StringRef text, double &value) { return !text.getAsDouble(value); }

std::string unquote(StringRef text) {
  std::string result;
  text = text.drop_front();
  text.consume_back("\"");
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '\\' && i + 1 < text.size()) {
      c = text[++i];
      c = c == 'n' ? '\n' : c == 't' ? '\t' : c == 'f' ? '\f' : c == 'v' ? '\v' : c == 'r' ? '\r' : c;
    }
    result += c;
  }
  return result;
}

} // namespace

const SchemaType *SchemaType::findAlias() const {
  if (!aliasSet.empty() && aliasSet != "*")
    return this;
  for (const SchemaType &element : elements)
    if (const SchemaType *found = element.findAlias())
      return found;
  return nullptr;
}

std::string SchemaType::str() const {
  switch (kind) {
  case Kind::List:
    return elements[0].str() + "[" + (length ? std::to_string(*length) : "") + "]";
  case Kind::Optional:
    return elements[0].str() + "?";
  case Kind::Dict:
  case Kind::Future:
  case Kind::Tuple: {
    std::string text = (kind == Kind::Tuple ? "" : name.str()) + "(";
    for (size_t i = 0; i < elements.size(); ++i)
      text += (i ? ", " : "") + elements[i].str();
    return text + ")";
  }
  default:
    return name.str();
  }
}

std::optional<SchemaValue> SchemaArgument::defaultValue() const {
  if (!defaultText)
    return std::nullopt;
  StringRef value = *defaultText;
  if (value == "None")
    return SchemaValue();
  if (value.starts_with("\""))
    return SchemaValue(unquote(value));
  const SchemaType &wanted = type.required();
  bool isList = value.consume_front("[");
  if (isList)
    value.consume_back("]");
  if (isList || wanted.kind == Kind::List) {
    llvm::SmallVector<StringRef> parts;
    if (!value.trim().empty())
      value.split(parts, ',');
    if (!isList && wanted.length)
      parts.resize(*wanted.length, parts.empty() ? StringRef() : parts[0]);
    Kind element = wanted.kind == Kind::List ? wanted.elements[0].required().kind : Kind::Int;
    if (element == Kind::Float) {
      if (auto all = parseEach<double>(parts, parseDouble))
        return SchemaValue(*all);
    } else if (element == Kind::Bool) {
      if (auto all = parseEach<bool>(parts, [](StringRef text, bool &to) { return parseBool(text, to); }))
        return SchemaValue(*all);
    } else if (auto all = parseEach<int64_t>(parts, parseInt)) {
      return SchemaValue(*all);
    }
    return std::nullopt;
  }
  bool flag = false;
  int64_t integer = 0;
  double number = 0;
  if (parseBool(value, flag))
    return SchemaValue(flag);
  if (wanted.kind != Kind::Float && parseInt(value, integer))
    return SchemaValue(integer);
  if (parseDouble(value, number))
    return SchemaValue(number);
  return std::nullopt;
}

const SchemaArgument *Schema::find(StringRef argument) const {
  for (const SchemaArgument &candidate : arguments)
    if (candidate.name == argument)
      return &candidate;
  return nullptr;
}

bool Schema::writes() const {
  return llvm::any_of(arguments, [](const SchemaArgument &argument) { return argument.isWritten(); });
}

std::string Schema::nodeType() const { return (name + "." + (overload.empty() ? "default" : overload)).str(); }

ArrayRef<const Schema *> torch::findOverloads(StringRef domain, StringRef name) {
  return Table::get().overloads(domain, name);
}

std::vector<const Schema *> torch::getAllSchemas() { return Table::get().all(); }

std::optional<Schema> torch::parseSchema(StringRef text) {
  Schema schema;
  Parser parser(text);
  if (!parser.parse(schema) || schema.domain.empty() || schema.name.empty())
    return std::nullopt;
  for (const SchemaArgument &argument : schema.arguments)
    if (argument.name.empty() || schema.find(argument.name) != &argument)
      return std::nullopt;
  return schema;
}

const Schema *torch::findSchema(StringRef domain, StringRef type) {
  auto [name, overload] = type.split('.');
  if (overload == "default")
    overload = "";
  for (const Schema *schema : findOverloads(domain, name))
    if (schema->overload == overload)
      return schema;
  return nullptr;
}

bool torch::isCore(const Schema &schema) {
  static const llvm::StringSet<> names = [] {
    llvm::SmallVector<StringRef> lines;
    kCore.split(lines, '\n', -1, /*KeepEmpty=*/false);
    llvm::StringSet<> set;
    set.insert(lines.begin(), lines.end());
    return set;
  }();
  return schema.domain == "aten" && names.contains(schema.nodeType());
}

/// Whether `pure` takes what `schema` takes but for the out= arguments, and writes nothing.
static bool isTwin(const Schema &schema, const Schema &pure) {
  llvm::SmallVector<const SchemaArgument *> given, taken;
  for (const SchemaArgument &argument : schema.arguments)
    if (!(argument.keywordOnly && argument.isWritten()))
      given.push_back(&argument);
  for (const SchemaArgument &argument : pure.arguments)
    if (argument.isWritten())
      return false;
    else if (schema.find(argument.name) || !argument.defaultText)
      taken.push_back(&argument);
  auto same = [](const SchemaArgument *a, const SchemaArgument *b) {
    return a->name == b->name && a->type.str() == b->type.str();
  };
  if (given.size() != taken.size())
    return false;
  // The tensor comes first, whatever it is called: dropout_(self, ...), dropout(input, ...).
  if (!given.empty() && given[0]->isWritten() && taken[0]->type.str() == given[0]->type.str() &&
      !pure.find(given[0]->name)) {
    given.erase(given.begin());
    taken.erase(taken.begin());
  }
  return llvm::all_of(given, [&](const SchemaArgument *a) {
    return llvm::any_of(taken, [&](const SchemaArgument *b) { return same(a, b); });
  });
}

const Schema *torch::findFunctional(const Schema &schema) {
  if (!schema.writes())
    return nullptr;
  StringRef base = schema.name, inner = base;
  llvm::SmallVector<std::string> names;
  if (inner.consume_front("__i") && inner.ends_with("__")) {
    names.push_back(("__" + inner).str());
  } else {
    base.consume_back("_");
    names.append({base.str(), (base + "_functional").str()});
  }
  // The overload of the same name is meant where it fits: `sub_.Scalar` could be of others, too.
  for (StringRef candidate : names)
    for (bool sameOverload : {true, false})
      for (const Schema *pure : findOverloads(schema.domain, candidate))
        if ((!sameOverload || pure->overload == schema.overload) && isTwin(schema, *pure))
          return pure;
  return nullptr;
}
