//===- Expressions.cpp - expressions, attributes and types of TorchScript's code ----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Archive.h"
#include "Interpreter.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace tc;
using namespace tc::torchscript;
using llvm::StringRef;
using llvm::Twine;

/// "__torch__.a.B" of a chain of names; "" of anything else.
static std::string dottedName(const Expr &expr) {
  if (expr.kind == ExprKind::Name)
    return expr.text.str();
  if (expr.kind != ExprKind::Attribute)
    return "";
  std::string base = dottedName(*expr.operands[0]);
  return base.empty() ? base : base + "." + expr.text.str();
}

/// A type as it was written, in one form.
static std::string typeText(const Expr &type) {
  if (type.kind == ExprKind::Subscript) {
    std::string text = typeText(*type.operands[0]) + "[";
    for (size_t i = 1; i < type.operands.size(); ++i)
      text += (i > 1 ? ", " : "") + typeText(*type.operands[i]);
    return text + "]";
  }
  return dottedName(type);
}

Result Interpreter::eval(const Expr &expr) {
  if (++depth > kMaxDepth * 4) {
    --depth;
    return failFinally(expr.at, "the code nests too deeply");
  }
  auto leave = llvm::make_scope_exit([&] { --depth; });
  if (!spend(expr.at))
    return std::nullopt;
  switch (expr.kind) {
  case ExprKind::Name:
    return evalName(expr);
  case ExprKind::Int:
    return PyValue::ofInt(expr.integer);
  case ExprKind::Float:
    return PyValue::ofFloat(expr.number);
  case ExprKind::Complex: {
    PyValue value = PyValue::ofFloat(expr.number);
    value.kind = Kind::Complex;
    return value;
  }
  case ExprKind::String:
    return makeText(expr.text, expr.at);
  case ExprKind::List:
  case ExprKind::Tuple: {
    std::vector<PyValue> items;
    for (const Expr *operand : expr.operands) {
      Result item = eval(*operand);
      if (!item)
        return std::nullopt;
      items.push_back(*item);
    }
    return expr.kind == ExprKind::List ? makeList(std::move(items)) : makeTuple(std::move(items));
  }
  case ExprKind::Dict: {
    PyValue dict = PyValue::ofHeld(Kind::Dict, newHeld());
    for (size_t i = 0; i + 1 < expr.operands.size(); i += 2) {
      Result key = eval(*expr.operands[i]);
      Result item = key ? eval(*expr.operands[i + 1]) : key;
      if (!item || !setItem(dict, *key, *item, expr.at))
        return std::nullopt;
    }
    return dict;
  }
  case ExprKind::Attribute:
    return evalAttribute(expr);
  case ExprKind::Subscript:
    return evalSubscript(expr);
  case ExprKind::Slice:
    return fail(expr.at, "a slice stands where a value is expected");
  case ExprKind::Call:
    return evalCall(expr);
  case ExprKind::Unary: {
    Result value = eval(*expr.operands[0]);
    if (!value)
      return std::nullopt;
    if (expr.text == "not")
      return logicalNot(*value, expr.at);
    if (expr.text == "+")
      return value;
    return callOperator(expr.text == "-" ? "aten::neg" : "aten::bitwise_not", {*value}, {}, expr.at);
  }
  case ExprKind::Binary:
    return evalBinary(expr);
  case ExprKind::Ternary: {
    Result condition = eval(*expr.operands[0]);
    if (!condition)
      return std::nullopt;
    PyValue unknown;
    std::optional<bool> taken = truth(*condition, expr.at, &unknown);
    if (taken)
      return eval(*expr.operands[*taken ? 1 : 2]);
    return hasFailed() || !raised.empty()
               ? std::nullopt
               : refuse("If", expr.at, "an expression chooses by what only a run knows; use torch.where", unknown);
  }
  }
  llvm_unreachable("all kinds are handled");
}

