//===- Differentiate.h - gradients of computations in prim ----------------------------------------------*- C++ -*-===//
//
// Reverse mode: from a value back to what it is computed from, each op's rule turns the gradient of its result into
// those of its operands. The rules emit prim in turn, so that gradients of gradients need nothing more. Where a
// function has no derivative (max of equal operands, abs of 0) one of its subgradients is taken.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_PRIM_UTILS_DIFFERENTIATE_H
#define TC_DIALECT_PRIM_UTILS_DIFFERENTIATE_H

#include "tc/Dialect/Prim/Utils/PrimBuilder.h"

#include <string>

namespace tc {

/// The gradients of the sum of y's elements with respect to each of `xs`, of their types; zeros where y does not depend
/// on one. Each of `xs` and `constants` counts as independent, whatever it is computed from. On failure `why` says
/// which op has no rule, to be read on from "the gradient".
mlir::FailureOr<llvm::SmallVector<mlir::Value>> emitGradients(PrimBuilder &b, mlir::Value y, mlir::ValueRange xs,
                                                              mlir::ValueRange constants, std::string &why);

/// What y would be with the values `to` (of equal types) in place of `from`: what depends on `from` is computed again.
mlir::Value emitSubstituted(PrimBuilder &b, mlir::Value y, mlir::ValueRange from, mlir::ValueRange to);

} // namespace tc

#endif // TC_DIALECT_PRIM_UTILS_DIFFERENTIATE_H
