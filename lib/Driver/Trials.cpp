//===- Trials.cpp - what the compiler runs itself, to measure and to verify ---------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Compiler.h"

#include "tc/Autotune/Tune.h"
#include "tc/Conversion/HostToLLVM/HostToLLVM.h"
#include "tc/Dialect/Host/IR/Host.h"
#include "tc/Dialect/Kernel/IR/Kernel.h"
#include "tc/Dialect/Prim/IR/ListedSizes.h"
#include "tc/Dialect/Prim/IR/Prim.h"
#include "tc/Measure/Choose.h"
#include "tc/Support/Logging.h"
#include "tc/Target/Reference/Reference.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include <map>

using namespace mlir;
using namespace tc;
using namespace tc::driver;

/// What errors relative to the largest value a chain of operations in the narrowest float type of `func` may make.
static double getTolerance(func::FuncOp func) {
  double tolerance = 2e-5;
  func.walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      if (auto element = dyn_cast<FloatType>(getElementTypeOrSelf(type)); element && element.getWidth() < 32)
        // Eight units in the last place.
        tolerance = std::max(tolerance, std::ldexp(8.0, -int(element.getFPMantissaWidth())));
  });
  return tolerance;
}

std::string CompileRequest::getTuningDatabase() const {
  const bool measures = StringRef(mode).starts_with("max-autotune");
  return tuningDb.empty() && measures && !cacheDir.empty() ? cacheDir + "/tuning.json" : tuningDb;
}

/// Schedules for the regions that the tuning database, or a measurement, knows better ones for than the generators.
int Compiler::tune(ModuleOp module) {
  const bool proposes = !request.tuningCandidates.empty();
  if (options.target == machine::TargetKind::Reference || explainsOnly() ||
      (!measures() && !proposes && request.tuningDb.empty()))
    return kDone;
  if (proposes && !candidates) {
    candidates.emplace();
    if (std::string problem = candidates->open(request.tuningCandidates); !problem.empty())
      return fail(kWrongUse, problem);
  }
  autotune::TuneOptions tuning;
  tuning.measure = measures();
  tuning.candidates = candidates ? &*candidates : nullptr;
  if (isCuda(options.target)) {
    tuning.gpus = gpus;
    tuning.limits.emplace(module.getContext(), gpus, options.precision == "tf32",
                          llvm::to_vector(options.nodePrecisions));
    std::string why;
    tuning.gpu = measure::describeGpu(why);
    if (!tuning.gpu && measures()) {
      const std::string sentence = "--mode " + request.mode + " measures GPU kernels on a GPU, and " + why;
      if (targets.size() == 1)
        return fail(kMachine, request.model + ": error: " + sentence +
                                  "; compile where one is, or take what was measured there: --tuning-db FILE.json "
                                  "without --mode");
      warn(sentence + "; kernels for cuda get what --tuning-db has of them, and else the default schedules");
      tuning.measure = false;
      if (request.tuningDb.empty() || !llvm::sys::fs::exists(request.tuningDb)) // which CPU kernels may begin
        return kDone;
    }
  }
  tuning.database = request.getTuningDatabase();
  // The place beside the cache is a help, which compiles do not depend on.
  if (request.tuningDb.empty() && !tuning.database.empty() &&
      (llvm::sys::fs::create_directories(request.cacheDir) ||
       llvm::sys::fs::access(request.cacheDir, llvm::sys::fs::AccessMode::Write)))
    tuning.database.clear();
  SmallVector<StringRef> named;
  StringRef(request.tuningMachine).split(named, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef name : named)
    tuning.machines.push_back(name.trim().str());
  tuning.threads = request.tuningThreads;
  tuning.cpus = cpus;
  tuning.end = limits.getEnd();
  tuning.endReason = "--max-compile-time " + request.maxTime;
  if (tunes(options.target))
    showStage("tuning", kTuneShare);
  auto build = [&](ModuleOp probe, ArrayRef<machine::MachineAttr> machines, bool mayDrop) {
    auto names = llvm::map_to_vector(machines, [](machine::MachineAttr machine) { return machine.getName().str(); });
    return buildProbe(probe, Phase::Kernel, names, /*refusesSpills=*/mayDrop);
  };
  auto getSchedules = [&] {
    SmallVector<Attribute> schedules;
    module.walk([&](kernel::RegionOp region) { schedules.push_back(region.getScheduleAttr()); });
    return schedules;
  };
  const SmallVector<Attribute> chosen = getSchedules();
  const Clock::time_point tuneStart = Clock::now();
  llvm::Expected<autotune::TuneReport> report = autotune::tuneSchedules(module, tuning, build);
  if (!report) {
    std::error_code code;
    std::string what;
    llvm::handleAllErrors(report.takeError(), [&](const llvm::ErrorInfoBase &info) {
      code = info.convertToErrorCode();
      what = info.message();
    });
    if (code.category() == std::generic_category())
      return fail(kWrongUse, what);
    return fail(kMachine,
                request.model + ": error: --mode " + request.mode + ": a kernel cannot be measured here: " + what);
  }
  isTuned |= getSchedules() != chosen;
  measure::Gain gain;
  for (const autotune::Outcome &region : report->regions)
    gain.add(region.us, region.defaultUs);
  if (tuning.measure)
    tuned += (tuned.empty() ? "" : "\n") +
             (targets.size() > 1 ? "for " + machine::stringifyTargetKind(options.target).str() + ": " : "") +
             gain.describe(secondsSince(tuneStart));
  for (const std::string &note : report->notes)
    fail(kDone, note);
  explanation.addTuning(report->regions);
  // That nothing is recorded of a kernel is as it should be; that it was to be measured and was not is not.
  StringRef left = "not tuned: ";
  size_t count =
      llvm::count_if(report->regions, [&](auto &region) { return StringRef(region.text).starts_with(left); });
  if ((tuning.measure || candidates) && count) {
    auto first = llvm::find_if(report->regions, [&](auto &region) { return StringRef(region.text).starts_with(left); });
    warn((candidates ? "--tuning-candidates" : "--mode " + request.mode) + " leaves " + Twine(count) + " of " +
         Twine(report->regions.size()) + " kernels with default schedules; of the first " +
         StringRef(first->text).substr(left.size()) + (request.explain ? "" : "; --explain lists them"));
  }
  return kDone;
}

