//===- CausalMask.h - masks that hide the future ------------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_DIALECT_PRIM_TRANSFORMS_CAUSALMASK_H
#define TC_LIB_DIALECT_PRIM_TRANSFORMS_CAUSALMASK_H

#include "tc/Dialect/Prim/IR/Prim.h"

namespace tc::prim {

/// Whether `mask` [.., T, S], added to attention's scores, is 0 where s <= t + (S - T) and hides the rest, whatever it
/// is made from: positions compared with each other, or a constant. Hidden is -infinity, or as little as no score
/// outweighs; then T <= S is known too, so that every position sees something.
bool isCausalMask(mlir::Value mask);

} // namespace tc::prim

#endif // TC_LIB_DIALECT_PRIM_TRANSFORMS_CAUSALMASK_H
