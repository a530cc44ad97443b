//===- Refit.h - other weights for code that is there ---------------------------------------------------*- C++ -*-===//
//
// tc-compile --refit OLD takes a model through the phases up to host, which decide how weights lie, and then takes the
// code of an earlier artifact instead of compiling: where each function of each variant is what it was. Hashes of these
// stand in the manifest, beside the options that made them. What is written is what a compile would write.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_DRIVER_REFIT_H
#define TC_LIB_DRIVER_REFIT_H

#include "tc/Driver/Compile.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"

namespace tc::driver {

/// Of a module: the hash of each function of each variant, by their names.
inline constexpr llvm::StringLiteral kCodeAttr = "tc.code";

/// Sets kCodeAttr of a module at the end of phase host. Locations do not count.
void recordCode(mlir::ModuleOp module);
/// What the manifest says of that attribute.
llvm::json::Object describeCode(mlir::ModuleOp module);

/// The options of a request that change code, as the manifest has them. `isTuned`: by schedules that were measured.
llvm::json::Object describeOptions(const CompileRequest &request, bool isTuned);
/// The same for people, as command lines have them; `checksBounds` may come from the module.
std::vector<std::string> describeFlags(const CompileRequest &request, bool checksBounds);
/// The SHA-256 of a model's file; empty where it cannot be read any more.
std::string hashModel(const std::string &path);
/// Gives `request` the options that the artifact request.refit was compiled with. A sentence where they do not stand in
/// it, or cannot be followed, or the request has others; empty: done.
std::string readOptions(CompileRequest &request);

/// Replaces the variants of a module at the end of phase host, which has kCodeAttr, by the code for its device in the
/// artifact at `path`. A sentence that says which node has other code; empty: done.
std::string takeCode(mlir::ModuleOp module, const std::string &path, bool isCuda);

} // namespace tc::driver

#endif // TC_LIB_DRIVER_REFIT_H
