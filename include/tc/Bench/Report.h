//===- Report.h - what tc-bench found, and how it is shown ----------------------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#ifndef TC_BENCH_REPORT_H
#define TC_BENCH_REPORT_H

#include "tc/Bench/Roofline.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tc::bench {

/// Sizes of symbolic dims.
using Sizes = std::vector<std::pair<std::string, int64_t>>;

/// Wall times of runs, in microseconds.
struct Times {
  double minUs = 0, medianUs = 0, p90Us = 0, p95Us = 0, p99Us = 0, meanUs = 0;
  double deviationUs = 0; ///< standard deviation
  double spread = 0;      ///< (90th percentile - 10th percentile) / median
  size_t runs = 0;
  std::vector<double> percentilesUs; ///< from 0 (the least) to 100 (the largest)
  /// One after the other, as they were timed.
  double runsPerSecond() const { return meanUs > 0 ? 1e6 / meanUs : 0; }

  /// Of at least one time; sorts `us`.
  static Times of(std::vector<double> us);
};

enum class EngineKind {
  Tc,    ///< the model or artifact that is asked for
  Other, ///< of --against
  Mode,  ///< the same model, compiled with another --mode
  Peer
};

/// What an engine needs besides the times of its runs; 0 where not known. A process of its own has run little else.
struct EngineStart {
  std::optional<double> compileSeconds; ///< of tc, ahead of time
  double importSeconds = 0;             ///< of a peer: until its Python package is there
  double buildSeconds = 0;              ///< of a peer: reading the model, building the session, compiling in process
  double loadSeconds = 0;               ///< of tc: from the file to a context that is ready
  double firstRunUs = 0;                ///< then
  uint64_t peakRssBytes = 0;            ///< of the process
  uint64_t artifactBytes = 0, arenaBytes = 0, weightsBytes = 0; ///< of tc
};

struct EngineResult {
  std::string name; ///< tc, the file of --against, tc MODE, ort, openvino, torch, inductor
  EngineKind kind = EngineKind::Peer;
  std::string version; ///< empty where the engine did not load
  /// Why there are no times: it is not installed, does not read the model, or failed. Empty where there are.
  std::string problem;
  bool isAbsent = false; ///< not installed, or no file for it; no failure
  double loadSeconds = 0;
  Times times;
  /// This engine's time over tc's: the median of the ratios of the rounds' medians.
  double ratio = 0;
  double ratioLow = 0, ratioHigh = 0; ///< the least and the largest of these ratios
  /// (largest - least) / median of the rounds' medians: what the machine did meanwhile. Smaller differences say
  /// nothing.
  double noise = 0;
  /// max|tc - peer| / max|peer| of the worst output; nothing where they cannot be compared.
  std::optional<double> maxRelError;
  std::string difference; ///< why they cannot be compared
  EngineStart start;
};

struct KernelResult {
  std::string name, nodes;
  double calls = 0;              ///< per run
  double us = 0;                 ///< per run
  uint64_t flops = 0, bytes = 0; ///< of one call; 0 where not known
  uint32_t number = 0;           ///< in the program's order, skipped ones counted
  /// What the artifact's manifest says, empty where it says nothing.
  std::string strategy;                     ///< of the schedule that the code obeys: cpu.winograd
  std::vector<uint32_t> reads;              ///< numbers of the kernels that its inputs come from
  std::vector<std::string> inputs, outputs; ///< of the model: those that it reads, and those that come from it
  /// Of a call, with each of its nodes as a kernel of its own: launches, and bytes that these read and write; 0 where
  /// not known.
  uint64_t unfusedLaunches = 0, unfusedBytes = 0;
  /// 1e9 per second; 0 where not known.
  double gflops() const { return us > 0 ? double(flops) * calls / us / 1000 : 0; }
  double gbs() const { return us > 0 ? double(bytes) * calls / us / 1000 : 0; }
  /// Whether its algorithm computes with fewer operations than its cost counts, which is the model's.
  bool hasFewerOperations() const { return strategy.find("winograd") != std::string::npos; }
};

struct ModelResult {
  std::string model;
  Sizes sizes; ///< of --dim
  std::string variant;
  uint32_t threads = 0;
  std::string inputs;                   ///< the inputs' shapes, for people
  std::optional<double> compileSeconds; ///< nothing where an artifact was given
  uint64_t artifactBytes = 0, arenaBytes = 0, peakMemoryBytes = 0;
  double loadUs = 0;
  std::vector<EngineResult> engines; ///< tc first
  std::vector<KernelResult> kernels; ///< by time, longest first
};

struct Report {
  std::string version;             ///< of tc
  std::string machine;             ///< processor, cores, system
  std::string date;                ///< when it began, with the time zone
  std::string command;             ///< as a shell takes it
  std::vector<Roofline> rooflines; ///< the last is that of the runs' thread count
  std::vector<ModelResult> models;
  std::optional<double> runsPerDay; ///< of --economics

  const Roofline &roofline() const { return rooflines.back(); }
  /// Percent of the roofline that a kernel reaches; 0 where its operations and bytes are not known.
  double percentOfRoofline(const KernelResult &kernel) const;
  /// The least microseconds of a call with each node as a kernel of its own, each of which moves an equal part of the
  /// bytes at the bandwidth of the level that holds it; 0 where not known.
  double leastUnfusedUs(const KernelResult &kernel) const;
  /// Percent of the kernel's roofline that its nodes could reach so at most; 0 where not known.
  double percentUnfused(const KernelResult &kernel) const;
};

/// The roofline's line of text.
std::string rooflineText(const Roofline &roofline);
/// Tables of engines and of the kernels that take most of the time.
std::string modelText(const Report &report, const ModelResult &model);
/// One model at several sizes: a line for each size and engine. `dims` are those that have several sizes.
std::string sizesText(const std::vector<ModelResult> &results, const std::vector<std::string> &dims);
/// batch=8, length=128
std::string sizesName(const Sizes &sizes);
/// A sentence on how far the machine's own unrest lets times be trusted.
std::string noiseText(const ModelResult &model);
/// Of this machine, for people: what the kernel says of its processor, the cores that can be used, the system.
std::string describeMachine();
/// All of it; lib/Bench/README.md has the keys.
std::string toJson(const Report &report);
/// A page without outside references: per model the table of engines, the kernels as a graph, the roofline as a plot,
/// and the table of kernels.
std::string toHtml(const Report &report);

/// The kernels with what they read as an SVG picture that can be zoomed; empty where the artifact does not say it.
std::string drawKernelGraph(const ModelResult &model);

} // namespace tc::bench

#endif // TC_BENCH_REPORT_H