Result Interpreter::evalName(const Expr &expr) {
  if (auto found = frame->locals.find(expr.text); found != frame->locals.end())
    return found->second;
  auto special = [&](Kind kind) {
    Held *held = newHeld();
    held->text = expr.text.str();
    return PyValue::ofHeld(kind, held);
  };
  return llvm::StringSwitch<std::function<Result()>>(expr.text)
      .Case("None", [] { return PyValue(); })
      .Case("True", [] { return PyValue::ofBool(true); })
      .Case("False", [] { return PyValue::ofBool(false); })
      .Case("inf", [] { return PyValue::ofFloat(std::numeric_limits<double>::infinity()); })
      .Case("nan", [] { return PyValue::ofFloat(std::numeric_limits<double>::quiet_NaN()); })
      .Cases({"torch", "ops", "CONSTANTS", "__torch__"}, [&] { return special(Kind::Namespace); })
      .Default([&]() -> Result {
        // Types that are only named, as in isinstance, and operators written as words.
        return fail(expr.at, "\"" + expr.text + "\" has no value here; the archive is damaged");
      })();
}

Result Interpreter::evalAttribute(const Expr &expr) {
  Result base = eval(*expr.operands[0]);
  return base ? getAttribute(*base, expr.text, expr.at) : std::nullopt;
}

Result Interpreter::namespaceMember(const PyValue &space, StringRef name, Position at) {
  const std::string &text = space.held->text;
  Held *held = newHeld();
  if (text == "CONSTANTS") {
    size_t index = 0;
    if (!name.starts_with("c") || name.drop_front().getAsInteger(10, index) || index >= constants.size())
      return fail(at, "CONSTANTS." + name + " is not in the archive, which is damaged");
    return constants[index];
  }
  if (text == "torch") {
    held->text = ("aten::" + name).str();
    return PyValue::ofHeld(Kind::Operator, held);
  }
  StringRef domain = text;
  if (domain.consume_front("ops.")) {
    held->text = (domain + "::" + name).str();
    return PyValue::ofHeld(Kind::Operator, held);
  }
  held->text = text + "." + name.str();
  if (text == "ops")
    return PyValue::ofHeld(Kind::Namespace, held);
  llvm::Expected<const SourceFile *> file = archive.findSource(text);
  if (!file)
    return fail(at, llvm::toString(file.takeError()));
  if (*file) {
    PyValue value;
    value.file = *file;
    if (const ClassDef *type = (*file)->classes.lookup(name)) {
      value.kind = Kind::Class;
      value.type = type;
      return value;
    }
    if (const Function *function = (*file)->functions.lookup(name)) {
      value.kind = Kind::Function;
      value.function = function;
      return value;
    }
  }
  if (StringRef(held->text).starts_with("__torch__.torch.classes."))
    return refuse("CreateObject", at,
                  "the model uses the C++ class " + Twine(held->text) +
                      ", which lives outside of the archive; export the model without it, quantised ones before "
                      "torch.ao.quantization.convert");
  return PyValue::ofHeld(Kind::Namespace, held);
}

Result Interpreter::makeEnum(const ClassDef *type, const SourceFile *file, const ClassDef::Field &field) {
  Frame constant;
  constant.file = file;
  constant.caller = frame;
  Frame *outer = std::exchange(frame, &constant);
  Result value = eval(*field.value);
  frame = outer;
  if (!value)
    return std::nullopt;
  Held *held = newHeld();
  held->text = field.name.str();
  held->type = type;
  held->items = {*value};
  return PyValue::ofHeld(Kind::Enum, held);
}

Result Interpreter::enumOf(const ClassDef *type, const SourceFile *file, const PyValue &value) {
  for (const ClassDef::Field &field : type->fields) {
    Result found = field.value ? makeEnum(type, file, field) : std::nullopt;
    if (hasFailed())
      return std::nullopt;
    if (found && found->held->items[0].kind == value.kind && isSame(found->held->items[0], value))
      return found;
  }
  return fail(Position(), "the enum " + type->name + " has no such value as " + describe(value) +
                              " of the module; the archive is damaged");
}

