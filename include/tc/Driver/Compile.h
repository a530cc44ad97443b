//===- Compile.h - the compiler as a function -----------------------------------------------------------*- C++ -*-===//
//
// What tc-compile does once its command line is read: load the model (by its content, not its name), run the phases,
// write the result. All messages go to the given stream as sentences; the return value is the exit code of the
// contract:
//
//   0 done; 1 wrong use, unreadable or ill-formed input, I/O error; 2 a valid model needs what tc lacks; 3 --verify
//   found a difference; 5 this machine cannot run what --verify is to run, or a limit of memory or time is
//   reached (the process ends then); 6 internal error.
//
// An error leaves no partial file. Options that change nothing for this model and these targets are refused, or named
// in a warning. An artifact that was written is summed up in one line, unless the request is quiet. Not thread safe
// (LLVM's and lld's globals).
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DRIVER_COMPILE_H
#define TC_DRIVER_COMPILE_H

#include "tc/Driver/Phases.h"

#include "llvm/Support/raw_ostream.h"
#include <optional>
#include <string>
#include <vector>

namespace tc::driver {

enum ExitCode { kDone = 0, kWrongUse = 1, kUnsupported = 2, kDiffers = 3, kMachine = 5, kInternal = 6 };

/// The command line of tc-compile. Of a new option ArtifactCache.cpp has to know whether it changes what is written.
struct CompileRequest {
  std::string model;
  std::string output; ///< empty: only with explain or compileTo = artifact
  // As tc/Dialect/Machine/IR/Machine.h reads them; empty: the defaults.
  std::vector<std::string> targets, cpus, gpus;
  std::vector<std::string> dims, shapes, customOps;
  std::vector<std::string> noAssume;     ///< names of dims that inputs share and that need not be equal
  std::vector<std::string> staticInputs; ///< patterns of inputs that seldom change
  std::vector<std::string> innerOutputs; ///< patterns of nodes whose results are outputs, too
  std::vector<std::string> disabled;     ///< patterns of nodes that are not fused and run by plain loops
  std::vector<std::string> backendFor;   ///< PATTERN=onnxruntime, of nodes that another library computes
  unsigned stopAfter = 0;                ///< so many nodes; 0: all
  std::string mode = "default";
  std::string tuningDb;         ///< file of the tuning database; empty: none is named
  std::string tuningCandidates; ///< file to write, of schedules to measure elsewhere; empty: none
  std::string tuningMachine;    ///< whose records of it; empty: those of this machine
  unsigned tuningThreads = 0;
  std::string precision = "f32";            ///< a type, or auto:R
  std::vector<std::string> nodePrecisions;  ///< NODE=PRECISION, by name or pattern; the last that names a node counts
  std::string quantize;                     ///< int8; empty: nothing is quantised
  std::vector<std::string> calibrate;       ///< .npz files
  std::string calibrateMethod = "minmax";   ///< as parseRangeRule reads it
  std::vector<std::string> quantizeExclude; ///< patterns of nodes that stay in f32
  std::optional<double> quantizeBudget;     ///< error of outputs, relative to their largest value
  std::string quantizedModel;               ///< ONNX file to write, too; empty: none
  std::string chosenPrecision;              ///< configuration to write of what auto:R chose; empty: none
  Phase compileTo = Phase::Artifact;
  bool stopAtPhase = false; ///< --compile-to was given
  bool explain = false;
  std::string explainFile; ///< JSON; empty: text on standard output
  std::string debugDir, logs;
  std::string depFile;    ///< for build systems: what the output was made of; empty: none
  std::string configFile; ///< that options were read from, for depFile
  std::vector<std::string> printIrAfter;
  bool fullGraph = false, verify = false, externalWeights = false, allowLibs = false, checkBounds = false,
       allowHostOps = false, verbose = false, quiet = false;
  unsigned jobs = 0;
  std::string refit;        ///< an artifact, whose options and code are taken; empty: none
  bool isRefitRead = false; ///< the options are its already
  std::string maxMemory;    ///< --max-compile-memory as it was given, for its sentence
  uint64_t maxMemoryBytes = 0;
  std::string maxTime;   ///< the same of --max-compile-time
  double maxSeconds = 0; ///< 0: any
  std::string cacheDir;  ///< folder of earlier results; empty: none are used or kept
  uint64_t cacheSizeBytes = uint64_t(4) << 30;
  /// As it was typed, for the report of an internal error.
  std::string commandLine;
  /// tc-compile itself, to write the reproducer of an internal error; empty: none is written.
  std::string executable;

  /// Whether --precision is auto, well formed or not.
  bool choosesPrecision() const;
  /// R of --precision auto:R, the error of outputs relative to their largest value; nullopt: it says something else.
  std::optional<double> getPrecisionBudget() const;
  /// --tuning-db, or where measurements are kept without it: beside the cache. Empty: nowhere.
  std::string getTuningDatabase() const;
};

/// Runs the compiler. Passes must be registered (registerAllPasses).
int compile(const CompileRequest &request, llvm::raw_ostream &errors);

} // namespace tc::driver

#endif // TC_DRIVER_COMPILE_H
