//===- KeySort.h - the first elements of a row in order ------------------------------------------------*- C++ -*-===//
//
// Sorts rows that have one key for each number, for the "sort" strategy. Elements become integers in the order of the
// keys, and are held with their numbers, so that nothing is gathered through numbers while they are sorted.
//
// A row is read once. While no more elements are held than `capacity`, all that may be among the first are appended;
// then those held are sorted, all but the first `count` forgotten, and the last of these is the limit for what follows:
// whoever reads a long row for few elements compares and goes on. Where everything is asked for, everything is held,
// and sorted once.
//
// Few elements of a long row have a limit before the first of them is held: lanes find their best elements of the row,
// or of its beginning, and of twice as many lanes as elements are asked for, as many are at least as good as the limit.
//
// What is held is sorted by counting. Few elements: each one's place is the number of those before it, which lanes
// count. Many: by digits, the lowest first, where digits that all elements share cost nothing.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CODEGEN_CPU_KEYSORT_H
#define TC_LIB_CODEGEN_CPU_KEYSORT_H

#include "Common/Emitter.h"

namespace tc::codegen {

struct KeySort {
  mlir::Type element;
  bool isDescending;
  mlir::AffineExpr length, count;
  /// Keys and numbers stand in two arrays. Else one i64 is both, which needs keys of up to 32 bits and numbers of up
  /// to 31.
  bool splitKeys;

  /// Bytes of scratch, a multiple of 64.
  mlir::AffineExpr scratchBytes() const;
  /// Sorts one row in `scratch`: `read` gives its elements, width() at a time, and `write` takes the numbers of the
  /// first `count` in order, as i64.
  void emit(Emitter &e, mlir::Value scratch, llvm::function_ref<mlir::Value(Index)> read,
            llvm::function_ref<void(Index, mlir::Value)> write) const;

private:
  struct Held {
    mlir::Value keys, numbers; // addresses; numbers: null where one i64 is both
  };
  struct State;

  mlir::AffineExpr capacity() const;
  mlir::AffineExpr room() const;
  bool holdsAll() const;
  mlir::Value heldKey(Emitter &e, mlir::Value ordered, mlir::Value number) const;
  mlir::Value limitAfter(Emitter &e, mlir::Value key) const;
  void emitFirst(Emitter &e, llvm::function_ref<mlir::Value(Index)> read,
                 llvm::function_ref<void(Index, mlir::Value)> write) const;
  mlir::Value worstKey(Emitter &e) const;
  void hold(Emitter &e, const State &state, Index at, mlir::Value key) const;
  int64_t sampleVectors(Emitter &e) const;
  void sample(Emitter &e, const State &state, llvm::function_ref<mlir::Value(Index)> read) const;
  void choose(Emitter &e, const State &state, Index at, mlir::Value key) const;
  void sort(Emitter &e, const State &state, mlir::Value n) const;
  void sortByRank(Emitter &e, const State &state, mlir::Value n) const;
  void sortByDigits(Emitter &e, const State &state, mlir::Value n) const;
};

} // namespace tc::codegen

#endif // TC_LIB_CODEGEN_CPU_KEYSORT_H
