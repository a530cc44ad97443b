//===- SharedTile.h - a product's operands in shared memory ---------------------------------------------*- C++ -*-===//
//
// Tensor cores read a tile of an operand as lines of 128 bytes: along K where K is contiguous in memory, else along
// rows or columns, several panels of lines beside each other. The 16-byte pieces of line l lie at their number xor l %
// 8, so that eight lines' pieces fall into different banks: what ldmatrix and warpgroups' products (their swizzle of
// 128 bytes) both read.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CODEGEN_GPU_SHAREDTILE_H
#define TC_LIB_CODEGEN_GPU_SHAREDTILE_H

#include "GPU/TensorCores.h"

namespace tc::codegen::gpu {

inline constexpr int64_t kLineBytes = 128, kPieceBytes = 16, kPieces = kLineBytes / kPieceBytes, kSwizzledLines = 8;

/// How a tile lies in shared memory.
struct SharedTile {
  /// Rows or columns of the product, and steps of K.
  int64_t outer, depth;
  int64_t bytes; // of an element
  /// Lines are along K; else along rows or columns.
  bool alongDepth;

  int64_t lines() const { return alongDepth ? outer : depth; }
  int64_t panels() const { return (alongDepth ? depth : outer) * bytes / kLineBytes; }
  int64_t panelBytes() const { return lines() * kLineBytes; }
  int64_t size() const { return panels() * panelBytes(); }
  int64_t perLine() const { return kLineBytes / bytes; }
  int64_t perPiece() const { return kPieceBytes / bytes; }
};

/// Fragments of 16 rows or columns, from `first` (i32) of the tile at `base` on, by step `step` of kFragmentBytes:
/// words of four 8x8 matrices, those of the same steps beside each other where `byLines`, else those of the same rows
/// or columns.
llvm::SmallVector<mlir::Value> loadFragment(Emitter &e, const SharedTile &tile, mlir::Value base, mlir::Value first,
                                            int64_t step, bool byLines);
/// What describes the tile at `shared` to warpgroups, and its step `step` of kFragmentBytes.
mlir::Value describe(Emitter &e, const SharedTile &tile, mlir::Value shared);
mlir::Value atStep(Emitter &e, const SharedTile &tile, mlir::Value description, int64_t step);

/// `condition` (i1; null: true) and position < size, for positions in a tile of `tileSize` from a multiple of it on:
/// the condition alone where whole tiles fill the size.
mlir::Value andWithin(Emitter &e, mlir::Value condition, mlir::Value position, mlir::AffineExpr size, int64_t tileSize);

/// The words of a row of f32 sums in shared memory: more than its columns, so that a warp's accesses meet all banks.
constexpr int64_t sumRowWords(int64_t columns) { return columns + 8; }
/// Writes the fragments of a warp's sums, `columns` beside each other, whose rows and columns are `firstRow`... and
/// `firstColumn`... (i32) of a block's, which has `blockColumns`.
void storeFragments(Emitter &e, mlir::Value shared, int64_t blockColumns, mlir::Value firstRow, mlir::Value firstColumn,
                    int64_t columns, llvm::ArrayRef<mlir::Value> sums);
/// A piece of a block's sums: `lanes` neighbours from `column` of `row` on.
struct SumsPiece {
  mlir::Value row, column, sums;
};
/// Where a block's sums lie in shared memory: rows [0, rows) and columns [0, columns) of the `blockColumns`.
struct BlockSums {
  mlir::Value shared;
  int64_t blockColumns, threads, rows, columns, lanes;
};
/// Calls fn for the thread's pieces, several at once.
void forSums(Emitter &e, const BlockSums &block, llvm::function_ref<void(llvm::ArrayRef<SumsPiece>)> fn);

/// A place in an operand, which is zero where `isValid` (i1; null: it is everywhere) does not hold.
template <typename T> struct Placed {
  T at;
  mlir::Value isValid;
};
/// Stores what the epilogue makes of a block's sums. `place` gives the position in the result of a piece, or one near
/// it where the piece is not valid, which then is not stored. What several pieces read is read before any is stored.
void storeSums(Emitter &e, const Epilogue &epilogue, const BlockSums &block,
               llvm::function_ref<Placed<llvm::SmallVector<Index>>(mlir::Value row, mlir::Value column)> place);
/// `position`, or the last multiple of `step` before `size` where it is further, if `condition` tells of such.
mlir::Value clampTo(Emitter &e, mlir::Value condition, mlir::Value position, mlir::AffineExpr size, int64_t step);

/// An operand of the product, of which blocks take tiles.
struct TiledOperand {
  using Batch = llvm::ArrayRef<Index>;

