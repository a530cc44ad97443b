//===- FunctionEditor.cpp - inputs and outputs of a graph that changes --------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "FunctionEditor.h"

#include "tc/Dialect/Graph/IR/Layouts.h"
#include "tc/Dialect/Graph/IR/Signature.h"

#include "mlir/IR/SymbolTable.h"

using namespace mlir;
using namespace tc;
using namespace tc::reduce;

bool tc::reduce::canBeArgument(Type type) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return !isa<base::UnknownType>(tensor.getElementType());
  return isa<base::SeqType, base::OptType>(type);
}

FunctionEditor::FunctionEditor(graph::FuncOp function)
    : function(function), yield(cast<graph::YieldOp>(function.getBody().front().back())) {
  auto dictionary = [&](DictionaryAttr attrs) { return attrs ? attrs : DictionaryAttr::get(function.getContext()); };
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    argAttrs.push_back(dictionary(function.getArgAttrDict(i)));
    names.insert(function.getArgName(i));
  }
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    resAttrs.push_back(dictionary(function.getResultAttrDict(i)));
    names.insert(function.getResultName(i));
  }
}

DictionaryAttr FunctionEditor::makeName(StringRef stem) {
  std::string name;
  for (unsigned number = 0; name.empty() || !names.insert(name).second; ++number)
    name = (stem + Twine(number)).str();
  MLIRContext *context = function.getContext();
  return DictionaryAttr::get(
      context, NamedAttribute(StringAttr::get(context, graph::kNameAttr), StringAttr::get(context, name)));
}

Value FunctionEditor::addArgument(Type type, Location loc) {
  argAttrs.push_back(makeName("in_"));
  return function.getBody().front().addArgument(type, loc);
}

void FunctionEditor::addOutput(Value value) {
  resAttrs.push_back(makeName("out_"));
  yield->insertOperands(yield->getNumOperands(), value);
}

void FunctionEditor::eraseOutputs(const llvm::BitVector &erased) {
  yield->eraseOperands(erased);
  std::vector<DictionaryAttr> kept;
  for (auto [i, attrs] : llvm::enumerate(resAttrs))
    if (!erased[i])
      kept.push_back(attrs);
  resAttrs = std::move(kept);
}

static DictionaryAttr without(DictionaryAttr attrs, ArrayRef<StringRef> names) {
  NamedAttrList list(attrs);
  for (StringRef name : names)
    list.erase(name);
  return list.getDictionary(attrs.getContext());
}

void FunctionEditor::forgetOutputTypes() {
  for (DictionaryAttr &attrs : resAttrs)
    attrs = without(attrs, {graph::kDeclaredTypeAttr, graph::kDimsAttr});
}

bool FunctionEditor::finish() {
  Block &body = function.getBody().front();
  function.walk([](Operation *op) {
    if (isa<graph::ConstantOp, graph::NoneOp>(op) && op->use_empty())
      op->erase();
  });
  // Rows of these belong to arguments by their number.
  auto layouts = function->getAttrOfType<DenseI64ArrayAttr>(graph::kLayoutsAttr);
  llvm::BitVector unused(body.getNumArguments());
  SmallVector<int64_t> strided;
  int64_t kept = 0;
  for (BlockArgument argument : body.getArguments()) {
    const unsigned number = argument.getArgNumber();
    unused[number] = argument.use_empty();
    if (unused[number])
      continue;
    if (layouts && llvm::is_contained(layouts.asArrayRef(), int64_t(number)))
      strided.push_back(kept);
    ++kept;
  }
  if (layouts)
    function->setAttr(graph::kLayoutsAttr, DenseI64ArrayAttr::get(function.getContext(), strided));
  body.eraseArguments(unused);
  std::vector<Attribute> ofArguments;
  for (auto [i, attrs] : llvm::enumerate(argAttrs))
    if (!unused[i])
      // Its symbols are the dims of all inputs.
      ofArguments.push_back(unused.any() ? without(attrs, {graph::kSizesAttr}) : attrs);
  const std::vector<Attribute> ofResults(resAttrs.begin(), resAttrs.end());
  MLIRContext *context = function.getContext();
  function.setFunctionType(FunctionType::get(context, body.getArgumentTypes(), TypeRange(yield->getOperandTypes())));
  function.setArgAttrsAttr(ArrayAttr::get(context, ofArguments));
  function.setResAttrsAttr(ArrayAttr::get(context, ofResults));
  auto module = function->getParentOfType<ModuleOp>();
  for (bool changed = true; changed;) {
    changed = false;
    for (auto other : llvm::make_early_inc_range(module.getOps<graph::FuncOp>()))
      if (other != function && SymbolTable::symbolKnownUseEmpty(other, module)) {
        other.erase();
        changed = true;
      }
  }
  return body.getOperations().size() > 1;
}
