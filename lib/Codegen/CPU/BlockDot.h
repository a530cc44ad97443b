//===- BlockDot.h - the parts of the "cpu.block_dot" strategy -------------------------------------------*- C++ -*-===//
//
// BlockDot.cpp decides and packs, BlockDotTasks.cpp emits.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CODEGEN_CPU_BLOCKDOT_H
#define TC_LIB_CODEGEN_CPU_BLOCKDOT_H

#include "CPU/MicroKernel.h"
#include "Common/Generators.h"

namespace tc::codegen::block_dot {

using Schedule = kernel::CpuBlockDotAttr;

struct Problem {
  mutable prim::BlockDotOp op; // accessors of ops are not const
  /// Null for an op outside of a region.
  const Epilogue *epilogue = nullptr;
  mlir::AffineExpr M;
  std::optional<int64_t> m;
  int64_t n, k, bits, block, blocks;
  bool packedZeros = false, floatZeros = false;
  /// The number that all scales, or all zeros in f32, are.
  std::optional<double> scaleNumber, zeroNumber;

  int64_t panels() const { return ceilDiv(n, kPanel); }
  int64_t blockWords() const { return block * bits / 32; }
  int64_t words() const { return blocks * blockWords(); }
  int64_t wordSteps() const { return 32 / bits; }
  /// A number is a byte, and the numbers of a step lie side by side.
  bool hasBytes() const { return bits == 8; }
  int64_t zeroBytes() const { return ceilDiv(blocks * bits, 8); }
  double centre() const { return double(op.getCentre()); }
  /// Rows end within a block: the task copies them and fills the block with zeros.
  bool isPadded() const { return k % block != 0; }
  int64_t rowFloats() const { return isPadded() ? blocks * block : k; }
  /// Numbers come out of a table less the centre.
  bool hasTable(const VectorUnit &unit) const { return unit.bits == 512 && bits <= 4; }
  bool hasZeros() const { return packedZeros || floatZeros; }
  /// What the numbers are off by everywhere, as they are decoded; nullopt: a table tells.
  std::optional<double> offset(const VectorUnit &unit) const {
    if (hasZeros())
      return std::nullopt;
    return zeroNumber.value_or(centre()) - (hasTable(unit) ? centre() : 0);
  }
  bool needsSums(const VectorUnit &unit) const { return offset(unit) != 0.0; }
};

/// Offsets in floats of the parts of a worker's scratch.
struct Layout {
  int64_t copy, sums, panels, result, end;
  Layout(const Problem &p, Schedule schedule, const VectorUnit &unit) {
    int64_t rows = schedule.rowsFor(unit.bits), tileM = schedule.getTileM(), columns = schedule.panelColsFor(unit.bits);
    int64_t copied = schedule.getLhsCopy() ? tileM : p.isPadded() ? rows : 0;
    copy = 0;
    sums = copy + copied * roundUp(p.rowFloats(), kPanel);
    panels = sums + (p.needsSums(unit) ? roundUp(rows * p.blocks, kPanel) : 0);
    bool many = tileM > rows || p.needsSums(unit);
    result = panels + (many ? columns * schedule.getDepth() : 0);
    end = result + (many ? tileM * columns : 0);
  }
};

/// Tasks: blocks of columns, blocks of rows.
llvm::SmallVector<mlir::AffineExpr> grid(const Problem &p, Schedule schedule);

/// Code of the tasks [begin, end).
void emit(const Problem &p, Schedule schedule, Emitter &em, mlir::Value begin, mlir::Value end);

} // namespace tc::codegen::block_dot

#endif // TC_LIB_CODEGEN_CPU_BLOCKDOT_H
