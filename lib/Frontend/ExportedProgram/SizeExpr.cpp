//===- SizeExpr.cpp - expressions over sizes in programs of torch.export ------------------------------------------===//
//
// One grammar for both forms of expressions, from weak to strong; a call's keyword arguments are facts about symbols.
//
//   either  := both ("or" both)*              conditions, as the export writes those that it found
//   both    := fact ("and" fact)*
//   fact    := "not" fact | sum (("==" | "!=" | "<=" | ">=" | "<" | ">") sum)?
//   sum     := product (("+" | "-") product)*
//   product := unary (("*" | "//" | "%") unary)*
//   unary   := "-" unary | power
//   power   := atom ("**" unary)?
//   atom    := number | name | name "(" (argument ("," argument)*)? ")" | "(" either ")"
//   argument := sum | string | name "=" (name | number)
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "SizeExpr.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace tc::exported;
using llvm::StringRef;

namespace {

using Kind = SizeExpr::Kind;

// No program has deeper or longer ones; the parser recurses.
constexpr int64_t kMaxDepth = 100, kMaxNodes = 10000;

class Parser {
public:
  explicit Parser(StringRef text) : rest(text) {}

  std::optional<SizeExpr> parse() {
    std::optional<SizeExpr> expr = either();
    skipSpace();
    return expr && rest.empty() ? expr : std::nullopt;
  }

private:
  void skipSpace() { rest = rest.ltrim(); }
  bool take(StringRef token) {
    skipSpace();
    return rest.consume_front(token);
  }
  /// `*`, but not the start of `**`.
  bool takeTimes() {
    skipSpace();
    return !rest.starts_with("**") && rest.consume_front("*");
  }
  static SizeExpr call(StringRef name, std::vector<SizeExpr> args) {
    SizeExpr expr;
    expr.kind = Kind::Call;
    expr.name = name.str();
    expr.args = std::move(args);
    return expr;
  }
  static SizeExpr integer(int64_t value) {
    SizeExpr expr;
    expr.value = value;
    return expr;
  }
  static std::optional<SizeExpr> negate(SizeExpr expr) {
    if (expr.kind != Kind::Integer)
      return call("Mul", {integer(-1), std::move(expr)});
    if (expr.value == INT64_MIN)
      return std::nullopt;
    return integer(-expr.value);
  }

  /// A word that stands alone.
  bool takeWord(StringRef word) {
    skipSpace();
    const size_t length = word.size();
    if (!rest.starts_with(word) || (rest.size() > length && (llvm::isAlnum(rest[length]) || rest[length] == '_')))
      return false;
    rest = rest.drop_front(length);
    return true;
  }

  std::optional<SizeExpr> either() {
    std::optional<SizeExpr> left = both();
    while (left && takeWord("or")) {
      std::optional<SizeExpr> right = both();
      left = right ? std::optional(call("Or", {std::move(*left), std::move(*right)})) : std::nullopt;
    }
    return left;
  }

  std::optional<SizeExpr> both() {
    std::optional<SizeExpr> left = fact();
    while (left && takeWord("and")) {
      std::optional<SizeExpr> right = fact();
      left = right ? std::optional(call("And", {std::move(*left), std::move(*right)})) : std::nullopt;
    }
    return left;
  }

  std::optional<SizeExpr> fact() {
    if (++depth > kMaxDepth)
      return std::nullopt;
    std::optional<SizeExpr> left;
    if (takeWord("not")) {
      if ((left = fact()))
        left = call("Not", {std::move(*left)});
    } else if ((left = sum())) {
      static constexpr std::pair<StringRef, StringRef> comparisons[] = {{"==", "Eq"}, {"!=", "Ne"}, {"<=", "Le"},
                                                                        {">=", "Ge"}, {"<", "Lt"},  {">", "Gt"}};
      for (auto [sign, name] : comparisons)
        if (take(sign)) {
          std::optional<SizeExpr> right = sum();
          left = right ? std::optional(call(name, {std::move(*left), std::move(*right)})) : std::nullopt;
          break;
        }
    }
    --depth;
    return left;
  }

  std::optional<SizeExpr> sum() {
    std::optional<SizeExpr> left = product();
    while (left) {
      skipSpace();
      const bool isMinus = rest.starts_with("-");
      if (!isMinus && !rest.starts_with("+"))
        return left;
      rest = rest.drop_front();
      std::optional<SizeExpr> right = product();
      if (right && isMinus)
        right = negate(std::move(*right));
      if (!right)
        return std::nullopt;
      left = call("Add", {std::move(*left), std::move(*right)});
    }
    return std::nullopt;
  }

