//===- PairGathers.h - gathers of neighbours as one of pairs --------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CODEGEN_PAIRGATHERS_H
#define TC_LIB_CODEGEN_PAIRGATHERS_H

#include "mlir/IR/Operation.h"

namespace tc::codegen {
/// Makes one gather, of elements twice as wide, of two in the same block that read neighbours at the same lanes: the
/// taps of what is interpolated, coordinates. A processor gathers one element after another, of 4 bytes as of 8. For
/// what has been through common subexpression elimination, which makes lanes that are the same one value.
void pairGathers(mlir::Operation *root);
} // namespace tc::codegen

#endif // TC_LIB_CODEGEN_PAIRGATHERS_H
