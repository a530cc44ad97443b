//===- Sort.h - the "gpu.sort" strategy: what its parts share -------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CODEGEN_GPU_SORT_H
#define TC_LIB_CODEGEN_GPU_SORT_H

#include "GPU/Gpu.h"

namespace tc::codegen::gpu {

using SortSchedule = kernel::GpuSortAttr;

/// Rows of `keys` keys, of which the numbers of the first `count` are wanted, for each position in the batch: a line.
struct SortProblem {
  mutable prim::ArgSortOp op; // accessors of ops are not const
  llvm::SmallVector<mlir::AffineExpr> batch;
  mlir::AffineExpr rows, keys, count;

  mlir::Type element() const;
  mlir::AffineExpr lines() const { return prim::product(op->getContext(), batch); }
  /// Whether networks sort it: rows are one key each.
  bool isSingle() const;

  /// Bits that tell keys apart.
  unsigned keyBits() const;
  /// Whether the numbers of rows may take more than 32 bits.
  bool isHuge() const;
  /// A key and the number of its row in one word, unsigned words in the order of the rows: of 32, 64 or 128 bits.
  unsigned wordBits() const;
  /// Bits of the number.
  unsigned numberBits() const { return wordBits() / 2; }
};

/// Elements that a team sorts.
inline int64_t networkSize(SortSchedule s) { return s.getItems() * s.getAcross(); }
/// Elements of a line of a launch that merges parts into such of twice `length`: what may be asked for.
mlir::AffineExpr keptOf(const SortProblem &p, int64_t length);
/// Number of parts of that length that the line's sorted parts make.
mlir::AffineExpr partsOfLength(const SortProblem &p, int64_t length);
/// Number of parts of a line that launch `number`, which sorts, takes one by one; 1: lines are not cut.
mlir::AffineExpr partsOfLaunch(const SortProblem &p, SortSchedule s, unsigned number);
/// What a launch leaves for the next one: `words` words of each line.
mlir::RankedTensorType wordsType(const SortProblem &p, mlir::AffineExpr words);
/// Words of a line that are left by launches that sort parts.
mlir::AffineExpr leftWords(const SortProblem &p, SortSchedule s);

/// Threads of a block that merges.
inline constexpr int64_t kMergeThreads = 256;

/// A block of launch `number`, which sorts, and of merge `number`.
void emitNetwork(const SortProblem &p, SortSchedule s, unsigned number, Emitter &e, mlir::Value task);
void emitMerge(const SortProblem &p, SortSchedule s, unsigned number, Emitter &e, mlir::Value task);

/// Bits of a digit, and threads of a block that sorts by digits: one for each value that a digit has.
inline constexpr int64_t kDigitBits = 8, kDigitThreads = 1 << kDigitBits;
/// The launches of a sort by digits, and a block of launch `number`.
llvm::SmallVector<Launch> makeDigitLaunches(const SortProblem &p, SortSchedule s);
void emitDigits(const SortProblem &p, SortSchedule s, unsigned number, Emitter &e, mlir::Value task);

} // namespace tc::codegen::gpu

#endif // TC_LIB_CODEGEN_GPU_SORT_H
