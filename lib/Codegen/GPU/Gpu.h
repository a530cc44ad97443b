//===- Gpu.h - what the GPU generators share ------------------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CODEGEN_GPU_GPU_H
#define TC_LIB_CODEGEN_GPU_GPU_H

#include "Common/Anchor.h"
#include "Common/Generators.h"

namespace tc::codegen::gpu {
using namespace tc::codegen;

/// Neighbouring elements that a thread computes at once, where rows are multiples of so many.
inline constexpr int64_t kLanes = 4;
/// Registers of a processor.
inline constexpr int64_t kRegisters = 65536;

/// threadIdx.x as i64.
mlir::Value threadIndex(Emitter &e);
/// bar.sync of the whole block.
void barrier(Emitter &e);
/// A shared array of the kernel, as a generic pointer; `name` is unique within the kernel.
mlir::Value sharedArray(Emitter &e, llvm::StringRef name, mlir::Type element, int64_t count);
/// Makes the block's `threads` threads the emitter's team: of 32 or a multiple, or 1, 2, 4 .. 32 of a larger block.
void makeTeam(Emitter &e, int64_t threads, int64_t teams = 1);
/// The value of the lane whose number differs by `mask`, for any type of up to 64 bits.
mlir::Value shuffle(Emitter &e, mlir::Value value, int32_t mask);
/// The value of the lane `distance` before this one; of lanes without one, their own.
mlir::Value shuffleUp(Emitter &e, mlir::Value value, int32_t distance);
/// `value` as a vector where there are several lanes: what does not depend on them comes as a scalar.
mlir::Value vectorOf(Emitter &e, mlir::Value value, int64_t lanes);
/// `lanes` floats, a vector if there are several.
mlir::Value loadFloats(Emitter &e, mlir::Value pointer, int64_t lanes);
/// What depends on the epilogue's result at `at`, which is `sums`, one or a vector of f32.
EpilogueValues computeFromSums(Emitter &e, const Epilogue &epilogue, llvm::ArrayRef<Index> at, mlir::Value sums);
/// Launch::device of blocks of so many threads, with so many bytes of dynamic shared memory. `isAlone`: a processor has
/// room for one at least, which is all that is wanted: threads may have as many registers.
mlir::DictionaryAttr deviceAttr(mlir::MLIRContext *context, int64_t threads, int64_t sharedBytes = 0,
                                bool isAlone = false);

/// A launch of a thread for each of `items`.
Launch launchOf(mlir::AffineExpr items, int64_t block);
/// Calls fn for the thread's item, where it has one, in such a launch.
void forItem(Emitter &e, mlir::AffineExpr items, int64_t block, mlir::Value task, llvm::function_ref<void(Index)> fn);
/// A schedule that fits, with what it costs by its generator's model.
template <typename ScheduleT> struct CostedSchedule {
  double cost;
  ScheduleT schedule;
};
/// Generator::compare by the costs of all schedules that fit.
template <typename ScheduleT> double compareCosts(llvm::ArrayRef<CostedSchedule<ScheduleT>> all, ScheduleT schedule) {
  double least = std::numeric_limits<double>::infinity(), own = least;
  for (const CostedSchedule<ScheduleT> &costed : all) {
    least = std::min(least, costed.cost);
    if (costed.schedule == schedule)
      own = std::min(own, costed.cost);
  }
  return own < kUnfitSchedule * least ? own / least : kUnfitSchedule;
}

/// The same schedule with blocks of fewer threads, which more processors share, and of more.
template <typename ScheduleT> llvm::SmallVector<kernel::ScheduleAttr> withOtherBlocks(ScheduleT schedule) {
  llvm::SmallVector<kernel::ScheduleAttr> others;
  typename ScheduleT::Params params = schedule.getParams();
  const int64_t block = params.block;
  for (int64_t other : {block / 2, block / 4, block * 2}) {
    params.block = other;
    others.push_back(params.get(schedule.getContext()));
  }
  return others;
}
} // namespace tc::codegen::gpu

#endif // TC_LIB_CODEGEN_GPU_GPU_H
