//===- Compile.cpp - the compiler as a function -------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Driver/Compile.h"

#include "ArtifactCache.h"
#include "CheckSizes.h"
#include "DebugFolder.h"
#include "DepFile.h"
#include "Explain.h"
#include "Guards.h"
#include "InnerOutputs.h"
#include "LoadModel.h"
#include "PassWatch.h"
#include "Refit.h"
#include "RunArtifact.h"
#include "SummaryText.h"
#include "tc/Autotune/Tune.h"
#include "tc/Codegen/Passes.h"
#include "tc/Conversion/HostToLLVM/HostToLLVM.h"
#include "tc/Dialect/Host/IR/Host.h"
#include "tc/Dialect/Machine/IR/Machine.h"
#include "tc/Dialect/Prim/IR/ListedSizes.h"
#include "tc/Dialect/Prim/IR/Prim.h"
#include "tc/Dialect/TC/IR/ErrorKind.h"
#include "tc/Dialect/TC/IR/TC.h"
#include "tc/Driver/Assemble.h"
#include "tc/Driver/Register.h"
#include "tc/Driver/Reproducer.h"
#include "tc/Functions/Store.h"
#include "tc/Support/Logging.h"
#include "tc/Support/MappedFiles.h"
#include "tc/Support/OutputFile.h"
#include "tc/Support/Progress.h"
#include "tc/Support/Threads.h"
#include "tc/Support/ToolText.h"
#include "tc/Target/Reference/Reference.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/ThreadPool.h"
#include "llvm/Support/ToolOutputFile.h"
#include <chrono>
#include <mutex>

using namespace mlir;
using namespace tc;
using namespace tc::driver;

/// On modules whose programs check indices, from the first phase to the artifact.
static constexpr llvm::StringLiteral kCheckBoundsAttr = "tc.check_bounds";

/// Shares of the phases in the time of a compile, in percent, for the progress bar: inception_v3 takes 1, 1, 0, 0, 7,
/// 2, 82 and 6 of these, small models 3, 0, 1, 0, 6, 2, 88 and 0. What measures schedules takes many times as long.
static constexpr double kShares[kPhaseCount] = {1, 2, 1, 1, 8, 3, 80, 4}, kTuneShare = 1000, kVerifyShare = 40;

namespace {

bool isCuda(machine::TargetKind target) { return machine::getDevice(target) == machine::DeviceKind::Cuda; }

using Clock = std::chrono::steady_clock;
double secondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

class Compiler {
public:
  /// `files`: gets those that the model names.
  Compiler(const CompileRequest &request, raw_ostream &errors, ArtifactCache &cache, std::set<std::string> &files)
      : request(request), errors(errors), cache(cache), files(files), reproducer(request), bar(!request.verbose),
        start(Clock::now()) {}
  int run();

private:
  int compile();
  int checkRequest(MLIRContext *context);
  int checkMachines(MLIRContext *context);
  int checkStart(Phase from, Phase last);
  void warnOfIdleOptions();
  bool isFor(machine::TargetKind target) const { return llvm::is_contained(targets, target); }
  void setTarget(machine::TargetKind target);
  int runPhases(SmallVectorImpl<OwningOpRef<ModuleOp>> &modules, Phase from, bool isMlir);
  int runPhases(ModuleOp module, Phase from, Phase last);
  int runPhase(ModuleOp module, Phase phase);
  /// Whether --mode asks for measurements.
  bool measures() const { return StringRef(request.mode).starts_with("max-autotune"); }
  /// Whether nothing is compiled: --explain without a file to write.
  bool explainsOnly() const { return request.explain && request.output.empty() && !request.stopAtPhase; }
  /// Whether phase schedule measures.
  bool tunes() const { return measures() && isFor(machine::TargetKind::Cpu) && !explainsOnly(); }
  int tune(ModuleOp module);
  llvm::Expected<std::string> buildProbe(ModuleOp probe, Phase from, ArrayRef<std::string> variants);
  int keepModule(Phase phase, ModuleOp module);
  int writeModule(ModuleOp module);
  int writeArtifact(ArrayRef<OwningOpRef<ModuleOp>> modules);
  void summarize(const artifact::ArtifactSpec &spec);
  std::string describeResult() const {
    return nameOutput(summary, request.output) + llvm::formatv(", compiled in {0:f1} s", seconds).str();
  }
  int writeExplanation();
  int verifyArtifact(const std::string &path);
  int verifyTarget(machine::TargetKind target, const std::string &path);
  int verifyFunction(func::FuncOp function, uint32_t number, const llvm::StringMap<int64_t> &sizes,
                     const std::string &variant, bool onGpu, const std::string &path, double &largest);
  /// What the runtime says of `path`, said of the output.
  int failedRun(llvm::Error error, StringRef path);
  llvm::Expected<std::vector<prim::Tensor>> runProbe(ModuleOp probe, const std::string &variant,
                                                     ArrayRef<prim::Tensor> inputs);
  bool runPasses(ModuleOp module, llvm::function_ref<void(PassManager &)> build);
  void report(Diagnostic &diagnostic);
  int internalError(StringRef what);
  int fail(ExitCode code, const Twine &sentence) {
    progress::clear();
    const std::string line = printable(sentence.str());
    errors << line << "\n";
    cache.addLines(line);
    return code;
  }
  void warn(const Twine &sentence) { fail(kDone, "tc-compile: warning: " + sentence); }
  int fail(llvm::Error error, StringRef prefix);
  int failedPasses(StringRef what);
  void beginStep(Phase phase);
  void showStage(StringRef name, double share);
  void planShares(Phase from, Phase last, Phase common);
  void endStep(Phase phase);

