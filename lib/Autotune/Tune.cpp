//===- Tune.cpp - schedules by measurement ------------------------------------------------------------------------===//
//
// A region is measured alone, as an artifact with the region as its only kernel, in process, with the variant that the
// runtime takes on this machine, or on its GPU; or elsewhere, for which a file gets the artifact. What a measurement
// decides is tc::measure's. A record counts only if its schedule is one of the candidates that the generators offer by
// now, so that no file can make the compiler obey what it would not choose itself.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Autotune/Tune.h"

#include "tc/Analysis/LikelySizes.h"
#include "tc/Analysis/RegionText.h"
#include "tc/Codegen/Schedules.h"
#include "tc/Dialect/Host/IR/Host.h"
#include "tc/Dialect/Kernel/IR/Disabled.h"
#include "tc/Dialect/Prim/IR/Prim.h"
#include "tc/Measure/Choose.h"
#include "tc/Measure/Database.h"
#include "tc/Measure/TuneFile.h"
#include "tc/Support/Hash.h"
#include "tc/Support/Logging.h"
#include "tc/Support/Progress.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tc;
using namespace tc::autotune;
using namespace tc::measure;

namespace {

// Of a region, for the progress bar: its schedules share it.
constexpr uint64_t kRegionWork = 1000;
// Of the time that kernels take to compile as probes, and shares of all time, for what comes after measuring.
constexpr double kBuildMargin = 2, kLeastRest = 0.1, kMostRest = 0.6;

using Clock = std::chrono::steady_clock;

std::string textOf(Attribute attribute) {
  std::string text;
  llvm::raw_string_ostream(text) << attribute;
  return text;
}

/// How `to` differs from `from`, in words.
std::string describeChange(kernel::ScheduleAttr from, kernel::ScheduleAttr to) {
  std::string text = to.getStrategy().str();
  if (from.getStrategy() != to.getStrategy())
    return text + " instead of " + from.getStrategy().str();
  llvm::raw_string_ostream os(text);
  for (auto [param, old] : llvm::zip_equal(to.getNumbers(), from.getNumbers()))
    if (param != old)
      os << ", " << param.first << " " << param.second << " instead of " << old.second;
  return text;
}

/// About the database, or another file that the user names.
llvm::Error databaseError(const std::string &sentence) {
  return llvm::createStringError(std::make_error_code(std::errc::invalid_argument), sentence);
}

bool isConstant(Value value) { return value.getDefiningOp<prim::ConstantOp>() != nullptr; }

class Tuner {
public:
  Tuner(ModuleOp module, const TuneOptions &options, BuildArtifact build)
      : module(module), options(options), build(build),
        machine(options.limits ? options.gpu.value_or(Machine()) : describeMachine(options.threads)) {}

  llvm::Expected<TuneReport> run();

private:
  /// What a region gets: null for the first choice of the generators.
  struct Decision {
    kernel::ScheduleAttr schedule;
    Outcome outcome;
  };

  llvm::Expected<Decision> decide(kernel::RegionOp region, const std::string &text);
  std::optional<Decision> lookup(kernel::RegionOp region, const std::string &key, std::string &whyNot) const;
  llvm::Expected<Decision> measure(kernel::RegionOp region, const std::string &key);
  llvm::Expected<Decision> propose(kernel::RegionOp region, const std::string &key);
  std::string keyText(kernel::RegionOp region) const;
  /// Whether sizes can be given to all symbols of the region; if not, says why not.
  std::string whyUnknown(kernel::RegionOp region) const;
  int64_t evaluate(AffineExpr expr, kernel::RegionOp region) const;
  OwningOpRef<ModuleOp> makeProbe(kernel::RegionOp region, ArrayRef<kernel::ScheduleAttr> schedules) const;
  /// What is measured, but for its schedules.
  TuneKernel describeKernel(kernel::RegionOp region, const std::string &key) const;
  std::optional<Runner> open(kernel::RegionOp region, kernel::ScheduleAttr schedule,
                             ArrayRef<machine::MachineAttr> variants, const TuneKernel &what, const Tensors &tensors,
                             std::string &error, const Runner *other = nullptr);
  /// Whether the rest of the compile needs the time that is left.
  bool isTimeOver() const;
  bool isForGpus() const { return options.limits.has_value(); }
  /// The variants that may run, the best first; of GPUs the chips.
  SmallVector<machine::MachineAttr> possibleVariants() const;
  /// Of the chips the one whose code the GPU runs; null: none.
  machine::MachineAttr findChip() const;
  SmallVector<kernel::ScheduleAttr> getCandidates(kernel::RegionOp region, machine::MachineAttr variant) const;
  /// Whose records are used, with what there is to say about it.
  llvm::Error chooseRecords(std::vector<std::string> &notes);

