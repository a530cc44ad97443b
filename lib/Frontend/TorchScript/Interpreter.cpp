//===- Interpreter.cpp - statements and calls of TorchScript's code -----------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Interpreter.h"

#include "Archive.h"

#include "tc/Dialect/Graph/IR/Graph.h"
#include "tc/Dialect/TC/IR/TC.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace tc;
using namespace tc::torchscript;
using llvm::StringRef;
using llvm::Twine;

/// Statements, operators and turns of loops that a model may take to import. The largest that were seen take 10^5.
constexpr uint64_t kMaxSteps = 5'000'000;
/// Values and characters that operators on lists, dicts and strings go through. What they make lasts as long as the
/// interpreter, so this bounds memory, too.
constexpr uint64_t kMaxValuesRead = 30'000'000;
/// Expressions, statements and calls around each other, which bounds the stack.
constexpr int kMaxNesting = 2000;

//===--- values ---------------------------------------------------------------------------------------------------===//

Held *Interpreter::newHeld() {
  pool.emplace_back();
  pool.back().birth = pool.size();
  return &pool.back();
}

PyValue Interpreter::makeString(StringRef text) {
  Held *held = newHeld();
  held->text = text.str();
  return PyValue::ofHeld(Kind::String, held);
}

Result Interpreter::makeText(StringRef text, Position at) {
  if (text.size() > kMaxText)
    return fail(at, "a string of more than " + Twine(kMaxText) + " characters is made; make it shorter");
  return spendValues(text.size() / 16, at) ? Result(makeString(text)) : std::nullopt;
}

PyValue Interpreter::makeDevice(StringRef text) {
  PyValue value = makeString(text);
  value.kind = Kind::Device;
  return value;
}

PyValue Interpreter::makeList(std::vector<PyValue> items, StringRef elementType) {
  Held *held = newHeld();
  held->items = std::move(items);
  held->text = elementType.str();
  return PyValue::ofHeld(Kind::List, held);
}

PyValue Interpreter::makeTuple(std::vector<PyValue> items) {
  Held *held = newHeld();
  held->items = std::move(items);
  return PyValue::ofHeld(Kind::Tuple, held);
}

//===--- errors ---------------------------------------------------------------------------------------------------===//

std::nullopt_t Interpreter::fail(Position at, const Twine &what) {
  if (!error.empty())
    return std::nullopt;
  if (frame) {
    error = frame->file->path + ":" + std::to_string(at.line) + ":" + std::to_string(at.column);
    if (std::optional<SourceLine> line = findLine(at))
      error += " (" + line->file.str() + ":" + std::to_string(line->line) + ")";
    error += ": ";
    // The module whose method it is, from here outwards.
    for (const Frame *f = frame; f; f = f->caller)
      if (f->self && !f->self->path.empty()) {
        error += "in module \"" + f->self->path + "\": ";
        break;
      }
  }
  error += what.str();
  return std::nullopt;
}

std::nullopt_t Interpreter::raise(Position at, const Twine &what) {
  if (raised.empty())
    raised = what.isTriviallyEmpty() || what.str().empty() ? "an exception" : what.str();
  if (frame)
    frame->at = at;
  return std::nullopt;
}

bool Interpreter::spend(Position at) {
  if (++steps <= kMaxSteps)
    return true;
  failFinally(at,
              "the code runs for more than " + Twine(kMaxSteps) +
                  " steps, as all loops are unrolled; make its loops shorter, or write them as operators on tensors");
  return false;
}

bool Interpreter::spendValues(uint64_t count, Position at) {
  valuesRead += std::min(count, kMaxValuesRead + 1);
  if (valuesRead <= kMaxValuesRead)
    return true;
  failFinally(at, "the code copies and searches more than " + Twine(kMaxValuesRead) +
                      " values of lists, dicts and strings; make its loops shorter, or use tensors");
  return false;
}