  mlir::Value tensor;
  mlir::AffineExpr outer, depth; // its sizes
  /// Its elements lie contiguous in memory along K; else along rows or columns.
  bool alongDepth;
  /// What so many neighbours along that dim are a multiple of, from multiples of it on.
  int64_t run;
  /// The region's input that it is, if pieces of 16 bytes of a tile lie there as they are; else what stands before the
  /// product is computed.
  std::optional<unsigned> input;
  /// How far its lines of that input are apart, in elements, where all are by the same: what tensor copies take.
  struct Lines {
    mlir::AffineExpr stride;
    llvm::SmallVector<mlir::AffineExpr> batchStrides;

    /// Dims of the batch along which the lines differ, the last first.
    llvm::SmallVector<size_t> batchDims() const {
      llvm::SmallVector<size_t> dims;
      for (size_t i = batchStrides.size(); i-- > 0;)
        if (batchStrides[i] != 0)
          dims.push_back(i);
      return dims;
    }
  };
  std::optional<Lines> lines;
  /// Where in that input, in elements.
  std::function<Placed<mlir::Value>(Emitter &, Batch, mlir::Value outer, mlir::Value depth)> locate;
  /// Position in `tensor`; one of the two may have lanes.
  std::function<Placed<llvm::SmallVector<Index>>(Emitter &, Batch, const Index &outer, const Index &depth)> place;
};

/// Writes tiles of an operand to shared memory, by all threads of a block or some.
class TileFiller {
public:
  /// `firstOuter`: of the block's tile. i64. `rounds`: what is computed, of f32, is rounded to TF32. `thread`: its
  /// number of `threads` (i32; null: the block's).
  TileFiller(Emitter &e, const TiledOperand &operand, const SharedTile &tile, llvm::ArrayRef<Index> batch,
             mlir::Value firstOuter, int64_t threads, bool rounds = false, mlir::Value thread = {});

  /// Tiles of the operand are copied as they lie.
  static bool isAsync(const TiledOperand &operand, const SharedTile &tile) {
    return operand.input && operand.alongDepth == tile.alongDepth;
  }
  bool isAsync() const { return isAsync(operand, tile); }
  /// Begins to copy the tile of steps `firstDepth`..., to `shared`.
  void copy(mlir::Value firstDepth, mlir::Value shared) const;
  /// Computes the thread's share of the tile; for `store`, which computes what is taken element by element itself.
  llvm::SmallVector<mlir::Value> compute(mlir::Value firstDepth) const;
  void store(llvm::ArrayRef<mlir::Value> pieces, mlir::Value firstDepth, mlir::Value shared) const;
  /// Where piece `piece` of line `line` of a panel lies, in bytes.
  mlir::Value pieceOffset(int64_t panel, mlir::Value line, mlir::Value piece) const;

private:
  /// Calls fn(panel, number of the thread's line, line) for the thread's lines. Lines are `step` apart.
  void forLines(llvm::function_ref<void(int64_t panel, mlir::Value line)> fn) const;
  /// Calls fn() where the tile has this line of the thread.
  void ifLine(mlir::Value line, llvm::function_ref<void()> fn) const;
  /// Row or column, and step of K, of the element `first` of a piece.
  std::pair<mlir::Value, mlir::Value> positionOf(int64_t panel, mlir::Value line, mlir::Value piece, int64_t first,
                                                 mlir::Value firstDepth) const;
  /// The piece of its line that the thread takes.
  mlir::Value pieceOfThread() const { return words.rem(thread, kPieces); }
  mlir::Value rounded(mlir::Value x) const { return rounds ? roundToTf32(e, x) : x; }
  /// How a tile is computed: pieces by vectors; blocks of 4x4 elements of four bytes, which vectors across the lines
  /// are turned to; or element by element.
  enum class Way { Pieces, Blocks, Elements };
  Way way() const;
  /// Calls fn(first row or column, first step) of the tile for the thread's blocks.
  void forBlocks(llvm::function_ref<void(mlir::Value outer, mlir::Value depth)> fn) const;
  /// width() neighbours of the operand along `inner`, whichever of the two it is; zeros outside.
  mlir::Value computeLanes(mlir::Value outer, mlir::Value depth) const;
  /// i1, with `isValid` where that is not null; null where the position lies inside whatever the tile.
  mlir::Value isInside(mlir::Value outer, mlir::Value depth, mlir::Value isValid) const;

  Emitter &e;
  Words words;
  const TiledOperand &operand;
  SharedTile tile;
  llvm::SmallVector<Index> batch;
  mlir::Value firstOuter, thread;
  int64_t threads;
  bool rounds;
};

} // namespace tc::codegen::gpu

#endif // TC_LIB_CODEGEN_GPU_SHAREDTILE_H
