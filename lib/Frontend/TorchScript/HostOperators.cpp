//===- HostOperators.cpp - numbers and comparisons of TorchScript, evaluated --------------------------------------===//
//
// Operators on numbers are computed as Python computes them; on numbers that only a run knows they become nodes of
// `_operator`, as torch.export writes them. Source of their meaning: torch/csrc/jit/runtime/register_prim_ops.cpp.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "HostOperators.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/CheckedArithmetic.h"

#include <cmath>
#include <numeric>

using namespace tc;
using namespace tc::torchscript;
using llvm::StringRef;
using llvm::Twine;

bool tc::torchscript::isSame(const PyValue &a, const PyValue &b) {
  if (a.kind != b.kind)
    return false;
  switch (a.kind) {
  case Kind::None:
  case Kind::Uninitialized:
    return true;
  case Kind::Bool:
  case Kind::Int:
    return a.integer == b.integer;
  case Kind::Float:
  case Kind::Complex:
    return std::memcmp(&a.number, &b.number, sizeof(double)) == 0;
  case Kind::String:
  case Kind::Device:
    return a.held->text == b.held->text;
  case Kind::Enum:
    return a.held->text == b.held->text && a.held->type == b.held->type;
  case Kind::Function:
  case Kind::Class:
    return a.function == b.function;
  default:
    return a.graph == b.graph && a.held == b.held && a.function == b.function;
  }
}

StringRef tc::torchscript::describe(const PyValue &value) {
  switch (value.kind) {
  case Kind::None:
    return "None";
  case Kind::Bool:
  case Kind::SymBool:
    return "a bool";
  case Kind::Int:
  case Kind::SymInt:
    return "an int";
  case Kind::Float:
  case Kind::SymFloat:
    return "a float";
  case Kind::Complex:
    return "a complex number";
  case Kind::String:
    return "a str";
  case Kind::Device:
    return "a device";
  case Kind::Tensor:
    return "a tensor";
  case Kind::List:
    return "a list";
  case Kind::Tuple:
    return "a tuple";
  case Kind::Dict:
    return "a dict";
  case Kind::Object:
    return "an object";
  case Kind::Enum:
    return "an enum";
  case Kind::Uninitialized:
    return "a variable that not both branches of a condition over data set alike";
  case Kind::Function:
  case Kind::Method:
  case Kind::Operator:
    return "a function";
  case Kind::Class:
    return "a class";
  case Kind::Namespace:
    return "a module of Python";
  }
  llvm_unreachable("all kinds are handled");
}

std::string tc::torchscript::formatFloat(double value) {
  if (std::isnan(value))
    return "nan";
  if (std::isinf(value))
    return value < 0 ? "-inf" : "inf";
  // The shortest digits that give the number back.
  char text[64];
  for (int digits = 1; digits <= 17; ++digits) {
    snprintf(text, sizeof text, "%.*g", digits, value);
    if (strtod(text, nullptr) == value)
      break;
  }
  std::string result = text;
  // Python writes 1e+16 and more, and less than 1e-4, with an exponent, all else without.
  double magnitude = std::fabs(value);
  if (result.find('e') != std::string::npos && magnitude >= 1e-4 && magnitude < 1e16) {
    snprintf(text, sizeof text, "%.0f", value);
    result = text;
  }
  return result.find_first_of(".e") == std::string::npos ? result + ".0" : result;
}

std::optional<std::string> tc::torchscript::toText(const PyValue &value, bool isQuoted, int depth) {
  switch (value.kind) {
  case Kind::None:
    return "None";
  case Kind::Bool:
    return value.integer ? "True" : "False";
  case Kind::Int:
    return std::to_string(value.integer);
  case Kind::Float:
    return formatFloat(value.number);
  case Kind::String:
    return isQuoted ? "'" + value.held->text + "'" : value.held->text;
  case Kind::Device:
    return value.held->text;
  case Kind::List:
  case Kind::Tuple: {
    std::string text = value.is(Kind::List) ? "[" : "(";
    for (auto [i, item] : llvm::enumerate(value.held->items)) {
      // Damaged code may make lists that hold themselves.
      std::optional<std::string> part =
          depth > 8 || text.size() > 10'000 ? std::nullopt : toText(item, true, depth + 1);
      if (!part)
        return std::nullopt;
      text += (i > 0 ? ", " : "") + *part;
    }
    if (value.is(Kind::Tuple) && value.held->items.size() == 1)
      text += ",";
    return text + (value.is(Kind::List) ? "]" : ")");
  }
  case Kind::SymInt:
  case Kind::SymFloat:
  case Kind::SymBool:
    return "?";
  default:
    return std::nullopt;
  }
}