bool Interpreter::spendValues(Values args, Position at) {
  uint64_t count = 0;
  for (const PyValue &value : args)
    if (value.is(Kind::List) || value.is(Kind::Tuple) || value.is(Kind::Dict))
      count += value.held->items.size();
    else if (value.is(Kind::String))
      count += value.held->text.size() / 16;
  return spendValues(count, at);
}

bool Interpreter::mayChange(const Held *held, Position at) {
  if (held->birth <= frozenBirth && held->attributes.empty()) {
    refuse("SetAttr", at,
           "the model changes a list or dict that is one of its attributes, which would last from one run to the next "
           "and is not supported; change a copy");
    return false;
  }
  if (held->birth >= branchBirth)
    return true;
  refuse("If", at,
         "a list or object is changed in a branch that only the data of a run decide; compute the branch's results as "
         "tensors");
  return false;
}

//===--- calls ----------------------------------------------------------------------------------------------------===//

Result Interpreter::callMethod(const PyValue &object, StringRef method, Values args, NamedValues named, Position at) {
  if (object.is(Kind::Object) && !object.held->type)
    return refuseObject(object, at);
  if (!object.is(Kind::Object))
    return fail(at, "a method is called of " + describe(object));
  const Function *function = object.held->type->findMethod(method);
  if (!function)
    return fail(at, "the class " + object.held->type->name + " has no method \"" + method + "\"");
  return callFunction(*object.held->file, *function, &object, args, named, at);
}

Result Interpreter::callFunction(const SourceFile &file, const Function &function, const PyValue *self, Values args,
                                 NamedValues named, Position at) {
  if (++calls > kMaxNesting / 4 || depth > kMaxNesting) {
    --calls;
    return failFinally(at, "calls nest too deeply; the code of a model calls itself without end, or is damaged");
  }
  auto leave = llvm::make_scope_exit([&] { --calls; });
  Frame inner;
  inner.file = &file;
  inner.function = &function;
  inner.caller = frame;
  inner.calledAt = at;
  std::vector<PyValue> all;
  if (self) {
    all.push_back(*self);
    inner.self = self->held;
  } else if (frame) {
    inner.self = frame->self;
  }
  all.insert(all.end(), args.begin(), args.end());
  if (all.size() > function.parameters.size())
    return fail(at, "\"" + function.name + "\" takes " + Twine(function.parameters.size()) + " arguments, but gets " +
                        Twine(all.size()));
  for (size_t i = 0; i < function.parameters.size(); ++i) {
    const Parameter &parameter = function.parameters[i];
    if (i < all.size()) {
      inner.locals[parameter.name] = all[i];
      continue;
    }
    auto given = llvm::find_if(named, [&](const NamedValue &n) { return n.name == parameter.name; });
    if (given != named.end()) {
      inner.locals[parameter.name] = given->value;
    } else if (parameter.defaultValue) {
      Frame *outer = std::exchange(frame, &inner);
      Result value = eval(*parameter.defaultValue);
      frame = outer;
      if (!value)
        return std::nullopt;
      inner.locals[parameter.name] = *value;
    } else {
      return fail(at, "\"" + function.name + "\" gets no argument \"" + parameter.name + "\"");
    }
  }
  Frame *outer = std::exchange(frame, &inner);
  Flow flow = runBlock(function.body);
  Result result;
  if (flow == Flow::Next || flow == Flow::Return) {
    result = inner.returned;
    // What the signature says of a result holds, too: `-> int` of a tensor is the number in it.
    if (function.returnType && result)
      result = convertTo(*function.returnType, *result, at);
  } else if (flow == Flow::Break || flow == Flow::Continue) {
    fail(function.at, "break or continue stands outside of a loop; the archive is damaged");
  } else if (flow == Flow::Raised && outer) {
    outer->at = at;
  }
  if (flow == Flow::Raised && !outer)
    fail(inner.at, "the model raises an exception for these inputs: " + Twine(raised) +
                       "; give other sizes with --shape, or correct the model");
  frame = outer;
  return result;
}

