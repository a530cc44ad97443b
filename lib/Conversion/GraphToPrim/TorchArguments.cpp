//===- TorchArguments.cpp - calls against PyTorch's signatures ----------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "TorchArguments.h"

#include "tc/Dialect/Graph/Torch/Schemas.h"

using namespace mlir;
using namespace tc;
using torch::SchemaArgument;
using torch::SchemaType;
using Kind = SchemaType::Kind;

namespace {

/// What a call gives for an argument.
struct Given {
  Attribute attr;
  bool isTensor = false; ///< a value of the graph, which may stand for a number
  bool isList = false;   ///< of values
  bool isAny() const { return attr || isTensor || isList; }
};

bool isNumber(Attribute attr) { return isa<IntegerAttr, FloatAttr>(attr); }
bool isListOfNumbers(Attribute attr) {
  auto list = dyn_cast<ArrayAttr>(attr);
  return isa<DenseI64ArrayAttr, DenseF64ArrayAttr, DenseF32ArrayAttr, DenseBoolArrayAttr>(attr) ||
         (list && llvm::all_of(list, [](Attribute entry) { return isa<IntegerAttr, FloatAttr, StringAttr>(entry); }));
}

/// Whether an argument of this type takes what is given. Symbolic numbers are strings that name operands.
bool takes(const SchemaType &type, const Given &given, bool namesOperand) {
  Attribute attr = given.attr;
  // Kinds that front ends keep by name alone, such as complex numbers.
  if (auto text = dyn_cast_or_null<StringAttr>(attr); text && text.getValue().starts_with("as_"))
    return true;
  switch (type.kind) {
  case Kind::Tensor:
    return given.isTensor || namesOperand || (attr && (isNumber(attr) || isa<ArrayAttr>(attr)));
  case Kind::Int:
  case Kind::SymInt:
    return given.isTensor || namesOperand || (attr && isa<IntegerAttr>(attr));
  case Kind::Float:
  case Kind::Bool:
    return given.isTensor || namesOperand || (attr && isNumber(attr));
  case Kind::String:
    return attr && isa<StringAttr>(attr);
  case Kind::List:
    switch (type.elements[0].required().kind) {
    case Kind::Tensor:
      return given.isList || given.isTensor || (attr && isa<ArrayAttr>(attr));
    case Kind::Int:
    case Kind::SymInt:
    case Kind::Float:
    case Kind::Bool:
      // One number stands for a list of a known length.
      return given.isList || given.isTensor || namesOperand || (attr && (isNumber(attr) || isListOfNumbers(attr)));
    default:
      return true;
    }
  default:
    // Numbers of all kinds, element types, devices: front ends write them in their own ways.
    return true;
  }
}

const char *describe(const Given &given) {
  if (given.isList)
    return "a list of tensors";
  if (given.isTensor)
    return "a tensor";
  if (isa<FloatAttr>(given.attr))
    return "a float";
  if (auto integer = dyn_cast<IntegerAttr>(given.attr))
    return integer.getType().isInteger(1) ? "a bool" : "an integer";
  if (isa<StringAttr>(given.attr))
    return "a string";
  if (isa<TypeAttr>(given.attr))
    return "an element type";
  return isListOfNumbers(given.attr) ? "a list of numbers" : "a list";
}

} // namespace

std::string tc::findTorchArgumentError(graph::NodeOp node) {
  const torch::Schema *schema = torch::findSchema(node.getDomain(), node.getOpType());
  auto names = dyn_cast_or_null<ArrayAttr>(node.getNodeAttr("arg_names"));
  if (!schema || !names)
    return "";
  auto isOperand = [&](StringRef name) {
    for (auto [entry, value] : llvm::zip(names, node.getInputs()))
      if (auto text = dyn_cast<StringAttr>(entry); text && text.getValue() == name && !isa<NoneType>(value.getType()))
        return true;
    return false;
  };
  std::string signature =
      schema->domain.str() + "::" + schema->name.str() + (schema->overload.empty() ? "" : "." + schema->overload.str());
  for (const SchemaArgument &argument : schema->arguments) {
    Given given{node.getNodeAttr(argument.name), isOperand(argument.name),
                bool(node.getNodeAttr((argument.name + ".count").str()))};
    if (!given.isAny())
      continue; // handlers ask for what they need
    auto text = dyn_cast_or_null<StringAttr>(given.attr);
    if (!takes(argument.type.required(), given, text && isOperand(text.getValue())))
      return "argument \"" + argument.name.str() + "\" is " + describe(given) + ", where " + signature + " takes " +
             argument.type.str();
  }
  return "";
}
