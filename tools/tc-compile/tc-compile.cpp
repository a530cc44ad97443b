//===- tc-compile.cpp - a model to an artifact --------------------------------------------------------------------===//
//
// Reads the command line and calls the driver.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "Models.h"

#include "tc/Cache/Store.h"
#include "tc/Driver/Compile.h"
#include "tc/Driver/Register.h"
#include "tc/Driver/Reproducer.h"
#include "tc/Support/CommandLine.h"
#include "tc/Support/ConfigFile.h"
#include "tc/Support/Logging.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <CLI/CLI.hpp>
#include <cstdlib>
#include <iostream>
#include <unistd.h>

namespace {

const char *const examplesAndCodes = R"(Examples:
  tc-compile model.onnx -o model.bin                       for most x86-64 machines; tc-run model.bin --random-inputs runs it
  tc-compile model.onnx -o model.bin --cpu native          for this machine
  tc-compile model.onnx -o model.bin --dim batch=1..64     a range of sizes that schedules are chosen for
  tc-compile model.onnx -o model.bin --verify              and compare it with the model in float64
  tc-compile model.onnx --explain                          what is fused, or what is not supported
  tc-compile model.onnx -o - --compile-to=fuse             print the IR after a phase
  tc-compile a.onnx b.pt2 -o artifacts/ --config tc.json   several models, with options that stand in a file

Exit codes: 0 done; 1 wrong use, unreadable or ill-formed input; 2 the model needs what tc lacks; 3 --verify found a
difference; 5 this machine cannot do it, no memory is left, or a limit is reached; 6 internal error)";

/// What --max-compile-time takes.
constexpr double kLeastSeconds = 1e-3, kMostSeconds = 1e9;

std::vector<std::string> splitNames(llvm::StringRef names) {
  std::vector<std::string> result;
  for (llvm::StringRef name : llvm::split(names, ", "))
    result.push_back(name.str());
  return result;
}

/// The first is taken where none is given.
std::vector<std::string> targetNames() {
  std::vector<std::string> names;
  for (unsigned i = 0; i <= tc::machine::getMaxEnumValForTargetKind(); ++i)
    names.push_back((tc::machine::stringifyTargetKind(tc::machine::TargetKind(i)) + (i ? "" : " (default)")).str());
  return names;
}

std::string readEnvironment(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

int cannotPrint(const std::string &why) {
  std::cerr << "tc-compile: error: standard output cannot be written: " << why << "\n";
  return tc::driver::kWrongUse;
}

/// What was printed must have arrived.
int finishOutput(int code) {
  llvm::outs().flush();
  std::error_code error = llvm::outs().error();
  llvm::outs().clear_error();
  return error && code == tc::driver::kDone ? cannotPrint(error.message()) : code;
}

} // namespace