  const CompileRequest &request;
  raw_ostream &errors;
  ArtifactCache &cache;
  std::set<std::string> &files;
  SmallVector<machine::TargetKind> targets; ///< in the order in which they stand in the artifact
  SmallVector<machine::CpuAttr> cpus;       ///< the best last, as passes take them
  SmallVector<machine::GpuAttr> gpus;
  PhaseOptions options;
  Explanation explanation;
  OwningOpRef<ModuleOp> reference; ///< the module at the end of phase prim, for --verify
  std::optional<DebugFolder> folder;
  Reproducer reproducer;
  progress::Bar bar;
  std::vector<std::pair<base::ErrorKind, std::string>> failures; ///< errors of the passes run last, with their notes
  bool quiet = false;                                            ///< collect errors only
  Clock::time_point start, stepStart;
  double stepSeconds = 0; ///< of the last phase
  Phase current = Phase::Import;
  double shareDone = 0, shareOfAll = kShares[unsigned(Phase::Import)]; ///< of the progress bar
  double seconds = 0;                                                  ///< from the start to the end of the last phase
  llvm::StringSet<> printed;                                           ///< passes of --print-ir-after that ran
  std::mutex printedMutex;                                             ///< passes run in parallel
  std::string summary; ///< of the artifact that was written, without its time
};

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
    warn("--mode reduce-overhead changes nothing on CPUs: launches are grouped in every mode");
  if (request.precision == "tf32" && !isFor(machine::TargetKind::Cuda))
    warn("--precision tf32 changes nothing: CPUs multiply no such numbers, and products stay f32");
  const bool stops = request.stopAtPhase ? request.compileTo < Phase::Schedule : request.output.empty();
  for (StringRef option : {"--mode", "--tuning-db"}) {
    if (option == "--mode" ? !measures() : request.tuningDb.empty())
      continue;
    std::string text = option == "--mode" ? "--mode " + request.mode : option.str();
    if (stops)
      warn(text + " changes nothing before phase schedule; give -o OUT without an earlier --compile-to");
    else if (targets.size() > 1)
      warn(text + " is for --target cpu only yet; kernels for cuda keep their default schedules");
  }
}

/// Says what cannot be done before anything is done.
int Compiler::checkRequest(MLIRContext *context) {
  auto wrong = [&](const Twine &sentence) { return fail(kWrongUse, "tc-compile: error: " + sentence); };
  if (request.output.empty() && !request.explain && !(request.stopAtPhase && request.compileTo == Phase::Artifact))
    return wrong("no output file is given; add -o OUT");
  if (request.output == "-" && !(request.stopAtPhase && request.compileTo < Phase::Artifact))
    return wrong("-o -: an artifact is a file, which runs map; give -o OUT, or a module with --compile-to");
  if (int code = checkMachines(context))
    return code;
  if (!llvm::is_contained({"default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"}, request.mode))
    return wrong("--mode " + request.mode +
                 " is not known; known: default, reduce-overhead, max-autotune, max-autotune-no-cudagraphs");
  if ((measures() || !request.tuningDb.empty()) && !isFor(machine::TargetKind::Cpu))
    return wrong((measures() ? "--mode " + request.mode : std::string("--tuning-db")) +
                 " is supported for --target cpu only yet; add that target, or leave the option out");
  if (request.tuningThreads && !measures() && request.tuningDb.empty())
    return wrong("--tuning-threads belongs to --mode max-autotune or --tuning-db");
  if (!request.tuningMachine.empty() && (measures() || request.tuningDb.empty()))
    return wrong("--tuning-machine names records of --tuning-db, and measuring gives those of this machine only; " +
                 std::string(measures() ? "leave --mode out" : "add --tuning-db FILE"));
  if (!llvm::is_contained({"f32", "tf32", "bf16", "f16"}, request.precision))
    return wrong("--precision " + request.precision + " is not known; known: f32, tf32, bf16, f16");
  if (request.verify && (request.output.empty() || request.stopAtPhase))
    return wrong("--verify runs the artifact; give -o OUT and no --compile-to");
  if (request.allowHostOps && request.customOps.empty())
    return wrong("--allow-host-ops lets functions of yours compute what tc refuses; give their signatures by "
                 "--custom-op FILE.json");
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
  bool same = false;
  if (!request.output.empty() && !llvm::sys::fs::equivalent(request.model, request.output, same) && same)
    return fail(kWrongUse, request.output + ": error: the output is the model itself; give another output file");
  warnOfIdleOptions();
  return kDone;
}