//===--- arithmetic -----------------------------------------------------------------------------------------------===//

/// Python's floor division and remainder.
static int64_t floorDivide(int64_t a, int64_t b) {
  int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

Result Interpreter::arithmetic(StringRef op, const PyValue &x, const PyValue &y, Position at) {
  PyValue a = resolve(x), b = resolve(y);
  if (!a.isScalar() || !b.isScalar())
    return decline();
  bool isInt = a.isIntLike() && b.isIntLike();
  if (op == "div" || op == "pow")
    isInt = false;
  if (!a.isNumber() || !b.isNumber()) {
    // What needs no number of a run.
    auto isInteger = [](const PyValue &v, int64_t n) { return v.is(Kind::Int) && v.integer == n; };
    if (op == "mul" && isInt && (isInteger(a, 1) || isInteger(b, 1)))
      return isInteger(a, 1) ? b : a;
    if ((op == "add" || op == "sub" || op == "floordiv") && isInt && isInteger(b, op == "floordiv" ? 1 : 0))
      return a;
    StringRef name = llvm::StringSwitch<StringRef>(op).Case("div", "truediv").Case("remainder", "mod").Default(op);
    if (op == "min" || op == "max")
      name = op == "min" ? "sym_min" : "sym_max";
    // Powers of integers are floats, and exponents of a run may be negative.
    if (op == "pow")
      for (PyValue *v : {&a, &b})
        if (!v->is(Kind::Float) && !v->is(Kind::SymFloat)) {
          Result converted = v->isNumber() ? Result(PyValue::ofFloat(v->asDouble()))
                                           : callSymbolic("sym_float", {*v}, Kind::SymFloat, at);
          if (!converted)
            return std::nullopt;
          *v = *converted;
        }
    return callSymbolic(name, {a, b}, isInt ? Kind::SymInt : Kind::SymFloat, at);
  }
  if (isInt) {
    int64_t m = a.integer, n = b.integer;
    if ((op == "floordiv" || op == "remainder") && (n == 0 || (m == INT64_MIN && n == -1)))
      return n == 0 ? raise(at, "division by zero") : fail(at, "a number does not fit 64 bits");
    std::optional<int64_t> result = op == "add"        ? llvm::checkedAdd(m, n)
                                    : op == "sub"      ? llvm::checkedSub(m, n)
                                    : op == "mul"      ? llvm::checkedMul(m, n)
                                    : op == "floordiv" ? floorDivide(m, n)
                                    : op == "min"      ? std::min(m, n)
                                    : op == "max"      ? std::max(m, n)
                                                       : m - floorDivide(m, n) * n;
    return result ? Result(PyValue::ofInt(*result)) : fail(at, "a number does not fit 64 bits");
  }
  double m = a.asDouble(), n = b.asDouble();
  if ((op == "div" || op == "floordiv" || op == "remainder") && n == 0)
    return raise(at, "division by zero");
  if (op == "add")
    return PyValue::ofFloat(m + n);
  if (op == "sub")
    return PyValue::ofFloat(m - n);
  if (op == "mul")
    return PyValue::ofFloat(m * n);
  if (op == "div")
    return PyValue::ofFloat(m / n);
  if (op == "pow")
    return PyValue::ofFloat(std::pow(m, n));
  if (op == "floordiv")
    return PyValue::ofFloat(std::floor(m / n));
  if (op == "min" || op == "max")
    return PyValue::ofFloat(op == "min" ? std::min(m, n) : std::max(m, n));
  double remainder = std::fmod(m, n);
  return PyValue::ofFloat(remainder != 0 && (remainder < 0) != (n < 0) ? remainder + n : remainder);
}

Result Interpreter::equal(const PyValue &x, const PyValue &y, Position at) {
  PyValue a = resolve(x), b = resolve(y);
  if (a.isScalar() && b.isScalar())
    return compare("eq", a, b, at);
  if (a.kind != b.kind)
    return PyValue::ofBool(false);
  if (a.isTensor())
    return decline();
  if (!a.is(Kind::List) && !a.is(Kind::Tuple))
    return PyValue::ofBool(isSame(a, b));
  if (a.held->items.size() != b.held->items.size())
    return PyValue::ofBool(false);
  if (!spend(at) || depth > kMaxDepth)
    return fail(at, "lists that are compared nest too deeply");
  ++depth;
  auto leave = llvm::make_scope_exit([&] { --depth; });
  PyValue all = PyValue::ofBool(true);
  for (auto [left, right] : llvm::zip_equal(a.held->items, b.held->items)) {
    if (left.isTensor() || right.isTensor())
      return refuse("list", at, "lists of tensors are compared, which is not supported; compare the tensors",
                    {left, right});
    Result same = equal(left, right, at);
    if (!same)
      return std::nullopt;
    if (same->is(Kind::Bool)) {
      if (same->integer == 0)
        return same;
      continue;
    }
    Result both = all.is(Kind::Bool) ? same : callSymbolic("and_", {all, *same}, Kind::SymBool, at);
    if (!both)
      return std::nullopt;
    all = *both;
  }
  return all;
}

Result Interpreter::compare(StringRef op, const PyValue &x, const PyValue &y, Position at) {
  PyValue a = resolve(x), b = resolve(y);
  if (a.is(Kind::String) && b.is(Kind::String)) {
    int order = StringRef(a.held->text).compare(b.held->text);
    a = PyValue::ofInt(order);
    b = PyValue::ofInt(0);
  }
  if (a.isTensor() || b.isTensor())
    return decline();
  if (!a.isScalar() || !b.isScalar()) {
    if (op != "eq" && op != "ne")
      return decline();
    Result same = equal(a, b, at);
    return same && op == "ne" ? logicalNot(*same, at) : same;
  }
  if (a.isNumber() && b.isNumber()) {
    auto decide = [&](auto m, auto n) {
      return op == "eq"   ? m == n
             : op == "ne" ? m != n
             : op == "lt" ? m < n
             : op == "le" ? m <= n
             : op == "gt" ? m > n
                          : m >= n;
    };
    if (a.isIntLike() && b.isIntLike())
      return PyValue::ofBool(decide(a.integer, b.integer));
    return PyValue::ofBool(decide(a.asDouble(), b.asDouble()));
  }
  // Sizes are not negative, and one value is equal to itself.
  if (isSame(a, b))
    return PyValue::ofBool(op == "eq" || op == "le" || op == "ge");
  Result result = callSymbolic(op, {a, b}, Kind::SymBool, at);
  return result ? Result(resolve(*result)) : result;
}

Result Interpreter::logicalNot(const PyValue &value, Position at) {
  PyValue unknown = resolve(value);
  if (unknown.is(Kind::SymBool))
    return callSymbolic("sym_not", {unknown}, Kind::SymBool, at);
  std::optional<bool> known = truth(value, at, &unknown);
  if (known)
    return PyValue::ofBool(!*known);
  return hasFailed() || !raised.empty() ? std::nullopt : callSymbolic("sym_not", {unknown}, Kind::SymBool, at);
}

//===--- the table ------------------------------------------------------------------------------------------------===//

namespace {

template <const char *const &op> Result arithmeticOp(Interpreter &in, Values args, Position at) {
  if (args.size() != 2)
    return in.decline();
  return in.arithmetic(op, args[0], args[1], at);
}
template <const char *const &op> Result compareOp(Interpreter &in, Values args, Position at) {
  if (args.size() != 2)
    return in.decline();
  return in.compare(op, args[0], args[1], at);
}

const char *const kSub = "sub", *const kDiv = "div", *const kPow = "pow", *const kFloordiv = "floordiv",
                  *const kRemainder = "remainder";
const char *const kEq = "eq", *const kNe = "ne", *const kLt = "lt", *const kLe = "le", *const kGt = "gt",
                  *const kGe = "ge";

/// `+` and `*` join and repeat lists and strings, too.
Result add(Interpreter &in, Values args, Position at) {
  if (args.size() != 2)
    return in.decline();
  if (args[0].is(Kind::String) && args[1].is(Kind::String))
    return in.makeText(args[0].held->text + args[1].held->text, at);
  if (args[0].is(Kind::List) && args[1].is(Kind::List)) {
    std::vector<PyValue> items = args[0].held->items;
    items.insert(items.end(), args[1].held->items.begin(), args[1].held->items.end());
    return in.makeList(std::move(items), args[0].held->text);
  }
  return in.arithmetic("add", args[0], args[1], at);
}

Result mul(Interpreter &in, Values args, Position at) {
  if (args.size() != 2)
    return in.decline();
  for (int list : {0, 1})
    if (args[list].is(Kind::List)) {
      PyValue count = in.resolve(args[1 - list]);
      if (!count.is(Kind::Int))
        return in.refuse("list", at,
                         "a list is repeated as often as only a run knows; fix the size with --shape or --dim", count);
      const std::vector<PyValue> &source = args[list].held->items;
      if (!source.empty() && count.integer > int64_t(1'000'000 / source.size()))
        return in.refuse("list", at, "a list of more than a million values is made; make it a tensor");
      if (count.integer > 0 && !in.spendValues(uint64_t(count.integer) * source.size(), at))
        return std::nullopt;
      std::vector<PyValue> items;
      for (int64_t i = 0; i < count.integer; ++i)
        items.insert(items.end(), source.begin(), source.end());
      return in.makeList(std::move(items), args[list].held->text);
    }
  return in.arithmetic("mul", args[0], args[1], at);
}

Result addInPlace(Interpreter &in, Values args, Position at) {
  if (args.size() != 2 || !args[0].is(Kind::List) || !args[1].is(Kind::List))
    return in.decline();
  if (!in.mayChange(args[0].held, at))
    return std::nullopt;
  std::vector<PyValue> items = args[1].held->items;
  args[0].held->items.insert(args[0].held->items.end(), items.begin(), items.end());
  return args[0];
}

Result neg(Interpreter &in, Values args, Position at) {
  if (args.size() != 1 || !args[0].isScalar())
    return in.decline();
  PyValue v = in.resolve(args[0]);
  if (v.is(Kind::Float))
    return PyValue::ofFloat(-v.number);
  return v.isNumber() ? in.arithmetic("sub", PyValue::ofInt(0), v, at)
                      : in.callSymbolic("neg", {v}, v.is(Kind::SymFloat) ? Kind::SymFloat : Kind::SymInt, at);
}

Result logicalNot(Interpreter &in, Values args, Position at) {
  if (args.size() != 1 || args[0].isTensor())
    return in.decline();
  return in.logicalNot(args[0], at);
}

/// and, or, xor of bools and ints.
template <char op> Result bitwise(Interpreter &in, Values args, Position at) {
  if (args.size() != 2)
    return in.decline();
  PyValue a = in.resolve(args[0]), b = in.resolve(args[1]);
  if (!a.isIntLike() || !b.isIntLike())
    return in.decline();
  bool isBool = (a.is(Kind::Bool) || a.is(Kind::SymBool)) && (b.is(Kind::Bool) || b.is(Kind::SymBool));
  if (a.isNumber() && b.isNumber()) {
    int64_t bits = op == '&' ? a.integer & b.integer : op == '|' ? a.integer | b.integer : a.integer ^ b.integer;
    return isBool ? PyValue::ofBool(bits) : PyValue::ofInt(bits);
  }
  if (isBool && op != '^') {
    const PyValue &known = a.isNumber() ? a : b, &other = a.isNumber() ? b : a;
    if (known.isNumber())
      return (known.integer != 0) == (op == '&') ? other : known;
  }
  return in.callSymbolic(op == '&'   ? "and_"
                         : op == '|' ? "or_"
                                     : "xor",
                         {a, b}, isBool ? Kind::SymBool : Kind::SymInt, at);
}

template <bool left> Result shift(Interpreter &in, Values args, Position at) {
  if (args.size() != 2)
    return in.decline();
  PyValue a = in.resolve(args[0]), b = in.resolve(args[1]);
  if (!a.isIntLike() || !b.isIntLike())
    return in.decline();
  if (!a.isNumber() || !b.isNumber())
    return in.callSymbolic(left ? "lshift" : "rshift", {a, b}, Kind::SymInt, at);
  int64_t by = b.integer;
  if (by < 0 || by > 63)
    return PyValue::ofInt(0);
  return PyValue::ofInt(left ? int64_t(uint64_t(a.integer) << by) : a.integer >> by);
}

bool isMissing(const PyValue &v) { return v.isNone(); }

template <bool positive> Result isOp(Interpreter &in, Values args, Position) {
  if (args.size() != 2)
    return in.decline();
  bool same =
      isMissing(args[0]) || isMissing(args[1]) ? isMissing(args[0]) && isMissing(args[1]) : isSame(args[0], args[1]);
  return PyValue::ofBool(same == positive);
}

Result toInt(Interpreter &in, Values args, Position at) {
  if (args.size() != 1)
    return in.decline();
  PyValue v = in.resolve(args[0]);
  if (v.isTensor())
    return in.toNumber(v, Kind::SymInt, at);
  if (v.is(Kind::SymFloat))
    return in.callSymbolic("sym_int", {v}, Kind::SymInt, at);
  if (v.is(Kind::SymBool))
    return in.callSymbolic("sym_ite", {v, PyValue::ofInt(1), PyValue::ofInt(0)}, Kind::SymInt, at);
  if (v.is(Kind::String)) {
    int64_t number;
    if (StringRef(v.held->text).trim().getAsInteger(10, number))
      return in.raise(at, "a str that is no number is made an int");
    return PyValue::ofInt(number);
  }
  if (v.is(Kind::Float)) {
    if (!(std::fabs(v.number) < 0x1p63))
      return in.fail(at, "a number does not fit 64 bits");
    return PyValue::ofInt(int64_t(v.number));
  }
  return v.isNumber() ? Result(PyValue::ofInt(v.integer)) : v.is(Kind::SymInt) ? Result(v) : in.decline();
}

Result toFloat(Interpreter &in, Values args, Position at) {
  if (args.size() != 1)
    return in.decline();
  PyValue v = in.resolve(args[0]);
  if (v.isTensor())
    return in.toNumber(v, Kind::SymFloat, at);
  if (v.is(Kind::SymInt) || v.is(Kind::SymBool))
    return in.callSymbolic("sym_float", {v}, Kind::SymFloat, at);
  if (v.is(Kind::String)) {
    double number;
    if (StringRef(v.held->text).trim().getAsDouble(number))
      return in.raise(at, "a str that is no number is made a float");
    return PyValue::ofFloat(number);
  }
  return v.isNumber() ? Result(PyValue::ofFloat(v.asDouble())) : v.is(Kind::SymFloat) ? Result(v) : in.decline();
}

Result toBool(Interpreter &in, Values args, Position at) {
  if (args.size() != 1)
    return in.decline();
  PyValue v = in.resolve(args[0]);
  if (v.isTensor())
    return in.toNumber(v, Kind::SymBool, at);
  if (v.is(Kind::SymBool))
    return v;
  if (v.isSymbolic())
    return in.compare("ne", v, PyValue::ofInt(0), at);
  return v.isNumber() ? Result(PyValue::ofBool(v.asDouble() != 0)) : in.decline();
}

/// What needs numbers that are known: those of `args`, else it is refused.
std::optional<llvm::SmallVector<PyValue, 2>> knownNumbers(Interpreter &in, Values args, size_t count, Position at) {
  if (args.size() != count || llvm::any_of(args, [](const PyValue &v) { return !v.isScalar(); })) {
    (void)in.decline();
    return std::nullopt;
  }
  llvm::SmallVector<PyValue, 2> numbers;
  for (const PyValue &arg : args) {
    numbers.push_back(in.resolve(arg));
    if (!numbers.back().isNumber()) {
      (void)in.refuse(
          "number", at,
          "a function of math of a number that only a run knows is not supported; fix the size with --shape "
          "or --dim, or compute it of tensors",
          numbers.back());
      return std::nullopt;
    }
  }
  return numbers;
}
using Function1 = double (*)(double);
template <Function1 function> Result floatFunction(Interpreter &in, Values args, Position at) {
  auto numbers = knownNumbers(in, args, 1, at);
  return numbers ? Result(PyValue::ofFloat(function(numbers->front().asDouble()))) : std::nullopt;
}
using Function2 = double (*)(double, double);
template <Function2 function> Result floatFunction2(Interpreter &in, Values args, Position at) {
  auto numbers = knownNumbers(in, args, 2, at);
  if (!numbers)
    return std::nullopt;
  if (function == static_cast<Function2>(std::fmod) && (*numbers)[1].asDouble() == 0)
    return in.raise(at, "division by zero");
  return PyValue::ofFloat(function((*numbers)[0].asDouble(), (*numbers)[1].asDouble()));
}
using Test1 = bool (*)(double);
template <Test1 test> Result floatTest(Interpreter &in, Values args, Position at) {
  auto numbers = knownNumbers(in, args, 1, at);
  return numbers ? Result(PyValue::ofBool(test((*numbers)[0].asDouble()))) : std::nullopt;
}
Result gcd(Interpreter &in, Values args, Position at) {
  auto numbers = knownNumbers(in, args, 2, at);
  if (!numbers)
    return std::nullopt;
  int64_t a = (*numbers)[0].integer, b = (*numbers)[1].integer;
  if (!(*numbers)[0].isIntLike() || !(*numbers)[1].isIntLike() || a == INT64_MIN || b == INT64_MIN)
    return in.decline();
  return PyValue::ofInt(std::gcd(a, b));
}
Result factorial(Interpreter &in, Values args, Position at) {
  auto numbers = knownNumbers(in, args, 1, at);
  if (!numbers)
    return std::nullopt;
  constexpr int64_t kMost = 20; // of 64 bits
  const PyValue &n = numbers->front();
  if (!n.isIntLike() || n.integer < 0 || n.integer > kMost)
    return n.isIntLike() && n.integer < 0 ? in.raise(at, "factorial of a negative number")
                                          : in.fail(at, "a number does not fit 64 bits");
  int64_t product = 1;
  for (int64_t i = 2; i <= n.integer; ++i)
    product *= i;
  return PyValue::ofInt(product);
}
/// floor, ceil, round: to an int, but round gives a float.
template <Function1 function, bool gives> Result rounded(Interpreter &in, Values args, Position at) {
  if (args.size() != 1 || !args[0].isScalar())
    return in.decline();
  PyValue v = in.resolve(args[0]);
  if (!v.isNumber()) {
    if (v.is(Kind::SymInt))
      return v;
    return in.callSymbolic(function == static_cast<Function1>(std::floor)  ? "floor"
                           : function == static_cast<Function1>(std::ceil) ? "ceil"
                                                                           : "round",
                           {v}, Kind::SymInt, at);
  }
  double result = function(v.asDouble());
  if (!gives)
    return PyValue::ofFloat(result);
  if (!(std::fabs(result) < 0x1p63))
    return in.fail(at, "a number does not fit 64 bits");
  return PyValue::ofInt(int64_t(result));
}
double radians(double x) { return x * (M_PI / 180); }
double degrees(double x) { return x * (180 / M_PI); }

template <bool isMax> Result extreme(Interpreter &in, Values args, Position at) {
  std::vector<PyValue> all(args.begin(), args.end());
  if (args.size() == 1 && args[0].is(Kind::List)) {
    all = args[0].held->items;
    if (all.empty())
      return in.raise(at, "min or max of an empty list");
  }
  if (all.empty() || llvm::any_of(all, [](const PyValue &v) { return !v.isScalar(); }))
    return in.decline();
  PyValue best = all[0];
  for (const PyValue &v : llvm::drop_begin(all)) {
    Result next = in.arithmetic(isMax ? "max" : "min", best, v, at);
    if (!next)
      return std::nullopt;
    best = *next;
  }
  return best;
}

Result absolute(Interpreter &in, Values args, Position at) {
  if (args.size() != 1 || !args[0].isScalar())
    return in.decline();
  PyValue v = in.resolve(args[0]);
  if (!v.isNumber())
    return in.arithmetic("max", v, PyValue(*neg(in, v, at)), at);
  if (v.is(Kind::Float))
    return PyValue::ofFloat(std::fabs(v.number));
  return v.integer < 0 ? in.arithmetic("sub", PyValue::ofInt(0), v, at) : Result(PyValue::ofInt(v.integer));
}

template <bool isAny> Result anyOf(Interpreter &in, Values args, Position at) {
  if (args.size() != 1 || !args[0].is(Kind::List))
    return in.decline();
  PyValue result = PyValue::ofBool(!isAny);
  for (const PyValue &item : args[0].held->items) {
    Result flag = toBool(in, item, at);
    Result next = flag ? bitwise<isAny ? '|' : '&'>(in, {result, *flag}, at) : flag;
    if (!next)
      return std::nullopt;
    result = *next;
  }
  return result;
}

Result sum(Interpreter &in, Values args, Position at) {
  if (args.size() != 1 || !args[0].is(Kind::List))
    return in.decline();
  PyValue total = PyValue::ofInt(0);
  for (const PyValue &item : args[0].held->items) {
    Result next = in.arithmetic("add", total, item, at);
    if (!next)
      return std::nullopt;
    total = *next;
  }
  return total;
}

} // namespace

void tc::torchscript::addNumberOperators(llvm::StringMap<Interpreter::HostOperator> &table) {
  table["aten::add"] = add;
  table["aten::add_"] = addInPlace;
  table["aten::mul"] = mul;
  table["aten::sub"] = arithmeticOp<kSub>;
  table["aten::div"] = arithmeticOp<kDiv>;
  table["aten::pow"] = arithmeticOp<kPow>;
  table["aten::floordiv"] = arithmeticOp<kFloordiv>;
  table["aten::floor_divide"] = arithmeticOp<kFloordiv>;
  table["aten::remainder"] = arithmeticOp<kRemainder>;
  table["aten::eq"] = compareOp<kEq>;
  table["aten::ne"] = compareOp<kNe>;
  table["aten::lt"] = compareOp<kLt>;
  table["aten::le"] = compareOp<kLe>;
  table["aten::gt"] = compareOp<kGt>;
  table["aten::ge"] = compareOp<kGe>;
  table["aten::neg"] = neg;
  table["aten::__not__"] = logicalNot;
  table["aten::__and__"] = bitwise<'&'>;
  table["aten::__or__"] = bitwise<'|'>;
  table["aten::__xor__"] = bitwise<'^'>;
  table["aten::__lshift__"] = shift<true>;
  table["aten::__rshift__"] = shift<false>;
  table["aten::__is__"] = isOp<true>;
  table["aten::__isnot__"] = isOp<false>;
  table["aten::Int"] = table["aten::IntImplicit"] = table["prim::Int"] = toInt;
  table["aten::Float"] = table["aten::FloatImplicit"] = table["prim::Float"] = toFloat;
  table["aten::Bool"] = table["prim::Bool"] = toBool;
  table["aten::sqrt"] = floatFunction<std::sqrt>;
  table["aten::exp"] = floatFunction<std::exp>;
  table["aten::log"] = floatFunction<std::log>;
  table["aten::log2"] = floatFunction<std::log2>;
  table["aten::log10"] = floatFunction<std::log10>;
  table["aten::log1p"] = floatFunction<std::log1p>;
  table["aten::sin"] = floatFunction<std::sin>;
  table["aten::cos"] = floatFunction<std::cos>;
  table["aten::tan"] = floatFunction<std::tan>;
  table["aten::asin"] = floatFunction<std::asin>;
  table["aten::acos"] = floatFunction<std::acos>;
  table["aten::atan"] = floatFunction<std::atan>;
  table["aten::sinh"] = floatFunction<std::sinh>;
  table["aten::cosh"] = floatFunction<std::cosh>;
  table["aten::tanh"] = floatFunction<std::tanh>;
  table["aten::expm1"] = floatFunction<std::expm1>;
  table["aten::atan2"] = floatFunction2<std::atan2>;
  table["aten::copysign"] = floatFunction2<std::copysign>;
  table["aten::fmod"] = floatFunction2<std::fmod>;
  table["aten::isnan"] = floatTest<std::isnan>;
  table["aten::isinf"] = floatTest<std::isinf>;
  table["aten::isfinite"] = floatTest<std::isfinite>;
  table["aten::gcd"] = gcd;
  table["aten::factorial"] = factorial;
  table["aten::erf"] = floatFunction<std::erf>;
  table["aten::gamma"] = floatFunction<std::tgamma>;
  table["aten::lgamma"] = floatFunction<std::lgamma>;
  table["aten::radians"] = floatFunction<radians>;
  table["aten::degrees"] = floatFunction<degrees>;
  table["aten::floor"] = rounded<std::floor, true>;
  table["aten::ceil"] = rounded<std::ceil, true>;
  table["aten::round"] = rounded<std::nearbyint, false>;
  table["aten::trunc"] = rounded<std::trunc, true>;
  table["prim::min"] = extreme<false>;
  table["prim::max"] = extreme<true>;
  table["prim::abs"] = table["aten::abs"] = absolute;
  table["aten::any"] = anyOf<true>;
  table["aten::all"] = anyOf<false>;
  table["aten::sum"] = sum;
}

Interpreter::HostOperator Interpreter::findHostOperator(StringRef name) {
  static const llvm::StringMap<HostOperator> kTable = [] {
    llvm::StringMap<HostOperator> table;
    addNumberOperators(table);
    addContainerOperators(table);
    addTensorQueries(table);
    return table;
  }();
  return kTable.lookup(name);
}
