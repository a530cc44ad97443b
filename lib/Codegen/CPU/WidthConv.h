//===- WidthConv.h - the parts of the "cpu.width_conv" strategy -----------------------------------------*- C++ -*-===//
//
// WidthConv.cpp decides, WidthConvTasks.cpp emits.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CODEGEN_CPU_WIDTHCONV_H
#define TC_LIB_CODEGEN_CPU_WIDTHCONV_H

#include "CPU/MicroKernel.h"
#include "Common/Generators.h"
#include "tc/Analysis/Convolution.h"

namespace tc::codegen::width_conv {

using Schedule = kernel::CpuWidthConvAttr;

/// Most channels of a group's result whose sums for one vector stay in registers of every CPU.
inline constexpr int64_t kMostWhole = 8;

struct WidthConvolution : Convolution {
  WidthConvolution(const Convolution &convolution, const Epilogue &epilogue)
      : Convolution(convolution), epilogue(epilogue) {}

  const Epilogue &epilogue;

  /// The op: accessors of ops are not const.
  prim::ConvOp conv() const { return op; }
  /// Where tap `tap` of a kernel row finds the element for the line's first result: in which phase (elements that lie
  /// the stride apart are neighbours in one), and at which place of that.
  int64_t phaseOf(int64_t tap) const { return tap * dilationW % strideW; }
  int64_t placeOf(int64_t tap) const { return tap * dilationW / strideW; }
  /// Elements of one phase of a line in scratch, all of which are set: whole vectors of the result read them.
  int64_t pitch(int64_t tileW) const { return roundUp(tileW + placeOf(kernelW - 1) + strideW, kPanel); }
  /// Lines of a channel in scratch: those of each tap of the outer dims.
  int64_t lines(int64_t tileH) const { return outerTaps() * haloH(tileH); }
  /// What is copied to scratch.
  int64_t copiedFloats(int64_t tileH, int64_t tileW) const { return channels * lines(tileH) * strideW * pitch(tileW); }
  /// Columns in blocks, and those that are transposed back as whole vectors.
  bool isBlocked() const { return columns > kMostWhole; }
  int64_t transposedColumns() const { return roundUp(columns, kPanel); }
};

/// The dim of the input that the lines run along.
inline unsigned lineDim(const WidthConvolution &c) { return c.spatial; }

/// Whether neighbours in a line are neighbours in the region's results, too.
bool storesLines(const WidthConvolution &c);
/// Whether the sums of blocks are transposed before they are stored.
bool transposesSums(const WidthConvolution &c);
/// Columns of a block; all, where the schedule has none.
int64_t columnsOf(const WidthConvolution &c, Schedule schedule, const VectorUnit &unit);

/// Tasks: batch elements, outer dims, tiles.
llvm::SmallVector<mlir::AffineExpr> grid(const WidthConvolution &c, int64_t tileH, int64_t tileW);

/// Code of the tasks [begin, end).
void emit(const WidthConvolution &c, Schedule schedule, Emitter &em, mlir::Value begin, mlir::Value end);

} // namespace tc::codegen::width_conv

#endif // TC_LIB_CODEGEN_CPU_WIDTHCONV_H
