//===- Tune.cpp - schedules by measurement ------------------------------------------------------------------------===//
//
// A region is measured alone, as an artifact with the region as its only kernel, in process, with the variant that the
// runtime takes on this machine. Each candidate runs in turn with the generators' first choice; the best one is
// measured a second time, and must win by more than the noise. A record counts only if its schedule is one of the
// candidates that the generators offer by now, so that no file can make the compiler obey what it would not choose
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
      : module(module), options(options), build(build), machine(describeMachine(options.threads)) {}

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
  llvm::Expected<Runner> open(kernel::RegionOp region, kernel::ScheduleAttr schedule, ArrayRef<machine::CpuAttr> cpus,
                              const Tensors &tensors);
  /// Whether the rest of the compile needs the time that is left.
  bool isTimeOver() const;
  /// The variants that may run, the best first.
  SmallVector<machine::CpuAttr> possibleVariants() const;

  ModuleOp module;
  const TuneOptions &options;
  BuildArtifact build;
  Machine machine;
  Database database;
  unsigned measured = 0;
  std::string lastFailure; ///< of a measurement; empty: there was none
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

/// Where --dim gives no range: what is usual for such a dim, by what reads it; nullopt: no input has it as one.
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
  return std::nullopt;
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

std::string Tuner::whyUnknown(kernel::RegionOp region) const {
  llvm::SmallDenseSet<int64_t> bound; // by an input's dim
  for (Value input : region.getInputs())
    if (!isConstant(input))
      for (AffineExpr size : prim::getSizes(input))
        if (auto symbol = dyn_cast<AffineSymbolExpr>(size))
          bound.insert(symbol.getPosition());
  for (int64_t symbol : getSymbols(region))
    if (!bound.contains(symbol) || !findSize(region, symbol))
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
      tensors.addInput(shapeOf(input), bytesOf(input), getElementTypeOrSelf(input).isF32());
  for (Value output : region.getOutputs())
    tensors.addOutput(shapeOf(output), bytesOf(output));
}

llvm::Expected<Runner> Tuner::open(kernel::RegionOp region, kernel::ScheduleAttr schedule,
                                   ArrayRef<machine::CpuAttr> cpus, const Tensors &tensors) {
  OwningOpRef<ModuleOp> probe = makeProbe(region, schedule);
  llvm::Expected<std::string> artifact = build(*probe, cpus);
  if (!artifact)
    return artifact.takeError();
  uint64_t weights = 0;
  for (Value input : region.getInputs())
    if (isConstant(input))
      weights += uint64_t(evaluate(host::getSizeBytes(input.getType()), region));
  return Runner::open(*artifact, cpus.size() == 1 ? cpus.front().getName().str() : "", machine.threads, weights,
                      tensors);
}

SmallVector<machine::CpuAttr> Tuner::possibleVariants() const {
  SmallVector<machine::CpuAttr> cpus = codegen::getPossibleVariants(options.cpus);
  return {cpus.rbegin(), cpus.rend()};
}

