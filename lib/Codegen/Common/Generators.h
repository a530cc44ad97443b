//===- Generators.h - how a scheduled region becomes kernels --------------------------------------------*- C++ -*-===//
//
// A generator stands for one strategy of the schedule attribute. `choose` holds its heuristics and writes all decisions
// into the attribute; everything else obeys it. tc-choose-schedule asks all generators and takes the one whose kernels
// take the least time by their cost model; of equal ones the first.
//
// A strategy is written as a GeneratorFor its schedule and its problem, which is what it takes of a region:
//
//   struct Problem { const Product &product; const Epilogue &epilogue; };
//   class FooGenerator : public GeneratorFor<kernel::CpuFooAttr, Problem> {
//     analyze(region)                -> Problem, or nullopt: it has no code for this region
//     decide(region, problem)        -> schedule, or failure: others are better at it
//     packInputs, makeLaunches, emitTasks(problem, schedule, ...)
//   };
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_CODEGEN_GENERATORS_H
#define TC_LIB_CODEGEN_GENERATORS_H

#include "Common/Emitter.h"
#include "tc/Analysis/RegionProblem.h"
#include "tc/Codegen/Passes.h"

#include "mlir/IR/AffineMap.h"

namespace tc::codegen {

/// A constant input that the kernel wants in another layout: host.constant with `map` and, if not null, `transform`,
/// result type `type`; `tf32`: rounded to the numbers that tensor cores take.
struct PackedInput {
  unsigned input;
  mlir::AffineMap map;
  mlir::RankedTensorType type;
  mlir::DenseElementsAttr transform = {};
  bool tf32 = false;
};

/// One host.launch. Its inputs are the region's inputs, then the temporaries of the launches before it; its outputs are
/// `temporaries`; for the last launch the region's outputs, then its temporaries, which are memory that its tasks
/// share.
struct Launch {
  /// Appended to the kernel's name; empty for the last.
  std::string suffix;
  mlir::AffineExpr tasks;
  /// Least number of tasks worth a thread; null: the schedule's.
  mlir::AffineExpr grain;
  /// Step s does tasks [s * tasks, (s + 1) * tasks), when those before are done. Null: one step.
  mlir::AffineExpr steps;
  /// Bytes of scratch a worker, a multiple of 64 (scratchBytes); null: none.
  mlir::AffineExpr scratch;
  /// (input, output) pairs, flattened, that may share memory.
  llvm::SmallVector<int64_t, 2> inPlace;
  /// (input, output) pairs, flattened: the output is the input's memory, a temporary of a launch before, and has its
  /// type.
  llvm::SmallVector<int64_t, 2> tied;
  llvm::SmallVector<mlir::RankedTensorType> temporaries;
  /// Does the region's work, which profiles compare with its time. Where no launch says so, the last one does.
  bool doesWork = false;
  /// GPU kernels: {block = [threads, 1, 1], smem = bytes}; the grid is `tasks` blocks. `alone`: threads have as many
  /// registers as one block leaves them. Null: a CPU kernel.
  mlir::DictionaryAttr device;
};

/// So many bytes of scratch, at least, as a Launch wants them.
inline mlir::AffineExpr scratchBytes(mlir::MLIRContext *context, int64_t bytes) {
  return mlir::getAffineConstantExpr(int64_t(llvm::alignTo(uint64_t(bytes), 64)), context);
}
/// Least number of tasks of `perTask` operations, bytes or cycles that are worth a thread, where so many of these are.
inline int64_t grainFor(double leastWork, double perTask) {
  return std::max<int64_t>(1, int64_t(leastWork / std::max(perTask, 1.0)));
}

/// How many times as long as the best schedule another one takes, of which no more is known, or at sizes that it is not
/// for.
inline constexpr double kOtherSchedule = 1.3, kUnfitSchedule = 4;

/// Shares of what a machine reaches at its best.
struct Efficiency {
  double arithmetic = 1, bandwidth = 1;
};

class Generator {
public:
  virtual ~Generator() = default;
  virtual llvm::StringRef strategy() const = 0;
  /// Whether it has code for this composite op, as an anchor of a region; others are decomposed before.
  virtual bool takesWhole(mlir::Operation *composite) const { return false; }
  /// Whether it has code for this region: what `packing`, `launches` and `emit` rely on.
  virtual bool takes(const RegionProblem &region) const = 0;
  /// The schedule for this region, or failure if this strategy can't take it or had better not.
  virtual mlir::FailureOr<kernel::ScheduleAttr> choose(const RegionProblem &region) const = 0;
  /// What kernels of this schedule reach, by which tc-choose-schedule compares it with those of other strategies.
  virtual Efficiency efficiency(const RegionProblem &region, kernel::ScheduleAttr schedule) const { return {}; }
  /// Other schedules that are worth measuring on a CPU of this kind, or where it is null on the GPUs of the region's
  /// limits, whether `choose` accepts or not: a few, the likeliest first. What they say is as safe to obey as what
  /// `choose` says, and computes the same up to the order of sums.
  virtual llvm::SmallVector<kernel::ScheduleAttr> alternatives(const RegionProblem &region,
                                                               machine::CpuAttr cpu) const = 0;
  /// How many times as long as with the best schedule kernels take with this one at the likely sizes; nullopt: one
  /// schedule is for all sizes that only the run knows. It is asked of each of several sizes.
  virtual std::optional<double> compare(const RegionProblem &region, kernel::ScheduleAttr schedule) const = 0;
  /// What its kernels make use of that default CPU variants lack, the best last: there is a variant for each.
  virtual llvm::SmallVector<machine::CpuUnits> gainsFrom() const { return {}; }
  /// Constant inputs to pack. The packed layout is the same for all CPU variants.
  virtual llvm::SmallVector<PackedInput> packing(const RegionProblem &region, kernel::ScheduleAttr schedule) const = 0;
  /// The launches, in order; at least one.
  virtual llvm::SmallVector<Launch> launches(const RegionProblem &region, kernel::ScheduleAttr schedule) const = 0;
  /// Emits tasks [begin, end) of launch `number` at the emitter's insertion point.
  virtual void emit(const RegionProblem &region, kernel::ScheduleAttr schedule, unsigned number, Emitter &emitter,
                    mlir::Value begin, mlir::Value end) const = 0;
};

/// A generator whose strategy is the attribute `ScheduleT`, and which takes regions that are a `ProblemT`. A problem
/// may refer to answers of the RegionProblem that it was made of.
template <typename ScheduleT, typename ProblemT> class GeneratorFor : public Generator {
public:
  llvm::StringRef strategy() const final { return ScheduleT::strategy; }
  bool takes(const RegionProblem &region) const final { return analyze(region).has_value(); }
  mlir::FailureOr<kernel::ScheduleAttr> choose(const RegionProblem &region) const final {
    const std::optional<ProblemT> problem = analyze(region);
    if (!problem)
      return mlir::failure();
    mlir::FailureOr<ScheduleT> schedule = decide(region, *problem);
    if (mlir::failed(schedule))
      return mlir::failure();
    return kernel::ScheduleAttr(*schedule);
  }
  llvm::SmallVector<kernel::ScheduleAttr> alternatives(const RegionProblem &region, machine::CpuAttr cpu) const final {
    const std::optional<ProblemT> problem = analyze(region);
    if (!problem)
      return {};
    return cpu ? decideOthers(region, *problem, cpu) : decideOthersOnGpus(region, *problem);
  }
  std::optional<double> compare(const RegionProblem &region, kernel::ScheduleAttr schedule) const final {
    const std::optional<ProblemT> problem = analyze(region);
    return problem ? compareAtSizes(region, *problem, mlir::cast<ScheduleT>(schedule)) : std::nullopt;
  }
  llvm::SmallVector<PackedInput> packing(const RegionProblem &region, kernel::ScheduleAttr schedule) const final {
    return packInputs(*analyze(region), mlir::cast<ScheduleT>(schedule));
  }
  llvm::SmallVector<Launch> launches(const RegionProblem &region, kernel::ScheduleAttr schedule) const final {
    llvm::SmallVector<Launch> launches = makeLaunches(*analyze(region), mlir::cast<ScheduleT>(schedule));
    for (Launch &launch : launches)
      if (!launch.grain)
        launch.grain = mlir::getAffineConstantExpr(schedule.getGrain(), schedule.getContext());
    return launches;
  }
  void emit(const RegionProblem &region, kernel::ScheduleAttr schedule, unsigned number, Emitter &emitter,
            mlir::Value begin, mlir::Value end) const final {
    emitTasks(*analyze(region), mlir::cast<ScheduleT>(schedule), number, emitter, begin, end);
  }

protected:
  /// The region as a problem of this strategy; nullopt if it has no code for it.
  virtual std::optional<ProblemT> analyze(const RegionProblem &region) const = 0;
  /// As `choose`, `alternatives`, `packing`, `launches` and `emit`.
  virtual mlir::FailureOr<ScheduleT> decide(const RegionProblem &region, const ProblemT &problem) const = 0;
  /// As `compare`.
  virtual std::optional<double> compareAtSizes(const RegionProblem &region, const ProblemT &problem,
                                               ScheduleT schedule) const {
    return std::nullopt;
  }
  /// For those that have no cost model: whether `decide` has the same at these sizes.
  double compareWithChoice(const RegionProblem &region, const ProblemT &problem, ScheduleT schedule) const {
    const mlir::FailureOr<ScheduleT> chosen = decide(region, problem);
    return succeeded(chosen) && *chosen == schedule ? 1 : kOtherSchedule;
  }
  /// `alternatives` of a CPU's strategy, and of a GPU's.
  virtual llvm::SmallVector<kernel::ScheduleAttr> decideOthers(const RegionProblem &region, const ProblemT &problem,
                                                               machine::CpuAttr cpu) const {
    return {};
  }
  virtual llvm::SmallVector<kernel::ScheduleAttr> decideOthersOnGpus(const RegionProblem &region,
                                                                     const ProblemT &problem) const {
    return {};
  }
  virtual llvm::SmallVector<PackedInput> packInputs(const ProblemT &problem, ScheduleT schedule) const { return {}; }
  virtual llvm::SmallVector<Launch> makeLaunches(const ProblemT &problem, ScheduleT schedule) const = 0;
  virtual void emitTasks(const ProblemT &problem, ScheduleT schedule, unsigned number, Emitter &emitter,
                         mlir::Value begin, mlir::Value end) const = 0;
};

/// All generators of a target, in the order in which they are asked.
llvm::ArrayRef<const Generator *> allGenerators(machine::TargetKind target);
/// The generator of the schedule's strategy; null if the target has none.
const Generator *lookupGenerator(kernel::ScheduleAttr schedule, machine::TargetKind target);

// One per file.
#define TC_DECLARE_GENERATOR(function) const Generator *function();
#define TC_CPU_GENERATOR TC_DECLARE_GENERATOR
#define TC_CUDA_GENERATOR TC_DECLARE_GENERATOR
#define TC_REFERENCE_GENERATOR TC_DECLARE_GENERATOR
#include "Common/Generators.def"
#undef TC_DECLARE_GENERATOR

/// Adds the CPU variants that the generator's kernels gain from.
void addVariants(const Generator &generator, llvm::SmallVectorImpl<machine::CpuAttr> &cpus);

} // namespace tc::codegen

#endif // TC_LIB_CODEGEN_GENERATORS_H