/// `<file>: error: node "<name>": <message>`.
void Compiler::report(Diagnostic &diagnostic) {
  std::string text = diagnostic.str();
  std::string line = request.model;
  switch (diagnostic.getSeverity()) {
  case DiagnosticSeverity::Error:
    line += ": error: ";
    break;
  case DiagnosticSeverity::Warning:
    line += ": warning: ";
    break;
  default:
    line += ": note: ";
  }
  SmallVector<StringRef> names = host::getNodeNames(diagnostic.getLocation());
  // In tc's own IR a place in the file, where it is of no named node.
  auto place = diagnostic.getLocation()->findInstanceOf<FileLineColLoc>();
  if (names.empty() && place && place.getFilename() == request.model)
    line += llvm::formatv("line {0}, column {1}: ", place.getLine(), place.getColumn());
  // A name may hold ends of lines.
  std::string name = names.empty() ? "" : names.front().str(), shown = name;
  llvm::replace(shown, '\n', '?');
  for (size_t at = shown == name ? std::string::npos : text.find(name); at != std::string::npos; at = text.find(name))
    text.replace(at, name.size(), shown);
  if (!shown.empty() && !StringRef(text).contains("\"" + shown + "\""))
    line += "node \"" + shown + "\": ";
  // One line: what MLIR appends (the op's text) is for developers.
  line += StringRef(text).split('\n').first;
  for (Diagnostic &note : diagnostic.getNotes()) {
    std::string noteText = note.str();
    line += "\n" + request.model + ": note: " + StringRef(noteText).split('\n').first.str();
  }
  if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
    failures.emplace_back(base::getErrorKind(diagnostic), line);
  if (!quiet) {
    progress::clear();
    line = printable(line);
    errors << line << "\n";
    cache.addLines(line);
  }
}

int Compiler::internalError(StringRef what) {
  progress::clear();
  what.consume_front(request.model + ": error: ");
  errors << request.model << ": error: internal error: " << what.split('\n').first
         << "; this is a defect of tc, please report it with the model and this command: " << request.commandLine
         << "\n";
  errors.flush();
  if (reproducer.write())
    errors << request.model << ": note: the module before that phase is in " << reproducer.getPath() << "\n";
  return kInternal;
}

/// Errors of assembly and of the writer: std::errc::not_supported is what tc lacks, other codes of std::errc are files.
int Compiler::fail(llvm::Error error, StringRef prefix) {
  std::error_code code;
  std::string what;
  llvm::handleAllErrors(std::move(error), [&](const llvm::ErrorInfoBase &info) {
    code = info.convertToErrorCode();
    what = info.message();
  });
  if (code.category() != std::generic_category())
    return internalError(what);
  return fail(code == std::errc::not_supported ? kUnsupported : kWrongUse, prefix + what);
}

/// Passes failed that are not about what the user wrote: what they said decides whose defect it is.
int Compiler::failedPasses(StringRef what) {
  if (failures.empty())
    return internalError(what);
  base::ErrorKind kind = failures.front().first;
  if (kind == base::ErrorKind::Internal)
    return internalError(failures.front().second);
  for (const auto &[other, line] : failures)
    if (other == kind)
      fail(kDone, line);
  if (kind != base::ErrorKind::Unsupported)
    return kWrongUse;
  if (isCuda(options.target))
    fail(kDone, request.model + ": note: what GPUs alone have no code for, --target cpu compiles for CPUs");
  return kUnsupported;
}

void Compiler::beginStep(Phase phase) {
  stepStart = Clock::now();
  current = phase;
  reproducer.setPhase(phase);
  showStage(getName(phase), kShares[unsigned(phase)]);
}

/// The bar's part of a stage whose share of all work is `share`.
void Compiler::showStage(StringRef name, double share) {
  const double begin = std::exchange(shareDone, shareDone + share);
  progress::beginStage(name, begin / shareOfAll, shareDone / shareOfAll);
}

