//===- ChooseSchedule.cpp - decide how each region runs -----------------------------------------------------------===//
//
// Asks the code generators; of those that accept a region, the one whose kernels take the least time by their cost
// model writes the schedule attribute. Regions that have one already (from tuning or a test) keep it.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Common/Generators.h"
#include "tc/Analysis/LikelySizes.h"
#include "tc/Codegen/Passes.h"
#include "tc/Codegen/Schedules.h"
#include "tc/Dialect/Host/IR/Host.h"
#include "tc/Dialect/Kernel/IR/Disabled.h"
#include "tc/Dialect/TC/IR/ErrorKind.h"
#include "tc/Dialect/TC/IR/NodeNames.h"
#include "tc/Support/Logging.h"
#include "tc/Support/NodePattern.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

namespace tc::codegen {
#define GEN_PASS_DEF_CHOOSESCHEDULEPASS
#include "tc/Codegen/Passes.h.inc"

using namespace mlir;

namespace {

// A region of so few operations is worth a try as plain loops.
constexpr int64_t kLoopsFlops = 200'000;
// A kernel that at most so many threads can share is worth a try with more and with fewer of them.
constexpr int64_t kFewThreads = 16;

/// The same schedule with work for more and for fewer threads.
void addGrains(const RegionProblem &region, const Generator &generator, kernel::ScheduleAttr schedule,
               llvm::SetVector<kernel::ScheduleAttr> &all) {
  auto tasks = prim::getConstantSize(generator.launches(region, schedule).back().tasks);
  const int64_t grain = schedule.getGrain();
  if (!tasks || grain < 1 || *tasks < 2 || *tasks / grain >= kFewThreads)
    return;
  for (int64_t other : {std::max<int64_t>(1, grain / 4), grain * 4})
    // With a grain beyond the tasks there is one thread, whatever the grain.
    if (std::min(other, *tasks) != std::min(grain, *tasks))
      all.insert(schedule.withGrain(other));
}

/// Flops of a machine at its best, a core or a GPU, in the time that a byte takes.
double getFlopsPerByte(MLIRContext *context, machine::TargetKind target) {
  if (machine::getDevice(target) == machine::DeviceKind::Cpu)
    return machine::kCpuFlopsPerByte;
  machine::GpuAttr gpu = machine::getDefaultGpu(context);
  return double(gpu.getGigaflops()) / double(gpu.getGigabytesPerSecond());
}

/// How long the region takes by `schedule`, in the time that a byte takes. Without a cost all schedules are equal, and
/// where likely sizes leave no elements.
double estimate(const RegionProblem &problem, const Generator &generator, kernel::ScheduleAttr schedule,
                double flopsPerByte) {
  kernel::RegionOp region = problem.getOp();
  base::CostAttr cost = region.getCostAttr();
  if (!cost)
    return 0;
  const Efficiency reached = generator.efficiency(problem, schedule);
  return std::max(
      {0.0, double(evaluateLikely(cost.getFlopsExpr(), region, usual::kExtent)) / (flopsPerByte * reached.arithmetic),
       double(evaluateLikely(cost.getBytesExpr(), region, usual::kExtent)) / reached.bandwidth});
}

/// What each generator of the target that takes the region would do.
struct Choice {
  const Generator *generator;
  kernel::ScheduleAttr schedule;
  double time;
};
SmallVector<Choice> getChoices(const RegionProblem &problem, machine::TargetKind target) {
  SmallVector<Choice> choices;
  const double flopsPerByte = getFlopsPerByte(problem.getOp().getContext(), target);
  for (const Generator *generator : allGenerators(target)) {
    FailureOr<kernel::ScheduleAttr> schedule = generator->choose(problem);
    if (succeeded(schedule))
      choices.push_back({generator, *schedule, estimate(problem, *generator, *schedule, flopsPerByte)});
  }
  return choices;
}

/// Whose generators a region is for: what is disabled gets plain loops, which only CPUs have.
machine::TargetKind getTarget(kernel::RegionOp region, machine::TargetKind target) {
  return region->hasAttr(kernel::kDisabledAttr) && target == machine::TargetKind::Cpu ? machine::TargetKind::Reference
                                                                                      : target;
}

struct ChooseSchedulePass : public impl::ChooseSchedulePassBase<ChooseSchedulePass> {
  using ChooseSchedulePassBase::ChooseSchedulePassBase;

