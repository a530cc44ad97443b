//===- Tune.cpp - schedules by measurement ------------------------------------------------------------------------===//
//
// A region is measured alone, as an artifact with the region as its only kernel, in process, with the variant that the
// runtime takes on this machine, or on its GPU. Each candidate runs in turn with the generators' first choice; the best
// one is measured a second time, and must win by more than the noise. A record counts only if its schedule is one of
// the candidates that the generators offer by now, so that no file can make the compiler obey what it would not choose
// itself.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Autotune/Tune.h"

#include "Runner.h"
#include "tc/Analysis/LikelySizes.h"
#include "tc/Analysis/RegionText.h"
#include "tc/Autotune/Database.h"
#include "tc/Codegen/Schedules.h"
#include "tc/Dialect/Host/IR/Host.h"
#include "tc/Dialect/Kernel/IR/Disabled.h"
#include "tc/Dialect/Prim/IR/Prim.h"
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

namespace {

// A schedule must take at most this share of the default's time to be worth a change; all else is noise.
constexpr double kWorth = 0.97;
// Of a region, for the progress bar: its schedules share it.
constexpr uint64_t kRegionWork = 1000;
// Seconds, and pairs of runs at least, for a candidate and for the second measurement of the best one.
constexpr double kTrySeconds = 0.04, kVerifySeconds = 0.15;
constexpr size_t kTryPairs = 3, kVerifyPairs = 11;
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
  std::string keyText(kernel::RegionOp region) const;
  /// Whether sizes can be given to all symbols of the region; if not, says why not.
  std::string whyUnknown(kernel::RegionOp region) const;
  int64_t evaluate(AffineExpr expr, kernel::RegionOp region) const;
  OwningOpRef<ModuleOp> makeProbe(kernel::RegionOp region, kernel::ScheduleAttr schedule) const;
  void bindTensors(kernel::RegionOp region, Tensors &tensors) const;
  llvm::Expected<Runner> open(kernel::RegionOp region, kernel::ScheduleAttr schedule,
                              ArrayRef<machine::MachineAttr> variants, const Tensors &tensors,
                              const Runner *other = nullptr);
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

int64_t Tuner::evaluate(AffineExpr expr, kernel::RegionOp region) const {
  ArrayAttr symbols = symbolsOf(region);
  SmallVector<AffineExpr> sizes;
  for (int64_t i = 0; i < int64_t(symbols ? symbols.size() : 0); ++i)
    sizes.push_back(getAffineConstantExpr(findSize(region, i).value_or(1), expr.getContext()));
  return prim::getConstantSize(prim::simplifySize(expr.replaceSymbols(sizes))).value_or(1);
}

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

OwningOpRef<ModuleOp> Tuner::makeProbe(kernel::RegionOp region, kernel::ScheduleAttr schedule) const {
  OwningOpRef<ModuleOp> probe = ModuleOp::create(region.getLoc());
  SmallVector<Type> types;
  for (Value input : region.getInputs())
    if (!isConstant(input))
      types.push_back(input.getType());
  OpBuilder builder(probe->getBodyRegion());
  // An input that nothing reads gives each other symbol its size.
  for (int64_t symbol : findUnbound(region))
    types.push_back(prim::makeType(builder.getF32Type(), {builder.getAffineSymbolExpr(unsigned(symbol))}));
  auto function =
      func::FuncOp::create(builder, region.getLoc(), "main", builder.getFunctionType(types, region.getResultTypes()));
  ArrayAttr symbols = symbolsOf(region);
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
  return probe;
}

Elements elementsOf(Type type) {
  return type.isF32() ? Elements::F32 : type.isF16() ? Elements::F16 : type.isBF16() ? Elements::BF16 : Elements::Other;
}

void Tuner::bindTensors(kernel::RegionOp region, Tensors &tensors) const {
  auto shapeOf = [&](Value value) {
    std::vector<int64_t> shape;
    for (AffineExpr size : prim::getSizes(value))
      shape.push_back(evaluate(size, region));
    return shape;
  };
  auto bytesOf = [&](Value value) { return uint64_t(evaluate(host::getSizeBytes(value.getType()), region)); };
  for (Value input : region.getInputs())
    if (!isConstant(input))
      tensors.addInput(shapeOf(input), bytesOf(input), elementsOf(getElementTypeOrSelf(input)));
  for (int64_t symbol : findUnbound(region)) {
    const int64_t size = findSize(region, symbol).value_or(1);
    tensors.addInput({size}, 4 * uint64_t(size), Elements::F32);
  }
  for (Value output : region.getOutputs())
    tensors.addOutput(shapeOf(output), bytesOf(output), elementsOf(getElementTypeOrSelf(output)));
}

llvm::Expected<Runner> Tuner::open(kernel::RegionOp region, kernel::ScheduleAttr schedule,
                                   ArrayRef<machine::MachineAttr> variants, const Tensors &tensors,
                                   const Runner *other) {
  OwningOpRef<ModuleOp> probe = makeProbe(region, schedule);
  llvm::Expected<std::string> artifact = build(*probe, variants, /*mayDrop=*/other != nullptr);
  if (!artifact)
    return artifact.takeError();
  RunnerOptions how;
  for (Value input : region.getInputs())
    if (isConstant(input))
      how.weightBytes += uint64_t(evaluate(host::getSizeBytes(input.getType()), region));
  how.onGpu = isForGpus();
  if (how.onGpu) { // all GPUs share one variant, and its program is no work for threads
    how.gpuCacheBytes = uint64_t(machine.cacheBytes.front());
  } else {
    how.variant = variants.size() == 1 ? variants.front().getName().str() : "";
    how.threads = machine.threads;
  }
  return Runner::open(*artifact, how, tensors, other);
}

SmallVector<machine::MachineAttr> Tuner::possibleVariants() const {
  if (isForGpus())
    return {options.gpus.rbegin(), options.gpus.rend()};
  SmallVector<machine::CpuAttr> cpus = codegen::getPossibleVariants(options.cpus);
  return {cpus.rbegin(), cpus.rend()};
}

/// As the runtime chooses among cubins (tcrt_section_t::arch).
machine::MachineAttr Tuner::findChip() const {
  const unsigned version = machine.gpuVersion;
  machine::GpuAttr best;
  for (machine::GpuAttr gpu : options.gpus) {
    const unsigned arch = gpu.getArch(), own = arch / 10;
    const bool runs = arch % 10 == 1 ? own == version : own / 10 == version / 10 && own <= version;
    if (runs && (!best || best.getArch() < arch))
      best = gpu;
  }
  return best;
}

SmallVector<kernel::ScheduleAttr> Tuner::getCandidates(kernel::RegionOp region, machine::MachineAttr variant) const {
  return isForGpus() ? codegen::getScheduleCandidates(region, options.limits->get(region))
                     : codegen::getScheduleCandidates(region, cast<machine::CpuAttr>(variant));
}

/// What the database says of the region; nullopt: nothing, or nothing that holds any more.
std::optional<Tuner::Decision> Tuner::lookup(kernel::RegionOp region, const std::string &key,
                                             std::string &whyNot) const {
  for (machine::MachineAttr possible : possibleVariants()) {
    const StringRef variant = possible.getName();
    const Record *record = database.find(key, records, variant.str());
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
    if (found == candidates.begin()) {
      decision.outcome.text =
          llvm::formatv("recorded: the default is the fastest schedule, {0:f1} us ({1})", record->us, variant);
    } else {
      decision.schedule = *found;
      decision.outcome.text = llvm::formatv("recorded: {0:f1} us instead of {1:f1} us ({2}): {3}", record->us,
                                            record->defaultUs, variant, describeChange(candidates.front(), *found));
    }
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
  Tensors tensors;
  bindTensors(region, tensors);
  kernel::ScheduleAttr first = getCandidates(region, possible.front()).front();
  // With all variants: which one runs is the runtime's choice. Of chips it is known.
  SmallVector<machine::MachineAttr> all(options.cpus.begin(), options.cpus.end());
  if (isForGpus())
    all = {findChip()};
  const Clock::time_point buildStart = Clock::now();
  llvm::Expected<Runner> byDefault = open(region, first, all, tensors);
  buildSeconds += std::chrono::duration<double>(Clock::now() - buildStart).count();
  ++built;
  if (!byDefault) {
    Decision decision;
    lastFailure = llvm::toString(byDefault.takeError());
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
  std::string nodes = host::joinNodeNames(region);
  kernel::ScheduleAttr best;
  std::optional<Runner> ofBest;
  Comparison comparison = {};
  double bestRatio = kWorth, defaultSeconds = 0;
  auto showProgress = [&](size_t number) {
    std::string text = "schedule " + std::to_string(number + 1) + " of " + std::to_string(candidates.size());
    if (defaultSeconds)
      text += llvm::formatv(", best {0:f1} us", 1e6 * defaultSeconds * (best ? bestRatio : 1)).str();
    text += ": " + nodes;
    progress::setDetail(text);
    const uint64_t work = kRegionWork * number / candidates.size();
    progress::advance(work - std::exchange(workShown, work));
  };
  size_t tried = 1;
  for (; tried < candidates.size() && !isTimeOver(); ++tried) {
    kernel::ScheduleAttr candidate = candidates[tried];
    showProgress(tried);
    llvm::Expected<Runner> runner = open(region, candidate, *taken, tensors, &*byDefault);
    if (!runner) {
      if (log::isEnabled("tuning"))
        log::write("tuning",
                   "not measured " + nodes + ": " + llvm::toString(runner.takeError()) + ": " + textOf(candidate));
      else
        llvm::consumeError(runner.takeError());
      continue;
    }
    // Tests of generators for GPUs need one, and most machines that run tests have none.
    if (const double difference = isForGpus() ? runner->differFrom(*byDefault, tensors) : 0; difference > 1) {
      if (log::isEnabled("tuning"))
        log::write("tuning", llvm::formatv("not measured {0}: its numbers differ from the default's by {1:e1} of what "
                                           "rounding explains: {2}",
                                           nodes, difference, textOf(candidate))
                                 .str());
      if (!byDefault->getFailure().empty())
        break;
      continue;
    }
    comparison = compare(*byDefault, *runner, kTrySeconds, kTryPairs);
    if (!byDefault->getFailure().empty())
      break;
    defaultSeconds = defaultSeconds ? std::min(defaultSeconds, comparison.leastA) : comparison.leastA;
    if (log::isEnabled("tuning"))
      log::write("tuning", llvm::formatv("measured {0}: {1:f1} us, default {2:f1} us: {3}", nodes,
                                         comparison.leastB * 1e6, comparison.leastA * 1e6, textOf(candidate))
                               .str());
    if (comparison.leastRatio >= bestRatio)
      continue;
    bestRatio = comparison.leastRatio;
    best = candidate;
    ofBest = std::move(*runner);
  }
  progress::setDetail("");
  Decision decision;
  decision.outcome.us = decision.outcome.defaultUs = defaultSeconds * 1e6;
  if (best && byDefault->getFailure().empty()) {
    comparison = compare(*byDefault, *ofBest, kVerifySeconds, kVerifyPairs);
    if (comparison.leastRatio < kWorth && comparison.medianRatio < kWorth && comparison.fifthRatio < 1) {
      decision.schedule = best;
      decision.outcome.us = comparison.leastB * 1e6;
      decision.outcome.defaultUs = comparison.leastA * 1e6;
    }
  }
  // After a fault no kernel runs, as good as it may be.
  if (!byDefault->getFailure().empty()) {
    lost = "a kernel stopped the " + std::string(isForGpus() ? "GPU" : "run") + ": " + byDefault->getFailure();
    decision = Decision();
    decision.outcome.text = "not tuned: " + lost;
    return decision;
  }
  if (decision.schedule)
    decision.outcome.text = llvm::formatv("measured: {0:f1} us instead of {1:f1} us ({2}): {3}", decision.outcome.us,
                                          decision.outcome.defaultUs, where, describeChange(first, best));
  else if (tried < candidates.size())
    decision.outcome.text = llvm::formatv("not tuned: {0} left time to measure {1} of its {2} schedules alone",
                                          options.endReason, tried, candidates.size());
  else
    decision.outcome.text = llvm::formatv("measured: the default is the fastest of {0} schedules, {1:f1} us ({2})",
                                          candidates.size(), decision.outcome.us, where);
  if (decision.outcome.defaultUs)
    decision.outcome.text += describeLikely(region);
  // A part of the schedules says nothing to other compiles.
  if (!options.database.empty() && tried == candidates.size()) {
    Record record;
    record.kernel = key;
    record.machine = machine.name;
    record.variant = variant;
    record.what = describe(region);
    record.schedule = textOf(decision.schedule ? decision.schedule : first);
    record.defaultSchedule = textOf(first);
    record.us = decision.outcome.us;
    record.defaultUs = decision.outcome.defaultUs;
    record.generators = codegen::kGeneratorsVersion;
    if (llvm::Error error = Database::addToFile(options.database, machine, std::move(record)))
      return std::move(error);
  }
  return decision;
}

llvm::Expected<Tuner::Decision> Tuner::decide(kernel::RegionOp region, const std::string &text) {
  Decision decision;
  const std::string key = contentHash({text.data(), text.size()});
  std::string whyNot;
  if (std::optional<Decision> recorded = lookup(region, key, whyNot))
    return *recorded;
  if (!options.measure) {
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
  return measure(region, key);
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
    llvm::Expected<Database> read = Database::read(options.database, /*mayLack=*/options.measure);
    if (!read)
      return read.takeError();
    database = std::move(*read);
    if (options.measure) // what cannot be written is found out before anything is measured
      if (llvm::Error error = Database::addToFile(options.database, machine, std::nullopt))
        return std::move(error);
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
    if (decision.schedule)
      region.setScheduleAttr(decision.schedule);
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
