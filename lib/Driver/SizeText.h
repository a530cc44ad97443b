//===- SizeText.h - size expressions in reports -------------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DRIVER_SIZETEXT_H
#define TC_DRIVER_SIZETEXT_H

#include "tc/Dialect/Prim/IR/Prim.h"

#include "llvm/Support/JSON.h"

namespace tc::driver {

/// A number, or the expression as text with the names of `symbols`.
inline llvm::json::Value sizeToJson(mlir::AffineExpr expr, mlir::ArrayAttr symbols) {
  if (auto constant = prim::getConstantSize(expr))
    return *constant;
  return llvm::json::fixUTF8(prim::formatSize(expr, symbols));
}

} // namespace tc::driver

#endif // TC_DRIVER_SIZETEXT_H
