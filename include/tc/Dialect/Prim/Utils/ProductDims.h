//===- ProductDims.h - dims of the operands of products -------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_PRIM_UTILS_PRODUCTDIMS_H
#define TC_DIALECT_PRIM_UTILS_PRODUCTDIMS_H

#include "mlir/IR/Value.h"

namespace tc::prim {

/// The dims of an operand that are neither batch dims nor contracted.
llvm::SmallVector<int64_t> freeDims(mlir::Value operand, llvm::ArrayRef<int64_t> batch,
                                    llvm::ArrayRef<int64_t> contract);

/// The dims of `operand`, seen through transposes, in the order in which they lie in memory: elements along the last
/// one are neighbours.
llvm::SmallVector<int64_t> memoryOrder(mlir::Value operand);

} // namespace tc::prim

#endif // TC_DIALECT_PRIM_UTILS_PRODUCTDIMS_H
