//===- CheckRequest.cpp - what a request cannot ask for -----------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Compiler.h"

#include "BackendParts.h"
#include "CheckSizes.h"
#include "DepFile.h"
#include "Ranges.h"
#include "tc/Dialect/Prim/IR/Prim.h"
#include "tc/Dialect/Prim/Transforms/PrecisionSwitch.h"
#include "tc/Dialect/TC/IR/NodeNames.h"
#include "tc/Support/Logging.h"
#include "tc/Support/NodePattern.h"
#include "tc/Target/Target.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace tc;
using namespace tc::driver;

/// Reads --target, --cpu and --gpu.
int Compiler::checkMachines(MLIRContext *context) {
  auto wrong = [&](const Twine &sentence) { return fail(kWrongUse, "tc-compile: error: " + sentence); };
  for (const std::string &name : request.targets) {
    llvm::Expected<machine::TargetKind> target = machine::parseTarget(name);
    if (!target)
      return wrong("--target " + llvm::toString(target.takeError()));
    if (!isFor(*target))
      targets.push_back(*target);
  }
  if (targets.empty())
    targets.push_back(machine::TargetKind::Cpu);
  const bool several = targets.size() > 1;
  if (several && isFor(machine::TargetKind::Reference))
    return wrong("--target reference stands alone in an artifact; give one --target");
  if (several && request.stopAtPhase && request.compileTo > Phase::Prim)
    return wrong("--compile-to=" + getName(request.compileTo) + " shows one target; give one --target");
  if (several && request.externalWeights)
    return wrong("--external-weights is not supported with several targets yet; give one --target");
  // What runs everywhere comes first in an artifact.
  llvm::stable_sort(targets, [](machine::TargetKind a, machine::TargetKind b) {
    return machine::getDevice(a) < machine::getDevice(b);
  });
  for (const std::string &name : request.cpus) {
    llvm::Expected<machine::CpuAttr> cpu = machine::parseCpu(context, name);
    if (!cpu)
      return wrong("--cpu " + llvm::toString(cpu.takeError()));
    cpus.push_back(*cpu);
  }
  if (cpus.empty())
    cpus = machine::getDefaultCpus(context);
  machine::sortCpus(cpus);
  if (!request.cpus.empty() && llvm::all_of(targets, isCuda))
    return wrong("--cpu belongs to --target cpu; add that target, or leave the option out");
  if (!request.gpus.empty() && !isFor(machine::TargetKind::Cuda))
    return wrong("--gpu belongs to --target cuda; add that target, or leave the option out");
  for (const std::string &name : request.gpus) {
    llvm::Expected<machine::GpuAttr> gpu = machine::parseGpu(context, name);
    if (!gpu)
      return wrong("--gpu " + llvm::toString(gpu.takeError()));
    if (target::TargetBackend *backend = target::lookupBackend(machine::DeviceKind::Cuda))
      if (llvm::Error unknown = backend->checkMachine(*gpu))
        return wrong("--gpu " + llvm::toString(std::move(unknown)) +
                     "; give an older chip, of which the driver compiles PTX for newer ones");
    if (!llvm::is_contained(gpus, *gpu))
      gpus.push_back(*gpu);
  }
  if (gpus.empty())
    gpus = machine::getDefaultGpus(context);
  return kDone;
}

/// What is accepted, because other compilers know it or later targets will, and changes nothing now.
void Compiler::warnOfIdleOptions() {
  if (request.fullGraph)
    warn("--fullgraph changes nothing: the whole model compiles, or nothing does");
  if (request.allowLibs)
    warn("--allow-libs changes nothing: no vendor library is used yet, all kernels are tc's own");
  if (request.mode == "reduce-overhead" && !isFor(machine::TargetKind::Cuda))
    warn("--mode reduce-overhead changes nothing on CPUs: in every mode launches are grouped, "
         "and threads woken ahead of them");
  const auto hasTf32 = [](StringRef text) { return text.rsplit('=').second == "tf32"; };
  if ((request.precision == "tf32" || llvm::any_of(request.nodePrecisions, hasTf32)) &&
      !isFor(machine::TargetKind::Cuda))
    warn("--precision tf32 changes nothing: CPUs multiply no such numbers, and products stay f32");
  const bool stops = request.stopAtPhase ? request.compileTo < Phase::Schedule : request.output.empty();
  for (StringRef option : {"--mode", "--tuning-db"}) {
    if (option == "--mode" ? !measures() : request.tuningDb.empty())
      continue;
    std::string text = option == "--mode" ? "--mode " + request.mode : option.str();
    if (stops)
      warn(text + " changes nothing before phase schedule; give -o OUT without an earlier --compile-to");
  }
}

bool CompileRequest::choosesPrecision() const { return StringRef(precision).split(':').first == "auto"; }

std::optional<double> CompileRequest::getPrecisionBudget() const {
  double budget;
  if (!choosesPrecision() || StringRef(precision).split(':').second.getAsDouble(budget) || !(budget > 0 && budget < 1))
    return std::nullopt;
  return budget;
}

