//===- Loops.h - the parts of the "cpu.loops" strategy --------------------------------------------------*- C++ -*-===//
//
// Loops.cpp decides and makes launches, with what LoopRows.cpp and LoopSegments.cpp know of a region; LoopTasks.cpp
// emits.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CODEGEN_CPU_LOOPS_H
#define TC_LIB_CODEGEN_CPU_LOOPS_H

#include "Common/Emitter.h"
#include "Common/Generators.h"

#include "llvm/ADT/SetVector.h"

namespace tc::codegen::loops {

using Schedule = kernel::CpuLoopsAttr;

/// Whether a reduction is along the last of the dims `sizes`: of a row, or of a short last dim that lanes span with
/// others.
bool isAlongLast(prim::ReduceOp reduce, llvm::ArrayRef<mlir::AffineExpr> sizes);

/// Whether the op combines elements other than as prim.reduce does, which may be kept, joined and hoisted.
inline bool combinesOtherwise(mlir::Operation *op) {
  const prim::Role role = prim::getRole(op);
  return role == prim::Role::Contraction || role == prim::Role::Window ||
         (role == prim::Role::Reduce && !mlir::isa<prim::ReduceOp>(op));
}

/// Rough scalar operations per element of `value`, reductions multiplied by their extents (symbolic ones count 64), but
/// for those along the last of `rows`, if it is not empty: these are made once for a row.
double costOf(mlir::Value value, llvm::DenseMap<mlir::Value, double> &known,
              llvm::ArrayRef<mlir::AffineExpr> rows = {});

/// What is computed from one value, as far as it stays in the value's row (its last dim).
class RowUses {
public:
  explicit RowUses(mlir::Value value);

  /// Whether everything is read at the row that it is computed in.
  bool isLocal() const { return local; }
  /// Passes over the row that read the value: reductions of it, and the output.
  size_t passes() const { return reductions.size() + reachesOutput; }
  /// The first of the reductions; null: none.
  mlir::Value firstReduction() const {
    auto first = llvm::min_element(reductions, [](auto a, auto b) { return a->isBeforeInBlock(b); });
    return first == reductions.end() ? mlir::Value() : (*first)->getResult(0);
  }

private:
  /// `reads`: `value` is made of the followed value's element, not only of its reductions.
  bool follow(mlir::Value value, bool reads);

  llvm::SmallVector<mlir::AffineExpr> row;
  bool local = false, reachesOutput = false;
  llvm::SmallSetVector<mlir::Operation *, 4> reductions;
  llvm::DenseSet<std::pair<mlir::Value, unsigned>> seen;
};

/// The value that is worth keeping for a row of `root`; null: none.
mlir::Value chooseKept(mlir::Value root, mlir::Block &block, bool lanes);

/// What a launch of its own computes: the values made of reductions over trailing dims that everything else of the
/// region reads, one element of each for a row of the reductions. Empty: there are none, or reductions of another kind.
llvm::SmallVector<mlir::Value> rowResults(kernel::RegionOp region, mlir::Value root);

/// Whether tasks that are rows of `root`, or segments of them, would compute `results` (see above) again and again, or
/// leave threads idle.
bool isWorthLaunch(mlir::Value root, llvm::ArrayRef<mlir::Value> results);

/// How many of the last dims of `sizes` tasks and lanes take as one; 0: none. Lanes stay evenly spaced in each of the
/// dims as long as those behind it are powers of two of elements that a vector holds.
int64_t countEvenlyJoined(llvm::ArrayRef<mlir::AffineExpr> sizes);

/// How many of the last dims of `sizes` all but the first of which have one element; 0: none of one element.
int64_t countUnitJoined(llvm::ArrayRef<mlir::AffineExpr> sizes);

/// Elements of the last `joined` dims but the first of them, where lanes are not evenly spaced in it; else 0.
int64_t oddPart(llvm::ArrayRef<mlir::AffineExpr> sizes, int64_t joined);

/// The same for dims that hold any small number of elements of what `block` computes.
int64_t countOddlyJoined(llvm::ArrayRef<mlir::AffineExpr> sizes, mlir::Block &block);

/// Bytes that are read and written for each element of `root`. Of what is larger, only parts are.
double bytesPerElement(kernel::RegionOp region, mlir::Value root);

/// The last `joined` dims as one.
llvm::SmallVector<mlir::AffineExpr> joinLast(llvm::ArrayRef<mlir::AffineExpr> sizes, int64_t joined);

/// Reductions whose results make up the outputs, element by element, and rough scalar operations of what is in between.
struct Finish {
  llvm::SmallSetVector<mlir::Value, 4> reductions;
  double cost = 0;
};
Finish finishOf(kernel::RegionOp region, mlir::Value root);

/// Whether the region's input is as large as `root`, and comes from beyond the second-level cache.
bool isFetched(mlir::BlockArgument argument, llvm::ArrayRef<mlir::AffineExpr> sizes);

/// So many rows further down is what the pass over a row fetches. `isKept`: it keeps what it computes, exponentials,
/// which takes as long as the next row is on its way.
int64_t fetchedRows(kernel::RegionOp region, mlir::Value root, bool isKept);

/// Positions from `begin` on, whose indices begin with `first` and lie `step` apart.
struct Run {
  int64_t begin, first, step;
};

/// A gather along the rows through a constant list, by runs.
struct GatherRuns {
  mutable prim::GatherOp op; // accessors of ops are not const
  llvm::SmallVector<Run> runs;
};

/// A concat along the rows, or one that is an input of such a concat alone, and the element of a row that it begins at.
struct PlacedConcat {
  mutable prim::ConcatOp op; // accessors of ops are not const
  int64_t begin;
};

/// The concats along the rows of `root`, and gathers through constant lists, that are read at the written position
/// only, and the elements of a row at which their inputs and runs, or several short inputs, begin, with its length at
/// the end.
struct Segments {
  llvm::SmallVector<PlacedConcat> concats;
  llvm::SmallVector<GatherRuns> gathers;
  llvm::SmallVector<int64_t> bounds;
};
Segments segmentsOf(kernel::RegionOp region, mlir::Value root);

/// The input of the concat that holds the elements [begin, end) of a row, and its first element in the concat; null:
/// several do, or none.
std::pair<mlir::Value, int64_t> inputAt(const PlacedConcat &concat, int64_t begin, int64_t end);

/// The elements of the rows of which the last dim of `input` is put together, if lanes that cross them would gather
/// each element: the rows lie apart behind a gather or a transpose, and are no whole vectors. Else 0.
int64_t segmentStride(mlir::Value input);

/// Whether loops of their own are worth it for the segments of a row that is cut into chunks or not.
bool isInSegments(const Segments &segments, bool isCut);

/// How many of the last dims of `root` make a row that is put together of many short segments; 0: none do.
int64_t countOfShortSegments(mlir::Block &block, mlir::Value root);

/// A value that several passes over a row need, and the reduction of the first pass.
struct Kept {
  mlir::Value value, reduction;
};
Kept getKept(kernel::RegionOp region, Schedule schedule);

/// Code of the launch before, whose tasks are elements of `results`.
void emitRowResults(llvm::ArrayRef<mlir::Value> results, Emitter &e, mlir::Value begin, mlir::Value end);
/// Code of the tasks [begin, end), rows or segments of them. `isStreaming`: results are stored past the caches.
void emitRows(kernel::RegionOp region, Schedule schedule, Emitter &e, mlir::Value begin, mlir::Value end,
              bool isStreaming);

} // namespace tc::codegen::loops

#endif // TC_LIB_CODEGEN_CPU_LOOPS_H
