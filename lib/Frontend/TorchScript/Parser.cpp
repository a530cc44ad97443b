//===- Parser.cpp - TorchScript's code to trees -------------------------------------------------------------------===//
//
// Recursive descent. The first error ends the parse: all functions return null from then on. Nesting is counted both
// on the way down (the parser's own stack) and in trees that grow to the left (chains of methods and operators).
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Lexer.h"

#include "llvm/ADT/StringSwitch.h"

using namespace llvm;
using namespace tc::torchscript;

namespace {

class Parser {
public:
  explicit Parser(SourceFile &file) : file(file), lexer(file.text, file.arena) { advance(); }

  bool parseFile();
  StringRef message() const { return error; }
  Position position() const { return errorAt; }

private:
  void advance() {
    previous = current;
    current = lexer.next();
  }
  /// Always false or null, so that callers can return it.
  std::nullptr_t fail(Position at, const Twine &what) {
    if (error.empty()) {
      error = what.str();
      errorAt = at;
    }
    return nullptr;
  }
  std::nullptr_t failHere(const Twine &expected) {
    if (current.kind == TokenKind::Error)
      return fail(current.at, current.text);
    std::string found = current.kind == TokenKind::End       ? "the end of the file"
                        : current.kind == TokenKind::Newline ? "the end of the line"
                        : current.kind == TokenKind::Indent  ? "an indented line"
                        : current.kind == TokenKind::Dedent  ? "a line that is indented less"
                        : current.kind == TokenKind::String  ? "a string"
                                                             : "\"" + current.text.str() + "\"";
    return fail(current.at, expected + " is expected here, but " + found + " follows");
  }
  bool failed() const { return !error.empty(); }
  bool is(StringRef spelling) const {
    return (current.kind == TokenKind::Punctuation || current.kind == TokenKind::Name) && current.text == spelling;
  }
  bool accept(StringRef spelling) {
    if (!is(spelling))
      return false;
    advance();
    return true;
  }
  bool expect(StringRef spelling) {
    if (accept(spelling))
      return true;
    failHere("\"" + spelling + "\"");
    return false;
  }
  bool expectNewline() {
    if (current.kind == TokenKind::End)
      return true;
    if (current.kind != TokenKind::Newline)
      return failHere("the end of the line") != nullptr;
    advance();
    return true;
  }
  StringRef expectName() {
    if (current.kind != TokenKind::Name) {
      failHere("a name");
      return "";
    }
    advance();
    return previous.text;
  }

  template <typename T> ArrayRef<T> keep(ArrayRef<T> values) {
    T *kept = file.arena.Allocate<T>(values.size());
    std::uninitialized_copy(values.begin(), values.end(), kept);
    return ArrayRef<T>(kept, values.size());
  }
  Expr *make(ExprKind kind, Position at, StringRef text = "", ArrayRef<const Expr *> operands = {}) {
    Expr *expr = new (file.arena.Allocate<Expr>()) Expr();
    expr->kind = kind;
    expr->at = at;
    expr->text = text;
    expr->operands = keep(operands);
    for (const Expr *operand : operands)
      if (operand)
        expr->depth = std::max(expr->depth, operand->depth + 1);
    if (expr->depth > kMaxDepth)
      return fail(at, "expressions nest deeper than " + Twine(kMaxDepth));
    return expr;
  }
  Stmt *make(StmtKind kind, Position at) {
    Stmt *stmt = new (file.arena.Allocate<Stmt>()) Stmt();
    stmt->kind = kind;
    stmt->at = at;
    return stmt;
  }

  struct Nesting {
    explicit Nesting(Parser &parser) : parser(parser) {
      if (++parser.depth > kMaxDepth)
        parser.fail(parser.current.at, "the code nests deeper than " + Twine(kMaxDepth));
    }
    ~Nesting() { --parser.depth; }
    Parser &parser;
  };

