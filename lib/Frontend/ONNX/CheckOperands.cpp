//===- CheckOperands.cpp - types of operands against their operator's schema --------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "ImportGraph.h"
#include "OnnxLibrary.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using llvm::Twine;

namespace tc {

using namespace onnxfe;

/// "int64", as ONNX names it.
static std::string getElementName(int dataType) {
  return StringRef(onnx::TensorProto_DataType_Name(onnx::TensorProto::DataType(dataType))).lower();
}

/// "bool, float or int64, or a sequence".
static std::string describeAllowed(const OperandType &operand) {
  SmallVector<std::string> names;
  for (int type = 1; type <= onnx::TensorProto::DataType_MAX; ++type)
    if (operand.elements >> type & 1)
      names.push_back(getElementName(type));
  std::string text;
  if (!names.empty()) {
    std::string last = names.pop_back_val();
    text = "a tensor of " + (names.empty() ? last : llvm::join(names, ", ") + " or " + last);
  }
  for (auto [isAllowed, name] :
       {std::pair(operand.isSequence, "a sequence"), std::pair(operand.isOptional, "an optional"),
        std::pair(operand.isMap, "a map"), std::pair(operand.isSparse, "a sparse tensor")})
    if (isAllowed)
      text += (text.empty() ? "" : ", or ") + std::string(name);
  return text;
}

std::string findOnnxOperandError(Operation *op, ArrayRef<Type> types) {
  auto node = dyn_cast<graph::NodeOp>(op);
  const std::vector<OperandType> *operands =
      node ? getOperandTypes(node.getDomain(), node.getOpType(), node.getOpset()) : nullptr;
  if (!operands || operands->empty())
    return "";
  // The first operand of each variable.
  SmallVector<std::pair<const OperandType *, size_t>> first;
  for (auto [i, type] : llvm::enumerate(types)) {
    if (i >= operands->size() && !operands->back().isVariadic)
      break; // Gradient has operands that its attributes name
    const OperandType &operand = (*operands)[std::min(i, operands->size() - 1)];
    // An optional may be known to hold a tensor.
    if (!type || operand.isOptional || isa<NoneType, base::UnknownType, base::SparseType>(type))
      continue;
    auto name = [&](size_t j) {
      return ("operand " + Twine(j) + " (\"" + (*operands)[std::min(j, operands->size() - 1)].name + "\")").str();
    };
    // Sequences are tensors of one word behind the front end.
    Type element = getElementTypeOrSelf(type);
    int dataType = getDataType(element);
    bool isSequence = isa<base::SeqType>(element), isMap = isa<base::MapType>(element);
    std::string is = isSequence                    ? "a sequence"
                     : isMap                       ? "a map"
                     : isa<base::OptType>(element) ? "an optional"
                                                   : "a tensor of " + getElementName(dataType);
    bool isAllowed = isSequence                    ? operand.isSequence
                     : isMap                       ? operand.isMap
                     : isa<base::OptType>(element) ? false
                                                   : operand.elements >> dataType & 1;
    if (!isAllowed)
      return name(i) + " is " + is + "; it must be " + describeAllowed(operand);
    if (operand.variable.empty() || base::isHandle(element))
      continue;
    auto same = llvm::find_if(first, [&](auto &other) { return other.first->variable == operand.variable; });
    if (same == first.end())
      first.push_back({&operand, i});
    else if (Type other = getElementTypeOrSelf(types[same->second]); other != element)
      return name(i) + " is " + is + ", but " + name(same->second) + " is a tensor of " +
             getElementName(getDataType(other)) + "; they must have one element type";
  }
  return "";
}

} // namespace tc
