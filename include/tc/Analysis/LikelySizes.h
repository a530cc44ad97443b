//===- LikelySizes.h - what to plan for where only the run knows a size -------------------------------*- C++ -*-===//
//
// Schedules and fusion weigh tasks, caches and copies by numbers, also where a size is an expression over symbols. The
// likely size is what is usual for such a dim (the table below), unless the range that was declared for the symbols
// (--dim, or a front end's) leaves it out: then the nearest power of two within the range, else the nearest end. It is
// a guess: code must be right for every size, and a size that must not exceed a limit is asked for with
// prim::getConstantSize or prim::getSizeBounds.
//
// Example: rows of a product, usually 128. `n` without a range: 128; `n` in 1..8: 8; in 200..1000: 256; in 130..200:
// 130; in 1..100 and a multiple of 24: 72.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_ANALYSIS_LIKELYSIZES_H
#define TC_ANALYSIS_LIKELYSIZES_H

#include "tc/Dialect/Prim/IR/Prim.h"

namespace tc {

/// What is usual, by what a dim is. Strategies that plan for "so many that a task or block is full" give their own.
namespace usual {
/// A dim, or elements, of which nothing else is known.
inline constexpr int64_t kExtent = 64;
/// Elements of a row that is reduced, sorted or scattered whole.
inline constexpr int64_t kRowLength = 1024;
/// A symbol in the number of tasks or the cost of a launch, of which small ones are looked for.
inline constexpr int64_t kSymbol = 16;
/// Matrices of a batch, and images of one, where they lie in other dims than the first.
inline constexpr int64_t kBatch = 8;
/// Images: the first dim of a convolution's input.
inline constexpr int64_t kImages = 1;
/// Height and width of the image that a convolution writes; where its filter is packed in each run, in which a plan for
/// less is fair.
inline constexpr int64_t kImageSide = 56, kSmallImageSide = 32;
/// Height of an image of few channels.
inline constexpr int64_t kLineImageHeight = 64;
/// Of a product: rows and columns of its result, and what is summed up.
inline constexpr int64_t kProductRows = 128, kProductColumns = 256, kProductDepth = 256;
/// Rows and columns of a product of bytes or bf16, as models of these are the large ones.
inline constexpr int64_t kNarrowProductSide = 1024;
/// Of attention: keys, and heads of all of the batch.
inline constexpr int64_t kKeys = 128, kHeads = 16;
/// Side of an image of so many channels: networks halve the one as they double the other, ResNet from 56 pixels of 64
/// channels on. Larger images have more to gain than smaller ones to lose.
inline int64_t imageSideOf(int64_t channels) { return std::min(kImageSide, kImageSide * 64 / channels); }
} // namespace usual

/// While it lives, likely sizes in the function are those where its symbols are `sizes`, in order; further ones are 1.
/// Deciding for each of several sizes asks so; bounds stay those of the range.
class AssumedSizes {
public:
  AssumedSizes(mlir::Operation *function, mlir::DenseI64ArrayAttr sizes);
  ~AssumedSizes();
  AssumedSizes(const AssumedSizes &) = delete;
  AssumedSizes &operator=(const AssumedSizes &) = delete;

private:
  mlir::Operation *function;
};
/// The value of `expr` where symbols are `sizes`, in order; further ones are 1.
int64_t evaluateAt(mlir::AffineExpr expr, llvm::ArrayRef<int64_t> sizes);

/// The likely value of `size`, whose symbols are those of `symbols` (prim.symbols; null: none has a range); a constant
/// is itself. A single symbol's is a multiple of its divisor, if the range has one.
int64_t getLikelySize(mlir::AffineExpr size, mlir::ArrayAttr symbols, int64_t usual = usual::kExtent);
/// The same in the function around `scope`, for which sizes may be assumed.
int64_t getLikelySize(mlir::AffineExpr size, mlir::Operation *scope, int64_t usual = usual::kExtent);
/// The largest value that `size` may have in the function around `scope`; INT64_MAX: it has no bound.
int64_t getLargestSize(mlir::AffineExpr size, mlir::Operation *scope);
/// The likely value of `expr`, any expression, where each symbol has its likely one.
int64_t evaluateLikely(mlir::AffineExpr expr, mlir::Operation *scope, int64_t usual);
/// The product of the likely sizes; 1 for none.
double getLikelyCount(llvm::ArrayRef<mlir::AffineExpr> sizes, mlir::Operation *scope, int64_t usual = usual::kExtent);
/// The likely number of elements.
double getLikelyCount(mlir::Value value);

} // namespace tc

#endif // TC_ANALYSIS_LIKELYSIZES_H
