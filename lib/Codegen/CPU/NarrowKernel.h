//===- NarrowKernel.h - the innermost loops of products of bytes and of bf16 ----------------------------*- C++ -*-===//
//
// C[rows][panels * 16] = A[rows][K] B[K][panels * 16] with A of ui8, B of i8 and sums of i32 that wrap, or with A and B
// of bf16 and sums of f32. A word is 4 bytes: neighbouring steps of K, four of bytes, two of bf16. B lies in panels of
// 16 columns whose words are [panel][K / steps][16], a multiple of 16 lines of 64 bytes. Rows of A hold zeros from K on
// up to there (up to a whole word where there is no AMX): what bytes B holds there does not count; bf16 must be finite.
//
// By what the CPU has:
//   AMX         tdpbusd, tdpbf16ps: 16 x 16 sums and 16 words of K at a time; blocks of 32 x 32.
//   VNNI, BF16  vpdpbusd, vdpbf16ps: a word of products a lane, added to its sum; a lane is a column.
//   neither     Rows of A are widened, to 16 or 32 bits. Bytes: vpmaddwd on operands widened to 16 bits (vpmaddubsw
//               would saturate), a lane is half the steps of a column, and neighbouring lanes are added at the end.
//               bf16: the two halves of B's words as f32, multiplied one after the other.
//
// vdpbf16ps and tdpbf16ps take denormal operands and sums for zeros.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CODEGEN_CPU_NARROWKERNEL_H
#define TC_LIB_CODEGEN_CPU_NARROWKERNEL_H

#include "CPU/MicroKernel.h"

namespace tc::codegen {

/// Bytes of the steps of K that are neighbours in a panel, and of those of its 16 columns.
inline constexpr int64_t kWordBytes = 4, kLineBytes = kPanel * kWordBytes;
/// Lines of a panel come in this number, those of one AMX tile.
inline constexpr int64_t kTileLines = 16;
/// Rows of an AMX tile, and of a block of two.
inline constexpr int64_t kTileRows = 16, kTileBlockRows = 32;

/// What is multiplied.
struct NarrowKind {
  bool isFloat;

  /// Steps of K in a word.
  int64_t steps() const { return isFloat ? 2 : 4; }
  int64_t elementBytes() const { return kWordBytes / steps(); }
  /// Of the rows of A where there is no instruction for words.
  int64_t wideBytes() const { return 2 * elementBytes(); }
  /// Steps of K of an AMX tile.
  int64_t tileSteps() const { return kTileLines * steps(); }
  /// Lines of a panel for this K, and its bytes.
  int64_t lines(int64_t depth) const { return roundUp(ceilDiv(depth, steps()), kTileLines); }
  int64_t panelBytes(int64_t depth) const { return lines(depth) * kLineBytes; }
  /// Has an instruction for words on its registers; and one for tiles.
  bool hasDot(machine::CpuAttr cpu) const {
    return cpu.has(isFloat ? machine::CpuUnits::Bf16 : machine::CpuUnits::Vnni);
  }
  bool hasTiles(machine::CpuAttr cpu) const {
    return cpu.has(isFloat ? machine::CpuUnits::AmxBf16 : machine::CpuUnits::AmxInt8);
  }
  /// Types in memory: of the operands' elements, of those of widened rows of A, of the sums.
  mlir::Type elementType(mlir::OpBuilder &b) const;
  mlir::Type wideType(mlir::OpBuilder &b) const;
  mlir::Type sumType(mlir::OpBuilder &b) const;
  /// An element of A, or a vector of them, as widened ones.
  mlir::Value widen(mlir::OpBuilder &b, mlir::Location loc, mlir::Value value) const;
};
inline constexpr NarrowKind kBytes{false}, kBfloats{true};

struct NarrowKernel {
  NarrowKind kind;
  mlir::Value a, b, c;  // row 0, first panel, tile of sums
  int64_t rows, panels; // of this kernel
  int64_t depth;        // K
  int64_t rowBytes;     // between rows of A
  int64_t tileColumns;  // sums between rows of the tile
  /// If not 0: each word's step also fetches the line so many further of each panel. For panels that come from memory
  /// and that no other call reads soon. (Without AMX.)
  int64_t prefetchLines = 0;
  /// If set: of the panels that lie there, as many as these, this call fetches part `part` of `parts` to the
  /// second-level cache, for the calls that follow. (With AMX.)
  mlir::Value next = {}, part = {};
  int64_t parts = 1;
};

/// Without AMX.
void emitNarrowKernel(Emitter &em, const NarrowKernel &kernel);

/// With AMX: up to `rows` rows (16 or 32) and two panels, as the tile configuration says. Rows of A must be readable to
/// the end of the last tile's steps of K.
void emitTileKernel(Emitter &em, const NarrowKernel &kernel);
/// Loads the tile configuration for blocks of `height` rows (i64, 1 to 32) from `buffer`, of 64 bytes, which it writes.
/// A null height stands for full blocks.
void emitTileConfiguration(Emitter &em, mlir::Value buffer, mlir::Value height);
void emitTileRelease(Emitter &em);

} // namespace tc::codegen

#endif // TC_LIB_CODEGEN_CPU_NARROWKERNEL_H