Result Interpreter::getAttribute(const PyValue &base, StringRef name, Position at) {
  switch (base.kind) {
  case Kind::Namespace:
    return namespaceMember(base, name, at);
  case Kind::Object: {
    auto found = base.held->attributes.find(name);
    if (found != base.held->attributes.end()) {
      if (base.held->birth <= frozenBirth && !setByRun.contains({base.held, name}))
        readBeforeSet.insert({base.held, found->first});
      return found->second;
    }
    const ClassDef *type = base.held->type;
    if (!type)
      return refuseObject(base, at);
    if (const Function *method = type->findMethod(name)) {
      PyValue value;
      value.kind = Kind::Method;
      value.held = base.held;
      value.file = base.held->file;
      value.function = method;
      return value;
    }
    for (const ClassDef::Field &field : type->fields)
      if (field.name == name && field.value) {
        Frame constant;
        constant.file = base.held->file;
        constant.caller = frame;
        Frame *outer = std::exchange(frame, &constant);
        Result value = eval(*field.value);
        frame = outer;
        return value;
      }
    return fail(at, "the class " + type->name + " has no attribute \"" + name + "\"");
  }
  case Kind::Tuple:
    if (const ClassDef *type = base.held->type)
      for (auto [field, item] : llvm::zip(type->fields, base.held->items))
        if (field.name == name)
          return item;
    break;
  case Kind::Enum:
    if (name == "value")
      return base.held->items[0];
    if (name == "name")
      return makeString(base.held->text);
    break;
  case Kind::Class: {
    if (base.type->base == "Enum")
      for (const ClassDef::Field &field : base.type->fields)
        if (field.name == name && field.value)
          return makeEnum(base.type, base.file, field);
    if (name == "__new__" || name == "__init__")
      return base;
    break;
  }
  case Kind::Tensor: {
    bool isKnown = false;
    Result value = callPrim(name, {base}, {}, at, isKnown);
    if (isKnown)
      return value;
    if (name == "T" || name == "mT" || name == "H" || name == "mH" || name == "real" || name == "imag")
      return callATen(name == "T" ? "numpy_T" : name == "mT" ? "mT" : name, {base}, {}, at);
    break;
  }
  default:
    break;
  }
  return fail(at, describe(base) + " has no attribute \"" + name + "\"");
}

Result Interpreter::evalSubscript(const Expr &expr) {
  Result base = eval(*expr.operands[0]);
  if (!base)
    return std::nullopt;
  if (expr.operands.size() != 2)
    return fail(expr.at, "several indices in brackets are not read; the archive is damaged");
  const Expr &index = *expr.operands[1];
  if (index.kind != ExprKind::Slice) {
    Result value = eval(index);
    return value ? getItem(*base, *value, expr.at) : std::nullopt;
  }
  // Of tuples, as PyTorch prints them; of lists and strings it calls torch.slice.
  PyValue bounds[3];
  for (int i = 0; i < 3; ++i)
    if (index.operands[i]) {
      Result bound = eval(*index.operands[i]);
      if (!bound)
        return std::nullopt;
      bounds[i] = *bound;
    }
  return callOperator("aten::slice", {*base, bounds[0], bounds[1], bounds[2].isNone() ? PyValue::ofInt(1) : bounds[2]},
                      {}, expr.at);
}

