//===- MicroKernel.h - the innermost loops of matrix products -------------------------------------------*- C++ -*-===//
//
// C[rows][panels * 16] (+)= A[rows][K] B[K][panels * 16] in f32 or f64, all accumulators in registers: one vector each,
// a scalar of A broadcast and multiplied into the vectors of a row of B, K unrolled up to 4 times. This form has no
// spills on any CPU model that was tried, other than forms with larger vectors or vector.contract.
//
// B lies in panels of 16 columns: B[panel][K][16]. A row of A is contiguous along the innermost part of K; the outer
// parts are taps (kernel positions of a convolution) at their own strides. Rows of A lie at fixed offsets from the
// first one.
//
// Source: BLIS, Van Zee and van de Geijn, "BLIS: A Framework for Rapidly Instantiating BLAS Functionality", section 4
// (the structure around a micro-kernel).
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CODEGEN_MICROKERNEL_H
#define TC_LIB_CODEGEN_MICROKERNEL_H

#include "CPU/RegisterTiles.h"
#include "Common/Generators.h"

namespace tc::codegen {

/// A number that may be known when code is made.
struct Extent {
  Extent() = default;
  Extent(int64_t value) : constant(value) {}
  Extent(mlir::Value value, std::optional<int64_t> constant = {}) : value(value), constant(constant) {}
  mlir::Value value; // i64, may be null if constant
  std::optional<int64_t> constant;

  mlir::Value get(Emitter &em) const { return value ? value : em.i64(*constant); }
};

/// How many of `size` elements the block of `block` elements has that starts at `start`, a multiple of `block`: known
/// if all blocks are full or there is one only.
Extent blockExtent(Emitter &em, mlir::AffineExpr size, mlir::Value start, int64_t block);
/// What remains of a block of `block` of `size` elements, cut into segments of `segment`, if it is 0 or the same for
/// all blocks that have a remainder.
std::optional<int64_t> blockRest(std::optional<int64_t> size, int64_t block, int64_t segment);

/// How many of the `kernel` positions that lie `dilation` apart from `start` on lie before `limit`.
mlir::Value tapsBefore(Emitter &em, mlir::Value start, mlir::Value limit, int64_t dilation, int64_t kernel);

/// One micro-kernel. Offsets and strides in elements.
struct MicroKernel {
  /// Of A, of the sums and of the result; null: f32.
  mlir::Type element;
  /// Address of row 0 at k = 0, and the offsets of all rows from it; `rowStride` replaces the offsets when not
  /// constant.
  mlir::Value a;
  llvm::SmallVector<int64_t> rowOffsets;
  mlir::Value rowStride;
  /// Outer parts of K, outermost first: number of positions and stride in A.
  struct Tap {
    int64_t count;
    Extent stride;
    /// i64: how many of them the call takes, from the first on; null: all.
    mlir::Value used = {};
  };
  llvm::SmallVector<Tap> taps;
  /// Innermost part of K, its elements `depthStride` apart in A.
  Extent depth;
  int64_t depthStride = 1;
  /// Address of the first panel at k = 0; distance between panels. `bType`: of its elements in memory, a float that is
  /// widened to f32 as it is read; null: f32.
  mlir::Value b;
  mlir::Type bType;
  int64_t panels = 1;
  Extent panelStride;
  /// Elements from one step of K to the next in a panel: another number where B is no copy. Needs no taps.
  int64_t stepStride = kPanel;
  /// The sums of about so many steps are added up on their own, then to the result: rounding errors grow with the
  /// square root of this number instead of K's. 0: all of K in one sum.
  int64_t partialDepth = 1024;
  /// Where the result goes: panel p of row i at c + cOffsets[i] + p * cPanelStride. `accumulate`: adds to what is
  /// there.
  mlir::Value c;
  int64_t cPanelStride = kPanel;
  llvm::SmallVector<int64_t> cOffsets;
  bool accumulate = false;
  /// If set: of the panels that lie there, as many and as long as those at `b`, this call fetches part `prefetchPart`
  /// of `prefetchParts` to the second-level cache, for the calls that follow. Needs a constant depth.
  mlir::Value prefetch, prefetchPart;
  int64_t prefetchParts = 1;
  /// i64: steps of the panels before those that the call takes, where it takes some; null: 0. What they would fetch,
  /// other calls do.
  mlir::Value prefetchFirst;
  /// If not 0: each step also fetches what the step so many elements later reads of each panel. For panels that come
  /// from memory and that no other call reads soon.
  int64_t prefetchDistance = 0;
  /// If set: the rows of A that the next call reads, as many as these and with few gaps, which this call fetches to the
  /// second-level cache. Needs no taps.
  mlir::Value nextRows;
  /// What surrounds the call keeps nothing in vector registers through it. The constants of functions of an epilogue
  /// would else be held there by LLVM, and the sums of the innermost loop spilled instead.
  bool freesRegisters = false;

  int64_t rows() const { return rowOffsets.size(); }
};

void emitMicroKernel(Emitter &em, const MicroKernel &kernel);

/// Offsets of `rows` rows at a fixed stride.
llvm::SmallVector<int64_t> uniformRows(int64_t rows, int64_t stride);

/// Splits `count` rows into blocks and calls body(first row, rows) for each: blocks of `rows`, then the remainder,
/// which is one block if `count` is constant, or if its remainder is known to be 0 or `rest`, and at most one block of
/// each power of two otherwise. Rows are relative.
void forRowBlocks(Emitter &em, Extent count, int64_t rows, std::optional<int64_t> rest,
                  llvm::function_ref<void(mlir::Value, int64_t)> body);

/// Calls store(column, offset in the tile) for a row of a tile, `columns` from the column `first` on, whose elements
/// lie from `start` on. On lanes, unless the matrix has a single column: what follows may drop the dim. `run`: if set,
/// lanes do not cross its multiples.
void forColumns(Emitter &em, bool isSingle, Index first, Index start, Extent columns,
                llvm::function_ref<void(Index, Index)> store, int64_t run = 0);
/// Transposes width() vectors of width() f32 lanes.
llvm::SmallVector<mlir::Value> transposeLanes(Emitter &em, llvm::ArrayRef<mlir::Value> rows);
/// Lane 0 of each vector, then lane 1 of each, ...: one vector of all lanes.
mlir::Value interleaveLanes(Emitter &em, llvm::ArrayRef<mlir::Value> vectors);
/// The width() positions from `first` on of a dim of `size`, for the vectors to transpose; the last one repeats beyond
/// the end. `first` is a multiple of the width.
llvm::SmallVector<Index> linesFrom(Emitter &em, mlir::Value first, mlir::AffineExpr size);

/// Writes zeros to so many f32.
void clearFloats(Emitter &em, mlir::Value floats, int64_t count);

/// ptr + offset elements of `type` (null: f32).
mlir::Value offsetBy(Emitter &em, mlir::Value pointer, int64_t elements, mlir::Type type = {});
mlir::Value offsetBy(Emitter &em, mlir::Value pointer, mlir::Value elements, mlir::Type type = {});

} // namespace tc::codegen

#endif // TC_LIB_CODEGEN_MICROKERNEL_H
