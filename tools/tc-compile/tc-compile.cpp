//===- tc-compile.cpp - a model to an artifact --------------------------------------------------------------------===//
//
// Reads the command line and calls the driver.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Driver/Compile.h"
#include "tc/Driver/Register.h"
#include "tc/Driver/Reproducer.h"
#include "tc/Driver/Version.h"

#include "llvm/Support/raw_ostream.h"
#include <CLI/CLI.hpp>
#include <iostream>
#include <unistd.h>

namespace {

std::string quote(const char *argument) {
  std::string text = argument;
  if (!text.empty() && text.find_first_of(" \t\n\"'\\$`*?[](){}<>|&;#~!") == std::string::npos)
    return text;
  std::string quoted = "'";
  for (char c : text)
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
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
  for (int i = 0; i < argc; ++i)
    request.commandLine += (i ? " " : "") + quote(argv[i]);

  CLI::App app{"Compiles a model to an artifact of native code.", "tc-compile"};
  std::string compileTo;
  app.add_option("MODEL", request.model, "ONNX file, .pt2 archive, or .mlir of any phase")->required();
  app.add_option("-o", request.output, "the artifact to write, or a module (-: printed, without large constants)");
  app.add_option("--target", request.targets, "cpu (default), cuda, reference")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--cpu", request.cpus, "CPU variants (default: x86-64-v3,x86-64-v4): " + tc::machine::getCpuNames())
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--gpu", request.gpus, "GPU architectures: sm_80,sm_90a")->delimiter(',')->allow_extra_args(false);
  app.add_option("--dim", request.dims, "size of a named dim: batch=1, or a range: batch=1..64")
      ->allow_extra_args(false);
  app.add_option("--shape", request.shapes, "sizes of an input: x=1,3,224,224")->allow_extra_args(false);
  app.add_option("--mode", request.mode, "default, reduce-overhead, max-autotune, max-autotune-no-cudagraphs");
  app.add_option("--tuning-db", request.tuningDb,
                 "file of measured schedules: used, and with --mode max-autotune extended");
  app.add_option("--tuning-machine", request.tuningMachine,
                 "use the records of this machine, by its name in the file (default: of this one)");
  app.add_option("--tuning-threads", request.tuningThreads, "threads that a run will use (default: all cores)");
  app.add_option("--precision", request.precision,
                 "of f32 products: f32 (default), tf32 (as f32 on CPUs), bf16 (sums of f32), f16 (constants only)");
  app.add_option("--compile-to", compileTo,
                 "stop after a phase: import, prim, fuse, schedule, kernel, host, object, artifact");
  CLI::Option *explain = app.add_flag("--explain{}", request.explainFile,
                                      "say what is not supported, or what was fused and why not more; =FILE.json");
  app.add_flag("--fullgraph", request.fullGraph, "the whole model must compile (always so)");
  app.add_option("--debug-dir", request.debugDir, "folder for the IR after each phase, LLVM IR and assembly");
  app.add_option("--logs", request.logs, "channels to print: fusion,schedule,kernel,memory, or all");
  app.add_flag("--verify", request.verify, "compare with the oracle");
  app.add_flag("--external-weights", request.externalWeights, "weights in a file of their own");
  app.add_flag("--allow-libs", request.allowLibs, "vendor libraries as candidates");
  app.add_option("--custom-op", request.customOps, "JSON file with the signatures of custom operators")
      ->allow_extra_args(false);
  app.add_option("--print-ir-after", request.printIrAfter, "print the IR after a pass, for instance tc-fuse")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_flag("--check-bounds", request.checkBounds,
               "refuse runs that compute indices out of range, which are clamped else (constant ones never compile)");
  app.add_option("--jobs", request.jobs, "threads (default: all)");
  app.add_flag("-v", request.verbose, "phase times and memory");
  app.set_version_flag("--version", std::string("tc-compile ") + TC_VERSION_STRING);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &e) {
    app.exit(e);
    std::cout.flush();
    return std::cout ? tc::driver::kDone : cannotPrint("it is full or closed");
  } catch (const CLI::ParseError &e) {
    std::cerr << "tc-compile: error: " << e.what() << "; tc-compile --help lists the options\n";
    return tc::driver::kWrongUse;
  }
  request.explain = explain->count() > 0;
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
  int code = tc::driver::compile(request, llvm::errs());
  llvm::errs().flush();
  code = finishOutput(code);
  // Nothing is left to do that needs the destructors of a few hundred megabytes of IR.
  _exit(code);
}