//===--- statements -----------------------------------------------------------------------------------------------===//

Interpreter::Flow Interpreter::runBlock(Body block) {
  if (++depth > kMaxNesting) {
    --depth;
    failFinally(block.empty() ? Position() : block.front()->at, "the code nests too deeply");
    return Flow::Failed;
  }
  auto leave = llvm::make_scope_exit([&] { --depth; });
  for (const Stmt *stmt : block) {
    Flow flow = spend(stmt->at) ? run(*stmt) : Flow::Failed;
    if (flow != Flow::Next)
      return flow;
  }
  return Flow::Next;
}

/// Whether two values are the same, or lists of the same.
static bool holdsSame(const PyValue &a, const PyValue &b) {
  if (a.kind != b.kind || (!a.is(Kind::List) && !a.is(Kind::Tuple)))
    return isSame(a, b);
  return llvm::equal(a.held->items, b.held->items, isSame);
}

bool Interpreter::assign(const Expr &target, const PyValue &value) {
  switch (target.kind) {
  case ExprKind::Name:
    frame->locals[target.text] = value;
    return true;
  case ExprKind::Attribute: {
    Result base = eval(*target.operands[0]);
    if (!base)
      return false;
    if (!base->is(Kind::Object)) {
      fail(target.at, "an attribute of " + describe(*base) + " is set, which has none");
      return false;
    }
    if (!mayChange(base->held, target.at))
      return false;
    if (base->held->birth <= frozenBirth) {
      auto old = base->held->attributes.find(target.text);
      if (old != base->held->attributes.end() && holdsSame(old->second, value))
        return true;
      // What this run has not read before it sets it is a place for notes, and nothing that lasts.
      if (old != base->held->attributes.end() && !readBeforeSet.contains({base->held, old->first})) {
        old->second = value;
        setByRun.insert({base->held, old->first});
        return true;
      }
      if (old != base->held->attributes.end() && setKept(base->held, old->first, old->second, value)) {
        setByRun.insert({base->held, old->first});
        return true;
      }
      refuse("SetAttr", target.at,
             "the model keeps a value in its attribute \"" + target.text +
                 "\" from one run to the next, which is supported of numbers and of tensors whose size stays; "
                 "give it back as an output",
             value);
      return false;
    }
    base->held->attributes[keepText(target.text)] = value;
    return true;
  }
  case ExprKind::Subscript: {
    Result base = eval(*target.operands[0]);
    if (!base)
      return false;
    if (target.operands.size() != 2) {
      fail(target.at, "several indices are set at once");
      return false;
    }
    Result index = eval(*target.operands[1]);
    return index && setItem(*base, *index, value, target.at);
  }
  case ExprKind::Tuple:
  case ExprKind::List:
    return assignAll(target.operands, true, value, target.at);
  default:
    fail(target.at, "this cannot be assigned to");
    return false;
  }
}

bool Interpreter::assignAll(llvm::ArrayRef<const Expr *> targets, bool isUnpacking, const PyValue &value, Position at) {
  if (!isUnpacking)
    return assign(*targets[0], value);
  if (!value.is(Kind::List) && !value.is(Kind::Tuple)) {
    fail(at, describe(value) + " is unpacked, which holds no values");
    return false;
  }
  if (value.held->items.size() != targets.size()) {
    fail(at, Twine(targets.size()) + " values are expected here, but there are " + Twine(value.held->items.size()));
    return false;
  }
  std::vector<PyValue> items = value.held->items; // as a target may be the list itself
  for (auto [target, item] : llvm::zip_equal(targets, items))
    if (!assign(*target, item))
      return false;
  return true;
}

std::optional<int64_t> Interpreter::countOfUnpacking(Position at) const {
  if (!unpacked || unpacked->value->at.line != at.line || unpacked->value->at.column != at.column)
    return std::nullopt;
  return int64_t(unpacked->targets.size());
}

