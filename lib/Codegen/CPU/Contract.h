//===- Contract.h - the parts of the "cpu.contract" strategy --------------------------------------------*- C++ -*-===//
//
// Contract.cpp is the strategy; ContractProduct.cpp and ContractConv.cpp decide for products and for convolutions, and
// say what is packed; ContractProductTasks.cpp and ContractConvTasks.cpp emit.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CODEGEN_CPU_CONTRACT_H
#define TC_LIB_CODEGEN_CPU_CONTRACT_H

#include "CPU/MicroKernel.h"
#include "CPU/Product.h"
#include "Common/Anchor.h"
#include "Common/Generators.h"
#include "tc/Analysis/Convolution.h"

namespace tc::codegen::contract {

using Schedule = kernel::CpuContractAttr;

/// A product, or else a convolution.
struct Problem {
  const Product *product;
  const Convolution *convolution;
  const Epilogue &epilogue;
};

// Rows of a task: enough to reuse a panel of B from the first-level cache.
inline constexpr int64_t kTaskRows = 112;
// Columns of a task take this many bytes of B: they stay in the second-level cache.
inline constexpr int64_t kPanelBytes = machine::kCaches.l2 / 4;
// How far ahead the panels are fetched that few rows read once: a page, where the hardware's prefetcher stops.
inline constexpr int64_t kPrefetchBytes = 4096;
// Work of a task below which more tasks are not worth it, where there are enough for a few threads and where there are
// not; and what a thread should get at least.
inline constexpr double kTaskFlops = 4e6, kFewTaskFlops = 1e6, kGrainFlops = 5e5;
// Fewer rows than these take as long: their B, read once, comes from beyond the second-level cache at 10 flops a byte.
inline constexpr double kStreamedRows = 20;
// A B of so many bytes stays in the second-level cache: threads then take rows, or pixels, of their own, which they
// also have in the layers around, and all columns of them. (Two threads: four convolutions side by side 0.9 of the
// time.)
inline constexpr int64_t kNearBytes = machine::kCaches.l2 / 2;
// What a thread should pack at least.
inline constexpr int64_t kPackGrainBytes = 128 * 1024;
// Tasks that keep many cores busy evenly.
inline constexpr int64_t kTasks = 48;
// Pixels of fewer channels are interleaved when they are copied.
inline constexpr int64_t kLeastLanes = 8;

/// `batch` times `rows` x `columns` in tasks of `tileRows` x `tileColumns`.
struct Split {
  double batch, rows, tileRows, columns, tileColumns;

  /// What the busier one of two threads computes, that have a half of the tasks each, and the next one of the other's
  /// when they are done with it: as the runtime shares them.
  double busier() const {
    llvm::SmallVector<double> tasks;
    for (double b = 0; b < batch; ++b)
      for (double column = 0; column < columns; column += tileColumns)
        for (double row = 0; row < rows; row += tileRows)
          tasks.push_back(std::min(tileRows, rows - row) * std::min(tileColumns, columns - column));
    const size_t half = tasks.size() / 2, ends[2] = {half, tasks.size()};
    size_t next[2] = {0, half};
    double busy[2] = {0, 0};
    for (size_t left = tasks.size(); left > 0; --left) {
      const int thread = busy[0] > busy[1], from = next[thread] < ends[thread] ? thread : 1 - thread;
      busy[thread] += tasks[next[from]++];
    }
    return std::max(busy[0], busy[1]);
  }
};

/// A kernel position of a dim along which a patch is the whole line, or all of them, and the rows and columns of the
/// patch for which it reads the input.
struct PatchTap {
  std::optional<int64_t> tapH, tapW;
  llvm::SmallVector<int64_t> rows, columns;

