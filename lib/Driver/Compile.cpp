//===- Compile.cpp - the compiler as a function -------------------------------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Driver/Compile.h"

#include "Explain.h"
#include "LoadModel.h"
#include "tc/Codegen/Passes.h"
#include "tc/Conversion/HostToLLVM/HostToLLVM.h"
#include "tc/Dialect/Host/IR/Host.h"
#include "tc/Dialect/TC/IR/TC.h"
#include "tc/Driver/Assemble.h"
#include "tc/Driver/Register.h"
#include "tc/Support/Hash.h"
#include "tc/Support/Logging.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/ThreadPool.h"
#include "llvm/Support/ToolOutputFile.h"
#include <chrono>

using namespace mlir;
using namespace tc;
using namespace tc::driver;

namespace {

class Compiler {
public:
  Compiler(const CompileRequest &request, raw_ostream &errors) : request(request), errors(errors) {}
  int run();

private:
  int checkRequest();
  int runPhases(ModuleOp module, Phase from, bool isMlir);
  int runPhase(ModuleOp module, Phase phase);
  int writeModule(ModuleOp module);
  int writeArtifact(ModuleOp module);
  int writeExplanation();
  bool runPasses(ModuleOp module, llvm::function_ref<void(PassManager &)> build);
  void report(Diagnostic &diagnostic);
  int internalError(StringRef what);
  int fail(ExitCode code, const Twine &sentence) {
    errors << sentence << "\n";
    return code;
  }
  void beginStep(StringRef name);
  void endStep(StringRef name);

  const CompileRequest &request;
  raw_ostream &errors;
  PhaseOptions options;
  Explanation explanation;
  std::string firstError; ///< of the passes run last
  bool quiet = false;     ///< collect errors only
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now(), stepStart;
  bool progressShown = false;
};

/// Says what cannot be done before anything is done.
int Compiler::checkRequest() {
  auto wrong = [&](const Twine &sentence) { return fail(kWrongUse, "tc-compile: error: " + sentence); };
  if (request.output.empty() && !request.explain && !(request.stopAtPhase && request.compileTo == Phase::Artifact))
    return wrong("no output file is given; add -o OUT");
  for (const std::string &target : request.targets) {
    if (target == "aarch64")
      return wrong("--target aarch64 is not supported yet; supported: cpu, cuda, reference");
    if (target != "cpu" && target != "cuda" && target != "reference")
      return wrong("--target " + target + " is not supported; supported: cpu, cuda, reference");
  }
  if (request.targets.size() > 1)
    return wrong("several targets in one artifact are not supported yet; give one --target");
  for (const std::string &cpu : request.cpus) {
    StringRef name = cpu;
    if (name.starts_with("aarch64") || name.starts_with("armv") || name.starts_with("neoverse") ||
        name.starts_with("apple"))
      return wrong("--cpu " + cpu + ": AArch64 is not supported yet; supported: x86-64-v3, x86-64-v4, native");
    if (!codegen::resolveCpuVariant(cpu))
      return wrong("--cpu " + cpu + " is not known; known: x86-64-v3, x86-64-v4, native");
  }
  if (!request.gpus.empty() && request.targets.front() != "cuda")
    return wrong("--gpu belongs to --target cuda");
  for (const std::string &gpu : request.gpus) {
    StringRef number = gpu;
    unsigned version = 0;
    bool known = number.consume_front("sm_");
    number.consume_back("a");
    if (!known || number.getAsInteger(10, version) || version < 80)
      return wrong("--gpu " + gpu + " is not known; expected sm_80 or newer, for instance sm_90");
  }
  if (request.mode != "default" && request.mode != "reduce-overhead")
    return wrong("--mode " + request.mode + " is not supported yet; supported: default, reduce-overhead");
  if (request.precision != "f32")
    return wrong("--precision " + request.precision + " is not supported yet; supported: f32");
  if (request.verify)
    return wrong("--verify is not supported yet; compare with tc-run --expect");
  if (request.externalWeights)
    return wrong("--external-weights is not supported yet; weights are part of the artifact");
  if (request.checkBounds)
    return wrong("--check-bounds is not supported yet; indices out of range are clamped");
  if (!request.customOp.empty())
    return wrong("--custom-op is not supported yet");
  for (const std::string &name : request.printIrAfter)
    if (!PassInfo::lookup(name))
      return wrong("--print-ir-after: there is no pass " + name + "; tc-opt --help lists them");
  for (const std::string &text : request.dims) {
    GraphToPrimOptions parsed;
    if (!parseDimOption(text, parsed))
      return wrong("--dim " + text + " is not of the form NAME=SIZE or NAME=MIN..MAX");
  }
  for (const std::string &text : request.shapes) {
    GraphToPrimOptions parsed;
    if (!parseShapeOption(text, parsed))
      return wrong("--shape " + text + " is not of the form INPUT=SIZE,SIZE,...");
  }
  if (!request.debugDir.empty())
    if (std::error_code error = llvm::sys::fs::create_directories(request.debugDir))
      return fail(kWrongUse, request.debugDir + ": error: cannot make the folder: " + error.message());
  bool same = false;
  if (!request.output.empty() && !llvm::sys::fs::equivalent(request.model, request.output, same) && same)
    return fail(kWrongUse, request.output + ": error: the output is the model itself; give another output file");
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
  if (!names.empty() && !names.front().empty() && !StringRef(text).contains(("\"" + names.front() + "\"").str()))
    line += ("node \"" + names.front() + "\": ").str();
  // One line: what MLIR appends (the op's text) is for developers.
  line += StringRef(text).split('\n').first;
  if (diagnostic.getSeverity() == DiagnosticSeverity::Error && firstError.empty())
    firstError = line;
  if (!quiet) {
    errors << line << "\n";
    for (Diagnostic &note : diagnostic.getNotes()) {
      std::string noteText = note.str();
      errors << request.model << ": note: " << StringRef(noteText).split('\n').first << "\n";
    }
  }
}

int Compiler::internalError(StringRef what) {
  errors << request.model << ": error: internal error: " << what
         << "; this is a defect of tc, please report it with the model and this command: " << request.commandLine
         << "\n";
  return kInternal;
}

void Compiler::beginStep(StringRef name) {
  stepStart = std::chrono::steady_clock::now();
  // Only where somebody watches, and only once it takes long.
  if (request.verbose || !llvm::sys::Process::StandardErrIsDisplayed() || stepStart - start < std::chrono::seconds(1))
    return;
  errors << "\r\033[K" << name << " ...";
  errors.flush();
  progressShown = true;
}

void Compiler::endStep(StringRef name) {
  if (progressShown) {
    errors << "\r\033[K";
    errors.flush();
    progressShown = false;
  }
  if (request.verbose)
    errors << llvm::formatv(
        "{0,-10} {1,8:f1} ms\n", name,
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - stepStart).count());
}