Result Interpreter::evalBinary(const Expr &expr) {
  Result left = eval(*expr.operands[0]);
  if (!left)
    return std::nullopt;
  if (expr.text == "and" || expr.text == "or") {
    PyValue unknown;
    std::optional<bool> known = truth(*left, expr.at, &unknown);
    if (hasFailed() || !raised.empty())
      return std::nullopt;
    if (known)
      return *known == (expr.text == "or") ? left : eval(*expr.operands[1]);
    Result right = eval(*expr.operands[1]);
    if (!right)
      return std::nullopt;
    return callOperator(expr.text == "and" ? "aten::__and__" : "aten::__or__", {unknown, *right}, {}, expr.at);
  }
  Result right = eval(*expr.operands[1]);
  if (!right)
    return std::nullopt;
  StringRef name = llvm::StringSwitch<StringRef>(expr.text)
                       .Case("+", "add")
                       .Case("-", "sub")
                       .Case("*", "mul")
                       .Case("/", "div")
                       .Case("//", left->isTensor() ? "floor_divide" : "floordiv")
                       .Case("%", "remainder")
                       .Case("**", "pow")
                       .Case("@", "matmul")
                       .Case("==", "eq")
                       .Case("!=", "ne")
                       .Case("<", "lt")
                       .Case("<=", "le")
                       .Case(">", "gt")
                       .Case(">=", "ge")
                       .Case("&", "__and__")
                       .Case("|", "__or__")
                       .Case("^", "__xor__")
                       .Case("<<", "__lshift__")
                       .Case(">>", "__rshift__")
                       .Case("is", "__is__")
                       .Case("is not", "__isnot__")
                       .Case("in", "__contains__")
                       .Default("");
  if (expr.text == "in" || expr.text == "not in") {
    Result in = callOperator("aten::__contains__", {*right, *left}, {}, expr.at);
    return in && expr.text == "not in" ? logicalNot(*in, expr.at) : in;
  }
  return callOperator(("aten::" + name).str(), {*left, *right}, {}, expr.at);
}

//===--- calls ----------------------------------------------------------------------------------------------------===//

Result Interpreter::callForm(StringRef form, const Expr &call) {
  auto needs = [&](size_t count) { return call.operands.size() == count + 1; };
  auto operand = [&](size_t i) { return call.operands[i + 1]; };
  if ((form == "annotate" || form == "unchecked_cast") && needs(2)) {
    Result value = eval(*operand(1));
    if (!value)
      return std::nullopt;
    return form == "annotate" ? convertTo(*operand(0), *value, call.at) : value;
  }
  if (form == "uninitialized" && needs(1)) {
    PyValue value;
    value.kind = Kind::Uninitialized;
    return value;
  }
  if (form == "isinstance" && needs(2)) {
    Result value = eval(*operand(0));
    std::optional<bool> is = value ? isInstance(*operand(1), *value, call.at) : std::nullopt;
    return is ? Result(PyValue::ofBool(*is)) : std::nullopt;
  }
  if (form == "getattr" && needs(2) && operand(1)->kind == ExprKind::String) {
    Result value = eval(*operand(0));
    return value ? getAttribute(*value, operand(1)->text, call.at) : std::nullopt;
  }
  return fail(call.at, "\"" + form + "\" is called with other arguments than PyTorch writes; the archive is damaged");
}