/// What the bar is divided by: the phases that will run, for each target, and what measures and verifies.
void Compiler::planShares(Phase from, Phase last, Phase common) {
  for (unsigned i = unsigned(from) + 1; i <= unsigned(last); ++i)
    shareOfAll += kShares[i] * (Phase(i) > common && Phase(i) < Phase::Artifact ? targets.size() : 1);
  if (tunes() && from < Phase::Schedule && last >= Phase::Schedule)
    shareOfAll += kTuneShare;
  if (request.verify)
    shareOfAll += kVerifyShare;
}

void Compiler::endStep(Phase phase) {
  seconds = secondsSince(start);
  stepSeconds = secondsSince(stepStart);
  if (request.verbose)
    errors << llvm::formatv("{0,-10} {1,8:f1} ms\n", getName(phase), 1e3 * stepSeconds);
}

bool Compiler::runPasses(ModuleOp module, llvm::function_ref<void(PassManager &)> build) {
  failures.clear();
  PassManager manager(module->getName());
  build(manager);
  addPassLog(manager);
  if (!request.printIrAfter.empty()) {
    auto wanted = [&](Pass *pass, Operation *) {
      if (!llvm::is_contained(request.printIrAfter, pass->getArgument()))
        return false;
      std::lock_guard<std::mutex> lock(printedMutex);
      printed.insert(pass->getArgument());
      return true;
    };
    manager.enableIRPrinting([](Pass *, Operation *) { return false; }, wanted, /*printModuleScope=*/false,
                             /*printAfterOnlyOnChange=*/false, /*printAfterOnlyOnFailure=*/false, errors);
  }
  return succeeded(manager.run(module));
}

int Compiler::runPhase(ModuleOp module, Phase phase) {
  // Only the errors of phase prim are about what a user wrote, and shown as they come.
  quiet = phase != Phase::Prim;
  bool passed = runPasses(module, [&](PassManager &manager) {
    // The phase's verifier follows; after every pass it takes a tenth of the time.
    manager.enableVerifier(false);
    buildPhasePipeline(phase, manager, options);
    // Phase object is one pass, which counts its kernels.
    if (phase == Phase::Object)
      return;
    addProgress(manager, module);
  });
  quiet = false;
  if (!passed) {
    if (phase == Phase::Prim) {
      if (explanation.report.invalidCount > 0)
        return kWrongUse;
      if (!explanation.report.unsupported.empty())
        return kUnsupported;
    }
    return failedPasses(("phase " + getName(phase) + " failed").str());
  }
  quiet = true;
  bool valid = runPasses(module, [&](PassManager &manager) { addPhaseVerifier(phase, manager); });
  quiet = false;
  return valid ? int(kDone) : failedPasses(("the verifier of phase " + getName(phase) + " failed").str());
}

/// What the passes are told for one target.
void Compiler::setTarget(machine::TargetKind target) {
  options.target = target;
  options.fuse = target != machine::TargetKind::Reference;
  options.variants.clear();
  auto add = [&](auto machines) {
    for (machine::MachineAttr machine : machines)
      options.variants.push_back(machine.getName().str());
  };
  if (isCuda(target))
    add(gpus);
  else
    add(cpus);
  reproducer.setTarget(target);
}

/// Refuses options of phases that a module of tc's own IR has behind it.
int Compiler::checkStart(Phase from, Phase last) {
  std::string where = (request.model + ": error: the module stands at the end of phase " + getName(from)).str();
  if (last < from)
    return fail(kWrongUse, where + ", which is after phase " + getName(last) + "; give that phase or a later one");
  if (from > Phase::Prim && targets.size() > 1)
    return fail(kWrongUse, where + ", which is for one target; give one --target");
  if (from > Phase::Prim && request.verify)
    return fail(kWrongUse, where + "; --verify needs a model or a module of phase import or prim");
  const std::pair<StringRef, bool> ofImport[] = {
      {"--check-bounds", request.checkBounds},    {"--precision", request.precision != "f32"},
      {"--dim", !request.dims.empty()},           {"--shape", !request.shapes.empty()},
      {"--no-assume", !request.noAssume.empty()}, {"--custom-op", !request.customOps.empty()},
      {"--allow-host-ops", request.allowHostOps}, {"--outputs", !request.innerOutputs.empty()}};
  for (auto [option, given] : ofImport)
    if (given && from > Phase::Import)
      return fail(kWrongUse, where + "; " + option + " needs a model or a module of phase import");
  const std::pair<StringRef, bool> ofFuse[] = {{"--mode", measures()}, {"--tuning-db", !request.tuningDb.empty()}};
  for (auto [option, given] : ofFuse)
    if (given && from > Phase::Fuse)
      return fail(kWrongUse, where + "; " + option + " needs a model or a module of phase fuse or before");
  return kDone;
}

