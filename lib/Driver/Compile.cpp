//===- Compile.cpp - the compiler as a function -------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "BackendParts.h"
#include "CheckFiles.h"
#include "Compiler.h"
#include "DepFile.h"
#include "Guards.h"
#include "InnerOutputs.h"
#include "LoadModel.h"
#include "PassWatch.h"
#include "Refit.h"
#include "tc/Codegen/Passes.h"
#include "tc/Conversion/HostToLLVM/HostToLLVM.h"
#include "tc/Dialect/Host/IR/Host.h"
#include "tc/Dialect/Prim/IR/Prim.h"
#include "tc/Dialect/TC/IR/TC.h"
#include "tc/Driver/Register.h"
#include "tc/Functions/Store.h"
#include "tc/Support/Logging.h"
#include "tc/Support/MappedFiles.h"
#include "tc/Support/OutputFile.h"
#include "tc/Support/Threads.h"

#include "mlir/IR/DialectRegistry.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/ThreadPool.h"

using namespace mlir;
using namespace tc;
using namespace tc::driver;

/// On modules whose programs check indices, from the first phase to the artifact.
static constexpr llvm::StringLiteral kCheckBoundsAttr = "tc.check_bounds";

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
    printedFailures.insert(line);
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
    if (other == kind && !printedFailures.count(line))
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
  for (machine::TargetKind target : targets)
    if (tunes(target) && from < Phase::Schedule && last >= Phase::Schedule)
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