Interpreter::Flow Interpreter::run(const Stmt &stmt) {
  const Flow flow = runStatement(stmt);
  return flow == Flow::Failed && recover() ? skip(stmt) : flow;
}

Interpreter::Flow Interpreter::runStatement(const Stmt &stmt) {
  frame->at = stmt.at;
  switch (stmt.kind) {
  case StmtKind::Assign: {
    if (!stmt.value)
      return Flow::Next; // `x : int` declares
    unpacked = stmt.isUnpacking ? &stmt : nullptr;
    Result value = eval(*stmt.value);
    unpacked = nullptr;
    if (value && stmt.type)
      value = convertTo(*stmt.type, *value, stmt.at);
    if (!value)
      return failed();
    return assignAll(stmt.targets, stmt.isUnpacking, *value, stmt.at) ? Flow::Next : failed();
  }
  case StmtKind::Augmented: {
    Result left = eval(*stmt.targets[0]);
    Result right = left ? eval(*stmt.value) : left;
    if (!right)
      return failed();
    StringRef op = llvm::StringSwitch<StringRef>(stmt.text)
                       .Case("+=", "add")
                       .Case("-=", "sub")
                       .Case("*=", "mul")
                       .Case("/=", "div")
                       .Case("//=", "floordiv")
                       .Case("%=", "remainder")
                       .Default("");
    if (op.empty())
      return fail(stmt.at, "\"" + stmt.text + "\" is not read"), Flow::Failed;
    Result value = left->isTensor() ? callATen((op + "_").str(), {*left, *right}, {}, stmt.at)
                                    : callOperator(("aten::" + op).str(), {*left, *right}, {}, stmt.at);
    return value && assign(*stmt.targets[0], *value) ? Flow::Next : failed();
  }
  case StmtKind::Expression:
    return eval(*stmt.value) ? Flow::Next : failed();
  case StmtKind::If:
    return runIf(stmt);
  case StmtKind::For:
    return runFor(stmt);
  case StmtKind::While:
    return runWhile(stmt);
  case StmtKind::Return: {
    if (stmt.value) {
      Result value = eval(*stmt.value);
      if (!value)
        return failed();
      frame->returned = *value;
    }
    return Flow::Return;
  }
  case StmtKind::Raise: {
    raise(stmt.at, stmt.value && stmt.value->kind == ExprKind::String ? stmt.value->text : StringRef("an exception"));
    return Flow::Raised;
  }
  case StmtKind::Assert: {
    Result condition = eval(*stmt.value);
    if (!condition)
      return failed();
    std::string text = "an assertion does not hold";
    if (stmt.message && stmt.message->kind == ExprKind::String)
      text = stmt.message->text.str();
    PyValue unknown;
    std::optional<bool> holds = truth(*condition, stmt.at, &unknown);
    if (hasFailed())
      return Flow::Failed;
    if (!holds)
      emitAssert(unknown, text, stmt.at);
    else if (!*holds)
      raise(stmt.at, text);
    return raised.empty() ? Flow::Next : Flow::Raised;
  }
  case StmtKind::With: {
    // Modes such as no_grad change no value; anything else is an object with code around the block.
    Result context = eval(*stmt.value);
    if (!context)
      return failed();
    if (!context->is(Kind::Object) || !context->held->type)
      return fail(stmt.at, "with needs an object"), Flow::Failed;
    Result entered = context->held->type->findMethod("__enter__") ? callMethod(*context, "__enter__", {}, {}, stmt.at)
                                                                  : Result(PyValue());
    if (!entered)
      return failed();
    if (!stmt.targets.empty() && !assign(*stmt.targets[0], *entered))
      return failed();
    Flow flow = runBlock(stmt.body);
    if ((flow == Flow::Next || flow == Flow::Return) && context->held->type->findMethod("__exit__"))
      if (!callMethod(*context, "__exit__", {PyValue(), PyValue(), PyValue()}, {}, stmt.at))
        return failed();
    return flow;
  }
  case StmtKind::Define:
    return refuse("fork", stmt.at,
                  "the model defines a function within a function, as torch.jit.fork does, which is not supported; "
                  "call the function without fork"),
           Flow::Failed;
  case StmtKind::Pass:
    return Flow::Next;
  case StmtKind::Break:
    return Flow::Break;
  case StmtKind::Continue:
    return Flow::Continue;
  case StmtKind::Delete:
    for (const Expr *target : stmt.targets) {
      if (target->kind == ExprKind::Name) {
        frame->locals.erase(target->text);
        continue;
      }
      Result base = target->kind == ExprKind::Subscript ? eval(*target->operands[0]) : std::nullopt;
      Result index = base ? eval(*target->operands[1]) : base;
      if (!index || !callOperator("aten::Delete", {*base, *index}, {}, stmt.at))
        return failed();
    }
    return Flow::Next;
  }
  llvm_unreachable("all kinds are handled");
}

