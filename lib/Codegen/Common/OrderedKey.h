//===- OrderedKey.h - elements as integers in their order ----------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CODEGEN_ORDEREDKEY_H
#define TC_LIB_CODEGEN_ORDEREDKEY_H

#include "Common/Emitter.h"

namespace tc::codegen {

/// Whether elements of this type have such keys.
bool hasOrderedKey(mlir::Type element);
/// Bits that tell keys of the type apart: 8, 16, 32 or 64.
unsigned orderedKeyBits(mlir::Type element);
/// i64 where there are 64, else i32.
mlir::Type orderedKeyType(mlir::Type element);
/// Signed integers of that type in the order of the elements `x`, which may be in lanes; equal where they are: -0 is 0,
/// what is no number is above infinity. Of up to 32 bits, they lie in [-h, h) for h = 2^(bits - 1).
mlir::Value orderedKey(Emitter &e, mlir::Type element, bool isDescending, mlir::Value x);

} // namespace tc::codegen

#endif // TC_LIB_CODEGEN_ORDEREDKEY_H
