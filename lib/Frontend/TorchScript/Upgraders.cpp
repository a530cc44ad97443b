//===- Upgraders.cpp - operators as older PyTorch versions meant them ---------------------------------------------===//
//
// An archive says which version of the operators its code was written against. Source: the upgraders of PyTorch
// (torch/csrc/jit/operator_upgraders/upgraders_entry.cpp).
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "HostOperators.h"

#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace tc;
using namespace tc::torchscript;
using llvm::StringRef;

Result Interpreter::upgrade(StringRef name, Values args, NamedValues named, Position at) {
  auto isFloat = [&](const PyValue &value) -> std::optional<bool> {
    if (!value.isTensor())
      return !value.isIntLike();
    std::optional<RankedTensorType> type = typeOf(value, at);
    return type ? std::optional<bool>(!isa<IntegerType>(type->getElementType())) : std::nullopt;
  };
  std::vector<PyValue> newArgs(args.begin(), args.end());
  llvm::SmallVector<NamedValue> newNamed(named.begin(), named.end());
  int64_t given = version;
  auto call = [&] {
    version = INT64_MAX; // as it is meant today
    Result result = callATen(name, newArgs, newNamed, at);
    version = given;
    return result;
  };
  // All values are where the model is, so that moving one to a device keeps it as it is, or converts it.
  if (name == "to" && args.size() >= 2 && args[0].isTensor() &&
      (args[1].is(Kind::Device) || (args[1].isNone() && args.size() >= 3))) {
    PyValue type = args.size() > 2 ? args[2] : PyValue();
    PyValue copies = args.size() > 4 ? args[4] : PyValue::ofBool(false);
    if (type.is(Kind::Bool)) // Device, bool non_blocking, bool copy
      std::tie(type, copies) = std::pair(PyValue(), args.size() > 3 ? args[3] : PyValue::ofBool(false));
    bool isCopy = copies.is(Kind::Bool) && copies.integer;
    if (type.is(Kind::Int))
      return callATen("to", {args[0], type, PyValue::ofBool(false), PyValue::ofBool(isCopy), PyValue()}, {}, at);
    return isCopy ? callATen("clone", {args[0]}, {}, at) : Result(args[0]);
  }
  // Before version 4, integers were divided towards zero.
  if (version < 4 && (name == "div" || name == "div_") && args.size() == 2 &&
      llvm::none_of(named, [](const NamedValue &v) { return v.name == "rounding_mode"; })) {
    for (const PyValue &operand : args) {
      std::optional<bool> is = isFloat(operand);
      if (!is || *is)
        return std::nullopt;
    }
    newNamed.push_back({"rounding_mode", makeString("trunc")});
    return call();
  }
  // Before version 5, a value of integers filled a tensor of floats.
  if (version < 5 && name == "full" && args.size() >= 2 && newArgs[1].isIntLike() &&
      llvm::none_of(named, [](const NamedValue &v) { return v.name == "dtype" && !v.value.isNone(); })) {
    Result number = callOperator("aten::Float", {newArgs[1]}, {}, at);
    if (!number)
      return std::nullopt;
    newArgs[1] = *number;
    return call();
  }
  // Before version 8 (linspace) and 9 (logspace), steps had a default.
  int64_t changed = name == "linspace" ? 8 : name == "logspace" ? 9 : 0;
  if (version < changed) {
    bool isNamed = false;
    for (NamedValue &value : newNamed)
      if (value.name == "steps") {
        isNamed = true;
        if (value.value.isNone())
          value.value = PyValue::ofInt(100);
      }
    if (newArgs.size() >= 3 && newArgs[2].isNone())
      newArgs[2] = PyValue::ofInt(100);
    else if (newArgs.size() == 2 && !isNamed)
      newArgs.push_back(PyValue::ofInt(100));
    return call();
  }
  return std::nullopt;
}
