//===- Passes.h - passes inside prim --------------------------------------------------------------------*- C++ -*-===//
//
// Constructors and registration of the passes in Passes.td.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DIALECT_PRIM_TRANSFORMS_PASSES_H
#define TC_DIALECT_PRIM_TRANSFORMS_PASSES_H

#include "tc/Dialect/Prim/IR/Prim.h"
#include "tc/Dialect/TC/IR/TC.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

#include <functional>

namespace tc::prim {

#define GEN_PASS_DECL
#include "tc/Dialect/Prim/Transforms/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "tc/Dialect/Prim/Transforms/Passes.h.inc"

/// Whether the target has code for this composite op, with its element types and sizes, as it stands.
using TakesWhole = std::function<bool(mlir::Operation *)>;
/// tc-decompose-composites that leaves what `takesWhole` says.
std::unique_ptr<mlir::Pass> createDecomposeCompositesPass(TakesWhole takesWhole);

/// Of a function's argument: its integers lie in [low, high), as an array<i64: low, high>.
inline constexpr llvm::StringLiteral kRangeAttr = "tc.range";

/// Whether a product or convolution is taken with operands of bf16: it has a known depth of more than 1, and if it is a
/// convolution, a constant filter with enough channels for each group.
bool isNarrowable(mlir::Operation *product);
/// Why it is not; empty: it is.
llvm::StringRef whyNotNarrow(mlir::Operation *product);

/// Transposes of all operands of an elementwise op move behind it.
void populateSinkThroughElementwise(mlir::RewritePatternSet &patterns);

struct PrimPipelineOptions {
  /// Adds tc-check-bounds.
  bool checkBounds = false;
  /// Of products of f32, see tc-round-products.
  std::string precision = "f32";
  std::vector<std::string> nodePrecisions = {};
};
/// Adds the passes that phase prim runs on each function after tc-convert-graph-to-prim, tc-verify-prim last. Their
/// order has reasons, which stand in Pipeline.cpp.
void buildPrimPipeline(mlir::OpPassManager &functions, const PrimPipelineOptions &options = {});
/// Registers it as --tc-simplify-prim.
void registerPrimPipeline();

} // namespace tc::prim

#endif // TC_DIALECT_PRIM_TRANSFORMS_PASSES_H
