//===- ChooseSchedule.cpp - decide how each region runs -----------------------------------------------------------===//
//
// Asks the code generators; of those that accept a region, the one whose kernels take the least time by their cost
// model writes the schedule attribute, and on GPUs cases for sizes at which it would have another one (SizeCases.h).
// Regions that have one already (from tuning or a test) keep it.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Common/Generators.h"
#include "Common/SizeCases.h"
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
// Schedules of a region that are measured on a GPU, and how many times as long as the first choice a strategy may take
// by the cost model to be one of them.
constexpr size_t kMostOnGpus = 8;
constexpr double kWorthATry = 4;

/// A region of so few operations that plain loops may be the fastest.
bool isSmall(kernel::RegionOp region) {
  base::CostAttr cost = region.getCostAttr();
  auto flops = cost ? prim::getConstantSize(cost.getFlopsExpr()) : std::nullopt;
  return flops && *flops <= kLoopsFlops;
}

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

  void runOnOperation() override {
    SmallVector<machine::GpuAttr> all;
    for (const std::string &name : gpus) {
      llvm::Expected<machine::GpuAttr> gpu = machine::parseGpu(&getContext(), name);
      if (!gpu) {
        getOperation().emitError() << "option gpus: " << llvm::toString(gpu.takeError());
        return signalPassFailure();
      }
      all.push_back(*gpu);
    }
    const GpuLimitsOfRegions limits(&getContext(), all, allowTf32, llvm::to_vector(nodePrecisions));
    WalkResult result = getOperation().walk([&](kernel::RegionOp region) {
      const RegionProblem problem(region, limits.get(region));
      if (region.getSchedule()) {
        auto tuned = dyn_cast_or_null<DenseI64ArrayAttr>(region->removeAttr(kTunedSizesAttr));
        const Generator *generator = tuned ? lookupGenerator(region.getScheduleAttr(), target) : nullptr;
        if (generator && generator->takes(problem))
          addSizeCases(problem, *generator, tuned);
        return WalkResult::advance();
      }
      const SmallVector<Choice> choices = getChoices(problem, getTarget(region, target));
      const auto best = llvm::min_element(choices, [](auto &a, auto &b) { return a.time < b.time; });
      if (best == choices.end()) {
        base::emitUnsupported(region) << "no code generator of target " << machine::stringifyTargetKind(target)
                                      << " takes this region";
        return WalkResult::interrupt();
      }
      region.setScheduleAttr(best->schedule);
      if (machine::getDevice(target) != machine::DeviceKind::Cpu)
        addSizeCases(problem, *best->generator);
      if (log::isEnabled("schedule")) {
        std::string text;
        llvm::raw_string_ostream stream(text);
        stream << host::joinNodeNames(region) << ": " << region.getScheduleAttr();
        if (const ArrayAttr cases = region.getCasesAttr())
          stream << ", of fewer elements " << cases;
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
  const bool takesLoops = isSmall(region);
  const RegionProblem problem(region);
  llvm::SetVector<kernel::ScheduleAttr> chosen, others;
  for (const Generator *generator : generators) {
    if (generator == generators.back() && !chosen.empty() && !takesLoops)
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

GpuLimitsOfRegions::GpuLimitsOfRegions(MLIRContext *context, ArrayRef<machine::GpuAttr> gpus, bool allowTf32,
                                       ArrayRef<std::string> nodePrecisions)
    : allowTf32(allowTf32), ofNodes(nodePrecisions) {
  // Shared memory is what a block may have of each.
  SmallVector<machine::GpuAttr> all(gpus);
  if (all.empty())
    all = machine::getDefaultGpus(context);
  for (machine::GpuAttr gpu : all) {
    common.sharedBytes = std::min(common.sharedBytes, gpu.getSharedBytesPerBlock());
    common.hasWarpGroups |= gpu.hasMma(machine::MmaKind::WarpGroup);
  }
}

GpuLimits GpuLimitsOfRegions::get(kernel::RegionOp region) const {
  GpuLimits limits = common;
  // All products of the region may take TF32, or none does.
  limits.allowsTf32 = allowTf32;
  bool isFirst = true;
  region.getBody().walk([&](Operation *op) {
    if (!isa<prim::DotGeneralOp, prim::ConvOp>(op))
      return;
    const bool here = ofNodes.find(base::getNodeNames(op->getLoc()), allowTf32 ? "tf32" : "f32") == "tf32";
    limits.allowsTf32 = here && (isFirst || limits.allowsTf32);
    isFirst = false;
  });
  return limits;
}

SmallVector<kernel::ScheduleAttr> getScheduleCandidates(kernel::RegionOp region, const GpuLimits &limits) {
  const RegionProblem problem(region, limits);
  SmallVector<Choice> choices = getChoices(problem, machine::TargetKind::Cuda);
  llvm::stable_sort(choices, [](const Choice &a, const Choice &b) { return a.time < b.time; });
  // The last generator takes everything, if slowly: a thread computes all that an element needs.
  const Generator *loops = allGenerators(machine::TargetKind::Cuda).back();
  // But it has no code for what stands alone.
  const bool takesLoops = isSmall(region) && llvm::none_of(problem.getBody(), [](Operation &op) {
                            return prim::getRole(&op) == prim::Role::Alone;
                          });
  llvm::erase_if(choices, [&, first = choices.empty() ? Choice() : choices.front()](const Choice &choice) {
    return choice.generator != first.generator &&
           ((choice.generator == loops && !takesLoops) || choice.time > kWorthATry * first.time);
  });
  llvm::SetVector<kernel::ScheduleAttr> all;
  for (const Choice &choice : choices)
    all.insert(choice.schedule);
  for (const Choice &choice : choices)
    for (kernel::ScheduleAttr other : choice.generator->alternatives(problem, machine::CpuAttr()))
      if (all.size() < kMostOnGpus)
        all.insert(other);
  return all.takeVector();
}

} // namespace tc::codegen
