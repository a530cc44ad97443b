//===- Passes.h - passes across dialects ----------------------------------------------------------------*- C++ -*-===//
//
// Constructors and registration of the passes in Passes.td.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_TRANSFORMS_PASSES_H
#define TC_TRANSFORMS_PASSES_H

#include "tc/Dialect/Host/IR/Host.h"
#include "tc/Dialect/Kernel/IR/Kernel.h"
#include "tc/Dialect/Machine/IR/Machine.h"
#include "tc/Dialect/Prim/IR/Prim.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace tc {

#define GEN_PASS_DECL
#include "tc/Transforms/Passes.h.inc"

namespace transforms {
#define GEN_PASS_REGISTRATION
#include "tc/Transforms/Passes.h.inc"
} // namespace transforms

} // namespace tc

#endif // TC_TRANSFORMS_PASSES_H