  const Expr *parseExpr();
  const Expr *parseOperators(int precedence);
  const Expr *parseUnary();
  const Expr *parsePostfix();
  const Expr *parsePrimary();
  const Expr *parseSubscript();
  /// Whether a generic type is given as many types as it takes; its readers go by that.
  bool checkTypeArguments(const Expr &type, size_t count);
  bool parseArguments(SmallVectorImpl<const Expr *> &operands, SmallVectorImpl<StringRef> &keywords);
  /// Comma-separated expressions up to `close`; whether a comma was among them.
  bool parseItems(StringRef close, SmallVectorImpl<const Expr *> &items, bool &hasComma);
  /// `a, b` without brackets, or one expression.
  const Expr *parseExprs(SmallVectorImpl<const Expr *> &items, bool &hasComma);

  bool parseBlock(Body &block);
  const Stmt *parseStmt();
  const Stmt *parseSimple();
  const Stmt *parseIf();
  const Function *parseFunction();
  const ClassDef *parseClass();
  bool parseStrings(const Expr *list, SmallVectorImpl<StringRef> &strings);
  bool parseImport();

  SourceFile &file;
  Lexer lexer;
  Token current, previous;
  std::string error;
  Position errorAt;
  int depth = 0;
};

//===--- expressions ----------------------------------------------------------------------------------------------===//

const Expr *Parser::parseExpr() {
  Nesting nesting(*this);
  if (failed())
    return nullptr;
  const Expr *value = parseOperators(0);
  if (!value || !is("if"))
    return value;
  Position at = current.at;
  advance();
  const Expr *condition = parseOperators(0);
  if (!condition || !expect("else"))
    return nullptr;
  const Expr *otherwise = parseExpr();
  return otherwise ? make(ExprKind::Ternary, at, "", {condition, value, otherwise}) : nullptr;
}

/// 0 for what is no binary operator.
static int precedenceOf(const Token &token) {
  if (token.kind != TokenKind::Punctuation && token.kind != TokenKind::Name)
    return 0;
  return StringSwitch<int>(token.text)
      .Case("or", 1)
      .Case("and", 2)
      .Cases({"==", "!=", "<", "<=", ">", ">=", "in", "is", "not"}, 4)
      .Case("|", 5)
      .Case("^", 6)
      .Case("&", 7)
      .Cases({"<<", ">>"}, 8)
      .Cases({"+", "-"}, 9)
      .Cases({"*", "/", "//", "%", "@"}, 10)
      .Case("**", 12)
      .Default(0);
}

/// Operators that bind more tightly than `precedence`. Chains of one level are a loop.
const Expr *Parser::parseOperators(int precedence) {
  Nesting nesting(*this);
  if (failed())
    return nullptr;
  const Expr *left;
  if (precedence < 4 && is("not")) {
    Position at = current.at;
    advance();
    const Expr *operand = parseOperators(3);
    left = operand ? make(ExprKind::Unary, at, "not", {operand}) : nullptr;
  } else {
    left = parseUnary();
  }
  while (left) {
    int next = precedenceOf(current);
    if (next == 0 || next <= precedence)
      return left;
    Token op = current;
    StringRef spelling = op.text;
    advance();
    if (op.text == "is" && accept("not"))
      spelling = "is not";
    if (op.text == "not") {
      if (!expect("in"))
        return nullptr;
      spelling = "not in";
    }
    // ** binds to the right.
    const Expr *right = parseOperators(next == 12 ? next - 1 : next);
    left = right ? make(ExprKind::Binary, op.at, spelling, {left, right}) : nullptr;
  }
  return left;
}

const Expr *Parser::parseUnary() {
  Nesting nesting(*this);
  if (failed())
    return nullptr;
  if (!is("-") && !is("+") && !is("~"))
    return parsePostfix();
  Token op = current;
  advance();
  // Of a power as a whole.
  const Expr *operand = is("-") || is("+") || is("~") ? parseUnary() : parseOperators(11);
  if (!operand)
    return nullptr;
  if (op.text == "-" && operand->kind == ExprKind::Int) {
    Expr *negated = make(ExprKind::Int, op.at);
    negated->integer = int64_t(0 - uint64_t(operand->integer));
    return negated;
  }
  return make(ExprKind::Unary, op.at, op.text, {operand});
}

const Expr *Parser::parsePostfix() {
  const Expr *value = parsePrimary();
  while (value) {
    Position at = current.at;
    if (accept(".")) {
      StringRef name = expectName();
      value = name.empty() ? nullptr : make(ExprKind::Attribute, previous.at, name, {value});
    } else if (is("(")) {
      SmallVector<const Expr *> operands{value};
      SmallVector<StringRef> keywords;
      if (!parseArguments(operands, keywords))
        return nullptr;
      Expr *call = make(ExprKind::Call, value->at, "", operands);
      if (call)
        call->keywords = keep(ArrayRef<StringRef>(keywords));
      value = call;
    } else if (accept("[")) {
      SmallVector<const Expr *> operands{value};
      do {
        if (is("]") && operands.size() > 1)
          break;
        const Expr *index = parseSubscript();
        if (!index)
          return nullptr;
        operands.push_back(index);
      } while (accept(","));
      if (!expect("]") || !checkTypeArguments(*value, operands.size() - 1))
        return nullptr;
      value = make(ExprKind::Subscript, at, "", operands);
    } else {
      return value;
    }
  }
  return nullptr;
}

const Expr *Parser::parseSubscript() {
  const Expr *parts[3] = {};
  Position at = current.at;
  if (!is(":"))
    if (!(parts[0] = parseExpr()))
      return nullptr;
  if (!is(":"))
    return parts[0];
  for (int i = 1; i < 3 && accept(":"); ++i)
    if (!is(":") && !is("]") && !is(","))
      if (!(parts[i] = parseExpr()))
        return nullptr;
  return make(ExprKind::Slice, at, "", parts);
}

bool Parser::checkTypeArguments(const Expr &type, size_t count) {
  const size_t taken = type.kind != ExprKind::Name                      ? 0
                       : type.text == "Dict"                            ? 2
                       : type.text == "Optional" || type.text == "List" ? 1
                                                                        : 0;
  if (taken == 0 || count == taken)
    return true;
  fail(type.at,
       type.text + (taken == 1 ? " takes one type, but is given " : " takes two types, but is given ") + Twine(count));
  return false;
}

bool Parser::parseArguments(SmallVectorImpl<const Expr *> &operands, SmallVectorImpl<StringRef> &keywords) {
  if (!expect("("))
    return false;
  while (!is(")")) {
    const Expr *value = parseExpr();
    if (!value)
      return false;
    if (value->kind == ExprKind::Name && accept("=")) {
      keywords.push_back(value->text);
      if (!(value = parseExpr()))
        return false;
    } else if (!keywords.empty()) {
      fail(value->at, "an argument without a name follows one with a name");
      return false;
    }
    operands.push_back(value);
    if (!accept(","))
      break;
  }
  return expect(")");
}

bool Parser::parseItems(StringRef close, SmallVectorImpl<const Expr *> &items, bool &hasComma) {
  hasComma = false;
  while (!is(close)) {
    const Expr *item = parseExpr();
    if (!item)
      return false;
    items.push_back(item);
    if (!accept(","))
      break;
    hasComma = true;
  }
  return expect(close);
}

const Expr *Parser::parsePrimary() {
  Token token = current;
  bool follows = previous.text == "-"; // -2^63 is the one number whose magnitude has no positive form
  switch (token.kind) {
  case TokenKind::Name:
    if (is("lambda") || is("yield") || is("await"))
      return failHere("an expression of TorchScript");
    advance();
    return make(ExprKind::Name, token.at, token.text);
  case TokenKind::Int: {
    advance();
    Expr *value = make(ExprKind::Int, token.at);
    value->integer = token.integer;
    if (value->integer == INT64_MIN && !follows)
      return fail(token.at, "this number does not fit 64 bits");
    return value;
  }
  case TokenKind::Float:
  case TokenKind::Complex: {
    advance();
    Expr *value = make(token.kind == TokenKind::Float ? ExprKind::Float : ExprKind::Complex, token.at);
    value->number = token.number;
    return value;
  }
  case TokenKind::String: {
    advance();
    return make(ExprKind::String, token.at, token.text);
  }
  case TokenKind::Punctuation:
    break;
  default:
    return failHere("an expression");
  }
  SmallVector<const Expr *> items;
  bool hasComma = false;
  if (accept("(")) {
    if (!parseItems(")", items, hasComma))
      return nullptr;
    return items.size() == 1 && !hasComma ? items[0] : make(ExprKind::Tuple, token.at, "", items);
  }
  if (accept("[")) {
    if (!parseItems("]", items, hasComma))
      return nullptr;
    return make(ExprKind::List, token.at, "", items);
  }
  if (accept("{")) {
    while (!is("}")) {
      for (bool isValue : {false, true}) {
        const Expr *item = parseExpr();
        if (!item || (!isValue && !expect(":")))
          return nullptr;
        items.push_back(item);
      }
      if (!accept(","))
        break;
    }
    return expect("}") ? make(ExprKind::Dict, token.at, "", items) : nullptr;
  }
  return failHere("an expression");
}

const Expr *Parser::parseExprs(SmallVectorImpl<const Expr *> &items, bool &hasComma) {
  hasComma = false;
  Position at = current.at;
  const Expr *first = parseExpr();
  if (!first)
    return nullptr;
  items.push_back(first);
  while (accept(",")) {
    hasComma = true;
    if (is("=") || current.kind == TokenKind::Newline || current.kind == TokenKind::End || is("in"))
      break;
    const Expr *item = parseExpr();
    if (!item)
      return nullptr;
    items.push_back(item);
  }
  return hasComma ? make(ExprKind::Tuple, at, "", items) : first;
}

//===--- statements -----------------------------------------------------------------------------------------------===//

bool Parser::parseBlock(Body &block) {
  Nesting nesting(*this);
  if (failed() || !expect(":"))
    return false;
  SmallVector<const Stmt *> statements;
  if (current.kind != TokenKind::Newline) {
    const Stmt *only = parseSimple();
    if (!only || !expectNewline())
      return false;
    statements.push_back(only);
    block = keep(ArrayRef<const Stmt *>(statements));
    return true;
  }
  advance();
  if (current.kind != TokenKind::Indent) {
    failHere("an indented block");
    return false;
  }
  advance();
  while (current.kind != TokenKind::Dedent && current.kind != TokenKind::End) {
    const Stmt *statement = parseStmt();
    if (!statement)
      return false;
    statements.push_back(statement);
  }
  if (current.kind == TokenKind::Dedent)
    advance();
  block = keep(ArrayRef<const Stmt *>(statements));
  return true;
}

const Stmt *Parser::parseIf() {
  // A chain of elif is a loop in the text, but nests in the tree.
  Nesting nesting(*this);
  if (failed())
    return nullptr;
  Stmt *stmt = make(StmtKind::If, current.at);
  advance();
  if (!(stmt->value = parseExpr()) || !parseBlock(stmt->body))
    return nullptr;
  if (is("elif")) {
    const Stmt *rest = parseIf();
    if (!rest)
      return nullptr;
    stmt->otherwise = keep(ArrayRef<const Stmt *>(rest));
  } else if (accept("else")) {
    if (!parseBlock(stmt->otherwise))
      return nullptr;
  }
  return stmt;
}

const Stmt *Parser::parseStmt() {
  Nesting nesting(*this);
  if (failed())
    return nullptr;
  Position at = current.at;
  if (is("if"))
    return parseIf();
  if (is("while")) {
    advance();
    Stmt *stmt = make(StmtKind::While, at);
    if (!(stmt->value = parseExpr()) || !parseBlock(stmt->body))
      return nullptr;
    return stmt;
  }
  if (is("for")) {
    advance();
    Stmt *stmt = make(StmtKind::For, at);
    SmallVector<const Expr *> targets;
    do {
      if (is("in"))
        break;
      const Expr *target = parsePostfix();
      if (!target)
        return nullptr;
      targets.push_back(target);
    } while (accept(","));
    if (targets.empty())
      return failHere("a variable"), nullptr;
    stmt->isUnpacking = previous.text == "," || targets.size() > 1;
    if (!expect("in") || !(stmt->value = parseExpr()) || !parseBlock(stmt->body))
      return nullptr;
    stmt->targets = keep(ArrayRef<const Expr *>(targets));
    return stmt;
  }
  if (is("with")) {
    advance();
    Stmt *stmt = make(StmtKind::With, at);
    if (!(stmt->value = parseExpr()))
      return nullptr;
    if (accept("as")) {
      const Expr *target = parsePostfix();
      if (!target)
        return nullptr;
      stmt->targets = keep(ArrayRef<const Expr *>(target));
    }
    return parseBlock(stmt->body) ? stmt : nullptr;
  }
  if (is("def")) {
    Stmt *stmt = make(StmtKind::Define, at);
    stmt->function = parseFunction();
    return stmt->function ? stmt : nullptr;
  }
  const Stmt *simple = parseSimple();
  return simple && expectNewline() ? simple : nullptr;
}

const Stmt *Parser::parseSimple() {
  Position at = current.at;
  for (auto [word, kind] : {std::pair("pass", StmtKind::Pass), std::pair("break", StmtKind::Break),
                            std::pair("continue", StmtKind::Continue)})
    if (accept(word))
      return make(kind, at);
  SmallVector<const Expr *> items;
  bool hasComma = false;
  if (is("return") || is("raise")) {
    Stmt *stmt = make(is("return") ? StmtKind::Return : StmtKind::Raise, at);
    advance();
    if (current.kind != TokenKind::Newline && current.kind != TokenKind::End)
      if (!(stmt->value = parseExprs(items, hasComma)))
        return nullptr;
    return stmt;
  }
  if (accept("assert")) {
    Stmt *stmt = make(StmtKind::Assert, at);
    if (!(stmt->value = parseExpr()) || (accept(",") && !(stmt->message = parseExpr())))
      return nullptr;
    return stmt;
  }
  if (accept("del")) {
    Stmt *stmt = make(StmtKind::Delete, at);
    if (!parseExprs(items, hasComma))
      return nullptr;
    stmt->targets = keep(ArrayRef<const Expr *>(items));
    return stmt;
  }
  const Expr *first = parseExprs(items, hasComma);
  if (!first)
    return nullptr;
  Stmt *stmt = make(StmtKind::Assign, at);
  if (!hasComma && accept(":"))
    if (!(stmt->type = parseExpr()))
      return nullptr;
  if (accept("=")) {
    SmallVector<const Expr *> values;
    bool several = false;
    if (!(stmt->value = parseExprs(values, several)))
      return nullptr;
  } else if (!stmt->type) {
    StringRef op = current.kind == TokenKind::Punctuation ? current.text : "";
    if (op.size() >= 2 && op.ends_with("=") && !hasComma && op != "==" && op != "<=" && op != ">=" && op != "!=") {
      advance();
      stmt->kind = StmtKind::Augmented;
      stmt->text = op;
      if (!(stmt->value = parseExpr()))
        return nullptr;
    } else {
      stmt->kind = StmtKind::Expression;
      stmt->value = first;
      return stmt;
    }
  }
  stmt->targets = keep(ArrayRef<const Expr *>(items));
  stmt->isUnpacking = hasComma;
  return stmt;
}

//===--- functions and classes ------------------------------------------------------------------------------------===//

const Function *Parser::parseFunction() {
  Nesting nesting(*this);
  if (failed() || !expect("def"))
    return nullptr;
  Function *function = new (file.arena.Allocate<Function>()) Function();
  function->at = current.at;
  function->name = expectName();
  if (function->name.empty() || !expect("("))
    return nullptr;
  SmallVector<Parameter> parameters;
  while (!is(")")) {
    if (accept("*")) { // keyword-only ones follow
      if (!accept(","))
        break;
      continue;
    }
    Parameter parameter;
    parameter.name = expectName();
    if (parameter.name.empty() || (accept(":") && !(parameter.type = parseExpr())) ||
        (accept("=") && !(parameter.defaultValue = parseExpr())))
      return nullptr;
    parameters.push_back(parameter);
    if (!accept(","))
      break;
  }
  if (!expect(")") || (accept("->") && !(function->returnType = parseExpr())) || !parseBlock(function->body))
    return nullptr;
  function->parameters = keep(ArrayRef<Parameter>(parameters));
  return function;
}

bool Parser::parseStrings(const Expr *list, SmallVectorImpl<StringRef> &strings) {
  if (!list || list->kind != ExprKind::List)
    return fail(current.at, "a list of names is expected here") != nullptr;
  for (const Expr *item : list->operands) {
    if (item->kind != ExprKind::String)
      return fail(item->at, "a name in quotes is expected here") != nullptr;
    strings.push_back(item->text);
  }
  return true;
}

const ClassDef *Parser::parseClass() {
  expect("class");
  ClassDef *result = new (file.arena.Allocate<ClassDef>()) ClassDef();
  result->at = current.at;
  result->name = expectName();
  if (result->name.empty())
    return nullptr;
  if (accept("(")) {
    if (!is(")"))
      result->base = expectName();
    if (failed() || !expect(")"))
      return nullptr;
  }
  Body body;
  if (!parseBlock(body))
    return nullptr;
  SmallVector<ClassDef::Field> fields;
  SmallVector<const Function *> methods;
  SmallVector<StringRef> preHooks, hooks, ignored;
  for (const Stmt *stmt : body) {
    if (stmt->kind == StmtKind::Pass)
      continue;
    if (stmt->kind == StmtKind::Define) {
      methods.push_back(stmt->function);
      continue;
    }
    if (stmt->kind != StmtKind::Assign || stmt->targets.size() != 1)
      return fail(stmt->at, "a class holds attributes and methods; this is neither");
    const Expr *target = stmt->targets[0];
    if (target->kind == ExprKind::Subscript && target->operands.size() == 2 &&
        target->operands[0]->kind == ExprKind::Name && target->operands[0]->text == "__annotations__" &&
        target->operands[1]->kind == ExprKind::String && stmt->value) {
      fields.push_back({target->operands[1]->text, stmt->value, nullptr});
    } else if (target->kind != ExprKind::Name) {
      return fail(target->at, "a class holds attributes and methods; this is neither");
    } else if (target->text == "__forward_pre_hooks__" || target->text == "__forward_hooks__") {
      if (!parseStrings(stmt->value, target->text == "__forward_hooks__" ? hooks : preHooks))
        return nullptr;
    } else if (!target->text.starts_with("__") || stmt->type) {
      fields.push_back({target->text, stmt->type, stmt->value});
    }
  }
  result->fields = keep(ArrayRef<ClassDef::Field>(fields));
  result->methods = keep(ArrayRef<const Function *>(methods));
  result->preHooks = keep(ArrayRef<StringRef>(preHooks));
  result->hooks = keep(ArrayRef<StringRef>(hooks));
  return result;
}

/// `import a.b.c`, which archives of PyTorch 1.2 hold: files are found by the names that the code uses.
bool Parser::parseImport() {
  while (current.kind != TokenKind::Newline && current.kind != TokenKind::End && current.kind != TokenKind::Error)
    advance();
  return expectNewline();
}

bool Parser::parseFile() {
  while (!failed() && current.kind != TokenKind::End) {
    if (is("import")) {
      parseImport();
    } else if (is("class")) {
      if (const ClassDef *parsed = parseClass())
        if (!file.classes.try_emplace(parsed->name, parsed).second)
          fail(parsed->at, "the class \"" + parsed->name + "\" is there twice");
    } else if (is("def")) {
      if (const Function *parsed = parseFunction())
        if (!file.functions.try_emplace(parsed->name, parsed).second)
          fail(parsed->at, "the function \"" + parsed->name + "\" is there twice");
    } else if (is("op_version_set")) {
      parseImport(); // of PyTorch 1.2
    } else {
      failHere("a class or a function");
    }
  }
  return !failed();
}

} // namespace

Expected<std::unique_ptr<SourceFile>> tc::torchscript::parseSource(std::string path, std::string text) {
  auto file = std::make_unique<SourceFile>();
  file->path = std::move(path);
  file->text = std::move(text);
  Parser parser(*file);
  if (!parser.parseFile())
    return createStringError(file->path + ":" + Twine(parser.position().line) + ":" + Twine(parser.position().column) +
                             ": " + parser.message());
  return file;
}
