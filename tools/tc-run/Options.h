//===- Options.h - tc-run's command line ----------------------------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#ifndef TC_TOOLS_TC_RUN_OPTIONS_H
#define TC_TOOLS_TC_RUN_OPTIONS_H

#include "tc/Support/ToolText.h"

#include "tcrt/artifact_abi.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tc::run {

struct Options {
  std::string artifact;
  std::string inputs;                 ///< .npz
  std::vector<std::string> input;     ///< NAME=FILE, not split: names may hold '='
  std::optional<uint64_t> randomSeed; ///< --random-inputs
  std::vector<std::pair<std::string, int64_t>> dims;
  std::string outputs; ///< .npz
  std::string outputDir;
  std::string expect; ///< .npz
  std::string dumpDir, dumpPattern;
  std::optional<double> maxRel, rtol, atol;
  uint32_t threads = 0;
  bool isDeviceGiven = false;
  bool isCuda = false; ///< where it is not given: the artifact has code for that alone
  int32_t deviceIndex = 0;
  bool isCpuAllowed = false;        ///< where the GPU cannot be used
  int graphs = TCRT_GRAPHS_DEFAULT; ///< TCRT_GRAPHS_*
  std::string variant;
  std::string function;
  uint64_t runs = 1;
  std::optional<uint64_t> seed;       ///< of random numbers that are drawn
  std::string stateIn, stateOut;      ///< .npz
  std::vector<std::string> customOps; ///< libraries
  std::optional<double> benchmarkSeconds;
  std::string json;
  bool profile = false;
  std::string trace; ///< of the profile's runs
  std::string tune;  ///< a database: the artifact is a file of tuning candidates
  std::string usage; ///< what the runtime counted
  bool verifyWeights = false;
  std::string verifyKey; ///< a file with public keys
  bool help = false;
  bool version = false;
  std::string generated; ///< what --generate prints
};

/// Throws a Failure with code 1.
Options parseOptions(int argc, char **argv);

/// That a file which is written would replace one that is read, or another that is written; throws a Failure.
void checkFiles(const Options &options);

/// Its options, for help, manual page and completion.
ToolText describeTool();

} // namespace tc::run

#endif // TC_TOOLS_TC_RUN_OPTIONS_H
