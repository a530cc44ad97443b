//===- ScalarTypes.h - element types by PyTorch's numbers -----------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_FRONTEND_TORCHSCRIPT_SCALARTYPES_H
#define TC_LIB_FRONTEND_TORCHSCRIPT_SCALARTYPES_H

#include "mlir/IR/Types.h"

#include <optional>

namespace tc::torchscript {

/// By the number that TorchScript's code has for it (c10/core/ScalarType.h); null of types that tc does not know.
mlir::Type typeOfCode(mlir::MLIRContext *context, int64_t code);
std::optional<int64_t> codeOfType(mlir::Type type);
/// Of "f32", "i64", "bool" and the like; null of other words.
mlir::Type typeOfWord(mlir::MLIRContext *context, llvm::StringRef word);

} // namespace tc::torchscript

#endif // TC_LIB_FRONTEND_TORCHSCRIPT_SCALARTYPES_H