/// Checks what was loaded, and runs the phases for each target: modules.front() is for the first, and so on.
int Compiler::runPhases(SmallVectorImpl<OwningOpRef<ModuleOp>> &modules, Phase from, bool isMlir) {
  ModuleOp module = *modules.front();
  quiet = true;
  bool valid = runPasses(module, [&](PassManager &manager) { addPhaseVerifier(from, manager); });
  quiet = false;
  if (!valid)
    return isMlir && !failures.empty() && failures.front().first == base::ErrorKind::Internal
               ? fail(kWrongUse, failures.front().second)
               : failedPasses("the import failed");
  Phase last = request.compileTo;
  if (explainsOnly())
    last = Phase::Schedule;
  if (int code = checkStart(from, last))
    return code;
  setTarget(targets.front());
  if (request.explain) {
    if (from == Phase::Import)
      explanation.addNodes(module);
    if (from == Phase::Fuse || from == Phase::Schedule)
      explanation.addKernels(module);
    if (from == Phase::Schedule)
      explanation.addSchedules(module, options.target);
  }
  // Up to prim all targets are the same.
  Phase common = std::min(std::max(from, Phase::Prim), last);
  planShares(from, last, common);
  if (int code = runPhases(module, from, common))
    return code;
  if (request.verify) {
    prim::HostCallOp foreign;
    module.walk([&](prim::HostCallOp call) {
      if (!foreign && !tcrt_find_function(call.getCallee().data(), call.getCallee().size()))
        foreign = call;
    });
    if (foreign)
      return fail(kUnsupported, request.model + ": error: node \"" +
                                    llvm::join(host::getNodeNames(foreign.getLoc()), "+") + "\": it calls \"" +
                                    foreign.getCallee() +
                                    "\", a function outside of libtcrt, which the oracle of --verify lacks; compile "
                                    "without --verify");
    reference = module.clone();
  }
  for (size_t i = 1; i < targets.size(); ++i)
    modules.push_back(module.clone());
  // The first target last: it is what the explanation is about.
  for (size_t i = targets.size(); i-- > 0;) {
    setTarget(targets[i]);
    if (int code = runPhases(*modules[i], common, last))
      return code;
  }
  return kDone;
}

int Compiler::runPhases(ModuleOp module, Phase from, Phase last) {
  for (unsigned i = unsigned(from) + 1; i <= unsigned(last) && i < unsigned(Phase::Artifact); ++i) {
    Phase phase = Phase(i);
    beginStep(phase);
    int code = phase == Phase::Schedule ? tune(module) : int(kDone);
    if (phase == Phase::Object)
      recordCode(module);
    if (phase == Phase::Object && !request.refit.empty()) {
      if (std::string sentence = takeCode(module, request.refit, isCuda(options.target)); !sentence.empty())
        return fail(kWrongUse, sentence);
    } else if (code == kDone) {
      code = runPhase(module, phase);
    }
    endStep(phase);
    if (code != kDone)
      return code;
    if (phase == Phase::Prim)
      logShapes(module);
    if (request.explain && phase == Phase::Fuse)
      explanation.addKernels(module);
    if (request.explain && phase == Phase::Schedule)
      explanation.addSchedules(module, options.target);
    if (request.explain && phase == Phase::Host) {
      explanation.addMemory(module);
      explanation.addCudaGraphs(module);
    }
    if (int code = keepModule(phase, module))
      return code;
  }
  return kDone;
}

/// Into the debug folder, if there is one.
int Compiler::keepModule(Phase phase, ModuleOp module) {
  if (!folder)
    return kDone;
  const bool isOfOne = targets.size() > 1 && phase > Phase::Prim;
  StringRef target = isOfOne ? machine::stringifyTargetKind(options.target) : "";
  if (llvm::Error error = folder->writeModule(phase, target, module, stepSeconds))
    return fail(kWrongUse, llvm::toString(std::move(error)));
  return kDone;
}

int Compiler::writeModule(ModuleOp module) {
  if (request.output == "-") {
    module.print(llvm::outs(), OpPrintingFlags().enableDebugInfo());
    llvm::outs() << "\n";
    llvm::outs().flush();
    return kDone;
  }
  std::string path = request.output;
  if (!StringRef(path).ends_with(".mlir"))
    path += ".mlir";
  if (llvm::Error error = base::writeModule(module, path))
    return fail(kWrongUse, llvm::toString(std::move(error)));
  return kDone;
}

