//===- Mma.h - products and convolutions on tensor cores ------------------------------------------------*- C++ -*-===//
//
// What deciding (Mma.cpp) and emitting (MmaTasks.cpp) share.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CODEGEN_GPU_MMA_H
#define TC_LIB_CODEGEN_GPU_MMA_H

#include "Common/Generators.h"
#include "GPU/SharedTile.h"

namespace tc::codegen::gpu {

using MmaSchedule = kernel::GpuMmaAttr;

/// result[b, m, n] = sum over k of lhs[b, m, k] rhs[b, k, n]; of a convolution m are pixels, k taps and channels, b
/// groups.
struct MmaProblem {
  const Epilogue *epilogue;
  llvm::SmallVector<mlir::AffineExpr> batch, rows, columns; // of the result
  mlir::AffineExpr B, M, N, K;
  TiledOperand lhs, rhs;
  mlir::Type element; // of the operands
  /// A constant rhs whose lines lie across K, as the schedule may have it packed: along K.
  std::optional<TiledOperand> packedRhs;
  std::optional<PackedInput> packing;
  /// Position in the result.
  std::function<llvm::SmallVector<Index>(Emitter &, llvm::ArrayRef<Index> batch, llvm::ArrayRef<Index> row,
                                         llvm::ArrayRef<Index> column)>
      resultAt;

  int64_t bytes() const { return element.getIntOrFloatBitWidth() / 8; }
  const TiledOperand &rhsOf(MmaSchedule schedule) const { return schedule.getPacksRhs() ? *packedRhs : rhs; }
  llvm::SmallVector<mlir::AffineExpr> grid(MmaSchedule schedule) const;
};

std::optional<MmaProblem> asMmaProblem(const RegionProblem &region);

int64_t countThreads(MmaSchedule schedule);

/// Shared memory of a block: a ring of stages, each a tile of both operands; the low parts of a stage's elements, where
/// f32 is multiplied exactly; in the end the sums.
struct MmaLayout {
  SharedTile lhs, rhs;
  int64_t stages, stageBytes, lowBytes, sumsBytes;

  MmaLayout(const MmaProblem &problem, MmaSchedule schedule);
  int64_t depth() const { return lhs.depth; }
  int64_t ringBytes() const { return stages * stageBytes; }
  int64_t sharedBytes() const { return std::max(ringBytes() + lowBytes, sumsBytes); }
};

/// Neighbouring columns that the epilogue takes at once.
int64_t lanesOf(const MmaProblem &problem);
/// Threads of a block that adds up what the parts of K give.
inline constexpr int64_t kSumThreads = 256;

/// The tasks of a block, and those of the second launch.
void emitMmaBlock(const MmaProblem &problem, MmaSchedule schedule, Emitter &e, mlir::Value block);
void emitMmaSums(const MmaProblem &problem, MmaSchedule schedule, Emitter &e, mlir::Value block);

} // namespace tc::codegen::gpu

#endif // TC_LIB_CODEGEN_GPU_MMA_H
