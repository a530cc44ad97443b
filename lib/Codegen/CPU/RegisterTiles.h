//===- RegisterTiles.h - how many rows and panels a micro-kernel takes ----------------------------------*- C++ -*-===//
//
// What schedules of products ask before there is code: what fits the registers, what a tile costs, which one is best.
// MicroKernel.h makes the code.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CODEGEN_CPU_REGISTERTILES_H
#define TC_LIB_CODEGEN_CPU_REGISTERTILES_H

#include "tc/Dialect/Kernel/IR/Kernel.h"
#include "tc/Dialect/Machine/IR/Machine.h"
#include "tc/Dialect/Prim/IR/Prim.h"

namespace tc::codegen {

using machine::VectorUnit;

/// Columns of a panel of B: 64 bytes of f32, two vectors of AVX2 or one of AVX-512.
inline constexpr int64_t kPanel = 16;

inline int64_t ceilDiv(int64_t value, int64_t by) { return (value + by - 1) / by; }
inline int64_t roundUp(int64_t value, int64_t to) { return ceilDiv(value, to) * to; }
/// Whether the panels in use and the next ones, `bytes` each, stay in the second-level cache.
inline bool fitsTwice(int64_t bytes) { return 2 * bytes <= machine::kCaches.l2 / 8 * 5; }

/// The register file as vectors of width() elements of `element` see it: a vector of f64 takes two registers.
VectorUnit unitFor(const VectorUnit &unit, mlir::Type element);
/// Whether the accumulators of rows x panels stay in registers.
bool fitsRegisters(const VectorUnit &unit, int64_t rows, int64_t panels);
/// Estimated cycles for one step of K.
double microKernelCycles(const VectorUnit &unit, int64_t rows, int64_t panels);

/// A micro-kernel's.
struct Tile {
  int64_t rows = 1, panels = 1;
};
/// The micro-kernel for so many rows and panels with at most `maxRows` rows; unknown extents count as a large number
/// without remainder. `isStreamed`: all of B comes from memory once, and nothing but its loads takes time. (Not for
/// more rows than one: with 2 to 14 rows kernels of many panels were 0.6 to 0.9 times as fast as those of two, fetched
/// ahead.) `within`: not 0: the number of panels divides it, so that a task's panels are whole groups on every CPU.
Tile chooseTile(const VectorUnit &unit, std::optional<int64_t> rows, std::optional<int64_t> panels, int64_t maxRows,
                bool isStreamed = false, int64_t within = 0);
/// The cheapest `count` tiles beside `chosen`, the cheapest first; for tuning.
llvm::SmallVector<Tile> otherTiles(const VectorUnit &unit, std::optional<int64_t> rows, std::optional<int64_t> panels,
                                   int64_t maxRows, Tile chosen, size_t count, bool isStreamed = false);
/// Cycles to bring one step of K of so many panels from memory, `group` of them, which lie apart, at a time.
double streamCycles(int64_t panels, int64_t group);
/// Cycles per step of K of a rows x panels block cut into micro-kernels.
double blockCycles(const VectorUnit &unit, int64_t rows, int64_t panels, Tile tile);

/// The one with the widest vectors, which a task's size is made for.
inline const VectorUnit &widestUnit() { return *std::prev(std::end(machine::kVectorUnits)); }
/// The least number of panels that is a whole number of groups of panels on all of them: `cols` of the schedule.
int64_t commonPanels(kernel::CpuContractAttr schedule);

/// The size of the parts in which reshapes of the region split the last `columns` elements of what its anchor makes (a
/// head of attention, a phase of a transposed convolution), if lanes had better not cross them: none of fewer than
/// `least`, or of whole vectors. Else 0.
int64_t splitColumns(kernel::RegionOp region, int64_t columns, int64_t least);

} // namespace tc::codegen

#endif // TC_LIB_CODEGEN_CPU_REGISTERTILES_H
