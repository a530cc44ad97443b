//===- Dtypes.h - element types as artifacts number them ------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_TC_IR_DTYPES_H
#define TC_DIALECT_TC_IR_DTYPES_H

#include "mlir/IR/Types.h"
#include "tcrt/artifact_abi.h"

namespace tc::base {

/// The dtype of an element type; TCRT_DTYPE_INVALID where artifacts have none.
tcrt_dtype_t getDtype(mlir::Type type);

/// What a host function is told of an operand's elements; `word` is its entry in prim.host_call's `words`.
tcrt_dtype_t getOperandDtype(mlir::Type type, int64_t word);

} // namespace tc::base

#endif // TC_DIALECT_TC_IR_DTYPES_H
