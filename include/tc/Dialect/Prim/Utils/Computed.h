//===- Computed.h - values that only the run knows ------------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_PRIM_UTILS_COMPUTED_H
#define TC_DIALECT_PRIM_UTILS_COMPUTED_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

namespace tc::prim {

/// The values of `function` that are no constants, nor made of constants alone: arguments, what is computed from them,
/// and what needs no operands but has effects.
llvm::DenseSet<mlir::Value> collectComputed(mlir::func::FuncOp function);

} // namespace tc::prim

#endif // TC_DIALECT_PRIM_UTILS_COMPUTED_H