  std::optional<SizeExpr> product() {
    std::optional<SizeExpr> left = unary();
    while (left) {
      const char *name = takeTimes() ? "Mul" : take("//") ? "FloorDiv" : take("%") ? "Mod" : nullptr;
      if (!name)
        return left;
      std::optional<SizeExpr> right = unary();
      if (!right)
        return std::nullopt;
      left = call(name, {std::move(*left), std::move(*right)});
    }
    return std::nullopt;
  }

  std::optional<SizeExpr> unary() {
    if (++depth > kMaxDepth || ++nodes > kMaxNodes)
      return std::nullopt;
    std::optional<SizeExpr> expr;
    if (take("-")) {
      if ((expr = unary()))
        expr = negate(std::move(*expr));
    } else if ((expr = atom()) && take("**")) {
      std::optional<SizeExpr> exponent = unary();
      expr = exponent ? std::optional(call("Pow", {std::move(*expr), std::move(*exponent)})) : std::nullopt;
    }
    --depth;
    return expr;
  }

  std::optional<SizeExpr> atom() {
    if (take("(")) {
      std::optional<SizeExpr> inner = either();
      return take(")") ? inner : std::nullopt;
    }
    skipSpace();
    if (!rest.empty() && llvm::isDigit(rest.front())) {
      int64_t value = 0;
      if (rest.consumeInteger(10, value) || rest.starts_with("."))
        return std::nullopt;
      return integer(value);
    }
    std::string name = identifier();
    if (name.empty())
      return std::nullopt;
    if (!take("(")) {
      SizeExpr symbol;
      symbol.kind = Kind::Symbol;
      symbol.name = name;
      return symbol;
    }
    return arguments(StringRef(name).rsplit('.').second.empty() ? StringRef(name) : StringRef(name).rsplit('.').second);
  }

  std::string identifier() {
    skipSpace();
    StringRef name = rest.take_while([](char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; });
    rest = rest.drop_front(name.size());
    return name.str();
  }

  std::optional<SizeExpr> arguments(StringRef name) {
    std::vector<SizeExpr> args;
    std::string word;
    while (!take(")")) {
      if (!args.empty() || !word.empty())
        if (!take(","))
          return std::nullopt;
      skipSpace();
      if (rest.consume_front("'")) {
        StringRef content = rest.take_until([](char c) { return c == '\''; });
        if (content.size() == rest.size())
          return std::nullopt;
        word = content.str();
        rest = rest.drop_front(content.size() + 1);
        continue;
      }
      // Facts, such as integer=True.
      StringRef before = rest;
      std::string fact = identifier();
      if (!fact.empty() && take("=")) {
        if (identifier().empty())
          return std::nullopt;
        continue;
      }
      rest = before;
      std::optional<SizeExpr> arg = sum();
      if (!arg)
        return std::nullopt;
      args.push_back(std::move(*arg));
    }
    if (name == "Symbol" && args.empty() && !word.empty()) {
      SizeExpr symbol;
      symbol.kind = Kind::Symbol;
      symbol.name = word;
      return symbol;
    }
    if (!word.empty())
      return std::nullopt;
    if (name == "Integer" && args.size() == 1 && args[0].kind == Kind::Integer)
      return args[0];
    return call(name, std::move(args));
  }

  StringRef rest;
  int64_t depth = 0, nodes = 0;
};

} // namespace

std::optional<SizeExpr::Linear> SizeExpr::asLinear() const {
  if (kind == Kind::Integer)
    return Linear{"", 0, value};
  if (kind == Kind::Symbol)
    return Linear{name, 1, 0};
  if ((name != "Add" && name != "Mul") || args.empty())
    return std::nullopt;
  std::optional<Linear> all = args[0].asLinear();
  for (size_t i = 1; all && i < args.size(); ++i) {
    std::optional<Linear> next = args[i].asLinear();
    if (!next || (!all->symbol.empty() && !next->symbol.empty() && (name == "Mul" || all->symbol != next->symbol)))
      return std::nullopt;
    bool overflows = false;
    if (name == "Add") {
      overflows |= llvm::AddOverflow(all->factor, next->factor, all->factor) != 0;
      overflows |= llvm::AddOverflow(all->offset, next->offset, all->offset) != 0;
    } else { // at most one has a symbol
      const int64_t scale = all->symbol.empty() ? all->offset : next->offset;
      const Linear &scaled = all->symbol.empty() ? *next : *all;
      const int64_t factor = scaled.factor, offset = scaled.offset;
      overflows |= llvm::MulOverflow(factor, scale, all->factor) != 0;
      overflows |= llvm::MulOverflow(offset, scale, all->offset) != 0;
    }
    if (overflows)
      return std::nullopt;
    if (all->symbol.empty())
      all->symbol = next->symbol;
  }
  return all;
}

std::optional<SizeExpr> tc::exported::parseSizeExpr(StringRef text) { return Parser(text).parse(); }