Result Interpreter::evalCall(const Expr &expr) {
  const Expr &callee = *expr.operands[0];
  StringRef word;
  if (callee.kind == ExprKind::Name && !frame->locals.count(callee.text)) {
    word = callee.text;
    if (word == "annotate" || word == "unchecked_cast" || word == "uninitialized" || word == "isinstance" ||
        word == "getattr")
      return callForm(word, expr);
    if (word == "fork") {
      // One that the model defines on the spot was refused where it does.
      const Expr *forked = expr.operands.size() > 1 ? expr.operands[1] : nullptr;
      const PyValue function =
          forked && forked->kind == ExprKind::Name ? frame->locals.lookup(forked->text) : PyValue();
      return refuse("fork", expr.at,
                    "torch.jit.fork is not supported; call the function without it, and without torch.jit.wait",
                    function);
    }
  }
  Result target;
  if (word.empty()) {
    // A method of a tensor: PyTorch prints few, such as x.tolist().
    if (callee.kind == ExprKind::Attribute) {
      Result base = eval(*callee.operands[0]);
      if (!base)
        return std::nullopt;
      if (base->isTensor() || base->is(Kind::String) || base->is(Kind::List) || base->is(Kind::Dict)) {
        Held *held = newHeld();
        held->text = ("." + callee.text).str();
        held->items = {*base};
        target = PyValue::ofHeld(Kind::Operator, held);
      } else {
        target = getAttribute(*base, callee.text, callee.at);
      }
    } else {
      target = eval(callee);
    }
  } else {
    static const char *const kWords[] = {"int", "float", "bool", "str",   "print", "sorted", "len",
                                         "min", "max",   "abs",  "round", "list",  "range",  "tuple"};
    if (!llvm::is_contained(kWords, word))
      return fail(expr.at, "\"" + word + "\" is no function that TorchScript has; the archive is damaged");
    Held *held = newHeld();
    held->text = llvm::StringSwitch<std::string>(word)
                     .Case("int", "aten::Int")
                     .Case("float", "aten::Float")
                     .Case("bool", "aten::Bool")
                     .Case("print", "prim::Print")
                     .Case("min", "prim::min")
                     .Case("max", "prim::max")
                     .Case("abs", "prim::abs")
                     .Case("range", "aten::range")
                     .Default(("aten::" + word).str());
    target = PyValue::ofHeld(Kind::Operator, held);
  }
  if (!target)
    return std::nullopt;
  std::vector<PyValue> args;
  std::vector<NamedValue> named;
  size_t positional = expr.operands.size() - 1 - expr.keywords.size();
  for (size_t i = 0; i + 1 < expr.operands.size(); ++i) {
    Result value = eval(*expr.operands[i + 1]);
    if (!value)
      return std::nullopt;
    if (i < positional)
      args.push_back(*value);
    else
      named.push_back({expr.keywords[i - positional], *value});
  }
  return callValue(*target, args, named, expr.at);
}

Result Interpreter::callValue(const PyValue &callee, Values args, NamedValues named, Position at) {
  switch (callee.kind) {
  case Kind::Function:
    return callFunction(*callee.file, *callee.function, nullptr, args, named, at);
  case Kind::Method: {
    PyValue self = PyValue::ofHeld(Kind::Object, callee.held);
    return callFunction(*callee.file, *callee.function, &self, args, named, at);
  }
  case Kind::Operator: {
    StringRef name = callee.held->text;
    if (name.consume_front("."))
      return callTensorMethod(callee.held->items[0], name, args, named, at);
    return callOperator(name, args, named, at);
  }
  case Kind::Class: {
    if (callee.type->base == "NamedTuple") {
      if (args.size() + named.size() != callee.type->fields.size())
        return fail(at, "the NamedTuple " + callee.type->name + " has " + Twine(callee.type->fields.size()) +
                            " fields, but gets " + Twine(args.size() + named.size()) + " values");
      PyValue tuple = makeTuple(std::vector<PyValue>(args.begin(), args.end()));
      for (const NamedValue &value : named)
        tuple.held->items.push_back(value.value);
      tuple.held->type = callee.type;
      tuple.held->file = callee.file;
      return tuple;
    }
    // C.__new__(C) makes an object; its __init__ is a call of its own.
    Held *held = newHeld();
    held->type = callee.type;
    held->file = callee.file;
    return PyValue::ofHeld(Kind::Object, held);
  }
  case Kind::Object:
    return callMethod(callee, callee.held->type && callee.held->type->findMethod("__call__") ? "__call__" : "forward",
                      args, named, at);
  default:
    return fail(at, describe(callee) + " is called, which is no function");
  }
}

