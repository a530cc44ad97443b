//===- Attention.h - the parts of the strategies of attention -------------------------------------------*- C++ -*-===//
//
// Attention.cpp and AttentionRows.cpp decide, AttentionTasks.cpp and AttentionRowsTasks.cpp emit.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CODEGEN_CPU_ATTENTION_H
#define TC_LIB_CODEGEN_CPU_ATTENTION_H

#include "CPU/MicroKernel.h"
#include "Common/Generators.h"
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

  /// The one launch of either strategy, with so much scratch a worker.
  Launch launch(llvm::ArrayRef<mlir::AffineExpr> grid, int64_t scratchFloats) const {
    Launch launch;
    launch.tasks = prim::product(T.getContext(), grid);
    launch.scratch = scratchBytes(T.getContext(), scratchFloats * 4);
    launch.inPlace = epilogue->inPlace();
    return launch;
  }
};

/// The problem of `op`, or of the region's anchor with all that follows it; none for other elements than f32, and for
/// heads of sizes that are not known, 0 or so large that blocks do not stay in the caches.
std::optional<AttentionProblem> analyzeAttention(prim::AttentionOp op);
std::optional<AttentionProblem> analyzeAttention(const RegionProblem &region);

/// Blocks of queries that walk over blocks of keys.
namespace attention {
using Schedule = kernel::CpuAttentionAttr;

/// Offsets in floats of the parts of a worker's scratch.
struct Layout {
  int64_t rowsQ, packedQ, keys, values, scores, result, end;

  /// Rows of scores that a panel of queries has room for: masks are added to 16 of them at a time.
  static int64_t scoreRows(int64_t tileS) { return roundUp(tileS, 16); }

  Layout(const AttentionProblem &p, int64_t tileT, int64_t tileS) {
    int64_t next = 0;
    auto take = [&](int64_t floats) {
      int64_t start = next;
      next += roundUp(floats, 16);
      return start;
    };
    rowsQ =
        take(tileT * std::max(AttentionProblem::stride(p.D), AttentionProblem::stride(p.E))); // later the result's rows
    packedQ = take(tileT * roundUp(p.D, 16));
    keys = take(tileS * AttentionProblem::stride(p.D));
    values = take(tileS * AttentionProblem::stride(p.E));
    scores = take(scoreRows(tileS) * tileT);
    result = take(roundUp(p.E, 16) * tileT);
    end = next + 64;
  }
};

/// Tasks: batch elements, blocks of queries.
llvm::SmallVector<mlir::AffineExpr> grid(const AttentionProblem &p, Schedule schedule);

/// Code of the tasks [begin, end).
void emit(const AttentionProblem &p, Schedule schedule, Emitter &em, mlir::Value begin, mlir::Value end);
} // namespace attention

/// Few queries, lanes along the rows of keys and values.
namespace attention_rows {
using Schedule = kernel::CpuAttentionRowsAttr;

/// Offsets in floats of the parts of a worker's scratch.
struct Layout {
  int64_t queryStride, scoreStride, resultStride;
  int64_t queries, scores, result, end;

  Layout(const AttentionProblem &p, int64_t T, int64_t tileS)
      : queryStride(roundUp(p.D, 16)), scoreStride(roundUp(tileS, 16)), resultStride(roundUp(p.E, 16)), queries(0),
        scores(T * queryStride), result(scores + T * scoreStride), end(result + T * resultStride) {}
};

/// Code of the tasks [begin, end), which are batch elements.
void emit(const AttentionProblem &p, Schedule schedule, Emitter &em, mlir::Value begin, mlir::Value end);
} // namespace attention_rows

} // namespace tc::codegen

#endif // TC_LIB_CODEGEN_CPU_ATTENTION_H
