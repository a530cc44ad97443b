//===- Economics.h - whether compiling pays -------------------------------------------------------------*- C++ -*-===//
//
// Each engine costs something once, before its first run (tc: compiling and loading the artifact; a peer: building its
// session, or torch.compile's first call), and something with each run: cost(n) = once + n * run. Where two such lines
// meet one begins to pay.
//
// Two engines count as equally fast unless all rounds agree on which is faster: the least and the largest of five
// independent ratios hold the true median with a confidence of 1 - 2 * 0.5^5 = 94 % (David, Nagaraja, "Order
// Statistics", 2003, section 7.1), whatever their distribution. So do two that differ by less than a percent: where
// code and buffers happen to lie makes as much.
//
// Example: tc compiles for 2 s and runs for 100 us, ort builds its session in 0.5 s and runs for 150 us: tc pays from
// 1.5 s / 50 us = 30,000 runs on.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------------------------------------------------===//
#ifndef TC_BENCH_ECONOMICS_H
#define TC_BENCH_ECONOMICS_H

#include "tc/Bench/Report.h"

#include <optional>
#include <string>
#include <vector>

namespace tc::bench {

/// Differences of times that are smaller are none.
constexpr double kLeastDifference = 0.01;

/// What an engine costs. tc itself is the one of which ratio, low and high are 1.
struct EngineCost {
  std::string name;
  EngineKind kind = EngineKind::Peer;
  double onceSeconds = 0;              ///< before the first run of the first process
  double startSeconds = 0;             ///< before the first run of each further process
  double runSeconds = 0;               ///< tc's median times `ratio`; assess() makes it tc's where the rounds disagree
  double ratio = 1, low = 1, high = 1; ///< time of a run over tc's: median, least and largest of the rounds
  /// Whether it counts as equally fast as tc.
  bool isTie() const;
};

/// tc, and its other modes, against an engine. Gains are negative where tc is slower.
struct Comparison {
  enum class Outcome {
    Noise,   ///< no difference that the rounds agree on
    AtOnce,  ///< faster, and not later ready: from the first run on
    Later,   ///< faster, but later ready: from breakEvenRuns on
    FewRuns, ///< slower, but sooner ready: up to breakEvenRuns
    Never    ///< slower, and not sooner ready
  };
  std::string name; ///< of the other engine
  Outcome outcome = Outcome::Noise;
  double ratio = 1, low = 1, high = 1;     ///< the other's time over the one's
  double moreSeconds = 0;                  ///< that the one takes before its first run
  double gainSeconds = 0;                  ///< per run
  double gainSecondsPerDay = 0;            ///< at the runs of a day
  std::optional<double> breakEvenRuns;     ///< nothing where there is none
  std::optional<double> breakEvenEarliest; ///< with the largest difference of a round; the same without one
  std::optional<double> breakEvenLatest;   ///< with the least difference of a round; nothing where that is none
};

/// An engine is the cheapest one from so many runs on, until the next one is.
struct Stretch {
  std::string name;
  double fromRuns = 0;
};

struct Economics {
  double runsPerDay = 0;
  std::vector<EngineCost> costs; ///< tc first; engines that were not measured are left out
  std::vector<Comparison> peers; ///< tc in its default mode against each peer
  std::vector<Comparison> modes; ///< each other mode against the default one: a gain is the mode's
  std::vector<Stretch> cheapest; ///< by number of runs, the first from 0 on

  /// Against the peer, or of the mode, of this name; null for others.
  const Comparison *find(const std::string &name) const;
};

/// The costs of those engines of `model` that were measured, and of which it is known what they take before a run.
std::vector<EngineCost> costsOf(const ModelResult &model);
/// `costs` begin with tc.
Economics assess(std::vector<EngineCost> costs, double runsPerDay);
/// What follows from it, sentence by sentence: what to take, why, when not, whether another mode pays.
std::vector<std::string> recommend(const Economics &economics);
/// Which engine is the fastest at which size; of one size that others can be measured.
std::string compareSizes(const std::vector<ModelResult> &results);

/// For how long the recommended engine has to be the cheapest: a model is seldom served unchanged for longer.
constexpr double kHorizonDays = 30;

/// Tables, sentences and fusion of one model, size by size, as text.
std::string economicsText(const Report &report, const std::vector<ModelResult> &results);
/// The same of one size with plots, as a part of the page.
std::string economicsHtml(const Report &report, const ModelResult &model);

/// What a table says of the runs at which it pays: > 4,200, < 300, at once, never, noise.
std::string breakEvenWord(const Comparison &comparison);
/// 12 us, 3.4 ms, 5 min, 2.1 h, 3.5 days.
std::string durationText(double seconds);
/// 1,230,000: rounded up to a whole one, then to three digits.
std::string countText(double count);

/// The kernels of a run as they are, and as each node would be by itself.
struct FusionTotals {
  size_t kernels = 0; ///< launched in a run, of which the artifact says what they were made of
  double launches = 0, unfusedLaunches = 0;
  double bytes = 0, unfusedBytes = 0;     ///< of the kernels whose bytes are known
  double leastUs = 0, unfusedLeastUs = 0; ///< of these: what the roofline lets them take at least
  double us = 0;                          ///< of these: what they take
  /// Percent of the roofline: at most, with a kernel for each node; and measured.
  double percentBefore() const { return unfusedLeastUs > 0 ? 100 * leastUs / unfusedLeastUs : 0; }
  double percentAfter() const { return us > 0 ? 100 * leastUs / us : 0; }
};
FusionTotals fusionOf(const Report &report, const ModelResult &model);
/// A sentence.
std::string describeFusion(const FusionTotals &totals);

} // namespace tc::bench

#endif // TC_BENCH_ECONOMICS_H