  int64_t outputs() const { return int64_t(rows.size() * columns.size()); }
};

/// Of the elements of panels that were packed when the artifact was made, where it is not `element`; else null.
mlir::Type packedType(Emitter &em, int64_t rhsInput, mlir::Type element);

/// Whether the region computes functions, whose many constants LLVM would hold in registers through the micro-kernel.
bool hasFunctions(kernel::RegionOp region);

/// Whether `tasks` of `flops` each may be more and smaller ones: above `least` they are; few of them, where they then
/// are more even.
bool isWorthSplitting(double tasks, double flops, double least = kTaskFlops);

/// Whether two threads are done earlier with the tasks of `after`.
bool isMoreEven(const Split &after, const Split &before);

/// A half to a quarter of `tilePanels` in groups of `wide`: so many that the last of the blocks of `panels` differs
/// least from the others.
int64_t fewerPanels(std::optional<int64_t> panels, int64_t tilePanels, int64_t wide);

/// Where a product of B's panels is computed with so many rows at a time: how far ahead the panels are fetched.
/// `isPacked`: when the artifact was made.
int64_t prefetchBytesOf(const Product &p, int64_t rows, bool isPacked);

/// Least number of tasks of `flops` for a thread.
int64_t grainFor(double flops);

/// Cuts `count` rows into tiles of `rows` and calls body(first row, rows of the tile, remainder) for each; the
/// remainder is that of the last tile if it is known.
void forTiles(Emitter &em, Extent count, int64_t rows, std::optional<int64_t> rest,
              llvm::function_ref<void(Index, Extent, std::optional<int64_t>)> body);

/// Calls body for each group of `groupPanels` panels of [0, panels), the panels of a matrix from panel `first` on,
/// with the group's columns. The last ones of the matrix's `all` columns, if they are known and fill no group, make
/// one of their own, so that the columns of all groups are constants: rows of a number that is not copied by loops.
void forGroups(Emitter &em, mlir::Value first, mlir::Value panels, int64_t groupPanels, Extent all,
               llvm::function_ref<void(Index, int64_t, Extent)> body);

//===--- products -------------------------------------------------------------------------------------------------===//

/// Of a task of `tileM` rows and `tileN` columns; what is not known counts as usual.
double taskFlops(const Product &p, int64_t tileM, int64_t tileN);

/// Sets the parameters of `params` that products have.
void chooseProduct(const Product &p, const RegionProblem &region, Schedule::Params &params);

/// What tuning tries on a machine with registers like `unit` instead of `chosen`; also convolutionAlternatives.
llvm::SmallVector<kernel::ScheduleAttr> productAlternatives(const Product &p, Schedule chosen, const VectorUnit &unit);

/// Tasks: batch elements, blocks of columns, blocks of rows.
llvm::SmallVector<mlir::AffineExpr> productGrid(const Product &p, Schedule schedule);

/// Floats of the scratch: first the packed panels, then the copied rows.
mlir::AffineExpr packedFloats(const Product &p, Schedule schedule);

/// Panels of B for each batch element when a launch of its own packs them: whole blocks of `tileN` columns.
mlir::AffineExpr launchPanels(const Product &p, Schedule schedule);

/// Elements from a copied row to the next one.
mlir::AffineExpr copyStride(const Product &p);

/// Of a copied tile of rows when A is transposed. Tiles are not a multiple of 4 KiB apart: they are written in turns.
mlir::AffineExpr copiedTileFloats(const Product &p, int64_t rows);

/// Elements of the rows that a task copies.
mlir::AffineExpr copyFloats(const Product &p, Schedule schedule);

/// Tasks: blocks of `tileN` columns of a batch element.
Launch packingLaunch(const Product &p, Schedule schedule);

/// Tasks: blocks of `tileM` rows of a batch element.
Launch copyingLaunch(const Product &p, Schedule schedule);

/// Code of the tasks [begin, end) of copyingLaunch, of packingLaunch, and of the product.
void emitCopying(const Product &p, Schedule schedule, Emitter &em, mlir::Value begin, mlir::Value end);
void emitPacking(const Product &p, Schedule schedule, Emitter &em, mlir::Value begin, mlir::Value end);
void emitProduct(const Product &p, Schedule schedule, const Epilogue &epilogue, Emitter &em, mlir::Value begin,
                 mlir::Value end);

//===--- convolutions ---------------------------------------------------------------------------------------------===//

/// The packed filter: [group][panel][k][16], without the group if it is 1. Columns of other groups fill the last panel.
std::optional<PackedInput> packedFilter(const Convolution &c, llvm::function_ref<bool(unsigned)> isConstant);

/// Those that have outputs, the most of them first.
llvm::SmallVector<PatchTap> patchTaps(const Convolution &c, int64_t height, int64_t width, bool wholeH, bool wholeW);

/// Of a task of `tileH` x `tileW` pixels and `tileN` columns.
double taskFlops(const Convolution &c, int64_t tileH, int64_t tileW, int64_t tileN);

/// Sets the parameters that convolutions have; fails for those that other strategies do better.
mlir::LogicalResult chooseConvolution(const Convolution &c, const RegionProblem &region, Schedule::Params &params);

llvm::SmallVector<kernel::ScheduleAttr> convolutionAlternatives(const Convolution &c, Schedule chosen,
                                                                const VectorUnit &unit);

/// Tasks: batch elements, outer dims, then groups and blocks of columns, and blocks of pixels; which of the two is
/// first is rasterOrder.
llvm::SmallVector<mlir::AffineExpr> convolutionGrid(const Convolution &c, Schedule schedule);

/// Elements of the input that a task copies.
int64_t convolutionFloats(const Convolution &c, Schedule schedule);

/// Tasks: panels of a filter that only the run knows.
Launch packingLaunch(const Convolution &c);

/// Code of the tasks [begin, end) of packingLaunch, and of the convolution.
void emitPacking(const Convolution &c, Emitter &em, mlir::Value begin, mlir::Value end);
void emitConvolution(const Convolution &c, Schedule schedule, const Epilogue &epilogue, Emitter &em, mlir::Value begin,
                     mlir::Value end);

} // namespace tc::codegen::contract

#endif // TC_LIB_CODEGEN_CPU_CONTRACT_H