bool Compiler::runPasses(ModuleOp module, llvm::function_ref<void(PassManager &)> build) {
  firstError.clear();
  PassManager manager(module->getName());
  build(manager);
  if (!request.printIrAfter.empty()) {
    auto wanted = [&](Pass *pass, Operation *) {
      return llvm::is_contained(request.printIrAfter, pass->getArgument());
    };
    manager.enableIRPrinting([](Pass *, Operation *) { return false; }, wanted, /*printModuleScope=*/false,
                             /*printAfterOnlyOnChange=*/false, /*printAfterOnlyOnFailure=*/false, errors);
  }
  return succeeded(manager.run(module));
}

int Compiler::runPhase(ModuleOp module, Phase phase) {
  // The text goes through report(); errors of passes that work on what a user wrote are shown as they come, others as
  // the reason of an internal error.
  bool ofUser = phase == Phase::Prim || phase == Phase::Schedule || phase == Phase::Kernel || phase == Phase::Host;
  quiet = !ofUser;
  if (!runPasses(module, [&](PassManager &manager) { buildPhasePipeline(phase, manager, options); })) {
    quiet = false;
    if (phase == Phase::Prim) {
      if (explanation.report.invalidCount > 0 || (explanation.report.unsupported.empty() && !firstError.empty()))
        return kWrongUse;
      if (!explanation.report.unsupported.empty())
        return kUnsupported;
    } else if (ofUser && !firstError.empty()) {
      return kUnsupported;
    }
    return internalError(firstError.empty() ? ("phase " + getName(phase) + " failed").str() : firstError);
  }
  quiet = true;
  bool valid = runPasses(module, [&](PassManager &manager) { addPhaseVerifier(phase, manager); });
  quiet = false;
  if (!valid)
    return internalError(firstError);
  return kDone;
}

int Compiler::runPhases(ModuleOp module, Phase from, bool isMlir) {
  quiet = isMlir;
  bool valid = runPasses(module, [&](PassManager &manager) { addPhaseVerifier(from, manager); });
  quiet = false;
  if (!valid)
    return isMlir ? fail(kWrongUse, firstError) : internalError(firstError);
  if (from == Phase::Fuse || from == Phase::Schedule)
    explanation.addKernels(module);
  Phase last = request.compileTo;
  if (request.explain && request.output.empty() && !request.stopAtPhase)
    last = Phase::Fuse;
  if (unsigned(last) < unsigned(from))
    return fail(kWrongUse, request.model + ": error: the module stands at the end of phase " + getName(from) +
                               ", which is after phase " + getName(last));
  for (unsigned i = unsigned(from) + 1; i <= unsigned(last) && i < unsigned(Phase::Artifact); ++i) {
    Phase phase = Phase(i);
    beginStep(getName(phase));
    int code = runPhase(module, phase);
    endStep(getName(phase));
    if (code != kDone)
      return code;
    if (phase == Phase::Fuse)
      explanation.addKernels(module);
    if (phase == Phase::Host)
      explanation.addMemory(module);
    if (!request.debugDir.empty()) {
      SmallString<128> path(request.debugDir);
      llvm::sys::path::append(path, Twine(i) + "-" + getName(phase) + ".mlir");
      if (llvm::Error error = base::writeModule(module, path))
        return fail(kWrongUse, llvm::toString(std::move(error)));
    }
  }
  return kDone;
}