/// What the database says of the region; nullopt: nothing, or nothing that holds any more.
std::optional<Tuner::Decision> Tuner::lookup(kernel::RegionOp region, const std::string &key,
                                             std::string &whyNot) const {
  const std::string &name = options.machine.empty() ? machine.name : options.machine;
  for (machine::CpuAttr cpu : possibleVariants()) {
    const StringRef variant = cpu.getName();
    const Record *record = database.find(key, name, variant.str());
    if (!record)
      continue;
    if (record->generators != codegen::kGeneratorsVersion) {
      whyNot = "its record was made by another version of the code generators";
      continue;
    }
    SmallVector<kernel::ScheduleAttr> candidates = codegen::getScheduleCandidates(region, cpu);
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
  auto candidatesFor = [&](machine::CpuAttr cpu) { return codegen::getScheduleCandidates(region, cpu); };
  if (llvm::all_of(possibleVariants(), [&](machine::CpuAttr cpu) { return candidatesFor(cpu).size() < 2; }))
    return Decision();
  Tensors tensors;
  bindTensors(region, tensors);
  kernel::ScheduleAttr first = candidatesFor(possibleVariants().front()).front();
  // With all variants: which one runs is the runtime's choice.
  const Clock::time_point buildStart = Clock::now();
  llvm::Expected<Runner> byDefault = open(region, first, options.cpus, tensors);
  buildSeconds += std::chrono::duration<double>(Clock::now() - buildStart).count();
  ++built;
  if (!byDefault) {
    Decision decision;
    lastFailure = llvm::toString(byDefault.takeError());
    decision.outcome.text = "not tuned: it cannot be measured alone: " + lastFailure;
    return decision;
  }
  ++measured;
  const std::string variant = byDefault->getVariant();
  const SmallVector<machine::CpuAttr> possible = possibleVariants();
  const auto *cpu = llvm::find_if(possible, [&](machine::CpuAttr cpu) { return cpu.getName() == variant; });
  if (cpu == possible.end())
    return llvm::createStringError("the runtime took a variant that was not made: " + variant);
  SmallVector<kernel::ScheduleAttr> candidates = candidatesFor(*cpu);
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
    llvm::Expected<Runner> runner = open(region, candidate, *cpu, tensors);
    if (!runner) {
      if (log::isEnabled("tuning"))
        log::write("tuning", "not measured " + nodes + ": " + llvm::toString(runner.takeError()));
      else
        llvm::consumeError(runner.takeError());
      continue;
    }
    comparison = compare(*byDefault, *runner, kTrySeconds, kTryPairs);
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
  if (best) {
    comparison = compare(*byDefault, *ofBest, kVerifySeconds, kVerifyPairs);
    if (comparison.leastRatio < kWorth && comparison.medianRatio < kWorth && comparison.fifthRatio < 1) {
      decision.schedule = best;
      decision.outcome.us = comparison.leastB * 1e6;
      decision.outcome.defaultUs = comparison.leastA * 1e6;
    }
  }
  if (decision.schedule)
    decision.outcome.text =
        llvm::formatv("measured: {0:f1} us instead of {1:f1} us ({2}, {3} threads): {4}", decision.outcome.us,
                      decision.outcome.defaultUs, variant, machine.threads, describeChange(first, best));
  else if (tried < candidates.size())
    decision.outcome.text = llvm::formatv("not tuned: {0} left time to measure {1} of its {2} schedules alone",
                                          options.endReason, tried, candidates.size());
  else
    decision.outcome.text = llvm::formatv("measured: the default is the fastest of {0} schedules, {1:f1} us ({2}, {3} "
                                          "threads)",
                                          candidates.size(), decision.outcome.us, variant, machine.threads);
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
  if (isTimeOver()) {
    decision.outcome.text = "not tuned: " + options.endReason + " left no time to measure it";
    return decision;
  }
  return measure(region, key);
}

llvm::Expected<TuneReport> Tuner::run() {
  TuneReport report;
  if (!options.database.empty()) {
    llvm::Expected<Database> read = Database::read(options.database, /*mayLack=*/options.measure);
    if (!read)
      return read.takeError();
    database = std::move(*read);
    if (options.measure) // what cannot be written is found out before anything is measured
      if (llvm::Error error = Database::addToFile(options.database, machine, std::nullopt))
        return std::move(error);
    std::string known = llvm::join(database.getMachines(), ", ");
    if (!options.machine.empty() && !database.has(options.machine))
      return llvm::createStringError(std::make_error_code(std::errc::invalid_argument),
                                     options.database + ": error: the tuning database has no machine \"" +
                                         options.machine + "\"; it has " + (known.empty() ? "none" : known));
    if (options.machine.empty() && !options.measure && !database.has(machine.name))
      report.notes.push_back(options.database + ": note: the tuning database has no records of this machine (" +
                             machine.name + ") and is not used" +
                             (known.empty() ? "" : "; --tuning-machine takes those of another: " + known));
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