int Compiler::writeArtifact(ArrayRef<OwningOpRef<ModuleOp>> modules) {
  beginStep(Phase::Artifact);
  AssembleOptions assemble;
  assemble.jobs = request.jobs;
  // Of a module that an earlier tc-compile left, too.
  const bool checksBounds = !modules.empty() && (*modules.front())->hasAttr(kCheckBoundsAttr);
  assemble.flags = describeFlags(request, checksBounds);
  if (request.mode != "default" && isFor(machine::TargetKind::Cuda))
    assemble.graphs = StringRef(request.mode).ends_with("no-cudagraphs") ? TCRT_GRAPHS_OFF : TCRT_GRAPHS_AT_ONCE;
  assemble.options = describeOptions(request);
  assemble.sourceHash = hashModel(request.model);
  artifact::ArtifactSpec spec;
  for (auto [i, module] : llvm::enumerate(modules)) {
    AssembleOptions ofTarget = assemble;
    if (targets[i] != machine::TargetKind::Cpu)
      ofTarget.flags.push_back("--target " + machine::stringifyTargetKind(targets[i]).str());
    llvm::Expected<artifact::ArtifactSpec> part = assembleArtifact(*module, ofTarget);
    if (!part)
      return fail(part.takeError(), request.model + ": error: ");
    if (i == 0)
      spec = std::move(*part);
    else
      spec.others.push_back(std::move(*part));
  }
  spec.externalWeights = request.externalWeights;
  if (!request.output.empty()) {
    int verified = kDone;
    auto verify = [&](StringRef path) -> llvm::Error {
      endStep(Phase::Artifact);
      verified = verifyArtifact(path.str());
      return verified == kDone ? llvm::Error::success() : llvm::createStringError("--verify failed");
    };
    auto keep = [&](StringRef path) -> llvm::Error {
      cache.take(path);
      return llvm::Error::success();
    };
    artifact::CheckArtifact check;
    if (request.verify)
      check = verify;
    else if (cache.getStore())
      check = keep;
    llvm::Error error = artifact::writeArtifact(spec, request.output, check);
    if (verified != kDone) {
      llvm::consumeError(std::move(error));
      return verified;
    }
    if (!request.verify)
      endStep(Phase::Artifact);
    if (error)
      return fail(std::move(error), "");
    summarize(spec);
  }
  if (folder)
    if (llvm::Error error = folder->writeManifest(spec.manifest, stepSeconds))
      return fail(kWrongUse, llvm::toString(std::move(error)));
  if (request.stopAtPhase) {
    llvm::outs() << spec.manifest << "\n";
    llvm::outs().flush();
  }
  return kDone;
}

void Compiler::summarize(const artifact::ArtifactSpec &spec) {
  auto sizeOf = [](const std::string &path) {
    uint64_t bytes = 0;
    return llvm::sys::fs::file_size(path, bytes) ? std::string("? bytes") : describeSize(bytes);
  };
  llvm::raw_string_ostream stream(summary);
  stream << kOutputName << ": " << sizeOf(request.output);
  if (spec.externalWeights && !spec.weights.empty())
    stream << " and " << sizeOf(request.output + ".weights") << " of weights in " << kOutputName << ".weights";
  for (auto [i, target] : llvm::enumerate(targets)) {
    setTarget(target);
    uint64_t launches = 0;
    llvm::StringSet<> kernels;
    for (const artifact::Function &function : (i ? spec.others[i - 1] : spec).functions)
      for (const artifact::Kernel &kernel : function.kernels) {
        ++launches;
        kernels.insert(kernel.name);
      }
    SmallVector<std::string> machines(options.variants.begin(), options.variants.end());
    stream << ", " << describeKernels(kernels.size(), launches) << (targets.size() > 1 ? " for " : ", ")
           << (target == machine::TargetKind::Reference ? "reference on " : "") << describeMachines(machines);
  }
}

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

