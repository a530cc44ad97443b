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
  std::string python;   ///< runs the peers
  std::string cpu;      ///< for tc-compile --cpu
  uint32_t threads = 1;
  double seconds = 2; ///< of timing per engine, over all rounds
  std::vector<std::string> peers;
  /// Other artifacts or models of the same inputs (another build's, another option's), timed beside tc a few runs each.
  std::vector<std::string> against;
  std::string inputs; ///< .npz; empty: random inputs
  uint64_t seed = 0;
  std::string function;  ///< of the artifacts; empty: the first one
  bool isStatic = false; ///< compile for just the sizes that are timed, where they are dynamic otherwise
  /// Called with what is being done, for a line of progress.
  std::function<void(const std::string &)> progress = [](const std::string &) {};
};

/// The artifacts of a model and of those of --against; an artifact is taken as it is. Temporary ones go with this.
class CompiledModel {
public:
  /// Compiles with `sizes` where the options are static. Throws a Failure with the exit code; tc-compile says why.
  CompiledModel(const std::string &model, const BenchmarkOptions &options, const Sizes &sizes);

  const std::string &name() const { return model; }
  const std::vector<std::string> &artifacts() const { return files; }
  /// Of the model; nothing where it is an artifact.
  std::optional<double> seconds() const { return compileSeconds; }

private:
  std::string model;
  TemporaryFolder folder;
  std::vector<std::string> files;
  std::optional<double> compileSeconds;
};

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

  const CompiledModel &compiled;
  const BenchmarkOptions &options;
  Sizes sizes;
  run::SessionOptions sessionOptions;
  std::unique_ptr<run::Session> session;
  std::vector<std::unique_ptr<run::Session>> others; ///< of --against
  std::vector<EngineResult> engines;                 ///< tc and those, compared
};

} // namespace tc::bench

#endif // TC_BENCH_BENCHMARK_H