/// The file of --tuning-candidates, or why there is none.
int Compiler::finishCandidates() {
  if (!candidates)
    return kDone;
  const std::string &path = request.tuningCandidates;
  const size_t kernels = candidates->countKernels(), schedules = candidates->countSchedules();
  if (!kernels)
    return fail(kDone, request.model + ": note: no kernel has schedules to choose from" +
                           (request.tuningDb.empty() ? "" : " that lacks a record") +
                           ", so that there is nothing to measure; " + path + " is not written");
  measure::TuneIndex index;
  index.model = llvm::sys::path::filename(request.model).str();
  index.generators = codegen::kGeneratorsVersion;
  for (machine::TargetKind target : targets) {
    setTarget(target);
    llvm::append_range(index.machines, options.variants);
  }
  if (std::string problem = candidates->finish(std::move(index)); !problem.empty())
    return fail(kWrongUse, problem);
  if (!request.quiet)
    fail(kDone, path + ": " + describeSize(candidates->getBytes()) +
                    llvm::formatv(", {0} schedules of {1} kernel{2}; where the model will run, tc-run {3} --tune "
                                  "FILE.json measures them, for --tuning-db",
                                  schedules, kernels, kernels == 1 ? "" : "s", path)
                        .str());
  return kDone;
}

/// The artifact of a module at the end of the phase before `from`.
llvm::Expected<std::string> Compiler::buildProbe(ModuleOp probe, Phase from, ArrayRef<std::string> variants,
                                                 bool refusesSpills) {
  PhaseOptions ofProbe;
  ofProbe.copyOptionValuesFrom(options);
  ofProbe.variants = variants;
  ofProbe.debugDir = "";
  ofProbe.refusesSpills = refusesSpills;
  progress::Hold hold;
  quiet = true;
  bool compiled = true;
  for (unsigned i = unsigned(from); i <= unsigned(Phase::Object); ++i)
    compiled = compiled && runPasses(probe, [&](PassManager &m) { buildPhasePipeline(Phase(i), m, ofProbe); });
  quiet = false;
  if (!compiled)
    return llvm::createStringError("a part of the model cannot be compiled on its own: " +
                                   (failures.empty() ? "no reason is given" : failures.front().second));
  llvm::Expected<artifact::ArtifactSpec> spec = assembleArtifact(probe, AssembleOptions());
  return spec ? artifact::writeArtifactToMemory(*spec) : spec.takeError();
}

/// Compiles `probe`, a module of phase prim, for one variant and runs it.
llvm::Expected<std::vector<prim::Tensor>> Compiler::runProbe(ModuleOp probe, const std::string &variant,
                                                             ArrayRef<prim::Tensor> inputs) {
  SmallVector<Type> results = llvm::to_vector(getFunctions(probe).front().getResultTypes());
  // All GPUs share one variant.
  SmallVector<std::string> machines(options.variants.begin(), options.variants.end());
  llvm::Expected<std::string> bytes =
      buildProbe(probe, Phase::Fuse, isCuda(options.target) ? ArrayRef<std::string>(machines) : variant);
  if (!bytes)
    return bytes.takeError();
  llvm::Expected<OpenedArtifact> opened =
      OpenedArtifact::openMemory(*bytes, request.model, variant, isCuda(options.target));
  return opened ? opened->run(inputs, results) : opened.takeError();
}

