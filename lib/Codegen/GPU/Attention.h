//===- Attention.h - attention on tensor cores ----------------------------------------------------------*- C++ -*-===//
//
// What deciding (Attention.cpp) and emitting (AttentionTasks.cpp) share.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CODEGEN_GPU_ATTENTION_H
#define TC_LIB_CODEGEN_GPU_ATTENTION_H

#include "Common/Generators.h"
#include "GPU/SharedTile.h"

namespace tc::codegen::gpu {

using AttentionSchedule = kernel::GpuAttentionAttr;

/// query [B.., T, D], key [B.., S, D], value [B.., S, E], result [B.., T, E], of one 16-bit element type.
struct TiledAttention {
  mutable prim::AttentionOp op; // accessors of ops are not const
  llvm::SmallVector<mlir::AffineExpr> batch;
  mlir::AffineExpr T, S;
  int64_t D, E;
  mlir::Type element;
  /// Their depths are D, D and S.
  TiledOperand query, key, value;
  /// Null for an op outside of a region.
  const Epilogue *epilogue = nullptr;

  /// Tasks: batch elements, blocks of queries.
  llvm::SmallVector<mlir::AffineExpr> grid(AttentionSchedule schedule) const;
};

std::optional<TiledAttention> asTiledAttention(prim::AttentionOp op);
std::optional<TiledAttention> asTiledAttention(const RegionProblem &region);

/// A warp has 16 queries; producers follow them.
int64_t countThreads(AttentionSchedule schedule);

/// Shared memory of a block: its queries, then a ring of stages, each a tile of keys and one of values; in the end the
/// results. With producers, behind them: barriers of the queries, the keys and the values.
struct AttentionLayout {
  SharedTile query, key, value;
  int64_t stages, barrierBytes;

  AttentionLayout(const TiledAttention &problem, AttentionSchedule schedule);
  int64_t stageBytes() const { return key.size() + value.size(); }
  int64_t ringBytes() const { return stages * stageBytes(); }
  int64_t barriersAt() const {
    return std::max(query.size() + ringBytes(), query.outer * sumRowWords(value.outer) * 4);
  }
  int64_t sharedBytes() const { return barriersAt() + barrierBytes; }
};

/// Neighbouring columns that the epilogue takes at once.
int64_t lanesOf(const TiledAttention &problem);

/// The task of a block.
void emitAttentionBlock(const TiledAttention &problem, AttentionSchedule schedule, Emitter &e, mlir::Value block);

} // namespace tc::codegen::gpu

#endif // TC_LIB_CODEGEN_GPU_ATTENTION_H
