//===- SortWords.h - the "gpu.sort" strategy: keys with the numbers of their rows ------------------------*- C++
//-*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CODEGEN_GPU_SORTWORDS_H
#define TC_LIB_CODEGEN_GPU_SORTWORDS_H

#include "GPU/Sort.h"

namespace tc::codegen::gpu {

/// Words of a problem, and what is made of them.
class SortWords {
public:
  using Predicate = mlir::arith::CmpIPredicate;

  SortWords(const SortProblem &p, Emitter &e) : p(p), e(e), b(e.builder()), type(b.getIntegerType(p.wordBits())) {}

  int64_t bytes() const { return p.wordBits() / 8; }
  mlir::Value constant(int64_t value) const;
  /// Behind all words, which pads what is sorted.
  mlir::Value last() const { return constant(-1); }
  mlir::Value compare(Predicate predicate, mlir::Value x, mlir::Value y) const;
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y) const;
  mlir::Value bitAnd(mlir::Value x, mlir::Value y) const;
  /// Both conditions; null: none.
  mlir::Value both(mlir::Value x, mlir::Value y) const { return !x ? y : !y ? x : bitAnd(x, y); }

  /// Of the row at `position` of the line at `line` in the batch.
  mlir::Value make(llvm::ArrayRef<Index> line, mlir::Value position) const;
  /// i64: the row's number.
  mlir::Value number(mlir::Value word) const;
  /// i32: so many bits of the key from `low` on.
  mlir::Value keyBits(mlir::Value word, int64_t low, int64_t count) const;

  mlir::Value load(mlir::Value pointer, mlir::Value offset) const;
  void store(mlir::Value word, mlir::Value pointer, mlir::Value offset) const;
  /// The word of the lane whose number differs by `mask`.
  mlir::Value shuffled(mlir::Value word, int32_t mask) const;
  /// The word where the condition holds (null: it does), else the last one.
  mlir::Value where(mlir::Value condition, mlir::Value word) const {
    return condition ? select(condition, word, last()) : word;
  }

  const SortProblem &p;
  Emitter &e;
  mlir::OpBuilder &b;
  const mlir::Type type;

private:
  mlir::Value resized(mlir::Value x, mlir::Type to) const;
};

} // namespace tc::codegen::gpu

#endif // TC_LIB_CODEGEN_GPU_SORTWORDS_H