/// Schedules for the regions that the tuning database, or a measurement, knows better ones for than the generators.
int Compiler::tune(ModuleOp module) {
  if (options.target != machine::TargetKind::Cpu || explainsOnly() || (!measures() && request.tuningDb.empty()))
    return kDone;
  autotune::TuneOptions tuning;
  tuning.measure = measures();
  tuning.database = request.tuningDb;
  tuning.machine = request.tuningMachine;
  tuning.threads = request.tuningThreads;
  tuning.cpus = cpus;
  if (tunes())
    showStage("tuning", kTuneShare);
  auto build = [&](ModuleOp probe, ArrayRef<machine::CpuAttr> cpus) {
    auto names = llvm::map_to_vector(cpus, [](machine::CpuAttr cpu) { return cpu.getName().str(); });
    return buildProbe(probe, Phase::Kernel, names);
  };
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
  for (const std::string &note : report->notes)
    fail(kDone, note);
  explanation.addTuning(report->regions);
  // That nothing is recorded of a kernel is as it should be; that it was to be measured and was not is not.
  StringRef left = "not tuned: ";
  size_t count =
      llvm::count_if(report->regions, [&](auto &region) { return StringRef(region.text).starts_with(left); });
  if (measures() && count) {
    auto first = llvm::find_if(report->regions, [&](auto &region) { return StringRef(region.text).starts_with(left); });
    warn("--mode " + request.mode + " leaves " + Twine(count) + " of " + Twine(report->regions.size()) +
         " kernels with default schedules; of the first " + StringRef(first->text).substr(left.size()) +
         (request.explain ? "" : "; --explain lists them"));
  }
  return kDone;
}

