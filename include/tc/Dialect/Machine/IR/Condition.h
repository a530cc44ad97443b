//===- Condition.h - for some sizes, or for one machine -------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_MACHINE_IR_CONDITION_H
#define TC_DIALECT_MACHINE_IR_CONDITION_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/IntegerSet.h"
#include "tc/Dialect/Machine/IR/Machine.h"

namespace tc::machine {

/// What holds of the condition of a #kernel.case and a #host.guard, which `what` names: sizes or a machine are given,
/// and the set of sizes is over symbols.
inline mlir::LogicalResult verifyCondition(llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
                                           llvm::StringRef what, mlir::IntegerSetAttr sizes, MachineAttr machine) {
  if (!sizes && !machine)
    return emitError() << "a " << what << " needs sizes or a machine";
  if (sizes && sizes.getValue().getNumDims() != 0)
    return emitError() << "the sizes of a " << what << " are over symbols, not dims";
  return mlir::success();
}

} // namespace tc::machine

#endif // TC_DIALECT_MACHINE_IR_CONDITION_H