/// What is wrong with the options of --quantize, which need each other.
static std::string findQuantizeError(const CompileRequest &request) {
  const std::pair<const char *, bool> others[] = {{"--calibrate", !request.calibrate.empty()},
                                                  {"--calibrate-method", request.calibrateMethod != "minmax"},
                                                  {"--quantize-exclude", !request.quantizeExclude.empty()},
                                                  {"--quantize-budget", request.quantizeBudget.has_value()},
                                                  {"--quantized-model", !request.quantizedModel.empty()}};
  if (request.quantize.empty()) {
    for (auto [option, given] : others) {
      const bool isData = option == StringRef("--calibrate");
      if (given && !(isData && request.choosesPrecision()))
        return std::string(option) + " belongs to --quantize int8" +
               (isData ? " or --precision auto:R; add one" : "; add that") + ", or leave the option out";
    }
    return "";
  }
  if (request.quantize != "int8")
    return "--quantize " + request.quantize + " is not known; known: int8";
  if (request.calibrate.empty())
    return "--quantize learns the ranges of values from data; give --calibrate FILE.npz, arrays named after inputs";
  if (!parseRangeRule(request.calibrateMethod))
    return "--calibrate-method " + request.calibrateMethod +
           " is not known; known: minmax, percentile, percentile:P with P of 50 to 100, entropy";
  if (request.quantizeBudget && !(*request.quantizeBudget > 0))
    return "--quantize-budget is the error allowed, relative to the largest value of an output, such as 0.02; give one "
           "above 0";
  return "";
}

static bool isPrecision(StringRef text) { return prim::parseRounding(text).has_value(); }

static std::string findPrecisionError(const CompileRequest &request) {
  const std::string given = "--precision " + request.precision;
  if (request.choosesPrecision() && !request.getPrecisionBudget())
    return given +
           " lacks the error allowed, relative to the largest value of an output, above 0 and below 1; give one "
           "such as auto:0.005";
  if (!request.choosesPrecision() && !isPrecision(request.precision))
    return given + " is not known; known: f32, tf32, bf16, f16, auto:R";
  for (StringRef text : request.nodePrecisions)
    if (auto [pattern, type] = text.rsplit('='); pattern.empty() || !isPrecision(type))
      return "--precision " + text.str() + (pattern.empty() ? " names no node" : " is not known") +
             "; after the node or pattern comes = and f32, tf32, bf16 or f16";
  if (request.choosesPrecision() && !request.quantize.empty())
    return given + " and --quantize both choose by the error of outputs; give one of them";
  if (!request.choosesPrecision() && !request.chosenPrecision.empty())
    return "--chosen-precision belongs to --precision auto:R; add that, or leave the option out";
  return "";
}

/// What is wrong with --tuning-candidates.
std::string Compiler::findCandidatesError() const {
  if (request.tuningCandidates.empty())
    return "";
  const std::string option = "--tuning-candidates";
  if (measures())
    return option + " leaves measuring to tc-run --tune, and --mode " + request.mode +
           " measures here; leave one of them out";
  if (llvm::all_of(targets, [](machine::TargetKind target) { return target == machine::TargetKind::Reference; }))
    return option + " writes schedules, and --target reference has none; add another target, or leave the option out";
  if (request.stopAtPhase && request.compileTo < Phase::Schedule)
    return option + " writes what phase schedule may choose; give no earlier --compile-to";
  return "";
}