/// The truth of a value; nullopt where only a run knows, and `unknown` is a symbolic bool then.
std::optional<bool> Interpreter::truth(const PyValue &value, Position at, PyValue *unknown) {
  PyValue known = resolve(value);
  if (known.isNone())
    return false;
  if (known.isNumber())
    return known.asDouble() != 0;
  if (known.is(Kind::List) || known.is(Kind::Tuple) || known.is(Kind::Dict))
    return !known.held->items.empty();
  if (known.is(Kind::String))
    return !known.held->text.empty();
  if (known.isTensor() || known.isSymbolic()) {
    Result number;
    if (known.is(Kind::SymBool))
      number = known;
    else if (known.isTensor())
      number = toNumber(known, Kind::SymBool, at);
    else
      number = callSymbolic("ne", {known, PyValue::ofInt(0)}, Kind::SymBool, at);
    if (number && number->isNumber())
      return number->asDouble() != 0;
    if (number)
      *unknown = *number;
    return std::nullopt;
  }
  fail(at, "the truth of " + describe(value) + " is asked for");
  return std::nullopt;
}

Interpreter::Flow Interpreter::runIf(const Stmt &stmt) {
  Result condition = eval(*stmt.value);
  if (!condition && !recover())
    return failed();
  PyValue unknown;
  std::optional<bool> taken = condition ? truth(*condition, stmt.at, &unknown) : std::nullopt;
  if (hasFailed() && !recover())
    return Flow::Failed;
  if (taken)
    return runBlock(*taken ? stmt.body : stmt.otherwise);
  if (!unknown.graph && !recover())
    return failed();
  return runBranches(stmt, unknown.graph ? unknown : PyValue::ofGraph(Kind::SymBool, makeUnknown(stmt.at).graph));
}

bool tc::torchscript::isRaise(const Stmt &stmt) {
  if (stmt.kind == StmtKind::Raise)
    return true;
  const Expr *call = stmt.kind == StmtKind::Expression ? stmt.value : nullptr;
  return call && call->kind == ExprKind::Call && call->operands[0]->kind == ExprKind::Attribute &&
         call->operands[0]->text == "RaiseException";
}

/// Whether a block does nothing but raise.
static bool raisesOnly(Body block) { return !block.empty() && isRaise(*block.back()); }

