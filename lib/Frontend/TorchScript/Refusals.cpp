//===- Refusals.cpp - what tc lacks, all of it in one run ---------------------------------------------------------===//
//
// What a model needs and tc lacks becomes a node that the conversion refuses, and the code goes on with values that are
// not known: a tensor of a node that has no type. Statements that fail because of one are passed over, and what follows
// only from such values is not said.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Archive.h"
#include "Interpreter.h"

#include "tc/Dialect/Graph/IR/Graph.h"
#include "tc/Dialect/Graph/IR/Source.h"
#include "tc/Dialect/TC/IR/TC.h"

using namespace mlir;
using namespace tc;
using namespace tc::torchscript;
using llvm::StringRef;
using llvm::Twine;

/// The innermost line that is not PyTorch's own: what the user wrote.
std::optional<SourceLine> Interpreter::findLine(Position at) {
  std::optional<SourceLine> innermost;
  for (const Frame *f = frame; f; at = f->calledAt, f = f->caller) {
    std::optional<SourceLine> line = archive.findLine(*f->file, at);
    if (line && !line->isOfTorch)
      return line;
    if (!innermost)
      innermost = line;
  }
  return innermost;
}

Operation *Interpreter::makeRefused(StringRef domain, StringRef type, Values args, size_t results, Position at) {
  steps += 20;
  llvm::SmallVector<mlir::Value> operands;
  for (const PyValue &arg : args)
    if (arg.graph)
      operands.push_back(arg.graph);
  llvm::SmallVector<Type> types(results, base::UnknownType::get(builder.getContext()));
  auto node = graph::NodeOp::create(builder, locationOf(type, at), domain, type, 1, types, operands);
  unknowns.insert(node.getOutputs().begin(), node.getOutputs().end());
  return node;
}

PyValue Interpreter::makeUnknown(Position at, StringRef what) {
  Operation *node = makeRefused("prim", what, {}, 1, at);
  node->setAttr(graph::kUnknownAttr, builder.getStringAttr(firstRefusal));
  return PyValue::ofGraph(Kind::Tensor, node->getResult(0));
}

PyValue Interpreter::makeUnknownResults(Position at) {
  std::optional<int64_t> count = countOfUnpacking(at);
  if (!count)
    return makeUnknown(at);
  std::vector<PyValue> items;
  for (int64_t i = 0; i < *count; ++i)
    items.push_back(makeUnknown(at));
  return makeTuple(std::move(items));
}

bool Interpreter::isUnknown(const PyValue &value) {
  if (!value.graph || !hasRefused)
    return false;
  if (unknowns.contains(value.graph))
    return true;
  llvm::Expected<RankedTensorType> type = oracle ? oracle->getType(value.graph) : RankedTensorType();
  if (type)
    return false;
  llvm::consumeError(type.takeError());
  unknowns.insert(value.graph);
  return true;
}

void Interpreter::spreadUnknown(Operation *node) {
  if (!unknowns.empty() && llvm::any_of(node->getOperands(), [&](mlir::Value v) { return unknowns.contains(v); }))
    unknowns.insert(node->result_begin(), node->result_end());
}

void Interpreter::beginRefusing(const Twine &why) {
  if (!std::exchange(hasRefused, true))
    firstRefusal = why.str();
}

std::nullopt_t Interpreter::loseType(const PyValue &tensor, Position at, const Twine &why) {
  unknowns.insert(tensor.graph);
  if (!hasRefused) {
    beginRefusing(why);
    makeUnknown(at, "type");
  }
  return fail(at, why);
}

std::nullopt_t Interpreter::refuse(StringRef construct, Position at, const Twine &what, Values causes) {
  const bool isSaid = llvm::none_of(causes, [&](const PyValue &value) { return isUnknown(value); });
  if (isSaid && !isFatal) {
    makeRefused("prim", construct, {}, 0, at)->setAttr(graph::kRefusedAttr, builder.getStringAttr(what));
    beginRefusing(what);
  }
  return fail(at, what);
}

Result Interpreter::refuseCall(StringRef name, Values args, Position at, const Twine &reason) {
  auto [domain, type] = name.split("::");
  std::optional<int64_t> count = countOfUnpacking(at);
  Operation *node = makeRefused(domain, type, args, size_t(count.value_or(1)), at);
  node->setAttr(graph::kRefusedAttr, builder.getStringAttr(reason));
  beginRefusing(name + " is not supported");
  std::vector<PyValue> results;
  for (mlir::Value result : node->getResults())
    results.push_back(PyValue::ofGraph(Kind::Tensor, result));
  return count ? makeTuple(std::move(results)) : results[0];
}

std::nullopt_t Interpreter::refuseObject(const PyValue &object, Position at) {
  return refuse("CallMethod", at,
                "the model uses \"" + object.held->path + "\", an object of the C++ class " + object.held->text +
                    ", whose code is not in the archive; export the model without it, quantised ones by PT2E for "
                    "torch.export");
}

bool Interpreter::recover() {
  if (!hasRefused || isFatal || !raised.empty())
    return false;
  error.clear();
  return true;
}

void Interpreter::forget(const Expr &target, Position at) {
  if (target.kind == ExprKind::Name)
    frame->locals[target.text] = makeUnknown(at);
  else if (target.kind == ExprKind::Tuple || target.kind == ExprKind::List)
    for (const Expr *part : target.operands)
      forget(*part, at);
}

void Interpreter::forget(Body block) {
  for (const Stmt *stmt : block) {
    for (const Expr *target : stmt->targets)
      if (stmt->kind != StmtKind::Delete)
        forget(*target, stmt->at);
    forget(stmt->body);
    forget(stmt->otherwise);
  }
}

Interpreter::Flow Interpreter::skip(const Stmt &stmt) {
  for (const Expr *target : stmt.targets)
    if (stmt.kind != StmtKind::Delete)
      forget(*target, stmt.at);
  if (isRaise(stmt))
    return raise(stmt.at, "an exception"), Flow::Raised;
  switch (stmt.kind) {
  case StmtKind::Define:
    if (stmt.function)
      frame->locals[stmt.function->name] = makeUnknown(stmt.at);
    return Flow::Next;
  case StmtKind::Return:
    frame->returned = makeUnknown(stmt.at);
    return Flow::Return;
  case StmtKind::For:
  case StmtKind::While:
  case StmtKind::With:
    // Once, for what it lacks in turn.
    if (runBlock(stmt.body) == Flow::Failed)
      return Flow::Failed;
    raised.clear();
    forget(stmt.body);
    return Flow::Next;
  case StmtKind::If:
    forget(stmt.body);
    forget(stmt.otherwise);
    return Flow::Next;
  default:
    return Flow::Next;
  }
}
