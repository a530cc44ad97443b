//===- Parser.cpp - tests of the reader of TorchScript's code -----------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Frontend/TorchScript/Syntax.h"

#include <catch2/catch.hpp>

#include <random>

using namespace tc::torchscript;

static std::unique_ptr<SourceFile> parse(const std::string &text) {
  llvm::Expected<std::unique_ptr<SourceFile>> file = parseSource("code/a.py", text);
  if (file)
    return std::move(*file);
  FAIL(llvm::toString(file.takeError()));
  return nullptr;
}

static std::string error(const std::string &text) {
  llvm::Expected<std::unique_ptr<SourceFile>> file = parseSource("code/a.py", text);
  return file ? "" : llvm::toString(file.takeError());
}

/// The expression of `def f(): return ...`.
static const Expr *expression(SourceFile &file) { return file.functions.lookup("f")->body.back()->value; }
static std::string returning(const std::string &text) { return "def f() -> int:\n  return " + text + "\n"; }
static std::string repeat(const std::string &text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i)
    all += text;
  return all;
}

TEST_CASE("classes, fields and methods of a module") {
  auto file = parse(R"(class Net(Module):
  __parameters__ = ["weight", ]
  __buffers__ = []
  __annotations__ = []
  __annotations__["0"] = __torch__.torch.nn.Linear
  weight : Tensor
  eps : Final[float] = 1.0000000000000001e-05
  def forward(self: __torch__.Net,
    x: Tensor,
    n: int=3) -> Tensor:
    # a comment
    a, b, = x
    for i in range(n):
      if torch.gt(i, 1):
        pass
      else:
        ops.prim.RaiseException("no: \"x\"\n", "builtins.ValueError")
    return (self).other(x[0:1], y=[1, -2, ], )
)");
  const ClassDef *net = file->classes.lookup("Net");
  REQUIRE(net);
  CHECK(net->base == "Module");
  REQUIRE(net->fields.size() == 3);
  CHECK(net->fields[0].name == "0");
  CHECK(net->fields[2].value->number == 1e-05);
  const Function *forward = net->findMethod("forward");
  REQUIRE(forward);
  REQUIRE(forward->parameters.size() == 3);
  CHECK(forward->parameters[2].defaultValue->integer == 3);
  REQUIRE(forward->body.size() == 3);
  CHECK(forward->body[0]->isUnpacking);
  CHECK(forward->body[1]->kind == StmtKind::For);
  const Stmt *branch = forward->body[1]->body[0];
  CHECK(branch->otherwise[0]->value->operands[1]->text == "no: \"x\"\n");
  const Expr *call = forward->body[2]->value;
  REQUIRE(call->keywords.size() == 1);
  CHECK(call->at.line == 18);
  CHECK(call->operands[1]->operands[1]->kind == ExprKind::Slice);
  CHECK(call->operands[2]->operands[1]->integer == -2);
}