  ModuleOp module;
  const TuneOptions &options;
  BuildArtifact build;
  Machine machine;     ///< this one, or its GPU; without a name: there is no GPU
  std::string records; ///< the name of the machine whose records are used; empty: none
  Database database;
  unsigned measured = 0;
  std::string lastFailure; ///< of a measurement; empty: there was none
  std::string lost;        ///< why the GPU runs nothing any more in this process; empty: it does
  uint64_t workShown = 0;  ///< of the current region, of kRegionWork
  const Clock::time_point start = Clock::now();
  size_t kernelCount = 0;  ///< different ones
  double buildSeconds = 0; ///< of the probes with the generators' first choice,
  unsigned built = 0;      ///< which are so many
};

ArrayAttr symbolsOf(kernel::RegionOp region) {
  auto function = region->getParentOfType<func::FuncOp>();
  return function ? function->getAttrOfType<ArrayAttr>(prim::kSymbolsAttr) : ArrayAttr();
}

/// The largest size that --dim allows a symbol.
std::optional<int64_t> largest(ArrayAttr symbols, int64_t number) {
  if (!symbols || number >= int64_t(symbols.size()))
    return std::nullopt;
  auto symbol = cast<prim::SymbolAttr>(symbols[number]);
  if (symbol.getMax() == INT64_MAX)
    return std::nullopt;
  const int64_t divisor = std::max<int64_t>(1, symbol.getDivisor());
  return symbol.getMax() / divisor * divisor;
}

/// For people who read the database: what computes, and the sizes of the result.
std::string describe(kernel::RegionOp region) {
  std::string text;
  for (Operation &op : region.getBody().front().without_terminator())
    if (!prim::isMovedBy(&op, prim::Addressing::Strided))
      text += (op.getName().stripDialect() + " ").str();
  llvm::raw_string_ostream os(text);
  llvm::interleave(
      region.getResultTypes(), os,
      [&](Type type) {
        auto tensor = cast<RankedTensorType>(type);
        for (int64_t size : tensor.getShape())
          os << (ShapedType::isDynamic(size) ? "?" : std::to_string(size)) << "x";
        os << tensor.getElementType();
      },
      ", ");
  return text;
}

/// Where --dim gives no range: what is usual for such a dim, by what reads it; nullopt: no input has it as one, nor has
/// the model.
std::optional<int64_t> findLikely(kernel::RegionOp region, ArrayAttr symbols, int64_t number) {
  bool isConv = false;
  region.getBody().walk([&](prim::ConvOp) { isConv = true; });
  for (Value input : region.getInputs()) {
    if (isConstant(input))
      continue;
    const SmallVector<AffineExpr> sizes(prim::getSizes(input));
    for (auto [dim, size] : llvm::enumerate(sizes)) {
      auto symbol = dyn_cast<AffineSymbolExpr>(size);
      if (!symbol || int64_t(symbol.getPosition()) != number)
        continue;
      const int64_t outer = isConv ? usual::kImages : sizes.size() > 2 ? usual::kBatch : usual::kProductRows;
      return getLikelySize(size, symbols, dim == 0 ? outer : isConv ? usual::kImageSide : usual::kProductRows);
    }
  }
  if (!symbols || number >= int64_t(symbols.size()))
    return std::nullopt;
  return getLikelySize(getAffineSymbolExpr(unsigned(number), region.getContext()), symbols, usual::kProductRows);
}

/// The size that a region is measured at: the largest of a range, else a likely one.
std::optional<int64_t> findSize(kernel::RegionOp region, int64_t number) {
  ArrayAttr symbols = symbolsOf(region);
  std::optional<int64_t> size = largest(symbols, number);
  return size ? size : findLikely(region, symbols, number);
}

/// The sizes of all symbols that the region is measured at.
SmallVector<int64_t> findSizes(kernel::RegionOp region) {
  const ArrayAttr symbols = symbolsOf(region);
  SmallVector<int64_t> sizes;
  for (int64_t i = 0; i < int64_t(symbols ? symbols.size() : 0); ++i)
    sizes.push_back(findSize(region, i).value_or(1));
  return sizes;
}

/// " at n = 128", of the sizes for which there is no range; empty: there is none.
std::string describeLikely(kernel::RegionOp region) {
  ArrayAttr symbols = symbolsOf(region);
  std::string text;
  for (int64_t number : getSymbols(region))
    if (symbols && number < int64_t(symbols.size()) && !largest(symbols, number))
      text += (text.empty() ? " at " : ", ") + cast<prim::SymbolAttr>(symbols[number]).getName().str() + " = " +
              std::to_string(findSize(region, number).value_or(1));
  return text;
}

/// The symbols of the model that no input has as a dim: of dims that became one, they are parts of sizes.
SmallVector<int64_t> findUnbound(kernel::RegionOp region) {
  llvm::SmallDenseSet<int64_t> bound;
  for (Value input : region.getInputs())
    if (!isConstant(input))
      for (AffineExpr size : prim::getSizes(input))
        if (auto symbol = dyn_cast<AffineSymbolExpr>(size))
          bound.insert(symbol.getPosition());
  SmallVector<int64_t> unbound;
  for (int64_t symbol : getSymbols(region))
    if (!bound.contains(symbol))
      unbound.push_back(symbol);
  return unbound;
}

std::string Tuner::whyUnknown(kernel::RegionOp region) const {
  for (int64_t symbol : getSymbols(region))
    if (!findSize(region, symbol))
      return "its sizes are computed while the model runs";
  return "";
}

int64_t Tuner::evaluate(AffineExpr expr, kernel::RegionOp region) const { return evaluateAt(expr, findSizes(region)); }

/// By what a region is known again, in this model and in others.
std::string Tuner::keyText(kernel::RegionOp region) const {
  std::string text = printRegion(region);
  llvm::raw_string_ostream os(text);
  if (isForGpus()) { // what there is to choose from, and what is computed
    const GpuLimits limits = options.limits->get(region);
    os << "gpu " << limits.sharedBytes << (limits.hasWarpGroups ? " warpgroups" : "")
       << (limits.allowsTf32 ? " tf32" : "") << '\n';
  }
  for (auto [i, input] : llvm::enumerate(region.getInputs()))
    if (isConstant(input))
      os << "constant " << i << '\n';
  for (int64_t symbol : getSymbols(region))
    os << "s" << symbol << " = " << findSize(region, symbol).value_or(-1) << '\n';
  return text;
}

/// A module with a function for each schedule.
OwningOpRef<ModuleOp> Tuner::makeProbe(kernel::RegionOp region, ArrayRef<kernel::ScheduleAttr> schedules) const {
  OwningOpRef<ModuleOp> probe = ModuleOp::create(region.getLoc());
  SmallVector<Type> types;
  for (Value input : region.getInputs())
    if (!isConstant(input))
      types.push_back(input.getType());
  OpBuilder builder(probe->getBodyRegion());
  // An input that nothing reads gives each other symbol its size.
  for (int64_t symbol : findUnbound(region))
    types.push_back(prim::makeType(builder.getF32Type(), {builder.getAffineSymbolExpr(unsigned(symbol))}));
  ArrayAttr symbols = symbolsOf(region);
  for (auto [number, schedule] : llvm::enumerate(schedules)) {
    builder.setInsertionPointToEnd(probe->getBody());
    const std::string name = number ? "schedule" + std::to_string(number) : "main";
    auto function =
        func::FuncOp::create(builder, region.getLoc(), name, builder.getFunctionType(types, region.getResultTypes()));
    function->setAttr(prim::kSymbolsAttr, symbols ? symbols : builder.getArrayAttr({}));
    Block *block = function.addEntryBlock();
    builder.setInsertionPointToEnd(block);
    IRMapping mapping;
    SmallVector<Value> inputs;
    unsigned argument = 0;
    for (Value input : region.getInputs())
      inputs.push_back(isConstant(input) ? builder.clone(*input.getDefiningOp())->getResult(0)
                                         : Value(block->getArgument(argument++)));
    auto copy = cast<kernel::RegionOp>(builder.clone(*region));
    copy->setOperands(inputs);
    copy.setScheduleAttr(schedule);
    func::ReturnOp::create(builder, region.getLoc(), copy.getOutputs());
  }
  return probe;
}

Elements elementsOf(Type type) {
  return type.isF32() ? Elements::F32 : type.isF16() ? Elements::F16 : type.isBF16() ? Elements::BF16 : Elements::Other;
}

TuneKernel Tuner::describeKernel(kernel::RegionOp region, const std::string &key) const {
  TuneKernel kernel;
  kernel.key = key;
  kernel.what = describe(region);
  kernel.nodes = host::joinNodeNames(region);
  kernel.sizes = describeLikely(region);
  kernel.onGpu = isForGpus();
  auto bytesOf = [&](Value value) { return uint64_t(evaluate(host::getSizeBytes(value.getType()), region)); };
  auto tensorOf = [&](Value value) {
    TuneTensor tensor;
    for (AffineExpr size : prim::getSizes(value))
      tensor.shape.push_back(evaluate(size, region));
    tensor.bytes = bytesOf(value);
    tensor.elements = elementsOf(getElementTypeOrSelf(value));
    return tensor;
  };
  for (Value input : region.getInputs()) {
    if (isConstant(input))
      kernel.weightBytes += bytesOf(input);
    else
      kernel.inputs.push_back(tensorOf(input));
  }
  for (int64_t symbol : findUnbound(region)) {
    const int64_t size = findSize(region, symbol).value_or(1);
    kernel.inputs.push_back({{size}, 4 * uint64_t(size), Elements::F32});
  }
  for (Value output : region.getOutputs())
    kernel.outputs.push_back(tensorOf(output));
  return kernel;
}

std::optional<Runner> Tuner::open(kernel::RegionOp region, kernel::ScheduleAttr schedule,
                                  ArrayRef<machine::MachineAttr> variants, const TuneKernel &what,
                                  const Tensors &tensors, std::string &error, const Runner *other) {
  OwningOpRef<ModuleOp> probe = makeProbe(region, schedule);
  llvm::Expected<std::string> artifact = build(*probe, variants, /*mayDrop=*/other != nullptr);
  if (!artifact) {
    error = llvm::toString(artifact.takeError());
    return std::nullopt;
  }
  RunnerOptions how;
  how.weightBytes = what.weightBytes;
  how.onGpu = isForGpus();
  if (how.onGpu) { // all GPUs share one variant, and its program is no work for threads
    how.gpuCacheBytes = uint64_t(machine.cacheBytes.front());
  } else {
    how.variant = variants.size() == 1 ? variants.front().getName().str() : "";
    how.threads = machine.threads;
  }
  return Runner::open(*artifact, how, tensors, error, other);
}

SmallVector<machine::MachineAttr> Tuner::possibleVariants() const {
  if (isForGpus())
    return {options.gpus.rbegin(), options.gpus.rend()};
  SmallVector<machine::CpuAttr> cpus = codegen::getPossibleVariants(options.cpus);
  return {cpus.rbegin(), cpus.rend()};
}

/// As the runtime chooses among cubins (tcrt_section_t::arch).
machine::MachineAttr Tuner::findChip() const {
  machine::GpuAttr best;
  for (machine::GpuAttr gpu : options.gpus)
    if (runsOn(machine.gpuVersion, gpu.getArch()) && (!best || best.getArch() < gpu.getArch()))
      best = gpu;
  return best;
}

SmallVector<kernel::ScheduleAttr> Tuner::getCandidates(kernel::RegionOp region, machine::MachineAttr variant) const {
  if (!isForGpus())
    return codegen::getScheduleCandidates(region, cast<machine::CpuAttr>(variant));
  // Those for the sizes that they are measured at: other sizes have cases of their own.
  std::optional<AssumedSizes> assumed;
  if (auto function = region->getParentOfType<func::FuncOp>())
    assumed.emplace(function, DenseI64ArrayAttr::get(region.getContext(), findSizes(region)));
  return codegen::getScheduleCandidates(region, options.limits->get(region));
}

/// What the database says of the region; nullopt: nothing, or nothing that holds any more.
std::optional<Tuner::Decision> Tuner::lookup(kernel::RegionOp region, const std::string &key,
                                             std::string &whyNot) const {
  for (machine::MachineAttr possible : possibleVariants()) {
    const Record *record = database.find(key, records, possible.getName().str());
    if (!record)
      continue;
    if (record->generators != codegen::kGeneratorsVersion) {
      whyNot = "its record was made by another version of the code generators";
      continue;
    }
    SmallVector<kernel::ScheduleAttr> candidates = getCandidates(region, possible);
    auto found = llvm::find_if(candidates, [&](kernel::ScheduleAttr s) { return textOf(s) == record->schedule; });
    if (found == candidates.end()) {
      whyNot = "the schedule of its record is not one that the code generators offer now";
      continue;
    }
    Decision decision;
    decision.outcome.us = record->us;
    decision.outcome.defaultUs = record->defaultUs;
    const bool isFirst = found == candidates.begin();
    if (!isFirst)
      decision.schedule = *found;
    decision.outcome.text = describeRecord(record->us, record->defaultUs, possible.getName().str(),
                                           isFirst ? "" : describeChange(candidates.front(), *found));
    return decision;
  }
  return std::nullopt;
}

/// It compiles each kernel once more, for all variants, as the first probe of a kernel does: what that takes is known
/// of those that were measured. Beside these are the host program and the file.
bool Tuner::isTimeOver() const {
  if (!options.end)
    return false;
  auto seconds = [](Clock::duration time) { return std::chrono::duration<double>(time).count(); };
  const double all = seconds(*options.end - start), left = seconds(*options.end - Clock::now());
  const double rest = built ? kBuildMargin * buildSeconds / built * double(kernelCount) : 0;
  return left < std::clamp(rest, kLeastRest * all, kMostRest * all) || all <= 0;
}

llvm::Expected<Tuner::Decision> Tuner::measure(kernel::RegionOp region, const std::string &key) {
  const SmallVector<machine::MachineAttr> possible = possibleVariants();
  if (llvm::all_of(possible, [&](machine::MachineAttr variant) { return getCandidates(region, variant).size() < 2; }))
    return Decision();
  const TuneKernel what = describeKernel(region, key);
  Tensors tensors;
  if (!what.makeTensors(tensors)) {
    Decision decision;
    decision.outcome.text = "not tuned: this machine has too little memory for its tensors";
    return decision;
  }
  kernel::ScheduleAttr first = getCandidates(region, possible.front()).front();
  // With all variants: which one runs is the runtime's choice. Of chips it is known.
  SmallVector<machine::MachineAttr> all(options.cpus.begin(), options.cpus.end());
  if (isForGpus())
    all = {findChip()};
  const Clock::time_point buildStart = Clock::now();
  std::string error;
  std::optional<Runner> byDefault = open(region, first, all, what, tensors, error);
  buildSeconds += std::chrono::duration<double>(Clock::now() - buildStart).count();
  ++built;
  if (!byDefault) {
    Decision decision;
    lastFailure = error;
    decision.outcome.text = "not tuned: it cannot be measured alone: " + lastFailure;
    return decision;
  }
  ++measured;
  const std::string variant = isForGpus() ? all.front().getName().str() : byDefault->getVariant();
  const auto *taken = llvm::find_if(possible, [&](machine::MachineAttr other) { return other.getName() == variant; });
  if (taken == possible.end())
    return llvm::createStringError("the runtime took a variant that was not made: " + variant);
  const std::string where = isForGpus() ? variant : variant + ", " + std::to_string(machine.threads) + " threads";
  SmallVector<kernel::ScheduleAttr> candidates = getCandidates(region, *taken);
  Contest contest;
  contest.count = candidates.size();
  contest.open = [&](size_t number, std::string &why) {
    return open(region, candidates[number], *taken, what, tensors, why, &*byDefault);
  };
  contest.tell = [&](size_t number, const char *verb, const std::string &text) {
    if (log::isEnabled("tuning"))
      log::write("tuning", std::string(verb) + " " + what.nodes + ": " + text + ": " + textOf(candidates[number]));
  };
  contest.begin = [&](size_t number, double bestUs) {
    if (isTimeOver())
      return false;
    std::string text = "schedule " + std::to_string(number + 1) + " of " + std::to_string(candidates.size());
    if (bestUs)
      text += llvm::formatv(", best {0:f1} us", bestUs).str();
    progress::setDetail(text + ": " + what.nodes);
    const uint64_t work = kRegionWork * number / candidates.size();
    progress::advance(work - std::exchange(workShown, work));
    return true;
  };
  const Choice choice = choose(*byDefault, tensors, contest);
  progress::setDetail("");
  Decision decision;
  if (!choice.failure.empty()) {
    lost = describeLoss(choice.failure, isForGpus());
    decision.outcome.text = "not tuned: " + lost;
    return decision;
  }
  decision.outcome.us = choice.us;
  decision.outcome.defaultUs = choice.defaultUs;
  if (choice.best)
    decision.schedule = candidates[choice.best];
  if (!choice.best && choice.tried < candidates.size())
    decision.outcome.text = llvm::formatv("not tuned: {0} left time to measure {1} of its {2} schedules alone",
                                          options.endReason, choice.tried, candidates.size());
  else
    decision.outcome.text =
        describeChoice(choice, candidates.size(), where, describeChange(first, candidates[choice.best]));
  if (decision.outcome.defaultUs)
    decision.outcome.text += what.sizes;
  // A part of the schedules says nothing to other compiles.
  if (!options.database.empty() && choice.tried == candidates.size()) {
    Record record;
    record.kernel = key;
    record.machine = machine.name;
    record.variant = variant;
    record.what = what.what;
    record.schedule = textOf(decision.schedule ? decision.schedule : first);
    record.defaultSchedule = textOf(first);
    record.us = decision.outcome.us;
    record.defaultUs = decision.outcome.defaultUs;
    record.generators = codegen::kGeneratorsVersion;
    if (std::string problem = Database::addToFile(options.database, machine, std::move(record)); !problem.empty())
      return databaseError(problem);
  }
  return decision;
}

/// Adds the region to the file of candidates: all schedules that it may have in a variant that is compiled.
llvm::Expected<Tuner::Decision> Tuner::propose(kernel::RegionOp region, const std::string &key) {
  Decision decision;
  const SmallVector<machine::MachineAttr> possible = possibleVariants();
  TuneKernel kernel = describeKernel(region, key);
  SmallVector<kernel::ScheduleAttr> schedules;
  for (machine::MachineAttr variant : possible) {
    const SmallVector<kernel::ScheduleAttr> candidates = getCandidates(region, variant);
    if (candidates.empty())
      continue;
    TuneVariant &choices = kernel.variants.emplace_back();
    choices.name = variant.getName().str();
    if (auto gpu = dyn_cast<machine::GpuAttr>(variant))
      choices.arch = gpu.getArch();
    for (auto [i, schedule] : llvm::enumerate(candidates)) {
      const size_t number = llvm::find(schedules, schedule) - schedules.begin();
      if (number == schedules.size() && (i > 0 || schedules.empty()))
        schedules.push_back(schedule);
      // What all are compared with is the choice for the best variant, in the others, too.
      choices.schedules.push_back(i > 0 ? uint32_t(number) : 0);
    }
  }
  if (schedules.size() < 2)
    return decision;
  const SmallVector<machine::MachineAttr> all =
      isForGpus() ? possible : SmallVector<machine::MachineAttr>(options.cpus.begin(), options.cpus.end());
  llvm::Expected<std::string> artifact = build(*makeProbe(region, schedules), all, /*mayDrop=*/true);
  if (!artifact) {
    llvm::consumeError(artifact.takeError());
    // Which of them has no code is known only of each alone.
    SmallVector<kernel::ScheduleAttr> kept = {schedules.front()};
    SmallVector<uint32_t> numbers(schedules.size(), 0); // 0: left out
    for (size_t number = 1; number < schedules.size(); ++number) {
      llvm::Expected<std::string> alone = build(*makeProbe(region, schedules[number]), all, /*mayDrop=*/true);
      if (alone) {
        numbers[number] = uint32_t(kept.size());
        kept.push_back(schedules[number]);
        continue;
      }
      const std::string why = llvm::toString(alone.takeError());
      if (log::isEnabled("tuning"))
        log::write("tuning", "left out " + kernel.nodes + ": " + why + ": " + textOf(schedules[number]));
    }
    for (TuneVariant &variant : kernel.variants) {
      std::vector<uint32_t> left = {0};
      for (uint32_t number : llvm::drop_begin(variant.schedules))
        if (numbers[number])
          left.push_back(numbers[number]);
      variant.schedules = std::move(left);
    }
    schedules = std::move(kept);
    artifact = build(*makeProbe(region, schedules), all, /*mayDrop=*/false);
  }
  if (!artifact) {
    decision.outcome.text = "not tuned: it cannot be measured alone: " + llvm::toString(artifact.takeError());
    return decision;
  }
  if (schedules.size() < 2) {
    decision.outcome.text = "not tuned: none of its other schedules has code";
    return decision;
  }
  for (kernel::ScheduleAttr schedule : schedules)
    kernel.schedules.push_back({textOf(schedule), describeChange(schedules.front(), schedule)});
  decision.outcome.text = llvm::formatv("proposed: {0} schedules, for tc-run --tune", schedules.size()).str();
  if (std::string problem = options.candidates->add(std::move(kernel), *artifact); !problem.empty())
    return databaseError(problem);
  return decision;
}

llvm::Expected<Tuner::Decision> Tuner::decide(kernel::RegionOp region, const std::string &text) {
  Decision decision;
  const std::string key = contentHash({text.data(), text.size()});
  std::string whyNot;
  if (std::optional<Decision> recorded = lookup(region, key, whyNot))
    return *recorded;
  if (!options.measure && !options.candidates) {
    if (!whyNot.empty())
      decision.outcome.text = "not tuned: " + whyNot;
    return decision;
  }
  if (std::string unknown = whyUnknown(region); !unknown.empty()) {
    decision.outcome.text = "not tuned: " + unknown;
    return decision;
  }
  if (!lost.empty()) {
    decision.outcome.text = "not tuned: " + lost;
    return decision;
  }
  if (isTimeOver()) {
    decision.outcome.text = "not tuned: " + options.endReason + " left no time to measure it";
    return decision;
  }
  return options.candidates ? propose(region, key) : measure(region, key);
}

llvm::Error Tuner::chooseRecords(std::vector<std::string> &notes) {
  const std::vector<std::string> known = database.getMachines(isForGpus()), others = database.getMachines(!isForGpus());
  records = machine.name;
  for (const std::string &name : options.machines)
    if (llvm::is_contained(known, name)) {
      records = name;
      return llvm::Error::success();
    } else if (!llvm::is_contained(others, name)) {
      std::vector<std::string> all = known;
      llvm::append_range(all, others);
      return llvm::createStringError(std::make_error_code(std::errc::invalid_argument),
                                     options.database + ": error: the tuning database has no machine \"" + name +
                                         "\"; it has " + (all.empty() ? "none" : llvm::join(all, ", ")));
    }
  if (options.measure || llvm::is_contained(known, records))
    return llvm::Error::success();
  // Without a GPU artifacts are for one elsewhere.
  if (records.empty() && known.size() == 1) {
    records = known.front();
    return llvm::Error::success();
  }
  const std::string names = llvm::join(known, ", ");
  std::string note = options.database + ": note: the tuning database has ";
  if (!records.empty())
    note += "no records of this " + std::string(isForGpus() ? "GPU (" : "machine (") + records + ") and is not used" +
            (known.empty() ? "" : "; --tuning-machine takes those of another: " + names);
  else if (known.empty())
    note += "no records of GPUs, whose kernels keep their default schedules";
  else
    note += "records of several GPUs, none of which is here; --tuning-machine takes those of one: " + names;
  notes.push_back(note);
  return llvm::Error::success();
}

llvm::Expected<TuneReport> Tuner::run() {
  TuneReport report;
  if (isForGpus() && options.measure && !findChip())
    return llvm::createStringError("the artifact has no code for " + machine.model + "; add --gpu " + machine.cpu);
  if (!options.database.empty()) {
    std::string problem;
    std::optional<Database> read = Database::read(options.database, /*mayLack=*/options.measure, problem);
    if (!read)
      return databaseError(problem);
    database = std::move(*read);
    if (options.measure) // what cannot be written is found out before anything is measured
      if (problem = Database::addToFile(options.database, machine, std::nullopt); !problem.empty())
        return databaseError(problem);
    if (llvm::Error error = chooseRecords(report.notes))
      return std::move(error);
  }
  SmallVector<kernel::RegionOp> regions;
  module.walk([&](kernel::RegionOp region) { regions.push_back(region); });
  llvm::StringMap<Decision> known;
  std::vector<std::string> texts;
  llvm::StringSet<> different;
  for (kernel::RegionOp region : regions) {
    texts.push_back(region.getScheduleAttr() ? "" : keyText(region));
    different.insert(texts.back());
  }
  kernelCount = different.size();
  progress::setWork(regions.size() * kRegionWork, regions.size());
  for (auto [number, region] : llvm::enumerate(regions)) {
    if (number)
      progress::advance(kRegionWork - std::exchange(workShown, 0), 1);
    report.regions.emplace_back();
    if (region.getScheduleAttr() || region->hasAttr(kernel::kDisabledAttr))
      continue;
    const std::string &text = texts[number];
    auto found = known.find(text);
    if (found == known.end()) {
      llvm::Expected<Decision> decision = decide(region, text);
      if (!decision)
        return decision.takeError();
      found = known.try_emplace(text, *decision).first;
    }
    const Decision &decision = found->second;
    if (decision.schedule) {
      region.setScheduleAttr(decision.schedule);
      if (isForGpus())
        region->setAttr(codegen::kTunedSizesAttr, DenseI64ArrayAttr::get(region.getContext(), findSizes(region)));
    }
    report.regions.back() = decision.outcome;
    if (!decision.outcome.text.empty() && log::isEnabled("tuning"))
      log::write("tuning", host::joinNodeNames(region) + ": " + decision.outcome.text);
  }
  if (!measured && !lastFailure.empty())
    return llvm::createStringError(lastFailure);
  return report;
}

} // namespace

llvm::Expected<TuneReport> tc::autotune::tuneSchedules(ModuleOp module, const TuneOptions &options,
                                                       BuildArtifact build) {
  return Tuner(module, options, build).run();
}