/// The artifact of a module at the end of the phase before `from`.
llvm::Expected<std::string> Compiler::buildProbe(ModuleOp probe, Phase from, ArrayRef<std::string> variants) {
  PhaseOptions ofProbe;
  ofProbe.copyOptionValuesFrom(options);
  ofProbe.variants = variants;
  ofProbe.debugDir = "";
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
  std::string text = llvm::toString(std::move(error));
  if (StringRef(text).starts_with(path))
    text.replace(0, path.size(), request.output);
  return fail(kMachine, text);
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

int Compiler::verifyFunction(func::FuncOp function, uint32_t number, const llvm::StringMap<int64_t> &sizes,
                             const std::string &variant, bool onGpu, const std::string &path, double &largest) {
  StringRef prefix = "--verify: ";
  auto inputs = target::makeRandomInputs(function, sizes, /*seed=*/0);
  if (!inputs)
    return fail(kWrongUse, request.model + ": error: " + prefix + llvm::toString(inputs.takeError()));
  auto opened = OpenedArtifact::openFile(path, variant, onGpu);
  if (!opened)
    return failedRun(opened.takeError(), path);
  bool isWhole = true;
  auto run = [&](ModuleOp probe) {
    return std::exchange(isWhole, false) ? opened->run(*inputs, getFunctions(probe).front().getResultTypes(), number)
                                         : runProbe(probe, variant, *inputs);
  };
  auto finding = target::verify(function, *inputs, getTolerance(function), run, &largest);
  if (!finding)
    return fail(kWrongUse, request.model + ": error: " + prefix + llvm::toString(finding.takeError()));
  if (!*finding)
    return kDone;
  // What computes something else is no artifact, and no reason to lose one that is.
  return fail(kDiffers, request.model + ": error: " + (*finding)->what + "; variant " + variant +
                            " differs from the reference in float64, and " + request.output +
                            (llvm::sys::fs::exists(request.output) ? " stays as it was" : " is not written"));
}

int Compiler::writeExplanation() {
  std::string name = llvm::sys::path::filename(request.model).str();
  if (request.explainFile.empty()) {
    llvm::outs() << explanation.toText(name);
    llvm::outs().flush();
    return kDone;
  }
  std::string text = explanation.toJson(name);
  if (request.explainFile == "-" || request.explainFile == "json") {
    llvm::outs() << text;
    llvm::outs().flush();
    return kDone;
  }
  if (llvm::Error error = writeOutputFile(request.explainFile, [&](raw_ostream &stream) { stream << text; }))
    return fail(kWrongUse, llvm::toString(std::move(error)));
  return kDone;
}

int Compiler::run() {
  int code = compile();
  if (!folder)
    return code;
  std::string result = code == kDone
                           ? summary.empty() ? "done up to phase " + getName(current).str() : describeResult()
                           : "failed in phase " + getName(current).str() + ", exit code " + std::to_string(code);
  if (llvm::Error error = folder->writeIndex(result))
    return fail(code == kDone ? kWrongUse : ExitCode(code), llvm::toString(std::move(error)));
  return code;
}

int Compiler::compile() {
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.getOrLoadDialect<machine::MachineDialect>();
  if (int code = checkRequest(&context))
    return code;
  auto release = llvm::make_scope_exit([&] { reference = nullptr; }); // before the context
  std::unique_ptr<ThreadPool> pool;
  unsigned jobs = request.jobs ? request.jobs : llvm::hardware_concurrency().compute_thread_count();
  if (jobs > 1) {
    pool = std::make_unique<ThreadPool>(llvm::hardware_concurrency(jobs).compute_thread_count());
    context.setThreadPool(*pool);
  }
  context.loadAllAvailableDialects();
  context.printOpOnDiagnostic(false);
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    report(diagnostic);
    return success();
  });

  options.dims = ArrayRef<std::string>(request.dims);
  options.shapes = ArrayRef<std::string>(request.shapes);
  options.customOps = ArrayRef<std::string>(request.customOps);
  options.allowHostOps = request.allowHostOps;
  options.checkBounds = request.checkBounds;
  options.precision = request.precision;
  options.jobs = jobs;
  options.debugDir = request.debugDir;
  options.report = &explanation.report;
  options.cache = cache.getStore();

  beginStep(Phase::Import);
  bool isMlir = false;
  quiet = true;
  GraphToPrimOptions sizes;
  for (const std::string &text : request.dims)
    parseDimOption(text, sizes);
  for (const std::string &text : request.shapes)
    parseShapeOption(text, sizes);
  sizes.allowHostOps = request.allowHostOps;
  for (const std::string &path : request.customOps)
    llvm::consumeError(readCustomOperators(path, sizes.customOperators)); // the request was checked
  std::optional<MappedFiles> mapped(std::in_place);
  llvm::Expected<OwningOpRef<ModuleOp>> module = loadModel(&context, request.model, isMlir, sizes);
  files = std::move(mapped->paths);
  mapped.reset();
  quiet = false;
  endStep(Phase::Import);
  if (!module)
    return fail(kWrongUse, llvm::toString(module.takeError()));
  if (isMlir && (*module)->getBody()->empty())
    return fail(kWrongUse, request.model + ": error: the module is empty; expected functions of some phase");
  Phase from = isMlir ? detectPhase(**module) : Phase::Import;
  if (isMlir && from != Phase::Import && from != Phase::Object && getFunctions(**module).empty())
    return fail(kWrongUse, request.model + ": error: the module has no function of phase " + getName(from).str() +
                               ", so that there is nothing to compile");
  if (from == Phase::Import)
    for (const std::string &sentence :
         {giveUpNames(**module, request.noAssume), addInnerOutputs(**module, request.innerOutputs)})
      if (!sentence.empty())
        return fail(kWrongUse, request.model + ": error: " + sentence);
  if (request.checkBounds)
    (**module)->setAttr(kCheckBoundsAttr, UnitAttr::get(&context));
  if (!isMlir)
    if (int code = keepModule(Phase::Import, **module))
      return code;
  SmallVector<OwningOpRef<ModuleOp>> modules;
  modules.push_back(std::move(*module));
  int code = runPhases(modules, from, isMlir);
  if (code == kDone && !explainsOnly()) {
    if (request.compileTo != Phase::Artifact)
      code = writeModule(*modules.front());
    else
      code = writeArtifact(modules);
  }
  for (auto [target, module] : llvm::zip(targets, modules)) {
    if (!request.verbose || code != kDone)
      continue;
    SmallVector<func::FuncOp> functions = getFunctions(*module);
    for (func::FuncOp function : functions) {
      AffineExpr arena = host::getArenaBytes(function);
      if (!arena)
        continue;
      errors << "arena      " << arena << " bytes";
      if (auto weights = function->getAttrOfType<IntegerAttr>(host::kWeightsAttr))
        errors << ", weights " << weights.getInt() << " bytes";
      errors << (functions.size() > 1 ? " (" + function.getSymName() + ")" : "")
             << (targets.size() > 1 ? " (" + machine::stringifyTargetKind(target).str() + ")" : "") << "\n";
    }
  }
  if (request.explain && (code == kDone || code == kUnsupported))
    if (int explained = writeExplanation())
      return explained;
  if (code != kDone)
    return code;
  for (const std::string &pass : request.printIrAfter)
    if (!printed.contains(pass))
      warn("--print-ir-after " + pass + " printed nothing: the pass did not run");
  if (!summary.empty())
    cache.add(files, summary);
  if (!request.quiet && !summary.empty())
    fail(kDone, describeResult());
  return code;
}

} // namespace

int tc::driver::compile(const CompileRequest &request, raw_ostream &errors) {
  if (!request.refit.empty() && !request.isRefitRead) {
    CompileRequest whole = request;
    if (std::string sentence = readOptions(whole); !sentence.empty()) {
      errors << printable(sentence) << "\n";
      return kWrongUse;
    }
    return compile(whole, errors);
  }
  log::enable(request.logs); // a name that is no channel is refused with the rest of the request
  ArtifactCache cache(request, errors);
  std::set<std::string> files;
  std::optional<int> code = cache.restore(files);
  if (!code) {
    code = Compiler(request, errors, cache, files).run();
    cache.finish();
  }
  return *code == kDone ? writeDepFile(request, std::move(files), errors) : *code;
}
