//===- Passes.h - object code ---------------------------------------------------------------------------*- C++ -*-===//
//
// Constructors and registration of the passes in Passes.td.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_TARGET_PASSES_H
#define TC_TARGET_PASSES_H

#include "tc/Dialect/Host/IR/Host.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace tc::cache {
class Store;
} // namespace tc::cache

namespace tc::target {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "tc/Target/Passes.h.inc"

/// With a cache of code, which may be null.
std::unique_ptr<mlir::Pass> createCompileVariantsPass(const CompileVariantsPassOptions &options, cache::Store *cache);
} // namespace tc::target

#endif // TC_TARGET_PASSES_H
