//===- Constraints.td - machines as attributes of operations ---------------------------------------------*- tablegen -*-===//
//
// Apart from Machine.td, as enumerations are generated for every file that includes theirs.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_MACHINE_IR_CONSTRAINTS
#define TC_DIALECT_MACHINE_IR_CONSTRAINTS

include "mlir/IR/CommonAttrConstraints.td"

def Machine_AnyMachine : Attr<CPred<"::llvm::isa<::tc::machine::MachineAttr>($_self)">, "machine"> {
  let storageType = "::tc::machine::MachineAttr";
}
def Machine_MachineArray : TypedArrayAttrBase<Machine_AnyMachine, "machines">;

#endif