Interpreter::Flow Interpreter::runBranches(const Stmt &stmt, const PyValue &condition) {
  // A branch that raises is a check, and the other one goes on.
  Body blocks[2] = {stmt.body, stmt.otherwise};
  auto check = [&](int which) {
    PyValue holds = condition;
    if (which == 0) {
      Result inverse = logicalNot(condition, stmt.at);
      if (!inverse)
        return Flow::Failed;
      holds = *inverse;
    }
    emitAssert(holds, std::exchange(raised, ""), stmt.at);
    return runBlock(blocks[1 - which]);
  };
  struct Branch {
    Region region;
    llvm::DenseMap<StringRef, PyValue> locals;
    Flow flow = Flow::Next;
  };
  Branch branches[2];
  auto leave = llvm::make_scope_exit([&] {
    for (Branch &branch : branches)
      discard(branch.region);
  });
  llvm::DenseMap<StringRef, PyValue> before = frame->locals;
  uint64_t outerBirth = branchBirth, firstBirth = pool.size() + 1;
  // First the one that raises at once, if any: the other one then needs no region.
  const int first = !raisesOnly(blocks[0]) && raisesOnly(blocks[1]);
  for (int which : {first, 1 - first}) {
    OpBuilder::InsertionGuard guard(builder);
    Branch &branch = branches[which];
    builder.createBlock(&branch.region);
    frame->locals = before;
    branchBirth = pool.size() + 1;
    auto sizesBefore = sizeNodes;
    branch.flow = runBlock(blocks[which]);
    sizeNodes = std::move(sizesBefore);
    branchBirth = outerBirth;
    branch.locals = std::move(frame->locals);
    frame->locals = before;
    if (branch.flow == Flow::Failed)
      return Flow::Failed;
    if (branch.flow == Flow::Raised)
      break;
  }
  for (int which : {0, 1})
    if (branches[which].flow == Flow::Raised)
      return check(which);
  using Make = std::function<PyValue(mlir::ValueRange)>;
  llvm::SmallVector<std::pair<StringRef, Make>> merged;
  llvm::SmallVector<mlir::Value> yields[2];
  auto makeIf = [&] {
    mlir::Location loc = locationOf("if", stmt.at);
    for (int which : {0, 1}) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToEnd(&branches[which].region.front());
      graph::YieldOp::create(builder, loc, yields[which]);
    }
    llvm::SmallVector<Type> types(yields[0].size(), base::UnknownType::get(builder.getContext()));
    auto node = graph::NodeOp::create(builder, loc, "ai.onnx", "If", 19, types, materialize(condition), {},
                                      {"then_branch", "else_branch"});
    node.getGraphs()[0].takeBody(branches[0].region);
    node.getGraphs()[1].takeBody(branches[1].region);
    spreadUnknown(node);
    for (auto &[name, make] : merged)
      frame->locals[name] = make(node.getOutputs());
  };
  if (branches[0].flow != Flow::Next || branches[1].flow != Flow::Next) {
    refuse("If", stmt.at,
           "a branch that only the data of a run decide leaves its function or loop; compute the results of both "
           "branches as tensors and choose with torch.where",
           condition);
    return makeIf(), Flow::Failed;
  }
  auto mergeLeaf = [&](const PyValue &a, const PyValue &b, Kind kind) -> Make {
    for (int which : {0, 1}) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToEnd(&branches[which].region.front());
      mlir::Value value = materialize(which == 0 ? a : b);
      if (!value)
        return nullptr;
      yields[which].push_back(value);
    }
    return [kind, i = yields[0].size() - 1](mlir::ValueRange outputs) { return PyValue::ofGraph(kind, outputs[i]); };
  };
  // Lists that a branch made are made anew from what both hold, once for all of their names.
  llvm::DenseMap<std::pair<Held *, Held *>, std::shared_ptr<Held *>> made;
  llvm::DenseMap<Held *, Held *> partners;
  constexpr int kMaxDepth = 16;
  std::function<Make(const PyValue &, const PyValue &, int)> merge = [&](const PyValue &a, const PyValue &b,
                                                                         int depth) -> Make {
    if (isSame(a, b) && !a.graph)
      return [a](mlir::ValueRange) { return a; };
    if (a.isScalar() && b.isScalar()) {
      PyValue sides[2] = {a, b};
      const bool isBool = (a.is(Kind::Bool) || a.is(Kind::SymBool)) && (b.is(Kind::Bool) || b.is(Kind::SymBool));
      const Kind kind = isBool ? Kind::SymBool : a.isIntLike() && b.isIntLike() ? Kind::SymInt : Kind::SymFloat;
      for (PyValue &side : sides)
        if (kind == Kind::SymFloat && side.isNumber())
          side = PyValue::ofFloat(side.asDouble());
      return mergeLeaf(sides[0], sides[1], kind);
    }
    if (a.isTensor() && b.isTensor() && !isQuantized(a) && !isQuantized(b))
      return mergeLeaf(a, b, Kind::Tensor);
    const bool isList = a.is(Kind::List) || a.is(Kind::Dict);
    if (a.kind != b.kind || !(isList || a.is(Kind::Tuple)) || depth == kMaxDepth ||
        a.held->items.size() != b.held->items.size() || a.held->keys.size() != b.held->keys.size() ||
        a.held->type != b.held->type)
      return nullptr;
    // One that was there before has other names, too; so has one that stands beside two of the other branch.
    for (auto [one, other] : {std::pair(a.held, b.held), std::pair(b.held, a.held)})
      if (isList && (one->birth < firstBirth || partners.try_emplace(one, other).first->second != other))
        return nullptr;
    for (auto [one, other] : llvm::zip(a.held->keys, b.held->keys))
      if (!isSame(one, other))
        return nullptr;
    auto &known = made[{a.held, b.held}];
    if (known)
      return [slot = known, kind = a.kind](mlir::ValueRange) { return PyValue::ofHeld(kind, *slot); };
    auto slot = std::make_shared<Held *>(nullptr);
    std::vector<Make> items;
    for (auto [one, other] : llvm::zip(a.held->items, b.held->items)) {
      items.push_back(merge(one, other, depth + 1));
      if (!items.back())
        return nullptr;
    }
    made[{a.held, b.held}] = slot;
    return [this, slot, items, kind = a.kind, like = a.held](mlir::ValueRange outputs) {
      Held *held = newHeld();
      held->text = like->text, held->type = like->type, held->file = like->file, held->keys = like->keys;
      for (const Make &item : items)
        held->items.push_back(item(outputs));
      return PyValue::ofHeld(kind, *slot = held);
    };
  };
  // Variables that both branches set; what one alone sets is not read afterwards.
  llvm::SmallVector<StringRef> names;
  for (auto &entry : branches[0].locals)
    if (branches[1].locals.count(entry.first))
      names.push_back(entry.first);
  llvm::sort(names);
  for (StringRef name : names) {
    PyValue a = branches[0].locals[name], b = branches[1].locals[name];
    auto old = before.find(name);
    if (old != before.end() && isSame(old->second, a) && isSame(old->second, b))
      continue;
    if (isSame(a, b) && !a.graph) {
      frame->locals[name] = a;
      continue;
    }
    if (a.is(Kind::Uninitialized) || b.is(Kind::Uninitialized)) {
      // Never read where it is not set.
      frame->locals[name] = a.is(Kind::Uninitialized) ? b : a;
      const PyValue &set = frame->locals[name];
      if (set.graph || (set.held && set.held->birth > outerBirth)) {
        refuse(
            "If", stmt.at,
            "\"" + name +
                "\" is set by one branch alone of a condition that only the data of a run decide; compute it in both",
            condition);
        return merged.clear(), yields[0].clear(), yields[1].clear(), makeIf(), Flow::Failed;
      }
      continue;
    }
    if (isQuantized(a) || isQuantized(b)) {
      refuse("If", stmt.at,
             "a branch that only the data of a run decide gives a quantised tensor, which is not supported; dequantise "
             "it in both branches",
             condition);
      return merged.clear(), yields[0].clear(), yields[1].clear(), makeIf(), Flow::Failed;
    }
    const size_t count = yields[0].size();
    auto madeBefore = made;
    Make make = merge(a, b, 0);
    if (hasFailed())
      return Flow::Failed;
    if (make) {
      merged.push_back({name, std::move(make)});
      continue;
    }
    made = std::move(madeBefore);
    for (auto &yielded : yields)
      yielded.truncate(count);
    // Temporaries of the branches, which have the same name by chance, stay unset.
    if (a.kind == b.kind || a.isNone() || b.isNone()) {
      PyValue later;
      later.kind = Kind::Uninitialized;
      frame->locals[name] = later;
    }
  }
  if (merged.empty() && branches[0].region.front().empty() && branches[1].region.front().empty())
    return Flow::Next;
  return makeIf(), Flow::Next;
}

