//===- IntegerKernel.h - the innermost loops of products of bytes ---------------------------------------*- C++ -*-===//
//
// C[rows][panels * 16] = A[rows][K] B[K][panels * 16] with A of ui8, B of i8 and sums of i32 that wrap. B lies in
// panels of 16 columns in which four steps of K are neighbours, [panel][K / 4][16][4], up to a multiple of 64 steps.
// Rows of A hold zeros from K on up to there (up to a multiple of 4 where there is no AMX): what B holds does not
// count.
//
// By what the CPU has:
//   AMX        tdpbusd: 16 x 16 sums and 64 steps of K at a time; blocks of 32 x 32.
//   VNNI       vpdpbusd: four products a lane, added to i32; a lane is a column. 4 times the products of an f32 FMA.
//   neither    vpmaddwd on operands widened to 16 bits (vpmaddubsw would saturate): two products a lane, a lane is half
//              the steps of a column; neighbouring lanes are added at the end. Rows of A are of 16 bits.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CODEGEN_CPU_INTEGERKERNEL_H
#define TC_LIB_CODEGEN_CPU_INTEGERKERNEL_H

#include "CPU/MicroKernel.h"

namespace tc::codegen {

/// Steps of K that are neighbours in a panel.
inline constexpr int64_t kQuad = 4;
inline constexpr int64_t kQuadBytes = kPanel * kQuad;
/// Quads of a panel come in this number, those of one AMX tile.
inline constexpr int64_t kTileQuads = 16;
/// Rows of an AMX tile, and of a block of two.
inline constexpr int64_t kTileRows = 16, kTileBlockRows = 32;

/// Bytes of a panel for this K.
inline int64_t panelBytes(int64_t depth) { return roundUp(ceilDiv(depth, kQuad), kTileQuads) * kQuadBytes; }

struct IntegerKernel {
  mlir::Value a, b, c;  // row 0, first panel, tile of i32
  int64_t rows, panels; // of this kernel
  int64_t depth;        // K
  int64_t rowBytes;     // between rows of A
  int64_t tileColumns;  // i32 between rows of the tile
};

/// With vpdpbusd or vpmaddwd.
void emitIntegerKernel(Emitter &em, const IntegerKernel &kernel);

/// With tdpbusd: up to `rows` rows (16 or 32) and two panels, as the tile configuration says. Rows of A must be
/// readable to the end of the last tile's 64 steps of K.
void emitTileKernel(Emitter &em, const IntegerKernel &kernel);
/// Loads the tile configuration for blocks of `height` rows (i64, 1 to 32) from `buffer`, of 64 bytes, which it writes.
/// A null height stands for full blocks.
void emitTileConfiguration(Emitter &em, mlir::Value buffer, mlir::Value height);
void emitTileRelease(Emitter &em);

} // namespace tc::codegen

#endif // TC_LIB_CODEGEN_CPU_INTEGERKERNEL_H
