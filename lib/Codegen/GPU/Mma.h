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

#include <memory>

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
  /// A constant rhs, as the schedule may have it packed: along K.
  std::optional<TiledOperand> packedRhs;
  std::optional<PackedInput> packing;
  /// An rhs of f32 as a launch may write it: `writtenType` is [B, N, K], with K a multiple of a piece.
  std::optional<TiledOperand> writtenRhs;
  mlir::RankedTensorType writtenType;
  /// A convolution's image that a launch writes as pixels of `padded` channels a group, which are whole pieces; the lhs
  /// is read from there, and K counts these channels. Null: there is no such launch.
  struct Image {
    mlir::Value tensor;
    llvm::SmallVector<mlir::AffineExpr> pixels;
    int64_t groups, channels, padded;
  };
  std::optional<Image> image;
  /// The same problem with such a launch, where that may be worth it.
  std::shared_ptr<const MmaProblem> withImage;
  /// Position in the result.
  std::function<llvm::SmallVector<Index>(Emitter &, llvm::ArrayRef<Index> batch, llvm::ArrayRef<Index> row,
                                         llvm::ArrayRef<Index> column)>
      resultAt;

  int64_t bytes() const { return element.getIntOrFloatBitWidth() / 8; }
  const TiledOperand &rhsOf(MmaSchedule schedule) const {
    return schedule.getPacksRhs() ? *packedRhs : schedule.getRhsLaunch() ? *writtenRhs : rhs;
  }
  /// Whether products take operands of TF32.
  bool takesTf32(MmaSchedule schedule) const { return element.isF32() && schedule.getPasses() == 1; }
  /// The problem as the schedule has it.
  const MmaProblem &of(MmaSchedule schedule) const { return schedule.getLhsLaunch() && withImage ? *withImage : *this; }
  /// Launches before the product's, the last of which writes what tensor copies go by.
  unsigned launchesBefore(MmaSchedule schedule) const {
    return image.has_value() + schedule.getRhsLaunch() + hasMaps(schedule);
  }
  static bool hasMaps(MmaSchedule schedule) { return schedule.getTensorCopies(); }
  llvm::SmallVector<mlir::AffineExpr> grid(MmaSchedule schedule) const;
};

std::optional<MmaProblem> asMmaProblem(const RegionProblem &region);

/// Threads of a block that multiply; of a warpgroup more a warp makes tensor copies.
int64_t countThreads(MmaSchedule schedule);

/// Shared memory of a block: a ring of stages, each a tile of both operands; the low parts of a stage's elements, where
/// f32 is multiplied exactly; in the end the sums.
struct MmaLayout {
  SharedTile lhs, rhs;
  int64_t stages, stageBytes, lowBytes, sumsBytes, barrierBytes;

  MmaLayout(const MmaProblem &problem, MmaSchedule schedule);
  int64_t depth() const { return lhs.depth; }
  int64_t ringBytes() const { return stages * stageBytes; }
  /// Where the barriers of tensor copies lie, behind all else.
  int64_t barriersAt() const { return std::max(ringBytes() + lowBytes, sumsBytes); }
  int64_t sharedBytes() const { return barriersAt() + barrierBytes; }
};

/// Neighbouring columns that the epilogue takes at once.
int64_t lanesOf(const MmaProblem &problem);
/// Threads of a block that adds up what the parts of K give.
inline constexpr int64_t kSumThreads = 256;

/// Threads, rows or columns, and steps of K of a block that writes operands.
inline constexpr int64_t kWriteThreads = 256, kWriteOuter = 128, kWriteDepth = kLineBytes / 4;
llvm::SmallVector<mlir::AffineExpr> writeGrid(const MmaProblem &problem);

/// Whether tensor copies can fill such tiles of both operands.
bool haveTensorCopies(const MmaProblem &problem, MmaSchedule schedule);
/// Bytes of the tensor maps of both operands, which may begin anywhere.
inline constexpr int64_t kMapsBytes = 3 * kTensorMapBytes;
/// The first map in these bytes, and the one so many further on.
mlir::Value firstMap(Emitter &e, mlir::Value maps);
mlir::Value nextMap(Emitter &e, mlir::Value map, int64_t count);

/// The tasks of the launches that write operands, and tensor maps.
void emitMmaImage(const MmaProblem &problem, Emitter &e, mlir::Value block);
void emitMmaRhs(const MmaProblem &problem, MmaSchedule schedule, Emitter &e, mlir::Value block);
void emitMmaMaps(const MmaProblem &problem, MmaSchedule schedule, Emitter &e);
/// The tasks of a block, and those of the launch that adds up.
void emitMmaBlock(const MmaProblem &problem, MmaSchedule schedule, Emitter &e, mlir::Value block);
void emitMmaSums(const MmaProblem &problem, MmaSchedule schedule, Emitter &e, mlir::Value block);

} // namespace tc::codegen::gpu

#endif // TC_LIB_CODEGEN_GPU_MMA_H
