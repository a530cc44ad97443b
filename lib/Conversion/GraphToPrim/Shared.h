//===- Shared.h - operators that several front ends have ------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CONVERSION_GRAPHTOPRIM_SHARED_H
#define TC_LIB_CONVERSION_GRAPHTOPRIM_SHARED_H

#include "NodeContext.h"

namespace tc {

/// x / 2 (1 + erf(x / sqrt(2))); with `usesTanh`, x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
mlir::Value emitGelu(PrimBuilder &b, mlir::Value x, bool usesTanh = false);

/// log(1 + exp(x)) as max(x, 0) + log1p(exp(-|x|)), which can't overflow.
mlir::Value emitSoftplus(PrimBuilder &b, mlir::Value x);
/// x tanh(softplus(x)).
mlir::Value emitMish(PrimBuilder &b, mlir::Value x);

/// The product of matrices, of operands of one element type and one dim or more: those before the last two broadcast; a
/// vector is a row on the left, a column on the right, whose dim the result lacks.
mlir::FailureOr<mlir::Value> emitMatMul(NodeContext &ctx, mlir::Value lhs, mlir::Value rhs);

/// States that dim `da` of `a` has the size of dim `db` of `b`: both become the static one, or the first. `what` names
/// them in the message.
mlir::LogicalResult unifySizes(NodeContext &ctx, mlir::Value &a, int64_t da, mlir::Value &b, int64_t db,
                               llvm::StringRef what);

/// Carries `inits` through at most `trips` (0-D i64) turns, as long as `goesOn` says so of them.
mlir::ValueRange emitTurns(PrimBuilder &b, mlir::Value trips, mlir::ValueRange inits,
                           llvm::function_ref<mlir::Value(mlir::ValueRange)> goesOn,
                           llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value, mlir::ValueRange)> body);

/// The same through all of them.
mlir::ValueRange emitSteps(PrimBuilder &b, mlir::Value count, mlir::ValueRange inits,
                           llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value, mlir::ValueRange)> body);

} // namespace tc

#endif // TC_LIB_CONVERSION_GRAPHTOPRIM_SHARED_H