int Compiler::writeModule(ModuleOp module) {
  std::string path = request.output;
  if (!StringRef(path).ends_with(".mlir"))
    path += ".mlir";
  if (llvm::Error error = base::writeModule(module, path))
    return fail(kWrongUse, llvm::toString(std::move(error)));
  return kDone;
}

int Compiler::writeArtifact(ModuleOp module) {
  AssembleOptions assemble;
  assemble.jobs = request.jobs;
  for (const std::string &dim : request.dims)
    assemble.flags.push_back("--dim " + dim);
  for (const std::string &shape : request.shapes)
    assemble.flags.push_back("--shape " + shape);
  if (request.targets.front() != "cpu")
    assemble.flags.push_back("--target " + request.targets.front());
  if (auto file = mapFile(request.model))
    assemble.sourceHash = contentHash(ArrayRef<char>((*file)->getBufferStart(), (*file)->getBufferSize()));
  else
    llvm::consumeError(file.takeError());
  llvm::Expected<artifact::ArtifactSpec> spec = assembleArtifact(module, assemble);
  if (!spec)
    return fail(kUnsupported, request.model + ": error: " + llvm::toString(spec.takeError()));
  if (!request.output.empty()) {
    beginStep("artifact");
    llvm::Error error = artifact::writeArtifact(*spec, request.output);
    endStep("artifact");
    if (error)
      return fail(kWrongUse, llvm::toString(std::move(error)));
  }
  if (request.stopAtPhase) {
    llvm::outs() << spec->manifest << "\n";
    llvm::outs().flush();
  }
  return kDone;
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
  llvm::Error error = llvm::writeToOutput(request.explainFile, [&](raw_ostream &stream) {
    stream << text;
    return llvm::Error::success();
  });
  if (error)
    return fail(kWrongUse,
                request.explainFile + ": error: cannot write the explanation: " + llvm::toString(std::move(error)));
  return kDone;
}

int Compiler::run() {
  if (int code = checkRequest())
    return code;
  if (!request.logs.empty())
    log::enable(request.logs);
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  std::unique_ptr<llvm::DefaultThreadPool> pool;
  unsigned jobs = request.jobs ? request.jobs : llvm::hardware_concurrency().compute_thread_count();
  if (jobs > 1) {
    pool = std::make_unique<llvm::DefaultThreadPool>(llvm::hardware_concurrency(jobs));
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
  options.fuse = request.targets.front() != "reference";
  // The passes take the best variant last.
  options.device = request.targets.front();
  SmallVector<std::string> variants(request.cpus.begin(), request.cpus.end());
  if (request.targets.front() == "cuda")
    variants = {"cuda-" + (request.gpus.empty() ? std::string("sm_90") : llvm::join(request.gpus, "+"))};
  llvm::stable_sort(variants, [](StringRef a, StringRef b) {
    auto rank = [](StringRef name) { return name == "native" ? 2 : name == "x86-64-v4" ? 1 : 0; };
    return rank(a) < rank(b);
  });
  variants.erase(std::unique(variants.begin(), variants.end()), variants.end());
  options.variants = ArrayRef<std::string>(variants);
  options.jobs = jobs;
  options.debugDir = request.debugDir;
  options.report = &explanation.report;

  beginStep("import");
  bool isMlir = false;
  quiet = true;
  llvm::Expected<OwningOpRef<ModuleOp>> module = loadModel(&context, request.model, isMlir);
  quiet = false;
  endStep("import");
  if (!module)
    return fail(kWrongUse, llvm::toString(module.takeError()));
  int code = runPhases(**module, isMlir ? detectPhase(**module) : Phase::Import, isMlir);
  if (code == kDone) {
    bool onlyExplain = request.explain && request.output.empty() && !request.stopAtPhase;
    if (request.compileTo == Phase::Artifact && !onlyExplain)
      code = writeArtifact(**module);
    else if (request.stopAtPhase && !request.output.empty())
      code = writeModule(**module);
  }
  if (request.verbose && code == kDone)
    if (func::FuncOp main = getMainFunction(**module))
      if (auto arena = main->getAttrOfType<AffineMapAttr>(host::kArenaAttr)) {
        errors << "arena      " << arena.getValue().getResult(0) << " bytes";
        if (auto weights = main->getAttrOfType<IntegerAttr>(host::kWeightsAttr))
          errors << ", weights " << weights.getInt() << " bytes";
        errors << "\n";
      }
  if (request.explain && (code == kDone || code == kUnsupported))
    if (int explained = writeExplanation())
      return explained;
  return code;
}

} // namespace

int tc::driver::compile(const CompileRequest &request, raw_ostream &errors) { return Compiler(request, errors).run(); }