Result Interpreter::callTensorMethod(const PyValue &self, StringRef name, Values args, NamedValues named, Position at) {
  std::vector<PyValue> all{self};
  all.insert(all.end(), args.begin(), args.end());
  if (name == "tolist" && self.isTensor()) {
    std::optional<RankedTensorType> type = typeOf(self, at);
    if (!type)
      return std::nullopt;
    if (type->getRank() == 0)
      return toNumber(self, isa<FloatType>(type->getElementType()) ? Kind::SymFloat : Kind::SymInt, at);
    if (type->getRank() != 1 || type->isDynamicDim(0) || type->getDimSize(0) > 64)
      return refuse("tolist", at,
                    "tolist of a tensor whose size only a run knows, or of more than 64 numbers, is not supported; "
                    "keep it a tensor");
    std::vector<PyValue> items;
    for (int64_t i = 0; i < type->getDimSize(0); ++i) {
      Result element = callATen("select", {self, PyValue::ofInt(0), PyValue::ofInt(i)}, {}, at);
      Result number = element ? toNumber(*element,
                                         isa<FloatType>(type->getElementType()) ? Kind::SymFloat
                                         : type->getElementType().isInteger(1)  ? Kind::SymBool
                                                                                : Kind::SymInt,
                                         at)
                              : element;
      if (!number)
        return std::nullopt;
      items.push_back(*number);
    }
    return makeList(std::move(items));
  }
  return callOperator(("aten::" + name).str(), all, named, at);
}

Result Interpreter::callOperator(StringRef name, Values args, NamedValues named, Position at) {
  Result value = callOperatorOnce(name, args, named, at);
  return value || !recover() ? value : makeUnknownResults(at);
}

Result Interpreter::callOperatorOnce(StringRef name, Values args, NamedValues named, Position at) {
  if (!spend(at))
    return std::nullopt;
  std::vector<PyValue> all(args.begin(), args.end());
  StringRef domain, type;
  std::tie(domain, type) = name.split("::");
  if (domain == "prim") {
    bool isKnown = false;
    Result value = callPrim(type, args, named, at, isKnown);
    if (isKnown)
      return value;
  }
  if (HostOperator op = findHostOperator(name)) {
    // Few take names, and none needs them: arguments stand in the order of the signature.
    for (const NamedValue &value : named)
      all.push_back(value.value);
    // What takes the same time for any length is free: it has the steps of the loop around it.
    const bool isShort =
        llvm::is_contained({"aten::len", "aten::append", "aten::__getitem__", "aten::_set_item"}, name);
    if (!isShort && !spendValues(all, at))
      return std::nullopt;
    declined = false;
    Result value = op(*this, all, at);
    if (value || hasFailed() || !raised.empty())
      return value;
    assert(declined && "an operator says why it has no result");
  }
  if (domain == "aten" || domain == "prims" || domain == "torchvision")
    return callATen(domain == "aten" ? type : name, args, named, at);
  if (domain == "prim")
    return refuse(type, at,
                  "prim::" + type +
                      " is not supported; tc-inspect --operators lists what is, and torch.export takes many models "
                      "without it",
                  args);
  return callATen(name, args, named, at);
}

//===--- types ----------------------------------------------------------------------------------------------------===//

Result Interpreter::convertTo(const Expr &type, PyValue value, Position at) {
  if (type.kind == ExprKind::Subscript && type.operands[0]->kind == ExprKind::Name) {
    StringRef name = type.operands[0]->text;
    if (name == "Optional" && !value.isNone())
      return convertTo(*type.operands[1], value, at);
    if (name == "List" && value.is(Kind::List) && value.held->text.empty())
      value.held->text = typeText(*type.operands[1]);
    return value;
  }
  if (type.kind != ExprKind::Name || !value.isTensor())
    return value;
  if (type.text == "int")
    return toNumber(value, Kind::SymInt, at);
  if (type.text == "float")
    return toNumber(value, Kind::SymFloat, at);
  if (type.text == "bool")
    return toNumber(value, Kind::SymBool, at);
  if (type.text == "number" || type.text == "Scalar") {
    std::optional<RankedTensorType> tensor = typeOf(value, at);
    if (!tensor)
      return std::nullopt;
    Type element = tensor->getElementType();
    return toNumber(value,
                    isa<FloatType>(element) ? Kind::SymFloat
                    : element.isInteger(1)  ? Kind::SymBool
                                            : Kind::SymInt,
                    at);
  }
  return value;
}