/// Code is for the machines that it was made for, whatever the defaults are.
int Compiler::takeMachines(ModuleOp module) {
  SmallVector<machine::CpuAttr> ofCpus;
  SmallVector<machine::GpuAttr> ofGpus;
  std::set<std::string> names;
  auto add = [&](ArrayAttr machines) {
    for (Attribute attr : machines) {
      names.insert(cast<machine::MachineAttr>(attr).getName().str());
      if (auto gpu = dyn_cast<machine::GpuAttr>(attr))
        ofGpus.push_back(gpu);
      else
        ofCpus.push_back(cast<machine::CpuAttr>(attr));
    }
  };
  for (auto variant : module.getOps<host::VariantOp>())
    add(variant.getMachines());
  for (auto binary : module.getOps<host::BinaryOp>())
    add(binary.getMachines());
  if (names.empty())
    return kDone;
  const bool onGpu = !ofGpus.empty();
  auto differs = [&](const char *option, const std::vector<std::string> &given) {
    return fail(kWrongUse, request.model + ": error: the module has code for " +
                               describeMachines(std::vector<std::string>(names.begin(), names.end())) + "; leave " +
                               option + " " + llvm::join(given, ",") + " out, or give a module of an earlier phase");
  };
  if (!request.targets.empty() && llvm::any_of(targets, isCuda) != onGpu)
    return differs("--target", request.targets);
  for (auto [option, given] : {std::pair("--cpu", &request.cpus), std::pair("--gpu", &request.gpus)})
    if (!given->empty() && std::set<std::string>(given->begin(), given->end()) != names)
      return differs(option, *given);
  if (request.targets.empty())
    targets = {onGpu ? machine::TargetKind::Cuda : machine::TargetKind::Cpu};
  machine::sortCpus(ofCpus);
  if (onGpu)
    gpus = ofGpus;
  else
    cpus = ofCpus;
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
  if (from >= Phase::Kernel)
    if (int code = takeMachines(module))
      return code;
  Phase last = request.compileTo;
  if (endsAtSchedule())
    last = Phase::Schedule;
  if (int code = checkStart(from, last))
    return code;
  if (from == Phase::Schedule && last > from && !codegen::knowsSchedules(targets.front(), module))
    return fail(kWrongUse, request.model + ": error: the module has schedules of another target than " +
                               machine::stringifyTargetKind(targets.front()) +
                               "; give the --target that it was made for, and its --gpu or --cpu");
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
  if (from < Phase::Prim && common >= Phase::Prim)
    warnOfIdlePrecisions(module);
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
  // As what --precision auto chose says it: tc-refit searches no more.
  CompileRequest chosen = request;
  chosen.precision = precision.type;
  chosen.nodePrecisions = precision.ofNodes;
  assemble.flags = describeFlags(chosen, checksBounds);
  if (request.mode != "default" && isFor(machine::TargetKind::Cuda))
    assemble.graphs = StringRef(request.mode).ends_with("no-cudagraphs") ? TCRT_GRAPHS_OFF : TCRT_GRAPHS_AT_ONCE;
  assemble.options = describeOptions(chosen, isTuned);
  hashing.reset();
  assemble.sourceHash = modelHash.empty() ? hashModel(request.model) : modelHash;
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
    auto check = [&](StringRef path) -> llvm::Error {
      if (request.verify) {
        endStep(Phase::Artifact);
        verified = verifyArtifact(path.str());
      } else {
        cache.take(path);
      }
      limits.done();
      return verified == kDone ? llvm::Error::success() : llvm::createStringError("--verify failed");
    };
    const bool looks = request.verify || cache.getStore() || limits.hasTime();
    llvm::Error error = artifact::writeArtifact(spec, request.output, looks ? check : artifact::CheckArtifact());
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
    for (const artifact::Function &function : (i ? spec.others[i - 1] : spec).functions) {
      launches += function.launches;
      for (const artifact::Kernel &kernel : function.kernels)
        kernels.insert(kernel.name);
    }
    SmallVector<std::string> machines(options.variants.begin(), options.variants.end());
    stream << ", " << describeKernels(kernels.size(), launches) << (targets.size() > 1 ? " for " : ", ")
           << (target == machine::TargetKind::Reference ? "reference on " : "") << describeMachines(machines);
  }
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
  if (std::string why = limits.begin(); !why.empty())
    return fail(kMachine, "tc-compile: error: " + why);
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
  setPrecision({request.choosesPrecision() ? "f32" : request.precision, request.nodePrecisions});
  options.disabled = ArrayRef<std::string>(request.disabled);
  options.staticInputs = ArrayRef<std::string>(request.staticInputs);
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
  // Beside all else: a model of a gigabyte takes half a second. What is no file is read once.
  if (jobs > 1 && request.compileTo == Phase::Artifact && !endsAtSchedule() &&
      llvm::sys::fs::is_regular_file(request.model))
    hashing = Thread::start([this] { modelHash = hashModel(request.model); });
  std::optional<MappedFiles> mapped(std::in_place);
  llvm::Expected<OwningOpRef<ModuleOp>> module = loadModel(&context, request.model, isMlir, sizes);
  files = std::move(mapped->paths);
  mapped.reset();
  quiet = false;
  endStep(Phase::Import);
  if (!module)
    return fail(kWrongUse, llvm::toString(module.takeError()));
  if (std::string sentence = findReplacedFile(request, files); !sentence.empty())
    return fail(kWrongUse, "tc-compile: error: " + sentence);
  if (isMlir && (*module)->getBody()->empty())
    return fail(kWrongUse, request.model + ": error: the module is empty; expected functions of some phase");
  Phase from = isMlir ? detectPhase(**module) : Phase::Import;
  if (isMlir && from != Phase::Import && from != Phase::Object && getFunctions(**module).empty())
    return fail(kWrongUse, request.model + ": error: the module has no function of phase " + getName(from).str() +
                               ", so that there is nothing to compile");
  if (std::string sentence = findUnusedInput(**module, "--static-input", request.staticInputs); !sentence.empty())
    return fail(kWrongUse, request.model + ": error: " + sentence);
  if (from == Phase::Import)
    for (const std::string &sentence :
         {giveUpNames(**module, request.noAssume), stopAfter(**module, request.stopAfter),
          addInnerOutputs(**module, request.innerOutputs), findUnusedPattern(**module, "--disable", request.disabled),
          findUnusedPattern(**module, "--precision", llvm::map_to_vector(request.nodePrecisions, [](StringRef text) {
            return text.rsplit('=').first.str();
          }))})
      if (!sentence.empty())
        return fail(kWrongUse, request.model + ": error: " + sentence);
  if (from == Phase::Import) {
    if (int code = quantize(**module))
      return code;
    if (int code = choosePrecision(**module))
      return code;
    BackendParts parts;
    if (std::string sentence = cutBackendParts(**module, request.backendFor, sizes, parts); !sentence.empty())
      return fail(kWrongUse, request.model + ": error: " + sentence);
    if (!request.backendFor.empty() && parts.taken == 0)
      warn("--backend-for changes nothing: of the nodes that it names none is worth a call; --explain says why");
    explanation.backendParts = std::move(parts.all);
  }
  if (request.checkBounds)
    (**module)->setAttr(kCheckBoundsAttr, UnitAttr::get(&context));
  if (!isMlir)
    if (int code = keepModule(Phase::Import, **module))
      return code;
  SmallVector<OwningOpRef<ModuleOp>> modules;
  modules.push_back(std::move(*module));
  int code = runPhases(modules, from, isMlir);
  if (code == kDone)
    code = finishCandidates();
  if (code == kDone && !endsAtSchedule()) {
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
      errors << "arena      " << prim::formatSize(arena, function->getAttrOfType<ArrayAttr>(prim::kSymbolsAttr))
             << " bytes";
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
  if (!request.quiet && !summary.empty() && !tuned.empty()) {
    // Not for the cache: what comes from there measures nothing.
    progress::clear();
    SmallVector<StringRef> lines;
    StringRef(tuned).split(lines, '\n');
    for (StringRef line : lines)
      errors << printable(request.output + ": " + line.str()) << "\n";
  }
  if (!request.quiet && !summary.empty())
    fail(kDone, describeResult());
  return code;
}

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
  if (std::string sentence = findReplacedFile(request); !sentence.empty()) {
    errors << printable("tc-compile: error: " + sentence) << "\n";
    return kWrongUse;
  }
  ArtifactCache cache(request, errors);
  std::set<std::string> files;
  std::optional<int> code = cache.restore(files);
  if (!code) {
    code = Compiler(request, errors, cache, files).run();
    cache.finish();
  }
  return *code == kDone ? writeDepFile(request, std::move(files), errors) : *code;
}