int main(int argc, char **argv) {
  tc::driver::CompileRequest request;
  request.commandLine = tc::describeCommand(argc, argv);

  tc::CommandLine app("Compiles a model to an artifact of native code.", "tc-compile");
  app.get_formatter()->column_width(30);
  std::string compileTo;
  auto list = [](CLI::Option *option) { option->delimiter(',')->allow_extra_args(false); };
  std::vector<std::string> models;
  CLI::Option *option =
      app.add_option("MODEL", models, "ONNX file, .pt2 or .pt archive, or .mlir of any phase; -: standard input");
  option->required()->type_name("");
  app.setExtensions(option, {"onnx", "pt2", "pt", "mlir"});

  option =
      app.add_option("-o,--output", request.output,
                     "the artifact to write, or a module with --compile-to (-: print it); a folder for several models");
  option->type_name("OUT")->group("Output");
  app.add_flag("--external-weights", request.externalWeights, "weights in a file of their own, OUT.weights")
      ->group("Output");
  app.add_flag("--verify", request.verify, "run the artifact and compare it with float64; say how large the error is")
      ->group("Output");
  CLI::Option *explain =
      app.add_flag("--explain{}", request.explainFile,
                   "say what is not supported and what to do, or what was fused, why not more, and totals");
  explain->group("Output");
  app.setOptionalValue(explain, "FILE.json");
  app.add_option("--depfile", request.depFile, "what OUT was made of, as a rule that make and ninja read")
      ->type_name("FILE.d")
      ->group("Output");
  app.add_flag("-v,--verbose", request.verbose, "phase times and memory")->group("Output");
  app.add_flag("-q,--quiet", request.quiet, "no line at the end that sums up the artifact")->group("Output");

  option = app.add_option("--target", request.targets);
  app.setChoices(option, "", targetNames(), "; several: cpu,cuda");
  list(option->type_name("TARGET")->group("Machines"));
  option = app.add_option("--cpu", request.cpus);
  app.setChoices(option, "default: x86-64-v3,x86-64-v4; known: ", splitNames(tc::machine::getCpuNames()));
  list(option->type_name("CPU")->group("Machines"));
  option = app.add_option("--gpu", request.gpus, "known: sm_80, sm_90a");
  list(option->type_name("GPU")->group("Machines"));

  app.add_option("--dim", request.dims,
                 "size of a named dim, or several: batch=1..64, batch=multiple-of:8,8..64, batch=bucket:8,64; can be "
                 "repeated")
      ->type_name("NAME=SIZE")
      ->allow_extra_args(false)
      ->group("Sizes");
  app.add_option("--shape,--input-shape", request.shapes,
                 "sizes of an input: x=1,3,224,224; for .pt also its type: x=1,3,224,224:f32; can be repeated")
      ->type_name("INPUT=SIZES")
      ->allow_extra_args(false)
      ->group("Sizes");

  app.add_option(
         "--no-assume", request.noAssume,
         "dims that inputs share by this name need not be equal; tc-inspect --guards says what is assumed. Can be "
         "repeated")
      ->type_name("NAME")
      ->allow_extra_args(false)
      ->group("Sizes");
  option = app.add_option("--outputs", request.innerOutputs,
                          "nodes whose results are outputs, too, by name or pattern: /layer3/*; tc-run --dump-values "
                          "writes them");
  list(option->type_name("NODE")->group("Output"));

  const char *numbers = "Numbers and checks";
  option = app.add_option_function<std::vector<std::string>>("--precision", [&](const std::vector<std::string> &texts) {
    for (const std::string &text : texts)
      if (text.find('=') == std::string::npos)
        request.precision = text;
      else
        request.nodePrecisions.push_back(text);
  });
  list(option->type_name("[NODE=]TYPE")->group(numbers));
  app.setChoices(option, "of f32 products, or of those of some nodes (/layer3/*=f32): ",
                 {"f32 (default)", "tf32 (GPUs)", "bf16 (sums of f32)", "f16 (constants)",
                  "auto:R (chosen for outputs within R of their largest value: auto:0.005)"});
  option = app.add_option("--chosen-precision", request.chosenPrecision,
                          "write what --precision auto:R chose, as --config reads it");
  option->type_name("OUT.json")->group(numbers);
  app.setExtensions(option, {"json"});
  option = app.add_option("--quantize", request.quantize);
  option->type_name("TYPE")->group(numbers);
  app.setChoices(option, "products with constant weights in bytes, by data: ", {"int8"});
  option =
      app.add_option("--calibrate", request.calibrate,
                     "sample inputs for --quantize and --precision auto: arrays named after inputs; can be repeated");
  list(option->type_name("FILE.npz")->group(numbers));
  app.setExtensions(option, {"npz"});
  app.add_option("--calibrate-method", request.calibrateMethod,
                 "ranges by minmax (default), percentile[:99.99] or entropy")
      ->type_name("METHOD")
      ->group(numbers);
  option = app.add_option("--quantize-exclude", request.quantizeExclude, "nodes that stay in f32, by name or pattern");
  list(option->type_name("NODE")->group(numbers));
  option = app.add_option("--quantize-budget", request.quantizeBudget,
                          "error of outputs, relative to their largest value, that nodes stay in f32 for: 0.02");
  option->type_name("ERROR")->group(numbers);
  app.setNumber(option);
  option = app.add_option("--quantized-model", request.quantizedModel, "write the quantised model as QDQ ONNX, too");
  option->type_name("OUT.onnx")->group(numbers);
  app.setExtensions(option, {"onnx"});
  app.add_flag("--check-bounds", request.checkBounds,
               "refuse runs that compute indices out of range, which are clamped else (constant ones never compile)")
      ->group(numbers);
  app.add_option("--custom-op", request.customOps, "the signatures of custom operators; can be repeated")
      ->type_name("FILE.json")
      ->allow_extra_args(false)
      ->group(numbers);
  app.add_flag("--allow-host-ops", request.allowHostOps,
               "--custom-op serves only the nodes that tc refuses, where it has the operator")
      ->group(numbers);

  option = app.add_option("--backend-for", request.backendFor,
                          "nodes that ONNX Runtime computes, by name or pattern: /layer3/*=onnxruntime");
  list(option->type_name("NODE=BACKEND")->group(numbers));

  option = app.add_option("--mode", request.mode);
  option->type_name("MODE")->group("Speed");
  app.setChoices(option, "",
                 {"default", "max-autotune (measure schedules)",
                  "max-autotune-no-cudagraphs (the same, without CUDA graphs)",
                  "reduce-overhead (CUDA graphs from the first run on)"});
  app.add_option("--tuning-db", request.tuningDb,
                 "file of measured schedules: used, and with --mode max-autotune extended")
      ->type_name("FILE.json")
      ->group("Speed");
  option = app.add_option("--tuning-candidates", request.tuningCandidates,
                          "write the schedules that are worth measuring, for tc-run --tune on the machine that the "
                          "model is for; -o OUT may be left out");
  option->type_name("OUT.tune")->group("Speed");
  app.setExtensions(option, {"tune"});
  app.add_option("--tuning-machine", request.tuningMachine,
                 "use the records of this machine, by its name in the file (default: of this one)")
      ->type_name("NAME")
      ->group("Speed");
  option =
      app.add_option("--tuning-threads", request.tuningThreads, "threads that a run will use (default: all cores)");
  option->type_name("N")->group("Speed");
  app.setWholeNumber(option);
  option = app.add_option("--jobs", request.jobs, "threads that compile (default: all cores)");
  option->type_name("N")->group("Speed");
  app.setWholeNumber(option);
  option = app.add_option("--static-input", request.staticInputs,
                          "inputs that seldom change, as weights do, by name or pattern: what depends on them alone is "
                          "computed by function NAME.prepare, to be run before NAME and after each change");
  list(option->type_name("NAME")->group("Speed"));

  option = app.add_option("--refit", request.refit,
                          "take options and code of an artifact of the same model with other weights: see tc-refit");
  option->type_name("ARTIFACT")->group("Speed");
  app.setExtensions(option, {"bin"});

  const char *limits = "Limits";
  app.add_option("--max-compile-memory", request.maxMemory,
                 "memory that it may take: 500M, 4G; a model that needs more is refused, with exit code 5")
      ->type_name("SIZE")
      ->group(limits);
  app.add_option(
         "--max-compile-time", request.maxTime,
         "seconds that it may take, with --verify; --mode max-autotune and --precision auto search less, in time for "
         "the rest")
      ->type_name("SECONDS")
      ->group(limits);

  const char *caching = "Cache";
  std::string cacheSize = readEnvironment("TC_CACHE_SIZE");
  request.cacheDir = readEnvironment("TC_CACHE_DIR");
  app.add_option("--cache-dir", request.cacheDir,
                 "folder of earlier results, which equal compiles and kernels are taken from (default: $TC_CACHE_DIR; "
                 "\"\": none)")
      ->type_name("DIR")
      ->group(caching);
  app.add_option("--cache-size", cacheSize,
                 "what it may hold: 500M, 4G (default: $TC_CACHE_SIZE, then 4G); what was not used for longest goes")
      ->type_name("SIZE")
      ->group(caching);

  const char *inside = "Looking inside";
  option = app.add_option("--stop-after", request.stopAfter,
                          "compile the first N nodes only; what the next ones would read is output, by the names of "
                          "the nodes (0: all)");
  option->type_name("N")->group(inside);
  app.setWholeNumber(option);
  option = app.add_option("--disable", request.disabled,
                          "nodes that are not fused and run by plain loops, as --target reference runs all, by name or "
                          "pattern: /layer3/*");
  list(option->type_name("NODE")->group(inside));
  option = app.add_option("--compile-to", compileTo);
  option->type_name("PHASE")->group(inside);
  app.setChoices(
      option, "stop after a phase: ", {"import", "prim", "fuse", "schedule", "kernel", "host", "object", "artifact"});
  app.add_option("--debug-dir", request.debugDir,
                 "folder for the IR after each phase, LLVM IR, assembly, and a page that leads to them")
      ->type_name("DIR")
      ->group(inside);
  option = app.add_option("--logs", request.logs);
  option->type_name("NAME,...")->group(inside);
  std::vector<std::string> channels = {"all"};
  for (llvm::StringRef channel : tc::log::getChannels())
    channels.push_back(channel.str());
  app.setChoices(option, "channels to print, with commas between them: ", channels);
  option = app.add_option("--print-ir-after", request.printIrAfter, "print the IR after a pass, for instance tc-fuse");
  list(option->type_name("PASS")->group(inside));

  app.add_flag("--fullgraph", request.fullGraph, "accepted: the whole model compiles, or nothing does")->group("Other");
  app.add_flag("--allow-libs", request.allowLibs, "accepted: vendor libraries are not used yet")->group("Other");
  app.config_formatter(std::make_shared<tc::ConfigFile>(app));
  app.allow_config_extras(CLI::config_extras_mode::error);
  option = app.set_config("--config", "",
                          "options as a JSON object, whose keys are their names; those given here replace the file's");
  option->type_name("FILE.json")->group("Other")->configurable(false);
  // It needs no model.
  auto dumpConfig = [&app](int64_t) {
    std::string text = app.config_to_str();
    text.pop_back();
    throw CLI::CallForVersion(text, 0);
  };
  app.add_flag_function("--dump-config", dumpConfig, "print all options as --config reads them, as they are given here")
      ->group("Other")
      ->configurable(false);
  app.addCommonOptions();
  app.footer(examplesAndCodes);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &e) {
    std::cout << app.describeSuccess(e);
    std::cout.flush();
    return std::cout ? tc::driver::kDone : cannotPrint("it is full or closed");
  } catch (const CLI::ParseError &e) {
    std::cerr << "tc-compile: error: " << tc::describeParseError(app, e, "model") << "; see tc-compile --help\n";
    return tc::driver::kWrongUse;
  }
  if (!cacheSize.empty()) {
    std::optional<uint64_t> bytes = tc::cache::parseSize(cacheSize);
    if (!bytes) {
      std::cerr << "tc-compile: error: --cache-size " << cacheSize << " is no size; give one such as 500M or 4G\n";
      return tc::driver::kWrongUse;
    }
    request.cacheSizeBytes = *bytes;
  }
  if (!request.maxMemory.empty()) {
    std::optional<uint64_t> bytes = tc::cache::parseSize(request.maxMemory);
    if (!bytes) {
      std::cerr << "tc-compile: error: --max-compile-memory " << request.maxMemory
                << " is no size; give one such as 500M or 4G\n";
      return tc::driver::kWrongUse;
    }
    request.maxMemoryBytes = *bytes;
  }
  if (!request.maxTime.empty()) {
    if (llvm::StringRef(request.maxTime).getAsDouble(request.maxSeconds) ||
        !(request.maxSeconds >= kLeastSeconds && request.maxSeconds <= kMostSeconds)) {
      std::cerr << "tc-compile: error: --max-compile-time " << request.maxTime
                << " is no time; give seconds, such as 30 or 0.5\n";
      return tc::driver::kWrongUse;
    }
  }
  request.explain = explain->count() > 0;
  if (const CLI::Option *config = app.get_config_ptr(); config->count() > 0)
    request.configFile = config->as<std::string>();
  if (request.explainFile == "true")
    request.explainFile.clear();
  if (!compileTo.empty()) {
    std::optional<tc::driver::Phase> phase = tc::driver::parsePhase(compileTo);
    if (!phase) {
      std::cerr << "tc-compile: error: --compile-to=" << compileTo
                << " is no phase; phases: import, prim, fuse, schedule, kernel, host, object, artifact\n";
      return tc::driver::kWrongUse;
    }
    request.compileTo = *phase;
    request.stopAtPhase = true;
  }
  request.executable = "/proc/self/exe";
  tc::driver::installCrashHandler();
  tc::driver::registerAllPasses();
  int code = tc::driver::compileModels(std::move(request), models, llvm::errs());
  llvm::errs().flush();
  code = finishOutput(code);
  // Nothing is left to do that needs the destructors of a few hundred megabytes of IR.
  _exit(code);
}
