//===- Schedules.h - which schedules a region can have --------------------------------------------------*- C++ -*-===//
//
// For tuning (tc/Autotune): what there is to choose from, and by what a choice is known again.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_CODEGEN_SCHEDULES_H
#define TC_CODEGEN_SCHEDULES_H

#include "tc/Analysis/GpuLimits.h"
#include "tc/Dialect/Kernel/IR/Kernel.h"
#include "tc/Dialect/Machine/IR/Machine.h"
#include "tc/Support/NodePattern.h"

namespace tc::codegen {

/// Raised when a generator changes such that earlier measurements no longer tell which schedule is the fastest.
inline constexpr int64_t kGeneratorsVersion = 5;

/// Of a region whose schedule was measured on a GPU: the sizes of all symbols then (an array of i64).
/// tc-choose-schedule adds cases for others, and takes it away.
inline constexpr llvm::StringLiteral kTunedSizesAttr = "tc.tuned_sizes";

/// The schedules worth measuring for a CPU. The first is what tc-choose-schedule takes; empty: no generator
/// takes the region.
llvm::SmallVector<kernel::ScheduleAttr> getScheduleCandidates(kernel::RegionOp region, machine::CpuAttr cpu);

/// What the kernels of regions may use, where they are for GPUs.
class GpuLimitsOfRegions {
public:
  /// `gpus`: one schedule serves all of them; none: those that an artifact has by default. `allowTf32` and
  /// `nodePrecisions`: options of tc-choose-schedule.
  GpuLimitsOfRegions(mlir::MLIRContext *context, llvm::ArrayRef<machine::GpuAttr> gpus, bool allowTf32,
                     llvm::ArrayRef<std::string> nodePrecisions);
  GpuLimits get(kernel::RegionOp region) const;

private:
  GpuLimits common;
  bool allowTf32;
  NodeValues ofNodes;
};
/// The schedules worth measuring for GPUs: a few, as each is a compile. The first is what tc-choose-schedule takes,
/// then come the likeliest by the cost models; empty: no generator takes the region.
llvm::SmallVector<kernel::ScheduleAttr> getScheduleCandidates(kernel::RegionOp region, const GpuLimits &limits);

/// A strategy that has code for a region, and how long that takes by the cost model, in the time that a byte takes.
struct StrategyChoice {
  llvm::StringRef strategy;
  double time;
};
/// All of a target, in the order in which they are asked: tc-choose-schedule takes the first of those with the least
/// time.
llvm::SmallVector<StrategyChoice> getStrategyChoices(kernel::RegionOp region, machine::TargetKind target);

/// The CPU variants that tc-emit-kernels may make of these: with those, for the default ones, that a kernel may gain
/// from.
llvm::SmallVector<machine::CpuAttr> getPossibleVariants(llvm::ArrayRef<machine::CpuAttr> cpus);

} // namespace tc::codegen

#endif // TC_CODEGEN_SCHEDULES_H
