//===- Benchmark.h - measures one model with tc and its peers -------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#ifndef TC_BENCH_BENCHMARK_H
#define TC_BENCH_BENCHMARK_H

#include "tc/Bench/Report.h"

#include <functional>
#include <string>
#include <utility>
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
  std::vector<std::pair<std::string, int64_t>> dims; ///< sizes of symbolic dims for random inputs
  /// Compile for just these dims, where they are dynamic otherwise.
  std::string function; ///< of the artifacts; empty: the first one
  bool isStatic = false;
  /// Called with what is being done, for a line of progress.
  std::function<void(const std::string &)> progress = [](const std::string &) {};
};

/// Compiles `model` (an artifact is taken as it is), then times tc in this process and each peer in turns, so that what
/// slows the machine slows all of them. Throws a Failure with the exit code; a peer's failure is part of the result.
ModelResult benchmark(const std::string &model, const BenchmarkOptions &options);

} // namespace tc::bench

#endif // TC_BENCH_BENCHMARK_H
