//===- Passes.h - conversions between dialects ----------------------------------------------------------*- C++ -*-===//
//
// Constructors and registration of the passes in Passes.td.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_CONVERSION_PASSES_H
#define TC_CONVERSION_PASSES_H

#include "mlir/Pass/Pass.h"

namespace tc::conversion {

#define GEN_PASS_DECL
#include "tc/Conversion/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "tc/Conversion/Passes.h.inc"

} // namespace tc::conversion

#endif // TC_CONVERSION_PASSES_H