void Interpreter::discard(Region &region) {
  if (region.empty())
    return;
  region.dropAllReferences();
  discarded.push_back(std::make_unique<Region>());
  discarded.back()->takeBody(region);
}

Interpreter::Flow Interpreter::runFor(const Stmt &stmt) {
  std::vector<PyValue> items;
  const Expr &source = *stmt.value;
  if (source.kind == ExprKind::Call && source.operands[0]->kind == ExprKind::Name &&
      source.operands[0]->text == "range") {
    int64_t bounds[3] = {0, 0, 1};
    size_t count = source.operands.size() - 1;
    if (count < 1 || count > 3)
      return fail(source.at, "range takes one to three numbers"), Flow::Failed;
    for (size_t i = 0; i < count; ++i) {
      Result bound = eval(*source.operands[i + 1]);
      if (!bound)
        return failed();
      if (bound->isTensor())
        bound = toNumber(*bound, Kind::SymInt, source.at);
      PyValue known = bound ? resolve(*bound) : PyValue();
      if (!known.is(Kind::Int) && !known.is(Kind::Bool))
        return refuse("Loop", source.at,
                      "a loop's number of turns depends on data or on a size that only a run knows; fix the size with "
                      "--shape or --dim, or write the loop as operators on tensors",
                      known),
               Flow::Failed;
      bounds[count == 1 ? 1 : i] = known.integer;
    }
    auto [begin, end, step] = bounds;
    if (step == 0)
      return fail(source.at, "the step of a range is 0"), Flow::Failed;
    for (int64_t i = begin; step > 0 ? i < end : i > end; i += step) {
      if (!spend(stmt.at) || !assign(*stmt.targets[0], PyValue::ofInt(i)))
        return Flow::Failed;
      Flow flow = runBlock(stmt.body);
      if (flow == Flow::Break)
        break;
      if (flow != Flow::Next && flow != Flow::Continue)
        return flow;
    }
    return Flow::Next;
  }
  Result list = eval(source);
  if (!list)
    return failed();
  if (list->is(Kind::Dict))
    items = list->held->keys;
  else if (list->is(Kind::List) || list->is(Kind::Tuple))
    items = list->held->items;
  else
    return fail(source.at, "a loop runs over " + describe(*list) + "; supported are ranges, lists and dicts"),
           Flow::Failed;
  for (const PyValue &item : items) {
    if (!spend(stmt.at) || !assignAll(stmt.targets, stmt.isUnpacking, item, stmt.at))
      return failed();
    Flow flow = runBlock(stmt.body);
    if (flow == Flow::Break)
      break;
    if (flow != Flow::Next && flow != Flow::Continue)
      return flow;
  }
  return Flow::Next;
}

Interpreter::Flow Interpreter::runWhile(const Stmt &stmt) {
  for (;;) {
    if (!spend(stmt.at))
      return Flow::Failed;
    Result condition = eval(*stmt.value);
    if (!condition)
      return failed();
    PyValue unknown;
    std::optional<bool> goesOn = truth(*condition, stmt.at, &unknown);
    if (hasFailed())
      return Flow::Failed;
    if (!goesOn)
      return refuse("Loop", stmt.at,
                    "a loop runs until data say so, or a size that only a run knows; fix the size with --shape or "
                    "--dim, or give the loop a fixed number of turns",
                    *condition),
             Flow::Failed;
    if (!*goesOn)
      return Flow::Next;
    Flow flow = runBlock(stmt.body);
    if (flow == Flow::Break)
      return Flow::Next;
    if (flow != Flow::Next && flow != Flow::Continue)
      return flow;
  }
}