/// Says what cannot be done before anything is done.
int Compiler::checkRequest(MLIRContext *context) {
  auto wrong = [&](const Twine &sentence) { return fail(kWrongUse, "tc-compile: error: " + sentence); };
  if (request.output.empty() && !request.explain && request.tuningCandidates.empty() &&
      !(request.stopAtPhase && request.compileTo == Phase::Artifact))
    return wrong("no output file is given; add -o OUT");
  if (request.output == "-" && !(request.stopAtPhase && request.compileTo < Phase::Artifact))
    return wrong("-o -: an artifact is a file, which runs map; give -o OUT, or a module with --compile-to");
  if (int code = checkMachines(context))
    return code;
  if (!llvm::is_contained({"default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"}, request.mode))
    return wrong("--mode " + request.mode +
                 " is not known; known: default, reduce-overhead, max-autotune, max-autotune-no-cudagraphs");
  if ((measures() || !request.tuningDb.empty()) &&
      llvm::all_of(targets, [](machine::TargetKind target) { return target == machine::TargetKind::Reference; }))
    return wrong((measures() ? "--mode " + request.mode : std::string("--tuning-db")) +
                 " chooses schedules, and --target reference has none; add another target, or leave the option out");
  if (std::string sentence = findCandidatesError(); !sentence.empty())
    return wrong(sentence);
  if (request.tuningThreads && !measures() && request.tuningDb.empty())
    return wrong("--tuning-threads belongs to --mode max-autotune or --tuning-db");
  if (!request.tuningMachine.empty() && (measures() || request.tuningDb.empty()))
    return wrong("--tuning-machine names records of --tuning-db, and measuring gives those of this machine only; " +
                 std::string(measures() ? "leave --mode out" : "add --tuning-db FILE"));
  if (std::string sentence = findPrecisionError(request); !sentence.empty())
    return wrong(sentence);
  if (std::string sentence = findQuantizeError(request); !sentence.empty())
    return wrong(sentence);
  if (request.verify && (request.output.empty() || request.stopAtPhase))
    return wrong("--verify runs the artifact; give -o OUT and no --compile-to");
  if (request.allowHostOps && request.customOps.empty())
    return wrong("--allow-host-ops lets functions of yours compute what tc refuses; give their signatures by "
                 "--custom-op FILE.json");
  if (std::string sentence = findBackendError(request.backendFor); !sentence.empty())
    return wrong(sentence);
  if (!request.backendFor.empty() && isFor(machine::TargetKind::Cuda))
    return wrong("--backend-for hands nodes to ONNX Runtime on the CPU, which code for --target cuda would wait for; "
                 "leave one of them out");
  if (!request.staticInputs.empty() && isFor(machine::TargetKind::Cuda))
    return wrong(
        "--static-input is for code of CPUs, and --target cuda reads all inputs in each run; leave one of them "
        "out");
  CustomOperators signatures;
  for (const std::string &file : request.customOps)
    if (llvm::Error error = readCustomOperators(file, signatures))
      return fail(kWrongUse, llvm::toString(std::move(error)));
  if (std::string unknown = log::enable(request.logs); !unknown.empty())
    return wrong("--logs " + unknown + " is not known; known: all, " + llvm::join(log::getChannels(), ", "));
  for (const std::string &name : request.printIrAfter)
    if (!PassInfo::lookup(name))
      return wrong("--print-ir-after: there is no pass " + name + "; tc-opt --help lists them");
  if (request.externalWeights &&
      (request.output.empty() || (request.stopAtPhase && request.compileTo < Phase::Artifact)))
    return wrong("--external-weights writes them beside the artifact; give -o OUT and no --compile-to");
  for (const std::string &sentence : {findSizeError(request), findDepFileError(request)})
    if (!sentence.empty())
      return wrong(sentence);
  if (!request.debugDir.empty()) {
    folder.emplace(request);
    if (llvm::Error error = folder->begin())
      return fail(kWrongUse, llvm::toString(std::move(error)));
  }
  warnOfIdleOptions();
  return kDone;
}

/// Refuses options of phases that a module of tc's own IR has behind it.
void Compiler::warnOfIdlePrecisions(ModuleOp module) {
  llvm::StringSet<> products;
  module.walk([&](Operation *op) {
    if (prim::getRole(op) == prim::Role::Contraction || isa<prim::RnnOp>(op))
      for (StringRef name : base::getNodeNames(op->getLoc()))
        products.insert(name);
  });
  for (StringRef text : request.nodePrecisions) {
    const NodePattern pattern(text.rsplit('=').first.str());
    if (llvm::none_of(products.keys(), [&](StringRef name) { return pattern.matches(name); }))
      warn("--precision " + text + " changes nothing: none of the nodes that it names is a product; --explain shows " +
           "products by their nodes");
  }
}

int Compiler::checkStart(Phase from, Phase last) {
  std::string where = (request.model + ": error: the module stands at the end of phase " + getName(from)).str();
  if (last < from)
    return fail(kWrongUse, where + ", which is after phase " + getName(last) + "; give that phase or a later one");
  if (from > Phase::Prim && targets.size() > 1)
    return fail(kWrongUse, where + ", which is for one target; give one --target");
  if (from > Phase::Prim && request.verify)
    return fail(kWrongUse, where + "; --verify needs a model or a module of phase import or prim");
  const std::pair<StringRef, bool> ofImport[] = {
      {"--check-bounds", request.checkBounds},
      {"--precision", request.precision != "f32" || !request.nodePrecisions.empty()},
      {"--dim", !request.dims.empty()},
      {"--shape", !request.shapes.empty()},
      {"--no-assume", !request.noAssume.empty()},
      {"--custom-op", !request.customOps.empty()},
      {"--allow-host-ops", request.allowHostOps},
      {"--outputs", !request.innerOutputs.empty()},
      {"--disable", !request.disabled.empty()},
      {"--backend-for", !request.backendFor.empty()},
      {"--stop-after", request.stopAfter > 0},
      {"--quantize", !request.quantize.empty()}};
  for (auto [option, given] : ofImport)
    if (given && from > Phase::Import)
      return fail(kWrongUse, where + "; " + option + " needs a model or a module of phase import");
  const std::pair<StringRef, bool> ofFuse[] = {{"--mode", measures()},
                                               {"--tuning-db", !request.tuningDb.empty()},
                                               {"--tuning-candidates", !request.tuningCandidates.empty()}};
  if (!request.staticInputs.empty() && from > Phase::Kernel)
    return fail(kWrongUse, where + "; --static-input needs a model or a module of phase kernel or before");
  for (auto [option, given] : ofFuse)
    if (given && from > Phase::Fuse)
      return fail(kWrongUse, where + "; " + option + " needs a model or a module of phase fuse or before");
  return kDone;
}