  /// One schedule serves all GPUs: shared memory is what a block may have of each.
  llvm::Expected<GpuLimits> getLimits() {
    SmallVector<machine::GpuAttr> all;
    for (const std::string &name : gpus) {
      llvm::Expected<machine::GpuAttr> gpu = machine::parseGpu(&getContext(), name);
      if (!gpu)
        return gpu.takeError();
      all.push_back(*gpu);
    }
    if (all.empty())
      all = machine::getDefaultGpus(&getContext());
    GpuLimits limits;
    for (machine::GpuAttr gpu : all) {
      limits.sharedBytes = std::min(limits.sharedBytes, gpu.getSharedBytesPerBlock());
      limits.hasWarpGroups |= gpu.hasMma(machine::MmaKind::WarpGroup);
    }
    return limits;
  }

  /// Whether all products of the region may take TF32.
  bool allowsTf32(kernel::RegionOp region, const NodeValues &ofNodes) {
    bool allows = allowTf32;
    bool isFirst = true;
    region.getBody().walk([&](Operation *op) {
      if (!isa<prim::DotGeneralOp, prim::ConvOp>(op))
        return;
      const bool here = ofNodes.find(base::getNodeNames(op->getLoc()), allowTf32 ? "tf32" : "f32") == "tf32";
      allows = here && (isFirst || allows);
      isFirst = false;
    });
    return allows;
  }

  void runOnOperation() override {
    llvm::Expected<GpuLimits> limits = getLimits();
    if (!limits) {
      getOperation().emitError() << "option gpus: " << llvm::toString(limits.takeError());
      return signalPassFailure();
    }
    const NodeValues ofNodes(llvm::to_vector(nodePrecisions));
    WalkResult result = getOperation().walk([&](kernel::RegionOp region) {
      if (region.getSchedule())
        return WalkResult::advance();
      limits->allowsTf32 = allowsTf32(region, ofNodes);
      const RegionProblem problem(region, *limits);
      const SmallVector<Choice> choices = getChoices(problem, getTarget(region, target));
      const auto best = llvm::min_element(choices, [](auto &a, auto &b) { return a.time < b.time; });
      if (best == choices.end()) {
        base::emitUnsupported(region) << "no code generator of target " << machine::stringifyTargetKind(target)
                                      << " takes this region";
        return WalkResult::interrupt();
      }
      region.setScheduleAttr(best->schedule);
      if (log::isEnabled("schedule")) {
        std::string text;
        llvm::raw_string_ostream(text) << host::joinNodeNames(region) << ": " << best->schedule;
        log::write("schedule", text);
      }
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace

SmallVector<StrategyChoice> getStrategyChoices(kernel::RegionOp region, machine::TargetKind target) {
  return llvm::map_to_vector(getChoices(RegionProblem(region), getTarget(region, target)), [](const Choice &choice) {
    return StrategyChoice{choice.generator->strategy(), choice.time};
  });
}

SmallVector<kernel::ScheduleAttr> getScheduleCandidates(kernel::RegionOp region, machine::CpuAttr cpu) {
  ArrayRef<const Generator *> generators = allGenerators(machine::TargetKind::Cpu);
  // The last generator takes everything, if slowly.
  base::CostAttr cost = region.getCostAttr();
  auto flops = cost ? prim::getConstantSize(cost.getFlopsExpr()) : std::nullopt;
  const bool isSmall = flops && *flops <= kLoopsFlops;
  const RegionProblem problem(region);
  llvm::SetVector<kernel::ScheduleAttr> chosen, others;
  for (const Generator *generator : generators) {
    if (generator == generators.back() && !chosen.empty() && !isSmall)
      break;
    FailureOr<kernel::ScheduleAttr> schedule = generator->choose(problem);
    if (succeeded(schedule)) {
      chosen.insert(*schedule);
      addGrains(problem, *generator, *schedule, others);
    }
    others.insert_range(generator->alternatives(problem, cpu));
  }
  if (chosen.empty())
    return {};
  chosen.insert_range(others);
  return chosen.takeVector();
}

} // namespace tc::codegen
