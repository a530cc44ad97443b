//===- Seeded.h - constants that no file holds ----------------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_TC_IR_SEEDED_H
#define TC_DIALECT_TC_IR_SEEDED_H

#include "tc/Dialect/TC/IR/TC.h"
#include "tc/Support/SeededBlob.h"

namespace tc::base {

/// A constant of numbers between -1 and 1 that `seed` chooses; null where the elements are no floats of 16, 32 or 64
/// bits. writeModule writes no bytes of it, and readModule makes them again.
DataAttr makeSeeded(mlir::RankedTensorType type, uint64_t seed);
inline bool isSeeded(DataAttr attr) { return isSeededKey(attr.getBlob()); }

} // namespace tc::base

#endif // TC_DIALECT_TC_IR_SEEDED_H
