//===- Host.h - the host dialect -----------------------------------------------------------------------------*- C++
//-*-===//
//
// The program around the kernels (HostOps.td). At the end of the kernel phase the model's function holds host.constant,
// host.launch, prim.reshape (a view), prim.sizes, prim.bind_symbol and control flow; beside it stands one host.variant
// per target variant with the kernels.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_HOST_IR_HOST_H
#define TC_DIALECT_HOST_IR_HOST_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "tc/Dialect/Host/IR/HostDialect.h.inc"
#define GET_OP_CLASSES
#include "tc/Dialect/Host/IR/HostOps.h.inc"

#endif // TC_DIALECT_HOST_IR_HOST_H
