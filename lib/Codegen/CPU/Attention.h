//===- Attention.h - what the strategies of attention share ---------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CODEGEN_CPU_ATTENTION_H
#define TC_LIB_CODEGEN_CPU_ATTENTION_H

#include "CPU/MicroKernel.h"
#include "tc/Analysis/RegionProblem.h"

namespace tc::codegen {

/// query [B.., T, D], key [B.., S, D], value [B.., S, E], result [B.., T, E], all of f32.
struct AttentionProblem {
  mutable prim::AttentionOp op; // accessors of ops are not const
  llvm::SmallVector<mlir::AffineExpr> batch;
  mlir::AffineExpr T, S;
  int64_t D, E;
  /// Null for an op outside of a region.
  const Epilogue *epilogue = nullptr;

  /// Distance of copied rows: a multiple of 16, not of a cache way.
  static int64_t stride(int64_t columns) { return roundUp(columns, 16) + 16; }
};

/// The problem of `op`, or of the region's anchor with all that follows it; none for other elements than f32, and for
/// heads of sizes that are not known, 0 or so large that blocks do not stay in the caches.
std::optional<AttentionProblem> analyzeAttention(prim::AttentionOp op);
std::optional<AttentionProblem> analyzeAttention(const RegionProblem &region);

} // namespace tc::codegen

#endif // TC_LIB_CODEGEN_CPU_ATTENTION_H