int Compiler::failedRun(llvm::Error error, StringRef path) {
  bool ofMachine = false;
  std::string text;
  llvm::handleAllErrors(std::move(error), [&](const llvm::ErrorInfoBase &info) {
    ofMachine = info.convertToErrorCode() == std::errc::no_such_device;
    text = info.message();
  });
  if (StringRef(text).starts_with(path))
    text.replace(0, path.size(), request.output);
  return fail(ofMachine ? kMachine : kWrongUse,
              text + (ofMachine ? "; leave --verify out, which runs the artifact here" : ""));
}

int Compiler::verifyArtifact(const std::string &path) {
  showStage("verify", kVerifyShare);
  for (machine::TargetKind target : targets)
    if (int code = verifyTarget(target, path))
      return code;
  return kDone;
}

/// Runs each function of each variant that this machine can run on seeded inputs and compares with the interpreter.
int Compiler::verifyTarget(machine::TargetKind target, const std::string &path) {
  setTarget(target);
  const bool onGpu = isCuda(target);
  auto any = OpenedArtifact::openFile(path, "", onGpu);
  if (!any)
    return failedRun(any.takeError(), path);
  if (llvm::Error error = any->checkMachine())
    return failedRun(std::move(error), path);
  std::vector<std::string> variants = any->getUsableVariants();
  double largest = 0, allowed = 0;
  for (auto [number, function] : llvm::enumerate(getFunctions(*reference))) {
    allowed = std::max(allowed, getTolerance(function));
    for (const llvm::StringMap<int64_t> &sizes : prim::getSizesOfCodes(function))
      for (const std::string &variant : variants)
        if (int code = verifyFunction(function, number, sizes, variant, onGpu, path, largest))
          return code;
  }
  if (request.quiet)
    return kDone;
  SmallVector<std::string> others;
  for (const std::string &variant : options.variants)
    if (!onGpu && !llvm::is_contained(variants, variant))
      others.push_back(variant);
  // The worst comes first in an artifact, and last here.
  std::reverse(variants.begin(), variants.end());
  std::string error = largest == 0 ? std::string("no error")
                                   : llvm::formatv("the largest error is {0:e1} of the largest value", largest).str();
  return fail(kDone, request.output + ": verified on " + describeMachines(variants) + ": " + error +
                         llvm::formatv(", allowed {0:e1}", allowed) +
                         (others.empty() ? "" : "; this machine cannot run " + describeMachines(others)));
}

/// ", batch=8, length=128"; other dims have small sizes.
static std::string describe(const llvm::StringMap<int64_t> &sizes) {
  std::map<llvm::StringRef, int64_t> sorted;
  for (const auto &entry : sizes)
    sorted.emplace(entry.getKey(), entry.getValue());
  std::string text;
  for (auto [name, size] : sorted)
    text += ", " + name.str() + "=" + std::to_string(size);
  return text;
}

int Compiler::verifyFunction(func::FuncOp function, uint32_t number, const llvm::StringMap<int64_t> &sizes,
                             const std::string &variant, bool onGpu, const std::string &path, double &largest) {
  StringRef prefix = "--verify: ";
  auto inputs = target::makeRandomInputs(function, sizes, /*seed=*/0);
  if (!inputs)
    return fail(kWrongUse, request.model + ": error: " + prefix + llvm::toString(inputs.takeError()));
  auto opened = OpenedArtifact::openFile(path, variant, onGpu);
  if (!opened)
    return failedRun(opened.takeError(), path);
  bool isWhole = true, isFailed = false;
  auto run = [&](ModuleOp probe) {
    if (!std::exchange(isWhole, false))
      return runProbe(probe, variant, *inputs);
    auto outputs = opened->run(*inputs, getFunctions(probe).front().getResultTypes(), number);
    isFailed = !outputs;
    return outputs;
  };
  double own = 0;
  auto finding = target::verify(function, *inputs, getTolerance(function), run, &own);
  if (!finding && isFailed)
    return failedRun(finding.takeError(), path);
  if (!finding)
    return fail(kWrongUse, request.model + ": error: " + prefix + llvm::toString(finding.takeError()));
  largest = std::max(largest, own);
  if (log::isEnabled("verify"))
    log::write("verify", llvm::formatv("function {0}, variant {1}{2}: {3}, allowed {4:e1}", function.getSymName(),
                                       variant, describe(sizes),
                                       *finding ? (*finding)->what : llvm::formatv("largest error {0:e1}", own).str(),
                                       getTolerance(function))
                             .str());
  if (!*finding)
    return kDone;
  // What computes something else is no artifact, and no reason to lose one that is.
  return fail(kDiffers, request.model + ": error: " + (*finding)->what + "; variant " + variant +
                            " differs from the reference in float64, and " + request.output +
                            (llvm::sys::fs::exists(request.output) ? " stays as it was" : " is not written"));
}
