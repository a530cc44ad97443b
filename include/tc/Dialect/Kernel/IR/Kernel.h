//===- Kernel.h - the kernel dialect --------------------------------------------------------------------*- C++ -*-===//
//
// Fused regions of prim ops and the schedule attribute (KernelOps.td).
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_KERNEL_IR_KERNEL_H
#define TC_DIALECT_KERNEL_IR_KERNEL_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "tc/Dialect/Machine/IR/Machine.h"
#include "tc/Dialect/TC/IR/TC.h"

#include "tc/Dialect/Kernel/IR/KernelDialect.h.inc"
#include "tc/Dialect/Kernel/IR/ScheduleEnums.h.inc"
#include "tc/Dialect/Kernel/IR/Schedules.h.inc"
#define GET_ATTRDEF_CLASSES
#include "tc/Dialect/Kernel/IR/KernelAttrs.h.inc"
#define GET_OP_CLASSES
#include "tc/Dialect/Kernel/IR/KernelOps.h.inc"

#endif // TC_DIALECT_KERNEL_IR_KERNEL_H