std::optional<bool> Interpreter::isInstance(const Expr &type, const PyValue &value, Position at) {
  if (type.kind == ExprKind::Tuple) {
    for (const Expr *option : type.operands) {
      std::optional<bool> is = isInstance(*option, value, at);
      if (!is || *is)
        return is;
    }
    return false;
  }
  if (type.kind == ExprKind::Subscript && type.operands[0]->kind == ExprKind::Name) {
    StringRef name = type.operands[0]->text;
    if (name == "Optional")
      return value.isNone() ? std::optional<bool>(true) : isInstance(*type.operands[1], value, at);
    if (name == "List") {
      if (!value.is(Kind::List))
        return false;
      if (!value.held->text.empty())
        return value.held->text == typeText(*type.operands[1]) || typeText(*type.operands[1]) == "Any";
      for (const PyValue &item : value.held->items) {
        std::optional<bool> is = isInstance(*type.operands[1], item, at);
        if (!is || !*is)
          return is;
      }
      return true;
    }
    if (name == "Tuple") {
      if (!value.is(Kind::Tuple) || value.held->items.size() + 1 != type.operands.size())
        return false;
      for (auto [i, item] : llvm::enumerate(value.held->items)) {
        std::optional<bool> is = isInstance(*type.operands[i + 1], item, at);
        if (!is || !*is)
          return is;
      }
      return true;
    }
    if (name == "Dict") {
      if (!value.is(Kind::Dict))
        return false;
      for (int part : {0, 1})
        for (const PyValue &item : part == 0 ? value.held->keys : value.held->items) {
          std::optional<bool> is = isInstance(*type.operands[1 + part], item, at);
          if (!is || !*is)
            return is;
        }
      return true;
    }
    if (name == "Union") {
      for (const Expr *option : type.operands.drop_front()) {
        std::optional<bool> is = isInstance(*option, value, at);
        if (!is || *is)
          return is;
      }
      return false;
    }
  }
  std::string name = dottedName(type);
  if (value.is(Kind::Object) || (value.is(Kind::Tuple) && value.held->type)) {
    auto [qualifier, last] = StringRef(name).rsplit('.');
    if (!value.held->type || value.held->type->name != (last.empty() ? StringRef(name) : last))
      return false;
    llvm::Expected<const SourceFile *> file = archive.findSource(qualifier);
    if (!file)
      return fail(at, llvm::toString(file.takeError()));
    return *file == value.held->file;
  }
  std::optional<Kind> kinds[2];
  std::tie(kinds[0], kinds[1]) = llvm::StringSwitch<std::pair<std::optional<Kind>, std::optional<Kind>>>(name)
                                     .Case("Tensor", {Kind::Tensor, {}})
                                     .Case("int", {Kind::Int, Kind::SymInt})
                                     .Case("float", {Kind::Float, Kind::SymFloat})
                                     .Case("bool", {Kind::Bool, Kind::SymBool})
                                     .Case("str", {Kind::String, {}})
                                     .Case("Device", {Kind::Device, {}})
                                     .Case("NoneType", {Kind::None, {}})
                                     .Case("list", {Kind::List, {}})
                                     .Case("tuple", {Kind::Tuple, {}})
                                     .Case("dict", {Kind::Dict, {}})
                                     .Default({});
  if (name == "number")
    return value.isScalar() || value.is(Kind::Complex);
  if (name == "Any")
    return true;
  return kinds[0] == value.kind || kinds[1] == value.kind;
}
