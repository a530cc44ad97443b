//===- Layouts.cpp - strides of a program's example ---------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Layouts.h"

#include "Archive.h"

#include "tc/Dialect/Graph/IR/Layouts.h"

using namespace mlir;
using namespace tc;
using namespace tc::exported;
using nlohmann::json;

namespace {

/// An integer, or what a symbolic one was in the example.
std::optional<int64_t> exampleOf(const json &value) {
  if (std::optional<int64_t> constant = integer(member(value, "as_int")))
    return constant;
  const json *expr = member(value, "as_expr"), *hint = expr ? member(*expr, "hint") : nullptr;
  return hint ? integer(member(*hint, "as_int")) : std::nullopt;
}

std::optional<SmallVector<int64_t>> listOf(const json &meta, const char *name) {
  const json *list = member(meta, name);
  if (!list || !list->is_array())
    return std::nullopt;
  SmallVector<int64_t> all;
  for (const json &entry : *list) {
    std::optional<int64_t> value = exampleOf(entry);
    if (!value)
      return std::nullopt;
    all.push_back(*value);
  }
  return all;
}

struct Example {
  bool isStrided;
  Attribute attribute;
};

Example exampleLayout(Builder b, const json *meta) {
  if (!meta)
    return {false, b.getUnitAttr()};
  auto sizes = listOf(*meta, "sizes"), strides = listOf(*meta, "strides");
  if (!sizes || !strides || sizes->size() != strides->size())
    return {true, b.getStringAttr(graph::kUnknownLayout)};
  return {!graph::isRowMajor(*sizes, *strides), graph::makeLayoutEntry(b, *sizes, *strides)};
}

} // namespace

void Layouts::describe(Operation *op, ArrayRef<const json *> metas) {
  Builder b(op->getContext());
  bool wanted = llvm::any_of(op->getOperands(), [&](Value operand) { return strided.contains(operand); });
  SmallVector<Attribute> all;
  for (auto [meta, result] : llvm::zip(metas, op->getResults())) {
    Example example = exampleLayout(b, meta);
    if (example.isStrided)
      strided.insert(result);
    wanted |= example.isStrided;
    all.push_back(example.attribute);
  }
  if (wanted)
    op->setAttr(graph::kLayoutsAttr, b.getArrayAttr(all));
}

void Layouts::describe(BlockArgument argument, const json *meta) {
  if (!exampleLayout(Builder(argument.getContext()), meta).isStrided)
    return;
  strided.insert(argument);
  arguments.push_back(argument.getArgNumber());
}

void Layouts::describe(graph::FuncOp function) {
  function->setAttr(graph::kLayoutsAttr, DenseI64ArrayAttr::get(function.getContext(), arguments));
}
