//===- Benchmark.h - measures one model with tc and its peers -------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#ifndef TC_BENCH_BENCHMARK_H
#define TC_BENCH_BENCHMARK_H

#include "tc/Bench/Peers.h"
#include "tc/Bench/Report.h"
#include "tc/Run/Session.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tc::bench {

struct BenchmarkOptions {
  std::string compiler; ///< path of tc-compile
  std::string runner;   ///< path of tc-run
  std::string python;   ///< runs the peers
  std::string cpu;      ///< for tc-compile --cpu
  uint32_t threads = 1;
  double seconds = 2; ///< of timing per engine, over all rounds
  std::vector<std::string> peers;
  /// Other artifacts or models of the same inputs (another build's, another option's), timed beside tc a few runs each.
  std::vector<std::string> against;
  /// Other modes of tc-compile, whose artifacts are timed beside tc in the same way.
  std::vector<std::string> modes;
  double modeSeconds = 300; ///< that such a compile may take
  bool isEconomics = false; ///< what engines need besides the times of runs is measured, too
  std::string inputs;       ///< .npz; empty: random inputs
  uint64_t seed = 0;
  std::string function;  ///< of the artifacts; empty: the first one
  bool isStatic = false; ///< compile for just the sizes that are timed, where they are dynamic otherwise
  /// Called with what is being done, for a line of progress.
  std::function<void(const std::string &)> progress = [](const std::string &) {};
};

/// An artifact that takes part.
struct Build {
  std::string name; ///< of the engine: tc, the file of --against, tc MODE
  EngineKind kind = EngineKind::Tc;
  std::string file, artifact;    ///< what was given, and what runs
  std::optional<double> seconds; ///< that compiling took; nothing where an artifact was given
  std::string problem;           ///< why there is no artifact; of other modes only
};

/// The artifacts of a model, of its other modes and of those of --against; an artifact is taken as it is. Temporary
/// ones go with this.
class CompiledModel {
public:
  /// Compiles with `sizes` where the options are static. Throws a Failure with the exit code; tc-compile says why.
  CompiledModel(const std::string &model, const BenchmarkOptions &options, const Sizes &sizes);

  const std::string &name() const { return all.front().file; }
  /// The model's own first.
  const std::vector<Build> &builds() const { return all; }

private:
  TemporaryFolder folder;
  std::vector<Build> all;
};

/// Whether the file is an artifact, not a model.
bool isArtifact(const std::string &path);
/// Starts tc-run on the artifact, in a process of its own, with the inputs of `inputsFile`: how long it takes until the
/// end of its first run, and what memory it needs. Nothing is known where it fails.
EngineStart measureStart(const std::string &artifact, const BenchmarkOptions &options, const Sizes &sizes,
                         const std::string &inputsFile, const TemporaryFolder &folder);

/// A model at one set of sizes.
class Benchmark {
public:
  /// Opens the artifacts, makes the inputs and runs each once, so that what is wrong with them is said before anything
  /// is measured. Throws a Failure with the exit code. `compiled` and `options` must outlive this.
  Benchmark(const CompiledModel &compiled, const BenchmarkOptions &options, Sizes sizes);
  ~Benchmark();

  /// Times tc in this process and each peer in turns, so that what slows the machine slows all of them. A peer's
  /// failure is part of the result.
  ModelResult measure();

private:
  void open();
  std::unique_ptr<run::Session> openOther(const Build &build, EngineResult &engine) const;
  /// `what` is being measured, for the lines of progress.
  void loadPeers(const std::string &what, const std::string &inputsFile, const TemporaryFolder &folder,
                 ModelResult &result);
  void measureRounds(const std::string &what, ModelResult &result);
  void measureStarts(const std::string &what, const std::string &inputsFile, const TemporaryFolder &folder,
                     ModelResult &result) const;

  const CompiledModel &compiled;
  const BenchmarkOptions &options;
  Sizes sizes;
  run::SessionOptions sessionOptions;
  std::unique_ptr<run::Session> session;
  std::vector<std::unique_ptr<run::Session>> others; ///< of the other builds; null where one was not made
  std::vector<EngineResult> engines;                 ///< of all builds, compared
  std::vector<std::unique_ptr<Peer>> peers;          ///< null where there is no file for one
};

} // namespace tc::bench

#endif // TC_BENCH_BENCHMARK_H