TEST_CASE("numbers and strings") {
  auto number = [](const std::string &text) { return expression(*parse(returning(text)))->integer; };
  CHECK(number("-9223372036854775808") == INT64_MIN);
  CHECK(number("9223372036854775807") == INT64_MAX);
  CHECK(error(returning("9223372036854775808")) == "code/a.py:2:10: this number does not fit 64 bits");
  CHECK(error(returning("99999999999999999999")) == "code/a.py:2:10: this number does not fit 64 bits");
  CHECK(error(returning("1a")) == "code/a.py:2:10: a number ends in letters");
  auto file = parse(returning(R"("\303\244\x41\\\t'")"));
  CHECK(expression(*file)->text == "\xc3\xa4"
                                   "A\\\t'");
  CHECK(error(returning("\"abc")) == "code/a.py:2:10: this string does not end");
  CHECK(error(returning("\"\\q\"")) == "code/a.py:2:10: this string holds an escape that has no meaning");
  CHECK(error(returning("\"\\777\"")) == "code/a.py:2:10: this string holds an escape above 255");
}

TEST_CASE("operators bind as in Python") {
  auto file = parse(returning("1 + 2 * -3 ** 2 if not a and b else c"));
  const Expr *choice = expression(*file);
  REQUIRE(choice->kind == ExprKind::Ternary);
  CHECK(choice->operands[0]->text == "and");
  const Expr *product = choice->operands[1]->operands[1];
  CHECK(product->text == "*");
  CHECK(product->operands[1]->text == "-");
  CHECK(product->operands[1]->operands[0]->text == "**");
}

TEST_CASE("what is no code is refused with its place") {
  CHECK(error("x = 1\n") == "code/a.py:1:1: a class or a function is expected here, but \"x\" follows");
  CHECK(error("def f(:\n") == "code/a.py:1:7: a name is expected here, but \":\" follows");
  CHECK(error("def f() -> int:\nreturn 1\n") ==
        "code/a.py:2:1: an indented block is expected here, but \"return\" follows");
  CHECK(error("def f() -> int:\n  a = 1\n    b = 2\n") ==
        "code/a.py:3:5: an expression is expected here, but an indented line follows");
  CHECK(error("def f() -> int:\n    a = 1\n  b = 2\n") == "code/a.py:3:3: this line is indented as no line before it");
  CHECK(error("def f() -> int:\n\treturn 1\n") ==
        "code/a.py:2:1: a tab indents this line; TorchScript indents by spaces");
  CHECK(error(returning("a $ b")) == "code/a.py:2:12: this character has no meaning in TorchScript");
  CHECK(error(returning("lambda: 1")) ==
        "code/a.py:2:10: an expression of TorchScript is expected here, but \"lambda\" follows");
  CHECK(error(returning("f(a=1, 2)")) == "code/a.py:2:17: an argument without a name follows one with a name");
  CHECK(error("class A:\n  return 1\n") == "code/a.py:2:3: a class holds attributes and methods; this is neither");
  CHECK(error("class A:\n  pass\nclass A:\n  pass\n") == "code/a.py:3:7: the class \"A\" is there twice");
}

TEST_CASE("deep and long code neither overflows the stack nor takes long") {
  const char *const deep = "nest";
  CHECK(error(returning(repeat("(", 100000) + "1")).find(deep) != std::string::npos);
  CHECK(error(returning(repeat("[", 100000))).find(deep) != std::string::npos);
  CHECK(error(returning(repeat("-", 100000) + "a")).find(deep) != std::string::npos);
  CHECK(error(returning(repeat("not ", 100000) + "a")).find(deep) != std::string::npos);
  CHECK(error(returning("a" + repeat(".b", 100000))).find(deep) != std::string::npos);
  CHECK(error(returning("a" + repeat("(1)", 100000))).find(deep) != std::string::npos);
  CHECK(error(returning("a" + repeat(" + a", 100000))).find(deep) != std::string::npos);
  CHECK(error(returning("a" + repeat(" if a else a", 100000))).find(deep) != std::string::npos);
  std::string blocks = "def f() -> int:\n";
  for (int i = 1; i < 3000; ++i)
    blocks += std::string(i, ' ') + "if a:\n";
  CHECK(error(blocks).find(deep) != std::string::npos);
  std::string chain = "def f() -> int:\n  if a:\n    pass\n" + repeat("  elif a:\n    pass\n", 100000);
  CHECK(error(chain).find(deep) != std::string::npos);
  auto file = parse(returning("[" + repeat("1, ", 100000) + "]"));
  CHECK(expression(*file)->operands.size() == 100000);
  CHECK(parse("def f() -> int:\n" + repeat("  a = b\n", 100000))->functions.lookup("f")->body.size() == 100000);
}

TEST_CASE("changed code does no harm") {
  const std::string text = "class A(Module):\n  x : List[int]\n  def f(self, y: Tensor=1.5) -> Tuple[int, int]:\n"
                           "    a, = torch.f(y, [1, 2], \"s\\n\", k=-1)\n    while a:\n      a = b if c else d[1:2]\n"
                           "    return (a, {1: 2})\n";
  std::mt19937 random(0);
  const std::string other = "()[]{}:,.\n \"'\\=-+*#0aE\t\x80";
  for (int i = 0; i < 20000; ++i) {
    std::string changed = text;
    for (int k = 0; k < 3; ++k) {
      size_t at = random() % changed.size();
      if (random() % 3 == 0)
        changed.erase(at, 1 + random() % 9);
      else
        changed[at] = other[random() % other.size()];
      if (changed.empty())
        changed = "a";
    }
    error(changed);
  }
}
