//===- Winograd.h - the parts of the "cpu.winograd" strategy --------------------------------------------*- C++ -*-===//
//
// Winograd.cpp decides and packs, WinogradTasks.cpp emits.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CODEGEN_CPU_WINOGRAD_H
#define TC_LIB_CODEGEN_CPU_WINOGRAD_H

#include "CPU/MicroKernel.h"
#include "Common/Generators.h"
#include "tc/Analysis/Convolution.h"

namespace tc::codegen::winograd {

using Schedule = kernel::CpuWinogradAttr;

// Output pixels of a tile along a dim, input pixels, and both of them in a plane; kernel positions along a dim.
inline constexpr int64_t kTaps = 3, kOut = 4, kIn = 6, kOutPixels = kOut * kOut, kInPixels = kIn * kIn;
// The points p and q of 0, +-p, +-q, infinity.
inline constexpr double kP = 0.6875, kQ = 1.5;
// Bytes of a filter that stays in the second-level cache.
inline constexpr int64_t kFilterBytes = machine::kCaches.l2 / 8 * 3;

/// What of a convolution this strategy takes.
struct Problem {
  Convolution c;
  unsigned input; // of the region, read as [N, H, W, C]
  const Epilogue &epilogue;

  mlir::AffineExpr tilesH() const { return prim::simplifySize(c.outH.ceilDiv(kOut)); }
  mlir::AffineExpr tilesW() const { return prim::simplifySize(c.outW.ceilDiv(kOut)); }
  /// Height and width to plan for, in pixels.
  int64_t likelyHeight() const { return c.likelyHeight(usualSide()); }
  int64_t likelyWidth() const { return c.likelyWidth(usualSide()); }
  int64_t usualSide() const { return std::max(kOut + 1, usual::imageSideOf(std::max(c.channels, c.columns))); }
  /// [N, outer dims, tilesH, tilesW], which number the tiles.
  llvm::SmallVector<mlir::AffineExpr> tileSpace() const {
    llvm::SmallVector<mlir::AffineExpr> space{c.batch};
    llvm::append_range(space, c.outer);
    space.append({tilesH(), tilesW()});
    return space;
  }
  mlir::AffineExpr tiles() const { return prim::product(c.batch.getContext(), tileSpace()); }
  /// The number of images, outer positions counted in, to plan for. An unknown batch counts as one where the filter
  /// streams: what is planned for that is fair for several, but a plan for 8 images of 7 x 7 x 512 takes 1.5 times as
  /// long as direct sums for one. Small filters lose little for one image and gain for several.
  int64_t likelyPlanes() const {
    const bool streams = kInPixels * c.outerTaps() * c.channels * c.panels() * kPanel * 4 > kFilterBytes;
    return c.likelyImages(streams ? usual::kImages : usual::kBatch) * int64_t(c.likelyOuter());
  }
  int64_t likelyTiles() const { return likelyPlanes() * ceilDiv(likelyHeight(), kOut) * ceilDiv(likelyWidth(), kOut); }
  /// Distance of a tile's transformed channels from the next one's, in floats: not a multiple of 2 KiB.
  int64_t pitch() const { return roundUp(c.channels, 16) + (c.channels % 512 == 0 ? 16 : 0); }
};

/// Of one outer kernel position, and of all of them.
inline int64_t transformedFloats(const Problem &p, int64_t tiles) { return kInPixels * tiles * p.pitch(); }
inline int64_t launchFloats(const Problem &p, int64_t tiles) { return p.c.outerTaps() * transformedFloats(p, tiles); }

/// Tasks: blocks of columns and blocks of tiles, in the order of the schedule.
llvm::SmallVector<mlir::AffineExpr> grid(const Problem &p, Schedule schedule);

/// Of the launch that transforms a filter: blocks of channels of a panel at an outer kernel position.
inline int64_t filterTasks(const Problem &p) { return p.c.outerTaps() * p.c.panels() * ceilDiv(p.c.channels, kPanel); }

/// Code of the tasks [begin, end) of the launch that transforms the tiles of all tasks, which several blocks of columns
/// read, of the launch that transforms the filter, and of the convolution.
void emitTransforms(const Problem &p, Schedule schedule, Emitter &em, mlir::Value begin, mlir::Value end);
void emitFilter(const Problem &p, Emitter &em, mlir::Value begin, mlir::Value end);
void emit(const Problem &p, Schedule schedule, Emitter &em, mlir::Value begin, mlir::Value end);

} // namespace tc::codegen::winograd

#endif // TC_LIB_CODEGEN_CPU_WINOGRAD_H
