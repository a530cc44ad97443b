//===- BlockWeights.h - matrices of numbers of few bits as floats ---------------------------------------*- C++ -*-===//
//
// What prim.block_dot multiplies with, written out: for targets that do not take the op whole, and for forms of it that
// the op leaves out.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_PRIM_UTILS_BLOCKWEIGHTS_H
#define TC_DIALECT_PRIM_UTILS_BLOCKWEIGHTS_H

#include "tc/Dialect/Prim/Utils/PrimBuilder.h"

namespace tc {

/// Operands and attributes as prim.block_dot has them; `zeros` may be null.
struct BlockWeights {
  mlir::Value packed, scales, zeros;
  int64_t bits = 4, block = 32;
};

/// The weights in f32, [N, k]. `spread` says what the columns of k take of a table [N, blocks]; null: that of their
/// block.
mlir::Value emitBlockWeights(PrimBuilder &b, const BlockWeights &weights, mlir::AffineExpr k,
                             llvm::function_ref<mlir::Value(mlir::Value)> spread = {});

} // namespace tc

#endif // TC_DIALECT_PRIM_UTILS_BLOCKWEIGHTS_H
