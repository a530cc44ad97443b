//===- Compiler.h - one compile -------------------------------------------------------------------------*- C++ -*-===//
//
// What tc::driver::compile does, by an object of its own: Compile.cpp has the phases and what is written,
// CheckRequest.cpp what is refused before, Trials.cpp what the compiler runs itself, to measure and to verify,
// Quantize.cpp and ChoosePrecision.cpp what it learns from calibration data, by Trial.cpp.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_LIB_DRIVER_COMPILER_H
#define TC_LIB_DRIVER_COMPILER_H

#include "ArtifactCache.h"
#include "DebugFolder.h"
#include "Explain.h"
#include "Limits.h"
#include "RunArtifact.h"
#include "SummaryText.h"
#include "tc/Dialect/Graph/IR/Graph.h"
#include "tc/Dialect/Machine/IR/Machine.h"
#include "tc/Dialect/TC/IR/ErrorKind.h"
#include "tc/Driver/Assemble.h"
#include "tc/Driver/Compile.h"
#include "tc/Driver/Reproducer.h"
#include "tc/Measure/TuneFile.h"
#include "tc/Support/Progress.h"
#include "tc/Support/ToolText.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include <chrono>
#include <mutex>

namespace tc::driver {

/// How products of f32 are computed, as --precision says it: of all nodes, and NODE=TYPE.
struct ProductPrecision {
  std::string type;
  std::vector<std::string> ofNodes;
};

/// Shares of the phases in the time of a compile, in percent, for the progress bar: inception_v3 takes 1, 1, 0, 0, 7,
/// 2, 82 and 6 of these, small models 3, 0, 1, 0, 6, 2, 88 and 0. What measures schedules takes many times as long.
inline constexpr double kShares[kPhaseCount] = {1, 2, 1, 1, 8, 3, 80, 4}, kTuneShare = 1000, kVerifyShare = 40;

inline bool isCuda(machine::TargetKind target) { return machine::getDevice(target) == machine::DeviceKind::Cuda; }

class Compiler {
public:
  using Clock = std::chrono::steady_clock;
  static double secondsSince(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  /// `files`: gets those that the model names.
  Compiler(const CompileRequest &request, llvm::raw_ostream &errors, ArtifactCache &cache, std::set<std::string> &files)
      : request(request), errors(errors), cache(cache), files(files), reproducer(request), bar(!request.verbose),
        limits(request), start(Clock::now()) {}
  int run();

private:
  int compile();
  int checkRequest(mlir::MLIRContext *context);
  int checkMachines(mlir::MLIRContext *context);
  int checkStart(Phase from, Phase last);
  std::string findCandidatesError() const;
  void warnOfIdleOptions();
  /// Of those of nodes that are no products in the module, which stands at the end of phase prim.
  void warnOfIdlePrecisions(mlir::ModuleOp module);
  bool isFor(machine::TargetKind target) const { return llvm::is_contained(targets, target); }
  int takeMachines(mlir::ModuleOp module);
  void setTarget(machine::TargetKind target);
  int runPhases(llvm::SmallVectorImpl<mlir::OwningOpRef<mlir::ModuleOp>> &modules, Phase from, bool isMlir);
  int runPhases(mlir::ModuleOp module, Phase from, Phase last);
  int runPhase(mlir::ModuleOp module, Phase phase);
  /// Whether --mode asks for measurements.
  bool measures() const { return llvm::StringRef(request.mode).starts_with("max-autotune"); }
  /// Whether nothing is compiled: --explain without a file to write.
  bool explainsOnly() const { return request.explain && request.tuningCandidates.empty() && endsAtSchedule(); }
  /// Whether nothing is made of the schedules: no file is to be written but of candidates, or what explains.
  bool endsAtSchedule() const { return request.output.empty() && !request.stopAtPhase; }
  /// Whether phase schedule measures, for this target.
  bool tunes(machine::TargetKind target) const {
    return measures() && target != machine::TargetKind::Reference && !explainsOnly();
  }
  int tune(mlir::ModuleOp module);
  int finishCandidates();
  llvm::Expected<std::string> buildProbe(mlir::ModuleOp probe, Phase from, llvm::ArrayRef<std::string> variants,
                                         bool refusesSpills = false);
  int keepModule(Phase phase, mlir::ModuleOp module);
  int writeModule(mlir::ModuleOp module);
  int writeArtifact(llvm::ArrayRef<mlir::OwningOpRef<mlir::ModuleOp>> modules);
  void summarize(const artifact::ArtifactSpec &spec);
  std::string describeResult() const {
    return nameOutput(summary, request.output) + llvm::formatv(", compiled in {0:f1} s", seconds).str();
  }
  int writeExplanation();
  int verifyArtifact(const std::string &path);
  int verifyTarget(machine::TargetKind target, const std::string &path);
  int verifyFunction(mlir::func::FuncOp function, uint32_t number, const llvm::StringMap<int64_t> &sizes,
                     const std::string &variant, bool onGpu, const std::string &path, double &largest);
  /// What the runtime says of `path`, said of the output.
  int failedRun(llvm::Error error, llvm::StringRef path);
  llvm::Expected<std::vector<prim::Tensor>> runProbe(mlir::ModuleOp probe, const std::string &variant,
                                                     llvm::ArrayRef<prim::Tensor> inputs);
  struct Trial;
  class PrecisionSearch;
  int quantize(mlir::ModuleOp module);
  int choosePrecision(mlir::ModuleOp module);
  /// `atPrim`: changes the function at the end of phase prim, or refuses it.
  llvm::Expected<std::unique_ptr<Trial>> buildTrial(mlir::ModuleOp graph, const ProductPrecision &products,
                                                    llvm::function_ref<bool(mlir::func::FuncOp)> atPrim = nullptr);
  int readCalibration(graph::FuncOp main, llvm::ArrayRef<mlir::Type> types, llvm::StringRef option,
                      std::vector<prim::Tensor> &defaults, std::vector<std::vector<prim::Tensor>> &runs);
  llvm::Error forEachRun(llvm::ArrayRef<Trial *> trials, const std::vector<std::vector<prim::Tensor>> &runs,
                         llvm::function_ref<void(llvm::ArrayRef<std::vector<prim::Tensor>>)> with);
  void setPrecision(const ProductPrecision &products);
  bool runPasses(mlir::ModuleOp module, llvm::function_ref<void(mlir::PassManager &)> build);
  void report(mlir::Diagnostic &diagnostic);
  int internalError(llvm::StringRef what);
  int fail(ExitCode code, const llvm::Twine &sentence) {
    progress::clear();
    const std::string line = printable(sentence.str());
    errors << line << "\n";
    cache.addLines(line);
    return code;
  }
  void warn(const llvm::Twine &sentence) { fail(kDone, "tc-compile: warning: " + sentence); }
  int fail(llvm::Error error, llvm::StringRef prefix);
  int failedPasses(llvm::StringRef what);
  void beginStep(Phase phase);
  void showStage(llvm::StringRef name, double share);
  void planShares(Phase from, Phase last, Phase common);
  void endStep(Phase phase);

  const CompileRequest &request;
  llvm::raw_ostream &errors;
  ArtifactCache &cache;
  std::set<std::string> &files;
  llvm::SmallVector<machine::TargetKind> targets; ///< in the order in which they stand in the artifact
  llvm::SmallVector<machine::CpuAttr> cpus;       ///< the best last, as passes take them
  llvm::SmallVector<machine::GpuAttr> gpus;
  PhaseOptions options;
  ProductPrecision precision; ///< that of `options`
  Explanation explanation;
  mlir::OwningOpRef<mlir::ModuleOp> reference; ///< the module at the end of phase prim, for --verify
  std::optional<DebugFolder> folder;
  Reproducer reproducer;
  progress::Bar bar;
  Limits limits;                                                 ///< its sentences are the reproducer's
  std::vector<std::pair<base::ErrorKind, std::string>> failures; ///< errors of the passes run last, with their notes
  std::set<std::string> printedFailures;                         ///< lines of failures that were printed as they came
  bool quiet = false;                                            ///< collect errors only
  Clock::time_point start, stepStart;
  double stepSeconds = 0; ///< of the last phase
  Phase current = Phase::Import;
  double shareDone = 0, shareOfAll = kShares[unsigned(Phase::Import)]; ///< of the progress bar
  bool isTuned = false;                          ///< kernels have other schedules than the generators' first choices
  double seconds = 0;                            ///< from the start to the end of the last phase
  llvm::StringSet<> printed;                     ///< passes of --print-ir-after that ran
  std::mutex printedMutex;                       ///< passes run in parallel
  std::optional<measure::TuneWriter> candidates; ///< of --tuning-candidates
  std::string tuned;                             ///< what measuring gained and cost, a line for each target
  std::string modelHash;                         ///< of hashModel
  std::unique_ptr<Thread> hashing;
  std::string summary; ///< of the artifact that was written, without its time
};

} // namespace tc::driver

#endif // TC_LIB_DRIVER_COMPILER_H
